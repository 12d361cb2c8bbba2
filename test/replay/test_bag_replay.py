"""Recorder, replay and player over real DDS: a replay gives the numbers that the live node has published."""

import itertools
import json
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_samples import storage_file
from command_line import run
from refusals import refused

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, WrenchStamped
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from rich.console import Console
from ros_bags import wait_for_bag, wait_for_stamp
from ros_peer import Peer
from ros_processes import RosProcess, sound_node, start_node, start_script
from ros_stream import JOINTS, motion
from ros_talk import Talk
from rosbags.interfaces import Nodetype, QosDurability, QosReliability
from rosbags.rosbag2 import Reader
from rosbags.typesys import get_types_from_msg
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from sweeps import some

from hodyn_ros import share
from hodyn_ros.bags.comparison.compare import Comparison, compare
from hodyn_ros.bags.comparison.sources import DESIRED_MOTION, FEEDFORWARD_TORQUE, find_sources
from hodyn_ros.bags.files.types import ros_types, todays_hash
from hodyn_ros.bags.messages import MSG, Message, Topic, stamp_of
from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.writer import BagWriter
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.replay.recorded import RecordedAnswers, Serialiser
from hodyn_ros.replay.replay import AS_RECORDED, Changes, Replay, read_settings_intervals
from hodyn_ros.replay.replay_command import run_replay
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.messages import time_message, write_desired_motion
from hodyn_ros.ros.streams.rejections import Reason

PANDA = {"robot_config": "panda.yaml"}
STORAGES = "mcap", "sqlite3"
PLAIN = 250  # motions of a recording in which nothing else happens
BETWEEN_PUBLISHERS = 0.05  # [s] longer than `new_publisher_after`, so that the next one is no second one
COUNT, RATE = 750, 500  # motions of a recording while settings change, and their rate [Hz]
MOTION, ANSWERS, SETTINGS = (
    f"/robot/{name}" for name in ("desired_motion", "feedforward_torque", "dynamics_node/settings")
)
MILLISECOND, SECOND = 1_000_000, 1_000_000_000


@contextmanager
def recording(
    folder: Path, count: int, *storages: str
) -> Iterator[tuple[list[RosProcess], RosProcess, Peer]]:
    """Record a Panda's dynamics_node into `bag_of(folder, storage)`, by a recorder for each storage.

    Yields the recorders, a publisher that waits for "go", and a peer.
    """
    bags = [bag_of(folder, storage) for storage in storages]
    with (
        sound_node("dynamics_node", PANDA, "robot"),
        start_script(
            "ros_stream.py", "publish", str(count), str(RATE), str(folder / "sent.npy"), namespace="robot"
        ) as publisher,
        Peer("robot") as peer,
    ):
        # the first answers come late, so that a recording would begin with answers to unknown motions
        peer.wait_until(lambda: len(peer.answers) > 5, "answers")
        with ExitStack() as held:
            recorders = [
                held.enter_context(start_node("recorder", {"file": bag, "storage": storage}, "robot"))
                for bag, storage in zip(bags, storages)
            ]
            for recorder in recorders:
                recorder.wait_for_line("recording into")
            peer.wait_for_topics(listeners=1 + len(recorders))
            for bag in bags:
                wait_for_bag(
                    peer, bag, lambda found: {MOTION, ANSWERS, SETTINGS} <= found.keys(), "the recording"
                )
            yield recorders, publisher, peer
        publisher.tell("end")
        assert publisher.wait() == 0, publisher.output()


def bag_of(folder: Path, storage: str) -> Path:
    """Where `recording` records."""
    return folder / storage


def warm_up(peer: Peer, bag: Path, make: Callable[[int], DesiredMotion]) -> int:
    """Send the motions `make(0)`, `make(1)`, ... slowly until an answer is recorded; return their number."""
    numbers = itertools.count()

    def recorded(found: dict[str, list[Message]]) -> bool:
        peer.send(make(next(numbers)))
        time.sleep(BETWEEN_PUBLISHERS)
        return found.keys() >= {MOTION, ANSWERS, SETTINGS}

    wait_for_bag(peer, bag, recorded, "a recorded answer")
    count = next(numbers)
    # a busy machine may hold the node up: who follows is not to come to it together with these motions
    last = stamp_of(serialize_message(make(count - 1)))
    peer.wait_until(lambda: last in peer.stamps(), "the answer to the last motion")
    time.sleep(BETWEEN_PUBLISHERS)
    return count


def replayed(bag: Path, out: Path, changes: Changes = AS_RECORDED) -> Replay:
    with Bag(bag) as found:
        replay = Replay(found, find_sources(found), changes)
        replay.write(out)
    return replay


@cache
def replayed_once(bag: Path) -> tuple[Replay, Path]:
    """Return a replay that tests share, and its bag."""
    out = bag.with_name(f"{bag.name}_again")
    return replayed(bag, out), out


def compared(first: Path, second: Path, *topics: str) -> Comparison:
    with Bag(first) as one, Bag(second) as other:
        return compare(one, other, topics=topics)


def stamps(bag: Path, topic: str) -> list[int]:
    with Bag(bag) as found:
        return [stamp_of(message.data) for message in found.messages([topic])]


def settings_of(message: Message) -> dict[str, Any]:
    """Return what a message on SETTINGS says."""
    found: dict[str, Any] = json.loads(deserialize_message(message.data, String).data)
    return found


def bad_of(bag: Path) -> dict[Reason, int]:
    """Return what is wrong with motions of `changing_in_both`, and how often."""
    with Bag(bag) as found:
        sent = [
            deserialize_message(message.data, DesiredMotion).joint_names
            for message in found.messages([MOTION])
        ]
    assert (sent.count([]), sent.count(["knee"])) == (1, 2) and ["hip"] in sent
    return {Reason.NO_NAMES: 1, Reason.UNKNOWN_JOINT: 2 + sent.count(["hip"])}


def assert_same_answers(live: Path, again: Path, at_least: int) -> None:
    """Check that the answers to all recorded motions came again, bit by bit, and nothing else differs.

    A recording may begin and end between motions and their answers.
    """
    found = compared(live, again)
    answers = found.topics[ANSWERS]
    assert not answers.fields
    assert answers.pairs >= at_least
    motions, before, after = stamps(live, MOTION), stamps(live, ANSWERS), stamps(again, ANSWERS)
    missing, extra = set(before) - set(after), set(after) - set(before)
    assert (len(missing), len(extra)) == (len(answers.missing.times), len(answers.extra.times))
    known = list(filter(None, motions))  # the bad motions have no stamp
    assert not [stamp for stamp in missing if min(known) <= stamp <= max(known)]
    assert not [stamp for stamp in extra if before[0] < stamp < before[-1]]
    assert not answers.differs_between
    for name, topic in found.topics.items():
        assert name == ANSWERS or not topic.differs
    assert not found.only_first
    assert not found.only_second


@pytest.fixture(scope="module")
def changing_in_both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings of COUNT motions, with bad ones between, while order and gravity change."""
    folder = tmp_path_factory.mktemp("changing")
    with recording(folder, COUNT, *STORAGES) as (recorders, publisher, peer):

        def peer_is_heard(found: dict[str, list[Message]]) -> bool:
            peer.send(DesiredMotion(joint_names=["hip"], positions=[1.0]))
            return any(stamp_of(message.data) == 0 for message in found.get(MOTION, ()))

        # a recorder may learn of a publisher a second after that has learnt of it, and misses what it sends
        for storage in STORAGES:
            wait_for_bag(peer, bag_of(folder, storage), peer_is_heard, "a message of the peer")
        publisher.tell("go")
        assert peer.set_parameters(order=0).successful
        peer.send(DesiredMotion(joint_names=["knee"], positions=[1.0]))
        peer.send(DesiredMotion())
        peer.wait_until(lambda: not peer.answers[-1].effort_rates, "answers of order 0")
        assert peer.set_parameters(order=1, gravity=[0.0, 3.0, -9.0]).successful
        peer.send(DesiredMotion(joint_names=["knee"], positions=[1.0]))
        peer.wait_until(lambda: peer.answers[-1].effort_rates, "answers of order 1")
        publisher.wait_for_line(f"published {COUNT}")
        for recorder, storage, how in zip(recorders, STORAGES, (signal.SIGINT, signal.SIGTERM)):
            bag = bag_of(folder, storage)
            wait_for_stamp(peer, bag, MOTION, int(np.load(folder / "sent.npy")[-1]))
            wait_for_bag(peer, bag, lambda found: len(found.get(SETTINGS, ())) == 3, "all settings")
            assert recorder.stop(how) == 0, recorder.output()
            assert recorder.lines[-1].startswith("recorded ")
            assert "lost" not in recorder.output()
    return folder


@pytest.fixture(params=[pytest.param(storage, marks=pytest.mark.realtime) for storage in STORAGES])
def changing(request: pytest.FixtureRequest, changing_in_both: Path) -> Path:
    """One of these recordings."""
    return bag_of(changing_in_both, request.param)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of PLAIN motions."""
    folder = tmp_path_factory.mktemp("plain")
    bag = bag_of(folder, "mcap")
    with recording(folder, PLAIN, "mcap") as ((recorder,), publisher, peer):
        publisher.tell("go")
        publisher.wait_for_line(f"published {PLAIN}")
        wait_for_stamp(peer, bag, ANSWERS, int(np.load(folder / "sent.npy")[-1]))
        assert recorder.stop() == 0, recorder.output()
    return bag


# recording


def test_a_recording_is_a_bag_of_rosbag2(changing: Path) -> None:
    with Reader(changing) as reader:
        connections = {connection.topic: connection for connection in reader.connections}
        assert {MOTION, ANSWERS, SETTINGS, "/diagnostics", "/parameter_events"} <= connections.keys()
        for topic in (MOTION, ANSWERS, SETTINGS):
            connection = connections[topic]
            assert connection.digest == todays_hash(connection.msgtype)
            assert connection.msgdef.data
            (offered,) = connection.ext.offered_qos_profiles[:1]  # type: ignore[union-attr]
            assert offered.reliability == QosReliability.RELIABLE
            latched = topic == SETTINGS
            assert offered.durability == (
                QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE
            )
        times = [time for _, time, _ in reader.messages([connections[MOTION]])]
    assert times == sorted(times)
    assert len(times) >= COUNT // 2


def test_nothing_is_lost_on_the_way_into_a_bag(changing: Path) -> None:
    sent = set(np.load(changing.parent / "sent.npy").tolist())
    got = set(stamps(changing, MOTION))
    first = min(filter(None, got))  # the publisher may have found the recorder a moment after it began
    assert {stamp for stamp in sent if stamp >= first} <= got
    assert len(sent & got) >= COUNT // 2


def test_topics_that_appear_later_are_recorded_as_they_are_offered(tmp_path: Path) -> None:
    best_effort = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)
    latched = QoSProfile(depth=1, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
    parameters = {"file": tmp_path / "bag", "topics": ["late", "/elsewhere/said_before"]}
    with sound_node("recorder", parameters, "robot") as recorder, Peer("robot") as peer:
        recorder.wait_for_line("recording into")
        latched_publisher = peer.node.create_publisher(String, "/elsewhere/said_before", latched)
        latched_publisher.publish(String(data="before anybody heard"))
        late = peer.node.create_publisher(String, "late", best_effort)
        other = peer.node.create_publisher(String, "other", 10)

        def recorded(found: dict[str, list[Message]]) -> bool:
            for publisher in (late, other):
                publisher.publish(String(data="now"))
            return found.keys() >= {"/robot/late", "/elsewhere/said_before"}

        wait_for_bag(peer, tmp_path / "bag", recorded, "the recording")
    with Bag(tmp_path / "bag") as bag:
        found = {m.topic: deserialize_message(m.data, String).data for m in bag.messages()}
        assert found == {"/elsewhere/said_before": "before anybody heard", "/robot/late": "now"}
        assert bag.topics["/robot/late"].qos[0].reliability == QosReliability.BEST_EFFORT
        assert bag.topics["/elsewhere/said_before"].qos[0].durability == QosDurability.TRANSIENT_LOCAL


def test_times_go_on_where_simulated_time_goes_back(tmp_path: Path) -> None:
    """Two runs of a simulation that is reset in between, each of 8 messages 150 ms apart."""
    parameters = {"file": tmp_path / "bag", "topics": ["note"], "use_sim_time": True}
    instants = [begin * SECOND + 150 * k * MILLISECOND for begin in (100, 3) for k in range(8)]
    with sound_node("recorder", parameters, "robot") as recorder, Talk("robot") as talk:
        recorder.wait_for_line("recording into")
        clock = talk.node.create_publisher(Clock, "/clock", 10)
        notes = talk.node.create_publisher(String, "note", 100)
        talk.wait_until(lambda: clock.get_subscription_count() and notes.get_subscription_count(), "ears")
        for now in instants:
            clock.publish(Clock(clock=time_message(now)))
            notes.publish(String(data=str(now)))
            talk.serve("recorder")
    went_back = "time went back once; recorded times go on, 98.05"
    assert sum(went_back in line for line in recorder.lines[:-1]) == 1
    assert went_back in recorder.lines[-1]
    with Bag(tmp_path / "bag") as bag:
        found = [(m.time, int(deserialize_message(m.data, String).data)) for m in bag.messages()]
    times, told = np.array(found).T
    assert told.tolist() == instants
    np.testing.assert_array_equal(times[:8], told[:8])
    np.testing.assert_array_equal(times[8:], told[8:] + 98_050 * MILLISECOND)


@pytest.mark.parametrize(("killed", "filled"), some(itertools.permutations(STORAGES), STORAGES))
def test_a_killed_recorder_leaves_all_but_the_last_second_and_a_full_disk_is_one_error(
    killed: str, filled: str, tmp_path: Path
) -> None:
    whole, part = bag_of(tmp_path, killed), bag_of(tmp_path, filled)
    with recording(tmp_path, COUNT, killed, filled) as ((recorder, limited), publisher, peer):
        # a tenth of what comes, beyond what has come already: on a busy machine, more than that
        room = storage_file(part).stat().st_size + 80_000
        resource.prlimit(limited.pid, resource.RLIMIT_FSIZE, (room, room))
        publisher.tell("go")
        assert limited.wait() == 1

        def half_a_second(found: dict[str, list[Message]]) -> bool:
            return len(found.get(MOTION, ())) > RATE // 2

        wait_for_bag(peer, whole, half_a_second, "half a second of motions")
        recorder.stop(signal.SIGKILL)
    with Bag(whole) as found:
        assert "it has no metadata.yaml" in found.warning
        assert found.counts[MOTION] > RATE // 2
    out = tmp_path / "again"
    assert replayed(whole, out).outcome.matched > 100
    assert_same_answers(whole, out, 100)
    (error,) = (line for line in limited.lines if "rror" in line)
    assert error.startswith("error: the recording has ended too early: ")
    assert f"{part} holds the first" in error and "Traceback" not in limited.output()
    safe = int(error.split("the first ")[1].split()[0])
    with Bag(part) as found:
        assert found.counts.total() == safe > 0


# replay


def test_a_replay_is_bit_identical_although_settings_have_changed(changing: Path) -> None:
    replay, out = replayed_once(changing)
    assert_same_answers(changing, out, COUNT // 2)
    with Bag(changing) as bag:
        assert bag.counts[SETTINGS] == 3
        orders = {
            sum(bool(getattr(answer, name)) for name in ("efforts", "effort_rates", "effort_accelerations"))
            for message in bag.messages([ANSWERS])
            for answer in [deserialize_message(message.data, FeedforwardTorque)]
        }
    assert orders == {1, 2, 3}
    assert replay.outcome.samples == replay.outcome.answers + sum(bad_of(changing).values())
    rejected = {reason: count for reason, count in replay.rejections.counts.items() if count}
    assert rejected == bad_of(changing)


def test_a_replay_keeps_the_times_of_the_recording(changing: Path) -> None:
    with Bag(changing) as one, Bag(replayed_once(changing)[1]) as other:
        assert one.storage == other.storage
        times = {stamp_of(message.data): message.time for message in one.messages([ANSWERS])}
        again = {stamp_of(message.data): message.time for message in other.messages([ANSWERS])}
        common = times.keys() & again.keys()
        assert len(common) >= COUNT // 2
        assert all(times[stamp] == again[stamp] for stamp in common)
        assert list(one.messages([MOTION, SETTINGS])) == list(other.messages([MOTION, SETTINGS]))


@pytest.mark.realtime
def test_the_command_says_what_came_of_it(changing_in_both: Path, tmp_path: Path) -> None:
    console = Console(width=80, record=True, file=(tmp_path / "printed").open("w"))
    run_replay(bag_of(changing_in_both, "mcap"), tmp_path / "out", AS_RECORDED, None, None, console)
    printed = console.export_text()
    bad = bad_of(bag_of(changing_in_both, "mcap"))
    assert f"samples of {MOTION};" in printed
    counted = (
        f"rejected {sum(bad.values())} samples: 1 no joint names, {bad[Reason.UNKNOWN_JOINT]} unknown joint"
    )
    assert counted in printed
    assert "desired_motion rejected: joint 'hip' is unknown" in printed


def test_the_exit_code_tells_whether_anything_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write_desired_motion(JOINTS, time_message(1), motion(1))
    bad = write_desired_motion(["elbow", *JOINTS[1:]], time_message(2), motion(2))
    for name, motions in (("bad", [bad]), ("both", [good, bad])):
        with BagWriter(tmp_path / name, "mcap") as writer:
            writer.add(Topic(MOTION, DESIRED_MOTION))
            for k, msg in enumerate(motions):
                writer.write(MOTION, k, serialize_message(msg))

    def replay(name: str) -> int:
        arguments = ("replay", tmp_path / name, "--robot", "panda.yaml", "--out", tmp_path / f"{name}_again")
        return run(monkeypatch, *arguments)

    assert replay("both") == 0
    assert f"replayed 2 samples of {MOTION}; 1 answers" in capsys.readouterr().out
    assert replay("bad") == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error == (
        f"error: none of the 1 samples of {MOTION} could be answered (1 unknown joint); nothing is written"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "both", "both_again"]


@pytest.mark.parametrize("share", some([0.3, 0.6, 0.9], 0.6))
def test_a_cut_recording_is_replayed_up_to_the_cut(changing: Path, share: float, tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    bag.mkdir()
    file = storage_file(changing)
    content = file.read_bytes()
    (bag / file.name).write_bytes(content[: int(share * len(content))])
    with Bag(changing) as whole, Bag(bag) as cut:
        told = [settings_of(message) for message in whole.messages([SETTINGS])]
        left = cut.counts[SETTINGS]
    if left < len(told):  # settings that a busy machine has brought late, behind the answers made by them
        bag = without(bag, tmp_path / "known", end=told[left]["after_stamp"])
    at_least = int(COUNT // 3 * share) if left == len(told) else 0
    assert replayed(bag, tmp_path / "out").outcome.matched > at_least
    assert_same_answers(bag, tmp_path / "out", at_least)


def test_another_order_and_another_robot_can_be_asked_for(plain: Path, tmp_path: Path) -> None:
    replayed(plain, tmp_path / "lower", Changes(order=1))
    fields = compared(plain, tmp_path / "lower", ANSWERS).topics[ANSWERS].fields
    assert fields["effort_accelerations"].element == "length"
    with Bag(tmp_path / "lower") as bag:
        (message,) = bag.messages([SETTINGS])
        assert json.loads(deserialize_message(message.data, String).data)["feedforward"]["order"] == 1
    same = replayed(tmp_path / "lower", tmp_path / "back", Changes(order=2, robot="panda.yaml"))
    assert same.outcome.answers == same.outcome.matched
    assert not compared(plain, tmp_path / "back", ANSWERS).topics[ANSWERS].fields


def without(bag: Path, out: Path, *topics: str, begin: int = 0, end: float = np.inf) -> Path:
    """Copy a bag without some topics, and without motions and answers not stamped `begin` to `end` [ns]."""
    with Bag(bag) as found, BagWriter(out, found.storage) as writer:
        for topic in found.topics.values():
            writer.add(topic)
        for message in found.messages():
            stamped = message.topic in (MOTION, ANSWERS)
            if message.topic not in topics and (not stamped or begin <= stamp_of(message.data) <= end):
                writer.write(*message)
    return out


def test_external_wrenches_are_replayed_as_the_node_assumed_them(tmp_path: Path) -> None:
    bag, body = tmp_path / "bag", "panda_link7"
    pushed = {**PANDA, "wrench_bodies": f"[{body}]"}
    with (
        sound_node("dynamics_node", pushed, "robot"),
        sound_node("recorder", {"file": bag}, "robot"),
        Peer("robot") as peer,
    ):
        sensor = peer.node.create_publisher(WrenchStamped, f"external_wrench/{body}", 10)
        peer.wait_for_topics(listeners=2)
        peer.wait_until(lambda: sensor.get_subscription_count() == 2, "who listens to the sensor")

        def make(k: int) -> DesiredMotion:
            stamp = k * MILLISECOND
            return write_desired_motion(JOINTS, time_message(100 * SECOND + stamp), motion(stamp))

        warm = warm_up(peer, bag, make)
        for k in range(warm, warm + 300):
            msg = WrenchStamped()
            msg.header.frame_id = body
            msg.wrench.force.z = 0.1 * k
            sensor.publish(msg)
            peer.send(make(k))
            time.sleep(0.002)
        last = 100 * SECOND + k * MILLISECOND
        wait_for_stamp(peer, bag, ANSWERS, last)
        peer.wait_until(lambda: last in peer.stamps()[-1:], "the last answer")
        assert peer.answers[-1].wrench_bodies == [body]
        assert any(peer.answers[-1].wrenches)
    replayed(bag, tmp_path / "out")
    assert_same_answers(bag, tmp_path / "out", 250)
    with Bag(bag) as found:
        assert found.counts[f"/robot/external_wrench/{body}"] > 250


def test_a_bag_without_settings_needs_the_robot(plain: Path, tmp_path: Path) -> None:
    bag = without(plain, tmp_path / "bag", SETTINGS)
    refused(lambda: replayed(bag, tmp_path / "out"), f"holds nothing on {SETTINGS}; ... with --robot")
    call = partial(replayed, bag, tmp_path / "out", Changes(robot="panda.yaml", floating_base=True))
    refused(call, "set it in 'panda.yaml'")
    replayed(bag, tmp_path / "out", Changes(robot="panda.yaml"))
    assert_same_answers(bag, tmp_path / "out", PLAIN)


def test_answers_that_were_recorded_out_of_order_keep_their_times(plain: Path, tmp_path: Path) -> None:
    with Bag(plain) as found, BagWriter(tmp_path / "late", found.storage) as writer:
        for topic in found.topics.values():
            writer.add(topic)
        answer = itertools.count()
        for message in found.messages():
            late = message.topic == ANSWERS and next(answer) % 3 == 0
            writer.write(*message._replace(time=message.time + (10 * MILLISECOND if late else 0)))
    outcome = replayed(tmp_path / "late", tmp_path / "out").outcome
    assert outcome.matched == len(set(stamps(plain, MOTION)) & set(stamps(plain, ANSWERS))) >= PLAIN
    assert_same_answers(tmp_path / "late", tmp_path / "out", PLAIN)
    with Bag(tmp_path / "late") as one, Bag(tmp_path / "out") as other:
        times, again = (
            {stamp_of(message.data): message.time for message in bag.messages([ANSWERS])}
            for bag in (one, other)
        )
    assert all(times[stamp] == time for stamp, time in again.items() if stamp in times)


def test_an_error_leaves_no_bag_behind(plain: Path, tmp_path: Path) -> None:
    call = partial(replayed, plain, tmp_path / "out", Changes(robot="unknown.yaml"))
    refused(call, "no file 'unknown.yaml'")
    assert not (tmp_path / "out").exists()


def test_wrenches_of_older_answers_are_read_as_they_were_defined(tmp_path: Path) -> None:
    """Since when thrusts have come into the message."""
    lines = share.find("msg", "FeedforwardTorque.msg").read_text(encoding="utf-8").splitlines()
    new = ("string[] propeller_names", "float64[] thrusts", "float64[] tilts")
    text = "\n".join(line for line in lines if not line.startswith(new))
    store = ros_types()
    store.register(get_types_from_msg(text, FEEDFORWARD_TORQUE))
    definition, _ = store.generate_msgdef(FEEDFORWARD_TORQUE, ros_version=2)
    fields: dict[str, object] = {name: [] for name, _ in store.fielddefs[FEEDFORWARD_TORQUE][1]}
    for name, (nodetype, of) in store.fielddefs[FEEDFORWARD_TORQUE][1]:
        if nodetype == Nodetype.BASE:
            fields[name] = 0
        elif of != ((Nodetype.BASE, ("string", 0)), 0):
            fields[name] = np.arange(12.0) if name == "wrenches" else np.zeros(0)
    stamp = store.types["builtin_interfaces/msg/Time"](sec=1, nanosec=2)
    fields["header"] = store.types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
    fields["wrench_bodies"] = ["hand"]
    data = bytes(store.serialize_cdr(store.types[FEEDFORWARD_TORQUE](**fields), FEEDFORWARD_TORQUE))
    with BagWriter(tmp_path / "old", "mcap") as writer:
        writer.add(Topic(ANSWERS, FEEDFORWARD_TORQUE, definition, MSG, store.hash_rihs01(FEEDFORWARD_TORQUE)))
        writer.write(ANSWERS, 7, data)
    with Bag(tmp_path / "old") as bag:
        time, wrenches = RecordedAnswers(bag, ANSWERS, wrenches=True).find(SECOND + 2) or (0, None)
    assert time == 7
    np.testing.assert_array_equal(wrenches, np.arange(12.0).reshape(1, 2, 6))


def test_motions_of_another_version_are_refused(plain: Path, tmp_path: Path) -> None:
    with Bag(plain) as found:
        topic = found.topics[MOTION]
    old = replace(topic, definition="float64[] positions\n", hash="")
    with BagWriter(tmp_path / "old", "mcap") as writer:
        writer.add(old)
        writer.write(MOTION, 0, b"\x00\x01\x00\x00" + bytes(12))
    refused(lambda: replayed(tmp_path / "old", tmp_path / "out"), "another version of hodyn_ros/msg")


def test_settings_hold_from_the_sample_after_the_last_one_answered_before() -> None:
    stamps = np.arange(10)
    times = 100 * MILLISECOND + stamps * MILLISECOND

    def begins(*settings: tuple[int, int | None]) -> list[int]:
        texts = [(time * MILLISECOND, json.dumps({"after_stamp": after})) for time, after in settings]
        return [interval.begin for interval in read_settings_intervals(times, stamps, texts)]

    assert begins((0, None)) == [0]
    assert begins((105, None)) == [0]  # heard late, from before the recording
    assert begins((105, -7)) == [0]
    assert begins((0, None), (108, 4)) == [0, 5]  # samples have waited for the new settings
    assert begins((0, None), (103, 4)) == [0, 5]  # heard before a sample that it follows
    assert begins((0, None), (106, None)) == [0, 7]  # the node has started again
    assert begins((104, 4)) == [5]  # those before are unknown
    lost = read_settings_intervals(
        times[stamps != 4],
        stamps[stamps != 4],
        [(0, '{"after_stamp": null}'), (108 * MILLISECOND, '{"after_stamp": 4}')],
    )
    assert [interval.begin for interval in lost] == [0, 4]
    refused(lambda: read_settings_intervals(times, stamps, [(0, "gain: 3")]), "not those of a dynamics_node")


def test_bytes_are_those_that_travel(plain: Path) -> None:
    serialise = Serialiser("hodyn_ros/msg/FeedforwardTorque")
    with Bag(plain) as bag:
        message = next(bag.messages([ANSWERS]))
    answer = deserialize_message(message.data, FeedforwardTorque)
    # not all bytes are the same: what fills up to the next place for a number may be anything
    assert len(serialise(answer)) == len(message.data)
    assert deserialize_message(serialise(answer), FeedforwardTorque) == answer
    assert len(serialize_message(FeedforwardTorque())) >= len(serialise(FeedforwardTorque()))


# playing


@pytest.mark.parametrize("simulated", some([False, True], True))
def test_a_node_answers_a_played_bag_as_it_answered_live(
    plain: Path, simulated: bool, tmp_path: Path
) -> None:
    everything, clock = tmp_path / "everything", ["--clock"] if simulated else []
    with (
        # whoever warms up is another publisher than the player
        sound_node(
            "dynamics_node", {**PANDA, "use_sim_time": simulated, "new_publisher_after": 0.01}, "robot"
        ),
        sound_node("recorder", {"file": everything, "use_sim_time": simulated}, "robot"),
        start_script("ros_player.py", str(plain), *clock, "2", MOTION) as player,
        Peer("robot") as peer,
    ):
        player.wait_for_line("player matched")
        warm_up(peer, everything, lambda k: write_desired_motion(JOINTS, time_message(k), motion(k)))
        player.tell("go")
        player.wait_for_line("played")
        wait_for_stamp(peer, everything, ANSWERS, stamps(plain, MOTION)[-1])
        player.tell("end")
        assert player.wait() == 0, player.output()
    bag = without(everything, tmp_path / "played", begin=stamps(plain, MOTION)[0])
    found = compared(plain, bag, MOTION, ANSWERS)
    assert not found.topics[MOTION].differs
    answers = found.topics[ANSWERS]
    assert not answers.fields
    assert answers.pairs >= PLAIN
    motions = set(stamps(plain, MOTION))
    assert {stamp for stamp in stamps(plain, ANSWERS) if stamp in motions} <= set(stamps(bag, ANSWERS))
    if simulated:
        with Bag(plain) as live, Bag(bag) as played:
            times = [message.time for message in live.messages([MOTION])]
            again = [message.time for message in played.messages([MOTION])]
        assert times[0] <= again[0]
        assert abs(again[-1] - times[-1]) < 200 * MILLISECOND


# parallel robots


def platform_motion(k: int) -> DesiredMotion:
    """Return a translation of a planar platform, a few centimetres about its home."""
    t, omega = 1e-3 * k, 3.0
    sine = [0.02 * omega**n * np.sin(omega * t + 0.5 * np.pi * n) for n in range(6)]
    twists = np.zeros((5, 6))
    twists[:, 3] = sine[1:]
    twists[:, 4] = np.multiply(0.5, sine[1:])
    msg = DesiredMotion(base_twists=float64s(twists), base_twist_representation=DesiredMotion.HYBRID)
    msg.header.stamp = Time(sec=100, nanosec=k * MILLISECOND)
    msg.base_pose = [Pose(position=Point(x=sine[0], y=0.5 * sine[0]), orientation=Quaternion(w=1.0))]
    return msg


def test_a_parallel_robot_is_replayed_bit_by_bit_from_its_beginning(tmp_path: Path) -> None:
    """Each of its answers starts the search for the legs from the one before."""
    bag, parameters = tmp_path / "bag", {"robot_config": "planar_3rrr.yaml"}
    with (
        sound_node("dynamics_node", parameters, "robot"),
        sound_node("recorder", {"file": bag}, "robot"),
        Peer("robot") as peer,
    ):
        peer.wait_for_topics(listeners=2)
        warm = warm_up(peer, bag, platform_motion)
        for k in range(warm, warm + 200):
            peer.send(platform_motion(k))
            time.sleep(0.001)
        wait_for_stamp(peer, bag, ANSWERS, 100 * SECOND + k * MILLISECOND)
    replayed(bag, tmp_path / "out")
    assert_same_answers(bag, tmp_path / "out", 200)
    later = without(bag, tmp_path / "later", begin=stamps(bag, MOTION)[80])
    replayed(later, tmp_path / "later_out")
    with Bag(later) as one, Bag(tmp_path / "later_out") as other:
        assert not compare(one, other, 1e-9).differs
