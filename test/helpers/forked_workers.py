"""Workers of pytest-xdist as copies of one process that has imported all tests.

Before its first test a worker needs 15 s of processor time, of which 13 import what all workers import. One
process, the mother, imports that and forks. To pytest-xdist a worker is still the Python that it starts: this
file, which hands its standard streams to the mother and ends with the worker.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ASKED_WITHIN = 60.0  # [s] after the imports; a run that was interrupted asks no more


def fork_from_one(config: Any, specs: list[Any]) -> None:
    """Start the mother of these workers; `specs` say how execnet starts each (`pytest_xdist_setupnodes`)."""
    place = Path(tempfile.mkdtemp(prefix="hodyn-workers-"), "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(len(specs))
        own = [str(listener.fileno()), str(len(specs)), os.pathsep.join(sys.path)]
        arguments = [str(argument) for argument in config.invocation_params.args]
        subprocess.Popen(
            [sys.executable, __file__, *own, *arguments],
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    for spec in specs:
        spec.python = shlex.join([sys.executable, "-S", "-E", __file__, str(place)])


# --- the process that pytest-xdist takes for its worker


def _hand_over(place: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the worker says what there is to say
    with socket.socket(socket.AF_UNIX) as mother:
        mother.connect(place)
        socket.send_fds(mother, [b"worker"], [0, 1, 2])
        for stream in (0, 1):  # or their other ends would not see the worker's end
            os.close(stream)
        mother.recv(1)


# --- the mother


def _import_tests(arguments: list[str]) -> None:
    """Collect the tests as each worker will, which leaves their modules; what is wrong the workers say."""
    import gc

    import pytest

    pytest.main([*arguments, "-n0", "--collect-only", "-qq"])
    gc.collect()
    gc.freeze()


def _fork(listener: socket.socket, count: int) -> bool:
    """Fork a worker for each that asks; return whether this is one."""
    listener.settimeout(ASKED_WITHIN)
    for _ in range(count):
        asks, _ = listener.accept()
        _, streams, _, _ = socket.recv_fds(asks, 16, 3)
        if streams and not os.fork():
            asks.set_inheritable(False)
            asks.detach()  # closed by the end of this process, which ends the one that asked
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return True
        asks.close()
        for stream in streams:
            os.close(stream)
    return False


def _work() -> None:
    """Be the Python that execnet has asked for: `python -u -c "exec(eval(sys.stdin.readline()))"`."""
    sys.argv = ["-c"]
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    exec(eval(sys.stdin.readline()), {"__name__": "__main__", "__builtins__": __builtins__})


if __name__ == "__main__":
    if Path(sys.argv[1]).is_absolute():
        _hand_over(sys.argv[1])
    else:
        descriptor, count, path, *arguments = sys.argv[1:]
        sys.path[:] = path.split(os.pathsep)
        with socket.socket(fileno=int(descriptor)) as listener:
            _import_tests(arguments)
            place = Path(listener.getsockname())
            worker = _fork(listener, int(count))
        if not worker:
            shutil.rmtree(place.parent)
        else:
            from warm_python import end

            code = 1
            try:
                _work()
                code = 0
            finally:
                end(code)
