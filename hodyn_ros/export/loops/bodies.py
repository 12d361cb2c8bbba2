"""What exported functions of robots with loops compute once positions are found, as statements of C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Shape, Stack, traced
from hodyn_ros.codegen.tracer import split
from hodyn_ros.export.straight_line import StraightLine, Tables, TracedLines, checked_length

Places = NDArray[np.int_]


class Body(NamedTuple):
    """Statements that compute, expressions of what is wrong, and statements that store results."""

    lines: list[str]
    defect: str  # to be below one
    singularity: str | None  # says how near a singular pose is
    stores: list[str]
    operations: int
    helpers: Mapping[str, list[str]]


def once(
    end: Callable[..., Stack],
    arguments: Mapping[str, Shape],
    results: Mapping[str, Places],
    defect_at: int,
    singularity_at: int | None,
    what: str,
    tables: Tables,
) -> Body:
    """Write code whose results stand at places of what `end` returns."""
    code = TracedLines(end, arguments, what, tables)
    near = None if singularity_at is None else code.text(singularity_at)
    return Body(code.lines, code.text(defect_at), near, code.stores(results), code.operations, {})


class Columns(NamedTuple):
    """Where changes go: that of row j in direction i to place `of_direction[i] + of_row[j]`."""

    of_direction: Sequence[int]
    of_row: Sequence[int]
    rows: Sequence[int]  # those stored of the rows that are computed
    computed: int
    size: int  # of the array


def along_directions(
    end: Callable[..., Stack],
    arguments: Mapping[str, Shape],
    columns: Columns,
    near: bool,
    name: str,
    what: str,
    tables: Tables,
) -> Body:
    """Write code whose last argument is a direction: what all share once, the rest as a function.

    `end` returns changes, then what is wrong and, with `near`, how near a singular pose is.
    """
    count = len(columns.of_direction)
    graph, outputs, _ = traced(end, [*arguments.values(), (1, count)])
    outputs = [*(outputs[row] for row in columns.rows), *outputs[columns.computed :]]
    operations = checked_length(graph, outputs, what)
    kept, moving, changes = split(graph, outputs, len(arguments))
    changes = changes[: len(columns.rows)]
    wrong = outputs[len(columns.rows) :]
    code = StraightLine(graph, list(arguments), [*kept, *wrong], tables)
    each = StraightLine(moving, ["kept", "direction"], changes, tables)
    of_each = moving.count_operations(changes)
    helper = [
        f"static void {name}(const double *kept, const double *direction, double *change)",
        "{",
        *each.lines,
        *[f"  change[{i}] = {each.text(value)};" for i, value in enumerate(changes)],
        "}",
    ]
    places = [*columns.of_direction, *columns.of_row]
    lines = [
        f"  static const int of_direction[{count}] = {{{_numbers(columns.of_direction)}}};",
        f"  static const int of_row[{len(columns.of_row)}] = {{{_numbers(columns.of_row)}}};",
        f"  double kept[{len(kept)}], direction[{count}], change[{len(changes)}];",
        "  int i, j;",
        *code.lines,
        *[f"  kept[{i}] = {code.text(value)};" for i, value in enumerate(kept)],
    ]
    covered = len(columns.of_direction) * len(columns.of_row) == columns.size
    blank = [f"  for (i = 0; i < {columns.size}; ++i) {{", "    derivatives[i] = 0.0;", "  }"]
    assert max(places) < columns.size
    stores = [
        *([] if covered else blank),
        f"  for (i = 0; i < {count}; ++i) {{",
        "    direction[i] = 0.0;",
        "  }",
        f"  for (i = 0; i < {count}; ++i) {{",
        "    direction[i] = 1.0;",
        f"    {name}(kept, direction, change);",
        "    direction[i] = 0.0;",
        f"    for (j = 0; j < {len(changes)}; ++j) {{",
        "      derivatives[of_direction[i] + of_row[j]] = change[j];",
        "    }",
        "  }",
    ]
    total = operations - of_each + count * of_each
    singularity = code.text(wrong[1]) if near else None
    return Body(lines, code.text(wrong[0]), singularity, stores, total, {name: helper})


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
