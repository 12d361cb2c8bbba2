"""Each node starts from its own dump of parameters, as `ros2 param dump` writes it, and uses what it may."""

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy.node import NodeNameNonExistentError
from rclpy.parameter import Parameter, parameter_value_to_python
from ros_processes import RosProcess, child_environment, start_node, wait_until
from ros_talk import Talk
from sweeps import some

from hodyn_ros.ros import access

ROBOT = {"robot_config": "panda.yaml"}
JOINTS = {"joints": "[panda_joint1, panda_joint2]"}
NODES: dict[str, dict[str, object]] = {
    "dynamics_node": ROBOT,
    "trajectory_node": ROBOT | {"trajectory": "panda_excitation.yaml"},
    "controller_node": ROBOT,
    "simulator_node": ROBOT,
    "forward_effort_node": JOINTS,
    "motor_reference_node": JOINTS,
    "trajectory_filter": ROBOT,
    "skeleton_node": ROBOT,
    "learning_node": ROBOT | {"trajectory": "panda_repetition.yaml"},
    "observer_node": ROBOT,
    "mpc_node": ROBOT,
    "stream_node": ROBOT,
}
STARTED_AGAIN = some(NODES, "dynamics_node", "trajectory_node", "forward_effort_node", "stream_node")
LISTS: dict[str, dict[str, list[Any]]] = {
    "dynamics_node": {"gravity": [0.0, 0.0, -9.0], "wrench_bodies": ["panda_link7"]}
}


def check_access(talk: Talk, node: str, namespace: str) -> None:
    """Compare the names that a running node uses with those that its policy grants."""
    graph, place = talk.node, (node, f"/{namespace}")
    own = access.NODES[node]

    def granted(*names: str) -> set[str]:
        whole = (f"/{namespace}/{node}/{name[2:]}" if name.startswith("~/") else name for name in names)
        return {name if name.startswith("/") else f"/{namespace}/{name}" for name in whole}

    def of_actions(*parts: str) -> tuple[str, ...]:
        return tuple(f"{action}/_action/{part}" for action in actions for part in parts)

    # one of them is there only where control_msgs is
    actions = [name for name in own.provides if find_spec("control_msgs") or "follow" not in name]
    publishes = {name for name, _ in graph.get_publisher_names_and_types_by_node(*place)}
    topics = (*own.publishes, *of_actions("feedback", "status"))
    assert publishes == granted(*access.EVERY_NODE.publishes, *topics)
    heard = {name for name, _ in graph.get_subscriber_names_and_types_by_node(*place)}
    assert heard <= granted(*access.EVERY_NODE.subscribes, *own.subscribes)
    calls = granted(
        *access.EVERY_NODE.serves, *own.serves, *of_actions("send_goal", "cancel_goal", "get_result")
    )

    def serves() -> set[str]:
        return {name for name, _ in graph.get_service_names_and_types_by_node(*place)}

    with suppress(TimeoutError):  # the graph learns of services apart from topics
        wait_until(lambda: serves() == calls, 20.0, "the services")
    assert serves() == calls
    assert not graph.get_client_names_and_types_by_node(*place)


def dump(talk: Talk, node: str) -> dict[str, Any]:
    """Return all parameters of a node by their names."""
    listed = talk.call(ListParameters, f"{node}/list_parameters", ListParameters.Request()).result.names
    request = GetParameters.Request(names=listed)
    values = talk.call(GetParameters, f"{node}/get_parameters", request).values
    plain = [parameter_value_to_python(value) for value in values]
    return {name: list(x) if hasattr(x, "typecode") else x for name, x in zip(listed, plain)}


def reports(talk: Talk, node: str, namespace: str) -> bool:
    """Whether the graph knows that a node publishes /diagnostics, which it opens last."""
    try:
        names = talk.node.get_publisher_names_and_types_by_node(node, f"/{namespace}")
    except NodeNameNonExistentError:  # names of nodes come later than their services
        return False
    return "/diagnostics" in dict(names)


def write(file: Path, full_name: str, parameters: dict[str, Any]) -> None:
    """Write parameters as `ros2 param dump` does: nested where names have dots, null where not set."""
    nested: dict[str, Any] = {}
    for name, value in parameters.items():
        *folders, last = name.split(".")
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    file.write_text(yaml.dump({full_name: {"ros__parameters": nested}}, default_flow_style=False))


def start_from(file: Path, module: str, namespace: str) -> RosProcess:
    command = [sys.executable, "-m", f"hodyn_ros.nodes.{module}", "--ros-args"]
    rules = ["-r", f"__ns:=/{namespace}", "--params-file", str(file)]
    return RosProcess([*command, *rules], child_environment(), module)


@pytest.mark.parametrize("module", NODES)
def test_a_node_starts_from_its_own_dump(module: str, tmp_path: Path) -> None:
    """Also where lists were emptied, which have a type in ROS, but none in the file."""
    namespace, file = f"dump_{module}", tmp_path / "dump.yaml"
    emptied: dict[str, list[Any]] = dict.fromkeys(LISTS.get(module, {}), [])
    with Talk(namespace) as talk:
        with start_node(module, NODES[module], namespace) as node:
            for chosen in (LISTS[module], emptied) if emptied else ():
                parameters = [Parameter(name, value=x).to_parameter_msg() for name, x in chosen.items()]
                request = SetParameters.Request(parameters=parameters)
                results = talk.call(SetParameters, f"{module}/set_parameters", request).results
                assert all(result.successful for result in results), results
            before = dump(talk, module)
            wait_until(lambda: reports(talk, module, namespace), 20.0, "the graph")
            check_access(talk, module, namespace)
            assert node.stop() == 0, node.output()
        assert before.keys() >= NODES[module].keys() and before.items() >= emptied.items()
        if module not in STARTED_AGAIN:
            return
        write(file, f"/{namespace}/{module}", before)
        with start_from(file, module, namespace) as node:
            after = dump(talk, module)
            assert node.stop() == 0, node.output()
    assert not any(after.pop(name) for name in emptied)  # empty, or not set
    # it hears no wrench of a body any more
    kept = {name for name in before if name not in emptied and "/external_wrench/" not in name}
    assert after == {name: before[name] for name in kept}
    assert not any("is unknown, and ignored" in line for line in node.lines)
