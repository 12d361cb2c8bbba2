"""Real-time settings of nodes: in effect in every thread, or rejected with what to do."""

import gc
import os
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter
from ros_processes import TIMEOUT, RosProcess, start_node, wait_until
from sweeps import some
from warm_python import run

from hodyn_ros.ros.realtime import apply_realtime_settings
from hodyn_ros.ros.streams.stream_executor import StreamExecutor

PRIORITY = {"realtime.priority": 7}
MEMORY = {"realtime.lock_memory": True}
ASK = {
    "priority": "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(7))",
    "memory": "import ctypes, sys; sys.exit(ctypes.CDLL(None).mlockall(3))",
}


def allowed(what: str) -> bool:
    """Whether this machine lets a process have it."""
    return run("-c", ASK[what], environment=os.environ).returncode == 0


@pytest.fixture
def priority_allowed() -> None:
    if not allowed("priority"):
        pytest.skip("SCHED_FIFO is not allowed here (`rtprio` in limits.d)")


def started(parameters: dict[str, object]) -> RosProcess:
    return start_node("dynamics_node", {"robot_config": "panda.yaml", **parameters}, "realtime")


def priorities(process: RosProcess) -> list[int]:
    return sorted(os.sched_getparam(thread).sched_priority for thread in threads(process))


def threads(process: RosProcess) -> list[int]:
    found = [int(entry.name) for entry in Path(f"/proc/{process.pid}/task").iterdir()]
    assert len(found) > 1  # those of the middleware
    return found


def locked_memory(process: RosProcess) -> int:
    """Return how much memory is locked [kB]."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmLck")))


def assert_rejected(process: RosProcess, name: str, mend: str) -> None:
    assert process.wait() == 1
    assert name in process.lines[-1] and mend in process.lines[-1], process.output()
    assert "Traceback" not in process.output()


def test_processors_are_those_of_all_threads() -> None:
    processor = max(os.sched_getaffinity(0))
    with started({"realtime.cpu_affinity": [processor]}) as node:
        node.wait_for_line("robot 'panda'")
        wait_until(
            lambda: all(os.sched_getaffinity(thread) == {processor} for thread in threads(node)),
            TIMEOUT,
            "the processor",
        )
        assert node.stop() == 0, node.output()


def test_priority_is_that_of_all_threads_or_refused() -> None:
    with started(PRIORITY) as node:
        if not allowed("priority"):
            assert_rejected(node, "realtime.priority 7", "rtprio")
            return
        node.wait_for_line("robot 'panda'")
        wait_until(
            lambda: all(os.sched_getscheduler(thread) == os.SCHED_FIFO for thread in threads(node)),
            TIMEOUT,
            "the priority",
        )
        assert all(os.sched_getparam(thread).sched_priority == 7 for thread in threads(node))
        assert node.stop() == 0, node.output()


@pytest.mark.usefixtures("priority_allowed")
def test_what_writes_a_bag_comes_after_all_real_time_threads(tmp_path: Path) -> None:
    with start_node("recorder", {"file": str(tmp_path / "bag"), **PRIORITY}, "realtime") as node:
        node.wait_for_line("recording into")
        wait_until(lambda: 0 not in priorities(node), TIMEOUT, "the priority")
        assert priorities(node)[:2] == [1, 7] and priorities(node)[-1] == 7
        assert node.stop() == 0, node.output()


@pytest.mark.usefixtures("priority_allowed")
def test_work_beside_samples_comes_after_all_real_time_threads() -> None:
    def ask() -> tuple[int, int]:
        return os.sched_getscheduler(0), os.sched_getparam(0).sched_priority

    context = Context()
    rclpy.init(context=context)
    executor = StreamExecutor(context=context)
    assert executor.serve_during(ask) == ask() == (os.SCHED_OTHER, 0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(7))
    try:
        assert executor.serve_during(ask) == (os.SCHED_FIFO, 1)
        assert ask() == (os.SCHED_FIFO, 7)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        executor.shutdown()
        context.try_shutdown()


def test_memory_is_locked_or_refused() -> None:
    with started(MEMORY) as node:
        if not allowed("memory"):
            assert_rejected(node, "realtime.lock_memory", "memlock")
            return
        node.wait_for_line("robot 'panda'")
        wait_until(lambda: locked_memory(node) > 10_000, TIMEOUT, "locked memory")
        assert node.stop() == 0, node.output()


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    some(
        [
            *(("cpu_affinity", [value], "may use the processors") for value in (4096, 0.5, -1)),
            ("garbage_collection", "never", "automatic, frozen"),
        ],
        ("cpu_affinity", [4096], "may use the processors"),
        ("garbage_collection", "never", "automatic, frozen"),
    ),
)
def test_what_cannot_be_is_refused(name: str, value: object, mend: str) -> None:
    with started({f"realtime.{name}": value}) as node:
        assert_rejected(node, f"realtime.{name}", mend)


def test_garbage_is_collected_between_samples_alone() -> None:
    context, phases = Context(), []
    rclpy.init(context=context)
    frozen = Parameter("realtime.garbage_collection", value="frozen")
    node = rclpy.create_node("frozen", context=context, parameter_overrides=[frozen])
    gc.collect()
    gc.callbacks.append(lambda phase, _: phases.append(phase))
    try:
        between_samples = apply_realtime_settings(node)
        between_samples()
        kept = [[place] for place in range(6000)]
        assert len(kept) == 6000 and not phases  # by itself Python would have collected after 700
        between_samples()
        assert phases == ["start", "stop"]
        between_samples()
        assert phases == ["start", "stop"]
    finally:
        gc.callbacks.pop()
        gc.enable()
        context.try_shutdown()
