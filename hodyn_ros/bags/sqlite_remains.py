"""Read a SQLite file of rosbag2 that was not closed, or that was cut off.

The library rosbags opens such files as if nothing else could belong to them, and misses what SQLite has left
in a journal beside the file.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rosbags.interfaces import MessageDefinitionFormat
from rosbags.rosbag2.metadata import parse_qos

from hodyn_ros.bags.messages import FORMATS, Message, Topic
from hodyn_ros.bags.sqlite_pages import page_size, rows_of_messages

_JOURNALS = ("-journal", "-wal")


class SqliteRemains:
    """What can be read of a SQLite file; `topics` and `unread` [bytes] hold once `messages` is through."""

    def __init__(self, path: Path) -> None:
        self.topics: dict[str, Topic] = {}
        self.unread = missing_bytes(path)
        self._path = path

    def messages(self) -> Iterator[Message]:
        """Yield the messages in the order of writing."""
        if not left_open(self._path):
            address = f"{self._path.resolve().as_uri()}?immutable=1"
            yield from self._read(self._path, sqlite3.connect(address, uri=True))
            return
        with tempfile.TemporaryDirectory(prefix="hodyn_ros-") as folder:
            # To take up a journal is to write; the recording itself stays as it is.
            for suffix in ("", *_JOURNALS):
                part = self._path.with_name(self._path.name + suffix)
                if part.exists():
                    shutil.copy(part, folder)
            copy = Path(folder, self._path.name)
            connection = sqlite3.connect(copy)
            connection.execute("PRAGMA wal_checkpoint")  # brings into the file what waits beside it
            yield from self._read(copy, connection)

    def _read(self, path: Path, connection: sqlite3.Connection) -> Iterator[Message]:
        names = {}
        with closing(connection):
            # Otherwise SQLite refuses a file that is shorter than its header says.
            connection.execute("PRAGMA writable_schema = ON")
            for number, topic in _topics(connection):
                names[number] = topic.name
                self.topics[topic.name] = topic
        for row in rows_of_messages(path):
            yield Message(names[row.topic], row.time, row.data)


def left_open(path: Path) -> bool:
    """Tell whether SQLite has left a journal that belongs to a file: its writer did not close it."""
    journals = (path.with_name(path.name + suffix) for suffix in _JOURNALS)
    return any(journal.exists() and journal.stat().st_size > 0 for journal in journals)


def missing_bytes(path: Path) -> int:
    """Return by how much a file is shorter than its header says."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100:
        return 0
    (pages,) = struct.unpack_from(">I", header, 28)
    return max(0, int(pages) * page_size(header) - path.stat().st_size)


def _topics(connection: sqlite3.Connection) -> Iterator[tuple[int, Topic]]:
    definitions = {}
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'message_definitions'").fetchone():
        definitions = {
            row[0]: row[1:]
            for row in connection.execute(
                "SELECT topic_type, encoded_message_definition, encoding, type_description_hash "
                "FROM message_definitions"
            )
        }
    for number, name, kind, qos in connection.execute(
        "SELECT id, name, type, offered_qos_profiles FROM topics"
    ):
        text, encoding, type_hash = definitions.get(kind, ("", "", ""))
        text_format = FORMATS.get(encoding, MessageDefinitionFormat.NONE)
        yield number, Topic(name, kind, text, text_format, type_hash, tuple(parse_qos(qos)))
