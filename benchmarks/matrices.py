"""Matrices of dynamics: partial derivatives beside Pinocchio, time derivatives beside differences in time."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks import robots
from benchmarks.agreement import check
from benchmarks.humanoid import humanoid
from benchmarks.peers import pinocchio_second_order, pinocchio_tree
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Contender, Figure, Times, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros.formulations import dynamic_matrices
from hodyn_ros.formulations.body_jacobians import BodyJacobians, joint_motion
from hodyn_ros.model.joint_tree import JointTree

PINOCCHIO = "pinocchio.computeRNEADerivatives"
# Matrices with derivatives, over twice the matrices that a difference takes: as printed, and compiled, where
# the matrices take 8,862 instructions and 21,423 with derivatives, 1.21 times those of two instants.
_GAROFALO = 0.71
_LESS_THAN_TWO = 1.0


def measure(stage: Stage) -> Section:
    """Time partial derivatives of the 7-joint arm and the matrices of a humanoid."""
    title = "matrices, from Python"
    orders = (0, 1)
    stage.say(f"{title}: compiling", 0.0)
    contenders = [*_partials(orders), *_forward_partials(), *_second_partials(), *_matrices(orders)]
    times = stage.race(title, contenders)
    rows = [
        Row(
            work=f"7-joint arm: partials of Q^(r), r = 0 … {order}",
            against=f"{PINOCCHIO}, r = 0",
            result=times.ratio(_partial(order), PINOCCHIO),
            ours=times.seconds(_partial(order)).median,
            theirs=times.seconds(PINOCCHIO).median,
            must=Bound(1.0) if order == 0 else None,
        )
        for order in orders
    ]
    for work, bound in ((_FORWARD, Bound(1.0)), (_NAMED, None)):
        rows.append(
            Row(
                work=work,
                against=_ABA,
                result=times.ratio(work, _ABA),
                ours=times.seconds(work).median,
                theirs=times.seconds(_ABA).median,
                must=bound,
                aim=bound and Bound(0.5),
            )
        )
    for (kind, first), part in product(_FIRST.items(), _BOUNDS):
        name = f"{kind}_dynamics_{part}"
        rows.append(
            Row(
                work=f"7-joint arm: {name}, r = 0",
                against="the first partials, compiled",
                result=times.ratio(name, first),
                ours=times.seconds(name).median,
                theirs=times.seconds(first).median,
                must=Bound(_BOUNDS[part]),
            )
        )
    there = any(contender.name == _SECOND_ORDER for contender in contenders)
    rows.append(
        Row(
            work=f"7-joint arm: {_WHOLE}, r = 0",
            against=_SECOND_ORDER,
            result=times.ratio(_WHOLE, _SECOND_ORDER) if there else None,
            ours=times.seconds(_WHOLE).median,
            theirs=times.seconds(_SECOND_ORDER).median if there else None,
            must=Bound(0.5),
            note="no C++ compiler on this machine",
        )
    )
    for way in (_ROOM, _COMPILED):
        rows.append(
            Row(
                work=f"25-joint humanoid: M, C, g with derivatives, {way}",
                against="M, C, g at two instants, the same way",
                result=_beside_two_instants(times, way),
                ours=times.seconds(f"{way} 1").median,
                theirs=2.0 * times.seconds(f"{way} 0").median,
                must=Bound(_GAROFALO if way == _ROOM else _LESS_THAN_TWO),
            )
        )
    rows.append(
        Row(
            work="25-joint humanoid: M, C, g, compiled",
            against="the same in NumPy",
            result=times.ratio(f"{_COMPILED} 0", f"{_ROOM} 0"),
            ours=times.seconds(f"{_COMPILED} 0").median,
            theirs=times.seconds(f"{_ROOM} 0").median,
        )
    )
    return Section(title, rows)


_ABA = "pinocchio.computeABADerivatives"
_FORWARD = "7-joint arm: partials of forward dynamics, r = 0"
_NAMED = f"{_FORWARD}, named"


def _forward_partials() -> list[Contender]:
    """Return partial derivatives of forward dynamics, ours and Pinocchio's."""
    robot = robots.panda()
    twin = pinocchio_tree.build(robot.model)
    data = twin.createData()
    state, torques = np.split(np.random.default_rng(9).uniform(-1.0, 1.0, size=(3, robot.n_coordinates)), [2])
    right = [np.array(part) for part in pin.computeABADerivatives(twin, data, *state, torques[0])]
    right[2] = np.triu(right[2]) + np.triu(right[2], 1).T
    function = robot.compile(0, "forward_dynamics_derivatives")
    check("forward_dynamics_derivatives", function(state, torques), np.concatenate(right))
    names: dict[str, Any] = {"f": pin.computeABADerivatives, "model": twin, "data": data}
    names |= {"q": state[0].copy(), "v": state[1].copy(), "u": torques[0].copy()}
    ours = {"f": function, "robot": robot, "x": state.copy(), "u": torques.copy()}
    return [
        python_call(_ABA, "f(model, data, q, v, u)", names),
        python_call(_FORWARD, "f(x, u)", ours),
        python_call(_NAMED, "robot.forward_dynamics_derivatives(x, u)", ours),
    ]


_FIRST = {kind: f"{kind}_dynamics_derivatives" for kind in ("inverse", "forward")}
_BOUNDS = {"hessian": 3.0, "second_derivatives": 8.0}  # times the first
_WHOLE = "inverse_dynamics_second_derivatives"
_SECOND_ORDER = "Pinocchio's ComputeRNEASecondOrderDerivatives, in C++"


def _second_partials() -> list[Contender]:
    """Return second partial derivatives, contracted and in full, beside the first."""
    robot = robots.panda()
    q = np.random.default_rng(9).uniform(-1.0, 1.0, size=(3, robot.n_coordinates))
    weights = np.ones((1, robot.n_coordinates))
    contenders = []
    for kind, given in (("inverse", [q]), ("forward", [q[:2].copy(), q[2:].copy()])):
        whole = getattr(robot, f"{kind}_dynamics_second_derivatives")(*given)[0]
        part = getattr(robot, f"{kind}_dynamics_hessian")(*given, weights)
        right = whole.sum(axis=2).reshape(9, -1)  # whose blocks by q'' twice, and others, are zero
        check("contracted second derivatives", part.reshape(9, -1), right, np.full(9, np.abs(right).max()))
        for name, arguments in (
            (_FIRST[kind], given),
            (f"{kind}_dynamics_hessian", [*given, weights]),
            (f"{kind}_dynamics_second_derivatives", given),
        ):
            names = {"f": robot.compile(0, name), **{f"x{i}": x for i, x in enumerate(arguments)}}
            call = f"f({', '.join(f'x{i}' for i in range(len(arguments)))})"
            contenders.append(python_call(name, call, names))
    whole = robot.inverse_dynamics_second_derivatives(q)[0]
    peer = pinocchio_second_order.contender(_SECOND_ORDER, robot.model, q, whole)
    return contenders if peer is None else [*contenders, peer]


_ROOM, _COMPILED = "in NumPy as published", "compiled"


def _partial(order: int) -> str:
    return f"partials {order}"


def _beside_two_instants(times: Times, way: str) -> Figure:
    ratio = times.ratio(f"{way} 1", f"{way} 0")
    return Figure(0.5 * ratio.median, 0.5 * ratio.low, 0.5 * ratio.high)


def _partials(orders: tuple[int, ...]) -> list[Contender]:
    robot = robots.panda()
    twin = pinocchio_tree.build(robot.model)
    data = twin.createData()
    q = np.random.default_rng(7).uniform(-1.0, 1.0, size=(3 + max(orders), robot.n_coordinates))
    right = np.stack([np.array(part) for part in pin.computeRNEADerivatives(twin, data, *q[:3])])
    names: dict[str, Any] = {"f": pin.computeRNEADerivatives, "model": twin, "data": data}
    names |= {"q": q[0].copy(), "v": q[1].copy(), "a": q[2].copy()}
    contenders = [python_call(PINOCCHIO, "f(model, data, q, v, a)", names)]
    for order in orders:
        motion = q[: order + 3].copy()
        found = robot.inverse_dynamics_derivatives(motion)[0]
        check("inverse_dynamics_derivatives", found[:3].reshape(3, -1), right.reshape(3, -1))
        call = "robot.inverse_dynamics_derivatives(q)"
        contenders.append(python_call(_partial(order), call, {"robot": robot, "q": motion}))
    return contenders


def _matrices(orders: tuple[int, ...]) -> list[Contender]:
    robot = humanoid()
    tree = JointTree.of(robot.model)
    q = np.random.default_rng(7).uniform(-1.0, 1.0, size=(2 + max(orders), robot.n_coordinates))
    contenders = []
    for order in orders:
        motion = q[: order + 2].copy()
        robot.compile_matrices(order)
        for found, right in zip(robot.dynamic_matrices(motion), _as_published(tree, motion)):
            flat = np.stack(right).reshape(order + 1, -1)
            check("the compiled matrices", found.reshape(order + 1, -1), flat)
        call = "robot.dynamic_matrices(q)"
        contenders.append(python_call(f"{_COMPILED} {order}", call, {"robot": robot, "q": motion}))
        names = {"f": _as_published, "tree": tree, "q": motion}
        contenders.append(python_call(f"{_ROOM} {order}", "f(tree, q)", names))
    return contenders


def _as_published(tree: JointTree, q: Array) -> tuple[list[Array], list[Array], list[Array]]:
    """Compute M, C and g with as many derivatives as `q` determines, as Garofalo et al. do."""
    order = len(q) - 2
    bodies = BodyJacobians(tree, joint_motion(tree, q))
    return (
        dynamic_matrices.mass_matrices(bodies, order),
        dynamic_matrices.coriolis_matrices(bodies, order),
        dynamic_matrices.gravity_forces(bodies, order),
    )
