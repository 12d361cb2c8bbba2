"""The executor for kilohertz nodes, in this process."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from refusals import refused

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

import rclpy
from rclpy.clock import Clock as RosClock
from rclpy.clock import ClockType
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from hodyn_ros.ros.streams import stream_executor
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.stream_executor import StreamExecutor, StreamGroup, beside_streams


@pytest.fixture
def context() -> Iterator[Context]:
    context = Context()
    rclpy.init(context=context)
    yield context
    context.try_shutdown()


def spin(context: Context, node: Any, until: Callable[[], Any], seconds: float = 10.0) -> None:
    """Spin until a condition holds; look a hundred times a second, from a thread."""
    executor = StreamExecutor(context=context)
    executor.add_node(node)
    held: list[bool] = []

    def watch() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (held and held[0]):
            held[:] = [bool(until())]
            time.sleep(0.01)
        context.try_shutdown()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with pytest.raises(ExternalShutdownException):
            executor.spin()
    finally:
        watcher.join()
    assert held == [True]


def test_a_node_may_have_no_stream_yet(context: Context) -> None:
    node = rclpy.create_node("waiting", context=context)
    calls: list[int] = []
    timer = node.create_timer(0.01, lambda: calls.append(1))
    spin(context, node, lambda: len(calls) > 2)
    node.destroy_timer(timer)


@pytest.mark.parametrize("group", [None, StreamGroup()], ids=["all else", "stream"])
def test_a_steady_timer_goes_on_while_simulated_time_stands(context: Context, group: Any) -> None:
    simulated = [Parameter("use_sim_time", value=True)]
    node = rclpy.create_node("standing", context=context, parameter_overrides=simulated)
    calls: list[str] = []
    node.create_timer(0.01, lambda: calls.append("by the node's clock"), callback_group=group)
    steady_timer(node, 0.01, lambda: calls.append("steady"), group)
    spin(context, node, lambda: calls.count("steady") > 2)
    assert "by the node's clock" not in calls


def test_streams_and_all_else_are_served(context: Context) -> None:
    node = rclpy.create_node("both", context=context)
    group = StreamGroup()
    ticks: list[float] = []
    fast: list[list[float]] = []
    slow: list[str] = []
    raw: list[tuple[bytes, dict[str, int]]] = []
    answers: list[bool] = []
    publisher = node.create_publisher(Float64MultiArray, "fast", 10)
    talker = node.create_publisher(String, "slow", 10)
    node.create_subscription(
        Float64MultiArray, "fast", lambda m: fast.append(list(m.data)), 10, callback_group=group
    )
    node.create_subscription(
        Float64MultiArray, "fast", lambda m, info: raw.append((m, info)), 10, callback_group=group, raw=True
    )
    node.create_subscription(String, "slow", lambda m: slow.append(m.data), 10)
    node.create_service(Trigger, "serve", lambda _, response: response)
    client = node.create_client(Trigger, "serve")

    def tick() -> None:
        ticks.append(time.monotonic())
        if publisher.get_subscription_count() == 2 and talker.get_subscription_count() == 1:
            publisher.publish(Float64MultiArray(data=[float(len(ticks))]))
            talker.publish(String(data=str(len(ticks))))
        if len(ticks) == 100:
            client.call_async(Trigger.Request()).add_done_callback(lambda _: answers.append(True))

    node.create_timer(0.005, tick, callback_group=group)
    spin(context, node, lambda: len(ticks) > 300 and fast and raw and slow and answers)
    assert [value for (value,) in fast] == sorted(value for (value,) in fast)
    assert isinstance(raw[0][0], bytes) and raw[0][1]["source_timestamp"] > 0


def test_without_wait_sets_streams_are_served_as_all_else_is(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_executor, "SUPPORTED", False)
    node = rclpy.create_node("unsupported", context=context)
    group = StreamGroup()
    raw: list[tuple[bytes, dict[str, int]]] = []
    publisher = node.create_publisher(String, "fast", 10)
    node.create_subscription(
        String, "fast", lambda m, info: raw.append((m, info)), 10, callback_group=group, raw=True
    )
    node.create_timer(0.01, lambda: publisher.publish(String()), callback_group=group)
    spin(context, node, lambda: len(raw) > 2)
    assert isinstance(raw[0][0], bytes) and raw[0][1]["source_timestamp"] > 0


def test_an_idle_node_is_not_looked_through(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    node = rclpy.create_node("idle", context=context)
    executor = StreamExecutor(context=context)
    executor.add_node(node)
    passes: list[None] = []
    whole = executor.wait_for_ready_callbacks
    monkeypatch.setattr(
        executor, "wait_for_ready_callbacks", lambda **known: (passes.append(None), whole(**known))[1]
    )
    for _ in range(20):
        executor.spin_once(0.0)
    assert len(passes) < 10
    client = node.create_client(Trigger, "serve")
    node.create_service(Trigger, "serve", lambda _, response: response)
    done = client.call_async(Trigger.Request())
    end = time.monotonic() + 10.0
    while not done.done() and time.monotonic() < end:
        executor.spin_once(0.01)
    assert done.done()


def test_an_ordinary_executor_leaves_streams_alone(context: Context) -> None:
    node = rclpy.create_node("ordinary", context=context)
    ticks: list[str] = []
    node.create_timer(0.001, lambda: ticks.append("stream"), callback_group=StreamGroup())
    node.create_timer(0.001, lambda: ticks.append("other"))
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    for _ in range(20):
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown()
    assert set(ticks) == {"other"}


def test_streams_may_come_and_go(context: Context) -> None:
    node = rclpy.create_node("changing", context=context)
    group = StreamGroup()
    ticks = {"first": 0, "second": 0}

    def count(name: str) -> Callable[[], None]:
        def tick() -> None:
            ticks[name] += 1

        return tick

    first = node.create_timer(0.001, count("first"), callback_group=group)

    def change() -> None:  # not a stream, so it may
        if ticks["first"] > 50 and not ticks["second"]:
            node.destroy_timer(first)
            node.create_timer(0.001, count("second"), callback_group=group)
            change_timer.cancel()

    change_timer = node.create_timer(0.01, change)
    spin(context, node, lambda: ticks["second"] > 50)
    assert ticks["first"] > 50


def test_streams_are_served_while_long_work_is_done_beside_them(context: Context) -> None:
    node = rclpy.create_node("busy", context=context)
    ticks, enough = [0], threading.Event()
    outcomes: list[object] = []

    def tick() -> None:
        ticks[0] += 1
        if outcomes and ticks[0] > 50:
            enough.set()

    def work() -> bool:
        assert threading.current_thread() is not threading.main_thread()
        return enough.wait(5.0)  # in vain, if this work kept the streams waiting

    def fail() -> None:
        raise ZeroDivisionError("beside the streams")

    def begin() -> None:
        timer.cancel()
        interval = sys.getswitchinterval()
        outcomes.append("begun")
        outcomes.append(beside_streams(node, work))
        refused(lambda: beside_streams(node, fail), "beside the streams", ZeroDivisionError)
        outcomes.append(sys.getswitchinterval() == interval)

    node.create_timer(0.001, tick, callback_group=StreamGroup())
    timer = node.create_timer(0.01, begin)
    spin(context, node, lambda: len(outcomes) == 3)
    assert outcomes == ["begun", True, True]


def test_work_is_done_at_once_where_no_stream_executor_spins_the_node_or_has_no_streams_yet(
    context: Context,
) -> None:
    node = rclpy.create_node("alone", context=context)
    assert beside_streams(node, threading.current_thread) is threading.current_thread()
    for kind in (SingleThreadedExecutor, StreamExecutor):
        executor = kind(context=context)
        executor.add_node(node)
        assert beside_streams(node, lambda: 7) == 7
        here = beside_streams(node, threading.current_thread) is threading.current_thread()
        assert here or kind is StreamExecutor
        executor.shutdown()


def test_an_error_in_a_callback_is_not_swallowed(context: Context) -> None:
    node = rclpy.create_node("failing", context=context)

    def fail() -> None:
        raise ZeroDivisionError("in a stream")

    node.create_timer(0.001, fail, callback_group=StreamGroup())
    executor = StreamExecutor(context=context)
    executor.add_node(node)
    refused(lambda: executor.spin(), "in a stream", ZeroDivisionError)


def test_simulated_time_runs_at_the_pace_of_the_clock_topic(context: Context) -> None:
    node = rclpy.create_node(
        "simulated", context=context, parameter_overrides=[Parameter("use_sim_time", value=True)]
    )
    clock = node.create_publisher(Clock, "/clock", 10)
    sent = 0
    seen: set[int] = set()

    def tick() -> None:
        nonlocal sent
        sent += 1
        message = Clock()
        message.clock.sec = sent
        clock.publish(message)
        seen.add(node.get_clock().now().nanoseconds // 1_000_000_000)

    steady = RosClock(clock_type=ClockType.STEADY_TIME)
    node.create_timer(0.002, tick, callback_group=StreamGroup(), clock=steady)
    spin(context, node, lambda: len(seen) > 200)
    # nearly every reading of the clock differs, which twenty-five looks a second could not give
    assert len(seen) > 0.8 * sent
