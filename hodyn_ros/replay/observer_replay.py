"""What observer_node would have published, computed again from a bag: the same numbers, without a node.

Which samples it took follows from the recorded answers, each of which has the stamp of its sample, and from
the settings that the node has published (`observer_node/observer_settings`): at its first sample, and at each
change.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from std_msgs.msg import String

from hodyn_ros.bags.comparison.sources import STRING, topics_of_type
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.writer import BagWriter
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.nodes.observation_pipeline import (
    CONTACTS,
    OUT,
    PAYLOAD,
    Measured,
    ObservationPipeline,
    Pairs,
    observer_config,
)
from hodyn_ros.outputs import complete_and_new
from hodyn_ros.replay.recorded import Deserialiser, Outcome, RecordedAnswers, Serialiser
from hodyn_ros.ros.conversions.layout import instant
from hodyn_ros.ros.streams.rejections import Reason, Rejections

SETTINGS = "/observer_settings"  # what the topic ends with, below the name of the node
_SAID = {
    OUT: "hodyn_ros/msg/ExternalEfforts",
    CONTACTS: "hodyn_ros/msg/ContactEvent",
    PAYLOAD: "hodyn_ros/msg/PayloadEstimate",
}
_WAIT = 10.0  # [s] by which a recorder that was held up may record what belongs together apart


class Change(NamedTuple):
    """Settings, and from which sample on they hold."""

    time: int  # [ns] at which they were recorded
    restarted: str
    begun: int  # stamp [ns] of the first sample
    after: int  # that of the last one before them [ns]
    data: dict[str, Any]

    @property
    def begins(self) -> bool:
        """Whether the node has begun with them."""
        return self.restarted == "all"

    def holds(self, stamp: int, time: int, before: Collection[int | None]) -> bool:
        """Whether they hold for a sample with a stamp [ns] that was recorded at a time [ns].

        `before`: stamps of the sample before it, and of the last one that was taken. Where the one that they
        name is not in the recording, the time tells.
        """
        if self.begins:
            return stamp == self.begun or (self.time < time and stamp > self.begun)
        return self.after in before or (self.time < time and stamp > self.after)


def observers_in(bag: Bag, namespace: str | None = None) -> list[str]:
    """Return the topics with settings of observers that say how these began, of one namespace or all."""
    settings = [topic for topic in topics_of_type(bag, STRING) if topic.endswith(SETTINGS)]
    wanted = None if namespace is None else f"/{namespace.strip('/')}".rstrip("/")
    return [
        topic
        for topic in settings
        if (wanted is None or _folder(topic) == wanted) and next(iter(changes_in(bag, topic))).begins
    ]


def changes_in(bag: Bag, settings: str) -> Iterator[Change]:
    """Yield the settings of an observer in their order. Raises InputError for what is none."""
    read = Deserialiser(settings, STRING, String)
    for message in bag.messages([settings]):
        try:
            data = json.loads(read(message).data)
            change = Change(message.time, data["restarted"], data["begun"], data["after_stamp"], data)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise InputError(
                f"the settings on {settings} are not those of an observer_node: {error!r}"
            ) from error
        yield change


def _folder(settings: str) -> str:
    return settings.removesuffix(SETTINGS).rpartition("/")[0]


class ObserverReplay:
    """A replay of one observer_node, whose settings are on a topic of a bag.

    `log` takes a line for rejected samples. Raises InputError for a bag that lacks something, ModelError for
    a robot that cannot be read.

    Attributes:
        topic: That of the external efforts.
    """

    def __init__(self, bag: Bag, settings: str, log: Callable[[str], object] = print) -> None:
        self._bag, self._folder = bag, _folder(settings)
        self.topic = self._topic(OUT)
        self._changes = deque(changes_in(bag, settings))
        if not self._changes or not self._changes[0].begins:
            raise InputError(f"{settings} in '{bag.path}' does not say how the observer_node began")
        self._now, self._log = 1e-9 * self._changes[0].time, log
        self._pipeline = ObservationPipeline.from_settings(self._changes[0].data, self._clock)
        self._recorded = {
            name: RecordedAnswers(bag, self._topic(name), False)
            for name in _SAID
            if self._topic(name) in bag.topics
        }
        answers = self._recorded.get(OUT)
        self.outcome = Outcome(recorded=0 if answers is None else len(answers))
        self.rejections = Rejections(log, self._topic(OUT).lstrip("/"), clock=self._clock)
        self._unanswered: deque[tuple[int, Measured]] = deque(maxlen=2)
        self._seen: int | None = None  # stamp [ns] of the sample before
        self._begun = False  # whether the recording has come to where the node began
        self._serialise = {name: Serialiser(kind) for name, kind in _SAID.items()}

    def write(self, out: Path, progress: Callable[[float], object] = lambda share_done: None) -> None:
        """Write a copy of the bag, with what the node said computed again under the times of the recorded.

        It is there when all of it is. Raises InputError where `out` exists.
        """
        own = {self._topic(name): name for name in _SAID}
        topics = dict(self._bag.topics)
        for topic, name in own.items():
            if name in self._recorded or name == OUT:
                old = topics.get(topic)
                topics[topic] = Topic(topic, _SAID[name], qos=old.qos if old else ())
        total = sum(self._bag.counts.values())
        with complete_and_new(out) as part, BagWriter(part, self._bag.storage) as writer:
            for one in topics.values():
                writer.add(one)
            pairs = Pairs(self._pipeline.readers, _WAIT)
            for i, message in enumerate(self._bag.messages()):
                if message.topic not in own:
                    writer.write(*message)
                for name, time, data in self._answers(pairs, message):
                    if self._topic(name) in topics:
                        writer.write(self._topic(name), time, data)
                progress(i / total)

    def _answers(self, pairs: Pairs, message: Message) -> Iterator[tuple[str, int, bytes]]:
        """Yield what is said of the samples that a message completes."""
        self._now = 1e-9 * message.time
        topic = message.topic.removeprefix(f"{self._folder}/")
        if topic not in self._pipeline.readers or self._topic(topic) != message.topic:
            return
        with self.rejections:
            for time, measured in pairs.take(topic, message.time, message.data, self._pipeline):
                yield from self._observed(time, measured)

    def _observed(self, time: int, measured: Measured) -> Iterator[tuple[str, int, bytes]]:
        """Yield what is said of a sample that was recorded at a time [ns]: topic, time [ns], bytes."""
        self.outcome.samples += 1
        stamp = instant(measured.stamp)
        self._now = 1e-9 * time
        self._go_on(stamp, time)
        if not self._begun:
            return
        answers = self._recorded.get(OUT)
        recorded = None if answers is None else answers.find(stamp)
        if answers is not None and recorded is None:
            self._unanswered.append((time, measured))  # the node has begun anew with it, or never had it
            return
        pipeline = self._pipeline
        if pipeline.begins(stamp):
            needed = 1 if pipeline.observer.sensed.rates else 2
            for before in list(self._unanswered)[-needed:]:
                yield from self._said(*before)
        self._unanswered.clear()
        yield from self._said(time if recorded is None else recorded[0], measured)
        self.outcome.matched += recorded is not None

    def _said(self, time: int, measured: Measured) -> Iterator[tuple[str, int, bytes]]:
        said = None
        with self.rejections.counting(HodynError, Reason.UNREACHABLE):
            said = self._pipeline.take(measured)
        if said is None:
            return
        stamp = instant(measured.stamp)
        self.outcome.answers += said.efforts is not None
        for name, message in ((PAYLOAD, said.payload), (OUT, said.efforts), (CONTACTS, said.contact)):
            if message is None:
                continue
            recorded = self._recorded[name].find(stamp) if name != OUT and name in self._recorded else None
            yield name, time if recorded is None else recorded[0], self._serialise[name](message)

    def _go_on(self, stamp: int, time: int) -> None:
        """Observe under the settings that hold for a sample."""
        before = self._seen, self._pipeline.stamps.last
        self._seen = stamp
        while self._changes and self._changes[0].holds(stamp, time, before):
            change = self._changes.popleft()
            if change.begins:
                if stamp != change.begun:
                    self._log(
                        f"the recording lacks the first samples of the observer of {self.topic}: numbers "
                        "differ until it has learnt the same again"
                    )
                self._pipeline = ObservationPipeline.from_settings(change.data, self._clock)
                self._unanswered.clear()
                self._begun = True
                continue
            config = observer_config(change.data)
            if config != self._pipeline.config.observer:
                self._pipeline.configure(config)
            if change.restarted == "observer":
                self._pipeline.restart()
            elif change.restarted == "payload" and self._pipeline.estimator is not None:
                self._pipeline.estimator.restart()

    def _topic(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _clock(self) -> float:
        return self._now
