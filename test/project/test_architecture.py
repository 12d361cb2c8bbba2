"""Folders import from those below them only, as docs/architecture.md draws them."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from imports import imports_of
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


@cache
def modules_of(path: Path) -> set[str]:
    """Return the modules of the package that a file imports from, those for type checkers alone as well."""
    names: set[str] = set()
    for node in imports_of(path, for_types=True):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                names.add(name if name in MODULES else str(node.module))
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names & set(MODULES)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(SOURCES.rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """Return the folders of the package that a file imports from."""
    parts = (module.split(".") for module in modules_of(path))
    return {part[1] for part in parts if len(part) > 1}


def test_every_folder_has_its_place() -> None:
    folders = {path.name for path in SOURCES.iterdir() if (path / "__init__.py").is_file()}
    assert folders == set(LEVEL)


def test_imports_run_one_way() -> None:
    wrong = []
    for path in MODULES.values():
        own = path.relative_to(SOURCES).parts[0]
        if own == "__init__.py":
            continue  # hands on what others ask for
        level = LEVEL.get(own, -1)  # what all share stands below all folders: errors, checks of arrays
        for folder in imported(path):
            if folder in LEVEL and folder != own and LEVEL[folder] >= level:
                wrong.append(f"{path.relative_to(SOURCES)} imports from {folder}")
    assert not wrong


def test_no_file_leads_back_to_itself() -> None:
    """Nor do imports within functions, or for type checkers alone, close a circle."""
    graph = {module: modules_of(path) for module, path in MODULES.items()}
    circle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert not circle, " imports from ".join(reversed(circle))


def test_what_keys_of_machine_code_are_made_from_is_whole() -> None:
    """Functions that are compiled see files alone that a change of makes another key."""
    files = [path for folder in FOLDERS for path in (SOURCES / folder).rglob("*.py")]
    for path in [*files, *SOURCES.glob("*.py")]:
        if path != SOURCES / "__init__.py":  # which hands on what others ask for
            assert {folder for folder in imported(path) if folder in LEVEL} <= set(FOLDERS), path


def test_no_timer_waits_for_a_clock_that_was_set_back() -> None:
    """As those of rclpy do: for an hour, or while simulated time stands."""
    own = {str(path.relative_to(SOURCES)) for path in MODULES.values() if "create_timer(" in path.read_text()}
    assert own == {"ros/streams/fixed_rate.py"}


def test_no_folder_is_a_heap() -> None:
    for folder in [path.parent for path in SOURCES.rglob("__init__.py")]:
        assert len(list(folder.glob("*.py"))) <= 18, folder.name


def test_the_table_of_lines_is_true() -> None:
    """Within a tenth: it says where the bulk is."""
    rows = re.findall(
        r"^\| `([^`]+)` \| ([\d,]+) \|", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE
    )
    assert len(rows) == 14
    for files, said in rows:
        paths = SOURCES.glob(f"{files}/*.py" if files.endswith("**") else f"{files}.py")
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        assert abs(lines - int(said.replace(",", ""))) <= 0.1 * lines, f"{files} has {lines} lines"
