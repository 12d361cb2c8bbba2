"""What is left of efforts that the model should explain: for a while, as of a contact, or all along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.identification.least_squares.data import white_part
from hodyn_ros.identification.result import Fit

_WINDOW = 0.2  # [s] over which residuals are looked at
_FAR = 6.0  # times what is left in the median of all windows ...
_LARGE = 0.3  # ... and share of the effort's own size, from which on a window is not as the others
_SHARE = 0.1  # of the effort, and times its white noise, that is left where the model lacks something
_LOUD = 3.0


def unexplained_efforts(source: str, fits: Sequence[Fit]) -> list[str]:
    """Return in which stretches efforts are not as elsewhere, and of which joints much is left all along."""
    lines = []
    for fit in fits:
        left = fit.measured - fit.predicted
        count = max(1, round(_WINDOW / float(np.median(np.diff(fit.times)))))
        local = np.sqrt(np.convolve(left**2, np.full(count, 1.0 / count), mode="same"))
        usual = float(np.median(local))
        odd = local > max(_FAR * usual, _LARGE * float(np.std(fit.measured)))
        for first, last in _stretches(odd):
            peak = float(np.abs(left[first:last]).max())
            lines.append(
                f"to be looked at: {source}: efforts of joint {fit.joint!r} from {fit.times[first]:.4g} to "
                f"{fit.times[last - 1]:.4g} s are up to {peak:.3g} from the model, {usual:.2g} elsewhere; "
                "a contact, a drive at its limit? Such samples count little; leave them out to be sure"
            )
        size = max(float(np.std(fit.measured)), 1e-300)
        share, noise = float(np.std(left[~odd])) / size, white_part(left) / size
        if share > max(_SHARE, _LOUD * noise):
            lines.append(
                f"to be looked at: {source}: the model leaves {100.0 * share:.2g} % of the efforts of joint "
                f"{fit.joint!r}, where noise is {100.0 * noise:.1g} %; wrong units, or something that "
                "no figure here stands for? Deviations do not know of it"
            )
    return lines


def _stretches(odd: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.r_[0, odd.astype(np.int8), 0]))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist())
