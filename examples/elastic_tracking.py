"""How well a Panda with elastic joints follows: against their stiffness, and with wrong inertias.

The same fast motion from rest to rest, the same sampled feedback on the motors at 1 kHz, and as feedforward
nothing, that of rigid joints, or that of elastic joints (Mueller 2020, section I). Then the same with a robot
whose masses and inertias are 5 % larger than in the model, also under exact feedback linearisation.

That controller knows the exact state at 4 kHz and needs fast poles: it takes the accelerations of the links
from the springs, so inertias that are wrong by a share e act on joint for joint like a term e K / M in the
gain of the error's second derivative. With the light wrist on stiff springs, 5 % make it unstable from poles
of -100 on upwards; feedback on the motors does not ask the model, and stays stable here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import grid, save
from rich.console import Console
from rich.progress import track

from hodyn_ros import Robot, share
from hodyn_ros.control.feedback_linearisation import FeedbackLinearisation
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.simulation.closed_loop import GuardedController, run_loop
from hodyn_ros.simulation.model_errors import with_scaled_inertia, with_stiffness
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory import WaypointSpline

Array = NDArray[np.float64]

PERIOD = 1e-3  # of the feedback on the motors [s]
FAST_PERIOD = 2.5e-4  # of the feedback linearisation [s]
STIFFNESSES = (1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5)  # [N·m/rad]
HEAVIER = 1.05
POLES = (-200.0, -200.0, -200.0, -200.0)  # of the feedback linearisation [1/s]

_HOME = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0]
_AWAY = [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5]
MOTION = WaypointSpline([0.0, 0.8, 1.6], [_HOME, _AWAY, _HOME], order=6)

_MODES = {
    "none": ("feedback only", "#888888"),
    "rigid": ("rigid feedforward", "#E69F00"),
    "elastic": ("elastic feedforward", "#0072B2"),
    "linearisation": ("feedback linearisation, 4 kHz", "#009E73"),
}


def tracking_errors(model: Robot, robot: Robot, mode: str, duration: float) -> Array:
    """Return the errors (N, 7) [rad] of the links of `robot` under control with a `model` of it."""
    simulation = RobotSimulation(robot, MOTION.sample(0.0, 0)[0])
    period = FAST_PERIOD if mode == "linearisation" else PERIOD
    if mode == "linearisation":
        linearisation = FeedbackLinearisation.from_poles(model, POLES)

        def control(time: float, measured: Measurement) -> Array:
            return linearisation.efforts(MOTION.sample(time, 4), measured)

    else:
        drives = model.drive_train
        if drives is None:
            raise SystemExit("the robot has no linear springs")
        gains = MotorGains.from_frequency(drives.motor_inertia, 30.0, 1.0)
        law = FeedforwardModel(model, 4)

        def reference(time: float) -> Reference:
            feedforward = law.compute(MOTION.sample(time, law.motion_orders - 1))
            return motor_reference(FeedforwardMode(mode), drives, feedforward)

        # soft springs and no feedforward leave errors that would be a fault elsewhere
        config = GuardConfig(
            measured=True, settle=0.0, lead=0.5 * PERIOD, tracking_error=10.0, resolution=1.0
        )
        control = GuardedController(CommandGuard(model.joint_names, config, gains=gains), reference)

    record = run_loop(simulation, control, duration, period)
    return record.positions - MOTION.sample(record.times, 0)[:, 0]


def rms(errors: Array) -> float:
    """Return the root of the mean square over instants and joints."""
    return float(np.sqrt(np.mean(errors**2)))


def draw_stiffness(found: dict[str, list[float]], stiffnesses: tuple[float, ...], path: Path) -> Path:
    """Draw the errors of each mode against the stiffness."""
    figure, ((ax,),) = grid(
        1,
        1,
        5.5,
        "Tracking error of a Panda against the stiffness of its springs",
        "root of the mean square over joints and 1.6 s of a fast motion; feedback on the motors at 1 kHz",
    )
    for mode, errors in found.items():
        label, colour = _MODES[mode]
        ax.plot(stiffnesses, errors, "o-", color=colour, linewidth=1.8)
        ax.annotate(
            label,
            (stiffnesses[-1], errors[-1]),
            xytext=(8, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontweight="bold",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(right=6.0 * stiffnesses[-1])
    ax.set_xlabel("stiffness of every joint [N·m/rad]")
    ax.set_ylabel("error [rad]")
    return save(figure, path)


def draw_robustness(errors: dict[tuple[str, str], Array], duration: float, path: Path) -> Path:
    """Draw the errors over time with right and wrong inertias."""
    figure, axes = grid(
        1,
        2,
        5.0,
        "Tracking error of a Panda whose inertias are as modelled, and 5 % larger",
        "largest error of any joint; springs of 10000 and 5000 N·m/rad",
    )
    top = max(float(np.abs(table).max()) for table in errors.values())
    for ax, case in zip(axes[0], ("as modelled", "5 % larger")):
        for mode, (label, colour) in _MODES.items():
            table = np.abs(errors[mode, case]).max(axis=1)
            times = np.linspace(0.0, duration, len(table))
            ax.plot(times, table, color=colour, linewidth=1.5, label=label)
        ax.set_yscale("log")
        ax.set_ylim(1e-9, 2.0 * top)
        ax.set_title(f"inertias {case}", loc="left", fontsize=10)
        ax.set_xlabel("time [s]")
    axes[0, 0].set_ylabel("error [rad]")
    return save(figure, path, axes[0, :1])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="Two stiffnesses and 0.2 s only.")] = False,
) -> None:
    """Track a fast motion with springs of many stiffnesses, and with wrong inertias."""
    console = Console(stderr=True)
    panda = Robot.load(share.find("config", "panda.yaml"))
    duration = 0.2 if quick else MOTION.duration
    stiffnesses = STIFFNESSES[3:5] if quick else STIFFNESSES
    feedforwards = ("none", "rigid", "elastic")

    found: dict[str, list[float]] = {mode: [] for mode in feedforwards}
    for stiffness in track(
        stiffnesses, "stiffnesses", console=console, transient=True, disable=not console.is_terminal
    ):
        robot = with_stiffness(panda, stiffness)
        for mode in feedforwards:
            found[mode].append(rms(tracking_errors(robot, robot, mode, duration)))
    print("RMS error [rad] against stiffness [N·m/rad]")
    print("stiffness       none      rigid    elastic")
    for i, stiffness in enumerate(stiffnesses):
        print(f"{stiffness:9.0f}" + "".join(f"  {found[mode][i]:9.2e}" for mode in feedforwards))

    heavier = with_scaled_inertia(panda, HEAVIER)
    errors = {
        (mode, case): tracking_errors(panda, robot, mode, duration)
        for mode in _MODES
        for case, robot in (("as modelled", panda), ("5 % larger", heavier))
    }
    print("RMS error [rad] with inertias as modelled and 5 % larger")
    print("control                         as modelled   5 % larger")
    for mode, (label, _) in _MODES.items():
        row = (rms(errors[mode, case]) for case in ("as modelled", "5 % larger"))
        print(f"{label:30s}" + "".join(f"  {value:11.2e}" for value in row))
    for path in (
        draw_stiffness(found, stiffnesses, out / "elastic_stiffness.png"),
        draw_robustness(errors, duration, out / "elastic_robustness.png"),
    ):
        print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
