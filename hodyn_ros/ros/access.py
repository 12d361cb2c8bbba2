"""What each node publishes, listens to and serves, and the policy for SROS2 that grants it that and no more.

Names are relative to the namespace of the node, "~/" stands for the node itself. What depends on parameters
is as by their defaults: another controller, or other topics of a recorder, need lines of their own.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hodyn_ros.errors import InputError


@dataclass(frozen=True)
class Access:
    """The names that a node uses beyond those that every node does."""

    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()  # actions
    uses: tuple[str, ...] = ()  # actions of others


EVERY_NODE = Access(
    publishes=("/diagnostics", "/parameter_events", "/rosout"),
    subscribes=("/clock", "/parameter_events"),
    serves=(
        "~/describe_parameters",
        "~/get_parameter_types",
        "~/get_parameters",
        "~/get_type_description",
        "~/list_parameters",
        "~/set_parameters",
        "~/set_parameters_atomically",
    ),
)
_STATES = (  # of a lifecycle node
    "~/change_state",
    "~/get_available_states",
    "~/get_available_transitions",
    "~/get_state",
    "~/get_transition_graph",
)
_LOADS = ("~/take_payload", "~/drop_payload")
_MANAGER = ("controller_manager/activity", "/diagnostics")  # which controllers are active

RECORDED = (
    *("desired_motion", "feedforward_torque", "dynamics_node/settings", "observer_node/observer_settings"),
    *("odom", "robot_description", "joint_states", "motor_states", "effort_commands"),
    *("external_efforts", "contacts", "payload"),
    *("/parameter_events", "/diagnostics", "/tf", "/tf_static"),
)
"""What `recorder` hears, beside external wrenches."""

_NAMESPACE = re.compile(r"/|(/[A-Za-z_][A-Za-z0-9_]*)+")


def _lifecycle(
    publishes: tuple[str, ...], subscribes: tuple[str, ...], serves: tuple[str, ...] = ()
) -> Access:
    return Access((*publishes, "~/transition_event"), subscribes, (*serves, *_STATES))


def _commanding(publishes: tuple[str, ...], *measured_and_more: str) -> Access:
    """Return what a node uses that follows feedforwards behind a guard."""
    subscribes = ("feedforward_torque", "payload", *measured_and_more)
    return Access(publishes, subscribes, ("~/start", *_LOADS))


NODES = {
    "dynamics_node": _lifecycle(
        ("feedforward_torque", "~/settings"),
        ("desired_motion", "robot_description", "external_wrench/*", "payload"),
        _LOADS,
    ),
    "trajectory_node": Access(
        ("desired_motion",),
        (
            *("joint_trajectory", "joint_states", "feedforward_torque", "effort_commands"),
            *("recorder/heard", "~/override"),
        ),
        ("~/start", "~/pause", "~/resume", "~/back"),
    ),
    "stream_node": Access(
        ("desired_motion",), ("joint_trajectory", "joint_targets", "pose_targets", "joint_states")
    ),
    "controller_node": _commanding(("effort_commands",), "motor_states"),
    "forward_effort_node": _commanding(("effort_commands",), "joint_states", *_MANAGER),
    "motor_reference_node": _commanding(
        ("position_commands", "velocity_commands", "effort_commands", "motor_references"),
        "joint_states",
        *_MANAGER,
    ),
    "learning_node": _lifecycle(
        ("corrected_feedforward_torque",),
        ("desired_motion", "feedforward_torque", "joint_states", "motor_states"),
        ("~/start", "~/stop", "~/forget"),
    ),
    "observer_node": _lifecycle(
        ("external_efforts", "contacts", "payload", "~/observer_settings"),
        ("joint_states", "motor_states", "odom"),
        ("~/restart", "~/restart_payload", "~/payload"),
    ),
    "mpc_node": _lifecycle(
        ("feedforward_torque",), ("desired_motion", "joint_states", "motor_states", "effort_commands")
    ),
    "trajectory_filter": Access(
        ("filtered_joint_trajectory",),
        ("~/joint_trajectory", "joint_states", "joint_trajectory_controller/controller_state"),
        ("~/retime",),
        provides=("~/follow_joint_trajectory", "~/retime"),
        uses=("joint_trajectory_controller/follow_joint_trajectory",),
    ),
    "simulator_node": Access(("joint_states", "motor_states"), ("effort_commands",)),
    "skeleton_node": Access(("skeleton",), ("desired_motion",)),
    "recorder": Access(("~/heard",), (*RECORDED, "external_wrench/*")),
}


def policy(namespace: str = "/", nodes: Iterable[str] = NODES) -> str:
    """Return a policy for SROS2 with an enclave for each node, of the node's own full name.

    For `ros2 security create_permission`. Raises InputError for an unknown node, and for a namespace that is
    not absolute, or that no node can be in.
    """
    if not namespace.startswith("/"):
        raise InputError(f"the namespace must be absolute, found {namespace!r}; write '/{namespace}'")
    if not _NAMESPACE.fullmatch(namespace):
        raise InputError(
            f"no node can be in the namespace {namespace!r}; write it as /cell/left, of letters, digits and _"
        )
    root = ET.Element("policy", version="0.2.0")
    enclaves = ET.SubElement(root, "enclaves")
    for node in nodes:
        if node not in NODES:
            raise InputError(f"there is no node {node!r}; there are: {', '.join(NODES)}")
        enclave = ET.SubElement(enclaves, "enclave", path=f"{namespace.rstrip('/')}/{node}")
        profiles = ET.SubElement(enclave, "profiles")
        profile = ET.SubElement(profiles, "profile", ns=namespace, node=node)
        for kind, verb, names in _grants(node):
            group = ET.SubElement(profile, f"{kind}s", {verb: "ALLOW"})
            for name in sorted(set(names)):
                ET.SubElement(group, kind).text = name
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _grants(node: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    own = NODES[node]
    for kind, verb, names in (
        ("topic", "publish", (*EVERY_NODE.publishes, *own.publishes)),
        ("topic", "subscribe", (*EVERY_NODE.subscribes, *own.subscribes)),
        ("service", "reply", (*EVERY_NODE.serves, *own.serves)),
        ("action", "execute", own.provides),
        ("action", "call", own.uses),
    ):
        if names:
            yield kind, verb, names
