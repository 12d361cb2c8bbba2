"""mpc_node as a process, over real DDS, in simulated time: the test is the clock, the robot and the guard."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
pytest.importorskip("daqp", reason="daqp is not installed; it is the extra mpc")

from lifecycle_msgs.srv import GetState
from ros_clock import SimulatedClock
from ros_talk import Talk, talking
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, motor_reference
from hodyn_ros.control.predictive_control import PredictiveControl
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig, State
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.messages import (
    nanoseconds,
    read_feedforward_torque,
    time_message,
    write_desired_motion,
)
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory import WaypointSpline

PANDA = Robot.load(share.find("config", "panda.yaml"))
TRAIN = PANDA.require_drives()
NAMES = list(PANDA.joint_names)
HOME = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0]
MOTION = WaypointSpline([0.0, 0.4], [HOME, [0.1, -0.4, 0.1, -1.9, 0.0, 1.6, 0.0]], order=6)
MS = 1_000_000  # [ns]
DELAY = 150  # [ms]
OFF = 1e-4 * np.array([1.0, -1.0, 0.5, 1.0, -0.5, 1.0, 0.5])  # [rad] that the arm is off its motion


def on_motion(t: float) -> Array:
    """What the robot is to do `t` [s] after the first sample, q to q''''."""
    found: Array = MOTION.sample(max(t - 1e-3 * DELAY, 0.0), 4)
    return found


def efforts_of(motion: Array) -> Array:
    torque = PANDA.inverse_dynamics(motion)
    found: Array = torque[0] + TRAIN.motor_inertia * (motion[2] + torque[2] / TRAIN.stiffness)
    return found


class Cell:
    """Everything around the node."""

    def __init__(self, node: Any, talk: Talk) -> None:
        self.node, self.talk = node, talk
        self.heard = talk.hear_nothing_yet(FeedforwardTorque, "feedforward_torque")
        self._desired = talk.publisher(DesiredMotion, "desired_motion")
        self._links = talk.publisher(JointState, "joint_states")
        self._motors = talk.publisher(JointState, "motor_states")
        self._commands = talk.publisher(Float64MultiArray, "effort_commands")
        self._state = talk.node.create_client(GetState, "mpc_node/get_state")
        talk.wait_until(self._state.service_is_ready, "the service of the state")
        self.clock = SimulatedClock(talk)

    @property
    def ms(self) -> int:
        return (self.clock.now - self.clock.start) // MS

    def wait(self, ms: int) -> None:
        self.clock.set(self.clock.now + ms * MS)

    def want(self) -> None:
        """Publish the sample of now."""
        sample = MOTION.sample(1e-3 * self.ms, 4)
        self._desired.publish(write_desired_motion(NAMES, time_message(self.clock.now), sample))

    def measure(self, measured: Measurement, **changes: Any) -> None:
        for publisher, rows in ((self._links, measured[:2]), (self._motors, measured[2:])):
            message = JointState(name=NAMES, position=list(rows[0]), velocity=list(rows[1]))
            message.header.stamp = time_message(self.clock.now)
            for field, values in changes.items():
                setattr(message, field, values)
            publisher.publish(message)

    def command(self, effort: Array) -> None:
        self._commands.publish(Float64MultiArray(data=list(effort)))

    def step(self, off: Array = OFF) -> tuple[Measurement, Array]:
        """Let a millisecond pass, publish what sensors and guard say, and return it."""
        self.wait(1)
        motion = on_motion(1e-3 * self.ms)
        torque = PANDA.inverse_dynamics(motion)
        motors = motion[:2] + torque[:2] / TRAIN.stiffness
        measured, effort = Measurement(motion[0] + off, motion[1], *motors), efforts_of(motion)
        self.want()
        self.measure(measured)
        self.command(effort)
        self.serve()
        return measured, effort

    def serve(self) -> None:
        """Wait until the node has taken what was sent: it serves streams before calls."""
        asked = self._state.call_async(GetState.Request())
        self.talk.wait_until(asked.done, "the state of the node")

    def lead(self) -> None:
        """Let the node know the motion from now until `DELAY` later."""
        for k in range(DELAY):
            self.want()
            if k % 10 == 0:
                self.serve()
            self.wait(1)
        self.want()
        self.serve()

    def found(self, at: int) -> FeedforwardTorque:
        """Return the feedforward for a time [ms]."""
        wanted = self.clock.start + at * MS

        def there() -> bool:
            return any(nanoseconds(each.header.stamp) == wanted for each in self.heard)

        self.talk.wait_until(there, f"the feedforward for {at} ms")
        (one,) = (each for each in self.heard if nanoseconds(each.header.stamp) == wanted)
        return one


@contextmanager
def cell(namespace: str, **parameters: object) -> Iterator[Cell]:
    given = {"robot_config": "panda.yaml", "use_sim_time": True, "delay": 1e-3 * DELAY} | parameters
    with talking("mpc_node", given, namespace) as (node, talk):
        yield Cell(node, talk)


def check_motion(message: FeedforwardTorque, at: int) -> None:
    """Require what dynamics_node would say of the motion `DELAY` ago."""
    law = FeedforwardModel(PANDA, 2).compute(on_motion(1e-3 * at))
    wanted = motor_reference(FeedforwardMode.ELASTIC, TRAIN, law)
    np.testing.assert_allclose(message.motor_positions, wanted.positions[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(message.motor_efforts, wanted.efforts[0], rtol=1e-7, atol=1e-6)
    assert message.status == 0


def test_predictions_are_those_of_the_controller_and_without_them_the_motion_goes_on() -> None:
    with cell("mpc_run") as here:
        here.lead()
        check_motion(here.found(DELAY), DELAY)  # no command has come yet
        rig = [here.step() for _ in range(40)]
        control = PredictiveControl(PANDA, MOTION)
        observer = MomentumObserver(
            PANDA,
            ObserverConfig(bandwidth=150.0, held_efforts=True, adapt_drives=False),
            Sensed(links=True, motors=True, motor_efforts=True),
        )
        acted = rig[0][1]
        for k, (measured, effort) in enumerate(rig, start=1):
            sample = observer.sample(**measured._asdict(), motor_effort=acted)
            pushed = observer.update(1e-3 * (k - 1), sample)
            external = np.zeros(7) if pushed is None else pushed.efforts
            acted = effort
            answer = here.found(DELAY + k + 1) if k >= 21 else None
            if answer is None:
                continue
            wanted = control.compute(1e-3 * k, measured, effort, external)
            np.testing.assert_allclose(answer.motor_positions, wanted.positions[0], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(answer.motor_velocities, wanted.positions[1], rtol=1e-7, atol=1e-6)
            np.testing.assert_allclose(answer.motor_efforts, wanted.efforts[0], rtol=1e-6, atol=1e-5)
            assert np.abs(wanted.efforts[0] - efforts_of(on_motion(1e-3 * (DELAY + k + 1)))).max() > 0.1
        values = here.talk.status("mpc_node", lambda _, values: values["predicting"] == "True")
        assert (values["rejected"], values["predictions without solution"]) == ("0", "0")
        for _ in range(20):  # and no command any more
            here.wait(1)
            here.want()
            here.serve()
        last = here.ms
        check_motion(here.found(last), last)
        values = here.talk.status("mpc_node", lambda _, values: values["predicting"] == "False")
        assert values["fell back to the motion itself"] == "1"

        for _ in range(15):  # springs bent by more than any motor holds
            here.step(off=np.full(7, 0.5))
        last = here.ms
        check_motion(here.found(last), last)
        values = here.talk.status(
            "mpc_node", lambda _, values: int(values["predictions without solution"]) >= 12
        )
        assert values["predicting"] == "False"
        here.wait(1)
        here.measure(Measurement(*np.zeros((4, 7))), velocity=[np.nan] * 7)
        here.command(np.zeros(3))
        for topic, words in (("joint_states", "not finite"), ("effort_commands", "wrong length")):
            key = f"{topic} rejected: {words}"
            here.talk.status("mpc_node", lambda _, values, key=key: values.get(key) == "1")
        largest = TRAIN.effort_limits(PANDA.limits.effort)
        assert all((np.abs(each.motor_efforts) <= largest).all() for each in here.heard)


def test_an_arm_that_is_off_its_motion_returns_behind_the_guard() -> None:
    simulation = RobotSimulation(PANDA, np.array(HOME) + 1e-3)
    model = effort_model(PANDA, NAMES, motor=True)
    guard = CommandGuard(
        NAMES,
        GuardConfig(measured=True, settle=0.0, fade=0.01, lead=5e-4, effort_step=10.0),
        guard_limits(PANDA, NAMES, motor=True),
        MotorGains.of_drives(TRAIN, 30.0, 1.0),
        model,
        effort_observer(PANDA, NAMES, model.links, motor=True),
    )
    order, effort, errors = JointOrder(NAMES), simulation.gravity_effort(), []
    with cell("mpc_guard") as here:
        here.lead()
        for _ in range(150):
            here.wait(1)
            here.want()
            law = read_feedforward_torque(here.found(here.ms), order)
            guard.follow(
                here.clock.now,
                here.clock.now,
                motor_reference(FeedforwardMode.ELASTIC, TRAIN, law),
                law.status,
            )
            motors = simulation.motor_position, simulation.motor_velocity
            guard.measure(here.clock.now, here.clock.now, *motors)
            here.measure(Measurement(*simulation.joints, *motors))
            if (command := guard.command(here.clock.now)) is not None:
                effort = command.effort
                here.command(effort)
                here.serve()
            errors.append(np.abs(simulation.joints[0] - on_motion(1e-3 * here.ms)[0]).max())
            simulation.advance(1e-3, effort)
        values = here.talk.status("mpc_node", lambda _, values: values["predicting"] == "True")
    assert errors[0] == pytest.approx(1e-3, rel=1e-2) and errors[-1] <= 5e-5
    assert guard.state is State.FOLLOWING and not any(guard.faults.values())
    assert int(values["predictions"]) >= 100 and values["fell back to the motion itself"] == "0"
