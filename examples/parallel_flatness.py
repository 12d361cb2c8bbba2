"""Flatness-based control of a planar 3-RRR with elastic drives, with exact state and with real encoders.

After A. Mueller, S. Kumar, T. Kordik, "A Recursive Lie-Group Formulation for the Second-Order Time
Derivatives of the Inverse Dynamics of Parallel Kinematic Manipulators" (2023), section VI-B and Figure 7: two
freedoms, three series elastic drives, a pick-and-place motion between two points, joint encoders with a
quantisation of 1/2000, white noise of 3e-4. The paper gives no figures of its prototype; the robot is that of
`config/planar_3rrr.yaml`. Quantisation is taken as 1/2000 rad, and the noise as that of the position of the
platform, 3e-4 m, which the arms of 0.4 m turn into 7.5e-4 rad at each encoder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import JOINT_COLOURS, grid, powers_of_ten, save
from rich.console import Console
from rich.progress import track

from hodyn_ros import Robot, share
from hodyn_ros.control.feedback_linearisation import FeedbackLinearisation
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.simulation.closed_loop import run_loop
from hodyn_ros.simulation.sensors import Encoder, Sensors
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory import WaypointSpline

Array = NDArray[np.float64]

PERIOD = 1e-3  # [s]
POLES = (-30.0, -30.0, -40.0, -40.0)  # of the platform [1/s]
PRELOAD_POLES = (-40.0, -40.0)
QUANTISATION = 1.0 / 2000.0  # [rad]
NOISE = 3e-4 / 0.4  # [rad]
BANDWIDTH = 300.0  # of the filters that make velocities of positions [rad/s]

# Between two points and back, at rest at both.
_REST = [[0.0, 0.0]] * 3
MOTION = WaypointSpline(
    [0.0, 0.5, 1.0], [[-0.06, -0.03], [0.06, 0.04], [-0.06, -0.03]], velocities=_REST, accelerations=_REST
)


class Run(NamedTuple):
    """What one kind of measurement leads to."""

    times: Array  # (N,) [s]
    errors: Array  # (N, 2) of the platform [m]
    efforts: Array  # (N, 3) of the motors [N·m]


def run(robot: Robot, resolution: float, noise: float, duration: float) -> Run:
    """Control the robot at 1 kHz, with encoders on links and motors."""
    law = FeedbackLinearisation.from_poles(robot, POLES, PRELOAD_POLES)
    simulation = RobotSimulation(robot, MOTION.sample(0.0, 4))
    encoder = Encoder(resolution, noise, BANDWIDTH if resolution or noise else np.inf)

    def control(time: float, measured: Measurement) -> Array:
        return law.efforts(MOTION.sample(time, 4), measured)

    record = run_loop(simulation, control, duration, PERIOD, sensors=Sensors(encoder, encoder, PERIOD))
    errors = record.positions - MOTION.sample(record.times, 0)[:, 0]
    return Run(record.times, errors, record.efforts)


def run_exactly(robot: Robot, duration: float) -> Run:
    """Control the robot without sampling."""
    law = FeedbackLinearisation.from_poles(robot, POLES, PRELOAD_POLES)
    simulation = RobotSimulation(robot, MOTION.sample(0.0, 4))
    times = np.linspace(0.0, duration, 201)[1:-1]

    def control(time: float, measured: Measurement) -> Array:
        return law.efforts(MOTION.sample(time, 4), measured)

    states = simulation.follow(control, duration, times, method="DOP853", rtol=1e-7)
    efforts = [control(t, simulation.plant.unpack(x)) for t, x in zip(times, states)]
    return Run(times, states[:, :2] - MOTION.sample(times, 0)[:, 0], np.stack(efforts))


def draw(runs: dict[str, Run], path: Path) -> Path:
    """Draw errors and motor torques of all runs (Figure 7)."""
    figure, axes = grid(
        len(runs),
        2,
        2.3 * len(runs) + 0.8,
        "Flatness-based control of a planar 3-RRR with three elastic drives",
        "left: error of the platform [m]; right: torques of the motors [N·m]",
    )
    for (left, right), (name, found) in zip(axes, runs.items()):
        for i, axis in enumerate("xy"):
            left.plot(
                found.times,
                found.errors[:, i],
                color=JOINT_COLOURS[i],
                linewidth=1.2,
                label=f"error in {axis}",
            )
        for i in range(3):
            colour, label = JOINT_COLOURS[2 + i], f"motor {i + 1}"
            right.plot(found.times, found.efforts[:, i], color=colour, linewidth=1.0, label=label)
        left.set_title(f"{name}: at most {np.abs(found.errors).max():.1e} m", loc="left", fontsize=10)
        powers_of_ten(left)
        for ax in (left, right):
            ax.set_xlim(0.0, found.times[-1])
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    return save(figure, path, axes[0])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="0.1 s only.")] = False,
) -> None:
    """Control the planar 3-RRR with exact state, sampled, and with encoders that round and are noisy."""
    console = Console(stderr=True)
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    duration = 0.1 if quick else MOTION.duration
    cases = {
        "exact state, 1 kHz": (0.0, 0.0),
        "quantised to 1/2000": (QUANTISATION, 0.0),
        "quantised, with noise": (QUANTISATION, NOISE),
    }
    runs = {"exact state, not sampled": run_exactly(robot, duration)}
    for name, (resolution, noise) in track(
        cases.items(), "runs", console=console, transient=True, disable=not console.is_terminal
    ):
        runs[name] = run(robot, resolution, noise, duration)
    print("measurement                 largest error [m]  RMS error [m]  RMS torque [N·m]")
    for name, found in runs.items():
        print(
            f"{name:26s}  {np.abs(found.errors).max():17.1e}  {np.sqrt(np.mean(found.errors**2)):13.1e}"
            f"  {np.sqrt(np.mean(found.efforts**2)):16.3f}"
        )
    print(f"wrote {draw(runs, out / 'parallel_flatness.png')}")


if __name__ == "__main__":
    typer.run(main)
