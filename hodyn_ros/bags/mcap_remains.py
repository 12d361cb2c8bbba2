"""Read an MCAP file up to where it was cut off.

The library rosbags needs the index at the end of the file, which a recorder that was killed has not written.
The library mcap reads record after record; that a record is cut is found out here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, cast

from mcap.exceptions import McapError
from mcap.records import Channel, Chunk, DataEnd, McapRecord, Schema
from mcap.records import Message as McapMessage
from mcap.stream_reader import StreamReader, breakup_chunk
from rosbags.interfaces import MessageDefinitionFormat
from rosbags.rosbag2.metadata import parse_qos

from hodyn_ros.bags.messages import FORMATS, Message, Topic

# How a chunk begins: opcode and length of the record; first and last time, size and checksum of the content;
# length of the name of its compression.
_CHUNK = struct.Struct("<BQQQQII")
_CHUNK_OPCODE = 6


class McapRemains:
    """What can be read of an MCAP file; `topics` and `unread` [bytes] hold once `messages` is through."""

    def __init__(self, path: Path) -> None:
        self.topics: dict[str, Topic] = {}
        self.unread = 0
        self._path = path

    def messages(self) -> Iterator[Message]:
        """Yield the messages in the order of writing."""
        schemas: dict[int, Schema] = {}
        names: dict[int, str] = {}
        for record in self._records():
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel):
                names[record.id] = record.topic
                self.topics[record.topic] = _topic(record, schemas[record.schema_id])
            elif isinstance(record, McapMessage):
                yield Message(names[record.channel_id], record.log_time, record.data)

    def _records(self) -> Iterator[McapRecord]:
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            read = 0
            try:
                for record in StreamReader(_whole(file), emit_chunks=True).records:
                    yield from breakup_chunk(record) if isinstance(record, Chunk) else (record,)
                    read = size if isinstance(record, DataEnd) else file.tell()
                    if read == size:
                        break
            except (McapError, EOFError):
                file.seek(read)
                content = BytesIO(_cut_chunk(file.read()))
                try:
                    for record in StreamReader(_whole(content), skip_magic=True).records:
                        yield record
                        read = size - len(content.getbuffer()) + content.tell()
                except (McapError, EOFError):
                    pass  # the cut
            self.unread = size - read


def _whole(file: IO[bytes]) -> IO[bytes]:
    """Return a file whose `read` gives all bytes asked for, or raises EOFError; mcap takes less for whole."""

    class Whole:
        def read(self, size: int) -> bytes:
            data = file.read(size)
            if len(data) < size:
                raise EOFError
            return data

    return cast(IO[bytes], Whole())


def _cut_chunk(rest: bytes) -> bytes:
    """Return what there is of the content of a chunk that was cut; nothing of a compressed one."""
    if len(rest) < _CHUNK.size or rest[0] != _CHUNK_OPCODE:
        return b""
    length_of_compression = _CHUNK.unpack_from(rest)[-1]
    return b"" if length_of_compression else rest[_CHUNK.size + 8 :]


def _topic(channel: Channel, schema: Schema) -> Topic:
    return Topic(
        channel.topic,
        schema.name,
        schema.data.decode(),
        FORMATS.get(schema.encoding, MessageDefinitionFormat.NONE),
        qos=tuple(parse_qos(channel.metadata.get("offered_qos_profiles", ""))),
    )
