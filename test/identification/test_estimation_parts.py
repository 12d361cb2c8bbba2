"""Splines, base parameters, bodies that can be, and the noise of residuals that are alike."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from measured_arm import EFFORT_DELAY, LINK_DELAY, drives_of, measured, measured_arm, swings
from refusals import refused

from hodyn_ros.formulations.parameters import PER_BODY
from hodyn_ros.identification.bandwidth import best_data
from hodyn_ros.identification.base_parameters import base_parameters
from hodyn_ros.identification.consistency import are_bodies, nearest_bodies, pseudo_inertias
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.estimate import _solved as solved
from hodyn_ros.identification.least_squares.estimate import refitted_springs
from hodyn_ros.identification.least_squares.residuals import Key, correlation_length
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.recording import Channel
from hodyn_ros.identification.smoothing import smooth
from hodyn_ros.identification.springs.deflection import COMPLIANCE, DELAY, KINDS, OFFSET
from hodyn_ros.identification.torque_model import Motion, TorqueModel
from hodyn_ros.lie.jets import Array


def test_derivatives_on_irregular_stamps_are_those_of_the_polynomial() -> None:
    random = np.random.default_rng(0)
    times = np.sort(random.uniform(0.0, 3.0, 900))
    curve = np.polynomial.Polynomial(random.standard_normal(7))
    signal = smooth(Channel(times, curve(times)[:, None]), 4.0)
    instants = np.linspace(0.3, 2.7, 50)
    found = signal.sample(instants, 2)[:, :, 0]
    for k in range(3):
        want = curve.deriv(k)(instants) if k else curve(instants)
        np.testing.assert_allclose(found[k], want, rtol=1e-7, atol=1e-7 * np.abs(want).max())


def test_a_gap_in_the_stamps_is_named() -> None:
    times = np.r_[np.linspace(0.0, 1.0, 300), np.linspace(2.5, 3.5, 300)]
    refused(lambda: smooth(Channel(times, np.sin(times)[:, None]), 8.0), "gap of 1.5 s")


def test_vibration_that_both_encoders_see_needs_a_higher_bandwidth(tmp_path: Path) -> None:
    """A millirad at 12 Hz hardly shows in positions, and is most of what the motors have to give."""
    arm = measured_arm(tmp_path)
    sine, cosine = np.zeros((84, 3)), np.zeros((84, 3))
    slow = swings()
    sine[:4], cosine[:4], sine[-1] = slow.sine, slow.cosine, 1e-3
    recording = measured(arm, 0, duration=5.0, motion=type(slow)(0.9, sine, cosine, slow.offsets))

    def spreads(data: Data) -> Array:
        return model.scales(*np.full((3, 3), 50.0), 1.0)

    model = TorqueModel(arm)
    assert max(Data(recording).bandwidths) < 12.0
    assert min(best_data(model, recording, spreads).bandwidths) > 12.0
    one_sided = replace(recording, links=None)
    assert max(best_data(model, one_sided, spreads).bandwidths) <= max(Data(one_sided).bandwidths)


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.8])
def test_a_residual_that_is_alike_from_sample_to_sample_counts_less(alike: float) -> None:
    """An autoregressive process of first order: (1 + a) / (1 - a)."""
    noise = np.random.default_rng(1).standard_normal(200_000)
    values = np.zeros_like(noise)
    for i in range(1, len(noise)):
        values[i] = alike * values[i - 1] + noise[i]
    assert correlation_length(values) == pytest.approx((1.0 + alike) / (1.0 - alike), rel=0.15)


def test_base_parameters_are_all_that_efforts_depend_on(tmp_path: Path) -> None:
    arm = measured_arm(tmp_path)
    model = TorqueModel(arm)
    random = np.random.default_rng(2)
    motion = Motion(*(random.standard_normal((40, 3)) for _ in range(5)))
    rows = model.columns(motion, True)[:, :, : model.bodies].reshape(-1, model.bodies)
    base = base_parameters(rows, np.ones(model.bodies), model.names, model.units)
    assert len(base.names) == np.linalg.matrix_rank(rows)
    hidden = np.linalg.svd(rows)[2][len(base.names) :]  # parameters that no effort tells of
    assert np.abs(base.combination @ hidden.T).max() < 1e-9


def test_the_nearest_bodies_are_bodies_and_nearest() -> None:
    random = np.random.default_rng(3)
    prior = np.r_[2.0, 0.2, -0.1, 0.3, 0.4, 0.5, 0.6, 0.01, 0.02, -0.03]
    assert are_bodies(prior).all()
    wanted = prior + np.r_[0.0, 0.0, 0.0, 0.0, -0.35, 0.0, 0.0, 0.0, 0.0, 0.0]  # Ixx that no body has
    assert not are_bodies(wanted).all()
    root = random.standard_normal((11, 11))
    information = root @ root.T + np.eye(11)
    estimate, lower = np.r_[wanted, -0.5], np.r_[np.full(10, -np.inf), 0.0]
    found = nearest_bodies(estimate, information, np.r_[prior, 1.0], lower, PER_BODY)
    assert are_bodies(found[:10]).all() and found[10] >= 0.0

    def distance(parameters: np.ndarray) -> float:
        return float((parameters - estimate) @ information @ (parameters - estimate))

    for _ in range(2000):  # no body around it is nearer
        other = found + 0.01 * random.standard_normal(11)
        other[10] = max(0.0, other[10])
        if are_bodies(other[:10]).all():
            assert distance(other) > distance(found) * (1.0 - 1e-6)


def test_what_is_a_body_already_stays() -> None:
    prior = np.r_[2.0, 0.2, -0.1, 0.3, 0.4, 0.5, 0.6, 0.01, 0.02, -0.03]
    found = nearest_bodies(prior, np.eye(10), prior, np.full(10, -np.inf), PER_BODY)
    assert np.array_equal(found, prior)
    np.testing.assert_allclose(
        np.trace(pseudo_inertias(prior)[0, :3, :3]), 0.5 * (0.4 + 0.5 + 0.6), rtol=1e-15
    )


@pytest.mark.parametrize("heavier", [1.0, 3.0])
def test_springs_follow_from_bodies_that_were_moved_far(tmp_path: Path, heavier: float) -> None:
    """Three times the load by a third of the compliance; delays and offsets stay."""
    arm = measured_arm(tmp_path)
    model, data = TorqueModel(arm), Data(measured(arm, 0, duration=8.0, noise=0.1), 8.0)
    data.compare(model)
    springs = np.zeros((KINDS, 3))
    springs[COMPLIANCE] = 1e-3  # that none of them has
    parameters = model.prior.copy()
    parameters[: model.bodies] *= heavier
    start = Unknowns(parameters, springs, EFFORT_DELAY, model.friction_shape)
    found = refitted_springs(model, [data], start, {})
    assert np.array_equal(found.parameters, parameters)
    stiffness = heavier * np.array([spec.stiffness for spec in drives_of(arm)])
    np.testing.assert_allclose(1.0 / found.springs[COMPLIANCE], stiffness, rtol=5e-3)
    np.testing.assert_allclose(found.springs[DELAY], LINK_DELAY, rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(found.springs[OFFSET], 0.0, atol=5e-6)


@pytest.mark.parametrize("share", [0.3, 0.7, 1.5])
def test_a_step_solves_what_the_instrumental_variable_of_the_delay_says(share: float) -> None:
    """Z' (y - J x) = 0 in one call, also where certain rates tell less than half of the delay."""
    instrument, rates, wanted, found, covariance = step_of_the_delay(share)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    inverse = np.linalg.inv(instrument.T @ rates)
    want = inverse @ (instrument.T @ instrument) @ inverse.T
    np.testing.assert_allclose(covariance, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("share", [0.05, -0.5])
def test_a_delay_that_certain_rates_do_not_tell_moves_little_and_is_said_to_be_unsure(share: float) -> None:
    instrument, rates, wanted, found, covariance = step_of_the_delay(share)
    own = np.linalg.inv(instrument.T @ instrument)[-1, -1]
    of_one_step = np.linalg.lstsq(instrument, rates @ wanted, rcond=None)[0][-1]
    np.testing.assert_allclose(found[-1], 10.0 * of_one_step, rtol=1e-9)
    np.testing.assert_allclose(covariance[-1, -1], 100.0 * own, rtol=1e-9)


def step_of_the_delay(share: float) -> tuple[Array, Array, Array, Array, Array]:
    """Return Z and J (40, 4), the root of Z' (y - J x), and what `solved` finds with its covariance.

    Three parameters and the delay of one joint, of which Z sees a `share`.
    """
    random = np.random.default_rng(4)
    instrument = random.standard_normal((40, 4))
    beside_all = np.linalg.qr(instrument, mode="complete")[0][:, 4:] @ random.standard_normal((36, 2))
    beside = instrument @ np.r_[random.standard_normal(3), share - 1.0] + beside_all[:, 0]
    rates = instrument + np.outer(beside, np.r_[0.0, 0.0, 0.0, 1.0])
    wanted = random.standard_normal(4)
    target = rates @ wanted + beside_all[:, 1]
    triangle = np.column_stack([instrument[:, :3], np.zeros((40, 2)), instrument[:, 3], beside, target])
    start = Unknowns(np.zeros(3), np.zeros((KINDS, 0)), 0.0, np.array([[0.01], [0.0]]))
    spreads = np.r_[np.full(3, np.inf), 0.0, 0.0, np.inf]
    step = solved(cast(TorqueModel, None), [(Key(0, 0), triangle)], start, start, spreads)
    places = [0, 1, 2, 5]
    return instrument, rates, wanted, step.unknowns.vector[places], step.covariance[np.ix_(places, places)]
