"""Messages that are rejected: why, how often, and one throttled line in the log for each kind."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from hodyn_ros.errors import HodynError, InputError


class Reason(str, Enum):
    """Why a message was rejected; the value is the key under which /diagnostics counts it."""

    MALFORMED = "malformed"
    NO_NAMES = "no joint names"
    UNKNOWN_JOINT = "unknown joint"
    MISSING_JOINT = "missing joint"
    REPEATED_JOINT = "repeated joint"
    WRONG_LENGTH = "wrong length"
    NOT_FINITE = "not finite"
    MISSING_DERIVATIVES = "missing derivatives"
    SECOND_PUBLISHER = "second publisher"
    TIME_BACKWARDS = "time going backwards"
    BAD_TIMES = "bad times"
    BAD_MOTION = "bad motion"
    BAD_BASE = "bad base motion"
    BAD_FRAME = "bad frame"
    UNREACHABLE = "out of reach or singular"
    RESULT_NOT_FINITE = "result not finite"
    BEYOND_LIMITS = "beyond limits"
    TOO_LATE = "too late"
    JUMP = "jump"
    REPEATED = "repeated readings"
    CONTROLLER = "no or unwilling controller"


class MessageRejected(InputError):
    """A message is rejected; `str()` names the thing and what to do, `reason` is what it counts as."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Rejections:
    """Counts rejected messages by reason, and logs at most one line per reason in `period` seconds.

    `verb` is what becomes of them, where something is wrong with messages that are not rejected.

    >>> lines = []
    >>> rejections = Rejections(lines.append, "desired_motion")
    >>> for _ in range(3):
    ...     rejections.add(MessageRejected(Reason.NOT_FINITE, "velocities holds NaN for joint 'a'"))
    >>> lines
    ["desired_motion rejected: velocities holds NaN for joint 'a'"]
    >>> rejections.total, rejections.counts[Reason.NOT_FINITE]
    (3, 3)

    A `with` block ends at a message that is rejected in it, and counts it.
    """

    def __init__(
        self,
        log: Callable[[str], object],
        topic: str,
        verb: str = "rejected",
        period: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts: dict[Reason, int] = dict.fromkeys(Reason, 0)
        self._log = log
        self._topic = topic
        self._verb = verb
        self._period = period
        self._clock = clock
        self._logged_at: dict[Reason, float] = {}
        self._unlogged: dict[Reason, int] = dict.fromkeys(Reason, 0)

    @property
    def total(self) -> int:
        """Number of rejected messages, whatever the reason."""
        return sum(self.counts.values())

    def add(self, rejected: MessageRejected) -> None:
        """Count a rejected message, and log it unless another of its kind was logged a moment ago."""
        reason, now = rejected.reason, self._clock()
        self.counts[reason] += 1
        if now - self._logged_at.get(reason, float("-inf")) < self._period:
            self._unlogged[reason] += 1
            return
        more = f" ({self._unlogged[reason]} more of this kind before it)" if self._unlogged[reason] else ""
        self._log(f"{self._topic} {self._verb}: {rejected}{more}")
        self._logged_at[reason] = now
        self._unlogged[reason] = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, MessageRejected):
            self.add(error)
        return isinstance(error, MessageRejected)

    def counting(self, kind: type[HodynError], reason: Reason | Callable[[Any], Reason]) -> _Counting:
        """Count in a `with` block errors of another kind as well, for a reason, or what that says of one."""
        return _Counting(self, kind, reason)

    def reasons(self) -> str:
        """Return in words what was rejected, and how often."""
        return ", ".join(f"{count} {reason.value}" for reason, count in self.counts.items() if count)

    def as_values(self) -> dict[str, int]:
        """Return the counts as the keys and values of a diagnostic status."""
        return {f"{self._verb}: {reason.value}": count for reason, count in self.counts.items()}

    def beside(self, key: str) -> dict[str, int]:
        """Return likewise the counts of a second stream under its own key: their sum, and those not zero."""
        reasons = {f"{key}: {reason.value}": count for reason, count in self.counts.items() if count}
        return {key: self.total, **reasons}


class _Counting(NamedTuple):
    """A `with` block that ends at errors of a kind, and counts them as rejected messages."""

    rejections: Rejections
    kind: type[HodynError]
    reason: Reason | Callable[[Any], Reason]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, self.kind) and not isinstance(error, MessageRejected):
            reason = self.reason if isinstance(self.reason, Reason) else self.reason(error)
            error = MessageRejected(reason, str(error))
        return self.rejections.__exit__(None, error, None)
