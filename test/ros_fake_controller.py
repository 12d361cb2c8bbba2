"""A joint_trajectory_controller for the tests, as a process of its own: an action server, and no robot.

Writes a line for each event, and each goal as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import serialize_message

Result = FollowJointTrajectory.Result


class FakeController(Node):
    """Accepts goals as the controller does, plays them in the time they take, and can misbehave on purpose.

    `mode`: "play"; "reject" goals; "abort" after two feedbacks; "stubborn", which does not cancel.
    """

    def __init__(self, mode: str) -> None:
        super().__init__("joint_trajectory_controller")
        self._mode = mode
        self._newest: Any = None
        self._server = ActionServer(
            self,
            FollowJointTrajectory,
            "~/follow_joint_trajectory",
            self._play,
            goal_callback=self._decide,
            handle_accepted_callback=self._take,
            cancel_callback=self._cancel,
            callback_group=ReentrantCallbackGroup(),
        )
        print("ready", flush=True)

    def _decide(self, goal: Any) -> GoalResponse:
        print(f"goal {json.dumps(_facts(goal))}", flush=True)
        return GoalResponse.REJECT if self._mode == "reject" else GoalResponse.ACCEPT

    def _take(self, handle: Any) -> None:
        self._newest = handle
        handle.execute()

    def _cancel(self, handle: Any) -> CancelResponse:
        print("cancel", flush=True)
        return CancelResponse.REJECT if self._mode == "stubborn" else CancelResponse.ACCEPT

    def _play(self, handle: Any) -> Any:
        points = handle.request.trajectory.points
        ends = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points]
        start = time.monotonic()
        sent = 0
        while (elapsed := time.monotonic() - start) < ends[-1]:
            time.sleep(0.05)
            if handle is not self._newest:
                handle.abort()
                return Result(error_code=Result.INVALID_GOAL, error_string="preempted by a new goal")
            if handle.is_cancel_requested:
                handle.canceled()
                return Result(error_string="canceled as asked")
            index = next((i for i, end in enumerate(ends) if end > elapsed), len(ends) - 1)
            feedback = FollowJointTrajectory.Feedback(joint_names=handle.request.trajectory.joint_names)
            feedback.desired.positions = points[index].positions
            if hasattr(feedback, "index"):
                feedback.index = index
            handle.publish_feedback(feedback)
            sent += 1
            if self._mode == "abort" and sent == 2:
                handle.abort()
                return Result(
                    error_code=Result.PATH_TOLERANCE_VIOLATED, error_string="Aborted: path tolerance violated"
                )
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
