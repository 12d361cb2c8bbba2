"""Motions whose columns are polynomials between known places, of time or of a parameter that runs with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hodyn_ros.array import Array


@dataclass(frozen=True, eq=False)
class Pieces:
    """A motion q(u(t)) whose columns are polynomials of u between `edges`, and so is `(du/dt)^2 = b(u)`.

    With `P_0 = q`, its time derivatives are `q^(k) = P_k` for even k and `sqrt(b) P_k` for odd k, where each
    P_k is a polynomial: `P_(k+1) = P_k'` after an even k, `b P_k' + b' P_k / 2` after an odd one.
    """

    edges: Array  # (M,) increasing; the motion is smooth between two of them
    degree: int  # of q
    derivatives: Callable[[Array, int], Array]  # u (N,), order: time derivatives (order + 1, N, n) of q
    speeds: Callable[[Array], Array]  # u (N,): du/dt (N,), positive
    times: Callable[[Array], Array]  # u (N,): when they are passed (N,) [s]
    places: Callable[[Array], Array]  # and back
    speed_degree: int = 0  # of b

    def degree_of(self, order: int) -> int:
        """Return the degree of P_k at most."""
        return max(self.degree - order, 0) + self.speed_degree * (order // 2)
