"""What the launch files share: arguments, nodes, recording and viewing.

The only module that needs `launch` and `launch_ros`, which come with a ROS 2 and not from PyPI; nothing else
imports it. `text`, `number`, `whole`, `flag` and `computed` name an argument whose value, once the launch
runs, becomes that of a parameter. Arguments, `recording` and `viewing` come before the nodes: a launch whose
description ends with an error leaves behind the nodes that it has started until then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription, Substitution
from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    GroupAction,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.conditions import IfCondition
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import (
    EqualsSubstitution,
    IfElseSubstitution,
    LaunchConfiguration,
    NotEqualsSubstitution,
    PythonExpression,
)
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.utilities import make_namespace_absolute, prefix_namespace

from hodyn_ros import share
from hodyn_ros.errors import InputError
from hodyn_ros.share import PACKAGE

# What rosbag2 records beside the topics of the namespace.
_COMMON_TOPICS = ("/clock", "/diagnostics", "/parameter_events", "/tf", "/tf_static")

_LEVELS = ("debug", "info", "warn", "error", "fatal")


# arguments


def argument(
    name: str, default: object, description: str, choices: Sequence[str] | None = None
) -> DeclareLaunchArgument:
    """Declare an argument of a launch file; `choices` are the only values that are taken."""
    return DeclareLaunchArgument(
        name,
        default_value=str(default),
        description=description,
        choices=None if choices is None else list(choices),
    )


def switch(name: str, description: str, default: str = "false") -> DeclareLaunchArgument:
    """Declare an argument that is true or false."""
    return argument(name, default, description, ("true", "false"))


def number_argument(
    name: str, default: float, description: str, low: float, high: float
) -> LaunchDescription:
    """Declare an argument that is a number from `low` to `high`, a whole one where the default is an int."""
    declared = argument(name, default, f"{description} From {low:g} to {high:g}.")
    return LaunchDescription(
        [declared, OpaqueFunction(function=_check_number, args=[name, type(default), low, high])]
    )


def robot_argument(default: str) -> DeclareLaunchArgument:
    """Declare `robot_config`."""
    return argument("robot_config", default, "Robot: path of a YAML file, or the name of a shipped one.")


def motion_arguments(
    trajectory: str,
    *,
    lowest_rate: float = 1.0,
    order: int = 2,
    order_means: str = "Highest time derivative of the efforts; elastic feedforward needs 2.",
) -> list[DeclareLaunchArgument | LaunchDescription]:
    """Declare `trajectory`, `duration`, `rate` and `order` for trajectory_node and dynamics_node."""
    # the ranges are those of the parameters of the nodes, which cannot be asked without starting them
    return [
        argument(
            "trajectory",
            trajectory,
            "Motion: path of a YAML file, or the name of a shipped one; none: it comes from a topic.",
        ),
        number_argument(
            "duration",
            0.0,
            "How long the motion goes at full speed [s]; 0: all of it, which may be for ever.",
            low=0.0,
            high=86400.0,
        ),
        number_argument(
            "rate", 1000.0, "Samples of the desired motion per second [Hz].", low=lowest_rate, high=2000.0
        ),
        number_argument("order", order, order_means, low=0, high=6),
    ]


def common_arguments() -> list[DeclareLaunchArgument]:
    """Declare what `node` needs: namespace, clock and severity of the log."""
    return [
        argument("namespace", "", "Namespace of all nodes and topics; each robot on a machine has its own."),
        switch("use_sim_time", "Whether time comes from the topic /clock."),
        argument("log_level", "info", "Least severity that is logged.", _LEVELS),
    ]


# values of parameters


def text(name: str) -> ParameterValue:
    """Return an argument as a text, also where it looks like a number."""
    return ParameterValue(LaunchConfiguration(name), value_type=str)


def number(name: str) -> ParameterValue:
    """Return an argument as a float."""
    return ParameterValue(LaunchConfiguration(name), value_type=float)


def whole(name: str) -> ParameterValue:
    """Return an argument as an int."""
    return ParameterValue(LaunchConfiguration(name), value_type=int)


def flag(name: str) -> ParameterValue:
    """Return a `switch` as a bool."""
    return ParameterValue(EqualsSubstitution(LaunchConfiguration(name), "true"), value_type=bool)


def computed(before: str, name: str, after: str, value_type: type) -> ParameterValue:
    """Return what Python makes of `before`, the value of an argument as a `value_type`, and `after`."""
    given = [f"{value_type.__name__}('", LaunchConfiguration(name), "')"]
    return ParameterValue(PythonExpression([before, *given, after]), value_type=value_type)


def trajectory_file() -> ParameterValue:
    """Return the argument `trajectory` as the nodes take it: empty for none."""
    given = LaunchConfiguration("trajectory")
    return ParameterValue(IfElseSubstitution(_is_given("trajectory"), given, ""), value_type=str)


def _is_given(name: str) -> NotEqualsSubstitution:
    # `ros2 launch` takes no empty arguments, so a word stands for nothing
    return NotEqualsSubstitution(LaunchConfiguration(name), "none")


# what is started


def node(
    executable: str, *, package: str = PACKAGE, condition: Any = None, on_exit: Any = None, **parameters: Any
) -> Node:
    """Start a node in the given namespace, with the given clock and severity of the log."""
    return Node(
        package=package,
        executable=executable,
        name=executable,
        namespace=LaunchConfiguration("namespace"),
        parameters=[{"use_sim_time": flag("use_sim_time"), **parameters}],
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        output="screen",
        condition=condition,
        on_exit=on_exit,
    )


def trajectory_node(**options: Any) -> Node:
    """Start trajectory_node with the derivatives that `order` of the efforts needs; all end if it cannot."""
    return node(
        "trajectory_node",
        robot_config=text("robot_config"),
        trajectory=trajectory_file(),
        duration=number("duration"),
        rate=number("rate"),
        # the r-th derivative of the torque needs the motion up to its derivative r + 2
        order=computed("2 + ", "order", "", int),
        start_when_answered=True,
        on_exit=_end_with_it,
        **options,
    )


def dynamics_node(**options: Any) -> Node:
    """Start dynamics_node; all end if it cannot."""
    return node(
        "dynamics_node",
        robot_config=text("robot_config"),
        order=whole("order"),
        on_exit=_end_with_it,
        **options,
    )


def _end_with_it(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    """End the launch when a node ends with 1, as one that cannot start does; told to end, it ends with 0."""
    return Shutdown() if event.returncode == 1 and not context.is_shutdown else None


def recording() -> LaunchDescription:
    """Record what replaying needs where `record:=true`: with rosbag2, or else with our own recorder."""
    return LaunchDescription(
        [
            switch("record", "Whether what `hodyn replay` needs is recorded into a rosbag2 bag."),
            argument(
                "bag", "", "Folder of the bag, not there yet; empty: rosbag2_<date>-<time> and the namespace."
            ),
            OpaqueFunction(function=_start_recorder, condition=IfCondition(LaunchConfiguration("record"))),
        ]
    )


def viewing() -> LaunchDescription:
    """Show the desired motion where `rviz:=true`; where rviz2 is missing, an error says what to install."""
    return LaunchDescription(
        [
            switch(
                "rviz", "Whether RViz shows the desired motion; it needs rviz2, which is not a dependency."
            ),
            OpaqueFunction(function=_start_rviz, condition=IfCondition(LaunchConfiguration("rviz"))),
        ]
    )


def motion_to_efforts(robot_config: str, trajectory: str) -> LaunchDescription:
    """Describe a robot that nobody simulates: a motion from a file, and the efforts that it takes.

    With `trajectory:=none` dynamics_node waits for what somebody else publishes on `desired_motion`.
    """
    return LaunchDescription(
        [
            robot_argument(robot_config),
            *motion_arguments(trajectory),
            switch("clamp", "Whether efforts are held within the robot's limits."),
            *common_arguments(),
            recording(),
            viewing(),
            dynamics_node(clamp=flag("clamp")),
            trajectory_node(condition=IfCondition(_is_given("trajectory"))),
        ]
    )


def included(launch_file: str, **arguments: str | Substitution) -> Action:
    """Include a launch file of this package with arguments that no other file in the launch sees."""
    source = PythonLaunchDescriptionSource(str(share.find("launch", launch_file)))
    return GroupAction([IncludeLaunchDescription(source, launch_arguments=list(arguments.items()))])


def different_namespaces(one: str, other: str) -> OpaqueFunction:
    """Refuse the same namespace in two arguments, before the nodes of both talk on the same topics."""
    return OpaqueFunction(function=_check_namespaces, args=[one, other])


# checks before anything is started


def _check_number(context: LaunchContext, name: str, kind: type, low: float, high: float) -> None:
    given = LaunchConfiguration(name).perform(context)
    try:
        fits = low <= kind(given) <= high  # false for nan
    except ValueError:
        fits = False
    if not fits:
        wanted = "a whole number" if kind is int else "a number"
        raise InputError(f"argument {name!r} is {given!r}; give {wanted} from {low:g} to {high:g}")


def _check_namespaces(context: LaunchContext, one: str, other: str) -> None:
    given = [LaunchConfiguration(name).perform(context) for name in (one, other)]
    if given[0].strip("/") == given[1].strip("/"):
        raise InputError(
            f"arguments {one!r} and {other!r} are both {given[1]!r}; give each robot a namespace of its own"
        )


# what depends on what is installed


def _installed(package: str) -> bool:
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


def _namespace(context: LaunchContext) -> str:
    """Return the namespace of the nodes, with that of a group of `ros_namespace` around them."""
    outer, own = context.launch_configurations.get("ros_namespace"), LaunchConfiguration("namespace")
    return make_namespace_absolute(prefix_namespace(outer or "/", own.perform(context)))


def _start_recorder(context: LaunchContext) -> list[Action]:
    namespace = _namespace(context)
    bag = LaunchConfiguration("bag").perform(context)
    if not bag:
        parts = [f"rosbag2_{datetime.now():%Y_%m_%d-%H_%M_%S}", *namespace.strip("/").split("/")]
        bag = "_".join(filter(None, parts))
    if not _installed("ros2bag"):
        return [node("recorder", file=ParameterValue(bag, value_type=str))]
    topics = "|".join([f"{re.escape(namespace.rstrip('/'))}/.*", *_COMMON_TOPICS])
    clock = ["--use-sim-time"] if LaunchConfiguration("use_sim_time").perform(context) == "true" else []
    command = ["ros2", "bag", "record", "--output", bag, *clock, "--regex", f"^({topics})$"]
    return [ExecuteProcess(cmd=command, name="rosbag2_recorder", output="screen")]


def _start_rviz(context: LaunchContext) -> list[Action]:
    if not _installed("rviz2"):
        raise InputError(
            "rviz:=true needs rviz2, which is not installed; install it, or leave out rviz:=true"
        )
    return [
        node("skeleton_node", robot_config=text("robot_config")),
        Node(
            package="rviz2",
            executable="rviz2",
            name="rviz2",
            namespace=LaunchConfiguration("namespace"),
            parameters=[{"use_sim_time": flag("use_sim_time")}],
            remappings=[("/skeleton", "skeleton")],
            arguments=["-d", str(share.find("config", "skeleton.rviz"))],
            output="screen",
        ),
    ]
