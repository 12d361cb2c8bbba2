"""The motion nearest to that of drives: beside links whose drives agree, and SciPy where they do not."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from hodyn_ros import ConvergenceError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.links import Links
from hodyn_ros.observers.redundant_drives import DriveFit

NAMES = ["planar_3rrr.yaml", "gough_stewart_6ups.yaml", "palletiser.yaml"]  # slides, turns, joints alone


def moving(links: Links, time: float) -> Array:
    """Return coordinates with their first two derivatives (3, k), away from home."""
    phases = 9.0 * time + np.arange(links.size)
    x = 0.03 * np.array([9.0**k * np.sin(phases + k * np.pi / 2) for k in range(3)])
    x[0] += links.home
    return x


@pytest.mark.parametrize("name", NAMES)
def test_drives_that_agree_are_where_the_robot_is(name: str) -> None:
    robot = Robot.load(share.find("config", name))
    links, fit = Links(robot), DriveFit(robot)
    for i in range(12):
        right = links.drives(moving(links, 0.016 * i))
        efforts, moves = fit(right.motion[:3])
        assert np.abs(efforts - right.efforts[0]).max() < 1e-11 * np.abs(right.efforts[0]).max()
        np.testing.assert_allclose(moves @ moves, moves, atol=1e-12)
        assert round(np.trace(moves)) == links.size


def test_drives_that_contradict_each_other_count_alike() -> None:
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    links, fit, random = Links(robot), DriveFit(robot), np.random.default_rng(0)
    exact = links.drives(moving(links, 0.02)).motion[:3]
    wanted = exact + np.array([[0.01], [0.1], [1.0]]) * random.standard_normal(exact.shape)

    def apart(x: Array) -> Array:
        return links.drives(np.stack([x, 0 * x, 0 * x])).motion[0] - wanted[0]

    found = least_squares(apart, links.home, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    still = links.drives(np.stack([found, 0 * found, 0 * found]))
    columns = [links.drives(np.stack([found, unit, 0 * found])).motion[1] for unit in np.eye(2)]
    jacobian = np.stack(columns, axis=1)
    rates = np.linalg.lstsq(jacobian, wanted[1], rcond=None)[0]
    bent = links.drives(np.stack([found, rates, 0 * rates])).motion[2]
    accelerations = np.linalg.lstsq(jacobian, wanted[2] - bent, rcond=None)[0]
    right = links.drives(np.stack([found, rates, accelerations])).efforts[0]
    efforts, moves = fit(wanted)
    assert np.abs(still.motion[0] - wanted[0]).max() > 1e-3
    np.testing.assert_allclose(efforts, right, rtol=1e-6)  # SciPy's is that exact
    np.testing.assert_allclose(moves, jacobian @ np.linalg.pinv(jacobian), atol=1e-6)


def test_positions_that_no_motion_is_near_are_refused() -> None:
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    links, fit = Links(robot), DriveFit(robot)
    right = links.drives(moving(links, 0.02))
    far = right.motion[:3].copy()
    far[0] += np.array([1.5, 0.0, -1.5])
    with pytest.raises(ConvergenceError):
        fit(far)
    efforts, _ = fit(right.motion[:3])  # it stays where it was
    assert np.abs(efforts - right.efforts[0]).max() < 1e-11 * np.abs(right.efforts[0]).max()
