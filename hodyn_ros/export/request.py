"""What an export is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.representations import Representation
from hodyn_ros.model.tree import TreeModel


@dataclass(frozen=True)
class Request:
    """The start of all names, the order, and of kinematics the frames and how twists are represented.

    `period` [s] between two calls: damped springs then remember their deflection. `wrenches`: bodies on which
    the environment acts, with wrenches in world axes about the world origin. `target`: a small processor,
    whose numbers are float32; else they are float64.
    """

    prefix: str
    order: int
    frames: tuple[str | int, ...] = ()
    representation: Representation = "spatial"
    period: float | None = None
    wrenches: tuple[str, ...] = ()
    target: str | None = None

    @property
    def wrench_names(self) -> list[str]:
        """Names of the arrays of wrenches; numbers tell those apart that C would take for one."""
        names = [f"wrench_{'_'.join(re.findall(r'[A-Za-z0-9]+', body))}" for body in self.wrenches]
        return [name if names.count(name) == 1 else f"{name}_{i}" for i, name in enumerate(names)]

    def of_frames(self, what: str, bodies: Sequence[str]) -> tuple[Any, ...]:
        """Return the frames that an operation is of by name, by default of `bodies`, and a representation."""
        return OPERATIONS[what].of_frames(self.frames, bodies, self.representation)

    def wrench_shapes(self) -> dict[str, Shape]:
        """Return the shapes of the arrays of wrenches."""
        return dict.fromkeys(self.wrench_names, (self.order + 1, 6))

    def loads(self, model: TreeModel) -> tuple[tuple[int, BaseRepresentation], ...]:
        """Return body and frame of every wrench; InputError for an unknown body."""
        return tuple((model.body_index(body), "spatial") for body in self.wrenches)
