"""Which ROS packages are installed, and where their executables are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from hodyn_ros.errors import InputError


def installed(package: str) -> bool:
    """Return whether a ROS package is installed, in a prefix of AMENT_PREFIX_PATH or that of this Python."""
    return next(_prefixes(package), None) is not None


def executable(package: str, name: str) -> Path:
    """Return the path of an executable of a ROS package. Raises InputError where there is none."""
    for prefix in _prefixes(package):
        path = prefix / "lib" / package / name
        if os.access(path, os.X_OK):
            return path
    raise InputError(
        f"there is no executable {name!r} of a package {package!r}; install the package, and source the "
        "setup.bash of the workspace where it is"
    )


def _prefixes(package: str) -> Iterator[Path]:
    """Yield the prefixes in which a package is, by the index of packages that ament keeps."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    for prefix in dict.fromkeys([*filter(None, prefixes), sys.prefix]):
        if (Path(prefix) / "share/ament_index/resource_index/packages" / package).exists():
            yield Path(prefix)
