"""Whole problems of dynamics, robot and motion and loads, each reproducible from a seed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from oracles import mp_dynamics
from oracles.motions import Base, Frame, Load, random_base, random_loads, random_motion
from oracles.random_trees import Array, Tree, random_tree


@dataclass(frozen=True, eq=False)
class Case:
    """A robot, a motion q (order + 3, n) of it, and the wrenches that the environment applies."""

    tree: Tree
    q: Array
    base: Base | None
    loads: list[Load]

    @property
    def order(self) -> int:
        return len(self.q) - 3

    def exact_efforts(self) -> Array:
        """Return the exact torques (order + 1, n); where the base floats, the base wrench on their left."""
        return stacked(mp_dynamics.inverse_dynamics(self.tree, self.q, base=self.base, loads=self.loads))


def make_case(
    seed: int,
    n_bodies: int,
    order: int,
    floating_base: bool = False,
    n_loads: int = 0,
    branching: float = 0.3,
    representation: Frame = "spatial",
) -> Case:
    """Build a case from a seed; `representation` is the one of the base motion."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_bodies, floating_base=floating_base, branching=branching)
    return Case(
        tree=tree,
        q=random_motion(rng, tree, order),
        base=random_base(rng, order, representation) if floating_base else None,
        loads=random_loads(rng, tree, order, n_loads),
    )


def cases(
    max_bodies: int,
    orders: Sequence[int],
    *,
    bases: Sequence[bool] = (False, True),
    max_loads: int = 2,
) -> st.SearchStrategy[Case]:
    """Return a hypothesis strategy of cases; `bases` are the values that `floating_base` may take."""
    frames: tuple[Frame, Frame] = ("spatial", "body_fixed")
    return st.builds(
        make_case,
        seed=st.integers(0, 2**32 - 1),
        n_bodies=st.integers(1, max_bodies),
        order=st.sampled_from(list(orders)),
        floating_base=st.sampled_from(list(bases)),
        n_loads=st.integers(0, max_loads),
        branching=st.sampled_from([0.0, 0.3, 0.9]),
        representation=st.sampled_from(frames),
    )


def stacked(efforts: mp_dynamics.Efforts) -> Array:
    """Round efforts to doubles and put the base wrench to the left of the torques."""
    parts = [part for part in (efforts.base_wrench, efforts.torques) if part is not None]
    return mp_dynamics.to_float(np.concatenate(parts, axis=1))


def relative_errors(found: Array, expected: Array) -> Array:
    """Return the largest error of each order (orders,) relative to the largest entry of that order."""
    if found.shape != expected.shape:
        raise ValueError(f"cannot compare the shapes {found.shape} and {expected.shape}")
    errors: Array = np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)
    return errors
