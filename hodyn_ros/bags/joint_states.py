"""Joint states of a bag as arrays, without ROS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.bags.files.types import Decoder
from hodyn_ros.bags.reader import Bag

JOINT_STATE = "sensor_msgs/msg/JointState"
CONTROLLER_STATE = "control_msgs/msg/JointTrajectoryControllerState"


class JointStates(NamedTuple):
    """What a topic says of some joints; nan where a message leaves it out."""

    times: NDArray[np.float64]  # (N,) [s], those of the headers, increasing
    positions: NDArray[np.float64]  # (N, n) [rad or m]
    efforts: NDArray[np.float64]  # (N, n) [N·m or N]
    named: tuple[str, ...] = ()  # the joints of the first message
    messages: int = 0  # that name all joints, those with a repeated stamp among them
    goes_back: float = 0.0  # [s] by which a stamp is before an earlier one, at most


def read_joint_states(bag: Bag, topic: str, names: Sequence[str]) -> JointStates:
    """Return the states of joints from the messages that name them all, without those that repeat a stamp."""
    return _read(bag, topic, names, lambda one: (one.name, one.position, one.effort))


def read_controller_states(bag: Bag, topic: str, names: Sequence[str]) -> JointStates:
    """Return what a joint_trajectory_controller measures: efforts that it commands where it measures none."""
    return _read(bag, topic, names, _of_controller)


def read_feedforwards(bag: Bag, topic: str, names: Sequence[str], at_motor: bool = True) -> JointStates:
    """Return efforts that a dynamics_node has computed, of motors or behind the springs; no positions."""

    def fields(one: Any) -> tuple[Any, Any, Any]:
        return one.joint_names, [], one.motor_efforts if at_motor else one.efforts

    return _read(bag, topic, names, fields)


def read_desired_positions(bag: Bag, topic: str, names: Sequence[str]) -> JointStates:
    """Return the positions that a DesiredMotion asks for; no efforts."""
    return _read(bag, topic, names, lambda one: (one.joint_names, one.positions, []))


def _of_controller(one: Any) -> tuple[Any, Any, Any]:
    # feedback and output were called actual and, where a controller had one, nothing before ROS 2 Humble
    feedback = one.feedback if hasattr(one, "feedback") else one.actual
    measured = feedback.effort if len(feedback.effort) or not hasattr(one, "output") else one.output.effort
    return one.joint_names, feedback.positions, measured


def _read(
    bag: Bag, topic: str, names: Sequence[str], fields: Callable[[Any], tuple[Any, Any, Any]]
) -> JointStates:
    """Return the states of a topic; `fields` are names, positions and efforts of a message."""
    decode = Decoder(bag.topics[topic])
    stamps, positions, efforts = [], [], []
    first: tuple[str, ...] = ()
    for message in bag.messages([topic]):
        state = decode(message)
        named, position, effort = fields(state)
        first = first or tuple(named)
        places = {name: i for i, name in enumerate(named)}
        if not all(name in places for name in names):
            continue
        order = [places[name] for name in names]
        stamps.append(state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec)
        positions.append(_values(position, order))
        efforts.append(_values(effort, order))
    times, shape = np.array(stamps), (len(stamps), len(names))
    kept = increasing(times)
    return JointStates(
        times[kept],
        np.array(positions).reshape(shape)[kept],
        np.array(efforts).reshape(shape)[kept],
        first,
        len(times),
        float(np.max(np.maximum.accumulate(times) - times, initial=0.0)),
    )


def increasing(times: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which times (N,) are later than all before them."""
    return np.diff(np.maximum.accumulate(times), prepend=-np.inf) > 0.0


def _values(field: Any, order: list[int]) -> NDArray[np.float64]:
    values = np.asarray(field, dtype=np.float64)
    return values[order] if len(values) > max(order, default=-1) else np.full(len(order), np.nan)
