"""What the nodes that command a robot from feedforwards share: parameters, checks, pace, diagnostics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.node import Node

from hodyn_ros.control.command_stream import CommandStream
from hodyn_ros.control.feedforward import Feedforward
from hodyn_ros.control.motor_references import TooFarError
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.nodes.diagnostics import OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.nodes.joint_choice import JointChoice
from hodyn_ros.nodes.messages import nanoseconds
from hodyn_ros.nodes.parameters import Setting, declare, value
from hodyn_ros.nodes.qos import overridable, stream_qos
from hodyn_ros.nodes.qos_events import QosEvents
from hodyn_ros.nodes.refusals import Reason, Refusals, Refused
from hodyn_ros.nodes.stream_executor import StreamGroup
from hodyn_ros.nodes.timeline import Timeline

SHARED_SETTINGS = (
    Setting(
        "joints",
        [],
        "Joints to command, in the order of the controller that takes the commands.",
        read_only=True,
        element=str,
    ),
    Setting(
        "rate",
        1000.0,
        "Commands per second [Hz]; 0: one for each feedforward, and 100 per second when none come.",
        low=0.0,
        high=2000.0,
        read_only=True,
    ),
    Setting(
        "timeout",
        0.05,
        "How far [s] a feedforward is carried on by its derivatives; without a newer one, that is a timeout.",
        low=0.001,
        high=1.0,
        read_only=True,
    ),
    Setting(
        "fade",
        0.2,
        "How long [s] commands take to their end after a timeout, and to take up the first feedforward.",
        low=0.001,
        high=10.0,
        read_only=True,
    ),
    Setting(
        "lead",
        0.0,
        "From the calculation of a command to the middle of the time it acts [s]: the way to the drive and "
        "half of its period.",
        low=0.0,
        high=0.1,
        read_only=True,
    ),
)

IN = "feedforward_torque"

_WATCH_RATE = 100.0  # [Hz]


class FeedforwardConsumer(Node, ABC):
    """Takes feedforwards and sends commands; `settings` of the node begin with SHARED_SETTINGS."""

    def __init__(self, name: str, settings: Sequence[Setting]) -> None:
        super().__init__(name)
        declare(self, settings)
        self.joints = JointChoice(value(self, "joints"))
        self.streams = StreamGroup()
        self.timeout: float = value(self, "timeout")
        self.fade: float = value(self, "fade")
        self._lead = round(1e9 * value(self, "lead"))
        self._rate: float = value(self, "rate")
        self._timeline = Timeline()
        self._feedforwards, self._commands = Stream(), Stream()
        self._refusals = Refusals(self.get_logger().warning, IN)
        self._events = QosEvents(self)
        self._largest_step: Array = np.zeros(1)
        self._timeouts_reported = self._refused_reported = 0

    def publisher(self, kind: Any, topic: str) -> Any:
        """Return a publisher of commands; an old one is worth nothing, so only the last is kept."""
        made = self.create_publisher(
            kind,
            topic,
            stream_qos(1),
            qos_overriding_options=overridable(publisher=True),
            event_callbacks=self._events.of_publisher(topic),
        )
        self._events.watch(topic, made)
        return made

    def start(self) -> None:
        """Begin to listen, once the node is ready to follow."""
        # Only the newest feedforward counts.
        self._subscription = self.create_subscription(
            FeedforwardTorque,
            IN,
            self._take,
            stream_qos(1),
            callback_group=self.streams,
            qos_overriding_options=overridable(),
            event_callbacks=self._events.of_subscription(IN),
        )
        self._events.watch(IN, self._subscription)
        self._timer = self.create_timer(
            1.0 / (self._rate or _WATCH_RATE), self._on_time, callback_group=self.streams
        )
        self._diagnostics = Diagnostics(self, self._report)
        pace = f"{self._rate:g} commands per second" if self._rate else "a command for each feedforward"
        self.get_logger().info(f"{len(self.joints.names)} joints, {pace}; waiting for the first feedforward")

    @property
    @abstractmethod
    def stream(self) -> CommandStream:
        """What commands come from."""

    @abstractmethod
    def follow(self, instant: int, feedforward: Feedforward, now: int) -> Array:
        """Follow a feedforward from now on; return the steps it brings. Raises InputError."""

    @abstractmethod
    def send(self, at: int) -> bool:
        """Send the command for an instant [ns]; return whether there was one."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """Return what this node has to say in diagnostics beside what all say."""

    @abstractmethod
    def ending(self) -> str:
        """Return in words what happens after a timeout."""

    def acts_at(self) -> int:
        """Return the instant [ns] at which a command that is calculated now will act."""
        return int(self.get_clock().now().nanoseconds) + self._lead

    def _take(self, msg: FeedforwardTorque) -> None:
        stamp, acts_at = nanoseconds(msg.header.stamp), self.acts_at()
        try:
            self._timeline.check(stamp)
            self._check_age(1e-9 * (acts_at - stamp))
            steps = self.follow(stamp, self.joints.feedforward(msg), acts_at)
        except Refused as refused:
            self._refusals.add(refused)
            return
        except TooFarError as error:
            self._refusals.add(Refused(Reason.BAD_MOTION, str(error)))
            return
        except InputError as error:
            self._refusals.add(Refused(Reason.MISSING_DERIVATIVES, str(error)))
            return
        self._timeline.accept(stamp)
        self._feedforwards.tick()
        self._largest_step = np.maximum(self._largest_step, steps)
        if not self._rate:
            self._command(acts_at)

    def _check_age(self, age: float) -> None:
        if abs(age) > self.timeout:
            where = f"{age:.3g} s before" if age > 0.0 else f"{-age:.3g} s after"
            raise Refused(
                Reason.BAD_TIMES,
                f"its stamp lies {where} the clock of this node, and it serves for {self.timeout:g} s; let "
                "both run by the same clock (use_sim_time), or raise 'timeout'",
            )

    def _on_time(self) -> None:
        acts_at = self.acts_at()
        if self._rate or not self.stream.in_time(acts_at):
            self._command(acts_at)

    def _command(self, at: int) -> None:
        before = self.stream.timeouts
        if self.send(at):
            self._commands.tick()
        if self.stream.timeouts > before:
            self.get_logger().warning(
                f"no feedforward for {self.timeout:g} s: {self.ending()}", throttle_duration_sec=1.0
            )

    def _report(self) -> Report:
        self._events.look()
        steps, self._largest_step = self._largest_step, np.zeros(1)
        timeouts, refused = self.stream.timeouts, self._refusals.total
        values: dict[str, object] = {
            "following": self.stream.following,
            "feedforwards": self._feedforwards.count,
            "feedforward rate [1/s]": self._feedforwards.rate(),
            "age of the last feedforward [s]": self._feedforwards.age(),
            "commands": self._commands.count,
            "command rate [1/s]": self._commands.rate(),
            "timeouts": timeouts,
            "largest step in effort at a feedforward [N.m or N]": float(steps[-1]),
            **self.facts(),
            "refused": refused,
            **self._refusals.as_values(),
            **self._events.as_values(),
        }
        new_timeouts, self._timeouts_reported = timeouts - self._timeouts_reported, timeouts
        new_refused, self._refused_reported = refused - self._refused_reported, refused
        if not self.stream.following and timeouts:
            return Report(WARN, f"no feedforward for {self.timeout:g} s: {self.ending()}", values)
        if not self.stream.following:
            return Report(WARN, "waiting for the first feedforward", values)
        if new_timeouts or new_refused:
            return Report(WARN, f"{new_timeouts} timeouts, {new_refused} feedforwards refused", values)
        return Report(OK, "following", values)
