"""Python programs as processes of their own, without the second that their imports take.

The first call starts a helper that imports what nodes and commands need. To start a program it forks, and
its copy becomes the program: a process with its own pid, session, environment, working folder, standard
streams and exit code. At its end Python's exit handlers run, but not the destructors of libraries: that of
LTTng, which rclpy loads, asks for a thread that a copy does not have. Whatever concerns the very start of a
process, or its very end, is tested with those that start cold.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ENDS_WITHIN = 60.0  # [s] for a program that ends by itself

# What parts of this package import late, and most programs need.
LIBRARIES = (
    *("scipy.interpolate", "jsonschema", "urdf_parser_py.urdf", "matplotlib.figure"),
    *("matplotlib.backends.backend_agg", "rosbags.typesys", "mcap.writer"),
)


class WarmProcess:
    """A program that the helper has started, as `subprocess.Popen` has it.

    `arguments` are those of the interpreter: `-m MODULE ...`, `-c CODE ...` or `FILE ...`. Streams are file
    descriptors, which stay open here.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: tuple[int, int, int],
        folder: str | Path | None = None,
    ) -> None:
        self._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.returncode: int | None = None
        request = {
            "arguments": [str(argument) for argument in arguments],
            "environment": dict(environment),
            "folder": str(folder or Path.cwd()),
        }
        with theirs:
            socket.send_fds(_helper(), [json.dumps(request).encode()], [theirs.fileno(), *streams])
        self.pid = self._read()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.returncode is None and select.select([self._answers], [], [], 0.0)[0]:
            self.returncode = self._read()
            self._answers.close()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return the exit code; raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("python", timeout)
            self.poll()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to a program that runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _read(self) -> int:
        number = self._answers.recv(16)  # the pid at first, the exit code at the end
        if not number:
            raise RuntimeError("the helper that starts Python programs has ended; its traceback is on stderr")
        return int(number)


def run(
    *arguments: str | Path,
    environment: Mapping[str, str],
    folder: str | Path | None = None,
    timeout: float = ENDS_WITHIN,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, as `subprocess.run` does with captured text."""
    command = [str(argument) for argument in arguments]
    with (
        Path(os.devnull).open() as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        streams = nothing.fileno(), out.fileno(), err.fileno()
        process = WarmProcess(command, environment, streams, folder)
        try:
            code = process.wait(timeout)
        finally:
            process.send_signal(signal.SIGKILL)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())


@cache
def _helper() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours


# --- in the helper


def _prepare() -> None:
    import gc
    import importlib
    import inspect
    import pkgutil

    import hodyn_ros

    for library in LIBRARIES:
        importlib.import_module(library)
    for module in pkgutil.walk_packages(hodyn_ros.__path__[:1], "hodyn_ros."):
        try:
            program = hasattr(importlib.import_module(module.name), "main")
        except ImportError as error:
            if str(error.name).startswith("hodyn_ros") and error.name != module.name:
                raise
            continue  # it is for what is not installed here, such as ROS, or a link to a file that has gone
        if program:  # what becomes __main__ must not be there already
            del sys.modules[module.name]
    inspect.getmodule(inspect.currentframe())  # rclpy asks with its first line of log, and it takes long
    _read_and_note()
    gc.collect()
    gc.freeze()


def _read_and_note() -> None:
    """Let this process know what each program finds out first, and finds to be the same."""
    from hodyn_ros import Robot, share
    from hodyn_ros.codegen.keys import key_of

    Robot.load(share.find("config", "panda.yaml"))  # the schema of robot files
    key_of(key_of)  # the digest of all sources
    try:
        from rcl_interfaces.msg import ParameterEvent
        from rclpy.type_support import check_for_type_support
    except ImportError:
        return
    check_for_type_support(ParameterEvent)  # with the parser of messages


def _serve(requests: socket.socket) -> dict[str, Any] | None:
    """Return in each copy the program that it is to become, and None here, in the end."""
    while True:
        message, passed, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not message:
            return None
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork():
            for descriptor in passed:
                os.close(descriptor)
            continue
        # This copy only tells how the program, its child, has ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests.close()
        program = os.fork()
        answers, *streams = passed
        if not program:
            os.close(answers)
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
                os.close(descriptor)
            return dict(json.loads(message))
        for descriptor in (0, 1, 2, *streams):
            os.close(descriptor)
        os.write(answers, b"%d" % program)
        os.write(answers, b"%d" % os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]))
        os._exit(0)


def _become(environment: dict[str, str], folder: str) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = os.fdopen(0)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr


def _execute(kind: str, *rest: str) -> int:
    """Run a program as the interpreter does; return its exit code."""
    try:
        if kind == "-m":
            sys.argv, sys.path[0] = list(rest), str(Path.cwd())
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif kind == "-c":
            sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        else:
            sys.argv, sys.path[0] = [kind, *rest], str(Path(kind).parent)
            runpy.run_path(kind, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end(code: int) -> None:
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own:
        _prepare()
        program = _serve(own)
    if program:
        _become(program["environment"], program["folder"])
        _end(_execute(*program["arguments"]))
