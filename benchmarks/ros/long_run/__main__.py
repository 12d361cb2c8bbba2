"""Run everything at once for long: `python -m benchmarks.ros.long_run`, see `--help`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine
from benchmarks.report import END, fill_between
from benchmarks.ros import load
from benchmarks.ros.long_run import measure, picture, result
from hodyn_ros import tables
from hodyn_ros.errors import HodynError

_HOME = Path(__file__).resolve().parents[3]
_PAGE, _PICTURE = _HOME / "docs" / "long_runs.md", _HOME / "docs" / "pictures" / "long-run.png"
_BEGIN = "<!-- written by python -m benchmarks.ros.long_run --write-docs -->"


def main(
    minutes: Annotated[float, typer.Option(help="How many minutes each run takes.", min=0.2)] = 60.0,
    rate: Annotated[
        float, typer.Option(help="Samples of the motion per second [Hz].", min=6.0, max=2000.0)
    ] = 250.0,
    command_rate: Annotated[
        float,
        typer.Option(help="Measurements, commands and references per second [Hz].", min=6.0, max=2000.0),
    ] = 500.0,
    busy: Annotated[
        bool,
        typer.Option(
            "--load/--no-load", help="Whether stress-ng keeps the machine busy, at the lowest priority."
        ),
    ] = True,
    realtime: Annotated[
        bool, typer.Option(help="Only with the real-time settings of the nodes; else only without.")
    ] = False,
    again: Annotated[
        list[Path] | None, typer.Option(help="Measure nothing; read such a run from its folder. Repeatable.")
    ] = None,
    write_docs: Annotated[bool, typer.Option(help="Write tables and picture into docs/.")] = False,
    keep_bag: Annotated[bool, typer.Option(help="Leave the recording, a gigabyte in 20 minutes.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for what was seen, tables and picture.")] = _HOME
    / "out/benchmarks/long_run",
) -> None:
    """Let a simulated Panda work with all nodes at once, and end with 1 where a bound is broken."""
    console = tables.console()
    folders = again or [out / (load.REALTIME if realtime else load.ORDINARY)]
    if not again:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, refresh_per_second=1) as progress:
            task = progress.add_task("long run", total=1.0)
            measure.measure(
                60.0 * minutes,
                rate,
                command_rate,
                folders[0].resolve(),
                lambda what, part: progress.update(task, description=what, completed=part),
                busy=busy,
                realtime=realtime,
                keep_bag=keep_bag,
            )
        around = machine.ros_description() | {
            "load": f"{' '.join(load.stressors())} at the lowest priority"
            if busy
            else "whatever else the machine did"
        }
        (folders[0] / "machine.json").write_text(json.dumps(around, indent=1))
    runs = [result.read(folder, folder.name) for folder in folders]
    said = [json.loads((folder / "machine.json").read_text()) for folder in folders]
    lines = [
        f"{run.name}: {', '.join(f'{name} {value}' for name, value in words.items())}."
        for run, words in zip(runs, said)
    ]
    text = "\n\n".join([result.tables(runs), *lines])
    out.mkdir(parents=True, exist_ok=True)
    (out / "tables.md").write_text(f"{text}\n", encoding="utf-8")
    picture.draw(runs, out / _PICTURE.name)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(f"written to {out}")
    if write_docs:
        fill_between(_PAGE, _BEGIN, END, text)
        picture.draw(runs, _PICTURE)
    broken = [f"{run.name}: {line}" for run in runs for line in run.broken()]
    for line in broken:
        console.print(f"not held: {line}", style="red", markup=False, highlight=False, soft_wrap=True)
    if broken:
        raise typer.Exit(1)


if __name__ == "__main__":
    try:
        typer.run(main)
    except HodynError as error:
        raise SystemExit(f"error: {error}") from None
