"""The law for whatever robot a file describes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hodyn_ros.control.law import Law
from hodyn_ros.control.law_settings import LawSettings
from hodyn_ros.control.robot_text import read_robot


def read_law(
    path: str | Path, order: int, clamp: bool = False, gravity: Sequence[float] | None = None
) -> Law:
    """Read a robot of any kind from its YAML file and return its feedforward law.

    `gravity` (3,) [m/s^2], pointing down, overrides the file's. Raises ModelError naming file and place.
    """
    settings = LawSettings(order, clamp, tuple(gravity or ()))
    return settings.law(settings.robot(read_robot(path)))
