"""A FollowJointTrajectory action in front of the controller's: goals go on with efforts, answers come back.

Needs control_msgs; nothing but trajectory_filter imports this, and only where control_msgs is installed.

A goal is accepted when the controller has accepted it, so that the client hears what the controller says:
rejected, aborted, canceled or succeeded, with its result.

What the controller does by itself when a goal is canceled or aborted is to hold, from one period to the next,
the measured position with the efforts of the last goal that *succeeded*. So it is not told of a cancellation:
it gets a stop as its next goal, the same motion brought to rest on its own path, with efforts. Before a new
goal the one under way is stopped likewise. Where the controller holds by itself, after a violated tolerance
for instance, it gets a hold with the efforts of the posture in which it holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.errors import InputError
from hodyn_ros.nodes.filtering.trajectory_with_efforts import Filtered, TrajectoryEfforts
from hodyn_ros.ros.controller_state import ControllerState, Reference
from hodyn_ros.ros.conversions.messages import time_message
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason, Rejections
from hodyn_ros.trajectory.splines.start import PresentState

_WATCH_PERIOD = 0.5  # [s] between two looks whether the controller is there

# [s] from the look at the controller to where a stop begins: the time to compute and to send it
_MARGIN = 0.1

_ON_COURSE = 1e-3  # [rad or m] that the controller's reference may be off the motion which it is to follow

_SAME_BEGIN = 5_000_000  # [ns] by which two trajectories of the controller begin apart at least

_BEGIN = 1.0  # [s] that the controller may take to begin with a goal

_STEP = 2.0  # [N·m or N] that efforts may differ by at the start of a goal

_FADE = 0.1  # [s] in which efforts become those of a hold

_REST = 2.0  # [s] to wait for a reference at rest

_OUTCOMES = {
    GoalStatus.STATUS_SUCCEEDED: "succeeded",
    GoalStatus.STATUS_CANCELED: "canceled",
    GoalStatus.STATUS_ABORTED: "aborted",
}

_Result = FollowJointTrajectory.Result

# What the controller aborts a goal with before it holds by itself.
_VIOLATIONS = (_Result.PATH_TOLERANCE_VIOLATED, _Result.GOAL_TOLERANCE_VIOLATED)


class FillIn(Protocol):
    """Computes a trajectory with efforts, by default from where joint_states have the robot.

    `wait` [s]: how long it is until the trajectory can go to the controller.
    """

    def __call__(
        self, msg: JointTrajectory, present: PresentState | None = None, wait: float = 0.0
    ) -> Awaitable[Filtered]:
        """Return the trajectory; raises MessageRejected."""


class _Goal:
    """A goal that the controller has taken."""

    def __init__(self, filtered: Filtered, before: Reference | None) -> None:
        self.filtered = filtered
        self.before = before  # what the controller followed until then
        self.at_controller: Any = None  # the ClientGoalHandle
        self.from_client: Any = None  # the ServerGoalHandle
        self.stop: Future[Any] | None = None  # set when the client cancels; tells whether it stands by a stop
        self.ended: Future[Any] = Future()

    def pass_feedback(self, msg: Any) -> None:
        feedback = msg.feedback
        if self.from_client is None or not self.from_client.is_active:
            return
        if hasattr(feedback, "index"):  # not in the control_msgs of every distribution
            leads_to = self.filtered.leads_to
            feedback.index = int(leads_to[np.clip(feedback.index, 0, len(leads_to) - 1)])
        self.from_client.publish_feedback(feedback)


class _Turns:
    """Lets one after the other through, in the order in which they come."""

    def __init__(self) -> None:
        self._last: Future[Any] | None = None
        self._inside: Future[Any] = Future()

    async def __aenter__(self) -> None:
        before, mine = self._last, Future[Any]()
        self._last = mine
        if before is not None:
            await before
        self._inside = mine

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside.set_result(None)


class TrajectoryProxy:
    """Serves `~/follow_joint_trajectory` of a node by the action of a controller.

    `fill_in` computes the trajectory with efforts, and raises MessageRejected; `efforts` makes stops, which
    take `stop_duration` [s], and holds. `rejections` counts goals that are rejected here, `outcomes` those
    that went on by how they ended, `stops` and `holds` what the controller was given beside goals.
    """

    def __init__(
        self,
        node: Node,
        controller: str,
        efforts: TrajectoryEfforts,
        fill_in: FillIn,
        present: Callable[[], PresentState],
        stop_duration: float,
        rejections: Rejections,
    ) -> None:
        self.outcomes = dict.fromkeys(_OUTCOMES.values(), 0)
        self.stops = self.holds = 0
        self.action = f"{controller}/follow_joint_trajectory"
        self._node = node
        self._logger = node.get_logger()
        self._efforts = efforts
        self._fill_in = fill_in
        self._present = present
        self._stop_duration = stop_duration
        self._rejections = rejections
        self._goals: dict[int, _Goal] = {}  # by id() of the client's goal message, which both callbacks see
        self._awaited: set[Future[Any]] = set()
        self._turns = _Turns()  # what is given to the controller is decided one after the other
        # callbacks wait for the controller, whose answers come by other callbacks in the meantime
        group = ReentrantCallbackGroup()
        self._state = ControllerState(node, controller, group)
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
        self._timer = steady_timer(node, _WATCH_PERIOD, self._watch, group)

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

    # goals

    async def _decide(self, request: Any) -> GoalResponse:
        async with self._turns:
            try:
                self._goals[id(request)] = await self._pass_on(request)
            except MessageRejected as rejected:
                self._rejections.add(rejected)
                return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    async def _pass_on(self, request: Any) -> _Goal:
        """Return a goal that the controller has accepted; raises MessageRejected."""
        if not self.controller_is_there:
            raise MessageRejected(
                Reason.CONTROLLER,
                f"there is no action {self.action!r}; start the controller, or name it by the parameter "
                "'controller'",
            )
        filtered = await self._from_rest(request.trajectory)
        await self._match_efforts(filtered)
        goal = _Goal(filtered, self._state.newest())
        goal.at_controller = await self._answer(
            self._client.send_goal_async(_with(request, filtered.msg), goal.pass_feedback)
        )
        if goal.at_controller is None or not goal.at_controller.accepted:
            what = "vanished" if goal.at_controller is None else "rejected the goal; its log says why"
            raise MessageRejected(Reason.CONTROLLER, f"the controller behind {self.action!r} {what}")
        return goal

    async def _from_rest(self, trajectory: JointTrajectory) -> Filtered:
        """Return a trajectory with efforts, once the goal under way has been brought to rest."""
        running = next(reversed(self._goals.values()), None)
        course = None if running is None else await self._course(running)
        if running is None or course is None:
            return await self._fill_in(trajectory)
        motion = running.filtered.result.dense.motion
        elapsed, begins = course[1], course[1] + _MARGIN
        end, stands = (min(begins + k * self._stop_duration, motion.duration) for k in (0.5, 1.0))
        # a trajectory that cannot start there, or then, is rejected before the robot is stopped for it
        await self._fill_in(trajectory, _standing(motion.sample(end, 0)[0]), stands - elapsed)
        self._logger.info("a new goal: the one under way is brought to rest before")
        if not await self._halt(running):
            return await self._fill_in(trajectory)
        present, state = self._present(), self._state.newest()
        places = {} if state is None else state.positions
        names = self._efforts.robot_joints
        positions = [places.get(name, at) for name, at in zip(names, present.positions)]
        return await self._fill_in(trajectory, _standing(np.array(positions)))

    async def _execute(self, handle: Any) -> Any:
        goal = self._goals[id(handle.request)]
        goal.from_client = handle
        try:
            response = await self._answer(goal.at_controller.get_result_async())
        finally:
            del self._goals[id(handle.request)]
            goal.ended.set_result(None)
        if response is None:
            handle.abort()
            self._count(GoalStatus.STATUS_ABORTED)
            words = f"the controller behind {self.action!r} vanished"
            self._logger.error(f"goal aborted: {words}")
            return _Result(error_code=_Result.INVALID_GOAL, error_string=words)
        if goal.stop is not None and await goal.stop:
            self._count(GoalStatus.STATUS_CANCELED)
            handle.canceled()
            return _Result(error_string="canceled: the robot was brought to rest on the path of the goal")
        if _holds_by_itself(response):
            self._spawn(self._hold())
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

    async def _cancel(self, handle: Any) -> CancelResponse:
        """Bring a goal to rest; it is canceled when the robot stands."""
        goal = self._goals.get(id(handle.request))
        if goal is None:
            return CancelResponse.REJECT
        if goal.stop is None:
            goal.stop = self._spawn(self._stop(goal))
        return CancelResponse.ACCEPT

    def _count(self, status: int) -> None:
        self.outcomes[_OUTCOMES.get(status, "aborted")] += 1

    # what the controller is given beside goals

    async def _stop(self, goal: _Goal) -> bool:
        """Bring a goal to rest; return whether a stop did."""
        async with self._turns:
            if goal.ended.done():
                return False
            stops = self.stops
            if await self._halt(goal):
                return self.stops > stops
            self._logger.warning(
                f"the goal cannot be brought to rest by a stop: {self._state.topic!r} does not say how far "
                "the controller has come, or the controller has not taken the stop. It is asked to cancel, "
                "and steps to a hold"
            )
            response = await self._answer(goal.at_controller.cancel_goal_async())
            if response is None or not response.goals_canceling:
                self._logger.warning("the controller does not cancel the goal; waiting for its end")
        return False

    async def _halt(self, goal: _Goal) -> bool:
        """Let a goal come to rest, by a stop or, where that is sooner, by its own end; False if it cannot."""
        course = await self._course(goal)
        if course is None:
            return False
        state, elapsed = course
        try:
            stop = self._efforts.stop(goal.filtered, state.elapsed, elapsed + _MARGIN, self._stop_duration)
        except InputError:
            await goal.ended
            return True
        stop.header.stamp = time_message(state.stamp)
        if not await self._give(stop):
            return False
        self.stops += 1
        return True

    async def _course(self, goal: _Goal) -> tuple[Reference, float] | None:
        """Return where the controller is on a goal's motion, and its time on that by now [s].

        None where it is not on it, or does not say.
        """
        state = self._state.newest()
        if state is not None and not self._follows(state, goal):
            # it may be about to begin
            state = await self._state.when(lambda state: self._follows(state, goal), _BEGIN)
        return None if state is None else (state, state.elapsed + self._state.age)

    def _follows(self, state: Reference, goal: _Goal) -> bool:
        motion = goal.filtered.result.dense.motion
        if not 0.0 <= state.elapsed <= motion.duration:
            return False
        if goal.before is not None and abs(state.begin - goal.before.begin) < _SAME_BEGIN:
            return False  # that is still what it followed before
        planned = dict(zip(self._efforts.robot_joints, motion.sample(state.elapsed, 0)[0]))
        return all(abs(position - planned[name]) <= _ON_COURSE for name, position in state.positions.items())

    async def _match_efforts(self, filtered: Filtered) -> None:
        """Before a trajectory whose efforts start elsewhere, hold with the efforts of the posture.

        After its activation the controller holds without any effort, for instance.
        """
        state, first = self._state.newest(), filtered.msg.points[0]
        if state is None or not state.at_rest:
            return
        efforts = dict(zip(filtered.msg.joint_names, first.effort))
        if any(abs(effort - efforts.get(name, effort)) > _STEP for name, effort in state.efforts.items()):
            await self._hold_at(state)

    async def _hold(self) -> None:
        """After the controller has begun to hold by itself, give it the efforts for that."""
        async with self._turns:
            state = await self._state.when(lambda state: state.at_rest, _REST)
            if state is None:
                self._logger.error(
                    f"the controller holds with the efforts of another posture, and {self._state.topic!r} "
                    "does not say where: send it a goal to where the robot is"
                )
            elif not self._goals:
                await self._hold_at(state)

    async def _hold_at(self, state: Reference) -> None:
        """Let the controller hold where it holds, with the efforts that this takes."""
        with self._rejections:
            hold = self._efforts.hold(state.positions, self._present(), _FADE)
            if await self._give(hold):
                self.holds += 1
            else:
                self._logger.error("the controller has not taken a hold with the efforts of its posture")

    async def _give(self, trajectory: JointTrajectory) -> bool:
        """Give the controller a goal of ours, which no tolerance ends; return whether it succeeded."""
        free = [
            JointTolerance(name=name, position=-1.0, velocity=-1.0, acceleration=-1.0)
            for name in trajectory.joint_names
        ]
        goal = FollowJointTrajectory.Goal(trajectory=trajectory, path_tolerance=free, goal_tolerance=free)
        handle = await self._answer(self._client.send_goal_async(goal))
        if handle is None or not handle.accepted:
            return False
        response = await self._answer(handle.get_result_async())
        return response is not None and response.status == GoalStatus.STATUS_SUCCEEDED

    def _spawn(self, work: Any) -> Future[Any]:
        """Begin with work while callbacks go on."""
        executor = self._node.executor
        if executor is None:
            raise RuntimeError("callbacks come from an executor")
        task: Future[Any] = executor.create_task(work)
        return task

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


def _standing(positions: Any) -> PresentState:
    return PresentState(positions, np.zeros(len(positions)))


def _holds_by_itself(response: Any) -> bool:
    """Whether the controller holds by itself after a goal, with the efforts of another posture."""
    violated = response.status == GoalStatus.STATUS_ABORTED and response.result.error_code in _VIOLATIONS
    return violated or response.status == GoalStatus.STATUS_CANCELED
