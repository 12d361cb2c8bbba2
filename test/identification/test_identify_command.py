"""`hodyn identify`: from files and bags to a robot file, a report and pictures."""

import base64
import json
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from bag_samples import SECOND, START, header, serialised, write
from command_line import run
from measured_arm import ARM, LINK_DELAY, measured, measured_arm, swings
from PIL import Image
from refusals import refused, unknown
from rosbags.typesys import get_types_from_msg

from hodyn_ros import Robot
from hodyn_ros.bags.comparison.sources import FEEDFORWARD_TORQUE
from hodyn_ros.bags.files.types import ros_types
from hodyn_ros.bags.joint_states import CONTROLLER_STATE, JOINT_STATE
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.identification import JointRecording
from hodyn_ros.identification.files import read_recording, require_use
from hodyn_ros.identification.interruptions import without_interruptions

MAP = """
time: stamp
time_scale: 1e-3
effort: [i0, i1, i2]
effort_scale: 10
position: [l0, l1, l2]
position_scale: [0.017453292519943295]
motor_position: [m0, m1, m2]
motor_position_scale: [0.01, 0.0125, 0.016666666666666666]
"""


@pytest.fixture(name="arm")
def make_arm(tmp_path: Path) -> Robot:
    return measured_arm(tmp_path)


def written(recording: JointRecording, path: Path) -> Path:
    """Write a table in units of its own: milliseconds, amperes, degrees, and turns of rotors in rad."""
    assert recording.motors is not None and recording.links is not None
    parts = [
        1e3 * recording.efforts.times[:, None],
        recording.efforts.values / 10.0,
        np.rad2deg(recording.links.values),
        recording.motors.values * [100, 80, 60],
    ]
    heads = ["stamp", *(f"{kind}{j}" for kind in "ilm" for j in range(3))]
    np.savetxt(path, np.hstack(parts), delimiter=",", header=",".join(heads), comments="", fmt="%.15g")
    return path


@pytest.mark.thorough
def test_from_tables_to_a_robot_file(
    arm: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(measured(arm, 0, duration=4.5), tmp_path / "first.csv")
    other = written(measured(arm, 1, duration=2.5, motion=swings(scale=0.8)), tmp_path / "second.csv")
    (tmp_path / "map.yaml").write_text(MAP)
    guess = tmp_path / "guess.yaml"
    guess.write_text(ARM.replace("stiffness: 3000", "stiffness: 2000").replace("mass: 2,", "mass: 2.6,"))
    out, report = tmp_path / "out.yaml", tmp_path / "report"
    arguments = ("--columns", tmp_path / "map.yaml", "--validate", other, "--out", out, "--report", report)
    assert run(monkeypatch, "identify", guess, table, *arguments) == 0
    said = capsys.readouterr().out
    assert "stiffness of lift" in said and "second.csv, which was not used" in said
    found = Robot.load(out)
    assert found.drive_train is not None
    np.testing.assert_allclose(found.drive_train.stiffness, [4000, 3000, 2000], rtol=0.02)
    assert "identified from first.csv, standard deviation" in out.read_text()
    figures = json.loads((report / "identified.json").read_text())
    delays = [each["value"] for each in figures["figures"] if each["name"].startswith("delay of the link")]
    np.testing.assert_allclose(delays, LINK_DELAY, atol=1e-5)
    assert set(figures["validation"][0]["deflections"]) == set(arm.joint_names)
    assert all(low < high for low, high in (each["interval"] for each in figures["figures"]))
    page = (report / "report.html").read_text()
    assert "second.csv, which was not used" in page and "95 % interval" in page
    names = ("figures", "efforts", "deflections", "validation1-efforts", "validation1-deflections")
    for name in names:
        assert base64.b64encode((report / f"{name}.png").read_bytes()).decode() in page
        picture = np.asarray(Image.open(report / f"{name}.png"))
        assert picture.shape[0] > 300 and picture.std() > 3.0


def test_archives_hold_the_same(arm: Robot, tmp_path: Path) -> None:
    recording = measured(arm, 0, duration=1.0)
    assert recording.motors is not None and recording.links is not None
    path = tmp_path / "run.npz"
    values = {"position": recording.links.values, "motor_position": recording.motors.values}
    np.savez(
        path,
        time=recording.efforts.times,
        effort=recording.efforts.values,
        joint_names=list(arm.joint_names),
        **values,
    )
    read = read_recording(path, arm.joint_names)
    assert read.motors is not None and read.links is not None
    np.testing.assert_array_equal(read.motors.values, recording.motors.values)
    np.testing.assert_array_equal(read.links.values, recording.links.values)
    np.testing.assert_array_equal(read.efforts.values, recording.efforts.values)


def test_parquet_holds_the_same(arm: Robot, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    recording = measured(arm, 0, duration=1.0)
    assert recording.links is not None
    stamps = START + np.round(recording.efforts.times * SECOND).astype(np.int64)
    columns = {"time": arrow.array(stamps, arrow.timestamp("ns")), "remark": ["as it came"] * len(stamps)}
    for kind, channel in (("position", recording.links), ("effort", recording.efforts)):
        columns |= {f"{name}.{kind}": channel.values[:, j] for j, name in enumerate(arm.joint_names)}
    parquet.write_table(arrow.table(columns), tmp_path / "run.parquet")
    read = read_recording(tmp_path / "run.parquet", arm.joint_names)
    assert read.links is not None and read.motors is None
    np.testing.assert_array_equal(read.links.values, recording.links.values)
    np.testing.assert_array_equal(read.efforts.values, recording.efforts.values)
    since = recording.efforts.times - recording.efforts.times[0]
    np.testing.assert_allclose(read.efforts.times, since, atol=1e-9)
    (tmp_path / "no.parquet").write_text("time,effort")
    refused(lambda: read_recording(tmp_path / "no.parquet", arm.joint_names), "no.parquet is no Parquet file")


def test_parquet_without_its_reader_says_what_to_install(
    arm: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(monkeypatch, "identify", tmp_path / "arm.yaml", tmp_path / "run.parquet") != 0
    said = capsys.readouterr().err
    assert "this needs pyarrow, which is missing: pip install pyarrow, or hodyn_ros[parquet]" in said


def bag(
    path: Path,
    recording: JointRecording,
    with_efforts: bool = True,
    change: Callable[[int, dict[str, object]], None] = lambda i, values: None,
    gripper: bool = False,
    commanded: bool = False,
) -> Path:
    """Write joint states of links and motors, joints the other way round, as drivers publish them."""
    assert recording.motors is not None and recording.links is not None
    topics = [Topic("/joint_states", JOINT_STATE), Topic("/motor_states", JOINT_STATE)]
    names = list(recording.joint_names[::-1])
    messages = []
    for i, time in enumerate(recording.efforts.times):
        stamp = START + round(time * SECOND)
        for topic, channel in zip(topics, (recording.links, recording.motors)):
            effort = recording.efforts.values[i, ::-1] if topic is topics[1] and with_efforts else []
            values = {"header": header(stamp), "name": names}
            values |= {"position": channel.values[i, ::-1], "effort": effort}
            change(i, values)
            messages.append(Message(topic.name, stamp, serialised(JOINT_STATE, **values)))
    if gripper:
        topics.append(Topic("/gripper/joint_states", JOINT_STATE))
        data = serialised(JOINT_STATE, header=header(START), name=["finger"], position=[0.02])
        messages.append(Message(topics[-1].name, START, data))
    if commanded:
        topics.append(Topic("/joint_command", JOINT_STATE))
        for time, desired in zip(recording.links.times, recording.links.values[:, ::-1] + 0.01):
            stamp = START + round(time * SECOND)
            data = serialised(JOINT_STATE, header=header(stamp), name=names, position=desired)
            messages.append(Message(topics[-1].name, stamp, data))
    return write(path, "mcap", messages, topics)


def test_bags_hold_the_same(arm: Robot, tmp_path: Path) -> None:
    recording = measured(arm, 0, duration=1.0)
    read = read_recording(bag(tmp_path / "run", recording), arm.joint_names)
    assert read.motors is not None and recording.motors is not None
    np.testing.assert_array_equal(read.motors.values, recording.motors.values)
    np.testing.assert_array_equal(read.efforts.values, recording.efforts.values)
    np.testing.assert_allclose(read.efforts.times - START / SECOND, recording.efforts.times, atol=1e-6)


def test_a_bag_without_efforts_is_refused(arm: Robot, tmp_path: Path) -> None:
    path = bag(tmp_path / "run", measured(arm, 0, duration=1.0), with_efforts=False)
    refused(lambda: read_recording(path, arm.joint_names), "the field effort of ... is empty")


def test_what_a_driver_publishes_before_it_has_read_is_left_out_and_said(arm: Robot, tmp_path: Path) -> None:
    def unread(i: int, values: dict[str, object]) -> None:
        if i < 3:
            nothing = np.full(len(arm.joint_names), np.nan)
            values |= {"position": nothing, "effort": nothing}

    recording = measured(arm, 0, duration=1.0)
    read = read_recording(bag(tmp_path / "run", recording, change=unread), arm.joint_names)
    for channel, whole in ((read.efforts, recording.efforts), (read.links, recording.links)):
        assert channel is not None and whole is not None
        np.testing.assert_array_equal(channel.values, whole.values[3:])
    count = len(recording.efforts.times)
    assert f"3 of {count} positions on /joint_states are no numbers, and left out" in read.notes


def test_joint_states_of_a_gripper_are_passed_over(arm: Robot, tmp_path: Path) -> None:
    recording = measured(arm, 0, duration=1.0)
    read = read_recording(bag(tmp_path / "run", recording, gripper=True), arm.joint_names)
    assert read.links is not None and recording.links is not None
    np.testing.assert_array_equal(read.links.values, recording.links.values)


def test_of_measured_and_commanded_joint_states_one_is_chosen(arm: Robot, tmp_path: Path) -> None:
    recording = measured(arm, 0, duration=1.0)
    path = bag(tmp_path / "run", recording, commanded=True)
    refused(
        lambda: read_recording(path, arm.joint_names), "/joint_command, /joint_states; choose ... --topic"
    )
    for topic, away in (("/joint_states", 0.0), ("/joint_command", 0.01)):
        read = read_recording(path, arm.joint_names, topics=[topic])
        assert read.links is not None and recording.links is not None
        np.testing.assert_array_equal(read.links.values, recording.links.values + away)
    both, other = ["/joint_states", "/joint_command"], ["/joint_states", "/joint_state"]
    refused(lambda: read_recording(path, arm.joint_names, topics=both), "choose one of them with --topic")
    refused(lambda: read_recording(path, arm.joint_names, topics=other), "/joint_state is not read; what is")


@pytest.mark.parametrize(
    ("stamps", "words"),
    [
        (1, "all ... messages on /motor_states have the stamp"),
        (175, "stamps on /motor_states go back by 0.69"),
    ],
)
def test_stamps_of_a_bag_that_stand_or_begin_again_are_refused(
    arm: Robot, tmp_path: Path, stamps: int, words: str
) -> None:
    def stamped(i: int, values: dict[str, object]) -> None:
        values["header"] = header(START + i % stamps * SECOND // 250)

    path = bag(tmp_path / "run", measured(arm, 0, duration=1.0), change=stamped)
    refused(lambda: read_recording(path, arm.joint_names), words)


def test_the_result_says_that_a_bag_was_cut_off(arm: Robot, tmp_path: Path) -> None:
    path = bag(tmp_path / "run", measured(arm, 0, duration=2.5))
    (path / "metadata.yaml").unlink()
    _, notes = without_interruptions(read_recording(path, arm.joint_names).of_joints(arm.joint_names))
    assert "was not completed (it has no metadata.yaml)" in notes[0]


_POINT = ("positions", "velocities", "accelerations", "effort")
_STATE = """std_msgs/Header header
string[] joint_names
trajectory_msgs/JointTrajectoryPoint reference
trajectory_msgs/JointTrajectoryPoint feedback
trajectory_msgs/JointTrajectoryPoint error
trajectory_msgs/JointTrajectoryPoint output
"""


def controller_bag(path: Path, recording: JointRecording, storage: str, effort_of: str) -> Path:
    """Write states of a joint_trajectory_controller, whose type the bag alone defines, and feedforwards."""
    assert recording.links is not None
    store = ros_types()
    store.register(get_types_from_msg(_STATE, CONTROLLER_STATE))
    state_topic = Topic(
        "/controller_state", CONTROLLER_STATE, store.generate_msgdef(CONTROLLER_STATE)[0], "ros2msg"
    )
    answers = Topic("/feedforward_torque", FEEDFORWARD_TORQUE)
    make = store.types
    none, names = np.zeros(0), list(recording.joint_names[::-1])
    since = make["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
    messages = []

    def point(**values: object) -> object:
        filled = {name: values.get(name, none) for name in _POINT}
        return make["trajectory_msgs/msg/JointTrajectoryPoint"](**filled, time_from_start=since)

    for i, time in enumerate(recording.efforts.times):
        stamp = START + round(time * SECOND)
        q, u = recording.links.values[i, ::-1].copy(), recording.efforts.values[i, ::-1].copy()
        points = {name: point(positions=q) for name in ("reference", "feedback", "error", "output")}
        if effort_of in points:
            points[effort_of] = point(positions=q, effort=u)
        time_of = make["builtin_interfaces/msg/Time"](sec=stamp // SECOND, nanosec=stamp % SECOND)
        head = make["std_msgs/msg/Header"](stamp=time_of, frame_id="")
        state = make[CONTROLLER_STATE](header=head, joint_names=names, **points)
        data = bytes(store.serialize_cdr(state, CONTROLLER_STATE))
        messages.append(Message(state_topic.name, stamp, data))
        if effort_of == "feedforward":
            values = {"header": header(stamp), "joint_names": names, "efforts": 2.0 * u, "motor_efforts": u}
            messages.append(Message(answers.name, stamp, serialised(FEEDFORWARD_TORQUE, **values)))
    return write(path, storage, messages, (state_topic, answers))


@pytest.mark.parametrize(
    ("storage", "effort_of"), [("mcap", "feedback"), ("sqlite3", "output"), ("mcap", "feedforward")]
)
def test_bags_of_controllers_hold_the_same(arm: Robot, tmp_path: Path, storage: str, effort_of: str) -> None:
    recording = measured(arm, 0, duration=0.5)
    path = controller_bag(tmp_path / "run", recording, storage, effort_of)
    read = read_recording(path, arm.joint_names)
    assert read.links is not None and read.motors is None and recording.links is not None
    np.testing.assert_array_equal(read.links.values, recording.links.values)
    np.testing.assert_array_equal(read.efforts.values, recording.efforts.values)
    computed = ", efforts as computed on /feedforward_torque"
    assert read.source == "run" + (computed if effort_of == "feedforward" else "")
    if effort_of == "feedforward":
        behind = read_recording(path, arm.joint_names, at_motor=False)
        np.testing.assert_array_equal(behind.efforts.values, 2.0 * recording.efforts.values)


def test_a_bag_of_a_controller_without_efforts_is_refused(arm: Robot, tmp_path: Path) -> None:
    path = controller_bag(tmp_path / "run", measured(arm, 0, duration=0.5), "mcap", "nothing")
    refused(lambda: read_recording(path, arm.joint_names), "the field effort of /controller_state is empty")


def test_motors_that_turn_with_two_joints_are_told_apart(arm: Robot, tmp_path: Path) -> None:
    recording = measured(arm, 0, duration=0.5)
    assert recording.motors is not None
    shared = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 1.0]])  # of bend's motor with lift
    motors, efforts = recording.motors.values @ shared.T, recording.efforts.values @ np.linalg.inv(shared)
    rows = np.column_stack([recording.efforts.times, motors, efforts])
    heads = ["stamp", *(f"{kind}{j}" for kind in "mi" for j in range(3))]
    np.savetxt(tmp_path / "run.csv", rows, delimiter=",", header=",".join(heads), comments="", fmt="%.17g")
    columns = tmp_path / "map.yaml"
    columns.write_text(
        "{time: stamp, effort: [i0, i1, i2], motor_position: [m0, m1, m2],"
        " coupled_motors: [{motor: bend, joint: lift, ratio: 0.5}]}"
    )
    read = read_recording(tmp_path / "run.csv", arm.joint_names, columns)
    assert read.motors is not None and read.transmission is not None
    np.testing.assert_array_equal(read.transmission, shared)
    np.testing.assert_allclose(read.motors.values, recording.motors.values, atol=1e-14)
    np.testing.assert_allclose(read.efforts.values, recording.efforts.values, atol=1e-12)
    columns.write_text(columns.read_text().replace("motor: bend", "motor: wrist"))
    call = partial(read_recording, tmp_path / "run.csv", arm.joint_names, columns)
    refused(call, unknown("joint of coupled_motors", "wrist"))


BINARY = np.random.default_rng(1).bytes(3000)


def archive(**arrays: object) -> bytes:
    """Return the bytes of an NPZ."""
    content = BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


EFFORT = {"effort": np.zeros((200, 3)), "joint_names": ["j1", "j2", "j3"]}
WHOLE = archive(time=np.arange(200.0), **EFFORT)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("binary.csv", BINARY, "is no table of numbers"),
        ("wide.csv", "time,j1.effort\n0,1\n".encode("utf-16"), "is no table of numbers"),
        ("late.csv", b"time,j1.effort\n0,1\n0,\xff\n", "is no table of numbers"),
        ("empty.csv", b"", "holds no numbers"),
        ("zeros.csv", bytes(2_000_000), "the first line has 1000000 characters and more"),
        ("endless.csv", b"x" * 2_000_000, "the first line has 1000000 characters and more"),
        ("others.csv", b"\0,x\n1,2\n", "there are no efforts called"),
        ("binary.npz", BINARY, "is no NPZ archive"),
        ("empty.npz", b"", "is no NPZ archive"),
        ("half.npz", WHOLE[: len(WHOLE) // 2], "is no NPZ archive"),
        ("flipped.npz", WHOLE.replace(bytes(800), bytes(799) + b"x", 1), "is no NPZ archive"),
        ("words.npz", archive(time=["then"], **EFFORT), "is no NPZ archive"),
        ("short.npz", archive(time=np.arange(199.0), **EFFORT), "has 200 numbers in column 'j1.effort'"),
        ("scalar.npz", archive(time=np.array(1.0), **EFFORT), "has no column 'time'"),
        ("binary.parquet", BINARY, "is no Parquet file"),
        ("empty.parquet", b"", "is no Parquet file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "content",
)
def test_files_that_are_no_recordings_are_refused_in_a_line(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(content)
    warnings.simplefilter("error")
    error = refused(lambda: read_recording(path, ["j1", "j2", "j3"]), said)
    assert "\0" not in str(error) and len(str(error)) < 500


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"run.{kind}"
    os.mkfifo(path)
    refused(lambda: read_recording(path, ["j1"]), "is not a regular file")


def test_the_command_says_what_is_wrong_in_a_line(
    arm: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.csv").write_bytes(BINARY)
    out = tmp_path / "found"
    assert run(monkeypatch, "identify", tmp_path / "arm.yaml", tmp_path / "run.csv", "--out", out) == 2
    assert "is no table of numbers" in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def test_options_that_no_recording_is_for_are_refused(tmp_path: Path) -> None:
    table, bag, columns = tmp_path / "run.CSV", tmp_path / "bag", tmp_path / "map.yaml"
    require_use([table, bag], columns, ["/joint_states"])  # each is for one of them
    require_use([table], columns, ())
    require_use([bag], None, ["/joint_states"])
    refused(lambda: require_use([table], None, ["/joint_states"]), "--topic /joint_states is of bags, and no")
    refused(
        lambda: require_use([bag], columns, ()), "map.yaml is of CSV, Parquet and NPZ, and all ... are bags"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("time: stamp", "time: stump"), "no column 'stump'; it has stamp"),
        (("[i0, i1, i2]", "[i0, i1]"), "effort has 2 columns, and the robot 3 joints"),
        (("effort_scale: 10", "effort_scale: [10, 20]"), "one number, or 3"),
        (("effort_scale: 10", "effort_scale: ten"), "map.yaml:5: effort_scale: must be a"),
        (("effort:", "torque:"), "torque"),
    ],
)
def test_maps_that_are_wrong_are_refused(
    arm: Robot, tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    table = written(measured(arm, 0, duration=1.0), tmp_path / "run.csv")
    path = tmp_path / "map.yaml"
    path.write_text(MAP.replace(*change))
    refused(lambda: read_recording(table, arm.joint_names, path), said)
