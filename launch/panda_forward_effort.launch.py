"""Efforts for a forward controller of a Panda, by default with mock hardware; the motion starts when told to.

ros2 launch hodyn_ros panda_forward_effort.launch.py
ros2 launch hodyn_ros panda_forward_effort.launch.py hardware:=false controller:=my_effort_controller
ros2 service call /trajectory_node/start std_srvs/srv/Trigger
"""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from hodyn_ros.launching import (
    argument,
    common_arguments,
    flag,
    motion_arguments,
    recording,
    robot_argument,
    switch,
    trajectory_node,
    viewing,
)
from hodyn_ros.launching_ros2_control import commander, dynamics, ros2_control


def generate_launch_description() -> LaunchDescription:
    """Start trajectory_node, dynamics_node, forward_effort_node, and with `hardware:=true` a controller."""
    controller = LaunchConfiguration("controller")
    return LaunchDescription(
        [
            robot_argument("panda.yaml"),
            *motion_arguments("panda_excitation.yaml"),
            switch("auto_start", "Whether the motion starts at once; false: when ~/start is called."),
            argument(
                "controller", "forward_effort_controller", "Controller that the efforts go to, by its name."
            ),
            *common_arguments(),
            ros2_control("controllers_forward_effort.yaml", controller),
            recording(),
            viewing(),
            dynamics(),
            commander("forward_effort_node", {"effort_commands": [controller, "/commands"]}),
            trajectory_node(auto_start=flag("auto_start")),
        ]
    )
