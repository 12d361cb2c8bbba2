"""Robots that are copied, pickled, or meet many sets of wrenches."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hinged_arm import HINGED_ARM
from oracles.motions import random_stack

from hodyn_ros import AppliedWrench, Robot, share
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
        assert (twin.drive_train is None) == (robot.drive_train is None)


def test_a_robot_with_friction_in_its_drives_keeps_it() -> None:
    robot = Robot.load(share.find("config", "panda.yaml"))
    assert pickle.loads(pickle.dumps(robot)).drive_train.specs == robot.drive_train.specs


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


def test_a_wrench_on_a_frame_of_a_body_is_sent_to_the_body() -> None:
    robot = Robot.from_urdf(HINGED_ARM)
    push = np.ones((1, 6))
    by_name = robot.inverse_dynamics(np.zeros((3, 1)), wrenches=[AppliedWrench("link", push)])
    by_number = robot.inverse_dynamics(np.zeros((3, 1)), wrenches=[AppliedWrench(0, push)])
    np.testing.assert_array_equal(by_name, by_number)


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
