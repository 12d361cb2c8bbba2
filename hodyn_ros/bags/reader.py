"""Read bags of rosbag2: mcap or sqlite3, plain or compressed, whole or cut off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any

import yaml
from rosbags.interfaces import Connection, ConnectionExtRosbag2
from rosbags.rosbag2 import Reader, ReaderError

from hodyn_ros.bags.mcap_remains import McapRemains
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.bags.sqlite_remains import SqliteRemains, left_open, missing_bytes
from hodyn_ros.errors import InputError

_STORAGES = {".mcap": "mcap", ".db3": "sqlite3"}


class Bag:
    """A recording, open for reading in a `with` block.

    `topics` by name, `counts` of their messages, `storage` ("mcap" or "sqlite3"). `warning` says what is
    wrong with a bag that was cut off and what it has lost; it is empty for a whole one. Raises InputError
    where nothing can be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.topics: dict[str, Topic] = {}
        self.counts: Counter[str] = Counter()
        self.warning = ""
        self._reader: Reader | None = None
        if not self.path.exists():
            raise InputError(f"there is no bag '{path}'")
        metadata = _metadata(self.path)
        self._files = _storage_files(self.path, metadata)
        self.storage = _STORAGES[_kind(self._files[0])]
        trouble = _trouble(self.path, self._files)
        if not trouble:
            try:
                self._open_whole()
            except ReaderError as error:
                trouble = str(error).rstrip(".")
        if trouble:
            self.warning = self._look_through_remains(trouble, metadata.get("message_count"))

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Message]:
        """Yield the messages of some topics, or of all.

        From a whole bag they come in the order of their times, from a cut one in that of their writing.
        """
        for message in self._remains() if self._reader is None else self._whole(self._reader, topics):
            if topics is None or message.topic in topics:
                yield message

    def _open_whole(self) -> None:
        self._reader = Reader(self.path)
        self._reader.open()
        for connection in self._reader.connections:
            self.topics.setdefault(connection.topic, _topic(connection))
            self.counts[connection.topic] += connection.msgcount

    def _whole(self, reader: Reader, topics: Collection[str] | None) -> Iterator[Message]:
        connections = [c for c in reader.connections if topics is None or c.topic in topics]
        try:
            # no connections would mean all of them
            for connection, time, data in reader.messages(connections) if connections else ():
                yield Message(connection.topic, time, bytes(data))
        except Exception as error:  # the library has no root for what broken bytes lead to
            raise InputError(f"'{self.path}' is damaged, and not only at its end: {error}") from error

    def _remains(self) -> Iterator[Message]:
        for path in self._files:
            yield from _remains_of(path).messages()

    def _look_through_remains(self, trouble: str, expected: int | None) -> str:
        """Find out what can be read; return what is lost, in words."""
        self._reader = None
        unread, size, last = 0, 0, 0
        for path in self._files:
            remains = _remains_of(path)
            try:
                for message in remains.messages():
                    self.counts[message.topic] += 1
                    size += len(message.data)
                    last = max(last, message.time)
            except Exception as error:  # as above
                raise InputError(f"'{path}' cannot be read: {error}") from error
            self.topics |= remains.topics
            unread += remains.unread
        count = self.counts.total()
        if not count:
            raise InputError(f"'{self.path}' cannot be read: {trouble}")
        if expected is not None:
            lost = f"{expected - count} of {expected} messages are lost"
        elif unread:
            about = max(1, round(unread * count / size))
            lost = f"{unread} bytes are lost, about {about} message{'s' * (about > 1)}"
        else:
            lost = "what may have followed was not written"
        return (
            f"'{self.path}' was not completed ({trouble}); {count} messages can be read, the last recorded "
            f"at {last * 1e-9:.6f} s; {lost}"
        )

    def close(self) -> None:
        """Close the files."""
        if self._reader is not None:
            self._reader.close()

    def __enter__(self) -> Bag:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _metadata(path: Path) -> Mapping[str, Any]:
    """Return what metadata.yaml says; nothing where it is missing or cut off."""
    file = path / "metadata.yaml"
    if not path.is_dir() or not file.is_file():
        return {}
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _storage_files(path: Path, metadata: Mapping[str, Any]) -> list[Path]:
    """Return the files with the messages, in the order of recording."""
    if not path.is_dir():
        files = [path]
    else:
        named = [path / PurePath(name).name for name in metadata.get("relative_file_paths", [])]
        files = [file for file in named if file.is_file()]
    if not files:
        files = sorted(path.iterdir(), key=_number)
    files = [file for file in files if _kind(file) in _STORAGES and file.stat().st_size]
    if not files:
        raise InputError(f"'{path}' is no bag: there is no .mcap or .db3 file in it, or it is empty")
    return files


def _number(path: Path) -> tuple[int, str]:
    """Return what puts name_2.mcap before name_10.mcap."""
    numbers = re.findall(r"\d+", path.name.split(".")[0])
    return int(numbers[-1]) if numbers else -1, path.name


def _kind(path: Path) -> str:
    """Return the suffix that says what a file is, below that of its compression."""
    return path.with_suffix("").suffix if path.suffix == ".zstd" else path.suffix


def _trouble(bag: Path, files: list[Path]) -> str:
    """Return what is wrong with the files, where the library would not notice or not say it well."""
    if bag.is_dir() and not (bag / "metadata.yaml").exists():
        return "it has no metadata.yaml"
    for path in files:
        if path.suffix != ".db3":
            continue
        if left_open(path):
            return f"{path.name} was not closed"
        if missing_bytes(path):
            return f"{path.name} is shorter than it should be"
    return ""


def _remains_of(path: Path) -> McapRemains | SqliteRemains:
    if path.suffix == ".zstd":
        raise InputError(
            f"'{path}' is compressed as a whole; unpack it (zstd -d), then it can be read in part"
        )
    return McapRemains(path) if path.suffix == ".mcap" else SqliteRemains(path)


def _topic(connection: Connection) -> Topic:
    assert isinstance(connection.ext, ConnectionExtRosbag2)
    definition = connection.msgdef
    return Topic(
        connection.topic,
        connection.msgtype,
        definition.data,
        definition.format,
        connection.digest,
        tuple(connection.ext.offered_qos_profiles),
    )
