"""An executor for nodes that live at a kilohertz: a few fast topics and timers first, then the rest.

rclpy's executors gather every entity of a node, build a wait set of them and wrap the callback in a task,
twice for each message; that is 150 µs of processor time, several times what the message itself costs. Here
the subscriptions and timers of a `StreamGroup` have a wait set of their own. Everything else (parameter
services, diagnostics, QoS events) is served as ever, 25 times a second, in the same thread.
"""

from __future__ import annotations

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
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from hodyn_ros.ros.streams.wait_sets import SUPPORTED, Stream, StreamWaitSet, anything_ready
from hodyn_ros.scheduling import give_way

HOUSEKEEPING_PERIOD = 0.04  # [s] from one housekeeping to the next
_LOOKS_PER_EVENT = 5  # times that one looks for services and timers until one looks for QoS events, too
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
        return not SUPPORTED or not isinstance(entity, (Subscription, Timer))

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
        self._streams: tuple[Stream, ...] = ()
        self._more = False  # whether rclpy has found more to do than there was time for
        self._looks = 0

    def serve_during(self, work: Callable[[], _Result]) -> _Result:
        """Return what `work` returns, or raise what it raises; serve streams while another thread does it.

        For callbacks that are not those of a stream. `work` must not touch what streams touch.
        """
        streams = _streams(self.get_nodes(), self._streams)
        interval = sys.getswitchinterval()
        with ThreadPoolExecutor(1, initializer=give_way) as thread:
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
        if not SUPPORTED:
            super().spin_once(HOUSEKEEPING_PERIOD if timeout_sec is None else timeout_sec)
        elif self._context.ok():
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
        unfinished = self._more or getattr(self, "_tasks", True)  # which rclpy looks at
        self._looks = (self._looks + 1) % _LOOKS_PER_EVENT
        if not unfinished and not anything_ready(
            self.get_nodes(), self._streams, self._context, events=self._looks == 0
        ):
            return
        self._more = True
        for _ in range(_CALLBACKS_AT_ONCE):
            try:
                task, _, _ = self.wait_for_ready_callbacks(timeout_sec=0.0)
            except (TimeoutException, ShutdownException):
                self._more = False
                return
            task()
            task.result()  # raises what the callback raised

    def _serve(self, streams: tuple[Stream, ...], until: float) -> None:
        if not streams:  # such as a recorder before the first topic; rcl waits for nothing by failing
            time.sleep(max(0.0, until - time.monotonic()))
            return
        with ExitStack() as held:
            try:
                waiting = held.enter_context(StreamWaitSet(streams, self._context))
            except InvalidHandle:  # as after a shutdown
                return
            latest, served = until + _PATIENCE, False
            while self._context.ok() and not self._is_shutdown:
                now = time.monotonic()
                if now >= (until if served else latest):
                    return
                served = waiting.serve(latest - now)


def _streams(nodes: Sequence[Node], known: tuple[Stream, ...]) -> tuple[Stream, ...]:
    """Return the streams of nodes, those that are known as they are."""
    entities = [
        entity
        for node in nodes
        for entity in (*node.subscriptions, *node.timers)
        if isinstance(entity.callback_group, StreamGroup) or _is_clock(node, entity)
    ]
    if [stream.entity for stream in known] == entities:
        return known
    return tuple(Stream(entity) for entity in entities)


def _is_clock(node: Node, entity: Subscription[Any] | Timer) -> bool:
    if not isinstance(entity, Subscription) or entity.topic_name != "/clock":
        return False
    return bool(node.get_parameter("use_sim_time").value)
