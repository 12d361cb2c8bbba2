"""Model predictive control of the elastic Panda, as `examples/predictive_control.py` has it."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from benchmarks.examples import example
from benchmarks.plans import panda
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section

_MOST = 1e-3  # [s] of one core, for a step


def measure(stage: Stage) -> Section:
    """Push the arm in MuJoCo under feedback on its motors and under prediction; time the steps."""
    title = "predictive control of an elastic Panda in MuJoCo, 20 N unannounced"
    if missing := [name for name in ("mujoco", "daqp") if find_spec(name) is None]:
        return Section(title, [Row("link error", "motor PD with feedforward", None, note=f"no {missing[0]}")])
    study = example("predictive_control")
    model, seconds = panda(), np.empty(0)
    duration = study.ENDS if stage.quick else study.MOTION.duration + 0.2
    ratios: dict[float, list[float]] = {study.FREQUENCY: [], study.STIFF: []}
    cases = study.CASES[: 2 if stage.quick else None]
    for i, case in enumerate(cases):
        stage.say(f"{title}: {case.name}", i / len(cases))
        control = study.prediction(model)
        ours = _rms(study.link_errors(model, case, control, duration))
        seconds = np.append(seconds, control.seconds[1:])  # the first one fills the table of the motion
        for frequency, found in ratios.items():
            feedback = study.feedback(model, frequency)
            found.append(ours / _rms(study.link_errors(model, case, feedback, duration)))
    rows = []
    for frequency, must in ((study.FREQUENCY, Bound(1.0 / 3.0)), (study.STIFF, Bound(1.0))):
        right, *wrong = ratios[frequency]
        against = f"motor PD of {frequency:.0f} rad/s with feedforward"
        rows.append(Row("link error, as modelled", against, Figure.exact(right), must=must))
        rows.append(
            Row(
                "link error, worst of springs, inertias, encoders",
                against,
                Figure.exact(max(wrong)),
                must=must,
            )
        )
    step = Figure.of(1e3 * seconds)
    rows.append(Row("a step of 20 nodes with its observer", "none", step, must=Bound(1e3 * _MOST), unit="ms"))
    return Section(title, rows)


def _rms(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))
