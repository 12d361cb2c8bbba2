"""A Gough-Stewart platform rolls by half a radian to either side: kinematics and forces with derivatives.

A. Mueller, S. Kumar, T. Kordik, "A Recursive Lie-Group Formulation for the Second-Order Time Derivatives of
the Inverse Dynamics of Parallel Kinematic Manipulators" (2023), section VI-A: the motion `roll(t) = -A cos(w
t) + A + roll_min` with A = 0.5 rad and T = 1 s, and pictures as in Figures 3, 4 and 5. The platform of the
paper, part of an exoskeleton, is not published; this is `config/gough_stewart_6ups.yaml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pictures import JOINT_COLOURS, curves, grid, per_second, save
from rich.console import Console

from hodyn_ros import BaseMotion, Robot, share

Array = NDArray[np.float64]

ORDER = 2
PERIOD = 1.0  # [s]
LEAST, MOST = -0.5, 0.5  # roll [rad]
SAMPLES = 500
SEEN = (0.0, 0.25, 0.5)  # instants of the drawing, in periods


def roll(t: float, orders: int) -> Array:
    """Return the roll angle and its derivatives (orders,) [rad/s^k]."""
    amplitude, w = 0.5 * (MOST - LEAST), 2.0 * np.pi / PERIOD
    result = np.array([-amplitude * w**k * np.cos(w * t + 0.5 * np.pi * k) for k in range(orders)])
    result[0] += amplitude + LEAST
    return result


def platform_motion(robot: Robot, t: float) -> BaseMotion:
    """Return the motion, with ORDER + 2 body-fixed twists, of a turn about the x axis of the platform."""
    angle = roll(t, ORDER + 3)
    pose = np.array(robot.home[1])
    cosine, sine = np.cos(angle[0]), np.sin(angle[0])
    pose[1:3, 1:3] = [[cosine, -sine], [sine, cosine]]
    twists = np.zeros((ORDER + 2, 6))
    twists[:, 0] = angle[1:]
    return BaseMotion(pose, twists, representation="body_fixed")


def simulate(robot: Robot) -> tuple[Array, Array, Array]:
    """Return times (N,), motion (N, ORDER + 3, 6) and forces (N, ORDER + 1, 6) of the drives."""
    times = np.linspace(0.0, PERIOD, SAMPLES + 1)
    states = [robot.drive_state(None, platform_motion(robot, t)) for t in times]
    return times, np.array([s.motion for s in states]), np.array([s.efforts for s in states])


def worst_difference(times: Array, values: Array) -> float:
    """Return how far the derivatives are from differences of those one order lower, relative to the largest.

    Central differences of sixth order of a periodic motion; `values` (N, orders, n).
    """
    step, closed = times[1] - times[0], values[:-1]
    worst = 0.0
    for k in range(values.shape[1] - 1):
        weights = ((1, 45.0), (2, -9.0), (3, 1.0))
        slope = sum(w * (np.roll(closed[:, k], -i, 0) - np.roll(closed[:, k], i, 0)) for i, w in weights)
        error = np.abs(slope / (60.0 * step) - closed[:, k + 1]).max()
        worst = max(worst, float(error / np.abs(closed[:, k + 1]).max()))
    return worst


def kinematics_picture(robot: Robot, times: Array, motion: Array) -> Figure:
    """Draw the lengths of the legs and the platform at three instants, as in Figure 3."""
    figure, axes = grid(
        1, 4, 4.0, "6-UPS platform rolling by ±0.5 rad: inverse kinematics", "cf. Mueller et al., Figure 3"
    )
    curves(axes[0, 0], times, 1e3 * motion[:, 0], _names(robot), JOINT_COLOURS)
    axes[0, 0].set(xlabel="t [s]", ylabel="change of leg length [mm]")
    for i, part in enumerate(SEEN, 1):
        spot = axes[0, i].get_subplotspec()
        axes[0, i].remove()
        _draw(robot, figure.add_subplot(spot, projection="3d"), part * PERIOD)
    return figure


def _draw(robot: Robot, ax: object, t: float) -> None:
    moved = robot.forward_kinematics(None, platform_motion(robot, t))
    legs = [name.removesuffix("_foot") for name in robot.tree.body_names if name.endswith("_foot")]
    bottom = [moved.pose_of(f"{leg}_foot")[:3, 3] for leg in legs]
    top = [moved.pose_of(f"{leg}_body5")[:3, 3] for leg in legs]  # the ball joint at the platform
    for points, colour in ((bottom, "#777777"), (top, "#222222")):
        ring = np.array([*points, points[0]])
        ax.plot(*ring.T, color=colour, linewidth=2.0)  # type: ignore[attr-defined]
    for a, b, colour in zip(bottom, top, JOINT_COLOURS):
        ax.plot(*np.array([a, b]).T, color=colour, linewidth=2.5)  # type: ignore[attr-defined]
    ax.set(  # type: ignore[attr-defined]
        xlim=(-0.14, 0.14), ylim=(-0.14, 0.14), zlim=(0.0, 0.46), xticks=[], yticks=[], zticks=[0.0, 0.2, 0.4]
    )
    ax.set_box_aspect((0.28, 0.28, 0.46))  # type: ignore[attr-defined]
    ax.view_init(elev=14.0, azim=-25.0)  # type: ignore[attr-defined]
    ax.set_title(f"t = {t:g} s", fontsize=10)  # type: ignore[attr-defined]


def derivatives_picture(robot: Robot, times: Array, motion: Array, forces: Array) -> Figure:
    """Draw jerk and jounce of the legs, forces and their second derivatives, as in Figures 4 and 5."""
    figure, axes = grid(
        2,
        2,
        6.4,
        "6-UPS platform rolling by ±0.5 rad: higher-order kinematics and inverse dynamics",
        "cf. Mueller et al., Figures 4 and 5",
    )
    columns = (
        (motion[:, 3], "jerk of leg length [m" + per_second(3) + "]"),
        (motion[:, 4], "jounce of leg length [m" + per_second(4) + "]"),
        (forces[:, 0], "actuator force u [N]"),
        (forces[:, 2], "its second derivative [N" + per_second(2) + "]"),
    )
    for ax, (values, label) in zip(axes.ravel(), columns):
        curves(ax, times, values, _names(robot), JOINT_COLOURS)
        ax.set(xlabel="t [s]", ylabel=label)
    return figure


def _names(robot: Robot) -> list[str]:
    return [name.removesuffix("_slide") for name in robot.driven_joints]


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/gough_stewart"),
) -> None:
    """Draw Figures 3, 4 and 5 of Mueller et al. for the platform in `config/`."""
    console = Console()
    robot = Robot.load(share.find("config", "gough_stewart_6ups.yaml"))
    times, motion, forces = simulate(robot)
    first = kinematics_picture(robot, times, motion)
    second = derivatives_picture(robot, times, motion, forces)
    console.print(f"largest change of leg length {1e3 * np.abs(motion[:, 0]).max():.1f} mm")
    console.print(f"largest force {np.abs(forces[:, 0]).max():.1f} N")
    console.print(f"largest second derivative {np.abs(forces[:, 2]).max():.3g} N/s^2")
    console.print(
        "derivatives against differences of one order lower: "
        f"{worst_difference(times, motion):.1e} (motion), {worst_difference(times, forces):.1e} (forces)"
    )
    for figure, name in ((first, "kinematics.png"), (second, "derivatives.png")):
        axes = figure.axes[:1]
        console.print(f"written to {save(figure, out / name, axes)}")


if __name__ == "__main__":
    typer.run(main)
