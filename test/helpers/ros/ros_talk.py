"""A node inside a test: publishes, hears, calls services, and waits for what should come."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import Any, TypeVar

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.srv import ListParameters
from rclpy.context import Context
from rclpy.event_handler import EventHandler
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from ros_processes import TIMEOUT, RosProcess, start_node

from hodyn_ros.ros.diagnostics import OK
from hodyn_ros.ros.streams.qos import stream_qos
from hodyn_ros.ros.streams.wait_sets import SUPPORTED, Stream, StreamWaitSet

_T = TypeVar("_T")
_STAYING: list[Node] = []


@cache
def _shared_context() -> Context:
    """Return one for all nodes of a test run, with a node that stays.

    The last node of a context takes its DDS participant along; where other processes end at that moment, Fast
    DDS may crash, and the test run with it.
    """
    context = Context()
    rclpy.init(context=context)
    _STAYING.append(rclpy.create_node("test_run", context=context, enable_rosout=False))
    return context


LOST_AFTER = 15.0  # s
LOOK = 0.02  # s
LOOK_AT_ALL = 0.1  # s: at services and events, which costs 0.4 ms of processor time
DEPTH = 50_000  # of what is heard: a test that a busy machine holds up loses nothing of a stream


class Talk:
    """Talks with the nodes of a namespace; use it in a `with` block."""

    node_name = "talk"

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._context = _shared_context()
        self.node = rclpy.create_node(self.node_name, namespace=namespace, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._statuses: list[DiagnosticStatus] = []
        self._kept: list[Any] = []
        self._streams: list[Stream] = []
        self._looks_at_all = 0.0  # s, when it is time to
        self._open()

    def _open(self) -> None:
        """Open topics."""
        self._hear(DiagnosticArray, "/diagnostics", self._take_diagnostics)

    def _hear(self, kind: Any, topic: str, callback: Callable[[Any], object]) -> Any:
        """Call back with the messages of a topic; return the subscription."""
        self._kept.append(self.node.create_subscription(kind, topic, callback, stream_qos(DEPTH)))
        return self._kept[-1]

    def _take_diagnostics(self, msg: DiagnosticArray) -> None:
        self._statuses.extend(msg.status)

    def hear(self, kind: Any, topic: str) -> list[Any]:
        """Return a list that fills with the messages of a topic, from the first that comes."""
        heard: list[Any] = []
        self._hear(kind, topic, heard.append)
        self.wait_until(lambda: heard, f"the first message on {topic}")
        return heard

    def hear_nothing_yet(self, kind: Any, topic: str) -> list[Any]:
        """Return a list that fills with the messages of a topic whose publisher may be silent so far."""
        heard: list[Any] = []
        subscription = self._hear(kind, topic, heard.append)
        self.wait_until(lambda: subscription.get_publisher_count() > 0, f"a publisher of {topic}")
        return heard

    def publisher(self, kind: Any, topic: str) -> Any:
        """Return a publisher that a subscription has been matched with."""
        publisher = self.node.create_publisher(kind, topic, stream_qos())
        self.wait_until(lambda: publisher.get_subscription_count() > 0, f"a subscription of {topic}")
        return publisher

    def ask(self, publisher: Any, msg: Any, heard: list[Any]) -> Any:
        """Publish until a first answer is heard; return it, the only one that stays in the list.

        Once a second: who answers gets to know in its own time who listens, and what it publishes before
        reaches nobody.
        """
        due = time.monotonic()

        def answer() -> list[Any]:
            nonlocal due
            if not heard and time.monotonic() >= due:
                publisher.publish(msg)
                due += 1.0
            return heard

        self.wait_until(answer, f"an answer to what {publisher.topic_name} said")
        self.hear_out(heard)
        del heard[1:]
        return heard[0]

    def call(self, kind: Any, name: str, request: Any, lost_after: float = LOST_AFTER) -> Any:
        """Call a service and return its response.

        A response is lost where the service has not heard of its client after 0.1 s, although the client sees
        the service ("failed to send response" of rmw_fastrtps; a busy machine). It is asked for again then.
        """
        client = self.node.create_client(kind, name)
        self.wait_until(client.service_is_ready, f"the service {name}")
        calls = [client.call_async(request)]
        due = time.monotonic() + lost_after

        def response() -> Any:
            nonlocal due
            if time.monotonic() >= due:
                calls.append(client.call_async(request))
                due += lost_after
            return next((call for call in calls if call.done()), None)

        answered = self.wait_until(response, f"the response of {name}")
        self.node.destroy_client(client)
        return answered.result()

    def serve(self, name: str) -> None:
        """Wait until a node has taken all that was published to its streams, and done what follows from it.

        It serves streams before calls, and all that came before the second of two calls before its answer.
        """
        for _ in range(2):
            self.call(ListParameters, f"{name}/list_parameters", ListParameters.Request(), lost_after=1.0)

    def status(
        self, name: str, condition: Callable[[DiagnosticStatus, dict[str, str]], bool]
    ) -> dict[str, str]:
        """Return the values of the next diagnostics of a node that meet a condition."""
        seen = len(self._statuses)

        def look() -> dict[str, str] | None:
            for status in self._statuses[seen:]:
                values = {item.key: item.value for item in status.values}
                if status.name == f"{self._namespace}/{name}" and condition(status, values):
                    return values
            return None

        values: dict[str, str] = self.wait_until(look, f"diagnostics of {name}")
        return values

    def settled(self, name: str, key: str) -> int:
        """Return a count in the diagnostics of a node once it does not grow any more."""
        before, now = -1, 0
        while now != before:
            before, now = now, int(self.status(name, lambda status, values: True)[key])
        return now

    def was_sound(self, name: str) -> bool:
        """Return whether a node has ever reported that all is well."""
        full = f"{self._namespace}/{name}"
        return any(status.name == full and status.level == OK for status in self._statuses)

    def wait_until(self, condition: Callable[[], Any], what: str, look: float = LOOK) -> Any:
        """Serve callbacks until a condition holds, looked at after each and every `look` [s]; return it."""
        end = time.monotonic() + TIMEOUT
        while not (result := condition()):
            if time.monotonic() > end:
                raise TimeoutError(f"{what} did not come within {TIMEOUT:g} s")
            self._serve(look)
        return result

    def _serve_all(self, look: float) -> None:
        self._executor.spin_once(timeout_sec=look)
        self._looks_at_all = time.monotonic() + LOOK_AT_ALL

    def _serve(self, look: float) -> None:
        """Serve messages as they come, and all else now and then, but where a client waits for an answer."""
        if not SUPPORTED or self._asks():
            self._serve_all(look)
            return
        if time.monotonic() >= self._looks_at_all:
            self._serve_all(0.0)
        entities = [*self.node.subscriptions, *self.node.timers]
        if [each.entity for each in self._streams] != entities:
            self._streams = [Stream(each) for each in entities]
        with StreamWaitSet(self._streams, self._context) as waiting:
            waiting.serve(look)

    def _asks(self) -> bool:
        """Whether there is a client of a service or of an action."""
        return any(True for _ in self.node.clients) or any(
            not isinstance(each, EventHandler) for each in self.node.waitables
        )

    def hear_out(self, heard: list[Any]) -> None:
        """Serve callbacks until no more of what has been sent comes into a list."""
        before = -1
        while len(heard) != before:
            before = len(heard)
            self.pause(0.1)

    def pause(self, seconds: float) -> None:
        """Serve callbacks while real time passes."""
        end = time.monotonic() + seconds
        self.wait_until(lambda: time.monotonic() > end, "a moment", min(LOOK, seconds))

    def wait_for_line(self, process: RosProcess, text: str, send: Callable[[], Any] = lambda: None) -> str:
        """Serve callbacks, and send again and again, until a process has written a line with a text."""

        def look() -> str | None:
            send()
            return next((line for line in process.lines if text in line), None)

        line: str = self.wait_until(look, f"{text!r} from {process.name}")
        return line

    def __enter__(self: _T) -> _T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(timeout_sec=5.0)
        self.node.destroy_node()


@contextmanager
def talking(
    module: str, parameters: Mapping[str, object], namespace: str
) -> Iterator[tuple[RosProcess, Talk]]:
    """Start a node and talk with it; at the end of the block it has to end cleanly when told to."""
    with start_node(module, parameters, namespace) as node, Talk(namespace) as talk:
        yield node, talk
        node.end()
