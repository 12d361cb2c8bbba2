"""What `hodyn compare` does, once its arguments are known."""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hodyn_ros.bags.comparison.compare import (
    LEFT_OUT,
    Alone,
    Comparison,
    Difference,
    TopicComparison,
    compare,
)
from hodyn_ros.bags.reader import Bag
from hodyn_ros.tables import progress_bar, say


def run_compare(
    first: Path,
    second: Path,
    tolerance: float,
    topics: Collection[str],
    picture: Path | None,
    console: Console,
    ignore_edges: bool = False,
) -> Comparison:
    """Print where two bags differ, draw a picture of it, and return it."""
    with Bag(first) as one, Bag(second) as other:
        for bag in (one, other):
            warn(bag.warning, console)
        with progress_bar(console, "comparing") as progress:
            comparison = compare(one, other, tolerance, topics, progress, ignore_edges)
    for name, topic in comparison.topics.items():
        who = [f"'{first}' has", f"'{second}' has"]
        if topic.gaps[0] == topic.gaps[1]:
            who = ["both have"]
        for words, gaps in zip(who, topic.gaps):
            warn(f"{words} {gaps} on {name}" if gaps else "", console)
        say(console, counts(name, topic, ignore_edges))
        if topic.fields:
            print_fields(topic, console)
    for path, names in ((first, comparison.only_first), (second, comparison.only_second)):
        if names:
            say(console, f"only in '{path}': {', '.join(names)}")
    if picture is not None:
        _draw(comparison, f"{second.name} against {first.name}", picture, console)
    say(console, verdict(comparison, tolerance))
    return comparison


def warn(text: str, console: Console) -> None:
    """Print a warning in one line, if there is one."""
    if text:
        line = " ".join(text.split())
        say(console, f"warning: {line}", style="yellow")


def _draw(comparison: Comparison, title: str, picture: Path, console: Console) -> None:
    from hodyn_ros.bags.comparison.picture import draw_differences

    if any(topic.differs for topic in comparison.topics.values()):
        path = draw_differences(comparison, title, picture)
        say(console, f"wrote {path}")
    else:
        console.print("there is no difference to draw")


def counts(name: str, topic: TopicComparison, ignore_edges: bool = False) -> str:
    """Return in one line how the messages of a topic go together."""
    text = f"{name}: {topic.pairs} messages compared"
    for alone, where in ((topic.missing, "first"), (topic.extra, "second")):
        text += _alone(alone, where, ignore_edges)
    return text if topic.fields else f"{text}, no difference in them"


def print_fields(topic: TopicComparison, console: Console) -> None:
    """Print the fields that differ as a table, or in sentences where a table would be too wide."""
    table = Table(box=SIMPLE)
    table.add_column("field", no_wrap=True)
    for head in ("differ", "max abs", "max rel"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("of", no_wrap=True)
    table.add_column(Text("at [s]"), justify="right", no_wrap=True)
    lines = []
    for name, difference in topic.fields.items():
        cells = _cells(difference)
        table.add_row(Text(name), *map(Text, cells))
        count, absolute, relative, element, time = cells
        of = f" of {element}" if element else ""
        lines.append(f"{name}: {count} differ, by {absolute} (relative {relative}){of} at {time} s at most")
    unbounded = console.options.update(width=10_000)
    if Measurement.get(console, unbounded, table).maximum <= console.width:
        console.print(table)
        return
    for line in lines:
        text = textwrap.fill(
            line,
            console.width,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        say(console, text)


def verdict(comparison: Comparison, tolerance: float) -> str:
    """Return the outcome in one line."""
    measure = f"within {tolerance:g}" if tolerance else "bit by bit"
    left_out = f" ({_left_out(comparison)})"
    firsts = [
        (difference.first, f"{field} of {name}")
        for name, topic in comparison.topics.items()
        for field, difference in topic.fields.items()
    ]
    if not comparison.compared:
        return "the recordings have nothing in common: no message of one belongs to one of the other"
    if not comparison.differs:
        edges = any(topic.differs for topic in comparison.topics.values())
        return f"the recordings agree {measure}{' but for their edges' if edges else ''}{left_out}"
    if firsts:
        time, what = min(firsts)
        return f"the recordings differ, first at {time:.4f} s: {what}{left_out}"
    inside = comparison.only_first or comparison.only_second
    if inside or any(topic.differs_between for topic in comparison.topics.values()):
        return f"the recordings differ in the messages they hold; those in both agree {measure}{left_out}"
    return (
        f"the recordings differ at their edges only, which --ignore-edges allows; the messages in both agree "
        f"{measure}{left_out}"
    )


def _left_out(comparison: Comparison) -> str:
    """Say which fields were not compared."""
    added = sorted(f"{field} of {name}" for name, topic in comparison.topics.items() for field in topic.added)
    if not added:
        return f"{LEFT_OUT} is left out"
    return f"{LEFT_OUT} is left out, and what messages of one of the two versions lack: {', '.join(added)}"


def _alone(alone: Alone, where: str, ignore_edges: bool) -> str:
    if not alone.times:
        return ""
    text = f", {len(alone.times)} only in the {where}, from {min(alone.times):.4f} s on"
    if not alone.edges:
        return text
    at_edges = "all" if not alone.between else str(len(alone.edges))
    return f"{text} ({at_edges} at its edges{', which do not count' if ignore_edges else ''})"


def _cells(difference: Difference) -> tuple[str, str, str, str, str]:
    """Return how a field differs: how often, absolute, relative, of what, and when [s]."""
    return (
        str(difference.count),
        f"{difference.absolute:.3g}",
        f"{difference.relative:.3g}",
        difference.element,
        f"{difference.time:.4f}",
    )
