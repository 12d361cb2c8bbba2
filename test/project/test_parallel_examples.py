"""The examples of parallel robots as users run them: figures printed, pictures written."""

import re
from pathlib import Path

from run_examples import run_example

HEADER = b"\x89PNG\r\n\x1a\n"
NUMBER = r"([\d.]+(?:e[-+]\d+)?)"


def figures(name: str, out: Path, pictures: tuple[str, ...]) -> str:
    """Run an example; return what it printed as one line, after a look at its pictures."""
    done = run_example(name, "--out", str(out))
    assert done.returncode == 0, done.stderr
    for picture in pictures:
        content = (out / picture).read_bytes()
        assert content.startswith(HEADER)
        assert len(content) > 20_000
    return " ".join(done.stdout.split())


def test_the_gough_stewart_platform_rolls(tmp_path: Path) -> None:
    printed = figures("gough_stewart_roll", tmp_path, ("kinematics.png", "derivatives.png"))
    found = re.search(rf"one order lower: {NUMBER} \(motion\), {NUMBER} \(forces\)", printed)
    assert found, printed
    for error in found.groups():
        # a difference of numbers with sixteen digits keeps about ten
        assert 0.0 < float(error) < 1e-9


def test_the_planar_mechanism_picks_and_places(tmp_path: Path) -> None:
    printed = figures("planar_pick_and_place", tmp_path, ("pick_and_place.png",))
    link, motor = (re.search(rf"largest torque {of}{NUMBER} N·m", printed) for of in ("", "of a motor "))
    assert link and motor, printed
    # the springs ask for more than the links do
    assert 0.0 < float(link[1]) < float(motor[1]) < 2.0 * float(link[1])
