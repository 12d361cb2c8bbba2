"""What `hodyn learn` does, once its arguments are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from hodyn_ros import share
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.errors import InputError
from hodyn_ros.identification.files import TABLES, read_recording, require_use
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.learning import Learned, Learner, LearningConfig, read_correction, write_correction
from hodyn_ros.learning.begins import begins_in_bag
from hodyn_ros.learning.response import check_robot
from hodyn_ros.outputs import require_writable
from hodyn_ros.tables import number, progress_bar, say, table
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.files.reader import read_motion

_AROUND = 0.5  # [s] of a recording that are kept about a repetition


class Feedback(NamedTuple):
    """That of the motors, where drives have no gains of their own."""

    natural_frequency: float  # [rad/s]
    damping_ratio: float


class Runs(NamedTuple):
    """Recordings to learn from, what to read of them, and when the motion begins in each, if known."""

    recordings: Sequence[Path]
    columns: Path | None = None
    begin: float | None = None  # [s]
    topics: Sequence[str] = ()  # of bags


def run_learn(
    robot: RobotChoice,
    motion: str,
    runs: Runs,
    before: Path | None,
    feedback: Feedback,
    config: LearningConfig,
    out: Path,
    picture: Path | None,
    console: Console,
) -> Learned:
    """Write the correction to play next; print and return what was learnt. Raises InputError."""
    require_writable(out)
    require_use(runs.recordings, runs.columns, runs.topics)
    model = robot.robot()
    check_robot(model)
    moved = read_motion(share.find("config", motion))
    wanted = moved.for_joints(model.joint_names).trajectory
    known = None if before is None else read_correction(before)
    repetitions: list[JointRecording] = []
    begins: list[float] = []
    for path in runs.recordings:
        recording = read_recording(path, model.joint_names, runs.columns, topics=runs.topics)
        starts = _begins(path, model.joint_names, wanted, runs.begin)
        for start in starts:
            several = len(starts) > 1
            end = start + wanted.duration + _AROUND
            repetitions.append(recording.between(start - _AROUND, end) if several else recording)
            begins.append(start)
    gains = MotorGains.of_drives(model.require_drives(), *feedback)
    with progress_bar(console, "linearising") as progress:
        learned = Learner(model, wanted, gains, config, progress).learn(repetitions, known, begins)
    _print(learned, model.name, console)
    written = [write_correction(learned, model.name, out)]
    if picture is not None:
        written.append(draw(learned, f"{model.name} on {Path(motion).name}", picture))
    say(console, f"written: {', '.join(map(str, written))}")
    return learned


def _begins(path: Path, names: Sequence[str], motion: Trajectory, begin: float | None) -> list[float]:
    if begin is not None:
        return [begin]
    if path.suffix.lower() in TABLES:
        return [0.0]
    begins = begins_in_bag(path, names, motion)
    if not begins:
        raise InputError(
            f"'{path}' holds no desired motion that is this one, whole and at its own speed; say with "
            "--begin at which stamp it begins"
        )
    return begins


def learned_figures(learned: Learned) -> dict[str, Any]:
    """Return what `learn` prints."""
    return {
        "history": [step._asdict() for step in learned.history],
        "contraction": learned.contraction,
        "modes": learned.modes,
        "of_modes": learned.of_modes,
        "predicted_rms": learned.predicted,
        "step": learned.step,
        "share_that_limits_allow": learned.used,
        "links_seen_through_the_model": list(learned.seen),
        "notes": list(learned.notes),
    }


def draw(learned: Learned, title: str, path: Path) -> Path:
    """Draw errors by repetition, and the efforts to play next."""
    # Matplotlib takes a moment, and few ask for a picture
    from matplotlib.figure import Figure

    from hodyn_ros.pictures import joint_style, legend_below, plain, save_picture

    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    figure.suptitle(f"What repetitions have taught {title}")
    left, right = figure.subplots(1, 2)
    counts = np.arange(1, len(learned.history) + 1)
    left.plot(counts, [step.rms for step in learned.history], "o-", color="#0072B2")
    left.set_yscale("log")
    left.set_xticks(counts)
    left.set_xlabel("repetition")
    left.set_ylabel("error, RMS over the joints [rad]")
    correction = learned.correction
    times = np.linspace(0.0, correction.duration, 400)
    lines = []
    for j, values in enumerate(correction.sampled(times).T):
        colour, dashes = joint_style(j)
        lines += right.plot(times, values, dashes, color=colour, linewidth=1.5)
    right.set_xlabel("time of the motion [s]")
    right.set_ylabel("correction to play next [N·m]")
    for ax in (left, right):
        plain(ax)
    legend_below(figure, lines, correction.joint_names)
    return save_picture(figure, path)


def _print(learned: Learned, name: str, console: Console) -> None:
    rows = [
        [str(i + 1), number(step.rms), number(step.noise), str(step.repetitions), step.verdict]
        for i, step in enumerate(learned.history)
    ]
    console.print(table(["", "error, RMS\n[rad]", "noise\n[rad]", "repetitions", ""], rows, texts=(0, 4)))
    said = []
    if np.isfinite(learned.contraction):
        said.append(
            f"{name}: {learned.modes} of {learned.of_modes} parts of the errors are corrected; a repetition "
            f"leaves at most {100.0 * learned.contraction:.0f} % of them, for all robots tried within the "
            "uncertainty"
        )
    if np.isfinite(learned.predicted):
        said.append(f"next repetition: {learned.predicted:.3g} rad at most, for the same robots")
    if learned.seen:
        said.append(
            f"seen through the model, without link encoders: {', '.join(learned.seen)}; an error of the "
            "stiffness does not show"
        )
    say(console, *said)
    say(console, *(f"- {note}" for note in learned.notes), style="yellow")
