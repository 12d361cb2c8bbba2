"""What a file says of a robot, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.propeller import Propeller
from hodyn_ros.model.readers.document import AssumedFigure
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.model.uncertainty import RobotUncertainty


@dataclass(frozen=True, eq=False)
class RobotDescription:
    """A robot as its file describes it."""

    model: TreeModel
    limits: JointLimits  # of the driven joints; all joints are, where there is no closure
    drives: tuple[DriveSpec, ...] | None = None  # likewise; None where no joint has a drive
    frames: Mapping[str, Frame] = field(default_factory=dict)  # bodies and others by name
    assumed: tuple[AssumedFigure, ...] = ()  # figures that the file marks as assumed
    closure: Closure | None = None
    coordinate_limits: JointLimits | None = None
    propellers: tuple[Propeller, ...] = ()
    grounded: Mapping[str, float] = field(default_factory=dict)  # masses [kg] of bodies fixed to the world
    uncertainty: RobotUncertainty = RobotUncertainty()
    source: str = ""  # what errors call it: the path of its file

    @property
    def driven(self) -> Sequence[int]:
        """The driven joints, by place in the tree."""
        return range(self.model.n_joints) if self.closure is None else self.closure.driven

    def with_gravity(self, gravity: ArrayLike) -> RobotDescription:
        """Return the same robot under another gravity (3,) [m/s^2], given as a vector that points down."""
        model = self.model.with_gravity(gravity)
        closure = None if self.closure is None else replace(self.closure, tree=model)
        return replace(self, model=model, closure=closure)


def drives_of(joint_names: Sequence[str], drives: Mapping[str, DriveSpec]) -> tuple[DriveSpec, ...] | None:
    """Return the drives of these joints, None where no joint has one; ModelError where some have."""
    if not drives:
        return None
    missing = [name for name in joint_names if name not in drives]
    if missing:
        raise ModelError(
            f"joint {missing[0]!r} has no drive, but others have; give every driven joint one "
            "(drive: {motor_inertia: 0, stiffness: rigid} where the motor does not count)"
        )
    return tuple(replace(drives[name]) for name in joint_names)  # which the text of the file is no part of
