"""The run of the tests itself: workers take whole files."""

from __future__ import annotations

import pytest


def test_a_worker_knows_the_file_that_a_test_belongs_to(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("no workers that take groups; `make test` has them")
    assert request.node.nodeid.endswith("@test_workers")
