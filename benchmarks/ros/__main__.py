"""Run the benchmark of the node: `python -m benchmarks.ros`, see `--help`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine, report
from benchmarks.ros import latency, memory, picture
from benchmarks.table import terminal_tables
from hodyn_ros import tables
from hodyn_ros.errors import HodynError

_HOME = Path(__file__).resolve().parents[2]
_PICTURE = "node-latency.png"

_QUICK_SECONDS, _QUICK_MINUTES = 6, 0.25


def main(
    quick: Annotated[bool, typer.Option(help="A trial of half a minute; its figures mean little.")] = False,
    seconds: Annotated[int, typer.Option(help="How long each node is asked [s].", min=2)] = 60,
    rate: Annotated[float, typer.Option(help="Messages per second [Hz].", min=10.0, max=2000.0)] = 1000.0,
    minutes: Annotated[
        float, typer.Option("--memory", help="How long the memory is watched [min]; 0: not at all.", min=0.0)
    ] = 10.0,
    write_docs: Annotated[bool, typer.Option(help="Write table and picture into docs/.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit with 1 where a figure is missed.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and picture.")] = _HOME
    / "out/benchmarks/ros",
) -> None:
    """Measure the latency of dynamics_node beside a bare rclpy node, and its memory."""
    if quick:
        seconds, minutes = min(seconds, _QUICK_SECONDS), min(minutes, _QUICK_MINUTES)
    console = tables.console()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:

        def shown(title: str) -> Callable[[str, float], None]:
            task = progress.add_task(title, total=1.0)
            return lambda what, part: progress.update(task, description=what, completed=part)

        passages = latency.measure(rate, seconds, out / "latency", shown("latency"))
        sections = [latency.section(passages, rate)]
        if minutes > 0.0:
            sections.append(memory.section(memory.measure(rate, minutes, out / "memory", shown("memory"))))
    said = machine.ros_description()
    console.print(terminal_tables(sections))
    console.print("\n".join(f"{name}: {value}" for name, value in said.items()), style="dim", highlight=False)
    report.write_tables(sections, said, out)
    picture.draw(passages, out / _PICTURE)
    console.print(f"written to {out}")
    if write_docs:
        report.fill_page(sections, said, _HOME, "python -m benchmarks.ros")
        picture.draw(passages, _HOME / "docs" / "pictures" / _PICTURE)
    if strict and any(row.verdict == "MISSED" for section in sections for row in section.rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    try:
        typer.run(main)
    except HodynError as error:
        raise SystemExit(f"error: {error}") from None
