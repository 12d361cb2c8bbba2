"""What is drawn of a robot: in numbers, without a browser."""

from pathlib import Path

import numpy as np
import pytest

from hodyn_ros import Robot, share
from hodyn_ros.dynamics.kinematics.skeleton import robot_lines
from hodyn_ros.trajectory import read_motion
from hodyn_ros.view.bars import bars, shares
from hodyn_ros.view.looks import read_looks
from hodyn_ros.view.scene import Scene
from hodyn_ros.view.track import DriveLimit, Instant, Track, drive_limits, track_of_motion
from hodyn_ros.view.visuals import find_mesh

Q = np.array([0.3, -0.5, 0.2, -2.0, 0.4, 1.5, 0.1])


def robot_of(name: str) -> Robot:
    return Robot.load(share.find("config", name))


def motion_of(name: str):  # type: ignore[no-untyped-def]
    return read_motion(share.find("config", name))


@pytest.fixture(scope="module")
def panda() -> Scene:
    return Scene(robot_of("panda.yaml"))


@pytest.fixture(scope="module")
def delta() -> Scene:
    return Scene(robot_of("delta.yaml"))


def test_a_figure_has_the_lines_of_the_skeleton(panda: Scene, delta: Scene) -> None:
    figure = panda.figure(Q)
    np.testing.assert_array_equal(figure.bodies, robot_lines(panda.robot, Q))
    assert figure.loops.shape == (0, 2, 3)
    at = np.array([0.02, -0.03, delta.robot.home[0][2]])
    figure = delta.figure(at)
    lines = np.concatenate([figure.loops, figure.bodies])
    np.testing.assert_allclose(lines, robot_lines(delta.robot, at), atol=1e-12)
    assert len(figure.loops) == 6  # rods, and from the platform to them


def test_frames_are_where_forward_kinematics_has_them(panda: Scene) -> None:
    figure, names = panda.figure(Q), [n for n, f in panda.robot.frames.items() if f.body >= 0]
    kinematics = panda.robot.forward_kinematics(Q[None])
    for name, pose in zip(names, panda.frames(figure), strict=True):
        np.testing.assert_allclose(pose, kinematics.pose_of(name), atol=1e-14)


def test_sectors_open_by_the_magnified_deflection_about_the_joint(panda: Scene) -> None:
    deflections = np.array([1e-3, -2e-3, 0.0, 3e-3, 1e-4, 5e-4, -1e-3])
    figure, times = panda.figure(Q), 200.0
    corners = panda.sectors(figure, deflections, times).reshape(7, -1, 3, 3)
    axes = panda.robot.forward_kinematics(np.array([Q, Q])).screws[0, :, :3]
    for joint in range(7):
        tip, start, end = corners[joint, 0, 0], corners[joint, 0, 1], corners[joint, -1, 2]
        a, b = start - tip, end - tip
        np.testing.assert_allclose([a @ axes[joint], b @ axes[joint]], 0.0, atol=1e-12)
        angle = np.arctan2(np.cross(a, b) @ axes[joint], a @ b)
        assert angle == pytest.approx(times * deflections[joint], rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(corners[:, 0, 0], figure.poses[:, :3, 3], atol=1e-12)


def test_the_magnification_is_round_and_shows_the_largest_deflection(panda: Scene) -> None:
    for largest in (1e-5, 4.2e-3, 0.2):
        times = panda.magnification(largest)
        assert 0.4 < times * largest <= 0.9 + 1e-9
        assert float(f"{times:.0e}") == times
    assert panda.magnification(5.0) == 1.0


def test_a_motion_gives_torques_and_deflections_of_the_feedforward(panda: Scene) -> None:
    robot, motion = panda.robot, motion_of("panda_excitation.yaml")
    track = track_of_motion(robot, motion, 0.5)
    q = motion.sample(track.times, 4).joints
    torques = robot.inverse_dynamics(q)
    motors = robot.require_drives().feedforward(q, torques)
    instant = track.at(0.3)
    assert instant.desired is not None and instant.torques is not None and instant.deflections is not None
    np.testing.assert_allclose(instant.desired, motion.sample(0.3, 0).joints[0], rtol=1e-12)
    np.testing.assert_allclose(track.torques, motors.effort[:, 0], rtol=1e-12)
    np.testing.assert_allclose(
        track.deflections, torques[:, 0] / robot.require_drives().stiffness, rtol=1e-9, atol=1e-15
    )
    assert instant.measured is None and track.duration == 0.5


def test_a_floating_base_moves_and_its_propellers_have_bars() -> None:
    robot = robot_of("aerial_manipulator.yaml")
    track = track_of_motion(robot, motion_of("aerial_manipulator_motion.yaml"), 0.1)
    scene, instant = Scene(robot), track.at(0.06)
    limits = drive_limits(robot)
    assert instant.torques is not None and len(instant.torques) == len(limits)
    assert sum(limit.unit == "N" for limit in limits) == 6 and (instant.torques[-6:] > 0.0).all()
    figure, _ = scene.figures(instant)
    assert figure is not None and instant.pose is not None and instant.desired is not None
    lines = robot_lines(robot, instant.desired, instant.pose)
    np.testing.assert_allclose(figure.bodies, lines, atol=1e-12)


def test_the_desired_motion_is_a_second_figure_where_something_is_measured(panda: Scene) -> None:
    one, other = panda.figures(Instant(desired=Q, measured=0.9 * Q))
    assert one is not None and other is not None
    np.testing.assert_array_equal(one.bodies, panda.figure(0.9 * Q).bodies)
    np.testing.assert_array_equal(other.bodies, panda.figure(Q).bodies)
    alone, none = panda.figures(Instant(desired=Q))
    assert alone is not None and none is None
    assert panda.figures(Instant())[0] is panda.home


def test_what_cannot_be_reached_is_not_drawn(delta: Scene) -> None:
    assert delta.figures(Instant(desired=np.array([9.0, 9.0, 9.0]))) == (None, None)


def test_a_track_holds_the_last_instant() -> None:
    measured = np.array([[np.nan], [2.0], [3.0]])
    track = Track(np.array([5.0, 6.0, 7.0]), np.array([[0.1], [0.2], [0.3]]), measured=measured)
    assert [float(track.at(t).desired[0]) for t in (-1.0, 0.0, 0.99, 1.0, 9.0)] == [0.1, 0.1, 0.1, 0.2, 0.3]  # type: ignore[index]
    assert track.at(0.5).measured is None and track.at(1.5).measured is not None


def test_bars_show_shares_of_limits() -> None:
    limits = [DriveLimit("a<b", "N·m", -80.0, 80.0), DriveLimit("free", "N", -np.inf, np.inf)]
    torques = np.array([-100.0, 3.0])
    np.testing.assert_array_equal(shares(limits, torques), [-1.25, np.nan])
    text = bars(limits, torques)
    assert "a&lt;b" in text and "-100.0 of -80 N·m" in text and "3.0 N<" in text
    assert "left:0.0%;width:50.0%" in text  # no bar is longer than its place
    assert drive_limits(robot_of("panda.yaml"))[0] == DriveLimit("panda_joint1", "N·m", -87.0, 87.0)


URDF = """<robot name="r">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="world"><visual><geometry><box size="1 2 3"/></geometry></visual></link>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.1" length="1"/></geometry>
      <material name="red"/></visual>
    <visual><geometry><mesh filename="package://bot/meshes/no.stl"/></geometry></visual>
  </link>
  <link name="tool"><visual><geometry><mesh filename="{mesh}" scale="2 2 2"/></geometry></visual></link>
  <joint name="j" type="revolute"><parent link="world"/><child link="arm"/><axis xyz="0 0 1"/></joint>
  <joint name="f" type="fixed"><parent link="arm"/><child link="tool"/><origin xyz="0 0 1"/></joint>
</robot>"""


GEOMS = """<mujoco model="arm">
  <asset>
    <material name="red" rgba="1 0 0 1"/>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1" scale="0.1 0.1 0.2"/>
  </asset>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <geom name="stand" type="cylinder" size="0.1 0.2" pos="0 0 0.2"/>
    <body name="upper" pos="0 0 0.4" euler="0 20 0">
      <joint name="turn" axis="0 0 1" pos="0.1 0 0"/>
      <joint name="lift" axis="0 1 0"/>
      <geom name="tube" type="capsule" fromto="0 0 0 0.5 0 0.1" size="0.05" material="red"/>
      <geom name="for contacts" type="box" size="1 1 1" group="3"/>
      <body pos="0.5 0 0" euler="10 0 0">
        <geom name="egg" type="ellipsoid" size="0.1 0.2 0.3"/>
        <body name="hand">
          <joint name="slide" type="slide" axis="1 0 0"/>
          <geom name="tool" type="mesh" mesh="wedge" pos="0 0.1 0"/>
          <geom name="ball" type="sphere" size="0.04"/>
          <geom name="block" type="box" size="0.1 0.2 0.3" euler="0 0 30"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""


def test_looks_of_an_mjcf_are_where_mujoco_has_its_geoms(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco", reason="extra 'mjcf' is not installed")
    from hodyn_ros.view.meshes import triangles  # trimesh takes a moment, in every worker

    path = tmp_path / "arm.xml"
    path.write_text(GEOMS)
    robot, model = Robot.load(path), mujoco.MjModel.from_xml_string(GEOMS)
    data = mujoco.MjData(model)
    data.qpos[:] = q = [0.3, -0.4, 0.1]
    mujoco.mj_forward(model, data)
    looks, names = read_looks(path, robot), ("stand", "tube", "egg", "tool", "ball", "block")
    assert looks.missing == () and len(looks.visuals) == len(names)
    poses = np.concatenate([robot.forward_kinematics(np.array([q])).poses, np.eye(4)[None]])
    for visual, name in zip(looks.visuals, names):
        geom = model.geom(name).id
        pose = poses[visual.body] @ visual.pose
        np.testing.assert_allclose(pose[:3, 3], data.geom_xpos[geom], atol=1e-12)
        np.testing.assert_allclose(pose[:3, :3].ravel(), data.geom_xmat[geom], atol=1e-12)
        mesh = triangles(visual._replace(pose=np.eye(4)))
        box = model.geom_aabb[geom]  # its middle and half sides
        np.testing.assert_allclose(mesh.bounds, [box[:3] - box[3:], box[:3] + box[3:]], atol=2e-3)
    assert looks.visuals[1].colour == (1.0, 0.0, 0.0)
    assert len(Scene(robot, looks.visuals).visuals) == 6


def test_looks_come_from_the_urdf_and_move_with_their_bodies(tmp_path: Path) -> None:
    package = tmp_path / "bot"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    mesh, urdf = package / "meshes" / "tool.stl", package / "urdf" / "bot.urdf"
    mesh.write_bytes(b"")
    urdf.write_text(URDF.format(mesh="package://bot/meshes/tool.stl"))
    (tmp_path / "bot.yaml").write_text("urdf: bot/urdf/bot.urdf\n")
    for path in (urdf, tmp_path / "bot.yaml"):
        looks = read_looks(path, Robot.load(path))
        ground, arm, tool = looks.visuals
        assert (ground.body, arm.body, tool.body) == (-1, 0, 0)
        assert (arm.shape, arm.colour, arm.has_colour) == ("cylinder", (1.0, 0.0, 0.0), True)
        assert arm.pose[2, 3] == 0.5 and tool.pose[2, 3] == 1.0 and tool.path == mesh
        assert len(looks.missing) == 1 and "no.stl" in looks.missing[0]
    assert read_looks(share.find("config", "delta.yaml"), robot_of("delta.yaml")) == ((), ())
    assert find_mesh("../meshes/tool.stl", urdf).resolve() == mesh
