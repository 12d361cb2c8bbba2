"""A robot as its topics say, while it moves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from sensor_msgs.msg import JointState

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.messages import read_base_motion, read_desired_motion
from hodyn_ros.ros.process import PrivateNode
from hodyn_ros.ros.streams.qos import sensor_qos
from hodyn_ros.ros.streams.rejections import MessageRejected
from hodyn_ros.view.track import Instant, drive_limits

_TOPICS = {
    "desired_motion": DesiredMotion,
    "joint_states": JointState,
    "motor_states": JointState,
    "feedforward_torque": FeedforwardTorque,
}
TOPICS = ", ".join(_TOPICS)


class LiveRobot(PrivateNode):
    """Keeps the newest messages on `desired_motion`, `joint_states`, `motor_states`, `feedforward_torque`.

    Use it in a `with` block, which gives a function that returns the newest instant. Messages that are
    malformed, or of another robot, are passed over: the nodes that need them say so.
    """

    def __init__(self, robot: Robot, namespace: str = "") -> None:
        self._robot, self._train = robot, robot.drive_train
        self._joints = JointOrder(robot.joint_names)
        self._motors = robot.driven_joints if self._train is None else self._train.motor_names
        self._drives = len(drive_limits(robot))
        self._newest: dict[str, object] = {}
        self._read: tuple[tuple[int, ...], Instant] = ((), Instant())
        super().__init__("hodyn_view", namespace)
        for topic, kind in _TOPICS.items():
            self._node.create_subscription(kind, topic, partial(self._keep, topic), sensor_qos(1))

    def _keep(self, topic: str, message: object) -> None:
        self._newest[topic] = message

    def __call__(self) -> Instant:
        """Return what is newest; the same as before where nothing has come."""
        for _ in _TOPICS:
            self._executor.spin_once(timeout_sec=0.0)
        messages = dict(self._newest)
        seen = tuple(id(message) for message in messages.values())
        if seen != self._read[0]:
            self._kept = messages  # so that their identities are not given to others
            self._read = seen, self._instant(messages)
        return self._read[1]

    def _instant(self, messages: dict[str, object]) -> Instant:
        desired = pose = None
        motion, answer = messages.get("desired_motion"), messages.get("feedforward_torque")
        try:
            if isinstance(motion, DesiredMotion):
                pose = read_base_motion(motion, 1).pose if self._robot.moves_base else None
                desired = read_desired_motion(motion, self._joints, 1)[0]
        except MessageRejected:
            desired = pose = None
        links, motors = messages.get("joint_states"), messages.get("motor_states")
        measured = None
        if pose is not None or not self._robot.moves_base:
            measured = _named(links, "position", self._robot.joint_names)
        driven = _named(links, "position", self._robot.driven_joints)
        theta = _named(motors, "position", self._motors)
        deflections = None
        if self._train is not None and self._train.elastic.any() and theta is not None and driven is not None:
            deflections = self._train.deflections(driven, theta)
        torques = _named(motors, "effort", self._motors)
        if torques is None and isinstance(answer, FeedforwardTorque):
            torques = np.array([*(answer.motor_efforts or answer.efforts), *answer.thrusts])
            if tuple(answer.joint_names) != self._robot.driven_joints:
                torques = None
        if torques is not None and not (len(torques) == self._drives and np.isfinite(torques).all()):
            torques = None
        return Instant(desired, pose, measured, deflections, torques)


def _named(message: object, field: str, names: Sequence[str]) -> Array | None:
    """Return what a joint state says of some joints; None where it leaves one out."""
    if not isinstance(message, JointState) or not names:
        return None
    values = dict(zip(message.name, getattr(message, field)))
    if not all(name in values for name in names):
        return None
    ordered = np.array([values[name] for name in names])
    return ordered if np.isfinite(ordered).all() else None
