"""Bad input in tables: what is wrong, the call, and how its error helps: by its words, or by its fields."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from hodyn_ros import InputError, NotFiniteError, ShapeError, UnknownNameError

Row = tuple[Any, ...]
"""A call, the words of its error in their order (`...` for any between), and its type where it needs one.

In place of words, `like` has the type and fields: of errors that make their words of them, which
`test_errors_that_make_their_own_words` holds.
"""


class Like(NamedTuple):
    """An error by its type and some of its fields."""

    kind: type[Exception]
    fields: dict[str, Any]

    def is_of(self, error: Exception) -> bool:
        """Tell whether an error has these fields; 1, 1.0 and True are different things."""
        return all(repr(vars(error).get(name)) == repr(value) for name, value in self.fields.items())


def like(kind: type[Exception], **fields: Any) -> Like:
    """Return what an error has to be; fields that are left out, or None, may be any."""
    return Like(kind, {name: value for name, value in fields.items() if value is not None})


def misshapen(name: str | None, found: tuple[int, ...] | None = None, shape: str | None = None) -> Like:
    return like(ShapeError, name=name, found=found, shape=shape)


def not_finite(name: str | None, index: tuple[int, ...] | None = None) -> Like:
    return like(NotFiniteError, name=name, index=index)


def unknown(what: str, name: object) -> Like:
    return like(UnknownNameError, what=what, name=name)


def refused(call: Callable[[], object], words: str | Like, error: type[Exception] = InputError) -> Any:
    """Return the error of a call, which is of this very type and says these words on one line."""
    wanted = words if isinstance(words, Like) else Like(error, {})
    pattern = ".*" if isinstance(words, Like) else ".*".join(re.escape(w.strip()) for w in words.split("..."))
    said = "nothing was raised"
    try:
        call()
    except Exception as found:  # whatever else comes is shown
        if type(found) is wanted.kind and wanted.is_of(found) and re.fullmatch(f".*{pattern}.*", str(found)):
            return found
        said = f"{type(found).__name__}: {found}"
    raise AssertionError(f"{wanted.kind.__name__} with {wanted.fields or words!r} wanted, found {said}")


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
