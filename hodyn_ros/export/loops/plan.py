"""What a function of a robot with loops is written from: a kernel, and where its results stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, TooLong, compiles
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.engine.series.validity import DOUBLE, Tolerances
from hodyn_ros.errors import InputError
from hodyn_ros.export import motions, words
from hodyn_ros.export.loops.bodies import Body, once
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import Tables
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array, exp
from hodyn_ros.model.closure import Closure

_IN_C = {
    "the motion": "q",
    "the state": "state",
    "the motion of the drives": "drives",
    "the pose": "pose",
    "the twists": "twists",
    "the efforts": "tau",
    "the base wrench": "base_wrench",
    "the multiplier": "multiplier",
}  # names of arguments of laws, all but wrenches


@dataclass(frozen=True, eq=False)
class Plan:
    """A kernel of loops, where parts of the result stand in its table, and what `says` what they are.

    `singularity` is the place of the number that says how near a singular pose is, and from where on it is
    near; None where there is none.
    """

    robot: Robot
    request: ExportRequest
    looped: LoopedMotion
    kernel: LoopFunction
    places: dict[str, NDArray[np.int_]]
    says: list[str]
    singularity: tuple[int, float] | None = None
    remembered: str = "leading"  # name of the positions in the memory
    tolerances: Tolerances = DOUBLE

    @cached_property
    def inputs(self) -> dict[str, Shape]:
        """Shapes of what the law takes, by their names in C."""
        wrenches, result = iter(self.request.wrench_names), dict[str, Shape]()
        for name, shape in self.kernel.arguments[:-1]:
            in_c = _IN_C.get(name) or next(wrenches)
            result["twist" if in_c == "twists" and "state" in result else in_c] = shape
        return result

    @property
    def about(self) -> list[str]:
        """What headers say: of the arguments, then of the results."""
        lines = [
            line
            for name, (rows, columns) in self.inputs.items()
            if columns
            for line in self._said(name, rows)
        ]
        loads = words.wrenches(self.request) if self.law.loads else []
        return [*lines, *loads, *self.says]

    def _said(self, name: str, rows: int) -> list[str]:
        closure, order = self.robot.structure, self.request.order
        if name == "q":
            return [words.motion(rows - 1)]
        if name == "state":
            return ["state: positions and velocities of the coordinates."]
        if name == "drives":
            names = self.robot.tree.joint_names
            return [words.joints("drives", [names[joint] for joint in closure.driven], rows - 1)]
        if name == "pose":
            leader = leader_of(closure)
            return (
                words.twist(leader)
                if "twist" in self.inputs
                else words.base(self.inputs["twists"][0] - 1, leader)
            )
        if name == "tau":
            return [f"tau: efforts of the driven joints and their derivatives up to order {order}."]
        if name == "base_wrench":
            return words.result_of_base(OPERATIONS["inverse_dynamics"], self.request)
        return []

    @property
    def closure(self) -> Closure:
        """The couplings and loops, with coordinates and drives."""
        return self.looped.closure

    @property
    def n(self) -> int:
        """Number of positions that the memory holds."""
        return self.law.n_positions

    @property
    def step(self) -> str:
        """Name of the function that improves positions."""
        return "newton_step_of_drives" if "drives" in self.inputs else "newton_step"

    @property
    def home(self) -> Array:
        """Positions that the memory holds at first."""
        return self.looped.memory[0, : self.n]

    def motion(self, random: Random, reach: float) -> list[Array]:
        """Return a motion near home: that of the coordinates, and of a platform or base."""
        (rows, _), *shapes = self.inputs.values()
        orders = shapes[1][0] if self.closure.leader is not None else 0
        return motion_near_home(self.looped, random, rows, orders, reach)

    @cached_property
    def law(self) -> LoopCode:
        """What is written, for numbers of its kind."""
        law = copy(self.kernel.law)
        law.tolerances = self.tolerances
        return law

    @property
    def results(self) -> dict[str, Shape]:
        """Shapes of the arrays of results."""
        return {name: (len(places), places.shape[1]) for name, places in self.places.items()}

    @property
    def arguments(self) -> dict[str, Shape]:
        """Shapes of what follows from positions that were found, by name in C."""
        return {**self.inputs, f"memory->{self.remembered}": (1, self.n), "reached": (1, self.n + 1)}

    def body(self, what: str, tables: Tables) -> Body:
        """Write what is computed."""
        singularity_at = None if self.singularity is None else self.singularity[0]
        return once(
            self.law.end, self.arguments, self.places, self.kernel.defect_at, singularity_at, what, tables
        )

    def results_in(self, table: Array) -> dict[str, Array]:
        """Return results from what the kernel returns."""
        return {name: table.ravel()[places] for name, places in self.places.items()}


def check_compiled(robot: Robot, compiled: bool, what: str) -> None:
    """Refuse what has no code; InputError names it."""
    if not compiled:
        raise InputError(
            f"robot {robot.name!r} has no compiled {what} that could be exported; docs/loops.md says which "
            "robots with loops have none"
        )


def compiled(
    robot: Robot,
    order: int,
    what: str,
    make: Callable[[Closure, Array], LoopCode],
    *,
    moves_mass: bool = False,
) -> tuple[LoopedDynamics, LoopFunction]:
    """Return a robot's dynamics and the code of its loops; InputError where there is none.

    Or where all joints have to move mass and do not.
    """
    closure = robot.structure
    check_compiled(robot, compiles(closure, order), what)
    looped = LoopedDynamics(closure)
    if moves_mass and looped.independence.idle:
        raise InputError(looped.independence.idle)
    try:
        return looped, LoopFunction(make(closure, looped.independence.of_joints))
    except TooLong:
        check_compiled(robot, False, what)
        raise


def said(robot: Robot, request: ExportRequest, what: str, of: tuple[Any, ...] = ()) -> list[str]:
    """Say what an operation gives, of frames by name."""
    closure = robot.structure
    return words.result(
        OPERATIONS[what],
        request,
        of,
        m=closure.n_coordinates,
        efforts=closure.n_efforts,
        bodies=closure.tree.n_bodies,
        coordinates="the coordinates" if closure.leader is None else "coordinates and displacement",
    )


def leader_of(closure: Closure) -> str:
    """Say whose motion is given."""
    return (
        "base"
        if closure.base_prescribed
        else f"platform (body {closure.tree.body_names[closure.leader or 0]})"
    )


def motion_near_home(
    looped: LoopedMotion, random: Random, rows: int, orders: int, reach: float
) -> list[Array]:
    """Return a motion (rows, k) of the coordinates, with that of platform or base to as many orders."""
    closure, start = looped.closure, looped.known
    q = motions.numbers(random, rows, len(closure.joints))
    q[0] = start.y + q[0] * (reach / motions.REACH)
    if start.pose is None:
        return [q]
    # a platform may have fewer freedoms than six
    sizes = np.where(closure.directions[:3].any(axis=0), 1.0, closure.size)
    shift = closure.directions @ (sizes * motions.numbers(random, 1, len(sizes), reach)[0])
    twists = motions.numbers(random, max(1, orders), len(sizes)) @ closure.directions.T
    moved = BaseMotion(start.pose @ exp(shift), twists, representation="body_fixed").in_representation(
        "spatial"
    )
    return [q, moved.pose, np.ascontiguousarray(moved.twists[:orders])]


def base_motion(leader: Sequence[Array]) -> BaseMotion | None:
    """Return pose and twists as the motion of a base."""
    if not leader:
        return None
    pose, twists = leader
    return BaseMotion(pose, twists if len(twists) else np.zeros((1, 6)))
