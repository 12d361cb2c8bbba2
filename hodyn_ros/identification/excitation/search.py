"""The search for a motion that makes parameters visible within all limits of a robot.

The condition of the weighted base regressor (Gautier & Khalil, Int. J. Robotics Research 11(4), 1992) is
minimised over Fourier series (Swevers et al., IEEE T-RA 13(5), 1997) that start and end at rest. Limits are
penalties on a grid of samples at first; then the peaks between them are searched, and where one is beyond its
limit, the search goes on with a little less room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.identification.excitation.boxes import Box
from hodyn_ros.identification.excitation.fourier_basis import FourierBasis
from hodyn_ros.identification.excitation.room import Room
from hodyn_ros.identification.excitation.visibility import Visibility
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.harmonic import FourierSeries

_PER_PERIOD = 12  # samples of the highest harmonic
_STAGES = (3.0, 30.0, 300.0)  # what violations cost, one after the other
_GOAL = 0.98  # of the limits at the samples, at first
_STEPS = 60  # of each stage
_ATTEMPTS = 8  # to bring the peaks between samples inside
_FAIR = 20  # random motions to compare with


@dataclass(frozen=True)
class ExcitationOptions:
    """What kind of motion is sought."""

    duration: float = 20.0  # [s]
    harmonics: int = 8
    starts: int = 3  # random motions that the search starts from
    seed: int = 0
    at_motor: bool = True  # whether efforts are measured at the motors
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion that shows the parameters of a robot."""

    motion: FourierSeries
    condition: float
    random: float  # median condition of random motions that touch a limit
    parameters: tuple[str, ...]  # that it shows
    usage: float  # largest share of a limit that is used
    limit: str  # which one
    measure: Callable[[Trajectory, float], float]  # the condition of another motion, to some time [s]


def excite(
    robot: Robot, options: ExcitationOptions | None = None, progress: Callable[[float], None] | None = None
) -> Excitation:
    """Find a motion that shows the parameters of a robot, a tree on the ground, from rest to rest.

    Raises InputError where nothing bounds a joint, or no motion within all limits is found.
    """
    options = options or ExcitationOptions()
    search = _Search(robot, options)
    share = (lambda done: None) if progress is None else progress
    best: tuple[float, Array] | None = None
    random = np.random.default_rng(options.seed)
    total = options.starts * (len(_STAGES) + 1)
    for start in range(options.starts):
        x = search.random(random)
        for stage, cost in enumerate(_STAGES):
            x = search.improved(x, cost, _GOAL)
            share((start * (len(_STAGES) + 1) + stage + 1) / total)
        x = search.inside(x)
        score = search.visibility.condition(search.samples(x)[:, :3])
        if best is None or score < best[0]:
            best = score, x
        share((start + 1) * (len(_STAGES) + 1) / total)
    assert best is not None
    return search.result(best[1], random)


class _Search:
    """A robot, a grid of samples, and what is minimised there."""

    def __init__(self, robot: Robot, options: ExcitationOptions) -> None:
        if not robot.is_arm:
            raise InputError(
                f"robot {robot.name!r} has loops, couplings or a moving base; arms on the ground are excited"
            )
        self.robot = robot
        self.basis = FourierBasis(options.duration, options.harmonics)
        self.room = Room(robot, options.boxes)
        self.visibility = Visibility(robot, options.at_motor, self.basis.frequency * options.harmonics)
        count = _PER_PERIOD * options.harmonics
        self.times = (np.arange(count) + 0.5) * options.duration / count
        self.matrices = self.basis.sampled(self.times, self.room.order)

    def samples(self, x: Array) -> Array:
        """Return the motion (N, order + 1, n) at the grid."""
        return np.ascontiguousarray(np.moveaxis(self.matrices @ x, 0, 1))

    def random(self, random: np.random.Generator) -> Array:
        """Return a random motion that keeps its limits at the samples, and touches one."""
        x = random.standard_normal((self.basis.size, self.robot.n_coordinates))
        x[0] = self.room.middle
        low, high = 0.0, 1.0
        for _ in range(60):
            if self.room.usage(self.samples(self._shrunk(x, high))).max() > 1.0:
                break
            low, high = high, 2.0 * high
        for _ in range(25):
            half = 0.5 * (low + high)
            fits = self.room.usage(self.samples(self._shrunk(x, half))).max() <= 1.0
            low, high = (half, high) if fits else (low, half)
        return self._shrunk(x, low)

    @staticmethod
    def _shrunk(x: Array, factor: float) -> Array:
        return np.concatenate([x[:1], factor * x[1:]])

    def improved(self, x: Array, cost: float, goal: float) -> Array:
        """Return a motion of better condition, whose violations of `goal` times the limits cost."""

        def value(coefficients: Array) -> tuple[float, Array]:
            joints = self.samples(coefficients.reshape(x.shape))
            condition, slopes = self.visibility.smooth_condition(np.ascontiguousarray(joints[:, :3]))
            penalty, gradient = self.room.penalty(joints, goal)
            gradient *= cost
            gradient[:, :3] += slopes
            back = np.einsum("ktd,tkn->dn", self.matrices, gradient)
            return condition + cost * penalty, back.ravel()

        optimum = minimize(value, x.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
        return np.asarray(optimum.x.reshape(x.shape))

    def inside(self, x: Array) -> Array:
        """Return a motion near to one whose peaks, between samples too, keep all limits."""
        goal = _GOAL
        for _ in range(_ATTEMPTS):
            worst, _ = self.room.peak(self.basis.series(x))
            if worst <= 1.0:
                return x
            goal -= 1.2 * (worst - 1.0)
            x = self.improved(x, 10.0 * _STAGES[-1], goal)
        for share in np.geomspace(0.98, 0.05, 60):  # towards the middle of the range
            smaller = self._shrunk(x, float(share))
            if self.room.peak(self.basis.series(smaller))[0] <= 1.0:
                return smaller
        raise InputError(
            f"no motion about the middle of its joints keeps all limits of {self.robot.name!r}: "
            f"the {self.room.peak(self.basis.series(self._shrunk(x, 0.05)))[1]} is exceeded; widen the boxes "
            "or limits"
        )

    def measure(self, motion: Trajectory, until: float) -> float:
        """Return the condition of a motion up to a time [s]."""
        count = max(len(self.times), 400)
        times = (np.arange(count) + 0.5) * until / count
        return self.visibility.condition(motion.sample(times, 2))

    def result(self, x: Array, random: np.random.Generator) -> Excitation:
        """Return the motion with what is to be said of it."""
        motion = self.basis.series(x, self.robot.joint_names)
        usage, limit = self.room.peak(motion)
        at_random = [self.samples(self.random(random))[:, :3] for _ in range(_FAIR)]
        end = motion.duration
        return Excitation(
            motion,
            self.measure(motion, end),
            float(np.median([self.visibility.condition(samples) for samples in at_random])),
            self.visibility.base.names,
            usage,
            limit,
            self.measure,
        )
