"""The other side of dynamics_node, inside the test: sends motions, hears answers, asks for services."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Parameter, ParameterValue, SetParametersResult
from rcl_interfaces.srv import DescribeParameters, SetParametersAtomically
from rclpy.duration import Duration
from rclpy.parameter import Parameter as RclpyParameter
from ros_processes import TIMEOUT, RosProcess, start_node
from ros_talk import Talk

from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.messages import nanoseconds
from hodyn_ros.ros.streams.qos import stream_qos

_SIMULATED = 86_400_000_000_000  # [ns] from here: such a stamp is not one of real time


class Peer(Talk):
    """Talks with the dynamics_node of a namespace; use it in a `with` block."""

    node_name = "peer"

    def __init__(self, namespace: str) -> None:
        self.answers: list[FeedforwardTorque] = []
        self.statuses: list[DiagnosticStatus] = []
        self.stamped: list[int] = []  # [ns] when these were published, by the clock of the node
        self._asked = f"/{namespace}/dynamics_node"
        super().__init__(namespace)

    def _open(self) -> None:
        self._publisher = self.node.create_publisher(DesiredMotion, "desired_motion", stream_qos())
        self._hear(FeedforwardTorque, "feedforward_torque", self.answers.append)
        super()._open()

    def _take_diagnostics(self, msg: DiagnosticArray) -> None:
        mine = self._asked.lstrip("/")
        for status in msg.status:
            if status.name == mine:
                self.statuses.append(status)
                self.stamped.append(nanoseconds(msg.header.stamp))

    def serve(self, until: threading.Event) -> None:
        """Serve callbacks until an event is set; for a thread."""
        while not until.is_set():
            self._executor.spin_once(timeout_sec=0.01)

    def wait_for_topics(self, listeners: int = 1) -> None:
        """Wait until the topics of both sides are matched, and that of the motions with so many listeners.

        The node learns of the subscriptions here in their order, so once diagnostics arrive, answers will.
        """
        self.wait_until(
            lambda: self._publisher.get_subscription_count() >= listeners and self.statuses,
            "the match of the topics",
        )

    def send(self, msg: DesiredMotion) -> None:
        """Publish a desired motion."""
        self._publisher.publish(msg)

    def arrived(self) -> bool:
        """Wait until all that was sent has arrived; return whether it has."""
        return bool(self._publisher.wait_for_all_acked(Duration(seconds=TIMEOUT)))

    def send_bytes(self, data: bytes) -> None:
        """Publish bytes as they are, in the place of a serialised message."""
        self._publisher.publish(data)

    def answer_to(self, msg: DesiredMotion) -> FeedforwardTorque:
        """Publish a desired motion and return the answer with its stamp."""
        stamp = nanoseconds(msg.header.stamp)
        self.send(msg)

        def look() -> FeedforwardTorque | None:
            return next((a for a in self.answers if nanoseconds(a.header.stamp) == stamp), None)

        answer: FeedforwardTorque = self.wait_until(look, f"the answer to the stamp {stamp}")
        return answer

    def stamps(self) -> list[int]:
        """Return the stamps of all answers in the order of arrival."""
        return [nanoseconds(answer.header.stamp) for answer in self.answers]

    def diagnostics(self, condition: Callable[[dict[str, str]], bool] | None = None) -> dict[str, str]:
        """Return the values of the first status made from now on, or of the first that meets a condition."""
        seen, now = len(self.statuses), time.time_ns()

        def look() -> dict[str, str] | None:
            for status, stamp in zip(self.statuses[seen:], self.stamped[seen:]):
                if condition is None and now - _SIMULATED < stamp < now:
                    continue  # it was on its way
                values = {item.key: item.value for item in status.values}
                with suppress(KeyError):  # it was on its way before there was such a value
                    if condition is None or condition(values):
                        return values
            return None

        try:
            values: dict[str, str] = self.wait_until(look, "the diagnostics")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the last: {self.statuses[-1:]}") from None
        return values

    def call(self, kind: Any, name: str, request: Any) -> Any:
        """Call a service of the node."""
        return super().call(kind, f"{self._asked}/{name}", request)

    def transition(self, label: str) -> bool:
        """Ask for a lifecycle transition and return whether it succeeded."""
        request = ChangeState.Request(transition=Transition(label=label))
        return bool(self.call(ChangeState, "change_state", request).success)

    def state(self) -> str:
        """Return the lifecycle state."""
        return str(self.call(GetState, "get_state", GetState.Request()).current_state.label)

    def set_parameters(self, **values: object) -> SetParametersResult:
        """Set parameters, all or none."""
        parameters = [_parameter(name, value) for name, value in values.items()]
        request = SetParametersAtomically.Request(parameters=parameters)
        return self.call(SetParametersAtomically, "set_parameters_atomically", request).result

    def describe(self, *names: str) -> list[Any]:
        """Return the descriptors of parameters."""
        request = DescribeParameters.Request(names=list(names))
        return list(self.call(DescribeParameters, "describe_parameters", request).descriptors)


def _parameter(name: str, value: object) -> Parameter:
    found: ParameterValue = RclpyParameter(name, value=value).get_parameter_value()
    return Parameter(name=name, value=found)


@contextmanager
def asked(
    parameters: Mapping[str, object], namespace: str, ready: bool = True
) -> Iterator[tuple[RosProcess, Peer]]:
    """Start dynamics_node and its other side, `ready` to be answered; the node has to end cleanly."""
    with start_node("dynamics_node", parameters, namespace) as node, Peer(namespace) as peer:
        if ready:
            peer.wait_for_topics()
        yield node, peer
        node.end()


def node_and_peer(
    parameters: Mapping[str, object],
    namespace: str,
    scope: Literal["function", "module"] = "function",
    ready: bool = True,
) -> tuple[Any, Any, Any]:
    """Return fixtures, the second and third to be named `node` and `peer`: what `asked` yields."""

    @pytest.fixture(scope=scope)
    def both() -> Iterator[tuple[RosProcess, Peer]]:
        with asked(parameters, namespace, ready) as both:
            yield both

    @pytest.fixture(scope=scope)
    def node(both: tuple[RosProcess, Peer]) -> RosProcess:
        return both[0]

    @pytest.fixture(scope=scope)
    def peer(both: tuple[RosProcess, Peer]) -> Peer:
        return both[1]

    return both, node, peer
