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
