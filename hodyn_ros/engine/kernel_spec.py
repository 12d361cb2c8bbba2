"""What kernels of dynamics are made for besides robot and order, and what they then take."""

from __future__ import annotations

from dataclasses import dataclass

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.model.tree import TreeModel

Arguments = list[tuple[str, Shape]]  # by name
Loads = tuple[tuple[int, BaseRepresentation], ...]  # body and frame of every applied wrench


@dataclass(frozen=True)
class KernelSpec:
    """What a kernel of dynamics is made for, besides robot and order.

    `base`: the representation of a floating base's twists; None for a fixed base. `loads`: body and frame of
    every applied wrench. `prescribed`: joints of hybrid dynamics whose motion is given; `base_prescribed`
    likewise.
    """

    base: BaseRepresentation | None = None
    loads: Loads = ()
    prescribed: tuple[int, ...] = ()
    base_prescribed: bool = False

    @classmethod
    def of(cls, model: TreeModel, loads: Loads = ()) -> KernelSpec:
        """Return that of a tree: nothing prescribed, twists of a floating base in the world frame."""
        return cls(base="spatial" if model.floating_base else None, loads=loads)


PLAIN = KernelSpec()  # of a tree on the ground


def motion_arguments(rows: int, joints: int, base_moves: bool, name: str = "the motion") -> Arguments:
    """Return names and shapes of a motion (rows, joints), and of that of a base or platform."""
    of_base: Arguments = [("the pose", (4, 4)), ("the twists", (rows - 1, 6))]
    return [(name, (rows, joints)), *(of_base if base_moves else ())]


def tree_arguments(model: TreeModel, rows: int, loads: Loads = ()) -> Arguments:
    """Return names and shapes of a motion of a tree (rows, n), of a floating base, and of wrenches."""
    of_base: Arguments = [("pose", (4, 4)), ("twists", (rows - 1, 6))]
    motion: Arguments = [("q", (rows, model.n_joints)), *(of_base if model.floating_base else ())]
    return [*motion, *load_arguments(loads, rows - 3)]


def hybrid_arguments(model: TreeModel, order: int, setting: KernelSpec) -> Arguments:
    """Return names and shapes of what hybrid dynamics takes."""
    n = model.n_joints
    arguments: Arguments = [("state", (2, n)), ("inputs", (order + 1, n))]
    if setting.base:
        what = "base_twist_derivatives" if setting.base_prescribed else "base_wrench"
        arguments += [("pose", (4, 4)), ("twist", (1, 6)), (what, (order + 1, 6))]
    return [*arguments, *load_arguments(setting.loads, order)]


def load_arguments(loads: Loads, order: int) -> Arguments:
    """Return names and shapes of applied wrenches."""
    return [(f"wrench on body {body}", (order + 1, 6)) for body, _ in loads]
