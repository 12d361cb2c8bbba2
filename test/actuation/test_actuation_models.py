"""Every transmission against mpmath: the equation of the spring, differentiated at 50 digits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import assert_refused, refused

from hodyn_ros.actuation.friction import Friction
from hodyn_ros.actuation.joint_drive import JointDrive, Rigid, joint_drive
from hodyn_ros.actuation.springs.damped_spring import DampedSpring, phi_functions
from hodyn_ros.actuation.springs.hardening_spring import HardeningSpring
from hodyn_ros.actuation.springs.linear_spring import LinearSpring
from hodyn_ros.actuation.springs.tabulated_spring import TabulatedSpring
from hodyn_ros.actuation.springs.variable_stiffness import AgonistAntagonist, Cam
from hodyn_ros.actuation.transmission import Transmission
from hodyn_ros.array import Array
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec

Function = Callable[[Any], Any]

DIGITS = 50
ORDER = 5  # of the torque
INERTIA = 0.37


def position(t: Any) -> Any:
    return mpmath.sin(2 * t) / 2 + t**2 / 5


def torque(t: Any) -> Any:
    return 12 * mpmath.cos(3 * t) + 4 * mpmath.sin(t) - 3


def stiffness(t: Any) -> Any:
    return 300 + 40 * mpmath.sin(t)


def jet(function: Function, t: float, order: int) -> Array:
    with mpmath.workdps(DIGITS):
        return np.array([float(c) for c in mpmath.taylor(function, mpmath.mpf(t), order)])


def differentiated(function: Function, t: float) -> Array:
    """Return the first three Taylor coefficients of what is a derivative itself."""
    with mpmath.workdps(DIGITS):
        return np.array(
            [float(mpmath.diff(function, mpmath.mpf(t), k) / mpmath.factorial(k)) for k in range(3)]
        )


def root(function: Function, start: float) -> Any:
    return mpmath.findroot(function, mpmath.mpf(start), tol=mpmath.mpf(10) ** (5 - 2 * DIGITS))


def hardening_deflection(t: Any) -> Any:
    return root(lambda d: 200 * d + 900 * d**3 - torque(t), 0.05)


def cam_deflection(t: Any) -> Any:
    return root(lambda d: stiffness(t) * d + 2000 * mpmath.mpf("0.6") ** 2 / 2 * d**3 - torque(t), 0.05)


# Motor positions as functions of time: each by the equation of its spring, solved at each instant.
MODELS: dict[str, tuple[Transmission, list[Function]]] = {
    "rigid": (Rigid(), [position]),
    "linear": (LinearSpring(150.0), [lambda t: position(t) + torque(t) / 150]),
    "hardening": (HardeningSpring(200.0, 900.0), [lambda t: position(t) + hardening_deflection(t)]),
    "agonist and antagonist": (
        AgonistAntagonist(80.0),
        [
            lambda t: position(t) + torque(t) / stiffness(t) + stiffness(t) / 320,
            lambda t: position(t) + torque(t) / stiffness(t) - stiffness(t) / 320,
        ],
    ),
    "cam": (
        Cam(2000.0, 0.6),
        [lambda t: position(t) + cam_deflection(t), lambda t: stiffness(t) / (2000 * mpmath.mpf("0.6"))],
    ),
}
LOADS: dict[str, list[Function]] = {
    "agonist and antagonist": [
        lambda t: 80 * (torque(t) / stiffness(t) + stiffness(t) / 320) ** 2,
        lambda t: -80 * (stiffness(t) / 320 - torque(t) / stiffness(t)) ** 2,
    ],
    "cam": [torque, lambda t: 2000 * (stiffness(t) / 1200 + mpmath.mpf("0.3") * cam_deflection(t) ** 2)],
}


def close(found: Array, exact: Array, rtol: float = 1e-11) -> bool:
    return bool(np.allclose(found, exact, rtol=rtol, atol=rtol * np.abs(exact).max()))


@pytest.mark.parametrize("t", [-0.4, 0.0, 0.9])
@pytest.mark.parametrize("name", MODELS)
def test_motor_positions_and_efforts_are_those_of_differentiation(name: str, t: float) -> None:
    transmission, thetas = MODELS[name]
    drive = JointDrive(transmission, (INERTIA,) * transmission.n_motors)
    q, Q, sigma = jet(position, t, ORDER + 2), jet(torque, t, ORDER), jet(stiffness, t, ORDER)
    found = drive.motors(q, Q, sigma)
    loads = LOADS.get(name, [torque])
    assert len(found.positions) == len(thetas)
    for motor, (theta, load) in enumerate(zip(thetas, loads, strict=True)):
        orders = len(found.positions[motor])
        assert orders == ORDER + 1 + transmission.gained
        assert close(found.positions[motor], jet(theta, t, orders - 1))
        efforts = len(found.efforts[motor])

        def effort(x: Any, theta: Function = theta, load: Function = load) -> Any:
            return INERTIA * mpmath.diff(theta, x, 2) + load(x)

        assert efforts == ORDER + 1 - 2 + transmission.gained
        assert close(found.efforts[motor][:3], differentiated(effort, t))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "rigid"])
def test_the_way_back_returns_the_torque(name: str) -> None:
    transmission, _ = MODELS[name]
    q, Q = jet(position, 0.3, ORDER), jet(torque, 0.3, ORDER)
    theta = transmission.motor_positions(q, Q, jet(stiffness, 0.3, ORDER))
    assert close(transmission.loads(q, theta).link, Q, 1e-10)


def test_a_batch_is_its_samples() -> None:
    transmission = HardeningSpring(200.0, 900.0)
    times = [-0.4, 0.0, 0.9]
    q = np.stack([jet(position, t, ORDER) for t in times], axis=1)
    Q = np.stack([jet(torque, t, ORDER) for t in times], axis=1)
    batch = transmission.motor_positions(q, Q)
    for i in range(len(times)):
        assert np.array_equal(batch[:, :, i], transmission.motor_positions(q[:, i], Q[:, i]))


# The table holds the inverse of a hardening spring, fine enough for the spline to follow it.
TABLE_DEFLECTIONS = np.linspace(-0.2, 0.2, 161)
TABLE_TORQUES = 200.0 * TABLE_DEFLECTIONS + 900.0 * TABLE_DEFLECTIONS**3


def test_a_table_of_a_spring_gives_its_motor_positions() -> None:
    table = TabulatedSpring(TABLE_TORQUES.tolist(), TABLE_DEFLECTIONS.tolist())
    q, Q = jet(position, 0.2, 3), jet(torque, 0.2, 3)
    exact = jet(lambda t: position(t) + hardening_deflection(t), 0.2, 3)
    found = table.motor_positions(q, Q)
    assert np.allclose(found[0], exact, rtol=1e-6)
    assert close(table.loads(q, found).link, Q, 1e-10)


def test_tables_that_cannot_be_are_refused() -> None:
    assert_refused(
        (([0, 1, 2], [0, 1, 2]), "at least 6"),
        (([0, 1, 2, 3, 3, 5], [0, 1, 2, 3, 4, 5]), "torques"),
        (([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 2, 5]), "deflections"),
        (([0, 1, 2, 3, 4, 5, 6, 7], [0, 0.01, 0.02, 3, 3.01, 3.02, 3.03, 3.04]), "falls"),
        by=lambda given: TabulatedSpring(*given),
    )


@pytest.mark.parametrize("z", [0.0, 1e-9, 0.3, 5.0, 29.9, 30.1, 400.0, 1e9])
def test_phi_functions(z: float) -> None:
    with mpmath.workdps(30):
        exact = [
            mpmath.quad(
                lambda s, k=k: mpmath.exp(-mpmath.mpf(z) * (1 - s)) * s ** (k - 1) / mpmath.factorial(k - 1),
                [0, 1 - min(1, 40 / max(z, 1)), 1 - min(1, 5 / max(z, 1)), 1],
            )
            for k in range(1, 7)
        ]
    assert np.allclose(phi_functions(z, 7)[1:], np.array(exact, dtype=float), rtol=1e-13, atol=0.0)


def exact_deflection(K: float, D: float, coefficients: Array, start: float, h: float) -> tuple[float, float]:
    """Return deflection and rate after h under a polynomial torque, from the closed solution, 80 digits."""
    with mpmath.workdps(80):
        rate = mpmath.mpf(K) / mpmath.mpf(D)
        # particular solution: polynomial p with K p + D p' = torque, from the highest coefficient down
        p = [mpmath.mpf(0)] * (len(coefficients) + 1)
        for k in range(len(coefficients) - 1, -1, -1):
            p[k] = (mpmath.mpf(coefficients[k]) - mpmath.mpf(D) * (k + 1) * p[k + 1]) / mpmath.mpf(K)
        time = mpmath.mpf(h)
        value = sum(c * time**k for k, c in enumerate(p))
        slope = sum(k * c * time ** (k - 1) for k, c in enumerate(p) if k)
        decay = (mpmath.mpf(start) - p[0]) * mpmath.exp(-rate * time)
        return float(value + decay), float(slope - rate * decay)


@settings(max_examples=60, deadline=None)
@given(K=st.floats(1.0, 1e6), ratio=st.floats(-8.0, 8.0), seed=st.integers(0, 2**32 - 1))
def test_a_damped_spring_is_advanced_exactly(K: float, ratio: float, seed: int) -> None:
    """Whatever the memory, from a 100 millionth of a sample to 100 million samples."""
    rng = np.random.default_rng(seed)
    h = 1e-2
    D = K * h * 10.0**ratio
    Q = rng.normal(size=5) * 10.0 ** np.arange(5)
    start = rng.normal() / K
    found = float(DampedSpring(K, D).advanced(Q, np.array(start), h))
    exact, _ = exact_deflection(K, D, Q, start, h)
    scale = abs(start) + np.abs(Q * h ** np.arange(5)).sum() / K
    assert abs(found - exact) <= 1e-14 * max(scale, abs(exact))


def test_a_damped_spring_continues_from_any_state() -> None:
    spring = DampedSpring(150.0, 9.0)
    Q = jet(torque, 0.0, 3)
    half = spring.advanced(Q, np.array(0.02), 0.01)
    powers = np.array(
        [[mpmath.binomial(j, k) * 0.01 ** (j - k) if j >= k else 0.0 for j in range(4)] for k in range(4)]
    )
    shifted = powers.astype(float) @ Q  # the same polynomial about the middle
    assert spring.advanced(shifted, half, 0.01) == pytest.approx(
        spring.advanced(Q, np.array(0.02), 0.02), rel=1e-14
    )


def test_derivatives_of_a_damped_spring_obey_its_equation() -> None:
    spring = DampedSpring(150.0, 9.0)
    Q = jet(torque, 0.4, ORDER)
    delta = spring.from_deflection(Q, np.array(0.05))
    assert len(delta) == ORDER + 2
    assert close(150.0 * delta[:-1] + 9.0 * delta[1:] * np.arange(1, ORDER + 2), Q)
    settled = spring.deflection_under(Q)
    residual = 150.0 * settled[:-1] + 9.0 * settled[1:] * np.arange(1, ORDER + 1)
    assert close(residual, Q[:-1])


@pytest.mark.parametrize("damping", [0.0, 1e-12, 1e-9, 1e-6, 1e-3])
def test_without_damping_a_damped_spring_is_a_spring(damping: float) -> None:
    """The error is D / K times the next derivative, to first order."""
    q, Q = jet(position, 0.1, ORDER), jet(torque, 0.1, ORDER)
    damped = DampedSpring(150.0, damping).motor_positions(q, Q)[0]
    plain = LinearSpring(150.0).motor_positions(q, Q)[0]
    first_order = -damping / 150.0**2 * Q[1:] * np.arange(1, ORDER + 1)
    assert np.allclose(damped[:-1] - plain[:-1], first_order, rtol=1e-3, atol=1e-15)


@pytest.mark.parametrize("transition", [0.5, 0.02])
def test_friction(transition: float) -> None:
    friction = Friction(0.8, 2.5, transition)
    with mpmath.workdps(DIGITS):
        width = mpmath.mpf(transition)

    def exact(t: Any) -> Any:
        v = mpmath.diff(position, t)
        return mpmath.mpf(0.8) * v + mpmath.mpf(2.5) * v / mpmath.sqrt(v**2 + width**2)

    velocity = jet(lambda t: mpmath.diff(position, t), 0.2, ORDER)
    assert close(friction.torque(velocity), jet(exact, 0.2, ORDER))
    assert friction.torque(np.array([100.0]))[0] == pytest.approx(80.0 + 2.5, rel=1e-4)
    assert not Friction() and friction


def test_the_parts_of_friction_are_all_of_it() -> None:
    """What holds at rest is bounded by what is said of it, and a file has all figures with their defaults."""
    friction, random = Friction(0.8, 2.5, 0.1, 0.3, 0.5), np.random.default_rng(2)
    velocity, load = random.normal(size=(2, ORDER + 1, 50))
    dry = friction.dry_torque(velocity, load)
    np.testing.assert_allclose(friction.torque(velocity, load), friction.fluid_torque(velocity) + dry)
    assert (np.abs(dry[0]) < friction.dry_limit(load)[0]).all()
    assert (np.abs(friction.torque(velocity, load)[0]) < friction.largest(5.0, 5.0)).all()
    assert friction.dry_torque(np.array([1e3]), np.array([3.0])) == pytest.approx(
        friction.dry_limit(np.array([3.0])), rel=1e-7
    )
    assert joint_drive(DriveSpec(9000.0, 0.5)).motor_friction == Friction()


def test_friction_on_both_sides_of_a_spring() -> None:
    drive = JointDrive(LinearSpring(150.0), (INERTIA,), Friction(0.3, 1.0, 0.2), Friction(0.6, 2.0, 0.3))

    def friction(v: Any, d: float, c: float, s: float) -> Any:
        return mpmath.mpf(d) * v + mpmath.mpf(c) * v / mpmath.sqrt(v**2 + mpmath.mpf(s) ** 2)

    def transmitted(t: Any) -> Any:
        return torque(t) + friction(mpmath.diff(position, t), 0.6, 2.0, 0.3)

    def theta(t: Any) -> Any:
        return position(t) + transmitted(t) / 150

    def effort(t: Any) -> Any:
        speed = mpmath.diff(theta, t)
        load = transmitted(t) + friction(speed, 0.3, 1.0, 0.2)
        return mpmath.mpf(INERTIA) * mpmath.diff(theta, t, 2) + load

    found = drive.motors(jet(position, 0.3, ORDER + 2), jet(torque, 0.3, ORDER))
    assert close(found.positions[0], jet(theta, 0.3, ORDER))
    assert close(found.efforts[0][:3], differentiated(effort, 0.3))


def test_friction_by_load_of_a_spring() -> None:
    """Efforts with derivatives against mpmath; what accelerates a motor under them is its acceleration."""
    drive = JointDrive(
        LinearSpring(150.0), (INERTIA,), Friction(0.3, 1.0, 0.2, load=0.4, load_transition=0.5)
    )

    def theta(t: Any) -> Any:
        return position(t) + torque(t) / 150

    def effort(t: Any) -> Any:
        v, Q, small = mpmath.diff(theta, t), torque(t), mpmath.mpf(0.5)
        dry = 1 + mpmath.mpf(0.4) * (mpmath.sqrt(Q**2 + small**2) - small)
        friction = mpmath.mpf(0.3) * v + dry * v / mpmath.sqrt(v**2 + mpmath.mpf(0.2) ** 2)
        return mpmath.mpf(INERTIA) * mpmath.diff(theta, t, 2) + Q + friction

    q, Q = jet(position, 0.3, ORDER + 2), jet(torque, 0.3, ORDER)
    found = drive.motors(q, Q)
    assert close(found.efforts[0][:3], differentiated(effort, 0.3))
    to_link, _, (moves,) = drive.forces(q[:2], found.positions[:, :2], found.efforts[:, 0])
    np.testing.assert_allclose(to_link, Q[0], rtol=1e-12)
    np.testing.assert_allclose(moves, 2.0 * INERTIA * found.positions[0, 2], rtol=1e-12)
    with pytest.raises(InputError, match="give it a stiffness"):
        JointDrive(Rigid(), (INERTIA,), Friction(load=0.1)).forces(q[:2], q[None, :2], Q[:1])


def test_warm_gears_rub_less() -> None:
    friction = FrictionSpec(2.0, 1.0, temperature=30.0, viscous_by_temperature=0.02)
    warm = DriveSpec(9000.0, 0.5, motor_friction=friction, temperature=45.0)
    assert warm.motor_friction.viscous == pytest.approx(2.0 * np.exp(-0.3), rel=1e-15)
    assert warm.motor_friction.coulomb == 1.0
    back = replace(warm, temperature=30.0)  # whatever it was before
    assert back.motor_friction.viscous == pytest.approx(2.0, rel=1e-15)
    assert joint_drive(warm).motor_friction.viscous == warm.motor_friction.viscous
    assert_refused(
        (lambda: FrictionSpec(2.0, viscous_by_temperature=0.02), "needs the temperature", ModelError),
        (lambda: DriveSpec(9000.0, 0.5, link_friction=FrictionSpec(load=0.1)),
         "link_friction by load", ModelError),
    )  # fmt: skip


def test_current() -> None:
    drive = JointDrive(Rigid(), (0.5,), gear_ratio=100.0, torque_constant=0.05)
    assert drive.current(np.array([10.0])) == pytest.approx([2.0], rel=1e-15)
    refused(lambda: JointDrive(Rigid(), (0.5,)).current(np.array([1.0])), "torque constant")


def test_slack_springs_and_missing_stiffness_are_refused() -> None:
    pair, cam, one = AgonistAntagonist(80.0), Cam(100.0, 1.0), np.ones(1)
    assert_refused(
        (lambda: pair.motor_positions(0.0 * one, 40.0 * one, 100.0 * one),
         "goes slack...needs a stiffness above 113.137"),
        (lambda: pair.motor_positions(0.0 * one, one), "stiffness trajectory"),
        (lambda: cam.motor_positions(0.0 * one, one), "stiffness trajectory"),
        (lambda: cam.motor_positions(0.0 * one, one, -5.0 * one), "must be positive"),
    )  # fmt: skip


def test_figures_that_cannot_be_are_refused() -> None:
    assert_refused(
        (lambda: LinearSpring(0.0), "must"),
        (lambda: LinearSpring(float("nan")), "must"),
        (lambda: DampedSpring(10.0, -1.0), "must"),
        (lambda: DampedSpring(-10.0, 1.0), "must"),
        (lambda: HardeningSpring(10.0, -1.0), "must"),
        (lambda: AgonistAntagonist(0.0), "must"),
        (lambda: Cam(10.0, 0.0), "must"),
        (lambda: Friction(viscous=-1.0), "must"),
        (lambda: Friction(coulomb=1.0, transition=0.0), "must"),
        (lambda: JointDrive(LinearSpring(10.0), (0.0,)), "must"),
        (lambda: JointDrive(AgonistAntagonist(10.0), (1.0,)), "needed"),
    )


def test_friction_of_numpy_figures_is_friction() -> None:
    assert bool(Friction(np.float64(1.0), np.float64(0.0))) is True
    assert bool(Friction(np.float64(0.0), np.float64(0.0))) is False
