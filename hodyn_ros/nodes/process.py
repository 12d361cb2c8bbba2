"""A node as a process: one readable line when the start fails, a clean end on SIGINT and SIGTERM."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import rclpy
from rclpy.exceptions import ROSInterruptException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from hodyn_ros.errors import HodynError


def run(make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Build a node, spin it until the process is told to end, and return the exit code.

    0 after SIGINT, SIGTERM or a shutdown of its context; 1, with one line on stderr and no traceback, when
    the node raises HodynError or OSError while it is built. `args` default to those of the process.
    """
    _ensure_log_folder()
    try:
        rclpy.init(args=list(sys.argv if args is None else args))
    except Exception as error:  # rclpy raises several unrelated types for arguments that it cannot read
        return _fail(error)
    node = None
    try:
        node = make_node()
        # The EventsExecutor of the Kilted wheels never ends its thread at shutdown.
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException, ROSInterruptException):
        pass
    except (HodynError, OSError) as error:
        return _fail(error)
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


def _fail(error: Exception) -> int:
    line = " ".join(str(error).split()) or type(error).__name__
    print(f"error: {line}", file=sys.stderr, flush=True)
    return 1


def _ensure_log_folder() -> None:
    """Let rcl find a place for its logs where the environment is empty; it asks HOME and gives up without."""
    if any(os.environ.get(name) for name in ("HOME", "ROS_HOME", "ROS_LOG_DIR")):
        return
    try:
        os.environ["HOME"] = str(Path.home())
    except RuntimeError:  # a user without an entry in the password database
        os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="hodyn_ros_log_")
