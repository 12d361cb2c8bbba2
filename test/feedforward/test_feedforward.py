"""The feedforward is inverse dynamics, drives and limits, composed; its Taylor series follows the motion."""

from collections.abc import Sequence
from dataclasses import replace
from math import factorial

import numpy as np
import pytest
from refusals import refused

from hodyn_ros import share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.feedforward import Feedforward, Status, taylor
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.model.drive_spec import DriveSpec, SpringTable, series_elastic
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.propeller import Propeller, PropellerLimits

N = 3
STIFFNESS = np.array([4000.0, np.inf, 900.0])
MOTOR_INERTIA = np.array([0.6, 0.4, 0.3])


def arm(
    limits: JointLimits | None = None, stiffness: Array | None = None, floating_base: bool = False
) -> Robot:
    """Return a chain of three bodies (and a base), with skew axes."""
    n = N + int(floating_base)
    axes = np.array([[0.0, 0.0, 1.0], [0.0, 0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])[:n]
    points = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.3], [0.0, 0.2, 0.6], [0.1, 0.1, 0.9]])[:n]
    placements = np.tile(np.eye(4), (n, 1, 1))
    placements[:, :3, 3] = points
    robot = Robot.from_screws(
        parents=list(range(-1, n - 1)),
        screws=np.hstack([axes, np.cross(points, axes)]),
        placements=placements,
        masses=np.arange(3.0, 3.0 - n, -0.5)[:n],
        coms=np.full((n, 3), 0.05) + points * 0.1,
        inertias=np.array([np.diag([0.05, 0.04, 0.03])] * n),
        floating_base=floating_base,
    )
    drives = None if stiffness is None else series_elastic(stiffness, MOTOR_INERTIA)
    return Robot(robot.model, limits, drives)


def motion(order: int, t: float = 0.7) -> Array:
    """Return q and its derivatives (order + 3, 3) at a time t."""
    omega = np.array([1.0, 1.7, 2.3])
    phase = omega * t + np.array([0.2, 0.9, -0.4])
    return np.array([0.4 * omega**k * np.sin(phase + 0.5 * np.pi * k) for k in range(order + 3)])


def limits(**given: float | Array) -> JointLimits:
    """Return limits where only the given ones bind, a single number for all joints."""
    free = JointLimits.unlimited(N)
    return replace(free, joint_names=None, **{name: np.full(N, value) for name, value in given.items()})


@pytest.mark.parametrize("order", [0, 1, 2, 4])
def test_without_drives_there_are_link_efforts_only(order: int) -> None:
    robot = arm()
    q = motion(order)
    feedforward = FeedforwardModel(robot, order).compute(q)
    np.testing.assert_allclose(feedforward.efforts, robot.inverse_dynamics(q), rtol=1e-11, atol=1e-12)
    assert feedforward.motor_positions.shape == (0, N)
    assert feedforward.motor_efforts.shape == (0, N)
    assert feedforward.base_wrenches.shape == (0, 6)
    assert feedforward.status == Status.OK


@pytest.mark.parametrize("order", [2, 3, 4])
def test_with_drives_the_motors_follow_from_the_springs(order: int) -> None:
    q = motion(order)
    efforts, theta, tau, *_ = FeedforwardModel(arm(stiffness=STIFFNESS), order).compute(q)
    assert theta.shape == (order + 1, N)
    assert tau.shape == (order - 1, N)
    np.testing.assert_allclose(theta, q[: order + 1] + efforts / STIFFNESS, rtol=1e-12)
    theta_2 = q[2 : order + 1] + efforts[2:] / STIFFNESS  # K is infinite for the rigid joint
    np.testing.assert_allclose(tau, MOTOR_INERTIA * theta_2 + efforts[: order - 1], rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1])
def test_an_order_too_low_for_the_springs_leaves_motor_efforts_out(order: int) -> None:
    q = motion(order)
    efforts, theta, tau, *_ = FeedforwardModel(arm(stiffness=STIFFNESS), order).compute(q)
    np.testing.assert_allclose(theta, q[: order + 1] + efforts / STIFFNESS, rtol=1e-12)
    assert tau.shape == (0, N)


@pytest.mark.parametrize("order", [0, 2])
def test_rigid_drives_need_no_derivatives(order: int) -> None:
    q = motion(order)
    feedforward = FeedforwardModel(arm(stiffness=np.full(N, np.inf)), order).compute(q)
    np.testing.assert_allclose(
        feedforward.motor_efforts, MOTOR_INERTIA * q[2:] + feedforward.efforts, rtol=1e-12
    )


def test_a_floating_base_gets_its_wrench() -> None:
    robot = arm(floating_base=True)
    pose = np.eye(4)
    pose[:3, 3] = [0.3, -0.2, 1.0]
    base = BaseMotion(pose, np.random.default_rng(1).normal(size=(4, 6)), representation="body_fixed")
    law = FeedforwardModel(robot, 2)
    law.warm_up()
    feedforward = law.compute(motion(2), base)
    wrenches, efforts = robot.inverse_dynamics(motion(2), base)
    np.testing.assert_array_equal(feedforward.efforts, efforts)
    np.testing.assert_array_equal(feedforward.base_wrenches, wrenches)
    refused(lambda: law.compute(motion(2)), "floating base; give its motion")


def test_orders_below_zero_and_bases_on_the_ground_are_errors() -> None:
    law, base = FeedforwardModel(arm(), 0), BaseMotion(np.eye(4), np.zeros((2, 6)))
    refused(lambda: law.compute(motion(0), base), "has a fixed base")
    refused(lambda: FeedforwardModel(arm(), -1), "order must be")


def biggest(stack: Array) -> float:
    """Return the largest magnitude in a row of numbers."""
    return float(np.abs(stack).max())


def test_each_limit_sets_its_bit_and_no_other() -> None:
    q = motion(3)
    free = FeedforwardModel(arm(stiffness=STIFFNESS), 3).compute(q)
    efforts = max(biggest(free.efforts[0]), biggest(free.motor_efforts[0]))
    rates = max(biggest(free.efforts[1]), biggest(free.motor_efforts[1]))
    velocities = max(biggest(q[1]), biggest(free.motor_positions[1]))
    for name, value, bit in (
        ("effort", efforts, Status.EFFORT_LIMIT_EXCEEDED),
        ("effort_rate", rates, Status.EFFORT_RATE_LIMIT_EXCEEDED),
        ("velocity", velocities, Status.VELOCITY_LIMIT_EXCEEDED),
        ("position_upper", q[0].max(), Status.POSITION_LIMIT_EXCEEDED),
        ("position_lower", q[0].min(), Status.POSITION_LIMIT_EXCEEDED),
    ):
        inward = 1e-9 if name == "position_lower" else -1e-9

        def status(bound: float, name: str = name) -> Status:
            return FeedforwardModel(arm(limits(**{name: bound}), STIFFNESS), 3).compute(q).status

        assert status(value) == Status.OK, f"{name}: at the limit is within"
        assert status(value + inward) == bit


def test_a_limit_is_exceeded_from_the_next_number_on() -> None:
    q = motion(2)
    free = FeedforwardModel(arm(), 2).compute(q)
    cases = [
        ("effort", np.abs(free.efforts[0]), Status.EFFORT_LIMIT_EXCEEDED),
        ("effort_rate", np.abs(free.efforts[1]), Status.EFFORT_RATE_LIMIT_EXCEEDED),
        ("velocity", np.abs(q[1]), Status.VELOCITY_LIMIT_EXCEEDED),
        ("position_upper", q[0], Status.POSITION_LIMIT_EXCEEDED),
        ("position_lower", q[0], Status.POSITION_LIMIT_EXCEEDED),
    ]
    for place, (name, reached, bit) in enumerate(cases):
        assert FeedforwardModel(arm(limits(**{name: reached})), 2).compute(q).status == Status.OK
        limit, joint = reached.copy(), place % N
        limit[joint] = np.nextafter(limit[joint], np.inf if name == "position_lower" else -np.inf)
        assert FeedforwardModel(arm(limits(**{name: limit})), 2).compute(q).status == bit


def test_clamped_joints_stand_at_the_limit_and_the_others_are_untouched() -> None:
    q = motion(3)
    free = FeedforwardModel(arm(stiffness=STIFFNESS), 3).compute(q)
    bound = float(np.sort(np.abs(free.efforts[0]))[1])  # exceeded by one joint, held exactly by another
    law = FeedforwardModel(arm(limits(effort=bound), STIFFNESS), 3, clamp=True)
    held = law.compute(q)
    assert held.status == Status.EFFORT_LIMIT_EXCEEDED | Status.EFFORT_CLAMPED
    for before, after in ((free.efforts, held.efforts), (free.motor_efforts, held.motor_efforts)):
        over = np.abs(before[0]) > bound
        assert 0 < over.sum() < N
        np.testing.assert_array_equal(after[0, over], np.sign(before[0, over]) * bound)
        np.testing.assert_array_equal(after[1:, over], 0.0)
        np.testing.assert_array_equal(after[:, ~over], before[:, ~over])
    np.testing.assert_array_equal(held.motor_positions, free.motor_positions)
    unclamped = FeedforwardModel(arm(limits(effort=bound), STIFFNESS), 3).compute(q)
    assert unclamped.status == Status.EFFORT_LIMIT_EXCEEDED
    np.testing.assert_array_equal(unclamped.efforts, free.efforts)


def test_clamping_within_limits_changes_nothing() -> None:
    q = motion(2)
    free = FeedforwardModel(arm(), 2).compute(q)
    law = FeedforwardModel(arm(limits(effort=2.0 * biggest(free.efforts[0]))), 2, clamp=True)
    np.testing.assert_array_equal(law.compute(q).efforts, free.efforts)
    assert law.compute(q).status == Status.OK


def test_taylor_is_exact_for_polynomials() -> None:
    polynomial = np.polynomial.Polynomial([1.0, -2.0, 0.5, 3.0])
    derivatives = np.array([[polynomial.deriv(k)(0.3)] for k in range(4)])
    for h in (0.0, 0.25, -1.5):
        np.testing.assert_allclose(taylor(derivatives, h), [polynomial(0.3 + h)], rtol=1e-13)
    assert taylor(np.empty((0, 3)), 0.1).shape == (0,)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_series_follows_the_motion_with_its_order(order: int) -> None:
    law = FeedforwardModel(arm(stiffness=STIFFNESS), order)
    feedforward = law.compute(motion(order))

    def errors(h: float) -> Array:
        there, guess = law.compute(motion(order, 0.7 + h)), feedforward.at(h)
        pairs = (
            (there.efforts[0], guess.efforts),
            (there.motor_positions[0], guess.motor_positions),
            (there.motor_positions[1], guess.motor_velocities),
            (there.motor_efforts[0], guess.motor_efforts),
        )
        return np.array([np.abs(a - b).max() for a, b in pairs])

    slopes = np.log2(errors(1e-2) / errors(5e-3))
    # the remainder goes with the power above the highest derivative that the stack holds
    np.testing.assert_allclose(slopes, [order + 1, order + 1, order, order - 1], atol=0.2)


def test_propellers_give_the_wrench_of_the_answer() -> None:
    """With their derivatives; and the status says where their limits are, and what they cannot give."""
    robot = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    six = robot.propellers.propellers
    rng = np.random.default_rng(5)
    q, base = 0.3 * rng.normal(size=(5, 6)), BaseMotion(np.eye(4), 0.1 * rng.normal(size=(4, 6)))

    def answer(propellers: Sequence[Propeller]) -> Feedforward:
        return FeedforwardModel(Robot(robot.model, propellers=propellers), 2).compute(q, base)

    found = answer(six)
    assert found.status == Status.OK and found.tilts.shape == (0, 6)
    given = found.thrusts @ robot.propellers.allocation.T
    np.testing.assert_allclose(given, base.wrenches_in_body(found.base_wrenches), rtol=1e-10, atol=1e-10)
    tight = PropellerLimits(most=0.9 * found.thrusts[0].max())
    assert answer([replace(one, limits=tight) for one in six]).status == Status.THRUST_LIMIT_EXCEEDED
    slow = PropellerLimits(least=-9.0, rate=0.9 * np.abs(found.thrusts[1]).max())
    assert answer([replace(one, limits=slow) for one in six]).status == Status.THRUST_RATE_LIMIT_EXCEEDED
    assert answer(six[:5]).status & Status.BASE_WRENCH_UNREACHED
    turning = answer([replace(one, tilts=True) for one in six])
    assert turning.tilts.shape == (3, 6)


def test_hybrid_twists_are_those_of_polynomial_motion() -> None:
    rng = np.random.default_rng(3)
    orders = 5
    p = [np.polynomial.Polynomial(rng.normal(size=6)) for _ in range(3)]
    omega = [np.polynomial.Polynomial(rng.normal(size=6)) for _ in range(3)]
    # v = p' + p x omega, as polynomials
    moment = [p[(i + 1) % 3] * omega[(i + 2) % 3] - p[(i + 2) % 3] * omega[(i + 1) % 3] for i in range(3)]
    spatial = [*omega, *(p[i].deriv() + moment[i] for i in range(3))]
    hybrid = [*omega, *(p[i].deriv() for i in range(3))]

    def at_zero(polynomials: list[np.polynomial.Polynomial]) -> Array:
        return np.array([[c.deriv(k)(0.0) for c in polynomials] for k in range(orders)])

    pose = np.eye(4)
    pose[:3, 3] = [c(0.0) for c in p]
    found = convert_screws(at_zero(hybrid), pose, at_zero(hybrid), "hybrid", "spatial")
    expected = at_zero(spatial)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * factorial(orders))


def test_a_motion_that_a_spring_cannot_follow_is_an_error_that_names_the_joint() -> None:
    torque = np.linspace(-0.01, 0.01, 6)
    weak = SpringTable(torque=tuple(torque), deflection=tuple(torque / 900.0))
    drives = [DriveSpec(), DriveSpec(), DriveSpec(stiffness=900.0, motor_inertia=0.3, spring_table=weak)]
    robot = Robot(arm().model, None, drives)
    refused(lambda: FeedforwardModel(robot, 2).compute(motion(2)), f"joint '{robot.joint_names[2]}'")
