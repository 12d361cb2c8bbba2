"""What a robot consists of, and what all its calls need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.propellers import Propellers
from hodyn_ros.checks import finite_array, n_axes
from hodyn_ros.codegen.kernel import Function
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.loops.closing import home
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.operations import Operation
from hodyn_ros.dynamics.trees.tree import TreeDynamics
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.lie.motion import AppliedWrench
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.arrays import counted
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.propeller import Propeller
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.model.uncertainty import RobotUncertainty


class RobotProperties:
    """Model, drives and limits of a robot, its names and coordinates."""

    def __init__(
        self,
        model: TreeModel,
        limits: JointLimits | None = None,
        drives: Sequence[DriveSpec] | DriveTrain | None = None,
        frames: Mapping[str, Frame] | None = None,
        closure: Closure | None = None,
        coordinate_limits: JointLimits | None = None,
        propellers: Sequence[Propeller] | Propellers | None = None,
        uncertainty: RobotUncertainty | None = None,
    ) -> None:
        """Put a robot together; `limits` and `drives` are of the driven joints.

        `coordinate_limits`: of the joints that are coordinates, where these are others. `propellers`: of a
        floating base. `uncertainty`: how far the robot may be from all this.
        """
        self._uncertainty = RobotUncertainty() if uncertainty is None else uncertainty
        self._tree = model
        self._dynamics: TreeDynamics | LoopedDynamics
        if closure is None:
            self._dynamics = tree = TreeDynamics(model, frames or {})
            self._structure = tree.structure
        else:
            self._dynamics, self._structure = LoopedDynamics(closure, frames or {}), closure
        self._joint_names = _names(model, self._structure.joints)
        self._driven_joints = _names(model, self._structure.driven)
        self._limits = limits if limits is not None else JointLimits.unlimited(len(self.driven_joints))
        if coordinate_limits is None and self.driven_joints == self.joint_names:
            coordinate_limits = self._limits
        self._coordinate_limits = coordinate_limits or JointLimits.unlimited(self.n_coordinates)
        self._drive_train = None if drives is None else DriveTrain.of(drives, self.driven_joints)
        if propellers and not model.floating_base:
            raise ModelError(f"robot {model.name!r} has propellers, but a base that does not float")
        self._propellers = Propellers.of(propellers) if propellers else None
        self._frames: Mapping[str, Frame] = MappingProxyType(dict(frames or {}))
        fast = self._dynamics.fast
        self._fast_inverse, self._fast_inverse_with_base = fast.inverse, fast.inverse_with_base
        self._fast_forward, self._fast_forward_with_base = fast.forward, fast.forward_with_base
        self._fast_partials, self._again = fast.partials, fast.again
        self._moving: Kept[Any, Callable[..., Array]] = Kept()  # kinematics by shape and representation
        self._frame_kernels: Kept[Any, Function | None] = Kept()

    @property
    def limits(self) -> JointLimits:
        """Limits of the driven joints."""
        return self._limits

    @property
    def coordinate_limits(self) -> JointLimits:
        """Limits of the joints that are coordinates."""
        return self._coordinate_limits

    @property
    def drive_train(self) -> DriveTrain | None:
        """The drives of the driven joints, of any kind; None where nothing is known of them."""
        return self._drive_train

    @property
    def propellers(self) -> Propellers | None:
        """The propellers of a floating base; None where nothing is known of them."""
        return self._propellers

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Named frames besides those of the bodies."""
        return self._frames

    @property
    def uncertainty(self) -> RobotUncertainty:
        """How far the robot may be from all this."""
        return self._uncertainty

    @property
    def name(self) -> str:
        """The name of the robot."""
        return self._tree.name

    @property
    def moves_base(self) -> bool:
        """Whether a motion has to come with one of a floating base, or of a platform."""
        return self._structure.leader is not None

    @property
    def is_arm(self) -> bool:
        """Whether it is a tree on a fixed base: no couplings or loops, and no base that moves."""
        return self.closure is None and not self.moves_base

    @property
    def platform(self) -> str | None:
        """The name of the body whose pose is a coordinate; None where all coordinates are joints."""
        platform = self._structure.platform
        return None if platform is None else self._tree.body_names[platform.body]

    @property
    def home(self) -> tuple[Array, Array | None]:
        """Positions (n,) at the zero configuration, and the pose (4, 4) of base or platform there."""
        start = home(self._structure)
        return start.y, start.pose

    @property
    def positions(self) -> Array | None:
        """What a robot with loops remembers of its last success (N,), for `reset`; None without loops."""
        memory = self._dynamics.memory
        return None if memory is None else memory[0].copy()

    def reset(self, positions: ArrayLike | None = None) -> None:
        """Find positions of a robot with loops from the zero configuration again, on its branch.

        Or from `positions` (N,) that `positions` was before. Or near positions of the joints that no linear
        coupling moves, in the order of the tree, which select another branch; a pose given stays the last.
        """
        looped = self._need_loops("reset")
        n = len(looped.closure.leading)
        if positions is None:
            looped.known = home(looped.closure)
        elif n_axes(positions) == 1 and np.size(positions) == n:
            looped.memory[0, :n] = finite_array("the positions", positions, (n,))
        else:
            looped.memory[0] = finite_array("the positions", positions, looped.memory.shape[1:])

    def __repr__(self) -> str:
        model, closure, train = self._tree, self.closure, self.drive_train
        base = "floating base" if model.floating_base else "fixed base"
        loops, drives = "", "no drives"
        if train is not None:
            drives = f"{counted(train.n_joints, 'drive')} ({int(train.elastic.sum())} elastic)"
        if closure is not None:
            closing = [loop for loop in closure.loops if loop.kind != "spin"]  # which holds a turn, no place
            loops = f"{counted(len(closing), 'loop')}, {counted(len(self.coordinates), 'coordinate')}, "
        return (
            f"<{type(self).__name__} {model.name!r}: {counted(model.n_joints, 'joint')}, "
            f"{counted(model.n_bodies, 'body', 'bodies')}, {base}, {loops}{drives}, "
            f"{model.masses.sum():.4g} kg>"
        )

    @property
    def model(self) -> TreeModel:  # type: ignore[override]
        """The tree of bodies, of a robot that is no more than a tree.

        Raises InputError for one with couplings or loops: what asks for it does not know them.
        """
        if self.closure is None:
            return self._tree
        raise InputError(
            f"robot {self._tree.name!r} has couplings or loops, which this does not know yet; docs/loops.md "
            "lists what does"
        )

    @property
    def tree(self) -> TreeModel:
        """The tree of bodies, whatever couplings and loops there are besides."""
        return self._tree

    @property
    def closure(self) -> Closure | None:
        """Couplings, loops, coordinates and drives; None for a robot that is no more than a tree."""
        return self._dynamics.closure

    @property
    def structure(self) -> Closure:
        """Couplings, loops, coordinates and drives; a tree has no loops, and its joints are all of these."""
        return self._structure

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of every array, of those that are independent coordinates."""
        return self._joint_names

    @property
    def n_coordinates(self) -> int:
        """Number n of columns of q: of the joints, with loops of those that are independent coordinates.

        The pose of a platform moves besides, as `base`.
        """
        return len(self._structure.joints)

    @property
    def n_joints(self) -> int:
        """Number of joints of a robot that is no more than a tree.

        Raises InputError for one with couplings or loops, of which not all joints are coordinates.
        """
        if self.closure is None:
            return self._tree.n_joints
        raise InputError(
            f"robot {self.name!r} has couplings or loops: take `n_coordinates`, the number of columns of q, "
            "or `tree.n_joints`, that of all joints"
        )

    @property
    def driven_joints(self) -> tuple[str, ...]:
        """Names of the joints on which drives act, in the order of efforts."""
        return self._driven_joints

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The independent coordinates, joints by name, then rows of a platform's pose as "body.row"."""
        platform = self._structure.platform
        if platform is None:
            return self.joint_names
        rows = (f"{self._tree.body_names[platform.body]}.{row}" for row in platform.rows)
        return (*self.joint_names, *rows)

    @property
    def overconstrained_loops(self) -> tuple[str, ...]:
        """Loops with dependent rows, where only the sum of their loads is unique, not the shares."""
        return self._dynamics.redundant

    @property
    def gravity(self) -> Array:
        """Gravity (3,) in the world frame, pointing down [m/s^2]."""
        return self._tree.gravity

    def require_drives(self) -> DriveTrain:
        """Return the drives; InputError where nothing is known of them."""
        if self.drive_train is None:
            raise InputError(f"robot {self.name!r} has no drives; describe them in its file")
        return self.drive_train

    def _need_loops(self, what: str) -> LoopedDynamics:
        if isinstance(self._dynamics, LoopedDynamics):
            return self._dynamics
        raise InputError(f"{what} is for robots with couplings or loops; {self._tree.name!r} has none")

    def _need_tree(self, what: str) -> TreeDynamics:
        if isinstance(self._dynamics, TreeDynamics):
            return self._dynamics
        raise InputError(f"{what} is for robots without couplings and loops; {self.name!r} has some")

    def _loads(self, wrenches: Sequence[AppliedWrench] | AppliedWrench | None) -> tuple[AppliedWrench, ...]:
        if wrenches is None:
            return ()
        if isinstance(wrenches, AppliedWrench):
            return (wrenches,)
        listed: object = wrenches
        if not isinstance(listed, (list, tuple)):
            raise InputError(f"wrenches must be a list of AppliedWrench, found {type(listed).__name__}")
        for wrench in listed:
            if not isinstance(wrench, AppliedWrench):
                raise InputError(
                    f"wrenches must be a list of AppliedWrench, found {type(wrench).__name__} in it"
                )
            named = isinstance(wrench.body, str) and wrench.body not in self._tree.body_names
            frame = self.frames.get(str(wrench.body)) if named else None
            if frame is not None and frame.body >= 0:
                carrier = self._tree.body_names[frame.body]
                raise InputError(
                    f"{wrench.body!r} is a frame fixed to body {carrier!r}; give the wrench on that body, in "
                    "its frame or in the world"
                )
        return tuple(wrenches)


def _names(tree: TreeModel, joints: Sequence[int]) -> tuple[str, ...]:
    return tuple(tree.joint_names[joint] for joint in joints)


def call_of(robot: RobotProperties, operation: Operation) -> Callable[..., Any]:
    """Return the call of a robot that has the name of an operation."""
    call: Callable[..., Any] = getattr(robot, operation.name)
    return call
