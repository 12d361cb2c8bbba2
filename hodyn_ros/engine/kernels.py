"""What the engine computes: recursions traced for one robot and one order, compiled, callable."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_out, finite_array
from hodyn_ros.engine.articulated import ArticulatedRecursion
from hodyn_ros.engine.canonical import canonical_bodies
from hodyn_ros.engine.fast_call import fast_call
from hodyn_ros.engine.llvm import MachineCode, compile_graph
from hodyn_ros.engine.object_cache import ObjectCache
from hodyn_ros.engine.recursion import Recursion
from hodyn_ros.engine.tracer import Graph
from hodyn_ros.errors import InputError
from hodyn_ros.model.drives import Drives
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.se3 import Array

Stack = list[list[Any]]
Shape = tuple[int, int]


class Kernel:
    """Compiled code with the shapes of its arguments and of its result.

    `function` is the fastest callable there is, `function(*arrays, out=None)`: everything about the arrays is
    checked in compiled code. `operations` counts the additions, multiplications and divisions of one call.
    """

    def __init__(
        self, code: MachineCode, arguments: Sequence[tuple[str, Shape]], result: Shape, operations: int
    ) -> None:
        self.code = code
        self.arguments = tuple(arguments)
        self.result = result
        self.operations = operations
        shapes = [shape for _, shape in arguments]
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(shapes) + 1))(code.address)
        self.function = fast_call(code.address, shapes, result, self._converted)

    def _converted(self, *arguments: ArrayLike, out: Array | None = None) -> Array:
        """Convert what is not an array yet, and explain what cannot be used."""
        if len(arguments) != len(self.arguments):
            names = [name for name, _ in self.arguments]
            raise InputError(f"expected {len(names)} arrays {names}, found {len(arguments)}")
        arrays = [
            finite_array(name, values, shape) for (name, shape), values in zip(self.arguments, arguments)
        ]
        if out is None:
            out = np.empty(self.result)
        else:
            check_out(out, self.result)
        self._call(*[array.ctypes.data for array in arrays], out.ctypes.data)
        return out


def compile_function(
    function: Callable[..., Sequence[Sequence[Any]]], arguments: Sequence[tuple[str, Shape]]
) -> Kernel:
    """Trace a function of stacks of scalars, with the names and shapes in `arguments`, and compile it."""
    graph = Graph()
    traced = [
        [[graph.input(a, row * columns + column) for column in range(columns)] for row in range(rows)]
        for a, (_, (rows, columns)) in enumerate(arguments)
    ]
    result = function(*traced)
    flat = [value for row in result for value in row]
    code = compile_graph(graph, flat, len(arguments), ObjectCache.default())
    return Kernel(code, arguments, (len(result), len(result[0])), graph.count_operations(flat))


def inverse_dynamics(model: TreeModel, order: int) -> Kernel:
    """Compile `q (order + 3, n) -> torques (order + 1, n)` of a robot with a fixed base."""

    def trace(q: Stack) -> Stack:
        recursion = Recursion(canonical_bodies(model), model.gravity.tolist())
        recursion.start(q[0], q[1])
        return [
            _scaled(factorial(k), recursion.inverse_dynamics(k, _scaled(1.0 / factorial(k), q[k + 2])))
            for k in range(order + 1)
        ]

    return compile_function(trace, [("q", (order + 3, model.n_joints))])


def forward_dynamics(model: TreeModel, order: int) -> Kernel:
    """Compile `state (2, n), torques (order + 1, n) -> accelerations by order (order + 1, n)`."""

    def trace(state: Stack, torques: Stack) -> Stack:
        recursion = ArticulatedRecursion(canonical_bodies(model), model.gravity.tolist())
        recursion.start(state[0], state[1])
        recursion.articulate()
        return [
            _scaled(factorial(k), recursion.forward_dynamics(k, _scaled(1.0 / factorial(k), torques[k])))
            for k in range(order + 1)
        ]

    return compile_function(trace, [("state", (2, model.n_joints)), ("torques", (order + 1, model.n_joints))])


def elastic_joint_step(model: TreeModel, drives: Drives) -> Kernel:
    """Compile one Runge-Kutta step of fourth order of a robot with elastic and rigid joints.

    `state (4, n)`: link positions and velocities, motor positions and velocities; `effort (1, n)` of the
    motors, held over the step; `step (1, 1)` [s]. Returns the next state (4, n). A rigid joint's motor moves
    with its link and adds its inertia there; Spong's model for elastic ones.
    """
    stiffness, inertia = drives.stiffness.tolist(), drives.motor_inertia.tolist()
    elastic = [bool(np.isfinite(k)) for k in stiffness]
    armature = [0.0 if e else b for e, b in zip(elastic, inertia)]
    bodies = canonical_bodies(model)
    joints = range(model.n_joints)

    def rates(state: Stack, effort: Sequence[Any]) -> Stack:
        q, qd, theta, thetad = state
        spring = [stiffness[j] * (theta[j] - q[j]) if elastic[j] else effort[j] for j in joints]
        recursion = ArticulatedRecursion(bodies, model.gravity.tolist(), armature)
        recursion.start(q, qd)
        recursion.articulate()
        qdd = recursion.forward_dynamics(0, spring)
        motor = [(effort[j] - spring[j]) * (1.0 / inertia[j]) if elastic[j] else qdd[j] for j in joints]
        return [qd, qdd, thetad, motor]

    def moved(state: Stack, step: Any, slopes: Stack) -> Stack:
        return [[x + step * slope for x, slope in zip(*rows)] for rows in zip(state, slopes)]

    def trace(state: Stack, effort: Stack, step: Stack) -> Stack:
        h = step[0][0]
        first = rates(state, effort[0])
        second = rates(moved(state, 0.5 * h, first), effort[0])
        third = rates(moved(state, 0.5 * h, second), effort[0])
        fourth = rates(moved(state, h, third), effort[0])
        mean = [
            [(a + 2.0 * b + 2.0 * c + d) * (1.0 / 6.0) for a, b, c, d in zip(*rows)]
            for rows in zip(first, second, third, fourth)
        ]
        return moved(state, h, mean)

    n = model.n_joints
    return compile_function(trace, [("state", (4, n)), ("effort", (1, n)), ("step", (1, 1))])


def _scaled(factor: float, values: Sequence[Any]) -> list[Any]:
    return [float(factor) * value for value in values]
