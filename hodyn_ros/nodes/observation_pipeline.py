"""From measurements to external efforts, contacts and loads: all that observer_node says, without a node.

The node observes what comes on topics; `hodyn replay` observes what a bag holds, with the settings that the
node has published there, and gets the same numbers.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.msg import ContactEvent
from hodyn_ros.msg import ExternalEfforts as ExternalEffortsMessage
from hodyn_ros.msg import PayloadEstimate as PayloadMessage
from hodyn_ros.observers import ExternalEfforts, MomentumObserver, ObserverConfig
from hodyn_ros.observers.payload import PayloadConfig, PayloadEstimator
from hodyn_ros.observers.screen import SampleScreen
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.joint_subset import RowsReader
from hodyn_ros.ros.conversions.layout import StreamReader, instant, unpacked
from hodyn_ros.ros.conversions.odometry import OdometryReader
from hodyn_ros.ros.parameters.observer_settings import sensed
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.ros.streams.stamp_filter import StampFilter

LINKS, MOTORS, BASE = "joint_states", "motor_states", "odom"
TYPES = {LINKS: JointState, MOTORS: JointState, BASE: Odometry}
OUT, CONTACTS, PAYLOAD = "external_efforts", "contacts", "payload"
_VERSION = 3  # of the JSON of `settings`
_TO_MESSAGE = [0, 3, 4, 1, 5, 2]  # from inertia xx, yy, zz, xy, xz, yz to xx, xy, xz, yy, yz, zz
_FIELDS = {  # of joint states, by what is measured
    "position": "position",
    "velocity": "velocity",
    "motor_position": "position",
    "motor_velocity": "velocity",
    "motor_effort": "effort",
    "joint_torque": "effort",
}


@dataclass(frozen=True)
class ObservationConfig:
    """What may be chosen: as the parameters of observer_node say."""

    measured: tuple[str, ...] = ()
    load: FeedforwardConfig = FeedforwardConfig()  # of which payload and gravity count
    observer: ObserverConfig = ObserverConfig()
    usual_load: PayloadConfig = PayloadConfig()
    payload_rate: float = 0.0  # [Hz]
    payload_body: str = ""
    stamp_tolerance: float = 0.0005  # [s]


class Measured(NamedTuple):
    """What belongs to one instant."""

    stamp: bytes  # as it travels, of the links
    rows: Array  # (rows, n) of links, then of motors
    base: BaseMotion | None


class Said(NamedTuple):
    """What is said of a sample; None where nothing is."""

    efforts: ExternalEffortsMessage | None
    contact: ContactEvent | None  # where one begins or ends
    payload: PayloadMessage | None
    unloaded: HodynError | None = None  # why nothing follows for the load alone


class ObservationPipeline:
    """Observes one robot, `robot` as it was built from `files`.

    Raises HodynError where configuration and robot do not fit.

    Attributes:
        readers: What reads the messages of each topic that is needed, those of links first.
        begun: Stamp [ns] that times are counted from; None before the first sample.
        stamps: Rejects samples that come out of order.
        screen: Tells readings that repeat, and counts commands beyond what drives give.
    """

    def __init__(
        self, files: RobotFiles, robot: Robot, config: ObservationConfig, stamps: StampFilter | None = None
    ) -> None:
        self.files, self._config = files, config
        self.robot = config.load.robot(robot)
        measured = sensed(self.robot, config.measured)
        self.observer = MomentumObserver(self.robot, config.observer, measured)
        names, rows = self.robot.driven_joints, self.observer.rows
        of_motors = [row for row in rows if row.startswith("motor_") and measured.motors]
        of_links = [row for row in rows if row not in of_motors]
        self.readers: dict[str, StreamReader[Any]] = {
            topic: RowsReader(names, [_FIELDS[row] for row in chosen])
            for topic, chosen in ((LINKS, of_links), (MOTORS, of_motors))
            if chosen
        }
        if self.observer.floats:
            self.readers[BASE] = OdometryReader()
        self._order = np.array([[*of_links, *of_motors].index(row) for row in rows])
        self.estimator: PayloadEstimator | None = None
        self._observers = [self.observer]  # the last one is that of the load
        if config.payload_rate > 0.0:
            if measured.rates and not self.observer.floats:  # filtered ones are late, by more with a load
                positions = replace(measured, rates=False)
                self._observers.append(MomentumObserver(self.robot, config.observer, positions))
            self.estimator = PayloadEstimator(self._observers[-1], config.usual_load, config.payload_body)
        self._rows_of_load = [rows.index(row) for row in self._observers[-1].rows]
        self.stamps = StampFilter() if stamps is None else stamps
        self.screen = SampleScreen(rows, names, self.robot.limits.effort)
        self.begun: int | None = None
        self.contact = False
        self._next_payload = 0  # [ns] when it is told again

    @property
    def config(self) -> ObservationConfig:
        """The configuration; that of the observer may change at any time."""
        return self._config

    def compile(self, config: ObserverConfig) -> None:
        """Compile what another configuration needs, so that `configure` finds it, and takes no time."""
        observers = [MomentumObserver(self.robot, config, one.sensed) for one in self._observers]
        if self.estimator is not None:
            PayloadEstimator(observers[-1], self._config.usual_load, self._config.payload_body)

    def configure(self, config: ObserverConfig) -> None:
        """Let the observer go on with another configuration."""
        for observer in self._observers:
            observer.config = config
        self._config = replace(self._config, observer=config)

    def begin(self) -> None:
        """Observe from now on, whatever the stamps before."""
        self.stamps.forget()
        self.screen.forget()
        self.begun, self.contact = None, False
        self._restart_observers()

    def restart(self) -> None:
        """Forget what was learnt."""
        self._restart_observers()
        if self.estimator is not None:
            self.estimator.restart(drives=True)

    def _restart_observers(self) -> None:
        for observer in self._observers:
            observer.restart()

    def begins(self, stamp: int) -> bool:
        """Whether nothing follows from a sample with a stamp [ns] yet, as there is none near before."""
        last, longest = self.stamps.last, 1e9 * self._config.observer.longest_gap
        return self.observer.starting or last is None or not 0 < stamp - last <= longest

    def take(self, measured: Measured) -> Said:
        """Observe a sample. Raises MessageRejected or HodynError for one that does not count then."""
        now, observer = instant(measured.stamp), self.observer
        self.stamps.check(now)
        begun, last = self.begun, self.stamps.last
        if begun is None or last is None or now < last:  # a clock that starts again
            if begun is not None:
                self._restart_observers()
            begun = now
            self.screen.forget()
        sample, at = np.ascontiguousarray(measured.rows[self._order]), 1e-9 * (now - begun)
        if repeated := self.screen.repeats(at, sample):
            raise MessageRejected(Reason.REPEATED, f"{repeated}; does its sensor hang?")
        if self._config.observer.held_efforts:
            sample = self.screen.within_limits(sample)
        external = observer.update(at, sample, measured.base)
        self.stamps.accept(now)
        if begun != self.begun:
            self.begun = self._next_payload = begun
        unloaded = self._take_load(at, sample, external)
        payload = self._load(measured.stamp, now)
        if external is None:
            return Said(None, None, payload, unloaded)
        message = ExternalEffortsMessage(
            joint_names=list(observer.names),
            efforts=float64s(external.efforts),
            deviations=float64s(external.deviations),
            largest_ratio=external.largest,
            contact=external.contact,
        )
        message.header.stamp = unpacked(measured.stamp)
        return Said(message, self._event(message, external), payload, unloaded)

    def _event(self, message: ExternalEffortsMessage, external: ExternalEfforts) -> ContactEvent | None:
        """Say that a contact begins or ends."""
        if external.contact == self.contact:
            return None
        self.contact = external.contact
        event = ContactEvent(header=message.header, begins=self.contact, largest_ratio=message.largest_ratio)
        if self.contact:
            ratios = np.abs(external.efforts) / external.deviations
            order = [j for j in np.argsort(-ratios) if ratios[j] > self._config.observer.threshold]
            event.joint_names = [message.joint_names[j] for j in order]
            event.efforts = float64s(external.efforts[order])
            event.deviations = float64s(external.deviations[order])
        return event

    def _take_load(self, at: float, sample: Array, external: ExternalEfforts | None) -> HodynError | None:
        """Let the estimate of the load take a sample; return why its observer cannot.

        By positions alone, stamps that are too close lead springs out of reach; measured velocities do not.
        """
        if self.estimator is None:
            return None
        observer = self._observers[-1]
        if observer is not self.observer:
            try:
                external = observer.update(at, np.ascontiguousarray(sample[self._rows_of_load]))
            except HodynError as error:
                return error
        self.estimator.update(external)
        return None

    def _load(self, stamp: bytes, now: int) -> PayloadMessage | None:
        """Say what the robot carries, as often as it should be."""
        if self.estimator is None or now < self._next_payload:
            return None
        self._next_payload = now + round(1e9 / self._config.payload_rate)
        estimate = self.estimator.estimate
        values, deviations = estimate.values, estimate.deviations
        message = PayloadMessage(
            mass=float(values[0]),
            mass_deviation=float(deviations[0]),
            centre=values[1:4],
            centre_deviations=deviations[1:4],
            inertia=values[4:][_TO_MESSAGE],
            inertia_deviations=deviations[4:][_TO_MESSAGE],
            hidden=list(estimate.hidden),
        )
        message.header.stamp, message.header.frame_id = unpacked(stamp), self.estimator.body
        return message

    def settings(self, restarted: str = "") -> str:
        """Return as JSON all that what is said follows from; it holds after the last sample taken so far.

        Keys: `robot` (the fields of `RobotFiles`), those of `ObservationConfig`, `new_clock_after` [s],
        `begun` and `after_stamp` [ns] or null, `version`, and `restarted`: "all" at the first sample, which
        is that at `begun`, "observer" and "payload" after the services, else nothing.
        """
        return json.dumps(
            {
                "version": _VERSION,
                "robot": asdict(self.files),
                **asdict(self._config),
                "new_clock_after": self.stamps.forget_after,
                "begun": self.begun,
                "after_stamp": self.stamps.last,
                "restarted": restarted,
            }
        )

    @classmethod
    def from_settings(
        cls, data: Mapping[str, Any], clock: Callable[[], float] = time.monotonic
    ) -> ObservationPipeline:
        """Build the pipeline that `settings` describes; InputError where they are something else.

        It has seen no samples; `clock` [s] tells when messages arrive, in a replay when they were recorded.
        """
        try:
            if data["version"] != _VERSION:
                raise InputError(
                    f"the settings have version {data['version']!r}; this hodyn_ros reads {_VERSION}"
                )
            config = ObservationConfig(
                tuple(data["measured"]),
                FeedforwardConfig(**data["load"]),
                observer_config(data),
                PayloadConfig(**data["usual_load"]),
                float(data["payload_rate"]),
                str(data["payload_body"]),
                float(data["stamp_tolerance"]),
            )
            stamps = StampFilter(float(data["new_clock_after"]), clock)
            files = RobotFiles(**data["robot"])
            return cls(files, files.robot(), config, stamps)
        except HodynError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"these are not the settings of an observer_node: {error!r}") from error


def observer_config(data: Mapping[str, Any]) -> ObserverConfig:
    """Return the configuration of the observer in settings."""
    fields: dict[str, Any] = data["observer"]
    lists = {name: tuple(values) for name, values in fields.items() if isinstance(values, list)}
    return ObserverConfig(**{**fields, **lists})


class State(NamedTuple):
    """What one message says, until it belongs to a sample."""

    came: int  # [ns]
    instant: int  # its stamp [ns]
    stamp: bytes  # as it travels
    content: Any  # rows of joints, or the motion of the base


class Pairs:
    """Puts states of links, motors and base of one instant together, in the order of those of the links.

    Each topic keeps its order, but not beside others: where a machine holds up a node, or a recorder, many
    messages of one come before those of the next. So they wait, by topic.

    Attributes:
        alone: How many states no other belonged to.
    """

    def __init__(self, topics: Iterable[str], wait: float) -> None:
        """`topics`: that of links first; `wait`: longest time [s] that a state waits."""
        self.alone, self._wait = 0, 1e9 * wait
        self._waiting: dict[str, deque[State]] = {topic: deque() for topic in topics}
        self._newest = dict.fromkeys(self._waiting, -1)  # stamps [ns]

    def forget(self) -> None:
        """Let nothing wait any more."""
        for waiting in self._waiting.values():
            self._drop(waiting, len(waiting))
        self._newest = dict.fromkeys(self._waiting, -1)

    def take(
        self, topic: str, came: int, data: bytes, pipeline: ObservationPipeline
    ) -> Iterator[tuple[int, Measured]]:
        """Yield the samples that a message completes which came at a time [ns], and when their links' came.

        Raises MessageRejected for a message that cannot be read.
        """
        stamp, content = pipeline.readers[topic].read(data)
        state, queue = State(came, instant(stamp), stamp, content), self._waiting[topic]
        if state.instant < self._newest[topic]:  # a clock that starts again, for others as well
            self.forget()
        queue.append(state)
        self._newest[topic] = state.instant
        while came - queue[0].came > self._wait:
            self._drop(queue, 1)
        links, *partners = self._waiting
        while self._waiting[links]:
            first = self._waiting[links][0]
            lacking = [other for other in partners if not self._has_partner(other, first.instant, pipeline)]
            if any(self._newest[other] <= first.instant for other in lacking):
                return  # it may still come
            if lacking:
                self._drop(self._waiting[links], 1)
                continue
            held = {name: waiting.popleft().content for name, waiting in self._waiting.items()}
            base = held.pop(BASE, None)
            yield first.came, Measured(first.stamp, np.concatenate(list(held.values())), base)

    def _has_partner(self, topic: str, stamp: int, pipeline: ObservationPipeline) -> bool:
        """Leave out what is before the nearest to a stamp [ns] on a topic; whether that is near enough."""
        queue, apart = self._waiting[topic], []
        for state in queue:
            apart.append(abs(state.instant - stamp))
            if state.instant >= stamp:
                break  # those behind it are farther away
        self._drop(queue, apart.index(min(apart)) if apart else 0)  # farther from any later stamp, too
        return bool(queue) and abs(queue[0].instant - stamp) <= 1e9 * pipeline.config.stamp_tolerance

    def _drop(self, queue: deque[State], count: int) -> None:
        for _ in range(count):
            queue.popleft()
        self.alone += count
