"""What the shipped launch files have in common: arguments, nodes, recording and viewing."""

from __future__ import annotations

import atexit
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from hodyn_ros import share
from hodyn_ros.errors import InputError
from hodyn_ros.launching.description import Launch, joined
from hodyn_ros.launching.processes import Argument, Command, Node, Process, Values, installed
from hodyn_ros.launching.qos_overrides import overrides

# What rosbag2 records beside the topics of the namespace.
_COMMON_TOPICS = ("/clock", "/diagnostics", "/parameter_events", "/tf", "/tf_static")

# From there on the springs of a Panda forgive that a command is held for a period [Hz].
_PREDICTED_RATE = 1000.0
# What a push may ask of the motors within a millisecond [N.m], where a prediction answers it.
_PREDICTED_STEP = 10.0

_LEVELS = ("debug", "info", "warn", "error", "fatal")

# `ros2 launch` takes no empty arguments, so a word stands for nothing.
_NONE = "none"

_REST = 3.0  # [s] between two repetitions


# arguments


def robot_argument(default: str) -> Argument:
    """Return `robot_config`."""
    return Argument("robot_config", default, "Robot: path of a YAML file, or the name of a shipped one.")


def motion_arguments(
    trajectory: str,
    *,
    rate: float = 250.0,
    lowest_rate: float = 1.0,
    order: int = 2,
    order_means: str = "Highest time derivative of the efforts; elastic feedforward needs 2.",
    measured: bool = True,
) -> tuple[Argument, ...]:
    """Return the arguments of trajectory_node and dynamics_node; `measured`: the robot has joint_states."""
    # the ranges are those of the parameters of the nodes, which cannot be asked without starting them
    return (
        Argument(
            "trajectory",
            trajectory,
            "Motion: path of a YAML file, or the name of a shipped one; none: it comes from a topic.",
        ),
        Argument(
            "duration",
            0.0,
            "How long the motion goes at full speed [s]; 0: all of it, which may be for ever.",
            low=0.0,
            high=86400.0,
        ),
        Argument(
            "rate", rate, "Samples of the desired motion per second [Hz].", low=lowest_rate, high=2000.0
        ),
        Argument("order", order, order_means, low=0, high=6),
        Argument(
            "wait_for_robot",
            measured,
            "Whether the motion waits until joint_states have the robot near to its start.",
        ),
    )


def stream_argument() -> Argument:
    """Return what `motion_node` needs beside `motion_arguments`."""
    return Argument(
        "stream",
        False,
        "Whether the motion comes from points that come while it goes on, by stream_node; `trajectory` "
        "then says at most where a simulated robot starts.",
    )


def predict_argument() -> Argument:
    """Return what `feedforward_node` needs beside `motion_arguments` and `command_arguments`."""
    return Argument(
        "predict",
        False,
        "Whether mpc_node brings the links back to the motion, in place of dynamics_node; with "
        "command_rate:=1000.",
    )


def common_arguments() -> tuple[Argument, ...]:
    """Return what `node` needs: namespace, file of parameters, respawning, enclave, clock, log."""
    return (
        Argument("namespace", "", "Namespace of all nodes and topics; each robot on a machine has its own."),
        Argument(
            "params_file",
            _NONE,
            "Parameters of the nodes, path of a YAML file; they count more than what this launch file sets.",
        ),
        Argument(
            "respawn", False, "Whether nodes that can come back safely are started again when they end."
        ),
        Argument(
            "enclave",
            False,
            "Whether each node has an enclave of its own name, as `hodyn policy` grants them.",
        ),
        Argument("use_sim_time", False, "Whether time comes from the topic /clock."),
        Argument("log_level", "info", "Least severity that is logged.", _LEVELS),
    )


def recording_arguments() -> tuple[Argument, ...]:
    """Return what `recording` needs."""
    return (
        Argument("record", False, "Whether what `hodyn replay` needs is recorded into a rosbag2 bag."),
        Argument(
            "bag", "", "Folder of the bag, not there yet; empty: rosbag2_<date>-<time> and the namespace."
        ),
    )


def viewing_arguments() -> tuple[Argument, ...]:
    """Return what `viewing` needs."""
    meaning = "Whether RViz shows the desired motion; it needs rviz2, which is not a dependency."
    return (Argument("rviz", False, meaning),)


# what is started


def trajectory_file(values: Values) -> str:
    """Return the argument `trajectory` as the nodes take it: empty for none."""
    return "" if values["trajectory"] == _NONE else str(values["trajectory"])


def node(
    executable: str,
    values: Values,
    *,
    files: tuple[Path, ...] = (),
    remappings: Mapping[str, str] | None = None,
    required: bool = True,
    safe_to_respawn: bool = False,
    **parameters: Any,
) -> Node:
    """Return a node of this package in the namespace, with the clock and severity of the log that are given.

    `files` with parameters count less than `parameters`, and these less than `params_file`.
    """
    own = () if values["params_file"] == _NONE else (existing("params_file", values["params_file"]),)
    own_name = joined(values["namespace"], executable)
    return Node(
        executable,
        values["namespace"],
        (*files, {"use_sim_time": values["use_sim_time"], **parameters}, *own),
        name=executable,
        remappings=remappings or {},
        arguments=("--ros-args", "--enclave", own_name) if values["enclave"] else (),
        log_level=values["log_level"],
        required=required,
        respawn=safe_to_respawn and values["respawn"],
    )


def trajectory_node(values: Values, **parameters: Any) -> Node:
    """Return trajectory_node with the derivatives that `order` of the efforts needs."""
    return node(
        "trajectory_node",
        values,
        robot_config=values["robot_config"],
        trajectory=trajectory_file(values),
        duration=values["duration"],
        rate=values["rate"],
        # the r-th derivative of the torque needs the motion up to its derivative r + 2
        order=2 + values["order"],
        start_when_answered=True,
        start_when_recorded=values.get("record", False),
        wait_for_robot=values["wait_for_robot"],
        **parameters,
    )


def motion_node(values: Values, **parameters: Any) -> Node:
    """Return trajectory_node with `parameters`, or stream_node where `stream` asks for it."""
    if not values["stream"]:
        return trajectory_node(values, **parameters)
    return node(
        "stream_node",
        values,
        robot_config=values["robot_config"],
        rate=values["rate"],
        order=2 + values["order"],
        wait_for_robot=values["wait_for_robot"],
    )


def dynamics_node(values: Values, **parameters: Any) -> Node:
    """Return dynamics_node, which keeps nothing that it could not compute again."""
    return node(
        "dynamics_node",
        values,
        safe_to_respawn=True,
        robot_config=values["robot_config"],
        order=values["order"],
        **parameters,
    )


def feedforward_node(values: Values) -> Node:
    """Return dynamics_node, or mpc_node where `predict` asks for it. InputError for slower commands."""
    if not values["predict"]:
        return dynamics_node(values)
    settings = values["command_rate"], values["order"], values["feedforward"]
    if settings[0] < _PREDICTED_RATE or settings[1] < 2 or settings[2] != "elastic":
        raise InputError(
            f"predict:=true needs command_rate:={_PREDICTED_RATE:g} or more, order:=2 or more, and "
            f"feedforward:=elastic; found {settings[0]:g}, {settings[1]} and {settings[2]}"
        )
    return node(
        "mpc_node",
        values,
        safe_to_respawn=True,
        robot_config=values["robot_config"],
        period=1.0 / values["command_rate"],
    )


def recording(values: Values) -> Iterator[Process]:
    """Yield what records, where `record:=true`: rosbag2, or else our own recorder."""
    if not values["record"]:
        return
    namespace = values["namespace"]
    bag = values["bag"]
    if not bag:
        bag = "_".join([f"rosbag2_{datetime.now():%Y_%m_%d-%H_%M_%S}", *filter(None, namespace.split("/"))])
    if not installed("ros2bag"):
        yield node("recorder", values, required=False, file=bag)
        return
    topics = "|".join([f"{re.escape(namespace.rstrip('/'))}/.*", *_COMMON_TOPICS])
    clock = ["--use-sim-time"] if values["use_sim_time"] else []
    # by itself rosbag2 loses messages at 1 kHz
    qos = ("--qos-profile-overrides-path", _temporary_file(overrides(namespace)))
    command = ("ros2", "bag", "record", "--output", bag, *clock, *qos, "--regex", f"^({topics})$")
    yield Command("rosbag2_recorder", command)


def _temporary_file(text: str) -> str:
    """Return the path of a file with a text, which goes with this process."""
    descriptor, path = tempfile.mkstemp(prefix="hodyn_ros-", suffix=".yaml")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    atexit.register(Path(path).unlink, missing_ok=True)
    return path


def viewing(values: Values) -> Iterator[Process]:
    """Yield what shows the desired motion, where `rviz:=true`. Raises InputError where rviz2 is missing."""
    if not values["rviz"]:
        return
    if not installed("rviz2"):
        raise InputError(
            "rviz:=true needs rviz2, which is not installed; install it, or leave out rviz:=true"
        )
    yield node(
        "skeleton_node", values, required=False, safe_to_respawn=True, robot_config=values["robot_config"]
    )
    yield Node(
        "rviz2",
        values["namespace"],
        ({"use_sim_time": values["use_sim_time"]},),
        package="rviz2",
        name="rviz2",
        remappings={"/skeleton": "skeleton"},
        arguments=("-d", str(share.find("config", "skeleton.rviz"))),
        required=False,
    )


def learning_argument() -> Argument:
    """Return what `learning_node` and `commanded_simulation` need of a motion that repeats."""
    return Argument(
        "learn",
        False,
        "Whether the motion repeats and learning_node learns from it; `trajectory` is then one from rest to "
        "rest that ends where it begins, such as panda_repetition.yaml.",
    )


def learning_node(values: Values) -> Iterator[Node]:
    """Yield learning_node where `learn:=true`; whoever takes its feedforwards stops the robot without it."""
    if values["learn"]:
        if values.get("predict"):
            raise InputError("learn:=true corrects the feedforward of dynamics_node; leave out predict:=true")
        yield node(
            "learning_node",
            values,
            robot_config=values["robot_config"],
            trajectory=trajectory_file(values),
        )


def repeated(values: Values) -> dict[str, float]:
    """Return the parameters of trajectory_node where the motion repeats, with a rest to learn in."""
    return {"repeat_after": _REST} if values["learn"] else {}


def command_arguments() -> tuple[Argument, ...]:
    """Return what `commanded_simulation` needs."""
    return (
        Argument(
            "command_rate",
            500.0,
            "Measurements of the motors, and commands that answer them, per second [Hz]; between two motions "
            "they go on by derivatives.",
            low=6.0,
            high=2000.0,
        ),
        Argument(
            "feedforward",
            "elastic",
            "What motors get beside feedback.",
            ("none", "rigid", "offset", "elastic"),
        ),
        Argument(
            "observe", False, "Whether observer_node tells what acts on the robot from outside, and contacts."
        ),
    )


def commanded_simulation(values: Values) -> Iterator[Process]:
    """Yield controller_node and simulator_node, and observer_node where `observe:=true`."""
    robot, rate = {"robot_config": values["robot_config"]}, values["command_rate"]
    predicted: dict[str, Any] = {"effort_step": _PREDICTED_STEP} if values.get("predict") else {}
    yield node(
        "controller_node",
        values,
        **robot,
        remappings={"feedforward_torque": "corrected_feedforward_torque"} if values.get("learn") else {},
        feedforward=values["feedforward"],
        # a command acts for one period after its way to the robot, and patience lasts for 1.5
        lead=2e-4 + 0.5 / rate,
        patience=1.5 / rate,
        # a busy machine may hold up messages of a simulated robot; a real one gets the defaults
        timeout=max(0.1, 3.0 / values["rate"]),
        measurement_timeout=max(0.1, 3.0 / rate),
        latency=0.02,
        **predicted,
    )
    yield node(
        "simulator_node",
        values,
        **robot,
        trajectory=trajectory_file(values),
        rate=rate,
        command_timeout=max(0.2, 5.0 / rate),
    )
    if values["observe"]:
        yield node("observer_node", values, required=False, safe_to_respawn=True, **robot)


def motion_to_efforts(robot_config: str, trajectory: str, *, simulation: bool = False) -> Launch:
    """Describe a robot with a motion from a file, and the efforts that it takes.

    With `trajectory:=none` dynamics_node waits for what somebody else publishes on `desired_motion`. Nobody
    simulates the robot, but with `simulation` where `simulate:=true`.
    """

    def processes(values: Values) -> Iterator[Process]:
        simulated = simulation and values["simulate"]
        yield from recording(values)
        yield from viewing(values)
        yield dynamics_node(values, clamp=values["clamp"])
        if simulated:
            yield from commanded_simulation(values)
        if trajectory_file(values):
            yield trajectory_node(values, start_when_commanded=simulated)

    simulate = Argument(
        "simulate", False, "Whether a simulated robot follows the motion, commanded by feedback."
    )
    arguments = (
        robot_argument(robot_config),
        *motion_arguments(trajectory, lowest_rate=6.0 if simulation else 1.0, measured=False),
        Argument("clamp", False, "Whether efforts are held within the robot's limits."),
        *((simulate, *command_arguments()) if simulation else ()),
        *common_arguments(),
        *recording_arguments(),
        *viewing_arguments(),
    )
    return Launch(arguments, processes)


def existing(argument: str, path: str) -> Path:
    """Return the path of a file that an argument names. Raises InputError where there is none."""
    if not Path(path).is_file():
        raise InputError(f"argument {argument!r}: there is no file {path!r}")
    return Path(path).absolute()
