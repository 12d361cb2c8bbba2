"""The comparisons that the papers print: formulations by order, forward dynamics by bodies, CasADi at 101.

Kumar & Mueller (2021) hold the recursive body-fixed formulation against the closed form, order by order; Ali,
Gabellieri & Franchi (arXiv:2605.06498, Figure 4 and Table 4) time forward dynamics against the number of
bodies, and inverse dynamics of 101 bodies against CasADi.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks import robots
from benchmarks.agreement import check
from benchmarks.peers import casadi_rnea
from benchmarks.stage import Stage
from benchmarks.stopwatch import Contender, Times, python_call
from benchmarks.table import Row, Section
from hodyn_ros import BaseMotion
from hodyn_ros.formulations import INVERSE_DYNAMICS

_PUBLISHED = "body_fixed"
_LINKS = (2, 5, 10, 20)  # of each of five arms: 11 to 101 bodies


def measure(stage: Stage) -> Section:
    """Time all three; nothing here has to be reached."""
    title = "what papers print, one call from Python"
    formulations = (0, 2) if stage.quick else (0, 2, 4)
    forward = (0,) if stage.quick else (0, 2, 5)
    casadi = (0, 1) if stage.quick else (0, 1, 2)
    links = _LINKS[::3] if stage.quick else _LINKS
    contenders: list[Contender] = []
    built: dict[int, float] = {}
    for order in formulations:
        contenders += _formulations(order)
    for i, order in enumerate(forward):
        for j, count in enumerate(links):
            stage.say(f"{title}: forward dynamics", (i + j / len(links)) / len(forward))
            contenders.append(_forward(count, order))
    for order in casadi:
        stage.say(f"{title}: CasADi, order {order}", order / len(casadi))
        pair, built[order] = _casadi(order)
        contenders += pair
    for contender in contenders:
        contender.runs[0](1)  # first calls compile
    times = stage.race(title, contenders, rounds=stage.rounds // 8)
    rows = [
        _row(times, f"{name}, r = {order}", f"{_PUBLISHED}, r = {order}", faster=name == "compiled")
        for order in formulations
        for name in (*INVERSE_DYNAMICS, "compiled")
        if name != _PUBLISHED
    ]
    rows += [
        _row(times, _trees(count, order), _trees(links[0], order)) for order in forward for count in links[1:]
    ]
    for order in casadi:
        against = f"CasADi's evaluator, buffered; built in {built[order]:.1f} s"
        rows.append(_row(times, _efforts(order), f"CasADi, r = {order}", against))
    return Section(title, rows)


def _row(times: Times, name: str, peer: str, against: str = "", *, faster: bool = False) -> Row:
    """Return how much longer than its peer a contender takes, or how many times faster it is."""
    return Row(
        f"{name}: times faster" if faster else name,
        against or peer,
        times.speedup(name, peer) if faster else times.ratio(name, peer),
        times.seconds(name).median,
        times.seconds(peer).median,
    )


def _formulations(order: int) -> list[Contender]:
    """Return the published formulations in NumPy, and the compiled recursion."""
    robot = robots.panda()
    q = np.random.default_rng(7).uniform(-1.0, 1.0, size=(order + 3, robot.n_coordinates))
    right = np.asarray(robot.inverse_dynamics(q, formulation=_PUBLISHED))
    names = {"robot": robot, "q": q, "f": robot.compile(order)}
    calls = {name: f"robot.inverse_dynamics(q, formulation={name!r})" for name in INVERSE_DYNAMICS}
    calls["compiled"] = "f(q)"
    for name, call in calls.items():
        check(f"{name}, order {order}", np.asarray(eval(call, dict(names))), right)  # noqa: S307
    return [python_call(f"{name}, r = {order}", call, names) for name, call in calls.items()]


def _trees(links: int, order: int) -> str:
    return f"forward dynamics of a floating tree of {5 * links + 1} bodies, r = {order}"


def _efforts(order: int) -> str:
    return f"inverse dynamics of a floating tree of {5 * _LINKS[-1] + 1} bodies, out=…, r = {order}"


def _forward(links: int, order: int) -> Contender:
    """Return forward dynamics of a floating tree, held against its own inverse dynamics."""
    robot = robots.tree(5, links, floating_base=True)
    rng = np.random.default_rng(7)
    q = rng.uniform(-1.0, 1.0, size=(order + 3, robot.n_coordinates))
    pose = robots.samples("pose", (4, 4), 1, rng)[0]
    base = BaseMotion(pose, rng.uniform(-1.0, 1.0, size=(order + 2, 6)))
    wrench, torques = robot.inverse_dynamics(q, base=base)
    names = {"f": robot.compile(order, "forward_dynamics"), "x": q[:2].copy(), "t": torques, "w": wrench}
    names |= {"pose": base.pose, "twist": np.ascontiguousarray(base.twists[:1])}
    call = "f(x, t, pose, twist, w)"
    found = eval(call, dict(names))  # noqa: S307  # a call of this file
    twists, joints = found[:, :6], found[:, 6:]
    back = BaseMotion(base.pose, np.vstack([base.twists[:1], twists]))
    needed = robot.inverse_dynamics(np.vstack([q[:2], joints]), base=back)
    size = np.maximum(np.abs(joints).max(axis=1), np.abs(twists).max(axis=1))
    check(_trees(links, order), np.hstack(needed), np.hstack([wrench, torques]), scale=size)
    return python_call(_trees(links, order), call, names)


def _casadi(order: int) -> tuple[list[Contender], float]:
    """Return the largest tree by this package and by CasADi, and how long CasADi took to build [s]."""
    robot = robots.tree(5, _LINKS[-1], floating_base=True)
    rng = np.random.default_rng(7)
    q = rng.uniform(-1.0, 1.0, size=(order + 3, robot.n_coordinates))
    pose = robots.samples("pose", (4, 4), 1, rng)[0]
    base = BaseMotion(pose, rng.uniform(-1.0, 1.0, size=(order + 2, 6)), representation="body_fixed")
    started = time.perf_counter()
    buffer, evaluate = casadi_rnea.efforts_of_tree(robot.model, order).buffer()
    built = time.perf_counter() - started
    given = [pose[:3, :3].T.copy(), base.twists.copy(), q]  # CasADi stores columns together
    out = np.empty((order + 1, 6 + robot.n_coordinates))
    for i, array in enumerate(given):
        buffer.set_arg(i, memoryview(array.data))
    buffer.set_res(0, memoryview(out.data))
    evaluate()
    wrench, torques = robot.inverse_dynamics(q, base, formulation=_PUBLISHED)
    right = np.hstack([base.wrenches_in_body(wrench), torques])
    check(f"CasADi, order {order}", out, right)
    spatial = base.in_representation("spatial")
    names: dict[str, Any] = {"f": robot.compile(order), "q": q, "pose": pose, "V": spatial.twists}
    names["out"] = np.empty_like(out)
    found = names["f"](q, pose, spatial.twists)
    check(f"robot.compile({order})", np.hstack([base.wrenches_in_body(found[:, :6]), found[:, 6:]]), right)
    kept = (buffer, given, out)
    return [
        python_call(_efforts(order), "f(q, pose, V, out=out)", names),
        python_call(f"CasADi, r = {order}", "evaluate()", {"evaluate": evaluate, "kept": kept}),
    ], built
