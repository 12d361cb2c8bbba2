"""What replays share: the recorded answers, messages as bytes exactly as they travel, and what is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

from hodyn_ros.array import Array
from hodyn_ros.bags.files.types import Decoder, learn, ros_types
from hodyn_ros.bags.messages import DamagedError, Message, Topic, stamp_of
from hodyn_ros.bags.reader import Bag
from hodyn_ros.ros.conversions.messages import read_wrenches


@dataclass
class Outcome:
    """What came of a replay, in numbers of samples and answers."""

    samples: int = 0
    recorded: int = 0  # answers that the bag holds
    answers: int = 0
    matched: int = 0  # of the recorded ones have a counterpart now
    without_settings: int = 0  # samples before the first settings in the bag, which are left out


class RecordedAnswers:
    """Finds answers by their stamps; a clock that has started again is followed."""

    def __init__(self, bag: Bag, topic: str, wrenches: bool) -> None:
        """Look through a topic of a bag; `wrenches`: whether the answers assume some."""
        times, stamps = [], []
        self._wrenches: list[Array | None] = []
        # as they were defined when they were recorded, since when fields may have come
        decode = Decoder(bag.topics[topic]) if wrenches and topic in bag.topics else None
        for message in bag.messages([topic]):
            times.append(message.time)
            stamps.append(stamp_of(message.data))
            if decode is not None:
                self._wrenches.append(read_wrenches(decode(message)))
        self._times = np.array(times, dtype=np.int64)
        order = np.argsort(np.array(stamps, dtype=np.int64), kind="stable")
        self._places, self._stamps = order, np.array(stamps, dtype=np.int64)[order]
        self._answered = np.zeros(len(times), dtype=bool)

    def __len__(self) -> int:
        return len(self._times)

    def find(self, stamp: int) -> tuple[int, Array | None] | None:
        """Return the time [ns] and the wrenches (bodies, orders, 6) of an answer with a stamp.

        They come in the order of their recording, each once.
        """
        first, last = np.searchsorted(self._stamps, [stamp, stamp + 1])
        places = self._places[first:last]
        left = places[~self._answered[places]]
        if not len(left):
            return None
        place = int(left[0])
        self._answered[place] = True
        return int(self._times[place]), self._wrenches[place] if self._wrenches else None


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
