"""Desired motions and their answers as the bytes that travel; see `layout` for how.

The first message of a stream, and whatever differs from it in more than stamp and numbers, goes the ordinary
way, by `messages`, which checks its names and lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from rclpy.serialization import serialize_message
from std_msgs.msg import Header

from hodyn_ros.array import Array
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.lie.motion import BaseMotion, BaseRepresentation
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import JointOrder, all_finite
from hodyn_ros.ros.conversions.layout import STAMP, Layout, StreamReader, unpacked
from hodyn_ros.ros.conversions.messages import (
    ARRAYS,
    MOTION_FIELDS,
    NUMBERS,
    base_motion,
    read_base_motion,
    read_desired_motion,
    write_feedforward_torque,
    write_wrenches,
)
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

_POSE = tuple(f"base_pose.{part}" for part in ("position.x", "position.y", "position.z"))
_QUATERNION = tuple(f"base_pose.orientation.{axis}" for axis in "xyzw")


class Sample(NamedTuple):
    """What a desired motion holds, in the model's order of joints."""

    motion: Array  # (orders, n)
    base: BaseMotion | None


class MotionReader(StreamReader[Sample]):
    """Reads the desired motions of a model."""

    def __init__(self, model: FeedforwardModel) -> None:
        super().__init__(DesiredMotion)
        self._model = model
        self._joints = JointOrder(model.motion_joints)
        self._orders = model.motion_orders

    def from_message(self, msg: DesiredMotion) -> Sample:
        """Return what a message holds; raises MessageRejected."""
        motion = read_desired_motion(msg, self._joints, self._orders)
        if self._model.moves_base:
            return Sample(motion, read_base_motion(msg, self._orders - 1))
        if msg.base_pose or msg.base_twists:
            raise MessageRejected(
                Reason.BAD_BASE,
                f"robot {self._model.name!r} has a fixed base; leave base_pose and base_twists "
                "empty, or load a robot with a floating base",
            )
        return Sample(motion, None)

    def learn(self, layout: Layout, msg: DesiredMotion) -> None:
        """Note where the numbers stand."""
        n = len(self._joints)
        rows = layout.numbers(*MOTION_FIELDS, "higher_derivatives").reshape(-1, n) if n else np.empty((0, 0))
        order = self._joints.places(msg.joint_names) if n else None
        self._motion = np.ascontiguousarray(rows if order is None else rows[:, order], dtype=np.intp)
        self._representation = msg.base_twist_representation
        if self._model.moves_base:
            self._pose = layout.numbers(*_POSE, *_QUATERNION)
            self._twists = layout.numbers("base_twists").reshape(-1, 6)

    def from_numbers(self, numbers: Array, data: bytes) -> Sample | None:
        """Return the same from numbers alone."""
        motion = numbers.take(self._motion)
        base = None
        if self._model.moves_base:
            pose, twists = numbers.take(self._pose), numbers.take(self._twists)
            if not all_finite(twists):
                return None
            try:
                base = base_motion(pose[:3], pose[3:], twists[: self._orders - 1], self._representation)
            except MessageRejected:
                return None
        if not all_finite(motion):
            return None
        return Sample(motion[: self._orders] if motion.size else np.empty((self._orders, 0)), base)


class AnswerWriter:
    """Writes answers into the bytes of the one before, as long as only stamp and numbers differ."""

    def __init__(
        self,
        joint_names: Sequence[str],
        propellers: Sequence[str],
        wrench_bodies: Sequence[str],
        wrench_frame: BaseRepresentation,
    ) -> None:
        self._joint_names = list(joint_names)
        self._propellers = list(propellers)
        self._wrench_bodies = wrench_bodies
        self._wrench_frame: BaseRepresentation = wrench_frame
        self._shape: tuple[object, ...] = ()  # of what is prepared
        self._prepared: _PreparedAnswer | None = None

    def message(
        self, header: Header, feedforward: Feedforward, wrenches: Array | None, computation_time: float
    ) -> FeedforwardTorque:
        """Return the answer as a message; `wrenches` (bodies, orders, 6) are those it assumes."""
        msg = write_feedforward_torque(
            header, self._joint_names, feedforward, computation_time, self._propellers
        )
        if wrenches is not None:
            write_wrenches(msg, self._wrench_bodies, wrenches, self._wrench_frame)
        return msg

    def write(
        self,
        stamp: bytes,
        frame_id: str,
        feedforward: Feedforward,
        wrenches: Array | None,
        computation_time: float,
    ) -> bytes:
        """Return the answer as bytes; `stamp` are the eight of its motion."""
        stacks = [getattr(feedforward, name)[:orders] for name, orders in _SENT]
        stacks.append(_NO_WRENCHES if wrenches is None else wrenches)
        shape = frame_id, wrenches is None, *[stack.shape for stack in stacks]
        if shape == self._shape and self._prepared is not None:
            return self._prepared.filled(stamp, stacks, feedforward, computation_time)
        header = Header(stamp=unpacked(stamp), frame_id=frame_id)
        msg = self.message(header, feedforward, wrenches, computation_time)
        data: bytes = serialize_message(msg)
        if shape != self._shape:
            self._prepared, self._shape = _PreparedAnswer.of(msg, data), shape
        return data


_NO_WRENCHES = np.empty((0, 0, 6))
_SENT = tuple((array.name, None if array.higher else len(array.fields)) for array in ARRAYS)  # orders of each
_FILLED = (*(array.all_fields for array in ARRAYS), ("wrenches",))  # what each array fills in
# numbers that stay as they are in an answer of the same shape
_STAYING = ("base_wrench_representation", "wrench_representation")


class _PreparedAnswer:
    """The bytes of an answer, to be filled in again and again."""

    def __init__(self, layout: Layout) -> None:
        # begins so that what stands on eights behind the four bytes does so in memory, too
        memory = np.zeros(layout.words + 2)
        self._numbers = memory[1:]
        self._bytes = memory.data.cast("B")[4 : 4 + len(layout.data)]
        self._bytes[:] = layout.data
        known = {"header.stamp.sec", "header.stamp.nanosec", "computation_time", *NUMBERS, *_STAYING}
        stale = layout.number_fields - {*known, *chain.from_iterable(_FILLED)}
        if stale:
            raise TypeError(f"nothing fills in {sorted(stale)} of an answer: it would keep the first numbers")
        places = [layout.numbers(*fields) for fields in _FILLED]
        # one store for all numbers, as each one costs as much
        self._filled = [k for k, each in enumerate(places) if len(each)]
        self._places = np.concatenate(places)
        self._computation_time = layout.singles["computation_time"]
        self._singles = [(layout.singles[name], name) for name in NUMBERS]

    @classmethod
    def of(cls, msg: FeedforwardTorque, data: bytes) -> _PreparedAnswer | None:
        """Prepare for answers like a message that is `data`; None where that is laid out in another way."""
        layout = Layout.of(msg, data, NUMBERS)
        return None if layout is None else cls(layout)

    def filled(
        self, stamp: bytes, stacks: Sequence[Array], feedforward: Feedforward, computation_time: float
    ) -> bytes:
        self._bytes[STAMP] = stamp
        self._numbers[self._places] = np.concatenate([stacks[k].ravel() for k in self._filled])
        self._computation_time.write(self._bytes, computation_time)
        for single, name in self._singles:
            single.write(self._bytes, getattr(feedforward, name))
        return bytes(self._bytes)
