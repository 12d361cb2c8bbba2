"""How accurate dynamics are by order, and how accurate anything could be.

Against arithmetic of 40 digits and more, on the very same doubles. Whatever computes with doubles, its input
is rounded to them, and its result: what that alone does, by the same exact arithmetic, is the limit. Inverse,
forward and hybrid dynamics of a Panda as fast as its own dynamics, and of the flight of Ali, Gabellieri &
Franchi (arXiv:2605.06498, Table 3), which is much slower than the arms of the robot would swing; partial
derivatives of the first, and a palletiser, whose loops have to be closed. The exact arithmetic is that of the
tests, so this runs in a clone of the repository, with the packages of the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from aerial_manipulator import table_3_flight
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from pictures import grid, save

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test" / "helpers"))
from linkages import robot_of
from oracles import mp_dynamics as mp
from oracles import mp_loops
from oracles.mechanisms import Mechanism, palletiser
from oracles.motions import Base
from oracles.random_trees import Tree

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.trajectory import read_trajectory

Array = NDArray[np.float64]

ORDER = 6
ORDER_OF_PARTIALS = 4
DRAWS = 3
_ROUNDING = 2.0**-53  # relative error of a number that is rounded to a double
_TIMES = {"panda": (0.7, 2.3, 4.1), "aerial_manipulator": (3.3, 14.9, 27.5), "palletiser": (0.1, 0.5, 0.9)}
_TITLES = {
    "panda": "Panda, as fast as its dynamics",
    "aerial_manipulator": "aerial manipulator, flight of Ali et al.",
    "partials": "Panda, partial derivatives",
    "palletiser": "palletiser, three loops",
}
_COLOURS = {"inverse": "#0077BB", "forward": "#CC3311", "hybrid": "#009988"}

Near = Callable[[ArrayLike], mp.Exact]
Exactly = Callable[[Near], mp.Exact]
Found = dict[str, tuple[Array, Array]]  # errors and limits by order, of every computation


@dataclass(frozen=True, eq=False)
class Instant:
    """A motion at an instant: joints `q` (orders, n), and of a floating base its pose and spatial twists."""

    q: Array
    pose: Array | None = None
    twists: Array | None = None

    def base(self, twists: int) -> BaseMotion | None:
        """For our calls."""
        return None if self.pose is None else BaseMotion(self.pose, self.twists[:twists])

    def exact_base(self, twists: int, near: Near) -> Base | None:
        """For exact ones; `near` rounds."""
        return None if self.pose is None else Base(self.pose, near(self.twists[:twists]), "spatial")


def instants(name: str, order: int) -> list[Instant]:
    """Return the instants of a robot that are looked at."""
    times = np.array(_TIMES[name])
    if name == "panda":
        motion = read_trajectory(share.find("config", "panda_validation.yaml"))
        return [Instant(motion.sample(t, order + 2)) for t in times]
    if name == "palletiser":  # 0.2, 0.3 and 0.15 rad at 3 rad/s
        phases = 3.0 * times[:, None, None] + 0.5 * np.pi * np.arange(order + 3)[:, None] + [0.0, 1.0, 2.0]
        return [Instant(q) for q in 3.0 ** np.arange(order + 3)[:, None] * [0.2, 0.3, 0.15] * np.sin(phases)]
    flight = table_3_flight(times, order)
    return [Instant(*parts) for parts in zip(flight.q, flight.poses, flight.twists)]


def errors_of_tree(robot: Robot, at: Instant, order: int, seed: int, draws: int) -> Found:
    """Return errors and limits of inverse, forward and hybrid dynamics; every second joint is prescribed."""
    tree, n = Tree.of(robot.model), robot.n_coordinates
    efforts = robot.inverse_dynamics(at.q, at.base(order + 2))
    wrench, torques = efforts if isinstance(efforts, tuple) else (None, efforts)
    state = at.base(1)
    free = np.arange(n) % 2 == 0
    given = np.where(free, torques, at.q[2:])
    ours = {
        "inverse": efforts,
        "forward": robot.forward_dynamics(at.q[:2], torques, state, wrench),
        "hybrid": robot.hybrid_dynamics(
            at.q[:2], given, state, wrench, prescribed=np.flatnonzero(~free).tolist()
        ),
    }

    def inverse(near: Near) -> mp.Exact:
        found = mp.inverse_dynamics(tree, near(at.q), base=at.exact_base(order + 2, near))
        return _beside(found.base_wrench, found.torques)

    def hybrid(near: Near, free: NDArray[np.bool_], given: Array) -> mp.Exact:
        values, base = near(given), at.exact_base(1, near)
        push = None if wrench is None else near(wrench)
        moved, held = mp.hybrid_dynamics(
            tree, near(at.q[:2]), free, values, values, base=base, base_wrench=push
        )
        return _beside(moved.base, np.where(free, moved.joints, held.torques))

    exact = {
        "inverse": inverse,
        "forward": lambda near: hybrid(near, np.ones(n, dtype=bool), torques),
        "hybrid": lambda near: hybrid(near, free, given),
    }
    placed = {name: _beside(*found) if isinstance(found, tuple) else found for name, found in ours.items()}
    return {name: _compared(placed[name], exact[name], seed, draws) for name in ours}


def errors_of_partials(robot: Robot, at: Instant, order: int, seed: int, draws: int) -> Found:
    """Return those of partial derivatives, by each derivative of what is given in a direction of its own."""
    tree = Tree.of(robot.model)
    q = at.q[: order + 3]
    torques = robot.inverse_dynamics(q)
    ways = np.random.default_rng(seed).uniform(-1.0, 1.0, q.shape)
    ours = {
        "inverse": robot.inverse_dynamics_derivatives(q),
        "forward": robot.forward_dynamics_derivatives(q[:2], torques),
    }

    def exact(near: Near, given: Array, of: Callable[[mp.Exact], mp.Exact]) -> mp.Exact:
        start = near(given)

        def by(k: int) -> mp.Exact:
            change = mp.exact(np.zeros(given.shape))
            change[k] = mp.exact(ways[k])
            with mp.digits(60):
                step = mp.mpfr(10) ** -20
                return (of(start + step * change) - of(start - step * change)) / (2 * step)

        return np.concatenate([by(k) for k in range(len(given))], axis=1)

    functions = {
        "inverse": (q, lambda x: mp.inverse_dynamics(tree, x).torques),
        "forward": (np.vstack([q[:2], torques]), lambda x: mp.forward_dynamics(tree, x[:2], x[2:]).joints),
    }
    return {
        name: _compared(
            np.hstack([ours[name][:, k] @ way for k, way in enumerate(ways)]),
            lambda near, what=what: exact(near, *what),
            seed,
            draws,
        )
        for name, what in functions.items()
    }


def errors_of_loops(mechanism: Mechanism, at: Instant, order: int, seed: int, draws: int) -> Found:
    """Return those of efforts and accelerations of a robot with loops, which its numbers close: these too."""
    robot, rng = robot_of(mechanism), np.random.default_rng(seed)
    efforts = np.asarray(robot.inverse_dynamics(at.q))

    def seen(near: Near) -> Mechanism:
        if near is mp.exact:
            return mechanism
        return replace(mechanism, tree=mechanism.tree.rounded(rng, 2.0 * _ROUNDING))

    def inverse(near: Near) -> mp.Exact:
        return mp_loops.exact_efforts(seen(near), near(at.q), order)

    def forward(near: Near) -> mp.Exact:
        return mp_loops.exact_accelerations(seen(near), near(at.q[:2]), near(efforts))

    found = np.asarray(robot.forward_dynamics(at.q[:2], efforts))
    return {
        "inverse": _compared(efforts, inverse, seed, draws),
        "forward": _compared(found, forward, seed, draws),
    }


def _beside(base: mp.Exact | Array | None, joints: mp.Exact | Array) -> mp.Exact | Array:
    return joints if base is None else np.concatenate([base, joints], axis=1)


def _compared(ours: Array, exact: Exactly, seed: int, draws: int) -> tuple[Array, Array]:
    """Return errors by order, and the largest that several roundings of the input do, to the largest."""
    rng = np.random.default_rng(seed)

    def rounded(values: ArrayLike) -> mp.Exact:
        # as exact numbers, since a double cannot hold half of its last digit
        signs = rng.choice([-1.0, 1.0], size=np.shape(values))
        return mp.exact(values) * (1 + mp.exact(_ROUNDING * signs))

    true = exact(mp.exact)
    scale = np.abs(mp.to_float(true)).max(axis=1)
    off = np.abs(mp.to_float(mp.exact(ours) - true)).max(axis=1)
    moved = [np.abs(mp.to_float(exact(rounded) - true)).max(axis=1) for _ in range(draws)]
    # the result is rounded as well
    return off / scale, np.max(moved, axis=0) / scale + _ROUNDING


def _draw(ax: Axes, title: str, found: Found) -> None:
    for what, (error, limit) in found.items():
        ax.plot(error, "o-", color=_COLOURS[what], label=f"{what} dynamics")
        ax.plot(limit, "v--", color=_COLOURS[what], label=f"its limit ({what})")
    ax.set_yscale("log")
    ax.set_ylim(1e-17, 1e-3)
    ax.set_title(title, fontsize=10)
    ax.set_xlabel("r, the order of the derivative")
    ax.set_xticks(range(ORDER + 1))


def main(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/examples"),
    quick: Annotated[bool, typer.Option("--quick", help="One instant and rounding, up to order 1.")] = False,
) -> None:
    """Hold all kinds of dynamics against exact arithmetic, by order."""
    figure, axes = grid(
        2,
        2,
        9.2,
        "Errors by order of the derivative",
        "largest of three instants, relative to the largest number of the order",
    )
    for ax, name in zip(axes.ravel(), _TITLES):
        order = 1 if quick else ORDER_OF_PARTIALS if name == "partials" else ORDER
        of = "panda" if name == "partials" else name
        if name == "palletiser":
            mechanism = palletiser()
            compute = partial(errors_of_loops, mechanism)
        else:
            robot = Robot.load(share.find("config", f"{of}.yaml"))
            compute = partial(errors_of_partials if name == "partials" else errors_of_tree, robot)
        several = [
            compute(at, order, seed, 1 if quick else DRAWS)
            for seed, at in enumerate(instants(of, order)[: 1 if quick else None])
        ]
        found = {
            what: tuple(np.max([one[what][i] for one in several], axis=0) for i in (0, 1))
            for what in several[0]
        }
        _draw(ax, _TITLES[name], found)
        print(_TITLES[name])
        for what, parts in found.items():
            for label, values in zip((what, "its limit"), parts):
                print(f"  {label:9s} " + " ".join(f"{value:.1e}" for value in values))
    for ax in axes[:, 0]:
        ax.set_ylabel("relative error")
    print(f"wrote {save(figure, out / 'accuracy.png', [axes[0, 0]])}")


if __name__ == "__main__":
    typer.run(main)
