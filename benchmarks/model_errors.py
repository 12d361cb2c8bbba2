"""What the links of a Panda in MuJoCo are off by as more becomes known of it: `hodyn demo model-errors`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.stage import Stage
from benchmarks.stopwatch import Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros.demo.model_errors import (
    CARRYING,
    DAMPING_TIME,
    EXACT,
    LEARNT,
    STEPS,
    WRONG,
    ModelErrors,
    Show,
    model_errors,
)
from hodyn_ros.demo.mujoco_arm import MujocoArm

_AS_IF_KNOWN = 1.1  # times the error with an exact model, that what was identified and estimated leaves


def in_mujoco(show: Show | None = None) -> ModelErrors:
    """Let it follow its motion with each model."""
    return model_errors(partial(MujocoArm, damping_time=DAMPING_TIME), show)


def measure(stage: Stage) -> Section:
    """Return its errors with each model."""
    found = in_mujoco(lambda what, done: stage.say(f"model errors: {what}", done))
    rows = [
        Row(f"error of the links, {step}", "", Figure.exact(1e3 * found.runs[step].rms), unit="mrad")
        for step in STEPS
    ]
    rms = {step: found.runs[step].rms for step in STEPS}
    rows += [
        Row(
            "with payload and identified figures", "exact model", Figure.exact(rms[CARRYING] / rms[EXACT]),
            must=Bound(_AS_IF_KNOWN),
        ),
        Row("after repetitions", "exact model", Figure.exact(rms[LEARNT] / rms[EXACT]), must=Bound(1.0)),
        Row("wrong model", "after all of it", Figure.exact(rms[WRONG] / rms[LEARNT])),
    ]  # fmt: skip
    return Section("a Panda in MuJoCo as more becomes known of it", rows)


if __name__ == "__main__":
    from hodyn_ros.cli.model_errors import draw

    draw(
        in_mujoco(),
        "A Panda in MuJoCo, as more becomes known of it",
        Path("docs/pictures/model-errors.png"),
    )
