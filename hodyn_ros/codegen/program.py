"""Programs: compiled functions called in sequence, in loops and under conditions, on numbers in memory.

A traced graph is a straight line. What goes around it (Newton's method, loops over bodies, limbs or samples)
is stated here once, as data. Three readers follow it: `program_llvm` writes an LLVM module, `program_numbers`
carries it out in Python and is the reference of the others, and `hodyn_ros.export.program_c` writes C99.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Relation = Literal["<", "<=", ">"]


@dataclass(frozen=True)
class Index:
    """A whole number: a polynomial in named ones, as `terms` of their names and a factor.

    Names are those of integer arguments of the program, of variables of its loops, and of what `Look` reads.
    """

    terms: Mapping[tuple[str, ...], int]

    @staticmethod
    def of(value: Index | int) -> Index:
        """Return the index of a value."""
        return value if isinstance(value, Index) else Index({(): value} if value else {})

    @property
    def constant(self) -> int | None:
        """The value, if it depends on no named number."""
        return self.terms.get((), 0) if not any(self.terms) else None

    @property
    def name(self) -> str:
        """The name of an index that is one named number alone."""
        ((names, factor),) = self.terms.items()
        assert len(names) == 1 and factor == 1
        return names[0]

    def __add__(self, other: Index | int) -> Index:
        terms = dict(self.terms)
        for names, factor in Index.of(other).terms.items():
            terms[names] = terms.get(names, 0) + factor
        return Index({names: factor for names, factor in terms.items() if factor})

    def __sub__(self, other: Index | int) -> Index:
        return self + Index.of(other) * -1

    def __mul__(self, other: Index | int) -> Index:
        result = Index({})
        for first, a in self.terms.items():
            for second, b in Index.of(other).terms.items():
                result = result + Index({tuple(sorted((*first, *second))): a * b})
        return result

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: int) -> Index:
        return self * -1 + other


def integer(name: str) -> Index:
    """Return the index that is the number with a name."""
    return Index({(name,): 1})


@dataclass(frozen=True)
class View:
    """Numbers of a buffer from a place on. Buffers are arguments, local memory or constants of a program."""

    buffer: str
    index: Index = field(default_factory=lambda: Index({}))

    def at(self, place: Index | int) -> View:
        """Return what begins that many numbers behind."""
        return View(self.buffer, self.index + place)


@dataclass(frozen=True)
class Code:
    """A compiled function `void f(double *..., int64_t ...)`; what it was compiled into lives as long.

    Without an address it is one of the same module, by its name. `compute` does the same with NumPy's arrays,
    which begin where the views do.
    """

    name: str
    address: int = 0
    compute: Callable[..., None] | None = field(default=None, compare=False)
    alive: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Sum:
    """The sum of several numbers."""

    views: Sequence[View]


Number = View | Sum | float


@dataclass(frozen=True)
class Compare:
    """Whether numbers are in a relation; where one is NaN, they are not."""

    left: Number
    relation: Relation
    right: Number


@dataclass(frozen=True)
class All:
    """Whether all conditions hold."""

    conditions: Sequence[Condition]


@dataclass(frozen=True)
class Not:
    """Whether a condition does not hold."""

    condition: Condition


Condition = Compare | All | Not


@dataclass(frozen=True)
class Run:
    """Call a function with views and integers."""

    code: Code
    arguments: Sequence[View | Index]


@dataclass(frozen=True)
class Copy:
    """Copy numbers, which do not overlap."""

    target: View
    source: View
    count: int = 1


@dataclass(frozen=True)
class Put:
    """Write a number, or zero so many times."""

    target: View
    value: float
    count: int = 1


@dataclass(frozen=True)
class Look:
    """Give a name to a whole number in a table of them (int64)."""

    variable: Index
    table: View


@dataclass(frozen=True)
class For:
    """Carry out a body for a variable from zero to below a count, which may be zero, in steps."""

    variable: Index
    count: Index
    body: Sequence[Statement]
    step: int = 1


@dataclass(frozen=True)
class Repeat:
    """Carry out a body once, and while a condition holds again, at most so often."""

    body: Sequence[Statement]
    again: Condition
    most: int


@dataclass(frozen=True)
class When:
    """Carry out a body where a condition holds."""

    condition: Condition
    body: Sequence[Statement]


@dataclass(frozen=True)
class Choose:
    """Carry out the body of the case that a whole number is, if there is one."""

    number: Index
    cases: Mapping[int, Sequence[Statement]]


@dataclass(frozen=True)
class Return:
    """End the program, with a whole number where it `returns` one."""

    value: Index = field(default_factory=lambda: Index({}))


Statement = Run | Copy | Put | Look | For | Repeat | When | Choose | Return


@dataclass(frozen=True)
class Program:
    """A function of arrays and integers.

    `arguments`: views are arrays of doubles or of a table's whole numbers, indices are integers. `local` are
    buffers by size; those whose size is no constant are large, and not on the stack. `constants` are arrays
    that live as long as the program. With `returns` it returns a whole number.
    """

    name: str
    arguments: Sequence[View | Index]
    local: Mapping[str, Index | int]
    body: Sequence[Statement]
    constants: Mapping[str, Any] = field(default_factory=dict)
    returns: bool = False


def arrays(names: Iterable[str]) -> list[View]:
    """Return views of whole buffers."""
    return [View(name) for name in names]
