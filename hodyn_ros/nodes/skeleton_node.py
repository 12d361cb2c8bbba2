"""skeleton_node: the desired motion as a figure of lines, for RViz.

Works for every robot that can be described, without URDF, meshes and robot_state_publisher.

Topics: `desired_motion` (DesiredMotion) in; `skeleton` (visualization_msgs/Marker) out, the newest motion at
`rate`; `/diagnostics` at 1 Hz.
"""

from __future__ import annotations

import sys
from functools import partial

from geometry_msgs.msg import Point
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from hodyn_ros.array import Array
from hodyn_ros.dynamics.kinematics.skeleton import read_skeleton
from hodyn_ros.errors import HodynError
from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.messages import read_base_motion, read_desired_motion, warm_up_poses
from hodyn_ros.ros.diagnostics import OK, WARN, Diagnostics, Report
from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare, parameters, value
from hodyn_ros.ros.parameters.robot_file import robot_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.qos import advertise, sensor_qos, stream_qos, subscribe
from hodyn_ros.ros.streams.rejections import Reason, Rejections
from hodyn_ros.ros.streams.stream_executor import StreamGroup

SETTINGS = parameters(
    robot_config=ParameterSpec(
        "", "Robot to draw: path of a YAML file, or the name of a shipped one such as panda.yaml."
    ),
    rate=ParameterSpec(30.0, "Pictures per second [Hz].", within=(1.0, 100.0)),
    frame_id=ParameterSpec("world", "Frame of the lines where the motion does not name one."),
    width=ParameterSpec(0.015, "Width of the lines [m].", within=(0.001, 1.0)),
)


class SkeletonNode(Node):
    """Draws the newest desired motion; the lines come from a `Skeleton`."""

    def __init__(self) -> None:
        super().__init__("skeleton_node")
        declare(self, SETTINGS)
        self._skeleton = read_skeleton(robot_file(self))
        if self._skeleton.moves_base:
            warm_up_poses()
        self._joints = JointOrder(self._skeleton.joint_names)
        self._newest: DesiredMotion | None = None
        self._drawn = 0
        self._rejections = Rejections(self.get_logger().warning, "desired_motion")
        self._publisher = advertise(self, Marker, "skeleton", stream_qos(1))
        streams = StreamGroup()
        self._subscription = subscribe(
            self, DesiredMotion, "desired_motion", self._take, sensor_qos(), streams
        )
        self._diagnostics = Diagnostics(self, self._report)
        self._timer = steady_timer(self, 1.0 / value(self, "rate"), self._draw, streams)

    def _take(self, msg: DesiredMotion) -> None:
        self._newest = msg

    def _draw(self) -> None:
        msg, self._newest = self._newest, None
        if msg is None:
            return
        with self._rejections.counting(HodynError, Reason.UNREACHABLE):
            q = read_desired_motion(msg, self._joints, 1)[0]
            pose = read_base_motion(msg, 1).pose if self._skeleton.moves_base else None
            lines = self._skeleton.lines(q, pose)
            self._publisher.publish(self._marker(msg, lines))
            self._drawn += 1

    def _marker(self, msg: DesiredMotion, lines: Array) -> Marker:
        marker = Marker(ns="skeleton", type=Marker.LINE_LIST, action=Marker.ADD)
        marker.header.stamp = msg.header.stamp
        marker.header.frame_id = msg.header.frame_id or value(self, "frame_id")
        marker.pose.orientation.w = 1.0
        marker.scale.x = value(self, "width")
        marker.color = ColorRGBA(r=0.1, g=0.45, b=0.8, a=1.0)
        marker.points = [Point(x=x, y=y, z=z) for x, y, z in lines.reshape(-1, 3).tolist()]
        return marker

    def _report(self) -> Report:
        values = {"drawn": self._drawn, "rejected": self._rejections.total, **self._rejections.as_values()}
        if not self._drawn:
            return Report(WARN, "waiting for the first desired motion", values)
        return Report(OK, "drawing", values)


main = partial(run, SkeletonNode)

if __name__ == "__main__":
    sys.exit(main())
