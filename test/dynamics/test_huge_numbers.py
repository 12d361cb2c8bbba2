"""Huge but finite numbers: every public call answers with finite numbers, or says that they are too large."""

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from linkages import robot_of as linkage
from oracles.mechanisms import four_bar
from oracles.random_trees import random_tree
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, InputError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.group_robot import GroupRobot
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.joint_groups import spherical
from hodyn_ros.model.joint_tree import JointTree

pytestmark = pytest.mark.thorough

Calls = dict[str, Callable[[Any, "Numbers"], Any]]

TRIALS = 12 if THOROUGH else 2
EXPONENTS = (20, 60, 100, 150, 200, 250, 307)


class Numbers:
    """Makes arrays of numbers of which one, some or all are huge."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, *shape: int) -> Array:
        array = self.rng.standard_normal(shape)
        huge = self.rng.random(shape) < self.rng.choice([0.0, 0.1, 1.0], p=[0.2, 0.5, 0.3])
        array[huge] *= 10.0 ** self.rng.choice(EXPONENTS)
        return array

    def pose(self) -> Array:
        pose = exp(0.3 * self.rng.standard_normal(6))
        pose[:3, 3] = self(3)
        return pose

    def base(self, orders: int) -> BaseMotion:
        frame = self.rng.choice(["spatial", "body_fixed"])
        return BaseMotion(self.pose(), self(orders, 6), representation=frame)


def stack(robot: Robot, numbers: Numbers, rows: int) -> tuple[Any, ...]:
    q = numbers(rows, robot.n_coordinates)
    if robot.model.floating_base:
        return q, numbers.base(max(rows - 1, 1))
    return (q if numbers.rng.random() < 0.7 else np.stack([q, numbers(*q.shape)]),)


def of_motion(name: str, rows: int) -> Callable[[Robot, Numbers], Any]:
    return lambda robot, numbers: getattr(robot, name)(*stack(robot, numbers, rows))


def named_base(robot: Robot, numbers: Numbers, twists: int) -> dict[str, Any]:
    return {"base": numbers.base(twists)} if robot.model.floating_base else {}


def velocities(robot: Robot) -> int:
    return robot.n_coordinates + 6 * robot.model.floating_base


def wrench(robot: Robot, numbers: Numbers, orders: int) -> list[AppliedWrench]:
    frame = numbers.rng.choice(["spatial", "body_fixed"])
    return [AppliedWrench(robot.model.body_names[-1], numbers(orders, 6), representation=frame)]


def of_state(
    name: str, efforts: int = 1, weighted: bool = False, pushed: bool = False, **named: Any
) -> Callable[[Robot, Numbers], Any]:
    """Call with a state and efforts, and with a multiplier, a wrench and a base where there are such."""

    def call(robot: Robot, numbers: Numbers) -> Any:
        n = robot.n_coordinates
        further = [numbers(1, velocities(robot))] if weighted else []
        wrenches = {"wrenches": wrench(robot, numbers, efforts)} if pushed else {}
        base = named_base(robot, numbers, 1)
        return getattr(robot, name)(numbers(2, n), numbers(efforts, n), *further, **base, **wrenches, **named)

    return call


def kinematics(robot: Robot, numbers: Numbers) -> Iterator[Any]:
    found = robot.forward_kinematics(*stack(robot, numbers, 3))
    yield found
    for representation in ("body_fixed", "hybrid"):
        yield found.in_representation(representation)
    body = robot.model.body_names[-1]
    yield found.pose_of(body), found.twists_of(body), found.jacobian_of(body)


def inverse_dynamics(robot: Robot, numbers: Numbers) -> Iterator[Any]:
    arguments = stack(robot, numbers, 5)
    yield robot.inverse_dynamics(*arguments, wrenches=wrench(robot, numbers, 3))
    yield robot.inverse_dynamics(*arguments)
    formulation = numbers.rng.choice(["spatial", "body_fixed", "hybrid", "closed_form"])
    yield robot.inverse_dynamics(*arguments, formulation=str(formulation))


def compiled(robot: Robot, numbers: Numbers) -> Any:
    base = [numbers.pose(), numbers(4, 6)] if robot.model.floating_base else []
    return robot.compile(2)(numbers(5, robot.n_coordinates), *base)


def reference(robot: Robot, numbers: Numbers) -> Any:
    q, *base = (numbers(3, robot.n_coordinates), *([numbers.base(2)] if robot.model.floating_base else []))
    more = {"base_reference": numbers(3, 6)} if base else {}
    return robot.slotine_li_regressor(q, numbers(4, robot.n_coordinates), *base, **more)


def inverse_kinematics(robot: Robot, numbers: Numbers) -> Any:
    reachable = robot.n_coordinates
    target = exp(0.3 * numbers.rng.standard_normal(6)) if numbers.rng.random() < 0.5 else numbers.pose()
    seed = 0.3 * numbers.rng.standard_normal(reachable)
    if not robot.model.floating_base and numbers.rng.random() < 0.7:
        target = robot.forward_kinematics(seed[None]).pose_of(robot.model.body_names[-1])
    seed = seed if numbers.rng.random() < 0.7 else numbers(reachable)
    return robot.inverse_kinematics(
        target,
        numbers(2, 6),
        body=robot.model.body_names[-1],
        task="position",
        seed=seed,
        **named_base(robot, numbers, 2),
    )


OF_MATRICES = "mass_matrix", "coriolis_matrix", "gravity_torque", "dynamic_matrices", "matrix_derivatives"
OF_MATRICES += "coefficient_matrices", "com", "com_jacobian", "centroidal_momentum", "parameter_derivatives"
OF_GROUPS_TOO = (*OF_MATRICES, "inverse_dynamics", "regressor", "inverse_dynamics_derivatives")
OF_TREES: Calls = {
    "forward_kinematics": kinematics,
    "inverse_kinematics": inverse_kinematics,
    "inverse_dynamics": inverse_dynamics,
    "accuracy": lambda r, x: r.accuracy("inverse_dynamics", *stack(r, x, 5)),
    "drive_state": of_motion("drive_state", 5),
    "with_tree": lambda r, x: r.with_tree(r.tree),
    "with_drives": lambda r, x: r.with_drives(None),
    "require_drives": lambda r, x: r.require_drives(),
    "compile": compiled,
    "compile_batch": lambda r, x: r.compile_batch(0, "com")(
        x(2, 1, r.n_coordinates), *([np.array([np.eye(4)] * 2), np.zeros((2, 0, 6))] if r.moves_base else [])
    ),
    "forward_dynamics": of_state("forward_dynamics", 3, pushed=True),
    "hybrid_dynamics": of_state("hybrid_dynamics", 2, prescribed=[0]),
    "forward_dynamics_derivatives": of_state("forward_dynamics_derivatives", pushed=True),
    "hybrid_dynamics_derivatives": of_state("hybrid_dynamics_derivatives", prescribed=[0]),
    "inverse_dynamics_hessian": lambda r, x: r.inverse_dynamics_hessian(
        x(3, r.n_coordinates), x(1, velocities(r)), **named_base(r, x, 2)
    ),
    "inverse_dynamics_second_derivatives": of_motion("inverse_dynamics_second_derivatives", 3),
    "forward_dynamics_hessian": of_state("forward_dynamics_hessian", weighted=True),
    "forward_dynamics_second_derivatives": of_state("forward_dynamics_second_derivatives"),
    "hybrid_dynamics_hessian": of_state("hybrid_dynamics_hessian", weighted=True, prescribed=[0]),
    "hybrid_dynamics_second_derivatives": of_state("hybrid_dynamics_second_derivatives", prescribed=[0]),
    "forward_kinematics_derivatives": lambda r, x: r.forward_kinematics_derivatives(
        x(2, r.n_coordinates), **named_base(r, x, 1)
    ),
    "forward_kinematics_hessian": lambda r, x: r.forward_kinematics_hessian(
        x(2, r.n_coordinates), x(r.tree.n_bodies, 16 + 6), **named_base(r, x, 1)
    ),
    **{name: of_motion(name, 2) for name in (*OF_MATRICES, "centroidal_momentum_matrix")},
    "compile_matrices": lambda r, x: r.compile_matrices(0),
    "jacobian": lambda r, x: r.jacobian(
        x(2, r.n_coordinates), body=r.model.body_names[-1], representation="hybrid", **named_base(r, x, 1)
    ),
    "dynamic_parameters": lambda r, x: r.dynamic_parameters(),
    "regressor": of_motion("regressor", 3),
    "slotine_li_regressor": reference,
    "inverse_dynamics_derivatives": of_motion("inverse_dynamics_derivatives", 3),
    "linearised_dynamics": lambda r, x: r.linearised_dynamics(
        x(2, r.n_coordinates), x(r.n_coordinates), **named_base(r, x, 1)
    ),
}


def of_loops(name: str, rows: int) -> Callable[[Robot, Numbers], Any]:
    return lambda robot, numbers: getattr(robot, name)(
        np.vstack([0.1 * numbers.rng.standard_normal((1, 1)), numbers(rows - 1, 1)])
    )


def loops_from_frames(robot: Robot, numbers: Numbers) -> Any:
    robot.reset()
    q = np.vstack([0.1 * numbers.rng.standard_normal((1, 1)), numbers(2, 1)])
    moved, body = robot.forward_kinematics(q), robot.tree.body_names[-1]
    return robot.inverse_kinematics(moved.pose_of(body), moved.twists_of(body), body=body)


OF_LOOPS: Calls = {
    "solve_loops": of_loops("solve_loops", 5),
    "inverse_dynamics": of_loops("inverse_dynamics", 5),
    "drive_state": of_loops("drive_state", 5),
    "forward_kinematics": of_loops("forward_kinematics", 3),
    "inverse_kinematics": loops_from_frames,
    "forward_dynamics": lambda r, x: r.forward_dynamics(
        np.vstack([0.1 * x.rng.standard_normal((1, 1)), x(1, 1)]), x(3, 1)
    ),
    **{
        name: of_loops(name, 2)
        for name in (
            "dynamic_matrices",
            "matrix_derivatives",
            "parameter_derivatives",
            "com_jacobian",
            "centroidal_momentum",
            "centroidal_momentum_matrix",
        )
    },
    "reset": lambda r, x: r.reset(),
    "apart": lambda r, x: r.apart().positions,
}


def freedoms(robot: Robot) -> Array:
    assert robot.closure is not None and robot.closure.platform is not None
    assert robot.closure.platform.twists is not None
    return robot.closure.platform.twists


def platform(robot: Robot, numbers: Numbers, orders: int) -> BaseMotion:
    home = robot.home[1]
    pose = numbers.pose() if home is None or numbers.rng.random() > 0.85 else home
    dof = freedoms(robot)
    return BaseMotion(pose, numbers(orders, dof.shape[1]) @ dof.T, representation="body_fixed")


def load(robot: Robot, numbers: Numbers, orders: int) -> list[AppliedWrench]:
    """On the platform, or on the first limb."""
    if numbers.rng.random() < 0.3:
        return [AppliedWrench(robot.tree.body_names[1], numbers(orders, 6))]
    dof = freedoms(robot)
    return [
        AppliedWrench(
            robot.tree.body_names[0], numbers(orders, dof.shape[1]) @ dof.T, representation="body_fixed"
        )
    ]


def of_platform(name: str, orders: int) -> Callable[[Robot, Numbers], Any]:
    return lambda robot, numbers: getattr(robot, name)(None, platform(robot, numbers, orders))


def platform_dynamics(robot: Robot, numbers: Numbers) -> Iterator[Any]:
    base = platform(robot, numbers, 4)
    yield robot.inverse_dynamics(None, base)
    yield robot.inverse_dynamics(None, base, wrenches=load(robot, numbers, 3))
    yield robot.inverse_dynamics(None, base, formulation="limb_decomposition")
    n = len(robot.driven_joints)
    if n > len(robot.coordinates):
        yield robot.inverse_dynamics(None, base, preload=numbers(3, n))


def platform_kinematics(robot: Robot, numbers: Numbers) -> Any:
    robot.reset()  # what is out of reach takes a while to give up
    n = len(robot.driven_joints)
    positions = np.zeros(n) if numbers.rng.random() < 0.8 else numbers(n)
    return robot.motion_from_drives(np.vstack([positions, numbers(3, n)]))


def platform_from_frames(robot: Robot, numbers: Numbers) -> Any:
    robot.reset()
    base = platform(robot, numbers, 2)
    return robot.inverse_kinematics(base.pose, base.twists, body=robot.tree.body_names[0])


def platform_jacobian(robot: Robot, numbers: Numbers) -> Any:
    base = platform(robot, numbers, 2)
    return robot.jacobian(None, body=robot.tree.body_names[1], representation="hybrid", base=base)


OF_PLATFORMS: Calls = {
    "reset": lambda r, x: r.reset(),
    "joint_motion": of_platform("joint_motion", 3),
    "drive_state": of_platform("drive_state", 4),
    "drive_jacobian": of_platform("drive_jacobian", 3),
    "motion_from_drives": platform_kinematics,
    "inverse_kinematics": platform_from_frames,
    "forward_kinematics": of_platform("forward_kinematics", 3),
    "inverse_dynamics": platform_dynamics,
    "solve_loops": of_platform("solve_loops", 4),
    "forward_dynamics": lambda r, x: r.forward_dynamics(
        None, x(3, len(r.driven_joints)), platform(r, x, 1), wrenches=load(r, x, 3)
    ),
    "mass_matrix": of_platform("mass_matrix", 2),
    "coriolis_matrix": of_platform("coriolis_matrix", 2),
    "gravity_torque": of_platform("gravity_torque", 2),
    "dynamic_matrices": of_platform("dynamic_matrices", 2),
    "com": of_platform("com", 2),
    "jacobian": platform_jacobian,
    "compile": lambda r, x: r.compile(1)(x.pose(), x(3, 6)),
    "with_tree": lambda r, x: r.with_tree(r.tree),
    "is_compiled": lambda r, x: r.is_compiled(2),
}


def motion_of(robot: GroupRobot, numbers: Numbers, orders: int) -> Any:
    coordinates = 0.3 * numbers.rng.standard_normal(robot.tree.n_velocities)
    return robot.motion(robot.tree.joint_poses(coordinates), numbers(orders, robot.tree.n_velocities))


def of_groups(name: str, orders: int) -> Callable[[GroupRobot, Numbers], Any]:
    return lambda robot, numbers: getattr(robot, name)(motion_of(robot, numbers, orders))


OF_GROUPS: Calls = {
    "motion": lambda r, x: r.motion(r.tree.joint_poses(x(r.tree.n_velocities)), x(2, r.tree.n_velocities)),
    **{name: of_groups(name, 3) for name in OF_GROUPS_TOO},
    "linearised_dynamics": of_groups("linearised_dynamics", 2),
    "jacobian": lambda r, x: r.jacobian(motion_of(r, x, 2), body=1),
    "dynamic_parameters": lambda r, x: r.dynamic_parameters(),
    "slotine_li_regressor": lambda r, x: r.slotine_li_regressor(
        motion_of(r, x, 2), x(3, r.tree.n_velocities)
    ),
}


@pytest.fixture(scope="module")
def robots() -> dict[str, Any]:
    balls = JointTree.build(
        [-1, 0],
        [spherical(), spherical([0.0, 0.1, 0.0])],
        [np.eye(4), np.eye(4)],
        [1.0, 2.0],
        [[0.1, 0.0, 0.2], [0.0, 0.3, 0.1]],
        [np.eye(3), 0.5 * np.eye(3)],
    )
    return {
        "arm": Robot.from_screws(**random_tree(1, 3).arguments()),
        "flyer": Robot.from_screws(**random_tree(6, 2, floating_base=True).arguments()),
        "gough_stewart": Robot.load(share.find("config", "gough_stewart_6ups.yaml")),
        "planar": Robot.load(share.find("config", "planar_3rrr.yaml")),
        "balls": GroupRobot(balls),
        "linkage": linkage(four_bar()),
    }


def public_calls(kind: type) -> set[str]:
    return {
        name
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and name in dir(kind)
    }


@pytest.mark.parametrize(("kind", "calls"), [(Robot, OF_TREES), (GroupRobot, OF_GROUPS)])
def test_no_public_call_is_left_out(kind: type, calls: Calls) -> None:
    known = {*calls, *((*OF_LOOPS, *OF_PLATFORMS) if kind is Robot else ())}
    assert public_calls(kind) == known


def arrays_of(result: Any) -> Iterator[Array]:
    """Return all numbers of a result: of arrays, tuples, and what a dataclass holds."""
    if isinstance(result, (np.ndarray, float)):
        yield np.asarray(result)
    elif isinstance(result, (tuple, list, Iterator)):
        for item in result:
            yield from arrays_of(item)
    elif dataclasses.is_dataclass(result):
        for entry in dataclasses.fields(result):
            value = getattr(result, entry.name)
            yield from arrays_of(value) if isinstance(value, (np.ndarray, tuple, list)) else ()


CASES = [
    (robot, name, call)
    for calls, names in (
        (OF_TREES, ("arm", "flyer")),
        (OF_PLATFORMS, some(("gough_stewart", "planar"), "planar")),  # whose code is the same, and shorter
        (OF_GROUPS, ("balls",)),
        (OF_LOOPS, ("linkage",)),
    )
    for robot in names
    for name, call in calls.items()
]


@pytest.mark.parametrize(("robot", "name", "call"), CASES, ids=[f"{r}-{n}" for r, n, _ in CASES])
def test_finite_numbers_or_one_clear_line(
    robots: dict[str, Any], robot: str, name: str, call: Callable[[Any, Numbers], Any]
) -> None:
    for seed in range(TRIALS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = list(arrays_of(call(robots[robot], Numbers(seed))))
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) > 20, (seed, str(error))
        else:
            assert all(np.isfinite(array).all() for array in found), seed
