"""Kinds of loops: rods, welds and rows, and platforms on limbs written as loops."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from linkages import motion_of, robot_of
from oracles.cases import relative_errors
from oracles.mechanisms import MECHANISMS, Closed, Z, four_bar, rssr
from refusals import refused
from sweeps import THOROUGH

from hodyn_ros import Loop
from hodyn_ros.errors import ModelError


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
        call = partial(robot_of, four_bar(), loops=[Loop(1, 2, point_b=(0.5, 0.2, 0.0), **rows)])
        refused(call, "loop 'rows 1-2' ... along y its points are 0.2", ModelError)
