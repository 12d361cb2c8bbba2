import sys
from pathlib import Path

import pytest
from places import ROOT
from refusals import assert_refused

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


def beside(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the code be installed in a prefix; return the files there."""
    package = prefix / "lib" / "python3.12" / "site-packages" / "hodyn_ros"
    package.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(share, "__file__", str(package / "share.py"))
    return prefix / "share" / "hodyn_ros"


def test_files_of_a_source_tree_come_before_those_that_are_installed(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    monkeypatch.setattr(sys, "prefix", str(prefix))
    assert share.find("config", "panda.yaml") == ROOT / "config" / "panda.yaml"
    assert share.find("config", "extra.yaml") == prefix / "share" / "hodyn_ros" / "config" / "extra.yaml"


def test_links_to_a_source_tree_are_followed(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As colcon's --symlink-install sets them."""
    beside(prefix, monkeypatch)
    (linked := prefix / "lib" / "python3.12" / "site-packages" / "hodyn_ros").rmdir()
    linked.symlink_to(ROOT / "hodyn_ros")
    assert share.find("config", "panda.yaml") == ROOT / "config" / "panda.yaml"


@pytest.mark.parametrize("other", ["ament", "python"])
def test_installed_code_has_the_files_of_its_own_prefix(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """A wheel beside another version in /opt/ros, or one that pip has installed for a user."""
    own = beside(tmp_path / "mine", monkeypatch) / "config"
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/not/there:{prefix}" if other == "ament" else "")
    monkeypatch.setattr(sys, "prefix", str(prefix))
    shipped = prefix / "share" / "hodyn_ros" / "config"
    assert share.find("config", "panda.yaml") == shipped / "panda.yaml"  # it ships nothing itself
    own.mkdir(parents=True)
    (own / "panda.yaml").write_text("shipped: mine")
    assert share.find("config", "panda.yaml") == own / "panda.yaml"
    assert share.find("config", "extra.yaml") == shipped / "extra.yaml"


def test_definitions_of_messages_are_those_that_are_compiled(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    folder = prefix / "share" / "hodyn_ros" / "msg"
    folder.mkdir()
    (folder / "DesiredMotion.msg").touch()
    assert share.find("msg", "DesiredMotion.msg") == folder / "DesiredMotion.msg"


def test_a_path_that_exists_is_returned_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "panda.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert share.find("config", "panda.yaml") == Path("panda.yaml")
    assert share.find("config", tmp_path / "panda.yaml") == tmp_path / "panda.yaml"


def test_an_unknown_name_is_refused_with_what_there_is(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    assert_refused(
        (lambda: share.find("config", "pandda.yaml"),
         "'pandda.yaml' ... config/; did you mean 'panda.yaml'?"),
        (lambda: share.find("config", "unlike"),
         "'unlike' ... config/; it ships: ... extra.yaml, ... panda.yaml"),
        (lambda: share.find("nothing_of_this_kind", "panda.yaml"), "ships: none"),
    )  # fmt: skip


def test_the_text_of_a_urdf_is_no_name() -> None:
    """As `Command(["xacro ", ...])` of a launch file gives it: longer than names of files can be."""
    urdf = "<?xml version='1.0'?>\n" + 1000 * "<link/>"
    with pytest.raises(InputError, match="write it to a file") as refused:
        share.find("config", urdf)
    assert len(str(refused.value)) < 250
