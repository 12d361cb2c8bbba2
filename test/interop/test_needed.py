"""Libraries that are missing are named, with the extra that brings them."""

from __future__ import annotations

import sys

import pytest

from hodyn_ros import InputError
from hodyn_ros.extras import needed


@pytest.mark.parametrize("library", ["casadi", "jax", "torch", "daqp"])
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"daqp": "mpc"}.get(library, library)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"pip install {library}, or hodyn_ros\[{extra}\]"):
        needed(library)


def test_what_is_there_is_returned() -> None:
    assert needed("json") is sys.modules["json"]
