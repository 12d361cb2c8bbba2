"""What a robot did, from a bag."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.bags.comparison.sources import FEEDFORWARD_TORQUE, Sources, find_sources
from hodyn_ros.bags.files.types import Decoder
from hodyn_ros.bags.joint_states import JOINT_STATE, JointStates, increasing, read_joint_states
from hodyn_ros.bags.reader import Bag
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.view.track import MOST, RATE, Track, drive_limits


class _Series(NamedTuple):
    """Rows of numbers at increasing times."""

    times: Array  # (N,) [s]
    rows: Array  # (N, columns)

    def at(self, times: Array) -> Array:
        """Return the last rows (M, columns) that are not after some times; nan before the first one."""
        places = np.searchsorted(self.times, times + 1e-9, side="right") - 1
        rows = self.rows[np.maximum(places, 0)]
        return np.where((places < 0)[:, None], np.nan, rows)


def track_of_bag(robot: Robot, path: Path, namespace: str | None = None) -> Track:
    """Return what a bag says of a robot: desired motion, joint and motor states, feedforward torques.

    Deflections are those measured, of motor states beside joint states, or else those of the feedforward.
    Torques are those of the motor states where they have efforts, or else the feedforward. Raises InputError
    for a bag without a desired motion of this robot. The note of a bag that was cut off says so.
    """
    with Bag(path) as bag:
        sources = find_sources(bag, namespace)
        desired, poses = _desired(bag, sources.desired_motion, robot)
        folder = sources.desired_motion.rpartition("/")[0]
        links = _states(bag, f"{folder}/joint_states", robot.joint_names)
        driven = _states(bag, f"{folder}/joint_states", robot.driven_joints)
        train = robot.drive_train
        names = robot.driven_joints if train is None else train.motor_names
        motors = _states(bag, f"{folder}/motor_states", names)
        answers = _answers(bag, sources, robot.driven_joints, names)
        cut_off = bag.warning
    first, last = desired.times[0], desired.times[-1]
    times = np.linspace(first, last, min(max(int((last - first) * RATE), 1) + 1, MOST))
    measured = None if links is None else _Series(links.times, links.positions).at(times)
    thetas = _measured_motors(motors, driven, times)
    if thetas is None and "motor_positions" in answers and train is not None:
        wanted = [robot.joint_names.index(name) for name in robot.driven_joints if name in robot.joint_names]
        if len(wanted) == len(robot.driven_joints):
            thetas = desired.at(times)[:, wanted], answers["motor_positions"].at(times)
    deflections = None
    if thetas is not None and train is not None and train.elastic.any():
        deflections = train.deflections(*thetas)
    torques = None
    if motors is not None and not np.isnan(motors.efforts).any():
        torques = _Series(motors.times, motors.efforts).at(times)
    elif answers:
        torques = answers[next(k for k in ("motor_efforts", "efforts") if k in answers)].at(times)
    if torques is not None:
        torques = _with_propellers(torques, answers, times, len(drive_limits(robot)))
    return Track(
        times,
        desired.at(times),
        None if poses is None else poses.at(times).reshape(-1, 4, 4),
        measured,
        deflections,
        torques,
        cut_off,
    )


def _measured_motors(
    motors: JointStates | None, links: JointStates | None, times: Array
) -> tuple[Array, Array] | None:
    if motors is None or links is None or np.isnan(motors.positions).any():
        return None
    return _Series(links.times, links.positions).at(times), _Series(motors.times, motors.positions).at(times)


def _with_propellers(torques: Array, answers: dict[str, _Series], times: Array, count: int) -> Array | None:
    if torques.shape[1] < count and "thrusts" in answers:
        thrusts = answers["thrusts"].at(times)[:, : count - torques.shape[1]]
        torques = np.concatenate([torques, thrusts], axis=1)
    return torques if torques.shape[1] == count else None


def _states(bag: Bag, topic: str, names: tuple[str, ...]) -> JointStates | None:
    """Return the states of joints on a topic, if it is there and names them all."""
    if topic not in bag.topics or bag.topics[topic].type != JOINT_STATE or not names:
        return None
    states = read_joint_states(bag, topic, names)
    return states if len(states.times) else None


def _desired(bag: Bag, topic: str, robot: Robot) -> tuple[_Series, _Series | None]:
    """Return positions and poses of the desired motion."""
    decode = Decoder(bag.topics[topic])
    names, times, rows, poses = robot.joint_names, [], [], []
    for message in bag.messages([topic]):
        motion = decode(message)
        places = {name: i for i, name in enumerate(motion.joint_names)}
        if not all(name in places for name in names) or len(motion.positions) != len(places):
            continue
        if robot.moves_base and len(motion.base_pose) != 1:
            continue
        times.append(motion.header.stamp.sec + 1e-9 * motion.header.stamp.nanosec)
        rows.append([motion.positions[places[name]] for name in names])
        poses.append(_pose(motion.base_pose[0]) if robot.moves_base else np.eye(4))
    if not times:
        what = "with the pose of its base " if robot.moves_base else ""
        raise InputError(
            f"'{bag.path}': no message on {topic} {what}has all joints of robot {robot.name!r}, {list(names)}"
        )
    stamps = np.array(times)
    kept = increasing(stamps)
    positions = np.array(rows).reshape(len(stamps), len(names))
    moved = _Series(stamps[kept], np.array(poses).reshape(-1, 16)[kept]) if robot.moves_base else None
    return _Series(stamps[kept], positions[kept]), moved


def _pose(message: Any) -> Array:
    from scipy.spatial.transform import Rotation

    pose, turn, place = np.eye(4), message.orientation, message.position
    if not any((turn.x, turn.y, turn.z, turn.w)):
        return np.full((4, 4), np.nan)
    pose[:3, :3] = Rotation.from_quat([turn.x, turn.y, turn.z, turn.w]).as_matrix()
    pose[:3, 3] = place.x, place.y, place.z
    return pose


def _answers(
    bag: Bag, sources: Sources, joints: tuple[str, ...], motors: tuple[str, ...]
) -> dict[str, _Series]:
    """Return what all feedforward torques hold: efforts, those and positions of the motors, thrusts."""
    topic = sources.feedforward_torque
    if topic not in bag.topics or bag.topics[topic].type != FEEDFORWARD_TORQUE:
        return {}
    decode = Decoder(bag.topics[topic])
    answers = [decode(message) for message in bag.messages([topic])]
    answers = [answer for answer in answers if tuple(answer.joint_names) == joints]
    stamps = np.array([a.header.stamp.sec + 1e-9 * a.header.stamp.nanosec for a in answers])
    kept = increasing(stamps)
    series = {}
    for field in ("efforts", "motor_efforts", "motor_positions", "thrusts"):
        rows = [np.asarray(getattr(answer, field, ()), dtype=np.float64) for answer in answers]
        widths = {len(row) for row in rows}
        usual = {len(joints)} if field == "efforts" else widths if field == "thrusts" else {len(motors)}
        if len(widths) == 1 and widths == usual and 0 not in widths:
            series[field] = _Series(stamps[kept], np.array(rows)[kept])
    return series if "efforts" in series or "motor_efforts" in series else {}
