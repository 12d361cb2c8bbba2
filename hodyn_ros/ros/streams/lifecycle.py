"""What the lifecycle nodes share: states, fixed parameters, topics, and their words in diagnostics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.ros.diagnostics import OK, WARN, Diagnostics, Report
from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare, value
from hodyn_ros.ros.streams.qos import stream_qos
from hodyn_ros.ros.streams.qos_events import QosEvents
from hodyn_ros.ros.streams.rejections import Rejections
from hodyn_ros.ros.streams.stream_executor import StreamGroup


class StreamLifecycle(LifecycleNode, ABC):
    """A lifecycle node that answers streams: *configure* loads, *activate* answers, *deactivate* does not.

    A subclass calls `report_by` at the end of its constructor. `configured` says that it holds what `load`
    has made, `running` that it is to answer; samples that come meanwhile are dropped.
    """

    def __init__(
        self,
        name: str,
        settings: Sequence[ParameterSpec],
        fixed: Collection[str] = (),
        namespace: str | None = None,
    ) -> None:
        """Declare parameters; those of `fixed` cannot change while the node is configured."""
        super().__init__(name, namespace=namespace)
        self.configured = self.running = False
        self.failure: Exception | None = None  # why it could not be configured
        self._by_itself = False  # whether the present transition is the node's own
        self.rejections: dict[str, Rejections] = {}  # by topic
        self.events = QosEvents(self)
        self.streams = StreamGroup()
        self._fixed, self._kept, self._troubles_reported = frozenset(fixed), list[Any](), 0
        # rclpy asks the last one first, and `declare` adds one that looks at types
        self.add_on_set_parameters_callback(self._check_parameters)
        declare(self, settings)

    # what a node adds

    @abstractmethod
    def load(self) -> None:
        """Load a robot and compute once, so that the first answer is as fast as all others."""

    @abstractmethod
    def unload(self) -> None:
        """Forget the robot; another can be configured."""

    @abstractmethod
    def begin(self) -> None:
        """Be ready to answer from now on, whatever came before."""

    @property
    @abstractmethod
    def troubles(self) -> int:
        """How much was wrong with samples so far."""

    def change(self, values: Mapping[str, Any]) -> None:
        """Make ready for new values of parameters, none of them fixed; HodynError where they cannot be."""

    # topics

    def listen(
        self,
        kind: Any,
        topic: str,
        callback: Callable[..., None],
        qos: QoSProfile | None = None,
        *,
        raw: bool = True,
    ) -> None:
        """Take the messages of a stream, and count those rejected, in `rejections`."""
        self.rejections[topic] = Rejections(self.get_logger().warning, topic)
        self._kept.append(
            self.events.subscription(kind, topic, callback, qos or stream_qos(), self.streams, raw=raw)
        )

    @property
    def rejected(self) -> int:
        """How many messages were rejected so far."""
        return sum(each.total for each in self.rejections.values())

    def rejected_by_topic(self) -> dict[str, int]:
        """Return the reasons for which messages were rejected, behind their topic, and how many."""
        return {
            f"{topic} {reason}": count
            for topic, rejections in self.rejections.items()
            for reason, count in rejections.as_values().items()
            if count
        }

    # states

    def autostart(self) -> None:
        """Configure and activate where the parameter of that name asks for it, or raise what hinders it."""
        if value(self, "autostart") and not self.start_by_itself():
            raise self.failure or InputError("the node could not be configured")

    def start_by_itself(self) -> bool:
        """Configure and activate, and return whether that has succeeded; who asks says why it has not."""
        self._by_itself = True
        configured = self.trigger_configure() == TransitionCallbackReturn.SUCCESS
        self._by_itself = False
        if configured:
            self.trigger_activate()
        return configured

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load."""
        self.failure = None
        try:
            self.load()
        except Exception as error:  # rclpy would drop whatever leaves this method, without a word
            self._forget()
            self.failure = error
            if not self._by_itself:
                self.get_logger().error(f"cannot configure: {error}")
            return TransitionCallbackReturn.FAILURE
        self.configured = True
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer from now on."""
        self.begin()
        self.running, self._troubles_reported = True, self.troubles
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering at once; the guard of whoever follows stops the robot."""
        self.running = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the robot; another can be configured."""
        self._forget()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering for good."""
        self.running = False
        return super().on_shutdown(state)

    def _forget(self) -> None:
        self.configured = False
        self.unload()

    # parameters

    def _check_parameters(self, parameters: Sequence[Parameter[Any]]) -> SetParametersResult:
        """Make ready for the new values before any of them is set: all of them hold, or none."""
        changed = {parameter.name: parameter.value for parameter in parameters}
        if not self.configured:
            return SetParametersResult(successful=True)
        if fixed := sorted(changed.keys() & self._fixed):
            reason = f"{fixed[0]} is fixed while the node is configured; clean the node up first"
            return SetParametersResult(successful=False, reason=reason)
        try:
            self.change(changed)
        except HodynError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    # diagnostics

    def report_by(self, report: Callable[[], Report]) -> Diagnostics:
        """Publish what `report` says on /diagnostics, with the events of the topics."""

        def whole() -> Report:
            self.events.look()
            level, message, values = report()
            return Report(level, message, {**values, **self.events.as_values()})

        return Diagnostics(self, whole)

    def idle(self, values: Mapping[str, object]) -> Report | None:
        """Return what there is to say of a node that does not run; None of one that does."""
        if self.failure is not None:
            return Report(WARN, f"cannot configure: {self.failure}", values)
        if not self.configured:
            return Report(OK, "no robot is configured", values)
        return None if self.running else Report(OK, "not active", values)

    def new_troubles(self) -> int:
        """Return how much went wrong since the last report."""
        new, self._troubles_reported = self.troubles - self._troubles_reported, self.troubles
        return new
