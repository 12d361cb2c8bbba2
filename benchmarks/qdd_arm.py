"""An arm with quasi-direct drives behind springs: a model of it, and a plant in MuJoCo that is written apart.

The plant shares the file of the rigid bodies with the model, which each reads by itself, and nothing else:
its rotors, springs and drives are MuJoCo's. Drives take position, velocity, gains and torque (MIT mode), and
close their loop on their own rotor at each step of the plant, five times a millisecond.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stopwatch import Array
from hodyn_ros import Robot
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.model.drive_spec import DriveLimits, DriveSpec, FrictionSpec
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.streaming import DriveCommand

_FILE = Path(__file__).parent / "data" / "qdd_arm.xml"
HOME = np.array([0.3, 0.35, 0.4, 0.2, -0.4, 0.1])
# by joint: gears of 9 and 10 to 1 behind rotors as in gimbal motors; links and gears together as springs
_STIFFNESS = np.array([900.0, 900.0, 600.0, 220.0, 220.0, 160.0])  # [N·m/rad]
_INERTIA = np.array([0.025, 0.025, 0.018, 0.003, 0.003, 0.003])  # of rotors [kg m²]
_VISCOUS = np.array([0.12, 0.12, 0.10, 0.02, 0.02, 0.02])  # of rotors [N·m·s/rad]
_TORQUE = np.array([40.0, 40.0, 27.0, 7.0, 7.0, 7.0])  # [N·m]
_SPEED = np.array([5.0, 5.0, 6.0, 10.0, 10.0, 10.0])  # [rad/s]
_RATE = 40.0  # [1/s] times the torque: what torque may change by in a second
KP = np.array([150.0, 150.0, 100.0, 25.0, 25.0, 20.0])
KD = np.array([4.0, 4.0, 3.0, 0.4, 0.4, 0.4])
STEP = 2e-4  # [s] of MuJoCo, and of the loop of the drives
_DAMPING = 1e-4  # [s] of springs, over their stiffness: a little, which no model knows


def robot() -> Robot:
    """Return the model of the arm, as whoever has its data sheets would write it."""
    rigid = Robot.from_mjcf(_FILE)
    n = len(HOME)
    limits = JointLimits(
        rigid.limits.position_lower,
        rigid.limits.position_upper,
        _SPEED,
        _TORQUE,
        _RATE * _TORQUE,
        40.0 * np.ones(n),
        2000.0 * np.ones(n),
    )
    drives = [
        DriveSpec(
            stiffness,
            inertia,
            motor_friction=FrictionSpec(viscous=viscous),
            limits=DriveLimits(torque=torque, torque_rate=2.0 * _RATE * torque, speed=1.2 * speed),
        )
        for stiffness, inertia, viscous, torque, speed in zip(_STIFFNESS, _INERTIA, _VISCOUS, _TORQUE, _SPEED)
    ]
    return Robot(rigid.model, limits, drives)


def gains() -> MotorGains:
    """Return the gains of the drives."""
    return MotorGains(KP, KD)


class QddPlant:
    """The arm at rest at `start` (n,) [rad], its springs `softer` than the model says by that share."""

    def __init__(self, start: Array, softer: float = 0.0) -> None:
        import mujoco

        self._mujoco: Any = mujoco
        stiffness = (1.0 - softer) * _STIFFNESS
        names = [f"joint_{j + 1}" for j in range(len(HOME))]
        self._model = mujoco.MjModel.from_xml_string(_with_drives(_FILE.read_text(), names, stiffness))
        self._data = mujoco.MjData(self._model)
        joint = self._model.joint
        self._links = np.array([joint(name).qposadr[0] for name in names])
        self._rotors = np.array([joint(f"rotor_{j}").qposadr[0] for j in range(len(names))])
        self._data.qpos[self._links] = start
        mujoco.mj_forward(self._model, self._data)
        weight = self._data.qfrc_bias[self._links]
        self._data.qpos[self._rotors] = start + weight / stiffness

    @property
    def links(self) -> Array:
        """Positions of the links (n,) [rad]."""
        return np.asarray(self._data.qpos[self._links])

    @property
    def drives(self) -> tuple[Array, Array]:
        """Positions and velocities of the rotors (n,) [rad, rad/s], as drives report them."""
        return np.array(self._data.qpos[self._rotors]), np.array(self._data.qvel[self._rotors])

    def advance(self, duration: float, command: DriveCommand) -> None:
        """Let time pass while the drives carry out a command."""
        data = self._data
        for _ in range(round(duration / STEP)):
            own, speed = data.qpos[self._rotors], data.qvel[self._rotors]
            pull = command.kp * (command.position - own) + command.kd * (command.velocity - speed)
            data.ctrl[:] = np.clip(command.torque + pull, -_TORQUE, _TORQUE)
            self._mujoco.mj_step(self._model, data)


def _with_drives(rigid: str, names: list[str], stiffness: Array) -> str:
    """Return the text of a rigid arm with a rotor, a spring and a motor for each joint."""
    rotors = "".join(
        f'<body name="rotor_{j}"><inertial pos="0 0 0" mass="1e-6" diaginertia="1e-9 1e-9 1e-9"/>'
        f'<joint name="rotor_{j}" axis="0 0 1" armature="{inertia}" damping="{viscous}"/></body>'
        for j, (inertia, viscous) in enumerate(zip(_INERTIA, _VISCOUS))
    )
    springs = "".join(
        f'<fixed name="spring_{j}" stiffness="{k}" damping="{_DAMPING * k}" springlength="0">'
        f'<joint joint="{name}" coef="1"/><joint joint="rotor_{j}" coef="-1"/></fixed>'
        for j, (name, k) in enumerate(zip(names, stiffness))
    )
    motors = "".join(f'<motor name="drive_{j}" joint="rotor_{j}"/>' for j in range(len(names)))
    more = f"{rotors}</worldbody><tendon>{springs}</tendon><actuator>{motors}</actuator>"
    option = f'<option timestep="{STEP}" integrator="implicitfast"/>'
    return rigid.replace("</worldbody>", more).replace("<worldbody>", f"{option}<worldbody>")


def weight_robot() -> Robot:
    """Return the arm without springs, for who knows its torques as if it were rigid."""
    model = robot()
    drives = [replace(spec, stiffness=np.inf) for spec in model.require_drives().specs]
    return model.with_drives(drives)
