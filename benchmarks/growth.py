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

_LENGTHS = (10, 20, 50, 100, 200, 500, 1000)
_CHAIN_ORDER = 2


def measure(stage: Stage) -> Section:
    """Time a tree of 5 × 20 + 1 bodies by order, and chains by their number of bodies."""
    title = "large trees, robot.compile(r) from Python"
    orders, lengths = stage.orders, _LENGTHS[::2] if stage.quick else _LENGTHS
    contenders = []
    for order in orders:
        stage.say(f"{title}: tree, order {order}", order / (max(orders) + 1))
        contenders.append(_contender(_tree(order), robots.tree(5, 20, floating_base=True), order))
    for i, length in enumerate(lengths):
        stage.say(f"{title}: chain of {length}", i / len(lengths))
        contenders.append(_contender(_chain(length), robots.chain(length), _CHAIN_ORDER))
    times = stage.race(title, contenders, rounds=stage.rounds // 4)
    rows = [
        Row(
            work=f"floating tree of 101 bodies (5 × 20), r = {order}",
            against=f"itself at r = {orders[0]}",
            result=times.ratio(_tree(order), _tree(orders[0])),
            ours=times.seconds(_tree(order)).median,
            theirs=times.seconds(_tree(orders[0])).median,
        )
        for order in orders
    ]
    rows.append(
        Row(
            work="the same: exponent p in time ~ (r + 1)^p",
            against="itself",
            result=_exponent(times, [_tree(order) for order in orders], [order + 1 for order in orders]),
            must=Bound(2.0),
            unit="",
        )
    )
    rows += [
        Row(
            work=f"chain of {length} bodies, r = {_CHAIN_ORDER}: per body",
            against=f"chain of {lengths[0]}",
            result=_per_body(times, length, lengths[0]),
            ours=times.seconds(_chain(length)).median,
            theirs=times.seconds(_chain(lengths[0])).median,
        )
        for length in lengths
    ]
    rows.append(
        Row(
            work="chains: exponent p in time ~ bodies^p",
            against="itself",
            result=_exponent(times, [_chain(length) for length in lengths], lengths),
            must=Bound(1.1),
            unit="",
        )
    )
    return Section(title, rows, {"tree of 101 bodies": {r: times.seconds(_tree(r)).median for r in orders}})


def _tree(order: int) -> str:
    return f"tree, order {order}"


def _chain(length: int) -> str:
    return f"chain of {length}"


def _contender(name: str, robot: Robot, order: int) -> Contender:
    """Return the compiled function of a large robot, held against the published recursion in NumPy."""
    rng = np.random.default_rng(7)
    q = rng.uniform(-1.0, 1.0, size=(order + 3, robot.n_joints))
    compiled, arguments = robot.compile(order), {"q": q}
    if robot.model.floating_base:
        base = BaseMotion(
            robots.samples("pose", (4, 4), 1, rng)[0], rng.uniform(-1.0, 1.0, size=(order + 2, 6))
        )
        right = np.hstack(robot.inverse_dynamics(q, base=base, formulation="body_fixed"))
        arguments |= {"pose": base.pose, "twists": base.twists}
    else:
        right = np.asarray(robot.inverse_dynamics(q, formulation="body_fixed"))
    check(name, compiled(*arguments.values()), right)
    names = {**arguments, "f": compiled, "out": np.empty_like(right)}
    return python_call(name, f"f({', '.join(arguments)}, out=out)", names)


def _per_body(times: Times, length: int, first: int) -> Figure:
    ratio = times.ratio(_chain(length), _chain(first))
    scale = first / length
    return Figure(ratio.median * scale, ratio.low * scale, ratio.high * scale)


def _exponent(times: Times, names: Sequence[str], sizes: Sequence[int]) -> Figure:
    """Fit the exponent of a power law, in every round."""
    logarithms = np.log(np.array([times.rounds(name) for name in names]))
    slopes = np.polyfit(np.log(np.array(sizes, dtype=float)), logarithms, 1)[0]
    return Figure.of(slopes)
