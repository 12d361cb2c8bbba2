"""An observer as traced functions without a memory of their own, wherever the efforts of the links come from.

A call takes the row that the one before has returned, and returns the next one. It begins with external
efforts (m,) and their deviations (m,), the largest of their ratios, one in a contact and else zero, and a
number that is not zero where a spring is beyond its law; the rest is what `Balance` and `Filters` keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hodyn_ros.codegen.kernel import Shape, Stack, Traceable
from hodyn_ros.codegen.tracer import Traced
from hodyn_ros.observers.balance import Balance, Vectors
from hodyn_ros.observers.filters import Filters
from hodyn_ros.observers.layout import Layout


class ObserverEquations:
    """What is computed at a sample, beside the efforts that the motion of the links needs.

    `smooth`, `rubbing` and `bounds` as of `Filters`.

    Attributes:
        memory: Layout of a row.
        failed: Place in a row of what says that a spring is beyond its law.
        conditional: Whether a spring may be beyond its law, as soon as something has been traced.
    """

    def __init__(
        self, balance: Balance, smooth: bool, rubbing: bool = False, *, bounds: bool = False
    ) -> None:
        self.balance, self.filters = balance, Filters(balance, smooth, rubbing, bounds=bounds)
        self.rows, self.n = balance.sensed.rows, balance.n
        self.failed = self.filters.result.size
        self.memory = Layout(
            result=self.failed + 1, balance=balance.state.size, filters=self.filters.state.size
        )
        self.conditional = False

    @property
    def shapes(self) -> list[tuple[str, Shape]]:
        """What a step takes."""
        shapes: list[tuple[str, Shape]] = [
            ("a sample", (len(self.rows), self.n)),
            ("period", (1, 1)),
            ("memory", (1, self.memory.size)),
            ("figures", (1, self.filters.figures.size)),
        ]
        return [*shapes, ("base", (1, 18))] if self.balance.base else shapes

    def first(
        self, sample: Stack, period: Any, before: Vectors, figures: list[Any], base: Sequence[Stack]
    ) -> list[Any]:
        """Return the memory at a sample before which there is none."""
        rows, forms = dict(zip(self.rows, sample)), self.balance.forms
        loads: Vectors = {"load": [0.0] * self.n, "load_rate": [0.0] * self.n}
        for j, form in enumerate(forms):
            if form.unbent:
                loads["load"][j] = rows["joint_torque" if form.torque == "sensor" else "motor_effort"][j]
        state = self.balance.arrive(rows, period, before, loads, *(row[0] for row in base))
        filters = self.filters.state.unpack(self.filters.start(figures))
        for name in ("load", "smooth_load"):
            if name in filters:
                filters[name] = [load for load, form in zip(loads["load"], forms) if form.unbent]
        nothing = [0.0] * self.memory["balance"].start
        return [*nothing, *self.balance.state.pack(state), *self.filters.state.pack(filters)]

    def arrived_at(
        self, sample: Stack, period: Any, memory: Stack, base: Sequence[Stack] = ()
    ) -> tuple[Vectors, Vectors, Vectors]:
        """Return the states of balance and filters before a sample, and the one of the balance at it."""
        before = self.balance.state.unpack(memory[0][self.memory["balance"]])
        filters = self.filters.state.unpack(memory[0][self.memory["filters"]])
        rows = dict(zip(self.rows, sample))
        loads = self.filters.loads(filters)
        return before, filters, self.balance.arrive(rows, period, before, loads, *(row[0] for row in base))

    def settled(
        self,
        before: Vectors,
        filters: Vectors,
        now: Vectors,
        period: Any,
        efforts: Sequence[list[Any]],
        figures: list[Any],
        moving: Stack | None = None,
    ) -> Stack:
        """Return the row at a sample, from the efforts at the points of the period."""
        numbers = self.filters.figures.unpack(figures)
        means = self.balance.means(before, now, period, efforts, numbers["newest"][0])
        state, result = self.filters.update(means, period, filters, numbers, moving)
        failed: Any = 0.0
        if isinstance(period, Traced):
            self.conditional, failed = bool(period.graph.conditions), period.graph.violation()
        memory = [*self.balance.state.pack(now), *self.filters.state.pack(state)]
        return [[*self.filters.result.pack(result), failed, *memory]]

    # what is compiled and exported

    def start_trace(self) -> Traceable:
        """Return what gives the first row: `sample, figures, [base] -> row`, where rates are measured."""
        nothing = self.balance.state.unpack([0.0] * self.balance.state.size)

        def trace(sample: Stack, figures: Stack, *base: Stack) -> Stack:
            return [self.first(sample, 1.0, nothing, figures[0], base)]

        shapes = dict(self.shapes)
        return trace, [(name, shapes[name]) for name in ("a sample", "figures", "base") if name in shapes]

    def points_trace(self) -> Traceable:
        """Return what gives the motion (6, n) at both points of a period: `sample, period, memory`."""

        def trace(sample: Stack, period: Stack, memory: Stack) -> Stack:
            before, _, now = self.arrived_at(sample, period[0][0], memory)
            return [row for point in self.balance.joints_between(before, now, period[0][0]) for row in point]

        return trace, self.shapes[:3]

    def settle_trace(self, redundant: bool = False) -> Traceable:
        """Return what gives the row from the efforts (2, n) there.

        It takes `sample, period, memory, figures, efforts`, with `redundant` "what moves" (n, n) after these.
        """

        def trace(
            sample: Stack, period: Stack, memory: Stack, figures: Stack, efforts: Stack, *moving: Stack
        ) -> Stack:
            before, filters, now = self.arrived_at(sample, period[0][0], memory)
            return self.settled(before, filters, now, period[0][0], efforts, figures[0], *moving)

        further: list[tuple[str, Shape]] = [("efforts", (2, self.n))]
        if redundant:
            further.append(("what moves", (self.n, self.n)))
        return trace, [*self.shapes, *further]
