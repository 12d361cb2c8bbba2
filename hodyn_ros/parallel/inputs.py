"""What the calls of a parallel robot are given, checked once and brought into one form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, finite_array, real_array, rigid_pose
from hodyn_ros.errors import InputError
from hodyn_ros.motion import (
    FRAMES,
    AppliedWrench,
    Frame,
    check_frame,
    twists_to_body,
    wrenches_to_body,
)
from hodyn_ros.parallel.model import ParallelModel
from hodyn_ros.se3 import Array

_OUTSIDE = 1e-9  # share of a twist that may lie outside of `platform_dof`

Loads = tuple[Array, Array]  # sums of wrenches (order + 1, 6) in the platform frame and in the world frame


def pose_and_twists(pose: ArrayLike, twists: ArrayLike, frame: Frame) -> tuple[Array, Array]:
    """Return a pose (4, 4) and twists (order + 2, 6) as arrays, for a kernel that checks what they mean."""
    if not isinstance(frame, str) or frame not in FRAMES:
        check_frame(frame)
    place = finite_array("the pose", pose, (4, 4))
    given = real_array("the twists", twists, "(order + 2, 6)")
    if given.ndim != 2 or given.shape[1] != 6 or len(given) < 2:
        raise InputError(
            "the twists must have shape (order + 2, 6), velocity and acceleration at least; found "
            f"{given.shape}"
        )
    check_finite("the twists", given)
    return place, given


def body_motion(
    model: ParallelModel, pose: ArrayLike, twists: ArrayLike | None, frame: Frame
) -> tuple[Array, Array]:
    """Return a rigid pose and body-fixed twists (orders, 6) that `platform_dof` allows."""
    check_frame(frame)
    place = rigid_pose("the pose of the platform", pose)
    if twists is None:
        return place, np.zeros((0, 6))
    given = real_array("the twists", twists, "(orders, 6)")
    if given.ndim != 2 or given.shape[1] != 6:
        raise InputError(f"the twists must have shape (orders, 6), found {given.shape}")
    check_finite("the twists", given)
    body_twists = given if frame == "body" or not len(given) else twists_to_body(place, given)
    _check_allowed(model, body_twists)
    return place, body_twists


def driven_rows(model: ParallelModel, what: str, values: ArrayLike) -> Array:
    """Return values of the drives, (driven,) or (orders, driven), as the latter."""
    n = model.n_driven
    given = real_array(what, values, f"({n},) or (orders, {n})")
    given = given[None] if given.ndim == 1 else given
    if given.ndim != 2 or given.shape[1] != n or not len(given):
        raise InputError(f"{what} must have shape ({n},) or (orders, {n}), found {np.shape(values)}")
    check_finite(what, given)
    return given


def platform_loads(
    model: ParallelModel, wrenches: Sequence[AppliedWrench] | AppliedWrench | None, order: int
) -> Loads | None:
    """Return the sums of the wrenches that the environment applies to the platform, by frame."""
    if wrenches is None:
        return None
    listed: Any = [wrenches] if isinstance(wrenches, AppliedWrench) else wrenches
    if not isinstance(listed, (list, tuple)):
        raise InputError(f"wrenches must be a list of AppliedWrench, found {type(wrenches).__name__}")
    sums = {"body": np.zeros((order + 1, 6)), "world": np.zeros((order + 1, 6))}
    name = model.platform.name
    for wrench in listed:
        if not isinstance(wrench, AppliedWrench):
            raise InputError(f"wrenches must be a list of AppliedWrench, found {type(wrench).__name__} in it")
        if wrench.body not in (name, "platform"):
            raise InputError(f"wrenches act on the platform, {name!r}; there is no body {wrench.body!r}")
        sums[wrench.frame] += wrench.up_to(order)
    return sums["body"], sums["world"]


def check_loads(pose: Array, body_twists: Array, loads: Loads | None, loose: Array) -> None:
    """Refuse wrenches that would move the platform along twists `loose` (6, m), where nothing holds it."""
    if loads is None or not loose.shape[1]:
        return
    wrenches = loads[0] + wrenches_to_body(pose, body_twists, loads[1])
    power = wrenches @ loose
    size = float(np.abs(loose).max()) * max(float(np.abs(part).max()) for part in (*loads, wrenches))
    if np.abs(power).max() > _OUTSIDE * size:
        order = int(np.abs(power).max(axis=1).argmax())
        raise InputError(
            "the wrench on the platform would turn it on the joints that carry it, where no drive holds it "
            f"(power {power[order].tolist()} at order {order}, per unit of that motion); leave that part out"
        )


def preload_rows(model: ParallelModel, preload: ArrayLike | None, order: int) -> Array | None:
    """Return a preload (order + 1, driven), filled up with zeros; refused where no drive is redundant."""
    if preload is None:
        return None
    if model.n_driven == model.delta:
        raise InputError(
            f"a preload needs more drives than degrees of freedom; {model.name!r} has {model.delta} of both"
        )
    given = driven_rows(model, "the preload", preload)
    result = np.zeros((order + 1, model.n_driven))
    result[: len(given)] = given[: order + 1]
    return result


def _check_allowed(model: ParallelModel, twists: Array) -> None:
    if model.delta == 6:
        return
    scale = np.repeat([1.0, 1.0 / model.length], 3)
    basis = np.linalg.qr(scale[:, None] * model.dof)[0]
    measured = scale * twists
    off = measured - (measured @ basis) @ basis.T
    whole = np.linalg.norm(measured)
    for r, part in enumerate(off):
        if np.linalg.norm(part) > _OUTSIDE * whole:
            what = "twist" if r == 0 else f"derivative {r} of the twist"
            raise InputError(
                f"the platform of {model.name!r} cannot move like that: its {what} has the part "
                f"{np.array2string(part / scale, precision=3)} (body axes) outside of platform_dof"
            )
