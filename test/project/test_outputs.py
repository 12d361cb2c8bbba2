"""Files that come into being complete, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hodyn_ros.outputs import complete, write_text


def test_what_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "robot.yaml"
    write_text(file, "first")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "second \udc80")
    assert file.read_text() == "first"
    assert [each.name for each in tmp_path.iterdir()] == ["robot.yaml"]


def test_a_folder_in_the_way_stays(tmp_path: Path) -> None:
    (tmp_path / "robot.yaml").mkdir()
    with pytest.raises(OSError, match="robot.yaml"):
        write_text(tmp_path / "robot.yaml", "")
    assert [each.name for each in tmp_path.iterdir()] == ["robot.yaml"]


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    """As /dev/null is, which root would have replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with complete(pipe) as part:
        part.write_text("words")
    assert os.read(reader, 100) == b"words"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
