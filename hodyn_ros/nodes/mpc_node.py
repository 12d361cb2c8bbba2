"""mpc_node: desired motions and measurements in, feedforwards that bring the links back to the motion out.

Takes the place of dynamics_node for an arm on springs: `PredictiveControl` sees the desired motion `delay`
seconds ahead, so the robot moves by that much later than `desired_motion` says. What it publishes is a
feedforward like any other, which controller_node follows with its guard and its feedback on the motors.
Where no prediction comes in time, it publishes what dynamics_node would of the delayed motion.
`docs/predictive_control.md` describes all of it.

A lifecycle node, as dynamics_node is; with the parameter `autostart` (the default) it configures and
activates itself.

Topics: `desired_motion` (DesiredMotion) in, to the snap; `joint_states`, `motor_states`
(sensor_msgs/JointState) in, of the same instants, reflected to the links; `effort_commands`
(std_msgs/Float64MultiArray) in, what controller_node has answered to these; `feedforward_torque`
(FeedforwardTorque) out; `/diagnostics` at 1 Hz.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import numpy as np
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.predictive_control import MotionPreview, PredictiveConfig, PredictiveControl
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.ros.conversions.joint_subset import RowsReader
from hodyn_ros.ros.conversions.layout import instant, packed
from hodyn_ros.ros.conversions.messages import time_message
from hodyn_ros.ros.conversions.serialised import AnswerWriter, MotionReader
from hodyn_ros.ros.diagnostics import OK, WARN, Report, Stream
from hodyn_ros.ros.parameters.parameters import ParameterSpec, parameters, value
from hodyn_ros.ros.parameters.robot_file import robot_of_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.lifecycle import StreamLifecycle
from hodyn_ros.ros.streams.one_publisher import OnePublisher, bytes_continue, publishers_of
from hodyn_ros.ros.streams.qos import stream_qos
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.ros.streams.stamp_filter import StampFilter

SETTINGS = parameters(
    robot_config=ParameterSpec(
        "",
        "Robot to control: path of a YAML file, or the name of a shipped one such as panda.yaml; an arm "
        "with linear springs in all joints.",
    ),
    period=ParameterSpec(
        0.001,
        "Time [s] from one measurement, and the command that answers it, to the next. A command is held "
        "for as long, which a quick spring does not forgive: 1 ms for a Panda.",
        within=(0.0001, 0.01),
    ),
    natural_frequency=ParameterSpec(
        80.0, "How fast deviations of the links are to vanish [rad/s].", within=(1.0, 1000.0)
    ),
    velocity_lag=ParameterSpec(
        0.0,
        "Age [s] of measured velocities: half a period where they are differences of positions.",
        within=(0.0, 0.01),
    ),
    delay=ParameterSpec(
        0.15,
        "How much later [s] than desired_motion says the robot moves; at least the 109 periods that are "
        "looked ahead, and by how much samples come irregularly.",
        within=(0.01, 2.0),
    ),
    observer_bandwidth=ParameterSpec(
        150.0, "How fast efforts from outside are recognised [1/s].", within=(0.1, 1000.0)
    ),
    autostart=ParameterSpec(True, "Configure and activate at the start, without a lifecycle manager."),
)

IN, OUT, LINKS, MOTORS, COMMANDS = (
    *("desired_motion", "feedforward_torque"),
    *("joint_states", "motor_states", "effort_commands"),
)
_ORDER = 2  # of the efforts: what the motors follow takes Q''
_ONE = 0.25  # of a period that the stamps of links and motors may differ by, to be of one instant
_LATE = 0.5  # of a period that an answer may come after its instant
_GAP = 1.5  # periods between two measurements, at most
_PATIENCE = 0.01  # [s] without a prediction, before the motion itself is published
_IN_ROW = 20  # predictions in time, before they are published (again)
_NEW_STREAM = 1.0  # [s] between two samples of a motion, from which on it is another one
_BOUNDED = Status.EFFORT_LIMIT_EXCEEDED | Status.EFFORT_RATE_LIMIT_EXCEEDED  # by the prediction itself


class _Standing:
    """A motion that stands, until one comes."""

    def __init__(self, n_joints: int) -> None:
        self.n_joints = n_joints

    def sample(self, t: float, order: int) -> Array:
        """Return zeros (order + 1, n)."""
        return np.zeros((order + 1, self.n_joints))


class _Controlled:
    """All that is computed for one robot."""

    def __init__(self, robot: Robot, config: PredictiveConfig, bandwidth: float) -> None:
        self.n = robot.n_joints
        self.control = PredictiveControl(robot, _Standing(self.n), config)
        self.model = FeedforwardModel(robot, _ORDER)
        self.model.warm_up()
        self.stiffness = robot.require_drives().stiffness
        self.observer = MomentumObserver(
            robot,
            ObserverConfig(bandwidth=bandwidth, held_efforts=True, adapt_drives=False),
            Sensed(links=True, motors=True, motor_efforts=True),
        )
        rest = np.zeros(self.n)
        standing = Measurement(rest, rest, rest, rest)
        self.control.predict(0.0, standing, rest, self.pushed(0.0, standing, rest))  # compiles
        self.observer.restart()

    def pushed(self, t: float, measured: Measurement, acted: Array) -> Array:
        """Return what pushes the links (n,), after `acted` (n,) of the motors up to a time [s]."""
        external = self.observer.update(t, self.observer.sample(**measured._asdict(), motor_effort=acted))
        return np.zeros(self.n) if external is None else external.efforts

    def feedforward(self, motion: Array, external: Array) -> Feedforward:
        """Return what takes links along a predicted motion (5, n) while something pushes them.

        Without more derivatives than motors follow: the snap is chosen anew in each period, so what higher
        ones say holds for a moment only.
        """
        feedforward = self.model.compute(np.ascontiguousarray(motion))
        efforts, positions = feedforward.efforts[:1].copy(), feedforward.motor_positions[:2].copy()
        motors = feedforward.motor_efforts[:1].copy()
        efforts[0] -= external
        positions[0] -= external / self.stiffness
        limit = self.control.limit
        motors[0] = np.clip(motors[0] - external, -limit, limit)
        return feedforward._replace(
            efforts=efforts,
            motor_positions=positions,
            motor_efforts=motors,
            status=feedforward.status & ~_BOUNDED,
        )


class MpcNode(StreamLifecycle):
    """Publishes feedforwards of predicted motions; the numbers come from `PredictiveControl`."""

    def __init__(self) -> None:
        super().__init__("mpc_node", SETTINGS)
        self._controlled: _Controlled | None = None
        self._period: float = value(self, "period")
        self._delay: float = value(self, "delay")
        self._one_publisher = OnePublisher(partial(publishers_of, self, IN), bytes_continue)
        self.events.lost(IN, 0)  # none so far, as diagnostics say from the start
        self._predictions, self._motions = Stream(), Stream()
        self._late = self._gaps = self._unsolved = self._fallbacks = 0
        self._clear()
        self._publisher = self.events.publisher(FeedforwardTorque, OUT, stream_qos())
        self.listen(DesiredMotion, IN, self._take_desired)
        self.listen(JointState, LINKS, partial(self._take_state, LINKS))
        self.listen(JointState, MOTORS, partial(self._take_state, MOTORS))
        self.listen(Float64MultiArray, COMMANDS, self._take_command, raw=False)
        self._diagnostics = self.report_by(self._report)
        self.autostart()

    # states

    def load(self) -> None:
        """Load the robot and predict once, so that the first answer is as fast as all others."""
        self._use(robot_of_file(self))

    def unload(self) -> None:
        """Forget the robot."""
        self._controlled = None

    def begin(self) -> None:
        """Answer from now on, whatever the stamps and the publisher before."""
        self._clear()
        self._one_publisher.forget()

    def _use(self, robot: Robot) -> None:
        config = PredictiveConfig(self._period, value(self, "natural_frequency"), value(self, "velocity_lag"))
        sight = (sum(config.steps[:-1]) + 1) * self._period
        if self._delay < sight:
            raise InputError(
                f"parameter 'delay' is {self._delay:g}, and the controller looks {sight:g} s ahead; raise it "
                "to that and a little more"
            )
        made = _Controlled(robot, config, value(self, "observer_bandwidth"))
        model, names = made.model, robot.joint_names
        self._motion_reader = MotionReader(model)
        self._readers = {topic: RowsReader(names, ("position", "velocity")) for topic in (LINKS, MOTORS)}
        self._writer = AnswerWriter(model.joint_names, (), (), "body_fixed")
        self._controlled = made
        self._diagnostics.hardware_id = robot.name
        self.get_logger().info(
            f"robot {robot.name!r}, {made.n} joints, {1.0 / self._period:g} Hz; the robot follows "
            f"{self._delay:g} s after desired_motion"
        )

    def _clear(self) -> None:
        """Begin anew, whatever came before."""
        self._stamps = {topic: StampFilter() for topic in (IN, LINKS)}
        self._states: dict[str, tuple[int, Array]] = {}  # the newest of links and motors
        self._measured: tuple[int, Measurement] | None = None  # what is not answered yet
        self._command: Array | None = None  # likewise
        self._acted: Array | None = None  # the command before
        self._before = 0  # the instant of the last measurement that was answered [ns]
        self._begun: int | None = None  # that of the first one [ns]
        self._predicted = 0  # when a prediction was last in time [ns]
        self._forget_motion()

    def _forget_motion(self) -> None:
        self._preview: MotionPreview | None = None
        self._origin = self._newest = 0  # instants of the first and last samples [ns]
        self._sent = 0  # that of the last feedforward [ns]
        self._predicting, self._in_row = False, 0

    def _now(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    # messages

    def _take_desired(self, data: bytes, info: dict[str, Any]) -> None:
        made = self._controlled
        if made is None or not self.running:
            return
        try:
            if lost := self._one_publisher.check(data, info):
                self.events.lost(IN, lost)
            stamp_bytes, sample = self._motion_reader.read(data)
            stamp = instant(stamp_bytes)
            self._stamps[IN].check(stamp)
            self._stamps[IN].accept(stamp)
        except MessageRejected as rejected:
            self.rejections[IN].add(rejected)
            return
        if self._preview is None or not 0.0 < 1e-9 * (stamp - self._newest) < _NEW_STREAM:
            self._forget_motion()
            self._preview, self._origin = MotionPreview(made.n), stamp
            made.control.follow(self._preview)
        self._newest = stamp
        # times are those at which the robot is to be there
        self._preview.add(1e-9 * (stamp - self._origin) + self._delay, sample.motion)
        if self._predicting and 1e-9 * (self._now() - self._predicted) > _PATIENCE:
            self._fall_back()
        if not self._predicting:
            self._publish_motion(made, stamp)

    def _take_state(self, topic: str, data: bytes) -> None:
        if self._controlled is None or not self.running:
            return
        with self.rejections[topic]:
            stamp_bytes, rows = self._readers[topic].read(data)
            if topic == LINKS:
                self._stamps[LINKS].check(instant(stamp_bytes))
                self._stamps[LINKS].accept(instant(stamp_bytes))
            self._states[topic] = (instant(stamp_bytes), rows)
            if len(self._states) < 2:
                return
            (at, links), (also_at, motors) = self._states[LINKS], self._states[MOTORS]
            if abs(at - also_at) <= 1e9 * _ONE * self._period:
                self._measured = (at, Measurement(*links, *motors))
                self._states.clear()
                self._answer()

    def _take_command(self, msg: Float64MultiArray) -> None:
        made = self._controlled
        if made is None or not self.running:
            return
        effort = np.frombuffer(msg.data)
        if not len(effort):  # no more commands follow
            self._command = self._acted = None
            self._fall_back()
        elif len(effort) != made.n or not np.isfinite(effort).all():
            reason = Reason.NOT_FINITE if len(effort) == made.n else Reason.WRONG_LENGTH
            wrong = MessageRejected(
                reason, f"data must hold one finite effort for each of {made.n} motors, found {effort}"
            )
            self.rejections[COMMANDS].add(wrong)
        else:
            self._command = effort
            self._answer()

    # answers

    def _answer(self) -> None:
        """Predict, once a measurement and the command that answers it have come."""
        made = self._controlled
        if made is None or self._measured is None or self._command is None:
            return
        began = time.perf_counter()
        (stamp, measured), effort = self._measured, self._command
        acted = effort if self._acted is None else self._acted
        self._measured, self._command, self._acted = None, None, effort
        steady = 0.0 < 1e-9 * (stamp - self._before) <= _GAP * self._period
        self._before = stamp
        if self._begun is None or stamp < self._begun:  # a clock that starts again
            made.observer.restart()
            self._begun = stamp
        t = 1e-9 * (stamp - self._origin)
        at = self._origin + round(1e9 * made.control.answered(t))
        motion = None
        # what is late before it is computed would make all that wait for it later still
        if not self._is_late(at):
            # no motion for that instant, or numbers too large
            with self.rejections[LINKS].counting(HodynError, Reason.UNREACHABLE):
                external = made.pushed(1e-9 * (stamp - self._begun), measured, acted)
                if self._preview is not None and steady:
                    motion = made.control.predict(t, measured, effort, external)
                    self._unsolved += motion is None
        late = self._is_late(at)
        self._gaps += not steady
        self._late += late
        if motion is None or late:
            self._in_row = 0
            return
        self._in_row += 1
        if self._in_row < _IN_ROW and not self._predicting:
            return
        self._predicting, self._predicted = True, self._now()
        self._publish(at, made.feedforward(motion, external), began)
        self._predictions.tick(time.perf_counter() - began)

    def _is_late(self, at: int) -> bool:
        return 1e-9 * (self._now() - at) > _LATE * self._period

    def _fall_back(self) -> None:
        """Publish the motion itself from now on, until predictions come in time."""
        self._fallbacks += self._predicting
        self._predicting, self._in_row = False, 0

    def _publish_motion(self, made: _Controlled, at: int) -> None:
        """Publish what dynamics_node would, of the motion at an instant [ns]."""
        assert self._preview is not None
        began = time.perf_counter()
        t = 1e-9 * (at - self._origin)
        if t < self._delay:  # nothing is known of what comes before the first sample
            return
        try:
            feedforward = made.model.compute(self._preview.sample(t, made.model.motion_orders - 1))
        except HodynError as error:
            self.rejections[IN].add(MessageRejected(Reason.RESULT_NOT_FINITE, str(error)))
            return
        self._publish(at, feedforward, began)
        self._motions.tick()

    def _publish(self, at: int, feedforward: Feedforward, began: float) -> None:
        if at <= self._sent:  # stamps are to increase
            return
        self._sent = at
        took = time.perf_counter() - began
        answer = self._writer.write(packed(time_message(at)), "", feedforward, None, took)
        Publisher.publish(self._publisher, answer)  # past what asks whether it is active: it is

    # diagnostics

    @property
    def troubles(self) -> int:
        """How much was wrong so far."""
        return self.rejected + self._unsolved + self._late + self._fallbacks + self.events.total

    def _report(self) -> Report:
        values: dict[str, object] = {
            "predicting": self._predicting,
            "predictions": self._predictions.count,
            "prediction rate [1/s]": self._predictions.rate(),
            **self._predictions.as_values("prediction", "ms"),
            "motions without prediction": self._motions.count,
            "predictions without solution": self._unsolved,
            "predictions too late": self._late,
            "gaps between measurements": self._gaps,
            "fell back to the motion itself": self._fallbacks,
            "rejected": self.rejected,
            **self.rejected_by_topic(),
        }
        if idle := self.idle(values):
            return idle
        if self.new_troubles():
            return Report(WARN, "messages were rejected, or predictions late or without solution", values)
        if self._preview is None:
            return Report(WARN, "waiting for the first desired motion", values)
        if self._predicting:
            return Report(OK, "predicting", values)
        return Report(WARN, "no prediction: measurements or commands are missing, or come too late", values)


main = partial(run, MpcNode)

if __name__ == "__main__":
    sys.exit(main())
