"""A guard, what feeds it, and the robot that it commands, in virtual time: faults can be put between them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.feedforward.extrapolation import motor_effort_series
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.guard.command_guard import CommandGuard, GuardedCommand
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig, StreamError, Transition
from hodyn_ros.guard.guarded_robot import effort_model, guard_limits
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec, series_elastic
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory.rest import through_points

Array = NDArray[np.float64]

MS = 1_000_000  # [ns]
EPOCH = 1_700_000_000 * 1000 * MS
BEGIN = 200  # [ms] when the motion begins
FAULT_AT = 1000  # [ms] when most faults begin, at four fifths of the highest speed
LASTS = 2.0  # [s] the motion
SILENCES = (50, 500, 2500, 5000)  # [ms] without feedforwards, which faults begin with
HOME = np.array([-0.7, -0.6, -0.6, -2.4, -0.7, 1.0, -0.6])
MOVE = np.array([1.38, 0.9, 1.2, 1.2, 1.4, 1.5, 1.6])
DRIVE_FREQUENCY = 50.0  # [rad/s] of the position loop of a drive that takes references
INTEGRAL = 10.0  # [1/s] of the same, times its gain
DRIVE_TIMEOUT = 0.1  # [s] without a command, after which the driver of motor efforts brakes
VISCOUS = 10.0  # [1/s] times the inertia of the motor: friction of the drives that take link efforts


@dataclass(frozen=True)
class Consumer:
    """Who commands the robot, and what carries the commands out."""

    name: str
    kind: str  # "motors" (efforts of motors, feedback here), "efforts" or "references"
    end: End
    model: bool = True

    @property
    def feedback(self) -> bool:
        return self.kind == "motors"


CONTROLLER = Consumer("controller", "motors", End.HOLD)
EFFORTS = Consumer("forward efforts", "efforts", End.ZERO)
EFFORTS_HELD = Consumer("forward efforts, hold", "efforts", End.HOLD)
EFFORTS_BARE = Consumer("forward efforts, no model", "efforts", End.ZERO, model=False)
EFFORTS_BARE_HELD = Consumer("forward efforts, no model, hold", "efforts", End.HOLD, model=False)
REFERENCES = Consumer("motor references", "references", End.HOLD)


@cache
def robot_of(kind: str) -> Robot:
    """The Panda; one with rigid drives that have friction and carry the weight themselves for "efforts"."""
    path = share.find("config", "panda.yaml")
    panda = Robot.from_config(path)
    if kind != "efforts":
        return panda
    weightless, inertia = Robot.from_config(path, gravity=[0.0, 0.0, 0.0]), panda.drive_train.motor_inertia
    specs = [DriveSpec(np.inf, b, motor_friction=FrictionSpec(float(VISCOUS * b), 0.0)) for b in inertia]
    return weightless.with_drives(specs)


@cache
def _simulation(kind: str) -> RobotSimulation:
    """To be copied, as it takes a while to compile; friction is the bench's to add."""
    robot = robot_of(kind)
    train = robot.require_drives()
    plain = robot.with_drives(series_elastic(train.stiffness, train.motor_inertia))
    simulation = RobotSimulation(plain, HOME, damping=train.damping(2e-4))
    simulation.warm_up()
    return simulation


def resting(kind: str, position: Array) -> RobotSimulation:
    """The robot at rest, its motors where springs hold its weight."""
    new = copy.copy(_simulation(kind))
    new.stand(position)
    return new


@cache
def _series(kind: str) -> list[Reference]:
    """What is to be followed each half of a millisecond of the motion."""
    motion = through_points(np.array([0.0, LASTS]), np.stack([HOME, HOME + MOVE]))
    q = np.stack([motion.sample(t, 4) for t in np.arange(0.0, LASTS + 1e-9, 5e-4)])
    return references_of(kind, q)


def references_of(kind: str, q: Array) -> list[Reference]:
    """What is to be followed for link motions (N, 5, n)."""
    robot = robot_of(kind)
    torques = robot.inverse_dynamics(q)
    motors = robot.drive_train.feedforward(q, torques)
    rows = zip(torques, motors.position, motors.effort)
    found = [Feedforward(*row, np.empty((0, 6))) for row in rows]
    return [Reference(one.motor_positions, motor_effort_series(one)) for one in found]


def at_rest(kind: str, position: Array) -> Reference:
    return references_of(kind, np.stack([position, *np.zeros((4, len(position)))])[None])[0]


def sound(kind: str, k: float) -> Reference:
    """What is to be followed k [ms] after the beginning of a run, half ones too."""
    rows = _series(kind)
    return rows[int(min(max(round(2.0 * (k - BEGIN)), 0), len(rows) - 1))]


@cache
def peak_effort(kind: str) -> float:
    return float(max(np.abs(reference.efforts[0]).max() for reference in _series(kind)))


class Feed(NamedTuple):
    stamp: int
    reference: Reference
    status: Status = Status.OK


class Measured(NamedTuple):
    stamp: int
    position: Array
    velocity: Array | None


@dataclass
class Moment:
    """What comes in one millisecond, for a fault to change."""

    k: int  # [ms]
    now: int
    feed: list[Feed]
    measured: list[Measured]
    runs: bool = True  # whether the process of the guard does
    time_goes_on: bool = True  # for the robot
    stop: bool = False  # the process is told to end
    listening: bool = True


Inject = Callable[["Bench", Moment], None]


@dataclass
class Record:
    """What reached the motors, a row each millisecond."""

    efforts: list[Array] = field(default_factory=list)  # as the drives hold them
    commands: list[GuardedCommand | None] = field(default_factory=list)
    shares: list[Array] = field(default_factory=list)  # speeds of the links by their limits
    errors: list[float] = field(default_factory=list)  # [rad] from the desired motion
    steps: list[float] = field(default_factory=list)  # [N.m] between two commands
    position_steps: list[float] = field(default_factory=list)  # share of what the limit of the speed allows
    transitions: list[Transition] = field(default_factory=list)
    streams: list[Moment] = field(default_factory=list)

    @property
    def step(self) -> float:
        return max(self.steps, default=0.0)

    @property
    def share(self) -> float:
        return float(np.max(self.shares))

    def standstill(self, since: int) -> float | None:
        """Return how long [s] after a sample the robot stands for good, None where it does not."""
        moving = np.flatnonzero(np.array(self.shares).max(axis=1) > 0.01)
        last = int(moving[-1]) + 1 if len(moving) else 0
        return None if last >= len(self.shares) else 1e-3 * max(last - since, 0)


class Bench:
    """A consumer and its robot; `off` (n,) [rad] is how far it stands from where the motion begins."""

    def __init__(self, consumer: Consumer, off: Array | float = 0.0, **config: Any) -> None:
        _kind, robot = consumer.kind, robot_of(consumer.kind)
        names = robot.joint_names
        inertia = robot_of("motors").drive_train.motor_inertia
        own: dict[str, Any] = {"lead": 0.0005, "end": consumer.end}
        if consumer.feedback:
            own["measured"] = True
        else:
            own |= {"measurement_timeout": 0.5, "first_effort": FirstEffort.ZERO}
        self.consumer, self.robot = consumer, robot
        self.guard = CommandGuard(
            names,
            GuardConfig(**{**own, **config}),
            guard_limits(robot, names, motor=True),
            MotorGains.from_frequency(inertia, 30.0, 1.0) if consumer.feedback else None,
            effort_model(robot, names, motor=True) if consumer.model else None,
        )
        self.simulation = resting(self.kind, HOME + off)
        self.gains = MotorGains.from_frequency(inertia, DRIVE_FREQUENCY, 1.0)
        self.viscous = VISCOUS * inertia
        self.stands_at = self.simulation.motor_position
        self.integral = np.array(self.simulation.gravity_effort())
        self.k = 0
        self.record = Record()
        self.last: GuardedCommand | None = None
        self.held: Array | None = None  # efforts that the drives hold; None: brakes
        self.silent_for = 0  # [ms]
        self._stand_by()

    def copy(self) -> Bench:
        """Return one that goes on from here on its own, with a new record."""
        new = copy.copy(self)
        new.guard = copy.deepcopy(self.guard)
        new.simulation = copy.copy(self.simulation)
        new.record = Record()
        return new

    def fork(self) -> Bench:
        """Return one that goes on from here on its own, with what has been recorded so far."""
        new = self.copy()
        new.record = Record(**{name: list(rows) for name, rows in vars(self.record).items()})
        return new

    @property
    def kind(self) -> str:
        return self.consumer.kind

    def measurement(self, now: int) -> Measured:
        robot = self.simulation
        if self.kind == "motors":
            return Measured(now, robot.motor_position, robot.motor_velocity)
        return Measured(now, robot.position, robot.velocity)

    def run(self, until: int, inject: Inject | None = None) -> Bench:
        """Go on to a millisecond."""
        while self.k < until:
            now = EPOCH + self.k * MS
            moment = Moment(self.k, now, [Feed(now, sound(self.kind, self.k))], [self.measurement(now)])
            if inject is not None:
                inject(self, moment)
            self.record.streams.append(moment)
            if moment.runs:
                self._carry_out(act(self.guard, moment), moment.listening)
                self.record.transitions += self.guard.transitions
                self.guard.transitions.clear()
            else:
                self.record.commands.append(None)
            self._advance(moment)
            self.k += 1
        return self

    def _carry_out(self, command: GuardedCommand | None, listening: bool) -> None:
        """What the driver does with a command, or with none."""
        self.record.commands.append(command)
        if command is None:
            if not listening or (self.guard.ended and self.kind == "motors"):
                self._stand_by()
            return
        self.silent_for = 0
        before = self.held if self.last is None else self.last.effort
        if before is not None:
            self.record.steps.append(float(np.abs(command.effort - before).max()))
        if self.last is not None:
            step = np.abs(command.position - self.last.position)
            self.record.position_steps.append(float((step / self.robot.limits.velocity).max()) * 1e3)
        self.last, self.held = command, command.effort

    def _stand_by(self) -> None:
        """Nothing is commanded: brakes, no efforts, or a drive that stays where it has been sent last."""
        self.held = None if self.kind == "motors" else np.zeros(self.robot.n_joints)
        if self.last is not None:
            self.stands_at = self.last.position
        self.last = None

    def _time_out(self) -> None:
        """The driver has waited for long enough: it brakes, or lets go where that is what stops it."""
        self.held = None if self.kind == "motors" else np.zeros(self.robot.n_joints)
        if self.kind == "references" and self.last is not None:
            self.stands_at = self.last.position
            self.last = self.last._replace(velocity=np.zeros(7))

    def _advance(self, moment: Moment) -> None:
        robot, held = self.simulation, self.held
        self.silent_for += 1
        if not self.guard.ended and self.silent_for > 1e3 * DRIVE_TIMEOUT and self.held is not None:
            self._time_out()
            held = self.held
        if held is None:  # brakes
            if robot.velocity.any():
                self.simulation = robot = resting(self.kind, robot.position)
        elif moment.time_goes_on:
            if self.kind == "efforts":
                held = held - self.viscous * robot.velocity
            elif self.kind == "references":
                held = held + self._drive_loop()
            robot.advance(1e-3, held)
        self.record.efforts.append(np.zeros(7) if self.held is None else self.held)
        self.record.shares.append(np.abs(robot.velocity) / self.robot.limits.velocity)
        wanted = sound(self.kind, self.k + 1).positions[0]
        there = robot.position if self.kind == "efforts" else robot.motor_position
        self.record.errors.append(float(np.abs(wanted - there).max()))

    def _drive_loop(self) -> Array:
        """The efforts of a loop of the drives around what they have been told last."""
        robot, gains, told = self.simulation, self.gains, self.last
        position = self.stands_at if told is None else told.position
        velocity = 0.0 if told is None else told.velocity
        off = position - robot.motor_position
        self.integral = self.integral + 1e-3 * INTEGRAL * gains.proportional * off
        found: Array = (
            self.integral + gains.proportional * off + gains.derivative * (velocity - robot.motor_velocity)
        )
        return found


def act(guard: CommandGuard, moment: Moment) -> GuardedCommand | None:
    """One cycle of a consumer."""
    guard.listening = moment.listening
    if moment.stop:
        guard.stop()
    for feed in moment.feed:
        with suppress(StreamError):
            guard.follow(moment.now, *feed)
    for measured in moment.measured:
        with suppress(StreamError):
            guard.measure(moment.now, *measured)
    return guard.command(moment.now)


@cache
def sound_bench(consumer: Consumer) -> Bench:
    """A run up to where most faults begin; to be copied."""
    return Bench(consumer).run(FAULT_AT)


class Outcome(NamedTuple):
    """What a fault has led to."""

    bench: Bench
    before: CommandGuard  # as it was before the first of the streams in the record

    @property
    def states(self) -> list[str]:
        return [change.after.value for change in self.bench.record.transitions]


def silence(moment: Moment) -> None:
    """No feedforward comes."""
    moment.feed = []


@cache
def silent_bench(consumer: Consumer, lasts: int) -> Bench:
    """A run without feedforwards from where most faults begin; its record begins there. To be forked."""
    shorter = max((length for length in SILENCES if length < lasts), default=None)
    bench = sound_bench(consumer).copy() if shorter is None else silent_bench(consumer, shorter).fork()
    return bench.run(FAULT_AT + lasts, lambda _, moment: silence(moment))


def outcome(
    consumer: Consumer, inject: Inject, lasts: int, begins: int, off: Array | float, silent: int = 0
) -> Outcome:
    """Let a fault happen; the record begins where it does.

    The first `silent` milliseconds, one of SILENCES, no feedforward comes; faults share this part.
    """
    if not begins:
        bench = Bench(consumer, off)
        before = copy.deepcopy(bench.guard)
    else:
        before = copy.deepcopy(sound_bench(consumer).guard)
        bench = silent_bench(consumer, silent).fork() if silent else sound_bench(consumer).copy()
    return Outcome(bench.run(FAULT_AT + lasts, inject), before)


def replayed(found: Outcome, lasts: int) -> list[GuardedCommand | None]:
    """Return what the guard alone commands, given the same streams again, for `lasts` [ms]."""
    guard, streams = copy.deepcopy(found.before), found.bench.record.streams[:lasts]
    return [act(guard, moment) if moment.runs else None for moment in streams]
