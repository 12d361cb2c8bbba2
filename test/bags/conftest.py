"""Both storages of bags."""

from __future__ import annotations

import pytest


@pytest.fixture(params=("mcap", "sqlite3"))
def storage(request: pytest.FixtureRequest) -> str:
    """The storage of a bag; a test of it is run for each."""
    return str(request.param)
