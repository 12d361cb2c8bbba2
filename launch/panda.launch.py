"""A simulated Panda with elastic joints follows a trajectory, with feedforward torques and their derivatives.

ros2 launch hodyn_ros panda.launch.py
ros2 launch hodyn_ros panda.launch.py feedforward:=rigid record:=true namespace:=left log_level:=debug
"""

from launch import LaunchDescription

from hodyn_ros.launching import (
    argument,
    common_arguments,
    computed,
    dynamics_node,
    motion_arguments,
    node,
    number,
    recording,
    robot_argument,
    text,
    trajectory_file,
    trajectory_node,
    viewing,
)


def generate_launch_description() -> LaunchDescription:
    """Start trajectory_node, dynamics_node, controller_node and simulator_node."""
    robot = {"robot_config": text("robot_config")}
    return LaunchDescription(
        [
            robot_argument("panda.yaml"),
            # at lower rates the lead of controller_node would be longer than the 0.1 s that it takes
            *motion_arguments("panda_excitation.yaml", lowest_rate=6.0),
            argument(
                "feedforward", "elastic", "What motors get beside feedback.", ["none", "rigid", "elastic"]
            ),
            *common_arguments(),
            recording(),
            viewing(),
            dynamics_node(),
            node(
                "controller_node",
                **robot,
                feedforward=text("feedforward"),
                # a command acts for one period after its way to the robot, and patience lasts for 1.5
                lead=computed("2e-4 + 0.5 / ", "rate", "", float),
                patience=computed("1.5 / ", "rate", "", float),
            ),
            node("simulator_node", **robot, trajectory=trajectory_file(), rate=number("rate")),
            trajectory_node(),
        ]
    )
