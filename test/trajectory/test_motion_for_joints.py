"""Motions that name the joints of a robot in another order, or some of them."""

from pathlib import Path

import numpy as np
import pytest
from refusals import assert_refused, refused

from hodyn_ros import Robot
from hodyn_ros.planning.check import check
from hodyn_ros.trajectory import (
    Cosines,
    RobotMotion,
    ScaledTime,
    WaypointSpline,
    read_motion,
    read_trajectory,
)
from hodyn_ros.trajectory.combined import Rearranged
from hodyn_ros.trajectory.files.retimed_file import retimed_text

SOME = """\
type: waypoints
joint_names: [panda_joint6, panda_joint2]
standing: {panda_joint1: 0.1, panda_joint3: 0, panda_joint4: -1.5, panda_joint5: 0.2, panda_joint7: 0.7}
points:
  - {time: 0, positions: [1.8, 0.0]}
  - {time: 2, positions: [2.2, 0.4]}
"""
TIMES = np.linspace(0.0, 2.0, 9)


def written(folder: Path, text: str) -> Path:
    path = folder / "motion.yaml"
    path.write_text(text)
    return path


def test_some_joints_in_another_order_are_checked_as_all_in_order(tmp_path: Path, panda: Robot) -> None:
    some = read_motion(written(tmp_path, SOME))
    start = [0.1, 0.0, 0.0, -1.5, 0.2, 1.8, 0.7]
    end = [0.1, 0.4, 0.0, -1.5, 0.2, 2.2, 0.7]
    whole = WaypointSpline([0.0, 2.0], [start, end])
    fitted = some.for_joints(panda.joint_names)
    assert fitted.joint_names == fitted.trajectory.joint_names == panda.joint_names
    np.testing.assert_allclose(fitted.trajectory.sample(TIMES, 4), whole.sample(TIMES, 4), rtol=0, atol=1e-13)
    for one, other in zip(check(panda, some).findings, check(panda, whole).findings, strict=True):
        assert (one.column.joint, one.column.quantity) == (other.column.joint, other.column.quantity)
        assert one.value == pytest.approx(other.value, rel=1e-9, abs=1e-9)
    assert read_trajectory(tmp_path / "motion.yaml").n_joints == 7


def test_a_retimed_file_keeps_who_stands_where(tmp_path: Path, panda: Robot) -> None:
    motion = read_motion(written(tmp_path, SOME)).for_joints(panda.joint_names)
    slow = read_motion(written(tmp_path, retimed_text(tmp_path / "motion.yaml", 0.5)))
    np.testing.assert_allclose(
        slow.for_joints(panda.joint_names).trajectory.sample(TIMES, 3),
        ScaledTime(motion.trajectory, 0.5).sample(TIMES, 3),
        rtol=0,
        atol=1e-13,
    )


def test_columns_of_a_base_stay_where_they_are() -> None:
    base = Cosines([0.5, 2.0], [1.0, 3.0])
    arms = Cosines([0.1, 0.2], [1.0, 2.0], joint_names=["left", "right"])
    motion = RobotMotion.of_base(base, ["z", "yaw"], joints=arms)
    turned = motion.for_joints(["right", "middle", "left"], {"middle": 0.4})
    here, there = motion.sample(0.3, 3), turned.sample(0.3, 3)
    np.testing.assert_array_equal(here.twists, there.twists)  # type: ignore[arg-type]
    np.testing.assert_array_equal(there.joints[:, [2, 0]], here.joints)
    np.testing.assert_array_equal(there.joints[:, 1], [0.4, 0, 0, 0])
    alone = RobotMotion.of_base(base, ["z", "yaw"]).for_joints(["left"], {"left": -0.2})
    np.testing.assert_array_equal(alone.sample(0.3, 1).joints, [[-0.2], [0.0]])


def test_what_begins_at_rest_still_does() -> None:
    ramp = RobotMotion.of(WaypointSpline([0.0, 1.0], [[0.0], [1.0]], joint_names=["b"])).rest_to_rest(0.5)
    moved = ramp.for_joints(["a", "b"], {"a": 3.0}).trajectory
    assert moved.starts_at_rest and moved.ends_at_rest and moved.smoothness == ramp.trajectory.smoothness
    np.testing.assert_array_equal(moved.sample([-1.0, 5.0], 1), [[[3, 0], [0, 0]], [[3, 1], [0, 0]]])
    refused(lambda: Rearranged(ramp.trajectory, [2], [0.0, 0.0]), "1 different columns out of 2, found [2]")


def test_names_that_do_not_fit_the_robot_or_contradict_each_other(tmp_path: Path, panda: Robot) -> None:
    start = str(tmp_path)
    assert_refused(
        (("panda_joint6,", "joint6,"), "the motion names joint 'joint6', but the robot has"),
        (("panda_joint7: 0.7", "panda_joint8: 0.7"), "the motion names joint 'panda_joint8', but the robot"),
        ((", panda_joint5: 0.2, panda_joint7: 0.7", ""),
         "say where they stand, as in standing: {panda_joint5: 0.0, panda_joint7: 0.0}"),
        (("panda_joint7: 0.7", "panda_joint2: 0.7"), f"{start} ... 'panda_joint2' is moved, so it cannot be"),
        (("0.7", ".inf"), f"{start} ... standing.panda_joint7: inf is not a finite number"),
        (("0.7", "up"), f"{start} ... standing.panda_joint7: must be a number [rad or m], found the text"),
        (("joint_names: [panda_joint6, panda_joint2]\n", ""), f"{start} ... standing needs joint_names"),
        by=lambda change: check(panda, read_motion(written(tmp_path, SOME.replace(*change)))),
    )  # fmt: skip
