"""From a desired motion to its answer: all that dynamics_node computes, without a node around it.

The node answers what comes on a topic; `hodyn replay` answers what a bag holds, with the settings that the
node has published there, and gets the same numbers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from rclpy.serialization import serialize_message

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ConvergenceError, HodynError, InputError, OverflowingError, SingularError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.robot_text import RobotText
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import all_finite
from hodyn_ros.ros.conversions.joint_order import JointOrder
from hodyn_ros.ros.conversions.messages import (
    nanoseconds,
    read_base_motion,
    read_desired_motion,
    warm_up_poses,
)
from hodyn_ros.ros.conversions.serialised import AnswerWriter, MotionReader, read_message
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.ros.streams.stamp_filter import StampFilter

_VERSION = 1


class SerialisedAnswer(NamedTuple):
    """A FeedforwardTorque as it travels, and what the statistics want to know of it."""

    data: bytes
    status: int
    computation_time: float  # [s]


class FeedforwardPipeline:
    """Answers desired motions of one robot under one set of settings.

    `text` describes the robot that `robot` is, before `chosen` changes gravity or payload; `timeline` judges
    the stamps. Building one compiles the dynamics and computes once, so that the first answer is as fast as
    all others. Raises HodynError where settings and robot do not fit.
    """

    def __init__(
        self,
        text: RobotText,
        robot: Robot,
        chosen: FeedforwardConfig,
        timeline: StampFilter | None = None,
        loaded: Robot | None = None,
    ) -> None:
        self.text = text
        self.robot = robot
        self.chosen = chosen
        self.timeline = StampFilter() if timeline is None else timeline
        self._loaded = chosen.robot(robot) if loaded is None else loaded  # with gravity and payload as chosen
        self.law = chosen.law(self._loaded)
        if loaded is None:
            self.law.warm_up()
        if self.law.moves_base:
            warm_up_poses()
        self._joints = JointOrder(self.law.motion_joints)
        self._reader = MotionReader(self._joints, self.law.motion_orders, self.law.moves_base)
        self._writer = AnswerWriter(self.law.joint_names, self.law.wrench_bodies, self.law.wrench_frame)

    def changed(self, chosen: FeedforwardConfig) -> FeedforwardPipeline:
        """Return an answerer with other settings; `take_over` before it answers in this one's place."""
        loaded = self._loaded if chosen.same_dynamics(self.chosen) else None
        return FeedforwardPipeline(self.text, self.robot, chosen, self.timeline, loaded)

    def take_over(self, other: FeedforwardPipeline) -> None:
        """Go on from what another answerer of the same robot has reached."""
        self._start_from(other.law.positions)

    def answer(self, msg: DesiredMotion, wrenches: Array | None = None) -> FeedforwardTorque:
        """Return the answer to a desired motion; raises Refused with the reason, and then changes nothing.

        `wrenches` (wrench bodies, order + 1, 6) with their derivatives, represented as chosen, zero by
        default.
        """
        started_at = time.perf_counter()
        stamp = nanoseconds(msg.header.stamp)
        self.timeline.check(stamp)
        q = read_desired_motion(msg, self._joints, self.law.motion_orders)
        feedforward = self._computed(stamp, q, self._read_base(msg), wrenches)
        return self._writer.message(msg.header, feedforward, wrenches, time.perf_counter() - started_at)

    def answer_serialised(self, data: bytes, wrenches: Array | None = None) -> SerialisedAnswer:
        """Return the answer to a desired motion that is still as it travelled; else as `answer`."""
        started_at = time.perf_counter()
        sample = self._reader.read(data)
        if sample is None:
            msg = read_message(data)
            answer = self.answer(msg, wrenches)
            self._reader.learn(data, msg)
            return SerialisedAnswer(serialize_message(answer), answer.status, answer.computation_time)
        self.timeline.check(sample.stamp)
        feedforward = self._computed(*sample, wrenches)
        computation_time = time.perf_counter() - started_at
        answer_data = self._writer.write(data, self._reader.header, feedforward, wrenches, computation_time)
        return SerialisedAnswer(answer_data, feedforward.status, computation_time)

    def _computed(self, stamp: int, q: Array, base: BaseMotion | None, wrenches: Array | None) -> Feedforward:
        try:
            feedforward = self.law.compute(q, base, wrenches)
        except OverflowingError:
            raise MessageRejected(Reason.RESULT_NOT_FINITE, "the values it holds are far too large") from None
        except (ConvergenceError, SingularError) as error:
            raise MessageRejected(Reason.UNREACHABLE, str(error)) from None
        except InputError as error:  # a platform that cannot move like that
            raise MessageRejected(Reason.BAD_BASE, str(error)) from None
        _check_result(feedforward)
        self.timeline.accept(stamp)
        return feedforward

    def settings(self) -> str:
        """Return as JSON all that the answers follow from; they hold after the last sample answered so far.

        Keys: `robot` (the fields of `RobotText`), `law` (the fields of `FeedforwardConfig`),
        `new_clock_after` [s], `after_stamp` [ns] or null, `positions` (where the next call of a robot
        with loops starts, [rad or m]) or null, and `version`.
        """
        return json.dumps(
            {
                "version": _VERSION,
                "robot": self.text.to_json(),
                "law": self.chosen.to_json(),
                "new_clock_after": self.timeline.forget_after,
                "after_stamp": self.timeline.last,
                "positions": self.law.positions,
            }
        )

    @classmethod
    def from_settings(cls, text: str, clock: Callable[[], float] = time.monotonic) -> FeedforwardPipeline:
        """Build the answerer that `settings` describes; InputError where the text is something else.

        Its timeline is empty; `clock` [s] tells when messages arrive, in a replay when they were recorded.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            version = data["version"]
            if version != _VERSION:
                raise InputError(f"the settings have version {version!r}; this hodyn_ros reads {_VERSION}")
            robot_text = RobotText(**data["robot"])
            chosen = FeedforwardConfig.from_json(data["law"])
            timeline = StampFilter(float(data["new_clock_after"]), clock)
            result = cls(robot_text, robot_text.robot(), chosen, timeline)
            result._start_from(data["positions"])
        except HodynError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"these are not the settings of a dynamics_node: {error!r}") from error
        return result

    def _start_from(self, positions: list[float] | None) -> None:
        if positions is not None:
            self.law.start_from(positions)

    def _read_base(self, msg: DesiredMotion) -> BaseMotion | None:
        if self.law.moves_base:
            return read_base_motion(msg, self.law.motion_orders - 1)
        if msg.base_pose or msg.base_twists:
            raise MessageRejected(
                Reason.BAD_BASE,
                f"robot {self.law.name!r} stands on the ground; leave base_pose and base_twists "
                "empty, or load a robot with a floating base",
            )
        return None


def _check_result(feedforward: Feedforward) -> None:
    for stack in (feedforward.efforts, feedforward.motor_efforts, feedforward.base_wrenches):
        if not all_finite(stack):
            raise MessageRejected(
                Reason.RESULT_NOT_FINITE,
                "its efforts come out infinite; the values it holds are far too large",
            )
