"""Model predictive control in a loop of sampling: observer, controller and command guard."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.control.predictive_control import PredictiveConfig, PredictiveControl
from hodyn_ros.control.standing import warn_if_tipped
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig, GuardLimits
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.simulation.closed_loop import GuardedController
from hodyn_ros.trajectory.base import Trajectory


class PredictiveLoop:
    """A controller of `run_loop`: what is computed in one period, a guard commands in the next one.

    The guard has feedback on the motors (`gains`) about what was predicted of them, so that it holds the
    robot where no prediction comes; one that its weight tips is warned about (FigureWarning). `bandwidth`
    [1/s] of the observer of what pushes the links.
    """

    def __init__(
        self,
        model: Robot,
        motion: Trajectory,
        gains: MotorGains,
        guard: GuardConfig,
        config: PredictiveConfig | None = None,
        bandwidth: float = 150.0,
    ) -> None:
        warn_if_tipped(model, model.drive_train, gains)
        self.control = PredictiveControl(model, motion, config)
        limits = GuardLimits(effort=self.control.limit)
        self._guarded = GuardedController(
            CommandGuard(model.driven_joints, guard, limits, gains), lambda _: self._next
        )
        self._observer = MomentumObserver(
            model,
            ObserverConfig(bandwidth=bandwidth, held_efforts=True, adapt_drives=False),
            Sensed(links=True, motors=True, motor_efforts=True),
        )
        self._next: Reference = self.control.desired(0.0)
        self._acted = self._next.efforts[0]
        self._seconds: list[float] = []

    @property
    def seconds(self) -> Sequence[float]:
        """Processor time of observer and controller in each period [s]."""
        return self._seconds

    def __call__(self, now: float, measured: Measurement) -> Array:
        """Return the efforts (motors,) of a period that begins `now` [s], and compute the next ones."""
        effort = self._guarded(now, measured)
        begun = time.thread_time()
        sample = self._observer.sample(**measured._asdict(), motor_effort=self._acted)
        pushed = self._observer.update(now, sample)
        external = np.zeros_like(effort) if pushed is None else pushed.efforts
        self._next = self.control.compute(now, measured, effort, external)
        self._seconds.append(time.thread_time() - begun)
        self._acted = effort
        return effort
