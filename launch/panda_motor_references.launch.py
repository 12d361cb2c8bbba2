"""References for the drives of a Panda, by default mock hardware; a service starts the motion.

ros2 launch hodyn_ros panda_motor_references.launch.py
ros2 launch hodyn_ros panda_motor_references.launch.py hardware:=false rate:=100
ros2 service call /trajectory_node/start std_srvs/srv/Trigger
"""

from collections.abc import Iterator

from hodyn_ros.launching import (
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

QUANTITIES = ("position", "velocity", "effort")


def processes(values: Values) -> Iterator[Process]:
    """Yield what moves, dynamics_node, motor_reference_node, and with `hardware:=true` controllers."""
    controllers = {quantity: f"forward_{quantity}_controller" for quantity in QUANTITIES}
    topics = {f"{quantity}_commands": f"{name}/commands" for quantity, name in controllers.items()}
    yield from hardware(values, *controllers.values())
    yield from recording(values)
    yield from viewing(values)
    yield dynamics(values)
    yield commander("motor_reference_node", values, topics, **guarded(values, *controllers.values()))
    yield motion_node(values, auto_start=values["auto_start"])


LAUNCH = Launch(
    (
        robot_argument("panda.yaml"),
        *motion_arguments(
            "panda_excitation.yaml",
            order=4,
            order_means="Highest time derivative of the efforts; those of the motors have two less.",
        ),
        start_argument(),
        stream_argument(),
        *common_arguments(),
        *ros2_control_arguments("controllers_motor_references.yaml"),
        *recording_arguments(),
        *viewing_arguments(),
        gravity_argument(),
    ),
    processes,
)

generate_launch_description = LAUNCH.description
