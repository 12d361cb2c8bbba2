"""`hodyn demo model-errors`: what the links are off by, as more and more becomes known of the robot."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hodyn_ros.array import Array
from hodyn_ros.demo.model_errors import (
    BOX,
    CARRYING,
    DAMPING_TIME,
    EXACT,
    IDENTIFIED,
    LEARNT,
    REPEATED,
    ROBOT,
    STEPS,
    WRONG,
    ModelErrors,
    model_errors,
)
from hodyn_ros.extras import needed
from hodyn_ros.observers.payload import NAMES
from hodyn_ros.outputs import write_text
from hodyn_ros.pictures import plain, save_picture
from hodyn_ros.simulation.pictures import windowed_rms
from hodyn_ros.tables import FittingTable, number, say, table

_KNOWN = {
    EXACT: "all",
    WRONG: "no friction, no payload, springs 15 to 20 % off",
    IDENTIFIED: "friction and springs, from a recording without the payload",
    CARRYING: "also the payload, from one repetition",
    LEARNT: "the same, and what the repetitions have taught",
}
_SHOWN = 0.1  # quantile of the errors over time from which on they are in the picture
_COLOURS = dict(zip(STEPS, ("#777777", "#CC3311", "#EE7733", "#0077BB", "#009988")))


def run_model_errors(out: Path, console: Console, mujoco: bool) -> dict[str, Any]:
    """Print the errors with each model; write a picture and figures to the folder `out`, return these.

    The arm is one in MuJoCo where asked for, else one of this package's simulation. Raises InputError where
    MuJoCo is missing.
    """
    out.mkdir(parents=True, exist_ok=True)  # what cannot be written is said before any work
    simulator, where = None, "simulated by this package"
    if mujoco:
        from hodyn_ros.demo.mujoco_arm import MujocoArm

        needed("mujoco")
        simulator, where = partial(MujocoArm, damping_time=DAMPING_TIME), "in MuJoCo"
    columns = TextColumn("{task.description:20}"), BarColumn(), TextColumn("{task.percentage:3.0f} %")
    with Progress(*columns, TimeElapsedColumn(), console=console, refresh_per_second=4) as progress:
        task = progress.add_task("", total=1.0)
        errors_by_step = model_errors(
            simulator, lambda what, done: progress.update(task, description=what, completed=done)
        )
    title = f"A Panda {where}, as more becomes known of it"
    console.print(f"{title}: {ROBOT} on {REPEATED}", style="bold", highlight=False)
    console.print(step_table(errors_by_step))
    for line in became_known(errors_by_step):
        console.print(line, markup=False, highlight=False)
    figures = {"simulator": "mujoco" if mujoco else "hodyn_ros", **summary(errors_by_step)}
    write_text(out / "model_errors.json", json.dumps(figures, indent=2) + "\n")
    picture = draw(errors_by_step, title, out / "model_errors.png")
    say(console, f"written: {picture}, {out / 'model_errors.json'}")
    return figures


def step_table(errors_by_step: ModelErrors) -> FittingTable:
    """Return the table that is shown at the end."""
    rows = [
        (
            step,
            _KNOWN[step],
            number(1e3 * errors_by_step.runs[step].rms, 3),
            number(1e3 * errors_by_step.runs[step].largest, 3),
            number(100.0 * errors_by_step.left(step), 2),
        )
        for step in STEPS
    ]
    heads = ("model", "what it knows", "RMS error\n[mrad]", "largest\n[mrad]", "of the wrong\nmodel's [%]")
    return table(heads, rows, texts=(0, 1))


def became_known(errors_by_step: ModelErrors) -> list[str]:
    """Return what was found beside what is true, a line each."""
    springs, dry, viscous = (100.0 * np.abs(each).max() for each in _shares(errors_by_step))
    load = errors_by_step.payload
    mass, *centre = load.values[:4].tolist()
    low, high = load.intervals[0].tolist()
    off = 1e3 * float(np.abs(np.array(centre) - BOX.centre).max())
    lines = [
        f"identified: springs to {springs:.2g} %, Coulomb friction to {dry:.2g} %, viscous friction to "
        f"{viscous:.2g} %",
        f"payload: {mass:.4g} kg ({low:.4g} to {high:.4g}) for {BOX.mass:g} kg, its centre to {off:.2g} mm",
    ]
    errors = ", ".join(number(1e3 * each, 3) for each in errors_by_step.repetitions.tolist())
    return [*lines, f"by repetition [mrad]: {errors}", *errors_by_step.learned.notes]


def _shares(errors_by_step: ModelErrors) -> list[Array]:
    """Return by what springs, Coulomb and viscous friction (n,) that were identified are off."""
    names = errors_by_step.real.joint_names
    real = errors_by_step.real.require_drives().specs
    true = (
        ("stiffness of", [spec.stiffness for spec in real]),
        ("Coulomb friction of", [spec.motor_friction.coulomb for spec in real]),
        ("viscous friction of", [spec.motor_friction.viscous for spec in real]),
    )
    return [
        np.array([errors_by_step.identified.figure(f"{what} {name}").value for name in names]) / values - 1.0
        for what, values in true
    ]


def summary(errors_by_step: ModelErrors) -> dict[str, Any]:
    """Return all figures as plain data."""
    springs, dry, viscous = (each.tolist() for each in _shares(errors_by_step))
    payload = errors_by_step.payload
    true = [BOX.mass, *BOX.centre]
    return {
        "errors": {
            step: {
                "rms_error_rad": errors_by_step.runs[step].rms,
                "max_error_rad": errors_by_step.runs[step].largest,
                "of_the_wrong_model": errors_by_step.left(step),
            }
            for step in STEPS
        },
        "repetitions_rms_error_rad": errors_by_step.repetitions.tolist(),
        "identified": {
            "joints": list(errors_by_step.real.joint_names),
            "stiffness_off": springs,
            "coulomb_friction_off": dry,
            "viscous_friction_off": viscous,
        },
        "payload": {
            name: {"value": value, "interval": interval, **({"true": true[i]} if i < len(true) else {})}
            for i, (name, value, interval) in enumerate(
                zip(NAMES, payload.values.tolist(), payload.intervals.tolist())
            )
        },
        "learning": {
            "a_repetition_leaves_at_most": errors_by_step.learned.contraction,
            "notes": list(errors_by_step.learned.notes),
        },
    }


def draw(errors_by_step: ModelErrors, title: str, path: Path) -> Path:
    """Draw errors over the motion, and by what is known."""
    figure = Figure(figsize=(11.0, 4.8), layout="constrained")
    figure.suptitle(title)
    over_time, by_step = figure.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.25))
    lowest = np.inf
    for step in STEPS:
        run = errors_by_step.runs[step]
        times, rms = windowed_rms(run.times, run.errors)
        over_time.plot(times, 1e3 * rms, color=_COLOURS[step], linewidth=2.0)
        lowest = min(lowest, 1e3 * float(np.quantile(rms, _SHOWN)))
    over_time.set_yscale("log")
    over_time.set_ylim(bottom=0.7 * lowest)  # before a motion begins, errors may be nothing
    over_time.set_xlabel("time of the motion [s]")
    over_time.set_ylabel("error of the links, RMS over the joints [mrad]")
    _draw_steps(by_step, errors_by_step)
    for ax in (over_time, by_step):
        plain(ax, "y")
    return save_picture(figure, path)


def _draw_steps(ax: Axes, errors_by_step: ModelErrors) -> None:
    """Draw a mark for each model and repetition, with its figure above."""
    marks = [(step, step, errors_by_step.runs[step].rms) for step in STEPS[:-1]]
    count = len(errors_by_step.repetitions) - 1
    marks += [(LEARNT, f"after {i}", float(errors_by_step.repetitions[i])) for i in range(1, count + 1)]
    heights = [1e3 * rms for _, _, rms in marks]
    ax.plot(range(1, len(marks)), heights[1:], color="#BBBBBB", linewidth=1.2, zorder=1)
    for place, ((step, _, _), height) in enumerate(zip(marks, heights)):
        ax.plot(place, height, "o", color=_COLOURS[step], markersize=8.0)
        ax.annotate(
            number(height, 2), (place, height), (0, 9), textcoords="offset points", ha="center",
            fontsize=9, color=_COLOURS[step], fontweight="bold",
        )  # fmt: skip
    ax.set_xticks(range(len(marks)), [_lines(name) for _, name, _ in marks], fontsize=8.5)
    ax.set_xlim(-0.6, len(marks) - 0.4)
    ax.set_xlabel(f"what is known; then {count} repetitions")


def _lines(name: str) -> str:
    return name.replace(" ", "\n")
