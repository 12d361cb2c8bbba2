"""A planar 3-RRR with three elastic drives moves its tool to and fro: what the drives and motors have to do.

A. Mueller, S. Kumar, T. Kordik, "A Recursive Lie-Group Formulation for the Second-Order Time Derivatives of
the Inverse Dynamics of Parallel Kinematic Manipulators" (2023), section VI-B: pick and place between two
points with a jerk of sin^2 shape, redundant drives, torques as in Figure 7. Mechanism and drives of the paper
are not published; this is `config/planar_3rrr.yaml`. Tracking errors belong to a closed loop, which is
another example.
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
POINTS = np.array([[-0.12, -0.06], [0.12, 0.06]])  # [m]
DURATION = 0.6  # of one way [s]
PAUSE = 0.1  # [s]
SAMPLES = 700
PRELOAD = 1.0  # [N.m] with which each drive works against the others in the second case


def way(t: float) -> Array:
    """Return the part of the way done at time t and its derivatives (5,), with a jerk of sin^2 shape."""
    part: Array = _integrated(t) / _integrated(DURATION)[0]
    return part


def _integrated(t: float) -> Array:
    """Return position to snap (5,) for humps of jerk with J = 1.

    The jerk is `+ - - +` over the four quarters of the way, each a hump `J sin^2`; with the humps the snap is
    continuous as well. Integrals of sin^2 in closed form.
    """
    quarter = DURATION / 4.0
    w = np.pi / quarter
    state = np.zeros(3)  # position, velocity, acceleration at the beginning of a quarter, for J = 1
    result = np.zeros(5)
    for i, sign in enumerate((1.0, -1.0, -1.0, 1.0)):
        s = min(max(t - i * quarter, 0.0), quarter)
        x, v, a = state
        # the integrals of sin^2(w s), once, twice and three times
        one = s / 2.0 - np.sin(2.0 * w * s) / (4.0 * w)
        two = s**2 / 4.0 + (np.cos(2.0 * w * s) - 1.0) / (8.0 * w**2)
        three = s**3 / 12.0 + (np.sin(2.0 * w * s) / (2.0 * w) - s) / (8.0 * w**2)
        now = np.array(
            [
                x + v * s + a * s**2 / 2.0 + sign * three,
                v + a * s + sign * two,
                a + sign * one,
                sign * np.sin(w * s) ** 2,
                sign * w * np.sin(2.0 * w * s),
            ]
        )
        if i * quarter <= t:
            result = now
        state = now[:3]
    return result


def tool_motion(t: float) -> BaseMotion:
    """Return the motion, with ORDER + 2 twists, of the tool, which does not turn."""
    cycle = 2.0 * (DURATION + PAUSE)
    t = t % cycle
    forth = t < DURATION + PAUSE
    part = way(min(t if forth else t - DURATION - PAUSE, DURATION))
    start, end = POINTS if forth else POINTS[::-1]
    pose = np.eye(4)
    pose[:2, 3] = start + part[0] * (end - start)
    twists = np.zeros((ORDER + 2, 6))
    twists[:, 3:5] = np.outer(part[1:], end - start)
    return BaseMotion(pose, twists, representation="body_fixed")


def simulate(robot: Robot, preload: float) -> dict[str, Array]:
    """Return what the drives do at N times, (N, 3) each, and the tool's positions (N, 2)."""
    if robot.drive_train is None:
        raise ValueError(f"robot {robot.name!r} has no elastic drives")
    times = np.linspace(0.0, 2.0 * (DURATION + PAUSE), SAMPLES, endpoint=False)
    rows: dict[str, list[Array]] = {name: [] for name in ("tool", "torque", "second", "spring", "motor")}
    for t in times:
        tool = tool_motion(t)
        state = robot.drive_state(None, tool, preload=np.full(3, preload))
        motors = robot.drive_train.feedforward(state.motion, state.efforts)
        rows["tool"].append(tool.pose[:2, 3])
        rows["torque"].append(state.efforts[0])
        rows["second"].append(state.efforts[2])
        rows["spring"].append(motors.position[0] - state.motion[0])
        rows["motor"].append(motors.effort[0])
    return {"times": times, **{name: np.array(values) for name, values in rows.items()}}


def picture(robot: Robot, plain: dict[str, Array], preloaded: dict[str, Array]) -> Figure:
    """Draw motion and torques, without and with preload."""
    figure, axes = grid(
        2,
        3,
        6.4,
        "planar 3-RRR, two degrees of freedom, three elastic drives: pick and place",
        f"cf. Mueller et al., Figures 6 and 7; below with a preload of {PRELOAD:g} N·m",
    )
    times = plain["times"]
    axes[0, 0].plot(times, plain["tool"][:, 0], color="#222222", label="_x")
    axes[0, 0].plot(times, plain["tool"][:, 1], color="#222222", linestyle="--", label="_y")
    axes[0, 0].set(xlabel="t [s]", ylabel="tool: x (solid), y (dashed) [m]", xlim=(times[0], times[-1]))
    names = list(robot.driven_joints)
    panels = (
        (axes[0, 1], plain["torque"], "torque u, least norm [N·m]"),
        (axes[0, 2], plain["second"], "its second derivative [N·m" + per_second(2) + "]"),
        (axes[1, 0], plain["spring"], "deflection of the springs [rad]"),
        (axes[1, 1], plain["motor"], "motor torque [N·m]"),
        (axes[1, 2], preloaded["torque"], "torque u, preloaded [N·m]"),
    )
    for ax, values, label in panels:
        curves(ax, times, values, names, JOINT_COLOURS)
        ax.set(xlabel="t [s]", ylabel=label)
    return figure


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/planar_3rrr"),
) -> None:
    """Draw the torques of Mueller et al., section VI-B, for the mechanism in `config/`."""
    console = Console()
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    plain, preloaded = simulate(robot, 0.0), simulate(robot, PRELOAD)
    console.print(f"largest torque {np.abs(plain['torque']).max():.3g} N·m")
    console.print(f"largest deflection of a spring {np.abs(plain['spring']).max():.3g} rad")
    console.print(f"largest torque of a motor {np.abs(plain['motor']).max():.3g} N·m")
    figure = picture(robot, plain, preloaded)
    console.print(f"written to {save(figure, out / 'pick_and_place.png', figure.axes[1:2])}")


if __name__ == "__main__":
    typer.run(main)
