"""Messages become arrays and arrays messages; whatever is wrong with a message is rejected by name."""

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

pytest.importorskip("rclpy", reason="rclpy is not installed; messages come with the ROS build (make)")

from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, Quaternion
from malformed import SPOILERS, good_motion, malformed_motion
from rclpy.serialization import deserialize_message, serialize_message
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from sweeps import examples
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.errors import ModelError
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.guard.feedforward_stream import FeedforwardStream
from hodyn_ros.guard.guard_config import GuardConfig, GuardLimits
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import JointOrder
from hodyn_ros.ros.conversions.messages import (
    ARRAYS,
    MOTION_FIELDS,
    NUMBERS,
    nanoseconds,
    read_base_motion,
    read_desired_motion,
    read_feedforward_torque,
    read_joint_state,
    read_joint_trajectory,
    write_desired_motion,
    write_feedforward_torque,
)
from hodyn_ros.ros.extrapolate import extrapolate
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

NAMES = ("shoulder", "elbow", "wrist")
SHUFFLED = ["wrist", "shoulder", "elbow"]
N = len(NAMES)
RNG_SEED = 20260101


@pytest.fixture
def joints() -> JointOrder:
    return JointOrder(NAMES)


def stack_of(orders: int, n: int = N) -> Array:
    """Return numbers that tell their place: order before the point, joint behind it."""
    return np.arange(orders, dtype=float)[:, None] + 0.1 * np.arange(1, n + 1)


def over_the_wire(msg: DesiredMotion | FeedforwardTorque) -> DesiredMotion | FeedforwardTorque:
    """Return what a subscriber gets."""
    return deserialize_message(serialize_message(msg), type(msg))


# desired motion


@pytest.mark.parametrize("orders", range(1, 10))
def test_a_desired_motion_survives_the_way(orders: int, joints: JointOrder) -> None:
    stamp = Time(sec=12, nanosec=345_678_901)
    msg = over_the_wire(write_desired_motion(list(NAMES), stamp, stack_of(orders), "world"))
    np.testing.assert_array_equal(read_desired_motion(msg, joints, orders), stack_of(orders))
    assert msg.header.frame_id == "world"
    assert nanoseconds(msg.header.stamp) == 12_345_678_901


def test_the_fields_hold_one_order_each_and_the_rest_is_flat() -> None:
    msg = write_desired_motion(list(NAMES), Time(), stack_of(7))
    assert list(msg.positions) == pytest.approx([0.1, 0.2, 0.3])
    assert list(msg.snaps) == pytest.approx([4.1, 4.2, 4.3])
    assert list(msg.higher_derivatives) == pytest.approx([5.1, 5.2, 5.3, 6.1, 6.2, 6.3])


def test_joints_are_put_into_the_order_of_the_model(joints: JointOrder) -> None:
    shuffled = np.ascontiguousarray(stack_of(6)[:, [2, 0, 1]])
    msg = write_desired_motion(SHUFFLED, Time(), shuffled)
    for _ in range(2):  # the second time from memory
        found = read_desired_motion(msg, joints, 6)
        np.testing.assert_array_equal(found, stack_of(6))
        assert found.flags.c_contiguous
        assert found.dtype == np.float64
    # names change while the node runs
    msg = write_desired_motion(list(NAMES), Time(), stack_of(6))
    np.testing.assert_array_equal(read_desired_motion(msg, joints, 6), stack_of(6))


def test_more_derivatives_than_needed_are_left_out(joints: JointOrder) -> None:
    msg = write_desired_motion(list(NAMES), Time(), stack_of(8))
    np.testing.assert_array_equal(read_desired_motion(msg, joints, 3), stack_of(3))


def test_a_robot_without_joints_has_nothing_to_read() -> None:
    assert read_desired_motion(DesiredMotion(), JointOrder(()), 5).shape == (5, 0)
    message = DesiredMotion(joint_names=["shoulder"])
    assert reason_of(lambda: read_desired_motion(message, JointOrder(()), 5)) is Reason.UNKNOWN_JOINT


def reason_of(read: Callable[[], object], words: str = "") -> Reason:
    """Return the reason for which a message is rejected, in these words."""
    reason: Reason = refused(read, words, MessageRejected).reason
    return reason


def changed(msg: Any, fields: dict[str, Any]) -> Any:
    """Return a message of which some fields hold something else."""
    for field, value in fields.items():
        setattr(msg, field, value)
    return msg


def test_a_bad_desired_motion_is_refused_by_name(joints: JointOrder) -> None:
    wrist = "joint 'wrist' is missing from the message; the model expects ['shoulder', 'elbow', 'wrist']"
    last = [0.0, 0.0, 0.0, 0.0, 0.0, float("-inf")]
    gaps = "jerks is given but accelerations is empty; give the derivatives without gaps"
    higher = "higher_derivatives is given but snaps is empty"
    snaps = "the message has no snaps, but this order needs all derivatives up to snaps"
    length = "velocities holds 2 values for 3 joints; send one per joint"
    for fields, reason, words in (
        ({"joint_names": []}, Reason.NO_NAMES, "joint_names is empty; name the joints: ['shoulder', "),
        ({"joint_names": NAMES[:2]}, Reason.MISSING_JOINT, wrist),
        ({"joint_names": [*NAMES, "hand"]}, Reason.UNKNOWN_JOINT, "joint 'hand' is unknown; the model"),
        ({"joint_names": ["elbow", *NAMES]}, Reason.REPEATED_JOINT, "joint 'elbow' is named twice"),
        ({"velocities": [0.0, 1.0]}, Reason.WRONG_LENGTH, length),
        ({"higher_derivatives": [1.0] * 4}, Reason.WRONG_LENGTH, "higher_derivatives holds 4 values"),
        ({"jerks": [0.0, float("nan"), 0.0]}, Reason.NOT_FINITE, "jerks holds nan for joint 'elbow'"),
        ({"higher_derivatives": last}, Reason.NOT_FINITE, "derivative 6 holds -inf for joint 'wrist'"),
        ({"accelerations": []}, Reason.MISSING_DERIVATIVES, gaps),
        ({"snaps": [], "higher_derivatives": [1.0] * 3}, Reason.MISSING_DERIVATIVES, higher),
        ({"snaps": []}, Reason.MISSING_DERIVATIVES, snaps),
    ):
        good = write_desired_motion(list(NAMES), Time(), stack_of(5))
        bad = changed(write_desired_motion(list(NAMES), Time(), stack_of(5)), fields)
        assert reason_of(partial(read_desired_motion, bad, joints, 5), words) is reason
        np.testing.assert_array_equal(read_desired_motion(good, joints, 5), stack_of(5))


def test_joints_and_orders_at_fault_are_named_whatever_the_order_of_the_names(joints: JointOrder) -> None:
    stack = stack_of(6)
    short = write_desired_motion(SHUFFLED, Time(), stack)
    words = "has no derivatives of order 6, but ... up to derivatives of order 8"
    assert reason_of(lambda: read_desired_motion(short, joints, 9), words) is Reason.MISSING_DERIVATIVES
    stack[3, 0] = np.nan
    bad = write_desired_motion(SHUFFLED, Time(), stack)
    reason_of(lambda: read_desired_motion(bad, joints, 5), "jerks holds nan for joint 'wrist'")


def test_log_lines_stay_short_for_large_robots() -> None:
    many = [f"joint_{i}" for i in range(100)]
    msg = write_desired_motion(many[1:], Time(), stack_of(5, 99))
    for words in ("joint 'joint_0' is missing ... 100 in all", ""):
        said = refused(lambda: read_desired_motion(msg, JointOrder(many), 5), words, MessageRejected)
        assert len(str(said)) < 400
        msg.joint_names[5] = "x" * 10_000


def test_a_thousand_malformed_messages_are_refused_for_what_is_wrong_with_them(joints: JointOrder) -> None:
    rng = np.random.default_rng(RNG_SEED)
    seen = set()
    for i in range(1000):
        msg, reason = malformed_motion(rng, NAMES, i)
        assert reason_of(partial(read_desired_motion, over_the_wire(msg), joints, 5)) is reason
        seen.add(reason)
        if i % 10 == 0:  # in between, sound ones pass
            assert read_desired_motion(good_motion(rng, NAMES, i), joints, 5).shape == (5, N)
    assert seen == {reason for _, reason in SPOILERS}


VALUES: st.SearchStrategy[list[float]] = (
    st.lists(st.floats(width=64), max_size=2 * N + 1) | st.just([0.5] * N) | st.just([])
)


@pytest.mark.thorough
@examples(1000)
@given(
    names=st.permutations(NAMES) | st.lists(st.sampled_from([*NAMES, "hand"]), max_size=5),
    fields=st.fixed_dictionaries(dict.fromkeys((*MOTION_FIELDS, "higher_derivatives"), VALUES)),
    orders=st.integers(3, 7),
)
def test_any_message_is_read_exactly_when_it_is_sound(
    names: list[str], fields: dict[str, list[float]], orders: int
) -> None:
    rows = [fields[field] for field in MOTION_FIELDS]
    rest = fields["higher_derivatives"]
    given_orders = sum(bool(row) for row in rows) + len(rest) // N
    sound = (
        sorted(names) == sorted(NAMES)
        and all(len(row) in (0, N) for row in rows)
        and len(rest) % N == 0
        and all(rows[: min(given_orders, len(rows))])
        and given_orders >= orders
        and np.isfinite([x for row in (*rows, rest) for x in row]).all()
    )
    msg = DesiredMotion(joint_names=list(names), **{k: array("d", v) for k, v in fields.items()})
    if not sound:
        with pytest.raises(MessageRejected):
            read_desired_motion(msg, JointOrder(NAMES), orders)
        return
    flat = [x for row in (*rows, rest) for x in row]
    columns = [names.index(name) for name in NAMES]
    expected = np.reshape(flat, (-1, N))[:orders, columns]
    np.testing.assert_array_equal(read_desired_motion(msg, JointOrder(NAMES), orders), expected)


def test_a_model_with_two_joints_of_one_name_is_an_error() -> None:
    refused(lambda: JointOrder(["a", "b", "a"]), "must differ", ModelError)


# floating base

QUATERNION = np.array([0.5, -0.5, 0.1, 0.7]) / np.linalg.norm([0.5, -0.5, 0.1, 0.7])


def base_message(twists: Array, representation: int) -> DesiredMotion:
    """Return a message with the motion of a base and no joints."""
    x, y, z, w = QUATERNION.tolist()
    pose = Pose(position=Point(x=0.3, y=-0.2, z=1.5), orientation=Quaternion(x=x, y=y, z=z, w=w))
    return DesiredMotion(
        base_pose=[pose],
        base_twists=array("d", twists.tobytes()),
        base_twist_representation=representation,
    )


def base_motion() -> BaseMotion:
    """Return a base in motion, in body representation."""
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(QUATERNION).as_matrix()
    pose[:3, 3] = [0.3, -0.2, 1.5]
    return BaseMotion(pose, np.random.default_rng(4).normal(size=(4, 6)), representation="body_fixed")


def test_the_pose_and_body_and_world_twists_of_a_base_are_read() -> None:
    body = base_motion()
    for motion, code in (
        (body, DesiredMotion.BODY),
        (body.in_representation("spatial"), DesiredMotion.WORLD),
    ):
        found = read_base_motion(over_the_wire(base_message(motion.twists, code)), 4)
        np.testing.assert_allclose(found.pose, body.pose, rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(
            found.in_representation("body_fixed").twists, body.twists, rtol=1e-12, atol=1e-12
        )
    assert len(read_base_motion(base_message(body.twists, DesiredMotion.BODY), 2).twists) == 2


def test_hybrid_twists_of_a_base_are_read() -> None:
    body = base_motion()
    rotation = body.pose[:3, :3]
    hybrid = np.hstack([body.twists[:1, :3] @ rotation.T, body.twists[:1, 3:] @ rotation.T])
    found = read_base_motion(base_message(hybrid, DesiredMotion.HYBRID), 1)
    np.testing.assert_allclose(found.in_representation("body_fixed").twists, body.twists[:1], rtol=1e-12)


def test_a_bad_base_is_refused_by_name() -> None:
    for fields, reason, words in (
        ({"base_pose": []}, Reason.BAD_BASE, "base_pose is empty"),
        ({"base_twists": [0.0] * 23}, Reason.WRONG_LENGTH, "base_twists holds 23 values"),
        ({"base_twists": [0.0] * 18}, Reason.MISSING_DERIVATIVES, "base_twists holds 3 orders, ... needs 4"),
        ({"base_twists": [0.0] * 23 + [np.nan]}, Reason.NOT_FINITE, "base_twists holds NaN"),
        ({"base_twist_representation": 7}, Reason.BAD_BASE, "base_twist_representation is 7"),
        ({"base_pose": [Pose(orientation=Quaternion(w=0.0))]}, Reason.BAD_BASE, "norm 0; send a unit"),
        ({"base_pose": [Pose(position=Point(x=np.inf))]}, Reason.NOT_FINITE, "base_pose holds NaN"),
    ):
        bad = changed(base_message(base_motion().twists, DesiredMotion.BODY), fields)
        assert reason_of(partial(read_base_motion, bad, 4), words) is reason


# feedforward


def feedforward(order: int = 4) -> Feedforward:
    """Return a feedforward of a robot with elastic joints and a base."""
    wrenches = np.arange(6.0 * (order + 1)).reshape(order + 1, 6)
    status = Status.EFFORT_LIMIT_EXCEEDED | Status.EFFORT_CLAMPED
    thrusts = 30.0 + np.arange(4.0 * (order + 1)).reshape(order + 1, 4)
    stacks = stack_of(order + 1), 10.0 + stack_of(3), 20.0 + stack_of(order - 1)
    return Feedforward(*stacks, wrenches, status, thrusts, 0.1 * thrusts)


def test_the_bits_of_the_message_are_those_of_the_mathematics() -> None:
    for bit in Status:
        if bit.name and bit:
            assert getattr(FeedforwardTorque, bit.name) == bit.value


@pytest.mark.parametrize("order", [2, 3, 4, 6])
def test_a_feedforward_survives_the_way(order: int, joints: JointOrder) -> None:
    header = Header(stamp=Time(sec=3, nanosec=7), frame_id="world")
    msg = over_the_wire(write_feedforward_torque(header, list(NAMES), feedforward(order), 1.5e-4, "abcd"))
    found = read_feedforward_torque(msg, joints)
    for before, after in zip(feedforward(order), found):
        np.testing.assert_array_equal(before, after)
    assert found.status == Status.EFFORT_LIMIT_EXCEEDED | Status.EFFORT_CLAMPED
    assert msg.header == header
    assert msg.computation_time == 1.5e-4
    assert msg.base_wrench_representation == FeedforwardTorque.WORLD


def test_all_of_a_feedforward_travels() -> None:
    assert {*Feedforward._fields} == {array.name for array in ARRAYS} | {*NUMBERS}


def test_what_was_not_computed_is_empty(joints: JointOrder) -> None:
    nothing = np.empty((0, N))
    law = Feedforward(stack_of(1), nothing, nothing, np.empty((0, 6)))
    msg = write_feedforward_torque(Header(), list(NAMES), law, 0.0)
    for field in ("effort_rates", "motor_positions", "motor_efforts", "base_wrenches"):
        assert len(getattr(msg, field)) == 0, field
    found = read_feedforward_torque(msg, joints)
    assert found.motor_positions.shape == (0, N)
    assert found.thrusts.shape == (0, 0)
    assert found.base_wrenches.shape == (0, 6)
    assert extrapolate(msg, 0.1).motor_efforts.shape == (0,)


def test_motor_derivatives_above_the_acceleration_have_no_field(joints: JointOrder) -> None:
    law = feedforward()._replace(motor_positions=stack_of(5))
    msg = write_feedforward_torque(Header(), list(NAMES), law, 0.0)
    np.testing.assert_array_equal(read_feedforward_torque(msg, joints).motor_positions, stack_of(3))


def test_as_many_orders_as_are_read_are_carried_on(joints: JointOrder) -> None:
    """Of a few more the factorials are no numbers any longer, which ended the nodes that command."""
    msg = write_feedforward_torque(Header(), list(NAMES), feedforward(), 0.0)
    msg.higher_effort_derivatives = [0.0] * (97 * N)
    found = read_feedforward_torque(msg, joints)
    assert found.efforts.shape == (100, N)
    limits, none = GuardLimits(effort=1e9), np.empty((0, N))
    stream = FeedforwardStream(NAMES, GuardConfig(), np.full(N, 1e9), limits, None)
    stream.take(0, 0, Reference(none, found.efforts, none), Status.OK, False)
    assert np.isfinite(found.at(0.05).efforts).all()


def test_a_consumer_may_order_its_joints_otherwise() -> None:
    msg = write_feedforward_torque(Header(), list(NAMES), feedforward(), 0.0)
    found = read_feedforward_torque(msg, JointOrder(SHUFFLED))
    np.testing.assert_array_equal(found.efforts, feedforward().efforts[:, [2, 0, 1]])
    np.testing.assert_array_equal(found.motor_efforts, feedforward().motor_efforts[:, [2, 0, 1]])


def test_a_bad_feedforward_is_refused(joints: JointOrder) -> None:
    for field, values, reason in (
        ("efforts", [1.0], Reason.WRONG_LENGTH),
        ("effort_rates", [], Reason.MISSING_DERIVATIVES),
        ("motor_velocities", [1.0, np.nan, 1.0], Reason.NOT_FINITE),
        ("higher_motor_effort_derivatives", [1.0] * 5, Reason.WRONG_LENGTH),
        ("higher_effort_derivatives", [0.0] * (98 * N), Reason.WRONG_LENGTH),
        ("higher_motor_effort_derivatives", [0.0] * (170 * N), Reason.WRONG_LENGTH),
        ("base_wrenches", [1.0] * 5, Reason.WRONG_LENGTH),
        ("base_wrenches", [0.0] * 606, Reason.WRONG_LENGTH),
        ("base_wrenches", [np.inf] * 6, Reason.NOT_FINITE),
        ("thrusts", [1.0] * 6, Reason.WRONG_LENGTH),
        ("tilts", [np.nan] * 4, Reason.NOT_FINITE),
        ("propeller_names", [], Reason.WRONG_LENGTH),
        ("joint_names", ["shoulder", "elbow", "hand"], Reason.UNKNOWN_JOINT),
    ):
        msg = write_feedforward_torque(Header(), list(NAMES), feedforward(), 0.0, "abcd")
        bad = changed(msg, {field: values})
        assert reason_of(partial(read_feedforward_torque, bad, joints)) is reason, field


@pytest.mark.parametrize("h", [0.0, 1e-3, -2e-3, 0.5])
def test_a_message_is_extrapolated_by_its_taylor_series(h: float) -> None:
    polynomial = np.polynomial.Polynomial([1.0, -2.0, 3.0, -4.0, 5.0])
    rows = np.array([[polynomial.deriv(k)(0.0)] * N for k in range(5)]) * [1.0, 10.0, 100.0]
    law = Feedforward(rows, rows[:3], rows[:3], np.repeat(rows[:, :1], 6, axis=1), thrusts=rows)
    setpoint = extrapolate(write_feedforward_torque(Header(), list(NAMES), law, 0.0, "abc"), h)
    quadratic = np.polynomial.Polynomial([1.0, -2.0, 3.0])
    scale = np.array([1.0, 10.0, 100.0])
    np.testing.assert_allclose(setpoint.efforts, polynomial(h) * scale, rtol=1e-13)
    np.testing.assert_allclose(setpoint.motor_positions, quadratic(h) * scale, rtol=1e-13)
    np.testing.assert_allclose(setpoint.motor_velocities, quadratic.deriv()(h) * scale, rtol=1e-13)
    np.testing.assert_allclose(setpoint.motor_efforts, quadratic(h) * scale, rtol=1e-13)
    np.testing.assert_allclose(setpoint.base_wrench, np.full(6, polynomial(h)), rtol=1e-13)
    np.testing.assert_allclose(setpoint.thrusts, polynomial(h) * scale, rtol=1e-13)
    assert setpoint.tilts.shape == (0,)


def test_extrapolation_takes_the_order_of_the_consumer_and_finite_times_only() -> None:
    msg = write_feedforward_torque(Header(), list(NAMES), feedforward(), 0.0)
    there = extrapolate(msg, 1e-3)
    np.testing.assert_array_equal(
        extrapolate(msg, 1e-3, JointOrder(SHUFFLED)).efforts, there.efforts[[2, 0, 1]]
    )
    refused(lambda: extrapolate(msg, float("nan")), "must be finite")


# standard messages


def trajectory(times: Sequence[float], **fields: list[list[float]]) -> JointTrajectory:
    """Return a trajectory with the joints in another order than the model's."""
    points = []
    for i, time in enumerate(times):
        duration = Duration(sec=int(time // 1), nanosec=round(time % 1 * 1e9))
        rows = {field: [float(x) for x in values[i]] for field, values in fields.items()}
        points.append(JointTrajectoryPoint(time_from_start=duration, **rows))
    return JointTrajectory(joint_names=SHUFFLED, points=points)


POINTS = [[3.0, 1.0, 2.0], [30.0, 10.0, 20.0], [300.0, 100.0, 200.0]]


def test_a_trajectory_is_read_with_what_it_gives(joints: JointOrder) -> None:
    points = read_joint_trajectory(trajectory([0.0, 0.5, 2.25], positions=POINTS), joints)
    np.testing.assert_array_equal(points.times, [0.0, 0.5, 2.25])
    np.testing.assert_array_equal(points.positions, [[1, 2, 3], [10, 20, 30], [100, 200, 300]])
    assert points.velocities is None
    assert points.accelerations is None
    points = read_joint_trajectory(
        trajectory([0.0, 1.0, 2.0], positions=POINTS, velocities=POINTS, accelerations=POINTS), joints
    )
    np.testing.assert_array_equal(points.velocities, points.positions)
    np.testing.assert_array_equal(points.accelerations, points.positions)


def test_a_bad_trajectory_is_refused(joints: JointOrder) -> None:
    short, gaps, bad = [POINTS[0], [1.0]], [[], POINTS[0]], [POINTS[0], [np.nan, 0.0, 0.0]]
    for msg, reason, words in (
        (JointTrajectory(joint_names=SHUFFLED), Reason.BAD_TIMES, "no points"),
        (trajectory([0, 1, 1], positions=POINTS), Reason.BAD_TIMES, "time_from_start of point 2 is 1 s"),
        (trajectory([0, 1, 2]), Reason.MISSING_DERIVATIVES, "no positions"),
        (
            trajectory([0, 1], positions=short),
            Reason.WRONG_LENGTH,
            "positions of point 1 holds 1 values for 3 joints",
        ),
        (
            trajectory([0, 1], positions=POINTS, velocities=gaps),
            Reason.WRONG_LENGTH,
            "velocities of point 0 holds 0 values",
        ),
        (
            trajectory([0, 1], positions=bad),
            Reason.NOT_FINITE,
            "positions of point 1 holds nan for joint 'wrist'",
        ),
        (JointTrajectory(joint_names=["hand"]), Reason.UNKNOWN_JOINT, "'hand' is unknown"),
    ):
        assert reason_of(partial(read_joint_trajectory, msg, joints), words) is reason


def test_a_joint_state_is_read_with_what_it_gives(joints: JointOrder) -> None:
    reading = read_joint_state(JointState(name=SHUFFLED, position=[3.0, 1.0, 2.0]), joints)
    np.testing.assert_array_equal(reading.positions, [1.0, 2.0, 3.0])
    assert reading.velocities is None
    assert reading.efforts is None


def test_a_bad_joint_state_is_refused(joints: JointOrder) -> None:
    for fields, reason in (
        ({"name": ["wrist"]}, Reason.MISSING_JOINT),
        ({"velocity": [1.0, 2.0]}, Reason.WRONG_LENGTH),
        ({"effort": [1.0, 2.0, np.inf]}, Reason.NOT_FINITE),
    ):
        bad = changed(JointState(name=list(NAMES), position=[1.0, 2.0, 3.0]), fields)
        assert reason_of(partial(read_joint_state, bad, joints)) is reason
