"""The policy for SROS2; that it has the names of running nodes is in test/nodes/test_parameter_dumps.py."""

import xml.etree.ElementTree as ET

import pytest
from refusals import refused

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from hodyn_ros.ros.access import NODES, policy


def test_each_node_is_granted_its_names_in_an_enclave_of_its_own() -> None:
    root = ET.fromstring(policy("/left"))
    enclaves = {enclave.get("path"): enclave for enclave in root.iter("enclave")}
    assert set(enclaves) == {f"/left/{node}" for node in NODES}
    for node, own in NODES.items():
        (profile,) = enclaves[f"/left/{node}"].iter("profile")
        assert (profile.get("ns"), profile.get("node")) == ("/left", node)
        for kind, verb, names in (
            ("topic", "publish", own.publishes),
            ("topic", "subscribe", own.subscribes),
            ("service", "reply", own.serves),
            ("action", "execute", own.provides),
            ("action", "call", own.uses),
        ):
            granted = {each.text for each in profile.findall(f"{kind}s[@{verb}='ALLOW']/{kind}")}
            assert granted >= set(names)
            assert bool(granted) is bool(names) or kind != "action"


def test_commands_come_from_the_guarded_nodes_alone() -> None:
    may_command = {node for node, own in NODES.items() if "effort_commands" in own.publishes}
    assert may_command == {"controller_node", "forward_effort_node", "motor_reference_node"}
    assert {node for node, own in NODES.items() if "desired_motion" in own.publishes} == {
        "trajectory_node",
        "stream_node",
    }


def test_unknown_nodes_and_relative_namespaces_are_named() -> None:
    refused(lambda: policy("/", ["nobody"]), "there is no node 'nobody'; there are: dynamics_node")
    refused(lambda: policy("left"), "must be absolute, found 'left'; write '/left'")


@pytest.mark.parametrize("namespace", ["/a//b", "/left/", "//", "/a b", "/1st", "/a/~", "/a\n"])
def test_namespaces_that_no_node_can_have_are_refused(namespace: str) -> None:
    refused(lambda: policy(namespace), "no node can be in the namespace")
