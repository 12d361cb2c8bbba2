"""dynamics_node with a robot from the topic robot_description, over real DDS."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from ros_peer import Peer, asked, node_and_peer
from ros_processes import RosProcess
from std_msgs.msg import String

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.messages import write_desired_motion
from hodyn_ros.ros.streams.qos import latched_qos

SPACE = "described"
ONE = """<robot name="one">
  <link name="base"/>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="100" velocity="10"/></joint>
  <link name="arm"><inertial><origin xyz="0 0 -0.2"/><mass value="1"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.002"/></inertial></link>
</robot>"""
TWO = ONE.replace('name="one"', 'name="two"').replace("hinge", "elbow").replace('value="1"', 'value="3"')
FLYER = ONE.replace('name="one"', 'name="flyer"').replace(
    '<link name="base"/>',
    '<link name="base"><inertial><mass value="4"/><inertia ixx="0.1" ixy="0" '
    'ixz="0" iyy="0.2" iyz="0" izz="0.15"/></inertial></link>',
)
BROKEN = {
    "not XML": (ONE[:-20], "not well-formed XML"),
    "no URDF": ("<html/>", "the outermost element is <html>"),
    "a path": ("/etc/hostname", "the text of a URDF starts with '<', found '/etc/hostname'"),
    "empty": ("", "the text of a URDF starts with '<', found ''"),
    "without mass": (ONE.replace('<mass value="1"/>', '<mass value="-1"/>'), "negative mass"),
}


def motion(joint: str, second: int) -> DesiredMotion:
    return write_desired_motion([joint], Time(sec=second), np.array([[0.3], [0.1], [-0.5], [2.0], [1.0]]))


def expected(text: str) -> float:
    return float(Robot.from_urdf(text).inverse_dynamics(np.array([[0.3], [0.1], [-0.5]]))[0, 0])


class Descriptions:
    """What robot_state_publisher is to the node."""

    def __init__(self, peer: Peer) -> None:
        self._publisher: Any = peer.node.create_publisher(String, "robot_description", latched_qos())

    def publish(self, text: str) -> None:
        self._publisher.publish(String(data=text))


both, node, peer = node_and_peer({}, SPACE)


def test_it_waits_for_a_description_stays_up_when_it_is_broken_and_takes_a_new_one_after_a_cleanup(
    node: RosProcess, peer: Peer
) -> None:
    node.wait_for_line("waiting for a robot description on /described/robot_description")
    peer.diagnostics()
    assert peer.statuses[-1].level == DiagnosticStatus.WARN
    assert peer.statuses[-1].message == "waiting for a robot description on /described/robot_description"
    assert peer.state() == "unconfigured"
    descriptions = Descriptions(peer)
    for text, reason in BROKEN.values():
        written = len(node.lines)
        descriptions.publish(text)
        peer.wait_until(
            lambda since=written: any("cannot configure" in line for line in node.lines[since:]), reason
        )
        (line,) = [line for line in node.lines[written:] if "cannot configure" in line]
        assert reason in line
        assert "waiting for the next robot description" in line
        peer.diagnostics()
        assert peer.statuses[-1].level == DiagnosticStatus.WARN
        assert reason in peer.statuses[-1].message
        assert "ERROR" in line
    assert peer.state() == "unconfigured"
    descriptions.publish(ONE)
    peer.wait_until(lambda: any("robot 'one', 1 joints" in line for line in node.lines), "the robot")
    assert any("INFO" in line and "a robot description has come on" in line for line in node.lines)
    answer = peer.answer_to(motion("hinge", 1))
    np.testing.assert_allclose(answer.efforts, [expected(ONE)], rtol=1e-12, atol=0.0)
    assert sum("waiting for a robot description on" in line for line in node.lines) < 6  # throttled
    descriptions.publish(ONE)  # the same again says nothing new
    descriptions.publish(TWO)
    peer.wait_until(lambda: any("another robot description" in line for line in node.lines), "the warning")
    (line,) = [line for line in node.lines if "another robot description" in line]
    assert "WARN" in line
    assert "clean it up and configure it to load the new one" in line
    answer = peer.answer_to(motion("hinge", 2))
    np.testing.assert_allclose(answer.efforts, [expected(ONE)], rtol=1e-12, atol=0.0)
    peer.diagnostics(lambda _: "no longer describes" in peer.statuses[-1].message)
    rejected = peer.set_parameters(floating_base=True)
    assert "floating_base is fixed while the node is configured" in rejected.reason
    for transition in ("deactivate", "cleanup", "configure", "activate"):
        assert peer.transition(transition)
    answer = peer.answer_to(motion("elbow", 3))
    np.testing.assert_allclose(answer.efforts, [expected(TWO)], rtol=1e-12, atol=0.0)
    peer.diagnostics(lambda _: peer.statuses[-1].message == "answering")
    peer.send(motion("hinge", 4))
    peer.diagnostics(lambda values: values["rejected: unknown joint"] == "1")
    # and by name, without the topic
    for transition in ("deactivate", "cleanup"):
        assert peer.transition(transition)
    assert peer.set_parameters(robot_config="panda.yaml").successful
    assert peer.transition("configure")
    peer.diagnostics(lambda values: peer.statuses[-1].hardware_id == "panda")


def test_a_lifecycle_manager_configures_when_there_is_a_description(tmp_path: object) -> None:
    parameters = {"autostart": False, "floating_base": True}
    with asked(parameters, "managed", ready=False) as (node, peer):
        assert not peer.transition("configure")
        line = node.wait_for_line("cannot configure")
        assert "'robot_config' is empty, and no robot description has come on /managed/robot_desc" in line
        Descriptions(peer).publish(FLYER)
        peer.wait_until(lambda: any("a robot description has come" in line for line in node.lines), "it")
        assert peer.state() == "unconfigured"
        assert peer.transition("configure")
        assert peer.transition("activate")
        peer.wait_for_topics()
        peer.send(motion("hinge", 1))
        peer.diagnostics(lambda values: values["rejected: bad base motion"] == "1")
