"""Bags with damaged bytes: `hodyn replay` and `hodyn compare` end as they should, whatever the bytes are."""

import json
import os
from pathlib import Path

import bag_damager
import numpy as np
import pytest
import warm_python
from sweeps import THOROUGH

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from bag_samples import SECOND, START, serialised, write, write_compressed
from hinged_arm import HINGED_ARM
from rosbags.rosbag2 import CompressionMode

from hodyn_ros.bags.comparison.sources import DESIRED_MOTION, FEEDFORWARD_TORQUE, STRING
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.replay.recorded import Serialiser
from hodyn_ros.ros.conversions.messages import time_message, write_desired_motion

TOPICS = (
    Topic("/arm/desired_motion", DESIRED_MOTION),
    Topic("/arm/feedforward_torque", FEEDFORWARD_TORQUE),
    Topic("/arm/dynamics_node/settings", STRING),
)
SAMPLES = 120
CALLS, SEED = 150 if THOROUGH else 25, 20261121


def recording() -> list[Message]:
    """Return what a recorder hears of an arm with one joint, pushed at its link."""
    text = RobotFiles("robot_description", HINGED_ARM, kind="urdf")
    pipeline = FeedforwardPipeline(text, text.robot(), FeedforwardConfig(wrench_bodies=("link",)))
    to_bytes = {topic.type: Serialiser(topic.type) for topic in TOPICS[:2]}
    messages = [Message(TOPICS[2].name, START, serialised(STRING, data=pipeline.settings()))]
    for k in range(SAMPLES):
        time = START + k * SECOND // 1000
        position = np.sin(0.01 * k + 0.5 * np.pi * np.arange(5))[:, None]
        motion = write_desired_motion(["hinge"], time_message(time), position)
        answer = pipeline.answer(motion, np.full((1, 3, 6), 0.1 * k))
        messages += [
            Message(TOPICS[0].name, time, to_bytes[DESIRED_MOTION](motion)),
            Message(TOPICS[1].name, time + 200_000, to_bytes[FEEDFORWARD_TORQUE](answer)),
        ]
    return messages


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bags in every form."""
    folder, bag = tmp_path_factory.mktemp("bags"), recording()
    for storage in ("mcap", "sqlite3"):
        write(folder / f"whole_{storage}", storage, bag, TOPICS)
    for name, storage, mode in (
        ("plain", "mcap", CompressionMode.NONE),
        ("chunks", "mcap", CompressionMode.STORAGE),
        ("file", "mcap", CompressionMode.FILE),
        ("messages", "sqlite3", CompressionMode.MESSAGE),
    ):
        write_compressed(folder / f"whole_{name}", storage, mode, bag, TOPICS)
    return folder


def test_every_call_on_a_damaged_bag_ends_well(whole: Path) -> None:
    """One line where something could not be done; never a traceback, a part of a file, or all the memory."""
    command = (bag_damager.__file__, str(SEED), str(CALLS), whole)
    ended = warm_python.run(*command, environment=os.environ, timeout=600)
    outcomes = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.returncode == 0, ended.stderr
    assert len(outcomes) == CALLS
    for outcome in outcomes:
        left, errors = outcome["left"], outcome["errors"]
        assert outcome["code"] in (0, 1, 2), outcome
        if outcome["code"] == 2:
            assert len(errors) == 1, outcome
            assert errors[0].startswith("error: "), outcome
            assert left == [], outcome
        else:
            assert errors == [], outcome
            assert left in ([], ["out.png"]) if outcome["command"] == "compare" else left == ["out"], outcome
    found = {(outcome["command"], outcome["code"]) for outcome in outcomes}
    assert found >= {("replay", 0), ("replay", 2), ("compare", 0), ("compare", 1), ("compare", 2)}
