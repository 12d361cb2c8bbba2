"""External functions of CasADi: values and derivatives are those of the calls, zeros the structural ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_robots import panda
from exported_code import CC, compiled_by, needs_c
from oracles.random_trees import random_tree
from places import DATA
from refusals import assert_refused
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.export.request import ExportRequest

ca = pytest.importorskip("casadi", reason="casadi is not installed")
from benchmarks.peers.pinocchio_casadi import GRAVITY  # noqa: E402
from benchmarks.peers.pinocchio_casadi import torques as pinocchio_torques  # noqa: E402
from hodyn_ros.interop.casadi import export_casadi, function  # noqa: E402


def small(floating: bool) -> Robot:
    return Robot.from_screws(**random_tree(3, 3 - floating, floating_base=floating).arguments())


def arguments_of(robot: Robot, what: str, order: int, seed: int = 0) -> list[Array]:
    """Return arguments by rows, as `Robot.compile` takes them."""
    rng, n = np.random.default_rng(seed), robot.n_coordinates
    rows = order + {"inverse_dynamics": 3, "coriolis_matrix": 2}.get(what, 1)
    motion = rng.uniform(-1.0, 1.0, (rows, n))
    arrays = [motion]
    if what == "forward_dynamics":
        arrays = [rng.uniform(-1.0, 1.0, (2, n)), rng.uniform(-1.0, 1.0, (order + 1, n))]
    if robot.model.floating_base:
        arrays += [np.eye(4), rng.uniform(-1.0, 1.0, (1 if len(arrays) > 1 else rows - 1, 6))]
        if len(arrays) == 4:
            arrays.append(rng.uniform(-1.0, 1.0, (order + 1, 6)))
    return arrays


def listed(found: Any) -> list[Array]:
    """Return results of CasADi as arrays, of one or of several."""
    return [np.array(one) for one in (found if isinstance(found, (tuple, list)) else [found])]


def by_differences(call: Any, arrays: list[Array], seed: int = 1) -> tuple[list[Array], Array]:
    """Return a direction, and how a call changes in it: differences of sixth order."""
    rng, step = np.random.default_rng(seed), 1e-2
    direction = [rng.normal(size=array.shape) for array in arrays]

    def beside(s: float) -> Array:
        return np.asarray(call(*(x + s * step * d for x, d in zip(arrays, direction))))

    odd = [beside(i) - beside(-i) for i in (1, 2, 3)]
    return direction, (45.0 * odd[0] - 9.0 * odd[1] + odd[2]) / (60.0 * step)


def test_inverse_dynamics_of_an_arm_with_all_derivatives() -> None:
    robot, rng = panda(), np.random.default_rng(0)
    torque, q = function(robot), rng.uniform(-1.0, 1.0, (3, 7))
    weights = rng.normal(size=(1, 7))
    assert torque.size_in(0) == (7, 3)
    assert torque.name_in(0) == "q"
    np.testing.assert_array_equal(np.array(torque(q.T)).T, robot.compile(0)(q))
    first = np.concatenate(list(robot.inverse_dynamics_derivatives(q)[0]), axis=1)
    jacobian = torque.jacobian()
    np.testing.assert_allclose(np.array(jacobian(q.T, 0)), first, rtol=0, atol=1e-13 * np.abs(first).max())
    assert jacobian.nnz_out(0) < first.size, "the first joint's torque depends on no position of its own"
    x, multiplier = ca.MX.sym("x", 7, 3), ca.MX.sym("l", 7)
    hessian, gradient = ca.hessian(ca.dot(multiplier, torque(x)), x)
    found = ca.Function("second", [x, multiplier], [hessian, gradient])(q.T, weights.ravel())
    expected = robot.inverse_dynamics_hessian(q, weights).transpose(0, 2, 1, 3).reshape(21, 21)
    np.testing.assert_allclose(np.array(found[0]), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(np.array(found[1]).T.ravel(), weights[0] @ first, rtol=0, atol=1e-11)
    direction = rng.normal(size=(7, 3))
    along = np.array(torque.forward(1)(q.T, 0, direction)).ravel()
    np.testing.assert_allclose(along, first @ direction.T.ravel(), rtol=0, atol=1e-11)
    change = rng.normal(size=7)
    bent = torque.reverse(1).forward(1)(q.T, 0, weights.T, 0, direction, 0, change)
    right = expected @ direction.T.ravel() + change @ first
    np.testing.assert_allclose(np.array(bent).T.ravel(), right, rtol=0, atol=1e-12 * np.abs(right).max())


def test_values_and_derivatives_are_those_of_pinocchio() -> None:
    """Of the expression that Pinocchio computes over CasADi's symbols, which CasADi differentiates."""
    ours = function(Robot(panda().model.with_gravity((0.0, 0.0, -GRAVITY))))
    (q, direction), x = np.random.default_rng(6).uniform(-1.0, 1.0, (2, 7, 3)), ca.SX.sym("x", 7, 3)
    expression = pinocchio_torques()(x)
    theirs = ca.Function("theirs", [x], [expression, ca.jtimes(expression, x, direction)])
    along = ours.jacobian()(q, 0) @ ca.vec(ca.DM(direction))
    for found, right in zip((ours(q), along), map(np.array, theirs(q)), strict=True):
        np.testing.assert_allclose(np.array(found), right, rtol=0, atol=1e-12 * np.abs(right).max())


OPERATIONS = [("inverse_dynamics", 0), ("forward_dynamics", 0), ("forward_kinematics", 1), ("com", 0)]


@pytest.mark.parametrize(
    ("what", "order", "floating"),
    some(
        [(*operation, floating) for operation in OPERATIONS for floating in (False, True)],
        ("inverse_dynamics", 0, True),
        ("forward_dynamics", 0, False),
        ("forward_kinematics", 1, True),
        ("com", 0, True),
    ),
)
def test_every_operation_is_that_of_compile_and_its_derivatives_are_exact(
    what: str, order: int, floating: bool
) -> None:
    robot = small(floating)
    call, compiled = function(robot, what, order), robot.compile(order, what)
    arrays = arguments_of(robot, what, order)
    value = compiled(*arrays)
    given = [array.T for array in arrays]
    scale = np.abs(value).max()
    np.testing.assert_allclose(np.array(call(*given)).T, value, rtol=0, atol=1e-13 * scale)
    direction, change = by_differences(compiled, arrays)
    seeds = [one.T for one in direction]
    forward = np.array(call.forward(1)(*given, 0, *seeds)).T
    close = {"rtol": 0, "atol": 1e-9 * max(scale, np.abs(change).max())}
    np.testing.assert_allclose(forward, change, **close)
    blocks = listed(call.jacobian()(*given, 0))
    by_blocks = sum(block @ one.ravel() for block, one in zip(blocks, direction, strict=True))
    np.testing.assert_allclose(by_blocks, change.ravel(), **close)
    weights = np.random.default_rng(2).normal(size=value.shape)
    reverse = call.reverse(1)

    def slopes(*moved: Array) -> Array:
        parts = listed(reverse(*(x.T for x in moved), 0, weights.T))
        return np.concatenate([part.T.ravel() for part in parts])

    along = np.concatenate([one.ravel() for one in direction])
    assert abs(slopes(*arrays) @ along - (weights * change).sum()) <= 1e-9 * np.abs(along).sum() * scale
    second = listed(reverse.jacobian()(*given, 0, weights.T, *[0] * len(given)))
    per_row = len(given) + 2
    starts = range(0, len(second), per_row)
    whole = np.vstack([np.hstack(second[start : start + len(given)]) for start in starts])
    _, bent = by_differences(slopes, arrays)
    assert np.abs(whole @ along - bent).max() <= 1e-8 * max(np.abs(whole).max(), 1.0)
    np.testing.assert_allclose(whole, whole.T, rtol=0, atol=1e-11 * max(np.abs(whole).max(), 1.0))


def test_singular_poses_of_bodies_without_mass_have_no_number() -> None:
    """And derivatives elsewhere do not know of it."""
    axes, heavy = np.eye(3, 6)[[2, 1, 0]], np.array([0.0, 0.0, 1.0])
    inertias = heavy[:, None, None] * np.diag([0.1, 0.2, 0.25])
    ball = Robot.from_screws(range(-1, 2), axes, np.tile(np.eye(4), (3, 1, 1)), heavy, np.eye(3), inertias)
    call, state, tau = function(ball, "forward_dynamics"), np.full((2, 3), 0.3), np.full((1, 3), 0.2)
    expected = ball.forward_dynamics_derivatives(state, tau)[0]
    for found, exact in zip(
        listed(call.jacobian()(state.T, tau.T, 0)), (np.hstack(expected[:2]), expected[2])
    ):
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * np.abs(expected).max())
    state[0, 1] = np.pi / 2
    assert not np.isfinite(np.array(call(state.T, tau.T))).any()
    assert not np.isfinite(np.array(call.jacobian()(state.T, tau.T, 0)[1])).any()


def test_several_samples_are_each_on_its_own() -> None:
    robot, count = Robot.from_screws(**random_tree(3, 2).arguments()), 3
    one, many = function(robot, order=1), function(robot, order=1, samples=count, name="many")
    rng = np.random.default_rng(3)
    q, weights = rng.uniform(-1.0, 1.0, (2, 4 * count)), rng.normal(size=(2, 2 * count))
    mapped = one.map(count)
    for ours, theirs in (
        (many(q), mapped(q)),
        (many.jacobian()(q, 0), mapped.jacobian()(q, 0)),
        (many.reverse(1)(q, 0, weights), mapped.reverse(1)(q, 0, weights)),
        (many.reverse(1).jacobian()(q, 0, weights, 0)[0], mapped.reverse(1).jacobian()(q, 0, weights, 0)[0]),
        (many.forward(1)(q, 0, 2.0 * q), mapped.forward(1)(q, 0, 2.0 * q)),
        (
            many.reverse(1).forward(1)(q, 0, weights, 0, 2.0 * q, 0, weights),
            mapped.reverse(1).forward(1)(q, 0, weights, 0, 2.0 * q, 0, weights),
        ),
    ):
        right = np.array(theirs)
        np.testing.assert_allclose(np.array(ours), right, rtol=0, atol=1e-13 * np.abs(right).max())
    assert many.jacobian().nnz_out(0) == count * one.jacobian().nnz_out(0)


@pytest.mark.parametrize("samples", [1, 11])
def test_solvers_get_the_hessian_alone(samples: int) -> None:
    """Neither one direction after the other, which CasADi would take, nor with the Jacobian beside it."""
    robot = Robot.from_screws(**random_tree(4, 5).arguments())
    torque, rng = function(robot, samples=samples), np.random.default_rng(4)
    q, weights = rng.uniform(-1.0, 1.0, torque.size_in(0)), rng.normal(size=torque.size_out(0))
    x, multiplier = ca.MX.sym("x", *q.shape), ca.MX.sym("l", *weights.shape)
    asked = ca.Function("asked", [x, multiplier], [ca.hessian(ca.dot(multiplier, torque(x)), x)[0]])
    called = {one.name() for one in asked.find_functions()}
    assert f"jac_adj1_{torque.name()}" in called
    assert f"fwd1_adj1_{torque.name()}" not in called
    right = np.array(torque.reverse(1).jacobian()(q, 0, weights, 0)[0])
    np.testing.assert_allclose(np.array(asked(q, weights)), right, rtol=0, atol=1e-13 * np.abs(right).max())


def test_ipopt_finds_a_posture_with_exact_hessians() -> None:
    torque, x = function(panda()), ca.MX.sym("x", 7)
    held = torque(ca.horzcat(x, ca.DM.zeros(7, 2)))
    options = {"print_time": 0, "ipopt.print_level": 0, "ipopt.sb": "yes"}
    solver = ca.nlpsol("solver", "ipopt", {"x": x, "f": ca.sumsqr(held)}, options)
    found = solver(x0=0.1, lbx=-1.0, ubx=1.0)
    assert solver.stats()["success"]
    assert float(found["f"]) < 0.5 * float(
        ca.sumsqr(torque(ca.horzcat(ca.DM.ones(7) * 0.1, ca.DM.zeros(7, 2))))
    )


@needs_c
def test_exported_code_is_the_shared_object(tmp_path: Path) -> None:
    """The C file compiled, the object beside it, and code that CasADi generates around it, agree."""
    robot, request = RobotChoice(str(DATA / "two_link.urdf")), ExportRequest(0, what=["inverse_dynamics"])
    paths, name = export_casadi(robot, request, tmp_path), "two_link_inverse_dynamics_0"
    assert [path.name for path in paths] == [f"{name}.c", f"{name}.so"]
    flags = ("-std=c99", "-O0", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
    compiled = compiled_by(CC, flags, [paths[0]], tmp_path / "compiled.so", "-lm")
    ours, theirs = (ca.external(name, str(path)) for path in (paths[1], compiled))
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 3))
    weights = np.ones(2)
    for get in (
        lambda f: f(q),
        lambda f: f.jacobian()(q, 0),
        lambda f: f.forward(1)(q, 0, q),
        lambda f: f.reverse(1).jacobian()(q, 0, weights, 0)[0],
    ):
        right = np.array(get(theirs))
        np.testing.assert_allclose(np.array(get(ours)), right, rtol=0, atol=1e-13 * np.abs(right).max())
    assert ours.jacobian().sparsity_out(0) == theirs.jacobian().sparsity_out(0)


def test_what_is_not_offered_says_so() -> None:
    robot = panda()
    assert_refused(
        (lambda: function(robot, "regressor"),
         "there is no 'regressor' for other libraries; choose one of inverse_"),
        (lambda: function(robot, order=-1), "the order must be 0 or a positive integer, found -1"),
        (lambda: function(Robot.load(share.find("config", "palletiser.yaml"))),
         "has couplings or loops, whose positions are found by iteration"),
        (lambda: function(robot, "com", frames=[0]), "com has no frames; leave them out"),
        (lambda: function(robot, name="1x"), "the name '1x' cannot start a C function"),
        (lambda: function(robot, samples=0), "samples must be a positive whole number, found 0"),
    )  # fmt: skip
