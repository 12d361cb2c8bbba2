"""A process that ends with the one that has started it, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

# Environment variable with the process id of whoever is to be outlived by nobody.
PARENT = "HODYN_PARENT"

_PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with_parent() -> None:
    """Have Linux send this process SIGTERM when its parent ends, where the environment names that parent.

    `ros2 launch` leaves its nodes running when it ends of SIGTERM or SIGKILL.
    """
    parent = os.environ.pop(PARENT, "")
    if not parent or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if _has_ended(parent):  # before it could be watched
        os.kill(os.getpid(), signal.SIGTERM)


def _has_ended(process: str) -> bool:
    try:
        stat = Path("/proc", process, "stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"  # dead, and its own parent has not asked yet
