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
_FRICTION = _mapping(
    {
        "viscous": _number("reflected to the link side [N·m·s/rad]", minimum=0),
        "coulomb": _number("reflected to the link side [N·m]", minimum=0),
        "transition": _number(
            "velocity at which 71 % of the Coulomb friction act [rad/s]", exclusiveMinimum=0
        ),
    },
    description="viscous and smooth Coulomb friction",
)
_SPRING_TABLE = _mapping(
    {
        "torque": _list({"type": "number"}, "increasing [N·m]"),
        "deflection": _list({"type": "number"}, "increasing [rad]"),
        "assumed": {"type": "boolean"},
    },
    ("torque", "deflection"),
    "measured spring",
)
_VARIABLE_STIFFNESS = _mapping(
    {
        "type": {"enum": ["agonist_antagonist", "cam"]},
        "spring": _number("agonist_antagonist [N·m/rad^2]; cam [N·m/rad]", exclusiveMinimum=0),
        "curvature": _number("of a cam's lift [1/rad]", exclusiveMinimum=0),
        "motor_inertia": _number("of the second motor of a cam [kg m^2]", exclusiveMinimum=0),
    },
    ("type", "spring"),
    "two motors, stiffness commanded",
)
_DRIVE_LIMITS = _mapping(
    {
        "torque": _number("of the motor, reflected to the link side [N·m]", exclusiveMinimum=0),
        "torque_rate": _number("of the motor, reflected to the link side [N·m/s]", exclusiveMinimum=0),
        "speed": _number("of the motor, reflected to the link side [rad/s]", exclusiveMinimum=0),
        "deflection": _number("of the spring [rad]", exclusiveMinimum=0),
        "current": _number("of the motor [A]; needs torque_constant", exclusiveMinimum=0),
    },
    description="limits of the drive; what is left out is unlimited",
)
_DRIVE = _mapping(
    {
        "motor_inertia": _number("reflected to the link side [kg m^2]", minimum=0),
        "rotor_inertia": _number(
            "of the rotor, as in its data sheet [kg m^2], instead of motor_inertia; needs gear_ratio",
            exclusiveMinimum=0,
        ),
        "stiffness": _sourced(
            {"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": "^rigid$"},
            "joint stiffness [N·m/rad], or rigid",
        ),
        "spring_damping": _number("of the spring [N·m·s/rad]", minimum=0),
        "cubic_stiffness": _number("of a hardening spring [N·m/rad^3]", minimum=0),
        "spring_table": _SPRING_TABLE,
        "variable_stiffness": _VARIABLE_STIFFNESS,
        "motor_friction": _FRICTION,
        "link_friction": _FRICTION,
        "gear_ratio": _number("rotor turns per turn of the link", exclusiveMinimum=0),
        "torque_constant": _number("of the rotor [N·m/A]", exclusiveMinimum=0),
        "limits": _DRIVE_LIMITS,
    },
    ("stiffness",),
    "motor and spring of the joint",
)
_LIMITS = _mapping(
    {
        "lower": _number("[rad]"),
        "upper": _number("[rad]"),
        "velocity": _number("[rad/s]", exclusiveMinimum=0),
        "effort": _number("[N·m]", exclusiveMinimum=0),
        "effort_rate": _number("[N·m/s]", exclusiveMinimum=0),
        "acceleration": _number("[rad/s^2]", exclusiveMinimum=0),
        "jerk": _number("[rad/s^3]", exclusiveMinimum=0),
    },
    description="limits of the joint; what is left out is unlimited",
)
_LOCKED = _number("position at which the joint is held, as if it were fixed [rad]")
_FREEDOM: Schema = {"locked": _LOCKED, "limits": _LIMITS, "drive": _DRIVE}


def _freedoms(freedom: Schema) -> Schema:
    keys = ("r1", "r2", "x", "y", "z", "rx", "ry", "rz")
    return _mapping(
        {key: _mapping(freedom) for key in keys}, description="what is known of single degrees of freedom"
    )


_JOINT = _mapping(
    {
        "name": _TEXT,
        "type": {
            "enum": [
                *("revolute", "continuous", "prismatic", "helical", "fixed"),
                *("universal", "ball", "planar", "floating"),
            ]
        },
        "parent": {**_TEXT, "description": "body, or world"},
        "child": {**_TEXT, "description": "body"},
        "origin": _ORIGIN,
        "dh": _DH,
        "axis": _vector("in the frame of the child, any length; normal of a planar joint"),
        "axis_b": _vector("second axis of a universal joint, first direction of a planar one"),
        "freedoms": _freedoms(_FREEDOM),
        "pitch": _number("of a helical joint [m/rad]"),
        "locked": _LOCKED,
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
_LOAD: Schema = {
    "mass": _number("[kg]", minimum=0),
    "com": _vector("centre of mass in the frame that carries it, by default its origin [m]"),
    "inertia": {**_INERTIA, "description": "in axes of that frame, by default that of a point [kg m^2]"},
}
_PAYLOAD = _mapping(
    {
        "body": {**_TEXT, "description": "body or frame that carries it, by default the last body"},
        **_LOAD,
    },
    ("mass",),
    "what the robot carries beside its bodies",
)
_CURVE = _mapping(
    {
        "of": _list({"type": "number"}, "positions of the other joint, increasing [rad]"),
        "joint": _list({"type": "number"}, "positions of the joint that follows there [rad]"),
        "degree": {
            "enum": [3, 5, 7, 9, 11, 13, 15],
            "description": "of the spline through them, by default 5; efforts of order r need r + 3",
        },
        "periodic": {"type": "boolean", "description": "whether the table repeats itself beyond its ends"},
        "assumed": {"type": "boolean"},
    },
    ("of", "joint"),
    "points of a curve, instead of ratio and offset",
)
_COUPLING = _mapping(
    {
        "joint": {**_TEXT, "description": "joint that follows"},
        "of": {**_TEXT, "description": "joint that it follows"},
        "ratio": _number("coordinate per coordinate of the other, by default 1"),
        "offset": _number("where the other is at zero, by default 0 [rad]"),
        "polynomial": _list({"type": "number"}, "instead: coefficients, the constant first [rad/rad^k]"),
        "table": _CURVE,
    },
    ("joint", "of"),
)
_LOOP = _mapping(
    {
        "name": _TEXT,
        "kind": {"enum": ["weld", "ball", "universal", "hinge", "cylinder", "slider", "rod", "spin", "rows"]},
        "a": {**_TEXT, "description": "body or frame, at whose origin the loop closes, or world"},
        "b": {**_TEXT, "description": "body or frame, whose origin lies there as well, or world"},
        "axis": _vector("in frame a, by default its z axis"),
        "axis_b": _vector("in frame b, by default its z axis"),
        "rows": {
            "type": "array",
            "items": {"enum": ["rx", "ry", "rz", "x", "y", "z"]},
            "description": "of the kind rows: what of the pose of b in a does not change",
        },
    },
    ("kind", "a", "b"),
)
_COORDINATE: Schema = {
    **_mapping(
        {
            "body": {**_TEXT, "description": "body whose pose is given"},
            "rows": {
                "type": "array",
                "items": {"enum": ["rx", "ry", "rz", "x", "y", "z"]},
                "description": "turns about and shifts along the axes of the given pose",
            },
        },
        ("body", "rows"),
        "a joint, or body and rows",
    ),
    "type": ["string", "object"],
}
_COMMON: Schema = {
    "name": _TEXT,
    "gravity": _vector("in the world frame, pointing down [m/s^2]"),
    "floating_base": {"type": "boolean"},
    "frames": _list(_FRAME, "frames fixed to bodies"),
    "payload": _PAYLOAD,
    "couplings": _list(_COUPLING, "joints that follow others"),
    "loops": _list(_LOOP, "what is joined besides the joints, closed at the zero configuration, or at home"),
    "home": {
        "type": "object",
        "additionalProperties": {"type": "number"},
        "description": "positions by joint near which all loops close, the others near zero [rad or m]",
    },
    "coordinates": _list(_COORDINATE, "the independent coordinates; by default the driven joints"),
    "driven": _list(_TEXT, "joints on which drives act; by default those with a drive"),
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
    {
        "name": {**_TEXT, "description": "joint of the URDF"},
        "limits": _LIMITS,
        "drive": _DRIVE,
        "locked": _LOCKED,
    },
    ("name",),
)
URDF_ROBOT: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_mapping(
        {
            **_COMMON,
            "urdf": {**_TEXT, "description": "path, relative to this file"},
            "urdf_friction": {
                "type": "boolean",
                "description": "whether damping and friction of the URDF are the link friction of drives",
            },
            "joints": _list(
                _URDF_JOINT, "limits and drives by joint; limits given here replace those of the URDF"
            ),
        },
        ("urdf",),
        "robot",
    ),
}
"""A robot described by a URDF, with what URDF cannot say."""

_DRIVEN = {"type": "boolean", "description": "whether a motor moves the joint; a drive says so, too"}
_LIMB_JOINT: Schema = {
    **_JOINT,
    "properties": {
        **{key: form for key, form in _JOINT["properties"].items() if key != "locked"},
        "freedoms": _freedoms({"limits": _LIMITS, "drive": _DRIVE, "driven": _DRIVEN}),
        "driven": _DRIVEN,
    },
    "required": ["name"],  # a URDF says the rest
}
_LIMB_TYPE = _mapping(
    {
        "name": _TEXT,
        "bodies": _list(_BODY, "rigid bodies, without the platform"),
        "joints": _list(_LIMB_JOINT, "joints from world, the ground of the limb, to the platform"),
        "urdf": {**_TEXT, "description": "instead of bodies: path, relative to this file"},
    },
    ("name", "joints"),
    "a chain from the ground to the platform, in a frame of its own",
)
_LIMB = _mapping(
    {
        "name": _TEXT,
        "type": {**_TEXT, "description": "name of one of limb_types"},
        "base": _vector("origin of the limb's frame in the world [m]"),
        "attachment": _vector("where the limb ends, in the frame of the platform [m]"),
        "align": {
            "enum": ["x", "z"],
            "description": "axis of the limb's frame that points from base to attachment",
        },
        "rpy": _vector("of the limb's frame in the world, instead of align [rad]"),
    },
    ("name", "type", "base", "attachment"),
)
_PLATFORM = _mapping(
    {
        "name": _TEXT,
        "origin": _ORIGIN,
        "mass": _number("[kg]", minimum=0),
        "com": _vector("centre of mass in the platform frame [m]"),
        "inertia": _INERTIA,
        "dof": {
            "type": "array",
            "items": {"enum": ["rx", "ry", "rz", "x", "y", "z"]},
            "description": "turns about and moves along the axes of the platform frame that are possible",
        },
    },
    ("mass", "dof"),
    "the moving platform, at the home pose",
)

PARALLEL_ROBOT: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_mapping(
        {
            "name": _TEXT,
            "gravity": _vector("in the world frame, pointing down [m/s^2]"),
            "platform": _PLATFORM,
            "payload": _mapping(_LOAD, ("mass",), "what the platform carries, in its frame"),
            "limb_types": _list(_LIMB_TYPE, "limbs as they are built"),
            "limbs": _list(_LIMB, "limbs as they are placed"),
        },
        ("name", "platform", "limb_types", "limbs"),
        "parallel robot",
    ),
}
"""A platform on several limbs."""
