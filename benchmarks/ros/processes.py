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
from hodyn_ros.demo.processes import ProcessError, own_domain

_PATIENCE = 10.0  # [s] that a process gets to end after it has been told to
_MIB = 2**20

# The nodes under test; all topics of a node are in a namespace of its own name.
MODULES = {
    "dynamics_node": ("hodyn_ros.nodes.dynamics_node", ["-p", f"robot_config:={samples.ROBOT}"]),
    "bare_node": ("benchmarks.ros.bare_node", []),
}


class Process:
    """A running process; its standard error goes to a file."""

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> None:
        self._module = module
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
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
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / _MIB

    def check(self) -> None:
        """Raise ProcessError with its last words when it has ended."""
        if self._process.poll() is not None:
            raise self._ended()

    def wait(self) -> None:
        """Wait until it ends by itself; raise ProcessError when it fails."""
        if self._process.wait(_PATIENCE):
            raise self._ended()

    def stop(self) -> None:
        """End it: SIGINT first, SIGKILL when it does not listen."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ended(self) -> ProcessError:
        words = self._log.read_text().strip().splitlines()[-1:] or [f"it has written nothing to {self._log}"]
        return ProcessError(f"{self._module} has ended with exit code {self._process.returncode}: {words[0]}")


@contextmanager
def traffic(
    folder: Path, rate: float, turns: int, names: Sequence[str]
) -> Iterator[tuple[Process, dict[str, Process]]]:
    """Start the nodes under test and the traffic, which writes `folder`/traffic.npz; end them all."""
    folder.mkdir(parents=True, exist_ok=True)
    with own_domain() as domain:
        environment = os.environ | {
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "ros"),
            "PYTHONUNBUFFERED": "1",
        }
        started: list[Process] = []

        def start(module: str, arguments: Sequence[str]) -> Process:
            started.append(Process(module, arguments, environment, folder / f"{module}.log"))
            return started[-1]

        try:
            nodes = {}
            for name in names:
                module, parameters = MODULES[name]
                nodes[name] = start(module, ["--ros-args", "-r", f"__ns:=/{name}", *parameters])
            plan = [str(folder / "traffic.npz"), str(rate), str(turns), *names]
            yield start("benchmarks.ros.traffic", plan), nodes
        finally:
            for process in started:
                process.stop()
