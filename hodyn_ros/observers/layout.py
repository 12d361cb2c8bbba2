"""Where named vectors lie in a flat one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Sequence[Any]  # numbers, or scalars of the tracer


class Layout:
    """Named vectors one after the other in a flat one; those of length 0 may be left out.

    Attributes:
        size: Length of the flat one.
    """

    def __init__(self, **sizes: int) -> None:
        self._places: dict[str, slice] = {}
        self.size = 0
        for name, size in sizes.items():
            self._places[name] = slice(self.size, self.size + size)
            self.size += size

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> slice:
        return self._places[name]

    def unpack(self, row: Row) -> dict[str, list[Any]]:
        """Return the vectors of a flat one by name."""
        return {name: list(row[place]) for name, place in self._places.items()}

    def pack(self, vectors: Mapping[str, Row]) -> list[Any]:
        """Return the flat one of vectors by name."""
        row: list[Any] = []
        for name, place in self._places.items():
            vector = list(vectors.get(name, ()))
            if len(vector) != place.stop - place.start:
                raise ValueError(f"{name} holds {len(vector)} numbers for {place}")
            row += vector
        return row


def upper_places(size: int) -> list[tuple[int, int]]:
    """Return the places of a symmetric matrix from its diagonal on, row by row."""
    return [(a, b) for a in range(size) for b in range(a, size)]
