"""A node as a process: one readable line when the start fails, a clean end on SIGINT and SIGTERM."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import rclpy
from rclpy.exceptions import NameValidationException, ParameterException, ROSInterruptException
from rclpy.executors import Executor, ExternalShutdownException
from rclpy.node import Node

from hodyn_ros.errors import HodynError
from hodyn_ros.nodes.parameters import warn_of_unknown_parameters
from hodyn_ros.nodes.stream_executor import StreamExecutor

# What a start fails with because of what the user gave. rclpy has no root for its errors: unfit QoS,
# unknown arguments and whatever rcl refuses come as RuntimeError.
_START_ERRORS = (HodynError, OSError, RuntimeError, ParameterException, NameValidationException)


def run(
    make_node: Callable[[], Node],
    args: Sequence[str] | None = None,
    make_executor: Callable[[], Executor] = StreamExecutor,
) -> int:
    """Build a node, spin it until the process is told to end, and return the exit code.

    0 after SIGINT, SIGTERM or a shutdown of its context; 1, with one line on stderr and no traceback, when
    the node cannot be built: HodynError, OSError, or an error of rclpy. `args` default to those of the
    process, which ignores SIGINT afterwards.
    """
    _ensure_log_folder()
    node, started = None, False
    try:
        try:
            rclpy.init(args=list(sys.argv if args is None else args))
            started = True
            node = make_node()
        except _START_ERRORS as error:
            # told to end meanwhile, rclpy can do nothing more, and whatever follows from that has to fail
            return 0 if started and not rclpy.ok() else _fail(error)
        # What was made at the start stays. Searching all of it for garbage again and again would cost a pause
        # of tens of milliseconds each time, and a second at the end.
        gc.collect()
        gc.freeze()
        warn_of_unknown_parameters(node)
        if not rclpy.ok():  # a half-built executor complains
            return 0
        executor = make_executor()
        executor.add_node(node)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException, ROSInterruptException):
        return 0
    except Exception:
        if rclpy.ok():
            raise
        return 0  # as above
    finally:
        # ros2 launch passes on the SIGINT that the terminal has sent to everybody; once is enough, to the
        # very end of the process: that of Python takes longer than that of the node.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # rclpy has put back what was there before it
    return 0


def _fail(error: Exception) -> int:
    line = " ".join(str(error).split())
    kind = "" if isinstance(error, HodynError) else f"{type(error).__name__}: "
    print(f"error: {kind}{line}", file=sys.stderr, flush=True)
    return 1


def _ensure_log_folder() -> None:
    """Let rcl find a place for its logs where the environment is empty; it asks HOME and gives up without."""
    if any(os.environ.get(name) for name in ("HOME", "ROS_HOME", "ROS_LOG_DIR")):
        return
    try:
        os.environ["HOME"] = str(Path.home())
    except RuntimeError:  # a user without an entry in the password database
        os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="hodyn_ros_log_")
