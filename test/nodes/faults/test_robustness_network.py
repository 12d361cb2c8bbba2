"""dynamics_node on one host, its neighbours on another, and a cable that is pulled out for a second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from ros_network import NotAllowed, TwoHosts
from ros_processes import start_node, start_script

COUNT, RATE = 600, 100  # six seconds
CUT = 1.0  # [s]


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoHosts]:
    try:
        with TwoHosts() as hosts:
            monkeypatch.setenv("ROS_STATIC_PEERS", ";".join(hosts.addresses))  # multicast may not get through
            monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")  # the tests have none
            monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE")
            yield hosts
    except NotAllowed as reason:
        pytest.skip(f"no network namespaces here: {reason}")


def test_a_link_that_is_down_for_a_second_loses_nothing(hosts: TwoHosts, tmp_path: Path) -> None:
    sent_file, got_file = tmp_path / "sent.npy", tmp_path / "got.npz"
    here, there = hosts.prefix(0), hosts.prefix(1)
    with (
        start_node("dynamics_node", {"robot_config": "panda.yaml"}, "far", within=there) as node,
        start_script("ros_stream.py", "collect", str(got_file), namespace="far", within=here) as subscriber,
        start_script(
            "ros_stream.py", "publish", str(COUNT), str(RATE), str(sent_file), namespace="far", within=here
        ) as publisher,
    ):
        subscriber.wait_for_line("subscriber matched")  # an answer has come the whole way
        publisher.tell("go")
        time.sleep(CUT)
        hosts.pull_cable()
        time.sleep(CUT)
        hosts.plug_cable()
        publisher.wait_for_line("published")
        sent = np.load(sent_file)
        subscriber.tell(str(sent[-1]))
        subscriber.wait_for_line("collected")
        publisher.tell("end")
        assert node.stop() == 0, node.output()
        assert "rejected" not in node.output()
    got = np.load(got_file)
    counted = got["stamps"] >= sent[0]
    np.testing.assert_array_equal(got["stamps"][counted], sent)  # each once, in order
    delay = 1e-9 * (got["arrived"][counted] - sent)
    assert delay.max() > 0.9 * CUT  # or the cable was not the only way
    assert np.median(delay[-50:]) < 0.5 * CUT  # it is as before
