"""The recursions over a tree in memory: traced for one body, and carried out by loops over all of them.

The recursions go outward over all bodies and inward again, several times. Traced for a body of each kind and
for a floating base, they meet this body alone on each way, and its parent in memory. Where they turn round, a
step ends, and what others need of the body is stored: the motion that children read, and the sums that they
add to. A program runs each step in a loop over all bodies, that of the base before the loop outward and after
the loop inward. So what children read of a base must not follow from what they do on the same way outward.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.codegen.program import Code, Program, Run, Statement, View
from hodyn_ros.codegen.program_llvm import compile_program
from hodyn_ros.codegen.sincos import sincos_function
from hodyn_ros.engine.large_trees.steps import Steps, step_name
from hodyn_ros.engine.large_trees.tree_loads import APPLIED, each_load, load_texts, scratch
from hodyn_ros.engine.large_trees.tree_loops import (
    BASE_CONSTANTS,
    OUT,
    Column,
    base_columns,
    base_of,
    each_body,
    tree_program,
)
from hodyn_ros.engine.large_trees.tree_memory import (
    CONSTANTS,
    N_CONSTANTS,
    NOTHING,
    OWN,
    PARENT,
    Record,
    Text,
    six,
    traced_body,
)
from hodyn_ros.engine.recursions.recursion import Direction, Recursion
from hodyn_ros.engine.series.applied import AppliedWrench
from hodyn_ros.engine.series.body import Body
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.spatial import NOTHING as NO_WRENCH
from hodyn_ros.engine.series.spatial import Spatial, symmetric
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.model.tree import JointKind

_RESULT, _BASE = "result", "base"
_POSE, _BASE_RESULT = View("pose"), View("base_result")
_REST = (0.0, 0.0, 0.0)  # gravity is the acceleration of the ground, in memory
_LOAD = AppliedWrench(0, "spatial")  # stands for all that there are, which loops of their own apply


class Swept(Recursion):
    """A recursion that meets one body of a tree, whose parent stands before it, or a floating base alone."""

    steps: Steps
    n_wrench: int  # sums between coefficients of the wrench on a body, which come first; zero of one alone

    @abstractmethod
    def results(self, joints: Sequence[Stack], of_base: Sequence[Stack]) -> Stack:
        """Return the derivatives of what is sought of the body, from those that are given."""

    @abstractmethod
    def sums(self, i: int) -> list[Any]:
        """Return the numbers of a body that its children add to."""

    @abstractmethod
    def set_sums(self, i: int, numbers: Sequence[Any]) -> None:
        """Replace them."""

    def trace(self, steps: Steps, joints: Sequence[Stack], of_base: Sequence[Stack]) -> Stack:
        """Trace all steps; returns what is sought, to be stored in the last one."""
        self.steps = steps
        self._stored: dict[str, int] = {}  # how many coefficients
        self._loaded: dict[int, Sequence[Any]] = {}  # sums, by argument
        parent = [] if self.base else [(0, PARENT)]
        self._places = [*parent, (len(self.bodies) - 1, OWN)]  # of bodies
        self._begin("outward", parent)
        rows = self.results(joints, of_base)
        self._end()
        return rows

    def way(self, direction: Direction) -> Iterable[Body]:
        """Return the body, in another step where the way turns round."""
        if direction != self.steps.steps[-1].direction:
            self._end()
            self._begin(direction, self._places)
        return self.jointed

    def applied(self, loads: Sequence[Sequence[Any]]) -> list[Spatial]:
        """Leave it to a loop over wrenches behind this step to apply the next coefficient."""
        if self.loads:
            k = sum(len(step.loads) for step in self.steps.steps)
            place = self.steps.record.place(Record.SUMS) + k * self.n_wrench
            self.steps.steps[-1].loads.append((k, place, place + 3))
        return [NO_WRENCH] * len(self.bodies)

    def _begin(self, direction: Direction, places: Sequence[tuple[int, int]]) -> None:
        """Begin a step: take the parent's motion from memory, and sums from that of some bodies."""
        self.steps.begin(direction)
        read, orders = self.steps.read, range(self.steps.record.order + 1)
        for i, argument in places:
            self._loaded[argument] = read(Record.SUMS, 0, argument)
            self.set_sums(i, self._loaded[argument])
        if not self.base:
            parent = self.bodies[0]
            angular = (read("angular", k, PARENT) for k in (*orders, len(orders)))
            parent.angular = [(x, y, z) for x, y, z in angular]
            parent.linear = [(x, y, z) for x, y, z in (read("linear", k, PARENT) for k in orders)]
            parent.products = [symmetric(read("products", k, PARENT)) for k in orders]

    def _end(self) -> None:
        """End a step: store what others read of the body, as far as it is new, and sums that have changed."""
        for name, series in self._read_by_others().items():
            count = self.steps.record.order + 1 + (name == "angular")
            for k, numbers in enumerate(series[:count]):
                if k >= self._stored.get(name, 0):
                    self.steps.write(name, numbers, k)
            self._stored[name] = len(series)
        places = self.steps.record.places(Record.SUMS)
        for i, argument in self._places:
            loaded = self._loaded.get(argument, [None] * len(places))
            changed = zip(places, self.sums(i), loaded, strict=True)
            self.steps.store([(argument, place, now) for place, now, before in changed if now is not before])

    def _read_by_others(self) -> dict[str, Sequence[Sequence[Any]]]:
        """Return series by name, each coefficient as numbers: for children, then for applied wrenches."""
        body, turn = self.bodies[-1], self.bodies[-1].turn
        series: dict[str, Sequence[Sequence[Any]]] = {"angular": body.angular, "linear": body.linear}
        series["products"] = [six(matrix) for matrix in body.products]
        if self.loads and self.base:
            series["velocity"] = self.base.velocity
        elif self.loads:
            scalars = {"cosine": [turn.cosine], "sine": [turn.sine], "slide": body.slide}
            scalars |= {"cosines": turn.cosines, "sines": turn.sines}
            series |= {name: [[x] for x in values] for name, values in scalars.items()}
        return series


# by variant of its steps the kind of a joint, and what makes the recursion of a body with it
Joints = dict[str, tuple[JointKind, Callable[..., Swept]]]


class Base(NamedTuple):
    """A floating base: what makes its recursion, and rows by name of what is given of it besides its pose."""

    make: Callable[..., Swept]
    frame: BaseRepresentation  # of its twists
    given: Mapping[str, int]


def swept_code(
    joints: Joints,
    order: int,
    n_sums: int,
    given: Mapping[str, int],
    base: Base | None,
    loaded: bool,
) -> Code:
    """Compile a recursion as loops over bodies.

    `n_sums`: how many numbers of a body children add to; `given`: rows by name of what is given of all
    joints; `loaded`: whether there are applied wrenches.
    """
    record = Record(order, {**given, _RESULT: order + 1, Record.SUMS: n_sums})
    traced = [_of_joint(name, *joint, record, given, loaded) for name, joint in joints.items()]
    traced += [_of_base(base, record, given, loaded)] if base else []
    texts = [text for one in traced for text in one.texts()]
    first, columns = (1, 6) if base else (0, 0)
    taken = [Column(View(name), record.place(name), rows) for name, rows in given.items()]
    result = Column(OUT, record.place(_RESULT), order + 1, skipped=columns)
    (way,) = {tuple(step.direction for step in one.steps) for one in traced}  # the same one for all
    body = list[Statement]()
    of_base = [_POSE, *map(View, base.given)] if base else []
    for i, (direction, step) in enumerate(zip(way, traced[0].steps)):
        before, after = taken if i == 0 else (), [result] if i == len(way) - 1 else ()
        names = [step_name(i, name) for name in joints]
        body.append(each_body(names, direction, first, record, before, after))
        if base:
            passed = [_POSE, base_of(record), BASE_CONSTANTS, *of_base[1:], _BASE_RESULT]
            at = len(body) - (direction == "outward")
            body.insert(at, Run(Code(step_name(i, _BASE)), passed))
        if step.loads:
            texts += load_texts(f"load{i}", record, step.loads, base is not None)
            body += each_load(f"load{i}", record, base is not None)
    local = scratch(order) if loaded else {}
    if base:
        local |= {_BASE_RESULT.buffer: 6 * (order + 1)}
        body += base_columns(_BASE_RESULT, order + 1)
    arguments = [*map(View, given), *of_base, *(APPLIED if loaded else ())]
    return _compiled(tree_program(arguments, local, record, body), texts)


def _of_joint(
    variant: str,
    kind: JointKind,
    make: Callable[..., Swept],
    record: Record,
    given: Mapping[str, int],
    loaded: bool,
) -> Steps:
    steps = Steps(variant, record)
    bodies = [NOTHING, traced_body(steps.graph, kind)]
    recursion = make(bodies, _REST, None, [_LOAD] if loaded else [])
    rows = recursion.trace(steps, [[[x] for x in steps.read(name)] for name in given], ())
    steps.write(_RESULT, [x for (x,) in rows])
    return steps


def _of_base(base: Base, record: Record, given: Mapping[str, int], loaded: bool) -> Steps:
    """Trace a base, whose steps take its pose in place of a parent, and after constants what is given."""
    steps = Steps(_BASE, record, 4 + len(base.given))
    read = steps.graph.input
    pose = [[read(PARENT, 4 * i + j) for j in range(4)] for i in range(4)]
    moving = FloatingBase(pose, [read(CONSTANTS, N_CONSTANTS + i) for i in range(3)], base.frame)
    bodies = [traced_body(steps.graph, JointKind.BASE)]
    recursion = base.make(bodies, _REST, moving, [_LOAD] if loaded else [])
    of_base = [
        [[read(argument, 6 * k + i) for i in range(6)] for k in range(rows)]
        for argument, rows in enumerate(base.given.values(), CONSTANTS + 1)
    ]
    rows = recursion.trace(steps, [[[]] * rows for rows in given.values()], of_base)
    result = CONSTANTS + 1 + len(of_base)
    steps.store([(result, 6 * k + i, x) for k, row in enumerate(rows) for i, x in enumerate(row)])
    return steps


def _compiled(program: Program, steps: Sequence[Text]) -> Code:
    """Compile loops with their steps; kept on disk, as they serve every robot."""
    widths = sorted(set().union(*(width for _, width in steps)))
    beside = [*(text for text, _ in steps), *(sincos_function(width) for width in widths)]
    code = compile_program(program, "".join(beside))
    return Code(program.name, code.address, alive=code)
