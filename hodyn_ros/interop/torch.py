"""Robots as custom operators of PyTorch, on the CPU, in float32 and float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.codegen.kernel import Kernel, Shape
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.extras import needed
from hodyn_ros.interop.robot_functions import DerivativeKernels, function_of
from hodyn_ros.lie.representations import Representation

_numbers = count()


def function(
    robot: Robot,
    what: str = "inverse_dynamics",
    order: int = 0,
    *,
    frames: Sequence[str | int] | None = None,
    representation: Representation = "spatial",
) -> Callable[..., Any]:
    """Return one operation of a robot without loops as a function of tensors on the CPU.

    `what`: "inverse_dynamics", "forward_dynamics", "forward_kinematics", "jacobian", "com", "mass_matrix",
    "coriolis_matrix" or "gravity_torque", with arguments and result of one order as of `Robot.compile`:
    inverse dynamics of order 0 takes q (3, n) and gives (1, n). Axes in front are those of a batch, and
    `torch.vmap` adds one; either way the kernels of batches compute it. Derivatives are exact, by autograd
    and by `torch.func` (`grad`, `jvp`, `jacrev`, `jacfwd`, `hessian`), up to the second. `torch.compile`
    keeps calls as they are. All numbers of the arguments count as independent.

    Raises InputError for what is not offered, and for numbers that are not finite.
    """
    torch = needed("torch")
    kernels = DerivativeKernels(function_of(robot, what, order, frames, representation))
    traced = kernels.function
    n, prefix = kernels.n_arguments, f"hodyn_ros::{what}_{next(_numbers)}"
    shapes, row = [shape for _, shape in traced.arguments], (1, n)
    result = traced.result[1]

    of = _Operators(
        value=_operator(torch, f"{prefix}_value", lambda: kernels.value, shapes, result),
        gradient=_operator(torch, f"{prefix}_gradient", lambda: kernels.gradient, [*shapes, result], row),
        change=_operator(torch, f"{prefix}_change", lambda: kernels.change, [*shapes, row], result),
        curvature=_operator(
            torch,
            f"{prefix}_curvature",
            lambda: kernels.curvature,
            [*shapes, result, row],
            (1, n + traced.size),
        ),
    )
    value = _differentiable(torch, of, shapes, result)

    def call(*arrays: Any) -> Any:
        tensors = [torch.as_tensor(array) for array in arrays]
        if len(tensors) != len(shapes) or any(tuple(x.shape[-2:]) != s for x, s in zip(tensors, shapes)):
            expected = ", ".join(f"{name} {shape}" for name, shape in traced.arguments)
            raise TypeError(f"{what} takes {expected}; found {[tuple(x.shape) for x in tensors]}")
        kind = tensors[0].dtype
        batch = torch.broadcast_shapes(*(x.shape[:-2] for x in tensors))
        return value.apply(*(x.expand(*batch, *x.shape[-2:]).to(kind) for x in tensors))

    return call


class _Operators(NamedTuple):
    """Custom operators of a function and its derivatives, as of `DerivativeKernels`."""

    value: Any
    gradient: Any
    change: Any
    curvature: Any


def _differentiable(torch: Any, of: _Operators, shapes: Sequence[Shape], result: Shape) -> Any:
    """Return a `torch.autograd.Function` of the value, in both modes, that can be differentiated twice."""
    sizes = [rows * columns for rows, columns in shapes]
    n = sum(sizes)

    def parts(gradient: Any) -> tuple[Any, ...]:
        """Cut gradients (..., 1, n) into those of the arguments."""
        cut = torch.split(gradient.squeeze(-2), sizes, dim=-1)
        return tuple(one.reshape(*one.shape[:-1], *shape) for one, shape in zip(cut, shapes))

    def joined(arrays: Sequence[Any], changes: Sequence[Any]) -> Any:
        """Return the direction (..., 1, n) of changes, of which there may be none of some arguments."""
        filled = [torch.zeros_like(x) if one is None else one for x, one in zip(arrays, changes)]
        return torch.cat([one.flatten(-2) for one in filled], dim=-1).unsqueeze(-2)

    def of_result(gradient: Any) -> Any:
        return gradient[..., n:].reshape(*gradient.shape[:-2], *result)

    def over_batch(function: Any) -> Any:
        def vmap(info: Any, in_dims: Any, *arrays: Any) -> tuple[Any, int]:
            moved = [x.unsqueeze(0) if dim is None else x.movedim(dim, 0) for x, dim in zip(arrays, in_dims)]
            axes = max(x.dim() for x in moved)
            wide = [x.reshape(x.shape[0], *[1] * (axes - x.dim()), *x.shape[1:]) for x in moved]
            batch = torch.broadcast_shapes(
                *(x.shape[:-2] for x in wide), (info.batch_size, *[1] * (axes - 3))
            )
            return function().apply(*(x.expand(*batch, *x.shape[-2:]) for x in wide)), 0

        return staticmethod(vmap)

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    class Change(torch.autograd.Function):  # type: ignore[misc,name-defined]
        setup_context = staticmethod(keep)
        vmap = over_batch(lambda: Change)

        @staticmethod
        def forward(*arrays: Any) -> Any:
            return of.change(list(arrays))

        @staticmethod
        def backward(ctx: Any, slope: Any) -> tuple[Any, ...]:
            *arrays, direction = ctx.saved_tensors
            curvature = of.curvature([*arrays, slope, direction])
            return *parts(curvature[..., :n]), Gradient.apply(*arrays, slope)

    class Gradient(torch.autograd.Function):  # type: ignore[misc,name-defined]
        setup_context = staticmethod(keep)
        vmap = over_batch(lambda: Gradient)

        @staticmethod
        def forward(*arrays: Any) -> Any:
            return of.gradient(list(arrays))

        @staticmethod
        def backward(ctx: Any, slope: Any) -> tuple[Any, ...]:
            curvature = Curvature.apply(*ctx.saved_tensors, slope)
            return *parts(curvature[..., :n]), of_result(curvature)

        @staticmethod
        def jvp(ctx: Any, *changes: Any) -> Any:
            *arrays, weights = ctx.saved_tensors
            change = Curvature.apply(*arrays, weights, joined(arrays, changes[:-1]))[..., :n]
            return change if changes[-1] is None else change + Gradient.apply(*arrays, changes[-1])

    class Curvature(torch.autograd.Function):  # type: ignore[misc,name-defined]
        setup_context = staticmethod(keep)
        vmap = over_batch(lambda: Curvature)

        @staticmethod
        def forward(*arrays: Any) -> Any:
            return of.curvature(list(arrays))

        @staticmethod
        def backward(ctx: Any, slope: Any) -> tuple[Any, ...]:
            raise NotImplementedError("third derivatives are not offered")

    class Value(torch.autograd.Function):  # type: ignore[misc,name-defined]
        setup_context = staticmethod(keep)
        vmap = over_batch(lambda: Value)

        @staticmethod
        def forward(*arrays: Any) -> Any:
            return of.value(list(arrays))

        @staticmethod
        def backward(ctx: Any, slope: Any) -> tuple[Any, ...]:
            return parts(Gradient.apply(*ctx.saved_tensors, slope))

        @staticmethod
        def jvp(ctx: Any, *changes: Any) -> Any:
            arrays = ctx.saved_tensors
            return Change.apply(*arrays, joined(arrays, changes))

    return Value


def _operator(
    torch: Any, name: str, kernel: Callable[[], Kernel], shapes: Sequence[Shape], result: Shape
) -> Any:
    """Return a custom operator of tensors (..., rows, columns), in a list."""
    made: list[Kernel] = []

    def compute(arrays: Sequence[Any]) -> Any:
        if not made:
            made.append(kernel())
        batch = arrays[0].shape[:-2]
        samples = [
            np.ascontiguousarray(x.detach().numpy()).reshape(-1, *shape) for x, shape in zip(arrays, shapes)
        ]
        out = torch.empty((*batch, *result), dtype=arrays[0].dtype)
        if out.numel():
            made[0].batch(*samples, out=out.numpy().reshape(-1, *result))
        return out

    operator = torch.library.custom_op(name, compute, mutates_args=(), schema="(Tensor[] arrays) -> Tensor")
    operator.register_fake(lambda arrays: arrays[0].new_empty((*arrays[0].shape[:-2], *result)))
    return operator
