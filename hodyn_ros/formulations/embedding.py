"""Motion and forces of any order of a tree whose joints are coupled and closed to loops, by embedding.

With z' the velocities of the tree (a floating base's twist, then the joints that no linear coupling moves), J
the rows of the loops and of joints that follow others along curves, which must not move, and H those of the
independent coordinates, which move as given,

    G z' = (0; y'),   G = (J; H)     =>   G z^(k+1) = (0; y^(k+1)) - sum_{i=1..k} C(k,i) G^(i) z^(k+1-i)

and with Q the efforts of the tree at that motion, u those of the drives and lambda the multipliers of the
rows,

    J^T lambda + S u = Q   =>   (J^T S) (lambda; u)^(k) = Q^(k) - sum_{i=1..k} C(k,i) J^(i)T lambda^(k-i)

Both are the same square system at every order. With more drives than coordinates the u nearest to a preload
u_0 is taken, `u = u_0 + S^T m`, where `J m = 0` [Lagrange's equations of the least `|u - u_0|`]. A. Mueller
and others treat platforms so, with one Jacobian a limb; here loops are of any kind and share joints as they
like.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.formulations import spatial
from hodyn_ros.formulations.closure_rows import (
    PLATFORM_ROWS,
    ClosureFrame,
    Row,
    residual,
    rows_of,
    slope,
    wrenches,
)
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives, solved
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array, matvec
from hodyn_ros.model.closure import Closure, Follower
from hodyn_ros.model.frames import Frame


class Place(NamedTuple):
    """Where the bodies are: positions (n,) of all joints, and the pose (4, 4) of a floating base."""

    joints: Array
    base: Array | None


class Forces(NamedTuple):
    """What holds the robot, by order."""

    efforts: Array  # (order + 1, efforts): of a prescribed base (6, in the world), then of the drives
    multipliers: Array  # (order + 1, rows chosen)


class LoopMotion:
    """The motion of a tree with its loops and coordinates, one order after the other.

    `pose` (4, 4): that given of the platform, where the coordinates name one. `J[r]` (loop rows, m) and
    `H[r]` (coordinates, m) by derivative order; `rates` holds z' (m,) and its derivatives. Orders are added
    with `extend`. Loop rows are those of all loops, then one for each of the closure's followers.
    """

    def __init__(self, closure: Closure, place: Place, pose: Array | None = None) -> None:
        self.closure = closure
        self.place = place
        self.rates: list[Array] = []
        tree = closure.tree
        base = None if place.base is None else BaseMotion(place.base, np.zeros((1, 6)))
        self._tree_motion = spatial.SpatialMotion(tree, place.joints[None], base)
        self._twists: list[Array] = []  # prescribed, of the platform or the base
        self._joined: list[tuple[tuple[Row, ...], ClosureFrame, ClosureFrame, float]] = []  # loops, platform
        self._masks: list[Array] = []  # per row
        self._frames: list[tuple[int, ClosureFrame]] = []
        self.loop_slices: list[slice] = []  # of the rows of each loop
        for loop in closure.loops:
            frames = self._frame(loop.a), self._frame(loop.b)
            rows = rows_of(loop)
            self.loop_slices.append(slice(len(self._masks), len(self._masks) + len(rows)))
            self._join(rows, loop.a.body, loop.b.body, *frames, loop.length)
        self._n_joined = len(self._masks)
        self.n_loop_rows = self._n_joined + len(closure.followers)
        self._target: ClosureFrame | None = None
        if closure.platform is not None and closure.platform.rows and pose is not None:
            origin = Frame.of_body(closure.platform.body)
            self._target = ClosureFrame(origin, pose)
            names = tuple(PLATFORM_ROWS[row] for row in closure.platform.rows)
            self._join(names, -1, closure.platform.body, self._target, self._frame(origin), 0.0)
        self._mask = np.array(self._masks).reshape(-1, len(closure.coupling_matrix))
        self._wrenches: list[Array] = []  # (rows, 6) by order
        self._screws: list[Array] = []
        self.J: list[Array] = []
        self.H: list[Array] = []
        self._append_rows()

    @property
    def in_metres(self) -> NDArray[np.bool_]:
        """Whether the rows of the loops and of the platform are lengths, not angles."""
        rows = (row for rows, *_ in self._joined for row in rows)
        joined = [row.what in ("point", "distance") for row in rows]
        screws = self.closure.tree.screws[self.closure.tree.first_jointed_body :]
        slides = [not screws[follower.joint, :3].any() for follower in self.closure.followers]
        return np.array([*joined[: self._n_joined], *slides, *joined[self._n_joined :]], dtype=bool)

    @property
    def named_rows(self) -> list[tuple[str, slice]]:
        """The rows of every loop, and of every follower, with its name in words."""
        names = self.closure.tree.joint_names
        loops = [(f"loop {loop.name!r}", p) for loop, p in zip(self.closure.loops, self.loop_slices)]
        followers = [f"the coupling of joint {names[one.joint]!r}" for one in self.closure.followers]
        return loops + [(name, slice(i, i + 1)) for i, name in enumerate(followers, self._n_joined)]

    @property
    def row_sizes(self) -> Array:
        """What the rows of the loops and of the platform are measured in: the robot's size, or one radian.

        Rows of followers are measured in their own length, as curves may be steep.
        """
        sizes = np.where(self.in_metres, self.closure.size, 1.0)
        followers = slice(self._n_joined, self.n_loop_rows)
        sizes[followers] = np.linalg.norm(self.J[0][followers] * self.closure.scale, axis=1)
        return sizes

    @property
    def residuals(self) -> Array:
        """How far every loop row is open (rows,) [m or rad]."""
        joints = self.place.joints
        apart = [joints[j] - function.taylor(joints[i], 1)[0] for j, i, function in self.closure.followers]
        return np.concatenate([self._open(self._joined[: len(self.loop_slices)]), apart])

    @property
    def platform_residuals(self) -> Array:
        """How far the platform is from its pose (platform rows,) [m or rad]."""
        return self._open(self._joined[len(self.loop_slices) :])

    def extend(self, rate: Array, twist: Array | None = None) -> None:
        """Go one order higher with the next derivative (m,) of z'.

        `twist` (6,): the next that is prescribed of platform or base; by default the one that it has.
        """
        order = len(self.rates)
        self.rates.append(rate)
        velocity = self.closure.coupling_matrix @ rate
        first = self.closure.first
        self._tree_motion.extend(velocity[first:], velocity[:first] if first else None)
        if self.closure.leader is not None:
            self._twists.append(self.twists_of(self.closure.leader)[order] if twist is None else twist)
        if self._target is not None:
            self._target.extend(self._twists[order])
        for body, frame in self._frames:
            frame.extend(self._tree_motion.twists[body][order] if body >= 0 else np.zeros(6))
        self._append_rows()

    def known_rates(self, joints: Array, twist: Array | None) -> Array:
        """Return the next derivative of `H z'` (coordinates,).

        `joints`: that of the independent joints' velocities; `twist` (6,): that of platform or base.
        """
        closure, order = self.closure, len(self.rates)
        rates = joints
        if twist is not None:
            twists = [*self._twists, twist]
            platform = [wrenches[self._n_joined :] for wrenches in self._wrenches]
            rows = product_derivative(platform, twists, order)
            rates = np.concatenate([twist if closure.base_prescribed else np.zeros(0), joints, rows])
        return rates

    def _frame(self, frame: Frame) -> ClosureFrame:
        pose = self._tree_motion.poses[frame.body] if frame.body >= 0 else np.eye(4)
        moving = ClosureFrame(frame, pose)
        self._frames.append((frame.body, moving))
        return moving

    def _join(
        self, rows: tuple[Row, ...], body_a: int, body_b: int, a: ClosureFrame, b: ClosureFrame, length: float
    ) -> None:
        mask = _support(self.closure, body_b) - _support(self.closure, body_a)
        self._joined.append((rows, a, b, length))
        self._masks += [mask] * len(rows)

    def _open(self, joined: Sequence[tuple[tuple[Row, ...], ClosureFrame, ClosureFrame, float]]) -> Array:
        return np.array([residual(row, a, b, length) for rows, a, b, length in joined for row in rows])

    def _append_rows(self) -> None:
        closure, r = self.closure, len(self._screws)
        tree, first = closure.tree, closure.first
        screws = np.zeros((6, first + tree.n_joints))
        if first and r == 0:
            screws[:, :6] = np.eye(6)
        for body in range(tree.first_jointed_body, tree.n_bodies):
            screws[:, first + tree.joint_of(body)] = self._tree_motion.screws[body][r]
        self._screws.append(screws)
        parts = [wrenches(rows, a, b, r, length) for rows, a, b, length in self._joined]
        self._wrenches.append(np.concatenate([np.zeros((0, 6)), *parts]))
        matrix = product_derivative(self._wrenches, self._screws, r, np.matmul)
        matrix = (matrix * self._mask) @ closure.coupling_matrix
        followers = [self._follower_row(follower, r) for follower in closure.followers]
        kept = [*range(closure.n_base), *(first + joint for joint in closure.joints)]
        units = closure.coupling_matrix[kept] if r == 0 else np.zeros((len(kept), closure.n_velocities))
        self.J.append(np.concatenate([matrix[: self._n_joined], *followers]))
        self.H.append(np.concatenate([units, matrix[self._n_joined :]]))

    def _follower_row(self, follower: Follower, order: int) -> Array:
        coupling, first = self.closure.coupling_matrix, self.closure.first
        along = coupling[first + follower.of]
        motion = np.array([self.place.joints[follower.of], *(along @ rate for rate in self.rates)])
        row = -slope(follower.function, motion[: order + 1]) * along
        return (row if order else coupling[first + follower.joint] + row)[None]

    def twists_of(self, body: int) -> list[Array]:
        """Return the spatial twists (6,) of a body by order."""
        return self._tree_motion.twists[body]

    def body_pose(self, body: int) -> Array:
        """Return the pose (4, 4) of a body in the world."""
        return self._tree_motion.poses[body]

    def body_jacobian(self, body: int, order: int = 0) -> Array:
        """Return the matrix (6, m) from z' to the spatial twist of a body, or a derivative of it."""
        jacobian: Array = (self._screws[order] * _support(self.closure, body)) @ self.closure.coupling_matrix
        return jacobian

    def idle_loops(self, chosen: Array) -> list[str]:
        """Return the loops whose bodies move where the square system of the motion is singular."""
        system = _system(chosen, self, 0)
        idle = np.linalg.svd(system)[2][-1]
        moved = np.abs(self.closure.coupling_matrix @ idle) > 1e-6
        masks = [np.abs(self._masks[part.start]) for part in self.loop_slices]
        names = [loop.name for loop, mask in zip(self.closure.loops, masks) if (moved & (mask > 0.0)).any()]
        return names or [self.closure.tree.joint_names[one.joint] for one in self.closure.followers]

    def loop_wrenches(self, order: int) -> Array:
        """Return the derivative of one order of the wrenches (rows of the loops, 6)."""
        return self._wrenches[order][: self._n_joined]

    @property
    def base_motion(self) -> BaseMotion | None:
        """The motion of a floating base up to the order reached."""
        if self.place.base is None:
            return None
        twists = [rate[:6] for rate in self.rates] or [np.zeros(6)]  # at rest, where only the pose is known
        return BaseMotion(self.place.base, np.array(twists))

    @property
    def leader_motion(self) -> BaseMotion | None:
        """The motion of platform or base, of those that have one, up to the order reached."""
        leader = self.closure.leader
        if leader is None:
            return None
        return BaseMotion(self.body_pose(leader), np.array(self.twists_of(leader) or [np.zeros(6)]))

    def joint_motion(self) -> Array:
        """Return positions and derivatives (orders + 1, n) of all joints up to the order reached."""
        coupling, first = self.closure.coupling_matrix, self.closure.first
        return np.array([self.place.joints, *(coupling[first:] @ rate for rate in self.rates)])


def follow(chosen: Array, moved: LoopMotion, y: Array, leader: BaseMotion | None) -> None:
    """Extend a motion of order 0, at which all loops are closed, by as many orders as the coordinates have.

    `chosen`: the independent loop rows; `y` (orders + 1, joints among the coordinates); `leader`: the motion
    of the platform, or of a prescribed base, with spatial twists.
    """
    for k in range(len(y) - 1):
        twist = None if leader is None else leader.twists[k]
        moved.extend(next_rate(chosen, moved, y[k + 1], twist), twist)


def next_rate(chosen: Array, moved: LoopMotion, joints: Array, twist: Array | None) -> Array:
    """Return the next derivative (m,) of z' from those of the coordinates, as in `known_rates`."""
    return rate_of(chosen, moved, moved.known_rates(joints, twist))


def rate_of(chosen: Array, moved: LoopMotion, known: Array) -> Array:
    """Return the next derivative (m,) of z' from that of `H z'` (coordinates,)."""
    systems = [_system(chosen, moved, k) for k in range(len(moved.rates) + 1)]
    lower = product_derivative(systems, [*moved.rates, np.zeros(len(systems[0]))], len(moved.rates))
    right = np.concatenate([np.zeros(len(chosen)), known]) - lower
    return np.asarray(np.linalg.solve(systems[0], right), dtype=np.float64)


def _system(chosen: Array, moved: LoopMotion, order: int) -> Array:
    return np.concatenate([moved.J[order][chosen], moved.H[order]])


def tree_efforts(
    closure: Closure, moved: LoopMotion, order: int, wrenches: Sequence[AppliedWrench] = ()
) -> Array:
    """Return the efforts Q (order + 1, m) of the tree: `order + 2` velocities must be known."""
    torques, ground = spatial.inverse_dynamics(
        closure.tree, moved.joint_motion()[: order + 3], moved.base_motion, wrenches
    )
    whole = np.concatenate([ground, torques], axis=1) if closure.first else torques
    return whole @ closure.coupling_matrix


def inverse_dynamics(
    chosen: Array,
    moved: LoopMotion,
    y: Array,
    leader: BaseMotion | None,
    wrenches: Sequence[AppliedWrench] = (),
    preload: Array | None = None,
) -> Forces:
    """Return efforts and multipliers from a motion y (order + 3, joints among the coordinates).

    `moved`: its order 0, at which all loops are closed, which is extended. Other arguments as of `follow` and
    `forces`.
    """
    follow(chosen, moved, y, leader)
    efforts = tree_efforts(moved.closure, moved, len(y) - 3, wrenches)
    return forces(moved.closure, chosen, moved, efforts, preload)


def loop_loads(chosen: Array, moved: LoopMotion, multipliers: Array) -> dict[str, Array]:
    """Return by loop the wrench (order + 1, 6) that its body a exerts on b, in the world frame."""
    orders = range(len(multipliers))
    whole = np.zeros((len(orders), moved.n_loop_rows))
    whole[:, chosen] = multipliers
    bases = [moved.loop_wrenches(k) for k in orders]
    loads = {}
    for loop, part in zip(moved.closure.loops, moved.loop_slices):
        columns, values = [w[part].T for w in bases], whole[:, part]
        loads[loop.name] = np.array(product_derivatives(columns, values, len(orders), matvec))
    return loads


def forces(
    closure: Closure, chosen: Array, moved: LoopMotion, efforts: Array, preload: Array | None = None
) -> Forces:
    """Return efforts and multipliers with their derivatives from the efforts Q (order + 1, m) of the tree.

    `preload` (order + 1, drives): what redundant drives should come near.
    """
    rows, S = len(chosen), closure.effort_map
    redundant = S.shape[1] > S.shape[0] - rows
    start = np.zeros((len(efforts), S.shape[1])) if preload is None else preload
    # S is constant
    balance = [(J[chosen], S if k == 0 else np.zeros_like(S)) for k, J in enumerate(moved.J[: len(efforts)])]
    systems, right = [np.concatenate([J.T, own], axis=1) for J, own in balance], efforts
    if redundant:
        systems = [_least(*parts) for parts in balance]
        right = np.concatenate([efforts - start @ S.T, np.zeros((len(efforts), rows))], axis=1)
    solution = np.array(solved(partial(np.linalg.solve, systems[0]), systems, right))
    u = solution[:, rows:]
    if redundant:
        u = start + u @ S
    return Forces(u, solution[:, :rows])


def _least(jacobian: Array, S: Array) -> Array:
    """Return the matrix of `J^T lambda + S S^T m = Q`, `J m = 0`."""
    rows = len(jacobian)
    upper = np.concatenate([jacobian.T, S @ S.T], axis=1)
    return np.concatenate([upper, np.concatenate([np.zeros((rows, rows)), jacobian], axis=1)])


def distribution(chosen: Array, moved: LoopMotion, order: int) -> list[Array]:
    """Return F and its derivatives (m, coordinates) up to an order, `z' = F y'`."""
    matrices = [_system(chosen, moved, k) for k in range(order + 1)]
    units = np.eye(len(matrices[0]))[:, len(chosen) :]
    right = [units, *[np.zeros_like(units)] * order]
    return solved(np.linalg.inv(matrices[0]).__matmul__, matrices, right, np.matmul)


def _support(closure: Closure, body: int) -> Array:
    """Return one (6 + n or n,) where a velocity of the tree moves a body, else zero."""
    tree, first = closure.tree, closure.first
    mask = np.zeros(first + tree.n_joints)
    if body >= 0:
        mask[:first] = 1.0
    while body >= tree.first_jointed_body:
        mask[first + tree.joint_of(body)] = 1.0
        body = tree.parents[body]
    return mask
