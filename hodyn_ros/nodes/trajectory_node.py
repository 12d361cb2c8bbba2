"""trajectory_node: a smooth motion, published sample by sample with all its time derivatives.

The motion comes from a file: of joints, of a platform, or of a floating base with its joints. A motion of
joints alone may come as a JointTrajectory on a topic instead. Before it starts the node publishes its first
position at rest, and after it has ended its last one, so that whoever follows never has to guess.

Topics: `desired_motion` (DesiredMotion) out, the k-th sample stamped `origin + k / rate`; `joint_trajectory`
(trajectory_msgs/JointTrajectory) in; `feedforward_torque` (FeedforwardTorque) in, the first one alone, with
`start_when_answered`; `effort_commands` (std_msgs/Float64MultiArray) in, likewise, with
`start_when_commanded`; `recorder/heard` (std_msgs/String) in, with `start_when_recorded`; `joint_states`
(sensor_msgs/JointState) in, with `wait_for_robot`; `~/override` (std_msgs/Float64) in: how many times as fast
as its own the motion goes on, 0 to 1, and down to -1 back; `/diagnostics` at 1 Hz. Services
(std_srvs/Trigger): `~/start`, `~/pause`, `~/resume`, `~/back`.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.interpolate  # noqa: F401  at the start: no trajectory is to wait for it
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros import share
from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.override import HOLDS, Change, OverridableSampler, override
from hodyn_ros.ros.conversions.joint_state_buffer import JointStateBuffer
from hodyn_ros.ros.conversions.messages import (
    nanoseconds,
    read_partial_trajectory,
    time_message,
    write_sample,
)
from hodyn_ros.ros.diagnostics import ERROR, OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare, parameters, value
from hodyn_ros.ros.parameters.robot_file import TrajectoryTarget
from hodyn_ros.ros.process import run
from hodyn_ros.ros.recorded import STREAMS, RecordedTopics
from hodyn_ros.ros.streams.fixed_rate import FixedRate, last_due, timer_by_clock
from hodyn_ros.ros.streams.one_publisher import identity, publishers_of
from hodyn_ros.ros.streams.qos import advertise, sensor_qos, stream_qos, subscribe
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason, Rejections
from hodyn_ros.ros.streams.stream_executor import StreamGroup, beside_streams
from hodyn_ros.ros.triggers import serve_triggers
from hodyn_ros.trajectory.files.reader import read_motion
from hodyn_ros.trajectory.rest import through_points
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion
from hodyn_ros.trajectory.splines.start import Away, away_from_start

_JOINS = 1_000_000_000  # [ns] of commands, in which a controller checks what it sees and joins

SETTINGS = parameters(
    trajectory=ParameterSpec(
        "",
        "Motion to publish: path of a YAML file, or the name of a shipped one such as "
        "panda_excitation.yaml; empty: wait for a JointTrajectory on joint_trajectory.",
    ),
    robot_config=ParameterSpec(
        "",
        "Robot of the motion: path of a YAML file, or the name of a shipped one. Needed for "
        "joint_trajectory, and for a file that does not name its joints.",
    ),
    order=ParameterSpec(4, "Highest time derivative that is published; 4 is snap.", within=(0, 8)),
    rate=ParameterSpec(1000.0, "Samples per second [Hz].", within=(1.0, 2000.0)),
    ramp=ParameterSpec(
        2.0,
        "How long [s] a motion from a file that does not start or end at rest takes to reach full speed, "
        "and to stop; 0: no ramps.",
        within=(0.0, 60.0),
    ),
    duration=ParameterSpec(
        0.0,
        "How long [s] a motion from a file runs at full speed between the ramps; 0: to its end.",
        within=(0.0, 86400.0),
    ),
    frame_id=ParameterSpec("world", "Frame that the poses of a platform or of a floating base are given in."),
    auto_start=ParameterSpec(
        True, "Start as soon as there is a motion; otherwise hold its first position until ~/start is called."
    ),
    start_when_answered=ParameterSpec(
        False,
        "With auto_start: hold the first position until a feedforward_torque has come, so that no part of "
        "the motion is lost on a dynamics_node that is still loading.",
    ),
    start_when_commanded=ParameterSpec(
        False,
        "With auto_start: hold the first position until effort_commands have come for a second, so that the "
        "motion does not begin while a controller_node still joins it.",
    ),
    start_when_recorded=ParameterSpec(
        False,
        "With auto_start: hold the first position until recorder, or ros2 bag record, gets what is published "
        f"on {', '.join(STREAMS)}, so that no part of the motion is missing in the bag.",
    ),
    wait_for_robot=ParameterSpec(
        False, "Hold the first position, and reject ~/start, until joint_states have the robot near to it."
    ),
    start_within=ParameterSpec(
        0.05,
        "With wait_for_robot: how far [rad or m] each joint may be from the first position, including the "
        "deflection of elastic joints.",
        within=(0.0001, 10.0),
    ),
    repeat_after=ParameterSpec(
        0.0,
        "A motion that ends where it begins starts again after it has rested for so long [s]; 0: once.",
        within=(0.0, 3600.0),
    ),
    ease=ParameterSpec(
        0.1,
        "A joint_trajectory gets no jump of the acceleration at its ends; given points nearer to them "
        "than this [s] are then left out. 0: such a trajectory is rejected.",
        within=(0.0, 10.0),
    ),
    override_ramp=ParameterSpec(
        0.3,
        "How long [s] a change of the speed by ~/override, ~/pause, ~/resume and ~/back takes at least; "
        "longer, where the limits of robot_config ask for it.",
        within=(0.05, 5.0),
    ),
)

IN, OUT = "joint_trajectory", "desired_motion"

_AHEAD = 0.03  # [s] from when a change of speed is asked for until it begins, at first
_SAME_PLACE = 1e-9  # [rad or m] from the end of a motion to its beginning
_STALE = 0.5  # [s] after which joint_states say nothing any more


class TrajectoryNode(Node):
    """Publishes a trajectory; the samples come from `Sampler`, the instants from `FixedRate`."""

    def __init__(self) -> None:
        super().__init__("trajectory_node")
        declare(self, SETTINGS)
        self._order: int = value(self, "order")
        self._rate: float = value(self, "rate")
        self._auto_start: bool = value(self, "auto_start")
        self._repeats_after: float = value(self, "repeat_after")
        self._sampler: OverridableSampler | None = None
        self._speed = self._last_speed = 1.0  # times that of the motion; and the last one that was not 0
        self._limits: LimitSet | None = None  # once they are needed
        self._asked: int | None = None  # when the motion is to start [ns]; None: at once
        self._first: int | None = None  # the number, at the present rate, of the first sample of the motion
        self._sent = 0  # samples of the motion
        self._ended = False
        self._obstacle = ""  # what the motion waited for when last looked at
        self._said: set[str] = set()  # what kinds of obstacles have been logged
        self._broken: MotionSample | None = None  # where a motion stands that cannot go on
        self._fixed_rate = FixedRate(self._rate, self._now())
        self._published = Stream()
        self._robot = TrajectoryTarget(value(self, "robot_config"))
        file = value(self, "trajectory")
        if not file:
            self._robot.require_joint_trajectories()
        motion = self._read(file) if file else None
        self._moves_base = motion is not None and motion.moves_base
        self._names = list(self._robot.joint_names or (motion.joint_names if motion else None) or ())
        self._frame_id: str = value(self, "frame_id") if self._moves_base else ""
        self._rejections = Rejections(self.get_logger().warning, IN)
        self._publisher = advertise(self, DesiredMotion, OUT, stream_qos())
        self._subscription = subscribe(self, JointTrajectory, IN, self._take, 1)
        self._served = serve_triggers(
            self,
            start=self._start_by_hand,
            pause=lambda: self._override(0.0),
            resume=lambda: self._override(abs(self._last_speed)),
            back=lambda: self._override(-abs(self._last_speed)),
        )
        self._overrides = subscribe(self, Float64, "~/override", self._take_override, 1)
        self._answers: Subscription | None = None  # until the first one
        if value(self, "start_when_answered"):
            self._answers = self.create_subscription(
                FeedforwardTorque, "feedforward_torque", self._take_answer, sensor_qos()
            )
        self._commands: Subscription | None = None  # until they have come for long enough
        self._commanded: int | None = None  # [ns] since when they have
        if value(self, "start_when_commanded"):
            self._commands = self.create_subscription(
                Float64MultiArray, "effort_commands", self._take_command, sensor_qos()
            )
        self._recorded = RecordedTopics(self) if value(self, "start_when_recorded") else None
        self._present = self._listen_to_robot() if value(self, "wait_for_robot") else None
        self._diagnostics = Diagnostics(self, self._report)
        if motion is not None:
            try:
                self._load(motion, None)
            except InputError as error:
                raise InputError(f"{file}: {error}") from error
        else:
            self.get_logger().info(f"waiting for a motion on {IN}")
        self._timer = timer_by_clock(self, 1.0 / self._rate, self._publish_due, StreamGroup())

    def _listen_to_robot(self) -> JointStateBuffer:
        if not self._names:
            raise InputError(
                "parameter 'wait_for_robot' is true, but the motion moves a platform alone, of which "
                "joint_states say nothing; leave it out"
            )
        self._rejected_states = Rejections(self.get_logger().warning, "joint_states")
        self._states = subscribe(self, JointState, "joint_states", self._take_state, sensor_qos())
        return JointStateBuffer(self._names, _STALE)

    # motions

    def _read(self, file: str) -> RobotMotion:
        motion = self._robot.fitted(read_motion(share.find("config", file)), file)
        return motion.rest_to_rest(value(self, "ramp"), value(self, "duration") or None, self._order)

    def _load(self, motion: RobotMotion, start: int | None) -> None:
        """Take up a motion; start it at the instant `start` [ns] or now, unless the node is to wait.

        Raises InputError for a motion that is not finite.
        """
        sampler = OverridableSampler(motion, self._rate, self._order, self._speed)
        sampler.check()
        if self._repeats_after:
            _check_repeats(motion)
        try:
            motion.trajectory.require_smoothness(self._order)
        except InputError as error:
            self.get_logger().warning(f"derivatives will jump: {error}")
        if said := self._robot.out_of_range(motion):
            self.get_logger().warning(f"beyond limits: {said}")
        self._sampler, self._broken = sampler, None
        self._asked, self._first, self._sent, self._ended = start, None, 0, False
        self._said = set()
        self._start_if_nothing_hinders()

    def _take(self, msg: JointTrajectory, info: dict[str, Any]) -> None:
        with self._rejections.counting(InputError, Reason.BAD_MOTION):
            if self._moving:
                sender = publishers_of(self, IN).get(identity(info) or b"")
                of = f" from {sender}" if sender else ""
                raise MessageRejected(
                    Reason.BAD_MOTION, f"a motion is under way; send the next one{of} when it has ended"
                )
            if self._moves_base:
                raise MessageRejected(
                    Reason.BAD_BASE, "a JointTrajectory cannot place a platform or floating base; use a file"
                )
            held, measured = self._where()
            points = read_partial_trajectory(
                msg, self._names, self._names, measured if held is None else held
            )
            # what comes later is led to, also from where nothing is held yet
            leads = held is None and points.times[0] > 0.0 and not np.isnan(measured).any()
            present = measured if leads else held
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows shows in the samples
                spline = through_points(*points, present=present, order=self._order, ease=value(self, "ease"))
            self._load(RobotMotion.of_joints(spline), nanoseconds(msg.header.stamp) or None)

    @property
    def _moving(self) -> bool:
        """Whether a motion is under way; one that is still to start can be replaced by another."""
        return not self._ended and self._first is not None and self._first <= self._fixed_rate.next

    def _where(self) -> tuple[Array | None, Array]:
        """Return where the robot is held (n,), None where it is not yet, and where it is measured, or NaN.

        A robot that is waited for is not held yet.
        """
        nowhere = np.full(len(self._names), np.nan)
        measured = nowhere if self._present is None else self._present.state().positions
        waits = self._present is not None and self._first is None
        if self._sampler is None or waits:
            return None, measured
        return self._sample(self._fixed_rate.next).joints[0], measured

    # the start

    def _take_answer(self, msg: FeedforwardTorque) -> None:
        if self._answers is not None:
            self.destroy_subscription(self._answers)
            self._answers = None
        self._start_if_nothing_hinders()

    def _take_command(self, msg: Float64MultiArray) -> None:
        if self._commands is None or not msg.data:
            return
        now = self._now()
        if self._commanded is None or now < self._commanded:
            self._commanded = now
        if now - self._commanded >= _JOINS:
            self.destroy_subscription(self._commands)
            self._commands = None
            self._start_if_nothing_hinders()

    def _take_state(self, msg: JointState) -> None:
        assert self._present is not None
        with self._rejected_states:
            self._present.take(msg)
        self._start_if_nothing_hinders()

    def _start_by_hand(self) -> str:
        if self._sampler is None:
            raise InputError("there is no motion to start yet")
        if self._first is not None:
            raise InputError("the motion has been started before")
        if (away := self._away()) is not None:
            raise InputError(f"the robot is not where the motion starts: {away.words}")
        self._start(None)
        return "the motion starts"

    def _start_if_nothing_hinders(self) -> None:
        """Start the motion that waits, if there is one; log once what it waits for, of each kind."""
        if self._sampler is None or self._first is not None:
            return
        if not self._auto_start:
            kind, words = "service", "until ~/start is called"
        elif self._answers is not None:
            kind, words = "answer", "until feedforward_torque answers"
        elif self._commands is not None and (away := self._away()) is None:
            kind, words = "commands", "until effort_commands have come for a second"
        elif (away := self._away()) is not None:
            kind = "robot" if away.is_known else "unknown robot"
            words = f"until the robot is near to it: {away.words}"
        elif self._recorded is not None and (missing := self._recorded.missing()):
            kind, words = "recorder", f"until somebody records {', '.join(missing)}"
        else:
            self._start(self._asked)
            return
        self._obstacle = words
        if kind not in self._said:
            self._said.add(kind)
            self.get_logger().info(f"holding the first position {words}")

    def _away(self) -> Away | None:
        """Return how the robot is away from where the motion starts; None where it may start."""
        if self._present is None or self._sampler is None:
            return None
        start = self._sampler[0].joints[0]
        return away_from_start(self._present.state(), start, self._names, value(self, "start_within"))

    def _start(self, instant: int | None) -> None:
        assert self._sampler is not None
        self._recorded = None  # only the first motion waits: no recorder that comes later starts one
        following = self._fixed_rate.next
        self._first = following if instant is None else max(following, self._fixed_rate.number(instant))
        duration, ahead = self._sampler.duration, (self._first - following) / self._rate
        self.get_logger().info(
            f"the motion starts{f' in {ahead:g} s' if ahead >= 1.0 else ''}, "
            f"{'without end' if math.isinf(duration) else f'for {duration:g} s'}; "
            f"{self._rate:g} Hz, derivatives up to {self._order}"
        )

    # the speed

    def _take_override(self, msg: Float64) -> None:
        try:
            if msg.data != self._speed:
                self.get_logger().info(self._override(msg.data))
        except InputError as error:
            self.get_logger().warning(f"~/override rejected: {error}")

    def _override(self, speed: float) -> str:
        """Let this motion, and those after it, go on at `speed` times their own; return what it takes.

        Raises InputError for a speed that cannot be, or where no change to it keeps the limits; one to 0 is
        made nevertheless, as it is to stop.
        """
        if not -1.0 <= speed <= 1.0:
            raise InputError(f"the speed of a motion may be from -1 to 1 times its own, found {speed:g}")
        words = f"motions run at {speed:g} times their speed"
        sampler = self._sampler
        if sampler is not None and not self._ended:
            if self._first is None or self._first > self._fixed_rate.next:
                sampler.begin_at(speed)
            else:
                words = self._change(sampler, speed)
        self._speed, self._last_speed = speed, speed or self._last_speed
        return words

    def _change(self, sampler: OverridableSampler, speed: float) -> str:
        """Change the speed of a motion that is under way, beside the samples of it; return what it takes."""
        ahead = _AHEAD
        while True:
            assert self._first is not None
            begin = (self._fixed_rate.next - self._first) / self._rate + ahead
            change = beside_streams(self, partial(self._changed, sampler, begin, speed))
            if sampler is not self._sampler or self._ended:
                return "the motion has ended meanwhile"
            if (self._fixed_rate.next - self._first) / self._rate <= begin:
                break
            ahead *= 2.0  # the machine was too slow
        sampler.follow(change.clock)
        lasts = f"the motion runs at {speed:g} times its speed in {change.clock.steady - begin:.2g} s"
        if not change.usage > HOLDS:
            return lasts
        return f"{lasts}, with {change.usage:.3g} times the {change.limit}: no change keeps the limits"

    def _changed(self, sampler: OverridableSampler, begin: float, speed: float) -> Change:
        if self._limits is None and self._robot.robot is not None:
            with suppress(InputError):  # of a robot without any
                self._limits = LimitSet(self._robot.robot)
        ramp = value(self, "override_ramp")
        return override(sampler.motion, sampler.clock, begin, speed, self._limits, ramp, insist=speed == 0.0)

    # samples

    def _now(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _publish_due(self) -> None:
        now = self._now()
        if self._fixed_rate.next == 0 or self._fixed_rate.lost(now):
            self._restart_clock(now)
        due = self._fixed_rate.due(now)
        if self._sampler is None:
            return
        for k in due:
            instant = self._fixed_rate.instant(k)
            sample = self._sample(k)
            self._publisher.publish(write_sample(self._names, time_message(instant), sample, self._frame_id))
            self._published.tick(max(0.0, 1e-9 * (now - instant)))
            if self._first is not None and self._first <= k < self._first + self._sampler.count:
                self._sent += 1
        if (
            not self._ended
            and self._first is not None
            and self._fixed_rate.next >= self._first + self._sampler.count
        ):
            self._end()

    def _sample(self, k: int) -> MotionSample:
        """Return the k-th sample at the present rate: of the motion, or at rest before and after it."""
        assert self._sampler is not None
        if self._broken is not None:
            return self._broken
        place = 0 if self._first is None else k - self._first
        if not 0 <= place < self._sampler.count or self._first is None:
            return self._sampler[0 if place <= 0 else int(self._sampler.count) - 1].at_rest()
        try:
            return self._sampler[place]
        except InputError as error:
            self.get_logger().error(f"the motion ends here: {error}")
            self._broken, self._ended = self._sampler.before(place).at_rest(), True
            return self._broken

    def _end(self) -> None:
        self._ended = True
        self.get_logger().info(f"the motion has ended after {self._sent} samples; holding the last position")
        self._diagnostics.publish()
        if self._repeats_after and self._sampler is not None and self._speed > 0.0 and self._broken is None:
            start = self._now() + round(1e9 * self._repeats_after)
            self._sampler = OverridableSampler(self._sampler.motion, self._rate, self._order, self._speed)
            self._asked, self._first, self._sent, self._ended = start, None, 0, False
            self._start_if_nothing_hinders()

    def _restart_clock(self, now: int) -> None:
        """Count from now on, at the first call or after a jump of the clock; a motion goes on."""
        if self._fixed_rate.next > 0:
            self.get_logger().warning("the clock has jumped; what is published goes on at the new time")
        if self._first is not None:
            self._first -= self._fixed_rate.next
        self._fixed_rate = FixedRate(self._rate, last_due(self._timer, now))

    # diagnostics

    def _report(self) -> Report:
        values: dict[str, object] = {
            "order": self._order,
            "published": self._published.count,
            "rate [1/s]": self._published.rate(),
            **self._published.as_values("late", "us"),
            "skipped": self._fixed_rate.skipped,
            "speed, times that of the motion": self._speed,
            **self._facts_of_motion(),
            **self._rejections.beside("rejected"),
        }
        self._start_if_nothing_hinders()  # what was heard of the robot may be too old by now
        skipped = self._fixed_rate.newly_skipped()
        if self._sampler is None:
            return Report(WARN, "waiting for a motion", values)
        if skipped > 0:
            return Report(WARN, f"skipped {skipped} samples: the machine is too slow for this rate", values)
        if names := self._other_publishers():
            return Report(WARN, f"{names} publishes {OUT} as well; let one node publish at a time", values)
        if self._broken is not None:
            return Report(ERROR, "the motion could not go on", values)
        if self._first is None:
            waits_for_robot = self._auto_start and self._answers is None
            level = WARN if waits_for_robot else OK
            return Report(level, f"holding the first position {self._obstacle}", values)
        if self._ended or self._speed:
            return Report(OK, "ended" if self._ended else "moving", values)
        return Report(OK, "paused", values)

    def _other_publishers(self) -> str:
        names = list(publishers_of(self, OUT).values())
        if self.get_fully_qualified_name() in names:
            names.remove(self.get_fully_qualified_name())
        return ", ".join(sorted(names))

    def _facts_of_motion(self) -> dict[str, object]:
        """Return the stamps of the first and the last sample of the motion, and how many were published."""
        start: object = ""
        end: object = ""
        if self._sampler is not None and self._first is not None:
            start = self._fixed_rate.instant(self._first)
            if math.isfinite(self._sampler.count):
                end = self._fixed_rate.instant(self._first + int(self._sampler.count) - 1)
        return {"motion start [ns]": start, "motion end [ns]": end, "motion samples published": self._sent}


def _check_repeats(motion: RobotMotion) -> None:
    """Raise InputError for a motion that cannot begin again where it ends."""
    duration = motion.trajectory.duration
    if motion.moves_base or not math.isfinite(duration):
        raise InputError("parameter 'repeat_after' is for motions of joints that have an end")
    start, end = motion.trajectory.sample(np.array([0.0, duration]), 0)[:, 0]
    off = float(np.abs(end - start).max())
    if off > _SAME_PLACE:
        raise InputError(
            f"the motion ends {off:.3g} rad or m from where it begins, and cannot be repeated; leave out "
            "'repeat_after', or lead it back"
        )


main = partial(run, TrajectoryNode)

if __name__ == "__main__":
    sys.exit(main())
