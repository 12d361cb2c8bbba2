"""The Panda's dynamic parameters from noisy torques, and with them derivatives that nobody measured.

A simulated arm moves on the trajectory on which the real one was identified (Gaz et al., 2019). Its joint
torques are measured with noise, and nothing else; positions and their derivatives are those of the
trajectory. Torques are linear in ten parameters per body, `Q = Y pi` (Garofalo et al., 2013, eq. 16), so the
parameters follow by least squares. Not all of them can be found: some leave no trace in any torque. What can
is the part of pi that Y does not lose, 43 combinations of the 70.

The test is another trajectory, and the derivatives of the torque: `Q^(r) = Y^(r) pi` holds for every order,
with parameters that were found from torques alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import JOINT_COLOURS, curves, grid, per_second, save

from hodyn_ros import Robot, share
from hodyn_ros.trajectory import read_trajectory

Array = NDArray[np.float64]

ORDER = 2
NOISE = 0.3  # standard deviation of a measured torque [N m]
PERIOD = 40.0 / 3.0  # of the excitation [s]
RANK = 1e-9  # singular values below this part of the largest belong to parameters without influence


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters pi (70,), and the identifiable combinations of them, in standard deviations of the fit."""

    parameters: Array
    combinations: Array  # (identifiable, 70), orthonormal rows
    deviations: Array  # (identifiable,) of the combinations


def identify(robot: Robot, motion: Array, torques: Array) -> Fit:
    """Fit parameters to torques (N, 7) measured on a motion (N, 3, 7)."""
    regressor = robot.regressor(motion)[:, 0].reshape(-1, len(robot.dynamic_parameters()))
    left, values, right = np.linalg.svd(regressor, full_matrices=False)
    kept = values > RANK * values[0]
    combined = left.T[kept] @ torques.ravel() / values[kept]
    return Fit(combined @ right[kept], right[kept], NOISE / values[kept])


def draw(
    times: Array, motion: Array, torques: Array, found: Array, fit: Fit, truth: Array, path: Path
) -> Path:
    """Draw torques and derivatives on the validation trajectory as they are and as predicted, and the fit."""
    names = [f"joint {j + 1}" for j in range(7)]
    figure, axes = grid(
        2,
        2,
        8.5,
        f"The Panda, identified from torques with {NOISE:g} N m of noise, on a trajectory not seen before",
        "black, dashed: predicted with the identified parameters; derivatives were never measured",
    )
    for r, ax in zip(range(ORDER + 1), axes.ravel()):
        curves(ax, times, torques[:, r], names, JOINT_COLOURS)
        ax.plot(times, found[:, r], color="black", linewidth=0.9, dashes=(4, 5))
        ax.set_ylabel(f"$Q^{{({r})}}$ [N m{per_second(r)}]")
        ax.set_xlabel("time [s]")
    ax = axes[1, 1]
    errors = fit.combinations @ (fit.parameters - truth) / fit.deviations
    order = np.arange(1, len(errors) + 1)
    for height, shade in ((2.0, 0.12), (1.0, 0.2)):
        ax.axhspan(-height, height, color="#0077BB", alpha=shade, linewidth=0.0)
    ax.plot(order, errors, "o", color="#CC3311", markersize=5)
    ax.set_xlim(0.0, len(errors) + 1.0)
    ax.set_ylim(-4.0, 4.0)
    ax.set_xlabel("identifiable combination, the best known first")
    ax.set_ylabel("error [standard deviations]")
    return save(figure, path, keys=[axes[0, 0]])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option(help="Fewer samples.")] = False,
) -> None:
    """Identify the parameters of a simulated Panda from noisy torques; print and draw how good they are."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    excitation = read_trajectory(share.find("config", "panda_excitation.yaml"))
    validation = read_trajectory(share.find("config", "panda_validation.yaml"))
    measured_at = np.linspace(0.0, PERIOD, 300 if quick else 2000, endpoint=False)
    motion = excitation.sample(measured_at, 2)
    clean = robot.inverse_dynamics(motion)[:, 0]
    noisy = clean + np.random.default_rng(7).normal(scale=NOISE, size=clean.shape)
    fit = identify(robot, motion, noisy)
    truth = robot.dynamic_parameters()

    times = np.linspace(0.0, 5.0, 101 if quick else 1001)
    unseen = validation.sample(times, ORDER + 2)
    torques = robot.inverse_dynamics(unseen)
    found = robot.regressor(unseen) @ fit.parameters
    errors = fit.combinations @ (fit.parameters - truth) / fit.deviations
    residual = robot.regressor(motion)[:, 0] @ fit.parameters - noisy
    print(f"{len(truth)} parameters, {len(fit.deviations)} combinations of them can be identified")
    print(f"noise put in {NOISE:.3f} N m, noise left over {residual.std():.3f} N m")
    print(f"errors of the combinations: {np.sqrt(np.mean(errors**2)):.2f} standard deviations (RMS)")
    print("on the validation trajectory, [N m/s^r]:")
    print("order    largest  RMS error  relative")
    for r in range(ORDER + 1):
        largest, rms = np.abs(torques[:, r]).max(), np.sqrt(np.mean((found - torques)[:, r] ** 2))
        print(f"{r:5d}  {largest:9.3f}  {rms:9.4f}  {rms / largest:8.1e}")
    print(f"wrote {draw(times, unseen, torques, found, fit, truth, out / 'panda_identified.png')}")


if __name__ == "__main__":
    typer.run(main)
