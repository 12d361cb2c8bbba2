"""Write bags that `ros2 bag` reads, and indexes again."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
from rosbags.rosbag2.metadata import dump_qos_v9

from hodyn_ros.bags.files.metadata import NAME
from hodyn_ros.bags.files.storage_writers import McapStorage, SqliteStorage
from hodyn_ros.bags.files.types import described
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.errors import InputError
from hodyn_ros.scheduling import give_way

STORAGES: dict[str, tuple[type[McapStorage] | type[SqliteStorage], str]] = {
    "mcap": (McapStorage, ".mcap"),
    "sqlite3": (SqliteStorage, ".db3"),
}
_VERSION = 9  # of metadata.yaml
_NO_TIME = 2**63 - 1  # [ns] when a bag without messages begins, as rosbag2 writes it


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
            path.mkdir(parents=True)
        except FileExistsError:
            raise InputError(f"'{path}' exists already; choose another name, or remove it") from None
        kind, suffix = STORAGES[storage]
        # `ros2 bag reindex` finds files by names that end with a number
        self._storage = kind(path / f"{path.resolve().name}_0{suffix}")
        self._path, self._kind = path, storage
        self._topics: dict[str, Topic] = {}
        self._counts: Counter[str] = Counter()
        self._first, self._last = _NO_TIME, 0

    def add(self, topic: Topic) -> None:
        """Announce a topic; where it does not carry its definition, that of today is written."""
        topic = described(topic)
        self._storage.add(topic)
        self._topics[topic.name] = topic

    def write(self, topic: str, time: int, data: bytes) -> None:
        """Write a serialised message of an announced topic, recorded at `time` [ns]."""
        self._storage.write(topic, time, data)
        self._counts[topic] += 1
        self._first, self._last = min(self._first, time), max(self._last, time)

    def flush(self) -> None:
        """Hand everything to the operating system: what comes later may fail, this stays readable."""
        self._storage.flush()

    def _complete(self) -> None:
        metadata = self._metadata()
        self._storage.close(_VERSION, _yaml(metadata))
        part = self._path / f"{NAME}.part"
        part.write_text(_yaml({"rosbag2_bagfile_information": metadata}), encoding="utf-8")
        part.replace(self._path / NAME)

    def _metadata(self) -> dict[str, Any]:
        """Return what rosbag2 writes into metadata.yaml."""
        span: dict[str, Any] = {
            "starting_time": {"nanoseconds_since_epoch": self._first},
            "duration": {"nanoseconds": max(0, self._last - self._first)},
            "message_count": self._counts.total(),
        }
        name = self._storage.path.name
        return {
            "version": _VERSION,
            "storage_identifier": self._kind,
            **span,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic.name,
                        "type": topic.type,
                        "serialization_format": topic.serialization,
                        "offered_qos_profiles": dump_qos_v9(list(topic.qos)),
                        "type_description_hash": topic.hash,
                    },
                    "message_count": self._counts[topic.name],
                }
                for topic in self._topics.values()
            ],
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [name],
            "files": [{"path": name, **span}],
            "custom_data": None,
            "ros_distro": "hodyn_ros",
        }

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            with suppress(OSError, sqlite3.Error):  # what has failed may fail again, and is known
                self._storage.abort()
            return
        try:
            self._complete()
        except BaseException:
            with suppress(OSError, sqlite3.Error):
                self._storage.abort()
            raise


def _yaml(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False)


FLUSH_PERIOD = 1.0  # [s] what came since is lost when the process is killed
_PAUSE = 0.05  # [s] between two looks at what has come


class AsyncBagWriter:
    """Takes topics and messages at once, and writes them soon after in the order in which they were given.

    What came up to the last flush stays readable whatever happens to this process. `failure` is what ended
    the writing too early, a full disk for instance. Raises InputError or OSError where the bag cannot be
    created.
    """

    def __init__(self, path: Path, storage: str) -> None:
        self.failure: Exception | None = None
        self._waiting: deque[Topic | Message] = deque()
        self._created, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(path, storage), name="bag writer")
        self._thread.start()
        self._created.wait()
        if self.failure is not None:
            raise self.failure

    @property
    def waiting(self) -> int:
        """Number of messages that are not written yet."""
        return len(self._waiting)

    def put(self, item: Topic | Message) -> None:
        """Give a topic, or a message of a topic given before."""
        self._waiting.append(item)

    def close(self) -> None:
        """Write what is left and complete the bag, unless there was a failure."""
        self._end.set()
        self._thread.join()

    def _run(self, path: Path, storage: str) -> None:
        give_way()
        try:
            with BagWriter(path, storage) as writer:
                self._created.set()
                flushed_at = time.monotonic()
                while not self._end.wait(_PAUSE):
                    self._write(writer)
                    if time.monotonic() - flushed_at >= FLUSH_PERIOD:
                        writer.flush()
                        flushed_at = time.monotonic()
                self._write(writer)
        except Exception as error:  # whatever it is, the other thread has to know
            self.failure = error
        finally:
            self._created.set()

    def _write(self, writer: BagWriter) -> None:
        """Write what is waiting."""
        while self._waiting:
            item = self._waiting.popleft()
            if isinstance(item, Topic):
                writer.add(item)
            else:
                writer.write(*item)
