"""Tables and plain text in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_<>|\[\]`])")


def plain(text: str) -> str:
    """Escape what Markdown would take for markup, and join lines."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def prose(text: str) -> str:
    """Escape all but *emphasis* and code between single backticks."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\_<>|\[\]])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def code(text: object) -> str:
    """Return a text as code, or nothing for an empty one."""
    return f"`{text}`" if str(text) else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"
