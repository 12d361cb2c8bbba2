"""Motions that make the parameters of a robot visible, within its limits."""

from hodyn_ros.identification.excitation.boxes import Box
from hodyn_ros.identification.excitation.search import Excitation, ExcitationOptions, excite

__all__ = ["Box", "Excitation", "ExcitationOptions", "excite"]
