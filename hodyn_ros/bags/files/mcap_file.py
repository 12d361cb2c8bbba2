"""Read an MCAP file, record by record in the order of writing, up to where it was cut off.

Nothing is asked of the index at the end, which a recorder that was killed has not written. A record is taken
into memory only when the file is as long as the record says. See the format's specification, "Records".
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Schema

from hodyn_ros.bags.files.unpacking import LONGEST, unpacked
from hodyn_ros.bags.messages import LATEST, DamagedError, Message, Topic, read_qos

_MAGIC = b"\x89MCAP0\r\n"
_FRAME = struct.Struct("<BQ")  # kind and length of a record
_MESSAGE = struct.Struct("<HIQQ")  # channel, number, time of recording and of publication
# first and last time, size and checksum of the content; length of the name of the compression
_CHUNK = struct.Struct("<QQQII")
_READ = {Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE, Opcode.CHUNK}
_IN_CHUNKS = _READ - {Opcode.CHUNK}


class McapFile:
    """An MCAP file; `topics` and `unread` [bytes] hold once `messages` is through.

    `trouble` says why what the file holds may not be all that was recorded; empty where it was closed.
    """

    def __init__(self, path: Path) -> None:
        self.topics: dict[str, Topic] = {}
        self.unread = 0
        self._path = path
        with path.open("rb") as file:
            begin = file.read(len(_MAGIC))
            self._size = file.seek(0, 2)
            file.seek(max(0, self._size - len(_MAGIC)))
            self._closed = file.read() == _MAGIC and self._size > len(_MAGIC)
        if begin != _MAGIC[: len(begin)]:
            raise DamagedError("it does not begin as an MCAP file does")
        self.trouble = "" if self._closed else f"{path.name} was not closed"

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Message]:
        """Yield the messages of some topics, or of all, in the order of writing.

        Raises DamagedError for a file that was closed and has broken parts all the same. One that was not
        closed ends for this reader with the first broken part.
        """
        contents = _Contents(self.topics, topics)
        with self._path.open("rb") as file:
            at, in_data = file.seek(len(_MAGIC)), True
            try:
                while at < self._size:
                    kind, size = _frame(file.read(_FRAME.size), self._size - at)
                    begin = at + _FRAME.size
                    if kind == Opcode.FOOTER:
                        at = self._size
                        break
                    in_data = in_data and kind != Opcode.DATA_END
                    cut = begin + size > self._size
                    if kind in _READ:
                        body = _read(file, min(size, self._size - begin))
                        if kind == Opcode.CHUNK:
                            for message, done in contents.of_chunk(body, cut):
                                if cut:
                                    at = begin + done
                                yield message
                        elif not cut:
                            yield from contents.of_record(kind, body)
                    if cut:
                        raise DamagedError("it ends within a record")
                    at = file.seek(begin + size)
            except DamagedError as error:
                if self._closed and in_data:
                    raise DamagedError(f"{error}, in the record at byte {at}") from error
        # behind the data is what helps to find things, and names topics again
        self.unread = self._size - at if in_data else 0


class _Contents:
    """Makes messages of records."""

    def __init__(self, topics: dict[str, Topic], wanted: Collection[str] | None) -> None:
        self._topics, self._wanted = topics, wanted
        self._schemas: dict[int, Schema] = {}
        self._names: dict[int, str] = {}  # of topics, by channel

    def of_chunk(self, body: bytes, cut: bool) -> Iterator[tuple[Message, int]]:
        """Yield the messages of a chunk, each with how much of the chunk has been read up to its end.

        Of one that was cut those that are whole; none where it is compressed.
        """
        if len(body) < _CHUNK.size:
            raise DamagedError("a chunk is too short")
        *_, full_size, checksum, length = _CHUNK.unpack_from(body)
        begin = _CHUNK.size + length + 8
        compression = body[_CHUNK.size : begin - 8].decode("ascii", "replace")
        data = body[begin:]
        if cut and compression:
            return
        if not cut:
            if _data_size(body, begin) != len(data):
                raise DamagedError("a chunk is not as long as it says")
            data = unpacked(data, compression, full_size)
            if checksum and zlib.crc32(data) != checksum:
                raise DamagedError("a chunk has another checksum than it had when it was written")
        at = 0
        while at < len(data):
            kind, size = _frame(data[at : at + _FRAME.size], len(data) - at)
            at += _FRAME.size
            if at + size > len(data):
                raise DamagedError("a chunk ends within a record")
            if kind in _IN_CHUNKS:
                for message in self.of_record(kind, data[at : at + size]):
                    yield message, begin + at + size
            at += size

    def of_record(self, kind: int, body: bytes) -> Iterator[Message]:
        """Yield the message of a record, if it is one on a wanted topic."""
        if kind == Opcode.MESSAGE:
            if len(body) < _MESSAGE.size:
                raise DamagedError("a message is too short")
            channel, _, time, _ = _MESSAGE.unpack_from(body)
            name = self._names.get(channel)
            if name is None or time > LATEST:
                raise DamagedError("a message has no topic" if name is None else "a message has no time")
            if self._wanted is None or name in self._wanted:
                yield Message(name, time, body[_MESSAGE.size :])
            return
        stream = ReadDataStream(BytesIO(body))
        try:
            if kind == Opcode.SCHEMA:
                schema = Schema.read(stream)
                self._schemas[schema.id] = schema
            else:
                channel_record = Channel.read(stream)
                self._names[channel_record.id] = channel_record.topic
                topic = _topic(channel_record, self._schemas.get(channel_record.schema_id))
                self._topics.setdefault(topic.name, topic)
        except (McapError, struct.error, UnicodeDecodeError) as error:
            raise DamagedError(f"a topic cannot be read: {str(error) or type(error).__name__}") from error


def _data_size(body: bytes, begin: int) -> int:
    """Return the length of the content of a chunk, which stands before the content."""
    return int.from_bytes(body[begin - 8 : begin], "little")


def _frame(head: bytes, left: int) -> tuple[int, int]:
    """Return kind and length of a record."""
    if len(head) < _FRAME.size:
        raise DamagedError("it ends within a record")
    kind, size = _FRAME.unpack(head)
    if kind == 0:  # as where a disk has lost a block
        raise DamagedError("there are zeros instead of a record")
    return kind, size


def _read(file: IO[bytes], size: int) -> bytes:
    if size > LONGEST:
        raise DamagedError(f"a record has {size} bytes, more than {LONGEST}")
    return file.read(size)


def _topic(channel: Channel, schema: Schema | None) -> Topic:
    return Topic(
        channel.topic,
        schema.name if schema else "",
        schema.data.decode() if schema else "",
        schema.encoding if schema else "",
        channel.metadata.get("topic_type_hash", ""),
        read_qos(channel.metadata.get("offered_qos_profiles", "")),
        channel.message_encoding,
    )
