"""The checks of the guard one by one: signals against each other, motion against efforts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import explained_study
import numpy as np
import pytest
from refusals import like, refused
from scipy.integrate import solve_ivp
from sweeps import some

from hodyn_ros import RangeError, Robot, share
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.effort_check import GAIN, RATE_OVER, THRESHOLD, EffortCheck
from hodyn_ros.guard.feedforward_stream import FeedforwardStream
from hodyn_ros.guard.guard_config import End, GuardConfig, GuardLimits, Rejoin
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.guard.measured_motion import MeasuredMotion
from hodyn_ros.guard.reasons import Fault, Obstacle, Progress, Reason, State, StreamError
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.observers import ObserverConfig
from hodyn_ros.observers.effort_observer import EffortObserver

MS = 1_000_000  # [ns]
EPOCH = 1_700_000_000 * 1000 * MS


# figures and reasons


@pytest.mark.parametrize(
    "name, value",
    [
        *[("timeout", value) for value in (50.0, 0.0, np.nan, np.inf)],
        *[("speed_margin", 11.0), ("join_within", -0.1), ("drive_timeout", 0.0), ("deceleration", np.inf)],
    ],
)
def test_a_figure_out_of_its_range_is_refused_by_its_name(name: str, value: float) -> None:
    refused(lambda: GuardConfig(**{name: value}), like(RangeError, name=name, value=value))


def test_each_reason_has_words_with_its_figures() -> None:
    for cause in (*Fault, *Obstacle, *Progress):
        text = str(Reason(cause, "elbow", 1.25, 0.5, note="more"))
        assert text.startswith(cause.value)
        assert "{" not in text
    found = Reason(Fault.TRACKING, "elbow", 0.25, 0.1)
    assert str(found) == "tracking error: joint 'elbow' is 0.25 rad or m off its reference, 0.1 are allowed"
    assert found.fault is Fault.TRACKING
    assert not found.start_pose
    assert "motors let go" in str(Reason(Fault.VELOCITY, "elbow", tripped=True))
    assert Reason(Obstacle.POSE).fault is None
    assert Reason(Obstacle.POSE).start_pose


# measurements against each other


def measured(seconds: float, position, velocity, period: int = MS) -> MeasuredMotion:
    """What one joint shows that is at `position(t)` and says `velocity(t)`."""
    motion = MeasuredMotion(["a"], GuardConfig(), np.array([2.4]))
    for k in range(round(1e9 * seconds / period)):
        t, now = 1e-9 * k * period, EPOCH + k * period
        motion.take(now, now, np.array([position(t)]), np.array([velocity(t)]))
    return motion


@pytest.mark.parametrize("lag, noise, scale", [(0.003, 0.0, 1.0), (0.0, 0.01, 1.0), (0.0, 0.0, 1.04)])
def test_velocities_may_be_filtered_noisy_and_a_little_wrong(lag: float, noise: float, scale: float) -> None:
    random = np.random.default_rng(1)
    found = measured(
        2.0,
        lambda t: 0.4 * np.sin(4 * t) + 1e-5 * random.normal(),
        lambda t: scale * 1.6 * np.cos(4 * (t - lag)) + noise * random.normal(),
    )
    assert found.contradiction() is None
    assert found.rate[0] == pytest.approx(1.6 * np.cos(8.0), abs=0.1)


def test_a_joint_at_rest_whose_velocity_is_noisy_is_not_frozen() -> None:
    random = np.random.default_rng(2)
    assert measured(2.0, lambda t: 0.3, lambda t: 0.01 * random.normal()).contradiction() is None


@pytest.mark.parametrize("says", [lambda v: 0.0, lambda v: -v, lambda v: 2.0 * v, lambda v: 0.7 * v])
def test_velocities_that_positions_do_not_confirm_contradict_them(says) -> None:
    found = measured(0.1, lambda t: 1.5 * t, lambda t: says(1.5)).contradiction()
    assert found is not None
    assert (found.cause, found.joint) == (Fault.CONTRADICTION, "a")


@pytest.mark.parametrize("velocity", [1.5, 0.05])
def test_a_position_that_stays_the_same_although_the_joint_moves_is_frozen(velocity: float) -> None:
    moving = measured(0.2, lambda t: velocity * t, lambda t: velocity)
    assert moving.contradiction() is None
    frozen = measured(0.2 + 0.01 / velocity, lambda t: velocity * min(t, 0.2), lambda t: velocity)
    found = frozen.contradiction()
    assert found is not None
    assert found.cause in (Fault.FROZEN, Fault.CONTRADICTION)


@pytest.mark.parametrize("velocity", [1e308, -1e7, np.inf])
def test_an_impossible_velocity_is_not_taken(velocity: float) -> None:
    motion = MeasuredMotion(["a", "b"], GuardConfig(), np.array([2.4, 2.4]))
    motion.take(EPOCH, EPOCH, np.zeros(2), np.zeros(2))
    call = partial(motion.take, EPOCH + MS, EPOCH + MS, np.zeros(2), np.array([0.0, velocity]))
    refused(call, "velocity of joint 'b'", StreamError)
    assert motion.stamp == EPOCH
    motion.take(EPOCH + MS, EPOCH + MS, np.zeros(2), np.array([0.0, np.nan]))  # is not measured
    assert motion.unknown.tolist() == [False, True]


def speeds(signals, joint: int = 0) -> np.ndarray:
    """What is known of the speed of a joint, each millisecond, where the other one has no position."""
    motion, found = MeasuredMotion(["a", "b"], GuardConfig(), np.array([2.4, 2.4])), []
    for k, (position, velocity) in enumerate(signals):
        now, both = EPOCH + k * MS, np.full(2, np.nan)
        both[joint] = position
        refused(partial(motion.take, now, now, both, np.full(2, velocity)), "position of joint", StreamError)
        found.append(motion.speed.copy())
    assert motion.stamp is None and not np.array(found)[:, 1 - joint].any()
    return np.array(found)[:, joint]


@pytest.mark.parametrize("joint", [0, 1])
def test_the_speed_of_a_joint_is_known_whatever_the_others_say_and_not_late(joint: int) -> None:
    """At 60 rad/s^2, as of a turned motor, a mean over 10 ms would be 0.6 rad/s too slow."""
    times = 1e-3 * np.arange(40)
    found = speeds([(30.0 * t**2, 60.0 * t) for t in times], joint)
    np.testing.assert_allclose(found[8:], 60.0 * times[8:], rtol=1e-12)


@pytest.mark.parametrize("position, velocity", [(0.0, 2.4), (0.0, -2.4), (2.4, 0.0), (-2.4, 0.5)])
def test_the_speed_of_a_joint_is_the_slower_of_both_where_they_differ(
    position: float, velocity: float
) -> None:
    found = speeds([(1e-3 * k * position, velocity) for k in range(40)])
    assert np.abs(found).max() <= min(abs(position), abs(velocity)) + 1e-12


def test_a_jump_with_a_false_velocity_is_no_speed() -> None:
    found = speeds([(0.3 * (k == 20), 2.4 * (k == 20)) for k in range(40)])
    assert not found.any()
    alternating = speeds([(0.3 * (k % 2), 2.4) for k in range(40)])
    assert not alternating.any()


# the motion against the efforts


def test_the_residual_follows_what_acts_on_a_pendulum_besides() -> None:
    """Against SciPy: mass 2 kg, 0.5 m, rotor 0.3 kg m^2, friction 0.8; 6 N.m act from 0.5 s on."""
    inertia, weight, rubs = 2.0 * 0.25 + 0.3, 2.0 * 9.81 * 0.5, 0.8

    def effort(t: float) -> float:
        return 5.0 * np.sin(3.0 * t)

    def besides(t: float) -> float:
        return 6.0 * (t > 0.5)

    def rates(t: float, x: np.ndarray) -> list[float]:
        return [x[1], (effort(t) + besides(t) - weight * np.sin(x[0]) - rubs * x[1]) / inertia]

    times = np.arange(0.0, 1.0, 1e-3)
    moved = solve_ivp(rates, (0.0, 1.0), [0.0, 0.0], t_eval=times, rtol=1e-10, atol=1e-12, max_step=1e-3).y
    links, rotor = inertia - 0.3, DriveSpec(np.inf, 0.3, motor_friction=FrictionSpec(rubs))
    observer = EffortObserver(
        lambda motion: links * motion[2] + weight * np.sin(motion[0]),
        DriveTrain([rotor], ["a"]),
        ObserverConfig(bandwidth=GAIN, friction_deviation=0.2, inertia_deviation=0.0),
        np.array([0.1]),
        at_motors=True,
    )
    check, rate, found, allowed = EffortCheck(observer, np.array([5.0])), np.zeros(1), [], []
    for k, t in enumerate(times):
        if k:
            step = (moved[0, k] - moved[0, k - 1]) / 1e-3
            rate = rate + (1 - np.exp(-1e-3 / RATE_OVER)) * (step - rate)
        mean = np.array([0.5 * (effort(t) + effort(t - 1e-3))])
        check.update(EPOCH + k * MS, moved[:1, k], rate, mean)
        found.append(check.value[0])
        allowed.append(check.allowed[0])
    assert np.isinf(allowed[0])
    from scipy.signal import TransferFunction, lsim  # takes a moment

    # five deviations: of noise, and of a fifth of the friction at this speed, behind both lags
    lags = TransferFunction([1.0], np.polymul([1.0 / GAIN, 1.0], [RATE_OVER, 1.0]))
    _, rubbing, _ = lsim(lags, 0.2 * rubs * moved[1], times)
    np.testing.assert_allclose(allowed[10:], 5.0 * (0.1 + np.abs(rubbing[10:])), rtol=1e-3)
    found = np.array(found)
    assert np.abs(found[:500]).max() < 0.25
    assert found[-1] == pytest.approx(6.0, abs=0.25)
    # two lags, of the rate and of the filter, one after the other
    late = times[500:] - 0.5
    slow, quick = 1 / GAIN, RATE_OVER
    expected = 6.0 * (1 - (slow * np.exp(-late / slow) - quick * np.exp(-late / quick)) / (slow - quick))
    np.testing.assert_allclose(found[500:], expected, atol=0.5)


@pytest.mark.parametrize("at_links", [False, True])
def test_a_soft_spring_that_bends_as_it_should_is_no_effort_besides(at_links: bool) -> None:
    """A link of 0.05 kg m^2 swings on 40 N.m/rad; encoders at one side of the spring."""
    link, rotor, stiffness, swings = 0.05, 0.02, 40.0, 20.0
    observer = EffortObserver(
        lambda motion: link * motion[2],
        DriveTrain([DriveSpec(np.inf, rotor)], ["a"]),
        ObserverConfig(bandwidth=GAIN),
        np.array([0.1]),
        at_motors=True,
        at_links=at_links,
    )

    def jets(k: float) -> np.ndarray:
        """Derivatives (5, 1) of the position of the link [rad], k [ms] after the beginning."""
        orders = np.arange(5.0)[:, None]
        return 0.3 * swings**orders * np.cos(1e-3 * swings * k + 0.5 * np.pi * orders)

    checks = [EffortCheck(observer, np.array([50.0])) for _ in range(2)]
    found, rate, before = [], np.zeros(1), None
    for k in range(600):
        ahead = link / stiffness * jets(k)[2:]
        measured = jets(k)[0] + (0.0 if at_links else ahead[0])
        step = 0.0 if before is None else (measured - before) / 1e-3
        rate, before = rate + (1.0 - np.exp(-1e-3 / RATE_OVER)) * (step - rate), measured
        _, _, acceleration, _, snap = jets(k - 0.5)  # what acted on average since the last sample
        effort = (link + rotor) * acceleration + rotor * link / stiffness * snap
        for check, bent in zip(checks, (Motion(*ahead), None)):
            check.update(EPOCH + k * MS, measured, rate, effort, bent)
        found.append([check.value[0] for check in checks])
    known, stiff = np.abs(found[200:]).max(axis=0)  # what begins with a step is over
    assert known < 0.01 * (link + rotor) * 0.3 * swings**2
    assert stiff > 20.0 * known


def test_what_is_allowed_follows_from_the_uncertainty_of_the_robot(tmp_path) -> None:
    text = share.find("config", "panda.yaml").read_text(encoding="utf-8")
    path = tmp_path / "panda.yaml"

    def allowed(uncertainty: str) -> np.ndarray:
        path.write_text(text + f"\nuncertainty: {uncertainty}\n", encoding="utf-8")
        robot = Robot.load(path)
        return np.asarray(guard_limits(robot, robot.joint_names, motor=True).mismatch)

    robot = Robot.load(share.find("config", "panda.yaml"))
    bare = allowed("{efforts: 0.1, stiffness: 0, friction: 0}")
    np.testing.assert_allclose(bare, 0.1 * robot.limits.effort)
    np.testing.assert_allclose(allowed("{efforts: 0.2, stiffness: 0}"), 2 * bare)
    assert (allowed("{efforts: 0.1}") > bare).all()
    heavy = allowed("{efforts: 0.1, stiffness: 0, payload: 3}") - bare
    # no more than the weight at full reach, and what its acceleration adds
    assert 0.5 * 3 * 9.8 * 0.855 < heavy[1] < 3 * (9.8 + 15.0) * 1.0
    assert (heavy >= 0.0).all()
    lower, upper = robot.limits.position_lower, robot.limits.position_upper
    stated = allowed("{payload: 3}")
    postures = np.random.default_rng(0).uniform(lower, upper, (500, 1, 7))
    for ahead, beyond in ((0.0, False), (0.1, True)):  # of the flange, as docs/safety.md says
        held = Payload(3.0, (0.0, 0.0, ahead), body="panda_link8")
        loaded = robot.with_tree(held.on_tree(robot))
        weight = np.abs(loaded.gravity_torque(postures) - robot.gravity_torque(postures))
        assert (weight > stated).any() == beyond
    gone = robot.with_drives(robot.require_drives().specs)
    assert gone.uncertainty == robot.uncertainty


@pytest.fixture(scope="module")
def flying(tmp_path_factory) -> Robot:
    """The aerial manipulator with limits, whose base may accelerate by 5 m/s^2 and rad/s^2."""
    text = share.find("config", "aerial_manipulator.yaml").read_text(encoding="utf-8")
    path = tmp_path_factory.mktemp("robot") / "flying.yaml"
    limited = text.replace("    axis:", "    limits: {velocity: 4, effort: 4}\n    axis:")
    path.write_text(limited + "\nuncertainty: {efforts: 0.1, base: 5}\n", encoding="utf-8")
    return Robot.load(path)


def test_what_a_floating_base_may_do_is_allowed(flying: Robot) -> None:
    """In the worst of all directions, by the mass matrix; without such a figure there is no check."""
    names, still = flying.joint_names, BaseMotion(np.eye(4), np.zeros((1, 6)), representation="body_fixed")
    more = np.asarray(guard_limits(flying, names, motor=False).mismatch) - 0.1 * flying.limits.effort
    moved = [
        flying.mass_matrix(q[None], still)[0, 6:, :6]
        for q in np.random.default_rng(5).uniform(-1, 1, (500, 6))
    ]
    worst = np.linalg.norm(np.reshape(moved, (-1, 6, 2, 3)), axis=3).max(axis=0) @ [5.0, 5.0]
    np.testing.assert_allclose(more, worst, rtol=0.1, atol=0.01)
    assert more[0] > 0.8 > 0.01 > more[2] > 0.0  # the axis of the last joint passes its centre of mass
    unsaid = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    assert effort_model(unsaid, names, motor=False) is None


def test_a_turned_motor_on_a_floating_base_is_seen_and_its_sway_is_not(flying: Robot) -> None:
    """The base sways by 3 m/s^2, which nobody tells."""
    names = flying.joint_names
    model = effort_model(flying, names, motor=False)
    observer = effort_observer(flying, names, model.links, motor=False, at_links=True)
    phases, orders = np.arange(6.0), np.arange(3.0)[:, None]
    for turned in (None, 1, 3, 5):
        check, shares = EffortCheck(observer, np.full(6, 40.0)), []
        for k in range(400):
            time = 1e-3 * k
            q = 0.3 * 9.0**orders * np.sin(9.0 * time + phases + 0.5 * np.pi * orders)
            sways = 3.0 * np.array(
                [-np.sin(8.0 * time) / 64.0, -np.cos(8.0 * time) / 8.0, np.sin(8.0 * time)]
            )
            pose = np.eye(4)
            pose[0, 3] = sways[0]
            base = BaseMotion(pose, np.outer(sways[1:], np.eye(6)[3]), representation="spatial")
            effort = flying.inverse_dynamics(q, base)[1][0]
            if turned is not None and k > 200:
                effort[turned] += 2.0  # as of a motor that should push with -1 N.m
            check.update(EPOCH + k * MS, q[0], q[1], effort)
            shares.append(np.abs(check.value) / check.allowed)
        assert np.max(shares[:200]) < 0.8
        if turned is None:
            assert np.max(shares) < 0.8
        else:
            assert np.argmax(shares[-1]) == turned and shares[-1][turned] > 1.0


def test_what_is_allowed_of_a_motion_follows_its_friction(tmp_path) -> None:
    """At rest what may stick, in motion the friction that is, and of the rest what the file says."""
    text = share.find("config", "panda.yaml").read_text(encoding="utf-8")
    path, names = tmp_path / "panda.yaml", [f"panda_joint{7 - j}" for j in range(7)]  # the other way round
    path.write_text(text + "\nuncertainty: {efforts: 0.1, stiffness: 0}\n", encoding="utf-8")
    robot = Robot.load(path)
    rub = [FrictionSpec(viscous, 2.0, 0.002) for viscous in np.arange(1.0, 8.0)]
    specs = robot.require_drives().specs
    robot = robot.with_drives([replace(one, motor_friction=own) for one, own in zip(specs, rub)])
    model = effort_model(robot, names, motor=True)
    observer = effort_observer(robot, names, model.links, motor=True)
    for speed, friction in ((0.0, 2.0 * THRESHOLD), (0.4, 0.4 * np.arange(7.0, 0.0, -1.0) + 2.0)):
        check = EffortCheck(observer, np.full(7, 2.0))
        for k in range(300):
            q, v = np.full(7, 1e-3 * speed * k - 0.5), np.full(7, speed)
            check.update(EPOCH + k * MS, q, v, model(Motion(q, v, 0.0 * v)))
        assert np.abs(check.value).max() < 0.1
        needed = model.links(np.array([q, v, 0.0 * v]))
        expected = 0.1 * robot.limits.effort[::-1] + friction + 0.1 * np.abs(needed)
        np.testing.assert_allclose(check.allowed, expected, rtol=0.01)


def test_without_a_model_or_limits_nothing_is_held_against_efforts() -> None:
    eye = [np.eye(3)]
    robot = Robot.from_screws(
        [-1], [[0, 0, 1, 0, 0, 0]], [np.eye(4)], [1.0], [[0.1, 0, 0]], eye, joint_names=["a"]
    )
    assert np.isinf(np.asarray(guard_limits(robot, ["a"], motor=False).mismatch)).all()


# feedforwards


def stream() -> FeedforwardStream:
    limits = GuardLimits(2.0, 50.0, 1000.0, 5.0)
    return FeedforwardStream(
        ["a"], GuardConfig(), np.array([2.2]), limits, lambda motion, _: 3.0 * motion.acceleration
    )


def feedforward(position: float = 0.0, velocity: float = 0.0, acceleration: float = 0.0, **more) -> Reference:
    rows = [more.get("effort", 3.0 * acceleration), more.get("rate", 0.0), more.get("second", 0.0)]
    return Reference(np.array([[position], [velocity], [acceleration]]), np.array(rows)[:, None])


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"acceleration": 1e4}, "derivative 1 of the velocity"),
        ({"rate": 1e5}, "derivative 1 of the effort"),
        ({"second": 1e7}, "derivative 2 of the effort"),
        ({"effort": 6.0}, "motion explains them"),
        ({"position": 0.1}, "position of joint 'a' steps"),
        ({"velocity": 0.5}, "velocity of joint 'a' steps"),
    ],
)
def test_every_order_of_a_feedforward_is_held_against_the_others(wrong: dict[str, float], says: str) -> None:
    found = stream()
    for k in range(3):
        found.take(EPOCH + k * MS, EPOCH + k * MS, feedforward(), Status.OK, True)
    now = EPOCH + 3 * MS
    error = refused(lambda: found.take(now, now, feedforward(**wrong), Status.OK, True), says, StreamError)
    assert error.reason.joint == "a"
    assert error.reason.value > error.reason.limit > 0.0
    assert found.stamp == EPOCH + 2 * MS  # it is not followed


@pytest.mark.parametrize("ahead, taken", [(49, True), (51, False), (-49, True), (-51, False)])
def test_a_feedforward_may_be_stamped_within_timeout_of_now(ahead: int, taken: bool) -> None:
    found = stream()
    call = partial(found.take, EPOCH, EPOCH + ahead * MS, feedforward(), Status.OK, False)
    if taken:
        call()
    else:
        refused(call, "its stamp lies", StreamError)
    assert (found.stamp is not None) is taken


@pytest.mark.parametrize("name", some(explained_study.ROBOTS, "Panda"))
def test_efforts_of_the_fastest_motion_of_elastic_robots_are_explained(name: str) -> None:
    """As if links moved as their motors do, a part of these motions would be rejected."""
    robot = explained_study.ROBOTS[name]()
    found = explained_study.rejected(robot, explained_study.plan(robot, 0))
    assert found.now == 0 < found.messages
    assert found.without > 0 or name == "KR300"  # which is hardly elastic for its weight


@pytest.mark.parametrize("name", explained_study.ROBOTS)
def test_efforts_of_any_motion_of_elastic_robots_are_explained(name: str) -> None:
    robot, random = explained_study.ROBOTS[name](), np.random.default_rng(3)
    model, home = effort_model(robot, robot.driven_joints, motor=True), robot.home[0]
    for _ in range(3):
        q = home + np.array([[0.2], [1.0], [3.0], [30.0], [1e3]]) * random.uniform(-1.0, 1.0, len(home))
        q[1:] -= home
        (one,) = explained_study.references(robot, explained_study.feedforwards(robot, q[None]))
        explained = model(Motion(*one.positions[:3]), Motion(*one.deflections))
        np.testing.assert_allclose(explained, one.efforts[0], rtol=1e-10, atol=1e-9)
        assert np.abs(model(Motion(*one.positions[:3])) - explained).max() > 1e-3


def test_a_robot_that_stops_in_the_fastest_motion_stands_as_its_weight_asks() -> None:
    """Where the stream ends in the moment in which the springs add most to the efforts."""
    robot = explained_study.ROBOTS["Panda"]()
    plan = explained_study.plan(robot, 0)
    found = explained_study.references(robot, explained_study.feedforwards(robot, plan))
    model, names = effort_model(robot, robot.joint_names, motor=True), robot.joint_names
    added = np.abs([each.efforts[0] - model(Motion(*each.positions[:3])) for each in found[500:]]).max(axis=1)
    ends = 501 + int(np.argmax(added))
    assert added.max() > 20.0
    config = GuardConfig(join_within=0.0, settle=0.0, fade=0.05, timeout=0.005)
    guard = CommandGuard(names, config, guard_limits(robot, names, motor=True), model=model)
    for k in range(ends - 200, ends + 1500):
        now = EPOCH + k * MS
        if k < ends:
            guard.follow(now, now, found[k])
        command = guard.command(now, 1e-3)
    assert guard.state is State.STOPPED and guard.faults[Fault.NO_FEEDFORWARD] == 1 and command is not None
    still, weight = np.zeros(7), np.zeros(7)
    for _ in range(3):
        q = command.position - weight / robot.drive_train.stiffness
        weight = robot.inverse_dynamics(np.stack([q, still, still]))[0]
    np.testing.assert_allclose(command.effort, weight, atol=0.05)  # the springs are bent as they were


def test_a_motion_that_leaves_its_own_derivatives_is_seen() -> None:
    """Positions that freeze while velocities go on, by less than a step each."""
    found = stream()
    with pytest.raises(StreamError, match="position of joint 'a' has gone") as error:
        for k in range(100):
            one = feedforward(position=1e-3 * min(k, 50), velocity=1.0)
            found.take(EPOCH + k * MS, EPOCH + k * MS, one, Status.OK, True)
    assert 50 < k < 65
    assert error.value.reason.fault is Fault.REFERENCE_STEP
    again = stream()
    for k in range(100):  # 50 Hz, the acceleration in steps
        t, brakes = 0.02 * k, k > 50
        velocity = min(t, 1.0) - max(t - 1.0, 0.0)
        position = 0.5 * min(t, 1.0) ** 2 + max(t - 1.0, 0.0) - 0.5 * max(t - 1.0, 0.0) ** 2
        one = feedforward(position=position, velocity=velocity, acceleration=1.0 - 2.0 * brakes)
        now = EPOCH + 20 * k * MS
        again.take(now, now, one, Status.OK, False)


def test_efforts_beside_the_model_may_change_slowly() -> None:
    found = stream()
    for k in range(2000):  # 10 N.m in two seconds, as of gravity that is turned
        one = feedforward(effort=5e-3 * k, rate=5.0)
        assert found.take(EPOCH + k * MS, EPOCH + k * MS, one, Status.OK, True).smooth
    with pytest.raises(StreamError, match="motion explains them"):
        late = feedforward(effort=5e-3 * 2000 + 5.0, rate=5.0)
        found.take(EPOCH + 2000 * MS, EPOCH + 2000 * MS, late, Status.OK, True)


# starting again


def guarded(rejoin: Rejoin) -> CommandGuard:
    config = GuardConfig(settle=0.01, fade=0.05, rejoin=rejoin, end=End.HOLD)
    return CommandGuard(["a"], config, GuardLimits(2.0, 50.0))


def run(guard: CommandGuard, ms: range, status: Status = Status.OK, feeds: bool = True) -> State:
    for k in ms:
        now = EPOCH + k * MS
        guard.measure(now, now, np.zeros(1), np.zeros(1))
        if feeds:
            guard.follow(now, now, feedforward(), status)
        guard.command(now)
    return guard.state


@pytest.mark.parametrize("rejoin", Rejoin)
def test_it_joins_again_by_itself_only_where_it_may(rejoin: Rejoin) -> None:
    guard = guarded(rejoin)
    assert not guard.start()  # there is nothing to start yet
    assert run(guard, range(100)) is State.FOLLOWING
    # a gap of the stream
    assert run(guard, range(100, 300), feeds=False) is State.STOPPED
    after_gap = State.STOPPED if rejoin is Rejoin.NEVER else State.FOLLOWING
    assert run(guard, range(300, 400)) is after_gap
    if rejoin is Rejoin.NEVER:
        assert guard.reason.cause is Obstacle.NOT_ASKED
        assert guard.start()
    assert run(guard, range(400, 500)) is State.FOLLOWING
    # any other fault
    run(guard, range(500, 510), status=Status.NEAR_SINGULARITY)
    assert run(guard, range(510, 720)) is (State.FOLLOWING if rejoin is Rejoin.ALWAYS else State.STOPPED)
    if rejoin is not Rejoin.ALWAYS:
        assert guard.reason.cause is Obstacle.NOT_ASKED
        assert guard.start()
        assert run(guard, range(720, 820)) is State.FOLLOWING
    guard.stop()
    run(guard, range(820, 1000))
    assert not guard.start()  # it is shutting down


def test_the_model_of_a_stop_takes_joints_in_any_order() -> None:
    robot = Robot.load(share.find("config", "panda.yaml"))
    names = robot.joint_names[::-1]
    forward, back = (effort_model(robot, order, motor=True) for order in (robot.joint_names, names))
    assert forward is not None and back is not None
    rows = np.random.default_rng(3).normal(size=(3, 7))
    np.testing.assert_allclose(back(Motion(*rows[:, ::-1])), forward(Motion(*rows))[::-1], rtol=1e-12)
