"""What an export is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.motion_stack import HIGHEST_ORDER, whole_order
from hodyn_ros.dynamics.operations import EXPORTED, OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_text import checked_name, name_from
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.representations import Representation, check_representation
from hodyn_ros.model.tree import TreeModel


@dataclass(frozen=True)
class ExportRequest:
    """What is exported of a robot, with time derivatives up to `order`. Raises InputError for what cannot be.

    `name` starts the names of all functions; by default it is made from the robot's. `what`: one or more of
    what `Robot.compile` offers, and in C "propeller_thrusts" and "momentum_observer"; `frames` and
    `representation` as there, of those that have frames. `period` [s] between two calls lets damped springs
    that do not settle within it remember their deflection; else they follow their slow manifold. `wrenches`:
    bodies on which the environment acts, in inverse and forward dynamics, with wrenches in world axes about
    the world origin. `target`, "cortex-m7" or "generic": a small processor, whose numbers are float32; else
    they are float64.
    """

    order: int
    name: str | None = None
    what: Sequence[str] = ("inverse_dynamics",)
    frames: Sequence[str | int] = ()
    representation: Representation = "spatial"
    period: float | None = None
    wrenches: Sequence[str] = ()
    target: str | None = None

    def __post_init__(self) -> None:
        order, period = whole_order(self.order), self.period
        if order > HIGHEST_ORDER:
            raise InputError(f"the order is {order}, and {HIGHEST_ORDER} is the highest there is")
        check_representation(self.representation)
        if period is not None and not 0.0 < period < np.inf:
            raise InputError(f"the period must be positive and finite, found {period!r} s")
        if self.name is not None:
            checked_name(self.name)
        what = (self.what,) if isinstance(self.what, str) else dict.fromkeys(self.what)
        if len(self.frames) > 0 and not any(map(has_frames, what)):
            known = ", ".join(filter(has_frames, EXPORTED))
            raise InputError(f"frames are of {known}; leave them out, or ask for one of these")
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "what", tuple(what))
        object.__setattr__(self, "frames", tuple(self.frames))
        object.__setattr__(self, "wrenches", tuple(self.wrenches))

    def of(self, robot: Robot) -> ExportRequest:
        """Return the request with the name that functions of a robot have."""
        return replace(self, name=checked_name(name_from(robot.name) if self.name is None else self.name))

    @property
    def prefix(self) -> str:
        """The start of all names, of a request that is one of a robot."""
        assert self.name is not None
        return self.name

    @property
    def wrench_names(self) -> list[str]:
        """Names of the arrays of wrenches; numbers tell those apart that C would take for one."""
        names = [f"wrench_{'_'.join(re.findall(r'[A-Za-z0-9]+', body))}" for body in self.wrenches]
        return [name if names.count(name) == 1 else f"{name}_{i}" for i, name in enumerate(names)]

    def frames_of(self, what: str) -> Sequence[str | int] | None:
        """Return the frames that were asked for of an operation; None of one without, or by default."""
        return (self.frames or None) if has_frames(what) else None

    def of_frames(self, what: str, bodies: Sequence[str]) -> tuple[Any, ...]:
        """Return the frames that an operation is of by name, by default of `bodies`, and a representation."""
        return OPERATIONS[what].of_frames(self.frames, bodies, self.representation)

    def wrench_shapes(self) -> dict[str, Shape]:
        """Return the shapes of the arrays of wrenches."""
        return dict.fromkeys(self.wrench_names, (self.order + 1, 6))

    def loads(self, model: TreeModel) -> tuple[tuple[int, BaseRepresentation], ...]:
        """Return body and frame of every wrench; InputError for an unknown body."""
        return tuple((model.body_index(body), "spatial") for body in self.wrenches)


def has_frames(what: str) -> bool:
    """Return whether an operation is of bodies and frames."""
    return what in OPERATIONS and OPERATIONS[what].frames != "none"
