"""What repetitions teach: responses, contraction, what is taken back, limits, files, and bad recordings."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sweeps
from refusals import assert_refused, like, refused
from scipy.integrate import solve_ivp
from scipy.interpolate import BSpline

from benchmarks import repeated_arm
from benchmarks.repeated_arm import NAMES
from hodyn_ros import RangeError, Robot
from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.learning import (
    Correction,
    Learned,
    Learner,
    LearningConfig,
    Uncertainty,
    read_correction,
    write_correction,
)
from hodyn_ros.learning.begins import begins_of
from hodyn_ros.learning.repetitions import errors_of
from hodyn_ros.learning.response import Deviation, Windows, response
from hodyn_ros.model.drive_spec import DriveLimits
from hodyn_ros.trajectory import Cosines, FourierSeries, WaypointSpline
from hodyn_ros.trajectory.rest import rest_to_rest

pytestmark = pytest.mark.thorough

RATE = 500.0  # [Hz] of recordings
COUNT = 1e-6  # [rad] by which samples are rough


@pytest.fixture(name="learner", scope="module")
def make_learner() -> Learner:
    robot = repeated_arm.robot()
    return Learner(robot, repeated_arm.motion(), repeated_arm.gains(robot), LearningConfig(bandwidth=4.0))


def recorded(learner: Learner, errors: Array, seed: int = 0, source: str = "run") -> JointRecording:
    """Return a recording with these errors (windows, n) of its links."""
    motion, random = learner.motion, np.random.default_rng(seed)
    times = np.arange(-0.2, motion.duration + 0.2, 1.0 / RATE)
    wanted = motion.sample(np.clip(times, 0.0, motion.duration), 0)[:, 0]
    places = np.floor(times / motion.duration * learner.windows.count).astype(int)
    links = wanted + errors[np.clip(places, 0, len(errors) - 1)]
    links += COUNT * random.standard_normal(links.shape)
    efforts = 5.0 * np.sin(times)[:, None] + np.ones(links.shape)
    names = learner.robot.driven_joints
    return JointRecording(source, names, Channel(times, efforts), None, Channel(times, links))


def changed(run: JointRecording, joint: int, begin: float, end: float, value: float | None) -> JointRecording:
    """Return a recording whose link is moved by a value [rad] for a while, or frozen."""
    links = run.links.values.copy()
    span = (run.links.times >= begin) & (run.links.times < end)
    links[span, joint] = links[span, joint][0] if value is None else links[span, joint] + value
    return replace(run, links=Channel(run.links.times, links))


def first_errors(learner: Learner) -> Array:
    """Return smooth errors (windows, n) of milliradians."""
    edges = learner.windows.edges
    s = 0.5 * (edges[1:] + edges[:-1]) / learner.windows.duration
    return 1e-3 * np.stack([3.0 + np.sin(7.0 * s), np.cos(9.0 * s) - 2.0, np.sin(12.0 * s)], 1)


def test_the_response_is_that_of_an_arm_written_apart() -> None:
    """A pendulum behind a spring, integrated with SciPy with and without a small effort."""
    mass, length, inertia, rotor, stiff = 4.0, 0.4, 0.1, 0.6, 900.0
    robot = pendulum(mass, length, inertia, rotor, stiff)
    gains = MotorGains(np.array([500.0]), np.array([30.0]))
    motion = WaypointSpline(np.array([0.0, 0.7, 1.5]), np.array([[0.2], [1.2], [0.1]]), order=6)
    windows, size = Windows(motion.duration, 40), 12
    S = response(robot, gains, motion, size, windows, damping_time=0.0)[:, 0, :, 0]
    random = np.random.default_rng(3)
    c = random.uniform(-1.0, 1.0, size)
    knots = np.r_[[0.0] * 4, np.linspace(0.0, motion.duration, size - 3), [motion.duration] * 4]
    spline = BSpline(knots, c, 4)

    def torque(q: float, a: float) -> float:
        return (inertia + mass * length**2) * a + 9.81 * mass * length * float(np.cos(q))

    def wanted(t: float) -> tuple[float, float, float]:
        q, _, a, jerk, snap = motion.sample(t, 4)[:, 0].tolist()
        h = 1e-4
        rows = motion.sample(np.clip([t - h, t, t + h], 0.0, motion.duration), 2)[:, :, 0]
        theta = rows[:, 0] + np.array([torque(*row[[0, 2]]) for row in rows]) / stiff
        # by the equations of the textbook: theta = q + tau / K and its derivatives
        m, g = inertia + mass * length**2, 9.81 * mass * length
        v = motion.sample(t, 1)[1, 0]
        rate = m * jerk - g * np.sin(q) * v
        bend = m * snap - g * np.cos(q) * v**2 - g * np.sin(q) * a
        return theta[1], v + rate / stiff, rotor * (a + bend / stiff) + torque(q, a)

    def rates(t: float, x: Array, scale: float) -> list[float]:
        theta, speed, effort = wanted(t)
        push = effort + 500.0 * (theta - x[1]) + 30.0 * (speed - x[3]) + scale * float(spline(t))
        spring = stiff * (x[1] - x[0])
        link = (spring - 9.81 * mass * length * np.cos(x[0])) / (inertia + mass * length**2)
        return [x[2], x[3], link, (push - spring) / rotor]

    h = 0.05
    times = (np.arange(40 * 30) + 0.5) * motion.duration / (40 * 30)
    moved = []
    for scale in (-h, h):
        # at rest the spring holds the weight, and the feedback the effort
        q = 0.2
        for _ in range(50):
            theta, _, effort = wanted(0.0)
            weight = 9.81 * mass * length * np.cos(q)
            motor = theta + (effort + scale * float(spline(0.0)) - weight) / 500.0
            q = motor - weight / stiff
        start = [q, motor, 0.0, 0.0]
        result = solve_ivp(
            rates, (0.0, motion.duration), start, "DOP853", times, args=(scale,), rtol=1e-8, atol=1e-10
        )
        moved.append(result.y[0].reshape(40, 30).mean(axis=1))
    expected = (moved[1] - moved[0]) / (2.0 * h)
    # efforts are held for 4 ms and matrices for 20 ms: errors of their second order
    np.testing.assert_allclose(S @ c, expected, atol=4e-3 * np.abs(expected).max())


def pendulum(mass: float, length: float, inertia: float, rotor: float, stiffness: float) -> Robot:
    """Return a link behind a spring that turns upwards about -y."""
    import tempfile

    text = (
        f"name: pendulum\nbodies:\n  - {{name: link, mass: {mass}, com: [{length}, 0, 0], "
        f"inertia: {{about: com, ixx: {inertia}, ixy: 0, ixz: 0, iyy: {inertia}, iyz: 0, izz: {inertia}}}}}\n"
        "joints:\n  - {name: lift, type: revolute, parent: world, child: link, axis: [0, -1, 0], "
        f"drive: {{motor_inertia: {rotor}, gear_ratio: 100, stiffness: {stiffness}}}}}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pendulum.yaml")
        path.write_text(text)
        return Robot.load(path)


@pytest.mark.parametrize("corner", sweeps.some(range(12), 3, 9))
def test_errors_shrink_as_is_computed(learner: Learner, corner: int) -> None:
    """Of robots at the corners: errors go on as `d + S c`, and none is larger than was predicted."""
    deviation = list(learner.config.uncertainty.corners(learner.robot))[corner]
    gains = repeated_arm.gains(learner.robot)
    S = response(learner.robot, gains, learner.motion, learner.size, learner.windows, deviation)
    S = S.reshape(-1, learner.size * len(NAMES))
    first = first_errors(learner)
    learned: Learned | None = None
    sizes, errors = [], first
    for k in range(5):
        if learned is not None:
            errors = first + (S @ learned.correction.coefficients.ravel()).reshape(first.shape)
        sizes.append(float(np.sqrt(np.mean(errors**2))))
        if learned is not None:
            assert sizes[-1] <= learned.predicted + 3.0 * COUNT
        learned = learner.learn([recorded(learner, errors, k)], learned)
        assert learned.notes == () and learned.history[-1].verdict == "learnt"
        np.testing.assert_allclose(learned.history[-1].rms, sizes[-1], rtol=1e-3, atol=COUNT)
    assert learned is not None and learned.contraction <= learner.config.contraction
    assert (np.diff(sizes) < COUNT).all() and sizes[-1] < 0.1 * sizes[0]


def test_what_is_worse_is_taken_back(learner: Learner) -> None:
    """A robot that answers the other way round: the second repetition is worse."""
    first = first_errors(learner)
    learned = learner.learn([recorded(learner, first)])
    worse = learner.learn([recorded(learner, 1.4 * first, 1)], learned)
    assert worse.history[-1].verdict == "taken back"
    np.testing.assert_array_equal(worse.correction.coefficients, learned.best.coefficients)
    assert worse.step == 0.5 * learned.step and "taken back" in worse.notes[-1]
    again = learner.learn([recorded(learner, first, 2)], worse)
    np.testing.assert_allclose(
        again.correction.coefficients, 0.5 * learned.correction.coefficients, atol=0.05
    )
    other = learner.learn([recorded(learner, 1.2 * first, 2)], worse)  # the best one, on another day
    assert other.history[-1].verdict == "learnt" and other.step == worse.step
    np.testing.assert_allclose(other.history[-1].noise, 0.2 * learned.history[0].rms, rtol=1e-2)
    assert learner.learn([recorded(learner, 1.5 * first, 3)], other).history[-1].verdict == "learnt"
    within = learner.learn([recorded(learner, first, 3)], learned)  # no worse beyond the noise
    assert within.history[-1].verdict == "learnt"


def test_limits_are_kept(learner: Learner) -> None:
    robot = learner.robot
    drives = robot.require_drives().specs
    limited = [
        replace(spec, limits=DriveLimits(torque=limit)) for spec, limit in zip(drives, (40.0, 200.0, 60.0))
    ]
    tight = Learner(robot.with_drives(limited), learner.motion, repeated_arm.gains(robot), learner.config)
    first = 10.0 * first_errors(learner)
    learned = tight.learn([recorded(learner, first)])
    assert learned.used < 1.0 and any("limits of torque" in note for note in learned.notes)
    assert np.isnan(learned.predicted)
    free = learner.learn([recorded(learner, first)])
    assert free.used == 1.0
    share = learned.correction.coefficients[:, 0] / free.correction.coefficients[:, 0]
    np.testing.assert_allclose(share, share[0], rtol=1e-6)
    assert share[0] < 1.0


class TestBadRecordings:
    """What is wrong with a recording is said, left out and counted."""

    def test_what_differs_from_the_others(self, learner: Learner) -> None:
        runs = [recorded(learner, first_errors(learner), k, f"run{k}") for k in range(3)]
        clean = learner.learn(runs[:2])
        learned = learner.learn([*runs[:2], changed(runs[2], 1, 1.0, 1.3, 2e-3)])
        (note,) = learned.notes
        assert note.startswith("run2: lift not as in the other repetitions at 1")
        assert learned.history[-1].repetitions == 3
        np.testing.assert_allclose(learned.correction.coefficients, clean.correction.coefficients, atol=2e-2)

    def test_what_differs_from_what_was_expected(self, learner: Learner) -> None:
        first = first_errors(learner)
        learned = learner.learn([recorded(learner, first)])
        touched = changed(recorded(learner, 0.1 * first, 1), 2, 2.0, 2.2, 0.02)
        after = learner.learn([touched], learned)
        assert after.history[-1].verdict == "learnt"
        assert "bend not as the repetition before says at 2" in after.notes[0]
        again = changed(recorded(learner, 0.01 * first, 1), 2, 2.0, 2.2, 0.02)  # is no contact, and worse
        assert learner.learn([again], after).history[-1].verdict == "taken back"
        assert learner.learn([recorded(learner, 0.01 * first, 1)], after).history[-1].verdict == "learnt"

    def test_gaps_and_frozen_signals(self, learner: Learner) -> None:
        run = recorded(learner, first_errors(learner))
        kept = (run.links.times < 0.9) | (run.links.times > 1.05)
        gap = replace(run, links=Channel(run.links.times[kept], run.links.values[kept]))
        learned = learner.learn([gap])
        assert "no link positions at 0.898 to 1.05 s" in learned.notes[0]
        assert 14 <= learned.unknown.argmax() <= 15 and learned.unknown.sum() == 3
        whole = learner.learn([recorded(learner, 0.1 * first_errors(learner), 1)], learned)
        assert whole.history[-1].verdict == "learnt" and whole.notes == () and not whole.unknown.any()
        dead = changed(run, 0, 1.0, 1.3, None)
        assert "the link of turn frozen at 1 to 1.3 s" in learner.learn([dead]).notes[0]

    def test_what_is_left_out_is_not_moved(self, learner: Learner) -> None:
        """Where nothing is known, a correction of the rest would else be free to do harm."""
        errors, edges = first_errors(learner), learner.windows.edges
        run = recorded(learner, errors)
        kept = (run.links.times < 0.9) | (run.links.times > 1.3)
        gap = replace(run, links=Channel(run.links.times[kept], run.links.values[kept]))
        robot, damping = learner.robot, learner.config.damping_time
        gains = repeated_arm.gains(robot)
        S = response(robot, gains, learner.motion, learner.size, learner.windows, damping_time=damping)
        moved = np.einsum("wjkc,kc->wj", S, learner.learn([gap]).correction.coefficients)
        inside = (edges[:-1] > 0.95) & (edges[1:] < 1.25)
        assert np.abs(moved[inside]).max() < 0.15 * np.abs(errors).max()

    def test_drives_at_their_limits(self, learner: Learner) -> None:
        run = recorded(learner, first_errors(learner))
        efforts = run.efforts.values.copy()
        efforts[(run.efforts.times > 0.5) & (run.efforts.times < 0.6), 2] = learner.robot.limits.effort[2]
        full = replace(run, efforts=Channel(run.efforts.times, efforts))
        assert "the drive of bend at its limit at 0.5" in learner.learn([full]).notes[0]

    def test_recordings_of_something_else(self, learner: Learner) -> None:
        run = recorded(learner, first_errors(learner))
        other = recorded(learner, first_errors(learner) + [1.0, 0.0, 0.0])
        times = 0.5 * (learner.windows.edges[1:] + learner.windows.edges[:-1])
        slow, own = (learner.motion.sample(speed * times, 0)[:, 0] for speed in (0.95, 1.0))
        assert_refused(
            (lambda: learner.learn([recorded(learner, slow - own)]),
             "run: left out, it ran at another speed, or begins at another time: it is 1... ms behind"),
            (lambda: learner.learn([run], begins=[2.0]),
             "run: left out, it has -2.2 to 1 ... does the motion begin"),
            (lambda: learner.learn([other]), "it is of another motion, ... turn is off by 1"),
        )  # fmt: skip
        both = learner.learn([run, other])
        assert both.history[-1].repetitions == 1 and "another motion" in both.notes[0]

    @pytest.mark.parametrize("late", [0.0, 0.2])
    def test_a_slow_joint_that_sticks_is_not_late(self, late: float) -> None:
        """At an even speed dry friction and a load look alike, 0.2 s behind at 0.05 rad/s."""
        robot = pendulum(4.0, 0.4, 0.1, 0.6, 9000.0)
        motion = rest_to_rest(
            FourierSeries(0.0125, np.array([[0.05]]), np.zeros((1, 1)), np.zeros(1)), 0.8, 7.0
        )
        windows, times = Windows(motion.duration, 200), np.arange(-0.2, motion.duration + 0.2, 2e-3)
        links, rates = motion.sample(np.clip(times, late, motion.duration) - late, 1).swapaxes(0, 1)
        links -= 0.0 if late else 4e-3 + 8e-3 * np.tanh(rates / 5e-3)
        run = JointRecording("run", ("lift",), Channel(times, 1.0 + rates), None, Channel(times, links))
        errors = partial(errors_of, robot, motion, [run], [0.0], windows, LearningConfig(bandwidth=4.0), 0.03)
        if late:
            refused(errors, "begins at another time: it is 2... ms behind")
        else:
            assert errors().known.all()

    def test_corrections_of_something_else(self, learner: Learner) -> None:
        learned = learner.learn([recorded(learner, first_errors(learner))])
        for wrong, words in (
            (replace(learned.correction, duration=2.0), "along a motion of 2 s, and this one takes 3 s"),
            (replace(learned.correction, joint_names=("a", "b", "c")), "is of the joints"),
            (replace(learned.correction, coefficients=np.zeros((9, 3))), "has 9 splines a joint"),
        ):
            run = recorded(learner, first_errors(learner))
            refused(partial(learner.learn, [run], replace(learned, correction=wrong)), words)


def test_what_cannot_repeat_is_said(learner: Learner) -> None:
    robot, gains = learner.robot, repeated_arm.gains(learner.robot)
    moving = Cosines([0.1, 0.1, 0.1], [1.0, 1.0, 1.0], joint_names=NAMES)
    soft, limp = pendulum(4.0, 0.4, 0.1, 0.6, 900.0), MotorGains(np.array([60.0]), np.array([10.0]))
    swing = WaypointSpline(np.array([0.0, 1.0]), np.array([[0.2], [1.2]]), order=6, joint_names=["lift"])
    unsure = LearningConfig(bandwidth=4.0, contraction=0.05, uncertainty=Uncertainty(inertia=0.9))
    run = recorded(Learner(soft, swing, limp, LearningConfig(bandwidth=4.0)), np.full((16, 1), 1e-3))
    assert_refused(
        (lambda: Learner(robot, moving, gains), "the motion has no end"),
        (lambda: Learner(soft, swing, limp, unsure).learn([run]), "no error is sure to shrink to 5 %"),
        (lambda: LearningConfig(bandwidth=1000.0), like(RangeError, name="bandwidth", high=100.0)),
    )


def test_files(learner: Learner, tmp_path: Path) -> None:
    learned = learner.learn([recorded(learner, first_errors(learner))])
    path = write_correction(learned, "arm", tmp_path / "learned.yaml")
    read = read_correction(path)
    for name in ("motion", "errors"):
        np.testing.assert_allclose(getattr(read, name), getattr(learned, name), rtol=1e-8, atol=1e-12)
    for name in ("correction", "best"):
        got, meant = getattr(read, name), getattr(learned, name)
        np.testing.assert_allclose(got.coefficients, meant.coefficients, rtol=1e-8)
        assert got.joint_names == NAMES
    assert read.history == learned.history and read.step == learned.step
    path.write_text(path.read_text().replace("best:", "beast:", 1))
    assert_refused(
        (lambda: read_correction(path), "learned.yaml: ... 'turn': unknown key; did you mean 'best'"),
        (lambda: read_correction(tmp_path / "nothing.yaml"), "there is no correction"),
    )


def test_efforts_of_a_correction_have_their_derivatives() -> None:
    random = np.random.default_rng(0)
    correction = Correction(("a", "b"), 2.0, random.uniform(-1.0, 1.0, (12, 2)))
    speed, h, t = 0.8, 1e-5, 1.3

    def at(time: float, order: int = 0) -> Array:
        return correction.at(speed * time, (speed,), order)

    rows = at(t, 3)
    np.testing.assert_allclose(rows[1], (at(t + h)[0] - at(t - h)[0]) / (2.0 * h), rtol=1e-7)
    np.testing.assert_allclose(rows[2], (at(t + h, 1)[1] - at(t - h, 1)[1]) / (2.0 * h), rtol=1e-7)
    np.testing.assert_array_equal(rows[3], 0.0)
    np.testing.assert_array_equal(correction.at(-1.0, order=2)[0], correction.coefficients[0])
    np.testing.assert_array_equal(correction.at(3.0, order=2)[1:], 0.0)


def test_when_a_motion_begins_follows_from_what_was_desired() -> None:
    motion = repeated_arm.motion()
    times = np.arange(0.0, 12.0, 1.0 / 333.0)
    starts = [1.2345, 6.0]
    desired = np.repeat(motion.sample(0.0, 0), len(times), axis=0)
    for start in starts:
        inside = (times >= start) & (times <= start + motion.duration)
        desired[inside] = motion.sample(times[inside] - start, 0)[:, 0]
    np.testing.assert_allclose(begins_of(times, desired, motion), starts, atol=1e-5)
    assert begins_of(times, 0.5 * desired, motion) == []
    slower = motion.sample(np.clip(0.8 * (times - 1.0), 0.0, motion.duration), 0)[:, 0]
    assert begins_of(times, slower, motion) == []


def test_other_deviations_answer_differently(learner: Learner) -> None:
    """A softer spring, a heavier arm: each field of a deviation counts."""
    robot, gains = learner.robot, repeated_arm.gains(learner.robot)
    windows = Windows(learner.motion.duration, 24)
    plain = response(robot, gains, learner.motion, 14, windows)
    for field in (
        {"stiffness": 0.5}, {"inertia": 1.5}, {"motor_inertia": 1.5}, {"payload": 2.0},
        {"viscous": 0.5}, {"delay": 5e-3},
    ):  # fmt: skip
        other = response(robot, gains, learner.motion, 14, windows, Deviation(**field))  # type: ignore[arg-type]
        assert np.abs(other - plain).max() > 1e-3 * np.abs(plain).max(), field


def test_the_noise_is_that_of_encoders_and_between_repetitions(learner: Learner) -> None:
    first = first_errors(learner)
    one = learner.learn([recorded(learner, 0.0 * first + 1e-3)])
    np.testing.assert_allclose(one.history[0].noise, COUNT, rtol=0.1)
    several = [recorded(learner, (1.0 + 0.01 * k) * 1e-3 + 0.0 * first, k) for k in range(3)]
    np.testing.assert_allclose(learner.learn(several).history[0].noise, 1.8e-5, rtol=0.05)
