"""Near singular poses: what inverse kinematics answers is as accurate as it says, or it does not answer.

Exact twists of known joint motions, at 40 digits, from `oracles.mp_dynamics`, then rounded as a user's are.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from case_robots import six_joint_arm
from oracles import mp_dynamics as mp
from oracles.motions import random_stack
from refusals import refused

from hodyn_ros import SingularError
from hodyn_ros.array import Array
from hodyn_ros.dynamics.kinematics.rate_solver import ACCURACY

ORDER = 4


ARM = six_joint_arm()
STRETCHED = -np.pi / 2  # of joint 3


def exact_motion(q: Array) -> tuple[Array, Array]:
    """Return pose and spatial twists of the last body at 40 digits, rounded once."""
    model = ARM.model
    tree = SimpleNamespace(
        parents=model.parents, screws=model.screws, placements=model.placements, floating_base=False
    )
    motion = mp.kinematics(tree, mp.taylor(mp.exact(q), len(q) + 1)).poses[-1]  # type: ignore[arg-type]
    twists = mp.to_float(mp.derivatives(mp.twists_of(motion, "spatial")))[: len(q) - 1]
    return np.vstack([mp.to_float(motion[0]), [0.0, 0.0, 0.0, 1.0]]), twists


def shares(found: Array, q: Array) -> Array:
    """Return what of every derivative is wrong, measured by how fast the motion is."""
    orders = np.arange(1, len(q))
    rate = np.max(np.abs(q[1:]).max(axis=1) ** (1.0 / orders))
    return np.asarray(np.abs(found - q)[1:].max(axis=1) / rate**orders)


def near(distance: float, seed: int) -> tuple[Array, Array]:
    """Return a joint motion this far [rad] from a singular pose, and where the search starts."""
    q = random_stack(seed, ORDER + 1, 6)
    q[0] = [0.3, -0.6, 0.9, 0.4, 1.1, 0.2]
    q[0, 4 if seed % 2 else 2] = distance + (0.0 if seed % 2 else STRETCHED)
    return q, q[0] + 0.05 * distance * random_stack(seed + 1000, 1, 6)[0]


@pytest.mark.parametrize("distance", [0.3, 0.03, 0.01, 1e-3, 1e-4, 3e-5])
def test_an_answer_is_as_accurate_as_stated(distance: float) -> None:
    answered = 0
    for seed in range(2):
        q, start = near(distance, seed)
        pose, twists = exact_motion(q)
        for order in range(1, ORDER + 1):
            try:
                found = ARM.inverse_kinematics(pose, twists[:order], seed=start)
            except SingularError as error:
                assert error.condition > 100.0
                continue
            answered += 1
            assert shares(found, q[: order + 1]).max() < ACCURACY, (seed, order)
    assert distance < 0.1 or answered == 2 * ORDER


def test_the_jounce_that_was_wrong_by_far_is_refused() -> None:
    q, start = near(1.42e-4, 1)
    pose, twists = exact_motion(q)
    words = "condition number 6. ... e+04 ... : in derivative ... of the joint motion a share of ... 1e-06 is"
    rejected = refused(lambda: ARM.inverse_kinematics(pose, twists, seed=start), words, SingularError)
    assert 6e4 < rejected.condition < 7e4
    fewer = ARM.inverse_kinematics(pose, twists[:1], seed=start)
    assert shares(fewer, q[:2]).max() < ACCURACY


def test_what_is_asked_for_decides() -> None:
    """At one pose velocities are answered, then accelerations are not: the bound grows with the order."""
    q, start = near(1e-3, 1)
    pose, twists = exact_motion(q)
    most = []
    for order in range(1, ORDER + 1):
        try:
            ARM.inverse_kinematics(pose, twists[:order], seed=start)
        except SingularError as error:
            assert f"ask for derivatives up to {most[-1]}" in str(error)
            break
        most.append(order)
    assert most and most[-1] < ORDER
    assert np.array_equal(
        ARM.inverse_kinematics(pose, np.zeros((ORDER, 6)), seed=start)[1:], np.zeros((4, 6))
    )
