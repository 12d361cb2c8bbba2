"""Motions with which the code of a robot with loops tests itself."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.export import motions
from hodyn_ros.export.c_function import FAILED, NEAR_SINGULAR, OK, Cases, rounded, spread
from hodyn_ros.export.loops.plan import Plan
from hodyn_ros.lie.se3 import Array

_ROUNDING = 1e-13  # share of the largest number
_NEAR_HOME = (0.1, 0.03, 0.01, 0.001)  # [rad or m] how far from home the tests are: the first that can be


def self_test_cases(plan: Plan, small: bool) -> Cases:
    """Choose motions near home that the kernel follows, from the first to the last and around again.

    `small`: in numbers of 24 bits.
    """
    for reach in _NEAR_HOME:
        cases = _near_home(plan, reach, small)
        if cases is not None:
            return cases
    raise InputError(
        f"robot {plan.closure.tree.name!r} cannot be exported: the poses near its home are singular, and "
        "there is nothing to test the code with"
    )


def _near_home(plan: Plan, reach: float, small: bool) -> Cases | None:
    """Return the calls, a motion that cannot be first; None where the kernel rejects one."""
    kernel, random, calls = plan.kernel, Random(1), []
    memory, home = np.zeros(kernel.arguments[-1][1]), plan.looped.memory.copy()
    memory[:, : home.shape[1]] = home[:, : memory.shape[1]]
    for _ in range(motions.COUNT):
        motion = plan.motion(random, reach)
        plan.looped.memory[:] = home
        rest = list(plan.inputs.values())[len(motion) :]
        calls.append([*motion, *(motions.numbers(random, *shape) for shape in rest)])
    nearest = [_rounded_inputs(plan, call) for call in calls]
    calls, others = (nearest, calls) if small else (calls, nearest)
    *tables, again = [kernel.function(*call, memory) for call in [*calls, calls[0]]]
    of_others = [kernel.function(*call, memory) for call in others]
    if not all(table.item(kernel.defect_at) < 1.0 for table in [*tables, again]):
        return None
    impossible = [np.full_like(values, np.inf) for values in calls[0]]
    parts = [{name: _rounded(values) for name, values in plan.results_in(table).items()} for table in tables]
    parts.insert(0, {name: np.zeros(shape) for name, shape in plan.results.items()})
    codes = [FAILED]
    for table in tables:
        near = plan.singularity is not None and table.item(plan.singularity[0]) > plan.singularity[1]
        codes.append(NEAR_SINGULAR if near else OK)
    results = {name: np.array([one[name] for one in parts]) for name in plan.results}
    near_by = [plan.results_in(table) for table in of_others]
    return Cases(
        {name: np.array(values) for name, values in zip(plan.inputs, zip(impossible, *calls))},
        results,
        tuple(codes),
        failing=1,
        spread=spread(
            {name: values[1:] for name, values in results.items()},
            {name: np.array([one[name] for one in near_by]) for name in results},
        ),
    )


def _rounded_inputs(plan: Plan, call: Sequence[Array]) -> list[Array]:
    """Return inputs of 24 bits, but poses as they are: rounded ones are not those of rigid bodies."""
    return [x if name == "pose" else rounded(x) for name, x in zip(plan.inputs, call)]


def _rounded(rows: Array) -> Array:
    """Return numbers by rows, which are zero where they are nothing but rounding: they measure errors."""
    sizes = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    result: Array = np.where(sizes > _ROUNDING * sizes.max(initial=0.0), rows, 0.0)
    return result
