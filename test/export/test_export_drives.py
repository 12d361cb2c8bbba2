"""Drives of every kind exported as C, with and without memory, alone and in one call with the dynamics."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drive_specs import SPECS, TABLE, TABULATED
from exported_code import Array, assert_rows_close, call, compiled, needs_c
from oracles.motions import random_stack
from oracles.random_trees import random_tree
from refusals import refused
from sweeps import some

from hodyn_ros import InputError, Robot, share
from hodyn_ros.dynamics.rotor_coupling import RotorCoupling
from hodyn_ros.export import c_source
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.model.drive_spec import DriveSpec, RotorSpec

pytestmark = pytest.mark.thorough

OK, NEAR_SINGULAR, FAILED = range(3)
PERIOD = 1e-3


def driven(specs: list[DriveSpec]) -> Robot:
    """Return a tree of turning joints with these drives."""
    tree = random_tree(np.random.default_rng(len(specs)), len(specs), kinds=("revolute",))
    model = Robot.from_screws(**tree.arguments()).model
    return Robot(model, drives=specs)


def palletiser() -> Robot:
    """Return the shipped one with a damped spring, and a spring that can be asked for too much."""
    robot = Robot.load(share.find("config", "palletiser.yaml"))
    assert robot.drive_train is not None
    wide = tuple(tuple(1e3 * np.array(row) / scale) for row, scale in zip(TABLE, (1.0, 1e3)))
    table = replace(TABULATED, motor_inertia=robot.drive_train.specs[1].motor_inertia, spring_table=wide)
    specs = [replace(robot.drive_train.specs[0], spring_damping=300.0), table, *robot.drive_train.specs[2:]]
    return robot.with_drives(specs)


def stacks(n: int, count: int = 12) -> tuple[Array, Array]:
    """Return motions (count, 5, n) and torques (count, 3, n)."""
    motion = np.array([random_stack(seed, 5, n) for seed in range(count)])
    return motion, np.array([10.0 * random_stack(100 + seed, 3, n) for seed in range(count)])


@needs_c
@pytest.mark.parametrize("kind", some(SPECS, "rigid", "mixed"))  # the latter has all springs
def test_every_kind(kind: str, tmp_path: Path) -> None:
    robot = driven(SPECS[kind])
    library = compiled(c_source(robot, ExportRequest(2, "robot")), tmp_path)
    assert library.robot_self_test() <= 1e-11
    train = robot.drive_train
    assert train is not None
    for q, tau in zip(*stacks(robot.n_coordinates)):
        expected = train.feedforward(q, tau, deflection=np.full(train.n_joints, np.nan))
        rows = 5 if not train.elastic.any() else 3
        position, effort = np.empty((rows, train.n_motors)), np.empty((rows - 2, train.n_motors))
        call(library.robot_motor_feedforward, q, tau, position, effort)
        assert_rows_close(position, expected.position)
        assert_rows_close(effort, expected.effort)


@needs_c
@pytest.mark.parametrize("kind", some(["tabulated", "two motors", "mixed"], "mixed"))
def test_what_springs_cannot_give(kind: str, tmp_path: Path) -> None:
    robot = driven(SPECS[kind])
    library = compiled(c_source(robot, ExportRequest(2, "robot")), tmp_path)
    train = robot.drive_train
    assert train is not None
    (q, *_), (tau, *_) = stacks(robot.n_coordinates, 1)
    position, effort = np.zeros((3, train.n_motors)), np.zeros((1, train.n_motors))
    loads = [1e5 * np.ones_like(tau), np.where(np.arange(tau.shape[1]) == 1, np.nan, tau)]
    for load in loads:
        assert call(library.robot_motor_feedforward, q, load, position, effort) == FAILED
        assert not position.any() and not effort.any()
    with pytest.raises(InputError):
        train.feedforward(q, loads[0])
    assert call(library.robot_motor_feedforward, q, tau, position, effort) == OK


@needs_c
@pytest.mark.parametrize("kind", some(["damped", "mixed"], "mixed"))
def test_the_memory_of_damped_springs(kind: str, tmp_path: Path) -> None:
    robot = driven(SPECS[kind])
    library = compiled(c_source(robot, ExportRequest(2, "robot", period=PERIOD)), tmp_path)
    assert library.robot_self_test() <= 1e-11
    train = robot.drive_train
    assert train is not None
    q, tau = stacks(robot.n_coordinates)
    expected = train.follow(q, tau, PERIOD).motors
    memory = np.full(train.n_joints + 1, np.nan)  # as long as the struct at least
    call(library.robot_home, memory)
    for i, (motion, load) in enumerate(zip(q, tau)):
        position, effort = np.zeros(expected.position.shape[1:]), np.zeros(expected.effort.shape[1:])
        kept = memory.tobytes()
        for spoiled in (np.nan * load, load + np.inf):
            assert call(library.robot_motor_feedforward, memory, motion, spoiled, position, effort) == FAILED
        assert memory.tobytes() == kept and not position.any() and not effort.any()
        assert call(library.robot_motor_feedforward, memory, motion, load, position, effort) == OK
        assert_rows_close(position, expected.position[i])
        assert_rows_close(effort, expected.effort[i])


@needs_c
def test_one_call_of_a_robot_with_loops_and_every_memory(tmp_path: Path) -> None:
    """Positions and deflections move on together, or neither does."""
    robot = palletiser()
    code = c_source(robot, ExportRequest(2, "robot", period=PERIOD))
    library = compiled(code, tmp_path)
    assert library.robot_self_test() <= 1e-11
    train, closure = robot.drive_train, robot.closure
    assert train is not None and closure is not None
    memory = np.full(len(closure.leading) + 3, np.nan)
    call(library.robot_home, memory)
    rng = np.random.default_rng(0)
    q = np.cumsum(rng.uniform(-0.02, 0.02, (10, 5, 4)), axis=0)
    states = [robot.drive_state(one) for one in q]
    motion, efforts = (np.array([getattr(s, name) for s in states]) for name in ("motion", "efforts"))
    expected = train.follow(motion, efforts, PERIOD).motors
    for i, one in enumerate(q):
        results = [np.zeros(x.shape[1:]) for x in (efforts, motion, expected.position, expected.effort)]
        kept = memory.tobytes()
        heavy = one.copy()
        heavy[2] += 1e7  # the dynamics give efforts, and a spring cannot
        assert call(library.robot_feedforward, memory, heavy, *results) == FAILED
        assert memory.tobytes() == kept and not any(x.any() for x in results)
        assert call(library.robot_feedforward, memory, one, *results) in (OK, NEAR_SINGULAR)
        for found, right in zip(results, (efforts, motion, expected.position, expected.effort)):
            np.testing.assert_allclose(found, right[i], rtol=0.0, atol=1e-11 * np.abs(right[i]).max())


def test_a_period_that_nothing_needs_is_noted() -> None:
    code = c_source(driven(SPECS["linear"]), ExportRequest(2, "robot", period=PERIOD))
    assert code.notes == ("the period counts for nothing: no damped spring remembers longer than that.",)
    assert "robot_memory" not in code.header


@pytest.mark.parametrize("period", (0.0, -1.0, np.inf, np.nan))
def test_periods_that_make_no_sense_are_refused(period: float) -> None:
    robot = driven(SPECS["damped"])
    refused(lambda: c_source(robot, ExportRequest(2, period=period)), "the period must be positive")


class TestRotorsThatTurnWithTheLinks:
    """Torques and motors in one function: what a joint holds depends on the motors beyond it."""

    def robot(self, **others: object) -> Robot:
        springs = DriveSpec(900.0, 0.1, gear_ratio=5.0)
        robot = driven([springs] * 3)
        names = robot.tree.body_names
        carried = replace(springs, rotor=RotorSpec(names[0], (0.6, 0.0, 0.8)), **others)  # type: ignore[arg-type]
        return robot.with_drives([springs, carried, springs])

    @needs_c
    @pytest.mark.parametrize("order", some([2, 3], 2))
    def test_the_same_numbers(self, order: int, tmp_path: Path) -> None:
        robot = self.robot()
        library = compiled(c_source(robot, ExportRequest(order, "robot")), tmp_path)
        assert library.robot_self_test() <= 1e-11
        assert not hasattr(library, "robot_motor_feedforward")
        rotors = RotorCoupling(robot)
        for seed in range(4):
            q = random_stack(seed, int(rotors.needed_orders(order).max()) + 3, 3)
            expected, motors = rotors.feedforward(q, order)
            tau, position = np.zeros((2, order + 1, 3))
            effort = np.zeros((order - 1, 3))
            call(library.robot_feedforward, q, tau, position, effort)
            for found, right in ((tau, expected), (position, motors.position), (effort, motors.effort)):
                assert_rows_close(found, right)

    @needs_c
    def test_what_springs_cannot_give(self, tmp_path: Path) -> None:
        table = replace(TABULATED, motor_inertia=0.1, gear_ratio=5.0)
        robot = self.robot(stiffness=table.stiffness, spring_table=table.spring_table)
        library = compiled(c_source(robot, ExportRequest(2, "robot")), tmp_path)
        assert library.robot_self_test() <= 1e-11
        q = 1e6 * random_stack(1, int(RotorCoupling(robot).needed_orders(2).max()) + 3, 3)
        results = [np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((1, 3))]
        assert call(library.robot_feedforward, q, *results) == FAILED
        assert not any(values.any() for values in results)

    def test_what_is_left_out_is_told(self) -> None:
        robot = self.robot(spring_damping=5.0)
        assert "without what rotors do" in c_source(robot, ExportRequest(2, "robot")).notes[0]
        assert "need order 2" in c_source(robot, ExportRequest(1, "robot")).notes[0]
        refused(lambda: c_source(robot, ExportRequest(2, "robot", period=PERIOD)), "springs do not remember")
