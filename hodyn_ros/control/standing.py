"""Whether feedback on the motors holds a robot against its own weight."""

from __future__ import annotations

import warnings

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.control.links import Links
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import FigureWarning, HodynError

_STEP = 1e-4  # [rad or m], of differences: far above rounding, and far below what bends the weight


def stiffness_needed(robot: Robot, train: DriveTrain | None, gains: MotorGains) -> float:
    """Return how many times as stiff as it is a robot has to be held to stand at home without friction.

    Efforts that carry the weight at home stay as they are where the robot is pushed away from there, and the
    weight does not. With the stiffness k of feedback and spring in series at each drive, positions q(x) of
    the drives over the coordinates x of `Links`, J = dq/dx, and the efforts Q(x) that carry the weight, it
    comes back where

        J^T (k J + dQ/dx)

    is positive definite; else it leaves, the slower the less it is pushed. The answer is the largest
    eigenvalue of `-J^T dQ/dx` relative to `J^T k J`: below 1 the robot stands. 0 where nothing can be said:
    a joint without feedback of its position, a base that floats, a home that is singular. Without a `train`
    joints are stiff.
    """
    if robot.structure.base_prescribed or not (gains.proportional > 0.0).all():
        return 0.0
    stiffness = gains.proportional
    if train is not None:
        stiffness = 1.0 / (1.0 / stiffness + 1.0 / train.stiffness)
    links = Links(robot)

    def standing(x: Array) -> Array:
        """Return positions of the drives and the efforts that carry the weight there (2, driven)."""
        state = links.drives(np.stack([x, *np.zeros((2, links.size))]))
        return np.stack([state.motion[0], state.efforts[0]])

    steps = _STEP * np.eye(links.size)
    try:
        changes = [standing(links.home + step) - standing(links.home - step) for step in steps]
        jacobian, weight = np.stack(changes, axis=-1) / (2.0 * _STEP)  # (driven, k) each
        held = np.linalg.inv(np.linalg.cholesky(jacobian.T @ (stiffness[:, None] * jacobian)))
    except (HodynError, np.linalg.LinAlgError):
        return 0.0
    tips = -held @ (jacobian.T @ weight) @ held.T
    return max(0.0, float(np.linalg.eigvalsh(0.5 * (tips + tips.T))[-1]))


def tipped(robot: Robot, train: DriveTrain | None, gains: MotorGains) -> str:
    """Return a line about a robot that its weight tips, by `stiffness_needed`; empty for one that stands."""
    needed = stiffness_needed(robot, train, gains)
    if needed < 1.0:
        return ""
    return (
        f"at home the weight of robot {robot.name!r} tips it, whatever the feedforward: feedback and springs "
        f"would have to be {needed:.3g} times as stiff; raise the natural frequency of the feedback "
        "(stiffness grows with its square) or the proportional gains, unless friction holds it"
    )


def warn_if_tipped(robot: Robot, train: DriveTrain | None, gains: MotorGains) -> None:
    """Warn (FigureWarning) of a robot that its weight tips at home."""
    if line := tipped(robot, train, gains):
        warnings.warn(line, FigureWarning, stacklevel=3)
