"""A FeedforwardTorque at another instant than its stamp, for consumers that are faster than its topic."""

from __future__ import annotations

import math

from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Setpoint
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.messages import read_feedforward_torque


def extrapolate(msg: FeedforwardTorque, h: float, joints: JointOrder | None = None) -> Setpoint:
    """Evaluate a message at `stamp + h` by its Taylor series, `x(stamp + h) = sum_k x^(k) h^k / k!`.

    `h` [s] may be negative. `joints` gives the order of the returned arrays (n,); without it, that of the
    message. What the message does not carry comes out empty. The remainder is of order h^(r+1) with r the
    highest order that the message carries, so an h of a few periods of the topic stays smooth and small; far
    beyond, the series diverges from the motion, and it is for the consumer to give up.

    Who evaluates one message many times reads it once: `read_feedforward_torque(msg, joints).at(h)` does the
    same. Raises MessageRejected for a malformed message, InputError when h is not finite.
    """
    if not math.isfinite(h):
        raise InputError(f"the time h beyond the stamp must be finite, found {h}")
    return read_feedforward_torque(msg, joints or JointOrder(msg.joint_names)).at(h)
