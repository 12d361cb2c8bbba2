"""What is imported when: little at first, and nothing any more once a node answers."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from ros_processes import child_environment

import hodyn_ros

LATE = (
    *("scipy", "llvmlite", "matplotlib", "jsonschema", "yaml", "urdf_parser_py", "mujoco"),
    *("rosbags", "mcap", "rich", "typer", "rclpy"),
)


def printed(code: str) -> list[str]:
    """Lines that a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=child_environment(), capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def loaded(code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after a piece of code."""
    return set(json.loads(printed(f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))")[-1]))


def test_the_package_alone_imports_nothing_heavy() -> None:
    assert not loaded("import hodyn_ros") & {"numpy", *LATE}


def test_a_robot_needs_numpy_llvmlite_and_yaml_only() -> None:
    assert loaded("from hodyn_ros import Robot") & {"numpy", *LATE} == {"numpy", "llvmlite", "yaml"}


def test_the_command_line_imports_no_mathematics_before_a_command_does() -> None:
    assert loaded("import hodyn_ros.cli.app") & {"numpy", *LATE} == {"rich", "typer"}


@pytest.mark.parametrize("package", ["hodyn_ros.nodes", "hodyn_ros.cli.app"])
def test_nodes_and_commands_choose_threads_of_blas_before_numpy_is_there(package: str) -> None:
    code = f"import os, sys, {package}; print(os.environ['OMP_NUM_THREADS'], 'numpy' in sys.modules)"
    for given, taken in ({}, "1"), ({"OMP_NUM_THREADS": "3"}, "3"):
        environment = child_environment()
        environment.pop("OMP_NUM_THREADS", None)
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment | given, capture_output=True, text=True, timeout=60)
        assert done.stdout == f"{taken} False\n", done.stderr


def test_public_names_come_from_where_type_checkers_see_them() -> None:
    tree = ast.parse(Path(hodyn_ros.__file__).read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("hodyn_ros.")
        for alias in node.names
    }
    assert sorted(seen) == hodyn_ros.__all__
    assert set(hodyn_ros.__all__) <= set(dir(hodyn_ros))
    for name, module in seen.items():
        value = getattr(hodyn_ros, name)
        assert (value.__name__, value.__module__) == (name, module)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'hodyn_ros' has no attribute 'Robbot'$"):
        hodyn_ros.Robbot  # noqa: B018
    with pytest.raises(ImportError, match="Robbot"):
        from hodyn_ros import Robbot  # noqa: F401


ROBOTS = ("panda.yaml", "aerial_manipulator.yaml", "gough_stewart_6ups.yaml", "humanoid_leg.yaml")
FIRST_ANSWERS = f"""
import json, os, sys
import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion
from hodyn_ros import Robot, share
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.ros.conversions.messages import write_desired_motion

for name in {ROBOTS}:
    if os.fork():  # each in a copy of its own, in which nothing has been loaded for another
        os.wait()
        continue
    path = share.find("config", name)
    pipeline = FeedforwardPipeline(RobotFiles.from_file(path), Robot.load(path), FeedforwardConfig())
    model = pipeline.model
    at_rest = np.zeros((model.motion_orders, len(model.motion_joints)))
    msg = write_desired_motion(model.motion_joints, Time(sec=1), at_rest)
    if model.moves_base:
        place = pipeline.robot.home[1][:3, 3].tolist()
        msg.base_pose = [Pose(position=Point(**dict(zip("xyz", place))), orientation=Quaternion(w=1.0))]
        msg.base_twists = np.zeros(6 * (model.motion_orders - 1))
    before = set(sys.modules)
    assert np.isfinite(pipeline.answer(msg).efforts).all()
    print(json.dumps([name, sorted(set(sys.modules) - before)]), flush=True)
    os._exit(0)
"""


def test_the_first_answer_of_a_node_waits_for_no_import() -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
    assert dict(map(json.loads, printed(FIRST_ANSWERS))) == dict.fromkeys(ROBOTS, [])
