"""The answers of a dynamics_node in a bag: when each was recorded, and which external wrenches it assumed."""

from __future__ import annotations

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.bags.files.types import Decoder
from hodyn_ros.bags.messages import stamp_of
from hodyn_ros.bags.reader import Bag
from hodyn_ros.ros.conversions.messages import read_wrenches


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
