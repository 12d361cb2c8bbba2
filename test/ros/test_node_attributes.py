"""Nodes keep off the attributes of rclpy, which would serve what they put there, and nothing else."""

import ast
import inspect
import textwrap
from pathlib import Path

from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node

import hodyn_ros

FOLDER = Path(hodyn_ros.__file__).parent


def written(tree: ast.AST) -> set[str]:
    """Return the attributes of `self` that some code writes."""
    targets = [
        target
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    attributes = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.Attribute)]
    return {each.attr for each in attributes if isinstance(each.value, ast.Name) and each.value.id == "self"}


def of_rclpy() -> set[str]:
    """Return the attributes that nodes of rclpy have."""
    sources = [inspect.getsource(kind) for base in (Node, LifecycleNode) for kind in base.__mro__[:-1]]
    private = set().union(*(written(ast.parse(textwrap.dedent(source))) for source in sources))
    return private | set(dir(LifecycleNode))


def test_no_node_writes_over_what_rclpy_keeps() -> None:
    bases = {"Node", "FeedforwardConsumer", "ForwardCommands", "StreamLifecycle"}
    nodes = {
        f"{file.relative_to(FOLDER)}: {each.name}": written(each)
        for file in (*(FOLDER / "nodes").rglob("*.py"), *(FOLDER / "ros").rglob("*.py"))
        for each in ast.parse(file.read_text()).body
        if isinstance(each, ast.ClassDef)
        and bases & {base.id for base in each.bases if isinstance(base, ast.Name)}
    }
    some = {"nodes/trajectory_filter.py: TrajectoryFilter", "nodes/observer_node.py: ObserverNode"}
    assert some <= nodes.keys()
    owned = of_rclpy()
    assert "_subscriptions" in owned
    assert {name: taken for name, own in nodes.items() if (taken := own & owned)} == {}
