"""Robots written as MJCF: MuJoCo, which shares no code with hodyn_ros, finds the same accelerations."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from hinged_arm import HINGED_ARM
from linkages import robot_of, shipped, with_drives
from oracles.mechanisms import MECHANISMS
from oracles.random_trees import random_tree
from refusals import refused

from hodyn_ros import BaseMotion, DriveSpec, Robot
from hodyn_ros.array import Array
from hodyn_ros.errors import FigureWarning
from hodyn_ros.export import mjcf
from hodyn_ros.model.drive_spec import FrictionSpec, RotorSpec, SpringTable, series_elastic

mujoco = pytest.importorskip("mujoco")


# Stiff, soft and damped springs, rigid drives with rotors, viscous and dry friction on both sides.
RUBBING = FrictionSpec(viscous=0.3, coulomb=0.5, transition=1e-7)
DRIVES = (
    DriveSpec(stiffness=300.0, motor_inertia=0.2),
    DriveSpec(stiffness=2000.0, motor_inertia=0.05, spring_damping=1.5),
    DriveSpec(motor_inertia=0.1, motor_friction=RUBBING),
    DriveSpec(stiffness=500.0, motor_inertia=0.3, motor_friction=RUBBING, link_friction=RUBBING),
)


def state_of(robot: Robot, q: Array, theta: Array, base: BaseMotion | None = None) -> tuple[Any, Any]:
    """Return model and data of MuJoCo with the joints (2, n) and the motors (2, n) of a state."""
    model = mujoco.MjModel.from_xml_string(mjcf(robot).text)
    data = mujoco.MjData(model)
    if base is not None:
        assert base.representation == "body_fixed"
        data.qpos[:3] = base.pose[:3, 3]
        mujoco.mju_mat2Quat(data.qpos[3:7], base.pose[:3, :3].flatten())
        data.qvel[:3] = base.pose[:3, :3] @ base.twists[0, 3:]
        data.qvel[3:6] = base.twists[0, :3]
    for names, suffix, motion in ((robot.joint_names, "", q), (robot.driven_joints, "_motor", theta)):
        for name, position, velocity in zip(names, *motion):
            if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name + suffix) >= 0:
                data.joint(name + suffix).qpos[:], data.joint(name + suffix).qvel[:] = position, velocity
    return model, data


def torques_of(robot: Robot, q: Array, theta: Array, effort: Array) -> tuple[Array, Array]:
    """Return what springs and motors do to links, and what accelerates motors on springs, by their laws."""
    found = []
    for spec, x, motor, tau in zip(robot.drive_train.specs, q.T, theta.T, effort):
        link, own = (
            f.viscous * v + f.coulomb * np.sign(v)
            for f, v in ((spec.link_friction, x[1]), (spec.motor_friction, motor[1]))
        )
        if np.isfinite(spec.stiffness):
            spring = spec.stiffness * (motor[0] - x[0]) + spec.spring_damping * (motor[1] - x[1])
            found.append((spring - link, tau - spring - own))
        else:
            beside = spec.motor_friction  # that of a motor that moves with its link
            found.append((tau - link - beside.viscous * x[1] - beside.coulomb * np.sign(x[1]), 0.0))
    on_links, on_motors = np.array(found).T
    return on_links, on_motors


def moved(rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    """Return positions and velocities (2, n) of links and motors, and efforts; nothing is about to stick."""
    motion = rng.uniform(-1.0, 1.0, (2, 2, n))
    motion[:, 1] += np.sign(motion[:, 1])
    return motion[0], motion[1], rng.uniform(-5.0, 5.0, n)


def test_accelerations_of_a_tree_on_drives_of_all_kinds() -> None:
    tree = random_tree(5, n_bodies=8, kinds=("revolute", "prismatic"))
    bare = Robot.from_screws(**tree.arguments())
    robot = bare.with_drives([DRIVES[j % len(DRIVES)] for j in range(8)])
    q, theta, effort = moved(np.random.default_rng(3), 8)
    model, data = state_of(robot, q, theta)
    data.ctrl[:] = effort
    mujoco.mj_forward(model, data)
    on_links, on_motors = torques_of(robot, q, theta, effort)
    elastic, inertia = robot.drive_train.elastic, robot.drive_train.motor_inertia
    mass = bare.mass_matrix(q[:1])[0] + np.diag(np.where(elastic, 0.0, inertia))
    links = np.linalg.solve(mass, on_links - bare.inverse_dynamics(np.vstack([q, np.zeros(8)]))[0])
    for j, name in enumerate(robot.joint_names):
        assert data.joint(name).qacc[0] == pytest.approx(links[j], rel=1e-9)
        if elastic[j]:
            assert data.joint(f"{name}_motor").qacc[0] == pytest.approx(on_motors[j] / inertia[j], rel=1e-9)


def test_accelerations_of_a_floating_tree_with_a_universal_joint() -> None:
    tree = random_tree(6, n_bodies=5, floating_base=True, kinds=("revolute", "prismatic"))
    bare = Robot.from_screws(**tree.arguments())
    robot = bare.with_drives(series_elastic([400.0, 500.0, 600.0, 700.0], 0.1))
    rng = np.random.default_rng(4)
    q, theta, effort = moved(rng, 4)
    place = tree.placements[0].copy()
    place[:3, 3] += (0.1, 0.2, -0.3)
    base = BaseMotion(place, rng.uniform(-1.0, 1.0, (1, 6)), representation="body_fixed")
    model, data = state_of(robot, q, theta, base)
    data.ctrl[:] = effort
    mujoco.mj_forward(model, data)
    twists, joints = bare.forward_dynamics(q, torques_of(robot, q, theta, effort)[0][None], base)
    found = np.array([data.joint(name).qacc[0] for name in robot.joint_names])
    np.testing.assert_allclose(found, joints[0], rtol=1e-9)
    np.testing.assert_allclose(data.qacc[3:6], twists[0, :3], rtol=1e-9)


@pytest.mark.parametrize("name", ["palletiser.yaml", "delta.yaml", "panda_hand.yaml"])
def test_accelerations_of_couplings_and_loops_from_rest(name: str) -> None:
    """By the matrices and constraints of MuJoCo, whose own solver lets constraints give way a little."""
    robot = shipped(name)
    n = len(robot.driven_joints)
    robot = with_drives(robot, np.linspace(300.0, 500.0, n), 0.1)
    model = mujoco.MjModel.from_xml_string(mjcf(robot).text)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    turned = np.linspace(0.01, 0.02, n)
    for joint, angle in zip(robot.driven_joints, turned):
        data.joint(f"{joint}_motor").qpos[:] += angle
    mujoco.mj_forward(model, data)
    held = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert np.abs(data.efc_pos[held]).max() < 1e-9  # closed at home
    J = data.efc_J.reshape(-1, model.nv)[held]
    mass = np.zeros((model.nv, model.nv))
    for column, unit in zip(mass, np.eye(model.nv)):
        mujoco.mj_mulM(model, data, column, unit)
    free = data.qfrc_actuator + data.qfrc_passive - data.qfrc_bias
    zero = np.zeros((len(J), len(J)))
    solution = np.linalg.lstsq(np.block([[mass, J.T], [J, zero]]), np.append(free, zero[0]), rcond=None)[0]
    expected = {model.joint(j).name: solution[model.joint(j).dofadr[0]] for j in range(model.njnt)}

    home = dict(zip(robot.tree.joint_names, robot.closure.home))
    q = np.array([[home[joint] for joint in robot.joint_names], np.zeros(robot.n_coordinates)])
    found = robot.forward_dynamics(q, (robot.drive_train.stiffness * turned)[None])[0]
    np.testing.assert_allclose(
        found, [expected[joint] for joint in robot.joint_names], rtol=1e-9, atol=1e-9 * np.abs(found).max()
    )
    motors = [expected[f"{joint}_motor"] for joint in robot.driven_joints]
    np.testing.assert_allclose(motors, -10.0 * robot.drive_train.stiffness * turned, rtol=1e-9)


def test_feet_without_mass_hold_the_torque_of_their_springs() -> None:
    """A weld of MuJoCo is as soft as what it holds is light: a light foot would turn in place of the arm."""
    robot, turned = shipped("planar_3rrr.yaml"), np.array([0.02, -0.01, 0.015])
    tree = robot.tree
    feet = [name for name, mass in zip(tree.body_names, tree.masses) if not mass]
    model = mujoco.MjModel.from_xml_string(mjcf(robot).text)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    for joint, angle in zip(robot.driven_joints, turned):
        data.joint(f"{joint}_motor").qpos[:] += angle
    mujoco.mj_forward(model, data)
    before = np.array([data.joint(joint).qpos[0] for joint in robot.driven_joints])
    at = np.array([data.body(name).xmat.copy() for name in feet])
    while data.time < 0.01:
        mujoco.mj_step(model, data)
    moved = np.array([data.joint(joint).qpos[0] for joint in robot.driven_joints]) - before
    gave_way = np.array([data.body(name).xmat for name in feet]) - at
    assert np.abs(gave_way).max() < 1e-3 * np.abs(moved).max()


def test_all_shipped_robots_are_compiled_by_mujoco() -> None:
    for name in ("aerial_manipulator", "gough_stewart_6ups", "humanoid_leg", "panda", "planar_3rrr"):
        robot, written = shipped(f"{name}.yaml"), mjcf(shipped(f"{name}.yaml"))
        model = mujoco.MjModel.from_xml_string(written.text)
        assert [model.actuator(i).name for i in range(model.nu)] == list(robot.driven_joints)
        others = ("aerial_manipulator", "gough_stewart_6ups", "planar_3rrr")
        assert (len(written.notes) > 0) == (name in others)  # propellers, bodies without mass


def test_what_mujoco_has_no_word_for_is_named() -> None:
    helical = Robot.from_screws(**random_tree(1, n_bodies=1, kinds=("helical",)).arguments())
    refused(lambda: mjcf(helical), "joint 'joint1' is helical, which MuJoCo has no joint for")
    measured = tuple(np.linspace(-1.0, 1.0, 7))
    bent = DriveSpec(stiffness=10.0, spring_table=SpringTable(measured, measured), motor_inertia=0.1)
    turning = DriveSpec(stiffness=100.0, motor_inertia=0.1, gear_ratio=50.0, rotor=RotorSpec("body1"))
    arm = Robot.from_screws(**random_tree(1, n_bodies=2, kinds=("revolute",)).arguments())
    for spec, text in (
        (bent, "the spring of joint 'joint2' is not linear"),
        (turning, "the rotor of joint 'joint2' turns with body 'body1'"),
    ):
        refused(partial(mjcf, arm.with_drives([DriveSpec(motor_inertia=0.1), spec])), text)
    refused(lambda: mjcf(robot_of(MECHANISMS["cylinder and slider"]())), "'loop1' ... kind cylinder")


def test_an_inertia_that_no_body_has_is_written_as_one_that_mujoco_takes() -> None:
    arguments = random_tree(1, n_bodies=2, kinds=("revolute",)).arguments()
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    arguments["inertias"] = [turn @ np.diag([0.1, 0.2, most]) @ turn.T for most in (0.9, 0.3)]
    arm = Robot.from_screws(**arguments)
    written = mjcf(arm)
    assert ["'body1'" in note and "0.9, becomes 0.3" in note for note in written.notes] == [True]
    moments = mujoco.MjModel.from_xml_string(written.text).body_inertia[1:]
    np.testing.assert_allclose(np.sort(moments), [[0.1, 0.2, 0.3]] * 2, rtol=1e-9)
    q = np.random.default_rng(4).normal(size=(3, 2))
    with pytest.warns(FigureWarning, match="no body has the principal moments"):
        read = Robot.from_mjcf(written.text)
    np.testing.assert_allclose(read.inverse_dynamics(q), arm.inverse_dynamics(q), rtol=1e-12)


def test_the_command_writes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "export", "--lang", "mjcf", "panda.yaml", "--out", tmp_path) == 0
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "panda.xml"))
    assert model.joint("panda_joint1_motor").range.tolist() == [0.0, 0.0]
    assert model.joint("panda_joint1").range.tolist() == pytest.approx([-2.8973, 2.8973])


@pytest.mark.parametrize("name", ["../arm", "/arm", "..", ".", "a/../../arm", "arm\\..", "\t", "x" * 300])
def test_no_name_leads_out_of_the_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither that of a robot, which comes with its file, nor one that is asked for."""
    robot, out = tmp_path / "robot.urdf", tmp_path / "deep" / "out"
    robot.write_text(HINGED_ARM.replace('<robot name="arm"', f'<robot name="{name}"'))
    assert Robot.from_urdf(robot).name == " ".join(name.split("\t"))
    assert run(monkeypatch, "export", "--lang", "mjcf", robot, "--out", out) == 0
    assert run(monkeypatch, "export", "--lang", "mjcf", robot, "--out", out, "--name", name) == 2
    assert f"the name {name!r} cannot be that of a file" in " ".join(capsys.readouterr().err.split())
    assert [path.parent for path in tmp_path.rglob("*") if path.is_file() and path != robot] == [out]
    mujoco.MjModel.from_xml_path(str(next(out.iterdir())))


@pytest.mark.parametrize(
    ("option", "value"), [("--what", "jacobian"), ("--order", 0), ("--representation", "hybrid")]
)
def test_what_c_takes_is_refused_of_mjcf(
    option: str,
    value: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ("export", "--lang", "mjcf", "panda.yaml", "--out", tmp_path, option, value)
    assert run(monkeypatch, *command) == 2
    assert f"--lang mjcf takes no {option}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
