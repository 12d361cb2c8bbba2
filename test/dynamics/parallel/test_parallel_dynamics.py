"""Parallel robots against Lagrange multipliers at many digits, the laws of mechanics, and themselves."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from oracles import mp_dynamics, mp_parallel
from oracles.cases import relative_errors
from oracles.motions import Frame, Load, random_stack
from oracles.parallel_robots import Parallel, gough_stewart, planar_3rrr
from oracles.random_trees import Tree
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, InputError, ParallelRobot, Robot
from hodyn_ros.array import Array
from hodyn_ros.dynamics.loops.looped_call import LoopedCall
from hodyn_ros.dynamics.results import DriveState
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.parallel.closure import model_of
from hodyn_ros.model.parallel.model import ParallelModel

pytestmark = pytest.mark.thorough


ROBOTS = {
    "gough-stewart": gough_stewart(),
    "gough-stewart, uneven": gough_stewart(seed=3),
    "3-RRR": planar_3rrr(side=0.08),
    "3-RRR on a hinge": planar_3rrr(side=0.0),
}
SMALL = ["gough-stewart, uneven", "3-RRR", "3-RRR on a hinge"]

# What all tests of a robot share, so that it is compiled once; legs of a hexapod are long to compile.
ORDER = 3 if THOROUGH else 2


@cache
def robot_of(name: str) -> Robot:
    return ParallelRobot.from_screws(**ROBOTS[name].arguments())


def model(robot: Robot) -> ParallelModel:
    assert robot.closure is not None
    return model_of(robot.closure)


def motion_of(robot: Parallel, order: int, seed: int = 1, frame: Frame = "body_fixed") -> BaseMotion:
    """Return a motion from a pose near the home pose, with twists that the platform can have."""
    rng = np.random.default_rng(seed)
    delta = robot.dof.shape[1]
    pose = robot.placement @ exp(robot.dof @ rng.uniform(-0.1, 0.1, delta))
    twists = random_stack(rng, order + 2, delta) @ robot.dof.T
    return BaseMotion(pose, twists, representation="body_fixed").in_representation(frame)


def start_of(motion: BaseMotion) -> BaseMotion:
    """Return pose and twist alone."""
    return BaseMotion(motion.pose, motion.twists[:1], representation=motion.representation)


def frame_of_loads(robot: Parallel, frame: Frame) -> Frame:
    """Return the frame in which a wrench without moment goes through the hinge, where there is one."""
    return frame if len(robot.balanced) == len(robot.free) else "body_fixed"


def load_of(robot: Parallel, order: int, frame: Frame) -> Load:
    """Return a wrench of the size of the platform's weight, with no part that turns it on a hinge."""
    size = np.zeros(6)
    size[list(robot.balanced)] = (robot.mass * np.repeat([0.05, 1.0], 3))[list(robot.balanced)]
    return Load(0, random_stack(7, order + 1, 6) * size, frame)


@pytest.mark.parametrize(
    ("name", "order", "frame"),
    some(
        [
            ("gough-stewart", 4, "body_fixed"),
            ("gough-stewart, uneven", 1, "spatial"),
            ("3-RRR", 4, "body_fixed"),
            ("3-RRR on a hinge", 4, "spatial"),
            ("3-RRR on a hinge", 2, "spatial"),
        ],
        ("gough-stewart, uneven", 1, "spatial"),
        ("3-RRR on a hinge", 2, "spatial"),
    ),
)
def test_agrees_with_lagrange_multipliers(name: str, order: int, frame: Frame) -> None:
    arrays, robot = ROBOTS[name], robot_of(name)
    motion = motion_of(arrays, order, frame=frame)
    load = load_of(arrays, order, frame_of_loads(arrays, frame))
    redundant = robot.closure.n_efforts > len(robot.coordinates)
    preload = random_stack(3, order + 1, arrays.n_driven) if redundant else None

    given = motion.pose, motion.twists, frame
    exact = mp_dynamics.to_float(mp_parallel.inverse_dynamics(arrays, *given, load, preload))
    joints = np.concatenate(
        [mp_dynamics.to_float(part) for part in mp_parallel.joint_motion(arrays, *given)], axis=1
    )

    wrench = AppliedWrench("platform", load.values, representation=load.representation)
    for formulation in (None, "limb_decomposition"):
        forces = robot.inverse_dynamics(None, motion, wrench, formulation, preload=preload)
        assert relative_errors(forces, exact).max() < 1e-11
    for one in (robot.solve_loops, robot.drive_state):
        assert relative_errors(one(None, motion, wrench, preload).efforts, exact).max() < 1e-11
    found = np.concatenate(arrays.of_limbs(robot.joint_motion(None, motion)), axis=1)
    assert relative_errors(found, joints).max() < 1e-12


@pytest.mark.parametrize("name", some(SMALL, "3-RRR on a hinge"))
@pytest.mark.parametrize("frame", some(["body_fixed", "spatial"], "body_fixed"))
def test_forward_dynamics_beyond_the_compiled_orders(name: str, frame: Frame) -> None:
    """Rounding grows tenfold with every order; the efforts of what was found are still the ones given."""
    arrays, robot = ROBOTS[name], robot_of(name)
    motion = motion_of(arrays, 8, frame=frame)
    wrenches = [on_platform(arrays, 8)]
    efforts = robot.inverse_dynamics(None, motion, wrenches)
    found, _ = robot.forward_dynamics(None, efforts, start_of(motion), wrenches=wrenches)
    assert (relative_errors(found, motion.twists[1:]) < 1e-11 * 10.0 ** np.arange(9)).all()
    whole = BaseMotion(motion.pose, np.vstack([motion.twists[:1], found]), representation=frame)
    again = robot.inverse_dynamics(None, whole, wrenches)
    assert relative_errors(again, efforts).max() < 1e-11


def on_platform(robot: Parallel, order: int) -> AppliedWrench:
    values = load_of(robot, order, "spatial").values
    return AppliedWrench("platform", values, representation=frame_of_loads(robot, "spatial"))


@pytest.mark.parametrize(
    ("name", "frame"),
    some(product(SMALL, ["body_fixed", "spatial"]), *zip(SMALL[1:], ("spatial", "body_fixed"))),
)
def test_wrenches_on_bodies_of_limbs(name: str, frame: Frame) -> None:
    """Their virtual power on the bodies is that of the drives, at every order; and all ways agree."""
    arrays, robot, order = ROBOTS[name], robot_of(name), 2 if THOROUGH else 1
    motion = motion_of(arrays, order)
    values = random_stack(9, order + 1, 6)
    wrenches = [
        AppliedWrench("limb1_body2", values, representation=frame),
        AppliedWrench("limb3_body1", 0.5 * values[::-1], representation=frame),
        on_platform(arrays, order),
    ]
    found = robot.inverse_dynamics(None, motion, wrenches)
    assert relative_errors(robot.solve_loops(None, motion, wrenches).efforts, found).max() < 1e-11
    assert relative_errors(robot.drive_state(None, motion, wrenches).efforts, found).max() < 1e-11

    given = BaseMotion(motion.pose, motion.twists[:order], representation="body_fixed")
    jacobians = robot.drive_jacobian(None, given).transpose(0, 2, 1)
    change = found - robot.inverse_dynamics(None, motion, wrenches[2])
    expected = np.zeros((order + 1, arrays.dof.shape[1]))
    for wrench in wrenches[:2]:
        of_body = robot.jacobian(None, body=wrench.body, representation=frame, base=given).transpose(0, 2, 1)
        expected -= [product_derivative(of_body, wrench.values, k) for k in range(order + 1)]
    driving = np.array([product_derivative(jacobians, change, k) for k in range(order + 1)])
    assert relative_errors(driving, expected).max() < 1e-10
    again, _ = robot.forward_dynamics(None, found, start_of(motion), wrenches=wrenches)
    assert relative_errors(again, motion.twists[1:]).max() < 1e-9


@pytest.mark.parametrize("name", some(SMALL, "3-RRR"))
def test_payload_and_gravity_come_with_the_tree(name: str) -> None:
    """A payload and another gravity, against robots that are described with them."""
    arrays, robot = ROBOTS[name], robot_of(name)
    motion = motion_of(arrays, 2)
    own = np.zeros(3)
    if len(arrays.balanced) == len(arrays.free):
        own[:] = (0.01, -0.02, 0.03)
    payload = Payload(1.5, own.tolist(), (0.01, 0.001, 0.0, 0.02, 0.0, 0.03))
    found = robot.with_tree(payload.on_tree(robot).with_gravity([1.0, -2.0, 3.0]))
    assert found.closure is not None and robot.tree.masses.sum() < found.tree.masses.sum()
    mass = arrays.mass + 1.5
    com = (arrays.mass * arrays.com + 1.5 * own) / mass
    inertia = arrays.inertia + payload.tensor
    for part, at in ((arrays.mass, arrays.com), (1.5, own)):
        apart = at - com
        inertia = inertia + part * (apart @ apart * np.eye(3) - np.outer(apart, apart))
    heavy = replace(arrays, mass=mass, com=com, inertia=inertia, gravity=np.array([1.0, -2.0, 3.0]))
    expected = ParallelRobot.from_screws(**heavy.arguments())
    for one, other in (
        (found.inverse_dynamics(None, motion), expected.inverse_dynamics(None, motion)),
        (found.solve_loops(None, motion).efforts, expected.inverse_dynamics(None, motion)),
        (
            found.inverse_dynamics(None, motion, formulation="limb_decomposition"),
            expected.inverse_dynamics(None, motion),
        ),
    ):
        assert relative_errors(one, other).max() < 1e-11
    assert (
        relative_errors(robot.inverse_dynamics(None, motion), found.inverse_dynamics(None, motion)).min()
        > 1e-3
    )
    torques = [one.gravity_torque(None, start_of(motion)) for one in (found, expected)]
    assert relative_errors(*torques).max() < 1e-11


def test_a_load_may_hang_on_a_limb() -> None:
    """As one that is described with it, in the compiled limbs, which are of two builds then."""
    arrays, robot = ROBOTS["3-RRR"], robot_of("3-RRR")
    motion = motion_of(arrays, 2)
    found = robot.with_tree(Payload(0.3, body="limb2_body1").on_tree(robot))
    arguments = arrays.arguments()
    limb = arguments["limbs"][1]
    limb["masses"] = limb["masses"] + [0.3, 0.0]
    share = 0.151248 * 0.3 / limb["masses"][0]
    lever = limb["coms"][0].copy()
    limb["coms"] = np.array([lever * 0.151248 / limb["masses"][0], limb["coms"][1]])
    steiner = share * (lever @ lever * np.eye(3) - np.outer(lever, lever))
    limb["inertias"] = limb["inertias"] + np.array([steiner, np.zeros((3, 3))])
    expected = ParallelRobot.from_screws(**arguments).inverse_dynamics(None, motion)
    assert relative_errors(found.inverse_dynamics(None, motion), expected).max() < 1e-11
    published = found.inverse_dynamics(None, motion, formulation="limb_decomposition")
    assert relative_errors(published, expected).max() < 1e-11


def test_one_limb_alone_is_a_serial_robot() -> None:
    """A platform on one limb, all joints driven, is a serial arm with the platform as its last body."""
    arrays = gough_stewart()
    tree = arrays.limbs[0]
    arguments = arrays.arguments()
    alone = ParallelRobot.from_screws(
        [{**arguments["limbs"][0], "driven": range(6)}], arguments["platform"], np.eye(6)
    )
    serial = Robot.from_screws(
        tree.parents,
        tree.screws,
        tree.placements,
        [*tree.masses[:-1], arrays.mass],
        [*tree.coms[:-1], arrays.com],
        [*tree.inertias[:-1], arrays.inertia],
        arrays.gravity,
    )
    state = alone.drive_state(None, motion_of(arrays, 2))
    found, motion = driven_from_the_ground(alone, state)
    assert relative_errors(found, serial.inverse_dynamics(motion)).max() < 1e-12
    torques = mp_dynamics.inverse_dynamics(limb_with_platform(arrays), motion).torques
    assert relative_errors(found, mp_dynamics.to_float(torques)).max() < 1e-11


def driven_from_the_ground(robot: Robot, state: DriveState) -> tuple[Array, Array]:
    """Return efforts and motion of the drives in the order of their names."""
    order = np.argsort(robot.driven_joints)
    return state.efforts[:, order], np.ascontiguousarray(state.motion[:, order])


def limb_with_platform(robot: Parallel) -> Tree:
    tree = robot.limbs[0]
    return replace(
        tree,
        masses=np.array([*tree.masses[:-1], robot.mass]),
        coms=np.array([*tree.coms[:-1], robot.com]),
        inertias=np.array([*tree.inertias[:-1], robot.inertia]),
    )


def test_derivatives_of_a_preload_that_are_missing_are_zero() -> None:
    arrays, robot = ROBOTS["3-RRR on a hinge"], robot_of("3-RRR on a hinge")
    motion, preload = motion_of(arrays, 2), random_stack(2, 1, 3)
    constant = robot.inverse_dynamics(None, motion, preload=preload[0])
    padded = robot.inverse_dynamics(None, motion, preload=[preload[0], 0.0 * preload[0]])
    assert relative_errors(constant, padded).max() < 1e-13


def test_high_orders_agree_with_the_compiled_ones() -> None:
    arrays, robot = ROBOTS["3-RRR"], robot_of("3-RRR")
    motion = motion_of(arrays, 8)
    high = robot.inverse_dynamics(None, motion)
    assert high.shape == (9, 3)
    low = robot.inverse_dynamics(
        None, BaseMotion(motion.pose, motion.twists[:5], representation="body_fixed")
    )
    assert relative_errors(high[:4], low).max() < 1e-12
    published = robot.inverse_dynamics(None, motion, formulation="limb_decomposition")
    assert relative_errors(high, published).max() < 1e-12


def test_results_are_the_same_far_from_the_world_origin() -> None:
    near = ROBOTS["3-RRR"]
    away = np.eye(4)
    away[:3, 3] = (100.0, -50.0, 20.0)
    arguments = near.arguments()
    for limb, tree in zip(arguments["limbs"], near.limbs):
        moved = tree.moved(away)
        limb["screws"], limb["placements"] = moved.screws, moved.placements[:-1]
    arguments["platform"]["placement"] = away @ near.placement
    robot = ParallelRobot.from_screws(**arguments)
    motion = motion_of(near, 0)
    there = BaseMotion(away @ motion.pose, motion.twists, representation="body_fixed")
    expected = robot_of("3-RRR").inverse_dynamics(None, motion)
    # screws about a world origin 100 m away carry lengths to 1e-14 m only
    assert relative_errors(robot.inverse_dynamics(None, there), expected).max() < 1e-9


@pytest.mark.parametrize("name", some(SMALL, *SMALL[1:]))
def test_batches_under_wrenches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, robot = ROBOTS[name], robot_of(name)
    motion = motion_of(arrays, ORDER, seed=5)
    frames: tuple[Frame, Frame] = ("body_fixed", frame_of_loads(arrays, "spatial"))
    wrenches = [AppliedWrench("platform", load_of(arrays, ORDER, f).values, representation=f) for f in frames]
    faster = np.linspace(1.0, 1.4, 5)[:, None, None]
    batch = BaseMotion(
        np.tile(motion.pose, (5, 1, 1)), faster * motion.twists, representation=motion.representation
    )
    found = robot.inverse_dynamics(None, batch, wrenches)
    for i, forces in enumerate(found):
        alone = robot.inverse_dynamics(None, batch.one(i), wrenches)
        assert relative_errors(forces, alone).max() < 1e-12
    start = BaseMotion(batch.pose, batch.twists[:, :1], representation=batch.representation)
    robot.forward_dynamics(None, found[0], start.one(0), wrenches=wrenches)  # compiles
    estimates = [
        robot.accuracy("forward_dynamics", None, forces, start.one(i), wrenches=wrenches).errors[0]
        for i, forces in enumerate(found)
    ]
    if frames[1] == "spatial":
        monkeypatch.setattr(LoopedCall, "__call__", None)  # of single samples: it must not be called
    moved, _ = robot.forward_dynamics(None, found, start, wrenches=wrenches)
    for twists, expected, estimate in zip(moved, batch.twists[:, 1:], estimates):
        # a last digit of the forces alone moves order 3 of the 3-RRR by 7e-10 of its size
        assert (np.abs(twists - expected).max(axis=1) < 10.0 * estimate).all()
    if frames[1] == "body_fixed":
        turned = AppliedWrench("platform", np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (3, 1)))
        with pytest.raises(InputError):
            robot.inverse_dynamics(None, batch, [turned])
        with pytest.raises(InputError):
            robot.forward_dynamics(None, found, start, wrenches=[turned])
