"""Write the files of a bag as rosbag2 does: MCAP by the library mcap, SQLite in the schema of version 4.

See `mcap_storage.cpp` and `sqlite_storage.cpp` of rosbag2 for what they hold.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from mcap.writer import CompressionType, Writer

from hodyn_ros.bags.messages import MSG, Topic, write_qos

_TABLES = """
CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);
CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL);
CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,
    serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL,
    type_description_hash TEXT NOT NULL);
CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT NOT NULL,
    encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL);
CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL,
    data BLOB NOT NULL);
CREATE INDEX timestamp_idx ON messages (timestamp ASC);
"""
_SCHEMA_VERSION = 4


class McapStorage:
    """An MCAP file; it exists from the beginning, and is complete after `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("xb")
        self._writer = Writer(self._file, compression=CompressionType.NONE)
        self._writer.start("ros2")
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}

    def add(self, topic: Topic) -> None:
        """Announce a topic."""
        if topic.type not in self._schemas:
            self._schemas[topic.type] = self._writer.register_schema(
                topic.type, topic.encoding or MSG, topic.definition.encode()
            )
        self._channels[topic.name] = self._writer.register_channel(
            topic.name,
            topic.serialization,
            self._schemas[topic.type],
            {"offered_qos_profiles": write_qos(topic.qos), "topic_type_hash": topic.hash},
        )

    def write(self, topic: str, time: int, data: bytes) -> None:
        """Write a message of an announced topic."""
        self._writer.add_message(self._channels[topic], time, data, time)

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._writer.flush()

    def close(self, version: int, metadata: str) -> None:
        """Complete the file; `metadata` is what metadata.yaml says."""
        self._writer.add_metadata("rosbag2", {"serialized_metadata": metadata})
        self._writer.finish()
        self._file.close()

    def abort(self) -> None:
        """Leave the file as it is."""
        self._file.close()


class SqliteStorage:
    """A SQLite file; it exists from the beginning, and is complete after `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch(exist_ok=False)
        self._connection = sqlite3.connect(path)
        self._connection.executescript(_TABLES)
        self._connection.execute("INSERT INTO schema VALUES (?, 'hodyn_ros')", (_SCHEMA_VERSION,))
        self._types: set[str] = set()
        self._topics: dict[str, int] = {}

    def add(self, topic: Topic) -> None:
        """Announce a topic."""
        if topic.type not in self._types:
            self._types.add(topic.type)
            self._connection.execute(
                "INSERT INTO message_definitions (topic_type, encoding, encoded_message_definition, "
                "type_description_hash) VALUES (?, ?, ?, ?)",
                (topic.type, topic.encoding or MSG, topic.definition, topic.hash),
            )
        self._topics[topic.name] = len(self._topics) + 1
        self._connection.execute(
            "INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?)",
            (
                self._topics[topic.name],
                topic.name,
                topic.type,
                topic.serialization,
                write_qos(topic.qos),
                topic.hash,
            ),
        )

    def write(self, topic: str, time: int, data: bytes) -> None:
        """Write a message of an announced topic."""
        self._connection.execute(
            "INSERT INTO messages (topic_id, timestamp, data) VALUES (?, ?, ?)",
            (self._topics[topic], time, data),
        )

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._connection.commit()

    def close(self, version: int, metadata: str) -> None:
        """Complete the file; `metadata` is what metadata.yaml says."""
        self._connection.execute(
            "INSERT INTO metadata (metadata_version, metadata) VALUES (?, ?)", (version, metadata)
        )
        self._connection.commit()
        self._connection.close()

    def abort(self) -> None:
        """Leave the file as it is, with what was flushed."""
        self._connection.close()
