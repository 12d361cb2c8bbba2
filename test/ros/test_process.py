"""A node as a process that is told to end at any moment."""

import os
import random
import signal as signals
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from rclpy.qos import QoSHistoryPolicy, QoSProfile
from ros_processes import TIMEOUT, RosProcess, child_environment, sound_node, start_node, wait_until
from ros_talk import Talk
from std_msgs.msg import Int64
from sweeps import THOROUGH, some

from hodyn_ros.parent import PARENT

END = "os.kill(os.getpid(), signal.{signal}); assert rclpy.ok()  # a node builds on it"
CODE = """
import atexit, os, signal, sys
import rclpy
from rclpy.node import Node
from hodyn_ros.errors import InputError
from hodyn_ros.ros.process import run

def make() -> Node:
    {before}
    node = Node("ended")
    {after}
    return node

sys.exit(run(make, []))
"""


def run(before: str, after: str) -> RosProcess:
    code = CODE.format(before=before, after=after)
    return RosProcess([sys.executable, "-c", code], child_environment(), "a node", cold=True)


INTERRUPTED, ENDED = END.format(signal="SIGINT"), END.format(signal="SIGTERM")
# both the terminal and launch send SIGINT, the later one while Python ends
AGAIN = "atexit.register(os.kill, os.getpid(), signal.SIGINT)"


STARTS = {
    "interrupted before": (INTERRUPTED, "pass", 0, []),
    "ended before": (ENDED, "pass", 0, []),
    "interrupted after": ("pass", INTERRUPTED, 0, []),
    "ended after": ("pass", ENDED, 0, []),
    "interrupted again": (AGAIN, INTERRUPTED, 0, []),
    "fails when told to end": (ENDED + "\n    raise InputError('half a node')", "pass", 0, []),
    "fails": ("raise InputError('no such robot')", "pass", 1, ["error: no such robot"]),
}
FEW = ("interrupted before", "ended after", "interrupted again", "fails when told to end", "fails")


@pytest.mark.parametrize("start", some(STARTS, *FEW))
def test_a_start_that_is_told_to_end_ends_cleanly_and_what_can_be_mended_is_said(
    start: str,
) -> None:
    before, after, code, lines = STARTS[start]
    with run(before, after) as process:
        assert process.wait() == code, process.output()
    assert process.lines == lines


def test_what_is_doubtful_at_the_start_is_said_once_without_the_code_that_found_it(tmp_path: Path) -> None:
    panda = (Path(__file__).parents[2] / "config" / "panda.yaml").read_text()
    robot = tmp_path / "robot.yaml"
    robot.write_text(panda.replace("lower: -2.8973", "lower: -166", 1))
    parameters = {"robot_config": robot, "fram_id": "map", "use_sim_time": True}
    lines = (
        "parameter 'fram_id' is unknown, and ignored; did you mean 'frame_id'?",
        "may turn to 166 rad",
        "nothing has come on /clock",
    )
    with sound_node("skeleton_node", parameters, "doubtful") as node:
        assert node.wait_for_line(lines[1]).startswith("warning: ")
        for line in lines:
            node.wait_for_line(line)
    assert [sum(line in each for each in node.lines) for line in lines] == [1, 1, 1]
    assert not any("FigureWarning" in line or "warnings.warn" in line for line in node.lines)


STOPPING = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as "nohup make test" would have it ignored
from rclpy.duration import Duration
from rclpy.node import Node
from std_msgs.msg import Int64
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.stream_executor import StreamGroup

class Counting(Node):  # sends 0 until it is to stop, then counts to `last`
    stop_within, stopped, last, count, stops = {within}, False, {last}, 0, {stops}

    def __init__(self):
        super().__init__("counting", namespace="stopping")
        self.numbers = self.create_publisher(Int64, "numbers", 1000)
        self.create_timer(0.005, self.send, callback_group={group})

    def stopping(self):
        self.count = 1
        return self.stops

    def send(self):
        if self.stopped:
            return
        self.numbers.publish(Int64(data=self.count))
        self.count += self.count > 0
        if self.count > self.last:
            self.stopped = self.numbers.wait_for_all_acked(Duration(seconds=10))

sys.exit(run(Counting, []{executor}))
"""


def counting(
    last: int,
    within: float = 20.0,
    stops: bool = True,
    group: str = "StreamGroup()",
    executor: str = "",
    cold: bool = False,
) -> RosProcess:
    code = STOPPING.format(within=within, last=last, stops=stops, group=group, executor=executor)
    return RosProcess([sys.executable, "-c", code], child_environment(), "counting", cold)


HOW = [signals.SIGINT, signals.SIGTERM, signals.SIGHUP]  # the first in the test of a launch as well


@pytest.mark.parametrize("how", some(HOW, signals.SIGTERM, signals.SIGHUP))
def test_a_node_that_stops_first_goes_on_sending(how: signals.Signals) -> None:
    with counting(last=60, cold=True) as process, Talk("stopping") as talk:
        numbers = talk.hear(Int64, "numbers")
        assert process.stop(how) == 0, process.output()
        talk.wait_until(lambda: numbers[-1].data == 60, "the last number")
    sent = [number.data for number in numbers]
    assert sent[sent.index(1) :] == list(range(1, 61))
    assert process.lines == []


def test_the_signal_that_a_launch_passes_on_does_not_cut_a_stop_short() -> None:
    executor = ", __import__('rclpy').executors.SingleThreadedExecutor"  # another than that of streams
    with counting(last=60, group="None", executor=executor) as process, Talk("stopping") as talk:
        numbers = talk.hear(Int64, "numbers")
        process.send(signals.SIGINT)
        talk.wait_until(lambda: numbers[-1].data >= 10, "the stop")
        assert process.stop() == 0, process.output()
        talk.wait_until(lambda: numbers[-1].data == 60, "the last number")
    assert process.lines == []


@pytest.mark.parametrize(("within", "again"), [(1.5, False), (60.0, True)], ids=["bounded", "second signal"])
def test_a_stop_without_end_is_ended(within: float, again: bool) -> None:
    with counting(last=10**9, within=within) as process, Talk("stopping") as talk:
        numbers = talk.hear(Int64, "numbers")
        began = time.monotonic()
        process.send(signals.SIGINT)
        talk.wait_until(lambda: numbers[-1].data > 1, "the stop")  # a busy machine may hold up the signal
        if again:
            talk.pause(1.2)  # sooner it would be taken for the same
            assert process.running
            assert process.stop() == 0, process.output()
        else:
            assert process.wait() == 0, process.output()
            assert time.monotonic() - began >= within
        assert time.monotonic() - began < 30.0


def test_a_node_with_nothing_to_stop_ends_at_once() -> None:
    with counting(last=10**9, within=60.0, stops=False) as process, Talk("stopping") as talk:
        talk.hear(Int64, "numbers")
        assert process.stop(timeout=30.0) == 0, process.output()


HANGING = """
import ctypes, sys
from rclpy.node import Node
from hodyn_ros.ros.process import run

def hang(*_):  # as the middleware may: neither Python nor a signal gets through
    ctypes.PyDLL(None).sleep(1000)

class Hanging(Node):
    stop_within, end_within, stopped = 0.5, 1.0, False
    destroy_node = hang

    def __init__(self):
        super().__init__("hanging")
        self.create_timer(0.01, lambda: print("runs", flush=True))

    def stopping(self):
        return {stopping}

sys.exit(run(Hanging))
"""


@pytest.mark.parametrize(
    ("stopping", "where"), [("False", "in run"), ("self.create_timer(0.01, hang)", "in _stop")]
)
def test_a_node_that_the_middleware_holds_up_ends_and_says_where(stopping: str, where: str) -> None:
    code = HANGING.format(stopping=stopping)
    with RosProcess([sys.executable, "-c", code], child_environment(), "hanging", cold=True) as process:
        process.wait_for_line("runs")
        assert process.stop() == 1, process.output()
    assert "in hang" in process.output() and where in process.output()


FILLING = """
import sys
from rclpy.node import Node
from rclpy.qos import QoSHistoryPolicy, QoSProfile
from std_msgs.msg import Int64
from hodyn_ros.ros.diagnostics import OK, Diagnostics, Report
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.stream_executor import StreamGroup

class Filling(Node):  # sends more than anybody takes
    def __init__(self):
        super().__init__("filling", namespace="filling")
        self.count = 0
        self.numbers = self.create_publisher(Int64, "numbers", QoSProfile(history=QoSHistoryPolicy.KEEP_ALL))
        self.create_timer(0.01, self.send, callback_group=StreamGroup())
        self.diagnostics = Diagnostics(self, lambda: Report(OK, "filling", {}))

    def send(self):
        for _ in range(100 if self.numbers.get_subscription_count() else 0):
            self.count += 1
            self.numbers.publish(Int64(data=self.count))

sys.exit(run(Filling, []))
"""


def test_a_node_goes_on_where_publishing_fails() -> None:
    process = RosProcess([sys.executable, "-c", FILLING], child_environment(), "filling", cold=True)
    with process, Talk("filling") as talk:
        keep_all = QoSProfile(history=QoSHistoryPolicy.KEEP_ALL)
        deaf = talk.node.create_subscription(Int64, "numbers", lambda msg: None, keep_all)
        line = process.wait_for_line("Failed to publish")  # nothing is taken here meanwhile
        assert line.endswith("(1 such failures so far; the node continues)")
        talk.node.destroy_subscription(deaf)
        talk.hear(Int64, "numbers")
        talk.status("filling", lambda status, values: values["failures of the middleware"] != "0")
        assert process.stop() == 0, process.output()


def imports(process: RosProcess) -> bool:
    """Whether a process has come as far as to import this package."""
    return "_multiarray_umath" in Path(f"/proc/{process.pid}/maps").read_text()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="/proc tells how far a process has come")
def test_a_node_ends_without_a_traceback_whenever_it_is_told_to() -> None:
    rng = random.Random(20)
    panda = {"robot_config": "panda.yaml"}
    moving = {"trajectory": "panda_excitation.yaml", "ramp": 0.5}
    nodes = (
        ("dynamics_node", panda),
        ("trajectory_node", moving | {"rate": 2000.0}),
        ("simulator_node", panda),
    )
    several = 5 if THOROUGH else 1
    with ExitStack() as stack:
        stack.enter_context(start_node("trajectory_node", moving | {"rate": 500.0}, "whenever"))
        started = [stack.enter_context(start_node(*node, "whenever", cold=True)) for node in nodes * several]
        for process in started:
            wait_until(partial(imports, process), 60.0, "the imports")
        waits = sorted(rng.uniform(0.0, 4.0) for _ in started)
        for process, wait in zip(rng.sample(started, len(started)), np.diff(waits, prepend=0.0)):
            time.sleep(wait)
            process.send(signals.SIGINT)
            if rng.random() < 0.5:  # as a launch does
                time.sleep(rng.uniform(0.0, 0.2))
                process.send(signals.SIGINT)
        for process in started:
            assert process.wait() == 0, process.output()
            assert "Traceback" not in process.output(), process.output()
            assert "Exception" not in process.output(), process.output()


def test_a_node_does_not_outlive_a_parent_that_nobody_has_asked_how_it_ended() -> None:
    """As where the process that started `ros2 launch` in a container collects no children."""
    code = "from hodyn_ros.parent import end_with_parent; end_with_parent(); print('goes on')"
    with subprocess.Popen(["true"]) as parent:
        os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie until it is waited for
        environment = child_environment() | {PARENT: str(parent.pid)}
        ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (-signals.SIGTERM, "")
    environment[PARENT] = str(os.getpid())
    lives = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (lives.returncode, lives.stdout) == (0, "goes on\n")


SAY = "[node.get_logger().warning(f'{{k:04}}' + 'x' * {width}) for k in range({count})]"
END_THEN = "; os.kill(os.getpid(), signal.SIGTERM)"


def test_a_log_that_nobody_reads_holds_nobody_up() -> None:
    """A pipe holds 64 kB, and whoever writes more waits until somebody reads."""
    code = CODE.format(before="pass", after=SAY.format(width=400, count=250) + END_THEN)
    unread, theirs = os.pipe()
    with subprocess.Popen([sys.executable, "-c", code], env=child_environment(), stderr=theirs) as process:
        os.close(theirs)
        try:
            assert process.wait(TIMEOUT) == 0
        finally:
            process.kill()
    with os.fdopen(unread, "rb") as lines:
        assert b"0000xxx" in lines.readline()


def test_what_is_read_is_whole_and_in_order() -> None:
    with run("pass", SAY.format(width=0, count=300) + END_THEN) as process:
        assert process.wait() == 0
    assert [line[-4:] for line in process.lines] == [f"{k:04}" for k in range(300)]
