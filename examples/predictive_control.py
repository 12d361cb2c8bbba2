"""Model predictive control of an elastic Panda in MuJoCo, whose hand is pushed by what nobody announced.

    python examples/predictive_control.py

The same motion, the same 20 N at the last link, behind the same command guard at 1 kHz: feedback on the
motors with elastic feedforward, and `PredictiveControl` with a momentum observer. The arm is as modelled, or
its springs, masses and encoders are not. Needs `pip install mujoco daqp`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import grid, save

from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.demo.mujoco_arm import MujocoArm
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig, GuardLimits
from hodyn_ros.simulation.closed_loop import GuardedController, run_loop
from hodyn_ros.simulation.predictive_loop import PredictiveLoop
from hodyn_ros.simulation.sensors import Encoder, Sensors
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.simulation.tracking_study import RobotErrors
from hodyn_ros.trajectory import WaypointSpline

Array = NDArray[np.float64]

PERIOD = 1e-3  # [s]
DAMPING = 2e-4  # [s] of the springs in MuJoCo, damping over stiffness, which no model here knows
FREQUENCY, STIFF = 30.0, 100.0  # [rad/s] of the feedback on the motors: as controller_node has it, and fast
FORCE, BEGINS, ENDS = np.array([0.0, 16.0, -12.0]), 0.6, 1.0  # [N, s] of the push
HOME = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0]
AWAY = [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5]
MOTION = WaypointSpline([0.0, 0.8, 1.6], [HOME, AWAY, HOME], order=6)
GUARD = GuardConfig(  # errors are to be measured here, and not to be stopped for
    measured=True, settle=0.0, lead=0.5 * PERIOD, tracking_error=10.0, resolution=1.0, effort_step=10.0
)
COLOURS = {"motor PD": "#888888", "motor PD, fast": "#E69F00", "predictive": "#0072B2"}


class Case(NamedTuple):
    """How the arm in MuJoCo differs from its model."""

    name: str
    errors: RobotErrors = RobotErrors()
    bits: tuple[int, int] | None = None  # of the encoders of links and motors; None: exact


CASES = (
    Case("as modelled"),
    Case("springs 20 % softer", RobotErrors(stiffness=-0.2)),
    Case("springs 20 % stiffer", RobotErrors(stiffness=0.2)),
    Case("inertias 5 % larger", RobotErrors(inertia=0.05)),
    Case("encoders", bits=(22, 24)),
)


class PushedArm(MujocoArm):
    """An arm whose last link is pushed for a while."""

    _passed = 0.0

    def advance(self, duration: float, effort: Array) -> None:
        """Let time pass under efforts of the motors and the push."""
        within = BEGINS <= self._passed < ENDS
        self.push("panda_link7", FORCE if within else np.zeros(3))
        super().advance(duration, effort)
        self._passed += duration


def feedback(model: Robot, frequency: float) -> GuardedController:
    """Return feedback on the motors with elastic feedforward."""
    train, law = model.require_drives(), FeedforwardModel(model, 4)
    limits = GuardLimits(effort=train.effort_limits(model.limits.effort))
    guard = CommandGuard(model.driven_joints, GUARD, limits, MotorGains.of_drives(train, frequency, 1.0))

    def reference(time: float) -> Reference:
        feedforward = law.compute(MOTION.sample(time, law.motion_orders - 1))
        return motor_reference(FeedforwardMode.ELASTIC, train, feedforward)

    return GuardedController(guard, reference)


def prediction(model: Robot) -> PredictiveLoop:
    """Return predictive control."""
    return PredictiveLoop(model, MOTION, MotorGains.of_drives(model.require_drives(), FREQUENCY, 1.0), GUARD)


def link_errors(
    model: Robot, case: Case, control: GuardedController | PredictiveLoop, duration: float
) -> Array:
    """Return the errors (N, 7) [rad] of the links of the arm of a case."""
    robot = case.errors.applied(model)
    damping = robot.require_drives().damping(DAMPING)
    plant = PushedArm(RobotSimulation(robot, MOTION.sample(0.0, 0)[0], damping=damping), DAMPING)
    links, motors = (Encoder(2.0 * np.pi / 2**bits) for bits in case.bits) if case.bits else [Encoder()] * 2
    sensors = Sensors(links, motors, PERIOD)
    record = run_loop(plant, control, duration, PERIOD, sensors=sensors)
    found: Array = record.positions - MOTION.sample(record.times, 0)[:, 0]
    return found


def draw(errors: dict[str, Array], path: Path) -> Path:
    """Draw the largest error of any link over time."""
    figure, ((ax,),) = grid(
        1, 1, 4.6, "Error of the links of an elastic Panda in MuJoCo", "its last link is pushed by 20 N"
    )
    for name, table in errors.items():
        times = PERIOD * np.arange(len(table))
        ax.plot(times, 1e3 * np.abs(table).max(axis=1), color=COLOURS[name], linewidth=1.8, label=name)
    ax.axvspan(BEGINS, ENDS, color="#CC3311", alpha=0.08)
    ax.set_yscale("log")
    ax.set_ylim(bottom=1e-3)
    ax.set_xlabel("time [s]")
    ax.set_ylabel("largest error [mrad]")
    return save(figure, path, [ax])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/examples"),
    quick: Annotated[
        bool, typer.Option("--quick", help="The arm as modelled, until shortly after the push begins.")
    ] = False,
) -> None:
    """Push the arm under each controller, and compare the errors of the links."""
    model = Robot.load(share.find("config", "panda.yaml"))
    duration = BEGINS + 0.1 if quick else MOTION.duration + 0.2
    print("root mean square, largest error of a link [mrad]")
    drawn: dict[str, Array] = {}
    seconds: list[float] = []
    for case in CASES[: 1 if quick else None]:
        controls = {
            "motor PD": feedback(model, FREQUENCY),
            "motor PD, fast": feedback(model, STIFF),
            "predictive": prediction(model),
        }
        for name, control in controls.items():
            errors = link_errors(model, case, control, duration)
            drawn.setdefault(name, errors)
            rms, largest = 1e3 * np.sqrt(np.mean(errors**2)), 1e3 * np.abs(errors).max()
            print(f"{case.name:22s}  {name:16s}  {rms:8.3f}  {largest:8.3f}")
            if isinstance(control, PredictiveLoop):
                seconds += control.seconds[1:]  # the first one fills the table of the motion
    low, high = 1e6 * np.percentile(seconds, [50, 99])
    print(f"one step of prediction: {low:.0f} µs in the median, {high:.0f} µs at 99 %")
    print(f"wrote {draw(drawn, out / 'predictive_control.png')}")


if __name__ == "__main__":
    typer.run(main)
