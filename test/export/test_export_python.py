"""Wheels of robots: installed by pip, they compute what the robot does, with NumPy alone."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from refusals import refused

from hodyn_ros import Robot, share
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.export import export_python
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.lie.motion import BaseMotion

# Run where neither this package nor what it needs can be imported.
CALLS = """
import sys
import numpy as np
for name in ("hodyn_ros", "scipy", "llvmlite", "yaml"):
    sys.modules[name] = None
module, given, found = sys.argv[1:]
robot = __import__(module).Robot()
assert robot.self_test() < 1e-12
results = {}
for name, arrays in np.load(given, allow_pickle=True).item().items():
    result = getattr(robot, name)(*arrays)
    for part, value in zip(result._fields, result) if hasattr(result, "_fields") else [("", result)]:
        results[f"{name} {part}".strip()] = value
np.savez(found, **results)
"""


def installed(wheel: Path, target: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(target), str(wheel)], check=True, timeout=120)
    return target


def computed(target: Path, module: str, calls: dict[str, tuple[np.ndarray, ...]]) -> dict[str, np.ndarray]:
    """Make calls in a process of their own."""
    given, found = target / "given.npy", target / "found.npz"
    np.save(given, calls, allow_pickle=True)  # type: ignore[arg-type]
    command = [sys.executable, "-c", CALLS, module, str(given), str(found)]
    subprocess.run(command, check=True, timeout=120, cwd=target, env={"PYTHONPATH": str(target)})
    return dict(np.load(found))


LINK = "com: [0.2, 0, 0.1], inertia: {about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.1, iyz: 0, izz: 0.1}"
JOINT = "origin: {xyz: [0.3, 0, 0.1]}, drive: {motor_inertia: 0.2, stiffness: 500}"
ELBOW = f"""name: elbow
bodies: [{{name: upper, mass: 3, {LINK}}}, {{name: lower, mass: 2, {LINK}}}]
joints:
  - {{name: shoulder, type: revolute, parent: world, child: upper, axis: [0, 1, 0], {JOINT}}}
  - {{name: elbow, type: revolute, parent: upper, child: lower, axis: [0, 0.6, 0.8], {JOINT}}}
"""


@pytest.fixture(scope="module")
def elbow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The robot file of an arm on springs, and beside it a folder in which its wheel is installed."""
    file = tmp_path_factory.mktemp("elbow") / "elbow.yaml"
    file.write_text(ELBOW)
    what = ["inverse_dynamics", "forward_kinematics", "mass_matrix"]
    code, (wheel,) = export_python(RobotChoice(str(file)), ExportRequest(2, what=what), file.parent)
    assert wheel.name.startswith("elbow-") and code.name == "elbow"
    installed(wheel, file.with_name("site"))
    return file


def test_an_arm_computes_what_the_robot_does(elbow: Path) -> None:
    robot = Robot.load(elbow)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 4, 5, 2))
    calls = {
        "inverse_dynamics": (q,),
        "feedforward": (q[0, 0],),
        "mass_matrix": (q[:, 1, :3],),
        "forward_kinematics": (q[0, 0, :3],),
    }
    found = computed(elbow.with_name("site"), "elbow", calls)
    expected = np.array([[robot.inverse_dynamics(one) for one in row] for row in q])
    np.testing.assert_allclose(found["inverse_dynamics"], expected, rtol=0, atol=1e-12 * abs(expected).max())
    motor = robot.drive_train.feedforward(q[0, 0], expected[0, 0])
    np.testing.assert_allclose(found["feedforward effort"][0], motor.effort[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found["feedforward position"][0], motor.position[0], rtol=0, atol=1e-12)
    masses = np.array([robot.mass_matrix(one[1, :3]) for one in q])
    np.testing.assert_allclose(found["mass_matrix"], masses, rtol=0, atol=1e-12 * abs(masses).max())
    bodies = robot.forward_kinematics(q[0, 0, :3])
    poses, twists = (found[f"forward_kinematics frame_{part}"] for part in ("poses", "twists"))
    np.testing.assert_allclose(poses, bodies.poses, rtol=0, atol=1e-14)
    np.testing.assert_allclose(twists.swapaxes(0, 1), bodies.twists, rtol=0, atol=1e-12)


def test_a_platform_follows_from_call_to_call(tmp_path: Path) -> None:
    _, (wheel,) = export_python(
        RobotChoice("planar_3rrr.yaml"), ExportRequest(1, name="three_limbs"), tmp_path
    )
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    _, start = robot.home
    steps = np.linspace(0.0, 0.1, 12)
    poses = np.array([start] * len(steps))
    poses[:, 0, 3] += steps
    twists = np.zeros((len(steps), 3, 6))
    twists[:, 0, 3:] = 0.2, -0.1, 0.0
    q = np.zeros((len(steps), 4, 0))
    ZipFile(wheel).extractall(tmp_path / "site")  # which pip does above, and takes a second for
    found = computed(tmp_path / "site", "three_limbs", {"inverse_dynamics": (q, poses, twists)})
    for pose, twist, tau in zip(poses, twists, found["inverse_dynamics tau"]):
        motion = BaseMotion(pose, twist, representation="spatial")
        expected = robot.inverse_dynamics(np.zeros((4, 0)), motion)
        np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-11 * abs(expected).max())


REFUSALS = """
import numpy as np
import elbow
robot = elbow.Robot()
q = np.zeros((3, 5, 2))
q[1, 2, 1] = np.nan
for arrays in [q], [q[0, :4]], [1e200 * np.ones((5, 2))]:
    try:
        robot.inverse_dynamics(*arrays)
    except (ValueError, elbow.NoResultError) as error:
        print(type(error).__name__, error)
"""


def test_what_has_no_result_is_an_error(elbow: Path) -> None:
    command = [sys.executable, "-c", REFUSALS]
    path = {"PYTHONPATH": str(elbow.with_name("site"))}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=path)
    not_finite, shape, too_large = ran.stdout.splitlines()
    assert not_finite == "ValueError q of inverse_dynamics of call (1,) holds NaN or infinity"
    assert shape.startswith("ValueError q of inverse_dynamics has shape (4, 2); give one of shape (5, 2)")
    assert too_large.startswith("NoResultError inverse_dynamics has no result")


def test_a_wheel_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    call = partial(export_python, RobotChoice("panda.yaml"), ExportRequest(0), tmp_path)
    refused(call, "needs a C compiler")


@pytest.mark.parametrize("name", ["numpy", "class", "json"])
def test_a_wheel_takes_no_name_of_python(name: str, tmp_path: Path) -> None:
    call = partial(export_python, RobotChoice("panda.yaml"), ExportRequest(0, name), tmp_path)
    refused(call, f"a package cannot be called '{name}'")
    assert not list(tmp_path.iterdir())
