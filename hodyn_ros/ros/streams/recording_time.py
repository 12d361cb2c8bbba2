"""The time under which messages are recorded, which never goes back."""

from __future__ import annotations


class RecordingTime:
    """Makes times that go on where a clock goes back, as simulated time does when its simulation is reset.

    Whoever plays or sorts a bag goes by these times; what followed a reset would be mixed with what came
    before it, or would all have one time. `shift` [ns] is how far the times are ahead of the clock, `steps`
    how often it went back.

    >>> time = RecordingTime()
    >>> [time(now) for now in (5, 7, 1, 2)], time.shift, time.steps
    ([5, 7, 7, 8], 6, 1)
    """

    def __init__(self) -> None:
        self.shift = 0
        self.steps = 0
        self._last: int | None = None

    def __call__(self, now: int) -> int:
        """Return the time [ns] of the recording when the clock shows `now` [ns]."""
        if self._last is not None and now < self._last:
            self.shift += self._last - now
            self.steps += 1
        self._last = now
        return now + self.shift
