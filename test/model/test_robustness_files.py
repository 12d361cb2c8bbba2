"""Files that are no robots and no motions: random bytes, and good files with bytes gone wrong."""

import importlib.util
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import DATA
from ros_processes import start_node
from sweeps import THOROUGH

from hodyn_ros import Robot, share
from hodyn_ros.errors import HodynError
from hodyn_ros.trajectory.files.reader import read_trajectory

READERS: dict[str, Callable[[Path], Any]] = {
    "robot.yaml": Robot.load,
    "robot.urdf": Robot.from_urdf,
    "motion.yaml": read_trajectory,
}
URDF = DATA / "branched.urdf"
SEEDS = range(150 if THOROUGH else 50)


def random_bytes(seed: int) -> bytes:
    """Return up to a kilobyte of anything; every third time of what texts are made of."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1000))
    if seed % 3:
        return rng.bytes(length)
    letters = b"abc xyz 0123456789.e-+\n\t:,[]{}<>/='\"#&*!|%@`~\\"
    return bytes(letters[i] for i in rng.integers(len(letters), size=length))


def spoiled(seed: int, good: bytes) -> bytes:
    """Return a good file with a few bytes changed, left out, or put in twice."""
    rng = np.random.default_rng(seed)
    data = bytearray(good)
    for place in rng.integers(len(good) - 100, size=int(rng.integers(1, 5))):
        kind, length = rng.integers(3), int(rng.integers(1, 60))
        if kind == 0:
            data[place] = int(rng.integers(256))
        elif kind == 1:
            del data[place : place + length]
        else:
            data[place:place] = data[place : place + length]
    return bytes(data)


def read(path: Path) -> str:
    """Read a file and return the error; empty where it is, after all, a good one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about figures that look odd
        try:
            READERS[path.name](path)
        except HodynError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("name", READERS)
def test_random_bytes_are_refused_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for seed in SEEDS:
        path.write_bytes(random_bytes(seed))
        assert name in read(path), seed


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("robot.yaml", "panda.yaml"),
        ("robot.yaml", "planar_3rrr.yaml"),
        ("robot.urdf", ""),
        ("motion.yaml", "panda_excitation.yaml"),
    ],
)
def test_good_files_gone_wrong_are_refused_by_name_or_still_good(
    name: str, good: str, tmp_path: Path
) -> None:
    source = share.find("config", good) if good else URDF
    path = tmp_path / name
    path.write_bytes(source.read_bytes())
    assert read(path) == ""
    rejected = 0
    for seed in SEEDS:
        path.write_bytes(spoiled(seed, source.read_bytes()))
        error = read(path)
        assert not error or name in error, (seed, error)
        rejected += bool(error)
    assert rejected > len(SEEDS) // 4


@pytest.mark.skipif(
    importlib.util.find_spec("rclpy") is None,
    reason="rclpy is not installed; the nodes come with the ROS build (make)",
)
def test_nodes_end_with_one_line_on_random_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(23)
    for name in READERS:
        (tmp_path / name).write_bytes(rng.bytes(400))
    (tmp_path / "outer.yaml").write_text("urdf: robot.urdf\n")
    cases: dict[str, tuple[str, dict[str, object]]] = {
        "robot.yaml": ("dynamics_node", {"robot_config": tmp_path / "robot.yaml"}),
        "robot.urdf": ("dynamics_node", {"robot_config": tmp_path / "outer.yaml"}),
        "motion.yaml": ("trajectory_node", {"trajectory": tmp_path / "motion.yaml"}),
    }
    with ExitStack() as stack:
        nodes = {
            name: stack.enter_context(start_node(node, parameters))
            for name, (node, parameters) in cases.items()
        }
        for name, process in nodes.items():
            assert process.wait() == 1, process.output()
            assert len(process.lines) == 1, process.output()
            assert process.lines[0].startswith("error: ") and name in process.lines[0]
