"""Every robot that a launch file simulates follows its motion, guarded as it is there."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, motor_reference
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig, State
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory.files.reader import read_motion

PERIOD = 2e-3  # [s] between commands; a feedforward comes with every second one
BEGIN, LASTS = 0.7, 0.8  # [s] of standing, in which the robot joins, and of motion
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


@pytest.mark.parametrize("name", some(ROBOTS, "palletiser"))
def test_a_robot_follows_its_motion(name: str) -> None:
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    motion = read_motion(share.find("config", f"{name}_motion.yaml")).for_joints(robot.joint_names)
    train, law, guard = robot.require_drives(), FeedforwardModel(robot, 2), guard_of(robot)
    start = motion.sample(0.0, 0).joints[0]
    simulated = RobotSimulation(robot, start, damping=train.damping(2e-4))
    orders, off = law.motion_orders, []
    for k in range(round((BEGIN + LASTS) / PERIOD)):
        now, time = 1 + round(k * PERIOD * 1e9), k * PERIOD - BEGIN
        desired = motion.sample(max(time, 0.0), orders - 1)
        joints = (desired if time > 0.0 else desired.at_rest()).joints
        if k % 2 == 0:
            guard.follow(now, now, motor_reference(FeedforwardMode.ELASTIC, train, law.compute(joints)))
        guard.measure(now, now, simulated.motor_position, simulated.motor_velocity)
        off.append(simulated.coordinates - joints[0])
        command = guard.command(now)
        if command is not None:
            simulated.advance(PERIOD, command.effort)
    assert [change.after for change in guard.transitions] == [State.JOINING, State.FOLLOWING]
    assert np.abs(joints[0] - start).max() > 0.05
    assert np.abs(off).max() < 1e-2  # the hand sets off with an acceleration, which springs answer
