"""The Panda on its validation trajectory: torques up to their third derivative, as in a published example.

S. Kumar, A. Mueller, "Nth Order Analytical Time Derivatives of Inverse Dynamics in Recursive and Closed
Forms", section IV: Figures 2 to 5. The motion is eq. 31 of Gaz et al. (2019), whose identified parameters are
those of `config/panda.yaml`.

Gaz et al. give the inertias about the centres of mass. The scripts published with the paper use the same
figures as if about the origins of the link frames, and leave gravity out; their figures are reproduced here
with that reading, which serves for nothing else. The torques that a real arm needs are those of the first
reading, with gravity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import factorial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import JOINT_COLOURS, curves, grid, per_second, save
from rich.console import Console
from rich.progress import track

from hodyn_ros import Robot, share
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.trajectory import Trajectory, read_trajectory

Array = NDArray[np.float64]

ORDER = 3
DURATION = 5.0  # [s]
STEPS = np.geomspace(1e-5, 1e-1, 33)  # of differentiation by number [s]
POINTS = (5, 9)  # of it


def panda(gravity: bool = True) -> Robot:
    """Return the Panda, its inertias about the centres of mass, as identified."""
    path = share.find("config", "panda.yaml")
    return Robot.load(path) if gravity else Robot.load(path, gravity=(0.0, 0.0, 0.0))


def torques_of_published_figures(motion: Array) -> Array:
    """Return torques (N, order + 1, 7) with the inertias taken for ones about the link frames, no gravity.

    About the centres of mass, that reading means smaller inertias J - P, P being the terms of the
    parallel-axis theorem. Some of them are not positive definite and no Robot can have them, but torques are
    linear in the inertias: Q(J - P) = 2 Q(J) - Q(J + P).
    """
    robot = panda(gravity=False)
    model = robot.model
    squares = np.einsum("ij,ij->i", model.coms, model.coms)
    products = np.einsum("ij,ik->ijk", model.coms, model.coms)
    parallel_axis = model.masses[:, None, None] * (squares[:, None, None] * np.eye(3) - products)
    heavier = Robot(replace(model, inertias=model.inertias + parallel_axis))
    torques: Array = 2.0 * robot.inverse_dynamics(motion) - heavier.inverse_dynamics(motion)
    return torques


def differentiated(
    robot: Robot, trajectory: Trajectory, times: Array, order: int, step: float, points: int
) -> Array:
    """Return the derivative (N, 7) of the torque of order 0, by central differences `step` [s] apart.

    `points`, an odd number above `order`, are taken around each of the times.
    """
    offsets = np.arange(points) - points // 2
    # weights that differentiate as many powers of t exactly
    powers = offsets[None, :].astype(float) ** np.arange(points)[:, None]
    moments = np.where(np.arange(points) == order, float(factorial(order)), 0.0)
    weights = np.linalg.solve(powers, moments)
    result = np.zeros((len(times), robot.n_coordinates))
    for offset, weight in zip(offsets, weights):
        motion = trajectory.sample(times + offset * step, 2)
        result += weight / step**order * robot.inverse_dynamics(motion)[:, 0]
    return result


def differentiation_errors(
    robot: Robot, trajectory: Trajectory, times: Array, exact: Array, points: int
) -> Array:
    """Return errors (orders, steps) of differentiation by number, relative to the largest of each order."""
    return np.array(
        [
            [
                np.abs(differentiated(robot, trajectory, times, r, step, points) - exact[:, r]).max()
                / np.abs(exact[:, r]).max()
                for step in STEPS
            ]
            for r in range(1, ORDER + 1)
        ]
    )


def draw_torques(
    times: Array, robot: Array, published: Array, inside: Array, numerical: Array, path: Path
) -> Path:
    """Draw the torques and their derivatives in both readings, and by number at the times `inside`."""
    figure, axes = grid(
        ORDER + 1,
        2,
        12.5,
        "Torques of the Panda and their derivatives on its validation trajectory",
        "black, dashed: the torque differentiated by number",
    )
    names = [f"joint {j + 1}" for j in range(7)]
    axes[0, 0].set_title(
        "what the arm needs: inertias about the centres of mass, gravity", fontsize=11, pad=12
    )
    axes[0, 1].set_title("as published: inertias taken about link frames, no gravity", fontsize=11, pad=12)
    for r in range(ORDER + 1):
        for ax, values in zip(axes[r], (robot, published)):
            curves(ax, times, values[:, r], names, JOINT_COLOURS)
        if r:
            axes[r, 0].plot(inside, numerical[r - 1], color="black", linewidth=0.9, dashes=(4, 5))
        axes[r, 0].set_ylabel(f"$Q^{{({r})}}$ [N m{per_second(r)}]")
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    return save(figure, path, axes[0, :1])


def draw_differentiation(errors: Mapping[int, Array], path: Path) -> Path:
    """Draw the errors (orders, steps) of differentiation by number, for every number of points."""
    figure, ((ax,),) = grid(
        1,
        1,
        6.0,
        "Torque derivatives by differentiating the torque by number",
        "largest difference from the analytical derivative, relative to its largest value",
    )
    for (points, rows), line, marker in zip(errors.items(), (":", "-"), ("s", "o")):
        for r in range(1, ORDER + 1):
            ax.loglog(
                STEPS,
                rows[r - 1],
                line,
                color=JOINT_COLOURS[r - 1],
                marker=marker,
                markersize=4,
                label=f"r = {r}, {points} points",
            )
    ax.axhline(np.finfo(float).eps, color="black", linewidth=0.8)
    ax.text(STEPS[0], 1.4 * np.finfo(float).eps, "resolution of a double", fontsize=9)
    ax.set_xlabel("step of the central differences [s]")
    ax.set_ylabel("relative error")
    return save(figure, path, [ax])


def _within(times: Array, step: float) -> Array:
    """Leave out times so near the ends of the motion that differences would need samples beyond them."""
    reach = POINTS[-1] // 2 * step
    return times[(times > reach) & (times < DURATION - reach)]


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="Every 20th sample only.")] = False,
) -> None:
    """Compute the Panda's torques up to order 3 on its validation trajectory, and check them by number."""
    console = Console(stderr=True)

    def progress(items: Iterable[Any], what: str) -> Iterable[Any]:
        return track(list(items), what, console=console, transient=True, disable=not console.is_terminal)

    trajectory = read_trajectory(share.find("config", "panda_validation.yaml"))
    times = np.linspace(0.0, DURATION, 101 if quick else 2001)
    inside = _within(times, STEPS[-1])
    motion = trajectory.sample(times, ORDER + 2)
    robot = panda()
    with console.status("compiling"):
        torques = robot.inverse_dynamics(motion)
        published = torques_of_published_figures(motion)
    formulations = {
        name: np.abs(robot.inverse_dynamics(motion, formulation=name) - torques)
        for name in progress(INVERSE_DYNAMICS, "published recursions")
    }
    exact = robot.inverse_dynamics(trajectory.sample(inside, ORDER + 2))
    errors = {
        points: differentiation_errors(robot, trajectory, inside, exact, points)
        for points in progress(POINTS, "differentiating by number")
    }
    finest = errors[POINTS[-1]]

    print(f"{robot.model.name}: {len(times)} samples of the validation trajectory, orders 0 to {ORDER}")
    print("largest torque derivatives [N m/s^r], and how far from them others are, relative to these:")
    print("order    largest  as published  formulations  by number")
    for r in range(ORDER + 1):
        largest = np.abs(torques[:, r]).max()
        spread = max(difference[:, r].max() for difference in formulations.values()) / largest
        error = f"{finest[r - 1].min():9.1e}" if r else f"{'-':>9}"
        print(f"{r:5d}  {largest:9.3f}  {np.abs(published[:, r]).max():12.3f}  {spread:12.1e}  {error}")
    with console.status("drawing"):
        steps = STEPS[finest.argmin(axis=1)]
        drawn = _within(times, steps.max())
        by_number = np.array(
            [
                differentiated(robot, trajectory, drawn, r, steps[r - 1], POINTS[-1])
                for r in range(1, ORDER + 1)
            ]
        )
        written = [
            draw_torques(times, torques, published, drawn, by_number, out / "panda_torques.png"),
            draw_differentiation(errors, out / "panda_differentiation.png"),
        ]
    for path in written:
        print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
