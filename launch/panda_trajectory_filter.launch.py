"""trajectory_filter in front of the joint trajectory controller of a Panda, by default with mock hardware.

ros2 launch hodyn_ros panda_trajectory_filter.launch.py
ros2 launch hodyn_ros panda_trajectory_filter.launch.py hardware:=false controller:=panda_arm_controller
"""

from collections.abc import Iterator

from hodyn_ros.launching import Argument, Launch, Process, Values, common_arguments, robot_argument
from hodyn_ros.launching.ros2_control import commander, hardware, ros2_control_arguments


def processes(values: Values) -> Iterator[Process]:
    """Yield trajectory_filter, and with `hardware:=true` a controller manager with two controllers."""
    controller = values["controller"]
    yield from hardware(values, controller)
    yield commander(
        "trajectory_filter",
        values,
        {"filtered_joint_trajectory": f"{controller}/joint_trajectory"},
        safe_to_respawn=True,
        robot_config=values["robot_config"],
        controller=controller,
    )


LAUNCH = Launch(
    (
        robot_argument("panda.yaml"),
        Argument(
            "controller",
            "joint_trajectory_controller",
            "Controller that the trajectories go on to, by its name.",
        ),
        *common_arguments(),
        *ros2_control_arguments("controllers_joint_trajectory.yaml"),
    ),
    processes,
)

generate_launch_description = LAUNCH.description
