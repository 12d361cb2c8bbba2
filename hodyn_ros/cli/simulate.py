"""`hodyn simulate`: one's own robot follows a motion with each kind of feedforward, without ROS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from hodyn_ros import share
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.errors import InputError
from hodyn_ros.learning import read_correction
from hodyn_ros.outputs import write_text
from hodyn_ros.pictures import legend_below, plain, save_picture
from hodyn_ros.simulation.instruments import Instruments, SensorLog
from hodyn_ros.simulation.pictures import MODE_STYLES, windowed_rms
from hodyn_ros.simulation.tracking_study import (
    Loop,
    Outcome,
    RobotErrors,
    StudyConfig,
    TrackingStudy,
    all_runs,
)
from hodyn_ros.tables import progress_bar, say, table
from hodyn_ros.trajectory.files.reader import read_motion

Outcomes = Mapping[FeedforwardMode, Outcome]


class SensorRecord(NamedTuple):
    """What sensors show of the first case with elastic feedforward, and the CSV or bag that it goes to."""

    path: Path
    instruments: Instruments


def run_simulate(
    robot: RobotChoice,
    motion: str,
    cases: Sequence[RobotErrors],
    config: StudyConfig,
    out: Path,
    console: Console,
    *,
    real: RobotChoice | None = None,
    sensor_record: SensorRecord | None = None,
    correction: Path | None = None,
) -> dict[str, Any]:
    """Print how well each feedforward tracks; write a picture and figures to the folder `out`, return these.

    `real` is the robot that runs, where that is not the model's; `correction` is what `hodyn learn` wrote.
    Raises InputError.
    """
    model = robot.robot()
    other = None if real is None else real.robot()
    source = share.find("config", motion)
    wanted = read_motion(source)
    for case in cases:
        case.applied(other or model)  # what cannot be is said before any work
    learned = None if correction is None else read_correction(correction).correction
    if learned is not None and learned.joint_names != model.driven_joints:
        raise InputError(
            f"{correction} is of the joints {list(learned.joint_names)}, the robot has "
            f"{list(model.driven_joints)}"
        )
    added = None if learned is None else learned.at
    if sensor_record is not None:
        SensorLog.require_writable(sensor_record.path)
    out.mkdir(parents=True, exist_ok=True)  # so is what cannot be written
    with progress_bar(console, "simulating") as progress:
        runs = all_runs(TrackingStudy(model, wanted, config, other, added), cases, progress)
    unit = _unit(model)
    console.print(_heading(model, source, cases[0], config.loop), markup=False, highlight=False)
    console.print(_table(cases, runs, unit))
    for line in _notes(runs):
        console.print(line, markup=False, highlight=False)
    figures = _figures(cases, runs, unit)
    write_text(out / "simulate.json", json.dumps(figures, indent=2) + "\n")
    picture = draw_tracking(cases, runs, unit, f"{model.name} on {source.name}", out / "simulate.png")
    written = [picture, out / "simulate.json"]
    first = runs[0][FeedforwardMode.ELASTIC].record
    if sensor_record is not None and first is not None:
        path, instruments = sensor_record
        written.append(instruments.measure(first, config.settling).save(path, model.joint_names))
    say(console, f"written: {', '.join(map(str, written))}")
    return figures


def draw_tracking(
    cases: Sequence[RobotErrors], runs: Sequence[Outcomes], unit: str, title: str, path: Path
) -> Path:
    """Draw errors over time of the first case, and beside it those of all cases where there are several."""
    figure = Figure(figsize=(11.0, 4.8), layout="constrained")
    figure.suptitle(f"Tracking error of {title}, with each kind of feedforward")
    axes = figure.subplots(1, 2 if len(cases) > 1 else 1, squeeze=False)[0]
    for mode, outcome in runs[0].items():
        colour = MODE_STYLES[mode.value][1]
        times, rms = windowed_rms(outcome.times, outcome.errors)
        axes[0].plot(times, rms, color=colour, linewidth=1.8)
    axes[0].set_title(f"stiffness {_signed(cases[0].stiffness)}", loc="left", fontsize=11)
    axes[0].set_xlabel("time [s]")
    legend_below(figure, axes[0].get_lines(), [MODE_STYLES[mode.value][0] for mode in runs[0]])
    if len(cases) > 1:
        order = np.argsort([case.stiffness for case in cases], kind="stable")
        for mode in runs[0]:
            colour = MODE_STYLES[mode.value][1]
            errors = [runs[i][mode].rms for i in order]
            axes[1].plot(
                [100.0 * cases[i].stiffness for i in order], errors, "o-", color=colour, linewidth=1.8
            )
        axes[1].set_title("against the error of the stiffness", loc="left", fontsize=11)
        axes[1].set_xlabel("springs of the robot are stiffer than its model says by [%]")
    for ax in axes:
        ax.set_yscale("log")
        ax.set_ylabel(f"error, RMS over the joints [{unit}]")
        plain(ax)
    return save_picture(figure, path)


def _heading(model: Robot, source: Path, case: RobotErrors, loop: Loop) -> str:
    beside = [
        f"inertias {_signed(case.inertia)}" if case.inertia else "",
        f"a payload of {case.payload:g} kg that the model does not know" if case.payload else "",
    ]
    wrong = "".join(f", {each}" for each in beside if each)
    return (
        f"{model.name} on {source.name}, simulated{wrong}; feedback on the motors at {loop.rate:g} Hz, "
        f"{loop.natural_frequency:g} rad/s"
    )


def _table(cases: Sequence[RobotErrors], runs: Sequence[Outcomes], unit: str) -> Any:
    modes = list(runs[0])
    heads = [
        "stiffness of the robot",
        *(f"{mode.value}\nRMS [{unit}]" for mode in modes),
        f"elastic\nlargest [{unit}]",
        "gain over\nrigid",
        "gain over\noffset",
    ]
    rows = []
    for case, outcomes in zip(cases, runs, strict=True):
        elastic = outcomes[FeedforwardMode.ELASTIC]
        rows.append(
            [
                "as modelled" if not case.stiffness else _signed(case.stiffness),
                *(f"{outcomes[mode].rms:.2e}" for mode in modes),
                f"{elastic.largest:.2e}",
                *_gains(outcomes),
            ]
        )
    return table(heads, rows)


def _gains(outcomes: Outcomes) -> list[str]:
    """How many times the elastic feedforward tracks better than the others."""
    best, worse = outcomes[FeedforwardMode.ELASTIC].rms, (FeedforwardMode.RIGID, FeedforwardMode.OFFSET)
    return [f"{outcomes[mode].rms / best:.3g}" if mode in outcomes else "" for mode in worse]


def _notes(runs: Sequence[Outcomes]) -> list[str]:
    notes = []
    if FeedforwardMode.RIGID in runs[0]:
        notes.append(
            "gain: how many times the elastic feedforward tracks better (RMS); offset: the rigid one, and "
            "motors that lead by torque over stiffness"
        )
    else:
        notes.append(
            "elastic alone: with friction at links, or springs that are damped or not linear, the others "
            "leave out part of what the drives do"
        )
    saturated = sum(outcome.saturated for outcomes in runs for outcome in outcomes.values())
    if saturated:
        notes.append(f"motors were at their limits in {saturated} samples; hodyn check says which, and when")
    stops = [outcome.stopped for outcomes in runs for outcome in outcomes.values() if outcome.stopped]
    if stops:
        notes.append(
            f"the guard stopped {len(stops)} of {sum(map(len, runs))} runs, as it would the robot, and their "
            f"errors say nothing of the feedforward: {stops[0]}"
        )
    return notes


def _figures(cases: Sequence[RobotErrors], runs: Sequence[Outcomes], unit: str) -> dict[str, Any]:
    return {
        "unit": unit,
        "cases": [
            {
                "stiffness_error": case.stiffness,
                "inertia_error": case.inertia,
                "payload_error_kg": case.payload,
                "runs": {
                    mode.value: {
                        "rms_error": outcome.rms,
                        "max_error": outcome.largest,
                        "saturated": outcome.saturated,
                        "stopped": outcome.stopped,
                    }
                    for mode, outcome in outcomes.items()
                },
            }
            for case, outcomes in zip(cases, runs, strict=True)
        ],
    }


def _signed(value: float) -> str:
    return f"{100.0 * value:+.3g} %" if value else "as modelled"


def _unit(model: Robot) -> str:
    structure = model.structure
    slides = {model.tree.slides(joint) for joint in structure.joints}
    if structure.platform is not None or len(slides) > 1:
        return "rad or m"
    return "m" if True in slides else "rad"
