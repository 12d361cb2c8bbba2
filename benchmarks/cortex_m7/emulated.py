"""Programs on a Cortex-M7 that QEMU emulates, and the instructions that it counts.

From Debian and Ubuntu: gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hodyn_ros.export.small.stack import TARGETS

COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
FLAGS = ("-mthumb", *TARGETS["cortex-m7"].flags.split(), "-ffp-contract=fast", "-O2")
_HERE = Path(__file__).parent
# an instruction takes 2^4 ns of emulated time, a tick 40
_SHIFT, _TICK, _CALLS = 4, 40.0, 100


def missing() -> str:
    """Say which program is not there; empty where all are."""
    return ", ".join(name for name in (COMPILER, EMULATOR) if shutil.which(name) is None)


def build(sources: Sequence[Path], folder: Path, flags: Sequence[str] = FLAGS) -> Path:
    """Compile and link a program for the board."""
    program = folder / "program.elf"
    board = (str(_HERE / "board.c"), f"-I{_HERE}", "-nostartfiles", "-T", str(_HERE / "board.ld"))
    command = [COMPILER, "-std=c99", "-Wl,--no-warn-rwx-segments", *flags, *map(str, sources), *board]
    subprocess.run([*command, "-o", str(program), "-lm", "-lc", "-lnosys"], check=True, timeout=600)
    return program


def run(program: Path) -> dict[str, int]:
    """Run a program; returns what it reports by name. Raises CalledProcessError where it fails."""
    command = [EMULATOR, "-M", "mps2-an500", "-display", "none", "-monitor", "none", "-serial", "none"]
    command += ["-semihosting-config", "enable=on,target=native", "-icount", f"shift={_SHIFT}"]
    ran = subprocess.run(
        [*command, "-kernel", str(program)], check=True, timeout=600, capture_output=True, text=True
    )
    return {name: int(value, 16) for name, value in map(str.split, (ran.stdout + ran.stderr).splitlines())}


def as_float(bits: int) -> float:
    """Return the number of 32 bits that was reported by them."""
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def instructions(ticks: int) -> float:
    """Return the instructions of one of the calls of `measuring_main` from the ticks of all."""
    return ticks * _TICK / 2**_SHIFT / _CALLS


def measuring_main(
    includes: Sequence[str], calls: Mapping[str, str], declared: str, tests: Sequence[str]
) -> str:
    """Write a program that reports `name_ticks` and `name_stack` of calls, and the errors of self-tests.

    `declared`: what the calls refer to; `tests`: names of functions that return a float.
    """
    lines = [*(f'#include "{name}"' for name in ("board.h", *includes)), declared]
    lines += [f"static void call_{name}(void) {{ {call}; }}" for name, call in calls.items()]
    lines += ["static void nothing(void) {}", "int main(void) {"]
    for name in calls:
        lines.append(f'  report("{name}_stack", stack_of(call_{name}) - stack_of(nothing));')
        lines.append(
            f'  report("{name}_ticks", ticks_of(call_{name}, {_CALLS}) - ticks_of(nothing, {_CALLS}));'
        )
    lines += [f'  report_float("{name}", {name}());' for name in tests]
    return "\n".join([*lines, "  return 0;", "}", ""])
