"""Files that are no robots and no motions: random bytes, and good files with bytes gone wrong."""

import importlib.util
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import CONFIG, DATA
from ros_processes import start_node
from sweeps import THOROUGH

from hodyn_ros import InputError, Robot
from hodyn_ros.errors import HodynError
from hodyn_ros.trajectory.files.reader import read_motion

READERS: dict[str, Callable[[Path], Any]] = {
    "robot.yaml": Robot.load,
    "robot.urdf": Robot.from_urdf,
    "motion.yaml": read_motion,
}
SCRAPS = [
    b"", b"0", b"-1", b"1e4", b"1e400", b"1e308", b".nan", b".inf", b"true", b"~", b"[]", b"{}", b"[0, 0, 0]",
    b"[1, 2]", b"rigid", b"{value: 3}", b"{value: [1, 2, 3], assumed: true}", b"a: b", b"!!int x", b"&a",
    b"*a", b"|", b"- x", b"\t", b"world", b"column", b"fixed", b"helical", b"? x", b"\xc3\xa9", b"\x07", b'"',
    b"'", b": ", b"#",
]  # fmt: skip
SEEDS = range(150 if THOROUGH else 25)


def random_bytes(seed: int) -> bytes:
    """Return up to a kilobyte of anything; every third time of what texts are made of."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1000))
    if seed % 3:
        return rng.bytes(length)
    letters = b"abc xyz 0123456789.e-+\n\t:,[]{}<>/='\"#&*!|%@`~\\"
    return bytes(letters[i] for i in rng.integers(len(letters), size=length))


def spoiled(seed: int, good: bytes) -> bytes:
    """Return a good file with a few bytes changed, left out, put in twice, or scraps of YAML for them."""
    rng = np.random.default_rng(seed)
    data = bytearray(good)
    for place in rng.integers(len(good) - 100, size=int(rng.integers(1, 5))):
        kind, length = rng.integers(6), int(rng.integers(1, 60))
        if kind == 0:
            data[place] = int(rng.integers(256))
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = data[place : place + length]
        else:
            data[place : place + length // 5] = SCRAPS[rng.integers(len(SCRAPS))]
    return bytes(data)


def read(path: Path) -> str:
    """Read a file and return the error; empty where it is, after all, a good one, of finite numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about figures that look odd
        try:
            found = READERS[path.name](path)
        except HodynError as error:
            assert "\n" not in str(error)
            return str(error)
        if isinstance(found, Robot):
            assert found.tree.n_joints > 0 and np.isfinite(found.tree.screws).all()
        else:
            with suppress(InputError):  # of a motion with fewer derivatives
                assert np.isfinite(found.sample(0.0, 4).joints).all()
    return ""


@pytest.mark.parametrize("name", READERS)
def test_random_bytes_are_refused_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for seed in SEEDS:
        path.write_bytes(random_bytes(seed))
        assert name in read(path), seed


MOTIONS = "panda_excitation", "panda_validation", "panda_repetition", "planar_3rrr_motion"
MOTIONS += ("aerial_manipulator_motion",)
GOOD = {
    "robot.yaml": [CONFIG / "panda.yaml", CONFIG / "planar_3rrr.yaml", DATA / "every_joint.yaml"],
    "robot.urdf": [DATA / "branched.urdf"],
    "motion.yaml": [CONFIG / f"{name}.yaml" for name in MOTIONS],
}


@pytest.mark.parametrize(
    ("name", "source"), [(name, source) for name, sources in GOOD.items() for source in sources]
)
def test_good_files_gone_wrong_are_refused_by_name_or_still_good(
    name: str, source: Path, tmp_path: Path
) -> None:
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
