"""The compiled code of this package, checked before it is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks import robots
from benchmarks.agreement import WrongNumbersError, check
from benchmarks.compiled_loop import compiled_call
from benchmarks.stopwatch import Array, Contender
from hodyn_ros import BaseMotion, Robot
from hodyn_ros.codegen.kernel import Function
from hodyn_ros.engine import kernels
from hodyn_ros.engine.kernel_spec import KernelSpec

SAMPLES = (
    16  # arguments that calls in compiled code take in turn; together they stay in the first-level cache
)
COPIES = 7  # of every kernel, at other places in memory


@dataclass(frozen=True, eq=False)
class Compiled:
    """Copies of a kernel, with arguments to run it on and the results that are right."""

    kernels: list[Function]
    arguments: list[Array]
    expected: Array

    def contender(self, name: str) -> Contender:
        """Return the kernel called in a compiled loop."""
        results = np.empty_like(self.expected)
        addresses = [kernel.code.address for kernel in self.kernels]
        return compiled_call(name, addresses, self.arguments, results, keep=self)


def inverse_dynamics(robot: Robot, order: int) -> Compiled:
    """Compile inverse dynamics and hold it against the published recursion in NumPy."""
    floating = robot.model.floating_base
    setting = KernelSpec(base="body_fixed" if floating else None)
    compiled = _copies(lambda: kernels.inverse_dynamics(robot.model, order, setting))
    for i, found in enumerate(compiled.expected):
        q, *base = (argument[i] for argument in compiled.arguments)
        if floating:
            motion = BaseMotion(base[0], base[1], representation="body_fixed")
            wrench, torques = robot.inverse_dynamics(q, base=motion, formulation="body_fixed")
            right = np.hstack([wrench, torques])
        else:
            right = np.asarray(robot.inverse_dynamics(q, formulation="body_fixed"))
        check(f"inverse dynamics of order {order} of {robot.model.name}", found, right)
    return compiled


def forward_dynamics(robot: Robot, order: int) -> Compiled:
    """Compile forward dynamics of a floating robot and hold it against its own inverse dynamics."""
    compiled = _copies(lambda: kernels.hybrid_dynamics(robot.model, order, KernelSpec(base="spatial")))
    for i, found in enumerate(compiled.expected):
        state, torques, pose, twist, wrench = (argument[i] for argument in compiled.arguments)
        motion = BaseMotion(pose, np.vstack([twist, found[:, :6]]))
        back = robot.inverse_dynamics(np.vstack([state, found[:, 6:]]), base=motion, formulation="body_fixed")
        # Torques of order k hold products of accelerations, which may be far larger than the torques.
        check(
            f"forward dynamics of order {order} of {robot.model.name}",
            np.hstack(back),
            np.hstack([wrench, torques]),
            scale=np.abs(found).max(axis=1),
        )
    return compiled


def _copies(build: Callable[[], object]) -> Compiled:
    rng = np.random.default_rng(7)
    copies = []
    for _ in range(COPIES):
        kernel = build()
        if not isinstance(kernel, Function):
            raise TypeError(f"{kernel} is not compiled")
        copies.append(kernel)
    arguments = [robots.samples(name, shape, SAMPLES, rng) for name, shape in copies[0].arguments]
    results = [np.array([kernel.function(*sample) for sample in zip(*arguments)]) for kernel in copies]
    for result in results[1:]:
        if not np.array_equal(result, results[0]):
            raise WrongNumbersError("two copies of a kernel differ")
    return Compiled(copies, arguments, results[0])
