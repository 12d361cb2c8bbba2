"""Feedforward torques and their time derivatives for robots with elastic joints, of any order."""

import os
import signal
import sys
from pkgutil import extend_path

# `python -m hodyn_ros.nodes.NAME`: Ctrl-C in the second or two of the imports would print where they stood.
if sys.argv[:1] == ["-m"] and any(argument.startswith("hodyn_ros.nodes.") for argument in sys.orig_argv):
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))

# A ROS build puts the generated `hodyn_ros.msg` beside an installed copy of this package; a clone on the path
# before it must still find it there.
__path__ = extend_path(__path__, __name__)

from hodyn_ros.actuation.compiled_motors import MotorMotion  # noqa: E402
from hodyn_ros.actuation.series_elastic import SeriesElastic  # noqa: E402
from hodyn_ros.dynamics.forward_kinematics import Kinematics  # noqa: E402
from hodyn_ros.dynamics.group_robot import GroupRobot  # noqa: E402
from hodyn_ros.dynamics.robot import Robot  # noqa: E402
from hodyn_ros.errors import ConvergenceError, HodynError, InputError, ModelError, SingularError  # noqa: E402
from hodyn_ros.model.joint_tree import JointTree  # noqa: E402
from hodyn_ros.model.loops import Coupling, Loop  # noqa: E402
from hodyn_ros.motion import AppliedWrench, BaseMotion  # noqa: E402
from hodyn_ros.parallel.limb import Limb  # noqa: E402
from hodyn_ros.parallel.platform import Platform  # noqa: E402
from hodyn_ros.parallel.robot import ParallelRobot  # noqa: E402

__all__ = [
    "AppliedWrench",
    "BaseMotion",
    "ConvergenceError",
    "Coupling",
    "GroupRobot",
    "HodynError",
    "InputError",
    "JointTree",
    "Kinematics",
    "Limb",
    "Loop",
    "ModelError",
    "MotorMotion",
    "ParallelRobot",
    "Platform",
    "Robot",
    "SeriesElastic",
    "SingularError",
]
