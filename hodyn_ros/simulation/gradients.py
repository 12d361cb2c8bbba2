"""Derivatives of a simulated motion by its start, its efforts and all parameters of the robot: one pass back.

A motion is simulated by Runge-Kutta steps of fourth order; derivatives of what is computed from it pass back
through the same steps (A. Griewank & A. Walther, "Evaluating Derivatives" (2008), chapter 3), exactly, in
time that does not grow with the number of parameters.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_result, finite_array, real_array
from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, TooLong, straight_line
from hodyn_ros.codegen.program import Copy, For, Index, Program, Run, Statement, View, arrays, integer
from hodyn_ros.codegen.program_llvm import CompiledProgram, compile_program
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine import parametric
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.lie.se3 import Array


@dataclass(frozen=True, eq=False)
class MotionParameters:
    """What a simulated motion depends on besides its start and its efforts; derivatives by these likewise.

    `bodies` (bodies, 10): mass m [kg], first moment m r (3) [kg m] and inertia Ixx, Iyy, Izz, Ixy, Ixz, Iyz
    [kg m^2] of each, in its axes about its origin, as `Robot.dynamic_parameters`. `displacements` (bodies, 3)
    [m]: by how much the joint of each, with all beyond it, is moved in its parent, in axes of the parent's
    body or the world: lengths of links. By joint (n,): `motor_inertia` B [kg m^2 or kg], reflected to the
    link, viscous `link_friction`, and where joints are elastic `motor_friction` [N m s/rad or N s/m],
    `stiffness` [N m/rad or N/m] and `spring_damping` [N m s/rad or N s/m], all on the link side.
    """

    bodies: Array
    displacements: Array
    motor_inertia: Array
    link_friction: Array
    motor_friction: Array
    stiffness: Array
    spring_damping: Array

    @classmethod
    def of(cls, robot: Robot) -> MotionParameters:
        """Return those of a robot: masses and, where it has drives, motor inertias and linear springs.

        Nothing is damped and without friction. Raises InputError for drives of other kinds.
        """
        n, train = robot.model.n_joints, robot.drive_train
        zeros = np.zeros(n)
        inertia, stiffness = zeros, np.full(n, np.inf)
        if train is not None:
            if not train.linear_springs or train.n_motors != n:
                raise InputError(
                    f"robot {robot.name!r} has springs that are not linear, or joints with two motors; "
                    "give the parameters of linear ones"
                )
            inertia, stiffness = train.motor_inertia, train.stiffness
        bodies = robot.dynamic_parameters().reshape(-1, 10)
        moved = np.zeros((robot.model.n_bodies, 3))
        return cls(bodies, moved, inertia, zeros, zeros, stiffness, zeros)


@dataclass(frozen=True, eq=False)
class MotionGradient:
    """Derivatives by the start (2, w), by the efforts (N, n) of each step, and by the parameters."""

    start: Array
    efforts: Array
    parameters: MotionParameters


class ParametricSimulation:
    """Motions of a robot on the ground, without loops, under efforts of its motors that steps hold.

    With elastic joints the state has w = 2 n columns, joints and then motors, whose positions are those on
    the link side; else w = n. Either all joints are elastic or none is.
    """

    def __init__(self, robot: Robot, *, elastic: bool | None = None) -> None:
        """Prepare; `elastic`: by default whether the robot's drives have springs.

        Raises InputError for robots with loops or on floating bases, and for some joints elastic alone.
        """
        if not robot.is_arm:
            raise InputError(
                f"robot {robot.name!r} has loops or a floating base; derivatives of simulated motions are of "
                "robots on the ground without loops"
            )
        train = robot.drive_train
        if elastic is None and train is not None and train.elastic.any() != train.elastic.all():
            raise InputError(
                f"some joints of robot {robot.name!r} are elastic and others rigid; say elastic=True and "
                "give the stiffness of all, or elastic=False"
            )
        self.robot, self._n = robot, robot.model.n_joints
        self.elastic = bool(train is not None and train.elastic.all()) if elastic is None else elastic
        self.width = 2 * self._n if self.elastic else self._n

    def simulate(
        self, start: ArrayLike, efforts: ArrayLike, step: float, parameters: MotionParameters
    ) -> Array:
        """Return the states (N + 1, 2, w), positions and velocities, from `start` (2, w).

        `efforts` (N, n) of the motors [N m or N], on the link side; `step` [s] between two of them.
        """
        first, held, parts = self._checked(start, efforts, step, parameters)
        states = np.empty((len(held) + 1, 2, self.width))
        states[0] = first
        self._run(self._forward, [states, held, *parts], len(held))
        check_result(states)
        return states

    def gradient(
        self, states: Array, efforts: ArrayLike, step: float, parameters: MotionParameters, slopes: ArrayLike
    ) -> MotionGradient:
        """Return the derivatives of a figure of a motion, which `simulate` returned as `states`.

        `slopes` (N + 1, 2, w): its derivatives by each state, as if these did not depend on each other.
        """
        _, held, parts = self._checked(states[0], efforts, step, parameters)
        if states.shape != (len(held) + 1, 2, self.width):
            raise ShapeError("the states", (len(held) + 1, 2, self.width), states.shape)
        by_state = finite_array("the slopes", slopes, states.shape)
        count = parametric.figures(self.robot.model, self.elastic)
        slope, sums, by_effort = by_state[-1].copy(), np.zeros(count), np.empty_like(held)
        motion = np.ascontiguousarray(states)
        self._run(self._backward, [motion, held, *parts, by_state, slope, sums, by_effort], len(held))
        check_result(slope, sums, by_effort)
        return MotionGradient(slope, by_effort, self._parted(sums))

    def _checked(
        self, start: ArrayLike, efforts: ArrayLike, step: float, parameters: MotionParameters
    ) -> tuple[Array, Array, list[Array]]:
        first = finite_array("the start", start, (2, self.width))
        held = real_array("the efforts", efforts, f"(N, {self._n})")
        held = finite_array("the efforts", held, (len(held), self._n))
        if not 0.0 < step < np.inf:
            raise InputError(f"the step must be positive and finite, found {step!r} s")
        n_bodies = self.robot.model.n_bodies
        bodies = np.hstack(
            [
                finite_array("the bodies", parameters.bodies, (n_bodies, 10)),
                finite_array("the displacements", parameters.displacements, (n_bodies, 3)),
            ]
        )
        drives = [
            finite_array(f"the {name.replace('_', ' ')}", getattr(parameters, name), (self._n,))
            for name in self._of_drives
        ]
        return first, held, [np.array([[step]]), bodies, np.stack(drives)]

    @property
    def _of_drives(self) -> list[str]:
        """The parameters of drives that count, as `parametric.step` takes them."""
        names = [one.name for one in fields(MotionParameters)][2:]
        return names[: parametric.ELASTIC if self.elastic else parametric.RIGID]

    def _parted(self, sums: Array) -> MotionParameters:
        n_bodies = self.robot.model.n_bodies
        count = n_bodies * (parametric.DYNAMIC + parametric.PLACED)
        bodies, drives = sums[:count].reshape(n_bodies, -1), sums[count:].reshape(-1, self._n)
        rest = np.zeros((parametric.ELASTIC - len(drives), self._n))
        return MotionParameters(bodies[:, :10], bodies[:, 10:], *drives, *rest)

    @cached_property
    def _forward(self) -> CompiledProgram:
        """`f(states, efforts, step, bodies, drives, count)`."""
        i, count, w = integer("i"), integer("count"), 2 * self.width
        states, efforts, *figures = arrays(("states", "efforts", "step", "bodies", "drives"))
        law, arguments = parametric.step(self.robot.model, self.elastic)
        one = self._compiled(law, arguments)
        call = Run(one, [states.at(i * w), efforts.at(i * self._n), *figures, states.at((i + 1) * w)])
        views: list[View | Index] = [states, efforts, *figures, count]
        return compile_program(Program("hodyn_motion", views, {}, [For(i, count, [call])]))

    @cached_property
    def _backward(self) -> CompiledProgram:
        """`f(states, efforts, step, bodies, drives, slopes, slope, sums, by_effort, count)`."""
        i, count, w, n = integer("i"), integer("count"), 2 * self.width, self._n
        names = "states", "efforts", "step", "bodies", "drives", "slopes", "slope", "sums", "by_effort", "row"
        states, efforts, *inputs, slopes, slope, sums, by_effort, row = arrays(names)
        law, arguments = parametric.step_back(self.robot.model, self.elastic)
        one = self._compiled(law, arguments)
        place, figures = count - 1 - i, parametric.figures(self.robot.model, self.elastic)
        moved = [states.at(place * w), efforts.at(place * n), *inputs, slope, slopes.at(place * w), sums]
        body: list[Statement] = [
            Run(one, [*moved, row]),
            Copy(slope, row, w),
            Copy(by_effort.at(place * n), row.at(w), n),
            Copy(sums, row.at(w + n), figures),
        ]
        views: list[View | Index] = [states, efforts, *inputs, slopes, slope, sums, by_effort, count]
        local = {"row": w + n + figures}
        return compile_program(Program("hodyn_back", views, local, [For(i, count, body)]))

    def _compiled(self, law: Any, arguments: Any) -> Any:
        try:
            return straight_line(law, [shape for _, shape in arguments], STRAIGHT_LINE_LIMIT)
        except TooLong:
            raise InputError(
                f"robot {self.robot.name!r} is too large for derivatives of simulated motions"
            ) from None

    @staticmethod
    def _run(program: CompiledProgram, arguments: list[Array], count: int) -> None:
        kinds = [*[ctypes.c_void_p] * len(arguments), ctypes.c_int64]
        call = ctypes.CFUNCTYPE(None, *kinds)(program.address)
        call(*(array.ctypes.data for array in arguments), count)
