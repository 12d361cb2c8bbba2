"""Descriptions of parallel robots that cannot be right are rejected by name."""

from typing import Any

import numpy as np
from oracles.parallel_robots import gough_stewart, planar_3rrr
from refusals import Row, assert_refused

from hodyn_ros import BaseMotion, Limb, ModelError, ParallelRobot, Platform, Robot
from hodyn_ros.array import Array


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


def with_limb(number: int = 0, *, planar: bool = False, **change: Any) -> Robot:
    """Build a robot of whose limbs one is described otherwise."""
    arguments = planar_arguments() if planar else platform_arguments()
    arguments["limbs"][number].update(change)
    return build(arguments)


def whole(number: int, **change: Any) -> Robot:
    """Build a robot of whose limbs one is described with a row for the platform."""
    tree = gough_stewart().limbs[number]
    rows = {name: getattr(tree, name).copy() for name in ("placements", "masses", "coms", "inertias")}
    for name, (place, value) in change.items():
        rows[name][place] += value
    return with_limb(number, name="second", **rows)


def with_platform(planar: bool = False, side: float = 0.08, **change: Any) -> Robot:
    arguments = planar_arguments(side) if planar else platform_arguments()
    return build({**arguments, "platform": {**arguments["platform"], **change}})


def with_freedom(platform_dof: Any, side: float = 0.08) -> Robot:
    return build({**planar_arguments(side), "platform_dof": platform_dof})


def driven(*by_limb: Any) -> Robot:
    arguments = planar_arguments()
    for limb, joints in zip(arguments["limbs"], by_limb):
        limb["driven"] = joints
    return build(arguments)


def named(*ends: str) -> Robot:
    arguments = planar_arguments()
    for limb, end in zip(arguments["limbs"], ends):
        limb.update(joint_names=[f"{name}{end}" for name in "abc"], driven=[f"a{end}"])
    return build(arguments)


def without(number: int, key: str, other: str = "") -> Robot:
    arguments = platform_arguments()
    value = arguments["limbs"][number].pop(key)
    if other:
        arguments["limbs"][number][other] = value
    return build(arguments)


def dof(*columns: int) -> Array:
    return np.eye(6)[:, list(columns)]


SCREWS, ARM = platform_arguments()["limbs"][0]["screws"], planar_arguments()["limbs"][1]["screws"]
ROWS: dict[str, Row] = {
    "joints of one name": (lambda: named("", "", ""), "several joints are called 'a'"),
    "platform twice": (lambda: whole(3, masses=(-1, 8.08)), "limb 'second': the platform is counted twice"),
    "open": (
        lambda: whole(1, placements=((-1, 0, 3), 0.002)),
        "limb 'second' does not close at the reference pose: it ends 0.002 m and 0 rad"),
    "freedom that it has not": (
        lambda: with_freedom(dof(2, 3)), "wrong mobility: motions along columns 0 and 1"),
    "freedom too little": (
        lambda: with_freedom(dof(3, 4)),
        "wrong mobility: the limbs let the platform move in 3 directions, platform_dof has 2"),
    "freedom too much": (
        lambda: with_freedom(dof(2, 3, 4, 5)),
        "wrong mobility: limb 'limb1' does not let the platform move along column 3"),
    "all freedoms": (
        lambda: with_freedom(np.eye(6)), "limb 'limb1' does not let the platform move along column 0"),
    "freedoms of zeros": (
        lambda: with_freedom(np.zeros((6, 2))), "columns of platform_dof are linearly dependent"),
    "freedoms of ones": (
        lambda: with_freedom(np.ones((6, 2))), "columns of platform_dof are linearly dependent"),
    "freedoms (3, 3)": (lambda: with_freedom(np.eye(3)), "must be a (6, delta) matrix"),
    "no freedom": (lambda: with_freedom(np.zeros((6, 0))), "must be a (6, delta) matrix"),
    "freedom NaN": (
        lambda: with_freedom(np.full((6, 1), np.nan)),
        "platform_dof[0, 0] is nan; all numbers must be finite"),
    "freedom of letters": (lambda: with_freedom("xyz"), "platform_dof must be numbers"),
    "mass beside the hinge": (
        lambda: with_platform(True, 0.0, com=[0.01, 0.0, 0.0]), "put its centre of mass on the axis"),
    "drive missing": (
        lambda: driven([0], [0], []), "2 driven joints cannot hold a platform with 3 degrees of freedom"),
    "no drives": (lambda: driven((), (), ()), "no joint is driven"),
    "loose on a common hinge": (
        lambda: with_freedom(dof(2, 3, 4), side=0.0),
        "with all 3 driven joints at rest the platform can still move"),
    **{
        f"driven {joint!r}": (
            lambda joint=joint: with_limb(driven=[joint]), f"there is no joint {joint!r} to be driven")
        for joint in (6, -1, True, 2.0, "slide")
    },
    "driven, limb": (
        lambda: with_limb(driven=[6]),
        "limb 'limb1': there is no joint 6 to be driven; its joints are 0 to 5"),
    "driven twice": (lambda: with_limb(driven=[2, 2]), "driven holds a joint twice"),
    "driven None": (lambda: with_limb(driven=None), "driven must be a list of joints, found NoneType"),
    "masses": (
        lambda: with_limb(masses=np.ones(4)),
        "limb 'limb1': masses must have shape (5,), a row for every body but"),
    "negative masses": (
        lambda: with_limb(masses=-np.ones(5)), "limb 'limb1': body 'body1' has the negative mass -1 kg"),
    "coms": (lambda: with_limb(coms="here"), "limb 'limb1': coms must be numbers"),
    "inertias": (
        lambda: with_limb(inertias=np.full((5, 3, 3), np.inf)),
        "inertias[0, 0, 0] is inf; all numbers must be finite"),
    "screws": (
        lambda: with_limb(screws=np.zeros((6, 5))), "screws must have shape (joints, 6), found (6, 5)"),
    "screws that are no unit screws": (
        lambda: with_limb(screws=2.0 * np.eye(6)),
        "limb 'limb1': the screw of joint 'limb1_joint1' is not a unit screw"),
    "joint names": (
        lambda: with_limb(joint_names=["a"]), "limb 'limb1': joint_names must hold 6 names, found 1"),
    "limb names": (lambda: with_limb(name="limb2"), "several limbs are called 'limb2'"),
    "seven joints": (
        lambda: with_limb(screws=np.concatenate([SCREWS, SCREWS[-1:]])),
        "limb 'limb1' has 7 joints: one with more than six moves while"),
    "singular at home": (
        lambda: with_limb(1, planar=True, screws=np.array([ARM[0], ARM[0], ARM[2]])),
        "limb 'limb2' is singular at the home pose: its 3 joints move"),
    "key misspelt": (lambda: without(2, "masses", "mass"), "limb 2 has no 'mass'; did you mean 'masses'"),
    "key missing": (lambda: without(2, "masses"), "limb 2 misses 'masses'"),
    "key of the platform": (
        lambda: build({**platform_arguments(), "platform": {"mass": 1.0, "inertias": np.eye(3)}}),
        "the platform has no 'inertias'; did you mean 'inertia'"),
    "limbs": (
        lambda: build({**platform_arguments(), "limbs": {}}), "limbs must be a list of limbs, found dict"),
    "limb": (
        lambda: build({**platform_arguments(), "limbs": [1]}),
        "limb 0 must be a Limb or a mapping, found int"),
    "mass": (lambda: with_platform(mass=-1.0), "the platform has the negative mass -1 kg"),
    "mass of letters": (lambda: with_platform(mass="heavy"), "the mass of the platform must be numbers"),
    "com": (
        lambda: with_platform(com=np.zeros(2)), "the centre of mass of the platform must have shape (3,)"),
    "inertia": (
        lambda: with_platform(inertia=np.triu(np.ones((3, 3)))),
        "the inertia of the platform is not symmetric"),
    "negative inertia": (
        lambda: with_platform(inertia=np.diag([1.0, 1.0, -1.0])),
        "the inertia of the platform has a negative principal moment"),
    "placement": (
        lambda: with_platform(placement=2.0 * np.eye(4)),
        "the placement of the platform must be a homogeneous matrix"),
    "gravity": (
        lambda: build({**platform_arguments(), "gravity": [0.0, -9.81]}), "gravity must have shape (3,)"),
}  # fmt: skip


def test_descriptions_that_cannot_be() -> None:
    assert_refused(ROWS, error=ModelError)


def test_what_is_beside_it_can_be() -> None:
    assert named("0", "1", "2").driven_joints == ("a0", "a1", "a2")
    assert len(driven([0, 1], [0], []).driven_joints) == 3
    assert with_platform(True, 0.0, com=[0.0, 0.0, 0.01]).coordinates == ("platform.x", "platform.y")
