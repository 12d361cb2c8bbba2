"""The errors of hodyn_ros: one root, two kinds, and finer ones where a caller may go on by another way."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

_PLAIN_WARNING = warnings.showwarning


def nearest(unknown: str, known: Sequence[str]) -> str:
    """Return the word that may be meant, or all there are."""
    near = get_close_matches(unknown, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"


class HodynError(ValueError):
    """Root of all errors that hodyn_ros raises on purpose; `sample`: where in a batch."""

    sample = 0

    def __reduce__(self) -> tuple[Any, ...]:
        # As it is: what a process pool sends back is not built anew from its message alone.
        return _restored, (type(self), self.args), vars(self)


def _restored(kind: type[HodynError], said: tuple[Any, ...]) -> HodynError:
    return kind.__new__(kind, *said)


class ModelError(HodynError):
    """The description of a robot is wrong: a URDF, a YAML file, or the arrays it was built from."""


class FigureWarning(UserWarning):
    """A figure of a robot or of its feedback looks wrong: as in another unit, or as no body has it."""


class InputError(HodynError):
    """The numbers, shapes or names given to a call are wrong."""


class SingularError(InputError):
    """A Jacobian cannot be inverted where it has to be, or too few digits would be left of what follows.

    `condition` is its condition number, or by how much rounding grows; `order` the highest derivative order
    of the answer that still holds, -1 where none does.
    """

    def __init__(self, message: str, condition: float, sample: int = 0, *, order: int = -1) -> None:
        super().__init__(message)
        self.condition = condition
        self.sample = sample
        self.order = order


class ConvergenceError(InputError):
    """An iteration found no solution; `angle` [rad] and `distance` [m] are what was missing in the end."""

    def __init__(self, message: str, angle: float, distance: float) -> None:
        super().__init__(message)
        self.angle = angle
        self.distance = distance


class OverflowingError(InputError):
    """The numbers given are so large that the result is not finite."""


class ShapeError(InputError):
    """An array has another shape than it must have: its `name`, the `shape` wanted, what was `found`."""

    def __init__(self, name: str, shape: object, found: tuple[int, ...]) -> None:
        super().__init__(f"{name} must have shape {shape}, found {found}")
        self.name = name
        self.shape = str(shape)
        self.found = found


class NotFiniteError(InputError):
    """An array holds NaN or infinite numbers: its `name`, and the `index` of the first."""

    def __init__(self, name: str, index: tuple[int, ...]) -> None:
        super().__init__(f"{name} holds NaN or infinite numbers, first at index {index}")
        self.name = name
        self.index = index


class UnknownNameError(InputError):
    """There is no `what` of this `name`, which may be an index; the names in `known` are there."""

    def __init__(self, what: str, name: object, known: Sequence[str]) -> None:
        super().__init__(f"there is no {what} {name!r}; known here: {list(known)}")
        self.what = what
        self.name = name
        self.known = tuple(known)


class RangeError(InputError):
    """A figure is not where it has to be: its `name` and `value`, and the `low` and `high` ends."""

    def __init__(self, name: str, value: float, low: float, high: float) -> None:
        super().__init__(f"{name} must be within {low:g} and {high:g}, found {value:g}")
        self.name = name
        self.value = value
        self.low = low
        self.high = high


def print_figures_in_one_line() -> None:
    """Let this process print what is doubtful in a file in one line, and other warnings as Python does."""
    warnings.showwarning = _show


def _show(message: Warning | str, category: type[Warning], *place: Any, **named: Any) -> None:
    if issubclass(category, FigureWarning):
        print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)
    else:
        _PLAIN_WARNING(message, category, *place, **named)
