"""Descriptions of loops and couplings that cannot be are refused by name."""

from dataclasses import replace

import numpy as np
import pytest
from linkages import motion_of, robot_of
from oracles.cases import relative_errors
from oracles.mechanisms import Z, four_bar, rssr
from oracles.random_trees import random_tree
from refusals import assert_refused, refused

from hodyn_ros import Constraints, Coupling, Loop, Robot
from hodyn_ros.errors import ModelError


class TestDescriptions:
    """What does not fit together is refused with one line."""

    @pytest.mark.parametrize(
        ("change", "said"),
        {
            "open": ({"loops": [Loop(1, 2, "ball", (0.55, 0.35, 0.0), point_b=(0.55, 0.36, 0.0))]},
                "loop 'ball 1-2' does not close at the zero configuration: its points are 0.01 m apart"),
            "turned": ({"loops": [Loop(1, 2, "hinge", (0.55, 0.35, 0), Z, axis_b=(0, 0.1, 1))]},
                "its axes are 0.0997 rad apart"),
            "no freedom": ({"loops": [Loop(1, 2, "weld", (0.55, 0.35, 0.0))]},
                "cannot move: its loops ['weld 1-2'] leave no freedom"),
            "coordinates too few": ({"coordinates": [], "driven": []}, "1 degrees of freedom and 0 coord"),
            "coordinates too many": ({"coordinates": [0, 1]}, "1 degrees of freedom, but 2 coordinates"),
            "unknown joint": ({"coordinates": ["elbow"]}, "coordinates: there is no joint 'elbow'"),
            "unknown drive": ({"driven": ["elbow"]}, "driven: there is no joint 'elbow'"),
            "drive twice": ({"driven": [0, 0]}, "driven holds joint 'joint1' twice"),
            "no drives": ({"driven": []}, "drives of robot 'robot' do not hold it: with all 0"),
            "unknown body": ({"loops": [Loop("elbow", 2, "ball", (0.55, 0.35, 0.0))]},
                "loop 'ball elbow-2': there is no body or frame 'elbow'; known"),
            "no coordinates": ({"coordinates": None, "driven": None}, "has loops; name its independent"),
            "two alike": ({"loops": 2 * [Loop(1, 2, "ball", (0.55, 0.35, 0.0))]},
                "several loops are called 'ball 1-2'"),
            "rows": ({"coordinates": [(2, ["z", "up"])]}, "rows of platform 2 must be some of"),
            "no list": ({"loops": Loop(1, 2, "ball", (0.55, 0.35, 0.0))}, "loops must be a list of Loop"),
        }.values(),
    )  # fmt: skip
    def test_loops_and_coordinates(self, change: dict[str, object], said: str) -> None:
        refused(lambda: robot_of(four_bar(), **change), said, ModelError)

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
        given = {**four_bar().tree.arguments(), "constraints": Constraints(couplings=couplings)}
        refused(lambda: Robot.from_screws(**given), said, ModelError)

    def test_one_loop(self) -> None:
        assert_refused(
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
            by=lambda arguments: Loop(*arguments),
            error=ModelError,
        )

    def test_couplings_of_themselves(self) -> None:
        refused(lambda: Coupling("a", "a"), "joint 'a' is coupled to itself", ModelError)
        refused(lambda: Coupling("a", "b", float("nan")), "ratio of the coupling of joint 'a'", ModelError)

    def test_one_curve(self) -> None:
        assert_refused(
            ({"polynomial": "curved"},
             "the polynomial of the coupling of joint 'a' must be a list of numbers"),
            ({"polynomial": []}, "coupling of joint 'a': its polynomial must be a list of numbers"),
            ({"polynomial": [1.0, np.nan]},
             "coupling of joint 'a': its polynomial must be a list of numbers"),
            ({"polynomial": [1.0], "ratio": 2.0}, "'a' has polynomial beside a ratio or an offset"),
            ({"polynomial": [1.0], "table": ([0], [0])}, "'a' has polynomial and table; give one of them"),
            ({"degree": 7}, "'a' has no table, so it has neither degree nor period"),
            ({"table": [0, 1]}, "the table of the coupling of joint 'a' must be two lists of numbers"),
            ({"table": (range(6), range(7))}, "'a': its table holds 6 positions and 7 values"),
            ({"table": ([0, 2, 1, 3, 4, 5], range(6))}, "'a': the positions of its table must increase"),
            ({"table": (range(6), [0, np.nan, 1, 3, 4, 5])}, "'a': the positions ... all figures be finite"),
            ({"table": (range(6), range(6)), "degree": 4}, "'a': the degree of its spline must be one of"),
            ({"table": (range(5), range(5))}, "'a': a spline of degree 5 needs 6 points or more, found 5"),
            ({"table": (range(7), range(7)), "periodic": True}, "begins with 0 and ends with 6"),
            by=lambda arguments: Coupling("a", "b", **arguments),
            error=ModelError,
        )  # fmt: skip

    def test_a_rod_that_spins_is_explained(self) -> None:
        mechanism = rssr()
        with pytest.raises(ModelError, match="do not determine its pose.*kind 'spin'"):
            robot_of(replace(mechanism, loops=mechanism.loops[:1]))

    def test_motion_without_mass_is_refused(self) -> None:
        tree = four_bar().tree
        bare = replace(tree, masses=0.0 * tree.masses, coms=0.0 * tree.coms, inertias=0.0 * tree.inertias)
        refused(lambda: robot_of(replace(four_bar(), tree=bare)), "without moving any mass", ModelError)

    def test_robots_whose_axes_meet_in_one_point_have_a_size(self) -> None:
        """Where that point is rounded, what it seems to extend is no length to measure slides by."""
        point, axes = (
            np.array([0.7154048, -0.68319515, 0.11259569]),
            np.array([[1, 2, 3], [3, -1, 2], [2, 2, 1]]),
        )
        turns, slides = axes / np.linalg.norm(axes, axis=1)[:, None], np.eye(3)[:2]
        placements = np.tile(np.eye(4), (5, 1, 1))
        placements[:, :3, 3] = point
        robot = Robot.from_screws(
            range(-1, 4),
            [*(np.hstack([e, np.cross(point, e)]) for e in turns), *(np.hstack([0 * e, e]) for e in slides)],
            placements,
            np.ones(5),
            np.full((5, 3), 0.1),
            [0.01 * np.eye(3)] * 5,
            constraints=Constraints(couplings=[Coupling(4, 3, 0.5)]),
        )
        assert robot.closure is not None
        assert robot.closure.size == 1.0
        q = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 4))
        torques = robot.inverse_dynamics(q, formulation="embedding")
        np.testing.assert_allclose(robot.forward_dynamics(q[:2], torques), q[2:], rtol=1e-10)

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


@pytest.mark.parametrize("floats", (False, True))
def test_a_tree_is_a_closure_without_loops(floats: bool) -> None:
    robot = Robot.from_screws(**random_tree(2, 4, floating_base=floats).arguments())
    structure, n = robot.structure, robot.tree.n_joints
    assert robot.closure is None and structure.loops == () and structure.platform is None
    assert structure.joints == structure.driven == structure.leading == tuple(range(n))
    assert structure.base_prescribed == robot.moves_base == floats
    assert (structure.leader, structure.n_leader_arrays) == ((0, 2) if floats else (None, 0))
    np.testing.assert_array_equal(structure.coupling_matrix, np.eye(n + 6 * floats))
    assert robot.joint_names == robot.driven_joints == robot.coordinates == robot.tree.joint_names
