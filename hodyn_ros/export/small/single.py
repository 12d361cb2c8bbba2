"""C99 of this project with numbers of 32 bits in place of those of 64."""

from __future__ import annotations

import re

import numpy as np

from hodyn_ros.errors import InputError

_TOKENS = re.compile(
    r"""(?P<other>/\*.*?\*/|"(?:\\.|[^"\\])*")
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>(?:\d+\.\d*|\d+(?=[eE]))(?:[eE][+-]?\d+)?)
    |(?P<whole>\d+)""",
    re.DOTALL | re.VERBOSE,
)
_NAMES = {"double": "float", "HUGE_VAL": "HUGE_VALF", "binary64": "double"}
_NAMES |= {name: f"{name}f" for name in ("fabs", "floor", "fma", "sqrt", "fmax")}


def in_single(code: str) -> str:
    """Write code with `float` in place of `double`, and `double` of `binary64`; comments and strings stay.

    Constants are those nearest; InputError for one that no float can hold.
    """
    return _TOKENS.sub(_written, code)


def _written(match: re.Match[str]) -> str:
    text = match[0]
    if match["name"]:
        return _NAMES.get(text, text)
    return f"{_nearest(float(text))}F" if match["number"] else text


def _nearest(value: float) -> str:
    with np.errstate(over="ignore"):
        nearest = np.float32(value)
    if not np.isfinite(nearest):
        raise InputError(f"the number {value!r} of the robot is too large for float32; export it without")
    return str(nearest)
