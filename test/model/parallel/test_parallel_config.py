"""Parallel robots from YAML files: the shipped ones, and what is rejected with file, line and place."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from sweeps import THOROUGH

from hodyn_ros import BaseMotion, ModelError, Robot, share
from hodyn_ros.dynamics.read_robot import read_robot
from hodyn_ros.engine.loops.limbs import limbs_of

pytestmark = pytest.mark.thorough

PLATFORM = Path(share.find("config", "gough_stewart_6ups.yaml"))
PLANAR = Path(share.find("config", "planar_3rrr.yaml"))


def group_sizes(robot: Robot) -> list[int]:
    """Return how many limbs are computed side by side."""
    assert robot.closure is not None
    parts = {part for part, _ in limbs_of(robot.closure, np.zeros(3)).parts.values()}
    return list(Counter(alike for alike, _ in parts).values())


def test_the_shipped_platform_carries_its_weight() -> None:
    robot = Robot.load(PLATFORM)
    assert robot.driven_joints == tuple(f"leg{i + 1}_slide" for i in range(6))
    assert len(robot.coordinates) == 6
    assert group_sizes(robot) == [6]
    forces = robot.inverse_dynamics(None, BaseMotion(robot.home[1], np.zeros((2, 6))))
    assert np.allclose(forces[0], forces[0, 0], rtol=1e-12, atol=0.0), "all legs carry alike"
    # virtual work: a rise of the platform lifts the upper parts of the legs with their slides and both parts
    # by turning; at the home pose the legs lean so little that the slides carry nearly all
    weight = 9.8 * (8.08 + 6 * 0.553)
    leaning = np.linalg.norm([0.12 - 0.095, 0.0]) / 0.39
    assert 6.0 * forces[0, 0] == pytest.approx(weight, rel=leaning)
    assert Robot.load(PLATFORM, gravity=(0, 0, 0)).gravity.tolist() == [0.0, 0.0, 0.0]


def test_the_shipped_platform_rolls_half_a_radian() -> None:
    """The motion of the paper's example stays away from singular poses."""
    robot = Robot.load(PLATFORM)
    for roll in np.linspace(-0.5, 0.5, 11 if THOROUGH else 4):
        pose = robot.home[1].copy()
        pose[1:3, 1:3] = [[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]]
        base = BaseMotion(pose, np.zeros((2, 6)))
        state = robot.drive_state(None, base)
        assert not state.near_singularity
        here, home = (robot.solve_loops(None, BaseMotion(at, base.twists)) for at in (pose, robot.home[1]))
        assert here.motion_margin > 0.5 * home.motion_margin
        assert here.drive_margin > 0.5 * home.drive_margin
        assert np.abs(state.motion[0]).max() < 0.1


def test_legs_may_have_universal_and_ball_joints(tmp_path: Path) -> None:
    text = PLATFORM.read_text()
    for old, new in {
        "      - {name: hip, mass: 0}\n": "",
        "      - {name: ball_a, mass: 0}\n      - {name: ball_b, mass: 0}\n": "",
        "{name: hip_x, type: revolute, parent: world, child: hip, axis: [1, 0, 0]}": "{name: hip, type: "
        "universal, parent: world, child: lower, axis: [1, 0, 0], axis_b: [0, 1, 0], "
        "freedoms: {r1: {driven: false}}}",
        "      - {name: hip_y, type: revolute, parent: hip, child: lower, axis: [0, 1, 0]}\n": "",
        "{name: ball_x, type: revolute, parent: upper, child: ball_a, axis: [1, 0, 0]}": "{name: ball, type: "
        "ball, parent: upper, child: platform}",
        "      - {name: ball_y, type: revolute, parent: ball_a, child: ball_b, axis: [0, 1, 0]}\n": "",
        "      - {name: ball_z, type: revolute, parent: ball_b, child: platform, axis: [0, 0, 1]}\n": "",
    }.items():
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "platform.yaml"
    path.write_text(text)
    expected, robot = Robot.load(PLATFORM), Robot.load(path)
    assert robot.driven_joints == expected.driven_joints
    pose = expected.home[1].copy()
    pose[:3, 3] += (0.01, -0.02, 0.03)
    base = BaseMotion(pose, np.random.default_rng(0).uniform(-0.5, 0.5, (3, 6)), representation="body_fixed")
    found = robot.inverse_dynamics(None, base)
    assert np.abs(found / expected.inverse_dynamics(None, base) - 1.0).max() < 1e-11
    path.write_text(text.replace("driven: false", "driven: true"))
    assert len(Robot.load(path).driven_joints) == 12


def test_the_shipped_planar_robot_has_three_elastic_drives_for_two_degrees_of_freedom() -> None:
    config = read_robot(PLANAR)
    robot = Robot.load(PLANAR)
    assert robot.coordinates == ("tool.x", "tool.y")
    assert robot.platform == "tool"
    assert robot.driven_joints == ("left_shoulder", "right_shoulder", "top_shoulder")
    assert robot.drive_train is not None
    assert robot.drive_train.elastic.all()
    assert robot.drive_train is not None
    assert robot.drive_train.n_motors == 3
    assert group_sizes(robot) == [3]
    assumed = {figure.place for figure in config.assumed}
    assert any("stiffness" in place for place in assumed)
    assert any("platform.inertia" in place for place in assumed)
    assert not any("mass" in place for place in assumed)
    assert robot.limits.effort.shape == (3,)


def test_every_robot_is_read_in_one_way() -> None:
    for path in (PLATFORM, PLANAR):
        robot = Robot.load(path, (0.0, 1.0, 2.0))
        assert type(robot) is Robot
        assert robot.gravity.tolist() == [0.0, 1.0, 2.0]
    # what reads every file says nothing of platforms for a tree
    tree = Robot.load(share.find("config", "panda.yaml"))
    assert tree.platform is None and tree.closure is None


def changed(tmp_path: Path, source: Path, old: str, new: str) -> Path:
    text = source.read_text()
    assert text.count(old) >= 1, old
    path = tmp_path / "robot.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dof: [x, y]", "dof: [x, z]", "wrong mobility: limb 'left' does not let the platform move"),
        ("dof: [x, y]", "dof: [x]", "wrong mobility: the limbs let the platform move in 3 directions"),
        ("dof: [x, y]", "dof: [x, yy]", "robot.yaml: ... : platform.dof[1]: must be rx ... did you mean"),
        ("dof: [x, y]", "dofs: [x, y]", "robot.yaml: ... : platform.dofs: unknown key; did you mean 'dof'"),
        ("type: arm, base: [0.45", "type: leg, base: [0.45",
            "there is no limb type 'leg'; known: ['arm']"),
        ("base: [0.45", "base: [0.44",
            "robot.yaml: ... : limbs[1].attachment: limb 'right' does not close at the reference pose: it"),
        ("attachment: [0, 0, 0]", "attachment: [0, 0, 0.01]",
            "limb 'left' does not close at the reference pose"),
        ("align: x", "rpy: [0, 0, 0]", "limb 'left' does not close at the reference pose"),
        ("align: x", "align: x, rpy: [0, 0, 0]", "limb 'left' needs either align or rpy"),
        ("align: x", "align: y", "must be x or z"),
        ("child: tool", "child: lower", "body 'lower' is the child of two joints"),
        ("parent: lower\n", "parent: upper\n", ""),
        ("- name: lower", "- name: tool", "the platform 'tool' is counted twice"),
        ("stiffness: {value: 40", "stiffness: {value: -40",
            "must be greater than"),
        ("axis: [0, 0, 1]", "axis: [0, 0, 1]\n        driven: false",
            "has a drive, so it cannot have driven"),
        ("name: right, type", "name: left, type", "several limbs are called 'left'"),
    ],
)  # fmt: skip
def test_bad_files_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    if old == "parent: lower\n":
        old, new = "parent: lower, child: tool", "parent: upper, child: tool"
        message = "limb type 'arm' must be one chain of joints from 'world' to 'tool'"
    path = changed(tmp_path, PLANAR, old, new)
    assert "robot.yaml" in str(refused(lambda: Robot.load(path), message, ModelError))


URDF = """
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.2 0 0"/><mass value="0.151248"/>
      <inertia ixx="7.12126e-06" ixy="0" ixz="0" iyy="0.002023307516" iyz="0" izz="0.002017093744"/>
    </inertial>
  </link>
  <link name="lower">
    <inertial>
      <origin xyz="0.2 0 0"/><mass value="0.1435384"/>
      <inertia ixx="6.375497267e-06" ixy="0" ixz="0" iyy="0.001920172984" iyz="0" izz="0.001913893179"/>
    </inertial>
  </link>
  <link name="tool">INERTIAL</link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><origin rpy="0 0 0.8638445989076788"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="30" velocity="8"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/>
    <origin xyz="0.4 0 0" rpy="0 0 -1.7276891978153577"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="hinge" type="continuous">
    <parent link="lower"/><child link="tool"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>
  </joint>
</robot>
"""


def with_urdf(tmp_path: Path, inertial: str = "") -> Path:
    (tmp_path / "arm.urdf").write_text(URDF.replace("INERTIAL", inertial))
    text = PLANAR.read_text()
    start, end = text.index("    bodies:"), text.index("# [rrr]: a triangle")
    drive = "{motor_inertia: 0.002, stiffness: 40}"
    limb = f"    urdf: arm.urdf\n    joints:\n      - {{name: shoulder, drive: {drive}}}\n\n"
    path = tmp_path / "robot.yaml"
    path.write_text(text[:start] + limb + text[end:])
    return path


def test_limbs_may_be_urdf_chains(tmp_path: Path) -> None:
    """The same robot, its arms taken from a URDF instead."""
    robot, plain = Robot.load(with_urdf(tmp_path)), Robot.load(PLANAR)
    twists = np.zeros((4, 6))
    twists[:, 3:5] = [[0.3, -0.2], [1.0, 2.0], [-3.0, 5.0], [10.0, 20.0]]
    expected, found = (
        one.inverse_dynamics(None, BaseMotion(one.home[1], twists, representation="body_fixed"))
        for one in (plain, robot)
    )
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert robot.driven_joints == plain.driven_joints
    assert robot.limits.effort.tolist() == [30.0, 30.0, 30.0]
    assert robot.drive_train is not None


def test_limits_and_drives_of_all_of_a_type_and_of_one(tmp_path: Path) -> None:
    """The more closely said goes before: one joint, then the type of its limb, then all that are driven."""
    path = with_urdf(tmp_path)
    text = path.read_text().replace(
        "drive: {motor_inertia: 0.002, stiffness: 40}", "driven: true, limits: {velocity: 7}"
    )
    path.write_text(
        f"""{text}
limits: {{velocity: 6, acceleration: 90}}
drive: {{motor_inertia: 0.002, stiffness: 40}}
joints:
  - {{name: left_shoulder, limits: {{acceleration: 80}}, drive: {{motor_inertia: 0.003, stiffness: 50}}}}
"""
    )
    robot = Robot.load(path)
    left = [name == "left_shoulder" for name in robot.driven_joints]
    assert sum(left) == 1
    assert robot.limits.velocity.tolist() == [7.0, 7.0, 7.0]
    assert robot.limits.acceleration.tolist() == [80.0 if one else 90.0 for one in left]
    assert robot.limits.effort.tolist() == [30.0, 30.0, 30.0]
    assert robot.drive_train is not None
    assert robot.drive_train.stiffness.tolist() == [50.0 if one else 40.0 for one in left]
    path.write_text(path.read_text().replace("left_shoulder", "left_elbow"))
    message = "'left_elbow' that can have limits or a drive; known here: left_shoulder, right_shoulder"
    refused(lambda: Robot.load(path), message, ModelError)


def test_the_platform_counts_once_in_a_urdf(tmp_path: Path) -> None:
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    )
    refused(lambda: Robot.load(with_urdf(tmp_path, inertial)), "counted twice: link 'tool'", ModelError)
    (tmp_path / "arm.urdf").unlink()
    refused(lambda: Robot.load(tmp_path / "robot.yaml"), "cannot read the URDF", ModelError)
