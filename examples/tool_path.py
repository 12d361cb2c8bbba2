"""A frame of an elastic Panda led along lines and an arc, as fast as all limits and its own speed allow.

The path is given in space: a line, a line on which the frame turns, an arc and a line back, with rounded
corners. Inverse kinematics of order 4 makes a path of the joints of it, continuous to the snap (Mueller 2020,
Algorithm 2), and the same planner times it that times any path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import grid, save
from scipy.spatial.transform import Rotation

from hodyn_ros import Robot, share
from hodyn_ros.planning.check import check
from hodyn_ros.planning.space.frame_path import FramePath, Waypoint
from hodyn_ros.planning.space.joint_path import joint_path, start_pose
from hodyn_ros.planning.time_optimal.planner import FrameSpeed, TimeOptimal, time_optimal

Array = NDArray[np.float64]

FRAME = "panda_link8"
START = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.8])
SPEED = 0.5  # [m/s]
COLOURS = ("#CC3311", "#0077BB")


def path_in_space(panda: Robot) -> FramePath:
    """Return the path of the frame from where it is in the first posture."""
    pose = start_pose(panda, FRAME, START)
    p, turned = pose[:3, 3], pose[:3, :3] @ Rotation.from_rotvec([0.3, 0.2, 0.5]).as_matrix()
    waypoints = [
        Waypoint(p + [0.0, 0.2, 0.0]),
        Waypoint(p + [0.1, 0.2, -0.1], turned),
        Waypoint(p + [0.1, -0.1, -0.1], through=p + [0.17, 0.05, -0.1]),
        Waypoint(p + [0.0, -0.1, 0.0], pose[:3, :3]),
    ]
    return FramePath(pose, waypoints, blend=0.03)


def draw(panda: Robot, path: FramePath, plans: dict[str, TimeOptimal], out: Path) -> Path:
    """Draw the way of the frame, its speed, and what is used of the limits of the joints."""
    title = "Lines and an arc in space, timed for an elastic Panda"
    figure, axes = grid(1, 3, 4.2, title)
    place = path.at(np.linspace(0.0, path.length, 600), 0)[0][:, :3, 3]
    axes[0, 0].plot(place[:, 1], place[:, 0], color="black", linewidth=1.5)
    axes[0, 0].set_aspect("equal")
    axes[0, 0].set_xlabel("y [m]")
    axes[0, 0].set_ylabel("x [m]")
    for (name, plan), colour in zip(plans.items(), COLOURS):
        times = np.linspace(0.0, plan.duration, 1500)
        motion = plan.motion.trajectory.sample(times, 1)
        twists = panda.forward_kinematics(motion, representation="hybrid").twists_of(FRAME)[:, 0]
        axes[0, 1].plot(times, np.linalg.norm(twists[:, 3:], axis=1), color=colour, label=name)
        used = plan.usage[:, : len(plan.bindings) - (plan.bindings[-1].column.quantity == "speed")]
        axes[0, 2].plot(plan.law.times_at(plan.places), used.max(axis=1), color=colour, linewidth=1.2)
    axes[0, 1].set_ylabel("speed of the frame [m/s]")
    axes[0, 2].set_ylabel("largest use of a limit of the joints")
    axes[0, 2].set_ylim(0.0, 1.05)
    for ax in axes[0, 1:]:
        ax.set_xlabel("time [s]")
    return save(figure, out, axes[0, 1:2])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer pieces of the speed.")] = False,
) -> None:
    """Plan a path in space with and without a limit of the speed of the frame."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    path = path_in_space(panda)
    found = joint_path(panda, path, FRAME, START)
    print(f"{path.length:.3f} m; the frame is off its path by {1e9 * found.deviation[0]:.0f} nm at most")
    plans = {}
    for name, speed in (
        ("all limits of the joints", None),
        (f"and {SPEED:g} m/s of the frame", FrameSpeed(FRAME, SPEED, path.speeds)),
    ):
        plan = time_optimal(found.motion, panda, speed=speed, pieces=40 if quick else 120)
        tightest = check(panda, plan.motion).tightest
        print(f"{name}: {plan.duration:.3f} s, {100.0 * tightest.usage:.2f} % of a limit at most")
        plans[name] = plan
    print(f"wrote {draw(panda, path, plans, out / 'tool_path.png')}")


if __name__ == "__main__":
    typer.run(main)
