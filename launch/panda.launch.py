"""A simulated Panda with elastic joints follows a trajectory, with feedforward torques and their derivatives.

ros2 launch hodyn_ros panda.launch.py
ros2 launch hodyn_ros panda.launch.py feedforward:=rigid record:=true namespace:=left log_level:=debug
hodyn run panda.launch.py duration:=5  # the same where launch is not installed
"""

from collections.abc import Iterator

from hodyn_ros.launching import (
    Argument,
    Launch,
    Process,
    Values,
    common_arguments,
    dynamics_node,
    motion_arguments,
    node,
    recording,
    recording_arguments,
    robot_argument,
    trajectory_file,
    trajectory_node,
    viewing,
    viewing_arguments,
)


def processes(values: Values) -> Iterator[Process]:
    """Yield trajectory_node, dynamics_node, controller_node and simulator_node."""
    robot, rate = {"robot_config": values["robot_config"]}, values["command_rate"]
    yield from recording(values)
    yield from viewing(values)
    yield dynamics_node(values)
    yield node(
        "controller_node",
        values,
        **robot,
        feedforward=values["feedforward"],
        # a command acts for one period after its way to the robot, and patience lasts for 1.5
        lead=2e-4 + 0.5 / rate,
        patience=1.5 / rate,
        # a busy machine may hold up messages of a simulated robot; a real one gets the defaults
        timeout=max(0.1, 3.0 / values["rate"]),
        measurement_timeout=max(0.1, 3.0 / rate),
        latency=0.02,
    )
    yield node(
        "simulator_node",
        values,
        **robot,
        trajectory=trajectory_file(values),
        rate=rate,
        command_timeout=max(0.2, 5.0 / rate),
    )
    yield trajectory_node(values, start_when_commanded=True)


LAUNCH = Launch(
    (
        robot_argument("panda.yaml"),
        # at lower rates the lead of controller_node would be longer than the 0.1 s that it takes
        *motion_arguments("panda_excitation.yaml", lowest_rate=6.0),
        Argument(
            "command_rate",
            500.0,
            "Measurements of the motors, and commands that answer them, per second [Hz]; between two motions "
            "they go on by derivatives.",
            low=6.0,
            high=2000.0,
        ),
        Argument("feedforward", "elastic", "What motors get beside feedback.", ("none", "rigid", "elastic")),
        *common_arguments(),
        *recording_arguments(),
        *viewing_arguments(),
    ),
    processes,
)

generate_launch_description = LAUNCH.description
