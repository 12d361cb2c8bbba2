"""The table of `hodyn top`: what nodes say on /diagnostics, one row each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.text import Text

from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.tables import FittingTable, table

STALE_AFTER = 3.5  # [s]; a node reports every second
COLUMNS = ("node, state", "rate [1/s]", "age [s]", "p50 · p99 [µs]", "rejected, limits")

_LEVELS = ("green", "yellow", "bold red", "magenta")  # of OK, WARN, ERROR, STALE
_RATE = re.compile(r"(.*?):? ?rate \[1/s\]")
_AGE = re.compile(r"(.*?):? ?age (?:of the last (.+) )?\[s\]")
_MEDIAN = re.compile(r"(.+) p50 \[us\]")
_LIMITS = (
    *(str(bit.name).lower().replace("_", " ") for bit in Status if bit),
    "commands cut to an effort limit",
    "commands whose step was cut",
)
_EVENTS = (
    "messages lost",
    "deadline missed",
    "publisher lost",
    "liveliness lost",
    "incompatible QoS",
    "failures of the middleware",
)


@dataclass(frozen=True)
class Seen:
    """The last report of a node, and when it came."""

    name: str  # with its namespace
    level: int  # of diagnostic_msgs/DiagnosticStatus
    message: str
    robot: str
    values: Mapping[str, str]
    at: float  # [s] by some clock

    @property
    def failed(self) -> bool:
        """Whether it reports an error; a warning is none."""
        return self.level >= 2  # DiagnosticStatus.ERROR


def status_table(nodes: Iterable[Seen], now: float) -> FittingTable:
    """Return the table at the instant `now` [s]; a node that has been silent for long is marked as stale."""
    rows, styles = [], []
    for seen in sorted(nodes, key=lambda seen: seen.name):
        silent = now - seen.at
        state = Text(printable(seen.message), style=_LEVELS[min(seen.level, len(_LEVELS) - 1)])
        if silent > STALE_AFTER:
            state = Text(f"stale: silent for {silent:.0f} s", style="bold red")
        values = seen.values
        rows.append(
            (
                Text("\n").join([Text(printable(seen.name), style="bold"), state, _lines(_facts(seen))]),
                _lines(_rates(values)),
                _lines(_ages(values)),
                _lines(_percentiles(values)),
                _lines([*_rejected(values), *_limits(values)], "yellow"),
            )
        )
        styles.append("dim" if silent > STALE_AFTER else "")
    heads = [Text(column, style="bold") for column in COLUMNS]
    return table(heads, rows, range(len(COLUMNS)), styles, lines=True)


def _facts(seen: Seen) -> Iterator[str]:
    values = seen.values
    yield seen.robot
    yield values.get("engine", "")
    if values.get("order"):
        yield f"order {values['order']}{', clamped' if values.get('clamp') == 'True' else ''}"


def _rates(values: Mapping[str, str]) -> Iterator[str]:
    for key, value in values.items():
        if match := _RATE.fullmatch(key):
            yield f"{_round(value)} {match[1]}"


def _ages(values: Mapping[str, str]) -> Iterator[str]:
    for key, value in values.items():
        if match := _AGE.fullmatch(key):
            age = "none yet" if value == "inf" else _round(value, small=".2f")
            yield f"{age} {match[2] or match[1]}"


def _percentiles(values: Mapping[str, str]) -> Iterator[str]:
    for key, median in values.items():
        if (match := _MEDIAN.fullmatch(key)) and median != "nan":
            last = values.get(f"{match[1]} p99 [us]", "nan")
            yield f"{_round(median)} · {_round(last)} {match[1]}"


def _rejected(values: Mapping[str, str]) -> Iterator[str]:
    """Yield what was rejected, by reason, and what the middleware has missed or could not match."""
    for key, count in values.items():
        rejected = "rejected" in key and not any(other.startswith(f"{key}: ") for other in values)
        if count != "0" and (rejected or key.startswith(_EVENTS)):
            yield f"{count} {key.removeprefix('rejected: ').removeprefix('rejected ')}"


def _limits(values: Mapping[str, str]) -> Iterator[str]:
    for key in _LIMITS:
        if values.get(key, "0") != "0":
            yield f"{values[key]} {key}"


def _lines(lines: Iterable[str], style: str = "") -> Text:
    return Text("\n".join(printable(line).strip() for line in lines if line), style=style)


def printable(text: str) -> str:
    """Return a text of somebody else without what would command the terminal, such as escape sequences."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _round(value: str, small: str = ".3g") -> str:
    """Write a number as short as it can be read at a glance; what is none stays as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    return f"{number:.0f}" if abs(number) >= 100.0 else format(number, small)
