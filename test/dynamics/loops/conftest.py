"""Robots with loops whose laws are called with numbers in place of code, which takes seconds to compile."""

from collections.abc import Iterator

import pytest
from sweeps import some

from hodyn_ros.dynamics.loops import grounded


@pytest.fixture
def with_numbers() -> Iterator[pytest.MonkeyPatch]:
    """Let no call compile until this is undone; that code finds the same, tests of either say."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grounded, "compiles", lambda *_, **__: False)
        yield patched


@pytest.fixture(params=some((False, True), False), ids=lambda compiled: "code" if compiled else "numbers")
def either_way(request: pytest.FixtureRequest, with_numbers: pytest.MonkeyPatch) -> bool:
    """Let calls be computed with numbers, in thorough runs by code as well; return whether by code."""
    if request.param:
        with_numbers.undo()
    return bool(request.param)
