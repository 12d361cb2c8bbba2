"""Dynamics of a platform on serial limbs by their decomposition, as published, for any order and readable.

The limbs are cut from the platform; the motion of each follows from that of the platform, and what its bodies
take goes back into the task space of the platform. Body-fixed twists of the platform; `J_p` is the body-fixed
Jacobian of a limb. Every line is a printed one, differentiated with the product rule. Mueller et al.,
sections III to V and appendix. The compiled kernels give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.formulations import spatial
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives, solved
from hodyn_ros.lie.motion import inverse_adjoint_derivatives
from hodyn_ros.lie.se3 import Array, ad, matvec
from hodyn_ros.model.parallel.limb import LimbModel
from hodyn_ros.model.parallel.model import ParallelModel

_SINGULAR = 1e10  # condition number, angles and lengths on one scale, from which a matrix counts as singular
_INCONSISTENT = 1e-9  # share of a twist that a limb may fail to follow


class LimbMotion:
    """The motion of a limb that follows body-fixed twists (orders, 6) of the platform.

    `positions` (N,) bring the limb to the platform. `joints` (orders + 1, N): positions and their
    derivatives. `jacobians[r]` (6, N) for r = 0..orders.

    The rows `J_t = P_t J_p` of the Jacobian that determine the joints (eq. 5) are combinations rather than a
    selection where the limb has fewer than six joints: `P_t` holds an orthonormal basis of the twists that
    the limb allows the platform at this instant, constant in every derivative, which serves any pose alike.

    Raises SingularError at a singular pose of the limb, InputError for twists that it cannot follow, both
    with its name.
    """

    def __init__(self, limb: LimbModel, positions: Array, twists: Array, length: float) -> None:
        self.limb = limb
        self.jacobians: list[Array] = [limb.jacobian(positions)]
        scale = np.repeat([1.0, 1.0 / length], 3)
        basis, values, _ = np.linalg.svd(scale[:, None] * self.jacobians[0], full_matrices=False)
        condition = float(values[0] / values[-1]) if values[-1] > 0.0 else float("inf")
        if condition > _SINGULAR:
            raise SingularError(
                f"limb {limb.name!r} is singular at this pose (condition number {condition:.3g}): the motion "
                "of the platform does not determine its joints, as at the limit of the workspace",
                condition,
            )
        self.selection: Array = basis.T * scale  # P_t (N, 6)
        self.task_jacobian_inverse: Array = np.linalg.inv(self.selection @ self.jacobians[0])
        self._relative: list[list[Array]] = [[] for _ in range(limb.n_joints)]  # ad of Delta V_p,i
        rates: list[Array] = []
        for r, twist in enumerate(twists):
            # c^nu of eq. 16, the leading term of J_p theta' set to zero
            known = product_derivative(self.jacobians, [*rates, np.zeros(limb.n_joints)], r)
            missing = twist - known
            rates.append(self.task_jacobian_inverse @ (self.selection @ missing))  # eq. 15
            lost = scale * (missing - self.jacobians[0] @ rates[r])
            asked = np.linalg.norm(np.concatenate([scale * twist, scale * known]))
            if np.linalg.norm(lost) > _INCONSISTENT * max(float(asked), np.finfo(float).tiny):
                what = "twist" if r == 0 else f"derivative {r} of the twist"
                raise InputError(
                    f"limb {limb.name!r} cannot follow the {what} of the platform; give twists within "
                    "platform_dof"
                )
            self._extend(rates, r)
        self.joints: Array = np.stack([positions, *rates])

    def inverse_jacobians(self, dof: Array, order: int) -> list[Array]:
        """Return `F = J_t^-1 P_t P_p` (N, delta) and its derivatives to `order`; eq. 6.

        From `J_t F = D_t` with a constant `D_t`, which corrects the second derivative printed in section V-A.
        """
        task_jacobians = [self.selection @ jacobian for jacobian in self.jacobians]
        units = self.selection @ dof
        constant = [units, *[np.zeros_like(units)] * order]
        return solved(self.task_jacobian_inverse.__matmul__, task_jacobians, constant, np.matmul)

    def _extend(self, rates: list[Array], r: int) -> None:
        """Differentiate the Jacobian once more.

        `J_i' = -ad_(Delta V_i) J_i` with the twist `Delta V_i = sum_(j>i) J_j theta_j'` of the platform
        relative to body i; eqs. 23 and 26.
        """
        columns = [[jacobian[:, i] for jacobian in self.jacobians] for i in range(self.limb.n_joints)]
        speeds = [[rate[i] for rate in rates] for i in range(self.limb.n_joints)]
        relative = np.zeros(6)
        result = np.zeros((6, self.limb.n_joints))
        for i in reversed(range(self.limb.n_joints)):
            self._relative[i].append(ad(relative))
            result[:, i] = -product_derivative(self._relative[i], columns[i], r, matvec)
            relative = relative + product_derivative(columns[i], speeds[i], r, np.multiply)
        self.jacobians.append(result)


def limb_motions(model: ParallelModel, positions: Array, twists: Array) -> list[LimbMotion]:
    """Return the motion of every limb from joint positions and body-fixed twists of the platform."""
    return [
        LimbMotion(limb, positions[part], twists, model.length)
        for limb, part in zip(model.limbs, model.slices)
    ]


def inverse_kinematics_jacobians(model: ParallelModel, motions: Sequence[LimbMotion], order: int) -> Array:
    """Return `J_IK` (order + 1, driven, delta) with `theta_a' = J_IK V_t`; eq. 9 and section V-B."""
    rows = [
        np.stack(motion.inverse_jacobians(model.dof, order))[:, list(motion.limb.driven)]
        for motion in motions
        if motion.limb.driven
    ]
    return np.concatenate(rows, axis=1)


def task_space(
    model: ParallelModel, motions: Sequence[LimbMotion], pose: Array, twists: Array, applied: Array
) -> tuple[Array, Array]:
    """Return what drives balance in task space, `J_IK^T u = force` (eq. 14): J_IK (eq. 9), then the force.

    Each with derivatives up to that of `applied`, (order + 1, driven, delta) and (order + 1, delta).

    `twists` (order + 2, 6) body-fixed; `applied` (order + 1, 6) the wrench of the environment on the platform
    in its frame.
    """
    order = len(applied) - 1
    force = platform_wrench(model, pose, twists, order) - applied
    force = force @ model.dof
    for motion in motions:
        cut = motion.limb.cut
        if cut is not None:
            n = cut.n_joints
            # generalised forces of the limb cut from the platform, eq. 10
            torques, _ = spatial.inverse_dynamics(cut, motion.joints[: order + 3, :n])
            transposed = [F[:n].T for F in motion.inverse_jacobians(model.dof, order)]
            force = force + np.stack(product_derivatives(transposed, torques, order + 1))
    return inverse_kinematics_jacobians(model, motions, order), force


def platform_wrench(model: ParallelModel, pose: Array, twists: Array, order: int) -> Array:
    """Return the wrench that moves the platform and holds its weight, (order + 1, 6) in its frame.

    `M V' - ad_V^T M V - M Ad^-1 (0; g)` and its derivatives.
    """
    inertia = model.platform.spatial_inertia
    momenta = [inertia @ twist for twist in twists]
    brackets = [-ad(twist).T for twist in twists]
    weight = np.concatenate([np.zeros(3), model.gravity])
    adjoints = inverse_adjoint_derivatives(pose, list(twists), order)
    return np.stack(
        [
            momenta[r + 1]
            + product_derivative(brackets, momenta, r, matvec)
            - inertia @ (adjoints[r] @ weight)
            for r in range(order + 1)
        ]
    )


def inverse_dynamics(
    model: ParallelModel, positions: Array, pose: Array, twists: Array, applied: Array, preload: Array
) -> Array:
    """Return the driven forces (order + 1, driven) and their derivatives; eqs. 14, 19 and 20."""
    motions = limb_motions(model, positions, twists)
    return drive_forces(*task_space(model, motions, pose, twists, applied), preload)


def drive_forces(jacobians: Array, force: Array, preload: Array) -> Array:
    """Return the forces `u` (order + 1, driven) with `J_IK^T u = force` that are nearest to a preload.

    `jacobians` (order + 1, driven, delta), `force` (order + 1, delta), `preload` (order + 1, driven), all by
    derivative order. With as many drives as degrees of freedom the preload does not count; with more,

        u = p + J_IK n,   J_IK^T J_IK n = force - J_IK^T p,

    which is `p` projected on the null space of `J_IK^T` plus the solution of minimum norm; both lines are
    differentiated with the product rule. Raises SingularError where the drives do not hold the platform.
    """
    check_holding(jacobians[0])
    orders = range(len(force))
    transposed = np.swapaxes(jacobians, 1, 2)
    if jacobians.shape[1] == jacobians.shape[2]:
        return np.stack(solved(np.linalg.inv(transposed[0]).__matmul__, transposed, force))
    missing = force - np.stack(product_derivatives(transposed, preload, len(orders)))
    normal = np.stack(product_derivatives(transposed, jacobians, len(orders), np.matmul))
    multipliers = solved(np.linalg.inv(normal[0]).__matmul__, normal, missing)
    return preload + np.stack(product_derivatives(jacobians, multipliers, len(orders)))


def check_holding(jacobian: Array) -> None:
    """Reject `J_IK` (driven, delta) of a pose where the drives do not hold the platform."""
    size = np.linalg.norm(jacobian, axis=0)
    condition = float(np.linalg.cond(jacobian / np.where(size > 0.0, size, 1.0)))
    if not condition < _SINGULAR:
        raise SingularError(
            f"the pose is singular (condition number {condition:.3g}): the platform can move there while all "
            "drives stand still, so no forces of theirs hold it; keep away from this pose",
            condition,
        )
