"""The compiled code of a robot with loops, computed at many digits: what rounding alone makes of its results.

The graph of operations that becomes machine code is written as a function of Python instead, whose numbers
are those of MPFR. So constants of the robot are those of the code; nothing else is rounded.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import gmpy2
import numpy as np

from hodyn_ros.codegen.kernel import traced
from hodyn_ros.codegen.tracer import Traced
from oracles import mp_dynamics as mp
from oracles.random_trees import Array

_DIGITS, _STEPS = 60, 12
_KNOWN: WeakKeyDictionary[Any, tuple[Callable[..., Any], Callable[..., Any]]] = WeakKeyDictionary()


def result(kernel: Any, arguments: Sequence[Array], memory: Array) -> mp.Exact:
    """Return the table of a `LoopFunction`, from arguments and the positions in a memory."""
    law, (rows, columns) = kernel.law, kernel.result
    n = law.n_positions
    if kernel not in _KNOWN:
        shapes = [shape for _, shape in kernel.arguments]
        state = (1, n + 1)
        motion = shapes[: len(law.motion)][:2]
        _KNOWN[kernel] = _function(law.newton_step, [*motion, state]), _function(law.end, [*shapes, state])
    step, end = _KNOWN[kernel]
    with mp.digits(_DIGITS):
        given = [mp.exact(x).ravel().tolist() for x in arguments]
        remembered = mp.exact(memory).ravel().tolist()
        at = [*remembered[:n], mp.ZERO]
        for _ in range(_STEPS):
            at = step(*given[: len(law.motion)][:2], at)
        table: mp.Exact = np.array(end(*given, remembered, at), dtype=object).reshape(rows, columns)
        return table


def _function(trace: Callable[..., Any], shapes: Sequence[tuple[int, int]]) -> Callable[..., Any]:
    graph, outputs, _ = traced(trace, shapes)
    lines = [f"def f({', '.join(f'a{i}' for i in range(len(shapes)))}):"]
    for number in graph.needed(outputs):
        operation, a, b = graph.nodes[number]
        if operation == "constant":
            text = f"mpfr({float(a)!r})"
        elif operation == "input":
            text = f"a{a}[{b}]"
        elif operation in "+-*/":
            text = f"v{a} {operation} v{b}"
        elif operation in ("sin", "cos", "sqrt", "abs"):
            text = f"{operation}(v{a})"
        else:
            raise ValueError(f"no operation {operation!r} at many digits")
        lines.append(f" v{number} = {text}")
    texts = [
        (f"-v{x.number}" if x.negative else f"v{x.number}")
        if isinstance(x, Traced)
        else f"mpfr({float(x)!r})"
        for x in outputs
    ]
    lines.append(f" return [{', '.join(texts)}]")
    names = {"mpfr": gmpy2.mpfr, "sin": gmpy2.sin, "cos": gmpy2.cos, "sqrt": gmpy2.sqrt, "abs": abs}
    exec("\n".join(lines), names)
    function: Callable[..., Any] = names["f"]  # type: ignore[assignment]
    return function
