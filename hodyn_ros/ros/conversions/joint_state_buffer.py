"""Where the joints are, from joint_states of one or of several publishers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import isfinite, nan

import numpy as np
from sensor_msgs.msg import JointState

from hodyn_ros.ros.conversions.fields import check_one_per_joint, position_not_finite
from hodyn_ros.trajectory.splines.start import PresentState


class JointStateBuffer:
    """Keeps the last position and velocity of the joints of a model; those of others are passed over.

    What is older than `patience` [s] is not known any more.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        patience: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names = tuple(joint_names)
        self._last: dict[str, tuple[float, float, float]] = {}
        self._patience = patience
        self._clock = clock

    def take(self, msg: JointState) -> None:
        """Keep what a message says of the joints; a malformed one raises MessageRejected and changes nothing.

        Velocities may be left out; one that is not finite, which drivers send where they measure none, is
        not known.
        """
        chosen = [place for place, name in enumerate(msg.name) if name in self._names]
        if not chosen:
            return
        check_one_per_joint("position", msg.position, msg.name)
        if msg.velocity:
            check_one_per_joint("velocity", msg.velocity, msg.name)
        for place in chosen:
            if not isfinite(msg.position[place]):
                raise position_not_finite(msg.name[place])
        now = self._clock()
        for place in chosen:
            velocity = msg.velocity[place] if msg.velocity else nan
            known = velocity if isfinite(velocity) else nan
            self._last[msg.name[place]] = (msg.position[place], known, now)

    def state(self) -> PresentState:
        """Return positions and velocities (n,), NaN where they are not known."""
        oldest = self._clock() - self._patience
        nothing = (nan, nan, -np.inf)
        rows = [self._last.get(name, nothing) for name in self._names]
        known = [(position, velocity) if at >= oldest else (nan, nan) for position, velocity, at in rows]
        positions, velocities = np.array(known).reshape(-1, 2).T
        return PresentState(positions, velocities)
