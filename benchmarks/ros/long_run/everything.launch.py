"""A simulated Panda with all that is there for it: commands, learning, an observer, references, a bag.

python -m benchmarks.ros.long_run starts it, with its own rates, for an hour.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hodyn_ros.launching import Launch, Node, Process, Values, node, read_launch

PANDA = read_launch("panda.launch.py")
# A busy machine holds messages up, and an arm that has been stopped stands beside its path.
TOLERANT: dict[str, Any] = {"timeout": 0.1, "join_within": 0.2}
JOINTS = [f"panda_joint{i}" for i in range(1, 8)]
DEFAULTS: dict[str, str | bool] = {
    "trajectory": "panda_repetition.yaml",
    "learn": True,
    "observe": True,
    "record": True,
    "wait_for_robot": False,  # a robot that has stopped on its way joins the motion there
}


def processes(values: Values) -> Iterator[Process]:
    """Yield the nodes of panda.launch.py, and motor_reference_node beside them, whose output nobody takes."""
    for process in PANDA.processes(values):
        if isinstance(process, Node) and process.executable == "controller_node":
            yield replace(process, parameters=(*process.parameters, TOLERANT))
        else:
            yield process
    yield node(
        "motor_reference_node",
        values,
        remappings={"effort_commands": "motor_effort_commands"},
        robot_config=values["robot_config"],
        joints=JOINTS,
        rate=values["command_rate"],
        **TOLERANT,
    )


LAUNCH = Launch(
    tuple(replace(each, default=DEFAULTS.get(each.name, each.default)) for each in PANDA.arguments),
    processes,
)

generate_launch_description = LAUNCH.description
