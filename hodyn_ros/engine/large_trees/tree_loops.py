"""Loops over the bodies of a tree around the steps of the generic kernels, as parts of programs.

In memory lie a plan with kind and parent's record of every body, a block of constants for the ground (minus
gravity at its start) and for every body, and the records of the ground and of every body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
from hodyn_ros.engine.large_trees.tree_memory import BLOCK, Record
from hodyn_ros.engine.recursions.recursion import Direction

BODIES, JOINTS = integer("bodies"), integer("joints")
RECORDS, CONSTANTS, PLAN, OUT = View("records"), View("constants"), View("plan"), View("out")
BASE_CONSTANTS = CONSTANTS.at(BLOCK)

_BODY, _KIND, _PARENT = map(integer, ("body", "kind", "parent"))


class Column(NamedTuple):
    """A joint's numbers in an array of `rows` by joints, behind `skipped` columns, and in its record."""

    array: View
    place: int
    rows: int
    skipped: int = 0

    def both(self, own: View, joint: Index) -> list[tuple[View, View]]:
        """Return where they are, in the record and in the array."""
        width = JOINTS + self.skipped
        return [
            (own.at(self.place + k), self.array.at(width * k + joint + self.skipped))
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
        Copy(RECORDS.at(record.place("linear")), CONSTANTS, 3),
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
    steps: Sequence[str],
    direction: Direction,
    first: int,
    record: Record,
    before: Sequence[Column],
    after: Sequence[Column],
) -> For:
    """Run a step for every body from `first` on, parents before children or the other way round.

    There is one for each variant, which the plan numbers. Columns are copied before and after it.
    """
    number = _BODY + first if direction == "outward" else BODIES - 1 - _BODY
    own, joint = RECORDS.at((number + 1) * record.size), number - first
    passed = [RECORDS.at(_PARENT * record.size), own, CONSTANTS.at((number + 1) * BLOCK)]
    body: list[Statement] = [
        Look(_KIND, PLAN.at(2 * number)),
        Look(_PARENT, PLAN.at(2 * number + 1)),
        *(Copy(at, given) for column in before for at, given in column.both(own, joint)),
        Choose(_KIND, {i: [Run(Code(step), passed)] for i, step in enumerate(steps)}),
        *(Copy(result, at) for column in after for at, result in column.both(own, joint)),
    ]
    return For(_BODY, BODIES - first, body)


def base_columns(source: View, rows: int) -> list[Copy]:
    """Copy six numbers a row into the first columns of the result."""
    return [Copy(OUT.at((JOINTS + 6) * k), source.at(6 * k), 6) for k in range(rows)]
