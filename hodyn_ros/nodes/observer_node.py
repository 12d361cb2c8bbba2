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
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rclpy.publisher import Publisher
from std_msgs.msg import String

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.msg import ContactEvent
from hodyn_ros.msg import ExternalEfforts as ExternalEffortsMessage
from hodyn_ros.msg import PayloadEstimate as PayloadMessage
from hodyn_ros.nodes.observation_pipeline import (
    CONTACTS,
    OUT,
    PAYLOAD,
    TYPES,
    Measured,
    ObservationConfig,
    ObservationPipeline,
    Pairs,
)
from hodyn_ros.observers import ObserverConfig
from hodyn_ros.observers.payload import PayloadConfig
from hodyn_ros.ros.diagnostics import OK, WARN, Report, Stream
from hodyn_ros.ros.parameters.observer_settings import LIVE, SETTINGS, STRUCTURAL, USUAL_LOAD
from hodyn_ros.ros.parameters.parameters import config_of, value
from hodyn_ros.ros.parameters.robot_file import robot_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.lifecycle import StreamLifecycle
from hodyn_ros.ros.streams.qos import latched_qos, stream_qos
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason, Rejections
from hodyn_ros.ros.streams.stamp_filter import StampFilter
from hodyn_ros.ros.streams.stream_executor import beside_streams
from hodyn_ros.ros.triggers import serve_triggers

_WAIT = 1.0  # [s] that a state of links waits for that of motors


class ObserverNode(StreamLifecycle):
    """Publishes what an `ObservationPipeline` makes of measurements."""

    def __init__(self) -> None:
        super().__init__("observer_node", SETTINGS, STRUCTURAL)
        self._pipeline: ObservationPipeline | None = None
        self._pairs = Pairs((), _WAIT)
        self._unloaded = Rejections(self.get_logger().warning, PAYLOAD, "goes on without a sample")
        self._published, self._contacts = Stream(), 0
        self._last: ExternalEffortsMessage | None = None
        self._efforts_publisher = self.events.publisher(ExternalEffortsMessage, OUT, stream_qos())
        self._contacts_publisher = self.events.publisher(ContactEvent, CONTACTS, stream_qos())
        self._payload_publisher = self.events.publisher(PayloadMessage, PAYLOAD, stream_qos())
        self._settings_publisher = self.create_publisher(String, "~/observer_settings", latched_qos())
        for topic, kind in TYPES.items():
            self.listen(kind, topic, partial(self._take, topic))
        self._served = serve_triggers(
            self, restart=self._restart, restart_payload=self._restart_payload, payload=self._describe_payload
        )
        self._diagnostics = self.report_by(self._report)
        self.autostart()

    # states

    def load(self) -> None:
        """Load the robot and compile what observes it."""
        path = robot_file(self)
        robot = Robot.load(path)
        config = ObservationConfig(
            tuple(value(self, "measured")),
            config_of(self, FeedforwardConfig),
            config_of(self, ObserverConfig),
            config_of(self, PayloadConfig, prefix=USUAL_LOAD),
            value(self, "payload_rate"),
            value(self, "payload_body"),
            value(self, "stamp_tolerance"),
        )
        stamps = StampFilter(value(self, "new_clock_after"))
        self._pipeline = pipeline = ObservationPipeline(RobotFiles.from_file(path), robot, config, stamps)
        self._pairs = Pairs(pipeline.readers, _WAIT)
        self._diagnostics.hardware_id = robot.name
        rows = pipeline.observer.rows
        self.get_logger().info(
            f"robot {robot.name!r}, {len(robot.driven_joints)} joints, by {', '.join(rows)}"
        )

    def unload(self) -> None:
        """Forget the robot; another can be configured."""
        self._pipeline = None

    def begin(self) -> None:
        """Observe from now on, whatever the stamps before."""
        if self._pipeline is not None:
            self._pairs.forget()
            self._pipeline.begin()

    # parameters and services

    def change(self, values: Mapping[str, Any]) -> None:
        """Observe by a configuration with other values from now on."""
        pipeline = self._pipeline
        if pipeline is not None and values.keys() & LIVE:
            config = config_of(self, ObserverConfig, values)
            beside_streams(self, partial(pipeline.compile, config))
            pipeline.configure(config)
            self._tell_settings(pipeline)

    def _restart(self) -> str:
        """Forget what was learnt."""
        pipeline = self._pipeline
        if pipeline is None:
            raise InputError("no robot is configured")
        return self._anew(pipeline, pipeline.restart, "observer")

    def _restart_payload(self) -> str:
        """Forget the load."""
        pipeline = self._pipeline
        if pipeline is None or pipeline.estimator is None:
            raise InputError("parameter 'payload_rate' is 0")
        return self._anew(pipeline, pipeline.estimator.restart, "payload")

    def _anew(self, pipeline: ObservationPipeline, restart: Callable[[], None], what: str) -> str:
        """Restart, and say after which sample."""
        restart()
        self._tell_settings(pipeline, what)
        return "begun anew"

    def _tell_settings(self, pipeline: ObservationPipeline, restarted: str = "") -> None:
        """Publish what all that follows is computed with; before the first sample there is nothing to say."""
        if pipeline.begun is not None:
            self._settings_publisher.publish(String(data=pipeline.settings(restarted)))

    def _describe_payload(self) -> str:
        """Return which parameters make the load one of dynamics_node, once the motion has shown its mass."""
        if self._pipeline is None or self._pipeline.estimator is None:
            raise InputError("no load is estimated; set the parameter 'payload_rate'")
        estimate = self._pipeline.estimator.estimate
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
        pipeline = self._pipeline
        if pipeline is None or not self.running or topic not in pipeline.readers:
            return
        with self.rejections[topic]:
            for _, measured in self._pairs.take(topic, time.monotonic_ns(), data, pipeline):
                self._observe(pipeline, measured, self.rejections[topic])

    def _observe(self, pipeline: ObservationPipeline, measured: Measured, rejections: Rejections) -> None:
        """Publish what follows from a sample."""
        first, said = pipeline.begun, None
        # a spring beyond its law, loops that do not close, numbers too large
        with rejections.counting(HodynError, Reason.UNREACHABLE):
            said = pipeline.take(measured)
        if said is None:
            return
        if pipeline.begun != first:
            self._tell_settings(pipeline, "all")
        if said.unloaded is not None:
            self._unloaded.add(MessageRejected(Reason.UNREACHABLE, str(said.unloaded)))
        if said.payload is not None:
            Publisher.publish(self._payload_publisher, said.payload)
        self._last = said.efforts
        if said.efforts is None:
            return
        Publisher.publish(self._efforts_publisher, said.efforts)  # past what asks whether it is active: it is
        self._published.tick()
        if said.contact is not None:
            if said.contact.begins:
                self._contacts += 1
                joints = ", ".join(said.contact.joint_names)
                self.get_logger().info(f"contact: external effort on {joints}")
            Publisher.publish(self._contacts_publisher, said.contact)

    # diagnostics

    @property
    def troubles(self) -> int:
        """How much was wrong with samples so far."""
        pipeline, counted = self._pipeline, self.rejected + self.events.total + self._pairs.alone
        counted += self._unloaded.total
        return counted + (0 if pipeline is None else pipeline.observer.restarts + pipeline.screen.saturated)

    def _report(self) -> Report:
        pipeline = self._pipeline
        observer = pipeline.observer if pipeline else None
        contact = pipeline is not None and pipeline.contact
        topics = " and ".join(pipeline.readers if pipeline else ())
        values: dict[str, object] = {
            "samples": self._published.count,
            "sample rate [1/s]": self._published.rate(),
            "age of the last sample [s]": self._published.age(),
            "contacts": self._contacts,
            "in contact": contact,
            "largest ratio": self._last.largest_ratio if self._last else "",
            "begun anew": observer.restarts if observer else "",
            "states without a partner": self._pairs.alone,
            "commands beyond what drives give": pipeline.screen.saturated if pipeline else "",
            "samples without a load": self._unloaded.total,
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
            return Report(
                WARN,
                "samples were rejected, lost, without a partner, too far apart, of no use for the load or "
                "beyond what drives give",
                values,
            )
        if not self._published.count:
            return Report(WARN, f"waiting for samples on {topics}", values)
        if self._published.age() > 1.0:
            return Report(WARN, f"no sample on {topics} for more than a second", values)
        return Report(OK, "in contact" if contact else "observing", values)


main = partial(run, ObserverNode)

if __name__ == "__main__":
    sys.exit(main())
