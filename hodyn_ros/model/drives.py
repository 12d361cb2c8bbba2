"""What drives the joints: reflected motor inertias and the springs behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.model.tree import Array


@dataclass(frozen=True, eq=False)
class Drives:
    """The drives of all joints, (n,) each, in the order of the model's joints: figures without behaviour.

    `hodyn_ros.SeriesElastic(drives.stiffness, drives.motor_inertia)` turns them into actuation. Read N/m and
    kg where a joint is prismatic. Raises ModelError that names the joint (by index where `joint_names` is not
    given).
    """

    stiffness: Array  # joint stiffness [N·m/rad]; infinite for a rigid joint
    motor_inertia: Array  # reflected to the link side [kg m^2]; may be zero for a rigid joint only
    joint_names: InitVar[Sequence[str] | None] = None

    def __post_init__(self, joint_names: Sequence[str] | None) -> None:
        labels = range(np.size(self.stiffness)) if joint_names is None else joint_names
        names = [f"joint {label!r}" for label in labels]
        for field in ("stiffness", "motor_inertia"):
            array = np.array(getattr(self, field), dtype=np.float64)
            if array.shape != (len(names),):
                raise ModelError(f"drives: {field} must have shape ({len(names)},), found {array.shape}")
            array.setflags(write=False)
            object.__setattr__(self, field, array)
        for name, stiffness, inertia in zip(names, self.stiffness, self.motor_inertia, strict=True):
            if not stiffness > 0.0:
                raise ModelError(
                    f"{name}: its stiffness is {stiffness:g} N·m/rad; make it positive (inf is rigid)"
                )
            if not (0.0 <= inertia < np.inf):
                raise ModelError(
                    f"{name}: its motor inertia is {inertia:g} kg m^2; make it finite and positive"
                )
            if inertia == 0.0 and np.isfinite(stiffness):
                raise ModelError(f"{name}: a joint with a spring needs a motor inertia above zero")


def drives_in_words(drives: Drives | None) -> str:
    """Say how many joints have a drive, and how many of them a spring.

    >>> drives_in_words(Drives(np.array([1e4, np.inf]), np.array([0.5, 0.5])))
    '2 drives (1 elastic)'
    """
    if drives is None:
        return "no drives"
    elastic = int(np.isfinite(drives.stiffness).sum())
    return f"{counted(len(drives.stiffness), 'drive')} ({elastic} elastic)"


def counted(number: int, word: str, plural: str = "") -> str:
    """Return a number with its word, `plural` or with an s where it is not one."""
    return f"{number} {word if number == 1 else plural or word + 's'}"
