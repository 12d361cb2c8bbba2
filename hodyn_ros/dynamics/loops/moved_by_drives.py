"""The motion of a robot with loops from that of its drives: the direct kinematics of a platform."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from hodyn_ros.codegen.kernel import Kernel, TooLong
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.kinematics.forward_kinematics import forward_kinematics
from hodyn_ros.dynamics.loops.closing import Known
from hodyn_ros.dynamics.loops.grounded import SHIFT, base_turns, grounded
from hodyn_ros.dynamics.loops.independence import choose_coordinates
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, compiles
from hodyn_ros.engine.loops.loop_products import FromDrivesCode
from hodyn_ros.engine.recursions.kinematics import POSE, frame_motion
from hodyn_ros.engine.series.validity import DOUBLE
from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.formulations.embedding import Place
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.frames import Frame

_TURNED = 0.5  # sine of how far a base may turn before its joints are written anew; they are singular at one


class MovedByDrives:
    """A robot with driven joints as coordinates. A base that moves freely hangs on six joints.

    These are at zero at `start`, where the base was when this was made.
    """

    def __init__(self, looped: LoopedMotion) -> None:
        closure = looped.closure
        joints, hold = closure.driven, True
        if closure.n_efforts > closure.n_coordinates:
            joints, hold = choose_coordinates(closure, closure.driven)
        if not hold:
            raise SingularError(
                f"the drives of robot {closure.tree.name!r} do not determine its motion near its home", np.inf
            )
        self._looped, self.start = looped, None
        self._columns = [closure.driven.index(joint) for joint in joints]
        twin = replace(closure, joints=joints, driven=joints, platform=None)
        self._first = 0
        if closure.tree.floating_base and not closure.base_prescribed:
            place = looped.known.place
            self.start = place.base
            twin = grounded(twin, place)
            self._first = SHIFT + 1
        self.twin = LoopedMotion(twin)
        self._left: Array | None = None  # the memory of the robot as the last call left it
        self._platforms: Kept[int, Kernel | None] = Kept()

    def kernel(self, order: int) -> LoopFunction | None:
        """Return code that does all in one call, where the twin has the joints of the robot."""
        return None if self.start is not None or self._redundant else self.code(order)

    def code(self, order: int) -> LoopFunction | None:
        """Return code that does all in one call, from a memory of the twin."""
        closure, twin = self._looped.closure, self.twin
        with suppress(TooLong):
            if compiles(twin.closure, order):
                chosen = twin.independence.of_joints
                return LoopFunction(FromDrivesCode(closure, twin.closure, chosen, order))
        return None

    def drives_of(self, y: Array, leader: BaseMotion | None) -> Array:
        """Return the motion of all drives from that of the twin's coordinates (orders + 1, k)."""
        if not self._redundant:
            return y
        joints, _ = self.twin.joint_motion(y, leader)
        return np.ascontiguousarray(joints[:, self._first :][:, list(self._looped.closure.driven)])

    @property
    def _redundant(self) -> bool:
        return len(self._columns) < len(self._looped.closure.driven)

    @property
    def near(self) -> bool:
        """Whether the six joints of a base are far from where they are singular."""
        if self.start is None or self._is_there:
            return True
        base = self._looped.known.place.base
        return base is None or abs(base_turns(base, self.start)[1]) < _TURNED

    @property
    def _is_there(self) -> bool:
        """Whether nothing has moved the robot since the last call."""
        return self._left is not None and bool((self._looped.memory == self._left).all())

    def move(self, drives: Array, prescribed: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return what `LoopedMotion.move_drives` does."""
        looped, closure = self._looped, self._looped.closure
        twin = self.twin
        if not self._is_there:
            self.follow()
        self._left = None  # until the robot has followed the twin
        whole, _ = twin.joint_motion(np.ascontiguousarray(drives[:, self._columns]), prescribed)
        joints = whole[:, self._first :]
        apart = np.abs(joints[:, list(closure.driven)] - drives)
        apart /= np.abs(drives).max(axis=1, initial=closure.size)[:, None]
        if apart.max(initial=0.0) > DOUBLE.agree:
            worst = closure.driven[int(apart.max(axis=0).argmax())]
            raise InputError(
                f"the drives of robot {closure.tree.name!r} contradict each other: joint "
                f"{closure.tree.joint_names[worst]!r} does not move like that where the others do"
            )
        platform = None if closure.platform is None else self._platform(whole, prescribed)
        leader = prescribed if platform is None else platform
        y = joints[:, list(closure.joints)]
        base = None if not closure.tree.floating_base or leader is None else leader.pose
        looped.known = Known(Place(joints[0], base), y[0], None if leader is None else leader.pose)
        self._left = looped.memory.copy()
        return y, platform

    def follow(self) -> None:
        """Let the twin stand where the robot is known to be."""
        known = self._looped.known.place
        joints, base = known.joints, known.base
        if self.start is not None and base is not None:
            slides = base[:3, 3] - self.start[:3, 3]
            joints, base = np.concatenate([slides, base_turns(base, self.start), joints]), None
        self.twin.known = Known(Place(joints, base), joints[list(self.twin.closure.joints)], base)

    def _platform(self, joints: Array, leader: BaseMotion | None) -> BaseMotion:
        """Return the motion of the platform from that of all joints of the twin."""
        order, tree, platform = len(joints) - 1, self.twin.closure.tree, self._looped.closure.platform
        assert platform is not None
        body = platform.body + (SHIFT if self.start is not None else 0)
        law = frame_motion(tree, order, [Frame(body, np.eye(4))], "spatial")
        kernel = self._platforms.made(order, lambda: Kernel.unless_long(*law))
        if kernel is None:
            motion = forward_kinematics(tree, joints, leader, "spatial", {})
            pose, twists = motion.pose_of(body), motion.twists_of(body)
        else:
            base = [] if leader is None else [leader.pose, np.ascontiguousarray(leader.twists[:order])]
            row = kernel.function(np.ascontiguousarray(joints), *base)[0]
            pose, twists = row[:POSE].reshape(4, 4), row[POSE:].reshape(-1, 6)
        return BaseMotion(pose, twists if order else np.zeros((1, 6)))
