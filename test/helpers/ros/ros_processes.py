"""Real processes for the tests of the nodes: started, watched, and always ended.

Imports nothing of ROS, so that tests can be skipped with a reason where it is absent.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from warm_python import WarmProcess

import hodyn_ros

TIMEOUT = 60.0  # [s] for anything to happen; only a broken test waits so long

T = TypeVar("T")


def child_environment() -> dict[str, str]:
    """Return this environment, where conftest.py chose the ROS domain, with the same hodyn_ros."""
    environment = dict(os.environ, PYTHONUNBUFFERED="1")
    folder = Path(hodyn_ros.__file__).resolve().parent.parent
    if not folder.is_relative_to(Path(sys.prefix).resolve()):
        rest = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), rest]))
    return environment


def wait_until(condition: Callable[[], T], timeout: float, what: str) -> T:
    """Return the first true value of `condition`, or raise TimeoutError saying what did not come."""
    end = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come within {timeout:g} s")
        time.sleep(0.01)


class RosProcess:
    """A running process; its output is kept line by line. Leaving the `with` block ends it.

    Python starts warm (see `warm_python`) but where a test is about the very start: `cold`.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], name: str, cold: bool = False
    ) -> None:
        self.name = name
        self.lines: list[str] = []  # stdout and stderr, as they come
        self._process: subprocess.Popen[bytes] | WarmProcess
        its_input, ours = os.pipe()
        theirs, its_output = os.pipe()
        self._input, self._output = os.fdopen(ours, "w", buffering=1), os.fdopen(theirs)
        streams = its_input, its_output, its_output
        if command[0] == sys.executable and not cold:
            self._process = WarmProcess(command[1:], environment, streams)
        else:
            self._process = subprocess.Popen(
                list(command),
                env=dict(environment),
                stdin=its_input,
                stdout=its_output,
                stderr=its_output,
                # a test run in the background of a shell ignores SIGINT, and would hand that down
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                start_new_session=True,
            )
        os.close(its_input)
        os.close(its_output)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._output:
            self.lines.append(line.rstrip("\n"))

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def output(self) -> str:
        """Return all that it has written so far."""
        return "\n".join(self.lines)

    def wait_for_line(self, text: str, timeout: float = TIMEOUT) -> str:
        """Return the first line that contains `text`; raise when it ends without, or takes too long."""

        def look() -> str | None:
            # ask before looking: what it wrote before it ended has then been read
            ended = not self.running and not self._reader.is_alive()
            found = next((line for line in list(self.lines) if text in line), None)
            if found is None and ended:
                raise RuntimeError(f"{self.name} ended without writing {text!r}:\n{self.output()}")
            return found

        try:
            return wait_until(look, timeout, f"{text!r} from {self.name}") or ""
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it wrote:\n{self.output()}") from None

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        self._input.write(line + "\n")

    def wait(self, timeout: float = TIMEOUT) -> int:
        """Return the exit code once it has ended by itself; raise TimeoutError when it does not."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(
                f"{self.name} did not end within {timeout:g} s; it wrote:\n{self.output()}"
            ) from None
        self._reader.join(timeout=5.0)
        return code

    def stop(self, how: signal.Signals = signal.SIGINT, timeout: float = TIMEOUT) -> int:
        """Send a signal and return the exit code."""
        self.send(how)
        return self.wait(timeout)

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """Tell it to end, unless it has; require that it ends cleanly."""
        assert self.stop(how) == 0, self.output()
        assert "Traceback" not in self.output(), self.output()

    def send(self, how: signal.Signals) -> None:
        """Send a signal."""
        if self.running:
            self._process.send_signal(how)

    def __enter__(self) -> RosProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # with what it has started, as a launch does
        self._process.wait(10.0)
        self._reader.join(timeout=5.0)
        if kind is not None:  # pytest shows it beside what failed
            print(f"{self.name} wrote:\n{self.output()}")
        with suppress(BrokenPipeError):  # it ended with something of ours unread
            self._input.close()
        self._output.close()


def start_node(
    module: str,
    parameters: Mapping[str, object] | None = None,
    namespace: str | None = None,
    environment: Mapping[str, str] | None = None,
    within: Sequence[str] = (),
    cold: bool = False,
    names: Mapping[str, str] | None = None,
) -> RosProcess:
    """Start `python -m hodyn_ros.nodes.<module>` with parameters, all its topics in a namespace.

    It reports how it is doing ten times as often as by default, so that tests need not wait for it.

    `within` is a command that runs the command after it, such as `ip netns exec NAME`; `names` are other
    ones for its topics.
    """
    given = {"diagnostic_updater.period": 0.1, **(parameters or {})}
    rules = [item for name, value in given.items() for item in ("-p", f"{name}:={_yaml(value)}")]
    rules += [item for old, new in (names or {}).items() for item in ("-r", f"{old}:={new}")]
    if namespace:
        rules += ["-r", f"__ns:=/{namespace}"]
    command = [*within, sys.executable, "-m", f"hodyn_ros.nodes.{module}", "--ros-args", *rules]
    return RosProcess(command, child_environment() if environment is None else environment, module, cold)


@contextmanager
def sound_node(module: str, parameters: Mapping[str, object], namespace: str) -> Iterator[RosProcess]:
    """Start a node, and check at the end of the block that it ends cleanly when told to."""
    with start_node(module, parameters, namespace) as process:
        yield process
        process.end()


def start_launch_file(file: str, *arguments: str, cold: bool = False) -> RosProcess:
    """Start `hodyn run` with a launch file."""
    command = [sys.executable, "-m", "hodyn_ros.cli.app", "run", file, *arguments]
    return RosProcess(command, child_environment(), "hodyn run", cold)


def start_script(
    name: str, *arguments: str, namespace: str | None = None, within: Sequence[str] = ()
) -> RosProcess:
    """Start a Python file beside this one."""
    rules = ["--ros-args", "-r", f"__ns:=/{namespace}"] if namespace else []
    command = [*within, sys.executable, str(Path(__file__).with_name(name)), *arguments, *rules]
    return RosProcess(command, child_environment(), f"{name} {' '.join(arguments)}")


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
