"""Everything that moves and holds a robot with loops, compiled, against its readable form."""

from dataclasses import replace

import numpy as np
import pytest
from linkages import motion_of, readable_solution, robot_of, shipped
from oracles.mechanisms import FEW, MECHANISMS, ankle, four_bar, planar_3rrr
from oracles.motions import random_stack
from sweeps import some

from hodyn_ros import AppliedWrench, BaseMotion, ConvergenceError
from hodyn_ros.dynamics.loops.looped_efforts import LoopSolution

pytestmark = pytest.mark.thorough


def compare(found: LoopSolution, expected: LoopSolution) -> None:
    """Compare two solutions, each part with the largest number of its order."""
    largest = [np.abs(load).max(axis=1) for load in expected.loads.values()]
    loads = np.max([*largest, np.abs(expected.efforts).max(axis=1)], axis=0)  # some vanish but for rounding
    pairs = [
        (found.joints, expected.joints, None),
        (found.drives, expected.drives, None),
        (found.efforts, expected.efforts, None),
        *((found.loads[name], expected.loads[name], loads) for name in expected.loads),
    ]
    assert list(found.loads) == list(expected.loads)
    assert (found.base is None) == (expected.base is None)
    assert (found.base_wrench is None) == (expected.base_wrench is None)
    if found.base is not None and expected.base is not None:
        np.testing.assert_allclose(found.base.pose, expected.base.pose, rtol=0.0, atol=1e-13)
        pairs.append((found.base.twists, expected.base.twists, None))
    if found.base_wrench is not None and expected.base_wrench is not None:
        pairs.append((found.base_wrench, expected.base_wrench, None))
    for a, b, sizes in pairs:
        assert a.shape == b.shape and a.flags.c_contiguous
        size = np.abs(b).max(axis=1) if sizes is None else sizes
        assert (np.abs(a - b).max(axis=1) <= 1e-11 * size).all()
    assert found.motion_margin == pytest.approx(expected.motion_margin, rel=1e-11)
    assert found.drive_margin == pytest.approx(expected.drive_margin, rel=1e-11)


@pytest.mark.parametrize("name", some(MECHANISMS, *FEW[1:-1], "ankle with rods"))
@pytest.mark.parametrize("loaded", some([False, True], True))
def test_as_the_readable_form(name: str, loaded: bool) -> None:
    mechanism = MECHANISMS[name]()
    robot, order = robot_of(mechanism), 2
    y, base = motion_of(mechanism, order)
    rng = np.random.default_rng(1)
    wrenches = []
    if loaded:
        wrenches = [
            AppliedWrench(0, rng.normal(size=(order + 1, 6)), representation="body_fixed"),
            AppliedWrench(robot.tree.n_bodies - 1, rng.normal(size=(1, 6))),
        ]
    robot.solve_loops(y, base, wrenches)  # rods that may spin stay there from now on
    expected = readable_solution(robot, y, base, wrenches)
    after = robot.positions
    compare(robot.solve_loops(y, base, wrenches), expected)
    assert robot.positions is not None
    np.testing.assert_allclose(robot.positions, after, rtol=0.0, atol=1e-12)


def test_redundant_drives_and_their_preload() -> None:
    mechanism = planar_3rrr(True)
    robot = robot_of(mechanism)
    y, base = motion_of(mechanism, 2)
    preload = np.random.default_rng(2).normal(size=(3, len(mechanism.driven)))
    for given in (None, preload):
        expected = readable_solution(robot, y, base, (), given)
        robot.reset()
        compare(robot.solve_loops(y, base, preload=given), expected)


def test_cutting_a_loop_seen_from_a_moving_body_and_pushing_with_its_load_changes_nothing() -> None:
    """The loops of the ankle begin at the shank, which the joints before it move."""
    mechanism = ankle()
    robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 4)
    one = robot.solve_loops(y, base)
    joints = tuple(range(mechanism.tree.n_joints))
    cut = robot_of(replace(mechanism, loops=(), joints=joints, driven=joints))
    wrenches = []
    for name, loop in zip(("loop1", "loop2"), mechanism.loops):
        wrenches += [AppliedWrench(loop.b, one.loads[name]), AppliedWrench(loop.a, -one.loads[name])]
    _, efforts = cut.inverse_dynamics(one.joints, base, wrenches)
    held = np.zeros_like(efforts)
    held[:, list(mechanism.driven)] = one.efforts
    assert (np.abs(efforts - held).max(axis=1) <= 1e-11 * np.abs(one.efforts).max(axis=1)).all()


@pytest.mark.parametrize("turns", [20, 1000])
def test_a_crank_that_has_turned_is_where_it_was(turns: int) -> None:
    """A thousand turns away is refused until it is said where the joints are, and is no other branch."""
    mechanism, whole = four_bar(), 2.0 * np.pi * turns
    robot, (q, _) = robot_of(mechanism), motion_of(mechanism, 2, 1)
    expected = robot.inverse_dynamics(q)
    near = robot.positions
    assert near is not None
    turned = q.copy()
    turned[0] += whole
    if turns > 100:
        with pytest.raises(ConvergenceError):
            robot.inverse_dynamics(turned)
        robot.reset(near + whole * np.array([1.0, -1.0, 0.0]))  # the coupler's joint turns back
    found = robot.inverse_dynamics(turned)
    errors = robot.accuracy("inverse_dynamics", turned).errors[0]
    assert (np.abs(found - expected).max(axis=1) <= 10.0 * errors).all()


@pytest.mark.parametrize("loaded", [False, True])
def test_loads_in_directions_in_which_a_platform_cannot_move(loaded: bool) -> None:
    robot = shipped("planar_3rrr.yaml")
    pose = robot.home[1]
    assert pose is not None
    pose, order = pose.copy(), 3
    pose[:2, 3] += (0.02, -0.01)
    twists = 0.2 * random_stack(7, order + 2, 6)
    twists[:, [0, 1, 2, 5]] = 0.0
    base = BaseMotion(pose, twists)
    wrenches = []
    if loaded:  # but for turns about the hinge, which nothing holds
        of_limb = random_stack(8, order + 1, 6)
        on_platform = random_stack(9, order + 1, 6) * (1.0, 1.0, 0.0, 1.0, 1.0, 1.0)
        wrenches = [
            AppliedWrench(robot.tree.n_bodies - 1, of_limb),
            AppliedWrench(0, on_platform, representation="body_fixed"),
        ]
    expected = readable_solution(robot, None, base, wrenches)
    robot.reset()
    one = robot.solve_loops(None, base, wrenches)
    compare(one, expected)
    if not loaded:
        weight = sum(robot.tree.masses) * 9.81  # carried upwards by the loops to the ground
        held = sum(load[0, 5] for load in one.loads.values())
        assert abs(held) == pytest.approx(weight, rel=1e-9)


class TestLeftToTheReadableForm:
    def test_far_poses_and_errors(self) -> None:
        robot = robot_of(four_bar())
        q = np.array([[0.1], [1.0], [0.5]])
        robot.solve_loops(q)
        before = robot.positions
        far = q + np.array([[1.4], [0.0], [0.0]])
        expected = readable_solution(robot, far)
        robot.reset(before)
        compare(robot.solve_loops(far), expected)
        led = robot_of(four_bar(), coordinates=["joint3"])
        for values, error in (([[2.5]], ConvergenceError), ([[np.nan]], ValueError)):
            before = led.positions
            with pytest.raises(error):
                led.solve_loops(np.concatenate([values, np.zeros((2, 1))]))
            np.testing.assert_array_equal(led.positions, before)
