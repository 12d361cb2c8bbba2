"""Keys of robot files that are given beside a file, as on a command line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hodyn_ros.errors import InputError, ModelError, nearest
from hodyn_ros.model.keys import keys_of
from hodyn_ros.model.readers.robot_entries import FreedomEntry, LimbsFile, MjcfFile, UrdfFile
from hodyn_ros.model.readers.yaml_text import parse_yaml

_OF_FILES = {**keys_of(UrdfFile), **keys_of(MjcfFile), **keys_of(LimbsFile)}
_OF_JOINTS = (*keys_of(FreedomEntry), "freedoms")


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return data of a robot file with others laid over them: mappings by key, lists of named things by name.

    >>> merged({"name": "x", "joints": [{"name": "a", "locked": 0}]}, {"joints": [{"name": "a", "axis": 1}]})
    {'name': 'x', 'joints': [{'name': 'a', 'locked': 0, 'axis': 1}]}
    """
    result = dict(below)
    for key, value in above.items():
        before = below.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            result[key] = merged(before, value)
        elif _are_named(value) and before is not None and _are_named(before):
            named = {one["name"]: one for one in before}
            for one in value:
                named[one["name"]] = merged(named.get(one["name"], {}), one)
            result[key] = list(named.values())
        else:
            result[key] = value
    return result


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return what texts such as `keyframe=home` say, as data of a robot file.

    A text is a key of robot files or a joint, with dots to keys within, and a value as in YAML. Raises
    InputError for what is none.

    >>> parse_settings(["driven=[hip, knee]", "limits.velocity=2", "knee.locked=-0.5"])
    {'driven': ['hip', 'knee'], 'limits': {'velocity': 2.0}, 'joints': [{'name': 'knee', 'locked': -0.5}]}
    """
    changes: dict[str, Any] = {}
    for text in settings:
        place, _, value = text.partition("=")
        path = place.strip().split(".")
        if not value.strip() or not all(path):
            raise InputError(
                f"--set takes a key of robot files and its value, such as keyframe=home or "
                f"limits.velocity=2, found {text!r}"
            )
        try:
            data = parse_yaml(value, f"--set {place}").data
        except ModelError as error:
            raise InputError(f"{error}, found {value!r}") from error
        changes = merged(changes, _nested(path, data))
    return changes


def _nested(path: list[str], value: Any) -> dict[str, Any]:
    inner = path[1:]
    if path[0] not in _OF_FILES:  # a joint, whose name may have dots
        count = next((i for i, key in enumerate(path) if i and key in _OF_JOINTS), 0)
        if not count:
            known = [*_OF_FILES, *(f"JOINT.{key}" for key in _OF_JOINTS)]
            raise InputError(f"--set {'.'.join(path)}: unknown key; {nearest(path[-1], known)}")
        inner = path[count:]
    data = value
    for key in reversed(inner):
        data = {key: data}
    if path[0] in _OF_FILES:
        return {path[0]: data}
    return {"joints": [{"name": ".".join(path[: len(path) - len(inner)]), **data}]}


def check_joints(data: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    """Reject changes of joints that an inline file does not have; InputError names the nearest."""
    known = [str(one.get("name")) for one in _listed(data.get("joints")) if isinstance(one, dict)]
    for one in _listed(changes.get("joints")):
        if one["name"] not in known:
            raise InputError(f"there is no joint {one['name']!r}; {nearest(one['name'], known)}")


def _listed(value: Any) -> Collection[Any]:
    return value if isinstance(value, list) else ()


def _are_named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and "name" in one for one in value)
