"""What calls of trees refuse, with which words: arguments of the wrong kind, shape, number or name."""

import pickle
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from oracles.motions import random_stack
from oracles.random_trees import random_tree
from places import CONFIG
from refusals import Row, assert_refused, misshapen, not_finite, refused, unknown

from hodyn_ros import (
    AppliedWrench,
    BaseMotion,
    HodynError,
    InputError,
    ModelError,
    NotFiniteError,
    OverflowingError,
    RangeError,
    Robot,
    ShapeError,
    SingularError,
    UnknownNameError,
)
from hodyn_ros.array import Array
from hodyn_ros.dynamics.group_robot import GroupRobot
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.joint_groups import free, planar, revolute
from hodyn_ros.model.joint_tree import JointTree

Q, STATE, TORQUES = random_stack(70, 5, 4), random_stack(30, 2, 4), random_stack(31, 3, 4)
REST, ZERO = BaseMotion(np.eye(4), np.zeros((4, 6))), np.zeros((5, 4))
SHORT = BaseMotion(np.eye(4), np.zeros((1, 6)))
MANY = BaseMotion(np.array([np.eye(4)] * 5), np.zeros((5, 2, 6)))


def with_one(values: Array, value: float) -> Array:
    result = values.copy()
    result[1, 2] = value
    return result


@cache
def arm() -> Robot:
    tree = Robot.from_screws(**random_tree(32, 4).arguments()).model
    return Robot(tree, frames={"tool": Frame(3, np.eye(4)), "corner": Frame(-1, np.eye(4))})


@cache
def flyer() -> Robot:
    return Robot.from_screws(**random_tree(32, 5, floating_base=True).arguments())


PLACE, PUSH = "body or frame", "the wrench on body 1"  # what errors are about


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ShapeError("q", (5, 4), (4,)), "q must have shape (5, 4), found (4,)"),
        (NotFiniteError("q", (0, 1)), "q holds NaN or infinite numbers, first at index (0, 1)"),
        (UnknownNameError("body", "hand", ["a", "b"]), "there is no body 'hand'; known here: ['a', 'b']"),
        (RangeError("lead", np.nan, 0.0, 0.1), "lead must be within 0 and 0.1, found nan"),
    ],
)
def test_errors_that_make_their_own_words(error: InputError, said: str) -> None:
    assert str(error) == said


@pytest.mark.parametrize(
    "error", [ShapeError("q", (5, 4), (4,)), SingularError("flat", 9.0, 2, order=1), ModelError("empty")]
)
def test_errors_come_back_from_other_processes(error: HodynError) -> None:
    """A pool whose answer cannot be read breaks, and says nothing of the error."""
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


# --- motions, of which every call has some rows ------------------------------------------------------------

MOTIONS: dict[str, Row] = {
    "joint missing": (Q[:, :3], misshapen("the motion", (5, 3))),
    "joint too many": (np.zeros((5, 5)), misshapen("the motion", (5, 5))),
    "acceleration missing": (Q[:2], misshapen("the motion", (2, 4))),
    "one axis": (Q[0], misshapen("the motion", (4,))),
    "four axes": (Q[None, None], misshapen("the motion", (1, 1, 5, 4))),
    "transposed": (Q.T, misshapen("the motion", (4, 5))),
    "empty": (np.zeros((0, 4)), misshapen("the motion", (0, 4))),
    "a number": (3.0, misshapen("the motion", (1,))),
    "NaN": (with_one(Q, np.nan), not_finite(None, (1, 2))),
    "infinite": (with_one(Q, -np.inf), not_finite(None, (1, 2))),
    "NaN in a batch": (np.stack([Q, with_one(Q, np.nan)]), not_finite(None, (1, 1, 2))),
    "text": ([["a"] * 4] * 3, "numbers"),
    "ragged": ([[1.0] * 4, [1.0] * 3, [1.0] * 4], "must hold real numbers"),
    "nothing": (None, "the motion is None; give an array of shape (order + 3, 4)"),
    "complex": (Q + 1j, "real"),
    "samples for derivatives": (np.zeros((10000, 4)),
        "(10000, 4) has order 9997 ... 30 ... (N, order + 3, n)"),
    "so in a batch": (np.zeros((1, 1000, 4)), "(1, 1000, 4) has order 997"),
    "too large": (np.full((3, 4), 1e200), "overflow"),
    "too large in a batch": (np.stack([Q, np.full((5, 4), 1e200)]), "overflow"),
}  # fmt: skip


@pytest.mark.parametrize("formulation", [None, "spatial"])
@pytest.mark.parametrize("name", MOTIONS)
def test_motions(formulation: str | None, name: str) -> None:
    q, words = MOTIONS[name]
    kind = OverflowingError if words == "overflow" else InputError
    error = refused(lambda: arm().inverse_dynamics(q, formulation=formulation), words, kind)
    assert isinstance(error, ValueError)
    assert arm().inverse_dynamics(Q, formulation=formulation).shape == (3, 4)  # it stays usable


@pytest.mark.parametrize("formulation", ["body_fixed", "hybrid", "closed_form"])
def test_numbers_whose_torques_overflow(formulation: str) -> None:
    for robot, base in (arm(), None), (flyer(), REST):
        call = partial(robot.inverse_dynamics, np.full((3, 4), 1e200), base, formulation=formulation)
        refused(call, "overflow", OverflowingError)


CALLS: dict[str, Row] = {
    "kinematics, joint missing": (
        lambda r: r.forward_kinematics(np.zeros((2, 3))), misshapen("the motion", (2, 3))),
    "kinematics, one axis": (lambda r: r.forward_kinematics(np.zeros(4)), misshapen(None, (4,))),
    "kinematics, empty": (lambda r: r.forward_kinematics(np.zeros((0, 4))), misshapen(None, (0, 4))),
    "kinematics, four axes": (
        lambda r: r.forward_kinematics(Q[None, None]), misshapen("the motion", (1, 1, 5, 4))),
    "kinematics, NaN": (lambda r: r.forward_kinematics(np.full((2, 4), np.nan)), not_finite(None, (0, 0))),
    "kinematics, text": (lambda r: r.forward_kinematics([["a"] * 4]), "numbers"),
    "kinematics, nothing": (
        lambda r: r.forward_kinematics(None), "the motion is None; give an array of shape"),
    "kinematics, representation": (
        lambda r: r.forward_kinematics(Q, representation="body"),
        "spatial ... body_fixed ... hybrid ... 'body'"),
    "kinematics, converted": (
        lambda r: r.forward_kinematics(Q).in_representation("world"), "spatial ... 'world'"),
    "kinematics, a base": (lambda r: r.forward_kinematics(Q, REST), "has a fixed base"),
    "drives, uneven rows": (lambda r: r.drive_state([[0.0] * 4, [0.0]]), "the motion must hold real numbers"),
    "drives, text": (lambda r: r.drive_state([["a"] * 4]), "the motion must hold real numbers"),
    "independent, uneven rows": (
        lambda r: r.inverse_kinematics(np.eye(4), body=0, independent={0: [[0.0], [0.0, 1.0]]}),
        "the motion of joint 'joint1' must hold real numbers"),
    "batch, uneven rows": (
        lambda r: r.compile_batch(0, "mass_matrix")([[0.0], [0.0, 1.0]]), "expected batches"),
    "pose, name": (lambda r: r.forward_kinematics(Q).pose_of("elbow"), unknown(PLACE, "elbow")),
    "twists, name": (lambda r: r.forward_kinematics(Q).twists_of("elbow"), unknown(PLACE, "elbow")),
    "Jacobian, name": (lambda r: r.forward_kinematics(Q).jacobian_of("elbow"), unknown(PLACE, "elbow")),
    "pose, number": (lambda r: r.forward_kinematics(Q).pose_of(7), unknown("body", 7)),
    "matrix, joint too many": (
        lambda r: r.mass_matrix(np.zeros((3, 5))),
        misshapen("the motion", (3, 5))),
    "matrix, rate missing": (
        lambda r: r.coriolis_matrix(Q[:1]),
        misshapen("the motion", (1, 4))),
    "matrix, nothing": (lambda r: r.mass_matrix(None), "the motion is None; give an array of shape"),
    "matrix, a base": (lambda r: r.mass_matrix(Q, REST), "has a fixed base"),
    "matrix, order": (
        lambda r: r.compile_matrices(-1), "the order must be 0 or a positive integer, found -1"),
    "gravity, nothing": (lambda r: r.gravity_torque(None), "the motion is None; give an array of shape"),
    "centre of mass, NaN": (lambda r: r.com(np.full((2, 4), np.nan)), not_finite(None)),
    "centre of mass, complex": (lambda r: r.com(np.full((2, 4), 1j)), "must hold real numbers"),
    "Jacobian, representation": (
        lambda r: r.jacobian(Q, body=0, representation="tool"),
        "representation must be one of ['spatial', 'body_fixed', 'hybrid'], found 'tool'"),
    "Jacobian, frame": (lambda r: r.jacobian(Q, body="hand"), unknown("body or frame", "hand")),
    "partials, rates missing": (
        lambda r: r.inverse_dynamics_derivatives(Q[:2]), misshapen("the motion", (2, 4))),
    "partials, joint missing": (
        lambda r: r.inverse_dynamics_derivatives(Q[:3, :3]), misshapen("the motion", (3, 3))),
    "partials, NaN": (lambda r: r.inverse_dynamics_derivatives(with_one(Q, np.nan)), not_finite(None)),
    "partials, state": (
        lambda r: r.forward_dynamics_derivatives(Q[:3], TORQUES[:1]),
        misshapen("the state", (3, 4), "(2, 4)")),
    "partials, prescribed": (
        lambda r: r.hybrid_dynamics_derivatives(STATE, TORQUES[:1], prescribed="joint1"),
        "prescribed must be a list"),
    "linearised, state": (
        lambda r: r.linearised_dynamics(Q[:3], np.zeros(4)),
        misshapen("the state", (3, 4), "(2, 4)")),
    "linearised, torques": (
        lambda r: r.linearised_dynamics(STATE, np.zeros(3)), misshapen("the torques", (3,), "(4,)")),
    "Hessian, multiplier": (
        lambda r: r.inverse_dynamics_hessian(Q[:3], np.zeros(4)),
        misshapen("the multiplier", (4,), "(1, 4)")),
    "Hessian, NaN": (
        lambda r: r.inverse_dynamics_hessian(Q[:3], np.full((1, 4), np.nan)),
        not_finite("the multiplier", (0, 0))),
    "Hessian of frames": (
        lambda r: r.forward_kinematics_hessian(Q[:1], np.zeros((2, 16))),
        misshapen("the multiplier", (2, 16), "(4, 16)")),
    "second partials, order": (
        lambda r: r.compile(12, "forward_dynamics_second_derivatives"),
        "too large to compile forward_dynamics_second_derivatives of order 12"),
    "regressor, rates missing": (lambda r: r.regressor(Q[:2]), misshapen("the motion", (2, 4))),
    "reference, rows": (
        lambda r: r.slotine_li_regressor(Q[:2], ZERO[:4]), misshapen("the reference", (4, 4), "(3, 4)")),
    "reference, joint missing": (
        lambda r: r.slotine_li_regressor(Q[:2], ZERO[:3, :3]),
        misshapen("the reference", (3, 3))),
    "reference, of a base": (
        lambda r: r.slotine_li_regressor(Q[:2], ZERO[:3], None, np.zeros((2, 6))),
        "leave out base_reference"),
    "wrench on a frame": (
        lambda r: r.inverse_dynamics(Q, wrenches=[AppliedWrench("tool", np.zeros(6))]),
        "'tool' is a frame fixed to body 'body4'; give the wrench on that body"),
}  # fmt: skip


def test_calls_of_an_arm() -> None:
    assert_refused(CALLS, by=lambda call: call(arm()))


# --- bases and wrenches ------------------------------------------------------------------------------------

VALUES: dict[str, Row] = {
    "pose (3, 3)": (lambda: BaseMotion(np.eye(3), np.zeros((2, 6))), misshapen("the base pose", (3, 3))),
    "pose that scales": (lambda: BaseMotion(2.0 * np.eye(4), np.zeros((2, 6))), "rotation"),
    "pose that mirrors": (lambda: BaseMotion(np.diag([-1.0, 1, 1, 1]), np.zeros((2, 6))), "rotation"),
    "pose infinite": (
        lambda: BaseMotion(np.full((4, 4), np.inf), np.zeros((2, 6))), not_finite("the base pose")),
    "twists (2, 5)": (lambda: BaseMotion(np.eye(4), np.zeros((2, 5))), misshapen("the base twists", (2, 5))),
    "twist alone": (lambda: BaseMotion(np.eye(4), np.zeros(6)), misshapen("the base twists", (6,))),
    "twists NaN": (lambda: BaseMotion(np.eye(4), np.full((2, 6), np.nan)), not_finite("the base twists")),
    "twists of one": (lambda: BaseMotion(MANY.pose, np.zeros((2, 6))),
        misshapen("the base twists", (2, 6))),
    "wrench (2, 5)": (lambda: AppliedWrench(1, np.zeros((2, 5))), misshapen(PUSH, (2, 5))),
    "wrench of three axes": (lambda: AppliedWrench(1, np.zeros((1, 2, 6))), misshapen(PUSH, (1, 2, 6))),
    "no wrench": (lambda: AppliedWrench(1, np.zeros((0, 6))), misshapen(PUSH, (0, 6), "(orders, 6)")),
    "wrench NaN": (lambda: AppliedWrench(1, np.full(6, np.nan)), not_finite(PUSH)),
}  # fmt: skip


def test_base_motions_and_wrenches() -> None:
    bent = np.array(MANY.pose)
    bent[3, 0, 0] += 0.1
    of_a_batch = "the base pose of sample 3 must be a homogeneous matrix"
    assert_refused(VALUES, (lambda: BaseMotion(bent, MANY.twists), of_a_batch))


@pytest.mark.parametrize("frame", [None, 0, b"spatial", ["spatial"], np.array(["spatial"]), "World", "tool"])
def test_representations_of_both(frame: Any) -> None:
    for call in (
        lambda: BaseMotion(np.eye(4), np.zeros((2, 6)), representation=frame),
        lambda: AppliedWrench(0, np.zeros(6), representation=frame),
    ):
        refused(call, "representation must be one of ['spatial', 'body_fixed'], found")


@pytest.mark.parametrize("values", [np.zeros(6) + 1j, ["a"] * 6, {}, object()])
def test_what_is_no_number(values: Any) -> None:
    refused(lambda: AppliedWrench("hand", values), "wrench on body 'hand' must be real numbers")
    refused(lambda: BaseMotion(np.eye(4), values), "base twists must be real numbers")


@pytest.mark.parametrize("formulation", [None, "spatial"])
@pytest.mark.parametrize("base", [(np.eye(4), np.zeros((2, 6))), np.eye(4), [], "base", 0, False])
def test_a_base_of_another_type(base: Any, formulation: str | None) -> None:
    words = f"base must be a BaseMotion, found {type(base).__name__}"
    for robot in (arm(), flyer()):
        refused(partial(robot.inverse_dynamics, Q, base, formulation=formulation), words)
    for name in ("forward_dynamics", "hybrid_dynamics"):
        further = {"prescribed": [0]} if name == "hybrid_dynamics" else {}
        refused(partial(getattr(flyer(), name), STATE, TORQUES, base, **further), words)


@pytest.mark.parametrize("formulation", [None, "spatial"])
@pytest.mark.parametrize(
    ("wrenches", "words"),
    [
        (np.zeros(6), "list of AppliedWrench, found ndarray"),
        ([np.zeros(6)], "list of AppliedWrench, found ndarray in it"),
        ([None], "list of AppliedWrench, found NoneType in it"),
        ({"body1": np.zeros(6)}, "list of AppliedWrench, found dict"),
        ((wrench for wrench in ()), "list of AppliedWrench, found generator"),
        (3, "list of AppliedWrench, found int"),
        (False, "list of AppliedWrench, found bool"),
        ("body1", "list of AppliedWrench, found str"),
        *(
            ([AppliedWrench(body, np.zeros(6))], unknown("body", body))
            for body in (True, 1.0, [1], b"body1", "elbow", 5, -1, 1.5, None)
        ),
    ],
)
def test_wrenches(wrenches: Any, words: str, formulation: str | None) -> None:
    refused(lambda: arm().inverse_dynamics(Q, wrenches=wrenches, formulation=formulation), words)
    if formulation is None:
        refused(lambda: flyer().forward_dynamics(STATE, TORQUES, SHORT, wrenches=wrenches), words)


@pytest.mark.parametrize(
    "formulation",
    ["", "Spatial", "magic", [], ["spatial"], ("spatial",), {}, b"spatial", 0, True, np.array(["spatial"])],
)
def test_a_formulation(formulation: Any) -> None:
    words = "no formulation ... choose one of ['body_fixed', ... 'spatial']"
    refused(lambda: arm().inverse_dynamics(Q, formulation=formulation), words)


FLYING: dict[str, Row] = {
    "no base": (lambda r: r.inverse_dynamics(Q), "floating base"),
    "no base, published": (lambda r: r.inverse_dynamics(Q, formulation="spatial"), "floating base"),
    "twists": (
        lambda r: r.inverse_dynamics(Q, BaseMotion(np.eye(4), np.zeros((3, 6)))),
        "4 base twists ... found 3"),
    "twists, published": (
        lambda r: r.inverse_dynamics(Q, SHORT, formulation="spatial"), "4 base twists ... found 1"),
    "bases of a batch": (
        lambda r: r.inverse_dynamics(np.zeros((4, 3, 4)), MANY),
        "base holds motions of 5 samples; this needs those of 4"),
    "bases of one": (
        lambda r: r.inverse_dynamics(ZERO[:3], MANY),
        "base holds motions of 5 samples; this needs that of one sample"),
    "states of a batch": (
        lambda r: r.forward_dynamics(np.zeros((4, 2, 4)), np.zeros((5, 1, 4)), MANY),
        misshapen("the state", (4, 2, 4), "(5, 2, 4)")),
    "forward, no base": (lambda r: r.forward_dynamics(STATE, TORQUES), "floating base"),
    "push (6,)": (
        lambda r: r.forward_dynamics(STATE, TORQUES, SHORT, np.zeros(6)), misshapen("base_wrench", (6,))),
    "push (2, 6)": (
        lambda r: r.forward_dynamics(STATE, TORQUES, SHORT, np.zeros((2, 6))),
        misshapen("base_wrench", (2, 6), "(3, 6)")),
    "push NaN": (
        lambda r: r.forward_dynamics(STATE, TORQUES, SHORT, np.full((3, 6), np.nan)),
        not_finite("base_wrench")),
    "push no number": (
        lambda r: r.forward_dynamics(STATE, TORQUES, SHORT, "much"), "base_wrench ... numbers"),
    "hybrid, no base": (lambda r: r.hybrid_dynamics(STATE, TORQUES, prescribed=[0]), "floating base"),
    "push on what is held": (
        lambda r: r.hybrid_dynamics(
            STATE, TORQUES, REST, np.zeros((3, 6)), prescribed=[0], prescribe_base=True), "not both"),
    "hybrid, twists": (
        lambda r: r.hybrid_dynamics(STATE, TORQUES, SHORT, prescribed=[0], prescribe_base=True),
        "4 base twists ... found 1"),
    "kinematics, no base": (lambda r: r.forward_kinematics(Q[:2]), "floating base"),
    "kinematics, twists": (lambda r: r.forward_kinematics(Q[:4], SHORT), "3 base twists ... found 1"),
    "matrix, no base": (lambda r: r.mass_matrix(Q), "has a floating base"),
    "reference, no base": (
        lambda r: r.slotine_li_regressor(Q[:2], ZERO[:3], REST), "give base_reference (2, 6)"),
    "reference, rows": (
        lambda r: r.slotine_li_regressor(Q[:2], ZERO[:3], REST, np.zeros((3, 6))),
        misshapen("base_reference", (3, 6), "(2, 6)")),
    "nothing at all": (lambda r: r.inverse_dynamics(None), "the motion is None; give an array of shape"),
}  # fmt: skip


def test_calls_of_a_floating_base() -> None:
    assert_refused(FLYING, by=lambda call: call(flyer()))


@pytest.mark.parametrize("name", ["mass_matrix", "com", "forward_kinematics"])
def test_calls_that_follow_one_that_fits(name: str) -> None:
    """These go straight to their kernel."""
    call, q = getattr(flyer(), name), np.zeros((3, 4))
    call(q, REST)
    for arguments, words in (
        ((q, SHORT), "needs 2 base twists"),
        ((q,), "floating base; give its motion"),
        ((np.full((3, 4), np.nan), REST), not_finite(None, (0, 0))),
        ((q, [REST]), "base must be a BaseMotion, found list"),
    ):
        refused(lambda given=arguments: call(*given), words)


# --- states and efforts ------------------------------------------------------------------------------------

STATES: dict[str, Row] = {
    "joint missing": (STATE[:, :3], TORQUES, misshapen("the state", (2, 3), "(2, 4)")),
    "rate missing": (STATE[:1], TORQUES, misshapen("the state", (1, 4), "(2, 4)")),
    "acceleration too many": (np.zeros((3, 4)), TORQUES, misshapen("the state", (3, 4), "(2, 4)")),
    "state, one axis": (STATE[0], TORQUES, misshapen("the state", (4,), "(2, 4)")),
    "torque missing": (STATE, TORQUES[:, :3], misshapen("the torques", (3, 3))),
    "no torques": (STATE, TORQUES[:0], misshapen(None, (0, 4))),
    "torques, one axis": (STATE, TORQUES[0], misshapen(None, (4,))),
    "state NaN": (with_one(STATE, np.nan), TORQUES, not_finite(None, (1, 2))),
    "torques infinite": (STATE, with_one(TORQUES, np.inf), not_finite(None, (1, 2))),
    "state, text": ([["a"] * 4] * 2, TORQUES, "numbers"),
    "torques, text": (STATE, [["a"] * 4], "numbers"),
    "complex": (STATE + 1j, TORQUES, "real"),
    "no state": (None, TORQUES, "(2, 4)"),
    "torques None": (STATE, None, "(order + 1, 4)"),
    "samples for derivatives": (STATE, np.zeros((1000, 4)), "(1000, 4) have order 999 ... 30"),
    "too large": (np.full((2, 4), 1e200), TORQUES, "overflow"),
}


@pytest.mark.parametrize("name", STATES)
def test_states_and_torques(name: str) -> None:
    state, torques, words = STATES[name]
    kind = OverflowingError if words == "overflow" else InputError
    refused(lambda: arm().forward_dynamics(state, torques), words, kind)
    refused(lambda: arm().hybrid_dynamics(state, torques, prescribed=[0]), words, kind)
    assert arm().forward_dynamics(STATE, TORQUES).shape == (3, 4)


@pytest.mark.parametrize(
    "keywords",
    [{"base": SHORT}, {"base_wrench": np.zeros((3, 6))}, {"prescribe_base": True, "prescribed": [0]}],
)
def test_the_ground_takes_neither_base_nor_its_wrench(keywords: dict[str, Any]) -> None:
    call = arm().hybrid_dynamics if "prescribed" in keywords else arm().forward_dynamics
    refused(lambda: call(STATE, TORQUES, **keywords), "has a fixed base")
    for formulation in (None, "spatial"):
        refused(partial(arm().inverse_dynamics, Q, REST, formulation=formulation), "base")


@pytest.mark.parametrize(
    ("prescribed", "words"),
    [
        (["elbow"], unknown("joint", "elbow")),
        *(([joint], unknown("joint", joint)) for joint in (4, -1, True, 1.0, None)),
        *(
            (joints, f"list of names or indices of joints, found {joints!r}")
            for joints in ("joint1", None, 2)
        ),
    ],
)
def test_joints_that_are_not_there(prescribed: Any, words: str) -> None:
    refused(lambda: arm().hybrid_dynamics(STATE, TORQUES, prescribed=prescribed), words)


# --- compiled functions ------------------------------------------------------------------------------------

SINGLE = np.zeros((5, 3, 4), np.float32)
READ_ONLY = np.zeros((3, 4))
READ_ONLY.setflags(write=False)
COMPILED: dict[str, Row] = {
    **{
        f"q, {name}": (lambda f, q=q: f(q), words)
        for name, q, words in (
            ("joint missing", np.zeros((5, 3)), misshapen("q", (5, 3), "(5, 4)")),
            ("transposed", np.zeros((4, 5)), misshapen("q", (4, 5), "(5, 4)")),
            ("row missing", np.zeros((4, 4)), misshapen("q", (4, 4), "(5, 4)")),
            ("a batch", np.zeros((2, 5, 4)), misshapen("q", (2, 5, 4), "(5, 4)")),
            ("one axis", np.zeros(20), misshapen("q", (20,), "(5, 4)")),
            ("empty", np.zeros((0, 4)), misshapen("q", (0, 4), "(5, 4)")),
            ("complex", np.zeros((5, 4)) + 1j, "real"),
            ("NaN", np.full((5, 4), np.nan), not_finite(None, (0, 0))),
            ("infinite", np.vstack([ZERO[:4], [[0.0, 0.0, 0.0, -np.inf]]]), not_finite("q", (4, 3))),
            ("text", [["a"] * 4] * 5, "numbers"),
            ("nothing", None, "(5, 4)"),
        )
    },
    **{
        f"out, {name}": (lambda f, out=out: f(ZERO, out=out), f"out ... {words}")
        for name, out, words in (
            ("row missing", np.zeros((2, 4)), "(3, 4) ... (2, 4)"),
            ("transposed", np.zeros((4, 3)), "(3, 4) ... (4, 3)"),
            ("one axis", np.zeros(12), "(3, 4) ... (12,)"),
            ("float32", np.zeros((3, 4), np.float32), "float64 ... float32"),
            ("columns first", np.zeros((3, 4), order="F"), "C-contiguous"),
            ("strided", np.zeros((3, 8))[:, ::2], "C-contiguous"),
            ("a list", np.zeros((3, 4)).tolist(), "(3, 4)"),
            ("read-only", READ_ONLY, "writable"),
        )
    },
    "no array": (lambda f: f(), "1 ... found 0"),
    "two arrays": (lambda f: f(ZERO, ZERO), "1 ... found 2"),
    "keyword": (lambda f: f(ZERO, into=np.zeros((3, 4))), "into", TypeError),
}  # fmt: skip


def test_compiled_functions() -> None:
    out = np.zeros((3, 4))
    never_reaches_the_code = (lambda f: f(np.full((5, 4), np.nan), out=out), not_finite("q", (0, 0)))
    assert_refused(COMPILED, never_reaches_the_code, by=lambda call: call(arm().compile(2)))
    assert not READ_ONLY.any() and not out.any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((ZERO,), "3 arrays ['q', 'pose', 'twists'], found 1"),
        ((ZERO, np.eye(4)), "found 2"),
        ((ZERO[:4], np.eye(4), np.zeros((4, 6))), misshapen("q", (4, 4), "(5, 4)")),
        ((ZERO, np.eye(3), np.zeros((4, 6))), misshapen("pose", (3, 3), "(4, 4)")),
        ((ZERO, np.eye(4), np.zeros((3, 6))), misshapen("twists", (3, 6), "(4, 6)")),
        ((ZERO, np.full((4, 4), np.nan), np.zeros((4, 6))), not_finite("pose", (0, 0))),
        ((ZERO, np.eye(4), np.full((4, 6), np.inf)), not_finite("twists", (0, 0))),
        ((ZERO, REST, None), "pose must hold real numbers"),
    ],
)
def test_compiled_functions_of_a_floating_base(arguments: tuple[Any, ...], words: str) -> None:
    refused(lambda: flyer().compile(2)(*arguments), words)


COMPILE: dict[str, Row] = {
    **{
        f"order {order!r}": (lambda r, order=order: r.compile(order),
        "the order must be 0 or a positive integer, found")
        for order in (True, None, "2", 2.0, 1.5, -1, np.array(2), [2])
    },
    "order out of reach": (lambda r: r.compile(10**9), "order is 1000000000 ... 30"),
    "unknown": (lambda r: r.compile(1, "torque"), "there is no 'torque' to compile; choose one of"),
    "frames": (lambda r: r.compile(1, "com", ["tool"]), "com has no frames"),
    "two frames": (lambda r: r.compile(1, "jacobian", ["tool", 0]), "jacobian is of one frame"),
    "no such frame": (lambda r: r.compile(1, "jacobian", ["hand"]), unknown("body or frame", "hand")),
    "order of the centre": (lambda r: r.compile(-1, "com"), "the order must be 0 or a positive integer"),
    "shape": (lambda r: r.compile(1, "com")(np.zeros((3, 3))), misshapen("the motion", (3, 3), "(2, 4)")),
    "batch, shape": (
        lambda r: r.compile_batch(0)(np.zeros((5, 2, 4))),
        "q must be a C-contiguous float64 array of shape (5, 3, 4)"),
    "batch, float32": (lambda r: r.compile_batch(0)(SINGLE), "found float32 of shape"),
    "batch, out": (
        lambda r: r.compile_batch(0)(np.zeros((5, 3, 4)), out=np.empty((5, 1, 4), np.float32)),
        "out must be a float64 array"),
    "batch of one": (lambda r: r.compile_batch(0)(ZERO[:3]), "expected batches of"),
    "batch, float16": (lambda r: r.compile_batch(0, dtype=np.float16), "float64 or float32, found float16"),
    "float32, NaN": (
        lambda r: r.compile_batch(0, dtype=np.float32)(SINGLE + np.float32(np.nan)), not_finite(None)),
    "float32, too large": (
        lambda r: r.compile_batch(0, dtype=np.float32)(SINGLE + np.float32(1e30)),
        "overflows", OverflowingError),
}  # fmt: skip


def test_what_cannot_be_compiled() -> None:
    assert_refused(COMPILE, by=lambda call: call(arm()))


# --- joints that move in groups ----------------------------------------------------------------------------


def of_one(subspace: Any, pose: Array | None = None, parent: int = -1, inertia: float = 1.0) -> JointTree:
    place = np.eye(4) if pose is None else pose
    return JointTree.build(
        [parent], [subspace], place[None], [1.0], np.zeros((1, 3)), inertia * np.eye(3)[None]
    )


@cache
def group() -> GroupRobot:
    return GroupRobot(of_one(free()))


UNIVERSAL = np.hstack([revolute([1.0, 0.0, 0.0]), revolute([0.0, 1.0, 0.0])])
GROUPS: dict[str, Row] = {
    "no group": (lambda: of_one(UNIVERSAL), "body 'body1' does not move in a group", ModelError),
    "dependent": (lambda: of_one(np.ones((6, 2))), "linearly independent", ModelError),
    "sheared": (
        lambda: of_one(free(), np.eye(4) + 0.1), "reference of body 'body1' is not a pose", ModelError),
    "inertia": (lambda: of_one(free(), inertia=-1.0), "an inertia that no body has", ModelError),
    "shape": (lambda: of_one(np.eye(3)), "must have shape (6, 1 to 6), found (3, 3)", ModelError),
    "parent": (lambda: of_one(free(), parent=0), "has parent 0; a parent is -1", ModelError),
    "no tree": (lambda: GroupRobot(5), "tree must be a JointTree"),  # type: ignore[arg-type]
    "plane": (lambda: planar([0.0, 0.0, 1.0], [1.0, 0.0, 1.0]), "must lie in its plane", ModelError),
    "pose": (
        lambda: GroupRobot(of_one(revolute([0, 0, 1.0]))).motion(exp(np.ones(6))[None], np.zeros((1, 1))),
        "joint of body 'body1' cannot be reached"),
    "velocities": (
        lambda: group().motion(np.eye(4)[None], np.zeros((2, 5))),
        misshapen("the velocities", (2, 5), "(orders, 6)")),
    "too few": (
        lambda: group().inverse_dynamics(group().motion(np.eye(4)[None], np.zeros((1, 6)))),
        "needs 2 velocities ... found 1"),
    "body": (
        lambda: group().jacobian(group().motion(np.eye(4)[None], np.zeros((1, 6))), body="hand"),
        unknown("body", "hand")),
}  # fmt: skip


def test_joints_on_groups() -> None:
    assert_refused(GROUPS)


def test_frames_of_a_file_are_named() -> None:
    moved = Robot.load(CONFIG / "panda.yaml").forward_kinematics(np.zeros((1, 7)))
    refused(lambda: moved.pose_of("elbow"), unknown(PLACE, "elbow"))
