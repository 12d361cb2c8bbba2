"""The bandwidth of a motion that predicts efforts best, of either half of a recording from the other.

Positions alone say up to where they are no noise, not how well accelerations are known, which efforts follow
from: with few samples a second, fast motion makes them worse than none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.identification.smoothing import BANDWIDTHS
from hodyn_ros.identification.torque_model import TorqueModel

_ROWS = 3000  # instants at which bandwidths are compared
_CLEAR = 0.05  # share of the variance that another one has to leave less
_OUTLIER = 4.0  # median deviations from which on a residual counts no more


def best_data(model: TorqueModel, recording: JointRecording, spreads: Callable[[Data], Array]) -> Data:
    """Return a recording with the bandwidth that its positions show, or one that predicts efforts better.

    `spreads` gives those of the parameters about the prior (P,), 0 where they are held. Where a joint has one
    encoder, none beyond what positions show is tried: above is vibration, in which motor and link move apart.
    """
    usual = Data(recording)
    most = BANDWIDTHS[-1] if recording.both_sides.all() else max(usual.bandwidths)
    tried = [usual]
    for band in (each for each in BANDWIDTHS if each <= most):
        try:
            tried.append(Data(recording, band))
        except InputError:  # samples are too few, or leave gaps
            break
    low, high = max(data.interval[0] for data in tried), min(data.interval[1] for data in tried)
    scores = [_score(model, data, (low, high), spreads(usual)) for data in tried]
    best = int(np.argmin(scores))
    return tried[best] if scores[best] < scores[0] - _CLEAR else usual


def _score(model: TorqueModel, data: Data, interval: tuple[float, float], spreads: Array) -> float:
    """Return the mean over joints of the logarithm of what is left of the variance of each half."""
    chosen = np.flatnonzero((data.effort_times >= interval[0]) & (data.effort_times <= interval[1]))
    chosen = chosen[:: max(1, len(chosen) // _ROWS)]
    measured = data.recording.efforts.measured
    motion = data.motion(data.effort_times[chosen], np.zeros(model.n))
    columns = model.columns(motion, data.recording.at_motor)[:, measured]
    left = data.efforts[chosen][:, measured] - columns @ model.prior
    scaled = columns[:, :, spreads > 0.0] * spreads[spreads > 0.0]
    first = np.arange(len(chosen)) < len(chosen) // 2
    residual = np.empty_like(left)
    for half in (first, ~first):
        sigma = 0.1 * np.std(left[half], axis=0)
        for _ in range(2):
            rows = (scaled[half] / sigma[:, None]).reshape(-1, scaled.shape[2])
            right = (left[half] / sigma).ravel()
            solution = np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ right)
            sigma = np.maximum(np.std(left[half] - scaled[half] @ solution, axis=0), 1e-3 * sigma)
        residual[~half] = left[~half] - scaled[~half] @ solution
    size = np.abs(residual)
    return float(np.log(np.mean(np.minimum(size, _OUTLIER * np.median(size, axis=0)) ** 2, axis=0)).mean())
