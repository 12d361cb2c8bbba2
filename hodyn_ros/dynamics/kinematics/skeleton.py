"""Robots as lines between their joints: pictures that need no meshes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.lie.jets import Array
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.model.tree import JointKind


class Skeleton(NamedTuple):
    """How to draw a robot, and what that takes."""

    # from positions (n,) [rad or m] and the pose (4, 4) of the base or platform, None on the ground, to lines
    # (N, 2, 3) in the world [m]
    lines: Callable[[Array, Array | None], Array]
    joint_names: tuple[str, ...]
    moves_base: bool


def read_skeleton(path: str | Path) -> Skeleton:
    """Read a robot of any kind from its YAML file."""
    robot = Robot.load(path)
    return Skeleton(lambda q, pose: robot_lines(robot, q, pose), robot.joint_names, robot.moves_base)


def robot_lines(robot: Robot, positions: Array, base: Array | None = None) -> Array:
    """Return lines (N, 2, 3) [m] from joint to joint, to where loops close, and to what tips hold.

    That are their named frames, or else the centre of mass. Slides from the ground that nothing drives are
    left out where there are loops: they say where a platform is. `positions` (n,); `base` (4, 4) the pose of
    a floating base or platform.
    """
    poses = body_poses(robot, positions, base)
    return np.concatenate([loop_lines(robot, poses), body_lines(robot, poses)])


def body_poses(robot: Robot, positions: Array, base: Array | None = None) -> Array:
    """Return the poses (bodies, 4, 4) of all bodies in the world [m]; arguments as of `robot_lines`."""
    motion = None if base is None else BaseMotion(base, np.zeros((1, 6)))
    return robot.forward_kinematics(positions[None], motion).poses


def body_lines(robot: Robot, poses: Array) -> Array:
    """Return those of `robot_lines` that belong to bodies, from their poses (bodies, 4, 4)."""
    model, lines = robot.tree, []
    looped = _loop_points(robot)
    guided = _guided(robot)
    for i, parent in enumerate(model.parents):
        here = poses[i, :3, 3]
        if i not in guided and (parent >= 0 or not model.floating_base):
            lines.append([poses[parent, :3, 3] if parent >= 0 else np.zeros(3), here])
        if i not in model.parents:
            reached = [np.zeros(3), *looped.get(i, ())]
            held = [pose[:3, 3] for body, pose in robot.frames.values() if body == i]
            ends = [point for point in held if not any(np.allclose(point, other) for other in reached)]
            if not ends and i not in looped:
                ends = [model.coms[i]]
            lines += [[here, poses[i, :3, :3] @ end + here] for end in ends]
    return np.array(lines).reshape(-1, 2, 3)


def loop_lines(robot: Robot, poses: Array) -> Array:
    """Return lines (N, 2, 3) [m] from bodies to the points of their loops, and along rods."""
    lines = []
    for loop in robot.structure.loops:
        ends = []
        for frame in (loop.a, loop.b):
            body, point = frame.body, frame.point
            end = point if body < 0 else poses[body, :3, :3] @ point + poses[body, :3, 3]
            ends.append(end)
            if body >= 0 and loop.kind != "spin":
                lines.append([poses[body, :3, 3], end])
        if loop.kind == "rod":
            lines.append(ends)
    return np.array(lines).reshape(-1, 2, 3)


def _loop_points(robot: Robot) -> dict[int, list[Array]]:
    """Return where loops close on bodies, in their frames, by body."""
    points: dict[int, list[Array]] = {}
    for loop in robot.structure.loops:
        for frame in (loop.a, loop.b):
            if frame.body >= 0 and loop.kind != "spin":
                points.setdefault(frame.body, []).append(frame.point)
    return points


def _guided(robot: Robot) -> set[int]:
    """Return the bodies that reach the ground by slides alone, none of them driven, of a robot with loops."""
    guided: set[int] = set()
    if not robot.structure.loops:
        return guided
    model, driven = robot.tree, robot.structure.driven
    for i, parent in enumerate(model.parents):
        slides = model.kinds[i] is JointKind.PRISMATIC and i - model.first_jointed_body not in driven
        if slides and (parent < 0 or parent in guided):
            guided.add(i)
    return guided
