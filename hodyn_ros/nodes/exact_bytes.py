"""Messages as bytes for a bag, exactly as they travel."""

from __future__ import annotations

from typing import Any

from rclpy.serialization import serialize_message

from hodyn_ros.bags.types import learn, ros_types


class Serialiser:
    """Turns messages of one type into bytes.

    What rclpy gives may be longer than the message: some middlewares estimate the length, and leave what
    they do not need at the end. Such bytes would be refused by other readers of bags.
    """

    def __init__(self, name: str) -> None:
        """Take the type by its name, such as "hodyn_ros/msg/FeedforwardTorque"."""
        self._store = ros_types()
        learn(self._store, name)
        self._definition = self._store.get_msgdef(name)

    def __call__(self, message: Any) -> bytes:
        """Return the bytes of a message."""
        data: bytes = serialize_message(message)
        read = self._definition.deserialize_cdr_le if data[1] & 1 else self._definition.deserialize_cdr_be
        _, size = read(data[4:], 0, self._definition.cls, self._store)
        return data[: 4 + size]
