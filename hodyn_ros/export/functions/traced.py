"""Straight-line code as a function of C."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.codegen.kernel import Kernel, Traceable
from hodyn_ros.export.c_function import Cases, CFunction
from hodyn_ros.export.straight_line import Tables, TracedLines
from hodyn_ros.lie.se3 import Array

Call = list[Array]  # what a function takes


def traced_function(
    prefix: str,
    name: str,
    traceable: Traceable,
    inputs: Sequence[str],
    results: Sequence[str],
    about: Sequence[str],
    calls: Sequence[Call],
    tables: Tables,
) -> CFunction:
    """Write a function `<prefix>_<name>` that computes the one matrix of a trace, and test it by `calls`."""
    trace, arguments = traceable
    shapes = {own: shape for own, (_, shape) in zip(inputs, arguments)}
    code = TracedLines(trace, shapes, name, tables)
    stores = code.stores({results[0]: np.arange(len(code.outputs))})
    expected = np.array([Kernel(trace, arguments).function(*call) for call in calls])
    of_cases = {name: np.array(values) for name, values in zip(inputs, zip(*calls))}
    return CFunction(
        prefix,
        name,
        shapes,
        {results[0]: code.shape},
        about,
        [*code.lines, *stores],
        Cases(of_cases, {results[0]: expected}),
        operations=code.operations,
    )
