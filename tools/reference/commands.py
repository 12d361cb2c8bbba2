"""The reference of the command line, by the generator that typer has for it."""

from __future__ import annotations

import subprocess
import sys


def command_page() -> str:
    """Return the page on `hodyn`."""
    command = [sys.executable, "-m", "typer", "hodyn_ros.cli.app", "utils", "docs", "--name", "hodyn"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if result.returncode:
        raise RuntimeError(f"typer could not describe the command line: {result.stderr.strip()}")
    return result.stdout.replace("# `hodyn`", "# Command line", 1)
