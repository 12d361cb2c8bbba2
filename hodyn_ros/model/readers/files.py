"""Files that describe robots and motions, read whole: regular ones, and none that is far too large."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hodyn_ros.errors import ModelError

MEGABYTE = 1_000_000


def read_file(path: str | os.PathLike[str], most: int, what: str = "") -> bytes:
    """Return what a file holds, at most `most` bytes; `what` says in errors what it should be.

    Raises ModelError for what is no regular file (a device or a pipe may never end), for one that is larger,
    and for one that cannot be read.
    """
    name = f"{what + ' ' if what else ''}{os.fspath(path)!r}"
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
            raise ModelError(f"cannot read {name}: it is not a regular file")
        with Path(path).open("rb") as file:
            content = file.read(most + 1)
    except ModelError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise ModelError(f"cannot read {name}: {error}") from error
    if len(content) > most:
        raise ModelError(f"cannot read {name}: it is larger than {most / MEGABYTE:g} MB, the most there is")
    return content
