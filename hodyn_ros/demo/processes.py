"""Nodes as processes of their own, in a ROS domain of their own, that end with whoever started them."""

from __future__ import annotations

import fcntl
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import hodyn_ros
from hodyn_ros import share
from hodyn_ros.errors import HodynError
from hodyn_ros.launching.processes import ending
from hodyn_ros.parent import PARENT

# Domains above 101 would use ports that Linux hands out to other programs; 0 is everybody's default.
_DOMAINS = range(1, 102)

_PATIENCE = 5.0  # [s] that a process gets to end after SIGINT

# What the process of a node does first: it asks for real-time scheduling, and becomes the node.
_BECOME_NODE = """
import os, sys
try:
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(int(sys.argv[1])))
except OSError:
    pass
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
_PRIORITY = 5  # low among real-time priorities; the processes only have to come before ordinary ones


class ProcessError(HodynError):
    """A process could not be started, or ended too early."""


@contextmanager
def own_domain() -> Iterator[int]:
    """Reserve a ROS domain that no other demo or test run on this machine uses while the block lasts."""
    for domain in random.sample(_DOMAINS, len(_DOMAINS)):
        path = Path(tempfile.gettempdir(), f"hodyn_ros-{os.getuid()}-domain-{domain}.lock")
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield domain
            return
    raise ProcessError(f"all ROS domains from {_DOMAINS[0]} to {_DOMAINS[-1]} are in use by other runs")


class Nodes:
    """Nodes of this package, each a process; leaving the `with` block ends them all.

    They get real-time scheduling where the system allows it to this user (RLIMIT_RTPRIO), since a robot does
    not wait for an ordinary process. Their output goes to `<node>.log` in `folder`, the standard output of a
    node started with `heard=True` to a pipe.
    """

    def __init__(self, domain: int, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._environment = _environment(domain, folder)
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, node: str, parameters: Mapping[str, object], *, heard: bool = False) -> IO[str]:
        """Start `python -m hodyn_ros.nodes.<node>`; return its standard output, empty unless `heard`."""
        rules = [item for name, value in parameters.items() for item in ("-p", f"{name}:={_yaml(value)}")]
        command = ["-m", f"hodyn_ros.nodes.{node}", "--ros-args", *rules]
        with self.log(node).open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", _BECOME_NODE, str(_PRIORITY), *command],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if heard else log,
                stderr=log,
                text=True,
            )
        self._processes[node] = process
        return process.stdout if process.stdout is not None else io.StringIO()

    @property
    def real_time(self) -> bool:
        """Whether all nodes that are running have real-time scheduling."""
        running = [process.pid for process in self._processes.values() if process.poll() is None]
        return all(os.sched_getscheduler(pid) == os.SCHED_RR for pid in running)

    def log(self, node: str) -> Path:
        """Return the file that holds what a node has written."""
        return self._folder / f"{node}.log"

    def check(self, leave_out: str = "") -> None:
        """Raise ProcessError, with its last words, when a node has ended too early."""
        for node, process in self._processes.items():
            if node != leave_out and process.poll() is not None:
                raise ProcessError(f"{ending(node, process.returncode)}: {self._last_words(node)}")

    def wait(self, node: str) -> None:
        """Wait for a node that has closed its output to end, for a moment."""
        with suppress(subprocess.TimeoutExpired):
            self._processes[node].wait(_PATIENCE)

    def stop(self) -> None:
        """End all nodes: SIGINT first, SIGKILL for those that do not listen."""
        running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGINT)
        give_up_at = time.monotonic() + _PATIENCE
        for process in running:
            try:
                process.wait(max(0.0, give_up_at - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for process in self._processes.values():
            if process.stdout is not None:
                process.stdout.close()

    def _last_words(self, node: str) -> str:
        lines = [line.strip() for line in self.log(node).read_text().splitlines() if line.strip()]
        return lines[-1] if lines else f"it has written nothing to {self.log(node)}"

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _environment(domain: int, folder: Path) -> dict[str, str]:
    """Return the environment of the nodes: this one, a domain on this host only, and this very package."""
    environment = dict(os.environ)
    environment.update(
        ROS_DOMAIN_ID=str(domain),
        ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
        FASTDDS_DEFAULT_PROFILES_FILE=str(share.find("config", "fastdds.xml")),
        ROS_LOG_DIR=str(folder / "ros"),
        PYTHONUNBUFFERED="1",
        **{PARENT: str(os.getpid())},
    )
    root = Path(hodyn_ros.__file__).resolve().parent.parent
    if str(root) in (str(Path(entry or ".").resolve()) for entry in sys.path):
        rest = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), rest]))
    return environment


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
