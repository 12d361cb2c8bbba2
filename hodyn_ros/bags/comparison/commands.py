"""What `hodyn compare` does, once its arguments are known."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from hodyn_ros.bags.comparison import report
from hodyn_ros.bags.comparison.compare import Comparison, compare
from hodyn_ros.bags.reader import Bag


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
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("comparing", total=1.0)
            comparison = compare(
                one, other, tolerance, topics, lambda done: bar.update(task, completed=done), ignore_edges
            )
    for name, topic in comparison.topics.items():
        who = [f"'{first}' has", f"'{second}' has"]
        if topic.gaps[0] == topic.gaps[1]:
            who = ["both have"]
        for words, gaps in zip(who, topic.gaps):
            warn(f"{words} {gaps} on {name}" if gaps else "", console)
        console.print(report.counts(name, topic, ignore_edges), soft_wrap=True, highlight=False, markup=False)
        if topic.fields:
            report.print_fields(topic, console)
    for path, names in ((first, comparison.only_first), (second, comparison.only_second)):
        if names:
            console.print(
                f"only in '{path}': {', '.join(names)}", soft_wrap=True, highlight=False, markup=False
            )
    if picture is not None:
        _draw(comparison, f"{second.name} against {first.name}", picture, console)
    console.print(report.verdict(comparison, tolerance), soft_wrap=True, highlight=False, markup=False)
    return comparison


def warn(text: str, console: Console) -> None:
    """Print a warning in one line, if there is one."""
    if text:
        line = " ".join(text.split())
        console.print(f"warning: {line}", style="yellow", soft_wrap=True, highlight=False, markup=False)


def _draw(comparison: Comparison, title: str, picture: Path, console: Console) -> None:
    from hodyn_ros.bags.comparison.picture import draw_differences

    if any(topic.differs for topic in comparison.topics.values()):
        path = draw_differences(comparison, title, picture)
        console.print(f"wrote {path}", soft_wrap=True, markup=False)
    else:
        console.print("there is no difference to draw")
