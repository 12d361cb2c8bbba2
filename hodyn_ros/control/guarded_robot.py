"""What a guard knows of a robot: its limits, and the efforts of a motion that brakes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.command_guard import EffortModel
from hodyn_ros.control.guard_config import GuardLimits
from hodyn_ros.control.transitions import Motion
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.se3 import Array


def guard_limits(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> GuardLimits:
    """Return the limits of some joints, those of the motors' efforts with `motor`.

    Velocities are those of the joints in both cases. Raises InputError for an unknown joint.
    """
    places = _places(robot, joint_names)
    limits, train = robot.limits, robot.drive_train
    effort, rate = limits.effort, limits.effort_rate
    if motor and train is not None and train.n_motors == robot.n_joints:
        effort, rate = train.effort_limits(effort), train.effort_rate_limits(rate)
    return GuardLimits(limits.velocity[places], effort[places], rate[places])


def effort_model(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> EffortModel | None:
    """Return the efforts of a motion of the joints as if they were stiff, with `motor` those of the motors.

    `Q(q, q', q'')`, and for motors also `B q''` and friction: what changes while a robot brakes. A payload
    that the robot's file does not know is for the guard to keep. None where joints of the robot are not among
    those named, as they may move, and where its base floats.
    """
    places = _places(robot, joint_names)
    if len(places) != robot.n_joints or robot.model.floating_base:
        return None
    drives = _stiff_drives(robot) if motor else None
    back = np.argsort(places)

    def efforts(motion: Motion) -> Array:
        q = np.array(motion)[:, back]
        found: Array = robot.inverse_dynamics(q)
        if drives is not None:
            found = drives.feedforward(q, found).effort
        return found[0, places]

    return efforts


def _stiff_drives(robot: Robot) -> DriveTrain | None:
    """Return the drives of a robot with rigid transmissions; None without drives of one motor each."""
    train, specs = robot.drive_train, robot.drive_specs
    if train is None or specs is None or train.n_motors != robot.n_joints:
        return None
    stiff = [
        DriveSpec(
            np.inf, spec.motor_inertia, motor_friction=spec.motor_friction, link_friction=spec.link_friction
        )
        for spec in specs
    ]
    return DriveTrain.of(stiff, robot.joint_names)


def _places(robot: Robot, joint_names: Sequence[str]) -> list[int]:
    known = list(robot.joint_names)
    for name in joint_names:
        if name not in known:
            raise InputError(f"joint {name!r} is not one of robot {robot.name!r}, which has {known}")
    return [known.index(name) for name in joint_names]
