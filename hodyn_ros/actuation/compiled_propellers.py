"""What propellers do, as a function of the wrench on their base that is traced and compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Shape, Stack, Traceable
from hodyn_ros.lie.jets import multiply, power, to_derivatives, to_taylor
from hodyn_ros.lie.motion import BaseRepresentation


def propeller_program(
    allocation: Array, inverse: Array, tilts: Sequence[bool], orders: int, frame: BaseRepresentation | None
) -> Traceable:
    """Return what computes thrusts, tilts and what is left of a wrench (orders, 6) on the base, by order.

    With a `frame` the wrench is one in the world frame, and the pose (4, 4) of the base and its twists
    (orders - 1 or 1, 6), represented in `frame`, are arguments, too. The
    result (orders + 1, 2 propellers + 6) holds thrusts, tilts and the rest; its last row has the components
    of thrusts along z and across, from which follow the tilts themselves, which are missing.
    """

    def trace(wrench: Stack, *motion: Stack) -> Stack:
        jet = to_taylor(np.array(wrench, dtype=object))
        if motion:
            pose, twists = (np.array(part, dtype=object) for part in motion)
            jet = _in_body(jet, pose, to_taylor(twists), frame == "body_fixed")
        parts = jet @ inverse.T
        left = jet - parts @ allocation.T
        thrusts, angles, ends, column = [], [], [], 0
        for tilting in tilts:
            along = parts[:, column]
            across = parts[:, column + 1] if tilting else np.zeros(orders, dtype=object)
            length, angle = _polar(along, across) if tilting else (along, across)
            thrusts.append(length)
            angles.append(angle)
            ends.append((along[0], across[0]))
            column += 1 + tilting
        rows = to_derivatives(np.column_stack([*thrusts, *angles, left])).tolist()
        return [*rows, [end[0] for end in ends] + [end[1] for end in ends] + [0.0] * 6]

    shapes: list[tuple[str, Shape]] = [("base wrench", (orders, 6))]
    if frame is not None:
        shapes += [("base pose", (4, 4)), ("base twists", (max(orders - 1, 1), 6))]
    return trace, shapes


def _in_body(wrench: Array, pose: Array, twists: Array, fixed: bool) -> Array:
    """Return the jet (orders, 6) of a wrench in body axes, about the body's origin.

    From jets of the wrench in the world and of the twist: with the spatial one `R' = w~ R`, `p' = v + w × p`,
    with that in the body's axes (`fixed`) `R' = R w~`, `p' = R v`. `f_b = R^T f`, `m_b = R^T (m - p × f)`.
    """
    rows, places = [pose[:3, :3].T], [pose[:3, 3]]  # of the axes of the body
    for k in range(len(wrench) - 1):
        pairs = [(twists[i, :3], twists[i, 3:], k - i) for i in range(k + 1)]
        if fixed:
            turned = [-np.cross(w[None], rows[rest].T).T for w, _, rest in pairs]
            moved = [v @ rows[rest] for _, v, rest in pairs]
        else:
            turned = [np.cross(w[None], rows[rest]) for w, _, rest in pairs]
            moved = [twists[k, 3:], *(np.cross(w, places[rest]) for w, _, rest in pairs)]
        rows.append(np.sum(turned, axis=0) / (k + 1.0))
        places.append(np.sum(moved, axis=0) / (k + 1.0))
    moments = [
        wrench[k, :3] - sum(np.cross(places[i], wrench[k - i, 3:]) for i in range(k + 1))
        for k in range(len(wrench))
    ]
    found = [
        np.concatenate(
            [sum(rows[i] @ vectors[k - i] for i in range(k + 1)) for vectors in (moments, wrench[:, 3:])]
        )
        for k in range(len(wrench))
    ]
    return np.array(found, dtype=object)


def _polar(along: Array, across: Array) -> tuple[Array, Array]:
    """Return jets of length and angle of a vector from those of its components; the angle itself is left out.

    `alpha' = (x y' - y x') / (x^2 + y^2)`.
    """
    squares = multiply(along, along) + multiply(across, across)
    angle = np.zeros(len(along), dtype=object)
    if len(along) > 1:
        steps = np.arange(1.0, len(along))
        turn = multiply(along[:-1], across[1:] * steps) - multiply(across[:-1], along[1:] * steps)
        angle[1:] = multiply(turn, power(squares[:-1], -1.0)) / steps
    return power(squares, 0.5), angle
