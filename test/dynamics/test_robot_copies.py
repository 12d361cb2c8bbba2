"""Robots that are copied, pickled, or meet many sets of wrenches."""

import copy
import pickle

import numpy as np
import pytest
from hinged_arm import HINGED_ARM
from oracles.motions import random_stack

from hodyn_ros import AppliedWrench, BaseMotion, InputError, Robot, share
from hodyn_ros.codegen import object_cache


@pytest.mark.parametrize("name", ["panda.yaml", "aerial_manipulator.yaml"])
def test_copies_compute_the_same(name: str) -> None:
    robot = Robot.load(share.find("config", name))
    base = [np.eye(4), random_stack(2, 4, 6)] if robot.model.floating_base else []
    q = random_stack(1, 5, robot.n_coordinates)
    expected = robot.compile(2)(q, *base)
    for twin in (copy.copy(robot), copy.deepcopy(robot), pickle.loads(pickle.dumps(robot))):
        assert twin is not robot
        np.testing.assert_array_equal(twin.compile(2)(q, *base), expected)
        assert twin.frames.keys() == robot.frames.keys()
        specs = [one.drive_train and one.drive_train.specs for one in (twin, robot)]
        assert specs[0] == specs[1]


def test_a_robot_apart_remembers_by_itself() -> None:
    robot = Robot.load(share.find("config", "palletiser.yaml"))
    robot.solve_loops(robot.home[0] + np.array([[0.1], [0.0], [0.0]]))
    twin = robot.apart()
    np.testing.assert_array_equal(twin.positions, robot.positions)
    before = twin.positions
    robot.reset()
    assert twin is not robot and not np.array_equal(twin.positions, robot.positions)
    np.testing.assert_array_equal(twin.positions, before)
    arm = Robot.load(share.find("config", "panda.yaml"))
    assert arm.apart() is arm


@pytest.mark.parametrize(
    ("name", "is_arm"),
    [("panda", True), ("aerial_manipulator", False), ("palletiser", False), ("gough_stewart_6ups", False)],
)
def test_what_an_arm_is_and_what_its_drives_do_again(name: str, is_arm: bool) -> None:
    """A shape that was seen goes straight to its code; what comes in another form is still converted."""
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    assert robot.is_arm is is_arm
    start, pose = robot.home
    q = np.vstack([start, 0.1 * random_stack(1, 4, len(start))])
    base = (
        None if pose is None else BaseMotion(pose, 0.1 * random_stack(2, 4, 6), representation="body_fixed")
    )
    first, *others = [robot.drive_state(given, base) for given in (q, q, q.tolist(), np.asfortranarray(q))]
    for state in others:
        assert state.motion.dtype == np.float64 and state.near_singularity == first.near_singularity
        for found, expected in zip(state[:3], first[:3]):
            assert (found is None) == (expected is None)
            if expected is not None:
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    if start.size:
        with pytest.raises(InputError):
            robot.drive_state(np.where(q == q[1, 0], np.nan, q), base)


def test_old_kernels_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "KEPT", 3)
    robot = Robot.load(share.find("config", "panda.yaml"))
    q = random_stack(1, 3, 7)
    push = random_stack(2, 1, 6)
    found = [robot.inverse_dynamics(q, wrenches=[AppliedWrench(body, push)]) for body in range(7)]
    assert len(robot._need_tree("this")._kernels) == 3
    for body in range(7):
        again = robot.inverse_dynamics(q, wrenches=[AppliedWrench(body, push)])
        np.testing.assert_array_equal(again, found[body])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("panda.yaml", "<Robot 'panda': 7 joints, 7 bodies, fixed base, 7 drives (7 elastic), 16.06 kg>"),
        (
            "aerial_manipulator.yaml",
            "<Robot 'aerial_manipulator': 6 joints, 7 bodies, floating base, no drives, 4 kg>",
        ),
        (
            "planar_3rrr.yaml",
            "<Robot 'planar_3rrr': 9 joints, 10 bodies, floating base, 3 loops, 2 coordinates, "
            "3 drives (3 elastic), 1.074 kg>",
        ),
    ],
)
def test_a_robot_says_in_one_line_what_it_is(name: str, words: str) -> None:
    assert repr(Robot.load(share.find("config", name))) == words


def test_one_joint_is_one() -> None:
    assert repr(Robot.from_urdf(HINGED_ARM)).split(",")[0].endswith(": 1 joint")
