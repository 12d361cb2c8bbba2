"""What the nodes in front of forward controllers share: commands at a rate of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from hodyn_ros.control.motor_pd import warm_up_springs
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import FirstEffort
from hodyn_ros.guard.guarded_robot import drives_of, guard_limits
from hodyn_ros.ros.feedforward_consumer import FeedforwardConsumer
from hodyn_ros.ros.guarded_loads import GuardedLoads
from hodyn_ros.ros.parameters.guard_parameters import GRAVITY, guard_config, guarded_robot
from hodyn_ros.ros.parameters.parameters import ParameterSpec, parameters, value
from hodyn_ros.ros.streams.fixed_rate import FixedRate, last_due, timer_by_clock
from hodyn_ros.ros.streams.one_publisher import identity, publishers_of
from hodyn_ros.ros.streams.qos import latched_qos

FORWARD_SETTINGS = (
    *parameters(
        joints=ParameterSpec(
            [], "Joints to command, in the order of the controller that takes the commands.", element=str
        ),
        robot_config=ParameterSpec(
            "",
            "Robot whose limits are kept, and whose dynamics give the efforts of a stop: path of a YAML "
            "file, or the name of a shipped one; empty: no limits are known.",
        ),
    ),
    GRAVITY,
    *parameters(
        controllers=ParameterSpec(
            [],
            "Controllers that take the commands: nothing is sent until all of them are active, then "
            "commands fade in; empty: not checked.",
            element=str,
        ),
        controller_manager=ParameterSpec(
            "controller_manager", "Name of the controller manager of these controllers."
        ),
        rate=ParameterSpec(
            1000.0,
            "Commands per second [Hz]; 0: one for each feedforward, and 100 per second when none come.",
            within=(0.0, 2000.0),
        ),
    ),
)

_WATCH_RATE = 100.0  # [Hz]


class ForwardCommands(FeedforwardConsumer):
    """Commands at the parameter `rate`; `settings` of the node begin with FORWARD_SETTINGS."""

    def start_guarded(self, *, motor: bool, end: str, efforts_act: bool) -> None:
        """Make the guard and begin; with `motor` efforts are those of the motors.

        `efforts_act`: whether they are all that drives do, and not beside a loop of their own.
        """
        names, robot = value(self, "joints"), guarded_robot(self)
        self.drives = None if robot is None else drives_of(robot, names)
        if self.drives is not None:
            warm_up_springs(self.drives)
        loads = GuardedLoads(self, robot, names, motor=motor, at_links=True)
        guard = CommandGuard(
            names,
            guard_config(
                self, feedback=False, first_effort=FirstEffort.ZERO, end=end, efforts_act=efforts_act
            ),
            None if robot is None else guard_limits(robot, names, motor=motor),
            model=loads.carried,
            observer=loads.observer() if efforts_act else None,
        )
        self.start(guard, names, "joint_states", loads)
        controllers = value(self, "controllers")
        manager = value(self, "controller_manager")
        self._activity = ControllerActivity(self, controllers, manager) if controllers else None
        self._rate: float = value(self, "rate")
        rate = self._rate or _WATCH_RATE
        self._timer = timer_by_clock(self, 1.0 / rate, self._on_time, self.streams)
        self._grid = FixedRate(rate, self.now(), most=1)
        rhythm = f"{self._rate:g} commands per second" if self._rate else "a command for each feedforward"
        limits = "no limits known" if robot is None else f"limits of {robot.name!r}"
        self.get_logger().info(f"{len(names)} joints, {rhythm}, {limits}; waiting for the first feedforward")

    def on_feedforward(self) -> None:
        """Command at once where no rate is given."""
        if not self._rate:
            self.command(self.now())

    def _on_time(self) -> None:
        now = self.now()
        self.guard.listening = self._activity is None or self._activity.all_active
        if self._grid.next == 0 or self._grid.lost(now):
            self._grid = FixedRate(self._grid.rate, last_due(self._timer, now), most=1)
        for k in self._grid.due(now):
            # the newest instant alone, so that commands are evenly spaced, or one is left out
            if self._rate or not self.guard.desired.in_time(now):
                self.command(self._grid.instant(k))


try:
    from controller_manager_msgs.msg import ControllerManagerActivity
except ImportError:  # it comes with ros2_control
    ControllerManagerActivity = None

_ACTIVE = 3  # lifecycle_msgs/State.PRIMARY_STATE_ACTIVE
_DIAGNOSTICS = "/diagnostics"
_STATUS, _KEY = "Controllers Activity", ".state"  # of the controller manager there


class ControllerActivity:
    """Whether all of some controllers are active; none is until the controller manager has said so.

    By `<manager>/activity` (ros2_control 4.30 and newer), which is published at each change. Where its
    messages are not installed, by /diagnostics, which come once a second: a controller that is off for less
    may not be noticed. All robots share that topic, and managers in two namespaces say the same name there.
    """

    def __init__(self, node: Node, controllers: Sequence[str], manager: str) -> None:
        self._wanted = frozenset(controllers)
        self._active: frozenset[str] = frozenset()
        self._node = node
        self._manager = node.resolve_topic_name(manager)
        if ControllerManagerActivity is not None:
            self._kept = node.create_subscription(
                ControllerManagerActivity, f"{manager}/activity", self._take_activity, latched_qos()
            )
        else:
            self._kept = node.create_subscription(DiagnosticArray, _DIAGNOSTICS, self._take_diagnostics, 100)

    @property
    def all_active(self) -> bool:
        """Whether all of them are active."""
        return self._wanted <= self._active

    def _take_activity(self, msg: Any) -> None:
        self._active = frozenset(each.name for each in msg.controllers if each.state.id == _ACTIVE)

    def _take_diagnostics(self, msg: DiagnosticArray, info: Mapping[str, Any]) -> None:
        for status in msg.status:
            if status.name.endswith(_STATUS) and self._is_from_manager(info):
                self._active = frozenset(
                    item.key.removesuffix(_KEY)
                    for item in status.values
                    if item.key.endswith(_KEY) and item.value == "active"
                )

    def _is_from_manager(self, info: Mapping[str, Any]) -> bool:
        """Whether a message is from the manager of these controllers; not, where that cannot be said."""
        publishers, sender = publishers_of(self._node, _DIAGNOSTICS), identity(info)
        if sender is not None:
            return publishers.get(sender) == self._manager
        name = self._manager.rpartition("/")[2]
        return {each for each in publishers.values() if each.rpartition("/")[2] == name} == {self._manager}
