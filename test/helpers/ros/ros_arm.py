"""A simulated Panda that its nodes move in real time, for tests of what goes wrong on the way."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from ros_hold_ups import TOLERANT, HeardArm, wait_unstopped
from ros_processes import RosProcess, start_node
from ros_talk import Talk
from std_srvs.srv import Trigger

from hodyn_ros import Robot, share

PANDA, MOTION = "panda.yaml", "panda_excitation.yaml"
RATE = 200.0  # [Hz]
LIMITS = Robot.load(share.find("config", PANDA)).limits
NODES: Mapping[str, Mapping[str, object]] = {
    "simulator_node": {"robot_config": PANDA, "trajectory": MOTION, "rate": RATE, "command_timeout": 1.0},
    "controller_node": {"robot_config": PANDA, "lead": 0.003, "patience": 1.5 / RATE, **TOLERANT},
    "dynamics_node": {"robot_config": PANDA},
    "trajectory_node": {"trajectory": MOTION, "rate": RATE, "auto_start": False},
}


class Arm:
    """A simulated Panda that follows a motion, its nodes, and what they send.

    Somebody between the nodes may pass messages on; `told` names the topics that a node hears from there.
    """

    def __init__(self, talk: Talk, stack: ExitStack, namespace: str) -> None:
        self.talk, self.stack, self.namespace = talk, stack, namespace
        self.told: Mapping[str, Sequence[str]] = {}
        self.nodes: dict[str, RosProcess] = {}
        self.heard = HeardArm(talk)
        self.commands, self.links = self.heard.commands, self.heard.links
        self.status: dict[str, str] = {}  # what the controller last said of itself
        self._kept = talk.node.create_subscription(DiagnosticArray, "/diagnostics", self._take_status, 100)

    def _take_status(self, msg: DiagnosticArray) -> None:
        for status in msg.status:
            if status.name == f"{self.namespace}/controller_node":
                self.status = {item.key: item.value for item in status.values}

    def start(self, *names: str) -> None:
        """Start some of the `NODES`, or all."""
        for name in names or NODES:
            topics = {topic: f"{topic}_told" for topic in self.told.get(name, ())}
            node = start_node(name, NODES[name], self.namespace, names=topics)
            self.nodes[name] = self.stack.enter_context(node)

    @property
    def controller(self) -> RosProcess:
        """The node with the guard."""
        return self.nodes["controller_node"]

    def wait_for(self, node: str, text: str) -> None:
        """Wait until a node has written a line."""
        self.talk.wait_for_line(self.nodes[node], text)

    def follow(self) -> None:
        """Wait until the arm moves fast."""
        following = "joining -> following"
        wait_unstopped(self.talk, self.controller, lambda: following in self.controller.output(), following)
        self.move()
        wait_unstopped(self.talk, self.controller, lambda: self.speed() > 0.4, "a fast motion")

    def stops(self, *reasons: str) -> None:
        """Wait until the controller stops, which has to be for one of these reasons."""
        line = self.talk.wait_for_line(self.controller, "following -> stop")
        assert any(f"following -> {reason}" in line for reason in reasons), line

    def move(self) -> None:
        """Start the motion."""
        assert self.talk.call(Trigger, "trajectory_node/start", Trigger.Request()).success

    def speed(self) -> float:
        """The present speed of the links, as a share of their limits."""
        return float(np.max(np.abs(self.links[-1].velocity) / LIMITS.velocity)) if self.links else 0.0

    def check(self, since: int = 0, links_since: int = 0, let_go: bool = False) -> None:
        """Hold commands and speeds against the bars; `let_go`: the motors may be, by commands of zero."""
        speeds = np.array([message.velocity for message in self.links[links_since:]]) / LIMITS.velocity
        assert np.abs(speeds).max() <= 1.2
        efforts = [np.array(message.data) for message in self.commands[since:]]
        for before, after in zip(efforts, efforts[1:]):
            assert np.isfinite(after).all()
            if len(before) and len(after) and (after.any() or not let_go):
                # a late command may go as far as its rate allows for the time since the one before it
                assert np.abs(after - before).max() <= 25.0


@contextmanager
def arm(namespace: str) -> Iterator[Arm]:
    """Yield an arm without nodes; where a test of it fails, print what its nodes have written."""
    with Talk(namespace) as talk, ExitStack() as stack:
        found = Arm(talk, stack, namespace)
        try:
            yield found
        except BaseException:
            for node in found.nodes.values():
                print(node.output())
            print(found.status)
            raise
