"""How much of its error an arm in MuJoCo loses in five repetitions of a motion; see `repeated_arm`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import repeated_arm
from benchmarks.repeated_arm import Arm, Plant, Run
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.learning import Learned, Learner
from hodyn_ros.trajectory import WaypointSpline

REPETITIONS = 5  # that are learnt from
STIFFNESS = (0.8, 1.2)  # of the springs, of what the file says
FEEDBACK = (30.0, 60.0)  # [rad/s] of the motors
SLOWER = 0.8  # of the speed that was learnt at


@dataclass(frozen=True, eq=False)
class Lesson:
    """What an arm has learnt."""

    errors: Array  # (repetitions + 1,) RMS of the links [rad], the last one with what all of them taught
    noise: float  # standard deviation of one of them [rad]
    slower: float  # error at a lower speed with the correction, over that without
    learned: Learned

    @property
    def left(self) -> float:
        """What is left of the first error."""
        return float(self.errors[-1] / self.errors[0])

    @property
    def worse(self) -> float:
        """By how many deviations of the noise a repetition was worse than the one before it, at most."""
        return float(np.diff(self.errors).max() / self.noise)


def recording(run: Run, links: bool, source: str = "a repetition") -> JointRecording:
    """Return what is recorded of a run, with link encoders or without."""
    return JointRecording(
        source,
        repeated_arm.NAMES,
        Channel(run.times, run.efforts),
        Channel(run.times, run.motors),
        Channel(run.times, run.seen_links) if links else None,
    )


def played(learned: Learned | None, speed: float = 1.0) -> Callable[[float], Array] | None:
    """Return the efforts to add at each time [s] of a motion at a share of the speed that was learnt at."""
    if learned is None:
        return None
    correction = learned.correction
    return lambda time: correction.at(speed * time)[0]


def rms(run: Run, motion: WaypointSpline) -> float:
    """Return the root mean square of the links' errors [rad]."""
    return float(np.sqrt(np.mean(run.errors(motion) ** 2)))


def lesson(plant: Plant, learner: Learner, frequency: float, links: bool, count: int = REPETITIONS) -> Lesson:
    """Let an arm repeat its motion and learn from it."""
    model, motion = learner.robot, repeated_arm.motion()
    arm, learned, errors = Arm(plant, model, frequency), None, []
    for _ in range(count):
        run = arm.repeat(motion, played(learned))
        errors.append(rms(run, motion))
        learned = learner.learn([recording(run, links)], learned)
    assert learned is not None
    errors.append(rms(arm.repeat(motion, played(learned)), motion))
    slow = repeated_arm.motion(SLOWER)
    without, with_it = (
        rms(Arm(plant, model, frequency).repeat(slow, added), slow)
        for added in (None, played(learned, SLOWER))
    )
    noise = max(step.noise for step in learned.history)
    return Lesson(np.array(errors), noise, with_it / without, learned)


def lessons(stage: Stage | None = None, links: bool = True) -> list[Lesson]:
    """Return what is learnt with springs softer and stiffer than known, and with both feedbacks."""
    found: list[Lesson] = []
    for frequency in FEEDBACK:
        model = repeated_arm.robot()
        learner = Learner(model, repeated_arm.motion(), repeated_arm.gains(model, frequency))
        for stiffness in STIFFNESS:
            if stage is not None:
                stage.say("repetitions", 0.25 * len(found))
            found.append(lesson(Plant(stiffness), learner, frequency, links))
    return found


def measure(stage: Stage) -> Section:
    """Learn with encoders of links, and with those of motors alone."""
    rows = []
    for links, what, must in ((True, "link encoders", 5.0), (False, "motor encoders alone", 25.0)):
        found = lessons(stage, links)
        for name, values, bound in (
            ("link error after five repetitions, of the first", [100.0 * one.left for one in found], must),
            (
                "the same used at 80 % of the speed, of that without it",
                [100.0 * one.slower for one in found],
                50.0,
            ),
        ):
            rows.append(Row(f"{name}, {what}", "", _worst(values), must=Bound(bound), unit="%"))
        worse = [one.worse for one in found]
        rows.append(
            Row(
                f"worse than the repetition before, {what}",
                "",
                _worst(worse),
                must=Bound(3.0),
                unit="deviations",
            )
        )
        bounds = [100.0 * one.learned.contraction for one in found]
        rows.append(Row(f"computed: a repetition leaves at most, {what}", "", _worst(bounds), unit="%"))
    title = "Five repetitions of an elastic arm in MuJoCo: 1 kg and all friction unknown, springs 20 % off"
    return Section(title, rows)


def _worst(values: list[float]) -> Figure:
    return Figure(max(values), min(values), max(values))


def draw(path: Path) -> None:
    """Draw the errors of the links by repetition."""
    from matplotlib.figure import Figure as Picture

    from hodyn_ros.pictures import legend_below, plain, save_picture

    picture = Picture(figsize=(9.5, 4.4), layout="constrained")
    axes, lines = picture.subplots(1, 2, sharey=True), []
    for ax, frequency in zip(axes, FEEDBACK):
        model = repeated_arm.robot()
        learner = Learner(model, repeated_arm.motion(), repeated_arm.gains(model, frequency))
        for links, colour in ((True, "#0077BB"), (False, "#EE7733")):
            for stiffness, dashes in zip(STIFFNESS, ("-", "--")):
                errors = lesson(Plant(stiffness), learner, frequency, links).errors
                (line,) = ax.plot(np.arange(1, len(errors) + 1), 1e3 * errors, "o" + dashes, color=colour)
                lines.append(line)
        ax.set_title(f"feedback of the motors: {frequency:g} rad/s", loc="left", fontsize=11)
        ax.set_yscale("log")
        ax.set_xlabel("repetition")
        plain(ax)
    axes[0].set_ylabel("error of the links, RMS [mrad]")
    names = [f"{what}, {100.0 * s:g} %" for what in ("link encoders", "motors alone") for s in STIFFNESS]
    legend_below(picture, lines[:4], names)
    picture.suptitle(
        "An elastic arm in MuJoCo that knows nothing of 1 kg, of its friction, and of springs at 80 and 120 %"
    )
    save_picture(picture, path)


if __name__ == "__main__":
    draw(Path("docs/pictures/repetitions.png"))
