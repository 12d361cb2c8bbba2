"""Where two recordings differ: which messages are in one of them only, and by how much fields differ."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype

from hodyn_ros.bags.fields import Numbers, Value, flat_fields, names_of_elements
from hodyn_ros.bags.messages import Message, stamp_of
from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.types import recorded_types
from hodyn_ros.errors import InputError

# Tells about the machine, not about the robot: no two runs agree.
LEFT_OUT = "computation_time"


@dataclass
class Difference:
    """How a field differs. Times [s] count from the first message of the first bag."""

    count: int = 0  # pairs of messages in which it differs
    absolute: float = -1.0  # the largest; infinite between texts and lengths, and where one of two is NaN
    relative: float = 0.0  # the largest, by the larger of the two values
    time: float = math.nan  # of the largest absolute difference
    element: str = ""  # what that is about: a joint, a place in the array, or words where it is no number
    first: float = math.nan  # time of the first difference
    series: list[tuple[float, float]] = field(default_factory=list)  # times, and the largest at each

    def add(self, time: float, absolute: float, relative: float, element: str) -> None:
        """Take a pair of messages in which the field differs."""
        if not self.count:
            self.first = time
        self.count += 1
        if absolute > self.absolute:
            self.absolute, self.time, self.element = absolute, time, element
        self.relative = max(self.relative, relative)
        self.series.append((time, absolute))


@dataclass
class TopicComparison:
    """How the messages of a topic differ."""

    pairs: int = 0
    missing: list[float] = field(default_factory=list)  # times [s] of messages that the second bag lacks
    extra: list[float] = field(default_factory=list)  # times [s] of those that the first one lacks
    fields: dict[str, Difference] = field(default_factory=dict)  # only those that differ

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return bool(self.missing or self.extra or self.fields)


@dataclass
class Comparison:
    """How two bags differ."""

    topics: dict[str, TopicComparison]  # those in both
    only_first: list[str]
    only_second: list[str]

    @property
    def differs(self) -> bool:
        """Whether anything differs, be it the topics there are."""
        return bool(self.only_first or self.only_second) or any(t.differs for t in self.topics.values())

    @property
    def compared(self) -> bool:
        """Whether there was any pair of messages to compare; without one, nothing can agree."""
        return any(topic.pairs for topic in self.topics.values())


def compare(
    first: Bag,
    second: Bag,
    tolerance: float = 0.0,
    topics: Collection[str] = (),
    progress: Callable[[float], object] = lambda share_done: None,
) -> Comparison:
    """Compare two bags, or some topics of them.

    Messages with a header belong together by their stamps, all others by their order. Numbers differ when
    they are further apart than `tolerance`; with a tolerance of 0 every bit counts. The field
    `computation_time` is left out. Raises InputError for a topic that neither bag has.
    """
    bags = first, second
    names = [{name for name, count in bag.counts.items() if count} for bag in bags]
    for name in topics:
        if name not in names[0] | names[1]:
            there = ", ".join(sorted(names[0] | names[1]))
            raise InputError(f"neither bag has messages on {name}; they have: {there}")
    chosen = set(topics) or names[0] | names[1]
    both = sorted(names[0] & names[1] & chosen)
    result = Comparison(
        {name: TopicComparison() for name in both},
        sorted((names[0] - names[1]) & chosen),
        sorted((names[1] - names[0]) & chosen),
    )
    readers = [_Reader(bag, both) for bag in bags]
    waiting: list[dict[Hashable, deque[Message]]] = [{}, {}]
    start = next((message.time for message in first.messages(both)), 0)
    done, total = 0, max(sum(bag.counts[name] for name in both) for bag in bags)
    for messages in zip_longest(*(bag.messages(both) for bag in bags)):
        for side, message in enumerate(messages):
            if message is None:
                continue
            key = readers[side].key(message)
            partners = waiting[1 - side].get(key)
            if not partners:
                waiting[side].setdefault(key, deque()).append(message)
                continue
            pair = (message, partners.popleft())
            if not partners:
                del waiting[1 - side][key]
            _compare_pair(
                result.topics[message.topic], readers, pair if side == 0 else pair[::-1], start, tolerance
            )
        done += 1
        progress(done / total)
    for side, left in enumerate(waiting):
        for message in (message for queue in left.values() for message in queue):
            topic = result.topics[message.topic]
            (topic.extra if side else topic.missing).append(1e-9 * (message.time - start))
    return result


class _Reader:
    """Tells the messages of a bag apart, and reads them."""

    def __init__(self, bag: Bag, topics: Collection[str]) -> None:
        chosen = [bag.topics[name] for name in topics]
        self._store = recorded_types(chosen)
        self._types = {topic.name: topic.type for topic in chosen}
        self._stamped = {
            topic.name
            for topic in chosen
            if self._store.fielddefs[topic.type][1][:1]
            == [("header", (Nodetype.NAME, "std_msgs/msg/Header"))]
        }
        self._counts: Counter[str] = Counter()

    def key(self, message: Message) -> Hashable:
        """Return what a message has in common with its partner in the other bag."""
        if message.topic in self._stamped:
            return message.topic, stamp_of(message.data)
        self._counts[message.topic] += 1
        return message.topic, self._counts[message.topic]

    def read(self, message: Message) -> Any:
        """Return a message with its fields."""
        return self._store.deserialize_cdr(message.data, self._types[message.topic])


def _compare_pair(
    topic: TopicComparison,
    readers: Sequence[_Reader],
    pair: Sequence[Message],
    start: int,
    tolerance: float,
) -> None:
    topic.pairs += 1
    if pair[0].data == pair[1].data:
        return
    messages = [reader.read(message) for reader, message in zip(readers, pair)]
    fields = [dict(flat_fields(message)) for message in messages]
    elements = names_of_elements(messages[0])
    for name in fields[0] | fields[1]:
        if name == LEFT_OUT:
            continue
        found = _difference(fields[0].get(name), fields[1].get(name), tolerance, elements)
        if found is not None:
            topic.fields.setdefault(name, Difference()).add(1e-9 * (pair[0].time - start), *found)


def _difference(
    a: Value | None, b: Value | None, tolerance: float, elements: Sequence[str]
) -> tuple[float, float, str] | None:
    """Return the largest absolute and relative difference of a field, and of what; None for no difference."""
    if a is None or b is None:
        return math.inf, math.inf, f"only in the {'second' if a is None else 'first'}"
    if isinstance(a, str) or isinstance(b, str):
        return None if a == b else (math.inf, math.inf, "text")
    if len(a) != len(b):
        return math.inf, math.inf, "length"
    absolute = _distance(a, b)
    if not (absolute > tolerance).any() and not (tolerance == 0.0 and a.tobytes() != b.tobytes()):
        return None
    scale = np.maximum(np.abs(a), np.abs(b))
    relative = np.divide(absolute, scale, out=np.zeros_like(absolute), where=absolute > 0.0)
    place = int(np.argmax(absolute))
    element = "" if len(a) == 1 else elements[place] if len(elements) == len(a) else str(place)
    return float(absolute[place]), float(np.nanmax(relative)), element


def _distance(a: Numbers, b: Numbers) -> Numbers:
    """Return how far numbers are apart; infinite where only one of them is a number."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.abs(a - b)
    distance[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    distance[np.isnan(distance)] = math.inf
    return distance
