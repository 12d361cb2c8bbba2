"""Whether feedback on the motors swings a robot up, as its commands are held and act late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import bisect

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.control.linear_drives import DAMPING_TIME, LinearDrives, LinearSystem
from hodyn_ros.control.links import Links
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError

_NOTHING = 0.01  # [1/s] of growth: rounding makes as much of joints that swing freely
_RESOLUTION = 1e-5  # [s] of delays
_WAITING = 10  # periods for which efforts are on their way, at most; for longer delays the period is longer


class Swing(NamedTuple):
    """The motion about home that grows fastest, or dies away last."""

    growth: float  # [1/s] of its size; negative where it dies away
    frequency: float  # [rad/s]
    drive: int  # whose motor moves most


@dataclass(frozen=True, eq=False)
class LateFeedback:
    """A robot about home whose motors have feedback each `period` [s].

    The efforts are computed from a sample, act after a delay, and are held until the next ones act. So the
    state of links and motors (`LinearDrives.system`) after a period is linear in that before and in the
    efforts that are on their way, and of the eigenvalues z of this map the largest grows with
    `ln |z| / period`. Weight and dry friction are left out; for the first see `standing`.
    """

    system: LinearSystem
    gains: MotorGains
    period: float

    def __post_init__(self) -> None:
        if not 0.0 < self.period < np.inf:
            raise InputError(f"the period must be positive, found {self.period} s")

    @classmethod
    def of_robot(
        cls,
        robot: Robot,
        train: DriveTrain,
        gains: MotorGains,
        period: float,
        damping_time: float = DAMPING_TIME,
    ) -> LateFeedback | None:
        """Return that of a robot, `damping_time` as in `LinearDrives`; None where nothing can be said.

        That is of a base that floats, joints with two motors, and a home that is singular.
        """
        if robot.structure.base_prescribed or train.n_motors != train.n_joints:
            return None
        links = Links(robot)
        try:
            system = LinearDrives.of_train(train, damping_time).system(*links.inertia(links.home))
        except (HodynError, np.linalg.LinAlgError):
            return None
        return cls(system, gains, period)

    def slowest_swing(self, delay: float = 0.0) -> Swing:
        """Return how the robot goes on to swing where efforts act `delay` [s] after their sample."""
        if not 0.0 <= delay < np.inf:
            raise InputError(f"the delay must not be negative, found {delay} s")
        period = max(self.period, delay / _WAITING)
        delay -= 0.5 * (period - self.period)  # held for longer, efforts are as late in the mean
        values, vectors = np.linalg.eig(self._after(period, delay))
        worst = int(np.abs(values).argmax())
        logarithm = np.log(complex(values[worst])) / period
        motors = self.system.motors
        moved = np.abs(motors @ vectors[: motors.shape[1], worst])
        return Swing(float(logarithm.real), abs(float(logarithm.imag)), int(moved.argmax()))

    def bearable_delay(self, most: float) -> float:
        """Return after how long a delay [s] nothing is damped any more, up to `most`."""

        def growth(delay: float) -> float:
            return self.slowest_swing(delay).growth - _NOTHING

        if growth(most) <= 0.0:
            return most
        if growth(0.0) >= 0.0:
            return 0.0
        return float(bisect(growth, 0.0, most, xtol=_RESOLUTION))

    def swings_up(self, robot: Robot, delay: float = 0.0) -> str:
        """Return a line about a robot that this feedback swings up; empty for one that it damps."""
        swing = self.slowest_swing(delay)
        if swing.growth <= _NOTHING:
            return ""
        return (
            f"feedback swings the motor of joint {robot.driven_joints[swing.drive]!r} of robot "
            f"{robot.name!r} up at {swing.frequency:.3g} rad/s, to twice as much in "
            f"{np.log(2.0) / swing.growth:.2g} s, as commands are held for {1e3 * self.period:.3g} ms and "
            f"act {1e3 * delay:.3g} ms late; command more often, lower the natural frequency of the feedback "
            "or its derivative gains, or say the spring_damping of the drive, unless friction holds it"
        )

    def _after(self, period: float, delay: float) -> Array:
        """Return what a period makes of the state, and of the efforts on their way, the last ones first."""
        late, part = divmod(delay, period)
        free, _ = self.system.held(period)
        rest, new = self.system.held(period - part)
        old = rest @ self.system.held(part)[1]
        states, efforts = self.system.B.shape
        waiting = (int(late) + 1) * efforts
        # efforts of this sample, and those before
        known = block_diag(self.system.feedback(self.gains), np.eye(waiting))
        state = np.hstack([free, np.zeros((states, waiting))]) + np.hstack([new, old]) @ known[-2 * efforts :]
        return np.vstack([state, known[:-efforts]])
