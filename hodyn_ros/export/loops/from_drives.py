"""The motion of robots with loops from that of their drives, as plans."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.loops.moved_by_drives import MovedByDrives
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, compiles
from hodyn_ros.engine.loops.platform_drives import PlatformCode
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.export import words
from hodyn_ros.export.loops.plan import (
    Plan,
    base_motion,
    check_compiled,
    leader_of,
    motion_near_home,
)
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_MOST_HUNG = 24  # positions of all limbs and their platform found at once; code grows with their cube


@dataclass(frozen=True, eq=False, kw_only=True)
class _FromDrivesPlan(Plan):
    """The motion of a robot from that of its drives, which are the coordinates of a twin, `looped`."""

    moved: MovedByDrives

    def motion(self, random: Random, reach: float) -> list[Array]:
        """Return a motion of the drives near home, and that of a base."""
        q, *leader = super().motion(random, reach)
        return [self.moved.drives_of(q, base_motion(leader)), *leader]


@dataclass(frozen=True, eq=False)
class _OnLimbsPlan(Plan):
    """The motion of a platform on limbs from that of its drives."""

    def motion(self, random: Random, reach: float) -> list[Array]:
        """Return a motion of the drives near home."""
        rows, _ = self.inputs["drives"]
        y, *leader = motion_near_home(self.looped, random, rows, rows - 1, reach)
        joints, _ = self.looped.joint_motion(y, base_motion(leader))
        return [np.ascontiguousarray(joints[:, list(self.closure.driven)])]


def motion_from_drives(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan the motion of the coordinates, and of a platform, from that of the drives."""
    closure, order = robot.structure, request.order
    looped, says = LoopedDynamics(closure), list[str]()
    if looped.platform is not None and compiles(closure, order):
        direct = LoopFunction(PlatformCode(closure, order))
        places = _platform_places(closure, order, np.arange(direct.defect_at), says)
        return _OnLimbsPlan(robot, request, looped, direct, places, says, remembered="led_by_drives")
    moved = MovedByDrives(looped)
    moved.follow()
    hung = moved.start is not None
    kernel = None if hung and len(moved.twin.closure.leading) > _MOST_HUNG else moved.code(order)
    if kernel is None:
        check_compiled(robot, False, f"motion from drives of order {order}")
    assert kernel is not None
    result, places = np.arange(kernel.result[1]), {}
    if closure.platform is not None:
        behind = POSE + 6 * order
        places, result = _platform_places(closure, order, result[:behind], says), result[behind:]
    if closure.joints:
        places["q"] = result.reshape(order + 1, -1)
        says.append(words.motion(order))
    remembered = "led_by_drives" if hung else "leading"
    return _FromDrivesPlan(
        robot, request, moved.twin, kernel, places, says, remembered=remembered, moved=moved
    )


def _platform_places(
    closure: Closure, order: int, result: NDArray[np.int_], says: list[str]
) -> dict[str, NDArray[np.int_]]:
    """Return where pose and twists of a platform stand in a row, and say so."""
    says += [f"platform_{line}" for line in words.base(order - 1, leader_of(closure))]
    places = {"platform_pose": result[None, :POSE]}
    if order:
        places["platform_twists"] = result[POSE:].reshape(-1, 6)
    return places
