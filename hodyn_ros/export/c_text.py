"""Names, numbers and words as C99 and C++ both read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import inf
from textwrap import wrap

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.lie.se3 import Array

WIDTH = 110
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")
_LONGEST_NAME = 63


def checked_name(name: str) -> str:
    """Return a name that functions and files may start with; raise InputError for any other."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise InputError(
            f"the name {name!r} cannot start a C function; use at most {_LONGEST_NAME} letters, digits and "
            "single underscores between them, a letter first"
        )
    return name


def name_from(text: str) -> str:
    """Make such a name from the name of a robot."""
    name = "_".join(re.findall(r"[A-Za-z0-9]+", text))[:_LONGEST_NAME].rstrip("_")
    return name if name[:1].isalpha() else f"robot_{name}"[:_LONGEST_NAME].rstrip("_")


def number(value: float) -> str:
    """Write a double so that a compiler reads the very same one."""
    return "HUGE_VAL" if value == inf else repr(float(value))


def string(text: str) -> str:
    """Write a string literal, as bytes of UTF-8 where it is not plain ASCII."""
    plain = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()]
    return f'"{"".join(plain)}"'


def comment(text: str) -> str:
    """Make words from outside safe within a comment: they may neither end it nor look like another."""
    plain = " ".join(text.encode("ascii", "backslashreplace").decode().split())
    for joined, apart in (("*/", "* /"), ("/*", "/ *"), ("??", "? ?")):
        while joined in plain:
            plain = plain.replace(joined, apart)
    return "".join(c for c in plain if c.isprintable())


def comment_block(paragraphs: Sequence[str]) -> list[str]:
    """Write a comment, its paragraphs wrapped; those indented stay whole, empty ones part the others."""
    lines: list[str] = []
    for paragraph in paragraphs:
        text = comment(paragraph)
        if paragraph.startswith(" ") or not paragraph:
            lines.append(f" *   {text}".rstrip())
        else:
            lines += [f" * {line}" for line in wrap(text, WIDTH - 3, break_long_words=False)]
    return ["/*", *lines, " */"]


def table(name: str, rows: Array) -> list[str]:
    """Write a table of numbers, a row of the array at a time."""
    values = np.atleast_2d(rows)
    lines = [f"static const double {name}[{len(values)}][{values.shape[1]}] = {{"]
    for row in values:
        lines += ["  {", *filled((number(x) for x in row), "    "), "  },"]
    return [*lines, "};"]


def vector(name: str, values: Sequence[float] | Array) -> list[str]:
    """Write a vector of numbers."""
    return [
        f"static const double {name}[{len(values)}] = {{",
        *filled((number(x) for x in values), "  "),
        "};",
    ]


def filled(items: Iterable[str], indent: str) -> list[str]:
    """Set items that contain no blanks in lines, with commas between them."""
    return wrap(
        ", ".join(items),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
