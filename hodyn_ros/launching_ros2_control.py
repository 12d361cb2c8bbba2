"""What launch files for ros2_control share: hardware and controllers, and a node of ours in front of them."""

from __future__ import annotations

from typing import Any

from ament_index_python.packages import get_packages_with_prefixes
from launch import LaunchContext, LaunchDescription, SomeSubstitutionsType
from launch.action import Action
from launch.actions import OpaqueFunction
from launch.conditions import IfCondition, UnlessCondition
from launch.substitutions import Command, IfElseSubstitution, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue

from hodyn_ros import share
from hodyn_ros.errors import InputError
from hodyn_ros.launching import argument, dynamics_node, flag, switch
from hodyn_ros.share import PACKAGE

_NEEDED = {"robot_state_publisher", "controller_manager", "joint_state_broadcaster"}


def ros2_control(controllers_file: str, *controllers: SomeSubstitutionsType) -> LaunchDescription:
    """Start hardware and controllers where `hardware:=true`; `controllers_file` is a shipped one."""
    given = LaunchConfiguration("hardware")
    return LaunchDescription(
        [
            switch(
                "hardware",
                "Whether ros2_control is started, with the hardware of `urdf`; false where it runs already.",
                default="true",
            ),
            switch(
                "active",
                "Whether the controllers are activated at once; false: loaded and configured only.",
                default="true",
            ),
            argument("urdf", share.find("config", "panda.urdf"), "URDF with a ros2_control part, as a path."),
            argument(
                "controllers",
                share.find("config", controllers_file),
                "Parameters of the controllers and of the node that commands them, path of a YAML file.",
            ),
            OpaqueFunction(function=_check_installed, condition=IfCondition(given)),
            *_hardware(controllers),
        ]
    )


def commander(executable: str, remappings: dict[str, SomeSubstitutionsType], **parameters: Any) -> Node:
    """Start a node that commands controllers, with its parameters from the file `controllers`."""
    return Node(
        package=PACKAGE,
        executable=executable,
        name=executable,
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            ParameterFile(LaunchConfiguration("controllers")),
            {"use_sim_time": flag("use_sim_time"), **parameters},
        ],
        remappings=list(remappings.items()),
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        output="screen",
    )


def dynamics() -> LaunchDescription:
    """Start dynamics_node, with the robot's weight in its efforts or without."""
    weight = LaunchConfiguration("gravity")
    return LaunchDescription(
        [
            switch(
                "gravity",
                "Whether efforts carry the robot's weight; false where drives do so, as Franka's do.",
                default="true",
            ),
            dynamics_node(condition=IfCondition(weight)),
            dynamics_node(condition=UnlessCondition(weight), gravity=[0.0, 0.0, 0.0]),
        ]
    )


def _hardware(controllers: tuple[SomeSubstitutionsType, ...]) -> list[Node]:
    """Start a controller manager, which finds the robot on `robot_description`, and controllers."""
    file = LaunchConfiguration("controllers")
    urdf = ParameterValue(Command(["cat '", LaunchConfiguration("urdf"), "'"]), value_type=str)
    how = IfElseSubstitution(LaunchConfiguration("active"), "--activate-as-group", "--inactive")
    clock = {"use_sim_time": flag("use_sim_time")}
    started: dict[str, Any] = {
        "namespace": LaunchConfiguration("namespace"),
        "condition": IfCondition(LaunchConfiguration("hardware")),
        "output": "screen",
    }
    return [
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            parameters=[clock, {"robot_description": urdf}],
            **started,
        ),
        Node(
            package="controller_manager",
            executable="ros2_control_node",
            parameters=[clock, ParameterFile(file)],
            **started,
        ),
        Node(
            package="controller_manager",
            executable="spawner",
            name="spawner_of_states",
            arguments=["joint_state_broadcaster"],
            **started,
        ),
        Node(
            package="controller_manager",
            executable="spawner",
            name="spawner_of_commands",
            arguments=[*controllers, "--param-file", file, how],
            **started,
        ),
    ]


def _check_installed(context: LaunchContext) -> list[Action]:
    missing = _NEEDED - get_packages_with_prefixes().keys()
    if missing:
        raise InputError(
            f"hardware:=true needs {', '.join(sorted(missing))}, not installed here; install ros2_control "
            "and ros2_controllers, or start hardware and controllers elsewhere and say hardware:=false"
        )
    return []
