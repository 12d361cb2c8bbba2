"""What the project promises, and a run that measures all of it: `python -m benchmarks.promises`.

Each promise is held by a command that exits with 0 where it holds: tests with all of their sweeps, or
benchmarks with `--strict`. What was found, when, and on which processor stays in `data/promises.json`;
docs/promises.md shows it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from benchmarks.machine import date, processor
from benchmarks.report import fill_between
from hodyn_ros import tables

_HOME = Path(__file__).resolve().parent.parent
_RECORD = Path(__file__).with_name("data") / "promises.json"
_PAGE = _HOME / "docs" / "promises.md"
_BEGIN, _END = "<!-- written by python -m benchmarks.promises --write-docs -->", "<!-- end -->"
_PROCESSORS = 2  # on so many at least each promise shall have been measured


@dataclass(frozen=True)
class Promise:
    """Something that users may rely on: in words, the page that says more, and what measures it.

    `command`: of this Python or of make; `tests`: files or folders of tests instead, run with all sweeps.
    """

    name: str
    says: str
    page: str
    command: str = ""
    tests: str = ""

    def arguments(self, workers: int) -> list[str]:
        """Return the command that holds the promise; `workers`: processes among which tests are shared."""
        shared = f"-n {workers} --dist loadgroup --no-loadscope-reorder" if workers > 1 else "-n 0"
        program, *arguments = shlex.split(self.command or f"python -m pytest -q {shared} {self.tests}")
        return [sys.executable if program == "python" else program, *arguments]

    @property
    def shown(self) -> str:
        """What a user types."""
        return self.command or f"HODYN_TEST=thorough pytest {self.tests}"


PROMISES = (
    Promise(
        "accuracy",
        "efforts, motions and matrices are within 1e-11 of arithmetic with 40 digits, orders 0 to 6, of "
        "arms, floating bases, platforms and linkages",
        "accuracy.md",
        tests="test/dynamics/test_accuracy.py test/dynamics/test_inverse_dynamics.py test/dynamics/parallel "
        "test/dynamics/loops",
    ),
    Promise(
        "digits",
        "near singular poses the error is at most ten times what `accuracy` estimates in 99 % of calls, and "
        "a call with fewer than six digits refuses",
        "accuracy.md",
        tests="test/dynamics/test_digits.py",
    ),
    Promise(
        "other processors",
        "tests of what is numerical pass with the rounding of x86-64-v2, v3 (on ARM armv8-a) and this "
        "processor",
        "accuracy.md#on-another-processor",
        command="make test-rounding",
    ),
    Promise(
        "speed",
        "every ratio of the table of the benchmarks",
        "benchmarks.md#the-mathematics",
        command="python -m benchmarks --strict",
    ),
    Promise(
        "the node",
        "median latency, losses and memory of dynamics_node beside a bare rclpy node",
        "benchmarks.md#the-node",
        command="python -m benchmarks.ros --strict",
    ),
    Promise(
        "batches and float32",
        "batches are single calls to rounding; with four bytes errors stay within eight times what rounding "
        "the input does",
        "dynamics.md#the-engine",
        tests="test/dynamics/test_batches.py test/engine",
    ),
    Promise(
        "C code",
        "exported functions agree with Python to 1e-12 of the largest number of an order, every operation",
        "export.md#guarantees",
        tests="test/export",
    ),
    Promise(
        "the guard",
        "no fault, planned or at random, leads beyond the bars of efforts, speed and position",
        "safety.md",
        tests="test/guard test/nodes/faults",
    ),
    Promise(
        "limits",
        "motions of `plan`, `retime` and streams keep every limit, by an independent dense search",
        "control.md#can-the-robot-do-this-motion",
        tests="test/planning",
    ),
    Promise(
        "identification",
        "95 % intervals hold what is true, on simulated plants apart from the package",
        "identification.md#how-well",
        tests="test/identification",
    ),
    Promise(
        "observers",
        "contacts and payloads: deviations hold, and the shares of other observers' delay and force",
        "observers.md#how-small-a-contact-is-found",
        command="python -m benchmarks --strict --only contacts --only payloads",
    ),
    Promise(
        "bags",
        "a replay returns the recorded answers bit for bit, and nothing that was recorded is lost",
        "bags.md",
        tests="test/bags test/replay",
    ),
    Promise(
        "bad input",
        "files, messages and arguments that are wrong get one clear error each; nodes stay up and publish "
        "nothing false",
        "robustness.md",
        tests="test/model test/nodes test/cli",
    ),
)


def main(
    only: Annotated[list[str], typer.Option(help=f"Only these: {', '.join(p.name for p in PROMISES)}.")] = [],  # noqa: B006
    workers: Annotated[int, typer.Option(help="Processes among which tests are shared.", min=1)] = 2,
    write_docs: Annotated[bool, typer.Option(help="Write the record and docs/promises.md.")] = False,
    list_only: Annotated[
        bool, typer.Option("--list", help="Only say what is promised and what is on record.")
    ] = False,
) -> None:
    """Measure what the project promises, some hours; exit code 1 where a promise is not held."""
    unknown = set(only) - {promise.name for promise in PROMISES}
    if unknown:
        raise typer.BadParameter(f"there is no {sorted(unknown)}; choose from {[p.name for p in PROMISES]}")
    console, record = tables.console(), _read()
    missed = []
    for promise in PROMISES:
        if list_only or (only and promise.name not in only):
            continue
        console.print(f"{promise.name}: {promise.shown}")
        found = measured(promise, workers)
        if not found["held"]:
            missed.append(promise.name)
        console.print(f"{promise.name}: {'held' if found['held'] else 'NOT HELD'}, {found['seconds']} s")
        # each at once: what takes hours may be interrupted
        record = _written_with(found) if write_docs else with_result(record, found)
    console.print(_terminal_table(record))
    if missed:
        console.print(f"not held: {', '.join(missed)}")
        raise typer.Exit(1)


def measured(promise: Promise, workers: int) -> dict[str, Any]:
    """Run what holds a promise, and return what was found."""
    start = time.monotonic()
    environment = os.environ | ({"HODYN_TEST": "thorough"} if promise.tests else {})
    code = subprocess.call(promise.arguments(workers), cwd=_HOME, env=environment)
    seconds = round(time.monotonic() - start)
    return {
        "promise": promise.name,
        "processor": processor(),
        "date": date(),
        "held": code == 0,
        "seconds": seconds,
    }


def with_result(record: Sequence[dict[str, Any]], found: dict[str, Any]) -> list[dict[str, Any]]:
    """Put a result in the place of the one of the same promise on the same processor."""
    same = ("promise", "processor")
    kept = [one for one in record if any(one[key] != found[key] for key in same)]
    order = [promise.name for promise in PROMISES]
    return sorted([*kept, found], key=lambda one: (order.index(one["promise"]), one["processor"]))


def page_table(record: Sequence[dict[str, Any]]) -> str:
    """Return the table of docs/promises.md."""
    lines = ["| what is promised | measured by | last |", "| --- | --- | --- |"]
    for promise in PROMISES:
        what = f"[**{promise.name}**]({promise.page}): {promise.says}"
        lines.append(f"| {what} | `{promise.shown}` | {_last(promise, record)} |")
    return "\n".join(lines)


def _last(promise: Promise, record: Sequence[dict[str, Any]]) -> str:
    """Say when a promise was measured last, on which processors, and what came out."""
    own = [one for one in record if one["promise"] == promise.name]
    said = [f"{'held' if one['held'] else '**not held**'} {one['date']}, {one['processor']}" for one in own]
    if len(own) < _PROCESSORS:
        said.append("on no other processor yet" if own else "not measured yet")
    return "; ".join(said)


def _terminal_table(record: Sequence[dict[str, Any]]) -> Table:
    table = Table("promise", "what", "last")
    for promise in PROMISES:
        table.add_row(promise.name, promise.says, _last(promise, record).replace("**", ""))
    return table


def _read() -> list[dict[str, Any]]:
    text = _RECORD.read_text(encoding="utf-8") if _RECORD.exists() else ""
    record: list[dict[str, Any]] = json.loads(text or "[]")
    names = {promise.name for promise in PROMISES}
    return [one for one in record if one["promise"] in names]


def _written_with(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Write record and page with a result more, and return the record; other runs may do so meanwhile."""
    with _RECORD.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        record = with_result(_read(), found)
        _RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        fill_between(_PAGE, _BEGIN, _END, page_table(record))
    return record


if __name__ == "__main__":
    typer.run(main)
