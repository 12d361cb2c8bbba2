"""Which files a desired motion runs through, from callback to `publish`, as docs/architecture.md has it."""

import re
import sys
from types import FrameType

import numpy as np
import pytest
from places import ROOT

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

import rclpy
from rclpy.publisher import Publisher
from rclpy.serialization import serialize_message

from hodyn_ros.nodes.dynamics_node import DynamicsNode
from hodyn_ros.ros.conversions.messages import time_message, write_desired_motion

POSES = {
    "panda.yaml": [0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0],
    "palletiser.yaml": None,
}  # where that is not home
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def files_of_a_message(robot_config: str) -> set[str]:
    """Return the files below `hodyn_ros` that the sixth message of a stream runs through."""
    rclpy.init(args=["--ros-args", "-p", f"robot_config:={robot_config}"])
    try:
        node = DynamicsNode()
        assert node._pipeline is not None
        model, files, published = node._pipeline.model, set[str](), False
        q = np.zeros((model.motion_orders, len(model.motion_joints)))
        q[0] = model.robot.home[0] if POSES[robot_config] is None else POSES[robot_config]
        messages = [
            serialize_message(write_desired_motion(model.motion_joints, time_message(k * 1_000_000), q))
            for k in range(1, 7)
        ]

        def trace(frame: FrameType, event: str, arg: object) -> None:
            nonlocal published
            published = published or frame.f_code is Publisher.publish.__code__
            _, inside, name = frame.f_code.co_filename.partition(f"{ROOT}/hodyn_ros/")
            if inside and not published:
                files.add(name)

        for k, message in enumerate(messages):
            if k == len(messages) - 1:
                sys.settrace(trace)
            node._take(message, {"received_timestamp": 0})
        sys.settrace(None)
        assert published and not node.troubles
        node.destroy_node()
    finally:
        sys.settrace(None)
        rclpy.try_shutdown()
    return files


@pytest.mark.parametrize("robot_config", POSES)
def test_the_page_counts_the_files_of_a_message(robot_config: str) -> None:
    arm, loops = re.search(
        r"counts (\d+) files from the callback.*?with loops there\s+are (\d+)", PAGE, re.S
    ).groups()
    files = files_of_a_message(robot_config)
    assert len(files) == int(arm if robot_config == "panda.yaml" else loops), sorted(files)
    section = PAGE[PAGE.index("## The way of one sample") : PAGE.index("A call of `Robot.inverse_dynamics`")]
    missing = [file for file in files if file.rsplit("/", 1)[-1] not in section]
    assert not missing, f"the page says nothing of {missing}"
