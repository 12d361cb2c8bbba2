"""What calls of robots with loops refuse, with which words."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from linkages import robot_of, shipped, three_rps
from oracles.mechanisms import MECHANISMS, four_bar, rssr
from refusals import Row, assert_refused, misshapen, not_finite, unknown

from hodyn_ros import (
    BaseMotion,
    Constraints,
    ConvergenceError,
    Coupling,
    InputError,
    OverflowingError,
    Robot,
    SingularError,
)
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.composite_joints import ball

pytestmark = pytest.mark.thorough

TWO, THREE, FIVE = np.zeros((2, 1)), np.zeros((3, 1)), np.zeros((5, 1))
STILL = BaseMotion(np.eye(4), np.zeros((2, 6)))
ONE, TWISTS = np.eye(4), np.zeros((1, 6))
NAN, UNEVEN = np.full((3, 1), np.nan), [[0.0], [0.0, 1.0]]
FAR = exp(np.array([0.0, 0.0, 0.0, 0.0, 0.3, 20.0]))

BAR: dict[str, Row] = {  # of a four-bar
    "shape": (lambda r: r.inverse_dynamics(np.zeros((3, 2))), misshapen("the motion", (3, 2))),
    "too short": (lambda r: r.inverse_dynamics(TWO), misshapen("the motion", (2, 1))),
    "NaN": (lambda r: r.inverse_dynamics(NAN), not_finite("the motion", (0, 0))),
    "too large": (
        lambda r: r.inverse_dynamics([[[0.0]] * 3, [[0.0], [1e200], [0.0]]]),
        "sample 1: the result overflows", OverflowingError),
    "no motion": (lambda r: r.inverse_dynamics(None), "give their motion"),
    "base": (lambda r: r.inverse_dynamics(THREE, STILL), "has a fixed base"),
    "preload": (
        lambda r: r.inverse_dynamics(THREE, preload=[1.0]), "a preload needs more drives than coordinates"),
    "preload of drives": (
        lambda r: r.drive_state(THREE, preload=[1.0]), "a preload needs more drives than coordinates"),
    "preload of all": (
        lambda r: r.solve_loops(THREE, preload=[1.0]), "a preload needs more drives than coordinates"),
    "tree": (lambda r: r.model, "has couplings or loops, which this does not know yet"),
    "body": (lambda r: r.inverse_kinematics(ONE, body="nobody"), unknown("body or frame", "nobody")),
    "independent": (
        lambda r: r.inverse_kinematics(ONE, body="body2", independent={"nobody": 0.0}),
        "independent names 'nobody'; the joints of 'robot' that are"),
    "frame and base": (
        lambda r: r.inverse_kinematics(ONE, body="body2", base=BaseMotion(ONE, TWISTS)),
        "has no base that moves as prescribed"),
    "seed": (lambda r: r.inverse_kinematics(ONE, body="body2", seed=[0.0, 0.0]), misshapen("the seed")),
    "out of reach": (
        lambda r: r.inverse_kinematics(FAR, body="body2", task="position"),
        "no joint positions were found near the seed", ConvergenceError),
    "compiled, arrays": (lambda r: r.compile(2)(FIVE, FIVE), "expected 1 arrays ['the motion'], found 2"),
    "compiled, shape": (lambda r: r.compile(2)(FIVE[:4]), misshapen("the motion", (4, 1), "(5, 1)")),
    "Hessians of hybrid dynamics": (
        lambda r: r.hybrid_dynamics_hessian(TWO, [[0.0]], [[1.0]], prescribed=(0,)),
        "are of robots without loops"),
    "compiled Hessian": (
        lambda r: r.compile(0, "forward_dynamics_hessian"),
        "forward_dynamics_hessian is for robots without couplings and loops"),
    "reference of a base": (
        lambda r: r.slotine_li_regressor(TWO, THREE, None, np.zeros((2, 6))), "leave out base_reference"),
    "reference": (lambda r: r.slotine_li_regressor(TWO, TWO), misshapen("the reference", (2, 1), "(3, 1)")),
    "batch of none": (lambda r: r.inverse_dynamics(np.zeros((0, 3, 1))), "one sample or more"),
    "float32": (lambda r: r.compile_batch(1, dtype=np.float32), "has loops, whose batches are of float64"),
    "batches of frames": (
        lambda r: r.compile_batch(0, "inverse_kinematics"),
        "there are no compiled batches of inverse_kinematics"),
    "batch, NaN": (
        lambda r: r.com(np.where(np.arange(5) == 3, np.nan, 0.0)[:, None, None]),
        not_finite("the motion", (3, 0, 0))),
    "uneven torques": (lambda r: r.forward_dynamics(TWO, UNEVEN), "the torques must hold real numbers"),
    "uneven states": (
        lambda r: r.forward_dynamics_derivatives(UNEVEN, [[0.0]]), "the motion must hold real numbers"),
    "uneven inputs": (
        lambda r: r.hybrid_dynamics(TWO, UNEVEN, prescribed=[0]), "the torques must hold real numbers"),
    "uneven batch": (lambda r: r.compile_batch(0, "mass_matrix")(UNEVEN), "expected batches"),
    "uneven positions": (lambda r: r.reset(UNEVEN), "the positions must hold real numbers"),
}  # fmt: skip


def test_of_a_four_bar() -> None:
    robot = robot_of(four_bar())
    before = robot.positions
    assert_refused(BAR, by=lambda call: call(robot))
    np.testing.assert_allclose(robot.positions, before, rtol=0.0, atol=1e-14)


@cache
def cam(table: bool) -> Robot:
    at = np.linspace(-1.0, 1.0, 12)
    curve: dict[str, object] = {"table": (at, at**2)} if table else {"polynomial": [0.0, 1.0, -1.0]}
    coordinates = None if table else ["joint2", "joint3"]
    constraints = Constraints(couplings=[Coupling("joint2", "joint1", **curve)], coordinates=coordinates)
    return Robot.from_screws(**four_bar().tree.arguments(), constraints=constraints)


def held_leg() -> tuple[Robot, BaseMotion]:
    robot = shipped("humanoid_leg.yaml")
    return robot, BaseMotion(robot.home[1], np.zeros((2, 6)))  # type: ignore[arg-type]


def leg_call(pose: object = ONE, twists: object = TWISTS, **others: object) -> object:
    robot, base = held_leg()
    robot.inverse_kinematics(
        robot.forward_kinematics(robot.home[0][None], base).pose_of("sole"), body="sole", base=base
    )
    return robot.inverse_kinematics(pose, twists, body="sole", **{"base": base, **others})  # type: ignore[arg-type]


def tool_call(seed: object, pose: object = ONE, *twists: object) -> object:
    return shipped("palletiser.yaml").compile(1, "inverse_kinematics", ["tool"])(seed, pose, *twists)


def hybrid(name: str, prescribed: object, **others: object) -> object:
    robot = shipped(f"{name}.yaml")
    start, given = robot.home[0], np.zeros((1, len(robot.driven_joints)))
    if robot.home[1] is None:
        return robot.hybrid_dynamics(np.stack([start, 0.0 * start]), given, prescribed=prescribed, **others)
    return robot.hybrid_dynamics(
        None, given, BaseMotion(robot.home[1], TWISTS), prescribed=prescribed, **others
    )


def flying_cam(call: str, samples: int, efforts: int, **others: object) -> object:
    mechanism = MECHANISMS["flying cam"]()
    robot = robot_of(mechanism)
    base = BaseMotion(mechanism.tree.placements[0], TWISTS)
    n, m = robot.n_coordinates, len(robot.driven_joints)
    return getattr(robot, call)(np.zeros((samples, 2, n)), np.zeros((efforts, 1, m)), base, **others)


def tree() -> Robot:
    return Robot.from_screws(**four_bar().tree.arguments())


PAIR = replace(four_bar(), driven=(0, 2))
SEED = np.zeros((1, 4))
OTHERS: dict[str, Row] = {
    "preload": (
        lambda: robot_of(PAIR).inverse_dynamics(THREE, preload=[1.0]),
        misshapen("the preload", (1,))),
    "preload of a tree": (
        lambda: tree().inverse_dynamics(np.zeros((3, 3)), preload=np.zeros(3)),
        "a preload needs more drives than coordinates"),
    "smoothness": (
        lambda: cam(True).inverse_dynamics(np.zeros((6, 2))),
        "table of the coupling of joint 'joint2' is smooth up to deriv"),
    "smoothness of accelerations": (
        lambda: cam(True).forward_dynamics(np.zeros((2, 2)), np.zeros((4, 2))),
        "smooth up to derivative 4, and 5 are needed ... of 7"),
    "smoothness of matrices that change": (
        lambda: cam(True).matrix_derivatives(np.zeros((5, 2))),
        "smooth up to derivative 4, and 5 are needed"),
    "end of a table": (
        lambda: cam(True).inverse_dynamics([[1.01, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        "joint 'joint1' stands at 1.01, beyond the table of the coup"),
    "lift of 0.25 at most": (
        lambda: cam(False).inverse_dynamics([[0.3, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        "the coupling of joint 'joint2' of robot 'robot' does", ConvergenceError),
    "loop": (
        lambda: robot_of(rssr()).inverse_dynamics([[3.0], [0.0], [0.0]]),
        "loop 'loop1' of robot 'robot' does not close there", ConvergenceError),
    "base twists": (
        lambda: leg_call(np.eye(4), np.zeros((2, 6)), base=BaseMotion(held_leg()[1].pose, TWISTS)),
        "this needs 2 base twists ... found 1"),
    "twists": (lambda: leg_call(twists=np.full((2, 6), np.nan)), not_finite("the twists", (0, 0))),
    "pose": (lambda: leg_call(2.0 * np.eye(4)), "the pose must be a homogeneous matrix"),
    "seed": (lambda: leg_call(seed=np.zeros((2, 6))), misshapen("the seed")),
    "representation": (lambda: leg_call(representation=[0]), "representation must be"),
    "no base": (lambda: leg_call(base=None), "give its motion as base"),
    "compiled, pose": (lambda: tool_call(SEED, np.full((4, 4), np.nan), TWISTS), not_finite("the pose")),
    "compiled, seed": (
        lambda: tool_call(SEED[0], ONE, TWISTS), misshapen("the seed", (4,), "(1, 4)")),
    "compiled, arrays": (
        lambda: tool_call(SEED, ONE), "expected 3 arrays ['the seed', 'the pose', 'the twists']"),
    "compiled, out of reach": (
        lambda: tool_call(SEED, FAR, TWISTS),
        "no joint positions were found near the seed", ConvergenceError),
    "compiled, two poses": (
        lambda: shipped("palletiser.yaml").compile(0, "inverse_kinematics", ["hand", "tool"])(
            SEED, ONE, np.zeros((0, 6))),
        misshapen("the poses", (4, 4), "(8, 4)")),
    "platform": (
        lambda: shipped("planar_3rrr.yaml").compile(1, "inverse_kinematics"),
        "robot 'planar_3rrr', which a platform moves"),
    "prescribed": (
        lambda: hybrid("palletiser", ["elbow"]),
        "prescribed names 'elbow'; the driven joints of 'palletiser' are"),
    "prescribed base": (lambda: hybrid("palletiser", [], prescribe_base=True), "has no base to prescribe"),
    "all prescribed": (
        lambda: hybrid("planar_3rrr", shipped("planar_3rrr.yaml").driven_joints),
        "prescribed joints of robot 'planar_3rrr' cannot all be moved", SingularError),
    "batch of efforts": (
        lambda: flying_cam("hybrid_dynamics_derivatives", 3, 2, prescribed=[]),
        "as many of each argument; found [2, 3]"),
    "batch of states": (
        lambda: flying_cam("forward_dynamics_derivatives", 3, 2),
        "a batch of 3 takes as many, or one for all; found 2"),
    "batch of accelerations": (lambda: flying_cam("forward_dynamics", 4, 3), "a batch of 4 takes as many"),
    "rows of a platform": (
        lambda: three_rps().matrix_derivatives(None, BaseMotion(three_rps().home[1], TWISTS)),
        "the rows of the platform of robot 'robot' leave the rest"),
    "compiled, rows of a platform": (
        lambda: three_rps().compile(0, "inverse_kinematics"),
        "no compiled inverse kinematics of robot 'robot'"),
    "reference of a platform": (
        lambda: shipped("planar_3rrr.yaml").slotine_li_regressor(
            None, None, BaseMotion(shipped("planar_3rrr.yaml").home[1], TWISTS)),
        "give base_reference (2, 6)"),
    "Hessian with redundant drives": (
        lambda: shipped("planar_3rrr.yaml").forward_dynamics_hessian(
            np.zeros((2, 0)), np.zeros((1, 3)), np.ones((1, 2)),
            BaseMotion(shipped("planar_3rrr.yaml").home[1], TWISTS)),
        "need as many drives as coordinates, and a platform all of whose"),
    "float32 of couplings": (
        lambda: shipped("panda_hand.yaml").compile_batch(1, dtype=np.float32),
        "has couplings, whose batches are of float64"),
}  # fmt: skip


def test_of_other_robots() -> None:
    assert_refused(OTHERS)


def test_types_are_those_of_bad_input() -> None:
    assert issubclass(ConvergenceError, InputError) and issubclass(SingularError, InputError)


def test_poses_at_which_joints_move_no_mass_are_refused() -> None:
    """A ball joint at a pitch of 90 degrees, beside joints one of which follows another."""
    robot = Robot.from_screws(
        [-1, 0, 1],
        [ball((0.1, 0.2, 0.3)), [1, 0, 0, 0, 0.3, 0], [0, 0, 1, 0, 0, 0]],
        [np.eye(4)] * 3,
        masses=[1.0, 2.0, 0.5],
        coms=[[0.1, 0.2, 0.3]] * 3,
        inertias=[np.diag([0.1, 0.12, 0.14])] * 3,
        constraints=Constraints(couplings=[Coupling("joint3", "joint2", 0.5)]),
    )
    state, torques = np.array([[0.2, 0.5 * np.pi, 0.4, 0.3], [0.1, -0.2, 0.3, 0.4]]), np.ones((2, 4))
    calls = [
        lambda: robot.forward_dynamics(state, torques),
        lambda: robot.compile(1, "forward_dynamics")(state, torques),
        lambda: robot.hybrid_dynamics(state, torques, prescribed=["joint2"]),
        lambda: robot.forward_dynamics_derivatives(state, torques),
    ]
    words = "joints ['joint1_rz', 'joint1_rx'] can move together there without moving any mass"
    assert_refused(*[(call, words) for call in calls], error=SingularError)
    state[0, 1] -= 1e-3  # where nine digits are left
    found = robot.forward_dynamics(state, torques)
    back = robot.inverse_dynamics(np.vstack([state, found]))
    assert np.abs(back - torques).max() < 1e-14 * np.abs(found).max()
