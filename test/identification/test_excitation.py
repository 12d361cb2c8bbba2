"""Motions for identification: gradients against differences, limits looked at in another way."""

from pathlib import Path

import numpy as np
import pytest
from command_line import run
from measured_arm import measured_arm
from refusals import assert_refused, refused
from scipy.optimize import approx_fprime

import hodyn_ros.identification.excitation.search as search_module
from hodyn_ros import Robot
from hodyn_ros.identification.excitation import Box, ExcitationOptions, excite
from hodyn_ros.identification.excitation.fourier_basis import FourierBasis
from hodyn_ros.identification.excitation.room import Room
from hodyn_ros.identification.excitation.visibility import Visibility
from hodyn_ros.trajectory import FourierSeries
from hodyn_ros.trajectory.files.reader import read_trajectory

REACH = Box.parse("fore: x -0.4..0.4, z 0.2..")


@pytest.fixture(name="arm", scope="module")
def make_arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return measured_arm(tmp_path_factory.mktemp("arm"))


def samples(basis: FourierBasis, x: np.ndarray, count: int, order: int) -> np.ndarray:
    return basis.series(x).sample((np.arange(count) + 0.5) * basis.duration / count, order)


def test_series_rest_at_their_ends_and_are_linear_in_their_coordinates() -> None:
    basis = FourierBasis(7.0, 6)
    x = np.random.default_rng(0).standard_normal((basis.size, 2))
    motion = basis.series(x)
    assert motion.starts_at_rest and motion.ends_at_rest and motion.smoothness == 4
    sizes = np.abs(motion.sample(np.linspace(0.1, 6.9, 50), 4)).max(axis=(0, 2))
    for time in (0.0, 7.0):
        assert (np.abs(motion.sample(time, 4)[1:]).max(axis=1) < 1e-12 * sizes[1:]).all()
    times = np.array([0.3, 2.0, 6.5])
    np.testing.assert_allclose(
        np.moveaxis(basis.sampled(times, 4) @ x, 0, 1), motion.sample(times, 4), rtol=1e-12, atol=1e-11
    )


def test_a_series_that_is_not_at_rest_may_not_say_so() -> None:
    assert_refused(
        (lambda: FourierSeries(1.0, [[1.0]], [[0.0]], [0.0], duration=2.0 * np.pi, at_rest=True),
         "not at rest at its ends: its velocity"),
        (lambda: FourierSeries(1.0, [[0.0]], [[0.0]], [0.0], at_rest=True), "needs a duration"),
    )  # fmt: skip


def test_the_smooth_condition_is_near_the_condition_and_has_its_derivatives(arm: Robot) -> None:
    basis, visibility = FourierBasis(6.0, 5), Visibility(arm, True, 5.0)
    x = 0.4 * np.random.default_rng(1).standard_normal((basis.size, 3))
    joints = samples(basis, x, 40, 2)
    value, slopes = visibility.smooth_condition(joints)
    assert value == pytest.approx(np.log(visibility.condition(joints)), abs=0.5)
    direction = np.random.default_rng(2).standard_normal(joints.shape)
    step = 1e-5
    values = [visibility.smooth_condition(joints + s * step * direction)[0] for s in (1, -1)]
    assert (slopes * direction).sum() == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4)


def test_what_is_beyond_limits_costs_with_its_derivatives(arm: Robot) -> None:
    room, basis = Room(arm, (REACH,)), FourierBasis(3.0, 5)
    x = np.random.default_rng(3).standard_normal((basis.size, 3))
    joints = samples(basis, x, 6, room.order)
    penalty, slopes = room.penalty(joints, 0.9)
    assert penalty > 0.0

    def cost(row: np.ndarray) -> float:
        moved = joints.copy()
        moved[2, :2] = row.reshape(2, 3)
        return room.penalty(moved, 0.9)[0]

    found = approx_fprime(joints[2, :2].ravel(), cost, 1e-6)
    np.testing.assert_allclose(slopes[2, :2].ravel(), found, rtol=1e-3, atol=1e-3 * np.abs(found).max())


@pytest.mark.thorough
def test_a_motion_shows_more_within_all_limits_and_boxes(arm: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_STEPS", 15)
    done: list[float] = []
    found = excite(arm, ExcitationOptions(6.0, 5, 1, boxes=(REACH,)), done.append)
    assert done == sorted(done) and done[-1] == 1.0
    assert found.condition < 0.5 * found.random
    times = np.linspace(0.0, 6.0, 4001)
    q = found.motion.sample(times, 3)
    assert np.abs(q[:, 0]).max() <= 2.0 and np.abs(q[:, 1]).max() <= 3.0
    efforts = arm.inverse_dynamics(q)
    assert np.abs(efforts[:, 0]).max() <= 100.0 and np.abs(efforts[:, 1]).max() <= 2000.0
    places = arm.forward_kinematics(q[:, :1]).pose_of("fore")[:, :3, 3]
    assert np.abs(places[:, 0]).max() <= 0.4 and places[:, 2].min() >= 0.2
    assert 0.5 < found.usage <= 1.0


def test_excite_writes_a_trajectory_file(
    arm: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("_STEPS", 2), ("_FAIR", 2), ("_STAGES", (30.0,))):
        monkeypatch.setattr(search_module, name, value)
    robot, other, out = tmp_path / "arm.yaml", tmp_path / "other.yaml", tmp_path / "motion.yaml"
    measured_arm(tmp_path)
    other.write_text("type: cosines\namplitudes: [1, 1, 1]\nangular_frequencies: [1, 2, 3]\n")
    arguments = ("--duration", 5, "--harmonics", 5, "--starts", 1, "--compare", other, "--out", out)
    assert run(monkeypatch, "excite", robot, *arguments) == 0
    said = capsys.readouterr().out
    assert "base parameters" in said and "times as large" in said and "limits hold" in said
    motion = read_trajectory(out)
    assert (motion.starts_at_rest, motion.ends_at_rest, motion.duration) == (True, True, 5.0)
    assert motion.joint_names == arm.joint_names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hand x 1..2", "is no box"),
        ("hand: w 1..2", "is no box"),
        ("hand: x 2..1", "empty along x"),
        ("hand: x ..", "is no box"),
        ("hand: x 0..1, x 0..2", "each axis once"),
        ("hand: x 0...1", "is no box"),  # and not up to 0.1
    ],
)
def test_boxes_that_cannot_be_are_refused(text: str, said: str) -> None:
    refused(lambda: Box.parse(text), said)


def test_a_box_of_a_body_that_is_not_there_is_refused(arm: Robot) -> None:
    refused(lambda: Room(arm, (Box.parse("hand: x ..1"),)), "no body or frame 'hand'; it has post, upper")
