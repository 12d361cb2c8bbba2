"""Feedforward torques and their time derivatives for robots with elastic joints, of any order."""

import os
import signal
import sys
from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING

# `python -m hodyn_ros.nodes.NAME`: Ctrl-C in the second or two of the imports would print where they stood.
if sys.argv[:1] == ["-m"] and any(argument.startswith("hodyn_ros.nodes.") for argument in sys.orig_argv):
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))

# A ROS build puts the generated `hodyn_ros.msg` beside an installed copy of this package; a clone on the path
# before it must still find it there.
__path__ = extend_path(__path__, __name__)

if TYPE_CHECKING:
    from hodyn_ros.actuation.compiled_motors import MotorMotion
    from hodyn_ros.actuation.drive_train import DriveTrain
    from hodyn_ros.actuation.propellers import Propellers
    from hodyn_ros.dynamics.group_robot import GroupRobot
    from hodyn_ros.dynamics.kinematics.forward_kinematics import Kinematics
    from hodyn_ros.dynamics.parallel_robot import ParallelRobot
    from hodyn_ros.dynamics.results import BaseAndJoints, CoordinateMotion, DriveState
    from hodyn_ros.dynamics.robot import Robot
    from hodyn_ros.errors import (
        ConvergenceError,
        FigureWarning,
        HodynError,
        InputError,
        ModelError,
        NotFiniteError,
        OverflowingError,
        RangeError,
        ShapeError,
        SingularError,
        UnknownNameError,
    )
    from hodyn_ros.lie.euler import euler_base, euler_coordinates, euler_velocity_maps
    from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
    from hodyn_ros.model.drive_spec import DriveSpec, series_elastic
    from hodyn_ros.model.joint_tree import JointTree
    from hodyn_ros.model.loops import Constraints, Coupling, Loop
    from hodyn_ros.model.parallel.limb import Limb
    from hodyn_ros.model.parallel.platform import Platform
    from hodyn_ros.model.propeller import Propeller, PropellerLimits

__all__ = [
    "AppliedWrench",
    "BaseAndJoints",
    "BaseMotion",
    "Constraints",
    "ConvergenceError",
    "CoordinateMotion",
    "Coupling",
    "DriveSpec",
    "DriveState",
    "DriveTrain",
    "FigureWarning",
    "GroupRobot",
    "HodynError",
    "InputError",
    "JointTree",
    "Kinematics",
    "Limb",
    "Loop",
    "ModelError",
    "MotorMotion",
    "NotFiniteError",
    "OverflowingError",
    "ParallelRobot",
    "Platform",
    "Propeller",
    "PropellerLimits",
    "Propellers",
    "RangeError",
    "Robot",
    "ShapeError",
    "SingularError",
    "UnknownNameError",
    "euler_base",
    "euler_coordinates",
    "euler_velocity_maps",
    "series_elastic",
]

# Each is imported when it is asked for, as all of them take a second, and a command or a node needs few.
_HOMES = {
    "AppliedWrench": "lie.motion",
    "BaseAndJoints": "dynamics.results",
    "BaseMotion": "lie.motion",
    "Constraints": "model.loops",
    "ConvergenceError": "errors",
    "CoordinateMotion": "dynamics.results",
    "Coupling": "model.loops",
    "DriveSpec": "model.drive_spec",
    "DriveState": "dynamics.results",
    "DriveTrain": "actuation.drive_train",
    "FigureWarning": "errors",
    "GroupRobot": "dynamics.group_robot",
    "HodynError": "errors",
    "InputError": "errors",
    "JointTree": "model.joint_tree",
    "Kinematics": "dynamics.kinematics.forward_kinematics",
    "Limb": "model.parallel.limb",
    "Loop": "model.loops",
    "ModelError": "errors",
    "MotorMotion": "actuation.compiled_motors",
    "NotFiniteError": "errors",
    "OverflowingError": "errors",
    "ParallelRobot": "dynamics.parallel_robot",
    "Platform": "model.parallel.platform",
    "Propeller": "model.propeller",
    "PropellerLimits": "model.propeller",
    "Propellers": "actuation.propellers",
    "RangeError": "errors",
    "Robot": "dynamics.robot",
    "ShapeError": "errors",
    "SingularError": "errors",
    "UnknownNameError": "errors",
    "euler_base": "lie.euler",
    "euler_coordinates": "lie.euler",
    "euler_velocity_maps": "lie.euler",
    "series_elastic": "model.drive_spec",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
