"""What is left swinging of an elastic Panda whose springs are not as modelled, by kinds of motions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.peers.jerk_limited import JerkLimited, Shaped
from benchmarks.plans import panda
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty
from hodyn_ros.simulation.tracking_study import Loop, RobotErrors, StudyConfig, TrackingStudy
from hodyn_ros.trajectory import ScaledTime, WaypointSpline
from hodyn_ros.trajectory.base import Trajectory

GOALS = 5
_SPREAD = 0.5  # of the range of each joint
# [fci], as the limits of config/panda.yaml
ACCELERATION = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
JERK = np.array([7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0])
_AFTERWARDS = 0.4  # [s]
_BAND = (-0.2, 0.2)
_WIDE = (-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3)
_MODES = (FeedforwardMode.RIGID, FeedforwardMode.ELASTIC)


def limited_panda() -> Robot:
    """Return the Panda with the limits of acceleration and jerk of its data sheet as well."""
    robot = panda()
    limits = replace(robot.limits, acceleration=ACCELERATION, jerk=JERK, joint_names=None)
    return Robot(robot.model, limits, robot.drive_train)


def jerk_limited(robot: Robot, start: Array, goal: Array) -> JerkLimited:
    """Return ruckig's motion with the largest share of the jerks at which torques keep their rates."""
    low, high = 1e-3, 1.0
    while high / low > 1.001:
        share = float(np.sqrt(low * high))
        motion = JerkLimited(start, goal, robot.limits.velocity, ACCELERATION, share * JERK)
        torques = robot.inverse_dynamics(motion.sample(np.linspace(0.0, motion.duration, 1000), 3))
        used = max(
            float(np.abs(torques[:, 0] / robot.limits.effort).max()),
            float(np.abs(torques[:, 1] / robot.limits.effort_rate).max()),
        )
        low, high = (share, high) if used <= 1.0 else (low, share)
    return JerkLimited(start, goal, robot.limits.velocity, ACCELERATION, low * JERK)


def slowest_swing(robot: Robot, q: Array) -> float:
    """Return the lowest angular frequency [rad/s] of links and free motors against their springs."""
    train = robot.require_drives()
    inverse = np.linalg.inv(robot.mass_matrix(q[None])[0]) + np.diag(1.0 / train.motor_inertia)
    return float(np.sqrt(np.linalg.eigvals(inverse * train.stiffness).real.min()))


def swings(
    robot: Robot, motion: Trajectory, errors: Sequence[float], modes: Sequence[FeedforwardMode]
) -> Array:
    """Return by how much springs swing after the end (errors,) [rad], with the best of the feedforwards.

    The largest deviation of a deflection from its mean over a period of the slowest swing: what the feedback
    of the motors brings to its place meanwhile, ten times slower, is no swing.
    """
    study = TrackingStudy(robot, motion, StudyConfig(ramp=0.0, afterwards=_AFTERWARDS))
    window = round(2.0 * np.pi / slowest_swing(robot, motion.sample(motion.duration, 0)[0]) * Loop().rate)
    found = np.empty((len(modes), len(errors)))
    for i, mode in enumerate(modes):
        for j, error in enumerate(errors):
            run = study.run(RobotErrors(stiffness=error), mode)
            bent = (run.positions - run.motor_positions)[run.times >= motion.duration]
            found[i, j] = np.abs(without_mean(bent, window)).max()
    return np.asarray(found[np.argmin(found.max(axis=1))])


def without_mean(values: Array, window: int) -> Array:
    """Return values (N, n) less their means over a window about each row; at the ends it stays inside."""
    sums = np.cumsum(np.vstack([np.zeros(values.shape[1]), values]), axis=0)
    means = (sums[window:] - sums[:-window]) / window
    return np.asarray(values - means[np.clip(np.arange(len(values)) - window // 2, 0, len(means) - 1)])


def motions(robot: Robot, start: Array, goal: Array) -> dict[str, Trajectory]:
    """Return motions between two points, by name; the shaped one lasts as long as the insensitive one."""
    path = WaypointSpline(np.array([0.0, 1.0]), np.stack([start, goal]))
    ruckig = jerk_limited(robot, start, goal)
    gentle = time_optimal(path, robot, uncertainty=Uncertainty(stiffness=0.2)).law
    frequency = slowest_swing(robot, goal)
    left = gentle.duration - 2.0 * np.pi / frequency
    return {
        "jerk-limited (ruckig)": ruckig,
        "ZVD-shaped": Shaped(ScaledTime(ruckig, ruckig.duration / left), frequency),
        "time-optimal": time_optimal(path, robot).law,
        "insensitive": gentle,
    }


def points(robot: Robot, seed: int) -> tuple[Array, Array]:
    """Return two random points within the ranges of the joints."""
    rng = np.random.default_rng(seed)
    lower, upper = robot.limits.position_lower, robot.limits.position_upper
    both = 0.5 * (lower + upper) + _SPREAD * (upper - lower) * (rng.random((2, len(lower))) - 0.5)
    return both[0], both[1]


def measure(stage: Stage) -> Section:
    """Compare what is left swinging with springs that are 20 % softer and stiffer."""
    robot, count = limited_panda(), 1 if stage.quick else GOALS
    lasted, against_ruckig, against_shaper = [], [], []
    for found in _found(robot, count, stage):
        (_, ruckig), (_, shaped), _, (motion, gentle) = found.values()
        lasted.append(motion.duration / found["jerk-limited (ruckig)"][0].duration)
        against_ruckig.append(gentle.max() / ruckig.max())
        against_shaper.append(gentle.max() / shaped.max())
    rows = [
        _row("duration, largest", "ruckig", lasted, 1.15),
        _row("swing left, largest", "ruckig", against_ruckig, 0.1),
        _row("swing left, largest", "ZVD shaper, equal duration", against_shaper, 0.5),
    ]
    title = f"motions of an elastic Panda whose springs are 20 % softer or stiffer, {count} goals"
    return Section(title, rows)


def _row(work: str, against: str, ratios: Sequence[float], most: float) -> Row:
    worst = float(max(ratios))
    return Row(work, against, Figure.exact(worst), must=Bound(most))


def _found(robot: Robot, count: int, stage: Stage) -> Iterator[dict[str, tuple[Trajectory, Array]]]:
    for seed in range(count):
        found = {}
        for i, (name, motion) in enumerate(motions(robot, *points(robot, seed)).items()):
            stage.say("motions that hardly swing", (seed + i / 4.0) / count)
            modes = _MODES if i < 2 else _MODES[1:]
            found[name] = motion, swings(robot, motion, _BAND, modes)
        yield found


def sweep(seed: int = 0) -> dict[str, tuple[float, Array]]:
    """Return duration [s] and what is left swinging [µrad] over errors of the stiffness, by motion."""
    robot, found = limited_panda(), {}
    for i, (name, motion) in enumerate(motions(robot, *points(robot, seed)).items()):
        modes = _MODES if i < 2 else _MODES[1:]
        found[name] = motion.duration, 1e6 * swings(robot, motion, _WIDE, modes)
    return found


def draw(found: dict[str, tuple[float, Array]], path: Path) -> None:
    """Draw what a sweep has found."""
    from matplotlib.figure import Figure as Picture

    from hodyn_ros.pictures import legend_below, plain, save_picture

    picture = Picture(figsize=(10.5, 5.0), layout="constrained")
    ax = picture.subplots()
    lines, labels = [], []
    for (name, (duration, swing)), colour in zip(
        found.items(), ("#CC3311", "#EE7733", "#0077BB", "#009988"), strict=True
    ):
        lines += ax.semilogy(100.0 * np.array(_WIDE), swing, "o-", color=colour, linewidth=1.5)
        labels.append(f"{name}, {duration:.3f} s")
    ax.axvspan(100.0 * _BAND[0], 100.0 * _BAND[1], color="black", alpha=0.06)
    ax.set_xlabel("stiffness of the robot against its model [%]")
    ax.set_ylabel("springs swing after the end by [µrad]")
    plain(ax)
    legend_below(picture, lines, labels)
    picture.suptitle("What is left swinging of an elastic Panda", fontsize=12)
    save_picture(picture, path)


if __name__ == "__main__":
    results = sweep()
    for kind, (lasts, left) in results.items():
        print(f"{kind}: {lasts:.3f} s,", *(f"{each:.3g}" for each in left))
    draw(results, Path("docs/pictures/insensitive.png"))
