"""Robots as custom operators of PyTorch, on the CPU, in float32 and float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from hodyn_ros.codegen.kernel import Kernel, Shape
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.interop.kernels import DerivativeKernels
from hodyn_ros.interop.needed import needed
from hodyn_ros.interop.traced_function import TracedFunction
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
    `torch.vmap` adds one; either way the kernels of batches compute it. Gradients are exact and may be
    differentiated once more (`create_graph=True`, `torch.func.jacrev` of `jacrev`); PyTorch's forward mode
    does not know custom operators. `torch.compile` keeps the call as it is. All numbers of the arguments
    count as independent.

    Raises InputError for what is not offered, and for numbers that are not finite.
    """
    torch = needed("torch")
    kernels = DerivativeKernels(TracedFunction.of(robot, what, order, frames, representation))
    traced = kernels.function
    n, prefix = kernels.n_arguments, f"hodyn_ros::{what}_{next(_numbers)}"
    shapes, row = [shape for _, shape in traced.arguments], (1, n)
    result = traced.result[1]

    curvature = _operator(
        torch, f"{prefix}_curvature", lambda: kernels.curvature, [*shapes, result, row], (1, n + traced.size)
    )
    gradient = _operator(torch, f"{prefix}_gradient", lambda: kernels.gradient, [*shapes, result], row)
    value = _operator(torch, f"{prefix}_value", lambda: kernels.value, shapes, result)

    def parts(flat: Any) -> list[Any]:
        """Cut gradients (..., 1, n) into those of the arguments."""
        cut = torch.split(flat.squeeze(-2), traced.sizes, dim=-1)
        return [one.reshape(*one.shape[:-1], *shape) for one, shape in zip(cut, shapes)]

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[0])

    def backward_of_value(ctx: Any, slope: Any) -> list[Any]:
        return parts(gradient([*ctx.saved_tensors, slope.contiguous()]))

    def backward_of_gradient(ctx: Any, slope: Any) -> list[Any]:
        found = curvature([*ctx.saved_tensors, slope.contiguous()])
        by_weights = found[..., n:]
        return [*parts(found[..., :n]), by_weights.reshape(*by_weights.shape[:-2], *result)]

    value.register_autograd(backward_of_value, setup_context=keep)
    gradient.register_autograd(backward_of_gradient, setup_context=keep)

    def call(*arrays: Any) -> Any:
        found = [torch.as_tensor(array) for array in arrays]
        if len(found) != len(shapes) or any(tuple(x.shape[-2:]) != s for x, s in zip(found, shapes)):
            expected = ", ".join(f"{name} {shape}" for name, shape in traced.arguments)
            raise TypeError(f"{what} takes {expected}; found {[tuple(x.shape) for x in found]}")
        kind = found[0].dtype
        batch = torch.broadcast_shapes(*(x.shape[:-2] for x in found))
        return value([x.expand(*batch, *x.shape[-2:]).to(kind) for x in found])

    return call


def _operator(
    torch: Any, name: str, kernel: Callable[[], Kernel], shapes: Sequence[Shape], result: Shape
) -> Any:
    """Return a custom operator of tensors (..., rows, columns), in a list."""
    made: list[Kernel] = []

    def compute(arrays: Sequence[Any]) -> Any:
        if not made:
            made.append(kernel())
        batch = arrays[0].shape[:-2]
        flat = [
            np.ascontiguousarray(x.detach().numpy()).reshape(-1, *shape) for x, shape in zip(arrays, shapes)
        ]
        out = torch.empty((*batch, *result), dtype=arrays[0].dtype)
        if out.numel():
            made[0].batch(*flat, out=out.numpy().reshape(-1, *result))
        return out

    operator = torch.library.custom_op(name, compute, mutates_args=(), schema="(Tensor[] arrays) -> Tensor")
    operator.register_fake(lambda arrays: arrays[0].new_empty((*arrays[0].shape[:-2], *result)))

    def over_batch(info: Any, in_dims: Any, arrays: Sequence[Any]) -> tuple[Any, int]:
        moved = []
        for x, dim in zip(arrays, in_dims[0]):
            first = x.unsqueeze(0) if dim is None else x.movedim(dim, 0)
            moved.append(first.expand(info.batch_size, *first.shape[1:]))
        return operator(moved), 0

    operator.register_vmap(over_batch)
    return operator
