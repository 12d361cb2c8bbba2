"""Every robot that a launch file simulates follows its motion, guarded as it is there, and stops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, motor_reference
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig, State
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory.files.reader import read_motion

pytestmark = pytest.mark.thorough

PERIOD = 2e-3  # [s] between commands; a feedforward comes with every second one
BEGIN = 0.6  # [s] of standing, in which the robot joins
ROBOTS = ("palletiser", "delta", "panda_hand")


def guard_of(robot: Robot) -> CommandGuard:
    names = robot.driven_joints
    model = effort_model(robot, names, motor=True)
    assert model is not None
    return CommandGuard(
        names,
        GuardConfig(lead=0.5 * PERIOD, measured=True),
        guard_limits(robot, names, motor=True),
        MotorGains.of_drives(robot.require_drives(), 30.0, 1.0),
        model,
        effort_observer(robot, names, model.links, motor=True),
    )


class Run(NamedTuple):
    """What came of a motion, a row each period."""

    states: list[State]  # that the guard went through
    desired: Array  # (N, k) [rad or m]
    found: Array  # (N, k) where the robot was
    speeds: Array  # (N,) largest of its motors, as a share of their limits


def followed(name: str, lasts: float, silent_after: float = np.inf) -> Run:
    """Let a robot follow its motion for a while [s]; no feedforward comes after a time of it [s]."""
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    motion = read_motion(share.find("config", f"{name}_motion.yaml")).for_joints(robot.joint_names)
    train, law, guard = robot.require_drives(), FeedforwardModel(robot, 2), guard_of(robot)
    start = motion.sample(0.0, 0).joints[0]
    simulated = RobotSimulation(robot, start, damping=train.damping(2e-4))
    highest, rows = guard_limits(robot, robot.driven_joints, motor=True).velocity, []
    for k in range(round((BEGIN + lasts) / PERIOD)):
        now, time = 1 + round(k * PERIOD * 1e9), k * PERIOD - BEGIN
        desired = motion.sample(max(time, 0.0), law.motion_orders - 1)
        joints = (desired if time > 0.0 else desired.at_rest()).joints
        if k % 2 == 0 and time < silent_after:
            guard.follow(now, now, motor_reference(FeedforwardMode.ELASTIC, train, law.compute(joints)))
        guard.measure(now, now, simulated.motor_position, simulated.motor_velocity)
        rows.append((joints[0], simulated.coordinates, np.max(np.abs(simulated.motor_velocity) / highest)))
        command = guard.command(now)
        if command is not None:
            simulated.advance(PERIOD, command.effort)
    states = [change.after for change in guard.transitions]
    return Run(states, *(np.array(column) for column in zip(*rows)))


@pytest.mark.parametrize("name", some(ROBOTS, "palletiser"))
def test_a_robot_follows_its_motion(name: str) -> None:
    run = followed(name, 0.8)
    assert run.states == [State.JOINING, State.FOLLOWING]
    assert np.ptp(run.desired, axis=0).max() > 0.05
    # the hand sets off with an acceleration, which its springs answer
    np.testing.assert_allclose(run.found, run.desired, atol=1e-2)


@pytest.mark.parametrize("name", some(ROBOTS, "delta"))
def test_a_stop_keeps_a_robot_within_its_workspace(name: str) -> None:
    """A plant whose loops cannot close any more ends with an error."""
    run = followed(name, 1.4, silent_after=0.4)
    assert run.states == [State.JOINING, State.FOLLOWING, State.STOPPING, State.STOPPED]
    assert 0.01 < run.speeds.max() < 1.0  # the palletiser sets off slowly
    assert run.speeds[-1] < 1e-3
