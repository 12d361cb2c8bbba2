"""When a motion begins in a recording, from what was desired."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.bags.comparison.sources import DESIRED_MOTION
from hodyn_ros.bags.joint_states import read_desired_positions
from hodyn_ros.bags.reader import Bag
from hodyn_ros.learning.repetitions import resampled
from hodyn_ros.trajectory.base import Trajectory

_DEPARTED = 0.02  # of the travel
_SAME = 2e-3  # of the travel, by which a desired motion may be off at any instant
_ROUNDS = 6


def begins_in_bag(path: Path, joint_names: Sequence[str], motion: Trajectory) -> list[float]:
    """Return the stamps [s] at which a motion begins in a bag, by its DesiredMotion; none without these."""
    with Bag(path) as bag:
        topics = [name for name, topic in sorted(bag.topics.items()) if topic.type == DESIRED_MOTION]
        if not topics:
            return []
        desired = read_desired_positions(bag, topics[0], joint_names)
    return begins_of(desired.times, desired.positions, motion)


def begins_of(times: Array, desired: Array, motion: Trajectory) -> list[float]:
    """Return at which `times` [s] positions (N, n) begin to follow a motion, whole and at its own speed."""
    phases = np.linspace(0.0, motion.duration, max(200, round(200.0 * motion.duration)))
    samples = motion.sample(phases, 1)
    path, rates = samples[:, 0], samples[:, 1]
    travel = float(np.ptp(path, axis=0).max())
    away = np.abs(desired - path[0]).max(axis=1) > _DEPARTED * travel
    late = phases[int(np.argmax(np.abs(path - path[0]).max(axis=1) > _DEPARTED * travel))]
    begins: list[float] = []
    for i in np.flatnonzero(away[1:] & ~away[:-1]).tolist():
        begin = float(times[i + 1]) - float(late)
        for _ in range(_ROUNDS):
            gap = resampled(begin + phases, times, desired) - path
            begin -= float(np.sum(gap * rates) / np.sum(rates**2))
        whole = times[0] <= begin + late and begin + motion.duration - late <= times[-1]
        off = np.abs(resampled(begin + phases, times, desired) - path).max()
        if whole and off <= _SAME * travel and (not begins or begin > begins[-1] + 0.5 * motion.duration):
            begins.append(begin)
    return begins
