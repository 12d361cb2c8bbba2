"""MJCF: trees and loops against MuJoCo at order 0, loops at higher orders against many digits."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from oracles import mp_loops
from oracles.cases import relative_errors
from oracles.mechanisms import Closed, Mechanism
from oracles.motions import random_stack
from oracles.mujoco_reference import MujocoReference
from oracles.random_trees import Tree
from refusals import assert_refused, refused
from scipy.spatial.transform import Rotation
from sweeps import some

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.array import Array
from hodyn_ros.cli.robot_sheet import read_sheet
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.errors import FigureWarning, ModelError
from hodyn_ros.export.files import export_c
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.model.readers.mjcf_file import is_mjcf


def numbers(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


class RandomMjcf:
    """A random tree as MJCF: several joints a body, bodies without any, geoms of all kinds, references."""

    def __init__(self, seed: int, bodies: int, floating: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.left, self.count = bodies, 0
        inside = ""
        while self.left:
            inside += self._body("free" if floating and not inside else "")
            if floating:
                break
        self.text = (
            '<mujoco model="random"><compiler angle="radian" eulerseq="zxy"/><include file="defaults.xml"/>'
            f'<option gravity="{numbers(self.rng.normal(size=3))}"/><worldbody>{inside}</worldbody></mujoco>'
        )
        self.defaults = (
            '<mujoco><default><geom density="700"/><default class="heavy"><geom type="box" density="2000"/>'
            '<joint armature="0.3" damping="2"/></default></default></mujoco>'
        )

    def write(self, folder: Path) -> Path:
        (folder / "defaults.xml").write_text(self.defaults)
        path = folder / "robot.xml"
        path.write_text(self.text)
        return path

    def _body(self, first: str = "") -> str:
        rng = self.rng
        number, self.count, self.left = self.count, self.count + 1, self.left - 1
        turn = [
            f'euler="{numbers(rng.uniform(-2, 2, 3))}"',
            f'quat="{numbers(rng.normal(size=4))}"',
            f'axisangle="{numbers(rng.normal(size=4))}"',
            "",
        ][rng.integers(4)]
        joints = ""
        if first == "free":
            joints = '<freejoint name="base"/>'
        elif number == 0 or rng.uniform() < 0.85:
            kinds = [*rng.choice(["hinge", "slide"], rng.integers(0, 3)), rng.choice(["hinge", "ball"])]
            joints = "".join(self._joint(f"j{number}_{i}", kind) for i, kind in enumerate(kinds))
        children = ""
        while self.left and rng.uniform() < 0.75:
            children += self._body()
        place = numbers(rng.uniform(-1, 1, 3))
        return f'<body name="b{number}" pos="{place}" {turn}>{joints}{self._geoms()}{children}</body>'

    def _joint(self, name: str, kind: str) -> str:
        rng = self.rng
        more = ' class="heavy"' if kind != "ball" and rng.uniform() < 0.5 else ""
        if kind != "ball":
            more += f' axis="{numbers(rng.normal(size=3))}" ref="{rng.choice([0.0, rng.normal()])}"'
        return f'<joint name="{name}" type="{kind}" pos="{numbers(rng.uniform(-0.3, 0.3, 3))}"{more}/>'

    def _geoms(self) -> str:
        rng = self.rng
        if rng.uniform() < 0.3:
            inertia = np.diag(rng.uniform(1.0, 1.5, 3)) + 0.1
            figures = numbers(inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
            place = numbers(rng.uniform(-0.2, 0.2, 3))
            return f'<inertial pos="{place}" mass="{rng.uniform(1, 3)}" fullinertia="{figures}"/>'
        size = numbers(rng.uniform(0.05, 0.2, 3))
        return (
            f'<geom class="heavy" size="{size}" euler="0.1 0.2 0.3" pos="0 0.1 0"/>'
            f'<geom type="capsule" size="0.05" fromto="0 0 0 {numbers(rng.normal(size=3))}"/>'
        )


def one_body(inside: str = "", more: str = "") -> str:
    body = f'<body name="a"><joint name="j"/><geom size="0.1"/>{inside}</body>'
    return f"<mujoco><worldbody>{body}</worldbody>{more}</mujoco>"


@pytest.fixture
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FigureWarning)
        yield


def relative(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.usefixtures("quiet")
class TestTrees:
    @pytest.mark.parametrize("seed", some(range(12), *range(5)))
    def test_mujoco_inverse_dynamics(self, seed: int, tmp_path: Path) -> None:
        path = RandomMjcf(seed, 2 + seed % 5, floating=False).write(tmp_path)
        robot = Robot.from_mjcf(path)
        q = np.random.default_rng(seed).uniform(-1.0, 1.0, (3, robot.n_coordinates))
        reference = MujocoReference(mujoco.MjModel.from_xml_path(str(path)))
        expected = reference.tree_efforts(reference.move(robot.joint_names, q))
        found = robot.inverse_dynamics(q)[0]
        if robot.drive_train is not None:
            found = found + robot.drive_train.motor_inertia * q[2]
        assert relative(found, expected) < 1e-12

    @pytest.mark.parametrize("seed", some(range(20, 28), 20, 21, 22))
    def test_floating_bases(self, seed: int, tmp_path: Path) -> None:
        path = RandomMjcf(seed, 2 + seed % 5, floating=True).write(tmp_path)
        robot = Robot.from_mjcf(path)
        assert robot.tree.floating_base
        rng = np.random.default_rng(seed)
        q, twists = rng.uniform(-1.0, 1.0, (3, robot.n_coordinates)), rng.uniform(-1.0, 1.0, (2, 6))
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = Rotation.random(random_state=seed).as_matrix(), rng.normal(size=3)
        base = BaseMotion(pose, twists, representation="body_fixed")
        wrench, efforts = robot.inverse_dynamics(q, base)
        if robot.drive_train is not None:
            efforts = efforts + robot.drive_train.motor_inertia * q[2]
        reference = MujocoReference(mujoco.MjModel.from_xml_path(str(path)))
        expected = reference.tree_efforts(reference.move(robot.joint_names, q, pose, twists))
        found = np.concatenate([base.wrenches_in_body(wrench)[0], efforts[0]])
        assert relative(found, expected) < 1e-12

    def test_names(self) -> None:
        robot = Robot.from_mjcf(
            '<mujoco model="named"><worldbody><body name="a"><joint name="h"/><joint name="s" type="slide"/>'
            '<geom size="0.1"/><site name="tool" pos="1 2 3"/><body><joint type="ball"/><geom size="0.1"/>'
            '<body name="tip" pos="0 0 1"><geom size="0.1"/></body></body></body>'
            '<body name="wall" pos="3 0 0"/></worldbody></mujoco>'
        )
        assert robot.tree.name == "named"
        assert robot.joint_names == ("h", "s", "body2_joint_rz", "body2_joint_ry", "body2_joint_rx")
        assert robot.tree.body_names[1] == "a"
        assert robot.frames["tool"].body == 1
        assert robot.frames["tip"].body == 4
        assert robot.frames["wall"].body == -1
        np.testing.assert_array_equal(robot.frames["tool"].pose[:3, 3], [1.0, 2.0, 3.0])

    def test_limits(self) -> None:
        robot = Robot.from_mjcf(
            '<mujoco><compiler angle="degree" autolimits="true"/><worldbody>'
            + "".join(
                f'<body name="{n}"><joint name="{n}" {more}/><geom size="0.1"/></body>'
                for n, more in {
                    "a": 'range="-90 45"',
                    "b": 'actuatorfrcrange="-3 4"',
                    "c": 'type="slide" range="-0.5 0.7"',
                    "d": "",
                    "e": "",
                }.items()
            )
            + '</worldbody><actuator><motor joint="a" gear="20" ctrlrange="-2 2"/>'
            '<motor joint="b" forcerange="-1 1" gear="-2"/><position joint="c" kp="5" forcerange="0 9"/>'
            '<position joint="d" kp="100" ctrlrange="-1 1"/></actuator></mujoco>'
        )
        limits = robot.limits
        np.testing.assert_allclose(limits.position_lower, [-np.pi / 2, -np.inf, -0.5, -np.inf, -np.inf])
        np.testing.assert_allclose(limits.position_upper, [np.pi / 4, np.inf, 0.7, np.inf, np.inf])
        assert limits.effort.tolist() == [40.0, 2.0, 9.0, np.inf, np.inf]

    def test_rotors_of_actuators(self) -> None:
        text = one_body(more='<actuator><motor joint="j" gear="20" armature="0.5"/></actuator>')
        if not hasattr(mujoco.MjModel.from_xml_string(one_body()), "actuator_armature"):
            pytest.skip("actuators have rotors since MuJoCo 4")
        drives = Robot.from_mjcf(text).drive_train
        assert drives is not None
        assert drives.motor_inertia.tolist() == [200.0]

    def test_gravity_can_be_off(self) -> None:
        text = '<mujoco><option><flag gravity="disable"/></option><worldbody><body name="a"><joint/>'
        robot = Robot.from_mjcf(text + '<geom size="0.1"/></body></worldbody></mujoco>')
        assert not robot.gravity.any()

    def test_friction_of_the_links_is_that_of_the_drives_where_asked_for(self) -> None:
        text = '<mujoco><worldbody><body name="a"><joint name="j" damping="2" frictionloss="3"/>'
        text += '<geom size="0.1"/></body></worldbody></mujoco>'
        assert Robot.from_mjcf(text).drive_train is None
        drives = Robot.from_mjcf(text, friction=True).drive_train
        assert drives is not None
        (spec,) = drives.specs
        assert (spec.link_friction.viscous, spec.link_friction.coulomb) == (2.0, 3.0)

    def test_one_of_several_robots(self) -> None:
        text = (
            '<mujoco><worldbody><body name="table" pos="0 0 1"><geom type="box" size="1 1 1"/>'
            '<body name="arm" pos="0 0 1"><joint name="j" axis="0 1 0"/><geom size="0.1"/></body></body>'
            '<body name="cube"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
        )
        robot = Robot.from_mjcf(text, root="arm")
        assert robot.tree.body_names == ("arm",)
        assert robot.frames["table"].body == -1
        np.testing.assert_allclose(robot.tree.placements[0][:3, 3], [0.0, 0.0, 2.0])
        assert Robot.from_mjcf(text, root="table").tree.body_names == ("arm",)
        assert Robot.from_mjcf(text, root="cube").tree.floating_base


FOUR_BAR = """
<mujoco model="four-bar">
  <option gravity="0 -9.81 0.5"/>
  <default><joint axis="0 0 1"/><geom type="capsule" size="0.03"/></default>
  <worldbody>
    <body name="crank"><joint name="crank" armature="0.2"/><geom fromto="0 0 0 0.1 0.2 0"/>
      <body name="coupler" pos="0.1 0.2 0">
        <joint name="coupler" REF/><geom fromto="0 0 0 0.4 0.1 0"/><site name="end" pos="0.4 0.1 0"/>
      </body>
    </body>
    <body name="rocker" pos="0.5 0 0"><joint name="rocker"/><geom fromto="0 0 0 0 0.3 0.1"/>
      <site name="top" pos="0 0.3 0"/></body>
  </worldbody>
  <equality>LOOP</equality>
  <actuator><motor joint="rocker"/></actuator>
</mujoco>
"""
CONNECT = '<connect name="pin" body1="coupler" body2="rocker" anchor="0.4 0.1 0"/>'


def four_bar(loop: str = CONNECT, ref: str = "") -> str:
    return FOUR_BAR.replace("LOOP", loop).replace("REF", ref)


def loop_error(robot: Robot, text: str, y: Array) -> float:
    """Return the relative deviation of drive efforts from those by MuJoCo's mass matrix and Jacobians."""
    closure = robot.closure
    assert closure is not None
    solution = robot.solve_loops(y)
    assert relative(robot.inverse_dynamics(y)[0], solution.efforts[0]) < 1e-11
    reference = MujocoReference(mujoco.MjModel.from_xml_string(text), rotors=False)
    matrix = reference.move(robot.tree.joint_names, solution.joints[:3])
    expected = reference.loop_efforts(matrix, closure.joints, closure.driven)
    return relative(solution.efforts[0], expected)


@pytest.mark.usefixtures("quiet")
class TestLoops:
    @pytest.mark.parametrize(
        "text",
        [
            four_bar(),
            four_bar(ref='ref="40"'),
            four_bar('<connect name="pin" site1="end" site2="top"/>'),
            four_bar('<connect name="pin" body1="world" body2="coupler" anchor="0.2 0.2 0"/>'),
        ],
        ids=["bodies", "with a reference", "sites", "to the world"],
    )
    def test_a_connect_is_a_ball(self, text: str) -> None:
        robot = Robot.from_mjcf(text)
        closure = robot.closure
        assert closure is not None
        assert [loop.name for loop in closure.loops] == ["pin"]
        assert robot.joint_names[-1:] == ("rocker",)
        rng = np.random.default_rng(0)
        y = closure.home[list(closure.joints)] + rng.uniform(-0.1, 0.1, (3, robot.n_coordinates))
        assert loop_error(robot, text, y) < 1e-11

    def test_a_weld(self) -> None:
        """Two arms of three hinges hold one tool: six joints, and three rows in the plane."""
        chain = '<geom fromto="0 0 0 0.3 0.1 0"/>'
        arms = ""
        for side, x in (("l", "-0.4"), ("r", "0.4")):
            arms += f'<body pos="{x} 0 0" name="{side}0"><joint name="{side}0"/>{chain}'
            arms += f'<body pos="0.3 0.1 0" name="{side}1"><joint name="{side}1"/>{chain}'
            arms += (
                f'<body pos="0.3 0.1 0" name="{side}2"><joint name="{side}2"/>{chain}</body></body></body>'
            )
        text = (
            '<mujoco><default><joint axis="0 0 1"/><geom type="capsule" size="0.03"/></default><worldbody>'
            f'{arms}</worldbody><equality><weld body1="l2" body2="r2"/></equality><actuator>'
            '<motor joint="l0"/><motor joint="l1"/><motor joint="r1"/></actuator></mujoco>'
        )
        robot = Robot.from_mjcf(text)
        assert robot.joint_names == robot.driven_joints == ("l0", "l1", "r1")
        y = np.random.default_rng(1).uniform(-0.1, 0.1, (3, 3))
        assert loop_error(robot, text, y) < 1e-11

    def test_a_rod_spins_neither_where_it_ends_the_tree_nor_where_it_carries_more_of_it(self) -> None:
        """A slider-crank whose rod is connected to the carriage, and one whose rod carries its pin."""
        end = '<geom type="sphere" size="0.05"/>'
        carried = f'<body name="pin" pos="0.5 0 -0.2"><joint type="ball"/>{end}</body>'
        connect = '<connect body1="rod" body2="carriage" anchor="0.5 0 -0.2"/>'
        read = [
            Robot.from_mjcf(
                '<mujoco><default><geom type="capsule" size="0.02"/></default><worldbody>'
                '<body name="crank"><joint name="crank" axis="0 1 0"/><geom fromto="0 0 0 0 0 0.2"/>'
                '<body name="rod" pos="0 0 0.2"><joint type="ball"/><geom fromto="0 0 0 0.5 0 -0.2"/>'
                f'{pin}</body></body><body name="carriage" pos="0.5 0 0"><joint type="slide" axis="1 0 0"/>'
                f'<geom type="box" size="0.1 0.1 0.1"/>{fixed}</body></worldbody><equality>{loop}</equality>'
                '<actuator><motor joint="crank"/></actuator></mujoco>'
            )
            for pin, fixed, loop in (
                ("", end, connect),
                (carried, "", '<weld body1="pin" body2="carriage"/>'),
            )
        ]
        assert [robot.joint_names for robot in read] == [("crank",)] * 2
        y = 0.3 * random_stack(np.random.default_rng(6), 5, 1)
        expected, found = (robot.inverse_dynamics(y) for robot in read)
        assert relative_errors(found, expected).max() < 1e-11

    def test_higher_orders_at_many_digits(self) -> None:
        robot = Robot.from_mjcf(four_bar())
        tree = robot.tree
        plain = Tree(
            tree.parents,
            tree.screws,
            tree.placements,
            tree.masses,
            tree.coms,
            tree.inertias,
            tree.gravity,
            tree.floating_base,
        )
        pin = Closed("ball", 1, 2, np.array([0.5, 0.3, 0.0]))
        y = 0.2 * random_stack(np.random.default_rng(2), 6, 1)
        expected = mp_loops.efforts(Mechanism(plain, (pin,), (2,), (2,)), y, 3)
        assert relative_errors(robot.inverse_dynamics(y), expected).max() < 1e-10

    def test_a_keyframe_chooses_the_branch(self) -> None:
        # at the keyframe the coupler hangs below: the other way to join the same links
        key = '<keyframe><key name="below" qpos="-1.13 1.72 0"/></keyframe></mujoco>'
        text = four_bar().replace("</mujoco>", key)
        upper, below = Robot.from_mjcf(text), Robot.from_mjcf(text, keyframe="below")
        y = np.random.default_rng(5).uniform(-0.1, 0.1, (3, 1))
        assert loop_error(below, text, y) < 1e-11
        y[0] = 0.0
        assert abs(upper.solve_loops(y).joints[0, 0]) < 1e-12
        line, crank, coupler = np.arctan2([0.3, 0.2, 0.1], [0.5, 0.1, 0.4])  # to the pin, at zero
        mirrored = [2.0 * (line - crank), 2.0 * (crank - coupler), 0.0]
        np.testing.assert_allclose(below.solve_loops(y).joints[0], mirrored, atol=1e-12)

    def test_arguments_choose_coordinates_and_drives(self) -> None:
        robot = Robot.from_mjcf(four_bar(), coordinates=["coupler"], driven=["crank"])
        assert (robot.joint_names, robot.driven_joints) == (("coupler",), ("crank",))
        assert robot.drive_train is not None
        assert robot.drive_train.motor_inertia.tolist() == [0.2]

    @pytest.mark.parametrize("curve", ["0.1 -0.5 0 0 0", "0 2 0 0 0", "0.05 0.8 0.3 -0.2 0.1"])
    def test_a_joint_that_follows_another(self, curve: str) -> None:
        joint = f'<joint joint1="coupler" joint2="crank" polycoef="{curve}"/>'
        text = four_bar(joint, ref='ref="30"')
        robot = Robot.from_mjcf(text)
        assert robot.joint_names == robot.driven_joints == ("crank", "rocker")
        y = np.random.default_rng(3).uniform(-0.5, 0.5, (3, 2))
        assert loop_error(robot, text, y) < 1e-12

    def test_rotors_of_followers_act_on_the_joint_that_leads(self) -> None:
        text = four_bar('<joint joint1="crank" joint2="rocker" polycoef="0 -3 0 0 0"/>')
        robot = Robot.from_mjcf(text)
        assert robot.joint_names == ("coupler", "rocker")
        assert robot.drive_train is not None
        np.testing.assert_allclose(robot.drive_train.motor_inertia, [0.0, 1.8])

    def test_a_joint_that_is_held(self) -> None:
        text = four_bar('<joint joint1="coupler" polycoef="0.2 0 0 0 0"/>', ref='ref="30"')
        robot = Robot.from_mjcf(text)
        assert robot.joint_names == ("crank", "rocker")
        held = text.replace('ref="30"', 'ref="30" range="-1 1"')
        reference = MujocoReference(mujoco.MjModel.from_xml_string(held))
        q = np.random.default_rng(4).uniform(-1.0, 1.0, (3, 2))
        matrix = reference.move(robot.joint_names, q)
        reference.d.qpos[1] = np.deg2rad(30.0) + 0.2
        expected = reference.tree_efforts(matrix)
        found = robot.inverse_dynamics(q)[0] + [0.2 * q[2, 0], 0.0]
        assert relative(found, expected) < 1e-12

    def test_what_is_not_active_does_not_count(self) -> None:
        assert Robot.from_mjcf(four_bar(CONNECT.replace("/>", ' active="false"/>'))).closure is None
        off = four_bar().replace("<option ", '<option><flag equality="disable"/></option><option ')
        assert Robot.from_mjcf(off).closure is None


FREE = '<body name="{}"><freejoint/><geom size="0.1"/></body>'


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "<robot/>",
                "outermost element of MJCF is <mujoco>, found <robot>; URDF is read by Robot.from_urdf",
            ),
            ("<mujoco><worldbody>", "MuJoCo cannot compile it: XML"),
            (
                one_body(more='<asset><mesh file="arm.stl"/></asset>'),
                "'arm.stl' ... looked for beside the MJCF",
            ),
            (one_body().replace('"j"', '"j" type="screw"'), "invalid keyword: 'screw'; Element 'joint'"),
            (
                f"<mujoco><worldbody>{FREE.format('x')}{FREE.format('y')}</worldbody></mujoco>",
                "body 'x' floats beside others ('x', 'y'); one robot is read at a time: say by",
            ),
            (
                one_body(
                    more='<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
                    '<equality><tendon name="cable" tendon1="t"/></equality>'
                ),
                "equality 'cable' holds a tendon that does not run straight between two sites",
            ),
            (
                "<mujoco><worldbody>" + FREE.format("x") + '<flexcomp name="cloth" type="grid" count="3 3 1" '
                'spacing="0.1 0.1 0.1" dim="2" mass="1"/></worldbody></mujoco>',
                "flexes, which are not rigid bodies",
            ),
            ("<mujoco/>", "no joint of robot 'MuJoCo Model' moves"),
            (
                one_body(more='<equality><weld name="fix" body1="a"/></equality>'),
                "cannot move: its loops ['fix'] leave no freedom",
            ),
            (
                f"<mujoco><worldbody>{FREE.format('x')}</worldbody>"
                '<equality><weld name="stand" body1="world" body2="x"/></equality></mujoco>',
                "equality 'stand' welds 'x', which floats, to the world; 'floating_base: false' in a robot",
            ),
            (
                f"<mujoco><worldbody>{FREE.format('x')}</worldbody>"
                '<equality><connect name="pin" body1="world" body2="x" anchor="1 0 0"/></equality></mujoco>',
                "floats, but its loops ['pin'] leave 3 degrees of freedom",
            ),
            (
                four_bar('<weld name="fix" body1="crank" body2="rocker" relpose="0 0 5 1 0 0 0"/>'),
                "loop 'fix' does not close",
            ),
        ],
    )
    @pytest.mark.usefixtures("quiet")
    def test_one_line_says_what(self, text: str, said: str) -> None:
        caught = refused(lambda: Robot.from_mjcf(text), said, ModelError)
        assert str(caught).startswith("MJCF: ")

    def test_names_that_do_not_exist(self) -> None:
        up = '<keyframe><key name="up" qpos="1"/></keyframe>'
        assert_refused(
            (lambda: Robot.from_mjcf(one_body(), root="b"),
             "no body 'b' that stands or moves on the world; there are ['a']", ModelError),
            (lambda: Robot.from_mjcf(one_body(more=up), keyframe="home"),
             "no keyframe 'home'; there are ['up']", ModelError),
            (lambda: Robot.from_mjcf("/nowhere/robot.xml"),
             "cannot read the MJCF '/nowhere/robot.xml'", ModelError),
            (lambda: Robot.from_mjcf(3), "MJCF comes as a path or as text, not as int"),
        )  # fmt: skip

    def test_an_equality_with_what_is_left_out(self) -> None:
        text = f"<mujoco><worldbody>{FREE.format('x')}{FREE.format('y')}</worldbody>"
        text += '<equality><weld name="glue" body1="x" body2="y"/></equality></mujoco>'
        refused(lambda: Robot.from_mjcf(text, root="x"), "'glue' joins ... 'y', ... not part", ModelError)

    def test_a_base_that_is_held_needs_no_weld(self, tmp_path: Path) -> None:
        arm = (
            one_body()
            .replace('name="a"', 'name="a" pos="0 0 1"')
            .replace('<joint name="j"/>', "<freejoint/>")
        )
        arm = arm.replace(
            "</body>", '<body><joint name="j" axis="0 1 0"/><geom size="0.1" pos="1 0 0"/></body></body>'
        )
        weld = '<equality><weld body1="world" body2="a"/></equality></mujoco>'
        (tmp_path / "arm.xml").write_text(arm.replace("</mujoco>", weld))
        (tmp_path / "arm.yaml").write_text("mjcf: arm.xml\nfloating_base: false\n")
        robot = Robot.load(tmp_path / "arm.yaml")
        assert robot.joint_names == ("j",) and robot.closure is None and not robot.tree.floating_base

    def test_without_mujoco(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "mujoco", None)
        refused(lambda: Robot.from_mjcf(one_body()), "pip install mujoco, or hodyn_ros", ModelError)
        monkeypatch.setitem(sys.modules, "mujoco", SimpleNamespace(MjModel=object, __version__="3.1.0"))
        refused(lambda: Robot.from_mjcf(one_body()), "3.1.0 ... pip install -U mujoco", ModelError)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (one_body().replace('"j"', '"j" stiffness="3"'), "springs of joints 'j' do not count"),
            (one_body().replace('"j"', '"j" damping="3"'), "friction and damping of joints 'j' do not count"),
            (one_body().replace('"a"', '"a" gravcomp="1"'), "gravity compensation of bodies 'a' do not"),
            (
                one_body().replace('"j"', '"j" type="ball" armature="1"'),
                "armatures of the ball or free joints 'j'",
            ),
            (one_body(more='<option viscosity="1"/>'), "forces of the surrounding fluid do not count"),
            (
                one_body(
                    more='<tendon><fixed name="t" stiffness="2"><joint joint="j" coef="1"/></fixed></tendon>'
                ),
                "forces of tendons 't' do not count",
            ),
            (four_bar(), "armatures of joints without drives, 'crank' do not count"),
            (
                four_bar().replace(
                    "</worldbody>",
                    '<body><joint name="more"/><geom fromto="0 0 0 0 0 1"/></body></worldbody>',
                ),
                "its actuators do not hold it; as driven count 'more' too",
            ),
        ],
    )
    @pytest.mark.filterwarnings("ignore::hodyn_ros.errors.FigureWarning")
    def test_what_does_not_count_is_named(self, text: str, said: str) -> None:
        with pytest.warns(FigureWarning, match=said):
            Robot.from_mjcf(text)

    def test_what_mujoco_warns_of_leaves_no_log(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        text = one_body().replace("<worldbody>", '<compiler settotalmass="2"/><worldbody>')
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            Robot.from_mjcf(text)
        # the attribute is deprecated there, and in some versions before
        assert int(mujoco.__version__ >= "4") <= len(said) <= 1
        assert all("MuJoCo warns: compiler attribute" in str(each.message) for each in said)
        assert not list(tmp_path.iterdir())

    def test_nothing_is_said_without_need(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Robot.from_mjcf(one_body().replace('"j"', '"j" damping="3" armature="1"'), friction=False)


def test_commands_take_files_of_mjcf(tmp_path: Path) -> None:
    (tmp_path / "bar.xml").write_text(four_bar())
    sheet = read_sheet(RobotChoice(str(tmp_path / "bar.xml")))
    assert sheet.summary.startswith("four-bar: 3 joints, 3 bodies")
    assert sheet.notes[0] == "Named frames besides the bodies: end, top."
    titles = {block.title: block.rows for block in sheet.blocks}
    assert ("rocker", "yes", "yes", "") in titles["Coordinates"]
    assert titles["Loops"] == (("pin", "ball", *titles["Loops"][0][2:]),)
    assert sheet.notes[1].endswith("armatures of joints without drives, 'crank' do not count")
    (tmp_path / "arm.xml").write_text(one_body().replace('"j"', '"j" armature="2"'))
    assert [
        block.title.split()[0] for block in read_sheet(RobotChoice(str(tmp_path / "arm.xml"))).blocks
    ] == [
        "Joints",
        "Drives,",
        "Bodies",
    ]
    arm = Robot.load(tmp_path / "arm.xml")
    assert arm.joint_names == ("j",)
    code, _ = export_c(RobotChoice(str(tmp_path / "arm.xml")), ExportRequest(1), tmp_path)
    assert "arm.xml, SHA-256" in code.source
    floats = RobotChoice(str(tmp_path / "arm.xml"), floating_base=True)
    refused(lambda: export_c(floats, ExportRequest(1), tmp_path), "MJCF says itself whether a base floats")


def test_files_of_mjcf_are_told_from_urdf(tmp_path: Path) -> None:
    for name, text, expected in (
        ("a.xml", '<?xml version="1.0"?>\n<!-- <robot> --> <mujoco/>', True),
        ("b.xml", "<!-- <mujoco> --><robot/>", False),
        ("c.urdf", "<mujoco/>", False),
        ("d.xml", "", False),
    ):
        (tmp_path / name).write_text(text)
        assert is_mjcf(tmp_path / name) is expected
    assert not is_mjcf(tmp_path / "missing.xml")
