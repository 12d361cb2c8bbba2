"""Motors in compiled code: held against the same equations on numbers, which a batch of one sample takes."""

import copy
import pickle
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from drive_specs import DEFLECTIONS, PAIR, SPECS, TABLE, TABULATED
from oracles.motions import random_stack
from refusals import assert_refused, not_finite, refused

from hodyn_ros import MotorMotion, series_elastic
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.springs.hardening_spring import cubic_root
from hodyn_ros.actuation.springs.variable_stiffness import AgonistAntagonist
from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.errors import OverflowingError
from hodyn_ros.model.drive_spec import DriveSpec


def train_of(specs: list[DriveSpec]) -> DriveTrain:
    return DriveTrain(specs, [str(j) for j in range(len(specs))])


def sample(order: int, n: int, seed: int = 0) -> tuple[Array, Array]:
    return random_stack(seed, order + 3, n), 10.0 * random_stack(seed + 100, order + 1, n)


def in_numpy(train: DriveTrain, q: Array, torques: Array) -> MotorMotion:
    """Return the motors by NumPy, which takes the deflections that are given, or not known."""
    return train.feedforward(q, torques, deflection=np.full((*q.shape[:-2], train.n_joints), np.nan))


def hold(found: Any, exact: Any) -> None:
    for one, other in zip(found, exact, strict=True):
        assert one.shape == other.shape
        assert (np.abs(one - other) <= 1e-12 * np.abs(other).max(axis=-1, keepdims=True, initial=0.0)).all()


@pytest.mark.thorough
@pytest.mark.parametrize("order", range(7))
@pytest.mark.parametrize("kind", SPECS)
def test_every_kind_of_drive_is_compiled(kind: str, order: int) -> None:
    train = train_of(SPECS[kind])
    for seed in range(5):
        q, torques = sample(order, train.n_joints, seed)
        hold(train.feedforward(q, torques), in_numpy(train, q, torques))
    assert train._compiled(q, torques) is not None


@pytest.mark.parametrize("order", [0, 2, 4])
def test_batches_are_compiled(order: int) -> None:
    train = train_of(SPECS["mixed"])
    samples = [sample(order, train.n_joints, seed) for seed in range(6)]
    q, torques = (np.stack(stacks).reshape(2, 3, -1, train.n_joints) for stacks in zip(*samples, strict=True))
    found = train.feedforward(q, torques)
    hold(found, in_numpy(train, q, torques))
    assert train._compiled(q, torques) is not None
    for spread in (np.asfortranarray, lambda x: np.repeat(x, 2, axis=0)[::2]):
        hold(train.feedforward(spread(q), spread(torques)), found)
    torques[1, 1, 0, :] = 2.0 * TABLE[0][-1]
    refused(lambda: train.feedforward(q, torques), "joint '9': a torque of 2240 N·m lies beyond the spring")
    torques[1, 1, 0, 1] = np.nan
    refused(lambda: train.feedforward(q, torques), not_finite("torques", (4, 0, 1)))
    assert len(train.feedforward(q[:0], torques[:0]).position) == 0


@pytest.mark.parametrize("order", range(7))
@pytest.mark.parametrize("stiffness", [[900.0, np.inf, 500.0], [np.inf] * 3])
def test_series_elastic_drives_are_compiled(stiffness: list[float], order: int) -> None:
    drives = DriveTrain(series_elastic(stiffness, [0.4, 0.0, 0.1]))
    q, torques = sample(order, 3)
    motors = drives.feedforward(q, torques)
    elastic = np.isfinite(stiffness)
    assert motors.effort.shape == (max(0, order - 1) if elastic.any() else order + 1, 3)
    if len(motors.effort):
        deflection = torques[2] / stiffness if elastic.any() else 0.0
        expected = torques[0] + drives.motor_inertia * (q[2] + deflection)
        np.testing.assert_allclose(motors.effort[0], expected, rtol=1e-13)
    hold(drives.feedforward(q, torques), [x[0] for x in drives.feedforward(q[None], torques[None])])


def test_more_orders_of_motion_than_needed_change_nothing() -> None:
    train = train_of(SPECS["mixed"])
    q, torques = sample(4, train.n_joints)
    hold(train.feedforward(q, torques[:3]), train.feedforward(q[:5], torques[:3]))
    hold(train.feedforward(q.tolist(), torques.tolist()), train.feedforward(q, torques))
    hold(
        train.feedforward(q[:, ::-1], torques[:, ::-1]),
        train.feedforward(q[:, ::-1].copy(), torques[:, ::-1]),
    )


def test_copies_of_drives_compute_the_same() -> None:
    train, plain = train_of(SPECS["mixed"]), DriveTrain(series_elastic([900.0] * 13, 0.3))
    q, torques = sample(3, train.n_joints)
    for drives in (train, plain):
        exact = drives.feedforward(q, torques)
        for twin in (copy.deepcopy(drives), pickle.loads(pickle.dumps(drives))):
            hold(twin.feedforward(q, torques), exact)


def test_what_cannot_be_is_refused_as_before() -> None:
    train = train_of([TABULATED, PAIR])
    q, torques = sample(2, 2)
    slack, told = 500.0**2 / 360.0, "joint '1': a spring goes slack: a torque of 694.444 N·m"

    def by(change: tuple[int, float] | dict[str, Any]) -> MotorMotion:
        if isinstance(change, dict):
            return train.feedforward(**{"q": q, "torques": torques, **change})
        changed = torques.copy()
        changed[0, change[0]] = change[1]
        return train.feedforward(q, changed)

    for side in (1.0, -1.0):
        by((1, side * slack * (1.0 - 1e-12)))
    assert_refused(
        ((0, 1121.0), "joint '0': a torque of 1121 N·m lies beyond the spring table, -1120"),
        ((0, -1121.0), "joint '0': a torque of -1121 N·m lies beyond"),
        ((0, np.nan), not_finite("torques", (0, 0))),
        ((1, slack * (1.0 + 1e-12)), told),
        ((1, -slack * (1.0 + 1e-12)), told),
        ({"q": np.full((5, 2), np.inf)}, not_finite("link motion", (0, 0))),
        ({"q": np.zeros((4, 2))}, "torques of 3 orders need 5 orders of motion, found 4"),
        ({"q": np.zeros((5, 3))}, "must have shapes ... found (5, 3) and (3, 2)"),
        ({"torques": np.zeros(2)}, "must have shapes ... found (5, 2) and (2,)"),
        ({"q": np.zeros((5, 2), dtype=complex)}, "link motion must hold real numbers"),
        ({"stiffness": np.full((3, 2), -1.0)}, "joint '1': the commanded stiffness is -1 N·m/rad"),
        by=by,
    )
    heavy = train_of([DriveSpec(900.0, 4.0)])
    refused(lambda: heavy.feedforward(np.full((5, 1), 1e308), np.full((3, 1), 1e308)), "", OverflowingError)


def test_ends_of_a_table_belong_to_it() -> None:
    train = train_of([TABULATED])
    for torque, deflection in ((TABLE[0][0], -0.2), (TABLE[0][-1], 0.2), (TABLE[0][7], DEFLECTIONS[7])):
        motors = train.feedforward(np.zeros((5, 1)), np.array([[torque], [0.0], [0.0]]))
        assert motors.position[0, 0] == pytest.approx(deflection, rel=1e-13)
        beyond = np.array([[2.0 * TABLE[0][-1]], [0.0], [0.0]])
        refused(partial(train.feedforward, np.zeros((5, 1)), beyond), "beyond the spring table")


def test_the_deflection_of_a_hardening_spring_is_exact_to_rounding() -> None:
    """`y + y^3 = c` is solved by `2 / sqrt(3) sinh(asinh(sqrt(27) c / 2) / 3)`."""
    c = 10.0 ** np.linspace(-12.0, 18.0, 601)
    with mpmath.workdps(40):
        third = [mpmath.asinh(mpmath.sqrt(27) * mpmath.mpf(x) / 2) / 3 for x in c.tolist()]
        exact = np.array([float(2 / mpmath.sqrt(3) * mpmath.sinh(x)) for x in third])
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(cubic_root(sign * c, 1.0, 1.0), sign * exact, rtol=1e-15)
        np.testing.assert_allclose(
            cubic_root(sign * c * 200.0 * 0.5, 200.0, 800.0), sign * 0.5 * exact, rtol=1e-15
        )
    assert cubic_root(np.zeros(()), 1.0, 1.0) == 0.0


def test_a_slack_spring_holds_nothing_in_compiled_code() -> None:
    """Stretches above, at and below zero, to the last number; `loads` is what the simulator compiles."""
    pair = AgonistAntagonist(90.0)

    def trace(x: Any) -> Any:
        jet = np.array(x, dtype=object)
        loads = pair.loads(jet[:, 0], jet[:, 1:].T)
        return [[*loads.link, *loads.motors.ravel()]]

    function = Kernel(trace, [("x", (2, 3))]).function
    for first, second in (
        (0.4, -0.3),
        (0.0, 0.0),
        (-0.4, 0.3),
        (5e-324, -5e-324),
        (1e-9, 0.2),
        (-1e-9, -0.2),
    ):
        x = np.array([[0.0, first, second], [0.1, 2.0, -3.0]])
        loads = pair.loads(x[:, 0], x[:, 1:].T)
        assert np.all(loads.motors[:, 0] == [90.0 * max(first, 0.0) ** 2, -90.0 * max(-second, 0.0) ** 2])
        np.testing.assert_allclose(function(x)[0], [*loads.link, *loads.motors.ravel()], rtol=1e-15)
