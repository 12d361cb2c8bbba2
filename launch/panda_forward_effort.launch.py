"""Efforts for a forward controller of a Panda, by default with mock hardware; a service starts the motion.

ros2 launch hodyn_ros panda_forward_effort.launch.py
ros2 launch hodyn_ros panda_forward_effort.launch.py hardware:=false controller:=my_effort_controller
ros2 service call /trajectory_node/start std_srvs/srv/Trigger
"""

from collections.abc import Iterator

from hodyn_ros.launching import (
    Argument,
    Launch,
    Process,
    Values,
    common_arguments,
    motion_arguments,
    motion_node,
    recording,
    recording_arguments,
    robot_argument,
    stream_argument,
    viewing,
    viewing_arguments,
)
from hodyn_ros.launching.ros2_control import (
    commander,
    dynamics,
    gravity_argument,
    guarded,
    hardware,
    ros2_control_arguments,
    start_argument,
)


def processes(values: Values) -> Iterator[Process]:
    """Yield what moves, dynamics_node, forward_effort_node, and with `hardware:=true` a controller."""
    controller = values["controller"]
    yield from hardware(values, controller)
    yield from recording(values)
    yield from viewing(values)
    yield dynamics(values)
    topics = {"effort_commands": f"{controller}/commands"}
    yield commander("forward_effort_node", values, topics, **guarded(values, controller))
    yield motion_node(values, auto_start=values["auto_start"])


LAUNCH = Launch(
    (
        robot_argument("panda.yaml"),
        *motion_arguments("panda_excitation.yaml"),
        start_argument(),
        stream_argument(),
        Argument(
            "controller", "forward_effort_controller", "Controller that the efforts go to, by its name."
        ),
        *common_arguments(),
        *ros2_control_arguments("controllers_forward_effort.yaml"),
        *recording_arguments(),
        *viewing_arguments(),
        gravity_argument(),
    ),
    processes,
)

generate_launch_description = LAUNCH.description
