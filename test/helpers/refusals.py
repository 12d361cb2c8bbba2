"""Bad input, in one table a subject: what is wrong, the error that says so, and what its line has to name."""

from __future__ import annotations

from typing import Any

from hodyn_ros.errors import InputError


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
