"""Dynamics of a tree with couplings and loops, in its independent coordinates."""

from __future__ import annotations

from functools import cached_property

from hodyn_ros.dynamics.loops.compiled_frames import CompiledFrames
from hodyn_ros.dynamics.loops.looped_accelerations import LoopedAccelerations
from hodyn_ros.dynamics.loops.looped_efforts import LoopedEfforts
from hodyn_ros.dynamics.loops.looped_matrices import LoopedMatrices
from hodyn_ros.dynamics.loops.moved_by_drives import MovedByDrives
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array


class LoopedDynamics(LoopedEfforts, LoopedAccelerations, LoopedMatrices):
    """Motions, efforts, accelerations and matrices of a robot with couplings and loops."""

    _by_drives: MovedByDrives | None = None

    @cached_property
    def compiled_frames(self) -> CompiledFrames:
        """Inverse kinematics of single frames in compiled code."""
        return CompiledFrames(self)

    def move_drives(self, drives: Array, given: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return the motion of the coordinates, and of a platform, from that of the drives (orders, driven).

        `given`: the motion of a prescribed base, with spatial twists. With more drives than coordinates some
        determine the motion, and the others have to agree: InputError.
        """
        if self._by_drives is None or not self._by_drives.near:
            self._by_drives = MovedByDrives(self)
        return self._by_drives.move(drives, given)
