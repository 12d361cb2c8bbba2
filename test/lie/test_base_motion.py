"""Motions of bases between world and body: what is compiled of arrays is what NumPy computes of lists."""

from collections.abc import Callable

import numpy as np
import pytest
from conditioning import SLACK, largest, moved_by_rounding
from refusals import refused

from hodyn_ros import BaseMotion, OverflowingError
from hodyn_ros.array import Array
from hodyn_ros.lie.motion import (
    pose_derivatives,
    twists_to_body,
    twists_to_world,
    wrenches_to_body,
    wrenches_to_world,
)
from hodyn_ros.lie.se3 import exp

CONVERSIONS: dict[Callable[..., Array], int] = {
    pose_derivatives: 1,
    twists_to_body: 1,
    twists_to_world: 1,
    wrenches_to_body: 2,
    wrenches_to_world: 2,
}


def close(found: Array, expected: Array) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("convert", CONVERSIONS, ids=lambda convert: convert.__name__)
@pytest.mark.parametrize("orders", [1, 2, 5, 17])
def test_arrays_and_lists(convert: Callable[..., Array], orders: int) -> None:
    rng = np.random.default_rng(orders)
    for batch in ((), (3,), (70,)):
        pose = exp(rng.standard_normal((*batch, 6)))
        stacks = [rng.standard_normal((orders, *batch, 6)) for _ in range(CONVERSIONS[convert])]
        close(convert(pose, *stacks), convert(pose, *[list(stack) for stack in stacks]))


@pytest.mark.parametrize("batch", [(), (3,)], ids=["one", "batch"])
def test_a_pose_alone(batch: tuple[int, ...]) -> None:
    pose = exp(np.random.default_rng(4).standard_normal((*batch, 6)))
    base = BaseMotion(pose, np.zeros((*batch, 0, 6)))
    body = base.in_representation("body_fixed")
    assert body.representation == "body_fixed" and body.twists.shape == (*batch, 0, 6)
    assert body.pose is base.pose


@pytest.mark.parametrize("batch", [(), (70,)], ids=["one", "batch"])
def test_there_and_back(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    base = BaseMotion(exp(rng.standard_normal((*batch, 6))), rng.standard_normal((*batch, 4, 6)))
    body = base.in_representation("body_fixed")
    assert body.representation == "body_fixed" and body.batch == batch
    assert not body.twists.flags.writeable
    there_and_back = body.in_representation("spatial").twists

    def back(twists: Array) -> Array:
        found = BaseMotion(body.pose, twists, representation="body_fixed").in_representation("spatial").twists
        return found.reshape(-1, 4, 6)

    bound = 2.0 * SLACK * moved_by_rounding(back, body.twists)
    assert (largest(there_and_back.reshape(-1, 4, 6) - base.twists.reshape(-1, 4, 6)) <= bound).all()
    close(body.pose_derivatives(), base.pose_derivatives())
    wrenches = rng.standard_normal((*batch, 3, 6))
    found = base.wrenches_in_body(wrenches)
    assert found.shape == wrenches.shape
    if batch:
        close(found[7], base.one(7).wrenches_in_body(wrenches[7]))
        close(body.twists[7], base.one(7).in_representation("body_fixed").twists)


def test_what_overflows_is_said() -> None:
    rng = np.random.default_rng(4)
    pose = exp(rng.standard_normal(6))
    base = BaseMotion(pose, 1e300 * np.ones((3, 6)))
    refused(lambda: base.in_representation("body_fixed"), "too large", OverflowingError)
