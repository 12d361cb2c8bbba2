from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hodyn_ros import share
from hodyn_ros.errors import InputError


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A prefix that ships a panda.yaml and an extra.yaml."""
    folder = tmp_path / "prefix" / "share" / "hodyn_ros" / "config"
    folder.mkdir(parents=True)
    (folder / "panda.yaml").write_text("shipped: here")
    (folder / "extra.yaml").write_text("shipped: here")
    return tmp_path / "prefix"


def test_a_shipped_file_is_found() -> None:
    assert share.find("config", "panda.yaml").read_text().startswith("# Franka Emika Panda")


def test_the_ament_prefix_comes_first(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/not/there:{prefix}")
    assert share.find("config", "panda.yaml") == prefix / "share" / "hodyn_ros" / "config" / "panda.yaml"


def test_the_python_prefix_comes_before_the_sources(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    assert share.find("config", "panda.yaml") == prefix / "share" / "hodyn_ros" / "config" / "panda.yaml"


def test_a_path_that_exists_is_returned_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "panda.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert share.find("config", "panda.yaml") == Path("panda.yaml")
    assert share.find("config", tmp_path / "panda.yaml") == tmp_path / "panda.yaml"


def test_an_unknown_name_is_refused_with_what_there_is(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    with pytest.raises(InputError, match=r"'pandda\.yaml'.*config/; did you mean 'panda\.yaml'\?"):
        share.find("config", "pandda.yaml")
    with pytest.raises(InputError, match=r"'unlike'.*config/; it ships: .*extra\.yaml, .*panda\.yaml"):
        share.find("config", "unlike")
    with pytest.raises(InputError, match="ships: none"):
        share.find("nothing_of_this_kind", "panda.yaml")
