"""How well a robot follows a motion with each kind of feedforward, when it is not quite as modelled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.late_feedback import LateFeedback
from hodyn_ros.control.linear_drives import DAMPING_TIME
from hodyn_ros.control.links import Links
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.control.standing import warn_if_tipped
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import FigureWarning, InputError
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig, GuardLimits
from hodyn_ros.guard.reasons import Transition
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.simulation.closed_loop import GuardedController, LoopRecord, Simulated, run_loop
from hodyn_ros.simulation.model_errors import with_scaled_inertia, with_stiffness
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.robot_motion import RobotMotion

SETTLING = 1.0  # [s]
_BASES = 20_000  # instants at which runs share the motion of a base: 10 s, half steps too, at a kilohertz


@dataclass(frozen=True)
class RobotErrors:
    """What the robot has that its model does not know."""

    stiffness: float = 0.0  # share by which its springs are stiffer
    inertia: float = 0.0  # share by which its masses and inertias are larger
    payload: float = 0.0  # [kg] at the origin of its last body

    def applied(self, model: Robot) -> Robot:
        """Return the robot. Raises InputError for one that cannot be."""
        for name, share in (("stiffness", self.stiffness), ("inertia", self.inertia)):
            if not -1.0 < share < np.inf:
                raise InputError(
                    f"an error of the {name} of {100.0 * share:g} % leaves nothing; say more than -100 %"
                )
        robot = model
        train = model.drive_train
        if self.stiffness and train is not None:
            if any(spec.spring_table or spec.variable_stiffness for spec in train.specs):
                raise InputError(
                    "springs with a table, or of variable stiffness, have no stiffness to be wrong"
                )
            robot = with_stiffness(robot, train.stiffness * (1.0 + self.stiffness))
        if self.inertia:
            robot = with_scaled_inertia(robot, 1.0 + self.inertia)
        if self.payload:
            robot = robot.with_tree(Payload(self.payload).on_tree(robot))
        return robot


@dataclass(frozen=True)
class Loop:
    """How the motors are controlled: as `controller_node` does."""

    rate: float = 1000.0  # [Hz]
    natural_frequency: float = 30.0  # [rad/s] of the feedback on each motor
    damping_ratio: float = 1.0
    damping_time: float = DAMPING_TIME  # [s] of the simulated springs
    order: int = 2  # highest derivative of the efforts in a feedforward; springs need 2


@dataclass(frozen=True)
class StudyConfig:
    """Which part of a motion is followed, and how; all in seconds but the loop."""

    duration: float | None = None  # of the motion that counts; None: all of it
    ramp: float = 2.0  # of a smooth start and stop, where the motion has none
    loop: Loop = field(default_factory=Loop)
    afterwards: float = 0.0  # of standing at the end that counts too
    settling: float = SETTLING  # of standing at the start before anything counts


@dataclass(frozen=True, eq=False)
class Outcome:
    """One run; the times and errors are those that count, without settling and ramps."""

    times: Array  # (N,) [s] of the motion
    errors: Array  # (N, k) of the coordinates, the joints of a tree [rad or m]
    positions: Array  # (N, k) of the coordinates [rad or m]
    motor_positions: Array  # (N, motors) reflected to the links [rad or m]
    saturated: int  # samples in which a motor was at its limit
    record: LoopRecord | None = None  # the whole run, with its settling
    stopped: str = ""  # why the guard stopped the motion, where it did, after which errors say nothing

    @property
    def rms(self) -> float:
        """Root of the mean square over instants and coordinates."""
        return float(np.sqrt(np.mean(self.errors**2)))

    @property
    def largest(self) -> float:
        """The largest error of any coordinate."""
        return float(np.abs(self.errors).max())


class TrackingStudy:
    """Runs of one motion with one model; `modes` are those that its drives allow.

    `real` is the robot that runs, where it is another one than its model says; errors come on top of it.
    `motion` of the joints that are coordinates, and of a platform or of a base, which moves as it says
    without error. `added(time, order=k)` are efforts (k + 1, motors) beside the feedforward, by the
    time [s] of the motion. Raises InputError for a robot without drives, and for a motion without end.
    """

    def __init__(
        self,
        model: Robot,
        motion: Trajectory | RobotMotion,
        config: StudyConfig,
        real: Robot | None = None,
        added: Callable[..., Array] | None = None,
    ) -> None:
        duration, ramp, loop, settling = config.duration, config.ramp, config.loop, config.settling
        train, moved = model.require_drives(), RobotMotion.of(motion)
        if train.commanded.any():
            joint = train.joint_names[int(train.commanded.argmax())]
            raise InputError(f"joint {joint!r} has a variable stiffness, which is not simulated here")
        if moved.moves_base and not model.moves_base:
            raise InputError(
                f"the motion moves a platform or a floating base, and robot {model.name!r} has none"
            )
        if model.moves_base and not moved.moves_base:
            raise InputError(f"the motion does not move the base or platform of robot {model.name!r}")
        moved = moved.for_joints(model.joint_names)
        own = moved.trajectory
        if duration is None and np.isinf(own.duration):
            raise InputError("the motion has no end; say with --duration how many seconds count")
        law = FeedforwardModel(model, loop.order)
        if real is not None and real.joint_names != model.joint_names:
            raise InputError(
                f"the real robot has the joints {list(real.joint_names)}, its model {list(model.joint_names)}"
            )
        self._real = model if real is None else real
        self._model, self._train, self._loop, self._orders = model, train, loop, law.motion_orders
        self._motion = moved.rest_to_rest(ramp, duration, law.motion_orders - 1)
        self._begin = 0.0 if own.starts_at_rest else ramp
        self._settling, self._added = settling, added
        self._length = (own.duration if duration is None else duration) + config.afterwards
        self.modes = tuple(FeedforwardMode) if train.linear_springs else (FeedforwardMode.ELASTIC,)
        self._gains = MotorGains.of_drives(train, loop.natural_frequency, loop.damping_ratio)
        self._effort_limits = train.effort_limits(model.limits.effort)
        count = round((settling + self._motion.trajectory.duration + config.afterwards) * loop.rate)
        desired = self._desired(np.arange(count + 1) / loop.rate)
        self._base_at = lru_cache(maxsize=_BASES)(self._base)  # all runs ask for the same instants
        links = Links(model, self._base_at)
        self._wanted = np.stack([links.coordinates(*each)[0] for each in desired])
        self._feedforwards: list[Feedforward] = [law.compute(*each) for each in desired]

    def _desired(self, times: Array) -> list[tuple[Array, BaseMotion | None]]:
        """Return the motion of joints and base at times (N,) of the run, held at the start."""
        samples = self._motion.sample(np.maximum(times - self._settling, 0.0), self._orders - 1)
        desired: list[tuple[Array, BaseMotion | None]] = []
        for i, time in enumerate(times):
            sample = samples.one(i).at_rest() if time <= self._settling else samples.one(i)
            desired.append((sample.joints, sample.base and sample.base.in_representation("spatial")))
        return desired

    def _base(self, time: float) -> BaseMotion:
        base = self._desired(np.array([time]))[0][1]
        assert base is not None
        return base

    def run(
        self,
        errors: RobotErrors,
        mode: FeedforwardMode,
        progress: Callable[[float], None] | None = None,
        simulator: Callable[[RobotSimulation], Simulated] | None = None,
    ) -> Outcome:
        """Let a robot with errors follow the motion.

        `simulator` makes another simulation of the robot as it is at rest before the motion. Warns
        (FigureWarning) of a robot that its weight tips, as feedback is too soft, and of one that feedback
        swings up, as it is too slow.
        """
        robot, loop = errors.applied(self._real), self._loop
        train = robot.require_drives()
        warn_if_tipped(robot, train, self._gains)
        feedback = LateFeedback.of_robot(robot, train, self._gains, 1.0 / loop.rate, loop.damping_time)
        if feedback is not None and (line := feedback.swings_up(robot)):
            warnings.warn(line, FigureWarning, stacklevel=2)
        damping = train.damping(loop.damping_time)
        base = self._base_at if robot.moves_base else None
        own = RobotSimulation(robot, self._wanted[0], damping=damping, base=base)
        simulation = own if simulator is None else simulator(own)
        guard = CommandGuard(
            robot.driven_joints, _tolerant(loop.rate), GuardLimits(effort=self._effort_limits), self._gains
        )

        def reference(time: float) -> Reference:
            follow = motor_reference(mode, self._train, self._feedforwards[round(time * loop.rate)])
            if self._added is None or not len(follow.efforts):
                return follow
            more = self._added(time - self._settling, order=len(follow.efforts) - 1)
            return follow._replace(efforts=follow.efforts + more)

        control = GuardedController(guard, reference)
        duration = (len(self._feedforwards) - 1) / loop.rate
        record = run_loop(simulation, control, duration, 1.0 / loop.rate, progress=progress)
        times = record.times - self._settling - self._begin
        counted = (times >= 0.0) & (times <= self._length + 0.5 / loop.rate)
        positions = record.positions[counted]
        missed = positions - self._wanted[counted]
        motors = record.motor_positions[counted]
        stopped = why_stopped(guard.transitions)
        return Outcome(times[counted], missed, positions, motors, control.saturated, record, stopped)


def why_stopped(changes: Iterable[Transition]) -> str:
    """Return why a guard has stopped a motion first, or has let go without a stop; empty where it has not."""
    ends = (str(change.reason) for change in changes if change.before.follows and not change.after.follows)
    return next(ends, "")


def _tolerant(rate: float) -> GuardConfig:
    """Return a guard's configuration under which errors are measured, and not stopped for."""
    return GuardConfig(
        timeout=min(max(0.05, 2.0 / rate), 1.0),
        measured=True,
        measurement_timeout=max(0.05, 2.0 / rate),
        lead=0.5 / rate,
        join_within=0.0,
        settle=0.0,
        drive_timeout=max(0.1, 4.0 / rate),
        tracking_error=1e3,
        resolution=1e9,
        reference_step=1e9,
        effort_step=1e6,
        saturation_time=1e3,
        stop_on=Status.OK,
    )


def all_runs(
    study: TrackingStudy, cases: Sequence[RobotErrors], progress: Callable[[float], None] | None = None
) -> list[dict[FeedforwardMode, Outcome]]:
    """Return the outcome of each mode for each case."""
    total, done = len(cases) * len(study.modes), 0
    runs = []
    for case in cases:
        outcomes = {}
        for mode in study.modes:

            def tell(share: float, before: int = done) -> None:
                if progress is not None:
                    progress((before + share) / total)

            outcomes[mode] = study.run(case, mode, tell)
            done += 1
        runs.append(outcomes)
    return runs
