"""Numbers as LLVM writes them."""

from __future__ import annotations

import struct


def literal(number: float) -> str:
    """Write a double without losing a bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(number)))[0]:016X}"


def splat(number: float, lanes: int) -> str:
    """Write a vector of `lanes` equal doubles."""
    return "<" + ", ".join([f"double {literal(number)}"] * lanes) + ">"
