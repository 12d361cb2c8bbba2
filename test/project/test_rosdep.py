"""What package.xml depends on is known where packages of ROS are built.

The table says what was found in rosdistro's index of that date. With HODYN_ROSDISTRO, a folder of
github.com/ros/rosdistro, all of it is looked up again.
"""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from places import ROOT

INDEX_OF = "2026-08-22"
DISTRIBUTIONS = {"jazzy": "noble", "kilted": "noble", "lyrical": "resolute", "rolling": "resolute"}
PACKAGES = {
    "action_msgs",
    "ament_cmake",
    "ament_cmake_pytest",
    "ament_cmake_python",
    "builtin_interfaces",
    "control_msgs",
    "controller_interface",
    "controller_manager_msgs",
    "diagnostic_msgs",
    "generate_parameter_library",
    "geometry_msgs",
    "hardware_interface",
    "launch",
    "launch_ros",
    "lifecycle_msgs",
    "nav_msgs",
    "pluginlib",
    "rcl_interfaces",
    "rclcpp",
    "rclpy",
    "rosidl_default_generators",
    "rosidl_default_runtime",
    "sensor_msgs",
    "std_msgs",
    "std_srvs",
    "trajectory_msgs",
    "transmission_interface",
    "urdfdom_py",
    "visualization_msgs",
}
KEYS = {  # of rosdep, for packages of Ubuntu
    f"python3-{name}"
    for name in [
        "hypothesis",
        "jsonschema",
        "matplotlib",
        "numpy",
        "pytest",
        "pytest-timeout",
        "rich",
        "scipy",
        "typer",
        "yaml",
    ]
}
WITHOUT_KEY = {"llvmlite", "mpmath", "gmpy2", "mcap", "zstandard", "lz4"}  # what package.xml only speaks of

rosdistro = os.environ.get("HODYN_ROSDISTRO", "")


def dependencies() -> set[str]:
    root = ElementTree.parse(ROOT / "package.xml").getroot()
    return {element.text or "" for element in root if element.tag.endswith("depend")}


def test_every_key_was_looked_up() -> None:
    new = dependencies() - PACKAGES - KEYS
    assert not new, f"look {new} up with HODYN_ROSDISTRO, then name them here (last index: {INDEX_OF})"


@pytest.mark.skipif(not rosdistro, reason="HODYN_ROSDISTRO names no clone of ros/rosdistro")
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_index_has_every_key(distribution: str) -> None:
    def read(name: str) -> dict:  # type: ignore[type-arg]
        return yaml.load((Path(rosdistro) / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # type: ignore[no-any-return]

    repositories = read(f"{distribution}/distribution.yaml")["repositories"]
    released = {
        package
        for name, entry in repositories.items()
        for package in entry.get("release", {}).get("packages", [name] if "release" in entry else [])
    }
    rules = {**read("rosdep/base.yaml"), **read("rosdep/python.yaml")}
    assert released >= PACKAGES & dependencies()
    for key in KEYS & dependencies():
        rule = rules[key]["ubuntu"]
        if isinstance(rule, dict):
            rule = rule.get(DISTRIBUTIONS[distribution], rule.get("*"))
        assert isinstance(rule, list), f"{key} is no package of Ubuntu {DISTRIBUTIONS[distribution]}"
    found = {name for name in WITHOUT_KEY if f"python3-{name}" in rules}
    assert not found, f"{found} have keys by now; name them in package.xml"
