"""Sines and cosines written out as arithmetic: no library, and the same time for every angle."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from hodyn_ros.codegen.tracer import Graph, Operation, Traced

LARGEST = 1000.0  # [rad] up to which angles are reduced without loss
ERROR = 2e-7  # of a sine or cosine of an angle up to that, as numbers of 24 bits give it

# Half turns in two parts (Cody & Waite 1980, chapter 8): the first of few digits, its multiples exact.
_HALF_TURN = 3.140625, math.pi - 3.140625
TO_INTEGER = 1.5 * 2.0**23  # numbers of 24 bits near this one are integers
# In y = r^2, 0 <= r <= pi/2: (sin(r) / r - 1) / y and (cos(r) - 1) / y, the polynomials of least error
# (Chebyshev's fit, 7e-9 and 4e-10), from the highest power.
_SINE = 2.634744556e-6, -1.982273584e-4, 8.333242108e-3, -0.1666666596
_COSINE = -2.62973942e-7, 2.477457442e-5, -1.388865158e-3, 4.166665936e-2, -0.4999999996


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
            if a not in turned:
                turned[a] = turn(operands[0])
            became[number] = turned[a][operation == "cos"]
        else:
            became[number] = _computed(new, operation, operands, b)
    return new, became


def turn(angle: Any) -> tuple[Any, Any]:
    """Return sine and cosine: those of what whole half turns leave, with a sign where these are odd."""
    halves = _nearest(angle * (1.0 / math.pi))
    rest = angle
    for part in _HALF_TURN:
        rest = rest - halves * part
    odd = halves - 2.0 * _nearest(halves * 0.5)  # -1, 0 or 1
    sign = 1.0 - 2.0 * (odd * odd)
    y = rest * rest
    sine, cosine = (reduce(lambda sum_, factor: sum_ * y + factor, of) for of in (_SINE, _COSINE))
    return sign * (rest + rest * (y * sine)), sign * (1.0 + y * cosine)


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
