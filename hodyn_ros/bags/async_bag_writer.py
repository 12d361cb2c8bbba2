"""Write a bag in a thread of its own, so that whoever hears messages never waits for a disk."""

from __future__ import annotations

import threading
import time
from collections import deque
from pathlib import Path

from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.bags.writer import BagWriter
from hodyn_ros.scheduling import give_way

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
