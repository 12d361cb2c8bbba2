"""observer_node: measurements in, what acts on the robot from outside out, with deviations and contacts.

A lifecycle node, as dynamics_node is: *configure* loads the robot and compiles, *activate* observes; with the
parameter `autostart` (the default) it does both by itself. `docs/observers.md` describes all of it. It
commands nothing, and nothing follows what it says by itself.

Topics: `joint_states` and, where the parameter `measured` asks for them, `motor_states`
(sensor_msgs/JointState) in, reflected to the links; `odom` (nav_msgs/Odometry) in, where a base floats;
`external_efforts` (ExternalEfforts) out, one for each sample; `contacts` (ContactEvent) out, where one begins
and ends; with `payload_rate`, `payload` (PayloadEstimate) out; `/diagnostics` at 1 Hz. Services
(std_srvs/Trigger): `~/restart` forgets what was learnt of drives and load, `~/restart_payload` the load
alone; `~/payload` answers with the parameters that make it a load of dynamics_node.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.msg import ContactEvent
from hodyn_ros.msg import ExternalEfforts as ExternalEffortsMessage
from hodyn_ros.msg import PayloadEstimate as PayloadMessage
from hodyn_ros.observers import ExternalEfforts, MomentumObserver, ObserverConfig
from hodyn_ros.observers.payload import PayloadConfig, PayloadEstimator
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.joint_rows import RowsReader
from hodyn_ros.ros.conversions.layout import StreamReader, instant, unpacked
from hodyn_ros.ros.conversions.odometry import OdometryReader
from hodyn_ros.ros.diagnostics import OK, WARN, Report, Stream
from hodyn_ros.ros.parameters.observer_settings import (
    LIVE,
    SETTINGS,
    STRUCTURAL,
    USUAL_LOAD,
    loaded,
    sensed,
)
from hodyn_ros.ros.parameters.parameters import config_of, value
from hodyn_ros.ros.parameters.robot_file import robot_of_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.lifecycle import StreamLifecycle
from hodyn_ros.ros.streams.qos import stream_qos
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.ros.streams.stamp_filter import StampFilter
from hodyn_ros.ros.streams.stream_executor import beside_streams
from hodyn_ros.ros.triggers import serve_triggers

LINKS, MOTORS, BASE = "joint_states", "motor_states", "odom"
OUT, CONTACTS = "external_efforts", "contacts"
PAYLOAD = "payload"
_TO_MESSAGE = [0, 3, 4, 1, 5, 2]  # from inertia xx, yy, zz, xy, xz, yz to xx, xy, xz, yy, yz, zz
_FIELDS = {  # of joint states, by what is measured
    "position": "position",
    "velocity": "velocity",
    "motor_position": "position",
    "motor_velocity": "velocity",
    "motor_effort": "effort",
    "joint_torque": "effort",
}


class ObserverNode(StreamLifecycle):
    """Publishes what a `MomentumObserver` makes of measurements."""

    def __init__(self) -> None:
        super().__init__("observer_node", SETTINGS, STRUCTURAL)
        self._observer: MomentumObserver | None = None
        self._estimator: PayloadEstimator | None = None
        self._contact = False
        self._stamps = StampFilter(value(self, "new_clock_after"))
        self._readers: dict[str, StreamReader[Any]] = {}
        self._waiting: dict[str, tuple[bytes, Any]] = {}  # the newest of each topic that has no partner yet
        self._published, self._contacts, self._unpaired = Stream(), 0, 0
        self._begun: int | None = None  # stamp [ns] that times are counted from
        self._last: ExternalEfforts | None = None
        self._efforts_publisher = self.events.publisher(ExternalEffortsMessage, OUT, stream_qos())
        self._contacts_publisher = self.events.publisher(ContactEvent, CONTACTS, stream_qos())
        self._payload_publisher = self.events.publisher(PayloadMessage, PAYLOAD, stream_qos())
        self._next_payload = 0  # [ns] when it is told again
        for topic, kind in ((LINKS, JointState), (MOTORS, JointState), (BASE, Odometry)):
            self.listen(kind, topic, partial(self._take, topic))
        self._served = serve_triggers(
            self, restart=self._restart, restart_payload=self._restart_payload, payload=self._describe_payload
        )
        self._diagnostics = self.report_by(self._report)
        self.autostart()

    # states

    def load(self) -> None:
        """Load the robot and compile what observes it."""
        self._use(robot_of_file(self))

    def unload(self) -> None:
        """Forget the robot; another can be configured."""
        self._observer = None

    def begin(self) -> None:
        """Observe from now on, whatever the stamps before."""
        self._stamps.forget()
        self._waiting.clear()
        self._begun = None
        if self._observer is not None:
            self._observer.restart()

    def _use(self, read: Robot) -> None:
        robot = loaded(self, read)
        measured = sensed(robot, value(self, "measured"))
        observer = MomentumObserver(robot, config_of(self, ObserverConfig), measured)
        names, rows = robot.driven_joints, observer.rows
        of_motors = [row for row in rows if row.startswith("motor_") and measured.motors]
        of_links = [row for row in rows if row not in of_motors]
        self._readers = {
            topic: RowsReader(names, [_FIELDS[row] for row in chosen])
            for topic, chosen in ((LINKS, of_links), (MOTORS, of_motors))
            if chosen
        }
        if observer.floats:
            self._readers[BASE] = OdometryReader()
        self._order = np.array([[*of_links, *of_motors].index(row) for row in rows])
        self._observer, self._estimator = observer, None
        if value(self, "payload_rate") > 0.0:
            usual = config_of(self, PayloadConfig, prefix=USUAL_LOAD)
            self._estimator = PayloadEstimator(observer, usual, value(self, "payload_body"))
        self._diagnostics.hardware_id = robot.name
        self.get_logger().info(f"robot {robot.name!r}, {len(names)} joints, by {', '.join(rows)}")

    # parameters and services

    def change(self, values: Mapping[str, Any]) -> None:
        """Observe by a configuration with other values from now on."""
        if self._observer is not None and values.keys() & LIVE:
            config = config_of(self, ObserverConfig, values)
            beside_streams(self, partial(setattr, self._observer, "config", config))

    def _restart(self) -> str:
        """Forget what was learnt."""
        if self._observer is None:
            raise InputError("no robot is configured")
        self._observer.restart()
        if self._estimator is not None:
            self._estimator.restart()
        return "begun anew"

    def _restart_payload(self) -> str:
        """Forget the load."""
        if self._estimator is None:
            raise InputError("parameter 'payload_rate' is 0")
        self._estimator.restart()
        return "begun anew"

    def _describe_payload(self) -> str:
        """Return which parameters make the load one of dynamics_node, once the motion has shown its mass."""
        if self._estimator is None:
            raise InputError("no load is estimated; set the parameter 'payload_rate'")
        estimate = self._estimator.estimate
        if {"mass", "centre x", "centre y", "centre z"} & set(estimate.hidden):
            raise InputError(f"the motion has not yet shown {', '.join(estimate.hidden)}")
        payload = estimate.payload
        parameters = {
            "payload_mass": payload.mass,
            "payload_centre": list(payload.centre),
            "payload_inertia": list(payload.inertia),
            "payload_body": payload.body,
        }
        return json.dumps({"dynamics_node": {"ros__parameters": parameters}})

    # samples

    def _take(self, topic: str, data: bytes) -> None:
        reader = self._readers.get(topic)
        if self._observer is None or not self.running or reader is None:
            return
        try:
            stamp, content = reader.read(data)
            whole = self._together(topic, stamp, content)
            if whole is None:
                return
            stamp, rows, base = whole
            now = instant(stamp)
            self._stamps.check(now)
            self._observe(stamp, now, rows, base)
            self._stamps.accept(now)
        except MessageRejected as rejected:
            self.rejections[topic].add(rejected)
        except HodynError as error:  # a spring beyond its law, loops that do not close, numbers too large
            self.rejections[topic].add(MessageRejected(Reason.UNREACHABLE, str(error)))

    def _together(
        self, topic: str, stamp: bytes, content: Any
    ) -> tuple[bytes, Array, BaseMotion | None] | None:
        """Return stamp, rows and base of one instant; None where some of them have not come yet."""
        waiting = self._waiting
        self._unpaired += topic in waiting
        waiting[topic] = stamp, content
        if len(waiting) < len(self._readers):
            return None
        instants = [instant(held) for held, _ in waiting.values()]
        if max(instants) - min(instants) > 1e9 * value(self, "stamp_tolerance"):
            return None
        found = {name: waiting[name] for name in self._readers}  # those of links first
        waiting.clear()
        stamp, _ = next(iter(found.values()))
        rows = np.concatenate([rows for name, (_, rows) in found.items() if name != BASE])
        return stamp, rows, found[BASE][1] if BASE in found else None

    def _observe(self, stamp: bytes, now: int, rows: Array, base: BaseMotion | None) -> None:
        observer = self._observer
        assert observer is not None
        if self._begun is None or now < self._begun:  # a clock that starts again
            if self._begun is not None:
                observer.restart()
            self._begun = self._next_payload = now
        sample = np.ascontiguousarray(rows[self._order])
        found = observer.update(1e-9 * (now - self._begun), sample, base)
        self._last = found
        if self._estimator is not None:
            self._estimator.update(found)
            if now >= self._next_payload:
                self._tell_payload(stamp, self._estimator)
                self._next_payload = now + round(1e9 / value(self, "payload_rate"))
        if found is None:
            return
        message = ExternalEffortsMessage(
            joint_names=list(observer.names),
            efforts=float64s(found.efforts),
            deviations=float64s(found.deviations),
            largest_ratio=found.largest,
            contact=bool(found.contact),
        )
        message.header.stamp = unpacked(stamp)
        Publisher.publish(self._efforts_publisher, message)  # past what asks whether it is active: it is
        self._published.tick()
        if found.contact != self._contact:
            self._tell(message, found)

    def _tell(self, message: ExternalEffortsMessage, found: ExternalEfforts) -> None:
        """Publish that a contact begins or ends."""
        self._contact = bool(found.contact)
        event = ContactEvent(header=message.header, begins=self._contact, largest_ratio=message.largest_ratio)
        if self._contact:
            self._contacts += 1
            ratios = np.abs(found.efforts) / found.deviations
            order = [j for j in np.argsort(-ratios) if ratios[j] > value(self, "threshold")]
            event.joint_names = [message.joint_names[j] for j in order]
            event.efforts = float64s(found.efforts[order])
            event.deviations = float64s(found.deviations[order])
            self.get_logger().info(f"contact: external effort on {', '.join(event.joint_names)}")
        Publisher.publish(self._contacts_publisher, event)

    def _tell_payload(self, stamp: bytes, estimator: PayloadEstimator) -> None:
        """Publish what the robot carries."""
        estimate = estimator.estimate
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
        message.header.stamp, message.header.frame_id = unpacked(stamp), estimator.body
        Publisher.publish(self._payload_publisher, message)

    # diagnostics

    @property
    def troubles(self) -> int:
        """How much was wrong with samples so far."""
        gaps = 0 if self._observer is None else self._observer.restarts
        return self.rejected + self._unpaired + self.events.total + gaps

    def _report(self) -> Report:
        observer = self._observer
        values: dict[str, object] = {
            "samples": self._published.count,
            "sample rate [1/s]": self._published.rate(),
            "age of the last sample [s]": self._published.age(),
            "contacts": self._contacts,
            "in contact": self._contact,
            "largest ratio": self._last.largest if self._last else "",
            "begun anew": observer.restarts if observer else "",
            "states without a partner": self._unpaired,
            "rejected": self.rejected,
            **self.rejected_by_topic(),
        }
        for joint, kinds in (observer.corrections if observer else {}).items():
            values |= {
                f"{joint}: {kind} corrected by": f"{one.value:+.3f} ± {one.deviation:.3f}"
                for kind, one in kinds.items()
            }
        if idle := self.idle(values):
            return idle
        if self.new_troubles():
            return Report(WARN, "samples were rejected, lost, without a partner or too far apart", values)
        if not self._published.count:
            return Report(WARN, f"waiting for samples on {' and '.join(self._readers)}", values)
        if self._published.age() > 1.0:
            return Report(WARN, f"no sample on {' and '.join(self._readers)} for more than a second", values)
        return Report(OK, "in contact" if self._contact else "observing", values)


def main(args: Sequence[str] | None = None) -> int:
    """Run observer_node as a process."""
    return run(ObserverNode, args)


if __name__ == "__main__":
    sys.exit(main())
