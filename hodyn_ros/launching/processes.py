"""Processes that launch files start, and arguments of these files."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isinf
from pathlib import Path
from typing import Any

from hodyn_ros.errors import InputError
from hodyn_ros.share import PACKAGE

# The values of all arguments of a launch file, by name, each of the type of its default.
Values = Mapping[str, Any]

# What a process ends with that cannot start with what it was given; starting it again would not help.
CANNOT_START = 1

_SWITCH = {"true": True, "false": False}


@dataclass(frozen=True)
class Argument:
    """An argument of a launch file, given as `name:=value`; its value has the type of `default`.

    `choices` are the only values that are taken; a number lies between `low` and `high`.
    """

    name: str
    default: str | float | bool
    meaning: str
    choices: tuple[str, ...] = ()
    low: float = -inf
    high: float = inf

    @property
    def default_text(self) -> str:
        """The default as it would be given."""
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)

    @property
    def offered(self) -> tuple[str, ...]:
        """The only values that are taken; empty where there are others."""
        return tuple(_SWITCH) if isinstance(self.default, bool) else self.choices

    @property
    def description(self) -> str:
        """The meaning, with the range of a number."""
        return self.meaning if isinf(self.low) else f"{self.meaning} From {self.low:g} to {self.high:g}."

    def value(self, text: str) -> str | float | bool:
        """Return the value that a text stands for. Raises InputError for one that is not taken."""
        if self.offered and text not in self.offered:
            raise InputError(f"argument {self.name!r} is {text!r}; give one of {', '.join(self.offered)}")
        if isinstance(self.default, bool):
            return _SWITCH[text]
        return text if isinstance(self.default, str) else self._number(type(self.default), text)

    def _number(self, kind: type[int] | type[float], text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = float("nan")
        if not self.low <= number <= self.high:  # nan fits nowhere
            wanted = "a whole number" if kind is int else "a number"
            raise InputError(
                f"argument {self.name!r} is {text!r}; give {wanted} from {self.low:g} to {self.high:g}"
            )
        return number


@dataclass(frozen=True)
class Node:
    """A process that is a node. All end when one ends that is `required`, unless it is to `respawn`.

    `namespace` is absolute; with an empty `name` the node has the one that it gives itself. `parameters` are
    files and values, of which later ones count more.
    """

    executable: str
    namespace: str = "/"
    parameters: tuple[Path | Mapping[str, Any], ...] = ()
    package: str = PACKAGE
    name: str = ""
    remappings: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    log_level: str = ""
    required: bool = True
    respawn: bool = False


@dataclass(frozen=True)
class Command:
    """A process that is not a node; the others go on when it ends."""

    name: str
    command: tuple[str, ...]
    required: bool = False
    respawn: bool = False


Process = Node | Command


def refuse_twice(processes: Iterable[Process], started: Callable[[str], bool]) -> None:
    """Raise InputError for two nodes of one full name, or one that has been `started` before.

    ROS starts both: two robots in one namespace get each other's commands.
    """
    seen: set[str] = set()
    for each in processes:
        if not isinstance(each, Node) or not each.name:
            continue
        name = f"{each.namespace.rstrip('/')}/{each.name}"
        if name in seen or started(name):
            raise InputError(f"node {name!r} is started twice; give each robot a namespace of its own")
        seen.add(name)


def ending(process: str, code: int) -> str:
    """Say how a process has ended, from its exit code or, negative, the signal that has ended it."""
    if code >= 0:
        return f"{process} has ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown to this system"
    return f"{process} has been ended by signal {-code} ({name})"


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
