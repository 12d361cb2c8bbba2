"""The robot comes first in all commands, and who swaps two files is told so."""

from pathlib import Path

import pytest
import typer
from command_line import run

from hodyn_ros.cli.app import app
from hodyn_ros.cli.arguments import describes_robot

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
ARGUMENTS = {
    name: [one.name for one in command.params if one.param_type_name == "argument"]
    for name, command in COMMANDS.items()
}
OF_TWO_FILES = [name for name, names in ARGUMENTS.items() if "robot" in names and len(names) == 2]


def test_the_robot_is_the_first_argument_of_every_command_that_takes_one() -> None:
    taking = {name: names for name, names in ARGUMENTS.items() if "robot" in names}
    assert set(taking) >= {*OF_TWO_FILES, "show", "export", "excite"} and len(OF_TWO_FILES) > 5
    assert [name for name, names in taking.items() if names[0] != "robot"] == []


@pytest.mark.parametrize("command", OF_TWO_FILES)
def test_files_in_the_wrong_order_look_swapped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(monkeypatch, command, "panda_excitation.yaml", "panda.yaml") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "error: these two look swapped: panda.yaml is the file of a robot, which comes first: "
        f"hodyn {command} panda.yaml panda_excitation.yaml\n"
    )


@pytest.mark.parametrize("recording", ["run.csv", "a_bag"])
def test_a_recording_and_a_urdf_look_swapped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, recording: str
) -> None:
    path = tmp_path / recording
    if path.suffix:
        path.write_text("time,position\n0,0\n")
    else:
        path.mkdir()
    assert run(monkeypatch, "identify", path, "panda.urdf") == 2
    assert "these two look swapped: panda.urdf is the file of a robot" in capsys.readouterr().err


@pytest.mark.parametrize("second", ["delta.yaml", "panda_nowhere.yaml"])
def test_what_fails_for_another_reason_says_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], second: str
) -> None:
    """Two robots, or a file that is not there: their order is not what is wrong."""
    assert run(monkeypatch, "check", "panda.yaml", second) == 2
    said = capsys.readouterr().err
    assert "swapped" not in said and Path(second).stem in said


def test_what_describes_a_robot() -> None:
    robots = ["panda.yaml", "panda.urdf", "delta.yaml", "gough_stewart_6ups.yaml", "kuka_kr300.yaml"]
    others = ["panda_excitation.yaml", "gough_stewart_motion.yaml", "rosbag2_qos.yaml", "skeleton.rviz", ""]
    assert [name for name in robots if not describes_robot(name)] == []
    assert [name for name in others if describes_robot(name)] == []
