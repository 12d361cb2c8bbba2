"""A correction of the feedforward from recorded repetitions of one motion, with a bound on what it leaves.

Norm-optimal iterative learning control in the lifted form (M. Norrloef and S. Gunnarsson, Int. J. Control
75(14), 2002; D. Bristow, M. Tharayil, A. Alleyne, IEEE Control Systems Magazine 26(3), 2006): the errors e of
all windows and joints follow from the coefficients c of the efforts by e = d + S c, where `response` computes
S of the model. With its singular values S = U sigma V^T, the r largest, a repetition is followed by

    c <- c - g V_r sigma_r^-1 U_r^T e .

For a robot with another response S_p, what the errors have along U_r then goes on by the matrix
I - g U_r^T S_p V_r sigma_r^-1. The norm of this is the `contraction`: r is the largest number for which all
robots at the corners of the uncertainty have one below what is asked for. What is beyond r is not learnt: it is
the robust filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.learning.config import LearningConfig
from hodyn_ros.learning.correction import Correction, basis_size
from hodyn_ros.learning.repetitions import Errors, Expected, errors_of
from hodyn_ros.learning.response import Windows, response
from hodyn_ros.trajectory.base import Trajectory

_WINDOWS = 4.0  # in a period of the bandwidth
_REST = 1e-9  # of the largest singular value, below which there is none


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
    errors: Array  # (windows, n) under that
    step: float  # share that is corrected at once from now on
    history: tuple[Step, ...]
    contraction: float = np.nan  # the largest of all robots at the corners of the uncertainty
    modes: int = 0  # r, of `of_modes`
    of_modes: int = 0
    predicted: float = np.nan  # RMS that the next repetition has at most, of what is learnt from
    used: float = 1.0  # share of the step that the limits allow
    seen: tuple[str, ...] = ()  # joints whose links are seen through the model
    load: tuple[float, ...] = ()  # mass [kg] and first moments [kg m] that motors show where links are seen
    notes: tuple[str, ...] = field(default=())


class Learner:
    """Learns from repetitions of one motion by one robot under one feedback of its motors.

    Building one linearises the robot and those at the corners of the uncertainty along the motion, which takes
    a second; `learn` takes a tenth of it. Raises InputError for a motion without end or one that does not begin
    and end at rest, and for robots whose response is not linear.
    """

    def __init__(
        self,
        robot: Robot,
        motion: Trajectory,
        gains: MotorGains,
        config: LearningConfig | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.robot, self.gains, self.config = robot, gains, config or LearningConfig()
        if not np.isfinite(motion.duration):
            raise InputError("the motion has no end; what repeats has one: give a motion from rest to rest")
        if not (motion.starts_at_rest and motion.ends_at_rest):
            raise InputError("the motion does not begin and end at rest, as repetitions have to")
        self.motion, bandwidth = motion, self.config.bandwidth
        self.windows = Windows(motion.duration, max(8, round(_WINDOWS * bandwidth * motion.duration)))
        self.size = basis_size(motion.duration, bandwidth)
        corners = list(self.config.uncertainty.corners(robot))
        responses = []
        for i, deviation in enumerate((None, *corners)):
            responses.append(
                response(
                    robot, gains, motion, self.size, self.windows, deviation, self.config.damping_time
                ).reshape(self.windows.count * len(robot.driven_joints), -1)
            )
            if progress is not None:
                progress((i + 1) / (1 + len(corners)))
        self._response, self._corners = responses[0], responses[1:]

    def start(self) -> Correction:
        """Return the correction that corrects nothing."""
        return Correction.none(self.robot.driven_joints, self.motion.duration, self.config.bandwidth)

    def learn(
        self,
        recordings: Sequence[JointRecording],
        before: Learned | None = None,
        begins: Sequence[float] | None = None,
    ) -> Learned:
        """Return what is to be played next, from repetitions that were all run under `before.correction`.

        None before: they ran without a correction. `begins`: the stamps [s] at which the motion begins in them,
        zero by default. A repetition that is worse than the best one by more than the noise is taken back: the
        best correction is played again, and steps from it are half as long. Raises InputError for corrections of
        another motion or bandwidth, and where no repetition is of use.
        """
        played = self.start() if before is None else before.correction
        self._check_same(played)
        expected = None
        if before is not None:
            change = (played.coefficients - before.best.coefficients).ravel()
            moved = (self._response @ change).reshape(before.errors.shape)
            expected = Expected(before.errors + moved, before.errors)
        starts = [0.0] * len(recordings) if begins is None else begins
        errors = errors_of(
            self.robot, self.motion, recordings, starts, self.windows, self.config, expected
        )
        if before is not None and not self._as_good(errors, before):
            return self._taken_back(errors, before)
        history = () if before is None else before.history
        step = self.config.step if before is None else before.step
        entry = Step(errors.rms, errors.noise, errors.used, "learnt")
        times = np.linspace(0.0, self.motion.duration, max(2, round(100.0 * self.motion.duration) + 1))
        found = Learned(
            played, self.motion.sample(times, 0)[:, 0], played, errors.values, step, (*history, entry),
            seen=errors.seen, load=errors.load, notes=errors.notes,
        )  # fmt: skip
        return self._corrected(found, errors)

    def _check_same(self, played: Correction) -> None:
        if played.joint_names != self.robot.driven_joints:
            raise InputError(
                f"the correction is of the joints {list(played.joint_names)}, the robot has "
                f"{list(self.robot.driven_joints)}"
            )
        if abs(played.duration - self.motion.duration) > 1e-6 * self.motion.duration:
            raise InputError(
                f"the correction was learnt along a motion of {played.duration:g} s, and this one takes "
                f"{self.motion.duration:g} s; learn from the motion that it was begun with"
            )
        if len(played.coefficients) != self.size:
            raise InputError(
                f"the correction has {len(played.coefficients)} splines a joint, a bandwidth of "
                f"{self.config.bandwidth:g} Hz needs {self.size}; go on with the bandwidth that it was begun with"
            )

    def _as_good(self, errors: Errors, before: Learned) -> bool:
        """Whether repetitions are no worse than the best before, where both are known, beyond the noise."""
        known = errors.known
        was = float(np.sqrt(np.mean(before.errors[known] ** 2)))
        noise = max(errors.noise, before.history[-1].noise if before.history else 0.0)
        return errors.rms <= was + self.config.surely * noise

    def _taken_back(self, errors: Errors, before: Learned) -> Learned:
        entry = Step(errors.rms, errors.noise, errors.used, "taken back")
        was = float(np.sqrt(np.mean(before.errors[errors.known] ** 2)))
        note = (
            f"taken back: {errors.rms:.3g} rad RMS, after {was:.3g} with the correction before; that one is "
            "played again, and steps from it are half as long"
        )
        return replace(
            before,
            correction=before.best,
            step=0.5 * before.step,
            history=(*before.history, entry),
            predicted=np.nan,
            used=1.0,
            notes=(*errors.notes, note),
        )

    def _corrected(self, found: Learned, errors: Errors) -> Learned:
        weights = errors.known.ravel().astype(np.float64)
        weighted = weights[:, None] * self._response
        squares, V = np.linalg.eigh(weighted.T @ self._response)
        order = np.argsort(squares)[::-1]
        sigma = np.sqrt(np.maximum(squares[order], 0.0))
        there = int((sigma > _REST * sigma[0]).sum())
        sigma, V = sigma[:there], V[:, order[:there]]
        left = (V / sigma).T @ weighted.T  # U^T
        matrices = [left @ corner @ (V / sigma) for corner in self._corners]
        modes, contraction = self._modes(matrices, found.step, there)
        along = left[:modes] @ errors.values.ravel()
        change = -found.step * (V[:, :modes] / sigma[:modes]) @ along
        table = change.reshape(self.size, -1)
        used, why = self._allowed(found.correction, table)
        predicted = np.nan
        if (used == 1.0).all():
            spread = max(self._leaks(corner, weights, left[:modes], V[:, :modes] / sigma[:modes]) for corner in self._corners)
            size = float(np.linalg.norm(along))
            rest = np.sqrt(max(float(np.sum((weights * errors.values.ravel()) ** 2)) - size**2, 0.0))
            most = np.hypot(contraction * size, rest + found.step * spread * size)
            predicted = float(most / np.sqrt(weights.sum()))
        return replace(
            found,
            correction=found.correction.plus(used * table),
            contraction=contraction,
            modes=modes,
            of_modes=self.size * len(self.robot.driven_joints),
            predicted=predicted,
            used=float(used.min()),
            notes=(*found.notes, *why),
        )

    @staticmethod
    def _leaks(corner: Array, weights: Array, left: Array, right: Array) -> float:
        """Return how much of what a unit of learnt errors is corrected by becomes one that is not learnt."""
        moved = weights[:, None] * (corner @ right)
        return float(np.linalg.norm(moved - left.T @ (left @ moved), 2))

    def _modes(self, matrices: Sequence[Array], step: float, there: int) -> tuple[int, float]:
        """Return how many modes contract as asked for whatever the robot, and the largest norm of these."""

        def norm(r: int) -> float:
            return max(float(np.linalg.norm(np.eye(r) - step * each[:r, :r], 2)) for each in matrices)

        asked = max(self.config.contraction, 1.0 - 0.5 * step)  # a short step cannot contract by more
        low, high = 0, there + 1  # norms of leading blocks grow with their size
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if norm(middle) <= asked else (low, middle)
        if low == 0:
            raise InputError(
                f"for no error a repetition leaves less than {asked:g} of it whatever the robot, which may differ "
                f"from its model by {self.config.uncertainty}; identify it better, or allow a larger contraction"
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
        delta = replace(correction, coefficients=change)
        shares, words = np.ones(change.shape[1]), []
        limits = (
            train.effort_limits(robot.limits.effort),
            train.effort_rate_limits(robot.limits.effort_rate),
        )
        for k, limit in enumerate(limits):
            there, more = efforts[:, k] + correction.sampled(times, k), delta.sampled(times, k)
            room = np.maximum(self.config.limit_share * limit - np.sign(more) * there, 0.0)
            size = np.abs(more)
            shares = np.minimum(shares, np.where(size > room, room / np.maximum(size, 1e-300), 1.0).min(axis=0))
        for name, share in zip(robot.driven_joints, shares):
            if share < 1.0:
                words.append(
                    f"limits of torque or torque rate of {name} leave {100.0 * share:.0f} % of what was to be corrected"
                )
        return shares, words


def _motor_efforts(feedforward: Feedforward) -> Array:
    """Return efforts of the motors and their rates (2, n)."""
    return feedforward.motor_efforts[:2] if len(feedforward.motor_efforts) >= 2 else feedforward.efforts[:2]
