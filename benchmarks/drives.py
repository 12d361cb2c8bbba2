"""Drives of every kind from Python: what the motors of a 7-joint arm have to do."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.agreement import check
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Contender, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros import DriveSpec, DriveTrain, MotorMotion
from hodyn_ros.model.drive_spec import FrictionSpec, SpringTable, VariableStiffnessSpec

PLAIN = "linear springs"
_JOINTS = 7
_DRY: dict[str, Any] = {
    "motor_friction": FrictionSpec(0.4, 1.5, 0.1),
    "link_friction": FrictionSpec(0.7, 0.8, 0.2),
}
_DEFLECTIONS = np.linspace(-0.2, 0.2, 41)
_TABLE = (tuple(2000.0 * _DEFLECTIONS + 9e4 * _DEFLECTIONS**3), tuple(_DEFLECTIONS))
LINEAR = DriveSpec(900.0, 0.4)
KINDS = {
    "rigid, with friction": DriveSpec(np.inf, 0.4, **_DRY),
    "linear springs, with friction": DriveSpec(900.0, 0.4, **_DRY),
    "damped springs, with friction": DriveSpec(900.0, 0.4, spring_damping=6.0, **_DRY),
    "hardening springs, with friction": DriveSpec(900.0, 0.4, cubic_stiffness=5e3, **_DRY),
    "springs from tables, with friction": DriveSpec(2000.0, 0.4, spring_table=SpringTable(*_TABLE), **_DRY),
    "pairs of springs": DriveSpec(
        500.0, 0.1, variable_stiffness=VariableStiffnessSpec("agonist_antagonist", 90.0)
    ),
    "cams, with friction": DriveSpec(
        600.0, 0.1, variable_stiffness=VariableStiffnessSpec("cam", 800.0, 0.7, 0.02), **_DRY
    ),
}


def measure(stage: Stage) -> Section:
    """Time the feedforward of drives of each kind beside that of plain ones."""
    title = "drives of 7 joints, one call from Python"
    orders = (2, 4)
    contenders = [contender for order in orders for contender in _contenders(order)]
    times = stage.race(title, contenders)
    rows = [
        Row(
            work=f"r = {order}, {kind}: drive_train.feedforward(q, torques)",
            against=PLAIN,
            result=times.ratio(f"{order}: {kind}", f"{order}: {PLAIN}"),
            ours=times.seconds(f"{order}: {kind}").median,
            theirs=times.seconds(f"{order}: {PLAIN}").median,
            must=Bound(2.0),
        )
        for order in orders
        for kind in KINDS
    ]
    return Section(title, rows)


def _contenders(order: int) -> list[Contender]:
    rng = np.random.default_rng(7)
    q = rng.uniform(-1.0, 1.0, size=(order + 3, _JOINTS))
    torques = rng.uniform(-10.0, 10.0, size=(order + 1, _JOINTS))
    drives = {kind: DriveTrain([spec] * _JOINTS) for kind, spec in {PLAIN: LINEAR, **KINDS}.items()}
    for kind, train in drives.items():
        for found, right in zip(train.feedforward(q, torques), _in_numpy(train, q, torques)):
            check(kind, found, right)
    return [
        python_call(
            f"{order}: {kind}",
            "drives.feedforward(q, torques)",
            {"drives": train, "q": q, "torques": torques},
        )
        for kind, train in drives.items()
    ]


def _in_numpy(drives: DriveTrain, q: Array, torques: Array) -> MotorMotion:
    """Return the motors by what is computed in NumPy: deflections that are not known."""
    return drives.feedforward(q, torques, deflection=np.full(_JOINTS, np.nan))
