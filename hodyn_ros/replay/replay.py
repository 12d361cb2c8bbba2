"""What dynamics_node would have published, computed again from a bag: the same numbers, without a node.

The settings come from the bag as well (`dynamics_node/settings`); the external wrenches are those that the
recorded answers assumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from std_msgs.msg import String

from hodyn_ros import share
from hodyn_ros.array import Array
from hodyn_ros.bags.comparison.gaps import find_gaps
from hodyn_ros.bags.comparison.sources import DESIRED_MOTION, FEEDFORWARD_TORQUE, STRING, Sources
from hodyn_ros.bags.files.types import todays_hash, type_hash
from hodyn_ros.bags.messages import Message, Topic, stamp_of
from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.writer import BagWriter
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.msg import DesiredMotion
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.outputs import complete_and_new
from hodyn_ros.replay.recorded import Deserialiser, Outcome, RecordedAnswers, Serialiser
from hodyn_ros.ros.streams.rejections import Rejections


class NothingAnsweredError(InputError):
    """None of the motions in a bag could be answered."""


class Changes(NamedTuple):
    """What a replay does in another way than the recorded node; None: as recorded."""

    robot: str | None = None  # path of a YAML, URDF or MJCF file, or the name of a shipped one
    order: int | None = None
    floating_base: bool = False  # of a robot in a URDF, which does not say it

    def robot_files(self) -> RobotFiles:
        """Read the other robot. Raises InputError or ModelError."""
        assert self.robot is not None
        return RobotFiles.from_file(share.find("config", self.robot), self.floating_base)


AS_RECORDED = Changes()


class Replay:
    """A replay of the topics `sources` of a bag, ready to be written.

    `log` takes a line for rejected samples, at most one a second of the recording for each reason. Raises
    InputError for a bag that lacks something, ModelError for a robot that cannot be read.
    """

    def __init__(
        self, bag: Bag, sources: Sources, changes: Changes = AS_RECORDED, log: Callable[[str], object] = print
    ) -> None:
        _check_type(bag, sources.desired_motion)
        self._bag, self._sources, self._changes = bag, sources, changes
        self._read_motion = Deserialiser(sources.desired_motion, DESIRED_MOTION, DesiredMotion)
        self._read_settings = Deserialiser(sources.settings, STRING, String)
        times, stamps, settings = self._look_through()
        self.gaps = find_gaps(stamps)  # what the bag lacks of the motions
        intervals = read_settings_intervals(np.array(times), np.array(stamps), settings)
        self._intervals = intervals or [self._interval_of_changes()]
        # built now, so that errors come before anything is written
        self._pipeline = self._build(self._intervals[0])
        pushed = any(interval.pushed for interval in self._intervals)
        self._recorded = RecordedAnswers(bag, sources.feedforward_torque, pushed)
        self.outcome = Outcome(len(times), len(self._recorded))
        self.rejections = Rejections(log, sources.desired_motion.lstrip("/"), clock=self._clock)
        self._now = 0.0  # [s] when the present sample was recorded
        self._wrenches: Array | None = None
        self._serialise = Serialiser(FEEDFORWARD_TORQUE)

    def write(self, out: Path, progress: Callable[[float], object] = lambda share_done: None) -> None:
        """Write a copy of the bag, with the answers computed again under the times of the recorded ones.

        It is there when all of it is. Raises InputError where `out` exists, NothingAnsweredError where there
        would be no answer in it.
        """
        with complete_and_new(out) as part:
            self._write(part, progress)
            if not self.outcome.answers:
                raise NothingAnsweredError(
                    f"none of the {self.outcome.samples} samples of {self._sources.desired_motion} could be "
                    f"answered ({self.rejections.reasons() or 'all are from before the first settings'}); "
                    "nothing is written"
                )

    def _write(self, out: Path, progress: Callable[[float], object]) -> None:
        sources, sample, serialise_settings = self._sources, 0, Serialiser(STRING)
        recorded = self._bag.topics.get(sources.feedforward_torque)
        answered = Topic(sources.feedforward_torque, FEEDFORWARD_TORQUE, qos=recorded.qos if recorded else ())
        with BagWriter(out, self._bag.storage) as writer:
            for topic in (self._bag.topics | {answered.name: answered}).values():
                writer.add(topic)
            for message in self._bag.messages():
                if message.topic == answered.name:
                    continue
                if message.topic == sources.settings:
                    text = self._read_settings(message).data
                    if self._changed(text) != text:
                        data = serialise_settings(String(data=self._changed(text)))
                        message = message._replace(data=data)
                writer.write(*message)
                if message.topic == sources.desired_motion:
                    answer = self._answer(sample, message)
                    if answer is not None:
                        writer.write(answered.name, *answer)
                    sample += 1
                    progress(sample / self.outcome.samples)

    def _look_through(self) -> tuple[list[int], list[int], list[tuple[int, str]]]:
        """Return times and stamps [ns] of the samples, and the settings with their times."""
        times, stamps, settings = [], [], []
        for message in self._bag.messages([self._sources.desired_motion, self._sources.settings]):
            if message.topic == self._sources.settings:
                settings.append((message.time, str(self._read_settings(message).data)))
            else:
                times.append(message.time)
                stamps.append(stamp_of(message.data))
        return times, stamps, settings

    def _answer(self, sample: int, message: Message) -> tuple[int, bytes] | None:
        """Return time [ns] and bytes of the answer to a sample; None for one that is rejected or left out."""
        outcome = self.outcome
        if sample < self._intervals[0].begin:
            outcome.without_settings += 1
            return None
        while len(self._intervals) > 1 and self._intervals[1].begin <= sample:
            self._go_on(self._intervals.pop(1))
        self._now = 1e-9 * message.time
        time, wrenches = self._recorded.find(stamp_of(message.data)) or (None, None)
        if wrenches is not None:
            self._wrenches = _to_order(wrenches, self._pipeline.model.order)
        with self.rejections:
            answer = self._pipeline.answer(self._read_motion(message), self._wrenches)
            outcome.answers += 1
            outcome.matched += time is not None
            return message.time if time is None else time, self._serialise(answer)
        return None

    def _go_on(self, interval: SettingsInterval) -> None:
        """Answer under other settings from now on."""
        pipeline = self._build(interval)
        if interval.goes_on:
            pipeline.stamps = self._pipeline.stamps
        self._pipeline, self._wrenches = pipeline, None

    def _build(self, interval: SettingsInterval) -> FeedforwardPipeline:
        return FeedforwardPipeline.from_settings(self._changed(interval.settings), self._clock)

    def _clock(self) -> float:
        return self._now

    def _changed(self, settings: str) -> str:
        """Return settings as this replay uses them."""
        if self._changes == AS_RECORDED:
            return settings
        data = json.loads(settings)
        if self._changes.robot is not None:
            data["robot"] = asdict(self._changes.robot_files())
            data["positions"] = None
        if self._changes.order is not None:
            data["feedforward"]["order"] = self._changes.order
        return json.dumps(data)

    def _interval_of_changes(self) -> SettingsInterval:
        """Return settings for a bag that has none."""
        if self._changes.robot is None:
            raise InputError(
                f"'{self._bag.path}' holds nothing on {self._sources.settings}; say which robot it was with "
                "--robot"
            )
        files = self._changes.robot_files()
        pipeline = FeedforwardPipeline(files, files.robot(), FeedforwardConfig())
        return SettingsInterval(0, pipeline.settings(), False)


def _check_type(bag: Bag, topic: str) -> None:
    """Reject messages of another version of this package: their bytes mean something else."""
    recorded, today = type_hash(bag.topics[topic]), todays_hash(DESIRED_MOTION)
    if recorded != today:
        raise InputError(
            f"{topic} in '{bag.path}' was recorded with another version of {DESIRED_MOTION} ({recorded}, "
            f"here {today}); replay it with the hodyn_ros that recorded it"
        )


def _to_order(wrenches: Array, order: int) -> Array:
    """Return wrenches (bodies, orders, 6) with as many orders as efforts of an order need."""
    result = np.zeros((len(wrenches), order + 1, 6))
    result[:, : wrenches.shape[1]] = wrenches[:, : order + 1]
    return result


Integers = NDArray[np.int64]

_SLACK = 1_000_000_000  # [ns] by which the times of two topics may contradict the order of their messages


class SettingsInterval(NamedTuple):
    """Settings, and the samples that were answered under them."""

    begin: int  # number of the first sample
    settings: str
    goes_on: bool  # whether the node had answered samples before
    pushed: bool = False  # whether external wrenches counted


def read_settings_intervals(
    times: Integers, stamps: Integers, settings: Sequence[tuple[int, str]]
) -> list[SettingsInterval]:
    """Return the intervals of a recording, in their order.

    `times` and `stamps` (N,) [ns] of the samples, as they were recorded; `settings` with the times at which
    they were recorded. The time alone does not tell: while the node computes with new settings, samples wait
    for it. But the settings name the last stamp that was answered before them.
    """
    result: list[SettingsInterval] = []
    for time, text in settings:
        after, pushed = _parsed(text)
        begin = _begin(times, stamps, time, after)
        if begin is None:  # all before the recording, or a node that has started in the middle of it
            begin = int(np.count_nonzero(times <= time)) if result else 0
        result.append(
            SettingsInterval(max(begin, result[-1].begin if result else 0), text, after is not None, pushed)
        )
    return result


def _parsed(settings: str) -> tuple[int | None, bool]:
    """Return the last stamp [ns] answered before settings, and whether there are external wrenches."""
    try:
        data = json.loads(settings)
        after, model = data["after_stamp"], data.get("feedforward")
        pushed = isinstance(model, dict) and bool(model.get("wrench_bodies"))
        return None if after is None else int(np.int64(after)), pushed
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"the settings in the bag are not those of a dynamics_node: {error!r}") from error


def _begin(times: Integers, stamps: Integers, time: int, after: int | None) -> int | None:
    """Return the number of the sample that follows the stamp `after`; None where that is not recorded."""
    if after is None:
        return None
    last = np.flatnonzero((stamps == after) & (times <= time + _SLACK))
    if not len(last):  # lost on the way to the recorder, so the next one before it counts
        last = np.flatnonzero((stamps < after) & (times <= time))
    return int(last[-1]) + 1 if len(last) else None
