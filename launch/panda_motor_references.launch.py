"""References for the drives of a Panda, by default mock hardware; the motion starts when told to.

ros2 launch hodyn_ros panda_motor_references.launch.py
ros2 launch hodyn_ros panda_motor_references.launch.py hardware:=false rate:=100
ros2 service call /trajectory_node/start std_srvs/srv/Trigger
"""

from launch import LaunchDescription

from hodyn_ros.launching import (
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

QUANTITIES = ("position", "velocity", "effort")


def generate_launch_description() -> LaunchDescription:
    """Start trajectory_node, dynamics_node, motor_reference_node, and with `hardware:=true` controllers."""
    controllers = {quantity: f"forward_{quantity}_controller" for quantity in QUANTITIES}
    topics = {f"{quantity}_commands": f"{name}/commands" for quantity, name in controllers.items()}
    return LaunchDescription(
        [
            robot_argument("panda.yaml"),
            *motion_arguments(
                "panda_excitation.yaml",
                order=4,
                order_means="Highest time derivative of the efforts; those of the motors have two less.",
            ),
            switch("auto_start", "Whether the motion starts at once; false: when ~/start is called."),
            *common_arguments(),
            ros2_control("controllers_motor_references.yaml", *controllers.values()),
            recording(),
            viewing(),
            dynamics(),
            commander("motor_reference_node", topics),
            trajectory_node(auto_start=flag("auto_start")),
        ]
    )
