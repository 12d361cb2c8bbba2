"""trajectory_filter: joint trajectories in, the same with efforts out, dense enough for elastic joints.

Stands between who plans (MoveIt, for instance) and a joint_trajectory_controller with an effort interface.

Topics: `~/joint_trajectory` (trajectory_msgs/JointTrajectory) in, `filtered_joint_trajectory` out;
`joint_states` (sensor_msgs/JointState) in, to start where the robot is; `/diagnostics` at 1 Hz. Action, where
control_msgs is installed: `~/follow_joint_trajectory` (control_msgs/FollowJointTrajectory), whose goals go on
to `<controller>/follow_joint_trajectory`; then `<controller>/controller_state` in, for stops and holds.
Service and action: `~/retime` (RetimeTrajectory), the fastest motion along a path that keeps all limits of
the robot.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

import scipy.interpolate  # noqa: F401  at the start: no trajectory is to wait for it
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.nodes.filtering.retiming import Retiming
from hodyn_ros.nodes.filtering.trajectory_with_efforts import Filtered, TrajectoryEfforts, in_words
from hodyn_ros.planning.effort_trajectory import EffortFilter
from hodyn_ros.ros.conversions.joint_state_buffer import JointStateBuffer
from hodyn_ros.ros.conversions.messages import nanoseconds
from hodyn_ros.ros.diagnostics import OK, WARN, Diagnostics, Report, Stream
from hodyn_ros.ros.parameters.dynamics_settings import LOAD_SETTINGS
from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare, parameters, value
from hodyn_ros.ros.parameters.robot_file import robot_file
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.qos import advertise, sensor_qos, stream_qos, subscribe
from hodyn_ros.ros.streams.rejections import Rejections
from hodyn_ros.scheduling import give_way
from hodyn_ros.trajectory.splines.start import PresentState

_Result = TypeVar("_Result")

if TYPE_CHECKING:
    from hodyn_ros.nodes.filtering.trajectory_proxy import TrajectoryProxy

SETTINGS = (
    *parameters(
        robot_config=ParameterSpec(
            "", "Robot to compute: path of a YAML file, or the name of a shipped one such as panda.yaml."
        ),
        joints=ParameterSpec(
            [], "Joints that the controller moves, in its order; empty: all joints of the robot.", element=str
        ),
        controller=ParameterSpec(
            "joint_trajectory_controller", "Controller whose action follow_joint_trajectory takes the goals."
        ),
        efforts=ParameterSpec(
            "link",
            "Efforts to fill in: link, what the joints transmit; motor, what the motors produce, with "
            "their inertias and springs.",
        ),
        period=ParameterSpec(0.01, "Time between two points at most [s].", within=(0.0005, 1.0)),
        ease=ParameterSpec(
            0.1,
            "An end at rest gets no jump of the acceleration; given points nearer to it than this [s] are "
            "then left out. 0: accelerations as they are given.",
            within=(0.0, 10.0),
        ),
        limits=ParameterSpec(
            "reject",
            "How a trajectory beyond a limit of the robot is treated: reject, or pass with a warning.",
        ),
        max_departure=ParameterSpec(
            0.2,
            "How far [rad or m] the smooth motion may be from the interpolation of the controller; 0: any "
            "distance.",
            within=(0.0, 100.0),
        ),
        start_tolerance=ParameterSpec(
            0.05,
            "How far [rad or m] a first point at time 0 may be from the position in joint_states, and a "
            "motion from its start when its stamp has passed; 0: any distance.",
            within=(0.0, 100.0),
        ),
        stop_duration=ParameterSpec(
            0.5,
            "How long [s] a canceled or replaced goal takes to come to rest on its path.",
            within=(0.05, 10.0),
        ),
    ),
    *(replace(setting, live=False) for setting in LOAD_SETTINGS),
)


class TrajectoryFilter(Node):
    """Passes trajectories on with efforts; these come from `TrajectoryEfforts`, in a separate thread."""

    def __init__(self) -> None:
        super().__init__("trajectory_filter")
        declare(self, SETTINGS)
        self._limits: str = value(self, "limits")
        self._efforts = self._build()
        self._present = JointStateBuffer(self._efforts.robot_joints)
        # one thread: trajectories keep their order
        self._pool = ThreadPoolExecutor(max_workers=1, initializer=give_way)
        self._computed = Stream()
        self._last: Filtered | None = None
        self._troubles_reported = 0
        self._violating = 0
        self._rejections = Rejections(self.get_logger().warning, "trajectory")
        self._rejected_states = Rejections(self.get_logger().warning, "joint_states")
        self._publisher = advertise(self, JointTrajectory, "filtered_joint_trajectory", stream_qos(10))
        group = ReentrantCallbackGroup()
        self._kept = [
            subscribe(self, JointTrajectory, "~/joint_trajectory", self._take, stream_qos(10), group),
            subscribe(self, JointState, "joint_states", self._take_state, sensor_qos(1)),
        ]
        self._retiming = Retiming(self, self._efforts, self._present.state, self._computed_beside)
        self._proxy = self._open_proxy()
        self._diagnostics = Diagnostics(self, self._report, self._efforts.effort_filter.robot.name)

    def _build(self) -> TrajectoryEfforts:
        path = robot_file(self)
        if self._limits not in ("reject", "pass"):
            raise InputError(f"parameter 'limits' is {self._limits!r}; choose reject or pass")
        robot = FeedforwardConfig(
            **{setting.name: value(self, setting.name) for setting in LOAD_SETTINGS}
        ).robot(Robot.load(path))
        if robot.platform is not None:
            raise InputError(
                f"{path} describes a robot that its platform moves; its drives follow from the platform, so "
                "send a DesiredMotion to dynamics_node instead"
            )
        efforts = TrajectoryEfforts(
            EffortFilter(
                robot,
                value(self, "efforts"),
                value(self, "period"),
                value(self, "ease"),
                value(self, "start_tolerance"),
            ),
            tuple(value(self, "joints") or robot.joint_names),
            self._limits == "reject",
            value(self, "max_departure") or math.inf,
        )
        efforts.warm_up()
        return efforts

    def _open_proxy(self) -> TrajectoryProxy | None:
        if find_spec("control_msgs") is None:
            self.get_logger().warning(
                "control_msgs is not installed, so there is no action ~/follow_joint_trajectory; "
                "trajectories on ~/joint_trajectory are passed on"
            )
            return None
        from hodyn_ros.nodes.filtering.trajectory_proxy import TrajectoryProxy

        proxy = TrajectoryProxy(
            self,
            value(self, "controller"),
            self._efforts,
            self._fill_in,
            self._present.state,
            value(self, "stop_duration"),
            self._rejections,
        )
        self.get_logger().info(f"goals go on to {proxy.action}")
        return proxy

    def _take_state(self, msg: JointState) -> None:
        with self._rejected_states:
            self._present.take(msg)

    # trajectories

    async def _take(self, msg: JointTrajectory) -> None:
        with self._rejections:
            filtered = await self._fill_in(msg)
            self._publisher.publish(filtered.msg)

    async def _computed_beside(self, work: Callable[[], _Result]) -> _Result:
        """Return what is computed in another thread while this one serves callbacks."""
        executor = self.executor
        future: Future[_Result] = Future()

        def compute() -> None:
            try:
                future.set_result(work())
            except Exception as error:  # goes to who waits, who knows what to do
                future.set_exception(error)
            if executor is not None:
                executor.wake()

        self._pool.submit(compute)
        result = await future
        if result is None:
            raise RuntimeError("the computation ended without a result")
        return result

    async def _fill_in(
        self, msg: JointTrajectory, present: PresentState | None = None, wait: float = 0.0
    ) -> Filtered:
        """Return a trajectory with efforts, computed in another thread while this one serves callbacks."""
        started_at = time.perf_counter()
        start = present or self._present.state()
        filtered = await self._computed_beside(partial(self._efforts, msg, start))
        self._computed.tick(time.perf_counter() - started_at)
        if stamp := nanoseconds(msg.header.stamp):
            late = 1e-9 * (self.get_clock().now().nanoseconds - stamp) + wait
            self._efforts.require_in_time(filtered, late)
        self._last = filtered
        self._log(filtered, len(msg.points))
        return filtered

    def _log(self, filtered: Filtered, count: int) -> None:
        dense = filtered.result.dense
        departure = dense.departure
        rounded = f"; {dense.left_out} points next to its ends are rounded off" if dense.left_out else ""
        self.get_logger().info(
            f"a trajectory of {count} points has become one of {len(filtered.msg.points)}; it departs by "
            f"{departure.distance:.2g} rad (or m) at most from what the controller would make of it, joint "
            f"{self._efforts.robot_joints[departure.joint]!r} at {departure.time:.3f} s{rounded}"
        )
        if filtered.result.violations:
            self._violating += 1
            self.get_logger().warning(f"passed all the same: {in_words(filtered.result.violations)}")

    # diagnostics

    def _report(self) -> Report:
        values: dict[str, object] = {
            "filled in": self._computed.count,
            "filled in beyond limits": self._violating,
            **self._computed.as_values("computation time", "ms", [50]),
            **self._facts_of_last(),
            "rejected": self._rejections.total,
            **self._rejections.as_values(),
            **self._rejected_states.beside("rejected joint states"),
        }
        proxy = self._proxy
        if proxy is None:
            values["action"] = "none: control_msgs is not installed"
        else:
            values["action"] = proxy.action
            values["controller is there"] = proxy.controller_is_there
            values["goals under way"] = proxy.under_way
            values.update({f"goals {outcome}": count for outcome, count in proxy.outcomes.items()})
            values["stops"], values["holds"] = proxy.stops, proxy.holds
        troubles = self._rejections.total + self._rejected_states.total + self._violating
        new, self._troubles_reported = troubles - self._troubles_reported, troubles
        if new:
            return Report(WARN, "trajectories or joint states were rejected, or are beyond limits", values)
        return Report(OK, "waiting for trajectories", values)

    def _facts_of_last(self) -> dict[str, object]:
        if self._last is None:
            return {}
        result = self._last.result
        return {
            "last: points": len(self._last.msg.points),
            "last: departure [rad or m]": result.dense.departure.distance,
            "last: effort missed between points [N·m or N]": float(result.between.max()),
        }

    def destroy_node(self) -> None:
        """Give up the action, and what is still to be computed."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._retiming.destroy()
        if self._proxy is not None:
            self._proxy.destroy()
        super().destroy_node()


# which serves the controller's answers as they come
main = partial(run, TrajectoryFilter, make_executor=SingleThreadedExecutor)

if __name__ == "__main__":
    sys.exit(main())
