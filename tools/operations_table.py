"""Write the table of operations into docs/operations.md: `tools/operations_table.py`."""

from __future__ import annotations

from pathlib import Path

from hodyn_ros.dynamics.operations import OPERATIONS, Operation

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operations.md"
_TAKES = {
    "state": "`state (2, n)`, `torques (order + 1, n)`",
    "poses": "`seed (1, n)`, `poses (4 frames, 4)`, `twists (frames order, 6)`",
    "drives": "`drives (order + 1, driven)`",
}
_ROBOTS = {(): "", ("loops",): "with loops", ("tree",): "trees", ("loops", "tree"): "all"}


def page(before: str) -> str:
    """Return the text of the page with the table in its place."""
    begin, end = "<!-- operations -->\n", "<!-- end -->\n"
    head, _, rest = before.partition(begin)
    _, _, tail = rest.partition(end)
    rows = [
        "| operation | takes | returns | what that is | `compile` | `compile_batch` | C |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *map(_row, OPERATIONS.values()),
    ]
    return f"{head}{begin}\n{chr(10).join(rows)}\n\n{end}{tail}"


def _row(one: Operation) -> str:
    takes = _TAKES.get(one.takes, f"`q (order + {1 + one.rates}, n)`")
    if one.weighted:
        takes += ", `multiplier`"
    if one.besides:
        takes += f", {one.besides}"
    returns = f"`{one.result}`" if one.result.startswith("(") else one.result
    where = (_ROBOTS[tuple(sorted(robots))] for robots in (one.compiled, one.batched, one.exported))
    return f"| `{one.name}` | {takes} | {returns} | {one.says} | {' | '.join(where)} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
