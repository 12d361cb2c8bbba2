"""When the derivatives of torque pay: over stiffness, and over what a model does not know.

    python examples/when_derivatives_pay.py --out docs/pictures

A Panda in MuJoCo, which shares no code with hodyn_ros, follows the fastest motion along a path that its
motors allow, with springs as assumed for it, and up to forty times softer. Feedback on the motors at 1 kHz,
and as feedforward the torques of a rigid arm; these with motors that lead by torque over stiffness, which
takes the springs into account, and nothing of the torque beyond its rate; and the complete one with its
derivatives. Each with all known, and with the springs, the friction or the payload not known. Needs
`pip install mujoco`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray
from pictures import grid, save
from rich.progress import track

from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.demo.mujoco_arm import MujocoArm
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.planning.time_optimal.planner import time_optimal
from hodyn_ros.simulation.model_errors import with_stiffness
from hodyn_ros.simulation.tracking_study import Loop, RobotErrors, StudyConfig, TrackingStudy
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.robot_motion import RobotMotion

HOME = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0]
AWAY = [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5]
PATH = WaypointSpline([0.0, 1.0, 2.0], [HOME, AWAY, HOME], order=6)
LIMITS = {"motor torque": 0.8}  # the rest is for the feedback
SOFTER = (1, 2, 5, 10, 20, 40)  # times softer than in the file of the robot
FAST = (1, 10, 40)  # those with feedback at 10 kHz, too
REST = 0.1  # [s] before the motion
# of the motors, as shares of their largest torque: dry, and viscous at 1 rad/s. Assumed: none is published.
DRY, VISCOUS = 0.08, 0.04

RIGID, OFFSET, ELASTIC = FeedforwardMode.RIGID, FeedforwardMode.OFFSET, FeedforwardMode.ELASTIC
MODES = {
    RIGID: ("rigid feedforward", "#E69F00"),
    OFFSET: ("rigid, motors offset by torque / stiffness", "#CC79A7"),
    ELASTIC: ("with the derivatives of torque", "#0072B2"),
}


class Unknown(NamedTuple):
    """What the robot has and its model does not know."""

    title: str
    errors: RobotErrors = RobotErrors()
    friction: float = 0.0  # share of it that the model knows; 0: there is none
    rate: float = 1000.0  # of the feedback [Hz]
    modes: Sequence[FeedforwardMode] = tuple(MODES)


CASES = {
    "nothing": Unknown("all known\n"),
    "sampling": Unknown("all known, at 10 kHz", rate=10000.0, modes=(OFFSET, ELASTIC)),
    "stiffness": Unknown("springs 10 % stiffer\nthan the model", RobotErrors(stiffness=0.1)),
    "friction": Unknown("20 % of the friction\nunknown", friction=0.8),
    "payload": Unknown("1 kg of payload\nunknown", RobotErrors(payload=1.0)),
}
PANELS = ("nothing", "stiffness", "friction", "payload")  # quickly, every other one
Errors = dict[str, dict[str, list[float]]]  # [rad], by case and mode, at each softness


def rubbing(robot: Robot, share_of_it: float) -> Robot:
    """Return the robot with a share of the friction of its motors."""
    train = robot.require_drives()
    specs = [
        replace(
            spec,
            motor_friction=FrictionSpec(
                coulomb=share_of_it * DRY * most, viscous=share_of_it * VISCOUS * most
            ),
        )
        for spec, most in zip(train.specs, train.effort_limits(robot.limits.effort).tolist())
    ]
    return robot.with_drives(specs)


def run_all(path: WaypointSpline, softer: Sequence[int], cases: Sequence[str]) -> Errors:
    """Return root mean squares over the joints and the fastest motion along a path."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    errors: Errors = {case: {mode.value: [] for mode in CASES[case].modes} for case in cases}
    runs = [(case, mode) for case in cases for mode in CASES[case].modes]
    for soft in softer:
        robot = with_stiffness(panda, panda.require_drives().stiffness / soft)
        motion = time_optimal(RobotMotion.of(path).for_joints(robot.joint_names), robot, LIMITS).motion
        for case, mode in track(runs, f"{soft} times softer", transient=True):
            unknown = CASES[case]
            known = rubbing(robot, unknown.friction) if unknown.friction else robot
            real = rubbing(robot, 1.0) if unknown.friction else robot
            loop = Loop(unknown.rate, damping_time=0.0)
            config = StudyConfig(ramp=0.0, loop=loop, settling=REST)
            study = TrackingStudy(known, motion, config, real)
            found = study.run(unknown.errors, mode, simulator=MujocoArm)
            errors[case][mode.value].append(found.rms)
    return errors


def draw(
    panels: Sequence[str], softer: Sequence[int], errors: Errors, fast: Sequence[int], path: Path
) -> Path:
    """Draw the errors over the stiffness, a panel for each thing that is not known."""
    title = "When the derivatives of torque pay: along fast motions, on soft springs, if all is known well"
    note = "tracking error of a Panda in MuJoCo on the fastest motion its motors allow, RMS over the joints"
    figure, (axes,) = grid(1, len(panels), 4.6, title, note)
    for ax, case in zip(axes, panels):
        found = {mode: 1e3 * np.array(errors[case][mode.value]) for mode in MODES}
        gains = found[OFFSET] / found[ELASTIC]
        colour = MODES[ELASTIC][1]
        ax.fill_between(softer, found[ELASTIC], found[OFFSET], color=colour, alpha=0.13, linewidth=0.0)
        for mode, (label, own) in MODES.items():
            ax.plot(softer, found[mode], "o-", color=own, linewidth=2.4, markersize=4.5, label=label)
        ax.set_title(CASES[case].title, fontsize=11, fontweight="bold")
        ax.text(
            0.5,
            0.02,
            gained(gains),
            transform=ax.transAxes,
            ha="center",
            fontsize=10,
            color=colour,
            fontweight="bold",
        )
        frame(ax, softer)
    labels = [(1e3 * errors["nothing"][ELASTIC.value][0], "1 kHz")]
    if fast:
        sampled = 1e3 * np.array(errors["sampling"][ELASTIC.value])
        axes[0].plot(fast, sampled, "o:", color=MODES[ELASTIC][1], linewidth=1.6, markersize=3.5)
        labels.append((sampled[0], "10 kHz"))
    for height, rate in labels:
        place = {"xytext": (0, 5), "textcoords": "offset points", "fontsize": 8.5}
        axes[0].annotate(f"feedback at {rate}", (softer[0], height), **place)
    axes[0].set_ylabel("tracking error [mrad]")
    for ax in axes[1:]:
        ax.tick_params(labelleft=False)
    return save(figure, path, axes[:1])


def frame(ax: Axes, softer: Sequence[int]) -> None:
    """Give a panel the axes that all have: stiff springs on the left, soft ones on the right."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(2e-3, 300.0)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_major_locator(FixedLocator(list(softer)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    ax.set_xlabel("springs softer than the Panda's")


def gained(gains: NDArray[np.float64]) -> str:
    """Say how many times the derivatives made the error smaller."""
    least, most = (float(f"{gain:.2g}") for gain in (gains.min(), gains.max()))
    if most <= 1.1:
        return "derivatives bring nothing"
    return f"derivatives: {least:g} to {most:g} × better"


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/examples"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Half the way and the panels, springs ten times softer, no 10 kHz."),
    ] = False,
) -> None:
    """Let the arm follow with each feedforward, print the errors and draw them."""
    panels, softer, fast = (PANELS[::2], (10,), ()) if quick else (PANELS, SOFTER, FAST)
    path = WaypointSpline([0.0, 1.0], [HOME, AWAY], order=6) if quick else PATH
    errors = run_all(path, softer, panels) | run_all(path, fast, ["sampling"])
    print(f"{'RMS error [rad]':38s}  softer" + "".join(f"  {mode.value:>9s}" for mode in MODES))
    for case, found in errors.items():
        for i, soft in enumerate(fast if case == "sampling" else softer):
            cells = (f"  {found[mode.value][i]:9.2e}" if mode.value in found else 11 * " " for mode in MODES)
            print(f"{' '.join(CASES[case].title.split()):38s}  {soft:6d}{''.join(cells)}")
    print(f"wrote {draw(panels, softer, errors, fast, out / 'when-derivatives-pay.png')}")


if __name__ == "__main__":
    typer.run(main)
