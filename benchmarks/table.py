"""Rows of the table: what was measured, what must be reached, and what is said about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.text import Text

from benchmarks.stopwatch import Figure
from hodyn_ros.tables import table

COLUMNS = ("work", "against", "ours", "theirs", "result", "spread", "must", "aim", "verdict")
_TERMINAL = ("work, and below it what it is held against", "result", "must", "aim", "verdict")
_STYLES = {"aim reached": "bold green", "reached": "green", "MISSED": "bold red"}


@dataclass(frozen=True)
class Bound:
    """A limit on a result, from above or from below."""

    limit: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        """Say whether a value keeps to it."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


@dataclass(frozen=True)
class Row:
    """One comparison. `result` is a ratio, or has a `unit`; None where `note` says why there is none."""

    work: str
    against: str
    result: Figure | None
    ours: float | None = None  # median seconds
    theirs: float | None = None
    must: Bound | None = None
    aim: Bound | None = None
    unit: str = "×"
    note: str = ""

    @property
    def verdict(self) -> str:
        """What the result means beside the bounds."""
        if self.result is None:
            return self.note
        if self.must is not None and not self.must.holds(self.result.median):
            return "MISSED"
        if self.aim is not None and self.aim.holds(self.result.median):
            return "aim reached"
        return "reached" if self.must is not None else ""

    def cells(self) -> tuple[str, ...]:
        """Return the row as text, by `COLUMNS`."""
        result = spread = ""
        if self.result is not None:
            result = f"{_number(self.result.median)} {self.unit}".strip()
            spread = f"{_number(self.result.low)} … {_number(self.result.high)}"
        bounds = ("" if bound is None else str(bound) for bound in (self.must, self.aim))
        return (
            self.work,
            self.against,
            duration(self.ours),
            duration(self.theirs),
            result,
            spread,
            *bounds,
            self.verdict,
        )


@dataclass(frozen=True)
class Section:
    """Rows about one kind of work; `curves` are seconds by order of what the picture shows."""

    title: str
    rows: Sequence[Row]
    curves: dict[str, dict[int, float]] = field(default_factory=dict)


def terminal_tables(sections: Iterable[Section]) -> Group:
    """Return tables for the terminal, which fit 80 columns: below each work, what it is held against."""
    parts: list[RenderableType] = []
    for section in sections:
        rows = []
        for row in section.rows:
            _, against, ours, theirs, result, spread, must, aim, verdict = row.cells()
            times = f"{ours} beside {theirs}" if ours and theirs else ours
            under = "; ".join(filter(None, (times, against, spread)))
            work = Text.assemble(row.work, *([("\n" + under, "dim")] if under else []))
            rows.append((work, result, must, aim, Text(verdict, style=_STYLES.get(verdict, ""))))
        parts += [Text(f"\n{section.title}", style="bold cyan"), table(_TERMINAL, rows, texts=(0, 4))]
    return Group(*parts)


def markdown_table(sections: Iterable[Section]) -> str:
    """Return one table in Markdown for each section."""
    lines: list[str] = []
    for section in sections:
        lines += [f"### {section.title}", "", _line(COLUMNS), _line(["---"] * len(COLUMNS))]
        lines += [_line(row.cells()) for row in section.rows]
        lines.append("")
    return "\n".join(lines)


_PROMISED = ("work", "against", "ours", "theirs", "result", "promised", "verdict")


def promised_table(sections: Iterable[Section], machine: dict[str, str]) -> str:
    """Return one table of all rows that must keep a bound, and what they were measured on."""
    lines = [_line(_PROMISED), _line(["---"] * len(_PROMISED))]
    for section in sections:
        for row in section.rows:
            if row.must is not None:
                work, against, ours, theirs, result, _, must, _, verdict = row.cells()
                cells = against, ours, theirs, result, must, verdict.removeprefix("aim ")
                lines.append(_line((f"{section.title}: {work}", *cells)))
    said = ", ".join(f"{name} {value}" for name, value in machine.items())
    return "\n".join([*lines, "", f"Measured on: {said}."])


def duration(seconds: float | None) -> str:
    """Write a duration with three digits."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_number(seconds / size)} {unit}"
    return f"{_number(seconds / 1e-6)} µs" if seconds >= 1e-7 else f"{seconds / 1e-9:.0f} ns"


def _number(value: float) -> str:
    digits = 2 if abs(value) < 10.0 else 1 if abs(value) < 100.0 else 0
    return f"{value:.{digits}f}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
