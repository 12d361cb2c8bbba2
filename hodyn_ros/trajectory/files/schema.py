"""The forms of a trajectory's YAML file, as JSON Schema (Draft 2020-12); errors show the `description`."""

from __future__ import annotations

from typing import Any

from hodyn_ros.trajectory.pose_coordinates import COORDINATES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "minLength": 1}
_REMARKS: Schema = {"source": _TEXT, "note": _TEXT}  # allowed in every mapping


def _mapping(properties: Schema, required: tuple[str, ...]) -> Schema:
    return {
        "type": "object",
        "properties": {**properties, **_REMARKS},
        "required": list(required),
        "additionalProperties": False,
    }


def _number(description: str) -> Schema:
    return {"type": "number", "description": description}


def _list(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


def _per_joint(description: str) -> Schema:
    return _list({"type": "number"}, f"one number per joint {description}")


_STANDING: Schema = {
    "type": "object",
    "additionalProperties": _number("[rad or m]"),
    "description": "positions of joints that the motion does not move, by name [rad or m]",
}


def _trajectory(kind: str, properties: Schema, required: tuple[str, ...]) -> Schema:
    common = {
        "type": {"enum": [kind]},
        "joint_names": _list(_TEXT, "one name per joint"),
        "standing": _STANDING,
    }
    return _mapping({**common, **properties}, ("type", *required))


_DURATION = _number("time of the end [s], or .inf")
_HARMONICS = _list(
    {"type": "array", "items": {"type": "number"}}, "one row per harmonic, one column per joint [rad/s]"
)
_POINT = _mapping(
    {
        "time": _number("from the start of the motion [s]"),
        "positions": _per_joint("[rad or m]"),
        "velocities": _per_joint("[rad/s or m/s]"),
        "accelerations": _per_joint("[rad/s^2 or m/s^2]"),
    },
    ("time", "positions"),
)

TRAJECTORIES: dict[str, Schema] = {
    "fourier": _trajectory(
        "fourier",
        {
            "angular_frequency": _number("of the first harmonic [rad/s]"),
            "sine": _HARMONICS,
            "cosine": _HARMONICS,
            "offsets": _per_joint("[rad]"),
            "duration": _DURATION,
        },
        ("angular_frequency", "sine", "cosine", "offsets"),
    ),
    "cosines": _trajectory(
        "cosines",
        {
            "amplitudes": _per_joint("[rad]"),
            "angular_frequencies": _per_joint("[rad/s]"),
            "duration": _DURATION,
        },
        ("amplitudes", "angular_frequencies"),
    ),
    "waypoints": _trajectory(
        "waypoints",
        {
            "interpolation": {"enum": ["spline", "piecewise"], "description": "spline where left out"},
            "order": _number("highest derivative of a spline that is continuous"),
            "at_rest": {"type": "boolean", "description": "whether a spline starts and ends at rest"},
            "points": _list(_POINT, "the waypoints in order of time"),
        },
        ("points",),
    ),
}
"""The form of each type of trajectory."""

ANY_TRAJECTORY: Schema = {
    "type": "object",
    "properties": {"type": {"enum": list(TRAJECTORIES)}},
    "required": ["type"],
}
"""What every file must say before its own form is known."""

ANY_MOTION: Schema = {
    "type": "object",
    "properties": {"type": {"enum": [*TRAJECTORIES, "pose"]}},
    "required": ["type"],
}
"""The same for files that may move a platform or a floating base as well."""

_VECTOR: Schema = {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}
_COORDINATES: Schema = {
    "type": "array",
    "items": {"enum": list(COORDINATES)},
    "minItems": 1,
    "description": "what the columns of the base's motion are",
}


def pose_motion(base_kind: object, joints_kind: object) -> Schema:
    """Return the form of a file of type pose, whose parts say that they are of these types."""
    base = TRAJECTORIES.get(str(base_kind), ANY_TRAJECTORY)
    if base is not ANY_TRAJECTORY:
        own = ("joint_names", "standing")
        properties = {key: form for key, form in base["properties"].items() if key not in own}
        base = {**base, "properties": {**properties, "coordinates": _COORDINATES}}
    origin = _mapping(
        {"xyz": {**_VECTOR, "description": "[m]"}, "rpy": {**_VECTOR, "description": "[rad]"}}, ()
    )
    return _mapping(
        {
            "type": {"enum": ["pose"]},
            "origin": origin,
            "base": base,
            "joints": TRAJECTORIES.get(str(joints_kind), ANY_TRAJECTORY),
            "standing": _STANDING,
        },
        ("type", "base"),
    )
