"""The package as built and installed: what a user gets, whatever the way it was made."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from imports import imports_of
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from places import ROOT

from hodyn_ros.extras import missing_extra
from hodyn_ros.ros.access import NODES

# They come with a ROS 2 and not from PyPI; `ros2 launch` needs them.
LAUNCH = ("launch", "launch_ros")
# Not on PyPI either; the nodes that use them do without where they are missing.
OPTIONAL = {
    "controller_manager_msgs": {Path("hodyn_ros/ros/forward_commands.py")},
    "control_msgs": {
        Path("hodyn_ros/nodes/filtering/trajectory_proxy.py"),
        Path("hodyn_ros/ros/controller_state.py"),
    },
}
PARTS = ("runtime", "plots", "bags")  # a ROS build has all of them
# What is there for an extra only: these packages and modules.
FOR_EXTRAS = (
    *("bags", "cli", "demo", "launching.run", "nodes", "planning.picture", "planning.report"),
    *("planning.time_optimal.picture", "planning.time_optimal.report"),
    *("identification.reporting.", "identification.bag", "learning.begins", "pictures", "replay", "ros."),
    *("simulation.pictures", "tables"),
    *("view.bag_track", "view.browser", "view.live", "view.meshes", "view.view_command"),
    "interop.lerobot",
)
# By extra: modules that only those import who ask for it.
EXTRAS = {
    "mjcf": {"mujoco": {Path("hodyn_ros/model/readers/mjcf_file.py")}},
    "parquet": {"pyarrow": {Path("hodyn_ros/identification/files.py")}},
    "identify": {"clarabel": {Path("hodyn_ros/identification/consistency.py")}},
    "lerobot": {"lerobot": {Path("hodyn_ros/interop/lerobot.py")}},
    "view": {
        "viser": {Path("hodyn_ros/view/browser.py")},
        "websockets": {Path("hodyn_ros/view/own_pages.py")},
        "trimesh": {Path("hodyn_ros/view/meshes.py")},
    },
}
# Names under which a requirement is imported, and found by rosdep, where they differ from its own.
MODULES = {"pyyaml": "yaml", "urdf-parser-py": "urdf_parser_py"}
CONDA_NAMES = {"urdf-parser-py": "urdfdom-py"}
ROSDEP_KEYS = {"pyyaml": "python3-yaml", "urdf-parser-py": "urdfdom_py"}
WITHOUT_ROSDEP_KEY = {"llvmlite", "rosbags", "mcap", "zstandard", "lz4"}


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload,no-any-return]


def requirements(name: str) -> list[Requirement]:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def package_xml(*tags: str) -> list[str]:
    found = ElementTree.parse(ROOT / "package.xml").getroot()
    return [element.text or "" for element in found if element.tag in tags]


def imports() -> dict[str, set[Path]]:
    """Top-level modules that the package imports when it runs, with the files that do."""
    found: dict[str, set[Path]] = {}
    for path in (ROOT / "hodyn_ros").rglob("*.py"):
        for node in imports_of(path, for_types=False):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                found.setdefault(name.split(".")[0], set()).add(path.relative_to(ROOT))
    return found


def is_ros(module: str) -> bool:
    return module in ("rclpy", "builtin_interfaces", "std_srvs") or module.endswith(("_msgs", "_interfaces"))


def test_all_files_name_the_same_version_and_license() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()
    (version,) = package_xml("version")
    assert re.search(r'^version = "(.+)"$', pyproject, re.MULTILINE).group(1) == version  # type: ignore[union-attr]
    assert importlib.metadata.version("hodyn_ros") == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert package_xml("license") == ["Apache-2.0"]
    assert 'license = "Apache-2.0"' in pyproject
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()


def test_package_xml_can_be_released() -> None:
    package = pytest.importorskip("catkin_pkg.package", reason="catkin_pkg comes with colcon")
    warnings: list[str] = []
    parsed = package.parse_package(str(ROOT / "package.xml"), warnings=warnings)
    parsed.validate(warnings=warnings)
    assert not warnings
    assert (ROOT / parsed.licenses[0].file).is_file()


def test_changelog_can_be_released(tmp_path: Path) -> None:
    """Tag it as `catkin_prepare_release` does, and read it as bloom does."""
    changelog = pytest.importorskip("catkin_pkg.changelog", reason="catkin_pkg comes with colcon")
    text = (ROOT / "CHANGELOG.rst").read_text()
    assert text.splitlines()[1] == "Changelog for package hodyn_ros"
    (version,) = package_xml("version")
    if "\nForthcoming\n" in text:
        title = f"{version} (2026-11-21)"
        text = text.replace("\nForthcoming\n-----------\n", f"\n{title}\n{'-' * len(title)}\n")
    (tmp_path / "CHANGELOG.rst").write_text(text)
    read = changelog.get_changelog_from_path(str(tmp_path / "CHANGELOG.rst"), "hodyn_ros")
    newest, date, content = next(iter(read.foreach_version()))
    assert newest == version
    assert date is not None
    assert len(content[0].bullets) > 3


def test_the_lowest_versions_are_those_that_requirements_admit() -> None:
    lowest = [Requirement(line) for line in run(ROOT / "tools" / "lowest_versions").stdout.splitlines()]
    versions = {one.name: str(one.specifier).removeprefix("==") for one in lowest}
    for part in ("runtime", "plots", "bags"):
        for one in requirements(part):
            assert one.specifier.contains(versions[one.name]), one


def test_the_conda_recipe_asks_for_what_pip_does() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    assert [recipe["context"]["version"]] == package_xml("version")
    asked = dict(line.split() for line in recipe["requirements"]["run"])
    assert asked.pop("python") == ">=3.10"
    by_pip = {CONDA_NAMES.get(r.name.lower(), r.name.lower()): r.specifier for r in requirements("runtime")}
    assert set(asked) == set(by_pip)
    for name in set(asked) - set(CONDA_NAMES.values()):  # which have other versions there
        assert SpecifierSet(asked[name]) == by_pip[name], name
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script.replace(" ", "") == "hodyn=hodyn_ros.cli.app:main"


def test_the_conda_recipe_renders() -> None:
    rattler_build = pytest.importorskip("rattler_build", reason="needs `pip install py-rattler-build`")
    recipe = rattler_build.Stage0Recipe.from_file(ROOT / "recipe" / "recipe.yaml")
    (variant,) = recipe.render(rattler_build.VariantConfig())
    assert variant.recipe.to_dict()["build"]["noarch"] == "python"


def test_every_package_that_cmake_looks_for_is_a_declared_dependency() -> None:
    cmake = (ROOT / "CMakeLists.txt").read_text()
    found = set(re.findall(r"find_package\((\w+)", cmake))
    parts = {
        part: set(wanted.split()) for part, wanted in re.findall(r"find_optional\((\w+) ([\w ]+)\)", cmake)
    }
    optional = set().union(*parts.values())
    declared = set(package_xml("depend", "buildtool_depend", "test_depend"))
    assert len(parts) == 3 and len(optional) > 8
    # who has no MoveIt needs none for the rest
    assert (found | optional) - declared == {"moveit_core", "moveit_msgs"}
    assert {"moveit_core", "moveit_msgs"} <= parts["AddTimeOptimalTiming"]
    # dpkg-query ends the workflow where one of these is not installed
    workflow = (ROOT / ".github/workflows/distributions.yml").read_text()
    listed = {name.replace("-", "_") for name in re.findall(r"'ros-\*-([\w-]+)'", workflow)}
    assert listed and listed <= set(package_xml("depend", "exec_depend"))


def test_every_import_is_a_declared_dependency() -> None:
    declared = {MODULES.get(r.name.lower(), r.name) for part in PARTS for r in requirements(part)}
    ros_wheels = {r.name.removeprefix("ros-").replace("-", "_") for r in requirements("ros")}
    ros_depends = package_xml("depend", "exec_depend")
    extras = {module: (extra, files) for extra, only in EXTRAS.items() for module, files in only.items()}
    for module, files in imports().items():
        if module in sys.stdlib_module_names or module == "hodyn_ros":
            continue
        where = f"{module}, imported by {', '.join(map(str, sorted(files)))}, is missing from"
        if module in LAUNCH:
            assert {path.stem for path in files} <= {"ros2_launch"}, (
                f"{module} is for launch files only, found in {files}"
            )
            assert module in ros_depends, f"{where} package.xml"
        elif module in extras:
            extra, allowed = extras[module]
            assert files == allowed, f"{module} is for the extra {extra}, but imported by {files}"
            assert module in {r.name for r in requirements(extra)}, f"{where} requirements/{extra}.txt"
        elif module in OPTIONAL:
            assert files == OPTIONAL[module], f"{module} is optional, but imported by {files}"
            assert module in ros_depends, f"{where} package.xml"
        elif is_ros(module):
            assert module in ros_depends, f"{where} package.xml"
            assert module in ros_wheels, f"{where} requirements/ros.txt"
        else:
            assert module in declared, f"{where} requirements/{PARTS}.txt"


def test_package_xml_names_every_requirement_for_rosdep() -> None:
    keys = package_xml("exec_depend")
    for name in {r.name.lower() for part in PARTS for r in requirements(part)} - WITHOUT_ROSDEP_KEY:
        assert ROSDEP_KEYS.get(name, f"python3-{name}") in keys


def test_extras_are_those_that_errors_name() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 brings it")
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    files = pyproject["tool"]["setuptools"]["dynamic"]["optional-dependencies"]
    for extra in ("plots", "bags", "identify", "view"):
        assert files[extra]["file"][-1] == f"requirements/{extra}.txt"
        for requirement in requirements(extra):
            if requirement.name == "pycollada":  # trimesh imports it, where a mesh asks for it
                continue
            error = ModuleNotFoundError("missing", name=f"{requirement.name}.part")
            line = f"this needs {requirement.name}, which is missing: pip install {requirement.name}"
            assert missing_extra(error) == f"{line}, or hodyn_ros[{extra}]"
    assert missing_extra(ModuleNotFoundError("missing", name="numpy")) is None
    assert files["all"]["file"] == [path for part in PARTS[1:] for path in files[part]["file"]]


WITHOUT = """
import importlib, pathlib, sys
EXTRAS = ("typer", "rich", "matplotlib", "rosbags", "mcap", "zstandard", "lz4")
ROS = ("rclpy", "builtin_interfaces", "std_msgs", "geometry_msgs", "sensor_msgs", "trajectory_msgs")
for name in (*EXTRAS, *ROS):
    sys.modules[name] = None  # makes an import of it fail

import hodyn_ros
root = pathlib.Path(hodyn_ros.__file__).parent
files = [path.relative_to(root.parent).with_suffix("") for path in sorted(root.rglob("*.py"))]
modules = [".".join(file.parts).removesuffix(".__init__") for file in files]
"""


def test_mathematics_needs_no_extra_and_only_nodes_need_ros() -> None:
    """Import what is mathematics where neither extras nor ROS can be imported, the rest where extras can."""
    ros = ("nodes.", "ros.", "replay.", "msg", "srv", "action", "hodyn_ros_s__")
    ros = (*ros, "launching.ros2_launch", "view.live", "interop.lerobot")
    code = f"""
def imported(others):
    left_out = tuple("hodyn_ros." + name for name in others)
    for name in modules:
        if not name.startswith(left_out):
            importlib.import_module(name)
            yield name
mathematics = set(imported({(*FOR_EXTRAS, *ros)}))
from hodyn_ros import Robot, share
from hodyn_ros.trajectory import read_trajectory
q = read_trajectory(share.find("config", "panda_excitation.yaml")).sample(1.0, order=4)
assert Robot.load(share.find("config", "panda.yaml")).inverse_dynamics(q).shape == (3, 7)
for name in EXTRAS:
    del sys.modules[name]
assert {{"hodyn_ros.share", "hodyn_ros.cli.app"}} - mathematics < set(imported({ros}))
"""
    result = run(sys.executable, "-c", WITHOUT + code, cwd=ROOT)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("matplotlib", ["show", "panda.yaml", "--picture", "robot.png"], "plots"),
        ("rosbags", ["compare", "one", "two"], "bags"),
        ("viser", ["view", "panda.yaml"], "view"),
    ],
)
def test_a_missing_extra_is_one_line(missing: str, arguments: list[str], extra: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from hodyn_ros.cli.app import main; main()"
    result = run(sys.executable, "-c", code, *arguments, cwd=ROOT)
    line = f"error: this needs {missing}, which is missing: pip install {missing}, or hodyn_ros[{extra}]\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", line)


MESSAGE_ROUND_TRIP = """
from rclpy.serialization import deserialize_message, serialize_message
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
for message in (DesiredMotion(joint_names=["a"], snaps=[1.5]), FeedforwardTorque(efforts=[2.5], status=3)):
    assert deserialize_message(serialize_message(message), type(message)) == message
print("both messages travel")
"""


@pytest.mark.parametrize("folder", [ROOT, Path("/")], ids=["in the clone", "elsewhere"])
def test_messages_load_their_typesupport(folder: Path) -> None:
    """In the clone its sources shadow the installed package, which holds the generated messages."""
    pytest.importorskip("rclpy", reason="no ROS 2 here")
    result = run(sys.executable, "-c", MESSAGE_ROUND_TRIP, cwd=folder)
    assert (result.returncode, result.stdout) == (0, "both messages travel\n"), result.stderr


def prefixes() -> Iterator[Path]:
    for prefix in [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]:
        if prefix and Path(prefix, "lib", "hodyn_ros").is_dir():
            yield Path(prefix)


def test_ros2_run_finds_the_executables() -> None:
    prefix = next(prefixes(), None)
    if prefix is None:
        pytest.skip("hodyn_ros was not installed by colcon")
    for name in ("hodyn", *NODES):
        script = prefix / "lib" / "hodyn_ros" / name
        assert os.access(script, os.X_OK), f"{script} is not executable"
        assert script.read_text().startswith("#!/usr/bin/env python3\n")


def test_command_line_runs_in_an_empty_environment() -> None:
    script = Path(sys.prefix, "bin", "hodyn")
    if not script.exists():
        pytest.skip("hodyn is not in this Python's environment")
    result = run(script, "--help", env={}, cwd="/")
    assert result.returncode == 0, result.stderr
    assert "demo" in result.stdout


def test_wheel_holds_mathematics_command_line_and_shipped_files(tmp_path: Path) -> None:
    """Build it from the sdist, as a release does; without build isolation, so that nothing is downloaded."""
    if Version(importlib.metadata.version("setuptools")) < Version("77"):
        pytest.skip("pyproject.toml needs setuptools 77, which pip brings along where it may download")
    sources = tmp_path / "sources"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "build", "install", "log", "out", "*.egg-info")
    shutil.copytree(ROOT, sources, ignore=ignored)
    (sources / "README.md").touch()
    build = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"
    result = run(sys.executable, "-c", build, "build_sdist", tmp_path, cwd=sources)
    assert result.returncode == 0, result.stderr
    (sdist,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path)
    result = run(sys.executable, "-c", build, "build_wheel", tmp_path, cwd=str(sdist).removesuffix(".tar.gz"))
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = next(name for name in names if name.endswith("entry_points.txt"))
        assert "hodyn = hodyn_ros.cli.app:main" in archive.read(entry_points).decode()
    share = f"hodyn_ros-{package_xml('version')[0]}.data/data/share/hodyn_ros"
    shipped = [*sources.glob("config/*"), *sources.glob("launch/*.py"), *sources.glob("[ms]*/*.[ms][sr][gv]")]
    assert {f"{share}/{path.relative_to(sources)}" for path in shipped} <= names
    modules = {str(path.relative_to(sources)) for path in (sources / "hodyn_ros").rglob("*.py")}
    data = {f"hodyn_ros/{name}" for name in ("py.typed", "export/robot_table.h", "export/linkage_table.h")}
    assert modules | data == {name for name in names if name.startswith("hodyn_ros/")}


def dry_make(environment: dict[str, str]) -> str:
    """What `make build` would do from scratch."""
    if shutil.which("make") is None:
        pytest.skip("no make here")
    clean = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    result = run("make", "--dry-run", "--always-make", "build", cwd=ROOT, env=clean | environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_make_takes_ros_from_pypi_where_none_is_sourced() -> None:
    commands = dry_make({})
    assert "requirements/ros.txt" in commands
    assert "CMAKE_PROJECT_INCLUDE=" in commands
    assert "--system-site-packages" not in commands


def test_make_uses_a_sourced_ros(tmp_path: Path) -> None:
    (tmp_path / "rclpy.py").touch()
    sourced = {"ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": "/opt/ros/jazzy", "PYTHONPATH": str(tmp_path)}
    commands = dry_make(sourced)
    assert "--system-site-packages" in commands
    assert "requirements/ros.txt" not in commands
    assert "CMAKE_PROJECT_INCLUDE=" not in commands
    assert "setup.sh" in commands


@pytest.mark.parametrize(
    ("arguments", "environment", "line"),
    [
        ((), {"CXX": "no-such-compiler"}, r"missing: a C\+\+ compiler \(no-such-compiler\): .*apt install"),
        (("--ros",), {"ROS_DISTRO": "humble"}, "missing: a newer ROS 2: humble is sourced, Jazzy"),
    ],
)
def test_what_the_machine_lacks_is_named(
    arguments: tuple[str, ...], environment: dict[str, str], line: str
) -> None:
    check = run(sys.executable, ROOT / "tools" / "check_machine.py", *arguments, env=os.environ | environment)
    assert check.returncode == 1
    assert re.search(line, check.stderr)
    assert "Traceback" not in check.stderr
