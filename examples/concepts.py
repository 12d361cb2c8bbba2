"""The pictures of docs/concepts.md, drawn from the numbers that this package computes.

`python examples/concepts.py --out docs/pictures` draws those of the page anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Polygon, Rectangle
from numpy.typing import NDArray
from pictures import AXIS_COLOURS, JOINT_COLOURS, curves, grid, save

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.trajectory import WaypointSpline, read_trajectory

Array = NDArray[np.float64]

BLUE, RED, GREEN = JOINT_COLOURS[:3]
GREY = "#777777"

# A joint of the size of a robot's shoulder.
LINK, MOTOR, STIFFNESS = 1.0, 0.5, 400.0  # [kg m^2], [kg m^2], [N.m/rad]


def arrow(ax: Axes, start: Array, vector: Array, colour: str, label: str = "", width: float = 2.0) -> None:
    """Draw an arrow, with its label at the tip."""
    tip = np.add(start, vector)
    properties = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "mutation_scale": 16}
    ax.annotate("", tip, start, arrowprops={**properties, "shrinkA": 0, "shrinkB": 0})
    if label:
        ax.annotate(label, tip, (6, 4), textcoords="offset points", color=colour, fontsize=11)


def bare(ax: Axes, title: str) -> None:
    """Make axes a sheet to draw on, as wide as high."""
    ax.set_title(title, loc="left", fontsize=11)
    ax.set_aspect("equal")
    ax.axis("off")


def draw_elastic_joint(path: Path) -> Path:
    """Draw the joint, and what its motor must do for motions of different smoothness."""
    figure, axes = grid(
        1,
        3,
        4.2,
        "A motor behind a spring",
        r"$\theta = q + Q / K$, and the motor has to produce $B\,\ddot\theta + Q$, where $Q = M\,\ddot q$",
    )
    sheet, torques, motors = axes[0]
    bare(sheet, "")
    sheet.add_patch(Rectangle((0.0, 0.0), 0.9, 1.0, facecolor="#DDDDDD", edgecolor="black"))
    sheet.add_patch(Rectangle((2.6, -0.2), 1.4, 1.4, facecolor="#DDDDDD", edgecolor="black"))
    coil = np.linspace(0.0, 1.0, 200)
    sheet.plot(0.9 + 1.7 * coil, 0.5 + 0.22 * np.sin(12.0 * np.pi * coil), color=BLUE, linewidth=2)
    for x, y, text in (
        (0.45, 0.5, f"motor\n$B$ = {MOTOR:g}"),
        (3.3, 0.5, f"link\n$M$ = {LINK:g}"),
        (1.75, -0.2, f"$K$ = {STIFFNESS:g}"),
    ):
        sheet.text(x, y, text, ha="center", va="center", fontsize=10)
    arrow(sheet, [0.1, 1.55], [0.8, 0.0], GREY, r"$\theta$")
    arrow(sheet, [2.7, 1.55], [0.8, 0.0], GREY, r"$q$")
    sheet.set_xlim(-0.1, 4.3)
    sheet.set_ylim(-0.9, 2.3)
    times = np.linspace(-0.05, 0.45, 2001)
    kinds = (
        (5, "jerk jumps", RED),
        (7, "snap jumps", JOINT_COLOURS[3]),
        (9, "snap is continuous", BLUE),
    )
    for degree, kind, colour in kinds:
        motion = WaypointSpline([0.0, 0.4], [[0.0], [0.5]], order=(degree - 1) // 2)
        q = np.where((times > 0.0) & (times < 0.4), motion.sample(np.clip(times, 0, 0.4), 4)[:, :, 0].T, 0.0)
        torque = LINK * q[2]
        name = f"degree {degree}: {kind}"
        curves(torques, times, torque[:, None], [name], [colour])
        effort = MOTOR * (q[2] + LINK * q[4] / STIFFNESS) + torque
        curves(motors, times, effort[:, None], [name], [colour])
    for time, sign in ((0.0, 1.0), (0.4, -1.0)):
        arrow(motors, [time, 0.0], [0.0, 50.0 * sign], RED)
    motors.set_ylim(-55.0, 55.0)
    motors.text(0.02, 45.0, "impulse", color=RED, fontsize=10)
    for ax, title in ((torques, "torque at the link [N·m]"), (motors, "torque of the motor [N·m]")):
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xlabel("time [s]")
    return save(figure, path / "concept-elastic-joint.png", [torques])


def draw_message(path: Path) -> Path:
    """Draw what a consumer makes of messages at 50 Hz, and the error against their age."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    motion = read_trajectory(share.find("config", "panda_validation.yaml"))
    joint, period = 1, 0.02
    stamps = np.arange(1.0, 1.2, period)
    stamps = np.delete(stamps, 5)  # one message is lost
    sent = robot.inverse_dynamics(motion.sample(stamps, 4))[:, :, joint]
    times = np.linspace(1.0, 1.2, 1201)
    exact = robot.inverse_dynamics(motion.sample(times, 2))[:, 0, joint]
    latest = np.searchsorted(stamps, times, side="right") - 1
    age = times - stamps[latest]

    figure, (row,) = grid(
        1, 2, 4.4, "A torque of the Panda, sent fifty times a second", "one message, at 1.10 s, is lost"
    )
    shown, error = row
    curves(shown, times, exact[:, None], ["torque"], ["black"])
    names = ("held", "carried on by its rate", "carried on by rate and acceleration")
    value = np.zeros_like(times)
    for k, (name, colour) in enumerate(zip(names, (RED, JOINT_COLOURS[3], BLUE))):
        value = value + sent[latest, k] * age**k / (1.0, 1.0, 2.0)[k]
        curves(shown, times, value[:, None], [name], [colour])
        ages = np.geomspace(1e-3, 0.1, 40)
        start = robot.inverse_dynamics(motion.sample(1.1, 4))[:, joint]
        carried = sum(start[j] * ages**j / (1.0, 1.0, 2.0)[j] for j in range(k + 1))
        true = robot.inverse_dynamics(motion.sample(1.1 + ages, 2))[:, 0, joint]
        error.loglog(ages, np.abs(carried - true), color=colour, linewidth=1.5)
    shown.plot(stamps, sent[:, 0], "o", color="black", markersize=4, label="messages")
    shown.set_title("torque of joint 2 [N·m]", loc="left", fontsize=11)
    shown.set_xlabel("time [s]")
    error.set_title("error [N·m] against the age of the message [s]", loc="left", fontsize=11)
    return save(figure, path / "concept-message.png", [shown])


def draw_twists(path: Path) -> Path:
    """Draw one motion of a body in the three representations."""
    figure, axes = grid(
        1,
        3,
        4.6,
        "One motion of a body, three ways to write its twist",
        r"the body turns at 1 rad/s and its origin moves; $\omega$ is the same in all three here, $v$ is not",
    )
    placement = exp(np.array([0.0, 0.0, np.pi / 6.0, 0.0, 0.0, 0.0]))
    placement[:2, 3] = [1.6, 0.7]
    hybrid = np.array([[0.0, 0.0, 1.0, 0.5, 0.6, 0.0]])
    corners = np.array([[-0.5, -0.3], [0.5, -0.3], [0.5, 0.3], [-0.5, 0.3]])
    origin, turn = placement[:2, 3], placement[:2, :2]
    for ax, name, title in zip(
        axes[0],
        ("hybrid", "body_fixed", "spatial"),
        ("HYBRID", 'BODY, representation="body_fixed"', 'WORLD, representation="spatial"'),
    ):
        bare(ax, title)
        v = convert_screws(hybrid, placement, hybrid, "hybrid", name)[0, 3:5]
        ax.add_patch(
            Polygon(origin + corners @ turn.T, facecolor="#EEEEEE", edgecolor=GREY, linewidth=1.5, zorder=0)
        )
        ax.add_patch(Circle((0.0, 0.0), 0.05, color="black"))
        ax.add_patch(Circle(tuple(origin), 0.05, color="black"))
        point, axes_of = (np.zeros(2), np.eye(2)) if name == "spatial" else (origin, np.eye(2))
        if name == "body_fixed":
            axes_of = turn
        for i in range(2):
            arrow(ax, point, 0.55 * axes_of[:, i], AXIS_COLOURS[i], "xy"[i], 1.2)
        arrow(ax, point, axes_of @ v, "black", "$v$", 2.5)
        ax.text(
            0.9,
            -1.45,
            f"$v$ = ({v[0]:.2f}, {v[1]:.2f}) m/s, in these axes",
            ha="center",
            fontsize=11,
        )
        ax.text(
            0.9,
            -1.75,
            {
                "hybrid": "velocity of the body's origin, world axes",
                "body_fixed": "the same velocity, in the body's own axes",
                "spatial": "of the point of the body at the world's origin",
            }[name],
            ha="center",
            fontsize=10,
            color=GREY,
        )
        if name == "spatial":
            ax.plot([0.0, origin[0]], [0.0, origin[1]], ":", color=GREY)
        ax.set_xlim(-0.7, 2.6)
        ax.set_ylim(-1.9, 1.8)
    return save(figure, path / "concept-twists.png")


def draw_floating_base(path: Path) -> Path:
    """Draw the aerial manipulator, and the wrench on its base while the arms swing."""
    drone = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    figure, axes = grid(
        1,
        2,
        4.8,
        "A floating base: nothing holds it, so the wrench on it is part of the answer",
        "the base hovers while both arms swing",
    )
    sheet, ax = axes[0]
    bare(sheet, "")
    q = np.array([[0.5, 0.1, 0.4, 0.3, 0.1, 0.4]])
    kinematics = drone.forward_kinematics(q, base=BaseMotion(np.eye(4), np.zeros((1, 6))))
    for side, colour in (("left", BLUE), ("right", GREEN)):
        poses = [kinematics.pose_of(f"{side}_link{i}") for i in (1, 2, 3)]
        points = [np.zeros(3), *(pose[:3, 3] for pose in poses), (poses[-1] @ [0.0, 0.0, -0.12, 1.0])[:3]]
        line = np.array(points)[:, [0, 2]]
        sheet.plot(line[:, 0], line[:, 1], "-o", color=colour, linewidth=4, markersize=7)
    sheet.plot([-0.25, 0.25], [0.0, 0.0], color="black", linewidth=8, solid_capstyle="round")
    for x in (-0.25, 0.25):
        sheet.plot([x - 0.08, x + 0.08], [0.05, 0.05], color=GREY, linewidth=3)
    arrow(sheet, np.zeros(2), np.array([0.0, 0.28]), RED, "force and moment\nof the propellers", 2.5)
    com = drone.com(q, base=BaseMotion(np.eye(4), np.zeros((1, 6))))[0]
    arrow(sheet, com[[0, 2]], np.array([0.0, -0.3]), "black", "$m g$", 2.0)
    sheet.text(0.17, -0.2, "torques\nof the joints", color=BLUE, fontsize=11)
    sheet.set_xlim(-0.45, 0.55)
    sheet.set_ylim(-0.5, 0.42)

    times = np.linspace(0.0, 3.0, 301)
    swing = 0.6 * np.array([np.cos(2.0 * times + k * np.pi / 2.0) * 2.0**k for k in range(5)])
    q = np.zeros((301, 5, 6))
    q[:, :, 0] = q[:, :, 3] = swing.T  # both the same way, so that the base is pushed to and fro
    hover = BaseMotion(np.eye(4), np.zeros((4, 6)))
    wrenches, _ = drone.inverse_dynamics(q, base=hover)
    columns = {
        "force x [N]": wrenches[:, 0, 3],
        "its rate [N/s]": wrenches[:, 1, 3],
        "moment y [N·m]": wrenches[:, 0, 1],
    }
    curves(ax, times, np.stack(list(columns.values()), axis=1), list(columns), (RED, JOINT_COLOURS[3], BLUE))
    ax.set_title("wrench on the base, world frame", loc="left", fontsize=11)
    ax.set_xlabel("time [s]")
    return save(figure, path / "concept-floating-base.png", [ax])


def draw_limbs(path: Path) -> Path:
    """Draw the planar 3-RRR whole and cut into limbs."""
    figure, axes = grid(
        1,
        2,
        5.0,
        "A parallel robot, whole and as limbs",
        "every limb is a serial arm whose hand moves as the platform does; the drives share what all need",
    )
    tool = np.array([0.06, 0.05])
    # bases and lengths of config/planar_3rrr.yaml
    bases = 0.9 / np.sqrt(3.0) * np.array([[-np.sqrt(3) / 2, -0.5], [np.sqrt(3) / 2, -0.5], [0.0, 1.0]])
    length, velocity = 0.4, np.array([0.14, 0.1])
    for ax, apart, title in zip(axes[0], (0.0, 0.22), ("as it is built", "cut at the platform")):
        bare(ax, title)
        for base, colour, name in zip(bases, (BLUE, GREEN, RED), ("left", "right", "top")):
            shift = apart * base / np.linalg.norm(base)
            way = tool - base
            half = np.linalg.norm(way) / 2.0
            left = np.array([-way[1], way[0]]) / np.linalg.norm(way)
            elbow = base + way / 2.0 + np.sqrt(length**2 - half**2) * left
            points = np.array([base, elbow, tool]) + shift
            ax.plot(*points.T, "-o", color=colour, linewidth=3, markersize=7)
            ax.plot(*points[0], "s", color=colour, markersize=14)
            ax.annotate(name, points[0], (0, -20), textcoords="offset points", ha="center", color=colour)
            if apart:
                arrow(ax, points[2], velocity, GREY, "", 1.5)
        ax.add_patch(Circle(tuple(tool), 0.035, facecolor="white", edgecolor="black", linewidth=2, zorder=4))
        arrow(ax, tool, velocity, "black", "twist", 2.5)
        ax.set_xlim(-0.85, 0.85)
        ax.set_ylim(-0.55, 0.85)
    return save(figure, path / "concept-limbs.png")


def draw_drives(path: Path) -> Path:
    """Draw springs, and the torque of the motor for the same motion of the link behind each of them."""
    figure, axes = grid(1, 2, 4.4, "One motion of a link, behind different drives")
    springs, efforts = axes[0]
    torque = np.linspace(-30.0, 30.0, 301)
    specs = {
        "rigid": DriveSpec(np.inf, MOTOR),
        "linear spring": DriveSpec(1000.0, MOTOR),
        "hardening spring": DriveSpec(800.0, MOTOR, cubic_stiffness=2e5),
        "damped spring": DriveSpec(1000.0, MOTOR, spring_damping=20.0),
        "with friction": DriveSpec(1000.0, MOTOR, motor_friction=FrictionSpec(2.0, 3.0, 0.05)),
    }
    motion = WaypointSpline([0.0, 0.4], [[0.0], [0.5]], order=6)
    times = np.linspace(0.0, 0.4, 801)
    q = motion.sample(times, 6)
    link = LINK * q[:, 2:]  # torque with four derivatives
    for (name, spec), colour in zip(specs.items(), ("black", BLUE, GREEN, JOINT_COLOURS[3], RED)):
        train = DriveTrain([spec], ["joint"])
        still = train.follow(np.zeros((301, 7, 1)), _constant(torque), period=1.0).motors.position[:, 0]
        if name not in ("damped spring", "with friction"):
            curves(springs, torque, still, [name], [colour])
        found = train.follow(q, link, period=float(times[1]))
        curves(efforts, times, found.motors.effort[:, 0], [name], [colour])
    springs.set_title("deflection of the spring [rad] against its torque [N·m]", loc="left", fontsize=11)
    efforts.set_title("torque of the motor [N·m] against time [s]", loc="left", fontsize=11)
    return save(figure, path / "concept-drives.png", [efforts])


def _constant(values: Array) -> Array:
    """Return torques (N, 5, 1) that do not change."""
    stack = np.zeros((len(values), 5, 1))
    stack[:, 0, 0] = values
    return stack


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
) -> None:
    """Draw the pictures of the page on concepts."""
    draws = (draw_elastic_joint, draw_message, draw_twists, draw_floating_base, draw_limbs, draw_drives)
    for draw in draws:
        print(f"wrote {draw(out)}")


if __name__ == "__main__":
    typer.run(main)
