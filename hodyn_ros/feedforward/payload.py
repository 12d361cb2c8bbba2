"""What a robot carries at its end: mass, centre and inertia, added to the body that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.readers.assembly import Link, carrying
from hodyn_ros.model.tree import TreeModel

_ROUNDING = 1e-12  # share of the largest moment


@dataclass(frozen=True)
class Payload:
    """A rigid body that is carried.

    `mass` [kg]; `centre` (3,) of mass in the frame of `body` [m], at its origin where empty; `inertia` xx,
    xy, xz, yy, yz, zz about the centre, in axes of that frame [kg m^2], that of a point where empty. `body`
    is a body or a named frame of the robot, by default the platform where one moves it, else the last body.
    Raises InputError for what no rigid body has.
    """

    mass: float = 0.0
    centre: Sequence[float] = ()
    inertia: Sequence[float] = ()
    body: str = ""

    def __post_init__(self) -> None:
        for name, values, count in (("centre", self.centre, 3), ("inertia", self.inertia, 6)):
            # the squares as well, or the robot would be as heavy as infinity
            if len(values) not in (0, count) or not np.isfinite(np.vdot(values, values)):
                raise InputError(
                    f"parameter 'payload_{name}' is {list(values)}; give {count} finite values, or none"
                )
        if not (np.isfinite(self.mass) and self.mass >= 0.0):
            raise InputError(f"parameter 'payload_mass' is {self.mass:g} kg; give zero or more")
        moments = np.linalg.eigvalsh(self.tensor)
        if self.mass == 0.0 and np.any(self.inertia):
            raise InputError("parameter 'payload_inertia' is given for a mass of zero; give the mass as well")
        if moments[0] < -_ROUNDING * moments[2] or moments[0] + moments[1] < (1.0 - _ROUNDING) * moments[2]:
            raise InputError(
                f"parameter 'payload_inertia' has the principal moments {moments.tolist()} kg m^2, which no "
                "body has: none is negative, and none is greater than the sum of the other two"
            )

    @property
    def tensor(self) -> Array:
        """The inertia (3, 3) about the centre."""
        if not len(self.inertia):
            return np.zeros((3, 3))
        xx, xy, xz, yy, yz, zz = self.inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def on_tree(self, robot: Robot) -> TreeModel:
        """Return the model of a robot that carries this; InputError where it has no such body."""
        model = robot.tree
        place = self._place(robot)
        if self.mass == 0.0:
            return model
        return carrying(model, self._load, place)

    def _place(self, robot: Robot) -> Frame:
        names = robot.tree.body_names
        name = self.body or robot.platform or names[-1]
        if name in names:
            return Frame(names.index(name), np.eye(4))
        place = robot.frames.get(name)
        if place is None or place.body < 0:
            raise InputError(f"parameter 'payload_body' is {name!r}; the robot has the bodies {list(names)}")
        return place

    @property
    def _load(self) -> Link:
        centre = np.array(self.centre) if len(self.centre) else np.zeros(3)
        return Link("payload", self.mass, centre, self.tensor)


NO_LOAD = Payload()
"""Nothing is carried."""
