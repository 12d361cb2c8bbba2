"""Motions sampled with their time derivatives; they know nothing of ROS."""

from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.combined import ScaledTime, SideBySide
from hodyn_ros.trajectory.easing import EasedStart, EasedStop
from hodyn_ros.trajectory.files.reader import read_motion, read_trajectory
from hodyn_ros.trajectory.harmonic import Cosines, FourierSeries
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.splines.blended import BlendedLines
from hodyn_ros.trajectory.splines.piecewise import PiecewisePolynomial
from hodyn_ros.trajectory.splines.spline import WaypointSpline
from hodyn_ros.trajectory.timed import TimedPath

__all__ = [
    "BlendedLines",
    "Cosines",
    "EasedStart",
    "EasedStop",
    "FourierSeries",
    "PiecewisePolynomial",
    "RobotMotion",
    "ScaledTime",
    "SideBySide",
    "TimedPath",
    "Trajectory",
    "WaypointSpline",
    "read_motion",
    "read_trajectory",
]
