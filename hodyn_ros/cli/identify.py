"""What `hodyn identify` does, once its arguments are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.identification.files import read_recording, require_use
from hodyn_ros.identification.identify import Options, identify
from hodyn_ros.identification.reporting.run import Run
from hodyn_ros.identification.result import Figure, Identified, heads_of_fits
from hodyn_ros.identification.robot_file import robot_text
from hodyn_ros.identification.validation import validate_pieces
from hodyn_ros.outputs import require_writable, write_text
from hodyn_ros.tables import number, progress_bar, say, table


def run_identify(
    robot: RobotChoice,
    recordings: Sequence[Path],
    columns: Path | None,
    topics: Sequence[str],
    options: Options,
    at_motor: bool,
    validations: Sequence[Path],
    out: Path,
    report: Path,
    console: Console,
) -> Identified:
    """Write the robot file `out`, figures and pictures to `report`; print and return what was found."""
    require_writable(out)
    require_use([*recordings, *validations], columns, topics)
    prior = robot.robot()
    used, further = (
        [read_recording(path, prior.joint_names, columns, at_motor, topics) for path in paths]
        for paths in (recordings, validations)
    )
    with progress_bar(console, "identifying") as progress:
        result = identify(prior, used, options, progress)
    bands = ", ".join(f"{band:g}" for band in dict.fromkeys(result.bandwidths))
    console.print(
        f"{prior.name}, identified from {result.source}; motion up to {bands} Hz, condition "
        f"{result.condition:.3g}",
        markup=False,
        highlight=False,
    )
    console.print(_figure_table(result))
    band = min(result.bandwidths)
    runs = [Run.of(used[0].source, (result.efforts, result.deflections), band, used=True)]
    runs += [Run.of(source, fits, band, used=True) for source, fits in result.further]
    left_out: list[str] = []
    for each in further:
        pieces, lines = validate_pieces(result, prior, each, options.bandwidth)
        left_out += lines
        runs += [Run.of(source, fits, band) for source, fits in pieces]
    for run in runs:
        console.print(f"\nnot explained of {run.title}:", markup=False, highlight=False)
        console.print(table(heads_of_fits(prior), run.rows()))
    say(console, *(f"- {note}" for note in (*result.notes, *left_out)), style="yellow")
    write_text(out, robot_text(result))
    from hodyn_ros.identification.reporting.report import write_report

    written = [out, *write_report(result, runs, report)]
    say(console, f"written: {', '.join(map(str, written))}")
    return result


def _figure_table(result: Identified) -> object:
    rows = [_row(each) for each in (*result.figures, result.effort_delay)]
    return table(["figure", "value", "deviation", "file", "unit", ""], rows, texts=(0, 4, 5))


def _row(each: Figure) -> list[str]:
    value, deviation = (number(v) if np.isfinite(v) else "" for v in (each.value, each.deviation))
    file = "rigid" if np.isinf(each.prior) else number(each.prior)
    return [each.name, value, deviation, file, each.unit, "" if each.identified else "not identified"]
