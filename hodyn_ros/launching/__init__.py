"""Launch files as data, which `ros2 launch` and `hodyn run` start alike.

The names here are for launch files; `launch/panda.launch.py` shows how.
"""

from hodyn_ros.launching.description import Launch, joined, read_launch
from hodyn_ros.launching.parts import (
    command_arguments,
    commanded_simulation,
    common_arguments,
    dynamics_node,
    feedforward_node,
    learning_argument,
    learning_node,
    motion_arguments,
    motion_node,
    motion_to_efforts,
    node,
    predict_argument,
    recording,
    recording_arguments,
    repeated,
    robot_argument,
    stream_argument,
    trajectory_file,
    trajectory_node,
    viewing,
    viewing_arguments,
)
from hodyn_ros.launching.processes import Argument, Command, Node, Process, Values

__all__ = [
    "Argument",
    "Command",
    "Launch",
    "Node",
    "Process",
    "Values",
    "command_arguments",
    "commanded_simulation",
    "common_arguments",
    "dynamics_node",
    "feedforward_node",
    "joined",
    "learning_argument",
    "learning_node",
    "motion_arguments",
    "motion_node",
    "motion_to_efforts",
    "node",
    "predict_argument",
    "read_launch",
    "recording",
    "recording_arguments",
    "repeated",
    "robot_argument",
    "stream_argument",
    "trajectory_file",
    "trajectory_node",
    "viewing",
    "viewing_arguments",
]
