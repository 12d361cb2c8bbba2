"""The documentation: the reference names all there is, and the whole of it builds without a warning."""

import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from places import ROOT

from hodyn_ros.cli.app import app
from hodyn_ros.model.keys import schema_of


@pytest.fixture(autouse=True)
def generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator is in tools/, where docs/conf.py finds it as well."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


def test_every_field_of_every_message_has_a_row() -> None:
    pytest.importorskip("rclpy", reason="no ROS 2 here")
    from reference.messages import message_page

    import hodyn_ros.msg as messages

    page = message_page(ROOT / "msg")
    for path in (ROOT / "msg").glob("*.msg"):
        section = page.partition(f"## {path.stem}\n")[2].partition("\n## ")[0]
        names = getattr(messages, path.stem).get_fields_and_field_types()
        assert len(names) > 5
        for name in names:
            row = next(line for line in section.splitlines() if line.startswith(f"| `{name}` |"))
            meaning = row.split(" | ")[3].rstrip(" |")
            assert meaning or name.endswith("_representation") or name == "status", row


def test_every_call_of_a_robot_has_an_example_that_calls_it() -> None:
    from reference.api import robot_names
    from reference.examples import robot_examples, with_example

    names = robot_names()
    calls, examples = {*names["To build one"], *names["Calls"]}, robot_examples()
    assert set(examples) == calls
    assert not [name for name, code in examples.items() if f".{name}(" not in code]
    shown = with_example("hodyn_ros.Robot.com", ["Words."])
    assert shown[0] == "Words." and any(".com(q)" in line for line in shown)
    assert with_example("hodyn_ros.Robot.name", ["Words."]) == ["Words."]


def test_the_gallery_shows_every_picture() -> None:
    from reference.gallery import gallery_page

    page = gallery_page(ROOT / "docs")
    pictures = {path.name for path in (ROOT / "docs" / "pictures").iterdir()} - {"film.gif"}
    assert set(re.findall(r"figure} \.\./pictures/(\S+)", page)) == pictures  # the film is on the first page
    targets = re.findall(r":target: \.\./(\S+)\.html", page)
    assert len(targets) == len(pictures) and all((ROOT / "docs" / f"{name}.md").exists() for name in targets)


def test_every_error_that_is_made_with_words_is_in_the_index(tmp_path: Path) -> None:
    from reference.error_messages import error_page

    (tmp_path / "part.py").write_text(
        "class InputError(HodynError): ...\nclass Rejected(InputError): ...\n"
        'raise InputError(f"joint {name!r} is " "unknown; take one of " + known)\n'
        'late = Rejected(Reason.LATE, "it comes late")\n'
        'raise TypeError("that is another thing")\n'
        "class Shape(Rejected):\n def __init__(self, name): super().__init__(f'{name} is too long')\n"
    )
    assert error_page(tmp_path).endswith(
        "## part\n\n| message | class |\n| --- | --- |\n"
        "| … is too long | `Shape` |\n"
        "| it comes late | `Rejected` |\n"
        "| joint … is unknown; take one of … | `InputError` |\n"
    )
    page = error_page(ROOT / "hodyn_ros")
    for words in (
        "the order must be 0 or a positive integer, found …",
        "is of one frame; found",
        "give the derivatives without gaps",  # of a message
        "no speed keeps all limits",
        "a chunk has another checksum than it had when it was written",
    ):
        assert words in page
    assert page.count("\n| ") > 1000


def test_units_values_and_continued_comments_are_kept(tmp_path: Path) -> None:
    from reference.messages import message_page

    text = "# About\n# it.\n\nuint8 A=1  # first\nfloat64[] x  # [N.m]\n    # and more\n"
    (tmp_path / "Sample.msg").write_text(text)
    lines = message_page(tmp_path).rstrip().splitlines()
    assert "About it." in lines
    assert lines[-2:] == [
        "| `A` | `uint8` | `1` | first |",
        r"| `x` | `float64[]` |  | \[N.m\] and more |",
    ]


def test_every_parameter_of_every_node_has_a_row() -> None:
    pytest.importorskip("rclpy", reason="no ROS 2 here")
    from reference.parameters import nodes, parameter_page

    page = parameter_page()
    found = {module.__name__.rpartition(".")[2]: module for module in nodes()}
    assert {"dynamics_node", "trajectory_node", "simulator_node", "controller_node"} <= set(found)
    for node, module in found.items():
        section = page.partition(f"## {node}\n")[2].partition("\n## ")[0]
        rows = {line.split("`")[1]: line for line in section.splitlines() if line.startswith("| `")}
        assert set(rows) == {setting.name for setting in module.SETTINGS}
        for setting in module.SETTINGS:
            assert ("| live |" in rows[setting.name]) is setting.live


def test_every_command_and_option_is_there() -> None:
    from reference.commands import command_page

    page = command_page()
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert {"demo", "export", "check", "retime"} <= set(commands)
    for name, command in commands.items():
        section = page.partition(f"## `hodyn {name}`\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            assert f"* `{parameter.opts[0]}" in section, f"{parameter.opts[0]} of hodyn {name}"


def test_every_launch_file_has_its_arguments() -> None:
    from reference.launch_files import launch_arguments, launch_page

    page = launch_page(ROOT / "launch")
    for path in (ROOT / "launch").glob("*.launch.py"):
        arguments = launch_arguments(path)
        assert arguments
        section = page.partition(f"## {path.name}\n")[2].partition("\n## ")[0]
        for argument in arguments:
            assert f"| `{argument.name}` |" in section
            assert argument.description
    assert "launch" not in sys.modules or not hasattr(sys.modules["launch"], "mock_calls")


def test_arguments_are_those_that_launch_sees() -> None:
    pytest.importorskip(
        "launch_ros", reason="launch_ros is not installed; it comes with a ROS 2, not from PyPI"
    )
    from launch import LaunchContext
    from launch.launch_description_sources import get_launch_description_from_python_launch_file
    from launch.utilities import perform_substitutions
    from reference.launch_files import launch_arguments

    for path in (ROOT / "launch").glob("*.launch.py"):
        declared = get_launch_description_from_python_launch_file(str(path)).get_launch_arguments()
        found = launch_arguments(path)
        assert [argument.name for argument in found] == [argument.name for argument in declared]
        for ours, theirs in zip(found, declared):
            assert ours.default_text == perform_substitutions(LaunchContext(), theirs.default_value)
            assert theirs.description.startswith(ours.description)  # the choices may follow


def keys(schema: Any) -> Iterator[str]:
    """All keys of all mappings that a schema allows, but those that every mapping has."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in (*schema.get("properties", {}).values(), schema.get("items")):
            yield from keys(part)


def test_every_key_of_every_file_is_there() -> None:
    from reference.schemas import FORMS, schema_page

    sections = schema_page().split("\n## ")[1:]
    schemas = [schema_of(kind) for kind in FORMS.values()]
    assert len(schemas) == 9
    assert len(sections) == len(schemas)
    for section, schema in zip(sections, schemas):
        wanted = set(keys(schema)) - {"source", "note", "assumed", "value"}
        assert len(wanted) >= 5
        missing = [key for key in wanted if f"| `{key}` |" not in section]
        assert not missing, section.splitlines()[0]


def test_links_lead_to_where_things_are_in_the_documentation() -> None:
    from reference.links import relinked

    text = "[a](../config/README.md#drives) [b](matrices.md) ![c](pictures/c.png) [d](../LICENSE) [e](https://e.org)"
    expected = "[a](reference/config.md#drives) [b](matrices.md) ![c](pictures/c.png) d [e](https://e.org)"
    assert relinked(text, "docs/page.md", "page.md") == expected
    assert relinked("[b](docs/matrices.md)", "README.md", "reference/readme.md") == "[b](../matrices.md)"
    block = "```\n[a](../config/README.md)\n```\n"
    assert relinked(block, "docs/page.md", "page.md") == block


def test_html_builds_without_a_warning(pytestconfig: pytest.Config) -> None:
    """All pages are written; those are read that have changed since they were read without one."""
    for module in ("sphinx", "myst_parser", "furo", "latex2mathml", "rclpy"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; `make docs` brings it along")
    kept = pytestconfig.cache.mkdir("docs")  # type: ignore[union-attr]
    options = ["-b", "html", "-d", kept / "read", "-q", "-W", "--keep-going", "--write-all"]
    command = [sys.executable, "-m", "sphinx", *options, ROOT / "docs", kept / "html"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if result.returncode:
        shutil.rmtree(kept)
    assert result.returncode == 0, result.stderr
    index = (kept / "html" / "index.html").read_text(encoding="utf-8")
    for page in ("reference/messages.html", "reference/parameters.html", "reference/api/index.html"):
        assert page in index
        assert (kept / "html" / page).exists()
    api = (kept / "html" / "reference" / "api" / "robot.html").read_text(encoding="utf-8")
    assert 'id="hodyn_ros.Robot.inverse_dynamics"' in api
    assert "<math " in (kept / "html" / "concepts.html").read_text(encoding="utf-8")


def test_the_api_has_what_pages_and_examples_import() -> None:
    """Names that are shown to users are on its pages, and what is on them exists."""
    from reference.api import SUBJECTS

    listed = {f"hodyn_ros.{name}" for _, *names in SUBJECTS.values() for name in names}
    for name in listed:
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(module), last) or importlib.util.find_spec(name), name
    texts = [path.read_text("utf-8") for path in (*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.py"))]
    for path in ROOT.glob("docs/notebooks/*.ipynb"):
        texts += ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    imports = re.findall(r"^from (hodyn_ros\.[a-z_.]+) import (\w+)", "\n".join(texts), re.MULTILINE)
    shown = {f"{module}.{name}" for module, name in imports}
    assert len(shown) > 20
    missing = {name for name in shown if not any(f"{name}.".startswith(f"{one}.") for one in listed)}
    missing = {name for name in missing if "lerobot" not in name}  # docs/policies.md has all of it
    assert missing <= {"hodyn_ros.formulations.INVERSE_DYNAMICS"}
