"""How well a robot follows a motion with each kind of feedforward, when it is not quite as modelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.control.closed_loop import GuardedController, Simulated, run_loop
from hodyn_ros.control.command_guard import CommandGuard
from hodyn_ros.control.drive_simulation import RobotSimulation, simulation_of
from hodyn_ros.control.feedforward import Feedforward, Status
from hodyn_ros.control.guard_config import GuardConfig, GuardLimits
from hodyn_ros.control.law import FeedforwardLaw
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.model_errors import with_scaled_inertia, with_stiffness
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.control.payload import Payload
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.se3 import Array
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.rest import rest_to_rest

SETTLING = 1.0  # [s] for which the first position is held before the motion starts
_ORDER = 2  # of the feedforward, what springs need


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
        if self.stiffness and model.drives is not None:
            if any(spec.spring_table or spec.variable_stiffness for spec in model.drive_specs or ()):
                raise InputError(
                    "springs with a table, or of variable stiffness, have no stiffness to be wrong"
                )
            robot = with_stiffness(robot, model.drives.stiffness * (1.0 + self.stiffness))
        if self.inertia:
            robot = with_scaled_inertia(robot, 1.0 + self.inertia)
        if self.payload:
            loaded = Payload(self.payload).on_tree(robot)
            robot = Robot(loaded, robot.limits, robot.drives, robot.frames, robot.drive_specs)
        return robot


@dataclass(frozen=True)
class Loop:
    """How the motors are controlled: as `controller_node` does."""

    rate: float = 1000.0  # [Hz]
    natural_frequency: float = 30.0  # [rad/s] of the feedback on each motor
    damping_ratio: float = 1.0
    damping_time: float = 2e-4  # [s] of the simulated springs, damping over stiffness; assumed


@dataclass(frozen=True, eq=False)
class Outcome:
    """One run; the times and errors are those that count, without settling and ramps."""

    times: Array  # (N,) [s] of the motion
    errors: Array  # (N, n) [rad or m] of the links
    saturated: int  # samples in which a motor was at its limit

    @property
    def rms(self) -> float:
        """Root of the mean square over instants and joints."""
        return float(np.sqrt(np.mean(self.errors**2)))

    @property
    def largest(self) -> float:
        """The largest error of any joint."""
        return float(np.abs(self.errors).max())


class TrackingStudy:
    """Runs of one motion with one model; `modes` are those that its drives allow.

    `motion` of the joints, which gets a smooth start and stop of `ramp` [s] where it has none; `duration` [s]
    of it counts, None for all. Raises InputError for a robot without drives, and for a motion without end.
    """

    def __init__(
        self, model: Robot, motion: Trajectory, duration: float | None, ramp: float, loop: Loop
    ) -> None:
        train = model.drive_train
        if train is None:
            raise InputError(f"robot {model.name!r} has no drives; describe them in its file")
        if train.commanded.any():
            joint = train.joint_names[int(train.commanded.argmax())]
            raise InputError(f"joint {joint!r} has a variable stiffness, which is not simulated here")
        if duration is None and np.isinf(motion.duration):
            raise InputError("the motion has no end; say with --duration how many seconds count")
        law = FeedforwardLaw(model, _ORDER)
        self._model, self._loop = model, loop
        self._motion = rest_to_rest(motion, ramp, duration, law.motion_orders - 1)
        self._begin = 0.0 if motion.starts_at_rest else ramp
        self._length = motion.duration if duration is None else duration
        self.modes = tuple(FeedforwardMode) if model.actuation is not None else (FeedforwardMode.ELASTIC,)
        self._gains = MotorGains.from_frequency(
            train.motor_inertia, loop.natural_frequency, loop.damping_ratio
        )
        self._effort_limits = train.effort_limits(model.limits.effort)
        count = round((SETTLING + self._motion.duration) * loop.rate)
        times = np.maximum(np.arange(count + 1) / loop.rate - SETTLING, 0.0)
        samples = self._motion.sample(times, law.motion_orders - 1)
        samples[times == 0.0, 1:] = 0.0  # held
        self._positions = samples[:, 0]
        self._feedforwards: list[Feedforward] = [law(np.ascontiguousarray(sample)) for sample in samples]

    def run(
        self, errors: RobotErrors, mode: FeedforwardMode, progress: Callable[[float], None] | None = None
    ) -> Outcome:
        """Let a robot with errors follow the motion."""
        robot, loop = errors.applied(self._model), self._loop
        stiffness = np.zeros(robot.n_joints) if robot.drives is None else robot.drives.stiffness
        damping = np.where(np.isfinite(stiffness), stiffness, 0.0) * loop.damping_time
        simulation = _Measured(simulation_of(robot, self._positions[0], damping=damping))
        guard = CommandGuard(
            robot.joint_names, _tolerant(loop.rate), GuardLimits(effort=self._effort_limits), self._gains
        )

        def reference(time: float) -> Reference:
            return motor_reference(mode, self._model.actuation, self._feedforwards[round(time * loop.rate)])

        control = GuardedController(guard, reference)
        duration = (len(self._feedforwards) - 1) / loop.rate
        record = run_loop(simulation, control, duration, 1.0 / loop.rate, progress=progress)
        times = record.times - SETTLING - self._begin
        counted = (times >= 0.0) & (times <= self._length + 0.5 / loop.rate)
        return Outcome(times[counted], (record.positions - self._positions)[counted], control.saturated)


def _tolerant(rate: float) -> GuardConfig:
    """Return a guard's configuration under which errors are measured, and not stopped for."""
    return GuardConfig(
        timeout=max(0.05, 2.0 / rate),
        measured=True,
        measurement_timeout=max(0.05, 2.0 / rate),
        lead=0.5 / rate,
        join_within=0.0,
        settle=0.0,
        speed_margin=1e6,
        tracking_error=1e6,
        effort_step=1e9,
        saturation_time=1e9,
        stop_on=Status.OK,
    )


class _Measured(Simulated):
    """Any simulation, with its state as a measurement."""

    def __init__(self, simulation: RobotSimulation) -> None:
        self._simulation = simulation

    @property
    def measurement(self) -> Measurement:
        """The exact state."""
        robot = self._simulation
        return Measurement(robot.position, robot.velocity, robot.motor_position, robot.motor_velocity)

    def advance(self, duration: float, effort: Array) -> None:
        """Let time [s] pass under efforts (n,)."""
        self._simulation.advance(duration, effort)


def all_runs(
    study: TrackingStudy, cases: Sequence[RobotErrors], progress: Callable[[float], None] | None = None
) -> list[dict[FeedforwardMode, Outcome]]:
    """Return the outcome of each mode for each case."""
    total, done = len(cases) * len(study.modes), 0
    found = []
    for case in cases:
        outcomes = {}
        for mode in study.modes:

            def tell(share: float, before: int = done) -> None:
                if progress is not None:
                    progress((before + share) / total)

            outcomes[mode] = study.run(case, mode, tell)
            done += 1
        found.append(outcomes)
    return found
