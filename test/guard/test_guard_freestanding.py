"""The guard in C++ needs no heap, no exceptions and no standard library of C++: firmware can hold it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from places import ROOT
from test_guard_in_cpp import WARNINGS

# All calls of a guard, on memory that is there.
SOURCE = """
#include "command_guard.hpp"

using namespace hodyn_ros::guard;

struct Placed : CommandGuard
{
  using CommandGuard::CommandGuard;
  static void * operator new(size_t, void * memory) noexcept { return memory; }
};

extern "C" bool cycle(
  void * memory, const Config & config, const Limits & limits, const Gains & gains, EffortModel model,
  const Reference & reference, const double * position, double * effort)
{
  CommandGuard & guard = *new (memory) Placed(7, config, limits, gains, model);
  guard.measure(1, 1, position, nullptr);
  guard.follow(1, 1, reference, 0);
  guard.stop();
  guard.start();
  const bool commands = guard.command(1, 0.001);
  for (size_t j = 0; commands && j < 7; ++j) {
    effort[j] = guard.issued.effort[j];
  }
  return commands && name_of(guard.state) != sentence_of(guard.reason.cause);
}

extern "C" char bytes_of_a_guard[sizeof(CommandGuard)];
char bytes_of_a_guard[sizeof(CommandGuard)];
"""
FREESTANDING = ("-std=c++17", "-ffreestanding", "-nostdinc++", "-fno-exceptions", "-fno-rtti")
PANDA = ("-DHODYN_GUARD_JOINTS=7", "-DHODYN_GUARD_ROWS=3")
CORTEX = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard")
OF_MATH = {"exp", "fabs", "nearbyint"}
OF_MEMORY = {"memcpy", "memset", "memmove"}
OF_THE_COMPILER = r"__aeabi_\w+"  # whole numbers of 64 bit on processors of 32
KNOWN_SIZE = 12_000  # bytes of a guard of seven joints


def compiled(path: Path, compiler: str, *flags: str) -> tuple[set[str], int, int]:
    """Return what an object asks of others, the bytes of a guard, and those of the largest stack frame."""
    source, target = path / "guard.cpp", path / "guard.o"
    source.write_text(SOURCE)
    include = f"-I{ROOT / 'ros2_control' / 'guard'}"
    command = [
        compiler,
        *FREESTANDING,
        *PANDA,
        *WARNINGS,
        "-Wdouble-promotion",
        *flags,
        "-O1",
        "-fstack-usage",
    ]
    subprocess.run([*command, include, "-c", source, "-o", target], check=True, timeout=120)
    nm = compiler.replace("g++", "nm") if compiler.endswith("eabi-g++") else "nm"
    said = subprocess.run([nm, "-S", target], check=True, capture_output=True, text=True, timeout=60).stdout
    wanted = {line.split()[1] for line in said.splitlines() if line.split()[0] == "U"}
    (size,) = re.findall(r"^\w+ (\w+) . bytes_of_a_guard$", said, re.MULTILINE)
    frames = [line.split("\t") for line in target.with_suffix(".su").read_text().splitlines()]
    assert all(kind == "static" for _, _, kind in frames), "no frame depends on numbers"
    return wanted, int(size, 16), max(int(frame) for _, frame, _ in frames)


@pytest.mark.parametrize(
    "compiler, flags", [("g++", ()), ("arm-none-eabi-g++", CORTEX)], ids=["here", "cortex-m7"]
)
def test_no_heap_and_no_exceptions(tmp_path: Path, compiler: str, flags: tuple[str, ...]) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} on the path")
    wanted, size, frame = compiled(tmp_path, compiler, *flags)
    more = {name for name in wanted - OF_MATH - OF_MEMORY if not re.fullmatch(OF_THE_COMPILER, name)}
    assert not more, f"a guard asks for {more}"
    assert size <= KNOWN_SIZE and frame <= 512, (size, frame)


def test_numbers_that_are_none_have_to_be_seen(tmp_path: Path) -> None:
    """-ffast-math would let NaN through to the motors."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ on the path")
    with pytest.raises(subprocess.CalledProcessError):
        compiled(tmp_path, "g++", "-ffast-math")
