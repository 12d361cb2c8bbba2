"""Partial derivatives of dynamics with loops by compiled code, all directions in lanes.

None is returned where there is no such code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hodyn_ros.dynamics.loops.directions import drifts
from hodyn_ros.dynamics.loops.looped_accelerations import LoopedAccelerations
from hodyn_ros.dynamics.loops.looped_efforts import LoopedEfforts
from hodyn_ros.dynamics.loops.looped_motion import KEPT, LoopedMotion
from hodyn_ros.engine.codegen.kernel import LaneKernel
from hodyn_ros.engine.loops.loop_kernel import compiles
from hodyn_ros.engine.loops.loop_partials import acceleration_changes, effort_changes
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, twists_to_body, wrenches_to_world
from hodyn_ros.lie.se3 import Array


def of_efforts(
    looped: LoopedEfforts, y: Array, given: BaseMotion | None, wrenches: Sequence[AppliedWrench]
) -> Array | None:
    """Return what `inverse_dynamics_partials` does."""
    order, c = len(y) - 3, looped.closure.n_coordinates
    kernel = _kernel(looped, effort_changes, order, wrenches)
    if kernel is None:
        return None
    looped.drive_table(y, given, wrenches)  # closes the loops, or says what is wrong
    loads = [wrench.up_to(order) for wrench in wrenches]
    changes = np.eye((order + 3) * c).reshape(-1, order + 3, c)
    found = _batch(kernel, [y, *_motion(given, order + 2), *loads, _positions(looped)], changes)
    return np.moveaxis(found.reshape(order + 3, c, order + 1, -1), (2, 0, 3), (0, 1, 2))


def of_accelerations(
    looped: LoopedAccelerations,
    state: Array,
    drives: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench],
) -> tuple[Array, Array] | None:
    """Return how accelerations of the coordinates and of the drives change, (order + 1, ..., directions).

    Directions and arguments are those of `looped_partials`.
    """
    closure, order = looped.closure, len(drives) - 1
    kernel = _kernel(looped, acceleration_changes, order, wrenches)
    if kernel is None:
        return None
    still = np.zeros((order + 1, 6 * closure.base_given))
    accelerations = looped.accelerations(state, np.concatenate([still, drives], axis=1), given, wrenches)
    c, e = closure.n_coordinates, closure.n_efforts
    units = np.eye(2 * c + (order + 1) * e)
    states, efforts = units[:, : 2 * c].reshape(-1, 2, c), units[:, 2 * c :].reshape(-1, order + 1, e).copy()
    pushes = []
    if closure.base_given and given is not None:
        pushes, twists = [still], np.concatenate([given.twists[:1], accelerations[:, :6]])
        in_body = np.swapaxes(efforts[:, :, :6], 0, 1)
        turned = wrenches_to_world(given.pose, twists_to_body(given.pose, twists), in_body)
        efforts[:, :, :6] = np.swapaxes(turned, 0, 1)
    loads = [wrench.up_to(order) for wrench in wrenches]
    shared = [state[:2], *_motion(given, 1), drives, *pushes, *loads, _positions(looped)]
    found = np.moveaxis(_batch(kernel, shared, states, efforts), 0, -1)
    of_drives = found[:, c:]
    if closure.base_given:
        of_drives = np.concatenate([found[:, :6], of_drives], axis=1)
    return found[:, :c], of_drives


def _kernel(
    looped: LoopedMotion,
    make: Callable[..., LaneKernel | None],
    order: int,
    wrenches: Sequence[AppliedWrench],
) -> LaneKernel | None:
    if drifts(looped.closure) or not compiles(looped.closure, order):
        return None
    kernels, places = looped.partial_kernels, looped.places(wrenches)
    key = make.__name__, order, places
    if key not in kernels:
        if len(kernels) >= KEPT:
            del kernels[next(iter(kernels))]
        kernels[key] = make(looped.closure, looped.independence.given, order, places)
    return kernels[key]


def _positions(looped: LoopedMotion) -> Array:
    """Return the positions (1, leading) at which the loops were closed last."""
    return looped.memory[:, : len(looped.closure.leading)]


def _motion(given: BaseMotion | None, orders: int) -> list[Array]:
    return [] if given is None else [given.pose, given.in_frame("body").twists[:orders]]


def _batch(kernel: LaneKernel, shared: Sequence[Array], *changes: Array) -> Array:
    """Return changes in all directions, at one motion."""
    count = len(changes[0])
    arrays = [np.ascontiguousarray(np.broadcast_to(array, (count, *array.shape))) for array in shared]
    return kernel.batch(*arrays, *map(np.ascontiguousarray, changes), threads=1)
