"""Python programs as processes of their own, without the second that their imports take.

The first call starts a helper that imports what nodes and commands need, one for all workers of a run. To
start a program it forks, and its copy becomes the program: a process with its own pid, session, environment,
working folder, standard streams and exit code. At its end Python's exit handlers run, but not the destructors
of libraries: that of LTTng, which rclpy loads, asks for a thread that a copy does not have. Whatever concerns
the very start of a process, or its very end, is tested with those that start cold.

The nodes that a command of `hodyn` starts, as its `run` and `demo` do, are copies of that command in the
same way; what nodes start themselves is cold.
"""

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
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ENDS_WITHIN = 60.0  # [s] for a program that ends by itself
_LINGERS = 1.0  # [s] without a worker, of the helper

# What parts of this package import late, and most programs need.
LIBRARIES = (
    *("scipy.interpolate", "jsonschema", "urdf_parser_py.urdf", "matplotlib.figure"),
    *("matplotlib.backends.backend_agg", "rosbags.typesys.stores.ros2_jazzy", "mcap.writer"),
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
    """Return a connection to the helper of this run, which is started where there is none."""
    name = f"\0hodyn_ros-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    atexit.register(ours.close)  # while this process lives, so does the helper
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        try:
            listener.bind(name)
        except OSError:  # another worker has started it
            for _ in range(100):
                with suppress(ConnectionRefusedError):  # it is just about to listen
                    ours.connect(name)
                    return ours
                time.sleep(0.01)
            raise
        listener.listen()
        subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        ours.connect(name)
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
    programs = []
    for module in pkgutil.walk_packages(hodyn_ros.__path__[:1], "hodyn_ros."):
        try:
            program = hasattr(importlib.import_module(module.name), "main")
        except ImportError as error:
            if str(error.name).startswith("hodyn_ros") and error.name != module.name:
                raise
            continue  # it is for what is not installed here, such as ROS, or a link to a file that has gone
        if program:
            programs.append(module.name)
    inspect.getmodule(inspect.currentframe())  # rclpy asks with its first line of log, and it takes long
    for name in programs:  # what becomes __main__ must not be there already
        del sys.modules[name]
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
        from rclpy.serialization import serialize_message
        from rclpy.type_support import check_for_type_support
    except ImportError:
        return
    for name, module in list(sys.modules.items()):
        if name.split(".")[1:2] in (["msg"], ["srv"], ["action"]):
            for kind in list(vars(module).values()):
                if not hasattr(type(kind), "_TYPE_SUPPORT"):  # which the metaclass of an interface holds
                    continue
                check_for_type_support(kind)  # with the parser of messages
                with suppress(NotImplementedError):  # of a service or an action, which are no messages
                    serialize_message(kind())  # with the libraries of the middleware


def _serve(listener: socket.socket) -> dict[str, Any] | None:
    """Return in each copy the program that it is to become, and None here when all workers have gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    workers: list[socket.socket] = []
    while True:
        ready = select.select([listener, *workers], [], [], None if workers else _LINGERS)[0]
        if not ready:
            return None
        if listener in ready:
            workers.append(listener.accept()[0])
            continue
        message, passed, _, _ = socket.recv_fds(ready[0], 1 << 20, 4)
        if not message:
            workers.remove(ready[0])
            ready[0].close()
            continue
        if os.fork():
            for descriptor in passed:
                os.close(descriptor)
            continue
        # This copy only tells how the program, its child, has ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (listener, *workers):
            each.close()
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
        if answers in select.select([os.pidfd_open(program), answers], [], [])[0]:
            os.kill(program, signal.SIGTERM)  # the worker that asked for it was killed
        code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        with suppress(BrokenPipeError):
            os.write(answers, b"%d" % code)
        os._exit(0)


def _become(environment: Mapping[str, str], folder: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr


def _execute(kind: str, *rest: str) -> int:
    """Run a program as the interpreter does; return its exit code."""
    try:
        if kind == "-m":
            sys.argv, sys.path[0] = list(rest), str(Path.cwd())
            # or all had the name of the helper
            Path("/proc/self/comm").write_text(rest[0].rpartition(".")[2])
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


def _starts_nodes(arguments: Sequence[str]) -> bool:
    return any("hodyn_ros.cli.app" in argument for argument in arguments)


def _start_copies() -> None:
    """Let `subprocess` start Python as a copy of this process, by the function that forks and executes."""
    own: Any = subprocess
    newer = hasattr(own, "_fork_exec")  # since Python 3.11
    cold = own._fork_exec if newer else own._posixsubprocess.fork_exec

    def use(function: Callable[..., int]) -> None:
        if newer:
            own._fork_exec = function
        else:
            own._posixsubprocess = SimpleNamespace(fork_exec=function)

    def start(command: Sequence[str], *how: Any) -> int:
        if command[0] != sys.executable or len(how[2]) > 1:  # descriptors that are to stay open
            return int(cold(command, *how))
        program = os.fork()
        if not program:
            use(cold)
            try:
                _copy(command[1:], how[4], how[3] or str(Path.cwd()), (how[5], how[8], how[10]), how[14])
            finally:
                os._exit(1)
        return program

    use(start)


def _copy(
    arguments: Sequence[str],
    environment: Sequence[bytes] | None,
    folder: str,
    streams: tuple[int, int, int],
    new_session: bool,
) -> None:
    """Become another program, in a copy of one that goes on."""
    for number, descriptor in enumerate(streams):
        if descriptor not in (-1, number):
            os.dup2(descriptor, number)
    # nothing else is open, and no number free that an object of before may close yet
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if descriptor not in (0, 1, 2, nothing):
            os.dup2(nothing, descriptor, inheritable=False)
    signal.set_wakeup_fd(-1)
    atexit._clear()
    if new_session:
        os.setsid()
    pairs = [os.fsdecode(each).split("=", 1) for each in environment or ()]
    _become(dict(pairs) if environment is not None else dict(os.environ), folder)
    # a node asks for its scheduling first, and executes itself then
    os.execv = lambda _, command: _end(_execute(*command[1:]))  # type: ignore[assignment]
    _end(_execute(*arguments))


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
        os.setsid()
        _become(program["environment"], program["folder"])
        if _starts_nodes(program["arguments"]):
            _start_copies()
        _end(_execute(*program["arguments"]))
