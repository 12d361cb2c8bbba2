"""The launch files for ros2_control, run by the real launch, with stand-ins for ros2_control."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from refusals import refused
from ros_processes import RosProcess

from hodyn_ros import Robot, share
from hodyn_ros.launching import read_launch, ros2_control

PANDA = "panda.yaml"
PATIENCE = 60.0  # [s] for several processes to start or to end on a busy machine


def parameters(file: str) -> dict[str, dict[str, Any]]:
    """Return the parameters in a file by node, which has to be found in every namespace."""
    tree = yaml.safe_load(share.find("config", file).read_text())
    assert all(name.startswith("/**/") for name in tree)
    return {name.removeprefix("/**/"): section["ros__parameters"] for name, section in tree.items()}


@pytest.mark.parametrize(
    ("file", "node", "interfaces"),
    [
        ("controllers_forward_effort.yaml", "forward_effort_node", ("effort",)),
        ("controllers_motor_references.yaml", "motor_reference_node", ("position", "velocity", "effort")),
    ],
)
def test_controllers_and_node_have_the_joints_of_the_robot(
    file: str, node: str, interfaces: tuple[str, ...]
) -> None:
    nodes = parameters(file)
    names = list(Robot.load(share.find("config", PANDA)).joint_names)
    assert nodes[node]["joints"] == names
    manager = nodes["controller_manager"]
    # positions come oftener than they are taken, or the limits of ros2_control clamp what comes late
    assert manager["update_rate"] == (500 if interfaces == ("effort",) else 100)
    assert nodes[node]["rate"] == 500
    controllers = [f"forward_{interface}_controller" for interface in interfaces]
    assert set(nodes) == {"controller_manager", node, *controllers}
    for controller, interface in zip(controllers, interfaces):
        # all parameters that forward_command_controller has
        assert nodes[controller] == {"joints": names, "interface_name": interface}
        assert manager[controller] == {"type": "forward_command_controller/ForwardCommandController"}


@pytest.fixture(scope="module")
def launching() -> Any:
    pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
    pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2, not from PyPI")
    import ros_launch

    return ros_launch


@contextmanager
def launched(launching: Any, file: str, *arguments: str, **options: Any) -> Iterator[RosProcess]:
    """Launch until all of our nodes are there; end them all, also when the test fails."""
    with launching.launch(file, *arguments, **options) as process:
        try:
            for line in (
                "efforts to order",
                "waiting for the first feedforward",
                "holding the first position",
            ):
                process.wait_for_line(line, PATIENCE)
            yield process
        finally:
            if process.running:
                process.stop(signal.SIGINT, PATIENCE)


FILES = ("panda_forward_effort.launch.py", "panda_motor_references.launch.py")


@pytest.mark.parametrize("file", FILES)
def test_they_take_what_the_launch_file_of_the_panda_takes(file: str) -> None:
    own = {"join_within", "tracking_error", "hardware", "urdf", "controllers", "active", "gravity"}
    simulated = {"feedforward", "command_rate", "learn", "observe", "predict"}
    taken, panda = ({each.name for each in read_launch(name).arguments} for name in (file, "panda.launch.py"))
    assert panda - simulated | own | {"auto_start"} <= taken


def test_efforts_reach_the_topic_of_the_controller(launching: Any) -> None:
    from ros_talk import Talk
    from std_msgs.msg import Float64MultiArray
    from std_srvs.srv import Trigger

    from hodyn_ros.msg import FeedforwardTorque

    nobody_measures = "wait_for_robot:=false"
    arguments = ("hardware:=false", "namespace:=cell", "rate:=100", "controller:=efforts", nobody_measures)
    arguments = (*arguments, "join_within:=0.0")
    with launched(launching, FILES[0], *arguments) as process, Talk("cell") as talk:
        answers = talk.hear(FeedforwardTorque, "feedforward_torque")
        commands = talk.hear(Float64MultiArray, "efforts/commands")
        talk.status("forward_effort_node", lambda status, _: status.message == "following")
        talk.wait_until(lambda: len(commands) > 500, "efforts that have faded in")
        # the robot is to stand still until told to move
        np.testing.assert_allclose(commands[-1].data, answers[-1].efforts, rtol=0, atol=1e-12)
        assert talk.call(Trigger, "trajectory_node/start", Trigger.Request()).success
        still = commands[-1].data
        talk.wait_until(lambda: np.abs(np.subtract(commands[-1].data, still)).max() > 0.5, "a motion")
        assert process.stop(signal.SIGINT, PATIENCE) == 0, process.output()
        assert process.output().count("process has finished cleanly") == 3, process.output()


def test_motor_references_reach_the_topics_of_the_controllers(launching: Any) -> None:
    from ros_talk import Talk
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray, Header

    from hodyn_ros.msg import FeedforwardTorque

    arguments = ("hardware:=false", "rate:=100", "gravity:=false")
    with launched(launching, FILES[1], *arguments) as process, Talk("") as talk:
        answers = talk.hear(FeedforwardTorque, "feedforward_torque")
        assert len(answers[0].motor_effort_rates) == 7  # order 4
        assert not np.any(answers[0].efforts)  # it stands still, and has no weight
        topics = [
            f"forward_{quantity}_controller/commands" for quantity in ("position", "velocity", "effort")
        ]
        silent = talk.hear_nothing_yet(Float64MultiArray, topics[0])
        talk.wait_for_line(process, "where the robot stands is not known")
        assert not silent
        states = talk.publisher(JointState, "joint_states")
        names, position = answers[0].joint_names, answers[0].motor_positions

        def measured() -> bool:
            states.publish(
                JointState(header=Header(stamp=answers[-1].header.stamp), name=names, position=position)
            )
            return bool(silent)

        talk.wait_until(measured, "references where the robot stands")
        for topic in topics:
            talk.hear(Float64MultiArray, topic)
        assert process.stop(signal.SIGINT, PATIENCE) == 0, process.output()


@pytest.mark.parametrize(("active", "how"), [("true", "--activate-as-group"), ("false", "--inactive")])
def test_hardware_is_started_with_the_robot_and_its_controllers(
    launching: Any, tmp_path: Path, active: str, how: str
) -> None:
    """Stand-ins say what they were given; the true ones are in no place where this project is tested."""
    for package, executable in (
        ("robot_state_publisher", "robot_state_publisher"),
        ("controller_manager", "ros2_control_node"),
        ("controller_manager", "spawner"),
        ("joint_state_broadcaster", "none"),
    ):
        launching.package(tmp_path, package, f"lib/{package}/{executable}")
    file = share.find("config", "controllers_motor_references.yaml")
    from ros_talk import Talk

    with (
        launched(launching, FILES[1], "namespace:=cell", f"active:={active}", prefix=tmp_path) as process,
        Talk("cell") as talk,
    ):
        names = " ".join(f"forward_{quantity}_controller" for quantity in ("position", "velocity", "effort"))
        line = talk.wait_for_line(process, f"spawner was given: {names} --param-file {file} {how} --ros-args")
        assert "-r __ns:=/cell" in line
        talk.wait_for_line(process, "spawner was given: joint_state_broadcaster --ros-args")
        line = talk.wait_for_line(process, "ros2_control_node was given:")
        assert f"--params-file {file}" in line and "-r __ns:=/cell" in line
        line = talk.wait_for_line(process, "robot_state_publisher was given:")
        described = Path(line.rpartition("--params-file ")[2].split()[0])
        assert "mock_components/GenericSystem" in described.read_text()


@pytest.mark.parametrize("file", FILES)
def test_missing_hardware_packages_are_named(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ros2_control, "installed", lambda package: False)
    words = "hardware:=true needs controller_manager, joint_state_broadcaster ... say hardware:=false"
    refused(lambda: read_launch(file).start({}), words)
