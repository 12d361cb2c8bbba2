"""The law for whatever robot a file describes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.model import FeedforwardModel


def read_feedforward_model(
    path: str | Path, order: int, clamp: bool = False, gravity: Sequence[float] | None = None
) -> FeedforwardModel:
    """Read a robot of any kind from its YAML file and return its feedforward law.

    `gravity` (3,) [m/s^2], pointing down, overrides the file's. Raises ModelError naming file and place.
    """
    settings = FeedforwardConfig(order, clamp, tuple(gravity or ()))
    return settings.law(settings.robot(Robot.from_config(path)))
