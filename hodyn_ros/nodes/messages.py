"""Messages to arrays and back, at the doors of the nodes. Names, lengths and finite values are checked here, once.

Reading raises `Refused` with the reason and a text that names the thing and the mend. Arrays are plain derivatives,
(orders, n), in the model's order of joints. Writing takes such arrays as they are.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration, Time
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.control.feedforward import Feedforward, Status
from hodyn_ros.hybrid_twists import twists_from_hybrid
from hodyn_ros.motion import BaseMotion
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.nodes.joint_order import JointOrder
from hodyn_ros.nodes.refusals import Reason, Refused
from hodyn_ros.se3 import pose

Array = NDArray[np.float64]

MOTION_FIELDS = ("positions", "velocities", "accelerations", "jerks", "snaps")
EFFORT_FIELDS = ("efforts", "effort_rates", "effort_accelerations")
MOTOR_POSITION_FIELDS = ("motor_positions", "motor_velocities", "motor_accelerations")
MOTOR_EFFORT_FIELDS = ("motor_efforts", "motor_effort_rates")


class TrajectoryPoints(NamedTuple):
    """The points of a JointTrajectory, in the model's order of joints."""

    times: Array  # (N,) [s] from the start of the trajectory, increasing
    positions: Array  # (N, n) [rad or m]
    velocities: Array | None  # (N, n) [rad/s or m/s]
    accelerations: Array | None  # (N, n) [rad/s^2 or m/s^2]


class JointReading(NamedTuple):
    """A JointState in the model's order of joints; None for what the message does not carry."""

    positions: Array | None  # (n,) [rad or m]
    velocities: Array | None  # (n,) [rad/s or m/s]
    efforts: Array | None  # (n,) [N.m or N]


def nanoseconds(stamp: Time | Duration) -> int:
    """Return a stamp or a duration as nanoseconds; differences of these are exact."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def float64s(values: Array) -> array[float]:
    """Return an array in the one form that rclpy passes on without looking at every number."""
    return array("d", values.tobytes())


# -- DesiredMotion ---------------------------------------------------------------------------------------------------


def read_desired_motion(msg: DesiredMotion, joints: JointOrder, orders: int) -> Array:
    """Return positions and their derivatives (orders, n), C-contiguous; what the message has beyond is left out.

    Raises Refused for bad names or lengths, numbers that are not finite (also in derivatives that are left out), and
    derivatives that are missing below another one or below `orders`.
    """
    rows = [getattr(msg, field) for field in MOTION_FIELDS]
    n = len(joints)
    if not msg.joint_names and (any(rows) or msg.higher_derivatives):
        raise Refused(
            Reason.NO_NAMES,
            f"the message holds values but joint_names is empty; name the joints: the model expects {joints.listing()}",
        )
    if n == 0:
        if msg.joint_names:
            raise Refused(
                Reason.UNKNOWN_JOINT, f"joint {msg.joint_names[0]!r} is unknown; the model has no joints"
            )
        return np.empty((orders, 0))
    places = joints.places(msg.joint_names)
    given = _check_stack(rows, msg.higher_derivatives, MOTION_FIELDS, "higher_derivatives", n)
    if given < orders:
        need = (
            MOTION_FIELDS[orders - 1]
            if orders <= len(MOTION_FIELDS)
            else f"derivatives of order {orders - 1}"
        )
        raise Refused(
            Reason.MISSING_DERIVATIVES,
            f"the message ends with {_order_name(given - 1)}, but the order asked for needs {need}; "
            "send them, or lower the order",
        )
    stack = _stack([*rows, msg.higher_derivatives], given, n)
    _check_finite(stack, joints, places, MOTION_FIELDS)
    return _in_model_order(stack[:orders], places)


def write_desired_motion(
    joint_names: list[str], stamp: Time, stack: Array, frame_id: str = ""
) -> DesiredMotion:
    """Return the message for a motion and its derivatives (orders, n), orders from 1 up."""
    msg = DesiredMotion(header=Header(stamp=stamp, frame_id=frame_id), joint_names=joint_names)
    _fill(msg, MOTION_FIELDS, "higher_derivatives", stack)
    return msg


def read_base_motion(msg: DesiredMotion, orders: int) -> BaseMotion:
    """Return pose and twists (orders, 6) of a floating base; raises Refused when they are missing or malformed."""
    if len(msg.base_pose) != 1:
        raise Refused(Reason.BAD_BASE, "base_pose is empty, but the robot has a floating base; send its pose")
    values = np.frombuffer(msg.base_twists)
    if len(values) % 6:
        raise Refused(
            Reason.WRONG_LENGTH,
            f"base_twists holds {len(values)} values; a twist and each derivative have six",
        )
    if len(values) < 6 * orders:
        raise Refused(
            Reason.MISSING_DERIVATIVES,
            f"base_twists holds {len(values) // 6} twists, but the order asked for needs {orders}: the twist and its "
            "derivatives; send them, or lower the order",
        )
    position, orientation = msg.base_pose[0].position, msg.base_pose[0].orientation
    quaternion = np.array([orientation.x, orientation.y, orientation.z, orientation.w])
    translation = np.array([position.x, position.y, position.z])
    if not (np.isfinite(values).all() and np.isfinite(quaternion).all() and np.isfinite(translation).all()):
        raise Refused(
            Reason.NOT_FINITE, "base_pose or base_twists holds NaN or infinite numbers; send finite ones"
        )
    norm = float(np.linalg.norm(quaternion))
    if abs(norm - 1.0) > 1e-3:
        raise Refused(
            Reason.BAD_BASE,
            f"the quaternion of base_pose has the norm {norm:.6g}; send a unit quaternion (x y z w)",
        )
    placement = pose(Rotation.from_quat(quaternion).as_matrix(), translation)
    twists = values.reshape(-1, 6)[:orders]
    if msg.base_twist_representation == DesiredMotion.BODY:
        return BaseMotion(placement, twists, frame="body")
    if msg.base_twist_representation == DesiredMotion.WORLD:
        return BaseMotion(placement, twists, frame="world")
    if msg.base_twist_representation == DesiredMotion.HYBRID:
        return BaseMotion(placement, twists_from_hybrid(placement, twists), frame="world")
    raise Refused(
        Reason.BAD_BASE,
        f"base_twist_representation is {msg.base_twist_representation}; send BODY (0), WORLD (1) or HYBRID (2)",
    )


# -- FeedforwardTorque -----------------------------------------------------------------------------------------------


def write_feedforward_torque(
    header: Header, joint_names: list[str], feedforward: Feedforward, computation_time: float
) -> FeedforwardTorque:
    """Return the message for a feedforward; `header` is that of the desired motion it answers, time in seconds."""
    msg = FeedforwardTorque(header=header, joint_names=joint_names)
    _fill(msg, EFFORT_FIELDS, "higher_effort_derivatives", feedforward.efforts)
    _fill(msg, MOTOR_POSITION_FIELDS, None, feedforward.motor_positions)
    _fill(msg, MOTOR_EFFORT_FIELDS, "higher_motor_effort_derivatives", feedforward.motor_efforts)
    if len(feedforward.base_wrenches):
        msg.base_wrench_representation = FeedforwardTorque.WORLD
        msg.base_wrenches = float64s(feedforward.base_wrenches)
    msg.status = int(feedforward.status)
    msg.computation_time = computation_time
    return msg


def read_feedforward_torque(msg: FeedforwardTorque, joints: JointOrder) -> Feedforward:
    """Return the feedforward with its joints in the model's order; raises Refused for a malformed message."""
    n = len(joints)
    places = joints.places(msg.joint_names) if n else None
    stacks = []
    for fields, higher in (
        (EFFORT_FIELDS, "higher_effort_derivatives"),
        (MOTOR_POSITION_FIELDS, None),
        (MOTOR_EFFORT_FIELDS, "higher_motor_effort_derivatives"),
    ):
        rows = [getattr(msg, field) for field in fields]
        rest = getattr(msg, higher) if higher else array("d")
        given = _check_stack(rows, rest, fields, higher or "", n)
        stack = _stack([*rows, rest], given, n)
        _check_finite(stack, joints, places, fields)
        stacks.append(_in_model_order(stack, places))
    wrenches = np.frombuffer(msg.base_wrenches)
    if len(wrenches) % 6:
        raise Refused(
            Reason.WRONG_LENGTH,
            f"base_wrenches holds {len(wrenches)} values; a wrench and each derivative have six",
        )
    if not np.isfinite(wrenches).all():
        raise Refused(Reason.NOT_FINITE, "base_wrenches holds NaN or infinite numbers; send finite ones")
    return Feedforward(
        stacks[0], stacks[1], stacks[2], wrenches.reshape(-1, 6), Status(msg.status & _ALL_BITS)
    )


_ALL_BITS = sum(bit.value for bit in Status)


# -- standard messages -----------------------------------------------------------------------------------------------


def read_joint_trajectory(msg: JointTrajectory, joints: JointOrder) -> TrajectoryPoints:
    """Return the points of a trajectory; raises Refused for a malformed one.

    Velocities and accelerations are given in all points or in none.
    """
    places = joints.places(msg.joint_names)
    if not msg.points:
        raise Refused(Reason.BAD_TIMES, "the trajectory has no points; send two or more")
    times = np.array([nanoseconds(point.time_from_start) for point in msg.points])
    for i, (before, after) in enumerate(zip(times, times[1:])):
        if after <= before:
            raise Refused(
                Reason.BAD_TIMES,
                f"time_from_start of point {i + 1} is {after * 1e-9:g} s, not after point {i} at {before * 1e-9:g} s; "
                "times must increase",
            )
    columns = [_trajectory_column(msg.points, field, joints, places) for field in MOTION_FIELDS[:3]]
    positions = columns[0]
    if positions is None:
        raise Refused(Reason.MISSING_DERIVATIVES, "the points of the trajectory have no positions; send them")
    return TrajectoryPoints(times * 1e-9, positions, columns[1], columns[2])


def _trajectory_column(
    points: list[JointTrajectoryPoint], field: str, joints: JointOrder, places: NDArray[np.intp] | None
) -> Array | None:
    rows = [getattr(point, field) for point in points]
    if not any(rows):
        return None
    for i, row in enumerate(rows):
        if len(row) != len(joints):
            raise Refused(
                Reason.WRONG_LENGTH,
                f"{field} of point {i} holds {len(row)} values for {len(joints)} joints; send one per joint, in every "
                "point or in none",
            )
    table = np.array(rows, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        point, column = bad[0]
        raise Refused(
            Reason.NOT_FINITE,
            f"{field} of point {point} holds {table[point, column]} for joint "
            f"{_named(joints, places, column)!r}; send finite numbers",
        )
    return _in_model_order(table, places)


def read_joint_state(msg: JointState, joints: JointOrder) -> JointReading:
    """Return positions, velocities and efforts (n,) of a joint state; raises Refused for a malformed one."""
    places = joints.places(msg.name)
    n = len(joints)
    columns: list[Array | None] = []
    for field in ("position", "velocity", "effort"):
        values = getattr(msg, field)
        if len(values) not in (0, n):
            raise _wrong_length(field, len(values), n)
        if not len(values):
            columns.append(None)
            continue
        row = np.frombuffer(values)[None]
        _check_finite(row, joints, places, (field,))
        columns.append(_in_model_order(row, places)[0])
    return JointReading(*columns)


# -- the pieces ------------------------------------------------------------------------------------------------------


def _fill(
    msg: DesiredMotion | FeedforwardTorque, fields: tuple[str, ...], higher: str | None, stack: Array
) -> None:
    for field, row in zip(fields, stack):
        setattr(msg, field, float64s(row))
    if higher is not None and len(stack) > len(fields):
        setattr(msg, higher, float64s(stack[len(fields) :]))


def _check_stack(
    rows: list[array[float]], rest: array[float], fields: tuple[str, ...], higher: str, n: int
) -> int:
    """Return how many orders are given without a gap; raise Refused for a gap or a wrong length."""
    given = 0
    for place, (field, row) in enumerate(zip(fields, rows)):
        if not row:
            continue
        if len(row) != n:
            raise _wrong_length(field, len(row), n)
        if place != given:
            raise _gap(field, fields[given])
        given += 1
    if rest:
        if n == 0 or len(rest) % n:
            raise Refused(
                Reason.WRONG_LENGTH,
                f"{higher} holds {len(rest)} values for {n} joints; send one per joint and order",
            )
        if given != len(fields):
            raise _gap(higher, fields[given])
        given += len(rest) // n
    return given


def _wrong_length(field: str, found: int, n: int) -> Refused:
    return Refused(
        Reason.WRONG_LENGTH, f"{field} holds {found} values for {n} joints; send one per joint, or none"
    )


def _gap(present: str, absent: str) -> Refused:
    return Refused(
        Reason.MISSING_DERIVATIVES,
        f"{present} is given but {absent} is empty; derivatives are given without gaps",
    )


def _stack(parts: list[array[float]], given: int, n: int) -> Array:
    # joined as bytes: several times faster than an assignment per row at the few joints of a robot
    return np.frombuffer(b"".join(parts)).reshape(given, n)


def _check_finite(
    stack: Array, joints: JointOrder, places: NDArray[np.intp] | None, fields: tuple[str, ...]
) -> None:
    if np.isfinite(stack).all():
        return
    order, column = (int(i) for i in np.argwhere(~np.isfinite(stack))[0])
    field = fields[order] if order < len(fields) else _order_name(order)
    raise Refused(
        Reason.NOT_FINITE,
        f"{field} holds {stack[order, column]} for joint {_named(joints, places, column)!r}; send finite numbers",
    )


def _named(joints: JointOrder, places: NDArray[np.intp] | None, column: int) -> str:
    """Return the name of the joint at a column of the message."""
    return joints.names[column if places is None else int(np.flatnonzero(places == column)[0])]


def _in_model_order(stack: Array, places: NDArray[np.intp] | None) -> Array:
    return stack if places is None else np.take(stack, places, axis=-1)


def _order_name(order: int) -> str:
    if order < 0:
        return "no positions"
    return MOTION_FIELDS[order] if order < len(MOTION_FIELDS) else f"derivatives of order {order}"
