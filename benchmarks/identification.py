"""Figures of arms from a recording, judged by the efforts of another one: beside figaroh.

An elastic Panda in MuJoCo, whose springs and friction differ by 20 % from the file, and, where the variable
RECORDINGS names a folder with `kuka_kr300/run_a.csv`, ten seconds of a KUKA KR300 (`docs/identification.md`),
of which the last third is not used. Neither is told the motion: both have positions and efforts alone.
Of the KR300, whose first three gears have encoders on both sides, also what springs identified from a part of
the recording leave of motor minus link in the rest of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.contacts import CASES, PERIOD, recorded, robot_with_friction, wrong
from benchmarks.peers import figaroh_rigid
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot, share
from hodyn_ros.formulations.parameters import PER_BODY
from hodyn_ros.identification import Channel, JointRecording, identify
from hodyn_ros.identification.consistency import are_bodies
from hodyn_ros.identification.validation import validate

_EVERY = 4  # samples of which one is taken: 250 Hz
_CUTOFFS = (2.0, 5.0, 10.0, 20.0, 40.0)  # [Hz] of figaroh's filter; the one counts that predicts best
_ENDS = 0.5  # [s] at either end of what is predicted, where filters are poor
_PARTS = {
    "first half": (0.0, 0.5),
    "second half": (0.5, 1.0),
    "first two thirds": (0.0, 2.0 / 3.0),
    "last two thirds": (1.0 / 3.0, 1.0),
}  # of a recording, by whose rest springs are judged
_KR300 = "kuka_kr300/run_a.csv"
_KR300_GEARS = np.array([256.85714, 267.42857, 252.33333, 221.0, 239.61905, 154.32313])
_KR300_START = np.array([0.0, -0.5 * np.pi, 0.5 * np.pi, 0.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False)
class Task:
    """An arm as its file says it is, what is identified from, and what is predicted."""

    name: str
    robot: Robot
    run: JointRecording
    unseen: JointRecording


@dataclass(frozen=True)
class Outcome:
    """How well efforts are predicted, in how many seconds of the processor, and how many bodies can be."""

    error: float  # RMS over all joints [N.m]
    seconds: float
    bodies: int


def tasks(stage: Stage) -> Iterator[Task]:
    """Yield what is identified."""
    robot, (lasts, unseen) = robot_with_friction(), (6.0, 3.0) if stage.quick else (12.0, 6.0)
    for i, (stiffness, friction) in enumerate(CASES[:1] if stage.quick else CASES[::3]):
        stage.say("identification: simulated", 0.2 * i)
        plant = wrong(robot, stiffness, friction)
        yield Task(
            f"Panda in MuJoCo, springs {stiffness:+.0%}, friction {friction:+.0%}",
            robot,
            _simulated(robot, plant, 21, lasts),
            _simulated(robot, plant, 23, unseen),
        )
    run = None if stage.quick else _kr300()
    if run is not None:
        stage.say("identification: KR300", 0.6)
        begin, end = run.interval
        split = begin + (end - begin) * 2.0 / 3.0
        kuka = Robot.load(share.find("config", "kuka_kr300.yaml"))
        yield Task("KUKA KR300", kuka, run.between(begin, split), run.between(split, end))


def _simulated(robot: Robot, plant: Robot, seed: int, lasts: float) -> JointRecording:
    run = recorded(robot, plant, 0, seed, lasts)
    times = PERIOD * np.arange(len(run.links), dtype=np.float64)[::_EVERY]
    efforts, motors, links = (
        Channel(times, values[::_EVERY]) for values in (run.efforts, run.motors, run.links)
    )
    return JointRecording("a Panda in MuJoCo", robot.joint_names, efforts, motors, links)


def _kr300() -> JointRecording | None:
    path = Path(os.environ.get("RECORDINGS", "")) / _KR300
    if not path.is_file():
        return None
    table = np.genfromtxt(path, delimiter=",", names=True)
    columns = [f"{{}}{axis}_{{}}" for axis in range(1, 7)]
    motors, efforts = (
        np.stack([table[column.format(*what)] for column in columns], 1)
        for what in (("motor", "rad"), ("torque", "Nm"))
    )
    links = np.full_like(motors, np.nan)
    links[:, :3] = np.stack([table[column.format("link", "rad")] for column in columns[:3]], 1)
    names = tuple(f"joint_a{axis}" for axis in range(1, 7))
    times = table["t_s"]
    at_motors, at_links = (Channel(times, values + _KR300_START) for values in (motors, links))
    return JointRecording(path.name, names, Channel(times, efforts * _KR300_GEARS), at_motors, at_links)


def ours(task: Task) -> Outcome:
    """Identify by this package."""
    begun = process_time()
    found = identify(task.robot, task.run)
    seconds = process_time() - begun
    fits, _ = validate(found, task.robot, task.unseen)
    times, measured = task.unseen.efforts.times, task.unseen.efforts.values
    errors = [
        fit.predicted - np.interp(fit.times, times, measured[:, j])
        for j, fit in enumerate(fits)
        if fit.joint == task.robot.joint_names[j]
    ]
    kept = _inside(fits[0].times, times)
    bodies = found.parameters[: PER_BODY * task.robot.tree.n_bodies]
    return Outcome(_rms(np.stack(errors, 1)[kept]), seconds, int(are_bodies(bodies).sum()))


def figaroh(task: Task, cutoff: float) -> Outcome:
    """Identify by figaroh, from the motors. Raises ImportError where it is not installed."""
    run, unseen = task.run, task.unseen
    assert run.motors is not None and unseen.motors is not None
    figaroh_rigid.load()  # which is not timed
    begun = process_time()
    found = figaroh_rigid.identified(
        task.robot, run.efforts.times, run.motors.values, run.efforts.values, cutoff
    )
    seconds = process_time() - begun
    predicted = found.predict(unseen.efforts.times, unseen.motors.values)
    kept = _inside(unseen.efforts.times, unseen.efforts.times)
    return Outcome(_rms((predicted - unseen.efforts.values)[kept]), seconds, found.bodies)


def measure(stage: Stage) -> Section:
    """Identify all by both."""
    rows = []
    for task in tasks(stage):
        stage.say(f"identification: {task.name}", 0.5)
        us = ours(task)
        try:
            them = min((figaroh(task, cutoff) for cutoff in _CUTOFFS), key=lambda outcome: outcome.error)
        except ImportError:
            rows.append(Row(f"{task.name}: RMS of efforts not used", "figaroh", None, note="not installed"))
            continue
        count, name = task.robot.tree.n_bodies, task.name
        rows += [
            Row(
                f"{name}: RMS of efforts not used",
                "figaroh's",
                Figure.exact(us.error / them.error),
                must=Bound(1.0),
            ),
            Row(f"{name}: the same", "", Figure.exact(us.error), unit="N·m"),
            Row(
                f"{name}: bodies of {count} that can be",
                "",
                Figure.exact(us.bodies),
                unit="",
                must=Bound(count, True),
            ),
            Row(f"{name}: figaroh's of them", "", Figure.exact(them.bodies), unit=""),
            Row(
                f"{name}: processor time",
                "figaroh",
                Figure.exact(us.seconds / them.seconds),
                us.seconds,
                them.seconds,
            ),
        ]
    return Section("identified from a recording, judged by another one", [*rows, *_springs(stage)])


def _springs(stage: Stage) -> list[Row]:
    """Identify springs of the KR300 from parts of its recording, and predict the rest of it."""
    run = None if stage.quick else _kr300()
    if run is None:
        return []
    kuka, rows = Robot.load(share.find("config", "kuka_kr300.yaml")), []
    begin, end = run.interval
    for k, (name, (first, last)) in enumerate(_PARTS.items()):
        stage.say(f"identification: springs of the KR300 by its {name}", 0.7 + 0.07 * k)
        first, last = (begin + share_of * (end - begin) for share_of in (first, last))
        rest = run.between(last, end) if last < end else run.between(begin, first)
        found = identify(kuka, run.between(first, last))
        rows += [
            Row(
                f"KR300, springs by its {name}: motor minus link of {fit.joint} left of the rest",
                "",
                Figure.exact(1e6 * fit.rms),
                unit="µrad",
            )
            for fit in validate(found, kuka, rest)[1]
        ]
    return rows


def _inside(times: Array, whole: Array) -> Array:
    return np.asarray((times > whole[0] + _ENDS) & (times < whole[-1] - _ENDS))


def _rms(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))
