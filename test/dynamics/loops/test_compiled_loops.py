"""Compiled calls of robots with loops agree with readable ones: efforts, accelerations, redundant drives."""

from dataclasses import replace

import numpy as np
import pytest
from linkages import motion_of, orders_of, readable_solution, robot_of, shipped, whole_efforts
from oracles.cases import relative_errors
from oracles.mechanisms import MECHANISMS, four_bar
from refusals import not_finite, refused
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, Constraints, Coupling, Robot
from hodyn_ros.array import Array
from hodyn_ros.engine.kernels import fits_straight_line
from hodyn_ros.engine.loops.loop_kernel import compiles
from hodyn_ros.lie.leibniz import product_derivative


@pytest.mark.thorough
class TestCompiled:
    """The compiled way agrees with the readable one."""

    @pytest.mark.parametrize(
        ("name", "order"), some([("RSSR", 9), ("ankle", 9), ("planar 3-RRR", 8)], ("RSSR", 9))
    )
    def test_around_the_generic_code_of_long_recursions(self, name: str, order: int) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, order)
        closure = robot.closure
        assert closure is not None and compiles(closure, order)
        assert not fits_straight_line(closure.tree, order)
        found = robot.inverse_dynamics(y, base)
        efforts = found[1] if isinstance(found, tuple) else found
        assert relative_errors(efforts, readable_solution(robot, y, base).efforts).max() < 1e-10

    def test_each_call_goes_on_from_the_one_before(self) -> None:
        robot = robot_of(four_bar())
        call, y = robot.compile(0), np.zeros((3, 1))
        there = []
        for q in np.linspace(0.0, 2.5, 200):
            y[0] = q
            there.append(call(y)[0, 0])
        jumped = robot_of(four_bar())
        assert jumped.inverse_dynamics(y)[0, 0] == pytest.approx(there[-1], rel=1e-12)
        np.testing.assert_allclose(robot.solve_loops(y).joints, jumped.solve_loops(y).joints, atol=1e-12)


@pytest.mark.thorough
class TestCompiledAccelerations:
    """Forward dynamics and matrices in code agree with those of NumPy."""

    @pytest.mark.parametrize(
        "name", some(MECHANISMS, "RSSR", "coupled linkage", "flying cam", "hinged 3-RRR", "planar 3-RRR")
    )
    def test_accelerations_under_drives_wrenches_and_a_push(self, name: str) -> None:
        mechanism, order = MECHANISMS[name](), min(orders_of(name)[-1], 2)
        robot = robot_of(mechanism)
        closure, rng = robot.closure, np.random.default_rng(4)
        assert closure is not None
        y, base = motion_of(mechanism, order, seed=3)
        wrenches = [
            AppliedWrench(1, rng.normal(size=(order + 1, 6)), representation="body_fixed"),
            AppliedWrench(mechanism.tree.n_bodies - 1, rng.normal(size=(order + 1, 6))),
        ]
        efforts = rng.normal(size=(order + 1, closure.n_efforts))
        if base is None:
            found, moving = robot.forward_dynamics(y[:2], efforts, wrenches=wrenches), None
        else:
            push = {"base_wrench": efforts[:, :6]} if closure.base_prescribed else {}
            drives = efforts[:, 6:] if closure.base_prescribed else efforts
            start = BaseMotion(base.pose, base.twists[:1])
            moved, found = robot.forward_dynamics(y[:2], drives, start, wrenches=wrenches, **push)
            moving = BaseMotion(base.pose, np.concatenate([base.twists[:1], moved]))
        self.check_motion(robot, np.concatenate([y[:2], found]), moving, wrenches, efforts)

    @staticmethod
    def check_motion(
        robot: Robot, y: Array, base: BaseMotion | None, wrenches: list[AppliedWrench], efforts: Array
    ) -> None:
        """Hold the efforts that the readable formulation finds from a motion against those that made it."""
        again = whole_efforts(readable_solution(robot, y, base, wrenches))
        closure = robot.closure
        assert closure is not None
        if closure.n_efforts <= closure.n_coordinates:
            assert relative_errors(again, efforts).max() < 1e-9
            return
        short = None if base is None else BaseMotion(base.pose, base.twists[: len(efforts)])
        of_drives = np.swapaxes(robot.drive_jacobian(y[: len(efforts) + 1], short), 1, 2)
        for k in range(len(efforts)):  # others do the same to the coordinates
            done, right = (product_derivative(of_drives, u, k) for u in (again, efforts))
            assert np.abs(done - right).max() < 1e-9 * np.abs(right).max()

    @pytest.mark.parametrize(
        "name", some(["planar_3rrr.yaml", "gough_stewart_6ups.yaml"], "planar_3rrr.yaml")
    )
    def test_platforms_on_limbs_under_wrenches(self, name: str) -> None:
        robot, rng, order = shipped(name), np.random.default_rng(5), 2
        looped, pose = robot._need_loops("this"), robot.home[1]
        assert looped.platform is not None and pose is not None
        twist = rng.normal(size=(1, 6)) * (looped.platform.model.dof.any(axis=1))
        given = BaseMotion(pose, twist).in_representation("spatial")
        force = rng.normal(size=(order + 1, 6)) * (0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
        wrenches = [
            AppliedWrench(0, force, representation="body_fixed"),
            AppliedWrench(robot.tree.n_bodies - 1, rng.normal(size=(order + 1, 6))),
        ]
        efforts = rng.normal(size=(order + 1, len(looped.closure.driven)))
        moved, _ = robot.forward_dynamics(None, efforts, given, wrenches=wrenches)
        moving = BaseMotion(pose, np.concatenate([given.twists[:1], moved]))
        self.check_motion(robot, np.zeros((order + 3, 0)), moving, wrenches, efforts)

    def test_calls_with_a_base_go_on_with_their_code(self) -> None:
        mechanism = MECHANISMS["ankle"]()
        robot, other = robot_of(mechanism), robot_of(mechanism)
        y, base = motion_of(mechanism, 1)
        assert base is not None
        rng = np.random.default_rng(1)
        efforts, push = rng.normal(size=(2, 2)), rng.normal(size=(2, 6))
        first = robot.forward_dynamics(y[:2], efforts, base, push)
        for _ in range(2):
            again = robot.forward_dynamics(y[:2], efforts, base, push)
            np.testing.assert_allclose(again[0], first[0], rtol=1e-12)
            np.testing.assert_allclose(again[1], first[1], rtol=1e-12)
        free = robot.forward_dynamics(y[:2], efforts, base)
        zero = other.forward_dynamics(y[:2], efforts, base, np.zeros((2, 6)))
        np.testing.assert_allclose(free.base, zero.base, rtol=1e-12)
        turned = robot.forward_dynamics(y[:2], efforts, base.in_representation("body_fixed"), push)
        np.testing.assert_allclose(turned.joints, first.joints, rtol=1e-10)
        refused(
            lambda: robot.forward_dynamics(y[:2], efforts * np.nan, base, push), not_finite("the efforts")
        )


@pytest.mark.thorough
class TestRedundantDrives:
    """The compiled way agrees with the readable one, near singular poses as well, and leaves those to it."""

    CASES = {
        "hinged 3-RRR": (0, 2, 4),
        "planar 3-RRR": (0, 1, 2, 4),
        "6-UPS": (*MECHANISMS["6-UPS"]().driven, 5),
        "mimic chain": (0, 1, 2, 5),
        "palletiser": (0, 1, 4, 7, 8),
        "cylinder and slider": (0, 1, 2, 5, 6, 7),
    }

    @pytest.mark.parametrize("name", some(CASES, "hinged 3-RRR", "planar 3-RRR", "palletiser"))
    @pytest.mark.parametrize("preloaded", [False, True])
    def test_efforts_of_least_norm_or_nearest_to_a_preload(self, name: str, preloaded: bool) -> None:
        mechanism = replace(MECHANISMS[name](), driven=self.CASES[name])
        slow, fast = robot_of(mechanism), robot_of(mechanism)
        whole, moving = motion_of(mechanism, 6)
        every = range(7) if THOROUGH else (4,) if preloaded else (0, 2, 6)
        for order in every if name == "hinged 3-RRR" else orders_of(name)[-1:]:
            y, base = whole[: order + 3], None
            if moving is not None:
                base = BaseMotion(moving.pose, moving.twists[: order + 2])
            rng = np.random.default_rng(order)
            preload = 10.0 * rng.normal(size=(order + 1, len(mechanism.driven))) if preloaded else None
            wrenches = [AppliedWrench(1, rng.normal(size=(order + 1, 6)))]
            expected = readable_solution(slow, y, base, wrenches, preload).efforts
            found = fast.inverse_dynamics(y, base, wrenches, preload=preload)
            assert relative_errors(found, expected).max() < 1e-12
            state = fast.drive_state(y, base, wrenches, preload=preload)
            assert relative_errors(state.efforts, expected).max() < 1e-12
            assert not state.near_singularity

    def test_one_of_drives_that_pull_at_one_joint_is_as_good_as_the_other(self) -> None:
        tree = MECHANISMS["mimic chain"]().tree
        couplings = [Coupling("joint2", "joint1")]
        robot = Robot.from_screws(
            **tree.arguments(),
            constraints=Constraints(
                couplings=couplings,
                coordinates=["joint1", "joint3", "joint4", "joint5", "joint6"],
                driven=[f"joint{i + 1}" for i in range(6)],
            ),
        )
        y = np.random.default_rng(0).normal(size=(4, 5))
        efforts = robot.inverse_dynamics(y)
        np.testing.assert_allclose(efforts[:, 0], efforts[:, 1], rtol=1e-12)
        pressed = robot.inverse_dynamics(y, preload=[4.0, -2.0, 0.0, 0.0, 0.0, 0.0])
        np.testing.assert_allclose(pressed - efforts, [[3.0, -3.0, 0, 0, 0, 0], [0.0] * 6], atol=1e-12)
