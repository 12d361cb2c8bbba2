"""Rotors of a flying base: thrusts, tilts and their derivatives, against the wrench that they give."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.motions import random_base, random_stack

from hodyn_ros import BaseMotion, InputError, ModelError, Robot, SingularError, share
from hodyn_ros.actuation.rotors import Rotor, Rotors
from hodyn_ros.lie.se3 import exp_screw

Array = NDArray[np.float64]
X, Y, Z = np.hstack([np.eye(3), np.zeros((3, 3))])


def tilted(a: float = 0.2, alpha: float = 0.35, beta: float = 0.17) -> Rotors:
    """Six rotors tilted about two axes, as TiltHex's (Ali et al., eq. 28)."""
    shift = np.eye(4)
    shift[0, 3] = a
    rotors = []
    for i in range(1, 7):
        turn = exp_screw(Z, np.array((2 - i) * np.pi / 3))
        sign = (-1.0) ** i
        pose = turn @ shift @ exp_screw(X, np.array(sign * alpha)) @ exp_screw(Y, np.array(beta))
        rotors.append(Rotor(f"p{i}", pose, 0.016 * sign, most=12.0, rate=40.0, coefficient=1e-5))
    return Rotors(rotors)


def tilting() -> Rotors:
    """Four rotors whose servos turn them about their arms."""
    shift = np.eye(4)
    shift[0, 3] = 0.25
    poses = [exp_screw(Z, np.array(i * np.pi / 2)) @ shift for i in range(4)]
    return Rotors([Rotor(f"t{i}", pose, 0.01 * (-1) ** i, tilts=True) for i, pose in enumerate(poses)])


def at(stack: Array, t: float) -> Array:
    return np.asarray(sum(row * t**k / factorial(k) for k, row in enumerate(stack)))


def test_a_rotor_pushes_along_its_axis_and_turns_about_it() -> None:
    """By hand: force along the axis, moment of that force about the base's origin, and drag."""
    rotors = tilted()
    for i, rotor in enumerate(rotors.rotors):
        axis, point = rotor.pose[:3, 2], rotor.pose[:3, 3]
        expected = [*(rotor.drag * axis + np.cross(point, axis)), *axis]
        np.testing.assert_allclose(rotors.wrench(np.eye(6)[i]), expected, atol=1e-15)


def test_six_tilted_rotors_give_any_wrench_and_its_derivatives() -> None:
    rotors, wrench = tilted(), random_stack(1, 4, 6)
    motion = rotors.motion(wrench)
    np.testing.assert_allclose(motion.thrusts @ rotors.allocation.T, wrench, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.left, 0.0, atol=1e-12)
    assert not motion.tilts.any()


def test_a_wrench_in_the_world_is_turned_with_the_base() -> None:
    """The thrusts a moment later are the sum of their series, from the wrench and the pose at that moment."""
    rotors, orders, step = tilted(), 12, 0.02
    moving = random_base(2, orders, "world")
    base = BaseMotion(moving.pose, moving.twists)
    wrench = random_stack(3, orders, 6)
    thrusts = rotors.motion(wrench, base).thrusts
    later = at(base.pose_derivatives(), step)
    moment, force = at(wrench, step)[:3], at(wrench, step)[3:]
    body = np.concatenate(
        [later[:3, :3].T @ (moment - np.cross(later[:3, 3], force)), later[:3, :3].T @ force]
    )
    np.testing.assert_allclose(at(thrusts, step), rotors.motion(body[None]).thrusts[0], rtol=0, atol=1e-11)


def test_tilting_rotors_follow_in_time() -> None:
    """Thrusts and angles a moment later, by their series, give the wrench of that moment, by its own."""
    rotors, orders, step = tilting(), 12, 0.01
    wrench = 0.3 * random_stack(4, orders, 6)
    wrench[0, 5] += 20.0
    motion = rotors.motion(wrench)
    np.testing.assert_allclose(motion.left, 0.0, atol=1e-12)
    found = rotors.wrench(at(motion.thrusts, step), at(motion.tilts, step))
    np.testing.assert_allclose(found, at(wrench, step), rtol=0, atol=1e-11)
    assert (motion.thrusts[0] > 0.0).all() and np.abs(motion.tilts[1:]).max() > 1e-3


def test_what_a_flat_quadrotor_cannot_give_is_left() -> None:
    shift = np.eye(4)
    shift[0, 3] = 0.2
    poses = [exp_screw(Z, np.array(i * np.pi / 2)) @ shift for i in range(4)]
    flat = Rotors([Rotor(f"r{i}", pose, 0.02 * (-1) ** i) for i, pose in enumerate(poses)])
    motion = flat.motion(np.array([[0.1, 0.2, 0.03, 1.0, -2.0, 10.0]]))
    np.testing.assert_allclose(motion.left, [[0.0, 0.0, 0.0, 1.0, -2.0, 0.0]], atol=1e-12)
    assert motion.thrusts.sum() == pytest.approx(10.0)


def test_the_aerial_manipulator_hovers_on_its_rotors() -> None:
    robot, rotors = Robot.from_config(share.find("config", "aerial_manipulator.yaml")), tilted()
    q = np.zeros((5, 6))
    base = BaseMotion(np.eye(4), np.zeros((4, 6)))
    wrench, _ = robot.inverse_dynamics(q, base)
    motion = rotors.motion(wrench, base)
    weight = robot.model.masses.sum() * 9.81
    assert (motion.thrusts[0] @ rotors.allocation.T[:, 5]) == pytest.approx(weight, rel=1e-12)
    np.testing.assert_allclose(motion.thrusts[1:], 0.0, atol=1e-12)
    assert rotors.check(motion) == []
    motion.thrusts[0, 2], motion.thrusts[1, 3], motion.thrusts[0, 4] = 13.0, -50.0, -1.0
    told = rotors.check(motion)
    assert [line.split(":")[0] for line in told] == ["rotor 'p3'", "rotor 'p4'", "rotor 'p5'"]
    assert "13 N, and 12 N is the most" in told[0] and "50 N/s, and 40 N/s" in told[1]


def test_speeds_are_roots_of_thrusts() -> None:
    rotors, step = tilted(), 0.01
    thrusts = np.vstack([np.full((1, 6), 6.0), random_stack(5, 9, 6)])
    speeds = rotors.speeds(thrusts)
    np.testing.assert_allclose(1e-5 * at(speeds, step) ** 2, at(thrusts, step), rtol=1e-13)
    with pytest.raises(InputError, match=r"rotor 't0' has no coefficient"):
        tilting().speeds(np.ones((1, 4)))
    with pytest.raises(InputError, match=r"the thrust of rotor 'p1' is 0\.0 N"):
        rotors.speeds(np.zeros((1, 6)))


def test_a_batch_is_every_sample_on_its_own() -> None:
    rotors, stacks = tilting(), np.array([0.3 * random_stack(seed, 4, 6) for seed in range(3)])
    stacks[:, 0, 5] += 20.0
    whole = rotors.motion(stacks)
    for i, stack in enumerate(stacks):
        for part, one in zip(whole, rotors.motion(stack), strict=True):
            np.testing.assert_allclose(part[i], one, rtol=0, atol=1e-13)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(SingularError, match="rotor 't0' tilts and has no thrust"):
        tilting().motion(np.zeros((2, 6)))
    with pytest.raises(InputError, match=r"the base wrench must have shape \(orders, 6\)"):
        tilted().motion(np.zeros(6))
    with pytest.raises(ModelError, match="rotor 'a': thrusts from 2.0 to 1.0 N"):
        Rotor("a", np.eye(4), least=2.0, most=1.0)
    with pytest.raises(ModelError, match="rotor 'a' tilts"):
        Rotor("a", np.eye(4), least=-1.0, tilts=True)
    with pytest.raises(ModelError, match="names of their own"):
        Rotors([Rotor("a", np.eye(4)), Rotor("a", np.eye(4))])
