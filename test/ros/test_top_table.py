"""The table of `hodyn top`, without ROS."""

import io
import random
from collections.abc import Mapping

import pytest
from rich.console import Console

from hodyn_ros.ros.top_table import Seen, status_table


def words(seen: list[Seen], now: float = 0.0, width: int = 240) -> str:
    """Return the table as one line of words."""
    console = Console(file=io.StringIO(), width=width)
    console.print(status_table(seen, now))
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().replace("│", " ").split())


def report(values: Mapping[str, str], name: str = "left/dynamics_node", at: float = 0.0) -> Seen:
    return Seen(name, 1, "samples were rejected", "panda", values, at)


VALUES = {
    "engine": "straight-line code",
    "order": "2",
    "clamp": "True",
    "rate [1/s]": "999.876",
    "age of the last answer [s]": "0.00123",
    "latency p50 [us]": "123.456",
    "latency p99 [us]": "1234.5",
    "rejected": "7",
    "rejected: not finite": "4",
    "rejected: wrong length": "3",
    "rejected: no joint names": "0",
    "effort limit exceeded": "12",
    "position limit exceeded": "0",
    "deadline missed: desired_motion": "5",
    "wrench on tool: rate [1/s]": "99.5",
    "wrench on tool: age [s]": "inf",
    "wrench on tool: rejected": "1",
}


def test_a_row_shows_all_that_the_diagnostics_tell() -> None:
    text = words([report(VALUES)])
    for part in (
        "left/dynamics_node",
        "panda",
        "straight-line code",
        "order 2, clamped",
        "samples were rejected",
        "1000",
        "99.5 wrench on tool",
        "0.00 answer",
        "none yet wrench on tool",
        "123 · 1234 latency",
        "4 not finite",
        "3 wrong length",
        "12 effort limit exceeded",
        "5 deadline missed: desired_motion",
        "1 wrench on tool: rejected",
    ):
        assert part in text, part
    assert "7 " not in text  # the sum of what is shown by reason
    assert "no joint names" not in text
    assert "position limit" not in text


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"rejected measurements": "2", "rejected": "3"}, ("2 measurements", "3 rejected")),
        # by reason, and not their sum besides
        (
            {"rejected measurements": "2", "rejected measurements: bad times": "2"},
            ("2 measurements: bad times",),
        ),
        # what is no number is shown as it is
        ({"rate [1/s]": "unknown", "age of the last answer [s]": "long"}, ("unknown", "long answer")),
        (
            {"commands cut to an effort limit": "4", "commands whose step was cut": "0"},
            ("4 commands cut to an effort limit",),
        ),
    ],
)
def test_what_is_counted_is_shown_once(told: dict[str, str], shown: tuple[str, ...]) -> None:
    text = words([report(told)])
    for part in shown:
        assert text.count(part) == 1, part
    assert text.count("2 measurements") <= 1


def test_the_names_of_nodes_are_whole_in_a_narrow_terminal() -> None:
    assert "left/dynamics_node" in words([report(VALUES)], width=80)


def test_a_silent_node_is_marked_and_rows_are_in_the_order_of_names() -> None:
    text = words([report({}, "b/node", at=96.0), report({}, "a/node", at=99.0)], now=100.0)
    assert text.index("a/node") < text.index("b/node")
    assert text.count("samples were rejected") == 1
    assert "stale: silent for 4 s" in text


def test_texts_of_others_command_no_terminal() -> None:
    rng = random.Random(1)
    commands = [chr(c) for c in (*range(32), *range(127, 160), 0x202E, 0x2028)]
    poison = "".join(rng.choice(commands) + rng.choice("ab]0;2J") for _ in range(300))
    seen = Seen(
        f"left/{poison}",
        1,
        f"rejected\x1b[2J{poison}",
        poison,
        {f"{poison} rate [1/s]": poison, "engine": poison, "order": poison, f"rejected: {poison}": poison},
        0.0,
    )
    shown = words([seen], width=2000)
    assert "rejected\N{REPLACEMENT CHARACTER}[2J" in shown
    assert shown.isprintable()
