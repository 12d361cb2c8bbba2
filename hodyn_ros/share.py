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
    Files of the code that is imported come first: those of the source tree around this package, or of the
    prefix in which it is installed. Then the ament prefixes (AMENT_PREFIX_PATH), and the prefix of this
    Python; definitions of messages from these first, as compiled messages are there. Raises InputError,
    naming the files there are, when nothing is found; also for the text of a file in place of its name, as
    xacro gives it to launch files.
    """
    if (text := str(name)).lstrip().startswith("<"):
        raise InputError(
            f"the name of a file is wanted, and found is a text, {text[:30]!r}...; write it to a file, or "
            "publish it on robot_description for dynamics_node"
        )
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
    prefixes = [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    installed, own = [Path(prefix) / "share" / PACKAGE for prefix in prefixes], list(_own())
    for share in [*installed, *own] if kind == "msg" else [*own, *installed]:
        folder = share / kind
        if folder.is_dir():
            yield folder


def _own() -> Iterator[Path]:
    """Yield what belongs to this code: its source tree, also behind links, or the prefixes that it is in."""
    root, *above = Path(__file__).resolve().parents[1:]
    if (root / "package.xml").is_file():
        yield root
    else:  # PREFIX/lib/python3.x/site-packages, or its like
        yield from (prefix / "share" / PACKAGE for prefix in (root, *above))
