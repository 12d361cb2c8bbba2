"""What makes more of a tree than a tree: joints that move others, and loops that close between two bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.model.arrays import frozen_array, is_turn
from hodyn_ros.model.joint_function import JointFunction

LoopKind = Literal["weld", "ball", "universal", "hinge", "cylinder", "slider", "rod", "spin", "rows"]
KINDS: tuple[LoopKind, ...] = get_args(LoopKind)
ROWS = ("rx", "ry", "rz", "x", "y", "z")
TOLERANCE = 1e-4
WITH_AXIS = ("universal", "hinge", "cylinder", "slider", "spin")
WITH_AXES = ("rows", "weld", "slider")  # a frame on each body

Coordinate = str | int | tuple[str | int, Sequence[str]]
"""A joint, or (body, rows) with components of the pose of a body, out of "rx", "ry", "rz", "x", "y", "z"."""


@dataclass(frozen=True)
class Coupling:
    """A joint that another one moves: `q_joint = ratio q_of + offset`, as `mimic` in URDF, or `f(q_of)`.

    `joint` and `of`: names or indices; `of` may itself be coupled to a third. `ratio`: coordinate per
    coordinate [rad or m, per rad or m]; `offset` [rad or m].

    Of cams and other transmissions, in place of ratio and offset: `polynomial`, the coefficients of f, the
    constant first; or a `table` (positions of `of`, positions of `joint`), through which goes a spline of an
    odd `degree`. Its derivatives are continuous up to `degree` - 1, and efforts of order r take r + 2 of
    them. A `periodic` table ends as it begins, and holds for any position; others have a range.

    Raises ModelError naming the joint at fault.
    """

    joint: str | int
    of: str | int
    ratio: float = 1.0
    offset: float = 0.0
    polynomial: Sequence[float] | None = None
    table: tuple[Sequence[float], Sequence[float]] | None = None
    degree: int = 5
    periodic: bool = False

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
        curves = [what for what in ("polynomial", "table") if getattr(self, what) is not None]
        if len(curves) > 1 or (curves and (self.ratio, self.offset) != (1.0, 0.0)):
            raise ModelError(
                f"the coupling of joint {self.joint!r} has {' and '.join(curves)}"
                f"{'' if len(curves) > 1 else ' beside a ratio or an offset'}; give one of them"
            )
        if self.table is None and (self.degree, self.periodic) != (5, False):
            raise ModelError(
                f"the coupling of joint {self.joint!r} has no table, so it has neither degree nor period"
            )
        if curves:
            object.__setattr__(self, curves[0], self._figures(curves[0]))
            self.function  # noqa: B018, raises what is wrong

    @cached_property
    def function(self) -> JointFunction | None:
        """The curve that the joint follows; None of a linear coupling."""
        try:
            if self.table is not None:
                return JointFunction.of_table(*self.table, self.degree, self.periodic)
            return None if self.polynomial is None else JointFunction.of_polynomial(self.polynomial)
        except ModelError as error:
            raise ModelError(f"the coupling of joint {self.joint!r}: {error}") from error

    def _figures(self, what: str) -> object:
        """Return what was given as tuples of numbers, which compare and copy."""
        try:
            if what == "polynomial":
                return tuple(float(figure) for figure in getattr(self, what))
            at, values = getattr(self, what)
            return tuple(float(figure) for figure in at), tuple(float(figure) for figure in values)
        except (TypeError, ValueError):
            form = "a list of numbers" if what == "polynomial" else "two lists of numbers"
            raise ModelError(
                f"the {what} of the coupling of joint {self.joint!r} must be {form}, found "
                f"{getattr(self, what)!r}"
            ) from None


@dataclass(frozen=True, eq=False)
class Loop:
    """Two bodies that are joined besides the joints of the tree, described at the zero configuration.

    `a`, `b`: bodies or frames by name or index, or "world". `kind` says what is joined:

    - "weld": both move as one; "ball": `point` of a with that of b; "hinge": `point` and `axis`;
    - "universal": `point`, and `axis` of a stays normal to `axis_b` of b;
    - "cylinder": `axis` through `point`, along which b slides and turns; "slider": b slides along it only;
    - "rod": `point` of a and `point_b` of b stay as far apart as they are, as by a rod without mass;
    - "spin": b does not spin about `axis`, fixed in b, against a; for rods between two balls, whose spin
      nothing holds;
    - "rows": some `rows` of the pose of b in a do not change, out of "rx", "ry", "rz" (turns about) and "x",
      "y", "z" (shifts along the axes of a frame on a, the columns of `axes` (3, 3), by default the world's).

    `point` (3,) [m] and `axis` (3,), of any length, in the world at the zero configuration; `point_b` and
    `axis_b` are those of b, by default the same. Where loops close at another configuration (`home` of the
    robot), these are where point and axis lie on each body at zero, and a weld or slider also needs `axes`
    and `axes_b`, (3, 3), whose columns x, y, z are a frame on each; a slider goes along z, and a rod needs
    its `length` [m], which is the distance of its points otherwise. `name`: by default "kind a-b". Raises
    ModelError naming the loop and what is missing or too much.
    """

    a: str | int
    b: str | int
    kind: LoopKind
    point: ArrayLike
    axis: ArrayLike | None = None
    point_b: ArrayLike | None = None
    axis_b: ArrayLike | None = None
    name: str = ""
    rows: Sequence[str] = ()
    axes: ArrayLike | None = None
    axes_b: ArrayLike | None = None
    length: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            object.__setattr__(self, "name", f"{self.kind} {self.a}-{self.b}")
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ModelError(f"loop {self.name!r} has the unknown kind {self.kind!r}; known: {list(KINDS)}")
        if self.a == self.b:
            raise ModelError(f"loop {self.name!r} joins {self.a!r} with itself; name two bodies")
        for field, needed in (("point", True), ("axis", False), ("point_b", False), ("axis_b", False)):
            vector = getattr(self, field)
            if vector is not None or needed:
                object.__setattr__(self, field, self._vector(field, vector))
        for needs, fields in {
            **dict.fromkeys(WITH_AXIS, ("axis",)),
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

        self._check_rows()
        self._check_length()

    def _check_length(self) -> None:
        if self.length is None:
            return
        if self.kind != "rod":
            raise ModelError(f"loop {self.name!r}: a {self.kind} has no length; a rod has one")
        if not isinstance(self.length, (int, float)) or not 0.0 < self.length < inf:
            raise ModelError(f"loop {self.name!r}: the length of a rod is positive, found {self.length!r}")

    def _check_rows(self) -> None:
        listed = isinstance(self.rows, Sequence) and not isinstance(self.rows, str)
        rows = tuple(self.rows) if listed else ("?",)
        framed = self.kind in WITH_AXES
        if self.kind != "rows" and rows or not framed and (self.axes is not None or self.axes_b is not None):
            raise ModelError(f"loop {self.name!r}: a {self.kind} has no rows and axes of its own")
        if self.axes is None and self.axes_b is not None:
            raise ModelError(f"loop {self.name!r} has axes_b without axes; give both")
        if self.kind == "rows":
            if not rows or any(row not in ROWS for row in rows) or len(set(rows)) < len(rows):
                raise ModelError(
                    f"loop {self.name!r}: rows must be some of {list(ROWS)}, found {self.rows!r}"
                )
            object.__setattr__(self, "rows", tuple(row for row in ROWS if row in rows))
            if self.axes is None:
                object.__setattr__(self, "axes", np.eye(3))
        for field in ("axes", "axes_b"):
            if getattr(self, field) is not None:
                axes = frozen_array(field, getattr(self, field), (3, 3))
                if not is_turn(axes):
                    raise ModelError(
                        f"loop {self.name!r}: the columns of its {field} must be a right-handed frame"
                    )
                object.__setattr__(self, field, axes)

    def _vector(self, field: str, values: ArrayLike | None) -> Array:
        try:
            vector = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            vector = np.full(1, np.nan)
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise ModelError(f"loop {self.name!r}: {field!r} must be three numbers, found {values!r}")
        vector.setflags(write=False)
        return vector


@dataclass(frozen=True)
class Constraints:
    """What holds the bodies of a tree besides its joints, and which coordinates and drives move it then.

    `coordinates`: the independent ones, joints by name or index, or `(body, rows)` with rows out of "rx",
    "ry", "rz", "x", "y", "z" of a body's pose; by default the `driven` joints, which are by default the
    coordinates. `home`: positions of joints by name near which loops are closed that are described at zero,
    the others at zero; None where they are closed as described. `tolerance`: rows of loops whose singular
    values are smaller, relative to the largest, count as redundant. `docs/loops.md` explains them. Raises
    ModelError for lists of anything else; `Closure.build` resolves names.
    """

    loops: Sequence[Loop] = ()
    couplings: Sequence[Coupling] = ()
    coordinates: Sequence[Coordinate] | None = None
    driven: Sequence[str | int] | None = None
    home: Mapping[str, float] | None = None
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        for what, items, kind in (("loops", self.loops, Loop), ("couplings", self.couplings, Coupling)):
            if not isinstance(items, (list, tuple)):
                raise ModelError(f"{what} must be a list of {kind.__name__}, found {type(items).__name__}")
            for item in items:
                if not isinstance(item, kind):
                    raise ModelError(
                        f"{what} must be a list of {kind.__name__}, found {type(item).__name__} in it"
                    )

    @property
    def empty(self) -> bool:
        """Whether the tree stays one that each of its joints moves by itself."""
        chosen = self.coordinates is not None or self.driven is not None
        return not (self.loops or self.couplings or self.home or chosen)

    def by_name(self, bodies: Sequence[str], joints: Sequence[str]) -> Constraints:
        """Return the same with names of bodies and joints for their indices, for a tree that has others."""

        def coordinates(items: Any) -> Any:
            if not isinstance(items, (list, tuple)):
                return items  # left to those who read it
            return [
                (named(bodies, x[0]), *x[1:]) if isinstance(x, tuple) and x else named(joints, x)
                for x in items
            ]

        return replace(
            self,
            loops=[replace(x, a=named(bodies, x.a), b=named(bodies, x.b)) for x in self.loops],
            couplings=[
                replace(x, joint=named(joints, x.joint), of=named(joints, x.of)) for x in self.couplings
            ],
            coordinates=coordinates(self.coordinates),
            driven=coordinates(self.driven),
        )


def named(names: Sequence[str], key: Any) -> Any:
    """Return the name at an index; other keys as they are. Raises ModelError for an index that is none."""
    if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
        return key
    if not 0 <= key < len(names):
        raise ModelError(f"there is no index {key}; there are {len(names)}: {list(names)}")
    return names[int(key)]
