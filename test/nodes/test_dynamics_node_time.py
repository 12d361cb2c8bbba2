"""What docs/nodes.md says about time: late, early, repeated and backward samples, and simulated time."""

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from ros_peer import Peer, asked, node_and_peer
from ros_processes import RosProcess
from ros_stream import JOINTS, motion
from rosgraph_msgs.msg import Clock

from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.messages import nanoseconds, read_wrenches, time_message, write_desired_motion

SECOND = 1_000_000_000
HAND = "panda_link7"


def desired(nanosecond: int) -> DesiredMotion:
    return write_desired_motion(JOINTS, time_message(nanosecond), motion(0))


both, node, peer = node_and_peer({"robot_config": "panda.yaml", "new_clock_after": 2.0}, "time")


def test_stamps_only_have_to_increase_also_of_what_piles_up(peer: Peer, node: RosProcess) -> None:
    now = time.time_ns()
    accepted = [
        1,  # decades late
        now - 3600 * SECOND,  # a jump ahead, and still late
        now,
        now + 3600 * SECOND,  # early
        now + 3600 * SECOND + 1,  # a nanosecond is enough
    ]
    for instant in accepted:
        assert nanoseconds(peer.answer_to(desired(instant)).header.stamp) == instant
    last = accepted[-1]
    peer.send(desired(last))  # repeated
    peer.send(desired(last - 1))  # backwards
    peer.send(desired(now))
    values = peer.diagnostics(lambda values: int(values["rejected"]) >= 3)
    assert values["rejected: time going backwards"] == "3"
    assert values["answered"] == "5"
    line = next(line for line in node.lines if "desired_motion rejected" in line)
    assert "is that of the last accepted one; stamps must increase" in line
    # rejected samples do not count: the next one goes on from the last accepted
    peer.answer_to(desired(last + 1))
    # silence for longer than new_clock_after: a clock that starts again is followed
    peer.diagnostics(lambda values: float(values["age of the last answer [s]"]) > 2.0)
    peer.answer_to(desired(5))
    peer.send(desired(4))
    peer.diagnostics(lambda values: values["rejected: time going backwards"] == "4")
    # so it is after an activation
    assert peer.transition("deactivate")
    assert peer.transition("activate")
    peer.answer_to(desired(2))
    piled_up = range(3, 503)  # at once, far faster than they are answered one by one
    for stamp in piled_up:
        peer.send(desired(stamp))
    peer.wait_until(lambda: len(peer.answers) == 8 + len(piled_up), "all answers")
    assert peer.stamps() == [*accepted, last + 1, 5, 2, *piled_up]


def test_simulated_time_is_for_wrenches_and_stamps_of_diagnostics() -> None:
    parameters = {
        "robot_config": "panda.yaml",
        "use_sim_time": True,
        "wrench_bodies": f"[{HAND}]",
        "wrench_cutoff": 20.0,
        "wrench_timeout": 1.0,
    }
    with asked(parameters, "sim") as (node, peer):
        clock = peer.node.create_publisher(Clock, "/clock", 10)
        sensor = peer.node.create_publisher(WrenchStamped, f"external_wrench/{HAND}", 10)
        peer.wait_until(lambda: clock.get_subscription_count() > 0, "the node at the clock")
        peer.wait_until(lambda: sensor.get_subscription_count() > 0, "the node at the sensor")
        sent = [0]

        def ask() -> np.ndarray:
            sent[0] += 1
            found = read_wrenches(peer.answer_to(desired(sent[0])))
            assert found is not None
            return found[0]

        def set_clock(nanosecond: int) -> None:
            def arrived() -> bool:
                clock.publish(Clock(clock=time_message(nanosecond)))  # some may be lost
                # the diagnostics are stamped by the clock of the node
                return bool(peer.stamped) and peer.stamped[-1] == nanosecond

            peer.wait_until(arrived, "the time")

        set_clock(100 * SECOND)

        def measured(values: dict[str, str]) -> bool:
            sensor.publish(WrenchStamped(wrench=Wrench(force=Vector3(z=-50.0))))  # some may be lost
            return int(values[f"wrench on {HAND}: messages"]) >= 1

        peer.diagnostics(measured)
        assert not ask().any()  # time stands still, and the filter with it
        set_clock(100 * SECOND + SECOND // 100)
        first = ask()
        assert -50.0 < first[0, 5] < -1.0
        np.testing.assert_array_equal(ask(), first)
        set_clock(100 * SECOND + SECOND // 2)
        np.testing.assert_allclose(ask()[0, 5], -50.0, rtol=1e-9, atol=0.0)
        set_clock(105 * SECOND)  # beyond the timeout
        assert np.abs(ask()).max() < 1e-9
