"""simulator_node as a process, over real DDS."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

import rclpy
from panda_drives import MIXED, PAIR, write_panda
from ros_clock import SimulatedClock
from ros_talk import talking
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.nodes.simulator_node import SimulatorNode
from hodyn_ros.ros.conversions.messages import nanoseconds
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory.files.reader import read_motion, read_trajectory

PANDA, EXCITATION = "panda.yaml", "panda_excitation.yaml"


def test_it_rests_in_equilibrium_at_the_start_of_the_trajectory_a_thousand_times_a_second() -> None:
    parameters = {"robot_config": PANDA, "trajectory": EXCITATION}
    with talking("simulator_node", parameters, "sn_rest") as (node, talk):
        links = talk.hear(JointState, "joint_states")
        motors = talk.hear(JointState, "motor_states")
        talk.wait_until(lambda: len(links) > 500 and len(motors) > 500, "states")
        values = talk.status("simulator_node", lambda status, values: "missed" in values)
    robot = Robot.load(share.find("config", PANDA))
    assert robot.drive_train is not None
    start = read_trajectory(share.find("config", EXCITATION)).sample(0.0, 0)[0]
    gravity = RobotSimulation(robot, start).gravity_effort()
    for message in (links[0], links[-1]):
        assert message.name == list(robot.joint_names)
        np.testing.assert_array_equal(message.position, start)
        np.testing.assert_array_equal(message.velocity, np.zeros(7))
        np.testing.assert_allclose(message.effort, gravity, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(
        motors[-1].position, start + gravity / robot.drive_train.stiffness, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(motors[-1].effort, gravity, rtol=1e-12)
    stamps = np.array([nanoseconds(message.header.stamp) for message in links])
    gaps = np.diff(stamps)
    assert set(gaps % 1_000_000) == {0} and gaps.min() == 1_000_000  # a busy machine makes it miss some
    missed = int((gaps // 1_000_000 - 1).sum())
    assert missed <= int(values["missed"]) + 500  # what is missing was not published, rather than lost


def test_the_brakes_wait_while_a_simulated_clock_stands() -> None:
    parameters = {"robot_config": PANDA, "rate": 100.0, "command_timeout": 0.1, "use_sim_time": True}
    with talking("simulator_node", parameters, "sn_stands") as (node, talk):
        publisher = talk.publisher(Float64MultiArray, "effort_commands")
        links = talk.hear_nothing_yet(JointState, "joint_states")
        clock = SimulatedClock(talk)

        def go_on(milliseconds: int) -> None:
            seen = len(links)
            clock.set(clock.now + milliseconds * 1_000_000)
            talk.wait_until(lambda: len(links) > seen, "a state")

        go_on(10)
        publisher.publish(Float64MultiArray(data=[0.0] * 7))
        talk.status("simulator_node", lambda _, values: values["commands"] == "1")
        talk.pause(0.5)
        for _ in range(5):
            go_on(10)
        assert "the brakes are on" not in node.output()
        talk.pause(0.2)
        for _ in range(10):
            go_on(10)
        talk.wait_for_line(node, "no command for 0.1 s: the brakes are on")


def test_a_state_that_comes_late_does_not_feel_commands_after_its_stamp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = [0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]
    given = {"robot_config": PANDA, "rate": 200.0, "initial_position": start, "damping_time": 0.0}
    rclpy.init(args=["--ros-args", *(f for name, value in given.items() for f in ("-p", f"{name}:={value}"))])
    try:
        node = SimulatorNode()
        published: dict[int, np.ndarray] = {}
        monkeypatch.setattr(
            node, "_publish", lambda at: published.update({at: np.copy(node._simulation.motor_position)})
        )
        node._publish_due()
        (begin,) = published
        first, second = np.array([20.0, -40.0, 0.0, 10.0, 0.0, 3.0, 1.0]), np.full(7, 5.0)
        for effort, arrival in ((first, begin + 1_000_000), (second, begin + 7_000_000)):
            monkeypatch.setattr(node, "_now", lambda arrival=arrival: arrival)
            node._take(Float64MultiArray(data=list(effort)), {"received_timestamp": arrival})
        node._publish_due()
        node.destroy_node()
    finally:
        rclpy.try_shutdown()
    robot = Robot.load(share.find("config", PANDA))
    alone = RobotSimulation(robot, np.array(start))
    alone.advance(4e-3, first)
    assert list(published) == [begin, begin + 5_000_000]
    np.testing.assert_allclose(published[begin + 5_000_000], alone.motor_position, rtol=0, atol=1e-13)


def test_commands_move_drives_of_any_kind_and_bad_ones_are_refused(tmp_path: Path) -> None:
    """Friction, damped and hardening springs, and a joint with two motors, which have names of their own."""
    robot = write_panda(tmp_path / "mixed.yaml", {**MIXED, **PAIR})
    parameters = {
        "robot_config": str(robot),
        "rate": 200.0,
        "initial_position": [0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0],
    }
    with talking("simulator_node", parameters, "sn_mixed") as (node, talk):
        links = talk.hear(JointState, "joint_states")
        motors = talk.hear(JointState, "motor_states")
        publisher = talk.publisher(Float64MultiArray, "effort_commands")
        talk.wait_until(lambda: links and motors, "states")
        assert len(links[0].name) == 7
        names = list(motors[0].name)
        assert len(names) == 8 and names[1:3] == ["panda_joint2/first", "panda_joint2/second"]
        hold = list(motors[0].effort)
        np.testing.assert_allclose(hold[1] + hold[2], links[0].effort[1], rtol=1e-9)
        for bad, words in (
            ([0.0] * 7, "7 efforts for 8 motors"),
            ([*hold[:7], float("inf")], "inf for motor 'panda_joint7'"),
        ):
            publisher.publish(Float64MultiArray(data=bad))
            talk.wait_for_line(node, words)
        values = talk.status("simulator_node", lambda _, values: values["rejected"] == "2")
        assert (values["rejected: wrong length"], values["rejected: not finite"]) == ("1", "1")
        np.testing.assert_allclose(links[-1].position, parameters["initial_position"], rtol=0, atol=1e-9)
        publisher.publish(Float64MultiArray(data=[hold[0] + 8.0, *hold[1:]]))
        talk.wait_until(lambda: links[-1].position[0] > 0.05, "a turn of the first joint")


def test_all_joints_of_a_robot_with_loops_are_published_until_a_loop_opens() -> None:
    """Pulled up by its arms, the Delta comes to where its rods cannot follow, and stands there."""
    parameters = {"robot_config": "delta.yaml", "trajectory": "delta_motion.yaml", "rate": 200.0}
    with talking("simulator_node", parameters, "sn_loops") as (node, talk):
        links = talk.hear(JointState, "joint_states")
        motors = talk.hear(JointState, "motor_states")
        publisher = talk.publisher(Float64MultiArray, "effort_commands")
        talk.wait_until(lambda: links and motors, "states")
        robot = Robot.load(share.find("config", "delta.yaml"))
        start = read_trajectory(share.find("config", "delta_motion.yaml")).sample(0.0, 2)
        start[1:] = 0.0
        state = robot.drive_state(start)
        assert links[0].name == list(robot.tree.joint_names) and motors[0].name == list(robot.driven_joints)
        found = dict(zip(links[0].name, zip(links[0].position, links[0].effort)))
        np.testing.assert_allclose([found[name][0] for name in robot.joint_names], start[0], atol=1e-12)
        drives = np.array([found[name] for name in robot.driven_joints]).T
        np.testing.assert_allclose(drives, [state.motion[0], state.efforts[0]], rtol=0, atol=1e-10)
        assert {found[name][1] for name in set(links[0].name) - set(robot.driven_joints)} == {0.0}
        np.testing.assert_allclose(motors[0].position, state.motion[0], rtol=0, atol=1e-12)
        publisher.publish(Float64MultiArray(data=[-30.0] * 3))
        talk.wait_for_line(node, "has ended, and the robot stands where it was: the simulation ends at")
        talk.status("simulator_node", lambda status, _: "has ended" in status.message)
        publisher.publish(Float64MultiArray())  # the brakes
        count = len(links)
        talk.wait_until(lambda: len(links) > count + 10, "states of a robot that stands")
        np.testing.assert_allclose(links[-1].position, links[-5].position, rtol=0, atol=1e-12)
        assert not np.any(links[-1].velocity) and not np.any(motors[-1].velocity)


def test_a_platform_rests_where_its_motion_starts() -> None:
    parameters = {"robot_config": "planar_3rrr.yaml", "trajectory": "planar_3rrr_motion.yaml", "rate": 100.0}
    with talking("simulator_node", parameters, "sn_platform") as (node, talk):
        links = talk.hear(JointState, "joint_states")
        motors = talk.hear(JointState, "motor_states")
        talk.wait_until(lambda: len(links) > 50 and len(motors) > 50, "states")
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    start = read_motion(share.find("config", "planar_3rrr_motion.yaml")).sample(0.0, 2)
    at_rest = BaseMotion(start.pose, np.zeros((2, 6)), representation="body_fixed")
    state = robot.drive_state(np.zeros((3, 0)), at_rest)
    assert links[0].name == list(robot.tree.joint_names) and motors[0].name == list(robot.driven_joints)
    for message in (links[0], links[-1]):
        found = [message.position[links[0].name.index(name)] for name in robot.driven_joints]
        np.testing.assert_allclose(found, state.motion[0], rtol=0, atol=1e-10)
    expected = state.motion[0] + state.efforts[0] / robot.drive_train.stiffness
    np.testing.assert_allclose(motors[-1].position, expected, rtol=0, atol=1e-10)


def test_where_a_spring_leaves_its_table_the_robot_stands(tmp_path: Path) -> None:
    table = ", ".join(str(t) for t in (-60, -40, -20, 20, 40, 60))
    bent = ", ".join(str(t) for t in (-0.006, -0.004, -0.002, 0.002, 0.004, 0.006))
    robot = write_panda(
        tmp_path / "table.yaml", {0: f"spring_table: {{torque: [{table}], deflection: [{bent}]}}"}
    )
    with talking("simulator_node", {"robot_config": str(robot), "rate": 200.0}, "sn_table") as (node, talk):
        links = talk.hear(JointState, "joint_states")
        publisher = talk.publisher(Float64MultiArray, "effort_commands")
        talk.wait_until(lambda: links, "states")
        publisher.publish(Float64MultiArray(data=list(links[0].effort)))
        old = talk.status("simulator_node", lambda status, _: "s old, and held" in status.message)
        assert int(old["commands"]) == 1
        publisher.publish(Float64MultiArray(data=[500.0] + [0.0] * 6))
        talk.wait_for_line(node, "the simulation has ended, and the robot stands where it was")
        status = talk.status("simulator_node", lambda status, _: "has ended" in status.message)
        assert "rejected" in status
        count = len(links)
        talk.wait_until(lambda: len(links) > count + 10, "states of a robot that stands")
        assert links[-1].position == links[-5].position
