"""Bad input in tables: what is wrong, the call, and the words by which its error helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hodyn_ros import InputError

Row = tuple[Any, ...]
"""A call, the words of its error in their order (`...` for any between), and its type where it needs one."""


def refused(call: Callable[[], object], words: str, error: type[Exception] = InputError) -> Any:
    """Return the error of a call, which is of this very type and says these words on one line."""
    pattern = ".*".join(re.escape(part.strip()) for part in words.split("..."))
    said = "nothing was raised"
    try:
        call()
    except Exception as found:  # whatever else comes is shown
        if type(found) is error and re.fullmatch(f".*{pattern}.*", str(found)):
            return found
        said = f"{type(found).__name__}: {found}"
    raise AssertionError(f"{error.__name__} with {words!r} wanted, found {said}")


def assert_refused(
    *table: Row | Mapping[str, Row],
    by: Callable[[Any], object] = lambda call: call(),
    error: type[Exception] = InputError,
) -> None:
    """Refuse each row of a table, where rows may have names; all that miss are shown.

    `by` makes the call of what a row begins with, where that is none; `error` is the type of rows without.
    """
    misses = []
    for part in table:
        for name, (given, words, *own) in part.items() if isinstance(part, Mapping) else [("", part)]:
            try:
                refused(partial(by, given), words, *(own or [error]))
            except AssertionError as miss:
                misses.append(f"{name}: {miss}" if name else str(miss))
    assert not misses, "\n".join(misses)
