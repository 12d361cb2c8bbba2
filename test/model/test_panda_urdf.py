"""The shipped URDF of the Panda: the robot of panda.yaml, and a ros2_control system that names all of it."""

from xml.etree import ElementTree

import numpy as np
import pytest

from hodyn_ros import Robot, share
from hodyn_ros.trajectory import read_trajectory
from hodyn_ros.trajectory.rest import rest_to_rest

URDF = share.find("config", "panda.urdf")
RTOL = 1e-12
Q = np.array([[0.3, -0.5, 0.7, -1.9, 0.4, 1.6, -0.8]])


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load(share.find("config", "panda.yaml"))


def test_torques_and_their_derivatives_are_those_of_the_yaml(robot: Robot) -> None:
    # URDF does not say what gravity is
    from_urdf = Robot(Robot.from_urdf(URDF).model.with_gravity(robot.gravity))
    motion = read_trajectory(share.find("config", "panda_excitation.yaml"))
    expected, found = robot.compile(4), from_urdf.compile(4)
    for time in np.linspace(0.0, 20.0, 41):
        q = motion.sample(float(time), 6)
        efforts = expected(q)
        scale = np.abs(efforts).max(axis=1, keepdims=True)
        assert (np.abs(found(q) - efforts) <= RTOL * scale).all()


def test_names_frames_and_limits_are_those_of_the_yaml(robot: Robot) -> None:
    from_urdf = Robot.from_urdf(URDF)
    assert from_urdf.model.name == robot.model.name
    assert from_urdf.joint_names == robot.joint_names
    assert from_urdf.model.body_names == robot.model.body_names
    for name in ("position_lower", "position_upper", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(from_urdf.limits, name), getattr(robot.limits, name))
    flanges = [r.forward_kinematics(Q).pose_of("panda_link8") for r in (from_urdf, robot)]
    np.testing.assert_allclose(*flanges, rtol=0.0, atol=1e-14)


def test_ros2_control_has_every_joint_with_all_interfaces(robot: Robot) -> None:
    root = ElementTree.parse(URDF).getroot()
    system = root.find("ros2_control")
    assert system is not None and system.get("type") == "system"
    assert system.findtext("hardware/plugin") == "mock_components/GenericSystem"
    joints = system.findall("joint")
    assert tuple(joint.get("name") for joint in joints) == robot.joint_names
    for joint in joints:
        for kind in ("command_interface", "state_interface"):
            assert {interface.get("name") for interface in joint.findall(kind)} == {
                "position",
                "velocity",
                "effort",
            }


def test_the_mock_robot_stands_where_the_motion_of_the_launch_files_starts() -> None:
    states = ElementTree.parse(URDF).getroot().findall("ros2_control/joint/state_interface[@name='position']")
    initial = [float(state.findtext("param[@name='initial_value']") or "nan") for state in states]
    motion = rest_to_rest(read_trajectory(share.find("config", "panda_excitation.yaml")), ramp=2.0)
    np.testing.assert_allclose(initial, motion.sample(0.0, 0)[0], rtol=0.0, atol=1e-4)
