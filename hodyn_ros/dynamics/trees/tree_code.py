"""The code of a tree, by operation and order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from hodyn_ros.codegen.kernel import Function, Kernel
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.fast_calls import FastCalls
from hodyn_ros.dynamics.mobility import check_mobility, check_pose
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.engine.finite_kernel import FiniteKernel, Refuse
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.joint_tree import JointTree
from hodyn_ros.model.tree import TreeModel


class TreeCode:
    """What is compiled of a robot without couplings and loops; m velocities, those of a base first."""

    def __init__(self, tree: TreeModel, frames: Mapping[str, Frame] = MappingProxyType({})) -> None:
        self.tree, self.frames, self.fast = tree, frames, FastCalls()
        self.n, self.m = tree.n_joints, tree.n_joints + (6 if tree.floating_base else 0)
        self.massless = check_mobility(tree)
        self._kernels: Kept[tuple[str, int, KernelSpec], Function] = Kept()
        self._traced: Kept[Any, Kernel | None] = Kept()

    @cached_property
    def joint_tree(self) -> JointTree:
        """The tree as published formulations take it."""
        return JointTree.of(self.tree)

    @cached_property
    def structure(self) -> Closure:
        """The tree as a closure without loops."""
        return Closure.of_tree(self.tree)

    def kernel(self, name: str, order: int, setting: KernelSpec) -> Function:
        """Return the code of inverse or forward dynamics, by the name of the operation."""
        law = OPERATIONS[name].law

        def make() -> Function:
            refuse = self._refuse(name, setting.prescribed)
            function: Function = law("kernel")(self.tree, order, setting, *([refuse] if refuse else []))
            return function

        return self._kernels.made((name, order, setting), make)

    def traced_kernel(self, name: str, order: int, *of: Any) -> Kernel | None:
        """Return the kernel of an operation by its law; None where it takes too long to compile.

        `of`: names of frames and a representation, of what is of frames; else what the law takes.
        """
        operation, tree = OPERATIONS[name], self.tree

        def make() -> Kernel | None:
            further = of if operation.frames == "none" else placed(tree, self.frames, of)
            held = next((one.prescribed for one in of if isinstance(one, KernelSpec)), ())
            refuse = self._refuse(name, held)
            trace, arguments = operation.law("tree")(tree, order, *further)
            if refuse is None:
                return Kernel.unless_long(trace, arguments)
            return Kernel.unless_long(trace, arguments, make=partial(FiniteKernel, refuse=refuse))

        return self._traced.made((name, order, *of), make)

    def derived_kernel(
        self, make: Callable[..., Kernel | None], order: int, *arrays: Hashable
    ) -> Kernel | None:
        """Return the kernel that a function makes of the tree, an order and what more it takes."""
        return self._traced.made((make, order, *arrays), lambda: make(self.tree, order, *arrays))

    def _refuse(self, name: str, held: Sequence[int]) -> Refuse | None:
        """Return what refuses singular poses of an operation that has some; the joints `held` are moved."""
        if not self.massless or OPERATIONS[name].takes != "state":
            return None
        return partial(check_pose, self.tree, self.massless, held)

    def compile_long(self, name: str, order: int) -> None:
        """Compile an operation by its law, however long that takes."""
        self._traced[name, order] = Kernel(*OPERATIONS[name].law("tree")(self.tree, order))
