"""Run the benchmarks: `python -m benchmarks`, see `--help`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import (
    aerial,
    batch,
    calls,
    compiled_code,
    compiling,
    contacts,
    drives,
    free_motion,
    growth,
    identification,
    insensitive,
    libraries,
    loop_kinematics,
    loops,
    machine,
    matrices,
    model_errors,
    optimisers,
    papers,
    parallel,
    payloads,
    plans,
    platform_contacts,
    policies,
    predictive,
    python_calls,
    repetitions,
    report,
    retimed,
    streams,
)
from benchmarks.stage import Stage
from benchmarks.table import Section, terminal_tables
from hodyn_ros import tables

_HOME = Path(__file__).resolve().parent.parent
_WORKS: dict[str, Callable[[Stage], Section]] = {
    "python": python_calls.measure,
    "compiled": compiled_code.measure,
    "aerial": aerial.measure,
    "growth": growth.measure,
    "batch": batch.measure,
    "compiling": compiling.measure,
    "matrices": matrices.measure,
    "optimisers": optimisers.measure,
    "calls": calls.measure,
    "parallel": parallel.measure,
    "loops": loops.measure,
    "loop-kinematics": loop_kinematics.measure,
    "drives": drives.measure,
    "free-motion": free_motion.measure,
    "plans": plans.measure,
    "insensitive": insensitive.measure,
    "retimed": retimed.measure,
    "contacts": contacts.measure,
    "platform-contacts": platform_contacts.measure,
    "predictive": predictive.measure,
    "identification": identification.measure,
    "payloads": payloads.measure,
    "repetitions": repetitions.measure,
    "model-errors": model_errors.measure,
    "streams": streams.measure,
    "policies": policies.measure,
    "libraries": libraries.measure,
    "papers": papers.measure,
}


def main(
    quick: Annotated[bool, typer.Option(help="Fewer orders and rounds: some minutes.")] = False,
    only: Annotated[list[str], typer.Option(help=f"Only these: {', '.join(_WORKS)}.")] = [],  # noqa: B006
    write_docs: Annotated[bool, typer.Option(help="Write table and picture into docs/.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit with 1 where a figure is missed.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and picture.")] = _HOME
    / "out/benchmarks",
) -> None:
    """Measure hodyn_ros beside its neighbours, all in one run."""
    unknown = set(only) - set(_WORKS)
    if unknown:
        raise typer.BadParameter(f"there is no {sorted(unknown)}; choose from {list(_WORKS)}")
    console = tables.console()
    sections = _measured(console, quick, only or list(_WORKS))
    said = machine.description()
    console.print(terminal_tables(sections))
    console.print("\n".join(f"{name}: {value}" for name, value in said.items()), style="dim", highlight=False)
    report.write(sections, said, out)
    console.print(f"written to {out}")
    if write_docs:
        report.write_docs(sections, said, _HOME)
    if strict and any(row.verdict == "MISSED" for section in sections for row in section.rows):
        raise typer.Exit(1)


def _measured(console: Console, quick: bool, names: list[str]) -> list[Section]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    sections = []
    with Progress(*columns, console=console) as progress:
        for name in names:
            task = progress.add_task(name, total=1.0)

            def say(what: str, part: float, task: object = task) -> None:
                progress.update(task, description=what, completed=part)  # type: ignore[arg-type]

            sections.append(_WORKS[name](Stage(quick, say)))
            progress.update(task, description=sections[-1].title, completed=1.0)
    return sections


if __name__ == "__main__":
    # CasADi announces a change of NumPy's functions on its matrices; none are called here.
    warnings.filterwarnings("ignore", message=r"\s*casadi: a numpy function", category=FutureWarning)
    typer.run(main)
