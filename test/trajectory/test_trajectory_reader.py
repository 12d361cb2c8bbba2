"""Trajectories from YAML: what the files say, and the one line that a bad file is answered with."""

import math
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from hodyn_ros.errors import FigureWarning
from hodyn_ros.trajectory import Cosines, FourierSeries, PiecewisePolynomial, WaypointSpline, read_trajectory

FOURIER = """\
type: fourier
source: nowhere
joint_names: [a, b]
angular_frequency: 2
sine: [[1, 2], [3, 4]]
cosine: [[0.1, 0.2], [0.3, 0.4]]
offsets: [1e-1, -1]
duration: 10
"""
WAYPOINTS = """\
type: waypoints
joint_names: [a, b]
points:
  - {time: 0, positions: [0, 1], velocities: [0, 0], accelerations: [0, 0]}
  - {time: 1.5, positions: [1, 0], velocities: [0.5, 0.1]}
  - {time: 2, positions: [2, 1], note: the end}
"""
COSINES = "type: cosines\namplitudes: [1, 2]\nangular_frequencies: [3, 4]\nduration: .inf\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "motion.yaml"
    path.write_text(text)
    return path


def test_fourier(tmp_path: Path) -> None:
    motion = read_trajectory(written(tmp_path, FOURIER))
    same = FourierSeries(
        2.0,
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[0.1, 0.2], [0.3, 0.4]]),
        np.array([0.1, -1.0]),
        duration=10.0,
        joint_names=("a", "b"),
    )
    assert isinstance(motion, FourierSeries)
    assert motion.joint_names == same.joint_names
    assert motion.duration == same.duration
    assert np.array_equal(motion.sample([0.3, 1.7], 4), same.sample([0.3, 1.7], 4))


def test_cosines(tmp_path: Path) -> None:
    motion = read_trajectory(str(written(tmp_path, COSINES)))
    assert isinstance(motion, Cosines)
    assert motion.joint_names is None
    assert motion.duration == math.inf
    assert np.array_equal(motion.sample(0.0, 0), [[1.0, 2.0]])


def test_waypoints(tmp_path: Path) -> None:
    times, positions = np.array([0.0, 1.5, 2.0]), np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
    velocities, accelerations = [[0.0, 0.0], [0.5, 0.1], None], [[0.0, 0.0], None, None]
    with pytest.warns(
        FigureWarning, match=r"yaml:1: between points\[0\] and points\[1\] .* joint 'b' 4.03 off"
    ):
        motion = read_trajectory(written(tmp_path, WAYPOINTS))
    assert isinstance(motion, WaypointSpline)
    assert motion.joint_names == ("a", "b")
    same = WaypointSpline(times, positions, velocities, accelerations)
    assert np.array_equal(motion.sample([0.3, 1.7], 4), same.sample([0.3, 1.7], 4))
    smoother = read_trajectory(written(tmp_path, WAYPOINTS + "order: 5\nat_rest: false\n"))
    same = WaypointSpline(times, positions, velocities, accelerations, order=5, at_rest=False)
    assert np.array_equal(smoother.sample([0.3, 1.7], 5), same.sample([0.3, 1.7], 5))
    rough = read_trajectory(written(tmp_path, WAYPOINTS + "interpolation: piecewise\n"))
    assert isinstance(rough, PiecewisePolynomial)
    assert rough.smoothness == 0


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "", "the file is empty"),
        ("[1, 2]", ":1", "must hold keys and values, found a list"),
        ("type: [", ":1", "not readable as YAML"),
        ("points: []", ":1", "the key 'type' is missing"),
        (
            "type: forier",
            ":1",
            "type: must be fourier or ... , found the text 'forier'; did you mean 'fourier'?",
        ),
        ("type: 3", ":1", "type: must be fourier or cosines or waypoints or pose, found 3"),
        (FOURIER.replace("offsets", "offset"), ":7", "offset: unknown key; did you mean 'offsets'?"),
        (FOURIER.replace("sine: [", "sin: [", 1), ":5", "sin: unknown key; did you mean 'sine'?"),
        (FOURIER.replace("1e-1", "x"), ":7", "offsets[0]: must be a number, found the text 'x'"),
        (
            FOURIER.replace("10", "soon"),
            ":8",
            "duration: must be a number (time of the end ... found the text",
        ),
        (FOURIER.replace("10", "-1"), "", "duration must be above zero, found -1"),
        (FOURIER.replace(" [3, 4]", " [3]"), "", "sine must hold real numbers of shape"),
        (FOURIER.replace(", [0.3, 0.4]", ""), "", "cosine must have shape (2, 2), found (1, 2)"),
        (FOURIER.replace("0.4", ".nan"), ":6", "cosine[1][1]: nan is not a finite number"),
        (FOURIER.replace("[a, b]", "[a, a]"), "", "joint 'a' appears twice in joint_names"),
        (FOURIER + "duration: 3\n", ":9", "the key 'duration' is given twice"),
        (
            WAYPOINTS.replace("velocities", "velocity"),
            ":4",
            "points ... unknown key; did you mean 'velocities'?",
        ),
        (WAYPOINTS.replace("time: 1.5", '"ti\\nme": 1'), ":5", "points[1].ti me: unknown key"),
        (WAYPOINTS.replace("time: 1.5", "time: 2"), "", "times must increase: times[2] = 2 s follows 2 s"),
        (
            WAYPOINTS.replace("[1, 0]", "[1]"),
            "",
            "positions of point 1 must have shape (2,), found (1,)",
        ),
        (WAYPOINTS + "order: 4.5\n", ":7", "order: must be a whole number (highest ... , found 4.5"),
        (WAYPOINTS + "order: 9\n", "", "order must be a whole number from 2 to 8, found 9"),
        (WAYPOINTS + "order: 5\ninterpolation: piecewise\n", "", "order can be given only with ... spline"),
        (WAYPOINTS + "interpolation: cubic\n", ":7", "interpolation: must be spline or piecewise"),
        ("type: waypoints\npoints: []\n", "", "the joint trajectory has no points"),
        ("type: waypoints\npoints: [{time: 0, positions: [1]}]\n", "", "at least two waypoints, found one"),
        ("type: waypoints\npoints: [{time: 0}]\n", ":2", "the key 'positions' is missing"),
    ],
)
def test_a_bad_file_is_answered_in_one_line(tmp_path: Path, text: str, place: str, reason: str) -> None:
    path = written(tmp_path, text)
    rejected = refused(lambda: read_trajectory(path), reason)
    assert str(rejected).startswith(f"{path}{place}: ")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    refused(lambda: read_trajectory(tmp_path / "nowhere.yaml"), "cannot read ... nowhere.yaml")
