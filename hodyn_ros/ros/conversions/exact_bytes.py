"""Messages as bytes for a bag, exactly as they travel, and back."""

from __future__ import annotations

from typing import Any

from rclpy.serialization import deserialize_message, serialize_message

from hodyn_ros.bags.files.types import Decoder, learn, ros_types
from hodyn_ros.bags.messages import DamagedError, Message, Topic


class Serialiser:
    """Turns messages of one type into bytes.

    What rclpy gives may be longer than the message: some middlewares estimate the length, and leave what
    they do not need at the end. Such bytes would be rejected by other readers of bags.
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


class Deserialiser:
    """Turns bytes from a bag into messages of rclpy.

    A middleware believes the lengths that bytes tell it. So they are read with care first.
    """

    def __init__(self, topic: str, name: str, message_type: Any) -> None:
        """Take the topic, and the type by its name and as rclpy has it."""
        self._check = Decoder(Topic(topic, name))
        self._type = message_type

    def __call__(self, message: Message) -> Any:
        """Return a message; raises DamagedError where its bytes are something else."""
        self._check(message)
        try:
            return deserialize_message(message.data, self._type)
        except Exception as error:  # each middleware has errors of its own
            raise DamagedError(
                f"a message on {message.topic}, recorded at {message.time * 1e-9:.6f} s, is damaged: {error}"
            ) from error
