"""Rotors that turn with the bodies that carry them: the complete model of elastic joints.

A rotor is balanced, and spins about an axis a that is fixed in its carrier: together they are a gyrostat.
Where `theta` is reflected to the link side, `B` too, and the rotor turns `n` times as far, its spin adds the
angular momentum `B theta' / n a` to that of the carrier, whose inertia holds all else:

    T = q'^T M(q) q' / 2 + q'^T S(q) theta' + theta'^T B theta' / 2,   S_i = B_i / n_i J_i^T a_i

with the angular velocity `omega_i = J_i q'` of the carrier of rotor i. The model of Spong leaves S out. De
Luca & Tomei, Elastic joints, in: Theory of Robot Control (Springer 1996), section 5.2; De Luca & Lucibello, A
general algorithm for dynamic feedback linearization of robots with elastic joints (ICRA 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from hodyn_ros.actuation.compiled_motors import MotorMotion
from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.dynamics.named_frames import supporting_bodies
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.engine.kernels import inverse_dynamics_trace
from hodyn_ros.engine.recursions.kinematics import POSE, frame_motion
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.lie.jets import Array, multiply, to_derivatives, to_taylor
from hodyn_ros.lie.motion import AppliedWrench
from hodyn_ros.model.frames import Frame

_Load: TypeAlias = tuple[int, Array]  # body, and a wrench with its derivatives (orders, 6) in its frame


class CoupledRotor(NamedTuple):
    """A rotor that turns with its carrier."""

    joint: int  # that it drives
    body: int  # its carrier
    axis: Array  # (3,) of unit length, in the frame of the carrier
    inertia: float  # B / n [kg m^2]
    path: tuple[int, ...]  # joints that move the carrier


class CouplingTerms(NamedTuple):
    """What rotors add to the equations of motion at a state; motors in the order of the joints."""

    inertia: Array  # S (n, n) [kg m^2]
    on_links: Array  # (n,) gyroscopic torques that joints have to hold [N.m]
    on_motors: Array  # (n,) what motors have to hold because carriers turn, but for S^T q'' [N.m]


class RotorCoupling:
    """The rotors of a robot whose drives say what carries them (`DriveSpec.rotor`).

    For trees on the ground with one motor a joint. Raises ModelError for other robots, and where a motor
    moves its own carrier, by itself or through others: then the links are no flat output of the robot, so
    that no feedforward follows from their motion alone.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.train = robot, robot.require_drives()
        if not robot.is_arm or self.train.n_motors != robot.n_coordinates:
            raise ModelError(
                f"robot {robot.name!r} has rotors that turn with their carriers, which are for trees on the "
                "ground with one motor a joint; leave out `rotor` of its drives"
            )
        self.all = [rotor for j in range(robot.n_coordinates) if (rotor := self._rotor(j)) is not None]
        self.needed_orders(0)

    @classmethod
    def of(cls, robot: Robot) -> RotorCoupling | None:
        """Return the rotors of a robot; None where its drives say nothing of them."""
        train = robot.drive_train
        return None if train is None or not any(spec.rotor for spec in train.specs) else cls(robot)

    def _rotor(self, joint: int) -> CoupledRotor | None:
        spec = self.train.specs[joint]
        if spec.rotor is None:
            return None
        body = self.robot.tree.body_index(spec.rotor.body)
        axis = np.array(spec.rotor.axis, dtype=np.float64)
        path = tuple(supporting_bodies(self.robot.tree, body))  # on the ground joint i moves body i
        inertia = spec.motor_inertia / spec.gear_ratio
        return CoupledRotor(joint, body, axis / np.linalg.norm(axis), inertia, path)

    def needed_orders(self, order: int) -> Array:
        """Return up to which derivative (n,) the torque of each joint is needed for motors up to `order`.

        The torque of a joint holds the second derivatives of all rotors beyond it. So each of their springs
        needs two orders more, `2 (n - 1)` more at the tip of an arm whose bodies each carry the next motor.
        """
        needed = np.full(self.robot.n_coordinates, order)
        for _ in range(self.robot.n_coordinates + 1):
            before = needed.copy()
            for rotor in self.all:
                if self.train.elastic[rotor.joint] and rotor.path:
                    needed[rotor.joint] = max(order, needed[list(rotor.path)].max() + 2)
            if (needed == before).all():
                return needed
        joint = self.train.joint_names[int(needed.argmax())]
        raise ModelError(
            f"the motor of joint {joint!r} moves the body that carries it, by itself or through others; then "
            "no feedforward follows from the motion of the links"
        )

    def feedforward(self, q: Array, order: int) -> tuple[Array, MotorMotion]:
        """Return torques of the links (order + 1, n), and motors, from their motion.

        `q` (max(needed_orders(order)) + 3 or more, n). Level by level from the tip: a joint beyond which all
        rotors are known is one of inverse dynamics under the wrenches of these. Positions of the motors come
        to `order`, efforts to `order - 2`, or `order` where all are rigid.
        """
        needed = self.needed_orders(order)
        if len(q) < needed.max() + 3:
            raise InputError(
                f"rotors that turn with their carriers need the motion up to its derivative "
                f"{needed.max() + 2} for efforts of order {order}, found {len(q)} orders"
            )
        q = np.ascontiguousarray(q[: needed.max() + 3])
        twists = self.robot.forward_kinematics(q, representation="body_fixed").twists

        def torques(level: int, loads: Sequence[_Load]) -> Array:
            wrenches = [AppliedWrench(body, values, representation="body_fixed") for body, values in loads]
            return self.robot.inverse_dynamics(q[: level + 3], wrenches=wrenches)

        turning = {rotor.body: twists[:, rotor.body, :3] for rotor in self.all}
        efforts, *motors = self._level_by_level(q, order, turning, torques)
        return efforts, MotorMotion(*motors)

    def traced_feedforward(self, q: Stack, order: int) -> tuple[Stack, Stack, Stack]:
        """Return what `feedforward` does, over traced scalars: torques, positions and efforts of the motors.

        `q` (max(needed_orders(order)) + 3, n).
        """
        model = self.robot.tree
        bodies = sorted({rotor.body for rotor in self.all if rotor.body >= 0})
        frames = [Frame(body, np.eye(4)) for body in bodies]
        moved = frame_motion(model, len(q) - 1, frames, "body_fixed")[0](q)
        turning = {
            body: np.array([row[k : k + 3] for k in range(POSE, len(row), 6)], dtype=object)
            for body, row in zip(bodies, moved)
        }

        def torques(level: int, loads: Sequence[_Load]) -> Array:
            setting = KernelSpec(loads=tuple((body, "body_fixed") for body, _ in loads))
            trace, _ = inverse_dynamics_trace(model, level, setting)
            inputs = [values[: level + 1].tolist() for _, values in loads]
            missing = [[[0.0] * 6] * (level + 1 - len(values)) for values in inputs]
            result = trace(q[: level + 3], *([*x, *zeros] for x, zeros in zip(inputs, missing)))
            return np.array(result, dtype=object)

        parts = self._level_by_level(np.array(q, dtype=object), order, turning, torques)
        efforts, positions, motor_efforts = (part.tolist() for part in parts)
        return efforts, positions, motor_efforts

    def _level_by_level(
        self,
        q: Array,
        order: int,
        turning: Mapping[int, Array],
        inverse_dynamics: Callable[[int, Sequence[_Load]], Array],
    ) -> tuple[Array, Array, Array]:
        """Return torques, and positions and efforts of the motors, from the rotors at the tip to the base.

        `turning`: body-fixed angular velocities of carriers by order; `inverse_dynamics` of an order under
        wrenches in the frames of their bodies.
        """
        needed, n = self.needed_orders(order), self.robot.n_coordinates
        rotors = {rotor.joint: rotor for rotor in self.all}
        loads = [_load(rotor, q[:, j], turning) for j, rotor in rotors.items() if not self.train.elastic[j]]
        count = order - 1 if self.train.elastic.any() else order + 1
        torques, positions, efforts = (
            np.zeros((rows, n), q.dtype) for rows in (order + 1, order + 1, max(0, count))
        )
        for level in sorted(set(needed.tolist()), reverse=True):
            result = inverse_dynamics(level, loads)
            for j in np.flatnonzero(needed == level).tolist():
                motors = self.train.drives[j].motors(to_taylor(q[: level + 3, j]), to_taylor(result[:, j]))
                theta, effort = (to_derivatives(jets[0]) for jets in motors)
                if j in rotors:
                    rotor = rotors[j]
                    held = rotor.inertia * (turning[rotor.body][1:] @ rotor.axis)
                    rows = min(len(effort), len(held))
                    effort = effort[:rows] + held[:rows]
                    if self.train.elastic[j]:
                        loads.append(_load(rotor, theta, turning))
                torques[:, j], positions[:, j] = result[: order + 1, j], theta[: order + 1]
                efforts[:, j] = effort[: len(efforts)]
        return torques, positions, efforts

    def coupling(self, state: Array, motor_rates: Array) -> CouplingTerms:
        """Return what is added at positions and velocities (2, n), under velocities (n,) of the motors."""
        n = self.robot.n_coordinates
        inertia, on_links, on_motors = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        for joint, body, axis, share, _ in self.all:
            jacobian, rate = self.robot.jacobian(state, body=body, representation="body_fixed")[:, :3]
            inertia[:, joint] = share * (axis @ jacobian)
            turning = np.cross(jacobian @ state[1], axis)
            on_links += share * motor_rates[joint] * (turning @ jacobian)
            on_motors[joint] = share * (axis @ rate @ state[1])
        return CouplingTerms(inertia, on_links, on_motors)


def _load(rotor: CoupledRotor, theta: Array, turning: Mapping[int, Array]) -> _Load:
    """Return what a rotor does to its carrier, in its frame: `-B / n (theta'' a + theta' omega x a)`."""
    omega = turning[rotor.body]
    count = min(len(theta) - 2, len(omega))
    speed = np.repeat(to_taylor(theta[1 : count + 1])[:, None], 3, axis=1)
    turned = to_taylor(np.cross(omega[:count], rotor.axis))
    moment = theta[2 : count + 2, None] * rotor.axis + to_derivatives(multiply(speed, turned))
    return rotor.body, np.concatenate([-rotor.inertia * moment, np.zeros((count, 3))], axis=1)
