"""Thousands of malformed messages, and bytes that are no messages at all, sent to a running node."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from diagnostic_msgs.msg import DiagnosticStatus
from malformed import NODE_SPOILERS, SPOILERS, good_motion
from rclpy.serialization import serialize_message
from ros_peer import Peer, node_and_peer
from ros_processes import RosProcess
from ros_stream import JOINTS
from sweeps import THOROUGH

from hodyn_ros.ros.conversions.messages import nanoseconds

NAMES = tuple(JOINTS)
MILLISECOND = 1_000_000
COUNT = 10_000 if THOROUGH else 1_000
BURST = 250  # messages without an answer in between; the topic keeps a thousand


both, node, peer = node_and_peer({"robot_config": "panda.yaml"}, "fuzz", "module")


def test_thousands_of_malformed_messages_are_counted_logged_and_not_answered(
    peer: Peer, node: RosProcess
) -> None:
    rng = np.random.default_rng(13)
    spoilers = (*SPOILERS, *NODE_SPOILERS)
    expected: Counter[str] = Counter()
    good: list[int] = []
    for k in range(1, COUNT + 1):
        msg = good_motion(rng, NAMES, k * MILLISECOND)
        if k % BURST == 1:  # what is sound is answered, whatever came before
            good.append(nanoseconds(peer.answer_to(msg).header.stamp))
            msg = good_motion(rng, NAMES, k * MILLISECOND + 1)
        spoil, reason = spoilers[int(rng.integers(len(spoilers)))]
        spoil(rng, msg)
        peer.send(msg)
        expected[f"rejected: {reason.value}"] += 1
    last = good_motion(rng, NAMES, 20_000 * MILLISECOND)
    good.append(nanoseconds(peer.answer_to(last).header.stamp))
    values = peer.diagnostics(lambda values: int(values["rejected"]) >= COUNT)
    counted = {key: int(value) for key, value in values.items() if key.startswith("rejected: ")}
    assert {key: count for key, count in counted.items() if count} == dict(expected)
    assert int(values["rejected"]) == COUNT
    assert int(values["answered"]) == len(good)
    assert peer.stamps() == good
    assert DiagnosticStatus.WARN in [status.level for status in peer.statuses]
    lines = [line for line in node.lines if "desired_motion rejected: " in line]
    assert len(lines) >= len({reason for _, reason in spoilers})


def test_bytes_that_are_no_messages_do_no_harm(peer: Peer, node: RosProcess) -> None:
    """As from a publisher with another version of the message: the middleware passes on what it can read."""
    rng = np.random.default_rng(17)
    header = 12  # bytes of the encoding and the stamp, which stay as they are
    for k in range(30_001, 31_001 if THOROUGH else 30_501):  # after what the other test has sent
        data = bytearray(serialize_message(good_motion(rng, NAMES, k * MILLISECOND)))
        places = rng.integers(header, len(data), int(rng.integers(1, 20)))
        data[places[0]] = 255
        for place in places[1:]:
            data[place] = int(rng.integers(256))
        if rng.random() < 0.3:
            del data[int(rng.integers(header, len(data))) :]
        if rng.random() < 0.1:
            data[header:] = rng.bytes(len(data) - header)
        peer.send_bytes(bytes(data))
        if k % BURST == 0:
            peer.answer_to(good_motion(rng, NAMES, k * MILLISECOND + 1))
    values = peer.diagnostics()
    assert int(values["rejected"]) > 0
    peer.wait_until(lambda: len(peer.answers) >= int(values["answered"]), "the last answers")
    assert len(peer.answers) == int(values["answered"])
    assert all(np.isfinite(answer.efforts).all() for answer in peer.answers)
    assert node.running
