"""One exported function: what it takes and gives, its code, and numbers to test it with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.lie.se3 import Array

OK, NEAR_SINGULAR, FAILED = range(3)
CODES = ("OK", "NEAR_SINGULAR", "FAILED")


@dataclass(frozen=True, eq=False)
class Cases:
    """Calls one after the other with what they must give: arrays by name, (calls, rows, columns) each.

    Errors are measured by the largest number of each row. The first `failing` of the calls must fail.
    `rounding_error`: the largest such error that rounding the inputs to 24 bits makes.
    """

    inputs: Mapping[str, Array]
    results: Mapping[str, Array]
    codes: tuple[int, ...] = ()
    failing: int = 0
    rounding_error: float = 0.0

    @property
    def count(self) -> int:
        """How many calls there are."""
        return len(next(iter(self.results.values())))

    def after_failure(self) -> Cases:
        """Return these calls after one of infinite numbers, which must fail and leave all results zero."""
        inputs = {name: np.concatenate([np.full_like(x[:1], np.inf), x]) for name, x in self.inputs.items()}
        results = {name: np.concatenate([np.zeros_like(x[:1]), x]) for name, x in self.results.items()}
        codes = (FAILED, *(self.codes or [OK] * self.count))
        return replace(self, inputs=inputs, results=results, codes=codes, failing=1)


def rounded(values: Array) -> Array:
    """Return numbers as those of 24 bits hold them."""
    nearest: Array = values.astype(np.float32).astype(np.float64)
    return nearest


def rounding_error(results: Mapping[str, Array], of_rounded: Mapping[str, Array]) -> float:
    """Return by how much results of rounded inputs are off, relative to the largest number of their row."""
    largest = 0.0
    for name, values in results.items():
        scale = np.abs(values).max(axis=-1, initial=0.0)
        apart = np.abs(values - of_rounded[name]).max(axis=-1, initial=0.0)
        largest = max(largest, float((apart / np.where(scale > 0.0, scale, 1.0)).max(initial=0.0)))
    return largest


class Memory(NamedTuple):
    """Members of the struct that the caller keeps, and the statements that initialise them."""

    members: Sequence[str]
    home: Sequence[str]


@dataclass(frozen=True, eq=False)
class CFunction:
    """A function `<prefix>_<name>` of arrays row by row; those without elements are left out.

    `lines` are its body. Where it remembers something a struct `<prefix>_memory` is its first parameter; with
    `fails` it returns a code. `helpers` are static functions by name, `about` the paragraphs of its comment.
    """

    prefix: str
    name: str
    inputs: Mapping[str, Shape]
    results: Mapping[str, Shape]
    about: Sequence[str]
    lines: Sequence[str]
    cases: Cases
    remembers: Mapping[str, Memory] = field(default_factory=dict)
    fails: bool = False
    operations: int = 0
    helpers: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """The name as C has it."""
        return f"{self.prefix}_{self.name}"

    @property
    def memory(self) -> bool:
        """Whether it takes a memory."""
        return bool(self.remembers)

    @property
    def prototype(self) -> str:
        """The declaration, without a semicolon."""
        memory = [f"{self.prefix}_memory *memory"] if self.memory else []
        inputs = [f"const double {name}[{size}]" for name, size in sizes(self.inputs).items()]
        results = [f"double {name}[{size}]" for name, size in sizes(self.results).items()]
        kind = "int" if self.fails else "void"
        return f"{kind} {self.full_name}({', '.join([*memory, *inputs, *results])})"

    def call(self, passed: Mapping[str, str] | None = None, memory: str = "&memory") -> str:
        """Write a call; arrays are passed by their own names, or as `passed` says."""
        names = {name: name for name in sizes({**self.inputs, **self.results})} | dict(passed or {})
        return f"{self.full_name}({', '.join([*([memory] if self.memory else []), *names.values()])})"

    @property
    def definition(self) -> list[str]:
        """The function with its body."""
        unused = [f"  (void){name};" for name in sizes(self.inputs)]
        return [self.prototype, "{", *unused, *self.lines, "}"]


def sizes(shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Return the number of elements of the arrays that have any."""
    return {name: rows * columns for name, (rows, columns) in shapes.items() if rows * columns}


def copied(target: str, source: str, count: int) -> list[str]:
    """Write the loop over `i` that copies an array."""
    return [f"  for (i = 0; i < {count}; ++i) {{", f"    {target}[i] = {source}[i];", "  }"]


def unless(conditions: Sequence[str], finite: Mapping[str, Shape], prefix: str) -> list[str]:
    """Write that a call fails where a condition does not hold, or an array holds NaN or infinity."""
    every = [*conditions, *(f"all_finite({name}, {size})" for name, size in sizes(finite).items())]
    return [f"  if (!({' && '.join(every)})) {{", f"    return {prefix.upper()}_FAILED;", "  }"]


def checked(call: str, prefix: str) -> list[str]:
    """Write a call whose code is returned where it has failed."""
    return [f"  code = {call};", f"  if (code == {prefix.upper()}_FAILED) {{", "    return code;", "  }"]


def static_function(name: str, inputs: Iterable[str], result: str, body: Sequence[str]) -> list[str]:
    """Write a function of a file, of arrays, some of which it may not need."""
    parameters = ", ".join([*(f"const double *{each}" for each in inputs), f"double *{result}"])
    return [f"static void {name}({parameters})", "{", *(f"  (void){each};" for each in inputs), *body, "}"]


ALL_FINITE = {
    "all_finite": [
        "static int all_finite(const double *values, int count)",
        "{",
        "  double zero = 0.0;",
        "  int k;",
        "  for (k = 0; k < count; ++k) {",
        "    zero += 0.0 * values[k];",
        "  }",
        "  return zero == 0.0;",
        "}",
    ]
}
