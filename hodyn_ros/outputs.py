"""Files and folders that come into being complete, or not at all."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hodyn_ros.errors import InputError

STDOUT = Path("/dev/stdout")
_LONGEST_NAME = 60  # characters, of four bytes each at most: systems of files take 255 bytes


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """Yield where to write a file or folder, which becomes `path` when the block ends without an exception.

    It has the same name in a hidden folder beside `path`, and nothing is left of it after an exception. A
    file that was there is replaced, and who may read or write it stays; OSError for one that is protected
    from writing, and for a folder. Links stay, and lead to what is new. A device, a pipe and the
    standard output are written to at the end.
    """
    if path.exists() and (path == STDOUT or not (path.is_file() or path.is_dir())):
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder, path.name)
            yield part
            own = path == STDOUT  # opened anew, a shell's file would be written over
            with open(1 if own else path, "ab", closefd=not own) as there:
                there.write(part.read_bytes())
        return
    path = path.resolve()
    if path.is_file():
        path.open("ab").close()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        part = Path(folder, path.name)
        yield part
        if path.is_file():
            shutil.copymode(path, part)
        part.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a file as UTF-8 with the line ends of `text`, completely or not at all."""
    with complete(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def complete_and_new(path: Path) -> Iterator[Path]:
    """Yield what `complete` does, of what is not there yet; InputError where it is."""
    require_new(path)
    with complete(path) as part:
        yield part


def require_writable(path: Path) -> None:
    """Raise InputError or OSError where a file could not be written, before there is anything to write."""
    if path.is_dir():
        raise InputError(f"'{path}' is a folder; name a file in it")
    if path.is_file():
        path.open("ab").close()
    if not path.exists() or path.is_file():
        path = path.resolve()
        there = next(parent for parent in path.parents if parent.exists())
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=there):
            pass


def require_new(path: Path) -> None:
    """Raise InputError where there is something already."""
    if path.exists():
        raise InputError(f"'{path}' exists already; choose another name, or remove it")


def checked_file_name(name: str) -> str:
    """Return a name that a file in any folder may have; InputError for one that leads elsewhere.

    >>> checked_file_name("left arm")
    'left arm'
    """
    if file_name_from(name) != name:
        raise InputError(
            f"the name {name!r} cannot be that of a file; use at most {_LONGEST_NAME} letters, digits, "
            "blanks and any of _ - + . within, and name folders in --out"
        )
    return name


def file_name_from(text: str) -> str:
    """Make such a name from what a robot is called in a file, which may be anything.

    >>> file_name_from("left arm"), file_name_from("../../etc/arm"), file_name_from("..")
    ('left arm', 'etc_arm', 'robot')
    """
    return re.sub(r"[^\w .+-]+", "_", text)[:_LONGEST_NAME].strip(" ._-") or "robot"
