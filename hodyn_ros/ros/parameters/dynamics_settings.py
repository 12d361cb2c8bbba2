"""The parameters of dynamics_node, and the configuration of its feedforward model."""

from __future__ import annotations

from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.ros.parameters.parameters import ParameterSpec, specs_of

_FEEDFORWARD = specs_of(FeedforwardConfig)
LOAD_SETTINGS = tuple(
    spec for spec in _FEEDFORWARD if spec.name == "gravity" or spec.name.startswith("payload_")
)
"""Those of the load that a robot carries."""

_WRENCHES = (
    ParameterSpec(
        "wrench_cutoff",
        10.0,
        "Frequency at which the filter of measured wrenches passes 1/sqrt(2) of a sine [Hz].",
        low=0.01,
        high=1000.0,
    ),
    ParameterSpec(
        "wrench_timeout",
        0.1,
        "How long [s] a measured wrench is held; then it decays to zero through the filter.",
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
LOAD_TAKING = (
    ParameterSpec(
        "payload_fade",
        1.0,
        "How long [s] it takes to carry what ~/take_payload takes, or nothing after ~/drop_payload.",
        low=0.05,
        high=60.0,
    ),
    ParameterSpec(
        "payload_limit",
        10.0,
        "Largest mass [kg] that ~/take_payload takes.",
        low=0.0,
        high=10000.0,
    ),
)
"""How a load is taken that an observer has found."""

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
NEW_CLOCK_AFTER = ParameterSpec(
    "new_clock_after",
    5.0,
    "Time [s] without an accepted sample after which earlier stamps are accepted again.",
    low=0.1,
    high=3600.0,
    read_only=True,
)
AUTOSTART = ParameterSpec(
    "autostart",
    True,
    "Configure and activate at the start, without waiting for a lifecycle manager.",
    read_only=True,
)
SETTINGS = (
    *_STRUCTURE,
    *_FEEDFORWARD,
    *_WRENCHES,
    *LOAD_TAKING,
    NEW_CLOCK_AFTER,
    ParameterSpec(
        "new_publisher_after",
        0.5,
        "Time [s] without a sample from the publisher of desired_motion after which another is followed.",
        low=0.01,
        high=3600.0,
        read_only=True,
    ),
    AUTOSTART,
)
STRUCTURAL = frozenset(setting.name for setting in _STRUCTURE)
LIVE = frozenset(setting.name for setting in (*_FEEDFORWARD, *_WRENCHES))
