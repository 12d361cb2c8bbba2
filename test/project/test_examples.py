"""The examples as users run them: commands that print figures and write pictures."""

import importlib
import struct
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from oracles import mp_dynamics as mp
from oracles.random_trees import Tree
from places import CONFIG, EXAMPLES, ROOT
from run_examples import run_example

from hodyn_ros.trajectory import read_trajectory

PICTURES = {
    "aerial_manipulator": ("aerial_motion.png", "aerial_efforts.png", "aerial_errors.png"),
    "identify_panda": ("panda_identified.png",),
    "panda_third_order": ("panda_torques.png", "panda_differentiation.png"),
}

# Largest numbers of every joint in Figures 2 to 5 of Kumar & Mueller [N.m/s^r], taken from the curves of the
# vector graphics published with their scripts, where points lie on a raster of 3e-6 of the axis.
PUBLISHED_PEAKS = [
    [13.5476, 32.4327, 7.7045, 14.6769, 1.3061, 1.4753, 0.1367],
    [77.0650, 137.5356, 33.4329, 60.8099, 8.7569, 7.7117, 0.8082],
    [719.7808, 599.7481, 268.1936, 236.0257, 48.6810, 45.9942, 7.4589],
    [7997.0146, 5431.1837, 2690.8921, 2326.9971, 513.5860, 424.5831, 83.6851],
]
RASTER = 5e-6


def quick_table(name: str, out: Path) -> list[list[float]]:
    """Run an example in short mode; return the rows of its table after the order, nan where it has none."""
    done = run_example(name, "--quick", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert {line.removeprefix("wrote ") for line in done.stdout.splitlines() if line.startswith("wrote")} == {
        str(out / picture) for picture in PICTURES[name]
    }
    rows = [line.split() for line in done.stdout.splitlines() if line[:5].strip().isdigit()]
    assert [int(row[0]) for row in rows] == list(range(len(rows)))
    return [[np.nan if cell == "-" else float(cell) for cell in row[1:]] for row in rows]


def assert_is_picture(path: Path) -> None:
    """Check for a PNG 1210 pixels wide with something on it."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert width == 1210
    assert 500 < height < 1700
    assert len(content) > 20_000


@pytest.fixture
def panda(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("panda_third_order")


def test_every_example_is_tested() -> None:
    commands = {path.stem for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text()}
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "test").rglob("test_*.py"))
    assert commands
    assert not {command for command in commands if f'"{command}"' not in tests}


def test_the_aerial_manipulator_returns_to_its_motion(tmp_path: Path) -> None:
    table = quick_table("aerial_manipulator", tmp_path)
    assert len(table) == 4
    for joints, base, rounding, efforts in table:
        assert joints <= 10.0 * rounding
        assert base <= 10.0 * rounding
        assert efforts <= 1e-13
    assert table[0][0] <= 1e-9
    for picture in PICTURES["aerial_manipulator"]:
        assert_is_picture(tmp_path / picture)


def test_the_panda_agrees_with_the_published_recursions_and_with_differences(tmp_path: Path) -> None:
    table = quick_table("panda_third_order", tmp_path)
    assert len(table) == 4
    for _, _, formulations, _ in table:
        assert formulations <= 1e-13
    # best of all steps; each differentiation costs about two digits
    for r, bound in ((1, 1e-12), (2, 1e-10), (3, 1e-8)):
        assert 0.0 < table[r][3] <= bound
    for picture in PICTURES["panda_third_order"]:
        assert_is_picture(tmp_path / picture)


def test_the_panda_is_identified_to_derivatives_that_were_not_measured(tmp_path: Path) -> None:
    table = quick_table("identify_panda", tmp_path)
    assert len(table) == 3
    for (_, rms, relative), bound in zip(table, (0.005, 0.01, 0.03)):
        assert 0.0 < relative <= bound  # noise of 0.3 N m on torques of 70 N m, in 300 samples
        assert rms > 0.0
    assert_is_picture(tmp_path / PICTURES["identify_panda"][0])


def test_the_published_figures_are_reproduced(panda: ModuleType) -> None:
    times = np.linspace(0.0, panda.DURATION, 10001)  # those of the scripts
    motion = read_trajectory(CONFIG / "panda_validation.yaml").sample(times, 5)
    found = np.abs(panda.torques_of_published_figures(motion)).max(axis=0)
    off = np.abs(found - PUBLISHED_PEAKS).max(axis=1) / np.max(PUBLISHED_PEAKS, axis=1)
    assert (off <= RASTER).all(), off


def test_the_published_reading_is_that_of_inertias_about_the_link_frames(panda: ModuleType) -> None:
    """By exact arithmetic on bodies whose second moments are simply those of the other reading."""
    model = panda.panda(gravity=False).model
    parallel_axis = [
        mass * ((com @ com) * np.eye(3) - np.outer(com, com)) for mass, com in zip(model.masses, model.coms)
    ]
    tree = replace(Tree.of(model), inertias=model.inertias - np.array(parallel_axis))
    assert min(np.linalg.eigvalsh(inertia)[0] for inertia in tree.inertias) < 0.0
    motion = read_trajectory(CONFIG / "panda_validation.yaml").sample(1.3, 5)
    expected = mp.to_float(mp.inverse_dynamics(tree, motion).torques)
    found = panda.torques_of_published_figures(motion[None])[0]
    assert (np.abs(found - expected).max(axis=1) <= 1e-13 * np.abs(expected).max(axis=1)).all()


def test_accuracy_is_what_rounding_leaves(tmp_path: Path) -> None:
    done = run_example("accuracy", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")]
    values = np.array([[float(value) for value in line[-2:]] for line in lines])
    errors, limits = values[::2], values[1::2]
    assert len(errors) == 3 + 3 + 2 + 2  # of two trees, of partial derivatives, with loops
    assert (errors > 0.0).all()
    assert (errors <= 8.0 * limits).all(), errors / limits
    assert_is_picture(tmp_path / "accuracy.png")
