"""What a bag says of a robot, beside what a motion says."""

from pathlib import Path

import numpy as np
import pytest
from bag_samples import SECOND, START, header, serialised, write
from refusals import refused

from hodyn_ros import Robot, share
from hodyn_ros.bags.comparison.sources import DESIRED_MOTION, FEEDFORWARD_TORQUE
from hodyn_ros.bags.joint_states import JOINT_STATE
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.trajectory import read_motion
from hodyn_ros.view.bag_track import track_of_bag
from hodyn_ros.view.track import track_of_motion

NAMES = ("desired_motion", "joint_states", "motor_states", "feedforward_torque")
KINDS = (DESIRED_MOTION, JOINT_STATE, JOINT_STATE, FEEDFORWARD_TORQUE)
TOPICS = tuple(Topic(f"/arm/{name}", kind) for name, kind in zip(NAMES, KINDS))


def recording(robot: Robot, measured: bool) -> list[Message]:
    """Return half a second in which the links are 0.01 rad behind, and all messages reverse the joints."""
    names = list(robot.joint_names)[::-1]
    motion, found = read_motion(share.find("config", "panda_excitation.yaml")), []
    for k in range(51):
        stamp = START + k * SECOND // 100
        q = motion.sample(0.01 * k, 4).joints
        torques = robot.inverse_dynamics(q)
        motors = robot.require_drives().feedforward(q, torques)
        desired = serialised(DESIRED_MOTION, header=header(stamp), joint_names=names, positions=q[0][::-1])
        found.append(Message("/arm/desired_motion", stamp, desired))
        answer = serialised(
            FEEDFORWARD_TORQUE,
            header=header(stamp),
            joint_names=names[::-1],
            efforts=torques[0],
            motor_positions=motors.position[0],
            motor_efforts=motors.effort[0],
        )
        found.append(Message("/arm/feedforward_torque", stamp, answer))
        if measured:
            states = ((q[0] - 0.01, torques[0]), (motors.position[0], 2.0 * motors.effort[0]))
            for topic, (position, effort) in zip(("joint_states", "motor_states"), states):
                values = {"name": names, "position": position[::-1], "effort": effort[::-1]}
                data = serialised(JOINT_STATE, header=header(stamp), **values)
                found.append(Message(f"/arm/{topic}", stamp, data))
    return found


@pytest.mark.parametrize("measured", [False, True])
def test_a_bag_shows_what_the_motion_does(panda: Robot, measured: bool, tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", "mcap", recording(panda, measured), TOPICS)
    track = track_of_bag(panda, bag)
    motion = read_motion(share.find("config", "panda_excitation.yaml"))
    expected = track_of_motion(panda, motion, 0.5)
    np.testing.assert_allclose(track.times - track.times[0], expected.times, atol=1e-6)  # of 1.7e9 s
    np.testing.assert_allclose(track.desired, expected.desired, rtol=1e-9, atol=1e-12)
    assert track.torques is not None and track.deflections is not None
    assert expected.torques is not None and expected.deflections is not None
    if measured:  # rather than what was asked for
        np.testing.assert_allclose(track.measured, expected.desired - 0.01, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(track.torques, 2.0 * expected.torques, rtol=1e-9)
        np.testing.assert_allclose(track.deflections, expected.deflections + 0.01, atol=1e-12)
    else:
        assert track.measured is None
        np.testing.assert_allclose(track.torques, expected.torques, rtol=1e-9)
        np.testing.assert_allclose(track.deflections, expected.deflections, rtol=1e-9, atol=1e-12)


def test_a_bag_that_was_cut_off_is_shown_and_said_to_be(panda: Robot, tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", "mcap", recording(panda, False), TOPICS)
    assert not track_of_bag(panda, bag).note
    (bag / "metadata.yaml").unlink()
    assert "was not completed (it has no metadata.yaml)" in track_of_bag(panda, bag).note


def test_a_bag_of_another_robot_is_named(panda: Robot, tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", "mcap", recording(panda, False), TOPICS)
    other = Robot.load(share.find("config", "kuka_kr300.yaml"))
    refused(lambda: track_of_bag(other, bag), "no message on /arm/desired_motion has all joints of robot")
