"""The latency of dynamics_node on a machine under load, with its real-time settings and without."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.ros.latency import Passage, asked, lost
from benchmarks.ros.processes import DYNAMICS_NODE, in_namespace
from benchmarks.stopwatch import Figure
from benchmarks.table import Row, Section
from hodyn_ros.errors import InputError
from hodyn_ros.scheduling import lower_priority

ORDINARY, REALTIME = "ordinary", "realtime"
SETTINGS = {"priority": 60, "lock_memory": True, "garbage_collection": "frozen"}
_PERCENTS = {50.0: "median", 99.0: "99th percentile", 99.9: "99.9th percentile", 100.0: "latest"}


def arguments() -> list[str]:
    """Return the real-time settings as arguments of ROS."""
    return [word for name, value in SETTINGS.items() for word in ("-p", f"realtime.{name}:={value}".lower())]


def stressors() -> list[str]:
    """Return the command of the load: twice as many busy processes as cores, memory, and switches."""
    busy = 2 * len(os.sched_getaffinity(0))
    return ["stress-ng", "--cpu", str(busy), "--vm", "1", "--vm-bytes", "256M", "--switch", "1", "--quiet"]


@contextmanager
def load(lowest: bool = False) -> Iterator[None]:
    """Keep the machine busy, at the lowest priority or at that of this process; needs stress-ng."""
    if shutil.which("stress-ng") is None:
        raise InputError("stress-ng is not installed, which makes the load: apt-get install stress-ng")
    process = subprocess.Popen(stressors(), stdin=subprocess.DEVNULL, start_new_session=lowest)
    if lowest:
        lower_priority(19, process.pid)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def measure(rate: float, seconds: int, folder: Path, say: Callable[[str, float], None]) -> dict[str, Passage]:
    """Ask a node with real-time settings and one without in turns, for `seconds` both together, under load.

    Who asks has the settings as well, or it would measure itself.
    """
    commands = {
        ORDINARY: in_namespace(DYNAMICS_NODE, ORDINARY),
        REALTIME: [*in_namespace(DYNAMICS_NODE, REALTIME), *arguments()],
    }
    with load():
        return asked(commands, rate, max(2, seconds // 2), folder, say, ["--ros-args", *arguments()])


def section(passages: Mapping[str, Passage], rate: float) -> Section:
    """Return the rows, for the record."""
    plain, real = passages[ORDINARY], passages[REALTIME]
    rows = []
    for percent, words in _PERCENTS.items():
        mine, other = real.percentile(percent), plain.percentile(percent)
        rows.append(Row(words, "ordinary scheduling", Figure(*3 * [mine / other]), mine, other))
    title = f"dynamics_node at {rate:g} Hz under load, with real-time settings"
    return Section(title, [*rows, *map(lost, passages.items())])
