"""What observer_node said over real DDS, computed again from a recording: the same to the bit."""

import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rich.console import Console
from ros_processes import sound_node
from ros_talk import Talk
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from hodyn_ros import Robot, share
from hodyn_ros.bags.comparison.compare import compare
from hodyn_ros.bags.reader import Bag
from hodyn_ros.msg import ContactEvent, ExternalEfforts, PayloadEstimate
from hodyn_ros.replay.replay import AS_RECORDED, Changes
from hodyn_ros.replay.replay_command import run_replay

ROBOT = Robot.load(share.find("config", "panda.yaml"))
NAMES = list(ROBOT.joint_names)
SAID = ("external_efforts", "contacts", "payload")
RECORDED = [f"/replayed/{name}" for name in ("joint_states", "motor_states", *SAID)]
RECORDED += ["/replayed/observer_node/observer_settings", "/parameter_events"]
MILLISECOND = 1_000_000


class Source:
    """Publishes what sensors of a moving Panda show, at 500 Hz of its own stamps."""

    def __init__(self, talk: Talk) -> None:
        self._publishers = [talk.publisher(JointState, name) for name in ("joint_states", "motor_states")]
        self._talk, self._random = talk, np.random.default_rng(0)
        self.stamp = 1_000_000_000

    def recorded(self) -> bool:
        """Whether the node hears all that is published here, and the recorder that and what the node says."""
        count = self._talk.node.count_subscribers
        said = min(count(f"/replayed/{name}") for name in SAID)  # by this test as well
        taken = min(publisher.get_subscription_count() for publisher in self._publishers)
        return said >= 2 and taken >= 2 and count("/replayed/observer_node/observer_settings") >= 1

    def send(self, count: int = 1, push: float = 0.0) -> None:
        """Publish some samples; `push` on the third joint bends its spring."""
        for _ in range(count):
            self.stamp += 2 * MILLISECOND
            phases = 3e-9 * self.stamp + np.arange(7)
            q = np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]) + 0.2 * np.sin(phases)
            v, a = 0.6 * np.cos(phases), -1.8 * np.sin(phases)
            torque = ROBOT.inverse_dynamics(np.stack([q, v, a]))[0] - push * np.eye(7)[2]
            torque += 0.05 * self._random.standard_normal(7)
            theta = q + torque / ROBOT.require_drives().stiffness
            for publisher, position in zip(self._publishers, (q, theta)):
                message = JointState(name=NAMES, position=position, velocity=v, effort=torque)
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(self.stamp, 10**9)
                publisher.publish(message)
            time.sleep(2e-3)  # a node that the machine holds up is not left behind


def test_a_replay_says_the_same_to_the_bit(tmp_path: Path) -> None:
    bag, again = tmp_path / "first", tmp_path / "again"
    given = {"robot_config": "panda.yaml", "effort_noise": [0.2], "payload_rate": 20.0}
    with (
        sound_node("recorder", {"file": bag, "topics": RECORDED}, "replayed") as recorder,
        sound_node("observer_node", given, "replayed"),
        Talk("replayed") as talk,
    ):
        recorder.wait_for_line("recording into")
        source = Source(talk)
        efforts = talk.hear_nothing_yet(ExternalEfforts, "external_efforts")
        contacts = talk.hear_nothing_yet(ContactEvent, "contacts")
        loads = talk.hear_nothing_yet(PayloadEstimate, "payload")
        talk.wait_until(source.recorded, "the recorder")
        talk.wait_until(lambda: source.send() or efforts, "the first effort")

        recorded = partial(talk.settled, "recorder", "messages")

        def heard() -> int:
            return len(efforts) + len(loads)

        def nothing_is_lost() -> bool:
            count, said = recorded(), heard()
            source.send(50)
            return recorded() - count == 2 * 50 + heard() - said > 3 * 50

        # a publisher of the node may learn of the recorder a second after this test has
        talk.wait_until(nothing_is_lost, "a recorder that hears all")
        earlier = {name: len(said) for name, said in zip(SAID, (efforts, contacts, loads))}

        def put(name: str, held: object) -> None:
            request = SetParameters.Request(parameters=[Parameter(name, value=held).to_parameter_msg()])
            assert talk.call(SetParameters, "observer_node/set_parameters", request).results[0].successful

        source.send(150)
        source.send(100, push=15.0)
        source.send(100)
        put("bandwidth", 120.0)
        source.send(60)
        put("smoothing", 300.0)  # it begins anew, by other code
        source.send(60)
        assert talk.call(Trigger, "observer_node/restart_payload", Trigger.Request()).success
        source.send(60)
        assert talk.call(Trigger, "observer_node/restart", Trigger.Request()).success
        source.send(60)
        source.stamp += 300 * MILLISECOND  # a gap, after which it begins anew
        source.send(60)
        last = source.stamp
        talk.wait_until(lambda: nanoseconds(efforts[-1]) == last, "the last effort")
        talk.wait_until(lambda: nanoseconds(loads[-1]) > last - 50 * MILLISECOND, "the last load")
        assert len(contacts) >= 2 and len(loads) > 10
        recorded()  # what a busy machine holds up would be lost with the recorder
        said = {name: len(said) - earlier[name] for name, said in zip(SAID, (efforts, contacts, loads))}
    console = Console(width=1000, quiet=True)
    run_replay(bag, again, AS_RECORDED, None, None, console)
    with Bag(bag) as first, Bag(again) as second:
        assert first.counts["/replayed/external_efforts"] > 500
        for name in SAID:
            old, new = (list(one.messages([f"/replayed/{name}"])) for one in (first, second))
            assert len(old) >= said[name]
            assert [one.time for one in new[-len(old) :]] == [one.time for one in old]
        found = compare(first, second)  # in which every bit of a number counts
        assert {f"/replayed/{name}" for name in SAID} <= found.topics.keys()
        assert not [name for name, topic in found.topics.items() if topic.differs_between]
    call = partial(run_replay, bag, tmp_path / "other", Changes(order=1), None, None, console)
    refused(call, "leave out --robot")


def nanoseconds(message: ExternalEfforts | PayloadEstimate) -> int:
    stamp = message.header.stamp
    return 1_000_000_000 * stamp.sec + stamp.nanosec
