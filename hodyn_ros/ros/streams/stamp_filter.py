"""The stamps of a stream: they have to advance."""

from __future__ import annotations

import time
from collections.abc import Callable

from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

_STRIDE = 100_000_000  # [ns] that a stamp may be ahead of real time since the one before, to be near to it


class StampFilter:
    """Rejects stamps that do not lie after the last accepted one.

    A publisher that starts again with an earlier clock (a bag played once more, a simulation reset) would be
    rejected for ever; so the last stamp is forgotten once no message was accepted for `forget_after` seconds
    of real time. A single stamp far ahead of all others must not silence the stream for so long either: until
    a stamp near to it has confirmed it, those that go on from the ones before it are accepted as well.
    `last` is the last accepted stamp [ns].
    """

    def __init__(self, forget_after: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.forget_after = forget_after
        self._clock = clock
        self.last: int | None = None
        self._confirmed: int | None = None  # the last accepted stamp [ns] that is no single one far ahead
        self._accepted_at = 0.0

    @property
    def idle(self) -> bool:
        """Whether no message was accepted for so long that any stamp may come next."""
        return self.last is None or self._clock() - self._accepted_at > self.forget_after

    def check(self, nanoseconds: int) -> None:
        """Raise MessageRejected when the stamp [ns] is not after the last accepted one."""
        if self.last is None or nanoseconds > self.last or self._returns(nanoseconds):
            return
        if self.idle:
            self.forget()
            return
        back = (self.last - nanoseconds) * 1e-9
        where = (
            f"lies {back:.9f} s before the last accepted one" if back else "is that of the last accepted one"
        )
        raise MessageRejected(
            Reason.TIME_BACKWARDS,
            f"its stamp {nanoseconds * 1e-9:.9f} s {where}; stamps must increase (a clock that starts again "
            f"is followed {self.forget_after:g} s after that)",
        )

    def accept(self, nanoseconds: int) -> None:
        """Take the stamp [ns] as the last accepted one."""
        now = self._clock()
        before = self._confirmed if self.last is not None and nanoseconds < self.last else self.last
        if before is not None:
            if nanoseconds - before <= _STRIDE + 1e9 * (now - self._accepted_at):
                self._confirmed = nanoseconds
            elif self._confirmed is None:  # a stream of long strides: nothing before its first stamp
                self._confirmed = before
        self.last = nanoseconds
        self._accepted_at = now

    def forget(self) -> None:
        """Take any stamp next."""
        self.last = self._confirmed = None

    def _returns(self, nanoseconds: int) -> bool:
        """Whether a stamp goes on from those before a single one that lies far ahead of it."""
        assert self.last is not None
        return self.last - nanoseconds > _STRIDE and (
            self._confirmed is None or nanoseconds > self._confirmed
        )
