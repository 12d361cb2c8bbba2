"""Machine code kept on disk between processes, under a key made of everything that it depends on."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_MAGIC = b"hodyn_ros object 1\n"
_MOST_ENTRIES = 500


class ObjectCache:
    """A folder of compiled kernels.

    An entry is named by the hash of its key and carries the hash of its content. One that is damaged, or that
    another user could have written, counts as absent and is replaced; writing is atomic. A folder that cannot
    be used costs compile time, nothing else.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def default(cls) -> ObjectCache | None:
        """Return the user's cache: $HODYN_CACHE_DIR (empty: none), else below $XDG_CACHE_HOME or ~/.cache."""
        chosen = os.environ.get("HODYN_CACHE_DIR")
        if chosen is not None:
            return cls(Path(chosen)) if chosen else None
        home = os.environ.get("XDG_CACHE_HOME")
        return cls((Path(home) if home else Path.home() / ".cache") / "hodyn_ros")

    def get(self, key: str) -> bytes | None:
        """Return the machine code stored under a key, or None."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                if not _only_ours(os.fstat(file.fileno())) or not _only_ours(self.folder.stat()):
                    return None
                content = file.read()
        except OSError:
            return None
        head = len(_MAGIC) + hashlib.sha256().digest_size
        code = content[head:]
        return code if content[:head] == _MAGIC + hashlib.sha256(code).digest() else None

    def put(self, key: str, code: bytes) -> None:
        """Store machine code under a key."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, temporary = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(code).digest() + code)
            Path(temporary).replace(self._path(key))
            self._forget_oldest()
        except OSError:
            return  # a read-only home is no reason to fail; the next process compiles again

    def _forget_oldest(self) -> None:
        """Keep the folder from growing without end."""
        entries = sorted(self.folder.glob("*.o"), key=lambda entry: entry.stat().st_mtime)
        for entry in entries[:-_MOST_ENTRIES]:
            entry.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()}.o"


def _only_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
