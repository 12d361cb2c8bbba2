"""The examples in the docstrings give what they say."""

import doctest
import importlib

import pytest
from places import ROOT

NEEDS_ROS = ("hodyn_ros.ros.", "hodyn_ros.nodes.")
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "hodyn_ros").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    if name.startswith(NEEDS_ROS):
        pytest.importorskip("rclpy", reason="rclpy comes with the ROS build (make)")
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed


def test_there_are_examples() -> None:
    assert len(MODULES) >= 8
