"""An executor for nodes that live at a kilohertz: a few fast topics and timers first, then the rest.

rclpy's executors gather every entity of a node, build a wait set of them and wrap the callback in a task,
twice for each message; that is 150 µs of processor time, several times what the message itself costs. Here
the subscriptions and timers of a `StreamGroup` have a wait set of their own. Everything else (parameter
services, diagnostics, QoS events) is served as ever, 25 times a second, in the same thread.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

from rclpy.callback_groups import CallbackGroup
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import (
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.timer import Timer

HOUSEKEEPING_PERIOD = 0.04  # [s] from one housekeeping to the next
_PATIENCE = 0.01  # [s] that it waits beyond that for a stream, to begin right behind it
_SLICE = 0.01  # [s] for which streams are served until one looks whether the work beside them is done
_SHARE = 1e-4  # [s] that this work may keep the interpreter to itself
_CALLBACKS_AT_ONCE = 8  # of the slow part, before the streams are looked after again


_Result = TypeVar("_Result")


def beside_streams(node: Node, work: Callable[[], _Result]) -> _Result:
    """Do `work` while the node goes on answering, where a StreamExecutor spins it; else at once."""
    executor = node.executor
    return executor.serve_during(work) if isinstance(executor, StreamExecutor) else work()


class StreamGroup(CallbackGroup):
    """The callback group of what a StreamExecutor serves at once: plain callbacks, no coroutines.

    Its callbacks run one after the other in the thread of the executor, as all others of the node do.
    """

    def can_execute(self, entity: Any) -> bool:
        """Keep the inherited executor away from streams; QoS events of a stream are not streams."""
        return not isinstance(entity, (Subscription, Timer))

    def beginning_execution(self, entity: Any) -> bool:
        """Allow what `can_execute` allows."""
        return self.can_execute(entity)

    def ending_execution(self, entity: Any) -> None:
        """Nothing is held, so there is nothing to give back."""


class StreamExecutor(SingleThreadedExecutor):
    """Serves the streams of its nodes as they come, and everything else every HOUSEKEEPING_PERIOD.

    Whatever comes during the housekeeping has to wait for it, so it begins when a stream has just been served
    and the next sample is farthest away, or after a moment without any.

    A subscription or timer is a stream when it was created with a `StreamGroup` as callback group. Streams
    may come and go, but not from within the callback of a stream. The clock topic of simulated time is a
    stream as well, or time would stand still between two housekeepings.
    """

    def __init__(self, *, context: Context | None = None) -> None:
        super().__init__(context=context)
        self._streams: tuple[_Stream, ...] = ()

    def serve_during(self, work: Callable[[], _Result]) -> _Result:
        """Return what `work` returns, or raise what it raises; serve streams while another thread does it.

        For callbacks that are not those of a stream. `work` must not touch what streams touch.
        """
        streams = _streams(self.get_nodes(), self._streams)
        interval = sys.getswitchinterval()
        with ThreadPoolExecutor(1) as thread:
            # the other thread may be all Python, and would keep every message waiting for 5 ms
            sys.setswitchinterval(_SHARE)
            try:
                future = thread.submit(work)
                while streams and not future.done() and self._context.ok() and not self._is_shutdown:
                    self._serve(streams, time.monotonic() + _SLICE)
            finally:
                sys.setswitchinterval(interval)
        return future.result()

    def spin(self) -> None:
        """Serve callbacks until the context is shut down, then raise ExternalShutdownException."""
        while not self._is_shutdown:
            self.spin_once()

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Do the housekeeping, then serve streams for so long, by default for HOUSEKEEPING_PERIOD.

        Raises ExternalShutdownException where the context is shut down.
        """
        if self._context.ok():
            period = HOUSEKEEPING_PERIOD if timeout_sec is None else timeout_sec
            try:
                self._housekeeping()
                self._streams = _streams(self.get_nodes(), self._streams)
                self._serve(self._streams, time.monotonic() + period)
            except Exception:
                if self._context.ok():
                    raise
                # A callback that was publishing when the context was shut down has done nothing wrong.
        if not self._context.ok():
            raise ExternalShutdownException

    def _housekeeping(self) -> None:
        for _ in range(_CALLBACKS_AT_ONCE):
            try:
                task, _, _ = self.wait_for_ready_callbacks(timeout_sec=0.0)
            except (TimeoutException, ShutdownException):
                return
            task()
            task.result()  # raises what the callback raised

    def _serve(self, streams: tuple[_Stream, ...], until: float) -> None:
        if not streams:  # such as a recorder before the first topic; rcl waits for nothing by failing
            time.sleep(max(0.0, until - time.monotonic()))
            return
        subscriptions = [s for s in streams if s.is_subscription]
        timers = [s for s in streams if not s.is_subscription]
        with ExitStack() as held:
            try:
                # Another thread may shut the context down, which destroys whatever nobody holds.
                for handle in (self._context.handle, *(stream.handle for stream in streams)):
                    held.enter_context(handle)
            except InvalidHandle:
                return
            wait_set = _rclpy.WaitSet(len(subscriptions), 0, len(timers), 0, 0, 0, self._context.handle)
            latest, served = until + _PATIENCE, False
            while self._context.ok() and not self._is_shutdown:
                now = time.monotonic()
                if now >= (until if served else latest):
                    return
                wait_set.clear_entities()
                for stream in subscriptions:
                    wait_set.add_subscription(stream.handle)
                for stream in timers:
                    wait_set.add_timer(stream.handle)
                wait_set.wait(int((latest - now) * 1e9))
                served = False
                # What has come before what is due: a node that keeps time looks at messages first.
                ready = wait_set.get_ready_entities("subscription")
                for stream in subscriptions:
                    if stream.handle.pointer in ready:
                        served = True
                        stream.take()
                for stream in timers:
                    if stream.handle.is_timer_ready():
                        served = True
                        stream.handle.call_timer()
                        stream.entity.callback()


class _Stream:
    """A subscription or timer, with what is worth finding out once."""

    def __init__(self, entity: Subscription[Any] | Timer) -> None:
        self.entity = entity
        self.handle = entity.handle
        self.is_subscription = isinstance(entity, Subscription)
        self._takes_info = self.is_subscription and _takes_info(entity)

    def take(self) -> None:
        """Take one message, if there is one, and call back."""
        taken = self.handle.take_message(self.entity.msg_type, self.entity.raw)
        if taken is not None:
            self.entity.callback(*(taken if self._takes_info else taken[:1]))


def _streams(nodes: Sequence[Node], known: tuple[_Stream, ...]) -> tuple[_Stream, ...]:
    """Return the streams of nodes, those that are known as they are."""
    entities = [
        entity
        for node in nodes
        for entity in (*node.subscriptions, *node.timers)
        if isinstance(entity.callback_group, StreamGroup) or _is_clock(node, entity)
    ]
    if [stream.entity for stream in known] == entities:
        return known
    return tuple(_Stream(entity) for entity in entities)


def _is_clock(node: Node, entity: Subscription[Any] | Timer) -> bool:
    if not isinstance(entity, Subscription) or entity.topic_name != "/clock":
        return False
    return bool(node.get_parameter("use_sim_time").value)


def _takes_info(subscription: Subscription[Any]) -> bool:
    """Whether the callback takes the MessageInfo beside the message, by its signature as in rclpy."""
    try:
        inspect.signature(subscription.callback).bind(None)
    except TypeError:
        return True
    return False
