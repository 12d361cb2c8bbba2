"""The service and the action `~/retime` of trajectory_filter: paths in, the fastest motions out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.action import RetimeTrajectory as RetimeAction
from hodyn_ros.nodes.filtering.trajectory_with_efforts import TrajectoryEfforts
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.srv import RetimeTrajectory as RetimeService
from hodyn_ros.trajectory.splines.start import PresentState

_STEP = 0.01  # of the search, between two feedbacks at least

Beside = Callable[[Callable[[], JointTrajectory]], Awaitable[JointTrajectory]]


class _CanceledError(Exception):
    """The client does not want the motion any more."""


class Retiming:
    """Serves `~/retime` of a node, as a service and as an action.

    `present` says where the robot is; `beside` computes in another thread while the node serves callbacks.
    """

    def __init__(
        self, node: Node, efforts: TrajectoryEfforts, present: Callable[[], PresentState], beside: Beside
    ) -> None:
        self._efforts = efforts
        self._present = present
        self._beside = beside
        group = ReentrantCallbackGroup()
        self._service = node.create_service(RetimeService, "~/retime", self._answer, callback_group=group)
        self._action: Any = ActionServer(
            node,
            RetimeAction,
            "~/retime",
            self._execute,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            callback_group=group,
        )

    def destroy(self) -> None:
        """Give up the action; the node itself gives up the service."""
        self._action.destroy()

    async def _answer(
        self, request: RetimeService.Request, response: RetimeService.Response
    ) -> RetimeService.Response:
        try:
            response.trajectory = await self._fastest(request)
        except MessageRejected as rejected:
            response.message = str(rejected)
        else:
            response.success = True
            response.message = _duration_in_words(response.trajectory)
        return response

    async def _execute(self, handle: Any) -> RetimeAction.Result:
        try:
            trajectory = await self._fastest(handle.request, _Progress(handle))
        except _CanceledError:
            handle.canceled()
            return RetimeAction.Result(message="canceled before the motion was found")
        except MessageRejected as rejected:
            handle.abort()
            return RetimeAction.Result(message=str(rejected))
        handle.succeed()
        return RetimeAction.Result(trajectory=trajectory, message=_duration_in_words(trajectory))

    async def _fastest(self, asked: Any, progress: Callable[[float], None] | None = None) -> JointTrajectory:
        """Return the motion that a request or a goal asks for; raises MessageRejected."""
        if len(asked.quantities) != len(asked.shares):
            raise MessageRejected(
                Reason.WRONG_LENGTH,
                f"there are {len(asked.quantities)} quantities and {len(asked.shares)} shares; give a share "
                "for each",
            )
        work = partial(
            self._efforts.fastest,
            asked.path,
            self._present(),
            asked.blend,
            dict(zip(asked.quantities, asked.shares)),
            asked.stiffness_error,
            progress,
        )
        return await self._beside(work)


class _Progress:
    """Tells the client of a goal how far the search is, and ends the search where the client cancels."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._published = -1.0

    def __call__(self, share: float) -> None:
        if self._handle.is_cancel_requested:
            raise _CanceledError
        if share >= self._published + _STEP:
            self._published = share
            self._handle.publish_feedback(RetimeAction.Feedback(progress=share))


def _duration_in_words(trajectory: JointTrajectory) -> str:
    last = trajectory.points[-1].time_from_start
    return f"the motion lasts {last.sec + 1e-9 * last.nanosec:.6f} s"
