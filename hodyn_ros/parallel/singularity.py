"""How far a pose is from the singular ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.parallel.limb_kinematics import limb_jacobian
from hodyn_ros.parallel.model import ParallelModel
from hodyn_ros.se3 import Array


class SingularValues(NamedTuple):
    """Smallest singular values at a pose, without units; zero at a singular pose."""

    drives: float  # of J_IK; at zero the platform moves while all drives stand still
    limbs: Array  # (limbs,) of the Jacobian of each limb; at zero it is at the limit of its workspace

    @property
    def least(self) -> float:
        """The smallest of all: the distance to the nearest kind of singularity."""
        return min(self.drives, float(self.limbs.min()))


def singular_values(model: ParallelModel, positions: Array) -> SingularValues:
    """Measure the distance to singularity at joint positions (N,).

    Translations, and the coordinates of sliding joints, are measured in the length of the platform; the
    twists that `J_IK` takes are of unit length.
    """
    scale = np.repeat([1.0, 1.0 / model.length], 3)
    basis = np.linalg.qr(scale[:, None] * model.dof)[0]
    smallest, drives = [], []
    for limb, part in zip(model.limbs, model.slices):
        turning = limb.chain.screws[:, :3].any(axis=1)
        jacobian = (
            scale[:, None] * limb_jacobian(limb, positions[part]) * np.where(turning, 1.0, model.length)
        )
        smallest.append(float(np.linalg.svd(jacobian, compute_uv=False)[-1]))
        drives.append(np.linalg.lstsq(jacobian, basis, rcond=None)[0][list(limb.driven)])
    values = np.linalg.svd(np.concatenate(drives), compute_uv=False)
    return SingularValues(float(values[model.delta - 1]), np.array(smallest))
