"""Write bags that `ros2 bag` reads."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
from rosbags.rosbag2.storage_mcap import McapWriter
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer

from hodyn_ros.bags.messages import Topic
from hodyn_ros.bags.types import learn, ros_types, type_hash
from hodyn_ros.errors import InputError

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}


class BagWriter:
    """Writes a bag; leave the `with` block to complete it.

    Where the block is left by an exception, the bag stays as it is: without an index and metadata.yaml, but
    readable up to the last flush. Create, use and leave it in one thread, as SQLite asks for.
    """

    def __init__(self, path: Path, storage: str) -> None:
        """Create the folder `path`; raises InputError where it exists, or where the storage is unknown."""
        if storage not in STORAGES:
            raise InputError(f"there is no storage {storage!r}; choose {' or '.join(STORAGES)}")
        try:
            self._writer = Writer(path, version=9, storage_plugin=STORAGES[storage])
            self._writer.open()
        except WriterError:
            raise InputError(f"'{path}' exists already; choose another name, or remove it") from None
        self._types = ros_types()
        self._connections: dict[str, Connection] = {}

    def add(self, topic: Topic) -> None:
        """Announce a topic; where it does not carry its definition, that of today is written."""
        if not topic.definition:
            learn(self._types, topic.type)
        self._connections[topic.name] = self._writer.add_connection(
            topic.name,
            topic.type,
            typestore=self._types,
            msgdef=topic.definition or None,
            rihs01=type_hash(topic) if topic.definition else None,
            offered_qos_profiles=list(topic.qos),
        )

    def write(self, topic: str, time: int, data: bytes) -> None:
        """Write a serialised message of an announced topic, recorded at `time` [ns]."""
        self._writer.write(self._connections[topic], time, data)

    def flush(self) -> None:
        """Hand everything to the operating system: what comes later may fail, this stays readable."""
        storage = self._writer.storage
        if isinstance(storage, McapWriter):
            if storage.chunk.msgs:
                storage.close_chunk()
            storage.bio.flush()
        elif isinstance(storage, Sqlite3Writer):
            storage.conn.commit()

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)
