"""What a node commands where the clock of the system is set: a real node, with a clock of its own."""

from __future__ import annotations

import mmap
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from exported_code import CC, compiled_by
from places import ROOT
from ros_processes import child_environment, start_node
from ros_talk import Talk
from std_msgs.msg import Header
from sweeps import some

from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.messages import time_message, write_feedforward_torque

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(
        CC is None or sys.platform != "linux", reason="preloads what a compiler of C has made"
    ),
]

JOINTS = ["a", "b"]


def swinging(t: float) -> Feedforward:
    """A motion of two joints by which it is joined under way, with efforts of 8 N.m."""
    rows = np.array([np.sin(t + np.arange(2.0) + 0.5 * np.pi * k) for k in range(4)])
    return Feedforward(8.0 * rows, 0.05 * rows[:3], 6.0 * rows[:2], np.empty((0, 6)))


SET = """
import mmap, os, struct, rclpy
from hodyn_ros.ros.streams.fixed_rate import last_due
rclpy.init()
node = rclpy.create_node("set", enable_rosout=False)
timer = node.create_timer(0.005, lambda: None)
with open(os.environ["SET_CLOCK"], "r+b") as file:
    clock = mmap.mmap(file.fileno(), 8)
for seconds in (0.0, -3600.0, 60.0):
    clock[:] = struct.pack("q", round(1e9 * seconds))
    now = node.get_clock().now().nanoseconds
    print(now - last_due(timer, now))
rclpy.shutdown()
"""


STOPPED = """
import mmap, os, struct, rclpy
import numpy as np
from sensor_msgs.msg import JointState
from hodyn_ros.nodes.stream_node import StreamNode
given = ["robot_config:=panda.yaml", "mode:=approximate", "rate:=200.0"]
rclpy.init(args=["", "--ros-args", *(word for each in given for word in ("-p", each))])
node, home = StreamNode(), np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
# a busy machine that holds this up lets the stream come to rest meanwhile: on until it moves
while node._fixed_rate.next < 160 or node._sample(node._fixed_rate.next - 1).joints[1, 0] < 0.1:
    goal = home + 0.002 * node._fixed_rate.next
    node._take_target(JointState(name=[f"panda_joint{j}" for j in range(1, 8)], position=goal.tolist()))
    node._publish_due()
with open(os.environ["SET_CLOCK"], "r+b") as file:
    mmap.mmap(file.fileno(), 8)[:] = struct.pack("q", -3600 * 10**9)
before = node._sample(node._fixed_rate.next - 1)
node.stopping()
after = [node._sample(node._fixed_rate.next + i) for i in range(400)]
print(*(float(each.joints[0, 0]) for each in (before, *after)))
rclpy.shutdown()
"""


def own_clock(folder: Path) -> tuple[dict[str, str], Path]:
    """Return the environment of a process with a clock of its own, and the file that sets it."""
    library, by = folder / "set_clock.so", folder / "by"
    compiled_by(CC, ("-shared", "-fPIC"), [ROOT / "test" / "helpers" / "set_clock.c"], library, "-ldl")
    by.write_bytes(bytes(8))
    return {**child_environment(), "LD_PRELOAD": str(library), "SET_CLOCK": str(by)}, by


def test_sequences_begin_at_the_clock_that_is_set_before_their_timer_has_seen_it(tmp_path: Path) -> None:
    """A message may come first; a stream that began anew an hour ahead then led its robot elsewhere."""
    said = subprocess.run(
        [sys.executable, "-c", SET], env=own_clock(tmp_path)[0], capture_output=True, text=True, check=True
    )
    ago = [int(line) for line in said.stdout.split()]
    assert len(ago) == 3 and all(0 <= each < 5_000_000 for each in ago), ago  # [ns]; the period


def test_a_stream_that_is_to_end_comes_to_rest_before_its_timer_has_seen_the_clock(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", STOPPED], env=own_clock(tmp_path)[0], capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    way = np.diff([float(number) for number in said.stdout.split()])
    assert 2e-4 < way[0] < 0.01 and np.abs(np.diff(way)).max() < 1e-3 and not way[-100:].any()


@pytest.mark.parametrize("seconds", some([-0.5, -3600.0, 60.0], -3600.0))
def test_commands_go_on_and_brake_where_the_clock_is_set(tmp_path: Path, seconds: float) -> None:
    """Set back, a timer of rclpy waits until the clock is where it was; meanwhile the last efforts act."""
    environment, by = own_clock(tmp_path)
    given = {"joints": JOINTS, "rate": 200.0, "fade": 0.1, "settle": 0.0, "join_within": 0.0, "end": "hold"}
    given |= {"drive_timeout": 0.4, "timeout": 0.4}  # where the machine is busy
    namespace = f"clock_{abs(round(seconds))}"
    node = start_node("forward_effort_node", given, namespace, environment=environment, cold=True)
    with node, Talk(namespace) as talk, by.open("r+b") as file:
        clock, off = mmap.mmap(file.fileno(), 8), 0
        sender = talk.publisher(FeedforwardTorque, "feedforward_torque")

        def send() -> None:
            header = Header(stamp=time_message(time.time_ns() + off))
            sender.publish(write_feedforward_torque(header, JOINTS, swinging(time.monotonic()), 0.0))

        talk.wait_for_line(node, "joining -> following", send)
        off = round(1e9 * seconds)
        clock[:] = struct.pack("q", off)
        begin = time.monotonic()
        talk.wait_for_line(node, "stopping -> stopped: the clock has jumped", send)
        assert time.monotonic() - begin < 2.0  # [s]
