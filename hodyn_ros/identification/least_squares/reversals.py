"""Samples about reversals where friction is no function of the velocity, as it sticks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from hodyn_ros.array import Array

_SHELLS = np.array([0.5, 1.0, 2.0, 4.0, 8.0])  # speeds that are tried, in transition speeds of the file
_MORE = 1.5  # times the mean square of the residual elsewhere, from which on it is not explained
_PART = 0.06  # of Coulomb friction, RMS, beside what noise of the velocity makes of it, that is left out
_STICKS = 0.15  # the same, from which on it sticks: no look tells how it turns over
_MOST = 0.4  # share of the samples that may be left out
_SURE = 3.0  # standard deviations of that ratio that it is beyond


def unexplained(
    speed: Array,
    residual: Array,
    transition: float,
    coulomb: float,
    shaken: Array,
    reach: int,
    independent: float,
) -> tuple[NDArray[np.bool_], bool]:
    """Return which samples (N,) are slower than friction is explained by its law, and whether it sticks.

    These and `reach` samples about them. `speed` (N,) is that of the motor, `residual` (N,) what a first fit
    does not explain of its effort, `shaken` (N,) the deviation of friction that noise of the velocity makes;
    a share `independent` of the samples tells something of its own. A stiff contact sticks, and what it holds
    follows from the torques at it; such samples tell nothing of a law in the velocity, and would be taken for
    a delay.
    """
    structure = np.ones(2 * reach + 1, dtype=bool)
    zones = [binary_dilation(np.abs(speed) < each, structure) for each in transition * _SHELLS]
    zones = [zone for zone in zones if zone.mean() <= _MOST]
    nothing = np.zeros(len(speed), dtype=bool)
    if not zones:
        return nothing, False
    usual = float((1.4826 * np.median(np.abs(residual[~zones[-1]]))) ** 2)  # outliers hardly count
    result, inner, beyond = nothing, nothing, 0.0
    for zone in zones:
        shell = zone & ~inner
        inner = zone
        if not shell.any():
            continue
        count = max(1.0, independent * float(shell.sum()))
        left, made = float(np.mean(residual[shell] ** 2)), float(np.mean(shaken[shell] ** 2))
        if left > (_MORE + _SURE * np.sqrt(2.0 / count)) * (usual + made):
            result, beyond = zone, max(beyond, left - made)
    return (result if beyond > (_PART * coulomb) ** 2 else nothing), beyond > (_STICKS * coulomb) ** 2
