"""A guard, what feeds it, and the robot that it commands, in virtual time: faults can be put between them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from fault_plant import SOUND, Differences, block, friction, resting, weight

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains, Reference, spring_deflections
from hodyn_ros.feedforward.extrapolation import motor_effort_series
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.guard.command_guard import CommandGuard, GuardedCommand
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig, State, StreamError, Transition
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.uncertainty import RobotUncertainty
from hodyn_ros.trajectory.rest import through_points

MS = 1_000_000  # [ns]
EPOCH = 1_700_000_000 * 1000 * MS
BEGIN = 200  # [ms] when the motion begins
FAULT_AT = 1000  # [ms] when most faults begin, at four fifths of the highest speed
LASTS = 2.0  # [s] the motion
SILENCES = (50, 500, 2500)  # [ms] without feedforwards, which faults begin with
HOME = np.array([-0.7, -0.6, -0.6, -2.4, -0.7, 1.0, -0.6])
MOVE = np.array([1.38, 0.9, 1.2, 1.2, 1.4, 1.5, 1.6])
DRIVE_FREQUENCY = 50.0  # [rad/s] of the position loop of a drive that takes references
INTEGRAL = 10.0  # [1/s] of the same, times its gain
DRIVE_TIMEOUT = 0.1  # [s] without a command, after which the driver of motor efforts brakes
VISCOUS = 10.0  # [1/s] times the inertia of the motor: friction of the drives that take link efforts
TRANSITION = 0.05  # [rad/s] of Coulomb friction


@dataclass(frozen=True)
class Consumer:
    """Who commands the robot, and what carries the commands out."""

    name: str
    kind: str  # "motors" (efforts of motors, feedback here), "efforts" or "references"
    end: End
    model: bool = True
    viscous: float = 0.0  # [1/s] times the inertia of the motors: friction that the robot's file knows
    coulomb: float = 0.0  # [1/s^2] likewise
    payload: float = 0.0  # [kg] that the robot's file allows

    def __str__(self) -> str:
        return self.name

    @property
    def feedback(self) -> bool:
        return self.kind == "motors"


CONTROLLER = Consumer("controller", "motors", End.HOLD)
EFFORTS = Consumer("forward efforts", "efforts", End.ZERO, viscous=VISCOUS)
EFFORTS_HELD = Consumer("forward efforts, hold", "efforts", End.HOLD, viscous=VISCOUS)
EFFORTS_BARE = Consumer("forward efforts, no model", "efforts", End.ZERO, model=False, viscous=VISCOUS)
EFFORTS_BARE_HELD = Consumer("forward efforts, no model, hold", "efforts", End.HOLD, False, VISCOUS)
REFERENCES = Consumer("motor references", "references", End.HOLD)


@cache
def robot_of(kind: str, viscous: float | None = None, coulomb: float = 0.0, payload: float = 0.0) -> Robot:
    """The Panda; one with rigid drives that have friction and carry the weight themselves for "efforts".

    `viscous` [1/s] and `coulomb` [1/s^2] times the inertia of the motors: friction of its drives. It may
    carry a `payload` [kg] besides.
    """
    if viscous is None:
        viscous = VISCOUS if kind == "efforts" else 0.0
    path = share.find("config", "panda.yaml")
    panda = Robot.load(path)
    train = panda.require_drives()
    if kind != "efforts" and not viscous and not coulomb and not payload:
        return panda
    stiffness = np.full(7, np.inf) if kind == "efforts" else train.stiffness
    rubs = [FrictionSpec(float(viscous * b), float(coulomb * b), TRANSITION) for b in train.motor_inertia]
    rows = zip(stiffness, train.motor_inertia, rubs)
    specs = [DriveSpec(float(k), float(b), motor_friction=each) for k, b, each in rows]
    plain = Robot.load(path, gravity=[0.0, 0.0, 0.0]) if kind == "efforts" else panda
    uncertainty = RobotUncertainty(payload=payload)
    return Robot(plain.tree, plain.limits, specs, plain.frames, uncertainty=uncertainty)


def robot_for(consumer: Consumer) -> Robot:
    """The robot as the guard of a consumer knows it."""
    return robot_of(consumer.kind, consumer.viscous, consumer.coulomb, consumer.payload)


@cache
def _series(robot: Robot) -> list[Reference]:
    """What is to be followed each half of a millisecond of the motion."""
    motion = through_points(np.array([0.0, LASTS]), np.stack([HOME, HOME + MOVE]))
    q = motion.sample(np.arange(0.0, LASTS + 1e-9, 5e-4), 4)
    return references_of(robot, q)


def references_of(robot: Robot, q: Array) -> list[Reference]:
    """What is to be followed for link motions (N, 5, n)."""
    torques = robot.inverse_dynamics(q)
    motors = robot.drive_train.feedforward(q, torques)
    rows = zip(torques, motors.position, motors.effort)
    found = [Feedforward(*row, np.empty((0, 6))) for row in rows]
    return [
        Reference(one.motor_positions, motor_effort_series(one), spring_deflections(robot.drive_train, one))
        for one in found
    ]


def at_rest(kind: str, position: Array) -> Reference:
    return references_of(robot_of(kind), np.stack([position, *np.zeros((4, len(position)))])[None])[0]


def sound(kind: str, k: float) -> Reference:
    """What is to be followed k [ms] after the beginning of a run, half ones too."""
    return motion_of(robot_of(kind), k)


def motion_of(robot: Robot, k: float) -> Reference:
    """The same of a robot with other drives."""
    rows = _series(robot)
    return rows[int(min(max(round(2.0 * (k - BEGIN)), 0), len(rows) - 1))]


@cache
def peak_effort(kind: str) -> float:
    return float(max(np.abs(reference.efforts[0]).max() for reference in _series(robot_of(kind))))


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
    elapsed: float | None = None  # [s] since the process of the guard ran last, by a clock that never steps
    start: bool = False  # the guard is asked to go on after a fault


Inject = Callable[["Bench", Moment], None]


@dataclass
class Record:
    """What reached the motors, a row each millisecond."""

    efforts: list[Array] = field(default_factory=list)  # as the drives hold them
    commands: list[GuardedCommand | None] = field(default_factory=list)
    shares: list[Array] = field(default_factory=list)  # speeds of the links by their limits
    errors: list[float] = field(default_factory=list)  # [rad] from the desired motion
    steps: list[float] = field(default_factory=list)  # [N.m] from what the drives hold to a command
    position_steps: list[float] = field(default_factory=list)  # share of what the limit of the speed allows
    trips: list[float] = field(default_factory=list)  # [N.m] as `steps`, of a guard that lets go at once
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
    """A consumer and its robot; `off` (n,) [rad] is how far it stands from where the motion begins.

    `differs`: how the robot differs from what the guard knows of it. The motion begins `delay` [ms] later.
    """

    def __init__(
        self,
        consumer: Consumer,
        off: Array | float = 0.0,
        *,
        differs: Differences = SOUND,
        delay: int = 0,
        **config: Any,
    ) -> None:
        robot = robot_for(consumer)
        names = robot.joint_names
        inertia = robot_of("motors").drive_train.motor_inertia
        efforts_act = consumer.kind == "efforts"  # alone: a loop of the drives would act beside them
        own: dict[str, Any] = {"lead": 0.0005, "end": consumer.end, "efforts_act": efforts_act}
        if consumer.feedback:
            own["measured"] = True
        else:
            own |= {"measurement_timeout": 0.5, "first_effort": FirstEffort.ZERO}
        self.consumer, self.robot = consumer, robot
        model = effort_model(robot, names, motor=True) if consumer.model else None
        self.guard = CommandGuard(
            names,
            GuardConfig(**{**own, **config}),
            guard_limits(robot, names, motor=True),
            MotorGains.from_frequency(inertia, 30.0, 1.0) if consumer.feedback else None,
            model,
            None if model is None else effort_observer(robot, names, model.links, motor=True),
        )
        self.differs, self.delay = differs, delay
        self.simulation = resting(self.kind, HOME + off, differs)
        self.gains = MotorGains.from_frequency(inertia, DRIVE_FREQUENCY, 1.0)
        self.viscous, self.coulomb = consumer.viscous * inertia, consumer.coulomb * inertia
        self.stands_at = self.simulation.motor_position
        self.integral = np.array(self.simulation.gravity_effort())
        self.k, self.ran_at = 0, -1  # [ms]
        self.tripped = False  # the guard has let go at once
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

    def sound(self, k: float) -> Reference:
        """What is to be followed k [ms] after the beginning."""
        return motion_of(self.robot, k - self.delay)

    def change(self, differs: Differences) -> None:
        """Let the robot differ otherwise from what the guard knows of it, from now on."""
        if self.held is None:  # brakes hold it meanwhile
            self.simulation = resting(self.kind, self.simulation.position, differs)
        else:
            self.simulation = differs.continued(self.kind, self.simulation, self.differs)
        self.differs = differs

    def run(
        self, until: int, inject: Inject | None = None, done: Callable[[Bench], bool] | None = None
    ) -> Bench:
        """Go on to a millisecond, or until it is done."""
        while self.k < until and not (done is not None and done(self)):
            now = EPOCH + self.k * MS
            moment = Moment(self.k, now, [Feed(now, self.sound(self.k))], [self.measurement(now)])
            moment.elapsed = 1e-3 * (self.k - self.ran_at) if self.ran_at >= 0 else None
            if inject is not None:
                inject(self, moment)
            self.record.streams.append(moment)
            if moment.runs:
                self.ran_at = self.k
                command = act(self.guard, moment)
                self._see(self.guard.transitions)
                self.record.transitions += self.guard.transitions
                self.guard.transitions.clear()
                self._carry_out(command, moment.listening)
            else:
                self.record.commands.append(None)
            self._advance(moment)
            self.k += 1
        return self

    def _see(self, changes: list[Transition]) -> None:
        for change in changes:
            self.tripped = change.reason.tripped or (self.tripped and change.after is not State.JOINING)

    def _carry_out(self, command: GuardedCommand | None, listening: bool) -> None:
        """What the driver does with a command, or with none."""
        self.record.commands.append(command)
        if command is None:
            if not listening or (self.guard.ended and self.kind == "motors"):
                self._stand_by()
            return
        period, self.silent_for = 1e-3 * max(self.silent_for, 1), 0  # [s] since the last command
        let_go = self.tripped and not command.effort.any()
        # brakes hold the weight
        before = weight(self.kind, self.simulation.position) if self.held is None else self.held
        step = float(np.abs(command.effort - before).max())
        (self.record.trips if let_go else self.record.steps).append(step)
        if self.last is not None:
            step_of_position = np.abs(command.position - self.last.position) / self.robot.limits.velocity
            self.record.position_steps.append(float(step_of_position.max()) / period)
        self.last, self.held = command, command.effort

    def _stand_by(self) -> None:
        """Nothing is commanded: brakes, no efforts, or a drive that stays where it has been sent last."""
        self.held = None if self.kind == "motors" else np.zeros(self.robot.n_coordinates)
        if self.last is not None:
            self.stands_at = self.last.position
        self.last = None

    def _time_out(self) -> None:
        """The driver has waited for long enough: it brakes, or lets go where that is what stops it."""
        self.held = None if self.kind == "motors" else np.zeros(self.robot.n_coordinates)
        if self.kind == "references" and self.last is not None:
            self.stands_at = self.last.position
            self.last = self.last._replace(velocity=np.zeros(7))

    def _advance(self, moment: Moment) -> None:
        self.silent_for += 1
        if self.silent_for > 1e3 * DRIVE_TIMEOUT and self.held is not None:
            self._time_out()
        robot, held = self.simulation, self.held
        if held is None:  # brakes
            if robot.velocity.any():
                self.simulation = robot = resting(self.kind, robot.position, self.differs)
        elif moment.time_goes_on:
            before = robot.state
            robot.advance(1e-3, self._at_the_motors(held))
            if self.differs.blocked:
                block(robot, before, self.differs.blocked)
        self.record.efforts.append(np.zeros(7) if self.held is None else self.held)
        self.record.shares.append(np.abs(robot.velocity) / self.robot.limits.velocity)
        wanted = self.sound(self.k + 1).positions[0]
        there = robot.position if self.kind == "efforts" else robot.motor_position
        self.record.errors.append(float(np.abs(wanted - there).max()))

    def _at_the_motors(self, held: Array) -> Array:
        """The efforts that act on the motors of this robot, for what its drives have been told."""
        effort = self.differs.delivered(held)
        if self.kind == "references":
            effort = effort + self._drive_loop()
            effort = np.clip(effort, -self.robot.limits.effort, self.robot.limits.effort)
        effort = np.clip(effort, -self.differs.cap, self.differs.cap)
        if self.differs.payload and self.kind == "efforts":
            effort = effort + robot_of("motors").gravity_torque(self.simulation.position[None])[0]
        rubs = friction(self.simulation.motor_velocity, self.viscous, self.coulomb, TRANSITION)
        return effort - self.differs.friction * rubs

    def _drive_loop(self) -> Array:
        """The efforts of a loop of the drives around what they have been told last."""
        robot, gains, told = self.simulation, self.gains, self.last
        position = self.stands_at if told is None else told.position
        velocity = 0.0 if told is None else told.velocity
        off = position - robot.motor_position
        limit = self.robot.limits.effort
        self.integral = np.clip(self.integral + 1e-3 * INTEGRAL * gains.proportional * off, -limit, limit)
        found: Array = (
            self.integral + gains.proportional * off + gains.derivative * (velocity - robot.motor_velocity)
        )
        return found


def act(guard: CommandGuard, moment: Moment) -> GuardedCommand | None:
    """One cycle of a consumer."""
    guard.listening = moment.listening
    if moment.stop:
        guard.stop()
    if moment.start:
        guard.start()
    for feed in moment.feed:
        with suppress(StreamError):
            guard.follow(moment.now, *feed)
    for measured in moment.measured:
        with suppress(StreamError):
            guard.measure(moment.now, *measured)
    return guard.command(moment.now, moment.elapsed)


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
    consumer: Consumer,
    inject: Inject,
    lasts: int,
    begins: int,
    off: Array | float,
    silent: int = 0,
    done: Callable[[Bench], bool] | None = None,
) -> Outcome:
    """Let a fault happen, for a time [ms] or until it is `done`; the record begins where it does.

    The first `silent` milliseconds, one of SILENCES, no feedforward comes; faults share this part.
    """
    if not begins:
        bench = Bench(consumer, off)
        before = copy.deepcopy(bench.guard)
    else:
        before = copy.deepcopy(sound_bench(consumer).guard)
        bench = silent_bench(consumer, silent).fork() if silent else sound_bench(consumer).copy()
    return Outcome(bench.run(FAULT_AT + lasts, inject, done), before)


def replayed(found: Outcome, lasts: int) -> list[GuardedCommand | None]:
    """Return what the guard alone commands, given the same streams again, for `lasts` [ms]."""
    guard, streams = copy.deepcopy(found.before), found.bench.record.streams[:lasts]
    return [act(guard, moment) if moment.runs else None for moment in streams]
