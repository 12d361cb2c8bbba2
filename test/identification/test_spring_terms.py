"""Friction behind springs, encoders off their axes, ripples of gears, and a robot with frames off its own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_arm import drives_of, measured, measured_arm

from hodyn_ros import Robot, share
from hodyn_ros.identification import Channel, JointRecording, identify
from hodyn_ros.identification.base_parameters import BaseParameters
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.result import Figure, Identified
from hodyn_ros.identification.robot_file import robot_text
from hodyn_ros.identification.springs.deflection import ECCENTRICITY, KINDS, RIPPLE
from hodyn_ros.identification.springs.terms import share_behind, spring_terms, wave_size
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.identification.validation import validate

TURNS, WAVE, ONCE, SHARE = 400.0, 40e-6, 250e-6, 0.4  # [1], [rad], [rad], of friction


@pytest.fixture(name="arm", scope="module")
def make_arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return measured_arm(tmp_path_factory.mktemp("arm"))


def bent(
    arm: Robot, seed: int, duration: float, phase: float = 0.0, wave: float = WAVE, once: float = 0.0
) -> JointRecording:
    """Let friction behind the spring of `lift` bend it, and a ripple and its encoder's axis move its link."""
    recording = measured(arm, seed, duration)
    assert recording.links is not None and recording.motors is not None
    times = recording.links.times
    position = recording.links.values[:, 1]
    speed = np.gradient(position, times)
    friction = 1.5 * speed + 2.0 * speed / np.sqrt(speed**2 + 1e-4) + 0.3
    extra = SHARE * friction / drives_of(arm)[1].stiffness + wave * np.sin(TURNS * position + phase)
    extra += once * np.sin(position + 0.7)
    links = recording.links.values - extra[:, None] * [0.0, 1.0, 0.0]
    return replace(recording, links=Channel(times, links))


def terms_of(arm: Robot, recording: JointRecording, only: list[int]) -> tuple[dict[int, object], Data]:
    """Seek terms with all else known."""
    data, model = Data(recording, 8.0), TorqueModel(arm)
    data.elastic = only
    springs = np.zeros((KINDS, len(only)))
    springs[0] = [1.0 / drives_of(arm)[j].stiffness for j in only]
    springs[1] = 2e-3
    unknowns = Unknowns(model.prior, springs, 1e-3, model.friction_shape)
    return dict(spring_terms(model, [data], model.prior, unknowns, [{}])), data


def test_friction_behind_a_spring_and_a_ripple_are_found(arm: Robot) -> None:
    found, data = terms_of(arm, bent(arm, 0, 8.0), [1])
    terms = found[1]
    share, width = share_behind(terms)  # type: ignore[arg-type]
    assert share == pytest.approx(SHARE, abs=0.03) and width < 0.05
    size, deviation = wave_size(terms, RIPPLE)  # type: ignore[arg-type]
    assert size == pytest.approx(WAVE, rel=0.03) and deviation < 0.1 * WAVE
    assert data.ripples[1] == pytest.approx(TURNS, rel=2e-3)
    assert terms.spring[0] == pytest.approx(1.0 / 3000, rel=0.01)  # type: ignore[attr-defined]


def test_an_encoder_off_its_axis_is_told_from_friction_and_stiffness(arm: Robot) -> None:
    terms = terms_of(arm, bent(arm, 2, 5.0, wave=0.0, once=ONCE), [1])[0][1]
    size, deviation = wave_size(terms, ECCENTRICITY)  # type: ignore[arg-type]
    assert abs(size - ONCE) < 1.5 * deviation and deviation < 0.12 * ONCE
    assert share_behind(terms)[0] == pytest.approx(SHARE, abs=0.03)  # type: ignore[arg-type]
    assert terms.spring[0] == pytest.approx(1.0 / 3000, rel=0.01)  # type: ignore[attr-defined]
    assert not terms.turns  # type: ignore[attr-defined]


def test_nothing_is_found_where_there_is_nothing(arm: Robot) -> None:
    found, data = terms_of(arm, measured(arm, 1, 6.0), [0, 1, 2])
    assert not found and not data.ripples.any()


@pytest.mark.thorough
def test_terms_predict_other_runs(arm: Robot) -> None:
    found = identify(arm, bent(arm, 0, 7.0))
    figure = found.figure("share of the friction behind the spring of lift")
    assert figure.value == pytest.approx(SHARE, abs=0.05)
    assert found.figure("stiffness of lift").value == pytest.approx(3000.0, rel=0.02)
    assert any(each.name.startswith("ripple") for each in found.figures)
    _, deflections = validate(found, arm, bent(arm, 9, 6.0))
    assert deflections[1].rms < 1.2 * found.deflections[1].rms  # as well as what was used
    _, anew = validate(found, arm, bent(arm, 9, 6.0, phase=2.0))  # with encoders that count from elsewhere
    assert anew[1].rms == pytest.approx(deflections[1].rms, rel=0.05)
    assert deflections[1].rms < 0.2 * SHARE * 2.0 / 3000  # steps of friction are smoothed, the rest is there


def test_frames_off_their_axes_are_written_on_them(tmp_path: Path) -> None:
    """The KR300 by Denavit and Hartenberg's standard convention: the file is the same robot."""
    robot = Robot.load(share.find("config", "kuka_kr300.yaml"))
    home = np.deg2rad([0.0, -90.0, 90.0, 0.0, 0.0, 0.0])
    random = np.random.default_rng(0)
    times = np.arange(120) / 250.0
    tiny = 1e-3 * np.cumsum(random.standard_normal((120, 6)), axis=0)
    recording = JointRecording("a test", robot.joint_names, Channel(times, tiny), Channel(times, home + tiny))
    model, data = TorqueModel(robot), Data(recording, 4.0)
    none = np.zeros((len(model.prior),) * 2)
    figures = tuple(
        Figure(f"stiffness of {n}", "", 1.0, 1.0, 1.0, False, "untold") for n in robot.joint_names
    )
    result = Identified(
        robot, "a test", model.prior, model.prior, none, model.prior, model.names,
        BaseParameters(none[:0], (), ()), figures, figures[0], 1.0, (4.0,), (), (), (),
        Unknowns(model.prior, np.zeros((KINDS, 0)), 0.0, model.friction_shape), (), data.ripples, {}, (),
    )  # fmt: skip
    path = tmp_path / "robot.yaml"
    path.write_text(robot_text(result))
    read = Robot.load(path)
    q = random.standard_normal((3, 6))
    np.testing.assert_allclose(read.inverse_dynamics(q), robot.inverse_dynamics(q), rtol=1e-9, atol=1e-6)


def test_published_gravity_of_the_kr300_comes_out_at_its_start() -> None:
    """With the tool of 150 kg, 0.1 m before the flange, on axes 3, 4 and 5 [N·m]."""
    robot = Robot.load(share.find("config", "kuka_kr300.yaml"))
    tree = robot.tree
    masses, coms = tree.masses.copy(), tree.coms.copy()
    masses[5], coms[5] = 150.0, [0.0, 0.0, 0.1]
    loaded = robot.with_tree(tree.with_inertias(masses, coms, tree.inertias))
    q = np.zeros((3, 6))
    q[0] = np.deg2rad([0.0, -90.0, 90.0, 0.0, 0.0, 0.0])
    found = loaded.inverse_dynamics(q)[0]
    np.testing.assert_allclose(found[2:5], [-2629.966, -25.041, -503.088], atol=6e-4)
    assert drives_of(robot)[0].stiffness == 4577800
    for j, published in ((1, 7518900.0), (2, 4099900.0)):
        assert drives_of(robot)[j].stiffness == pytest.approx(published, rel=0.2)
