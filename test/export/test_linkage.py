"""`hodyn export --lang linkage` and hodyn_ros/LinkageTransmission, against Python, MuJoCo, and by power."""

import ctypes
from pathlib import Path

import mujoco
import numpy as np
import pytest
from command_line import Hodyn
from exported_code import CXX, CXX_WARNINGS, compiled_by, needs_cxx
from linkages import shipped
from places import CONFIG, ROOT
from refusals import assert_refused

from hodyn_ros import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.export import export_linkage
from hodyn_ros.export.linkage.arrays import linkage_arrays
from hodyn_ros.export.linkage.shared import linkage_sources
from hodyn_ros.export.shared import build

Array = np.ndarray
ANKLE = CONFIG / "ankle_linkage.yaml"

# a knee: crank, rod and lever in a plane, and a parallelogram beside it
KNEE = """
name: knee
bodies:
  - name: shank
    mass: 3
    com: [0, 0, -0.2]
    inertia: &flat {about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.01, iyz: 0, izz: 0.01}
  - {name: crank, mass: 0.3, com: [-0.01, 0, -0.02], inertia: *flat}
  - {name: rod, mass: 0.3, com: [0, 0, -0.14], inertia: *flat}
joints:
  - {name: knee, type: revolute, parent: world, child: shank, origin: {xyz: [0, 0, -0.4]},
     axis: [0, 1, 0], limits: {lower: 0, upper: 1.8}}
  - {name: knee_drive, type: revolute, parent: world, child: crank, origin: {xyz: [0, 0, -0.12]},
     axis: [0, 1, 0]}
  - {name: pin, type: revolute, parent: crank, child: rod, origin: {xyz: [-0.035, 0, -0.042]},
     axis: [0, 1, 0]}
frames:
  - {name: rod_end, body: rod, origin: {xyz: [-0.005, 0, -0.282]}}
  - {name: lever, body: shank, origin: {xyz: [-0.04, 0, -0.044]}}
loops: [{name: linkage, kind: hinge, a: rod_end, b: lever, axis: [0, 1, 0], axis_b: [0, 1, 0]}]
coordinates: [knee]
driven: [knee_drive]
"""


def wrist() -> str:
    """Return a 3-RRS: a platform that rises, rolls and pitches, and is led in its other three freedoms."""
    solid = (
        "mass: 0.1, com: [0, 0, 0.02], inertia: {about: com, ixx: 1e-4, ixy: 0, ixz: 0, iyy: 1e-4, iyz: 0,"
    )
    bodies, joints, frames, loops, parent = [], [], [], [], "world"
    for name, axis in (("x", "x"), ("y", "y"), ("rise", "z"), ("yaw", "z"), ("roll", "x"), ("pitch", "y")):
        kind, reach = ("prismatic", 0.03) if name in ("x", "y", "rise") else ("revolute", 0.3)
        height = 0.25 if name == "rise" else 0.0
        bodies.append(f"{{name: of_{name}, {solid} izz: 1.0e-4}}}}")
        joints.append(
            f"{{name: {name}, type: {kind}, parent: {parent}, child: of_{name}, "
            f"origin: {{xyz: [0, 0, {height}]}}, axis: {[int(axis == one) for one in 'xyz']}, "
            f"limits: {{lower: {-reach}, upper: {reach}}}}}"
        )
        parent = f"of_{name}"
    for i, angle in enumerate(np.radians([0.0, 120.0, 240.0])):
        around = np.array([np.cos(angle), np.sin(angle), 0.0])
        foot, corner = (radius * around for radius in (0.15, 0.12))
        turned = f"xyz: {foot.tolist()}, rpy: [0, 0, {float(angle)!r}]"
        bodies += [f"{{name: {part}{i}, {solid} izz: 1.0e-4}}}}" for part in ("low", "high")]
        joints += [
            f"{{name: drive{i}, type: revolute, parent: world, child: low{i}, origin: {{{turned}}}, "
            "axis: [0, 1, 0], drive: {motor_inertia: 0.01, stiffness: rigid}}",
            f"{{name: elbow{i}, type: revolute, parent: low{i}, child: high{i}, "
            "origin: {xyz: [0.07, 0, 0.125]}, axis: [0, 1, 0]}",
        ]
        frames += [
            f"{{name: end{i}, body: high{i}, origin: {{xyz: [-0.1, 0, 0.125]}}}}",
            f"{{name: corner{i}, body: {parent}, origin: {{xyz: {corner.tolist()}}}}}",
        ]
        loops.append(f"{{name: leg{i}, kind: ball, a: end{i}, b: corner{i}}}")
    lists = {"bodies": bodies, "joints": joints, "frames": frames, "loops": loops}
    lines = ["name: wrist", *(f"{key}: [{', '.join(values)}]" for key, values in lists.items())]
    return "\n".join([*lines, "coordinates: [rise, roll, pitch]", "driven: [drive0, drive1, drive2]", ""])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path, helpers = tmp_path_factory.mktemp("transmission") / "linkage.so", ROOT / "test" / "helpers"
    folders = (ROOT / "ros2_control", ROOT / "hodyn_ros" / "export", helpers / "ros2_control_stand_ins")
    sources = (helpers / "linkage_in_c.cpp", ROOT / "ros2_control" / "plugin" / "linkage_transmission.cpp")
    flags = (
        "-std=c++17",
        *CXX_WARNINGS,
        "-O0",
        "-fPIC",
        "-shared",
        "-Wl,-Bsymbolic",
        *(f"-I{x}" for x in folders),
    )
    compiled_by(CXX, flags, sources, path, "-ldl")
    loaded = ctypes.CDLL(str(path))
    loaded.linkage_new.restype = ctypes.c_void_p
    loaded.linkage_said.restype = ctypes.c_char_p
    loaded.linkage_map.restype = ctypes.c_long
    loaded.linkage_failures.restype = ctypes.c_ulong
    for name in ("joints", "actuators", "jacobian"):
        getattr(loaded, f"linkage_{name}").restype = ctypes.POINTER(ctypes.c_double)
    return loaded


class Transmission:
    """A transmission with its handles: `joints` and `actuators` (3, n), positions, velocities and efforts."""

    def __init__(self, library: ctypes.CDLL, path: Path, hash_: str = "", left_out: str = "") -> None:
        made = library.linkage_new(str(path).encode(), hash_.encode(), 1, left_out.encode())
        if not made:
            raise RuntimeError(library.linkage_said().decode())
        self._c, self._held, self.n = library, ctypes.c_void_p(made), 1
        self.n = n = {"knee": 1, "ankle": 2, "wrist": 3}[path.name.split("_")[0].removeprefix("lib")]
        self.joints, self.actuators = (
            np.ctypeslib.as_array(getattr(library, f"linkage_{side}")(self._held), (3, n))
            for side in ("joints", "actuators")
        )

    def __del__(self) -> None:
        if hasattr(self, "_held"):
            self._c.linkage_delete(self._held)

    def map(self, to_joints: bool) -> None:
        assert self._c.linkage_map(self._held, int(to_joints), 1) == 0  # allocations

    @property
    def jacobian(self) -> Array:
        return np.ctypeslib.as_array(self._c.linkage_jacobian(self._held), (self.n, self.n)).copy()

    @property
    def failures(self) -> int:
        return int(self._c.linkage_failures(self._held))

    def inertia(self) -> Array | None:
        matrix = (ctypes.c_double * self.n**2)()
        known = self._c.linkage_inertia(self._held, matrix)
        return np.array(matrix).reshape(self.n, self.n) if known else None


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Robot, Path]]:
    folder, found = tmp_path_factory.mktemp("linkages"), {}
    for name, text in {"knee": KNEE, "wrist": wrist(), "ankle": ANKLE.read_text()}.items():
        file = folder / f"{name}.yaml"
        file.write_text(text)
        robot = Robot.load(file)
        found[name] = robot, build(linkage_sources(robot, name, "test", "beef"), folder, f"{name}_linkage")
    return found


@needs_cxx
@pytest.mark.parametrize("name", ["knee", "ankle", "wrist"])
def test_both_ways_as_python_has_it(
    library: ctypes.CDLL, built: dict[str, tuple[Robot, Path]], name: str
) -> None:
    """Positions, velocities and efforts; the power of both sides is the same."""
    robot, path = built[name]
    transmission, rng, n = Transmission(library, path), np.random.default_rng(4), robot.n_coordinates
    lower, upper = robot.coordinate_limits.position_lower, robot.coordinate_limits.position_upper
    q, target = np.zeros(n), rng.uniform(lower, upper)
    for k in range(120):
        if k % 20 == 0:
            target = rng.uniform(lower, upper)
        q = q + 0.1 * (target - q)
        v, u = rng.uniform(-1.0, 1.0, n), rng.uniform(-100.0, 100.0, n)
        motion = robot.joint_motion(np.stack([q, v]))[:, list(robot.closure.driven)]
        transmission.actuators[:] = *motion, u
        transmission.map(to_joints=True)
        jacobian = robot.drive_jacobian(q[None])[0]
        assert np.abs(transmission.jacobian - jacobian).max() <= 1e-10 * np.abs(jacobian).max()
        assert np.abs(transmission.joints[0] - q).max() <= 1e-9
        assert np.abs(transmission.joints[1] - v).max() <= 1e-9
        assert np.abs(transmission.joints[2] - jacobian.T @ u).max() <= 1e-9 * np.abs(u).max()
        assert_power(transmission)
        transmission.joints[:] = q, v, transmission.joints[2]
        transmission.actuators[:] = np.nan
        transmission.map(to_joints=False)
        assert np.abs(transmission.actuators[:2] - motion).max() <= 1e-10
        assert np.abs(transmission.actuators[2] - u).max() <= 1e-9 * np.abs(u).max()
        assert_power(transmission)
        inertia = transmission.inertia()
        if name == "knee":
            assert inertia is None
        else:
            expected = jacobian.T @ np.diag(robot.require_drives().motor_inertia) @ jacobian
            assert np.abs(inertia - expected).max() <= 1e-9 * np.abs(expected).max()
    assert transmission.failures == 0


def assert_power(transmission: Transmission) -> None:
    joints, actuators = (side[1] * side[2] for side in (transmission.joints, transmission.actuators))
    scale = max(np.abs(joints).max(), np.abs(actuators).max())
    assert abs(joints.sum() - actuators.sum()) <= 1e-12 * scale


@needs_cxx
def test_a_robot_that_does_not_stand_at_home_is_found(
    library: ctypes.CDLL, built: dict[str, tuple[Robot, Path]]
) -> None:
    robot, path = built["knee"]
    transmission = Transmission(library, path)
    transmission.actuators[0] = robot.joint_motion(np.array([[1.7]]))[0, list(robot.closure.driven)]
    transmission.map(to_joints=True)
    assert abs(transmission.joints[0, 0] - 1.7) <= 1e-9 and transmission.failures == 0


@needs_cxx
def test_what_cannot_be_changes_no_position(
    library: ctypes.CDLL, built: dict[str, tuple[Robot, Path]]
) -> None:
    """NaN, a jump, where the linkage does not close: velocities and efforts go on by the last Jacobian."""
    _, path = built["ankle"]
    transmission = Transmission(library, path)
    transmission.joints[:] = [0.1, -0.05], [1.0, 0.5], [3.0, 4.0]
    transmission.map(to_joints=False)
    before, jacobian = transmission.actuators.copy(), transmission.jacobian
    for i, wrong in enumerate((np.nan, np.inf, 2.0), 1):
        transmission.joints[0, 0] = wrong
        transmission.map(to_joints=False)
        assert transmission.failures == i
        assert np.array_equal(transmission.actuators, before)
        assert np.array_equal(transmission.jacobian, jacobian)
    joints = transmission.joints.copy()
    transmission.actuators[0] = 0.3
    transmission.map(to_joints=True)
    assert transmission.failures == 4 and np.array_equal(transmission.joints[0], joints[0])


@needs_cxx
def test_what_is_wrong_is_said(library: ctypes.CDLL, built: dict[str, tuple[Robot, Path]]) -> None:
    _, path = built["ankle"]
    assert_refused(
        (lambda: Transmission(library, path, left_out="position"),
         "needs handles of the positions of all of ankle_pitch ankle_roll", RuntimeError),
        (lambda: Transmission(library, path, "dead"),
         "transmission 'tested': ... SHA-256 beef, and 'robot_hash' is dead", RuntimeError),
    )  # fmt: skip
    assert Transmission(library, path, left_out="effort").failures == 0


FOOT = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81" timestep="1e-5"><flag {contact}/></option>
  <worldbody>
    <body>
      <joint name="pitch" axis="0 1 0"/>
      <joint name="roll" axis="1 0 0"/>
      <inertial mass="1.2" pos="0.03 0 -0.04" diaginertia="0.0018 0.005 0.0055"/>
      <site name="left" pos="-0.055 0.035 0"/><site name="right" pos="-0.055 -0.035 0"/>
    </body>
    {slides}
  </worldbody>
  {rods}
</mujoco>
"""
SLIDE = """
    <body pos="-0.045 {y} 0.2">
      <joint name="{name}_slide" type="slide" axis="0 0 1" armature="95"/>
      <inertial mass="0.4" pos="0 0 0.03" diaginertia="4e-4 4e-4 4e-5"/><site name="{name}_top"/>
    </body>"""
ROD = """
    <spatial name="{name}"><site site="{name}_top"/><site site="{name}"/></spatial>"""


def closed_ankle() -> mujoco.MjModel:
    """Return the ankle with its slides; the rods are lengths that MuJoCo keeps."""
    both = (("left", 0.035), ("right", -0.035))
    rods = "".join(ROD.format(name=name) for name, _ in both)
    kept = "".join(
        f'<tendon tendon1="{name}" solref="4e-5 1" solimp="0.9999 0.9999 0.001 0.5 2"/>' for name, _ in both
    )
    slides = "".join(SLIDE.format(name=name, y=y) for name, y in both)
    text = FOOT.format(
        contact='contact="disable"', slides=slides, rods=f"<tendon>{rods}</tendon><equality>{kept}</equality>"
    )
    return mujoco.MjModel.from_xml_string(text)


def test_the_armature_is_that_of_the_closed_loop_in_mujoco() -> None:
    """Torques of a motion: of the foot alone with `J^T I J` and its rate, against all bodies with rods."""
    robot = Robot.load(ANKLE)
    closed, inertia = closed_ankle(), robot.require_drives().motor_inertia + 0.4  # slides weigh, too
    open_ = mujoco.MjModel.from_xml_string(FOOT.format(contact='contact="disable"', slides="", rods=""))
    rng, apart = np.random.default_rng(0), []
    for _ in range(10):
        q, v = rng.uniform(-0.3, 0.3, 2), rng.uniform(-1.0, 1.0, 2)
        u = rng.uniform(-300.0, 300.0, 2)
        jacobian = robot.drive_jacobian(np.stack([q, v]))
        data = mujoco.MjData(closed)
        data.qpos[:2], data.qpos[2:] = q, robot.joint_motion(q[None])[0, 2:]
        data.qvel[:2], data.qvel[2:] = v, jacobian[0] @ v
        data.qfrc_applied[2:] = u
        velocities = []
        for step in range(150):
            if step >= 50:
                velocities.append(data.qvel[:2].copy())
            if step == 100:
                q, v = data.qpos[:2].copy(), data.qvel[:2].copy()
            mujoco.mj_step(closed, data)
        # MuJoCo holds lengths by springs: what accelerates is known from how velocities go on
        acceleration = (velocities[-1] - velocities[1]) / (98 * closed.opt.timestep)
        jacobian = robot.drive_jacobian(np.stack([q, v]))
        tree = mujoco.MjData(open_)
        tree.qpos[:], tree.qvel[:], tree.qacc[:] = q, v, acceleration
        mujoco.mj_inverse(open_, tree)
        weight = jacobian[0].T @ np.full(2, 0.4 * 9.81)
        armature = jacobian[0].T @ np.diag(inertia) @ jacobian[0]
        rate = jacobian[0].T @ (inertia * (jacobian[1] @ v))
        torque = tree.qfrc_inverse + armature @ acceleration + rate + weight
        given = jacobian[0].T @ u
        diagonal = torque + (np.diag(np.diag(armature)) - armature) @ acceleration
        apart.append([np.abs(x - given).max() / np.abs(given).max() for x in (torque, diagonal)])
    assert np.max(apart, axis=0)[0] <= 0.01
    assert np.max(apart, axis=0)[1] > 0.05  # what an armature by joints alone leaves


def test_arrays_over_the_range_of_the_joints(tmp_path: Path) -> None:
    arrays, paths = export_linkage(RobotChoice(str(ANKLE)), tmp_path, "ankle", points=9)
    assert [path.name for path in paths] == ["ankle_linkage.npz"]
    robot, file = Robot.load(ANKLE), np.load(paths[0])
    assert file["joint_names"].tolist() == ["ankle_pitch", "ankle_roll"]
    assert file["drive_names"].tolist() == ["left_drive", "right_drive"]
    for i, j in ((0, 0), (3, 7), (8, 8)):
        q = np.array([[file["axis_0"][i], file["axis_1"][j]]])
        expected = robot.drive_jacobian(q)[0]
        assert np.allclose(file["jacobian"][i, j], expected, rtol=0.0, atol=1e-12)
        assert np.allclose(file["armature"][i, j], 95.0 * expected.T @ expected, rtol=1e-10)
        assert np.allclose(file["drive_positions"][i, j], robot.joint_motion(q)[0, 2:], rtol=0.0, atol=1e-12)
    assert np.array_equal(file["error"], arrays.error)
    finer = linkage_arrays(robot, 17)
    assert 3.0 < arrays.error / finer.error < 5.0  # as the square of the distance of points


def test_what_is_no_linkage_is_refused() -> None:
    assert_refused(
        (lambda: linkage_arrays(Robot.load(CONFIG / "panda.yaml")), "'panda' has no couplings or loops"),
        (lambda: linkage_arrays(shipped("humanoid_leg.yaml")),
         "moves a base or a platform; a transmission moves joints"),
        (lambda: linkage_arrays(Robot.load(ANKLE), 1), "a grid of 1 points"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--what", "jacobian"), "--lang linkage takes no --what"),
        (("--points", "1000"), "a grid of 1000 points for each of 2 joints"),
    ],
    ids=["what", "points"],
)
def test_bad_options_give_one_line(
    hodyn: Hodyn, arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    result = hodyn("export", ANKLE, "--lang", "linkage", *arguments, "--out", tmp_path)
    assert result.returncode == 2 and words in result.stderr and len(result.stderr.splitlines()) == 1
