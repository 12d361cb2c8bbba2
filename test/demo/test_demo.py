"""The demo as its users run it: seven processes over real DDS."""

import json
import os
import queue
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sweeps import THOROUGH, some

pytest.importorskip("rclpy", reason="rclpy is not installed; the demo comes with the ROS build (make)")

from ros_processes import TIMEOUT, RosProcess, child_environment, wait_until

from hodyn_ros.demo.processes import Nodes, ProcessError, own_domain
from hodyn_ros.demo.run import MODES, News, follow
from hodyn_ros.simulation.recording import Recording

NODES = {"dynamics_node", "simulator_node", "controller_node", "trajectory_node", "monitor"}


# All other tests wait for each run; that without feedforward is for thorough ones, and so are gentle ramps.
RUNS = MODES if THOROUGH else tuple(mode for mode in MODES if mode != "none")
RAMP = 2.0 if THOROUGH else 1.0  # [s]
CODE = f"""
import hodyn_ros.demo.run as demo
from hodyn_ros.cli.app import main
demo.MODES, demo.RAMP = {RUNS}, {RAMP}
main()
"""


def start_demo(out: Path, *options: str, cold: bool = False) -> RosProcess:
    command = [sys.executable, "-c", CODE, "demo", "--out", str(out), *options]
    return RosProcess(command, child_environment(), "hodyn demo", cold)


def children(parent: int) -> dict[str, int]:
    """Return the nodes that a process has started, by name, with their process ids."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command, name = (folder / "cmdline").read_text(), (folder / "comm").read_text().strip()
        except OSError:  # it has ended meanwhile
            continue
        match = re.search(r"hodyn_ros\.nodes\.(\w+)", command)  # of a copy, its name alone says what it is
        if (match or name in NODES) and fields[0] != "Z" and int(fields[1]) == parent:
            found[match.group(1) if match else name] = int(folder.name)
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def all_gone(pids: Iterator[int] | list[int]) -> bool:
    return not any(alive(pid) for pid in pids)


@pytest.mark.realtime
def test_elastic_feedforward_tracks_ten_times_better_than_rigid(tmp_path: Path) -> None:
    duration = 1.0 if THOROUGH else 0.5  # [s]
    with start_demo(tmp_path, "--duration", str(duration)) as demo:
        code = demo.wait(timeout=240.0)
    # too slow for the motion, or once too slow for the guard, which then waits to be asked to start
    if code == 1 or "the machine is too slow" in demo.output() or "it has stopped: held up" in demo.output():
        pytest.skip(f"the machine was held up: {demo.lines[-1]}")
    assert code == 0, demo.output()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert tuple(summary["runs"]) == RUNS
    assert summary["too_slow"] == []
    for run in summary["runs"].values():
        assert 0.0 < run["rms_error_rad"] < run["max_error_rad"]
        assert 0.0 < run["latency_us"]["p50"] <= run["latency_us"]["p99"]
        assert run["messages_received"] == run["messages_sent"]  # nothing is lost
        assert run["messages_due"] == summary["rate_hz"] * (duration + 2.0 * RAMP) + 1
    errors = {mode: run["rms_error_rad"] for mode, run in summary["runs"].items()}
    rigid = errors["rigid"]
    assert errors["elastic"] < 0.1 * rigid < 0.1 * errors.get("none", np.inf)
    assert errors["offset"] < 0.1 * rigid  # beside which derivatives bring little here
    assert Image.open(tmp_path / "demo.png").width > 800
    recording = Recording.load(tmp_path / "elastic" / "recording.npz")
    assert recording.end - recording.start == round(1e9 * (duration + 2.0 * RAMP))
    assert "times better than rigid feedforward" in demo.output()


def test_last_lines_of_the_monitor_that_come_long_after_its_end_are_read(tmp_path: Path) -> None:
    lines: queue.Queue[News | None] = queue.Queue()
    shown: list[str] = []
    with own_domain() as domain, Nodes(domain, tmp_path) as nodes:
        nodes.start("monitor", {}, heard=True)  # ends at once, since it is to record into no file
        nodes.wait("monitor")
        with pytest.raises(ProcessError, match="monitor"):
            nodes.check()
        threading.Timer(1.0, lines.put, [{"state": "done", "elapsed": 1.0}]).start()
        follow(nodes, lines, lambda _, news: shown.append(news))
    assert shown == ["done"]


def test_a_node_that_dies_ends_the_demo_with_its_name(tmp_path: Path) -> None:
    with start_demo(tmp_path, "--duration", "60") as demo:
        wait_until(lambda: set(children(demo.pid)) == NODES, TIMEOUT, "all processes")
        nodes = children(demo.pid)
        os.kill(nodes["simulator_node"], signal.SIGKILL)
        assert demo.wait(timeout=60.0) == 2
        assert "error: simulator_node has been ended by signal 9 (SIGKILL)" in demo.output()
        assert "Traceback" not in demo.output()
        assert all_gone(list(nodes.values()))


@pytest.mark.parametrize(
    "how", some([signal.SIGINT, signal.SIGTERM, signal.SIGKILL], signal.SIGINT, signal.SIGKILL)
)
def test_whatever_ends_the_demo_ends_its_processes(tmp_path: Path, how: signal.Signals) -> None:
    with start_demo(tmp_path, "--duration", "60", cold=how is signal.SIGKILL) as demo:
        wait_until(lambda: set(children(demo.pid)) == NODES, TIMEOUT, "all processes")
        time.sleep(1.0)  # into whatever they do at the start
        nodes = list(children(demo.pid).values())
        assert demo.stop(how) != 0
        wait_until(lambda: all_gone(nodes), TIMEOUT, "the end of the nodes")
        assert "Traceback" not in demo.output()
