"""Partial derivatives of dynamics with loops by compiled code, all directions in lanes.

None is returned where there is no such code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

import numpy as np

from hodyn_ros.codegen.kernel import LaneKernel
from hodyn_ros.dynamics.loops.coordinate_motion import sample_of
from hodyn_ros.dynamics.loops.digit_check import Samples, sample_loop
from hodyn_ros.dynamics.loops.grounded import DriftingFunction, is_compiled, shifted
from hodyn_ros.dynamics.loops.looped_accelerations import LoopedAccelerations
from hodyn_ros.dynamics.loops.looped_efforts import LoopedEfforts
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.engine.loops.loop_hessian import LoopHessian
from hodyn_ros.engine.loops.loop_kernel import TooLong
from hodyn_ros.engine.loops.loop_matrices import Matrix
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.engine.loops.loop_partials import (
    Differentiated,
    LoopPartials,
    acceleration_changes,
    effort_changes,
)
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_Made = TypeVar("_Made")
_ROWS = 2**11  # directions of several samples at a time, that what they take stays in the cache
_LONG = 100_000  # operations from which code that repeats itself for each direction is the slower one


def of_efforts(
    looped: LoopedEfforts, y: Array, given: BaseMotion | None, wrenches: Sequence[AppliedWrench]
) -> Array | None:
    """Return what `inverse_dynamics_partials` does, of a batch y (N, order + 3, k) too."""
    order, c, places = y.shape[-2] - 3, looped.closure.n_coordinates, looped.places(wrenches)
    loads = [wrench.up_to(order) for wrench in wrenches]
    if y.ndim == 2:
        arrays = [y, *_spatial(given, order + 2), *loads]
        one = _of_one(looped, "efforts", order, places)
        changes = _called(looped, one, arrays, lambda: looped.drive_table(y, given, wrenches))
        return None if changes is None else _by_motion(changes, c)
    kernel = _kernel(looped, effort_changes, order, places)
    if kernel is None or kernel.operations > _LONG:
        arrays = [y, *_spatial(given, order + 2), *loads]
        several = _one_after_the_other(
            looped,
            "efforts",
            order,
            places,
            arrays,
            lambda i: looped.drive_table(y[i], sample_of(given, i), wrenches),
        )
        return None if several is None else _by_motion(several, c)
    positions = _positions_of_samples(looped, y, given)
    looped.efforts_of_samples(len(y), y, given, wrenches)
    units = np.eye((order + 3) * c).reshape(-1, order + 3, c)
    found = _batch(kernel, [y, *_motion(given, order + 2), *loads, positions], [units])
    found = found.reshape(*y.shape[:-2], order + 3, c, order + 1, -1)
    return np.moveaxis(found, (-2, -4, -1), (-4, -3, -2))


def hessian_of_efforts(
    looped: LoopedEfforts,
    y: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench],
    multiplier: Array,
) -> Array | None:
    """Return second derivatives (order + 3, order + 3, c, c) of `multiplier · efforts`, y (order + 3, k)."""
    order = len(y) - 3
    loads = [wrench.up_to(order) for wrench in wrenches]
    one = _of_one(looped, "hessian", order, looped.places(wrenches))
    arrays = [y, *_spatial(given, order + 2), *loads, multiplier]
    return _called(looped, one, arrays, lambda: looped.drive_table(y, given, wrenches))


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
    on_base = np.zeros((*batch, order + 1, 6 * closure.base_given)) if push is None else push
    efforts = np.concatenate([on_base, drives], axis=-1)
    if batch:
        found = _accelerations_of_samples(looped, state, efforts, given, wrenches)
    else:
        arrays = [state[:2], *_spatial(given, 1), drives, *([on_base] if closure.base_given else [])]
        arrays += [wrench.up_to(order) for wrench in wrenches]
        one = _of_one(looped, "accelerations", order, looped.places(wrenches))
        found = _called(looped, one, arrays, lambda: looped.accelerations(state, efforts, given, wrenches))
    if found is None:
        return None
    c = closure.n_coordinates
    of_drives = found[..., c:, :]
    if closure.base_given:
        of_drives = np.concatenate([found[..., :6, :], of_drives], axis=-2)
    return found[..., :c, :], of_drives


def of_matrix(looped: LoopedMotion, part: Matrix, y: Array, given: BaseMotion | None) -> Array | None:
    """Return how derivatives of a matrix change with a motion y (order + 2, k): (order + 1, k, h, ...).

    By derivative k of coordinate h, as far as the matrix takes them.
    """
    kernel = _of_one(looped, part, len(y) - 2, ())
    if kernel is None:
        return None
    rows, c = kernel.arguments[0][1][0], looped.closure.n_coordinates
    arrays = [y[:rows], *_spatial(given, rows - 1)]
    changes = _called(looped, kernel, arrays, lambda: looped.joint_motion(y, given))
    if changes is None:
        return None
    return np.moveaxis(changes.reshape(len(y) - 1, -1, c, rows, c), (3, 4), (1, 2))


def by_order(found: Array, count: int) -> Array:
    """Return derivatives (..., orders, rows, directions) as (..., orders, orders + 2, rows, efforts)."""
    *batch, orders, rows, size = found.shape
    e = (size - 2 * count) // orders
    if e == count:
        return found.reshape(*batch, orders, rows, orders + 2, e).swapaxes(-2, -3)
    result = np.zeros((*batch, orders, orders + 2, rows, e))
    of_state = found[..., : 2 * count].reshape(*batch, orders, rows, 2, count)
    of_efforts = found[..., 2 * count :].reshape(*batch, orders, rows, orders, e)
    result[..., :2, :, :count] = np.moveaxis(of_state, -2, -3)
    result[..., 2:, :, :] = np.moveaxis(of_efforts, -2, -3)
    return result


def quick_call(
    looped: LoopedMotion, of: Literal["efforts", "accelerations"], order: int
) -> Callable[..., Array | None]:
    """Return what computes partial derivatives of an order from arrays, or None where it cannot.

    Arguments are those of `LoopKernel` or `LoopAccelerations` but for the memory, results (order + 1, order +
    3, rows, columns) as of `looped_partials`.
    """
    c = looped.closure.n_coordinates
    kernel = None if looped.independence.idle and of == "accelerations" else _of_one(looped, of, order, ())
    if kernel is None:
        return lambda *arrays: None
    function, defect_at, changes, memory = (
        kernel.function,
        kernel.defect_at,
        _changes(kernel),
        looped.memory,
    )

    def call(*arrays: Array) -> Array | None:
        table = function(*arrays, memory)
        if not table.item(defect_at) < 1.0:
            return None
        found = changes(table)
        if of == "accelerations":
            return by_order(found[:, :c], c)
        return _by_motion(found, c)

    return call


def _by_motion(changes: Array, count: int) -> Array:
    """Return changes (..., orders, rows, directions) as (..., orders, orders + 2, rows, coordinates)."""
    *batch, orders, rows, _ = changes.shape
    return changes.reshape(*batch, orders, rows, orders + 2, count).swapaxes(-3, -2)


def _of_one(
    looped: LoopedMotion, of: Differentiated | Literal["hessian"], order: int, places: LoadPlaces
) -> LoopPartials | LoopHessian | DriftingFunction | None:
    """Return the code of single calls; None where there is none."""
    chosen = looped.independence.given

    def code(closure: Closure, shift: int, on_numbers: bool) -> LoopPartials | LoopHessian:
        if on_numbers:
            raise TooLong
        if of == "hessian":
            return LoopHessian(closure, chosen, order, shifted(places, shift))
        return LoopPartials(closure, chosen, order, of, shifted(places, shift))

    def make() -> LoopPartials | LoopHessian | DriftingFunction | None:
        with suppress(TooLong):
            if looped.drifts:
                return DriftingFunction(looped.closure, order, code)
            return code(looped.closure, 0, False)
        return None

    found: LoopPartials | LoopHessian | DriftingFunction | None = _kept(looped, (of, order, places), make)
    return found


def _called(
    looped: LoopedMotion,
    kernel: LoopPartials | LoopHessian | DriftingFunction | None,
    arrays: Sequence[Array],
    approach: Callable[[], object],
) -> Array | None:
    """Return changes (order + 1, rows, directions); `approach` goes there in small steps, or says why not."""
    if kernel is None:
        return None
    arrays = [np.ascontiguousarray(array) for array in arrays]
    table = kernel.function(*arrays, looped.memory)
    if not table.item(kernel.defect_at) < 1.0:
        approach()
        table = kernel.function(*arrays, looped.memory)
    return _changes(kernel)(table) if table.item(kernel.defect_at) < 1.0 else None


def _changes(kernel: LoopPartials | LoopHessian | DriftingFunction) -> Callable[[Array], Array]:
    """Return what takes results to changes."""
    code: Any = kernel.near if isinstance(kernel, DriftingFunction) else kernel
    changes: Callable[[Array], Array] = code.changes
    return changes


def _accelerations_of_samples(
    looped: LoopedAccelerations,
    state: Array,
    efforts: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench],
) -> Array | None:
    """Return changes (N, order + 1, coordinates and drives, directions) of a batch of accelerations."""
    count, orders, e = efforts.shape
    order, places, on_base = orders - 1, looped.places(wrenches), looped.closure.base_given
    loads = [wrench.up_to(order) for wrench in wrenches]
    # directions of a wrench on a base differ from sample to sample
    kernel = None if on_base else _kernel(looped, acceleration_changes, order, places)
    if kernel is None or kernel.operations > _LONG:
        pushes = [efforts[..., 6:], efforts[..., :6]] if on_base else [efforts]
        return _one_after_the_other(
            looped,
            "accelerations",
            order,
            places,
            [state[:, :2], *_spatial(given, 1), *pushes, *loads],
            lambda i: looped.accelerations(state[i], efforts[i], sample_of(given, i), wrenches),
        )
    positions = _positions_of_samples(looped, state, given)
    looped.accelerations_of_samples(count, state, efforts, given, wrenches)
    c = looped.closure.n_coordinates
    units = np.eye(2 * c + orders * e)
    states, pushed = units[:, : 2 * c].reshape(-1, 2, c), units[:, 2 * c :].reshape(-1, orders, e)
    shared = [state[..., :2, :], *_motion(given, 1), efforts, *loads, positions]
    return np.moveaxis(_batch(kernel, shared, [states, pushed]), -3, -1)


def _one_after_the_other(
    looped: LoopedMotion,
    of: Differentiated,
    order: int,
    places: LoadPlaces,
    arrays: Sequence[Array],
    approach: Callable[[int], object],
) -> Array | None:
    """Return changes (N, order + 1, rows, directions) of a batch by the code of single calls.

    `approach` takes the robot to a sample in small steps, or says why it cannot be reached.
    """
    memory, kernel = looped.memory, _of_one(looped, of, order, places)
    if kernel is None:
        return None
    key = f"samples of {of}", order, places
    loop: Samples | None = _kept(looped, key, lambda: sample_loop(kernel, slice(0, kernel.result[0])))
    assert loop is not None
    start, left = memory.copy(), []

    def failed(i: int) -> Array:
        approach(i)
        own = [np.ascontiguousarray(array[i] if array.ndim == 3 else array) for array in arrays]
        table: Array = kernel.function(*own, memory)
        if not table.item(kernel.defect_at) < 1.0:
            left.append(i)
        return table

    tables = loop.run(len(arrays[0]), arrays, memory, failed)
    if left:
        memory[:] = start
        return None
    return _changes(kernel)(tables)


def _kernel(
    looped: LoopedMotion,
    make: Callable[..., LaneKernel | None],
    order: int,
    places: LoadPlaces,
) -> LaneKernel | None:
    closure, chosen = looped.closure, looped.independence.given
    if looped.drifts:
        return None
    return _kept(looped, (make.__name__, order, places), lambda: make(closure, chosen, order, places))


def _kept(looped: LoopedMotion, key: tuple[str, int, LoadPlaces], make: Callable[[], _Made]) -> _Made | None:
    """Return what was made before, or what is made now; None where there is no code."""
    if not is_compiled(looped.closure, key[1]):
        return None
    result: _Made = looped.partial_kernels.made(key, make)
    return result


def _positions_of_samples(looped: LoopedMotion, y: Array, given: BaseMotion | None) -> Array:
    """Return the positions (N, 1, leading) of a batch; further calls go on from where they did before."""
    start = looped.memory.copy()
    joints, _ = looped.joint_motion_of_samples(len(y), y[:, :1], given)
    looped.memory[:] = start
    return joints[..., list(looped.closure.leading)]


def _spatial(given: BaseMotion | None, orders: int) -> list[Array]:
    return [] if given is None else [given.pose, given.in_representation("spatial").twists[..., :orders, :]]


def _motion(given: BaseMotion | None, orders: int) -> list[Array]:
    return (
        [] if given is None else [given.pose, given.in_representation("body_fixed").twists[..., :orders, :]]
    )


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
            repeated = np.broadcast_to(own, (len(now), directions, *shape))
            return np.ascontiguousarray(repeated).reshape(len(now) * directions, *shape)

        arrays = [rows(array, 2) for array in shared] + [rows(array, 3) for array in changes]
        target = out[now.start : now.stop].reshape(-1, *kernel.result)
        kernel.batch(*arrays, out=target)
    return out.reshape(*batch, directions, *kernel.result)
