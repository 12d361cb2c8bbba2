"""What the nodes that command a robot share: topics, the guard, its words in log and diagnostics."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState

from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.guard.command_guard import CommandGuard, GuardedCommand
from hodyn_ros.guard.reasons import State, StreamError
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.joint_subset import FeedforwardReader, StateReader
from hodyn_ros.ros.conversions.layout import instant
from hodyn_ros.ros.diagnostics import ERROR, OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.ros.guarded_loads import GuardedLoads
from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare
from hodyn_ros.ros.streams.qos import sensor_qos, stream_qos
from hodyn_ros.ros.streams.qos_events import QosEvents
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason, Rejections
from hodyn_ros.ros.streams.stream_executor import StreamGroup
from hodyn_ros.ros.triggers import serve_triggers

IN = "feedforward_torque"
REMINDER = 10.0  # [s] from one line to the next about what goes on
_SLEW = 2e-4  # [s] by which two clocks may go apart between two commands: it takes as long to read both
_READINGS = 10  # of both clocks at most, where the machine holds this process up between them
_STOPS_WITHIN = 4.0  # [s] that a stop has at least, and less than `ros2 launch` waits
_SPARE = 2.0  # times as long it may take on a busy machine, where the time of a guard goes more slowly
_ARRIVAL = Duration(seconds=0.5)  # that the last command may take


class FeedforwardConsumer(Node, ABC):
    """Takes feedforwards and measurements, and sends what its guard commands.

    A node that `StopsFirst`: on a signal it brings the robot to rest and sends the end of its commands.
    """

    stop_within = _STOPS_WITHIN  # [s]

    def __init__(self, name: str, settings: Sequence[ParameterSpec]) -> None:
        super().__init__(name)
        declare(self, settings)
        self.streams = StreamGroup()
        self._feedforwards, self._commands, self._measurements = Stream(), Stream(), Stream()
        self._rejected_feedforwards = Rejections(self.get_logger().warning, IN)
        self._events = QosEvents(self)
        self._largest_step = 0.0
        self._saturated = self._limited = self._troubles_reported = 0
        self._command_publishers: list[Any] = []
        self._commanding = False  # whether anything was sent since the last end
        self._at = 0  # the instant of the last command [ns]
        self._step = 0.0  # [s] by which the clock was set after that instant was read
        # the node's [ns] and a steady one [s], at the last command
        self._clocks: tuple[int, float] | None = None

    def publisher(self, kind: Any, topic: str) -> Any:
        """Return a publisher of commands; an old one is worth nothing, so only the last is kept."""
        made = self._events.publisher(kind, topic, stream_qos(1))
        self._command_publishers.append(made)
        return made

    def start(
        self,
        guard: CommandGuard,
        joint_names: Sequence[str],
        measured_on: str,
        loads: GuardedLoads,
    ) -> None:
        """Begin to listen, once the node is ready.

        `loads`: what its model of the robot counts with.
        """
        self._loads = loads
        self.guard = loads.guard = guard
        self.joint_names = list(joint_names)
        self._feedforward_reader = FeedforwardReader(joint_names)
        self._measurement_reader = StateReader(joint_names, with_velocity=guard.config.measured)
        self._rejected_measurements = Rejections(self.get_logger().warning, measured_on)
        # Only the newest of each counts. What was lost is not asked for again: it would come too late, and
        # all that follow would wait for it.
        listen, streams = self._events.subscription, self.streams
        self._kept = [listen(FeedforwardTorque, IN, self._take_feedforward, sensor_qos(1), streams)]
        # also where a motion is joined anywhere: checks hold then, as far as somebody measures
        qos = sensor_qos(1) if guard.config.measured else sensor_qos()
        self._kept.append(listen(JointState, measured_on, self._take_measurement, qos, streams))
        self._diagnostics = Diagnostics(self, self._report)
        self._served = serve_triggers(self, self.streams, start=self._join)

    # what a node adds

    @abstractmethod
    def reference(self, feedforward: Feedforward) -> Reference:
        """Return what of a feedforward is followed. Raises InputError where it holds too little."""

    @abstractmethod
    def send(self, at: int, command: GuardedCommand) -> bool:
        """Send a command, which acts at an instant [ns]; return whether that has been done."""

    @abstractmethod
    def send_end(self) -> None:
        """Notify drives that no more commands come, where there is such a thing."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """Return what this node has to say in diagnostics beside what all say."""

    def on_feedforward(self) -> None:
        """A feedforward has been taken."""

    def on_measurement(self) -> None:
        """A measurement has been taken."""

    # messages

    def now(self) -> int:
        """Return the reading of the clock [ns]."""
        return int(self.get_clock().now().nanoseconds)

    def steady(self) -> float:
        """Return the reading of a clock that nobody sets [s]."""
        return time.monotonic()

    def _take_feedforward(self, data: bytes) -> None:
        try:
            stamp, feedforward = self._feedforward_reader.read(data)
            reference = self.reference(feedforward)
            step = self.guard.follow(self.now(), instant(stamp), reference, feedforward.status)
        except MessageRejected as rejected:
            self._rejected_feedforwards.add(rejected)
        except StreamError as error:
            reason = Reason.BAD_TIMES if error.clock else Reason.BAD_MOTION
            self._rejected_feedforwards.add(MessageRejected(reason, str(error)))
        except InputError as error:
            self._rejected_feedforwards.add(MessageRejected(Reason.MISSING_DERIVATIVES, str(error)))
        else:
            self._feedforwards.tick()
            self._largest_step = max(self._largest_step, step)
            self.on_feedforward()

    def _take_measurement(self, data: bytes) -> None:
        try:
            stamp, state = self._measurement_reader.read(data)
            self.guard.measure(self.now(), instant(stamp), *state)
        except MessageRejected as rejected:
            self._rejected_measurements.add(rejected)
        except StreamError as error:
            reason = Reason.BAD_TIMES if error.clock else Reason.BAD_MOTION
            self._rejected_measurements.add(MessageRejected(reason, str(error)))
        else:
            self._measurements.tick()
            self.on_measurement()

    # commands

    def command(self, at: int) -> None:
        """Command for an instant [ns], which is about now."""
        self._loads.at(at)
        command = self.guard.command(at, self._elapsed(at))
        for change in self.guard.transitions:
            text = f"{change.before.value} -> {change.after.value}: {change.reason}"
            if change.after in (State.JOINING, State.FOLLOWING):
                self.get_logger().info(text)
            else:  # a line of its own, as rclpy takes one severity for each
                self.get_logger().warning(text)
        self.guard.transitions.clear()
        if self.guard.reason.start_pose:
            self.get_logger().warning(str(self.guard.reason), throttle_duration_sec=REMINDER)
        if command is not None and not self._held_up():
            self._saturated += command.saturated
            self._limited += command.rate_limited
            if self.send(at + round(1e9 * self.guard.config.lead), command):
                self._commanding = True
                self._commands.tick()
        elif self._commanding and (self.guard.ended or self._heard_again()):
            self._end()

    def _heard_again(self) -> bool:
        """Whether controllers that were off, and keep what they were sent last, are back."""
        return self.guard.listening and self.guard.state is State.WAITING

    def _held_up(self) -> bool:
        """Whether this process was held up since it began a command, which drives would no longer expect.

        It is not sent; the next one finds how much time has passed.
        """
        if self._clocks is None or self.get_clock().ros_time_is_active:
            return False
        return self.steady() - self._clocks[1] > self.guard.config.drive_timeout

    def _elapsed(self, at: int) -> float | None:
        """Return how long [s] ago the last command was, whatever the clock has done since.

        By the instants of the commands, from which alone they then follow, but for steps of the clock. None
        in simulated time, which goes as it likes.
        """
        if self.get_clock().ros_time_is_active:
            return None
        before, self._clocks = self._clocks, self._read_clocks()
        at_before, self._at = self._at, at
        if before is None:
            return None
        (now, steady), (now_before, steady_before) = self._clocks, before
        apart, real = 1e-9 * (at - at_before), steady - steady_before
        step = 1e-9 * (now - now_before) - real + self._step  # of the clock
        self._step = 0.0
        if abs(step) <= _SLEW:
            step = 0.0
        elif abs(apart - real) < abs(apart - step - real):  # set since `at` was read: the next one shows it
            self._step, step = step, 0.0
        return apart - step

    def _read_clocks(self) -> tuple[int, float]:
        """Return the readings of the clock [ns] and of the steady one [s] at one moment.

        A process that is held up between the two would take that for a step of the clock, so both are read
        again then.
        """
        for _ in range(_READINGS):
            before, now, after = self.steady(), self.now(), self.steady()
            if after - before <= _SLEW:
                break
        return now, after

    def _join(self) -> str:
        """Let the robot join a motion again, although a fault has stopped it."""
        if not self.guard.start():
            raise InputError(f"nothing to start: the state is {self.guard.state.value}")
        return "joins the motion as soon as all checks pass"

    def _end(self) -> None:
        self.send_end()
        self._commanding = False

    # the end of the process

    def stopping(self) -> bool:
        """Begin to bring the robot to rest; False where nothing has been commanded."""
        if not self._commanding:
            return False
        takes = self.guard.stop_takes
        self.stop_within = max(_STOPS_WITHIN, _SPARE * takes)
        if takes > _STOPS_WITHIN:  # a gentle 'deceleration', or a long 'fade'
            self.get_logger().warning(
                f"the stop takes {takes:.3g} s; another signal, as `ros2 launch` sends it after 5 s, would "
                "end the commands before"
            )
        self.guard.stop()
        return True

    @property
    def stopped(self) -> bool:
        """Whether the robot stands and the end has been sent."""
        return not self._commanding

    def destroy_node(self) -> None:
        """End the commands where there was no time to stop, and see that the last one arrives."""
        if self.context.ok():
            if self._commanding:
                self._end()
            for publisher in self._command_publishers:
                publisher.wait_for_all_acked(_ARRIVAL)
        super().destroy_node()

    # diagnostics

    def _report(self) -> Report:
        self._events.look()
        guard = self.guard
        step, self._largest_step = self._largest_step, 0.0
        rejected = self._rejected_feedforwards.total
        values: dict[str, object] = {
            "state": guard.state.value,
            "reason": str(guard.reason),
            "feedforwards": self._feedforwards.count,
            "feedforward rate [1/s]": self._feedforwards.rate(),
            "age of the last feedforward [s]": self._feedforwards.age(),
            "measurements": self._measurements.count,
            "measurement rate [1/s]": self._measurements.rate(),
            "age of the last measurement [s]": self._measurements.age(),
            "mean age of measurements by their stamps [s]": guard.measured.latency,
            "commands": self._commands.count,
            "command rate [1/s]": self._commands.rate(),
            "commands cut to an effort limit": self._saturated,
            "commands whose step was cut": self._limited,
            "largest step in effort at a feedforward [N.m or N]": step,
            "full turns by which encoders have jumped": guard.measured.wraps,
            "load that the guard counts with [kg]": self._loads.load.mass,
            **self.facts(),
            **{f"stopped for: {fault.value}": count for fault, count in guard.faults.items()},
            "rejected": rejected,
            **self._rejected_feedforwards.as_values(),
            **self._rejected_measurements.beside("rejected measurements"),
            **self._events.as_values(),
        }
        troubles = rejected + self._rejected_measurements.total + self._saturated + self._limited
        new, self._troubles_reported = troubles - self._troubles_reported, troubles
        text = f"{guard.state.value}: {guard.reason}"
        if guard.state in (State.STOPPING, State.STOPPED):
            return Report(ERROR if guard.ended else WARN, text, values)
        if guard.state is State.WAITING:
            return Report(WARN, text, values)
        if new:
            return Report(WARN, f"{guard.state.value}, but messages were rejected, or commands cut", values)
        return Report(OK, guard.state.value, values)
