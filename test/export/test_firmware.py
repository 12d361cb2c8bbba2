"""The firmware of examples/zephyr, compiled against stand-ins of Zephyr's calls: what reaches its motors."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from exported_code import CC
from places import EXAMPLES, ROOT

from hodyn_ros import Robot, share
from hodyn_ros.export.shared import shared_sources
from hodyn_ros.guard.reasons import Fault, State

CXX = next((path for path in map(shutil.which, ("c++", "g++", "clang++")) if path), None)
pytestmark = pytest.mark.skipif(None in (CC, CXX), reason="there is no C and C++ compiler on the path")

PANDA = Robot.load(share.find("config", "panda.yaml"))
SOURCES = EXAMPLES / "zephyr" / "src"
HELPERS = ROOT / "test" / "helpers"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror")
BARE = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-nostdinc++")  # as in Zephyr, without a library of C++
FAULT_AT = 1700  # [ms]
STEP = 2.0  # [N.m] in a millisecond
Array = np.ndarray


class Run(NamedTuple):
    told: list[str]  # what the drives were told in each millisecond
    states: list[State]
    efforts: Array  # (steps, 7)
    velocities: Array
    said: list[str]


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("firmware")
    for file, text in shared_sources(PANDA, 2, None, "panda.yaml", "0" * 64).items():
        (folder / file).write_text(text)
    include = [f"-I{path}" for path in (SOURCES, ROOT / "ros2_control", HELPERS / "zephyr_stand_ins", folder)]
    room = ("-DHODYN_GUARD_JOINTS=7", "-DHODYN_GUARD_ROWS=3")
    flags = (*WARNINGS, "-O0", *room, *include)
    own = (str(CXX), "-std=c++17", *flags)
    commands = [
        (str(CXX), *BARE, *flags, "-Dmain=firmware", "-c", SOURCES / "main.cpp"),
        *((str(CXX), *BARE, *flags, "-c", SOURCES / f"{name}.cpp") for name in ("desired_on_board", "drives_simulated")),
        (*own, "-c", HELPERS / "firmware_in_zephyr.cpp"),
        (str(CC), "-std=c99", "-O0", "-c", *sorted(folder.glob("*.c"))),
    ]
    for command in commands:
        subprocess.run(command, check=True, timeout=120, cwd=folder)
    elsewhere = {"desired_on_board.o", "drives_simulated.o"}  # the stand-ins have drives and motions of their own
    objects = [path for path in sorted(folder.glob("*.o")) if path.name not in elsewhere]
    subprocess.run([str(CXX), *objects, "-o", folder / "firmware", "-lm"], check=True, timeout=120)
    return folder / "firmware"


def run(firmware: Path, fault: str) -> Run:
    ran = subprocess.run([firmware, fault], check=True, capture_output=True, text=True, timeout=60)
    lines = ran.stdout.splitlines()
    rows = [line.split(",") for line in lines if not line.startswith("#")]
    numbers = np.array([row[2:] for row in rows], dtype=np.float64)
    states = [list(State)[int(row[1])] for row in rows]
    said = [line[2:] for line in lines if line.startswith("#")]
    return Run([row[0] for row in rows], states, numbers[:, :7], numbers[:, 7:14], said)


def largest_step(one: Run) -> float:
    """Return the largest step of what was commanded, in a millisecond."""
    pairs = zip(one.told, one.told[1:], np.abs(np.diff(one.efforts, axis=0)).max(axis=1))
    return max(step for before, after, step in pairs if before == after == "write")


def test_without_a_fault_it_follows(firmware: Path) -> None:
    ran = run(firmware, "none")
    assert [line.split(":")[0] for line in ran.said] == ["waiting -> joining", "joining -> following"]
    assert ran.states[-1] is State.FOLLOWING and len(ran.states) == 3200
    assert np.abs(ran.velocities).max() > 0.4, "it moves"
    assert largest_step(ran) < 1.0


@pytest.mark.parametrize(
    "fault, reason, last",
    [
        ("silent", Fault.NO_FEEDFORWARD, "write"),  # and joins again, where the motion passes
        ("stale", Fault.NO_FEEDFORWARD, "write"),
        ("nan", Fault.REFERENCE_STEP, "write"),  # and holds
        ("jump", Fault.REFERENCE_STEP, "write"),
        ("acceleration", Fault.REFERENCE_STEP, "write"),
        ("frozen", Fault.FROZEN, "hold"),
        ("encoder", Fault.NO_MEASUREMENT, "hold"),
        ("blind", Fault.NO_MEASUREMENT, "hold"),
        ("held up", Fault.HELD_UP, "hold"),
        ("stop", Fault.SHUTDOWN, "hold"),
    ],
)
def test_a_fault_is_named_and_ends_in_a_defined_command(
    firmware: Path, fault: str, reason: Fault, last: str
) -> None:
    ran = run(firmware, fault)
    (stop, *_) = [line for line in ran.said if line.startswith("following -> ")]
    assert reason.value in stop
    assert ran.told[-1] == last
    assert np.isfinite(ran.efforts).all()
    assert (np.abs(ran.efforts) <= np.array([87.0] * 4 + [12.0] * 3)).all()
    assert largest_step(ran) <= STEP * (1 + 1e-9)
    assert (np.abs(ran.velocities) <= 1.2 * np.array([2.175] * 4 + [2.61] * 3)).all()
    assert State.STOPPING not in ran.states[:FAULT_AT] and State.STOPPED in ran.states


def test_a_turned_motor_is_let_go(firmware: Path) -> None:
    ran = run(firmware, "turned")
    assert any("so the motors let go" in line for line in ran.said)
    assert ran.told[-1] == "hold" and not ran.efforts[-1].any()
    assert np.abs(ran.velocities).max() <= 1.2 * 2.61


def test_a_loop_that_comes_late_goes_on(firmware: Path) -> None:
    """30 ms, which is less than drives wait for."""
    ran = run(firmware, "late")
    assert ran.states[-1] is State.FOLLOWING and largest_step(ran) <= STEP


def test_the_watchdog_and_fatal_errors_put_the_drives_off(firmware: Path) -> None:
    assert run(firmware, "crash").told[-1] == "off"
    held_up = run(firmware, "held up")
    assert any("drives off" in line for line in held_up.said)
