"""The motion that the nodes are asked about: a Panda that swings, once a second, within all its limits."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.messages import write_desired_motion
from hodyn_ros.share import find

ROBOT = "panda.yaml"
ORDERS = 5  # position to snap, what efforts up to their second derivative need

_AMPLITUDE = 0.05  # [rad]
_SAMPLES = 1000


def messages() -> list[DesiredMotion]:
    """Return the samples of one swing, for whoever sends them to give them stamps."""
    robot = Robot.load(find("config", ROBOT))
    middle = 0.5 * (robot.limits.position_lower + robot.limits.position_upper)
    phase = 2.0 * np.pi * np.arange(_SAMPLES)[:, None] / _SAMPLES + np.arange(robot.n_coordinates)
    orders = np.arange(ORDERS)[:, None, None]
    swing = _AMPLITUDE * (2.0 * np.pi) ** orders * np.sin(phase + 0.5 * np.pi * orders)
    swing[0] += middle
    return [
        write_desired_motion(robot.joint_names, Time(), np.ascontiguousarray(swing[:, k]))
        for k in range(_SAMPLES)
    ]
