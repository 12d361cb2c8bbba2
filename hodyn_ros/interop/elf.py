"""From the object code of one module to a shared object, without a linker: x86-64, ELF.

System V ABI, AMD64 supplement (2023), chapters 4 and 5. What the code calls from elsewhere, such as the slow
way of sine and cosine, goes through a stub and a slot that the dynamic linker fills.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_PAGE = 0x1000
_ALLOCATED, _WRITABLE = 2, 1  # flags of sections
_BITS, _SYMBOLS, _RELOCATIONS, _EMPTY = 1, 2, 4, 8  # kinds of sections
# kinds of relocations of x86-64
_PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX = 2, 4, 9, 41, 42
_GLOB_DAT, _RELATIVE = 6, 8
_STUB = 16  # bytes of one
_HEADERS = 4  # of the program


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Symbol(NamedTuple):
    name: str
    section: int  # 0: defined elsewhere
    value: int


@dataclass
class _Object:
    """What object code holds."""

    data: bytes
    sections: list[_Section]
    symbols: list[_Symbol]

    @classmethod
    def read(cls, data: bytes) -> _Object:
        (offset,) = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        sections = [
            _Section(*struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size)) for i in range(count)
        ]
        symbols = []
        for table in (one for one in sections if one.kind == _SYMBOLS):
            names = sections[table.link].offset
            for place in range(table.offset, table.offset + table.size, 24):
                name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, place)
                end = data.index(b"\0", names + name)
                symbols.append(_Symbol(data[names + name : end].decode(), section, value))
        return cls(data, sections, symbols)

    def relocations(self) -> Iterable[tuple[int, int, int, int, int]]:
        """Give section, offset in it, symbol, kind and addend of every relocation of what is loaded."""
        for table in self.sections:
            if table.kind == _RELOCATIONS and self.is_loaded(table.info):
                for place in range(table.offset, table.offset + table.size, 24):
                    offset, info, addend = struct.unpack_from("<QQq", self.data, place)
                    yield table.info, offset, info >> 32, info & 0xFFFFFFFF, addend

    def is_loaded(self, number: int) -> bool:
        """Whether a section belongs into memory; tables for exceptions, which code has none of, do not."""
        section = self.sections[number]
        kind = section.kind in (_BITS, _EMPTY)
        return kind and bool(section.flags & _ALLOCATED) and not self._name(section).startswith(".eh_frame")

    def _name(self, section: _Section) -> str:
        (index,) = struct.unpack_from("<H", self.data, 62)
        start = self.sections[index].offset + section.name
        return self.data[start : self.data.index(b"\0", start)].decode()


def shared_object(code: bytes, exported: Sequence[str], needed: Sequence[str] = ("libm.so.6",)) -> bytes:
    """Return a shared object with the functions `exported` of object code, which is position-independent.

    `needed`: shared objects that what the code calls from elsewhere is looked up in. Raises ValueError for
    code that refers to something in a way that is not foreseen.
    """
    module = _Object.read(code)
    relocations = list(module.relocations())
    elsewhere = [
        number
        for number in dict.fromkeys(symbol for _, _, symbol, _, _ in relocations)
        if module.symbols[number].section == 0
    ]
    by_slot = (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX)
    slots = list(dict.fromkeys([*elsewhere, *(s for _, _, s, kind, _ in relocations if kind in by_slot)]))
    defined = {symbol.name: number for number, symbol in enumerate(module.symbols) if symbol.section}
    strings = _Strings()
    names = [*(module.symbols[number].name for number in elsewhere), *exported]
    libraries = [strings.place(name) for name in needed]
    name_places = [strings.place(name) for name in names]

    # the first segment: headers, tables of the dynamic linker, code and constants
    image = bytearray(64 + _HEADERS * 56)
    hash_place = _reserve(image, 8, 4 * (3 + len(names) + 1))
    symbol_place = _reserve(image, 8, 24 * (len(names) + 1))
    string_place = _reserve(image, 1, len(strings.data))
    fixed_place = _reserve(image, 8, 24 * len(slots))
    loaded = [number for number in range(len(module.sections)) if module.is_loaded(number)]
    places: dict[int, int] = {}

    def load(numbers: Iterable[int]) -> None:
        for number in numbers:
            one = module.sections[number]
            places[number] = _reserve(image, max(one.align, 1), one.size)
            if one.kind == _BITS:
                start = places[number]
                image[start : start + one.size] = module.data[one.offset : one.offset + one.size]

    load(number for number in loaded if not module.sections[number].flags & _WRITABLE)
    stub_place = _reserve(image, 16, _STUB * len(elsewhere))
    end_of_code = len(image)
    # the second one, which is written to: slots, data, and what the dynamic linker reads first
    _reserve(image, _PAGE, 0)
    start_of_data = len(image)
    entries = 6 + len(needed) + 3 * bool(slots)
    dynamic_place = _reserve(image, 8, 16 * entries)
    slot_place = _reserve(image, 8, 8 * len(slots))
    load(number for number in loaded if module.sections[number].flags & _WRITABLE)

    def address(number: int) -> int:
        symbol = module.symbols[number]
        return places[symbol.section] + symbol.value

    slot_of = {number: slot_place + 8 * i for i, number in enumerate(slots)}
    stub_of = {number: stub_place + _STUB * i for i, number in enumerate(elsewhere)}
    for number, stub in stub_of.items():  # jmp *slot(%rip)
        image[stub : stub + 6] = b"\xff\x25" + struct.pack("<i", slot_of[number] - (stub + 6))
    for section, offset, number, kind, addend in relocations:
        at = places[section] + offset
        if kind in by_slot:
            target = slot_of[number]
        elif kind in (_PC32, _PLT32):
            target = stub_of[number] if number in stub_of else address(number)
        else:
            raise ValueError(f"relocation {kind} of {module.symbols[number].name!r} is not foreseen")
        struct.pack_into("<i", image, at, target + addend - at)

    symbols = [(0, 0, 0, 0)]
    symbols += [(place, 0x12, 0, 0) for place in name_places[: len(elsewhere)]]
    for name, place in zip(exported, name_places[len(elsewhere) :]):
        symbols.append((place, 0x12, 1, address(defined[name])))
    for i, (place, info, section, value) in enumerate(symbols):
        struct.pack_into("<IBBHQQ", image, symbol_place + 24 * i, place, info, 0, section, value, 0)
    # all names in one chain: there are few
    chain = [*range(2, len(symbols)), 0]
    struct.pack_into(f"<{4 + len(chain)}I", image, hash_place, 1, len(symbols), min(1, len(names)), 0, *chain)
    image[string_place : string_place + len(strings.data)] = strings.data
    for i, number in enumerate(slots):
        own, slot = fixed_place + 24 * i, slot_of[number]
        if number in stub_of:
            which = 1 + elsewhere.index(number)
            struct.pack_into("<QQq", image, own, slot, which << 32 | _GLOB_DAT, 0)
        else:
            struct.pack_into("<QQq", image, own, slot, _RELATIVE, address(number))
    dynamic = [(1, place) for place in libraries]
    dynamic += [(4, hash_place), (5, string_place), (6, symbol_place), (10, len(strings.data)), (11, 24)]
    dynamic += [(7, fixed_place), (8, 24 * len(slots)), (9, 24)] if slots else []
    dynamic.append((0, 0))
    for i, pair in enumerate(dynamic):
        struct.pack_into("<QQ", image, dynamic_place + 16 * i, *pair)

    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    struct.pack_into(
        "<16sHHIQQQIHHHHHH", image, 0, identity, 3, 62, 1, 0, 64, 0, 0, 64, 56, _HEADERS, 64, 0, 0
    )
    size = len(image) - start_of_data
    headers = [
        (1, 5, 0, 0, 0, end_of_code, end_of_code, _PAGE),
        (1, 6, start_of_data, start_of_data, start_of_data, size, size, _PAGE),
        (2, 6, dynamic_place, dynamic_place, dynamic_place, 16 * entries, 16 * entries, 8),
        (0x6474E551, 6, 0, 0, 0, 0, 0, 16),  # a stack that holds no code
    ]
    for i, header in enumerate(headers):
        struct.pack_into("<IIQQQQQQ", image, 64 + 56 * i, *header)
    return bytes(image)


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(1)

    def place(self, name: str) -> int:
        """Append a string, and return where it begins."""
        start = len(self.data)
        self.data += name.encode() + b"\0"
        return start


def _reserve(image: bytearray, align: int, size: int) -> int:
    """Append zeros from a multiple of `align` on; return where they begin."""
    image += bytes(-len(image) % align)
    start = len(image)
    image += bytes(size)
    return start
