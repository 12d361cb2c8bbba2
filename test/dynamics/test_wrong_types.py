"""Arguments of the wrong kind are rejected by name, not by what NumPy or Python trips over later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles.random_trees import random_tree

from hodyn_ros import AppliedWrench, BaseMotion, Robot
from hodyn_ros.errors import InputError

Q = np.ones((3, 3))
BASE = BaseMotion(np.eye(4), np.zeros((2, 6)))


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_screws(**random_tree(1, 3).arguments())


@pytest.fixture(scope="module")
def flyer() -> Robot:
    return Robot.from_screws(**random_tree(2, 4, floating_base=True).arguments())


@pytest.mark.parametrize(
    "formulation",
    ["", "Spatial", [], ["spatial"], ("spatial",), {}, b"spatial", 0, True, np.array(["spatial"])],
)
def test_a_formulation(robot: Robot, formulation: Any) -> None:
    with pytest.raises(InputError, match=r"no formulation .*; choose one of \['body_fixed', .*'spatial'\]"):
        robot.inverse_dynamics(Q, formulation=formulation)


@pytest.mark.parametrize("formulation", [None, "spatial"])
@pytest.mark.parametrize("base", [(np.eye(4), np.zeros((2, 6))), np.eye(4), [], "base", 0, False])
def test_a_base(robot: Robot, flyer: Robot, base: Any, formulation: str | None) -> None:
    for each in (robot, flyer):
        with pytest.raises(InputError, match=f"base must be a BaseMotion, found {type(base).__name__}"):
            each.inverse_dynamics(Q, base, formulation=formulation)


@pytest.mark.parametrize("formulation", [None, "spatial"])
@pytest.mark.parametrize(
    ("wrenches", "words"),
    [
        (np.zeros(6), "list of AppliedWrench, found ndarray"),
        ([np.zeros(6)], "list of AppliedWrench, found ndarray in it"),
        ([None], "list of AppliedWrench, found NoneType in it"),
        ({"body1": np.zeros(6)}, "list of AppliedWrench, found dict"),
        ((wrench for wrench in ()), "list of AppliedWrench, found generator"),
        (3, "list of AppliedWrench, found int"),
        (False, "list of AppliedWrench, found bool"),
        ("body1", "list of AppliedWrench, found str"),
        ([AppliedWrench(True, np.zeros(6))], r"no body True; the model has \['body1'"),
        ([AppliedWrench(1.0, np.zeros(6))], "no body 1.0"),  # type: ignore[arg-type]
        ([AppliedWrench([1], np.zeros(6))], r"no body \[1\]"),  # type: ignore[arg-type]
        ([AppliedWrench(b"body1", np.zeros(6))], "no body b'body1'"),  # type: ignore[arg-type]
    ],
)
def test_wrenches(robot: Robot, wrenches: Any, words: str, formulation: str | None) -> None:
    with pytest.raises(InputError, match=words):
        robot.inverse_dynamics(Q, wrenches=wrenches, formulation=formulation)


def test_a_single_wrench_needs_no_list(robot: Robot) -> None:
    wrench = AppliedWrench("body2", np.ones(6))
    np.testing.assert_array_equal(
        robot.inverse_dynamics(Q, wrenches=wrench),  # type: ignore[arg-type]
        robot.inverse_dynamics(Q, wrenches=(wrench,)),
    )


@pytest.mark.parametrize(
    "frame", [None, 0, b"spatial", ["spatial"], np.array(["spatial", "body_fixed"]), "World"]
)
def test_a_frame(frame: Any) -> None:
    with pytest.raises(InputError, match=r"representation must be one of \['spatial', 'body_fixed'\], found"):
        BaseMotion(np.eye(4), np.zeros((2, 6)), representation=frame)
    with pytest.raises(InputError, match=r"representation must be one of \['spatial', 'body_fixed'\], found"):
        AppliedWrench(0, np.zeros(6), representation=frame)


@pytest.mark.parametrize("values", [np.zeros(6) + 1j, ["a"] * 6, {}, object()])
def test_numbers_of_a_wrench_or_twist(values: Any) -> None:
    with pytest.raises(InputError, match="wrench on body 'hand' must be real numbers"):
        AppliedWrench("hand", values)
    with pytest.raises(InputError, match="base twists must be real numbers"):
        BaseMotion(np.eye(4), values)


@pytest.mark.parametrize("order", [True, None, "2", 2.0, -1, np.array(2), [2]])
def test_an_order(robot: Robot, order: Any) -> None:
    with pytest.raises(InputError, match="the order must be 0 or a positive integer, found"):
        robot.compile(order)


class TestOrdersOutOfReach:
    """Samples laid where derivatives belong would ask for an enormous order, and for all memory there is."""

    def test_of_a_motion(self, robot: Robot) -> None:
        with pytest.raises(InputError, match=r"\(100000, 3\) has order 99997.*30.*\(N, order \+ 3, n\)"):
            robot.inverse_dynamics(np.zeros((100000, 3)))
        with pytest.raises(InputError, match=r"\(1, 1000, 3\) has order 997"):
            robot.inverse_dynamics(np.zeros((1, 1000, 3)), formulation="spatial")

    def test_of_torques(self, robot: Robot) -> None:
        with pytest.raises(InputError, match=r"\(1000, 3\) have order 999.*30"):
            robot.forward_dynamics(np.zeros((2, 3)), np.zeros((1000, 3)))
        with pytest.raises(InputError, match=r"\(1000, 3\) have order 999.*30"):
            robot.hybrid_dynamics(np.zeros((2, 3)), np.zeros((1000, 3)), prescribed=[0])

    def test_of_a_compiled_function(self, robot: Robot) -> None:
        with pytest.raises(InputError, match=r"order is 1000000000.*30"):
            robot.compile(10**9)


@pytest.mark.parametrize("formulation", [None, "spatial", "body_fixed", "hybrid", "closed_form"])
def test_numbers_whose_torques_overflow(robot: Robot, flyer: Robot, formulation: str | None) -> None:
    large = np.full((3, 3), 1e200)
    for q in (large, np.stack([Q, large])):
        with pytest.raises(InputError, match="overflow"):
            robot.inverse_dynamics(q, formulation=formulation)
        with pytest.raises(InputError, match="overflow"):
            flyer.inverse_dynamics(q, BASE, formulation=formulation)


@pytest.mark.parametrize("call", ["inverse_dynamics", "forward_kinematics", "mass_matrix", "gravity_torque"])
def test_no_motion_at_all(robot: Robot, flyer: Robot, call: str) -> None:
    for each in (robot, flyer):
        with pytest.raises(InputError, match="the motion is None; give an array of shape"):
            getattr(each, call)(None)
