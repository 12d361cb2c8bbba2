"""Functions of PyTorch: the numbers of the kernels, exact derivatives by autograd and torch.func, batches."""

from __future__ import annotations

import numpy as np
import pytest
from case_robots import panda
from oracles.random_trees import random_tree
from refusals import assert_refused

from hodyn_ros import Robot
from hodyn_ros.array import Array

torch = pytest.importorskip("torch", reason="torch is not installed")
from hodyn_ros.interop.torch import function  # noqa: E402


def small() -> Robot:
    return Robot.from_screws(**random_tree(4, 3).arguments())


def motions(*shape: int) -> Array:
    return np.random.default_rng(0).uniform(-1.0, 1.0, shape)


def close(found: object, expected: Array, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_inverse_dynamics_of_an_arm_with_all_derivatives() -> None:
    robot, numbers = small(), motions(3, 3)
    torque, weights = function(robot), torch.tensor(np.random.default_rng(1).normal(size=(1, 3)))
    q = torch.tensor(numbers, requires_grad=True)
    close(torque(q).detach(), robot.inverse_dynamics(numbers), 0.0)
    first = robot.inverse_dynamics_derivatives(numbers)[0].transpose(1, 0, 2)[None]

    def total(q: object) -> object:
        return (torque(q) * weights).sum()

    (slope,) = torch.autograd.grad(total(q), q, create_graph=True)
    close(slope.detach(), np.einsum("ri,rikj->kj", weights.numpy(), first))
    expected = robot.inverse_dynamics_hessian(numbers, weights.numpy()).transpose(0, 2, 1, 3)
    still = q.detach()
    close(torch.autograd.functional.hessian(total, still), expected)
    close(torch.func.hessian(total)(still), expected)
    close(torch.func.jacrev(torch.func.grad(total))(still), expected)
    close(torch.func.jacfwd(torque)(still), first)
    close(torch.func.jacrev(torque)(still), first)


def test_batches_are_those_of_the_kernels_along_any_axes() -> None:
    robot, numbers = panda(), motions(33, 3, 7)
    torque, right = function(robot), robot.compile_batch(0)(numbers)
    q = torch.tensor(numbers)
    close(torque(q), right, 0.0)
    close(torch.vmap(torque)(q), right, 0.0)
    close(torch.vmap(torque, in_dims=1)(q.movedim(0, 1)), right, 0.0)
    close(torque(q.reshape(3, 11, 3, 7)), right.reshape(3, 11, 1, 7), 0.0)
    slopes = torch.vmap(torch.func.grad(lambda one: torque(one).sum()))(q)
    close(slopes, robot.inverse_dynamics_derivatives(numbers)[:, 0].sum(axis=-2))
    assert torque(q[:0]).shape == (0, 1, 7)
    single = torque(q.float())
    assert single.dtype == torch.float32
    close(single, right, 1e-6)


def test_compiled_modules_keep_the_call() -> None:
    torque = function(small())
    compiled = torch.compile(lambda q: torque(q).sin().sum(), backend="aot_eager")
    q = torch.tensor(motions(3, 3), requires_grad=True)
    value = compiled(q)
    close(value.detach(), torque(q).sin().sum().detach().numpy(), 1e-15)
    value.backward()
    (right,) = torch.autograd.grad(torque(q).sin().sum(), q)
    close(q.grad, right.numpy(), 1e-14)


@pytest.mark.parametrize("floating", [False, True])
def test_several_arguments_have_derivatives_each(floating: bool) -> None:
    """First and second ones, by PyTorch's own check with differences."""
    robot = Robot.from_screws(**random_tree(3, 3 - floating, floating_base=floating).arguments())
    n, rng = robot.n_coordinates, np.random.default_rng(2)
    shapes = [(2, n), (1, n), *([(4, 4), (1, 6), (1, 6)] if floating else [])]
    arrays = [np.eye(4) if shape == (4, 4) else rng.uniform(-1.0, 1.0, shape) for shape in shapes]
    call = function(robot, "forward_dynamics")
    given = [torch.tensor(array, requires_grad=True) for array in arrays]
    close(call(*given).detach(), robot.compile(0, "forward_dynamics")(*arrays), 1e-14)
    assert torch.autograd.gradcheck(call, given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(call, given)


def test_what_cannot_be_says_so() -> None:
    torque = function(panda())
    assert_refused(
        (lambda: torque(torch.zeros(2, 7)), "inverse_dynamics takes q (3, 7); found [(2, 7)]", TypeError),
        (lambda: torque(torch.full((3, 7), torch.nan, dtype=torch.float64)), "NaN or infinite"),
    )
