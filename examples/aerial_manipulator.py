"""The floating aerial manipulator of Ali et al. on its flight: inverse dynamics, and forward dynamics back.

A. Ali, C. Gabellieri, A. Franchi, "Lie Group Formulation of Recursive Dynamics Algorithms of Higher Order for
Floating-Base Robots", arXiv:2605.06498: robot and flight of Table 3, pictures as in Figure 3. A hexarotor
flies a circle and swings its yaw, while its two arms move by half a cosine. Inverse dynamics of order 5 gives
the wrench at the base and the torques of the joints with five derivatives; forward dynamics of these gives
the motion back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pictures import AXIS_COLOURS, JOINT_COLOURS, curves, grid, per_second, save
from rich.console import Console
from rich.progress import track

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.trajectory import FourierSeries

Array = NDArray[np.float64]

ORDER = 5
HORIZON = 30.0  # [s]
SAMPLES = 3000
ROUNDING = 2.0**-53  # relative error of a number that is rounded to a double

_START = np.deg2rad([10.0, -5.0, 15.0, -10.0, 7.0, -12.0])
_SWING = np.deg2rad([60.0, 50.0, 40.0, 55.0, 45.0, 35.0])
_RADIUS = 1.0  # of the circle [m], in the plane z = 0
_CIRCLING = 2.0 * np.pi / 20.0  # [rad/s]
_YAWING = 2.0 * np.pi / 30.0  # [rad/s]
_YAW = np.deg2rad(25.0)

# Perturbations are made this much larger than roundings, so that nothing else disturbs them, and their
# effects divided by it again.
_MAGNIFIED = 2.0**20


@dataclass(frozen=True, eq=False)
class Flight:
    """Motion by order at N times.

    Joints `q` (N, order + 3, 6); of the base `poses` (N, 4, 4) and spatial `twists` (N, order + 2, 6).
    """

    times: Array
    q: Array
    poses: Array
    twists: Array

    def base(self, sample: int) -> BaseMotion:
        """Return the motion of the base at one sample."""
        return BaseMotion(self.poses[sample], self.twists[sample])


@dataclass(frozen=True, eq=False)
class Efforts:
    """What moves the robot: `wrenches` at the base and `torques` of the joints, (N, order + 1, 6) each."""

    wrenches: Array
    torques: Array


@dataclass(frozen=True, eq=False)
class Accelerations:
    """What the efforts cause: accelerations of the `joints` and of the `base`, (N, order + 1, 6) each."""

    joints: Array
    base: Array


@dataclass(frozen=True, eq=False)
class Figures:
    """Errors by order (order + 1,), relative to the largest number of that order in the flight."""

    joints: Array  # motion that forward dynamics returns
    base: Array
    rounding: Array  # how far one rounding of torques and base wrench moves the joints
    efforts: Array  # efforts that the returned motion needs, against those it came from


def table_3_flight(times: Array, order: int = ORDER) -> Flight:
    """Return the flight of Table 3 at the given times [s].

    The paper leaves the start of circle and yaw open: here the circle starts on the x axis, the yaw at zero.
    """
    # q0 + eta/2 (1 - cos(pi t / T))
    half = np.pi / HORIZON
    joints = FourierSeries(half, np.zeros((1, 6)), np.array([0.5 * half * _SWING]), _START + 0.5 * _SWING)
    # x, y and yaw are the third and the second harmonic of one slow frequency
    slow = 2.0 * np.pi / 60.0
    sine, cosine = np.zeros((3, 3)), np.zeros((3, 3))
    cosine[2, 0] = -_CIRCLING * _RADIUS
    sine[2, 1] = _CIRCLING * _RADIUS
    sine[1, 2] = _YAWING * _YAW
    base = FourierSeries(slow, sine, cosine, np.zeros(3)).sample(times, order + 2)
    poses = np.tile(np.eye(4), (len(times), 1, 1))
    yaw = base[:, 0, 2]
    poses[:, 0, 0] = poses[:, 1, 1] = np.cos(yaw)
    poses[:, 1, 0] = np.sin(yaw)
    poses[:, 0, 1] = -poses[:, 1, 0]
    poses[:, :2, 3] = base[:, 0, :2]
    hybrid = np.zeros((order + 2, len(times), 6))  # (omega; p') in world axes
    hybrid[..., 2] = base[:, 1:, 2].T
    hybrid[..., 3:5] = np.moveaxis(base[:, 1:, :2], 1, 0)
    spatial = convert_screws(hybrid, poses, hybrid, "hybrid", "spatial")
    twists = np.ascontiguousarray(np.moveaxis(spatial, 0, 1))
    return Flight(times, joints.sample(times, order + 2), poses, twists)


def inverse_dynamics(robot: Robot, q: Array, poses: Array, twists: Array) -> Efforts:
    """Return wrenches and torques of a flight, sample by sample as a controller would."""
    compiled = robot.compile(q.shape[1] - 3)
    efforts = np.array([compiled(*sample) for sample in zip(q, poses, twists)])
    return Efforts(np.ascontiguousarray(efforts[..., :6]), np.ascontiguousarray(efforts[..., 6:]))


def forward_dynamics(robot: Robot, flight: Flight, efforts: Efforts, samples: Iterable[int]) -> Accelerations:
    """Return the accelerations that the efforts cause in the states of the flight."""
    found = [
        robot.forward_dynamics(
            flight.q[i, :2], efforts.torques[i], base=flight.base(i), base_wrench=efforts.wrenches[i]
        )
        for i in samples
    ]
    return Accelerations(np.array([one.joints for one in found]), np.array([one.base for one in found]))


def figures(
    robot: Robot, flight: Flight, efforts: Efforts, found: Accelerations, disturbed: Accelerations
) -> Figures:
    """Compare what forward dynamics returns with the flight, and with what rounding does to it."""
    again = inverse_dynamics(
        robot,
        np.concatenate([flight.q[:, :2], found.joints], axis=1),
        flight.poses,
        np.concatenate([flight.twists[:, :1], found.base], axis=1),
    )
    return Figures(
        joints=_relative(found.joints - flight.q[:, 2:], flight.q[:, 2:]),
        base=_relative(found.base - flight.twists[:, 1:], flight.twists[:, 1:]),
        rounding=_relative(disturbed.joints - found.joints, flight.q[:, 2:]) / _MAGNIFIED,
        efforts=np.maximum(
            _relative(again.torques - efforts.torques, efforts.torques),
            _relative(again.wrenches - efforts.wrenches, efforts.wrenches),
        ),
    )


def rounded(efforts: Efforts, seed: int = 0) -> Efforts:
    """Return the efforts, every number off at random by up to `_MAGNIFIED` roundings."""
    rng = np.random.default_rng(seed)

    def off(values: Array) -> Array:
        return values * (1.0 + _MAGNIFIED * ROUNDING * rng.uniform(-1.0, 1.0, size=values.shape))

    return Efforts(off(efforts.wrenches), off(efforts.torques))


def _relative(errors: Array, values: Array) -> Array:
    result: Array = np.abs(errors).max(axis=(0, 2)) / np.abs(values).max(axis=(0, 2))
    return result


def draw_motion(flight: Flight, found: Accelerations, path: Path) -> Path:
    """Draw what goes into inverse dynamics, and what comes out of forward dynamics (Figure 3a)."""
    orders = found.joints.shape[1]
    figure, axes = grid(
        orders,
        3,
        14.0,
        "Motion of the aerial manipulator (spatial twist of the base)",
        "solid: given to inverse dynamics; black, dashed: returned by forward dynamics of its result",
    )
    columns = (
        ("joints, $q", "rad", 2, flight.q[:, 2:], found.joints, _JOINTS, JOINT_COLOURS),
        ("base, $\\omega", "rad", 1, flight.twists[:, 1:, :3], found.base[..., :3], _AXES, AXIS_COLOURS),
        ("base, $v", "m", 1, flight.twists[:, 1:, 3:], found.base[..., 3:], _AXES, AXIS_COLOURS),
    )
    for r in range(orders):
        for ax, (what, unit, first, given, returned, names, colours) in zip(axes[r], columns):
            curves(ax, flight.times, given[:, r], names, colours)
            ax.plot(flight.times, returned[:, r], color="black", linewidth=1.0, dashes=(4, 5))
            ax.set_title(f"r = {r}: {what}^{{({r + first})}}$ [{unit}{per_second(r + 2)}]", fontsize=10)
    return _save(figure, axes, path)


def draw_efforts(flight: Flight, efforts: Efforts, path: Path) -> Path:
    """Draw torques and base wrench with their derivatives (Figure 3b)."""
    orders = efforts.torques.shape[1]
    figure, axes = grid(
        orders,
        3,
        14.0,
        "What moves the aerial manipulator, found by inverse dynamics",
        "r-th derivatives; base wrench in world axes, about the world origin",
    )
    columns = (
        ("torques, $Q", "N m", efforts.torques, _JOINTS, JOINT_COLOURS),
        ("base moment, $m", "N m", efforts.wrenches[..., :3], _AXES, AXIS_COLOURS),
        ("base force, $f", "N", efforts.wrenches[..., 3:], _AXES, AXIS_COLOURS),
    )
    for r in range(orders):
        for ax, (what, unit, values, names, colours) in zip(axes[r], columns):
            curves(ax, flight.times, values[:, r], names, colours)
            ax.set_title(f"r = {r}: {what}^{{({r})}}$ [{unit}{per_second(r)}]", fontsize=10)
    return _save(figure, axes, path)


def draw_errors(found: Figures, path: Path) -> Path:
    """Draw how the errors grow with the order, beside what rounding of the input does."""
    figure, ((ax,),) = grid(
        1,
        1,
        6.2,
        "From the motion to torques and back",
        "largest error in the flight, relative to the largest number of that order",
    )
    orders = np.arange(len(found.joints))
    ax.plot(
        orders, found.joints, "o-", color=JOINT_COLOURS[0], label="joint motion returned by forward dynamics"
    )
    ax.plot(
        orders, found.base, "s-", color=JOINT_COLOURS[2], label="base motion returned by forward dynamics"
    )
    ax.plot(
        orders,
        found.rounding,
        "v--",
        color=JOINT_COLOURS[1],
        label="joint motion moved by one rounding of torques and base wrench",
    )
    ax.plot(
        orders,
        found.efforts,
        "^-",
        color=JOINT_COLOURS[6],
        label="torques and wrench needed by the motion returned",
    )
    ax.set_yscale("log")
    ax.set_xlabel("r, the order of the derivative")
    ax.set_ylabel("relative error")
    ax.set_xticks(orders)
    ax.legend(loc="upper left", frameon=False)
    return save(figure, path)


_JOINTS = [f"joint {j}" for j in range(2, 8)]  # as the paper counts, the base being the first body
_AXES = ("x", "y", "z")


def _save(figure: Figure, axes: NDArray[np.object_], path: Path) -> Path:
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    return save(figure, path, axes[0, :2])


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="Every 50th sample, to order 3.")] = False,
) -> None:
    """Fly the aerial manipulator of Ali et al.: inverse dynamics of order 5, forward dynamics back."""
    console = Console(stderr=True)
    robot = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    times = np.linspace(0.0, HORIZON, SAMPLES, endpoint=False)
    order = 3 if quick else ORDER
    flight = table_3_flight(times[:: 50 if quick else 1], order)
    with console.status("compiling"):
        efforts = inverse_dynamics(robot, flight.q, flight.poses, flight.twists)
        forward_dynamics(robot, flight, efforts, [0])

    def samples(what: str) -> Iterable[int]:
        return track(
            range(len(flight.times)), what, console=console, transient=True, disable=not console.is_terminal
        )

    found = forward_dynamics(robot, flight, efforts, samples("forward dynamics"))
    disturbed = forward_dynamics(robot, flight, rounded(efforts), samples("what rounding does"))
    errors = figures(robot, flight, efforts, found, disturbed)

    print(f"{robot.model.name}: {len(flight.times)} samples of the flight of Table 3, orders 0 to {order}")
    print("errors relative to the largest number of the order:")
    print("order  joint motion  base motion  one rounding  efforts again")
    for r in range(order + 1):
        print(
            f"{r:5d}  {errors.joints[r]:12.1e}  {errors.base[r]:11.1e}  {errors.rounding[r]:12.1e}"
            f"  {errors.efforts[r]:13.1e}"
        )
    with console.status("drawing"):
        written = [
            draw_motion(flight, found, out / "aerial_motion.png"),
            draw_efforts(flight, efforts, out / "aerial_efforts.png"),
            draw_errors(errors, out / "aerial_errors.png"),
        ]
    for path in written:
        print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
