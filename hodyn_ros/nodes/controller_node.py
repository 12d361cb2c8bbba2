"""controller_node: feedforward plus feedback on the motors, a command for each measurement of the motors.

A feedforward comes with its time derivatives, so the controller evaluates it for the very instant at which
its command will act; neither the way through the nodes nor their rate shows as a delay. Where a measurement
is late, commands go on with the feedback of the last one.

Topics: `feedforward_torque` (FeedforwardTorque) in; `motor_states` (sensor_msgs/JointState) in,
positions and velocities of the motors, reflected to the links; `effort_commands`
(std_msgs/Float64MultiArray) out, motor efforts in the order of the robot's joints; `/diagnostics` at 1 Hz.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorController, MotorGains
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.nodes.diagnostics import OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.nodes.fields import float64s
from hodyn_ros.nodes.joint_order import JointOrder
from hodyn_ros.nodes.messages import nanoseconds, read_feedforward_torque, read_joint_state
from hodyn_ros.nodes.parameters import Setting, chosen, declare, value
from hodyn_ros.nodes.process import run
from hodyn_ros.nodes.qos import overridable, stream_qos
from hodyn_ros.nodes.refusals import Reason, Refusals, Refused
from hodyn_ros.nodes.robot_file import tree_robot
from hodyn_ros.nodes.stream_executor import StreamGroup
from hodyn_ros.nodes.timeline import Timeline

SETTINGS = (
    Setting(
        "robot_config",
        "",
        "Robot to control: path of a YAML file, or the name of a shipped one such as panda.yaml.",
        read_only=True,
    ),
    Setting(
        "feedforward",
        "elastic",
        "What the motors are given beside feedback: none; rigid, the torque as if the joints were stiff; "
        "elastic, the torque and the motion of the motors that the drives ask for. Drives with friction, or "
        "springs that are damped or not linear, take elastic only.",
        read_only=True,
    ),
    Setting(
        "natural_frequency",
        30.0,
        "Natural frequency of the feedback on each motor [rad/s]; Kp = B w^2.",
        low=0.0,
        high=1000.0,
        read_only=True,
    ),
    Setting(
        "damping_ratio",
        1.0,
        "Damping ratio of the feedback on each motor; Kd = 2 zeta B w.",
        low=0.0,
        high=10.0,
        read_only=True,
    ),
    Setting(
        "proportional_gains",
        [],
        "Gains [N.m/rad or N/m], one per joint, instead of natural_frequency; with derivative_gains.",
        read_only=True,
    ),
    Setting("derivative_gains", [], "Gains [N.m s/rad or N s/m], one per joint.", read_only=True),
    Setting(
        "limit_rates",
        False,
        "Whether steps from command to command are cut to the torque rates that the drives allow. Feedback "
        "that is cut comes late; keep the motion itself within these limits (hodyn check).",
        read_only=True,
    ),
    Setting(
        "lead",
        0.0007,
        "From the calculation of a command to the middle of the time it acts [s]: the way to the drive and "
        "half of its period.",
        low=0.0,
        high=0.1,
        read_only=True,
    ),
    Setting(
        "patience",
        0.0015,
        "How long [s] to wait for a measurement before commands go on without: one and a half periods.",
        low=0.0001,
        high=1.0,
        read_only=True,
    ),
    Setting(
        "longest_extrapolation",
        0.1,
        "How far [s] a feedforward is carried on by its derivatives; then the reference stands where it is. "
        "Commands end this long after the last measurement.",
        low=0.0,
        high=1.0,
        read_only=True,
    ),
)


class ControllerNode(Node):
    """Commands the motors; the numbers come from `MotorController`."""

    def __init__(self) -> None:
        super().__init__("controller_node")
        declare(self, SETTINGS)
        robot = tree_robot(self)
        train = robot.drive_train
        if train is None:
            raise InputError(f"robot {robot.model.name!r} has no drives; describe them in its file")
        if train.commanded.any():
            variable = train.joint_names[int(train.commanded.argmax())]
            raise InputError(
                f"joint {variable!r} of robot {robot.model.name!r} has a variable stiffness; "
                "FeedforwardTorque holds one motor per joint, so command its motors from robot.drive_train"
            )
        mode = FeedforwardMode(chosen(self, "feedforward", [mode.value for mode in FeedforwardMode]))
        if robot.actuation is None and mode is not FeedforwardMode.ELASTIC:
            raise InputError(
                f"parameter 'feedforward' is {mode.value!r}, but robot {robot.model.name!r} has friction, or "
                "springs that are damped or not linear; choose elastic"
            )
        self._controller = MotorController(
            robot.actuation,
            self._gains(train),
            mode,
            value(self, "longest_extrapolation"),
            train.effort_limits(robot.limits.effort),
            train.effort_rate_limits(robot.limits.effort_rate) if value(self, "limit_rates") else np.inf,
        )
        self._lead = round(1e9 * value(self, "lead"))
        self._longest_bridge: float = value(self, "longest_extrapolation")
        self._joints = JointOrder(robot.joint_names)
        self._timeline = Timeline()
        self._feedforwards, self._measurements = Stream(), Stream()
        self._held = self._saturated = self._rate_limited = 0
        self._held_before = self._saturated_before = self._rate_limited_before = 0
        warn = self.get_logger().warning
        self._refused_feedforwards = Refusals(warn, "feedforward_torque")
        self._refused_measurements = Refusals(warn, "motor_states")
        self._publisher = self.create_publisher(
            Float64MultiArray,
            "effort_commands",
            stream_qos(),
            qos_overriding_options=overridable(publisher=True),
        )
        # Only the newest of each counts.
        streams = StreamGroup()
        options = {"callback_group": streams, "qos_overriding_options": overridable()}
        self._subscriptions_kept = (
            self.create_subscription(
                FeedforwardTorque, "feedforward_torque", self._take_feedforward, stream_qos(1), **options
            ),
            self.create_subscription(
                JointState, "motor_states", self._take_measurement, stream_qos(1), **options
            ),
        )
        self._last: tuple[int, Array, Array] | None = None  # measured at [ns], position, velocity
        self._bridged = 0
        self._late = self.create_timer(value(self, "patience"), self._bridge, callback_group=streams)
        self._diagnostics = Diagnostics(self, self._report, hardware_id=robot.model.name)
        self.get_logger().info(
            f"robot {robot.model.name!r}, {robot.n_joints} joints, feedforward {self._controller.mode.value}"
        )

    def _gains(self, train: DriveTrain) -> MotorGains:
        proportional, derivative = value(self, "proportional_gains"), value(self, "derivative_gains")
        if not proportional and not derivative:
            return MotorGains.from_frequency(
                train.motor_inertia, value(self, "natural_frequency"), value(self, "damping_ratio")
            )
        for name, gains in (("proportional_gains", proportional), ("derivative_gains", derivative)):
            if len(gains) != train.n_joints:
                raise InputError(f"parameter {name!r} holds {len(gains)} gains for {train.n_joints} joints")
        return MotorGains(proportional, derivative)

    # messages

    def _take_feedforward(self, msg: FeedforwardTorque) -> None:
        stamp = nanoseconds(msg.header.stamp)
        try:
            self._timeline.check(stamp)
            feedforward = read_feedforward_torque(msg, self._joints)
            self._controller.follow(stamp, feedforward)
        except Refused as refused:
            self._refused_feedforwards.add(refused)
        except InputError as error:
            self._refused_feedforwards.add(Refused(Reason.MISSING_DERIVATIVES, str(error)))
        else:
            self._timeline.accept(stamp)
            self._feedforwards.tick()

    def _take_measurement(self, msg: JointState) -> None:
        try:
            position, velocity, _ = read_joint_state(msg, self._joints)
            if position is None or velocity is None:
                raise Refused(
                    Reason.MISSING_DERIVATIVES,
                    "position or velocity is empty; feedback on the motors needs both",
                )
        except Refused as refused:
            self._refused_measurements.add(refused)
            return
        self._measurements.tick()
        self._late.reset()
        self._last = nanoseconds(msg.header.stamp), position, velocity
        self._command(self._last)

    def _bridge(self) -> None:
        """Command while a measurement is late, but not for longer than a feedforward is carried on."""
        if self._last is not None and self._measurements.age() <= self._longest_bridge:
            self._command(self._last)
            self._bridged += 1

    def _command(self, measurement: tuple[int, Array, Array]) -> None:
        if not self._controller.ready:
            return
        acts_at = int(self.get_clock().now().nanoseconds) + self._lead
        command = self._controller.command(*measurement, acts_at)
        self._publisher.publish(Float64MultiArray(data=float64s(command.effort)))
        self._held += command.held
        self._saturated += command.saturated
        self._rate_limited += command.rate_limited

    # diagnostics

    def _report(self) -> Report:
        held, self._held_before = self._held - self._held_before, self._held
        saturated, self._saturated_before = self._saturated - self._saturated_before, self._saturated
        slowed, self._rate_limited_before = (
            self._rate_limited - self._rate_limited_before,
            self._rate_limited,
        )
        values: dict[str, object] = {
            "feedforward": self._controller.mode.value,
            "feedforwards": self._feedforwards.count,
            "feedforward rate [1/s]": self._feedforwards.rate(),
            "age of the last feedforward [s]": self._feedforwards.age(),
            "measurements": self._measurements.count,
            "measurement rate [1/s]": self._measurements.rate(),
            "age of the last measurement [s]": self._measurements.age(),
            "commands without a new measurement": self._bridged,
            "commands with a standing reference": self._held,
            "commands cut to a limit": self._saturated,
            "commands cut to a limit of the rate": self._rate_limited,
            "refused feedforwards": self._refused_feedforwards.total,
            "refused measurements": self._refused_measurements.total,
        }
        if not self._feedforwards.count:
            return Report(WARN, "waiting for the first feedforward", values)
        if not self._measurements.count:
            return Report(WARN, "waiting for the first measurement of the motors", values)
        if held:
            return Report(
                WARN, f"the feedforward is too old; {held} commands with a standing reference", values
            )
        if saturated:
            return Report(WARN, f"{saturated} commands were cut to the effort limits", values)
        if slowed:
            return Report(WARN, f"{slowed} commands were cut to the limits of the effort rates", values)
        return Report(OK, "following", values)


def main(args: Sequence[str] | None = None) -> int:
    """Run controller_node as a process."""
    return run(ControllerNode, args)


if __name__ == "__main__":
    sys.exit(main())
