"""The robot of a command: its file, and what the command line says besides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hodyn_ros import share
from hodyn_ros.dynamics.read_robot import read_robot, require_silent_about_base
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.model.description import RobotDescription
from hodyn_ros.model.readers.changes import parse_settings


@dataclass(frozen=True)
class RobotChoice:
    """Which robot: `file`, the path of one or a shipped one; `settings` as of `parse_settings`."""

    file: str
    floating_base: bool = False  # of a URDF, which does not say it
    settings: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file. Raises InputError where there is none."""
        return share.find("config", self.file)

    def description(self) -> RobotDescription:
        """Read what the file and the command line say. Raises InputError or ModelError."""
        path, changes = self.path, parse_settings(self.settings)
        if self.floating_base:
            require_silent_about_base(path)
            changes["floating_base"] = True
        return read_robot(path, changes=changes)

    def robot(self) -> Robot:
        """Read and build the robot. Raises InputError or ModelError."""
        return Robot.of(self.description())
