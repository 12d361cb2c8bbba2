"""The links of a robot of any kind, as what its drives move: in coordinates that can be integrated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.results import DriveState
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ConvergenceError, InputError
from hodyn_ros.lie.exponential import body_twists, coordinate_rates, differential
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Ad, exp, inverse, log
from hodyn_ros.model.loops import ROWS

BaseAt = Callable[[float], BaseMotion]  # the motion of a prescribed base at a time [s]

_ITERATIONS = 30
STRIDE = 0.2  # [rad or m] of driven joints, lest another branch is found
_FARTHEST = 20.0  # [rad or m] of driven joints: so far it takes tens of milliseconds, and 1e5 rad minutes
_PRECISION = 1e-12  # of the last step, in the units of the coordinates


@dataclass(frozen=True, eq=False)
class LinkState:
    """Where the driven joints are, and how the coordinates accelerate from there."""

    motion: Array  # (2, driven) positions and velocities [rad or m, /s]
    acceleration: Callable[[Array], Array]  # of the coordinates (k,), from efforts (driven,) on the links


class Links:
    """The links of a robot on the ground, with couplings and loops or without, in coordinates x (k,).

    These are the joints that are coordinates, all of them of a tree, and then, of a platform or of a floating
    base that is one, exponential coordinates [rad, m] of its pose from the home pose, `C = C_home exp(P x)`
    with the columns of the rows that are coordinates in P: up to a full turn. `base` says how a base moves
    that is prescribed. `armature` (driven,) [kg m^2 or kg] is the inertia of motors that move with their
    driven joints. With `u_i` and `a_i` the efforts of the drives and accelerations of the driven joints at
    `x'' = e_i`, `u_0` and `a_0` at `x'' = 0`,

        J = [a_i - a_0],   M = J^T ([u_i - u_0] + B J),   M x'' = J^T (u - u_0 - B a_0)

    where there is armature, or a base or platform moves; else by forward dynamics. The robot is a copy,
    which remembers by itself where it has been, and so stays on its branch.
    """

    def __init__(self, robot: Robot, base: BaseAt | None = None, armature: Array | None = None) -> None:
        platform = robot.structure.platform
        if robot.moves_base and platform is None and base is None:
            raise InputError(
                f"robot {robot.name!r} has a floating base, which its drives do not hold; give the motion of "
                "the base"
            )
        self.robot = robot.apart()
        self.base = base
        self.n_driven = len(robot.driven_joints)
        self.joints_only = platform is None
        rows = () if platform is None else tuple(ROWS.index(row) for row in platform.rows)
        self._platform_rows = np.eye(6)[:, list(rows)]
        self._home_pose = robot.home[1]
        self._armature = np.zeros(self.n_driven) if armature is None else armature
        self._forward = not robot.moves_base and not self._armature.any()
        self.size = robot.n_coordinates + len(rows)  # k
        self._first = 0 if base is None or platform is not None else 6  # column of the drives, after a base's

    @property
    def home(self) -> Array:
        """The coordinates (k,) at the zero configuration."""
        return np.concatenate([self.robot.home[0], np.zeros(self._platform_rows.shape[1])])

    def robot_arguments(self, motion: Array, time: float = 0.0) -> tuple[Array, BaseMotion | None]:
        """Return what calls of the robot take: joints, and the motion of base or platform.

        `motion`: x and its derivatives (orders + 1, k).
        """
        if self.joints_only:
            return motion, None if self.base is None else self.base(time)
        n = self.robot.n_coordinates
        jets = motion[:, n:] @ self._platform_rows.T
        assert self._home_pose is not None
        pose = self._home_pose @ exp(jets[0])
        return np.ascontiguousarray(motion[:, :n]), BaseMotion(
            pose, body_twists(jets), representation="body_fixed"
        )

    def coordinates(self, joints: Array, platform: BaseMotion | None = None) -> Array:
        """Return x and its derivatives (orders + 1, k) from those of joints and platform.

        For platforms within half a turn of the home pose, where x is unique.
        """
        if self.joints_only or platform is None:
            return joints
        assert self._home_pose is not None
        rows = self._platform_rows
        jets = log(inverse(self._home_pose) @ platform.pose)
        rates = coordinate_rates(jets, platform.in_representation("body_fixed").twists[: len(joints) - 1])
        return np.concatenate([joints, np.concatenate([jets[None], rates]) @ rows], axis=1)

    def drives(self, motion: Array, time: float = 0.0, preload: Array | None = None) -> DriveState:
        """Return motion and efforts of the driven joints for x and its derivatives (order + 3, k).

        `preload` (order + 1, driven): what the efforts of redundant drives come near.
        """
        return self.robot.drive_state(*self.robot_arguments(motion, time), preload=preload)

    def accelerations(self, state: Array, efforts: Array) -> Array:
        """Return x'' and its derivatives (order + 1, k), from x and x' (2, k).

        Under efforts (order + 1, driven); for robots without a prescribed base.
        """
        q, platform = self.robot_arguments(state)
        if platform is None:
            result: Array = self.robot.forward_dynamics(q, efforts)
            return result
        twists, joints = self.robot.forward_dynamics(q, efforts, platform)
        n = self.robot.n_coordinates
        jets = self._platform_rows @ state[0, n:]
        rates = coordinate_rates(jets, np.concatenate([platform.twists, twists])) @ self._platform_rows
        return np.concatenate([joints, rates[1:]], axis=1)

    def at(self, state: Array, time: float = 0.0) -> LinkState:
        """Return where the driven joints are, from x and x' (2, k). Raises InputError at singular poses."""
        robot = self.robot

        def forward_dynamics(torques: Array) -> Array:
            result: Array = robot.forward_dynamics(state, torques[None])
            return result[0]

        if self._forward and robot.closure is None:
            return LinkState(state, forward_dynamics)
        efforts, motion, inertia = self._equations(state, time)
        if self._forward:
            return LinkState(motion[:2], forward_dynamics)

        def acceleration(torques: Array) -> Array:
            mass, jacobian = inertia()
            free = torques - efforts - self._armature * motion[2]
            try:
                return np.asarray(np.linalg.solve(mass, jacobian.T @ free))
            except np.linalg.LinAlgError:
                raise InputError(f"robot {robot.name!r} has coordinates that move no mass") from None

        return LinkState(motion[:2], acceleration)

    def inertia(self, x: Array, time: float = 0.0) -> tuple[Array, Array]:
        """Return the mass matrix (k, k), and the matrix J (driven, k) from x' to the driven joints."""
        return self._equations(np.array([x, 0.0 * x]), time)[2]()

    def _equations(self, state: Array, time: float) -> tuple[Array, Array, Callable[[], tuple[Array, Array]]]:
        """Return efforts and motion of the drives at `x'' = 0`, and what finds mass matrix and J."""
        motion, first = np.zeros((3, self.size)), self._first
        motion[:2] = state
        arguments = self._arguments(motion, time)
        still = self._compiled(*arguments)

        def inertia() -> tuple[Array, Array]:
            tables = [self._compiled(*moved) for moved in self._accelerated(arguments, state[0])]
            change = np.array([table - still for table in tables])[:, :, first:]
            jacobian = change[:, -1].T
            return jacobian.T @ (change[:, 0].T + self._armature[:, None] * jacobian), jacobian

        return still[0, first:], still[1:, first:], inertia

    def _arguments(self, motion: Array, time: float) -> list[Array]:
        """Return what compiled code takes for x, x' and x'' (3, k)."""
        q, base = self.robot_arguments(motion, time)
        joints = [q] if q.shape[1] or base is None else []
        if base is None:
            return joints
        spatial = base.in_representation("spatial")
        return [*joints, spatial.pose, np.ascontiguousarray(spatial.twists[:2])]

    @cached_property
    def _compiled(self) -> Callable[..., Array]:
        """What takes `_arguments`, and returns efforts and motion of the drives (4, base and drives)."""
        if self.robot.closure is not None:
            return self.robot.compile(0, "drive_state")
        inverse_dynamics, first = self.robot.compile(0), self._first

        def of_a_tree(q: Array, *base: Array) -> Array:
            table = np.zeros((4, first + self.n_driven))
            table[0], table[1:, first:] = inverse_dynamics(q, *base)[0], q
            return table

        return of_a_tree

    def _accelerated(self, arguments: list[Array], x: Array) -> Iterator[list[Array]]:
        """Yield arguments with a unit of one coordinate's acceleration more, one after the other."""
        for i in range(self.robot.n_coordinates):
            stack = arguments[0].copy()
            stack[2, i] += 1.0
            yield [stack, *arguments[1:]]
        if not self.joints_only:
            *joints, pose, twists = arguments
            rows = self._platform_rows
            turns = Ad(pose) @ differential(rows @ x[self.robot.n_coordinates :]) @ rows
            for direction in turns.T:
                yield [*joints, pose, np.array([twists[0], twists[1] + direction])]

    def locate(self, drives: Array, start: Array, time: float = 0.0) -> Array:
        """Return x and its derivatives (orders, k), up to x'', from those of the driven joints.

        By Newton's method from a `start` (k,), in short steps; what more drives than coordinates say
        differently is fitted in the least squares. Raises ConvergenceError where no pose is found, and for
        driven joints further than 20 rad or m from those of the start.
        """
        if self.robot.closure is None:
            return drives
        motion = np.zeros((3, self.size))
        motion[0] = start
        begin = self.drives(motion, time).motion[0]
        farthest = float(np.abs(drives[0] - begin).max())
        if not farthest <= _FARTHEST:
            raise ConvergenceError(
                f"the driven joints of robot {self.robot.name!r} are {farthest:.3g} rad or m from where they "
                f"were, and are followed over {_FARTHEST:g}; give positions nearer to the last ones",
                0.0,
                farthest,
            )
        count = max(1, ceil(farthest / STRIDE))
        for i in range(1, count + 1):
            jacobian = self._approach(begin + i / count * (drives[0] - begin), motion, time)
        for order in range(1, len(drives)):
            motion[order] = _least(jacobian, drives[order] - self.drives(motion, time).motion[order])
        return motion[: len(drives)]

    def _approach(self, positions: Array, motion: Array, time: float) -> Array:
        """Move x, the first row of a motion, to where the driven joints are at positions; return J."""
        for _ in range(_ITERATIONS):
            _, reached, inertia = self._equations(motion[:2], time)
            _, jacobian = inertia()
            step = _least(jacobian, positions - reached[0])
            motion[0] += step
            if np.abs(step).max() <= _PRECISION:
                return jacobian
        raise ConvergenceError(
            f"no pose of robot {self.robot.name!r} fits the positions {positions} of its driven joints; the "
            f"last step was {np.abs(step).max():g} m or rad",
            0.0,
            float(np.abs(step).max()),
        )


def _least(matrix: Array, values: Array) -> Array:
    """Return the x for which `matrix x` is nearest to `values`."""
    return np.asarray(np.linalg.lstsq(matrix, values, rcond=None)[0], dtype=np.float64)
