"""Desired motions answered as bytes: bit for bit as messages are, and rejected for the same reasons."""

import gc
import sys
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from rclpy.serialization import deserialize_message, serialize_message
from sweeps import THOROUGH

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.ros.conversions import serialised
from hodyn_ros.ros.conversions.joint_subset import FeedforwardReader
from hodyn_ros.ros.conversions.layout import deserialised
from hodyn_ros.ros.conversions.messages import time_message, write_base_motion, write_desired_motion
from hodyn_ros.ros.streams.rejections import MessageRejected

Rng = np.random.Generator
Outcome = FeedforwardTorque | str

# without and with joints, base, motors, measured wrenches, loops
CASES = {
    "panda.yaml": FeedforwardConfig(order=2, wrench_bodies=("panda_link7",)),
    "aerial_manipulator.yaml": FeedforwardConfig(order=1),
    "planar_3rrr.yaml": FeedforwardConfig(order=3),  # more orders than fields
}
MILLISECOND = 1_000_000
COUNT = 10_000 if THOROUGH else 100


class Both:
    """Two pipelines of one robot that go through the same samples, one by bytes, one by messages."""

    def __init__(self, file: str) -> None:
        path = share.find("config", file)
        self.by_bytes, self.by_messages = (
            FeedforwardPipeline(RobotFiles.from_file(path), Robot.load(path), CASES[file]) for _ in "ab"
        )
        self.model = self.by_bytes.model

    def answer(self, data: bytes, wrenches: np.ndarray | None) -> tuple[Outcome, Outcome]:
        return self._bytes(data, wrenches), self._message(data, wrenches)

    def _bytes(self, data: bytes, wrenches: np.ndarray | None) -> Outcome:
        try:
            answer = self.by_bytes.answer_serialised(data, wrenches)
        except MessageRejected as rejected:
            return f"{rejected.reason} {rejected}"
        msg: FeedforwardTorque = deserialize_message(answer.data, FeedforwardTorque)
        assert (answer.status, answer.computation_time) == (msg.status, msg.computation_time)
        assert 0.0 < answer.computation_time < 60.0
        msg.computation_time = 0.0
        return msg

    def _message(self, data: bytes, wrenches: np.ndarray | None) -> Outcome:
        try:
            msg = self.by_messages.answer(deserialised(data, DesiredMotion), wrenches)
        except MessageRejected as rejected:
            return f"{rejected.reason} {rejected}"
        msg.computation_time = 0.0
        return msg


def random_motion(rng: Rng, both: Both, stamp: int, names: list[str], orders: int, frame: str) -> bytes:
    robot, model = both.by_bytes.robot, both.model
    start, pose = robot.home
    stack = 0.1 * rng.normal(size=(orders, len(start)))
    stack[0] += start
    msg = write_desired_motion(
        names, time_message(stamp), stack[:, [model.motion_joints.index(name) for name in names]], frame
    )
    if pose is not None:
        pose = np.array(pose)
        pose[:3, 3] += 0.001 * rng.normal(size=3) * (robot.platform is None)
        twists = 0.1 * rng.normal(size=(orders - 1, 6))
        if robot.platform is not None:
            twists[:] = 0.0
        write_base_motion(msg, pose, twists)
    data: bytes = serialize_message(msg)
    return data


def damaged(rng: Rng, data: bytes) -> bytes:
    """Return the bytes with some of them changed, or cut off."""
    changed = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        changed[place] = rng.choice([0, 1, 127, 128, 255])
    return bytes(changed[: rng.integers(len(data))] if rng.random() < 0.2 else changed)


def goes_by_bytes(both: Both, data: bytes) -> bool:
    layout = both.by_bytes._reader._layout
    return layout is not None and layout.fits(data)


def hold_against_each_other(file: str, count: int, seed: int) -> tuple[int, int]:
    """Return how many samples were answered, and how many of them by bytes alone."""
    rng = np.random.default_rng(seed)
    both = Both(file)
    model = both.model
    names, orders, frame = list(model.motion_joints), model.motion_orders, ""
    answered = read = 0
    for sample in range(count):
        if rng.random() < 0.1:
            rng.shuffle(names)
            orders, frame = model.motion_orders + int(rng.integers(3)), str(rng.choice(["", "world"]))
        data = random_motion(rng, both, (sample + 1) * MILLISECOND, names, orders, frame)
        if rng.random() < 0.2:
            data = damaged(rng, data)
        wrenches = None
        if model.wrench_bodies and rng.random() < 0.5:
            wrenches = rng.normal(size=(len(model.wrench_bodies), model.order + 1, 6))
        read += goes_by_bytes(both, data)
        found, expected = both.answer(data, wrenches)
        assert found == expected
        answered += not isinstance(found, str)
        for pipeline in (both.by_bytes, both.by_messages):
            pipeline.stamps.forget()  # damage may have sent the stamp far ahead
    return answered, read


@pytest.mark.thorough
@pytest.mark.parametrize("file", CASES)
def test_bytes_are_answered_as_messages_are(file: str) -> None:
    count = COUNT // 10 if "3rrr" in file else COUNT  # whose iterations take long
    answered, read = hold_against_each_other(file, count, seed=3)
    assert answered > 0.6 * count and read > 0.5 * count


def test_what_is_laid_out_in_another_way_goes_by_messages() -> None:
    both = Both("panda.yaml")
    names = list(both.model.motion_joints)
    rng = np.random.default_rng(5)
    first, second = (random_motion(rng, both, t * MILLISECOND, names, 5, "") for t in (1, 2))
    both.answer(first, None)
    assert goes_by_bytes(both, second)
    for other in (second[:-16], b"\0\0" + second[2:], b"", second[:3]):
        assert not goes_by_bytes(both, other)
        found, expected = both.answer(other, None)
        assert found == expected and isinstance(found, str) and "malformed" in found.lower()


def test_a_stream_leaves_nothing_in_memory() -> None:
    both = Both("panda.yaml")
    names, rng = list(both.model.motion_joints), np.random.default_rng(7)
    stream = [random_motion(rng, both, t * MILLISECOND, names, 5, "") for t in range(1, 101)]
    consumer = FeedforwardReader(names)

    def answer(times: int) -> None:
        for _ in range(times):
            both.by_bytes.stamps.forget()
            for data in stream:
                consumer.read(both.by_bytes.answer_serialised(data).data)

    gc.collect()
    gc.disable()  # as garbage_collection: frozen does
    try:
        answer(25)  # Python keeps up to 2000 freed tuples of a length
        blocks, tracked = sys.getallocatedblocks(), gc.get_count()[0]
        answer(10)
        assert sys.getallocatedblocks() - blocks < 100  # of a thousand samples
        assert gc.get_count()[0] - tracked < 100
    finally:
        gc.enable()


def test_settings_are_those_of_the_pipeline_that_answered_bytes() -> None:
    path = share.find("config", "panda.yaml")
    pipeline = FeedforwardPipeline(
        RobotFiles.from_file(path), Robot.load(path), replace(CASES["panda.yaml"], order=0)
    )
    rng = np.random.default_rng(6)
    names = list(pipeline.model.motion_joints)
    for stamp in (1, 2):
        msg = write_desired_motion(names, time_message(stamp), rng.normal(size=(3, 7)))
        pipeline.answer_serialised(serialize_message(msg))
        assert pipeline.stamps.last == stamp


def test_a_field_of_numbers_that_nothing_fills_in_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was added to the message alone: answers would repeat what it was in the first."""
    both = Both("aerial_manipulator.yaml")
    names = list(both.model.motion_joints)
    motion = random_motion(np.random.default_rng(0), both, 0, names, both.model.motion_orders, "")
    monkeypatch.setattr(serialised, "_FILLED", tuple(f for f in serialised._FILLED if f != ("thrusts",)))
    refused(lambda: both.by_bytes.answer_serialised(motion, None), "thrusts", TypeError)
    monkeypatch.undo()
    both.by_bytes.stamps.forget()
    monkeypatch.setattr(serialised, "NUMBERS", {})
    refused(lambda: both.by_bytes.answer_serialised(motion, None), "status", TypeError)
