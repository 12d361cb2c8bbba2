"""From chunks to commands for drives with position, velocity, gains and torque; whatever fails ends well."""

from dataclasses import replace
from functools import cache, partial
from threading import Thread
from typing import NamedTuple

import numpy as np
import pytest
from refusals import like, refused

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.errors import FigureWarning
from hodyn_ros.guard.guard_config import End, Fault, GuardConfig, State
from hodyn_ros.planning.streams.stream_config import Mode, PointsError, StreamConfig
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.streaming import (
    ChunkBounds,
    ChunkError,
    ChunkExecutor,
    ChunkFault,
    DriveCommand,
    ExecutorConfig,
)

pytestmark = pytest.mark.thorough

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
PERIOD = 0.002
_SAMPLES = 2  # of a drive between two commands
QUICK = GuardConfig(measured=True, settle=0.0, fade=0.02, lead=0.5 * PERIOD)


@cache
def panda(elastic: bool = True) -> Robot:
    robot = Robot.load(share.find("config", "panda.yaml"))
    return robot if elastic else robot.with_drives(None)


def executor(guard: GuardConfig = QUICK, elastic: bool = True, mode: Mode = Mode.TRACK) -> ChunkExecutor:
    gains = MotorGains.of_drives(panda().require_drives(), 30.0, 1.0)
    bounds = ChunkBounds(0.02, np.full(7, 0.01))
    return ChunkExecutor(panda(elastic), gains, bounds, ExecutorConfig(StreamConfig(mode), guard))


def chunk(now: float, off: float = 0.0) -> tuple[Array, Array]:
    """Return what a policy wants from now on: all joints swing, from rest at 0.1 s."""
    times = now + 0.02 * np.arange(50)
    u = np.clip(times - 0.1, 0.0, 1.0)[:, None]
    return times, HOME + off + 0.2 * u**3 * (10.0 - 15.0 * u + 6.0 * u * u) * np.sin(2.0 * times)[:, None]


class Cycle(NamedTuple):
    now: float
    command: DriveCommand
    links: Array
    wanted: Array | None


class Arm:
    """The elastic Panda with such drives, held by brakes until there are commands."""

    def __init__(self, follower: ChunkExecutor) -> None:
        self.follower, self.now = follower, 0.0
        self.plant = RobotSimulation(panda(), HOME)
        self.cycles: list[Cycle] = []

    def run(self, duration: float, chunks: bool = True, measured: bool = True) -> list[Cycle]:
        """Go on for a time [s], with a chunk every tenth of a second; return what happened."""
        first = len(self.cycles)
        for _ in range(round(duration / PERIOD)):
            now, state = self.now, self.plant.measurement
            if measured:
                self.follower.measure(now, state.motor_position, state.motor_velocity)
            if chunks and round(now / PERIOD) % 50 == 25:
                self.follower.take(*chunk(now, 2e-3 * np.sin(70.0 * now)), now)
            command = self.follower.command(now)
            self.now += PERIOD
            if command is None:
                continue
            held = self.follower.guard.state in (State.JOINING, State.FOLLOWING)
            wanted = self.follower.desired(now, 5) if held else None
            self.cycles.append(Cycle(now, command, state.position, wanted))
            for _ in range(_SAMPLES):
                state = self.plant.measurement
                pull = command.kp * (command.position - state.motor_position)
                brake = command.kd * (command.velocity - state.motor_velocity)
                self.plant.advance(PERIOD / _SAMPLES, command.torque + pull + brake)
        return self.cycles[first:]


def test_an_elastic_arm_follows_chunks_at_500_hz() -> None:
    arm = Arm(executor())
    cycles = arm.run(1.2)
    assert arm.follower.following
    wanted = np.array([each.wanted for each in cycles])
    links = np.array([each.links for each in cycles])
    moved = np.abs(wanted[:, 0] - HOME).max()
    assert moved > 0.1
    assert np.abs(links - wanted[:, 0])[50:].max() < 2e-3 * moved
    # continuous to the snap: what it changes by is what derivative 5 says
    change = np.diff(wanted[:, 4], axis=0)
    assert np.abs(change).max() <= 1.5 * PERIOD * np.abs(wanted[:, 5]).max()
    assert (np.abs(wanted[:, 1]) <= panda().limits.velocity).all()
    last = cycles[-1].command
    np.testing.assert_array_equal(last.kp, arm.follower._gains.proportional)
    np.testing.assert_array_equal(last.kd, arm.follower._gains.derivative)


def test_without_drives_of_its_own_a_robot_is_taken_for_stiff() -> None:
    with pytest.warns(FigureWarning, match="has no drives: its joints are taken for stiff"):
        follower = executor(elastic=False)
    for k in range(30):
        now = PERIOD * k
        follower.measure(now, HOME)
        command = follower.command(now)
    assert follower.following
    np.testing.assert_array_equal(command.position, HOME)
    weight = panda(False).gravity_torque(HOME[None])[0]
    np.testing.assert_allclose(command.torque, weight, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", [Mode.TRACK, Mode.APPROXIMATE])
def test_a_chunk_with_a_fault_changes_nothing(mode: Mode) -> None:
    arm = Arm(executor(mode=mode))
    arm.run(0.3)
    ahead = arm.now + 0.01 * np.arange(100)
    before = [arm.follower.desired(t, 4) for t in ahead]
    times, points = chunk(arm.now)
    points[20, 3] += 0.2
    refused(lambda: arm.follower.take(times, points, arm.now), like(ChunkError, fault=ChunkFault.JUMP))
    assert arm.follower.check.faults[ChunkFault.JUMP] == 1
    refused(lambda: arm.follower.take(times, points[:, :6], arm.now), "of each of the 7 joints", PointsError)
    np.testing.assert_array_equal([arm.follower.desired(t, 4) for t in ahead], before)
    arm.run(1.3, chunks=False)  # it comes to rest at the last point, and is held
    assert arm.follower.following
    np.testing.assert_allclose(arm.follower.desired(arm.now, 4)[1:], 0.0, atol=1e-6)
    np.testing.assert_allclose(arm.plant.measurement.position, arm.follower.desired(arm.now)[0], atol=5e-5)


def test_a_change_of_mind_is_followed() -> None:
    arm = Arm(executor())
    arm.run(0.3)
    times, points = chunk(arm.now, 0.3)
    taken = arm.follower.take(times, points, arm.now)
    assert taken is not None and taken.followed and taken.usage <= 1.0
    arm.run(0.5, chunks=False)
    np.testing.assert_allclose(arm.follower.desired(arm.now)[0], chunk(arm.now, 0.3)[1][0], atol=0.02)


def test_without_measurements_it_brakes_and_is_held_until_asked() -> None:
    arm = Arm(executor())
    arm.run(0.4)
    follower = arm.follower
    stop = arm.run(0.4, measured=False)
    assert follower.guard.state is State.STOPPED and not follower.following
    assert follower.guard.faults[Fault.NO_MEASUREMENT] == 1
    reasons = [each.reason.fault for each in follower.guard.transitions if each.after is State.STOPPING]
    assert reasons == [Fault.NO_MEASUREMENT]
    assert follower.take(*chunk(arm.now), arm.now) is None
    velocities = np.array([each.command.velocity for each in stop])
    assert np.abs(np.diff(velocities, axis=0)).max() <= 1.2 * 7.5 * PERIOD
    np.testing.assert_array_equal(velocities[-1], 0.0)
    assert (stop[-1].command.kp > 0.0).all()
    refused(lambda: follower.desired(arm.now), "no motion is followed")
    place = arm.run(0.15, chunks=False)[-1].links  # measurements alone do not make it go on
    assert not follower.following
    follower.start()
    arm.run(0.1, chunks=False)
    assert follower.following
    np.testing.assert_allclose(arm.plant.measurement.position, place, atol=2e-3)
    taken = follower.take(arm.now + 0.02 * np.arange(50), np.tile(place, (50, 1)), arm.now)
    assert taken is not None and taken.followed


def test_where_the_guard_lets_go_gains_and_torque_are_zero() -> None:
    follower = executor(replace(QUICK, resolution=1.0))
    fast, command = 1.5 * panda().limits.velocity, None
    for k in range(100):
        now = PERIOD * k
        runs = now > 0.1  # although it was told to stand: nothing that is commanded does any good
        follower.measure(now, HOME + runs * (now - 0.1) * fast, runs * fast)
        command = follower.command(now) or command
        if follower.guard.reason.tripped:
            break
    assert command is not None and follower.guard.reason.tripped
    for each in (command.kp, command.kd, command.torque):
        np.testing.assert_array_equal(each, 0.0)
    commands = [follower.command(now + PERIOD * k) for k in range(1, 100)]
    assert commands[-1] is None


def test_commands_go_on_while_another_thread_plans() -> None:
    arm = Arm(executor())
    arm.run(0.3)
    motions: list[Array] = []

    def policy() -> None:
        for k in range(20):
            arm.follower.take(*chunk(0.3 + 0.002 * k), 0.3 + 0.002 * k)

    thread = Thread(target=policy)
    thread.start()
    while thread.is_alive():
        motions.append(arm.follower.desired(0.3, 4))
    thread.join()
    assert len(motions) > 1
    np.testing.assert_allclose(motions, np.tile(motions[0], (len(motions), 1, 1)), rtol=1e-9, atol=1e-9)


def test_nothing_is_commanded_before_it_is_known_where_the_arm_is() -> None:
    follower = executor()
    assert follower.command(0.0) is None
    assert follower.take(*chunk(0.0), 0.0) is None
    follower.measure(0.0, HOME)
    assert follower.command(PERIOD) is not None or follower.command(2.0 * PERIOD) is not None


def test_at_the_end_nothing_more_is_commanded() -> None:
    arm = Arm(executor())
    arm.run(0.3)
    arm.follower.stop()
    stop = arm.run(0.4)
    np.testing.assert_array_equal(stop[-1].command.velocity, 0.0)
    assert arm.follower.command(arm.now) is None


@pytest.mark.parametrize(
    "guard",
    [GuardConfig(), GuardConfig(measured=True, end=End.ZERO), GuardConfig(measured=True, efforts_act=True)],
)
def test_guards_that_do_not_fit_such_drives(guard: GuardConfig) -> None:
    refused(lambda: ExecutorConfig(guard=guard), "measured=True ... end=End.HOLD ... efforts_act=False")


def test_robots_and_gains_that_do_not_fit() -> None:
    gains = MotorGains(np.ones(2), np.ones(2))
    refused(lambda: ChunkExecutor(panda(), gains), "gains of 2 drives for 7 joints")
    call = partial(ChunkExecutor, Robot.load(share.find("config", "palletiser.yaml")), gains)
    refused(call, "has loops or a base that moves")
