"""A joint_trajectory_controller for the tests, as a process of its own, with a robot that does as it is told.

Treats positions and efforts as the real one (ros2_controllers 5.17) does: polynomials between points,
straight lines between efforts. After a success it repeats the last point. After a cancellation or an
abortion, and from the start, it holds the measured position with the efforts of the last point of the last
goal that succeeded, at first zero. Writes a line for each event, and each goal as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import numpy as np
import rclpy
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
from panda_plan import HOME, NAMES, after
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.ros.conversions.messages import nanoseconds
from hodyn_ros.trajectory.splines.piecewise import PiecewisePolynomial

Result = FollowJointTrajectory.Result
PERIOD = 0.005  # [s] of the controller
NOTHING = np.zeros(7)


class Reference:
    """What the controller follows: a trajectory, or a point that it holds."""

    def __init__(self) -> None:
        self.position, self.velocity, self.effort = HOME, NOTHING, NOTHING
        self._lock = threading.Lock()
        self._effort_of_holds = NOTHING
        self._motion: PiecewisePolynomial | None = None
        self._begin = self._time = time.time()

    def follow(self, trajectory: JointTrajectory) -> None:
        """Follow a trajectory from its stamp on, or from now on where that is zero."""
        points = trajectory.points
        rows = np.array([[p.positions, p.velocities, p.accelerations] for p in points])
        times = np.array([1e-9 * nanoseconds(p.time_from_start) for p in points])
        efforts = np.array([p.effort for p in points])
        with self._lock:
            self._begin = 1e-9 * nanoseconds(trajectory.header.stamp) or time.time()
            now = time.time() - self._begin
            if now < times[0]:
                times, efforts = np.append(now, times), np.vstack([self.effort, efforts])
                rows = np.concatenate([[[self.position, self.velocity, NOTHING]], rows])
            self._motion = PiecewisePolynomial(times, *rows.swapaxes(0, 1)) if len(times) > 1 else None
            self._times, self._efforts = times, efforts

    def hold(self, succeeded: bool = False) -> None:
        """Hold: the last point after a success, what is measured otherwise."""
        with self._lock:
            if succeeded:
                self._effort_of_holds = self._efforts[-1]
            self._motion, self.velocity, self.effort = None, NOTHING, self._effort_of_holds
            self._begin = time.time()

    def update(self) -> tuple[float, float]:
        """Return the time [s], and that of the trajectory, once the reference is that of now."""
        with self._lock:
            now = time.time()
            elapsed = now - self._begin
            if self._motion is not None:
                at = min(max(elapsed, self._times[0]), self._times[-1])
                self.position, self.velocity = self._motion.sample(at, 1)
                self.effort = np.array([np.interp(at, self._times, e) for e in self._efforts.T])
                if elapsed >= self._times[-1]:
                    self.velocity = NOTHING
            return now, elapsed


class FakeController(Node):
    """Accepts goals as the controller does, plays them in the time they take, and can misbehave on purpose.

    `mode`: "play"; "reject" goals; "abort" goals with a path tolerance after two feedbacks; "mute", which
    says nothing of its state; "stubborn", which does not cancel either.
    """

    def __init__(self, mode: str) -> None:
        super().__init__("joint_trajectory_controller")
        self._mode = mode
        self._newest: Any = None
        self._reference = Reference()
        group = ReentrantCallbackGroup()
        self._state = self.create_publisher(JointTrajectoryControllerState, "~/controller_state", 100)
        self._timer = self.create_timer(PERIOD, self._update)
        self._server = ActionServer(
            self,
            FollowJointTrajectory,
            "~/follow_joint_trajectory",
            self._play,
            goal_callback=self._decide,
            handle_accepted_callback=self._take,
            cancel_callback=self._cancel,
            callback_group=group,
        )
        print("ready", flush=True)

    def _update(self) -> None:
        (now, elapsed), reference = self._reference.update(), self._reference
        if self._mode in ("mute", "stubborn"):
            return
        msg = JointTrajectoryControllerState(joint_names=NAMES)
        msg.header.stamp = Time(nanoseconds=round(1e9 * now)).to_msg()
        msg.reference = JointTrajectoryPoint(
            positions=list(reference.position),
            velocities=list(reference.velocity),
            time_from_start=after(elapsed),
        )
        msg.output.effort = list(reference.effort)
        self._state.publish(msg)

    def _decide(self, goal: Any) -> GoalResponse:
        print(f"goal {json.dumps(_facts(goal))}", flush=True)
        return GoalResponse.REJECT if self._mode == "reject" else GoalResponse.ACCEPT

    def _take(self, handle: Any) -> None:
        self._newest = handle
        self._reference.follow(handle.request.trajectory)
        handle.execute()

    def _cancel(self, handle: Any) -> CancelResponse:
        print("cancel", flush=True)
        if self._mode == "stubborn":
            return CancelResponse.REJECT
        self._reference.hold()
        return CancelResponse.ACCEPT

    def _play(self, handle: Any) -> Any:
        goal = handle.request
        points = goal.trajectory.points
        ends = [1e-9 * nanoseconds(point.time_from_start) for point in points]
        stamp = 1e-9 * nanoseconds(goal.trajectory.header.stamp)
        start = stamp or time.time()
        bound = not any(tolerance.position == -1.0 for tolerance in goal.path_tolerance)
        sent = 0
        while (elapsed := time.time() - start) < ends[-1]:
            time.sleep(0.05)
            if handle is not self._newest:
                handle.abort()
                return Result(error_code=Result.INVALID_GOAL, error_string="preempted by a new goal")
            if handle.is_cancel_requested:
                handle.canceled()
                return Result(error_string="canceled as asked")
            index = next((i for i, end in enumerate(ends) if end > elapsed), len(ends) - 1)
            feedback = FollowJointTrajectory.Feedback(joint_names=goal.trajectory.joint_names)
            feedback.desired.positions = points[index].positions
            if hasattr(feedback, "index"):
                feedback.index = index
            handle.publish_feedback(feedback)
            sent += 1
            if self._mode == "abort" and bound and sent == 2:
                self._reference.hold()
                handle.abort()
                return Result(
                    error_code=Result.PATH_TOLERANCE_VIOLATED, error_string="Aborted: path tolerance violated"
                )
        if handle is self._newest:
            self._reference.hold(succeeded=True)
        handle.succeed()
        return Result(error_string="Goal successfully reached!")


def _facts(goal: Any) -> dict[str, Any]:
    """Return what a test wants to see of a goal; the message itself goes on as hexadecimal digits."""
    return {"points": len(goal.trajectory.points), "message": serialize_message(goal).hex()}


def main() -> None:
    """Serve until the process is told to end."""
    rclpy.init()
    node = FakeController(sys.argv[1])
    executor = MultiThreadedExecutor(4)
    executor.add_node(node)
    try:
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        return


if __name__ == "__main__":
    main()
