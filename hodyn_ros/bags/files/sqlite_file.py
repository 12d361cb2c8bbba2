"""Read a SQLite file of rosbag2: by SQLite where it is sound, else page by page."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from hodyn_ros.bags.files.sqlite_pages import PAGE_SIZES, page_size, rows_of_messages
from hodyn_ros.bags.messages import LATEST, DamagedError, Message, Topic, read_qos

_JOURNALS = ("-journal", "-wal")
_HEADER = b"SQLite format 3\0"


class SqliteFile:
    """A SQLite file; `topics` and `unread` [bytes] hold once `messages` is through.

    `trouble` says why what the file holds may not be all that was recorded; empty where it is sound. What
    SQLite has left beside a file that was not closed is taken into account, where there is room for a copy;
    the file stays as it is.
    """

    def __init__(self, path: Path) -> None:
        self.topics: dict[str, Topic] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._path = path
        self.trouble, self.unread = "", _missing_bytes(path)
        if _left_open(path):
            self.trouble = f"{path.name} was not closed"
            try:
                self._folder = tempfile.TemporaryDirectory(prefix="hodyn_ros-")
                self._path = _with_journals(path, Path(self._folder.name))
            except OSError as error:  # as a full disk
                self.trouble += f", and there is no copy to take up what waits beside it ({error.strerror})"
        elif self.unread:
            self.trouble = f"{path.name} is shorter than it should be"
        fault = "" if self.unread else self._fault()
        self._by_pages = bool(fault or self.unread)
        self.trouble = self.trouble or (f"{path.name} is damaged: {fault}" if fault else "")

    def close(self) -> None:
        """Remove what was needed for reading."""
        if self._folder is not None:
            self._folder.cleanup()

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Message]:
        """Yield the messages of some topics, or of all, in the order of writing; raises DamagedError.

        Page by page, what makes no sense is left out.
        """
        try:
            with closing(self._connect()) as connection:
                names = {}
                for number, topic in _topics(connection):
                    names[number] = topic.name
                    self.topics.setdefault(topic.name, topic)
                wanted = {number for number, name in names.items() if topics is None or name in topics}
                if not self._by_pages:
                    for number, time, data in _rows(connection, wanted, len(wanted) == len(names)):
                        yield Message(names[number], time, data)
        except sqlite3.Error as error:
            raise DamagedError(str(error)) from error
        if self._by_pages:
            for row in rows_of_messages(self._path):
                if row.topic in wanted and 0 <= row.time <= LATEST:
                    yield Message(names[row.topic], row.time, row.data)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{self._path.resolve().as_uri()}?immutable=1", uri=True)
        # Names may be damaged, too.
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        connection.execute("PRAGMA trusted_schema = OFF")
        # Otherwise SQLite rejects a file that is shorter than its header says.
        connection.execute("PRAGMA writable_schema = ON")
        return connection

    def _fault(self) -> str:
        """Return what SQLite finds wrong with the file; nothing where it is sound."""
        try:
            with closing(self._connect()) as connection:
                (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.Error as error:
            return str(error)
        return "" if answer == "ok" else " ".join(str(answer).split())


def _left_open(path: Path) -> bool:
    """Tell whether SQLite has left a journal that belongs to a file: its writer did not close it."""
    journals = (path.with_name(path.name + suffix) for suffix in _JOURNALS)
    return any(journal.exists() and journal.stat().st_size > 0 for journal in journals)


def _with_journals(path: Path, folder: Path) -> Path:
    """Return a copy of a file, with what waits in a journal beside it; to take that up is to write."""
    for suffix in ("", *_JOURNALS):
        part = path.with_name(path.name + suffix)
        if part.exists():
            shutil.copy(part, folder)
    copy = folder / path.name
    try:
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA wal_checkpoint")
    except sqlite3.Error:
        shutil.copy(path, copy)  # without the journal, then
    return copy


def _missing_bytes(path: Path) -> int:
    """Return by how much a file is shorter than its header says; DamagedError where it has no such header."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header.startswith(_HEADER[: len(header)]):
        raise DamagedError("file is not a database")
    if len(header) < 100:
        return 0
    if page_size(header) not in PAGE_SIZES:
        raise DamagedError(f"its pages cannot have {page_size(header)} bytes")
    (pages,) = struct.unpack_from(">I", header, 28)
    return max(0, int(pages) * page_size(header) - path.stat().st_size)


def _rows(
    connection: sqlite3.Connection, wanted: Collection[int], all_topics: bool
) -> Iterator[tuple[int, int, bytes]]:
    """Yield topic, time and bytes of messages; DamagedError where one has something else."""
    chosen = "" if all_topics else f"WHERE topic_id IN ({', '.join(map(str, wanted))})"
    before = None
    for number, topic, time, data in connection.execute(
        f"SELECT id, topic_id, timestamp, data FROM messages {chosen} ORDER BY id"
    ):
        sound = type(time) is int and 0 <= time <= LATEST and isinstance(data, bytes)
        if not sound or topic not in wanted or (before is not None and number <= before):
            raise DamagedError(f"message {number} has no topic, time or content")
        before = number
        yield topic, time, data


def _topics(connection: sqlite3.Connection) -> Iterator[tuple[int, Topic]]:
    kinds = dict(connection.execute("SELECT name, type FROM sqlite_master"))
    if kinds.get("topics") != "table" or kinds.get("messages") != "table":
        raise DamagedError("it has no tables of topics and messages")
    definitions: dict[Any, tuple[Any, ...]] = {}
    if kinds.get("message_definitions") == "table":
        definitions = {
            row[0]: row[1:]
            for row in connection.execute(
                "SELECT topic_type, encoded_message_definition, encoding, type_description_hash "
                "FROM message_definitions"
            )
        }
    # older ones have fewer columns
    columns = {row[1] for row in connection.execute("PRAGMA table_info(topics)")}
    qos, type_hash = (
        column if column in columns else "''" for column in ("offered_qos_profiles", "type_description_hash")
    )
    for number, name, kind, serialization, profiles, digest in connection.execute(
        f"SELECT id, name, type, serialization_format, {qos}, {type_hash} FROM topics"
    ):
        text, encoding, other = definitions.get(kind, ("", "", ""))
        words = (name, kind, text, encoding, digest or other)
        if not isinstance(number, int) or not all(isinstance(word, str) for word in words):
            raise DamagedError("its table of topics does not hold topics")
        yield number, Topic(*words, read_qos(profiles), str(serialization))
