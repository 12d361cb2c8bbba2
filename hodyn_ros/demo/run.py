"""Follow the Panda's published excitation trajectory with each kind of feedforward."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.demo.processes import Nodes, own_domain
from hodyn_ros.errors import HodynError
from hodyn_ros.outputs import write_text
from hodyn_ros.ros_presence import require_ros
from hodyn_ros.simulation.pictures import plot_demo
from hodyn_ros.simulation.recording import Recording, latencies, tracking
from hodyn_ros.tables import FittingTable, number, say, table

MODES = tuple(mode.value for mode in FeedforwardMode)
ROBOT, TRAJECTORY = "panda.yaml", "panda_excitation.yaml"

RATES = (500.0, 250.0, 125.0)  # [Hz] of samples, until the machine keeps up, where none is asked for
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
    figures: dict[str, Any]  # of it
    real_time: bool  # the nodes had real-time scheduling


class DemoError(HodynError):
    """The demo cannot be run, or a process of it has failed."""


class HeldUpError(DemoError):
    """All nodes run, and do not do what they should: on a machine that is too slow, or busy."""


def run_demo(duration: float, out: Path, rate: float | None, console: Console) -> dict[str, Any]:
    """Follow the motion in each mode for `duration` [s]; write a figure and the figures to `out`.

    At `rate` [Hz], or at the highest of `RATES` at which the machine keeps up. Returns what `summary.json`
    holds; `too_slow` says why its figures are void, if they are. Raises HodynError when ROS 2 is missing or
    a process fails.
    """
    require_ros("the demo")
    out.mkdir(parents=True, exist_ok=True)
    *higher, last = RATES if rate is None else (rate,)
    for too_high in higher:
        try:
            runs = follow_in_each_mode(duration, out, too_high, console, until_too_slow=True)
            reasons = what_was_too_slow(figures_of(runs))
        except HeldUpError as error:
            reasons = [str(error)]
        if not reasons:
            return report(runs, duration, too_high, out, console)
        console.print(f"This machine does not keep up at {too_high:g} Hz: {reasons[0]}.", style="yellow")
    return report(follow_in_each_mode(duration, out, last, console), duration, last, out, console)


def follow_in_each_mode(
    duration: float, out: Path, rate: float, console: Console, until_too_slow: bool = False
) -> dict[str, Run]:
    """Return a run in each mode; or, `until_too_slow`, those up to the first for which the machine was."""
    runs: dict[str, Run] = {}
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
            if until_too_slow and _slow(mode, runs[mode].figures):
                break
    return runs


def figures_of(runs: Mapping[str, Run]) -> dict[str, dict[str, Any]]:
    """Return the figures of each run, by its mode."""
    return {mode: run.figures for mode, run in runs.items()}


def report(
    runs: Mapping[str, Run], duration: float, rate: float, out: Path, console: Console
) -> dict[str, Any]:
    """Write and show what came of the runs in all modes; return what `summary.json` holds."""
    figures = figures_of(runs)
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
    write_text(out / "summary.json", json.dumps(summary, indent=2) + "\n")
    recordings = {mode: run.recording for mode, run in runs.items()}
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
        follow(nodes, _news(output), show)
        real_time = nodes.real_time
    recording = Recording.load(file)
    return Run(recording, summarise(recording, RAMP, RAMP + duration, rate), real_time)


def follow(nodes: Nodes, lines: queue.Queue[News | None], show: Show) -> None:
    """Show what the monitor says until it is done; raise HodynError when it fails, or any node does."""
    while True:
        try:
            news = lines.get(timeout=0.5)
        except queue.Empty:
            nodes.check("monitor")  # whose last lines may still be on their way when it has ended
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
            raise (HeldUpError if news["all_heard"] else DemoError)(news["text"])
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


Runs = Mapping[str, Mapping[str, Any]]

_MISSING = 1e-3  # share of the messages without which a run is another one
_DIVERGED = 0.25  # [rad], three times what feedback alone leaves on a machine that keeps up
_GAIN = 10.0  # of elastic over rigid feedforward, at least; on a machine that keeps up it is 80


def summarise(recording: Recording, begin: float, end: float, rate: float) -> dict[str, Any]:
    """Return the figures of one run: tracking from `begin` to `end` [s] of the motion, messages all along.

    `rate` [Hz] of the samples, of which a machine that is too slow skips some.
    """
    errors = tracking(recording, begin, end)
    span = (
        1e-9 * float(np.ptp(recording.feedforward_stamps))
        if len(recording.feedforward_stamps) > 1
        else np.nan
    )
    received = len(recording.feedforward_stamps)
    return {
        "rms_error_rad": errors.rms,
        "max_error_rad": errors.maximum,
        "messages_due": round(1e-9 * (recording.end - recording.start) * rate) + 1,
        "messages_sent": recording.samples_sent,
        "messages_received": received,
        "latency_us": _percentiles(latencies(recording)),
        "computation_us": _percentiles(recording.computation_times),
        "message_rate_hz": (received - 1) / span,
        "states_received": len(errors.times),
        "state_rate_hz": (len(errors.times) - 1) / (errors.times[-1] - errors.times[0]),
    }


def _percentiles(seconds: Array) -> dict[str, float]:
    p50, p99 = np.percentile(seconds, [50.0, 99.0]) * 1e6
    return {"p50": float(p50), "p99": float(p99)}


def summary_table(runs: Runs) -> FittingTable:
    """Return the table that is shown at the end; it fits 80 columns."""
    heads = ("feedforward", "RMS error\n[mrad]", "largest\n[mrad]", "rate\n[Hz]", "due", "missing")
    rows = [
        (
            mode,
            number(1e3 * run["rms_error_rad"], 3),
            number(1e3 * run["max_error_rad"], 3),
            f"{run['message_rate_hz']:.1f}",
            str(run["messages_due"]),
            str(_missing(run)),
            f"{run['latency_us']['p50']:.0f}",
            f"{run['latency_us']['p99']:.0f}",
        )
        for mode, run in runs.items()
    ]
    styles = ["red" if _slow(mode, run) else "" for mode, run in runs.items()]
    return table((*heads, "p50\n[µs]", "p99\n[µs]"), rows, styles=styles)


CAPTION = (
    "Messages from desired motion to feedforward torque: how many were due, and how many of them nobody "
    "sent, or got lost; p50 and p99 of their latency. offset: rigid feedforward, and motors that lead by "
    "torque over stiffness."
)


def what_was_too_slow(runs: Runs) -> list[str]:
    """Say why the figures are void, a line for each reason; none where they hold."""
    lines = [line for mode, run in runs.items() for line in _slow(mode, run)]
    if lines:
        return lines
    gain = runs["rigid"]["rms_error_rad"] / runs["elastic"]["rms_error_rad"]
    if gain >= _GAIN:
        return []
    return [f"elastic feedforward tracks {gain:.1f} times better than rigid, not {_GAIN:g} or more"]


def _slow(mode: str, run: Mapping[str, Any]) -> list[str]:
    due, missing, largest = run["messages_due"], _missing(run), run["max_error_rad"]
    lines = []
    if missing > _MISSING * due:
        lines.append(f"feedforward {mode}: {missing} of {due} messages are missing")
    if not largest <= _DIVERGED:
        lines.append(f"feedforward {mode}: the robot diverged, its largest error is {1e3 * largest:.0f} mrad")
    return lines


def _missing(run: Mapping[str, Any]) -> int:
    return int(run["messages_due"]) - int(run["messages_received"])


def verdict(runs: Runs) -> str:
    """Return the sentence that the demo is about."""
    errors = {mode: run["rms_error_rad"] for mode, run in runs.items()}
    over_rigid, over_offset = (errors[mode] / errors["elastic"] for mode in ("rigid", "offset"))
    beside = f"{over_offset:.2g} times better" if over_offset > 1.0 else "no better"  # where hold-ups decide
    return (
        f"Elastic feedforward tracks {over_rigid:.0f} times better than rigid feedforward, and "
        f"{beside} than rigid feedforward with motors that are offset (RMS)."
    )
