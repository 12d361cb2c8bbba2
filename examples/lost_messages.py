"""Messages are lost, and the torque of the Panda has no step: what derivatives in a message are for.

A feedforward comes 100 times a second and 10 % of it never arrives; a drive is given 1000 commands per
second. Held values make stairs. Carried on by the derivatives in the messages, the torque stays within the
bound that the next derivative sets: docs/ros2_control.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from pictures import AXIS_COLOURS, grid, save

from hodyn_ros import Robot, share
from hodyn_ros.feedforward.extrapolation import error_bound
from hodyn_ros.feedforward.feedforward import taylor
from hodyn_ros.lie.jets import Array
from hodyn_ros.trajectory import read_trajectory

START = 2.0  # [s] into the motion on which the Panda was identified
PERIOD = 10  # of the feedforward, in commands of 1 ms
LOSS = 0.1
ORDERS = (0, 1, 2)  # highest derivative in the message
NAMES = ("held", "1st derivative", "2nd derivative")
SHOWN = 2  # joint in the picture


class Run(NamedTuple):
    """The commands that come from messages up to one order."""

    errors: Array  # (commands, n) [N.m]
    distances: Array  # (commands,) from the message in use [s]
    largest_step: float  # at a message [N.m]


def exact_efforts(count: int, order: int) -> Array:
    """Return the torques of the Panda and their derivatives (count, order + 1, n), one each millisecond."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    motion = read_trajectory(share.find("config", "panda_excitation.yaml"))
    times = START + 1e-3 * np.arange(count)
    samples = motion.sample(times, order + 2)
    compiled = robot.compile(order)
    return np.array([compiled(np.ascontiguousarray(sample)) for sample in samples])


def follow(efforts: Array, kept: Array, order: int) -> Run:
    """Give a command each millisecond by the messages that arrive; the first one does."""
    commands, distances, steps, last = [], [], [0.0], 0
    for k in range(len(efforts)):
        if k % PERIOD == 0 and kept[k // PERIOD]:
            steps.append(
                float(np.abs(efforts[k, 0] - taylor(efforts[last, : order + 1], 1e-3 * (k - last))).max())
            )
            last = k
        commands.append(taylor(efforts[last, : order + 1], 1e-3 * (k - last)))
        distances.append(1e-3 * (k - last))
    return Run(np.array(commands) - efforts[:, 0], np.array(distances), max(steps))


def draw(efforts: Array, kept: Array, runs: list[Run], bounds: Array, path: Path) -> Path:
    """Draw the torque of one joint around lost messages, and the errors of all joints with their bounds."""
    lost = PERIOD * np.flatnonzero(~kept)
    end = int(np.argmax(runs[0].distances))  # of the longest gap
    window = slice(max(end - 90, 0), end + 60)
    times = START + 1e-3 * np.arange(len(efforts))
    figure, axes = grid(
        1,
        2,
        5.5,
        "A feedforward at 100 Hz with 10 % of its messages lost, and commands at 1 kHz",
        "left: the torque of one joint about lost messages (crosses); right: largest errors and bounds",
    )
    left, right = axes[0]
    left.plot(times[window], efforts[window, 0, SHOWN - 1], color="black", linewidth=1.0, label="exact")
    for order, (run, name, colour) in enumerate(zip(runs, NAMES, AXIS_COLOURS)):
        found = efforts[:, 0] + run.errors
        if order != 1:  # could not be told from the exact one either
            left.step(times[window], found[window, SHOWN - 1], where="post", color=colour, linewidth=1.5)
        worst = np.abs(run.errors).max(axis=1).reshape(-1, PERIOD).max(axis=1)
        right.semilogy(times[::PERIOD], worst, ".", color=colour, markersize=3, label=name)
        right.axhline(bounds[order].max(), color=colour, linestyle="--", linewidth=1.0)
    shown = lost[(window.start <= lost) & (lost < window.stop)]
    left.plot(times[shown], efforts[shown, 0, SHOWN - 1], "x", color="black", markersize=9)
    left.set_ylabel(f"torque of panda_joint{SHOWN} [N·m]")
    right.set_ylabel("largest error of all joints [N·m]")
    right.set_xlim(times[0], times[-1])
    right.set_ylim(1e-6, 10.0)
    for ax in (left, right):
        ax.set_xlabel("time [s]")
    left.set_xlim(times[window][0], times[window][-1])
    return save(figure, path, (right, left))


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="Two seconds instead of ten.")] = False,
    seed: Annotated[int, typer.Option(help="Which messages are lost.")] = 7,
) -> None:
    """Lose 10 % of the feedforwards of a moving Panda, and hold the torque error against its bound."""
    count = 2000 if quick else 10000
    efforts = exact_efforts(count, max(ORDERS) + 1)
    kept = np.random.default_rng(seed).random(count // PERIOD) >= LOSS
    kept[0] = True
    runs = [follow(efforts, kept, order) for order in ORDERS]
    longest = float(runs[0].distances.max())
    bounds = np.array([error_bound(np.abs(efforts[:, r + 1]).max(axis=0), r, longest) for r in ORDERS])
    print(f"lost {np.count_nonzero(~kept)} of {len(kept)} messages; carried on for up to {longest:.3f} s")
    print("derivatives  largest error [N.m]      bound [N.m]  largest step at a message [N.m]")
    for order, run, bound in zip(ORDERS, runs, bounds):
        error = np.abs(run.errors).max()
        print(f"{order:11d}  {error:19.6f}  {bound.max():15.6f}  {run.largest_step:31.6f}")
    print(f"wrote {draw(efforts, kept, runs, bounds, out / 'lost_messages.png')}")


if __name__ == "__main__":
    typer.run(main)
