"""The files of hodyn_ros/FeedforwardController agree with each other and with the guard of the nodes."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from xml.etree import ElementTree

import yaml
from places import ROOT

from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.model.keys import said_of

FOLDER = ROOT / "ros2_control" / "plugin"
SOURCE = (FOLDER / "feedforward_controller.cpp").read_text()
PARAMETERS = yaml.safe_load((FOLDER / "feedforward_controller_parameters.yaml").read_text())
# as with the nodes, where feedback follows the motors
OTHER_DEFAULTS = {"tracking_error": 0.2}


def test_parameters_are_those_of_the_guard() -> None:
    (parameters,) = PARAMETERS.values()
    said = {one.name: one for one in fields(GuardConfig) if one.default is not MISSING}
    shared = set(parameters) & set(said)
    assert len(shared) == 13
    for name in shared - {"end"}:
        guard, schema = said[name], said_of(said[name])
        default = OTHER_DEFAULTS.get(name, guard.default)
        assert parameters[name]["default_value"] == default, name
        limits = [schema["minimum"], schema["maximum"]]
        assert parameters[name]["validation"]["bounds<>"] == limits, name
    assert all(parameter["read_only"] and parameter["description"] for parameter in parameters.values())


def test_every_parameter_counts_and_is_described() -> None:
    (parameters,) = PARAMETERS.values()
    page = (ROOT / "docs" / "feedforward_controller.md").read_text()
    for name in parameters:
        assert f"parameters.{name}" in SOURCE, name
        assert f"`{name}" in page or f"    {name}: " in page, name


def test_files_name_the_same_plugin() -> None:
    library = ElementTree.parse(FOLDER / "feedforward_controller.xml").getroot()
    plugin = library.find("class")
    assert plugin is not None
    exported = f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})"
    assert exported in SOURCE
    assert f"type: {plugin.get('name')}" in (ROOT / "docs" / "feedforward_controller.md").read_text()
    cmake = (ROOT / "ros2_control" / "CMakeLists.txt").read_text()
    assert f"add_library({library.get('path')} SHARED" in cmake
    needed = re.search(r"foreach\(package (.*)\)", (ROOT / "CMakeLists.txt").read_text())
    assert needed is not None
    assert {"controller_interface", "generate_parameter_library"} <= set(needed[1].split())
