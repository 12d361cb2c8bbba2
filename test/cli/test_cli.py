"""The command line without ROS."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command_line import Hodyn
from ros_processes import child_environment

from hodyn_ros.cli.app import app
from hodyn_ros.share import find

WITHOUT_ROS = "import sys; sys.modules['rclpy'] = None; from hodyn_ros.cli.app import main; main()"


def test_no_word_of_a_help_text_is_taken_for_markup() -> None:
    """A unit such as [s] or [kg] would strike the text through, or vanish."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    texts = [command.help or "" for command in commands.values()]
    texts += [getattr(one, "help", None) or "" for command in commands.values() for one in command.params]
    assert len(texts) > 50
    assert [text for text in texts if re.search(r"\[[a-z#/@]", text)] == []


def test_help_names_the_commands_and_their_options(hodyn: Hodyn) -> None:
    result = hodyn("--help")
    assert result.returncode == 0
    assert "demo" in result.stdout
    result = hodyn("demo", "--help")
    assert result.returncode == 0
    assert all(option in result.stdout for option in ("--duration", "--out", "--rate"))


@pytest.mark.parametrize(
    ("command", "words"),
    [(("demo",), ("the demo needs ROS 2", "make demo")), (("top", "--once"), ("hodyn top needs ROS 2",))],
)
def test_without_ros_it_says_what_is_missing_and_how_to_get_it(
    command: tuple[str, ...], words: tuple[str, ...]
) -> None:
    arguments = [sys.executable, "-c", WITHOUT_ROS, *command]
    result = subprocess.run(arguments, env=child_environment(), capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert all(each in result.stderr for each in (*words, "there is no rclpy"))


def test_numbers_that_make_no_sense_are_refused(hodyn: Hodyn) -> None:
    result = hodyn("demo", "--duration", "-3")
    assert result.returncode == 2
    assert "duration" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--mujoco",), "--mujoco is of model-errors"),
        (("model-errors", "--rate", "500"), "model-errors takes no --duration and --rate"),
        (("model-errors", "--duration", "10"), "model-errors takes no --duration and --rate"),
    ],
)
def test_options_of_the_other_demo_are_refused(hodyn: Hodyn, options: tuple[str, ...], said: str) -> None:
    result = hodyn("demo", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["check", "retime", "compare"])
@pytest.mark.parametrize("picture", ["out/picture.foo", "picture"])
def test_a_picture_of_an_unknown_type_is_refused_before_any_work(
    hodyn: Hodyn, command: str, picture: str
) -> None:
    # files that are not there would be complained about by the work
    result = hodyn(command, "nowhere", "neither", "--picture", picture)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: '{picture}' does not end like a picture; choose one of .")
    assert ".png, " in line and ".svg, " in line


@pytest.mark.parametrize("command", ["excite", "retime", "plan", "identify", "learn"])
@pytest.mark.parametrize("out", [".", "/proc/motion.yaml", "pyproject.toml/motion.yaml"])
def test_what_cannot_be_written_is_refused_before_any_work(hodyn: Hodyn, command: str, out: str) -> None:
    # files that are not there would be complained about by the work
    files = {"excite": ["nowhere"], "learn": ["nowhere", "neither", "nor"]}.get(
        command, ["nowhere", "neither"]
    )
    result = hodyn(command, *files, "--out", out)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert "nowhere" not in line and (out if out == "." else out.partition("/motion")[0]) in line


def test_what_is_doubtful_in_a_file_is_one_line(hodyn: Hodyn, tmp_path: Path) -> None:
    text = find("config", "panda.yaml").read_text()
    text = text.replace("motor_inertia: {value: 0.", "motor_inertia: {value: 0.0000", 1)
    (tmp_path / "robot.yaml").write_text(text)
    result = hodyn("show", str(tmp_path / "robot.yaml"))
    assert result.returncode == 0, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: ") and "unheard of" in line


def test_the_type_of_a_picture_may_be_in_capitals() -> None:
    from hodyn_ros.simulation.pictures import check_file_type  # Matplotlib takes a moment

    check_file_type(Path("out/picture.PNG"))


def test_a_folder_that_cannot_be_written_is_named(hodyn: Hodyn) -> None:
    result = hodyn("demo", "--out", "/proc/demo")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1 and result.stderr.startswith("error: ")
