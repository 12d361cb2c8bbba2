"""Read bags of rosbag2: mcap or sqlite3, plain or compressed, whole or cut off."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path

from hodyn_ros.bags.files.mcap_file import McapFile
from hodyn_ros.bags.files.metadata import Metadata, read_metadata
from hodyn_ros.bags.files.sqlite_file import SqliteFile
from hodyn_ros.bags.files.unpacking import unpack_file, unpacked_message
from hodyn_ros.bags.messages import DamagedError, Message, Topic
from hodyn_ros.errors import InputError

_STORAGES = {".mcap": "mcap", ".db3": "sqlite3"}


class Bag:
    """A recording, open for reading in a `with` block.

    `topics` by name, `counts` of their messages, `begin` [ns] when the first message was recorded, `storage`
    ("mcap" or "sqlite3"). All of it comes from the messages themselves, which are looked through once;
    metadata.yaml says only in which files they are and how many there were. `warning` says what is wrong with
    a bag that was cut off and what it has lost; it is empty for a whole one. Raises InputError where nothing
    can be read, and where a file that was closed is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.topics: dict[str, Topic] = {}
        self.counts: Counter[str] = Counter()
        self.begin = 0
        self.warning = ""
        if not self.path.exists():
            raise InputError(f"there is no bag '{path}'")
        is_folder = self.path.is_dir()
        metadata = read_metadata(self.path) if is_folder else Metadata()
        paths = _storage_files(self.path, metadata) if is_folder else [self.path]
        if not paths or not paths[0].is_file():
            raise InputError(f"'{path}' is no bag: there is no .mcap or .db3 file in it, or it is empty")
        self.storage = _STORAGES.get(_kind(paths[0]), "")
        if not self.storage:
            raise InputError(f"'{path}' is no bag: its name ends neither with .mcap nor with .db3")
        self._files: list[McapFile | SqliteFile] = []
        with ExitStack() as stack:
            for file in paths:
                self._files.append(_opened(file, stack))
            self._look_through(metadata)
            self._stack = stack.pop_all()

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Message]:
        """Yield the messages of some topics, or of all, in the order in which they were written."""
        for file in self._files:
            yield from self._messages(file, topics)

    def _messages(self, file: McapFile | SqliteFile, topics: Collection[str] | None) -> Iterator[Message]:
        try:
            for message in file.messages(topics):
                yield message._replace(data=unpacked_message(message.data))
        except DamagedError as error:
            fault = (
                f"cannot be read: {file.trouble}" if file.trouble else "is damaged, and not only at its end"
            )
            raise DamagedError(f"'{self.path}' {fault}: {error}") from error

    def _look_through(self, metadata: Metadata) -> None:
        """Find out what there is, and what is lost."""
        size, last, begin = 0, 0, None
        for message in self.messages():
            self.counts[message.topic] += 1
            size += len(message.data)
            last = max(last, message.time)
            begin = message.time if begin is None else min(begin, message.time)
        for file in self._files:
            self.topics |= {name: topic for name, topic in file.topics.items() if name not in self.topics}
        self.begin = begin or 0
        count = self.counts.total()
        troubles = [metadata.trouble, *(file.trouble for file in self._files)]
        if metadata.count is not None and count != metadata.count:
            troubles.append(f"metadata.yaml counts {metadata.count} messages")
        trouble = "; ".join(filter(None, troubles))
        if not trouble:
            return
        if not count:
            raise DamagedError(f"'{self.path}' cannot be read: {trouble}")
        lost = _lost(metadata.count, count, sum(file.unread for file in self._files), size)
        self.warning = (
            f"'{self.path}' was not completed ({trouble}); {count} messages can be read, the last recorded "
            f"at {last * 1e-9:.6f} s; {lost}"
        )

    def close(self) -> None:
        """Close the files."""
        self._stack.close()

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lost(expected: int | None, count: int, unread: int, size: int) -> str:
    """Return in words what a bag has lost, of which `count` messages with `size` bytes can be read."""
    if expected is not None:
        if expected < count:
            return "none of the messages that it counts is lost"
        return f"{expected - count} of {expected} messages are lost"
    if unread:
        about = max(1, round(unread * count / max(1, size)))
        return f"{unread} bytes are lost, about {about} message{'s' * (about > 1)}"
    return "what may have followed was not written"


def _storage_files(bag: Path, metadata: Metadata) -> list[Path]:
    """Return the files with the messages, in the order of recording."""
    files = [bag / name for name in metadata.files]
    if not any(file.is_file() for file in files):
        files = sorted(bag.iterdir(), key=_number)
    return [file for file in files if _kind(file) in _STORAGES and file.is_file() and file.stat().st_size]


def _number(path: Path) -> tuple[int, str]:
    """Return what puts name_2.mcap before name_10.mcap."""
    numbers = re.findall(r"\d+", path.name.split(".")[0])
    return int(numbers[-1]) if numbers else -1, path.name


def _kind(path: Path) -> str:
    """Return the suffix that says what a file is, below that of its compression."""
    return path.with_suffix("").suffix if path.suffix == ".zstd" else path.suffix


def _opened(path: Path, stack: ExitStack) -> McapFile | SqliteFile:
    try:
        plain = path
        if path.suffix == ".zstd":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hodyn_ros-"))
            plain = unpack_file(path, Path(folder))
        if _kind(path) == ".mcap":
            return McapFile(plain)
        file = SqliteFile(plain)
        stack.callback(file.close)
        return file
    except DamagedError as error:
        raise DamagedError(f"'{path}' cannot be read: {error}") from error
