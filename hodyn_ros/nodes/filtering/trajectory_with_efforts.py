"""From a JointTrajectory to one with efforts: all that trajectory_filter computes, without its node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration
from numpy.typing import NDArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError, OverflowingError
from hodyn_ros.planning.check import Finding
from hodyn_ros.planning.effort_trajectory import EffortFilter, EffortTrajectory
from hodyn_ros.planning.report import nearer_limit
from hodyn_ros.planning.retime import InfeasibleError
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.messages import read_partial_trajectory
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.trajectory.splines.densify import Waypoints
from hodyn_ros.trajectory.splines.start import PresentState

# More points than this come from a mistake in the period or in the times, and would fill the memory.
MOST_POINTS = 200_000


class Filtered(NamedTuple):
    """A trajectory with efforts, what it was made from, and which given point each of its points leads to."""

    msg: JointTrajectory
    result: EffortTrajectory
    leads_to: NDArray[np.intp]  # (N,)


@dataclass(frozen=True)
class TrajectoryEfforts:
    """Fills in the efforts of joint trajectories.

    `joint_names` are those that the filtered trajectories carry, in the order of the controller; the joints
    of the robot that a trajectory does not name rest where they are. With `reject_violations` a trajectory
    beyond a limit of the robot is rejected; so is one that departs by more than `max_departure` [rad or m]
    from what the controller would make of its points.
    """

    effort_filter: EffortFilter
    joint_names: tuple[str, ...]
    reject_violations: bool = True
    max_departure: float = math.inf

    def __post_init__(self) -> None:
        for name in self.joint_names:
            if name not in self.robot_joints:
                raise InputError(f"joint {name!r} is unknown; the robot has {list(self.robot_joints)}")
        if len(set(self.joint_names)) != len(self.joint_names):
            raise InputError(f"name every joint once, found {list(self.joint_names)}")

    @property
    def robot_joints(self) -> tuple[str, ...]:
        """The joints of the robot, in its order."""
        return self.effort_filter.robot.joint_names

    def __call__(self, msg: JointTrajectory, present: PresentState) -> Filtered:
        """Return the trajectory with efforts; raises MessageRejected with the reason."""
        waypoints = self._read(msg, present)
        end = float(waypoints.times[-1])
        if end / self.effort_filter.period > MOST_POINTS:
            raise MessageRejected(
                Reason.BAD_TIMES,
                f"the trajectory lasts {end:g} s, which makes more than {MOST_POINTS} points; send it in "
                "parts, or lengthen the period",
            )
        try:
            # what overflows shows in the result
            with np.errstate(over="ignore", invalid="ignore"):
                result = self.effort_filter(waypoints, present)
        except OverflowingError as error:
            raise MessageRejected(Reason.RESULT_NOT_FINITE, str(error)) from error
        except InputError as error:
            raise MessageRejected(Reason.BAD_MOTION, str(error)) from error
        self._judge(result)
        # where the present state comes first, it leads to the first given point too
        added = int(waypoints.times[0] > 0.0)
        made = self._message(result.dense.times, result.motion, result.efforts)
        made.header = msg.header
        return Filtered(made, result, np.maximum(result.dense.leads_to - added, 0))

    def require_in_time(self, filtered: Filtered, late: float) -> None:
        """Raise MessageRejected where the controller would leap into a trajectory `late` [s] after its stamp.

        By then the motion may be as far from its start as the robot may be at time 0, the start tolerance.
        """
        motion, most = filtered.result.dense.motion, self.effort_filter.start_tolerance or math.inf
        start, by_now = motion.sample(np.array([0.0, min(max(late, 0.0), motion.duration)]), 0)[:, 0]
        leap = np.abs(by_now - start)
        joint = int(np.argmax(leap))
        if leap[joint] > most:
            raise MessageRejected(
                Reason.TOO_LATE,
                f"the controller would get it {late:.3g} s after its stamp, when joint "
                f"{self.robot_joints[joint]!r} is {leap[joint]:.3g} rad (or m) from its start, and would "
                "leap; send a stamp of zero, or one that is still to come",
            )

    def fastest(
        self,
        path: JointTrajectory,
        present: PresentState,
        blend: float = 0.0,
        shares: Mapping[str, float] | None = None,
        stiffness_error: float = 0.0,
        progress: Callable[[float], None] | None = None,
    ) -> JointTrajectory:
        """Return the fastest motion along the points of a path, whatever their times, by `EffortFilter`.

        `progress` is as there. Raises MessageRejected with the reason.
        """
        points = [
            JointTrajectoryPoint(positions=point.positions, time_from_start=Duration(sec=i))
            for i, point in enumerate(path.points)
        ]
        plain = JointTrajectory(header=path.header, joint_names=path.joint_names, points=points)
        positions = self._read(plain, present).positions
        try:
            fastest = self.effort_filter.fastest(positions, blend, shares, stiffness_error, progress)
        except InfeasibleError as error:
            raise MessageRejected(Reason.BEYOND_LIMITS, str(error)) from error
        except InputError as error:
            raise MessageRejected(Reason.BAD_MOTION, str(error)) from error
        made = self._message(*fastest)
        made.header = path.header
        return made

    def stop(self, filtered: Filtered, since: float, begin: float, duration: float) -> JointTrajectory:
        """Return how a trajectory comes to rest: from its time `since` [s] on, which is the time 0 of this.

        The arguments are those of `EffortFilter.stop`. Raises InputError where it is over before.
        """
        points = self.effort_filter.stop(filtered.result.dense.motion, since, begin, duration)
        return self._message(points.times - since, points.motion, points.efforts)

    def hold(self, positions: Mapping[str, float], present: PresentState, fade: float) -> JointTrajectory:
        """Return a trajectory of one point, `fade` [s] later: standing, with the efforts for that.

        `positions` are those of the joints that the controller moves; where the others are says `present`.
        Raises MessageRejected where that is not known.
        """
        names = self.robot_joints
        standing = np.array([positions.get(name, at) for name, at in zip(names, present.positions)])
        unknown = np.isnan(standing)
        if unknown.any():
            raise MessageRejected(
                Reason.MISSING_JOINT,
                f"where joint {names[int(np.argmax(unknown))]!r} stands is not known, so neither are the "
                "efforts for holding; publish its state on joint_states",
            )
        still = np.zeros((1, 3, len(names)))
        still[0, 0] = standing
        return self._message(np.array([fade]), still, self.effort_filter.hold(standing)[None])

    def warm_up(self) -> None:
        """Compute once, so that the first trajectory takes no longer than all others."""
        positions = np.zeros((2, len(self.robot_joints)))
        times = np.array([0.0, self.effort_filter.period])
        result = self.effort_filter(Waypoints(times, positions))
        self.effort_filter.stop(result.dense.motion, 0.0, 0.0, self.effort_filter.period)
        self.effort_filter.hold(positions[0])

    def _read(self, msg: JointTrajectory, present: PresentState) -> Waypoints:
        """Return the points for all joints of the robot."""
        points = read_partial_trajectory(msg, self.joint_names, self.robot_joints, present.positions)
        return Waypoints(*points)

    def _judge(self, result: EffortTrajectory) -> None:
        if not np.isfinite(result.efforts).all():
            raise MessageRejected(
                Reason.RESULT_NOT_FINITE, "its efforts come out infinite; its values are too large"
            )
        departure = result.dense.departure
        if not departure.distance <= self.max_departure:
            raise MessageRejected(
                Reason.BEYOND_LIMITS,
                f"a smooth motion departs by {departure.distance:.3g} rad (or m) from what the controller "
                f"would make of these points, joint {self.robot_joints[departure.joint]!r} at "
                f"{departure.time:.3f} s; send velocities and accelerations, or points that are closer to "
                "each other, or raise max_departure",
            )
        if result.violations and self.reject_violations:
            raise MessageRejected(
                Reason.BEYOND_LIMITS,
                f"{in_words(result.violations)}; plan a slower motion, or let it pass with limits:=pass",
            )

    def _message(self, times: Array, motion: Array, efforts: Array) -> JointTrajectory:
        places = [self.robot_joints.index(name) for name in self.joint_names]
        instants = np.rint(times * 1e9).astype(np.int64).tolist()
        points = [
            JointTrajectoryPoint(
                positions=float64s(rows[0]),
                velocities=float64s(rows[1]),
                accelerations=float64s(rows[2]),
                effort=float64s(effort),
                time_from_start=Duration(sec=instant // 1_000_000_000, nanosec=instant % 1_000_000_000),
            )
            for rows, effort, instant in zip(motion[:, :, places], efforts[:, places], instants)
        ]
        return JointTrajectory(joint_names=list(self.joint_names), points=points)


def in_words(violations: Sequence[Finding]) -> str:
    """Return the worst violation in words, and how many more there are."""
    worst = violations[0]
    column = worst.column
    more = f" ({len(violations) - 1} more)" if len(violations) > 1 else ""
    return (
        f"the {column.quantity} of {column.joint!r} reaches {worst.value:.4g} {column.unit} at "
        f"{worst.time:.3f} s, beyond its limit of {nearer_limit(worst):.4g}{more}"
    )
