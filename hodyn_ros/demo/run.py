"""Follow the Panda's published excitation trajectory with each kind of feedforward."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.demo.processes import Nodes, own_domain
from hodyn_ros.demo.report import CAPTION, summarise, summary_table, verdict, what_was_too_slow
from hodyn_ros.errors import HodynError
from hodyn_ros.ros_presence import require_ros
from hodyn_ros.simulation.pictures import plot_demo
from hodyn_ros.simulation.recording import Recording
from hodyn_ros.tables import say

MODES = tuple(mode.value for mode in FeedforwardMode)
ROBOT, TRAJECTORY = "panda.yaml", "panda_excitation.yaml"

RAMP = 2.0  # [s] from rest to full speed, and back to rest; not counted
ORDER = 2  # of the feedforward: torque, torque rate, torque acceleration

_WAY_TO_THE_ROBOT = 2e-4  # [s] about what a command takes from the controller to the simulated robot
# A busy machine holds messages up, and without feedforward an arm sags: none of it is a fault here.
_TOLERANT = {"timeout": 0.1, "measurement_timeout": 0.1, "latency": 0.02, "join_within": 0.2}

News = Mapping[str, Any]
Show = Callable[[float, str], None]


class Run(NamedTuple):
    """One motion, recorded."""

    recording: Recording
    real_time: bool  # the nodes had real-time scheduling


class DemoError(HodynError):
    """The demo cannot be run, or a process of it has failed."""


def run_demo(duration: float, out: Path, rate: float, console: Console) -> dict[str, Any]:
    """Follow the motion in each mode, `duration` [s] at `rate` [Hz]; write a figure and the figures to `out`.

    Returns what `summary.json` holds; `too_slow` says why its figures are void, if they are. Raises
    HodynError when ROS 2 is missing or a process fails.
    """
    require_ros("the demo")
    out.mkdir(parents=True, exist_ok=True)
    runs = {}
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:20}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %  [dim]{task.fields[news]}"),
    )
    with own_domain() as domain, Progress(*columns, console=console, refresh_per_second=4) as progress:
        for mode in MODES:
            task = progress.add_task(f"feedforward {mode}", total=duration + 2.0 * RAMP, news="")

            def show(done: float, news: str, task: Any = task) -> None:
                progress.update(task, completed=done, news=news)

            runs[mode] = record(mode, duration, rate, domain, out / mode, show)
    recordings = {mode: run.recording for mode, run in runs.items()}
    figures = {mode: summarise(each, RAMP, RAMP + duration, rate) for mode, each in recordings.items()}
    too_slow = what_was_too_slow(figures)
    summary = {
        "robot": ROBOT,
        "trajectory": TRAJECTORY,
        "duration_s": duration,
        "rate_hz": rate,
        "real_time_scheduling": all(run.real_time for run in runs.values()),
        "runs": figures,
        "too_slow": too_slow,
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    plot_demo(recordings, RAMP, RAMP + duration, out / "demo.png")
    console.print("Panda with elastic joints on its excitation trajectory", style="bold")
    console.print(summary_table(figures))
    console.print(CAPTION, style="dim")
    if too_slow:
        console.print(
            "The figures are void: this machine was too slow, or busy with something else. Try again when it "
            f"does nothing else, or at less than --rate {rate:g}.",
            style="red",
        )
        for line in too_slow:
            console.print(f"- {line}", style="red")
    else:
        console.print(verdict(figures))
    say(console, f"written: {out / 'demo.png'}, {out / 'summary.json'}")
    return summary


def record(mode: str, duration: float, rate: float, domain: int, folder: Path, show: Show) -> Run:
    """Start the nodes, follow the motion while it is recorded, end the nodes, and return what was seen."""
    file = folder / "recording.npz"
    file.unlink(missing_ok=True)
    show(0.0, "starting the nodes")
    with Nodes(domain, folder) as nodes:
        nodes.start("dynamics_node", {"robot_config": ROBOT, "order": ORDER})
        nodes.start("simulator_node", {"robot_config": ROBOT, "trajectory": TRAJECTORY, "rate": rate})
        timing = {"lead": 0.5 / rate + _WAY_TO_THE_ROBOT, "patience": 1.5 / rate}
        controller = {"robot_config": ROBOT, "feedforward": mode, **timing, **_TOLERANT}
        nodes.start("controller_node", controller)
        motion = {
            "trajectory": TRAJECTORY,
            "order": ORDER + 2,
            "rate": rate,
            "ramp": RAMP,
            "duration": duration,
            "auto_start": False,
        }
        nodes.start("trajectory_node", motion)
        output = nodes.start("monitor", {"file": file, "orders": ORDER + 3}, heard=True)
        _follow(nodes, _news(output), show)
        real_time = nodes.real_time
    return Run(Recording.load(file), real_time)


def _follow(nodes: Nodes, lines: queue.Queue[News | None], show: Show) -> None:
    """Show what the monitor says until it is done; raise HodynError when it fails, or any node does."""
    while True:
        try:
            news = lines.get(timeout=0.5)
        except queue.Empty:
            nodes.check()
            continue
        if news is None:
            nodes.wait("monitor")
            nodes.check()
            raise DemoError("the monitor has ended before its time")
        if news["state"] == "done":
            nodes.wait("monitor")
            show(news["elapsed"], "done")
            return
        nodes.check("monitor")
        if news["state"] == "failed":
            raise DemoError(news["text"])
        if news["state"] == "waiting":
            show(0.0, f"waiting for {news['missing'][0]}")
        else:
            show(news["elapsed"], news["state"])


def _news(output: IO[str]) -> queue.Queue[News | None]:
    """Return a queue of what a process says in lines of JSON; None when it has nothing more to say."""
    result: queue.Queue[News | None] = queue.Queue()

    def read() -> None:
        for line in output:
            result.put(json.loads(line))
        result.put(None)

    threading.Thread(target=read, daemon=True).start()
    return result
