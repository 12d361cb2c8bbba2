"""A tree with couplings and loops, resolved: who moves whom, and which frames stay together how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.lie.se3 import Array, inverse, pose
from hodyn_ros.model.arrays import frozen_array, rounded
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.joint_function import JointFunction
from hodyn_ros.model.loops import ROWS, TOLERANCE, Constraints, Coordinate, Coupling, Loop, LoopKind
from hodyn_ros.model.tree import TreeModel

NO_LENGTH = 1e-12  # share of the distance from the world's origin below which a length is none
_CLOSED = 1e-5  # share of the robot's size, and angle [rad], by which a loop may be open at home


class PlacedLoop(NamedTuple):
    """A loop with its two frames; along z is the axis, of a universal loop that of each side."""

    name: str
    kind: LoopKind
    a: Frame
    b: Frame
    length: float  # [m] of a rod, else zero
    rows: tuple[str, ...] = ()  # of the kind "rows"


class Follower(NamedTuple):
    """A joint that follows another one along a curve: it moves by itself, and a row ties both together."""

    joint: int
    of: int
    function: JointFunction


class PlatformRows(NamedTuple):
    """A body whose pose is given, in the rows named: turns about and shifts along the axes of that pose.

    `twists` (6, rows): the only ones that it can have, in its frame, where these are the same at every pose;
    None where what the rows leave out is parasitic motion that depends on the pose.
    """

    body: int
    rows: tuple[str, ...]
    twists: Array | None = None


@dataclass(frozen=True, eq=False)
class Closure:
    """Couplings, loops, independent coordinates and drives of a tree.

    The velocities z' (m,) are those of the joints that no linear coupling moves, after the spatial twist of a
    floating base; `coupling_matrix` C (6 + n or n, m) takes them to the base's twist and all joints: `q = C s
    + offsets`. Built by `Closure.build`, which validates the names and that the loops are closed at home.
    """

    tree: TreeModel
    loops: tuple[PlacedLoop, ...]
    coupling_matrix: Array
    offsets: Array  # (n,) of coupled joints [rad or m]
    leading: tuple[int, ...]  # the joints that no linear coupling moves
    joints: tuple[int, ...]  # the coordinates that are joints
    platform: PlatformRows | None  # the body whose pose is given
    driven: tuple[int, ...]
    tolerance: float = TOLERANCE  # of rank: singular values below, relative to the largest, count as zero
    followers: tuple[Follower, ...] = ()  # joints with couplings that are not linear
    start: Array | None = None  # (n,) joint positions that are home but for couplings; None: all at zero

    @classmethod
    def build(
        cls,
        tree: TreeModel,
        constraints: Constraints,
        frames: Mapping[str, Frame] | None = None,
        start: ArrayLike | None = None,
    ) -> Closure:
        """Resolve names and place the loops; ModelError names the loop, joint or coordinate at fault.

        `start` (n,): the joint positions [rad or m] at which the loops are described and closed, instead of
        zero. Where loops are closed that have a `home` is found by
        `hodyn_ros.dynamics.loops.closing.assembled`.
        """
        if start is not None:
            start = frozen_array("start", start, (tree.n_joints,))
        ratios, offsets, leading, followers = _couple(tree, constraints.couplings)
        described = tree if start is None else replace(tree, placements=tree.poses(start))
        coordinates, driven, home = constraints.coordinates, constraints.driven, constraints.home
        placed = tuple(place_loop(described, frames or {}, loop, home is None) for loop in constraints.loops)
        if home is not None:
            start = _home(tree, home, placed)
        names = [loop.name for loop in placed]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ModelError(f"several loops are called {repeated!r}; give each a `name` of its own")
        joints, platform = _coordinates(tree, coordinates)
        drives = None if driven is None else _joint_indices(tree, "driven", driven)
        if coordinates is None and drives is None and not placed:
            follow = [follower.joint for follower in followers]
            joints = tuple(joint for joint in leading if joint not in follow)
        elif coordinates is None:
            if drives is None:
                raise ModelError(
                    f"robot {tree.name!r} has loops; name its independent `coordinates`, or its `driven` "
                    "joints where they are the same"
                )
            joints = drives
        if drives is None:
            if platform is not None:
                raise ModelError(f"robot {tree.name!r} moves a platform; name its `driven` joints")
            drives = joints
        if tree.floating_base and platform is not None and platform.body != 0:
            raise ModelError(
                f"robot {tree.name!r} has a floating base; of its poses only that of the base, "
                f"{tree.body_names[0]!r}, can be a coordinate"
            )
        first = 6 if tree.floating_base else 0
        coupling_matrix = np.zeros((first + tree.n_joints, first + len(leading)))
        coupling_matrix[:first, :first] = np.eye(first)
        coupling_matrix[first:, first:] = ratios
        for array in (coupling_matrix, offsets):
            array.setflags(write=False)
        return cls(
            tree,
            placed,
            coupling_matrix,
            offsets,
            leading,
            joints,
            platform,
            drives,
            float(constraints.tolerance),
            followers,
            start,
        )

    @classmethod
    def of_tree(cls, tree: TreeModel) -> Closure:
        """Return that of a tree: no loops, and all joints are coordinates with drives."""
        return cls.build(tree, Constraints())

    @property
    def base_prescribed(self) -> bool:
        """Whether a floating base moves as prescribed, and the wrench on it is an effort."""
        return self.tree.floating_base and (self.platform is None or self.platform.body != 0)

    @property
    def n_base(self) -> int:
        """Number of velocities of a prescribed base: 6, or none."""
        return 6 if self.base_prescribed else 0

    @property
    def leader(self) -> int | None:
        """The body whose motion is given: the platform, or a prescribed base; None without either."""
        return self.platform.body if self.platform is not None else 0 if self.base_prescribed else None

    @property
    def n_leader_arrays(self) -> int:
        """Number of arrays that say how platform or base moves: pose and twists, or none."""
        return 0 if self.leader is None else 2

    @cached_property
    def directions(self) -> Array:
        """Body-fixed twists (6, c) of platform or base, one for each coordinate that its pose is made of."""
        if self.platform is None or len(self.platform.rows) == 6:
            return np.eye(6)
        rows, twists = [ROWS.index(row) for row in self.platform.rows], self.platform.twists
        return np.eye(6)[:, rows] if twists is None else rounded(twists @ np.linalg.inv(twists[rows]))

    @property
    def drifts(self) -> bool:
        """Whether components of a platform's motion follow from others as its pose has it."""
        platform = self.platform
        return platform is not None and platform.twists is None and len(platform.rows) < 6

    @property
    def first(self) -> int:
        """Where joints begin among the velocities of the tree: 6 with a floating base."""
        return 6 if self.tree.floating_base else 0

    @property
    def n_velocities(self) -> int:
        """Number m of velocities that no linear coupling determines."""
        return self.coupling_matrix.shape[1]

    @property
    def n_coordinates(self) -> int:
        """Number of independent coordinates, a prescribed base counted in."""
        rows = 0 if self.platform is None else len(self.platform.rows)
        return len(self.joints) + rows + self.n_base

    @property
    def n_efforts(self) -> int:
        """Number of efforts that hold the robot: of the drives, and of a prescribed base."""
        return len(self.driven) + self.n_base

    @cached_property
    def effort_map(self) -> Array:
        """The matrix S (m, efforts), with z'^T S u the power of u, of a prescribed base and of the drives."""
        rows = [*range(self.n_base), *(self.first + joint for joint in self.driven)]
        return np.ascontiguousarray(self.coupling_matrix[rows].T)

    @cached_property
    def size(self) -> float:
        """A length [m] of the size of the robot, with which turns and shifts are compared."""
        return robot_size(self.tree)

    @cached_property
    def own_rounding(self) -> float:
        """By how much more the robot's own numbers are rounded than arguments."""
        return own_rounding(self.tree)

    @cached_property
    def joint_sizes(self) -> Array:
        """What positions (n,) of all joints are measured in: one radian, or the robot's size of slides."""
        turning = self.tree.screws[self.tree.first_jointed_body :, :3].any(axis=1)
        return np.where(turning, 1.0, self.size)

    @cached_property
    def scale(self) -> Array:
        """The sizes (m,) of velocities, one of turns and the robot's size of slides."""
        base = [1.0] * 3 + [self.size] * 3 if self.tree.floating_base else []
        return np.array([*base, *self.joint_sizes[list(self.leading)]])

    @cached_property
    def searched(self) -> NDArray[np.bool_]:
        """Which of the velocities' positions (m,) may be on one branch or another: not those on a curve."""
        follow = [one.joint for one in self.followers]
        joints = [joint not in follow for joint in self.leading]
        return np.array([True] * self.first + joints)

    @cached_property
    def home(self) -> Array:
        """The positions (n,) of all joints where those that follow none are at zero, or where they start."""
        leading = np.zeros(len(self.leading)) if self.start is None else self.start[list(self.leading)]
        joints = self.positions(leading)
        for _ in self.followers:  # as often as one may follow another
            for joint, of, function in self.followers:
                leading[self.leading.index(joint)] = function.taylor(joints[of], 1)[0]
            joints = self.positions(leading)
        return joints

    def positions(self, leading: Array) -> Array:
        """Return the positions (n,) of all joints from those that no linear coupling moves."""
        joints: Array = self.coupling_matrix[self.first :, self.first :] @ leading + self.offsets
        return joints

    def check_curves(self, joints: Array, derivative: int) -> None:
        """Reject positions (n,) beyond a table, and derivatives in which it jumps; InputError names it."""
        for joint, of, function in self.followers:
            name, other = (self.tree.joint_names[j] for j in (joint, of))
            if not function.holds(joints[of]):
                raise InputError(
                    f"joint {other!r} stands at {joints[of]:.6g}, beyond the table of the coupling of joint "
                    f"{name!r}, which holds from {function.breaks[0]:g} to {function.breaks[-1]:g}"
                )
            if function.smoothness is not None and derivative > function.smoothness:
                raise InputError(
                    f"the table of the coupling of joint {name!r} is smooth up to derivative "
                    f"{function.smoothness}, and {derivative} are needed; give its spline a `degree` of "
                    f"{derivative + 1 + derivative % 2}"
                )


def robot_size(tree: TreeModel) -> float:
    """Return a length [m] of the size of a robot: how far bodies and axes lie from each other, or a metre."""
    places = tree.placements[:, :3, 3]
    center = places.mean(axis=0)
    turning = tree.screws[tree.screws[:, :3].any(axis=1)]
    feet = np.cross(turning[:, :3], turning[:, 3:] + np.cross(turning[:, :3], center))  # from the center
    size = float(np.linalg.norm(np.ptp(np.concatenate([places - center, feet]), axis=0)))
    return size if size > NO_LENGTH * np.abs(places).max() else 1.0


def own_rounding(tree: TreeModel) -> float:
    """Return by how much more a robot's own numbers are rounded than arguments.

    They are seen from the world's origin; one where it stands within two of its sizes from there.
    """
    turning = tree.screws[tree.screws[:, :3].any(axis=1)]
    places = np.concatenate([tree.placements[:, :3, 3], turning[:, 3:]])
    return max(1.0, 0.5 * float(np.abs(places).max()) / robot_size(tree))


def _couple(
    tree: TreeModel, couplings: Sequence[Coupling]
) -> tuple[Array, Array, tuple[int, ...], tuple[Follower, ...]]:
    """Return `q = ratios s + offsets` with s the positions of leading joints, these, and the followers."""
    n = tree.n_joints
    by_joint: dict[int, tuple[int, Coupling]] = {}
    for coupling in couplings:
        joint, of = _joint_indices(tree, "couplings", (coupling.joint, coupling.of))
        if joint in by_joint:
            raise ModelError(f"joint {tree.joint_names[joint]!r} is coupled twice; a joint follows one other")
        by_joint[joint] = (of, coupling)
    followers = tuple(
        Follower(joint, of, coupling.function)
        for joint, (of, coupling) in by_joint.items()
        if coupling.function is not None
    )
    leading = tuple(j for j in range(n) if j not in by_joint or by_joint[j][1].function is not None)
    ratios, offsets = np.zeros((n, len(leading))), np.zeros(n)
    for joint in range(n):
        factor, shift, chain, at = 1.0, 0.0, [joint], joint
        lead = joint if joint in leading else -1
        while at in by_joint:
            at, coupling = by_joint[at]
            if lead < 0:
                shift += factor * coupling.offset
                factor *= coupling.ratio
                lead = at if at in leading else -1
            if at in chain:
                names = [tree.joint_names[j] for j in [*chain[chain.index(at) :], at]]
                raise ModelError(f"joint {names[0]!r} is coupled to itself: {' of '.join(map(repr, names))}")
            chain.append(at)
        ratios[joint, leading.index(lead)], offsets[joint] = factor, shift
    return ratios, offsets, leading, followers


def _home(tree: TreeModel, home: Mapping[str, float], loops: Sequence[PlacedLoop]) -> Array:
    if not isinstance(home, Mapping):
        raise ModelError(f"home must hold positions by joint, found {type(home).__name__}")
    if not loops:
        raise ModelError(f"robot {tree.name!r} has no loops, so it needs no home at which they close")
    start: list[Any] = [0.0] * tree.n_joints
    for joint, position in zip(_joint_indices(tree, "home", list(home)), home.values()):
        start[joint] = position
    return frozen_array("home", start, (tree.n_joints,))


def _joint_indices(tree: TreeModel, what: str, joints: Sequence[str | int]) -> tuple[int, ...]:
    if isinstance(joints, (str, int)) or not isinstance(joints, Sequence):
        raise ModelError(f"{what} must be a list of joints by name or index, found {joints!r}")
    try:
        indices = tuple(tree.joint_index(joint) for joint in joints)
    except InputError as error:
        raise ModelError(f"{what}: {error}") from None
    for i, joint in enumerate(indices):
        if joint in indices[:i] and what != "couplings":
            raise ModelError(f"{what} holds joint {tree.joint_names[joint]!r} twice")
    return indices


def _coordinates(
    tree: TreeModel, coordinates: Sequence[Coordinate] | None
) -> tuple[tuple[int, ...], PlatformRows | None]:
    if coordinates is None:
        return (), None
    if isinstance(coordinates, str) or not isinstance(coordinates, Sequence):
        raise ModelError(f"coordinates must be a list of joints or (body, rows), found {coordinates!r}")
    platforms = [x for x in coordinates if isinstance(x, tuple)]
    joints = _joint_indices(tree, "coordinates", [x for x in coordinates if not isinstance(x, tuple)])
    if len(platforms) > 1:
        raise ModelError(f"coordinates name {len(platforms)} platforms; the pose of one body may be given")
    if not platforms:
        return joints, None
    if len(platforms[0]) != 2:
        raise ModelError(f"a platform among the coordinates is (body, rows), found {platforms[0]!r}")
    body, rows = platforms[0]
    if not rows or any(row not in ROWS for row in rows) or len(set(rows)) < len(rows):
        raise ModelError(f"the rows of platform {body!r} must be some of {list(ROWS)}, found {rows!r}")
    try:
        index = tree.body_index(body)
    except InputError as error:
        raise ModelError(f"coordinates: {error}") from None
    return joints, PlatformRows(index, tuple(row for row in ROWS if row in rows))


def place_loop(tree: TreeModel, frames: Mapping[str, Frame], loop: Loop, closed: bool = True) -> PlacedLoop:
    """Fix the two frames of a loop to their bodies.

    ModelError says what is unknown, or how a loop is open that is to be `closed` as described.
    """
    size = robot_size(tree)
    a, b = (_carrier(tree, frames, loop, name) for name in (loop.a, loop.b))
    if a == b:
        raise ModelError(f"loop {loop.name!r} joins two frames of one body")
    point = np.asarray(loop.point)
    point_b = point if loop.point_b is None else np.asarray(loop.point_b)
    if loop.kind == "rows":
        axes = np.asarray(loop.axes)
        if closed:
            _check_rows_closed(loop, axes.T @ (point_b - point), size)
        axes_b = axes if closed or loop.axes_b is None else np.asarray(loop.axes_b)
        frames_of = _fix(tree, a, point, axes), _fix(tree, b, point_b, axes_b)
        return PlacedLoop(loop.name, loop.kind, *frames_of, 0.0, tuple(loop.rows))
    axis = np.array([0.0, 0.0, 1.0]) if loop.axis is None else np.asarray(loop.axis)
    axis_b = axis if loop.axis_b is None else np.asarray(loop.axis_b)
    length = 0.0
    if loop.kind == "rod":
        length = _length(loop, float(np.linalg.norm(point_b - point)), size, closed)
    elif closed:
        _check_closed(loop, point_b - point, axis, axis_b, size)
    axes_b = _triad(axis_b)
    axes = axes_b if loop.kind != "universal" and np.array_equal(axis, axis_b) else _triad(axis)
    if loop.axes is not None and not closed:
        axes = np.asarray(loop.axes)
        axes_b = axes if loop.axes_b is None else np.asarray(loop.axes_b)
    return PlacedLoop(
        loop.name, loop.kind, _fix(tree, a, point, axes), _fix(tree, b, point_b, axes_b), length
    )


def _length(loop: Loop, apart: float, size: float, closed: bool) -> float:
    """Return the length of a rod whose points are so far apart at the zero configuration."""
    if loop.length is None:
        if not closed:
            raise ModelError(
                f"loop {loop.name!r} is closed at `home`, and not where its points are given; give the "
                "length of its rod"
            )
        if apart <= _CLOSED * size:
            raise ModelError(f"loop {loop.name!r}: its rod has no length; join the points by a ball instead")
        return apart
    if closed and abs(apart - loop.length) > _CLOSED * size:
        raise ModelError(
            f"loop {loop.name!r} does not close at the zero configuration: its points are {apart:.6g} m "
            f"apart, and its rod is {loop.length:.6g} m long; give a `home` near which it closes"
        )
    return float(loop.length)


def _check_rows_closed(loop: Loop, gap: Array, size: float) -> None:
    for row, distance in zip("xyz", gap):
        if row in loop.rows and abs(distance) > _CLOSED * size:
            raise ModelError(
                f"loop {loop.name!r} does not close at the zero configuration: along {row} its points are "
                f"{abs(distance):.3g} m apart; give points that meet there"
            )


def _check_closed(loop: Loop, gap: Array, axis: Array, axis_b: Array, size: float) -> None:
    if loop.kind in ("cylinder", "slider"):
        gap = gap - (gap @ axis) * axis
    distance = 0.0 if loop.kind == "spin" else float(np.linalg.norm(gap))
    if distance > _CLOSED * size:
        raise ModelError(
            f"loop {loop.name!r} does not close at the zero configuration: its points are {distance:.3g} m "
            "apart; give points that meet there"
        )
    if loop.kind == "universal":
        angle = abs(float(np.arcsin(np.clip(axis @ axis_b, -1.0, 1.0))))
        what = "from normal to each other"
    else:
        angle = float(np.arctan2(np.linalg.norm(np.cross(axis, axis_b)), axis @ axis_b))
        what = "apart"
    if angle > _CLOSED:
        raise ModelError(
            f"loop {loop.name!r} does not close at the zero configuration: its axes are {angle:.3g} rad "
            f"{what}; give axes that fit there"
        )


def _carrier(tree: TreeModel, frames: Mapping[str, Frame], loop: Loop, name: str | int) -> int:
    if name in tree.body_names:
        return tree.body_names.index(str(name))
    if isinstance(name, str) and name in frames:
        return frames[name].body
    if name == "world":
        return -1
    try:
        return tree.body_index(name)
    except InputError:
        known = list(dict.fromkeys(["world", *tree.body_names, *frames]))
        raise ModelError(f"loop {loop.name!r}: there is no body or frame {name!r}; known: {known}") from None


def _triad(axis: Array) -> Array:
    """Return a rotation (3, 3) whose last column is a unit axis."""
    other = np.eye(3)[int(np.abs(axis).argmin())]
    x = np.cross(other, axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)


def _fix(tree: TreeModel, body: int, point: Array, axes: Array) -> Frame:
    """Fix a frame, given in the world at the zero configuration, to a body."""
    placement = np.eye(4) if body < 0 else tree.placements[body]
    local = inverse(placement) @ pose(axes, point)
    return Frame(body, local)
