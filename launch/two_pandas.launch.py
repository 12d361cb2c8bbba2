"""Two simulated Pandas in namespaces of their own, with the same names of joints and topics.

ros2 launch hodyn_ros two_pandas.launch.py
ros2 launch hodyn_ros two_pandas.launch.py left:=one right:=two namespace:=cell rate:=200 record:=true
"""

from collections.abc import Iterator
from dataclasses import replace

from hodyn_ros.errors import InputError
from hodyn_ros.launching import Argument, Launch, Process, Values, joined, read_launch

PANDA = read_launch("panda.launch.py")

SIDES = ("left", "right")


def processes(values: Values) -> Iterator[Process]:
    """Yield what panda.launch.py starts, twice; each robot records into a bag of its own."""
    namespaces = {side: joined(values["namespace"], values[side]) for side in SIDES}
    if len(set(namespaces.values())) == 1:
        raise InputError(
            f"arguments 'left' and 'right' are both {values['right']!r}; "
            "give each robot a namespace of its own"
        )
    for side, namespace in namespaces.items():
        bag = values["bag"] and f"{values['bag']}_{side}"
        yield from PANDA.processes({**values, "namespace": namespace, "bag": bag})


MEANINGS = {
    "namespace": "Namespace in which those of both robots are.",
    "bag": "Start of the folders of two bags, which end with _left and _right; empty: as for one robot.",
}

LAUNCH = Launch(
    (
        Argument("left", "left", "Namespace of one robot."),
        Argument("right", "right", "Namespace of the other."),
        *(replace(each, meaning=MEANINGS.get(each.name, each.meaning)) for each in PANDA.arguments),
    ),
    processes,
)

generate_launch_description = LAUNCH.description
