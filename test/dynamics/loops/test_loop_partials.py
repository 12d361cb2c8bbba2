"""Partial derivatives of dynamics with loops, under wrenches, against differences of the calls themselves."""

from collections.abc import Callable
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from linkages import motion_of, robot_of, three_rps
from oracles import parallel_robots
from oracles.mechanisms import ankle, ankle_with_rods, flying_cam, planar_3rrr, rssr
from oracles.motions import random_stack
from sweeps import some

from hodyn_ros import AppliedWrench, BaseMotion, ParallelRobot, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.lie.motion import wrenches_to_world
from hodyn_ros.lie.se3 import ad, exp, inverse, log
from hodyn_ros.model.frames import from_rpy

pytestmark = pytest.mark.thorough

ORDER = 1


def slope(of: Callable[[float], Array], step: float = 0.005) -> Array:
    """Return the derivative at zero by differences of twelfth order."""
    weights = (6.0 / 7.0, -15.0 / 56.0, 5.0 / 63.0, -1.0 / 56.0, 1.0 / 385.0, -1.0 / 5544.0)
    parts = [w * (of(i * step) - of(-i * step)) for i, w in enumerate(weights, 1)]
    total: Array = sum(parts[1:], start=parts[0]) / step
    return total


class Case:
    """A robot in motion under wrenches, in directions beside which it is looked at."""

    def __init__(self, robot: Robot, y: Array, base: BaseMotion | None, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        assert robot.closure is not None
        self.robot, self.closure, self.base = robot, robot.closure, base
        self.state = y[:2] if y.shape[1] else None
        self.efforts = rng.normal(size=(ORDER + 1, len(robot.driven_joints)))
        self.push = rng.normal(size=(ORDER + 1, 6)) if self.closure.base_prescribed else None
        bodies = robot.tree.body_names
        self.loads = [
            AppliedWrench(bodies[-1], rng.normal(size=(ORDER + 1, 6))),
            AppliedWrench(bodies[-2], rng.normal(size=(ORDER + 1, 6)), representation="body_fixed"),
        ]
        self.motion = rng.normal(size=(ORDER + 1, 6))  # of a base that is held
        self.directions = rng.normal(
            size=(ORDER + 3, max(self.closure.n_efforts, self.closure.n_coordinates))
        )

    def moved(self, step: float) -> tuple[Any, ...]:
        """Return state, values, base and wrench, all changed."""
        closure, change = self.closure, step * self.directions
        first, n = 6 if closure.base_prescribed else 0, len(closure.joints)
        state, base, push = self.state, self.base, self.push
        if state is not None:
            state = state + change[:2, first : first + n]
        if base is not None:
            part = change[:2, :6] if first else change[:2, n : closure.n_coordinates]
            along = part @ closure.directions.T
            if push is not None:
                push = push + wrenches_to_world(base.pose, self.body_twists, change[2:, :6])
            base = BaseMotion(base.pose @ exp(along[0]), base.twists + along[1], representation="body_fixed")
            base = settled(self.robot, base) if self.drifts else base
        return state, self.efforts + change[2:, first:], base, push

    @property
    def drifts(self) -> bool:
        """Whether components of the platform's motion follow from others as the pose has it."""
        platform = self.closure.platform
        return platform is not None and platform.twists is None and len(platform.rows) < 6

    @cached_property
    def body_twists(self) -> Array:
        """The body-fixed twists of the base that follow."""
        assert self.base is not None
        found: Any = self.robot.forward_dynamics(
            self.state, self.efforts, self.base, self.push, wrenches=self.loads
        )
        return np.concatenate([self.base.twists[:1], found.base])

    def accelerations(self, step: float) -> Array:
        state, values, base, push = self.moved(step)
        found: Any = self.robot.forward_dynamics(state, values, base, push, wrenches=self.loads)
        if base is None:
            return np.asarray(found)
        twists, joints = found
        rows = np.linalg.lstsq(self.closure.directions, twists.T, rcond=None)[0].T
        return np.concatenate([rows, joints] if self.closure.base_prescribed else [joints, rows], axis=1)

    def left_out(self, step: float, prescribed: list[str], held: bool) -> Array:
        """Return what hybrid dynamics finds, of a base that is held its wrench."""
        state, values, base, push = self.moved(step)
        if held and base is not None:
            base, push = self.held(base, step * self.directions[2:, :6]), None
        found: Any = self.robot.hybrid_dynamics(
            state, values, base, push, prescribed=prescribed, wrenches=self.loads, prescribe_base=held
        )
        if base is None or not self.closure.base_prescribed:
            return np.asarray(found if base is None else found.joints)
        return np.concatenate(
            [base.wrenches_in_body(found.base) if held else found.base, found.joints], axis=1
        )

    def held(self, base: BaseMotion, change: Array) -> BaseMotion:
        """Return the motion of a base that is prescribed."""
        return BaseMotion(
            base.pose, np.concatenate([base.twists, self.motion + change]), representation="body_fixed"
        )


def settled(robot: Robot, base: BaseMotion) -> BaseMotion:
    """Return the motion that a 3-RPS has, with the rows given of the twist in the axes of its pose."""
    there = robot.forward_kinematics(None, base).pose_of("body6")
    found = robot.forward_kinematics(
        None, BaseMotion(there, base.twists, representation="body_fixed"), "body_fixed"
    )
    return BaseMotion(found.pose_of("body6"), found.twists_of("body6"), representation="body_fixed")


def case_of(name: str) -> Case:
    if name == "3-RPS":
        robot = three_rps()
        pose = from_rpy(np.array([0.0, 0.0, 0.62]), np.array([0.05, -0.04, 0.0]))
        base = BaseMotion(pose, random_stack(4, 1, 6), representation="body_fixed")
        return Case(robot, np.zeros((2, 0)), settled(robot, base))
    if name == "RRR" or name == "gough_stewart_6ups":
        if name == "RRR":
            robot = ParallelRobot.from_screws(**parallel_robots.planar_3rrr(0.08).arguments())
        else:
            robot = Robot.load(share.find("config", f"{name}.yaml"))
        pose, closure = robot.home[1], robot.closure
        assert pose is not None and closure is not None
        along = closure.directions
        pose = pose @ exp(along @ np.linspace(0.02, 0.05, along.shape[1]))
        twists = 0.3 * random_stack(5, 1, 6) @ along @ along.T
        return Case(robot, np.zeros((2, 0)), BaseMotion(pose, twists, representation="body_fixed"))
    mechanism = {
        "ankle": ankle,
        "flying cam": flying_cam,
        "hinged": lambda: planar_3rrr(True),
        "rssr": rssr,
        "tower": ankle_with_rods,
    }[name]()
    y, base = motion_of(mechanism, 0)
    if base is not None:
        base = BaseMotion(
            base.pose, base.in_representation("body_fixed").twists[:1], representation="body_fixed"
        )
    return Case(robot_of(mechanism), y, base)


def assert_exact(found: Array, case: Case, of: Callable[[float], Array]) -> None:
    """Compare derivatives by order with those in one direction that changes everything."""
    expected, rows = slope(of), case.directions.copy()
    rows[:2, case.closure.n_coordinates :] = 0.0
    assert not found[:, :2, :, case.closure.n_coordinates :].any()
    shares = np.einsum("rkij,kj->rki", found, rows)
    scale = np.abs(shares).max(axis=(1, 2))[:, None]
    assert (np.abs(shares.sum(axis=1) - expected) < 1e-10 * scale).all()


HELD = ("hinged", False), ("flying cam", True)
FEW = "hinged", "flying cam", "3-RPS"


NAMES = [*FEW, "rssr", "RRR", "ankle", "tower", "gough_stewart_6ups"]


@pytest.mark.parametrize(
    ("name", "compiled"), some(product(NAMES, (True, False)), ("flying cam", True), ("3-RPS", False))
)
def test_of_forward_dynamics(name: str, compiled: bool, with_numbers: pytest.MonkeyPatch) -> None:
    """Of accelerations and their derivatives, with redundant drives and with wrenches on a base as well."""
    if compiled:
        with_numbers.undo()
    case = case_of(name)
    closure, arguments = case.closure, (case.state, case.efforts, case.base, case.push)
    found = case.robot.forward_dynamics_derivatives(*arguments, wrenches=case.loads)
    assert found.shape == (ORDER + 1, ORDER + 3, closure.n_coordinates, closure.n_efforts)
    assert_exact(found, case, case.accelerations)
    if not case.drifts:
        assert_linearised(case)


def assert_linearised(case: Case) -> None:
    """A and B are the first of the partial derivatives, beside how a displacement e of a pose changes."""
    robot, closure, m = case.robot, case.closure, case.closure.n_coordinates
    by = robot.forward_dynamics_derivatives(case.state, case.efforts[:1], case.base)[0]
    A, B = robot.linearised_dynamics(case.state, case.efforts[0], case.base)
    expected = np.concatenate([by[0][:, :m], by[1][:, :m]], axis=1)  # redundant drives have more columns
    assert np.abs(A[m:] - expected).max() < 1e-12 * np.abs(expected).max()
    drives = by[2][:, closure.n_efforts - len(case.efforts[0]) :]
    assert np.abs(B[m:] - drives).max() < 1e-12 * np.abs(drives).max()
    np.testing.assert_array_equal(A[:m, m:], np.eye(m))
    if case.base is not None:  # e' = dw - [w, e]
        rows = slice(0, 6) if closure.base_prescribed else slice(len(closure.joints), m)
        turned = np.linalg.lstsq(closure.directions, ad(case.base.twists[0]) @ closure.directions, rcond=None)
        np.testing.assert_allclose(A[rows, rows], -turned[0], atol=1e-14)


@pytest.mark.parametrize(
    ("name", "held"), some([*HELD, ("RRR", False), ("ankle", True), ("ankle", False)], *HELD)
)
def test_of_hybrid_dynamics(name: str, held: bool) -> None:
    case = case_of(name)
    prescribed = list(case.robot.driven_joints[1:2])
    base, push = case.base, case.push
    if held and base is not None:
        base, push = case.held(base, np.zeros(6)), None
    found = case.robot.hybrid_dynamics_derivatives(
        case.state, case.efforts, base, push, prescribed=prescribed, wrenches=case.loads, prescribe_base=held
    )
    assert_exact(found, case, lambda step: case.left_out(step, prescribed, held))


@pytest.mark.usefixtures("with_numbers")
def test_of_inverse_dynamics_under_wrenches_they_turn_those_of_forward_dynamics_around() -> None:
    case = case_of("rssr")
    q = np.concatenate(
        [case.state, case.robot.forward_dynamics(case.state, case.efforts, wrenches=case.loads)]
    )
    by_motion = case.robot.inverse_dynamics_derivatives(q, wrenches=case.loads)
    by_efforts = case.robot.forward_dynamics_derivatives(case.state, case.efforts, wrenches=case.loads)
    for k in range(ORDER + 3):  # efforts that follow from the motion that follows from efforts
        for r in range(ORDER + 1):
            through = sum(by_motion[r, 2 + i] @ by_efforts[i, k] for i in range(r + 1))
            through = through + by_motion[r, k] if k < 2 else through
            expected = np.eye(*through.shape) * (r == k - 2)
            assert np.abs(through - expected).max() < 1e-10 * np.abs(by_motion[r]).max()


def computed(case: Case) -> list[Array]:
    """Return partial derivatives at order 0, through the callables that `compile` returns."""
    robot, base = case.robot, case.base
    state = np.zeros((2, 0)) if case.state is None else case.state
    q = np.concatenate([state, state[:1]])
    twist, moving = [], []
    if base is not None:
        now = base.in_representation("spatial")
        twist = [now.pose, now.twists]
        moving = [now.pose, np.concatenate([now.twists, 0.5 * now.twists])]
    pushes = [] if case.push is None else [case.push[:1]]
    inverse = robot.compile(0, "inverse_dynamics_derivatives")(q, *moving)
    forward = robot.compile(0, "forward_dynamics_derivatives")(state, *twist, case.efforts[:1], *pushes)
    named = robot.forward_dynamics_derivatives(
        case.state, case.efforts[:1], base, None if case.push is None else case.push[:1]
    )
    assert np.abs(forward - named.reshape(forward.shape)).max() < 1e-12 * np.abs(forward).max()
    return [inverse, forward]


# more drives, a base, platforms
@pytest.mark.parametrize("name", some([*FEW, "RRR"], *FEW))
def test_compiled_code_finds_what_numbers_with_derivatives_do(
    name: str, with_numbers: pytest.MonkeyPatch
) -> None:
    """All directions in lanes, against `Dual` in the same recursions."""
    expected = computed(case_of(name))
    with_numbers.undo()
    case = case_of(name)
    found = computed(case)
    calls = case.robot._need_loops("this").calls
    assert sum(key[0] == "partial_call" for key in calls) == 2
    for one, other in zip(found, expected):
        assert np.abs(one - other).max() < 1e-12 * np.abs(other).max()


def test_compiled_calls_go_on_from_where_the_loops_were_closed_last() -> None:
    """Two turns of a half radian apart, which code refuses as it may change the branch, and back."""
    robot = Robot.load(share.find("config", "palletiser.yaml"))
    rng, home = np.random.default_rng(1), robot.home[0]
    motions = [rng.uniform(-0.3, 0.3, (4, robot.n_coordinates)) for _ in range(2)]
    for q, share_of in zip(motions, (0.0, -0.5)):
        q[0] = home + np.array([0.1, 1.0, 1.0, 0.1]) * share_of
    efforts = [robot.inverse_dynamics(q) for q in motions]
    robot.reset()
    for _ in range(2):  # the first call of a shape makes what the next ones are
        for q, u in zip(motions, efforts):
            other = Robot.load(share.find("config", "palletiser.yaml"))
            assert other.inverse_dynamics(q).shape == u.shape
            for found, expected in (
                (robot.inverse_dynamics_derivatives(q), other.inverse_dynamics_derivatives(q)),
                (robot.forward_dynamics_derivatives(q[:2], u), other.forward_dynamics_derivatives(q[:2], u)),
            ):
                assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()


def test_of_batches() -> None:
    """Of hybrid dynamics, the base and its wrench the same for all samples."""
    case = case_of("flying cam")
    robot, base, push = case.robot, case.base, case.push
    assert case.state is not None and base is not None and push is not None
    states, efforts = (np.array([one, 1.1 * one, 0.9 * one]) for one in (case.state, case.efforts[:1]))
    prescribed = list(robot.driven_joints[1:2])
    hybrid = robot.hybrid_dynamics(states, efforts, base, push[:1], prescribed=prescribed)
    for i in range(3):
        alone = robot.hybrid_dynamics(states[i], efforts[i], base, push[:1], prescribed=prescribed)
        for many, expected in zip(hybrid, alone):
            assert np.abs(many[i] - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["palletiser", "planar_3rrr"])
def test_samples_of_a_batch_that_lie_far_apart(name: str) -> None:
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    rng, (home, pose) = np.random.default_rng(3), robot.home
    q = 0.3 * rng.normal(size=(6, 3, len(home)))
    q[:, 0] = home + np.array([[0.0], [0.1], [0.8], [0.7], [0.1], [0.0]])
    base = still = None
    if pose is not None:
        twists = np.zeros((6, 2, 6))
        twists[..., 3:5] = 0.3 * rng.normal(size=(6, 2, 2))
        poses = np.array([pose] * 6)
        base, still = BaseMotion(poses, twists), BaseMotion(poses, twists[:, :1])
    efforts = rng.normal(size=(6, 1, len(robot.driven_joints)))
    inverse = robot.inverse_dynamics_derivatives(q, base)
    forward = robot.forward_dynamics_derivatives(q[:, :2], efforts, still)
    for i in range(6):
        moving = None if base is None else BaseMotion(pose, base.twists[i])
        at = None if base is None else BaseMotion(pose, base.twists[i, :1])
        for found, expected in (
            (inverse[i], robot.inverse_dynamics_derivatives(q[i], moving)),
            (forward[i], robot.forward_dynamics_derivatives(q[i, :2], efforts[i], at)),
        ):
            assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()


@pytest.mark.usefixtures("either_way")
class TestPlatformsThatDrift:
    """Of a 3-RPS tilts and height are coordinates; turn and shifts that come with them follow."""

    def test_displacements_change_as_neighbouring_motions_do(self) -> None:
        case = case_of("3-RPS")
        base = case.base
        assert base is not None
        change = case.directions[:2, :3].ravel()
        case.robot.reset()
        A, B = case.robot.linearised_dynamics(None, case.efforts[0], base)
        case.robot.reset()
        whole = case.robot.forward_dynamics_derivatives(None, case.efforts[:1], base)[0]
        np.testing.assert_array_equal(A[3:], np.concatenate([whole[0], whole[1]], axis=1))
        np.testing.assert_array_equal(B[3:], whole[2])

        def rate(step: float) -> Array:
            _, _, beside, _ = case.moved(step)

            def apart(time: float) -> Array:
                here, there = (one.pose @ exp(time * one.twists[0]) for one in (base, beside))
                return log(inverse(here) @ there)

            return slope(apart)

        assert np.abs(slope(rate)[[0, 1, 5]] - A[:3] @ change).max() < 1e-10 * np.abs(change).max()

    @pytest.mark.parametrize("floating", [False, True])
    def test_where_the_rest_of_a_pose_is_given_otherwise(self, floating: bool) -> None:
        robot = three_rps(floating)
        pose = from_rpy(np.array([0.02, 0.01, 0.64]), np.array([0.05, -0.04, 0.03]))
        twists = random_stack(7, 3, 6)
        found = robot.inverse_dynamics_derivatives(
            None, BaseMotion(pose, twists, representation="body_fixed")
        )

        def efforts(along: Array, step: float) -> Array:
            return robot.inverse_dynamics(
                None, BaseMotion(pose @ exp(step * along), twists, representation="body_fixed")
            )

        for i, row in enumerate((0, 1, 5)):
            error = np.abs(slope(partial(efforts, np.eye(6)[row])) - found[:, 0, :, i]).max(axis=1)
            assert (error < 1e-10 * np.abs(found[:, 0]).max(axis=(1, 2))).all()

    def test_hung_from_a_floating_base_it_is_the_same_robot(self) -> None:
        case, other = case_of("3-RPS"), three_rps(floating=True)
        base, robot = case.base, case.robot
        assert base is not None
        for found, expected in zip(
            *(one.linearised_dynamics(None, case.efforts[0], base) for one in (other, robot))
        ):
            assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
        moving = BaseMotion(base.pose, random_stack(7, 2, 6))
        loads = [AppliedWrench("body6", random_stack(8, 1, 6), representation="body_fixed")]
        found, expected = (
            one.inverse_dynamics_derivatives(None, moving, wrenches=loads) for one in (other, robot)
        )
        assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()
