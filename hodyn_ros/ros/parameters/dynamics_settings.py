"""The parameters of dynamics_node, and the configuration of its feedforward model."""

from __future__ import annotations

from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.ros.parameters.parameters import ParameterSpec, live_parameters, parameters, specs_of

_FEEDFORWARD = specs_of(FeedforwardConfig, live=True)
LOAD_SETTINGS = tuple(
    spec for spec in _FEEDFORWARD if spec.name == "gravity" or spec.name.startswith("payload_")
)
"""Those of the load that a robot carries."""

_WRENCHES = live_parameters(
    wrench_cutoff=ParameterSpec(
        10.0,
        "Frequency at which the filter of measured wrenches passes 1/sqrt(2) of a sine [Hz].",
        within=(0.01, 1000.0),
    ),
    wrench_timeout=ParameterSpec(
        0.1,
        "How long [s] a measured wrench is held; then it decays to zero through the filter.",
        within=(0.001, 3600.0),
    ),
    wrench_limit=ParameterSpec(
        1e6,
        "Largest component of a measured wrench [N, N.m]; a measurement beyond it is rejected.",
        within=(0.001, 1e9),
    ),
)
LOAD_TAKING = live_parameters(
    payload_fade=ParameterSpec(
        1.0,
        "How long [s] it takes to carry what ~/take_payload takes, or nothing after ~/drop_payload.",
        within=(0.05, 60.0),
    ),
    payload_limit=ParameterSpec(10.0, "Largest mass [kg] that ~/take_payload takes.", within=(0.0, 10000.0)),
)
"""How a load is taken that an observer has found."""

_STRUCTURE = live_parameters(
    robot_config=ParameterSpec(
        "",
        "Robot to compute: path of a YAML file, or the name of a shipped one such as panda.yaml; empty: "
        "wait for a URDF on robot_description. Fixed while the node is configured; clean it up to load "
        "another.",
    ),
    floating_base=ParameterSpec(
        False,
        "Whether the first link of the URDF on robot_description floats. Fixed while the node is configured.",
    ),
)
NEW_CLOCK_AFTER = ParameterSpec(
    5.0,
    "Time [s] without an accepted sample after which earlier stamps are accepted again.",
    within=(0.1, 3600.0),
    name="new_clock_after",
)
AUTOSTART = ParameterSpec(
    True, "Configure and activate at the start, without waiting for a lifecycle manager.", name="autostart"
)
SETTINGS = (
    *_STRUCTURE,
    *_FEEDFORWARD,
    *_WRENCHES,
    *LOAD_TAKING,
    NEW_CLOCK_AFTER,
    *parameters(
        new_publisher_after=ParameterSpec(
            0.5,
            "Time [s] without a sample from the publisher of desired_motion after which another is followed.",
            within=(0.01, 3600.0),
        )
    ),
    AUTOSTART,
)
STRUCTURAL = frozenset(setting.name for setting in _STRUCTURE)
LIVE = frozenset(setting.name for setting in (*_FEEDFORWARD, *_WRENCHES))
