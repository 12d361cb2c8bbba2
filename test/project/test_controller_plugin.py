"""The files of hodyn_ros/FeedforwardController agree with each other and with the guard of the nodes."""

import re
from dataclasses import MISSING, fields
from xml.etree import ElementTree

import yaml
from places import ROOT

from hodyn_ros.guard.guard_config import End, GuardConfig, Rejoin
from hodyn_ros.model.keys import said_of

FOLDER = ROOT / "ros2_control" / "plugin"
SOURCE = (FOLDER / "feedforward_controller.cpp").read_text()
PARAMETERS = yaml.safe_load((FOLDER / "feedforward_controller_parameters.yaml").read_text())
# as with the nodes, where feedback follows the motors
OTHER_DEFAULTS = {"tracking_error": 0.2}
# what follows from its interfaces and its loop, or is not for users
OF_THE_CONTROLLER = {
    *("measured", "measurement_timeout", "clock_tolerance", "latency", "resolution", "reference_step"),
    *("stop_on", "shortest_stop", "first_effort", "efforts_act"),
}


def test_parameters_are_those_of_the_guard() -> None:
    (parameters,) = PARAMETERS.values()
    said = {one.name: one for one in fields(GuardConfig) if one.default is not MISSING}
    shared = set(parameters) & set(said)
    assert shared == set(said) - OF_THE_CONTROLLER
    for name in shared - {"end", "rejoin"}:
        guard, schema = said[name], said_of(said[name])
        default = OTHER_DEFAULTS.get(name, guard.default)
        assert parameters[name]["default_value"] == default, name
        limits = [schema["minimum"], schema["maximum"]]
        assert parameters[name]["validation"]["bounds<>"] == limits, name
    for name, choices in (("end", End), ("rejoin", Rejoin)):
        assert parameters[name]["default_value"] == said[name].default.value
        (named,) = parameters[name]["validation"]["one_of<>"]
        assert set(named) == {choice.value for choice in choices}
    assert all(parameter["read_only"] and parameter["description"] for parameter in parameters.values())


def test_every_parameter_counts_and_is_described() -> None:
    (parameters,) = PARAMETERS.values()
    page = (ROOT / "docs" / "feedforward_controller.md").read_text()
    for name in parameters:
        assert f"parameters.{name}" in SOURCE, name
        assert f"`{name}" in page or f"    {name}: " in page, name


def test_a_robot_is_stopped_and_started_by_services() -> None:
    page = (ROOT / "docs" / "feedforward_controller.md").read_text()
    for name in ("stop", "start"):
        assert f'"~/{name}"' in SOURCE and f"core_->{name}_asked" in SOURCE and f"`~/{name}`" in page


def test_files_name_the_same_plugin() -> None:
    library = ElementTree.parse(FOLDER / "feedforward_controller.xml").getroot()
    plugin = library.find("class")
    assert plugin is not None
    exported = f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})"
    assert exported in SOURCE
    assert f"type: {plugin.get('name')}" in (ROOT / "docs" / "feedforward_controller.md").read_text()
    cmake = (ROOT / "ros2_control" / "CMakeLists.txt").read_text()
    assert f"add_library({library.get('path')} SHARED" in cmake
    needed = re.search(r"find_optional\(FeedforwardController (.*)\)", (ROOT / "CMakeLists.txt").read_text())
    assert needed is not None
    assert {"controller_interface", "generate_parameter_library"} <= set(needed[1].split())
