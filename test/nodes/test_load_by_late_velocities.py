"""A heavy load found by the pipeline of observer_node, where drives smooth the velocities that they send."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from case_robots import panda

from hodyn_ros import share
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.nodes.observation_pipeline import Measured, ObservationConfig, ObservationPipeline
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.observers.payload import PayloadConfig, PayloadEstimator
from hodyn_ros.ros.conversions.layout import packed
from hodyn_ros.ros.conversions.messages import time_message

PERIOD, LATE = 1e-3, 2e-3  # [s]
LOAD = Payload(3.0, (0.03, -0.02, 0.1), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))


def test_velocities_that_are_late_do_not_count_for_the_load() -> None:
    loaded, phases = panda().with_tree(LOAD.on_tree(panda())), np.arange(7.0)
    centre = np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.5, 0.0])
    rows, late = [], None
    for i in range(2000):
        q, v, a = (0.25 * 5.0**k * np.sin(5.0 * PERIOD * i + phases + 0.5 * np.pi * k) for k in range(3))
        late = v if late is None else late + PERIOD / (LATE + PERIOD) * (v - late)
        rows.append([q + centre, late, loaded.inverse_dynamics(np.array([q + centre, v, a]))[0]])
    observed = ObserverConfig(effort_noise=(0.1,), stiffness_deviation=0.0, inertia_deviation=0.0)
    load = PayloadConfig(offset_deviation=0.0)
    config = ObservationConfig(
        ("position", "velocity", "joint_torque"), observer=observed, usual_load=load, payload_rate=1.0
    )
    pipeline = ObservationPipeline(RobotFiles.from_file(share.find("config", "panda.yaml")), panda(), config)
    observer = MomentumObserver(panda(), observed, Sensed(links=True, joint_torques=True))
    believing = PayloadEstimator(observer, load)
    for i, row in enumerate(np.array(rows)):
        pipeline.take(Measured(packed(time_message(10**9 + 10**6 * i)), row, None))
        believing.update(observer.update(PERIOD * i, row))
    assert pipeline.estimator is not None
    errors = [
        abs(estimator.estimate.values[0] / LOAD.mass - 1.0) for estimator in (pipeline.estimator, believing)
    ]
    assert errors[0] < 1e-5 and errors[1] > 1e-4
