"""What follows from matrices of robots with loops: momentum, what is linear in parameters, and partials."""

import numpy as np
import pytest
from linkages import motion_of, robot_of, shipped
from oracles.mechanisms import MECHANISMS
from oracles.motions import random_stack
from refusals import refused
from sweeps import THOROUGH, some

from hodyn_ros import BaseMotion, Constraints, Coupling, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.loops import grounded
from hodyn_ros.dynamics.operations import PRODUCTS, RATES
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import exp

pytestmark = pytest.mark.thorough

DRIFTS = "planar 3-RRR"  # the rest of its platform's twist follows from the rows, and is refused here
NAMES = ["RSSR", "flying cam", "planar_3rrr"]


class Case:
    """A robot in motion: coordinates, base or platform, and the rates of all coordinates by order."""

    def __init__(self, name: str, robot: Robot | None = None) -> None:
        self.order = order = 2 if name == "flying cam" else 1
        if name in MECHANISMS:
            self.robot = robot_of(MECHANISMS[name]())
            y, self.base = motion_of(MECHANISMS[name](), order)
            self.q: Array | None = y[: order + 2]
            self.rates = y[1 : order + 3]
            if self.base is not None:
                self.rates = np.hstack(
                    [self.base.in_representation("body_fixed").twists[: order + 2], self.rates]
                )
            return
        self.robot, self.q = robot or shipped(f"{name}.yaml"), None
        directions, pose = self.directions, self.robot.home[1]
        assert pose is not None
        self.rates = 0.5 * random_stack(5, order + 2, directions.shape[1])
        self.base = BaseMotion(
            pose @ exp(directions[:, 0] * 0.05), self.rates @ directions.T, representation="body_fixed"
        )

    @property
    def directions(self) -> Array:
        assert self.robot.closure is not None
        return self.robot.closure.directions

    def motion(self, order: int) -> tuple[Array | None, BaseMotion | None]:
        """Return the motion up to derivative `order`."""
        base = self.base
        if base is not None:
            base = BaseMotion(base.pose, base.twists[:order], representation=base.representation)
        return None if self.q is None else self.q[: order + 1], base


def close(found: Array, expected: Array) -> None:
    scale = np.abs(expected).max(axis=tuple(range(1, expected.ndim)), keepdims=True)
    assert (np.abs(found - expected) <= 1e-11 * np.maximum(scale, 1e-6 * scale.max())).all()


@pytest.mark.parametrize(("name", "compiled"), [*((name, False) for name in NAMES), ("planar_3rrr", True)])
def test_matrices_change_as_their_derivatives_say(
    name: str, compiled: bool, with_numbers: pytest.MonkeyPatch
) -> None:
    if compiled:
        with_numbers.undo()
    case = Case(name)
    robot, rates, order = case.robot, case.rates, case.order
    of = robot.matrix_derivatives(*case.motion(order + 1))
    mass, coriolis, gravity = robot.dynamic_matrices(*case.motion(order + 1))

    def along(changes: Array, speeds: Array, order: int) -> Array:
        return product_derivative(changes, speeds, order, lambda change, w: np.tensordot(w, change, 1))

    for k in range(order):
        close(along(of.mass_by_position, rates, k)[None], mass[k + 1][None])
        close(along(of.gravity_by_position, rates, k)[None], gravity[k + 1][None])
        bent = along(of.coriolis_by_position, rates, k) + along(of.coriolis_by_velocity, rates[1:], k)
        close(bent[None], coriolis[k + 1][None])


@pytest.mark.parametrize("name", some([n for n in MECHANISMS if n != DRIFTS], "flying cam", "hinged 3-RRR"))
def test_derivatives_computed_with_numbers_are_those_of_compiled_code(
    name: str, with_numbers: pytest.MonkeyPatch
) -> None:
    mechanism = MECHANISMS[name]()
    robot, plain = robot_of(mechanism), robot_of(mechanism)
    order = 0 if name == "6-UPS" or not THOROUGH else 1  # else it would be too long
    y, base = motion_of(mechanism, order)
    if base is not None:
        base = BaseMotion(base.pose, base.twists[: order + 1], representation=base.representation)
    expected = vars(plain.matrix_derivatives(y[: order + 2], base)).values()
    with_numbers.undo()
    found = vars(robot.matrix_derivatives(y[: order + 2], base)).values()
    assert not robot._need_loops("this").partial_call("matrices", order).code.on_numbers
    for a, b in zip(found, expected, strict=True):
        close(a, b)


def test_a_platform_whose_twist_follows_in_part_is_refused() -> None:
    mechanism = MECHANISMS[DRIFTS]()
    y, base = motion_of(mechanism, 0)
    assert base is not None
    robot, still = robot_of(mechanism), BaseMotion(base.pose, base.twists[:1])
    refused(lambda: robot.matrix_derivatives(y[:2], still), "matrix_derivatives takes no such platform")


def test_large_matrices_can_be_compiled_all_the_same(with_numbers: pytest.MonkeyPatch) -> None:
    own = Robot.load(share.find("config", "planar_3rrr.yaml"))  # shares no compiled matrices
    case, again = Case("planar_3rrr", own), Case("planar_3rrr")
    looped = case.robot._need_loops("this")
    expected = case.robot.dynamic_matrices(*case.motion(1))
    with_numbers.undo()
    assert looped.product_call("dynamic_matrices", 0).code.on_numbers
    case.robot.compile_matrices(0)
    assert not looped.product_call("dynamic_matrices", 0).code.on_numbers
    for one in (case, again):
        for found, right in zip(one.robot.dynamic_matrices(*one.motion(1)), expected):
            close(found, right)


@pytest.mark.parametrize("name", some(MECHANISMS, "RSSR", "hinged 3-RRR"))
def test_products_computed_with_numbers_are_those_of_compiled_code(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, compiled = MECHANISMS[name](), 0
    robot, plain = robot_of(mechanism), robot_of(mechanism)
    looped = robot._need_loops("this")
    for order in some((0, 2), 2):
        y, base = motion_of(mechanism, order)
        body = robot.tree.body_names[-1]
        for call in sorted(PRODUCTS):
            others = (body, "body_fixed") if call == "jacobian" else ()
            rows = order + 1 + RATES[call]
            moved = BaseMotion(base.pose, base.twists[: max(rows - 1, 1)]) if base is not None else None
            if looped.product_call(call, order, *others).code.on_numbers:
                assert order or name == "6-UPS", call
                continue
            compiled += 1
            found = looped.computed(call, y[:rows], moved, *others)
            with monkeypatch.context() as without_code:
                without_code.setattr(grounded, "compiles", lambda *_, **__: False)
                expected = plain._need_loops("this").computed(call, y[:rows], moved, *others)
            assert plain._need_loops("this").product_call(call, order, *others).code.on_numbers
            assert found.shape == expected.shape, call
            sizes = np.abs(expected).reshape(order + 1, -1).max(axis=1)
            errors = np.abs(found - expected).reshape(order + 1, -1).max(axis=1)
            assert (errors <= np.maximum(1e-11 * sizes, 1e-13 * sizes.max())).all(), call
            batch = looped.computed(call, np.stack([y[:rows]] * 2), moved, *others)
            assert np.abs(batch - found).max() <= 1e-12 * sizes.max()
    assert compiled >= len(PRODUCTS)


def test_compiled_calls_go_far_in_small_steps() -> None:
    """Further than code goes at once, as that might change the branch."""
    robot = Robot.load(share.find("config", "palletiser.yaml"))
    home = robot.home[0]
    for what in ("mass_matrix", "coriolis_matrix", "jacobian"):
        rows = 2 if what == "coriolis_matrix" else 1
        q = np.zeros((rows, robot.n_coordinates))
        q[0] = home - np.array([0.05, 0.5, 0.5, 0.05])
        q[1:] = 0.3
        robot.reset()
        found = robot.compile(0, what)(q)
        robot.reset()
        expected = (
            robot.jacobian(q, body=robot.tree.body_names[-1])
            if what == "jacobian"
            else getattr(robot, what)(q)
        )
        np.testing.assert_allclose(found, expected[0], rtol=0.0, atol=1e-12 * np.abs(expected).max())


def test_robots_without_mass_have_no_centre_of_mass() -> None:
    """Hands whose URDF gives no masses, one finger of which follows the other; their efforts are zero."""
    hand = Robot.from_screws(
        [-1, -1],
        [[0, 0, 0, 0, 1, 0], [0, 0, 0, 0, -1, 0]],
        [np.eye(4)] * 2,
        masses=np.zeros(2),
        coms=np.zeros((2, 3)),
        inertias=np.zeros((2, 3, 3)),
        constraints=Constraints(couplings=[Coupling(1, 0)]),
    )
    q = np.ones((3, 1))
    for call in (hand.com, hand.com_jacobian, hand.centroidal_momentum, hand.centroidal_momentum_matrix):
        refused(lambda call=call: call(q), "no body of this robot has a mass")
    assert not hand.inverse_dynamics_hessian(q, np.ones((1, 1))).any()
