"""simulator_node: a robot with drives of any kind, simulated in real time, in place of a real one.

Takes motor efforts as a drive does: each counts from when it arrives until the next one. Until the first
one the brakes are on, and the robot stands still in equilibrium with gravity. (The efforts that balance it
could not do so for long, as the equilibrium is not a stable one.) A command without efforts, which says that
no more follow, puts the brakes on again where the robot is, and so does a standstill of the commands of
`command_timeout`.

Topics: `effort_commands` (std_msgs/Float64MultiArray) in, motor efforts in the order of the robot's driven
joints, two for a joint of variable stiffness; `joint_states` (sensor_msgs/JointState) out, all joints, those
of couplings and loops too, with the effort of the springs, zero where nothing drives; `motor_states` (the
same) out, motors reflected to the links, with the motor effort, named as their joint (`elbow`) or
`elbow/first` and `elbow/second`; `/diagnostics` at 1 Hz.

Drives of every kind are compiled, and all of a tree; loops take a few tenths of a millisecond for each
millisecond. Where the machine cannot keep up, states are left out, and that is said.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from functools import partial

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from hodyn_ros import share
from hodyn_ros.array import Array
from hodyn_ros.control.linear_drives import DAMPING_TIME
from hodyn_ros.control.links import Links
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.messages import time_message
from hodyn_ros.ros.diagnostics import ERROR, OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare, parameters, value
from hodyn_ros.ros.parameters.robot_file import robot_of_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.fixed_rate import FixedRate, last_due, timer_by_clock
from hodyn_ros.ros.streams.qos import advertise, stream_qos, subscribe
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason, Rejections
from hodyn_ros.ros.streams.stream_executor import StreamGroup
from hodyn_ros.simulation.simulation import STEP_LIMIT, RobotSimulation
from hodyn_ros.trajectory.files.reader import read_motion

SETTINGS = parameters(
    robot_config=ParameterSpec(
        "", "Robot to simulate: path of a YAML file, or the name of a shipped one such as panda.yaml."
    ),
    rate=ParameterSpec(1000.0, "States published per second [Hz].", within=(1.0, 2000.0)),
    damping_time=ParameterSpec(
        DAMPING_TIME,
        "Damping beside the springs over their stiffness [s]: D = K t, where the robot's file gives none "
        "of its own. Assumed; no real joint is without, and in a joint without any, feedback that comes "
        "late makes the spring swing ever more.",
        within=(0.0, 0.1),
    ),
    command_timeout=ParameterSpec(
        0.0,
        "Time [s] after the last command at which the brakes engage, as in a driver; 0: never.",
        within=(0.0, 10.0),
    ),
    initial_position=ParameterSpec(
        [],
        "Coordinates at the start [rad or m], one per joint of a tree; empty: where `trajectory` starts, "
        "or home.",
    ),
    trajectory=ParameterSpec(
        "",
        "Trajectory whose start is the initial position: path of a YAML file, or the name of a shipped one.",
    ),
)

# [s] Commands older than this are reported; a longer standstill of this process is not simulated after it.
_OLD_COMMAND = 0.1
_LONGEST_STEP = 1.0
# Of what is not compiled: the quickest spring turns by a hundredth too slowly, and the others as they should.
_COARSE = 1.0


class SimulatorNode(Node):
    """Lets a `RobotSimulation` follow the clock."""

    def __init__(self) -> None:
        super().__init__("simulator_node")
        declare(self, SETTINGS)
        robot = robot_of_file(self)
        self._simulation = RobotSimulation(
            robot,
            self._initial_position(robot),
            damping=self._damping(robot),
            step_limit=STEP_LIMIT if robot.closure is None else _COARSE,
        )
        self._simulation.warm_up()
        self._stopped = ""  # why the simulation ended
        self._brake()
        self._names = list(robot.tree.joint_names)
        self._driven = [self._names.index(name) for name in robot.driven_joints]
        train = robot.drive_train
        self._motor_names = list(robot.driven_joints if train is None else train.motor_names)
        # A command counts from when it has arrived, even if this process comes to it later. The middleware
        # says when that was, by the clock of the machine.
        self._arrivals_known = not self.get_parameter("use_sim_time").value
        self._fixed_rate = FixedRate(value(self, "rate"), self._now(), most=1)
        self._simulated_to = self._fixed_rate.origin
        self._waiting: deque[tuple[int, Array]] = deque()  # when commands arrived [ns], and their efforts
        self._commands, self._states = Stream(), Stream()
        self._commanded_at = 0  # [ns], when the last command came
        self._command_timeout: float = value(self, "command_timeout") or np.inf
        self._rejections = Rejections(self.get_logger().warning, "effort_commands")
        self._joint_states = advertise(self, JointState, "joint_states", stream_qos())
        self._motor_states = advertise(self, JointState, "motor_states", stream_qos())
        streams = StreamGroup()
        self._subscription = subscribe(
            self, Float64MultiArray, "effort_commands", self._take, stream_qos(), streams
        )
        self._timer = timer_by_clock(self, 1.0 / self._fixed_rate.rate, self._publish_due, streams)
        self._diagnostics = Diagnostics(self, self._report, hardware_id=robot.name)
        self.get_logger().info(
            f"robot {robot.name!r}, {len(self._names)} joints, {len(self._motor_names)} motors; "
            f"states at {self._fixed_rate.rate:g} Hz"
        )

    def _damping(self, robot: Robot) -> Array:
        train = robot.drive_train
        return (
            np.zeros(len(robot.driven_joints))
            if train is None
            else train.damping(value(self, "damping_time"))
        )

    def _initial_position(self, robot: Robot) -> Array:
        position, trajectory = value(self, "initial_position"), value(self, "trajectory")
        if position:
            return np.array(position)
        links = Links(robot)
        if not trajectory:
            return links.home
        motion = read_motion(share.find("config", trajectory))
        if motion.moves_base and not robot.moves_base:
            raise InputError(f"{trajectory} moves a platform or a floating base; joints alone are meant")
        try:
            start = motion.for_joints(robot.joint_names).sample(0.0, 1)
        except InputError as error:
            raise InputError(f"{trajectory}: {error}") from error
        if start.pose is None or start.twists is None:
            return start.joints[0]
        return links.coordinates(
            start.joints, BaseMotion(start.pose, start.twists, representation="body_fixed")
        )[0]

    def _now(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    # commands

    def _take(self, msg: Float64MultiArray, info: Mapping[str, int]) -> None:
        now = self._now()
        effort = np.frombuffer(msg.data)
        if not len(effort):
            self._apply_until(now)
            self._brake()
            self.get_logger().info("a command without efforts: the brakes are on")
            return
        with self._rejections:
            n = len(self._motor_names)
            if len(effort) != n:
                raise MessageRejected(
                    Reason.WRONG_LENGTH,
                    f"data holds {len(effort)} efforts for {n} motors; send one per motor, in the order "
                    f"{self._motor_names}",
                )
            if not np.isfinite(effort).all():
                motor = int(np.flatnonzero(~np.isfinite(effort))[0])
                raise MessageRejected(
                    Reason.NOT_FINITE,
                    f"data holds {effort[motor]} for motor {self._motor_names[motor]!r}; send finite numbers",
                )
            arrived = min(info["received_timestamp"], now) if self._arrivals_known else now
            self._commanded_at = now
            self._waiting.append((arrived, effort))
            # a state that was due before the command, and has not been published yet, is not to feel it
            if self._fixed_rate.next == 0 or arrived < self._fixed_rate.instant(self._fixed_rate.next):
                self._apply_until(arrived)
            self._commands.tick()

    def _apply_until(self, instant: int) -> None:
        """Simulate up to an instant [ns], with the commands that have arrived by then."""
        while self._waiting and self._waiting[0][0] <= instant:
            arrived, effort = self._waiting.popleft()
            self._advance_to(arrived)
            self._effort, self._braked = effort, False
        self._advance_to(instant)

    def _brake(self) -> None:
        """Let the robot stand where it is, held by its brakes."""
        if not self._stopped:
            self._simulation.stand()
            self._effort = self._simulation.gravity_effort()
        self._braked = True

    # time

    def _advance_to(self, instant: int) -> None:
        """Simulate up to an instant [ns], unless that has been done."""
        duration = 1e-9 * (instant - self._simulated_to)
        if duration <= 0.0:
            return
        if duration > _LONGEST_STEP:
            self.get_logger().warning(f"held up for {duration:.3g} s; the robot stood still meanwhile")
        elif not self._braked and not self._stopped:
            try:
                self._simulation.advance(duration, self._effort)
            except HodynError as error:
                self._simulation.halt()
                self._stopped = f"the simulation has ended, and the robot stands where it was: {error}"
                self.get_logger().error(self._stopped)
        self._simulated_to = instant

    def _publish_due(self) -> None:
        now = self._now()
        if not self._braked and self._uncommanded(now):
            self._brake()
            self.get_logger().warning(f"no command for {self._command_timeout:g} s: the brakes are on")
        if self._fixed_rate.next == 0 or self._fixed_rate.lost(now):
            self._fixed_rate = FixedRate(self._fixed_rate.rate, last_due(self._timer, now), most=1)
            self._simulated_to = self._fixed_rate.origin
        for k in self._fixed_rate.due(now):
            instant = self._fixed_rate.instant(k)
            self._apply_until(instant)
            self._publish(instant)
            self._states.tick(max(0.0, 1e-9 * (now - instant)))
        if self._waiting:
            self._apply_until(self._waiting[-1][0])

    def _uncommanded(self, now: int) -> bool:
        """Whether commands have ended; while a simulated clock stands or goes slowly, they do as well."""
        by_clock = 1e-9 * (now - self._commanded_at)  # below zero where that was set back
        most = self._command_timeout
        return self._commands.age() > most and not 0.0 <= by_clock <= most

    def _publish(self, instant: int) -> None:
        robot = self._simulation
        stamp = time_message(instant)
        motors = self._motor_names, robot.motor_position, robot.motor_velocity, self._effort
        (position, velocity), effort = robot.joints, np.zeros(len(self._names))
        effort[self._driven] = robot.link_effort
        self._motor_states.publish(self._state(stamp, *motors))
        self._joint_states.publish(self._state(stamp, self._names, position, velocity, effort))

    @staticmethod
    def _state(stamp: Time, names: list[str], position: Array, velocity: Array, effort: Array) -> JointState:
        msg = JointState(name=names)
        msg.header.stamp = stamp
        msg.position, msg.velocity, msg.effort = float64s(position), float64s(velocity), float64s(effort)
        return msg

    # diagnostics

    def _report(self) -> Report:
        missed = self._fixed_rate.newly_skipped()
        age = self._commands.age()
        values: dict[str, object] = {
            "states published": self._states.count,
            "rate [1/s]": self._states.rate(),
            **self._states.as_values("late", "us"),
            "missed": self._fixed_rate.skipped,
            "commands": self._commands.count,
            "command rate [1/s]": self._commands.rate(),
            "age of the last command [s]": age,
            "rejected": self._rejections.total,
            **self._rejections.as_values(),
        }
        if self._stopped:
            return Report(ERROR, self._stopped, values)
        if missed > 0.01 * self._fixed_rate.rate:
            text = f"missed {missed} states in a second: the machine is too slow, or busy with something else"
            self.get_logger().warning(text, throttle_duration_sec=10.0)
            return Report(WARN, text, values)
        if self._braked:
            return Report(WARN, "the brakes are on until the next command", values)
        if age > _OLD_COMMAND:
            return Report(WARN, f"the last command is {age:.3g} s old, and held", values)
        return Report(OK, "following commands", values)


main = partial(run, SimulatorNode)

if __name__ == "__main__":
    sys.exit(main())
