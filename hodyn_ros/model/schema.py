"""The form of a robot's YAML file, as JSON Schema (Draft 2020-12).

Keywords of JSON Schema apply to the type they are made for and pass over others. That is how a figure can be
a number or a mapping with its source, without `anyOf`, whose errors nobody can read. `description` names the
unit; errors show it.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "minLength": 1}
_REMARKS: Schema = {"source": _TEXT, "note": _TEXT}  # allowed in every mapping


def _mapping(properties: Schema, required: tuple[str, ...] = (), description: str = "") -> Schema:
    return {
        "type": "object",
        "properties": {**properties, **_REMARKS},
        "required": list(required),
        "additionalProperties": False,
        "description": description,
    }


def _sourced(plain: Schema, description: str) -> Schema:
    """Accept a plain figure, or `{value: figure, source: text, note: text, assumed: true}`."""
    value = {**plain, "description": description}
    mapping = _mapping({"value": value, "assumed": {"type": "boolean"}}, ("value",), description)
    types = plain["type"] if isinstance(plain["type"], list) else [plain["type"]]
    return {**plain, **mapping, "type": [*types, "object"]}


def _number(description: str, **bounds: float) -> Schema:
    return _sourced({"type": "number", **bounds}, description)


def _vector(description: str) -> Schema:
    return _sourced({"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}, description)


def _list(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


_ORIGIN = _mapping(
    {"xyz": _vector("[m]"), "rpy": _vector("about the fixed axes x, y, z [rad]")},
    description="pose as in URDF",
)
_DH = _mapping(
    {
        "convention": {
            "enum": ["modified"],
            "description": "Craig's: RotX(alpha) TransX(a) RotZ(q) TransZ(d)",
        },
        "a": _number("[m]"),
        "alpha": _number("[rad]"),
        "d": _number("[m]"),
    },
    ("convention", "a", "alpha", "d"),
    "Denavit-Hartenberg parameters",
)
_INERTIA = _mapping(
    {
        "about": {
            "enum": ["com", "origin"],
            "description": "the point that the inertia is about: centre of mass or origin of the body frame",
        },
        **{
            key: {"type": "number", "description": "[kg m^2]"}
            for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        },
        "assumed": {"type": "boolean"},
    },
    ("about", "ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "inertia in body axes [kg m^2]",
)
_BODY = _mapping(
    {
        "name": _TEXT,
        "mass": _number("[kg]", minimum=0),
        "com": _vector("centre of mass in the body frame [m]"),
        "inertia": _INERTIA,
    },
    ("name", "mass"),
)
_DRIVE = _mapping(
    {
        "motor_inertia": _number("reflected to the link side [kg m^2]", minimum=0),
        "stiffness": _sourced(
            {"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": "^rigid$"},
            "joint stiffness [N·m/rad], or rigid",
        ),
    },
    ("motor_inertia", "stiffness"),
    "motor and spring of the joint",
)
_LIMITS = _mapping(
    {
        "lower": _number("[rad]"),
        "upper": _number("[rad]"),
        "velocity": _number("[rad/s]", exclusiveMinimum=0),
        "effort": _number("[N·m]", exclusiveMinimum=0),
        "effort_rate": _number("[N·m/s]", exclusiveMinimum=0),
    },
    description="limits of the joint; what is left out is unlimited",
)
_JOINT = _mapping(
    {
        "name": _TEXT,
        "type": {"enum": ["revolute", "continuous", "prismatic", "helical", "fixed"]},
        "parent": {**_TEXT, "description": "body, or world"},
        "child": {**_TEXT, "description": "body"},
        "origin": _ORIGIN,
        "dh": _DH,
        "axis": _vector("in the frame of the child, any length"),
        "pitch": _number("of a helical joint [m/rad]"),
        "limits": _LIMITS,
        "drive": _DRIVE,
    },
    ("name", "type", "parent", "child"),
)
_FRAME = _mapping(
    {
        "name": _TEXT,
        "body": {**_TEXT, "description": "body or frame that carries it, or world"},
        "origin": _ORIGIN,
    },
    ("name", "body"),
)
_COMMON: Schema = {
    "name": _TEXT,
    "gravity": _vector("in the world frame, pointing down [m/s^2]"),
    "floating_base": {"type": "boolean"},
    "frames": _list(_FRAME, "frames fixed to bodies"),
}

INLINE_ROBOT: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_mapping(
        {
            **_COMMON,
            "bodies": _list(_BODY, "rigid bodies"),
            "joints": _list(_JOINT, "joints"),
        },
        ("name", "bodies", "joints"),
        "robot",
    ),
}
"""A robot described in the file itself."""

_URDF_JOINT = _mapping(
    {"name": {**_TEXT, "description": "joint of the URDF"}, "limits": _LIMITS, "drive": _DRIVE}, ("name",)
)
URDF_ROBOT: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_mapping(
        {
            **_COMMON,
            "urdf": {**_TEXT, "description": "path, relative to this file"},
            "joints": _list(
                _URDF_JOINT, "limits and drives by joint; limits given here replace those of the URDF"
            ),
        },
        ("urdf",),
        "robot",
    ),
}
"""A robot described by a URDF, with what URDF cannot say."""
