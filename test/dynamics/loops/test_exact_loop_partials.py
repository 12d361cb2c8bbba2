"""Partial derivatives of dynamics with loops, against differences of the efforts at many digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linkages import motion_of, robot_of
from numpy.typing import NDArray
from oracles import mechanisms, mp_loops
from oracles import mp_dynamics as mp
from oracles.differences import derivative
from oracles.motions import Base
from sweeps import THOROUGH, some

from hodyn_ros import BaseMotion

pytestmark = pytest.mark.thorough

Array = NDArray[np.float64]


class Case:
    """A mechanism on a motion of its coordinates, with body-fixed twists of its base or platform."""

    def __init__(self, name: str, order: int) -> None:
        self.mechanism = getattr(mechanisms, name)()
        self.robot, self.order = robot_of(self.mechanism), order
        self.y, base = motion_of(self.mechanism, order)
        self.base = None if base is None else base.in_representation("body_fixed")
        assert self.robot.closure is not None
        self.closure = self.robot.closure
        self.first = 6 if self.closure.base_given else 0

    @property
    def of_joints(self) -> slice:
        """Where the joints are among the coordinates."""
        return slice(self.first, self.first + len(self.closure.joints))

    def efforts(self, change: Array, step: Any, body: bool = True) -> mp.Exact:
        """Return efforts where the motion is larger by `step` times a change (order + 3, coordinates).

        `body`: the wrench on a base is body-fixed, else in the world.
        """
        y = mp.exact(self.y) + step * mp.exact(change[:, self.of_joints])
        if self.base is None:
            return mp_loops.exact_efforts(self.mechanism, y, self.order)
        rows = change[:, :6] if self.first else change[:, self.of_joints.stop :]
        along = mp.exact(rows @ self.closure.directions.T)
        twist = np.concatenate([step * along[:1], mp.exact(np.zeros((15, 6)))])
        moved = mp.base_poses(Base(np.eye(4), twist, "body_fixed"), twist, 15).sum(axis=0)
        pose = mp.rigid(self.base.pose) @ np.vstack([moved, [0, 0, 0, 1]])
        twists = mp.taylor(mp.exact(self.base.twists) + step * along[1:], self.order + 2)
        poses = mp.base_poses(Base(pose, twists, "body_fixed"), twists, self.order + 3)
        world = mp.derivatives(mp.twists_of(poses, "spatial"))
        found = mp_loops.exact_efforts(self.mechanism, y, self.order, Base(pose, world, "spatial"))
        if not (self.first and body):
            return found
        wrench = mp.wrench_to_body(poses[: self.order + 1], mp.taylor(found[:, :6], self.order + 1))
        return np.concatenate([mp.derivatives(wrench), found[:, 6:]], axis=1)

    def exact(self, change: Array, body: bool = True) -> Array:
        """Return how efforts change (order + 1, efforts)."""
        return derivative(lambda step: self.efforts(change, step, body))

    def partials(self) -> Array:
        """Return those of inverse dynamics that the robot finds."""
        return self.robot.inverse_dynamics_derivatives(self.y, self.base)


CASES = [("rssr", 4), ("palletiser", 3), ("flying_cam", 2), ("ankle", 1), ("six_ups", 0)]
FEW = CASES[0], CASES[2]


def groups(order: int) -> list[list[int]]:
    """Return which derivatives change together: each alone, or all in one direction."""
    return [[k] for k in range(order + 3)] if THOROUGH else [list(range(order + 3))]


@pytest.mark.parametrize(("name", "order"), some([*CASES, ("planar_3rrr", 2)], ("planar_3rrr", 2), *FEW))
def test_of_inverse_dynamics(name: str, order: int) -> None:
    """By every derivative of the motion, in one direction of the coordinates each."""
    case, rng = Case(name, order), np.random.default_rng(2)
    found = case.partials()
    scale = np.abs(found).max(axis=(1, 2, 3))
    assert not any(found[r, k].any() for r in range(order + 1) for k in range(r + 3, order + 3))
    for group in groups(order):
        change = np.zeros((order + 3, case.closure.n_coordinates))
        change[group] = rng.normal(size=(len(group), case.closure.n_coordinates))
        error = np.abs(np.einsum("rkij,kj->ri", found, change) - case.exact(change)).max(axis=1)
        assert (error <= 1e-11 * scale).all(), error / scale


@pytest.mark.parametrize(("name", "order"), some(CASES, *FEW))
def test_of_forward_dynamics(name: str, order: int) -> None:
    """The change of the motion that is found needs the change of the efforts that was given, exactly."""
    case, rng = Case(name, order), np.random.default_rng(3)
    n, first = case.closure.n_coordinates, case.first
    assert case.closure.n_efforts == n
    efforts = mp.to_float(case.efforts(np.zeros((order + 3, n)), mp.ONE, body=False))
    base = case.base and BaseMotion(case.base.pose, case.base.twists[:1], representation="body_fixed")
    push = efforts[:, :6] if first else None
    found = case.robot.forward_dynamics_derivatives(case.y[:2], efforts[:, first:], base, push)
    by_motion = case.partials()
    assert not any(found[r, k].any() for r in range(order + 1) for k in range(r + 3, order + 3))
    for group in groups(order):
        change, wanted = np.zeros((order + 3, n)), np.zeros((order + 1, n))
        for k in group:
            given = rng.normal(size=n)
            change[2:] += found[:, k] @ given
            rows = change[:2] if k < 2 else wanted
            rows[k if k < 2 else k - 2] = given
        if case.base is not None and first:  # body-fixed; what is there already stays in the world
            wanted[:, :6] = wrench_in_world(case.base, wanted[:, :6])
        scale = np.abs(np.einsum("rkij,kj->rki", by_motion, change)).max(axis=(1, 2))
        scale = np.maximum.reduce([scale, np.abs(wanted).max(axis=1), np.full(order + 1, 1e-15)])  # zeros
        error = np.abs(case.exact(change, body=False) - wanted).max(axis=1)
        assert (error <= 1e-11 * scale).all(), error / scale


def wrench_in_world(base: BaseMotion, values: Array) -> Array:
    """Return a body-fixed wrench and its derivatives in the world, along a motion."""
    poses = mp.base_poses(Base(base.pose, base.twists, "body_fixed"), mp.taylor(mp.exact(base.twists), 9), 10)
    found = mp.wrench_to_world(poses[: len(values)], mp.taylor(mp.exact(values), len(values)))
    return mp.to_float(mp.derivatives(found))
