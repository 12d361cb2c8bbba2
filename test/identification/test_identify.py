"""Robots from recordings with the noise of real sensors, against the figures these were made with."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_arm import (
    COULOMB,
    EFFORT_DELAY,
    LINK_DELAY,
    OFFSET,
    VISCOUS,
    drives_of,
    measured,
    measured_arm,
    misjudged,
    swings,
    truth,
)
from refusals import refused
from scipy.integrate import quad

from hodyn_ros import Robot
from hodyn_ros.identification import Channel, Identified, JointRecording, Options, identify
from hodyn_ros.identification.robot_file import robot_text
from hodyn_ros.identification.springs.deflection import LAG
from hodyn_ros.identification.torque_model import TorqueModel, coulomb, file_transition
from hodyn_ros.identification.validation import rates, validate

pytestmark = pytest.mark.thorough


@pytest.fixture(name="arm", scope="module")
def make_arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return measured_arm(tmp_path_factory.mktemp("arm"))


@pytest.fixture(name="found", scope="module")
def make_found(arm: Robot) -> Identified:
    return identify(misjudged(arm), measured(arm, 0, duration=9.0))


def test_springs_delays_and_friction_come_out(arm: Robot, found: Identified) -> None:
    for name, spec in zip(arm.joint_names, drives_of(arm)):
        assert found.figure(f"stiffness of {name}").value == pytest.approx(spec.stiffness, rel=0.02)
        assert found.figure(f"delay of the link encoder of {name}").value == pytest.approx(
            LINK_DELAY, abs=1e-5
        )
        assert found.figure(f"viscous friction of {name}").value == pytest.approx(VISCOUS, rel=0.02)
        assert found.figure(f"Coulomb friction of {name}").value == pytest.approx(COULOMB, rel=0.02)
        offset = found.figure(f"offset of the effort of {name}")
        assert abs(offset.value - OFFSET) < 4.0 * offset.deviation < 0.12
    assert found.effort_delay.value == pytest.approx(EFFORT_DELAY, abs=1e-4)


def test_base_parameters_come_out_to_a_percent_of_those_of_their_kind(arm: Robot, found: Identified) -> None:
    true = found.base.combination @ TorqueModel(arm).prior
    errors = found.base.combination @ found.parameters - true
    for unit in set(found.base.units):
        kind = np.array([each == unit for each in found.base.units])
        assert np.abs(errors[kind]).max() < 0.01 * np.abs(true[kind]).max()
    deviations = np.array([figure.deviation for figure in found.figures[: len(true)]])
    assert np.sqrt(np.mean((errors / deviations) ** 2)) < 2.0  # as large as they are said to be


def test_intervals_hold_what_is_true(arm: Robot, found: Identified) -> None:
    """Of one recording; test_coverage counts those of 200."""
    true = truth(arm, found)
    figures = [each for each in (*found.figures, found.effort_delay) if each.name in true]
    held = [abs(each.value - true[each.name]) < 1.96 * each.deviation for each in figures]
    assert len(held) > 30 and np.mean(held) >= 0.85
    shares = [(each.value - true[each.name]) / each.deviation for each in figures]
    assert 0.7 < np.sqrt(np.mean(np.square(shares))) < 1.4


def test_residuals_are_the_noise_of_the_sensors(found: Identified) -> None:
    assert all(fit.rms == pytest.approx(0.1, rel=0.05) for fit in found.efforts)
    assert all(fit.rms == pytest.approx(5e-6, rel=0.05) for fit in found.deflections)
    assert all(fit.rms_before > 5.0 * fit.rms for fit in (*found.efforts, *found.deflections))
    assert not any("a controller held the efforts" in note for note in found.notes)  # as none did


def test_what_is_written_is_the_robot_with_its_sources(found: Identified, tmp_path: Path) -> None:
    path = tmp_path / "identified.yaml"
    specs = found.robot.require_drives().specs
    specs = [replace(spec, proportional_gain=900.0, derivative_gain=30.0) for spec in specs]
    found = replace(found, robot=found.robot.with_drives(specs))
    path.write_text(robot_text(found, "made by a test"))
    read = Robot.load(path)
    assert [spec.derivative_gain for spec in read.require_drives().specs] == 3 * [30.0]
    random = np.random.default_rng(1)
    q = random.standard_normal((3, 3))
    np.testing.assert_allclose(
        read.inverse_dynamics(q), found.robot.inverse_dynamics(q), rtol=1e-9, atol=1e-9
    )
    for ours, its in zip(drives_of(read), drives_of(found.robot), strict=True):
        assert ours == its
    assert read.limits.row(1) == found.robot.limits.row(1)
    assert path.read_text().count("identified from a simulation") >= 3 * 4


def test_other_runs_are_predicted(arm: Robot, found: Identified) -> None:
    other = measured(arm, 7, duration=6.0, motion=swings(scale=0.7))
    efforts, deflections = validate(found, misjudged(arm), other)
    assert all(fit.rms == pytest.approx(0.1, rel=0.1) for fit in efforts)
    assert all(fit.rms == pytest.approx(5e-6, rel=0.1) for fit in deflections)


def test_figures_of_the_file_are_judged_by_its_friction_and_springs(arm: Robot, found: Identified) -> None:
    """Whatever was identified of how friction turns over, and of the lag of springs."""
    other = measured(arm, 7, duration=6.0, motion=swings(scale=0.7))
    springs = found.unknowns.springs.copy()
    springs[LAG] += 1e-6
    turning_later = found.unknowns.friction_shape * np.array([[9.0], [1.0]])
    unknowns = replace(found.unknowns, springs=springs, friction_shape=turning_later)
    changed = replace(found, unknowns=unknowns)
    both = [validate(each, misjudged(arm), other) for each in (found, changed)]
    for fit, moved in zip(*[(*efforts, *deflections) for efforts, deflections in both], strict=True):
        np.testing.assert_array_equal(fit.prior - fit.prior.mean(), moved.prior - moved.prior.mean())
        assert np.abs(fit.predicted - moved.predicted).max() > 1e-6


def test_transition_speeds_are_written_with_the_friction_that_they_belong_to(
    found: Identified, tmp_path: Path
) -> None:
    path = tmp_path / "identified.yaml"
    path.write_text(robot_text(found))
    for name, spec in zip(found.robot.joint_names, drives_of(Robot.load(path))):
        speed, sharpness = (
            found.figure(f"{what} of {name}") for what in ("transition speed", "sharpness of the friction")
        )
        assert speed.identified and abs(speed.value - 0.01) < 4.0 * speed.deviation
        expected = file_transition(speed.value, sharpness.value)
        assert spec.motor_friction.transition == pytest.approx(expected, rel=1e-12)
    assert path.read_text().count("at a sharpness of") == found.robot.n_coordinates


@pytest.mark.parametrize("sharpness", [0.0, 0.4, 1.0, 1.5, 2.0])
def test_the_speed_in_the_file_is_that_of_the_nearest_law(sharpness: float) -> None:
    def apart(ratio: float) -> float:
        def square(x: float) -> float:
            exact = coulomb(np.array([x]), np.array([1.0, sharpness]))[0, 0]
            return float((x / np.hypot(x, ratio) - exact) ** 2)

        return float(sum(quad(square, *ends)[0] for ends in ((0.0, 3.0), (3.0, 30.0), (30.0, np.inf))))

    ratio = file_transition(0.02, sharpness) / 0.02
    assert ratio == pytest.approx(1.0, abs=1e-4) if sharpness == 0.0 else ratio < 1.0
    assert apart(ratio) <= min(apart(0.97 * ratio), apart(1.03 * ratio))


def test_rates_of_efforts_are_predicted(arm: Robot, found: Identified) -> None:
    """Of white noise up to 8 Hz stays the share 16 / 250 of its variance, and its rate is known by that."""
    other = measured(arm, 7, duration=6.0, motion=swings(scale=0.7))
    efforts, _ = validate(found, misjudged(arm), other)
    noise = 0.1 * np.sqrt(16.0 / 250.0) * 2.0 * np.pi * 8.0 / np.sqrt(3.0)
    for fit in efforts:
        left, whole = rates([fit], 8.0)[fit.joint]
        assert left < 1.5 * noise < 0.2 * whole


def test_outliers_hardly_count(arm: Robot) -> None:
    recording = measured(arm, 2, duration=3.0)
    values = recording.efforts.values.copy()
    values[::97] += 50.0
    spoilt = replace(recording, efforts=Channel(recording.efforts.times, values))
    found = identify(misjudged(arm), spoilt)
    for name, spec in zip(arm.joint_names, drives_of(arm)):
        assert found.figure(f"stiffness of {name}").value == pytest.approx(spec.stiffness, rel=0.02)
        assert found.figure(f"Coulomb friction of {name}").value == pytest.approx(COULOMB, rel=0.1)


def test_without_link_encoders_springs_stay_as_they_are_and_that_is_said(arm: Robot) -> None:
    recording = measured(arm, 3, duration=4.0)
    prior = misjudged(arm)
    found = identify(prior, replace(recording, links=None))
    figure = found.figure("stiffness of lift")
    assert not figure.identified and "its motor hardly moves" in figure.reason
    assert any(
        "stiffness of lift: not identifiable from this recording, because" in note for note in found.notes
    )
    kept = [spec.stiffness for spec in drives_of(found.robot)]
    assert kept == [spec.stiffness for spec in drives_of(prior)]


def test_a_joint_that_carries_no_load_has_no_stiffness(arm: Robot) -> None:
    """The turning joint hardly accelerates: what its spring does drowns in the noise of the encoders."""
    motion = swings()
    sine, cosine = motion.sine.copy(), motion.cosine.copy()
    sine[1:, 0] = cosine[:, 0] = 0.0
    sine[0, 0] = 0.02
    slow = type(motion)(0.9, sine, cosine, motion.offsets)
    found = identify(misjudged(arm), measured(arm, 4, duration=4.0, noise=20.0, motion=slow))
    figure = found.figure("stiffness of turn")
    assert not figure.identified and "load this joint more" in figure.reason
    assert found.figure("stiffness of lift").identified


def test_too_little_motion_says_which_parameters_and_what_to_move(arm: Robot) -> None:
    """Only `turn` moves: of the others nothing is seen but the weight that they hold."""
    motion = swings()
    still = type(motion)(0.9, motion.sine * [1, 1e-4, 1e-4], motion.cosine * [1, 1e-4, 1e-4], motion.offsets)
    found = identify(misjudged(arm), measured(arm, 8, duration=3.0, motion=still), Options(bandwidth=4.0))
    (note,) = [each for each in found.notes if "stay near the file's" in each]
    assert "(m cx of upper" in note and "\n" not in note
    assert "move lift, bend faster and over more of their range" in note
    turn = found.figure("stiffness of turn")  # which the file keeps beside the load that moved with it
    assert not turn.identified and "only its ratio to the inertias" in turn.reason
    assert found.robot.require_drives().specs[0].stiffness == turn.value != turn.prior
    assert not found.figure("Coulomb friction of bend").identified


def test_a_payload_alone(arm: Robot) -> None:
    tree = arm.tree
    mass, place = 0.8, np.array([0.3, 0.05, 0.0])
    masses, coms, inertias = tree.masses.copy(), tree.coms.copy(), tree.inertias.copy()
    com = (masses[2] * coms[2] + mass * place) / (masses[2] + mass)
    for part, where in ((masses[2], coms[2] - com), (mass, place - com)):
        inertias[2] = inertias[2] + part * (where @ where * np.eye(3) - np.outer(where, where))
    masses[2], coms[2] = masses[2] + mass, com
    loaded = arm.with_tree(tree.with_inertias(masses, coms, inertias))
    true = arm.dynamic_parameters()
    friction = replace(drives_of(arm)[0].motor_friction, viscous=VISCOUS, coulomb=COULOMB)
    specs = tuple(replace(spec, motor_friction=friction) for spec in drives_of(arm))
    prior = arm.with_drives(specs)
    found = identify(prior, measured(loaded, 5, duration=3.0), Options(only="payload"))
    np.testing.assert_array_equal(found.parameters[:20], true[:20])
    errors = found.base.combination @ (found.parameters - TorqueModel(loaded).prior)
    deviations = np.array([figure.deviation for figure in found.figures[: len(errors)]])
    assert np.sqrt(np.mean((errors / deviations) ** 2)) < 2.0
    along = [i for i, name in enumerate(found.base.names) if name.startswith("m cx of fore")]
    assert np.abs(errors[along]).max() < 0.01 * mass * 0.3


WRONG = {
    "degrees": ("limits", lambda e, m, l: (e, np.rad2deg(m), np.rad2deg(l))),
    "sign of a motor": ("against each other", lambda e, m, l: (e, m * [1, -1, 1], l)),
    "gear": ("gear ratio", lambda e, m, l: (e, m * [1, 1, 1.02], l)),
    "swapped efforts": ("efforts of joints 'lift' and 'bend'", lambda e, m, l: (e[:, [0, 2, 1]], m, l)),
    "swapped positions": (
        "positions of joints 'lift' and 'bend'",
        lambda e, m, l: (e, m[:, [0, 2, 1]], l[:, [0, 2, 1]]),
    ),
    "swapped joints": (
        "positions and efforts of joints 'turn' and 'lift'",
        lambda e, m, l: (e[:, [1, 0, 2]], m[:, [1, 0, 2]], l[:, [1, 0, 2]]),
    ),
    "another order": ("in the order ['lift', 'bend', 'turn']", lambda e, m, l: (e[:, [2, 0, 1]], m, l)),
    "sign of positions": (
        "positions of joint 'lift' have the opposite sign",
        lambda e, m, l: (e, m * [1, -1, 1], l * [1, -1, 1]),
    ),
    "units of one link": ("gear ratio", lambda e, m, l: (e, m, l * [1, 0.5, 1])),
    "degrees of one side": ("gear ratio", lambda e, m, l: (e, np.rad2deg(m), l)),
    "stamps that go back": ("stamp 10", lambda e, m, l: (e, m, l)),
    "stamp without end": ("stamp 10 is inf", lambda e, m, l: (e, m, l)),
    "milliseconds": ("stamps lie 3.99886 s apart ... time_scale (1e-3", lambda e, m, l: (e, m, l)),
    "swapped motors": ("swapped", lambda e, m, l: (e, m[:, [1, 0, 2]], l)),
    "currents": ("efforts of joint 'lift' are ... currents", lambda e, m, l: (e * [1, 0.1, 1], m, l)),
    "sign of an effort": ("opposite sign", lambda e, m, l: (e * [1, -1, 1], m, l)),
    "constant": ("constant", lambda e, m, l: (e, m * [0, 1, 1], l)),
    "not a number": ("sample 0", lambda e, m, l: (np.vstack([e[:1] + [np.nan, 0, 0], e[1:]]), m, l)),
    "no efforts": ("no efforts", lambda e, m, l: (e * np.nan, m, l)),
}
TENTH_STAMPS = {"stamps that go back": 0.0, "stamp without end": np.inf}


@pytest.mark.parametrize("case", WRONG)
def test_recordings_that_cannot_be_are_refused_by_name(arm: Robot, case: str) -> None:
    said, change = WRONG[case]
    right = measured(arm, 6, duration=3.0)
    assert right.motors is not None and right.links is not None
    values = change(right.efforts.values, right.motors.values, right.links.values)
    times = right.efforts.times.copy()
    if case == "milliseconds":
        times *= 1e3
    elif case in TENTH_STAMPS:
        times[10] = TENTH_STAMPS[case]

    def call() -> None:
        channels = [Channel(times, each) for each in values]
        identify(arm, JointRecording("a simulation", arm.joint_names, *channels))

    refused(call, said)
