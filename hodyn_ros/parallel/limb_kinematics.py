"""Joint motion of one limb from the motion of the platform, order by order, in the platform frame.

Mueller et al., section IV and appendix, for any order: every line below is a printed one, differentiated with
the product rule. Body-fixed twists of the platform; `J_p` is the body-fixed Jacobian of the limb.
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.leibniz import product_derivative
from hodyn_ros.parallel.limb import LimbModel
from hodyn_ros.se3 import Ad, Array, ad, exp_screw, inverse, matvec

SINGULAR = 1e10  # condition number, angles and lengths on one scale, from which a matrix counts as singular
_INCONSISTENT = 1e-9  # share of a twist that a limb may fail to follow


def limb_jacobian(limb: LimbModel, positions: Array) -> Array:
    """Return `J_p` (6, N) of a limb at joint positions (N,); eqs. 21 and 22."""
    motion, screws = np.eye(4), []
    for screw, position in zip(limb.chain.screws, positions):
        screws.append(Ad(motion) @ screw)
        motion = motion @ exp_screw(screw, position)
    pose = motion @ limb.chain.placements[-1]
    jacobian: Array = Ad(inverse(pose)) @ np.stack(screws, axis=1)
    return jacobian


def limb_pose(limb: LimbModel, positions: Array) -> Array:
    """Return the pose (4, 4) that joint positions (N,) of a limb give the platform; eq. 21."""
    motion = np.eye(4)
    for screw, position in zip(limb.chain.screws, positions):
        motion = motion @ exp_screw(screw, position)
    pose: Array = motion @ limb.chain.placements[-1]
    return pose


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
        self.jacobians: list[Array] = [limb_jacobian(limb, positions)]
        scale = np.repeat([1.0, 1.0 / length], 3)
        basis, values, _ = np.linalg.svd(scale[:, None] * self.jacobians[0], full_matrices=False)
        condition = float(values[0] / values[-1]) if values[-1] > 0.0 else float("inf")
        if condition > SINGULAR:
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

        From `J_t F = D_t` with a constant `D_t`: `J_t F^(r) = -sum_(k>0) C(r,k) J_t^(k) F^(r-k)`, which
        corrects the second derivative printed in section V-A.
        """
        result: list[Array] = []
        task_jacobians = [self.selection @ jacobian for jacobian in self.jacobians]
        unknown = np.zeros((self.limb.n_joints, dof.shape[1]))
        for r in range(order + 1):
            known = product_derivative(task_jacobians, [*result, unknown], r, np.matmul)
            leading = self.selection @ dof if r == 0 else unknown
            result.append(self.task_jacobian_inverse @ (leading - known))
        return result

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
