"""The momentum observer against arithmetic of many digits, and plants that share nothing with it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from case_robots import of_tree, panda
from elastic_pair import ElasticPair
from oracles import mp_dynamics as mp
from oracles.motions import random_stack
from oracles.random_trees import random_pose, random_tree
from refusals import assert_refused, like, refused

from hodyn_ros import BaseMotion, InputError, RangeError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.lie.exponential import body_twists
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec, SpringTable
from hodyn_ros.observers import ExternalEfforts, MomentumObserver, ObserverConfig, Sensed

pytestmark = pytest.mark.thorough


PERIOD = 1e-3
NOTHING = np.zeros(2)
ALL = Sensed(links=True, motors=True, motor_efforts=True, joint_torques=True)
FORMS = {
    "spring": Sensed(links=True, motors=True),
    "spring and motor": Sensed(links=True, motors=True, motor_efforts=True),
    "torque sensor": Sensed(links=True, joint_torques=True),
    "all": ALL,
}


def filtered(values: Array, bandwidth: float, period: float) -> Array:
    """Return what a pole makes of values that are held for a period each."""
    keep, found = np.exp(-bandwidth * period), np.zeros_like(values)
    for i, value in enumerate(values):
        found[i] = (keep * found[i - 1] if i else 0.0) + (1.0 - keep) * value
    return found


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Robot]:
    path = tmp_path_factory.mktemp("robots") / "pair.yaml"

    def reader(text: str) -> Robot:
        path.write_text(text)
        return Robot.load(path)

    return reader


def polynomial(stack: Array, time: float) -> Array:
    """Return position, velocity and acceleration (3, n) of a motion with these derivatives at 0."""
    rows = []
    for k in range(3):
        powers = [time**i / np.prod(np.arange(1, i + 1)) for i in range(len(stack) - k)]
        rows.append(np.tensordot(powers, stack[k:], axes=1))
    return np.array(rows)


# --- what a period leaves, and how it is filtered -----------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_a_period_leaves_the_change_of_momentum_less_what_acted(seed: int) -> None:
    tree = random_tree(np.random.default_rng(seed), 4, branching=0.4)
    stack = random_stack(seed, 6, tree.n_joints)
    h = 1e-12

    def momentum(time: float) -> Array:
        at = polynomial(stack, time)
        return mp.to_float(mp.mass_matrix(tree, at[0]) @ mp.exact(at[1]))

    def forces(time: float) -> Array:
        """`C^T q' - g`: the slope of the kinetic energy at fixed velocities, less gravity, at many digits."""
        at = mp.exact(polynomial(stack, time))
        slopes = []
        for unit in np.eye(tree.n_joints):
            ends = [mp.mass_matrix(tree, at[0] + side * h * mp.exact(unit)) for side in (1, -1)]
            slopes.append((at[1] @ ((ends[0] - ends[1]) @ at[1])) / (4 * mp.mpfr(h)))
        still = np.array([at[0], 0 * at[0], 0 * at[0]])
        return mp.to_float(np.array(slopes) - mp.inverse_dynamics(tree, still).torques[0])

    nodes, weights = np.polynomial.legendre.leggauss(5)
    acted = sum(0.5 * w * forces(0.5 * PERIOD * (1.0 + x)) for x, w in zip(nodes, weights))
    left = (momentum(PERIOD) - momentum(0.0)) / PERIOD - acted

    observer = MomentumObserver(of_tree(tree), ObserverConfig(bandwidth=1.0), ALL_OF_LINKS)
    for time in (0.0, PERIOD):
        q, v, _ = polynomial(stack, time)
        result = observer.update(time, observer.sample(position=q, velocity=v, joint_torque=0.0 * q))
    shown = result.efforts / -np.expm1(-PERIOD)
    assert np.abs(shown - left).max() < 1e-10 * np.abs(left).max()


ALL_OF_LINKS = Sensed(links=True, joint_torques=True)


def test_on_a_floating_base_stands_the_mean_wrench_about_its_origin() -> None:
    random = np.random.default_rng(5)
    tree = random_tree(random, 4, floating_base=True)
    stack, start = random_stack(random, 6, tree.n_joints), random_pose(random)
    jets = random_stack(random, 6, 6)
    jets[0] = 0.0
    robot = of_tree(tree)

    def base(time: float) -> BaseMotion:
        x = polynomial(jets, time)
        return BaseMotion(start @ exp(x[0]), body_twists(x), representation="body_fixed")

    def needed(time: float) -> Array:
        at, moved = polynomial(stack, time), base(time)
        efforts = mp.inverse_dynamics(tree, at, base=moved)  # type: ignore[arg-type]
        wrench = mp.to_float(efforts.base_wrench[0])
        wrench[:3] -= np.cross(moved.pose[:3, 3], wrench[3:])
        return np.concatenate([wrench, mp.to_float(efforts.torques[0])])

    nodes, weights = np.polynomial.legendre.leggauss(5)
    mean = sum(0.5 * w * needed(0.5 * PERIOD * (1.0 + x)) for x, w in zip(nodes, weights))
    observer = MomentumObserver(robot, ObserverConfig(bandwidth=1.0), ALL_OF_LINKS)
    for time in (0.0, PERIOD):
        q, v, _ = polynomial(stack, time)
        sample = observer.sample(position=q, velocity=v, joint_torque=0.0 * q)
        result = observer.update(time, sample, base(time))
    assert result is not None and observer.names[:2] == ("base moment x", "base moment y")
    shown = result.efforts / -np.expm1(-PERIOD)
    assert np.abs(shown - mean).max() < 1e-10 * np.abs(mean).max()


def swinging(time: float | Array, size: float = 1.0, shift: float = 0.0) -> Array:
    """Return a motion of the Panda (..., 3, 7)."""
    phases = np.arange(7.0) + shift
    rows = [
        0.4 * 3.0**k * np.sin(3.0 * np.asarray(time)[..., None] + phases + k * np.pi / 2)
        + 0.2 * 7.0**k * np.sin(7.0 * np.asarray(time)[..., None] + 2 * phases + k * np.pi / 2)
        for k in range(3)
    ]
    rows[0] = rows[0] + np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
    return size * np.stack(rows, axis=-2)


def drives(kind: str) -> Robot:
    rub = {"motor_friction": FrictionSpec(2.0, 1.0, 0.3), "link_friction": FrictionSpec(1.0, 0.5, 0.3)}
    kinds = {
        "rigid": {"stiffness": np.inf},
        "linear": {},
        "damped": {"spring_damping": 20.0},
        "hardening": {"cubic_stiffness": 1e6},
    }
    specs = [
        replace(spec, **{**rub, **kinds[kind]})  # type: ignore[arg-type]
        for spec in panda().require_drives().specs
    ]
    return panda().with_drives(specs)


def outside(robot: Robot, time: Array) -> dict[str, Array]:
    """Return what is measured at times (N,) where links and motors move at will, and what then pushes."""
    train, q = robot.require_drives(), swinging(time)
    theta = q if not train.elastic.any() else q + swinging(time, 0.01, 0.4)
    efforts = np.empty_like(q[:, 0])
    pushes = robot.inverse_dynamics(q)[:, 0]
    for j, drive in enumerate(train.drives):
        spec, rates = train.specs[j], (q[:, 1, j], theta[:, 1, j])
        link, motor = (
            f.viscous * v + f.coulomb * v / np.sqrt(v * v + f.transition**2)
            for f, v in zip((spec.link_friction, spec.motor_friction), rates)
        )
        efforts[:, j] = motor + spec.motor_inertia * theta[:, 2, j]
        if drive.rigid:
            pushes[:, j] += link - 2.0  # the motor gives as much more
            efforts[:, j] += 2.0
        else:
            bent = theta[:, :2, j] - q[:, :2, j]
            torque = spec.stiffness * bent[:, 0] + spec.cubic_stiffness * bent[:, 0] ** 3
            torque += spec.spring_damping * bent[:, 1]
            efforts[:, j] += torque
            pushes[:, j] += link - torque
    return {"q": q, "theta": theta, "efforts": efforts, "pushes": pushes}


def largest_error(robot: Robot, sensed: Sensed, period: float) -> float:
    """Return the largest error of what pushes from outside along a motion."""
    config = ObserverConfig(held_efforts=True, adapt_drives=False, bandwidth=50.0)
    observer = MomentumObserver(robot, config, sensed)
    nodes, weights = np.polynomial.legendre.leggauss(6)
    starts = period * np.arange(round(0.2 / period))
    at = outside(robot, starts)
    within = outside(robot, (starts[:, None] + 0.5 * period * (1.0 + nodes)).ravel())
    held, means = (
        np.einsum("k,ikj->ij", 0.5 * weights, within[name].reshape(len(starts), len(nodes), -1))
        for name in ("efforts", "pushes")
    )
    found = []
    for i, start in enumerate(starts):
        (q, v, _), (theta, w, _) = at["q"][i], at["theta"][i]
        values = {"position": q, "velocity": v, "motor_position": theta, "motor_velocity": w,
                  "motor_effort": held[i]}  # fmt: skip
        result = observer.update(start, observer.sample(**{name: values[name] for name in observer.rows}))
        if result is not None:
            found.append(result.efforts)
    return float(np.abs(np.array(found) - filtered(means[:-1], 50.0, period)).max())


@pytest.mark.parametrize("kind", ["rigid", "linear", "damped", "hardening"])
def test_with_an_exact_model_the_error_is_of_fourth_order(kind: str) -> None:
    robot = drives(kind)
    sensed = Sensed(links=True, motors=True, motor_efforts=True)
    coarse, fine = (largest_error(robot, sensed, period) for period in (4e-3, 2e-3))
    assert fine < 2e-5 and coarse / fine > 12.0


def test_links_without_encoders_are_placed_by_the_load() -> None:
    robot, train = panda(), panda().require_drives()
    errors = {}
    for sensed in (Sensed(links=False, motors=True, motor_efforts=True), Sensed(motor_efforts=True)):
        observer = MomentumObserver(robot, ObserverConfig(held_efforts=True), sensed)
        worst = 0.0
        for i in range(300):
            motion = np.zeros((5, 7))
            motion[:3] = swinging(i * PERIOD, 0.5)
            torques = np.zeros((3, 7))
            torques[0] = robot.inverse_dynamics(motion[:3])[0]
            before, after = (robot.inverse_dynamics(swinging(i * PERIOD + h, 0.5))[0] for h in (-1e-4, 1e-4))
            torques[1], torques[2] = (after - before) / 2e-4, (after - 2 * torques[0] + before) / 1e-8
            motors = train.feedforward(motion, torques)
            theta, w = motors.position[:2]
            rows = (theta, w, motors.effort[0])
            found = observer.update(i * PERIOD, np.array(rows))
            if i > 100:
                worst = max(worst, float(np.abs(found.efforts).max()))
        errors[sensed.links] = worst
    assert errors[False] < 0.2 * errors[True]


# --- plants in SciPy ----------------------------------------------------------------------------------------


def desired(time: float) -> Array:
    return np.array([0.4 * np.sin(2.0 * time) - 0.3, 0.8 * np.sin(3.1 * time) + 0.5])


def observed(
    observer: MomentumObserver, plant: ElasticPair, states: Array, efforts: Array
) -> list[ExternalEfforts]:
    found = []
    for i, (state, effort) in enumerate(zip(states, efforts)):
        q, theta, v, w = state.reshape(4, 2)
        values = {
            "position": q,
            "velocity": v,
            "motor_position": theta,
            "motor_velocity": w,
            "motor_effort": effort,
            "joint_torque": np.array(plant.stiffness) * (theta - q),
        }
        result = observer.update(
            i * PERIOD, observer.sample(**{name: values[name] for name in observer.rows})
        )
        if result is not None:
            found.append(result)
    return found


@cache
def touched() -> tuple[ElasticPair, Array, Array, Array]:
    """Return a plant as modelled, its states and efforts, and what pushes it, held over each period."""
    plant = ElasticPair(link_viscous=(1.0, 0.5))
    pushes = np.array([[4.0, -2.0] if 0.15 <= (i + 0.5) * PERIOD < 0.25 else [0.0, 0.0] for i in range(400)])
    states, efforts = plant.run(
        0.4, PERIOD, lambda t: pushes[int(t / PERIOD)], desired=desired, tolerance=1e-13
    )
    return plant, states, efforts, pushes


@pytest.mark.parametrize("form", FORMS)
def test_what_pushes_a_plant_by_hand_is_seen_through_one_pole(
    read: Callable[[str], Robot], form: str
) -> None:
    plant, states, efforts, pushes = touched()
    config = ObserverConfig(held_efforts=True, adapt_drives=False)
    observer = MomentumObserver(plant.robot(read), config, FORMS[form])
    found = np.array([one.efforts for one in observed(observer, plant, states, efforts)])
    right = filtered(pushes[: len(found)], config.bandwidth, PERIOD)
    # torque sensors are taken to change evenly between two samples
    limit = 2e-2 if "sensor" in form or form == "all" else 2e-5
    assert np.abs(found - right).max() < limit


def test_motor_torque_alone_finds_the_same_of_a_rigid_arm(read: Callable[[str], Robot]) -> None:
    plant = ElasticPair(stiffness=(2e6, 1e6))  # swings settle long before the first sample
    robot = plant.robot(read, rigid=True)
    observer = MomentumObserver(robot, ObserverConfig(held_efforts=True))
    assert observer.rows == ("position", "velocity", "motor_effort")
    q, push = desired(0.0), np.array([3.0, -1.0])
    for i in range(300):  # held still by what bears its weight but for a push
        sample = observer.sample(position=q, velocity=NOTHING, motor_effort=plant.bias(q, NOTHING) - push)
        found = observer.update(i * PERIOD, sample)
    assert np.abs(found.efforts - push).max() < 1e-9
    # at rest the dry friction may be anything up to what is stated
    assert (found.deviations > np.array(plant.coulomb)).all()


# --- drives that differ from the file -----------------------------------------------------------------------

ERRORS = {"torque": 0.15, "viscous": -0.2, "coulomb": 0.2}


@cache
def differing() -> tuple[ElasticPair, Array, Array]:
    plant = ElasticPair().with_errors(*ERRORS.values())

    def external(time: float) -> Array:
        return np.array([12.0, -5.0]) if time > 2.5 else NOTHING

    states, efforts = plant.run(3.0, PERIOD, external, desired=desired, tolerance=1e-9)
    return plant, states, efforts


def test_the_motors_equation_corrects_springs_and_friction(read: Callable[[str], Robot]) -> None:
    plant, states, efforts = differing()
    config = ObserverConfig(held_efforts=True, effort_noise=(0.02,), inertia_deviation=0.0)
    observer = MomentumObserver(ElasticPair().robot(read), config, FORMS["spring and motor"])
    found = observed(observer, plant, states, efforts)
    for joint in ("shoulder", "elbow"):
        for kind, correction in observer.corrections[joint].items():
            assert abs(correction.value - ERRORS[kind]) < max(3.0 * correction.deviation, 0.005), (
                joint,
                kind,
            )
            assert correction.deviation < {"torque": 0.02, "viscous": 0.15, "coulomb": 0.1}[kind]
    held = np.array([one.efforts for one in found])
    assert np.abs(held[1500:2490]).max() < 0.05  # what was 15 % of the weight
    assert np.abs(held[-1] - [12.0, -5.0]).max() < 0.1


def test_a_contact_moves_no_correction(read: Callable[[str], Robot]) -> None:
    plant, states, efforts = differing()
    config = ObserverConfig(held_efforts=True, effort_noise=(0.02,))
    observer = MomentumObserver(ElasticPair().robot(read), config, FORMS["spring and motor"])
    observed(observer, plant, states[:2490], efforts[:2490])
    before = observer.corrections["shoulder"]["torque"].value
    for i in range(2490, 3000):
        q, theta, v, w = states[i].reshape(4, 2)
        result = observer.update(i * PERIOD, np.array([q, v, theta, w, efforts[i]]))
    assert result is not None and result.contact
    assert abs(observer.corrections["shoulder"]["torque"].value - before) < 0.002


def test_without_memory_both_forms_are_weighted_by_their_covariance(read: Callable[[str], Robot]) -> None:
    plant, states, efforts = differing()
    robot = ElasticPair().robot(read)

    def largest(stiffness: float, friction: float) -> float:
        config = ObserverConfig(
            held_efforts=True, adapt_drives=False, effort_noise=(1e-3,), correction_limit=10.0,
            stiffness_deviation=stiffness, friction_deviation=friction,
        )  # fmt: skip
        observer = MomentumObserver(robot, config, FORMS["spring and motor"])
        found = observed(observer, plant, states[:1200], efforts[:1200])
        return float(np.abs([one.efforts for one in found[200:]]).max())

    by_spring, by_motor, both = largest(0.0, 1.0), largest(1.0, 0.0), largest(0.15, 0.2)
    assert both < 1.05 * max(by_spring, by_motor)
    friction = plant.friction(np.abs(states[:1200, 6:]).max(axis=0)).max()
    assert by_motor < 0.3 * friction  # the error of friction and nothing of the spring's
    torque = np.abs(np.array(plant.stiffness) * (states[:1200, 2:4] - states[:1200, :2])).max()
    assert 0.05 * torque < by_spring < 0.2 * torque


# --- deviations ---------------------------------------------------------------------------------------------


def test_deviations_follow_the_covariance_of_the_parameters() -> None:
    robot = drives("rigid")
    size = 10 * robot.tree.n_bodies
    random = np.random.default_rng(3)
    root = 1e-3 * random.standard_normal((size, size))
    config = ObserverConfig(effort_noise=(1e-6,), friction_deviation=0.0, stiffness_deviation=0.0)
    observer = MomentumObserver(robot, config, ALL_OF_LINKS, covariance=root @ root.T)
    q = swinging(0.3)[0]
    for i in range(400):
        torque = robot.inverse_dynamics(np.stack([q, 0 * q, 0 * q]))[0]
        found = observer.update(i * PERIOD, observer.sample(position=q, velocity=0 * q, joint_torque=torque))
        observer.regress()
    regressor = robot.regressor(np.stack([q, 0 * q, 0 * q]))[0]
    friction = np.array([drive.link_friction.coulomb for drive in robot.require_drives().drives])
    right = np.sqrt(np.diag(regressor @ root @ root.T @ regressor.T) + friction**2)
    assert np.abs(found.deviations / right - 1.0).max() < 1e-6


def test_a_contact_is_announced_once_and_ends() -> None:
    robot = drives("rigid")
    config = ObserverConfig(effort_noise=(0.5,), inertia_deviation=0.0, stiffness_deviation=0.0)
    specs = [replace(s, link_friction=FrictionSpec(), motor_friction=FrictionSpec())
             for s in robot.require_drives().specs]  # fmt: skip
    observer = MomentumObserver(robot.with_drives(specs), config, ALL_OF_LINKS)
    q = swinging(0.3)[0]
    torque = robot.inverse_dynamics(np.stack([q, 0 * q, 0 * q]))[0]
    states = []
    for i in range(600):
        push = 4.0 * (200 <= i < 400) * np.eye(7)[2]
        found = observer.update(
            i * PERIOD, observer.sample(position=q, velocity=0 * q, joint_torque=torque - push)
        )
        states.append(found is not None and found.contact)
    changes = np.flatnonzero(np.diff(states)) + 1
    # 4 (1 - e^(-L t)) = 5 · 0.5 and, from 4 on, 4 e^(-L t) = 0.6 · 5 · 0.5
    assert changes.tolist() == [200 + 12, 400 + 12]


def test_the_noise_of_a_quiet_recording_keeps_it_silent() -> None:
    robot, random = drives("rigid"), np.random.default_rng(4)
    observer = MomentumObserver(robot, ObserverConfig(stiffness_deviation=0.0), ALL_OF_LINKS)
    times = PERIOD * np.arange(600)
    motion = swinging(times, 0.3)
    torque = robot.inverse_dynamics(motion)[:, 0] + 0.5 * random.standard_normal((600, 7))
    samples = np.stack([motion[:, 0], motion[:, 1], torque], axis=1)
    noise = observer.noise_of(times, samples)
    assert len(noise) == 7 and min(noise) > 0.05
    observer.config = replace(observer.config, effort_noise=noise, inertia_deviation=0.0)
    said = [observer.update(time, sample) for time, sample in zip(times.tolist(), samples)]
    assert max(one.largest for one in said if one is not None) < 0.85 * observer.config.threshold
    refused(lambda: observer.noise_of(times, samples[:, :2]), "ten or more samples")


def test_smoothing_can_be_added_while_it_runs() -> None:
    observer, sample = standing()
    observer.config = replace(observer.config, smoothing=200.0)
    assert observer.update(1.0, sample) is None  # it begins anew
    pushed = sample.copy()
    pushed[2, 2] -= 10.0
    for i in range(1, 400):
        found = observer.update(1.0 + PERIOD * i, pushed)
    assert found is not None and abs(found.efforts[2] - 10.0) < 1e-6
    observer.config = replace(observer.config, bandwidth=500.0)  # which changes nothing of what was
    found = observer.update(1.0 + PERIOD * 400, pushed)
    assert found is not None and abs(found.efforts[2] - 10.0) < 1e-6


# --- loops and large robots ---------------------------------------------------------------------------------


def followed(name: str, push: Array, strain: float) -> tuple[Array, Array]:
    """Return what an observer of a robot with rigid drives says (N, n), and of a push what moves it (N, n).

    `strain` is what redundant drives pull against each other with.
    """
    read = Robot.load(share.find("config", name))
    robot = read.with_drives([DriveSpec(np.inf, 0.01)] * len(read.driven_joints))
    observer = MomentumObserver(robot, ObserverConfig(held_efforts=True, bandwidth=50.0))
    nodes, weights = np.polynomial.legendre.leggauss(5)
    home, pose = read.home

    def state(time: float) -> tuple[Array, Array, Array]:
        waves = np.array([9.0**k * np.sin(9.0 * time + k * np.pi / 2) for k in range(3)])[:, None]
        if pose is None:
            q = waves * np.array([0.1, -0.2, 0.15])
            q[0] += home
            platform = None
        else:
            q, jets = np.zeros((3, 0)), waves * np.array([0.0, 0.0, 0.0, 0.03, -0.02, 0.0])
            platform = BaseMotion(pose @ exp(jets[0]), body_twists(jets), representation="body_fixed")
        found = read.drive_state(q, platform)
        jacobian = read.drive_jacobian(q[:1], platform)[0]
        moves = jacobian @ np.linalg.pinv(jacobian)
        idle = strain * (np.eye(len(moves)) - moves).sum(axis=1)
        return found.motion[:3], found.efforts[0] + 0.01 * found.motion[2] + idle, moves @ push

    said, pushed = [], []
    for i in range(60):
        motion = state(i * PERIOD)[0]
        within = [state(i * PERIOD + 0.5 * PERIOD * (1.0 + x)) for x in nodes]
        effort = sum(0.5 * w * (one[1] - one[2]) for w, one in zip(weights, within))
        pushed.append(sum(0.5 * w * one[2] for w, one in zip(weights, within)))
        sample = observer.sample(position=motion[0], velocity=motion[1], motor_effort=effort)
        found = observer.update(i * PERIOD, sample)
        if found is not None:
            said.append(found.efforts)
    return np.array(said), filtered(np.array(pushed)[:-1], 50.0, PERIOD)


def test_with_loops_the_driven_joints_are_pushed() -> None:
    said, pushed = followed("delta.yaml", np.array([1.0, -2.0, 0.5]), 0.0)
    assert np.abs(said - pushed).max() < 1e-7


def test_redundant_drives_that_strain_each_other_push_nothing() -> None:
    said, pushed = followed("planar_3rrr.yaml", np.array([1.0, -2.0, 0.5]), 5.0)
    assert np.abs(pushed).max() > 0.5  # the observer is late by a filter, and this changes on the way
    assert np.abs(said - pushed).max() < 0.02


# --- what is no sample --------------------------------------------------------------------------------------


def standing() -> tuple[MomentumObserver, Array]:
    observer = MomentumObserver(panda(), ObserverConfig(), Sensed(links=True, joint_torques=True))
    q = swinging(0.0)[0]
    torque = panda().inverse_dynamics(np.stack([q, 0 * q, 0 * q]))[0]
    sample = observer.sample(position=q, velocity=0 * q, joint_torque=torque)
    for i in range(3):
        observer.update(i * PERIOD, sample)
    return observer, sample


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_named_and_changes_nothing(value: float) -> None:
    observer, sample = standing()
    wrong = sample.copy()
    wrong[1, 3] = value
    refused(lambda: observer.update(3 * PERIOD, wrong), "velocity holds ... for joint 'panda_joint4'")
    found = observer.update(3 * PERIOD, sample)
    assert found is not None and np.abs(found.efforts).max() < 1e-9


@pytest.mark.parametrize("time", [2 * PERIOD, PERIOD, -1.0, np.nan, np.inf])
def test_time_goes_on(time: float) -> None:
    observer, sample = standing()
    refused(lambda: observer.update(time, sample), "time")
    assert observer.update(3 * PERIOD, sample) is not None


@pytest.mark.parametrize("sample", [np.zeros((2, 7)), np.zeros(21), np.zeros((3, 6)), None, "none"])
def test_other_shapes_are_refused(sample: object) -> None:
    observer, _ = standing()
    with pytest.raises(InputError, match="a sample"):
        observer.update(3 * PERIOD, sample)  # type: ignore[arg-type]
    refused(lambda: observer.sample(position=np.zeros(7)), "needs ... 'velocity'")


def test_after_a_gap_it_begins_anew_and_keeps_what_it_knows_of_drives(read: Callable[[str], Robot]) -> None:
    plant, states, efforts = differing()
    config = ObserverConfig(held_efforts=True, effort_noise=(0.02,))
    observer = MomentumObserver(ElasticPair().robot(read), config, FORMS["spring and motor"])
    observed(observer, plant, states[:1500], efforts[:1500])
    before = observer.corrections
    sample = np.array([*states[1800].reshape(4, 2)[[0, 2, 1, 3]], efforts[1800]])
    assert observer.update(1.8, sample) is None and observer.restarts == 1
    assert observer.corrections == before
    assert observer.update(1.801, sample) is not None
    observer.restart()
    assert observer.corrections["elbow"]["torque"].value == 0.0


def test_what_is_measured_has_to_suffice() -> None:
    assert_refused(
        (Sensed(links=False, motor_efforts=True), "positions"),
        (Sensed(links=True), "nothing says what torque acts on joint 'panda_joint1'"),
        (Sensed(links=False, motors=True), "nothing says"),
        by=lambda sensed: MomentumObserver(panda(), ObserverConfig(), sensed),
    )


def test_figures_of_the_configuration_are_checked() -> None:
    assert_refused(
        ({"bandwidth": 0.0}, like(RangeError, name="bandwidth", low=0.1)),
        ({"threshold": np.nan}, like(RangeError, name="threshold")),
        ({"effort_noise": (1.0, -1.0)}, "'effort_noise'"),
        ({"wrench_noise": (1.0,)}, "'wrench_noise' holds 1 values; give six"),
        by=lambda figures: ObserverConfig(**figures),
    )


def test_noise_is_of_each_joint_or_of_all() -> None:
    call = partial(MomentumObserver, panda(), ObserverConfig(effort_noise=(1.0, 2.0)))
    refused(call, "2 values for 7 joints")


def test_a_spring_beyond_its_table_is_named(tmp_path: Path) -> None:
    bends = np.linspace(-0.01, 0.01, 9)
    table = SpringTable(tuple((1e4 * bends).tolist()), tuple(bends.tolist()))
    specs = [DriveSpec(1e4, 0.5, spring_table=table)] * 7
    observer = MomentumObserver(panda().with_drives(specs), ObserverConfig(), Sensed(links=True, motors=True))
    q = swinging(0.0)[0]
    rows = {"velocity": 0 * q, "motor_velocity": 0 * q}
    observer.update(0.0, observer.sample(position=q, motor_position=q, **rows))
    observer.update(PERIOD, observer.sample(position=q, motor_position=q + 0.005, **rows))
    far = q + 0.005
    far[2] += 0.1
    call = partial(observer.update, 2 * PERIOD, observer.sample(position=q, motor_position=far, **rows))
    refused(call, "panda_joint3")


def test_without_velocities_it_takes_those_between_samples(read: Callable[[str], Robot]) -> None:
    plant, states, efforts, pushes = touched()
    config = ObserverConfig(held_efforts=True, adapt_drives=False)
    sensed = replace(FORMS["spring and motor"], rates=False)
    observer = MomentumObserver(plant.robot(read), config, sensed)
    assert observer.rows == ("position", "motor_position", "motor_effort")
    found = np.array([one.efforts for one in observed(observer, plant, states, efforts)])
    halves = 0.5 * (pushes[1:] + pushes[:-1])  # half a period later
    right = filtered(halves[: len(found)], config.bandwidth, PERIOD)
    assert np.abs(found - right).max() < 5e-3
