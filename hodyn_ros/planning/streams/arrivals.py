"""By which clock the points of a stream are to be taken: that of their stamps, or that of their arrival."""

from __future__ import annotations

from collections import deque

from hodyn_ros.array import Array
from hodyn_ros.planning.streams.stream_config import PointsError, Trouble

_MESSAGES = 250  # that show at which rate stamps advance
_OFF, _JITTER = (
    0.1,
    0.25,
)  # by which share [of the time], and by how much more [s], they may advance otherwise
_AGREE = 3  # messages that must say so, for time to go back


class Arrivals:
    """Compares stamps with arrivals. Where stamps cannot be meant, points count as of their arrival."""

    def __init__(self, delay: float) -> None:
        """Take how late [s] points may be."""
        self._delay = delay
        self._seen: deque[tuple[float, float]] = deque(maxlen=_MESSAGES)  # arrivals and stamps
        self._back: list[float] = []  # stamps that lie before the last one

    def shift(self, times: Array, now: float) -> tuple[float, PointsError | None]:
        """Return what to add to times (N,) [s] of points that have come now, and what is wrong with them.

        Raises PointsError for stamps that lie before the last one, until three have agreed.
        """
        first, last = float(times[0]), float(times[-1])
        self._require_advance(first)
        self._seen.append((now, first))
        arrived, stamped = self._seen[-1][0] - self._seen[0][0], self._seen[-1][1] - self._seen[0][1]
        if abs(stamped - arrived) > _OFF * arrived + _JITTER:
            return now - first, PointsError(
                Trouble.TIMES,
                f"its stamps advance {stamped:.3g} s in {arrived:.3g} s; points count as of their arrival",
            )
        if now - last > self._delay:
            return now - first, PointsError(
                Trouble.LATE,
                f"its last point is {now - last:.3g} s late, and 'delay' is {self._delay:g} s; points count "
                "as of their arrival. Let both run by the same clock",
            )
        return 0.0, None

    def _require_advance(self, stamp: float) -> None:
        if not self._seen or stamp > self._seen[-1][1]:
            self._back = []
            return
        self._back = [each for each in self._back if each < stamp]
        self._back.append(stamp)
        if len(self._back) < _AGREE:
            raise PointsError(
                Trouble.TIMES,
                f"it is for {self._seen[-1][1] - stamp:.3g} s before the last one; send points in order. The "
                f"{_AGREE}rd that goes on from there is followed",
            )
        self._back = []
        self._seen.clear()
