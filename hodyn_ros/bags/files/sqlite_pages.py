"""Find the messages of a SQLite file that was cut off or damaged, page by page.

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

PAGE_SIZES = tuple(2**power for power in range(9, 17))  # [bytes]
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
        if len(content) < 100:
            return
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
        # A page continues one row. Damaged rows may point to any page, and would be read for ever.
        self._used = bytearray(len(content) // self.size)

    def payloads(self, start: int) -> Iterator[bytes]:
        """Yield the records in a page, if it is the leaf of a table."""
        page = self._content[start : start + self.size]
        head = 100 if start == 0 else 0  # the first page begins with the header of the file
        if page[head] != _TABLE_LEAF:
            return
        (cells,) = struct.unpack_from(">H", page, head + 3)
        cells = min(cells, (self.size - head - 8) // 2)
        for place in struct.unpack_from(f">{cells}H", page, head + 8):
            payload = self._payload(page, place)
            if payload is not None:
                yield payload

    def _payload(self, page: bytes, at: int) -> bytes | None:
        """Return the record that begins at a place of a page; None where there is none."""
        try:
            size, at = _varint(page, at)
            _, at = _varint(page, at)  # the number of the row
        except IndexError:
            return None
        local = self._local(size)
        rest = size - local
        end = at + local + (4 if rest else 0)
        if end > self.size or rest > len(self._content):
            return None
        payload = page[at : at + local]
        if rest:
            payload += self._overflow(int.from_bytes(page[at + local : end], "big"), rest)
        return payload if len(payload) == size else None

    def _local(self, size: int) -> int:
        """Return how much of a record its leaf holds."""
        most = self._usable - 35
        if size <= most:
            return size
        least = (self._usable - 12) * 32 // 255 - 23
        fitting = least + (size - least) % (self._usable - 4)
        return fitting if fitting <= most else least

    def _overflow(self, number: int, size: int) -> bytes:
        """Return the rest of a record from the pages it goes on in, as far as they are there."""
        parts = []
        while size > 0 and 0 < number <= len(self._used) and not self._used[number - 1]:
            self._used[number - 1] = True
            start = (number - 1) * self.size
            part = self._content[start + 4 : start + 4 + min(size, self._usable - 4)]
            parts.append(part)
            size -= len(part)
            number = int.from_bytes(self._content[start : start + 4], "big")
        return b"".join(parts)


def _row(record: bytes) -> Row | None:
    """Return what a record says, unless it belongs to another table."""
    try:
        end, at = _varint(record, 0)
        kinds: list[int] = []
        while at < end and len(kinds) < 5:
            kind, at = _varint(record, at)
            kinds.append(kind)
        # NULL (the number of the row stands for it), topic, time, bytes
        if len(kinds) != 4 or at != end or kinds[0] != 0 or kinds[3] < 12 or kinds[3] % 2:
            return None
        topic, at = _integer(record, at, kinds[1])
        time, at = _integer(record, at, kinds[2])
    except IndexError:
        return None
    if topic is None or time is None or len(record) - at != (kinds[3] - 12) // 2:
        return None
    return Row(topic, time, record[at:])


def _integer(record: bytes, at: int, kind: int) -> tuple[int | None, int]:
    if kind in (8, 9):
        return kind - 8, at
    if not 1 <= kind <= 6:
        return None, at
    end = at + _INTEGER_SIZES[kind]
    return int.from_bytes(record[at:end], "big", signed=True), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of one to nine bytes, and where it ends; IndexError where the data end before it."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9
