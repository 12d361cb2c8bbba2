"""Springs that are no lines, or that only resonances tell of, against what recordings were made with."""

from dataclasses import replace

import numpy as np
import pytest
from measured_arm import COULOMB, EFFORT_DELAY, drives_of, measured, measured_arm, misjudged

from hodyn_ros import Robot
from hodyn_ros.identification import Channel, JointRecording
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.springs.deflection import KINDS
from hodyn_ros.identification.springs.resonance import Resonance, resonances
from hodyn_ros.identification.springs.terms import Terms, spring_terms
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.model.drive_spec import SpringTable
from hodyn_ros.trajectory import FourierSeries


@pytest.fixture(name="arm", scope="module")
def make_arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return measured_arm(tmp_path_factory.mktemp("arm"))


def with_lift(arm: Robot, **changes: object) -> Robot:
    """Return the arm with another spring of `lift`."""
    turn, lift, bend = drives_of(arm)
    return arm.with_drives((turn, replace(lift, **changes), bend))  # type: ignore[arg-type]


def turning_over() -> FourierSeries:
    """Return a motion in which gravity pulls `lift` either way, twice."""
    return FourierSeries(2.0, [[0.5, 1.7, 0.5]], [[0.2, 0.0, -0.4]], np.array([0.0, 1.5, 0.3]))


def terms_of(arm: Robot, recording: JointRecording, joint: int) -> Terms | None:
    """Seek what a spring has beyond a line, with all else known."""
    data, model = Data(recording, 8.0), TorqueModel(arm)
    data.elastic = [joint]
    springs = np.zeros((KINDS, 1))
    springs[0], springs[1] = 1.0 / drives_of(arm)[joint].stiffness, 2e-3
    return spring_terms(
        model, [data], model.prior, Unknowns(model.prior, springs, 1e-3, model.friction_shape), [{}]
    ).get(joint)


def test_a_hardening_spring_is_found(arm: Robot) -> None:
    found = terms_of(arm, measured(with_lift(arm, cubic_stiffness=2e7), 0, 6.0, motion=turning_over()), 1)
    assert found is not None and found.curve.table is None and not found.curve.gap
    assert 1.0 / found.spring[0] == pytest.approx(3000.0, rel=0.01)
    assert found.curve.cubic_stiffness(1.0 / found.spring[0]) == pytest.approx(2e7, rel=0.03)


def test_a_spring_that_is_soft_at_first_becomes_a_table(arm: Robot) -> None:
    loads = np.linspace(-90.0, 90.0, 41)
    bent = loads / 4000.0 + 0.004 * np.tanh(loads / 12.0)
    table = SpringTable(tuple(loads), tuple(bent))
    found = terms_of(arm, measured(with_lift(arm, spring_table=table), 0, 6.0, motion=turning_over()), 1)
    assert found is not None and found.curve.table is not None
    tried = np.linspace(-10.0, 20.0, 31)
    wanted = np.interp(tried, loads, bent)
    np.testing.assert_allclose(np.interp(tried, *found.curve.table), wanted, atol=2e-4)
    spec = replace(drives_of(arm)[1], spring_table=SpringTable(*map(tuple, found.curve.table.tolist())))
    with_lift(arm, spring_table=spec.spring_table).inverse_dynamics(np.zeros((3, 3)))


def test_backlash_is_found_as_such(arm: Robot) -> None:
    """The motor leads by half the gap, to the side that it pulls the load to."""
    recording, gap = measured(arm, 0, 6.0, motion=turning_over()), 4e-4
    assert recording.motors is not None
    times = recording.motors.times
    load = arm.inverse_dynamics(turning_over().sample(times, 2))[:, 0, 1]
    motors = recording.motors.values + 0.5 * gap * np.sign(load)[:, None] * [0.0, 1.0, 0.0]
    found = terms_of(arm, replace(recording, motors=Channel(times, motors)), 1)
    assert found is not None and found.curve.gap == pytest.approx(gap, rel=0.03)


def shaken(arm: Robot, seed: int, duration: float = 5.0) -> JointRecording:
    """Return what the motors show of links that swing slowly and vibrate at 6 to 30 Hz about one pose."""
    random = np.random.default_rng(seed)
    sine = np.zeros((300, 3))
    sine[:2] = 0.03
    lines = np.arange(60, 300, 6)
    accelerations = random.choice([-1.0, 1.0], (len(lines), 3)) * [0.5, 0.5, 2.0]
    sine[lines] = accelerations / (0.2 * np.pi * lines[:, None])  # of velocities
    motion = FourierSeries(0.2 * np.pi, sine, 0.0 * sine, np.array([0.1, 0.4, 0.5]))
    return replace(measured(arm, seed, duration, motion=motion), links=None)


def heard(arm: Robot, guess: Robot, recording: JointRecording, bandwidth: float) -> dict[int, Resonance]:
    """Listen to a recording, with the bodies and the friction known."""
    model, data = TorqueModel(guess), Data(recording, bandwidth)
    parameters = model.prior.copy()
    parameters[: model.bodies] = arm.dynamic_parameters()
    parameters[model.place(2)] = COULOMB
    return resonances(
        model,
        data,
        parameters,
        Unknowns(parameters, np.zeros((KINDS, 0)), EFFORT_DELAY, model.friction_shape),
    )


def test_resonances_tell_of_springs_where_only_motors_are_measured(arm: Robot) -> None:
    found = heard(arm, misjudged(arm), shaken(arm, 0), 1.0)
    for j, spec in enumerate(drives_of(arm)):
        assert not found[j].reason
        assert found[j].stiffness == pytest.approx(spec.stiffness, rel=0.03)
        assert found[j].deviation < 0.03 * spec.stiffness


def test_motors_that_do_not_vibrate_tell_of_no_spring(arm: Robot) -> None:
    found = heard(arm, arm, replace(measured(arm, 0, 6.0), links=None), 8.0)
    for each in found.values():
        assert each.reason.startswith("not identifiable from this recording, because between ")
        assert "its motor hardly moves; shake it there" in each.reason
