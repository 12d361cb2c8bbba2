"""Robots written as MJCF and read again: the same efforts, motors, limits and frames."""

import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from linkages import shipped

from hodyn_ros import BaseMotion, Constraints, DriveSpec, Loop, Robot
from hodyn_ros.errors import FigureWarning
from hodyn_ros.export import mjcf
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.model.frames import from_rpy

pytestmark = pytest.mark.thorough

mujoco = pytest.importorskip("mujoco")

CONFIG = Path(__file__).parents[2] / "config"
ROBOTS = (
    "aerial_manipulator",
    "ankle_linkage",
    "delta",
    "gough_stewart_6ups",
    "humanoid_leg",
    "kuka_kr300",
    "palletiser",
    "panda",
    "panda_hand",
    "planar_3rrr",
)


def read_again(robot: Robot) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FigureWarning)  # nothing that it has is left out
        return Robot.from_mjcf(mjcf(robot).text)


def feedforward(robot: Robot) -> Feedforward:
    """Return efforts, motors and thrusts for a motion near home, to the order that springs need."""
    order = 0 if robot.drive_train is None else 2
    rng = np.random.default_rng(1)
    q = rng.uniform(-1.0, 1.0, (order + 3, robot.n_coordinates))
    start, pose = robot.home
    q[0] = start + 0.02 * q[0]
    base = None
    if robot.moves_base:
        twists = rng.uniform(-1.0, 1.0, (order + 2, 6))
        platform = None if robot.closure is None else robot.closure.platform
        if platform is not None and len(platform.rows) == 2:  # in its plane, without turns
            twists[:, [0, 1, 2, 5]] = 0.0
        base = BaseMotion(pose, twists, representation="body_fixed")
    return FeedforwardModel(robot, order).compute(q, base)


@pytest.mark.parametrize("name", ROBOTS)
def test_shipped_robots_come_back_with_their_drives(name: str) -> None:
    robot = shipped(f"{name}.yaml")
    again = read_again(robot)
    assert again.coordinates == robot.coordinates
    assert again.driven_joints == robot.driven_joints
    expected, found = feedforward(robot), feedforward(again)
    for what in ("efforts", "motor_positions", "motor_efforts", "base_wrenches", "thrusts"):
        wanted, got = getattr(expected, what), getattr(found, what)
        assert got.shape == wanted.shape, what
        for order, row in enumerate(wanted):
            scale = np.abs(row).max(initial=0.0)
            np.testing.assert_allclose(got[order], row, rtol=0.0, atol=1e-9 * scale, err_msg=what)
    assert expected.efforts.any()
    for limits, known in ((again.limits, robot.limits), (again.coordinate_limits, robot.coordinate_limits)):
        for entry in dataclasses.fields(limits):
            np.testing.assert_array_equal(getattr(limits, entry.name), getattr(known, entry.name))
    assert (again.drive_train is None) == (robot.drive_train is None)
    if again.drive_train is not None and robot.drive_train is not None:
        assert list(map(repr, again.drive_train.specs)) == list(map(repr, robot.drive_train.specs))


def test_all_shipped_robots_are_among_them() -> None:
    files = {path.stem: yaml.safe_load(path.read_text()) for path in CONFIG.glob("*.yaml")}
    assert {name for name, data in files.items() if {"bodies", "urdf", "limbs"} & set(data)} == set(ROBOTS)


def test_all_figures_of_drives_come_back() -> None:
    robot = shipped("panda.yaml")
    friction = FrictionSpec(0.5, 2.0, load=0.05, temperature=30.0, viscous_by_temperature=0.02)
    changes = {"motor_friction": friction, "proportional_gain": 900.0, "derivative_gain": 30.0}
    specs = [dataclasses.replace(spec, **changes) for spec in robot.require_drives().specs]
    written = mjcf(robot.with_drives(specs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FigureWarning)
        again = Robot.from_mjcf(written.text).require_drives()
    for spec, known in zip(again.specs, specs, strict=True):
        assert (spec.motor_friction, spec.derivative_gain) == (known.motor_friction, 30.0)
    assert "joint 'panda_joint1': load of its friction: left out, as MuJoCo has none" in written.notes


def test_frames_come_back() -> None:
    for name in ("humanoid_leg", "kuka_kr300", "panda"):
        robot = shipped(f"{name}.yaml")
        again = read_again(robot)
        for frame in set(robot.frames) - set(robot.tree.body_names):
            np.testing.assert_allclose(again.frames[frame].pose, robot.frames[frame].pose, atol=1e-15)


def test_rods_are_as_long_as_they_are_at_home() -> None:
    """MuJoCo holds a tendon at its length at qpos0, where this rod would be longer."""
    robot = Robot.from_screws(
        [-1, -1],
        [[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, -0.7, 0]],
        [np.eye(4), from_rpy(np.array([0.7, 0.0, 0.0]), np.zeros(3))],
        [1.0, 1.5],
        [[0.1, 0.02, 0.0], [0.2, -0.02, 0.0]],
        [0.02 * np.eye(3)] * 2,
        constraints=Constraints(
            [Loop(0, 1, "rod", (0.3, 0, 0), point_b=(1.2, 0, 0), length=0.8)],
            driven=[0],
            home={"joint1": 1.2},
        ),
    )
    q = np.array([[1.0], [0.3], [-0.4], [0.1]])
    np.testing.assert_allclose(
        read_again(robot).inverse_dynamics(q), robot.inverse_dynamics(q), rtol=1e-10, atol=1e-12
    )


def test_what_is_changed_in_the_model_counts() -> None:
    """The text with keys of hodyn_ros has only what MJCF has no word for."""
    text = mjcf(shipped("panda.yaml")).text
    assert text.count('stiffness="') == 7
    softer = text.replace('stiffness="', 'stiffness="1')
    found = Robot.from_mjcf(softer).drive_train
    assert found is not None
    known = shipped("panda.yaml").require_drives().stiffness
    np.testing.assert_array_equal(found.stiffness, [float(f"1{value}") for value in known])


SERVO = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="arm"><joint name="elbow" axis="0 1 0" damping="0.2"/><geom size="0.1" pos="0.2 0 0"/></body>
  <body name="rotor" pos="0 1 0"><joint name="shaft" axis="0 0 1" armature="0.001" damping="0.01"/>
    <inertial pos="0 0 0" mass="1" diaginertia="0.002 0.002 0.003"/></body></worldbody>
  <tendon><fixed name="belt" stiffness="8" damping="0.5"><joint joint="shaft" coef="1"/>
    <joint joint="elbow" coef="-50"/></fixed></tendon>
  <actuator><motor name="m" joint="shaft" ctrlrange="-2 2"/></actuator></mujoco>"""


def test_a_motor_behind_a_gear_is_reflected_to_its_joint() -> None:
    """Length of the tendon: shaft - 50 elbow, so the shaft turns 50 times where the spring is at rest."""
    robot = Robot.from_mjcf(SERVO, friction=True)
    assert robot.joint_names == ("elbow",)
    (spec,) = robot.require_drives().specs
    assert spec.stiffness == pytest.approx(8.0 * 50.0**2, rel=1e-12)
    assert spec.spring_damping == pytest.approx(0.5 * 50.0**2, rel=1e-12)
    assert spec.motor_inertia == pytest.approx((0.003 + 0.001) * 50.0**2, rel=1e-12)
    assert spec.motor_friction.viscous == pytest.approx(0.01 * 50.0**2, rel=1e-12)
    assert spec.link_friction.viscous == 0.2
    assert robot.limits.effort.tolist() == [100.0]


def test_accelerations_behind_a_gear_are_those_of_mujoco() -> None:
    robot = Robot.from_mjcf(SERVO, friction=True)
    model = mujoco.MjModel.from_xml_string(SERVO)
    data = mujoco.MjData(model)
    q, theta = np.array([0.3, -0.7]), np.array([0.31, 0.4])
    for name, motion, ratio in (("elbow", q, 1.0), ("shaft", theta, 50.0)):
        data.joint(name).qpos[:], data.joint(name).qvel[:] = motion * ratio
    data.ctrl[:] = 1.5
    mujoco.mj_forward(model, data)
    (spec,) = robot.require_drives().specs
    spring = spec.stiffness * (theta[0] - q[0]) + spec.spring_damping * (theta[1] - q[1])
    motor = (1.5 * 50.0 - spring - spec.motor_friction.viscous * theta[1]) / spec.motor_inertia
    assert data.joint("shaft").qacc[0] / 50.0 == pytest.approx(motor, rel=1e-12)
    effort = spring - spec.link_friction.viscous * q[1]
    link = robot.forward_dynamics(q[:, None], np.array([[effort]]))[0, 0]
    assert data.joint("elbow").qacc[0] == pytest.approx(link, rel=1e-9)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<inertial pos="0 0 0"', '<inertial pos="0.1 0 0"'),  # gravity turns it
        ('<geom size="0.1" pos="0.2 0 0"/>', '<geom size="0.1" pos="0.2 0 0"/><site name="s"/>'),
        ("</body></worldbody>", '<body><geom size="0.1"/></body></body></worldbody>'),  # it carries something
    ],
)
def test_what_is_no_motor_moves_by_itself(before: str, after: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FigureWarning)
        robot = Robot.from_mjcf(SERVO.replace(before, after))
    assert ("shaft" in robot.joint_names) == ("site" not in after)


def test_a_drive_of_a_file_is_laid_over_that_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "servo.xml").write_text(SERVO)
    file = tmp_path / "servo.yaml"
    file.write_text(
        "mjcf: servo.xml\nmjcf_friction: false\njoints: [{name: elbow, drive: {stiffness: 9000}}]"
    )
    (spec,) = Robot.load(file).require_drives().specs
    expected = DriveSpec(9000.0, (0.003 + 0.001) * 50.0**2, spring_damping=0.5 * 50.0**2)
    assert spec.stiffness == expected.stiffness
    assert spec.spring_damping == pytest.approx(expected.spring_damping)
    assert spec.motor_inertia == pytest.approx(expected.motor_inertia)
