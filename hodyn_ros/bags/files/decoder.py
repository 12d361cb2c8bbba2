"""Turn the bytes of a topic into messages with fields, without ROS."""

from __future__ import annotations

from typing import Any

from rosbags.interfaces import Nodetype

from hodyn_ros.bags.files.types import recorded_types
from hodyn_ros.bags.messages import DamagedError, Message, Topic
from hodyn_ros.errors import InputError

_HEADER = ("header", (Nodetype.NAME, "std_msgs/msg/Header"))


class Decoder:
    """Reads the messages of a topic, by the definition under which they were recorded.

    `fields` are the names of their fields; `stamped` says whether they begin with a header. Raises InputError
    for a topic whose type is not known.
    """

    def __init__(self, topic: Topic) -> None:
        if topic.serialization != "cdr":
            raise InputError(f"{topic.name} is written as {topic.serialization!r}; 'cdr' can be read")
        self._type = topic.type
        self._store = recorded_types([topic])
        fields = self._store.fielddefs[topic.type][1]
        self.fields = frozenset(name for name, _ in fields)
        self.stamped = fields[:1] == [_HEADER]

    def __call__(self, message: Message) -> Any:
        """Return a message with its fields; raises DamagedError where its bytes are something else.

        What a middleware has left behind the last field is passed over.
        """
        data = message.data
        try:
            if data[:2] not in (b"\x00\x00", b"\x00\x01"):
                raise ValueError("it does not begin as a message does")
            definition = self._store.get_msgdef(self._type)
            read = definition.deserialize_cdr_le if data[1] else definition.deserialize_cdr_be
            return read(data[4:], 0, definition.cls, self._store)[0]
        except Exception as error:  # the library has no root for what broken bytes lead to
            raise DamagedError(
                f"a message on {message.topic}, recorded at {message.time * 1e-9:.6f} s, is damaged: "
                f"{str(error) or type(error).__name__}"
            ) from error
