"""Files that come into being complete, or not at all."""

import os
import stat
from pathlib import Path

import pytest

from hodyn_ros.outputs import complete, require_writable, write_text


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


@pytest.mark.parametrize("there", [True, False])
def test_links_lead_to_what_is_new(there: bool, tmp_path: Path) -> None:
    """As /dev/stdout does to the file of a shell, which root would have replaced for good."""
    file, link = tmp_path / "robot.yaml", tmp_path / "link"
    if there:
        file.write_text("first")
    link.symlink_to(file)
    require_writable(link)
    write_text(link, "second")
    assert link.is_symlink()
    assert file.read_text() == "second"


def test_who_may_read_a_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "robot.yaml"
    write_text(file, "first")
    file.chmod(0o640)
    write_text(file, "second")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
def test_a_file_that_is_protected_stays(tmp_path: Path) -> None:
    file = tmp_path / "robot.yaml"
    write_text(file, "first")
    file.chmod(0o440)
    for write in (require_writable, lambda path: write_text(path, "second")):
        with pytest.raises(PermissionError):
            write(file)
    assert file.read_text() == "first"


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    """As /dev/null is, which root would have replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with complete(pipe) as part:
        part.write_text("words")
        assert part.is_file()  # so that it can be read before it is sent
    assert os.read(reader, 100) == b"words"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_file_of_a_shell_takes_what_is_written_between(capfd: pytest.CaptureFixture[str]) -> None:
    for text in ("before ", "between ", "after"):
        if text == "between ":
            write_text(Path("/dev/stdout"), text)
        else:
            os.write(1, text.encode())
    assert capfd.readouterr().out == "before between after"


def test_a_link_to_a_pipe_without_a_name_is_written_to() -> None:
    """As /dev/stdout is where the output goes to another program."""
    reader, writer = os.pipe()
    path = Path(f"/proc/self/fd/{writer}")
    require_writable(path)
    write_text(path, "words")
    assert os.read(reader, 100) == b"words"
    os.close(reader)
    os.close(writer)
