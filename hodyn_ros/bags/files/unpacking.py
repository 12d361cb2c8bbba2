"""Unpack what is compressed in a bag, no more than a computer can hold: bags hold bytes of strangers."""

from __future__ import annotations

import shutil
from io import BytesIO
from pathlib import Path
from typing import IO

import zstandard
from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

from hodyn_ros.bags.messages import DamagedError

LONGEST = 256 * 2**20  # [bytes] the longest part of a file that is taken into memory at once
_RATIO = 200  # by which a whole file may grow; motions and torques shrink to a third at best
_ZSTD = b"\x28\xb5\x2f\xfd"  # what begins like this is packed; messages (CDR) begin with a zero


def unpacked(data: bytes, compression: str, size: int) -> bytes:
    """Return `size` bytes that are packed as `compression` says; raises DamagedError."""
    if size > LONGEST:
        raise DamagedError(f"a part unpacks to {size} bytes, more than {LONGEST}")
    if compression == "":
        result = data
    elif compression == "zstd":
        result = _from_zstd(data, size)
    elif compression == "lz4":
        try:
            result = LZ4FrameDecompressor().decompress(data, max_length=size + 1)
        except RuntimeError as error:
            raise DamagedError(f"a part cannot be unpacked: {error}") from error
    else:
        raise DamagedError(f"a part is packed with {compression!r}, which is not known")
    if len(result) != size:
        raise DamagedError(f"a part unpacks to {len(result)} bytes instead of {size}")
    return result


def unpacked_message(data: bytes) -> bytes:
    """Return a message as it was before a recorder has compressed it, if it has."""
    if not data.startswith(_ZSTD):
        return data
    result = _from_zstd(data, LONGEST)
    if len(result) > LONGEST:
        raise DamagedError(f"a message unpacks to more than {LONGEST} bytes")
    return result


def unpack_file(path: Path, folder: Path) -> Path:
    """Unpack a file with the suffix .zstd into a folder; raises DamagedError."""
    most = LONGEST + _RATIO * path.stat().st_size
    out = folder / path.stem
    try:
        with path.open("rb") as packed, out.open("wb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(packed)
            while part := reader.read(2**20):
                file.write(part)
                if file.tell() > most:
                    raise DamagedError(f"it unpacks to more than {_RATIO} times its size")
    except zstandard.ZstdError as error:
        raise DamagedError(f"it cannot be unpacked: {error}; zstd -d may unpack a part of it") from error
    shutil.copystat(path, out)
    return out


def _from_zstd(data: bytes, most: int) -> bytes:
    """Return what is packed, and no more than a byte beyond `most`."""
    source: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(BytesIO(data))
    parts, left = [], most + 1
    try:
        # in pieces: the length that the data claim is no reason to ask for memory
        while left > 0 and (part := source.read(min(left, 2**20))):
            parts.append(part)
            left -= len(part)
    except zstandard.ZstdError as error:
        raise DamagedError(f"a part cannot be unpacked: {error}") from error
    return b"".join(parts)
