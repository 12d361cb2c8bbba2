"""The motion of a whole robot: of its joints, of its platform or floating base, or of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion, BaseRepresentation
from hodyn_ros.lie.rigid import rigid_pose
from hodyn_ros.lie.se3 import Ad
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.combined import Rearranged, SideBySide
from hodyn_ros.trajectory.pose_coordinates import COORDINATES, poses_and_twists
from hodyn_ros.trajectory.rest import rest_to_rest


class MotionSample(NamedTuple):
    """A motion at one time, or at N of them with a first axis more."""

    joints: Array  # (order + 1, n) positions and their derivatives [rad/s^k or m/s^k]
    pose: Array | None = None  # (4, 4) of the base in the world [m]; None where the robot has a fixed base
    twists: Array | None = None  # (order, 6) twist (omega; v) of the base and its derivatives
    representation: BaseRepresentation = "body_fixed"  # of the twists

    @property
    def base(self) -> BaseMotion | None:
        """The motion of base or platform at one time, as calls of a robot take it."""
        if self.pose is None or self.twists is None:
            return None
        return BaseMotion(self.pose, self.twists, representation=self.representation)

    def one(self, which: int | slice) -> MotionSample:
        """Return one of N samples, or some of them."""
        if self.pose is None or self.twists is None:
            return MotionSample(self.joints[which])
        return MotionSample(self.joints[which], self.pose[which], self.twists[which], self.representation)

    def at_rest(self) -> MotionSample:
        """Return the same place without motion."""
        joints = np.zeros_like(self.joints)
        joints[..., 0, :] = self.joints[..., 0, :]
        return self._replace(
            joints=joints, twists=None if self.twists is None else np.zeros_like(self.twists)
        )


@dataclass(frozen=True, eq=False)
class RobotMotion:
    """A trajectory, and what its columns are: first `coordinates` of the base, if any, then the joints.

    `coordinates` are names out of `pose_coordinates.COORDINATES`; the others stay zero. `origin` (4, 4) [m]
    is the pose in the world that they start from. `joint_names`, or None where the joints are not named.
    """

    trajectory: Trajectory
    joint_names: tuple[str, ...] | None = None
    coordinates: tuple[str, ...] = ()
    origin: Array = field(default_factory=lambda: np.eye(4))
    _places: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for i, name in enumerate(self.coordinates):
            if name not in COORDINATES:
                raise InputError(
                    f"coordinate {name!r} of the base is unknown; there are {', '.join(COORDINATES)}"
                )
            if name in self.coordinates[:i]:
                raise InputError(f"coordinate {name!r} of the base is given twice")
        if len(self.coordinates) > self.trajectory.n_joints:
            raise InputError(
                f"the base has {len(self.coordinates)} coordinates, but the trajectory "
                f"{self.trajectory.n_joints} columns"
            )
        object.__setattr__(self, "origin", rigid_pose("the origin", self.origin))
        object.__setattr__(self, "_places", [COORDINATES.index(name) for name in self.coordinates])

    @classmethod
    def of(cls, motion: Trajectory | RobotMotion) -> RobotMotion:
        """Return a motion as it is, or a trajectory as that of the joints of a robot on the ground."""
        return motion if isinstance(motion, RobotMotion) else cls.of_joints(motion)

    @classmethod
    def of_joints(cls, trajectory: Trajectory) -> RobotMotion:
        """Build the motion of a robot that has a fixed base."""
        return cls(trajectory, trajectory.joint_names)

    @classmethod
    def of_base(
        cls,
        base: Trajectory,
        coordinates: Sequence[str] = COORDINATES,
        origin: ArrayLike | None = None,
        joints: Trajectory | None = None,
    ) -> RobotMotion:
        """Build the motion of a platform, or of a floating base with its joints.

        `base` moves the `coordinates` in this order.

        >>> from hodyn_ros.trajectory import Cosines
        >>> motion = RobotMotion.of_base(Cosines([0.5, 2.0], [1.0, 3.0]), ["z", "yaw"])
        >>> motion.sample(0.0, 2).twists.round(12) + 0.0
        array([[  0. ,   0. ,   0. ,   0. ,   0. ,   0. ],
               [  0. ,   0. , -18. ,   0. ,   0. ,  -0.5]])
        """
        names = tuple(coordinates)
        if base.n_joints != len(names):
            raise InputError(f"the base has {len(names)} coordinates, but its motion {base.n_joints} columns")
        start = np.eye(4) if origin is None else np.asarray(origin, dtype=np.float64)
        if joints is None:
            return cls(base, (), names, start)
        return cls(SideBySide((base, joints)), joints.joint_names, names, start)

    def for_joints(
        self, joint_names: Sequence[str], standing: Mapping[str, float] | None = None
    ) -> RobotMotion:
        """Return the motion of the joints of a robot, in its order.

        `standing`: where joints of the robot stand that the motion does not move, by name [rad or m]. A
        motion that does not name its joints is taken as it is, if there are as many. Raises InputError that
        names a joint which the robot does not have, or of which nothing is said.

        >>> from hodyn_ros.trajectory import Cosines
        >>> motion = RobotMotion.of(Cosines([0.1, 0.2], [1.0, 1.0], joint_names=["wrist", "elbow"]))
        >>> motion.for_joints(["shoulder", "elbow", "wrist"], {"shoulder": 0.7}).sample(0.0, 0).joints
        array([[0.7, 0.2, 0.1]])
        """
        names, moved, still = tuple(joint_names), self.joint_names, standing or {}
        if moved is None and still:
            raise InputError("standing needs joint_names: the names of the joints that the motion moves")
        if moved is None:
            if self.n_joints != len(names):
                raise InputError(
                    f"the motion moves {self.n_joints} joints without naming them, but the robot has "
                    f"{list(names)}; name them under joint_names"
                )
            return self
        for name in (*moved, *still):
            if name not in names:
                raise InputError(f"the motion names joint {name!r}, but the robot has {list(names)}")
        for name in names:
            if name in moved and name in still:
                raise InputError(f"joint {name!r} is moved, so it cannot be under standing as well")
        if missing := [name for name in names if name not in moved and name not in still]:
            places = ", ".join(f"{name}: 0.0" for name in missing)
            raise InputError(
                f"the motion names {[*moved, *still]}, but the robot has other joints as well; say where "
                f"they stand, as in standing: {{{places}}}"
            )
        if moved == names:
            return self
        first = len(self.coordinates)
        columns = [*range(first), *(first + names.index(name) for name in moved)]
        where = [*np.zeros(first), *(still.get(name, 0.0) for name in names)]
        named = None if self.moves_base else names
        return replace(
            self, trajectory=Rearranged(self.trajectory, columns, where, joint_names=named), joint_names=names
        )

    @property
    def moves_base(self) -> bool:
        """Whether it is the motion of a platform or of a floating base."""
        return bool(self.coordinates)

    @property
    def n_joints(self) -> int:
        """Number of joints, those of the base not counted."""
        return self.trajectory.n_joints - len(self.coordinates)

    def rest_to_rest(self, ramp: float, duration: float | None = None, order: int = 0) -> RobotMotion:
        """Return the motion with a smooth start and stop; arguments and errors as in `rest.rest_to_rest`."""
        return replace(self, trajectory=rest_to_rest(self.trajectory, ramp, duration, order))

    def sample(self, t: ArrayLike, order: int) -> MotionSample:
        """Return the motion up to derivative `order` at one time or at N times `t` [s].

        Raises InputError as `Trajectory.sample` does.
        """
        return self.of_columns(self.trajectory.sample(t, order))

    def of_columns(self, values: Array, representation: BaseRepresentation = "body_fixed") -> MotionSample:
        """Return samples (..., order + 1, columns) of the trajectory as motions of base and joints.

        The twists are those in the representation `frame`.
        """
        moved, orders = len(self.coordinates), values.shape[-2]
        joints = np.ascontiguousarray(values[..., moved:])
        if not moved:
            return MotionSample(joints)
        base = np.zeros((*values.shape[:-2], orders, len(COORDINATES)))
        base[..., self._places] = values[..., :moved]
        poses, twists = poses_and_twists(base, representation)
        if representation == "spatial":
            twists = twists @ Ad(self.origin).T
        return MotionSample(joints, self.origin @ poses, twists, representation)
