"""The joints that a controller commands, out of messages that may name more of them, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.fields import (
    Array,
    JointOrder,
    check_one_per_joint,
    position_not_finite,
    repeated,
)
from hodyn_ros.ros.conversions.messages import read_feedforward_torque
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason


class JointSubset:
    """Takes some joints out of messages, in a given order; what else a message names is left out."""

    def __init__(self, names: Sequence[str]) -> None:
        if not names:
            raise InputError(
                "parameter 'joints' is empty; name the joints in the order of the controller, for instance "
                "-p joints:=\"['shoulder', 'elbow']\""
            )
        if (twice := repeated(names)) is not None:
            raise InputError(f"parameter 'joints' names joint {twice!r} twice; name it once")
        self.names = list(names)
        # a stream repeats its names
        self._order = JointOrder(())
        self._places: NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def feedforward(self, msg: FeedforwardTorque) -> Feedforward:
        """Return the feedforward of the joints; raises MessageRejected for a malformed message."""
        self._find(msg.joint_names)
        whole = read_feedforward_torque(msg, self._order)
        efforts, motor_positions, motor_efforts = (stack[:, self._places] for stack in whole[:3])
        return whole._replace(efforts=efforts, motor_positions=motor_positions, motor_efforts=motor_efforts)

    def state(self, msg: JointState, *, with_velocity: bool) -> tuple[Array, Array | None]:
        """Return positions and velocities (n,) of the joints [rad or m, /s].

        Velocities that are not finite, which drivers send where they measure none, are None; `with_velocity`
        such a message is rejected. Raises MessageRejected for a malformed message.
        """
        self._find(msg.name)
        check_one_per_joint("position", msg.position, msg.name)
        positions = np.frombuffer(msg.position)[self._places]
        if not np.isfinite(positions).all():
            raise position_not_finite(self.names[int(np.flatnonzero(~np.isfinite(positions))[0])])
        if not msg.velocity and not with_velocity:
            return positions, None
        check_one_per_joint("velocity", msg.velocity, msg.name)
        velocities = np.frombuffer(msg.velocity)[self._places]
        if not np.isfinite(velocities).all():
            if with_velocity:
                joint = self.names[int(np.flatnonzero(~np.isfinite(velocities))[0])]
                raise MessageRejected(
                    Reason.NOT_FINITE,
                    f"velocity of joint {joint!r} is not finite; feedback on the motors needs it",
                )
            return positions, None
        return positions, velocities

    def _find(self, names: Sequence[str]) -> None:
        if self._order.names == tuple(names):
            return
        missing = next((name for name in self.names if name not in names), None)
        if missing is not None:
            reason = Reason.MISSING_JOINT if names else Reason.NO_NAMES
            raise MessageRejected(
                reason,
                f"joint {missing!r} is missing from the message; parameter 'joints' lists "
                f"{JointOrder(self.names).listing()}",
            )
        if (twice := repeated(names)) is not None:
            raise MessageRejected(
                Reason.REPEATED_JOINT, f"joint {twice!r} is named twice in the message; name it once"
            )
        self._order = JointOrder(names)
        self._places = np.array([list(names).index(name) for name in self.names], dtype=np.intp)
