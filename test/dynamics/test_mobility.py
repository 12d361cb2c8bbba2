"""Robots and poses at which torques do not determine accelerations are rejected; light ones are not."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles import mp_dynamics as mp
from oracles.hybrid_problems import Answer, HybridProblem, errors_in_roundings
from oracles.random_trees import Tree, random_pose, random_tree
from refusals import refused

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.array import Array
from hodyn_ros.errors import InputError, ModelError

Vector = Sequence[float]

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
ORIGIN = (0.0, 0.0, 0.0)


def revolute(axis: Vector, point: Vector = ORIGIN, pitch: float = 0.0) -> Array:
    e = np.array(axis) / np.linalg.norm(axis)
    return np.concatenate([e, np.cross(point, e) + pitch * e])


def prismatic(axis: Vector) -> Array:
    return np.concatenate([np.zeros(3), np.array(axis) / np.linalg.norm(axis)])


def chain(screws: Sequence[Array], massless: Sequence[int], parents: Sequence[int] | None = None) -> Tree:
    """Return a robot of these joints with 2 kg on every body but the `massless` ones."""
    n = len(screws)
    heavy = np.array([body not in massless for body in range(n)], dtype=float)
    return Tree(
        parents=tuple(range(-1, n - 1)) if parents is None else tuple(parents),
        screws=np.array(screws),
        placements=np.tile(np.eye(4), (n, 1, 1)),
        masses=2.0 * heavy,
        coms=np.tile([0.1, -0.05, 0.2], (n, 1)),
        inertias=heavy[:, None, None] * np.diag([0.1, 0.2, 0.25]),
        gravity=np.array([0.0, 0.0, -9.81]),
        floating_base=False,
    )


SINGULAR = {
    "two joints on one axis": (chain([revolute(X), revolute(Z), revolute(Z, (0, 0, 2))], [1]), (2, 3)),
    "two slides along one axis": (chain([prismatic(X), prismatic(X)], [0]), (1, 2)),
    "four axes through a point": (chain([revolute(a) for a in (X, Z, X, Z, X)], [1, 2, 3]), (2, 3, 4, 5)),
    "four joints in a plane": (chain([revolute(Y, p) for p in (ORIGIN, X, (1, 0, 1), (3, 0, 2))], [0, 1, 2]),
        (1, 2, 3, 4)),
    "a screw beside its turn and slide": (
        chain([revolute(Z), revolute(Z, pitch=0.1), prismatic(Z), revolute(X)], [0, 1]), (1, 2, 3)),
    "seven joints without mass between": (
        chain([revolute(*np.random.default_rng(i).normal(size=(2, 3))) for i in range(7)], list(range(6))),
        tuple(range(1, 8))),
    "one axis for a body and both that it carries": (
        chain([revolute(Z), revolute(Z), revolute(Z), revolute(X)], [0], parents=[-1, 0, 0, 2]), (1, 2, 3)),
}  # fmt: skip


class TestRobotsSingularEverywhere:
    @pytest.mark.parametrize("name", SINGULAR)
    def test_joints_and_bodies_are_named(self, name: str) -> None:
        tree, joints = SINGULAR[name]
        names = [f"joint{joint}" for joint in joints]
        said = str(refused(lambda: Robot.from_screws(**tree.arguments()), str(names), ModelError))
        assert all(f"'body{body + 1}'" in said for body in np.flatnonzero(tree.masses == 0.0))

    @pytest.mark.parametrize("name", SINGULAR)
    @pytest.mark.parametrize("reach", [0.0, 1000.0])
    def test_wherever_the_world_frame_is(self, name: str, reach: float) -> None:
        tree, _ = SINGULAR[name]
        with pytest.raises(ModelError):
            Robot.from_screws(**tree.moved(random_pose(np.random.default_rng(1), reach)).arguments())

    def test_a_mass_lost_in_rounding_is_none(self) -> None:
        tree, _ = SINGULAR["two joints on one axis"]
        tree = replace(tree, masses=tree.masses.copy(), inertias=tree.inertias.copy())
        tree.masses[1], tree.inertias[1] = 1e-17, 1e-18 * np.eye(3)
        refused(lambda: Robot.from_screws(**tree.arguments()), "'joint2', 'joint3'", ModelError)


class TestRobotsThatMove:
    @pytest.mark.parametrize(
        "tree",
        [
            chain([revolute(X), revolute(Z), revolute(Z, (1e-4, 0, 0))], [1]),
            chain([revolute(Z), prismatic(Z)], [0]),
            chain([revolute(Z), revolute(Z, pitch=0.01)], [0]),
            chain([revolute(a) for a in (X, Y, Z)], [0, 1]),
            chain([prismatic(a) for a in (X, Y, Z)], [0, 1]),
            chain([prismatic(X), prismatic(Y), revolute(Z, (1, 1, 1))], [0, 1]),
            chain([revolute(Y, p) for p in (ORIGIN, X, (1, 0, 1))], [0, 1]),
            chain([revolute(*np.random.default_rng(i).normal(size=(2, 3))) for i in range(5)], range(4)),
            chain([revolute(Z), revolute(Z, X), revolute(Z, Y)], [0], parents=[-1, 0, 0]),
        ],
        ids=["offset", "cylindric", "screw", "universal", "gantry", "planar", "elbow", "five", "branches"],
    )
    @pytest.mark.parametrize("reach", [0.0, 100.0])
    def test_bodies_without_mass_are_no_fault_by_themselves(self, tree: Tree, reach: float) -> None:
        moved = tree.moved(random_pose(np.random.default_rng(3), reach))
        state = np.random.default_rng(4).uniform(0.3, 1.0, (2, tree.n_joints))
        torques = np.ones((1, tree.n_joints))
        found = Robot.from_screws(**moved.arguments()).forward_dynamics(state, torques)
        problem = HybridProblem(moved, state, torques, np.ones(tree.n_joints, dtype=bool))
        assert errors_in_roundings(problem, Answer(found, None)).max() <= 100.0

    @pytest.mark.parametrize("factor", [1e-6, 1e-12])
    def test_a_light_wrist_is_not_one_without_mass(self, factor: float) -> None:
        tree, _ = SINGULAR["two joints on one axis"]
        tree = replace(tree, masses=tree.masses.copy(), inertias=tree.inertias.copy())
        tree.masses[1], tree.inertias[1] = factor, factor * np.diag([0.1, 0.2, 0.25])
        robot = Robot.from_screws(**tree.arguments())
        torques = np.array([[0.0, factor, 0.0]])
        found = robot.forward_dynamics(np.zeros((2, 3)), torques)
        back = robot.inverse_dynamics(np.vstack([np.zeros((2, 3)), found]))
        np.testing.assert_allclose(back, torques, rtol=0, atol=1e-15)

    @pytest.mark.parametrize("n_bodies", [1, 1000])
    @pytest.mark.parametrize("floating_base", [False, True])
    def test_random_trees_are_taken(self, n_bodies: int, floating_base: bool) -> None:
        tree = random_tree(n_bodies, n_bodies, floating_base=floating_base)
        assert Robot.from_screws(**tree.arguments()).n_joints == n_bodies - floating_base

    def test_every_other_body_without_mass(self) -> None:
        tree = random_tree(5, 101, branching=0.0)
        tree.masses[1::2], tree.inertias[1::2] = 0.0, 0.0
        assert Robot.from_screws(**tree.arguments()).n_joints == 101


class TestPosesSingularByThemselves:
    """Three turns about z, x, z through a point: where the second is zero, the outer ones turn alike."""

    wrist = chain([revolute(a) for a in (Z, X, Z)], [0, 1])

    @pytest.mark.parametrize("second", [0.0, np.pi, 1e-12, -np.pi])
    def test_the_joints_are_named(self, second: float) -> None:
        robot = Robot.from_screws(**self.wrist.arguments())
        call = partial(robot.forward_dynamics, [[0.4, second, -0.3], [0.0] * 3], [[1.0, 2.0, 3.0]])
        refused(call, "'joint1', 'joint3' ... 'body1', 'body2'")

    def test_a_pose_beside_it_is_taken(self) -> None:
        robot = Robot.from_screws(**self.wrist.arguments())
        state, torques = np.array([[0.4, 1e-3, -0.3], [0.0] * 3]), np.array([[1.0, 2.0, 3.0]])
        expected = mp.to_float(mp.forward_dynamics(self.wrist, state, torques).joints)
        np.testing.assert_allclose(robot.forward_dynamics(state, torques), expected, rtol=1e-8)

    @pytest.mark.parametrize("held", [0, 2])
    def test_holding_one_of_the_joints_mends_it(self, held: int) -> None:
        robot = Robot.from_screws(**self.wrist.arguments())
        state, given = np.array([[0.4, 0.0, -0.3], [0.1, 0.2, 0.3]]), np.array([[1.0, 2.0, 3.0]])
        free = np.array([joint != held for joint in range(3)])
        exact, efforts = mp.hybrid_dynamics(self.wrist, state, free, given, given)
        expected = np.where(free, mp.to_float(exact.joints), mp.to_float(efforts.torques))
        np.testing.assert_allclose(
            robot.hybrid_dynamics(state, given, prescribed=[held]), expected, rtol=1e-12
        )
        with pytest.raises(InputError):
            robot.hybrid_dynamics(state, given, prescribed=[1])

    def test_on_a_floating_base(self) -> None:
        arguments = self.wrist.arguments()
        arguments["parents"] = (-1, 0, 1, 2)
        for name in ("screws", "placements", "coms"):
            arguments[name] = np.concatenate([arguments[name][:1], arguments[name]])
        arguments["masses"], arguments["inertias"] = np.array([1.0, 0.0, 0.0, 1.0]), np.zeros((4, 3, 3))
        arguments["inertias"][[0, 3]] = np.eye(3)
        robot = Robot.from_screws(**{**arguments, "floating_base": True})
        base = BaseMotion(np.eye(4), np.zeros((1, 6)))
        with pytest.raises(InputError, match=r"pose is singular.*'joint1', 'joint3'.*'body2', 'body3'"):
            robot.forward_dynamics(np.zeros((2, 3)), np.ones((1, 3)), base)

    @pytest.mark.parametrize("order", [0, 2])
    @pytest.mark.parametrize(
        "what", ["forward_dynamics", "forward_dynamics_derivatives", "forward_dynamics_hessian"]
    )
    def test_compiled_functions_look_as_well(self, order: int, what: str) -> None:
        """They returned up to 1e70 there."""
        robot, rng = Robot.from_screws(**self.wrist.arguments()), np.random.default_rng(0)
        states, torques = rng.uniform(0.3, 1.0, (9, 2, 3)), rng.uniform(-1.0, 1.0, (9, order + 1, 3))
        further = [rng.uniform(-1.0, 1.0, (9, order + 1, 3))] if what.endswith("hessian") else []
        one, many = robot.compile(order, what), robot.compile_batch(order, what)
        arrays = [states, torques, *further]
        expected = many(*arrays)
        states[6, 0, 1] = 1e-5
        assert np.isfinite(one(*(array[6] for array in arrays))).all()
        for second in (0.0, 1e-9, np.pi):
            states[6, 0, 1] = second
            with pytest.raises(InputError, match=r"pose is singular.*'joint1', 'joint3'"):
                one(*(array[6] for array in arrays))
            with pytest.raises(InputError, match=r"sample 6: the pose is singular"):
                many(*arrays)
            np.testing.assert_allclose(
                one(*(array[5] for array in arrays)), expected[5], rtol=1e-9, atol=1e-9
            )

    def test_numbers_of_four_bytes_are_lost_earlier(self) -> None:
        robot, rng = Robot.from_screws(**self.wrist.arguments()), np.random.default_rng(0)
        states = rng.uniform(0.3, 1.0, (9, 2, 3)).astype(np.float32)
        torques = np.ones((9, 1, 3), dtype=np.float32)
        call = robot.compile_batch(0, "forward_dynamics", dtype=np.float32)
        assert np.isfinite(call(states, torques)).all()
        states[6, 0, 1] = 1e-3
        with pytest.raises(InputError, match="sample 6: .* too close to a singular one"):
            call(states, torques)

    def test_in_a_tree_that_is_computed_in_loops(self) -> None:
        arguments = random_tree(5, 60).arguments()
        wrist = self.wrist.arguments()
        arguments["parents"] = (*arguments["parents"], 59, 60, 61)
        for name in ("screws", "placements", "masses", "coms", "inertias"):
            arguments[name] = np.concatenate([arguments[name], wrist[name]])
        robot, rng = Robot.from_screws(**arguments), np.random.default_rng(0)
        states, torques = rng.uniform(0.3, 1.0, (3, 2, 63)), rng.uniform(-1.0, 1.0, (3, 1, 63))
        one, many = robot.compile(0, "forward_dynamics"), robot.compile_batch(0, "forward_dynamics")
        np.testing.assert_array_equal(many(states, torques)[1], one(states[1], torques[1]))
        states[1, 0, 61] = 0.0
        with pytest.raises(InputError, match=r"pose is singular.*'joint61', 'joint63'"):
            one(states[1], torques[1])
        with pytest.raises(InputError, match="sample 1: the pose is singular"):
            many(states, torques)

    def test_inverse_dynamics_does_not_mind(self) -> None:
        robot = Robot.from_screws(**self.wrist.arguments())
        q = np.array([[0.4, 0.0, -0.3], [0.1, 0.2, 0.3], [1.0, 2.0, 3.0]])
        expected = mp.to_float(mp.inverse_dynamics(self.wrist, q).torques)
        np.testing.assert_allclose(robot.inverse_dynamics(q), expected, rtol=1e-12)
