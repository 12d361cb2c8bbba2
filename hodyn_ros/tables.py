"""Tables for the terminal that keep their digits and words whole, at 80 columns and in files; progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.box import HORIZONTALS, SIMPLE
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

# Without a terminal there is nothing to fit, and a line that is too long is better than half a number.
_WIDEST = 200

_GAP = 2  # between columns
_BROKEN = 8  # to which a column of words may shrink where they have to be broken after all


@dataclass(frozen=True)
class FittingTable:
    """A table that is made for the width there is: words give way, first between them, and numbers never."""

    heads: Sequence[Text]
    rows: Sequence[Sequence[Text]]
    texts: Sequence[int]  # the columns that hold words
    styles: Sequence[str]  # of the rows
    lines: bool  # between the rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table of rich."""
        columns = [[head, *(row[i] for row in self.rows)] for i, head in enumerate(self.heads)]
        natural = [max(len(line) for cell in column for line in cell.plain.split("\n")) for column in columns]
        words = {i: max(len(word) for cell in columns[i] for word in cell.plain.split()) for i in self.texts}
        room = options.max_width - _GAP * (len(columns) - 1)
        widths = _fitted(natural, words, room)
        table = Table(
            box=HORIZONTALS if self.lines else SIMPLE,
            show_lines=self.lines,
            pad_edge=False,
            show_edge=False,
            padding=(0, _GAP - 1, 0, 0),
            collapse_padding=True,
        )
        for i, head in enumerate(self.heads):
            text = i in self.texts
            table.add_column(
                head, width=widths[i], justify="left" if text else "right", overflow="fold", no_wrap=not text
            )
        for row, style in zip(self.rows, self.styles):
            table.add_row(*row, style=style)
        yield table


def table(
    heads: Sequence[str | Text],
    rows: Iterable[Sequence[str | Text]],
    texts: Sequence[int] = (0,),
    styles: Iterable[str] | None = None,
    lines: bool = False,
) -> FittingTable:
    """Return a table of `rows`; columns in `texts` are words that may wrap between them, the others numbers.

    Columns without anything in them are left out. `styles` of the rows; `lines` between them.
    """
    cells = [[_text(cell) for cell in row] for row in rows]
    kept = [i for i in range(len(heads)) if any(row[i].plain for row in cells)] or [0]
    return FittingTable(
        [_text(heads[i]) for i in kept],
        [[row[i] for i in kept] for row in cells],
        [place for place, i in enumerate(kept) if i in texts],
        [""] * len(cells) if styles is None else list(styles),
        lines,
    )


def console(stderr: bool = False) -> Console:
    """Return a console on the standard output or error; where that is a file or a pipe, lines may be long."""
    result = Console(stderr=stderr)
    return result if result.is_terminal else Console(width=max(result.width, _WIDEST), stderr=stderr)


def say(console: Console, *lines: str, style: str = "") -> None:
    """Print lines as they are, however long: what looks like markup is none, and no number is coloured."""
    for line in lines:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(console: Console, what: str) -> Iterator[Callable[[float], None]]:
    """Show a bar with the time that is left on a terminal, and yield what sets it to a share from 0 to 1."""
    columns = TextColumn(what), BarColumn(), TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share_done: bar.update(task, completed=share_done)


def number(value: float, digits: int = 4) -> str:
    """Write a number with as many digits as count; what is infinite is empty, as it limits nothing."""
    if abs(value) == float("inf"):
        return ""
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.15g}" if 1e-4 <= abs(rounded) < 1e7 or rounded == 0.0 else f"{rounded:.{digits}g}"


def _text(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _fitted(natural: Sequence[int], words: dict[int, int], room: int) -> list[int]:
    """Return widths that fit: wide columns of words shrink, to their longest words at first."""
    widths = list(natural)
    for least in (words, dict.fromkeys(words, _BROKEN)):
        while sum(widths) > room and (wide := [i for i in words if widths[i] > least[i]]):
            widths[max(wide, key=lambda i: widths[i])] -= 1
    return widths
