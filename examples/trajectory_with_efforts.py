"""What trajectory_filter makes of the sparse trajectory of a planner, and what motors would get without it.

The planner goes with full acceleration, then brakes with all it has, and sends a point every 0.1 s. A joint
trajectory controller joins the points by polynomials of degree 5, and efforts by straight lines.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from pictures import Array, grid, save

from hodyn_ros import Robot, share
from hodyn_ros.planning.effort_trajectory import EffortFilter
from hodyn_ros.trajectory import PiecewisePolynomial
from hodyn_ros.trajectory.splines.densify import Waypoints

HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
MOVE = np.array([0.5, 0.4, 0.2, 0.5, 0.2, -0.3, 0.5])
STEP, END = 0.1, 1.23  # [s]
SHOWN = (0, 1)  # joints


class Compared(NamedTuple):
    """Motor torques (N, 7) [N·m] of one motion at the same times (N,) [s]."""

    times: Array
    dense: Array  # as the filter sends them, joined by straight lines
    exact: Array  # those of the smooth motion
    sparse: Array  # at the points of the planner only, joined by straight lines
    quintic: Array  # those of the motion that the controller makes of the points
    acceleration: Array
    planned_acceleration: Array


def planned() -> Waypoints:
    """Return what the planner sends."""
    times = np.append(np.arange(0.0, END, STEP), END)
    gain, early, left = 4.0 / END**2, times < 0.5 * END, END - times
    path = np.where(early, 0.5 * gain * times**2, 1.0 - 0.5 * gain * left**2)
    pace, push = np.where(early, gain * times, gain * left), np.where(early, gain, -gain)
    return Waypoints(times, HOME + path[:, None] * MOVE, pace[:, None] * MOVE, push[:, None] * MOVE)


def compare(robot: Robot, count: int) -> Compared:
    """Compute the torques of the motors by all ways, `count` instants."""
    if robot.drive_train is None:
        raise SystemExit("this robot has no elastic drives")
    drives, waypoints = robot.drive_train, planned()

    def torque(motion: Array) -> Array:
        return drives.feedforward(motion, robot.inverse_dynamics(motion)).effort[:, 0]

    filtered = EffortFilter(robot, "motor", period=0.01, ease=0.1)(waypoints)
    times = np.linspace(0.0, END, count)
    smooth = filtered.dense.motion.sample(times, 4)
    plain = PiecewisePolynomial(*waypoints)
    at_points = torque(filtered.dense.motion.sample(waypoints.times, 4))

    def joined(at: Array, values: Array) -> Array:
        return np.stack([np.interp(times, at, column) for column in values.T], axis=1)

    return Compared(
        times,
        joined(filtered.dense.times, filtered.efforts),
        torque(smooth),
        joined(waypoints.times, at_points),
        torque(plain.sample(times, 4)),
        smooth[:, 2],
        plain.sample(times, 2)[:, 2],
    )


def draw(found: Compared, path: Path) -> Path:
    """Draw torques of the motors, accelerations, and what straight lines miss."""
    figure, axes = grid(
        3,
        2,
        9.0,
        "Motor torques of a Panda along a planner's trajectory with a point every 0.1 s",
        "made dense: a point every 10 ms of a motion that is continuous up to snap",
    )
    for column, joint in enumerate(SHOWN):
        torque, acceleration, missed = axes[:, column]
        for values, colour, label, width in (
            (found.quintic, "#CCBB44", "torque of the controller's own motion", 1.2),
            (found.sparse, "#EE6677", "efforts at the planner's points only", 1.5),
            (found.dense, "#4477AA", "made dense by the filter", 1.8),
        ):
            torque.plot(found.times, values[:, joint], color=colour, linewidth=width, label=label)
        torque.set_title(f"panda_joint{joint + 1}: motor torque [N·m]", loc="left", fontsize=10)
        acceleration.plot(found.times, found.planned_acceleration[:, joint], color="#CCBB44", linewidth=1.2)
        acceleration.plot(found.times, found.acceleration[:, joint], color="#4477AA", linewidth=1.8)
        acceleration.set_title("acceleration [rad/s$^2$]", loc="left", fontsize=10)
        for values, colour in ((found.sparse, "#EE6677"), (found.dense, "#4477AA")):
            missed.plot(found.times, (values - found.exact)[:, joint], color=colour, linewidth=1.5)
        missed.set_title("what it misses of the torque of the smooth motion [N·m]", loc="left", fontsize=10)
        for ax in axes[:, column]:
            ax.set_xlim(0.0, END)
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    return save(figure, path, axes[0, :1])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer instants.")] = False,
) -> None:
    """Compare the motor torques with and without making a planner's trajectory dense."""
    found = compare(Robot.load(share.find("config", "panda.yaml")), 1231 if quick else 12301)
    jumps = np.abs(np.diff(found.quintic, axis=0)).max(axis=0)
    print("largest [N·m]   sparse, missed   dense, missed   jumps of the controller's own motion")
    for joint in range(found.exact.shape[1]):
        sparse, dense = (
            np.abs(values - found.exact)[:, joint].max() for values in (found.sparse, found.dense)
        )
        print(f"panda_joint{joint + 1}    {sparse:14.4f}   {dense:13.4f}   {jumps[joint]:14.4f}")
    print(f"wrote {draw(found, out / 'trajectory_with_efforts.png')}")


if __name__ == "__main__":
    typer.run(main)
