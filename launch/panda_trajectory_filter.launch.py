"""trajectory_filter in front of the joint trajectory controller of a Panda, by default with mock hardware.

ros2 launch hodyn_ros panda_trajectory_filter.launch.py
ros2 launch hodyn_ros panda_trajectory_filter.launch.py hardware:=false controller:=panda_arm_controller
"""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from hodyn_ros.launching import argument, common_arguments, robot_argument, text
from hodyn_ros.launching_ros2_control import commander, ros2_control


def generate_launch_description() -> LaunchDescription:
    """Start trajectory_filter, and with `hardware:=true` a controller manager with two controllers."""
    controller = LaunchConfiguration("controller")
    return LaunchDescription(
        [
            robot_argument("panda.yaml"),
            argument(
                "controller",
                "joint_trajectory_controller",
                "Controller that the trajectories go on to, by its name.",
            ),
            *common_arguments(),
            ros2_control("controllers_joint_trajectory.yaml", controller),
            commander(
                "trajectory_filter",
                {"filtered_joint_trajectory": [controller, "/joint_trajectory"]},
                robot_config=text("robot_config"),
                controller=text("controller"),
            ),
        ]
    )
