"""One call from Python: the 7-joint arm beside `pinocchio.rnea` and beside CasADi's own evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import ours, picture, robots
from benchmarks.agreement import check
from benchmarks.peers import casadi_rnea, pinocchio_tree
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Contender, Figure, python_call
from benchmarks.table import Bound, Row, Section

PINOCCHIO = "pinocchio.rnea"
_MUST = {0: Bound(0.8), 2: Bound(1.0)}
_AIM = {0: Bound(0.4), 2: Bound(0.7)}


def measure(stage: Stage) -> Section:
    """Time single calls from Python."""
    title = "7-joint arm, one call from Python"
    contenders = [pinocchio_tree.rnea_call(PINOCCHIO, robots.panda())]
    for order in stage.orders:
        stage.say(f"{title}: compiling order {order}", 0.0)
        compiled = ours.inverse_dynamics(robots.panda(), order)
        motion, right = compiled.arguments[0][0].copy(), compiled.expected[0]
        contenders += _ours(order, motion, right)
        contenders.append(_casadi(order, motion, right))
    times = stage.race(title, contenders)
    rows = []
    for order in stage.orders:
        for name in (_plain(order), _into(order)):
            bounds = (_MUST.get(order), _AIM.get(order)) if name == _plain(order) else (None, None)
            rows.append(
                Row(
                    work=f"r = {order}, {name.partition(':')[2].strip()}",
                    against="pinocchio.rnea, torque alone",
                    result=times.ratio(name, PINOCCHIO),
                    ours=times.seconds(name).median,
                    theirs=times.seconds(PINOCCHIO).median,
                    must=bounds[0],
                    aim=bounds[1],
                )
            )
    for order in stage.orders:
        rows.append(
            Row(
                work=f"r = {order}, f(q, out=…): times faster",
                against="CasADi's evaluator, buffered",
                result=times.speedup(_into(order), _evaluator(order)),
                ours=times.seconds(_into(order)).median,
                theirs=times.seconds(_evaluator(order)).median,
                must=Bound(10.0, at_least=True) if order >= 2 else None,
            )
        )
    more = times.difference(_robot(2), _plain(2))
    rows.append(
        Row(
            work="r = 2, robot.inverse_dynamics(q): longer than f(q) by",
            against="f = robot.compile(2)",
            result=Figure(more.median * 1e6, more.low * 1e6, more.high * 1e6),
            ours=times.seconds(_robot(2)).median,
            theirs=times.seconds(_plain(2)).median,
            must=Bound(0.5),
            unit="µs",
        )
    )
    curves = {
        "hodyn_ros, from Python": {r: times.seconds(_into(r)).median for r in stage.orders},
        "CasADi's evaluator, from Python": {r: times.seconds(_evaluator(r)).median for r in stage.orders},
        picture.REFERENCE: {0: times.seconds(PINOCCHIO).median},
    }
    return Section(title, rows, curves)


def _plain(order: int) -> str:
    return f"{order}: f(q)"


def _into(order: int) -> str:
    return f"{order}: f(q, out=…)"


def _robot(order: int) -> str:
    return f"{order}: robot.inverse_dynamics(q)"


def _evaluator(order: int) -> str:
    return f"{order}: CasADi"


def _ours(order: int, motion: Array, right: Array) -> list[Contender]:
    copies: list[dict[str, Any]] = []
    for _ in range(ours.COPIES):
        robot = robots.panda()
        f = robot.compile(order)
        copies.append({"f": f, "robot": robot, "q": motion, "out": np.empty_like(right)})
        check("robot.compile", f(motion), right)
    return [
        python_call(_plain(order), "f(q)", *copies),
        python_call(_into(order), "f(q, out=out)", *copies),
        python_call(_robot(order), "robot.inverse_dynamics(q)", *copies),
    ]


def _casadi(order: int, motion: Array, right: Array) -> Contender:
    """Return CasADi's virtual machine on buffers, the fastest way to call it from Python."""
    model = robots.panda().model
    editions: list[Any] = [casadi_rnea.torques(model, order, edition) for edition in casadi_rnea.EDITIONS]
    function = min(editions, key=lambda edition: int(edition.n_instructions()))
    buffer, evaluate = function.buffer()
    out = np.empty_like(right)
    buffer.set_arg(0, memoryview(motion.data))
    buffer.set_res(0, memoryview(out.data))
    evaluate()
    check("CasADi's evaluator", out, right)
    return python_call(_evaluator(order), "evaluate()", {"evaluate": evaluate, "kept": (buffer, motion, out)})
