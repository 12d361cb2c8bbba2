"""A guard that counts with a load on request: it follows where it would have stopped, and sees no step."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from refusals import refused

from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.guard.carried_load import CarriedLoad
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig, State
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.guard.reasons import Fault, StreamError
from hodyn_ros.guard.transitions import Motion

pytestmark = pytest.mark.thorough

MS, EPOCH = 1_000_000, 1_700_000_000 * 10**9
FADE = 0.5
POSE = np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
STILL = Motion(POSE, np.zeros(7), np.zeros(7))


@pytest.fixture(name="robot", scope="module")
def make_robot() -> Robot:
    return Robot.load(share.find("config", "panda.yaml"))


@pytest.fixture(name="models", scope="module")
def make_models(robot: Robot):
    """Efforts of the motors without a load, and with one that the file does not allow for."""
    loaded = robot.with_tree(Payload(8.0, (0.0, 0.0, 0.1)).on_tree(robot))
    return [effort_model(one, robot.joint_names, motor=True) for one in (robot, loaded)]


def hold(robot: Robot, models, carried: CarriedLoad, asked: bool) -> CommandGuard:
    """Let a robot stand whose efforts fade to those with a load, as dynamics_node does."""
    names = robot.joint_names
    guard = CommandGuard(
        names,
        GuardConfig(settle=0.01, fade=0.05, join_speed=1.0, efforts_act=True),
        guard_limits(robot, names, motor=True),
        model=carried,
        observer=effort_observer(robot, names, carried.links, motor=True),
    )
    light, heavy = (model(STILL) for model in models)
    positions = np.array([POSE, *np.zeros((3, 7))])
    for k in range(1500):
        now, share_of_it = EPOCH + k * MS, np.clip((k - 300) / (1e3 * FADE), 0.0, 1.0)
        effort = light + share_of_it * (heavy - light)
        rate = (heavy - light) / FADE * (0.0 < share_of_it < 1.0)
        if asked and k == 300:
            carried.take(models[1], FADE)
        carried.at(now)
        with suppress(StreamError):  # which nodes count, and go on
            guard.follow(now, now, Reference(positions, np.array([effort, rate])))
        guard.measure(now, now, POSE + 1e-7 * (k % 2), np.zeros(7))
        guard.command(now)
        if k == 299:
            assert guard.state is State.FOLLOWING
    return guard


def test_a_guard_stops_for_a_load_that_it_does_not_know_and_follows_with_it(robot: Robot, models) -> None:
    stopped = hold(robot, models, CarriedLoad(models[0]), asked=False)
    assert stopped.state in (State.STOPPING, State.STOPPED)
    assert stopped.faults[Fault.MISMATCH] + stopped.faults[Fault.EFFORT_STEP] >= 1
    follows = hold(robot, models, CarriedLoad(models[0]), asked=True)
    assert follows.state is State.FOLLOWING and not any(follows.faults.values())


def test_efforts_go_from_one_load_to_the_other_without_a_step(models) -> None:
    carried, (light, heavy) = CarriedLoad(models[0]), (model(STILL) for model in models)
    carried.at(EPOCH)
    np.testing.assert_array_equal(carried(STILL), light)
    carried.take(models[1], FADE)
    refused(lambda: carried.take(models[0], FADE), "a load is being faded")
    found = []
    for k in range(520):
        carried.at(EPOCH + k * MS)
        found.append(carried(STILL))
    whole = np.abs(heavy - light).max()
    assert np.abs(np.diff(found, axis=0)).max() < 1.6 * whole / 500.0
    np.testing.assert_array_equal(found[0], light)
    np.testing.assert_array_equal(found[-1], heavy)
    carried.at(EPOCH - 10**9)
    np.testing.assert_array_equal(carried(STILL), heavy)  # a clock that is set back changes nothing
    carried.take(models[0], FADE)
    carried.at(EPOCH)
    carried.at(EPOCH + round(1e9 * FADE / 2))
    np.testing.assert_allclose(carried(STILL), 0.5 * (light + heavy), rtol=1e-12, atol=1e-12)


def test_a_load_is_carried_in_time_also_where_the_clock_is_set_back(models) -> None:
    carried = CarriedLoad(models[0])
    carried.take(models[1], FADE)
    for k in range(520):
        carried.at(EPOCH + k * MS - (k > 250) * 3600 * 10**9)
    assert not carried.fading
    carried.take(models[0], FADE)


@pytest.mark.parametrize("carries, asked, refused", [(0.0, 2.0, False), (0.0, 4.0, True), (2.0, 4.0, False)])
def test_a_guard_knows_a_load_that_the_motion_contradicts(
    robot: Robot, models, carries, asked, refused
) -> None:
    """By 15 % of the efforts' limits, loads may be 2 kg off what the robot carries here, but not 4."""

    def loaded(mass: float):
        heavier = robot.with_tree(Payload(mass, (0.0, 0.0, 0.1)).on_tree(robot)) if mass else robot
        return effort_model(heavier, robot.joint_names, motor=True)

    names, effort = robot.joint_names, loaded(carries)(STILL)
    guard = CommandGuard(
        names,
        GuardConfig(settle=0.01, fade=0.05, efforts_act=True),
        guard_limits(robot, names, motor=True),
        MotorGains(np.zeros(7), np.zeros(7)),
        models[0],
        effort_observer(robot, names, models[0].links, motor=True),
    )
    assert guard.contradicted(models[0], loaded(80.0)) is None  # nothing is commanded, and nothing known
    for k in range(400):
        now = EPOCH + k * MS
        guard.follow(now, now, Reference(np.array([POSE, *np.zeros((3, 7))]), np.array([effort])))
        guard.measure(now, now, POSE + 1e-7 * (k % 2), np.zeros(7))
        guard.command(now)
    assert guard.state is State.FOLLOWING
    found = guard.contradicted(models[0], loaded(asked))
    assert (found is not None) is refused, found
