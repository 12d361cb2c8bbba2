"""Streams of points at random, as policies and operators send them, and motions that follow them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.streams.stream_config import PointsError, Taken
from hodyn_ros.planning.streams.stream_planner import StreamPlanner
from hodyn_ros.planning.streams.tracking_planner import STEP, TrackingPlanner
from hodyn_ros.trajectory.robot_motion import MotionSample

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
# of the data sheet, as in benchmarks/insensitive.py
ACCELERATION = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
JERK = np.array([7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0])


class Message(NamedTuple):
    arrival: float
    times: Array
    positions: Array


@cache
def panda(limited: bool = True) -> Robot:
    """Return the Panda, with limits of acceleration and jerk as well or without."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    limits = replace(robot.limits, acceleration=ACCELERATION, jerk=JERK) if limited else robot.limits
    return Robot(robot.model, limits, robot.drive_train, robot.frames)


def follow(
    planner: StreamPlanner | TrackingPlanner, messages: list[Message], end: float, step: float
) -> tuple[Array, list[Taken | PointsError]]:
    """Return what is published, up to derivative 5, and what became of the messages.

    What is published when a message comes goes on as it would have, up to the snap.
    """
    instants = step * np.arange(int(end / step) + 1)
    pieces, taken, since = [], [], 0.0
    for message in sorted(messages, key=lambda each: each.arrival):
        pieces.append(planner.sample(instants[(instants >= since) & (instants < message.arrival)], 5))
        since = max(message.arrival, since)
        around = message.arrival + STEP * np.array([-1.0, -0.3, 0.0])
        before = planner.sample(around, 5)
        try:
            taken.append(planner.take(message.times, message.positions, message.arrival))
        except PointsError as error:
            taken.append(error)
        np.testing.assert_allclose(planner.sample(around, 5), before, rtol=1e-12, atol=1e-12)
    pieces.append(planner.sample(instants[instants >= since], 5))
    return np.concatenate(pieces), taken


def anything(random: np.random.Generator) -> Iterator[Message]:
    """Yield messages for a second: noisy, late, twice, back in time, wrong and too fast."""
    rate, noise = random.choice([5.0, 20.0, 50.0, 125.0]), random.choice([0.0, 1e-3, 1e-2])
    pace, width = random.choice([0.5, 2.0, 8.0]), random.choice([0.05, 0.3, 1.5])
    phase, skew = random.uniform(0.0, 6.0, 7), random.choice([0.0, 0.0, -3.0, 0.2, 1.0])
    clock = random.choice([1.0, 1.0, 0.5, 2.0])
    offset, now = np.zeros(7), 0.0
    while now < 1.0:
        now += random.choice([1.0, 1.0, 1.0, 0.2, 4.0]) / rate
        fault = random.choice(["", "", "", "jump", "nan", "back", "beyond", "late", "chunk", "fast", "empty"])
        times = np.array([clock * now + skew - random.uniform(0.0, 0.01)])
        if fault == "jump":
            offset = random.uniform(-0.6, 0.6, 7)
        if fault in ("chunk", "fast"):
            times = (
                times
                + random.uniform(-0.2, 0.1)
                + random.choice([0.005, 0.02, 0.1]) * np.arange(random.integers(2, 40))
            )
        if fault == "back":
            times = times - random.uniform(0.0, 0.5)
        faster = 4.0 if fault == "fast" else 1.0
        positions = HOME + offset + width * np.sin(pace * faster * times[:, None] + phase)
        positions += noise * random.normal(size=positions.shape)
        if fault == "nan":
            positions[-1, random.integers(7)] = random.choice([np.nan, np.inf])
        if fault == "beyond":
            positions[:, random.integers(7)] += 4.0
        if fault == "empty":
            times, positions = times[:0], positions[:0]
        yield Message(now + (random.uniform(0.0, 0.2) if fault == "late" else 0.0), times, positions)


def largest_usage(robot: Robot, motion: Array) -> tuple[float, str]:
    """The largest share of a limit that a motion uses, and of which."""
    limits = LimitSet(robot)
    usage = limits.usage(np.abs(limits.relative(MotionSample(motion)).values)).max(axis=0)
    return float(usage.max()), str(limits.columns[int(np.argmax(usage))])
