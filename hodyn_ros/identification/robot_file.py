"""Write an identified robot as one YAML file, in which every figure names its source."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import yaml

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.identification.result import Identified
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.frames import to_rpy
from hodyn_ros.model.keys import said_in_file
from hodyn_ros.model.limits import JointLimit
from hodyn_ros.model.tree import JointKind, TreeModel


def robot_text(result: Identified, header: str = "") -> str:
    """Return the YAML text of an identified robot; `header` becomes a comment above it."""
    robot, tree = result.robot, result.robot.tree
    data: dict[str, Any] = {
        "name": robot.name,
        "gravity": _numbers(tree.gravity),
        "source": f"identified from {result.source}",
    }
    if result.notes:
        data["note"] = "; ".join(result.notes)
    data["bodies"] = [_body(result, i) for i in range(tree.n_bodies)]
    data["joints"] = [_joint(result, i) for i in range(tree.n_bodies)]
    known = set(tree.body_names) | {"world"}
    frames = [(name, frame) for name, frame in robot.frames.items() if name not in known]
    if frames:
        data["frames"] = [
            {
                "name": name,
                "body": tree.body_names[frame.body] if frame.body >= 0 else "world",
                "origin": _origin(_moved(frame.pose, -_to_axis(tree, frame.body))),
            }
            for name, frame in frames
        ]
    comment = "".join(f"# {line}\n" for line in header.splitlines())
    return comment + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)


def _body(result: Identified, i: int) -> dict[str, Any]:
    tree = result.robot.tree
    name = tree.body_names[i]
    if tree.masses[i] == 0.0:
        return {"name": name, "mass": 0}
    changed = np.any(result.parameters[10 * i : 10 * i + 10] != result.prior[10 * i : 10 * i + 10])
    source = f"identified from {result.source}" if changed else "as in the file before"
    inertia = tree.inertias[i]
    places = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}
    body: dict[str, Any] = {
        "name": name,
        "source": source,
        "mass": float(tree.masses[i]),
        "com": _numbers(tree.coms[i] - _to_axis(tree, i)),
        "inertia": {"about": "com", **{f"i{k}": float(inertia[p]) for k, p in places.items()}},
    }
    deviations = result.deviations[10 * i : 10 * i + 10]
    if changed:
        said = ", ".join(f"{value:.2g}" for value in deviations)
        body["note"] = f"standard deviations of m, m c (3), I about the origin (xx yy zz xy xz yz): {said}"
    return body


def _joint(result: Identified, i: int) -> dict[str, Any]:
    robot, tree = result.robot, result.robot.tree
    j, parent = tree.joint_of(i), tree.parents[i]
    before = np.eye(4) if parent < 0 else _moved(tree.placements[parent], _to_axis(tree, parent))
    pose = np.linalg.inv(before) @ _moved(tree.placements[i], _to_axis(tree, i))
    kind = tree.kinds[i]
    direction = tree.screws[i][3:] if kind is JointKind.PRISMATIC else tree.screws[i][:3]
    joint: dict[str, Any] = {
        "name": tree.joint_names[j],
        "type": kind.value,
        "parent": "world" if parent < 0 else tree.body_names[parent],
        "child": tree.body_names[i],
        "origin": _origin(pose),
        "axis": _numbers(tree.placements[i][:3, :3].T @ direction),
    }
    if kind is JointKind.HELICAL:
        joint["pitch"] = float(tree.pitches[i])
    limits = _finite(robot.limits.row(j))
    if limits:
        joint["limits"] = limits
    if robot.drive_train is not None:
        joint["drive"] = _drive(result, robot, robot.drive_train.specs[j], j)
    return joint


def _to_axis(tree: TreeModel, i: int) -> Array:
    """Return the way (3,) from a body's frame to the axis of its joint, in its own axes [m].

    Files put frames of bodies on their axes; those of the standard convention of Denavit and Hartenberg are
    at the far ends of their links, and are written as moved there.
    """
    if i < 0 or tree.kinds[i] is JointKind.PRISMATIC:
        return np.zeros(3)
    axis, moment = tree.screws[i][:3], tree.screws[i][3:]
    place = tree.placements[i]
    there = np.cross(axis, moment) + axis * (axis @ place[:3, 3])
    way = place[:3, :3].T @ (there - place[:3, 3])
    return np.asarray(np.where(np.abs(way) < 1e-9, 0.0, way))


def _moved(pose: Array, way: Array) -> Array:
    """Return a pose (4, 4) moved along its own axes (3,) [m]."""
    result = pose.copy()
    result[:3, 3] += pose[:3, :3] @ way
    return result


def _drive(result: Identified, robot: Robot, spec: DriveSpec, j: int) -> dict[str, Any]:
    name = robot.joint_names[j]
    drive = said_in_file(spec)
    drive["motor_inertia"] = _sourced(result, f"motor inertia of {name}", spec.motor_inertia)
    figure, said = result.figure(f"stiffness of {name}"), {"source": "as in the file before"}
    if figure.identified:
        width = f"standard deviation {figure.deviation:.2g} {figure.unit}"
        said = {"source": f"identified from {result.source}, {width}"}
    else:
        if figure.by_ratio:
            said = {"source": f"the inertias above over the ratio that {result.source} identifies"}
        said["note"] = figure.reason
    drive["stiffness"] = {"value": drive["stiffness"], **said}
    if friction := drive.get("motor_friction"):
        friction |= _friction(result, name, spec.motor_friction)
    return drive


def _friction(result: Identified, joint: str, friction: FrictionSpec) -> dict[str, Any]:
    """Write the figures of friction that were sought."""
    written = {
        "viscous": _sourced(result, f"viscous friction of {joint}", friction.viscous),
        "coulomb": _sourced(result, f"Coulomb friction of {joint}", friction.coulomb),
        "transition": _transition(result, joint, friction.transition),
    }
    if friction.load and result.by_load:
        written["load"] = _sourced(result, f"Coulomb friction by load of {joint}", friction.load)
    if friction.viscous_by_temperature and result.temperatures is not None:
        written["viscous_by_temperature"] = {
            "value": friction.viscous_by_temperature,
            "source": f"identified from {result.source}",
        }
    return written


def _transition(result: Identified, joint: str, value: float) -> Any:
    """Write the transition speed; where the recording shows one, that of the file's law nearest to it."""
    figures = {each.name: each for each in result.figures}
    figure = figures.get(f"transition speed of {joint}")
    if figure is None or not figure.identified or not figures[f"Coulomb friction of {joint}"].identified:
        return value
    sharpness = figures[f"sharpness of the friction of {joint}"].value
    return {
        "value": value,
        "source": f"nearest to {figure.value:.4g} {figure.unit} at a sharpness of {sharpness:.2g}, "
        f"identified from {result.source}",
    }


def _finite(limits: JointLimit) -> dict[str, float]:
    named = {each.name: float(getattr(limits, each.name)) for each in fields(limits)}
    return {name: value for name, value in named.items() if np.isfinite(value)}


def _sourced(result: Identified, name: str, value: float) -> Any:
    """Write a figure with its source and deviation, or as it was where nothing was learnt of it."""
    deviation, source = result.deviations[result.names.index(name)], "as in the file before"
    if deviation != 0.0:
        source = f"identified from {result.source}, standard deviation {deviation:.2g}"
    return {"value": float(value), "source": source}


def _origin(pose: Array) -> dict[str, list[float]]:
    return {"xyz": _numbers(pose[:3, 3]), "rpy": _numbers(to_rpy(pose[:3, :3]))}


def _numbers(values: Array) -> list[float]:
    return [float(value) for value in np.where(np.abs(values) < 1e-15, 0.0, values)]
