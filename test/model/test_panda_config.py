"""The shipped Panda against Pinocchio, built here from the published table and not from our file."""

import math
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from places import CONFIG

from hodyn_ros.dynamics.read_robot import read_robot
from hodyn_ros.formulations.spatial import inverse_dynamics
from hodyn_ros.lie import se3
from hodyn_ros.model.description import RobotDescription

PANDA = CONFIG / "panda.yaml"
G = 9.80665
RTOL = 1e-12

# Gaz et al. (2019), supplementary material: a [m], alpha [quarter turns], d [m] of the modified DH
# convention, mass [kg], centre of mass [m], inertia about the centre of mass, xx xy xz yy yz zz [kg m^2].
# NaN: published as "*".
TABLE: list[tuple[float, int, float, float, list[float], list[float]]] = [
    (0, 0, 0.333, 4.970684, [0.003875, 0.002081, math.nan],
     [0.70337, -0.000139, 0.006772, 0.70661, 0.019169, 0.009117]),
    (0, -1, 0, 0.646926, [-0.003141, -0.02872, 0.003495],
     [0.007962, -0.003925, 0.010254, 0.02811, 0.000704, 0.025995]),
    (0, 1, 0.316, 3.228604, [0.027518, 0.039252, -0.066502],
     [0.037242, -0.004761, -0.011396, 0.036155, -0.012805, 0.01083]),
    (0.0825, 1, 0, 3.587895, [-0.05317, 0.104419, 0.027454],
     [0.025853, 0.007796, -0.001332, 0.019552, 0.008641, 0.028323]),
    (-0.0825, -1, 0.384, 1.225946, [-0.011953, 0.041065, -0.038437],
     [0.035549, -0.002117, -0.004037, 0.029474, 0.000229, 0.008627]),
    (0, 1, 0, 1.666555, [0.060149, -0.014117, -0.010517],
     [0.001964, 0.000109, -0.001158, 0.004354, 0.000341, 0.005433]),
    (0.088, 1, 0, 0.735522, [0.010517, -0.004252, 0.061597],
     [0.012516, -0.000428, -0.001196, 0.010027, -0.000741, 0.004815]),
]  # fmt: skip
Q = np.array([0.3, -0.5, 0.7, -1.9, 0.4, 1.6, -0.8])


@pytest.fixture(scope="module")
def config() -> RobotDescription:
    return read_robot(PANDA)


def pinocchio_panda(height_of_first_com: float) -> Any:
    model = pin.Model()
    model.gravity.linear = np.array([0.0, 0.0, -G])
    parent = 0
    for a, quarter_turns, d, mass, com, moments in TABLE:
        sine = quarter_turns  # of -90, 0 or 90 degrees
        rotation = np.array([[1.0, 0, 0], [0, 1 - abs(sine), -sine], [0, sine, 1 - abs(sine)]])
        offset = np.array([a, -sine * d, (1 - abs(sine)) * d])
        parent = model.addJoint(parent, pin.JointModelRZ(), pin.SE3(rotation, offset), f"joint{parent + 1}")
        xx, xy, xz, yy, yz, zz = moments
        lever = np.nan_to_num(np.array(com), nan=height_of_first_com)
        inertia = pin.Inertia(mass, lever, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    return model


def torques(config: RobotDescription, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    return inverse_dynamics(config.model, np.array([q, v, a]))[0][0]


def test_names_and_frames(config: RobotDescription) -> None:
    assert config.model.name == "panda"
    assert config.model.joint_names == tuple(f"panda_joint{i}" for i in range(1, 8))
    assert config.model.body_names == tuple(f"panda_link{i}" for i in range(1, 8))
    assert config.model.parents == tuple(range(-1, 6))
    flange = config.frames["panda_link8"]
    assert flange.body == 6
    # at the zero configuration the flange of a Panda hangs down, 88 mm before the base axis
    zero = config.model.placements[6] @ flange.pose
    np.testing.assert_allclose(zero[:3, 3], [0.088, 0, 0.333 + 0.316 + 0.384 - 0.107], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(zero[:3, :3], np.diag([1.0, -1.0, -1.0]))


def test_screws_hold_only_the_figures_of_the_table(config: RobotDescription) -> None:
    figures = [0, 1, 0.333, 0.333 + 0.316, 0.333 + 0.316 + 0.384, 0.0825, 0.088]
    found = np.abs(config.model.screws).ravel()
    distance = np.abs(found[:, None] - np.array(figures)).min(axis=1)
    assert distance.max() <= 2e-16
    assert np.count_nonzero(found) == 7 + 5  # no cosine of a rounded right angle among them


def test_every_torque_of_order_0_is_that_of_pinocchio(config: RobotDescription) -> None:
    theirs = pinocchio_panda(-0.175)
    data = theirs.createData()
    rng = np.random.default_rng(11)
    for q in [Q, *rng.uniform(-2.8, 2.8, (25, 7))]:
        v, a = rng.normal(size=(2, 7))
        zero = np.zeros(7)
        expected = pin.rnea(theirs, data, q, v, a)
        np.testing.assert_allclose(
            torques(config, q, v, a), expected, rtol=0, atol=RTOL * abs(expected).max()
        )
        expected = pin.computeGeneralizedGravity(theirs, data, q)
        found = torques(config, q, zero, zero)
        np.testing.assert_allclose(found, expected, rtol=0, atol=RTOL * abs(expected).max())


def test_identified_inertias_are_physical_about_the_com_and_not_about_the_origin(
    config: RobotDescription,
) -> None:
    model = config.model
    about_origin = []
    for mass, com, inertia in zip(model.masses, model.coms, model.inertias, strict=True):
        small, middle, large = np.linalg.eigvalsh(inertia)
        assert small > 0.0
        assert small + middle > large  # the triangle inequality of a body of positive density
        misread = inertia + mass * se3.hat(com) @ se3.hat(com)
        about_origin.append(bool(np.linalg.eigvalsh(misread)[0] > 0.0))
    assert about_origin == [True, True, False, False, True, False, True]


def test_drives_limits_and_what_is_assumed(config: RobotDescription) -> None:
    assert config.drives is not None
    # Franka's figures for the FR3, in three sizes of joint module
    np.testing.assert_array_equal(
        [drive.motor_inertia for drive in config.drives],
        [0.605721456] * 2 + [0.462474144] * 2 + [0.205544064] * 3,
    )
    assert all(drive.stiffness == 1e4 for drive in config.drives[:4])
    assert all(drive.stiffness == 5e3 for drive in config.drives[4:])
    assumed = [figure.place for figure in config.assumed]
    stiffnesses = [f"joints[{i}] panda_joint{i + 1}: drive.stiffness" for i in range(7)]
    assert assumed == ["bodies[0] panda_link1: com", *stiffnesses]
    limits = config.limits
    assert limits.position_lower.tolist() == [-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973]
    assert limits.position_upper.tolist() == [2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973]
    assert limits.velocity.tolist() == [2.175] * 4 + [2.61] * 3
    assert limits.effort.tolist() == [87.0] * 4 + [12.0] * 3
    assert limits.effort_rate.tolist() == [1000.0] * 7


def test_gravity_is_that_of_the_identification(config: RobotDescription) -> None:
    assert config.model.gravity.tolist() == [0.0, 0.0, -G]
    assert read_robot(PANDA, gravity=(0, 0, -1.62)).model.gravity.tolist() == [0.0, 0.0, -1.62]
