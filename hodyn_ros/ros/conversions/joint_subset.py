"""The joints that a controller commands, out of messages that may name more of them, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sensor_msgs.msg import JointState

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.fields import (
    JointOrder,
    all_finite,
    check_one_per_joint,
    position_not_finite,
    repeated,
)
from hodyn_ros.ros.conversions.layout import Layout, Places, StreamReader
from hodyn_ros.ros.conversions.messages import ARRAYS, NUMBERS, read_feedforward_torque
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

_LARGEST = 1e300  # sum of squares of a message up to which none of its parts overflows
_NO_PLACES = np.empty((0, 0), dtype=np.intp)


class State(NamedTuple):
    """Where joints are."""

    position: Array  # (n,) [rad or m]
    velocity: Array | None  # (n,) [rad/s or m/s]


class JointSubset:
    """Finds some joints among the names of messages, in a given order; other names are left out."""

    def __init__(self, names: Sequence[str]) -> None:
        if not names:
            raise InputError(
                "parameter 'joints' is empty; name the joints in the order of the controller, for instance "
                "-p joints:=\"['shoulder', 'elbow']\""
            )
        if (twice := repeated(names)) is not None:
            raise InputError(f"parameter 'joints' names joint {twice!r} twice; name it once")
        self.names = list(names)

    def places(self, names: Sequence[str]) -> Places:
        """Return where the joints stand among some names; raises MessageRejected where one is missing."""
        missing = next((name for name in self.names if name not in names), None)
        if missing is not None:
            reason = Reason.MISSING_JOINT if names else Reason.NO_NAMES
            raise MessageRejected(
                reason,
                f"joint {missing!r} is missing from the message; parameter 'joints' lists "
                f"{JointOrder(self.names).listing()}",
            )
        if (twice := repeated(names)) is not None:
            raise MessageRejected(
                Reason.REPEATED_JOINT, f"joint {twice!r} is named twice in the message; name it once"
            )
        return np.array([list(names).index(name) for name in self.names], dtype=np.intp)


class FeedforwardReader(StreamReader[Feedforward]):
    """Reads the feedforwards of some joints."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(FeedforwardTorque, NUMBERS)
        self._joints = JointSubset(names)

    def from_message(self, msg: FeedforwardTorque) -> Feedforward:
        """Return what a message holds; raises MessageRejected."""
        places = self._joints.places(msg.joint_names)
        whole = read_feedforward_torque(msg, JointOrder(msg.joint_names))
        of_joints = [array.name for array in ARRAYS if array.of == "joint"]
        return whole._replace(**{name: getattr(whole, name).take(places, axis=1) for name in of_joints})

    def learn(self, layout: Layout, msg: FeedforwardTorque) -> None:
        """Note where the numbers stand."""
        columns = {"joint": len(msg.joint_names), "component": 6, "propeller": len(msg.propeller_names)}
        places = self._joints.places(msg.joint_names)
        numbers = {array: layout.numbers(*array.all_fields) for array in ARRAYS}
        self._checked = np.concatenate(list(numbers.values()))
        self._singles = [(name, layout.singles[name], read) for name, read in NUMBERS.items()]
        self._stacks = {}
        for array, whole in numbers.items():
            rows = whole.reshape(-1, columns[array.of]) if columns[array.of] else _NO_PLACES
            self._stacks[array.name] = rows[:, places] if array.of == "joint" else rows

    def from_numbers(self, numbers: Array, data: bytes) -> Feedforward | None:
        """Return the same from numbers alone."""
        checked = numbers.take(self._checked)
        if not np.vdot(checked, checked) < _LARGEST:  # which overflows without a warning
            return None
        stacks: dict[str, Any] = {name: numbers.take(places) for name, places in self._stacks.items()}
        singles = {name: read(single.read(data)) for name, single, read in self._singles}
        return Feedforward(**stacks, **singles)


class StateReader(StreamReader[State]):
    """Reads where some joints are.

    Velocities that are not finite, which drivers send where they measure none, are None; `with_velocity`
    such a message is rejected.
    """

    def __init__(self, names: Sequence[str], *, with_velocity: bool) -> None:
        super().__init__(JointState)
        self._joints = JointSubset(names)
        self._with_velocity = with_velocity

    def from_message(self, msg: JointState) -> State:
        """Return what a message holds; raises MessageRejected."""
        places = self._joints.places(msg.name)
        check_one_per_joint("position", msg.position, msg.name)
        position, velocity = np.frombuffer(msg.position)[places], None
        if msg.velocity or self._with_velocity:
            check_one_per_joint("velocity", msg.velocity, msg.name)
            velocity = np.frombuffer(msg.velocity)[places]
        return self._state(position, velocity)

    def learn(self, layout: Layout, msg: JointState) -> None:
        """Note where the numbers stand."""
        places = self._joints.places(msg.name)
        self._position = layout.numbers("position")[places]
        self._velocity = layout.numbers("velocity")[places] if msg.velocity else None

    def from_numbers(self, numbers: Array, data: bytes) -> State:
        """Return the same from numbers alone; raises MessageRejected."""
        velocity = None if self._velocity is None else numbers.take(self._velocity)
        return self._state(numbers.take(self._position), velocity)

    def _state(self, position: Array, velocity: Array | None) -> State:
        if (joint := self._wrong(position)) is not None:
            raise position_not_finite(joint)
        if velocity is not None and (joint := self._wrong(velocity)) is not None:
            if self._with_velocity:
                raise MessageRejected(
                    Reason.NOT_FINITE,
                    f"velocity of joint {joint!r} is not finite; feedback on the motors needs it",
                )
            velocity = None
        return State(position, velocity)

    def _wrong(self, values: Array) -> str | None:
        """Return the first joint whose number is not finite."""
        if all_finite(values):
            return None
        return self._joints.names[int(np.flatnonzero(~np.isfinite(values))[0])]


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
