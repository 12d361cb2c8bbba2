"""Problems of forward and hybrid dynamics with their exact answers, and the honest unit of error for them.

Higher orders of forward dynamics amplify the rounding of their own input, so that no algorithm in doubles can
promise a fixed number of digits. The unit of error is how far the exact answer moves when every number of the
problem is rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oracles import mp_dynamics as mp
from oracles.cases import Case
from oracles.motions import Base, Load
from oracles.random_trees import Array, Tree

ROUNDING = 2.0**-52


@dataclass(frozen=True, eq=False)
class HybridProblem:
    """What is given to hybrid dynamics: `given` (order + 1, n) holds torques where `free` (n,), else motion.

    A floating base that is `base_free` has its pose, its twist and the wrench (order + 1, 6) on it given in
    the world frame (None: nothing pushes), else all its twists.
    """

    tree: Tree
    state: Array
    given: Array
    free: NDArray[np.bool_]
    base: Base | None = None
    base_free: bool = True
    base_wrench: Array | None = None
    loads: tuple[Load, ...] = ()

    @classmethod
    def of_case(cls, case: Case, free: NDArray[np.bool_], base_free: bool = True) -> HybridProblem:
        """Return the problem that the motion of a case solves, but for the rounding of its efforts."""
        efforts = mp.inverse_dynamics(case.tree, case.q, base=case.base, loads=case.loads)
        pushed = base_free and efforts.base_wrench is not None
        return cls(
            tree=case.tree,
            state=case.q[:2],
            given=np.where(free, mp.to_float(efforts.torques), case.q[2:]),
            free=free,
            base=case.base,
            base_free=base_free,
            base_wrench=mp.to_float(efforts.base_wrench) if pushed else None,
            loads=tuple(case.loads),
        )

    def exact_answer(self) -> Answer:
        """Return the exact answer, rounded to doubles."""
        found, efforts = mp.hybrid_dynamics(
            self.tree,
            self.state,
            self.free,
            self.given,
            self.given,
            base=self.base,
            base_free=self.base_free,
            base_wrench=self.base_wrench,
            loads=self.loads,
        )
        base = found.base if self.base_free else efforts.base_wrench
        return Answer(
            joints=np.where(self.free, mp.to_float(found.joints), mp.to_float(efforts.torques)),
            base=None if base is None else mp.to_float(base),
        )

    def rounded(self, rng: np.random.Generator) -> HybridProblem:
        """Return the problem with every number of it rounded once."""

        def near(values: Array) -> Array:
            return values * (1.0 + ROUNDING * rng.uniform(-1.0, 1.0, size=values.shape))

        base = self.base
        return replace(
            self,
            tree=self.tree.rounded(rng, ROUNDING),
            state=near(self.state),
            given=near(self.given),
            base=None if base is None else replace(base, pose=near(base.pose), twists=near(base.twists)),
            base_wrench=None if self.base_wrench is None else near(self.base_wrench),
            loads=tuple(replace(load, values=near(load.values)) for load in self.loads),
        )


@dataclass(frozen=True, eq=False)
class Answer:
    """Accelerations of free joints and torques of the others (order + 1, n), and of the base (order + 1, 6).

    The base's are the derivatives of its twist in its frame where it is free, else the wrench in the world
    frame.
    """

    joints: Array
    base: Array | None

    def parts(self, free: NDArray[np.bool_]) -> list[Array]:
        """Return the accelerations of free joints, the torques of the others, and what the base does."""
        parts = [self.joints[:, free], self.joints[:, ~free]]
        parts += [] if self.base is None else [self.base]
        return [part for part in parts if part.shape[1]]


def errors_in_roundings(problem: HybridProblem, found: Answer, expected: Answer | None = None) -> Array:
    """Return the error of every part and order (parts, orders), in effects of rounding the problem once.

    `expected` is by default the exact answer. Where an answer hardly depends on the numbers of the problem,
    the unit is the rounding of the answer.
    """
    exact = problem.exact_answer().parts(problem.free)
    units = [ROUNDING * np.abs(part).max(axis=1) for part in exact]
    rng = np.random.default_rng(0)
    for _ in range(3):
        moved = problem.rounded(rng).exact_answer().parts(problem.free)
        units = [
            np.maximum(unit, np.abs(near - part).max(axis=1)) for unit, near, part in zip(units, moved, exact)
        ]
    right = exact if expected is None else expected.parts(problem.free)
    parts = found.parts(problem.free)
    if [part.shape for part in parts] != [part.shape for part in right]:
        raise ValueError(f"found the shapes {[p.shape for p in parts]}, not {[p.shape for p in right]}")
    return np.array([np.abs(a - b).max(axis=1) / unit for a, b, unit in zip(parts, right, units)])
