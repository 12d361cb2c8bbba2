"""What `hodyn identify` does, once its arguments are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from hodyn_ros import share
from hodyn_ros.dynamics.read_robot import read_robot
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.identification.files import read_recording
from hodyn_ros.identification.identify import Options, identify
from hodyn_ros.identification.result import Figure, Fit, Identified
from hodyn_ros.identification.robot_file import robot_text
from hodyn_ros.identification.validation import rates, validate
from hodyn_ros.outputs import complete
from hodyn_ros.tables import number, progress_bar, table


def run_identify(
    recording: Path,
    robot: str,
    columns: Path | None,
    options: Options,
    at_motor: bool,
    validations: Sequence[Path],
    out: Path,
    report: Path,
    console: Console,
) -> None:
    """Write the robot file `out`, and figures and pictures to the folder `report`; print what was found."""
    prior = Robot.of(read_robot(share.find("config", robot)))
    data = read_recording(recording, prior.joint_names, columns, at_motor)
    others = [read_recording(path, prior.joint_names, columns, at_motor) for path in validations]
    with progress_bar(console, "identifying") as progress:
        found = identify(prior, data, options, progress)
    bands = ", ".join(f"{band:g}" for band in dict.fromkeys(found.bandwidths))
    console.print(
        f"{prior.name}, identified from {data.source}; motion up to {bands} Hz, condition "
        f"{found.condition:.3g}",
        markup=False,
        highlight=False,
    )
    console.print(_figure_table(found))
    band = min(found.bandwidths)
    _print_fits(found.efforts, found.deflections, data.source, band, console)
    checked = []
    for other in others:
        efforts, deflections = validate(found, prior, other, options.bandwidth)
        _print_fits(efforts, deflections, f"{other.source}, which was not used", band, console)
        checked.append((other.source, efforts, deflections))
    for note in found.notes:
        console.print(f"- {note}", markup=False, highlight=False, style="yellow", soft_wrap=True)
    with complete(out) as path:
        path.write_text(robot_text(found), encoding="utf-8")
    written = [out, *_write_report(found, checked, report)]
    console.print(f"written: {', '.join(map(str, written))}", soft_wrap=True, highlight=False)


def _figure_table(found: Identified) -> object:
    rows = [_row(each) for each in (*found.figures, found.effort_delay)]
    return table(["figure", "value", "deviation", "file", "unit", ""], rows, texts=(0, 4, 5))


def _row(each: Figure) -> list[str]:
    value, deviation = (number(v) if np.isfinite(v) else "" for v in (each.value, each.deviation))
    file = "rigid" if np.isinf(each.prior) else number(each.prior)
    return [each.name, value, deviation, file, each.unit, "" if each.identified else "not identified"]


def _print_fits(
    efforts: Sequence[Fit], deflections: Sequence[Fit], source: str, bandwidth: float, console: Console
) -> None:
    rows = []
    told = rates(efforts, bandwidth)
    bent = {fit.joint: fit for fit in deflections}
    for fit in efforts:
        other = bent.get(fit.joint)
        gap = number(1e6 * other.rms) if other else ""
        left, whole = told[fit.joint]
        rate = number(left) if left < whole else "noise"
        share = number(100.0 * fit.share)
        rows.append([fit.joint, number(fit.rms), number(fit.rms_before), share, rate, gap])
    heads = [
        "joint",
        "effort,\nRMS [N·m]",
        "with the\nfile's figures",
        "share of what\nmoves [%]",
        "its rate,\nRMS [N·m/s]",
        "motor minus link,\nRMS [urad]",
    ]
    console.print(f"\nnot explained of {source}:", markup=False, highlight=False)
    console.print(table(heads, rows))


def _write_report(
    found: Identified, checked: Sequence[tuple[str, Sequence[Fit], Sequence[Fit]]], folder: Path
) -> list[Path]:
    from hodyn_ros.identification.reporting.pictures import draw_figures, draw_fits

    folder.mkdir(parents=True, exist_ok=True)
    data = found.as_data()
    data["validation"] = [
        {
            "source": source,
            "efforts": {fit.joint: fit.rms for fit in efforts},
            "effort_rates": {
                joint: left for joint, (left, _) in rates(efforts, min(found.bandwidths)).items()
            },
            "deflections": {fit.joint: fit.rms for fit in deflections},
        }
        for source, efforts, deflections in checked
    ]
    (folder / "identified.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    written = [folder / "identified.json", draw_figures(found, folder / "figures.png")]
    Run = tuple[str, str, Sequence[Fit], Sequence[Fit]]
    runs: list[Run] = [("", found.source, found.efforts, found.deflections)]
    runs += [(f"validation{i + 1}-", *run) for i, run in enumerate(checked)]
    for start, source, efforts, deflections in runs:
        title = f"{found.robot.name} on {source}"
        written.append(draw_fits(efforts, "N·m", 1.0, f"Efforts of {title}", folder / f"{start}efforts.png"))
        if deflections:
            path = folder / f"{start}deflections.png"
            written.append(draw_fits(deflections, "urad", 1e6, f"Motor minus link of {title}", path))
    return written
