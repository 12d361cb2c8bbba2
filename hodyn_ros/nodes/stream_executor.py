"""An executor for nodes that live at a kilohertz: a few fast topics and timers first, then the rest.

rclpy's executors gather every entity of a node, build a wait set of them and wrap the callback in a task,
twice for each message; that is 150 µs of processor time, several times what the message itself costs. Here
the subscriptions and timers of a `StreamGroup` have a wait set of their own. Everything else (parameter
services, diagnostics, QoS events) is served as ever, 25 times a second, in the same thread.
"""

from __future__ import annotations

import gc
import inspect
import time
from contextlib import ExitStack
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.timer import Timer

HOUSEKEEPING_PERIOD = 0.04  # [s] parameters and services wait this long at most
_CALLBACKS_AT_ONCE = 8  # of the slow part, before the streams are looked after again


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

    A subscription or timer is a stream when it was created with a `StreamGroup` as callback group. The
    entities of the nodes are looked up again at each housekeeping, so streams may come and go, but not from
    within the callback of a stream. The clock topic of simulated time is a stream as well, or time would
    stand still between two housekeepings.
    """

    def spin(self) -> None:
        """Serve callbacks until the context is shut down, then raise ExternalShutdownException."""
        # What was made at the start stays. Searching all of it for garbage again and again would cost a pause
        # of tens of milliseconds each time.
        gc.collect()
        gc.freeze()
        while self._context.ok() and not self._is_shutdown:
            self._housekeeping()
            self._serve_streams(time.monotonic() + HOUSEKEEPING_PERIOD)
        if not self._context.ok():
            raise ExternalShutdownException

    def _housekeeping(self) -> None:
        for _ in range(_CALLBACKS_AT_ONCE):
            self.spin_once(timeout_sec=0.0)

    def _serve_streams(self, until: float) -> None:
        nodes = self.get_nodes()
        subscriptions = [
            s for node in nodes for s in node.subscriptions if _is_stream(s) or _is_clock(node, s)
        ]
        timers = [timer for node in nodes for timer in node.timers if _is_stream(timer)]
        takes_info = [_takes_info(subscription) for subscription in subscriptions]
        with ExitStack() as held:
            try:
                # Another thread may shut the context down, which destroys whatever nobody holds.
                for handle in (
                    self._context.handle,
                    *(entity.handle for entity in (*subscriptions, *timers)),
                ):
                    held.enter_context(handle)
            except InvalidHandle:
                return
            wait_set = _rclpy.WaitSet(len(subscriptions), 0, len(timers), 0, 0, 0, self._context.handle)
            while self._context.ok() and not self._is_shutdown:
                left = until - time.monotonic()
                if left <= 0.0:
                    return
                wait_set.clear_entities()
                for subscription in subscriptions:
                    wait_set.add_subscription(subscription.handle)
                for timer in timers:
                    wait_set.add_timer(timer.handle)
                wait_set.wait(int(left * 1e9))
                for timer in timers:
                    if timer.handle.is_timer_ready():
                        timer.handle.call_timer()
                        timer.callback()
                ready = wait_set.get_ready_entities("subscription")
                for subscription, info in zip(subscriptions, takes_info):
                    handle = subscription.handle
                    if handle.pointer in ready:
                        taken = handle.take_message(subscription.msg_type, subscription.raw)
                        if taken is not None:
                            subscription.callback(*(taken if info else taken[:1]))


def _is_stream(entity: Subscription[Any] | Timer) -> bool:
    return isinstance(entity.callback_group, StreamGroup)


def _is_clock(node: Node, subscription: Subscription[Any]) -> bool:
    return bool(subscription.topic_name == "/clock" and node.get_parameter("use_sim_time").value)


def _takes_info(subscription: Subscription[Any]) -> bool:
    """Whether the callback takes the MessageInfo beside the message, by its signature as in rclpy."""
    try:
        inspect.signature(subscription.callback).bind(None)
    except TypeError:
        return True
    return False
