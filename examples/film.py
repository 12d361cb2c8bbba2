"""A film from the simulator: one arm on soft springs, three feedforwards, and where each should be.

    python examples/film.py --out docs/pictures        (make film)

A Panda whose springs are ten times softer than those of its file, as of a light arm, follows a fast motion
with feedback on its motors at 1 kHz. Rigid feedforward forgets the springs; the second one lets the motors
lead by torque over stiffness; the third one is complete, with the derivatives of the torques. Nothing is
magnified: the grey arm is where the robot should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image
from rich.progress import track

from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.dynamics.kinematics.skeleton import robot_lines
from hodyn_ros.simulation.model_errors import with_stiffness
from hodyn_ros.simulation.tracking_study import RobotErrors, StudyConfig, TrackingStudy
from hodyn_ros.trajectory import WaypointSpline

Array = NDArray[np.float64]

SOFTER = 10.0  # times, the springs
HOME = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0]
AWAY = [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5]
MOTION = WaypointSpline([0.0, 0.7, 1.4], [HOME, AWAY, HOME], order=6)
SLOWER = 3.0  # times, the film
RATE = 12.5  # of the film [1/s]; GIF counts hundredths of a second
STILL = 0.3  # of the motion after its end [s], in which the robot comes to rest
COLOURS = 48
_PAPER = 245  # of 255 in all three colours

MODES = {
    FeedforwardMode.RIGID: ("rigid feedforward", "#E69F00"),
    FeedforwardMode.OFFSET: ("rigid, motors lead by torque / stiffness", "#CC79A7"),
    FeedforwardMode.ELASTIC: ("with the derivatives of torque", "#0072B2"),
}


@dataclass(frozen=True, eq=False)
class Take:
    """One run: lines (N, lines, 2, 3) [m] of the arm and of where it should be; `off` (N,) [m] its tool."""

    lines: Array
    wanted: Array
    off: Array


def takes(times: Array) -> dict[FeedforwardMode, Take]:
    """Return the runs, at times (N,) [s] of the motion."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    robot = with_stiffness(panda, panda.require_drives().stiffness / SOFTER)
    study = TrackingStudy(robot, MOTION, StudyConfig(ramp=0.0, settling=0.1, afterwards=STILL))
    found = {}
    for mode in MODES:
        outcome = study.run(RobotErrors(), mode)
        places = np.searchsorted(outcome.times, times).clip(max=len(outcome.times) - 1)
        here, wanted = (
            np.stack([robot_lines(robot, q) for q in positions[places]])
            for positions in (outcome.positions, outcome.positions - outcome.errors)
        )
        found[mode] = Take(here, wanted, np.linalg.norm((here - wanted)[:, -1, 1], axis=1))
    return found


def frames(times: Array, runs: dict[FeedforwardMode, Take]) -> list[Image.Image]:
    """Draw the film, one picture a time."""
    figure = Figure(figsize=(9.6, 5.0), dpi=75)
    canvas = FigureCanvasAgg(figure)
    below = figure.add_axes((0.08, 0.11, 0.9, 0.2))
    below.set_yscale("log")
    below.set_ylim(1e-3, 3e2)  # [mm]
    below.set_xlim(times[0], times[-1])
    below.set_yticks([0.01, 1.0, 100.0], ["0.01", "1", "100"])
    below.minorticks_off()
    below.set_ylabel("off by [mm]")
    below.set_xlabel(f"time [s], {SLOWER:g} times slower; springs {SOFTER:g} times softer than a Panda's")
    below.spines[["top", "right"]].set_visible(False)
    moving = []
    for i, (mode, (label, colour)) in enumerate(MODES.items()):
        ax = figure.add_axes((0.33 * i, 0.30, 0.34, 0.64), projection="3d")
        ax.set_axis_off()
        ax.patch.set_alpha(0.0)  # it reaches over the curves
        ax.view_init(elev=18.0, azim=-62.0)
        for axis, (low, high) in zip("xyz", ((-0.25, 0.65), (-0.3, 0.6), (0.0, 0.9))):
            getattr(ax, f"set_{axis}lim")(low, high)
        ax.set_box_aspect((1.0, 1.0, 1.0), zoom=1.3)
        figure.text(0.33 * i + 0.17, 0.95, label, ha="center", color=colour, fontsize=11, fontweight="bold")
        said = figure.text(0.33 * i + 0.17, 0.90, "", ha="center", color=colour, fontsize=11)
        ghost, arm, trace = (
            ax.plot([], [], [], color=own, linewidth=width, solid_capstyle="round")[0]
            for own, width in (("#BBBBBB", 7.0), (colour, 3.0), (colour, 0.9))
        )
        curve = below.plot([], [], color=colour, linewidth=1.8)[0]
        moving.append((runs[mode], ghost, arm, trace, said, curve))
    pictures = []
    for k in track(range(len(times)), "film", transient=True):
        for take, ghost, arm, trace, said, curve in moving:
            for line, lines in ((ghost, take.wanted[k]), (arm, take.lines[k])):
                line.set_data_3d(*np.concatenate([lines[:, 0], lines[-1:, 1]]).T)
            trace.set_data_3d(*take.lines[: k + 1, -1, 1].T)
            said.set_text(f"{1e3 * take.off[k]:.2f} mm")
            curve.set_data(times[: k + 1], 1e3 * take.off[: k + 1] + 1e-6)
        canvas.draw()
        picture = Image.frombytes("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")
        pictures.append(picture)
    return pictures


def write(pictures: list[Image.Image], path: Path) -> Path:
    """Write a film that begins again, its colours those of the picture in the middle."""
    middle = pictures[len(pictures) // 2].quantize(COLOURS)
    colours = np.array(middle.getpalette()).reshape(-1, 3)
    colours[(colours > _PAPER).all(axis=1)] = 255  # is to stay white
    few = []
    for picture in pictures:
        few.append(Image.fromarray(np.asarray(picture.quantize(palette=middle, dither=Image.Dither.NONE))))
        few[-1].putpalette(colours.ravel().tolist())
    path.parent.mkdir(parents=True, exist_ok=True)
    few[0].save(path, save_all=True, append_images=few[1:], duration=round(1e3 / RATE), loop=0, optimize=True)
    return path


def main(
    out: Annotated[Path, typer.Option(help="Folder for the film.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="Five pictures of it.")] = False,
) -> None:
    """Simulate the arm, print how far its tool is off, and write the film."""
    count = round((MOTION.duration + STILL) * SLOWER * RATE)
    times = np.linspace(0.0, MOTION.duration + STILL, 5 if quick else count)
    runs = takes(times)
    for mode, take in runs.items():
        print(f"{MODES[mode][0]:42s} tool off by {1e3 * take.off.max():.3f} mm at most")
    path = write(frames(times, runs), out / "film.gif")
    print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
