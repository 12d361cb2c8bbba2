"""What observer_node says that a robot carries, as a load that may be taken."""

from __future__ import annotations

import time
from collections.abc import Callable

from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.msg import PayloadEstimate

OLDEST = 2.0  # [s] since an estimate came, that a load may be taken by it
_NEEDED = ("mass", "centre x", "centre y", "centre z")


class LoadSource:
    """Holds the last estimate of a topic; nothing follows from it until it is asked for."""

    def __init__(self, topic: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._topic, self._clock = topic, clock
        self._last: PayloadEstimate | None = None
        self._came_at = 0.0

    def take(self, message: PayloadEstimate) -> None:
        """Take the newest estimate."""
        self._last, self._came_at = message, self._clock()

    def load(self, most: float) -> Payload:
        """Return the load of at most `most` [kg] that the robot carries by the last estimate.

        Raises InputError where none has come lately, the motion has not shown mass and centre, or the figures
        are not those of a load.
        """
        last, age = self._last, self._clock() - self._came_at
        if last is None:
            raise InputError(f"nothing has come on {self._topic}; let observer_node run with a payload_rate")
        if age > OLDEST:
            raise InputError(
                f"the last estimate on {self._topic} came {age:.3g} s ago; is the observer running?"
            )
        hidden = [name for name in _NEEDED if name in last.hidden]
        if hidden:
            raise InputError(f"the motion has not yet shown {', '.join(hidden)} of the load")
        if not last.mass <= most:
            raise InputError(f"the load has {last.mass:.3g} kg, and payload_limit allows {most:g} kg")
        return Payload(last.mass, tuple(last.centre), tuple(last.inertia), last.header.frame_id)
