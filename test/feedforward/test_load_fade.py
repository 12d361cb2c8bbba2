"""A load that is faded in: the feedforward of a body whose figures change with time."""

from math import factorial

import numpy as np
import pytest
from mpmath import mp
from refusals import refused

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.errors import OverflowingError
from hodyn_ros.feedforward.load_fade import LoadFade
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.model.drive_spec import DriveSpec, RotorSpec

pytestmark = pytest.mark.thorough

LOAD = Payload(1.5, (0.0, 0.01, 0.15), (0.004, 0.0, 0.0, 0.005, 0.0, 0.003))
START, DURATION = 7_000_000_000, 0.5
ORDER = 2
N = 7


@pytest.fixture(name="models", scope="module")
def make_models(panda: Robot) -> tuple[FeedforwardModel, FeedforwardModel]:
    return FeedforwardModel(panda, ORDER), FeedforwardModel(panda.with_tree(LOAD.on_tree(panda)), ORDER)


def motion(t: float, orders: int = ORDER + 3) -> Array:
    phase = 2.0 * t + np.arange(N)
    return np.array([0.3 * 2.0**k * np.sin(phase + k * np.pi / 2) for k in range(orders)])


def at(fade: LoadFade, t: float) -> Array:
    """Return efforts of links and positions of motors (2, order + 1, n) at a time since the start."""
    fade.start_at(t, START)
    found = fade.compute(START, motion(t))
    return np.stack([found.efforts, found.motor_positions])


def test_it_goes_from_one_load_to_the_other(models: tuple[FeedforwardModel, FeedforwardModel]) -> None:
    fade = LoadFade(*models, DURATION)
    for model, after in ((models[0], 0), (models[1], round(1e9 * DURATION)), (models[1], 9_000_000_000)):
        found = fade.compute(START + after, motion(0.3))
        expected = model.compute(motion(0.3))
        for ours, its in zip(found[:4], expected[:4], strict=True):
            np.testing.assert_allclose(ours, its, rtol=1e-13, atol=1e-12)
        assert fade.over == (after > 0)


def test_efforts_are_those_of_a_load_that_grows(
    panda: Robot, models: tuple[FeedforwardModel, FeedforwardModel]
) -> None:
    """In between, with the figures of the body that the weight says; so also where motors are."""
    t = 0.6 * DURATION
    found = at(LoadFade(*models, DURATION), t)
    u = mp.mpf(t) / mp.mpf(DURATION)
    share_of_it = mp.quad(lambda x: x**ORDER * (1 - x) ** ORDER, [0, u]) / mp.beta(ORDER + 1, ORDER + 1)
    w = float(share_of_it)  # the polynomial as an integral
    centre, whole = np.array(LOAD.centre), LOAD.tensor
    partly = Payload(w * LOAD.mass, centre, (w * whole[np.triu_indices(3)]).tolist())
    loaded = panda.with_tree(partly.on_tree(panda))
    expected = loaded.inverse_dynamics(motion(t))[0]
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-12, atol=1e-12)
    deflected = motion(t)[0] + expected / panda.require_drives().stiffness
    np.testing.assert_allclose(found[1, 0], deflected, rtol=1e-12, atol=1e-12)


def test_what_is_said_of_rates_is_how_values_change(
    models: tuple[FeedforwardModel, FeedforwardModel],
) -> None:
    """Derivatives by central differences, extrapolated twice, of efforts and motor positions."""
    fade = LoadFade(*models, DURATION)
    t, h = 0.37 * DURATION, 2e-3

    def rate(step: float) -> Array:
        return (at(fade, t + step) - at(fade, t - step))[:, :-1] / (2.0 * step)

    coarse, middle, fine = rate(h), rate(h / 2), rate(h / 4)
    first = (4.0 * middle - coarse) / 3.0, (4.0 * fine - middle) / 3.0
    found = at(fade, t)[:, 1:]
    np.testing.assert_allclose((16.0 * first[1] - first[0]) / 15.0, found, rtol=1e-7, atol=1e-7)


def test_it_begins_and_ends_without_a_step_of_any_order(
    models: tuple[FeedforwardModel, FeedforwardModel],
) -> None:
    """A Taylor series of what was said just before an end says what is there, but for the order left out."""
    fade = LoadFade(*models, DURATION)
    for end in (0.0, DURATION):
        h = 1e-4
        inside, outside = at(fade, end + (h if end == 0.0 else -h))[0], at(fade, end)[0]
        model = models[0] if end == 0.0 else models[1]
        alone = model.compute(motion(end + (h if end == 0.0 else -h))).efforts
        for k in range(ORDER + 1):  # w^(k) is of the order h^(p + 1 - k)
            bound = 60.0 * factorial(2 * ORDER + 1) * h ** (ORDER + 1 - k) / DURATION ** (ORDER + 1)
            assert np.abs(inside[k] - alone[k]).max() < bound
        np.testing.assert_allclose(outside, model.compute(motion(end)).efforts, rtol=1e-12, atol=1e-10)


def test_stamps_that_go_back_do_not_hold_it_up(models: tuple[FeedforwardModel, FeedforwardModel]) -> None:
    fade = LoadFade(*models, DURATION)
    for stamp in (START, START + 200_000_000, 1_000, 300_001_000):
        fade.compute(stamp, motion(0.0))
    assert fade.over
    fade = LoadFade(*models, DURATION)
    fade.compute(START, motion(0.0))
    with pytest.raises(OverflowingError):
        fade.compute(START + 400_000_000, 1e300 * motion(1.0))
    assert fade.elapsed == 0.0 and fade.stamp == START


def test_rotors_that_turn_with_links_are_not_faded() -> None:
    bodies = [np.eye(4)] * 2, [1.0, 1.0], np.full((2, 3), 0.1), [0.1 * np.eye(3)] * 2
    arm = Robot.from_screws([-1, 0], [[0, -1, 0, 0, 0, 0], [0, -1, 0, 0, 0, -0.6]], *bodies)
    turns = RotorSpec(arm.tree.body_names[0])
    robot = arm.with_drives([DriveSpec(900.0, 0.3), DriveSpec(900.0, 0.3, rotor=turns)])
    models = FeedforwardModel(robot, 0), FeedforwardModel(robot.with_tree(LOAD.on_tree(robot)), 0)
    refused(lambda: LoadFade(*models, DURATION), "its load is not faded; set the parameters payload_mass")


def test_a_platform_is_faded_as_well() -> None:
    robot = Robot.load(share.find("config", "gough_stewart_6ups.yaml"))
    loaded = robot.with_tree(Payload(3.0).on_tree(robot))
    models = FeedforwardModel(robot, 1), FeedforwardModel(loaded, 1)
    start, pose = robot.home
    base = BaseMotion(pose, np.zeros((3, 6)))
    fade = LoadFade(*models, DURATION)
    fade.start_at(0.5 * DURATION, START)
    q = np.zeros((4, len(start)))
    q[0] = start
    found = fade.compute(START, q, base)
    half = robot.with_tree(Payload(1.5).on_tree(robot))
    expected = FeedforwardModel(half, 1).compute(q, base)
    np.testing.assert_allclose(found.efforts[0], expected.efforts[0], rtol=1e-9, atol=1e-9)
