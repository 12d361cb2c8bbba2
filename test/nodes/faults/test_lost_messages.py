"""Consumers that lose 10 % of the feedforwards: their torque error over real DDS against its bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from run_examples import run_quickly

from hodyn_ros import Robot, share
from hodyn_ros.feedforward.extrapolation import error_bound
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.trajectory import read_trajectory

PERIOD = 10  # [ms] of the feedforward
DURATION = 600  # [ms]
FADE = 100  # [ms] at the start
ORDER = 4  # so that motor efforts have two derivatives, as link efforts have at order 2
BEGIN = 6.4  # [s] into the motion, where torques change fast
MS = 1_000_000  # [ns]


def test_the_example_shows_errors_within_their_bounds(tmp_path: Path) -> None:
    lines = run_quickly("lost_messages", tmp_path, ("lost_messages.png",))
    assert lines[0] == "lost 21 of 200 messages; carried on for up to 0.039 s"
    table = [[float(word) for word in line.split()[1:]] for line in lines[2:5]]
    for error, bound, step in table:
        assert 0.3 * bound < error <= bound
        assert step <= 1.1 * bound  # one command later than the last error before it
    assert table[0][0] > 10.0 * table[1][0] > 200.0 * table[2][0]


def test_torques_of_consumers_that_lose_messages_stay_within_the_bound() -> None:
    """dynamics_node answers a motion; one message in ten is dropped before the consumers get it."""
    pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
    from ros_clock import SimulatedClock
    from ros_processes import start_node
    from ros_talk import Talk
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
    from hodyn_ros.ros.conversions.messages import time_message, write_desired_motion

    robot = Robot.load(share.find("config", "panda.yaml"))
    motion = read_trajectory(share.find("config", "panda_excitation.yaml"))
    law = FeedforwardModel(robot, ORDER + 1)
    exact = [law.compute(motion.sample(BEGIN + 1e-3 * ms, ORDER + 3)) for ms in range(DURATION)]
    names = list(robot.joint_names)
    kept = np.random.default_rng(11).random(DURATION // PERIOD) >= 0.1
    kept[: FADE // PERIOD + 2] = True

    common = {
        "joints": names,
        "use_sim_time": True,
        "rate": 1000.0,
        "fade": 1e-3 * FADE,
        "timeout": 0.1,
        "settle": 0.0,
        "join_within": 0.0,
    }
    found: dict[str, list[np.ndarray]] = {"effort": [], "position": [], "motor effort": []}
    with (
        start_node("dynamics_node", {"robot_config": "panda.yaml", "order": ORDER}, "loss"),
        start_node("forward_effort_node", common, "loss_effort"),
        start_node("motor_reference_node", common, "loss_motor"),
        Talk("loss") as talk,
    ):
        motions = talk.publisher(DesiredMotion, "desired_motion")
        answers = talk.hear_nothing_yet(FeedforwardTorque, "feedforward_torque")
        lossy = [
            talk.publisher(FeedforwardTorque, f"/loss_{n}/feedforward_torque") for n in ("effort", "motor")
        ]
        efforts = talk.hear_nothing_yet(Float64MultiArray, "/loss_effort/effort_commands")
        references = talk.hear_nothing_yet(JointState, "/loss_motor/motor_references")
        clock = SimulatedClock(talk, nodes=2)
        for ms in range(DURATION):
            now = clock.start + ms * MS
            if ms % PERIOD == 0:
                sample = motion.sample(BEGIN + 1e-3 * ms, ORDER + 2)
                motions.publish(write_desired_motion(names, time_message(now), sample))
                talk.wait_until(lambda: len(answers) > ms // PERIOD, "an answer")  # noqa: B023
                for publisher in lossy if kept[ms // PERIOD] else ():
                    publisher.publish(answers[-1])
            clock.set(now)
            if ms > 0:
                heard = f"commands after {ms} ms"
                talk.wait_until(lambda: len(efforts) == ms and len(references) == ms, heard)  # noqa: B023
        for effort, reference in zip(efforts[FADE:], references[FADE:]):
            found["effort"].append(np.array(effort.data))
            found["position"].append(np.array(reference.position))
            found["motor effort"].append(np.array(reference.effort))
    arrivals = PERIOD * np.flatnonzero(kept)
    h = 1e-3 * float(np.diff(arrivals).max())  # the longest that a message was carried on
    assert h >= 2e-3 * PERIOD

    def largest(derivatives: list[np.ndarray]) -> np.ndarray:
        return np.abs(derivatives).max(axis=0)

    # what the motors need beside the link efforts has two derivatives in the message, the link efforts four
    link_bound = error_bound(largest([f.efforts[5] for f in exact]), 4, h)
    rest_bound = error_bound(largest([f.motor_efforts[3] - f.efforts[3] for f in exact]), 2, h)
    bounds = {
        "effort": link_bound,
        "position": error_bound(largest([f.motor_positions[3] for f in exact]), 2, h),
        "motor effort": rest_bound + link_bound,
    }
    shown = exact[FADE + 1 :]
    for name, stacks in (
        ("effort", [f.efforts for f in shown]),
        ("position", [f.motor_positions for f in shown]),
        ("motor effort", [f.motor_efforts for f in shown]),
    ):
        errors = np.abs(np.array(found[name]) - [stack[0] for stack in stacks])
        assert (errors <= bounds[name] + 1e-12).all(), name
        assert errors.max() >= 0.01 * bounds[name].max()
        # held values would be off by a step
        steps = np.abs(np.diff([stack[0] for stack in stacks[::PERIOD]], axis=0))
        assert steps.max() > 100.0 * errors.max(), name
