"""Libraries that are missing are named, with the extra that brings them."""

import sys
from importlib import import_module

import pytest
from refusals import refused

from hodyn_ros.extras import needed


@pytest.mark.parametrize("library", ["casadi", "jax", "torch", "daqp", "lerobot"])
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"daqp": "mpc"}.get(library, library)
    monkeypatch.setitem(sys.modules, library, None)
    refused(lambda: needed(library), f"pip install {library}, or hodyn_ros[{extra}]")


def test_the_step_of_lerobot_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lerobot", None)
    monkeypatch.delitem(sys.modules, "hodyn_ros.interop.lerobot", raising=False)
    with pytest.raises(ImportError, match=r"pip install lerobot, or hodyn_ros\[lerobot\]"):
        import_module("hodyn_ros.interop.lerobot")


def test_what_is_there_is_returned() -> None:
    assert needed("json") is sys.modules["json"]
