"""Two links on springs, the second motor on the first link: what the reduced model leaves, by gear ratio.

    python examples/rotor_coupling.py

Feedforward alone, without feedback, moves the complete equations of motion from a consistent start.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import grid, save

from hodyn_ros import DriveSpec, Robot
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.model.drive_spec import RotorSpec
from hodyn_ros.simulation.simulation import RobotSimulation

Array = NDArray[np.float64]

FREQUENCY = 2.0 * np.pi  # [rad/s]
AMPLITUDES = np.array([0.5, -0.8])  # [rad]
RATIOS = (10.0, 100.0, 1000.0)
DURATION = 0.5  # [s]


def arm(ratio: float) -> Robot:
    """Two links of 0.5 m in a horizontal plane; the motor of the second turns with the first."""
    elbow = np.eye(4)
    elbow[0, 3] = 0.5
    robot = Robot.from_screws(
        parents=[-1, 0],
        screws=[[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, -0.5, 0.0]],
        placements=[np.eye(4), elbow],
        masses=[3.0, 2.0],
        coms=[[0.25, 0.0, 0.0], [0.25, 0.0, 0.0]],
        inertias=[0.05 * np.eye(3), 0.03 * np.eye(3)],
        gravity=np.zeros(3),
        body_names=["upper", "fore"],
    )
    drive = DriveSpec(500.0, 0.4, gear_ratio=ratio)
    return robot.with_drives([drive, replace(drive, rotor=RotorSpec("upper"))])


def motion(time: float, order: int) -> Array:
    """Return both joints up to a derivative (order + 1, 2)."""
    k = np.arange(order + 1)
    waves = np.sin(FREQUENCY * time + 0.5 * np.pi * k) * FREQUENCY**k
    return waves[:, None] * AMPLITUDES


def largest_error(robot: Robot, model: Robot, duration: float) -> float:
    """Return how far a robot is from its motion at most, under the feedforward of a model [rad]."""
    law = FeedforwardModel(model, 2)
    times = np.linspace(0.0, duration, 52)[1:-1]
    simulation = RobotSimulation(robot, motion(0.0, 6))
    states = simulation.follow(
        lambda time, _: law.compute(motion(time, law.motion_orders - 1)).motor_efforts[0],
        duration,
        times,
        method="DOP853",
        rtol=3e-14,  # the least that SciPy takes
        atol=1e-16,
    )
    return float(np.abs(states[:, :2] - [motion(time, 0)[0] for time in times]).max())


def draw(errors: dict[str, list[float]], path: Path) -> Path:
    """Draw the errors of both models."""
    title = "What rotors that turn with the links do: two links on springs, feedforward alone"
    figure, ((ax,),) = grid(1, 1, 4.6, title, "largest error of any joint within half a second")
    for (name, found), colour in zip(errors.items(), ("tab:orange", "tab:blue")):
        ax.plot(RATIOS, found, "o-", color=colour, linewidth=1.8)
        ax.annotate(name, (RATIOS[-1], found[-1]), xytext=(8, 0), textcoords="offset points", color=colour)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(right=10.0 * RATIOS[-1])
    ax.set_xlabel("gear ratio")
    ax.set_ylabel("error [rad]")
    return save(figure, path)


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="A fifth of the time.")] = False,
) -> None:
    """Simulate the arm with both feedforwards, and draw their errors."""
    errors: dict[str, list[float]] = {"reduced model": [], "complete model": []}
    print("gear ratio  reduced model [rad]  complete model [rad]")
    for ratio in RATIOS:
        robot = arm(ratio)
        reduced = robot.with_drives([replace(spec, rotor=None) for spec in robot.require_drives().specs])
        for found, model in zip(errors.values(), (reduced, robot)):
            found.append(largest_error(robot, model, 0.2 * DURATION if quick else DURATION))
        print(f"{ratio:10g}" + "".join(f"{found[-1]:21.2g}" for found in errors.values()))
    print(f"wrote {draw(errors, out / 'rotor_coupling.png')}")


if __name__ == "__main__":
    typer.run(main)
