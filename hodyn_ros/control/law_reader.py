"""The law for whatever robot a file describes."""

from __future__ import annotations

from pathlib import Path

from numpy.typing import ArrayLike

from hodyn_ros.control.feedforward import FeedforwardLaw, Law
from hodyn_ros.control.parallel_feedforward import ParallelFeedforwardLaw
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.parallel.config import is_parallel
from hodyn_ros.parallel.robot import ParallelRobot


def read_law(path: str | Path, order: int, clamp: bool = False, gravity: ArrayLike | None = None) -> Law:
    """Read a robot of any kind from its YAML file and return its feedforward law.

    `gravity` (3,) [m/s^2], pointing down, overrides the file's. Raises ModelError naming file and place.
    """
    if is_parallel(path):
        return ParallelFeedforwardLaw(ParallelRobot.from_config(path, gravity), order, clamp)
    return FeedforwardLaw(Robot.from_config(path, gravity), order, clamp)
