"""What a guard knows of a robot: its limits, and the efforts of a motion that brakes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.links import Links
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.guard.command_guard import EffortModel
from hodyn_ros.guard.guard_config import GuardLimits
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.drive_spec import DriveSpec


def guard_limits(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> GuardLimits:
    """Return the limits of some driven joints, those of the motors' efforts with `motor`.

    Velocities are those of the joints in both cases. Raises InputError for an unknown joint.
    """
    places = _places(robot, joint_names)
    limits, train = robot.limits, robot.drive_train
    effort, rate = limits.effort, limits.effort_rate
    if motor and train is not None and train.n_motors == train.n_joints:
        effort, rate = train.effort_limits(effort), train.effort_rate_limits(rate)
    return GuardLimits(limits.velocity[places], effort[places], rate[places])


def effort_model(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> EffortModel | None:
    """Return the efforts of a motion of the driven joints as if they were stiff, with `motor` of the motors.

    `Q(q, q', q'')`, and for motors also `B q''` and friction: what changes while a robot brakes. A payload
    that the robot's file does not know is for the guard to keep. Where loops do not close on the way, or the
    pose is singular, the efforts stay those of the last sound one. None where driven joints of the robot are
    not among those named, as they may move, and where its base floats.
    """
    places = _places(robot, joint_names)
    floats = robot.moves_base and (robot.closure is None or robot.closure.platform is None)
    if len(places) != len(robot.driven_joints) or floats:
        return None
    drives = _stiff_drives(robot) if motor else None
    back, links = np.argsort(places), Links(robot)
    last, sound = links.home, np.zeros(len(places))
    links.drives(np.stack([last, *np.zeros((2, links.size))]))  # nothing is to be compiled in a stop

    def efforts(motion: Motion) -> Array:
        nonlocal last, sound
        try:
            x = links.locate(np.array(motion)[:, back], last)
            state = links.drives(x)
        except InputError:
            return sound[places]
        found = state.efforts if drives is None else drives.feedforward(state.motion, state.efforts).effort
        last, sound = x[0], found[0]
        return sound[places]

    return efforts


def _stiff_drives(robot: Robot) -> DriveTrain | None:
    """Return the drives of a robot with rigid transmissions; None without drives of one motor each."""
    train = robot.drive_train
    if train is None or train.n_motors != train.n_joints:
        return None
    return DriveTrain(stiff_specs(train), robot.driven_joints)


def stiff_specs(train: DriveTrain) -> list[DriveSpec]:
    """Return the motors of drives with their inertia and friction, behind transmissions that are rigid."""
    return [
        DriveSpec(
            np.inf, spec.motor_inertia, motor_friction=spec.motor_friction, link_friction=spec.link_friction
        )
        for spec in train.specs
    ]


def _places(robot: Robot, joint_names: Sequence[str]) -> list[int]:
    known = list(robot.driven_joints)
    for name in joint_names:
        if name not in known:
            raise InputError(f"joint {name!r} is not driven in robot {robot.name!r}, which drives {known}")
    return [known.index(name) for name in joint_names]
