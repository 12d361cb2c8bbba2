"""Lines and arcs of a frame in space: their geometry, the joints that lead along them, and their timing."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import run
from refusals import refused
from scipy.spatial.transform import Rotation

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.planning.check import check
from hodyn_ros.planning.space.frame_path import FramePath, Waypoint
from hodyn_ros.planning.space.frame_path_file import path_text, read_frame_path
from hodyn_ros.planning.space.joint_path import joint_path, start_pose
from hodyn_ros.planning.time_optimal.planner import FrameSpeed, time_optimal
from hodyn_ros.trajectory.files.reader import read_motion

pytestmark = pytest.mark.thorough

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.8])
FRAME = "panda_link8"


@cache
def robot(name: str = "panda.yaml") -> Robot:
    return Robot.load(share.find("config", name))


def start() -> Array:
    return start_pose(robot(), FRAME, HOME)


def path_of(blend: float = 0.03) -> FramePath:
    """Return a line, a line with a turn, an arc and a line back."""
    pose = start()
    p, turned = pose[:3, 3], pose[:3, :3] @ Rotation.from_rotvec([0.3, 0.2, 0.5]).as_matrix()
    return FramePath(
        pose,
        [
            Waypoint(p + [0.0, 0.2, 0.0]),
            Waypoint(p + [0.1, 0.2, -0.1], turned),
            Waypoint(p + [0.1, -0.1, -0.1], through=p + [0.17, 0.05, -0.1]),
            Waypoint(p + [0.0, -0.1, 0.05], pose[:3, :3]),
        ],
        blend,
    )


def test_lines_are_straight_arcs_round_and_turns_the_shortest() -> None:
    path, blend = path_of(), 0.03
    line, turning, arc, _ = path.pieces
    inside = [np.linspace(piece.begin + blend, piece.end - blend, 50) for piece in (line, turning, arc)]
    straight, turned, round_ = (path.at(u, 1) for u in inside)
    p = start()[:3, 3]
    np.testing.assert_allclose(straight[0][:, [0, 2], 3], np.tile(p[[0, 2]], (50, 1)), atol=1e-14)
    np.testing.assert_allclose(straight[0][:, 1, 3] - p[1], inside[0], atol=1e-14)  # u is the way
    # about one axis, evenly
    first = turned[0][0, :3, :3]
    vectors = Rotation.from_matrix(first.T @ turned[0][:, :3, :3]).as_rotvec()
    share = (inside[1] - inside[1][0]) / (turning.end - turning.begin)
    np.testing.assert_allclose(vectors, share[:, None] * np.array([0.3, 0.2, 0.5]), atol=1e-12)
    # the circle through three points
    a, b, c = p + [0.1, 0.2, -0.1], p + [0.17, 0.05, -0.1], p + [0.1, -0.1, -0.1]
    sides = [np.linalg.norm(x) for x in (b - a, c - b, a - c)]
    radius = np.prod(sides) / (2.0 * np.linalg.norm(np.cross(b - a, c - a)))
    middle = p + [0.17 - radius, 0.05, -0.1]
    np.testing.assert_allclose(np.linalg.norm(round_[0][:, :3, 3] - middle, axis=1), radius, rtol=1e-12)
    assert path.length == pytest.approx(
        0.2 + np.hypot(0.1, 0.1) + radius * 2.0 * np.arcsin(0.15 / radius) + np.hypot(0.1, 0.15), rel=1e-9
    )
    # corners are rounded, and nothing is faster than the way says
    everywhere = np.linspace(0.0, path.length, 2001)
    assert path.speeds(everywhere).max() <= 1.0 + 1e-12
    corner = path.at([line.end], 0)[0][0, :3, 3]
    assert 0.05 * blend < np.linalg.norm(corner - (p + [0.0, 0.2, 0.0])) < 0.3 * blend
    np.testing.assert_allclose(path.at([path.length], 0)[0][0, :3, 3], p + [0.0, -0.1, 0.05], atol=1e-14)


def test_derivatives_are_those_of_differences_and_five_of_them_are_continuous() -> None:
    path, step = path_of(), 1e-5
    u = np.linspace(0.01, path.length - 0.01, 40)
    (ahead, rates_ahead), (behind, rates_behind) = path.at(u + step, 5), path.at(u - step, 5)
    further = path.at(u + 2.0 * step, 5)[1] - path.at(u - 2.0 * step, 5)[1]
    twists = path.at(u, 5)[1]
    linear = (ahead[:, :3, 3] - behind[:, :3, 3]) / (2.0 * step)
    change = Rotation.from_matrix(ahead[:, :3, :3] @ np.swapaxes(behind[:, :3, :3], 1, 2)).as_rotvec()
    np.testing.assert_allclose(twists[:, 0, 3:], linear, atol=1e-7)
    np.testing.assert_allclose(twists[:, 0, :3], change / (2.0 * step), atol=1e-6)
    for k in range(4):
        slope = (8.0 * (rates_ahead[:, k] - rates_behind[:, k]) - further[:, k]) / (12.0 * step)
        np.testing.assert_allclose(twists[:, k + 1], slope, atol=1e-6 * np.abs(twists[:, k + 1]).max())
    beside = 1e-9
    inside = path.breakpoints[1:-1]
    left, right = path.at(inside - beside, 5)[1], path.at(inside + beside, 5)[1]
    largest = np.abs(path.at(u, 5)[1]).max(axis=(0, 2))
    assert (np.abs(right - left).max(axis=(0, 2)) <= 1e-5 * largest).all()


def test_the_joints_lead_the_frame_along_and_are_timed_with_the_speed_of_the_tool() -> None:
    path = path_of()
    found = joint_path(robot(), path, FRAME, HOME)
    assert max(found.deviation) < 1e-6 and not found.near
    plan = time_optimal(found.motion, robot(), speed=FrameSpeed(FRAME, 0.5, path.speeds))
    assert not check(robot(), plan.motion).violations
    motion = plan.motion.trajectory.sample(np.linspace(0.0, plan.duration, 3001), 1)
    frame = robot().forward_kinematics(motion, representation="hybrid")
    speeds = np.linalg.norm(frame.twists_of(FRAME)[:, 0, 3:], axis=1)
    assert speeds.max() <= 0.5 * (1.0 + 1e-9)
    assert speeds.max() > 0.499  # and it is used
    assert plan.bindings[-1].column.quantity == "speed" and plan.bindings[-1].gain > 0.1
    # each place is on the path: the nearest of many points
    many = path.at(np.linspace(0.0, path.length, 20001), 0)[0][:, :3, 3]
    for pose in frame.pose_of(FRAME)[::150]:
        assert np.linalg.norm(many - pose[:3, 3], axis=1).min() < 3e-5
    unbound = time_optimal(found.motion, robot())
    assert unbound.duration < 0.9 * plan.duration


@pytest.mark.parametrize(("name", "frame"), [("palletiser.yaml", "tool"), ("delta.yaml", "platform")])
def test_loops_are_led_by_their_coordinates(name: str, frame: str) -> None:
    loops = robot(name)
    q = loops.home[0]
    pose = start_pose(loops, frame, q)
    p = pose[:3, 3]
    path = FramePath(pose, [Waypoint(p + [0.0, 0.06, 0.0]), Waypoint(p + [0.03, 0.06, 0.04])])
    found = joint_path(loops, path, frame, q, task="position")
    assert found.deviation[0] < 1e-6
    places = np.linspace(0.0, path.length, 5)
    for u, wanted in zip(places, path.at(places, 0)[0]):
        q = found.motion.trajectory.sample(u, 0)
        is_at = loops.forward_kinematics(q).pose_of(frame)
        np.testing.assert_allclose(is_at[:3, 3], wanted[:3, 3], atol=1e-6)


def test_a_platform_is_led_by_its_pose() -> None:
    platform = robot("planar_3rrr.yaml")
    name = str(platform.platform)
    pose = start_pose(platform, name, np.zeros(0))
    path = FramePath(
        pose, [Waypoint(pose[:3, 3] + [0.05, 0.0, 0.0]), Waypoint(pose[:3, 3] + [0.05, 0.04, 0.0])]
    )
    found = joint_path(platform, path, name, np.zeros(0))
    assert found.motion.moves_base and max(found.deviation) < 1e-6
    moved = found.motion.sample(np.linspace(0.0, path.length, 7), 0).pose
    np.testing.assert_allclose(moved, path.at(np.linspace(0.0, path.length, 7), 0)[0], atol=1e-6)
    refused(lambda: joint_path(platform, path, "elsewhere", np.zeros(0)), "is moved by its platform")


def file(folder: Path, **changed: object) -> Path:
    names = robot().joint_names
    data = {
        "type": "frame_path",
        "frame": FRAME,
        "start": dict(zip(names, HOME.tolist())),
        "speed": 0.4,
        "points": [
            {"position": [0.0, 0.15, 0.0], "relative": True},
            {"position": [0.0, 0.0, -0.1], "relative": True, "rpy": [3.1, 0.1, 0.2]},
        ],
    }
    path = folder / "path.yaml"
    path.write_text(yaml.safe_dump(data | changed), encoding="utf-8")
    return path


def test_a_file_says_it_all_and_what_is_written_is_the_same_path(tmp_path: Path) -> None:
    found, speed = read_frame_path(file(tmp_path), robot())
    assert speed is not None and speed.limit == 0.4
    written = tmp_path / "joints.yaml"
    written.write_text(path_text(found, "a note"), encoding="utf-8")
    places = np.linspace(0.0, found.motion.trajectory.duration, 30)
    expected = found.motion.trajectory.sample(places, 3)
    again = read_motion(written).trajectory.sample(places, 3)
    np.testing.assert_allclose(again, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    last = robot().forward_kinematics(expected[-1:, :1]).pose_of(FRAME)[0]
    np.testing.assert_allclose(last[:3, 3] - start()[:3, 3], [0.0, 0.15, -0.1], atol=1e-9)
    np.testing.assert_allclose(Rotation.from_matrix(last[:3, :3]).as_euler("xyz"), [3.1, 0.1, 0.2], atol=1e-9)


def test_the_command_line_writes_a_motion_that_keeps_all_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "planned.yaml"
    assert run(monkeypatch, "plan", "panda.yaml", file(tmp_path), "--out", out) == 0
    said = capsys.readouterr().out
    assert "off the path by" in said and "speed of" in said
    assert "checked as it was written: all 49 limits hold" in said
    motion = read_motion(out)
    last = robot().forward_kinematics(motion.sample(motion.trajectory.duration, 0).joints).pose_of(FRAME)
    np.testing.assert_allclose(last[:3, 3] - start()[:3, 3], [0.0, 0.15, -0.1], atol=1e-9)
    assert run(monkeypatch, "plan", "panda.yaml", file(tmp_path, points=LINE), "--out", out) == 2
    assert "the pose is out of reach" in capsys.readouterr().err


def test_stretches_near_singular_poses_are_named_with_their_joint() -> None:
    pose = start()
    path = FramePath(pose, [Waypoint(pose[:3, 3] + np.array([0.28, 0.0, 0.0]))])
    (near,) = joint_path(robot(), path, FRAME, HOME).near
    assert near.end == pytest.approx(0.28) and near.condition > 30.0
    assert near.joint == "panda_joint4" and near.rate > 5.0
    assert "the path is near a singular pose" in str(near) and "'panda_joint4' moves by" in str(near)


LINE: list[dict[str, object]] = [{"position": [0.6, 0.0, 0.0], "relative": True}]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"points": LINE}, "after 0.2 ... of 0.6 m of the path of 'panda_link8' the pose is out of reach"),
        ({"points": [{**LINE[0], "through": [0.1, 0.0, 0.0]}]}, "the arc to waypoint 0 is none"),
        ({"points": [{"relative": True, "position": [0, 0, 0]}]}, "waypoint 0 is where the path is already"),
        ({"start": {"elbow": 1.0}}, "start has to name all joints of the robot ... 'elbow' is none of them"),
        ({"blend": 0.2}, "the way to waypoint 0 is 0.15 m long, and its blends take 0 m and 0.2 m of it"),
        ({"frame": "hand"}, "hand"),
        ({"speed": -1.0}, "speed"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path: Path, changed: dict[str, object], words: str) -> None:
    caught = refused(lambda: read_frame_path(file(tmp_path, **changed), robot()), words)
    assert "path.yaml" in str(caught)
