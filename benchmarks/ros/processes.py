"""The processes of the measurement: started in a ROS domain of their own, watched, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.ros import samples
from hodyn_ros import share
from hodyn_ros.demo.processes import ProcessError, own_domain

_PATIENCE = 10.0  # [s] that a process gets to end after it has been told to
_MIB = 2**20

_ROBOT = ["--ros-args", "-p", f"robot_config:={samples.ROBOT}"]


def module(name: str, *arguments: str) -> list[str]:
    """Return the command for a module of Python."""
    return [sys.executable, "-m", name, *arguments]


def in_namespace(command: Sequence[str], name: str) -> list[str]:
    """Return the command for a node whose topics are all in a namespace."""
    return [*command, *([] if "--ros-args" in command else ["--ros-args"]), "-r", f"__ns:=/{name}"]


# The nodes under test.
DYNAMICS_NODE = module("hodyn_ros.nodes.dynamics_node", *_ROBOT)
MESSAGE_NODE = module("benchmarks.ros.message_node", *_ROBOT)
BARE_NODE = module("benchmarks.ros.bare_node")


def arms_node(count: int) -> list[str]:
    """Return the command for one process of so many dynamics_nodes."""
    return module("benchmarks.ros.arms_node", str(count), *_ROBOT)


def resident(pid: int) -> float:
    """Return the memory of a process and of those that it has started that is in use now [MiB]."""
    pages = sum(int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in _family(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


def processor_time(pid: int) -> float:
    """Return what all threads of a process, and of those that it has started, have used so far [s]."""
    threads = [thread for each in _family(pid) for thread in Path(f"/proc/{each}/task").iterdir()]
    return sum(1e-9 * int((thread / "schedstat").read_text().split()[0]) for thread in threads)


def _family(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    return [pid, *(each for child in children for each in _family(child))]


class Process:
    """A running process; its standard error goes to a file."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def lines(self) -> Iterator[str]:
        """Yield what it writes, line by line, until it closes its standard output."""
        assert self._process.stdout is not None
        yield from (line.strip() for line in self._process.stdout)

    def resident(self) -> float:
        """Return the memory of it that is in use now [MiB]; raises ProcessError where it has ended."""
        self.check()
        return resident(self._process.pid)

    def processor_time(self) -> float:
        """Return what all its threads have used so far [s]; raises ProcessError where it has ended."""
        self.check()
        return processor_time(self._process.pid)

    def check(self) -> None:
        """Raise ProcessError with its last words when it has ended."""
        if self._process.poll() is not None:
            raise self._ended()

    def wait(self, patience: float = _PATIENCE) -> None:
        """Wait for so long [s] until it ends by itself; raise ProcessError when it fails."""
        if self._process.wait(patience):
            raise self._ended()

    def stop(self, patience: float = _PATIENCE) -> None:
        """End it: SIGINT first, SIGKILL when it does not listen within `patience` [s]."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ended(self) -> ProcessError:
        words = self._log.read_text().strip().splitlines()[-1:] or [f"it has written nothing to {self._log}"]
        return ProcessError(
            f"{self._log.stem} has ended with exit code {self._process.returncode}: {words[0]}"
        )


def environment(domain: int, folder: Path) -> dict[str, str]:
    """Return the environment of processes in a ROS domain on this machine, with logs in `folder`."""
    return os.environ | {
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "FASTDDS_DEFAULT_PROFILES_FILE": str(share.find("config", "fastdds.xml")),
        "ROS_LOG_DIR": str(folder / "ros"),
        "PYTHONUNBUFFERED": "1",
    }


@contextmanager
def traffic(
    folder: Path,
    rate: float,
    turns: int,
    commands: Mapping[str, Sequence[str]],
    settings: Sequence[str] = (),
) -> Iterator[tuple[Process, dict[str, Process]]]:
    """Start the nodes under test and the traffic, which writes `folder`/traffic.npz; end them all.

    `commands` by what is asked in turn, see `benchmarks.ros.traffic`; `settings` are arguments for that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with own_domain() as domain:
        around = environment(domain, folder)
        started: list[Process] = []

        def start(command: Sequence[str], name: str) -> Process:
            started.append(Process(command, around, folder / f"{name}.log"))
            return started[-1]

        try:
            nodes = {name: start(command, name) for name, command in commands.items()}
            plan = [str(folder / "traffic.npz"), str(rate), str(turns), *commands, *settings]
            yield start(module("benchmarks.ros.traffic", *plan), "traffic"), nodes
        finally:
            for process in started:
                process.stop()
