"""Batches of robots with loops in lanes: Newton's method of each lane, and samples that no lane can do."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from linkages import motion_of, robot_of
from oracles.mechanisms import MECHANISMS, Mechanism
from sweeps import some

from hodyn_ros import AppliedWrench, BaseMotion, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.codegen import sample_loop
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs
from hodyn_ros.engine.loops import loop_kernel
from hodyn_ros.errors import ConvergenceError
from hodyn_ros.lie.se3 import exp

pytestmark = pytest.mark.thorough

COUNT, ORDER = 69, 1  # so many that lanes are worthwhile, and that some of them stay without a sample


class Samples:
    """A way of a mechanism from its home, with other velocities at every sample."""

    def __init__(self, mechanism: Mechanism, count: int = COUNT) -> None:
        rng = np.random.default_rng(4)
        y, base = motion_of(mechanism, ORDER)
        swing = np.sin(0.05 * np.arange(count))
        self.q = y + rng.uniform(-0.5, 0.5, (count, *y.shape))
        self.q[:, 0] = y[0] * swing[:, None]
        self.efforts = rng.normal(size=(count, ORDER + 1, len(mechanism.driven)))
        self.base, self.push = None, None
        self.arrays, self.state = [self.q], [np.ascontiguousarray(self.q[:, :2])]
        if base is not None:
            turn = 0.02 * rng.normal(size=6)
            if mechanism.platform is not None and len(mechanism.platform[1]) == 3:
                turn[[0, 1, 5]] = 0.0
            poses = np.array([base.pose @ exp(x * turn) for x in swing])
            twists = base.twists * rng.uniform(0.5, 1.0, (count, 1, 1))
            self.base = BaseMotion(poses, twists)
            self.arrays += [self.base.pose, twists]
            self.state += [self.base.pose, np.ascontiguousarray(twists[:, :1])]
        self.state.append(self.efforts)
        if mechanism.platform is None and base is not None:
            self.push = rng.normal(size=(count, ORDER + 1, 6))
            self.state.append(self.push)


def sample(base: BaseMotion | None, i: int) -> BaseMotion | None:
    return None if base is None else BaseMotion(base.pose[i], base.twists[i])


def looped_of(robot: Robot) -> Any:
    return robot._need_loops("this")


@pytest.mark.parametrize(
    ("name", "lanes"),
    some(
        product(["RSSR", "palletiser", "flying cam", "planar 3-RRR"], [4, 8]),
        *(("palletiser", 4), ("flying cam", 8)),
    ),
)
def test_lanes_round_as_single_samples_do(name: str, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit from the same positions, those of the last sample of the block before."""
    monkeypatch.setattr(loop_kernel, "lanes", lambda: lanes)
    mechanism = MECHANISMS[name]()
    robot, given = robot_of(mechanism), Samples(mechanism)
    looped = looped_of(robot)
    moves = given.base is not None
    for call in ("efforts", "accelerations", "joints", "mass"):
        robot.reset()
        memory = looped.memory.copy()
        if call == "efforts":
            found = looped.efforts(LoopedInputs(given.q, given.base))
            loop, arrays = looped.effort_call(ORDER).samples(), given.arrays
        elif call in ("joints", "mass"):
            y = given.q[:, : ORDER + 1]
            arrays = [y, given.base.pose, given.base.twists[:, :ORDER]] if moves else [y]
            if call == "joints":
                found = looped.joint_motion(y, given.base)[0]
                loop = looped.joint_call(ORDER).samples()
            else:
                rows = len(robot.mass_matrix(y[0], sample(given.base, 0))[0])
                robot.reset()
                found = robot.mass_matrix(y, given.base).reshape(COUNT, -1, rows)
                loop = looped.product_call("mass_matrix", ORDER).samples()
        else:
            u = given.efforts if given.push is None else np.concatenate([given.push, given.efforts], axis=2)
            found = looped.accelerations(LoopedInputs(given.state[0], given.base), u)
            loop, arrays = looped.forward_call(ORDER).samples(), given.state
        kernel = loop.call
        assert kernel.in_lanes(kernel.batch_rows, 1.0) is not None and found.shape[0] == COUNT
        for i, arguments in enumerate(zip(*arrays)):
            positions = memory.copy()
            table = kernel.function(*map(np.ascontiguousarray, arguments), positions)
            assert table.item(kernel.defect_at) < 1.0
            np.testing.assert_array_equal(found[i], table[kernel.batch_rows])
            if i % lanes == lanes - 1:
                memory = positions
        np.testing.assert_array_equal(looped.memory, positions)


CALLS: dict[str, Callable[[Robot, Array, BaseMotion | None], Any]] = {
    "drives": lambda robot, q, base: tuple(x for x in robot.drive_state(q, base)[:3] if x is not None),
    "screws": lambda robot, q, base: robot.forward_kinematics(q[..., :2, :], base).screws,
    "all matrices": lambda robot, q, base: tuple(robot.dynamic_matrices(q[..., :3, :], base)),
    "Jacobian": lambda robot, q, base: robot.jacobian(
        q[..., :1, :], body=1, representation="hybrid", base=base
    ),
    "of matrices": lambda robot, q, base: tuple(vars(robot.matrix_derivatives(q[..., :2, :], base)).values()),
    "adaptive": lambda robot, q, base: robot.slotine_li_regressor(
        q[..., :2, :], q[..., :3, :] + 0.1, base, None if base is None else base.twists[..., :2, :]
    ),
}
"""Those of which the table of operations takes no batches, or that have ways of their own in lanes."""


@pytest.mark.parametrize(
    ("name", "order"),
    some(
        product(["palletiser", "flying cam", "planar 3-RRR", "RSSR"], [0, 1]),
        *(("palletiser", 0), ("flying cam", 1)),
    ),
)
def test_partial_derivatives_of_batches_are_those_of_the_samples(name: str, order: int) -> None:
    """All directions of many samples in lanes: also where a wrench is applied, and in several parts."""
    mechanism, count = MECHANISMS[name](), 5
    given, pull = Samples(mechanism, count), [AppliedWrench(1, np.ones((2, 6)), representation="body_fixed")]
    robot, alone = robot_of(mechanism), robot_of(mechanism)
    wrenches = None if name == "planar 3-RRR" else pull
    q, u = given.q[:, : order + 3], given.efforts[:, : order + 1]
    push = None if given.push is None else given.push[:, : order + 1]
    found = (
        robot.inverse_dynamics_derivatives(q, given.base, wrenches),
        robot.forward_dynamics_derivatives(q[:, :2], u, given.base, push, wrenches),
    )
    for i in range(count):
        base, own = sample(given.base, i), None if push is None else push[i]
        expected = (
            alone.inverse_dynamics_derivatives(q[i], base, wrenches),
            alone.forward_dynamics_derivatives(q[i, :2], u[i], base, own, wrenches),
        )
        for whole, right in zip(found, expected):
            assert whole.shape == (count, *right.shape)
            assert np.abs(whole[i] - right).max() <= 1e-11 * np.abs(right).max()


def test_partial_derivatives_name_the_sample_that_fails() -> None:
    mechanism = MECHANISMS["palletiser"]()
    given, robot = Samples(mechanism), robot_of(mechanism)
    given.q[7, 0, 0] = 1e9
    state, prescribed = (given.q[:, :2], given.efforts[:, :1]), {"prescribed": robot.driven_joints[:1]}
    for call in (
        partial(robot.inverse_dynamics_derivatives, given.q[:, :3]),
        partial(robot.hybrid_dynamics_derivatives, *state, **prescribed),
        partial(robot.hybrid_dynamics, *state, **prescribed),
    ):
        with pytest.raises(ConvergenceError) as caught:
            call()
        assert caught.value.sample == 7


@pytest.mark.parametrize("name", some(["palletiser", "flying cam", "planar 3-RRR"], "flying cam"))
@pytest.mark.parametrize("call", CALLS)
def test_batches_are_the_samples_one_by_one(call: str, name: str) -> None:
    mechanism, count = MECHANISMS[name](), 4
    if call == "of matrices" and name == "planar 3-RRR":
        mechanism = MECHANISMS["ankle"]()  # whose twist follows from no other
    if call not in ("of matrices", "adaptive"):
        count = COUNT  # which lanes are for
    robot, given = robot_of(mechanism), Samples(mechanism, count)
    found, alone = CALLS[call](robot, given.q, given.base), robot_of(mechanism)
    each = [CALLS[call](alone, given.q[i], sample(given.base, i)) for i in range(count)]
    pairs = zip(found, zip(*each)) if isinstance(found, tuple) else [(found, each)]
    for part, expected in pairs:
        assert part.shape == np.shape(expected)
        assert np.abs(part - np.array(expected)).max() <= 1e-12 * np.abs(part).max()


def test_compiled_batches_take_any_number_of_threads_and_one_kind_of_numbers() -> None:
    mechanism = MECHANISMS["planar 3-RRR"]()
    given, robot = Samples(mechanism, 3), robot_of(mechanism)
    arrays = given.arrays[1:]
    batch = robot.compile_batch(ORDER)
    found = batch(*arrays)
    out = np.empty_like(found)
    robot.reset()
    assert batch(*arrays, out=out, threads=2) is out
    np.testing.assert_array_equal(found, out)


def test_matrices_and_motion_name_the_sample_that_nothing_can_do() -> None:
    mechanism = MECHANISMS["slider-crank"]()
    given = Samples(mechanism)
    given.q[50, 0] = 1e9
    for call in ("screws", "drives", "all matrices"):
        with pytest.raises(ConvergenceError) as caught:
            CALLS[call](robot_of(mechanism), given.q, None)
        assert caught.value.sample == 50


@pytest.mark.parametrize("name", ["four-bar", "ankle"])
def test_samples_that_lanes_cannot_do_are_computed_one_by_one(name: str) -> None:
    """Where the motion jumps; what follows goes on in lanes."""
    mechanism = MECHANISMS[name]()
    given = Samples(mechanism, 3 * COUNT)
    given.q[30:, 0] += 0.8 if name == "four-bar" else 0.0
    if given.base is not None:
        shift = exp(np.array([0.0, 0.0, 0.9, 0.0, 0.0, 0.0]))
        moved = given.base.pose.copy()
        moved[100:] = moved[100:] @ shift
        given.base = BaseMotion(moved, given.base.twists)
    found = robot_of(mechanism).inverse_dynamics(given.q, given.base)
    alone, each = robot_of(mechanism), []
    for i in range(3 * COUNT):
        base = None if given.base is None else BaseMotion(given.base.pose[i], given.base.twists[i])
        each.append(alone.inverse_dynamics(given.q[i], base))
    pairs = zip(found, zip(*each)) if given.base is not None else [(found, each)]
    for part, expected in pairs:
        scale = np.abs(part).max()
        assert np.abs(part - np.array(expected)).max() < 1e-13 * scale


def test_loops_that_open_are_named_with_their_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = MECHANISMS["slider-crank"]()
    given = Samples(mechanism)
    given.q[50, 0] = 1e9
    for least in (1, 10 * COUNT):  # in lanes, and one by one
        monkeypatch.setattr(sample_loop, "_WORTHWHILE", least)
        robot = robot_of(mechanism)
        with pytest.raises(ConvergenceError) as caught:
            robot.inverse_dynamics(given.q)
        assert caught.value.sample == 50
        now = looped_of(robot).known.y
        np.testing.assert_allclose(now, given.q[49, 0], atol=1e-12)  # the last success


def test_forward_dynamics_of_a_platform_on_limbs_in_lanes() -> None:
    """The motions that efforts stand for come back, of samples and of each alone."""
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    rng, order, count = np.random.default_rng(4), 1, 70
    closure, home = robot.closure, robot.home[1]
    assert closure is not None and home is not None
    along = closure.directions.T
    shifts, rates = rng.uniform(-0.05, 0.05, (count, 2)), rng.uniform(-2.0, 2.0, (count, order + 2, 2))
    poses = np.array([home @ exp(shift @ along) for shift in shifts])
    base = BaseMotion(poses, rates @ along, representation="body_fixed").in_representation("spatial")
    efforts: Any = robot.inverse_dynamics(None, base)
    still = BaseMotion(base.pose, base.twists[:, :1])
    found, _ = robot.forward_dynamics(None, efforts, still)
    for k in range(order + 1):
        scale = np.abs(base.twists[:, 1 + k]).max()
        assert np.abs(found[:, k] - base.twists[:, 1 + k]).max() < 1e-11 * scale
    assert isinstance(looped_of(robot).forward_call(order).samples(), sample_loop.SampleLoop)
    for i in range(0, count, 10):
        one = BaseMotion(still.pose[i], still.twists[i])
        alone, _ = robot.forward_dynamics(None, efforts[i], one)
        assert np.abs(alone - found[i]).max() < 1e-11 * np.abs(alone).max()
