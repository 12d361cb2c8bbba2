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
from control_msgs.msg import JointTolerance, JointTrajectoryControllerState
from panda_plan import HOME, MOVE, NAMES, after, plan
from rclpy.action import ActionClient
from rclpy.serialization import deserialize_message
from ros_processes import RosProcess, start_node, start_script
from ros_talk import Talk

from hodyn_ros import Robot, share
from hodyn_ros.ros.conversions.messages import nanoseconds

Result = FollowJointTrajectory.Result
ACTION = "trajectory_filter/follow_joint_trajectory"
STATE = "joint_trajectory_controller/controller_state"


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


def weight(positions: np.ndarray) -> np.ndarray:
    """Return the efforts (n,) that a posture takes."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    return panda.inverse_dynamics(np.stack([positions, 0.0 * positions, 0.0 * positions]))[0]


def check_no_step(states: list[Any], since: int) -> None:
    """Check that output and reference of a controller move no faster than a motion within limits does."""
    stamps = np.array([nanoseconds(state.header.stamp) for state in states[since:]])
    seconds = 1e-9 * np.maximum(np.diff(stamps), 1_000_000)[:, None]
    efforts = np.array([state.output.effort for state in states[since:]])
    positions = np.array([state.reference.positions for state in states[since:]])
    assert np.abs(np.diff(efforts, axis=0) / seconds).max() < 400.0  # [N·m/s]: 2 N·m in a period
    assert np.abs(np.diff(positions, axis=0) / seconds).max() < 2.6  # [rad/s]


def stands_with_its_weight(talk: Talk, states: list[Any]) -> np.ndarray:
    """Wait until the controller holds a posture with the efforts of it; return the posture."""

    def held() -> bool:
        last = states[-1]
        at_rest = len(states) > 20 and states[-20].reference.positions == last.reference.positions
        efforts = weight(np.array(last.reference.positions))
        return at_rest and bool(np.allclose(last.output.effort, efforts, rtol=0.0, atol=1e-6))

    talk.wait_until(held, "the efforts of the posture")
    return np.array(states[-1].reference.positions)


def test_a_goal_goes_on_with_efforts_and_its_answers_come_back() -> None:
    with at_work("tp_play") as (controller, _, talk, client):
        goal = goal_of(1.23)
        handle = client.send(goal)
        assert handle.accepted
        status, result = client.result(handle)
        assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, Result.SUCCESSFUL)
        assert result.error_string == "Goal successfully reached!"
        held, passed = goals_at(controller)
        values = talk.status("trajectory_filter", lambda _, values: values["goals succeeded"] == "1")
    assert values["goals under way"] == "0" and values["rejected"] == "0"
    # the controller held without any effort, and got the efforts of its posture before
    (standing,) = held.trajectory.points
    assert values["holds"] == "1" and list(standing.positions) == list(HOME)
    np.testing.assert_allclose(standing.effort, weight(HOME), rtol=0.0, atol=1e-9)
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


def test_a_canceled_goal_comes_to_rest_on_its_path_without_a_step() -> None:
    with at_work("tp_cancel") as (controller, _, talk, client):
        states = talk.hear(JointTrajectoryControllerState, STATE)
        # the last success leaves the controller with efforts of elsewhere
        far = goal_of(1.5)
        assert client.result(client.send(far))[0] == GoalStatus.STATUS_SUCCEEDED
        began = len(states)
        back = goal_of(5.0)
        back.trajectory.points = [back.trajectory.points[0], back.trajectory.points[-1]]
        for point, positions in zip(back.trajectory.points, (HOME + MOVE, HOME - 3.0 * MOVE), strict=True):
            point.positions, point.velocities, point.accelerations = list(positions), [0.0] * 7, [0.0] * 7
        client.feedback.clear()
        handle = client.send(back)
        talk.wait_until(lambda: any(f.desired.positions[0] < 0.1 for f in client.feedback), "some way")
        assert client.cancel(handle) == 1
        status, result = client.result(handle)
        assert status == GoalStatus.STATUS_CANCELED and "brought to rest on the path" in result.error_string
        assert "cancel" not in controller.lines
        stands = stands_with_its_weight(talk, states)
        check_no_step(states, began)
        values = talk.status("trajectory_filter", lambda _, values: values["stops"] == "1")
        # and the next goal is served
        assert client.result(client.send(goal_of(0.5)))[0] == GoalStatus.STATUS_SUCCEEDED
    # on the line between the two points, before its end
    way = (stands - HOME) / MOVE
    assert np.ptp(way) < 1e-6 and -3.0 < way[0] < 0.5
    assert values["goals canceled"] == "1" and values["goals under way"] == "0"


def test_a_cancellation_near_the_end_lets_the_goal_end() -> None:
    with at_work("tp_near") as (_, _, talk, client):
        handle = client.send(goal_of(0.3))  # less than a stop takes
        assert client.cancel(handle) == 1
        assert client.result(handle)[0] == GoalStatus.STATUS_SUCCEEDED


@pytest.mark.parametrize("mode", ["mute", "stubborn"])
def test_a_controller_that_says_nothing_of_its_state_is_told_of_a_cancellation(mode: str) -> None:
    with at_work(f"tp_{mode}", mode) as (controller, node, talk, client):
        handle = client.send(goal_of(2.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        assert client.cancel(handle) == 1
        talk.wait_for_line(node, "the goal cannot be brought to rest by a stop")
        status, result = client.result(handle)
        assert "cancel" in controller.lines
        if mode == "mute":
            assert (status, result.error_string) == (GoalStatus.STATUS_CANCELED, "canceled as asked")
            talk.wait_for_line(node, "the controller holds with the efforts of another posture")
        else:
            talk.wait_for_line(node, "the controller does not cancel the goal; waiting for its end")
            assert (status, result.error_string) == (
                GoalStatus.STATUS_SUCCEEDED,
                "Goal successfully reached!",
            )


def test_a_new_goal_waits_until_the_one_before_has_come_to_rest() -> None:
    with at_work("tp_preempt") as (_, node, talk, client):
        states = talk.hear(JointTrajectoryControllerState, STATE)
        goal = goal_of(10.0)
        goal.trajectory.points = [goal.trajectory.points[0], goal.trajectory.points[-1]]
        goal.trajectory.points[-1].positions = list(HOME + 3.0 * MOVE)
        for point in goal.trajectory.points:
            point.velocities = point.accelerations = [0.0] * 7
        first = client.send(goal)
        talk.wait_until(lambda: any(f.desired.positions[0] > 0.1 for f in client.feedback), "some way")
        began = len(states)
        elsewhere = goal_of(0.6)
        elsewhere.trajectory = plan(0.6, start=1.0)
        elsewhere.trajectory.points = elsewhere.trajectory.points[-1:]
        second = client.send(elsewhere)
        status, result = client.result(first)
        assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, Result.INVALID_GOAL)
        assert result.error_string == "preempted by a new goal"
        assert client.result(second)[0] == GoalStatus.STATUS_SUCCEEDED
        np.testing.assert_allclose(stands_with_its_weight(talk, states), HOME + MOVE, rtol=0.0, atol=1e-9)
        check_no_step(states, began)
        talk.wait_for_line(node, "goal aborted by the controller, code -1: preempted by a new goal")


def test_a_new_goal_that_is_refused_does_not_stop_the_robot() -> None:
    with at_work("tp_go_on") as (_, node, talk, client):
        first = client.send(goal_of(2.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        far = goal_of(1.0)
        far.trajectory.points[0].positions[0] += 0.5
        assert not client.send(far).accepted
        talk.wait_for_line(node, "from where the trajectory starts")
        assert client.result(first)[0] == GoalStatus.STATUS_SUCCEEDED


def test_a_new_goal_that_would_be_late_once_the_robot_stands_does_not_stop_it() -> None:
    with at_work("tp_late") as (_, node, talk, client):
        first = client.send(goal_of(2.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        late = goal_of(0.6)
        late.trajectory.points = late.trajectory.points[-1:]
        late.trajectory.header.stamp = talk.node.get_clock().now().to_msg()
        assert not client.send(late).accepted
        talk.wait_for_line(node, "from its start, and would leap")
        assert client.result(first)[0] == GoalStatus.STATUS_SUCCEEDED


def test_an_abortion_comes_back_and_the_controller_gets_the_efforts_of_where_it_holds() -> None:
    with at_work("tp_abort", "abort") as (_, _, talk, client):
        states = talk.hear(JointTrajectoryControllerState, STATE)
        status, result = client.result(client.send(goal_of(5.0)))
        assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, Result.PATH_TOLERANCE_VIOLATED)
        assert result.error_string == "Aborted: path tolerance violated"
        values = talk.status("trajectory_filter", lambda _, values: values["holds"] == "2")
        stands = stands_with_its_weight(talk, states)
        aborted = next(s for s in states if list(s.reference.positions) == list(stands))
    # where the controller held by itself, without its step back to what it had before
    np.testing.assert_array_equal(aborted.reference.positions, stands)
    assert values["goals aborted"] == "1"


def test_a_goal_canceled_by_somebody_else_is_aborted_for_the_client() -> None:
    with at_work("tp_foreign") as (_, _, talk, client):
        handle = client.send(goal_of(30.0))
        talk.wait_until(lambda: client.feedback, "the first feedback")
        name = "joint_trajectory_controller/follow_joint_trajectory/_action/cancel_goal"
        assert len(talk.call(CancelGoal, name, CancelGoal.Request()).goals_canceling) == 1  # all of them
        status, result = client.result(handle)
        assert (status, result.error_string) == (GoalStatus.STATUS_ABORTED, "canceled as asked")
        talk.status("trajectory_filter", lambda _, values: values["holds"] == "2")


def test_a_goal_that_the_controller_rejects_is_rejected() -> None:
    with at_work("tp_reject", "reject") as (controller, node, talk, client):
        assert not client.send(goal_of(1.0)).accepted
        assert len(goals_at(controller)) == 2  # a hold, and the goal
        talk.wait_for_line(node, "has not taken a hold")
        talk.wait_for_line(node, "rejected the goal; its log says why")
        talk.status(
            "trajectory_filter", lambda _, values: values["rejected: no or unwilling controller"] == "1"
        )


def test_bad_goals_do_not_reach_the_controller() -> None:
    with at_work("tp_bad") as (controller, node, talk, client):
        bad = goal_of(1.0)
        bad.trajectory.joint_names[2] = "elbow"
        assert not client.send(bad).accepted
        talk.wait_for_line(node, "trajectory rejected: joint 'elbow' is unknown")
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
