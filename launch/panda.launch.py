"""A simulated Panda with elastic joints follows a trajectory, with feedforward torques and their derivatives.

ros2 launch hodyn_ros panda.launch.py
ros2 launch hodyn_ros panda.launch.py feedforward:=rigid record:=true namespace:=left log_level:=debug
hodyn run panda.launch.py duration:=5  # the same where launch is not installed
"""

from collections.abc import Iterator

from hodyn_ros.launching import (
    Launch,
    Process,
    Values,
    command_arguments,
    commanded_simulation,
    common_arguments,
    feedforward_node,
    motion_arguments,
    motion_node,
    predict_argument,
    recording,
    recording_arguments,
    robot_argument,
    stream_argument,
    viewing,
    viewing_arguments,
)


def processes(values: Values) -> Iterator[Process]:
    """Yield trajectory_node or stream_node, dynamics_node or mpc_node, controller_node and simulator_node."""
    yield from recording(values)
    yield from viewing(values)
    yield feedforward_node(values)
    yield from commanded_simulation(values)
    yield motion_node(values, start_when_commanded=True)


LAUNCH = Launch(
    (
        robot_argument("panda.yaml"),
        # at lower rates the lead of controller_node would be longer than the 0.1 s that it takes
        *motion_arguments("panda_excitation.yaml", lowest_rate=6.0),
        stream_argument(),
        *command_arguments(),
        predict_argument(),
        *common_arguments(),
        *recording_arguments(),
        *viewing_arguments(),
    ),
    processes,
)

generate_launch_description = LAUNCH.description
