"""The stamps of a stream: they have to advance."""

from __future__ import annotations

import time
from collections.abc import Callable

from hodyn_ros.nodes.refusals import Reason, Refused


class Timeline:
    """Refuses stamps that do not lie after the last accepted one.

    A publisher that starts again with an earlier clock (a bag played once more, a simulation reset) would be
    refused for ever; so the last stamp is forgotten once no message was accepted for `forget_after` seconds
    of real time. `last` is the last accepted stamp [ns].
    """

    def __init__(self, forget_after: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.forget_after = forget_after
        self._clock = clock
        self.last: int | None = None
        self._accepted_at = 0.0

    def check(self, nanoseconds: int) -> None:
        """Raise Refused when the stamp [ns] is not after the last accepted one."""
        if self.last is None or nanoseconds > self.last:
            return
        if self._clock() - self._accepted_at > self.forget_after:
            self.last = None
            return
        back = (self.last - nanoseconds) * 1e-9
        where = (
            f"lies {back:.9f} s before the last accepted one" if back else "is that of the last accepted one"
        )
        raise Refused(
            Reason.TIME_BACKWARDS,
            f"its stamp {nanoseconds * 1e-9:.9f} s {where}; stamps must increase (a clock that starts again "
            f"is followed {self.forget_after:g} s after that)",
        )

    def accept(self, nanoseconds: int) -> None:
        """Take the stamp [ns] as the last accepted one."""
        self.last = nanoseconds
        self._accepted_at = self._clock()

    def forget(self) -> None:
        """Take any stamp next."""
        self.last = None
