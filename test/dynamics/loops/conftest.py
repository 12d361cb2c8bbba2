"""Robots with loops whose laws are called with numbers in place of code, which takes seconds to compile."""

from collections.abc import Iterator

import pytest

from hodyn_ros.dynamics.loops import grounded


@pytest.fixture
def with_numbers() -> Iterator[pytest.MonkeyPatch]:
    """Let no call compile until this is undone; that code finds the same, tests of either say."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grounded, "compiles", lambda *_, **__: False)
        yield patched
