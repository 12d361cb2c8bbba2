"""`--set` and `--floating-base`: what the command line says of a robot beside its file."""

from dataclasses import asdict
from pathlib import Path

import pytest
from command_line import run
from quadruped import quadruped
from refusals import refused
from spring_leg import spring_leg

from hodyn_ros import InputError, ModelError
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.readers.changes import parse_settings


@pytest.fixture
def urdf(tmp_path: Path) -> str:
    path = tmp_path / "go2.urdf"
    path.write_text(quadruped())
    return str(path)


def test_the_trunk_is_said_to_be_left_out(
    urdf: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "show", urdf) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "12 bodies of 9.6 kg, 7 kg more are fixed to the world and do not count" in said
    assert "so that it does not count: base (7 kg); with --floating-base the base floats" in said
    assert run(monkeypatch, "show", urdf, "--floating-base") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "13 bodies of 16.6 kg; floating base" in said
    assert "does not count" not in said


def test_settings_are_laid_over_the_file(urdf: str) -> None:
    settings = (
        "limits.velocity=2",
        "FL_hip_joint.limits.acceleration=7",
        "drive={stiffness: rigid, motor_inertia: 1}",
    )
    robot = RobotChoice(urdf, True, settings).robot()
    assert robot.tree.floating_base
    assert set(robot.limits.velocity) == {2.0}
    assert robot.limits.acceleration[robot.driven_joints.index("FL_hip_joint")] == 7.0
    assert set(robot.require_drives().motor_inertia) == {1.0}
    panda = RobotChoice("panda.yaml", settings=("panda_joint2.drive.stiffness=5",)).robot().require_drives()
    assert panda.stiffness[1] == 5.0
    assert panda.stiffness[0] == 10000.0


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("keyfrme=home", "unknown key; did you mean 'keyframe'"),
        ("keyframe", "takes a key of robot files and its value"),
        ("limits.velocity=", "takes a key of robot files and its value"),
        ("driven=[a", "not readable as YAML"),
        ("FL_hip.limits.velocity=1", "there is no joint 'FL_hip'"),
        ("FL_hip_joint.limits.velocit=1", "unknown key; did you mean 'velocity'"),
        ("limits.velocity=fast", "limits.velocity: must be a number"),
    ],
)
def test_what_is_wrong_is_named(urdf: str, setting: str, said: str) -> None:
    with pytest.raises((InputError, ModelError), match=said):
        RobotChoice(urdf, settings=(setting,)).robot()


def test_names_with_dots_are_joints() -> None:
    assert parse_settings(["arm.elbow.locked=1"]) == {"joints": [{"name": "arm.elbow", "locked": 1.0}]}


def test_single_degrees_of_freedom_of_a_joint_are_set(tmp_path: Path) -> None:
    path = tmp_path / "ball.yaml"
    path.write_text(
        "name: b\nbodies:\n  - {name: x, mass: 1, com: [0, 0, 0.1],\n"
        "     inertia: {about: com, ixx: 1, ixy: 0, ixz: 0, iyy: 1, iyz: 0, izz: 1}}\n"
        "joints:\n  - {name: hip, type: ball, parent: world, child: x,\n"
        "     freedoms: {ry: {limits: {lower: -1, upper: 2}}}}\n"
    )
    settings = ("hip.freedoms.ry.limits.upper=0.5", "hip.freedoms.rx.locked=0.2")
    robot = RobotChoice(str(path), settings=settings).robot()
    assert robot.joint_names == ("hip_rz", "hip_ry")
    assert (robot.limits.position_lower[1], robot.limits.position_upper[1]) == (-1.0, 0.5)
    with pytest.raises(ModelError, match="freedoms.tx: joint .hip.: unknown key"):
        RobotChoice(str(path), settings=("hip.freedoms.tx.locked=0.2",)).robot()


def test_joints_without_gains_are_named() -> None:
    specs = [DriveSpec(motor_inertia=0.5), DriveSpec(), DriveSpec(proportional_gain=9.0, derivative_gain=2.0)]
    with pytest.raises(InputError, match="no motor inertia to take gains from: 'knee'; .*knee.drive.motor"):
        MotorGains.of_drives(DriveTrain(specs, ["hip", "knee", "toe"]), 10.0, 1.0)
    gains = MotorGains.of_drives(DriveTrain(specs[::2], ["hip", "toe"]), 10.0, 1.0)
    assert gains.proportional.tolist() == [50.0, 9.0]
    assert gains.derivative.tolist() == [10.0, 2.0]


@pytest.mark.filterwarnings("ignore::hodyn_ros.errors.FigureWarning")
def test_nodes_keep_an_mjcf_that_is_complete(tmp_path: Path) -> None:
    (tmp_path / "leg.xml").write_text(spring_leg())
    (tmp_path / "leg.yaml").write_text("mjcf: leg.xml\nkeyframe: home\n")
    for name in ("leg.xml", "leg.yaml"):
        kept = RobotFiles.from_file(tmp_path / name)
        assert RobotFiles(**asdict(kept)).robot().coordinates == ("hip", "knee", "foot")
    (tmp_path / "leg.xml").write_text(
        spring_leg().replace("<worldbody>", '<include file="x.xml"/><worldbody>')
    )
    refused(lambda: RobotFiles.from_file(tmp_path / "leg.yaml"), "another ... --lang mjcf", ModelError)
