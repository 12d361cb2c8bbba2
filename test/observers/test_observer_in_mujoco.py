"""Pushes at random on an elastic arm in MuJoCo, whose Jacobians say what its joints feel of them."""

from dataclasses import replace

import numpy as np
import pytest
from sweeps import some

pytest.importorskip("mujoco", reason="MuJoCo is not installed")

import mujoco

from hodyn_ros import Robot, share
from hodyn_ros.export.mjcf import MOTOR, mjcf
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed

PERIOD, STEPS = 1e-3, 10
BANDWIDTH = 80.0
HOME = np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])


@pytest.mark.parametrize("seed", some(range(2), 0))
def test_what_pushes_shows_as_its_jacobian_says(seed: int) -> None:
    read = Robot.load(share.find("config", "panda.yaml"))
    robot = read.with_drives([replace(s, spring_damping=5.0) for s in read.require_drives().specs])
    random, train = np.random.default_rng(seed), robot.require_drives()
    model = mujoco.MjModel.from_xml_string(mjcf(robot).text)
    data = mujoco.MjData(model)
    model.opt.timestep, model.opt.integrator = PERIOD / STEPS, mujoco.mjtIntegrator.mjINT_RK4
    links, motors = (
        np.array([model.joint(name + end).qposadr[0] for name in robot.joint_names]) for end in ("", MOTOR)
    )
    weight = robot.inverse_dynamics(np.stack([HOME, 0 * HOME, 0 * HOME]))[0]
    data.qpos[links], data.qpos[motors] = HOME, HOME + weight / train.stiffness
    config = ObserverConfig(bandwidth=BANDWIDTH, held_efforts=True, adapt_drives=False)
    observers = [
        MomentumObserver(robot, config, sensed)
        for sensed in (Sensed(links=True, motors=True), Sensed(links=True, motors=True, motor_efforts=True))
    ]
    expected, keep = np.zeros(7), np.exp(-BANDWIDTH * PERIOD)
    felt, worst, largest = np.zeros(7), 0.0, 0.0
    for i in range(500):
        q, v, theta, w = data.qpos[links], data.qvel[links], data.qpos[motors], data.qvel[motors]
        wanted = HOME + 0.3 * np.sin(6.0 * PERIOD * i + np.arange(7)) - 0.3 * np.sin(np.arange(7))
        effort = weight + 400.0 * (wanted - theta) - 30.0 * w
        rows = {"position": q, "velocity": v, "motor_position": theta, "motor_velocity": w}
        for observer in observers:
            values = {**rows, "motor_effort": effort}
            found = observer.update(
                PERIOD * i, observer.sample(**{name: values[name] for name in observer.rows})
            )
            if found is not None:
                worst = max(worst, float(np.abs(found.efforts - expected).max()))
        if i % 100 == 50:
            data.xfrc_applied[:] = 0.0
            body = model.body(robot.tree.body_names[int(random.integers(2, 7))]).id
            data.xfrc_applied[body, :3] = random.uniform(-30.0, 30.0, 3)
        data.ctrl[:] = effort
        felt = 0.0 * felt
        for _ in range(STEPS):  # what the joints feel follows the arm
            before = joint_forces(model, data, links)
            mujoco.mj_step(model, data)
            mujoco.mj_forward(model, data)
            felt += 0.5 * (before + joint_forces(model, data, links)) / STEPS
        expected = keep * expected + (1.0 - keep) * felt
        largest = max(largest, float(np.abs(expected).max()))
    assert largest > 3.0
    assert worst < 2e-4 * largest


def joint_forces(model: object, data: object, links: np.ndarray) -> np.ndarray:
    """Return the generalised forces (7,) of what is applied to bodies, at their centres of mass."""
    total = np.zeros(model.nv)  # type: ignore[attr-defined]
    for body in np.flatnonzero(data.xfrc_applied.any(axis=1)):  # type: ignore[attr-defined]
        translation = np.zeros((3, model.nv))  # type: ignore[attr-defined]
        mujoco.mj_jacBodyCom(model, data, translation, None, int(body))
        total += translation.T @ data.xfrc_applied[body, :3]  # type: ignore[attr-defined]
    return total[links]
