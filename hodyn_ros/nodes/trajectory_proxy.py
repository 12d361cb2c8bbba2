"""A FollowJointTrajectory action in front of the controller's: goals go on with efforts, answers come back.

Needs control_msgs; nothing but trajectory_filter imports this, and only where control_msgs is installed.

A goal is accepted when the controller has accepted it, so that the client hears what the controller says:
rejected, aborted, canceled or succeeded, with its result. A new goal preempts the one under way as the
controller decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.nodes.refusals import Reason, Refusals, Refused
from hodyn_ros.nodes.trajectory_with_efforts import Filtered

_WATCH_PERIOD = 0.5  # [s] between two looks whether the controller is there

_OUTCOMES = {
    GoalStatus.STATUS_SUCCEEDED: "succeeded",
    GoalStatus.STATUS_CANCELED: "canceled",
    GoalStatus.STATUS_ABORTED: "aborted",
}


class _Goal:
    """A goal that the controller has taken."""

    def __init__(self, filtered: Filtered) -> None:
        self.leads_to = filtered.leads_to
        self.at_controller: Any = None  # the ClientGoalHandle
        self.from_client: Any = None  # the ServerGoalHandle

    def pass_feedback(self, msg: Any) -> None:
        feedback = msg.feedback
        if self.from_client is None or not self.from_client.is_active:
            return
        if hasattr(feedback, "index"):  # not in the control_msgs of every distribution
            feedback.index = int(self.leads_to[np.clip(feedback.index, 0, len(self.leads_to) - 1)])
        self.from_client.publish_feedback(feedback)


class TrajectoryProxy:
    """Serves `~/follow_joint_trajectory` of a node by the action of a controller.

    `fill_in` computes the trajectory with efforts, and raises Refused; `refusals` counts goals that are
    refused here, `outcomes` those that went on by how they ended.
    """

    def __init__(
        self,
        node: Node,
        controller: str,
        fill_in: Callable[[JointTrajectory], Awaitable[Filtered]],
        refusals: Refusals,
    ) -> None:
        self.outcomes = dict.fromkeys(_OUTCOMES.values(), 0)
        self.action = f"{controller}/follow_joint_trajectory"
        self._logger = node.get_logger()
        self._fill_in = fill_in
        self._refusals = refusals
        self._goals: dict[int, _Goal] = {}  # by id() of the client's goal message, which both callbacks see
        self._awaited: set[Future[Any]] = set()
        # callbacks wait for the controller, whose answers come by other callbacks in the meantime
        group = ReentrantCallbackGroup()
        self._client: Any = ActionClient(node, FollowJointTrajectory, self.action, callback_group=group)
        self._server: Any = ActionServer(
            node,
            FollowJointTrajectory,
            "~/follow_joint_trajectory",
            self._execute,
            goal_callback=self._decide,
            cancel_callback=self._cancel,
            callback_group=group,
        )
        self._timer = node.create_timer(_WATCH_PERIOD, self._watch, callback_group=group)

    @property
    def under_way(self) -> int:
        """Number of goals that the controller has taken and not finished."""
        return len(self._goals)

    @property
    def controller_is_there(self) -> bool:
        """Whether the action of the controller has been found."""
        return bool(self._client.server_is_ready())

    def destroy(self) -> None:
        """Give up the action."""
        self._server.destroy()
        self._client.destroy()

    async def _decide(self, request: Any) -> GoalResponse:
        try:
            if not self.controller_is_there:
                raise Refused(
                    Reason.CONTROLLER,
                    f"there is no action {self.action!r}; start the controller, or name it by the parameter "
                    "'controller'",
                )
            filtered = await self._fill_in(request.trajectory)
            goal = _Goal(filtered)
            goal.at_controller = await self._answer(
                self._client.send_goal_async(_with(request, filtered.msg), goal.pass_feedback)
            )
            if goal.at_controller is None or not goal.at_controller.accepted:
                what = "vanished" if goal.at_controller is None else "rejected the goal; its log says why"
                raise Refused(Reason.CONTROLLER, f"the controller behind {self.action!r} {what}")
        except Refused as refused:
            self._refusals.add(refused)
            return GoalResponse.REJECT
        self._goals[id(request)] = goal
        return GoalResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        goal = self._goals[id(handle.request)]
        goal.from_client = handle
        try:
            response = await self._answer(goal.at_controller.get_result_async())
        finally:
            del self._goals[id(handle.request)]
        if response is None:
            handle.abort()
            self._count(GoalStatus.STATUS_ABORTED)
            words = f"the controller behind {self.action!r} vanished"
            self._logger.error(f"goal aborted: {words}")
            return FollowJointTrajectory.Result(
                error_code=FollowJointTrajectory.Result.INVALID_GOAL, error_string=words
            )
        self._finish(handle, response.status, response.result)
        return response.result

    def _finish(self, handle: Any, status: int, result: Any) -> None:
        self._count(status)
        if status == GoalStatus.STATUS_SUCCEEDED:
            handle.succeed()
        elif status == GoalStatus.STATUS_CANCELED and handle.is_cancel_requested:
            handle.canceled()
        else:
            # also a goal that somebody else canceled at the controller: this client did not ask for it
            handle.abort()
            self._logger.warning(
                f"goal {_OUTCOMES.get(status, 'lost')} by the controller, code {result.error_code}: "
                f"{result.error_string or 'no reason given'}"
            )

    def _cancel(self, handle: Any) -> CancelResponse:
        """Pass a cancellation on; the goal is canceled when the controller says so."""
        goal = self._goals.get(id(handle.request))
        if goal is None:
            return CancelResponse.REJECT
        goal.at_controller.cancel_goal_async().add_done_callback(self._check_cancellation)
        return CancelResponse.ACCEPT

    def _check_cancellation(self, future: Future[Any]) -> None:
        response = future.result()
        if response is None or not response.goals_canceling:
            self._logger.warning("the controller does not cancel the goal; waiting for its end")

    def _count(self, status: int) -> None:
        self.outcomes[_OUTCOMES.get(status, "aborted")] += 1

    # waiting for a controller that may vanish

    async def _answer(self, future: Future[Any]) -> Any:
        """Return what the controller answers, None where it vanishes before."""
        answer: Future[Any] = Future()
        self._awaited.add(answer)
        future.add_done_callback(lambda done: answer.done() or answer.set_result(done.result()))
        try:
            return await answer
        finally:
            self._awaited.discard(answer)

    def _watch(self) -> None:
        if self._awaited and not self.controller_is_there:
            for answer in list(self._awaited):
                answer.set_result(None)


def _with(goal: Any, trajectory: JointTrajectory) -> Any:
    """Return a goal with another trajectory: its tolerances and all else it holds stay as they are."""
    fields = {field: getattr(goal, field) for field in goal.get_fields_and_field_types()}
    return FollowJointTrajectory.Goal(**{**fields, "trajectory": trajectory})
