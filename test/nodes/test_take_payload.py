"""dynamics_node carries what an observer says, on request, faded, and never by itself; over real DDS."""

from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from ros_clock import SimulatedClock
from ros_peer import Peer, node_and_peer
from ros_processes import RosProcess
from ros_stream import JOINTS, motion
from ros_talk import talking
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from std_srvs.srv import Trigger

from hodyn_ros import Robot, share
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.msg import FeedforwardTorque, PayloadEstimate
from hodyn_ros.nodes.feedforward_pipeline import FeedforwardPipeline
from hodyn_ros.ros.conversions.messages import (
    time_message,
    write_desired_motion,
    write_feedforward_torque,
)
from hodyn_ros.ros.streams.qos import latched_qos

SPACE, FADE = "take_payload", 0.4
LOAD = Payload(1.2, (0.02, 0.0, 0.1), (0.004, 0.0, 0.0, 0.005, 0.0, 0.003), "panda_link7")


@cache
def models() -> list[FeedforwardModel]:
    """Return what holds without and with the load."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    return [FeedforwardModel(robot, 2) for robot in (panda, panda.with_tree(LOAD.on_tree(panda)))]


PARAMETERS = {"robot_config": "panda.yaml", "payload_fade": FADE, "payload_limit": 3.0}
both, node, peer = node_and_peer(PARAMETERS, SPACE)


class Stream:
    """Asks for the feedforward of a motion, 100 samples a second of its own stamps."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.now = peer, 0
        self.questions: list[Any] = []
        self.answers: list[FeedforwardTorque] = []

    def ask(self, model: FeedforwardModel | None = None) -> np.ndarray:
        """Ask for one more; hold it against that of a model, if there is one. Return the efforts."""
        self.now += 10_000_000
        stack = motion(self.now)
        self.questions.append(write_desired_motion(JOINTS, time_message(self.now), stack))
        self.answers.append(self.peer.answer_to(self.questions[-1]))
        if model is not None:
            expected = model.compute(stack)
            np.testing.assert_allclose(self.answers[-1].efforts, expected.efforts[0], rtol=1e-12, atol=1e-12)
        return np.array(self.answers[-1].efforts)


def estimate(**changes: Any) -> PayloadEstimate:
    xx, xy, xz, yy, yz, zz = LOAD.inertia
    message = PayloadEstimate(mass=LOAD.mass, centre=list(LOAD.centre), inertia=[xx, xy, xz, yy, yz, zz])
    message.header.frame_id = LOAD.body
    for name, given in changes.items():
        setattr(message, name, given)
    return message


def test_a_load_is_carried_on_request_and_faded(node: RosProcess, peer: Peer) -> None:
    told, settings = peer.publisher(PayloadEstimate, "payload"), list[str]()
    kept = peer.node.create_subscription(  # noqa: F841  the subscription lives as long as it has a name
        String, "dynamics_node/settings", lambda msg: settings.append(msg.data), latched_qos()
    )

    def call(name: str) -> Any:
        return peer.call(Trigger, name, Trigger.Request())

    stream, (without, loaded) = Stream(peer), models()
    refused = call("take_payload")
    assert not refused.success and "nothing has come on payload" in refused.message
    for changes, words in (
        ({"hidden": ["centre z", "inertia xx"]}, "not yet shown centre z of the load"),
        ({"mass": 3.5}, "payload_limit allows 3 kg"),
        ({"mass": float("nan")}, "payload_limit allows 3 kg"),
        ({"inertia": [1.0, 0.0, 0.0, 1.0, 0.0, 3.0]}, "which no body has"),
    ):
        told.publish(estimate(**changes))
        peer.wait_until(lambda w=words: w in call("take_payload").message, words)
    told.publish(estimate())
    stream.ask(without)  # nothing follows by itself
    peer.wait_until(lambda: call("take_payload").success, "an estimate that can be taken")
    peer.wait_until(lambda: '"fade": {' in settings[-1], "the new settings")

    first = stream.ask(without)
    refused = peer.set_parameters(clamp=True)
    assert not refused.successful and "a load is being faded" in refused.reason
    assert "a load is being faded" in call("drop_payload").message
    efforts = [first, *(stream.ask() for _ in range(round(100 * FADE) - 1))]
    last = stream.ask(loaded)
    whole = np.abs(last - first).max()
    steps = np.abs(np.diff([*efforts, last], axis=0)).max(axis=1)
    assert whole > 5.0 and steps.max() < 0.1 * whole and steps[0] < 0.01 * whole
    stream.ask(loaded)

    copy = FeedforwardPipeline.from_settings(next(text for text in settings if '"fade": {' in text))
    taken = slice(1, None)
    for question, answer in zip(stream.questions[taken], stream.answers[taken], strict=True):
        again = copy.answer(question)
        again.computation_time = answer.computation_time
        assert again == answer  # to the last bit: bags can be replayed

    assert peer.set_parameters(payload_mass=0.0).successful  # the load that was taken stays
    stream.ask(loaded)
    assert call("drop_payload").success
    stream.ask(loaded)
    for _ in range(round(100 * FADE) - 1):
        stream.ask()
    stream.ask(without)
    assert node.stop() == 0, node.output()


def test_a_guard_counts_with_a_load_on_request() -> None:
    given = {"robot_config": "panda.yaml", "payload_fade": 0.2, "payload_limit": 3.0}
    with talking("controller_node", given, "guard_payload") as (node, talk):
        told = talk.publisher(PayloadEstimate, "payload")

        def call(name: str) -> Any:
            return talk.call(Trigger, f"controller_node/{name}", Trigger.Request())

        assert "nothing has come on payload" in call("take_payload").message
        told.publish(estimate(hidden=["mass"]))
        talk.wait_until(lambda: "not yet shown mass" in call("take_payload").message, "what is hidden")
        key = "load that the guard counts with [kg]"
        talk.status("controller_node", lambda _, values: float(values[key]) == 0.0)
        told.publish(estimate())
        talk.wait_until(lambda: call("take_payload").success, "an estimate that can be taken")
        talk.status("controller_node", lambda _, values: float(values[key]) == pytest.approx(1.2))
        talk.wait_until(lambda: call("drop_payload").success, "the end of the fade")
        talk.status("controller_node", lambda _, values: float(values[key]) == 0.0)
        assert node.stop() == 0, node.output()


@pytest.mark.thorough
def test_a_guard_counts_with_no_load_that_the_motion_contradicts() -> None:
    """2 kg that the robot does not carry are uncertain; with 3 kg it would stop, and push the robot up."""
    pose = [0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]
    stack = np.array([pose, *np.zeros((4, 7))])
    still = models()[0].compute(stack)
    given = {"robot_config": "panda.yaml", "joints": list(JOINTS), "use_sim_time": True, "rate": 100.0}
    given |= {"settle": 0.05, "fade": 0.02, "efforts": "motor", "payload_fade": 0.1}
    with talking("forward_effort_node", given, "guard_payload_seen") as (node, talk):
        sends = talk.publisher(FeedforwardTorque, "feedforward_torque")
        shows, told = talk.publisher(JointState, "joint_states"), talk.publisher(PayloadEstimate, "payload")
        clock = SimulatedClock(talk)
        for _ in range(500):  # until the motion is followed
            if "joining -> following" in node.output():
                break
            clock.set(clock.now + 4_000_000)
            talk.pause(0.005)
            stamp = time_message(clock.now)  # whoever has missed the last instant may still take it
            sends.publish(write_feedforward_torque(Header(stamp=stamp), list(JOINTS), still, 0.0))
            shows.publish(JointState(header=Header(stamp=stamp), name=list(JOINTS), position=pose))
        talk.wait_until(lambda: "joining -> following" in node.output(), "the motion to be followed")

        def answer() -> Any:
            return talk.call(Trigger, "forward_effort_node/take_payload", Trigger.Request())

        told.publish(estimate(mass=3.0, centre=[0.0, 0.0, 0.2]))
        talk.wait_until(lambda: "does not move as if it carried 3.000 kg" in answer().message, "a refusal")
        told.publish(estimate(mass=0.5))
        talk.wait_until(lambda: answer().success, "a load that may be there")
        for _ in range(500):  # until it is stopped, as nothing more comes
            if "following -> stopping" in node.output():
                break
            clock.set(clock.now + 4_000_000)
            talk.pause(0.005)
        assert "the robot is being stopped" in answer().message
        assert node.stop() == 0, node.output()
