"""A node as a process: one readable line when the start fails, a proper end on SIGINT and SIGTERM."""

from __future__ import annotations

import faulthandler
import fcntl
import gc
import os
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import rclpy
from rclpy.context import Context
from rclpy.exceptions import NameValidationException, ParameterException, ROSInterruptException
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from hodyn_ros.errors import HodynError, print_figures_in_one_line
from hodyn_ros.parent import end_with_parent
from hodyn_ros.ros.diagnostics import MiddlewareFailures
from hodyn_ros.ros.parameters.parameters import warn_of_unknown_parameters
from hodyn_ros.ros.realtime import apply_realtime_settings
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.stream_executor import HOUSEKEEPING_PERIOD, StreamExecutor

if TYPE_CHECKING:
    from typing_extensions import Self

# What a start fails with because of what the user gave. rclpy has no root for its errors: unfit QoS,
# unknown arguments and whatever rcl rejects come as RuntimeError.
_START_ERRORS = (HodynError, OSError, RuntimeError, ParameterException, NameValidationException)

_LOOK_WHILE_STOPPING = 0.01  # [s] from one look at `stopped` to the next
_STDOUT, _STDERR = 1, 2
_ECHO = 1.0  # [s] after a signal in which another one is taken for the same
_END_WITHIN = 30.0  # [s] of a node without `end_within`
_NO_CLOCK = 3.0  # [s] after which a clock that has not come is missed


@runtime_checkable
class StopsFirst(Protocol):
    """A node that has something to do between the signal and its end, such as to bring a robot to rest.

    `run` calls `stopping` at SIGINT or SIGTERM, and goes on serving all callbacks of the node,
    streams and timers included, with its context valid and its topics open, until `stopped` is true or
    `stop_within` seconds have passed. `ros2 launch` sends SIGTERM five seconds after its SIGINT, and SIGKILL
    after another five, so `stop_within` is to be shorter than five.
    """

    stopped: bool  # whether all is done; looked at a hundred times a second
    stop_within: float  # [s]

    def stopping(self) -> bool:
        """Begin to stop; False where there is nothing to do, and the node ends at once."""


class _Signals:
    """Counts SIGINT and SIGTERM from now on, instead of ending the process.

    `ros2 launch` passes on the SIGINT that the terminal has sent to everybody, and both mean the same; so
    what follows within _ECHO seconds is not counted. From the second one on the system's own action is back,
    so that a third one ends a process that hangs.
    """

    def __init__(self) -> None:
        self.count = 0
        self._at = float("-inf")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # the terminal is gone; nohup ignores it
            signal.signal(signal.SIGHUP, self._take)

    def _take(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if now - self._at < _ECHO:
            return
        self._at = now
        self.count += 1
        if self.count > 1:
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, signal.SIG_DFL)


def run(
    make_node: Callable[[], Node | Sequence[Node]],
    args: Sequence[str] | None = None,
    make_executor: Callable[[], Executor] = StreamExecutor,
) -> int:
    """Build a node, or several, spin until SIGINT or SIGTERM, and return the exit code.

    0 after SIGINT, SIGTERM, SIGHUP or a shutdown of its context; 1, with one line on stderr and no traceback,
    when the node cannot be built: HodynError, OSError, or an error of rclpy. `args` default to those of the
    process, which ignores SIGINT afterwards.

    A node goes on where the middleware fails in a callback, see `MiddlewareFailures`. No signal interrupts a
    callback, and no log that nobody reads holds the node up, see `UnheldOutput`. A node that `StopsFirst`
    goes on after the signal; a second signal, more than a second after the first, ends it at once. Where the
    middleware holds the end up, as threads of its own may wait for each other, the process ends with 1 and
    says where it stood: `end_within` seconds after the stop, which a node may have as an attribute, by
    default 30.
    """
    signals = _Signals()
    end_with_parent()
    print_figures_in_one_line()
    _ensure_log_folder()
    output = UnheldOutput(_STDOUT if os.environ.get("RCUTILS_LOGGING_USE_STDOUT") == "1" else _STDERR)
    nodes: Sequence[Node] = ()
    started = False
    try:
        try:
            # at a signal a thread of rclpy would shut the context down, while this one builds on it
            no = SignalHandlerOptions.NO
            rclpy.init(args=list(sys.argv if args is None else args), signal_handler_options=no)
            started = True
            made = make_node()
            nodes = [made] if isinstance(made, Node) else made
            between_samples = [apply_realtime_settings(node) for node in nodes][-1]
        except _START_ERRORS as error:
            # where the context has been shut down meanwhile, whatever needs it has to fail
            return 0 if signals.count or (started and not rclpy.ok()) else _fail(error)
        # What was made at the start stays. Searching all of it for garbage again and again would cost a pause
        # of tens of milliseconds each time, and a second at the end.
        gc.collect()
        gc.freeze()
        if signals.count or not rclpy.ok():
            return 0
        executor = make_executor()
        for node in nodes:
            warn_of_unknown_parameters(node)
            _miss_clock(node)
            executor.add_node(node)
        failures = MiddlewareFailures(*nodes)
        while rclpy.ok() and not signals.count:
            with failures:
                executor.spin_once(HOUSEKEEPING_PERIOD)  # returns right behind a sample
            between_samples()
        if rclpy.ok():
            _stop(nodes, executor, signals, failures, output.where)
    except (ExternalShutdownException, ROSInterruptException):
        return 0
    except Exception:
        if rclpy.ok():
            raise
        return 0  # as above
    finally:
        _end_within(nodes, output.where)
        # ros2 launch passes on the SIGINT that the terminal has sent to everybody; once is enough, to the
        # very end of the process: that of Python takes longer than that of the node.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            for node in nodes:
                node.destroy_node()  # which may end the process, with a line that says why
        finally:
            rclpy.try_shutdown()
            output.close()
        if args is not None:  # else the process ends as well, which takes destructors of the middleware
            faulthandler.cancel_dump_traceback_later()
    return 0


class PrivateNode:
    """A node with a context of its own, for a process that listens alone; use it in a `with` block."""

    def __init__(self, name: str, namespace: str = "") -> None:
        self._context = Context()
        rclpy.init(context=self._context)
        self._node = rclpy.create_node(
            f"{name}_{os.getpid()}", namespace=namespace or None, context=self._context
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()
        self._context.try_shutdown()


def _miss_clock(node: Node) -> None:
    """Let a node whose time is simulated say that it stands at zero, so that its timers wait."""
    clock = node.get_clock()
    if not clock.ros_time_is_active:
        return

    def look() -> None:
        timer.cancel()
        if clock.ros_time_is_active and clock.now().nanoseconds == 0:
            node.get_logger().warning(
                "use_sim_time is true, but nothing has come on /clock, so time stands still and timers of "
                "this node wait; start a simulator or `ros2 bag play --clock`, or set it to false"
            )

    timer = steady_timer(node, _NO_CLOCK, look)


def _stop(
    nodes: Sequence[Node], executor: Executor, signals: _Signals, failures: MiddlewareFailures, log: int
) -> None:
    """Serve nodes that stop first until they have stopped, their time is over, or another signal comes."""
    stopping = [node for node in nodes if isinstance(node, StopsFirst) and node.stopping()]
    within = max((node.stop_within for node in stopping), default=0.0)
    end = time.monotonic() + within
    _end_within(nodes, log, within)
    while rclpy.ok() and signals.count < 2 and time.monotonic() < end:
        if all(node.stopped for node in stopping):
            return
        with failures:
            executor.spin_once(_LOOK_WHILE_STOPPING)


def _end_within(nodes: Sequence[Node], log: int, more: float = 0.0) -> None:
    """End the process then, by a thread that needs no interpreter and no signal; `log`: a descriptor."""
    seconds = more + max((getattr(node, "end_within", _END_WITHIN) for node in nodes), default=_END_WITHIN)
    if seconds < float("inf"):
        faulthandler.dump_traceback_later(seconds, exit=True, file=log)


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


_ROOM = 1 << 20  # [bytes] that may wait for whoever reads slowly
_PIECE = 1 << 16
_PAUSE = 0.01  # [s] between two pieces, so that a flood of lines costs little
_LAST = 1.0  # [s] that the last lines may take at the end


class UnheldOutput:
    """Lets a descriptor of this process, such as 2, take what is written at once, until `close`.

    A pipe that nobody reads is full after 64 kB, and whoever writes to it then waits: for a launch that was
    stopped, a terminal after Ctrl+S, a program that does not look. The middleware writes a line for each
    message that is none, and a node that commands a robot would stop there, in the middle of a motion.

    A thread passes it on. What finds no room, as nobody reads, is lost.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.where = descriptor  # for who cannot wait for the thread, which needs the interpreter
        self._thread: Thread | None = None
        with suppress(OSError):  # it may be closed
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(descriptor)):
                return  # nobody waits for a file, nor for /dev/null
            self.where = os.dup(descriptor)
            self._source, writer = os.pipe()
            os.set_blocking(writer, False)
            with suppress(OSError, AttributeError):  # the user may not, or this is no Linux; 64 kB do as well
                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _ROOM)
            os.dup2(writer, descriptor)
            os.close(writer)
            self._thread = Thread(target=self._pass_on, name="output", daemon=True)
            self._thread.start()

    def _pass_on(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        while piece := os.read(self._source, _PIECE):
            with suppress(OSError):  # nobody can read any more
                while piece:
                    piece = piece[os.write(self.where, piece) :]
            time.sleep(_PAUSE)

    def close(self) -> None:
        """Write to the descriptor itself again, if what was written is passed on soon; else to nobody."""
        if self._thread is not None:
            nobody = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nobody, self._descriptor)  # which closes the only way into the pipe
            os.close(nobody)
            self._thread.join(_LAST)
            if not self._thread.is_alive():
                os.dup2(self.where, self._descriptor)
