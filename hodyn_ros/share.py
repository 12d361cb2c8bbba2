"""Files that are shipped with the package: robot configurations, launch files and message definitions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from os import PathLike
from pathlib import Path

from hodyn_ros.errors import InputError

PACKAGE = "hodyn_ros"

_ALIKE = 0.8  # of names, one of which is meant by the other: panda.yml and panda.yaml


def find(kind: str, name: str | PathLike[str]) -> Path:
    """Return the path of a shipped file, or `name` itself where that is an existing file.

    `kind` is the folder ("config", "launch" or "msg"), `name` a file in it ("panda.yaml") or any path.
    Searched in this order: the ament prefixes (AMENT_PREFIX_PATH), the prefix of this Python, the source tree
    around this package. Raises InputError, naming the files there are, when nothing is found.
    """
    asked = Path(name)
    if asked.is_file():
        return asked
    for folder in _folders(kind):
        path = folder / asked
        if path.is_file():
            return path
    shipped = available(kind)
    beside = sorted(str(asked.parent / path.name) for path in asked.parent.glob("*") if path.is_file())
    near = get_close_matches(str(asked), [*beside, *shipped], n=1, cutoff=_ALIKE)
    hint = f"did you mean '{near[0]}'?" if near else f"it ships: {', '.join(shipped) or 'none'}"
    raise InputError(f"no file '{name}', and the package ships none of that name in {kind}/; {hint}")


def available(kind: str) -> list[str]:
    """Return the sorted names of the shipped files of a kind ("config", "launch" or "msg")."""
    files = (path for folder in _folders(kind) for path in folder.iterdir() if path.is_file())
    return sorted({path.name for path in files if path.suffix != ".md"})


def _folders(kind: str) -> Iterator[Path]:
    """Yield the folders of a kind that exist, the first in the order of search first."""
    prefixes = [
        Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix
    ]
    shares = [prefix / "share" / PACKAGE for prefix in [*prefixes, Path(sys.prefix)]]
    for share in [*shares, Path(__file__).resolve().parent.parent]:
        folder = share / kind
        if folder.is_dir():
            yield folder
