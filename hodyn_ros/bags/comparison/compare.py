"""Where two recordings differ: which messages are in one of them only, and by how much fields differ."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.bags.comparison.gaps import Gaps, find_gaps
from hodyn_ros.bags.files.types import Decoder
from hodyn_ros.bags.messages import Message, Topic, stamp_of
from hodyn_ros.bags.reader import Bag
from hodyn_ros.errors import InputError

# Depends on the machine alone: no two runs agree.
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
class Alone:
    """Messages that one recording lacks, by their times [s]."""

    between: list[float] = field(default_factory=list)  # those between messages that both have
    edges: list[float] = field(default_factory=list)  # those before and after all that both have

    @property
    def times(self) -> list[float]:
        """All of them."""
        return self.between + self.edges


@dataclass
class TopicComparison:
    """How the messages of a topic differ."""

    pairs: int = 0
    missing: Alone = field(default_factory=Alone)  # messages that the second bag lacks
    extra: Alone = field(default_factory=Alone)  # those that the first one lacks
    fields: dict[str, Difference] = field(default_factory=dict)  # only those that differ
    added: frozenset[str] = frozenset()  # fields that only one of two versions of the message has
    gaps: tuple[Gaps | None, Gaps | None] = (None, None)  # what each bag seems to lack

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return self.differs_between or bool(self.missing.edges or self.extra.edges)

    @property
    def differs_between(self) -> bool:
        """Whether anything differs, not counting what comes before and after all that both bags have."""
        return bool(self.fields or self.missing.between or self.extra.between)


@dataclass
class Comparison:
    """How two bags differ."""

    topics: dict[str, TopicComparison]  # those in both
    only_first: list[str]
    only_second: list[str]
    ignore_edges: bool = False  # whether edges count as no difference

    @property
    def differs(self) -> bool:
        """Whether anything differs that counts, be it the topics there are."""
        return bool(self.only_first or self.only_second) or any(
            topic.differs_between if self.ignore_edges else topic.differs for topic in self.topics.values()
        )

    @property
    def agree(self) -> bool:
        """Whether they are found to be the same."""
        return self.compared and not self.differs

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
    ignore_edges: bool = False,
) -> Comparison:
    """Compare two bags, or some topics of them.

    Messages with a header belong together by their stamps, all others by their order. Numbers differ when
    they are further apart than `tolerance`; with a tolerance of 0 every bit counts. The field
    `computation_time` is left out, and where a bag was recorded by a version whose messages lack some of the
    fields of the other one, so are these. Messages of a type that is not known are compared as bytes. Raises
    InputError for a topic that neither bag has, DamagedError for a message that cannot be read.
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
        ignore_edges,
    )
    step = _Steps(2 * sum(bag.counts[name] for bag in bags for name in both), progress)
    decoders = [{name: _decoder(bag.topics[name]) for name in both} for bag in bags]
    stamped = {
        name for name in both if all((d := of_bag[name]) is not None and d.stamped for of_bag in decoders)
    }
    keys = [_Keys(bag, both, stamped, step) for bag in bags]
    for name, topic in result.topics.items():
        topic.added = _added(*(of_bag[name] for of_bag in decoders))
        topic.missing, topic.extra = _match(name, keys, first.begin)
        if name in stamped:
            topic.gaps = find_gaps(keys[0].keys[name]), find_gaps(keys[1].keys[name])
    waiting: dict[Hashable, deque[tuple[int, Message]]] = {}
    for messages in zip_longest(*(k.paired(step) for k in keys)):
        for side, (key, message) in ((s, of_bag) for s, of_bag in enumerate(messages) if of_bag):
            queue = waiting.setdefault(key, deque())
            if not queue or queue[0][0] == side:
                queue.append((side, message))
                continue
            other = queue.popleft()[1]
            if not queue:
                del waiting[key]
            pair = (other, message) if side else (message, other)
            readers = [of_bag[message.topic] for of_bag in decoders]
            _compare_pair(result.topics[message.topic], readers, pair, first.begin, tolerance)
    return result


class _Steps:
    """Report which share of the work is done."""

    def __init__(self, total: int, progress: Callable[[float], object]) -> None:
        self._total, self._done, self._progress = total, 0, progress

    def __call__(self) -> None:
        self._done += 1
        self._progress(self._done / self._total)


class _Keys:
    """What the messages of a bag have in common with their partners in the other one.

    By topic: `keys`, a stamp [ns] or the number of the message, and `times` of recording [ns]; `has_partner`
    is for others to fill.
    """

    def __init__(self, bag: Bag, topics: Collection[str], stamped: Collection[str], step: _Steps) -> None:
        keys, times = ({name: array("q") for name in topics} for _ in range(2))
        for message in bag.messages(topics):
            name = message.topic
            keys[name].append(stamp_of(message.data) if name in stamped else len(keys[name]))
            times[name].append(message.time)
            step()
        self.keys = {name: np.array(values, dtype=np.int64) for name, values in keys.items()}
        self.times = {name: np.array(values, dtype=np.int64) for name, values in times.items()}
        self.has_partner: dict[str, NDArray[np.bool_]] = {}
        self._bag = bag

    def paired(self, step: _Steps) -> Iterator[tuple[Hashable, Message]]:
        """Yield the messages that have a partner, with what they have in common."""
        numbers: Counter[str] = Counter()
        for message in self._bag.messages(self.keys):
            name, number = message.topic, numbers[message.topic]
            numbers[name] += 1
            step()
            if self.has_partner[name][number]:
                yield (name, int(self.keys[name][number])), message


def _decoder(topic: Topic) -> Decoder | None:
    try:
        return Decoder(topic)
    except InputError:
        return None


def _added(first: Decoder | None, second: Decoder | None) -> frozenset[str]:
    """Return the fields that came from one version of a message to the other; none where others went."""
    if first is None or second is None:
        return frozenset()
    only_first, only_second = first.fields - second.fields, second.fields - first.fields
    return frozenset() if only_first and only_second else only_first | only_second


def _match(name: str, both: Sequence[_Keys], start: int) -> tuple[Alone, Alone]:
    """Find out which messages of a topic have a partner; return those that have none, for each bag."""
    alone_by_side = []
    for mine, other in (both, both[::-1]):
        keys = mine.keys[name]
        there, counts = np.unique(other.keys[name], return_counts=True)
        place = np.minimum(np.searchsorted(there, keys), len(there) - 1)
        partners = np.where(there[place] == keys, counts[place], 0)
        mine.has_partner[name] = _numbers_among_equals(keys) < partners
        paired, alone = np.flatnonzero(mine.has_partner[name]), np.flatnonzero(~mine.has_partner[name])
        inside = np.ones(len(alone), dtype=bool)
        if len(paired):
            inside = (paired[0] < alone) & (alone < paired[-1])
        times = 1e-9 * (mine.times[name] - start)
        alone_by_side.append(Alone(times[alone[inside]].tolist(), times[alone[~inside]].tolist()))
    return alone_by_side[0], alone_by_side[1]


def _numbers_among_equals(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each key how many equal ones come before it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    result = np.empty(len(keys), dtype=np.int64)
    result[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return result


def _compare_pair(
    topic: TopicComparison,
    decoders: Sequence[Decoder | None],
    pair: Sequence[Message],
    start: int,
    tolerance: float,
) -> None:
    topic.pairs += 1
    if pair[0].data == pair[1].data:
        return
    time = 1e-9 * (pair[0].time - start)
    if None in decoders:
        topic.fields.setdefault("bytes", Difference()).add(time, math.inf, math.inf, "of unknown type")
        return
    messages = [decoder(message) for decoder, message in zip(decoders, pair) if decoder is not None]
    fields = [dict(leaf_fields(message)) for message in messages]
    for name in fields[0] | fields[1]:
        if name == LEFT_OUT or re.split(r"[.[]", name, maxsplit=1)[0] in topic.added:
            continue
        elements = names_of_elements(messages[0], name)
        difference = _difference(fields[0].get(name), fields[1].get(name), tolerance, elements)
        if difference is not None:
            topic.fields.setdefault(name, Difference()).add(time, *difference)


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
    with np.errstate(invalid="ignore"):
        scale = np.maximum(np.abs(a), np.abs(b))
        relative = np.divide(absolute, scale, out=np.zeros_like(absolute), where=absolute > 0.0)
    relative[np.isnan(relative)] = math.inf
    place = int(np.argmax(absolute))
    element = "" if len(a) == 1 else elements[place] if len(elements) == len(a) else str(place)
    return float(absolute[place]), float(relative.max()), element


def _distance(a: Numbers, b: Numbers) -> Numbers:
    """Return how far numbers are apart; infinite where only one of them is a number."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(a - b)
    distance[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    distance[np.isnan(distance)] = math.inf
    return distance


Numbers = NDArray[Any]
Value = Numbers | str


def leaf_fields(message: Any, path: str = "") -> Iterator[tuple[str, Value]]:
    """Yield the fields of a message of the library rosbags, by names such as "header.stamp.sec".

    A field of numbers comes as an array (n,), one for a single number; texts come one by one. Constants are
    no fields; ROS has them in capitals.
    """
    if isinstance(message, str):
        yield path, message
    elif is_dataclass(message):
        for field in fields(message):
            if field.name.isupper():
                continue
            below = f"{path}.{field.name}" if path else field.name
            yield from leaf_fields(getattr(message, field.name), below)
    elif isinstance(message, list):
        for place, part in enumerate(message):
            yield from leaf_fields(part, f"{path}[{place}]")
    else:
        yield path, np.atleast_1d(np.asarray(message))


_OF_PROPELLERS = ("thrusts", "tilts")
_OF_BODIES = ("base_wrenches", "wrenches")  # components, which may be as many as joints


def names_of_elements(message: Any, field: str) -> list[str]:
    """Return the joints or propellers that a field of a message is about; nothing where it names none."""
    if field in _OF_BODIES:
        return []
    if field in _OF_PROPELLERS:
        return list(getattr(message, "propeller_names", None) or [])
    return list(getattr(message, "joint_names", None) or getattr(message, "name", None) or [])
