"""The guard in C++ needs no heap, no exceptions and no standard library of C++: firmware can hold it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from exported_code import CC, compiled_by, needs_c
from places import ROOT
from test_guard_in_cpp import CXX, GUARD, WARNINGS

SCENARIO = ROOT / "test" / "helpers" / "guard_scenario.c"
FREESTANDING = ("-std=c++17", "-ffreestanding", "-nostdinc++", "-fno-exceptions", "-fno-rtti")
PANDA = ("-DHODYN_GUARD_JOINTS=7", "-DHODYN_GUARD_ROWS=3")
ROOM = ("-DHODYN_GUARD_JOINTS=2", "-DHODYN_GUARD_ROWS=3", f"-I{GUARD}", *WARNINGS, "-O0", "-c")
CORTEX = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard")
OF_MATH = {"exp", "fabs", "nearbyint"}
OF_MEMORY = {"memcpy", "memset", "memmove"}
OF_THE_COMPILER = r"__aeabi_\w+"  # whole numbers of 64 bit on processors of 32
FRAME = 1024  # bytes of stack that a function takes, that which makes a guard of seven joints most


def compiled(path: Path, compiler: str, *flags: str) -> set[str]:
    """Return what the object of all calls of a guard asks of others; no stack frame is larger than FRAME."""
    strict = (*FREESTANDING, *PANDA, *WARNINGS, "-Wdouble-promotion", f"-Wstack-usage={FRAME}", *flags, "-O1")
    target = compiled_by(compiler, (*strict, f"-I{GUARD}", "-c"), [GUARD / "guard.cpp"], path / "guard.o")
    nm = compiler.replace("g++", "nm") if compiler.endswith("eabi-g++") else "nm"
    said = subprocess.run([nm, target], check=True, capture_output=True, text=True, timeout=60).stdout
    return {line.split()[1] for line in said.splitlines() if line.split()[0] == "U"}


@pytest.mark.parametrize(
    "compiler, flags", [("g++", ()), ("arm-none-eabi-g++", CORTEX)], ids=["here", "cortex-m7"]
)
def test_no_heap_and_no_exceptions(tmp_path: Path, compiler: str, flags: tuple[str, ...]) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} on the path")
    wanted = compiled(tmp_path, compiler, *flags)
    more = {name for name in wanted - OF_MATH - OF_MEMORY if not re.fullmatch(OF_THE_COMPILER, name)}
    assert not more, f"a guard asks for {more}"


def test_numbers_that_are_none_have_to_be_seen(tmp_path: Path) -> None:
    """-ffast-math would let NaN through to the motors."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ on the path")
    with pytest.raises(subprocess.CalledProcessError):
        compiled(tmp_path, "g++", "-ffast-math")


@pytest.fixture(scope="module")
def guard_of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("firmware") / "guard.o"
    return compiled_by(CXX, [*FREESTANDING, *ROOM], [GUARD / "guard.cpp"], path)


@needs_c
@pytest.mark.skipif(CXX is None, reason="there is no C++ compiler on the path")
@pytest.mark.parametrize("language", ["c99", "c++17"])
def test_firmware_in_c(tmp_path: Path, guard_of_two: Path, language: str) -> None:
    """The same program as C and as C++: it joins a motion and follows it, which then stops to come."""
    compiler, own = (CC, ["-Wmissing-prototypes"]) if language == "c99" else (CXX, ["-x", "c++"])
    compiled_by(compiler, [*own, f"-std={language}", *ROOM], [SCENARIO], tmp_path / "scenario.o")
    linked = [CC, "scenario.o", guard_of_two, "-lm", "-o", "scenario"]
    subprocess.run(linked, check=True, cwd=tmp_path, timeout=60)
    ran = subprocess.run([tmp_path / "scenario"], check=True, capture_output=True, text=True, timeout=60)
    refused, *changes, efforts = ran.stdout.splitlines()
    assert refused == (
        "joints: 1 to 2, found 3; bytes of memory: found 8; bytes of memory past its alignment: found 1; "
        "fade: 0.001 to 10, found 0"
    )
    assert changes == [
        "waiting -> joining: feedforward and robot fit together, 0",
        "joining -> following: the robot is on the motion, 0",
        "following -> stopping: no feedforward, 0.05",
        "stopping -> stopped: no feedforward, 0.05",
    ]
    step, last, faults = map(float, efforts.split())
    assert 0.01 < step < 2.0, "efforts go on without a jump, and are not all zero"
    assert last == pytest.approx(9.0, rel=1e-12) and faults == 1.0
