"""Positions of parallel robots: branches, assembly modes, singular poses, and what is left after an error."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.cases import relative_errors
from oracles.motions import random_stack
from oracles.parallel_robots import gough_stewart, planar_3rrr

from hodyn_ros import (
    AppliedWrench,
    ConvergenceError,
    InputError,
    ModelError,
    ParallelRobot,
    SingularError,
)
from hodyn_ros.motion import twists_to_world
from hodyn_ros.parallel.limb_kinematics import limb_pose
from hodyn_ros.se3 import exp

Array = NDArray[np.float64]

PLATFORM = gough_stewart()
HINGE = planar_3rrr(side=0.0)
TRIANGLE = planar_3rrr(side=0.08)
REST = np.zeros((4, 6))


def build(arrays: object) -> ParallelRobot:
    return ParallelRobot.from_screws(**arrays.arguments())  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def shared_platform() -> ParallelRobot:
    return build(PLATFORM)


@pytest.fixture
def platform(shared_platform: ParallelRobot) -> ParallelRobot:
    shared_platform.reset()
    return shared_platform


@pytest.fixture(scope="module")
def shared_hinge() -> ParallelRobot:
    return build(HINGE)


@pytest.fixture
def hinge(shared_hinge: ParallelRobot) -> ParallelRobot:
    shared_hinge.reset()
    return shared_hinge


def moved(home: Array, x: float, y: float, z: float = 0.0) -> Array:
    pose = home.copy()
    pose[:3, 3] += (x, y, z)
    return pose


def test_says_what_it_consists_of(platform: ParallelRobot) -> None:
    assert (platform.n_joints, platform.n_driven, platform.n_dof) == (36, 6, 6)
    assert platform.driven_joint_names[1] == "limb2_joint3"
    assert np.array_equal(platform.home_pose, PLATFORM.placement)
    assert platform.joint_names[:2] == ("limb1_joint1", "limb1_joint2")


def test_all_limbs_meet_at_the_platform(platform: ParallelRobot) -> None:
    pose = PLATFORM.placement @ exp(np.array([0.3, -0.2, 0.4, 0.02, -0.03, 0.05]))
    joints = platform.inverse_kinematics(pose)
    assert joints.shape == (1, 36)
    for limb, part in zip(platform.model.limbs, platform.model.slices):
        assert np.allclose(limb_pose(limb, joints[0, part]), pose, rtol=0.0, atol=1e-14)
    assert np.array_equal(platform.positions, joints[0])


def test_leg_lengths_are_distances(platform: ParallelRobot) -> None:
    pose = PLATFORM.placement @ exp(np.array([0.2, 0.1, -0.3, 0.02, 0.01, -0.04]))
    expected = []
    for tree in PLATFORM.limbs:
        bottom, top = tree.placements[0, :3, 3], tree.placements[2, :3, 3]
        carried = pose @ np.linalg.inv(PLATFORM.placement) @ np.array([*top, 1.0])
        expected.append(np.linalg.norm(carried[:3] - bottom) - np.linalg.norm(top - bottom))
    assert np.allclose(platform.drive_motion(pose)[0], expected, rtol=0.0, atol=1e-14)


def test_a_seed_selects_the_branch(hinge: ParallelRobot) -> None:
    """Every arm reaches the tool with its elbow on either side, and goes on as it began."""
    home = HINGE.placement
    other = np.array([0.0, 0.0, 0.0, 1.7, -3.4, 1.7, 0.0, 0.0, 0.0])
    beside = hinge.inverse_kinematics(home, seed=other)[0]
    assert np.allclose(beside[[0, 1, 2, 6, 7, 8]], 0.0, rtol=0.0, atol=1e-12)
    assert abs(beside[3]) > 0.5
    target = moved(home, 0.1, 0.05)
    followed = hinge.drive_motion(target)[0]
    hinge.reset()
    first = hinge.drive_motion(target)[0]
    assert np.allclose(followed[[0, 2]], first[[0, 2]], rtol=0.0, atol=1e-12)
    assert abs(followed[1] - first[1]) > 0.5
    hinge.reset(beside)
    assert np.allclose(hinge.drive_motion(target)[0], followed, rtol=0.0, atol=1e-12)
    forces = hinge.inverse_dynamics(target, np.ones((4, 1)) * HINGE.dof.sum(axis=1))
    assert np.allclose(hinge.positions[hinge.model.driven[1]], followed[1], rtol=0.0, atol=1e-12)
    assert forces.shape == (3, 3)


@pytest.mark.parametrize("frame", ["body", "world"])
@pytest.mark.parametrize("arrays", [PLATFORM, TRIANGLE, HINGE])
def test_forward_kinematics_returns_the_motion(arrays: object, frame: str) -> None:
    robot, dof = build(arrays), arrays.dof  # type: ignore[attr-defined]
    pose = robot.home_pose @ exp(dof @ np.full(robot.n_dof, 0.07))
    twists = random_stack(3, 4, robot.n_dof) @ dof.T
    given = twists if frame == "body" else twists_to_world(pose, twists)
    drives = robot.drive_motion(pose, given, frame)
    robot.reset()
    found = robot.forward_kinematics(drives, frame)
    assert np.allclose(found.pose, pose, rtol=0.0, atol=1e-13)
    assert relative_errors(found.twists, given).max() < 1e-10
    assert robot.forward_kinematics(drives[0], seed=robot.positions).twists.shape == (0, 6)


def test_redundant_drives_must_not_contradict_each_other(hinge: ParallelRobot) -> None:
    drives = hinge.drive_motion(moved(HINGE.placement, 0.05, 0.02), np.ones((2, 1)) * HINGE.dof.sum(axis=1))
    hinge.reset()
    with pytest.raises(InputError, match="positions of the 3 drives contradict each other"):
        hinge.forward_kinematics(drives[0] + np.array([0.0, 0.0, 0.01]))
    drives[2, 1] += 0.1
    with pytest.raises(InputError, match="derivative 2 of the positions of the drives"):
        hinge.forward_kinematics(drives)
    assert np.array_equal(hinge.positions, np.zeros(9))


def test_a_path_costs_no_accuracy(platform: ParallelRobot) -> None:
    """Calls that start where the last one ended find what a call from the home pose finds."""
    shape = random_stack(2, 4, 6, rate=1.0)
    for t in np.linspace(0.0, 1.0, 40):
        pose = PLATFORM.placement @ exp(0.4 * np.sin(3.0 * t) * np.array([1.0, 0.5, -0.7, 0.05, 0.1, 0.06]))
        along = platform.inverse_dynamics(pose, shape)
    platform.reset()
    alone = platform.inverse_dynamics(pose, shape)
    assert relative_errors(along, alone).max() < 1e-12


def test_a_jump_stays_on_the_branch(platform: ParallelRobot) -> None:
    """From one end of the workspace to the other in one call."""
    ends = [exp(sign * np.array([0.5, 0.4, 0.8, 0.06, -0.05, 0.03])) for sign in (1.0, -1.0)]
    lengths = []
    for end in (*ends, ends[0]):
        platform.inverse_dynamics(PLATFORM.placement @ end, REST)
        lengths.append(platform.positions)
    assert np.allclose(lengths[0], lengths[2], rtol=0.0, atol=1e-12)
    assert np.abs(lengths[1]).max() < 1.5


@pytest.mark.parametrize("compiled_before", [False, True])
def test_out_of_the_workspace_the_limb_is_named_and_nothing_is_lost(
    hinge: ParallelRobot, compiled_before: bool
) -> None:
    good, far = moved(HINGE.placement, 0.1, 0.0), moved(HINGE.placement, 0.6, 0.0)
    if compiled_before:
        hinge.inverse_dynamics(good, REST)
    hinge.reset()
    before = hinge.drive_motion(good)
    calls = (
        lambda: hinge.inverse_dynamics(far, REST),
        lambda: hinge.inverse_dynamics(far, REST, formulation="body_fixed"),
        lambda: hinge.inverse_kinematics(far),
        lambda: hinge.forward_dynamics(far, np.zeros(6), np.zeros(3)),
    )
    for call in calls:
        with pytest.raises(ConvergenceError, match="limb 'limb1' does not reach the platform") as caught:
            call()
        assert 0.1 < caught.value.distance < 0.6
        assert np.array_equal(hinge.positions[list(hinge.model.driven)], before[0])
    assert np.isfinite(hinge.inverse_dynamics(good, REST)).all()
    assert np.allclose(hinge.drive_motion(good), before, rtol=0.0, atol=1e-13)


def test_a_pose_out_of_the_plane_is_out_of_reach(hinge: ParallelRobot) -> None:
    with pytest.raises(ConvergenceError, match="limb 'limb1'") as caught:
        hinge.inverse_dynamics(moved(HINGE.placement, 0.0, 0.0, 0.05), REST)
    assert caught.value.distance == pytest.approx(0.05, rel=1e-6)


def test_a_stretched_arm_is_singular(hinge: ParallelRobot) -> None:
    base = HINGE.limbs[0].placements[0, :3, 3]
    along = HINGE.placement[:3, 3] - base
    pose = HINGE.placement.copy()
    pose[:3, 3] = base + 0.8 * along / np.linalg.norm(along)
    with pytest.raises((SingularError, ConvergenceError), match="limb 'limb1'"):
        hinge.inverse_dynamics(pose, REST)
    assert np.array_equal(hinge.positions, np.zeros(9))


def test_near_the_stretched_arm_the_distance_shrinks(hinge: ParallelRobot) -> None:
    base = HINGE.limbs[0].placements[0, :3, 3]
    along = HINGE.placement[:3, 3] - base
    distances = []
    for reach in (0.7, 0.79, 0.7999):
        pose = HINGE.placement.copy()
        pose[:3, 3] = base + reach * along / np.linalg.norm(along)
        distances.append(hinge.distance_to_singularity(pose))
        state = hinge.solve(pose, REST)
    assert distances[0] > distances[1] > distances[2] > 0.0
    assert distances[2] < 0.1 * distances[0]
    assert state.near_singularity
    assert hinge.singular_values(pose).limbs.argmin() == 0


def test_drives_that_do_not_hold_the_platform_are_named() -> None:
    """Turned by a quarter, the lines of the six legs of this platform touch one screw."""
    robot = build(PLATFORM)
    values = []
    for angle in (0.0, 0.5, 1.0, 1.4):
        values.append(
            robot.singular_values(PLATFORM.placement @ exp(np.array([0, 0, angle, 0, 0, 0]))).drives
        )
    assert values[0] > values[1] > values[2] > values[3]
    quarter = PLATFORM.placement @ exp(np.array([0, 0, np.pi / 2, 0, 0, 0]))
    for formulation in (None, "body_fixed"):
        with pytest.raises(SingularError, match="no forces of theirs hold it") as caught:
            robot.inverse_dynamics(quarter, REST, formulation=formulation)
        assert caught.value.condition > 1e10
    with pytest.raises(SingularError):
        robot.forward_dynamics(quarter, np.zeros(6), np.zeros(6))
    assert np.isfinite(robot.inverse_dynamics(PLATFORM.placement, REST)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"twists": np.zeros((1, 6))}, r"the twists must have shape \(order \+ 2, 6\)"),
        ({"twists": np.zeros((4, 5))}, r"found \(4, 5\)"),
        ({"twists": np.full((4, 6), np.nan)}, "the twists holds? NaN"),
        ({"twists": "fast"}, "the twists must hold real numbers"),
        ({"pose": np.eye(3)}, r"the pose must have shape \(4, 4\)"),
        ({"pose": np.diag([1.0, 1.0, -1.0, 1.0])}, "the pose of the platform must be a homogeneous matrix"),
        ({"pose": 2.0 * np.eye(4)}, "must be a homogeneous matrix"),
        ({"pose": np.full((4, 4), np.inf)}, "the pose holds NaN or infinite"),
        ({"frame": "hybrid"}, "frame must be one of"),
        ({"frame": ["body"]}, "frame must be one of"),
        ({"formulation": "closed_form"}, "there is no formulation 'closed_form'"),
        ({"seed": np.zeros(5)}, r"the seed must have shape \(36,\)"),
        ({"preload": np.zeros(6)}, "a preload needs more drives than degrees of freedom"),
        ({"wrenches": "gravity"}, "wrenches must be a list of AppliedWrench"),
        ({"wrenches": [np.zeros(6)]}, "found ndarray in it"),
        ({"wrenches": AppliedWrench("leg", np.zeros(6))}, "there is no body 'leg'"),
        ({"twists": np.full((4, 6), 1e200)}, "too large"),
    ],
)
@pytest.mark.parametrize("compiled_before", [False, True])
def test_bad_input_is_refused(
    platform: ParallelRobot, change: dict[str, object], message: str, compiled_before: bool
) -> None:
    if compiled_before:
        platform.inverse_dynamics(PLATFORM.placement, REST)
    arguments = {"pose": PLATFORM.placement, "twists": REST, **change}
    with pytest.raises(InputError, match=message):
        platform.inverse_dynamics(**arguments)  # type: ignore[arg-type]
    assert np.array_equal(platform.positions, np.zeros(36)) or np.abs(platform.positions).max() < 1e-12


@pytest.mark.parametrize("frame", ["body", "world"])
def test_twists_outside_of_the_degrees_of_freedom_are_refused(hinge: ParallelRobot, frame: str) -> None:
    twists = np.zeros((4, 6))
    twists[0, 3] = 1.0
    twists[2, 2] = 1e-3
    for _ in range(2):
        with pytest.raises(
            InputError, match="derivative 2 of the twist has the part .* outside of platform_dof"
        ):
            hinge.inverse_dynamics(HINGE.placement, twists, frame)
        hinge.inverse_dynamics(HINGE.placement, REST, frame)


@pytest.mark.parametrize("frame", ["body", "world"])
def test_nothing_holds_the_platform_against_a_turn_on_its_hinge(hinge: ParallelRobot, frame: str) -> None:
    pose = moved(HINGE.placement, 0.1, 0.05)
    x, y = pose[:2, 3] if frame == "world" else (0.0, 0.0)
    force = np.array([[2.0, 3.0], [-1.0, 5.0]])
    through = np.zeros((2, 6))
    through[:, 3:5] = force
    through[:, 2] = x * force[:, 1] - y * force[:, 0]
    good = AppliedWrench("platform", through, frame=frame)  # type: ignore[arg-type]
    forces = hinge.inverse_dynamics(pose, REST, wrenches=good)
    assert np.isfinite(hinge.forward_dynamics(pose, REST[0], forces, wrenches=good)).all()
    beside = through.copy()
    beside[0, 2] += 0.1
    bad = AppliedWrench("platform", beside, frame=frame)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="would turn it on the joints that carry it"):
        hinge.inverse_dynamics(pose, REST, wrenches=bad)
    with pytest.raises(InputError, match="would turn it on the joints that carry it"):
        hinge.forward_dynamics(pose, REST[0], forces, wrenches=bad)


def test_forces_are_checked(hinge: ParallelRobot) -> None:
    with pytest.raises(InputError, match=r"the forces must have shape \(3,\) or \(orders, 3\), found \(2,\)"):
        hinge.forward_dynamics(HINGE.placement, np.zeros(6), np.zeros(2))
    with pytest.raises(InputError, match=r"the twist must have shape \(6,\)"):
        hinge.forward_dynamics(HINGE.placement, np.zeros(3), np.zeros(3))
    with pytest.raises(InputError, match="the motion of the drives holds NaN"):
        hinge.forward_kinematics([0.0, np.nan, 0.0])
    with pytest.raises(InputError, match=r"the preload must have shape"):
        hinge.inverse_dynamics(HINGE.placement, REST, preload=np.zeros((2, 2)))


def test_any_form_of_numbers_will_do(platform: ParallelRobot) -> None:
    twists = random_stack(1, 4, 6)
    expected = platform.inverse_dynamics(PLATFORM.placement, twists)
    for pose, given in (
        (PLATFORM.placement.tolist(), twists.tolist()),
        (np.asfortranarray(PLATFORM.placement), np.asfortranarray(twists)),
    ):
        for _ in range(2):
            assert relative_errors(platform.inverse_dynamics(pose, given), expected).max() < 1e-13
    kept = platform.inverse_dynamics(PLATFORM.placement, twists)
    platform.inverse_dynamics(PLATFORM.placement, 2.0 * twists)
    assert relative_errors(kept, expected).max() < 1e-13, "a result must not change with later calls"


def test_threads_may_share_a_robot(platform: ParallelRobot) -> None:
    twists = random_stack(1, 4, 6)
    poses = [PLATFORM.placement @ exp(a * np.array([1.0, 0.3, -0.5, 0.1, 0.1, 0.1])) for a in (-0.1, 0.1)]
    expected = [platform.inverse_dynamics(pose, twists) for pose in poses]
    errors: list[float] = []

    def work(i: int) -> None:
        errors.extend(
            relative_errors(platform.inverse_dynamics(poses[i], twists), expected[i]).max()
            for _ in range(300)
        )

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 1200
    assert max(errors) < 1e-11


def test_limbs_of_one_build_share_their_code() -> None:
    from hodyn_ros.parallel.compiled import limb_groups

    assert [len(group) for group in limb_groups(build(PLATFORM).model)] == [6]
    assert [len(group) for group in limb_groups(build(gough_stewart(seed=3)).model)] == [6]
    arguments = TRIANGLE.arguments()
    arguments["limbs"][1]["masses"] = 1.001 * arguments["limbs"][1]["masses"]
    model = ParallelRobot.from_screws(**arguments).model
    assert sorted(len(group) for group in limb_groups(model)) == [1, 2]


def test_limbs_of_different_build_work_together() -> None:
    """Legs in groups of their own, in another order in memory than in the robot, give the same forces."""
    arguments = gough_stewart(seed=3).arguments()
    plain = ParallelRobot.from_screws(**arguments)
    for i in (0, 3):
        arguments["limbs"][i]["masses"] = arguments["limbs"][i]["masses"] * 1.5
    mixed = ParallelRobot.from_screws(**arguments)
    pose = plain.home_pose @ exp(np.array([0.2, -0.1, 0.15, 0.01, 0.02, -0.03]))
    twists = random_stack(8, 4, 6)
    published = mixed.inverse_dynamics(pose, twists, formulation="body_fixed")
    mixed.reset()
    assert relative_errors(mixed.inverse_dynamics(pose, twists), published).max() < 1e-12
    assert relative_errors(plain.inverse_dynamics(pose, twists), published).max() > 1e-3
    assert np.allclose(mixed.positions, plain.positions, rtol=0.0, atol=1e-12)


def test_a_robot_needs_limbs() -> None:
    with pytest.raises(ModelError, match="at least one limb"):
        ParallelRobot.from_screws([], {"mass": 1.0}, np.eye(6))
