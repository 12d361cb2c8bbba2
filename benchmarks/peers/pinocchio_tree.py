"""A robot with revolute and prismatic joints in Pinocchio, of the types that Pinocchio computes fastest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks.agreement import check
from benchmarks.stopwatch import Contender, python_call
from hodyn_ros import Robot
from hodyn_ros.lie.se3 import inverse
from hodyn_ros.model.tree import TreeModel

_ALIGNED = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
_SLIDING = (pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ)


def build(model: TreeModel) -> Any:
    """Return the same robot as a Pinocchio model with the same joints in the same order; fixed base only."""
    twin = pin.Model()
    twin.gravity.linear = np.array(model.gravity)
    for j, parent in enumerate(model.parents):
        frame = model.placements[j]
        above = np.eye(4) if parent < 0 else model.placements[parent]
        index = twin.addJoint(parent + 1, _joint(model, j), _pose(inverse(above) @ frame), f"joint{j}")
        inertia = pin.Inertia(model.masses[j], np.array(model.coms[j]), np.array(model.inertias[j]))
        twin.appendBodyToJoint(index, inertia, pin.SE3.Identity())
    return twin


def _joint(model: TreeModel, j: int) -> Any:
    rotation, origin = model.placements[j][:3, :3], model.placements[j][:3, 3]
    direction, moment = model.screws[j, :3], model.screws[j, 3:]
    if not direction.any():
        return _along(rotation.T @ moment, _SLIDING, pin.JointModelPrismaticUnaligned)
    if not np.allclose(np.cross(origin, direction), moment, rtol=0.0, atol=1e-12):
        raise ValueError(
            f"joint {j} must be prismatic, or revolute about an axis through the origin of its body's frame"
        )
    return _along(rotation.T @ direction, _ALIGNED, pin.JointModelRevoluteUnaligned)


def _along(axis: Any, aligned: tuple[Any, ...], other: Any) -> Any:
    for i, joint in enumerate(aligned):
        if abs(axis[i] - 1.0) < 1e-14:
            return joint()
    return other(axis)


def _pose(matrix: Any) -> Any:
    return pin.SE3(np.round(matrix[:3, :3], 15), np.round(matrix[:3, 3], 15))


def rnea_call(name: str, robot: Robot) -> Contender:
    """Return `pinocchio.rnea` called from Python, checked against this package first."""
    twin = build(robot.model)
    data = twin.createData()
    q = np.random.default_rng(7).uniform(-1.0, 1.0, size=(3, robot.n_coordinates))
    right = np.asarray(robot.inverse_dynamics(q, formulation="body_fixed"))
    check("pinocchio.rnea", pin.rnea(twin, data, q[0], q[1], q[2])[None], right)
    names = {
        "rnea": pin.rnea,
        "model": twin,
        "data": data,
        "q": q[0].copy(),
        "v": q[1].copy(),
        "a": q[2].copy(),
    }
    return python_call(name, "rnea(model, data, q, v, a)", names)
