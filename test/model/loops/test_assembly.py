"""Loops that are described at the zero configuration, and closed at another one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.cases import relative_errors
from refusals import assert_refused, refused

from hodyn_ros import Constraints, Loop, ModelError, Robot
from hodyn_ros.array import Array
from hodyn_ros.lie.se3 import exp, exp_screw

Z = (0.0, 0.0, 1.0)
# crank, coupler and rocker, all along x at zero, where they overlap
LENGTHS = (0.3, 0.8, 0.5)
BASE = 0.7  # from the hinge of the crank to that of the rocker


def four_bar(**changes: Any) -> Robot:
    points = np.array([[0, 0, 0], [LENGTHS[0], 0, 0], [BASE, 0, 0]], dtype=float)
    placements = np.tile(np.eye(4), (3, 1, 1))
    placements[:, :3, 3] = points
    arguments: dict[str, Any] = {
        "parents": [-1, 0, -1],
        "screws": [[*Z, *np.cross(p, Z)] for p in points],
        "placements": placements,
        "masses": [1.0, 2.0, 1.5],
        "coms": [[0.1, 0.02, 0.0], [0.4, 0.01, 0.0], [0.2, -0.02, 0.0]],
        "inertias": [np.diag([0.01, 0.02, 0.02])] * 3,
        "gravity": (0.0, -9.81, 0.0),
        "joint_names": ["crank", "coupler", "rocker"],
    }
    constraints: dict[str, Any] = {
        "loops": [
            Loop(
                1,
                2,
                "hinge",
                (LENGTHS[0] + LENGTHS[1], 0, 0),
                Z,
                (BASE + LENGTHS[2], 0, 0),
                name="pin",
            )
        ],
        "driven": ["crank"],
        "home": {"crank": 1.2, "rocker": 1.5},
    }
    arguments |= {name: changes.pop(name) for name in arguments if name in changes}
    return Robot.from_screws(**arguments, constraints=Constraints(**{**constraints, **changes}))


def closed_positions(crank: float) -> Array:
    """Return crank, coupler and rocker by the law of cosines, the coupler above the line of the hinges."""
    a, b, c = LENGTHS
    pin = a * np.array([np.cos(crank), np.sin(crank)])
    way = np.array([BASE, 0.0]) - pin
    d = np.linalg.norm(way)
    elbow = np.arctan2(way[1], way[0]) + np.arccos((b**2 + d**2 - c**2) / (2.0 * b * d))
    end = pin + b * np.array([np.cos(elbow), np.sin(elbow)])
    return np.array([crank, elbow - crank, np.arctan2(end[1], end[0] - BASE)])


def test_home_is_where_the_loop_closes() -> None:
    robot = four_bar()
    start, _ = robot.home
    joints = robot.joint_motion(start[None])[0]
    np.testing.assert_allclose(joints, closed_positions(float(start[0])), rtol=0.0, atol=1e-12)
    assert abs(start[0] - 1.2) < 0.5
    q = np.array([[1.0], [0.3], [-0.4]])
    np.testing.assert_allclose(robot.solve_loops(q).joints[0], closed_positions(1.0), rtol=0.0, atol=1e-12)


def test_home_chooses_the_branch() -> None:
    above, below = four_bar(), four_bar(home={"crank": 1.2, "coupler": -2.0, "rocker": -1.5})
    q = np.array([[1.0], [0.3], [-0.4], [0.2]])
    angles = [robot.solve_loops(q).joints[0, 2] for robot in (above, below)]
    assert angles[0] > 0.0 > angles[1]


def test_the_same_robot_described_where_it_is_closed() -> None:
    """Coordinates count from the configuration of the description, efforts do not."""
    robot = four_bar()
    at = closed_positions(1.1)
    tree = robot.tree
    placements = tree.poses(at)
    screws = [exp_twist(tree, at, i) for i in range(3)]
    pin = (placements[1] @ [LENGTHS[1], 0, 0, 1])[:3]
    other = four_bar(
        screws=screws, placements=placements, loops=[Loop(1, 2, "hinge", pin, Z, name="pin")], home=None
    )
    q = np.array([[1.3], [0.7], [-0.5], [0.4], [2.0]])
    moved = q.copy()
    moved[0] -= 1.1
    assert relative_errors(robot.inverse_dynamics(q), other.inverse_dynamics(moved)).max() < 1e-12
    ours, theirs = robot.solve_loops(q).loads["pin"], other.solve_loops(moved).loads["pin"]
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-11 * np.abs(theirs).max())


def exp_twist(tree: Any, at: Array, joint: int) -> Array:
    """Return the screw of a planar hinge where the joints stand `at`."""
    point = tree.poses(at)[joint][:3, 3]
    return np.array([*Z, *np.cross(point, Z)])


@pytest.mark.parametrize("kind", ["weld", "slider"])
def test_frames_that_are_far_turned_at_zero(kind: str) -> None:
    """Six hinges whose ends lie 170 degrees and more apart at zero."""
    rng = np.random.default_rng(5)
    n = 7 if kind == "weld" else 6
    screws, placements = [], []
    for i in range(n):
        axis, point = rng.normal(size=3), np.array([0.2 * i, *rng.uniform(-0.05, 0.05, 2)])
        axis /= np.linalg.norm(axis)
        screws.append([*axis, *np.cross(point, axis)])
        placement = np.eye(4)
        placement[:3, 3] = point
        placements.append(placement)
    closed = rng.uniform(-0.9, 0.9, n)
    end = np.eye(4)
    for screw, angle in zip(screws, closed):
        end = end @ exp_screw(np.array(screw), float(angle))
    tip = exp(rng.normal(size=6) * 0.3)  # the frame on the last body at zero
    reached = end @ tip  # where it is on the ground, when the loop is closed
    loop = Loop(
        "world",
        n - 1,
        kind,  # type: ignore[arg-type]
        reached[:3, 3],
        reached[:3, 2] if kind == "slider" else None,
        tip[:3, 3],
        tip[:3, 2] if kind == "slider" else None,
        axes=reached[:3, :3],
        axes_b=tip[:3, :3],
    )
    robot = Robot.from_screws(
        range(-1, n - 1),
        screws,
        placements,
        np.ones(n),
        np.zeros((n, 3)),
        [np.eye(3) * 0.01] * n,
        constraints=Constraints(
            [loop],
            coordinates=["joint1"],
            home={f"joint{i + 1}": float(a) + 0.3 * rng.uniform(-1, 1) for i, a in enumerate(closed)},
        ),
    )
    joints = robot.joint_motion(robot.home[0][None])[0]
    found = np.eye(4)
    for screw, angle in zip(screws, joints):
        found = found @ exp_screw(np.array(screw), float(angle))
    apart = np.linalg.inv(reached) @ found @ tip
    along = slice(0, 3) if kind == "weld" else slice(0, 2)
    np.testing.assert_allclose(apart[:3, :3], np.eye(3), rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(apart[along, 3], 0.0, rtol=0.0, atol=1e-11)


def test_what_cannot_be_assembled_is_refused() -> None:
    assert_refused(
        ({"home": {"elbow": 1.0}}, "home: ... there is no joint 'elbow'"),
        ({"home": {"crank": np.nan}}, "home"),
        ({"home": {"crank": "up"}}, "home"),
        ({"home": [1.0]}, "home must hold positions by joint, found list"),
        ({"loops": [], "home": {"crank": 1.0}}, "has no loops, so it needs no home"),
        ({"loops": [Loop(1, 2, "hinge", (9, 0, 0), Z, (BASE, 0, 0), name="pin")]},
         "loop 'pin' of robot 'robot' does not close near its home: it stays open by ... m; give joint"),
        ({"loops": [Loop(1, 2, "rod", (1, 0, 0), point_b=(2, 0, 0), name="bar")]},
         "loop 'bar' is closed at `home`, and not where its points are given; give the length of its rod"),
        ({"loops": [Loop(1, 2, "rod", (1, 0, 0), point_b=(2, 0, 0), name="bar", length=2.0)], "home": None},
         "loop 'bar' does not close at the zero configuration: its points are 1 m apart, and its rod is 2 m"),
        by=lambda changes: four_bar(**changes),
        error=ModelError,
    )  # fmt: skip


FILE = """
name: four_bar
gravity: [0, -9.81, 0]
bodies:
  - name: crank
    mass: 1
    com: [0.1, 0.02, 0]
    inertia: {about: com, ixx: 0.01, iyy: 0.02, izz: 0.02, ixy: 0, ixz: 0, iyz: 0}
  - name: coupler
    mass: 2
    com: [0.4, 0.01, 0]
    inertia: {about: com, ixx: 0.01, iyy: 0.02, izz: 0.02, ixy: 0, ixz: 0, iyz: 0}
  - name: rocker
    mass: 1.5
    com: [0.2, -0.02, 0]
    inertia: {about: com, ixx: 0.01, iyy: 0.02, izz: 0.02, ixy: 0, ixz: 0, iyz: 0}
joints:
  - {name: crank, type: revolute, parent: world, child: crank, axis: [0, 0, 1]}
  - {name: coupler, type: revolute, parent: crank, child: coupler, origin: {xyz: [0.3, 0, 0]},
     axis: [0, 0, 1]}
  - {name: rocker, type: revolute, parent: world, child: rocker, origin: {xyz: [0.7, 0, 0]}, axis: [0, 0, 1]}
frames:
  - {name: coupler_end, body: coupler, origin: {xyz: [0.8, 0, 0]}}
  - {name: rocker_end, body: rocker, origin: {xyz: [0.5, 0, 0]}}
loops:
  - {name: pin, kind: hinge, a: coupler_end, b: rocker_end}
home: {crank: 1.2, rocker: 1.5}
driven: [crank]
"""


def test_a_robot_file_says_where_loops_close(tmp_path: Path) -> None:
    path = tmp_path / "four_bar.yaml"
    path.write_text(FILE, encoding="utf-8")
    robot, same = Robot.load(path), four_bar()
    q = np.array([[1.1], [0.3], [-0.4], [0.2], [1.0]])
    assert relative_errors(robot.inverse_dynamics(q), same.inverse_dynamics(q)).max() < 1e-12
    np.testing.assert_allclose(robot.home[0], same.home[0], rtol=0.0, atol=1e-12)
    path.write_text(FILE.replace("crank: 1.2", "crunk: 1.2"), encoding="utf-8")
    refused(lambda: Robot.load(path), "four_bar.yaml: ... home ... 'crunk'", ModelError)
    path.write_text(FILE.replace("[0.5, 0, 0]", "[5, 0, 0]"), encoding="utf-8")
    refused(lambda: Robot.load(path), "four_bar.yaml: loop 'pin' ... does not close near its", ModelError)


def test_a_rod_of_a_given_length_closes_a_four_bar(tmp_path: Path) -> None:
    """As the coupler does whose place it takes, on either branch."""
    path, text = tmp_path / "rod.yaml", FILE
    for name, begin, end in (
        ("body", "  - name: coupler\n", "  - name: rocker\n"),
        ("joint", "  - {name: coupler, type", "  - {name: rocker, type"),
    ):
        assert begin in text and end in text, name
        text = text[: text.index(begin)] + text[text.index(end) :]
    text = text.replace(
        "coupler_end, body: coupler, origin: {xyz: [0.8", "crank_end, body: crank, origin: {xyz: [0.3"
    )
    text = text.replace("kind: hinge, a: coupler_end", f"kind: rod, length: {LENGTHS[1]}, a: crank_end")
    q = np.array([[1.0], [0.3], [-0.4]])
    for rocker, sign in ((1.5, 1.0), (-1.5, -1.0)):
        path.write_text(text.replace("rocker: 1.5", f"rocker: {rocker}"), encoding="utf-8")
        found = Robot.load(path).solve_loops(q).joints
        home = {"crank": 1.2, "coupler": -2.0 if sign < 0.0 else 0.0, "rocker": rocker}
        expected = four_bar(home=home).solve_loops(q).joints[:, [0, 2]]
        assert sign * expected[0, 1] > 0.0
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11)
    path.write_text(text.replace("length: 0.8", "length: 0"), encoding="utf-8")
    refused(lambda: Robot.load(path), "rod.yaml: ... loops[0].length: ... must be greater than 0", ModelError)
    refused(
        lambda: Loop(0, 1, "ball", (0, 0, 0), length=1.0), "a ball has no length; a rod has one", ModelError
    )
    refused(
        lambda: Loop(0, 1, "rod", (0, 0, 0), point_b=Z, length=-1.0),
        "the length of a rod is positive",
        ModelError,
    )
