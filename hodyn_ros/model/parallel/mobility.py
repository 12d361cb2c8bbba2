"""Whether limbs, platform, degrees of freedom and drives of a parallel robot fit together."""

from __future__ import annotations

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Ad, Array, ad, exp, inverse, log
from hodyn_ros.model.parallel.limb import LimbModel
from hodyn_ros.model.parallel.model import ParallelModel

_RANK = 1e-8  # singular values below this, relative to the largest, count as zero
_PROBES = 3  # poses near the home pose at which the mobility is found; the least counts
_CLOSED = 1e-12  # [rad], and of the length of the platform
_ITERATIONS = 20
_STEP = 0.05  # [rad], and of the length of the platform, from the home pose to a probe


def check_mobility(model: ParallelModel) -> Array:
    """Reject a parallel robot that cannot move, or not only, as its `platform_dof` says.

    Returns the twists (6, m), in the platform frame, that move nothing but the platform on its joints and are
    no part of `platform_dof`; nothing drives the platform along them, and it stays at rest there. Raises
    ModelError naming the limb at fault, or the degrees of freedom found.
    """
    scale = _scale(model)
    home = np.zeros(model.n_joints)
    jacobians = _jacobians(model, home)
    dof = scale[:, None] * model.dof
    for limb, jacobian in zip(model.limbs, jacobians):
        if _rank(jacobian) < limb.n_joints:
            raise ModelError(
                f"limb {limb.name!r} is singular at the home pose: its {limb.n_joints} joints move the "
                f"platform in {_rank(jacobian)} directions only; choose another home pose, or leave out a "
                "joint"
            )
        for column in range(model.delta):
            if _rank(np.column_stack([jacobian, dof[:, column]])) > limb.n_joints:
                raise ModelError(
                    f"wrong mobility: limb {limb.name!r} does not let the platform move along column "
                    f"{column} of platform_dof"
                )
    _check_closed_under_bracket(model, dof)
    result, idle = _mobility(model, home, jacobians)
    if result > model.delta + idle.shape[1] or _rank(np.column_stack([dof, idle])) < result:
        raise ModelError(
            f"wrong mobility: the limbs let the platform move in {result} directions, platform_dof has "
            f"{model.delta}"
        )
    loose = np.zeros((6, 0))
    if _rank(np.column_stack([dof, idle])) > model.delta:
        loose = idle / scale[:, None]
        _check_idle(model, loose)
    drives = np.concatenate(
        [
            np.linalg.lstsq(jacobian, dof, rcond=None)[0][list(limb.driven)]
            for limb, jacobian in zip(model.limbs, jacobians)
        ]
    )
    if model.n_driven < model.delta:
        raise ModelError(
            f"wrong mobility: {model.n_driven} driven joints cannot hold a platform with {model.delta} "
            "degrees of freedom; name more in `driven`"
        )
    if _rank(drives) < model.delta:
        raise ModelError(
            f"wrong mobility: with all {model.n_driven} driven joints at rest the platform can still move at "
            "the home pose; drive other joints, or choose another home pose"
        )
    return loose


def _mobility(model: ParallelModel, home: Array, jacobians: list[Array]) -> tuple[int, Array]:
    """Return the degrees of freedom of the platform, and a basis (6, m) of those that move no limb."""
    common = _common_twists(jacobians)
    least, idle = common.shape[1], _idle_twists(model, jacobians, common)
    rng = np.random.default_rng(0)
    for _ in range(_PROBES):
        twist = _STEP * (model.dof @ rng.uniform(-1.0, 1.0, model.delta)) / _scale(model)
        positions = _close(model, model.platform.placement @ exp(twist))
        if positions is None:
            continue  # near the limit of the workspace; the other probes tell
        near = _jacobians(model, positions)
        common = _common_twists(near)
        if common.shape[1] < least:
            least, idle = common.shape[1], _idle_twists(model, near, common)
    return least, idle


def _close(model: ParallelModel, pose: Array) -> Array | None:
    """Return joint positions (N,) for a platform pose (4, 4); None where a limb does not reach it."""
    result = [_close_limb(limb, pose, _scale(model)) for limb in model.limbs]
    reached = [positions for positions in result if positions is not None]
    return np.concatenate(reached) if len(reached) == len(result) else None


def _close_limb(limb: LimbModel, pose: Array, scale: Array) -> Array | None:
    positions: Array = np.zeros(limb.n_joints)
    for _ in range(_ITERATIONS):
        error = scale * log(inverse(limb.pose(positions)) @ pose)
        step = np.linalg.lstsq(scale[:, None] * limb.jacobian(positions), error, rcond=None)[0]
        if np.linalg.norm(error) <= _CLOSED:
            return positions
        if np.abs(step).max() > 1.0:
            return None
        positions = positions + step
    return None


def _common_twists(jacobians: list[Array]) -> Array:
    """Return an orthonormal basis (6, m) of the twists that all limbs allow."""
    closed = []
    for jacobian in jacobians:
        basis = np.linalg.svd(jacobian, full_matrices=False)[0]
        closed.append(np.eye(6) - basis @ basis.T)
    return _null_space(np.concatenate(closed))


def _idle_twists(model: ParallelModel, jacobians: list[Array], common: Array) -> Array:
    """Return those of the common twists at which no driven joint moves and no limb moves mass."""
    moved = []
    for limb, jacobian in zip(model.limbs, jacobians):
        joints = sorted({*range(limb.n_moving), *limb.driven})
        moved.append(np.linalg.lstsq(jacobian, common, rcond=None)[0][joints])
    return common @ _null_space(np.concatenate(moved))


def _check_idle(model: ParallelModel, idle: Array) -> None:
    """Reject a platform that would turn by itself on the joints that carry it."""
    inertia = model.platform.spatial_inertia
    weight = inertia @ Ad(inverse(model.platform.placement))[:, 3:] @ model.gravity
    effects = [inertia @ model.dof, weight[:, None]]
    for a in model.dof.T:
        for b in model.dof.T:  # of the square of a velocity, which is symmetric in its factors
            effects.append((ad(a).T @ inertia @ b + ad(b).T @ inertia @ a)[:, None])
    scale = max(float(np.abs(inertia).max()), float(np.abs(weight).max()), 1e-300)
    if np.abs(idle.T @ np.concatenate(effects, axis=1)).max() > _RANK * scale:
        raise ModelError(
            "the platform can move on its joints while all limbs stand still, and the motions of "
            "platform_dof would make it do so; put its centre of mass on the axis of those joints"
        )


def _check_closed_under_bracket(model: ParallelModel, dof: Array) -> None:
    """Reject twists that no body can have at all its poses: those of a constant `P_p` form a Lie algebra."""
    scale = _scale(model)
    for i in range(model.delta):
        for j in range(i):
            bracket = scale * (ad(model.dof[:, i]) @ model.dof[:, j])
            if _rank(np.column_stack([dof, bracket])) > model.delta:
                raise ModelError(
                    f"wrong mobility: motions along columns {j} and {i} of platform_dof add up to one along "
                    "neither; platform_dof must hold all directions in which the platform moves, in its frame"
                )


def _scale(model: ParallelModel) -> Array:
    return np.repeat([1.0, 1.0 / model.length], 3)


def _jacobians(model: ParallelModel, positions: Array) -> list[Array]:
    """Return the scaled Jacobians of the limbs, their columns of unit length."""
    result = []
    for limb, part in zip(model.limbs, model.slices):
        jacobian = _scale(model)[:, None] * limb.jacobian(positions[part])
        result.append(jacobian / np.linalg.norm(jacobian, axis=0))
    return result


def _rank(matrix: Array) -> int:
    sized = np.linalg.norm(matrix, axis=0)
    counts = sized > _RANK * sized.max(initial=0.0)  # rounding must not be blown up to a column of its own
    return int(np.linalg.matrix_rank(matrix / np.where(counts, sized, 1.0), tol=_RANK))


def _null_space(matrix: Array) -> Array:
    _, values, right = np.linalg.svd(matrix)
    rank = int(np.sum(values > _RANK))
    result: Array = right[rank:].T
    return result
