"""Bodies in memory, and loops over them around the steps of the generic kernels, as parts of programs.

A step is the recursion traced for one body. It gets three addresses: the record of the parent, the body's own
record, and the constants of the body. In memory lie a plan with kind and parent's record of every body, a
block of constants for the ground (minus gravity at its start) and for every body, and the records of the
ground and of every body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hodyn_ros.codegen.program import (
    Choose,
    Code,
    Copy,
    For,
    Index,
    Look,
    Program,
    Put,
    Run,
    Statement,
    View,
    integer,
)
from hodyn_ros.codegen.tracer import Graph
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.vectors import Vector
from hodyn_ros.model.tree import JointKind

PARENT, OWN, CONSTANTS = range(3)  # arguments of a step
KINDS = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.HELICAL)
FREE = tuple(kind.value for kind in KINDS)  # joints by the variant of their steps
PRESCRIBED = tuple(f"prescribed_{name}" for name in FREE)  # their motion is given instead of their torque
N_CONSTANTS = 24
BLOCK = N_CONSTANTS + 3  # constants of a body and gravity

Store = tuple[int, int, Any]  # argument, index, value
Text = tuple[str, set[int]]  # of a function, with the widths of the sine and cosine functions that it calls


class Record:
    """Where the series of a body lie in its record in memory."""

    def __init__(self, order: int, sizes: Mapping[str, int], shared: Sequence[str]) -> None:
        self.order = order
        self.sizes = sizes
        self.places: dict[str, int] = {}
        self._named = 0
        for name, size in sizes.items():
            self.places[name] = self._named
            self._named += size
        self.size = self._named  # grows by what steps keep
        # places that children add to
        self.shared = [
            i for name in shared for i in range(self.places[name], self.places[name] + sizes[name])
        ]

    def __len__(self) -> int:
        """Return the number of places with names."""
        return self._named

    def read(self, graph: Graph, argument: int, name: str, index: int = 0) -> Any:
        """Return a number of a record."""
        return graph.input(argument, self.places[name] + index)

    def read_vectors(self, graph: Graph, argument: int, name: str, count: int) -> list[Vector]:
        """Return the first `count` vectors of a series."""
        scalars = [self.read(graph, argument, name, i) for i in range(3 * count)]
        return [(scalars[i], scalars[i + 1], scalars[i + 2]) for i in range(0, 3 * count, 3)]

    def write(self, argument: int, name: str, values: Sequence[Any], start: int = 0) -> list[Store]:
        """Store numbers, from index `start` on."""
        return [(argument, self.places[name] + start + i, value) for i, value in enumerate(values)]

    def write_vectors(self, argument: int, name: str, series: Sequence[Vector]) -> list[Store]:
        """Store vectors."""
        return self.write(argument, name, [x for vector in series for x in vector])


def symmetric(numbers: Sequence[Any]) -> tuple[Vector, Vector, Vector]:
    """Return the symmetric matrix of (xx, yy, zz, xy, xz, yz)."""
    xx, yy, zz, xy, xz, yz = numbers
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)


def six(matrix: Sequence[Sequence[Any]]) -> list[Any]:
    """Return (xx, yy, zz, xy, xz, yz) of a symmetric matrix."""
    return [matrix[0][0], matrix[1][1], matrix[2][2], matrix[0][1], matrix[0][2], matrix[1][2]]


def constants_of(body: CanonicalBody) -> list[float]:
    """Lay out the constants of a body as `traced_body` reads them."""
    s = body.second_moment
    return [
        *body.rotation.ravel(),
        *body.translation,
        body.offset,
        body.translation_gain,
        body.mass,
        *body.first_moment,
        *(s[0, 0], s[1, 1], s[2, 2], s[0, 1], s[0, 2], s[1, 2]),
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
        second_moment=np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=object),
        body_in_frame=np.eye(4),
    )


NOTHING = CanonicalBody(
    -1, -1, np.eye(3), np.zeros(3), 0.0, 0.0, 0.0, 0.0, np.zeros(3), np.zeros((3, 3)), np.eye(4)
)


BODIES, JOINTS = integer("bodies"), integer("joints")
RECORDS, CONSTANTS, PLAN, OUT = View("records"), View("constants"), View("plan"), View("out")
BASE_CONSTANTS = CONSTANTS.at(BLOCK)

_BODY, _KIND, _PARENT = map(integer, ("body", "kind", "parent"))


@dataclass(frozen=True)
class Column:
    """A joint's numbers in an array of `rows` by joints, behind `skipped` columns, and in its record."""

    array: View
    place: int
    rows: int
    first_row: int = 0
    skipped: int = 0

    def taken(self, own: View, joint: Index) -> list[Copy]:
        """Copy them into the record."""
        return [Copy(at, column) for at, column in self._pairs(own, joint)]

    def returned(self, own: View, joint: Index) -> list[Copy]:
        """Copy them from the record."""
        return [Copy(column, at) for at, column in self._pairs(own, joint)]

    def _pairs(self, own: View, joint: Index) -> list[tuple[View, View]]:
        width = JOINTS + self.skipped
        return [
            (own.at(self.place + k), self.array.at(width * (self.first_row + k) + joint + self.skipped))
            for k in range(self.rows)
        ]


def tree_program(
    arguments: Sequence[View], local: Mapping[str, int], record: Record, body: Sequence[Statement]
) -> Program:
    """Return `void hodyn_tree(arguments, out, plan, constants, bodies, joints)` around its statements.

    The records are there, those of the ground with its acceleration and zeros, when these begin.
    """
    ground: list[Statement] = [
        Put(RECORDS, 0.0, record.size),
        Copy(RECORDS.at(record.places["linear"]), CONSTANTS, 3),
    ]
    return Program(
        "hodyn_tree",
        [*arguments, OUT, PLAN, CONSTANTS, BODIES, JOINTS],
        {"records": (BODIES + 1) * record.size, **local},
        [*ground, *body],
    )


def base_of(record: Record) -> View:
    """Return the record of a floating base."""
    return RECORDS.at(record.size)


def each_body(
    step: str,
    direction: Literal["outward", "inward"],
    first: int,
    record: Record,
    before: Sequence[Column] = (),
    after: Sequence[Column] = (),
    variants: Sequence[str] = FREE,
) -> For:
    """Run a step for every body from `first` on, parents before children or the other way round.

    There is one for each of `variants`, which the plan numbers. Columns are copied before and after it.
    """
    number = _BODY + first if direction == "outward" else BODIES - 1 - _BODY
    own, joint = RECORDS.at((number + 1) * record.size), number - first
    passed = [RECORDS.at(_PARENT * record.size), own, CONSTANTS.at((number + 1) * BLOCK)]
    steps: dict[int, list[Statement]] = {
        i: [Run(Code(f"{step}_{variant}"), passed)] for i, variant in enumerate(variants)
    }
    body: list[Statement] = [
        Look(_KIND, PLAN.at(2 * number)),
        Look(_PARENT, PLAN.at(2 * number + 1)),
        *(copy for column in before for copy in column.taken(own, joint)),
        Choose(_KIND, steps),
        *(copy for column in after for copy in column.returned(own, joint)),
    ]
    return For(_BODY, BODIES - first, body)


def base_columns(source: View, rows: int) -> list[Copy]:
    """Copy six numbers a row into the first columns of the result."""
    return [Copy(OUT.at((JOINTS + 6) * k), source.at(6 * k), 6) for k in range(rows)]
