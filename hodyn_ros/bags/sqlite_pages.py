"""Find the messages of a SQLite file that was cut off, page by page.

SQLite keeps the rows of a table in a tree, and moves the upper pages of the tree to the end of the file as it
grows: of a file that was cut, SQLite itself often finds no row at all. The rows are in the leaves, which lie
in the order of writing. See the "Database File Format" of SQLite, sections 1.6 (b-tree pages) and 2.1
(records).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

_TABLE_LEAF = 0x0D
_INTEGER_SIZES = (0, 1, 2, 3, 4, 6, 8)  # [bytes] by the serial types 0 (NULL) to 6


class Row(NamedTuple):
    """A row of the table `messages`."""

    topic: int
    time: int  # [ns]
    data: bytes


def page_size(header: bytes) -> int:
    """Return the size of the pages [bytes] that the first 18 bytes of a file tell."""
    (size,) = struct.unpack_from(">H", header, 16)
    return 65536 if size == 1 else int(size)


def rows_of_messages(path: Path) -> Iterator[Row]:
    """Yield the rows of `messages` whose pages are complete, in the order of the pages."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        pages = _Pages(content)
        for start in range(0, len(content) - pages.size + 1, pages.size):
            for payload in pages.payloads(start):
                row = _row(payload)
                if row is not None:
                    yield row


class _Pages:
    def __init__(self, content: mmap) -> None:
        self._content = content
        self.size = page_size(content[:100])
        self._usable = self.size - content[20]

    def payloads(self, start: int) -> Iterator[bytes]:
        """Yield the records in a page, if it is the leaf of a table."""
        head = start + (100 if start == 0 else 0)  # the first page begins with the header of the file
        if self._content[head] != _TABLE_LEAF:
            return
        (cells,) = struct.unpack_from(">H", self._content, head + 3)
        for place in struct.unpack_from(f">{cells}H", self._content, head + 8):
            size, at = _varint(self._content, start + place)
            _, at = _varint(self._content, at)  # the number of the row
            local = self._local(size)
            payload = self._content[at : at + local]
            if local < size:
                payload += self._overflow(at + local, size - local)
            if len(payload) == size:
                yield payload

    def _local(self, size: int) -> int:
        """Return how much of a record its leaf holds."""
        most = self._usable - 35
        if size <= most:
            return size
        least = (self._usable - 12) * 32 // 255 - 23
        fitting = least + (size - least) % (self._usable - 4)
        return fitting if fitting <= most else least

    def _overflow(self, pointer: int, size: int) -> bytes:
        """Return the rest of a record from the pages that its leaf points to, as far as they are there."""
        parts = []
        while size > 0:
            (number,) = struct.unpack_from(">I", self._content, pointer)
            pointer = (number - 1) * self.size
            if number == 0 or pointer + self.size > len(self._content):
                break
            part = self._content[pointer + 4 : pointer + 4 + min(size, self._usable - 4)]
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _row(record: bytes) -> Row | None:
    """Return what a record says, unless it belongs to another table."""
    end, at = _varint(record, 0)
    kinds = []
    while at < end:
        kind, at = _varint(record, at)
        kinds.append(kind)
    # NULL (the number of the row stands for it), topic, time, bytes
    if len(kinds) != 4 or kinds[0] != 0 or kinds[3] < 12 or kinds[3] % 2:
        return None
    topic, at = _integer(record, at, kinds[1])
    time, at = _integer(record, at, kinds[2])
    if topic is None or time is None:
        return None
    return Row(topic, time, record[at:])


def _integer(record: bytes, at: int, kind: int) -> tuple[int | None, int]:
    if kind in (8, 9):
        return kind - 8, at
    if not 1 <= kind <= 6:
        return None, at
    end = at + _INTEGER_SIZES[kind]
    return int.from_bytes(record[at:end], "big", signed=True), end


def _varint(data: bytes | mmap, at: int) -> tuple[int, int]:
    """Return an integer of one to nine bytes, and where it ends."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9
