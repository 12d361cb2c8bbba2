"""The file of what was learnt: the correction to play next, and what learning goes on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.learning.correction import Correction
from hodyn_ros.learning.learn import Learned, Step
from hodyn_ros.model.keys import Entry, key
from hodyn_ros.model.readers.document import read_document
from hodyn_ros.outputs import write_text


class JointEntry(Entry):
    """What was learnt of a joint."""

    name: str = key("of the joint")
    efforts: tuple[float, ...] = key("coefficients of the splines to play next [N·m or N]")
    best: tuple[float, ...] = key("of those under which errors were the smallest [N·m or N]")
    errors: tuple[float, ...] = key("means over even windows, under these [rad or m]")
    positions: tuple[float, ...] = key("of the motion at even times [rad or m]")


class StepEntry(Entry):
    """What a repetition has shown."""

    rms: float = key("of the errors [rad or m]", least=0)
    noise: float = key("standard deviation of that [rad or m]", least=0)
    repetitions: int = key("under this correction", least=1)
    verdict: str = key("learnt, or taken back")


class CorrectionFile(Entry):
    """What repetitions of one motion have taught."""

    type: Literal["learned_correction"] = key("")
    robot: str = key("its name")
    duration: float = key("of the motion [s]", above=0)
    step: float = key("share of what is left that is corrected at once", within=(0, 1))
    joints: tuple[JointEntry, ...] = key("of the robot, in its order")
    unknown: tuple[int, ...] = key("windows of which no errors are known", default=())
    doubted: tuple[int, ...] = key("windows whose errors were larger than expected", default=())
    history: tuple[StepEntry, ...] = key("one entry a call of `hodyn learn`")


def write_correction(learned: Learned, robot_name: str, path: Path) -> Path:
    """Write what was learnt, and return the path."""
    correction = learned.correction
    joints = [
        {
            "name": name,
            "efforts": _plain(correction.coefficients[:, j]),
            "best": _plain(learned.best.coefficients[:, j]),
            "errors": _plain(learned.errors[:, j]),
            "positions": _plain(learned.motion[:, j]),
        }
        for j, name in enumerate(correction.joint_names)
    ]
    data: dict[str, Any] = {
        "type": "learned_correction",
        "robot": robot_name,
        "duration": correction.duration,
        "step": learned.step,
        "joints": joints,
        "unknown": np.flatnonzero(learned.unknown).tolist(),
        "doubted": np.flatnonzero(learned.doubted).tolist(),
        "history": [step._asdict() for step in learned.history],
    }
    write_text(path, yaml.safe_dump(data, sort_keys=False, width=110))
    return path


def read_correction(path: Path) -> Learned:
    """Read what was learnt. Raises InputError that names file and key."""
    if not path.is_file():
        raise InputError(f"there is no correction '{path}'")
    try:
        root = read_document(path, lambda _: CorrectionFile).root
    except ModelError as error:
        raise InputError(str(error)) from error
    if not root.history:
        raise InputError(f"{path}: history is empty; a file of `hodyn learn` has an entry for each call")
    tables = {}
    for what in ("efforts", "best", "errors", "positions"):
        rows = [getattr(joint, what) for joint in root.joints]
        if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
            raise InputError(f"{path}: {what} of all joints need as many numbers, two at least")
        tables[what] = np.array(rows).T
    names = tuple(joint.name for joint in root.joints)
    correction, best = (Correction(names, root.duration, tables[what]) for what in ("efforts", "best"))
    history = tuple(Step(each.rms, each.noise, each.repetitions, each.verdict) for each in root.history)
    masks = []
    for what in ("unknown", "doubted"):
        mask = np.zeros(len(tables["errors"]), dtype=bool)
        places = np.array(getattr(root, what), dtype=int)
        if len(places) and not (places.min() >= 0 and places.max() < len(mask)):
            raise InputError(f"{path}: {what} names window {places.max()}, and there are {len(mask)}")
        mask[places] = True
        masks.append(mask)
    errors = tables["errors"]
    return Learned(correction, tables["positions"], best, errors, masks[0], masks[1], root.step, history)


def _plain(values: Array) -> list[float]:
    return [float(f"{value:.9g}") for value in values]
