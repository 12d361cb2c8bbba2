"""Examples of the calls of `Robot`, below their docstrings in the reference."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

PAGE = Path(__file__).with_name("robot_examples.md")
_SECTION = re.compile(r"^## (\w+)\n+```py(?:thon)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def preparation() -> str:
    """Return the code that all examples share."""
    match = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


@cache
def robot_examples() -> dict[str, str]:
    """Return the code of each example by the name of its call."""
    return {match[1]: match[2].rstrip() for match in _SECTION.finditer(PAGE.read_text(encoding="utf-8"))}


def with_example(name: str, lines: list[str]) -> list[str]:
    """Return a docstring, followed by the example of a call of `Robot` where `name` is that of one."""
    owner, _, call = name.rpartition(".")
    code = robot_examples().get(call) if owner.endswith("Robot") else None
    if code is None:
        return lines
    return [*lines, "", ".. code-block:: python", "", *("   " + line for line in code.splitlines()), ""]
