"""Files and folders that come into being complete, or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """Yield where to write a file or folder, which becomes `path` when the block ends without an exception.

    It has the same name in a hidden folder beside `path`, and nothing is left of it after an exception. A
    file that was there is replaced; a folder is not.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        part = Path(folder, path.name)
        yield part
        part.replace(path)
