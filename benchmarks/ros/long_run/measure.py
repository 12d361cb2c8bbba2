"""Starts everything, watches memory and processor time of each process, and ends it all."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

from benchmarks.ros import load
from benchmarks.ros.processes import Process, environment, module, processor_time, resident
from hodyn_ros.demo.processes import own_domain
from hodyn_ros.errors import HodynError

LAUNCH = Path(__file__).with_name("everything.launch.py")
BAG, SAMPLES = "bag", "samples.jsonl"

_STARTED = re.compile(r"(\w+)-\d+: process (\d+) started")
_PATIENCE = 60.0  # [s] that the nodes get to start
_ENDING = 60.0  # [s] that they get to end, the recorder with the index of an hour
_LAST_ANSWERS = 1.0  # [s] that the last answers get to arrive
_STEAL = 8  # place of `steal` in the first line of /proc/stat, proc(5)
_SETTLING = 5.0  # [s] from the first commands on

Say = Callable[[str, float], None]


def measure(
    seconds: float,
    rate: float,
    command_rate: float,
    folder: Path,
    say: Say,
    *,
    busy: bool,
    realtime: bool,
    keep_bag: bool = False,
) -> None:
    """Run everything for so long [s], motion and commands at two rates [Hz]; what was seen is in `folder`.

    `busy`: beside the load of `benchmarks.ros.load`; `realtime`: with the settings that it has for nodes.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arguments = [f"rate:={rate}", f"command_rate:={command_rate}", f"bag:={folder / BAG}"]
    settings: list[str] = []
    if realtime:
        settings = ["--ros-args", *load.arguments()]
        file = folder / "realtime.yaml"
        file.write_text(json.dumps({"/**": {"ros__parameters": {"realtime": load.SETTINGS}}}))
        arguments.append(f"params_file:={file}")
    with ExitStack() as stack:
        around = environment(stack.enter_context(own_domain()), folder)
        if busy:
            stack.enter_context(load.load(lowest=True))
        launch = Process(
            module("hodyn_ros.cli.app", "run", str(LAUNCH), *arguments), around, folder / "launch.err"
        )
        if not keep_bag:
            stack.callback(shutil.rmtree, folder / BAG, ignore_errors=True)
        stack.callback(launch.stop, _ENDING)
        nodes: dict[str, int] = {}
        Thread(target=_read, args=(launch.lines(), nodes, folder / "launch.log"), daemon=True).start()
        command = module("benchmarks.ros.long_run.witness", str(folder), *settings)
        witness = Process(command, around, folder / "witness.log")
        stack.callback(witness.stop)
        say("waiting for the nodes", 0.0)
        _wait_for_commands(folder, launch)
        _sample(seconds, nodes, witness, launch, folder, say)
        time.sleep(_LAST_ANSWERS)
    say("done", 1.0)


def _read(lines: Iterator[str], nodes: dict[str, int], log: Path) -> None:
    """Keep what the launch says, and which process is which node."""
    with log.open("w") as file:
        for line in lines:
            print(line, file=file, flush=True)
            if found := _STARTED.match(line):
                nodes[found[1]] = int(found[2])


def _wait_for_commands(folder: Path, launch: Process) -> None:
    give_up_at = time.monotonic() + _PATIENCE
    file = folder / "effort_commands.rows"
    while not (file.is_file() and file.stat().st_size):
        launch.check()
        if time.monotonic() > give_up_at:
            raise HodynError(f"nothing was commanded within {_PATIENCE:g} s, see {folder / 'launch.log'}")
        time.sleep(0.5)
    time.sleep(_SETTLING)


def _sample(
    seconds: float, nodes: Mapping[str, int], witness: Process, launch: Process, folder: Path, say: Say
) -> None:
    """Write memory [MiB] and processor time [s] of all processes, a hundred times or once a minute."""
    period = max(1.0, min(60.0, seconds / 100.0))
    begin = time.monotonic()
    with (folder / SAMPLES).open("w") as file:
        for count in range(int(seconds / period) + 1):
            while (left := begin + count * period - time.monotonic()) > 0.0:
                say(
                    f"{time.monotonic() - begin:.0f} of {seconds:.0f} s",
                    1.0 - (count * period - left) / seconds,
                )
                launch.check()
                witness.check()
                time.sleep(min(1.0, left))
            line = {
                "at": time.time(),
                "load": os.getloadavg()[0],
                "stolen": _stolen(),
                "memory": _of_each(nodes, resident),
                "processor": _of_each(nodes, processor_time),
            }
            print(json.dumps(line), file=file, flush=True)


def _stolen() -> float:
    """Return what the host of a virtual machine has kept from all its processors so far [s]."""
    ticks = Path("/proc/stat").read_text().split(maxsplit=9)[_STEAL]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def _of_each(nodes: Mapping[str, int], figure: Callable[[int], float]) -> dict[str, float]:
    """Return a figure of each process, but of those that end just now."""
    figures = {}
    for name, pid in nodes.items():
        with suppress(FileNotFoundError, ProcessLookupError):
            figures[name] = figure(pid)
    return figures
