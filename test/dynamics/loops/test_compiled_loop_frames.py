"""Compiled inverse kinematics of robots with loops, against its readable form and forward kinematics."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from case_robots import closeness
from conditioning import SLACK, largest, moved_back_by_rounding
from linkages import robot_of, shipped
from oracles.mechanisms import four_bar
from oracles.motions import random_stack
from refusals import refused
from sweeps import THOROUGH, some

from hodyn_ros import BaseMotion, ConvergenceError, InputError, Robot
from hodyn_ros.array import Array
from hodyn_ros.dynamics.kinematics.inverse_problem import GoalCall
from hodyn_ros.dynamics.loops import looped, looped_frames
from hodyn_ros.dynamics.loops.looped_frames import solve_frames
from hodyn_ros.lie.se3 import exp

pytestmark = pytest.mark.thorough


MOVED = [
    ("four-bar", "body3", "pose"),
    ("four-bar", "body2", "position"),
    ("palletiser", "tool", "pose"),
    ("palletiser", "hand", "pose"),  # which the fourth axis does not move
    ("delta", "wrist1", "position"),
    ("delta", "platform", "pose"),
    ("humanoid_leg", "sole", "pose"),
]
FEW = MOVED[3], MOVED[6]
SEVERAL: list[Any] = [
    ("delta", ("platform", "wrist1"), ("position", "position"), False, ()),
    ("palletiser", ("hand", "tool"), ("position", "orientation"), False, ()),
    ("palletiser", ("hand",), ("position",), True, ()),  # the fourth axis stays
    ("palletiser", ("tool",), ("position",), False, (3,)),
    ("humanoid_leg", ("sole",), ("position",), True, ()),
    ("humanoid_leg", ("foot", "sole"), ("orientation", "position"), False, ()),
    ("humanoid_leg", ("sole",), ("position",), False, (0, 2, 5)),
]


def robot_named(name: str) -> Robot:
    return robot_of(four_bar()) if name == "four-bar" else shipped(f"{name}.yaml")


def motion(robot: Robot, order: int) -> tuple[Array, BaseMotion | None]:
    """Return a motion of the coordinates near home, and that of a base."""
    start, pose = robot.home
    y = 0.3 * random_stack(3, order + 1, len(start))
    y[0] = start + 0.1 * np.random.default_rng(1).uniform(-1.0, 1.0, len(start))
    if not robot.tree.floating_base:
        return y, None
    assert pose is not None
    y[0, 3] = 0.7
    moved = pose @ exp(np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.1]))
    return y, BaseMotion(moved, 0.3 * random_stack(4, max(order, 1), 6))


def readable(robot: Robot, *arguments: Any, base: BaseMotion | None = None, **named: Any) -> Any:
    """Return what the readable form finds, and what the robot remembers then; it is left as it was."""
    looped, before = robot._need_loops("this"), robot.positions
    call = GoalCall(**dict(zip(("pose", "twists", "representation", "body", "task"), arguments)), **named)
    found = solve_frames(looped, call, call.targets(robot.tree), base)
    after = robot.positions
    robot.reset(before)
    return (*found, after)


@pytest.fixture
def only_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be left to the readable form."""

    def fail(*arguments: Any) -> Any:
        raise AssertionError("this is not compiled")

    monkeypatch.setattr(looped, "solve_frames", fail)


@pytest.mark.usefixtures("only_compiled")
@pytest.mark.parametrize(
    ("name", "bodies", "tasks", "weighted", "independent"),
    some(SEVERAL, SEVERAL[0], SEVERAL[2], *SEVERAL[4:]),
)
@pytest.mark.parametrize("order", some([0, 1, 2, 4], 2))
def test_several_frames_and_more_coordinates_than_components(
    name: str,
    bodies: tuple[str, ...],
    tasks: tuple[Any, ...],
    weighted: bool,
    independent: tuple[int, ...],
    order: int,
) -> None:
    robot = robot_named(name)
    y, base = motion(robot, order)
    moved = robot.forward_kinematics(y, base)
    poses = np.array([moved.pose_of(body) for body in bodies])
    twists = np.array([moved.twists_of(body)[:order] for body in bodies])
    seed = y[0] + 0.02
    weights = np.linspace(1.0, 2.0, len(seed)) if weighted else None
    own = {i: y[:, i] for i in independent} or None
    robot.reset()
    given = {"weights": weights, "independent": own, "base": base}
    found = robot.inverse_kinematics(poses, twists, body=list(bodies), task=list(tasks), seed=seed, **given)
    after = robot.positions
    # where coordinates are left free, the readable form stays where it starts
    expected, _, there = readable(
        robot, poses, twists, "spatial", list(bodies), list(tasks), seed=found[0], **given
    )
    assert closeness(found, expected) < 1e-11
    np.testing.assert_allclose(after, there, rtol=0.0, atol=1e-11)
    for i in independent:
        np.testing.assert_allclose(found[:, i], y[:, i], rtol=0.0, atol=1e-15)
    again = robot.inverse_kinematics(poses, twists, body=list(bodies), task=list(tasks), **given)
    assert closeness(again, found) < 1e-11  # from where it is
    least, _, _ = readable(robot, poses, twists, "spatial", list(bodies), list(tasks), seed=seed, **given)
    assert np.linalg.norm(found[0] - seed) < 1.1 * np.linalg.norm(least[0] - seed)
    reached = robot.forward_kinematics(found, base)
    rows = {"position": slice(3, 6), "orientation": slice(0, 3)}
    for body, pose, task in zip(bodies, poses, tasks):
        part = (slice(0, 3), 3) if task == "position" else (slice(0, 3), slice(0, 3))
        np.testing.assert_allclose(reached.pose_of(body)[part], pose[part], rtol=0.0, atol=1e-11)
        if order:
            at = reached.in_representation("hybrid").twists_of(body)
            wanted = moved.in_representation("hybrid").twists_of(body)
            assert closeness(at[:, rows[task]], wanted[:, rows[task]]) < 1e-9


@cache
def rounding(name: str, frame: str, task: str, orders: int) -> Array:
    """Return by how much coordinates move, by order, when what a frame does is rounded once."""
    robot = robot_named(name)
    y, base = motion(robot, orders)

    def of_frame(y: Array) -> Array:
        robot.reset()
        moved = robot.forward_kinematics(y, base)
        pose, twists = moved.pose_of(frame), moved.in_representation("hybrid").twists_of(frame)[:orders]
        if task == "position":
            return np.vstack([pose[:3, 3], twists[:, 3:]])
        return np.vstack([pose[:3].ravel(), np.hstack([twists, twists])])

    return moved_back_by_rounding(of_frame, y)


@pytest.mark.usefixtures("only_compiled")
@pytest.mark.parametrize(("name", "frame", "task"), some(MOVED, *FEW))
@pytest.mark.parametrize("order", some(range(5), 2))
def test_as_the_readable_form(name: str, frame: str, task: Any, order: int) -> None:
    robot = robot_named(name)
    y, base = motion(robot, order)
    seed = y[0] + 0.01
    representation: Any
    for representation in ("spatial", "body_fixed"):
        robot.reset()
        moved = robot.forward_kinematics(y, base, representation)
        motion_of_frame = moved.pose_of(frame), moved.twists_of(frame)[:order]
        seed[3:] = y[0, 3:] if frame == "hand" else seed[3:]
        robot.joint_motion(seed[None], base)
        expected, _, after = readable(robot, *motion_of_frame, representation, frame, task, base=base)
        asked: Any = {"body": frame, "representation": representation, "task": task}
        for start in (None, seed):
            found = robot.inverse_kinematics(*motion_of_frame, base, seed=start, **asked)
            held = y.copy()
            if frame == "hand":
                held[1:, 3] = 0.0
            highest = 4 if THOROUGH else order
            bound = 2.0 * SLACK * rounding(name, frame, task, highest)[: order + 1]  # there and back
            assert (largest(found - held) <= bound).all()
            assert (largest(found - expected) <= bound).all()
            assert robot.positions is not None
            np.testing.assert_allclose(robot.positions, after, atol=1e-13)
            robot.reset()


@pytest.mark.usefixtures("only_compiled")
@pytest.mark.parametrize("name", ["planar_3rrr", "gough_stewart_6ups"])
@pytest.mark.parametrize("order", some(range(5), 2))
def test_of_platforms(name: str, order: int) -> None:
    robot = shipped(f"{name}.yaml")
    pose, body = robot.home[1], robot.tree.body_names[0]
    assert pose is not None
    twists = 0.2 * random_stack(7, max(order, 1), 6)
    pose[:2, 3] += (0.01, -0.02)
    if name == "planar_3rrr":
        twists[:, [0, 1, 2, 5]] = 0.0
    for told, given in (
        ("spatial", twists),
        ("body_fixed", BaseMotion(pose, twists).in_representation("body_fixed").twists),
    ):
        robot.reset()
        arguments = pose, given[:order], told, body
        _, expected, after = readable(robot, *arguments, "pose")
        platform, joints = robot.inverse_kinematics(*arguments[:2], body=body, representation=told)
        assert joints.shape == (order + 1, 0) and platform is not None
        np.testing.assert_allclose(platform.pose, expected.pose, rtol=0.0, atol=1e-13)
        if order:
            assert closeness(platform.twists, expected.twists) < 1e-11
            assert closeness(platform.twists, twists) < 1e-13
        np.testing.assert_allclose(robot.positions, after, atol=1e-12)


def test_further_calls_with_arrays_find_their_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = robot_named("humanoid_leg")
    y, base = motion(robot, 2)
    assert base is not None
    moved = robot.forward_kinematics(y, base)
    pose, twists = moved.pose_of("sole"), np.ascontiguousarray(moved.twists_of("sole"))
    first = robot.inverse_kinematics(pose, twists, body="sole", seed=y[0], base=base)

    def fail(*arguments: Any) -> Any:
        raise AssertionError("arguments are read")

    with monkeypatch.context() as patched:
        patched.setattr(GoalCall, "targets", fail)
        again = robot.inverse_kinematics(pose, twists, body="sole", seed=y[0], base=base)
        assert closeness(again, first) < 1e-13
        assert closeness(robot.inverse_kinematics(pose, twists, body="sole", base=base), first) < 1e-13
    lists = pose.tolist(), base.in_representation("body_fixed")
    turned = robot.inverse_kinematics(lists[0], twists, body="sole", seed=list(y[0]), base=lists[1])
    assert closeness(turned, first) < 1e-12


class TestCompiledCalls:
    @pytest.mark.parametrize("name", ["palletiser", "delta", "humanoid_leg"])
    @pytest.mark.parametrize("order", some([0, 1, 4], 1))
    def test_as_the_call_in_every_representation(self, name: str, order: int) -> None:
        robot = robot_named(name)
        frame = {"palletiser": "tool", "delta": "wrist2", "humanoid_leg": "sole"}[name]
        y, base = motion(robot, order)
        others = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[:order])]
        seed = y[:1] + 0.01
        representation: Any
        for representation in ("spatial", "body_fixed", "hybrid"):
            moved = robot.forward_kinematics(y, base, representation)
            given = moved.pose_of(frame), np.ascontiguousarray(moved.twists_of(frame)[:order])
            call = robot.compile(order, "inverse_kinematics", [frame], representation)
            found = call(seed, *given, *others)
            assert closeness(found, y) < 1e-12
            out = np.empty_like(found)
            assert call(seed.tolist(), *given, *others, out=out) is out
            assert closeness(out, y) < 1e-12
            np.testing.assert_array_equal(seed, y[:1] + 0.01)

    @pytest.mark.parametrize(
        ("name", "frames"),
        [
            ("palletiser", ["hand", "tool"]),
            ("delta", ["platform", "wrist1"]),
            ("humanoid_leg", ["foot", "sole"]),
        ],
    )
    @pytest.mark.parametrize("order", some([0, 1, 3], 1))
    def test_of_several_frames(self, name: str, frames: list[str | int], order: int) -> None:
        robot = robot_named(name)
        y, base = motion(robot, order)
        others = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[:order])]
        moved = robot.forward_kinematics(y, base)
        poses = np.concatenate([moved.pose_of(frame) for frame in frames])
        twists = np.concatenate([moved.twists_of(frame)[:order] for frame in frames])
        call = robot.compile(order, "inverse_kinematics", frames)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(looped_frames, "solve_frames", None)
            found = call(y[:1] + 0.01, poses, twists, *others)
        assert closeness(found, y) < 1e-12
        assert closeness(call((y[:1] + 0.01).tolist(), poses, twists, *others), y) < 1e-12
        far = poses.copy()
        far[3::4, 3] = 1.0
        far[2, 3] += 20.0
        with pytest.raises(ConvergenceError):
            call(y[:1], far, twists, *others)

    def test_what_kernels_cannot_do(self) -> None:
        """Far seeds are left to the readable form, which says what is wrong, too."""
        robot = robot_named("palletiser")
        y, _ = motion(robot, 1)
        moved = robot.forward_kinematics(y)
        pose, twists = moved.pose_of("tool"), moved.twists_of("tool")
        robot.reset()
        call = robot.compile(1, "inverse_kinematics", ["tool"])
        assert closeness(call(y[:1] - np.array([0.6, 0.0, 0.2, 1.0]), pose, twists), y) < 1e-11
        before = robot.positions
        far = pose.copy()
        far[2, 3] += 20.0
        with pytest.raises(ConvergenceError):
            call(y[:1], far, twists)
        np.testing.assert_array_equal(robot.positions, before)


@pytest.mark.usefixtures("only_compiled")
def test_past_a_singular_pose_of_the_coordinates_compiled_code_does_not_go() -> None:
    """A crank led past the dead point of the rocker, the coordinate, would leave that on another branch."""
    crank, led = robot_of(four_bar()), robot_of(four_bar(), coordinates=["joint3"])
    assert led.closure is not None
    cranks = np.linspace(0.0, 3.0, 301)
    whole = np.array([crank.joint_motion(np.array([[q]]))[0] for q in cranks])
    dead = int(np.flatnonzero(np.diff(np.sign(np.diff(whole[:, 2]))))[0]) + 1
    for before, after, kept in ((dead - 20, dead - 5, True), (dead - 10, dead + 10, False)):
        led.reset(whole[before][list(led.closure.leading)])
        pose = crank.forward_kinematics(whole[after, :1][None]).pose_of("body1")
        if kept:
            found = led.inverse_kinematics(pose, body="body1", task="orientation")
            np.testing.assert_allclose(found, whole[after, 2:][None], atol=1e-12)
            continue
        with pytest.raises(AssertionError):
            led.inverse_kinematics(pose, body="body1", task="orientation")


class TestRefusals:
    """What compiled code does not vouch for is left to the readable form, which finds it or says why not."""

    def test_a_body_turned_by_half_a_turn_is_elsewhere(self) -> None:
        """The rows of a rotation are open by the sine of the angle, which is zero there as well."""
        robot = robot_named("humanoid_leg")
        y, base = motion(robot, 0)
        pose = robot.forward_kinematics(y, base).pose_of("foot")
        for axis in range(3):
            turned = pose.copy()
            turned[:3, [i for i in range(3) if i != axis]] *= -1.0
            robot.reset()
            robot.joint_motion(y, base)
            found = robot.inverse_kinematics(turned, body="foot", base=base)
            again = robot.forward_kinematics(found, base).pose_of("foot")
            np.testing.assert_allclose(again, turned, rtol=0.0, atol=1e-11)

    def test_out_of_reach(self) -> None:
        for name, frame, task in some(MOVED, *FEW[:3]):
            robot = robot_named(name)
            y, base = motion(robot, 0)
            pose = robot.forward_kinematics(y, base).pose_of(frame)
            before = robot.positions
            pose[:3, 3] += (0.0, 0.3, 20.0)
            for seed in (None, y[0] + 0.001):
                with pytest.raises(ConvergenceError):
                    robot.inverse_kinematics(pose, body=frame, task=task, seed=seed, base=base)  # type: ignore[arg-type]
                np.testing.assert_array_equal(robot.positions, before)

    @pytest.mark.parametrize("order", [1, 2, 3])
    def test_twists_that_fewer_coordinates_cannot_follow(self, order: int) -> None:
        robot = robot_named("palletiser")
        y, _ = motion(robot, order)
        moved = robot.forward_kinematics(y)
        pose, twists = moved.pose_of("tool"), moved.twists_of("tool").copy()
        robot.inverse_kinematics(pose, twists, body="tool")
        twists[order - 1, :3] += 1e-6 * pose[:3, 0]
        what = "the twist asked for" if order == 1 else f"derivative {order - 1} of the twist"
        with pytest.raises(InputError, match=f"cannot follow {what}|cannot follow the {what}"):
            robot.inverse_kinematics(pose, twists, body="tool")
        tilted = pose @ exp(np.array([1e-9, 0.0, 0.0, 0.0, 0.0, 0.0]))
        error = refused(lambda: robot.inverse_kinematics(tilted, body="tool"), "", ConvergenceError)
        assert error.angle == pytest.approx(1e-9, rel=0.5)

    def test_rest_is_followed(self) -> None:
        """Twists of some orders may vanish; what is rounding there is no share of them."""
        robot = robot_named("palletiser")
        y, _ = motion(robot, 0)
        q = np.concatenate([y, [[0.3, 0.2, -0.4, 0.5]], np.zeros((3, 4))])
        moved = robot.forward_kinematics(q)
        twists = moved.twists_of("tool").copy()
        for r in range(1, 4):
            twists[r:] = 0.0
            found = robot.inverse_kinematics(moved.pose_of("tool"), twists, body="tool")
            again = robot.forward_kinematics(found).twists_of("tool")
            np.testing.assert_allclose(again, twists, rtol=0.0, atol=1e-12)
