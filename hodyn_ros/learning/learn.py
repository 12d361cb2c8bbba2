"""A correction of the feedforward from recorded repetitions of one motion, with a bound on what it leaves.

Iterative learning control in the lifted form (D. Bristow, M. Tharayil, A. Alleyne, "A survey of iterative
learning control", IEEE Control Systems Magazine 26(3), 2006): the errors e of all windows and joints follow
from the coefficients c of the efforts, `e = d + S c`, where `response` computes S of the model. With its
singular values, `S = U sigma V^T`, of which the r largest are used, a repetition is followed by

    c <- c - g V_r sigma_r^-1 U_r^T e .

For a robot with another response S_p the part a = U_r^T e of the errors goes on from one repetition to the
next by the matrix `I - g U_r^T S_p V_r sigma_r^-1`, up to a constant. Its norm, the largest of all robots at
the corners of the uncertainty, is the `contraction`; r is the largest number for which it is as asked for.
What is beyond r is not learnt: that is the robust filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.control.standing import warn_if_tipped
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.learning.config import LearningConfig
from hodyn_ros.learning.correction import Correction, basis_size
from hodyn_ros.learning.repetitions import Errors, Expected, errors_of
from hodyn_ros.learning.response import Windows, check_robot, response
from hodyn_ros.trajectory.base import Trajectory

_WINDOWS = 4.0  # in a period of the bandwidth
_REST = 1e-9  # of the largest singular value, below which there is none
_REMEMBERED = 5  # repetitions back whose noise counts
_PATH_RATE = 100.0  # [Hz] at which the positions of the motion are kept


class Step(NamedTuple):
    """One line of the history: what a repetition has shown, and what was made of it."""

    rms: float  # [rad or m], over instants and joints
    noise: float  # standard deviation of that
    repetitions: int  # under this correction
    verdict: str  # "learnt", or "taken back"


@dataclass(frozen=True, eq=False)
class Learned:
    """What is to be played next, and what it comes from."""

    correction: Correction
    motion: Array  # (N, n) positions of the motion at even times [rad or m]
    best: Correction  # under which errors were the smallest
    errors: Array  # (windows, n) under that, as expected where they are not known
    unknown: NDArray[np.bool_]  # (windows,) where nothing was known of them
    doubted: NDArray[np.bool_]  # (windows,) where they were larger than expected, and left out
    step: float  # share of the errors that is corrected at once
    history: tuple[Step, ...]
    contraction: float = np.nan  # of what is learnt, the largest of all robots tried
    modes: int = 0  # r, of `of_modes`
    of_modes: int = 0
    predicted: float = np.nan  # [rad or m] that the RMS of the next one has at most, by the same robots
    used: float = 1.0  # share of what is to be corrected that the limits leave, of the joint with the least
    seen: tuple[str, ...] = ()  # joints whose links are seen through the model
    load: tuple[float, ...] = ()  # mass [kg] and first moments [kg m] that motors show where links are seen
    notes: tuple[str, ...] = ()


class Learner:
    """Learns from repetitions of one motion by one robot under one feedback of its motors.

    The first call of `learn` linearises the robot, and those at the corners of the uncertainty, along the
    motion, which takes a second or two; `progress` is told the share that is done. Raises InputError for a
    motion without end, or not from rest to rest, and for robots whose response is not linear; warns
    (FigureWarning) of a robot that its weight tips, as feedback is too soft.
    """

    def __init__(
        self,
        robot: Robot,
        motion: Trajectory,
        gains: MotorGains,
        config: LearningConfig | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.robot, self.motion, self.config = robot, motion, config or LearningConfig()
        if not np.isfinite(motion.duration):
            raise InputError("the motion has no end; what repeats has one: give a motion from rest to rest")
        if not (motion.starts_at_rest and motion.ends_at_rest):
            raise InputError("the motion does not begin and end at rest, as repetitions have to")
        bandwidth = self.config.bandwidth
        self.windows = Windows(motion.duration, max(8, round(_WINDOWS * bandwidth * motion.duration)))
        self.size = basis_size(motion.duration, bandwidth)
        check_robot(robot)
        warn_if_tipped(robot, robot.drive_train, gains)
        self._gains, self._progress = gains, progress

    def start(self) -> Correction:
        """Return the correction that corrects nothing."""
        return Correction.none(self.robot.driven_joints, self.motion.duration, self.config.bandwidth)

    def learn(
        self,
        recordings: Sequence[JointRecording],
        before: Learned | None = None,
        begins: Sequence[float] | None = None,
    ) -> Learned:
        """Return what is to be played next, from repetitions that all ran under `before.correction`.

        None before: they ran without a correction. `begins`: the stamps [s] at which the motion begins in
        them, zero by default. A repetition that is worse than the best one by more than the noise is taken
        back: the best correction is played again, and steps from it are half as long. What that one is off
        by, more or less than before, is noise. Raises InputError for a
        correction of another motion or bandwidth, and where no repetition is of use.
        """
        played, expected = self.start(), None
        if before is not None:
            played = before.correction
            self._check_same(before)
            change = (played.coefficients - before.best.coefficients).ravel()
            moved = (self._responses[0] @ change).reshape(before.errors.shape)
            expected = Expected(before.errors + moved, before.errors, before.doubted | before.unknown)
        starts = [0.0] * len(recordings) if begins is None else begins
        unknown = max(1.0, self.config.uncertainty.friction)  # viscous friction over the derivative gain
        lag = unknown * float(np.max(self._gains.derivative / np.maximum(self._gains.proportional, 1e-9)))
        lag += self.config.uncertainty.delay
        errors = errors_of(
            self.robot, self.motion, recordings, starts, self.windows, self.config, lag, expected
        )
        noise = errors.noise
        if before is not None:
            both = errors.known & ~before.unknown[:, None]
            was, now = (float(np.sqrt(np.mean(each[both] ** 2))) for each in (before.errors, errors.values))
            known = max(noise, *(step.noise for step in before.history[-_REMEMBERED:]))
            if np.array_equal(played.coefficients, before.best.coefficients):
                noise = max(noise, abs(now - was))  # the same correction once more: so much they differ by
            elif now > was + self.config.surely * known:
                return _taken_back(errors, before, was, now)
        filled = errors.values
        if expected is not None:
            filled = np.where(errors.known, filled, expected.errors)
        times = np.linspace(0.0, self.motion.duration, round(_PATH_RATE * self.motion.duration) + 2)
        learned = Learned(
            played,
            self.motion.sample(times, 0)[:, 0],
            played,
            filled,
            ~errors.known.all(axis=1) & ~errors.doubted,
            errors.doubted,
            self.config.step if before is None else before.step,
            (*(before.history if before else ()), Step(errors.rms, noise, errors.used, "learnt")),
            seen=errors.seen,
            load=errors.load,
            notes=errors.notes,
        )
        return self._corrected(learned, errors)

    @cached_property
    def _responses(self) -> list[Array]:
        """Those of the model, first, and of robots at the corners of the uncertainty, as matrices."""
        robot, motion, responses = self.robot, self.motion, []
        deviations = [None, *self.config.uncertainty.corners(robot)]
        for i, deviation in enumerate(deviations):
            damping = self.config.damping_time
            each = response(robot, self._gains, motion, self.size, self.windows, deviation, damping)
            responses.append(each.reshape(self.windows.count * len(robot.driven_joints), -1))
            if self._progress is not None:
                self._progress((i + 1) / len(deviations))
        return responses

    def _check_same(self, before: Learned) -> None:
        played, joints = before.correction, self.robot.driven_joints
        if played.joint_names != joints:
            raise InputError(
                f"the correction is of the joints {list(played.joint_names)}, the robot has {list(joints)}"
            )
        if abs(played.duration - self.motion.duration) > 1e-6 * self.motion.duration:
            raise InputError(
                f"the correction was learnt along a motion of {played.duration:g} s, and this one takes "
                f"{self.motion.duration:g} s; learn from the motion that it was begun with"
            )
        shape = (self.windows.count, len(joints))
        if len(played.coefficients) != self.size or before.errors.shape != shape:
            raise InputError(
                f"the correction has {len(played.coefficients)} splines a joint, and a bandwidth of "
                f"{self.config.bandwidth:g} Hz needs {self.size}; go on with the bandwidth it was begun with"
            )

    def _corrected(self, learned: Learned, errors: Errors) -> Learned:
        """Add what takes the errors away."""
        model, corners = self._responses[0], self._responses[1:]
        # where nothing is known, the change is to move nothing: left out, it would be free to do anything
        seen = np.where(errors.known, errors.values, 0.0).ravel()
        squares, V = np.linalg.eigh(model.T @ model)
        order = np.argsort(squares)[::-1]
        sigma = np.sqrt(np.maximum(squares[order], 0.0))
        there = int((sigma > _REST * sigma[0]).sum())
        back = V[:, order[:there]] / sigma[:there]  # V sigma^-1
        across = (model @ back).T  # U^T
        modes, contraction = self._modes([across @ (each @ back) for each in corners], learned.step)
        back, across = back[:, :modes], across[:modes]
        learnt = across @ seen
        change = -learned.step * (back @ learnt).reshape(self.size, -1)
        shares, words = self._allowed(learned.correction, change)
        predicted = np.nan
        if shares.min() == 1.0:
            # what is not learnt is moved as well, by the part of each response that is across to U
            moved = [each @ back for each in corners]
            spill = max(float(np.linalg.norm(each - across.T @ (across @ each), 2)) for each in moved)
            size = float(np.linalg.norm(learnt))
            rest = np.sqrt(max(float(np.sum(seen**2)) - size**2, 0.0))
            most = np.hypot(contraction * size, rest + learned.step * spill * size)
            predicted = float(most / np.sqrt(errors.known.sum()))
        return replace(
            learned,
            correction=learned.correction.plus(shares * change),
            contraction=contraction,
            modes=modes,
            of_modes=len(V),
            predicted=predicted,
            used=float(shares.min()),
            notes=(*learned.notes, *words),
        )

    def _modes(self, matrices: Sequence[Array], step: float) -> tuple[int, float]:
        """Return how many modes contract as asked for, whatever the robot, and by what the slowest does."""

        def norm(r: int) -> float:
            return max(float(np.linalg.norm(np.eye(r) - step * each[:r, :r], 2)) for each in matrices)

        asked = 1.0 - step * (1.0 - self.config.contraction)  # a short step cannot contract by more
        low, high = 0, len(matrices[0]) + 1  # norms of leading blocks grow with their size
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if norm(middle) <= asked else (low, middle)
        if low == 0:
            raise InputError(
                f"no error is sure to shrink to {100.0 * asked:.0f} % by a repetition, of a robot that "
                f"differs from its model by {self.config.uncertainty}; identify it better, or allow a larger "
                "contraction"
            )
        return low, norm(low)

    def _allowed(self, correction: Correction, change: Array) -> tuple[Array, list[str]]:
        """Return the share of each joint's change (n,) that torque and torque rate allow, and words on it."""
        robot, motion = self.robot, self.motion
        train = robot.require_drives()
        times = np.linspace(0.0, motion.duration, 4 * len(change) + 1)
        model = FeedforwardModel(robot, 3 if train.elastic.any() else 1)
        samples = motion.sample(times, model.motion_orders - 1)
        efforts = np.stack([_motor_efforts(model.compute(np.ascontiguousarray(each))) for each in samples])
        delta, shares = replace(correction, coefficients=change), np.ones(change.shape[1])
        limits = (
            train.effort_limits(robot.limits.effort),
            train.effort_rate_limits(robot.limits.effort_rate),
        )
        for k, limit in enumerate(limits):
            there, more = efforts[:, k] + correction.sampled(times, k), delta.sampled(times, k)
            room = np.maximum(self.config.limit_share * limit - np.sign(more) * there, 0.0)
            size = np.abs(more)
            allowed = np.divide(room, size, out=np.ones_like(size), where=size > room)
            shares = np.minimum(shares, allowed.min(axis=0))
        words = [
            f"limits of torque or torque rate of {name} leave {100.0 * share:.0f} % of the correction"
            for name, share in zip(robot.driven_joints, shares)
            if share < 1.0
        ]
        return shares, words


def _taken_back(errors: Errors, before: Learned, was: float, now: float) -> Learned:
    note = (
        f"taken back: {now:.3g} rad RMS, after {was:.3g} rad under the best correction; that one is "
        "played again, and steps from it are half as long"
    )
    return replace(
        before,
        correction=before.best,
        step=0.5 * before.step,
        history=(*before.history, Step(errors.rms, errors.noise, errors.used, "taken back")),
        notes=(*errors.notes, note),
    )


def _motor_efforts(feedforward: Feedforward) -> Array:
    """Return efforts of the motors and their rates (2, n)."""
    return feedforward.motor_efforts[:2] if len(feedforward.motor_efforts) >= 2 else feedforward.efforts[:2]
