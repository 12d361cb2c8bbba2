"""What a guard knows of a robot: its limits, the efforts of a motion, and how far these may be wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.links import Links
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.guard.guard_config import GuardLimits
from hodyn_ros.guard.momentum_residual import GAIN, EffortModel
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.drive_spec import DriveSpec


def guard_limits(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> GuardLimits:
    """Return the limits of some driven joints, those of the motors' efforts with `motor`.

    Velocities are those of the joints in both cases. How far efforts and motion may disagree follows from the
    `uncertainty` of the robot, where `effort_model` has one. Raises InputError for an unknown joint.
    """
    places = _places(robot, joint_names)
    limits, train = robot.limits, robot.drive_train
    effort, rate = limits.effort, limits.effort_rate
    if motor and train is not None and train.n_motors == train.n_joints:
        effort, rate = train.effort_limits(effort), train.effort_rate_limits(rate)
    return GuardLimits(
        limits.velocity[places],
        effort[places],
        rate[places],
        _mismatch(robot, joint_names, effort[places], motor),
    )


def effort_model(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> EffortModel | None:
    """Return the efforts of a motion of the driven joints as if they were stiff, with `motor` of the motors.

    `Q(q, q', q'')`, and for motors also `B q''` and friction: what changes while a robot brakes. A payload
    that the robot's file does not know is for the guard to keep. Where loops do not close on the way, or the
    pose is singular, the efforts stay those of the last sound one. None where driven joints of the robot are
    not among those named, as they may move, and where its base floats.
    """
    places = _places(robot, joint_names)
    if len(places) != len(robot.driven_joints) or robot.structure.base_given:
        return None
    drives = _stiff_drives(robot) if motor else None
    back, links = np.argsort(places), Links(robot)
    last, sound = links.home, np.zeros(len(places))
    links.drives(np.stack([last, *np.zeros((2, links.size))]))  # nothing is to be compiled in a stop

    def efforts(motion: Motion) -> Array:
        nonlocal last, sound
        try:
            x = links.locate(np.take(motion, back, axis=1), last)  # contiguous, as compiled code wants it
            state = links.drives(x)
        except InputError:
            return sound[places]
        computed = state.efforts if drives is None else drives.feedforward(state.motion, state.efforts).effort
        last, sound = x[0], computed[0]
        return sound[places]

    return efforts


def _mismatch(robot: Robot, joint_names: Sequence[str], limit: Array, motor: bool) -> Array:
    """Return by how much (n,) efforts may disagree with the motion [N.m or N], by the robot's uncertainty.

    Beside its share of the limit: all of the friction that is stated, times its uncertainty; the largest
    effort of the payload at seeded motions; and springs, which the momentum residual takes for stiff. A tenth
    of the limit that swings moves a link of inertia M by `tau / K` against its motor: `L^2 M tau / K`.
    """
    model, unsure = effort_model(robot, joint_names, motor=motor), robot.uncertainty
    if model is None:
        return np.full(len(joint_names), np.inf)
    places, train = _places(robot, joint_names), robot.drive_train
    still, allowed = _at_home(robot)[places], unsure.efforts * limit
    nothing = np.zeros_like(still)
    if train is not None and train.n_motors == train.n_joints:
        specs = [train.specs[place] for place in places]
        standing, units = model(Motion(still, nothing, nothing)), np.eye(len(places))
        inertia = np.array([(model(Motion(still, nothing, unit)) - standing) @ unit for unit in units])
        swings = GAIN**2 * inertia * np.where(np.isfinite(limit), 0.1 * limit, 0.0)
        allowed = allowed + unsure.stiffness * swings / np.array([spec.stiffness for spec in specs])
        if motor:
            speed = np.where(np.isfinite(robot.limits.velocity), robot.limits.velocity, 1.0)[places]
            drives = [train.drives[place] for place in places]
            carried = np.where(np.isfinite(limit), limit, 0.0)
            friction = [
                drive.motor_friction.largest(v, most) + drive.link_friction.largest(v)
                for drive, v, most in zip(drives, speed, carried)
            ]
            allowed = allowed + unsure.friction * np.array(friction)
    if unsure.payload > 0.0:
        loaded = effort_model(
            robot.with_tree(Payload(unsure.payload).on_tree(robot)), joint_names, motor=motor
        )
        assert loaded is not None
        motions = _seeded_motions(robot, places, still)
        allowed = allowed + np.max([np.abs(loaded(motion) - model(motion)) for motion in motions], axis=0)
    return allowed


def _at_home(robot: Robot) -> Array:
    """Return where the driven joints are at home."""
    links = Links(robot)
    return links.drives(np.stack([links.home, *np.zeros((2, links.size))])).motion[0]


def _seeded_motions(robot: Robot, places: Sequence[int], home: Array) -> list[Motion]:
    """Return motions of the driven joints within their limits, the same each time."""
    random, limits, n = np.random.default_rng(0), robot.limits, len(places)
    low = np.where(np.isfinite(limits.position_lower[places]), limits.position_lower[places], home - 1.0)
    high = np.where(np.isfinite(limits.position_upper[places]), limits.position_upper[places], home + 1.0)
    speed = np.where(np.isfinite(limits.velocity[places]), limits.velocity[places], 1.0)
    return [
        Motion(random.uniform(low, high), speed * random.uniform(-1, 1, n), 5.0 * random.uniform(-1, 1, n))
        for _ in range(50)
    ]


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
