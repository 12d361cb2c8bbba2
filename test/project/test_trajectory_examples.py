"""The examples in the docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = [
    "lie.jets",
    *(f"trajectory.{name}" for name in ("base", "easing", "harmonic")),
    *(f"trajectory.splines.{name}" for name in ("bernstein", "piecewise", "spline", "waypoints")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"hodyn_ros.{name}"))
    assert result.attempted
    assert not result.failed
