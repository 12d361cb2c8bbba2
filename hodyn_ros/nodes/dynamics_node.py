"""dynamics_node: a desired motion in, the feedforward efforts with their time derivatives out.

A lifecycle node: *configure* loads the robot and warms the dynamics, *activate* answers, *deactivate* stops
answering, *cleanup* forgets the robot. With the parameter `autostart` (the default) it configures and
activates itself. `docs/nodes.md` describes all of it.

Topics: `desired_motion` (DesiredMotion) in; `feedforward_torque` (FeedforwardTorque) out, one for each
accepted sample and with its stamp; `robot_description` (std_msgs/String, latched) in, where the parameter
`robot_config` is empty; `external_wrench/<body>` (geometry_msgs/WrenchStamped) in, for each of the parameter
`wrench_bodies`; `payload` (PayloadEstimate) in, which changes nothing by itself; `~/settings`
(std_msgs/String, latched) out, all that the answers follow from, as JSON; `/diagnostics` at 1 Hz. Services
(std_srvs/Trigger): `~/take_payload` carries what `payload` says from then on, `~/drop_payload` puts it down;
both are faded over `payload_fade`.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from std_msgs.msg import String

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.payload import NO_LOAD, Payload
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque, PayloadEstimate
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.ros.diagnostics import OK, WARN, Durations, Report, Stream
from hodyn_ros.ros.guarded_loads import LoadSource
from hodyn_ros.ros.parameters.dynamics_settings import LIVE, SETTINGS, STRUCTURAL
from hodyn_ros.ros.parameters.parameters import config_of, value
from hodyn_ros.ros.process import run
from hodyn_ros.ros.robot_description import DescriptionSubscriber
from hodyn_ros.ros.streams.lifecycle import StreamLifecycle
from hodyn_ros.ros.streams.one_publisher import OnePublisher, bytes_continue, publishers_of
from hodyn_ros.ros.streams.qos import latched_qos, stream_qos
from hodyn_ros.ros.streams.rejections import MessageRejected
from hodyn_ros.ros.streams.stamp_filter import StampFilter
from hodyn_ros.ros.streams.stream_executor import beside_streams
from hodyn_ros.ros.triggers import serve_triggers
from hodyn_ros.ros.wrench_sources import WrenchSources, check_topics

IN, OUT, LOAD = "desired_motion", "feedforward_torque", "payload"


class DynamicsNode(StreamLifecycle):
    """Answers desired motions with feedforward efforts, which a `FeedforwardPipeline` computes."""

    def __init__(self, namespace: str | None = None) -> None:
        super().__init__("dynamics_node", SETTINGS, STRUCTURAL, namespace)
        self._pipeline: FeedforwardPipeline | None = None
        self._next: FeedforwardPipeline | None = None
        self._starting = bool(value(self, "autostart"))  # until the first robot is configured
        self._stamps = StampFilter(value(self, "new_clock_after"))
        self._one_publisher = OnePublisher(
            partial(publishers_of, self, IN), bytes_continue, value(self, "new_publisher_after")
        )
        self._statistics = AnswerStatistics()
        self._wrenches = WrenchSources(self)
        self._description = DescriptionSubscriber(self, self._take_description)
        self._publisher = self.events.publisher(FeedforwardTorque, OUT, stream_qos())
        self._settings_publisher = self.create_publisher(String, "~/settings", latched_qos())
        self.listen(DesiredMotion, IN, self._take)
        self.events.lost(IN, 0)  # none so far, as diagnostics say from the start
        self._load_source = LoadSource(LOAD)
        self._loads = self.create_subscription(PayloadEstimate, LOAD, self._load_source.take, stream_qos())
        self._served = serve_triggers(self, take_payload=self._take_payload, drop_payload=self._drop_payload)
        self._diagnostics = self.report_by(self._report)
        self.add_post_set_parameters_callback(self._use_parameters)
        named = bool(value(self, "robot_config"))
        self._description.listen(not named)
        if self._starting and named and not self.start_by_itself():
            raise self.failure or InputError("the node could not be configured")
        if not named:
            self._description.say_waiting()

    # states

    def load(self) -> None:
        """Load the robot and compute once, so that the first answer is as fast as all others."""
        self._use(self._loaded())
        self._starting = False

    def unload(self) -> None:
        """Forget the robot; another can be configured."""
        self._pipeline = None
        self._wrenches.forget()

    def begin(self) -> None:
        """Answer from now on, whatever the stamps and the publisher before."""
        self._stamps.forget()
        self._one_publisher.forget()

    # the robot

    def _loaded(self) -> FeedforwardPipeline:
        name = value(self, "robot_config")
        if name:
            path = share.find("config", name)
            files, robot = RobotFiles.from_file(path), Robot.load(path)
        else:
            files = self._description.robot_files(value(self, "floating_base"))
            robot = files.robot()
        return FeedforwardPipeline(files, robot, self._config({}), self._stamps)

    def _config(self, changed: Mapping[str, Any]) -> FeedforwardConfig:
        config = config_of(self, FeedforwardConfig, changed)
        check_topics(config.wrench_bodies)
        return config

    def _use(self, pipeline: FeedforwardPipeline) -> None:
        self._pipeline, model = pipeline, pipeline.model
        cutoff, timeout, limit = (value(self, f"wrench_{name}") for name in ("cutoff", "timeout", "limit"))
        self._wrenches.use(pipeline.robot, model, cutoff, timeout, limit)
        self._diagnostics.hardware_id = model.name
        self._settings_publisher.publish(String(data=pipeline.settings()))
        drives = "with its drives" if model.has_drives else "without drives"
        self.get_logger().info(
            f"robot {model.name!r}, {len(model.joint_names)} joints, {drives}; efforts to order {model.order}"
        )

    def _take_description(self, text: str) -> None:
        topic, logger = self._description.topic, self.get_logger()
        if self._pipeline is None:
            logger.info(f"a robot description has come on {topic}")
            if self._starting and not self.start_by_itself():
                logger.error(f"cannot configure: {self.failure}; waiting for the next robot description")
        elif self._outdated:
            logger.warning(
                f"another robot description has come on {topic}, but the node is configured; it keeps "
                "the one it has: clean it up and configure it to load the new one"
            )

    @property
    def _outdated(self) -> bool:
        """Whether another robot has been described than the one that is computed."""
        if self._pipeline is None or self._description.text is None:
            return False
        return self._description.text != self._pipeline.files.text

    # parameters

    def change(self, values: Mapping[str, Any]) -> None:
        """Build what the new values ask for, which is used once they are set."""
        self._next = None
        if self._pipeline is not None and values.keys() & LIVE:
            change = partial(self._pipeline.changed, self._config(values))
            self._next = beside_streams(self, change)  # compiling takes the time of many samples

    def _use_parameters(self, parameters: Sequence[Parameter[Any]]) -> None:
        if self._next is not None and self._pipeline is not None:
            self._next.take_over(self._pipeline)
            self._use(self._next)
            self._next = None
            gc.collect()  # machine code of loops lies in cycles, of which there are too few to be looked for
        elif "robot_config" in (parameter.name for parameter in parameters):
            self._description.listen(not value(self, "robot_config"))

    # loads

    def _take_payload(self) -> str:
        """Carry what observer_node says; nothing changes where that is not known well."""
        load = self._load_source.load(value(self, "payload_limit"))
        self._change_load(load)
        centre = ", ".join(f"{x:.3f}" for x in load.centre)
        answer = f"{load.mass:.3f} kg at ({centre}) m of {load.body}, {self._fading}"
        self.get_logger().info(f"takes a load: {answer}")
        return answer

    def _drop_payload(self) -> str:
        """Put down what was taken."""
        self._change_load(NO_LOAD)
        answer = f"nothing is carried, {self._fading}"
        self.get_logger().info("puts its load down")
        return answer

    @property
    def _fading(self) -> str:
        return f"faded over {value(self, 'payload_fade'):g} s from the next sample on"

    def _change_load(self, load: Payload) -> None:
        if self._pipeline is None:
            raise InputError("no robot is configured")
        after = beside_streams(self, partial(self._pipeline.taking, load, value(self, "payload_fade")))
        after.take_over(self._pipeline)
        self._use(after)
        gc.collect()

    # samples

    def _take(self, data: bytes, info: dict[str, Any]) -> None:
        if self._pipeline is None or not self.running:
            return
        try:
            if lost := self._one_publisher.check(data, info):
                self.events.lost(IN, lost)
            answer = self._pipeline.answer_serialised(data, self._wrenches.now())
        except MessageRejected as rejected:
            self.rejections[IN].add(rejected)
            return
        Publisher.publish(self._publisher, answer.data)  # past what asks whether it is active: it is
        self._statistics.add(answer.status, answer.computation_time, info["received_timestamp"])

    # diagnostics

    @property
    def troubles(self) -> int:
        """How much was wrong with samples so far."""
        return self.rejected + self._statistics.violations + self.events.total

    def _report(self) -> Report:
        model = self._pipeline and self._pipeline.model
        values: dict[str, object] = {
            "engine": model.engine if model else "",
            "order": model.order if model else "",
            "clamp": model.clamp if model else "",
            "load taken": f"{self._pipeline.load.mass:.3f} kg" if self._pipeline else "",
            **self._statistics.as_values(),
            "rejected": self.rejected,
            **self.rejections[IN].as_values(),
            **self._wrenches.as_values(),
        }
        waits = not value(self, "robot_config") and self._description.text is None
        if model is None and self.failure is None and waits:
            self._description.say_waiting()
            return Report(WARN, f"waiting for a robot description on {self._description.topic}", values)
        if idle := self.idle(values):
            return idle
        if self.new_troubles():
            return Report(WARN, "samples were rejected or late, or efforts are beyond limits", values)
        if self._outdated:
            topic = self._description.topic
            return Report(
                WARN, f"answering for a robot that {topic} no longer describes: load it anew", values
            )
        if self._wrenches.missing():
            return Report(WARN, f"no wrench is measured on {', '.join(self._wrenches.missing())}", values)
        answered = self._statistics.answers.count
        return Report(OK, "answering" if answered else "waiting for the first desired motion", values)


class AnswerStatistics:
    """Counts answers, limit violations and latencies."""

    def __init__(self) -> None:
        self.answers = Stream()
        self._latencies = Durations()
        self._limits = dict.fromkeys((bit for bit in Status if bit), 0)

    def add(self, status: int, computation_time: float, received_at: int) -> None:
        """Count an answer that has just been published.

        `computation_time` [s]; `received_at` [ns] by the system's clock: when its desired motion came, 0
        where the middleware does not say.
        """
        self.answers.tick(computation_time)
        if received_at:
            self._latencies.add(1e-9 * (time.time_ns() - received_at))
        if status:
            for bit in self._limits:
                if status & bit:
                    self._limits[bit] += 1

    @property
    def violations(self) -> int:
        """Number of limits that answers were beyond."""
        return sum(self._limits.values())

    def as_values(self) -> dict[str, Any]:
        """Return keys and values of a diagnostic status; rates count from the last call."""
        return {
            "answered": self.answers.count,
            "rate [1/s]": self.answers.rate(),
            "age of the last answer [s]": self.answers.age(),
            **self._latencies.as_values("latency", "us", [50, 99, 100]),
            **self.answers.as_values("computation time", "us"),
            **{str(bit.name).lower().replace("_", " "): count for bit, count in self._limits.items()},
        }


main = partial(run, DynamicsNode)

if __name__ == "__main__":
    sys.exit(main())
