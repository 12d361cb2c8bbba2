"""The firmware of examples/zephyr, compiled against stand-ins of Zephyr's calls: what reaches its motors."""

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from exported_code import CC, CXX, CXX_WARNINGS, compiled_by, needs_cxx
from places import EXAMPLES, ROOT

from hodyn_ros import Robot, share
from hodyn_ros.export.shared import shared_sources
from hodyn_ros.guard.reasons import Fault, State

pytestmark = needs_cxx

PANDA = Robot.load(share.find("config", "panda.yaml"))
SOURCES = EXAMPLES / "zephyr" / "src"
HELPERS = ROOT / "test" / "helpers"
PAGE = ROOT / "docs" / "microcontrollers.md"
# as in Zephyr, without a library of C++
BARE = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-nostdinc++")
FAULT_AT, END = 1250, 3200  # [ms]
STEP = 2.0  # [N.m] in a millisecond
SPEED, EFFORT = np.array([2.175] * 4 + [2.61] * 3), np.array([87.0] * 4 + [12.0] * 3)
# By their names in firmware_in_zephyr.cpp: on the page, by the guard, and what drives are told at last.
FAULTS = {
    "silent": ("desired motions stop for 0.3 s", Fault.NO_FEEDFORWARD, "write"),
    "stale": ("their stamps are 0.2 s old, for 0.3 s", Fault.NO_FEEDFORWARD, "write"),
    "nan": ("they hold NaN", Fault.REFERENCE_STEP, "write"),
    "jump": ("they jump by 0.5 rad", Fault.REFERENCE_STEP, "write"),
    "acceleration": ("an acceleration of 10⁴ rad/s²", Fault.REFERENCE_STEP, "write"),
    "frozen": ("an encoder freezes", Fault.FROZEN, "hold"),
    "encoder": ("an encoder gives NaN for 0.3 s", Fault.NO_MEASUREMENT, "hold"),
    "blind": ("no encoder answers for 0.3 s", Fault.NO_MEASUREMENT, "hold"),
    "turned": ("a motor turns the other way", Fault.MISMATCH, "hold"),
    "late": ("the loop comes 30 ms late", None, "write"),
    "held up": ("the loop comes 100 ms late", Fault.HELD_UP, "hold"),
    "crash": ("the firmware crashes", None, "off"),
    "stop": ("it is asked to stop", Fault.SHUTDOWN, "hold"),
}
# What is wrong with a robot, which the firmware must not command, and what it says then.
REFUSED = {
    "its.memory = 1281": "bytes of each memory of a robot must be within 1281 and inf, found 1280",
    "its.order = 3": "order of a robot must be within 0 and 2, found 3",
    "its.joints = 8": "joints must be within 1 and 7, found 8",
    "its.coordinates = 6": "desired.h is of another robot",
    "its.abi = 1": "desired.h is of another robot",
    "its.order = 1": "desired.h is of another robot than 'panda' of order 1",
    "its.self_test = fails": "the self-test of 'panda' is off by 1",
}
# Nothing of it may be called where it is refused before that.
OTHER_ROBOT = """
#include <stdlib.h>
#include "robot_table.h"
const hodyn_robot *the_robot(void);
double fails(void) { return 1.0; }
static void home(void *memory) { (void)memory; abort(); }
const hodyn_robot *hodyn_robot_table(void)
{
  static hodyn_robot its;
  its = *the_robot();
  switch (getenv("CHANGE")[0]) {
    CHANGES
  }
  if (its.memory > 1280) {
    its.home = home;
  }
  return &its;
}
""".replace("CHANGES", "\n    ".join(f"case '{i}': {change}; break;" for i, change in enumerate(REFUSED)))
MISALIGNED = """
#include <stdio.h>
#include "core/guarded_feedforward.hpp"
alignas(8) unsigned char memory[1288];
int main()
{
  for (int past = 0; past <= 4; past += 4) {
    for (int stop_past = 0; stop_past <= 4; stop_past += 4) {
      const hodyn_ros::GuardedFeedforward one(
        *hodyn_robot_table(), hodyn_ros::CommandConfig{}, memory + past, memory + stop_past, 1280);
      printf("%s %g\\n", one.unusable ? one.unusable.name : "usable", one.unusable.found);
    }
  }
}
"""
Array = np.ndarray


class Run(NamedTuple):
    told: list[str]  # what the drives were told in each millisecond
    states: list[State]
    efforts: Array  # (steps, 7), the last ones where nothing was commanded
    velocities: Array  # (steps, 7)
    said: list[str]

    @property
    def step(self) -> float:
        """The largest step of what was commanded, in a millisecond; letting go at once is none."""
        pairs = zip(self.told, self.told[1:], self.efforts[1:], np.abs(np.diff(self.efforts, axis=0)))
        return max(
            float(step.max()) for *both, new, step in pairs if both == ["write", "write"] and new.any()
        )

    @property
    def speed(self) -> float:
        """The largest speed of a joint, as a share of its limit."""
        return float((np.abs(self.velocities) / SPEED).max())


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("firmware")
    for file, text in shared_sources(PANDA, 2, None, "panda.yaml", "0" * 64).items():
        (folder / file).write_text(text)
    include = [f"-I{path}" for path in (SOURCES, ROOT / "ros2_control", HELPERS / "zephyr_stand_ins", folder)]
    flags = (*CXX_WARNINGS, "-O0", "-DHODYN_GUARD_JOINTS=7", "-DHODYN_GUARD_ROWS=3", *include)
    others = [SOURCES / f"{name}.cpp" for name in ("desired_on_board", "drives_simulated")]
    programs = [
        (CXX, (*BARE, *flags, "-Dmain=firmware"), SOURCES / "main.cpp"),
        (CXX, ("-std=c++17", *flags), HELPERS / "firmware_in_zephyr.cpp"),
        *((CC, ("-std=c99", "-O0"), source) for source in sorted(folder.glob("*.c"))),
    ]
    for compiler, chosen, source in programs:
        compiled_by(compiler, (*chosen, "-c"), [source], folder / f"{source.stem}.o")
    for source in others:  # the stand-ins have their own, so that these are compiled alone
        compiled_by(CXX, (*BARE, *flags, "-c"), [source], folder / f"{source.stem}.unused")
    return linked(folder)


def linked(folder: Path, *others: Path) -> Path:
    """Return the program of the firmware's objects in a folder, and others."""
    program = folder / "firmware"
    subprocess.run([str(CXX), *folder.glob("*.o"), *others, "-o", program, "-lm"], check=True, timeout=120)
    return program


@cache
def run(firmware: Path, fault: str) -> Run:
    ran = subprocess.run([firmware, fault], check=True, capture_output=True, text=True, timeout=60)
    lines = ran.stdout.splitlines()
    rows = [line.split(",") for line in lines if not line.startswith("#")]
    numbers = np.array([row[2:] for row in rows], dtype=np.float64)
    states = [list(State)[int(row[1])] for row in rows]
    said = [line[2:] for line in lines if line.startswith("#")]
    return Run([row[0] for row in rows], states, numbers[:, :7], numbers[:, 7:14], said)


def test_without_a_fault_it_follows(firmware: Path) -> None:
    ran = run(firmware, "none")
    assert [line.split(":")[0] for line in ran.said] == ["waiting -> joining", "joining -> following"]
    assert ran.states[-1] is State.FOLLOWING and len(ran.states) == END
    assert ran.speed > 0.2, "it moves"
    assert ran.step < 1.0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_ends_in_a_defined_command(firmware: Path, fault: str) -> None:
    ran, (_, reason, last) = run(firmware, fault), FAULTS[fault]
    assert ran.states[:FAULT_AT] == run(firmware, "none").states[:FAULT_AT]
    stops = [line for line in ran.said if line.startswith("following -> ")]
    assert (reason is None and not stops) or (reason is not None and reason.value in stops[0])
    assert ran.told[-1] == last
    assert np.isfinite(ran.efforts).all() and (np.abs(ran.efforts) <= EFFORT).all()
    assert ran.step <= STEP * (1 + 1e-9) and ran.speed <= 1.2


def test_a_turned_motor_is_let_go(firmware: Path) -> None:
    ran = run(firmware, "turned")
    assert any("so the motors let go" in line for line in ran.said) and not ran.efforts[-1].any()


def test_the_watchdog_puts_the_drives_off(firmware: Path) -> None:
    assert "drives off" in run(firmware, "held up").said and "drives off" not in run(firmware, "late").said


@pytest.fixture(scope="module")
def other_robots(firmware: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The firmware with a robot that the environment spoils."""
    folder = tmp_path_factory.mktemp("others")
    (folder / "other.c").write_text(OTHER_ROBOT)
    renamed = "-Dhodyn_robot_table=the_robot"
    for source, *flags in ([folder / "other.c"], [firmware.parent / "panda_table.c", renamed]):
        command = [str(CC), "-std=c99", f"-I{firmware.parent}", *flags, "-c", source]
        subprocess.run(command, check=True, timeout=60, cwd=folder)
    return linked(folder, *(path for path in firmware.parent.glob("*.o") if path.name != "panda_table.o"))


@pytest.mark.parametrize("change", REFUSED)
def test_another_robot_is_refused_with_the_drives_off(other_robots: Path, change: str) -> None:
    which = {"CHANGE": str(list(REFUSED).index(change))}
    ran = subprocess.run([other_robots, "none"], capture_output=True, text=True, timeout=60, env=which)
    assert ran.returncode == 1 and REFUSED[change] in ran.stdout
    assert ran.stdout.splitlines()[1:] == ["# drives off"], "one line, and the loop never begins"


def test_memory_where_no_number_may_begin_is_refused(firmware: Path, tmp_path: Path) -> None:
    """Processors of ARM stop where a number is read there, after the robot was switched on."""
    source, program = tmp_path / "misaligned.cpp", tmp_path / "misaligned"
    source.write_text(MISALIGNED)
    room = [
        "-DHODYN_GUARD_JOINTS=7",
        "-DHODYN_GUARD_ROWS=3",
        f"-I{ROOT / 'ros2_control'}",
        f"-I{firmware.parent}",
    ]
    compiled_by(CXX, ["-std=c++17", *CXX_WARNINGS, "-O0", *room, "-c"], [source], tmp_path / "misaligned.o")
    own = sorted(firmware.parent.glob("panda*.o"))
    subprocess.run(
        [str(CXX), "misaligned.o", *own, "-lm", "-o", program], check=True, cwd=tmp_path, timeout=60
    )
    ran = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60)
    usable, *refused = ran.stdout.splitlines()
    assert usable.startswith("usable")
    assert refused == ["bytes of a memory past its alignment 4"] * 3


def test_the_page_says_what_reached_the_motors(firmware: Path) -> None:
    rows = re.findall(
        r"^\| (.*?) \| (.*?) \| ([\d.]+) \| ([\d.]+) \| (write|hold|off) \|$", PAGE.read_text(), re.M
    )
    assert [row[0] for row in rows] == [fault for fault, _, _ in FAULTS.values()]
    for (_, by, *figures, last), (name, (_, reason, told)) in zip(rows, FAULTS.items()):
        ran = run(firmware, name)
        assert [by, last] == ["-" if reason is None else reason.value, told], name
        assert [float(x) for x in figures] == pytest.approx([ran.step, ran.speed], abs=0.011), name
