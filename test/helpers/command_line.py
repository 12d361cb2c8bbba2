"""The command line in this process."""

import sys
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from hodyn_ros.cli import app

Hodyn = Callable[..., "CompletedProcess[str]"]
"""Runs `hodyn` with arguments, and returns what `subprocess.run` would: the fixture `hodyn`."""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run `hodyn` with arguments; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["hodyn", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        app.main()
    return int(ended.value.code or 0)
