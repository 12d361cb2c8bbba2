"""Motions of platforms and floating bases: poses and twists of any order, and their files."""

import importlib
from pathlib import Path

import mpmath
import numpy as np
import pytest
from places import EXAMPLES
from refusals import assert_refused, refused
from scipy.spatial.transform import Rotation

from hodyn_ros import BaseMotion, InputError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.lie.motion import BaseRepresentation, twists_to_world
from hodyn_ros.trajectory import Cosines, FourierSeries, ScaledTime, WaypointSpline, read_trajectory
from hodyn_ros.trajectory.combined import SideBySide
from hodyn_ros.trajectory.files.reader import read_motion
from hodyn_ros.trajectory.pose_coordinates import COORDINATES, poses
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.sampling import Sampler

AMPLITUDES = np.array([0.3, -0.2, 0.5, 0.9, 1.2, -2.0])
FREQUENCIES = np.array([1.0, 2.0, 0.7, 1.3, 0.6, 1.9])
SWINGING = Cosines(AMPLITUDES, FREQUENCIES)


def exact_twists(instant: float, order: int) -> Array:
    """Body-fixed twists (order, 6) of SWINGING, from the Taylor series of C^-1 C' in fifty digits."""
    with mpmath.workdps(50):
        at = mpmath.mpf(instant)

        def coordinates(t: mpmath.mpf) -> list[mpmath.mpf]:
            return [mpmath.mpf(a) * mpmath.cos(mpmath.mpf(w) * t) for a, w in zip(AMPLITUDES, FREQUENCIES)]

        def turn(axis: int, angle: mpmath.mpf) -> mpmath.matrix:
            result = mpmath.eye(3)
            i, j = (axis + 1) % 3, (axis + 2) % 3
            result[i, i] = result[j, j] = mpmath.cos(angle)
            result[j, i], result[i, j] = mpmath.sin(angle), -mpmath.sin(angle)
            return result

        def pose(t: mpmath.mpf) -> mpmath.matrix:
            x = coordinates(t)
            result = mpmath.eye(4)
            result[:3, :3] = turn(2, x[5]) * turn(1, x[4]) * turn(0, x[3])
            for i in range(3):
                result[i, 3] = x[i]
            return result

        entries = [
            [mpmath.taylor(lambda t, i=i, j=j: pose(t)[i, j], at, order) for j in range(4)] for i in range(4)
        ]
        jets = [
            mpmath.matrix([[entries[i][j][k] for j in range(4)] for i in range(4)]) for k in range(order + 1)
        ]
        inverses = [jets[0] ** -1]
        for k in range(1, order + 1):
            total = mpmath.zeros(4)
            for l in range(1, k + 1):
                total += jets[l] * inverses[k - l]
            inverses.append(-inverses[0] * total)
        twists = []
        for k in range(order):
            product = mpmath.zeros(4)
            for l in range(k + 1):
                product += (l + 1) * inverses[k - l] * jets[l + 1]
            product *= mpmath.factorial(k)
            twists.append([product[2, 1], product[0, 2], product[1, 0], *product[:3, 3]])
        return np.array([[float(value) for value in twist] for twist in twists])


@pytest.mark.parametrize("instant", [0.0, 0.4, 2.7])
def test_twists_are_those_of_the_pose_at_every_order(instant: float) -> None:
    found = RobotMotion.of_base(SWINGING, origin=poses(np.ones(6))).sample(instant, 8)
    expected = exact_twists(instant, 8)
    for k in range(8):
        scale = max(1.0, np.abs(expected[k]).max())
        np.testing.assert_allclose(found.twists[k], expected[k], rtol=1e-12, atol=1e-13 * scale)


def test_where_pitch_is_a_right_angle_nothing_happens() -> None:
    """Roll and yaw then turn about one axis; the twists are as right as elsewhere."""
    coordinates = WaypointSpline(
        [0.0, 1.0, 2.0], [[0.1, np.pi / 2 - 0.3, 0.2], [0.4, np.pi / 2, -0.1], [0.3, np.pi / 2 + 0.2, 0.5]]
    )
    motion = RobotMotion.of_base(coordinates, ["roll", "pitch", "yaw"])
    near = motion.sample(np.array([1.0 - 1e-5, 1.0, 1.0 + 1e-5]), 5)
    assert near.pose[1, 2, 0] == pytest.approx(-1.0, abs=1e-12)
    slope = (near.twists[2] - near.twists[0]) / 2e-5
    np.testing.assert_allclose(slope[:4], near.twists[1, 1:], rtol=1e-5, atol=1e-5)


def test_poses_are_those_of_urdf() -> None:
    values = np.array([[0.1, 0.2, 0.3, 0.4, -0.5, 2.6], [1.0, 0.0, -1.0, -3.0, 1.5, -0.2]])
    found = poses(values)
    np.testing.assert_allclose(found[:, :3, 3], values[:, :3])
    np.testing.assert_allclose(
        found[:, :3, :3], Rotation.from_euler("xyz", values[:, 3:]).as_matrix(), atol=1e-15
    )


def test_what_is_not_moved_stays_where_it_is_at_the_origin() -> None:
    origin = poses(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
    motion = RobotMotion.of_base(Cosines([2.0, 0.5], [1.0, 1.0]), ["yaw", "x"], origin)
    sample = motion.sample(0.0, 1)
    np.testing.assert_allclose(
        sample.pose, origin @ poses(np.array([0.5, 0.0, 0.0, 0.0, 0.0, 2.0])), atol=1e-15
    )
    assert sample.joints.shape == (2, 0)
    assert not sample.twists.any()
    only_pose = motion.sample(1.0, 0)
    assert only_pose.twists is not None and only_pose.twists.shape == (0, 6)


def test_base_and_joints_move_together_from_rest_to_rest() -> None:
    joints = WaypointSpline([0.0, 3.0], [[0.0], [1.0]], joint_names=("elbow",))
    motion = RobotMotion.of_base(Cosines([1.0], [2.0], duration=5.0), ["z"], joints=joints)
    assert (motion.joint_names, motion.n_joints, motion.trajectory.duration) == (("elbow",), 1, 5.0)
    eased = motion.rest_to_rest(1.0, order=4)
    start, end = (eased.sample(t, 4) for t in (0.0, eased.trajectory.duration))
    for sample in (start, end):
        assert sample.twists is not None
        np.testing.assert_allclose(sample.twists, 0.0, atol=1e-9)
    assert end.joints[0, 0] == pytest.approx(1.0, abs=1e-12)
    # at full speed half a ramp behind, base and joints alike
    late, there = eased.sample(2.5, 4), motion.sample(2.0, 4)
    np.testing.assert_allclose(late.joints, there.joints, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(late.twists, there.twists, rtol=1e-10, atol=1e-10)  # type: ignore[arg-type]
    sampler = Sampler(motion, 100.0, 4)
    np.testing.assert_allclose(sampler[200].twists, there.twists, rtol=1e-12)  # type: ignore[arg-type]
    held = sampler[200].at_rest()
    assert held.twists is not None and not held.twists.any() and not held.joints[1:].any()
    np.testing.assert_array_equal(held.joints[0], sampler[200].joints[0])
    np.testing.assert_array_equal(held.pose, sampler[200].pose)  # type: ignore[arg-type]


def test_motions_side_by_side() -> None:
    short = WaypointSpline([0.0, 1.0], [[0.0], [1.0]], order=5, joint_names=("a",))
    both = SideBySide((short, FourierSeries(1.0, [[1.0]], [[0.0]], [0.0], duration=4.0, joint_names=("b",))))
    assert (both.n_joints, both.joint_names, both.duration, both.smoothness) == (2, ("a", "b"), 4.0, 5)
    assert not both.starts_at_rest and not both.ends_at_rest
    np.testing.assert_allclose(both.sample(3.0, 2)[:, 0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(both.sample(3.0, 1)[:, 1], [np.sin(3.0), np.cos(3.0)])
    slow = ScaledTime(both, 0.5)
    np.testing.assert_allclose(slow.sample(1.0, 2), both.sample(0.5, 2) * 0.5 ** np.arange(3)[:, None])
    refused(lambda: both.require_smoothness(6), "build it with order=6")
    assert SideBySide((short, Cosines([1.0], [1.0]))).joint_names is None
    assert_refused(
        (lambda: SideBySide((short, short)), "joint 'a' is moved twice"),
        (lambda: SideBySide((Cosines([1.0], [1.0], duration=1.0), both)),
         "ends at 1 s, not at rest, and another at 4 s"),
        (lambda: SideBySide(()), "at least one motion"),
    )  # fmt: skip


def test_coordinates_that_make_no_sense_are_refused() -> None:
    assert_refused(
        (["x", "height"], "coordinate 'height' of the base is unknown; there are x, y, z, roll, pitch, yaw"),
        (["x", "x"], "coordinate 'x' of the base is given twice"),
        (["x"], "the base has 1 coordinates, but its motion 2 columns"),
        by=lambda coordinates: RobotMotion.of_base(Cosines([1.0, 2.0], [1.0, 1.0]), coordinates),
    )


POSE = """\
type: pose
source: nowhere
origin: {xyz: [0, 0, 1], rpy: [0, 0, 0.5]}
base:
  type: cosines
  coordinates: [z, roll]
  amplitudes: [0.1, 0.2]
  angular_frequencies: [1, 2]
joints:
  type: fourier
  joint_names: [a]
  angular_frequency: 2
  sine: [[1]]
  cosine: [[0]]
  offsets: [0.3]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "motion.yaml"
    path.write_text(text)
    return path


def test_files(tmp_path: Path) -> None:
    motion = read_motion(written(tmp_path, POSE))
    assert (motion.coordinates, motion.joint_names, motion.n_joints) == (("z", "roll"), ("a",), 1)
    sample = motion.sample(0.7, 3)
    base = Cosines([0.1, 0.2], [1.0, 2.0])
    same = RobotMotion.of_base(base, ["z", "roll"], poses(np.array([0, 0, 1, 0, 0, 0.5]))).sample(0.7, 3)
    np.testing.assert_array_equal(sample.pose, same.pose)  # type: ignore[arg-type]
    np.testing.assert_array_equal(sample.twists, same.twists)  # type: ignore[arg-type]
    alone = read_motion(written(tmp_path, POSE[: POSE.index("joints")]))
    assert (alone.joint_names, alone.n_joints) == ((), 0)
    refused(lambda: read_trajectory(tmp_path / "motion.yaml"), "floating base, and joints alone")
    whole = written(tmp_path, "type: pose\nbase: {type: cosines, amplitudes: [1, 2, 3, 4, 5, 6],\n"
                    "  angular_frequencies: [1, 1, 1, 1, 1, 1]}\n")  # fmt: skip
    assert read_motion(whole).coordinates == COORDINATES
    joints = read_motion(share.find("config", "panda_excitation.yaml"))
    assert not joints.moves_base and joints.sample(0.0, 2).pose is None


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("type: pose\n", ":1", "the key 'base' is missing"),
        ("type: posse\n", ":1", "type: must be ... did you mean 'pose'?"),
        ("type: pose\nbase: 3\n", ":2", "base: must be a mapping (a motion ... , found 3"),
        ("type: pose\nbase: {}\n", ":2", "base: the key 'type' is missing"),
        (POSE.replace("cosines", "cosinus"), ":5", "base.type: ... did you mean 'cosines'?"),
        (POSE.replace("fourier", "pose"), ":10", "joints.type: must be fourier or cosines or waypoints"),
        (POSE.replace("roll]", "rol]"), ":6", "did you mean 'roll'?"),
        (POSE.replace("[z, roll]", "[z]"), "", "the base has 1 coordinates, but its motion 2 columns"),
        (POSE.replace("[z, roll]", "[z, z]"), "", "coordinate 'z' of the base is given twice"),
        (POSE.replace("coordinates", "joint_names"), ":6", "base.joint_names: a base has no joints"),
        (POSE.replace("[0, 0, 1]", "[0, 0]"), ":3", "origin.xyz:"),
        (POSE.replace("xyz", "xzy"), ":3", "origin.xzy: unknown key; did you mean 'xyz'?"),
        (
            POSE.replace("[1, 2]", "[1]"),
            "",
            "base: angular_frequencies must have shape (2,), found (1,)",
        ),
        (POSE.replace("[0.3]", "[.nan]"), ":15", "joints.offsets[0]: nan is not a finite number"),
        (POSE.replace("[1, 2]\n", "[1, 2]\n  duration: 3\n"), "", "one motion ends at 3 s, not at rest"),
    ],
)
def test_a_bad_file_is_answered_in_one_line(tmp_path: Path, text: str, place: str, reason: str) -> None:
    path = written(tmp_path, text)
    rejected = refused(lambda: read_motion(path), reason)
    assert str(rejected).startswith(f"{path}{place}: ")


def test_the_shipped_flight_is_that_of_table_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the example, which writes the paper's formulas out in another way."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = importlib.import_module("aerial_manipulator")
    motion = read_motion(share.find("config", "aerial_manipulator_motion.yaml"))
    robot = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    assert motion.joint_names == robot.joint_names
    times = np.linspace(0.0, 30.0, 31)
    flight = example.table_3_flight(times, 5)
    found = motion.sample(times, 7)
    np.testing.assert_allclose(found.joints, flight.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.pose, flight.poses, rtol=0, atol=1e-14)  # type: ignore[arg-type]
    spatial = twists_to_world(found.pose, np.moveaxis(found.twists, 1, 0))  # type: ignore[arg-type]
    np.testing.assert_allclose(np.moveaxis(spatial, 0, 1), flight.twists, rtol=0, atol=1e-14)


@pytest.mark.parametrize("representation", ["spatial", "body_fixed"])
@pytest.mark.parametrize("name", ["aerial_manipulator", "planar_3rrr"])
def test_positions_alone_are_a_motion(name: str, representation: BaseRepresentation) -> None:
    """What is of order 0 needs no twist, and what needs one says so."""
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    motion = read_motion(share.find("config", f"{name}_motion.yaml"))
    sample = motion.of_columns(motion.trajectory.sample(0.7, 0), representation)
    more = motion.of_columns(motion.trajectory.sample(0.7, 1), representation)
    for call in (robot.com, robot.mass_matrix, robot.gravity_torque, robot.com_jacobian):
        np.testing.assert_allclose(
            call(sample.joints, sample.base)[0], call(more.joints, more.base)[0], rtol=1e-12, atol=1e-13
        )
    with pytest.raises(InputError):
        robot.coriolis_matrix(sample.joints, sample.base)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["gough_stewart", "planar_3rrr"])
def test_the_shipped_motions_are_within_reach(name: str) -> None:
    config = {"gough_stewart": "gough_stewart_6ups.yaml", "planar_3rrr": "planar_3rrr.yaml"}[name]
    robot = Robot.load(share.find("config", config))
    motion = read_motion(share.find("config", f"{name}_motion.yaml")).rest_to_rest(2.0, order=6)
    assert motion.trajectory.smoothness >= 6
    duration = min(motion.trajectory.duration, 4.0)
    samples = motion.sample(np.linspace(0.0, duration, 81), 4)
    if name == "gough_stewart":
        np.testing.assert_allclose(motion.origin, robot.home[1], atol=1e-15)
        assert np.abs(samples.twists[:, 0, 0]).max() == pytest.approx(np.pi, rel=1e-2)
    forces = np.array(
        [
            robot.drive_state(None, BaseMotion(p, v, representation="body_fixed")).efforts
            for p, v in zip(samples.pose, samples.twists)
        ]
    )
    assert np.isfinite(forces).all() and np.abs(forces[:, 0]).max() > 1.0
