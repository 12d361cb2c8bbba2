"""The feedforward of an arm in one call of compiled code: efforts, motors, and limits."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel, Noted, Stack
from hodyn_ros.dynamics.rotor_coupling import RotorCoupling
from hodyn_ros.engine.kernels import inverse_dynamics_trace
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.limits import FeedforwardLimits, limit_status
from hodyn_ros.model.tree import TreeModel

_NO_WRENCH = np.empty((0, 6))


class ArmFeedforward:
    """Computes what `FeedforwardModel` does for a tree on a fixed base that fits into straight-line code.

    Inverse dynamics, drives and limits one after the other would cost several times as much as the code that
    they run.
    """

    def __init__(
        self,
        tree: TreeModel,
        order: int,
        train: DriveTrain | None,
        limits: FeedforwardLimits | None,
        rotors: RotorCoupling | None = None,
    ) -> None:
        inverse_dynamics, arguments = inverse_dynamics_trace(tree, order)
        n = tree.n_joints
        if rotors is not None:
            arguments = [("q", (int(rotors.needed_orders(order).max()) + 3, n))]

        def trace(q: Stack) -> Stack:
            positions: Stack = []
            motor_efforts: Stack = []
            if rotors is not None:
                efforts, positions, motor_efforts = rotors.traced_feedforward(q, order)
            else:
                efforts = inverse_dynamics(q)
                if train is not None:
                    motors = train.motors(np.array(q, dtype=object), np.array(efforts, dtype=object))
                    positions = motors.position[: order + 1].tolist()
                    motor_efforts = motors.effort.tolist()
            failed = 0.0 if train is None else q[0][0].graph.violation()
            excess = [0.0] * 4 if limits is None else limits.excess(q, efforts, positions, motor_efforts)
            rest = [*excess, failed]
            rest += [0.0] * (-len(rest) % n)
            begins = accumulate(map(len, (efforts, positions, motor_efforts)))
            rows = [rest[k : k + n] for k in range(0, len(rest), n)]
            return Noted([*efforts, *positions, *motor_efforts, *rows], *begins)

        kernel = Kernel(trace, arguments)
        self._function = kernel.function
        self._begins = kernel.noted  # where rows of positions, motor efforts and the rest begin

    def __call__(self, q: Array) -> Feedforward | None:
        """Return the feedforward of a motion (order + 3, n), not clamped; None where a drive cannot follow.

        Raises OverflowingError where numbers are too large.
        """
        table = self._function(q)
        first, second, third = self._begins
        *excess, failed = table[third:].ravel()[:5].tolist()
        if failed != 0.0:
            return None
        status = limit_status(excess)
        return Feedforward(table[:first], table[first:second], table[second:third], _NO_WRENCH, status)
