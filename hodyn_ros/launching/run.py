"""`hodyn run`: what a launch file starts, without `launch`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import yaml
from rich.console import Console

from hodyn_ros.errors import InputError
from hodyn_ros.launching.description import read_launch
from hodyn_ros.launching.processes import CANNOT_START, Command, Process, ending, executable
from hodyn_ros.parent import PARENT
from hodyn_ros.ros_presence import require_ros
from hodyn_ros.share import PACKAGE
from hodyn_ros.tables import say


def run_launch(file: str, arguments: Sequence[str], console: Console) -> bool:
    """Start what a launch file starts, with arguments `name:=value`, until all has ended.

    Returns whether nothing ended that others needed. Raises InputError for wrong arguments, and
    RosMissingError.
    """
    processes = read_launch(file).start(_arguments(arguments))
    require_ros("hodyn run")
    return supervise(processes, partial(say, console))


def show_arguments(file: str, console: Console) -> None:
    """Print the arguments of a launch file."""
    for argument in read_launch(file).arguments:
        offered = f" One of {', '.join(argument.offered)}." if argument.offered else ""
        default = argument.default_text or "''"
        console.print(f"{argument.name}:={default}", markup=False, highlight=False, style="bold")
        console.print(f"    {argument.description}{offered}", markup=False, highlight=False)


def _arguments(texts: Sequence[str]) -> dict[str, str]:
    arguments = {}
    for text in texts:
        name, separator, value = text.partition(":=")
        if not (separator and name):
            raise InputError(f"{text!r} is no argument; give name:=value")
        arguments[name] = value
    return arguments


RESPAWN_DELAY = 1.0  # [s]

# What a process is told in turn, and how long it gets [s]. More than a node takes to bring a robot to rest.
_STEPS = ((signal.SIGINT, 5.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, None))

Say = Callable[[str], None]


def supervise(processes: Sequence[Process], say: Say) -> bool:
    """Start all processes, say what they write, wait until all have ended, and return whether all is well.

    SIGINT, SIGTERM and SIGHUP end them all, and so does a required process that ends; that is not well,
    unless it ended with exit code 0. Raises InputError, before anything is started, for one that is not
    installed.
    """
    with tempfile.TemporaryDirectory(prefix="hodyn_run_") as folder:
        commands = [_command(each, Path(folder, f"{i}.yaml")) for i, each in enumerate(processes)]
        return asyncio.run(_Supervisor(say).run(processes, commands))


class _Supervisor:
    def __init__(self, say: Say) -> None:
        self._say = say
        self._well = True
        self._ending = asyncio.Event()

    async def run(self, processes: Sequence[Process], commands: Sequence[Sequence[str]]) -> bool:
        """Keep all processes until they have ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it
                loop.add_signal_handler(number, self._end, f"ended by {number.name}")
        kept = [
            self._keep(process, command, f"{_title(process)}-{i}")
            for i, (process, command) in enumerate(zip(processes, commands), start=1)
        ]
        await asyncio.gather(*kept)
        return self._well

    def _end(self, why: str) -> None:
        if not self._ending.is_set():
            self._say(f"{why}; ending all")
            self._ending.set()

    async def _keep(self, process: Process, command: Sequence[str], title: str) -> None:
        """Start a process, and again where it is to respawn, until it has ended for good."""
        while not self._ending.is_set():
            code = await self._live(command, title)
            if self._ending.is_set():
                if code and process.required:
                    self._say(ending(title, code))
                    self._well = False
            elif process.respawn and code != CANNOT_START:
                self._say(f"{ending(title, code)}; starting it again")
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), RESPAWN_DELAY)
            else:
                self._say(ending(title, code))
                if process.required:
                    self._well = self._well and code == 0
                    self._end(f"{title} is required")
                return

    async def _live(self, command: Sequence[str], title: str) -> int:
        """Run a command to its end, and end it when all are to end; return how it ended."""
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", PARENT: str(os.getpid())},
            start_new_session=True,  # Ctrl-C in a terminal would reach it twice
        )
        self._say(f"{title}: process {child.pid} started")
        copying = asyncio.ensure_future(self._copy(child.stdout, title))
        stopping = asyncio.ensure_future(self._stop(child))
        code = await child.wait()
        stopping.cancel()
        # what it has started itself may still hold its output
        await asyncio.wait([copying], timeout=1.0)
        copying.cancel()
        return code

    async def _stop(self, child: asyncio.subprocess.Process) -> None:
        await self._ending.wait()
        for number, patience in _STEPS:
            with suppress(ProcessLookupError):
                child.send_signal(number)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(child.wait(), patience)
                return

    async def _copy(self, output: asyncio.StreamReader | None, title: str) -> None:
        rest = b""
        while output is not None and (piece := await output.read(65536)):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._say(f"[{title}] {line.decode(errors='replace')}")
        if rest:
            self._say(f"[{title}] {rest.decode(errors='replace')}")


def _title(process: Process) -> str:
    return process.name if isinstance(process, Command) else process.executable


def _command(process: Process, file: Path) -> list[str]:
    """Return the command of a process; the parameters of a node go through `file`."""
    if isinstance(process, Command):
        return list(process.command)
    ros = ["--log-level", process.log_level] if process.log_level else []
    ros += ["-r", f"__ns:={process.namespace}"]
    if process.name:
        ros += ["-r", f"__node:={process.name}"]
    node = f"{process.namespace.rstrip('/')}/{process.name}" if process.name else "/**"
    for i, parameters in enumerate(process.parameters):
        if isinstance(parameters, Path):
            path = parameters
        else:
            path = file.with_suffix(f".{i}.yaml")
            path.write_text(yaml.safe_dump({node: {"ros__parameters": dict(parameters)}}), encoding="utf-8")
        ros += ["--params-file", str(path)]
    for name, other in process.remappings.items():
        ros += ["-r", f"{name}:={other}"]
    program = str(executable(process.package, process.executable))
    # with this Python, whichever one the environment would find
    start = [sys.executable, program] if process.package == PACKAGE else [program]
    return [*start, *process.arguments, "--ros-args", *ros]
