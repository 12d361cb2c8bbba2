"""URDF against Pinocchio's own reading of it, and everything that must be rejected."""

import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import DATA
from refusals import refused
from sweeps import examples

from hodyn_ros.dynamics.read_robot import read_robot
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import FigureWarning, ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.frames import from_dh, from_rpy, to_rpy
from hodyn_ros.model.readers.urdf import read_urdf_assembly
from hodyn_ros.model.tree import JointKind, TreeModel

BRANCHED = DATA / "branched.urdf"
RTOL = 1e-12


def link(name: str, mass: float | str = 1.0, xyz: str = "0 0 0") -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="{xyz}"/><mass value="{mass}"/>'
        '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>'
    )


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 0 1"/>{inside}</joint>'
    )


def robot(*parts: str) -> str:
    return '<robot name="r">' + "".join(parts) + "</robot>"


def poses_of(model: TreeModel, q: np.ndarray, base: np.ndarray | None = None) -> list[np.ndarray]:
    """Place the bodies by the product of exponentials of the model's screws."""
    displacements: list[np.ndarray] = []
    for i, parent in enumerate(model.parents):
        if base is not None and i == 0:
            displacements.append(base)
            continue
        motion = se3.exp_screw(model.screws[i], q[model.joint_of(i)])
        displacements.append(motion if parent < 0 else displacements[parent] @ motion)
    return [d @ placement for d, placement in zip(displacements, model.placements, strict=True)]


def to_pinocchio(theirs: Any, names: tuple[str, ...], q: np.ndarray) -> np.ndarray:
    """Write joint coordinates as Pinocchio wants them: its order, cosine and sine for continuous joints."""
    configuration = pin.neutral(theirs)
    for name, value in zip(names, q, strict=True):
        item = theirs.joints[theirs.getJointId(name)]
        values = [value] if item.nq == 1 else [np.cos(value), np.sin(value)]
        configuration[item.idx_q : item.idx_q + item.nq] = values
    return configuration


@pytest.mark.parametrize("floating", [False, True])
def test_placements_masses_and_coms_are_those_of_pinocchio(floating: bool) -> None:
    model = Robot.from_urdf(BRANCHED, floating_base=floating).tree
    theirs = pin.buildModelFromXML(BRANCHED.read_text(), *([pin.JointModelFreeFlyer()] if floating else []))
    data = theirs.createData()
    rng = np.random.default_rng(3)
    for _ in range(20):
        q = rng.uniform(-3.0, 3.0, model.n_joints)
        base = np.eye(4)
        configuration = to_pinocchio(theirs, model.joint_names, q)
        if floating:
            base = se3.exp_screw(np.array([0.6, 0.0, 0.8, 0.4, -0.2, 1.0]), np.array(rng.uniform(-2, 2)))
            configuration[:7] = pin.SE3ToXYZQUAT(pin.SE3(base))
        poses = poses_of(model, q, base if floating else None)
        pin.centerOfMass(theirs, data, configuration)
        pin.updateFramePlacements(theirs, data)
        coms = []
        for name, pose, com in zip(model.body_names, poses, model.coms, strict=True):
            expected = data.oMf[theirs.getFrameId(name)].homogeneous
            np.testing.assert_allclose(pose, expected, rtol=0, atol=RTOL)
            coms.append(pose[:3, :3] @ com + pose[:3, 3])
        total = model.masses.sum()
        assert total == pytest.approx(pin.computeTotalMass(theirs), rel=RTOL)
        np.testing.assert_allclose(model.masses @ np.array(coms) / total, data.com[0], rtol=0, atol=RTOL)


@pytest.mark.parametrize("floating", [False, True])
def test_merged_inertias_are_those_of_pinocchio(floating: bool) -> None:
    model = Robot.from_urdf(BRANCHED, floating_base=floating).tree
    theirs = pin.buildModelFromXML(BRANCHED.read_text(), *([pin.JointModelFreeFlyer()] if floating else []))
    for i in range(model.n_bodies):
        name = "root_joint" if model.kinds[i] is JointKind.BASE else model.joint_names[model.joint_of(i)]
        inertia = theirs.inertias[theirs.getJointId(name)]
        assert model.masses[i] == pytest.approx(inertia.mass, rel=RTOL, abs=0)
        if inertia.mass > 0.0:
            np.testing.assert_allclose(model.coms[i], inertia.lever, rtol=0, atol=RTOL)
        np.testing.assert_allclose(model.inertias[i], inertia.inertia, rtol=0, atol=RTOL * 0.1)


def test_order_is_depth_first_in_the_order_of_the_file() -> None:
    model = Robot.from_urdf(BRANCHED).tree
    assert model.joint_names == ("waist", "right_shoulder", "left_shoulder", "slide", "hand_turn")
    assert model.body_names == ("torso", "right_arm", "left_arm", "wrist", "hand")
    assert model.parents == (-1, 0, 0, 2, 3)
    assert [kind.value for kind in model.kinds] == ["revolute"] * 3 + ["prismatic", "revolute"]


def test_limits_come_from_the_file() -> None:
    branched = Robot.from_urdf(BRANCHED)
    model, limits = branched.tree, branched.limits
    assert dict(zip(model.joint_names, limits.position_lower, strict=True)) == {
        "waist": -1.5, "right_shoulder": -np.inf, "left_shoulder": -np.inf, "slide": -0.1, "hand_turn": 0.0
    }  # fmt: skip
    assert limits.position_upper.tolist() == [1.25, np.inf, np.inf, 0.25, 2.0]
    assert limits.velocity.tolist() == [2.5, 3.0, np.inf, 0.5, 4.0]
    assert limits.effort.tolist() == [150.0, 40.0, np.inf, 120.0, 9.0]
    assert np.isinf(limits.effort_rate).all()


@pytest.mark.parametrize("floating", [False, True])
def test_every_link_stays_known_as_a_frame(floating: bool) -> None:
    assembly, _ = read_urdf_assembly(BRANCHED, floating_base=floating)
    theirs = pin.buildModelFromXML(BRANCHED.read_text())
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, pin.neutral(theirs))
    assert set(assembly.frames) == {frame.name for frame in theirs.frames if frame.type == pin.FrameType.BODY}
    for name, (body, pose) in assembly.frames.items():
        placement = np.eye(4) if body < 0 else assembly.model.placements[body]
        expected = data.oMf[theirs.getFrameId(name)].homogeneous
        np.testing.assert_allclose(placement @ pose, expected, rtol=0, atol=RTOL)


def test_text_and_path_read_the_same() -> None:
    from_path = Robot.from_urdf(str(BRANCHED)).tree
    for text in (BRANCHED.read_text(), "\n  " + BRANCHED.read_text()):
        model = Robot.from_urdf(text).tree
        assert model.joint_names == from_path.joint_names
        np.testing.assert_array_equal(model.screws, from_path.screws)


def test_a_body_without_merged_parts_keeps_its_figures_as_written() -> None:
    model = Robot.from_urdf(BRANCHED).tree
    left = model.body_names.index("left_arm")
    assert model.masses[left] == 2.2
    assert model.coms[left].tolist() == [0.0, 0.15, 0.02]
    assert model.inertias[left].tolist() == [[0.02, 0, 0.0001], [0, 0.022, 0], [0.0001, 0, 0.0031]]


def test_right_angles_leave_exact_zeros() -> None:
    half = np.pi / 2
    for rotation in (
        from_rpy(np.zeros(3), np.array([half, -half, half])),
        from_dh("modified", 0.1, -half, 0.2)[0],
    ):
        assert set(np.abs(rotation[:3, :3]).ravel()) == {0.0, 1.0}
    np.testing.assert_allclose(
        from_dh("modified", 0.1, -half, 0.2)[0][:3, 3], [0.1, 0.2, 0.0], rtol=0, atol=1e-16
    )


@pytest.mark.parametrize("pitch", [0.2, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9])
def test_angles_of_a_rotation_give_it_back_without_a_warning(pitch: float) -> None:
    rotation = from_rpy(np.zeros(3), np.array([0.3, pitch, -0.4]))[:3, :3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = from_rpy(np.zeros(3), to_rpy(rotation))[:3, :3]
    np.testing.assert_allclose(again, rotation, rtol=0, atol=3e-9)


def test_a_chain_longer_than_the_recursion_limit_is_read() -> None:
    n = sys.getrecursionlimit() + 200
    parts = [link("l0")] + [link(f"l{i}") + joint(f"j{i}", f"l{i - 1}", f"l{i}") for i in range(1, n + 1)]
    model = Robot.from_urdf(robot(*parts)).tree
    assert model.n_joints == n
    assert model.parents == tuple(range(-1, n - 1))


def test_foreign_tags_leave_stderr_quiet() -> None:
    code = f"import hodyn_ros; hodyn_ros.Robot.from_urdf({str(BRANCHED)!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stderr == ""


def test_a_default_namespace_is_no_obstacle() -> None:
    text = robot(link("a"), link("b"), joint("j", "a", "b")).replace("<robot ", '<robot xmlns="urn:urdf" ')
    assert Robot.from_urdf(text).joint_names == ("j",)


TWO = link("a") + link("b")

REJECTED = {
    "mimic": (TWO + joint("follower", "a", "b", inside='<mimic joint="x"/>'), ["'follower'", "mimic"]),
    "unknown kind": (TWO + joint("j", "a", "b", "ball"), ["'j'", "'ball'", "revolute"]),
    "two roots": (TWO + link("c") + joint("j", "a", "b"), ["'a'", "'c'", "root"]),
    "loop": (TWO + joint("j", "a", "b") + joint("k", "b", "a"), ["loop"]),
    "loop beside a tree": (
        TWO + link("c") + link("d") + joint("j", "a", "b") + joint("k", "c", "d") + joint("l", "d", "c"),
        ["'c'", "loop", "cut"],
    ),
    "two parents": (TWO + link("c") + joint("j", "a", "b") + joint("k", "a", "c") + joint("l", "c", "b"),
                    ["'b'", "'j'", "'l'", "cut"]),
    "unknown parent": (TWO + joint("j", "nowhere", "b"), ["'j'", "'nowhere'", "parent"]),
    "unknown child": (TWO + joint("j", "a", "nowhere"), ["'j'", "'nowhere'", "child"]),
    "same link twice": (TWO + link("b") + joint("j", "a", "b"), ["link 'b'", "twice"]),
    "same joint twice": (
        TWO + link("c") + joint("j", "a", "b") + joint("j", "b", "c"), ["joint 'j'", "twice"]
    ),
    "no joint moves": (TWO + joint("j", "a", "b", "fixed"), ["moves"]),
    "no link": ("", ["no link"]),
    "zero axis": ((TWO + joint("j", "a", "b")).replace("0 0 1", "0 0 0"), ["'j'", "axis", "direction"]),
    "short axis": ((TWO + joint("j", "a", "b")).replace("0 0 1", "0 1"), ["'j'", "axis"]),
    "nan origin": (TWO + joint("j", "a", "b", inside='<origin xyz="0 nan 0"/>'), ["'j'", "xyz", "finite"]),
    "text for a number": (link("a") + link("b", "heavy") + joint("j", "a", "b"), ["'b'", "heavy", "mass"]),
    "infinite mass": (link("a") + link("b", "inf") + joint("j", "a", "b"), ["'b'", "mass", "finite"]),
    "negative mass": (link("a") + link("b", "-1") + joint("j", "a", "b"), ["'b'", "-1 kg"]),
    "negative mass, hidden by merging": (
        TWO + link("c", -0.5) + joint("j", "a", "b") + joint("k", "b", "c", "fixed"), ["'c'", "-0.5 kg"]
    ),
    "massless leaf": (
        TWO + '<link name="feather"/>' + joint("j", "a", "b") + joint("k", "b", "feather"),
        ["'feather'", "no mass"],
    ),
    "no inertia": ((link("a") + link("b") + joint("j", "a", "b")).replace('ixx="0.1"', ""), ["'a'", "ixx"]),
    "negative inertia": (
        (TWO + joint("j", "a", "b")).replace('ixx="0.1"', 'ixx="-0.1"'), ["'b'", "positive"]
    ),
    "xacro value": (TWO + joint("j", "a", "b", inside='<origin xyz="${x} 0 0"/>'), ["'j'", "expand"]),
    "xacro tag": ('<x:macro xmlns:x="http://www.ros.org/wiki/xacro" name="m"/>', ["xacro:macro", "expand"]),
    "unbound xacro": ("<xacro:include/>", ["xacro", "expand"]),
    "no parent attribute": (TWO + joint("j", "a", "b").replace('link="a"', ""), ["'j'", "parent", "link"]),
    "no parent": (TWO + joint("j", "a", "b").replace('<parent link="a"/>', ""), ["'j'", "parent"]),
    "nameless link": (TWO + "<link/>" + joint("j", "a", "b"), ["link", "name"]),
    "nameless joint": (TWO + joint("", "a", "b"), ["joint", "name"]),
    "two origins": (TWO + joint("j", "a", "b", inside="<origin/><origin/>"), ["'j'", "<origin>", "twice"]),
    "quaternion": (TWO + joint("j", "a", "b", inside='<origin quat_xyzw="0 0 0 1"/>'), ["'j'", "rpy"]),
    "crossed limits": (
        TWO + joint("j", "a", "b", inside='<limit lower="1" upper="-1" effort="1" velocity="1"/>'),
        ["'j'", "lower limit 1", "upper limit -1"],
    ),
    "negative limit": (
        TWO + joint("j", "a", "b", inside='<limit lower="-1" upper="1" effort="-5" velocity="1"/>'),
        ["'j'", "effort", "-5"],
    ),
    "nan limit": (
        TWO + joint("j", "a", "b", inside='<limit lower="nan" upper="1" effort="5" velocity="1"/>'),
        ["'j'", "lower"],
    ),
    "incomplete limit": (TWO + joint("j", "a", "b", inside='<limit lower="0"/>'), ["'effort'; 0 says"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REJECTED)
def test_refused_in_one_line_that_names_the_thing(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    parts, words = REJECTED[case]
    with pytest.raises(ModelError) as caught:
        Robot.from_urdf(robot(parts))
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    assert capfd.readouterr().err == ""


def test_loops_and_rotors_of_other_programs_are_said_not_to_count() -> None:
    rotor = '<actuator name="m"><d:rotor_inertia xmlns:d="https://drake.mit.edu" value="1"/></actuator>'
    more = f'<loop_joint name="l"/><gazebo><joint name="g"/></gazebo><transmission>{rotor}</transmission>'
    with pytest.warns(
        FigureWarning, match="<loop_joint l>, <rotor_inertia>, <joint g> .* loops go under `loops`"
    ):
        Robot.from_urdf(robot(TWO, joint("j", "a", "b"), more))


def test_a_floating_base_needs_mass_counting_what_is_fixed_to_it() -> None:
    empty = '<link name="a"/>' + link("b") + joint("j", "a", "b")
    refused(lambda: Robot.from_urdf(robot(empty), floating_base=True), "'a' ... is the base", ModelError)
    ballast = link("ballast", 2.0, "0 0 1") + joint("f", "a", "ballast", "fixed", '<origin xyz="0 1 0"/>')
    model = Robot.from_urdf(robot(empty, ballast), floating_base=True).tree
    assert model.body_names == ("a", "b")
    assert model.masses.tolist() == [2.0, 1.0]
    np.testing.assert_allclose(model.coms[0], [0.0, 1.0, 1.0], rtol=1e-15)


def test_a_fixed_base_ignores_the_inertia_of_its_root() -> None:
    model = Robot.from_urdf(robot(link("a", 1e9), link("b"), joint("j", "a", "b"))).tree
    assert model.masses.tolist() == [1.0]


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.urdf", str(tmp_path), "nul\0byte", ""):
        refused(partial(Robot.from_urdf, path), "cannot read", ModelError)
    refused(lambda: Robot.from_urdf(None), "NoneType")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.urdf"
    path.write_text('<robot name="r"><link name="a">')
    refused(lambda: Robot.from_urdf(path), "broken.urdf: not well-formed XML: ... line 1", ModelError)
    path.write_text('<sdf version="1.7"/>')
    refused(lambda: Robot.from_urdf(path), "<sdf> ... <robot>; SDF is not read", ModelError)
    macro = "<robot><x:macro xmlns:x='http://www.ros.org/wiki/xacro'/>\t</robot>"
    for name, text, words in (
        ("arm.urdf.xacro", macro, "expand it"),
        ("arm.sdf", "<!-- 1: a comment --><sdf/>", "SDF is not read"),
    ):
        (tmp_path / name).write_text(text)
        refused(lambda name=name: read_robot(tmp_path / name), f"{name}: ... {words}", ModelError)


WORDS = st.sampled_from(
    ["", "0", "1", "nan", "inf", "-1", "1e400", "1e308", "1 2 3", "0 0 0", "1e200 1e200 0", "a", "b", "c",
     "fixed", "revolute", "prismatic", "world", "${x}", "é", "1,2,3", "0x10"]
)  # fmt: skip


@examples(400, share=8)
@given(st.data())
def test_a_damaged_urdf_gives_a_model_or_a_model_error(data: st.DataObject) -> None:
    text = BRANCHED.read_text()
    for _ in range(data.draw(st.integers(1, 4))):
        pieces = text.split('"')
        place = data.draw(st.integers(0, len(pieces) // 2 - 1)) * 2 + 1
        pieces[place] = data.draw(WORDS)
        text = '"'.join(pieces)
    if data.draw(st.booleans()):
        lines = text.splitlines()
        del lines[data.draw(st.integers(3, len(lines) - 2))]
        text = "\n".join(lines)
    try:
        with np.errstate(all="ignore"):
            read = Robot.from_urdf(text, floating_base=data.draw(st.booleans()))
    except ModelError as error:
        assert "\n" not in str(error)
    else:
        assert read.n_joints == len(read.limits.velocity) > 0
        assert np.isfinite(read.tree.screws).all()
