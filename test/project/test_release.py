"""The release workflow, dry: its steps that need neither network nor rights."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from places import ROOT

pytest.importorskip("catkin_pkg", reason="catkin_pkg comes with colcon")

WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
FILES = ("pyproject.toml", "package.xml", "CITATION.cff", "CHANGELOG.rst", "tools/release_notes.py")


def steps(job: str) -> list[str]:
    return [step["run"] for step in WORKFLOW["jobs"][job]["steps"] if "run" in step]


def run(step: str, folder: Path, tag: str) -> subprocess.CompletedProcess[str]:
    """Run a step as the workflow does, by the interpreter and the command of this environment."""
    folders = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"GITHUB_REF_NAME": tag, "PATH": folders}
    command = ["bash", "-e", "-c", step.replace("empty/bin/", "")]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """Return a tree as catkin_prepare_release leaves it."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.rst"
    title = "0.1.0 (2026-12-01)"
    text = changelog.read_text().replace("Forthcoming\n-----------\n", f"{title}\n{'-' * len(title)}\n", 1)
    changelog.write_text(text)
    return tmp_path


def test_notes_are_those_of_the_tag(released: Path) -> None:
    (step,) = [step for step in steps("build") if "release_notes" in step]
    result = run(step, released, "0.1.0")
    assert result.returncode == 0, result.stderr
    notes = (released / "notes.rst").read_text()
    assert notes.startswith("* **") and "0.1.0 (" not in notes


def test_a_tag_that_nothing_agrees_with_is_refused(released: Path) -> None:
    (step,) = [step for step in steps("build") if "release_notes" in step]
    result = run(step, released, "0.2.0")
    assert result.returncode == 1
    assert [line.split()[1] for line in result.stderr.splitlines()] == [*FILES[:4]]


def test_what_has_not_been_prepared_is_refused(released: Path) -> None:
    shutil.copy(ROOT / "CHANGELOG.rst", released)
    if "\nForthcoming\n" not in (ROOT / "CHANGELOG.rst").read_text():
        pytest.skip("the tree is one of a release")
    result = run(steps("build")[1], released, "0.1.0")
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "error: CHANGELOG.rst has no dated section 0.1.0; run catkin_prepare_release first"
    ]


def test_what_is_tried_of_the_wheel_runs_here(tmp_path: Path) -> None:
    for step in steps("try")[2:]:
        result = run(step, tmp_path, "")
        assert result.returncode == 0, (step, result.stderr)


def test_steps_name_what_there_is() -> None:
    text = "\n".join(step for job in WORKFLOW["jobs"] for step in steps(job))
    for name in re.findall(r"\b(?:requirements|tools)/[\w.]+", text):
        assert (ROOT / name).is_file(), name
    for target in re.findall(r"\bmake ([\w-]+)", text):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text()
    assert WORKFLOW["jobs"]["publish"]["needs"] == ["try", "test"]
