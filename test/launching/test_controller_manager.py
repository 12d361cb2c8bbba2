"""hodyn_ros/FeedforwardController in the controller manager of an installed ros2_control."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from ros_processes import RosProcess, child_environment

from hodyn_ros import Robot, share
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.export import export_shared

PANDA = share.find("config", "panda.yaml")
FEEDFORWARD, LEADER = CHAIN = ("feedforward_controller", "joint_trajectory_controller")
START = np.array([-1.1119, 0.2787, -1.5173, -2.0187, -2.4491, 3.0307, -0.3666])  # of panda.urdf
MOVE = np.array([0.3, -0.2, 0.2, 0.2, 0.3, -0.3, 0.2])


@pytest.fixture(scope="module")
def manager() -> str:
    """The path of the controller_manager's node."""
    why = "comes with an installed ros2_control, not from PyPI"
    packages = pytest.importorskip("ament_index_python.packages", reason="no ROS 2 is installed")
    for module in ("controller_manager_msgs", "control_msgs"):
        pytest.importorskip(module, reason=f"{module} {why}")
    from ament_index_python.resources import get_resource, get_resources

    kind = "controller_interface__pluginlib__plugin"
    descriptions = [
        Path(prefix) / get_resource(kind, name)[0].strip() for name, prefix in get_resources(kind).items()
    ]
    known = "".join(path.read_text() for path in descriptions if path.is_file())
    for plugin in (
        "hodyn_ros/FeedforwardController",
        "joint_trajectory_controller/JointTrajectoryController",
    ):
        if plugin not in known:
            pytest.skip(f"{plugin} is not built here: it {why}")
    try:
        prefix = packages.get_package_prefix("controller_manager")
    except packages.PackageNotFoundError:
        pytest.skip(f"controller_manager {why}")
    return str(Path(prefix) / "lib" / "controller_manager" / "ros2_control_node")


def parameters(folder: Path) -> Path:
    """Write the parameters of the manager and both controllers: drives that close a loop of their own."""
    names = list(Robot.load(PANDA).joint_names)
    types = ("hodyn_ros/FeedforwardController", "joint_trajectory_controller/JointTrajectoryController")
    path = folder / "controllers.yaml"
    own = {name: {"type": kind, "params_file": [str(path)]} for name, kind in zip(CHAIN, types)}
    library = export_shared(RobotChoice(str(PANDA)), 2, folder)
    tree = {
        "controller_manager": {"update_rate": 200, **own},
        FEEDFORWARD: {"robot": str(library), "commands": "position_velocity_effort", "tracking_eror": 0.1},
        LEADER: {
            "joints": names,
            "command_joints": [f"{FEEDFORWARD}/{name}" for name in names],
            "command_interfaces": ["position", "velocity", "acceleration"],
            "state_interfaces": ["position", "velocity"],
            "interpolate_from_desired_state": True,
            "constraints": {"goal_time": 10.0, **{name: {"goal": 0.02} for name in names}},
        },
    }
    path.write_text(yaml.safe_dump({name: {"ros__parameters": values} for name, values in tree.items()}))
    return path


@contextmanager
def running(node: str, folder: Path) -> Iterator[tuple[RosProcess, Any]]:
    """Run the manager with both controllers loaded and configured."""
    from controller_manager_msgs.srv import ConfigureController, LoadController
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from ros_talk import Talk
    from std_msgs.msg import String

    command = [node, "--ros-args", "--params-file", str(parameters(folder))]
    with RosProcess(command, child_environment(), "ros2_control_node") as process, Talk("") as talk:
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        description = talk.node.create_publisher(String, "/robot_description", latched)
        description.publish(String(data=share.find("config", "panda.urdf").read_text()))
        for name in CHAIN:
            for kind, service in ((LoadController, "load"), (ConfigureController, "configure")):
                answer = talk.call(kind, f"/controller_manager/{service}_controller", kind.Request(name=name))
                assert answer.ok, process.output()
        yield process, talk


def switch(talk: Any, on: tuple[str, ...] = (), off: tuple[str, ...] = ()) -> bool:
    from controller_manager_msgs.srv import SwitchController

    request = SwitchController.Request(
        activate_controllers=list(on), deactivate_controllers=list(off), activate_asap=True
    )
    request.strictness = SwitchController.Request.STRICT
    return bool(talk.call(SwitchController, "/controller_manager/switch_controller", request).ok)


def send(talk: Any, goal: np.ndarray) -> Any:
    """Let the leading controller set off to a goal that it reaches in 2 s; return the future of its end."""
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionClient
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    point = JointTrajectoryPoint(positions=goal.tolist(), velocities=[0.0] * 7, accelerations=[0.0] * 7)
    point.time_from_start.sec = 2
    names = list(Robot.load(PANDA).joint_names)
    wanted = FollowJointTrajectory.Goal(trajectory=JointTrajectory(joint_names=names, points=[point]))
    client = ActionClient(talk.node, FollowJointTrajectory, f"/{LEADER}/follow_joint_trajectory")
    talk.wait_until(client.server_is_ready, "the action")
    sent = client.send_goal_async(wanted)
    talk.wait_until(sent.done, "the answer to the goal")
    return sent.result().get_result_async()


def test_goals_behind_a_joint_trajectory_controller(manager: str, tmp_path: Path) -> None:
    """Motors end where springs and weight put them; a chain off for a moment joins its motion anew."""
    from control_msgs.msg import JointTrajectoryControllerState

    robot = Robot.load(PANDA)
    with running(manager, tmp_path) as (process, talk):

        def activate(times: int) -> None:
            assert switch(talk, on=CHAIN), process.output()
            joined = "joining -> following"
            talk.wait_until(lambda: sum(joined in line for line in list(process.lines)) == times, joined)

        activate(1)
        send(talk, START - MOVE)
        talk.pause(1.0)
        assert switch(talk, off=CHAIN[::-1]), process.output()  # in motion
        activate(2)
        ended = send(talk, START + MOVE)
        talk.wait_until(ended.done, "the end of the goal")
        assert ended.result().result.error_code == 0, process.output()
        states = talk.hear(JointTrajectoryControllerState, f"/{LEADER}/controller_state")
        q = np.stack([START + MOVE, *np.zeros((4, 7))])
        motors = robot.require_drives().feedforward(q, robot.inverse_dynamics(q)).position[0]
        assert np.allclose(states[-1].feedback.positions, motors, rtol=0.0, atol=1e-9)
        assert not any("stopping" in line for line in process.lines), process.output()
        assert any("'tracking_eror' is unknown" in line for line in process.lines), process.output()
