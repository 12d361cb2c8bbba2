"""Feedforward and feasibility of robots with loops: motion of coordinates in, efforts of drives out."""

from functools import partial

import numpy as np
import pytest
from linkages import motion_of, robot_of
from oracles.mechanisms import MECHANISMS, Builder, Closed, Mechanism, Z
from refusals import assert_refused, like, refused
from sweeps import some

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import SingularError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.model.drive_spec import series_elastic
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.motion_evaluator import MotionEvaluator, SampleError
from hodyn_ros.trajectory.robot_motion import MotionSample

STIFFNESS, INERTIA = np.array([800.0, 600.0]), np.array([0.4, 0.5])


def driven(name: str = "ankle", **limits: float) -> Robot:
    """Return a mechanism whose two drives are elastic."""
    robot = robot_of(MECHANISMS[name]())
    known = JointLimits(
        *(
            np.full(2, limits.get(key, sign * np.inf))
            for key, sign in (("lower", -1), ("upper", 1), ("velocity", 1), ("effort", 1), ("effort_rate", 1))
        )
    )
    return Robot(robot.tree, known, series_elastic(STIFFNESS, INERTIA), closure=robot.closure)


def test_motors_follow_from_motion_and_efforts_of_the_drives() -> None:
    robot, (y, base) = driven(), motion_of(MECHANISMS["ankle"](), 2)
    model = FeedforwardModel(robot, 2)
    assert model.joint_names == ("joint3", "joint4") and model.motion_joints == ("joint1", "joint2")
    found, one = model.compute(y, base), robot.solve_loops(y, base)
    np.testing.assert_allclose(found.efforts, one.efforts, rtol=1e-12)
    np.testing.assert_allclose(found.base_wrenches, one.base_wrench, rtol=1e-12, atol=1e-12)
    theta = one.drives[:3] + one.efforts / STIFFNESS
    np.testing.assert_allclose(found.motor_positions, theta, rtol=1e-10)
    np.testing.assert_allclose(found.motor_efforts[0], one.efforts[0] + INERTIA * theta[2], rtol=1e-10)


def test_limits_are_those_of_the_drives() -> None:
    y, base = motion_of(MECHANISMS["ankle"](), 2)
    speed = float(np.abs(driven().solve_loops(y, base).drives[1]).max())
    assert (
        FeedforwardModel(driven(velocity=0.99 * speed), 2).compute(y, base).status
        & Status.VELOCITY_LIMIT_EXCEEDED
    )
    assert not FeedforwardModel(driven(velocity=1e3 * speed), 2).compute(y, base).status


WARM = ("ankle", "planar 3-RRR", "four-bar", "mimic chain")


@pytest.mark.thorough
@pytest.mark.parametrize("name", some([*WARM, "6-UPS"], *WARM))
def test_a_law_warms_up_at_home_in_the_representation_of_either_frame(name: str) -> None:
    model = FeedforwardModel(robot_of(MECHANISMS[name]()), 2)
    model.warm_up()
    y, base = motion_of(MECHANISMS[name](), 2)
    found = model.compute(y, base)
    if base is not None:
        turned = base.in_representation("body_fixed")
        np.testing.assert_allclose(found.efforts, model.compute(y, turned).efforts, rtol=1e-10, atol=1e-10)


def test_payload_and_gravity_are_those_of_the_settings() -> None:
    robot = driven()
    y, base = motion_of(MECHANISMS["ankle"](), 0)
    plain, settings = (
        FeedforwardConfig(order=0),
        FeedforwardConfig(order=0, gravity=(0.0, 0.0, 0.0), payload_mass=1.5),
    )
    changed = settings.robot(robot)
    assert isinstance(changed, Robot)
    assert changed.tree.masses.sum() == pytest.approx(robot.tree.masses.sum() + 1.5)
    found = settings.model(changed).compute(y, base).efforts
    expected = changed.solve_loops(y, base).efforts
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.abs(found - plain.model(plain.robot(robot)).compute(y, base).efforts).max() > 0.1


def test_a_law_goes_on_where_another_one_has_been() -> None:
    robot = robot_of(MECHANISMS["four-bar"]())
    first = FeedforwardModel(FeedforwardConfig().robot(robot), 0)
    q = np.zeros((3, 1))
    for q[0] in np.linspace(0.0, 2.5, 30):
        there = first.compute(q).efforts
    second = FeedforwardModel(FeedforwardConfig().robot(robot), 0)
    assert first.positions is not None and first.positions != second.positions
    second.start_from(first.positions)
    np.testing.assert_allclose(second.compute(q).efforts, there, rtol=1e-12)


def test_what_is_checked_is_the_motion_of_the_drives() -> None:
    robot = driven()
    subject = MotionEvaluator(robot)
    assert subject.joint_names == ("joint3", "joint4") and subject.prismatic == (True, True)
    stacks = [motion_of(MECHANISMS["ankle"](), 1, seed) for seed in range(3)]
    bodies = [base.in_representation("body_fixed") for _, base in stacks if base is not None]
    sample = MotionSample(
        np.array([y for y, _ in stacks]),
        np.array([base.pose for base in bodies]),
        np.array([base.twists for base in bodies]),
    )
    motion, torques = subject.evaluate(sample)
    for i, (y, base) in enumerate(stacks):
        one = robot.solve_loops(y, base)
        np.testing.assert_allclose(motion[i], one.drives, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(torques[i], one.efforts, rtol=1e-9, atol=1e-9)


def test_a_sample_that_a_loop_cannot_follow_is_named() -> None:
    q = np.zeros((3, 3, 1))
    q[2, 0] = 3.0
    evaluate = MotionEvaluator(robot_of(MECHANISMS["RSSR"]())).evaluate
    refused(lambda: evaluate(MotionSample(q, None, None)), like(SampleError, sample=2))


def test_a_base_motion_has_to_come_where_one_is_moved() -> None:
    model = FeedforwardModel(driven(), 0)
    arm = FeedforwardModel(robot_of(MECHANISMS["four-bar"]()), 0)
    assert_refused(
        (lambda: model.compute(np.zeros((3, 2))), "has a floating base; give its motion"),
        (lambda: arm.compute(np.zeros((3, 1)), BaseMotion(np.eye(4), np.zeros((2, 6)))), "has a fixed base"),
    )


def slider_crank(crank_at_home: float, twice: bool = False) -> Robot:
    """Return a crank that a slide drives, from its angle at home; at zero the slide does not turn it.

    Or a slide and a rotor that turns with it, `twice`.
    """
    build = Builder()
    crank = build.body(-1, Z, (0, 0, 0))
    elbow = 0.3 * np.array([np.cos(crank_at_home), np.sin(crank_at_home), 0.0])
    end = np.array([elbow[0] + np.sqrt(0.25 - elbow[1] ** 2), 0.0, 0.0])
    rod = build.body(crank, Z, elbow)
    piston = build.body(-1, np.array([1.0, 0, 0]), end, slide=True)
    loop = Closed("hinge", rod, piston, end, Z)
    if twice:
        build.body(-1, Z, (1.0, 0.0, 0.0))
        return robot_of(Mechanism(build.tree(), (loop,), (0,), (2, 3), ((3, 2, 5.0, 0.0),)))
    return robot_of(Mechanism(build.tree(), (loop,), (0,), (2,)))


@pytest.mark.parametrize("twice", [False, True])
def test_near_a_dead_point_of_the_drives_a_feedforward_says_so_and_at_it_there_is_none(twice: bool) -> None:
    robot = slider_crank(1.0, twice)
    model, q = FeedforwardModel(robot, 2), np.zeros((5, 1))
    model.warm_up()
    found = {}
    for angle in (1.0, 0.7, 0.4, 0.2, 0.03):
        q[0] = angle - 1.0
        found[angle] = model.compute(q)
        np.testing.assert_allclose(found[angle].efforts, robot.solve_loops(q).efforts, rtol=1e-9)
    assert [angle for angle, one in found.items() if one.status] == [0.03]
    assert found[0.03].status is Status.NEAR_SINGULARITY
    q[0] = -1.0
    for call in (model.compute, robot.inverse_dynamics, robot.compile(2)):
        refused(partial(call, q), "its driven joints do not hold it", SingularError)


def test_a_home_that_is_singular_itself_does_not_change_where_the_robot_is() -> None:
    robot = slider_crank(0.0)
    q = np.zeros((3, 1))
    for q[0] in (0.2, 0.4, 0.6):
        there = robot.solve_loops(q).joints[0]
    state = robot.drive_state(q)
    assert not state.near_singularity
    np.testing.assert_allclose(robot.positions, there, atol=1e-12)
