"""Whether ROS 2 is there, for commands that need it."""

from __future__ import annotations

import importlib.util

from hodyn_ros.errors import HodynError


class RosMissingError(HodynError):
    """ROS 2, or the messages of this package, cannot be imported."""


def require_ros(what: str) -> None:
    """Raise RosMissingError, with what to do, where rclpy or the messages of this package are missing.

    `what` needs them, as the error says: "the demo".
    """
    for module in ("rclpy", "hodyn_ros.msg"):
        if importlib.util.find_spec(module) is None:
            raise RosMissingError(
                f"{what} needs ROS 2 and the messages of this package, but there is no {module}; `make demo` "
                "in a clone prepares both; in a workspace, build with colcon and source its setup.bash"
            )
