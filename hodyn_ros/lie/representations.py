"""Screws, twists and wrenches of a moving body in spatial, body-fixed and hybrid representation.

*spatial*: world axes, at the world origin; *body_fixed*: body axes, at the body origin; *hybrid*: world axes,
at the body origin. A. Mueller, "Screw and Lie group theory in multibody dynamics: recursive algorithms and
equations of motion of tree-topology systems" (2018), section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.lie.compiled import compiled
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.motion import Stack, adjoint_derivatives, wrenches_to_world
from hodyn_ros.lie.se3 import Array, inverse
from hodyn_ros.lie.se3 import pose as pose_of

Representation = Literal["spatial", "body_fixed", "hybrid"]
REPRESENTATIONS: tuple[Representation, ...] = ("spatial", "body_fixed", "hybrid")


def check_representation(representation: str) -> None:
    """Reject an unknown representation with InputError."""
    if not isinstance(representation, str) or representation not in REPRESENTATIONS:
        raise InputError(f"representation must be one of {list(REPRESENTATIONS)}, found {representation!r}")


def convert_screws(
    screws: Stack, pose: Array, twists: Stack, source: Representation, target: Representation
) -> Array:
    """Convert screws by order (orders, ..., 6), such as twists or joint screws, with their derivatives.

    `pose` (..., 4, 4) and `twists` (orders - 1 or more, ..., 6) are those of the body whose frame the
    representations refer to; the twists are in representation `source`.
    """
    if source == target or not len(screws):
        return np.asarray(screws)
    return _screw_conversion(source, target)(pose, twists, screws)


@cache
def _screw_conversion(source: Representation, target: Representation) -> Callable[..., Array]:
    @compiled
    def convert(pose: Array, twists: Stack, screws: Stack) -> Array:
        change, rates = change_of_frame(pose, twists, source, target)
        adjoints = adjoint_derivatives(change, rates, len(screws) - 1)
        return np.stack(product_derivatives(adjoints, screws, len(screws)))

    return convert


def convert_wrenches(
    wrenches: Stack, pose: Array, twists: Stack, source: Representation, target: Representation
) -> Array:
    """Convert wrenches by order (orders, ..., 6) with their derivatives; arguments as in `convert_screws`."""
    if source == target or not len(wrenches):
        return np.asarray(wrenches)
    change, rates = change_of_frame(pose, twists, source, target)
    return wrenches_to_world(change, rates, wrenches)


def change_of_frame(
    pose: Array, twists: Stack, source: Representation, target: Representation
) -> tuple[Array, list[Array]]:
    """Return the pose D (..., 4, 4) with `X_target = Ad_D X_source`, and the body-fixed twists of D by order.

    `pose` and `twists` are those of the body, the latter in representation `source`, another than `target`.
    """
    if (source, target) == ("body_fixed", "spatial"):
        return pose, list(twists)
    if (source, target) == ("body_fixed", "hybrid"):
        return turning(pose), [angular_part(twist) for twist in twists]
    if (source, target) == ("hybrid", "spatial"):
        return shifting(pose[..., :3, 3]), [linear_part(twist) for twist in twists]
    # the other way round: the inverse of a moving frame has its spatial twist, reversed, as body-fixed twist
    if (source, target) == ("spatial", "body_fixed"):
        return inverse(pose), [-twist for twist in twists]
    if (source, target) == ("hybrid", "body_fixed"):
        return inverse(turning(pose)), [-angular_part(twist) for twist in twists]
    return inverse(shifting(pose[..., :3, 3])), [-velocity for velocity in _origin_velocities(pose, twists)]


def turning(pose: Array) -> Array:
    """Return poses (..., 4, 4) with the rotations of those given, at the world origin."""
    rotation = pose[..., :3, :3]
    return pose_of(rotation, np.zeros(rotation.shape[:-1]))


def shifting(vector: Array) -> Array:
    """Return poses (..., 4, 4) with world axes at positions (..., 3) [m]."""
    return pose_of(np.broadcast_to(np.eye(3), (*vector.shape, 3)), vector)


def angular_part(twist: Array) -> Array:
    """Return `(omega; 0)` of twists (..., 6)."""
    return np.concatenate([twist[..., :3], np.zeros_like(twist[..., 3:])], axis=-1)


def linear_part(twist: Array) -> Array:
    """Return `(0; v)` of twists (..., 6)."""
    return np.concatenate([np.zeros_like(twist[..., :3]), twist[..., 3:]], axis=-1)


def _origin_velocities(pose: Array, spatial_twists: Stack) -> list[Array]:
    """Return `(0; p')` and its derivatives (..., 6) for the body origin p, from `p' = v + omega × p`."""
    spins = [twist[..., :3] for twist in spatial_twists]
    position = [pose[..., :3, 3]]
    velocities = []
    for r, twist in enumerate(spatial_twists):
        velocity = twist[..., 3:] + product_derivative(spins, position, r, np.cross)
        position.append(velocity)
        velocities.append(np.concatenate([np.zeros_like(velocity), velocity], axis=-1))
    return velocities
