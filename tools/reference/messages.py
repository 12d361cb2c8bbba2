"""The reference of the messages, from the comments in msg/*.msg."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from reference.tables import code, plain, table

_FIELD = re.compile(
    r"^(?P<type>\S+)\s+(?P<name>\w+)\s*(?:=\s*(?P<value>[^#]*?))?\s*(?:#\s*(?P<comment>.*))?$"
)


@dataclass
class Field:
    """A field, or with `value` a constant."""

    type: str
    name: str
    value: str
    comment: str


def read_message(path: Path) -> list[str | Field]:
    """Return the paragraphs of comments and the fields of a message, in their order."""
    found: list[str | Field] = []
    joined = False  # whether the next line of comment goes on with the paragraph before
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip().removeprefix("#").strip()
        if line.startswith("#"):
            if text and joined and isinstance(found[-1], str):
                found[-1] += f" {text}"
            elif text:
                found.append(text)
            joined = bool(text)
            continue
        joined = False
        if not text:
            continue
        if line.lstrip().startswith("#") and found and isinstance(found[-1], Field):
            found[-1].comment += f" {text}"
            continue
        match = _FIELD.match(line)
        if match is None:
            raise ValueError(f"{path}: cannot read {line!r} as a field of a message")
        found.append(Field(**{key: value or "" for key, value in match.groupdict().items()}))
    return found


def message_page(folder: Path) -> str:
    """Return the page on all messages of a folder."""
    parts = ["# Messages", "Generated from the comments in `msg/`."]
    for path in sorted(folder.glob("*.msg")):
        parts.append(f"## {path.stem}")
        rows: list[list[str]] = []
        for item in [*read_message(path), ""]:
            if isinstance(item, Field):
                rows.append([code(item.name), code(item.type), code(item.value), plain(item.comment)])
                continue
            if rows:
                parts.append(table(["field", "type", "constant", "meaning"], rows))
                rows = []
            if item:
                parts.append(plain(item))
    return "\n\n".join(parts) + "\n"
