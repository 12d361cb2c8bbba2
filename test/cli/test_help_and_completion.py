"""What a shell and a reader of help get: completed names, whole paragraphs, and hints at a misspelt file."""

import re
from pathlib import Path

import pytest
import typer
from command_line import run
from places import ROOT
from refusals import refused

from hodyn_ros.cli.app import app
from hodyn_ros.cli.arguments import files
from hodyn_ros.share import find


def test_files_are_completed_shipped_ones_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "panda_mine.yaml").touch()
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "arm.yaml").touch()
    assert {"panda.yaml", "panda.urdf"} < set(files("panda"))
    assert files("panda")[-1] == "panda_mine.yaml"
    assert files("robots/a") == ["robots/arm.yaml"]
    assert files("nowhere/a") == []


def test_paragraphs_of_help_are_as_wide_as_the_terminal() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    texts = {name: command.help for name, command in commands.items()}
    assert len(texts) > 10 and all(texts.values())
    assert [name for name, text in texts.items() if "\n" in text.replace("\n\n", "")] == []


def test_the_page_names_all_commands_and_who_takes_what() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    rows = "\n".join(line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `hodyn"))
    assert set(re.findall(r"`hodyn ([\w-]+)", rows)) == set(commands)
    lists = {"--set": r"reads a robot\s\((.*?)\)", "--json": r"`--json` prints .*?: (.*?)\. "}
    for option, said in lists.items():
        taking = {name for name, command in commands.items() for one in command.params if option in one.opts}
        (named,) = re.findall(said, page, re.DOTALL)
        assert set(re.findall(r"`([\w-]+)", named)) == taking, option


@pytest.mark.parametrize(("wrong", "meant"), [("panda.yml", "panda.yaml"), ("pandda.urdf", "panda.urdf")])
def test_a_misspelt_shipped_file_is_suggested(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: str, meant: str
) -> None:
    assert run(monkeypatch, "show", wrong) == 2
    assert capsys.readouterr().err.endswith(f"did you mean '{meant}'?\n")


def test_a_misspelt_file_of_ones_own_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").touch()
    refused(lambda: find("config", tmp_path / "arm.yml"), f"did you mean '{tmp_path / 'arm.yaml'}'")
    refused(lambda: find("config", "nothing_like_that"), "it ships: ... panda.yaml")
