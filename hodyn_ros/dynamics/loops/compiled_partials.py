"""Partial derivatives of dynamics with loops by compiled code, all directions in lanes.

None is returned where there is no such code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hodyn_ros.dynamics.loops.coordinate_motion import sample_of
from hodyn_ros.dynamics.loops.directions import drifts
from hodyn_ros.dynamics.loops.looped_accelerations import LoopedAccelerations
from hodyn_ros.dynamics.loops.looped_efforts import LoopedEfforts
from hodyn_ros.dynamics.loops.looped_motion import KEPT, LoopedMotion
from hodyn_ros.engine.codegen.kernel import LaneKernel
from hodyn_ros.engine.loops.loop_kernel import compiles
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.engine.loops.loop_partials import acceleration_changes, effort_changes
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, twists_to_body, wrenches_to_world
from hodyn_ros.lie.se3 import Array

_ROWS = 2**14  # directions of several samples at a time


def of_efforts(
    looped: LoopedEfforts, y: Array, given: BaseMotion | None, wrenches: Sequence[AppliedWrench]
) -> Array | None:
    """Return what `inverse_dynamics_partials` does, of a batch y (N, order + 3, k) too."""
    order, c = y.shape[-2] - 3, looped.closure.n_coordinates
    kernel = _kernel(looped, effort_changes, order, looped.places(wrenches))
    if kernel is None:
        return None
    if y.ndim == 2:
        looped.drive_table(y, given, wrenches)  # closes the loops, or says what is wrong
        positions = _positions(looped)
    else:
        positions = _positions_of_samples(looped, y, given)
        looped.efforts_of_samples(len(y), y, given, wrenches)
    loads = [wrench.up_to(order) for wrench in wrenches]
    changes = np.eye((order + 3) * c).reshape(-1, order + 3, c)
    found = _batch(kernel, [y, *_motion(given, order + 2), *loads, positions], [changes])
    found = found.reshape(*y.shape[:-2], order + 3, c, order + 1, -1)
    return np.moveaxis(found, (-2, -4, -1), (-4, -3, -2))


def of_accelerations(
    looped: LoopedAccelerations,
    state: Array,
    drives: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench],
    push: Array | None = None,
) -> tuple[Array, Array] | None:
    """Return how accelerations of the coordinates and of the drives change, (order + 1, ..., directions).

    Directions and arguments are those of `looped_partials`, of a batch (N, ...) too; `push`: a wrench (order
    + 1, 6) on a prescribed base in the world frame, which stays as it is where the base turns.
    """
    closure, batch, order = looped.closure, drives.shape[:-2], drives.shape[-2] - 1
    places = looped.places(wrenches) + (((0, "world"),) if push is not None else ())
    kernel = _kernel(looped, acceleration_changes, order, places)
    if kernel is None:
        return None
    still = np.zeros((*batch, order + 1, 6 * closure.base_given))
    efforts = np.concatenate([still if push is None else push, drives], axis=-1)
    if batch:
        positions = _positions_of_samples(looped, state, given)
        accelerations = looped.accelerations_of_samples(batch[0], state, efforts, given, wrenches)
    else:
        accelerations = looped.accelerations(state, efforts, given, wrenches)
        positions = _positions(looped)
    c, e = closure.n_coordinates, closure.n_efforts
    units = np.eye(2 * c + (order + 1) * e)
    states, pushed = units[:, : 2 * c].reshape(-1, 2, c), units[:, 2 * c :].reshape(-1, order + 1, e)
    pushes = []
    if closure.base_given and given is not None:
        pushes = [still]
        in_body = np.swapaxes(pushed[:, :, :6], 0, 1)
        if batch:
            pushed = np.tile(pushed, (*batch, 1, 1, 1))
            for i, rates in enumerate(accelerations[..., :6]):
                turned = _in_world(sample_of(given, i), rates, in_body)
                pushed[i, ..., :6] = np.swapaxes(turned, 0, 1)
        else:
            pushed = pushed.copy()
            pushed[..., :6] = np.swapaxes(_in_world(given, accelerations[:, :6], in_body), 0, 1)
    loads = [wrench.up_to(order) for wrench in wrenches] + ([] if push is None else [push])
    shared = [state[..., :2, :], *_motion(given, 1), drives, *pushes, *loads, positions]
    found = np.moveaxis(_batch(kernel, shared, [states, pushed]), -3, -1)
    of_drives = found[..., c:, :]
    if closure.base_given:
        of_drives = np.concatenate([found[..., :6, :], of_drives], axis=-2)
    return found[..., :c, :], of_drives


def _in_world(given: BaseMotion | None, rates: Array, in_body: Array) -> Array:
    """Return wrenches on a base that are body-fixed, in the world; `rates`: of its spatial twist."""
    assert given is not None
    twists = np.concatenate([given.twists[:1], rates])
    return wrenches_to_world(given.pose, twists_to_body(given.pose, twists), in_body)


def _kernel(
    looped: LoopedMotion,
    make: Callable[..., LaneKernel | None],
    order: int,
    places: LoadPlaces,
) -> LaneKernel | None:
    if drifts(looped.closure) or not compiles(looped.closure, order):
        return None
    kernels = looped.partial_kernels
    key = make.__name__, order, places
    if key not in kernels:
        if len(kernels) >= KEPT:
            del kernels[next(iter(kernels))]
        kernels[key] = make(looped.closure, looped.independence.given, order, places)
    return kernels[key]


def _positions(looped: LoopedMotion) -> Array:
    """Return the positions (1, leading) at which the loops were closed last."""
    return looped.memory[:, : len(looped.closure.leading)]


def _positions_of_samples(looped: LoopedMotion, y: Array, given: BaseMotion | None) -> Array:
    """Return the positions (N, 1, leading) of a batch; further calls go on from where they did before."""
    start = looped.memory.copy()
    joints, _ = looped.joint_motion_of_samples(len(y), y[:, :1], given)
    looped.memory[:] = start
    return joints[..., list(looped.closure.leading)]


def _motion(given: BaseMotion | None, orders: int) -> list[Array]:
    return [] if given is None else [given.pose, given.in_frame("body").twists[..., :orders, :]]


def _batch(kernel: LaneKernel, shared: Sequence[Array], changes: Sequence[Array]) -> Array:
    """Return changes (..., directions, rows, columns) in all directions, at one motion or many.

    `shared` (N, ...) of each motion or (...) of all, `changes` (directions, ...) or (N, directions, ...).
    """
    batch = next((array.shape[:1] for array in shared if array.ndim == 3), ())
    count, directions = (*batch, 1)[0], changes[0].shape[-3]
    out = np.empty((count, directions, *kernel.result))
    part = max(_ROWS // directions, 1)
    for start in range(0, count, part):
        now = range(start, min(start + part, count))

        def rows(array: Array, axes: int, now: range = now) -> Array:
            own = array[now.start : now.stop] if array.ndim == axes + 1 else array
            own = own if axes == 3 else own[..., None, :, :]
            shape = array.shape[-2:]
            spread = np.broadcast_to(own, (len(now), directions, *shape))
            return np.ascontiguousarray(spread).reshape(len(now) * directions, *shape)

        arrays = [rows(array, 2) for array in shared] + [rows(array, 3) for array in changes]
        target = out[now.start : now.stop].reshape(-1, *kernel.result)
        kernel.batch(*arrays, out=target)
    return out.reshape(*batch, directions, *kernel.result)
