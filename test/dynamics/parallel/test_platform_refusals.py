"""What calls of platforms on limbs refuse, with which words."""

from functools import cache

import numpy as np
import pytest
from oracles.parallel_robots import gough_stewart, planar_3rrr
from refusals import Row, assert_refused, misshapen, not_finite, unknown

from hodyn_ros import AppliedWrench, BaseMotion, ModelError, OverflowingError, ParallelRobot, Robot

pytestmark = pytest.mark.thorough

HINGE, PLATFORM = planar_3rrr(side=0.0), gough_stewart()
START = BaseMotion(HINGE.placement, np.zeros((1, 6)))
REST = BaseMotion(HINGE.placement, np.zeros((2, 6)), representation="body_fixed")
STILL = BaseMotion(PLATFORM.placement, np.zeros((2, 6)))
THREE = BaseMotion(np.array([HINGE.placement] * 3), np.zeros((3, 2, 6)))
PUSHED = AppliedWrench("limb1_body1", np.zeros(6))
NONE, ONE = np.zeros((5, 0)), np.zeros((1, 3))


@cache
def hinge() -> Robot:
    return ParallelRobot.from_screws(**HINGE.arguments())


@cache
def hexapod() -> Robot:
    return ParallelRobot.from_screws(**PLATFORM.arguments())


@cache
def arm() -> Robot:
    return Robot.from_screws([-1], [[0, 0, 1, 0, 0, 0]], [np.eye(4)], [1.0], [np.zeros(3)], [np.eye(3)])


OF_TORQUES = misshapen("the torques")
ROWS: dict[str, Row] = {
    **{
        f"torques {shape}": (lambda s=shape: hinge().forward_dynamics(None, np.zeros(s), START), OF_TORQUES)
        for shape in ((1, 2), (3,), (0, 3))
    },
    "torques NaN": (lambda: hinge().forward_dynamics(None, ONE * np.nan, START), not_finite("the torques")),
    "push": (lambda: hinge().forward_dynamics(None, ONE, START, np.zeros((1, 6))), "has no base to push"),
    "drives NaN": (
        lambda: hinge().motion_from_drives([0.0, np.nan, 0.0]), not_finite("the motion of the drives")),
    "drives of two": (
        lambda: hinge().motion_from_drives(np.zeros((2, 2))),
        misshapen("the motion of the drives", (2, 2))),
    "preload": (
        lambda: hinge().inverse_dynamics(None, REST, preload=np.zeros((2, 2))),
        misshapen("the preload", (2, 2))),
    "bases of a batch": (
        lambda: hinge().inverse_dynamics(np.zeros((2, 3, 0)), THREE), "as many of each argument"),
    **{
        f"{name} of nothing": (lambda name=name: getattr(hinge(), name)(None), "give")
        for name in ("inverse_dynamics", "drive_state", "joint_motion", "mass_matrix")
    },
    **{
        f"{name} without base": (
            lambda name=name: getattr(hinge(), name)(NONE),
            "is moved by its platform 'platform'; give its motion")
        for name in ("inverse_dynamics", "drive_state", "joint_motion", "mass_matrix")
    },
    "one twist": (lambda: hinge().inverse_dynamics(None, START), "this needs 2 base twists"),
    "formulation": (
        lambda: hinge().inverse_dynamics(None, REST, formulation="closed_form"),
        "robots with loops have no formulation 'closed_form'"),
    "preload of as many drives": (
        lambda: hexapod().inverse_dynamics(None, STILL, preload=np.zeros(6)),
        "a preload needs more drives than coordinates"),
    "wrenches": (
        lambda: hinge().inverse_dynamics(None, REST, "gravity"), "wrenches must be a list of AppliedWrench"),
    "wrench as numbers": (lambda: hinge().inverse_dynamics(None, REST, [np.zeros(6)]), "found ndarray in it"),
    "wrench on nothing": (
        lambda: hinge().inverse_dynamics(None, REST, AppliedWrench("leg", np.zeros(6))),
        unknown("body", "leg")),
    "too fast": (
        lambda: hexapod().inverse_dynamics(None, BaseMotion(PLATFORM.placement, np.full((4, 6), 1e200))),
        "too large", OverflowingError),
    "joints": (
        lambda: hinge().inverse_dynamics(np.zeros((5, 1)), REST),
        misshapen("the motion", (5, 1))),
    "positions": (lambda: hinge().reset(np.zeros(5)), misshapen("the positions", (5,), "(25,)")),
    "wrench on a limb": (
        lambda: hinge().inverse_dynamics(None, REST, PUSHED, "limb_decomposition"),
        "by 'limb_decomposition' wrenches act on the platform"),
    "published limbs of an arm": (
        lambda: arm().inverse_dynamics(np.zeros((3, 1)), formulation="limb_decomposition"),
        "there is no formulation 'limb_decomposition'"),
    "no limbs": (
        lambda: ParallelRobot.from_screws([], {"mass": 1.0}, np.eye(6)), "at least one limb", ModelError),
    "compiled, out": (
        lambda: hexapod().compile(0)(PLATFORM.placement, np.zeros((2, 6)), out=np.empty((2, 6))),
        "out must be a float64 array of shape (1, 6)"),
    "compiled, twists": (
        lambda: hexapod().compile(0)(PLATFORM.placement, np.zeros((1, 6))), misshapen("the twists", (1, 6))),
    "compiled, drives": (
        lambda: hinge().compile(1, "motion_from_drives")(np.zeros((2, 2))),
        misshapen("the motion of the drives", (2, 2))),
    "compiled, NaN": (
        lambda: hinge().compile(1, "motion_from_drives")(np.where(np.eye(2, 3) > 0, np.nan, 0.0)),
        not_finite("the motion of the drives", (0, 0))),
    "compiled, three arrays": (
        lambda: hinge().compile(1, "motion_from_drives")(np.zeros((2, 3)), np.eye(4), np.zeros((1, 6))),
        "expected 1 arrays ['the motion of the drives'], found 3"),
    "compiled, one array": (
        lambda: hinge().compile(1, "joint_motion")(np.eye(4)),
        "expected 2 arrays ['the pose', 'the twists'], found 1"),
    "compiled, four arrays": (
        lambda: hinge().compile(0, "inverse_dynamics")(*[np.eye(4)] * 4),
        "expected 2 arrays ['the pose', 'the twists'], found 4"),
    "compiled, no array": (
        lambda: hinge().compile(0, "mass_matrix")(),
        "expected 3 arrays ['the motion', 'the pose', 'the twists'], found 0"),
    "batch of none": (
        lambda: hinge().compile_batch(1, "motion_from_drives")(np.zeros((0, 2, 3))),
        "a batch holds one sample or more"),
    "batch of one": (
        lambda: hinge().compile_batch(1, "motion_from_drives")(np.zeros((2, 3))), "expected batches"),
    **{
        f"{compile} {what} of an arm": (lambda c=compile, what=what: getattr(arm(), c)(1, what), "loops")
        for compile in ("compile", "compile_batch")
        for what in ("joint_motion", "motion_from_drives")
    },
}  # fmt: skip


def test_platforms() -> None:
    before = hinge().positions
    assert_refused(ROWS)
    np.testing.assert_allclose(hinge().positions, before, rtol=0.0, atol=1e-12)
