"""How time grows with the number of bodies and with the order: large trees and long chains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks import robots
from benchmarks.agreement import check
from benchmarks.stage import Stage
from benchmarks.stopwatch import Contender, Figure, Times, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros import BaseMotion, Robot
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.engine.large_trees.inverse import TreeKernel

_LENGTHS = (10, 20, 50, 100, 200, 500, 1000)
_CHAIN_ORDER = 2


def measure(stage: Stage) -> Section:
    """Time a tree of 5 × 20 + 1 bodies by order, and chains by their number of bodies.

    `robot.compile` takes straight-line code for the smaller ones. The exponents are those of the generic code
    alone: from one kind of code to the other there is a step, which says nothing about growth.
    """
    title = "large robots, one call from Python"
    orders, lengths = stage.orders, _LENGTHS[::2] if stage.quick else _LENGTHS
    contenders = []
    for order in orders:
        stage.say(f"{title}: tree, order {order}", 0.5 * order / (max(orders) + 1))
        contenders += _contenders(_tree(order), robots.tree(5, 20, floating_base=True), order)
    for i, length in enumerate(lengths):
        stage.say(f"{title}: chain of {length}", 0.5 + 0.5 * i / len(lengths))
        contenders += _contenders(_chain(length), robots.chain(length), _CHAIN_ORDER)
    times = stage.race(title, contenders, rounds=stage.rounds // 4)
    rows = [
        _row(times, f"floating tree of 101 bodies (5 × 20), r = {order}", _tree(order), _tree(orders[0]))
        for order in orders
    ]
    powers = [order + 1 for order in orders]
    rows.append(
        Row(
            work="generic code: p in time ~ (r + 1)^p",
            against="itself",
            result=_exponent(times, [_generic(_tree(order)) for order in orders], powers),
            must=Bound(2.0),
            unit="",
        )
    )
    rows += [
        _row(times, f"chain of {length} bodies, r = {_CHAIN_ORDER}", _chain(length), _chain(lengths[0]))
        for length in lengths
    ]
    rows.append(
        Row(
            work="generic code: p in time ~ bodies^p",
            against="itself",
            result=_exponent(times, [_generic(_chain(length)) for length in lengths], lengths),
            must=Bound(1.1),
            unit="",
        )
    )
    return Section(title, rows, {"tree of 101 bodies": {r: times.seconds(_tree(r)).median for r in orders}})


def _row(times: Times, work: str, name: str, reference: str) -> Row:
    return Row(
        work=f"{work}, f(q, …, out=…)",
        against=reference,
        result=times.ratio(name, reference),
        ours=times.seconds(name).median,
        theirs=times.seconds(reference).median,
    )


def _tree(order: int) -> str:
    return f"tree, order {order}"


def _chain(length: int) -> str:
    return f"chain of {length}"


def _generic(name: str) -> str:
    return f"{name}, generic code"


def _contenders(name: str, robot: Robot, order: int) -> list[Contender]:
    """Return `robot.compile` and the generic code, held against the published recursion in NumPy."""
    rng = np.random.default_rng(7)
    q = rng.uniform(-1.0, 1.0, size=(order + 3, robot.n_coordinates))
    arguments = {"q": q}
    if robot.model.floating_base:
        pose, twists = robots.samples("pose", (4, 4), 1, rng)[0], rng.uniform(-1.0, 1.0, size=(order + 2, 6))
        base = BaseMotion(pose, twists)
        right = np.hstack(robot.inverse_dynamics(q, base=base, formulation="body_fixed"))
        arguments |= {"pose": base.pose, "twists": base.twists}
    else:
        right = np.asarray(robot.inverse_dynamics(q, formulation="body_fixed"))
    generic = TreeKernel(robot.model, order, KernelSpec.of(robot.model))
    contenders = []
    for contender, f in ((name, robot.compile(order)), (_generic(name), generic.function)):
        check(contender, f(*arguments.values()), right)
        names = {**arguments, "f": f, "out": np.empty_like(right), "kept": generic}
        contenders.append(python_call(contender, f"f({', '.join(arguments)}, out=out)", names))
    return contenders


def _exponent(times: Times, names: Sequence[str], sizes: Sequence[int]) -> Figure:
    """Fit the exponent of a power law, in every round."""
    logarithms = np.log(np.array([times.rounds(name) for name in names]))
    slopes = np.polyfit(np.log(np.array(sizes, dtype=float)), logarithms, 1)[0]
    return Figure.of(slopes)
