"""recorder: records what `hodyn replay` needs, into a bag as `ros2 bag record` writes it.

Topics in: `desired_motion`, `feedforward_torque`, `dynamics_node/settings`, external wrenches and the
course of the motion, or those of the parameter `topics`; also when they appear later. `/diagnostics` out
at 1 Hz, and `~/heard` (std_msgs/String), whom it has heard, for `start_when_recorded` of trajectory_node. A
signal completes the bag; whatever else ends the process costs what came within the last second.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSHistoryPolicy, QoSProfile, QoSReliabilityPolicy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from std_msgs.msg import String

from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.writer import AsyncBagWriter
from hodyn_ros.errors import InputError
from hodyn_ros.ros.access import RECORDED
from hodyn_ros.ros.diagnostics import OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare, parameters, value
from hodyn_ros.ros.process import run
from hodyn_ros.ros.recorded import HEARD, heard_message, word
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.one_publisher import identity, publishers_of
from hodyn_ros.ros.streams.qos import latched_qos
from hodyn_ros.ros.streams.stream_executor import StreamGroup

SETTINGS = parameters(
    file=ParameterSpec("", "Folder of the bag, which must not exist yet."),
    storage=ParameterSpec("mcap", "How the bag is stored: mcap or sqlite3."),
    topics=ParameterSpec(
        [], "Topics to record; empty: what `hodyn replay` needs and the course of the motion.", element=str
    ),
)

WRENCH = "geometry_msgs/msg/WrenchStamped"  # external wrenches: any topic of this type in the namespace

_DEPTH = 5000  # messages of a topic that may wait while the machine holds up the process
_LOOK_PERIOD = 0.1  # [s] between two searches for new topics


class Recorder(Node):
    """Hears topics as bytes and hands them to a `AsyncBagWriter`."""

    end_within = float("inf")  # [s]: a disk takes its time to complete a bag

    def __init__(self) -> None:
        self._open = False  # rclpy destroys a node also when this method has failed
        super().__init__("recorder")
        declare(self, SETTINGS)
        if not value(self, "file"):
            raise InputError("parameter 'file' is empty; say where the bag goes")
        self._file = Path(value(self, "file"))
        self._names = {self.resolve_topic_name(name) for name in value(self, "topics") or RECORDED}
        self._wrenches = not value(self, "topics")
        self._namespace = f"{self.get_namespace().rstrip('/')}/"
        self._simulated = bool(self.get_parameter("use_sim_time").value)
        self._group = StreamGroup()
        self._heard: dict[str, RecordedSubscription] = {}
        self._unknown: set[str] = set()
        self._messages = Stream()
        self._times = RecordingTime()
        self._tells = self.create_publisher(String, HEARD, latched_qos())
        # simulated time may stand still until somebody hears what is to be recorded
        self._timer = steady_timer(self, _LOOK_PERIOD, self._look)
        self._diagnostics = Diagnostics(self, self._report)
        self._writer = AsyncBagWriter(self._file, value(self, "storage"))
        self._open = True
        self.get_logger().info(f"recording into {self._file}")

    def record(self, message: Message) -> None:
        """Take a message."""
        self._writer.put(message)
        self._messages.tick()

    def tell(self) -> None:
        """Say from which publishers messages have come."""
        heard = self._heard.items()
        self._tells.publish(heard_message(word(name, gid) for name, each in heard for gid in each.publishers))

    def time(self, info: Mapping[str, Any]) -> int:
        """Return the time [ns] under which a message is recorded: its arrival, or simulated time.

        Where the clock has gone back meanwhile, the times of the recording go on.
        """
        steps = self._times.steps
        now = int(self.get_clock().now().nanoseconds)
        result = self._times(now)
        if self._times.steps > steps:
            self.get_logger().warning(self._shift(), throttle_duration_sec=1.0)
        # how long it has waited for this process; less than nothing where the clock was set in between
        age = 0 if self._simulated else max(0, now - int(info["received_timestamp"]))
        return result - age

    def _shift(self) -> str:
        """Return in words how the times of the recording differ from those of a clock that went back."""
        often = "once" if self._times.steps == 1 else f"{self._times.steps} times"
        return (
            f"time went back {often}; recorded times go on, {self._times.shift * 1e-9:.3f} s ahead of it now"
        )

    def destroy_node(self) -> None:
        """Complete the bag; SystemExit after one line where that cannot be done."""
        if self._open:
            self._open = False
            for heard in self._heard.values():
                self.destroy_subscription(heard.subscription)
            self._complete()
        super().destroy_node()

    def _complete(self) -> None:
        self._writer.close()
        count = self._messages.count
        if self._writer.failure is not None:
            print(
                f"error: the recording has ended too early: {self._writer.failure}; {self._file} holds the "
                f"first {_readable(self._file)} of {count} messages",
                file=sys.stderr,
                flush=True,
            )
            raise SystemExit(1)
        shift = f"; {self._shift()}" if self._times.steps else ""
        print(f"recorded {count} messages into {self._file}{self._losses()}{shift}", flush=True)

    def _look(self) -> None:
        """Subscribe to what has appeared; end when writing has failed."""
        if self._writer.failure is not None:
            raise SystemExit(1)
        for name, types in self.get_topic_names_and_types():
            if name in self._heard or name in self._unknown:
                continue
            wrench = self._wrenches and WRENCH in types and name.startswith(self._namespace)
            if name in self._names or wrench:
                self._subscribe(name)

    def _subscribe(self, name: str) -> None:
        publishers = self.get_publishers_info_by_topic(name)
        if not publishers:
            return
        kind = publishers[0].topic_type
        package, _, short = kind.split("/")
        try:
            message_type = getattr(import_module(f"{package}.msg"), short)
        except (ImportError, AttributeError):
            self._unknown.add(name)
            self.get_logger().warning(f"{name} is not recorded: its type {kind} is not installed")
            return
        profiles = [publisher.qos_profile for publisher in publishers]
        topic = Topic(
            name,
            kind,
            hash=str(publishers[0].topic_type_hash),
            qos=tuple(offered(profile) for profile in profiles),
        )
        self._writer.put(topic)
        self._heard[name] = RecordedSubscription(self, name, message_type, matching(profiles), self._group)

    def _losses(self) -> str:
        lost = {name: heard.lost for name, heard in self._heard.items() if heard.lost}
        return "".join(f"; {count} of {name} were lost on the way" for name, count in lost.items())

    def _report(self) -> Report:
        missing = sorted(self._names - self._heard.keys())
        lost = sum(heard.lost for heard in self._heard.values())
        values: dict[str, object] = {
            "file": self._file,
            "storage": value(self, "storage"),
            "topics": ", ".join(sorted(self._heard)),
            "topics that nobody publishes": ", ".join(missing),
            "messages": self._messages.count,
            "rate [1/s]": self._messages.rate(),
            "waiting to be written": self._writer.waiting,
            "lost on the way": lost,
            "ahead of time that went back [s]": 1e-9 * self._times.shift,
        }
        if lost:
            return Report(WARN, f"{lost} messages were lost on the way", values)
        return Report(OK, "recording" if self._messages.count else "waiting for the first message", values)


class RecordedSubscription:
    """A subscription whose messages are recorded; `lost` counts those that were sent but never came."""

    def __init__(
        self, recorder: Recorder, name: str, message_type: Any, qos: QoSProfile, group: StreamGroup
    ) -> None:
        self.lost = 0
        self._name = name
        self._recorder = recorder
        self._time = 0
        self.publishers: dict[bytes, int] = {}  # numbers of their last messages, 0 where unknown
        self.subscription = recorder.create_subscription(
            message_type, name, self._take, qos, callback_group=group, raw=True
        )

    def _take(self, data: bytes, info: Mapping[str, Any]) -> None:
        # A message that was sent twice may have arrived after the one that follows it. The order in which
        # they are handed out counts, because it is that in which every node gets them.
        self._time = max(self._time, self._recorder.time(info))
        self._recorder.record(Message(self._name, self._time, data))
        # not every middleware tells
        publisher = identity(info) or b""
        number = (publisher and info.get("publication_sequence_number")) or 0
        if publisher in self.publishers:
            self.lost += max(0, number - self.publishers[publisher] - 1)
            self.publishers[publisher] = number
        else:  # those that have gone would be told of for ever
            present = publishers_of(self._recorder, self._name)
            left = {gid: last for gid, last in self.publishers.items() if gid in present}
            self.publishers = left | {publisher: number}
            self._recorder.tell()


def _readable(bag: Path) -> int:
    """Return how many messages a bag holds that was not completed, as whoever reads it finds out."""
    try:
        with Bag(bag) as reader:
            return reader.counts.total()
    except (InputError, OSError):
        return 0


def matching(profiles: Sequence[QoSProfile]) -> QoSProfile:
    """Return the profile that gets most out of all these publishers."""
    reliable = all(profile.reliability == QoSReliabilityPolicy.RELIABLE for profile in profiles)
    latched = all(profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL for profile in profiles)
    return QoSProfile(
        reliability=QoSReliabilityPolicy.RELIABLE if reliable else QoSReliabilityPolicy.BEST_EFFORT,
        durability=QoSDurabilityPolicy.TRANSIENT_LOCAL if latched else QoSDurabilityPolicy.VOLATILE,
        history=QoSHistoryPolicy.KEEP_LAST,
        depth=_DEPTH,
    )


def offered(profile: QoSProfile) -> Qos:
    """Return a profile in the form of the library rosbags, for players that shall offer the same."""
    return Qos(
        QosHistory(profile.history.value),
        profile.depth,
        QosReliability(profile.reliability.value),
        QosDurability(profile.durability.value),
        _time(profile.deadline),
        _time(profile.lifespan),
        QosLiveliness(profile.liveliness.value),
        _time(profile.liveliness_lease_duration),
        profile.avoid_ros_namespace_conventions,
    )


def _time(duration: Duration) -> QosTime:
    return QosTime(*divmod(int(duration.nanoseconds), 1_000_000_000))


class RecordingTime:
    """Makes times that go on where a clock goes back, as simulated time does when its simulation is reset.

    Whoever plays or sorts a bag goes by these times; what followed a reset would be mixed with what came
    before it, or would all have one time. `shift` [ns] is how far the times are ahead of the clock, `steps`
    how often it went back.

    >>> time = RecordingTime()
    >>> [time(now) for now in (5, 7, 1, 2)], time.shift, time.steps
    ([5, 7, 7, 8], 6, 1)
    """

    def __init__(self) -> None:
        self.shift = 0
        self.steps = 0
        self._last: int | None = None

    def __call__(self, now: int) -> int:
        """Return the time [ns] of the recording when the clock shows `now` [ns]."""
        if self._last is not None and now < self._last:
            self.shift += self._last - now
            self.steps += 1
        self._last = now
        return now + self.shift


main = partial(run, Recorder)

if __name__ == "__main__":
    sys.exit(main())
