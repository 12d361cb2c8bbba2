"""Descriptions of parallel robots that cannot be right are rejected by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.parallel_robots import gough_stewart, planar_3rrr

from hodyn_ros import BaseMotion, InputError, Limb, ModelError, ParallelRobot, Platform, Robot

Array = NDArray[np.float64]


def platform_arguments() -> dict[str, Any]:
    return gough_stewart().arguments()


def planar_arguments(side: float = 0.08) -> dict[str, Any]:
    return planar_3rrr(side).arguments()


def build(arguments: dict[str, Any]) -> Robot:
    return ParallelRobot.from_screws(**arguments)


def at_rest(robot: Robot) -> BaseMotion:
    return BaseMotion(robot.home[1], np.zeros((3, 6)))


def test_types_and_mappings_say_the_same() -> None:
    arguments = platform_arguments()
    typed = ParallelRobot.from_screws(
        [Limb(**limb, name=f"leg{i}") for i, limb in enumerate(arguments["limbs"])],
        Platform(**arguments["platform"]),
        arguments["platform_dof"],
        name="six legs",
    )
    plain = build(arguments)
    forces = typed.inverse_dynamics(None, at_rest(typed))
    assert np.array_equal(forces, plain.inverse_dynamics(None, at_rest(plain)))
    assert typed.driven_joints[:2] == ("leg0_joint3", "leg1_joint3")
    assert typed.name == "six legs"


def test_a_massless_row_for_the_platform_may_be_given() -> None:
    arguments, full = platform_arguments(), platform_arguments()
    for limb, tree in zip(full["limbs"], gough_stewart().limbs):
        limb.update(placements=tree.placements, masses=tree.masses, coms=tree.coms, inertias=tree.inertias)
    rest = at_rest(build(arguments))
    expected = build(arguments).inverse_dynamics(None, rest)
    assert np.array_equal(build(full).inverse_dynamics(None, rest), expected)


def test_driven_joints_may_be_named() -> None:
    arguments = planar_arguments()
    for limb in arguments["limbs"]:
        limb.update(joint_names=["a", "b", "c"], driven="a")
    with pytest.raises(ModelError, match="several joints are called 'a'"):
        build(arguments)
    for i, limb in enumerate(arguments["limbs"]):
        limb.update(joint_names=[f"a{i}", f"b{i}", f"c{i}"], driven=[f"a{i}"])
    assert build(arguments).driven_joints == ("a0", "a1", "a2")


def test_the_platform_counts_once() -> None:
    arguments = platform_arguments()
    tree = gough_stewart().limbs[3]
    masses = tree.masses.copy()
    masses[-1] = 8.08
    arguments["limbs"][3].update(
        placements=tree.placements, masses=masses, coms=tree.coms, inertias=tree.inertias
    )
    with pytest.raises(ModelError, match="limb 'limb4': the platform is counted twice"):
        build(arguments)


def test_a_limb_that_does_not_close_is_named() -> None:
    arguments = platform_arguments()
    tree = gough_stewart().limbs[1]
    placements = tree.placements.copy()
    placements[-1, 0, 3] += 0.002
    arguments["limbs"][1].update(
        name="second",
        placements=placements,
        masses=tree.masses,
        coms=tree.coms,
        inertias=tree.inertias,
    )
    message = "limb 'second' does not close at the reference pose: it ends 0.002 m and 0 rad"
    with pytest.raises(ModelError, match=message):
        build(arguments)


def dof(*columns: int) -> Array:
    return np.eye(6)[:, list(columns)]


@pytest.mark.parametrize(
    ("platform_dof", "message"),
    [
        (dof(2, 3), "wrong mobility: motions along columns 0 and 1"),
        (dof(3, 4), "wrong mobility: the limbs let the platform move in 3 directions, platform_dof has 2"),
        (dof(2, 3, 4, 5), "wrong mobility: limb 'limb1' does not let the platform move along column 3"),
        (np.eye(6), "limb 'limb1' does not let the platform move along column 0"),
        (np.zeros((6, 2)), "columns of platform_dof are linearly dependent"),
        (np.ones((6, 2)), "columns of platform_dof are linearly dependent"),
        (np.eye(3), r"must be a \(6, delta\) matrix"),
        (np.zeros((6, 0)), r"must be a \(6, delta\) matrix"),
        (np.full((6, 1), np.nan), r"platform_dof\[0, 0\] is nan; all numbers must be finite"),
        ("xyz", "platform_dof must be numbers"),
    ],
)
def test_wrong_degrees_of_freedom_are_refused(platform_dof: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build({**planar_arguments(), "platform_dof": platform_dof})


def test_the_platform_on_a_hinge_must_have_its_mass_on_the_axis() -> None:
    arguments = planar_arguments(side=0.0)
    assert build(arguments).coordinates == ("platform.x", "platform.y")
    arguments["platform"]["com"] = np.array([0.01, 0.0, 0.0])
    with pytest.raises(ModelError, match="put its centre of mass on the axis"):
        build(arguments)
    arguments["platform"]["com"] = np.array([0.0, 0.0, 0.01])
    assert build(arguments).coordinates == ("platform.x", "platform.y")


def test_drives_must_hold_the_platform() -> None:
    arguments = planar_arguments()
    arguments["limbs"][2]["driven"] = []
    with pytest.raises(ModelError, match="2 driven joints cannot hold a platform with 3 degrees of freedom"):
        build(arguments)
    arguments["limbs"][0]["driven"] = [0, 1]
    assert len(build(arguments).driven_joints) == 3
    for limb in arguments["limbs"]:
        limb["driven"] = ()
    with pytest.raises(ModelError, match="no joint is driven"):
        build(arguments)


def test_drives_that_leave_the_platform_loose_are_refused() -> None:
    """On a common hinge the platform turns whatever the drives do."""
    arguments = {**planar_arguments(side=0.0), "platform_dof": dof(2, 3, 4)}
    with pytest.raises(ModelError, match="with all 3 driven joints at rest the platform can still move"):
        build(arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"driven": [6]}, "limb 'limb1': there is no joint 6 to be driven; its joints are 0 to 5"),
        ({"driven": [-1]}, "there is no joint -1 to be driven"),
        ({"driven": [True]}, "there is no joint True to be driven"),
        ({"driven": [2.0]}, "there is no joint 2.0 to be driven"),
        ({"driven": ["slide"]}, "there is no joint 'slide' to be driven"),
        ({"driven": [2, 2]}, "driven holds a joint twice"),
        ({"driven": None}, "driven must be a list of joints, found NoneType"),
        ({"masses": np.ones(4)}, r"limb 'limb1': masses must have shape \(5,\), a row for every body but"),
        ({"masses": -np.ones(5)}, "limb 'limb1': body 'body1' has the negative mass -1 kg"),
        ({"coms": "here"}, "limb 'limb1': coms must be numbers"),
        ({"inertias": np.full((5, 3, 3), np.inf)}, r"inertias\[0, 0, 0\] is inf; all numbers must be finite"),
        ({"screws": np.zeros((6, 5))}, r"screws must have shape \(joints, 6\), found \(6, 5\)"),
        ({"screws": 2.0 * np.eye(6)}, "limb 'limb1': the screw of joint 'limb1_joint1' is not a unit screw"),
        ({"joint_names": ["a"]}, "limb 'limb1': joint_names must hold 6 names, found 1"),
        ({"name": "limb2"}, "several limbs are called 'limb2'"),
    ],
)
def test_bad_limbs_are_refused(change: dict[str, Any], message: str) -> None:
    arguments = platform_arguments()
    arguments["limbs"][0].update(change)
    with pytest.raises(ModelError, match=message):
        build(arguments)


def test_unknown_and_missing_keys_are_named() -> None:
    arguments = platform_arguments()
    arguments["limbs"][2]["mass"] = arguments["limbs"][2].pop("masses")
    with pytest.raises(ModelError, match="limb 2 has no 'mass'; did you mean 'masses'"):
        build(arguments)
    del arguments["limbs"][2]["mass"]
    with pytest.raises(ModelError, match="limb 2 misses 'masses'"):
        build(arguments)
    with pytest.raises(ModelError, match="the platform has no 'inertias'; did you mean 'inertia'"):
        build({**platform_arguments(), "platform": {"mass": 1.0, "inertias": np.eye(3)}})
    with pytest.raises(ModelError, match="limbs must be a list of limbs, found dict"):
        build({**platform_arguments(), "limbs": {}})
    with pytest.raises(ModelError, match="limb 0 must be a Limb or a mapping, found int"):
        build({**platform_arguments(), "limbs": [1]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": -1.0}, "the platform has the negative mass -1 kg"),
        ({"mass": "heavy"}, "the mass of the platform must be numbers"),
        ({"com": np.zeros(2)}, r"the centre of mass of the platform must have shape \(3,\)"),
        ({"inertia": np.triu(np.ones((3, 3)))}, "the inertia of the platform is not symmetric"),
        (
            {"inertia": np.diag([1.0, 1.0, -1.0])},
            "the inertia of the platform has a negative principal moment",
        ),
        ({"placement": 2.0 * np.eye(4)}, "the placement of the platform must be a homogeneous matrix"),
    ],
)
def test_bad_platforms_are_refused(change: dict[str, Any], message: str) -> None:
    arguments = platform_arguments()
    with pytest.raises(ModelError, match=message):
        build({**arguments, "platform": {**arguments["platform"], **change}})


def test_a_limb_with_too_many_joints_is_refused() -> None:
    arguments = platform_arguments()
    limb = arguments["limbs"][0]
    limb["screws"] = np.concatenate([limb["screws"], limb["screws"][-1:]])
    with pytest.raises(ModelError, match="limb 'limb1' has 7 joints: one with more than six moves while"):
        build(arguments)


def test_a_limb_that_is_singular_at_home_is_refused() -> None:
    arguments = planar_arguments()
    limb = arguments["limbs"][1]
    limb["screws"] = np.array([limb["screws"][0], limb["screws"][0], limb["screws"][2]])
    with pytest.raises(ModelError, match="limb 'limb2' is singular at the home pose: its 3 joints move"):
        build(arguments)


def test_gravity_must_be_a_vector() -> None:
    with pytest.raises((ModelError, InputError), match=r"gravity must have shape \(3,\)"):
        build({**platform_arguments(), "gravity": [0.0, -9.81]})
