"""What has been compiled is kept: on disk between processes, and by what it was asked for in memory."""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from hodyn_ros.errors import InputError

_MAGIC = b"hodyn_ros object 2\n"
_HEAD_SIZE = len(_MAGIC) + hashlib.sha256().digest_size
_MOST_ENTRIES = 10_000  # half of them machine code of some 16 kB, where nobody says otherwise
_LOOK_EVERY = 50  # entries that a process writes, as a look through all takes a while
_written = itertools.count()

KEPT = 100  # of a kind in memory; a robot that walks meets many sets of contacts

K = TypeVar("K")
V = TypeVar("V")


class ObjectCache:
    """A folder of compiled kernels, under keys made of everything that they depend on.

    An entry is named by the hash of its key and carries the hash of its name and content. One that is
    damaged, that is no regular file, that belongs to another key, or that another user could have written,
    counts as absent and is replaced; writing is atomic. A folder that cannot be used costs compile time,
    nothing else. Of more than `most` entries those go that have not been asked for the longest.
    """

    def __init__(self, folder: Path, most: int = _MOST_ENTRIES) -> None:
        self.folder, self.most = folder, most

    @classmethod
    def default(cls) -> ObjectCache | None:
        """Return the user's cache: $HODYN_CACHE_DIR (empty: none), else below $XDG_CACHE_HOME or ~/.cache.

        $HODYN_CACHE_ENTRIES says how much it keeps. A user without a home, as in some containers, has none.
        Raises InputError where that is no number.
        """
        chosen = os.environ.get("HODYN_CACHE_DIR")
        asked = os.environ.get("HODYN_CACHE_ENTRIES") or str(_MOST_ENTRIES)
        if not asked.isdecimal():
            raise InputError(f"HODYN_CACHE_ENTRIES must be a whole number of entries, found {asked!r}")
        most = int(asked)
        if chosen is not None:
            return cls(Path(chosen), most) if chosen else None
        shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if not shared.is_absolute():  # to be ignored then, by the XDG specification
            try:
                shared = Path.home() / ".cache"
            except RuntimeError:
                return None
        return cls(shared / "hodyn_ros", most)

    def get(self, key: str) -> bytes | None:
        """Return the machine code stored under a key, or None."""
        path = self._path(key)
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                result = os.fstat(file.fileno())
                if not (
                    stat.S_ISREG(result.st_mode) and _only_ours(result) and _only_ours(self.folder.stat())
                ):
                    return None
                content = file.read()
        except OSError:
            return None
        if content[:_HEAD_SIZE] != self._head(path, content[_HEAD_SIZE:]):
            return None
        with suppress(OSError):  # of a read-only folder
            os.utime(path)
        return content[_HEAD_SIZE:]

    def put(self, key: str, code: bytes) -> None:
        """Store machine code under a key."""
        path = self._path(key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            temporary = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(self._head(path, code) + code)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            if next(_written) % _LOOK_EVERY == 0:
                self._forget_oldest()
        except OSError:
            return  # a read-only home is no reason to fail; the next process compiles again

    def _forget_oldest(self) -> None:
        """Keep the folder from growing without end, with what killed processes left behind."""
        files = [file for file in self.folder.iterdir() if file.suffix in (".o", ".tmp")]
        if len(files) <= self.most:  # without a look at each of them
            return
        for file in sorted(files, key=lambda file: file.stat().st_mtime)[: -self.most or None]:
            file.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()}.o"

    @staticmethod
    def _head(path: Path, code: bytes) -> bytes:
        return _MAGIC + hashlib.sha256(path.name.encode() + code).digest()


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; also a pipe without a writer, for which one would wait."""
    return os.open(path, flags | os.O_NONBLOCK)


def _only_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


class Kept(dict[K, V]):
    """A dictionary of `KEPT` entries at most: the oldest gives way to a new one.

    Values follow from their keys and from the object that has the dictionary; results do not depend on which
    are there.
    """

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= KEPT and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)

    def made(self, key: K, make: Callable[[], V]) -> V:
        """Return what is kept, or what `make` returns now."""
        if key not in self:
            self[key] = make()
        return self[key]
