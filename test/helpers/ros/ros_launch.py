"""Launch files, run by the real launch; and ROS packages that it finds."""

import os
import sys
from pathlib import Path

from ros_processes import RosProcess, child_environment

from hodyn_ros import share

# What `ros2 launch` does.
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
arguments = [tuple(argument.split(":=", 1)) for argument in sys.argv[2:]]
source = AnyLaunchDescriptionSource(sys.argv[1])
service = LaunchService(noninteractive=True)  # as without a terminal: SIGINT goes on to the nodes at once
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)])
)
sys.exit(service.run())
"""


def launch(file: str, *arguments: str, prefix: Path | None = None) -> RosProcess:
    """Launch a file of the package; executables of `prefix` come first."""
    environment = child_environment()
    # launch finds the executables of a package by these
    prefixes = [str(prefix or ""), environment.get("AMENT_PREFIX_PATH", ""), sys.prefix]
    environment["AMENT_PREFIX_PATH"] = os.pathsep.join(filter(None, prefixes))
    paths = [str(prefix / "bin")] if prefix else []
    environment["PATH"] = os.pathsep.join([*paths, str(Path(sys.executable).parent), environment["PATH"]])
    path = share.find("launch", file)
    return RosProcess([sys.executable, "-c", LAUNCH, str(path), *arguments], environment, file)


def package(prefix: Path, name: str, executable: str) -> None:
    """Make a ROS package whose executable says what it was given, and waits to be ended."""
    marker = prefix / "share" / "ament_index" / "resource_index" / "packages" / name
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    script = prefix / executable
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f'#!/bin/sh\necho "{script.name} was given: $*"\nexec sleep 60\n')
    script.chmod(0o755)
