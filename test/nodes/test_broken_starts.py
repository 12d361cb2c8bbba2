"""What a node cannot start with is one line on its standard error, and exit code 1: a table of all nodes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from panda_drives import MIXED, PAIR, write_panda
from ros_processes import start_node
from sweeps import some

PANDA, PLATFORM, FLYING, LEG = (
    {"robot_config": f"{name}.yaml"}
    for name in ("panda", "planar_3rrr", "aerial_manipulator", "humanoid_leg")
)
EXCITATION, ROLL = ({"trajectory": f"{name}.yaml"} for name in ("panda_excitation", "gough_stewart_motion"))
ONE, BARE, TABLED = (
    {"joints": ["a"]},
    {"robot_config": "{tmp}/bare.yaml"},
    {"robot_config": "{tmp}/mixed.yaml"},
)
RELIABILITY = "qos_overrides./desired_motion.subscription.reliability"
BODY = "{about: com, ixx: 1, iyy: 1, izz: 1, ixy: 0, ixz: 0, iyz: 0}"
FILES = {
    "bare.yaml": f"name: bare\nbodies: [{{name: arm, mass: 1, com: [0.1, 0, 0], inertia: {BODY}}}]\n"
    "joints: [{name: hinge, type: continuous, parent: world, child: arm, axis: [0, 0, 1]}]\n",
    "broken.yaml": "name: [panda\n  bodies: {",
    "list.yaml": "- a\n- b\n",
    "urdf.yaml": "urdf: broken.urdf\n",
    "broken.urdf": "<robot name='x'><link name='a'></robot>",
    "huge.yaml": "type: cosines\njoint_names: [a]\namplitudes: [1.0e+308]\nangular_frequencies: [9.0]\n",
}

# What is given, and what the line has to say.
BROKEN: dict[str, list[tuple[dict[str, object], str]]] = {
    "dynamics_node": [
        (
            PANDA | {"payload_mass": 1.0, "payload_inertia": [1.0, 0.0, 0.0, 1.0, 0.0, 3.0]},
            "principal moments",
        ),
        (PANDA | {"effort_limits": [10.0, 20.0]}, "'effort_limits' holds 2 values for 7 joints"),
        ({"robot_config": "nowhere.yaml"}, "no file 'nowhere.yaml'"),
        ({"robot_config": "{tmp}/broken.yaml"}, "broken.yaml"),
        ({"robot_config": "{tmp}/list.yaml"}, "list.yaml"),
        ({"robot_config": "{tmp}/urdf.yaml"}, "broken.urdf"),
        ({"robot_config": "{tmp}/binary.yaml"}, "binary.yaml"),
        (PANDA | {"order": 7}, "parameter 'order' takes integer from 0 to 6"),
        (PANDA | {"order": "two"}, "parameter 'order' takes integer"),
        (PANDA | {"gravity": [9.81]}, "parameter 'gravity' is"),
        (PANDA | {RELIABILITY: "quick"}, "quick"),
    ],
    "trajectory_node": [
        ({}, "'trajectory' and 'robot_config' are both empty"),
        (ROLL | {"wait_for_robot": True}, "'wait_for_robot' is true, but the motion moves a platform alone"),
        ({"trajectory": "nowhere.yaml"}, "no file 'nowhere.yaml'"),
        (EXCITATION | {"rate": 0.0}, "parameter 'rate'"),
        (EXCITATION | {"ramp": 0.0, "duration": 3.0}, "ramp longer than 0 s"),
        ({"trajectory": "panda.yaml"}, "panda.yaml"),
        (
            {"trajectory": "{tmp}/huge.yaml"},
            "huge.yaml: the motion is not finite at 0 s; its numbers are too large",
        ),
        (PLATFORM, "cannot place the platform or floating base of planar_3rrr.yaml"),
        (PANDA | ROLL, "moves a platform or floating base, but panda.yaml has none"),
        (
            FLYING | EXCITATION,
            "moves joints alone, but aerial_manipulator.yaml has a platform or floating base",
        ),
        (FLYING | ROLL, "the motion names [], but the robot has other joints as well; say where they stand"),
    ],
    "simulator_node": [
        ({}, "'robot_config' is empty"),
        (PANDA | {"initial_position": [1.0, 2.0]}, "position must have shape (7,)"),
        (PANDA | {"rate": 1e6}, "parameter 'rate'"),
        (PANDA | {"trajectory": "nowhere.yaml"}, "no file 'nowhere.yaml'"),
        (LEG, "has a floating base, which its drives do not hold"),
    ],
    "controller_node": [
        ({}, "'robot_config' is empty"),
        (PANDA | {"feedforward": "some"}, "'some'; choose one of none, rigid, offset, elastic"),
        (PANDA | {"proportional_gains": [1.0, 2.0]}, "'proportional_gains' holds 2 gains for 7"),
        (PANDA | {"lead": -1.0}, "parameter 'lead'"),
        (BARE, "robot 'bare' has no drives; describe them in its file"),
        (TABLED | {"feedforward": "rigid"}, "choose elastic"),
        ({"robot_config": "{tmp}/pair.yaml"}, "joint 'panda_joint2' of robot 'panda' has a variable"),
    ],
    "forward_effort_node": [
        ({}, "parameter 'joints' is empty"),
        (ONE | {"efforts": "some"}, "'some'; choose one of link, motor"),
        (ONE | {"end": "pray"}, "'pray'; choose one of hold, zero, silent"),
        (ONE | PANDA, "joint 'a' is not driven in robot"),
    ],
    "motor_reference_node": [
        ({"joints": ["a", "b", "a"]}, "names joint 'a' twice"),
        (ONE | {"timeout": 0.0}, "parameter 'timeout'"),
        (ONE | {"stop_on": "rain"}, "'stop_on' names 'rain'; choose from"),
    ],
    "trajectory_filter": [
        ({}, "parameter 'robot_config' is empty"),
        (PLATFORM, "describes a robot that its platform moves"),
        (PANDA | {"efforts": "both"}, "of the 'link' or of the 'motor', found 'both'"),
        (PANDA | {"limits": "ignore"}, "choose reject or pass"),
        (PANDA | {"joints": ["hand"]}, "joint 'hand' is unknown"),
        (PANDA | {"period": 0.0}, "'period' takes double from 0.0005 to 1"),
    ],
    "stream_node": [
        ({}, "parameter 'robot_config' is empty"),
        (PANDA | {"mode": "fast"}, "'fast'; choose one of approximate, interpolate, latest, track"),
        (PANDA | {"jerk": [1.0, 2.0]}, "'jerk' has 2 numbers; give one for each of the 7 joints"),
        (FLYING, "has a floating base"),
    ],
    "observer_node": [
        ({"robot_config": "none.yaml"}, "none.yaml"),
        (PANDA | {"measured": ["position", "effort"]}, "'measured' holds 'effort'; choose from"),
        (PANDA | {"measured": ["position", "motor_position", "velocity"]}, "give velocities of all"),
        (
            PANDA | {"measured": ["position", "velocity"]},
            "nothing says what torque acts on joint 'panda_joint1'",
        ),
        (
            PANDA | {"measured": ["position", "motor_effort", "joint_torque"]},
            "cannot both come on joint_states",
        ),
        (PANDA | {"bandwidth": 1e5}, "bandwidth"),
    ],
    "learning_node": [
        (PANDA, "parameter 'trajectory' is empty"),
        (PANDA | EXCITATION, "the motion has no end"),
    ],
    "mpc_node": [(PANDA | {"delay": 0.05}, "'delay' is 0.05, and the controller looks 0.109 s ahead")],
    "recorder": [
        ({}, "parameter 'file' is empty; say where the bag goes"),
        ({"file": "/"}, "'/' exists already; choose another name, or remove it"),
        ({"file": "/proc/bag"}, "FileNotFoundError: [Errno 2] No such file or directory: '/proc/bag'"),
        ({"file": "/x", "storage": "rosbag1"}, "there is no storage 'rosbag1'; choose mcap or sqlite3"),
    ],
}
CASES = [(node, given, words) for node, cases in BROKEN.items() for given, words in cases]
# What reads files and parameters is the same in all nodes: of each of these kinds one is enough.
KINDS = ("no file", "parameter '", "choose one of", "choose from", "' is empty", "values for 7 joints")


def one_of_each_kind() -> Iterator[tuple[str, dict[str, object], str]]:
    seen = set[str]()
    for case in CASES:
        kind = next((each for each in KINDS if each in case[2]), case[2])
        if kind not in seen:
            yield case
        seen.add(kind)


CHOSEN = some(CASES, *one_of_each_kind())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "binary.yaml").write_bytes(np.random.default_rng(5).bytes(500))
    write_panda(folder / "mixed.yaml", MIXED)
    write_panda(folder / "pair.yaml", PAIR)
    return folder


@pytest.mark.parametrize(
    ("node", "given", "words"), CHOSEN, ids=[f"{node}: {words}" for node, _, words in CHOSEN]
)
def test_a_broken_start_ends_with_one_readable_line(
    node: str, given: dict[str, object], words: str, folder: Path
) -> None:
    if node == "mpc_node":
        pytest.importorskip("daqp", reason="daqp is not installed; it is the extra mpc")
    filled = {key: each.format(tmp=folder) if isinstance(each, str) else each for key, each in given.items()}
    with start_node(node, filled) as process:
        assert process.wait() == 1, process.output()
    assert len(process.lines) == 1, process.output()
    assert process.lines[0].startswith("error: ") and words in process.lines[0], process.output()
