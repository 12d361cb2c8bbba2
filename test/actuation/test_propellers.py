"""Propellers of a flying base: thrusts, tilts and their derivatives, against the wrench that they give."""

from math import factorial

import numpy as np
import pytest
from oracles.motions import random_base, random_stack
from refusals import assert_refused, like, misshapen, refused

from hodyn_ros import (
    BaseMotion,
    InputError,
    ModelError,
    Propeller,
    PropellerLimits,
    Propellers,
    Robot,
    SingularError,
    share,
)
from hodyn_ros.array import Array
from hodyn_ros.lie.motion import BASE_REPRESENTATIONS
from hodyn_ros.lie.se3 import exp_screw

X, Y, Z = np.hstack([np.eye(3), np.zeros((3, 3))])


def tilted(a: float = 0.2, alpha: float = 0.35, beta: float = 0.17) -> Propellers:
    """Six propellers tilted about two axes, as TiltHex's (Ali et al., eq. 28)."""
    shift = np.eye(4)
    shift[0, 3] = a
    propellers, limits = [], PropellerLimits(most=12.0, rate=40.0)
    for i in range(1, 7):
        turn = exp_screw(Z, np.array((2 - i) * np.pi / 3))
        sign = (-1.0) ** i
        pose = turn @ shift @ exp_screw(X, np.array(sign * alpha)) @ exp_screw(Y, np.array(beta))
        propellers.append(Propeller(f"p{i}", pose, 0.016 * sign, limits, coefficient=1e-5))
    return Propellers(propellers)


def tilting() -> Propellers:
    """Four propellers whose servos turn them about their arms."""
    shift = np.eye(4)
    shift[0, 3] = 0.25
    poses = [exp_screw(Z, np.array(i * np.pi / 2)) @ shift for i in range(4)]
    return Propellers(
        [Propeller(f"t{i}", pose, 0.01 * (-1) ** i, tilts=True) for i, pose in enumerate(poses)]
    )


def at(stack: Array, t: float) -> Array:
    return np.asarray(sum(row * t**k / factorial(k) for k, row in enumerate(stack)))


def test_a_propeller_pushes_along_its_axis_and_turns_about_it() -> None:
    """By hand: force along the axis, moment of that force about the base's origin, and drag."""
    propellers = tilted()
    for i, propeller in enumerate(propellers.propellers):
        axis, point = propeller.pose[:3, 2], propeller.pose[:3, 3]
        expected = [*(propeller.drag * axis + np.cross(point, axis)), *axis]
        np.testing.assert_allclose(propellers.wrench(np.eye(6)[i]), expected, atol=1e-15)


def test_six_tilted_propellers_give_any_wrench_and_its_derivatives() -> None:
    propellers, wrench = tilted(), random_stack(1, 4, 6)
    motion = propellers.motion(wrench)
    np.testing.assert_allclose(motion.thrusts @ propellers.allocation.T, wrench, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.left, 0.0, atol=1e-12)
    assert not motion.tilts.any()


def test_a_wrench_in_the_world_is_turned_with_the_base() -> None:
    """The thrusts a moment later are the sum of their series, from the wrench and the pose at that moment."""
    propellers, orders, step = tilted(), 12, 0.02
    moving = random_base(2, orders, "spatial")
    base = BaseMotion(moving.pose, moving.twists)
    wrench = random_stack(3, orders, 6)
    thrusts = propellers.motion(wrench, base).thrusts
    later = at(base.pose_derivatives(), step)
    moment, force = at(wrench, step)[:3], at(wrench, step)[3:]
    body = np.concatenate(
        [later[:3, :3].T @ (moment - np.cross(later[:3, 3], force)), later[:3, :3].T @ force]
    )
    np.testing.assert_allclose(
        at(thrusts, step), propellers.motion(body[None]).thrusts[0], rtol=0, atol=1e-11
    )


def test_tilting_propellers_follow_in_time() -> None:
    """Thrusts and angles a moment later, by their series, give the wrench of that moment, by its own."""
    propellers, orders, step = tilting(), 12, 0.01
    wrench = 0.3 * random_stack(4, orders, 6)
    wrench[0, 5] += 20.0
    motion = propellers.motion(wrench)
    np.testing.assert_allclose(motion.left, 0.0, atol=1e-12)
    found = propellers.wrench(at(motion.thrusts, step), at(motion.tilts, step))
    np.testing.assert_allclose(found, at(wrench, step), rtol=0, atol=1e-11)
    assert (motion.thrusts[0] > 0.0).all() and np.abs(motion.tilts[1:]).max() > 1e-3


def test_what_a_flat_quadpropeller_cannot_give_is_left() -> None:
    shift = np.eye(4)
    shift[0, 3] = 0.2
    poses = [exp_screw(Z, np.array(i * np.pi / 2)) @ shift for i in range(4)]
    flat = Propellers([Propeller(f"r{i}", pose, 0.02 * (-1) ** i) for i, pose in enumerate(poses)])
    motion = flat.motion(np.array([[0.1, 0.2, 0.03, 1.0, -2.0, 10.0]]))
    np.testing.assert_allclose(motion.left, [[0.0, 0.0, 0.0, 1.0, -2.0, 0.0]], atol=1e-12)
    assert motion.thrusts.sum() == pytest.approx(10.0)


@pytest.mark.parametrize("off", [0.0, 1e-17, -3e-16])
def test_propellers_on_one_axis_lift_whatever_rounding_leaves_of_their_levers(off: float) -> None:
    pose = np.eye(4)
    pose[0, 3] = off
    pair = Propellers([Propeller("upper", pose, 0.02), Propeller("lower", pose, -0.02)])
    motion = pair.motion([[0.0, 0.0, 0.04, 0.0, 0.0, 10.0]])
    np.testing.assert_allclose(motion.thrusts, [[6.0, 4.0]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.left, 0.0, rtol=0, atol=1e-12)


def test_the_aerial_manipulator_hovers_on_its_propellers() -> None:
    robot = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    propellers = tilted()
    np.testing.assert_allclose(robot.propellers.allocation, propellers.allocation, rtol=0, atol=1e-13)
    q = np.zeros((5, 6))
    base = BaseMotion(np.eye(4), np.zeros((4, 6)))
    wrench, _ = robot.inverse_dynamics(q, base)
    motion = propellers.motion(wrench, base)
    weight = robot.model.masses.sum() * 9.81
    assert (motion.thrusts[0] @ propellers.allocation.T[:, 5]) == pytest.approx(weight, rel=1e-12)
    np.testing.assert_allclose(motion.thrusts[1:], 0.0, atol=1e-12)
    assert propellers.exceeded(motion) == (False, False, False)
    assert propellers.check(motion) == []
    for row, value in ((0, 13.0), (0, -1.0), (1, -50.0)):
        beyond = motion._replace(thrusts=motion.thrusts.copy())
        beyond.thrusts[row, 2] = value
        assert propellers.exceeded(beyond) == (row == 0, row == 1, False)
    motion.thrusts[0, 2], motion.thrusts[1, 3], motion.thrusts[0, 4] = 13.0, -50.0, -1.0
    told = propellers.check(motion)
    assert [line.split(":")[0] for line in told] == ["propeller 'p3'", "propeller 'p4'", "propeller 'p5'"]
    assert "13 N, and 12 N is the most" in told[0] and "50 N/s, and 40 N/s" in told[1]


def test_speeds_are_roots_of_thrusts() -> None:
    propellers, step = tilted(), 0.01
    thrusts = np.vstack([np.full((1, 6), 6.0), random_stack(5, 9, 6)])
    speeds = propellers.speeds(thrusts)
    np.testing.assert_allclose(1e-5 * at(speeds, step) ** 2, at(thrusts, step), rtol=1e-13)
    assert_refused(
        (lambda: tilting().speeds(np.ones((1, 4))), "propeller 't0' has no coefficient"),
        (lambda: propellers.speeds(np.zeros((1, 6))), "the thrust of propeller 'p1' is 0.0 N"),
    )


def test_a_batch_is_every_sample_on_its_own() -> None:
    propellers, stacks = tilting(), np.array([0.3 * random_stack(seed, 4, 6) for seed in range(3)])
    stacks[:, 0, 5] += 20.0
    whole = propellers.motion(stacks)
    for i, stack in enumerate(stacks):
        for part, one in zip(whole, propellers.motion(stack), strict=True):
            np.testing.assert_allclose(part[i], one, rtol=0, atol=1e-13)


def test_what_is_wrong_is_named() -> None:
    assert_refused(
        (lambda: tilting().motion(np.zeros((2, 6))), "propeller 't0' tilts and has no thrust", SingularError),
        (lambda: tilted().motion(np.zeros(6)), misshapen("the base wrench", (6,))),
        (lambda: PropellerLimits(least=2.0, most=1.0), "thrusts from 2 to 1 N leave none", ModelError),
        (lambda: PropellerLimits(tilt_rate=0.0), "limit tilt_rate is 0; make it positive", ModelError),
        (lambda: Propeller("a", np.eye(4), 0.0, PropellerLimits(least=-1.0), tilts=True),
         "propeller 'a' tilts", ModelError),
        (lambda: Propeller("a", np.eye(4), 0.0, PropellerLimits(tilt=1.0)),
         "propeller 'a' does not tilt", ModelError),
        (lambda: Propellers([Propeller("a", np.eye(4)), Propeller("a", np.eye(4))]),
         "names of their own", ModelError),
    )  # fmt: skip


def test_a_base_in_any_frame_gives_the_same_thrusts() -> None:
    """And those of its wrench in the body frame, which NumPy turns there."""
    base, wrench = random_base(6, 5, "spatial"), random_stack(7, 4, 6)
    moving = BaseMotion(base.pose, base.twists)
    wrench[0, 5] += 30.0
    for propellers in (tilted(), tilting()):
        expected = propellers.motion(moving.wrenches_in_body(wrench))
        for frame in BASE_REPRESENTATIONS:
            found = propellers.motion(wrench, moving.in_representation(frame))
            for part, one in zip(found, expected, strict=True):
                np.testing.assert_allclose(part, one, rtol=1e-10, atol=1e-10)
    with pytest.raises(InputError, match="needs 3 twists of each sample"):
        tilted().motion(wrench, BaseMotion(np.eye(4), np.zeros((2, 6))))


def test_a_sample_without_thrust_is_named_in_a_batch() -> None:
    stacks = np.zeros((3, 2, 6))
    stacks[:, 0, 5] = 20.0, 20.0, 0.0
    refused(lambda: tilting().motion(stacks), like(SingularError, sample=2))
