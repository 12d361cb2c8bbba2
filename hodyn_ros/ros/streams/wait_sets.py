"""What is taken of rclpy below its public interface, all of it in this file.

Tried on rclpy 9.1 (Kilted, from PyPI); 7.1 (Jazzy) has the same names. Where a version lacks one, `SUPPORTED`
is false, and StreamExecutor is an ordinary executor of rclpy.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from rclpy.context import Context
from rclpy.event_handler import EventHandler
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.timer import Timer

RCLError: type[Exception] = _rclpy.RCLError

_ADDED = [f"add_{kind}" for kind in ("client", "service", "subscription", "timer")]
_NEEDED = {
    "WaitSet": ["clear_entities", *_ADDED, "wait", "get_ready_entities", "is_ready"],
    "Subscription": ["pointer", "take_message"],
    "Timer": ["call_timer", "is_timer_ready"],
}
SUPPORTED = all(
    hasattr(getattr(_rclpy, kind, None), name) for kind, names in _NEEDED.items() for name in names
)
_KINDS: Sequence[Any] = ("subscription", "timer", "client", "service")


class Stream:
    """A subscription or timer, with what is worth finding out once."""

    def __init__(self, entity: Subscription[Any] | Timer) -> None:
        self.entity = entity
        self.handle = entity.handle
        self.is_subscription = isinstance(entity, Subscription)
        if isinstance(entity, Subscription):
            self._takes_info = _takes_info(entity)
            self._taken_as = entity.msg_type, entity.raw

    def take(self) -> None:
        """Take one message, if there is one, and call back."""
        taken = self.handle.take_message(*self._taken_as)
        if taken is not None:
            self.entity.callback(*(taken if self._takes_info else taken[:1]))

    def call(self) -> bool:
        """Call back where a timer is due; return whether it was."""
        if not self.handle.is_timer_ready():
            return False
        self.handle.call_timer()
        self.entity.callback()
        return True


class StreamWaitSet:
    """Waits for streams, which it keeps from being destroyed by a shutdown in another thread.

    A context; entering it raises InvalidHandle where one has been destroyed.
    """

    def __init__(self, streams: Sequence[Stream], context: Context) -> None:
        self._subscriptions = [s for s in streams if s.is_subscription]
        self._timers = [s for s in streams if not s.is_subscription]
        self._context = context
        self._held = ExitStack()

    def __enter__(self) -> StreamWaitSet:
        with ExitStack() as held:
            for handle in (self._context.handle, *(s.handle for s in (*self._subscriptions, *self._timers))):
                held.enter_context(handle)
            counts = len(self._subscriptions), 0, len(self._timers), 0, 0, 0
            self._wait_set = _rclpy.WaitSet(*counts, self._context.handle)
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def serve(self, patience: float) -> bool:
        """Wait for a stream [s] and serve those that are ready; return whether there was one."""
        wait_set, served = self._wait_set, False
        wait_set.clear_entities()
        for stream in self._subscriptions:
            wait_set.add_subscription(stream.handle)
        for stream in self._timers:
            wait_set.add_timer(stream.handle)
        wait_set.wait(int(patience * 1e9))
        # What has come before what is due: a node that keeps time looks at messages first.
        ready = wait_set.get_ready_entities("subscription")
        for stream in self._subscriptions:
            if stream.handle.pointer in ready:
                served = True
                stream.take()
        for stream in self._timers:
            served = stream.call() or served
        return served


def anything_ready(
    nodes: Sequence[Node], streams: Sequence[Stream], context: Context, events: bool = True
) -> bool:
    """Whether an executor of rclpy would find something to do in nodes, their streams aside.

    It asks the same of the system in a fraction of the time, less without QoS `events`. True where that is
    not certain.
    """
    known = {id(stream.entity) for stream in streams}
    entities: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    waitables: list[Any] = []
    for node in nodes:
        if any(True for _ in node.guards):  # to look at one is to take it
            return True
        entities["subscription"] += [each for each in node.subscriptions if id(each) not in known]
        entities["timer"] += [each for each in node.timers if id(each) not in known]
        entities["client"] += node.clients
        entities["service"] += node.services
        waitables += [each for each in node.waitables if events or not isinstance(each, EventHandler)]
    if any(timer.handle.is_timer_ready() for timer in entities.pop("timer")):
        return True
    with ExitStack() as held:
        try:
            handles = {kind: [each.handle for each in several] for kind, several in entities.items()}
            for each in (context.handle, *(h for several in handles.values() for h in several), *waitables):
                held.enter_context(each)
        except InvalidHandle:
            return True
        return _ready(handles, waitables, context)


def _ready(handles: dict[str, list[Any]], waitables: Sequence[Any], context: Context) -> bool:
    more = [waitable.get_num_entities() for waitable in waitables]
    subscriptions, guards, timers, clients, services, events = (
        sum(getattr(each, f"num_{kind}") for each in more)
        for kind in ("subscriptions", "guard_conditions", "timers", "clients", "services", "events")
    )
    wait_set = _rclpy.WaitSet(
        subscriptions + len(handles["subscription"]),
        guards,
        timers,
        clients + len(handles["client"]),
        services + len(handles["service"]),
        events,
        context.handle,
    )
    wait_set.clear_entities()
    for kind, several in handles.items():
        add = getattr(wait_set, f"add_{kind}")
        for handle in several:
            add(handle)
    for waitable in waitables:
        waitable.add_to_wait_set(wait_set)
    wait_set.wait(0)
    return any(wait_set.get_ready_entities(kind) for kind in _KINDS) or any(
        wait_set.is_ready("event", place) for place in range(events)
    )


def _takes_info(subscription: Subscription[Any]) -> bool:
    """Whether the callback takes the MessageInfo beside the message, by its signature as in rclpy."""
    try:
        inspect.signature(subscription.callback).bind(None)
    except TypeError:
        return True
    return False
