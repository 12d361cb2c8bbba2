"""Where a robot with more drives than coordinates is, and what of their efforts moves it.

The positions of its driven joints contradict each other by the noise of their encoders. So its motion is the
one nearest to theirs: Gauss and Newton on the coordinates y, joints and the pose of a platform, with
`q_a' = J y'`; their velocities and accelerations follow by the same J. The drives strain each other with the
part of their efforts that moves nothing, `1 - J J^+`, which no motion shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel, Shape, Stack, Traceable
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.series.vectors import add, cross, dot, scale, times
from hodyn_ros.errors import ConvergenceError
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.loops import ROWS
from hodyn_ros.observers.layout import Layout

Row = list[Any]  # numbers, or scalars of the tracer

ITERATIONS = 20
ARRIVED = 1e-20  # square of the last step [rad or m]; that of velocities counts over 0.1 s
_TIME = 0.1  # [s]


class FitEquations:
    """What improves the motion of the coordinates, as a traced function without a memory of its own.

    Attributes:
        memory: Layout of what goes from call to call: joints that are coordinates by order (3, k), the pose
            of a platform (4, 4), the rates of its rows (2, r), its spatial twists (2, 6), the matrix (n, n)
            that takes efforts to their part that moves the robot, and the square of the last step.
    """

    def __init__(self, closure: Closure) -> None:
        self._joints, self._n = len(closure.joints), len(closure.driven)
        platform = closure.platform
        self._rows = [] if platform is None else [ROWS.index(row) for row in platform.rows]
        placed = {} if platform is None else {"pose": 16, "rates": 2 * len(self._rows), "twists": 12}
        self.memory = Layout(q=3 * self._joints, **placed, moves=self._n**2, error=1)

    def start(self, home: tuple[Array, Array | None]) -> Array:
        """Return the memory (1, k) of a robot at rest, where its joints and its platform are at home."""
        q, pose = home
        known = {"q": [*q.tolist(), *[0.0] * (2 * self._joints)]}
        if pose is not None:
            known["pose"] = pose.ravel().tolist()
        return np.array([self.memory.pack({**self.memory.unpack([0.0] * self.memory.size), **known})])

    def trace(self) -> Traceable:
        """Return what is compiled: `wanted (3, n), there (3, n), J (n, k), memory -> memory`.

        `wanted` is the motion of the driven joints as measured, `there` that of the motion in the memory.
        """
        n, k = self._n, self._joints + len(self._rows)
        shapes: list[tuple[str, Shape]] = [
            ("wanted", (3, n)), ("there", (3, n)), ("J", (n, k)), ("memory", (1, self.memory.size)),
        ]  # fmt: skip

        def trace(wanted: Stack, there: Stack, jacobian: Stack, memory: Stack) -> Stack:
            before = self.memory.unpack(memory[0])
            apart = [[a - b for a, b in zip(*rows)] for rows in zip(wanted, there)]
            steps, moves = least_squares(jacobian, apart)
            joints = range(self._joints)
            q = [before["q"][self._joints * k + j] + steps[k][j] for k in range(3) for j in joints]
            now = {"q": q, "moves": moves}
            if "pose" in self.memory:
                now |= self._platform(before, [step[self._joints :] for step in steps])
            sizes = [dot(step, step) * _TIME ** (2 * order) for order, step in enumerate(steps)]
            return [self.memory.pack({**now, "error": [sizes[0] + sizes[1] + sizes[2]]})]

        return trace, shapes

    def _platform(self, before: dict[str, Row], steps: Sequence[Row]) -> dict[str, Row]:
        """Return pose, rates and twists of the platform after steps of its rows by order."""
        count = len(self._rows)
        turn, shift = self._twist(steps[0])
        pose = [before["pose"][4 * i : 4 * i + 4] for i in range(4)]
        axes, origin = [tuple(row[:3]) for row in pose[:3]], tuple(row[3] for row in pose[:3])
        origin = add(origin, times(axes, shift))
        if any(row < 3 for row in self._rows):
            axes = _turned(axes, scale(0.5, turn))
        rates = [
            [before["rates"][count * order + i] + steps[order + 1][i] for i in range(count)]
            for order in range(2)
        ]
        twists: Row = []
        for rate in rates:  # Ad of the body-fixed one; of its derivative as well, as that commutes with it
            spin, velocity = (times(axes, part) for part in self._twist(rate))
            twists += [*spin, *add(velocity, cross(origin, spin))]
        rows = [[*row, x] for row, x in zip(axes, origin)]
        return {
            "pose": [*rows[0], *rows[1], *rows[2], 0.0, 0.0, 0.0, 1.0],
            "rates": [*rates[0], *rates[1]],
            "twists": twists,
        }

    def _twist(self, rates: Row) -> tuple[Any, Any]:
        whole: Row = [0.0] * 6
        for row, rate in zip(self._rows, rates):
            whole[row] = rate
        return tuple(whole[:3]), tuple(whole[3:])


class DriveFit:
    """Fits the motion of a robot to that of its drives, from sample to sample."""

    def __init__(self, robot: Robot) -> None:
        closure = robot.structure
        twin = robot.apart()
        self._name, self._driven = robot.name, list(closure.driven)
        self._motion, self._efforts = twin.compile(2, "joint_motion"), twin.compile(0)
        self._jacobian = twin.compile(0, "drive_jacobian")
        equations = FitEquations(closure)
        self._memory, self._layout = equations.start(robot.home), equations.memory
        self._improve = Kernel(*equations.trace()).function
        self._k, self._places = len(closure.joints), closure.platform is not None

    def __call__(self, wanted: Array) -> tuple[Array, Array]:
        """Return the efforts of least norm (n,) that a motion (3, n) of the driven joints needs, and `J J^+`.

        Raises ConvergenceError where no motion is near.
        """
        memory = self._memory
        for _ in range(ITERATIONS):
            q, *placed = self._coordinates(memory)
            there = np.ascontiguousarray(self._motion(*self._taken(q, placed))[:, self._driven])
            pose = [] if not placed else [placed[0], placed[1][:0]]
            memory = self._improve(wanted, there, self._jacobian(q[:1], *pose), memory)
            if memory.item(memory.size - 1) < ARRIVED:
                break
        else:
            raise ConvergenceError(
                f"no motion of robot {self._name!r} is near the positions {wanted[0]} of its driven joints",
                0.0,
                memory.item(memory.size - 1) ** 0.5,
            )
        self._memory = memory
        q, *placed = self._coordinates(memory)
        moves = memory[0, self._layout["moves"]].reshape(len(self._driven), -1)
        return self._efforts(*self._taken(q, placed))[0], moves

    def _coordinates(self, memory: Array) -> list[Array]:
        """Return the motion of joints that are coordinates (3, k), and pose and twists of a platform."""
        row = memory[0]
        q = row[self._layout["q"]].reshape(3, self._k)
        if not self._places:
            return [q]
        return [q, row[self._layout["pose"]].reshape(4, 4), row[self._layout["twists"]].reshape(2, 6)]

    def _taken(self, q: Array, placed: Sequence[Array]) -> list[Array]:
        """Return what calls take that leave q out where no joint is a coordinate."""
        return [*([q] if self._k else []), *placed]


def least_squares(matrix: Stack, right: Sequence[Row]) -> tuple[list[Row], Row]:
    """Return the least squares `A^+ b` of several b, and `A A^+` row by row.

    By the modified process of Gram and Schmidt on `[A, b]`, which is backward stable (Bjoerck, BIT 7, 1967).
    """
    columns, rest = [list(column) for column in zip(*matrix)], [list(b) for b in right]
    size, basis = len(columns), []
    upper: dict[tuple[int, int], Any] = {}
    shares: list[Row] = [[] for _ in rest]
    for i in range(size):
        upper[i, i] = dot(columns[i], columns[i]) ** 0.5
        unit = [value / upper[i, i] for value in columns[i]]
        basis.append(unit)
        for j in range(i + 1, size):
            upper[i, j] = dot(unit, columns[j])
            columns[j] = [a - upper[i, j] * b for a, b in zip(columns[j], unit)]
        for b, share in zip(rest, shares):
            share.append(dot(unit, b))
            b[:] = [a - share[i] * c for a, c in zip(b, unit)]
    solutions = []
    for share in shares:
        x: Row = [0.0] * size
        for i in reversed(range(size)):
            left = share[i]
            for j in range(i + 1, size):
                left = left - upper[i, j] * x[j]
            x[i] = left / upper[i, i]
        solutions.append(x)
    pairs = [dot(a, b) for a in zip(*basis) for b in zip(*basis)]
    return solutions, pairs


def _turned(axes: Sequence[Any], c: Any) -> list[Any]:
    """Return axes (rows of a rotation R) after the body-fixed turn with Rodrigues parameters c.

    With a step towards orthonormal axes, lest millions of turns add up their rounding.
    """
    share = 2.0 / (1.0 + dot(c, c))
    rows = []
    for row in axes:  # x R = x + share (x x c + (x x c) x c) of a row x
        around = cross(row, c)
        rows.append(add(row, scale(share, add(around, cross(around, c)))))
    products = [[dot(a, b) for b in rows] for a in rows]
    return [
        tuple(1.5 * x - 0.5 * sum(products[i][j] * rows[j][m] for j in range(3)) for m, x in enumerate(row))
        for i, row in enumerate(rows)
    ]
