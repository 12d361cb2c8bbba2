"""Torques and their derivatives by CasADi: the symbolic recursion, differentiated, as C code.

The recursive Newton-Euler algorithm (Luh, Walker & Paul 1980) on 3-vectors in link frames, all constants of
the robot folded. Time derivatives come from `jtimes` along the motion, repeated, and `cse` shares what the
orders have in common. Two editions: the textbook's, and one with all the savings known for order 0 (Khalil &
Dombre 2002, chapter 9): the matrix `w'~ + w~ w~` formed once a link, and mass parameters that only act
through the parent regrouped there. Which one is faster depends on the order; ours is held against the faster.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from hodyn_ros.lie.se3 import Array, inverse
from hodyn_ros.model.tree import TreeModel

EDITIONS = ("textbook", "regrouped")


def torques(model: TreeModel, order: int, edition: str) -> Any:
    """Return a CasADi function of q (n, order + 3) that gives the torques (n, order + 1).

    CasADi stores columns together: in memory these are our arrays (order + 3, n) and (order + 1, n). Serial
    arms with revolute joints about the z axes of their bodies' frames.
    """
    motion = ca.SX.sym("q", model.n_joints, order + 3)
    links = _regrouped_links(model) if edition == "regrouped" else _textbook_links(model)
    derivatives = [ca.cse(_rnea(links, model, motion))]
    for k in range(1, order + 1):
        below, above = ca.vec(motion[:, : k + 2]), ca.vec(motion[:, 1 : k + 3])
        derivatives.append(ca.cse(ca.jtimes(derivatives[-1], below, above)))
    return ca.Function("torques", [motion], [ca.cse(ca.horzcat(*derivatives))])


def feedforward(model: TreeModel, order: int, edition: str, stiffness: Array, inertia: Array) -> Any:
    """Return likewise torques, and of motors behind linear springs positions and efforts (n, ...).

    Positions have derivatives up to `order`, efforts up to `order` - 2.
    """
    motion = ca.SX.sym("q", model.n_joints, order + 3)
    torque = torques(model, order, edition)(motion)
    position = motion[:, : order + 1] + torque / ca.repmat(ca.DM(stiffness), 1, order + 1)
    effort = ca.repmat(ca.DM(inertia), 1, order - 1) * position[:, 2:] + torque[:, : order - 1]
    return ca.Function("feedforward", [motion], [torque, position, ca.cse(effort)])


def efforts_of_tree(model: TreeModel, order: int) -> Any:
    """Return a CasADi function of the rotation (3, 3) of a floating base, twists (6, order + 2) and q.

    The result (6 + n, order + 1) begins with the wrench on the base; that and the twists are body-fixed.
    Joints turn about axes through the origins of their bodies' frames. As time goes on, `R' = R w~`.
    """
    rotation = ca.SX.sym("R", 3, 3)
    twists = ca.SX.sym("V", 6, order + 2)
    motion = ca.SX.sym("q", model.n_joints, order + 3)
    turned = ca.mtimes(rotation, ca.skew(twists[:3, 0]))
    derivatives = [ca.cse(_tree_rnea(model, rotation, twists, motion))]
    for k in range(1, order + 1):
        below = ca.veccat(rotation, twists[:, : k + 1], motion[:, : k + 2])
        above = ca.veccat(turned, twists[:, 1 : k + 2], motion[:, 1 : k + 3])
        derivatives.append(ca.cse(ca.jtimes(derivatives[-1], below, above)))
    return ca.Function("efforts", [rotation, twists, motion], [ca.cse(ca.horzcat(*derivatives))])


def _tree_rnea(model: TreeModel, rotation: Any, twists: Any, motion: Any) -> Any:
    spreads = [_spread(model, j) for j in range(model.n_bodies)]
    links = [_RegroupedLink(s[3, 3], s[:3, 3], s[:3, :3]) for s in spreads]
    w, dw = twists[:3, 0], twists[:3, 1]
    a = twists[3:, 1] + ca.cross(w, twists[3:, 0]) - ca.mtimes(rotation.T, _constant(model.gravity))
    fields, wrenches = [(w, dw, a)], [links[0].wrench(w, dw, a)]
    placements: list[Any] = [()]
    for j in range(1, model.n_bodies):
        parent = model.parents[j]
        frame = inverse(model.placements[parent]) @ model.placements[j]
        axis, offset = model.placements[j][:3, :3].T @ model.screws[j, :3], _constant(frame[:3, 3])
        swing = ca.skew(_constant(axis))
        turn = ca.SX.eye(3) + ca.sin(motion[j - 1, 0]) * swing
        turn = turn + (1.0 - ca.cos(motion[j - 1, 0])) * ca.mtimes(swing, swing)
        own, axis = ca.mtimes(_constant(frame[:3, :3]), turn), _constant(axis)
        w, dw, a = fields[parent]
        a = ca.mtimes(own.T, a + links[parent].field(w, dw, offset))
        carried = ca.mtimes(own.T, w)
        dw = ca.mtimes(own.T, dw) + ca.cross(carried, axis) * motion[j - 1, 1] + axis * motion[j - 1, 2]
        w = carried + axis * motion[j - 1, 1]
        fields.append((w, dw, a))
        placements.append((own, offset, axis))
        wrenches.append(links[j].wrench(w, dw, a))
    torques = []
    for j in reversed(range(1, model.n_bodies)):
        own, offset, axis = placements[j]
        torques.append(ca.dot(axis, wrenches[j][0]))
        moment, force = (ca.mtimes(own, part) for part in wrenches[j])
        moment_before, force_before = wrenches[model.parents[j]]
        wrenches[model.parents[j]] = moment_before + moment + ca.cross(offset, force), force_before + force
    return ca.vertcat(*wrenches[0], *reversed(torques))


class _TextbookLink:
    """Inertia about the frame's origin; force and moment by cross products."""

    def __init__(self, mass: float, first: Array, second: Array) -> None:
        self.mass, self.first = mass, _constant(first)
        self.inertia = _constant(np.trace(second) * np.eye(3) - second)

    def field(self, w: Any, dw: Any, x: Any) -> Any:
        """Return the acceleration of a point at x relative to the origin."""
        return ca.cross(dw, x) + ca.cross(w, ca.cross(w, x))

    def wrench(self, w: Any, dw: Any, a: Any) -> tuple[Any, Any]:
        """Return moment about the origin and force."""
        moment = ca.mtimes(self.inertia, dw) + ca.cross(w, ca.mtimes(self.inertia, w))
        return moment + ca.cross(self.first, a), self.mass * a + self.field(w, dw, self.first)


class _RegroupedLink:
    """Second moments of mass instead of an inertia; force and moment by the matrix w'~ + w~ w~."""

    def __init__(self, mass: float, first: Array, second: Array) -> None:
        self.mass, self.first, self.second = mass, _constant(first), _constant(second)

    def field(self, w: Any, dw: Any, x: Any) -> Any:
        """Return the acceleration of a point at x relative to the origin."""
        return ca.mtimes(_acceleration_matrix(w, dw), x)

    def wrench(self, w: Any, dw: Any, a: Any) -> tuple[Any, Any]:
        """Return moment about the origin and force."""
        matrix = _acceleration_matrix(w, dw)
        spread = ca.mtimes(matrix, self.second)
        moment = ca.vertcat(
            spread[2, 1] - spread[1, 2], spread[0, 2] - spread[2, 0], spread[1, 0] - spread[0, 1]
        )
        return moment + ca.cross(self.first, a), self.mass * a + ca.mtimes(matrix, self.first)


def _rnea(links: list[Any], model: TreeModel, motion: Any) -> Any:
    axis, n = _constant(np.array([0.0, 0.0, 1.0])), model.n_joints
    placements, wrenches = [], []
    w, dw, a = ca.SX(3, 1), ca.SX(3, 1), _constant(-model.gravity)
    for j in range(n):
        constant, offset = _placement(model, j)
        rotation = ca.mtimes(constant, _turn(motion[j, 0]))
        above = ca.SX(3, 1) if j == 0 else links[j - 1].field(w, dw, offset)
        carried = ca.mtimes(rotation.T, w)
        a = ca.mtimes(rotation.T, a + above)
        dw = ca.mtimes(rotation.T, dw) + ca.cross(carried, axis) * motion[j, 1] + axis * motion[j, 2]
        w = carried + axis * motion[j, 1]
        placements.append((rotation, offset))
        wrenches.append(links[j].wrench(w, dw, a))
    for j in reversed(range(1, n)):
        rotation, offset = placements[j]
        moment, force = (ca.mtimes(rotation, part) for part in wrenches[j])
        moment_before, force_before = wrenches[j - 1]
        wrenches[j - 1] = moment_before + moment + ca.cross(offset, force), force_before + force
    return ca.vertcat(*(moment[2] for moment, _ in wrenches))


def _turn(angle: Any) -> Any:
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))


def _acceleration_matrix(w: Any, dw: Any) -> Any:
    return ca.skew(dw) + ca.mtimes(w, w.T) - ca.dot(w, w) * ca.SX.eye(3)


def _placement(model: TreeModel, j: int) -> tuple[Any, Any]:
    """Return rotation and position of a joint's frame on its parent, both at the zero configuration."""
    pose = _pose_on_parent(model, j)
    return _constant(pose[:3, :3]), _constant(pose[:3, 3])


def _pose_on_parent(model: TreeModel, j: int) -> Array:
    if model.parents[j] != j - 1:
        raise ValueError("this peer is written for serial arms")
    frame = model.placements[j]
    axis = np.array([0.0, 0.0, 1.0, *np.cross(frame[:3, 3], frame[:3, 2])])
    axis[:3] = frame[:3, 2]
    if not np.allclose(axis, model.screws[j], rtol=0.0, atol=1e-12):
        raise ValueError(f"joint {j} must turn about the z axis of its body's frame")
    return frame if j == 0 else inverse(model.placements[j - 1]) @ frame


def _textbook_links(model: TreeModel) -> list[_TextbookLink]:
    spreads = [_spread(model, j) for j in range(model.n_bodies)]
    return [_TextbookLink(s[3, 3], s[:3, 3], s[:3, :3]) for s in spreads]


def _regrouped_links(model: TreeModel) -> list[_RegroupedLink]:
    """Move to the parent mass as if on the joint axis: the mass, its first and second moment in z."""
    spreads = [_spread(model, j) for j in range(model.n_bodies)]
    for j in reversed(range(model.n_bodies)):
        on_axis = np.zeros((4, 4))
        on_axis[2:, 2:] = spreads[j][2:, 2:]
        spreads[j] = spreads[j] - on_axis
        if j > 0:
            pose = _pose_on_parent(model, j)
            spreads[j - 1] = spreads[j - 1] + pose @ on_axis @ pose.T
    return [_RegroupedLink(s[3, 3], s[:3, 3], s[:3, :3]) for s in spreads]


def _spread(model: TreeModel, j: int) -> Array:
    """Return `[[integral of x x^T dm, integral of x dm], [.., mass]]` about the frame's origin (4, 4)."""
    mass, com, inertia = model.masses[j], model.coms[j], model.inertias[j]
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(com, com)
    return np.block([[second, mass * com[:, None]], [mass * com[None, :], np.array([[mass]])]])


def _constant(values: Array) -> Any:
    """Return a constant without the rounding of its zeros and ones, its zeros left out."""
    nearest = np.round(values)
    exact = np.where(np.abs(values - nearest) < 1e-14, nearest, values)
    return ca.sparsify(ca.SX(ca.DM(exact)))
