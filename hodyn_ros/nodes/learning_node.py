"""learning_node: a feedforward in, the same with what repetitions of its motion have taught out.

It stands between dynamics_node and controller_node, so that the guard of the latter is in front of the
motors as ever. Whatever goes wrong here, a feedforward goes on at once, with the correction that was played,
or as it has come. Corrections change between repetitions alone, and nothing that changes makes a step.

A lifecycle node, as dynamics_node is: *configure* loads robot, motion and correction, *activate* lets
feedforwards through; with the parameter `autostart` (the default) it does both by itself. `docs/learning.md`
describes all of it.

Topics: `desired_motion` (DesiredMotion) and `feedforward_torque` (FeedforwardTorque) in; `motor_states` and
`joint_states` (sensor_msgs/JointState) in, of a repetition to learn from; `corrected_feedforward_torque`
(FeedforwardTorque) out, one for each that comes; `/diagnostics` at 1 Hz. Services (std_srvs/Trigger):
`~/start` plays and learns, as `autostart` does; `~/stop` fades the correction and learns nothing; `~/forget`
does so too, and begins anew.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState

from hodyn_ros import share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.learning import Learned, LearningConfig, read_correction, write_correction
from hodyn_ros.learning.background import LearningProcess, Repetition, make_learner
from hodyn_ros.learning.playback import PathPlace, Phase, Playback, check_fits
from hodyn_ros.learning.response import check_robot
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import JointOrder, float64s
from hodyn_ros.ros.conversions.joint_subset import RowsReader
from hodyn_ros.ros.conversions.layout import instant
from hodyn_ros.ros.conversions.messages import nanoseconds, read_desired_motion
from hodyn_ros.ros.diagnostics import OK, WARN, Report, Stream
from hodyn_ros.ros.parameters.parameters import ParameterSpec, config_of, live_parameters, specs_of, value
from hodyn_ros.ros.parameters.robot_file import robot_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.lifecycle import StreamLifecycle
from hodyn_ros.ros.streams.qos import sensor_qos, stream_qos
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.ros.triggers import serve_triggers
from hodyn_ros.trajectory.base import Trajectory

SETTINGS = (
    *live_parameters(
        robot_config=ParameterSpec(
            "", "Robot that repeats the motion: path of a YAML file, or the name of a shipped one."
        ),
        trajectory=ParameterSpec(
            "", "Motion that repeats, from rest to rest: path of a YAML file, or the name of a shipped one."
        ),
        correction=ParameterSpec("", "File of what was learnt before, to go on from; empty: nothing."),
        out=ParameterSpec(
            "", "File that what was learnt is written to after each repetition; empty: none is."
        ),
        link_encoders=ParameterSpec(
            True,
            "Whether joint_states are measured at the links; otherwise links are seen through motor_states.",
        ),
        natural_frequency=ParameterSpec(
            30.0,
            "Natural frequency of the feedback on each motor [rad/s], as controller_node has it.",
            within=(0.0, 1000.0),
        ),
        damping_ratio=ParameterSpec(
            1.0, "Damping ratio of the feedback on each motor, as controller_node has it.", within=(0.0, 10.0)
        ),
    ),
    *specs_of(LearningConfig, live=True),
    *live_parameters(
        fade=ParameterSpec(
            0.5, "How long [s] a change of the correction takes to fade in.", within=(0.05, 10.0)
        ),
        patience=ParameterSpec(
            0.05,
            "How long [s] a feedforward may be ahead of the last desired motion; then the correction fades.",
            within=(0.001, 1.0),
        ),
        autostart=ParameterSpec(
            True, "Configure, activate, play and learn at once; otherwise when asked to."
        ),
    ),
)

MOTION, IN, OUT = "desired_motion", "feedforward_torque", "corrected_feedforward_torque"
LINKS, MOTORS = "joint_states", "motor_states"
_LIVE = {"out", "patience"}  # parameters that may change while the node is configured
_BEFORE = 200_000_000  # [ns] of measurements that are kept before a repetition
_MOST = 200_000  # measurements that are kept in all
_AFTER = 0.05  # [s] behind a repetition from which measurements are waited for
_LOOK = 0.05  # [s] from one look at the process that learns to the next
_LONGEST_STEP = 0.1  # [s] from one desired motion to the next, beyond which the place on the path is lost


class LearningNode(StreamLifecycle):
    """Adds what a `Playback` says to feedforwards; a `LearningProcess` finds what it plays."""

    def __init__(self) -> None:
        super().__init__("learning_node", SETTINGS, {spec.name for spec in SETTINGS} - _LIVE)
        self._robot: Robot | None = None
        self._process: LearningProcess | None = None
        self._playing = False
        self._learned: Learned | None = None
        self._refused = self._note = ""  # why there is no correction, or no new one
        self._epoch: int | None = None  # stamp [ns] that times are counted from
        self._moved_at = -np.inf  # [s] of the last desired motion
        self._fresh = False  # whether the repetition under way can be learnt from
        self._due = np.inf  # [s] when the last measurements of one that has ended have come
        self._begins: list[float] = []  # [s] when the one under way has begun, by each desired motion
        self._asked = False  # whether the answer of the process that learns is wanted
        self._measured = {topic: deque[tuple[int, Array]](maxlen=_MOST) for topic in (LINKS, MOTORS)}
        self._motions, self._feedforwards, self._corrected, self._uncorrected = Stream(), Stream(), 0, 0
        self._repetitions = self._learnt = self._failed = 0
        self._publisher = self.events.publisher(FeedforwardTorque, OUT, stream_qos())
        self.listen(DesiredMotion, MOTION, self._take_motion, raw=False)
        self.listen(FeedforwardTorque, IN, self._take_feedforward, raw=False)
        for topic in (LINKS, MOTORS):
            self.listen(JointState, topic, partial(self._take_state, topic), sensor_qos(1000))
        self._served = serve_triggers(
            self, start=self._play_and_learn, stop=self._stop, forget=self._begin_anew
        )
        self._look = steady_timer(self, _LOOK, self._answered, self.streams)
        self._diagnostics = self.report_by(self._report)
        self.autostart()

    # states

    def unload(self) -> None:
        """Forget robot and motion; others can be configured."""
        self._end_process()
        self._robot = None

    def begin(self) -> None:
        """Let feedforwards through from now on."""
        self._place.leave()
        self._forget_repetition()
        for kept in self._measured.values():
            kept.clear()
        self._epoch, self._moved_at = None, -np.inf
        self._playback = Playback(len(self._names), value(self, "fade"))

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let nothing through for good."""
        self._end_process()
        return super().on_shutdown(state)

    def destroy_node(self) -> None:
        """End the process that learns."""
        self._end_process()
        super().destroy_node()

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None

    def load(self) -> None:
        """Load robot, motion and correction."""
        file = robot_file(self)
        robot = Robot.load(file)
        check_robot(robot)
        if robot.joint_names != robot.driven_joints:
            raise InputError(
                f"robot {robot.name!r} has joints without drives; learning is for those with one each"
            )
        if not value(self, "trajectory"):
            raise InputError("parameter 'trajectory' is empty; name the motion that repeats")
        motion = share.find("config", value(self, "trajectory"))
        self._config = config_of(self, LearningConfig)
        feedback = value(self, "natural_frequency"), value(self, "damping_ratio")
        learner = make_learner(file, motion, *feedback, self._config)  # which says what cannot be learnt
        self._make = partial(make_learner, file, motion, *feedback, self._config)
        self._path: Trajectory = learner.motion
        names = robot.driven_joints
        self._names, self._joints = names, JointOrder(robot.joint_names)
        self._limit = robot.require_drives().effort_limits(robot.limits.effort)
        self._place, self._playback = PathPlace(self._path), Playback(len(names), value(self, "fade"))
        fields = {LINKS: ("position",), MOTORS: ("position", "effort")}
        self._readers = {topic: RowsReader(names, rows) for topic, rows in fields.items()}
        self._forget_repetition()
        self._robot, self._learned = robot, None
        self._diagnostics.hardware_id = robot.name
        self._read()
        self._play(value(self, "autostart"))
        self.get_logger().info(
            f"robot {robot.name!r}, {len(names)} joints, a motion of {self._path.duration:g} s"
        )

    def _read(self) -> None:
        """Take up the correction in the file; one that cannot be read or does not fit is refused by name."""
        self._refused, file = "", value(self, "correction")
        if not file:
            return
        try:
            learned = read_correction(Path(file))
            check_fits(learned, self._names, self._path, self._limit)
        except (HodynError, OSError) as error:
            self._refused = f"correction {file!r} is refused: {error}"
            self.get_logger().error(f"{self._refused}; feedforwards go through as they come")
        else:
            self._learned = learned

    def _play(self, playing: bool) -> None:
        """Play and learn from the next repetition on, or neither from now on."""
        self._playing = playing
        self._forget_repetition()
        if not playing:
            self._asked = False
            self._playback.change(None)

    # services

    def _play_and_learn(self) -> str:
        """Play and learn; a correction that was refused is read again."""
        self._require_robot()
        if self._refused:
            self._read()
        if self._refused:
            raise InputError(self._refused)
        self._play(True)
        return "plays and learns from the next repetition on"

    def _stop(self) -> str:
        """Fade the correction, and learn nothing."""
        self._require_robot()
        self._play(False)
        return "the correction fades"

    def _begin_anew(self) -> str:
        """Play no correction; files stay what they are until something new is learnt."""
        self._require_robot()
        self._learned, self._refused, self._asked = None, "", False
        self._playback.change(None)
        self._forget_repetition()
        return "forgotten"

    def _require_robot(self) -> None:
        if self._robot is None:
            raise InputError("no robot is configured")

    # the motion

    def _take_motion(self, msg: DesiredMotion) -> None:
        if not self.running:
            return
        try:
            motion = read_desired_motion(msg, self._joints, 3)
        except MessageRejected as rejected:
            self.rejections[MOTION].add(rejected)
            return
        now = self._time(nanoseconds(msg.header.stamp))
        step, self._moved_at = now - self._moved_at, now
        self._motions.tick()
        was = self._place.phase
        if 0.0 < step <= _LONGEST_STEP:
            self._place.follow(motion, step)
        else:  # the first one, one after a gap, or of a clock that starts again
            self._place.leave()
        if was is not self._place.phase:
            self._turn(was, now)
        if self._fresh and self._place.moves and self._place.own_speed:
            self._begins.append(now - self._place.place)
        if now >= self._due:
            self._learn()

    def _turn(self, was: Phase, now: float) -> None:
        """Do what there is to do where the motion begins or ends to repeat itself."""
        phase = self._place.phase
        if phase is Phase.RUNNING:
            self._forget_repetition()
            played = None if self._learned is None else self._learned.correction
            self._fresh = (
                self._playing
                and not self._refused
                and not self._asked
                and self._playback.correction is played
                and not self._playback.fading(now)
            )
            return
        if was is Phase.RUNNING:
            self._repetitions += phase is Phase.ENDED
            if phase is Phase.ENDED and self._fresh and self._place.own_speed and self._begins:
                self._due = now + _AFTER
            self._fresh = False
        self._choose()

    def _choose(self) -> None:
        """Play between repetitions what is to be played in the next one."""
        phase = self._place.phase
        wanted = self._playback.correction
        if phase is Phase.AWAY or not self._playing or self._refused:
            wanted = None
        elif phase is Phase.STARTING:
            wanted = None if self._learned is None else self._learned.correction
        if wanted is not self._playback.correction:
            self._playback.change(wanted)
        else:
            self._playback.moved()

    def _time(self, stamp: int) -> float:
        """Return a stamp [ns] as a time [s] whose differences are exact to a nanosecond."""
        if self._epoch is None:
            self._epoch = stamp
        return 1e-9 * (stamp - self._epoch)

    # feedforwards

    def _take_feedforward(self, msg: FeedforwardTorque) -> None:
        if not self.running:
            return
        self._feedforwards.tick()
        try:
            self._correct(msg)
        except MessageRejected as rejected:  # whoever takes it will reject it as well
            self.rejections[IN].add(rejected)
            self._uncorrected += 1
        Publisher.publish(self._publisher, msg)  # past what asks whether it is active: it is

    def _correct(self, msg: FeedforwardTorque) -> None:
        """Add the correction to the efforts of the motors, where one is played or fades."""
        now = self._time(nanoseconds(msg.header.stamp))
        h = now - self._moved_at
        if abs(h) > value(self, "patience") and self._place.phase is not Phase.AWAY:
            self._place.leave()
            self._forget_repetition()
            self._choose()
        if self._playback.correction is None and not self._playback.fading(now):
            self._uncorrected += 1
            return
        place, speed, change = self._place.after(h)
        names, n = list(msg.joint_names), len(msg.joint_names)
        if missing := [name for name in self._names if name not in names]:
            raise MessageRejected(Reason.MISSING_JOINT, f"joint {missing[0]!r} is missing from the message")
        if len(msg.motor_efforts) != n:
            raise MessageRejected(
                Reason.MISSING_DERIVATIVES,
                f"motor_efforts holds {len(msg.motor_efforts)} values for {n} joints; let dynamics_node "
                "compute order 2 or more, of a robot with drives",
            )
        added = np.zeros((3, n))
        added[:, [names.index(name) for name in self._names]] = self._playback.at(now, place, (speed, change))
        msg.motor_efforts = _sum(msg.motor_efforts, added[0])
        if len(msg.motor_effort_rates) == n:
            msg.motor_effort_rates = _sum(msg.motor_effort_rates, added[1])
        if len(msg.higher_motor_effort_derivatives) >= n:
            higher = np.zeros(len(msg.higher_motor_effort_derivatives))
            higher[:n] = added[2]
            msg.higher_motor_effort_derivatives = _sum(msg.higher_motor_effort_derivatives, higher)
        total = np.abs(np.frombuffer(msg.motor_efforts)[[names.index(name) for name in self._names]])
        if (total > self._limit).any():
            msg.status |= FeedforwardTorque.EFFORT_LIMIT_EXCEEDED
        self._corrected += 1

    # learning

    def _forget_repetition(self) -> None:
        """Learn from none that is under way."""
        self._fresh, self._due = False, np.inf
        self._begins.clear()

    def _take_state(self, topic: str, data: bytes) -> None:
        if not self.running or not self._playing or (topic == LINKS and not value(self, "link_encoders")):
            return
        with self.rejections[topic]:
            stamp, rows = self._readers[topic].read(data)
            kept, now = self._measured[topic], instant(stamp)
            if not kept or now > kept[-1][0]:
                kept.append((now, rows.copy()))
            if self._due == np.inf and self._place.phase is not Phase.RUNNING:
                while kept and not 0 <= now - kept[0][0] <= _BEFORE:
                    kept.popleft()

    def _learn(self) -> None:
        """Hand the repetition that has just ended to the process that learns."""
        begin, measured = float(np.median(self._begins)), self._measured.items()
        self._forget_repetition()
        channels = {}
        try:
            for topic, kept in measured:
                if topic == LINKS and not value(self, "link_encoders"):
                    continue
                if not kept:
                    raise InputError(f"nothing has come on {topic}")
                times = np.array([self._time(stamp) for stamp, _ in kept])
                channels[topic] = times, np.stack([rows for _, rows in kept], axis=1)
            times, (positions, efforts) = channels[MOTORS]
            links = Channel(channels[LINKS][0], channels[LINKS][1][0]) if LINKS in channels else None
            recording = JointRecording(
                f"repetition {self._repetitions}",
                self._names,
                Channel(times, efforts),
                Channel(times, positions),
                links,
            )
        except InputError as error:
            self._fail(str(error))
            return
        if self._process is None or not self._process.alive:
            self._end_process()
            self._process = LearningProcess(self._make)
        self._process.ask(Repetition(recording, begin), self._learned)
        self._asked = True

    def _answered(self) -> None:
        """Take what was learnt from the last repetition; it is played in the next one."""
        answer = None if self._process is None else self._process.answer()
        if answer is None or not self._asked:
            return  # or it was asked before something was forgotten
        self._asked = False
        if answer.learned is None:
            self._fail(answer.error)
            return
        try:
            check_fits(answer.learned, self._names, self._path, self._limit)
        except InputError as error:
            self._fail(f"what was learnt is refused: {error}")
            return
        self._learned, self._note = answer.learned, ""
        self._learnt += 1
        last = answer.learned.history[-1]
        self.get_logger().info(
            f"repetition {self._repetitions}: {last.rms:.3g} rad off (RMS), {last.verdict}"
        )
        for note in answer.learned.notes:
            self.get_logger().warning(note)
        if out := value(self, "out"):
            try:
                write_correction(answer.learned, self._robot.name if self._robot else "", Path(out))
            except (HodynError, OSError) as error:
                self.get_logger().error(f"what was learnt is not kept: {error}")
        if self._place.phase is Phase.STARTING:
            self._choose()

    def _fail(self, why: str) -> None:
        self._failed += 1
        self._note = f"nothing was learnt from repetition {self._repetitions}: {why}"
        self.get_logger().warning(f"{self._note}; the correction stays what it is")

    # diagnostics

    @property
    def troubles(self) -> int:
        """How much was wrong so far."""
        return self.rejected + self.events.total

    def _report(self) -> Report:
        learned = self._learned
        place = self._place if self._robot is not None else None
        values: dict[str, object] = {
            "playing and learning": self._playing,
            "motion": place.phase.value if place else "",
            "place on the path [s]": place.place if place else "",
            "speed on the path": place.speed if place else "",
            "feedforwards": self._feedforwards.count,
            "feedforward rate [1/s]": self._feedforwards.rate(),
            "corrected": self._corrected,
            "as they came": self._uncorrected,
            "age of the last desired motion [s]": self._motions.age(),
            "repetitions": self._repetitions,
            "learnt from": self._learnt,
            "not learnt from, as something was wrong": self._failed,
            "error of the last repetition learnt from [rad or m]": learned.history[-1].rms if learned else "",
            "verdict": learned.history[-1].verdict if learned else "",
            "a repetition leaves at most": learned.contraction if learned else "",
            "why nothing was learnt": self._note,
            "rejected": self.rejected,
            **self.rejected_by_topic(),
        }
        if idle := self.idle(values):
            return idle
        new = self.new_troubles()
        if self._refused:
            return Report(WARN, self._refused, values)
        if new:
            return Report(WARN, "messages were rejected or lost, see the log", values)
        if not self._playing:
            return Report(OK, "stopped: feedforwards go through as they come", values)
        if self._feedforwards.age() > 1.0:
            return Report(WARN, f"no {IN} for more than a second", values)
        if self._motions.age() > 1.0:
            return Report(WARN, f"no {MOTION}: feedforwards go through as they come", values)
        if self._note:
            return Report(WARN, self._note, values)
        return Report(OK, self._place.phase.value, values)


def _sum(values: Any, added: Array) -> Any:
    return float64s(np.frombuffer(values) + added)


main = partial(run, LearningNode)

if __name__ == "__main__":
    sys.exit(main())
