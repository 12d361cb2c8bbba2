"""The YAML text of a trajectory file at another speed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import yaml

from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.files.reader import motion_document


def retimed_text(path: str | os.PathLike[str], speed: float, note: str = "") -> str:
    """Return the text of a trajectory file whose motion is `q(speed t)` of the one at `path`.

    Splines of least integral stay the same path when their times are stretched. `note` is put into the file.
    Raises InputError for a file that is no trajectory.
    """
    data = motion_document(path).data
    if "timing" in data:
        speeds = _times(data["timing"]["squared_speeds"], float(speed) ** 2)
        return _text({**data, "timing": {**data["timing"], "squared_speeds": speeds}}, note)
    parts: dict[str, Any] = {
        key: _scaled(data[key], float(speed)) for key in ("base", "joints") if key in data
    }
    retimed = {**data, **parts} if data["type"] == "pose" else _scaled(data, float(speed))
    return _text(retimed, note)


def timed_text(path: str | os.PathLike[str], timing: Mapping[str, Any], note: str = "") -> str:
    """Return the text of a trajectory file that follows the one at `path` with another time law.

    `timing` as in `hodyn_ros.trajectory.timed.timed`; an ease that the file has stays. Raises InputError for
    a file that is no trajectory.
    """
    data = motion_document(path).data
    before = data.get("timing", {})
    ease = {"ease": before["ease"]} if "ease" in before else {}
    return _text({**data, "timing": {**ease, **timing}}, note)


def _text(data: Mapping[str, Any], note: str) -> str:
    whole = dict(data)
    if note:
        whole["note"] = " ".join(filter(None, [str(data.get("note", "")), note]))
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=110)


def _scaled(data: dict[str, Any], speed: float) -> dict[str, Any]:
    scaled = {**data, **_SCALINGS[data["type"]](data, speed)}
    if "duration" in data:
        scaled["duration"] = _times(data["duration"], 1.0 / speed)
    return scaled


def _fourier(data: dict[str, Any], speed: float) -> dict[str, Any]:
    return {
        "angular_frequency": _times(data["angular_frequency"], speed),
        "sine": _times(data["sine"], speed),
        "cosine": _times(data["cosine"], speed),
    }


def _cosines(data: dict[str, Any], speed: float) -> dict[str, Any]:
    return {"angular_frequencies": _times(data["angular_frequencies"], speed)}


def _waypoints(data: dict[str, Any], speed: float) -> dict[str, Any]:
    points = []
    for point in data["points"]:
        if "time" not in point:
            raise InputError("the points have no times, so they make a path, not a motion; see `hodyn plan`")
        changed = {**point, "time": _times(point["time"], 1.0 / speed)}
        for key, power in (("velocities", 1), ("accelerations", 2)):
            if key in point:
                changed[key] = _times(point[key], speed**power)
        points.append(changed)
    return {"points": points}


def _times(values: Any, factor: float) -> Any:
    if isinstance(values, dict):  # a figure with its source
        return {**values, "value": _times(values["value"], factor)}
    return [_times(value, factor) for value in values] if isinstance(values, list) else values * factor


_SCALINGS = {"fourier": _fourier, "cosines": _cosines, "waypoints": _waypoints}
