"""Robots by tables of Denavit and Hartenberg: against Pinocchio, screws, and one convention by the other."""

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from oracles.motions import random_stack
from refusals import assert_refused, refused

from hodyn_ros import ModelError, Robot
from hodyn_ros.array import Array

# PUMA 560 in the standard convention (Corke and Armstrong-Helouvry, ICRA 1994): a, alpha, d, theta
PUMA = np.array(
    [
        [0.0, np.pi / 2, 0.0, 0.0],
        [0.4318, 0.0, 0.0, 0.0],
        [0.0203, -np.pi / 2, 0.15005, 0.0],
        [0.0, np.pi / 2, 0.4318, 0.0],
        [0.0, -np.pi / 2, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ]
)
RNG = np.random.default_rng(5)
ODD = RNG.uniform(-1.0, 1.0, (5, 4))
KINDS = ("revolute", "prismatic", "revolute", "revolute", "prismatic")


def pose(axis: str, angle: float = 0.0, shift: float = 0.0) -> Array:
    """A turn about an axis and a shift along it."""
    vector = np.eye(3)["xz".index(axis) * 2]
    found = np.eye(4)
    found[:3, :3] = pin.exp3(vector * angle)
    found[:3, 3] = vector * shift
    return found


def bodies(n: int) -> dict[str, Array]:
    """Random masses, centres of mass and inertias."""
    roots = RNG.uniform(-0.3, 0.3, (n, 3, 3))
    inertias = roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(3)
    return {"masses": RNG.uniform(1, 3, n), "coms": RNG.uniform(-0.2, 0.2, (n, 3)), "inertias": inertias}


def pinocchio_torques(table: Array, kinds: Any, convention: str, given: dict[str, Array], q: Array) -> Array:
    """Torques of a chain that Pinocchio builds, its joints about or along their own z axes."""
    model = pin.Model()
    joint, before = 0, np.eye(4)
    for i, (a, alpha, d, theta) in enumerate(table):
        standard = convention == "standard"
        if not standard:
            before = pose("x", alpha, a)
        turn = pose("z", theta, d)
        kind = pin.JointModelRZ() if kinds[i] == "revolute" else pin.JointModelPZ()
        # turn and shift along z commute with the motion of the joint
        joint = model.addJoint(joint, kind, pin.SE3(before @ turn), f"joint{i}")
        after = pose("x", alpha, a) if standard else np.eye(4)
        inertia = pin.Inertia(given["masses"][i], given["coms"][i], given["inertias"][i])
        model.appendBodyToJoint(joint, inertia, pin.SE3(after))
        before = after
    result: Array = pin.rnea(model, model.createData(), *q)
    return result


@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize(("table", "kinds"), [(PUMA, ("revolute",) * 6), (ODD, KINDS)], ids=["puma", "odd"])
def test_torques_are_those_of_pinocchio(table: Array, kinds: tuple[str, ...], convention: Any) -> None:
    given = bodies(len(table))
    robot = Robot.from_dh(table, **given, convention=convention, kinds=kinds)
    q = RNG.uniform(-1.0, 1.0, (3, len(table)))
    expected = pinocchio_torques(table, kinds, convention, given, q)
    np.testing.assert_allclose(robot.inverse_dynamics(q)[0], expected, rtol=1e-11, atol=1e-11)


def test_one_robot_by_both_conventions() -> None:
    """The axes of a standard table are those of a modified one whose a and alpha stand one row later."""
    modified = PUMA.copy()
    modified[0, :2], modified[1:, :2] = 0.0, PUMA[:-1, :2]
    given = bodies(6)
    moved = {key: value.copy() for key, value in given.items()}
    for i, (a, alpha, _, _) in enumerate(PUMA):  # frames of the bodies, seen from those of the modified table
        after = pose("x", alpha, a)
        moved["coms"][i] = after[:3, :3] @ given["coms"][i] + after[:3, 3]
        moved["inertias"][i] = after[:3, :3] @ given["inertias"][i] @ after[:3, :3].T
    q = random_stack(RNG, 4, 6)
    standard = Robot.from_dh(PUMA, **given, convention="standard").inverse_dynamics(q)
    other = Robot.from_dh(modified, **moved, convention="modified").inverse_dynamics(q)
    np.testing.assert_allclose(other, standard, rtol=1e-11, atol=1e-10)


def test_screws_of_the_zero_configuration() -> None:
    """A planar arm, whose joints turn about the y axis of the world: written down by hand."""
    table = [[0.0, -np.pi / 2, 0.3, 0.0], [0.4, 0.0, 0.0, 0.0], [0.2, 0.0, 0.0, np.pi / 2]]
    model = Robot.from_dh(table, **bodies(3), convention="standard").tree
    np.testing.assert_allclose(
        model.screws, [[0, 0, 1, 0, 0, 0], [0, 1, 0, -0.3, 0, 0], [0, 1, 0, -0.3, 0, 0.4]], atol=1e-16
    )
    np.testing.assert_allclose(model.placements[2][:3, 3], [0.4, 0.0, 0.1], atol=1e-16)


FILE = """\
name: arm
bodies:
  - {name: one, mass: 2, com: [0.1, 0, 0], inertia: &ball {about: com, ixx: 0.2, ixy: 0, ixz: 0, iyy: 0.2,
      iyz: 0.05, izz: 0.3}}
  - {name: two, mass: 1, com: [0, 0.2, 0.1], inertia: *ball}
joints:
  - {name: a, type: revolute, parent: world, child: one,
      dh: {convention: CONVENTION, a: 0.3, alpha: 0.4, d: 0.5, theta: 0.6}}
  - {name: b, type: prismatic, parent: one, child: two,
      dh: {convention: CONVENTION, a: 0.1, alpha: -0.7, d: 0.2}}
"""


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_files_say_the_same(tmp_path: Path, convention: Any) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(FILE.replace("CONVENTION", convention))
    inertia = np.array([[0.2, 0, 0], [0, 0.2, 0.05], [0, 0.05, 0.3]])
    expected = Robot.from_dh(
        [[0.3, 0.4, 0.5, 0.6], [0.1, -0.7, 0.2, 0.0]],
        [2.0, 1.0],
        [[0.1, 0, 0], [0, 0.2, 0.1]],
        [inertia, inertia],
        convention=convention,
        kinds=["revolute", "prismatic"],
    )
    q = random_stack(RNG, 4, 2)
    np.testing.assert_allclose(
        Robot.load(path).inverse_dynamics(q), expected.inverse_dynamics(q), rtol=1e-13, atol=1e-13
    )


def test_an_axis_beside_a_standard_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(
        FILE.replace("CONVENTION", "standard").replace("theta: 0.6}", "theta: 0.6}, axis: [0, 0, 1]")
    )
    refused(lambda: Robot.load(path), "robot.yaml: ... : joints[0].axis: ... 'a' ... axis out", ModelError)


def test_bad_tables_are_refused() -> None:
    assert_refused(
        ({"table": PUMA[:, :3]}, "table must have shape (n, 4)"),
        ({"table": [[0, 0, np.nan, 0]] * 6}, "finite"),
        ({"convention": "craig"}, "convention 'craig' ... standard ... modified"),
        ({"kinds": ["revolute"] * 5}, "kinds must name 6 joints"),
        ({"kinds": ["revolute"] * 5 + ["ball"]}, "joint 6 ... 'ball' ... revolute or prismatic"),
        by=lambda changes: Robot.from_dh(**{"table": PUMA, **bodies(6), "convention": "standard", **changes}),
        error=ModelError,
    )
