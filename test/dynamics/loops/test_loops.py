"""Robots with couplings and loops, against references of many digits, parallel robots and virtual work."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from math import factorial

import numpy as np
import pytest
from linkages import motion_of, readable_solution, robot_of, shipped
from numpy.typing import NDArray
from oracles import mp_loops, parallel_robots
from oracles.cases import relative_errors
from oracles.mechanisms import FEW, MECHANISMS, Closed, Z, ankle, four_bar, planar_3rrr, rssr
from oracles.motions import Base, random_stack
from oracles.random_trees import Tree
from scipy.interpolate import make_interp_spline
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, Constraints, Coupling, Loop, ParallelRobot, Robot, share
from hodyn_ros.dynamics.kinematics.forward_kinematics import forward_kinematics
from hodyn_ros.dynamics.loops.looped_efforts import LoopSolution
from hodyn_ros.engine.kernels import fits_straight_line
from hodyn_ros.engine.loops.loop_kernel import compiles
from hodyn_ros.errors import ConvergenceError, InputError, ModelError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import wrenches_to_body
from hodyn_ros.lie.se3 import ad, exp
from hodyn_ros.model.joint_function import JointFunction
from hodyn_ros.model.parallel.closure import model_of
from hodyn_ros.model.parallel.model import ParallelModel

Array = NDArray[np.float64]

# the bodies of these take longer at many digits; the 6-UPS is held against the platforms of the package
HIGHEST = {"ankle": 4, "ankle with rods": 2, "palletiser": 4, "cylinder and slider": 4}
QUICK = {"four-bar": 6, "RSSR": 4, "coupled linkage": 4, "slider-crank": 4, "ankle with rods": 1}
SHORT = (*list(QUICK)[:4], "ankle")  # code of any order compiles soon
SPINNING = ("RSSR", "ankle with rods")  # nothing holds the angle of a rod between two balls but its past
EXACT = [name for name in MECHANISMS if name != "6-UPS"]


def orders_of(name: str) -> tuple[int, ...]:
    """Return orders for which a mechanism is compiled, the highest last."""
    if name in ("6-UPS", "ankle with rods"):
        return (0, 1) if THOROUGH else (0,)
    return (0, 1, 3) if THOROUGH or name in SHORT else (1,)


@pytest.mark.thorough
class TestExactReferences:
    @pytest.mark.parametrize("name", EXACT)
    def test_efforts_of_every_order(self, name: str) -> None:
        order = HIGHEST.get(name, 6) if THOROUGH else QUICK.get(name, 2)
        mechanism = MECHANISMS[name]()
        y, base = motion_of(mechanism, order)
        found = robot_of(mechanism).inverse_dynamics(y, base)
        whole = np.concatenate(found, axis=1) if isinstance(found, tuple) else found
        given = None if base is None else Base(base.pose, base.twists, "spatial")
        exact = mp_loops.efforts(mechanism, y, order, given)
        assert relative_errors(whole, exact).max() < 1e-12

    def test_far_from_the_origin(self) -> None:
        # a kilometre costs the digits that the distance takes, and no more
        mechanism = rssr()
        shift = np.eye(4)
        shift[:3, 3] = (1000.0, -500.0, 200.0)
        far = replace(
            mechanism,
            tree=mechanism.tree.moved(shift),
            loops=tuple(replace(loop, point=loop.point + shift[:3, 3]) for loop in mechanism.loops),
        )
        y, _ = motion_of(mechanism, 4)
        here, there = (robot_of(m).inverse_dynamics(y) for m in (mechanism, far))
        assert relative_errors(there, here).max() < 1e-8


@pytest.mark.thorough
class TestVirtualWork:
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_power_of_drives_is_that_of_the_tree(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, base) = robot_of(mechanism), motion_of(MECHANISMS[name](), 1)
        one = robot.solve_loops(y, base)
        joints = tuple(range(mechanism.tree.n_joints))
        free = replace(
            mechanism, loops=(), joints=joints, driven=joints, couplings=(), platform=None, curves=()
        )
        tree = robot_of(free)
        efforts = tree.solve_loops(one.joints, one.base)
        power = np.sum(efforts.efforts[0] * one.joints[1])
        outside = np.sum(one.efforts[0] * one.drives[1])
        if efforts.base_wrench is not None and one.base is not None:
            power += efforts.base_wrench[0] @ one.base.twists[0]
            if one.base_wrench is not None:
                outside += one.base_wrench[0] @ one.base.twists[0]
        assert outside == pytest.approx(power, rel=1e-11, abs=1e-12)

    @pytest.mark.parametrize("name", some(MECHANISMS, *FEW))
    def test_forward_dynamics_undoes_inverse_dynamics(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        order = 3 if THOROUGH or name in SHORT else 1
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, order)
        one = robot.solve_loops(y, base)
        if base is None:
            found = robot.forward_dynamics(y[:2], one.efforts)
        else:
            wrench = {} if one.base_wrench is None else {"base_wrench": one.base_wrench}
            twists, found = robot.forward_dynamics(y[:2], one.efforts, base, **wrench)
            error = relative_errors(twists, base.twists[1:])
            assert error.max() < 1e-8
        if y.shape[1]:
            assert relative_errors(found, y[2:]).max() < 1e-8

    def test_wrenches_on_any_body(self) -> None:
        mechanism = four_bar()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 0)
        load = AppliedWrench(1, [0.3, -0.2, 0.5, 1.0, -2.0, 0.7])
        change = robot.inverse_dynamics(y, wrenches=[load])[0] - robot.inverse_dynamics(y)[0]
        moved = robot.forward_kinematics(y)
        assert change * y[1] == pytest.approx(-moved.twists[0, 1] @ load.values[0], rel=1e-12)


@pytest.mark.thorough
class TestCompiled:
    """The compiled way agrees with the readable one."""

    @pytest.mark.parametrize("name", MECHANISMS)
    def test_efforts_of_drives_and_base(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        for order in orders_of(name):
            fast, slow = robot_of(mechanism), robot_of(mechanism)
            y, base = motion_of(mechanism, order, seed=order)
            wrenches = [
                AppliedWrench(
                    1, np.arange(6.0 * order + 6).reshape(order + 1, 6), representation="body_fixed"
                ),
                AppliedWrench(mechanism.tree.n_bodies - 1, np.ones(6)),
            ]
            found = fast.inverse_dynamics(y, base, wrenches)
            one = readable_solution(slow, y, base, wrenches)
            efforts = found[1] if isinstance(found, tuple) else found
            assert relative_errors(efforts, one.efforts).max() < 1e-12
            if one.base_wrench is not None:
                assert relative_errors(found[0], one.base_wrench).max() < 1e-12

    @pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in SPINNING])
    def test_motion_of_all_joints_and_bodies(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        for order in orders_of(name):
            fast, slow = robot_of(mechanism), robot_of(mechanism)
            y, base = motion_of(mechanism, max(order - 2, 0), seed=order)
            y = y[: order + 1]
            if base is not None:
                base = BaseMotion(base.pose, base.twists[: max(order, 1)])
            looped = slow._looped
            assert looped is not None
            moved, _ = looped.begin(y, base)
            embedding.follow(looped.independence.rows, moved, y, base)
            expected = forward_kinematics(slow.tree, moved.joint_motion(), moved.base_motion)
            found = fast.forward_kinematics(y, base)
            for part in ("poses", "twists", "screws"):
                a, b = getattr(found, part), getattr(expected, part)
                assert np.abs(a - b).max(initial=0.0) < 1e-11 * max(np.abs(b).max(initial=0.0), 1.0)

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

    def test_calls_that_are_compiled_for_one_order(self) -> None:
        arm, platform = robot_of(rssr()), robot_of(planar_3rrr())
        y, _ = motion_of(rssr(), 2)
        out = np.empty((3, 1))
        assert arm.compile(2)(y, out=out) is out
        np.testing.assert_allclose(out, arm.inverse_dynamics(y), rtol=1e-12)
        _, base = motion_of(planar_3rrr(), 2)
        assert base is not None
        found = platform.compile(2)(base.pose, base.twists)
        np.testing.assert_allclose(found, platform.solve_loops(base=base).efforts, rtol=1e-11)
        with pytest.raises(InputError, match="expected 1 arrays .'the motion'., found 2"):
            arm.compile(2)(y, y)
        with pytest.raises(InputError, match="the motion must have"):
            arm.compile(2)(y[:4])

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

    @pytest.mark.parametrize("name", some(MECHANISMS, *FEW, "ankle", "6-UPS"))
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
            push = {"base_wrench": efforts[:, :6]} if closure.base_given else {}
            drives = efforts[:, 6:] if closure.base_given else efforts
            start = BaseMotion(base.pose, base.twists[:1])
            moved, found = robot.forward_dynamics(y[:2], drives, start, wrenches=wrenches, **push)
            moving = BaseMotion(base.pose, np.concatenate([base.twists[:1], moved]))
        self.check_motion(robot, np.concatenate([y[:2], found]), moving, wrenches, efforts)

    @staticmethod
    def check_motion(
        robot: Robot, y: Array, base: BaseMotion | None, wrenches: list[AppliedWrench], efforts: Array
    ) -> None:
        """Hold the efforts that the readable formulation finds from a motion against those that made it."""
        again = _whole(readable_solution(robot, y, base, wrenches))
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

    @pytest.mark.parametrize("name", ["planar_3rrr.yaml", "gough_stewart_6ups.yaml"])
    def test_platforms_on_limbs_under_wrenches(self, name: str) -> None:
        robot, rng, order = shipped(name), np.random.default_rng(5), 2
        looped, pose = robot._looped, robot.home[1]
        assert looped is not None and looped.platform is not None and pose is not None
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
        with pytest.raises(InputError, match="the efforts"):
            robot.forward_dynamics(y[:2], efforts * np.nan, base, push)

    @pytest.mark.parametrize("name", ["four-bar", "ankle", "planar 3-RRR"])
    def test_everything_that_is_compiled_for_one_order(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, other = robot_of(mechanism), robot_of(mechanism)
        y, base = motion_of(mechanism, 0)
        body = robot.tree.n_bodies - 1
        moving = [] if base is None else [base.pose, base.twists[:1]]
        for what in ("mass_matrix", "gravity_torque", "com"):
            found, expected = robot.compile(1, what)(y[:2], *moving), getattr(other, what)(y[:2], base)
            np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-10, atol=1e-10)
        found = robot.compile(0, "coriolis_matrix")(y[:2], *moving)
        np.testing.assert_allclose(found, other.coriolis_matrix(y[:2], base)[0], rtol=1e-10, atol=1e-10)
        for representation, frame in (
            ("hybrid", "hybrid"),
            ("spatial", "spatial"),
            ("body_fixed", "body_fixed"),
        ):
            found = robot.compile(1, "jacobian", [body], representation)(y[:2], *moving)
            expected = other.jacobian(y[:2], body=body, representation=frame, base=base)
            np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-10, atol=1e-10)
        found = robot.compile(1, "forward_kinematics", [body])(y[:2], *moving)
        poses = other.forward_kinematics(y[:2], base)
        np.testing.assert_allclose(found[0, :16].reshape(4, 4), poses.poses[body], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found[0, 16:], poses.twists[0, body], rtol=1e-10, atol=1e-10)
        one, out = robot.solve_loops(y, base), np.empty((1, y.shape[1] + (0 if base is None else 6)))
        push = [] if one.base_wrench is None else [one.base_wrench]
        assert robot.compile(0, "forward_dynamics")(y[:2], *moving, one.efforts, *push, out=out) is out
        np.testing.assert_allclose(out[:, out.shape[1] - y.shape[1] :], y[2:], rtol=1e-9, atol=1e-9)
        if base is not None:
            np.testing.assert_allclose(out[0, :6], base.twists[1], rtol=1e-9, atol=1e-9)
        with pytest.raises(InputError, match="must have shape|expected 2 arrays|expected 3 arrays"):
            robot.compile(1, "mass_matrix")(y)


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

    @pytest.mark.parametrize("name", CASES)
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

    def test_preloads_that_do_not_apply_are_refused(self) -> None:
        y, robot = np.zeros((3, 1)), robot_of(four_bar())
        for call in (robot.inverse_dynamics, robot.drive_state, robot.solve_loops):
            with pytest.raises(InputError, match="a preload needs more drives than coordinates"):
                call(y, preload=[1.0])
        tree = Robot.from_screws(**four_bar().tree.arguments())
        for of_tree in (tree.inverse_dynamics, tree.drive_state):
            with pytest.raises(InputError, match="a preload needs more drives than coordinates"):
                of_tree(np.zeros((3, 3)), preload=np.zeros(3))
        pair = robot_of(replace(four_bar(), driven=(0, 2)))
        with pytest.raises(InputError, match=r"the preload must have shape \(2,\) or \(orders, 2\)"):
            pair.inverse_dynamics(y, preload=[1.0])


@pytest.mark.thorough
class TestMatrices:
    """In the coordinates: `Q = M y'' + C y' + g`, with all its time derivatives."""

    @pytest.mark.parametrize("name", ["four-bar", "RSSR", "mimic chain"])
    def test_they_give_the_efforts_of_drives_that_are_coordinates(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        order = 3 if THOROUGH or name == "four-bar" else 1
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, order)
        assert robot.driven_joints == robot.joint_names
        one = robot.solve_loops(y, base)
        efforts = one.efforts
        rates = y[1:]
        if base is not None:
            body = base.in_representation("body_fixed")
            rates = np.concatenate([body.twists[: len(rates)], rates], axis=1)
            assert one.base_wrench is not None
            wrench = wrenches_to_body(base.pose, body.twists, one.base_wrench)
            efforts = np.concatenate([wrench, efforts], axis=1)
        found = robot.dynamic_matrices(y[: order + 2], base)
        for k in range(order + 1):
            expected = found.gravity[k]
            for matrices, speeds in ((found.mass, rates[1:]), (found.coriolis, rates)):
                expected = expected + product_derivative(matrices, speeds, k)
            assert relative_errors(expected[None], efforts[k][None]).max() < 1e-10

    @pytest.mark.parametrize("name", some(MECHANISMS, *FEW))
    def test_the_mass_matrix_changes_as_the_coriolis_matrix_says(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 0)
        mass = robot.mass_matrix(y[:2], base)
        coriolis = robot.coriolis_matrix(y[:2], base)[0]
        scale = max(float(np.abs(mass[1]).max()), 1e-6 * float(np.abs(mass[0]).max()))
        assert np.abs(coriolis + coriolis.T - mass[1]).max() < 1e-10 * scale
        gravity = robot.gravity_torque(y[:1], base)
        assert gravity.shape == (1, len(mass[0]))

    @pytest.mark.parametrize(
        "name",
        some(
            [name for name in MECHANISMS if name not in SPINNING], *(name for name in FEW if name != "RSSR")
        ),
    )
    def test_efforts_are_linear_in_the_parameters_of_the_bodies(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        order = 2 if THOROUGH or name in SHORT else 1
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, order)
        one = robot.solve_loops(y, base)
        efforts = one.efforts
        if one.base_wrench is not None and base is not None:
            wrench = wrenches_to_body(base.pose, base.in_representation("body_fixed").twists, one.base_wrench)
            efforts = np.concatenate([wrench, efforts], axis=1)
        regressor, parameters = robot.regressor(y, base), robot.dynamic_parameters()
        assert regressor.shape == (order + 1, efforts.shape[1], 10 * robot.tree.n_bodies)
        assert relative_errors(regressor @ parameters, efforts).max() < 1e-11
        if base is None and not robot.overconstrained_loops:
            compiled = robot.compile(order, "regressor")(y)
            np.testing.assert_allclose(compiled.reshape(regressor.shape), regressor, rtol=1e-9, atol=1e-9)

    def test_of_a_platform_its_wrench_against_gravity(self) -> None:
        mechanism = MECHANISMS["6-UPS"]()
        robot = robot_of(mechanism)
        still = BaseMotion(robot.home[1], np.zeros((3, 6)))
        held = robot.gravity_torque(np.zeros((1, 0)), still)[0]
        weight = -robot.gravity * robot.tree.masses.sum()
        assert held.shape == (6,)
        # legs on the ground carry a share of themselves
        assert 0.3 * weight[2] < held[5] < weight[2]

    @pytest.mark.parametrize("name", ["RSSR", "ankle", "planar 3-RRR"])
    def test_jacobians_take_coordinates_to_twists(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 0)
        moved = robot.forward_kinematics(y, base, "hybrid")
        body = robot.tree.n_bodies - 1
        jacobian = robot.jacobian(y[:2], body=body, representation="hybrid", base=base)
        rates = y[1:]
        if base is not None and mechanism.platform is None:
            rates = np.concatenate([base.in_representation("body_fixed").twists[: len(rates)], rates], axis=1)
        elif base is not None:
            rows = [("rx", "ry", "rz", "x", "y", "z").index(row) for row in mechanism.platform[1]]
            rates = _platform_rates(base)[:, rows]
        for k in range(min(2, len(rates))):
            found = product_derivative(jacobian, rates, k)
            np.testing.assert_allclose(found, moved.twists[k, body], rtol=1e-9, atol=1e-9)

    def test_the_centre_of_mass_is_that_of_the_tree(self) -> None:
        mechanism = MECHANISMS["ankle"]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 0)
        moved, masses = robot.forward_kinematics(y[:1], base), robot.tree.masses
        places = [pose[:3, :3] @ c + pose[:3, 3] for pose, c in zip(moved.poses, robot.tree.coms)]
        np.testing.assert_allclose(robot.com(y[:1], base)[0], masses @ np.array(places) / masses.sum())


def _platform_rates(base: BaseMotion) -> Array:
    """Return the rates (1, 6) of the rows of a platform: turns about the axes of its pose, shifts along."""
    w, v = base.twists[0, :3], base.twists[0, 3:]
    turned = base.pose[:3, :3].T @ np.stack([w, v + np.cross(w, base.pose[:3, 3])], axis=1)
    return turned.T.reshape(1, 6)


GROUNDED = [name for name in MECHANISMS if name not in SPINNING and MECHANISMS[name]().platform is None]
GROUNDED = [name for name in GROUNDED if not MECHANISMS[name]().tree.floating_base]


@pytest.mark.thorough
class TestPartials:
    """Against differences of eighth order of the calls themselves."""

    @staticmethod
    def slope(of: Callable[[float], Array], step: float = 0.005) -> Array:
        weights = np.array([4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0])
        parts = [w * (of(i * step) - of(-i * step)) for i, w in enumerate(weights, 1)]
        slope: Array = sum(parts[1:], start=parts[0]) / step
        return slope

    @pytest.mark.parametrize("name", some(GROUNDED, *(name for name in GROUNDED if name in FEW)))
    def test_of_inverse_dynamics_of_any_order(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 1)
        found = robot.inverse_dynamics_derivatives(y)
        assert found.shape == (2, 4, len(mechanism.driven), y.shape[1])
        for k in range(4):
            for c in range(y.shape[1]):

                def efforts(step: float, place: tuple[int, int] = (k, c)) -> Array:
                    moved = y.copy()
                    moved[place] += step
                    return robot.inverse_dynamics(moved)

                expected = self.slope(efforts)
                scale = np.abs(found[:, :3]).max()
                assert np.abs(found[:, k, :, c] - expected).max() < 1e-9 * scale

    @pytest.mark.parametrize("name", some(GROUNDED, *(name for name in GROUNDED if name in FEW)))
    def test_of_forward_dynamics(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 0)
        u = robot.inverse_dynamics(y)
        A, B = robot.linearised_dynamics(y[:2], u[0])
        n = y.shape[1]
        for i in range(2 * n):

            def accelerations(step: float, place: tuple[int, int] = divmod(i, n)) -> Array:
                moved = y[:2].copy()
                moved[place] += step
                return robot.forward_dynamics(moved, u)[0]

            assert np.abs(A[n:, i] - self.slope(accelerations)).max() < 1e-9 * np.abs(A).max()
        np.testing.assert_array_equal(A[:n], np.eye(2 * n)[n:])
        inertia = robot.mass_matrix(y[:1])[0]
        jacobian = robot.inverse_dynamics_derivatives(y)[0, 2]
        if len(mechanism.driven) == n:  # M y'' + ... = S_y u, and u = ... + S_y^-1 M y''
            np.testing.assert_allclose(B[n:] @ jacobian, np.eye(n), atol=1e-9)
        assert np.abs(inertia @ B[n:]).max() > 0.0

    @staticmethod
    def moved_robot(name: str) -> tuple[Robot, Array, BaseMotion]:
        """Return a robot whose coordinates include a pose, with a motion of order 1."""
        if name == "ankle":
            mechanism = MECHANISMS["ankle"]()
            robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 1)
            assert base is not None
            return robot, y, base.in_representation("body_fixed")
        if name.endswith("RRR"):
            robot = ParallelRobot.from_screws(
                **parallel_robots.planar_3rrr(0.08 if name == "RRR" else 0.0).arguments()
            )
        else:
            robot = Robot.load(share.find("config", f"{name}.yaml"))
        start, pose = robot.home
        assert robot.closure is not None and pose is not None
        directions = robot.closure.directions
        y = random_stack(2, 4, len(start), rate=1.0) * 0.2
        y[0] = start + (0.1 if len(start) else 0.0)
        y[0, 3:4] = 0.7
        pose = pose @ exp(directions @ np.linspace(0.02, 0.05, directions.shape[1]))
        twists = 0.3 * random_stack(5, 3, 6) @ directions @ directions.T
        return robot, y, BaseMotion(pose, twists, representation="body_fixed")

    @pytest.mark.parametrize(
        "name",
        some(
            ["ankle", "gough_stewart_6ups", "humanoid_leg", "RRR", "hinged RRR"], "ankle", "RRR", "hinged RRR"
        ),
    )
    def test_of_the_motion_of_a_base_or_platform(self, name: str) -> None:
        """Small body-fixed displacements of it, and the derivatives of its body-fixed twist."""
        robot, y, base = self.moved_robot(name)
        q = y if y.shape[1] else None
        found = robot.inverse_dynamics_derivatives(q, base)
        assert robot.closure is not None
        given, directions = robot.closure.base_given, robot.closure.directions

        def efforts(moving: BaseMotion, joints: Array) -> Array:
            result = robot.inverse_dynamics(joints if y.shape[1] else None, moving)  # type: ignore[arg-type]
            if not given:
                return np.asarray(result)
            wrench, drives = result
            return np.concatenate([moving.wrenches_in_body(wrench), drives], axis=1)

        scale = np.abs(found[:, :3]).max()
        for k in range(4):
            for c, direction in enumerate(directions.T):

                def moved(step: float, k: int = k, direction: Array = direction) -> Array:
                    pose, twists = base.pose, base.twists.copy()
                    if k:
                        twists[k - 1] += step * direction
                    else:
                        pose = pose @ exp(step * direction)
                    return efforts(BaseMotion(pose, twists, representation="body_fixed"), y)

                assert np.abs(found[:, k, :, c] - self.slope(moved)).max() < 1e-8 * scale
            for c in range(y.shape[1]):

                def bent(step: float, place: tuple[int, int] = (k, c)) -> Array:
                    joints = y.copy()
                    joints[place] += step
                    return efforts(base, joints)

                assert np.abs(found[:, k, :, 6 + c] - self.slope(bent)).max() < 1e-8 * scale

    @pytest.mark.parametrize("name", some(["ankle", "gough_stewart_6ups", "RRR"], "ankle", "RRR"))
    def test_linearised_dynamics_are_those_of_inverse_dynamics_turned_around(self, name: str) -> None:
        robot, y, base = self.moved_robot(name)
        assert robot.closure is not None
        state, still = (y[:2], y[:2]) if y.shape[1] else (None, np.zeros((2, 0)))
        u = np.linspace(1.0, 2.0, len(robot.driven_joints))
        now = BaseMotion(base.pose, base.twists[:1], representation="body_fixed")
        twists, joints = robot.forward_dynamics(state, u[None], now)
        then = BaseMotion(base.pose, np.concatenate([now.twists, twists]), representation="body_fixed")
        by = robot.inverse_dynamics_derivatives(np.concatenate([still, joints]), then)[0]
        A, B = robot.linearised_dynamics(state, u, now)
        m = robot.closure.n_coordinates
        for found, right in ((A[m:, :m], -by[0]), (A[m:, m:], -by[1]), (B[m:], np.eye(m)[:, m - len(u) :])):
            np.testing.assert_allclose(by[2] @ found, right, rtol=0.0, atol=1e-10 * np.abs(right).max())
        # a displacement e of the pose changes by e' = dw - [w, e]
        rows = slice(0, 6) if robot.closure.base_given else slice(len(joints[0]), m)
        directions = robot.closure.directions
        turned = np.linalg.lstsq(directions, ad(now.twists[0]) @ directions, rcond=None)[0]
        np.testing.assert_allclose(A[rows, rows], -turned, atol=1e-14)
        np.testing.assert_array_equal(A[:m, m:], np.eye(m))


class TestLoads:
    def test_cutting_a_loop_and_pushing_with_its_load_changes_nothing(self) -> None:
        mechanism = ankle()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 2)
        one = robot.solve_loops(y, base)
        joints = tuple(range(mechanism.tree.n_joints))
        cut = robot_of(replace(mechanism, loops=(), joints=joints, driven=joints))
        wrenches = []
        for name, loop in zip(("loop1", "loop2"), mechanism.loops):
            wrenches += [AppliedWrench(loop.b, one.loads[name]), AppliedWrench(loop.a, -one.loads[name])]
        efforts = cut.solve_loops(one.joints, base, wrenches).efforts
        held = np.zeros_like(efforts)
        held[:, list(mechanism.driven)] = one.efforts
        assert np.abs(efforts - held).max() < 1e-11 * np.abs(one.efforts).max()

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


class TestRods:
    def test_axial_inertia_counts_for_nothing(self) -> None:
        mechanism = rssr()
        y, _ = motion_of(mechanism, 4)
        rod = mechanism.tree.n_bodies - 1
        line = mechanism.loops[1].axis
        assert line is not None
        e = mechanism.tree.placements[rod, :3, :3].T @ line / np.linalg.norm(line)
        inertias = mechanism.tree.inertias.copy()
        inertias[rod] -= 0.004 * np.outer(e, e)  # to rank two
        thin = replace(mechanism, tree=replace(mechanism.tree, inertias=inertias))
        found, expected = robot_of(thin).inverse_dynamics(y), robot_of(mechanism).inverse_dynamics(y)
        assert relative_errors(found, expected).max() < 1e-12


@pytest.mark.thorough
class TestParallelRobots:
    """The general way agrees with limbs and platform."""

    @pytest.mark.parametrize("name", ["gough_stewart_6ups", "planar_3rrr"])
    def test_platforms_of_the_package(self, name: str) -> None:
        limbs = Robot.load(share.find("config", f"{name}.yaml"))
        assert limbs.closure is not None
        model = model_of(limbs.closure)
        robot = _as_tree(model)
        rng = np.random.default_rng(1)
        for _ in range(3):
            pose = model.platform.placement @ exp(model.dof @ rng.uniform(-0.02, 0.02, model.delta))
            twists = rng.uniform(-0.5, 0.5, (6, model.delta)) @ model.dof.T
            base = BaseMotion(pose, twists, representation="body_fixed")
            expected, found = limbs.drive_state(None, base), robot.solve_loops(None, base)
            assert relative_errors(found.efforts, expected.efforts).max() < 1e-12
            assert relative_errors(found.drives, expected.motion).max() < 1e-12


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
        with pytest.raises(ModelError, match="at the zero configuration, the pose of robot 'robot' is sing"):
            constraints = Constraints(couplings=couplings, coordinates=["joint2", "joint3"])
            Robot.from_screws(**tree.arguments(), constraints=constraints)

    def test_what_fails_leaves_the_robot_where_it_was(self) -> None:
        mechanism = rssr()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 0)
        before = robot.inverse_dynamics(y)
        with pytest.raises(ConvergenceError, match="loop 'loop1' of robot 'robot' does not close there"):
            robot.inverse_dynamics(np.array([[3.0], [0.0], [0.0]]))
        np.testing.assert_allclose(robot.inverse_dynamics(y), before, rtol=1e-12)
        robot.reset()
        np.testing.assert_allclose(robot.inverse_dynamics(y), before, rtol=1e-12)

    def test_flat_parallelograms_are_singular_and_passed(self) -> None:
        b = _parallelogram()
        q = np.zeros((3, 1))
        q[0] = -np.pi / 2
        with pytest.raises(SingularError, match="loop1"):
            b.inverse_dynamics(q)
        q[0] = -2.5
        assert b.solve_loops(q).joints[0, 2] == pytest.approx(-2.5)


class TestCurves:
    """Joints that follow others along polynomials and tables; their efforts are among the exact ones."""

    @staticmethod
    def cam(**curve: object) -> Robot:
        tree = four_bar().tree
        constraints = Constraints(couplings=[Coupling("joint2", "joint1", **curve)])
        return Robot.from_screws(**tree.arguments(), constraints=constraints)

    def test_straight_curves_are_ratios(self) -> None:
        y = np.random.default_rng(0).uniform(-0.5, 0.5, (6, 2))
        expected = self.cam(ratio=3.0, offset=0.1).inverse_dynamics(y)
        at = np.linspace(-1.0, 1.0, 8)
        for curve in ({"polynomial": [0.1, 3.0]}, {"table": (at, 3.0 * at + 0.1), "degree": 7}):
            assert relative_errors(self.cam(**curve).inverse_dynamics(y), expected).max() < 1e-9

    @pytest.mark.parametrize("ratio", [1e-4, 2e4])
    def test_steep_curves_leave_the_rows_of_loops_alone(self, ratio: float) -> None:
        mechanism = MECHANISMS["geared linkage"]()
        y, _ = motion_of(mechanism, 3)
        curved = replace(mechanism, curves=(replace(mechanism.curves[0], polynomial=(0.0, ratio)),))
        straight = replace(mechanism, curves=(), couplings=((3, 2, ratio, 0.0),))
        found, expected = robot_of(curved).inverse_dynamics(y), robot_of(straight).inverse_dynamics(y)
        assert relative_errors(found, expected).max() < 1e-10

    def test_names_of_what_follows_are_no_coordinates(self) -> None:
        robot = self.cam(polynomial=[0.1, 3.0, 1.0])
        assert robot.joint_names == robot.driven_joints == ("joint1", "joint3")

    def test_splines_are_those_of_scipy(self) -> None:
        at = np.array([-1.0, -0.6, -0.3, 0.1, 0.4, 0.8, 1.1, 1.5])
        values = np.cos(2.0 * at)
        for degree in (3, 5, 7):
            function = JointFunction.of_table(at, values, degree, False)
            spline = make_interp_spline(at, values, k=degree)
            for x in (*at[:-1], -0.95, 0.0, 1.3):
                found = function.taylor(x, degree + 1)
                expected = [float(spline(x, nu=k)) / factorial(k) for k in range(degree + 1)]
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("periodic", [False, True])
    def test_pieces_of_tables_fit_together(self, periodic: bool) -> None:
        at = np.array([-1.0, -0.6, -0.3, 0.1, 0.4, 0.8, 1.1, 1.5])
        values = np.append(np.cos(2.0 * at[:-1]), np.cos(-2.0))
        function = JointFunction.of_table(at, values, 5, periodic)
        for x in function.breaks[1:-1]:
            before, after = (function.taylor(place, 5) for place in (np.nextafter(x, -9.0), x))
            np.testing.assert_allclose(before, after, rtol=1e-10, atol=1e-10)

    def test_periodic_tables_hold_for_any_turn(self) -> None:
        turn = np.linspace(0.0, 2.0 * np.pi, 17)
        lift = np.append(np.sin(turn[:-1]), 0.0)
        robot = self.cam(table=(turn, lift), degree=7, periodic=True)
        y = np.random.default_rng(0).uniform(-0.5, 0.5, (5, 2))
        here = robot.inverse_dynamics(y)
        for turns in (1, -3):
            there = y.copy()
            there[0, 0] += turns * 2.0 * np.pi
            # joint 1 carries joint 2, and stands where it stood
            assert relative_errors(robot.inverse_dynamics(there), here).max() < 1e-9

    @pytest.mark.parametrize("periodic", [False, True])
    def test_every_piece_of_a_table_is_in_the_compiled_code(self, periodic: bool) -> None:
        at = np.array([-1.0, -0.6, -0.3, 0.1, 0.4, 0.8, 1.1, 1.5])
        table = at, np.append(np.cos(2.0 * at[:-1]), np.cos(-2.0))
        robots = [self.cam(table=table, degree=5, periodic=periodic) for _ in range(2)]
        fast, slow = robots[0], robots[1]
        y = np.random.default_rng(1).uniform(-0.5, 0.5, (5, 2))
        places = [*at[:3], *np.linspace(-0.55, 1.4, 14), *at[3:], 1.5 + 1e-13]
        for y[0, 0] in sorted(places) + (list(np.linspace(1.6, 13.0, 40)) if periodic else []):
            expected = readable_solution(slow, y).efforts
            assert relative_errors(fast.inverse_dynamics(y), expected).max() < 1e-11

    def test_tables_end_and_are_no_smoother_than_their_spline(self) -> None:
        at = np.linspace(-1.0, 1.0, 12)
        robot = self.cam(table=(at, at**2))
        y = np.zeros((5, 2))
        assert robot.inverse_dynamics(y).shape == (3, 2)
        with pytest.raises(InputError, match="table of the coupling of joint 'joint2' is smooth up to deriv"):
            robot.inverse_dynamics(np.zeros((6, 2)))
        with pytest.raises(InputError, match="smooth up to derivative 4, and 5 are needed.*of 7"):
            robot.forward_dynamics(y[:2], np.zeros((4, 2)))
        y[0, 0] = 1.01
        with pytest.raises(InputError, match="joint 'joint1' stands at 1.01, beyond the table of the coup"):
            robot.inverse_dynamics(y)

    def test_followers_may_lead_as_far_as_they_reach(self) -> None:
        tree = four_bar().tree
        couplings = [Coupling("joint2", "joint1", polynomial=[0.0, 1.0, -1.0])]
        constraints = Constraints(couplings=couplings, coordinates=["joint2", "joint3"])
        robot = Robot.from_screws(**tree.arguments(), constraints=constraints)
        y = np.zeros((3, 2))
        y[0, 0] = 0.21
        assert robot.solve_loops(y).joints[0, 0] == pytest.approx(0.3, rel=1e-12)
        y[0, 0] = 0.3  # its lift is 0.25 at most
        with pytest.raises(ConvergenceError, match="the coupling of joint 'joint2' of robot 'robot' does"):
            robot.inverse_dynamics(y)


@pytest.mark.thorough
class TestRows:
    @pytest.mark.parametrize("name", ["four-bar", "RSSR", "cylinder and slider"])
    def test_kinds_are_selections_of_rows(self, name: str) -> None:
        rows = {
            "ball": ("x", "y", "z"),
            "hinge": ("rx", "ry", "x", "y", "z"),
            "cylinder": ("rx", "ry", "x", "y"),
            "slider": ("x", "rz", "y", "rx", "ry"),
        }
        mechanism = MECHANISMS[name]()
        loops = []
        for loop in mechanism.loops:
            if loop.kind in rows:
                z = np.array(Z) if loop.axis is None else loop.axis / np.linalg.norm(loop.axis)
                x = np.cross((0.2, 1.0, 0.1), z)
                x /= np.linalg.norm(x)
                axes = np.stack([x, np.cross(z, x), z], axis=1)
                loop = Closed("rows", loop.a, loop.b, loop.point, rows=rows[loop.kind], axes=axes)
            loops.append(loop)
        robot = robot_of(replace(mechanism, loops=tuple(loops)))
        y, _ = motion_of(mechanism, 4 if THOROUGH else 2)
        expected = robot_of(mechanism).inverse_dynamics(y)
        assert relative_errors(robot.inverse_dynamics(y), expected).max() < 1e-10

    def test_what_is_free_may_be_apart_at_home(self) -> None:
        rows = {"kind": "rows", "point": (0.5, 0.0, 0.0), "rows": ("rx", "x", "y")}
        loop = Loop(1, 2, point_b=(0.5, 0.0, 0.2), **rows)
        assert loop.rows == ("rx", "x", "y")
        with pytest.raises(
            ModelError, match="loop 'rows 1-2' does not close at .* along y its points are 0.2"
        ):
            robot_of(four_bar(), loops=[Loop(1, 2, point_b=(0.5, 0.2, 0.0), **rows)])


class TestCalls:
    def test_names_and_shapes(self) -> None:
        robot = robot_of(ankle())
        assert robot.coordinates == robot.joint_names == ("joint1", "joint2")
        assert robot.driven_joints == ("joint3", "joint4")
        expected = "<Robot 'robot': 4 joints, 5 bodies, floating base, 2 loops, 2 coordinates, "
        assert repr(robot).startswith(expected)
        assert robot_of(planar_3rrr()).coordinates == ("body7.rz", "body7.x", "body7.y")

    @pytest.mark.parametrize("name", ["ankle", "6-UPS", "mimic chain"])
    def test_calls_of_any_form_agree_before_and_after_the_first(self, name: str) -> None:
        mechanism = MECHANISMS[name]()
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 2)
        q = y if y.shape[1] else None
        expected = _whole(readable_solution(robot_of(mechanism), q, base))
        for _ in range(2):
            np.testing.assert_allclose(_joined(robot.inverse_dynamics(q, base)), expected, rtol=1e-10)
            if base is not None:
                turned = _joined(robot.inverse_dynamics(q, base.in_representation("body_fixed")))
                np.testing.assert_allclose(turned, expected, rtol=1e-9, atol=1e-9)
            if q is None:
                continue
            np.testing.assert_allclose(
                _joined(robot.inverse_dynamics(q.tolist(), base)), expected, rtol=1e-10
            )
            shorter = _joined(robot.inverse_dynamics(q[:-1], base))
            np.testing.assert_allclose(shorter, expected[:-1], rtol=1e-10)
            with pytest.raises(InputError, match="must have shape"):
                robot.inverse_dynamics(np.zeros((5, y.shape[1] + 1)), base)

    def test_copies_and_batches(self) -> None:
        mechanism = four_bar()
        robot = robot_of(mechanism)
        stacks = np.array([motion_of(mechanism, 1, seed)[0] for seed in range(3)])
        found = pickle.loads(pickle.dumps(robot)).inverse_dynamics(stacks)
        assert found.shape == (3, 2, 1)
        np.testing.assert_allclose(found[2], robot.inverse_dynamics(stacks[2]), rtol=1e-12)

    @pytest.mark.parametrize("name", ["RSSR", "flying cam"])  # the latter on a base
    def test_batches_are_what_their_samples_are(self, name: str) -> None:
        """Of efforts and of accelerations, one that code cannot do in the middle: far from the one before."""
        mechanism, count = MECHANISMS[name](), 4
        robot, (y, base) = robot_of(mechanism), motion_of(mechanism, 1)
        rng = np.random.default_rng(3)
        scale = np.array([1.0, 1.02, 25.0, 25.2])[:, None, None]
        stacks, u = scale * y, rng.normal(size=(count, 2, len(mechanism.driven)))
        bases, states, pushes = [None] * count, [None] * count, [None] * count
        many, now, push = None, None, None
        if base is not None:
            bases = [
                BaseMotion(base.pose @ exp(0.1 * one), x * base.twists)
                for one, x in zip(rng.normal(size=(count, 6)), scale[:, 0])
            ]
            many = BaseMotion(np.array([one.pose for one in bases]), np.array([one.twists for one in bases]))
            states = [
                BaseMotion(
                    one.pose, one.in_representation("body_fixed").twists[:1], representation="body_fixed"
                )
                for one in bases
            ]
            now = BaseMotion(many.pose, np.array([one.twists for one in states]), representation="body_fixed")
            push = rng.normal(size=(count, 2, 6))
            pushes = list(push)
        efforts = robot.inverse_dynamics(stacks, many)
        alone = [robot_of(mechanism).inverse_dynamics(*one) for one in zip(stacks, bases)]
        accelerations = robot.forward_dynamics(stacks[:, :2], u, now, push)
        others = [robot.forward_dynamics(*one) for one in zip(stacks[:, :2], u, states, pushes)]
        for found, expected in (efforts, alone), (accelerations, others):
            parts = zip(found, *map(list, [zip(*expected)])) if base is not None else [(found, expected)]
            for one, other in parts:
                assert np.abs(one - np.array(other)).max() < 1e-11 * np.abs(one).max()
        with pytest.raises(InputError, match="a batch of 4 takes as many"):
            robot.forward_dynamics(stacks[:, :2], u[:3], now)
        with pytest.raises(InputError, match="give as many states"):
            robot.forward_dynamics(stacks[0, :2], u, states[0])

    def test_kinematics_of_all_bodies(self) -> None:
        mechanism = rssr()
        robot, (y, _) = robot_of(mechanism), motion_of(mechanism, 1)
        moved = robot.forward_kinematics(y)
        end, rocker = moved.pose_of("body5"), moved.pose_of("body2")
        home = mechanism.tree.placements
        point = mechanism.loops[0].point
        local = [home[i, :3, :3].T @ (point - home[i, :3, 3]) for i in (4, 1)]
        places = [pose[:3, :3] @ p + pose[:3, 3] for pose, p in zip((end, rocker), local)]
        np.testing.assert_allclose(places[0], places[1], atol=1e-13)

    def test_what_does_not_know_loops_says_so(self) -> None:
        robot = robot_of(four_bar())
        with pytest.raises(InputError, match="has couplings or loops, which this does not know yet"):
            _ = robot.model

    @pytest.mark.parametrize(
        ("arguments", "said"),
        {
            "shape": ((np.zeros((3, 2)),), r"must have shape \(order \+ 3, 1\)"),
            "too short": ((np.zeros((2, 1)),), "accelerations at least"),
            "not a number": ((np.full((3, 1), np.nan),), "NaN"),
            "no motion": ((None,), "give their motion"),
            "base": ((np.zeros((3, 1)), BaseMotion(np.eye(4), np.zeros((2, 6)))), "has a fixed base"),
        }.values(),
    )
    def test_bad_input_is_named(self, arguments: tuple[object, ...], said: str) -> None:
        with pytest.raises(InputError, match=said):
            robot_of(four_bar()).inverse_dynamics(*arguments)


class TestDescriptions:
    """What does not fit together is refused with one line."""

    @pytest.mark.parametrize(
        ("change", "said"),
        {
            "open": (
                {"loops": [Loop(1, 2, "ball", (0.55, 0.35, 0.0), point_b=(0.55, 0.36, 0.0))]},
                "loop 'ball 1-2' does not close at the zero configuration: its points are 0.01 m apart",
            ),
            "turned": (
                {"loops": [Loop(1, 2, "hinge", (0.55, 0.35, 0), Z, axis_b=(0, 0.1, 1))]},
                "its axes are 0.0997 rad apart",
            ),
            "no freedom": (
                {"loops": [Loop(1, 2, "weld", (0.55, 0.35, 0.0))]},
                r"cannot move: its loops \['weld 1-2'\] leave no freedom",
            ),
            "coordinates too few": ({"coordinates": [], "driven": []}, "1 degrees of freedom and 0 coord"),
            "coordinates too many": ({"coordinates": [0, 1]}, "1 degrees of freedom, but 2 coordinates"),
            "unknown joint": ({"coordinates": ["elbow"]}, "coordinates: there is no joint 'elbow'"),
            "unknown drive": ({"driven": ["elbow"]}, "driven: there is no joint 'elbow'"),
            "drive twice": ({"driven": [0, 0]}, "driven holds joint 'joint1' twice"),
            "no drives": ({"driven": []}, "drives of robot 'robot' do not hold it: with all 0"),
            "unknown body": (
                {"loops": [Loop("elbow", 2, "ball", (0.55, 0.35, 0.0))]},
                "loop 'ball elbow-2': there is no body or frame 'elbow'; known",
            ),
            "no coordinates": ({"coordinates": None, "driven": None}, "has loops; name its independent"),
            "two alike": (
                {"loops": 2 * [Loop(1, 2, "ball", (0.55, 0.35, 0.0))]},
                "several loops are called 'ball 1-2'",
            ),
            "rows": ({"coordinates": [(2, ["z", "up"])]}, "rows of platform 2 must be some of"),
            "no list": ({"loops": Loop(1, 2, "ball", (0.55, 0.35, 0.0))}, "loops must be a list of Loop"),
        }.values(),
    )
    def test_loops_and_coordinates(self, change: dict[str, object], said: str) -> None:
        with pytest.raises(ModelError, match=said) as error:
            robot_of(four_bar(), **change)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("couplings", "said"),
        [
            ([Coupling(0, "joint1")], "joint 'joint1' is coupled to itself: 'joint1' of 'joint1'"),
            ([Coupling(0, 1), Coupling(1, 2), Coupling(2, 0)], "joint 'joint1' is coupled to itself"),
            ([Coupling(0, 1), Coupling(0, 2)], "joint 'joint1' is coupled twice"),
            ([Coupling("elbow", 2)], "couplings: there is no joint 'elbow'"),
            ([Coupling(0, 1, polynomial=[0, 1, 2]), Coupling(1, 0)], "'joint1' is coupled to itself"),
            ([Coupling(0, 1), Coupling(0, 2, polynomial=[0, 1, 2])], "joint 'joint1' is coupled twice"),
        ],
    )
    def test_couplings(self, couplings: list[Coupling], said: str) -> None:
        with pytest.raises(ModelError, match=said):
            Robot.from_screws(**four_bar().tree.arguments(), constraints=Constraints(couplings=couplings))

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((1, 2, "bell", (0, 0, 0)), "unknown kind 'bell'"),
            ((1, 1, "ball", (0, 0, 0)), "joins 1 with itself"),
            ((1, 2, "ball", (0, 0)), "'point' must be three numbers"),
            ((1, 2, "hinge", (0, 0, 0)), "a hinge needs 'axis'"),
            ((1, 2, "hinge", (0, 0, 0), (0, 0, 0)), "'axis' is zero"),
            ((1, 2, "universal", (0, 0, 0), (0, 0, 1)), "a universal needs 'axis_b'"),
            ((1, 2, "rod", (0, 0, 0)), "a rod needs 'point_b'"),
            ((1, 2, "rows", (0, 0, 0)), "'rows 1-2': rows must be some of"),
            ((1, 2, "rows", (0, 0, 0), None, None, None, "", ("up",)), "rows must be some of"),
            ((1, 2, "rows", (0, 0, 0), None, None, None, "", ("x", "x")), "rows must be some of"),
            ((1, 2, "rows", (0, 0, 0), None, None, None, "", ("x",), np.ones((3, 3))), "right-handed frame"),
            ((1, 2, "ball", (0, 0, 0), None, None, None, "", ("x",)), "a ball has no rows"),
            ((1, 2, "ball", (0, 0, 0), None, None, None, "", None), "a ball has no rows"),
            ((1, 2, "rows", (0, 0, 0), None, None, None, "", 3), "rows must be some of"),
        ],
    )
    def test_one_loop(self, arguments: tuple[object, ...], said: str) -> None:
        with pytest.raises(ModelError, match=said):
            Loop(*arguments)

    def test_couplings_of_themselves(self) -> None:
        with pytest.raises(ModelError, match="joint 'a' is coupled to itself"):
            Coupling("a", "a")
        with pytest.raises(ModelError, match="ratio of the coupling of joint 'a' must be a number"):
            Coupling("a", "b", float("nan"))

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (
                {"polynomial": "curved"},
                "the polynomial of the coupling of joint 'a' must be a list of numbers",
            ),
            ({"polynomial": []}, "coupling of joint 'a': its polynomial must be a list of numbers"),
            (
                {"polynomial": [1.0, np.nan]},
                "coupling of joint 'a': its polynomial must be a list of numbers",
            ),
            ({"polynomial": [1.0], "ratio": 2.0}, "'a' has polynomial beside a ratio or an offset"),
            ({"polynomial": [1.0], "table": ([0], [0])}, "'a' has polynomial and table; give one of them"),
            ({"degree": 7}, "'a' has no table, so it has neither degree nor period"),
            ({"table": [0, 1]}, "the table of the coupling of joint 'a' must be two lists of numbers"),
            ({"table": (range(6), range(7))}, "'a': its table holds 6 positions and 7 values"),
            ({"table": ([0, 2, 1, 3, 4, 5], range(6))}, "'a': the positions of its table must increase"),
            ({"table": (range(6), [0, np.nan, 1, 3, 4, 5])}, "'a': the positions .* all figures be finite"),
            ({"table": (range(6), range(6)), "degree": 4}, "'a': the degree of its spline must be one of"),
            ({"table": (range(5), range(5))}, "'a': a spline of degree 5 needs 6 points or more, found 5"),
            ({"table": (range(7), range(7)), "periodic": True}, "begins with 0 and ends with 6"),
        ],
    )
    def test_one_curve(self, arguments: dict[str, object], said: str) -> None:
        with pytest.raises(ModelError, match=said) as error:
            Coupling("a", "b", **arguments)
        assert "\n" not in str(error.value)

    def test_a_rod_that_spins_is_explained(self) -> None:
        mechanism = rssr()
        with pytest.raises(ModelError, match="do not determine its pose.*kind 'spin'"):
            robot_of(replace(mechanism, loops=mechanism.loops[:1]))

    def test_motion_without_mass_is_refused(self) -> None:
        tree = four_bar().tree
        bare = replace(tree, masses=0.0 * tree.masses, coms=0.0 * tree.coms, inertias=0.0 * tree.inertias)
        with pytest.raises(ModelError, match="without moving any mass"):
            robot_of(replace(four_bar(), tree=bare))

    def test_axes_written_to_six_digits_do_not_lock_a_linkage(self) -> None:
        mechanism = four_bar()
        screws = mechanism.tree.screws.copy()
        for i, tilt in enumerate((3e-6, -2e-6, 1e-6)):
            e = np.array([tilt, -tilt / 2, 1.0])
            point = mechanism.tree.placements[i, :3, 3]
            e /= np.linalg.norm(e)
            screws[i] = np.concatenate([e, np.cross(point, e)])
        tilted = replace(mechanism, tree=replace(mechanism.tree, screws=screws))
        y, _ = motion_of(mechanism, 2)
        found, exact = robot_of(tilted).inverse_dynamics(y), robot_of(mechanism).inverse_dynamics(y)
        assert relative_errors(found, exact).max() < 1e-4


def _joined(found: Array | tuple[Array, Array]) -> Array:
    return np.concatenate(found, axis=1) if isinstance(found, tuple) else found


def _whole(one: LoopSolution) -> Array:
    return one.efforts if one.base_wrench is None else _joined((one.base_wrench, one.efforts))


def _parallelogram() -> Robot:
    mechanism = four_bar()
    points = np.array([[0, 0, 0], [0, 0.2, 0], [0.5, 0, 0]], dtype=float)
    screws = np.array([[0, 0, 1, *np.cross(p, Z)] for p in points])
    placements = np.tile(np.eye(4), (3, 1, 1))
    placements[:, :3, 3] = points
    tree = replace(mechanism.tree, screws=screws, placements=placements)
    loop = replace(mechanism.loops[0], point=np.array([0.5, 0.2, 0.0]))
    return robot_of(replace(mechanism, tree=tree, loops=(loop,)))


def _as_tree(model: ParallelModel) -> Robot:
    """Build a platform on limbs as a tree: it hangs on the first limb, and the others are welded to it."""
    parents: list[int] = []
    parts: dict[str, list[Array]] = {name: [] for name in Tree.__dataclass_fields__}
    ends, driven = [], []
    for limb in model.limbs:
        chain = limb.chain
        first = len(parents)
        driven += [first + joint for joint in limb.driven]
        parents += [-1 if p < 0 else first + p for p in chain.parents]
        for name in ("screws", "placements", "masses", "coms", "inertias"):
            parts[name] += list(getattr(chain, name))
        ends.append(len(parents) - 1)
    platform, spec = ends[0], model.platform
    for end in ends:  # the chains carry a platform of their own
        parts["masses"][end], parts["inertias"][end] = 0.0, np.zeros((3, 3))
    parts["masses"][platform], parts["coms"][platform] = spec.mass, spec.com
    parts["inertias"][platform] = spec.inertia
    for end in ends:
        parts["placements"][end] = spec.placement
    loops = [Loop(platform, end, "weld", spec.placement[:3, 3], name=f"limb {end}") for end in ends[1:]]
    if model.delta == 2:  # a platform on hinges in one point, which nothing turns
        loops.append(Loop("world", platform, "spin", spec.placement[:3, 3], Z))
    rows = [row for i, row in enumerate(("rx", "ry", "rz", "x", "y", "z")) if model.dof[i].any()]
    return Robot.from_screws(
        parents,
        parts["screws"],
        parts["placements"],
        parts["masses"],
        parts["coms"],
        parts["inertias"],
        model.gravity,
        constraints=Constraints(loops, coordinates=[(platform, rows)], driven=driven),
    )
