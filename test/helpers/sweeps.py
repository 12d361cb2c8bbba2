"""How much of a sweep runs: with `make test` cases of every kind, with `make test-thorough` all of them."""

import os
from collections.abc import Iterable
from typing import Any, TypeVar

from hypothesis import Phase, settings

THOROUGH = os.environ.get("HODYN_TEST") == "thorough"

T = TypeVar("T")


def examples(count: int, shrink: bool = True, share: int = 3) -> Any:
    """Return settings for a search of so many examples, or of a third of them (`share`); without a clock.

    Where examples take long, as they compile a robot each, a failure is not made smaller: `shrink`.
    """
    phases = tuple(Phase) if shrink else (Phase.generate,)
    return settings(max_examples=count if THOROUGH else -(-count // share), deadline=None, phases=phases)


def some(every: Iterable[T], *few: T) -> list[T]:
    """Return all cases of a sweep, or the few that between them have all that can fail on its own."""
    found = list(every)
    assert all(case in found for case in few)
    return found if THOROUGH else list(few)
