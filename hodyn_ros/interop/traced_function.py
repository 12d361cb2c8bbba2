"""An operation of a robot as a traced function of its arguments, with derivatives by every number in them.

What other libraries differentiate is a function of arrays: all numbers of its arguments count as independent,
the entries of a pose too. Derivatives are traced with `hodyn_ros.codegen.differentiate`, or by a law of their
own where that takes fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hodyn_ros.codegen.differentiate import Scalar, derivatives, gradient
from hodyn_ros.codegen.kernel import Shape, Stack
from hodyn_ros.codegen.tracer import Graph, Traced
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS, Operation
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.kernels import KernelSpec
from hodyn_ros.engine.second_partials import Coordinates, has_many_entries, hessian
from hodyn_ros.errors import InputError
from hodyn_ros.lie.representations import Representation, check_representation

Matrix = list[list[Scalar]]  # by rows

# by the law of an operation of a tree, or as `hodyn_ros.engine.kernels` has them
OFFERED = (
    "inverse_dynamics",
    "forward_dynamics",
    "forward_kinematics",
    "jacobian",
    "com",
    "mass_matrix",
    "coriolis_matrix",
    "gravity_torque",
)
_RESULTS = {
    "inverse_dynamics": "tau",
    "forward_dynamics": "acceleration",
    "forward_kinematics": "frames",
    "gravity_torque": "gravity",
    "mass_matrix": "mass",
    "coriolis_matrix": "coriolis",
}


@dataclass(frozen=True)
class TracedFunction:
    """`name(arguments) -> result`, all matrices by rows.

    `law` is traced. Where there are such laws, `jacobian_law` returns rows of the derivatives of each row of
    the result by each row of the arguments, and `hessian_law`, which takes a multiplier last, rows of the
    second derivatives by each two of them.
    """

    name: str
    arguments: tuple[tuple[str, Shape], ...]
    result: tuple[str, Shape]
    law: Callable[..., Stack]
    jacobian_law: Callable[..., Stack] | None = None
    hessian_law: Callable[..., Stack] | None = None

    @classmethod
    def of(
        cls,
        robot: Robot,
        what: str,
        order: int,
        frames: Sequence[str | int] | None = None,
        representation: Representation = "spatial",
    ) -> TracedFunction:
        """Return an operation of a robot without loops, with arguments as of `Robot.compile`.

        Raises InputError for what is not offered.
        """
        if what not in OFFERED:
            raise InputError(f"there is no {what!r} for other libraries; choose one of {', '.join(OFFERED)}")
        if isinstance(order, bool) or not isinstance(order, int) or order < 0:
            raise InputError(f"the order must be 0 or a positive integer, found {order!r}")
        if robot.closure is not None:
            raise InputError(
                f"robot {robot.name!r} has couplings or loops, whose positions are found by iteration; "
                "functions for other libraries are of robots without"
            )
        check_representation(representation)
        operation, model = OPERATIONS[what], robot.model
        if frames is not None and operation.frames == "none":
            raise InputError(f"{what} has no frames; leave them out")
        law, arguments, names = law_of(robot, operation, order, frames, representation)
        jacobian_law, hessian_law = None, None
        if what in ("inverse_dynamics", "forward_dynamics") and not model.floating_base:
            jacobian_law = OPERATIONS[f"{what}_derivatives"].tree_law(model, order)[0]
            if what == "forward_dynamics" and not has_many_entries(model, order, "hybrid contracted"):
                hessian_law = OPERATIONS[f"{what}_hessian"].tree_law(model, order)[0]
        shapes = tuple((name, shape) for name, (_, shape) in zip(names, arguments))
        _, stacks = _inputs([shape for _, shape in shapes])
        found = law(*stacks)
        result = _RESULTS.get(what, what), (len(found), len(found[0]))
        return cls(what, shapes, result, law, jacobian_law, hessian_law)

    @property
    def sizes(self) -> list[int]:
        """How many numbers each argument holds."""
        return [rows * columns for _, (rows, columns) in self.arguments]

    @property
    def size(self) -> int:
        """How many numbers the result holds."""
        rows, columns = self.result[1]
        return rows * columns

    def start(self, *further: Shape) -> tuple[Graph, list[Stack]]:
        """Return a graph with scalars for all arguments, and for `further` ones after them."""
        return _inputs([*(shape for _, shape in self.arguments), *further])

    def values(self, stacks: Sequence[Stack]) -> list[Scalar]:
        """Return the numbers of the result."""
        return _flat(self.law(*stacks))

    def jacobian(self, graph: Graph, stacks: Sequence[Stack]) -> Matrix:
        """Return the derivatives of all numbers of the result by all of the arguments."""
        inputs = [x for stack in stacks for x in _flat(stack)]
        if self.jacobian_law is None:
            values = self.values(stacks)
            columns = [derivatives(graph, values, {x.number: 1.0}) for x in inputs]
            return [list(row) for row in zip(*columns)]
        rows = self.jacobian_law(*stacks)
        n = self.result[1][1]
        orders = len(inputs) // n
        return [
            [x for k in range(orders) for x in rows[(r * orders + k) * n + i]]
            for r in range(self.result[1][0])
            for i in range(n)
        ]

    def gradient(self, graph: Graph, stacks: Sequence[Stack], weights: Sequence[Scalar]) -> list[Scalar]:
        """Return the derivatives of `weights · result` by all numbers of the arguments."""
        inputs = [x for stack in stacks for x in _flat(stack)]
        return gradient(graph, self.values(stacks), weights, inputs)

    def change(self, graph: Graph, stacks: Sequence[Stack], changes: Sequence[Scalar]) -> list[Scalar]:
        """Return how the result changes where the numbers of the arguments do."""
        inputs = [x for stack in stacks for x in _flat(stack)]
        return derivatives(graph, self.values(stacks), {x.number: c for x, c in zip(inputs, changes)})

    def hessian(self, graph: Graph, stacks: Sequence[Stack], weights: Sequence[Scalar]) -> Matrix:
        """Return the second derivatives of `weights · result` by all numbers of the arguments."""
        rows = [row for stack in stacks for row in stack]
        if self.hessian_law is not None:
            n = self.result[1][1]
            multiplier = [list(weights[i : i + n]) for i in range(0, len(weights), n)]
            blocks = self.hessian_law(*stacks, multiplier)
            return [
                [x for l in range(len(rows)) for x in blocks[(k * len(rows) + l) * n + i]]
                for k in range(len(rows))
                for i in range(n)
            ]
        # derivatives of lower order come second, as more depends on them
        order = [x.number for row in reversed(rows) for x in row]
        place = {number: i for i, number in enumerate(order)}
        by = Coordinates([[{number: 1.0} for number in order]])
        ((found,),) = hessian(graph, self.values(stacks), weights, by)
        own = [place[x.number] for row in rows for x in row]
        return [[found[i][j] for j in own] for i in own]


def law_of(
    robot: Robot,
    operation: Operation,
    order: int,
    frames: Sequence[str | int] | None,
    representation: Representation,
) -> tuple[Callable[..., Stack], list[tuple[str, Shape]], list[str]]:
    """Return what is traced of a tree, with its arguments and short names of these."""
    model, state = robot.model, operation.takes == "state"
    further: tuple[Any, ...] = (KernelSpec.of(model),)
    if not operation.kernel:
        of = operation.of_frames(frames, model.body_names, representation)
        further = placed(model, robot.frames, of)
    law, arguments = operation.tree_law(model, order, *further)
    names = ["state", "tau"] if state else ["q"]
    if model.floating_base:
        names += ["pose", "twist", "base_wrench"] if state else ["pose", "twists"]
    return law, arguments, [*names, *(["multiplier"] if operation.weighted else [])]


def _inputs(shapes: Sequence[Shape]) -> tuple[Graph, list[Stack]]:
    graph = Graph()
    stacks: list[Stack] = [
        [[graph.input(a, row * columns + column) for column in range(columns)] for row in range(rows)]
        for a, (rows, columns) in enumerate(shapes)
    ]
    return graph, stacks


def _flat(stack: Stack) -> list[Scalar]:
    return [x for row in stack for x in row]


def is_zero(x: Scalar) -> bool:
    """Whether a scalar is zero whatever the arguments are."""
    return not isinstance(x, Traced) and float(x) == 0.0
