"""The YAML text of a trajectory file at another speed."""

from __future__ import annotations

import os
from typing import Any

import yaml

from hodyn_ros.trajectory.files.reader import motion_document


def retimed_text(path: str | os.PathLike[str], speed: float, note: str = "") -> str:
    """Return the text of a trajectory file whose motion is `q(speed t)` of the one at `path`.

    Splines of least integral stay the same path when their times are stretched. `note` is put into the file.
    Raises InputError for a file that is no trajectory.
    """
    data = motion_document(path).data
    parts: dict[str, Any] = {
        key: _scaled(data[key], float(speed)) for key in ("base", "joints") if key in data
    }
    retimed = {**data, **parts} if data["type"] == "pose" else _scaled(data, float(speed))
    if note:
        retimed["note"] = " ".join(filter(None, [str(data.get("note", "")), note]))
    return yaml.safe_dump(retimed, sort_keys=False, allow_unicode=True, width=110)


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
