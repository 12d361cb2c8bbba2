"""What MJCF has no word for, as keys of a robot file that an exported model carries in a text of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from math import inf, isfinite
from typing import Any

import numpy as np
import yaml

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.frames import to_rpy
from hodyn_ros.model.keys import said_in_file
from hodyn_ros.model.limits import JointLimit
from hodyn_ros.model.propeller import Propeller
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.model.uncertainty import RobotUncertainty

_HAS = ("stiffness", "motor_inertia", "spring_damping", "motor_friction", "link_friction")  # of drives
_BESIDE = ("velocity", "acceleration", "jerk", "effort_rate")  # limits that MJCF has not


def own_keys(
    robot: Robot, body_names: Sequence[str], made_up: Iterable[int], effort_limits: dict[str, float]
) -> str:
    """Return the keys in one line of YAML; empty where MJCF says all.

    `body_names`: as the model is read; `made_up`: the bodies whose mass or inertia it has otherwise;
    `effort_limits`: those of its actuators, by joint.
    """
    result: dict[str, Any] = {}
    carriers = ["world", *body_names]
    bodies = [_body(robot.tree, body) for body in made_up]
    if bodies:
        result["bodies"] = bodies
    if robot.closure is not None:
        result |= _closure(robot.closure, carriers)
    frames = [
        {"name": name, "body": carriers[frame.body + 1], "origin": _origin(frame.pose)}
        for name, frame in robot.frames.items()
        if name not in (*carriers, *robot.tree.body_names)
    ]
    if frames:
        result["frames"] = frames
    if robot.propellers is not None:
        result["propellers"] = [_propeller(propeller) for propeller in robot.propellers.propellers]
    joints = list(_joints(robot, effort_limits))
    if joints:
        result["joints"] = joints
    if robot.drive_train is not None and any(map(_rubs, robot.drive_train.specs)):
        result["mjcf_friction"] = True
    if robot.uncertainty != RobotUncertainty():
        result["uncertainty"] = asdict(robot.uncertainty)
    if not result:
        return ""
    text = yaml.safe_dump(result, default_flow_style=True, sort_keys=False, width=inf, allow_unicode=True)
    return text.strip()


def _body(tree: TreeModel, body: int) -> dict[str, Any]:
    said: dict[str, Any] = {"name": tree.body_names[body], "mass": float(tree.masses[body])}
    if said["mass"]:
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = tree.inertias[body].tolist()
        said["com"] = tree.coms[body].tolist()
        said["inertia"] = {"about": "com", "ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz}
    return said


def _closure(closure: Closure, carriers: Sequence[str]) -> dict[str, Any]:
    tree, platform = closure.tree, closure.platform
    coordinates: list[Any] = [tree.joint_names[joint] for joint in closure.joints]
    if platform is not None:
        coordinates.append({"body": carriers[platform.body + 1], "rows": list(platform.rows)})
    said: dict[str, Any] = {
        "keyframe": "home",
        "coordinates": coordinates,
        "driven": [tree.joint_names[joint] for joint in closure.driven],
    }
    spins = [loop for loop in closure.loops if loop.kind == "spin"]
    if spins:
        said["loops"] = [
            {
                "name": loop.name,
                "kind": "spin",
                "a": carriers[loop.a.body + 1],
                "b": carriers[loop.b.body + 1],
                "axis": loop.a.axes[:, 2].tolist(),
                "axis_b": loop.b.axes[:, 2].tolist(),
            }
            for loop in spins
        ]
    return said


def _origin(pose: Array) -> dict[str, list[float]]:
    return {"xyz": pose[:3, 3].tolist(), "rpy": to_rpy(pose[:3, :3]).tolist()}


def _propeller(propeller: Propeller) -> dict[str, Any]:
    said = {"name": propeller.name, "origin": _origin(propeller.pose), "drag": propeller.drag}
    if propeller.tilts:
        said["tilts"] = True
    if propeller.coefficient is not None:
        said["coefficient"] = propeller.coefficient
    limits = asdict(propeller.limits)
    return {**said, "limits": {key: value for key, value in limits.items() if isfinite(value)}}


def _joints(robot: Robot, effort_limits: dict[str, float]) -> Iterator[dict[str, Any]]:
    driven = robot.driven_joints
    rows = {name: robot.coordinate_limits.row(i) for i, name in enumerate(robot.joint_names)}
    rows |= {name: robot.limits.row(i) for i, name in enumerate(driven)}
    specs = {} if robot.drive_train is None else dict(zip(driven, robot.drive_train.specs))
    for name, row in rows.items():
        said = {"name": name, "limits": _limits(row, effort_limits.get(name, inf))}
        if name in specs:
            said["drive"] = _drive(specs[name])
        said = {key: value for key, value in said.items() if value}
        if len(said) > 1:
            yield said


def _limits(row: JointLimit, effort: float) -> dict[str, float]:
    said = {key: getattr(row, key) for key in _BESIDE if isfinite(getattr(row, key))}
    if not (isfinite(row.lower) and isfinite(row.upper) and row.lower < row.upper):
        said |= {key: getattr(row, key) for key in ("lower", "upper") if isfinite(getattr(row, key))}
    if row.effort != effort:
        said["effort"] = row.effort
    return said


def _drive(spec: DriveSpec) -> dict[str, Any]:
    said = {key: value for key, value in said_in_file(spec).items() if key not in _HAS}
    together = not np.isfinite(spec.stiffness)  # the friction of motor and link is one in MJCF
    for side in ("motor_friction", "link_friction"):
        friction = getattr(spec, side)
        if together and _rubbing(spec.motor_friction):
            said[side] = {key: value for key, value in asdict(friction).items() if value is not None}
        elif _rubbing(friction) and (own := _beside_mjcf(friction)):
            said[side] = own
    return said


def _rubs(spec: DriveSpec) -> bool:
    return _rubbing(spec.motor_friction) or _rubbing(spec.link_friction)


def _rubbing(friction: FrictionSpec) -> bool:
    return replace(friction, transition=FrictionSpec().transition) != FrictionSpec()


def _beside_mjcf(friction: FrictionSpec) -> dict[str, float]:
    """Return the figures of a friction for which MJCF has no word."""
    usual = asdict(FrictionSpec()) | {"viscous": friction.viscous, "coulomb": friction.coulomb}
    return {key: value for key, value in asdict(friction).items() if value != usual[key]}
