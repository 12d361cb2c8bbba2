"""Efforts of mechanisms with closed loops at many digits: order 0 by Newton's method, orders by differences.

At a time t the coordinates follow from their polynomials, all other positions from Newton's method on the
conditions that the loops close, velocities and accelerations from the same conditions as power series, one
coefficient after the other, and the efforts from multipliers at that one time. Nothing is known of Jacobians:
their columns are the first coefficients of the conditions when one joint moves. Derivatives in time are those
of the polynomial through the efforts at equidistant times, 1e-8 s apart at 100 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import comb
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.linalg import qr

from oracles import mp_dynamics as mp
from oracles.mechanisms import Closed, Curve, Mechanism
from oracles.motions import Base
from oracles.mp_bodies import Bodies
from oracles.mp_dynamics import Exact
from oracles.random_trees import Array, Tree

_DIGITS, _STEP = 100, -8
_TURNS = {"rx": (2, 1), "ry": (0, 2), "rz": (1, 0)}


def efforts(robot: Mechanism, q: Array, order: int, base: Base | None = None) -> Array:
    """Return the efforts (order + 1, ...): the wrench on a prescribed base, if there is one, then the drives.

    `q` (orders, joints among the coordinates); `base`: the motion of platform or base, in the world frame.
    With more drives than freedoms the efforts are those of least norm.
    """
    return mp.to_float(exact_efforts(robot, q, order, base))


def exact_efforts(
    robot: Mechanism,
    q: Exact | Array,
    order: int,
    base: Base | None = None,
    near: Exact | Array | None = None,
    finer: int = 1,
) -> Exact:
    """Return the same in many digits.

    `near`: positions of all joints that no other moves, from which Newton's method starts instead of home;
    `finer`: by which factor more digits there are, and in the step of the differences.
    """
    with mp.digits(_DIGITS * finer):
        start = _Mechanism(robot, q, base, _DIGITS * finer)
        if near is not None:
            start.s[0] = mp.exact(near)
        reach = order // 2 + 1
        step = mp.mpfr(10) ** (_STEP * finer)
        counts = [0, *(sign * i for i in range(1, reach + 1) for sign in (1, -1))]
        values = np.array([start.efforts_at(i * step) for i in counts], dtype=object)
        # the polynomial through the values, its coefficients those of a power series in t / step
        powers = mp.exact([[float(i) ** k for k in range(len(counts))] for i in counts])
        series = mp.solve(powers, values)
        scaled = np.array([row / step**k for k, row in enumerate(series)], dtype=object)
        found: Exact = mp.derivatives(scaled)[: order + 1]
        return found


def exact_accelerations(robot: Mechanism, state: Exact | Array, given: Exact | Array) -> Exact:
    """Return accelerations of the coordinates (order + 1, k) from their state (2, k) and efforts.

    Of robots without platform or base. Efforts of an order are affine in the accelerations of that order.
    """
    efforts, k = mp.exact(given), np.shape(state)[1]
    with mp.digits(_DIGITS):
        q = np.concatenate([mp.exact(state), mp.exact(np.zeros((len(efforts), k)))])
        there = _Mechanism(robot, q[:3], None)
        still, near = there.efforts_at(0), there.s[0]  # where all positions are, whatever accelerates
        units = mp.exact(np.eye(k))
        moved = [np.concatenate([q[:2], unit[None]]) for unit in units]
        rows = [exact_efforts(robot, one, 0, near=near)[0] - still for one in moved]
        for order, wanted in enumerate(efforts):
            missing = wanted - exact_efforts(robot, q[: order + 3], order, near=near)[order]
            q[order + 2] = mp.solve(np.array(rows, dtype=object).T, missing)
        return q[2:]


def bodies_beside(
    robot: Mechanism, q: Exact, base: Base | None, moved: Sequence[tuple[Exact, Base | None]], terms: int
) -> list[Bodies]:
    """Return how bodies and joints move, and how along motions that differ by a little at all times."""
    with mp.digits(_DIGITS):
        start = _Mechanism(robot, q, base)
        return [start.bodies(terms), *(start.beside(*one).bodies(terms) for one in moved)]


class _Mechanism:
    """A mechanism, followed from its home to a motion at time zero, and from there to times nearby."""

    def __init__(self, robot: Mechanism, q: Exact | Array, base: Base | None, digits: int = _DIGITS) -> None:
        self.digits = digits
        self.robot, self.tree, self.base = robot, robot.tree, base
        self.y = mp.taylor(mp.exact(q), len(q))
        self.prescribed = base is not None and robot.platform is None
        self.first = 6 if self.tree.floating_base else 0
        self.spread, self.offsets = _couple(robot)
        self.m = self.first + self.spread.shape[1]
        self.loops = [_Frames(self.tree, loop) for loop in robot.loops]
        self.s = mp.exact(np.zeros((1, self.m - self.first)))
        self.pose = mp.rigid(self.tree.placements[0])[None, :3] if self.first else None
        rows = self._jacobian(self.s, self.pose, self._leader(0, 2))[: -self._n_coordinates()]
        self.chosen = _independent(mp.to_float(rows))
        self.solver: Any = None
        self.arrived = False

    def beside(self, q: Exact, base: Base | None) -> _Mechanism:
        """Return it on a motion that differs so little that Newton's method begins where this one is."""
        other = copy(self)
        other.y, other.base = mp.taylor(q, len(q)), base
        return other

    def efforts_at(self, t: Any) -> Exact:
        """Return the efforts at a time; zero must be the first that is asked for."""
        s, pose, inverse = self._follow(t, 3)
        return self._balance(s, pose, inverse)

    def bodies(self, terms: int) -> Bodies:
        """Return the power series of all poses and joint positions at time zero."""
        s, pose, _ = self._follow(0, terms)
        joints = self._positions(s)
        return Bodies(mp.kinematics(self.tree, joints, pose).poses, joints)

    def _follow(self, t: Any, terms: int) -> tuple[Exact, Exact | None, Exact]:
        """Return the series of positions and of the base at a time, and the inverse of the Jacobian there."""
        leader, y = self._leader(t, terms), _shifted(self.y, t, terms)
        s, pose = self.s, self.pose
        if self.prescribed and leader is not None:
            pose = leader[:1]
        for _ in range(60):
            rows = self._open(s, pose, leader, y, 0)
            if not self.arrived:
                self.solver = _inverse(self._picked(self._jacobian(s, pose, leader)))
            s, pose = _moved(s, pose, -(self.solver @ rows), 0)
            if max(abs(x) for x in rows) < mp.mpfr(10) ** (-self.digits + 10):
                break
        else:
            raise ValueError("the loops of the reference do not close")
        if not self.arrived:
            self.s, self.pose, self.arrived = s, pose, True
        inverse = _inverse(self._picked(self._jacobian(s, pose, leader)))
        for k in range(1, terms):
            s = np.concatenate([s, mp.exact(np.zeros((1, s.shape[1])))])
            if pose is not None:
                twisted = leader[k : k + 1] if self.prescribed else self._next(pose)
                pose = np.concatenate([pose, twisted])
            s, pose = _moved(s, pose, -(inverse @ self._open(s, pose, leader, y, k)), k)
        return s, pose, inverse

    def _positions(self, s: Exact) -> Exact:
        """Return the series of all joints from that of those that no other leads."""
        joints: Exact = s @ self.spread.T
        joints[0] = joints[0] + self.offsets
        return joints

    def _next(self, pose: Exact) -> Exact:
        """Return the next coefficient of a pose that moves on rigidly, with no further twist."""
        terms = len(pose)
        if terms == 1:
            return mp.exact(np.zeros((1, 3, 4)))
        base = Base(np.concatenate([pose[0], mp.exact([[0, 0, 0, 1]])]), np.zeros((0, 6)), "spatial")
        twists = np.concatenate([mp.twists_of(pose, "spatial"), mp.exact(np.zeros((1, 6)))])
        return mp.base_poses(base, twists, terms + 1)[terms:]

    def _leader(self, t: Any, terms: int) -> Exact | None:
        """Return the series of the pose of platform or prescribed base at a time."""
        if self.base is None:
            return None
        twists = mp.taylor(mp.exact(self.base.twists), len(self.base.twists))
        place = mp.base_poses(self.base, np.concatenate([twists, mp.exact(np.zeros((20, 6)))]), 20)
        whole = np.concatenate([sum(place[k] * mp.mpfr(t) ** k for k in range(20)), mp.exact([[0, 0, 0, 1]])])
        return mp.base_poses(Base(whole, np.zeros((0, 6)), "spatial"), _shifted(twists, t, terms - 1), terms)

    def _n_coordinates(self) -> int:
        rows = 0 if self.robot.platform is None else len(self.robot.platform[1])
        return len(self.robot.joints) + rows + (6 if self.prescribed else 0)

    def _open(self, s: Exact, pose: Exact | None, leader: Exact | None, y: Exact, order: int) -> Exact:
        rows = self._conditions(s, pose, leader)[order]
        loops, rest = rows[: -self._n_coordinates()], rows[-self._n_coordinates() :]
        joints = slice(6 if self.prescribed else 0, (6 if self.prescribed else 0) + len(self.robot.joints))
        rest[joints] = rest[joints] - y[order]
        return np.concatenate([loops[self.chosen], rest])

    def _conditions(self, s: Exact, pose: Exact | None, leader: Exact | None) -> Exact:
        """Return the series of all conditions: loops, prescribed base (nothing), joints, platform."""
        q = self._positions(s)
        motion = mp.kinematics(self.tree, q, pose)
        parts = [loop.conditions(motion.poses, len(s)) for loop in self.loops]
        parts += [(q[:, curve.joint] - _along(curve, q[:, curve.of]))[:, None] for curve in self.robot.curves]
        if self.prescribed:
            parts.append(mp.exact(np.zeros((len(s), 6))))
        parts.append(q[:, list(self.robot.joints)])
        if self.robot.platform is not None and leader is not None:
            body, rows = self.robot.platform
            turned, apart = _relative(leader[: len(s)], motion.poses[body])
            for row in rows:
                if row in _TURNS:
                    i, j = _TURNS[row]
                    parts.append(((turned[:, i, j] - turned[:, j, i]) / 2)[:, None])
                else:
                    parts.append(apart[:, "xyz".index(row), None])
        return np.concatenate(parts, axis=1)

    def _jacobian(self, s: Exact, pose: Exact | None, leader: Exact | None) -> Exact:
        still = None
        if leader is not None:
            still = np.concatenate([leader[:1], mp.exact(np.zeros((1, 3, 4)))])
        columns = []
        for j in range(self.m):
            unit = mp.exact(np.zeros(self.m))
            unit[j] = mp.ONE
            trial = np.concatenate([s[:1], mp.exact(np.zeros((1, s.shape[1])))])
            frame = None
            if pose is not None:
                frame = np.concatenate([pose[:1], mp.exact(np.zeros((1, 3, 4)))])
            trial, frame = _moved(trial, frame, unit, 1)
            column = self._conditions(trial, frame, still)[1]
            if self.prescribed:
                column[len(column) - self._n_coordinates() :][:6] = unit[:6]
            columns.append(column)
        return np.array(columns, dtype=object).T

    def _picked(self, jacobian: Exact) -> Exact:
        count = self._n_coordinates()
        return np.concatenate([jacobian[:-count][self.chosen], jacobian[-count:]])

    def _balance(self, s: Exact, pose: Exact | None, inverse: Exact) -> Exact:
        found = mp._efforts(self.tree, mp.kinematics(self.tree, self._positions(s), pose), [])
        effort = found.torques[0] @ self.spread
        if found.base_wrench is not None:
            effort = np.concatenate([found.base_wrench[0], effort])
        base = 6 if self.prescribed else 0
        drives = mp.exact(np.zeros((self.m, base + len(self.robot.driven))))
        for i in range(base):
            drives[i, i] = mp.ONE
        for i, joint in enumerate(self.robot.driven):
            drives[self.first :, base + i] = self.spread[joint]
        free = inverse[:, len(self.chosen) :]  # the motions that the loops allow
        a = free.T @ drives
        if a.shape[0] == a.shape[1]:
            return _inverse(a) @ (free.T @ effort)
        return a.T @ (_inverse(a @ a.T) @ (free.T @ effort))


class _Frames:
    """The two frames of a loop, as conditions on the poses of the bodies."""

    def __init__(self, tree: Tree, loop: Closed) -> None:
        self.loop = loop
        z = np.array([0.0, 0.0, 1.0]) if loop.axis is None else loop.axis
        z_b = z if loop.axis_b is None else loop.axis_b
        point_b = loop.point if loop.point_b is None else loop.point_b
        axes = _triad(z)
        if loop.kind == "rows":
            axes = mp.exact(np.eye(3)) if loop.axes is None else mp.rigid(_posed(loop.axes))[:3, :3]
        self.a = _local(tree, loop.a, loop.point, axes)
        self.b = _local(tree, loop.b, point_b, axes if loop.axis_b is None else _triad(z_b))
        apart = mp.exact(point_b) - mp.exact(loop.point)
        self.square = apart @ apart

    def conditions(self, poses: list[Exact], terms: int) -> Exact:
        """Return the series (terms, rows) of what must be zero."""
        a, b = (
            _carried(poses, body, frame, terms)
            for body, frame in ((self.loop.a, self.a), (self.loop.b, self.b))
        )
        turned, apart = _relative(a, b)
        kind = self.loop.kind
        rows = []
        if kind in ("ball", "weld", "hinge", "universal"):
            rows += [apart[:, i] for i in range(3)]
        if kind in ("cylinder", "slider"):
            rows += [apart[:, i] for i in range(2)]
        if kind in ("hinge", "cylinder"):
            rows += [turned[:, 0, 2], turned[:, 1, 2]]
        if kind in ("weld", "slider"):
            rows += [turned[:, 0, 1], turned[:, 0, 2], turned[:, 1, 2]]
        if kind == "universal":
            rows += [turned[:, 2, 2]]
        turns = [row for row in self.loop.rows if row in _TURNS]
        for row in self.loop.rows:
            if row in _TURNS:
                i, j = _TURNS[row]
                if len(turns) == 2:  # the axes of the third turn stay parallel
                    free = ({"rx", "ry", "rz"} - set(turns)).pop()
                    rows += [turned[:, "xyz".index(row[1]), "xyz".index(free[1])]]
                else:
                    rows += [turned[:, i, j] - turned[:, j, i]]
            else:
                rows += [apart[:, "xyz".index(row)]]
        if kind == "rod":
            square = mp.matmul(apart, apart)
            square[0] = square[0] - self.square
            rows += [square]
        if kind == "spin":
            spin = mp.exact(np.zeros(terms))
            if terms > 1:
                rate = mp.twists_of(b, "spatial")[:, :3] - mp.twists_of(a, "spatial")[:, :3]
                along = mp.matmul(rate, b[: terms - 1, :, 2])
                spin[1:] = [along[k] / (k + 1) for k in range(terms - 1)]
            rows += [spin]
        return np.stack(rows, axis=1)


def _along(curve: Curve, x: Exact) -> Exact:
    """Return the series of a curve at the series x of a position."""
    constant = mp.exact(np.zeros(len(x)))
    if curve.polynomial is not None:
        value = constant.copy()
        for c in reversed(curve.polynomial):
            value = mp.matmul(value[:, None], x[:, None])
            value[0] = value[0] + mp.mpfr(c)
        return value
    # de Boor's algorithm on series
    if curve.table is None:
        raise ValueError("a curve has a polynomial or a table")
    spline = make_interp_spline(*curve.table, k=curve.degree, bc_type="periodic" if curve.periodic else None)
    knots, k = mp.exact(spline.t), curve.degree
    x = x.copy()
    if curve.periodic:
        period = mp.mpfr(curve.table[0][-1]) - mp.mpfr(curve.table[0][0])
        while x[0] < curve.table[0][0]:
            x[0] = x[0] + period
    i = int(np.clip(np.searchsorted(spline.t, float(x[0]), side="right") - 1, k, len(spline.c) - 1))
    values = [constant.copy() for _ in range(k + 1)]
    for j in range(k + 1):
        values[j][0] = mp.mpfr(spline.c[i - k + j])
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            low, high = knots[i - k + j], knots[i + 1 + j - r]
            share = x / (high - low)
            share[0] = share[0] - low / (high - low)
            change = values[j] - values[j - 1]
            values[j] = values[j - 1] + mp.matmul(share[:, None], change[:, None])
    return values[k]


def _posed(rotation: Array) -> Array:
    pose = np.eye(4)
    pose[:3, :3] = rotation
    return pose


def _relative(a: Exact, b: Exact) -> tuple[Exact, Exact]:
    """Return orientation and place of b in a, as series."""
    turn = a[:, :, :3].transpose(0, 2, 1)
    return mp.matmul(turn, b[:, :, :3]), mp.matmul(turn, b[:, :, 3] - a[:, :, 3])


def _carried(poses: list[Exact], body: int, frame: Exact, terms: int) -> Exact:
    fixed = mp.exact(np.zeros((terms, 3, 4)))
    fixed[0] = frame
    return fixed if body < 0 else mp.compose(poses[body], fixed)


def _local(tree: Tree, body: int, point: Array, axes: Exact) -> Exact:
    world = np.concatenate([axes, mp.exact(point)[:, None]], axis=1)
    if body < 0:
        return world
    placement = mp.rigid(tree.placements[body])
    turn = placement[:3, :3].T
    return np.concatenate([turn @ axes, (turn @ (world[:, 3] - placement[:3, 3]))[:, None]], axis=1)


def _triad(axis: Array) -> Exact:
    z = mp.exact(axis)
    z = z / mp.sqrt(z @ z)
    x = mp.cross(mp.exact(np.eye(3)[int(np.abs(axis).argmin())])[None], z[None])[0]
    x = x / mp.sqrt(x @ x)
    return np.stack([x, mp.cross(z[None], x[None])[0], z], axis=1)


def _couple(robot: Mechanism) -> tuple[Exact, Exact]:
    """Return how the joints follow from those that no other leads, `q = spread s + offsets`."""
    n = robot.tree.n_joints
    coupled = {joint: (of, ratio, offset) for joint, of, ratio, offset in robot.couplings}
    leading = [j for j in range(n) if j not in coupled]
    spread, offsets = mp.exact(np.zeros((n, len(leading)))), mp.exact(np.zeros(n))
    for i, joint in enumerate(leading):
        spread[joint, i] = mp.ONE
    while coupled:
        for joint, (of, ratio, offset) in list(coupled.items()):
            if of not in coupled:
                spread[joint] = mp.mpfr(ratio) * spread[of]
                offsets[joint] = mp.mpfr(ratio) * offsets[of] + mp.mpfr(offset)
                del coupled[joint]
    return spread, offsets


def _moved(s: Exact, pose: Exact | None, change: Exact, order: int) -> tuple[Exact, Exact | None]:
    """Add a change of positions, or of one coefficient."""
    s = s.copy()
    s[order] = s[order] + change[len(change) - s.shape[1] :]
    if pose is None:
        return s, None
    pose = pose.copy()
    whole = np.concatenate([pose[0], mp.exact([[0, 0, 0, 1]])])
    hat = mp.exact(np.zeros((4, 4)))
    hat[:3, :3], hat[:3, 3] = mp._hat(change[:3]), change[3:6]
    if order:
        pose[order] = pose[order] + (hat @ whole)[:3]
    else:
        pose[0] = mp.rigid((mp.exact(np.eye(4)) + hat) @ whole)[:3]
    return s, pose


def _shifted(series: Exact, t: Any, terms: int) -> Exact:
    """Return the first coefficients of a polynomial around another time."""
    result = mp.exact(np.zeros((terms, *series.shape[1:])))
    for k in range(terms):
        for i in range(k, len(series)):
            result[k] = result[k] + series[i] * (comb(i, k) * mp.mpfr(t) ** (i - k))
    return result


def _independent(jacobian: Array) -> list[int]:
    """Return as many rows as are independent."""
    if not jacobian.size:
        return []
    triangle, pivots = qr(jacobian.T, mode="r", pivoting=True)
    rank = int(np.sum(np.abs(np.diag(triangle)) > 1e-6))
    return sorted(pivots[:rank].tolist())


def _inverse(matrix: Exact) -> Exact:
    return mp.solve(matrix, mp.exact(np.eye(len(matrix))))
