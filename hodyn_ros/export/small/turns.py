"""Sines and cosines written out as arithmetic: no library, and the same time for every angle."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from hodyn_ros.codegen.tracer import Graph, Operation, Traced

LARGEST = 1000.0  # [rad] up to which angles are reduced without loss
ERROR = 1e-7  # of a sine or cosine of an angle up to that, as numbers of 24 bits give it

_QUARTER = math.pi / 2.0
# Quarter turns in two parts (Cody & Waite 1980, chapter 8): the first of few digits, its multiples exact.
_PARTS = 3217 * 2.0**-11, _QUARTER - 3217 * 2.0**-11
TO_INTEGER = 1.5 * 2.0**23  # numbers of 24 bits near this one are integers
# In y = r^2, 0 <= r <= pi/4: (sin(r) / r - 1) / y and (cos(r) - 1) / y, interpolated at Chebyshev's points
# (errors 2e-8 and 3e-10), from the highest power.
_SINE = -1.9587387068464456e-4, 8.3327459363804223e-3, -0.16666664650292082
_COSINE = 2.4463116702438325e-5, -1.3887583970817675e-3, 4.1666650548440198e-2, -0.49999999968871981


def without_turns(graph: Graph, outputs: Sequence[Any]) -> tuple[Graph, dict[int, Any]]:
    """Write a graph anew without sines and cosines; returns it, and what its nodes became.

    The arithmetic is that of numbers of 24 bits: with others it is wrong.
    """
    new, became, turned = Graph(), dict[int, Any](), dict[int, tuple[Any, Any]]()
    for number in graph.needed(outputs):
        operation, a, b = graph.nodes[number]
        operands = [became[operand] for operand in graph.operands(number)]
        if operation == "constant":
            became[number] = Traced(new, new.constant(a))
        elif operation == "input":
            became[number] = new.input(a, b)
        elif operation in ("sin", "cos"):
            angle, sign, quarters = _without_quarters(graph, a)
            if angle not in turned:
                turned[angle] = turn(became[angle])
            sine, cosine = turned[angle]
            ahead = [sign * sine, cosine, -sign * sine, -cosine]
            became[number] = ahead[(quarters + (operation == "cos")) % 4]
        else:
            became[number] = _computed(new, operation, operands, b)
    return new, became


def _without_quarters(graph: Graph, angle: int) -> tuple[int, float, int]:
    """Take an angle as another one, times a sign, and whole quarter turns, which rounding would touch."""
    operation, a, b = graph.nodes[angle]
    if operation in ("+", "-"):
        signs = 1.0, 1.0 if operation == "+" else -1.0
        for x, constant, (of_x, of_constant) in ((a, b, signs), (b, a, signs[::-1])):
            kind, value, _ = graph.nodes[constant]
            quarters = of_constant * value / _QUARTER if kind == "constant" else 0.5
            if abs(quarters - round(quarters)) < 1e-14:
                return x, of_x, round(quarters)
    return angle, 1.0, 0


def turn(angle: Any) -> tuple[Any, Any]:
    """Return sine and cosine: of what whole quarter turns leave, or minus them, or one for the other."""
    quarters = _nearest(angle * (1.0 / _QUARTER))
    rest = angle
    for part in _PARTS:
        rest = rest - quarters * part
    halves = _nearest(quarters * 0.5 - 0.25)
    odd = quarters - 2.0 * halves  # 0 or 1, as of halves in the sign
    sign = 1.0 - 2.0 * (halves - 2.0 * _nearest(halves * 0.5 - 0.25))
    y = rest * rest
    of_sine, of_cosine = (reduce(lambda sum_, factor: sum_ * y + factor, of) for of in (_SINE, _COSINE))
    sine, cosine = rest + rest * (y * of_sine), 1.0 + y * of_cosine
    other, same = sign * odd, sign - sign * odd
    return same * sine + other * cosine, same * cosine - other * sine


def _nearest(x: Any) -> Any:
    return (x + TO_INTEGER) - TO_INTEGER


def _computed(graph: Graph, operation: Operation, operands: list[Any], b: Any) -> Any:
    if operation in _COMPUTED:
        return _COMPUTED[operation](*operands)
    (x,) = operands
    assert operation in ("piece", "entry") and not x.negative
    return Traced(graph, graph.node(operation, x.number, b))


_COMPUTED: dict[Operation, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "abs": abs,
    "sqrt": Traced.sqrt,
    "floor": math.floor,
}
