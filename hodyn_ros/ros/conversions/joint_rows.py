"""Fields of joint states as rows of an array, for joints in a given order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sensor_msgs.msg import JointState

from hodyn_ros.array import Array
from hodyn_ros.ros.conversions.fields import all_finite, check_one_per_joint
from hodyn_ros.ros.conversions.joint_subset import JointSubset
from hodyn_ros.ros.conversions.layout import Layout, StreamReader
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason


class RowsReader(StreamReader[Array]):
    """Reads some fields of joint states, "position", "velocity" or "effort", as an array (fields, n)."""

    def __init__(self, names: Sequence[str], fields: Sequence[str]) -> None:
        super().__init__(JointState)
        self._joints, self._fields = JointSubset(names), tuple(fields)

    def from_message(self, msg: JointState) -> Array:
        """Return what a message holds; raises MessageRejected."""
        places = self._joints.places(msg.name)
        for field in self._fields:
            check_one_per_joint(field, getattr(msg, field), msg.name)
        return self._checked(np.array([np.frombuffer(getattr(msg, f))[places] for f in self._fields]))

    def learn(self, layout: Layout, msg: JointState) -> None:
        """Note where the numbers stand."""
        places = self._joints.places(msg.name)
        self._places = np.array([layout.numbers(field)[places] for field in self._fields])

    def from_numbers(self, numbers: Array, data: bytes) -> Array:
        """Return the same from numbers alone; raises MessageRejected."""
        return self._checked(numbers.take(self._places))

    def _checked(self, rows: Array) -> Array:
        if all_finite(rows):
            return rows
        row, joint = np.argwhere(~np.isfinite(rows))[0].tolist()
        raise MessageRejected(
            Reason.NOT_FINITE,
            f"{self._fields[row]} of joint {self._joints.names[joint]!r} is {rows[row, joint]}; leave it out "
            "of the parameter 'measured' where it is not measured",
        )
