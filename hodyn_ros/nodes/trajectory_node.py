"""trajectory_node: a smooth motion, published sample by sample with all its time derivatives.

The motion comes from a file, or as a JointTrajectory on a topic. Before it starts the node publishes its
first position at rest, and after it has ended its last one, so that whoever follows never has to guess.

Topics: `desired_motion` (DesiredMotion) out, the k-th sample stamped `origin + k / rate`; `joint_trajectory`
(trajectory_msgs/JointTrajectory) in; `/diagnostics` at 1 Hz. Service: `~/start` (std_srvs/Trigger).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array
from hodyn_ros.msg import DesiredMotion
from hodyn_ros.nodes.diagnostics import OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.nodes.joint_order import JointOrder
from hodyn_ros.nodes.messages import nanoseconds, read_joint_trajectory, write_desired_motion
from hodyn_ros.nodes.pace import Pace, last_due
from hodyn_ros.nodes.parameters import Setting, declare, value
from hodyn_ros.nodes.process import run
from hodyn_ros.nodes.qos import overridable, stream_qos
from hodyn_ros.nodes.refusals import Reason, Refusals, Refused
from hodyn_ros.nodes.stream_executor import StreamGroup
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.reader import read_trajectory
from hodyn_ros.trajectory.rest import rest_to_rest, through_points
from hodyn_ros.trajectory.sampling import Sampler

SETTINGS = (
    Setting(
        "trajectory",
        "",
        "Motion to publish: path of a YAML file, or the name of a shipped one such as panda_excitation.yaml; "
        "empty: wait for a JointTrajectory on joint_trajectory.",
        read_only=True,
    ),
    Setting(
        "robot_config",
        "",
        "Robot whose joints are meant: path of a YAML file, or the name of a shipped one. Needed for "
        "joint_trajectory, and for a file that does not name its joints.",
        read_only=True,
    ),
    Setting(
        "order", 4, "Highest time derivative that is published; 4 is snap.", low=0, high=8, read_only=True
    ),
    Setting("rate", 1000.0, "Samples per second [Hz].", low=1.0, high=2000.0, read_only=True),
    Setting(
        "ramp",
        2.0,
        "How long [s] a motion from a file that does not start or end at rest takes to get up to speed, and "
        "to stop; 0: no ramps.",
        low=0.0,
        high=60.0,
        read_only=True,
    ),
    Setting(
        "duration",
        0.0,
        "How long [s] a motion from a file goes at full speed between the ramps; 0: all of it.",
        low=0.0,
        high=86400.0,
        read_only=True,
    ),
    Setting(
        "auto_start",
        True,
        "Start as soon as there is a motion; otherwise hold its first position until ~/start is called.",
        read_only=True,
    ),
)


class TrajectoryNode(Node):
    """Publishes a trajectory; the samples come from `Sampler`, the instants from `Pace`."""

    def __init__(self) -> None:
        super().__init__("trajectory_node")
        declare(self, SETTINGS)
        self._order: int = value(self, "order")
        self._rate: float = value(self, "rate")
        self._sampler: Sampler | None = None
        self._first: int | None = None  # the number, at the present pace, of the first sample of the motion
        self._sent = 0  # samples of the motion
        self._ended = False
        self._pace = Pace(self._rate, self._now())
        self._skipped_before = 0
        self._published = Stream()
        robot_config, file = value(self, "robot_config"), value(self, "trajectory")
        names: Sequence[str] = ()
        if robot_config:
            names = Robot.from_config(share.find("config", robot_config)).joint_names
        elif not file:
            raise InputError(
                "parameters 'trajectory' and 'robot_config' are both empty; name a trajectory, or the robot "
                "that a JointTrajectory is to move"
            )
        motion = self._read(file, names) if file else None
        self._names = list(names or (motion.joint_names if motion else None) or ())
        self._joints = JointOrder(self._names)
        self._refusals = Refusals(self.get_logger().warning, "joint_trajectory")
        self._publisher = self.create_publisher(
            DesiredMotion,
            "desired_motion",
            stream_qos(),
            qos_overriding_options=overridable(publisher=True),
        )
        self._subscription = self.create_subscription(
            JointTrajectory, "joint_trajectory", self._take, 1, qos_overriding_options=overridable()
        )
        self._service = self.create_service(Trigger, "~/start", self._start_when_told)
        self._diagnostics = Diagnostics(self, self._report)
        if motion is not None:
            self._load(motion, None)
        else:
            self.get_logger().info("waiting for a motion on joint_trajectory")
        self._timer = self.create_timer(1.0 / self._rate, self._publish_due, callback_group=StreamGroup())

    # motions

    def _read(self, file: str, joint_names: Sequence[str]) -> Trajectory:
        trajectory = read_trajectory(share.find("config", file))
        given = trajectory.joint_names
        if given is None and not joint_names:
            raise InputError(f"{file} does not name its joints; give the parameter 'robot_config'")
        if joint_names and given is not None and list(given) != list(joint_names):
            raise InputError(f"{file} moves {list(given)}, but the robot has {list(joint_names)}")
        if joint_names and trajectory.n_joints != len(joint_names):
            raise InputError(
                f"{file} moves {trajectory.n_joints} joints, but the robot has {len(joint_names)}"
            )
        return rest_to_rest(trajectory, value(self, "ramp"), value(self, "duration") or None, self._order)

    def _load(self, motion: Trajectory, start: int | None) -> None:
        """Take up a motion; start it at the instant `start` [ns] or now, unless the node is to wait."""
        try:
            motion.require_smoothness(self._order)
        except InputError as error:
            self.get_logger().warning(f"derivatives will jump: {error}")
        self._sampler = Sampler(motion, self._rate, self._order)
        self._first, self._sent, self._ended = None, 0, False
        if value(self, "auto_start"):
            self._start(start)
        else:
            self.get_logger().info("holding the first position until ~/start is called")

    def _take(self, msg: JointTrajectory) -> None:
        try:
            if self._first is not None and not self._ended:
                raise Refused(Reason.BAD_MOTION, "a motion is under way; send the next one when it has ended")
            points = read_joint_trajectory(msg, self._joints)
            present = None if self._sampler is None else self._sample(self._pace.next)[0]
            motion = through_points(*points, present=present, order=self._order)
        except Refused as refused:
            self._refusals.add(refused)
        except InputError as error:
            self._refusals.add(Refused(Reason.BAD_MOTION, str(error)))
        else:
            self._load(motion, nanoseconds(msg.header.stamp) or None)

    def _start_when_told(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._sampler is None:
            response.message = "there is no motion to start yet"
        elif self._first is not None:
            response.message = "the motion has been started before"
        else:
            self._start(None)
            response.success, response.message = True, "the motion starts"
        return response

    def _start(self, instant: int | None) -> None:
        assert self._sampler is not None
        self._first = self._pace.next if instant is None else max(self._pace.next, self._pace.number(instant))
        duration = self._sampler.trajectory.duration
        self.get_logger().info(
            f"the motion starts, {'without end' if math.isinf(duration) else f'for {duration:g} s'}; "
            f"{self._rate:g} Hz, derivatives up to {self._order}"
        )

    # samples

    def _now(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _publish_due(self) -> None:
        now = self._now()
        if self._pace.next == 0 or self._pace.lost(now):
            self._begin_pace(now)
        due = self._pace.due(now)
        if self._sampler is None:
            return
        for k in due:
            instant = self._pace.instant(k)
            second, nanosecond = divmod(instant, 1_000_000_000)
            stamp = Time(sec=second, nanosec=nanosecond)
            self._publisher.publish(write_desired_motion(self._names, stamp, self._sample(k)))
            self._published.tick(max(0.0, 1e-9 * (now - instant)))
            if self._first is not None and self._first <= k < self._first + self._sampler.count:
                self._sent += 1
        if (
            not self._ended
            and self._first is not None
            and self._pace.next >= self._first + self._sampler.count
        ):
            self._end()

    def _sample(self, k: int) -> Array:
        """Return the derivatives (order + 1, n) of the k-th sample at the present pace."""
        assert self._sampler is not None
        place = 0 if self._first is None else k - self._first
        if 0 <= place < self._sampler.count and self._first is not None:
            return self._sampler[place]
        held = np.zeros((self._order + 1, len(self._names)))
        held[0] = self._sampler[0 if place <= 0 else int(self._sampler.count) - 1][0]
        return held

    def _end(self) -> None:
        self._ended = True
        self.get_logger().info(f"the motion has ended after {self._sent} samples; holding the last position")
        self._diagnostics.publish()

    def _begin_pace(self, now: int) -> None:
        """Count from now on, at the first call or after a jump of the clock; a motion goes on."""
        if self._pace.next > 0:
            self.get_logger().warning("the clock has jumped; the motion goes on at the new time")
        if self._first is not None:
            self._first -= self._pace.next
        self._pace = Pace(self._rate, last_due(self._timer, now))

    # diagnostics

    def _report(self) -> Report:
        p50, p99 = self._published.percentiles(50.0, 99.0)
        values: dict[str, object] = {
            "order": self._order,
            "published": self._published.count,
            "rate [1/s]": self._published.rate(),
            "late p50 [us]": p50 * 1e6,
            "late p99 [us]": p99 * 1e6,
            "skipped": self._pace.skipped,
            **self._facts_of_motion(),
            "refused": self._refusals.total,
        }
        skipped, self._skipped_before = self._pace.skipped - self._skipped_before, self._pace.skipped
        if self._sampler is None:
            return Report(WARN, "waiting for a motion", values)
        if skipped > 0:
            return Report(WARN, f"skipped {skipped} samples: the machine is too slow for this rate", values)
        if self._first is None:
            return Report(OK, "holding", values)
        return Report(OK, "ended" if self._ended else "moving", values)

    def _facts_of_motion(self) -> dict[str, object]:
        """Return the stamps of the first and the last sample of the motion, and how many were published."""
        start: object = ""
        end: object = ""
        if self._sampler is not None and self._first is not None:
            start = self._pace.instant(self._first)
            if math.isfinite(self._sampler.count):
                end = self._pace.instant(self._first + int(self._sampler.count) - 1)
        return {"motion start [ns]": start, "motion end [ns]": end, "motion samples published": self._sent}


def main(args: Sequence[str] | None = None) -> int:
    """Run trajectory_node as a process."""
    return run(TrajectoryNode, args)


if __name__ == "__main__":
    sys.exit(main())
