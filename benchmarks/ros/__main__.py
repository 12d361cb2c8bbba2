"""Run the benchmark of the node: `python -m benchmarks.ros`, see `--help`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine, report
from benchmarks.ros import arms, latency, load, memory, picture, rclcpp_peer
from benchmarks.table import terminal_tables
from hodyn_ros import tables
from hodyn_ros.errors import HodynError

_HOME = Path(__file__).resolve().parents[2]
_PICTURE, _LOAD_PICTURE = "node-latency.png", "latency-under-load.png"

_QUICK_SECONDS, _QUICK_MINUTES = 6, 0.25


def main(
    quick: Annotated[bool, typer.Option(help="A trial of half a minute; its figures mean little.")] = False,
    seconds: Annotated[int, typer.Option(help="How long each node is asked [s].", min=2)] = 60,
    rate: Annotated[float, typer.Option(help="Messages per second [Hz].", min=10.0, max=2000.0)] = 1000.0,
    minutes: Annotated[
        float, typer.Option("--memory", help="How long the memory is watched [min]; 0: not at all.", min=0.0)
    ] = 10.0,
    under_load: Annotated[
        bool, typer.Option("--load", help="Only the latency under load, with real-time settings and without.")
    ] = False,
    duration: Annotated[int, typer.Option(help="How long, under load [s].", min=4)] = 3600,
    write_docs: Annotated[bool, typer.Option(help="Write table and picture into docs/.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit with 1 where a figure is missed.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and picture.")] = _HOME
    / "out/benchmarks/ros",
) -> None:
    """Measure dynamics_node: latency and processor time beside other nodes, eight robots at once, memory."""
    if quick:
        seconds, minutes = min(seconds, _QUICK_SECONDS), min(minutes, _QUICK_MINUTES)
        duration = min(duration, _QUICK_SECONDS)
    console = tables.console()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:

        def shown(title: str) -> Callable[[str, float], None]:
            task = progress.add_task(title, total=1.0)
            return lambda what, part: progress.update(task, description=what, completed=part)

        if under_load:
            passages = load.measure(rate, duration, out / "load", shown("load"))
            sections = [load.section(passages, rate)]
        else:
            rclcpp, missing = rclcpp_peer.build(out / "rclcpp")
            passages = latency.measure(rate, seconds, out / "latency", shown("latency"), rclcpp)
            several = arms.measure(rate, seconds, out / "arms", shown("arms"))
            sections = [
                latency.section(passages, rate),
                latency.processor_section(passages),
                arms.section(several, rate, out / "arms" / "traffic.npz"),
            ]
        if minutes > 0.0 and not under_load:
            sections.append(memory.section(memory.measure(rate, minutes, out / "memory", shown("memory"))))
    said = machine.ros_description()
    if under_load:
        said |= {"load": " ".join(load.stressors()), "duration": f"{duration} s"}
    elif missing:
        said |= {"no bare rclcpp node": missing}
    console.print(terminal_tables(sections))
    console.print("\n".join(f"{name}: {value}" for name, value in said.items()), style="dim", highlight=False)
    report.write_tables(sections, said, out)
    shown_as = _LOAD_PICTURE if under_load else _PICTURE
    picture.draw(passages, out / shown_as)
    console.print(f"written to {out}")
    if write_docs:
        if not under_load:  # which promises nothing
            report.fill_page(sections, said, _HOME, "python -m benchmarks.ros")
        picture.draw(passages, _HOME / "docs" / "pictures" / shown_as)
    if strict and any(row.verdict == "MISSED" for section in sections for row in section.rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    try:
        typer.run(main)
    except HodynError as error:
        raise SystemExit(f"error: {error}") from None
