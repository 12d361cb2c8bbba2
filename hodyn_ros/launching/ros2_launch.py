"""A launch file for `ros2 launch`; the only module that needs `launch` and `launch_ros`, not on PyPI."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    OpaqueFunction,
    PopLaunchConfigurations,
    PushLaunchConfigurations,
    Shutdown,
)
from launch.events.process import ProcessExited
from launch_ros.actions import Node as LaunchNode
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.utilities import get_node_name_count

from hodyn_ros.errors import HodynError
from hodyn_ros.launching.processes import CANNOT_START, Argument, Command, Process, ending
from hodyn_ros.parent import PARENT

RESPAWN_DELAY = 1.0  # [s]


class LaunchEndedError(HodynError):
    """A process has ended that the others need; raised inside a launch, it makes it end with 1."""


Start = Callable[[Mapping[str, str], str, Callable[[str], bool]], list[Process]]


def description(arguments: Sequence[Argument], start: Start) -> LaunchDescription:
    """Return arguments to declare, and an action that starts everything once they are known.

    `start(values by name, namespace around, whether a full name is that of a node that was started)` returns
    what is to be started.
    """
    names = [argument.name for argument in arguments]
    return LaunchDescription(
        [
            # a default that stayed would be the value of a launch file that is included after this one
            PushLaunchConfigurations(),
            *map(_declared, arguments),
            OpaqueFunction(function=_start, args=[names, start]),
            PopLaunchConfigurations(),
        ]
    )


def _declared(argument: Argument) -> DeclareLaunchArgument:
    return DeclareLaunchArgument(
        argument.name,
        default_value=argument.default_text,
        description=argument.description,
        choices=list(argument.offered) or None,
    )


def _start(context: LaunchContext, names: Sequence[str], start: Start) -> list[Action]:
    configured = context.launch_configurations
    arguments = {name: configured[name] for name in names}
    # where a group of actions around this one has pushed a namespace
    within = configured.get("ros_namespace", "/")
    processes = start(arguments, within, lambda name: get_node_name_count(context, name) > 0)
    return [_action(process) for process in processes]


def _action(process: Process) -> Action:
    common: dict[str, Any] = {
        "output": "screen",
        "respawn": process.respawn,
        "respawn_delay": RESPAWN_DELAY,
        "on_exit": _at_exit(process),
    }
    if isinstance(process, Command):
        return ExecuteProcess(cmd=list(process.command), name=process.name, **common)
    level = ["--ros-args", "--log-level", process.log_level] if process.log_level else []
    return LaunchNode(
        package=process.package,
        executable=process.executable,
        name=process.name or None,
        namespace=process.namespace,
        parameters=[_parameters(each) for each in process.parameters],
        remappings=list(process.remappings.items()),
        arguments=[*process.arguments, *level],
        additional_env={PARENT: str(os.getpid())},
        **common,
    )


def _parameters(parameters: Path | Mapping[str, Any]) -> Any:
    if isinstance(parameters, Path):
        return ParameterFile(str(parameters))
    # a text stays one, also where it looks like a number
    return {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in parameters.items()
    }


def _at_exit(process: Process) -> Callable[[ProcessExited, LaunchContext], Action | None]:
    """Return what launch calls when a process has ended."""

    def at_exit(event: ProcessExited, context: LaunchContext) -> Action | None:
        if not process.required or (context.is_shutdown and event.returncode == 0):
            return None
        if process.respawn and event.returncode != CANNOT_START and not context.is_shutdown:
            return None
        if event.returncode == 0:
            return Shutdown(reason=f"{event.process_name} has ended")
        raise LaunchEndedError(ending(event.process_name, event.returncode))

    return at_exit
