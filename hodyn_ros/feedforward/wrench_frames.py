"""The frames in which a wrench on a body may be given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.se3 import Ad, Array, inverse

WORLD = "world"
WrenchFrame = Literal["world", "body"]
WRENCH_FRAMES: dict[WrenchFrame, BaseRepresentation] = {"world": "spatial", "body": "body_fixed"}


def wrench_frames(robot: Robot, body: str, frame: WrenchFrame) -> Mapping[str, Array]:
    """Return by name the matrices (6, 6) that take wrenches on a body into its representation `frame`.

    With "world" that is the world alone; with "body" the body itself, and the named frames that are fixed to
    it: `W_b = Ad_C^{-T} W_f`, C the pose of such a frame in the body.
    """
    same = np.eye(6)
    if frame == "world":
        return {WORLD: same}
    frames = {body: same}
    carrier = robot.tree.body_index(body)
    for name, place in robot.frames.items():
        if place.body == carrier:
            frames.setdefault(name, Ad(inverse(place.pose)).T)
    return frames
