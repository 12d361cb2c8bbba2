"""A Panda with elastic joints in MuJoCo, which shares no code with hodyn_ros, from its exported MJCF.

    python examples/mujoco_tracking.py

The same motion, the same feedback on the motors at 1 kHz, in MuJoCo and in the simulator of hodyn_ros; with
springs as in the model, and softer and stiffer by 20 %. Needs `pip install mujoco`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pictures import grid, save
from rich.progress import track

from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.demo.mujoco_arm import MujocoArm
from hodyn_ros.simulation.tracking_study import Loop, RobotErrors, StudyConfig, TrackingStudy
from hodyn_ros.trajectory import WaypointSpline

LOOP = Loop()
HOME = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0]
AWAY = [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5]
MOTION = WaypointSpline([0.0, 1.0, 2.0], [HOME, AWAY, HOME], order=6)
SHARES = (-0.2, 0.0, 0.2)  # by which springs are stiffer than in the model
MODES = {
    FeedforwardMode.NONE: "#888888",
    FeedforwardMode.RIGID: "#E69F00",
    FeedforwardMode.OFFSET: "#CC79A7",
    FeedforwardMode.ELASTIC: "#0072B2",
}


def draw(shares: Sequence[float], errors: dict[str, dict[FeedforwardMode, list[float]]], path: Path) -> Path:
    """Draw the errors by stiffness, in both simulators."""
    title = "Panda with elastic joints: root mean square of the errors of all links"
    figure, ((ax,),) = grid(1, 1, 4.6, title, "lines: in MuJoCo; rings: in the simulator of hodyn_ros")
    percent = 100.0 * np.array(shares)
    for mode, colour in MODES.items():
        ax.plot(percent, errors["mujoco"][mode], "o-", color=colour, linewidth=1.8, markersize=4)
        ax.plot(percent, errors["hodyn_ros"][mode], "o", color=colour, fillstyle="none", markersize=11)
        ax.annotate(
            mode.value,
            (percent[-1], errors["mujoco"][mode][-1]),
            xytext=(14, -3),
            textcoords="offset points",
            color=colour,
        )
    ax.set_yscale("log")
    ax.set_xlim(-24.0, 28.0)
    ax.set_xticks(percent)
    ax.set_xlabel("springs stiffer than in the model [%]")
    ax.set_ylabel("error [rad]")
    return save(figure, path)


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/examples"),
    quick: Annotated[
        bool, typer.Option("--quick", help="The start of the motion, with springs as modelled.")
    ] = False,
) -> None:
    """Let the arm follow in both simulators, and draw the errors."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    config = StudyConfig(0.2, 0.1, LOOP, settling=0.2) if quick else StudyConfig(None, 0.1, LOOP)
    study = TrackingStudy(robot, MOTION, config)
    shares = (0.0,) if quick else SHARES
    errors: dict[str, dict[FeedforwardMode, list[float]]] = {
        name: {mode: [] for mode in MODES} for name in ("mujoco", "hodyn_ros")
    }
    cases = [(stiffer, mode) for stiffer in shares for mode in MODES]
    in_mujoco = partial(MujocoArm, damping_time=LOOP.damping_time)
    for stiffer, mode in track(cases, "simulating", transient=True):
        wrong = RobotErrors(stiffness=stiffer)
        errors["mujoco"][mode].append(study.run(wrong, mode, simulator=in_mujoco).rms)
        errors["hodyn_ros"][mode].append(study.run(wrong, mode).rms)
    print("stiffness  feedforward  in MuJoCo [rad]  in hodyn_ros [rad]")
    for i, stiffer in enumerate(shares):
        for mode in MODES:
            found, own = (errors[name][mode][i] for name in ("mujoco", "hodyn_ros"))
            print(f"{100.0 * stiffer:+8.0f} %  {mode.value:11s}  {found:15.3g}  {own:18.3g}")
    print(f"wrote {draw(shares, errors, out / 'mujoco_tracking.png')}")


if __name__ == "__main__":
    typer.run(main)
