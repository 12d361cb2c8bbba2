"""The outcome of a comparison in words and tables."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.table import Table

from hodyn_ros.bags.compare import LEFT_OUT, Comparison, TopicComparison


def counts(name: str, topic: TopicComparison) -> str:
    """Return in one line how the messages of a topic go together."""
    text = f"{name}: {topic.pairs} messages compared"
    if topic.missing:
        text += f", {len(topic.missing)} only in the first, from {min(topic.missing):.4f} s on"
    if topic.extra:
        text += f", {len(topic.extra)} only in the second, from {min(topic.extra):.4f} s on"
    return text if topic.fields else f"{text}, no difference in them"


def fields_table(topic: TopicComparison) -> Table:
    """Return a table of the fields that differ; it fits 80 columns."""
    table = Table(box=SIMPLE)
    table.add_column("field", no_wrap=True)
    for head in ("differ", "max abs", "max rel"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("of", overflow="fold")
    table.add_column(r"at \[s]", justify="right", no_wrap=True)
    for name, found in topic.fields.items():
        table.add_row(
            name.replace("[", r"\["),
            str(found.count),
            f"{found.absolute:.3g}",
            f"{found.relative:.3g}",
            found.element.replace("[", r"\["),
            f"{found.time:.4f}",
        )
    return table


def verdict(comparison: Comparison, tolerance: float) -> str:
    """Return the outcome in one line."""
    measure = f"within {tolerance:g}" if tolerance else "bit by bit"
    left_out = f" ({LEFT_OUT} is left out)"
    firsts = [
        (found.first, f"{field} of {name}")
        for name, topic in comparison.topics.items()
        for field, found in topic.fields.items()
    ]
    if not comparison.compared:
        return "the recordings have nothing in common: no message of one belongs to one of the other"
    if not comparison.differs:
        return f"the recordings agree {measure}{left_out}"
    if not firsts:
        return f"the recordings differ in the messages they hold; those in both agree {measure}{left_out}"
    time, what = min(firsts)
    return f"the recordings differ, first at {time:.4f} s: {what}{left_out}"
