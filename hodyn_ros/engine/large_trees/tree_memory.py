"""Bodies in memory: what the steps of the generic kernels read and write.

A step is the recursion traced for one body. It gets three addresses: the record of the parent, the body's own
record, and the constants of the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hodyn_ros.codegen.tracer import Graph
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.spatial import symmetric
from hodyn_ros.model.tree import JointKind

PARENT, OWN, CONSTANTS = range(3)  # arguments of a step
KINDS = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.HELICAL)
FREE = tuple(kind.value for kind in KINDS)  # joints by the variant of their steps
PRESCRIBED = tuple(f"prescribed_{name}" for name in FREE)  # their motion is given instead of their torque
N_CONSTANTS = 24
BLOCK = N_CONSTANTS + 3  # constants of a body and gravity

Store = tuple[int, int, Any]  # argument, index, value
Target = tuple[int, int, int]  # coefficient, index of the moment, of the force
Text = tuple[str, set[int]]  # of a function, with the widths of the sine and cosine functions that it calls

_SIZES = {"angular": 3, "linear": 3, "velocity": 3, "products": 6}  # of a coefficient; of others one number


class Record:
    """Where a body has its numbers in memory: series by name and coefficient, and blocks of some sizes.

    What is read of a body by others has a place there by its name. Those of `SUMS` children add to.
    """

    SUMS = "sums"

    def __init__(self, order: int, blocks: Mapping[str, int]) -> None:
        self.order = order
        self._sizes = {**_SIZES, **blocks}
        self._places: dict[tuple[str, int], int] = {}
        self.named = self.size = 0  # numbers with names, and with those that steps keep for themselves

    def place(self, name: str, k: int = 0) -> int:
        """Return where a coefficient begins, or a block."""
        if (name, k) not in self._places:
            assert self.size == self.named  # or it would lie where steps keep numbers
            self._places[name, k] = self.named
            self.named = self.size = self.named + self._sizes.get(name, 1)
        return self._places[name, k]

    def places(self, name: str, k: int = 0) -> range:
        """Return those of all its numbers."""
        first = self.place(name, k)
        return range(first, first + self._sizes.get(name, 1))

    def read(self, graph: Graph, argument: int, name: str, k: int = 0) -> list[Any]:
        """Return all its numbers in the record that is an argument."""
        return [graph.input(argument, place) for place in self.places(name, k)]


def six(matrix: Any) -> list[Any]:
    """Return (xx, yy, zz, xy, xz, yz) of a symmetric matrix."""
    return [matrix[0][0], matrix[1][1], matrix[2][2], matrix[0][1], matrix[0][2], matrix[1][2]]


def constants_of(body: CanonicalBody) -> list[float]:
    """Lay out the constants of a body as `traced_body` reads them."""
    return [
        *body.rotation.ravel(),
        *body.translation,
        body.offset,
        body.translation_gain,
        body.mass,
        *body.first_moment,
        *six(body.second_moment),
    ]


def traced_body(graph: Graph, kind: JointKind) -> CanonicalBody:
    """Return a body whose constants are read from memory, but for those that regrouping leaves zero."""
    c: list[Any] = [graph.input(CONSTANTS, i) for i in range(N_CONSTANTS)]
    revolute, prismatic, base = (kind is k for k in (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.BASE))
    rotation = np.array(c[:9], dtype=object).reshape(3, 3)
    rotation[2, 0] = 0.0
    xx, yy, zz, xy, xz, yz = [0.0] * 6 if prismatic else c[18:24]
    x, y, z = c[15:18]
    if revolute:
        z = 0.0
    if not base:
        zz = 0.0
    return CanonicalBody(
        parent=-1 if base else 0,
        joint=-1 if base else 0,
        rotation=rotation,
        translation=np.array(c[9:12], dtype=object),
        offset=c[12],
        rotation_gain=0.0 if prismatic else 1.0,
        translation_gain=0.0 if revolute else 1.0 if prismatic else c[13],
        mass=0.0 if revolute else c[14],
        first_moment=np.array([x, y, z], dtype=object),
        second_moment=np.array(symmetric([xx, yy, zz, xy, xz, yz]), dtype=object),
        body_in_frame=np.eye(4),
    )


NOTHING = CanonicalBody(
    -1, -1, np.eye(3), np.zeros(3), 0.0, 0.0, 0.0, 0.0, np.zeros(3), np.zeros((3, 3)), np.eye(4)
)
