"""Files that would cost all time or memory: devices, pipes, sizes, depths, and aliases of aliases."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from hodyn_ros import Robot
from hodyn_ros.dynamics.read_robot import read_robot
from hodyn_ros.errors import HodynError, ModelError
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.model.readers.files import read_file
from hodyn_ros.model.readers.yaml_text import MOST_BYTES, MOST_DEPTH, read_yaml
from hodyn_ros.trajectory import read_motion

TWO_ALIKE = """\
name: two
bodies:
  - {name: upper, mass: 2, com: &com [0, 0, 0.1], inertia: &ball {about: com, ixx: 0.2, ixy: 0, ixz: 0,
      iyy: 0.2, iyz: 0, izz: 0.2}}
  - {name: lower, mass: 1, com: *com, inertia: *ball}
joints:
  - name: shoulder
    type: revolute
    parent: world
    child: upper
    axis: &level [0, 1, 0]
    drive: &small {motor_inertia: 0.1, stiffness: {value: 900, assumed: true}}
  - {name: elbow, type: revolute, parent: upper, child: lower, axis: *level, drive: *small}
"""
DEEP = f":[0-9]+: .*nested more than {MOST_DEPTH} deep"


def quickly(call: object, *arguments: object) -> str:
    """Return the words of the error that a call raises within some seconds."""
    start = time.perf_counter()
    with pytest.raises(HodynError) as rejected:
        call(*arguments)  # type: ignore[operator]
    assert time.perf_counter() - start < 20.0
    assert "\n" not in str(rejected.value) and len(str(rejected.value)) < 400
    return str(rejected.value)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin", "pipe"])
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, device: str) -> None:
    if device == "pipe":
        device = str(tmp_path / "pipe")
        os.mkfifo(device)
    elif Path(device).is_file():
        pytest.skip("here it is a regular file")
    path = tmp_path / "robot.yaml"
    path.write_text(f"urdf: {device}\n")
    for call in (read_robot, RobotFiles.from_file, Robot.load):
        assert "is not a regular file" in quickly(call, path)
    for call in (read_yaml, Robot.load, Robot.from_urdf, Robot.load, read_motion):
        assert "is not a regular file" in quickly(call, device)


def test_a_file_that_is_too_large_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_bytes(b"name: long\nbodies: [" + b"x, " * (MOST_BYTES // 2))
    for call in (read_yaml, Robot.load, read_motion):
        assert "robot.yaml': it is larger than 4 MB" in quickly(call, path)
    path.write_bytes(b"x" * 10)
    assert read_file(path, 10) == b"x" * 10
    assert quickly(read_file, path, 9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 5000, DEEP),
        ("{a: " * 5000, DEEP),
        ("\n".join(" " * i + "a:" for i in range(2 * MOST_DEPTH)), DEEP),
        ("a: &a [1, *a]", DEEP),
        ("a: &a\n  b: *a", DEEP),
        ("a: &a {b: &b [*a, *b]}", DEEP),
        ("a: *nowhere", ":1: .*undefined alias"),
        (
            "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 10)}]\n" for i in range(9)),
            "holds more than 200000 entries, those that aliases stand for counted in",
        ),
    ],
    ids=["list", "mapping", "indented", "itself", "own-entry", "two", "undefined", "powers"],
)
def test_depths_and_aliases_are_bounded(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(text)
    found = quickly(read_yaml, path)
    with pytest.raises(ModelError, match=words):
        raise ModelError(found)


def test_an_alias_is_what_it_stands_for(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(TWO_ALIKE)
    config = read_robot(path)
    assert config.drives is not None
    assert [drive.stiffness for drive in config.drives] == [900.0, 900.0]
    np.testing.assert_array_equal(config.model.inertias[0], config.model.inertias[1])
    assert [figure.place for figure in config.assumed] == [
        "joints[0] shoulder: drive.stiffness",
        "joints[1] elbow: drive.stiffness",
    ]


def test_an_error_in_what_an_alias_stands_for_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(TWO_ALIKE.replace("drive: *small", "drive: *level"))
    refused(lambda: read_robot(path), "joints[1].drive: joint ... : must be a mapping ... ", ModelError)
