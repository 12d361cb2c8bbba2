"""Inverse kinematics in one compiled call: Newton's method from a seed, and the derivatives at its end."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_out
from hodyn_ros.codegen.emit import kernel_text
from hodyn_ros.codegen.fast_call import fast_call
from hodyn_ros.codegen.kernel import Call, Shape, Stack, traced
from hodyn_ros.codegen.literals import literal
from hodyn_ros.codegen.llvm import compile_text
from hodyn_ros.codegen.object_cache import ObjectCache
from hodyn_ros.engine.recursions.frame_goals import DAMPING, GoalCode, Goals
from hodyn_ros.engine.series.validity import ARRIVED
from hodyn_ros.errors import InputError
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel

_ITERATIONS = 40
_ARRIVED = 1e-17  # squared error [rad, and of the unit of length] before what is then the last step
_LONGEST = 60_000  # operations of what takes some seconds to compile


class GoalKernel(Call):
    """Inverse kinematics of one robot at one order.

    `function(seed (1, n), poses (4 F, 4), twists (F order, 6), [base pose (4, 4), base twists (order, 6),]
    [weights (1, n),] [rates of independent joints (order, n),] out=None)` returns joint motions (order + 1,
    n). Poses and twists come one frame after the other; positions of independent joints and of joints that
    carry no frame are those of the seed.

    What compiled code does not find from the seed, or finds too near to a singular pose to vouch for, is
    asked of `careful`, which takes the same arrays, and answers or raises.
    """

    def __init__(
        self, model: TreeModel, goals: Goals, order: int, careful: Callable[..., Array], code: GoalCode
    ) -> None:
        self._careful = careful
        n, frames = model.n_joints, len(goals.frames)
        base: list[tuple[str, Shape]] = []
        if model.floating_base:
            base = [("the base pose", (4, 4)), ("the base twists", (order, 6))]
        weights: list[tuple[str, Shape]] = [("the weights", (1, n))] if goals.weighted else []
        rates: list[tuple[str, Shape]] = []
        if goals.independent:
            rates = [("the rates of independent joints", (order, n))]
        moved: list[tuple[str, Shape]] = [
            ("the poses", (4 * frames, 4)),
            ("the twists", (frames * order, 6)),
        ]
        super().__init__([("the seed", (1, n)), *moved, *base, *weights, *rates], (order + 1, n))
        self._alive: list[Any] = []
        others = [*base, *weights, *rates]
        self._places = {name: i for i, (name, _) in enumerate(self.arguments)}
        state, targets = (1, n + 3), moved[0][1]
        few = [shape for _, shape in (*base[:1], *weights)]
        table = order + 3, n
        compiled = {
            "step": self._compiled(code.newton_step, [state, targets, *few]),
            "rates": self._compiled(
                code.rates, [state, targets, moved[1][1], *(shape for _, shape in others)]
            ),
        }
        if order:
            compiled["nearby"] = self._compiled(code.nearby, [state, targets, *few])
            compiled["rounded"] = self._compiled(code.rounded, [moved[1][1]])
            compiled["difference"] = self._compiled(code.difference, [table, table])
        text = self._driver(compiled, n, order, [name for name, _ in (*base[:1], *weights)])
        self._program = compile_text(text, "hodyn_kernel", None)
        address = self._program.address
        pointers = [ctypes.c_void_p] * (len(self.arguments) + 1)
        self._judged = ctypes.CFUNCTYPE(ctypes.c_int64, *pointers)(address)
        shapes = [shape for _, shape in self.arguments]
        self.function = fast_call(address, shapes, self.result, self._otherwise(), judged=True)

    def _converted(self, *arguments: ArrayLike, out: Array | None = None) -> Array:
        """Ask for what compiled code cannot do, and explain what cannot be used."""
        if len(arguments) != len(self.arguments):
            raise InputError(f"expected {len(self.arguments)} arrays {self._asked}, found {len(arguments)}")
        arrays: list[Any] = [
            np.ascontiguousarray(values, dtype=np.float64) if _is_numeric(values) else values
            for values in arguments
        ]
        if out is not None:
            check_out(out, self.result)
        fits = all(
            isinstance(array, np.ndarray) and array.shape == shape and np.isfinite(array).all()
            for array, (_, shape) in zip(arrays, self.arguments)
        )
        if fits:
            found = np.empty(self.result)
            if not self._judged(*[array.ctypes.data for array in arrays], found.ctypes.data):
                return found if out is None else _copied(found, out)
        found = self._careful(**{_keyword(name): x for (name, _), x in zip(self.arguments, arrays)})
        return found if out is None else _copied(found, out)

    def _compiled(self, trace: Callable[..., Stack], shapes: Sequence[Shape]) -> int:
        graph, outputs, _ = traced(trace, shapes)
        code = compile_text(kernel_text(graph, outputs, len(shapes)), "hodyn_kernel", ObjectCache.default())
        self._alive.append(code)
        return code.address

    def _driver(self, compiled: dict[str, int], n: int, order: int, few: Sequence[str]) -> str:
        """Write `i64 @hodyn_kernel(ptr argument..., ptr out)`, which returns zero where `out` is written.

        A step from a state leaves the square of the error before it, and about that of the step after. It
        must fall from step to step: where it does not, the readable form with its shorter steps does better.
        """
        names = [f"ptr %a{i}" for i in range(len(self.arguments))]
        further = [f"ptr %a{self._places[name]}" for name in few]
        size, twists = (order + 1) * n, self.arguments[2][1][0] * 6

        def call(name: str, *arguments: str) -> str:
            return f"call void inttoptr (i64 {compiled[name]} to ptr)({', '.join(arguments)})"

        def copy(target: str, source: str, count: int) -> str:
            return (
                f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target}, ptr align 8 {source}, "
                f"i64 {8 * count}, i1 false)"
            )

        def below_one(name: str, table: str, place: int) -> list[str]:
            return [
                f"%{name}_at = getelementptr double, ptr {table}, i64 {place}",
                f"%{name}_value = load double, ptr %{name}_at, align 8",
                f"%{name} = fcmp olt double %{name}_value, {literal(1.0)}",
            ]

        lines = [
            f"define i64 @hodyn_kernel({', '.join(names)}, ptr %out) {{",
            "entry:",
            *(f"%{x} = alloca double, i64 {n + 3}, align 64" for x in ("state", "beside")),
            *(f"%{x} = alloca double, i64 {size + 2 * n}, align 64" for x in ("found", "again")),
            f"%rounded = alloca double, i64 {max(twists, 1)}, align 64",
            copy("%state", "%a0", n),
            f"%error_at = getelementptr double, ptr %state, i64 {n}",
            f"%damping_at = getelementptr double, ptr %state, i64 {n + 1}",
            f"%following_at = getelementptr double, ptr %state, i64 {n + 2}",
            f"store double {literal(DAMPING)}, ptr %damping_at, align 8",
            "br label %newton",
            "newton:",
            "%round = phi i64 [0, %entry], [%next, %going]",
            f"%before = phi double [{literal(1e300)}, %entry], [%error, %going]",
            call("step", "ptr %state", names[1], *further, "ptr %state"),
            "%error = load double, ptr %error_at, align 8",
            "%next = add i64 %round, 1",
            "%falls = fcmp olt double %error, %before",
            f"%close = fcmp ole double %error, {literal(_ARRIVED)}",
            "%following = load double, ptr %following_at, align 8",
            f"%no_farther = fcmp ole double %following, {literal(ARRIVED)}",
            "%near = and i1 %close, %no_farther",
            "br i1 %near, label %arrived, label %far",
            "far:",
            f"%early = icmp slt i64 %next, {_ITERATIONS}",
            "%hope = and i1 %falls, %early",
            "br i1 %hope, label %going, label %lost",
            "going:",
            "br label %newton",
            "lost:",
            "ret i64 1",
            "arrived:",
            call("rates", "ptr %state", *names[1:], "ptr %found"),
            *below_one("right", "%found", size),
            "br i1 %right, label %graded, label %lost",
            "graded:",
            *below_one("sure", "%found", size + n),
        ]
        if order:
            lines += [
                "br i1 %sure, label %done, label %unsure",
                "unsure:",
                call("nearby", "ptr %state", names[1], *further, "ptr %beside"),
                call("rounded", names[2], "ptr %rounded"),
                call("rates", "ptr %beside", names[1], "ptr %rounded", *names[3:], "ptr %again"),
                call("difference", "ptr %found", "ptr %again", "ptr %beside"),
                *below_one("same", "%beside", 0),
                "br i1 %same, label %done, label %lost",
            ]
        else:
            lines.append("br label %done")
        lines += [
            "done:",
            copy("%out", "%found", size),
            "ret i64 0",
            "}",
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        ]
        return "\n".join(lines) + "\n"


def goal_kernel(
    model: TreeModel, goals: Goals, order: int, careful: Callable[..., Array]
) -> GoalKernel | None:
    """Compile inverse kinematics; None where that would take too long, or no joint is free to move."""
    code = GoalCode(model, goals, order)
    if not code.movable:
        return None
    steps = len(code.joints) * (20 + code.n_rows * (code.n_rows + 6 * (order + 1) ** 2))
    if 2 * steps > _LONGEST:
        return None
    return GoalKernel(model, goals, order, careful, code)


def _keyword(name: str) -> str:
    return {"the rates of independent joints": "rates"}.get(name, name.removeprefix("the ").replace(" ", "_"))


def _is_numeric(values: Any) -> bool:
    try:
        return np.asarray(values).dtype.kind in "fiu"
    except ValueError:
        return False


def _copied(found: Array, out: Array) -> Array:
    out[...] = found
    return out
