"""The instants at which a node that keeps time has something to do."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer

from hodyn_ros.errors import InputError

# Of a period: how early an instant may be taken for due; timer and clock never agree to the last microsecond.
_EARLY = 0.2

# [s] A clock that jumps further than this, either way, starts a new sequence.
_JUMP = 1.0

# Of periods: how far a clock may be behind; the instant before the next one has been due, or nearly.
_BEHIND = 2.0

# [s] from one look at a timer to the next.
_LOOK = 0.01


class FixedRate:
    """The instants `origin + k / rate`, k = 0, 1, ..., without drift, and which of them are due.

    Instants and clock readings are in nanoseconds. Where a node was held up it catches up with at most
    `most` instants; those before are skipped, and counted in `skipped`.

    >>> rate = FixedRate(1000.0, 5_000_000, most=3)
    >>> rate.due(5_000_000), rate.due(6_500_000), rate.due(6_700_000)
    (range(0, 1), range(1, 2), range(2, 2))
    >>> rate.due(17_000_000), rate.skipped
    (range(10, 13), 8)
    >>> rate.instant(12)
    17000000
    """

    def __init__(self, rate: float, origin: int, most: int = 20) -> None:
        if not 0.0 < rate < float("inf"):
            raise InputError(f"the rate must be positive and finite, found {rate} Hz")
        self.rate = float(rate)
        self.origin = origin
        self.next = 0
        self.skipped = self._reported = 0
        self._most = most

    def instant(self, k: int) -> int:
        """Return the k-th instant."""
        return self.origin + round(k * 1e9 / self.rate)

    def number(self, instant: int) -> int:
        """Return the number of the instant nearest to `instant`."""
        return round((instant - self.origin) * 1e-9 * self.rate)

    def due(self, now: int) -> range:
        """Return the instants that have become due since the last call, as their numbers."""
        end = int((now - self.origin) * 1e-9 * self.rate + _EARLY) + 1 if now >= self.origin else 0
        end = max(end, self.next)
        first = max(self.next, end - self._most)
        self.skipped += first - self.next
        self.next = end
        return range(first, end)

    def newly_skipped(self) -> int:
        """Return how many instants have been skipped since the last call."""
        newly, self._reported = self.skipped - self._reported, self.skipped
        return newly

    def lost(self, now: int) -> bool:
        """Whether the clock has jumped, so that counting on from the origin makes no sense any more.

        One that was set back by little would let nothing be due until it is where it was.
        """
        ahead, period = now - self.instant(self.next), 1e9 / self.rate
        return ahead > _JUMP * 1e9 + period or ahead < -_BEHIND * period


def timer_by_clock(node: Node, period: float, callback: Callable[[], None], group: CallbackGroup) -> Timer:
    """Create a timer by the clock of a node, which goes on where that is set back.

    rclpy's alone would wait until the clock of the system is where it was: for an hour, or for ever.
    """
    timer = node.create_timer(period, callback, callback_group=group)

    def look() -> None:
        left = timer.time_until_next_call()
        if left is not None and left > _BEHIND * timer.timer_period_ns:
            timer.reset()

    steady_timer(node, _LOOK, look, group)
    return timer


def steady_timer(
    node: Node, period: float, callback: Callable[[], None], group: CallbackGroup | None = None
) -> Timer:
    """Create a timer by a clock that nobody sets, and that goes on where simulated time stands still."""
    return node.create_timer(
        period, callback, callback_group=group, clock=Clock(clock_type=ClockType.STEADY_TIME)
    )


def last_due(timer: Timer, now: int) -> int:
    """Return the instant [ns] at which a timer was last due, at the clock reading `now`; never one after it.

    A sequence that begins there stays in step with the timer, even where its callback came late. One that has
    not seen yet that its clock was set would be due an hour ahead, or has been since an hour ago.
    """
    return int(now - -timer.time_until_next_call() % timer.timer_period_ns)
