"""Say what this machine lacks before anything is installed; `make` runs it with the interpreter of the user.

Exit code 0 when nothing is missing, 1 after one line for each thing that is, with its mend. Standard library
only.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from pathlib import Path

OLDEST, NEWEST = (3, 10), (3, 13)
TOO_OLD_ROS = ("foxy", "galactic", "humble", "iron")


def missing(ros: bool) -> list[str]:
    """Name what is missing, one line each; `ros`: a sourced ROS 2 is used instead of PyPI's wheels."""
    lines = []
    version = sys.version_info[:2]
    if not ros and not OLDEST <= version <= NEWEST:
        lines.append(
            f"Python {version[0]}.{version[1]} at {sys.executable}: ROS 2 from PyPI exists for 3.10 to 3.13; "
            "name another interpreter, e.g. `make test PYTHON=python3.12`"
        )
    if not ros and (sys.platform, platform.machine()) != ("linux", "x86_64"):
        lines.append(
            f"{sys.platform} on {platform.machine()}: ROS 2 from PyPI is for Linux on x86_64 only; install "
            "ROS 2 (Jazzy or newer) and source its setup.bash first"
        )
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        lines.append("Python's venv module: on Debian and Ubuntu, `apt install python3-venv`")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        lines.append(f"Python's C headers ({header}): on Debian and Ubuntu, `apt install python3-dev`")
    compilers = [os.environ["CXX"].split()[0]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    if not any(shutil.which(compiler) for compiler in compilers):
        lines.append(f"a C++ compiler ({' or '.join(compilers)}): on Debian and Ubuntu, `apt install g++`")
    if ros and os.environ.get("ROS_DISTRO") in TOO_OLD_ROS:
        lines.append(
            f"a newer ROS 2: {os.environ['ROS_DISTRO']} is sourced, Jazzy is the oldest that works; in a "
            "shell without it, `make` takes ROS 2 from PyPI"
        )
    return lines


def main() -> int:
    """Print what is missing; `--ros` as an argument says that a sourced ROS 2 is used."""
    lines = missing(ros="--ros" in sys.argv[1:])
    for line in lines:
        print(f"missing: {line}", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
