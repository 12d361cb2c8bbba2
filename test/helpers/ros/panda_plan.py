"""A motion of the Panda as a planner sends it, for the tests of what takes trajectories."""

import numpy as np
from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

NAMES = [f"panda_joint{i}" for i in range(1, 8)]
HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
MOVE = np.array([0.2, 0.1, -0.15, 0.2, 0.1, -0.15, 0.2])


def plan(duration: float = 1.23, start: float = 0.0, step: float = 0.1) -> JointTrajectory:
    """Full acceleration, then full braking: positions, velocities and accelerations at even steps."""
    times = np.append(np.arange(0.0, duration, step), duration)
    gain = 4.0 / duration**2
    early = times < 0.5 * duration
    left = duration - times
    path = np.where(early, 0.5 * gain * times**2, 1.0 - 0.5 * gain * left**2)
    pace = np.where(early, gain * times, gain * left)
    push = np.where(early, gain, -gain)
    points = [
        JointTrajectoryPoint(
            positions=list(HOME + s * MOVE),
            velocities=list(v * MOVE),
            accelerations=list(a * MOVE),
            time_from_start=after(start + t),
        )
        for t, s, v, a in zip(times, path, pace, push)
    ]
    return JointTrajectory(joint_names=list(NAMES), points=points)


def after(seconds: float) -> Duration:
    """Return a duration message."""
    nanoseconds = round(1e9 * seconds)
    return Duration(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)
