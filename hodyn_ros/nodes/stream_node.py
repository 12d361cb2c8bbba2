"""stream_node: points that come as they like in, one smooth motion with all its derivatives out.

For policies, teleoperation and planners that replan: single points or chunks of them, late, early,
overlapping, missing, contradicting each other. The motion is continuous up to its snap, keeps all limits of
the robot and comes to rest at the last point when no more come, or when what comes cannot be followed.

Topics: `joint_trajectory` (trajectory_msgs/JointTrajectory) in, its points wanted at stamp + time_from_start,
their velocities and accelerations not looked at; `joint_targets` (sensor_msgs/JointState) in, wanted at their
stamp; for a robot that is moved by its platform `pose_targets` (geometry_msgs/PoseStamped) instead, poses of
that in the world; a stamp of zero is now. `joint_states` (sensor_msgs/JointState) in, with `wait_for_robot`.
`desired_motion` (DesiredMotion) out, the k-th sample stamped `origin + k / rate`; `/diagnostics` at 1 Hz.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.msg import DesiredMotion
from hodyn_ros.planning.streams.stream_config import Mode, PointsError, StreamConfig, Taken, Trouble
from hodyn_ros.planning.streams.stream_coordinates import StreamCoordinates
from hodyn_ros.planning.streams.stream_planner import StreamPlanner
from hodyn_ros.planning.streams.tracking_planner import TrackingPlanner
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.joint_state_buffer import JointStateBuffer
from hodyn_ros.ros.conversions.messages import (
    nanoseconds,
    read_joint_state,
    read_joint_trajectory,
    read_pose,
    time_message,
    write_sample,
)
from hodyn_ros.ros.diagnostics import OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.ros.parameters.parameters import (
    ParameterSpec,
    choice,
    config_of,
    declare,
    parameters,
    specs_of,
    value,
)
from hodyn_ros.ros.parameters.robot_file import robot_of_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.fixed_rate import FixedRate, last_due, timer_by_clock
from hodyn_ros.ros.streams.qos import advertise, sensor_qos, stream_qos, subscribe
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason, Rejections
from hodyn_ros.ros.streams.stamp_filter import StampFilter
from hodyn_ros.ros.streams.stream_executor import StreamGroup
from hodyn_ros.trajectory.robot_motion import MotionSample

SETTINGS = (
    *parameters(
        robot_config=ParameterSpec(
            "", "Robot that is meant: path of a YAML file, or the name of a shipped one such as panda.yaml."
        ),
        mode=ParameterSpec(
            Mode.TRACK.value,
            "track: single points are predicted, and followed as soon as limits allow, as chunks are; "
            "approximate: it stays in the hull of the points; interpolate: it passes through them, later; "
            "latest: as late as `delay` allows.",
        ),
    ),
    *specs_of(StreamConfig),
    *parameters(
        acceleration=ParameterSpec(
            [], "Limits of the joints [rad/s^2 or m/s^2], one each; empty: those of the robot's file."
        ),
        jerk=ParameterSpec(
            [], "Limits of the joints [rad/s^3 or m/s^3], one each; empty: those of the robot's file."
        ),
        order=ParameterSpec(
            4,
            "Highest time derivative that is published; 4 is snap, and the last that does not jump.",
            within=(0, 8),
        ),
        rate=ParameterSpec(1000.0, "Samples per second [Hz].", within=(1.0, 2000.0)),
        wait_for_robot=ParameterSpec(
            False, "Begin where joint_states have the robot; otherwise at the first point of the stream."
        ),
    ),
)

_OUT, _CHUNKS, _TARGETS = "desired_motion", "joint_trajectory", "joint_targets"
_POSES = "pose_targets"
_STALE = 0.5  # [s] after which joint_states say nothing any more
_ARRIVAL = Duration(seconds=0.5)  # in which the last samples are acknowledged by who still hears them
_BLOCK = 10  # samples computed at a time
_PAST = 0.2  # [s] that samples may be late; `FixedRate` catches up with 20
_REASONS = {
    Trouble.TIMES: Reason.BAD_TIMES,
    Trouble.LATE: Reason.TOO_LATE,
    Trouble.JUMP: Reason.JUMP,
    Trouble.LIMITS: Reason.BEYOND_LIMITS,
    Trouble.NUMBERS: Reason.NOT_FINITE,
}


def _reason_of(error: InputError) -> Reason:
    return _REASONS[error.trouble] if isinstance(error, PointsError) else Reason.BAD_MOTION


class StreamNode(Node):
    """Publishes the motion of a `StreamPlanner`, whose clock begins with the node."""

    stop_within = 4.0

    def __init__(self) -> None:
        super().__init__("stream_node")
        declare(self, SETTINGS)
        self._robot = self._limited(robot_of_file(self))
        mode = Mode(choice(self, "mode", [mode.value for mode in Mode]))
        self._config = config_of(self, StreamConfig, mode=mode)
        self._coordinates = StreamCoordinates.of(self._robot)
        self._joints = JointOrder(self._robot.joint_names)
        self._order: int = value(self, "order")
        self._rate: float = value(self, "rate")
        self._tracks = self._config.mode is Mode.TRACK
        self._planner: StreamPlanner | TrackingPlanner | None = None
        self._warm_up()
        self._fixed_rate = FixedRate(self._rate, self._now())
        self._epoch = self._fixed_rate.origin  # [ns] where the planner's clock is zero
        self._block: tuple[int, MotionSample] | None = None  # number of its first sample, samples
        self._troubles_before = self._slowed_before = 0
        self._published, self._taken = Stream(), Stream()
        self._slowed = 0
        self._last: Taken | None = None
        self._is_stopping = False
        topics = (_POSES,) if self._coordinates.moves_platform else (_CHUNKS, _TARGETS)
        self._rejections = {
            topic: Rejections(self.get_logger().warning, topic) for topic in (*topics, "joint_states")
        }
        self._notes = {
            topic: Rejections(self.get_logger().warning, topic, "followed, though wrong") for topic in topics
        }
        self._stamps = {topic: StampFilter() for topic in topics}
        self._publisher = advertise(self, DesiredMotion, _OUT, stream_qos())
        self._inputs: list[Subscription] = []
        self._present: JointStateBuffer | None = None
        if self._coordinates.moves_platform:
            self._listen(PoseStamped, _POSES, self._take_pose, sensor_qos())
        else:
            self._listen(JointTrajectory, _CHUNKS, self._take_chunk, stream_qos(10))
            self._listen(JointState, _TARGETS, self._take_target, sensor_qos())
        if value(self, "wait_for_robot"):
            if self._coordinates.moves_platform:
                raise InputError(
                    f"joint_states do not say where the platform {self._robot.platform!r} is; leave out "
                    "wait_for_robot, and the motion begins at the first pose"
                )
            self._present = JointStateBuffer(self._robot.joint_names, _STALE)
            self._listen(JointState, "joint_states", self._take_state, sensor_qos())
        self._diagnostics = Diagnostics(self, self._report, self._robot.name)
        self.get_logger().info(f"waiting for points on {' or '.join(topics)}")
        self._timer = timer_by_clock(self, 1.0 / self._rate, self._publish_due, StreamGroup())

    def _listen(self, kind: type, topic: str, take: Callable[..., None], qos: QoSProfile) -> None:
        self._inputs.append(subscribe(self, kind, topic, take, qos))

    def _limited(self, robot: Robot) -> Robot:
        """Return the robot with the limits that parameters give."""
        chosen = {name: value(self, name) for name in ("acceleration", "jerk") if value(self, name)}
        for name, numbers in chosen.items():
            if len(numbers) != robot.n_coordinates:
                raise InputError(
                    f"parameter {name!r} has {len(numbers)} numbers; give one for each of the "
                    f"{robot.n_coordinates} joints"
                )
        if not chosen:
            return robot
        if robot.closure is not None:
            raise InputError(
                f"parameters {', '.join(chosen)} are for robots without loops; give the limits in its file"
            )
        limits = replace(robot.limits, joint_names=robot.joint_names, **chosen)
        return Robot(robot.model, limits, robot.drive_train, robot.frames)

    def _warm_up(self) -> None:
        """Compile what the first points need; raises InputError for a robot that cannot be moved so."""
        limits = self._coordinates.limits
        middle = 0.5 * (limits.position_lower + limits.position_upper)
        middle = np.where(np.isfinite(middle), middle, 0.0)
        if self._robot.closure is not None and not self._coordinates.moves_platform:
            middle = self._robot.home[0]
        with_any = StreamConfig(self._config.mode, spacing=self._config.spacing)
        try:
            planner = (TrackingPlanner if self._tracks else StreamPlanner)(self._robot, middle, 0.0, with_any)
        except InputError as error:
            if "cannot stand" not in str(error):
                raise
            return
        planner.take([1.0], middle[None], 0.0)
        planner.sample(np.zeros(1), self._order)

    # points

    def _take_chunk(self, msg: JointTrajectory) -> None:
        def points() -> tuple[Array, Array]:
            trajectory = read_joint_trajectory(msg, self._joints)
            return trajectory.times, trajectory.positions

        self._take(_CHUNKS, nanoseconds(msg.header.stamp), points)

    def _take_target(self, msg: JointState) -> None:
        def points() -> tuple[Array, Array]:
            positions = read_joint_state(msg, self._joints).positions
            if positions is None:
                raise MessageRejected(Reason.MISSING_DERIVATIVES, "it has no positions; send them")
            return np.zeros(1), positions[None]

        self._take(_TARGETS, nanoseconds(msg.header.stamp), points)

    def _take_pose(self, msg: PoseStamped) -> None:
        def points() -> tuple[Array, Array]:
            return np.zeros(1), self._coordinates.of_pose(read_pose(msg.pose))[None]

        self._take(_POSES, nanoseconds(msg.header.stamp), points)

    def _take(self, topic: str, stamp: int, points: Callable[[], tuple[Array, Array]]) -> None:
        """Follow points at times [s] after a stamp [ns]; log and count what cannot be followed."""
        started = time.perf_counter()
        if self._is_stopping:
            return
        with self._rejections[topic].counting(InputError, _reason_of):
            if stamp and not self._tracks:  # which sees itself whether stamps can be meant
                self._stamps[topic].check(stamp)
            after, positions = points()
            now = self._now_counted()
            planner = self._planner or self._first_planner(positions[0], now)
            times = 1e-9 * ((stamp or now) - self._epoch) + after
            taken = planner.take(times, positions, self._clock_of(now), 1.0 / self._rate)
            if self._planner is None:
                self._begin(planner)
            if stamp and not self._tracks:
                self._stamps[topic].accept(stamp)
            if taken.note is not None:
                self._notes[topic].add(MessageRejected(_REASONS[taken.note.trouble], str(taken.note)))
            self._last, self._block = taken, None
            self._slowed += taken.followed and taken.share < 1.0
            if not taken.followed:
                raise MessageRejected(
                    Reason.BEYOND_LIMITS,
                    f"no way to the points keeps the limits: {taken.usage:.3g} times the {taken.limit}; the "
                    "motion before them goes on to its stop. Send slower points",
                )
            self._taken.tick(time.perf_counter() - started)

    def _first_planner(self, first: Array, now: int) -> StreamPlanner | TrackingPlanner:
        """Return a planner that stands at a first point, where nobody says where the robot is."""
        if self._present is not None:
            raise MessageRejected(
                Reason.MISSING_JOINT, "where the robot is is not known yet; publish all its joint_states"
            )
        return self._standing(first, now)

    def _standing(self, position: Array, now: int) -> StreamPlanner | TrackingPlanner:
        past = max(_PAST, 2.0 * _BLOCK / self._rate)
        kind = TrackingPlanner if self._tracks else StreamPlanner
        return kind(self._robot, position, self._clock_of(now), self._config, past)

    def _begin(self, planner: StreamPlanner | TrackingPlanner) -> None:
        self._planner = planner
        self.get_logger().info(
            f"the motion begins, at rest; {self._rate:g} Hz, mode {self._config.mode.value}"
        )

    def _take_state(self, msg: JointState) -> None:
        assert self._present is not None
        if self._planner is not None:
            return
        with self._rejections["joint_states"].counting(InputError, Reason.BEYOND_LIMITS):
            self._present.take(msg)
            place = self._present.state().positions
            if not np.isnan(place).any():
                self._begin(self._standing(place, self._now()))

    # samples

    def _now(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _now_counted(self) -> int:
        """Return the reading of the clock, by which samples count even if the timer has yet to see it."""
        now = self._now()
        if self._fixed_rate.lost(now):
            self._restart_clock(now)
        return now

    def _clock_of(self, instant: int) -> float:
        return 1e-9 * (instant - self._epoch)

    def _publish_due(self) -> None:
        now = self._now()
        if self._fixed_rate.next == 0 or self._fixed_rate.lost(now):
            self._restart_clock(now)
        due = self._fixed_rate.due(now)
        if self._planner is None:
            return
        for k in due:
            instant = self._fixed_rate.instant(k)
            self._publisher.publish(write_sample(self._joints.names, time_message(instant), self._sample(k)))
            self._published.tick(max(0.0, 1e-9 * (now - instant)))

    def _sample(self, k: int) -> MotionSample:
        """Return the k-th sample; a block of them costs little more than one."""
        assert self._planner is not None
        if self._block is None or not 0 <= k - self._block[0] < _BLOCK:
            times = [self._clock_of(self._fixed_rate.instant(k + i)) for i in range(_BLOCK)]
            self._block = (k, self._coordinates.sample(self._planner.sample(times, self._order)))
        return self._block[1].one(k - self._block[0])

    def _restart_clock(self, now: int) -> None:
        """Count from now on, at the first call or after a jump of the clock; the motion goes on."""
        last, place = self._fixed_rate.next, self._clock_of(self._fixed_rate.instant(self._fixed_rate.next))
        self._fixed_rate = FixedRate(self._rate, last_due(self._timer, now))
        if last > 0:
            self.get_logger().warning("the clock has jumped; what is published goes on at the new time")
            self._epoch = self._fixed_rate.origin - round(1e9 * place)
            for stamps in self._stamps.values():
                stamps.forget()
        self._block = None

    # the end of the process

    def stopping(self) -> bool:
        """Bring the motion to rest on its path; no more points are taken."""
        self._is_stopping = True
        if self._planner is None or self.stopped:
            return False
        self._planner.stop(self._clock_of(self._now_counted()), 1.0 / self._rate)
        self._block = None
        return True

    @property
    def stopped(self) -> bool:
        """Whether the motion has come to rest, and a sample that says so is published."""
        if self._planner is None:
            return True
        # not the clock: a process that was held up would end with the samples of its stop still to be sent
        last = self._fixed_rate.instant(self._fixed_rate.next - 1)
        return self._fixed_rate.next > 0 and self._clock_of(last) > self._planner.ends

    def destroy_node(self) -> None:
        """See that the last samples arrive: they say that the robot is to stand."""
        if self.context.ok():
            self._publisher.wait_for_all_acked(_ARRIVAL)
        super().destroy_node()

    # diagnostics

    def _report(self) -> Report:
        last = self._last
        rejected = sum(each.total for each in self._rejections.values())
        skipped = self._fixed_rate.newly_skipped()
        slowed, self._slowed_before = self._slowed - self._slowed_before, self._slowed
        troubles, self._troubles_before = rejected - self._troubles_before, rejected
        values: dict[str, object] = {
            "mode": self._config.mode.value,
            "delay [s]": "" if self._planner is None else self._planner.delay,
            "clock rate": "" if last is None else last.rate,
            "largest share of a limit": "" if last is None else last.usage,
            "limit": "" if last is None else last.limit,
            "messages followed": self._taken.count,
            "messages per second": self._taken.rate(),
            "messages slowed by limits": self._slowed,
            **self._taken.as_values("replanning", "ms"),
            "published": self._published.count,
            "skipped": self._fixed_rate.skipped,
            "rejected": rejected,
        }
        for topic, rejections in (*self._rejections.items(), *self._notes.items()):
            values |= {f"{topic}: {key}": count for key, count in rejections.as_values().items() if count}
        if self._planner is None:
            what = "points" if self._present is None else "joint_states"
            return Report(WARN, f"waiting for {what}", values)
        if skipped > 0:
            return Report(WARN, f"skipped {skipped} samples: the machine is too slow for this rate", values)
        if troubles > 0:
            return Report(WARN, "points were rejected, see the log", values)
        if slowed > 0 and last is not None:
            return Report(WARN, f"slower than the stream, which exceeds the {last.limit}", values)
        return Report(OK, "standing: no new points" if self.stopped else "following", values)


main = partial(run, StreamNode)

if __name__ == "__main__":
    sys.exit(main())
