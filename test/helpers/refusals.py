"""Bad input in tables: what is wrong, the call, and the words by which its error helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hodyn_ros import InputError

Row = tuple[Any, ...]
"""A call, the words of its error in their order (`...` for any between), and its type if no InputError."""


def rows(table: Mapping[str, Row]) -> pytest.MarkDecorator:
    """Give a test each row of a table as `call`, `words` and `error`."""
    whole = [(*row, InputError)[:3] for row in table.values()]
    return pytest.mark.parametrize(("call", "words", "error"), whole, ids=list(table))


def refused(call: Callable[[], object], words: str, error: type[Exception] = InputError) -> Any:
    """Return the error of a call, which is of this type and says these words on one line."""
    pattern = ".*".join(re.escape(part.strip()) for part in words.split("..."))
    with pytest.raises(error, match=pattern) as caught:
        call()
    assert "\n" not in str(caught.value)
    return caught.value


def assert_refused(*table: Any) -> None:
    """Make every call of a table of rows `(call, words...)` or `(error, call, words...)`, or of one such row.

    Each has to raise that very error, an InputError where none is named, in one line that holds all words.
    """
    accepted = []
    for row in table if isinstance(table[0], tuple) else [table]:
        error, call, *words = row if isinstance(row[0], type) else (InputError, *row)
        try:
            call()
        except Exception as found:  # whatever else comes is shown below
            said = f"{type(found).__name__}: {found}"
            if type(found) is error and "\n" not in said and all(word in said for word in words):
                continue
        else:
            said = "nothing was raised"
        accepted.append(f"{error.__name__} with {words} wanted, found {said}")
    assert not accepted, "\n".join(accepted)
