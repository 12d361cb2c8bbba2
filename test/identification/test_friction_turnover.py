"""How friction turns over: laws between three that are known, and what noise of the velocity makes of it."""

from pathlib import Path

import numpy as np
import pytest
from measured_arm import measured, measured_arm, misjudged
from numpy.typing import NDArray

from hodyn_ros.identification import Options, identify
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.reversals import unexplained
from hodyn_ros.identification.torque_model import coulomb, turnover

SPEED = 0.02
VELOCITY = np.linspace(-0.4, 0.4, 801)[:, None] + 1e-5  # no corner of the ramp among them


def law(sharpness: float) -> np.ndarray:
    return coulomb(VELOCITY, np.array([[SPEED], [sharpness]]))


def test_the_law_of_files_tanh_and_a_ramp_are_met() -> None:
    x = VELOCITY / SPEED
    np.testing.assert_allclose(law(0.0)[0], x / np.hypot(x, 1.0), rtol=1e-13)
    np.testing.assert_allclose(law(2.0)[0], np.clip(x, -1.0, 1.0), rtol=1e-13)
    np.testing.assert_allclose(law(1.0)[0], np.tanh(x), rtol=1e-13)


@pytest.mark.parametrize("sharpness", [-0.4, 0.3, 0.9, 1.1, 1.6, 2.3])
def test_derivatives_are_those_of_differences(sharpness: float) -> None:
    step = 1e-6
    _, by_speed, by_sharpness = law(sharpness)
    shapes = (np.array([[SPEED * np.exp(each)], [sharpness]]) for each in (step, -step))
    high, low = (coulomb(VELOCITY, shape)[0] for shape in shapes)
    np.testing.assert_allclose(by_speed, (high - low) / (2.0 * step), atol=1e-8)
    difference = law(sharpness + step)[0] - law(sharpness - step)[0]
    np.testing.assert_allclose(by_sharpness, difference / (2.0 * step), atol=1e-8)
    shape = np.array([[SPEED], [sharpness]])
    ahead, behind = (coulomb(VELOCITY + each, shape)[0] for each in (1e-7, -1e-7))
    np.testing.assert_allclose(turnover(VELOCITY, shape), (ahead - behind) / 2e-7, atol=1e-4)


def test_how_a_ramp_turns_over_hardly_changes_how_large_friction_is() -> None:
    """From five transition speeds on; with two laws alone, the sharpest were 2 % larger."""
    far = np.abs(VELOCITY) > 5.0 * SPEED
    for sharpness in (1.0, 1.25, 1.6, 2.0):
        np.testing.assert_allclose(np.abs(law(sharpness)[0][far]), 1.0, atol=0.0026)


def test_noise_of_the_velocity_is_no_friction_that_sticks() -> None:
    """Encoders of 50 urad at 500 Hz make 0.5 N·m of friction of 3 N·m that turns over at 0.01 rad/s."""
    random = np.random.default_rng(0)
    speed = 0.3 * np.sin(2.0 * np.pi * 0.3 * np.arange(0.0, 14.0, 2e-3))
    shaken = 3.0 * 1.7e-3 * turnover(speed[:, None], np.array([[0.01], [1.0]]))[:, 0]
    quiet = 0.1 * random.standard_normal(len(speed))
    residual = quiet + shaken * random.standard_normal(len(speed))
    out, sticks = unexplained(speed, residual, 0.01, 3.0, shaken, 4, 1.0)
    assert not sticks and not out.any()
    stuck = quiet + 3.0 * (np.abs(speed) < 0.01) * random.choice([-1.0, 1.0], len(speed))
    out, sticks = unexplained(speed, stuck, 0.01, 3.0, shaken, 4, 1.0)
    assert sticks
    assert out[np.abs(speed) < 0.01].all() and not out[np.abs(speed) > 0.2].any()


@pytest.mark.thorough
def test_friction_that_turns_out_to_stick_has_no_speed_at_which_it_turns_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Friction seems to turn over at one look, and to stick at the next one: the file's speed stays."""
    lift = np.array([False, True, False])
    looks, sticks = iter([~lift & lift] + [lift] * 4), iter([~lift & lift] * 2 + [lift] * 3)

    def seen(data: Data, *_: object, **__: object) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        data.reversals_left_out = data.reversals_left_out + 0.01
        return next(sticks), next(looks)

    monkeypatch.setattr(Data, "leave_reversals_out", seen)
    arm = measured_arm(tmp_path)
    found = identify(misjudged(arm), measured(arm, 0, 3.0), Options(bandwidth=8.0))
    told = {
        figure.name for figure in found.figures if "transition speed" in figure.name or "sharp" in figure.name
    }
    of_joint = "transition speed of {}", "sharpness of the friction of {}"
    assert told == {each.format(joint) for each in of_joint for joint in ("turn", "bend")}
    # of a law that is hardly told: the middle of all, in the end, and not that of files, which is 0
    assert 0.75 < found.figure("sharpness of the friction of turn").value < 1.25
