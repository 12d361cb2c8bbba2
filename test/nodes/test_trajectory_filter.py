"""Trajectories with efforts: what is rejected, what comes out, and the node over real DDS."""

import random
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from refusals import refused

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

import rclpy
from action_msgs.msg import GoalStatus
from panda_plan import HOME, MOVE, NAMES, after, plan
from rclpy.action import ActionClient
from rclpy.context import Context
from ros_talk import talking
from scipy.interpolate import BPoly
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hodyn_ros import share
from hodyn_ros.action import RetimeTrajectory as RetimeAction
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.nodes.filtering.trajectory_with_efforts import MOST_POINTS, TrajectoryEfforts
from hodyn_ros.planning.effort_trajectory import EffortFilter
from hodyn_ros.ros.conversions.joint_state_buffer import JointStateBuffer
from hodyn_ros.ros.conversions.messages import nanoseconds
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.srv import RetimeTrajectory
from hodyn_ros.trajectory.splines.densify import Waypoints
from hodyn_ros.trajectory.splines.start import PresentState

UNKNOWN = PresentState.unknown(7)
Change = Callable[[JointTrajectory], object]


@pytest.fixture(scope="module")
def efforts(panda: Robot) -> TrajectoryEfforts:
    return TrajectoryEfforts(EffortFilter(panda, "motor", start_tolerance=0.05), tuple(NAMES))


def columns(msg: JointTrajectory) -> np.ndarray:
    """Return (N, 4, n): positions, velocities, accelerations, efforts."""
    return np.array([[p.positions, p.velocities, p.accelerations, p.effort] for p in msg.points])


def test_times_header_and_points_are_kept(efforts: TrajectoryEfforts) -> None:
    msg = plan()
    msg.header.stamp.sec, msg.header.stamp.nanosec, msg.header.frame_id = 12, 345, "base"
    msg.joint_names.reverse()  # any order of joints
    for point in msg.points:
        for values in (point.positions, point.velocities, point.accelerations):
            values.reverse()
    filtered = efforts(msg, UNKNOWN)
    out = filtered.msg
    assert out.header == msg.header and out.joint_names == NAMES
    instants = [nanoseconds(point.time_from_start) for point in out.points]
    given = [nanoseconds(point.time_from_start) for point in msg.points]
    assert instants == sorted(set(instants)) and set(given) <= set(instants)
    assert max(np.diff(instants)) <= 10_000_000
    assert [int(filtered.leads_to[instants.index(time)]) for time in given] == list(range(len(given)))
    values = columns(out)
    np.testing.assert_allclose(values[[0, -1], 0], [HOME, HOME + MOVE], rtol=0.0, atol=1e-12)
    # a controller rejects a trajectory that does not end at rest
    assert np.abs(values[-1, 1]).max() < 1e-9
    # the messages hold what the filter computes
    rows = np.array([[p.positions, p.velocities, p.accelerations] for p in plan().points])
    waypoints = Waypoints(np.array(given) * 1e-9, rows[:, 0], rows[:, 1], rows[:, 2])
    direct = efforts.effort_filter(waypoints)
    np.testing.assert_allclose(values[:, :3], direct.motion, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(values[:, 3], direct.efforts, rtol=1e-9, atol=1e-9)


def test_efforts_that_are_already_there_are_replaced(efforts: TrajectoryEfforts) -> None:
    filled_in = plan(0.4)
    for point in filled_in.points:
        point.effort = [1e3] * 7
    assert efforts(filled_in, UNKNOWN).msg == efforts(plan(0.4), UNKNOWN).msg


def path(*rows: np.ndarray) -> JointTrajectory:
    points = [JointTrajectoryPoint(positions=row.tolist()) for row in rows]
    return JointTrajectory(joint_names=list(NAMES), points=points)


@pytest.mark.parametrize("blend", [0.0, 0.3])
def test_a_path_becomes_the_fastest_motion_with_efforts(
    efforts: TrajectoryEfforts, panda: Robot, blend: float
) -> None:
    middle = HOME + np.array([0.3, 0.1, -0.2, 0.2, 0.1, 0.2, -0.3])
    near = middle + 1e-9  # one point twice, to rounding, no times
    msg = path(np.array(HOME), middle, near, np.array(HOME) + MOVE, np.array(HOME) + MOVE + 1e-9)
    msg.header.frame_id = "base"
    out = efforts.fastest(msg, UNKNOWN, blend)
    assert out.header == msg.header and out.joint_names == NAMES
    values = columns(out)
    times = 1e-9 * np.array([nanoseconds(point.time_from_start) for point in out.points])
    assert times[0] == 0.0 and 0.009 < np.diff(times).max() <= 0.010000001
    np.testing.assert_allclose(values[[0, -1], 0], [HOME, HOME + MOVE], atol=1e-9)
    np.testing.assert_allclose(values[[0, -1], 1:3], 0.0, atol=1e-6)
    distance = np.abs(values[:, 0] - middle).max(axis=1).min()
    assert distance < 0.01 if blend == 0.0 else 0.01 < distance < 0.1
    # quintics between the points, as a controller makes them: within all limits, and one of them is reached
    quintics = BPoly.from_derivatives(times, list(values[:, :3]))
    dense = np.linspace(0.0, times[-1], 4001)
    motion = np.stack([quintics(dense, nu=k) for k in range(4)], axis=1)
    torques = panda.inverse_dynamics(np.ascontiguousarray(motion))
    used = [
        np.abs(motion[:, 1]) / panda.limits.velocity,
        np.abs(torques[:, 0]) / panda.limits.effort,
        np.abs(torques[:, 1]) / panda.limits.effort_rate,
    ]
    assert 0.9 < max(each.max() for each in used) < 1.05  # the rate jumps where quintics meet
    assert max(each.max() for each in used[:2]) <= 1.0 + 1e-3
    slow = efforts.fastest(msg, UNKNOWN, blend, {"velocity": 0.3})
    assert np.abs(columns(slow)[:, 1] / panda.limits.velocity).max() == pytest.approx(0.3, abs=2e-3)
    gentle = efforts.fastest(msg, UNKNOWN, blend, stiffness_error=0.2)
    assert nanoseconds(gentle.points[-1].time_from_start) > 1e9 * times[-1]


def rejected(call: Callable[[], object], words: str) -> Reason:
    """Return the reason for which a message is rejected, in these words."""
    reason: Reason = refused(call, words, MessageRejected).reason
    return reason


def test_paths_that_cannot_be_timed_are_refused(efforts: TrajectoryEfforts) -> None:
    for rows, reason, words in (
        ([HOME], Reason.BAD_MOTION, "a path needs two different points at least"),
        ([HOME, np.array(HOME) + 1e-9], Reason.BAD_MOTION, "a path needs two different points at least"),
        ([HOME, [*HOME[:3], 1.0, *HOME[4:]]], Reason.BEYOND_LIMITS, "'panda_joint4' leaves its range"),
        ([HOME, [*HOME[:6], float("nan")]], Reason.NOT_FINITE, "'panda_joint7'"),
    ):
        assert rejected(partial(efforts.fastest, path(*map(np.array, rows)), UNKNOWN), words) is reason


def test_the_node_retimes_paths() -> None:
    with talking("trajectory_filter", {"robot_config": "panda.yaml"}, "tf_retime") as (node, talk):
        request = RetimeTrajectory.Request(
            path=path(np.array(HOME), np.array(HOME) + MOVE), quantities=["velocity"], shares=[0.5]
        )
        answer = talk.call(RetimeTrajectory, "trajectory_filter/retime", request)
        assert answer.success, answer.message
        last = nanoseconds(answer.trajectory.points[-1].time_from_start)
        assert answer.message == f"the motion lasts {1e-9 * last:.6f} s"
        request.shares = []
        answer = talk.call(RetimeTrajectory, "trajectory_filter/retime", request)
        assert not answer.success and "there are 1 quantities and 0 shares" in answer.message
        request.quantities, request.shares = ["pace"], [0.5]
        answer = talk.call(RetimeTrajectory, "trajectory_filter/retime", request)
        assert not answer.success and "has no limit of 'pace'" in answer.message


def test_the_action_retimes_as_the_service_does_and_can_be_canceled() -> None:
    with talking("trajectory_filter", {"robot_config": "panda.yaml"}, "tf_action") as (node, talk):
        client = ActionClient(talk.node, RetimeAction, "trajectory_filter/retime")
        talk.wait_until(client.server_is_ready, "the action")
        heard: list[float] = []

        def accepted(goal: RetimeAction.Goal) -> object:
            sent = client.send_goal_async(goal, lambda msg: heard.append(msg.feedback.progress))
            return talk.wait_until(lambda: sent.done() and sent.result(), "the answer to a goal")

        def ended(handle: object) -> object:
            result = handle.get_result_async()  # type: ignore[attr-defined]
            return talk.wait_until(lambda: result.done() and result.result(), "the result of a goal")

        ends = np.array(HOME), np.array(HOME) + MOVE
        asked = {"path": path(*ends), "quantities": ["velocity"], "shares": [0.5]}
        found = ended(accepted(RetimeAction.Goal(**asked)))
        answer = talk.call(RetimeTrajectory, "trajectory_filter/retime", RetimeTrajectory.Request(**asked))
        assert found.status == GoalStatus.STATUS_SUCCEEDED
        assert found.result.trajectory == answer.trajectory and answer.success
        assert found.result.message == answer.message
        assert heard == sorted(heard) and heard[0] == 0.0 and heard[-1] == 1.0 and len(heard) > 3
        refused = ended(accepted(RetimeAction.Goal(path=path(*ends), quantities=["pace"], shares=[0.5])))
        assert refused.status == GoalStatus.STATUS_ABORTED
        assert "has no limit of 'pace'" in refused.result.message
        # a long one, canceled while it is sought
        dense = [ends[0] + share * MOVE for share in np.linspace(0.0, 1.0, 1500)]
        heard.clear()
        handle = accepted(RetimeAction.Goal(path=path(*dense)))
        talk.wait_until(lambda: heard, "progress")
        handle.cancel_goal_async()  # type: ignore[attr-defined]
        stopped = ended(handle)
        assert stopped.status == GoalStatus.STATUS_CANCELED and heard[-1] < 1.0
        assert not stopped.result.trajectory.points
        client.destroy()


def test_a_stop_counts_from_where_the_controller_is(efforts: TrajectoryEfforts) -> None:
    filtered = efforts(plan(), UNKNOWN)
    stop = efforts.stop(filtered, 0.4, 0.5, 0.3)
    instants = [nanoseconds(point.time_from_start) for point in stop.points]
    assert instants[0] == 0 and instants[-1] == 400_000_000 and stop.joint_names == NAMES
    # the same columns at the same instants as in the trajectory, until the stop begins
    np.testing.assert_allclose(columns(stop)[:11], columns(filtered.msg)[40:51], rtol=0.0, atol=1e-8)
    assert not columns(stop)[-1, 1:3].any()


def test_a_hold_takes_the_other_joints_from_where_they_are(panda: Robot) -> None:
    some = TrajectoryEfforts(EffortFilter(panda, "link"), tuple(NAMES[1:4]))
    elsewhere = PresentState(HOME + MOVE, np.zeros(7))
    hold = some.hold(dict(zip(NAMES[1:4], HOME[1:4])), elsewhere, 0.1)
    (point,) = hold.points
    assert hold.joint_names == NAMES[1:4] and nanoseconds(point.time_from_start) == 100_000_000
    assert list(point.positions) == list(HOME[1:4]) and not any([*point.velocities, *point.accelerations])
    standing = np.stack(
        [np.where(np.isin(np.arange(7), [1, 2, 3]), HOME, HOME + MOVE), np.zeros(7), np.zeros(7)]
    )
    np.testing.assert_allclose(point.effort, panda.inverse_dynamics(standing)[0, 1:4], rtol=0.0, atol=1e-9)
    unknown = "where joint 'panda_joint1' stands is not known"
    rejected(lambda: some.hold(dict(zip(NAMES[1:4], HOME[1:4])), UNKNOWN, 0.1), unknown)


def set_times(msg: JointTrajectory, *times: float) -> None:
    for point, instant in zip(msg.points, times, strict=True):
        point.time_from_start = after(instant)


def test_bad_trajectories_are_refused(efforts: TrajectoryEfforts) -> None:
    table: tuple[tuple[Change, Reason, str], ...] = (
        (lambda m: m.joint_names.clear(), Reason.NO_NAMES, "joint_names is empty"),
        (lambda m: m.joint_names.__setitem__(2, "elbow"), Reason.UNKNOWN_JOINT, "joint 'elbow' is unknown"),
        (lambda m: m.joint_names.__setitem__(2, NAMES[1]), Reason.REPEATED_JOINT, "named twice"),
        (lambda m: m.points.clear(), Reason.BAD_TIMES, "has no points"),
        (lambda m: set_times(m, 0, 0, 0.2, 0.3, 0.4), Reason.BAD_TIMES, "point 1 is 0 s, ... increase"),
        (lambda m: set_times(m, 0.0, 0.2, 0.1, 0.3, 0.4), Reason.BAD_TIMES, "point 2 is 0.1 s"),
        (lambda m: set_times(m, -0.1, 0.2, 0.3, 0.4, 0.5), Reason.BAD_MOTION, "at -0.1 s; times count from"),
        (lambda m: set_times(m, 0.2, 0.3, 0.4, 0.5, 0.6), Reason.BAD_MOTION, "publish its state on joint_st"),
        (lambda m: set_times(m, 0.0, 1e3, 1.2e3, 1.9e3, 2.1e3), Reason.BAD_TIMES, "send it in parts"),
        (lambda m: m.points.__delitem__(slice(1, None)), Reason.BAD_MOTION, "the only point is at time 0"),
        (lambda m: m.points[3].positions.pop(), Reason.WRONG_LENGTH, "positions of point 3 holds 6"),
        (lambda m: m.points[3].velocities.__setitem__(5, np.nan), Reason.NOT_FINITE, "'panda_joint6'"),
        (lambda m: m.points[3].positions.__setitem__(5, np.inf), Reason.NOT_FINITE, "'panda_joint6'"),
        (lambda m: m.points[2].positions.__setitem__(0, 1e300), Reason.RESULT_NOT_FINITE, "too large"),
        (lambda m: m.points[2].positions.__setitem__(0, 3.0), Reason.BEYOND_LIMITS, "reaches ... beyond"),
    )
    for change, reason, words in table:
        msg = plan(0.4)
        change(msg)
        assert rejected(partial(efforts, msg, UNKNOWN), words) is reason, words


def test_a_trajectory_whose_stamp_has_passed_is_refused_where_the_controller_would_leap(
    efforts: TrajectoryEfforts,
) -> None:
    filtered = efforts(plan(), UNKNOWN)
    for late in (-5.0, 0.0, 0.1):
        efforts.require_in_time(filtered, late)
    for late in (0.7, 3600.0):
        call = partial(efforts.require_in_time, filtered, late)
        assert rejected(call, "from its start, and would leap") is Reason.TOO_LATE


def test_the_most_points_are_counted_before_they_are_made(efforts: TrajectoryEfforts) -> None:
    assert 2.1e3 / efforts.effort_filter.period > MOST_POINTS
    msg = plan(0.4)
    set_times(msg, 0.0, 1.0, 2.0, 3.0, 2_147_483_000.0)  # decades
    refused(lambda: efforts(msg, UNKNOWN), "lasts 2.14748e+09 s", MessageRejected)


def test_limits_and_departures_are_refused_or_passed(panda: Robot) -> None:
    base, fast, sparse = EffortFilter(panda), plan(0.1, step=0.02), plan(2.0)
    for point in sparse.points:
        point.velocities, point.accelerations = [], []
    del sparse.points[1:-1]
    strict = TrajectoryEfforts(base, tuple(NAMES), max_departure=0.01)
    lenient = TrajectoryEfforts(base, tuple(NAMES), reject_violations=False)
    with pytest.raises(
        MessageRejected, match=r"of 'panda_joint\d' reaches .* at 0\.\d+ s, beyond .*limits:=pass"
    ):
        TrajectoryEfforts(base, tuple(NAMES))(fast, UNKNOWN)
    assert lenient(fast, UNKNOWN).result.violations
    with pytest.raises(MessageRejected, match=r"departs by 0\.0\d+ rad .* joint 'panda_joint\d' at"):
        strict(sparse, UNKNOWN)
    assert lenient(sparse, UNKNOWN).result.dense.departure.distance > 0.01


def test_joints_that_are_not_named_rest_where_they_are(panda: Robot, efforts: TrajectoryEfforts) -> None:
    arm = TrajectoryEfforts(EffortFilter(panda), tuple(reversed(NAMES[:5])))
    msg = plan()
    msg.joint_names = NAMES[:4]
    for point in msg.points:
        point.positions, point.velocities = point.positions[:4], point.velocities[:4]
        point.accelerations = point.accelerations[:4]
    present = PresentState(HOME + [0, 0, 0, 0, 0.3, -0.2, 0.1], np.zeros(7))
    out = arm(msg, present).msg
    assert out.joint_names == NAMES[4::-1]
    values = columns(out)
    np.testing.assert_allclose(values[:, 0, 0], HOME[4] + 0.3, rtol=0.0, atol=1e-12)
    # what the resting joints weigh is in the efforts of the others
    posture = np.concatenate([HOME[:4], present.positions[4:]])
    weight = panda.inverse_dynamics(np.stack([posture, 0.0 * HOME, 0.0 * HOME]))[0]
    np.testing.assert_allclose(values[0, 3], weight[4::-1], rtol=0.0, atol=1e-6)
    missing = "joint 'panda_joint5' is missing ... publish its state"
    assert rejected(lambda: arm(msg, UNKNOWN), missing) is Reason.MISSING_JOINT
    msg.joint_names = NAMES[3:]  # of which the controller moves only some
    rejected(lambda: arm(msg, present), "joint 'panda_joint6' is unknown")
    hand = "joint 'hand' is unknown; the robot has"
    refused(lambda: TrajectoryEfforts(EffortFilter(panda), ("hand",)), hand)


def test_joint_states_of_several_publishers_are_put_together() -> None:
    now = 0.0
    present = JointStateBuffer(["a", "b", "c"], patience=1.0, clock=lambda: now)
    present.take(JointState(name=["finger", "c"], position=[9.0, 3.0], velocity=[9.0, 0.3]))
    now = 0.5
    present.take(JointState(name=["finger", "b"], position=[float("nan"), 2.0]))
    np.testing.assert_array_equal(present.state().positions, [np.nan, 2.0, 3.0])
    np.testing.assert_array_equal(present.state().velocities, [np.nan, np.nan, 0.3])
    now = 1.2
    np.testing.assert_array_equal(present.state().positions, [np.nan, 2.0, np.nan])


def test_of_a_malformed_joint_state_nothing_is_kept() -> None:
    present = JointStateBuffer(["a", "b"])
    present.take(JointState(name=["a", "b"], position=[3.0, 4.0], velocity=[0.3, np.nan]))
    for positions, velocities, reason, words in (
        ([1.0], [], Reason.WRONG_LENGTH, "position holds 1 values for 3 joints; send one per joint"),
        ([], [], Reason.WRONG_LENGTH, "position holds 0 values for 3 joints"),
        ([1.0] * 4, [], Reason.WRONG_LENGTH, "position holds 4 values for 3 joints"),
        ([1.0] * 3, [0.1] * 2, Reason.WRONG_LENGTH, "velocity holds 2 values for 3 joints"),
        ([1.0, 1.0, np.nan], [], Reason.NOT_FINITE, "position of joint 'b' is not finite"),
        ([1.0, -np.inf, 1.0], [], Reason.NOT_FINITE, "position of joint 'a' is not finite"),
    ):
        bad = JointState(name=["finger", "a", "b"], position=positions, velocity=velocities)
        assert rejected(partial(present.take, bad), words) is reason
        # those of another robot are none of its business
        present.take(JointState(name=["finger"], position=positions[1:], velocity=velocities))
        np.testing.assert_array_equal(present.state(), [[3.0, 4.0], [0.3, np.nan]])


def damage(msg: JointTrajectory, rng: random.Random) -> None:
    """Change something in a trajectory that may be wrong then."""
    point = rng.choice(msg.points) if msg.points else None
    field = rng.choice(["positions", "velocities", "accelerations"])
    what = rng.randrange(6)
    if what == 0 and point is not None and len(getattr(point, field)):
        values = getattr(point, field)
        values[rng.randrange(len(values))] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e20, 1e-308, 5.0])
    elif what == 1 and point is not None:
        point.time_from_start.sec = rng.choice([-(2**31), -1, 0, 2**31 - 1])
        point.time_from_start.nanosec = rng.choice([0, 1, 2**32 - 1])
    elif what == 2 and point is not None:
        setattr(point, field, [rng.random()] * rng.randrange(9))
    elif what == 3 and msg.joint_names:
        msg.joint_names[rng.randrange(len(msg.joint_names))] = rng.choice(["", "x", NAMES[0]])
    elif what == 4:
        del rng.choice([msg.joint_names, msg.points])[rng.randrange(3) :]
    else:
        rng.shuffle(msg.points)


@pytest.mark.filterwarnings("error")
def test_damaged_trajectories_are_refused_or_right(efforts: TrajectoryEfforts) -> None:
    rng = random.Random(7)
    passed = 0
    for _ in range(300):
        msg = plan(rng.choice([0.05, 0.4, 1.23]), rng.choice([0.0, 0.3]), rng.choice([0.01, 0.1, 0.5]))
        for _ in range(rng.randrange(1, 4)):
            damage(msg, rng)
        known = PresentState(HOME + rng.choice([0.0, 1e300]), np.full(7, rng.choice([0.0, 0.5, np.nan])))
        try:
            out = efforts(msg, rng.choice([UNKNOWN, known])).msg
        except MessageRejected:
            continue
        passed += 1
        instants = [nanoseconds(point.time_from_start) for point in out.points]
        assert instants[0] == 0 and instants == sorted(set(instants))
        assert np.isfinite(columns(out)).all()
    assert 0 < passed < 150


def test_the_node_passes_trajectories_on_and_counts_the_others(efforts: TrajectoryEfforts) -> None:
    parameters = {"robot_config": "panda.yaml", "efforts": "motor"}
    with talking("trajectory_filter", parameters, "tf_topic") as (node, talk):
        heard = talk.hear_nothing_yet(JointTrajectory, "filtered_joint_trajectory")
        publisher = talk.publisher(JointTrajectory, "trajectory_filter/joint_trajectory")
        bad = plan()
        bad.joint_names[2] = "elbow"
        publisher.publish(bad)
        talk.wait_for_line(node, "trajectory rejected: joint 'elbow' is unknown")
        good = plan()
        talk.ask(publisher, good, heard)
        expected = efforts(good, UNKNOWN).msg
        assert heard[0].header == good.header and len(heard[0].points) == len(expected.points)
        np.testing.assert_array_equal(columns(heard[0]), columns(expected))
        talk.wait_for_line(node, f"of 14 points has become one of {len(expected.points)}; it departs by")
        # a first point that comes later is led to from where joint_states have the robot
        late = plan(start=0.5)
        publisher.publish(late)
        talk.wait_for_line(node, "publish its state on joint_states")
        states = talk.publisher(JointState, "joint_states")
        state = JointState(name=["finger", *NAMES], position=[0.02, *(HOME - 0.1)], velocity=[0.0] * 8)

        def tell(trajectory: JointTrajectory) -> bool:
            time.sleep(0.1)
            states.publish(state)
            publisher.publish(trajectory)
            return False

        talk.wait_until(lambda: tell(late) or len(heard) > 1, "the trajectory from the present state")
        np.testing.assert_allclose(heard[1].points[0].positions, HOME - 0.1, rtol=0.0, atol=1e-12)
        assert nanoseconds(heard[1].points[0].time_from_start) == 0
        # several times, as one line a second is logged for a reason
        talk.wait_until(
            lambda: tell(good) or any("plan from where the robot is" in line for line in node.lines),
            "the rejection of a start elsewhere",
        )
        states.publish(JointState(name=NAMES, position=[1.0]))
        talk.wait_for_line(node, "joint_states rejected: position holds 1 values for 7 joints")
        late.header.stamp.sec = 1  # of 1970
        talk.wait_until(
            lambda: tell(late) or any("after its stamp" in line for line in node.lines), "that it is too late"
        )
        values = talk.status("trajectory_filter", lambda _, values: values["rejected joint states"] == "1")
        assert values["rejected: unknown joint"] == "1" and values["rejected: wrong length"] == "0"
        assert int(values["filled in"]) >= 2 and int(values["rejected: bad motion"]) >= 2
        assert float(values["last: departure [rad or m]"]) > 0.0


def test_the_controllers_move_the_joints_of_the_urdf_in_any_namespace() -> None:
    file = share.find("config", "controllers_joint_trajectory.yaml")
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node(
        "joint_trajectory_controller",
        namespace="left/arm",
        context=context,
        cli_args=["--ros-args", "--params-file", str(file)],
        automatically_declare_parameters_from_overrides=True,
    )
    try:
        given = {name: node.get_parameter(name).value for name in ("joints", "command_interfaces")}
        gains = node.get_parameters_by_prefix("gains")
    finally:
        node.destroy_node()
        context.try_shutdown()
    assert given["joints"] == NAMES
    assert {name.split(".")[0] for name in gains} == set(NAMES)
    urdf = share.find("config", "panda.urdf").read_text()
    for interface in given["command_interfaces"]:
        assert urdf.count(f'<command_interface name="{interface}"/>') == len(NAMES)
