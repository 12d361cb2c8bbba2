"""Dynamics of parallel robots of any order at many digits: Lagrange multipliers on the cut joints.

Every limb is a tree of its own and the platform a free body; welds between them are the constraints, with a
multiplier (a wrench in the world frame) each. Motion and multipliers are power series of time. The joint
motion follows from the condition that the limb's end and the platform are the same pose, coefficient by
coefficient; driven forces and multipliers from one linear system,

    Q_l = B_l u + J_l^T w_l (each limb),   W_p + sum w_l = 0 (platform),

or, with more drives than needed, from the conditions for the u nearest to a preload that fulfils it. No limb
is inverted for itself and no task space is used.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oracles import mp_dynamics as mp
from oracles.motions import Base, Frame, Load
from oracles.mp_dynamics import Exact
from oracles.parallel_robots import Parallel
from oracles.random_trees import Tree


def joint_motion(robot: Parallel, pose: ArrayLike, twists: ArrayLike, frame: Frame) -> list[Exact]:
    """Return the derivatives (orders + 1, joints) of the joints of every limb, near the home pose."""
    poses = _platform_poses(pose, twists, frame)
    return [mp.derivatives(joint_series(tree, poses)) for tree in robot.limbs]


def inverse_dynamics(
    robot: Parallel,
    pose: ArrayLike,
    twists: ArrayLike,
    frame: Frame,
    load: Load | None = None,
    preload: ArrayLike | None = None,
    near: list[NDArray[np.float64]] | None = None,
) -> Exact:
    """Return the driven forces (order + 1, driven) and their derivatives from order + 2 twists.

    `near`: joint positions of the limbs, by default those at home, from which theirs are found.
    """
    poses = _platform_poses(pose, twists, frame)
    orders = len(poses) - 2
    loads = [] if load is None else [load]
    motion = Base(np.asarray(pose), np.asarray(twists), frame)
    wrench = mp.inverse_dynamics(
        robot.body(), np.zeros((orders + 2, 0)), base=motion, loads=loads
    ).base_wrench
    matrix, right = _equations(robot, poses, mp.taylor(wrench, orders), near)
    if preload is None:
        return mp.derivatives(_solve(matrix, right)[:, : robot.n_driven])
    return mp.derivatives(_nearest(matrix, right, mp.taylor(mp.exact(preload), orders), robot.n_driven))


def _platform_poses(pose: ArrayLike, twists: ArrayLike, frame: Frame) -> Exact:
    given = mp.exact(twists)
    base = Base(np.asarray(pose), np.asarray(twists), frame)
    return mp.base_poses(base, mp.taylor(given, len(given)), len(given) + 1)


def joint_series(tree: Tree, poses: Exact, near: ArrayLike | None = None) -> Exact:
    """Find joint series whose end pose is that of the platform, one coefficient after the other.

    From positions `near`, by default zero.
    """
    terms, n = len(poses), tree.n_joints
    q = mp.exact(np.zeros((terms, n)))
    if near is not None:
        q[0] = mp.exact(near)
    for _ in range(9):
        correction, jacobian = _towards(tree, q[:1], poses[:1])
        q[0] += _least_squares(jacobian, correction)
    for k in range(1, terms):
        correction, jacobian = _towards(tree, q[: k + 1], poses[: k + 1])
        q[k] += _least_squares(jacobian, correction)
    return q


def _towards(tree: Tree, q: Exact, poses: Exact) -> tuple[Exact, Exact]:
    """Return the twist that takes the last coefficient of the end pose to that of the platform, and J."""
    motion = mp.kinematics(tree, q)
    end = motion.poses[-1]
    apart = poses[-1] - end[-1]
    rotation, position = end[0][:, :3], end[0][:, 3]
    angular = mp.axis_of(apart[:, :3] @ rotation.T)
    lever = mp.cross(angular[None], position[None])[0]
    twist = np.concatenate([angular, apart[:, 3] - lever])
    return twist, np.array([screw[0] for screw in motion.screws], dtype=object).T


def _equations(
    robot: Parallel, poses: Exact, wrench: Exact, near: list[NDArray[np.float64]] | None = None
) -> tuple[Exact, Exact]:
    """Return A and b of `A (u; w_1; w_2; ...) = b` as series."""
    free, terms = list(robot.free), len(poses) - 2
    rows = sum(tree.n_joints for tree in robot.limbs) + len(robot.balanced)
    width = robot.n_driven + len(free) * len(robot.limbs)
    matrix, right = mp.exact(np.zeros((terms, rows, width))), mp.exact(np.zeros((terms, rows)))
    row, drive, column = 0, 0, robot.n_driven
    for limb, (tree, driven) in enumerate(zip(robot.limbs, robot.driven)):
        q = joint_series(tree, poses, None if near is None else near[limb])
        here = slice(row, row + tree.n_joints)
        torques = mp.inverse_dynamics(tree, mp.derivatives(q)).torques
        right[:, here] = mp.taylor(torques, terms)
        for joint in driven:
            matrix[0, row + joint, drive] = mp.ONE
            drive += 1
        screws = np.array(mp.kinematics(tree, q).screws, dtype=object)  # (joints, terms, 6)
        matrix[:, here, column : column + len(free)] = screws[:, :terms, free].transpose(1, 0, 2)
        for i, component in enumerate(robot.balanced):
            matrix[0, len(matrix[0]) - len(robot.balanced) + i, column + free.index(component)] = mp.ONE
        row, column = here.stop, column + len(free)
    right[:, row:] = -wrench[:, list(robot.balanced)]
    return matrix, right


def _nearest(matrix: Exact, right: Exact, preload: Exact, count: int) -> Exact:
    """Return the series of the first `count` unknowns, nearest to the preload among all solutions."""
    terms, rows, width = matrix.shape
    whole = mp.exact(np.zeros((terms, rows + width, rows + width)))
    values = mp.exact(np.zeros((terms, rows + width)))
    for i in range(count):
        whole[0, i, i] = mp.ONE
    values[:, :count] = preload
    whole[:, :width, width:] = matrix.transpose(0, 2, 1)
    whole[:, width:, :width] = matrix
    values[:, width:] = right
    return _solve(whole, values)[:, :count]


def _solve(matrix: Exact, right: Exact) -> Exact:
    """Solve `A(t) x(t) = b(t)` coefficient by coefficient."""
    inverse = mp.solve(matrix[0], mp.exact(np.eye(len(matrix[0]))))
    found: list[Exact] = []
    for k in range(len(right)):
        known = sum((matrix[i] @ found[k - i] for i in range(1, k + 1)), mp.exact(np.zeros(len(inverse))))
        found.append(inverse @ (right[k] - known))
    return np.array(found, dtype=object)


def _least_squares(matrix: Exact, right: Exact) -> Exact:
    """Solve a consistent system with full column rank by its normal equations."""
    return mp.solve(matrix.T @ matrix, matrix.T @ right)
