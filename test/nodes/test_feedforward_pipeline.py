"""The pipeline from its own settings: the same robot, the same numbers."""

import gc
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from refusals import assert_refused, refused
from sweeps import some

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion
from hinged_arm import HINGED_ARM

from hodyn_ros import share
from hodyn_ros.codegen.llvm import MachineCode
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.model import wrench_frames
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.motion import AppliedWrench
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.ros.conversions.messages import write_desired_motion
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

STACK = np.random.default_rng(4).normal(size=(5, 1))


def pipeline_of(path: Path, chosen: FeedforwardConfig) -> FeedforwardPipeline:
    return FeedforwardPipeline(RobotFiles.from_file(path), Robot.load(path), chosen)


def same(one: FeedforwardTorque, other: FeedforwardTorque) -> bool:
    one.computation_time = other.computation_time
    return bool(one == other)


@pytest.mark.parametrize("reference", ["arm.urdf", "../robots/arm.urdf", "{tmp}/robots/arm.urdf"])
def test_a_yaml_file_takes_its_urdf_along(reference: str, tmp_path: Path) -> None:
    reference = reference.format(tmp=tmp_path)
    path = tmp_path / "config" / "arm.yaml"
    path.parent.mkdir()
    urdf = path.parent / reference
    urdf.parent.mkdir(exist_ok=True)
    urdf.write_text(HINGED_ARM)
    drive = "joints:\n  - name: hinge\n    drive: {motor_inertia: 0.1, stiffness: 100.0}\n"
    path.write_text(f"name: driven\nurdf: {reference}\n{drive}")
    original = pipeline_of(path, FeedforwardConfig(payload_mass=0.5, payload_body="tool", clamp=True))
    text = original.settings()
    urdf.unlink()
    path.unlink()
    copy = FeedforwardPipeline.from_settings(text)
    assert copy.model.name == "driven"
    question = write_desired_motion(["hinge"], Time(sec=1), STACK)
    answer = original.answer(question)
    assert len(answer.motor_efforts) == 1
    assert same(copy.answer(question), answer)
    assert json.loads(copy.settings())["after_stamp"] == 1_000_000_000
    assert json.loads(text)["after_stamp"] is None


def test_a_description_answers_without_motors() -> None:
    text = RobotFiles("robot_description", HINGED_ARM, kind="urdf")
    original = FeedforwardPipeline(text, text.robot(), FeedforwardConfig(order=1))
    question = write_desired_motion(["hinge"], Time(sec=1), STACK)
    answer = original.answer(question)
    assert not answer.motor_positions
    assert same(FeedforwardPipeline.from_settings(original.settings()).answer(question), answer)


def platform_motion(robot: Robot, second: int, *offset: float) -> DesiredMotion:
    """Return a motion along y, so far [m] from home."""
    _, home = robot.home
    assert home is not None
    x, y, z = home[:3, 3] + offset
    msg = DesiredMotion(base_pose=[Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=1.0))])
    msg.header.stamp = Time(sec=second)
    msg.base_twists = [0.0, 0.0, 0.0, 0.0, 0.1, 0.0, *[0.0] * 18]
    return msg


@pytest.mark.thorough
def test_a_stray_pose_of_a_platform_costs_no_pose_after_it() -> None:
    """Its limbs do not get back from there in short steps, though they got there."""
    path = share.find("config", "gough_stewart_6ups.yaml")
    led, begun = (pipeline_of(path, FeedforwardConfig()) for _ in range(2))
    rolled = platform_motion(led.robot, 1, 0.0, 0.0, 0.0)
    rolled.base_pose[0].orientation = Quaternion(x=np.sin(-0.15), w=np.cos(0.15))
    wanted = begun.answer(rolled).efforts
    led.answer(platform_motion(led.robot, 1, 0.0, 0.0, -0.34))
    rolled.header.stamp.sec = 2
    np.testing.assert_allclose(led.answer(rolled).efforts, wanted, rtol=1e-9)
    before = led.model.positions
    with pytest.raises(MessageRejected) as unreachable:
        led.answer(platform_motion(led.robot, 3, 0.0, 0.0, 1e4))
    assert unreachable.value.reason is Reason.UNREACHABLE
    assert led.model.positions == before


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["planar_3rrr.yaml", "delta.yaml"])
def test_poses_out_of_reach_are_not_searched_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes milliseconds to tenths of a second, in which sound samples would come late."""
    pipeline = pipeline_of(share.find("config", name), FeedforwardConfig())
    joints = list(pipeline.model.motion_joints)

    def answer(second: int, x: float) -> FeedforwardTorque:
        if not joints:
            motion = platform_motion(pipeline.robot, second, 0.0)
            motion.base_pose[0].position.x += x
            motion.base_twists = [0.0, 0.0, 0.0, 0.1, *[0.0] * 20]
            return pipeline.answer(motion)
        return pipeline.answer(
            write_desired_motion(joints, Time(sec=second), np.diag([x, 0, 0, 0, 0])[:, :3])
        )

    tried = []
    begin = LoopMotion.__init__
    monkeypatch.setattr(LoopMotion, "__init__", lambda *given: tried.append(begin(*given)))
    answer(1, 0.0)
    for x in (0.32, 0.6, -1.0, 30.0):
        tried.clear()
        with pytest.raises(MessageRejected, match="does not get") as rejected:
            answer(2, x)
        assert rejected.value.reason is Reason.UNREACHABLE
        assert not tried, x
    wanted = answer(2, 0.02).efforts
    pipeline.robot.reset()
    np.testing.assert_allclose(answer(3, 0.02).efforts, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
def test_a_parallel_robot_goes_on_from_where_it_is() -> None:
    path = share.find("config", "planar_3rrr.yaml")
    original = pipeline_of(path, FeedforwardConfig())
    robot = original.robot
    original.answer(platform_motion(robot, 1, 0.02, 0.0, 0.0))
    changed = original.changed(FeedforwardConfig(gravity=(0.0, 0.0, -5.0)))
    original.answer(platform_motion(robot, 2, 0.03, 0.0, 0.0))  # while the change was made
    changed.take_over(original)
    reached = json.loads(original.settings())["positions"]
    text = changed.settings()
    assert json.loads(text)["positions"] == reached
    assert np.abs(reached).max() > 0.0
    copy = FeedforwardPipeline.from_settings(text)
    question = platform_motion(robot, 3, 0.04, 0.0, 0.0)
    assert same(copy.answer(question), changed.answer(question))
    limited = changed.changed(FeedforwardConfig(gravity=(0.0, 0.0, -5.0), clamp=True))
    limited.take_over(changed)
    assert json.loads(limited.settings())["positions"] == json.loads(changed.settings())["positions"]


def test_a_refused_sample_changes_nothing() -> None:
    text = RobotFiles("robot_description", HINGED_ARM, kind="urdf")
    pipeline = FeedforwardPipeline(text, text.robot(), FeedforwardConfig(order=0))
    pipeline.answer(write_desired_motion(["hinge"], Time(sec=1), STACK))
    settings = pipeline.settings()
    for question in (
        write_desired_motion(["other"], Time(sec=2), STACK),
        write_desired_motion(["hinge"], Time(sec=1), STACK),
        write_desired_motion(["hinge"], Time(sec=2), np.nan * STACK),
    ):
        with pytest.raises(InputError):
            pipeline.answer(question)
    assert pipeline.settings() == settings


def test_other_texts_are_refused() -> None:
    assert_refused(
        ("", "not the settings of a dynamics_node"),
        ("[]", "not the settings of a dynamics_node"),
        ('{"version": 2}', "not the settings of a dynamics_node: KeyError"),
        ('{"version": 2, "robot": {"name": "a"}, "feedforward": {}}',
         "not the settings of a dynamics_node: TypeError"),
        ('{"version": 3}', "the settings have version 3; this hodyn_ros reads 2"),
        ("[" * 100_000, "not the settings of a dynamics_node: RecursionError"),
        ('{"version": 2, "robot": {"name": "a", "text": 3, "kind": "urdf"}, "feedforward": {}, '
            '"new_clock_after": 5.0, "positions": null}',
         "not the settings of a dynamics_node: AttributeError"),
        by=FeedforwardPipeline.from_settings,
    )  # fmt: skip


def test_a_path_is_no_robot_description(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(HINGED_ARM)
    with pytest.raises(ModelError, match="the text of a URDF starts with '<'"):
        RobotFiles("robot_description", str(path), kind="urdf").robot()
    refused(lambda: RobotFiles.from_file(tmp_path / "none.yaml"), "cannot read", ModelError)


@pytest.mark.parametrize("name", ["/tmp/arm.yaml", "../arm.yaml", "..", ".", "a/b", "a\0", 3])
def test_the_text_of_a_robot_is_written_to_no_other_folder(name: str) -> None:
    refused(lambda: RobotFiles(name, "name: arm"), "is no name of a file with a robot; leave", ModelError)
    call = partial(RobotFiles, "arm.yaml", "name: arm", {name: HINGED_ARM})
    refused(call, "is no name of a file with a robot", ModelError)


def test_a_wrench_in_a_sensors_frame_is_seen_from_the_body() -> None:
    robot = Robot.from_urdf(HINGED_ARM)
    frames = wrench_frames(robot, "link", "body")
    assert list(frames) == ["link", "tool"]
    wrench = np.random.default_rng(8).normal(size=6)
    place = robot.frames["tool"].pose
    moment, force = place[:3, :3] @ wrench[:3], place[:3, :3] @ wrench[3:]
    expected = np.concatenate([moment + np.cross(place[:3, 3], force), force])
    np.testing.assert_allclose(frames["tool"] @ wrench, expected, rtol=0.0, atol=1e-14)
    assert list(wrench_frames(robot, "link", "world")) == ["world"]
    # a hinge at the world's origin feels the moment about its axis
    still = np.zeros((3, 1))
    pushed = robot.inverse_dynamics(
        still, wrenches=[AppliedWrench("link", frames["tool"] @ wrench, representation="body_fixed")]
    )
    np.testing.assert_allclose(pushed - robot.inverse_dynamics(still), [[-expected[1]]], rtol=0.0, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("name", some(["panda.yaml", "aerial_manipulator.yaml"], "panda.yaml"))
def test_a_payload_that_was_leaves_no_code_behind(name: str) -> None:
    """Machine code is large, and too few objects for the garbage collector to look for cycles among them."""

    def compiled() -> int:
        return sum(isinstance(each, MachineCode) for each in gc.get_objects())

    path = share.find("config", name)
    pipeline = pipeline_of(path, FeedforwardConfig())
    counts = []
    gc.collect()
    gc.disable()
    try:
        for mass in (0.1, 0.2, 0.3, 0.4):
            following = pipeline.changed(replace(pipeline.config, payload_mass=mass))
            following.take_over(pipeline)
            pipeline = following
            del following
            counts.append(compiled())
    finally:
        gc.enable()
    assert counts[1:] == counts[1:2] * 3
