"""An arm on springs in MuJoCo, which shares no code with hodyn_ros, as a plant for its feedforwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.export.mjcf import MOTOR, mjcf
from hodyn_ros.extras import needed
from hodyn_ros.simulation.simulation import RobotSimulation

PERIOD = 1e-4  # [s] of a step of MuJoCo


class MujocoArm:
    """An arm from its exported MJCF, in the state of a simulation at rest.

    `damping_time` [s] is the damping of its springs over their stiffness, where they have none of their own.
    Dry friction sticks here, where that of robot files turns over smoothly. Raises InputError where mujoco,
    of the extra `mjcf`, is missing.
    """

    def __init__(self, at_rest: RobotSimulation, damping_time: float = 0.0) -> None:
        self._mujoco = needed("mujoco")
        robot = at_rest.robot
        specs = [
            replace(spec, spring_damping=spec.spring_damping or damping_time * spec.stiffness)
            for spec in robot.require_drives().specs
        ]
        model = self._mujoco.MjModel.from_xml_string(mjcf(robot.with_drives(specs)).text)
        model.opt.timestep, model.opt.integrator = PERIOD, self._mujoco.mjtIntegrator.mjINT_RK4
        self._model, self._data = model, self._mujoco.MjData(model)
        self._links, self._motors = (
            np.array([model.joint(name + end).qposadr[0] for name in robot.joint_names])
            for end in ("", MOTOR)
        )
        start = at_rest.measurement
        self._data.qpos[self._links], self._data.qpos[self._motors] = start.position, start.motor_position

    @property
    def measurement(self) -> Measurement:
        """The exact state."""
        q, rates = self._data.qpos, self._data.qvel
        return Measurement(q[self._links], rates[self._links], q[self._motors], rates[self._motors])

    @property
    def coordinates(self) -> Array:
        """The positions of the links."""
        return np.asarray(self._data.qpos[self._links])

    def push(self, body: str, force: Array) -> None:
        """Let a force (3,) [N], in axes of the world, act at the centre of mass of a body from now on."""
        self._data.body(body).xfrc_applied[:3] = force

    def advance(self, duration: float, effort: Array) -> None:
        """Let time pass under efforts of the motors."""
        self._data.ctrl[:] = effort
        self._mujoco.mj_step(self._model, self._data, round(duration / PERIOD))
