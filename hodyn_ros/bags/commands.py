"""What `hodyn compare` does, once its arguments are known."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from hodyn_ros.bags.compare import compare
from hodyn_ros.bags.picture import draw_differences
from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.report import counts, fields_table, verdict


def run_compare(
    first: Path,
    second: Path,
    tolerance: float,
    topics: Collection[str],
    picture: Path | None,
    console: Console,
) -> bool:
    """Print where two bags differ and draw a picture of it; return whether they agree."""
    with Bag(first) as one, Bag(second) as other:
        for bag in (one, other):
            if bag.warning:
                console.print(f"warning: {bag.warning}", style="yellow", soft_wrap=True, highlight=False)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("comparing", total=1.0)
            found = compare(one, other, tolerance, topics, lambda done: bar.update(task, completed=done))
    for name, topic in found.topics.items():
        console.print(counts(name, topic), soft_wrap=True, highlight=False)
        if topic.fields:
            console.print(fields_table(topic))
    for path, names in ((first, found.only_first), (second, found.only_second)):
        if names:
            console.print(f"only in '{path}': {', '.join(names)}", soft_wrap=True, highlight=False)
    if picture is not None:
        if any(topic.differs for topic in found.topics.values()):
            title = f"{second.name} against {first.name}"
            console.print(f"wrote {draw_differences(found, title, picture)}", soft_wrap=True)
        else:
            console.print("there is no difference to draw")
    console.print(verdict(found, tolerance), soft_wrap=True, highlight=False)
    return found.compared and not found.differs
