"""Two recordings side by side: what is missing, what differs, and by how much."""

import math
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bag_samples import START, TOPICS, feedforward, header, recording, serialised, write
from PIL import Image
from refusals import refused
from rich.console import Console

from hodyn_ros.bags.comparison.commands import print_fields, run_compare, verdict
from hodyn_ros.bags.comparison.compare import (
    Alone,
    Comparison,
    Difference,
    TopicComparison,
    compare,
    names_of_elements,
)
from hodyn_ros.bags.comparison.sources import FEEDFORWARD_TORQUE
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.bags.reader import Bag

ANSWERS = "/arm/feedforward_torque"
MESSAGES = recording(60)
TIME = START + 200_000  # [ns] of the first answer


def compared(tmp_path: Path, second: list[Message], tolerance: float = 0.0) -> Comparison:
    """Compare the recording, in one storage, with another in the other."""
    paths = write(tmp_path / "first", "mcap", MESSAGES), write(tmp_path / "second", "sqlite3", second)
    with Bag(paths[0]) as one, Bag(paths[1]) as other:
        return compare(one, other, tolerance)


def changed(k: int, data: bytes, messages: list[Message] = MESSAGES) -> list[Message]:
    """Return a recording with another answer to the k-th sample."""
    time = TIME + k * 1_000_000
    return [
        message._replace(data=data) if (message.topic, message.time) == (ANSWERS, time) else message
        for message in messages
    ]


def answer(k: int, first: float = 0.0, second: float = 0.0, **values: object) -> bytes:
    """Return the k-th answer with something added to its efforts."""
    return feedforward(START + k * 1_000_000, [np.sin(0.01 * k) + first, 3.0 * k + second], **values)


def test_equal_recordings_agree(tmp_path: Path) -> None:
    found = compared(tmp_path, MESSAGES)
    assert not found.differs
    assert {name: topic.pairs for name, topic in found.topics.items()} == {
        "/arm/desired_motion": 60,
        ANSWERS: 60,
        "/arm/note": 1,
    }


def test_thrusts_are_those_of_propellers() -> None:
    """Which may be as many as the joints."""
    message = SimpleNamespace(joint_names=["shoulder", "elbow"], propeller_names=["left", "right"])
    assert names_of_elements(message, "efforts") == ["shoulder", "elbow"]
    assert names_of_elements(message, "thrusts") == ["left", "right"]
    assert names_of_elements(message, "base_wrenches") == []


def test_computation_times_are_left_out(tmp_path: Path) -> None:
    assert not compared(tmp_path, changed(7, answer(7, computation_time=1.0))).differs


def test_the_largest_difference_is_found_with_joint_and_time(tmp_path: Path) -> None:
    second = changed(20, answer(20, 0.0, 0.5), changed(30, answer(30, 0.25, -3.0)))
    topic = compared(tmp_path, second).topics[ANSWERS]
    (found,) = topic.fields.values()
    assert list(topic.fields) == ["efforts"]
    assert (found.count, found.absolute, found.element) == (2, 3.0, "elbow")
    assert found.first == pytest.approx(0.0202, abs=1e-12)
    assert found.time == pytest.approx(0.0302, abs=1e-12)
    assert found.relative == pytest.approx(0.25 / (np.sin(0.3) + 0.25), rel=1e-12)
    assert [size for _, size in found.series] == [0.5, 3.0]


def test_one_bit_counts_unless_there_is_a_tolerance(tmp_path: Path) -> None:
    value = 3.0 * 10
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    (next_value,) = struct.unpack("<d", struct.pack("<q", bits + 1))
    second = changed(10, answer(10, 0.0, next_value - value))
    found = compared(tmp_path / "exact", second).topics[ANSWERS].fields["efforts"]
    assert found.absolute == next_value - value == math.ulp(value)
    assert not compared(tmp_path / "loose", second, 1e-12).differs


def test_the_sign_of_zero_counts_as_a_bit(tmp_path: Path) -> None:
    data = feedforward(START, [-0.0, 0.0])
    found = compared(tmp_path / "exact", changed(0, data)).topics[ANSWERS].fields["efforts"]
    assert (found.count, found.absolute, found.relative) == (1, 0.0, 0.0)
    assert not compared(tmp_path / "loose", changed(0, data), 1e-300).differs


def test_missing_and_additional_messages_are_told_apart(tmp_path: Path) -> None:
    late = Message(ANSWERS, TIME + 60_000_000, answer(60))
    second = [m for m in MESSAGES if (m.topic, m.time) != (ANSWERS, TIME + 5_000_000)] + [late]
    topic = compared(tmp_path, second).topics[ANSWERS]
    assert topic.pairs == 59
    assert topic.missing == Alone([pytest.approx(0.0052, abs=1e-12)], [])
    assert topic.extra == Alone([], [pytest.approx(0.0602, abs=1e-12)])
    assert not topic.fields


def test_repeated_stamps_go_together_in_their_order(tmp_path: Path) -> None:
    repeated = Message(ANSWERS, TIME + 500, answer(0, 1.0))
    first = write(tmp_path / "one", "mcap", [*MESSAGES, repeated])
    second = write(tmp_path / "other", "mcap", [*MESSAGES, repeated])
    with Bag(first) as one, Bag(second) as other:
        assert not compare(one, other).differs


@pytest.mark.parametrize(
    ("data", "element"),
    [
        (feedforward(START, [1.0]), "length"),
        (feedforward(START, [math.nan, 0.0]), "shoulder"),
    ],
)
def test_what_is_no_distance_is_infinite(data: bytes, element: str, tmp_path: Path) -> None:
    found = compared(tmp_path, changed(0, data)).topics[ANSWERS].fields["efforts"]
    assert (found.absolute, found.element) == (math.inf, element)


def test_nan_on_both_sides_agrees(tmp_path: Path) -> None:
    paths = [
        write(
            tmp_path / str(time),
            "mcap",
            [Message(ANSWERS, TIME, feedforward(START, [math.nan, 0.0], computation_time=time))],
        )
        for time in (1.0, 2.0)
    ]
    with Bag(paths[0]) as one, Bag(paths[1]) as other:
        assert not compare(one, other).differs


def test_names_are_compared_as_texts(tmp_path: Path) -> None:
    data = serialised(
        FEEDFORWARD_TORQUE, header=header(START), joint_names=["shoulder", "wrist"], efforts=[0, 0]
    )
    fields = compared(tmp_path, changed(0, data)).topics[ANSWERS].fields
    assert {name: found.element for name, found in fields.items()} == {"joint_names[1]": "text"}


def of_another_version(fields: str) -> Topic:
    """Return the answers as a bag holds them whose FeedforwardTorque had a header and some other fields."""
    rule = "=" * 80
    header = f"{rule}\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
    time = f"{rule}\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
    return Topic(ANSWERS, FEEDFORWARD_TORQUE, f"std_msgs/Header header\n{fields}{header}{time}")


HEADER = answer(0)[: 4 + 8 + 4 + 6]  # encapsulation, stamp, length and text of the frame


def test_a_version_with_other_fields_is_compared_by_the_fields_of_both(tmp_path: Path) -> None:
    data = HEADER + b"\x00\x00" + struct.pack("<I", 1) + struct.pack("<d", 5.0)
    old = of_another_version("float64[] torques\n")
    first = write(tmp_path / "old", "mcap", [Message(ANSWERS, TIME, data)], (old,))
    second = write(tmp_path / "new", "mcap", [Message(ANSWERS, TIME, answer(0))])
    with Bag(first) as one, Bag(second) as other:
        fields = compare(one, other).topics[ANSWERS].fields
    assert fields["torques"].element == "only in the first"
    assert fields["efforts"].element == "only in the second"
    assert "header.stamp.sec" not in fields


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("second_joint", ["elbow", "wrist"])
def test_fields_that_a_message_has_got_since_are_named_and_not_compared(
    tmp_path: Path, second_joint: str, swapped: bool
) -> None:
    names = struct.pack("<xxII9sxxxI6s", 2, 9, b"shoulder", 6, second_joint.encode())
    old = of_another_version("string[] joint_names\n")
    bags = [
        write(tmp_path / "old", "mcap", [Message(ANSWERS, TIME, HEADER + names)], (old,)),
        write(tmp_path / "new", "mcap", [Message(ANSWERS, TIME, answer(0))]),
    ]
    with Bag(bags[swapped]) as one, Bag(bags[not swapped]) as other:
        found = compare(one, other)
    assert found.agree is (second_joint == "elbow")  # the joint of today's answer
    assert {"efforts", "status"} < found.topics[ANSWERS].added
    assert f"lack: base_wrench_representation of {ANSWERS}, base_wrenches of" in verdict(found, 0.0)


def test_topics_of_one_bag_only_are_named(tmp_path: Path) -> None:
    first = write(tmp_path / "one", "mcap", MESSAGES)
    second = write(tmp_path / "other", "mcap", [m for m in MESSAGES if m.topic != "/arm/note"])
    with Bag(first) as one, Bag(second) as other:
        found = compare(one, other)
        assert (found.only_first, found.only_second, found.differs) == (["/arm/note"], [], True)
        assert not compare(one, other, topics=[ANSWERS]).differs
        refused(
            lambda: compare(one, other, topics=["/arm/torque"]), "on /arm/torque; they have: /arm/desired"
        )


def run(
    tmp_path: Path, second: list[Message], first: list[Message] = MESSAGES, ignore_edges: bool = False
) -> tuple[bool, str]:
    """Run the command; return whether the bags agree, and what it has printed."""
    tmp_path.mkdir(exist_ok=True)
    console = Console(width=80, record=True, file=(tmp_path / "printed").open("w"))
    one, other = write(tmp_path / "one", "mcap", first), write(tmp_path / "two", "mcap", second)
    found = run_compare(one, other, 0.0, (), tmp_path / "picture.png", console, ignore_edges)
    return found.agree, console.export_text()


@pytest.mark.thorough
def test_the_command_prints_a_table_and_draws_a_picture(tmp_path: Path) -> None:
    agree, printed = run(tmp_path, changed(30, answer(30, 0.25, -3.0)))
    assert not agree
    assert "/arm/desired_motion: 60 messages compared, no difference in them" in printed
    row = next(line for line in printed.splitlines() if line.split()[:1] == ["efforts"])
    assert row.split() == ["efforts", "1", "3", "0.458", "elbow", "0.0302"]
    assert (
        "differ, first at 0.0302 s: efforts of /arm/feedforward_torque (computation_time is left" in printed
    )
    assert max(map(len, printed.splitlines())) <= 130
    picture = np.asarray(Image.open(tmp_path / "picture.png"))
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 10


def test_a_picture_of_missing_messages_only_can_be_drawn(tmp_path: Path) -> None:
    agree, printed = run(tmp_path, [m for m in MESSAGES if m.topic != ANSWERS or m.time < TIME + 9_000_000])
    assert not agree
    assert (
        "9 messages compared, 51 only in the first, from 0.0092 s on (all at its edges), no difference in"
        in printed
    )
    assert (
        "differ at their edges only, which --ignore-edges allows; the messages in both agree bit by bit"
        in printed
    )
    assert (tmp_path / "picture.png").exists()


@pytest.mark.thorough
def test_edges_can_be_ignored_and_nothing_else(tmp_path: Path) -> None:
    """A recording that begins and ends at other instants, and one that lacks something in its middle."""

    def part(begin: int, end: int, without: int = -1) -> list[Message]:
        return [
            m
            for m in MESSAGES
            if m.topic != ANSWERS
            or (begin <= (m.time - TIME) // 1_000_000 < end and (m.time - TIME) // 1_000_000 != without)
        ]

    agree, printed = run(tmp_path / "edges", part(0, 50), part(10, 60), ignore_edges=True)
    assert agree
    assert (
        "40 messages compared, 10 only in the first, from 0.0502 s on (all at its edges, which do" in printed
    )
    assert "10 only in the second, from 0.0002 s on (all at its edges, which do not count)" in printed
    assert "the recordings agree bit by bit but for their edges (computation_time is left out)" in printed
    assert not run(tmp_path / "counted", part(0, 50), part(10, 60))[0]
    agree, printed = run(tmp_path / "middle", part(0, 50, without=30), part(10, 60), ignore_edges=True)
    assert not agree
    assert "11 only in the first, from 0.0302 s on (10 at its edges, which do not count)" in printed
    assert "differ in the messages they hold" in printed
    topics_differ = [m for m in MESSAGES if m.topic != "/arm/note"]
    assert not run(tmp_path / "topics", topics_differ, ignore_edges=True)[0]


def test_what_a_recording_seems_to_lack_is_said(tmp_path: Path) -> None:
    lost = [m for m in MESSAGES if m.topic != ANSWERS or not 20 <= (m.time - TIME) // 1_000_000 < 25]
    _, printed = run(tmp_path, lost)
    assert (
        f"warning: '{tmp_path / 'two'}' has 5 messages missing in a gap of up to 6 ms, by stamps that are "
        f"1 ms apart elsewhere on {ANSWERS}" in printed
    )
    assert printed.count("warning") == 1


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("joint", ["elbow", "left_arm_with_a_long_name_shoulder_pan_joint"])
def test_tables_lose_no_digit_and_break_no_word(width: int, joint: str) -> None:
    topic = TopicComparison(
        pairs=99999,
        fields={
            "higher_motor_effort_derivatives": Difference(12345, 1.234e-15, 9.876e-11, 1795224.6471, joint),
            "joint_names[1]": Difference(1, math.inf, math.inf, 0.0302, "text"),
        },
    )
    with Path("/dev/null").open("w") as nowhere:
        console = Console(width=width, record=True, file=nowhere)
        print_fields(topic, console)
    printed = console.export_text()
    words = printed.replace("(", " ").replace(")", " ").replace(",", " ").replace(":", " ").split()
    expected = {"higher_motor_effort_derivatives", "joint_names[1]", joint, "12345", "1.23e-15", "9.88e-11"}
    assert expected | {"1795224.6471", "text", "inf", "0.0302"} <= set(words)
    assert max(map(len, printed.splitlines())) <= max(width, 4 + len(joint))


def test_recordings_that_agree_have_no_picture(tmp_path: Path) -> None:
    agree, printed = run(tmp_path, MESSAGES)
    assert agree
    assert "there is no difference to draw" in printed
    assert "the recordings agree bit by bit (computation_time is left out)" in printed
    assert not (tmp_path / "picture.png").exists()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], MESSAGES),
        (MESSAGES, []),
        ([], []),
        ([Message(ANSWERS, TIME, answer(0))], [Message(ANSWERS, TIME, answer(1))]),
    ],
    ids=["first empty", "second empty", "both empty", "other stamps"],
)
def test_recordings_without_anything_in_common_do_not_agree(
    first: list[Message], second: list[Message], tmp_path: Path
) -> None:
    agree, printed = run(tmp_path, second, first)
    assert not agree
    assert printed.splitlines()[-1].startswith("the recordings have nothing in common: ")
    assert " agree " not in printed


def test_progress_ends_at_one(tmp_path: Path) -> None:
    path = write(tmp_path / "one", "mcap", MESSAGES)
    shares: list[float] = []
    with Bag(path) as one, Bag(path) as other:
        compare(one, other, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(TOPICS) == 3
