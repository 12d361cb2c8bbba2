"""What acts on joints beside known efforts, where the efforts of a motion are a function of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.observers.balance import Balance, Sensed
from hodyn_ros.observers.config import ObserverConfig
from hodyn_ros.observers.equations import ObserverEquations

LinkEfforts = Callable[[Array], Array]  # of the links (n,) [N.m or N], from their motion (3, n)


class EffortObserver:
    """The observer of joints with encoders on one side, springs that bend as it is told, and known efforts.

    As `MomentumObserver`, but for any `efforts` that the motion of the links needs, such as those of a robot
    that puts down its load; whatever they raise comes through. `drives` are rigid: how far springs bend says
    each sample. `at_motors`: whether the known efforts are those of the motors, whose inertia and friction
    count then; else torques at the joints. `at_links`: whether positions are those of the links, and not of
    the motors. `noise` (n,) is the deviation of the external efforts by all that `config` has no figure for.
    Deviations are shares of bounds, and add up. `stiffness` (n,) [N.m/rad or N/m] of the springs is for who
    says how far they bend: infinite where they are rigid, or not between what is measured and its link.

    It has no memory: a sample holds of all joints position and velocity, by how much the motors are ahead of
    the links, the rate of that, and efforts (5, n). The row of one call, which begins with external efforts
    (n,) and their deviations (n,), goes into the next one.
    """

    def __init__(
        self,
        efforts: LinkEfforts,
        drives: DriveTrain,
        config: ObserverConfig,
        noise: Array,
        *,
        at_motors: bool,
        at_links: bool = False,
        stiffness: Array | None = None,
    ) -> None:
        equations = effort_equations(drives, config, at_motors=at_motors)
        self.n, self.size = drives.n_joints, equations.memory.size
        self.link_efforts, self._at_links = efforts, at_links
        self.stiffness = np.full(self.n, np.inf) if stiffness is None else stiffness
        self._figures = np.array([equations.filters.numbers(config, noise)])
        self._start = Kernel(*equations.start_trace()).function
        self._points = Kernel(*equations.points_trace()).function
        self._settle = Kernel(*equations.settle_trace()).function

    def start(self, sample: Array) -> Array:
        """Return the row (1, size) of a sample before which there is none."""
        row: Array = self._start(self._both_sides(sample), self._figures)
        return row

    def step(self, sample: Array, period: float, before: Array) -> Array:
        """Return that of a sample which comes a period [s] after another one."""
        elapsed, sample = np.full((1, 1), period), self._both_sides(sample)
        motion = self._points(sample, elapsed, before)
        efforts = np.array([self.link_efforts(motion[:3]), self.link_efforts(motion[3:])])
        row: Array = self._settle(sample, elapsed, before, self._figures, efforts)
        return row

    def _both_sides(self, sample: Array) -> Array:
        """Return motions of links and of motors, and efforts, from a sample."""
        measured, ahead = sample[:2], sample[2:4]
        links, motors = (measured, measured + ahead) if self._at_links else (measured - ahead, measured)
        return np.concatenate([links, motors, sample[4:]])


def effort_equations(drives: DriveTrain, config: ObserverConfig, *, at_motors: bool) -> ObserverEquations:
    """Return what an `EffortObserver` computes; its C code is made from the same."""
    sensed = Sensed(links=True, motors=True, motor_efforts=at_motors, joint_torques=not at_motors)
    balance = Balance(drives, sensed, base=False)
    return ObserverEquations(balance, bool(config.smoothing), bounds=True)
