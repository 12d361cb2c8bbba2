"""A Panda motion that is too fast for its torque-rate limits, slowed down just enough.

Time-optimal motions need limits on the rate of the torques, lest they jump (Mueller 2020, section I). Here a
motion that keeps every torque exceeds the rates; `hodyn retime` does the same from the command line.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pictures import JOINT_COLOURS, grid, save

from hodyn_ros import Robot, share
from hodyn_ros.planning.check import Report, check
from hodyn_ros.planning.retime import Retimed, retime
from hodyn_ros.trajectory import WaypointSpline

RATE = 200.0  # [N·m/s] of every motor; an arm of the Panda's size with careful gears
MOTION = WaypointSpline(
    [0.0, 0.55, 1.1],
    [
        [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0],
        [0.6, 0.1, 0.3, -1.5, 0.3, 1.9, 0.3],
        [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0],
    ],
)
_QUANTITIES = ("motor torque", "motor torque rate")


def careful_panda() -> Robot:
    """Return the Panda with a tighter limit on torque rates."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    limits = replace(panda.limits, effort_rate=np.full(panda.n_joints, RATE))
    return Robot(panda.model, limits, panda.drive_train, panda.frames)


def draw(before: Report, after: Report, found: Retimed, path: Path) -> Path:
    """Draw torques and torque rates of the motors of both motions."""
    figure, axes = grid(
        2,
        2,
        7.5,
        f"A fast motion of the Panda, and the same at {100.0 * found.speed:.1f} % of its speed",
        "torques and torque rates of the motors; beyond their limits in the coloured fields",
    )
    for column, (report, title) in enumerate(((before, "as given"), (after, "retimed"))):
        for ax, quantity in zip(axes[:, column], _QUANTITIES):
            places = [i for i, f in enumerate(report.findings) if f.column.quantity == quantity]
            for colour, place in zip(JOINT_COLOURS, places):
                name = report.findings[place].column.joint
                ax.plot(report.times, report.values[:, place], color=colour, linewidth=1.5, label=name)
            unit = report.findings[places[0]].column.unit
            ax.set_title(f"{title}: {quantity} [{unit}]", loc="left", fontsize=10)
            ax.set_xlim(0.0, after.times[-1])
            bounds = [report.findings[place].column.upper for place in places]
            largest = max(float(np.abs(r.values[:, places]).max()) for r in (before, after))
            top = 1.15 * max(largest, RATE if quantity.endswith("rate") else 0.0)
            ax.set_ylim(-top, top)
            if max(bounds) < top:
                for side in (1.0, -1.0):
                    ax.axhline(side * max(bounds), color="black", linewidth=1.0)
                    ax.axhspan(side * max(bounds), side * top, color="#CC3311", alpha=0.08)
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    return save(figure, path, axes[0, :1])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="As always; it takes a second.")] = False,
) -> None:
    """Slow a fast motion of the Panda down until it keeps its torque-rate limits."""
    robot = careful_panda()
    before = check(robot, MOTION)
    found = retime(robot, MOTION)
    after = check(robot, found.trajectory)

    def worst(report: Report, quantity: str) -> float:
        return max(f.usage for f in report.findings if f.column.quantity == quantity)

    print(f"speed {found.speed:.9f}: {found.stretch:.4f} times as long")
    print(f"at its limit: {found.column.quantity} of {found.column.joint} at {found.time:.4f} s")
    print("largest share of a limit [%]  as given   retimed")
    for quantity in dict.fromkeys(f.column.quantity for f in before.findings):
        shares = (100.0 * worst(report, quantity) for report in (before, after))
        print(f"{quantity:28s}" + "".join(f"  {share_:8.3f}" for share_ in shares))
    print(f"wrote {draw(before, after, found, out / 'retiming.png')}")


if __name__ == "__main__":
    typer.run(main)
