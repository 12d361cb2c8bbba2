"""The processor that machine code is made for: this one, or another that HODYN_PROCESSOR names."""

from __future__ import annotations

import os
import platform
from functools import cache

import llvmlite.binding as llvm

from hodyn_ros.errors import InputError

VARIABLE = "HODYN_PROCESSOR"
NATIVE = "native"
WITHOUT_FMA = ",-fma"  # behind a name: products and sums round one by one, as on processors before FMA

# What code for a level of the x86-64 psABI may use (section 3.1.1), beside what those before it may.
_LEVELS = {
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
# What LLVM calls processors of AMD, by their level; what they have beyond that is used where it is here, too.
_ZEN = dict.fromkeys(("znver1", "znver2", "znver3"), "x86-64-v3") | {"znver4": "x86-64-v4"}
_RESTS_ON_FMA = ("fma", "avx512", "avx10")  # features that begin so
# What every processor of aarch64 runs, "generic" for LLVM; whatever one has beyond that rounds alike.
_ARM = "armv8-a"


def target() -> tuple[str, str]:
    """Return the processor and its features as LLVM takes them.

    `HODYN_PROCESSOR` is `native` (as if it were not set), a level of the x86-64 psABI from `x86-64-v2` to
    `x86-64-v4`, or `znver1` to `znver4`; `,-fma` behind any of them leaves out fused operations, and AVX-512,
    which has its own. On aarch64 it is `native` or `armv8-a`, and both fuse. Raises InputError for another
    name, and for one whose code this machine cannot run.
    """
    return _target(os.environ.get(VARIABLE) or NATIVE)


def lanes() -> int:
    """Return how many doubles a vector register of the processor holds, at least four."""
    return 8 if masks() else 4


def masks() -> bool:
    """Whether the processor loads and stores some lanes of a vector as fast as all."""
    return "+avx512f" in target()[1].split(",")


@cache
def _target(setting: str) -> tuple[str, str]:
    here: dict[str, bool] = dict(llvm.get_host_cpu_features())
    names = {NATIVE: [], **{name: _needs(name) for name in (*_LEVELS, *_ZEN)}}
    if platform.machine() in ("aarch64", "arm64"):
        names[_ARM] = []
    possible = [name for name, needs in names.items() if all(here.get(each) for each in needs)]
    if "fma" in here:
        possible += [f"{name}{WITHOUT_FMA}" for name in possible]
    name = setting.removesuffix(WITHOUT_FMA)
    if setting not in possible:
        lacks = [each for each in names.get(name, []) if not here.get(each)]
        why = f"this machine lacks {', '.join(lacks)}" if lacks else "this names no processor known here"
        raise InputError(f"{VARIABLE}={setting}: {why}; possible on this machine: {' '.join(possible)}")
    # LLVM adds what a named processor has; of that only what is here
    used = here if name == NATIVE else dict.fromkeys(names[name], True) | _absent(here)
    if name != setting:
        used = {each: has and not each.startswith(_RESTS_ON_FMA) for each, has in used.items()}
    called = {NATIVE: llvm.get_host_cpu_name(), _ARM: "generic"}
    return (
        called.get(name, name),
        ",".join(f"{'+' if used[feature] else '-'}{feature}" for feature in sorted(used)),
    )


def _absent(here: dict[str, bool]) -> dict[str, bool]:
    return {each: False for each, has in here.items() if not has}


def _needs(name: str) -> list[str]:
    level = _ZEN.get(name, name)
    return [each for at, needs in _LEVELS.items() if at <= level for each in needs.split()]
