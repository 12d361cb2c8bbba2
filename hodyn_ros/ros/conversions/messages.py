"""Messages to arrays and back; names, lengths and values are checked here, once.

Reading raises `MessageRejected` with the reason and a text that names the thing and what to do. Arrays are
plain derivatives (orders, n) in the model's order of joints. Writing takes such arrays as they are.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Literal, NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, Quaternion
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.array import Array
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.lie.motion import BaseMotion, BaseRepresentation
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.lie.se3 import pose
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import (
    JointOrder,
    Places,
    check_finite,
    float64s,
    in_model_order,
    read_rows,
    read_sixes,
    read_stack,
    wrong_length,
)
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.trajectory.robot_motion import MotionSample

MOTION_FIELDS = ("positions", "velocities", "accelerations", "jerks", "snaps")
EFFORT_FIELDS = ("efforts", "effort_rates", "effort_accelerations")
MOTOR_POSITION_FIELDS = ("motor_positions", "motor_velocities", "motor_accelerations")
MOTOR_EFFORT_FIELDS = ("motor_efforts", "motor_effort_rates")


class ArrayFields(NamedTuple):
    """The fields of a FeedforwardTorque that hold an array of a Feedforward."""

    name: str  # of the array
    fields: tuple[str, ...]  # an order each
    higher: str = ""  # of all orders beyond, one after the other; without one these are not sent
    of: Literal["joint", "component", "propeller"] = "joint"  # what its columns are of

    @property
    def all_fields(self) -> tuple[str, ...]:
        """All of them, lowest orders first."""
        return (*self.fields, self.higher) if self.higher else self.fields


# All arrays of a feedforward: what writes and reads messages, or their bytes, goes through them.
ARRAYS = (
    ArrayFields("efforts", EFFORT_FIELDS, "higher_effort_derivatives"),
    ArrayFields("motor_positions", MOTOR_POSITION_FIELDS),
    ArrayFields("motor_efforts", MOTOR_EFFORT_FIELDS, "higher_motor_effort_derivatives"),
    ArrayFields("base_wrenches", (), "base_wrenches", "component"),
    ArrayFields("thrusts", (), "thrusts", "propeller"),
    ArrayFields("tilts", (), "tilts", "propeller"),
)

_STATUS_BITS = sum(bit.value for bit in Status)


def _known_status(bits: int) -> Status:
    """Return those bits of a message that are known here."""
    return Status(bits & _STATUS_BITS)


# All single numbers of a feedforward, each in the field of its name, and what is made of one that was read.
NUMBERS: Mapping[str, Callable[[Any], Any]] = {"status": _known_status}

_NONE = array("d")
_MOST_ORDERS = 100  # of a feedforward, which is carried on in time by their factorials
_EMPTY_FEEDFORWARD = FeedforwardTorque()


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


def time_message(instant: int) -> Time:
    """Return an instant [ns] as a stamp."""
    second, nanosecond = divmod(instant, 1_000_000_000)
    return Time(sec=second, nanosec=nanosecond)


def read_desired_motion(msg: DesiredMotion, joints: JointOrder, orders: int) -> Array:
    """Return positions and their derivatives (orders, n), C-contiguous; the message may carry more of them.

    Raises MessageRejected for bad names or lengths, numbers that are not finite (also in derivatives beyond
    `orders`), and derivatives that are missing below another one or below `orders`.
    """
    rows = [getattr(msg, field) for field in MOTION_FIELDS]
    if not msg.joint_names and (any(rows) or msg.higher_derivatives):
        raise MessageRejected(
            Reason.NO_NAMES,
            f"the message holds values but joint_names is empty; name the joints: {joints.listing()}",
        )
    if not len(joints) and not msg.joint_names:
        return np.empty((orders, 0))
    places = joints.places(msg.joint_names)
    stack = read_stack(rows, msg.higher_derivatives, MOTION_FIELDS, "higher_derivatives", joints, places)
    if len(stack) < orders:
        raise MessageRejected(
            Reason.MISSING_DERIVATIVES,
            f"the message has no {_order_name(len(stack))}, but this order needs all derivatives up "
            f"to {_order_name(orders - 1)}; send them, or lower the order",
        )
    return in_model_order(stack[:orders], places)


def write_desired_motion(
    joint_names: Sequence[str], stamp: Time, stack: Array, frame_id: str = ""
) -> DesiredMotion:
    """Return the message for a motion and its derivatives (orders, n)."""
    msg = DesiredMotion(header=Header(stamp=stamp, frame_id=frame_id), joint_names=list(joint_names))
    _fill(msg, MOTION_FIELDS, "higher_derivatives", stack)
    return msg


def write_sample(
    joint_names: Sequence[str], stamp: Time, sample: MotionSample, frame_id: str = ""
) -> DesiredMotion:
    """Return the message for a motion at one time, of joints and base."""
    msg = write_desired_motion(joint_names, stamp, sample.joints, frame_id)
    if sample.pose is not None and sample.twists is not None:
        write_base_motion(msg, sample.pose, sample.twists)
    return msg


def read_base_motion(msg: DesiredMotion, orders: int) -> BaseMotion:
    """Return pose and twists (orders, 6) of a base or platform; MessageRejected where malformed."""
    if len(msg.base_pose) != 1:
        raise MessageRejected(
            Reason.BAD_BASE,
            "base_pose is empty, but the robot has a floating base or platform; send its pose",
        )
    twists = read_sixes(msg.base_twists, "base_twists")
    if len(twists) < orders:
        raise MessageRejected(
            Reason.MISSING_DERIVATIVES,
            f"base_twists holds {len(twists)} orders, but this order needs {orders}: the twist and "
            "its derivatives; send them, or lower the order",
        )
    placement = _numbers(msg.base_pose[0])
    return base_motion(*placement, twists[:orders], msg.base_twist_representation)


def read_pose(msg: Pose) -> Array:
    """Return a pose (4, 4) [m]; MessageRejected where it is none."""
    return _placement(*_numbers(msg), "pose")


def _numbers(msg: Pose) -> tuple[Array, Array]:
    position, orientation = msg.position, msg.orientation
    translation = np.array([position.x, position.y, position.z])
    return translation, np.array([orientation.x, orientation.y, orientation.z, orientation.w])


def _placement(translation: Array, quaternion: Array, name: str) -> Array:
    from scipy.spatial.transform import Rotation

    if not (np.isfinite(quaternion).all() and np.isfinite(translation).all()):
        raise MessageRejected(Reason.NOT_FINITE, f"{name} holds NaN or infinite numbers; send finite ones")
    norm = float(np.linalg.norm(quaternion))
    if abs(norm - 1.0) > 1e-3:
        raise MessageRejected(
            Reason.BAD_BASE, f"the quaternion of {name} has the norm {norm:.6g}; send a unit quaternion"
        )
    return pose(Rotation.from_quat(quaternion).as_matrix(), translation)


def base_motion(
    translation: Array, quaternion: Array, twists: Array, representation: int, name: str = "base_pose"
) -> BaseMotion:
    """Return the motion of a base from what a message says of it; raises MessageRejected.

    `translation` (3,) [m], `quaternion` (x, y, z, w), `twists` (orders, 6) in one of the representations of
    DesiredMotion; `name` is that of the pose.
    """
    placement = _placement(translation, quaternion, name)
    if representation == DesiredMotion.BODY:
        return BaseMotion(placement, twists, representation="body_fixed")
    if representation == DesiredMotion.WORLD:
        return BaseMotion(placement, twists, representation="spatial")
    if representation == DesiredMotion.HYBRID:
        twists = convert_screws(twists, placement, twists, "hybrid", "spatial")
        return BaseMotion(placement, twists, representation="spatial")
    raise MessageRejected(
        Reason.BAD_BASE,
        f"base_twist_representation is {representation}; send BODY, WORLD or HYBRID (0, 1, 2)",
    )


def warm_up_poses(orders: int = 1) -> None:
    """Load and compile what messages with poses, and as many twists, need: the first one would be late."""
    write_base_motion(DesiredMotion(), np.eye(4), np.zeros((1, 6)))
    unturned = np.array([0.0, 0.0, 0.0, 1.0])
    base_motion(np.zeros(3), unturned, np.zeros((orders, 6)), DesiredMotion.HYBRID)


def write_base_motion(msg: DesiredMotion, placement: Array, body_twists: Array) -> None:
    """Put the pose (4, 4) and the body-fixed twists (orders, 6) of a base or platform into a message."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(placement[:3, :3]).as_quat().tolist()
    position = Point(**dict(zip("xyz", placement[:3, 3].tolist())))
    msg.base_pose = [Pose(position=position, orientation=Quaternion(x=x, y=y, z=z, w=w))]
    msg.base_twists = float64s(body_twists)
    msg.base_twist_representation = DesiredMotion.BODY


def write_feedforward_torque(
    header: Header,
    joint_names: Sequence[str],
    feedforward: Feedforward,
    computation_time: float,
    propellers: Sequence[str] = (),
) -> FeedforwardTorque:
    """Return the message for a feedforward.

    `header` is that of the desired motion it answers, `computation_time` in seconds, `propellers` the names.
    """
    # in half the time of making one; what is empty in it is shared, and replaced below but never changed
    msg = copy(_EMPTY_FEEDFORWARD)
    msg.header, msg.joint_names = header, list(joint_names)
    for name, fields, higher, of in ARRAYS:
        if of != "propeller" or propellers:
            _fill(msg, fields, higher, getattr(feedforward, name))
    if len(feedforward.base_wrenches):
        msg.base_wrench_representation = FeedforwardTorque.WORLD
    if propellers:
        msg.propeller_names = list(propellers)
    for name in NUMBERS:
        setattr(msg, name, getattr(feedforward, name))
    msg.computation_time = computation_time
    return msg


def write_wrenches(
    msg: FeedforwardTorque, bodies: Sequence[str], wrenches: Array, frame: BaseRepresentation
) -> None:
    """Note in a message which wrenches (bodies, orders, 6) it assumes, represented in `frame`."""
    msg.wrench_bodies = list(bodies)
    msg.wrench_representation = FeedforwardTorque.WORLD if frame == "spatial" else FeedforwardTorque.BODY
    msg.wrenches = float64s(wrenches)


def read_wrenches(msg: FeedforwardTorque) -> Array | None:
    """Return the wrenches (bodies, orders, 6) that a message assumes, None where it assumes none.

    Raises MessageRejected for wrong lengths and numbers.
    """
    if not msg.wrench_bodies and not len(msg.wrenches):
        return None
    sixes = read_sixes(msg.wrenches, "wrenches")
    if not msg.wrench_bodies or len(sixes) % len(msg.wrench_bodies):
        raise MessageRejected(
            Reason.WRONG_LENGTH,
            f"wrenches holds {len(sixes)} times six values for {len(msg.wrench_bodies)} bodies; send as many "
            "orders for each",
        )
    return sixes.reshape(len(msg.wrench_bodies), -1, 6)


def read_feedforward_torque(msg: FeedforwardTorque, joints: JointOrder) -> Feedforward:
    """Return the feedforward with its joints in the model's order; MessageRejected where malformed."""
    places = joints.places(msg.joint_names)
    columns = {"component": 6, "propeller": len(msg.propeller_names)}
    stacks: dict[str, Any] = {}
    for name, fields, higher, of in ARRAYS:
        rest = getattr(msg, higher) if higher else _NONE
        if of == "joint":
            rows = [getattr(msg, field) for field in fields]
            stack = in_model_order(read_stack(rows, rest, fields, higher, joints, places), places)
        else:
            stack = read_rows(rest, higher, columns[of], of)
        if len(stack) > _MOST_ORDERS:
            raise MessageRejected(
                Reason.WRONG_LENGTH,
                f"{name} come by {len(stack)} orders; send {_MOST_ORDERS} at most",
            )
        if not math.isfinite(np.vdot(stack, stack)):
            # carried on in time, these would overflow
            raise MessageRejected(
                Reason.NOT_FINITE,
                f"{name} or their derivatives are as large as {np.abs(stack).max():.0e}; send real ones",
            )
        stacks[name] = stack
    numbers = {name: read(getattr(msg, name)) for name, read in NUMBERS.items()}
    return Feedforward(**stacks, **numbers)


def read_joint_trajectory(msg: JointTrajectory, joints: JointOrder) -> TrajectoryPoints:
    """Return the points of a trajectory; raises MessageRejected for a malformed one.

    Velocities and accelerations are given in all points or in none.
    """
    places = joints.places(msg.joint_names)
    if not msg.points:
        raise MessageRejected(Reason.BAD_TIMES, "the trajectory has no points; send some")
    times = np.array([nanoseconds(point.time_from_start) for point in msg.points])
    for i, (before, after) in enumerate(zip(times, times[1:])):
        if after <= before:
            raise MessageRejected(
                Reason.BAD_TIMES,
                f"time_from_start of point {i + 1} is {after * 1e-9:g} s, that of the point before "
                f"{before * 1e-9:g} s; times must increase",
            )
    positions, velocities, accelerations = (
        _trajectory_column(msg.points, field, joints, places) for field in MOTION_FIELDS[:3]
    )
    if positions is None:
        raise MessageRejected(
            Reason.MISSING_DERIVATIVES, "the points of the trajectory have no positions; send them"
        )
    return TrajectoryPoints(times * 1e-9, positions, velocities, accelerations)


def read_partial_trajectory(
    msg: JointTrajectory, allowed: Sequence[str], joint_names: Sequence[str], at_rest: Array
) -> TrajectoryPoints:
    """Return the points of a trajectory for all joints of a robot; MessageRejected where malformed.

    The message names some of the joints `allowed`, in any order; the others rest at `at_rest` (n,) [rad or
    m], NaN where that is not known.
    """
    named = set(msg.joint_names)
    if not named or not named <= set(allowed):
        JointOrder(allowed).places(msg.joint_names)  # raises, naming the joint
    order = JointOrder([name for name in joint_names if name in named])
    points = read_joint_trajectory(msg, order)
    rests = np.array([name not in named for name in joint_names])
    unknown = rests & np.isnan(at_rest)
    if unknown.any():
        raise MessageRejected(
            Reason.MISSING_JOINT,
            f"joint {joint_names[int(np.argmax(unknown))]!r} is missing from the message, and where it rests "
            "is not known; name it, or publish its state on joint_states",
        )

    def for_all(rows: Array | None, still: Array) -> Array | None:
        if rows is None:
            return None
        table = np.tile(still, (len(rows), 1))
        table[:, ~rests] = rows
        return table

    zero = np.zeros(len(at_rest))
    positions = for_all(points.positions, at_rest)
    assert positions is not None
    return TrajectoryPoints(
        points.times, positions, for_all(points.velocities, zero), for_all(points.accelerations, zero)
    )


def read_joint_state(msg: JointState, joints: JointOrder) -> JointReading:
    """Return positions, velocities and efforts (n,) of a joint state; MessageRejected where malformed."""
    places = joints.places(msg.name)
    columns: list[Array | None] = []
    for field in ("position", "velocity", "effort"):
        values = getattr(msg, field)
        if not values:
            columns.append(None)
            continue
        if len(values) != len(joints):
            raise wrong_length(field, len(values), len(joints))
        row = np.frombuffer(values)[None]
        check_finite(row, joints, places, (field,))
        columns.append(in_model_order(row, places)[0])
    return JointReading(*columns)


def _trajectory_column(
    points: Sequence[JointTrajectoryPoint], field: str, joints: JointOrder, places: Places
) -> Array | None:
    rows = [getattr(point, field) for point in points]
    if not any(rows):
        return None
    for i, row in enumerate(rows):
        if len(row) != len(joints):
            raise MessageRejected(
                Reason.WRONG_LENGTH,
                f"{field} of point {i} holds {len(row)} values for {len(joints)} joints; send one per joint, "
                "in every point or in none",
            )
    table = np.array(rows, dtype=np.float64)
    check_finite(table, joints, places, [f"{field} of point {i}" for i in range(len(points))])
    return in_model_order(table, places)


def _fill(msg: DesiredMotion | FeedforwardTorque, fields: Sequence[str], higher: str, stack: Array) -> None:
    n = stack.shape[-1]
    values = float64s(stack)
    for order, field in enumerate(fields[: len(stack)]):
        setattr(msg, field, values[order * n : (order + 1) * n])
    if higher and len(stack) > len(fields):
        setattr(msg, higher, values[len(fields) * n :])


def _order_name(order: int) -> str:
    return MOTION_FIELDS[order] if order < len(MOTION_FIELDS) else f"derivatives of order {order}"
