"""Libraries that are missing are named, with the extra that brings them."""

import sys
from importlib import import_module

import pytest
from refusals import refused

from hodyn_ros.extras import MissingExtra, needed


@pytest.mark.parametrize("library", ["casadi", "jax", "torch", "daqp", "lerobot"])
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"daqp": "mpc"}.get(library, library)
    monkeypatch.setitem(sys.modules, library, None)
    refused(lambda: needed(library), f"pip install {library}, or hodyn_ros[{extra}]", MissingExtra)


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("hodyn_ros.interop.lerobot", "lerobot", "lerobot"),
        ("hodyn_ros.bags.reader", "mcap", "bags"),
    ],
)
def test_a_module_that_needs_an_extra_says_so(
    module: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(module.rpartition(".")[0])]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf"pip install {library}, or hodyn_ros\[{extra}\]"):
        import_module(module)


def test_what_is_there_is_returned() -> None:
    assert needed("json") is sys.modules["json"]
