"""Recordings that break off, hang, slip, or hold what is none of the robot's own motion."""

from dataclasses import replace

import numpy as np
import pytest
from measured_arm import LINK_DELAY, drives_of, measured, measured_arm, misjudged, truth
from refusals import refused
from sweeps import some

from hodyn_ros import Robot
from hodyn_ros.identification import Channel, JointRecording, Options, identify
from hodyn_ros.identification.interruptions import without_interruptions
from hodyn_ros.identification.validation import validate, validate_pieces
from hodyn_ros.lie.jets import Array

OPTIONS = Options(bandwidth=8.0)
FROM, TO = 4.0, 4.3  # [s]


@pytest.fixture(name="arm", scope="module")
def make_arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return measured_arm(tmp_path_factory.mktemp("arm"))


def moving(rate: float = 250.0, count: float = 1e-5) -> JointRecording:
    """Two joints, of which the second rests from 3 to 5 s; encoders that count, stamps that jitter."""
    random = np.random.default_rng(1)
    t = np.arange(0.0, 8.0, 1.0 / rate) + random.uniform(-3e-4, 3e-4, round(8.0 * rate))
    rests = np.where(t < 3.0, 0.0, np.where(t < 5.0, t - 3.0, 2.0))
    position = np.stack([np.sin(2.0 * t), np.cos(np.pi * (t - rests))], axis=1)
    efforts = 20.0 * np.cos(2.0 * t)[:, None] + 0.1 * random.standard_normal((len(t), 2))
    return JointRecording(
        "run", ("one", "two"), Channel(t, efforts), Channel(t, np.round(position / count) * count)
    )


def hung(channel: Channel, joint: int, until: float = TO) -> Channel:
    """Return a channel that repeats a reading."""
    values, t = channel.values.copy(), channel.times
    stuck = (t >= FROM) & (t <= until)
    values[stuck, joint] = values[np.flatnonzero(stuck)[0], joint]
    return Channel(t, values)


def stepping(channel: Channel | None, after: Array, by: float) -> Channel:
    """Return a channel whose first joint is elsewhere at some samples."""
    assert channel is not None
    return Channel(
        channel.times, channel.values + by * np.outer(after, [1.0] + [0.0] * (channel.values.shape[1] - 1))
    )


@pytest.mark.parametrize("rate", [125.0, 250.0, 1000.0])
@pytest.mark.parametrize("count", [1e-9, 1e-5, 1e-3])
def test_a_joint_that_rests_and_counts_is_whole(rate: float, count: float) -> None:
    (piece,), lines = without_interruptions(moving(rate, count))
    assert len(piece.efforts.times) == round(8.0 * rate) and not lines


def test_readings_that_are_held_are_no_encoder_that_hangs() -> None:
    whole = moving(1000.0)
    assert whole.motors is not None
    held = Channel(whole.motors.times, np.repeat(whole.motors.values[::8], 8, axis=0))
    assert not without_interruptions(replace(whole, motors=held))[1]


def test_an_encoder_that_hangs_is_left_out_and_said() -> None:
    whole = moving()
    assert whole.motors is not None
    pieces, lines = without_interruptions(replace(whole, motors=hung(whole.motors, 0)))
    assert [tuple(np.round(piece.interval, 1)) for piece in pieces] == [(0.0, 4.0), (4.3, 8.0)]
    assert "motor position of joint 'one' hung from 4.0" in lines[0] and "as 2 recordings" in lines[1]
    (piece, *_), _ = without_interruptions(replace(whole, efforts=hung(whole.efforts, 1)))
    assert piece.interval[1] - piece.interval[0] < 4.1


def test_a_gap_makes_two_recordings_and_is_said() -> None:
    whole = moving()
    inside = (whole.efforts.times < FROM) | (whole.efforts.times > TO)
    assert whole.motors is not None
    cut = [Channel(c.times[inside], c.values[inside]) for c in (whole.efforts, whole.motors)]
    pieces, lines = without_interruptions(replace(whole, efforts=cut[0], motors=cut[1]))
    assert [tuple(np.round(piece.interval, 1)) for piece in pieces] == [(0.0, 4.0), (4.3, 8.0)]
    assert "counts as 2 recordings" in lines[0]


def test_a_single_reading_that_is_none_is_left_out_and_counted() -> None:
    whole = moving()
    spike = np.arange(len(whole.efforts.times)) == 1200
    (piece,), lines = without_interruptions(replace(whole, motors=stepping(whole.motors, spike, 0.5)))
    assert piece.motors is not None and len(piece.motors.times) == len(whole.efforts.times) - 1
    assert "motor position of joint 'one' was elsewhere for one sample, 1 times" in lines[0]


@pytest.mark.parametrize("by", [0.02, -0.5])
def test_an_encoder_that_slips_is_refused(by: float) -> None:
    whole = moving()
    slipped = replace(whole, motors=stepping(whole.motors, whole.efforts.times > 6.0, by))
    refused(lambda: without_interruptions(slipped), "motor position of joint 'one' steps by")


def test_pieces_that_are_too_short_are_named_and_nothing_is_left_of_such_a_recording() -> None:
    whole = moving()
    seconds = whole.efforts.times % 1.0 < 0.5
    assert whole.motors is not None
    channels = [Channel(c.times[seconds], c.values[seconds]) for c in (whole.efforts, whole.motors)]
    refused(
        lambda: without_interruptions(replace(whole, efforts=channels[0], motors=channels[1])),
        "gaps leave no 2 s",
    )


@pytest.mark.thorough
@pytest.mark.parametrize("what", some(["gap", "hung"], "hung"))
def test_figures_hold_where_a_recording_is_interrupted(arm: Robot, what: str) -> None:
    whole = measured(arm, 0, 7.0)
    assert whole.motors is not None and whole.links is not None
    inside = (whole.efforts.times < FROM) | (whole.efforts.times > TO)
    if what == "gap":
        cut = [Channel(c.times[inside], c.values[inside]) for c in (whole.efforts, whole.motors, whole.links)]
        recording = replace(whole, efforts=cut[0], motors=cut[1], links=cut[2])
    else:
        recording = replace(whole, motors=hung(whole.motors, 1))
    found = identify(misjudged(arm), recording, Options())
    true = truth(arm, found)
    for figure in found.figures:
        if figure.identified and figure.name in true and figure.deviation > 0.0:
            assert abs(figure.value - true[figure.name]) < 5.0 * figure.deviation, figure.name
    assert any("counts as 2 recordings" in note for note in found.notes)
    assert any("hung" in note for note in found.notes) == (what == "hung")

    pieces, lines = validate_pieces(found, misjudged(arm), recording)
    assert len(pieces) == 2 and any("counts as 2 recordings" in line for line in lines)
    assert all(fit.rms < 0.15 for _, (efforts, _) in pieces for fit in efforts)
    refused(lambda: validate(found, misjudged(arm), recording), "is 2 recordings by them")
    efforts, _ = validate(found, misjudged(arm), replace(whole, efforts=hung(whole.efforts, 1, FROM + 0.08)))
    assert all(fit.rms < 0.15 for fit in efforts)


@pytest.mark.thorough
def test_pushes_on_a_link_are_no_friction_behind_its_spring(arm: Robot) -> None:
    whole = measured(arm, 0, 8.0)
    assert whole.links is not None
    t, push = whole.efforts.times, np.zeros(len(whole.efforts.times))
    for begin, size in ((2.2, 6.0), (4.4, -8.0), (6.6, 7.0)):
        push += np.where((t > begin) & (t < begin + 0.4), size * np.sin(np.pi * (t - begin) / 0.4) ** 2, 0.0)
    efforts = Channel(t, whole.efforts.values + push[:, None] * [0.0, 1.0, 0.0])
    bent = push / drives_of(arm)[1].stiffness
    links = Channel(t, whole.links.values - bent[:, None] * [0.0, 1.0, 0.0])
    found = identify(misjudged(arm), replace(whole, efforts=efforts, links=links), OPTIONS)
    said = [note for note in found.notes if "to be looked at" in note]
    assert len(said) == 3 and all("joint 'lift' from" in note and "a contact" in note for note in said)
    began = [float(note.split(" from ")[1].split()[0]) for note in said]
    np.testing.assert_allclose(began, (2.2, 4.4, 6.6), atol=0.2)
    assert not any(figure.name.startswith("share of the friction") for figure in found.figures)
    for name, true in (("stiffness of lift", 3000.0), ("delay of the link encoder of lift", LINK_DELAY)):
        figure = found.figure(name)
        assert abs(figure.value - true) < min(2.0 * figure.deviation, 0.01 * true), name


@pytest.mark.thorough
def test_efforts_that_the_model_does_not_explain_are_named(arm: Robot) -> None:
    """Something pulls at `bend`, by where it is, as a cable does."""
    whole = measured(arm, 0, 4.5)
    assert whole.motors is not None
    pull = 4.0 * np.sin(5.0 * whole.motors.values) * [0.0, 0.0, 1.0]
    pulled = replace(whole, efforts=Channel(whole.efforts.times, whole.efforts.values + pull))
    said = [note for note in identify(misjudged(arm), pulled, OPTIONS).notes if "to be looked at" in note]
    assert len(said) == 1 and "% of the efforts of joint 'bend'" in said[0]
