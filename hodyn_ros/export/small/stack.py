"""How much stack C code takes: what its functions declare, along the deepest calls, and what calls save."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from hodyn_ros.errors import InputError


class Target(NamedTuple):
    """A kind of processor: flags of GCC, and the most bytes that a call takes besides variables.

    That is the registers that it saves, what it passes on the stack, and alignment.
    """

    flags: str
    frame: int


TARGETS = {
    # r4-r11 and lr, d8-d15; pointers and four registers of arguments, which unoptimised code stores
    "cortex-m7": Target("-mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard", 160),
    "generic": Target("", 320),  # likewise of processors of 64 bits, or library calls of those without an FPU
}
_SIZES = {"double": 4, "int": 4, "long": 8, "wide": 8, "turn": 16}  # [bytes]; numbers are written as float
_FUNCTION = re.compile(
    r"^(?:static )?(?:inline )?(?:double|int|long|void|wide|turn) (\w+)\([^)]*\)\n\{\n(.*?)^\}",
    re.DOTALL | re.MULTILINE,
)
_DECLARED = re.compile(
    r"(static )?\b(?:const )?(double|int|long|wide|turn|\w+_memory) "
    r"(\w+(?:\[\d+\])?(?:, \w+(?:\[\d+\])?)*)(?: =|;)"
)
_CALLED = re.compile(r"\b(\w+)\(")


def find_target(name: str) -> Target:
    """Return a target by its name; InputError for an unknown one."""
    if name not in TARGETS:
        raise InputError(f"there is no target {name!r}; choose {' or '.join(TARGETS)}")
    return TARGETS[name]


def stack_bytes(code: str, functions: Sequence[str], of: Target, memory: Sequence[str]) -> int:
    """Return the most bytes of stack that calls of `functions` take, with all that they call.

    Twice what they declare, as compilers keep constants, too, and begin early with what is needed late.
    `code`: their text, as written before numbers become float; `memory`: the members of the struct.
    """
    bodies = {name: " ".join(body.split()) for name, body in _FUNCTION.findall(code)}
    remembered = _declared(" ".join(memory), 0)

    @cache
    def deepest(name: str) -> int:
        if name not in bodies:
            return of.frame  # of a library
        own = of.frame + 2 * _declared(bodies[name], remembered)
        return own + max(
            (deepest(called) for called in set(_CALLED.findall(bodies[name])) - {"if", "for", "while"}),
            default=0,
        )

    return 8 * -(-max(map(deepest, functions)) // 8)


def _declared(body: str, memory: int) -> int:
    """Return the bytes of the variables that a text declares."""
    total = 0
    for static, kind, names in _DECLARED.findall(body):
        count = sum(int(size or 1) for size in re.findall(r"\w+(?:\[(\d+)\])?", names))
        total += 0 if static else count * _SIZES.get(kind, memory)
    return total
