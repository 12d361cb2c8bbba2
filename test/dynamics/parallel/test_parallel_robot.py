"""Positions of parallel robots: branches, assembly modes, singular poses, and what is left after an error."""

import threading
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles.cases import relative_errors
from oracles.motions import random_stack
from oracles.parallel_robots import Parallel, gough_stewart, planar_3rrr
from refusals import refused
from sweeps import some

from hodyn_ros import (
    AppliedWrench,
    BaseMotion,
    ConvergenceError,
    InputError,
    ParallelRobot,
    Robot,
    SingularError,
)
from hodyn_ros.array import Array
from hodyn_ros.engine.loops.limbs import limbs_of
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.loops.loop_kernel import LoopFunction
from hodyn_ros.formulations import limb_decomposition
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.parallel.closure import model_of
from hodyn_ros.model.parallel.model import ParallelModel

pytestmark = pytest.mark.thorough


PLATFORM = gough_stewart()
HINGE = planar_3rrr(side=0.0)
TRIANGLE = planar_3rrr(side=0.08)
ROBOTS = {"6-UPS": PLATFORM, "3-RRR": TRIANGLE, "3-RRR on a hinge": HINGE}
REST = np.zeros((2, 6))
QUARTER = PLATFORM.placement @ exp(np.array([0, 0, np.pi / 2, 0, 0, 0]))


def build(arrays: Parallel) -> Robot:
    return ParallelRobot.from_screws(**arrays.arguments())


def at(pose: Array, twists: Array = REST, frame: BaseRepresentation = "body_fixed") -> BaseMotion:
    return BaseMotion(pose, twists, representation=frame)


def still(pose: Array) -> BaseMotion:
    """Return a pose, of which no more than positions is asked."""
    return BaseMotion(pose, REST[:1])


def model(robot: Robot) -> ParallelModel:
    assert robot.closure is not None
    return model_of(robot.closure)


def lengths(robot: Robot, pose: Array) -> Array:
    """Return the positions of the driven joints."""
    return robot.drive_state(None, at(pose)).motion[0]


def joints_of(robot: Robot) -> Array:
    """Return the joint positions of the last success."""
    assert robot.positions is not None
    return robot.positions[: robot.tree.n_joints]


@pytest.fixture(scope="module")
def shared_platform() -> Robot:
    return build(PLATFORM)


@pytest.fixture
def platform(shared_platform: Robot) -> Robot:
    shared_platform.reset()
    return shared_platform


@pytest.fixture(scope="module")
def shared_hinge() -> Robot:
    return build(HINGE)


@pytest.fixture
def hinge(shared_hinge: Robot) -> Robot:
    shared_hinge.reset()
    return shared_hinge


def moved(home: Array, x: float, y: float, z: float = 0.0) -> Array:
    pose = home.copy()
    pose[:3, 3] += (x, y, z)
    return pose


def stretched(reach: float) -> Array:
    """Return a pose with the first arm at a reach of at most 0.8 m."""
    base = HINGE.limbs[0].placements[0, :3, 3]
    along = HINGE.placement[:3, 3] - base
    pose = HINGE.placement.copy()
    pose[:3, 3] = base + reach * along / np.linalg.norm(along)
    return pose


def test_says_what_it_consists_of(platform: Robot) -> None:
    rows = tuple(f"platform.{row}" for row in ("rx", "ry", "rz", "x", "y", "z"))
    assert (platform.tree.n_joints, len(platform.driven_joints), platform.coordinates) == (36, 6, rows)
    assert platform.driven_joints[1] == "limb2_joint3"
    assert platform.joint_names == () and platform.n_coordinates == 0
    assert platform.platform == "platform" and platform.moves_base
    start, pose = platform.home
    assert start.shape == (0,)
    np.testing.assert_allclose(pose, PLATFORM.placement, rtol=0.0, atol=1e-15)
    assert platform.tree.joint_names[4:7] == ("limb1_joint2", "limb1_joint1", "limb2_joint6")
    assert platform.tree.body_names[5:7] == ("limb1_body1", "limb1_foot")
    assert [loop.name for loop in platform.closure.loops] == [f"limb{i}" for i in range(1, 7)]
    assert platform.overconstrained_loops == ()


@pytest.mark.parametrize("arrays", [PLATFORM, gough_stewart(seed=3), TRIANGLE, HINGE])
def test_limbs_and_platform_come_out_of_the_tree_as_they_went_in(arrays: Parallel) -> None:
    found = model(build(arrays))
    given = ParallelModel.build(**arrays.arguments())
    assert (found.joint_names, found.driven, found.slices) == (given.joint_names, given.driven, given.slices)
    np.testing.assert_array_equal(found.dof, given.dof)
    np.testing.assert_array_equal(found.gravity, given.gravity)
    np.testing.assert_allclose(found.platform.spatial_inertia, given.platform.spatial_inertia, rtol=1e-15)
    for one, other in zip(found.limbs, given.limbs):
        assert (one.name, one.driven, one.n_moving) == (other.name, other.driven, other.n_moving)
        for what in ("screws", "placements", "masses", "coms", "inertias"):
            for part, expected in ((one.chain, other.chain), (one.cut, other.cut)):
                np.testing.assert_allclose(getattr(part, what), getattr(expected, what), atol=1e-15)


def test_a_reset_selects_the_branch(hinge: Robot) -> None:
    """Every arm reaches the tool with its elbow on either side, and goes on as it began."""
    home = HINGE.placement
    hinge.reset(np.array([0.0, 0.0, 0.0, 1.7, -3.4, 1.7, 0.0, 0.0, 0.0]))
    beside = hinge.joint_motion(None, still(home))[0]
    assert np.allclose(beside[[0, 1, 2, 6, 7, 8]], 0.0, rtol=0.0, atol=1e-12)
    assert abs(beside[3]) > 0.5
    target = moved(home, 0.1, 0.05)
    followed = lengths(hinge, target)
    hinge.reset()
    first = lengths(hinge, target)
    assert np.allclose(followed[[0, 2]], first[[0, 2]], rtol=0.0, atol=1e-12)
    assert abs(followed[1] - first[1]) > 0.5
    hinge.reset()  # the pose that `beside` belongs to
    hinge.reset(beside)
    assert np.allclose(lengths(hinge, target), followed, rtol=0.0, atol=1e-12)
    forces = hinge.inverse_dynamics(None, at(target, np.ones((4, 1)) * HINGE.dof.sum(axis=1)))
    place = hinge.tree.joint_names.index(hinge.driven_joints[1])
    assert np.allclose(joints_of(hinge)[place], followed[1], rtol=0.0, atol=1e-12)
    assert forces.shape == (3, 3)


def test_redundant_drives_must_not_contradict_each_other(hinge: Robot) -> None:
    twists = np.ones((2, 1)) * HINGE.dof.sum(axis=1)
    drives = hinge.drive_state(None, at(moved(HINGE.placement, 0.05, 0.02), twists)).motion
    hinge.reset()
    before = hinge.positions
    for change in ((0, 2, 0.01), (2, 1, 0.1)):
        wrong = drives.copy()
        wrong[change[:2]] += change[2]
        with pytest.raises(InputError, match="the drives of robot 'robot' contradict each other: joint '"):
            hinge.motion_from_drives(wrong)
        assert np.array_equal(hinge.positions, before)
    assert np.isfinite(hinge.motion_from_drives(drives).base.pose).all()


def test_a_jump_stays_on_the_branch(platform: Robot) -> None:
    """From one end of the workspace to the other in one call."""
    ends = [exp(sign * np.array([0.5, 0.4, 0.8, 0.06, -0.05, 0.03])) for sign in (1.0, -1.0)]
    positions = []
    for end in (*ends, ends[0]):
        platform.inverse_dynamics(None, at(PLATFORM.placement @ end))
        positions.append(joints_of(platform))
    assert np.allclose(positions[0], positions[2], rtol=0.0, atol=1e-12)
    assert np.abs(positions[1]).max() < 1.5


@pytest.mark.parametrize("compiled_before", [False, True])
def test_out_of_the_workspace_the_limb_is_named_and_nothing_is_lost(
    hinge: Robot, compiled_before: bool
) -> None:
    good, far = at(moved(HINGE.placement, 0.1, 0.0)), at(moved(HINGE.placement, 0.6, 0.0))
    if compiled_before:
        hinge.inverse_dynamics(None, good)
    hinge.reset()
    before = hinge.drive_state(None, good).motion
    place = hinge.positions
    calls = (
        lambda: hinge.inverse_dynamics(None, far),
        lambda: hinge.inverse_dynamics(None, far, formulation="limb_decomposition"),
        lambda: hinge.inverse_dynamics(None, far, AppliedWrench("limb1_body1", np.zeros(6))),
        lambda: hinge.drive_state(None, far),
        lambda: hinge.solve_loops(None, far),
        lambda: hinge.joint_motion(None, far),
        lambda: hinge.drive_jacobian(None, far),
        lambda: hinge.mass_matrix(None, far),
        lambda: hinge.forward_dynamics(None, np.zeros((1, 3)), far),
        lambda: hinge.compile(0)(far.pose, far.twists),
    )
    for call in calls:
        with pytest.raises(ConvergenceError) as e:
            call()
        assert 0.1 < e.value.distance < 0.6
        assert np.array_equal(hinge.positions, place)
    assert np.isfinite(hinge.inverse_dynamics(None, good)).all()
    assert np.allclose(hinge.drive_state(None, good).motion, before, rtol=0.0, atol=1e-13)


def test_a_pose_out_of_the_plane_is_out_of_reach(hinge: Robot) -> None:
    before = hinge.positions
    far = at(moved(HINGE.placement, 0.0, 0.0, 0.05))
    for formulation in (None, "limb_decomposition"):
        with pytest.raises(ConvergenceError) as e:
            hinge.inverse_dynamics(None, far, formulation=formulation)
        assert e.value.distance == pytest.approx(0.05, rel=1e-6)
    with pytest.raises(ConvergenceError):
        hinge.joint_motion(None, far)
    with pytest.raises(ConvergenceError):
        hinge.forward_dynamics(None, np.zeros((1, 3)), far)
    assert np.array_equal(hinge.positions, before)


@pytest.mark.parametrize("short_by", some([0.0, 1e-15, 1e-13, 1e-12], 0.0, 1e-12))
def test_a_stretched_arm_is_singular(hinge: Robot, short_by: float) -> None:
    pose, before = stretched(0.8 - short_by), hinge.positions
    calls = (
        lambda: hinge.inverse_dynamics(None, at(pose)),
        lambda: hinge.inverse_dynamics(None, at(pose), formulation="limb_decomposition"),
        lambda: hinge.drive_state(None, at(pose)),
        lambda: hinge.joint_motion(None, at(pose)),
        lambda: hinge.forward_dynamics(None, np.zeros((2, 3)), at(pose, REST[:1])),
    )
    for call in calls:
        with pytest.raises((SingularError, ConvergenceError), match="'limb1'"):
            call()
        assert np.array_equal(hinge.positions, before)


def test_near_the_stretched_arm_the_distance_shrinks(hinge: Robot) -> None:
    margins = []
    for reach in (0.7, 0.79, 0.7999):
        margins.append(hinge.solve_loops(None, at(stretched(reach))).motion_margin)
        near = hinge.drive_state(None, at(stretched(reach))).near_singularity
        assert near == (reach == 0.7999)
    assert margins[0] > margins[1] > margins[2] > 0.0
    assert margins[2] < 0.1 * margins[0]
    far = ParallelRobot.from_screws(**HINGE.arguments())
    assert far.drive_state(None, at(stretched(0.7999))).near_singularity, "in one go, too"


@pytest.mark.parametrize("name", some(ROBOTS, "3-RRR", "3-RRR on a hinge"))
@pytest.mark.parametrize("loaded", some([None, "platform", "limb1_body1"], "limb1_body1"))
def test_a_long_way_in_one_go_is_not_near_a_singular_pose(name: str, loaded: str | None) -> None:
    """What is done carefully then must not be compared with what a kernel measures."""
    arrays = ROBOTS[name]
    robot, delta = build(arrays), arrays.dof.shape[1]
    size = 0.3 * arrays.dof[:3].sum(axis=0) + 0.08 * arrays.dof[3:].sum(axis=0)
    away = size * np.random.default_rng(4).uniform(-1.0, 1.0, delta)
    wrenches = None if loaded is None else AppliedWrench(loaded, np.zeros(6))
    for step in (away, -away, away):
        pose = arrays.placement @ exp(arrays.dof @ step)
        for _ in range(2):
            assert not robot.drive_state(None, at(pose), wrenches).near_singularity


def test_drives_that_do_not_hold_the_platform_are_named(platform: Robot) -> None:
    """Turned by a quarter, the lines of the six legs of this platform touch one screw."""
    values = []
    for angle in (0.0, 0.5, 1.0, 1.4):
        pose = PLATFORM.placement @ exp(np.array([0, 0, angle, 0, 0, 0]))
        values.append(platform.solve_loops(None, at(pose)).drive_margin)
    assert values[0] > values[1] > values[2] > values[3]
    place = platform.positions
    calls = (
        lambda: platform.inverse_dynamics(None, at(QUARTER)),
        lambda: platform.inverse_dynamics(None, at(QUARTER), formulation="limb_decomposition"),
        lambda: platform.solve_loops(None, at(QUARTER)),
        lambda: platform.drive_state(None, at(QUARTER)),
        lambda: platform.compile(0)(QUARTER, REST),
    )
    for call in calls:
        with pytest.raises(SingularError) as caught:
            call()
        assert caught.value.condition > 1e6
    platform.reset(place)
    assert np.isfinite(platform.inverse_dynamics(None, at(PLATFORM.placement))).all()


def test_where_drives_do_not_hold_the_platform_it_moves_all_the_same(platform: Robot) -> None:
    """The motion that forces cause is determined there, and the task space is in balance with it."""
    twist = random_stack(2, 1, 6)
    forces = random_stack(5, 2, 6, rate=1.0)
    found = platform.forward_dynamics(None, forces, at(QUARTER, twist)).base
    limbs = model(platform)
    twists = np.concatenate([twist, found])
    positions = np.concatenate(PLATFORM.of_limbs(joints_of(platform)))
    motions = limb_decomposition.limb_motions(limbs, positions, twists)
    jacobians, force = limb_decomposition.task_space(limbs, motions, QUARTER, twists, np.zeros((2, 6)))
    driving = [forces[0] @ jacobians[0], forces[1] @ jacobians[0] + forces[0] @ jacobians[1]]
    assert relative_errors(force, np.array(driving)).max() < 1e-10


def slides_of_a_carriage(second: bool) -> Robot:
    """Return a carriage on a rail along x that rods push from slides along y; at x = 0 they cannot.

    A rod of 0.5 m goes from a slide above the rail to the carriage, `second` another from one below.
    """
    z, home = np.array([0.0, 0.0, 1.0]), np.array([0.3, 0.0, 0.0])
    placement = np.eye(4)
    placement[:3, 3] = home
    rail = {"screws": np.array([[0, 0, 0, 1.0, 0, 0]]), "placements": np.zeros((0, 4, 4)), "masses": []}
    limbs = [{**rail, "coms": np.zeros((0, 3)), "inertias": np.zeros((0, 3, 3)), "driven": []}]
    for y in (0.4, -0.4)[: 1 + second]:
        end = np.array([0.0, y, 0.0])
        screws = [[0, 0, 0, 0, 1.0, 0], [*z, *np.cross(end, z)], [*z, *np.cross(home, z)]]
        frames = np.tile(np.eye(4), (2, 1, 1))
        frames[:, :3, 3] = end
        bodies = {"masses": [0.7, 0.4], "coms": np.array([[0, 0, 0], 0.5 * (home - end)])}
        inertias = [0.01 * np.eye(3), np.diag([0.001, 0.001, 0.01])]
        limbs.append({"screws": screws, "placements": frames, **bodies, "inertias": inertias, "driven": [0]})
    return ParallelRobot.from_screws(
        limbs, {"mass": 2.0, "placement": placement}, np.eye(6)[:, 3:4], (0.0, -9.81, 0.0)
    )


def along_the_rail(x: float, twists: Array | None = None) -> BaseMotion:
    pose = np.eye(4)
    pose[0, 3] = x
    given = np.zeros((4, 6))
    given[:, 3] = (0.1, 0.2, 0.3, 0.4)
    return at(pose, given if twists is None else twists)


@pytest.mark.parametrize("second", [False, True])
def test_near_a_dead_point_of_one_coordinate_efforts_grow_and_at_it_there_are_none(second: bool) -> None:
    robot = slides_of_a_carriage(second)
    assert robot.coordinates == ("platform.x",)
    near = {}
    for x in (0.3, 0.1, 0.05, 0.01, 1e-3, 3e-5):
        base = along_the_rail(x)
        state = robot.drive_state(None, base)
        near[x] = state.near_singularity
        published = robot.inverse_dynamics(None, base, formulation="limb_decomposition")
        assert relative_errors(state.efforts, published).max() < 1e-9
        assert relative_errors(robot.solve_loops(None, base).efforts, published).max() < 1e-9
        # of the slide, `y' = -x x' / y`
        expected = -x * 0.1 / np.sqrt(0.25 - x * x)
        assert state.motion[1, 0] == pytest.approx(expected, rel=1e-9)
        # further calls are compiled, and say the same
        assert robot.drive_state(None, base).near_singularity == near[x]
    assert [x for x, flag in near.items() if flag] == [0.01, 1e-3, 3e-5]
    for x in (1e-6, 1e-8, 1e-12, 1e-16, 0.0, -1e-16, -1e-8):
        base = along_the_rail(x)
        for call in (
            lambda: robot.drive_state(None, base),  # noqa: B023
            lambda: robot.inverse_dynamics(None, base),  # noqa: B023
            lambda: robot.compile(2)(base.pose, base.in_representation("spatial").twists),  # noqa: B023
            lambda: robot.inverse_dynamics(None, base, AppliedWrench("platform", np.ones(6))),  # noqa: B023
            lambda: robot.inverse_dynamics(None, base, AppliedWrench("limb2_body1", np.ones(6))),  # noqa: B023
            lambda: robot.inverse_dynamics(None, base, formulation="limb_decomposition"),  # noqa: B023
        ):
            with pytest.raises(SingularError):
                call()
    passed = robot.drive_state(None, along_the_rail(-0.3))
    assert not passed.near_singularity
    assert np.abs(passed.efforts[0]).max() < 100.0


@pytest.mark.parametrize("arrays", [PLATFORM, HINGE])
def test_the_kernel_itself_never_calls_a_singular_pose_right(arrays: Parallel) -> None:
    """From the place itself, so that neither a long way nor open limbs can be what it rejects."""
    robot = build(arrays)
    assert robot.closure is not None
    kernel = LoopFunction(EffortCode(robot.closure, np.zeros(0, dtype=int), 0))
    still_joints = np.zeros((3, 0))
    if arrays is PLATFORM:
        pose, beside = QUARTER, PLATFORM.placement @ exp(np.array([0, 0, 1.5, 0, 0, 0]))
    else:
        pose, beside = stretched(0.8), stretched(0.795)
    robot.joint_motion(None, still(beside))
    memory = robot.positions[None].copy()
    assert kernel.function(still_joints, beside, REST, memory).item(kernel.defect_at) < 1.0
    for part in np.linspace(0.0, 1.0, 60) ** 0.25:
        between = beside.copy()
        between[:3, 3] += part * (pose - beside)[:3, 3]
        if arrays is PLATFORM:
            between = PLATFORM.placement @ exp(np.array([0, 0, 1.5 + part * (np.pi / 2 - 1.5), 0, 0, 0]))
        kernel.function(still_joints, between, REST, memory)
    for _ in range(20):
        table = kernel.function(still_joints, pose, REST, memory)
        assert not table.item(kernel.defect_at) < 1.0


@pytest.mark.parametrize("frame", ["body_fixed", "spatial"])
def test_twists_outside_of_the_degrees_of_freedom_are_refused(
    hinge: Robot, frame: BaseRepresentation
) -> None:
    twists = np.zeros((4, 6))
    twists[0, 3] = 1.0
    twists[2, 2] = 1e-3
    wrong, said = at(HINGE.placement, twists, frame), "twist has the part ... outside of its degrees of free"
    for _ in range(2):
        for formulation in (None, "limb_decomposition"):
            call = partial(hinge.inverse_dynamics, None, wrong, formulation=formulation)
            refused(call, f"derivative 2 of the {said}")
        refused(lambda: hinge.joint_motion(None, wrong), said)
        hinge.inverse_dynamics(None, at(HINGE.placement, REST, frame))
    fast = at(HINGE.placement, twists[2:3], frame)
    refused(lambda: hinge.forward_dynamics(None, np.zeros((1, 3)), fast), said)


@pytest.mark.parametrize("frame", ["body_fixed", "spatial"])
def test_nothing_holds_the_platform_against_a_turn_on_its_hinge(
    hinge: Robot, frame: BaseRepresentation
) -> None:
    pose = moved(HINGE.placement, 0.1, 0.05)
    x, y = pose[:2, 3] if frame == "spatial" else (0.0, 0.0)
    force = np.array([[2.0, 3.0], [-1.0, 5.0]])
    through = np.zeros((2, 6))
    through[:, 3:5] = force
    through[:, 2] = x * force[:, 1] - y * force[:, 0]
    good = AppliedWrench("platform", through, representation=frame)
    start = at(pose, REST[:1])
    forces = hinge.inverse_dynamics(None, at(pose), good)
    assert np.isfinite(hinge.forward_dynamics(None, forces, start, wrenches=good).base).all()
    beside = through.copy()
    beside[0, 2] += 0.1
    defect_at = AppliedWrench("platform", beside, representation=frame)
    for call in (
        lambda: hinge.inverse_dynamics(None, at(pose), defect_at),
        lambda: hinge.inverse_dynamics(None, at(pose), [good, defect_at]),
        lambda: hinge.inverse_dynamics(None, at(pose), defect_at, "limb_decomposition"),
        lambda: hinge.solve_loops(None, at(pose), defect_at),
        lambda: hinge.drive_state(None, at(pose), defect_at),
        lambda: hinge.forward_dynamics(None, forces, start, wrenches=defect_at),
    ):
        refused(call, "would turn it on the joints that carry it")


def test_any_form_of_numbers_will_do(platform: Robot) -> None:
    twists = random_stack(1, 2, 6)
    expected = platform.inverse_dynamics(None, BaseMotion(PLATFORM.placement, twists))
    compiled = platform.compile(0)
    for pose, given in (
        (PLATFORM.placement.tolist(), twists.tolist()),
        (np.asfortranarray(PLATFORM.placement), np.asfortranarray(twists)),
    ):
        for _ in range(2):
            found = platform.inverse_dynamics(None, BaseMotion(pose, given))
            assert relative_errors(found, expected).max() < 1e-13
            assert relative_errors(compiled(pose, given), expected).max() < 1e-13
    kept = platform.inverse_dynamics(None, BaseMotion(PLATFORM.placement, twists))
    platform.inverse_dynamics(None, BaseMotion(PLATFORM.placement, 2.0 * twists))
    assert relative_errors(kept, expected).max() < 1e-13, "a result must not change with later calls"
    out = np.empty((1, 6))
    assert compiled(PLATFORM.placement, twists, out=out) is out
    assert relative_errors(out, expected).max() < 1e-13


def test_threads_may_share_a_robot(platform: Robot) -> None:
    twists = random_stack(1, 2, 6)
    poses = [PLATFORM.placement @ exp(a * np.array([1.0, 0.3, -0.5, 0.1, 0.1, 0.1])) for a in (-0.1, 0.1)]
    motions = [BaseMotion(pose, twists) for pose in poses]
    expected = [platform.inverse_dynamics(None, motion) for motion in motions]
    errors: list[float] = []

    def work(i: int) -> None:
        errors.extend(
            relative_errors(platform.inverse_dynamics(None, motions[i]), expected[i]).max()
            for _ in range(300)
        )

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 1200
    assert max(errors) < 1e-11


def group_sizes(robot: Robot) -> list[int]:
    """Return how many limbs are computed side by side."""
    assert robot.closure is not None
    limbs = limbs_of(robot.closure, np.zeros(3))
    parts = {part for part, _ in limbs.parts.values()}
    sizes = Counter(alike for alike, _ in parts)
    return sorted([*sizes.values(), *[1] * (len(limbs.clusters) - len(parts))])


def test_limbs_of_one_build_share_their_code() -> None:
    assert group_sizes(build(PLATFORM)) == [6]
    assert group_sizes(build(gough_stewart(seed=3))) == [6]
    arguments = TRIANGLE.arguments()
    arguments["limbs"][1]["masses"] = 1.001 * arguments["limbs"][1]["masses"]
    assert group_sizes(ParallelRobot.from_screws(**arguments)) == [1, 2]
    arguments = gough_stewart(seed=3).arguments()
    for i in (0, 3):
        arguments["limbs"][i]["masses"] = 1.5 * np.array(arguments["limbs"][i]["masses"])
    assert group_sizes(ParallelRobot.from_screws(**arguments)) == [2, 4]


def test_a_point_mass_may_sit_on_a_cross_without_mass() -> None:
    robot = build(PLATFORM)
    tree = robot.tree
    cross = next(b for b in range(1, tree.n_bodies) if not tree.masses[b] and b in tree.parents)
    masses, coms = tree.masses.copy(), tree.coms.copy()
    masses[cross], coms[cross] = 1.5, (0.01, 0.0, 0.02)
    loaded = robot.with_tree(replace(tree, masses=masses, coms=coms))
    motion = at(PLATFORM.placement, 0.3 * np.ones((2, 6)))
    found = loaded.inverse_dynamics(None, motion)
    readable = loaded.inverse_dynamics(None, motion, formulation="limb_decomposition")
    assert relative_errors(found, readable).max() < 1e-11
    assert relative_errors(found, robot.inverse_dynamics(None, motion)).max() > 1e-3
