"""Recordings are refused where signs, orders or units are plainly wrong, and not for what cannot be known."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from measured_arm import ARM, BODY, measured, measured_arm, misjudged, swings
from refusals import refused
from sweeps import some

from hodyn_ros import Robot
from hodyn_ros.identification import Channel, JointRecording, Options, identify
from hodyn_ros.identification.figures import in_units_of_joints
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.plausibility import _doubt as doubt
from hodyn_ros.identification.plausibility import check_plausible
from hodyn_ros.identification.result import Figure, heads_of_fits
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.trajectory import FourierSeries

pytestmark = pytest.mark.thorough

TOOL = """
  - name: turn_tool
    type: revolute
    parent: fore
    child: tool
    origin: {xyz: [0.3, 0, 0]}
    axis: [1, 0, 0]
    limits: {lower: -3, upper: 3, velocity: 3, effort: 20, effort_rate: 2000}
    drive: {motor_inertia: 0.05, stiffness: rigid}
"""
SYMMETRIC = "inertia: {about: com, ixx: 0.0008, iyy: 0.001, izz: 0.001, ixy: 0, ixz: 0, iyz: 0}"


def doubts_of(robot: Robot, recording: JointRecording) -> list[str]:
    return check_plausible(TorqueModel(robot), Data(recording))


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return measured_arm(tmp_path_factory.mktemp("arm"))


def test_drives_at_their_limits_are_counted(arm: Robot) -> None:
    whole = measured(arm, 0, 2.5)
    efforts, limit = whole.efforts.values.copy(), arm.limits.effort[1]
    efforts[:40, 1] = np.where(np.arange(40) % 2, limit, -limit)
    (line,) = doubts_of(arm, replace(whole, efforts=Channel(whole.efforts.times, efforts)))
    assert f"'lift' are at the limit of its drive, {limit:g} N·m or N, in 40 of" in line
    assert not doubts_of(arm, whole)


@pytest.fixture(scope="module")
def wrist(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    """The arm with a fourth joint, which turns a symmetric tool about its own axis."""
    bodies = ARM.replace(
        f"{BODY}}}\njoints:",
        f"{BODY}}}\n  - {{name: tool, mass: 0.3, com: [0.05, 0, 0], {SYMMETRIC}}}\njoints:",
    )
    path: Path = tmp_path_factory.mktemp("wrist") / "wrist.yaml"
    path.write_text(bodies + TOOL)
    return Robot.load(path)


def sensed_at_links(wrist: Robot, seed: int, rate: float = 100.0) -> JointRecording:
    """What torque sensors of the links tell, behind which all joints rub: of the tool, friction alone.

    Friction falls with the speed, ripples with the position, and lags behind the velocity, as what creeps
    does: that looks like an inertia below zero, beside which the tool's is nothing.
    """
    random = np.random.default_rng(seed)
    usual, faster = swings(4), [1.0, 1.0, 1.0, 3.0]
    motion = FourierSeries(0.9, usual.sine * faster, usual.cosine * faster, usual.offsets)
    count = round(10.0 * rate)
    times = 0.1 + np.arange(count) / rate
    q = motion.sample(times, 2)
    speed = motion.sample(times - random.uniform(0.0, 0.05), 1)[:, 1]
    size = np.array([2.0, 2.0, 1.0, random.uniform(0.3, 1.5)])
    stick = random.uniform(0.0, 0.3) * np.exp(-((speed / random.uniform(0.1, 0.5)) ** 2))
    rubs = size * ((0.1 + stick) * speed / np.hypot(speed, 0.05) + random.uniform(0.2, 1.0) * speed)
    ripple = 0.005 * size * np.sin(random.uniform(3.0, 20.0) * q[:, 0] + random.uniform(0.0, 6.0))
    noise = 0.002 * random.standard_normal((count, 4))
    efforts = wrist.inverse_dynamics(q)[:, 0] + rubs + ripple + noise
    positions = q[:, 0] + 1e-5 * random.standard_normal((count, 4))
    return JointRecording(
        "sensors", wrist.joint_names, Channel(times, efforts), None, Channel(times, positions), at_motor=False
    )


def test_slides_are_in_metres(tmp_path: Path) -> None:
    """4 mm to both sides, as if they were 4 m, where a joint that turns could be wound up."""
    path = tmp_path / "gantry.urdf"
    path.write_text(
        '<robot name="gantry"><link name="rail"/><link name="cart"><inertial><mass value="2"/><inertia '
        'ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        '<joint name="rides" type="prismatic"><parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>'
        '<limit lower="-0.5" upper="0.5" velocity="1" effort="9"/></joint></robot>'
    )
    robot, times = Robot.from_urdf(path), np.arange(500) / 100.0
    swing = Channel(times, 4.0 * np.sin(6.0 * times)[:, None])
    said = "joint 'rides' moves over ... m, but its limits are 1 m apart; are these mm ... (0.001 for mm)"
    refused(lambda: doubts_of(robot, JointRecording("mm", ("rides",), swing, None, swing)), said)
    units = {
        "motor inertia": "kg m^2",
        "viscous friction by temperature": "N·m·s/rad/K",
        "stiffness": "N·m/rad",
    }
    figures = [Figure(f"{what} of rides", unit, 0.0, 0.0, 0.0, True) for what, unit in units.items()]
    assert [each.unit for each in in_units_of_joints(figures, robot)] == ["kg", "N·s/m/K", "N/m"]
    heads = heads_of_fits(robot)
    assert "RMS [N/s]" in str(heads) and "RMS [µm]" in heads[-1]


def test_what_looks_wrong_and_is_not_plain_is_said(wrist: Robot) -> None:
    """Not refused: what of the torque of joint 7 of a KUKA LWR4+ is no friction has any sign and size."""
    said = [doubt for seed in range(12) for doubt in doubts_of(wrist, sensed_at_links(wrist, seed))]
    assert len(said) > 5 and all("'turn_tool'" in doubt for doubt in said)
    found = identify(wrist, sensed_at_links(wrist, 1), Options(bandwidth=5.0))
    assert "efforts of joint 'turn_tool' have the opposite sign" in found.notes[0]
    assert found.notes[0].startswith("to be looked at: ")


@pytest.mark.parametrize("turned", ["efforts", "links"])
def test_friction_that_would_drive_such_a_joint_is_refused(wrist: Robot, turned: str) -> None:
    """Whatever its file says of it, no friction has the sign of the other way."""
    right = sensed_at_links(wrist, 1)
    channel: Channel = getattr(right, turned)
    other = Channel(channel.times, channel.values * [1.0, 1.0, 1.0, -1.0])
    call = partial(identify, wrist, replace(right, **{turned: other}), Options(bandwidth=5.0))
    refused(call, "joint 'turn_tool' have friction that drives it")


def test_friction_of_a_joint_that_goes_one_way_says_nothing_of_signs(wrist: Robot) -> None:
    """What holds it at rest is larger than what it moves against: an offset, beside friction below zero."""
    right = sensed_at_links(wrist, 1)
    assert right.links is not None
    share = np.clip((right.efforts.times - 3.0) / 4.0, 0.0, 1.0)
    way, efforts = right.links.values.copy(), right.efforts.values.copy()
    way[:, 3] = 2.0 * share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    efforts[:, 3] = np.where((share > 0.0) & (share < 1.0), 0.5, 0.8)
    links, at_links = Channel(right.links.times, way), Channel(right.efforts.times, efforts)
    found = identify(wrist, replace(right, efforts=at_links, links=links), Options(bandwidth=5.0))
    assert found.figure("Coulomb friction of turn_tool").value >= 0.0


@pytest.mark.parametrize("seed", some(range(6), 0, 1, 2))
def test_plain_mistakes_beside_such_a_joint_are_refused(wrist: Robot, seed: int) -> None:
    right = sensed_at_links(wrist, seed)
    random = np.random.default_rng(seed)
    joint = int(random.integers(0, 3))
    signs = np.where(np.arange(4) == joint, -1.0, 1.0)
    name = wrist.joint_names[joint]

    def doubted(efforts: np.ndarray) -> None:
        channel = Channel(right.efforts.times, efforts)
        doubts_of(
            wrist, JointRecording("sensors", wrist.joint_names, channel, None, right.links, at_motor=False)
        )

    efforts = right.efforts.values
    refused(lambda: doubted(efforts * signs), f"efforts of joint {name!r} have the opposite sign")
    refused(
        lambda: doubted(efforts[:, [0, 2, 1, 3]]), "efforts of joints 'lift' and 'bend' suit the file far"
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_file_that_is_wrong_by_a_fifth_tells_mistakes_all_the_same(arm: Robot, seed: int) -> None:
    robot, right = misjudged(arm), measured(arm, seed, duration=8.0)
    assert not doubts_of(robot, right)
    assert right.motors is not None and right.links is not None
    for joint, name in enumerate(arm.joint_names):
        signs = np.where(np.arange(3) == joint, -1.0, 1.0)
        turned = Channel(right.efforts.times, right.efforts.values * signs)
        wrong = JointRecording("sensors", arm.joint_names, turned, right.motors, right.links)
        refused(partial(doubts_of, robot, wrong), f"joint {name!r} have the opposite sign")


@pytest.mark.parametrize(("alike", "most"), [(0.0, 0.01), (0.95, 0.03)], ids=["500 samples", "like 13"])
def test_a_slope_is_plain_where_few_samples_say_so_as_where_many_do(alike: float, most: float) -> None:
    """A joint that comes to rest; a share of 0.0027 is beyond three standard deviations that are known."""
    from scipy.signal import lfilter  # takes a moment

    t = np.linspace(0.0, 1.0, 500)
    link = (1.0 - t) ** 2 * np.cos(3.0 * t)
    speed = np.gradient(link, t)
    beside = np.column_stack([np.gradient(speed, t), speed, np.ones(500)])
    columns = np.column_stack([link, beside])
    noise = lfilter([1.0], [1.0, -alike], np.random.default_rng(0).normal(size=(1000, 700)))[:, 200:]
    slopes = np.linalg.lstsq(columns, noise.T, rcond=None)[0]
    wrong = [
        abs(fit[0]) > doubt(link, beside, residual)
        for fit, residual in zip(slopes.T, noise - slopes.T @ columns.T)
    ]
    assert np.mean(wrong) < most
