"""How accurate inverse and forward dynamics are by order, and how accurate anything could be.

Against arithmetic of 40 digits, on the very same doubles. Whatever computes with doubles, its input is
rounded to them, and its result: what that alone does, by the same exact arithmetic, is the limit. Two
motions: a Panda as fast as its own dynamics, and the flight of Ali, Gabellieri & Franchi (arXiv:2605.06498,
Table 3), which is much slower than the arms of the robot would swing. The exact arithmetic is that of the
tests, so this runs in a clone of the repository, with the packages of the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from aerial_manipulator import table_3_flight
from matplotlib.axes import Axes
from numpy.typing import NDArray
from pictures import grid, save

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test" / "helpers"))
from oracles import mp_dynamics as mp
from oracles.motions import Base
from oracles.random_trees import Tree

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.trajectory import read_trajectory

Array = NDArray[np.float64]

ORDER = 5
_ROUNDING = 2.0**-53  # relative error of a number that is rounded to a double
_TIMES = {"panda": (0.7, 2.3, 4.1), "aerial_manipulator": (3.3, 14.9, 27.5)}  # [s]
_TITLES = {
    "panda": "Panda, as fast as its dynamics",
    "aerial_manipulator": "aerial manipulator, flight of Ali et al.",
}
_COLOURS = {"inverse dynamics": "#0077BB", "forward dynamics": "#CC3311"}


@dataclass(frozen=True, eq=False)
class Instant:
    """A motion at an instant: joints `q` (orders, n), and of a floating base its pose and spatial twists."""

    q: Array
    pose: Array | None = None
    twists: Array | None = None

    @property
    def base(self) -> BaseMotion | None:
        """For our calls."""
        return None if self.pose is None else BaseMotion(self.pose, self.twists)

    def exact_base(self, twists: int, near: Callable[[Array], mp.Exact]) -> Base | None:
        """For exact ones; `near` rounds."""
        return None if self.pose is None else Base(self.pose, near(self.twists[:twists]), "world")


def instants(name: str, order: int) -> list[Instant]:
    """Return the instants of a robot that are looked at."""
    if name == "panda":
        motion = read_trajectory(share.find("config", "panda_validation.yaml"))
        return [Instant(motion.sample(t, order + 2)) for t in _TIMES[name]]
    flight = table_3_flight(np.array(_TIMES[name]), order)
    return [Instant(*parts) for parts in zip(flight.q, flight.poses, flight.twists)]


def errors(robot: Robot, at: Instant, order: int, seed: int) -> dict[str, tuple[Array, Array]]:
    """Return errors by order and what one rounding of input and result does, relative to the largest."""
    rng = np.random.default_rng(seed)

    def rounded(values: Array) -> mp.Exact:
        # as exact numbers, since a double cannot hold half of its last digit
        return mp.exact(values) * (1 + mp.exact(_ROUNDING * rng.choice([-1.0, 1.0], size=values.shape)))

    tree, base = Tree.of(robot.model), at.base
    efforts = robot.inverse_dynamics(at.q, base)
    wrench, torques = efforts if isinstance(efforts, tuple) else (None, efforts)
    found = robot.forward_dynamics(at.q[:2], torques, base=base and _state(base), base_wrench=wrench)
    accelerations = np.hstack(found[::-1]) if isinstance(found, tuple) else found

    def exact_efforts(near: Callable[[Array], mp.Exact]) -> Array:
        result = mp.inverse_dynamics(tree, near(at.q), base=at.exact_base(order + 2, near))
        parts = [result.torques] if result.base_wrench is None else [result.base_wrench, result.torques]
        return np.concatenate(parts, axis=1)

    def exact_motion(near: Callable[[Array], mp.Exact]) -> Array:
        result = mp.forward_dynamics(
            tree,
            near(at.q[:2]),
            near(torques),
            base=at.exact_base(1, near),
            base_wrench=None if wrench is None else near(wrench),
        )
        parts = [result.joints] if result.base is None else [result.base, result.joints]
        return np.concatenate(parts, axis=1)

    ours = torques if wrench is None else np.hstack([wrench, torques])
    return {
        "inverse dynamics": _compared(ours, exact_efforts, rounded),
        "forward dynamics": _compared(accelerations, exact_motion, rounded),
    }


def _state(base: BaseMotion) -> BaseMotion:
    return BaseMotion(base.pose, base.twists[:1])


def _compared(
    ours: Array, exact: Callable[..., mp.Exact], rounded: Callable[[Array], mp.Exact]
) -> tuple[Array, Array]:
    true, moved = exact(mp.exact), exact(rounded)
    scale = np.abs(mp.to_float(true)).max(axis=1)
    off, limit = mp.to_float(mp.exact(ours) - true), mp.to_float(moved - true)
    # the result is rounded as well
    return np.abs(off).max(axis=1) / scale, np.abs(limit).max(axis=1) / scale + _ROUNDING


def _draw(ax: Axes, title: str, found: dict[str, tuple[Array, Array]]) -> None:
    for what, (error, limit) in found.items():
        ax.plot(error, "o-", color=_COLOURS[what], label=what)
        ax.plot(limit, "v--", color=_COLOURS[what], label=f"limit of {what}")
    ax.set_yscale("log")
    ax.set_ylim(1e-17, 1e-4)
    ax.set_title(title, fontsize=10)
    ax.set_xlabel("r, the order of the derivative")
    ax.set_xticks(range(len(next(iter(found.values()))[0])))


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="One instant, up to order 1.")] = False,
) -> None:
    """Hold inverse and forward dynamics against exact arithmetic, by order."""
    order = 1 if quick else ORDER
    figure, ((left, right),) = grid(
        1,
        2,
        5.6,
        "Errors by order of the derivative",
        "largest of three instants, relative to the largest number of the order",
    )
    for ax, name in ((left, "panda"), (right, "aerial_manipulator")):
        robot = Robot.from_config(share.find("config", f"{name}.yaml"))
        several = [
            errors(robot, at, order, seed)
            for seed, at in enumerate(instants(name, order)[: 1 if quick else None])
        ]
        found = {
            what: tuple(np.max([one[what][i] for one in several], axis=0) for i in (0, 1))
            for what in _COLOURS
        }
        _draw(ax, _TITLES[name], found)
        print(f"{name}: relative to the largest number of the order")
        print("order  inverse    its limit  forward    its limit")
        for r in range(order + 1):
            cells = [found[what][i][r] for what in _COLOURS for i in (0, 1)]
            print(f"{r:5d}  " + "  ".join(f"{cell:.3e}" for cell in cells))
    left.set_ylabel("relative error")
    print(f"wrote {save(figure, out / 'accuracy.png', [left])}")


if __name__ == "__main__":
    typer.run(main)
