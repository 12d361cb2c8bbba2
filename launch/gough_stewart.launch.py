"""A Gough-Stewart platform: a motion of the platform in, forces of its six legs with their derivatives out.

Send `desired_motion` (DesiredMotion): the pose of the platform as base_pose, its twists as base_twists, no
joints. `feedforward_torque` (FeedforwardTorque) answers for the driven joints.

ros2 launch hodyn_ros gough_stewart.launch.py
ros2 launch hodyn_ros gough_stewart.launch.py order:=4 namespace:=left log_level:=debug
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import EqualsSubstitution, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = (
    ("robot_config", "gough_stewart_6ups.yaml", "Robot: path of a YAML file, or the name of a shipped one."),
    ("order", "2", "Highest time derivative of the efforts; elastic feedforward needs 2."),
    ("clamp", "false", "Whether efforts are held within the robot's limits."),
    ("namespace", "", "Namespace of the node and its topics."),
    ("use_sim_time", "false", "Whether time comes from the topic /clock."),
    ("log_level", "info", "Least severity that is logged: debug, info, warn, error or fatal."),
)


def generate_launch_description() -> LaunchDescription:
    """Start dynamics_node."""
    given = {name: LaunchConfiguration(name) for name, _, _ in ARGUMENTS}

    def flag(name: str) -> ParameterValue:
        return ParameterValue(EqualsSubstitution(given[name], "true"), value_type=bool)

    node = Node(
        package="hodyn_ros",
        executable="dynamics_node",
        name="dynamics_node",
        namespace=given["namespace"],
        parameters=[
            {
                "robot_config": ParameterValue(given["robot_config"], value_type=str),
                "order": ParameterValue(given["order"], value_type=int),
                "clamp": flag("clamp"),
                "use_sim_time": flag("use_sim_time"),
            }
        ],
        arguments=["--ros-args", "--log-level", given["log_level"]],
        output="screen",
    )
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, default, description in ARGUMENTS
    ]
    return LaunchDescription([*arguments, node])
