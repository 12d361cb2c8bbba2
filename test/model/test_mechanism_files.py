"""The shipped robots with couplings and loops: their files, motions and launch files."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
import pytest
import yaml
from command_line import run
from linkages import shipped
from oracles import mp_loops
from oracles.cases import relative_errors
from oracles.mechanisms import Closed, Mechanism
from oracles.motions import Base
from oracles.random_trees import Tree
from sweeps import THOROUGH, some

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.kinematics.skeleton import robot_lines
from hodyn_ros.launching import Node, read_launch
from hodyn_ros.model.frames import Frame
from hodyn_ros.trajectory import read_motion

# joints that follow others: all of them turn or shift as those do
FOLLOWERS = {
    "delta": [(f"elbow{i}b_r{k}", f"elbow{i}a_r{k}") for i in (1, 2, 3) for k in (1, 2)],
    "humanoid_leg": [],
    "palletiser": [],
    "panda_hand": [("panda_finger_joint2", "panda_finger_joint1")],
}
NAMES = list(FOLLOWERS)
TIMES = (0.1, 0.37, 0.8, 1.3, 1.9)


def file(name: str) -> Path:
    return share.find("config", name)


def robot_of(name: str) -> Robot:
    return shipped(f"{name}.yaml")


def motion_at(name: str, time: float, order: int) -> tuple[Array, BaseMotion | None]:
    """Return coordinates (order + 3, k) and motion of the base of the shipped motion."""
    motion = read_motion(file(f"{name}_motion.yaml")).for_joints(robot_of(name).joint_names)
    sample = motion.sample(time, order + 2)
    if sample.pose is None or sample.twists is None:
        return sample.joints, None
    return sample.joints, BaseMotion(
        sample.pose, sample.twists, representation="body_fixed"
    ).in_representation("spatial")


def whole(found: Any) -> Array:
    """Return the wrench on the base, where there is one, and the efforts as one array."""
    return np.concatenate(found, axis=1) if isinstance(found, tuple) else found


def mechanism_of(name: str) -> Mechanism:
    """Describe a robot to the references, by its tree and by where its loops join at zero."""
    robot = robot_of(name)
    tree, closure = robot.tree, robot.closure
    assert closure is not None

    def place(frame: Frame) -> tuple[Array, Array]:
        pose = np.eye(4) if frame.body < 0 else tree.placements[frame.body]
        return pose[:3, :3] @ frame.point + pose[:3, 3], pose[:3, :3] @ frame.axes[:, 2]

    loops = []
    for loop in closure.loops:
        (point, axis), (point_b, axis_b) = place(loop.a), place(loop.b)
        loops.append(Closed(loop.kind, loop.a.body, loop.b.body, point, axis, point_b, axis_b))
    index = tree.joint_names.index
    couplings = tuple((index(a), index(b), 1.0, 0.0) for a, b in FOLLOWERS[name])
    arrays = Tree(*(getattr(tree, key) for key in Tree.__dataclass_fields__))
    return Mechanism(arrays, tuple(loops), closure.joints, closure.driven, couplings)


@pytest.mark.parametrize("name", NAMES)
class TestEfforts:
    def test_efforts_are_exact(self, name: str) -> None:
        order = 4 if THOROUGH else 1
        y, base = motion_at(name, 0.37, order)
        given = None if base is None else Base(base.pose, base.twists, "spatial")
        exact = mp_loops.efforts(mechanism_of(name), y, order, given)
        found = whole(robot_of(name).inverse_dynamics(y, base))
        assert found.shape == exact.shape
        assert relative_errors(found, exact).max() < 1e-12


@pytest.mark.parametrize("name", NAMES)
class TestFiles:
    def test_the_motion_holds_all_limits(
        self, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(monkeypatch, "check", f"{name}.yaml", f"{name}_motion.yaml") == 0
        assert "limits hold; the tightest" in capsys.readouterr().out

    def test_coordinates_stay_within_their_limits(self, name: str) -> None:
        robot = robot_of(name)
        limits = robot.coordinate_limits
        motion = read_motion(file(f"{name}_motion.yaml")).for_joints(robot.joint_names)
        times = np.linspace(0.0, motion.trajectory.duration, 201)
        y = motion.sample(times, 0).joints[:, 0]
        assert (limits.position_lower <= y).all() and (y <= limits.position_upper).all()

    def test_the_launch_file_starts_dynamics_and_motion(self, name: str) -> None:
        started = [each for each in read_launch(f"{name}.launch.py").start({}) if isinstance(each, Node)]
        assert [each.executable for each in started] == ["dynamics_node", "trajectory_node"]
        for each in started:
            values = {k: v for one in each.parameters if not isinstance(one, Path) for k, v in one.items()}
            assert values["robot_config"] == f"{name}.yaml"
        assert values["trajectory"] == f"{name}_motion.yaml"


@pytest.mark.parametrize("name", some(["delta", "humanoid_leg"], "humanoid_leg"))  # which moves its base
def test_real_nodes_answer_the_motion(name: str) -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
    from ros_processes import start_launch_file
    from ros_talk import Talk

    from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
    from hodyn_ros.ros.conversions.fields import JointOrder
    from hodyn_ros.ros.conversions.messages import read_base_motion, read_desired_motion

    robot = robot_of(name)
    arguments = ("namespace:=cell", "rate:=100", "duration:=1.0")
    with start_launch_file(f"{name}.launch.py", *arguments) as process, Talk("cell") as talk:
        desired = talk.hear(DesiredMotion, "desired_motion")
        answers = talk.hear(FeedforwardTorque, "feedforward_torque")
        talk.wait_for_line(process, "the motion has ended")
        values = talk.status("dynamics_node", lambda status, _: True)
        assert values["rejected"] == "0"
        assert process.stop(signal.SIGINT) == 0, process.output()
    moved = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in desired}
    pairs = [(moved.get((a.header.stamp.sec, a.header.stamp.nanosec)), a) for a in answers]
    pairs = [pair for pair in pairs if pair[0] is not None]
    assert len(pairs) > 5  # of 100: a busy machine skips instants, and each answer is held below
    for motion, answer in pairs[::5]:
        assert tuple(answer.joint_names) == robot.driven_joints
        y = read_desired_motion(motion, JointOrder(robot.joint_names), 5)
        base = read_base_motion(motion, 4).in_representation("spatial") if robot.moves_base else None
        found = np.array([answer.efforts, answer.effort_rates, answer.effort_accelerations])
        one = robot.solve_loops(y, base)
        scale = np.abs(one.efforts).max() + np.abs(answer.base_wrenches or [0.0]).max()
        np.testing.assert_allclose(found, one.efforts, rtol=1e-9, atol=1e-11 * scale)


class TestDelta:
    def test_parallelograms_are_rods_that_are_joined_one_by_one(self, tmp_path: Path) -> None:
        """A platform that could turn, on six rods with a universal joint and a ball each."""
        text = yaml.safe_load(file("delta.yaml").read_text())
        bodies = [body for body in text["bodies"] if not body["name"].startswith("slide")]
        slides = ("x", "y", "z")
        origin = text["joints"][0]["origin"]
        floating = {
            "name": "to",
            "type": "floating",
            "parent": "world",
            "child": "platform",
            "origin": origin,
        }
        text["bodies"] = bodies
        text["joints"] = [floating, *(j for j in text["joints"] if j["name"] not in slides)]
        text["loops"] += [{"kind": "ball", "a": f"end{i}b", "b": f"wrist{i}b"} for i in (1, 2, 3)]
        text["coordinates"] = [f"to_{slide}" for slide in slides]
        del text["couplings"]
        path = tmp_path / "rods.yaml"
        path.write_text(yaml.safe_dump(text))
        rods = Robot.load(path)
        assert rods.tree.n_joints == 6 + 3 + 12
        for time in TIMES if THOROUGH else TIMES[:2]:
            y, _ = motion_at("delta", time, 4 if THOROUGH else 0)
            one = rods.solve_loops(y)
            turns = one.joints[:, [rods.tree.joint_index(f"to_{row}") for row in ("rx", "ry", "rz")]]
            np.testing.assert_allclose(turns / np.abs(y).max(axis=1, keepdims=True), 0.0, atol=1e-11)
            assert relative_errors(robot_of("delta").inverse_dynamics(y), one.efforts).max() < 1e-11


class TestPalletiser:
    def test_the_hand_stays_level_and_the_forearm_parallel_to_the_crank(self) -> None:
        robot = robot_of("palletiser")
        for time in TIMES:
            y, _ = motion_at("palletiser", time, 0)
            moved = robot.forward_kinematics(y[:1])
            up = moved.pose_of("hand")[:3, 2]
            np.testing.assert_allclose(up, [0.0, 0.0, 1.0], atol=1e-13)
            forearm, crank = (moved.pose_of(name)[:3, :3] for name in ("forearm", "crank"))
            np.testing.assert_allclose(forearm, crank, atol=1e-13)


class TestLeg:
    def test_both_slides_pull_the_heel_up_and_their_difference_rolls(self) -> None:
        robot = robot_of("humanoid_leg")
        base = BaseMotion(np.eye(4), np.zeros((2, 6)))
        y = np.zeros((3, 6))
        y[1] = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
        left, right = robot.solve_loops(y, base).drives[1, 4:]
        assert left == pytest.approx(right, rel=1e-12) and left > 0.0
        y[1] = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        left, right = robot.solve_loops(y, base).drives[1, 4:]
        assert left == pytest.approx(-right, rel=1e-12) and left > 0.0

    def test_the_foot_stays_level_in_pitch(self) -> None:
        for time in TIMES:
            y, _ = motion_at("humanoid_leg", time, 4)
            np.testing.assert_allclose(y[:, 2:5].sum(axis=1) / np.abs(y).max(axis=1), 0.0, atol=1e-10)


class TestPandaHand:
    def test_the_arm_is_that_of_panda_yaml(self) -> None:
        arm, robot = Robot.load(file("panda.yaml")), robot_of("panda_hand")
        names = arm.joint_names
        assert robot.joint_names == (*names, "panda_finger_joint1")
        for mine, theirs in zip(robot.tree.body_names[:6], arm.tree.body_names[:6], strict=True):
            assert mine == theirs
        for key in ("screws", "masses", "coms", "inertias"):
            found, expected = (getattr(one.tree, key)[:6] for one in (robot, arm))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
        assert robot.drive_train is not None and arm.drive_train is not None
        for key in ("stiffness", "motor_inertia"):
            np.testing.assert_array_equal(getattr(robot.drive_train, key)[:7], getattr(arm.drive_train, key))
        for key in ("position_lower", "position_upper", "velocity", "effort", "effort_rate"):
            np.testing.assert_array_equal(getattr(robot.limits, key)[:7], getattr(arm.limits, key))

    def test_pinocchio_with_both_fingers(self) -> None:
        robot = robot_of("panda_hand")
        model = pinocchio.buildModelFromUrdf(str(file("panda_hand.urdf")))
        model.gravity.linear = robot.gravity
        for time in TIMES:
            y, _ = motion_at("panda_hand", time, 0)
            q = np.concatenate([y, y[:, 7:]], axis=1)
            torques = pinocchio.rnea(model, model.createData(), *q)
            expected = np.append(torques[:7], torques[7] + torques[8])
            np.testing.assert_allclose(robot.inverse_dynamics(y)[0], expected, rtol=1e-10, atol=1e-12)


class TestPictures:
    @pytest.mark.parametrize("name", NAMES)
    def test_no_line_stretches_but_slides_and_fingers(self, name: str) -> None:
        robot = robot_of(name)
        lengths = []
        for time in TIMES:
            y, base = motion_at(name, time, 0)
            lines = robot_lines(robot, y[0], None if base is None else base.pose)
            lengths.append(np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1))
        stretched = np.ptp(np.array(lengths), axis=0) > 1e-9
        assert stretched.sum() == {"humanoid_leg": 2, "panda_hand": 2}.get(name, 0)

    def test_the_platform_of_a_delta_hangs_on_its_rods_alone(self) -> None:
        lines = robot_lines(robot_of("delta"), np.zeros(3))
        ground = lines[np.linalg.norm(lines[:, 0], axis=1) == 0.0]
        np.testing.assert_allclose(ground[:, 1, 2], 0.0, atol=1e-12)  # three arms, no slides
        assert len(ground) == 3
        rods = np.isclose(np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1), 0.368, rtol=1e-12)
        assert rods.sum() == 6
