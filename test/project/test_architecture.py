"""Folders import from those below them only, as docs/architecture.md draws them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from places import ROOT

from hodyn_ros.codegen.keys import FOLDERS

SOURCES = ROOT / "hodyn_ros"
LAYERS = (
    ("cli",),
    ("demo", "replay", "view", "interop"),
    ("nodes", "export", "launching"),
    ("ros", "learning"),
    ("simulation", "identification", "streaming"),
    ("planning", "guard"),
    ("observers",),
    ("control",),
    ("feedforward",),
    ("dynamics",),
    ("actuation", "trajectory", "bags"),
    ("engine",),
    ("formulations",),
    ("model",),
    ("lie",),
    ("codegen",),
)
LEVEL = {name: level for level, names in enumerate(reversed(LAYERS)) for name in names}


def imported(path: Path) -> Iterator[str]:
    """Yield the folders of the package that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hodyn_ros"):
            names = [node.module or ""]
            if names == ["hodyn_ros"]:
                names = [f"hodyn_ros.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("hodyn_ros")]
        else:
            continue
        yield from (name.split(".")[1] for name in names if "." in name)


def test_every_folder_has_its_place() -> None:
    folders = {path.name for path in SOURCES.iterdir() if (path / "__init__.py").is_file()}
    assert folders == set(LEVEL)


def test_imports_run_one_way() -> None:
    wrong = []
    for path in sorted(SOURCES.rglob("*.py")):
        own = path.relative_to(SOURCES).parts[0]
        if own not in LEVEL:
            continue  # what all share: errors, checks of arrays, files that are shipped
        for folder in imported(path):
            if folder in LEVEL and folder != own and LEVEL[folder] >= LEVEL[own]:
                wrong.append(f"{path.relative_to(SOURCES)} imports from {folder}")
    assert not wrong


def test_what_keys_of_machine_code_are_made_from_is_whole() -> None:
    """Functions that are compiled see files alone that a change of makes another key."""
    files = [path for folder in FOLDERS for path in (SOURCES / folder).rglob("*.py")]
    for path in [*files, *SOURCES.glob("*.py")]:
        if path != SOURCES / "__init__.py":  # which hands on what others ask for
            assert {folder for folder in imported(path) if folder in LEVEL} <= set(FOLDERS), path


def test_no_folder_is_a_heap() -> None:
    for folder in [path.parent for path in SOURCES.rglob("__init__.py")]:
        assert len(list(folder.glob("*.py"))) <= 18, folder.name
