"""`hodyn top` over real DDS: one table, nobody there, and live in a terminal."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import warm_python

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from malformed import good_motion
from ros_peer import Peer
from ros_processes import TIMEOUT, child_environment, start_node, wait_until
from ros_stream import JOINTS
from warm_python import WarmProcess

PANDA = {"robot_config": "panda.yaml"}
COMMAND = ["-m", "hodyn_ros.cli.app", "top"]


def top_once(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `hodyn top --once`."""
    return warm_python.run(
        *COMMAND, "--once", *arguments, environment=child_environment() | {"COLUMNS": "160"}
    )


def test_one_table_of_all_nodes_or_of_those_that_are_named() -> None:
    rng = np.random.default_rng(3)
    names = tuple(JOINTS)
    with (
        start_node("dynamics_node", PANDA, "left") as left,
        start_node("dynamics_node", PANDA | {"order": 3}, "right") as right,
        Peer("left") as peer,
    ):
        for node in (left, right):
            node.wait_for_line("robot 'panda'")
        stranger = DiagnosticArray(status=[DiagnosticStatus(name="somebody else")])
        publisher = peer.node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        peer.node.create_timer(0.5, lambda: publisher.publish(stranger))
        spinning = threading.Event()
        thread = threading.Thread(target=peer.serve, args=(spinning,))
        peer.wait_for_topics()
        for k in range(1, 4):
            msg = good_motion(rng, names, k)
            msg.joint_names[0] = "nobody"
            peer.send(msg)
        peer.answer_to(good_motion(rng, names, 10))
        peer.diagnostics(lambda values: values["answered"] == "1")
        thread.start()
        try:
            for _ in range(5):  # on a busy machine a node may be discovered after the first second
                all_nodes = top_once("--timeout", "20")
                if "hodyn top: 1 node," not in all_nodes.stdout:
                    break
            one = top_once("--timeout", "20", "--node", "right/*")
        finally:
            spinning.set()
            thread.join()
    assert (all_nodes.returncode, all_nodes.stderr) == (0, "")
    for part in ("hodyn top: 2 nodes", "left/dynamics_node", "right/dynamics_node", "order 3"):
        assert part in all_nodes.stdout
    assert "3 unknown joint" in all_nodes.stdout
    assert "latency" in all_nodes.stdout
    assert "somebody" not in all_nodes.stdout
    assert (one.returncode, one.stderr) == (0, "")
    assert "hodyn top: 1 node," in one.stdout
    assert "left/dynamics_node" not in one.stdout


def test_nobody_there_is_said() -> None:
    result = top_once("--timeout", "0.5", "--node", "nobody")
    assert result.returncode == 2
    assert result.stdout.startswith(
        "waiting for nodes of hodyn_ros: no diagnostics of nobody on /diagnostics"
    )
    assert result.stderr == ""


def test_without_a_terminal_the_live_view_says_what_to_do() -> None:
    result = warm_python.run(*COMMAND, environment=child_environment())
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: the live view needs a terminal; for a file or a pipe take --once\n"


class Terminal:
    """What a program has written to a terminal of 150 columns."""

    def __init__(self) -> None:
        self.screen = b""
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 150, 0, 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                self.screen += os.read(self.master, 65536)
            except OSError:  # the last who wrote to it has gone
                return

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text.encode() in self.screen, TIMEOUT, f"{text!r} on the screen")


@contextmanager
def live_top(terminal: Terminal) -> Iterator[WarmProcess]:
    streams = terminal.slave, terminal.slave, terminal.slave
    process = WarmProcess(COMMAND, child_environment() | {"TERM": "xterm-256color"}, streams)
    os.close(terminal.slave)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT)
        os.close(terminal.master)


def test_a_terminal_shows_nodes_come_and_go_and_is_left_as_it_was() -> None:
    terminal = Terminal()
    with live_top(terminal) as top:
        terminal.wait_for("waiting for nodes of hodyn_ros")
        with start_node("dynamics_node", PANDA, "shown") as node:
            terminal.wait_for("shown/dynamics_node")
            terminal.wait_for("waiting for the first desired motion")
            node.stop(signal.SIGKILL)
        terminal.wait_for("stale: silent for")
        top.send_signal(signal.SIGINT)
        assert top.wait(TIMEOUT) == 0
        terminal.wait_for("\x1b[?1049l")  # back from the alternate screen
        terminal.wait_for("\x1b[?25h")  # with a cursor
    assert b"Traceback" not in terminal.screen
