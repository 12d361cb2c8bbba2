"""The motion of a floating base or platform, and wrenches, in world and body representation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.lie.compiled import compiled
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.rigid import rigid_poses
from hodyn_ros.lie.se3 import Ad, Array, ad, hat, inverse, transposed

Stack = Sequence[Array] | Array  # derivatives by order
BaseRepresentation = Literal["spatial", "body_fixed"]
BASE_REPRESENTATIONS: tuple[BaseRepresentation, ...] = ("spatial", "body_fixed")


def _finite(name: str, values: ArrayLike) -> Array:
    try:
        if np.iscomplexobj(values):
            raise TypeError("found complex ones")
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be real numbers: {error}") from None
    check_finite(name, array)
    array.setflags(write=False)
    return array


def check_base_representation(representation: str) -> None:
    """Reject what neither base motions nor wrenches are given in, with InputError."""
    if not isinstance(representation, str) or representation not in BASE_REPRESENTATIONS:
        raise InputError(
            f"representation must be one of {list(BASE_REPRESENTATIONS)}, found {representation!r}"
        )


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """Pose and twists by order of a floating base, in world or in body representation.

    `pose` (4, 4) in the world [m]; `twists` (orders, 6): the twist `(omega; v)` [rad/s, m/s] and its time
    derivatives. `representation="spatial"` means the spatial twist (world axes, at the world origin),
    `"body_fixed"` the body-fixed one (body axes, at the body origin). Inverse dynamics of order r
    needs r + 2 twists, a mass matrix of order 0 none. A batch of N motions is (N, 4, 4) and (N, orders, 6).
    """

    pose: Array
    twists: Array
    representation: BaseRepresentation = field(default="spatial", kw_only=True)

    def __post_init__(self) -> None:
        check_base_representation(self.representation)
        pose, twists = rigid_poses("the base pose", self.pose), _finite("the base twists", self.twists)
        batch = pose.shape[:-2]
        if twists.shape[:-2] != batch or twists.shape[-1:] != (6,) or twists.ndim < 2:
            shape = f"({batch[0]}, orders, 6)" if batch else "(orders, 6)"
            raise ShapeError("the base twists", shape, twists.shape)
        pose.setflags(write=False)
        object.__setattr__(self, "pose", pose)
        object.__setattr__(self, "twists", twists)

    @classmethod
    def computed(
        cls, pose: Array, twists: Array, representation: BaseRepresentation = "spatial"
    ) -> BaseMotion:
        """Return a motion that needs no check, as compiled code has found it."""
        pose.setflags(write=False)
        twists.setflags(write=False)
        motion = object.__new__(cls)
        motion.__dict__.update(pose=pose, twists=twists, representation=representation)
        return motion

    @property
    def orders(self) -> int:
        """Number of twists: the twist and its derivatives."""
        return int(self.twists.shape[-2])

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes: (), or (N,) of a batch."""
        return self.twists.shape[:-2]

    def arrays(self, orders: int, batch: tuple[int, ...] = ()) -> list[Array]:
        """Return pose and as many twists, C-contiguous, once for every sample of a batch."""
        parts = [self.pose, self.twists[..., :orders, :]]
        if batch and not self.batch:
            parts = [np.tile(part, (*batch, 1, 1)) for part in parts]
        return [np.ascontiguousarray(part) for part in parts]

    def one(self, i: int) -> BaseMotion:
        """Return one sample of a batch."""
        return BaseMotion.computed(self.pose[i], self.twists[i], self.representation)

    def in_representation(self, representation: BaseRepresentation) -> BaseMotion:
        """Return the same motion in another representation."""
        check_base_representation(representation)
        if representation == self.representation:
            return self
        twists = self.twists
        if twists.size:
            convert = twists_to_world if representation == "spatial" else twists_to_body
            twists = self._converted(convert, twists)
        return BaseMotion.computed(self.pose, twists, representation)

    def twists_in(self, representation: BaseRepresentation, orders: int) -> Array:
        """Return as many twists of one sample in another representation, (orders, 6)."""
        twists = self.twists[:orders]
        if representation == self.representation or not orders:
            return twists
        return (twists_to_world if representation == "spatial" else twists_to_body)(self.pose, twists)

    def pose_derivatives(self) -> Array:
        """Return the pose and its time derivatives (orders + 1, 4, 4); Ali et al., eq. 20."""
        return self._converted(pose_derivatives, self.in_representation("spatial").twists)

    def _converted(self, convert: Callable[..., Array], *stacks: Array) -> Array:
        """Return what a function below makes of the pose and of stacks, the order behind the batch."""
        if not self.batch:
            return convert(self.pose, *stacks)
        return np.moveaxis(convert(self.pose, *[np.moveaxis(stack, -2, 0) for stack in stacks]), 0, 1)

    def wrenches_in_body(self, world_wrenches: Stack) -> Array:
        """Return wrenches on the base by order (orders, 6), given in the world frame, in the body frame.

        Inverse dynamics returns the base wrench in the world frame, moments about the world origin; here they
        are in body axes, about the body origin, with their derivatives. Needs as many twists as derivatives.
        """
        wrenches = np.asarray(world_wrenches, dtype=np.float64)
        return self._converted(wrenches_to_body, self.in_representation("body_fixed").twists, wrenches)


@compiled
def pose_derivatives(pose: Array, world_twists: Stack) -> Array:
    """Return a pose (..., 4, 4) and its time derivatives, (orders + 1, ..., 4, 4), from spatial twists.

    `C^(r) = sum_k C(r-1, k) [V^(k)] C^(r-1-k)` with `[V]` the matrix of a twist; Ali et al., eq. 20. Rows of
    derivatives end with zeros.
    """
    derivatives = [pose]
    matrices = [_twist_matrix(np.asarray(twist)) for twist in world_twists]
    for k in range(len(matrices)):
        derivatives.append(product_derivative(matrices, derivatives, k, np.matmul))
    return np.stack(derivatives)


def _twist_matrix(twist: Array) -> Array:
    """Return the matrix (..., 4, 4) of twists (omega; v)."""
    matrix = np.zeros((*twist.shape[:-1], 4, 4), np.result_type(twist, np.float64))
    matrix[..., :3, :3], matrix[..., :3, 3] = hat(twist[..., :3]), twist[..., 3:]
    return matrix


def adjoint_derivatives(pose: Array, body_twists: Stack, order: int) -> list[Array]:
    """Return `Ad_C` and its derivatives up to `order`, each (..., 6, 6), from body-fixed twists by order.

    `Ad_C' = Ad_C ad_{V^b}`, differentiated with the product rule.
    """
    brackets = [ad(twist) for twist in body_twists[:order]]
    result = [Ad(pose)]
    for k in range(order):
        result.append(product_derivative(result, brackets, k, np.matmul))
    return result


def inverse_adjoint_derivatives(pose: Array, body_twists: Stack, order: int) -> list[Array]:
    """Return `Ad_C^{-1}` and its derivatives up to `order`, (..., 6, 6) each, from body-fixed twists.

    `(Ad_C^{-1})' = -ad_{V^b} Ad_C^{-1}`, differentiated with the product rule.
    """
    brackets = [-ad(twist) for twist in body_twists[:order]]
    result = [Ad(inverse(pose))]
    for k in range(order):
        result.append(product_derivative(brackets, result, k, np.matmul))
    return result


@compiled
def twists_to_world(pose: Array, body_twists: Stack) -> Array:
    """Convert body-fixed twists by order (orders, ..., 6) to spatial ones, `V^0 = Ad_C V^b`."""
    orders = range(len(body_twists))
    adjoints = adjoint_derivatives(pose, body_twists, len(body_twists) - 1)
    return np.stack(product_derivatives(adjoints, body_twists, len(orders)))


@compiled
def twists_to_body(pose: Array, world_twists: Stack) -> Array:
    """Convert spatial twists by order (orders, ..., 6) to body-fixed ones, `V^b = Ad_C^{-1} V^0`."""
    # the inverse pose moves with the body-fixed twist -V^0
    reversed_twists = [-np.asarray(twist) for twist in world_twists]
    adjoints = adjoint_derivatives(inverse(pose), reversed_twists, len(world_twists) - 1)
    return np.stack(product_derivatives(adjoints, world_twists, len(world_twists)))


@compiled
def wrenches_to_world(pose: Array, body_twists: Stack, body_wrenches: Stack) -> Array:
    """Convert wrenches by order (orders, ..., 6) from the body frame to the world frame.

    Moments are about the frame's origin. `W^0 = Ad_C^{-T} W^b` with derivatives; needs one body-fixed twist
    less than wrenches.
    """
    adjoints = inverse_adjoint_derivatives(pose, body_twists, len(body_wrenches) - 1)
    return _transposed_products(adjoints, body_wrenches)


@compiled
def wrenches_to_body(pose: Array, body_twists: Stack, world_wrenches: Stack) -> Array:
    """Convert wrenches by order (orders, ..., 6) from the world frame to the body frame.

    Moments are about the frame's origin. `W^b = Ad_C^T W^0` with derivatives; needs one body-fixed twist less
    than wrenches.
    """
    return _transposed_products(
        adjoint_derivatives(pose, body_twists, len(world_wrenches) - 1), world_wrenches
    )


def _transposed_products(adjoints: list[Array], wrenches: Stack) -> Array:
    return np.stack(product_derivatives(transposed(adjoints), wrenches, len(wrenches)))


@dataclass(frozen=True, eq=False)
class AppliedWrench:
    """A wrench that the environment applies to a body, with its time derivatives.

    `body` is the name or the index of the body; `values` (orders, 6) the wrench `(m; f)` [N.m, N] and its
    derivatives, the rest counting as zero. `representation="spatial"`: world axes, about the world
    origin; `"body_fixed"`: body axes, about the body origin.
    """

    body: str | int
    values: Array
    representation: BaseRepresentation = field(default="spatial", kw_only=True)

    def __post_init__(self) -> None:
        check_base_representation(self.representation)
        values = _finite(f"the wrench on body {self.body!r}", self.values)
        if values.ndim == 1:
            values = values[None]
        if values.ndim != 2 or values.shape[1] != 6 or not len(values):
            raise ShapeError(f"the wrench on body {self.body!r}", "(orders, 6)", values.shape)
        object.__setattr__(self, "values", values)

    def up_to(self, order: int) -> Array:
        """Return the values (order + 1, 6), padded with zeros."""
        result = np.zeros((order + 1, 6))
        known = self.values[: order + 1]
        result[: len(known)] = known
        return result
