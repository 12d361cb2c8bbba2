"""Bags: written, read whole and in part, told apart. Without ROS, but for the type hashes."""

import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import pytest
import yaml
from bag_samples import START, TOPICS, offered, recording, serialised, storage_file, write, write_compressed
from places import ROOT
from refusals import refused
from rosbags.interfaces import QosDurability, QosHistory
from rosbags.rosbag2 import CompressionMode, Reader
from sweeps import some

from hodyn_ros.bags.comparison.sources import DESIRED_MOTION, FEEDFORWARD_TORQUE, STRING, find_sources
from hodyn_ros.bags.files.types import learn, recorded_types, ros_types, todays_hash, type_hash
from hodyn_ros.bags.messages import DamagedError, Message, Topic, stamp_of
from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.writer import BagWriter

LATCHED = offered(QosHistory.KEEP_LAST, 1, QosDurability.TRANSIENT_LOCAL)


@cache
def recorded() -> list[Message]:
    """Return a recording, which is computed only where one of these tests runs."""
    return recording(1000)


@pytest.fixture
def bag(storage: str, tmp_path: Path) -> Path:
    return write(tmp_path / "bag", storage, recorded())


def cut(bag: Path, share: float) -> Path:
    """Keep the first part of the file with the messages."""
    file = storage_file(bag)
    size = int(share * file.stat().st_size)
    with file.open("r+b") as content:
        content.truncate(size)
    return file


# whole bags


def test_what_is_written_is_read(bag: Path, storage: str) -> None:
    with Bag(bag) as found:
        assert found.storage == storage
        assert found.warning == ""
        assert list(found.messages()) == recorded()
        assert found.counts == {"/arm/desired_motion": 1000, "/arm/feedforward_torque": 1000, "/arm/note": 10}
        assert [m.time for m in found.messages(["/arm/note"])] == [
            m.time for m in recorded() if "note" in m.topic
        ]
        assert list(found.messages(["/elsewhere"])) == []
        for topic in TOPICS:
            assert found.topics[topic.name].type == topic.type
            assert type_hash(found.topics[topic.name]) == todays_hash(topic.type)


def test_the_library_reads_it_as_a_bag_of_rosbag2(storage: str, tmp_path: Path) -> None:
    topic = Topic("/arm/note", STRING, qos=(LATCHED,))
    path = write(tmp_path / "bag", storage, [m for m in recorded() if m.topic == topic.name], (topic,))
    metadata = yaml.safe_load((path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert metadata["version"] == 9
    assert metadata["storage_identifier"] == storage
    assert metadata["message_count"] == 10
    assert metadata["starting_time"]["nanoseconds_since_epoch"] == START + 300_000
    with Reader(path) as reader:
        (connection,) = reader.connections
        assert connection.ext.offered_qos_profiles == [LATCHED]  # type: ignore[union-attr]
        assert connection.digest == todays_hash(STRING)
        assert connection.msgdef.data.strip().startswith("string data")


def test_type_hashes_are_those_of_ros() -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
    import rclpy
    from rclpy.context import Context

    from hodyn_ros.msg import DesiredMotion, FeedforwardTorque

    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node("hashes", context=context)
    try:
        for kind in (DesiredMotion, FeedforwardTorque):
            node.create_publisher(kind, kind.__name__, 1)
            (info,) = node.get_publishers_info_by_topic(f"/{kind.__name__}")
            assert str(info.topic_type_hash) == todays_hash(info.topic_type)
    finally:
        node.destroy_node()
        context.try_shutdown()


def test_types_of_other_packages_come_from_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "share" / "other_msgs" / "msg"
    folder.mkdir(parents=True)
    (folder / "Outer.msg").write_text("Inner[] parts\ngeometry_msgs/Point place\n")
    (folder / "Inner.msg").write_text("float64 value\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    store = ros_types()
    learn(store, "other_msgs/msg/Outer")
    assert {"other_msgs/msg/Outer", "other_msgs/msg/Inner"} <= store.fielddefs.keys()
    refused(lambda: learn(store, "other_msgs/msg/Missing"), "other_msgs/msg/Missing is not found; install")


def test_definitions_of_the_bag_count_before_those_of_today() -> None:
    old = Topic("/old", FEEDFORWARD_TORQUE, "float64 torque\n")
    store = recorded_types([old, Topic("/note", STRING)])
    assert [name for name, _ in store.fielddefs[FEEDFORWARD_TORQUE][1]] == ["torque"]
    assert STRING in store.fielddefs
    assert type_hash(old) != todays_hash(FEEDFORWARD_TORQUE)


@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE, CompressionMode.STORAGE])
def test_compressed_bags_are_read(mode: CompressionMode, storage: str, tmp_path: Path) -> None:
    if (mode, storage) == (CompressionMode.STORAGE, "sqlite3"):
        pytest.skip("rosbag2 has no such bags")
    path = write_compressed(tmp_path / "bag", storage, mode, recorded())
    with Bag(path) as found:
        assert (found.warning, found.storage) == ("", storage)
        assert list(found.messages()) == recorded()


def test_a_bag_is_not_overwritten(bag: Path, storage: str) -> None:
    refused(lambda: BagWriter(bag, storage), f"'{bag}' exists already; choose another name, or remove it")


def test_an_unknown_storage_is_named(tmp_path: Path) -> None:
    refused(lambda: BagWriter(tmp_path / "bag", "rosbag1"), "no storage 'rosbag1'; choose mcap or sqlite3")


def test_what_is_no_bag_is_refused(tmp_path: Path) -> None:
    refused(lambda: Bag(tmp_path / "nothing"), "there is no bag")
    refused(lambda: Bag(tmp_path), "is no bag: there is no .mcap or .db3 file in it")
    (tmp_path / "text.mcap").write_text("This is a text, and no recording at all.")
    refused(lambda: Bag(tmp_path / "text.mcap"), "text.mcap' cannot be read", DamagedError)
    (tmp_path / "text.db3").write_text("This is a text, and no recording at all." * 10)
    refused(lambda: Bag(tmp_path / "text.db3"), "text.db3' cannot be read: ... not a database", DamagedError)


# bags that were cut off


@pytest.mark.parametrize("share", some([0.15, 0.3, 0.5, 0.55, 0.77, 0.9, 0.98], 0.15, 0.55, 0.98))
def test_a_cut_bag_is_read_up_to_the_cut(bag: Path, share: float) -> None:
    cut(bag, share)
    with Bag(bag) as found:
        read = list(found.messages())
        assert f"{len(recorded()) - len(read)} of {len(recorded())} messages are lost" in found.warning
        assert f"{len(read)} messages can be read" in found.warning
        assert {name: topic.type for name, topic in found.topics.items()} == {t.name: t.type for t in TOPICS}
        assert found.counts.total() == len(read)
    assert_beginning_of(recorded(), read)
    # definitions come before all messages, an index after them
    assert len(read) > (share - 0.12) * len(recorded())


def assert_beginning_of(whole: list[Message], read: list[Message]) -> None:
    """Check that nothing is missing but, of a long message across the cut, what came just before."""
    places = [whole.index(message) for message in read]
    assert places == sorted(places)
    missing = set(range(places[-1])) - set(places)
    assert all(whole[place].topic == "/arm/note" for place in missing)
    assert len(missing) <= 1


def test_without_metadata_the_loss_is_estimated(bag: Path) -> None:
    (bag / "metadata.yaml").unlink()
    file = storage_file(bag)
    whole = file.stat().st_size
    cut(bag, 0.5)
    with Bag(bag) as found:
        read = found.counts.total()
        assert "it has no metadata.yaml" in found.warning
        assert "bytes are lost, about" in found.warning
        if file.suffix == ".db3":  # its first page tells how long it was
            about = int(found.warning.split("about ")[1].split()[0])
            assert f"{whole - file.stat().st_size} bytes are lost" in found.warning
            assert about == pytest.approx(len(recorded()) - read, rel=0.5)


def test_a_bag_without_metadata_and_all_messages_is_complete(bag: Path) -> None:
    (bag / "metadata.yaml").unlink()
    with Bag(bag) as found:
        assert list(found.messages()) == recorded()
        assert found.warning.endswith("what may have followed was not written")


def test_of_a_bag_cut_at_its_very_beginning_nothing_is_read(bag: Path) -> None:
    cut(bag, 0.0005)
    with pytest.raises(DamagedError, match="cannot be read"):
        Bag(bag)


def test_a_compressed_chunk_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    messages = recording(5000)
    path = write_compressed(tmp_path / "bag", "mcap", CompressionMode.STORAGE, messages)
    cut(path, 0.6)
    with Bag(path) as found:
        read = list(found.messages())
    assert 0 < len(read) < len(messages)
    assert read == messages[: len(read)]


def test_a_writer_that_was_killed_leaves_what_was_flushed(storage: str, tmp_path: Path) -> None:
    """What SQLite cannot keep in memory after the flush is in its file, too, and must not count."""
    behind = 500 if storage == "sqlite3" else 0
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT / "test" / "helpers")!r})
from bag_samples import TOPICS, recording
from hodyn_ros.bags.writer import BagWriter
from pathlib import Path
writer = BagWriter(Path({str(tmp_path / "bag")!r}), {storage!r})
for topic in TOPICS:
    writer.add(topic)
messages = recording(351)[:701]
for message in messages:
    writer.write(*message)
writer.flush()
(note, *_) = (message for message in messages if message.topic == "/arm/note")
for k in range({behind}):
    writer.write(note.topic, messages[-1].time + k, note.data)
os._exit(9)
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60)
    assert ended.returncode == 9, ended.stderr
    file = storage_file(tmp_path / "bag")
    before = file.read_bytes()
    with Bag(tmp_path / "bag") as found:
        read = list(found.messages())
        assert "was not completed" in found.warning
    assert read[:701] == recording(351)[:701]
    if storage == "sqlite3":  # mcap hands over every full chunk, SQLite nothing between two flushes
        assert file.with_name(file.name + "-journal").stat().st_size > 0
        assert len(read) == 701
    assert file.read_bytes() == before  # reading changes nothing
    with no_room(), Bag(tmp_path / "bag") as found:  # for a copy, to take back what must not count
        assert list(found.messages())[:701] == recording(351)[:701]
    assert file.read_bytes() == before


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file of this process grow beyond a kilobyte."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def test_what_sqlite_has_left_in_a_log_is_read(tmp_path: Path) -> None:
    """Rosbag2 writes so when it is asked to be resilient."""
    file = storage_file(write(tmp_path / "bag", "sqlite3", recorded()))
    extra = Message("/arm/note", recorded()[-1].time + 1, serialised(STRING, data="late"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "INSERT INTO messages (topic_id, timestamp, data) VALUES (3, ?, ?)", (extra.time, extra.data)
        )
        connection.commit()
        shutil.copytree(tmp_path / "bag", tmp_path / "killed")
    with Bag(tmp_path / "killed") as found:
        assert "was not closed" in found.warning
        assert list(found.messages()) == [*recorded(), extra]


def damage(bag: Path) -> None:
    file = storage_file(bag)
    block = 4096  # what disks lose at once
    blocks = file.stat().st_size // block
    with file.open("r+b") as content:
        content.seek(2 * blocks // 5 * block)
        content.write(b"\xff" * (blocks // 5 * block))


def test_damage_in_the_middle_of_mcap_is_not_taken_for_its_end(tmp_path: Path) -> None:
    path = write(tmp_path / "bag", "mcap", recorded())
    damage(path)
    words = "is damaged, and not only at its end: a chunk has another checksum"
    refused(lambda: Bag(path), words, DamagedError)


def test_around_damage_in_the_middle_of_sqlite_all_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "bag", "sqlite3", recorded())
    damage(path)
    with Bag(path) as found:
        read = list(found.messages())
        assert f"{len(recorded()) - len(read)} of {len(recorded())} messages are lost" in found.warning
    assert len(read) > 0.7 * len(recorded())
    assert read[-1] == recorded()[-1]
    # SQLite has no checksums: of a long text, which fills several pages, a part may be wrong
    assert all(message in recorded() for message in read if message.topic != "/arm/note")


def test_split_recordings_are_read_in_their_order(storage: str, tmp_path: Path) -> None:
    parts = [recorded()[:400], recorded()[400:1200], recorded()[1200:]]
    whole = tmp_path / "whole"
    whole.mkdir()
    for number, part in zip((1, 2, 10), parts):
        file = storage_file(write(tmp_path / f"part{number}", storage, part))
        shutil.copy(file, whole / f"whole_{number}{file.suffix}")
    with Bag(whole) as found:
        assert list(found.messages()) == recorded()


# which topics belong together


def sources_of(
    tmp_path: Path, *topics: Topic, namespace: str | None = None, topic: str | None = None
) -> object:
    motion = recorded()[0].data
    path = write(tmp_path / "bag", "mcap", [Message(t.name, START, motion) for t in topics], topics)
    with Bag(path) as found:
        return find_sources(found, namespace, topic)


def robot(namespace: str) -> tuple[Topic, ...]:
    return (
        Topic(f"{namespace}/desired_motion", DESIRED_MOTION),
        Topic(f"{namespace}/feedforward_torque", FEEDFORWARD_TORQUE),
        Topic(f"{namespace}/dynamics_node/settings", STRING),
    )


def test_the_topics_of_the_only_robot_are_found(tmp_path: Path) -> None:
    assert sources_of(tmp_path, *robot("/left")) == tuple(t.name for t in robot("/left"))


def test_a_namespace_chooses_among_robots(tmp_path: Path) -> None:
    topics = (*robot(""), *robot("/left"), *robot("/left/finger"))
    assert sources_of(tmp_path, *topics, namespace="left") == tuple(t.name for t in robot("/left"))
    shutil.rmtree(tmp_path / "bag")
    assert sources_of(tmp_path, *topics, namespace="/") == tuple(t.name for t in robot(""))
    shutil.rmtree(tmp_path / "bag")
    found = sources_of(tmp_path, *topics, topic="/left/finger/desired_motion")
    assert found == tuple(t.name for t in robot("/left/finger"))


def test_several_robots_are_named(tmp_path: Path) -> None:
    said = "/left/desired_motion, /right/desired_motion; choose one with --namespace"
    refused(lambda: sources_of(tmp_path, *robot("/left"), *robot("/right")), said)


def test_missing_topics_are_answered_with_those_there_are(tmp_path: Path) -> None:
    refused(lambda: sources_of(tmp_path, Topic("/note", STRING)), "has no desired motion; its topics: /note")
    shutil.rmtree(tmp_path / "bag")
    refused(lambda: sources_of(tmp_path, *robot("/left"), namespace="right"), "right; its topics: /left/des")


def test_renamed_topics_are_found_by_their_types(tmp_path: Path) -> None:
    renamed = (
        Topic("/left/wanted", DESIRED_MOTION),
        Topic("/left/torques", FEEDFORWARD_TORQUE),
        Topic("/left/dynamics/settings", STRING),
    )
    assert sources_of(tmp_path, *renamed) == tuple(t.name for t in renamed)


def test_a_message_without_a_header_has_no_stamp() -> None:
    assert stamp_of(recorded()[3].data) == START + 1_000_000
    refused(lambda: stamp_of(b"\x00\x01\x00\x00"), "a message of 4 bytes has no header", DamagedError)
