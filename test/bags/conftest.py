"""Both storages of bags."""

import pytest


@pytest.fixture(params=("mcap", "sqlite3"))
def storage(request: pytest.FixtureRequest) -> str:
    """The storage of a bag; a test of it is run for each."""
    return str(request.param)
