"""The documents: every Python block runs, in the order of the page, and every link leads somewhere.

Commands of tutorials are run where they need no ROS; others are held against what there is.
"""

import doctest
import importlib.util
import os
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
import warm_python
from command_line import Hodyn
from places import ROOT
from quadruped import quadruped
from sweeps import THOROUGH

from hodyn_ros.cli.app import app

WRITTEN = [
    path for folder in ("", "tutorials/", "developing/") for path in ROOT.glob(f"docs/{folder}*.md")
]  # docs/reference is generated
PAGES = sorted(
    [*ROOT.glob("*.md"), *WRITTEN, *ROOT.glob("config/*.md"), ROOT / "tools/reference/robot_examples.md"]
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(
    r"(?:# |<!-- )([\w.]+\.(?:yaml|urdf|xml))(?: -->)?\n"
)  # first line of a block that is a file
LINK = re.compile(r"\]\(([^)\s]+)\)")
EXTRAS = ("casadi", "jax", "torch", "lerobot", "zenoh")  # blocks that name one run where it is installed
STAND_INS = {"quadruped.md": ("go2.urdf", quadruped)}  # for files that pages take from elsewhere


def blocks(page: Path, only: str = "") -> list[tuple[int, str, str]]:
    """Return line numbers, languages and texts of the blocks of a page, or those in one language."""
    text = page.read_text(encoding="utf-8")
    found = [(text.count("\n", 0, match.start(2)) + 1, match[1], match[2]) for match in BLOCK.finditer(text)]
    return [block for block in found if only in ("", block[1])]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_python(page: Path, line: int, text: str, names: dict[str, Any]) -> None:
    """Run a block; one with >>> must print what is written below."""
    if "from launch" in text and importlib.util.find_spec("launch_ros") is None:
        compile(text, str(page), "exec")  # launch is not on PyPI
    elif ">>> " not in text:
        # empty lines in front, so that a traceback shows the line of the page
        exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)
    else:
        test = doctest.DocTestParser().get_doctest(text, names, name_of(page), str(page), line - 1)
        report: list[str] = []
        result = doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
        assert result.attempted
        assert not result.failed, "".join(report)
        names.update(test.globs)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_blocks_run(page: Path, hodyn: Hodyn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run Python, the blocks of a page sharing their names.

    In tutorials, which a user follows in a folder of their own, files are written and `hodyn` is run as well,
    but no command that needs an installed ROS 2, nor one on a bag that such a command records.
    """
    tutorial = page.parent.name == "tutorials"
    monkeypatch.chdir(tmp_path if tutorial else ROOT)
    names: dict[str, Any] = {"__name__": "__main__"}
    recorded: set[str] = set()  # bags of nodes that were not started
    if page.name in STAND_INS:
        file, text_of = STAND_INS[page.name]
        Path(file).write_text(text_of(), encoding="utf-8")
    for line, kind, text in blocks(page):
        if kind == "python" and any(name in text and not find_spec(name) for name in EXTRAS):
            continue
        if kind == "python":
            run_python(page, line, text, names)
        elif tutorial and (file := FILE.match(text)):
            Path(file[1]).write_text(text.removeprefix(file[0]), encoding="utf-8")
        elif "ros2 " in text:
            recorded |= set(re.findall(r"bag:=(\w+)", text))
        elif tutorial and kind == "bash" and not recorded & set(text.split()):
            for command in re.findall(r"^hodyn (.*)", text, re.MULTILINE):
                expected = re.search(r"# exit code (\d)", command)
                done = hodyn(*shlex.split(command, comments=True))
                code = int(expected[1]) if expected else 0
                assert done.returncode == code, f"hodyn {command}: {done.stderr}{done.stdout}"


def commands(start: str) -> list[tuple[str, str, list[str]]]:
    """Return page, subject and arguments of all commands `start SUBJECT ARGUMENTS...` in the pages."""
    found = []
    for page in PAGES:
        for _, kind, text in blocks(page):
            lines = text.replace("\\\n", " ").splitlines() if kind == "bash" else []
            for line in lines:
                if line.startswith(start):
                    subject, *rest = shlex.split(line.removeprefix(start), comments=True)
                    found.append((name_of(page), subject, rest))
    return found


def test_hodyn_commands_name_options_that_exist() -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = commands("hodyn ")
    assert len(found) > 10
    for page, command, given in found:
        options = {option for parameter in known[command].params for option in parameter.opts}
        unknown = {word for word in given if word.startswith("-")} - options
        assert not unknown, f"{page}: hodyn {command} has no {unknown}"


def test_launch_commands_name_files_and_their_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from reference.launch_files import launch_arguments

    found = commands("ros2 launch hodyn_ros ")
    assert len(found) > 5
    for page, file, given in found:
        known = {argument.name for argument in launch_arguments(ROOT / "launch" / file)} | {"--show-args"}
        names = {argument.partition(":=")[0] for argument in given}
        assert names <= known, f"{page}: {file} does not take {names - known}"


def test_run_commands_name_nodes_and_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rclpy", reason="no ROS 2 here")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from reference.parameters import nodes

    parameters = {node.__name__.rpartition(".")[2]: {s.name for s in node.SETTINGS} for node in nodes()}
    found = commands("ros2 run hodyn_ros ")
    assert len(found) > 3
    for page, node, given in found:
        if node.startswith("<"):
            continue
        assert node in parameters, f"{page}: there is no node {node}"
        names = {name.partition(":=")[0] for flag, name in zip(given, given[1:]) if flag == "-p"}
        unknown = names - parameters[node] - {"use_sim_time"}
        assert not unknown, f"{page}: {node} has no parameters {unknown}"
    for page, node, given in commands("ros2 param set ") + commands("ros2 param describe "):
        assert given[0] in parameters[node.rpartition("/")[2]], f"{page}: {node} {given[0]}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    local = [link.split("#")[0] for link in links if "://" not in link and not link.startswith("#")]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert not missing, f"{name_of(page)} links to {missing}"


@pytest.mark.skipif(not THOROUGH, reason="two seconds; make test-thorough runs it")
def test_every_picture_of_the_concepts_can_be_drawn_anew(tmp_path: Path) -> None:
    name = "concepts"
    command = ROOT / "examples" / f"{name}.py", "--out", tmp_path
    done = warm_python.run(*command, environment=os.environ, folder=ROOT, timeout=120.0)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"pictures/(concept-.*?\.png)", (ROOT / "docs" / "concepts.md").read_text("utf-8"))
    assert len(shown) == 6
    assert {path.name for path in tmp_path.iterdir()} == set(shown)


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [*WRITTEN, *ROOT.glob("docs/notebooks/*.ipynb")]
    written = {path.relative_to(ROOT / "docs").as_posix() for path in pages} - {"index.md"}
    links = LINK.findall(index)
    found = {link.split("#")[0] for link in links if "://" not in link}
    assert {link for link in found if not link.startswith("pictures/")} == written


def test_pages_are_found() -> None:
    assert ROOT / "docs" / "dynamics.md" in PAGES
    assert len(blocks(ROOT / "docs" / "dynamics.md", "python")) >= 10
