"""Forces of robots whose joints move in Lie groups, at 40 digits, on power series of poses.

The same principle as `mp_dynamics`: poses as power series, inertial forces of mass points, and their power on
the screws of the joints.
"""

from typing import Any

import numpy as np

from oracles import mp_dynamics as mp
from oracles.motions import Base


def inverse_dynamics(tree: Any, poses: Any, velocities: Any) -> mp.Exact:
    """Return the forces (order + 1, m) of a `JointTree` at joint poses, under velocities (order + 2, m)."""
    terms = len(velocities) + 1
    series = mp.taylor(mp.exact(velocities), terms - 1)
    bodies: list[mp.Exact] = []
    wrenches: list[mp.Exact] = []
    for k, parent in enumerate(tree.parents):
        subspace = mp.exact(tree.subspaces[k])
        twists = series[:, tree.columns[k]] @ subspace.T
        moved = mp.base_poses(Base(poses[k], velocities, "body_fixed"), twists, terms)
        reference = np.zeros((terms, 3, 4), dtype=object) * mp.ONE
        reference[0] = mp.rigid(tree.references[k])[:3]
        pose = mp.compose(reference, moved)
        bodies.append(pose if parent < 0 else mp.compose(bodies[parent], pose))
        wrenches.append(mp.inertial_wrench(tree, k, bodies[k]))
    result = np.zeros((terms - 2, tree.n_velocities), dtype=object) * mp.ONE
    for k in reversed(range(tree.n_bodies)):
        for column, screw in zip(range(*tree.columns[k].indices(tree.n_velocities)), tree.subspaces[k].T):
            rotation, position = bodies[k][:, :, :3], bodies[k][:, :, 3]
            axis = rotation @ mp.exact(screw[:3])
            linear = rotation @ mp.exact(screw[3:]) + mp.cross(position, axis)
            result[:, column] = mp.matmul(np.concatenate([axis, linear], axis=1), wrenches[k])
        if tree.parents[k] >= 0:
            wrenches[tree.parents[k]] = wrenches[tree.parents[k]] + wrenches[k]
    return mp.derivatives(result)
