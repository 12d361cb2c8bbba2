"""A leg of MJCF with springs, rods and loops: shown, planned, simulated, viewed, exported."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from refusals import refused
from spring_leg import spring_leg

from hodyn_ros import ModelError, Robot
from hodyn_ros.errors import FigureWarning
from hodyn_ros.view.looks import read_looks
from hodyn_ros.view.scene import Scene

pytestmark = pytest.mark.thorough

mujoco = pytest.importorskip("mujoco")

FILE = """name: leg_on_a_stand
mjcf: leg.xml
keyframe: home
floating_base: false
mjcf_friction: true
limits: {velocity: 6}
joints:
  - {name: knee, drive: {stiffness: 4000, proportional_gain: 900, derivative_gain: 30}}
"""
MOTION = """type: waypoints
joint_names: [hip, knee, foot]
points:
  - {time: 0, positions: [0.3, -0.3, 0]}
  - {time: 0.6, positions: [0.1, -0.6, 0.2]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "leg.xml").write_text(spring_leg())
    (tmp_path / "leg.yaml").write_text(FILE)
    (tmp_path / "step.yaml").write_text(MOTION)
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore", FigureWarning)
    return tmp_path


@pytest.mark.filterwarnings("ignore::hodyn_ros.errors.FigureWarning")
@pytest.mark.parametrize("keyframe", [None, "home"])
def test_its_actuators_are_its_drives(keyframe: str | None) -> None:
    robot = Robot.from_mjcf(spring_leg(), keyframe=keyframe)
    assert robot.coordinates == robot.driven_joints == ("hip", "knee", "foot")
    assert "shin" not in robot.tree.joint_names
    assert robot.require_drives().motor_inertia.tolist() == [0.09, 0.09, 0.02]
    assert robot.limits.effort.tolist() == [192.0, 192.0, 45.0]


def test_what_is_held_and_where_loops_close_is_said() -> None:
    with pytest.warns(FigureWarning) as said:
        Robot.from_mjcf(spring_leg(), friction=False)
    lines = [str(each.message) for each in said]
    assert "robot 'leg': spins of rods 'achilles-rod' do not count" in lines
    assert any("springs of joints 'shin' do not count: these joints are held where" in line for line in lines)
    assert any(
        "joints 'knee' are beyond their range; the file has the keyframes 'home'" in line for line in lines
    )


def accelerations(text: str, efforts: dict[str, float]) -> dict[str, float]:
    """Return those of MuJoCo from rest at home, by its mass matrix and constraints, which give way."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(20):  # close the loops; the pelvis and the spring stay
        mujoco.mj_fwdPosition(model, data)
        rows = data.efc_J.reshape(-1, model.nv)[: data.nefc].copy()
        rows[:, :6] = 0.0
        rows[:, model.joint("shin").dofadr] = 0.0
        change = -np.linalg.lstsq(rows, data.efc_pos, rcond=1e-6)[0]
        mujoco.mj_integratePos(model, data.qpos, change, 1.0)
    for name, effort in efforts.items():
        data.joint(name).qfrc_applied[:] = effort
    mujoco.mj_forward(model, data)
    still = np.concatenate([np.eye(6, model.nv), np.eye(model.nv)[model.joint("shin").dofadr]])
    J = np.concatenate([still, data.efc_J.reshape(-1, model.nv)[: data.nefc]])
    mass = np.zeros((model.nv, model.nv))
    for column, unit in zip(mass, np.eye(model.nv)):
        mujoco.mj_mulM(model, data, column, unit)
    free = data.qfrc_applied + data.qfrc_passive - data.qfrc_bias
    zero = np.zeros((len(J), len(J)))
    system = np.block([[mass, J.T], [J, zero]])
    solution = np.linalg.lstsq(system, np.append(free, zero[0]), rcond=1e-13)[0]
    return {name: float(solution[model.joint(name).dofadr[0]]) for name in efforts}


def test_accelerations_are_those_of_mujoco(folder: Path) -> None:
    """On a stand, its spring stiff, its rod with as much inertia about its axis as it may have."""
    robot = Robot.load(folder / "leg.yaml").with_drives(None)
    efforts = {"hip": 30.0, "knee": -20.0, "foot": 5.0}
    expected = accelerations(spring_leg(), efforts)
    q = np.array([robot.home[0], np.zeros(3)])
    found = robot.forward_dynamics(q, np.array([list(efforts.values())]))[0]
    # rotors count in MuJoCo, and here in the drives
    rotors = np.array([0.09, 0.09, 0.02])
    mass = robot.mass_matrix(q[:1])[0]
    found = np.linalg.solve(mass + np.diag(rotors), mass @ found)
    np.testing.assert_allclose(found, [expected[name] for name in efforts], rtol=1e-8)


def test_a_file_says_what_mjcf_does_not(folder: Path) -> None:
    robot = Robot.load(folder / "leg.yaml")
    assert robot.name == "leg_on_a_stand"
    assert not robot.tree.floating_base
    assert robot.limits.velocity.tolist() == [6.0] * 3
    hip, knee, foot = robot.require_drives().specs
    assert (knee.stiffness, knee.motor_inertia, knee.proportional_gain) == (4000.0, 0.09, 900.0)
    assert (hip.stiffness, foot.motor_inertia, hip.link_friction.viscous) == (np.inf, 0.02, 1.0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("keyframe: hme", "there is no keyframe 'hme'"),
        ("driven: [hip, knee, ankle]", "leg.yaml: ... driven: ... 'ankle'"),
        ("coordinates: [hip]", "with these at rest ... 'knee'"),
        ("joints: [{name: hips, locked: 0}]", "there is no joint 'hips' to lock; did you mean 'hip'"),
        (
            "joints: [{name: crank, drive: {stiffness: 100}}]",
            "'crank' has a drive, but is not among `driven`",
        ),
        ("root: hip", "there is no body 'hip' that stands or moves on the world"),
        ("keyfrme: home", "unknown key; did you mean 'keyframe'"),
        ("bodies: [{name: thigh, mass: 0}]", "there is no body 'thigh'"),
    ],
)
def test_what_a_file_says_wrongly_is_named(folder: Path, more: str, said: str) -> None:
    key = more.partition(":")[0]
    kept = [line for line in FILE.splitlines()[:6] if not line.startswith(f"{key}:")]
    (folder / "leg.yaml").write_text("\n".join([*kept, more]))
    refused(lambda: Robot.load(folder / "leg.yaml"), said, ModelError)


SETTINGS = ("--set", "keyframe=home", "--set", "floating_base=false", "--set", "limits.velocity=2")


def test_commands_take_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what the command line says of the MJCF, or a file that names it."""
    assert run(monkeypatch, "show", "leg.xml", *SETTINGS) == 0
    assert "leg: 9 joints, 9 bodies of 8.05 kg, 10 kg more are fixed to the world" in capsys.readouterr().out
    assert run(monkeypatch, "plan", "leg.xml", "step.yaml", "--set", "keyframe=home") == 2
    said = capsys.readouterr().err
    assert "no limit of velocity is known of 'hip', 'knee', 'foot'" in said
    assert "--set limits.velocity=2" in said
    common = ("plan", "leg.xml", "step.yaml", *SETTINGS, "--pieces", "4", "--out", "fast.yaml")
    assert run(monkeypatch, *common) == 0
    assert run(monkeypatch, "check", "leg.xml", "fast.yaml", *SETTINGS) == 0
    simulation = ("simulate", "leg.yaml", "step.yaml", "--out", "sim", "--rate", "500")
    assert run(monkeypatch, *simulation, "--set", "name=x") == 0
    figures = json.loads((folder / "sim" / "simulate.json").read_text())
    assert figures["cases"][0]["runs"]["elastic"]["rms_error"] < 1e-4
    assert run(monkeypatch, "export", "leg.yaml", "--order", "0", "--out", "c") == 0
    assert "leg.yaml, SHA-256" in (folder / "c" / "leg_on_a_stand.c").read_text()
    assert run(monkeypatch, "export", "leg.yaml", "--lang", "mjcf", "--out", "m") == 0
    again, robot = (Robot.load(folder / at) for at in ("m/leg_on_a_stand.xml", "leg.yaml"))
    q = np.vstack([robot.home[0], np.full((2, 3), 0.3)])
    np.testing.assert_allclose(again.inverse_dynamics(q), robot.inverse_dynamics(q), rtol=1e-9)
    assert again.require_drives().stiffness[1] == 4000.0


def test_it_is_drawn(folder: Path) -> None:
    for name in ("leg.xml", "leg.yaml"):
        robot = Robot.load(folder / name)
        looks = read_looks(folder / name, robot)
        assert {visual.shape for visual in looks.visuals} == {"box", "capsule"}
        Scene(robot, looks.visuals)
