"""The loads that a guard counts with, by services of the node that it is in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from rclpy.node import Node

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.payload import NO_LOAD, Payload
from hodyn_ros.guard.carried_load import CarriedLoad
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guarded_robot import StiffRobot, effort_model, effort_observer
from hodyn_ros.guard.reasons import State
from hodyn_ros.msg import PayloadEstimate
from hodyn_ros.observers.effort_observer import EffortObserver
from hodyn_ros.ros.parameters.parameters import value
from hodyn_ros.ros.streams.qos import stream_qos
from hodyn_ros.ros.streams.stream_executor import beside_streams
from hodyn_ros.ros.triggers import serve_triggers

LOAD = "payload"


class GuardedLoads:
    """Topic `payload`, services `~/take_payload` and `~/drop_payload`, and the model that follows from them.

    Nothing changes until a service is called, nor then where the motion under the `guard` says otherwise.
    `motor`: whether efforts are those of the motors; `at_links`: whether positions are measured at the links,
    else at the motors. `carried` is the model for the guard; None where efforts
    are not known, as without a robot.
    """

    def __init__(
        self,
        node: Node,
        robot: Robot | None,
        joint_names: Sequence[str],
        *,
        motor: bool,
        at_links: bool = False,
    ) -> None:
        self._node, self._robot, self._names = node, robot, tuple(joint_names)
        self._motor, self._at_links = motor, at_links
        model = None if robot is None else effort_model(robot, joint_names, motor=motor)
        self.carried, self.load = None if model is None else CarriedLoad(model), NO_LOAD
        self.guard: CommandGuard | None = None  # which knows how the robot moves
        self._source = LoadSource(LOAD)
        self._kept = [
            node.create_subscription(PayloadEstimate, LOAD, self._source.take, stream_qos()),
            serve_triggers(node, take_payload=self._take, drop_payload=partial(self._count_with, NO_LOAD)),
        ]

    def observer(self) -> EffortObserver | None:
        """Return what tells how far efforts and motion disagree with the load that is carried."""
        if self._robot is None or self.carried is None:
            return None
        return effort_observer(
            self._robot, self._names, self.carried.links, motor=self._motor, at_links=self._at_links
        )

    def at(self, now: int) -> None:
        """Take over what holds at an instant [ns]."""
        if self.carried is not None:
            self.carried.at(now)

    def _take(self) -> str:
        """Count with what observer_node says, where that is known well."""
        return self._count_with(self._source.load(value(self._node, "payload_limit")))

    def _count_with(self, load: Payload) -> str:
        if self._robot is None or self.carried is None:
            raise InputError("the guard has no model of the robot; set the parameter robot_config")
        self._require_no_stop()
        if self.carried.fading:  # before anything is compiled
            raise InputError("a load is being faded; wait until it is carried")
        duration = value(self._node, "payload_fade")
        model = beside_streams(self._node, partial(self._model, self._robot, load))
        self._require_no_stop()
        if self.guard is not None and (why := self.guard.contradicted(self.carried, model)) is not None:
            raise InputError(
                f"the robot does not move as if it carried {load.mass:.3f} kg: at joint {why.joint!r} "
                f"{why.value:.3g} N.m or N would be unexplained, {why.limit:.3g} are allowed"
            )
        self.carried.take(model, duration)
        self.load = load
        answer = f"the guard counts with {load.mass:.3f} kg, faded over {duration:g} s"
        self._node.get_logger().info(answer)
        return answer

    def _require_no_stop(self) -> None:
        """A stop keeps what its model did not explain, which may be this load: it would count twice."""
        if self.guard is not None and self.guard.state is State.STOPPING:
            raise InputError("the robot is being stopped; ask again once it stands")

    def _model(self, robot: Robot, load: Payload) -> StiffRobot:
        model = effort_model(robot.with_tree(load.on_tree(robot)), self._names, motor=self._motor)
        assert model is not None  # there is one without a load
        return model


OLDEST = 2.0  # [s] since an estimate came, that a load may be taken by it
_NEEDED = ("mass", "centre x", "centre y", "centre z")


class LoadSource:
    """Holds the last estimate of a topic; nothing follows from it until it is asked for."""

    def __init__(self, topic: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._topic, self._clock = topic, clock
        self._last: PayloadEstimate | None = None
        self._came_at = 0.0

    def take(self, message: PayloadEstimate) -> None:
        """Take the newest estimate."""
        self._last, self._came_at = message, self._clock()

    def load(self, most: float) -> Payload:
        """Return the load of at most `most` [kg] that the robot carries by the last estimate.

        Raises InputError where none has come lately, the motion has not shown mass and centre, or the figures
        are not those of a load.
        """
        last, age = self._last, self._clock() - self._came_at
        if last is None:
            raise InputError(f"nothing has come on {self._topic}; let observer_node run with a payload_rate")
        if age > OLDEST:
            raise InputError(
                f"the last estimate on {self._topic} came {age:.3g} s ago; is the observer running?"
            )
        hidden = [name for name in _NEEDED if name in last.hidden]
        if hidden:
            raise InputError(f"the motion has not yet shown {', '.join(hidden)} of the load")
        if not last.mass <= most:
            raise InputError(f"the load has {last.mass:.3g} kg, and payload_limit allows {most:g} kg")
        return Payload(last.mass, tuple(last.centre), tuple(last.inertia), last.header.frame_id)
