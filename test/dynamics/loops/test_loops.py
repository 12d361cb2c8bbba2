"""Robots with couplings and loops, against references of many digits and virtual work, and their calls."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from conditioning import SLACK, largest, moved_by_rounding
from linkages import joined, motion_of, moved_away, readable_solution, robot_of, whole_efforts
from oracles import mp_loops
from oracles.mechanisms import FEW, MECHANISMS, Z, ankle, four_bar, planar_3rrr, rssr
from oracles.motions import Base
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, Constraints, Coupling, Robot
from hodyn_ros.array import Array
from hodyn_ros.dynamics.loops import closing
from hodyn_ros.errors import ConvergenceError, ModelError, SingularError

# the bodies of these take longer at many digits; the 6-UPS is held against the platforms of the package
HIGHEST = {"ankle": 4, "ankle with rods": 2, "palletiser": 4, "cylinder and slider": 4}
QUICK = {"four-bar": 6, "RSSR": 4, "coupled linkage": 4, "slider-crank": 4, "ankle with rods": 1}
FRAMES = 8.0  # roundings of where a body is in the frame of the one before, beside one of a radian
EXACT = [name for name in MECHANISMS if name != "6-UPS"]


@pytest.mark.thorough
class TestExactReferences:
    @pytest.mark.parametrize("name", some(EXACT, *(name for name in EXACT if name not in FEW[2:-1])))
    def test_efforts_of_every_order(self, name: str) -> None:
        """Up to high ones; the table of operations has the lower ones of the mechanisms left out here."""
        order = HIGHEST.get(name, 6) if THOROUGH else QUICK.get(name, 2)
        mechanism = MECHANISMS[name]()
        y, base = motion_of(mechanism, order)

        def efforts(y: Array) -> Array:
            found = robot_of(mechanism).inverse_dynamics(y, base)
            return np.concatenate(found, axis=1) if isinstance(found, tuple) else found

        given = None if base is None else Base(base.pose, base.twists, "spatial")
        exact = mp_loops.efforts(mechanism, y, order, given)
        # efforts may pass through zero, where only what they are made of says how many digits there are
        sizes = np.maximum(np.abs(y), np.eye(len(y), 1))  # loops are closed to a rounding of a radian
        moved = FRAMES * SLACK * moved_by_rounding(efforts, y, sizes=sizes)
        assert (largest(efforts(y) - exact) < np.maximum(1e-12 * largest(exact), moved)).all()


@pytest.mark.thorough
class TestVirtualWork:
    def test_wrenches_on_any_body(self) -> None:
        mechanism = four_bar()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 0)
        load = AppliedWrench(1, [0.3, -0.2, 0.5, 1.0, -2.0, 0.7])
        change = robot.inverse_dynamics(y, wrenches=[load])[0] - robot.inverse_dynamics(y)[0]
        moved = robot.forward_kinematics(y)
        assert change * y[1] == pytest.approx(-moved.twists[0, 1] @ load.values[0], rel=1e-12)


class TestLoads:
    def test_overconstrained_loops_are_named(self) -> None:
        assert robot_of(four_bar()).overconstrained_loops == ("loop1",)
        assert robot_of(rssr()).overconstrained_loops == ()

    def test_preload_is_what_redundant_drives_come_near(self) -> None:
        mechanism = planar_3rrr(True)
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 2)
        plain, tense = robot.solve_loops(y), robot.solve_loops(y, preload=[1.0, 2.0, 3.0])
        change = tense.efforts - plain.efforts
        assert np.abs(change[0]).max() > 0.1
        # inner tension does no work, and is no other than what is left of the preload
        assert change[0] @ plain.drives[1] == pytest.approx(0.0, abs=1e-12)
        assert change[0] @ (change[0] - [1.0, 2.0, 3.0]) == pytest.approx(0.0, abs=1e-12)


class TestBranches:
    def test_long_ways_stay_on_the_branch(self) -> None:
        robot = robot_of(four_bar())
        there = robot.solve_loops(np.array([[2.5], [0.0], [0.0]])).joints[0]
        for q in np.linspace(2.5, 0.0, 40):
            back = robot.solve_loops(np.array([[q], [0.0], [0.0]])).joints[0]
        assert np.abs(back).max() < 1e-12
        for q in np.linspace(0.0, 2.5, 40):
            again = robot.solve_loops(np.array([[q], [0.0], [0.0]])).joints[0]
        np.testing.assert_allclose(again, there, atol=1e-12)

    def test_singular_homes_are_refused_as_such(self) -> None:
        tree = four_bar().tree
        couplings = [Coupling("joint2", "joint1", polynomial=[0.0, 0.0, 1.0])]
        with pytest.raises(ModelError):
            constraints = Constraints(couplings=couplings, coordinates=["joint2", "joint3"])
            Robot.from_screws(**tree.arguments(), constraints=constraints)

    def test_that_there_is_no_place_is_known_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From where a step fails shorter ones go on; the way to there is not gone again."""
        tried, close = [], closing.close
        monkeypatch.setattr(closing, "close", lambda *given: tried.append(1) or close(*given))
        robot = robot_of(rssr())
        with pytest.raises(ConvergenceError):
            robot.inverse_dynamics(np.array([[3.0], [0.0], [0.0]]))
        assert 0 < len(tried) < 30

    def test_what_fails_leaves_the_robot_where_it_was(self) -> None:
        mechanism = rssr()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 0)
        before = robot.inverse_dynamics(y)
        with pytest.raises(ConvergenceError):
            robot.inverse_dynamics(np.array([[3.0], [0.0], [0.0]]))
        np.testing.assert_allclose(robot.inverse_dynamics(y), before, rtol=1e-12)
        robot.reset()
        np.testing.assert_allclose(robot.inverse_dynamics(y), before, rtol=1e-12)

    def test_flat_parallelograms_are_singular_and_passed(self) -> None:
        b = _parallelogram()
        q = np.zeros((3, 1))
        q[0] = -np.pi / 2
        with pytest.raises(SingularError):
            b.inverse_dynamics(q)
        q[0] = -2.5
        assert b.solve_loops(q).joints[0, 2] == pytest.approx(-2.5)


class TestCalls:
    def test_names_and_shapes(self) -> None:
        robot = robot_of(ankle())
        assert robot.coordinates == robot.joint_names == ("joint1", "joint2")
        assert robot.driven_joints == ("joint3", "joint4")
        assert robot_of(planar_3rrr()).coordinates == ("body7.rz", "body7.x", "body7.y")

    @pytest.mark.parametrize("name", ["ankle", "planar 3-RRR", "mimic chain"])
    def test_calls_of_any_form_agree_before_and_after_the_first(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 2)
        q = y if y.shape[1] else None
        expected = whole_efforts(readable_solution(robot_of(mechanism), q, base))
        for _ in range(2):
            np.testing.assert_allclose(joined(robot.inverse_dynamics(q, base)), expected, rtol=1e-10)
            if base is not None:
                turned = joined(robot.inverse_dynamics(q, base.in_representation("body_fixed")))
                np.testing.assert_allclose(turned, expected, rtol=1e-9, atol=1e-9)
            if q is None:
                continue
            np.testing.assert_allclose(joined(robot.inverse_dynamics(q.tolist(), base)), expected, rtol=1e-10)
            shorter = joined(robot.inverse_dynamics(q[:-1], base))
            np.testing.assert_allclose(shorter, expected[:-1], rtol=1e-10)

    def test_copies_and_batches(self) -> None:
        mechanism = four_bar()
        robot = robot_of(mechanism)
        stacks = np.array([motion_of(mechanism, 1, seed)[0] for seed in range(3)])
        found = pickle.loads(pickle.dumps(robot)).inverse_dynamics(stacks)
        assert found.shape == (3, 2, 1)
        np.testing.assert_allclose(found[2], robot.inverse_dynamics(stacks[2]), rtol=1e-12)


def _parallelogram() -> Robot:
    mechanism = four_bar()
    points = np.array([[0, 0, 0], [0, 0.2, 0], [0.5, 0, 0]], dtype=float)
    screws = np.array([[0, 0, 1, *np.cross(p, Z)] for p in points])
    placements = np.tile(np.eye(4), (3, 1, 1))
    placements[:, :3, 3] = points
    tree = replace(mechanism.tree, screws=screws, placements=placements)
    loop = replace(mechanism.loops[0], point=np.array([0.5, 0.2, 0.0]))
    return robot_of(replace(mechanism, tree=tree, loops=(loop,)))


def test_a_base_that_is_described_far_away_moves_mass() -> None:
    """A kilometre away it was refused: turned about the world's origin, it moved farther than any joint."""
    q, base = motion_of(ankle(), 0)
    away = np.array([600.0, -800.0, 10.0])
    assert base is not None
    pose, twists = base.pose.copy(), base.twists.copy()
    pose[:3, 3] += away
    twists[:, 3:] -= np.cross(twists[:, :3], away)
    here = robot_of(ankle()).inverse_dynamics(q, base)
    there = robot_of(moved_away(ankle(), away)).inverse_dynamics(q, BaseMotion(pose, twists))
    np.testing.assert_allclose(there.joints, here.joints, rtol=0, atol=1e-9 * np.abs(here.joints).max())
