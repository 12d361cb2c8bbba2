"""Robot files: what they mean, and everything that must be rejected."""

import json
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from places import DATA
from refusals import assert_refused, refused

from hodyn_ros.dynamics.read_robot import read_robot
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.drive_spec import series_elastic
from hodyn_ros.model.keys import schema_of
from hodyn_ros.model.limits import JointLimit, JointLimits
from hodyn_ros.model.readers.robot_entries import InlineFile, LimbsFile, MjcfFile, UrdfFile
from hodyn_ros.model.readers.urdf import read_urdf_assembly

pytestmark = pytest.mark.thorough

EVERY_JOINT = DATA / "every_joint.yaml"

ONE_JOINT = """\
name: one
bodies:
  - name: arm
    mass: 2
    com: [0.1, 0, 0]
    inertia: {about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.02, iyz: 0, izz: 0.015}
joints:
  - name: hinge
    type: revolute
    parent: world
    child: arm
    axis: [0, 0, 1]
    limits: {lower: -1, upper: 1.5, velocity: 2, effort: 30, effort_rate: .inf, acceleration: 9, jerk: 500}
    drive: {motor_inertia: 0.5, stiffness: 1e4}
"""


class Writer(Protocol):
    def __call__(self, text: str, name: str = ...) -> Path: ...


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def _write(text: str, name: str = "robot.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return _write


def test_the_schemas_are_schemas() -> None:
    """Each part once: joints and drives are in all of them, and many times in one."""
    seen: set[str] = set()

    def new(part: Any) -> Any:
        if isinstance(part, list):
            return [new(one) for one in part]
        if not isinstance(part, dict):
            return part
        text = json.dumps(part, sort_keys=True)
        if text in seen:
            return {}
        seen.add(text)
        return {key: new(one) for key, one in part.items()}

    for kind in (InlineFile, UrdfFile, MjcfFile, LimbsFile):
        Draft202012Validator.check_schema(new(schema_of(kind)))


def test_one_joint(write: Writer) -> None:
    path = write(ONE_JOINT)
    config = read_robot(path)
    assert (config.model.name, config.model.joint_names, config.model.body_names) == (
        "one",
        ("hinge",),
        ("arm",),
    )
    assert config.model.screws.tolist() == [[0, 0, 1, 0, 0, 0]]
    assert config.model.gravity.tolist() == [0, 0, -9.81]
    assert config.limits.row(0) == JointLimit(-1.0, 1.5, 2.0, 30.0, np.inf, 9.0, 500.0)
    assert config.limits.acceleration.tolist() == [9.0]
    assert config.limits.jerk.tolist() == [500.0]
    assert config.drives is not None
    assert [(drive.stiffness, drive.motor_inertia) for drive in config.drives] == [(1e4, 0.5)]
    assert config.source == str(path)
    assert config.assumed == ()


def test_every_kind_of_joint() -> None:
    config = read_robot(EVERY_JOINT)
    model = config.model
    # depth first: the wheel hangs on the column, after all that hangs on the slider
    assert model.joint_names == ("turn", "slide", "bore", "spin")
    assert model.body_names == ("column", "slider", "screw", "wheel")
    assert model.parents == (-1, 0, 1, 0)
    assert [kind.value for kind in model.kinds] == ["revolute", "prismatic", "helical", "revolute"]
    np.testing.assert_allclose(model.pitches, [0, 0, 0.005, 0], rtol=1e-12)
    assert model.screws[0].tolist() == [0, 0, 1, 0, 0, 0]

    slider = model.placements[1]
    axis = slider[:3, :3] @ np.array([1, 1, 0]) / np.sqrt(2)
    np.testing.assert_allclose(model.screws[1], [0, 0, 0, *axis], rtol=0, atol=1e-15)
    np.testing.assert_allclose(slider[:3, 3], [0.1, 0, 0.7], rtol=1e-15)

    screw = model.placements[2]
    axis = screw[:3, :3] @ np.array([0, 1, 2]) / np.sqrt(5)
    moment = np.cross(screw[:3, 3], axis) + 0.005 * axis
    np.testing.assert_allclose(model.screws[2], [*axis, *moment], rtol=0, atol=1e-15)

    # RotX(-90°) TransX(0.2) TransZ(0.1): the wheel turns about the world's y axis through (0.2, 0.1, 0.4)
    assert model.screws[3].tolist() == pytest.approx([0, 1, 0, -0.4, 0, 0.2], abs=1e-15)
    assert config.drives is None
    assert config.limits.row(3) == JointLimit(velocity=12.0)
    assert config.limits.row(1) == JointLimit(-0.2, 0.3, 1.0, 100.0, 5000.0)


def test_inertia_about_the_origin_is_moved_to_the_centre_of_mass() -> None:
    model = read_robot(EVERY_JOINT).model
    screw = model.body_names.index("screw")
    np.testing.assert_allclose(model.inertias[screw], np.diag([0.01, 0.01, 0.01]), rtol=0, atol=1e-16)
    # the same spatial inertia about the origin: the figure that the file holds
    spatial = se3.spatial_inertia(model.masses[screw], model.coms[screw], model.inertias[screw])
    written = [[0.011625, 0, 0], [0, 0.011125, -0.00075], [0, -0.00075, 0.0105]]
    np.testing.assert_allclose(spatial[:3, :3], written, rtol=0, atol=1e-16)


def test_a_fixed_body_is_merged_with_its_spatial_inertia() -> None:
    config = read_robot(EVERY_JOINT)
    model = config.model
    wheel = model.body_names.index("wheel")
    body, pose = config.frames["plate"]
    assert body == wheel
    plate = se3.spatial_inertia(np.array(0.5), np.array([0.05, 0, 0]), np.diag([0.001, 0.002, 0.0025]))
    rim = se3.spatial_inertia(np.array(0.75), np.zeros(3), np.diag([0.004, 0.004, 0.007]))
    transport = se3.Ad(se3.inverse(pose))
    merged = se3.spatial_inertia(model.masses[wheel], model.coms[wheel], model.inertias[wheel])
    np.testing.assert_allclose(merged, rim + transport.T @ plate @ transport, rtol=0, atol=1e-15)


def test_frames() -> None:
    config = read_robot(EVERY_JOINT)
    wheel = config.model.body_names.index("wheel")
    cosine, sine = np.cos(0.5), np.sin(0.5)
    tip = config.frames["tip"]
    assert tip.body == wheel
    np.testing.assert_allclose(tip.pose[:3, 3], [0, 0.1, 0.1], rtol=1e-15)
    beside = config.frames["beside_tip"].pose[:3, 3]
    np.testing.assert_allclose(beside, [0.1 * cosine, 0.1 + 0.1 * sine, 0.1], rtol=1e-14)
    assert config.frames["table"].body == -1
    assert config.frames["table"].pose[:3, 3].tolist() == [1, 0, 0]
    assert config.frames["slider"].pose.tolist() == np.eye(4).tolist()


def test_assumed_figures_are_listed() -> None:
    com, inertia = read_robot(EVERY_JOINT).assumed
    assert (com.place, com.value, com.source) == ("bodies[1] slider: com", [0.1, -0.05, 0.2], "half way")
    assert inertia.place == "bodies[1] slider: inertia"
    assert inertia.value["izz"] == 0.025


def test_gravity_of_the_call_overrides_the_file(write: Writer) -> None:
    assert read_robot(EVERY_JOINT).model.gravity.tolist() == [0.5, 0, -9.7]
    assert read_robot(EVERY_JOINT, gravity=(0, 0, 0)).model.gravity.tolist() == [0, 0, 0]
    call = partial(read_robot, EVERY_JOINT, gravity=(0, -9.81))
    refused(call, "every_joint.yaml: gravity must have shape (3,)", ModelError)


def test_floating_base(write: Writer) -> None:
    text = ONE_JOINT.replace("joints:", "  - {name: hull, mass: 10, com: [0, 0, 0], inertia: {about: com, "
                             "ixx: 1, ixy: 0, ixz: 0, iyy: 1, iyz: 0, izz: 1}}\njoints:")  # fmt: skip
    text = text.replace("parent: world", "parent: hull") + "floating_base: true\n"
    config = read_robot(write(text))
    assert config.model.floating_base
    assert config.model.body_names == ("hull", "arm")
    assert config.model.parents == (-1, 0)
    assert config.limits.velocity.shape == (1,)


URDF_ROBOT_TEXT = f"""\
urdf: {DATA / "two_link.urdf"}
gravity: [0, 0, -1.62]
joints:
  - name: elbow
    limits: {{effort_rate: 800, lower: -0.5}}
    drive: {{motor_inertia: 0.2, stiffness: rigid}}
  - {{name: shoulder, drive: {{motor_inertia: 0.4, stiffness: {{value: 9000, assumed: true}}}}}}
frames:
  - {{name: tool, body: lower, origin: {{xyz: [0, 0, 0.3]}}}}
"""


def test_a_urdf_with_drives_and_limits(write: Writer) -> None:
    config = read_robot(write(URDF_ROBOT_TEXT))
    plain, limits = read_urdf_assembly(DATA / "two_link.urdf")
    assert config.model.name == "two_link"
    assert config.model.gravity.tolist() == [0, 0, -1.62]
    for field in ("screws", "placements", "masses", "coms", "inertias"):
        np.testing.assert_array_equal(getattr(config.model, field), getattr(plain.model, field))
    assert config.limits.row(0) == limits.row(0)
    assert config.limits.row(1) == JointLimit(-0.5, 2.5, 4.0, 30.0, 800.0)
    assert config.drives is not None
    assert [drive.stiffness for drive in config.drives] == [9000.0, np.inf]
    assert [drive.motor_inertia for drive in config.drives] == [0.4, 0.2]
    assert [figure.place for figure in config.assumed] == ["joints[1] shoulder: drive.stiffness"]
    assert config.frames["tool"].body == 1


def test_the_path_of_a_urdf_is_relative_to_its_file(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    write((DATA / "two_link.urdf").read_text(), "two_link.urdf")
    path = write("urdf: two_link.urdf\nname: renamed\n")
    monkeypatch.chdir("/")
    config = read_robot(path)
    assert config.model.name == "renamed"
    assert config.drives is None


@pytest.mark.parametrize(
    ("written", "value"),
    [("1e4", 1e4), ("1.0E+4", 1e4), ("+5000", 5e3), ("010", 10.0), (".5", 0.5), ("7.", 7.0), (".inf", np.inf),
     ("rigid", np.inf), ("{value: .Inf}", np.inf)],
)  # fmt: skip
def test_numbers_read_as_in_yaml_1_2(write: Writer, written: str, value: float) -> None:
    config = read_robot(write(ONE_JOINT.replace("1e4", written)))
    assert config.drives is not None
    assert [drive.stiffness for drive in config.drives] == [value]


@pytest.mark.parametrize("name", ["on", "no", "1:30", "2001-01-01", "0x1F", "<<"])
def test_words_that_yaml_1_1_would_turn_into_something_else(write: Writer, name: str) -> None:
    assert read_robot(write(ONE_JOINT.replace("hinge", name))).model.joint_names == (name,)


BODY = ONE_JOINT[ONE_JOINT.index("    mass") : ONE_JOINT.index("joints")]

# what is replaced by what in ONE_JOINT, and what the error must say
REJECTED: dict[str, tuple[str, str, list[str]]] = {
    "typing error": ("mass", "masss", ["robot.yaml:4: ", "bodies[0].masss", "'mass'? (and 1 more mistake)"]),
    "typing error further in": ("stiffness", "stifness", [":14: joints[0].drive.stifness", "'stiffness'"]),
    "foreign key": ("name: one", "name: one\ncolour: red", [":2: colour", "known here", "gravity"]),
    "damping": ("stiffness", "damping: 3, stiffness", ["joints[0].drive.damping", "unknown key"]),
    "repeated key": ("mass: 2\n", "mass: 2\n    mass: 3\n", ["robot.yaml:5: ", "'mass'", "twice", "line 4"]),
    "missing mass": ("    mass: 2\n", "", ["bodies[0]: body 'arm': the key 'mass'", "[kg]"]),
    "missing about": ("about: com, ", "", ["bodies[0].inertia", "'about'", "centre of mass or origin"]),
    "missing moment": ("iyy: 0.02, ", "", ["bodies[0].inertia", "'iyy'", "[kg m^2]"]),
    "missing name": ("name: one\n", "", ["'name' is missing"]),
    "unit written out": ("mass: 2", "mass: 2 kg", ["bodies[0].mass", "a number [kg]", "'2 kg'"]),
    "number as text": ("mass: 2", 'mass: "2"', ["bodies[0].mass", "the text '2'"]),
    "nothing": ("mass: 2", "mass:", ["bodies[0].mass", "a number", "found nothing"]),
    "true": ("mass: 2", "mass: true", ["bodies[0].mass", "found true"]),
    "number for a name": ("name: one", "name: 1", ["name: must be text, found 1"]),
    "empty name": ("name: one", 'name: ""', ["name", "empty"]),
    "nan": ("mass: 2", "mass: .nan", ["bodies[0].mass", "nan", "finite"]),
    "infinite mass": ("mass: 2", "mass: 1e999", ["bodies[0].mass", "inf", "finite"]),
    "infinite axis": ("[0, 0, 1]", "[0, 0, .inf]", ["joints[0].axis", "finite"]),
    "negative mass": ("mass: 2", "mass: -2", ["bodies[0].mass", "at least 0 [kg]", "-2"]),
    "short vector": ("[0.1, 0, 0]", "[0.1, 0]", ["bodies[0].com", "3 numbers", "[m]", "found 2"]),
    "text in a vector": ("[0.1, 0, 0]", "[0.1, x, 0]", ["bodies[0].com[1]", "'x'"]),
    "scalar for a vector": ("[0.1, 0, 0]", "0.1", ["bodies[0].com", "a list"]),
    "mapping for a list": ("bodies:\n  - name", "bodies:\n    name", ["bodies", "a list", "a mapping"]),
    "wrong kind": ("revolute", "revolut", ["joints[0].type", "did you mean 'revolute'?"]),
    "wrong word": ("1e4", "rigit", ["joints[0].drive.stiffness", "did you mean 'rigid'?", "N·m/rad"]),
    "zero stiffness": ("1e4", "0", ["stiffness", "greater than 0", "N·m/rad"]),
    "nan stiffness": ("1e4", ".nan", ["stiffness", "nan"]),
    "negative motor": ("motor_inertia: 0.5", "motor_inertia: -1", ["motor_inertia", "at least 0", "kg m^2"]),
    "spring without motor": ("motor_inertia: 0.5", "motor_inertia: 0", ["'hinge'", "motor inertia"]),
    "figure without value": ("0.5", "{source: x}", ["motor_inertia", "'value'"]),
    "assumed as text": ("0.5", "{value: 1, assumed: maybe}", ["motor_inertia.assumed", "true or false"]),
    "crossed limits": ("lower: -1", "lower: 2", ["'hinge'", "lower limit 2", "upper limit 1.5"]),
    "zero velocity": ("velocity: 2", "velocity: 0", ["joints[0].limits.velocity", "greater than 0", "rad/s"]),
    "unknown parent": ("parent: world", "parent: wall", ["'wall'", "'hinge'", "arm"]),
    "unknown child": ("child: arm", "child: leg", ["'arm'", "no joint"]),
    "child is the world": ("child: arm", "child: world", ["joints[0].child", "world"]),
    "body called world": ("name: arm", "name: world", ["bodies[0].name", "'world'"]),
    "zero axis": ("[0, 0, 1]", "[0, 0, 0]", ["joints[0].axis", "'hinge'", "direction"]),
    "no axis": ("    axis: [0, 0, 1]\n", "", ["'hinge'", "axis", "[0, 0, 1]"]),
    "origin and dh": (
        "    axis",
        "    origin: {}\n    dh: {convention: modified, a: 0, alpha: 0, d: 0}\n    axis",
        ["not both"],
    ),
    "other dh": ("    axis", "    dh: {convention: classic, a: 0, alpha: 0, d: 0}\n    axis",
                 ["dh.convention", "modified", "Craig"]),
    "pitch of a hinge": ("    axis", "    pitch: 0.1\n    axis", ["'hinge'", "pitch", "helical"]),
    "helical without pitch": ("revolute", "helical", ["'hinge'", "pitch", "m/rad"]),
    "range of a continuous joint": ("revolute", "continuous", ["'hinge'", "continuous", "lower"]),
    "fixed joint with axis": ("revolute", "fixed", ["'hinge'", "fixed", "axis"]),
    "body on nothing": ("joints:", "  - {name: b, mass: 0}\njoints:", ["'b'", "no joint", "world"]),
    "the same body twice": ("joints:", f"  - name: arm\n{BODY}joints:", ["'arm'", "twice"]),
    "massless with com": ("mass: 2", "mass: 0", ["'arm'", "no mass", "com"]),
    "massless leaf": (BODY, "    mass: 0\n", ["'arm'", "no mass"]),
    "mass without inertia": (BODY, "    mass: 1\n    com: [0, 0, 0]\n", ["'arm'", "'inertia'"]),
    "mass without com": ("    com: [0.1, 0, 0]\n", "", ["'arm'", "'com'"]),
    "not positive definite": ("izz: 0.015", "izz: -0.015", ["'arm'", "not positive definite"]),
    "com figures about the origin": (
        "about: com", "about: origin", ["'arm'", "bodies[0].inertia", "about: com"]
    ),
    "frame on nothing": ("name: one", "name: one\nframes: [{name: f, body: g}]", ["frames[0].body", "'g'"]),
    "frame named as a body": ("name: one", "name: one\nframes: [{name: arm, body: arm}]", ["'arm'", "taken"]),
    "floating on the world": (
        "name: one", "name: one\nfloating_base: true", ["'hinge'", "world", "floating_base"]
    ),
    "gravity as a number": ("name: one", "name: one\ngravity: -9.81", ["gravity", "a list", "m/s^2"]),
    "tag": ("name: one", "name: !!python/name:os.system x", [":1:", "tag"]),
    "merge key": ("name: one", "name: one\n<<: {a: 1}", ["<<", "unknown key"]),
    "list as a key": ("name: one", "name: one\n? [a, b]\n: 1", ["key"]),
    "tabs": ("    mass", "\tmass", ["robot.yaml:", "YAML"]),
    "two documents": ("name: one\n", "name: one\n---\n", ["YAML", "document"]),
    "bodies beside a urdf": ("name: one", "name: one\nurdf: robot.urdf", ["joints[0].type", "unknown key"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REJECTED)
def test_refused_in_one_line_that_names_file_and_thing(write: Writer, case: str) -> None:
    old, new, words = REJECTED[case]
    assert old in ONE_JOINT
    path = write(ONE_JOINT.replace(old, new, 1))
    with pytest.raises(ModelError) as caught:
        read_robot(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert message.count(str(path)) == 1
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("# nothing but a comment\n", ["empty"]),
        ("- a\n- b\n", ["keys and values", "a list"]),
        ("[" * 5000, ["nested more than 50 deep"]),
        ("name: [1, 2\n", ["YAML"]),
        ("{}", ["'name' is missing", "(and 2 more mistakes)"]),
        ("urdf: absent.urdf\n", ["absent.urdf"]),
        (URDF_ROBOT_TEXT.replace("elbow", "ellbow"), ["joints[0].name", "'ellbow'", "did you mean 'elbow'"]),
        (URDF_ROBOT_TEXT.replace("elbow", "shoulder"), ["joints[1].name", "'shoulder'", "twice"]),
        (URDF_ROBOT_TEXT.replace("    drive: {motor_inertia: 0.2, stiffness: rigid}\n", ""),
            ["'elbow'", "no drive"]),
        (URDF_ROBOT_TEXT.replace("name: elbow\n", "name: elbow\n    axis: [0, 0, 1]\n"), ["joints[0].axis"]),
    ],
)  # fmt: skip
def test_other_files_refused(write: Writer, text: str, words: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        read_robot(write(text))
    for word in ["robot.yaml", *words]:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_paths(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path, "nul\0byte"):
        refused(partial(read_robot, path), "cannot read", ModelError)


def test_limits_and_drives_check_their_own_arrays() -> None:
    ones = np.ones(2)
    assert_refused(
        (lambda: JointLimits(-ones, ones, np.ones(3), ones, ones),
         "velocity must have shape (2,), found (3,)"),
        (lambda: JointLimits(np.array([-1, 2]), ones, ones, ones, ones),
         "joint 1: its lower limit 2 is above its upper limit 1"),
        (lambda: JointLimits(-ones, ones, ones, np.array([np.nan, 1]), ones),
         "joint 0: the limit effort is not a number"),
        (lambda: series_elastic([1.0, -1.0], ones), "joint 1: its stiffness is -1"),
        (lambda: series_elastic(ones, np.ones(3)), "stiffness of 2 joints and motor inertia of 3"),
        (lambda: JointLimits(-ones, *[ones] * 4, jerk=np.array([1.0, 0.0]), joint_names=["a", "b"]),
         "joint 'b': the limit jerk is 0; make it positive"),
        error=ModelError,
    )  # fmt: skip
    limits = JointLimits.unlimited(3)
    assert limits.row(2) == JointLimit()
    one = JointLimits(-ones, ones, ones, ones, ones, acceleration=np.array(4.0))
    assert one.acceleration.tolist() == [4.0, 4.0]
    assert one.jerk.tolist() == [np.inf, np.inf]
    with pytest.raises(ValueError, match="read-only"):
        limits.velocity[0] = 1.0
