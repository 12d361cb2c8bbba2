"""The parameters of observer_node, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.observers import ObserverConfig, Sensed
from hodyn_ros.observers.payload import PayloadConfig
from hodyn_ros.ros.parameters.dynamics_settings import AUTOSTART, LOAD_SETTINGS, NEW_CLOCK_AFTER
from hodyn_ros.ros.parameters.parameters import ParameterSpec, live_parameters, parameters, specs_of

_OBSERVER = tuple(specs_of(ObserverConfig, live=True))
_STRUCTURE = parameters(
    robot_config=ParameterSpec(
        "",
        "Robot to observe: path of a YAML file, or the name of a shipped one such as panda.yaml. Fixed "
        "while the node is configured; clean it up to load another.",
        live=True,
    ),
    measured=ParameterSpec(
        [],
        "What is measured: position, velocity of links on joint_states; motor_position, motor_velocity on "
        "motor_states; motor_effort on motor_states, or on joint_states where motors have no positions; "
        "joint_torque on joint_states. Empty: both sides of springs and the efforts of their motors; of "
        "rigid robots position, velocity and motor_effort. Fixed while the node is configured.",
        live=True,
        element=str,
    ),
    stamp_tolerance=ParameterSpec(
        0.0005,
        "Time [s] by which stamps of joint_states, motor_states and odom may differ, to count as one sample.",
        within=(0.0, 0.1),
    ),
)
USUAL_LOAD = "usual_load_"  # before the fields of PayloadConfig
_ESTIMATE = (
    *live_parameters(
        payload_rate=ParameterSpec(
            0.0,
            "How often [Hz] it is said on the topic payload what the robot carries beside payload_mass; "
            "0: never, and nothing is computed.",
            within=(0.0, 100.0),
        )
    ),
    *(replace(spec, name=USUAL_LOAD + spec.name) for spec in specs_of(PayloadConfig, live=True)),
)
SETTINGS = (
    *_STRUCTURE,
    *LOAD_SETTINGS,
    *_ESTIMATE,
    *_OBSERVER,
    NEW_CLOCK_AFTER,
    AUTOSTART,
)
STRUCTURAL = frozenset(setting.name for setting in (*_STRUCTURE, *LOAD_SETTINGS, *_ESTIMATE))
LIVE = frozenset(setting.name for setting in _OBSERVER)


def sensed(robot: Robot, measured: Sequence[str]) -> Sensed:
    """Return what is measured, by the parameter of that name; InputError where it cannot be."""
    if not measured:
        train = robot.drive_train
        elastic = train is not None and bool(train.elastic.any())
        return Sensed(links=True, motors=elastic, motor_efforts=True)
    whole = Sensed(links=True, motors=True, motor_efforts=True, joint_torques=True).rows
    for name in measured:
        if name not in whole:
            raise InputError(f"parameter 'measured' holds {name!r}; choose from {', '.join(whole)}")
    chosen = Sensed(
        links="position" in measured,
        motors="motor_position" in measured,
        motor_efforts="motor_effort" in measured,
        joint_torques="joint_torque" in measured,
        rates=any(name in measured for name in ("velocity", "motor_velocity")),
    )
    if set(chosen.rows) != set(measured):
        raise InputError(
            f"parameter 'measured' is {list(measured)}; give velocities of all whose positions are measured, "
            "or of none"
        )
    if chosen.joint_torques and chosen.motor_efforts and not chosen.motors:
        raise InputError(
            "parameter 'measured' holds joint_torque and motor_effort, which cannot both come on "
            "joint_states; leave one out, or measure motor_position"
        )
    return chosen
