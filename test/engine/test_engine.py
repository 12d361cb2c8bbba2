"""The engine: one recursion, read with floats, with arrays and as compiled code, in frames of its choice."""

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from oracles.cases import relative_errors
from oracles.motions import random_stack
from oracles.random_trees import Tree, random_tree
from refusals import Like, like, not_finite, refused
from sweeps import some

from hodyn_ros import OverflowingError, Robot
from hodyn_ros.array import Array
from hodyn_ros.codegen import emit
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.dynamics.read_robot import read_robot
from hodyn_ros.engine import kernels
from hodyn_ros.engine.series.canonical import CanonicalBody, canonical_bodies
from hodyn_ros.model.tree import JointKind, TreeModel
from hodyn_ros.share import find


def model_of(tree: Tree) -> TreeModel:
    return Robot.from_screws(**tree.arguments()).tree


def panda() -> TreeModel:
    return read_robot(find("config", "panda.yaml")).model


class TestCanonicalFrames:
    def test_regrouping_empties_what_the_joint_does_not_move(self) -> None:
        model = model_of(random_tree(23, 12))
        for kind, body in zip(model.kinds, canonical_bodies(model)):
            if kind is JointKind.REVOLUTE:
                assert body.mass == 0.0
                assert body.first_moment[2] == 0.0
                assert body.second_moment[2, 2] == 0.0
            elif kind is JointKind.PRISMATIC:
                assert not body.second_moment.any()
            else:
                assert body.second_moment[2, 2] == 0.0

    @pytest.mark.parametrize("floating_base", [False, True])
    def test_frames_put_the_joint_on_z_and_the_body_where_it_is(self, floating_base: bool) -> None:
        tree = random_tree(24, 10, floating_base=floating_base)
        model = model_of(tree)
        frames: list[Array] = []
        for j, body in enumerate(canonical_bodies(model)):
            assert_rotation(body.rotation)
            frame = frames[body.parent] if body.parent >= 0 else np.eye(4)
            frame = frame @ placed(body)
            frames.append(frame)
            if body.joint < 0:
                continue
            np.testing.assert_allclose(frame @ body.body_in_frame, model.placements[j], atol=1e-14)
            screw = model.screws[j]
            axis = screw[3:] if body.rotation_gain == 0.0 else screw[:3]
            np.testing.assert_allclose(frame[:3, 2], axis, atol=1e-14)
            assert (body.rotation_gain, body.translation_gain) == (
                (0.0, 1.0) if model.kinds[j] is JointKind.PRISMATIC else (1.0, model.pitches[j])
            )
            if body.rotation_gain:
                pitch = np.cross(frame[:3, 3], axis) + model.pitches[j] * axis
                np.testing.assert_allclose(pitch, screw[3:], atol=1e-14)

    @pytest.mark.parametrize("tilt", [1e-9, 1e-7, 4e-6, 1e-4, 3e-3, 0.03])
    def test_axes_that_rounded_right_angles_leave_almost_parallel_cost_no_digits(self, tilt: float) -> None:
        axes = [[0.0, np.sin(turn), np.cos(turn)] for turn in (1.5, 0.0, tilt, -tilt)]
        tree = random_tree(np.random.default_rng(5), 4, branching=0.0).arguments()
        points = tree["placements"][:, :3, 3]
        tree["screws"] = [[*e, *np.cross(p, e)] for e, p in zip(axes, points)]
        robot = Robot.from_screws(**tree)
        q = random_stack(np.random.default_rng(6), 5, 4)
        expected = robot.inverse_dynamics(q, formulation="spatial")
        assert relative_errors(robot.inverse_dynamics(q), expected).max() < 1e-13

    def test_every_rotation_is_sparse(self) -> None:
        for body in canonical_bodies(model_of(random_tree(25, 10))):
            assert body.rotation[2, 0] == 0.0

    def test_the_panda_is_all_zeros_and_ones(self) -> None:
        """Its axes meet at right angles: nothing but offsets and inertias is left to multiply with."""
        for body in canonical_bodies(panda()):
            assert set(np.abs(body.rotation).ravel()) <= {0.0, 1.0}
            assert np.count_nonzero(body.translation) <= 2

    @pytest.mark.parametrize(("order", "most"), [(0, 650), (1, 1480), (2, 2600), (4, 5600)])
    def test_the_panda_takes_few_operations(self, order: int, most: int) -> None:
        kernel = kernels.inverse_dynamics(panda(), order)
        assert isinstance(kernel, Kernel)
        assert kernel.operations <= most

    def test_forward_dynamics_of_the_panda_takes_few_operations(self) -> None:
        kernel = kernels.hybrid_dynamics(panda(), 0)
        assert isinstance(kernel, Kernel)
        assert kernel.operations <= 2040


def placed(body: CanonicalBody) -> Array:
    """Return the pose (4, 4) of a body in its parent at the zero configuration."""
    pose, turn = np.eye(4), np.eye(4)
    pose[:3, :3], pose[:3, 3] = body.rotation, body.translation
    cosine, sine = np.cos(body.offset), np.sin(body.offset)
    turn[:2, :2] = [[cosine, -sine], [sine, cosine]]
    return pose @ turn


def assert_rotation(matrix: Array) -> None:
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(matrix) > 0.0


class TestBatches:
    def test_threads_and_chunks_do_not_show(self) -> None:
        tree = random_tree(70, 3)
        kernel = kernels.inverse_dynamics(model_of(tree), 0)
        batch = random_stack(71, 10000 * 3, 3, rate=1.0).reshape(10000, 3, 3)
        expected = np.array([kernel.function(sample) for sample in batch[::999]])
        for threads in (1, 2, 5):
            found = kernel.batch(batch, threads=threads)
            np.testing.assert_allclose(found[::999], expected, rtol=1e-13, atol=1e-13)
            np.testing.assert_array_equal(found, kernel.batch(batch, threads=1))

    @pytest.mark.parametrize(
        ("value", "error"), [(np.nan, not_finite("q", (9000, 1, 2))), (1e200, like(OverflowingError))]
    )
    def test_a_spoiled_sample_is_found_among_many(self, value: float, error: Like) -> None:
        kernel = kernels.inverse_dynamics(model_of(random_tree(70, 3, kinds=("revolute",))), 0)
        batch = random_stack(71, 10000 * 3, 3, rate=1.0).reshape(10000, 3, 3)
        batch[9000, 1, 2] = value
        for threads in (1, 2):
            refused(partial(kernel.batch, batch, threads=threads), error)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("size", some([3, 49, 200, 2500], 3, 49, 200))
    def test_large_results_are_written_past_the_caches(
        self, size: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At any place in a line of memory, with numbers around them left as they were."""
        count = 37
        batch = random_stack(73, count, 3).reshape(count, 1, 3).astype(dtype)
        expected = batch[..., np.arange(size) % 3] * np.arange(size, dtype=dtype)
        monkeypatch.setattr(emit, "_STREAMED", 4 * size)
        monkeypatch.setattr(emit, "_STAGED", 64)
        kernel = Kernel(lambda a: [[a[0][k % 3] * float(k) for k in range(size)]], [("a", (1, 3))])
        for shift in range(5):
            room = np.full(count * size + 16, 7.0, dtype)
            out = room[shift : shift + count * size].reshape(count, 1, size)
            kernel.batch(batch, out=out)
            np.testing.assert_array_equal(out, expected)
            assert (room[:shift] == 7.0).all() and (room[shift + count * size :] == 7.0).all()
        batch[20, 0, 1] = np.nan
        refused(lambda: kernel.batch(batch), not_finite("a", (20, 0, 1)))

    def test_a_forked_process_computes_batches_too(self) -> None:
        """It has none of its parent's threads."""
        script = (
            "import os, signal\n"
            "import numpy as np\n"
            "from hodyn_ros.codegen.kernel import Kernel\n"
            "kernel = Kernel(lambda a: [[2.0 * a[0][0]]], [('a', (1, 1))])\n"
            "batch = np.ones((20000, 1, 1))\n"
            "assert (kernel.batch(batch, threads=2) == 2.0).all()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    signal.alarm(20)\n"
            "    os._exit(0 if (kernel.batch(batch, threads=2) == 2.0).all() else 1)\n"
            "print(os.waitpid(child, 0)[1])\n"
        )
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
