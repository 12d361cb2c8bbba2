"""The FollowJointTrajectory action of trajectory_filter in front of a controller, over real DDS."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
pytest.importorskip(
    "control_msgs.action",
    reason="control_msgs is not installed; it comes with a ROS 2 (ros-<distro>-control-msgs), not from PyPI",
)

from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from panda_plan import HOME, MOVE, NAMES, after, plan
from rclpy.action import ActionClient
from rclpy.serialization import deserialize_message
from ros_processes import RosProcess, start_node, start_script
from ros_talk import Talk

Result = FollowJointTrajectory.Result
ACTION = "trajectory_filter/follow_joint_trajectory"


class Client:
    """An action client as MoveIt has one."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.feedback: list[Any] = []
        self._client = ActionClient(talk.node, FollowJointTrajectory, ACTION)
        talk.wait_until(self._client.server_is_ready, "the action of the filter")

    def send(self, goal: Any) -> Any:
        """Send a goal and return its handle."""
        sent = self._client.send_goal_async(goal, lambda msg: self.feedback.append(msg.feedback))
        self._talk.wait_until(sent.done, "the answer to the goal")
        return sent.result()

    def result(self, handle: Any) -> tuple[int, Any]:
        """Return how a goal ended and its result."""
        future = handle.get_result_async()
        self._talk.wait_until(future.done, "the result")
        return future.result().status, future.result().result

    def cancel(self, handle: Any) -> int:
        """Cancel a goal; return how many are canceling."""
        future = handle.cancel_goal_async()
        self._talk.wait_until(future.done, "the answer to the cancellation")
        return len(future.result().goals_canceling)


@contextmanager
def at_work(namespace: str, mode: str = "play") -> Iterator[tuple[RosProcess, RosProcess, Talk, Client]]:
    """Start a controller and a filter that knows it; yield them with a client."""
    with (
        start_script("ros_fake_controller.py", mode, namespace=namespace) as controller,
        start_node("trajectory_filter", {"robot_config": "panda.yaml", "period": 0.005}, namespace) as node,
        Talk(namespace) as talk,
    ):
        controller.wait_for_line("ready")
        client = Client(talk)
        talk.status("trajectory_filter", lambda _, values: values["controller is there"] == "True")
        yield controller, node, talk, client


def goal_of(duration: float) -> Any:
    return FollowJointTrajectory.Goal(
        trajectory=plan(duration),
        path_tolerance=[JointTolerance(name=NAMES[2], position=0.05, velocity=-1.0)],
        goal_tolerance=[JointTolerance(name=NAMES[3], position=0.01)],
        goal_time_tolerance=after(0.5),
    )


def goals_at(controller: RosProcess) -> list[Any]:
    """Return the goals that a controller has been sent."""
    lines = [line for line in list(controller.lines) if line.startswith("goal ")]
    return [
        deserialize_message(bytes.fromhex(json.loads(line[5:])["message"]), FollowJointTrajectory.Goal)
        for line in lines
    ]


def test_a_goal_goes_on_with_efforts_and_its_answers_come_back() -> None:
    with at_work("tp_play") as (controller, _, talk, client):
        goal = goal_of(1.23)
        handle = client.send(goal)
        assert handle.accepted
        status, result = client.result(handle)
        assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, Result.SUCCESSFUL)
        assert result.error_string == "Goal successfully reached!"
        (passed,) = goals_at(controller)
        values = talk.status("trajectory_filter", lambda _, values: values["goals succeeded"] == "1")
    assert values["goals under way"] == "0" and values["refused"] == "0"
    # all but the trajectory is as the client has sent it
    for field in goal.get_fields_and_field_types():
        if field != "trajectory":
            assert getattr(passed, field) == getattr(goal, field), field
    points = passed.trajectory.points
    assert len(points) == 247 and passed.trajectory.joint_names == NAMES
    np.testing.assert_allclose(points[-1].positions, HOME + MOVE, rtol=0.0, atol=1e-12)
    assert all(len(point.effort) == 7 for point in points)
    # the feedback counts in the points of the client, of which there are 14
    assert len(client.feedback) >= 10
    assert client.feedback[0].joint_names == NAMES
    if hasattr(client.feedback[0], "index"):
        indices = [feedback.index for feedback in client.feedback]
        assert indices == sorted(indices) and indices[0] in (1, 2) and indices[-1] in (12, 13)


def test_a_cancellation_reaches_the_controller_and_comes_back() -> None:
    with at_work("tp_cancel") as (controller, _, talk, client):
        handle = client.send(goal_of(30.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        assert client.cancel(handle) == 1
        status, result = client.result(handle)
        assert (status, result.error_string) == (GoalStatus.STATUS_CANCELED, "canceled as asked")
        assert "cancel" in controller.lines
        # and the next goal is served
        status, _ = client.result(client.send(goal_of(0.5)))
        assert status == GoalStatus.STATUS_SUCCEEDED


def test_a_controller_that_does_not_cancel_is_waited_for() -> None:
    with at_work("tp_stubborn", "stubborn") as (_, node, talk, client):
        handle = client.send(goal_of(2.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        assert client.cancel(handle) == 1
        talk.wait_for_line(node, "the controller does not cancel the goal; waiting for its end")
        status, result = client.result(handle)
        assert (status, result.error_string) == (GoalStatus.STATUS_SUCCEEDED, "Goal successfully reached!")


def test_a_new_goal_preempts_as_the_controller_decides() -> None:
    with at_work("tp_preempt") as (_, node, talk, client):
        first = client.send(goal_of(30.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        second = client.send(goal_of(0.6))
        status, result = client.result(first)
        assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, Result.INVALID_GOAL)
        assert result.error_string == "preempted by a new goal"
        assert client.result(second)[0] == GoalStatus.STATUS_SUCCEEDED
        talk.wait_for_line(node, "goal aborted by the controller, code -1: preempted by a new goal")


def test_an_abortion_comes_back_with_its_code_and_reason() -> None:
    with at_work("tp_abort", "abort") as (_, _, talk, client):
        status, result = client.result(client.send(goal_of(5.0)))
        assert status == GoalStatus.STATUS_ABORTED
        assert result.error_code == Result.PATH_TOLERANCE_VIOLATED
        assert result.error_string == "Aborted: path tolerance violated"


def test_a_goal_canceled_by_somebody_else_is_aborted_for_the_client() -> None:
    with at_work("tp_foreign") as (_, _, talk, client):
        handle = client.send(goal_of(30.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        name = "joint_trajectory_controller/follow_joint_trajectory/_action/cancel_goal"
        assert len(talk.call(CancelGoal, name, CancelGoal.Request()).goals_canceling) == 1  # all of them
        status, result = client.result(handle)
        assert (status, result.error_string) == (GoalStatus.STATUS_ABORTED, "canceled as asked")


def test_a_goal_that_the_controller_rejects_is_rejected() -> None:
    with at_work("tp_reject", "reject") as (controller, node, talk, client):
        assert not client.send(goal_of(1.0)).accepted
        assert len(goals_at(controller)) == 1
        talk.wait_for_line(node, "rejected the goal; its log says why")
        talk.status(
            "trajectory_filter", lambda _, values: values["refused: no or unwilling controller"] == "1"
        )


def test_bad_goals_do_not_reach_the_controller() -> None:
    with at_work("tp_bad") as (controller, node, talk, client):
        bad = goal_of(1.0)
        bad.trajectory.joint_names[2] = "elbow"
        assert not client.send(bad).accepted
        talk.wait_for_line(node, "trajectory refused: joint 'elbow' is unknown")
        fast = goal_of(1.0)
        fast.trajectory = plan(0.1, step=0.02)
        assert not client.send(fast).accepted
        talk.wait_for_line(node, "beyond its limit of")
        assert goals_at(controller) == []
        assert client.result(client.send(goal_of(0.5)))[0] == GoalStatus.STATUS_SUCCEEDED


def test_without_a_controller_goals_are_rejected_until_there_is_one() -> None:
    namespace = "tp_absent"
    with start_node("trajectory_filter", {"robot_config": "panda.yaml"}, namespace) as node:
        with Talk(namespace) as talk:
            client = Client(talk)
            assert not client.send(goal_of(1.0)).accepted
            talk.wait_for_line(node, "there is no action 'joint_trajectory_controller/follow_")
            with start_script("ros_fake_controller.py", "play", namespace=namespace) as controller:
                controller.wait_for_line("ready")
                talk.status("trajectory_filter", lambda _, values: values["controller is there"] == "True")
                assert client.result(client.send(goal_of(0.5)))[0] == GoalStatus.STATUS_SUCCEEDED
        assert node.stop(signal.SIGINT) == 0, node.output()


def test_a_controller_that_vanishes_aborts_the_goal() -> None:
    with at_work("tp_vanish") as (controller, node, talk, client):
        handle = client.send(goal_of(60.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        controller.stop(signal.SIGINT)
        status, result = client.result(handle)
        assert status == GoalStatus.STATUS_ABORTED
        assert "joint_trajectory_controller/follow_joint_trajectory' vanished" in result.error_string
        assert node.running
