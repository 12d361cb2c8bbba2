"""A motion with its joints in another order, and with joints beside them that stand still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.base import Pieces, Trajectory
from hodyn_ros.trajectory.checks import frozen_array, unique_names


@dataclass(frozen=True, eq=False)
class Rearranged(Trajectory):
    """A motion whose column j is column `places[j]` of the result; the other columns stand still.

    `still` (columns,): where each column stands [rad or m]; what it holds for columns that move is not used.

    >>> from hodyn_ros.trajectory import Cosines
    >>> Rearranged(Cosines([2.0, 3.0], [1.0, 1.0]), [2, 0], [0.0, 0.5, 0.0]).sample(0.0, 2)
    array([[ 3. ,  0.5,  2. ],
           [-0. ,  0. , -0. ],
           [-3. ,  0. , -2. ]])
    """

    motion: Trajectory
    places: Sequence[int]
    still: ArrayLike
    joint_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        motion, still = self.motion, frozen_array("standing", self.still, ("columns",))
        places, n = tuple(self.places), len(still)
        if len(places) != motion.n_joints or len(set(places) & set(range(n))) != motion.n_joints:
            raise InputError(
                f"places must hold {motion.n_joints} different columns out of {n}, found {list(places)}"
            )
        self._set(
            places=places,
            still=still,
            joint_names=unique_names(self.joint_names, n),
            n_joints=n,
            duration=motion.duration,
            smoothness=motion.smoothness,
            starts_at_rest=motion.starts_at_rest,
            ends_at_rest=motion.ends_at_rest,
            _departure=motion._departure,
        )

    @property
    def breakpoints(self) -> Array | None:
        """Those of the motion."""
        return self.motion.breakpoints

    @property
    def polynomial_degree(self) -> int | None:
        """That of the motion."""
        return self.motion.polynomial_degree

    @property
    def highest_frequency(self) -> float:
        """That of the motion [rad/s]."""
        return self.motion.highest_frequency

    @property
    def pieces(self) -> Pieces | None:
        """Those of the motion."""
        inner = self.motion.pieces
        if inner is None:
            return None
        return replace(inner, derivatives=lambda u, order: self._placed(inner.derivatives(u, order)))

    def _derivatives(self, times: Array, order: int) -> Array:
        return self._placed(self.motion._derivatives(times, order))

    def _placed(self, moved: Array) -> Array:
        """Return derivatives (order + 1, N, columns) from those of the motion."""
        values = np.zeros((*moved.shape[:2], self.n_joints))
        values[0] = self.still
        values[..., self.places] = moved
        return values

    def _smoother(self, order: int) -> str:
        return self.motion._smoother(order)
