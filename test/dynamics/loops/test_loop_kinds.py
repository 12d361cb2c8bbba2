"""Kinds of loops: rods, welds and rows, and platforms on limbs written as loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linkages import motion_of, robot_of
from numpy.typing import NDArray
from oracles.cases import relative_errors
from oracles.mechanisms import MECHANISMS, Closed, Z, four_bar, rssr
from oracles.random_trees import Tree
from sweeps import THOROUGH

from hodyn_ros import BaseMotion, Constraints, Loop, Robot, share
from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.parallel.closure import model_of
from hodyn_ros.model.parallel.model import ParallelModel

Array = NDArray[np.float64]


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
