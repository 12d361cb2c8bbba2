"""From recordings to robot files: inertias, friction, rotors and stiffness with their standard deviations."""

from hodyn_ros.identification.identify import Options, identify
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.identification.result import Figure, Identified

__all__ = ["Channel", "Figure", "Identified", "JointRecording", "Options", "identify"]
