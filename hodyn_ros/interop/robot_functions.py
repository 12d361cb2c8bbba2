"""Operations of a robot as traced functions, which other libraries differentiate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from hodyn_ros.codegen.kernel import Kernel, Shape, Stack, inputs_of
from hodyn_ros.dynamics.motion_stack import whole_order
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS, Operation
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.engine.second_partials import has_many_entries
from hodyn_ros.engine.traced_function import TracedFunction
from hodyn_ros.errors import InputError
from hodyn_ros.lie.representations import Representation, check_representation

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


def function_of(
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
    order = whole_order(order)
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
        jacobian_law = OPERATIONS[f"{what}_derivatives"].law("tree")(model, order)[0]
        if what == "forward_dynamics" and not has_many_entries(model, order, "hybrid contracted"):
            hessian_law = OPERATIONS[f"{what}_hessian"].law("tree")(model, order)[0]
    shapes = tuple((name, shape) for name, (_, shape) in zip(names, arguments))
    _, stacks = inputs_of([shape for _, shape in shapes])
    values = law(*stacks)
    result = operation.in_c or "frames", (len(values), len(values[0]))
    return TracedFunction(what, shapes, result, law, jacobian_law, hessian_law)


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
    law, arguments = operation.law("tree")(model, order, *further)
    names = ["state", "tau"] if state else ["q"]
    if model.floating_base:
        names += ["pose", "twist", "base_wrench"] if state else ["pose", "twists"]
    return law, arguments, [*names, *(["multiplier"] if operation.weighted else [])]


_MOST_SECOND = 60_000  # second derivatives that are compiled


class DerivativeKernels:
    """`value`, `jacobian` and `second` of a traced function, as kernels of single samples and batches.

    Rows of `jacobian` (result, arguments) are of the numbers of the result, those of `second` (result
    arguments, arguments) of the matrices of second derivatives of each of them. `gradient`, `change`
    and `curvature` are what reverse and forward mode need.
    """

    def __init__(self, function: TracedFunction) -> None:
        self.function = function
        self.n_arguments = sum(function.sizes)
        self._weights = "the weights", function.result[1]
        self._direction = "the direction", (1, self.n_arguments)

    @cached_property
    def value(self) -> Kernel:
        """The function itself."""
        return self._kernel(self.function.law)

    @cached_property
    def jacobian(self) -> Kernel:
        """The derivatives of all numbers of the result by all of the arguments."""
        return self._kernel(self.function.jacobian)

    @cached_property
    def gradient(self) -> Kernel:
        """The derivatives (1, arguments) of weights · result; the weights come last."""
        return self._kernel(self.function.gradient, self._weights)

    @cached_property
    def change(self) -> Kernel:
        """How the result changes in a direction (1, arguments), which comes last."""
        return self._kernel(self.function.change, self._direction)

    @cached_property
    def curvature(self) -> Kernel:
        """How that gradient changes in a direction, which comes last: (1, arguments), and then the result."""
        return self._kernel(self.function.curvature, self._weights, self._direction)

    @cached_property
    def second(self) -> Kernel:
        """The second derivatives of all numbers of the result by all pairs of numbers of the arguments."""
        entries = self.function.size * self.n_arguments**2
        if entries > _MOST_SECOND:
            raise InputError(
                f"{self.function.name} has {entries} second derivatives, and {_MOST_SECOND} are the most "
                "that are compiled; differentiate it once, or take a smaller robot or a lower order"
            )
        return self._kernel(self.function.second)

    def _kernel(self, trace: Callable[..., Stack], *further: tuple[str, Shape]) -> Kernel:
        return Kernel(trace, [*self.function.arguments, *further])
