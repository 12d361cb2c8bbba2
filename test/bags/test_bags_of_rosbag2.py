"""Bags as rosbag2 writes, indexes and finds them; its formats are emulated here, after its sources.

`Reindexer::reindex` and `MCAPStorage`, `SqliteStorage` of rosbag2 0.29 say what is in the files.
"""

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from bag_samples import START, TOPICS, offered, recording, storage_file, write
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
from rich.console import Console
from rosbags.interfaces import QosDurability, QosHistory

from hodyn_ros import share
from hodyn_ros.bags.comparison.commands import run_compare
from hodyn_ros.bags.comparison.sources import DESIRED_MOTION, FEEDFORWARD_TORQUE
from hodyn_ros.bags.files.types import todays_hash
from hodyn_ros.bags.messages import UNKNOWN, Message, Topic
from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.writer import BagWriter
from hodyn_ros.launching.qos_overrides import STREAMS, overrides

MESSAGES = recording(200)
# Discovery does not tell history and depth.
DISCOVERED = offered(QosHistory.UNKNOWN, 0, QosDurability.VOLATILE)
RECORDED = tuple(Topic(topic.name, topic.type, qos=(DISCOVERED,)) for topic in TOPICS)
REINDEXED_NAME = re.compile(r".+_(\d+)\.([a-zA-Z0-9])+")  # regex_bag_pattern_
# An introspected service without types of its own in the request: rosbag2 writes what it found, or nothing.
SERVICE = Topic(
    "/arm/start/_service_event", "std_srvs/srv/Trigger_Event", "", UNKNOWN, "RIHS01_00", (DISCOVERED,)
)


def reindex(bag: Path, counts: dict[str, int]) -> None:
    """Write metadata.yaml as `ros2 bag reindex` does, which has counted what is there."""
    path = bag / "metadata.yaml"
    data: dict[str, Any] = yaml.safe_load(path.read_text())["rosbag2_bagfile_information"]
    for entry in data["topics_with_message_count"]:
        entry["message_count"] = counts[entry["topic_metadata"]["name"]]
        for profile in entry["topic_metadata"]["offered_qos_profiles"]:
            # A profile with an unknown history is read into one that has a depth of 10 to begin with.
            assert (profile["history"], profile["depth"]) == ("unknown", 0)
            profile["depth"] = 10
    data["message_count"] = sum(counts.values())
    data["files"] = []
    path.write_text(yaml.safe_dump({"rosbag2_bagfile_information": data}))


def test_a_reindexed_bag_is_read_as_before(storage: str, tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", storage, MESSAGES, RECORDED)
    with Bag(bag) as found:
        counts = dict(found.counts)
    reindex(bag, counts)
    with Bag(bag) as found:
        assert list(found.messages()) == MESSAGES
        assert found.counts == counts
        assert found.warning == ""
        assert found.topics["/arm/note"].qos == (DISCOVERED,)


def test_a_reindexed_bag_that_was_cut_does_not_claim_to_be_whole(storage: str, tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", storage, MESSAGES, RECORDED)
    file = storage_file(bag)
    content = file.read_bytes()
    file.write_bytes(content[: int(0.6 * len(content))])
    with Bag(bag) as found:
        left = {topic.name: found.counts[topic.name] for topic in TOPICS}
        assert f"{len(MESSAGES) - sum(left.values())} of {len(MESSAGES)} messages are lost" in found.warning
    assert 0 < sum(left.values()) < len(MESSAGES)
    reindex(bag, left)
    with Bag(bag) as found:
        assert found.counts.total() == sum(left.values())
        assert "was not completed" in found.warning
        assert "bytes are lost, about" in found.warning
        assert " 0 of " not in found.warning


def test_counts_that_do_not_fit_the_file_are_said(storage: str, tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", storage, MESSAGES)
    path = bag / "metadata.yaml"
    path.write_text(path.read_text().replace(f"message_count: {len(MESSAGES)}", "message_count: 1000"))
    with Bag(bag) as found:
        assert "metadata.yaml counts 1000 messages" in found.warning
        assert f"{1000 - len(MESSAGES)} of 1000 messages are lost" in found.warning


def test_what_is_written_can_be_found_by_reindex(storage: str, tmp_path: Path) -> None:
    bag = write(tmp_path / "my.bag", storage, MESSAGES)
    file = storage_file(bag)
    assert file.stem == "my.bag_0"
    assert REINDEXED_NAME.fullmatch(file.name)
    metadata = yaml.safe_load((bag / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert metadata["relative_file_paths"] == [file.name] == [entry["path"] for entry in metadata["files"]]
    assert not REINDEXED_NAME.fullmatch("metadata.yaml")


def test_an_mcap_file_holds_what_rosbag2_looks_for(tmp_path: Path) -> None:
    file = storage_file(write(tmp_path / "bag", "mcap", MESSAGES, RECORDED))
    with file.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        assert reader.get_header().profile == "ros2"
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert summary.statistics.message_count == len(MESSAGES)
        assert summary.statistics.message_start_time == START
        assert all(index.message_index_offsets for index in summary.chunk_indexes)
        for channel in summary.channels.values():
            schema = summary.schemas[channel.schema_id]
            assert channel.message_encoding == "cdr"
            assert channel.metadata["topic_type_hash"] == todays_hash(schema.name)
            (profile,) = yaml.safe_load(channel.metadata["offered_qos_profiles"])
            assert (profile["history"], profile["depth"]) == ("unknown", 0)
            assert schema.encoding == "ros2msg"
        (record,) = reader.iter_metadata()
        assert yaml.safe_load(record.metadata["serialized_metadata"])["version"] == 9
        read = [(c.topic, m.log_time, m.data) for _, c, m in reader.iter_messages()]
    assert read == [tuple(message) for message in MESSAGES]


def test_a_sqlite_file_has_the_tables_of_rosbag2(tmp_path: Path) -> None:
    file = storage_file(write(tmp_path / "bag", "sqlite3", MESSAGES, RECORDED))
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT schema_version FROM schema").fetchall() == [(4,)]
        (version, text) = connection.execute("SELECT metadata_version, metadata FROM metadata").fetchone()
        assert (version, yaml.safe_load(text)["message_count"]) == (9, len(MESSAGES))
        rows = connection.execute(
            "SELECT t.name, timestamp, data FROM messages JOIN topics t ON t.id = topic_id ORDER BY timestamp"
        ).fetchall()
        hashes = connection.execute("SELECT type, type_description_hash FROM topics").fetchall()
    assert rows == [tuple(message) for message in MESSAGES]
    assert all(digest == todays_hash(kind) for kind, digest in hashes)


def compared(one: Path, other: Path) -> tuple[bool, str]:
    with Path("/dev/null").open("w") as nowhere:
        console = Console(width=80, record=True, file=nowhere)
        found = run_compare(one, other, 0.0, (), None, console)
    return found.agree, console.export_text()


def test_a_service_of_unknown_type_is_in_nobodys_way(storage: str, tmp_path: Path) -> None:
    topics = (*RECORDED, SERVICE)
    event = Message(SERVICE.name, START + 5, b"\x00\x01\x00\x00event")
    bags = [
        write(tmp_path / name, storage, [*MESSAGES, event._replace(data=event.data + end)], topics)
        for name, end in (("one", b""), ("same", b""), ("other", b"!"))
    ]
    with Bag(bags[0]) as found:
        assert found.counts[SERVICE.name] == 1
        assert found.topics[SERVICE.name] == SERVICE
        with BagWriter(tmp_path / "copy", storage) as writer:  # as a replay copies it
            for topic in found.topics.values():
                writer.add(topic)
            for message in found.messages():
                writer.write(*message)
    with Bag(tmp_path / "copy") as found:
        assert found.topics[SERVICE.name] == SERVICE
    assert compared(bags[0], bags[1])[0]
    agree, printed = compared(bags[0], bags[2])
    assert not agree
    assert "of unknown type" in printed
    assert f"bytes of {SERVICE.name}" in printed


def test_a_definition_in_another_language_is_in_nobodys_way(storage: str, tmp_path: Path) -> None:
    """Rosbag2 writes the definition of a service with parts as if it were one of a message."""
    text = (
        "=" * 80 + "\nSRV: rcl_interfaces/srv/GetParameters\nstring[] names\n---\nParameterValue[] values\n"
    )
    service = Topic(SERVICE.name, "rcl_interfaces/srv/GetParameters_Event", text, "ros2msg", "RIHS01_00")
    event = Message(SERVICE.name, START + 5, b"\x00\x01\x00\x00event")
    bags = [
        write(tmp_path / name, storage, [*MESSAGES, event], (*RECORDED, service)) for name in ("one", "other")
    ]
    assert compared(*bags)[0]


def test_an_mcap_file_without_chunks_and_order_is_read(tmp_path: Path) -> None:
    """As rosbag2 writes it with the preset `fastwrite`; rosbags rejects it."""
    path = tmp_path / "fast_0.mcap"
    late = [MESSAGES[1], MESSAGES[0], *MESSAGES[2:]]
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE, use_chunking=False, enable_crcs=False)
        writer.start("ros2")
        channels = {}
        for topic in TOPICS:
            schema = writer.register_schema(topic.type, "ros2msg", b"")
            channels[topic.name] = writer.register_channel(topic.name, "cdr", schema)
        for message in late:
            writer.add_message(channels[message.topic], message.time, message.data, message.time)
        writer.finish()
    with Bag(path) as found:
        assert list(found.messages()) == late
        assert [m.time for m in found.messages(["/arm/note"])] == [m.time for m in late if "note" in m.topic]
        assert found.topics["/arm/desired_motion"].type == DESIRED_MOTION
        assert found.topics["/arm/feedforward_torque"].type == FEEDFORWARD_TORQUE


def test_chunks_packed_with_lz4_are_read(tmp_path: Path) -> None:
    path = tmp_path / "packed_0.mcap"
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.LZ4)
        writer.start("ros2")
        schema = writer.register_schema(TOPICS[2].type, "ros2msg", b"string data\n")
        channel = writer.register_channel("/arm/note", "cdr", schema)
        notes = [message for message in MESSAGES if message.topic == "/arm/note"]
        for message in notes:
            writer.add_message(channel, message.time, message.data, message.time)
        writer.finish()
    with Bag(path) as found:
        assert list(found.messages()) == notes


# with which quality of service rosbag2 hears


def test_the_shipped_file_is_that_of_the_code() -> None:
    file = share.find("config", "rosbag2_qos.yaml")
    assert yaml.safe_load(file.read_text()) == yaml.safe_load(overrides())
    assert set(yaml.safe_load(overrides("left/"))) == {f"/left/{name}" for name in STREAMS}
    assert overrides("/left") == overrides("left")


@pytest.mark.parametrize("reliability", ["reliable", "best_effort"])
def test_rosbag2_hears_with_the_shipped_file_what_waits_for_it(reliability: str) -> None:
    """A subscription as rosbag2 makes it, whose process is held up while 3000 messages come."""
    rclpy = pytest.importorskip(
        "rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)"
    )
    from rclpy.context import Context
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.qos import QoSDurabilityPolicy, QoSHistoryPolicy, QoSProfile, QoSReliabilityPolicy
    from std_msgs.msg import String

    def profile(topic: str) -> QoSProfile:
        """What `interpret_dict_as_qos_profile` of ros2bag makes of an entry."""
        entry = yaml.safe_load(overrides("robot"))[topic]
        return QoSProfile(
            history=QoSHistoryPolicy.get_from_short_key(entry["history"]),
            depth=entry["depth"],
            reliability=QoSReliabilityPolicy.get_from_short_key(entry["reliability"]),
            durability=QoSDurabilityPolicy.get_from_short_key(entry["durability"]),
        )

    context = Context()
    rclpy.init(context=context)
    executor = SingleThreadedExecutor(context=context)
    try:
        sender, recorder = (rclpy.create_node(name, context=context) for name in ("sender", "recorder"))
        offered = QoSProfile(depth=3000, reliability=QoSReliabilityPolicy.get_from_short_key(reliability))
        publisher = sender.create_publisher(String, "/robot/desired_motion", offered)
        until = time.monotonic() + 20.0
        while not recorder.get_publishers_info_by_topic("/robot/desired_motion"):
            assert time.monotonic() < until
            time.sleep(0.05)
        heard: list[str] = []
        subscription = recorder.create_subscription(
            String,
            "/robot/desired_motion",
            lambda msg: heard.append(msg.data),
            profile("/robot/desired_motion"),
        )
        while not publisher.get_subscription_count():
            assert time.monotonic() < until
            time.sleep(0.05)
        for number in range(3000):
            publisher.publish(String(data=str(number)))
        executor.add_node(recorder)
        while len(heard) < 3000 and time.monotonic() < until:
            executor.spin_once(timeout_sec=0.1)
        assert heard == [str(number) for number in range(3000)]
        recorder.destroy_subscription(subscription)
    finally:
        executor.shutdown()
        context.try_shutdown()
