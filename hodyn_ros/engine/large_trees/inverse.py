"""Inverse dynamics of trees of any size: the recursion in loops over bodies, compiled once per order.

The code depends on the order alone, and serves every robot. It takes about twice the time of straight-line
code per body.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hodyn_ros.codegen.kernel import Function, Shape, Stack
from hodyn_ros.codegen.llvm import MachineCode
from hodyn_ros.codegen.object_cache import KEPT
from hodyn_ros.codegen.program import Code, Copy, Index, Program, Run, Statement, arrays
from hodyn_ros.codegen.program_llvm import compile_program
from hodyn_ros.engine.kernel_spec import KernelSpec, tree_arguments
from hodyn_ros.engine.large_trees.sweeps import Base, Joints, Swept, swept_code
from hodyn_ros.engine.large_trees.tree_loads import load_constants, load_plan
from hodyn_ros.engine.large_trees.tree_loops import CONSTANTS, OUT, PLAN
from hodyn_ros.engine.large_trees.tree_memory import FREE, KINDS, N_CONSTANTS, constants_of
from hodyn_ros.engine.series.canonical import canonical_bodies
from hodyn_ros.engine.series.vectors import halves
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.model.tree import TreeModel


class _Efforts(Swept):
    """Inverse dynamics; children add to all coefficients of a body's wrench."""

    n_wrench = 6

    def results(self, joints: Sequence[Stack], of_base: Sequence[Stack]) -> Stack:
        """Return the torque of the joint, or the wrench on the base."""
        torques = self.torques(*joints, *of_base)
        return [[*self.base_result(k), *row] for k, row in enumerate(torques)]

    def sums(self, i: int) -> list[Any]:
        """Return the wrench on a body."""
        body = self.bodies[i]
        return [x for wrench in zip(body.moment, body.force) for part in wrench for x in part]

    def set_sums(self, i: int, numbers: Sequence[Any]) -> None:
        """Replace it."""
        wrenches = [halves(numbers[k : k + 6]) for k in range(0, len(numbers), 6)]
        self.bodies[i].moment, self.bodies[i].force = map(list, zip(*wrenches))


@lru_cache(maxsize=KEPT)
def _inverse_code(order: int, frame: BaseRepresentation | None, loaded: bool) -> Code:
    """Compile inverse dynamics of one order, with applied wrenches or without."""
    joints: Joints = {name: (kind, _Efforts) for name, kind in zip(FREE, KINDS)}
    base = Base(_Efforts, frame, {"twists": order + 2}) if frame else None
    return swept_code(joints, order, 6 * (order + 1), {"q": order + 3}, base, loaded)


class TreeFunction(Function):
    """A function of one robot through generic code, which gets the robot's plan and constants.

    The last arguments are applied wrenches where there are loads. Joints that are prescribed take the steps
    `PRESCRIBED`.
    """

    def __init__(
        self,
        model: TreeModel,
        arguments: Sequence[tuple[str, Shape]],
        order: int,
        code: Code,
        setting: KernelSpec,
    ) -> None:
        loads, columns = setting.loads, model.n_joints + (6 if setting.base else 0)
        bodies = canonical_bodies(model)
        plan = [
            (
                KINDS.index(kind) + len(KINDS) * (body.joint in setting.prescribed) if kind in KINDS else -1,
                body.parent + 1,
            )
            for kind, body in zip(model.kinds, bodies)
        ]
        gravity = model.gravity.tolist()
        ground = [-g for g in gravity] + [0.0] * N_CONSTANTS
        constants = [ground, *[[*constants_of(body), *gravity] for body in bodies]]
        data = {"plan": np.array(plan, dtype=np.int64), "constants": np.array(constants, dtype=np.float64)}
        inputs, passed = arrays(f"a{i}" for i in range(len(arguments))), []
        local, body = {}, list[Statement]()
        plain = len(inputs) - len(loads)
        if loads:
            size = 6 * (order + 1)
            local["applied"] = len(loads) * size
            data |= {
                "load_plan": load_plan(model, bodies, loads),
                "placements": load_constants(bodies, loads),
            }
            passed = arrays(("applied", "load_plan", "placements"))
            body = [Copy(passed[0].at(i * size), wrench, size) for i, wrench in enumerate(inputs[plain:])]
        everything = [*inputs[:plain], *passed, OUT, PLAN, CONSTANTS]
        body.append(Run(code, [*everything, Index.of(model.n_bodies), Index.of(model.n_joints)]))
        program = Program("hodyn_kernel", [*inputs, OUT], local, body, data)
        self._alive = program  # whose constants it reads
        super().__init__(compile_program(program).code, arguments, (order + 1, columns))

    @cached_property
    def batch_code(self) -> MachineCode:
        """See `Function`."""
        return self._one_by_one()


class TreeKernel(TreeFunction):
    """Inverse dynamics by the generic code, with the arguments of `kernels.inverse_dynamics`."""

    def __init__(self, model: TreeModel, order: int, setting: KernelSpec) -> None:
        code = _inverse_code(order, setting.base, bool(setting.loads))
        super().__init__(model, tree_arguments(model, order + 3, setting.loads), order, code, setting)
