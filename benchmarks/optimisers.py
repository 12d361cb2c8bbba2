"""In other people's optimisers: external functions of CasADi beside its own C code, and batches from JAX."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks import robots
from benchmarks.agreement import check
from benchmarks.compiled_loop import compiled_call
from benchmarks.peers import c_code, casadi_rnea, pinocchio_casadi
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Contender, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot
from hodyn_ros.codegen.llvm import compile_text
from hodyn_ros.interop.casadi_functions import External, externals
from hodyn_ros.interop.casadi_library import library, write_library
from hodyn_ros.interop.robot_functions import function_of
from hodyn_ros.simulation.gradients import MotionParameters, ParametricSimulation

_NODES = 24
_SAMPLES = 16
_COPIES = 2
_BATCH = 4096
_PARTS = {"": "evaluation", "jac_": "Jacobian", "jac_adj1_": "Hessian of a sum"}
_SOLVER_CALLS = {
    "nlp_g": "constraints",
    "nlp_jac_g": "their Jacobian",
    "nlp_hess_l": "Hessian of the Lagrangian",
}
_OURS, _VIRTUAL = "ours", "pinocchio.casadi's function"
_PINOCCHIO = "pinocchio.casadi's C code"


def measure(stage: Stage) -> Section:
    """Time value, Jacobian and Hessian of the 7-joint arm's inverse dynamics, of one node and of several."""
    title = "in optimisers: 7-joint arm, r = 0"
    stage.say(f"{title}: compiling", 0.0)
    robot = Robot(robots.panda().model.with_gravity((0.0, 0.0, -pinocchio_casadi.GRAVITY)))
    names = {
        (part, count): f"{_PARTS[part]}, {count} node{'s' if count > 1 else ''}"
        for part in _PARTS
        for count in (1, _NODES)
    }
    contenders = [_ours(name, robot, part, count, copy=0) for (part, count), name in names.items()]
    peers: dict[str, list[str]] = {part: [] for part in _PARTS}
    if c_code.compiler() is not None:
        for part in _PARTS:
            for edition in casadi_rnea.EDITIONS:
                peer = f"CasADi's {edition} C code: {_PARTS[part]}"
                torques = casadi_rnea.torques(robot.model, 0, edition)
                contenders.append(_casadi(peer, robot, part, torques))
                peers[part].append(peer)
            contenders.append(
                _casadi(f"{_PINOCCHIO}: {_PARTS[part]}", robot, part, pinocchio_casadi.torques())
            )
    in_solver = {by: _in_solver(by, torque, robot) for by, torque in _in_expressions(robot).items()}
    check("nlpsol's functions", in_solver[_VIRTUAL][1][None], in_solver[_OURS][1][None])
    contenders += [contender for found, _ in in_solver.values() for contender in found]
    contenders += _motions_and_back(robot)
    with_jax = find_spec("jax") is not None
    if with_jax:
        contenders += _batches(robot)
    times = stage.race(title, contenders)
    rows = []
    for (part, count), name in names.items():
        seconds = times.seconds(name).median
        if not peers[part]:
            rows.append(Row(name, "CasADi, C code", None, seconds, note="no C compiler on this machine"))
            continue
        pinocchio = f"{_PINOCCHIO}: {_PARTS[part]}"
        for peer, must, aim in (
            (times.fastest(peers[part]), Bound(1.0), None),
            (pinocchio, Bound(0.2 if count > 1 else 1.0), Bound(0.2)),
        ):
            ratio = times.ratio(name, peer)
            rows.append(
                Row(
                    work=f"{name}, each",
                    against=peer,
                    result=type(ratio)(ratio.median / count, ratio.low / count, ratio.high / count),
                    ours=seconds / count,
                    theirs=times.seconds(peer).median,
                    must=must,
                    aim=aim,
                )
            )
    for part in _SOLVER_CALLS.values():
        ours, theirs = f"{part}, {_OURS}", f"{part}, {_VIRTUAL}"
        rows.append(
            Row(
                work=f"in nlpsol, 1 node: {part}",
                against=_VIRTUAL,
                result=times.ratio(ours, theirs),
                ours=times.seconds(ours).median,
                theirs=times.seconds(theirs).median,
                must=Bound(0.2),
            )
        )
    rows.append(
        Row(
            work="a simulated motion with derivatives by all parameters",
            against="the motion alone",
            result=times.ratio(_BACK, _FORTH),
            ours=times.seconds(_BACK).median,
            theirs=times.seconds(_FORTH).median,
            must=Bound(5.0),
        )
    )
    if with_jax:
        rows.append(
            Row(
                work=f"{_BATCH} samples from jit of JAX",
                against="compile_batch",
                result=times.ratio("jax", "compile_batch"),
                ours=times.seconds("jax").median,
                theirs=times.seconds("compile_batch").median,
                must=Bound(1.25),
            )
        )
    return Section(title, rows)


def _motions(robot: Robot, count: int) -> tuple[Array, Array]:
    rng, n = np.random.default_rng(5), robot.n_joints
    return rng.uniform(-1.0, 1.0, (_SAMPLES, 3 * count, n)), rng.normal(size=(_SAMPLES, count, n))


def _ours(name: str, robot: Robot, part: str, count: int, copy: int) -> Contender:
    """Return a call of one external function as solvers ask for it, its outputs side by side."""
    functions = externals(function_of(robot, "inverse_dynamics", 0), f"arm{copy}", count)
    own = next(one for one in functions if one.name == f"{part}arm{copy}")
    loaded = ctypes.CDLL(str(write_library(library(functions))))
    address = ctypes.cast(getattr(loaded, own.name), ctypes.c_void_p).value
    assert address is not None
    q, weights = _motions(robot, count)
    results = np.empty((_SAMPLES, 1, sum(own.outputs[j].size for j in _asked(own))))
    plain = compile_text(_plain(own, address), "plain", None)
    contender = compiled_call(name, [plain.address], [q, weights], results, keep=(loaded, plain))
    contender.runs[0](_SAMPLES)
    if part == "":
        right = np.array([robot.inverse_dynamics(one)[0] for one in q.reshape(-1, 3, robot.n_joints)])
        check(name, results.reshape(right.shape), right)
    return contender


def _asked(function: External) -> Sequence[int]:
    return function.alone or range(len(function.outputs))


def _plain(function: External, address: int) -> str:
    """Write `void plain(const double *q, const double *weights, double *out)` around an external function."""
    scratch = 2 * sum(block.size for block in function.outputs) + 1
    passed: list[tuple[str, int, str]] = [("arg", 0, "%q")]
    seed = next((i for i, block in enumerate(function.inputs) if block.name.startswith("adj_")), None)
    if seed is not None:
        passed.append(("arg", seed, "%weights"))
    lines = [
        "define void @plain(ptr %q, ptr %weights, ptr %out) {",
        f"%arg = alloca ptr, i64 {len(function.inputs)}",
        f"%res = alloca ptr, i64 {len(function.outputs)}",
        f"%w = alloca double, i64 {scratch}, align 64",
    ]
    for i in range(len(function.inputs)):
        if i not in (0, seed):
            passed.append(("arg", i, "null"))
    start = 0
    for j, block in enumerate(function.outputs):
        if j not in _asked(function):
            passed.append(("res", j, "null"))
            continue
        lines.append(f"%out{j} = getelementptr double, ptr %out, i64 {start}")
        passed.append(("res", j, f"%out{j}"))
        start += block.size
    for kind, i, value in passed:
        lines += [
            f"%{kind}{i}_at = getelementptr ptr, ptr %{kind}, i64 {i}",
            f"store ptr {value}, ptr %{kind}{i}_at, align 8",
        ]
    call = f"i32 inttoptr (i64 {address} to ptr)(ptr %arg, ptr %res, ptr null, ptr %w, i32 0)"
    return "\n".join([*lines, f"%done = call {call}", "ret void", "}"]) + "\n"


def _casadi(name: str, robot: Robot, part: str, torques_of: Any) -> Contender:
    """Return what CasADi generates of an expression, of one node, checked against ours."""
    import casadi as ca

    n = robot.n_joints
    x = ca.SX.sym("x", 4 * n)
    q, multiplier = ca.reshape(x[: 3 * n], n, 3), x[3 * n :]
    torques = torques_of(q)
    wanted = torques
    if part == "jac_":
        wanted = ca.jacobian(torques, x)[:, : 3 * n]
    elif part:
        wanted = ca.hessian(ca.dot(multiplier, torques), x)[0][: 3 * n, : 3 * n]
    function = ca.Function("peer", [x], [ca.cse(wanted)])
    code = c_code.compile_function(function, _COPIES)
    motions, weights = _motions(robot, 1)
    given = np.concatenate([motions.reshape(_SAMPLES, -1), weights.reshape(_SAMPLES, -1)], axis=1)
    results = np.empty((_SAMPLES, 1, function.nnz_out(0)))
    found = np.array(function(given[0])).T.ravel()
    q0, weights0 = motions[0].reshape(3, n), weights[0].reshape(1, n)
    if part == "jac_adj1_":
        right = robot.inverse_dynamics_hessian(q0, weights0).transpose(0, 2, 1, 3)
    elif part:
        right = robot.inverse_dynamics_derivatives(q0)[0].transpose(0, 2, 1)
    else:
        right = robot.inverse_dynamics(q0)
    check(name, found[None], np.reshape(right, (1, -1)))
    return compiled_call(name, code.addresses, [given[:, None].copy()], results, keep=code)


def _in_expressions(robot: Robot) -> dict[str, Any]:
    """Return functions of CasADi as users have them: ours, and Pinocchio's in CasADi's virtual machine."""
    from hodyn_ros.interop.casadi import function

    return {_OURS: function(robot), _VIRTUAL: pinocchio_casadi.torques()}


def _in_solver(by: str, torque: Any, robot: Robot) -> tuple[list[Contender], Array]:
    """Return calls of what Ipopt asks of torques as constraints, and the results side by side."""
    import casadi as ca

    x = ca.MX.sym("x", robot.n_joints, 3)
    problem = {"x": ca.vec(x), "f": ca.sumsqr(x), "g": torque(x)}
    solver: Any = ca.nlpsol("solver", "ipopt", problem, {"print_time": 0, "ipopt.print_level": 0})
    motions, weights = _motions(robot, 1)
    given = {"x": motions[0].ravel(), "p": np.empty(0), "lam_f": np.ones(1), "lam_g": weights[0].ravel()}
    contenders, results = [], []
    for called, part in _SOLVER_CALLS.items():
        function = solver.get_function(called)
        buffer, evaluate = function.buffer()
        outputs = [np.zeros(function.nnz_out(i)) for i in range(function.n_out())]
        for i in range(function.n_in()):
            buffer.set_arg(i, given[function.name_in(i).replace(":", "_")].data)
        for i, output in enumerate(outputs):
            buffer.set_res(i, output.data)
        evaluate()
        results.append(outputs[-1])
        names = {"evaluate": evaluate, "kept": (solver, buffer, given, outputs)}
        contenders.append(python_call(f"{part}, {by}", "evaluate()", names))
    return contenders, np.concatenate(results)


_FORTH, _BACK = "motion", "motion and back"


def _motions_and_back(robot: Robot) -> Sequence[Contender]:
    """Return 100 steps of the arm with its elastic joints, and those with derivatives."""
    simulation, parameters = ParametricSimulation(robot), MotionParameters.of(robot)
    efforts = np.random.default_rng(7).normal(size=(100, robot.n_joints))
    start = np.zeros((2, simulation.width))
    states = simulation.simulate(start, efforts, 1e-4, parameters)
    names: dict[str, Any] = {"s": simulation, "x": start, "u": efforts, "p": parameters}
    names["w"] = np.ones_like(states)
    simulation.gradient(states, efforts, 1e-4, parameters, names["w"])
    forth = "s.simulate(x, u, 1e-4, p)"
    return [
        python_call(_FORTH, forth, names),
        python_call(_BACK, f"s.gradient({forth}, u, 1e-4, p, w)", names),
    ]


def _batches(robot: Robot) -> Sequence[Contender]:
    import jax

    from hodyn_ros.interop.jax import function

    jax.config.update("jax_enable_x64", True)
    motions = np.random.default_rng(7).uniform(-1.0, 1.0, (_BATCH, 3, robot.n_joints))
    names: dict[str, Any] = {
        "f": jax.jit(jax.vmap(function(robot))),
        "x": jax.numpy.asarray(motions),
        "batch": robot.compile_batch(0),
        "q": motions,
        "out": np.empty((_BATCH, 1, robot.n_joints)),
    }
    found = np.asarray(names["f"](names["x"])).reshape(_BATCH, -1)
    check("the batch from JAX", found, names["batch"](motions).reshape(_BATCH, -1))
    return [
        python_call("jax", "f(x).block_until_ready()", names),
        python_call("compile_batch", "batch(q, out=out, threads=1)", names),
    ]
