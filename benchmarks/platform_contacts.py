"""Collisions and clampings of a planar 3-RRR in MuJoCo, found by its encoders and motor currents alone.

Mohammad, Piosik, Lehmann, Seel and Schappler, Fast contact detection via fusion of joint and inertial sensors
for parallel robots in human-robot collaboration (IEEE RA-L 2025, arXiv 2505.08334) find collisions and
clampings of such a robot within 3 to 39 ms, with an inertial sensor on its platform; with encoders and motor
currents alone the same group needs 9 to 58 ms at 0.4 to 0.9 m/s, with gearless drives of little friction
(ICRA 2023, arXiv 2308.09633). Forces and thresholds are not in what is open of both. Here obstacles are as
stiff as parts of the body in ISO/TS 15066, speeds are those of 2308.09633, and thresholds the lowest at which
an observer is silent without contacts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.contacts import CASES, PERIOD, QUIET, WARM, Recording, best, judged, ratios
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, motor_reference
from hodyn_ros.export.mjcf import MOTOR, mjcf
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.simulation.sensors import Encoder, Sensors
from hodyn_ros.trajectory import WaypointSpline

_CONTACTS = 20
_EVERY, _LASTS = 0.6, 0.1  # [s] between contacts, and of each at most
_SPEEDS = (0.4, 0.9)  # [m/s] of what is hit, 2308.09633
_STIFFNESS = (10e3, 75e3)  # [N/m] of an abdomen and of a hand, ISO/TS 15066, Table A.3
_STEPS = 5  # of MuJoCo in a sample
_DAMPING = 2e-4  # [s] of the springs
_LEAST, _MOST = 0.5, 10.0  # [N] of forces that act from one moment on
_GAINS = (100.0, 200.0, 400.0)  # [1/s]


def robots() -> dict[str, Robot]:
    """Return the robot with gearless drives, as that of the publications, and with the springs of its file."""
    shipped = Robot.load(share.find("config", "planar_3rrr.yaml"))
    rub = FrictionSpec(0.01, 0.03, 0.05)  # little: 1 % of what the drives do
    specs = [replace(spec, motor_friction=rub) for spec in shipped.require_drives().specs]
    gearless = [DriveSpec(np.inf, spec.motor_inertia, motor_friction=rub) for spec in specs]
    return {"gearless drives": shipped.with_drives(gearless), "drives with springs": shipped.with_drives(specs)}


def wrong(robot: Robot, stiffness: float, friction: float) -> Robot:
    """Return a robot whose springs and friction differ by these shares."""
    specs = []
    for spec in robot.require_drives().specs:
        rub = spec.motor_friction
        rubs = replace(rub, viscous=(1 + friction) * rub.viscous, coulomb=(1 + friction) * rub.coulomb)
        if np.isfinite(spec.stiffness):
            spec = replace(
                spec, stiffness=(1 + stiffness) * spec.stiffness, spring_damping=_DAMPING * spec.stiffness
            )
        specs.append(replace(spec, motor_friction=rubs))
    return robot.with_drives(specs)
