"""The files of hodyn_ros/AddTimeOptimalTiming agree with each other, with the service and with their page."""

import re
from xml.etree import ElementTree

from places import ROOT

FOLDER = ROOT / "moveit"
SOURCE = (FOLDER / "add_time_optimal_timing.cpp").read_text()
PAGE = (ROOT / "docs" / "moveit.md").read_text()


def test_files_name_the_same_plugin() -> None:
    library = ElementTree.parse(FOLDER / "add_time_optimal_timing.xml").getroot()
    plugin = library.find("class")
    assert plugin is not None
    exported = f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})"
    assert exported in SOURCE
    assert f'kName[] = "{plugin.get("name")}"' in SOURCE and f"- {plugin.get('name')}\n" in PAGE
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert f"add_library({library.get('path')} SHARED moveit/add_time_optimal_timing.cpp)" in cmake
    assert "pluginlib_export_plugin_description_file(moveit_core moveit/add_time_optimal_timing.xml)" in cmake


def test_every_parameter_is_described_with_its_default() -> None:
    declared = dict(re.findall(r'declare\(\s*"(\w+)", rclcpp::ParameterValue\((.*?)\),\s*"', SOURCE))
    assert len(declared) == 6
    for name, default in declared.items():
        (row,) = re.findall(rf"^\| `retime\.{name}` \| (.*?) \|", PAGE, re.MULTILINE)
        said = re.sub(r"[`\[\]]| s$", "", row)
        assert said == default.removeprefix("std::vector<std::string>").strip('"{}'), name


def test_every_field_of_the_request_is_filled_in() -> None:
    fields, _ = (ROOT / "srv" / "RetimeTrajectory.srv").read_text().split("---")
    for name in re.findall(r"^[a-z]\S* (\w+)", fields, re.MULTILINE):
        assert re.search(rf"request(->|\.){name}\b", SOURCE), name


def test_where_a_package_is_missing_the_rest_is_built() -> None:
    cmake = (ROOT / "CMakeLists.txt").read_text()
    parts = re.findall(r"^find_optional\((\w+) ", cmake, re.MULTILINE)
    assert parts == ["FeedforwardController", "LinkageTransmission", "AddTimeOptimalTiming"]
    assert all(f"if({part}_FOUND)" in cmake for part in parts)
