"""An elastic Panda that follows chunks of points which contradict each other, come late, and get lost.

Ten chunks a second, each of 50 points 20 ms apart, as policies send them: two chunks disagree by 10 mrad at
the seams, every fifth one comes late, and every twentieth never. On the left what a joint trajectory
controller makes of them: splines through the points that are continuous up to the acceleration, joined in
0.2 s to the motion that is under way. On the right `StreamPlanner`: continuous up to the snap and within all
limits, so that elastic feedforward (Mueller 2020, section I) has what it needs.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import grid, save
from scipy.interpolate import BPoly, CubicSpline

from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.streams.stream_planner import StreamPlanner, Taken
from hodyn_ros.simulation.closed_loop import GuardedController, run_loop
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory.robot_motion import MotionSample

Array = NDArray[np.float64]

PERIOD = 1e-3  # of the feedback on the motors [s]
DURATION = 2.0  # [s]
DISAGREE = 0.01  # [rad]
JOINED = 0.2  # [s] from the motion under way to a new spline
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
WAY = np.array([0.4, 0.3, 0.25, 0.4, 0.3, 0.3, 0.3])
SHOWN = 1  # joint 2 carries most


class Chunk(NamedTuple):
    """Points, and when they come."""

    arrival: float  # [s]
    times: Array  # (50,) [s]
    positions: Array  # (50, 7) [rad]


def chunks(duration: float) -> list[Chunk]:
    """Return the chunks in the order in which they come."""
    random = np.random.default_rng(5)
    found = []
    for k in range(int(10 * duration)):
        times = 0.1 * k + 0.02 * np.arange(50)
        u = np.clip(times, 0.0, 1.0)[:, None]
        rise = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        wave = HOME + rise * np.sin(2.5 * times[:, None]) * WAY
        offset = 0.5 * DISAGREE * random.choice([-1.0, 1.0], 7)
        late = random.uniform(0.05, 0.25) if k % 5 == 3 else 0.0
        if k % 20 != 11:
            found.append(Chunk(0.1 * k + late + 0.001, times, wave + offset * min(k, 1)))
    return sorted(found, key=lambda chunk: chunk.arrival)


def by_splines(messages: list[Chunk], times: Array) -> Array:
    """Return motions (N, 7, 7) up to derivative 6 by splines that are continuous up to the acceleration."""
    motion = np.zeros((len(times), 7, 7))
    motion[:, 0] = HOME
    for message in messages:
        begin = int(np.searchsorted(times, message.arrival))
        if begin >= len(times):
            break
        now, end = times[begin], times[begin] + JOINED
        through = CubicSpline(message.times, message.positions)
        target = np.stack([through(end, nu) for nu in range(3)])
        bridge = BPoly.from_derivatives([now, end], [motion[begin, :3], target])
        for order in range(7):
            on_bridge = (
                bridge(np.clip(times, now, end), nu=order) if order <= 5 else np.zeros((len(times), 7))
            )
            later = through(times, order) if order <= 3 else np.zeros((len(times), 7))
            motion[begin:, order] = np.where((times < end)[:, None], on_bridge, later)[begin:]
    return motion


def by_planner(robot: Robot, messages: list[Chunk], times: Array) -> tuple[Array, list[Taken], float]:
    """Return motions (N, 7, 7) of a stream planner, what it said, and the median time of a chunk [s]."""
    planner = StreamPlanner(robot, HOME, 0.0)
    motion, taken, spent, done = np.empty((len(times), 7, 7)), [], [], 0
    for message in messages:
        begin = int(np.searchsorted(times, message.arrival))
        motion[done:begin] = planner.sample(times[done:begin], 6)
        started = time.perf_counter()
        taken.append(planner.take(message.times, message.positions, message.arrival))
        spent.append(time.perf_counter() - started)
        done = max(begin, done)
    motion[done:] = planner.sample(times[done:], 6)
    return motion, taken, float(np.median(spent))


def link_errors(robot: Robot, motion: Array, mode: FeedforwardMode) -> Array:
    """Return the errors (N, 7) [rad] of the links, with sampled feedback on the motors."""
    drives = robot.require_drives()
    law = FeedforwardModel(robot, 4)
    gains = MotorGains.from_frequency(drives.motor_inertia, 30.0, 1.0)
    # without feedforward, errors are what would be a fault elsewhere
    config = GuardConfig(
        measured=True,
        settle=0.0,
        lead=0.5 * PERIOD,
        tracking_error=10.0,
        resolution=1.0,
        reference_step=1.0,
        effort_step=1e6,
        stop_on=Status.OK,
    )

    def reference(now: float) -> Reference:
        return motor_reference(mode, drives, law.compute(motion[round(now / PERIOD)]))

    control = GuardedController(CommandGuard(robot.joint_names, config, gains=gains), reference)
    record = run_loop(RobotSimulation(robot, HOME), control, PERIOD * (len(motion) - 1), PERIOD)
    return record.positions - motion[:, 0]


def shares(robot: Robot, motion: Array) -> dict[str, float]:
    """Return the largest share of a limit by quantity."""
    limits = LimitSet(robot)
    sizes = limits.usage(np.abs(limits.relative(MotionSample(motion[:, :6])).values)).max(axis=0)
    found: dict[str, float] = {}
    for column, size in zip(limits.columns, sizes):
        found[column.quantity] = max(float(size), found.get(column.quantity, 0.0))
    return found


def draw(robot: Robot, times: Array, motions: list[Array], errors: list[Array], path: Path) -> Path:
    """Draw acceleration, motor torque and link errors of both."""
    figure, axes = grid(
        3,
        2,
        8.0,
        "Chunks that disagree by 10 mrad, 20 % of them late, 5 % lost: an elastic Panda follows",
        "what is asked of joint 2, and link errors of all joints; feedback on the motors at 1 kHz",
    )
    drives = robot.require_drives()
    titles = ("splines that are continuous to the acceleration", "StreamPlanner")
    for column, (motion, title) in enumerate(zip(motions, titles)):
        stacked = np.ascontiguousarray(motion[:, :5])
        torque = drives.feedforward(stacked, robot.inverse_dynamics(stacked)).effort[:, 0, SHOWN]
        for ax, curve in zip(axes[:2, column], (motion[:, 3, SHOWN], torque)):
            ax.plot(times, curve, color="black", linewidth=1.2)
        axes[2, column].set_yscale("log")
        axes[2, column].set_xlabel("time [s]")
        axes[0, column].set_title(title, loc="left", fontsize=10)
    curves = ((0, "feedback alone", "#888888"), (0, "elastic feedforward", "#0072B2"), (1, "", "#0072B2"))
    for error, (column, name, colour) in zip(errors, curves):
        largest = 1e3 * np.abs(error).max(axis=1) + 1e-9
        axes[2, column].plot(times, largest, color=colour, linewidth=1.5, label=name or "_")
    for row, label in zip(axes, ("jerk [rad/s³]", "motor torque [N·m]", "largest link error [mrad]")):
        row[0].set_ylabel(label)
        lowest = min(ax.get_ylim()[0] for ax in row)
        highest = max(ax.get_ylim()[1] for ax in row)
        for ax in row:
            ax.set_ylim(lowest, highest)
    for ax in axes[2]:
        ax.set_ylim(bottom=1e-5)
    return save(figure, path, axes[2, :1])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="1.2 s only.")] = False,
) -> None:
    """Follow chunks by splines and by a stream planner."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    duration = 1.2 if quick else DURATION
    messages = chunks(duration)
    times = PERIOD * np.arange(round(duration / PERIOD) + 1)
    smooth, taken, spent = by_planner(panda, messages, times)
    motions = [by_splines(messages, times), smooth]
    none, elastic = FeedforwardMode.NONE, FeedforwardMode.ELASTIC
    runs = ((motions[0], none), (motions[0], elastic), (smooth, elastic))
    errors = [link_errors(panda, motion, mode) for motion, mode in runs]
    found = [shares(panda, motion) for motion in motions]
    print(f"{len(taken)} chunks, {sum(each.followed for each in taken)} followed; ", end="")
    print(f"delay {max(each.delay for each in taken):.3f} s at most; {1e3 * spent:.2f} ms a chunk")
    labels = ("splines, feedback alone", "splines, elastic feedforward", "stream, elastic feedforward")
    print("link error RMS [rad]")
    for label, error in zip(labels, errors):
        print(f"{label:30s}  {np.sqrt(np.mean(error**2)):9.2e}")
    print("largest share of a limit [%]  splines  stream")
    for quantity in found[0]:
        print(f"{quantity:28s}  {100.0 * found[0][quantity]:7.1f}  {100.0 * found[1][quantity]:6.1f}")
    print(f"wrote {draw(panda, times, motions, errors, out / 'stream_of_chunks.png')}")


if __name__ == "__main__":
    typer.run(main)
