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
from collections.abc import Sequence
from functools import partial
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from std_msgs.msg import String
from std_srvs.srv import Trigger

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.payload import NO_LOAD, Payload
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque, PayloadEstimate
from hodyn_ros.nodes.answer_statistics import AnswerStatistics
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.ros.conversions.layout import deserialised
from hodyn_ros.ros.diagnostics import OK, WARN, Diagnostics, Report
from hodyn_ros.ros.load_source import LoadSource
from hodyn_ros.ros.parameters.dynamics_settings import LIVE, SETTINGS, STRUCTURAL, feedforward_config
from hodyn_ros.ros.parameters.parameters import declare, value
from hodyn_ros.ros.process import run
from hodyn_ros.ros.robot_description import DescriptionSubscriber
from hodyn_ros.ros.streams.one_publisher import OnePublisher, motion_continues, publishers_of
from hodyn_ros.ros.streams.qos import latched_qos, overridable, stream_qos
from hodyn_ros.ros.streams.qos_events import QosEvents
from hodyn_ros.ros.streams.rejections import MessageRejected, Rejections
from hodyn_ros.ros.streams.stamp_filter import StampFilter
from hodyn_ros.ros.streams.stream_executor import StreamGroup, beside_streams
from hodyn_ros.ros.wrench_sources import WrenchSources, check_topics

IN, OUT, LOAD = "desired_motion", "feedforward_torque", "payload"


class DynamicsNode(LifecycleNode):
    """Answers desired motions with feedforward efforts, which a `FeedforwardPipeline` computes."""

    def __init__(self, namespace: str | None = None) -> None:
        super().__init__("dynamics_node", namespace=namespace)
        self._pipeline: FeedforwardPipeline | None = None
        self._next: FeedforwardPipeline | None = None
        # rclpy asks the last one first, and `declare` adds one that looks at types
        self.add_on_set_parameters_callback(self._check_parameters)
        declare(self, SETTINGS)
        self._answering = False
        self._starting = bool(value(self, "autostart"))  # until the first robot is configured
        self._by_itself = False  # whether the present transition is the node's own
        self._failure: Exception | None = None
        self._stamps = StampFilter(value(self, "new_clock_after"))
        self._one_publisher = OnePublisher(
            partial(publishers_of, self, IN), _continues, value(self, "new_publisher_after")
        )
        self._rejections = Rejections(self.get_logger().warning, IN)
        self._statistics = AnswerStatistics()
        self._troubles_reported = 0
        self._events = QosEvents(self)
        self._wrenches = WrenchSources(self)
        self._description = DescriptionSubscriber(self, self._take_description)
        self._publisher = self.create_lifecycle_publisher(
            FeedforwardTorque,
            OUT,
            stream_qos(),
            event_callbacks=self._events.of_publisher(OUT),
            qos_overriding_options=overridable(publisher=True),
        )
        self._events.watch(OUT, self._publisher)
        self._settings_publisher = self.create_publisher(String, "~/settings", latched_qos())
        self._subscription = self.create_subscription(
            DesiredMotion,
            IN,
            self._take,
            stream_qos(),
            raw=True,  # bytes in and bytes out: messages of Python would take most of the time
            callback_group=StreamGroup(),
            event_callbacks=self._events.of_subscription(IN),
            qos_overriding_options=overridable(),
        )
        self._events.watch(IN, self._subscription)
        self._load_source = LoadSource(LOAD)
        self._kept = [
            self.create_subscription(PayloadEstimate, LOAD, self._load_source.take, stream_qos()),
            self.create_service(Trigger, "~/take_payload", self._on_take_payload),
            self.create_service(Trigger, "~/drop_payload", self._on_drop_payload),
        ]
        self._diagnostics = Diagnostics(self, self._report)
        self.add_post_set_parameters_callback(self._use_parameters)
        named = bool(value(self, "robot_config"))
        self._description.listen(not named)
        if self._starting and named and not self._start():
            raise self._failure or InputError("the node could not be configured")
        if not named:
            self._description.say_waiting()

    # lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the robot and compute once, so that the first answer is as fast as all others."""
        self._failure = None
        try:
            self._use(self._load())
        except Exception as error:  # rclpy would drop whatever leaves this method, without a word
            self._forget()
            self._failure = error
            if not self._by_itself:
                self.get_logger().error(f"cannot configure: {error}")
            return TransitionCallbackReturn.FAILURE
        self._starting = False
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer from now on, whatever the stamps and the publisher before."""
        self._stamps.forget()
        self._one_publisher.forget()
        self._answering = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering at once; samples that come are dropped."""
        self._answering = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the robot; another can be configured."""
        self._forget()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering for good."""
        self._answering = False
        return super().on_shutdown(state)

    def _forget(self) -> None:
        self._pipeline = None
        self._wrenches.forget()

    def _start(self) -> bool:
        """Configure and activate; say whether that has succeeded."""
        self._by_itself = True
        configured = self.trigger_configure() == TransitionCallbackReturn.SUCCESS
        self._by_itself = False
        if configured:
            self.trigger_activate()
        return configured

    # the robot

    def _load(self) -> FeedforwardPipeline:
        name = value(self, "robot_config")
        if name:
            path = share.find("config", name)
            files, robot = RobotFiles.from_file(path), Robot.load(path)
        else:
            files = self._description.robot_files(value(self, "floating_base"))
            robot = files.robot()
        return FeedforwardPipeline(files, robot, self._config({}), self._stamps)

    def _config(self, changed: dict[str, Any]) -> FeedforwardConfig:
        config = feedforward_config(self, changed)
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
            if self._starting and not self._start():
                logger.error(f"cannot configure: {self._failure}; waiting for the next robot description")
        elif text != self._pipeline.files.text:
            logger.warning(
                f"another robot description has come on {topic}, but the node is configured; it keeps "
                "the one it has: clean it up and configure it to load the new one"
            )

    # parameters

    def _check_parameters(self, parameters: Sequence[Parameter[Any]]) -> SetParametersResult:
        """Build what the new values ask for, before any of them is set: all of them hold, or none."""
        self._next = None
        if self._pipeline is None:
            return SetParametersResult(successful=True)
        changed = {parameter.name: parameter.value for parameter in parameters}
        fixed = sorted(changed.keys() & STRUCTURAL)
        if fixed:
            reason = f"{fixed[0]} is fixed while the node is configured; clean the node up first"
            return SetParametersResult(successful=False, reason=reason)
        if changed.keys() & LIVE:
            try:
                change = partial(self._pipeline.changed, self._config(changed))
                self._next = beside_streams(self, change)  # compiling takes the time of many samples
            except HodynError as error:
                return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _use_parameters(self, parameters: Sequence[Parameter[Any]]) -> None:
        if self._next is not None and self._pipeline is not None:
            self._next.take_over(self._pipeline)
            self._use(self._next)
            self._next = None
            gc.collect()  # machine code of loops lies in cycles, of which there are too few to be looked for
        elif "robot_config" in (parameter.name for parameter in parameters):
            self._description.listen(not value(self, "robot_config"))

    # loads

    def _on_take_payload(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Carry what observer_node says; nothing changes where that is not known well."""
        try:
            load = self._load_source.load(value(self, "payload_limit"))
            self._change_load(load)
        except HodynError as error:
            response.message = str(error)
            return response
        centre = ", ".join(f"{x:.3f}" for x in load.centre)
        response.success = True
        response.message = f"{load.mass:.3f} kg at ({centre}) m of {load.body}, {self._fading}"
        self.get_logger().info(f"takes a load: {response.message}")
        return response

    def _on_drop_payload(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Put down what was taken."""
        try:
            self._change_load(NO_LOAD)
        except HodynError as error:
            response.message = str(error)
            return response
        response.success, response.message = True, f"nothing is carried, {self._fading}"
        self.get_logger().info("puts its load down")
        return response

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
        if self._pipeline is None or not self._answering:
            return
        try:
            self._events.lost(IN, self._one_publisher.check(data, info))
            answer = self._pipeline.answer_serialised(data, self._wrenches.now())
        except MessageRejected as rejected:
            self._rejections.add(rejected)
            return
        Publisher.publish(self._publisher, answer.data)  # past what asks whether it is active: it is
        self._statistics.add(answer.status, answer.computation_time, info["received_timestamp"])

    # diagnostics

    def _report(self) -> Report:
        self._events.look()
        model = self._pipeline and self._pipeline.model
        values: dict[str, object] = {
            "engine": model.engine if model else "",
            "order": model.order if model else "",
            "clamp": model.clamp if model else "",
            "load taken": f"{self._pipeline.load.mass:.3f} kg" if self._pipeline else "",
            **self._statistics.as_values(),
            "rejected": self._rejections.total,
            **self._rejections.as_values(),
            **self._wrenches.as_values(),
            **self._events.as_values(),
        }
        if model is None:
            if self._failure is not None:
                return Report(WARN, f"cannot configure: {self._failure}", values)
            if value(self, "robot_config") or self._description.text is not None:
                return Report(OK, "no robot is configured", values)
            self._description.say_waiting()
            return Report(WARN, f"waiting for a robot description on {self._description.topic}", values)
        if not self._answering:
            return Report(OK, "not active", values)
        troubles = self._rejections.total + self._statistics.violations + self._events.total
        new, self._troubles_reported = troubles - self._troubles_reported, troubles
        if new:
            return Report(WARN, "samples were rejected or late, or efforts are beyond limits", values)
        if self._wrenches.missing():
            return Report(WARN, f"no wrench is measured on {', '.join(self._wrenches.missing())}", values)
        answered = self._statistics.answers.count
        return Report(OK, "answering" if answered else "waiting for the first desired motion", values)


def _continues(before: bytes, after: bytes) -> bool:
    return motion_continues(*(deserialised(data, DesiredMotion) for data in (before, after)))


def main(args: Sequence[str] | None = None) -> int:
    """Run dynamics_node as a process."""
    return run(DynamicsNode, args)


if __name__ == "__main__":
    sys.exit(main())
