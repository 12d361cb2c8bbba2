"""Finite but absurd numbers, drawn at random: rejected or answered, and the next sound sample is right."""

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from ros_peer import asked
from ros_stream import JOINTS, motion
from sweeps import THOROUGH, some

from hodyn_ros import Robot, share
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.filtered_wrench import LARGEST, FilteredWrench
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.ros.conversions.messages import (
    EFFORT_FIELDS,
    MOTION_FIELDS,
    MOTOR_EFFORT_FIELDS,
    time_message,
    write_desired_motion,
    write_sample,
)
from hodyn_ros.ros.streams.rejections import MessageRejected
from hodyn_ros.ros.streams.stamp_filter import StampFilter
from hodyn_ros.trajectory.files.reader import read_motion

Rng = np.random.Generator
HAND = "panda_link7"
MILLISECOND = 1_000_000
STAMPS = [(-(2**31), 0), (2**31 - 1, 10**9 - 1), (0, 0), (10**9, 5)]
ROBOTS = {
    "panda.yaml": "panda_excitation.yaml",
    "gough_stewart_6ups.yaml": "gough_stewart_motion.yaml",
    "planar_3rrr.yaml": "planar_3rrr_motion.yaml",
    "aerial_manipulator.yaml": "aerial_manipulator_motion.yaml",
}


def huge(rng: Rng) -> float:
    """Return a finite number of any size from a hundred on, half of them beyond what can be squared."""
    return float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.choice([rng.uniform(2, 154), rng.uniform(154, 308.2)]))


def poisoned(rng: Rng, msg: DesiredMotion) -> DesiredMotion:
    """Return the message with some numbers, or its stamp, replaced."""
    if rng.random() < 0.3:
        second, nanosecond = STAMPS[int(rng.integers(len(STAMPS)))]
        random = Time(sec=int(rng.integers(-(2**31), 2**31)), nanosec=int(rng.integers(10**9)))
        msg.header.stamp = random if rng.random() < 0.5 else Time(sec=second, nanosec=nanosecond)
    filled = [
        name for name in (*MOTION_FIELDS, "higher_derivatives", "base_twists") if len(getattr(msg, name))
    ]
    for _ in range(int(rng.integers(1, 4))):
        if msg.base_pose and rng.random() < 0.2:
            setattr(msg.base_pose[0].position, str(rng.choice(list("xyz"))), huge(rng))
            continue
        field = getattr(msg, str(rng.choice(filled)))
        field[int(rng.integers(len(field)))] = huge(rng)
    return msg


def answers_of(robot: str) -> tuple[FeedforwardPipeline, Callable[[int], DesiredMotion]]:
    """Return what answers the motions of a shipped robot, and its shipped motion at a stamp [ns]."""
    path, moved = share.find("config", robot), read_motion(share.find("config", ROBOTS[robot]))
    pipeline = FeedforwardPipeline(
        RobotFiles.from_file(path), Robot.load(path), FeedforwardConfig(), StampFilter()
    )

    def sample(stamp: int) -> DesiredMotion:
        names, now = pipeline.model.motion_joints, moved.sample(1e-9 * stamp, 4)
        return write_sample(names, time_message(stamp), now)

    return pipeline, sample


def numbers(answer: FeedforwardTorque) -> np.ndarray:
    return np.concatenate([getattr(answer, field) for field in (*EFFORT_FIELDS, *MOTOR_EFFORT_FIELDS)])


@pytest.mark.parametrize("robot", some(ROBOTS, "panda.yaml", "planar_3rrr.yaml", "aerial_manipulator.yaml"))
def test_after_poison_a_sound_sample_is_answered_at_once_and_right(robot: str) -> None:
    rng = np.random.default_rng(11)
    pipeline, sample = answers_of(robot)
    untouched, _ = answers_of(robot)
    for k in range(1, 101 if THOROUGH else 21):
        for _ in range(int(rng.integers(1, 4))):
            try:
                answer = pipeline.answer(poisoned(rng, sample(k * MILLISECOND)))
            except MessageRejected:
                continue
            assert np.isfinite(numbers(answer)).all()
        stamp = k * MILLISECOND + MILLISECOND // 2
        found, expected = (each.answer(sample(stamp)) for each in (pipeline, untouched))
        np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-9, atol=1e-9)


def test_no_measurement_overflows_a_filter() -> None:
    rng = np.random.default_rng(13)
    for order in range(7):
        for _ in range(100 if THOROUGH else 20):
            filtered = FilteredWrench(order, 10.0 ** rng.uniform(-2.0, 3.0), 10.0 ** rng.uniform(-3.0, 3.0))
            instant = 0
            for _ in range(10):
                wrench = [huge(rng) if rng.random() < 0.3 else 1.0 for _ in range(6)]
                try:
                    filtered.measure(instant, wrench)
                except InputError:
                    assert np.abs(wrench).max() > LARGEST
                instant += int(10.0 ** rng.uniform(3.0, 19.0))
                assert np.isfinite(filtered.at(instant)).all()


def test_dynamics_node_goes_on_after_poison() -> None:
    rng = np.random.default_rng(17)
    parameters = {"robot_config": "panda.yaml", "wrench_bodies": f"[{HAND}]", "wrench_timeout": 3600.0}
    path = share.find("config", "panda.yaml")
    chosen = FeedforwardConfig(wrench_bodies=(HAND,))
    expected = FeedforwardPipeline(RobotFiles.from_file(path), Robot.load(path), chosen)
    with asked(parameters, "poison") as (node, peer):
        sensor = peer.publisher(WrenchStamped, f"external_wrench/{HAND}")
        for k in range(1, 51):
            values = dict(zip("xyz", [huge(rng) if rng.random() < 0.5 else 0.0 for _ in range(3)]))
            values[str(rng.choice(list("xyz")))] = 10.0 ** rng.uniform(6.1, 308.2)
            poison = (
                Wrench(force=Vector3(**values)) if rng.random() < 0.5 else Wrench(torque=Vector3(**values))
            )
            sensor.publish(WrenchStamped(wrench=poison))
            peer.send(poisoned(rng, write_desired_motion(JOINTS, time_message(k * MILLISECOND), motion(k))))
            sound = write_desired_motion(JOINTS, time_message(k * MILLISECOND + 500_000), motion(k))
            answer, right = peer.answer_to(sound), expected.answer(sound, np.zeros((1, 3, 6)))
            np.testing.assert_allclose(numbers(answer), numbers(right), rtol=1e-9, atol=1e-9)
        found = peer.diagnostics(lambda values: int(values[f"wrench on {HAND}: rejected"]) > 40)
        assert found[f"wrench on {HAND}: messages"] == "0"
        node.wait_for_line("beyond wrench_limit, 1e+06; measure what is there")
