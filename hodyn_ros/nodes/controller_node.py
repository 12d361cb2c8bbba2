"""controller_node: feedforward plus feedback on the motors, a command for each measurement of the motors.

A feedforward comes with its time derivatives, so the controller evaluates it for the very instant at which
its command will act; neither the way through the nodes nor their rate shows as a delay. Where a measurement
is late, commands go on with the feedback of the last one. What it sends is guarded (docs/safety.md): it joins
a motion only where the robot stands, and stops when a check fails.

Topics: `feedforward_torque` (FeedforwardTorque) in; `motor_states` (sensor_msgs/JointState) in,
positions and velocities of the motors, reflected to the links, with the time of the measurement as stamp;
`effort_commands` (std_msgs/Float64MultiArray) out, motor efforts in the order of the robot's driven joints,
and an empty one where no more follow, for the driver to brake and hold the robot; `/diagnostics` at 1 Hz.
"""

from __future__ import annotations

import sys
from functools import partial

from std_msgs.msg import Float64MultiArray

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.late_feedback import LateFeedback
from hodyn_ros.control.motor_pd import (
    FeedforwardMode,
    MotorGains,
    Reference,
    motor_reference,
    warm_up_springs,
)
from hodyn_ros.control.standing import tipped
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.guard.command_guard import CommandGuard, GuardedCommand
from hodyn_ros.guard.guard_config import End, FirstEffort
from hodyn_ros.guard.guarded_robot import guard_limits
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.feedforward_consumer import REMINDER, FeedforwardConsumer
from hodyn_ros.ros.guarded_loads import GuardedLoads
from hodyn_ros.ros.parameters.guard_parameters import GRAVITY, guard_config, guard_settings, with_gravity
from hodyn_ros.ros.parameters.parameters import ParameterSpec, choice, parameters, value
from hodyn_ros.ros.parameters.robot_file import robot_of_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.fixed_rate import timer_by_clock

_PERIODS = 1.5  # of measurements, that a command waits for one

SETTINGS = (
    *parameters(
        robot_config=ParameterSpec(
            "", "Robot to control: path of a YAML file, or the name of a shipped one such as panda.yaml."
        ),
        feedforward=ParameterSpec(
            "elastic",
            "Feedforward in addition to feedback: none; rigid, torques as if the joints were stiff; "
            "offset, the same, with motors that lead by torque over stiffness; elastic, torques and "
            "motions of the motors that the drives require. Drives with friction at links, or damped or "
            "nonlinear springs, need elastic.",
        ),
        natural_frequency=ParameterSpec(
            30.0, "Natural frequency of the feedback on each motor [rad/s]; Kp = B w^2.", within=(0.0, 1000.0)
        ),
        damping_ratio=ParameterSpec(
            1.0, "Damping ratio of the feedback on each motor; Kd = 2 zeta B w.", within=(0.0, 10.0)
        ),
        proportional_gains=ParameterSpec(
            [], "Gains [N.m/rad or N/m], one per joint, instead of natural_frequency; with derivative_gains."
        ),
        derivative_gains=ParameterSpec([], "Gains [N.m s/rad or N s/m], one per joint."),
        patience=ParameterSpec(
            0.0015,
            "How long [s] to wait for a measurement before a command is sent without: one and a half "
            "periods.",
            within=(0.0001, 1.0),
        ),
        latency=ParameterSpec(
            0.005,
            "How old [s] measurements may be on average; with more delay feedback oscillates.",
            within=(0.0001, 1.0),
        ),
        end_command=ParameterSpec(
            "empty",
            "How the end of commands is announced to the driver once the robot stands: empty, a command "
            "without efforts, so that it brakes and holds the robot; none.",
        ),
    ),
    GRAVITY,
    *guard_settings(lead=0.0007, end=End.HOLD.value, measurement_timeout=0.05, tracking_error=0.2),
)


class ControllerNode(FeedforwardConsumer):
    """Commands the motors; the numbers come from `CommandGuard`."""

    def __init__(self) -> None:
        super().__init__("controller_node", SETTINGS)
        robot = robot_of_file(self)
        train = robot.require_drives()
        if train.commanded.any():
            variable = train.joint_names[int(train.commanded.argmax())]
            raise InputError(
                f"joint {variable!r} of robot {robot.name!r} has a variable stiffness; "
                "FeedforwardTorque holds one motor per joint, so command its motors from robot.drive_train"
            )
        self._mode = FeedforwardMode(choice(self, "feedforward", [mode.value for mode in FeedforwardMode]))
        self._train = train
        if not train.linear_springs and self._mode is not FeedforwardMode.ELASTIC:
            raise InputError(
                f"parameter 'feedforward' is {self._mode.value!r}, but robot {robot.name!r} has "
                "friction at its links, or springs that are damped or not linear; choose elastic"
            )
        self._says_the_end = choice(self, "end_command", ("empty", "none")) == "empty"
        warm_up_springs(train)
        guarded, joints = with_gravity(self, robot), robot.driven_joints
        gains = self._gains(train)
        loads = GuardedLoads(self, guarded, joints, motor=True)
        guard = CommandGuard(
            robot.driven_joints,
            guard_config(self, feedback=True, first_effort=FirstEffort.FEEDFORWARD),
            guard_limits(robot, robot.driven_joints, motor=True),
            gains,
            loads.carried,
            loads.observer(),
        )
        self._publisher = self.publisher(Float64MultiArray, "effort_commands")
        self._without_measurement = 0
        self._bears = self._judge_feedback(guarded, gains)
        self.start(guard, robot.driven_joints, "motor_states", loads)
        self._diagnostics.hardware_id = robot.name
        self._late = timer_by_clock(self, value(self, "patience"), self._on_time, self.streams)
        self.get_logger().info(
            f"robot {robot.name!r}, {train.n_joints} joints, feedforward {self._mode.value}"
        )

    def _judge_feedback(self, robot: Robot, gains: MotorGains) -> float:
        """Warn of feedback that does not hold the robot; return how old [s] measurements may be at home."""
        period = value(self, "patience") / _PERIODS
        late = max(0.0, value(self, "lead") - 0.5 * period)  # the way to the robot
        feedback = LateFeedback.of_robot(robot, self._train, gains, period)
        for line in (tipped(robot, self._train, gains), feedback.swings_up(robot, late) if feedback else ""):
            if line:
                self.get_logger().warning(line)
        if feedback is None:
            return float("nan")
        return max(0.0, feedback.bearable_delay(late + value(self, "latency")) - late)

    def _gains(self, train: DriveTrain) -> MotorGains:
        proportional, derivative = value(self, "proportional_gains"), value(self, "derivative_gains")
        if not proportional and not derivative:
            return MotorGains.of_drives(train, value(self, "natural_frequency"), value(self, "damping_ratio"))
        for name, gains in (("proportional_gains", proportional), ("derivative_gains", derivative)):
            if len(gains) != train.n_joints:
                raise InputError(f"parameter {name!r} holds {len(gains)} gains for {train.n_joints} joints")
        return MotorGains(proportional, derivative)

    def reference(self, feedforward: Feedforward) -> Reference:
        """Return what the motors follow."""
        return motor_reference(self._mode, self._train, feedforward)

    def on_measurement(self) -> None:
        """Answer a measurement."""
        self._late.reset()
        self.command(self.now())
        if (age := self.guard.measured.latency) > self._bears and self.guard.state.follows:
            self.get_logger().warning(
                f"measurements are {1e3 * age:.3g} ms old in the mean, and at home feedback bears "
                f"{1e3 * self._bears:.3g} ms before it swings the robot up; make them prompter, or lower the "
                "natural frequency of the feedback; 'latency' is the age at which the guard stops",
                throttle_duration_sec=REMINDER,
            )

    def _on_time(self) -> None:
        """Command without a measurement, as it is late."""
        before = self._commands.count
        self.command(self.now())
        self._without_measurement += self._commands.count - before

    def send(self, at: int, command: GuardedCommand) -> bool:
        """Send the efforts."""
        self._publisher.publish(Float64MultiArray(data=float64s(command.effort)))
        return True

    def send_end(self) -> None:
        """Send a command without efforts."""
        if self._says_the_end:
            self._publisher.publish(Float64MultiArray())

    def facts(self) -> dict[str, object]:
        """Return what feedback is given."""
        return {
            "feedforward": self._mode.value,
            "commands without a new measurement": self._without_measurement,
            "age of measurements that feedback bears at home [s]": self._bears,
        }


main = partial(run, ControllerNode)

if __name__ == "__main__":
    sys.exit(main())
