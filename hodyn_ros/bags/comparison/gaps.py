"""Messages that a recording seems to lack in its middle, by the stamps of a stream of even rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_FEWEST = 20  # steps from which a rate can be told
_EVEN = 0.9  # share of the steps that are near a multiple of the usual one
_NEAR = 0.25  # of the usual step
_PAUSE = 1.0  # [s] what is longer was meant: a motion that stood still
_PAUSE_STEPS = 10  # unless the stream is that slow


@dataclass(frozen=True)
class Gaps:
    """What a stream lacks."""

    missing: int  # messages
    count: int  # gaps
    longest: float  # [s]
    step: float  # [s] from one stamp to the next where nothing is missing

    def __str__(self) -> str:
        gaps = "a gap" if self.count == 1 else f"{self.count} gaps"
        return (
            f"{self.missing} message{'s' * (self.missing > 1)} missing in {gaps} of up to "
            f"{1e3 * self.longest:.4g} ms, by stamps that are {1e3 * self.step:.4g} ms apart elsewhere"
        )


def find_gaps(stamps: Sequence[int] | NDArray[np.int64]) -> Gaps | None:
    """Return what is missing between stamps [ns], in the order of recording; None where nothing is.

    Nothing is said of a stream without an even rate, of steps back in time, and of pauses of a second.
    """
    steps: NDArray[np.float64] = 1e-9 * np.diff(np.asarray(stamps, dtype=np.int64)).astype(np.float64)
    steps = steps[steps > 0.0]
    if len(steps) < _FEWEST:
        return None
    step = float(np.median(steps))
    pace = steps / step
    steps = steps[pace > 1.5]
    if np.mean(np.abs(pace - np.round(pace)) < _NEAR) < _EVEN:
        return None
    wide = steps[steps < max(_PAUSE, _PAUSE_STEPS * step)]
    if not len(wide):
        return None
    missing = int(np.round(wide / step).sum()) - len(wide)
    return Gaps(missing, len(wide), float(wide.max()), step)
