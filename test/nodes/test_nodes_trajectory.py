"""trajectory_node as a process, over real DDS."""

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from diagnostic_msgs.msg import DiagnosticStatus
from panda_plan import HOME, MOVE, NAMES, after, plan
from rclpy.publisher import Publisher
from ros_bags import so_far, wait_for_stamp
from ros_processes import start_node
from ros_talk import Talk, talking
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray, String
from std_srvs.srv import Trigger
from sweeps import some
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import share
from hodyn_ros.bags.messages import stamp_of
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.messages import (
    nanoseconds,
    read_base_motion,
    read_desired_motion,
    time_message,
)
from hodyn_ros.ros.parameters.robot_file import TrajectoryTarget
from hodyn_ros.ros.recorded import HEARD, heard_message, word
from hodyn_ros.ros.streams.fixed_rate import FixedRate
from hodyn_ros.ros.streams.one_publisher import publishers_of
from hodyn_ros.ros.streams.qos import latched_qos
from hodyn_ros.trajectory.files.reader import read_motion, read_trajectory
from hodyn_ros.trajectory.rest import rest_to_rest

EXCITATION = "panda_excitation.yaml"


def arrays(heard: list[DesiredMotion], orders: int) -> tuple[np.ndarray, np.ndarray]:
    joints = JointOrder(heard[0].joint_names)
    stamps = np.array([nanoseconds(message.header.stamp) for message in heard])
    return stamps, np.array([read_desired_motion(message, joints, orders) for message in heard])


def trajectory_message(times: list[float], positions: list[list[float]]) -> JointTrajectory:
    points = [
        JointTrajectoryPoint(positions=row, time_from_start=after(t)) for t, row in zip(times, positions)
    ]
    return JointTrajectory(joint_names=list(NAMES), points=points)


def test_the_pace_does_not_drift_and_counts_what_it_skips() -> None:
    pace = FixedRate(1000.0, 5_000_000, most=3)
    assert pace.due(5_000_000) == range(1)
    assert pace.due(6_500_000) == range(1, 2)
    assert pace.due(6_700_000) == range(2, 2)
    assert pace.due(6_900_000) == range(2, 3)  # due within a fifth of a period
    assert (pace.due(17_000_000), pace.skipped) == (range(10, 13), 7)
    assert pace.instant(12) == 17_000_000
    assert pace.number(17_400_000) == 12
    assert pace.due(3_000_000) == range(13, 13)
    assert not pace.lost(900_000_000) and pace.lost(1_100_000_000) and pace.lost(-1_100_000_000)
    assert not pace.lost(16_100_000) and pace.lost(15_900_000)  # nothing would be due until 18 ms
    # thirds of a millisecond: every instant is rounded by itself, so nothing adds up
    assert FixedRate(3000.0, 0).instant(3_000_000) == 1_000_000_000_000


def test_a_kilohertz_of_samples_with_all_derivatives_in_time() -> None:
    parameters = {"trajectory": EXCITATION, "ramp": 0.5, "duration": 1.0, "auto_start": False}
    with talking("trajectory_node", parameters, "tn_rate") as (node, talk):
        heard = talk.hear(DesiredMotion, "desired_motion")
        talk.wait_until(lambda: len(heard) > 300, "three hundred samples")
        assert talk.call(Trigger, "trajectory_node/start", Trigger.Request()).success
        again = talk.call(Trigger, "trajectory_node/start", Trigger.Request())
        assert (again.success, again.message) == (False, "the motion has been started before")
        facts = talk.status("trajectory_node", lambda status, _: status.message == "ended")
        start, end = int(facts["motion start [ns]"]), int(facts["motion end [ns]"])
        assert end - start == 2_000_000_000
        last = end + 100_000_000
        talk.wait_until(lambda: nanoseconds(heard[-1].header.stamp) > last, "samples after the end")
        stamps, stacks = arrays(heard, 5)
        # what a busy machine made the node skip by now is not in there
        skipped = int(talk.status("trajectory_node", lambda status, _: True)["skipped"])
    assert heard[0].joint_names == NAMES
    assert len(stamps) - 1 + skipped >= (stamps[-1] - stamps[0]) / 1e6  # nothing lost on the way
    assert set((stamps - stamps[0]) % 1_000_000) == {0}  # every stamp on one grid
    motion = rest_to_rest(read_trajectory(share.find("config", EXCITATION)), 0.5, 1.0)
    moving = (stamps >= start) & (stamps <= end)
    assert moving.sum() + skipped >= 2001 and int(facts["motion samples published"]) == moving.sum()
    expected = motion.sample(1e-9 * (stamps[moving] - start), 4)
    np.testing.assert_allclose(stacks[moving], expected, rtol=1e-9, atol=1e-9)
    # at rest where it starts before, where it ends after
    before, after = stacks[stamps < start], stacks[stamps > end]
    np.testing.assert_allclose(before[:, 0] - motion.sample(0.0, 0), 0.0, atol=1e-12)
    np.testing.assert_allclose(after[:, 0] - motion.sample(2.0, 0), 0.0, atol=1e-12)
    assert not before[:, 1:].any() and not after[:, 1:].any()


def test_a_motion_repeats_from_where_it_ends(tmp_path: Path) -> None:
    file, other = tmp_path / "move.yaml", tmp_path / "away.yaml"
    head = "type: waypoints\njoint_names: [lift]\norder: 6\npoints:\n  - {time: 0, positions: [0.1]}\n"
    away, back = "  - {time: 0.2, positions: [0.4]}\n", "  - {time: 0.4, positions: [0.1]}\n"
    file.write_text(head + away + back)
    other.write_text(head + away)
    given = {"rate": 200.0, "order": 2, "repeat_after": 0.1}
    with talking("trajectory_node", given | {"trajectory": str(file)}, "tn_again") as (node, talk):
        heard = talk.hear(DesiredMotion, "desired_motion")
        seen = node.output().count("the motion starts")
        talk.wait_until(lambda: node.output().count("the motion starts") > seen + 3, "three repetitions")
    stamps = np.array([nanoseconds(message.header.stamp) for message in heard])
    q, v = np.array([[*message.positions, *message.velocities] for message in heard]).T
    assert q.max() > 0.39 and q.min() == 0.1
    even = np.diff(stamps) == 5_000_000  # nothing that a busy machine has left out
    assert np.abs(np.diff(q) - 5e-3 * 0.5 * (v[1:] + v[:-1]))[even].max() < 1e-3
    with start_node("trajectory_node", given | {"trajectory": str(other)}, "tn_again") as node:
        assert node.wait() != 0
        assert "the motion ends 0.3 rad or m from where it begins, and cannot be repeated" in node.output()


def rejected_at_least(count: int, status: DiagnosticStatus, values: dict[str, str]) -> bool:
    return int(values["rejected"]) >= count


def test_joint_trajectories_are_followed_or_replaced_and_bad_ones_are_refused() -> None:
    rng = np.random.default_rng(3)
    parameters = {"robot_config": "panda.yaml", "rate": 200.0}
    home, away = [0.0] * 7, [0.1, 0.2, -0.3, 0.1, 0.0, 0.2, 0.1]
    with talking("trajectory_node", parameters, "tn_topic") as (node, talk):
        heard = talk.hear_nothing_yet(DesiredMotion, "desired_motion")
        publisher = talk.publisher(JointTrajectory, "joint_trajectory")
        unknown = trajectory_message([0.0, 1.0], [home, away])
        unknown.joint_names[2] = "elbow"
        for bad, words in (
            (unknown, "joint 'elbow' is unknown"),
            (trajectory_message([0.0, 0.5, 0.5], [home, away, home]), "times must increase"),
            (trajectory_message([0.0], [home]), "at least two waypoints"),
            (trajectory_message([0.0, 1.0], [home, [*away[:6], float("nan")]]), "joint 'panda_joint7'"),
        ):
            publisher.publish(bad)
            talk.wait_for_line(node, words)
        for sent in range(5, 11):
            poison = plan()
            field = ("positions", "velocities", "accelerations")[sent % 3]
            # the largest, whose differences overflow; smaller ones make a motion of finite numbers
            signs = rng.choice([-1.0, 1.0], len(poison.points))
            for point, sign in zip(poison.points, signs):
                getattr(point, field)[int(rng.integers(7))] = sign * rng.uniform(1.0, 1.7) * 1e308
            publisher.publish(poison)
            talk.status("trajectory_node", partial(rejected_at_least, sent))
        assert not heard
        talk.pause(1.0)  # one line a second for a reason
        # a motion that has not begun can be replaced, also one whose stamp lies years ahead
        there = trajectory_message([0.0, 1.2], [home, away])
        there.header.stamp.sec = 2**31 - 1
        publisher.publish(there)
        talk.wait_for_line(node, "the motion starts in ")
        there.header.stamp.sec = 0
        publisher.publish(there)
        talk.wait_for_line(node, "the motion starts, for 1.2 s")
        publisher.publish(there)
        line = talk.wait_for_line(node, "a motion is under way")
        assert "send the next one from /tn_topic/talk when it has ended" in line
        talk.wait_until(lambda: abs(heard[-1].positions[1] - 0.2) < 1e-12, "the end of the motion")
        talk.status("trajectory_node", lambda status, _: status.message == "ended")
        publisher.publish(trajectory_message([0.0, 0.5], [home, away]))  # a jump
        talk.wait_for_line(node, "from where the robot is held")
        publisher.publish(trajectory_message([0.4], [home]))  # the way back, from where it is
        talk.wait_until(lambda: abs(heard[-1].positions[1]) < 1e-9, "the way back")
        rejected = talk.status("trajectory_node", lambda status, _: True)["rejected"]
    assert int(rejected) == 12 and "Warning" not in node.output()
    stamps, stacks = arrays(heard, 5)
    steps = np.abs(np.diff(stacks[:, 0], axis=0)).max(axis=1)
    periods = np.diff(stamps) / 5_000_000  # more than one where a busy machine skipped a sample
    np.testing.assert_allclose(periods, periods.round(), atol=1e-6)
    assert (periods > 0.5).all()
    assert (steps <= 0.015 * periods).all()  # nowhere a jump: the fastest way is 2 rad/s


def test_it_is_slowed_down_paused_resumed_and_led_back_on_its_way() -> None:
    parameters = {"robot_config": "panda.yaml", "rate": 200.0, "diagnostic_updater.period": 0.1}
    home, away = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0], [0.4, -0.1, 0.4, -2.4, 0.4, 1.9, 0.4]
    with talking("trajectory_node", parameters, "tn_speed") as (node, talk):
        heard = talk.hear_nothing_yet(DesiredMotion, "desired_motion")
        publisher = talk.publisher(JointTrajectory, "joint_trajectory")
        speeds = talk.publisher(Float64, "trajectory_node/override")

        def ask(what: str) -> str:
            answer = talk.call(Trigger, f"trajectory_node/{what}", Trigger.Request())
            assert answer.success, answer.message
            return str(answer.message)

        def first_joint() -> float:
            return float(heard[-1].positions[0])

        def stands() -> bool:
            return not any([*heard[-1].velocities, *heard[-1].snaps])

        talk.wait_for_line(node, "waiting for a motion")
        assert ask("resume") == "motions run at 1 times their speed"
        # slow at first: a busy machine that holds the test up is not to see its end before the pause
        speeds.publish(Float64(data=0.25))
        talk.wait_for_line(node, "run at 0.25 times")
        publisher.publish(trajectory_message([0.0, 3.0], [home, away]))
        talk.wait_until(lambda: bool(heard) and first_joint() > 0.005, "the motion")
        speeds.publish(Float64(data=1.5))
        talk.wait_for_line(
            node, "~/override rejected: the speed of a motion may be from -1 to 1 times its own"
        )
        assert "the motion runs at 0 times its speed in" in ask("pause")
        talk.wait_until(stands, "a pause")
        talk.status("trajectory_node", lambda status, _: status.message == "paused")
        paused = first_joint()
        assert 0.005 < paused < 0.395
        ask("back")
        talk.wait_until(lambda: stands() and first_joint() == 0.0, "the beginning")
        speeds.publish(Float64(data=0.5))
        talk.wait_for_line(node, "the motion runs at 0.5 times its speed in")
        talk.wait_until(lambda: first_joint() > 0.1, "the motion at half its speed")
        speeds.publish(Float64(data=1.0))
        facts = talk.status("trajectory_node", lambda status, _: status.message == "ended")
        assert facts["speed, times that of the motion"] == "1"
        talk.wait_until(stands, "the end")  # which diagnostics may tell of before it is heard
    stamps, motion = arrays(heard, 5)
    np.testing.assert_allclose(motion[-1, 0], away, atol=1e-9)
    step = 1e-9 * np.diff(stamps)[:, None]
    followed = step[:, 0] < 0.0075  # a busy machine skips samples
    for k in range(4):  # the trapezoidal rule, whose error the next derivative but one bounds
        change = motion[1:, k] - motion[:-1, k] - 0.5 * step * (motion[1:, k + 1] + motion[:-1, k + 1])
        scale = np.abs(motion[:, k + 1]).max() * step
        assert (np.abs(change) <= 0.5 * scale + 1e-9)[followed].all()


@pytest.mark.parametrize("robot", some(["gough_stewart", "aerial_manipulator"], "aerial_manipulator"))
def test_platforms_and_floating_bases_are_moved_with_all_derivatives(robot: str) -> None:
    config = {"gough_stewart": "gough_stewart_6ups.yaml"}.get(robot, f"{robot}.yaml")
    file = f"{robot}_motion.yaml"
    parameters = {"robot_config": config, "trajectory": file, "rate": 200.0, "ramp": 0.5, "duration": 0.5}
    with talking("trajectory_node", parameters, f"tn_{robot}") as (node, talk):
        publisher = talk.publisher(JointTrajectory, "joint_trajectory")
        heard = talk.hear(DesiredMotion, "desired_motion")
        facts = talk.status("trajectory_node", lambda status, _: status.message == "ended")
        start, end = int(facts["motion start [ns]"]), int(facts["motion end [ns]"])
        publisher.publish(trajectory_message([0.0, 1.0], [[0.0] * 7, [0.1] * 7]))
        talk.wait_for_line(node, "a JointTrajectory cannot place a platform or floating base")
    motion = read_motion(share.find("config", file)).rest_to_rest(0.5, 0.5, order=4)
    joints = JointOrder(motion.joint_names or ())
    for message in heard:
        stamp = nanoseconds(message.header.stamp)
        expected = motion.sample(1e-9 * (min(max(stamp, start), end) - start), 4)
        if not start <= stamp <= end:
            expected = expected.at_rest()
        base = read_base_motion(message, 4)
        assert base.representation == "body_fixed" and message.header.frame_id == "world"
        np.testing.assert_allclose(base.pose, expected.pose, rtol=0, atol=1e-12)
        np.testing.assert_allclose(base.twists, expected.twists, rtol=1e-9, atol=1e-9)
        found = read_desired_motion(message, joints, 5)
        np.testing.assert_allclose(found, expected.joints, rtol=1e-9, atol=1e-9)


def test_it_waits_for_the_first_answer_and_for_the_first_command() -> None:
    parameters = {"trajectory": EXCITATION, "rate": 200.0}
    parameters |= {"start_when_answered": True, "start_when_commanded": True}
    with talking("trajectory_node", parameters, "tn_answer") as (node, talk):
        heard = talk.hear(DesiredMotion, "desired_motion")
        answers = talk.publisher(FeedforwardTorque, "feedforward_torque")
        commands = talk.publisher(Float64MultiArray, "effort_commands")
        # the node hears as sensors are heard, so one message may get lost
        for awaited, publisher, message, follows in (
            ("feedforward_torque answers", answers, FeedforwardTorque(), "until effort_commands have come"),
            (
                "effort_commands have come",
                commands,
                Float64MultiArray(data=[0.0] * 7),
                "the motion starts, without",
            ),
        ):
            node.wait_for_line(f"holding the first position until {awaited}")
            count = len(heard)
            talk.wait_until(lambda: len(heard) > count + 50, "samples at rest")  # noqa: B023
            assert rests(heard) and "the motion starts" not in node.output()
            begun = time.monotonic()
            talk.wait_for_line(node, follows, partial(publisher.publish, message))
            assert publisher is answers or time.monotonic() > begun + 0.99  # in which a controller joins
            talk.wait_until(lambda: publisher.get_subscription_count() == 0, "the end of listening")  # noqa: B023
        talk.wait_until(lambda: any(heard[-1].velocities), "motion")


class Rosbag2(Talk):
    """Somebody who hears, by the name of those who record."""

    node_name = "rosbag2_recorder"


@pytest.mark.parametrize("by_rosbag2", [False, True])
def test_it_waits_for_who_records_and_no_sample_is_missing(by_rosbag2: bool, tmp_path: Path) -> None:
    parameters = {"trajectory": EXCITATION, "rate": 200.0, "ramp": 0.5, "duration": 0.5}
    place, bag = "/tn_record/desired_motion", tmp_path / "bag"
    with (
        talking("trajectory_node", parameters | {"start_when_recorded": True}, "tn_record") as (node, talk),
        ExitStack() as stack,
    ):
        node.wait_for_line(f"holding the first position until somebody records {place}")
        talk.hear(DesiredMotion, "desired_motion")  # who hears need not record
        liar = talk.node.create_publisher(String, "recorder/heard", latched_qos())
        liar.publish(String(data=f'{{"{place}": 1}}\n'))
        talk.pause(0.5)
        assert "the motion starts" not in node.output()
        if by_rosbag2:
            rosbag2 = stack.enter_context(Rosbag2("tn_record"))
            heard = rosbag2.hear_nothing_yet(DesiredMotion, "desired_motion")
        else:
            recorder = stack.enter_context(start_node("recorder", {"file": bag}, "tn_record"))
        facts = talk.status("trajectory_node", lambda status, _: status.message == "ended")
        start, end = int(facts["motion start [ns]"]), int(facts["motion end [ns]"])

        # a busy machine may hold up who records, and at its end it takes no more of what has been sent;
        # the node goes on where the motion has ended
        if by_rosbag2:
            rosbag2.wait_until(lambda: heard and nanoseconds(heard[-1].header.stamp) > end, "what follows")
            stamps = [nanoseconds(message.header.stamp) for message in heard]
            stack.close()
            talk.wait_until(lambda: len(talk.node.get_subscriptions_info_by_topic(place)) == 1, "its end")
            here = np.array(heard[-1].positions)
            next_one = trajectory_message([0.0, 0.3], [here.tolist(), (here + 0.1).tolist()])
            talk.publisher(JointTrajectory, "joint_trajectory").publish(next_one)
            talk.wait_until(
                lambda: node.output().count("the motion starts") == 2, "a motion that none records"
            )
        else:
            wait_for_stamp(talk, bag, place, end + 1)
            recorder.end()
            stamps = [stamp_of(message.data) for message in so_far(bag)[place]]
    found = sum(start <= stamp <= end for stamp in stamps)
    assert found == int(facts["motion samples published"]) >= 301 - int(facts["skipped"])


class Arm:
    """A robot that says where it is, fifty times a second."""

    def __init__(self, talk: Talk, names: list[str]) -> None:
        self.positions = dict.fromkeys(names, 0.0)
        self._talk = talk
        self._publisher = talk.publisher(JointState, "joint_states")
        self._timer = talk.node.create_timer(0.02, self._say)

    def _say(self) -> None:
        names = sorted(self.positions, reverse=True)
        positions = [self.positions[name] for name in names]
        self._publisher.publish(JointState(name=names, position=positions))

    def falls_silent(self) -> None:
        self._timer.cancel()


def rests(heard: list[DesiredMotion]) -> bool:
    return not any(any(message.velocities) for message in heard)


def test_it_waits_for_the_robot_and_does_not_start_from_joint_states_that_are_old() -> None:
    parameters = {"trajectory": EXCITATION, "rate": 200.0, "wait_for_robot": True, "start_within": 0.1}
    start = read_trajectory(share.find("config", EXCITATION)).sample(0.0, 0)[0]
    with talking("trajectory_node", parameters, "tn_robot") as (node, talk):
        node.wait_for_line("joint_states have no joint 'panda_joint1' yet")
        heard = talk.hear(DesiredMotion, "desired_motion")
        arm = Arm(talk, NAMES)
        arm.positions = dict(zip(NAMES, start + 0.09))
        del arm.positions["panda_joint3"]  # of which nothing is known then
        talk.pause(0.6)
        arm.positions["panda_joint3"] = start[2] + 0.3
        line = talk.wait_for_line(node, "until the robot is near to it: joint 'panda_joint3' is at")
        assert "0.3 rad (or m) from it, and may be 0.1" in line

        def told(words: str) -> bool:
            answer = talk.call(Trigger, "trajectory_node/start", Trigger.Request())
            assert not answer.success
            return words in answer.message

        # or what it was told is too old, where a busy machine holds the arm up
        away = "the robot is not where the motion starts: joint 'panda_joint3' is at"
        talk.wait_until(lambda: told(away), "the reason")
        talk.status("trajectory_node", lambda status, _: "'panda_joint3'" in status.message)
        assert rests(heard) and node.output().count("holding the first position") == 2
        arm.falls_silent()
        talk.wait_until(lambda: told("joint_states have no joint 'panda_joint1'"), "that they are old")
        assert rests(heard)
        arm = Arm(talk, NAMES)
        arm.positions = dict(zip(NAMES, start - 0.09))
        talk.wait_for_line(node, "the motion starts, without end")
        talk.wait_until(lambda: any(heard[-1].velocities), "motion")


def test_what_a_recorder_has_heard_that_has_gone_is_not_recorded() -> None:
    waits = dict.fromkeys(("start_when_recorded", "wait_for_robot"), True)
    start = read_trajectory(share.find("config", EXCITATION)).sample(0.0, 0)[0]
    with talking("trajectory_node", {"trajectory": EXCITATION, **waits}, "tn_gone") as (node, talk):
        arm = Arm(talk, NAMES)
        arm.positions = dict(zip(NAMES, start + 0.3))
        talk.wait_for_line(node, "until the robot is near to it")
        topics = "/tn_gone/desired_motion", "/tn_gone/joint_states"

        def says() -> Publisher:
            """Somebody says that all of this is recorded."""
            words = [word(topic, gid) for topic in topics for gid in publishers_of(talk.node, topic)]
            recorder = talk.node.create_publisher(String, HEARD, latched_qos())
            recorder.publish(heard_message(words))
            return recorder

        first = says()
        talk.wait_until(lambda: first.get_subscription_count() == 1, "who listens to recorders")
        talk.pause(0.3)
        talk.node.destroy_publisher(first)
        arm.falls_silent()
        arm = Arm(talk, NAMES)  # who hears of this publisher has heard of the end of that one before
        arm.positions = dict(zip(NAMES, start))
        talk.wait_for_line(node, "holding the first position until somebody records /tn_gone/desired_motion")
        assert "the motion starts" not in node.output()
        says()
        talk.wait_for_line(node, "the motion starts")


def test_a_plan_is_led_to_from_where_the_robot_is() -> None:
    """One that names some joints, as planners do, with a jump of the acceleration at both ends."""
    parameters = {"robot_config": "panda.yaml", "rate": 200.0, "wait_for_robot": True}
    with talking("trajectory_node", parameters, "tn_plan") as (node, talk):
        heard = talk.hear_nothing_yet(DesiredMotion, "desired_motion")
        publisher = talk.publisher(JointTrajectory, "joint_trajectory")
        whole = plan(start=0.5)
        some = JointTrajectory(joint_names=whole.joint_names[4:1:-1], points=whole.points)
        for point in some.points:
            for field in ("positions", "velocities", "accelerations"):
                setattr(point, field, getattr(point, field)[4:1:-1])
        publisher.publish(some)
        talk.wait_for_line(node, "joint 'panda_joint1' is missing from the message, and where it rests")
        arm = Arm(talk, NAMES)
        arm.positions = dict(zip(NAMES, HOME - 0.02))
        talk.pause(0.3)

        def started() -> bool:
            publisher.publish(some)
            talk.pause(0.2)
            return "the motion starts, for 1.73 s" in node.output()

        talk.wait_until(started, "the start")
        facts = talk.status("trajectory_node", lambda status, _: status.message == "ended")
        talk.wait_until(lambda: not any(heard[-1].snaps), "the end")
    stamps, stacks = arrays(heard, 5)
    missed = 1e-9 * (stamps[0] - int(facts["motion start [ns]"]))  # [s] of the motion, by a busy machine
    assert missed >= 0.0
    from_start = np.abs(stacks[0, 0] - (HOME - 0.02))
    assert (from_start <= missed * np.abs(stacks[:, 1]).max(axis=0) + 1e-12).all()
    end = HOME - 0.02
    end[2:5] = (HOME + MOVE)[2:5]
    np.testing.assert_allclose(stacks[-1, 0], end, rtol=0, atol=1e-9)
    assert not stacks[-1, 1:].any()
    # without a jump: from one sample to the next nothing changes by more than its derivative says
    steps = np.diff(stamps)[:, None] * 1e-9
    for order in (0, 1, 2):
        bound = 1.5 * np.abs(stacks[:, order + 1]).max(axis=0) * steps + 1e-9
        assert (np.abs(np.diff(stacks[:, order], axis=0)) <= bound).all()


def _from_home(path: Path, duration: float, scale: float) -> Path:
    """Write a motion from the home pose to a multiple of it."""
    ends = [
        f"  - {{time: {time}, positions: {positions.tolist()}, velocities: {[0.0] * 7}}}\n"
        for time, positions in ((0, HOME), (duration, scale * HOME))
    ]
    path.write_text(f"type: waypoints\njoint_names: {NAMES}\npoints:\n{''.join(ends)}")
    return path


def test_it_says_what_is_wrong_with_a_motion_and_who_else_publishes_its_topic(tmp_path: Path) -> None:
    rough = _from_home(tmp_path / "degrees.yaml", 2.0, 57.3)
    rough.write_text(f"interpolation: piecewise\n{rough.read_text()}")
    parameters = {"trajectory": rough, "robot_config": "panda.yaml", "rate": 50.0, "ramp": 0.0}
    with talking("trajectory_node", parameters, "tn_rough") as (node, talk):
        line = node.wait_for_line("derivatives will jump")
        assert "the acceleration (derivative 2) of this PiecewisePolynomial jumps" in line
        line = node.wait_for_line("beyond limits")
        joint = int(np.argmax(np.abs(HOME)))
        assert f"joint 'panda_joint{joint + 1}' goes to {57.3 * HOME[joint]:.4g}" in line and "at 2 s" in line
        node.wait_for_line("the motion starts, for 2 s; 50 Hz, derivatives up to 4")
        other = talk.node.create_publisher(DesiredMotion, "desired_motion", 10)
        words = "/tn_rough/talk publishes desired_motion as well; let one node publish at a time"
        talk.status("trajectory_node", lambda status, _: status.message == words)
        talk.node.destroy_publisher(other)
        talk.status("trajectory_node", lambda status, _: status.message in ("moving", "ended"))


def test_a_look_at_a_motion_shows_a_joint_that_is_too_fast(tmp_path: Path) -> None:
    target = TrajectoryTarget("panda.yaml")
    fast, slow = (_from_home(tmp_path / f"in_{time}.yaml", time, 0.9) for time in (0.02, 2.0))
    assert "moves at" in target.out_of_range(target.fitted(read_motion(fast), "fast"))
    assert not target.out_of_range(target.fitted(read_motion(slow), "slow"))


def test_it_follows_simulated_time() -> None:
    parameters = {"trajectory": EXCITATION, "rate": 100.0, "ramp": 1.0, "use_sim_time": True}
    with talking("trajectory_node", parameters, "tn_sim") as (node, talk):
        clock = talk.node.create_publisher(Clock, "/clock", 10)
        talk.wait_until(lambda: clock.get_subscription_count() > 0, "a subscription of /clock")
        heard = talk.hear_nothing_yet(DesiredMotion, "desired_motion")
        now = 50_000_000_000

        def tick() -> bool:
            nonlocal now
            now += 2_000_000
            clock.publish(Clock(clock=time_message(now)))
            return len(heard) >= 100

        talk.wait_until(tick, "a hundred samples in simulated time")
    stamps, _ = arrays(heard, 1)
    assert stamps[0] >= 50_000_000_000 and stamps[-1] <= now
    np.testing.assert_array_equal(np.unique(np.diff(stamps)), [10_000_000])
