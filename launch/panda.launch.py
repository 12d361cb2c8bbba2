"""A simulated Panda with elastic joints follows a trajectory, with feedforward torques and their derivatives.

ros2 launch hodyn_ros panda.launch.py
ros2 launch hodyn_ros panda.launch.py feedforward:=rigid namespace:=left log_level:=debug
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import EqualsSubstitution, LaunchConfiguration, PythonExpression
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = (
    ("robot_config", "panda.yaml", "Robot: path of a YAML file, or the name of a shipped one."),
    (
        "trajectory",
        "panda_excitation.yaml",
        "Motion: path of a YAML file, or the name of a shipped one; empty: wait for a JointTrajectory.",
    ),
    ("duration", "0.0", "How long the motion goes at full speed [s]; 0: all of it, which may be for ever."),
    ("rate", "1000.0", "Samples of the desired motion, and states of the simulated robot, per second [Hz]."),
    ("order", "2", "Highest time derivative of the torque; elastic feedforward needs 2."),
    ("feedforward", "elastic", "What the motors are given beside feedback: none, rigid or elastic."),
    ("namespace", "", "Namespace of all nodes and topics."),
    ("use_sim_time", "false", "Whether time comes from the topic /clock."),
    ("log_level", "info", "Least severity that is logged: debug, info, warn, error or fatal."),
)


def generate_launch_description() -> LaunchDescription:
    """Start trajectory_node, dynamics_node, controller_node and simulator_node."""
    given = {name: LaunchConfiguration(name) for name, _, _ in ARGUMENTS}

    def number(name: str) -> ParameterValue:
        return ParameterValue(given[name], value_type=float)

    def text(name: str) -> ParameterValue:
        return ParameterValue(given[name], value_type=str)

    def computed(*parts: str, value_type: type) -> ParameterValue:
        return ParameterValue(
            PythonExpression([given.get(part, part) for part in parts]), value_type=value_type
        )

    # the r-th derivative of the torque needs the motion up to its derivative r + 2
    motion_order = computed("order", " + 2", value_type=int)
    everywhere = {
        "robot_config": text("robot_config"),
        "use_sim_time": ParameterValue(EqualsSubstitution(given["use_sim_time"], "true"), value_type=bool),
    }
    parameters = {
        "trajectory_node": {
            "trajectory": text("trajectory"),
            "duration": number("duration"),
            "rate": number("rate"),
            "order": motion_order,
        },
        "dynamics_node": {"order": ParameterValue(given["order"], value_type=int)},
        "controller_node": {
            "feedforward": text("feedforward"),
            # a command acts for one period, after its way to the robot; patience ends after one and a half
            "lead": computed("0.5 / ", "rate", " + 2e-4", value_type=float),
            "patience": computed("1.5 / ", "rate", value_type=float),
        },
        "simulator_node": {"trajectory": text("trajectory"), "rate": number("rate")},
    }
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=description)
                for name, default, description in ARGUMENTS
            ),
            *(
                Node(
                    package="hodyn_ros",
                    executable=node,
                    name=node,
                    namespace=given["namespace"],
                    parameters=[{**everywhere, **own}],
                    arguments=["--ros-args", "--log-level", given["log_level"]],
                    output="screen",
                )
                for node, own in parameters.items()
            ),
        ]
    )
