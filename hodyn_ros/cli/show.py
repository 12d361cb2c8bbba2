"""`hodyn show`: what a robot file says, as tables and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from hodyn_ros.array import Array
from hodyn_ros.cli.robot_sheet import Sheet, read_sheet
from hodyn_ros.dynamics.kinematics.skeleton import robot_lines
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.tables import say, table


def run_show(robot: RobotChoice, picture: Path | None, console: Console) -> Sheet:
    """Print all that a robot file says, and return it; draw the robot where `picture` is given."""
    sheet = read_sheet(robot)
    console.print(sheet.summary, markup=False, highlight=False)
    for block in sheet.blocks:
        console.print(f"\n{block.title}", style="bold", markup=False, highlight=False)
        console.print(table(block.heads, block.rows, block.texts))
    if sheet.assumed:
        console.print("\nAssumed; measure these before you trust them", style="bold")
    for line in sheet.assumed:
        console.print(f"- {line}", markup=False, highlight=False, style="yellow")
    if sheet.notes:
        console.print()
    for line in sheet.notes:
        console.print(line, markup=False, highlight=False)
    if picture is not None:
        say(console, f"wrote {draw_robot(robot.robot(), picture)}")
    return sheet


def draw_robot(robot: Robot, path: Path) -> Path:
    """Draw a robot as lines from joint to joint: at home, or at zero within its limits."""
    from matplotlib.figure import Figure

    from hodyn_ros.pictures import save_picture

    start, pose = robot.home
    limits = robot.coordinate_limits
    q = np.clip(start, limits.position_lower, limits.position_upper)
    where = "at zero" if not q.any() else "at zero, or as near as the limits allow"
    if robot.platform is not None:
        where = "at its home pose"
    lines = robot_lines(robot, q, pose)
    figure = Figure(figsize=(7.0, 7.0), layout="constrained")
    figure.suptitle(f"{robot.name}, {where}")
    ax = figure.add_subplot(projection="3d")
    for line in lines:
        ax.plot(*line.T, "o-", color="#0072B2", linewidth=2.5, markersize=4)
    _equal_axes(ax, lines.reshape(-1, 3))
    for axis in "xyz":
        getattr(ax, f"set_{axis}label")(f"{axis} [m]")
    return save_picture(figure, path)


def _equal_axes(ax: object, points: Array) -> None:
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    half = max(float(np.ptp(points, axis=0).max()) / 2.0, 1e-3)
    for axis, centre in zip("xyz", middle):
        getattr(ax, f"set_{axis}lim")(centre - half, centre + half)
    ax.set_box_aspect((1.0, 1.0, 1.0))  # type: ignore[attr-defined]
