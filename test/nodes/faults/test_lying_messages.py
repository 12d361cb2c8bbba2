"""False measurements, feedforwards and motors between real nodes, over real DDS; see ros_liar.py.

The same in virtual time, with all moments and combinations: test_false_signals.py, test_fault_campaign.py.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from fault_lies import Lie
from ros_hold_ups import TOLERANT, HeardArm, try_out, wait_unstopped
from ros_processes import RosProcess, start_node, start_script
from ros_talk import Talk
from std_srvs.srv import Trigger
from sweeps import some

from hodyn_ros import Robot, share

pytestmark = [pytest.mark.realtime, pytest.mark.thorough]

PANDA, MOTION = "panda.yaml", "panda_excitation.yaml"
RATE = 200.0  # [Hz]
LIMITS = Robot.load(share.find("config", PANDA)).limits
ALL = tuple(range(7))
GOES_ON = {"one velocity of 1e308", "one position of NaN", "one false velocity"}
LIES = {
    "one velocity of 1e308": Lie("measured velocity", "not a number", (1,), 1e308, 0, 6),
    "one position of NaN": Lie("measured position", "not a number", (1,), np.nan, 0, 6),
    "one false velocity": Lie("measured velocity", "offset", (1,), 5.0, 0, 6),
    "the encoder of joint 2 freezes": Lie("measured position", "freezes", (1,)),
    "the encoder of joint 4 freezes": Lie("measured motion", "freezes", (3,)),
    "all measurements freeze": Lie("measured motion", "freezes", ALL),
    "velocities are turned": Lie("measured velocity", "turned about zero", ALL),
    "velocities read zero": Lie("measured velocity", "zero", ALL),
    "joints 1 and 2 are swapped": Lie("measured motion", "swapped", (0, 1)),
    "a position jumps": Lie("measured position", "offset", (3,), 0.3),
    "a position drifts": Lie("measured position", "drifts", (3,), 1.0),
    "a position runs the other way": Lie("measured position", "turned", (1,)),
    "measurements end": Lie("measurements", "lost", (), 1.0),
    "measurements are stamped wrongly": Lie("measurements", "stamps off", (), 60.0),
    "a large acceleration": Lie("feedforward acceleration", "offset", (1,), 1e4, 0, 20),
    "another motion": Lie("feedforward position", "offset", (1,), 0.3),
    "false efforts": Lie("feedforward effort", "offset", (1,), 80.0),
    "efforts are NaN": Lie("feedforward effort", "not a number", (1,), np.nan),
    "feedforwards end": Lie("feedforwards", "lost", (), 1.0),
    "a motor is turned": Lie("robot", "turned", (3,)),
    "a motor is weak": Lie("robot", "weak", (1,), 5.0),
    "motors are swapped": Lie("robot", "swapped", (0, 1)),
}


class LiedTo:
    """A simulated Panda, its nodes, and between them somebody who lies."""

    def __init__(self, talk: Talk, stack: ExitStack, namespace: str) -> None:
        self.talk = talk
        self.heard = HeardArm(talk)
        self.commands, self.links = self.heard.commands, self.heard.links

        def start(name: str, told: tuple[str, ...], **parameters: object) -> RosProcess:
            names = {topic: f"{topic}_told" for topic in told}
            return stack.enter_context(start_node(name, parameters, namespace, names=names))

        self.liar = stack.enter_context(start_script("ros_liar.py", namespace=namespace))
        self.simulator = start(
            "simulator_node",
            ("effort_commands",),
            robot_config=PANDA,
            trajectory=MOTION,
            rate=RATE,
            command_timeout=1.0,
        )
        self.controller = start(
            "controller_node",
            ("motor_states", "feedforward_torque"),
            robot_config=PANDA,
            lead=0.003,
            patience=1.5 / RATE,
            **TOLERANT,
        )
        start("dynamics_node", (), robot_config=PANDA)
        start("trajectory_node", (), trajectory=MOTION, rate=RATE, auto_start=False)

    def follow(self) -> None:
        """Wait until the arm moves fast."""
        following = "joining -> following"
        wait_unstopped(self.talk, self.controller, lambda: following in self.controller.output(), following)
        assert self.talk.call(Trigger, "trajectory_node/start", Trigger.Request()).success
        wait_unstopped(self.talk, self.controller, lambda: self.speed() > 0.4, "a fast motion")

    def speed(self) -> float:
        """The present speed of the links, as a share of their limits."""
        return float(np.max(np.abs(self.links[-1].velocity) / LIMITS.velocity)) if self.links else 0.0

    def check(self) -> None:
        """Hold commands and speeds against the bars."""
        speeds = np.array([message.velocity for message in self.links]) / LIMITS.velocity
        assert np.abs(speeds).max() <= 1.2
        efforts = [np.array(message.data) for message in self.commands]
        for before, after in zip(efforts, efforts[1:]):
            assert np.isfinite(after).all()
            if len(before) and len(after) and after.any():  # zero is where the motors are let go
                # a late command may go as far as its rate allows for the time since the one before it
                assert np.abs(after - before).max() <= 25.0


@contextmanager
def lied_to(namespace: str) -> Iterator[LiedTo]:
    with Talk(namespace) as talk, ExitStack() as stack:
        yield LiedTo(talk, stack, namespace)


def is_lied_to(arm: LiedTo, name: str) -> None:
    arm.follow()
    arm.liar.tell(repr(LIES[name]))
    arm.talk.wait_for_line(arm.liar, "from now on")
    if name in GOES_ON:
        arm.talk.pause(1.0)
    else:
        arm.talk.wait_until(
            lambda: "following -> stop" in arm.controller.output(), "a stop of what is lied to"
        )
        arm.talk.wait_until(lambda: arm.speed() < 0.05, "a standstill")
        arm.talk.pause(0.5)
        joined = arm.controller.output().count("-> joining")
        assert joined == 1 or name == "feedforwards end", "it has gone on by itself"
    assert arm.controller.running and arm.liar.running
    assert "Traceback" not in arm.controller.output()
    arm.check()
    assert arm.controller.stop(signal.SIGTERM) == 0, arm.controller.output()


@pytest.mark.parametrize("name", some(LIES, "the encoder of joint 2 freezes"))
def test_what_lies_between_nodes_moves_no_robot_beyond_the_bars(name: str) -> None:
    try_out(lied_to, partial(is_lied_to, name=name), f"lies_{list(LIES).index(name)}")
