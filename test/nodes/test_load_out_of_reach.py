"""Samples that only the observer of the load cannot take: what acts from outside is told all the same."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from ros_talk import talking
from sensor_msgs.msg import JointState

from hodyn_ros import Robot
from hodyn_ros.array import Array
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.msg import ExternalEfforts
from hodyn_ros.nodes.observation_pipeline import Measured, ObservationConfig, ObservationPipeline, Said
from hodyn_ros.observers import MomentumObserver
from hodyn_ros.ros.conversions.layout import packed
from hodyn_ros.ros.conversions.messages import time_message

BODY = "inertia: {about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.03, iyz: 0, izz: 0.03}"
TABLE = "{torque: [-300, -200, -100, 100, 200, 300], deflection: [-0.03, -0.02, -0.01, 0.01, 0.02, 0.03]}"
JOINT = f"""
    type: revolute
    axis: [0, 1, 0]
    limits: {{lower: -2, upper: 2, velocity: 3, effort: 100, effort_rate: 2000}}
    drive: {{motor_inertia: 0.2, stiffness: 1e4, spring_table: {TABLE}}}
"""
ARM = f"""
name: arm
bodies:
  - {{name: upper, mass: 2, com: [0.2, 0, 0], {BODY}}}
  - {{name: fore, mass: 1, com: [0.1, 0, 0], {BODY}}}
joints:
  - name: shoulder
    parent: world
    child: upper{JOINT}
  - name: elbow
    parent: upper
    child: fore
    origin: {{xyz: [0.4, 0, 0]}}{JOINT}
"""
MILLISECOND, EARLY = 1_000_000, 20  # [ns], and the sample that comes right after the one before
COUNT = 120
STEP = 1e-3  # [rad] between these two: within the table, but its rate is not


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arm.yaml"
    path.write_text(ARM)
    return path


def stamps(count: int) -> list[int]:
    """Return when samples were taken [ns]; one of them a microsecond after the one before."""
    return [10**9 + MILLISECOND * (i - (i >= EARLY)) + 1000 * (i == EARLY) for i in range(count)]


def sample(robot: Robot, i: int) -> Array:
    """Return positions and velocities of links and motors, and efforts, of an arm that stands (5, 2)."""
    q, rest = np.array([0.3, 0.4]), np.zeros(2)
    torque = robot.inverse_dynamics(np.stack([q, rest, rest]))[0]
    return np.array([q, rest, q + torque / 1e4 + STEP * (i >= EARLY), rest, torque])


def pipeline_of(file: Path) -> ObservationPipeline:
    config = ObservationConfig(payload_rate=100.0)
    return ObservationPipeline(RobotFiles.from_file(file), Robot.load(file), config)


def said_by(pipeline: ObservationPipeline, count: int = COUNT) -> list[Said]:
    return [
        pipeline.take(Measured(packed(time_message(stamp)), sample(pipeline.robot, i), None))
        for i, stamp in enumerate(stamps(count))
    ]


def unloaded(said: list[Said]) -> list[int]:
    return [i for i, one in enumerate(said) if one.unloaded is not None]


def test_efforts_are_told_and_the_load_goes_on(file: Path) -> None:
    pipeline = pipeline_of(file)
    said = said_by(pipeline)
    failed = unloaded(said)
    gap = round(1e3 * pipeline.config.observer.longest_gap)  # after which its observer begins anew
    assert failed == list(range(EARLY + 1, EARLY + 1 + gap))
    assert "beyond the spring table" in str(said[EARLY + 1].unloaded)
    alone = MomentumObserver(pipeline.robot, pipeline.config.observer, pipeline.observer.sensed)
    for i, stamp in enumerate(stamps(len(said))):
        found = alone.update(1e-9 * (stamp - 10**9), sample(pipeline.robot, i))
        told = said[i].efforts
        assert (found is None) == (told is None)
        if found is not None and told is not None:
            assert list(told.efforts) == found.efforts.tolist()
    assert pipeline.estimator is not None and pipeline.estimator.estimate.payload.mass > 0.0


def test_the_same_is_computed_again_from_the_settings(file: Path) -> None:
    pipeline = pipeline_of(file)
    first = said_by(pipeline)
    again = said_by(ObservationPipeline.from_settings(json.loads(pipeline.settings())))
    assert [one[:3] for one in first] == [one[:3] for one in again]
    assert [str(one.unloaded) for one in first] == [str(one.unloaded) for one in again]


def test_the_node_counts_them_by_themselves(file: Path) -> None:
    given = {"robot_config": str(file), "payload_rate": 100.0}
    with talking("observer_node", given, "on_unloaded") as (node, talk):
        robot, efforts = Robot.load(file), talk.hear_nothing_yet(ExternalEfforts, "external_efforts")
        publishers = [talk.publisher(JointState, topic) for topic in ("joint_states", "motor_states")]
        begun = 0

        def send(i: int, stamp: int) -> None:
            rows = sample(robot, i)
            for publisher, first in zip(publishers, (0, 2)):
                message = JointState(name=list(robot.joint_names), effort=rows[4])
                message.position, message.velocity = rows[first], rows[first + 1]
                message.header.stamp = time_message(stamp)
                publisher.publish(message)
            time.sleep(1e-3)

        def first_answer() -> bool:
            nonlocal begun
            begun += MILLISECOND
            send(0, 10**9 + begun)
            return bool(efforts)

        talk.wait_until(first_answer, "the first effort")
        for i, stamp in enumerate(stamps(COUNT)):
            send(i, stamp + begun + MILLISECOND)
        talk.wait_for_line(node, "payload goes on without a sample")
        lost = str(len(unloaded(said_by(pipeline_of(file)))))
        values = talk.status("observer_node", lambda _, values: values["samples without a load"] == lost)
        assert values["rejected"] == "0"
