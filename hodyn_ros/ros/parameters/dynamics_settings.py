"""The parameters of dynamics_node, and the configuration of its feedforward model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.ros.parameters.parameters import ParameterSpec, specs_of, value

_FEEDFORWARD = specs_of(FeedforwardConfig)
LOAD_SETTINGS = tuple(
    spec for spec in _FEEDFORWARD if spec.name == "gravity" or spec.name.startswith("payload_")
)
"""Those that change what a robot bears."""

_WRENCHES = (
    ParameterSpec(
        "wrench_cutoff",
        10.0,
        "Where the filter of measured wrenches lets 1/sqrt(2) of a sine through [Hz].",
        low=0.01,
        high=1000.0,
    ),
    ParameterSpec(
        "wrench_timeout",
        0.1,
        "How long [s] a measured wrench counts; then it is taken as gone, and fades through the filter.",
        low=0.001,
        high=3600.0,
    ),
    ParameterSpec(
        "wrench_limit",
        1e6,
        "Largest component of a measured wrench [N, N.m]; a measurement beyond it is rejected.",
        low=0.001,
        high=1e9,
    ),
)
_STRUCTURE = (
    ParameterSpec(
        "robot_config",
        "",
        "Robot to compute: path of a YAML file, or the name of a shipped one such as panda.yaml; empty: wait "
        "for a URDF on robot_description. Fixed while the node is configured; clean it up to load another.",
    ),
    ParameterSpec(
        "floating_base",
        False,
        "Whether the first link of the URDF on robot_description floats. Fixed while the node is configured.",
    ),
)
SETTINGS = (
    *_STRUCTURE,
    *_FEEDFORWARD,
    *_WRENCHES,
    ParameterSpec(
        "new_clock_after",
        5.0,
        "After how long [s] without an accepted sample stamps before the last one are accepted again.",
        low=0.1,
        high=3600.0,
        read_only=True,
    ),
    ParameterSpec(
        "new_publisher_after",
        0.5,
        "After how long [s] without a sample of the publisher of desired_motion another one is followed.",
        low=0.01,
        high=3600.0,
        read_only=True,
    ),
    ParameterSpec(
        "autostart",
        True,
        "Configure and activate at the start, without waiting for a lifecycle manager.",
        read_only=True,
    ),
)
STRUCTURAL = frozenset(setting.name for setting in _STRUCTURE)
LIVE = frozenset(setting.name for setting in (*_FEEDFORWARD, *_WRENCHES))


def feedforward_config(node: Node, changed: Mapping[str, Any]) -> FeedforwardConfig:
    """Return what the parameters ask for, with some of them changed; InputError names one that cannot be."""
    config: dict[str, Any] = {}
    for setting in _FEEDFORWARD:
        found = changed.get(setting.name, value(node, setting.name))
        config[setting.name] = () if found is None else found  # an array that is not set
    return FeedforwardConfig(**config)
