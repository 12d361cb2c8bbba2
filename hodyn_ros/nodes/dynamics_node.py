"""dynamics_node: a desired motion in, the feedforward efforts with their time derivatives out.

A lifecycle node: *configure* loads the robot and warms the dynamics, *activate* answers, *deactivate* stops
answering, *cleanup* forgets the robot. With the parameter `autostart` (the default) it configures and
activates itself.

Topics: `desired_motion` (DesiredMotion) in; `feedforward_torque` (FeedforwardTorque) out, one for each
accepted sample and with its stamp; `/diagnostics` at 1 Hz.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from hodyn_ros import share
from hodyn_ros.control.feedforward import Feedforward, Law, Status
from hodyn_ros.control.law_reader import read_law
from hodyn_ros.errors import ConvergenceError, HodynError, InputError, OverflowingError, SingularError
from hodyn_ros.motion import BaseMotion
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.nodes.diagnostics import OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.nodes.joint_order import JointOrder
from hodyn_ros.nodes.messages import (
    nanoseconds,
    read_base_motion,
    read_desired_motion,
    write_feedforward_torque,
)
from hodyn_ros.nodes.parameters import Setting, declare, value
from hodyn_ros.nodes.process import run
from hodyn_ros.nodes.qos import overridable, stream_qos
from hodyn_ros.nodes.refusals import Reason, Refusals, Refused
from hodyn_ros.nodes.stream_executor import StreamGroup
from hodyn_ros.nodes.timeline import Timeline

MAX_ORDER = 6

SETTINGS = (
    Setting(
        "robot_config",
        "",
        "Robot to compute: path of a YAML file, or the name of a shipped one such as panda.yaml. "
        "Fixed while the node is configured; clean it up to load another.",
    ),
    Setting("order", 2, "Highest time derivative of the efforts that is computed.", low=0, high=MAX_ORDER),
    Setting("clamp", False, "Hold efforts within the robot's limits, with derivatives of zero while held."),
    Setting(
        "gravity",
        [],
        "Gravity in the world frame, pointing down [m/s^2], three values; empty: that of the robot's file.",
    ),
    Setting(
        "new_clock_after",
        5.0,
        "After how long [s] without an accepted sample stamps before the last one are accepted again.",
        low=0.1,
        high=3600.0,
        read_only=True,
    ),
    Setting(
        "autostart",
        True,
        "Configure and activate at the start, without waiting for a lifecycle manager.",
        read_only=True,
    ),
)
_STRUCTURAL = "robot_config"
_LIVE = ("order", "clamp", "gravity")


class DynamicsNode(LifecycleNode):
    """Answers desired motions with feedforward efforts; the arrays come from a `Law`."""

    def __init__(self) -> None:
        super().__init__("dynamics_node")
        declare(self, SETTINGS)
        self._law: Law | None = None
        self._next_law: Law | None = None
        self._joints = JointOrder(())
        self._joint_names: list[str] = []
        self._answering = False
        self._failure: Exception | None = None
        self._timeline = Timeline(value(self, "new_clock_after"))
        self._refusals = Refusals(self.get_logger().warning, "desired_motion")
        self._answers = Stream()
        self._limit_counts = dict.fromkeys((bit for bit in Status if bit), 0)
        self._troubles_reported = 0
        self._publisher = self.create_lifecycle_publisher(
            FeedforwardTorque,
            "feedforward_torque",
            stream_qos(),
            qos_overriding_options=overridable(publisher=True),
        )
        self._subscription = self.create_subscription(
            DesiredMotion,
            "desired_motion",
            self._take,
            stream_qos(),
            callback_group=StreamGroup(),
            qos_overriding_options=overridable(),
        )
        self._diagnostics = Diagnostics(self, self._report)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._use_parameters)
        if value(self, "autostart"):
            self._start()

    # lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the robot and compute once, so that the first answer is as fast as all others."""
        try:
            self._use(self._build(self._chosen()))
        except Exception as error:  # rclpy would drop whatever leaves this method, without a word
            self._failure = error
            if not value(self, "autostart"):
                self.get_logger().error(f"cannot configure: {error}")
            return TransitionCallbackReturn.FAILURE
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer from now on, whatever the stamps before."""
        self._timeline.forget()
        self._answering = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering at once; samples that come are dropped."""
        self._answering = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the robot; another can be configured."""
        self._law = None
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering for good."""
        self._answering = False
        return super().on_shutdown(state)

    def _start(self) -> None:
        if self.trigger_configure() != TransitionCallbackReturn.SUCCESS:
            raise self._failure or InputError("the node could not be configured")
        self.trigger_activate()

    # parameters

    def _chosen(self) -> dict[str, Any]:
        return {name: value(self, name) for name in (_STRUCTURAL, *_LIVE)}

    def _build(self, chosen: dict[str, Any]) -> Law:
        if not chosen["robot_config"]:
            raise InputError(
                "parameter 'robot_config' is empty; name a robot, for instance -p robot_config:=panda.yaml"
            )
        gravity = list(chosen["gravity"])
        if len(gravity) not in (0, 3) or not np.isfinite(gravity).all():
            raise InputError(f"parameter 'gravity' is {gravity}; give three finite values, or none")
        path = share.find("config", chosen["robot_config"])
        law = read_law(path, chosen["order"], chosen["clamp"], gravity or None)
        law.warm_up()
        return law

    def _use(self, law: Law) -> None:
        self._law = law
        if law.motion_joints != self._joints.names:
            self._joints = JointOrder(law.motion_joints)
        self._joint_names = list(law.joint_names)
        self._diagnostics.hardware_id = law.name
        drives = "with its drives" if law.has_drives else "without drives"
        self.get_logger().info(
            f"robot {law.name!r}, {len(law.joint_names)} joints, {drives}; efforts to order {law.order}"
        )

    def _check_parameters(self, parameters: Sequence[Parameter[Any]]) -> SetParametersResult:
        """Build what the new values ask for, before any of them is set: all of them hold, or none."""
        self._next_law = None
        if self._law is None:
            return SetParametersResult(successful=True)
        changed = {parameter.name: parameter.value for parameter in parameters}
        if _STRUCTURAL in changed:
            reason = f"{_STRUCTURAL} is fixed while the node is configured; clean the node up first"
            return SetParametersResult(successful=False, reason=reason)
        if not changed.keys() & set(_LIVE):
            return SetParametersResult(successful=True)
        try:
            self._next_law = self._build(self._chosen() | changed)
        except (HodynError, OSError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _use_parameters(self, parameters: Sequence[Parameter[Any]]) -> None:
        if self._next_law is not None:
            self._use(self._next_law)
            self._next_law = None

    # samples

    def _take(self, msg: DesiredMotion) -> None:
        taken_at = time.perf_counter()
        law = self._law
        if law is None or not self._answering:
            return
        stamp = nanoseconds(msg.header.stamp)
        try:
            self._timeline.check(stamp)
            q = read_desired_motion(msg, self._joints, law.motion_orders)
            feedforward = law(q, self._read_base(msg, law))
            _check_result(feedforward)
        except Refused as refused:
            self._refusals.add(refused)
            return
        except OverflowingError:
            self._refusals.add(Refused(Reason.RESULT_NOT_FINITE, "the values it holds are far too large"))
            return
        except (ConvergenceError, SingularError) as error:
            self._refusals.add(Refused(Reason.UNREACHABLE, str(error)))
            return
        except InputError as error:  # a platform that cannot move like that
            self._refusals.add(Refused(Reason.BAD_BASE, str(error)))
            return
        self._timeline.accept(stamp)
        computation_time = time.perf_counter() - taken_at
        self._publisher.publish(
            write_feedforward_torque(msg.header, self._joint_names, feedforward, computation_time)
        )
        self._answers.tick(computation_time)
        if feedforward.status:
            self._count_limits(feedforward.status)

    def _read_base(self, msg: DesiredMotion, law: Law) -> BaseMotion | None:
        if law.moves_base:
            return read_base_motion(msg, law.motion_orders - 1)
        if msg.base_pose or msg.base_twists:
            raise Refused(
                Reason.BAD_BASE,
                f"robot {law.name!r} stands on the ground; leave base_pose and base_twists "
                "empty, or load a robot with a floating base",
            )
        return None

    # diagnostics

    def _count_limits(self, status: Status) -> None:
        for bit in self._limit_counts:
            if status & bit:
                self._limit_counts[bit] += 1

    def _report(self) -> Report:
        law, answers = self._law, self._answers
        p50, p99 = answers.percentiles(50.0, 99.0)
        values: dict[str, object] = {
            "order": law.order if law else "",
            "clamp": law.clamp if law else "",
            "answered": answers.count,
            "rate [1/s]": answers.rate(),
            "age of the last answer [s]": answers.age(),
            "computation time p50 [us]": p50 * 1e6,
            "computation time p99 [us]": p99 * 1e6,
            "refused": self._refusals.total,
            **self._refusals.as_values(),
            **{bit.name.lower().replace("_", " "): n for bit, n in self._limit_counts.items() if bit.name},
        }
        if law is None:
            return Report(OK, "no robot is configured", values)
        if not self._answering:
            return Report(OK, "not active", values)
        troubles = self._refusals.total + sum(self._limit_counts.values())
        new, self._troubles_reported = troubles - self._troubles_reported, troubles
        if new:
            return Report(WARN, "samples were refused, or efforts are beyond limits", values)
        return Report(OK, "answering" if answers.count else "waiting for the first desired motion", values)


def _check_result(feedforward: Feedforward) -> None:
    for stack in (feedforward.efforts, feedforward.motor_efforts, feedforward.base_wrenches):
        if not np.isfinite(stack).all():
            raise Refused(
                Reason.RESULT_NOT_FINITE,
                "its efforts come out infinite; the values it holds are far too large",
            )


def main(args: Sequence[str] | None = None) -> int:
    """Run dynamics_node as a process."""
    return run(DynamicsNode, args)


if __name__ == "__main__":
    sys.exit(main())
