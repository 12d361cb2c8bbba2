"""False measurements, feedforwards and motors between real nodes, over real DDS; see ros_liar.py.

The same in virtual time, with all moments and combinations: test_false_signals.py, test_fault_campaign.py.
"""

from __future__ import annotations

import signal
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from fault_lies import Lie
from ros_arm import Arm, arm
from ros_hold_ups import try_out
from ros_processes import start_script
from sweeps import some

pytestmark = [pytest.mark.realtime, pytest.mark.thorough]

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


def is_lied_to(a: Arm, name: str) -> None:
    """Let a simulated Panda follow a motion while somebody lies between its nodes."""
    liar = a.stack.enter_context(start_script("ros_liar.py", namespace=a.namespace))
    a.told = {
        "simulator_node": ("effort_commands",),
        "controller_node": ("motor_states", "feedforward_torque"),
    }
    a.start()
    a.follow()
    liar.tell(repr(LIES[name]))
    a.talk.wait_for_line(liar, "from now on")
    if name in GOES_ON:
        a.talk.pause(1.0)
    else:
        a.talk.wait_until(lambda: "following -> stop" in a.controller.output(), "a stop of what is lied to")
        a.talk.wait_until(lambda: a.speed() < 0.05, "a standstill")
        a.talk.pause(0.5)
        joined = a.controller.output().count("-> joining")
        assert joined == 1 or name == "feedforwards end", "it has gone on by itself"
    assert a.controller.running and liar.running
    assert "Traceback" not in a.controller.output()
    a.check(let_go=True)
    assert a.controller.stop(signal.SIGTERM) == 0, a.controller.output()


@pytest.mark.parametrize("name", some(LIES, "the encoder of joint 2 freezes"))
def test_what_lies_between_nodes_moves_no_robot_beyond_the_bars(name: str) -> None:
    try_out(arm, partial(is_lied_to, name=name), f"lies_{list(LIES).index(name)}")
