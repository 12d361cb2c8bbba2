"""Functions of JAX: the numbers of the kernels, exact derivatives, batches of any axes, both precisions."""

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest
from case_robots import panda
from oracles.random_trees import random_tree
from refusals import refused

from hodyn_ros import InputError, Robot
from hodyn_ros.array import Array
from hodyn_ros.interop import robot_functions

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Import what takes a second here, and not in every worker that only reads the tests."""
    global function, jax, jnp
    import jax
    import jax.numpy as jnp

    from hodyn_ros.interop.jax import function


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def small() -> Robot:
    return Robot.from_screws(**random_tree(4, 3).arguments())


def motions(*shape: int) -> Array:
    return np.random.default_rng(0).uniform(-1.0, 1.0, shape)


def close(found: object, expected: Array, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.thorough
def test_inverse_dynamics_of_an_arm_with_all_derivatives() -> None:
    robot, q = small(), motions(3, 3)
    torque, weights = function(robot), np.random.default_rng(1).normal(size=(1, 3))
    close(torque(q), robot.inverse_dynamics(q), 0.0)
    close(jax.jit(torque)(q), robot.inverse_dynamics(q), 0.0)
    first = robot.inverse_dynamics_derivatives(q)[0].transpose(1, 0, 2)[None]
    close(jax.jacfwd(torque)(q), first)
    close(jax.jacrev(torque)(q), first)
    _, change = jax.jvp(torque, (q,), (np.ones((3, 3)),))
    close(change, first.sum(axis=(2, 3)))

    def total(q: object) -> object:
        return (torque(q) * weights).sum()

    close(jax.jit(jax.grad(total))(q), np.einsum("ri,rikj->kj", weights, first))
    expected = robot.inverse_dynamics_hessian(q, weights).transpose(0, 2, 1, 3)
    close(jax.jit(jax.hessian(total))(q), expected)
    close(jax.jacrev(jax.grad(total))(q), expected)


def test_batches_are_those_of_the_kernels_along_any_axes() -> None:
    robot = panda()
    torque, batch, q = function(robot), robot.compile_batch(0), motions(33, 3, 7)
    right = batch(q)
    close(torque(q), right, 0.0)
    close(jax.vmap(torque)(q), right, 0.0)
    close(jax.jit(jax.vmap(torque, in_axes=1))(np.moveaxis(q, 0, 1)), right, 0.0)
    close(jax.vmap(jax.vmap(torque))(q.reshape(3, 11, 3, 7)), right.reshape(3, 11, 1, 7), 0.0)
    slopes = jax.vmap(jax.grad(lambda one: torque(one).sum()))(q)
    close(slopes, robot.inverse_dynamics_derivatives(q)[:, 0].sum(axis=-2))
    single = torque(jnp.asarray(q, jnp.float32))
    assert single.dtype == jnp.float32
    close(single, right, 1e-6)


@pytest.mark.parametrize("floating", [False, True])
def test_several_arguments_have_derivatives_each(floating: bool) -> None:
    robot = Robot.from_screws(**random_tree(3, 3 - floating, floating_base=floating).arguments())
    n, rng = robot.n_coordinates, np.random.default_rng(2)
    arrays = [rng.uniform(-1.0, 1.0, (2, n)), rng.uniform(-1.0, 1.0, (1, n))]
    if floating:
        arrays += [np.eye(4), rng.uniform(-1.0, 1.0, (1, 6)), rng.uniform(-1.0, 1.0, (1, 6))]
    call, compiled = function(robot, "forward_dynamics"), robot.compile(0, "forward_dynamics")
    close(call(*arrays), compiled(*arrays), 1e-14)
    # torques of one motion for all states: axes in front are broadcast
    states = rng.uniform(-1.0, 1.0, (5, 2, n))
    many = jax.vmap(call, in_axes=(0, *[None] * (len(arrays) - 1)))(states, *arrays[1:])
    close(many[3], compiled(states[3], *arrays[1:]), 1e-13)
    blocks = jax.jacrev(call, argnums=tuple(range(len(arrays))))(*arrays)
    direction, step = [rng.normal(size=array.shape) for array in arrays], 1e-2

    def beside(s: int) -> Array:
        return np.asarray(compiled(*(x + s * step * d for x, d in zip(arrays, direction))))

    odd = [beside(i) - beside(-i) for i in (1, 2, 3)]
    change = (45.0 * odd[0] - 9.0 * odd[1] + odd[2]) / (60.0 * step)
    along = sum(np.tensordot(block, one, 2) for block, one in zip(blocks, direction))
    close(along, change, 1e-8)


def test_what_cannot_be_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    torque = function(panda())
    refused(lambda: torque(np.zeros((2, 7))), "inverse_dynamics takes q (3, 7); found [(2, 7)]", TypeError)
    assert np.isnan(np.asarray(torque(np.full((3, 7), np.nan)))).all(), "as other functions of JAX have it"
    monkeypatch.setattr(robot_functions, "_MOST_SECOND", 3000)
    with pytest.raises(
        InputError, match="inverse_dynamics has 3087 second derivatives, and 3000 are the most"
    ):
        jax.hessian(lambda q: torque(q).sum())(np.zeros((3, 7)))
