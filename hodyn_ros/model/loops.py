"""What makes more of a tree than a tree: joints that move others, and loops that close between two bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.se3 import Array

LoopKind = Literal["weld", "ball", "universal", "hinge", "cylinder", "slider", "rod", "spin"]
KINDS: tuple[LoopKind, ...] = get_args(LoopKind)
_WITH_AXIS = ("universal", "hinge", "cylinder", "slider", "spin")


@dataclass(frozen=True)
class Coupling:
    """A joint that another one moves: `q_joint = ratio q_of + offset`, as `mimic` in URDF.

    `joint` and `of`: names or indices; `of` may itself be coupled to a third. `ratio`: coordinate per
    coordinate [rad or m, per rad or m]; `offset` [rad or m]. Raises ModelError naming the joint at fault.
    """

    joint: str | int
    of: str | int
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        for what in ("ratio", "offset"):
            figure = getattr(self, what)
            number = isinstance(figure, (int, float, np.number)) and not isinstance(figure, bool)
            if not number or not np.isfinite(figure):
                raise ModelError(
                    f"the {what} of the coupling of joint {self.joint!r} must be a number, found {figure!r}"
                )
            object.__setattr__(self, what, float(figure))
        if self.joint == self.of:
            raise ModelError(f"joint {self.joint!r} is coupled to itself; couple it to another one")


@dataclass(frozen=True, eq=False)
class Loop:
    """Two bodies that are joined besides the joints of the tree, described at the zero configuration.

    `a`, `b`: bodies or frames by name or index, or "world". `kind` says what is joined:

    - "weld": both move as one; "ball": `point` of a with that of b; "hinge": `point` and `axis`;
    - "universal": `point`, and `axis` of a stays normal to `axis_b` of b;
    - "cylinder": `axis` through `point`, along which b slides and turns; "slider": b slides along it only;
    - "rod": `point` of a and `point_b` of b stay as far apart as they are, as by a rod without mass;
    - "spin": b does not spin about `axis`, fixed in b, against a; for rods between two balls, whose spin
      nothing holds.

    `point` (3,) [m] and `axis` (3,), of any length, in the world at the zero configuration; `point_b` and
    `axis_b` are those of b, by default the same. `name`: by default "kind a-b". Raises ModelError naming the
    loop and what is missing or too much.
    """

    a: str | int
    b: str | int
    kind: LoopKind
    point: ArrayLike
    axis: ArrayLike | None = None
    point_b: ArrayLike | None = None
    axis_b: ArrayLike | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            object.__setattr__(self, "name", f"{self.kind} {self.a}-{self.b}")
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ModelError(f"loop {self.name!r} has the unknown kind {self.kind!r}; known: {list(KINDS)}")
        if self.a == self.b:
            raise ModelError(f"loop {self.name!r} joins {self.a!r} with itself; name two bodies")
        for field, needed in (("point", True), ("axis", False), ("point_b", False), ("axis_b", False)):
            given = getattr(self, field)
            if given is not None or needed:
                object.__setattr__(self, field, self._vector(field, given))
        for needs, fields in {
            **dict.fromkeys(_WITH_AXIS, ("axis",)),
            "universal": ("axis", "axis_b"),
            "rod": ("point_b",),
        }.items():
            missing = [field for field in fields if needs == self.kind and getattr(self, field) is None]
            if missing:
                raise ModelError(f"loop {self.name!r}: a {self.kind} needs {missing[0]!r}")
        for field in ("axis", "axis_b"):
            axis = getattr(self, field)
            if axis is not None:
                if not axis.any():
                    raise ModelError(f"loop {self.name!r}: {field!r} is zero, which has no direction")
                axis = axis / np.linalg.norm(axis)
                axis.setflags(write=False)
                object.__setattr__(self, field, axis)

    def _vector(self, field: str, given: ArrayLike | None) -> Array:
        try:
            vector = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            vector = np.full(1, np.nan)
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise ModelError(f"loop {self.name!r}: {field!r} must be three numbers, found {given!r}")
        vector.setflags(write=False)
        return vector
