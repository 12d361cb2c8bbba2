"""Couplings and loops in files: `mimic` of URDF against Pinocchio, robot files against screws."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from oracles.cases import relative_errors
from refusals import refused

from hodyn_ros import BaseMotion, Constraints, Coupling, InputError, Loop, Robot
from hodyn_ros.errors import ModelError
from hodyn_ros.model.closure import Closure


def link(name: str, mass: float = 1.0, inertia: float = 0.02) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="0.1 0.02 -0.03"/><mass value="{mass}"/>'
        f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>'
        "</inertial></link>"
    )


def joint(name: str, parent: str, child: str, inside: str = "", kind: str = "revolute") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}'
        '<limit lower="-2" upper="2" velocity="1" effort="9"/></joint>'
    )


def mimic(of: str, figures: str = "") -> str:
    return f'<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><axis xyz="1 2 -1"/><mimic joint="{of}" {figures}/>'


HAND = "".join(
    [
        '<robot name="hand">',
        link("ground"),
        *(link(name) for name in ("palm", "left", "right", "tip")),
        joint("wrist", "ground", "palm"),
        joint("finger", "palm", "left", '<axis xyz="0 1 0"/>', "prismatic"),
        joint("other", "palm", "right", mimic("finger", 'multiplier="-1.0" offset="0.03"'), "prismatic"),
        joint("nail", "right", "tip", mimic("other", 'multiplier="20"')),
        "</robot>",
    ]
)


class TestMimic:
    def test_names(self) -> None:
        robot = Robot.from_urdf(HAND)
        assert robot.joint_names == robot.driven_joints == ("wrist", "finger")
        assert robot.tree.joint_names == ("wrist", "finger", "other", "nail")
        assert robot.limits.position_upper.tolist() == [2.0, 2.0]
        assert Robot.from_urdf(HAND, mimic=False).n_joints == 4

    @pytest.mark.parametrize("floating", [False, True])
    def test_pinocchio_with_efforts_reduced_by_hand(self, floating: bool) -> None:
        robot = Robot.from_urdf(HAND)
        model = pinocchio.buildModelFromXML(HAND)
        y = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 2))
        wrist, finger = y.T
        motion = {"wrist": wrist, "finger": finger, "other": -finger + [0.03, 0.0, 0.0]}
        motion["nail"] = 20.0 * motion["other"]
        q = np.array([motion[name] for name in model.names[1:]])
        torques = dict(zip(model.names[1:], pinocchio.rnea(model, model.createData(), *q.T)))
        expected = [torques["wrist"], torques["finger"] - torques["other"] - 20.0 * torques["nail"]]
        np.testing.assert_allclose(robot.inverse_dynamics(y)[0], expected, rtol=1e-12)
        np.testing.assert_allclose(robot.solve_loops(y).efforts[0], expected, rtol=1e-12)
        # with the root of the URDF as a base that stands still, as with one on the ground
        if floating:
            flying = Robot.from_urdf(HAND, floating_base=True)
            _, efforts = flying.inverse_dynamics(y, BaseMotion(np.eye(4), np.zeros((2, 6))))
            np.testing.assert_allclose(efforts[0], expected, rtol=1e-11)

    def test_of_fixed_joints_nothing_follows(self) -> None:
        fixed = HAND.replace('<joint name="nail" type="revolute">', '<joint name="nail" type="fixed">')
        assert Robot.from_urdf(fixed).tree.n_joints == 3

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (("other", "another"), "joint 'nail' mimics joint 'another', which does not exist; did you mean"),
            (('multiplier="20"', 'multiplier="much"'),
                "the multiplier 'much' of its <mimic> is not a number"),
            (('mimic joint="finger"', 'mimic joint="nail"'), "is coupled to itself: 'other' of 'nail' of"),
            (('mimic joint="finger"', 'mimic joint="other"'), "joint 'other' is coupled to itself"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_named(self, change: tuple[str, str], said: str) -> None:
        old, new = change
        text = HAND.replace(f'<mimic joint="{old}"', f'<mimic joint="{new}"').replace(old, new)
        if old == "other":
            text = HAND.replace('<mimic joint="other"', '<mimic joint="another"')
        refused(lambda: Robot.from_urdf(text), said, ModelError)


class TestInertias:
    def test_points_of_mass(self) -> None:
        # between other bodies: its axis is not through it
        point = link("arm", 0.7, 0.0)
        text = f'<robot name="r">{link("a")}{point}{joint("j", "a", "arm")}</robot>'
        model = pinocchio.buildModelFromXML(text)
        y = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 1))
        expected = pinocchio.rnea(model, model.createData(), *y)
        robot = Robot.from_urdf(text)
        np.testing.assert_allclose(robot.inverse_dynamics(y)[0], expected, rtol=1e-12)
        found = robot.forward_dynamics(y[:2], robot.inverse_dynamics(y))
        np.testing.assert_allclose(found[0], y[2], rtol=1e-12)

    def test_points_on_their_axis_are_refused(self) -> None:
        text = f'<robot name="r">{link("a")}{link("b")}{link("c", 0.7, 0.0)}' + joint("i", "a", "b")
        text += joint("j", "b", "c", '<axis xyz="0.1 0.02 -0.03"/>') + "</robot>"
        refused(lambda: Robot.from_urdf(text), "joints ['j'] can move without moving any mass", ModelError)

    @pytest.mark.parametrize("off", ["0", "1e-17", "5e-8"])
    def test_rods_that_slide_move_mass_however_near_the_worlds_origin(self, off: str) -> None:
        rod = link("rod", 0.7).replace('ixx="0.02"', 'ixx="0"').replace("0.1 0.02 -0.03", "0 0 0")
        slide = joint("j", "a", "rod", f'<origin xyz="{off} 0 0"/>', "prismatic")
        robot = Robot.from_urdf(f'<robot name="r">{link("a")}{rod}{slide}</robot>')
        np.testing.assert_allclose(robot.mass_matrix([[0.3]]), [[[0.7]]], rtol=1e-12)

    def test_bodies_without_mass_may_follow(self) -> None:
        text = HAND.replace(link("tip"), '<link name="tip"/>')
        assert Robot.from_urdf(text).inverse_dynamics(np.zeros((3, 2))).shape == (1, 2)
        refused(lambda: Robot.from_urdf(text, mimic=False), "'tip' has no mass ... other body", ModelError)

    def test_coordinates_that_move_no_mass_have_efforts_but_no_accelerations(self) -> None:
        text = HAND
        for name in ("left", "right", "tip"):
            text = text.replace(link(name), f'<link name="{name}"/>')
        robot = Robot.from_urdf(text)
        assert robot.inverse_dynamics(np.ones((3, 2)))[0, 1] == pytest.approx(0.0, abs=1e-12)
        with pytest.raises(InputError, match=r"joints \['finger', 'other', 'nail'\].*without moving any"):
            robot.forward_dynamics(np.zeros((2, 2)), np.zeros((1, 2)))


FOUR_BAR = """
name: four_bar
gravity: [0, -9.81, 0]
bodies:
  - name: crank
    mass: 1
    com: [0.05, 0.1, 0]
    inertia: &I {about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.01, iyz: 0, izz: 0.02}
  - {name: coupler, mass: 2, com: [0.2, 0.1, 0], inertia: *I}
  - {name: rocker, mass: 1, com: [0, 0.1, 0], inertia: *I}
joints:
  - {name: drive, type: revolute, parent: world, child: crank, axis: [0, 0, 1], limits: {upper: 2}}
  - {name: knee, type: revolute, parent: crank, child: coupler, axis: [0, 0, 1], origin: {xyz: [0.1, 0.2, 0]}}
  - {name: swing, type: revolute, parent: world, child: rocker, axis: [0, 0, 1], origin: {xyz: [0.5, 0, 0]}}
frames:
  - {name: coupler_end, body: coupler, origin: {xyz: [0.45, 0.15, 0]}}
  - {name: rocker_end, body: rocker, origin: {xyz: [0.05, 0.35, 0]}}
loops:
  - {name: pin, kind: hinge, a: coupler_end, b: rocker_end}
driven: [drive]
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "robot.yaml"
        path.write_text(text)
        return path

    return write


class TestRobotFiles:
    def test_loops_are_those_of_screws(self, written: Callable[[str], Path]) -> None:
        robot = Robot.load(written(FOUR_BAR))
        points = np.array([[0, 0, 0], [0.1, 0.2, 0], [0.5, 0, 0]])
        placements = np.tile(np.eye(4), (3, 1, 1))
        placements[:, :3, 3] = points
        expected = Robot.from_screws(
            [-1, 0, -1],
            [[0, 0, 1, *np.cross(p, (0, 0, 1))] for p in points],
            placements,
            [1, 2, 1],
            [[0.05, 0.1, 0], [0.2, 0.1, 0], [0, 0.1, 0]],
            [np.diag([0.01, 0.01, 0.02])] * 3,
            (0, -9.81, 0),
            constraints=Constraints([Loop(1, 2, "hinge", (0.55, 0.35, 0), (0, 0, 1))], driven=["joint1"]),
        )
        q = np.random.default_rng(0).uniform(-0.5, 0.5, (5, 1))
        np.testing.assert_allclose(robot.inverse_dynamics(q), expected.inverse_dynamics(q), rtol=1e-12)
        assert robot.joint_names == ("drive",)
        assert robot.limits.position_upper.tolist() == [2.0]
        assert list(robot.solve_loops(q).loads) == ["pin"]

    def test_drives_say_what_is_driven(self, written: Callable[[str], Path]) -> None:
        text = FOUR_BAR.replace("driven: [drive]", "").replace(
            "limits: {upper: 2}", "drive: {motor_inertia: 0.1, stiffness: 900}"
        )
        robot = Robot.load(written(text))
        assert robot.driven_joints == ("drive",)
        assert robot.drive_train is not None and robot.drive_train.stiffness.tolist() == [900.0]

    def test_couplings_beside_a_urdf(self, written: Callable[[str], Path], tmp_path: Path) -> None:
        (tmp_path / "hand.urdf").write_text(HAND)
        text = "urdf: hand.urdf\ncouplings:\n  - {joint: wrist, of: finger, ratio: 2, offset: 0.1}\n"
        robot = Robot.load(written(text))
        assert robot.joint_names == ("finger",)
        y = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 1))
        both = np.concatenate([2.0 * y + [[0.1], [0.0], [0.0]], y], axis=1)
        torques = Robot.from_urdf(HAND).inverse_dynamics(both)[0]
        assert robot.inverse_dynamics(y)[0, 0] == pytest.approx(2.0 * torques[0] + torques[1], rel=1e-12)

    def test_locked_joints_hold_those_that_mimic_them(
        self, written: Callable[[str], Path], tmp_path: Path
    ) -> None:
        (tmp_path / "hand.urdf").write_text(HAND)
        robot = Robot.load(written("urdf: hand.urdf\njoints:\n  - {name: finger, locked: 0.1}\n"))
        assert robot.closure is None
        assert robot.joint_names == ("wrist",)
        y = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 1))
        held = np.concatenate([y, [[0.1], [0.0], [0.0]]], axis=1)
        expected = Robot.from_urdf(HAND).inverse_dynamics(held)[0, 0]
        assert robot.inverse_dynamics(y)[0, 0] == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("curve", ["ratio: 0.5, offset: 0.1", "polynomial: [0.1, 0.5]"])
    def test_locked_joints_hold_those_that_are_coupled_to_them(
        self, written: Callable[[str], Path], tmp_path: Path, curve: str
    ) -> None:
        """Beside a URDF, or bodies of the file itself; what is said of their limits does not count."""
        bar, y = FOUR_BAR.split("loops:")[0], np.random.default_rng(0).uniform(-0.5, 0.5, (3, 1))
        coupled = f"couplings:\n  - {{joint: swing, of: drive, {curve}}}\n"
        robot = Robot.load(written(bar.replace("{name: drive,", "{name: drive, locked: 0.3,") + coupled))
        all_move = np.concatenate([[[0.3], [0.0], [0.0]], y, [[0.25], [0.0], [0.0]]], axis=1)
        expected = Robot.load(written(bar)).inverse_dynamics(all_move)[0, 1]
        assert (robot.joint_names, robot.closure) == (("knee",), None)
        assert robot.inverse_dynamics(y)[0, 0] == pytest.approx(expected, rel=1e-12)

        table = "table: {of: [0, 0.1, 0.2, 0.25], joint: [0, 0.1, 0.3, 0.4], degree: 3}"
        beyond = bar.replace("{name: drive,", "{name: drive, locked: 0.3,") + coupled.replace(curve, table)
        refused(lambda: Robot.load(written(beyond)), "at 0.3, beyond the table ... 'swing'", ModelError)

        (tmp_path / "hand.urdf").write_text(HAND)
        text = """
urdf: hand.urdf
joints: [{name: finger, locked: 0.05}, {name: wrist, limits: {lower: 0}}]
couplings: [{joint: wrist, of: finger, ratio: 0.5}]
"""
        refused(lambda: Robot.load(written(text)), "no joint of robot 'hand' moves", ModelError)

    def test_rows_are_read_in_the_axes_of_a(self, written: Callable[[str], Path]) -> None:
        y = np.random.default_rng(0).uniform(-0.5, 0.5, (5, 1))
        expected = Robot.load(written(FOUR_BAR)).inverse_dynamics(y)
        turned = FOUR_BAR.replace("[0.45, 0.15, 0]", "[0.45, 0.15, 0], rpy: [0, 0.5, 0.3]")
        rows = turned.replace("kind: hinge", "kind: rows, rows: [x, y, z]")
        found = Robot.load(written(rows)).inverse_dynamics(y)
        assert relative_errors(found, expected).max() < 1e-10

    def test_curves_are_those_of_python(self, written: Callable[[str], Path], tmp_path: Path) -> None:
        (tmp_path / "hand.urdf").write_text(HAND)
        coupling = "urdf: hand.urdf\ncouplings:\n  - {joint: wrist, of: finger, %s}\n"
        at = [-0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9]
        lift = [0.1, 0.2, 0.25, 0.3, 0.2, 0.0, -0.1, -0.3]
        y = np.random.default_rng(0).uniform(-0.4, 0.4, (6, 1))
        arm = Robot.from_urdf(HAND)
        for text, curve in (
            ("polynomial: [0.1, 2, -0.5]", {"polynomial": [0.1, 2.0, -0.5]}),
            (f"table: {{of: {at}, joint: {lift}, degree: 7}}", {"table": (at, lift), "degree": 7}),
        ):
            robot = Robot.load(written(coupling % text))
            assert robot.joint_names == ("finger",)
            other = Coupling("wrist", "finger", **curve)
            assert arm.closure is not None
            mimics = [Coupling("other", "finger", -1.0, 0.03), Coupling("nail", "other", 20.0)]
            closure = Closure.build(arm.tree, Constraints(couplings=[*mimics, other]))
            expected = Robot(arm.tree, closure=closure).inverse_dynamics(y)
            np.testing.assert_allclose(robot.inverse_dynamics(y), expected, rtol=1e-12)

    @pytest.mark.parametrize(
        ("change", "said"),
        {
            "rows": (
                ("kind: hinge", "kind: rows, rows: [x, up]"),
                "19: loops[0].rows[1]: ",
            ),
            "no rows": (("kind: hinge", "kind: rows"), "19: loops[0]: loop 'pin': rows must be some of"),
            "short table": (
                (
                    "driven: [drive]",
                    "driven: [drive]\ncouplings:\n  - {joint: knee, of: drive, table: {of: [0, 1], "
                    "joint: [0, 1]}}",
                ),
                "22: couplings[0].table: the coupling of joint 'knee': a spline of degree 5 needs 6",
            ),
            "open": (
                ("0.05, 0.35", "0.05, 0.36"),
                ":19: loops[0]: loop 'pin' does not close ... 0.01 m apart",
            ),
            "unknown frame": (("b: rocker_end", "b: rocker_start"), "19: loops[0].b: there is no body or"),
            "unknown kind": (("kind: hinge", "kind: hing"), "19: loops[0].kind: ... did you mean 'hinge'"),
            "unknown key": (
                ("a: coupler_end", "from: coupler_end"),
                "19: loops[0].from: loop 'pin': unknown key",
            ),
            "unknown joint": (
                ("driven: [drive]", "driven: [motor]"),
                "20: driven: there is no joint",
            ),
            "no drive": (
                ("driven: [drive]", "driven: []\ncoordinates: [drive]"),
                "yaml: the drives of robot",
            ),
            "itself": (
                ("driven: [drive]", "driven: [drive]\ncouplings:\n  - {joint: knee, of: knee}"),
                "22: couplings[0].of: joint 'knee' is coupled to itself",
            ),
        }.values(),
    )
    def test_what_is_wrong_is_named_with_its_line(
        self, written: Callable[[str], Path], change: tuple[str, str], said: str
    ) -> None:
        refused(lambda: Robot.load(written(FOUR_BAR.replace(*change))), said, ModelError)
