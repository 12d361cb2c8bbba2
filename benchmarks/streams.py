"""Points that come while a robot moves: how late and how far off it follows, and what that asks of drives."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from time import process_time
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BPoly
from scipy.signal import butter, lfilter, lfilter_zi

from benchmarks.insensitive import limited_panda
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.streams.stream_config import Mode, PointsError, StreamConfig
from hodyn_ros.planning.streams.stream_planner import StreamPlanner
from hodyn_ros.planning.streams.tracking_planner import TrackingPlanner
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.simulation.closed_loop import GuardedController, run_loop
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.robot_motion import MotionSample

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
PERIOD = 1e-3  # [s] from sample to sample of what is followed
_NOISE = 1e-3  # [rad]
_POINTS = 0.02  # [s] between two
_ARRIVES = 0.002  # [s] after its stamp
_SETTLED = 2.0  # [s] from when on is compared
_FAR = 0.3  # [rad]
_CHANGED = 0.6  # [s]
_BRIDGE = 0.2  # [s] of a spline from the motion under way to a new target
_ORDER = 5


class Message(NamedTuple):
    """Points, and when they come."""

    arrival: float  # [s]
    times: Array  # (N,) [s]
    positions: Array  # (N, 7) [rad]


class Followed(NamedTuple):
    """A motion (N, 6, 7) that follows points, how many messages it ignored, and the time of one [s]."""

    motion: Array
    rejected: int = 0
    seconds: float = 0.0


def hand(times: Array) -> Array:
    """Return where an operator leads (N, 7) [rad]: sines of up to 1.3 Hz that rise from rest."""
    t = np.asarray(times)[:, None]
    u = np.clip(t, 0.0, 1.0)
    waves = ((0.23, 0.15), (0.57, 0.06), (0.9, 0.025), (1.3, 0.012))
    phases = 1.3 * np.arange(7)
    total = sum(size * np.sin(2.0 * np.pi * f * (t + phases)) for f, size in waves)
    return np.asarray(HOME + u**3 * (10.0 - 15.0 * u + 6.0 * u * u) * total)


def teleoperation(seed: int, duration: float) -> list[Message]:
    """Return single points at 50 Hz with noise of 1 mrad."""
    stamps = np.arange(0.0, duration, _POINTS)
    points = hand(stamps) + _NOISE * np.random.default_rng(seed).normal(size=(len(stamps), 7))
    return [Message(s + _ARRIVES, np.array([s]), p[None]) for s, p in zip(stamps, points)]


def change(way: Array, points: int, seed: int, phase: float) -> list[Message]:
    """Return messages of a target that is set anew after a while: single noisy points, or chunks."""
    random = np.random.default_rng(seed)
    apart, noise = (_POINTS, _NOISE) if points == 1 else (0.1, 0.0)
    stamps = phase + apart * np.arange(round(1.4 / apart))
    return [
        Message(
            s + _ARRIVES,
            s + _POINTS * np.arange(points),
            HOME + way * (s > _CHANGED) + noise * random.normal(size=(points, 7)),
        )
        for s in stamps
    ]


# who follows


def by_planner(robot: Robot, messages: Sequence[Message], duration: float, config: StreamConfig) -> Followed:
    """Follow messages as `stream_node` does."""
    kind = TrackingPlanner if config.mode is Mode.TRACK else StreamPlanner
    planner = kind(robot, HOME, 0.0, config)
    times = _times(duration)
    motion, spent, rejected, done = np.empty((len(times), _ORDER + 1, 7)), [], 0, 0
    for message in messages:
        begin = int(np.searchsorted(times, message.arrival))
        motion[done:begin] = planner.sample(times[done:begin], _ORDER)
        started = process_time()
        try:
            rejected += not planner.take(message.times, message.positions, message.arrival).followed
        except PointsError:
            rejected += 1
        spent.append(process_time() - started)
        done = max(begin, done)
    motion[done:] = planner.sample(times[done:], _ORDER)
    return Followed(motion, rejected, median(spent))


def by_ruckig(robot: Robot, messages: Sequence[Message], duration: float) -> Followed:
    """Follow the last point by ruckig's online trajectories, with the limits of the data sheet."""
    ruckig = import_module("ruckig")
    online, asked, found = ruckig.Ruckig(7, PERIOD), ruckig.InputParameter(7), ruckig.OutputParameter(7)
    limits = robot.limits
    asked.max_velocity, asked.max_acceleration = limits.velocity.tolist(), limits.acceleration.tolist()
    asked.max_jerk, asked.synchronization = limits.jerk.tolist(), ruckig.Synchronization.No
    asked.current_position = asked.target_position = HOME.tolist()
    times = _times(duration)
    motion = np.zeros((len(times), _ORDER + 1, 7))
    motion[0, 0], waiting = HOME, list(messages)
    for i, now in enumerate(times[:-1]):
        while waiting and waiting[0].arrival <= now:
            asked.target_position = waiting.pop(0).positions[0].tolist()
        online.update(asked, found)
        motion[i + 1, :3] = found.new_position, found.new_velocity, found.new_acceleration
        found.pass_to_input(asked)
    motion[:-1, 3] = np.diff(motion[:, 2], axis=0) / PERIOD
    return Followed(motion)


def by_low_pass(messages: Sequence[Message], duration: float) -> Followed:
    """Follow the last point through a Butterworth filter of order 4 at 5 Hz."""
    times = _times(duration)
    came = np.array([message.arrival for message in messages])
    held = np.stack([message.positions[0] for message in messages])
    held = np.concatenate([HOME[None], held])[np.searchsorted(came, times, side="right")]
    numerator, denominator = butter(4, 5.0, fs=1.0 / PERIOD)
    motion = np.empty((len(times), _ORDER + 1, 7))
    start = lfilter_zi(numerator, denominator)[:, None] * HOME
    motion[:, 0] = lfilter(numerator, denominator, held, axis=0, zi=start)[0]
    for order in range(_ORDER):
        motion[:, order + 1] = np.gradient(motion[:, order], PERIOD, axis=0)
    return Followed(motion)


def by_splines(way: Array, phase: float, duration: float) -> Followed:
    """Go to the new target as a joint trajectory controller does: by a spline from the present state."""
    times = _times(duration)
    begin = phase + _POINTS * np.ceil((_CHANGED - phase) / _POINTS) + _ARRIVES
    rest = np.zeros((3, 7))
    here, there = rest.copy(), rest.copy()
    here[0], there[0] = HOME, HOME + way
    bridge = BPoly.from_derivatives([begin, begin + _BRIDGE], [here, there])
    inside = (times >= begin) & (times < begin + _BRIDGE)
    clipped = np.clip(times, begin, begin + _BRIDGE)
    columns = [bridge(clipped, nu=k) * (1.0 if k == 0 else inside[:, None]) for k in range(_ORDER + 1)]
    return Followed(np.stack(columns, axis=1))


# figures


def delay_and_distances(motion: Array) -> tuple[float, float, float]:
    """Return the delay [s] of the highest correlation, and what is off then: RMS and at most [rad]."""
    times = _times(PERIOD * (len(motion) - 1))
    late = times > _SETTLED
    moved = motion[late, 0] - motion[late, 0].mean(axis=0)

    def missed(delay: float) -> float:
        led = hand(np.asarray(times[late] - delay, dtype=np.float64))
        led -= led.mean(axis=0)
        return -float(np.sum(moved * led) / np.sqrt(np.sum(led * led)))

    delays = np.arange(-0.05, 0.7, 1e-3)
    delay = float(delays[np.argmin([missed(each) for each in delays])])
    off = motion[late, 0] - hand(np.asarray(times[late] - delay, dtype=np.float64))
    return delay, float(np.sqrt(np.mean(off * off))), float(np.abs(off).max())


def arrival(times: Array, positions: Array, way: Array) -> float:
    """Return when [s] all joints that are to move have done 90 % of their way."""
    share = ((positions - HOME)[:, way != 0.0] / way[way != 0.0]).min(axis=1)
    return float(times[np.argmax(share > 0.9)])


def shares(robot: Robot, motion: Array) -> dict[str, float]:
    """Return the largest share of a limit by quantity."""
    limits = LimitSet(robot)
    sizes = limits.usage(np.abs(limits.relative(MotionSample(motion)).values)).max(axis=0)
    found: dict[str, float] = {}
    for column, size in zip(limits.columns, sizes):
        found[column.quantity] = max(float(size), found.get(column.quantity, 0.0))
    return found


def link_errors(robot: Robot, motion: Array) -> float:
    """Return the RMS [rad] of what links of the elastic robot are off, with elastic feedforward."""
    drives = robot.require_drives()
    model = FeedforwardModel(robot, 4)
    gains = MotorGains.from_frequency(drives.motor_inertia, 30.0, 1.0)
    config = GuardConfig(  # what is compared is no fault here
        measured=True,
        settle=0.0,
        lead=0.5 * PERIOD,
        tracking_error=10.0,
        resolution=1.0,
        reference_step=1.0,
        effort_step=1e6,
        stop_on=Status.OK,
    )
    columns = np.ascontiguousarray(motion[:, : _ORDER + 2])

    def reference(now: float) -> Reference:
        return motor_reference(
            FeedforwardMode.ELASTIC, drives, model.compute(np.vstack([columns[round(now / PERIOD)], _ZERO]))
        )

    control = GuardedController(CommandGuard(robot.joint_names, config, gains=gains), reference)
    record = run_loop(RobotSimulation(robot, HOME), control, PERIOD * (len(motion) - 1), PERIOD)
    return float(np.sqrt(np.mean((record.positions - motion[:, 0]) ** 2)))


_ZERO = np.zeros((1, 7))
_WAYS = (np.array([_FAR] * 6 + [-_FAR]), np.array([0.0, _FAR, 0.0, 0.0, 0.0, 0.0, 0.0]))


def measure(stage: Stage) -> Section:
    """Compare how points are followed by this project and by others."""
    robot = limited_panda()
    duration = 5.0 if stage.quick else 10.0
    messages = teleoperation(0, duration)
    stage.say("streams: teleoperation", 0.0)
    followed = {
        "ours": by_planner(robot, messages, duration, StreamConfig(Mode.TRACK)),
        "ruckig": by_ruckig(robot, messages, duration),
        "low-pass": by_low_pass(messages, duration),
    }
    found = {name: delay_and_distances(each.motion) for name, each in followed.items()}
    used = {name: shares(robot, each.motion[200:]) for name, each in followed.items()}
    stage.say("streams: links", 0.4)
    swings = {name: link_errors(robot, followed[name].motion[:3000]) for name in ("ours", "ruckig")}
    work = "teleoperation, 50 Hz with 1 mrad of noise"
    others = ", ".join(f"{name} {1e3 * found[name][0]:.0f} ms" for name in ("ruckig", "low-pass"))
    far = ", ".join(f"{name} {1e3 * found[name][2]:.1f} mrad" for name in ("ruckig", "low-pass"))
    rates = ", ".join(f"{name} {used[name]['torque rate']:.2g}" for name in ("ruckig", "low-pass"))
    rows = [
        _row(f"{work}: delay", others, 1e3 * found["ours"][0], "ms", Bound(60.0), Bound(40.0)),
        _row(f"{work}: largest distance then", far, 1e3 * found["ours"][2], "mrad", Bound(3.0)),
        _row(
            f"{work}: largest use of a limit", "the limit", max(used["ours"].values()), "×", Bound(1.0 + 1e-6)
        ),
        _row(f"{work}: torque rate, of its limit", rates, used["ours"]["torque rate"], "×", Bound(1.0)),
        _row(
            f"{work}: errors of elastic links, times smaller",
            "ruckig",
            swings["ruckig"] / swings["ours"],
            "×",
            Bound(100.0, at_least=True),
        ),
        _row(f"{work}: messages not followed", "none", followed["ours"].rejected, "", Bound(0.0)),
        _row(
            f"{work}: processor time of a message", "none", 1e3 * followed["ours"].seconds, "ms", Bound(4.0)
        ),
    ]
    disagreeing = by_planner(robot, _disagreeing(30), 0.1, StreamConfig(Mode.INTERPOLATE))
    work = "chunks of 50 points that disagree"
    rows.append(
        _row(f"{work}: processor time of a message", "none", 1e3 * disagreeing.seconds, "ms", Bound(4.0))
    )
    stage.say("streams: changes of target", 0.7)
    return Section("streams of points, an elastic Panda", [*rows, *_changes(robot, 1 if stage.quick else 4)])


def _disagreeing(count: int) -> list[Message]:
    """Return chunks of which each has another swing than the one before."""
    times, share = np.linspace(0.0, 49 * _POINTS, 50), np.linspace(1.0, 0.3, 7)
    return [
        Message(0.1 * k, times + 0.1 * k, HOME + 0.1 * np.sin(1.5 * (times + 0.1 * k))[:, None] * share)
        for k in range(count)
    ]


def _changes(robot: Robot, count: int) -> list[Row]:
    """Return how soon 90 % of a new way of 0.3 rad are done, against the fastest motion that there is."""
    rows = []
    for points, work in ((1, "single points"), (50, "chunks")):
        ratios, rejected = [], 0
        for way in _WAYS:
            path = WaypointSpline(np.array([0.0, 1.0]), np.stack([HOME, HOME + way]))
            fastest = time_optimal(path, robot).law
            times = np.linspace(0.0, fastest.duration, 2001)
            least = arrival(times, fastest.sample(times, 0)[:, 0], way)
            for seed in range(count):
                phase = _POINTS * seed / count
                messages = change(way, points, seed, phase)
                done = by_planner(robot, messages, 1.4, StreamConfig(Mode.TRACK))
                came = next(each.arrival for each in messages if each.arrival - _ARRIVES > _CHANGED)
                ratios.append((arrival(_times(1.4), done.motion[:, 0], way) - came) / least)
                rejected += done.rejected
        name = f"target 0.3 rad away, {work}"
        rows.append(
            _row(f"{name}: 90 % of the way, median", "the fastest motion", median(ratios), "×", Bound(1.1))
        )
        rows.append(_row(f"{name}: messages not followed", "none", rejected, "", Bound(0.0)))
    return rows


def _row(work: str, against: str, value: float, unit: str, must: Bound, aim: Bound | None = None) -> Row:
    return Row(work, against, Figure.exact(value), must=must, aim=aim, unit=unit)


def _times(duration: float) -> Array:
    return np.asarray(PERIOD * np.arange(round(duration / PERIOD) + 1), dtype=np.float64)


def draw(path: Path) -> None:
    """Draw how a noisy target and a new one are followed, and the torque rates that it takes."""
    from matplotlib.figure import Figure as Picture

    from hodyn_ros.pictures import legend_below, plain, save_picture

    robot, joint, duration = limited_panda(), 1, 4.0
    noisy, anew = teleoperation(0, duration), change(_WAYS[1], 1, 0, 0.0)
    columns = [
        (noisy, duration, (2.6, 3.4), None),
        (anew, 1.4, (0.55, 1.3), by_splines(_WAYS[1], 0.0, 1.4)),
    ]
    picture = Picture(figsize=(10.5, 6.0), layout="constrained")
    axes = picture.subplots(2, 2, sharex="col")
    lines, labels = [], []
    for (messages, lasts, shown, splines), (top, bottom) in zip(columns, axes.T):
        times = _times(lasts)
        came = [message.arrival for message in messages]
        top.plot(came, [m.positions[0, joint] for m in messages], ".", color="#BBBBBB", markersize=4)
        followed = [
            ("ruckig", "#E8A798", by_ruckig(robot, messages, lasts)),
            ("low-pass of 5 Hz", "#EE7733", by_low_pass(messages, lasts)),
        ]
        if splines is not None:
            followed.append(("splines of 0.2 s", "#009988", splines))
        ours = by_planner(robot, messages, lasts, StreamConfig(Mode.TRACK))
        followed.append(("this project", "#0077BB", ours))
        for name, colour, each in followed:
            (line,) = top.plot(times, each.motion[:, 0, joint], color=colour, linewidth=1.5)
            torques = robot.inverse_dynamics(np.ascontiguousarray(each.motion[:, :4]))
            share = torques[:, 1, joint] / robot.limits.effort_rate[joint]
            bottom.plot(times, share, color=colour, linewidth=1.2)
            if name not in labels:
                lines.append(line)
                labels.append(name)
        for ax in (top, bottom):
            ax.set_xlim(*shown)
            plain(ax)
        inside = [m.positions[0, joint] for m in messages if shown[0] < m.arrival < shown[1]]
        top.set_ylim(min(inside) - 0.03, max(inside) + 0.03)
        bottom.set_ylim(-2.0, 2.0)
        bottom.axhspan(-1.0, 1.0, color="black", alpha=0.06)
        bottom.set_xlabel("time [s]")
    axes[0, 0].set_title("teleoperation: 50 Hz, 1 mrad of noise", loc="left", fontsize=10)
    axes[0, 1].set_title("a target set anew, 0.3 rad away", loc="left", fontsize=10)
    axes[0, 0].set_ylabel("joint 2 [rad]")
    axes[1, 0].set_ylabel("torque rate, of its limit")
    legend_below(picture, lines, labels)
    save_picture(picture, path)


if __name__ == "__main__":
    draw(Path("docs/pictures/streams_followed.png"))
