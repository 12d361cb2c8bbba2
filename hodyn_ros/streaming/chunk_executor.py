"""From chunks of a policy to what drives with position, velocity, gains and torque are sent, at any rate.

Chunks are checked, made into one motion that is continuous to its snap and within all limits of the robot,
and answered with what the motors need for it: where they are to be, how fast, and with what torque. Between
that and the drives stands the guard. No ROS, and no clock of its own: the same calls give the same commands.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains, Reference, spring_deflections
from hodyn_ros.control.standing import warn_if_tipped
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import FigureWarning, InputError
from hodyn_ros.feedforward.extrapolation import motor_effort_series
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import End, GuardConfig
from hodyn_ros.guard.guarded_robot import effort_model, guard_limits
from hodyn_ros.guard.reasons import State, StreamError
from hodyn_ros.planning.streams.stream_config import Mode, StreamConfig, Taken, checked
from hodyn_ros.planning.streams.stream_planner import StreamPlanner
from hodyn_ros.planning.streams.tracking_planner import TrackingPlanner
from hodyn_ros.planning.streams.uniform_spline import PlannedMotion
from hodyn_ros.streaming.chunk_bounds import ChunkBounds
from hodyn_ros.streaming.chunk_check import ChunkCheck

_ORDER = 2  # of the torques
_EPOCH = 1_000_000_000  # [ns] of the guard's clock at time 0: its zero means that there is no stamp
_SAGS = 3  # rounds in which the weight of links that have sagged is found
_HELD = (State.JOINING, State.FOLLOWING)
_UNCHECKED = 100.0  # [rad]: whether a chunk jumps, the check before the planner has seen


class DriveCommand(NamedTuple):
    """What drives are sent for one instant, (n,) each, all reflected to the link side.

    A drive makes `torque + kp (position - its own) + kd (velocity - its own)` of it. Read m and N for rad and
    N·m where a joint is prismatic.
    """

    position: Array  # [rad]
    velocity: Array  # [rad/s]
    kp: Array  # [N·m/rad]
    kd: Array  # [N·m·s/rad]
    torque: Array  # [N·m]


@dataclass(frozen=True)
class ExecutorConfig:
    """How chunks are followed, and what the guard allows.

    The guard wants measurements; the end of a stop is that the drives hold. Its `lead` is half of the period
    for which drives hold a command; at 0, links are late by that much.
    """

    stream: StreamConfig = field(default_factory=lambda: StreamConfig(Mode.TRACK))
    guard: GuardConfig = field(default_factory=lambda: GuardConfig(measured=True))
    reserve: float = 0.01  # [s] that planning may take

    def __post_init__(self) -> None:
        if self.guard.end is not End.HOLD or not self.guard.measured or self.guard.efforts_act:
            raise InputError(
                "drives that hold a position need a guard that measures (measured=True), holds at the end "
                "(end=End.HOLD) and leaves the feedback to them (efforts_act=False)"
            )


class ChunkExecutor:
    """Follows the chunks of a policy with an arm whose drives take position, velocity, gains and torque.

    Per cycle, in this order: `measure` with what the drives report; `take`, where a chunk has come; `command`
    for what they are sent. Instants are in seconds of one clock that never goes back, such as that of
    `time.monotonic`. `take` may be called from another thread than the rest, such as that of the policy: the
    motion until `reserve` from then on stays as it is, so that commands go on while it plans.

    The arm is held where it stands first, which takes the `settle` and `fade` of the guard; chunks that come
    meanwhile are not followed. Where the guard stops, the arm brakes and is held; `start` lets it follow
    again.

    `gains` are those of the drives; `bounds` what sound chunks do, by default what the robot's limits leave.
    Raises InputError for a robot with loops, with a base that moves, or with two motors for a joint; and
    `command` at first for an arm that cannot stand where it does. Warns (FigureWarning) of a robot without
    drives, which is taken for stiff, and of one that its weight tips, as `gains` are too soft.

    Attributes:
        guard: Its state, why it is in it, and how often what has failed.
        check: How often chunks had which fault.
    """

    def __init__(
        self,
        robot: Robot,
        gains: MotorGains,
        bounds: ChunkBounds | None = None,
        config: ExecutorConfig | None = None,
    ) -> None:
        self.config = config or ExecutorConfig()
        if not robot.is_arm:
            raise InputError(
                f"robot {robot.name!r} has loops or a base that moves; drives are sent the motion of their "
                "joints, which is that of an arm alone. Use stream_node and dynamics_node"
            )
        self.joint_names = robot.driven_joints
        if gains.proportional.shape != (len(self.joint_names),):
            raise InputError(
                f"there are gains of {len(gains.proportional)} drives for {len(self.joint_names)} joints"
            )
        self._robot, self._gains, self._nothing = robot, gains, np.zeros(len(self.joint_names))
        self._model = FeedforwardModel(robot, _ORDER)
        self._model.warm_up()
        spacing = self.config.stream.spacing if bounds is None else bounds.spacing
        self.check = ChunkCheck(self.joint_names, bounds or ChunkBounds.of_robot(robot, spacing))
        motor = robot.drive_train is not None
        if not motor:
            warnings.warn(
                f"robot {robot.name!r} has no drives: its joints are taken for stiff, and torques leave out "
                "what rotors and friction need; give motor_inertia, stiffness and friction in a robot file",
                FigureWarning,
                stacklevel=2,
            )
        warn_if_tipped(robot, robot.drive_train, gains)
        # efforts come from the model itself, and need not be held against it
        limits = replace(guard_limits(robot, self.joint_names, motor=motor), mismatch=np.inf)
        model = effort_model(robot, self.joint_names, motor=motor)
        self.guard = CommandGuard(self.joint_names, self.config.guard, limits, model=model)
        self._planner: TrackingPlanner | StreamPlanner | None = None
        self._motion: PlannedMotion | None = None  # of the planner, when it planned last
        self._swapping = Lock()
        self._place = self._nothing  # where its motors were when it was made to stand
        self._may_begin = True  # to hold the arm where it stands: at first, and when asked to after a stop
        self._commanded: float | None = None

    @property
    def following(self) -> bool:
        """Whether chunks are followed: the arm is held, and nothing has failed."""
        return self._planner is not None and self.guard.state is State.FOLLOWING

    # what comes in

    def measure(self, now: float, position: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Take positions and velocities (n,) that the drives have reported [rad, rad/s].

        What contradicts what came before is not used, and stops the arm.
        """
        where = np.asarray(position, dtype=np.float64)
        speed = None if velocity is None else np.asarray(velocity, dtype=np.float64)
        with suppress(StreamError):  # the guard stops, and says why
            self.guard.measure(_instant(now), _instant(now), where, speed)

    def take(self, times: ArrayLike, positions: ArrayLike, now: float) -> Taken | None:
        """Take a chunk: points at `times` (N,) [s] that want `positions` (N, n) [rad].

        Return what has become of it; None while the arm is not ready to follow any. Raises ChunkError for one
        that is not sound and PointsError for one that cannot be meant; the motion before it then goes on, and
        comes to rest at its last point.
        """
        when, where = np.asarray(times, dtype=np.float64), np.asarray(positions, dtype=np.float64)
        if (
            when.shape != where.shape[:1]
            or where.shape != (len(when), len(self.joint_names))
            or not len(when)
        ):
            checked(when, where, self.joint_names, now)  # says what is wrong with it
        planner = self._planner
        if planner is None or not self.following:
            return None
        self.check(when, where)
        taken = planner.take(when, where, now, self.config.reserve)
        with self._swapping:
            if self._planner is planner:  # the arm has not stopped meanwhile
                self._motion = planner.motion
        return taken

    def start(self) -> None:
        """Follow again after a stop, from where the arm stands, as soon as it does."""
        self._may_begin = self.guard.start() or self._may_begin

    def stop(self) -> None:
        """Brake, and hold until the drives are on their own: no chunk is followed any more."""
        self.guard.stop()

    # what goes out

    def command(self, now: float) -> DriveCommand | None:
        """Return what the drives are to be sent now; None where they are to be sent nothing.

        That is before measurements have said where the arm stands, and after the end, when drives stop by
        themselves. Where the guard lets go, gains and torque are zero.
        """
        elapsed = None if self._commanded is None else now - self._commanded
        self._commanded = now
        self._stand_where_the_arm_does(now)
        if self._motion is not None:
            with suppress(StreamError):  # the guard stops, and says why
                self.guard.follow(_instant(now), _instant(now), *self._feedforward(self._motion, now))
        held = self.guard.state in _HELD
        command = self.guard.command(_instant(now), elapsed)
        if held and self.guard.state not in _HELD:
            with self._swapping:
                self._planner, self._motion, self._may_begin = None, None, False
        if command is None:
            return None
        if self.guard.reason.tripped:
            return DriveCommand(command.position, *(self._nothing,) * 4)
        gains = self._gains
        return DriveCommand(
            command.position, command.velocity, gains.proportional, gains.derivative, command.effort
        )

    def desired(self, now: float, order: int = 2) -> Array:
        """Return where the links are to be, with derivatives (order + 1, n); InputError where nothing is."""
        if self._motion is None:
            raise InputError("no motion is followed; the arm has stopped, or nothing was measured yet")
        return self._motion.sample([now], order)[0]

    def _stand_where_the_arm_does(self, now: float) -> None:
        """Make a motion that stands where the arm does, until the guard has joined it."""
        if not self._may_begin or self.guard.state not in (State.WAITING, State.STOPPED):
            return
        if self.guard.measured.stamp is None:
            return
        limits, guard, stream = self._robot.limits, self.config.guard, self.config.stream
        motors = self.guard.measured.position
        if self._planner is not None and np.abs(motors - self._place).max() <= 0.5 * guard.join_within:
            return
        place = np.clip(self._links_of(motors), limits.position_lower, limits.position_upper)
        kind = TrackingPlanner if stream.mode is Mode.TRACK else StreamPlanner
        planner = kind(self._robot, place, now, replace(stream, jump=_UNCHECKED))
        self.check.restart(place, now)
        self._planner, self._motion, self._place = planner, planner.motion, motors

    def _links_of(self, motors: Array) -> Array:
        """Return where links stand (n,) that motors at rest hold; springs bend under their weight."""
        links, rest = motors, np.zeros((self._model.motion_orders, len(motors)))
        for _ in range(_SAGS):
            rest[0] = links
            held = self._model.compute(rest).motor_positions
            links = motors - (held[0] - links) if len(held) else motors
        return links

    def _feedforward(self, planned: PlannedMotion, now: float) -> tuple[Reference, Status]:
        motion = planned.sample([now], self._model.motion_orders - 1)[0]
        feedforward = self._model.compute(motion)
        if len(feedforward.motor_positions):
            bent = spring_deflections(self._robot.drive_train, feedforward)
            reference = Reference(feedforward.motor_positions, motor_effort_series(feedforward), bent)
        else:
            reference = Reference(motion[: _ORDER + 1], feedforward.efforts)
        return reference, feedforward.status


def _instant(time: float) -> int:
    return _EPOCH + round(1e9 * time)
