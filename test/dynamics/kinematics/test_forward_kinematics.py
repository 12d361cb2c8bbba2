"""Forward kinematics of any order: against exact arithmetic, Taylor polynomials, and itself converted."""

from typing import get_args

import numpy as np
import pytest
from case_robots import of_tree, robot_of
from hypothesis import given
from oracles import mp_dynamics as mp
from oracles.cases import Case, cases, make_case
from oracles.motions import random_stack
from oracles.random_trees import random_tree
from places import CONFIG, DATA
from sweeps import examples

from hodyn_ros import Kinematics, Robot
from hodyn_ros.array import Array
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.representations import Representation, convert_screws, convert_wrenches
from hodyn_ros.model.frames import Frame

REPRESENTATIONS: tuple[Representation, ...] = get_args(Representation)
"""How the oracle calls the representations."""

EXACT = 1e-13
CONVERTED = 1e-12

PANDA = CONFIG / "panda.yaml"

representations = pytest.mark.parametrize("representation", REPRESENTATIONS)
both_bases = pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])


def kinematics_of(case: Case, representation: Representation) -> Kinematics:
    robot, base = robot_of(case)
    return robot.forward_kinematics(case.q, base, representation)  # one order above the twists of the base


def exact_motion(case: Case) -> mp.Kinematics:
    terms, flyer = len(case.q), None
    if case.base is not None:
        flyer = mp.base_poses(case.base, mp.taylor(mp.exact(case.base.twists), terms - 1), terms)
    return mp.kinematics(case.tree, mp.taylor(mp.exact(case.q), terms), flyer)


def exact_twists(motion: mp.Kinematics, representation: Representation) -> Array:
    frame = representation
    stacks = [mp.to_float(mp.derivatives(mp.twists_of(pose, frame))) for pose in motion.poses]
    return np.stack(stacks, axis=1)


def scale_of_screws(motion: Kinematics) -> Array:
    """Return how large derivatives of screws (order + 1,) may get, which themselves may vanish."""
    twists = np.abs(motion.twists).max(axis=(1, 2), initial=1.0)
    return np.concatenate([[1.0], np.maximum.accumulate(twists)]) * np.abs(motion.screws[0]).max(initial=1.0)


def assert_close(found: Array, expected: Array, tolerance: float, scale: Array | None = None) -> None:
    """Compare order by order, relative to the largest entry of the order, or of that of `scale`."""
    assert found.shape == expected.shape
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        largest = np.abs(b if scale is None else scale[k]).max(initial=0.0)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * largest, err_msg=f"order {k}")


@pytest.mark.thorough
class TestAgainstExactArithmetic:
    @representations
    @given(case=cases(8, orders=[0, 2, 4], max_loads=0))
    @examples(12)
    def test_poses_and_twists(self, representation: Representation, case: Case) -> None:
        found, motion = kinematics_of(case, representation), exact_motion(case)
        assert found.order == len(case.q) - 1
        poses = np.stack([mp.to_float(pose[0]) for pose in motion.poses])
        np.testing.assert_allclose(found.poses[:, :3], poses, rtol=0, atol=EXACT)
        np.testing.assert_array_equal(found.poses[:, 3], [[0, 0, 0, 1]] * case.tree.n_bodies)
        assert_close(found.twists, exact_twists(motion, representation), EXACT)

    @given(case=cases(8, orders=[0, 2, 4], max_loads=0))
    @examples(12)
    def test_spatial_joint_screws(self, case: Case) -> None:
        found = kinematics_of(case, "spatial")
        screws = [mp.to_float(mp.derivatives(s)) for s in exact_motion(case).screws if s is not None]
        assert found.screws.shape == (len(case.q), case.tree.n_joints, 6)
        if screws:
            assert_close(found.screws, np.stack(screws, axis=1), EXACT, scale_of_screws(found))

    @both_bases
    def test_hybrid_jacobian_of_a_named_frame(self, floating_base: bool) -> None:
        case = make_case(1, 7, 3, floating_base, branching=0.0)
        motion, offset = exact_motion(case), np.eye(4)
        offset[:3, 3] = (0.1, -0.2, 0.3)
        plain, base = robot_of(case)
        robot = Robot(plain.model, frames={"tool": Frame(5, offset)})
        found = robot.forward_kinematics(case.q, base, "hybrid").jacobian_of("tool")
        point = motion.poses[5][:, :, :3] @ mp.exact(offset[:3, 3]) + motion.poses[5][:, :, 3]
        for joint, screw in enumerate(s for s in motion.screws[:6] if s is not None):
            linear = screw[:, 3:] + mp.cross(screw[:, :3], point)
            column = mp.to_float(mp.derivatives(np.concatenate([screw[:, :3], linear], axis=1)))
            assert_close(found[..., joint], column, EXACT)
        np.testing.assert_array_equal(found[..., 6 - int(floating_base) :], 0.0)


class TestRepresentations:
    @given(case=cases(8, orders=[0, 2, 4], max_loads=0))
    @examples(10, share=5)
    def test_each_converts_to_each(self, case: Case) -> None:
        """The recursions are three; a conversion must lead from each to each of the others."""
        found = {name: kinematics_of(case, name) for name in REPRESENTATIONS}
        scale = scale_of_screws(found["spatial"])
        for source in REPRESENTATIONS:
            for target in REPRESENTATIONS:
                converted = found[source].in_representation(target)
                assert converted.representation == target
                assert_close(converted.twists, found[target].twists, CONVERTED)
                assert_close(converted.screws, found[target].screws, CONVERTED, scale)

    @pytest.mark.parametrize("target", REPRESENTATIONS)
    @representations
    def test_power_is_the_same_in_all(self, representation: Representation, target: Representation) -> None:
        motion = kinematics_of(make_case(3, 3, 3), representation)
        pose, twists = motion.pose_of(2), motion.twists_of(2)
        wrenches = random_stack(4, len(twists), 6)
        moved_twists = convert_screws(twists, pose, twists, representation, target)
        moved_wrenches = convert_wrenches(wrenches, pose, twists, representation, target)
        for k in range(len(twists)):
            power = product_derivative(twists, wrenches, k, np.dot)
            scale = np.abs(moved_twists[: k + 1]).max() * np.abs(moved_wrenches[: k + 1]).max() * 6 * 2**k
            assert abs(product_derivative(moved_twists, moved_wrenches, k, np.dot) - power) <= 1e-14 * scale

    def test_twists_far_from_the_origin_keep_their_digits(self) -> None:
        case = make_case(5, 4, 1)
        far = np.eye(4)
        far[:3, 3] = (1e4, -2e4, 1e3)
        moved = Case(case.tree.moved(far), case.q, None, [])
        for name in ("body_fixed", "hybrid"):
            here, there = kinematics_of(case, name), kinematics_of(moved, name)
            assert_close(there.twists, here.twists, 1e-10)  # as placements are known to 1e-16 of 2e4 m


@pytest.mark.thorough
class TestJacobians:
    @representations
    def test_jacobians_take_joint_rates_to_twists(self, representation: Representation) -> None:
        case = make_case(8, 7, 0, branching=0.5)
        motion, scale = kinematics_of(case, representation), kinematics_of(case, "spatial").twists
        for body in range(7):
            jacobians, twists = motion.jacobian_of(body), motion.twists_of(body)
            found = np.stack([product_derivative(jacobians, case.q[1:], k) for k in range(motion.order)])
            assert_close(found, twists, CONVERTED, scale)


class TestNamedFrames:
    def test_frames_of_a_file_are_found(self) -> None:
        robot = Robot.load(PANDA)
        q = random_stack(9, 4, 7)
        motion = robot.forward_kinematics(q, representation="body_fixed")
        # the flange of the Panda: 107 mm along the axis of joint 7
        flange, link = motion.pose_of("panda_link8"), motion.pose_of("panda_link7")
        np.testing.assert_allclose(flange[:3, :3], link[:3, :3], rtol=0, atol=1e-15)
        np.testing.assert_allclose(flange[:3, 3], link[:3, 3] + 0.107 * link[:3, 2], rtol=0, atol=1e-15)
        lever = np.array([0.0, 0.0, 0.107])
        found, twists = motion.twists_of("panda_link8"), motion.twists_of("panda_link7")
        np.testing.assert_allclose(found[:, :3], twists[:, :3], rtol=0, atol=1e-12)
        expected = twists[:, 3:] + np.cross(twists[:, :3], lever)
        np.testing.assert_allclose(found[:, 3:], expected, rtol=0, atol=1e-12)

    def test_a_link_merged_into_its_parent_keeps_its_name(self) -> None:
        urdf = DATA / "branched.urdf"
        robot = Robot.from_urdf(urdf)
        merged = [name for name in robot.frames if name not in robot.model.body_names]
        assert merged
        motion = robot.forward_kinematics(random_stack(10, 3, robot.n_coordinates), representation="hybrid")
        for name in merged:
            body, offset = robot.frames[name]
            expected = offset if body < 0 else motion.poses[body] @ offset
            np.testing.assert_allclose(motion.pose_of(name), expected, rtol=0, atol=1e-15)
            assert motion.twists_of(name).shape == (2, 6)

    @representations
    def test_frames_of_the_world_stand_still(self, representation: Representation) -> None:
        placement = np.eye(4)
        placement[:3, 3] = (1.0, 2.0, 3.0)
        robot = Robot(of_tree(random_tree(11, 3)).model, frames={"table": Frame(-1, placement)})
        motion = robot.forward_kinematics(random_stack(12, 3, 3), representation=representation)
        np.testing.assert_array_equal(motion.pose_of("table"), placement)
        np.testing.assert_array_equal(motion.twists_of("table"), np.zeros((2, 6)))
        np.testing.assert_array_equal(motion.jacobian_of("table"), np.zeros((3, 6, 3)))


@pytest.mark.thorough
class TestBatches:
    def test_a_batch_is_its_samples(self) -> None:
        case, representation = make_case(13, 6, 1, True), "hybrid"
        plain, base = robot_of(case)
        robot = Robot(plain.model, frames={"tool": Frame(4, case.tree.placements[1])})
        batch = np.stack([case.q, 2.0 * case.q, random_stack(14, 4, case.tree.n_joints)])
        together = robot.forward_kinematics(batch, base, representation)
        n = case.tree.n_joints
        assert together.poses.shape == (3, 6, 4, 4)
        assert together.twists.shape == (3, 3, 6, 6)
        assert together.screws.shape == (3, 4, n, 6)
        for i, q in enumerate(batch):
            single = robot.forward_kinematics(q, base, representation)
            for name in ("poses", "twists", "screws"):
                np.testing.assert_allclose(
                    getattr(together, name)[i], getattr(single, name), rtol=1e-14, atol=1e-13
                )
            for call in ("pose_of", "twists_of", "jacobian_of"):
                np.testing.assert_allclose(
                    getattr(together, call)("tool")[i], getattr(single, call)("tool"), rtol=1e-13, atol=1e-13
                )

    def test_positions_alone_are_enough(self) -> None:
        tree, representation = random_tree(15, 4), "hybrid"
        q = random_stack(16, 3, 4)
        alone = of_tree(tree).forward_kinematics(q[:1], representation=representation)
        assert alone.order == 0
        assert alone.twists.shape == (0, 4, 6)
        whole = of_tree(tree).forward_kinematics(q, representation=representation)
        np.testing.assert_array_equal(alone.poses, whole.poses)
        np.testing.assert_array_equal(alone.screws, whole.screws[:1])
        assert alone.twists_of(3).shape == (0, 6)
        np.testing.assert_allclose(alone.jacobian_of(3), whole.jacobian_of(3)[:1], rtol=0, atol=1e-14)
        assert alone.in_representation("hybrid").twists.shape == (0, 4, 6)
