"""States of links and motors put together, however their messages come beside each other."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.nodes.observation_pipeline import LINKS, MOTORS, ObservationConfig, ObservationPipeline, Pairs
from hodyn_ros.ros.conversions.layout import instant
from hodyn_ros.ros.streams.stamp_filter import StampFilter

SECOND, PERIOD = 1_000_000_000, 1_000_000  # [ns]


@pytest.fixture(scope="module")
def pipeline() -> ObservationPipeline:
    path = share.find("config", "panda.yaml")
    return ObservationPipeline(RobotFiles.from_file(path), Robot.load(path), ObservationConfig())


def message(pipeline: ObservationPipeline, stamp: int) -> bytes:
    joints = np.full(7, 1e-9 * stamp)
    one = JointState(name=pipeline.robot.driven_joints, position=joints, velocity=joints, effort=joints)
    one.header.stamp.sec, one.header.stamp.nanosec = divmod(stamp, SECOND)
    return serialize_message(one)


def taken(pipeline: ObservationPipeline, pairs: Pairs, come: list[tuple[str, int]]) -> list[int]:
    """Return the stamps [ns] of the samples that messages make: one a millisecond, by topic and stamp."""
    samples = []
    for i, (topic, stamp) in enumerate(come):
        for _, sample in pairs.take(topic, PERIOD * i, message(pipeline, stamp), pipeline):
            samples.append(instant(sample.stamp))
            assert np.ptp(sample.rows) == 0.0  # links and motors of one instant
    return samples


def test_samples_do_not_depend_on_how_topics_come_beside_each_other(pipeline: ObservationPipeline) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        sent = SECOND + PERIOD * np.arange(30)
        left = {topic: [int(t) for t in sent if random.random() > 0.1] for topic in (LINKS, MOTORS)}
        both = sorted(set(left[LINKS]) & set(left[MOTORS]))
        order = random.permutation([LINKS] * len(left[LINKS]) + [MOTORS] * len(left[MOTORS]))
        end = [(topic, int(sent[-1]) + PERIOD) for topic in (LINKS, MOTORS)]  # nothing waits after it
        queues = {topic: iter(stamps) for topic, stamps in left.items()}
        pairs = Pairs(pipeline.readers, 1.0)
        found = taken(pipeline, pairs, [(topic, next(queues[topic])) for topic in order] + end)
        assert found == [*both, end[0][1]]
        assert pairs.alone == len(order) - 2 * len(both)


def test_a_clock_that_starts_again_on_one_topic_first_keeps_nothing_waiting(
    pipeline: ObservationPipeline,
) -> None:
    for first, second in ((LINKS, MOTORS), (MOTORS, LINKS)):
        late, early = 100 * SECOND, SECOND
        come = [(first, late), (second, late), (second, late + PERIOD)]
        come += [(topic, early + i * PERIOD) for i in range(3) for topic in (first, second)]
        pairs = Pairs(pipeline.readers, 1.0)
        assert taken(pipeline, pairs, come) == [late, early, early + PERIOD, early + 2 * PERIOD]
        assert pairs.alone == 1


def test_a_clock_that_was_set_back_is_followed_from_there(pipeline: ObservationPipeline) -> None:
    """To an instant that lies after the first sample, as before it."""
    now = 0.0
    stamps = StampFilter(forget_after=5.0, clock=lambda: now)
    seen = ObservationPipeline(pipeline.files, pipeline.robot, ObservationConfig(), stamps)
    for begin in (10 * SECOND, 10 * SECOND + 3 * PERIOD, SECOND):
        pairs = Pairs(seen.readers, 1.0)
        for stamp in begin + PERIOD * np.arange(9):
            for topic in (LINKS, MOTORS):
                for _, sample in pairs.take(topic, stamp, message(seen, int(stamp)), seen):
                    seen.take(sample)
        assert (seen.begun, stamps.last) == (begin, begin + 8 * PERIOD)
        now += 6.0


def test_what_waits_in_vain_is_dropped(pipeline: ObservationPipeline) -> None:
    pairs = Pairs(pipeline.readers, 0.01)
    assert not taken(pipeline, pairs, [(LINKS, SECOND + PERIOD * i) for i in range(30)])
    assert pairs.alone == 30 - 11


def test_what_is_forgotten_counts_and_belongs_to_nothing_any_more(pipeline: ObservationPipeline) -> None:
    pairs = Pairs(pipeline.readers, 1.0)
    assert not taken(pipeline, pairs, [(LINKS, SECOND)])
    pairs.forget()
    assert not taken(pipeline, pairs, [(MOTORS, SECOND)])
    assert pairs.alone == 1
