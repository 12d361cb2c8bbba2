"""The same robots in Pinocchio, for torques, mass matrices and accelerations of order 0, with loops as well.

Pinocchio puts the linear part of twists and wrenches first; everything that leaves this module has the
angular part first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from oracles.motions import Base
from oracles.random_trees import Array, Tree

_SWAP = (3, 4, 5, 0, 1, 2)


@dataclass(frozen=True, eq=False)
class Twin:
    """A tree in Pinocchio. `columns` (nv,) says where our coordinates are in Pinocchio's velocity vector."""

    model: Any
    columns: NDArray[np.intp]


@lru_cache(maxsize=8)
def build(tree: Tree) -> Twin:
    """Build a tree in Pinocchio.

    Joint frames have world axes at the zero configuration and lie on their joint's axis; a floating base has
    its body frame. Bodies are added depth first: Pinocchio takes the columns of a subtree to be contiguous.
    """
    model = pin.Model()
    model.gravity.linear = tree.gravity
    model.gravity.angular = np.zeros(3)
    frames: dict[int, Array] = {}
    indices: dict[int, int] = {-1: 0}
    columns: dict[int, list[int]] = {}
    for i in _depth_first(tree):
        parent = tree.parents[i]
        if tree.floating_base and i == 0:
            # The free flyer's configuration is the pose of the body frame in the world.
            frame, placement, joint = tree.placements[0], np.eye(4), pin.JointModelFreeFlyer()
        else:
            frame, joint = _joint(tree.screws[i])
            placement = frame if parent < 0 else np.linalg.inv(frames[parent]) @ frame
        frames[i] = frame
        first = model.nv
        indices[i] = model.addJoint(indices[parent], joint, _se3(placement), f"joint{i}")
        columns[i] = [first] if model.nv == first + 1 else [first + k for k in _SWAP]
        body = np.linalg.inv(frame) @ tree.placements[i]
        rotation = body[:3, :3]
        inertia = pin.Inertia(
            tree.masses[i], rotation @ tree.coms[i] + body[:3, 3], rotation @ tree.inertias[i] @ rotation.T
        )
        model.appendBodyToJoint(indices[i], inertia, pin.SE3.Identity())
    return Twin(model, np.array([k for i in sorted(columns) for k in columns[i]], dtype=np.intp))


def inverse_dynamics(tree: Tree, q: Array, base: Base | None = None) -> tuple[Array | None, Array]:
    """Return the base wrench (6,) in its body frame (None with a fixed base) and the torques (n,)."""
    twin = build(tree)
    effort = pin.rnea(twin.model, twin.model.createData(), *_state(twin, q, base))[twin.columns]
    return _split(tree, effort)


def mass_matrix(tree: Tree, q: Array, base: Base | None = None) -> Array:
    """Return the mass matrix (n, n) at q (n,), or (6 + n, 6 + n) with the body-fixed base twist first."""
    twin = build(tree)
    configuration, _, _ = _state(twin, np.stack([q, np.zeros_like(q)]), base)
    matrix = pin.crba(twin.model, twin.model.createData(), configuration)
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    ours: Array = matrix[np.ix_(twin.columns, twin.columns)]
    return ours


def forward_dynamics(
    tree: Tree, state: Array, torques: Array, base: Base | None = None, base_wrench: Array | None = None
) -> tuple[Array | None, Array]:
    """Return the derivative of the base twist (6,) in the body frame (None with a fixed base), and q̈ (n,).

    `state` is (2, n), `torques` (n,), `base_wrench` (6,) in the body frame of the base, zero if None.
    """
    twin = build(tree)
    configuration, velocity, _ = _state(twin, state, base)
    wrench = np.zeros(6 * int(tree.floating_base)) if base_wrench is None else base_wrench
    effort = np.zeros(twin.model.nv)
    effort[twin.columns] = np.concatenate([wrench, torques])
    acceleration = pin.aba(twin.model, twin.model.createData(), configuration, velocity, effort)
    return _split(tree, acceleration[twin.columns])


def constrained_accelerations(
    tree: Tree, pins: Sequence[tuple[int, int, Array]], state: Array, efforts: Array
) -> Array:
    """Return q̈ (n,) of a tree on the ground whose bodies a and b keep points together, by constraintDynamics.

    `pins`: (a, b, point (3,) in the world at the zero configuration); two of them make a hinge. `state`:
    (2, n), at which they are closed; `efforts`: (n,), on all joints.
    """
    twin = build(tree)
    model, data = twin.model, twin.model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for a, b, point in pins:
        ends = []
        for body in (a, b):
            joint = model.getJointId(f"joint{body}") if body >= 0 else 0
            ends += [joint, pin.SE3(np.eye(3), data.oMi[joint].actInv(np.asarray(point)))]
        models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends, pin.LOCAL))
        datas.append(models[-1].createData())
    before_4 = pin.__version__.startswith("3.")
    pin.initConstraintDynamics(model, data, models, *([] if before_4 else [datas]))
    tau = np.zeros(model.nv)
    tau[twin.columns] = efforts
    configuration, velocity, _ = _state(twin, state, None)
    exact = pin.ProximalSettings(1e-14, 1e-14, 1e-10, 50)
    found = pin.constraintDynamics(model, data, configuration, velocity, tau, models, datas, exact)
    ours: Array = np.array(found)[twin.columns]
    return ours


def _depth_first(tree: Tree) -> list[int]:
    ordered: list[int] = []
    waiting = [i for i, parent in enumerate(tree.parents) if parent < 0]
    while waiting:
        ordered.append(waiting.pop())
        waiting += [i for i, parent in enumerate(tree.parents) if parent == ordered[-1]]
    return ordered


def _split(tree: Tree, vector: Array) -> tuple[Array | None, Array]:
    return (vector[:6], vector[6:]) if tree.floating_base else (None, vector)


def _se3(pose: Array) -> Any:
    return pin.SE3(pose[:3, :3], pose[:3, 3])


def _joint(screw: Array) -> tuple[Array, Any]:
    """Return the joint frame (4, 4) at the zero configuration and the joint of a unit screw."""
    axis, linear = screw[:3], screw[3:]
    frame = np.eye(4)
    if not axis.any():
        return frame, pin.JointModelPrismaticUnaligned(linear)
    frame[:3, 3] = np.cross(axis, linear)
    pitch = float(axis @ linear)
    if abs(pitch) < 1e-12:
        return frame, pin.JointModelRevoluteUnaligned(axis)
    return frame, pin.JointModelHelicalUnaligned(axis, pitch)


def _state(twin: Twin, q: Array, base: Base | None) -> tuple[Array, Array, Array]:
    """Return configuration, velocity and acceleration (zero where `q` or the base twists stop short)."""
    rates = np.zeros((2, twin.model.nv))
    own = np.zeros((2, twin.model.nv))
    first = 0 if base is None else 6
    own[: len(q) - 1, first:] = q[1:3]
    if base is not None:
        if base.representation != "body_fixed":
            raise ValueError(
                f"Pinocchio's free flyer takes body-fixed twists; found the frame {base.representation!r}"
            )
        own[: len(base.twists), :6] = base.twists[:2]
    rates[:, twin.columns] = own
    configuration = pin.neutral(twin.model)
    if base is not None:
        configuration[:7] = pin.SE3ToXYZQUAT(_se3(base.pose))
    # A free flyer has one coordinate more than it has velocities.
    shift = twin.model.nq - twin.model.nv
    configuration[twin.columns[first:] + shift] = q[0]
    return configuration, rates[0], rates[1]
