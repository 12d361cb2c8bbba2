"""Which combinations of parameters a motion shows: base parameters by QR with pivoting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from hodyn_ros.array import Array

_RANK = 1e-7  # share of the largest diagonal of R


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """`base = combination @ parameters` (b, P): what efforts depend on of all parameters."""

    combination: Array
    names: tuple[str, ...]
    units: tuple[str, ...]


def base_parameters(
    rows: Array, scales: Array, names: tuple[str, ...], units: tuple[str, ...]
) -> BaseParameters:
    """Find the base parameters of rows (N, P) of efforts (M. Gautier, J. Robotic Systems 8(4), 1991).

    Columns are compared after multiplication with `scales` (P,), those with zero left out. Each base
    parameter is one parameter and what cannot be told from it.
    """
    used = np.flatnonzero(scales > 0.0)
    _, triangle, order = qr(rows[:, used] * scales[used], mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > _RANK * diagonal[0]).sum())
    chosen, rest = used[order[:rank]], used[order[rank:]]
    beta = np.linalg.solve(triangle[:rank, :rank], triangle[:rank, rank:])
    beta = scales[chosen][:, None] * beta / scales[rest]
    beta[np.abs(beta * scales[rest]) < 1e-8 * scales[chosen][:, None]] = 0.0
    sort = np.argsort(chosen)
    combination = np.zeros((rank, rows.shape[1]))
    for place, i in enumerate(sort):
        combination[place, chosen[i]] = 1.0
        combination[place, rest] = beta[i]
    labels = tuple(_label(row, int(chosen[i]), names) for row, i in zip(combination, sort))
    return BaseParameters(combination, labels, tuple(units[chosen[i]] for i in sort))


def _label(row: Array, chosen: int, names: tuple[str, ...]) -> str:
    grouped = [i for i in np.flatnonzero(row) if i != chosen]
    parts = [f"{row[i]:+.4g} {names[i]}" for i in grouped[:3]]
    more = f" + {len(grouped) - 3} more" if len(grouped) > 3 else ""
    return " ".join([names[chosen], *parts]) + more
