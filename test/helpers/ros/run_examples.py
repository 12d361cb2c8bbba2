"""Runs the examples as a user does."""

import os
import subprocess
from pathlib import Path

import warm_python
from places import EXAMPLES


def run_example(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an example to its end."""
    path = os.pathsep.join(filter(None, [str(EXAMPLES.parent), os.environ.get("PYTHONPATH")]))
    return warm_python.run(
        EXAMPLES / f"{name}.py",
        *arguments,
        environment={**os.environ, "PYTHONPATH": path},
        timeout=240.0,
    )


def run_quickly(name: str, out: Path, pictures: tuple[str, ...]) -> list[str]:
    """Run an example in short mode; return its lines, after a look for its pictures."""
    done = run_example(name, "--quick", "--out", str(out))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("wrote")] == [
        f"wrote {out / name}" for name in pictures
    ]
    for picture in pictures:
        assert (out / picture).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert (out / picture).stat().st_size > 20_000
    return lines
