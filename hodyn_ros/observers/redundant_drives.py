"""Where a robot with more drives than coordinates is, and what of their efforts moves it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.links import Links
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ConvergenceError
from hodyn_ros.lie.se3 import Ad
from hodyn_ros.model.loops import ROWS

# Takes the motion (3, n) of the driven joints; returns efforts (n,) of least norm that it needs, and the
# matrix (n, n) that takes efforts to their part that moves the robot, `J (J^T J)^-1 J^T`.
Fit = Callable[[Array], tuple[Array, Array]]

_ITERATIONS = 20
_PRECISION = 1e-9  # of the last step [rad or m]


def fit_of(robot: Robot) -> Fit:
    """Return what fits a motion to drives that contradict each other by the noise of their encoders.

    The drives strain each other with the part of their efforts that moves nothing, which no motion shows.
    """
    closure = robot.closure
    if closure is not None and closure.platform is not None and not robot.n_coordinates:
        return PlatformFit(robot)
    links = Links(robot)
    last = links.home

    def fit(motion: Array) -> tuple[Array, Array]:
        nonlocal last
        x = links.locate(motion, last)
        last = x[0]
        jacobian = links.inertia(last)[1]
        return links.drives(x).efforts[0], jacobian @ np.linalg.pinv(jacobian)

    return fit


class PlatformFit:
    """The same of a robot whose coordinates are those of a platform alone: Gauss and Newton on its pose."""

    def __init__(self, robot: Robot) -> None:
        closure, pose = robot.closure, robot.home[1]
        assert closure is not None and closure.platform is not None and pose is not None
        twin = robot.with_tree(robot.tree)  # remembers by itself where it has been
        twin.reset(robot.positions)
        self._name, self._state, self._pose = robot.name, twin.compile(0, "drive_state"), pose
        self._rows = np.eye(6)[:, [ROWS.index(row) for row in closure.platform.rows]]
        self._still = np.zeros((2, 6))

    def __call__(self, motion: Array) -> tuple[Array, Array]:
        """Return efforts and what moves. Raises ConvergenceError where no pose fits."""
        pose = self._pose
        for _ in range(_ITERATIONS):
            jacobian = self._jacobian(pose)
            inverse = np.linalg.pinv(jacobian)
            step = inverse @ (motion[0] - self._state(pose, self._still)[1])
            pose = pose @ _moved(self._rows @ step)
            if np.abs(step).max() < _PRECISION:
                break
        else:
            raise ConvergenceError(
                f"no pose of robot {self._name!r} fits the positions {motion[0]} of its driven joints",
                0.0,
                float(np.abs(step).max()),
            )
        self._pose = pose
        into_world = Ad(pose) @ self._rows
        twists = np.stack([into_world @ (inverse @ motion[1]), np.zeros(6)])
        twists[1] = into_world @ (inverse @ (motion[2] - self._state(pose, twists)[3]))
        return self._state(pose, twists)[0], jacobian @ inverse

    def _jacobian(self, pose: Array) -> Array:
        """Return the matrix (n, k) from the rows of the body-fixed twist to the rates of the drives."""
        units = np.zeros((self._rows.shape[1], 2, 6))
        units[:, 0] = (Ad(pose) @ self._rows).T
        return np.stack([self._state(pose, unit)[2] for unit in units], axis=1)


def _moved(twist: Array) -> Array:
    """Return a displacement (4, 4) near that of a small body-fixed twist: its Cayley map."""
    (a, b, c), half = twist[:3], np.zeros((4, 4))
    half[:3, :3] = [[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]]
    half[:3, 3] = twist[3:]
    half *= 0.5
    return np.asarray(np.linalg.solve(np.eye(4) - half, np.eye(4) + half))
