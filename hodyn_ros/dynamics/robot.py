"""The robot that users hold: a model with its drives and limits, and the calls of dynamics on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.series_elastic import SeriesElastic
from hodyn_ros.checks import check_finite, check_result, finite_array, finite_result, real_array
from hodyn_ros.dynamics.closing import home
from hodyn_ros.dynamics.coordinate_motion import coordinate_motion, drive_rows, preload_rows
from hodyn_ros.dynamics.floating_base import fitting_base
from hodyn_ros.dynamics.forward_kinematics import (
    Kinematics,
    checked_motion,
    forward_kinematics,
    unpacked,
)
from hodyn_ros.dynamics.inverse_kinematics import Method, inverse_kinematics
from hodyn_ros.dynamics.looped import LoopedDynamics, LoopSolution
from hodyn_ros.dynamics.looped_matrices import TreeMatrices, looped_jacobian, looped_matrices
from hodyn_ros.dynamics.matrices import DynamicMatrices
from hodyn_ros.dynamics.matrix_calls import MatrixCalls
from hodyn_ros.dynamics.mjcf_robot import build_mjcf
from hodyn_ros.dynamics.mobility import check_mobility, check_pose
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.dynamics.pose_solver import Task
from hodyn_ros.engine import kernels
from hodyn_ros.engine.kernel import Function
from hodyn_ros.engine.kinematics import frame_motion
from hodyn_ros.engine.loop_kernel import compiles
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.model.arrays import unique_names
from hodyn_ros.model.assembly import Frame as NamedFrame
from hodyn_ros.model.closure import TOLERANCE, Closure, Coordinate, Named
from hodyn_ros.model.composite_joints import CompositeJoint, unfold_arrays
from hodyn_ros.model.config import read_config
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.drives import Drives, counted, drives_in_words
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.mjcf import read_mjcf
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.model.urdf import read_urdf_assembly
from hodyn_ros.motion import AppliedWrench, BaseMotion, Frame, twists_to_body
from hodyn_ros.representations import Representation, check_representation
from hodyn_ros.se3 import Array

_HIGHEST_ORDER = 30
_KEPT = 100  # kernels of a robot; one that walks meets many sets of contacts


_OF_LOOPS = ("mass_matrix", "coriolis_matrix", "gravity_torque", "com", "jacobian")

Compiled = Literal[
    "inverse_dynamics",
    "forward_dynamics",
    "forward_kinematics",
    "jacobian",
    "com",
    "mass_matrix",
    "coriolis_matrix",
    "gravity_torque",
    "regressor",
]


class DriveState(NamedTuple):
    """What the drives do, by derivative order."""

    motion: Array  # (order + 3, driven) positions of the driven joints and their derivatives [rad or m, /s^k]
    efforts: Array  # (order + 1, driven) [N.m/s^k or N/s^k]
    base_wrench: Array | None  # (order + 1, 6) on a prescribed base, in the world frame
    near_singularity: bool  # whether the pose is close to a singular one; efforts may be large


class Robot(MatrixCalls):
    """A tree of rigid bodies, on the ground or floating, with its dynamics of any order.

    Build one with `from_urdf`, `from_mjcf`, `from_config` or `from_screws`. The calls that return matrices
    are described at `MatrixCalls`.
    """

    def __init__(
        self,
        model: TreeModel,
        limits: JointLimits | None = None,
        drives: Drives | None = None,
        frames: Mapping[str, NamedFrame] | None = None,
        drive_specs: Sequence[DriveSpec] | None = None,
        closure: Closure | None = None,
        coordinate_limits: JointLimits | None = None,
    ) -> None:
        """Put a robot together; `limits` and `drives` are of the driven joints.

        `coordinate_limits`: of the joints that are coordinates, where these are others.
        """
        self._tree = model
        self._looped = None if closure is None else LoopedDynamics(closure)
        self._massless = [] if closure is not None else check_mobility(model)
        self.limits = limits if limits is not None else JointLimits.unlimited(len(self.driven_joints))
        if coordinate_limits is None and self.driven_joints == self.joint_names:
            coordinate_limits = self.limits
        self.coordinate_limits = coordinate_limits or JointLimits.unlimited(self.n_joints)
        self.drives = drives
        self.frames = MappingProxyType(dict(frames or {}))  # besides the bodies, by name
        self.drive_specs = _specs(drives, drive_specs)
        # with friction, or springs that are damped or not linear, only the drive train is right
        plain = drives is not None and all(spec.is_plain for spec in self.drive_specs or ())
        self.actuation = SeriesElastic(drives.stiffness, drives.motor_inertia) if drives and plain else None
        self._compiled: dict[
            tuple[int, ...], Callable[..., Any]
        ] = {}  # inverse dynamics by shape of the motion
        self._compiled_with_base: dict[tuple[int, ...], Callable[..., Any]] = {}  # by shape of the twists
        self._kernels: dict[tuple[str, int, kernels.Setting], Function] = {}
        self._forward: dict[Any, Callable[..., Array]] = {}  # forward dynamics by shapes
        self._moving: dict[Any, Callable[..., Array]] = {}  # kinematics by shape and representation
        self._frame_kernels: dict[Any, Function | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what a robot is made from; what it has compiled is compiled again."""
        closure = None if self._looped is None else self._looped.closure
        parts = self._tree, self.limits, self.drives, dict(self.frames), self.drive_specs, closure
        return Robot, (*parts, self.coordinate_limits)

    @property
    def name(self) -> str:
        """The name of the robot."""
        return self._tree.name

    @property
    def moves_base(self) -> bool:
        """Whether a motion has to come with one of a floating base, or of a platform."""
        closure = self.closure
        return self._tree.floating_base if closure is None else closure.leader is not None

    @property
    def home(self) -> tuple[Array, Array | None]:
        """Positions (n,) at the zero configuration, and the pose (4, 4) of base or platform there."""
        if self._looped is None:
            return np.zeros(self.n_joints), np.eye(4) if self._tree.floating_base else None
        start = home(self._looped.closure)
        return start.y, start.pose

    @property
    def positions(self) -> Array | None:
        """What a robot with loops remembers of its last success (N,), for `reset`; None without loops."""
        return None if self._looped is None else self._looped.memory[0].copy()

    def with_tree(self, tree: TreeModel) -> Robot:
        """Return this robot with other bodies on the same joints, as with another gravity or a payload.

        One with loops is a new one in any case: it remembers where it has been.
        """
        if tree is self._tree and self._looped is None:
            return self
        closure = None if self.closure is None else replace(self.closure, tree=tree)
        return Robot(
            tree,
            self.limits,
            self.drives,
            self.frames,
            self.drive_specs,
            closure,
            self.coordinate_limits,
        )

    def __repr__(self) -> str:
        model, closure = self._tree, self.closure
        base = "floating base" if model.floating_base else "fixed base"
        loops = ""
        if closure is not None:
            loops = f"{counted(len(closure.loops), 'loop')}, {counted(len(self.coordinates), 'coordinate')}, "
        return (
            f"<{type(self).__name__} {model.name!r}: {counted(model.n_joints, 'joint')}, "
            f"{counted(model.n_bodies, 'body', 'bodies')}, {base}, {loops}{drives_in_words(self.drives)}, "
            f"{model.masses.sum():.4g} kg>"
        )

    @classmethod
    def from_urdf(cls, path_or_xml: str | Path, floating_base: bool = False, *, mimic: bool = True) -> Robot:
        """Read a robot from a URDF file, or from the text of one; fixed joints are merged into their parents.

        Joints that mimic others follow them, and are no coordinates; with `mimic=False` all joints move by
        themselves. Raises ModelError naming the link or joint at fault.
        """
        assembly, limits = read_urdf_assembly(
            path_or_xml, floating_base, mimic="follow" if mimic else "ignore"
        )
        if not assembly.couplings:
            return cls(assembly.model, limits, frames=assembly.frames)
        closure = Closure.build(assembly.model, couplings=assembly.couplings)
        return cls(assembly.model, limits.of_joints(closure.driven), frames=assembly.frames, closure=closure)

    @classmethod
    def from_mjcf(
        cls,
        path_or_xml: str | Path,
        *,
        root: str | None = None,
        keyframe: str | None = None,
        coordinates: Sequence[Coordinate] | None = None,
        driven: Sequence[str | int] | None = None,
        friction: bool | None = None,
    ) -> Robot:
        """Read a robot from an MJCF file, MuJoCo's format, or from the text of one, through `mujoco`.

        `root`: the body to read with all that it carries, where several robots or objects move in the file;
        `keyframe`: where loops are closed, by default qpos0, which also says on which branch they stay.
        Armatures are motor inertias of rigid drives, so they count in `actuation` and not in
        `inverse_dynamics`; with `friction=True` damping and dry friction are those of the links of the
        drives, and `friction=False` leaves them out without a warning. Constraints "connect" and "weld" are
        loops, "joint" couplings. With loops, `coordinates` are by default joints with actuators, and others
        as far as needed; `driven` those with actuators where they hold the robot, else the coordinates.

        Warns (FigureWarning) of forces that MuJoCo computes and this does not, such as springs. Raises
        ModelError in one line: no `mujoco`, missing files, what is not supported, or what `docs/loops.md`
        says of loops. `hodyn_ros.model.mjcf` says how bodies, joints and frames are called.
        """
        read = read_mjcf(path_or_xml, root, keyframe)
        try:
            built = build_mjcf(read, coordinates, driven, friction)
            return cls(
                built.assembly.model,
                built.limits,
                built.drives,
                built.assembly.frames,
                built.drive_specs,
                built.closure,
                built.coordinate_limits,
            )
        except ModelError as error:
            raise ModelError(f"{read.source}: {error}") from error

    @classmethod
    def from_config(cls, path: str | Path, gravity: ArrayLike | None = None) -> Robot:
        """Read a robot with its drives and limits from a YAML file as in `config/`.

        `gravity` (3,) [m/s^2], pointing down, overrides the file's. Raises ModelError naming file and place.
        """
        config = read_config(path, gravity)
        try:
            return cls(
                config.model,
                config.limits,
                config.drives,
                config.frames,
                config.drive_specs,
                config.closure,
                config.coordinate_limits,
            )
        except ModelError as error:
            raise ModelError(f"{config.source}: {error}") from error

    @classmethod
    def from_screws(
        cls,
        parents: Sequence[int],
        screws: ArrayLike | Sequence[ArrayLike | CompositeJoint],
        placements: ArrayLike,
        masses: ArrayLike,
        coms: ArrayLike,
        inertias: ArrayLike,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        floating_base: bool = False,
        *,
        joint_names: Sequence[str] | None = None,
        body_names: Sequence[str] | None = None,
        name: str = "robot",
        loops: Sequence[Loop] = (),
        couplings: Sequence[Coupling] = (),
        coordinates: Sequence[Coordinate] | None = None,
        driven: Sequence[str | int] | None = None,
        tolerance: float = TOLERANCE,
    ) -> Robot:
        """Build a robot of n bodies from screws and body frames in the world at its zero configuration.

        `parents` (n,) index of each body's parent, -1 for the world, parents before children; `screws` (n, 6)
        unit joint screws `(e; y×e + h e)` or, prismatic, `(0; e)`; `placements` (n, 4, 4) body frames [m];
        `masses` (n,) [kg]; `coms` (n, 3) in the body frame [m]; `inertias` (n, 3, 3) about the centre of mass
        in body axes [kg m^2]; `gravity` (3,) points down [m/s^2]. With a floating base, body 0 is the base,
        its screw row is ignored, and joint i moves body i + 1. `hodyn_ros.model.composite_joints` has
        universal, ball, planar and floating joints to stand among the screws: joint "hip" becomes several,
        "hip_rz" and so on, with bodies without mass between, such as "hip_rz_link". Other arguments then
        count bodies as given, and such joints by name.

        `couplings` of joints to others, and `loops` that join bodies besides, closed at the zero
        configuration. `coordinates`: the independent ones, joints by name or index, or `(body, rows)` with
        rows out of "rx", "ry", "rz", "x", "y", "z" of a body's pose; by default the `driven` joints, which
        are by default the coordinates. `tolerance`: rows of loops whose singular values are smaller, relative
        to the largest, count as redundant. `docs/loops.md` explains them. Raises ModelError naming the body,
        joint, loop or coordinate at fault.
        """
        closes = bool(loops) or bool(couplings) or coordinates is not None or driven is not None
        if isinstance(screws, (list, tuple)) and any(isinstance(x, CompositeJoint) for x in screws):
            bodies = unique_names("body_names", body_names, len(screws), "body")
            joints = unique_names("joint_names", joint_names, len(screws) - bool(floating_base), "joint")
            named = Named(bodies, joints)
            loops, couplings = named.loops(loops), named.couplings(couplings)
            coordinates, driven = named.coordinates(coordinates), named.coordinates(driven)
            tree = unfold_arrays(parents, screws, placements, masses, coms, inertias, joints, bodies)
        else:
            tree = {"parents": parents, "screws": screws, "placements": placements, "masses": masses}
            tree |= {"coms": coms, "inertias": inertias, "joint_names": joint_names, "body_names": body_names}
        model = TreeModel.build(
            **tree, gravity=gravity, floating_base=floating_base, name=name, any_rank=closes
        )
        if not closes:
            return cls(model)
        closure = Closure.build(model, loops, couplings, coordinates, driven, tolerance=tolerance)
        return cls(model, closure=closure)

    @property
    def model(self) -> TreeModel:  # type: ignore[override]
        """The tree of bodies, of a robot that is no more than a tree.

        Raises InputError for one with couplings or loops: what asks for it does not know them.
        """
        if self._looped is not None:
            raise InputError(
                f"robot {self._tree.name!r} has couplings or loops, which this does not know yet; "
                "docs/loops.md lists what does"
            )
        return self._tree

    @property
    def tree(self) -> TreeModel:
        """The tree of bodies, whatever couplings and loops there are besides."""
        return self._tree

    @property
    def closure(self) -> Closure | None:
        """Couplings, loops, coordinates and drives; None for a robot that is no more than a tree."""
        return None if self._looped is None else self._looped.closure

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of every array: of those that are independent coordinates."""
        closure = self.closure
        return self._tree.joint_names if closure is None else _names(self._tree, closure.joints)

    @property
    def n_joints(self) -> int:
        """Number of joints n, of those that are independent coordinates."""
        closure = self.closure
        return self._tree.n_joints if closure is None else len(closure.joints)

    @property
    def driven_joints(self) -> tuple[str, ...]:
        """Names of the joints on which drives act, in the order of efforts."""
        closure = self.closure
        return self._tree.joint_names if closure is None else _names(self._tree, closure.driven)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The independent coordinates: joints by name, then rows of a platform's pose as "body.row"."""
        closure = self.closure
        if closure is None or closure.platform is None:
            return self.joint_names
        platform = closure.platform
        rows = (f"{self._tree.body_names[platform.body]}.{row}" for row in platform.rows)
        return (*self.joint_names, *rows)

    @property
    def overconstrained_loops(self) -> tuple[str, ...]:
        """Loops with rows that depend on others: only their sum carries load, and shares are not unique."""
        return () if self._looped is None else self._looped.redundant

    @property
    def gravity(self) -> Array:
        """Gravity (3,) in the world frame, pointing down [m/s^2]."""
        return self._tree.gravity

    @cached_property
    def drive_train(self) -> DriveTrain | None:
        """The drives of all joints, of any kind; None for a robot without drives."""
        return None if self.drive_specs is None else DriveTrain.of(self.drive_specs, self.driven_joints)

    def forward_kinematics(
        self, q: ArrayLike, base: BaseMotion | None = None, representation: Representation = "spatial"
    ) -> Kinematics:
        """Compute poses, twists and joint screws of all bodies with their time derivatives.

        `q` (order + 1, n): positions and their derivatives [rad or m, /s^k]; a batch is (N, order + 1, n).
        `base`: the motion of a floating base with `order` twists. `representation` of twists and screws:
        "spatial", "body_fixed" or "hybrid". Look up bodies and named frames in the result with `pose_of`,
        `twists_of` and `jacobian_of`. Mueller (2020), Algorithm 1; Ali et al., Algorithm 1. Raises InputError
        saying what was expected. Compiled, but for robots too large to compile in seconds.
        """
        if type(q) is np.ndarray and base is None:
            compiled = self._moving.get((q.shape, representation))
            if compiled is not None:
                return unpacked(self._tree, compiled(q), len(q) - 1, representation, self.frames)
        return self._forward_kinematics(q, base, representation)

    @finite_result
    def _forward_kinematics(
        self, q: ArrayLike, base: BaseMotion | None, representation: Representation
    ) -> Kinematics:
        if self._looped is not None:
            check_representation(representation)
            q, base = self._looped.joint_motion(*coordinate_motion(self._looped.closure, q, base, 0))
        tree = self._tree
        stack, moving = checked_motion(tree, q, base, representation)
        order = stack.shape[-2] - 1
        bodies = tuple(tree.body_names)
        kernel = self._frame_kernel(order, bodies, representation, True) if order <= _HIGHEST_ORDER else None
        if kernel is None:
            return forward_kinematics(tree, stack, moving, representation, self.frames)
        if moving is None and self._looped is None and stack.ndim == 2:
            self._moving[stack.shape, representation] = kernel.function
        others: list[Array] = []
        if moving is not None:
            spatial = moving.in_frame("world")
            others = [spatial.pose, np.ascontiguousarray(spatial.twists[:order])]
        if stack.ndim == 3:
            others = [np.tile(other, (len(stack), 1, 1)) for other in others]
            table = kernel.batch(np.ascontiguousarray(stack), *others)
        else:
            table = kernel.function(np.ascontiguousarray(stack), *others)
        return unpacked(tree, table, order, representation, self.frames)

    def _frame_kernel(
        self, order: int, names: tuple[str | int, ...], representation: Representation, screws: bool = False
    ) -> Function | None:
        key = (order, names, representation, screws)
        if key not in self._frame_kernels:
            places = [find_frame(self._tree, self.frames, name) for name in names]
            self._frame_kernels[key] = frame_motion(self._tree, order, places, representation, screws)
        return self._frame_kernels[key]

    def inverse_kinematics(
        self,
        pose: ArrayLike,
        twists: ArrayLike | None = None,
        frame: Frame = "world",
        body: str | int | None = None,
        *,
        seed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        method: Method | None = None,
        independent: Mapping[str | int, ArrayLike] | None = None,
        task: Task = "pose",
        base: BaseMotion | None = None,
    ) -> Array:
        """Find the joint motion (order + 1, n) that moves a body or named frame as given.

        `pose` (4, 4) in the world [m]; `twists` (order, 6): its twist `(omega; v)` [rad/s, m/s] and the
        derivatives, spatial with `frame="world"`, body-fixed with `frame="body"`. `body`: by default the last
        one; `task`: its "pose", "position" or "orientation". Positions by Newton's method from `seed` (n,),
        then derivatives order by order; `method` "solve", "pseudo_inverse" (least velocity, weighted with
        `weights` (n,), and its derivatives) or "decomposition" (`independent` joints follow motions of their
        own, by name). `base`: the motion of a floating base with `order` twists. Mueller (2020), Algorithm 2
        and remark 2. The choices are explained at `hodyn_ros.dynamics.inverse_kinematics`.

        Raises SingularError with the condition number at a singular pose, and near one where in a derivative
        more than a share of 1e-5 would be rounding; ConvergenceError with the distance left to a pose out of
        reach; InputError saying what was expected.
        """
        return inverse_kinematics(
            self.model,
            pose,
            twists,
            frame,
            body,
            seed=seed,
            weights=weights,
            method=method,
            independent=independent,
            task=task,
            base=base,
            frames=self.frames,
        )

    @overload
    def inverse_dynamics(
        self,
        q: ArrayLike,
        base: None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
    ) -> Array: ...

    @overload
    def inverse_dynamics(
        self,
        q: ArrayLike,
        base: BaseMotion,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
    ) -> tuple[Array, Array]: ...

    def inverse_dynamics(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
    ) -> Array | tuple[Array, Array]:
        """Compute joint torques and their time derivatives from a motion and its derivatives.

        `q` (order + 3, n): positions and their derivatives [rad or m, /s^k]; a batch is (N, order + 3, n).
        `base`: the motion of a floating base with order + 2 twists. `wrenches` that the environment applies
        to bodies. `formulation`: "spatial", "body_fixed", "hybrid" or "closed_form" as published; by default
        the compiled engine.

        Returns torques (order + 1, n) [N.m/s^k or N/s^k], or (N, order + 1, n) for a batch; with a floating
        base the pair (base wrench (order + 1, 6) in the world frame, torques). Raises InputError saying what
        was expected.
        """
        if wrenches is None and formulation is None:
            if type(q) is np.ndarray and base is None:
                compiled = self._compiled.get(q.shape)
                if compiled is not None:
                    torques: Array = compiled(q)
                    return torques
            if type(base) is BaseMotion and base.frame == "world":
                with_base = self._compiled_with_base.get(base.twists.shape)
                if with_base is not None:
                    found = with_base(q, base)
                    if found is not None:
                        return found
        if self._looped is not None:
            return self._looped_inverse(q, base, wrenches, formulation)
        motion = self._motion([] if q is None else q)
        order = motion.shape[-2] - 3
        base_motion = fitting_base(self.model, base, order + 2)
        loads = self._loads(wrenches)
        if formulation is not None:
            return self._by_formulation(formulation, motion, base_motion, loads)
        kernel = self._inverse_kernel(order, base_motion, loads)
        others = [] if base_motion is None else [base_motion.pose, base_motion.twists[: order + 2]]
        others += [load.up_to(order) for load in loads]
        if motion.ndim == 2:
            efforts = kernel.function(motion, *others)
        else:
            efforts = kernel.batch(motion, *[np.tile(other, (len(motion), 1, 1)) for other in others])
        return efforts if base_motion is None else _split(efforts)

    def compile(
        self,
        order: int,
        what: Compiled = "inverse_dynamics",
        frames: Sequence[str | int] | None = None,
        representation: Representation = "spatial",
    ) -> Callable[..., Array]:
        """Compile one call of one order for this robot, and return the fastest callable there is.

        `f(q)` takes an array and returns one; `f(q, out=array)` writes it there. Of `what`:

        - "inverse_dynamics": q (order + 3, n) -> torques (order + 1, n). A robot with loops goes on from the
          positions of its last success, and one that is moved by a platform takes no q where no joint is a
          coordinate.
        - "forward_dynamics": state (2, n), torques (order + 1, n) -> accelerations (order + 1, n).
        - "forward_kinematics": q (order + 1, n) -> (frames, 16 + 6 order): the pose of each frame by rows,
          then its twist and the derivatives of that. `frames`: bodies and named frames, by default all
          bodies; `representation` of the twists.
        - "jacobian": q (order + 1, n) -> ((order + 1) 6, m), one order after the other, of the one frame that
          `frames` names, by default the last body; takes velocities to its twist in `representation`.
        - "com", "mass_matrix", "gravity_torque": q (order + 1, n), "coriolis_matrix": q (order + 2, n),
          "regressor": q (order + 3, n) -> the rows of what the calls of that name return.

        With a floating base q is followed by its pose (4, 4) and as many twists (order + 2 or less, 6) as q
        has rows beyond the first, in the world frame, those of matrices and regressors body-fixed; forward
        dynamics takes its twist (1, 6) and the wrench on it (order + 1, 6) instead. Six columns of the base
        then stand before those of the joints: the wrench on it, or the derivatives of its twist.

        For C-contiguous float64 arrays everything is checked in compiled code; others are converted or
        refused with InputError. Compiling takes a fraction of a second; the next process finds the machine
        code on disk.
        """
        if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
            raise InputError(f"the order must be 0 or a positive integer, found {order!r}")
        _check_order(int(order), "the order is")
        order = int(order)
        check_representation(representation)
        if what not in get_args(Compiled):
            raise InputError(f"there is no {what!r} to compile; choose one of {list(get_args(Compiled))}")
        if frames is not None and what not in ("forward_kinematics", "jacobian"):
            raise InputError(f"{what} has no frames; leave them out")
        if what == "inverse_dynamics" and self._looped is not None:
            return self._looped.compile(order)
        base: Frame | None = "world" if self.model.floating_base else None
        if what in ("inverse_dynamics", "forward_dynamics"):
            kind: Literal["inverse", "hybrid"] = "inverse" if what == "inverse_dynamics" else "hybrid"
            return self._kernel(kind, order, kernels.Setting(base=base)).function
        names: tuple[str | int, ...] = self.model.body_names
        if frames is not None:
            names = tuple(frames)
        elif what == "jacobian":
            names = names[-1:]
        if what == "forward_kinematics":
            kernel = self._frame_kernel(order, names, representation)
        elif what == "jacobian":
            if len(names) != 1:
                raise InputError(f"a Jacobian is of one frame; found {list(names)}")
            kernel = self._jacobian_kernel(order, names[0], representation)
        else:
            kernel = self._kernel_of(what, order)
        if kernel is None:
            raise InputError(
                f"robot {self.name!r} is too large to compile {what} of order {order} in seconds; the call "
                f"robot.{what}(...) computes it"
            )
        return kernel.function

    @overload
    def forward_dynamics(
        self,
        state: ArrayLike,
        torques: ArrayLike,
        base: None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array: ...

    @overload
    def forward_dynamics(
        self,
        state: ArrayLike,
        torques: ArrayLike,
        base: BaseMotion,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> tuple[Array, Array]: ...

    def forward_dynamics(
        self,
        state: ArrayLike,
        torques: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array | tuple[Array, Array]:
        """Compute accelerations and their time derivatives from a state, the torques and their derivatives.

        `state` (2, n) positions and velocities; `torques` (order + 1, n). Of a floating base, `base` gives
        pose and twist, `base_wrench` (order + 1, 6) what acts on it in the world frame, by default nothing.
        `wrenches` that the environment applies to bodies.

        Returns joint accelerations up to their derivative `order`, (order + 1, n) [rad/s^(k+2) or m/s^(k+2)];
        with a floating base a pair, followed by the derivatives 1 to order + 1 of its twist, (order + 1, 6),
        in the frame of `base`. Ali et al., Algorithm 3. High orders amplify rounding in the torques: see
        `docs/dynamics.md`. Raises InputError saying what was expected.
        """
        if base is None and wrenches is None and type(state) is np.ndarray and type(torques) is np.ndarray:
            compiled = self._forward.get((state.shape, torques.shape))
            if compiled is not None and base_wrench is None:
                accelerations: Array = compiled(state, torques)
                return accelerations
        if self._looped is not None:
            return self._looped_forward(state, torques, base, base_wrench, wrenches)
        found = self._hybrid(state, torques, base, base_wrench, wrenches, (), False)
        if base is None:
            if wrenches is None and not self._massless:
                n, order = self.n_joints, len(found) - 1
                kernel = self._kernel("hybrid", order, kernels.Setting())
                self._forward[(2, n), (order + 1, n)] = kernel.function
            return found
        of_base, joints = _split(found)
        return joints, of_base

    def hybrid_dynamics(
        self,
        state: ArrayLike,
        given: ArrayLike,
        prescribed: Sequence[str | int],
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        prescribe_base: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Compute what is not given where some joints are moved and others are driven.

        `state` (2, n) positions and velocities; `prescribed`: names or indices of the joints whose motion is
        given; `given` (order + 1, n): for those the acceleration and its derivatives, for the others the
        torque and its derivatives. Of a floating base either the wrench is given, as in `forward_dynamics`,
        or with `prescribe_base=True` its motion, as in `inverse_dynamics` with order + 2 twists.

        Returns (order + 1, n): torques of the prescribed joints, accelerations of the others; with a floating
        base a pair, followed by the derivatives 1 to order + 1 of its twist in the frame of `base` or, where
        its motion is prescribed, by the base wrench in the world frame, (order + 1, 6). Ali et al., Algorithm
        4. Raises InputError saying what was expected.
        """
        if isinstance(prescribed, str) or not isinstance(prescribed, Iterable):
            raise InputError(f"prescribed must be a list of names or indices of joints, found {prescribed!r}")
        moved = tuple(sorted({self.model.joint_index(joint) for joint in prescribed}))
        if prescribe_base and base_wrench is not None:
            raise InputError("give either the motion of the base or its wrench, not both")
        found = self._hybrid(state, given, base, base_wrench, wrenches, moved, prescribe_base)
        if base is None:
            return found
        of_base, joints = _split(found)
        return joints, of_base

    def drive_state(
        self,
        q: ArrayLike | None = None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> DriveState:
        """Compute the motion of the driven joints and their efforts, one sample, compiled where it can be.

        Arguments and errors as in `inverse_dynamics`. Without couplings and loops the motion is that given.
        """
        if self._looped is None:
            motion = np.asarray(q, dtype=np.float64)
            if base is None:
                return DriveState(motion, self.inverse_dynamics(motion, wrenches=wrenches), None, False)
            wrench, efforts = self.inverse_dynamics(motion, base, wrenches)
            return DriveState(motion, efforts, wrench, False)
        looped, loads = self._looped, self._loads(wrenches)
        y, given = coordinate_motion(looped.closure, q, base, 2)
        order, first = len(y) - 3, 6 if looped.closure.base_given else 0
        table = looped.drive_table(y, given, loads)
        check_result(table[:-2])
        return DriveState(
            np.ascontiguousarray(table[order + 1 : -2, first:]),
            np.ascontiguousarray(table[: order + 1, first:]),
            np.ascontiguousarray(table[: order + 1, :6]) if first else None,
            looped.is_near_singular(order, table),
        )

    @finite_result
    def solve(
        self,
        q: ArrayLike | None = None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        preload: ArrayLike | None = None,
    ) -> LoopSolution:
        """Compute everything that moves and holds a robot with couplings or loops.

        Arguments as in `inverse_dynamics`, one sample; `preload` (driven,) or (order + 1, driven): what the
        efforts should come near, where there are more drives than coordinates. Positions are found from those
        of the last call that succeeded, which keeps the branch; `reset` starts from the zero configuration
        again. Raises ConvergenceError naming the loop that cannot be closed, SingularError naming the loops
        at a singular pose, InputError saying what was expected.
        """
        looped = self._need_loops("solve")
        y, given = coordinate_motion(looped.closure, q, base, 2)
        preloaded = preload_rows(looped.closure, preload, len(y) - 3)
        return looped.solve(y, given, self._loads(wrenches), preloaded)

    def reset(self, positions: ArrayLike | None = None) -> None:
        """Find positions of a robot with loops from the zero configuration again, on its branch.

        Or from `positions` (N,) that `positions` was before.
        """
        looped = self._need_loops("reset")
        if positions is None:
            looped.known = home(looped.closure)
        else:
            looped.memory[0] = finite_array("the positions", positions, looped.memory.shape[1:])

    def _need_loops(self, what: str) -> LoopedDynamics:
        if self._looped is None:
            raise InputError(f"{what} is for robots with couplings or loops; {self._tree.name!r} has none")
        return self._looped

    @finite_result
    def _looped_forward(
        self,
        state: ArrayLike,
        efforts: ArrayLike,
        base: BaseMotion | None,
        base_wrench: ArrayLike | None,
        wrenches: Sequence[AppliedWrench] | None,
    ) -> Array | tuple[Array, Array]:
        looped = self._need_loops("this")
        y, given = coordinate_motion(looped.closure, state, base, 1)
        u = drive_rows(looped.closure, efforts, base_wrench)
        joints, twists = looped.forward_dynamics(y[:2], u, given, self._loads(wrenches))
        if base is None or twists is None:
            return joints
        if base.frame == "body":
            twists = twists_to_body(base.pose, twists)
        return joints, np.ascontiguousarray(twists[1:])

    @finite_result
    def _looped_inverse(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] | None,
        formulation: str | None,
    ) -> Array | tuple[Array, Array]:
        looped = self._need_loops("this")
        if formulation is not None:
            raise InputError(f"robots with loops have no formulation {formulation!r}; leave it out")
        closure, loads = looped.closure, self._loads(wrenches)
        if q is not None and np.ndim(q) == 3:
            checked = [coordinate_motion(closure, stack, base, 2) for stack in np.asarray(q)]
            if not checked:
                raise InputError("a batch holds one sample or more, found none")
            y, given = np.array([one for one, _ in checked]), checked[0][1]
        else:
            y, given = coordinate_motion(closure, q, base, 2)
        order = y.shape[-2] - 3
        if looped.only_coupled and (y.ndim == 3 or not compiles(closure, order)):
            found = looped.follow(y, given, loads)
        elif y.ndim == 3:
            found = np.array([looped.efforts(one, given, loads) for one in y])
        else:
            found = looped.efforts(y, given, loads)
            if not loads:
                self._keep_compiled(looped, order)
        check_result(found)
        return _split(found) if closure.base_given else found

    def _keep_compiled(self, looped: LoopedDynamics, order: int) -> None:
        """Let further calls of an order, with arrays and a spatial base motion that fits, find their code."""
        shape = order + 3, len(looped.closure.joints)
        compiled, split = looped.compile(order), looped.closure.base_given
        if looped.closure.leader is None:
            self._compiled[shape] = compiled
            return

        def with_base(q: ArrayLike | None, base: BaseMotion) -> Array | tuple[Array, Array] | None:
            if type(q) is not np.ndarray or q.shape != shape:
                return None
            table = compiled(q, base.pose, base.twists)
            return (table[:, :6].copy(), table[:, 6:].copy()) if split else table

        def of_a_platform(q: ArrayLike | None, base: BaseMotion) -> Array | None:
            return compiled(base.pose, base.twists) if q is None else None

        self._compiled_with_base[order + 2, 6] = with_base if shape[1] else of_a_platform

    @cached_property
    def _of_the_tree(self) -> TreeMatrices:
        return TreeMatrices(self._tree, self.frames)

    def _dynamic_matrices_of_loops(
        self, q: ArrayLike, base: BaseMotion | None, rates: int
    ) -> DynamicMatrices | None:
        if self._looped is None:
            return None
        y, given = coordinate_motion(self._looped.closure, q, base, rates)
        return looped_matrices(self._looped, self._of_the_tree, y, given, rates)

    def _of_loops(self, name: str, q: ArrayLike, base: BaseMotion | None, *others: Any) -> Array | None:
        if self._looped is None or name not in _OF_LOOPS:
            return None
        return self._computed_of_loops(self._looped, name, q, base, *others)

    @finite_result
    def _computed_of_loops(
        self, looped: LoopedDynamics, name: str, q: ArrayLike, base: BaseMotion | None, *others: Any
    ) -> Array:
        if name in ("com", "jacobian"):
            y, given = coordinate_motion(looped.closure, q, base, 0)
            if name == "com":
                return self._of_the_tree.com(*looped.joint_motion(y, given))
            return looped_jacobian(looped, self._of_the_tree, y, given, *others)
        rates = 1 if name == "coriolis_matrix" else 0
        y, given = coordinate_motion(looped.closure, q, base, rates)
        found = looped_matrices(looped, self._of_the_tree, y, given, rates)
        parts = {"mass_matrix": found.mass, "coriolis_matrix": found.coriolis}
        return parts.get(name, found.gravity)

    def _accelerations(self, state: Array, torques: Array, base: BaseMotion | None) -> Array:
        return self._hybrid(state, torques[None], base, None, None, (), False)[0]

    def _hybrid(
        self,
        state: ArrayLike,
        given: ArrayLike,
        base: BaseMotion | None,
        base_wrench: ArrayLike | None,
        wrenches: Sequence[AppliedWrench] | None,
        prescribed: tuple[int, ...],
        prescribe_base: bool,
    ) -> Array:
        n = self.n_joints
        values = real_array("the torques", given, f"(order + 1, {n})")
        if values.ndim != 2 or values.shape[1] != n or not len(values):
            raise InputError(f"the torques must have shape (order + 1, {n}), found {values.shape}")
        order = len(values) - 1
        _check_order(order, f"torques of shape {values.shape} have order")
        motion = fitting_base(self.model, base, order + 2 if prescribe_base else 1)
        loads = self._loads(wrenches)
        others: list[ArrayLike] = []
        if motion is not None:
            wrench = np.zeros((order + 1, 6)) if base_wrench is None else base_wrench
            twists = motion.twists
            others = [motion.pose, twists[:1], twists[1 : order + 2] if prescribe_base else wrench]
        elif base_wrench is not None or prescribe_base:
            raise InputError(
                f"robot {self.model.name!r} stands on the ground; it has no base to move or push"
            )
        setting = kernels.Setting(
            base=motion.frame if motion else None,
            loads=_load_places(self.model, loads),
            prescribed=prescribed,
            base_prescribed=prescribe_base,
        )
        function = self._kernel("hybrid", order, setting).function
        if self._massless:
            positions, _ = finite_array("the state", state, (2, n))
            check_pose(self.model, self._massless, positions, prescribed)
        found = function(state, values, *others, *[load.up_to(order) for load in loads])
        check_result(found)
        return found

    def _by_formulation(
        self,
        name: str,
        motion: Array,
        base: BaseMotion | None,
        loads: Sequence[AppliedWrench],
    ) -> Array | tuple[Array, Array]:
        if not isinstance(name, str) or name not in INVERSE_DYNAMICS:
            raise InputError(f"there is no formulation {name!r}; choose one of {sorted(INVERSE_DYNAMICS)}")
        check_finite("the motion", motion)
        formulation = INVERSE_DYNAMICS[name]
        with np.errstate(over="ignore", invalid="ignore"):
            torques, ground = formulation(self.model, np.moveaxis(motion, -2, 0), base, loads)
        check_result(torques, *(() if base is None else (ground,)))
        torques = np.ascontiguousarray(np.moveaxis(torques, 0, -2))
        return torques if base is None else (np.ascontiguousarray(np.moveaxis(ground, 0, -2)), torques)

    def _inverse_kernel(
        self, order: int, base: BaseMotion | None, loads: Sequence[AppliedWrench]
    ) -> Function:
        setting = kernels.Setting(base=base.frame if base else None, loads=_load_places(self.model, loads))
        kernel = self._kernel("inverse", order, setting)
        if setting == kernels.Setting():
            self._compiled[order + 3, self.n_joints] = kernel.function
        return kernel

    def _kernel(self, what: Literal["inverse", "hybrid"], order: int, setting: kernels.Setting) -> Function:
        key = (what, order, setting)
        if key not in self._kernels:
            if len(self._kernels) >= _KEPT:
                del self._kernels[next(iter(self._kernels))]
            build = kernels.inverse_dynamics if what == "inverse" else kernels.hybrid_dynamics
            self._kernels[key] = build(self.model, order, setting)
        return self._kernels[key]

    def _loads(self, wrenches: Sequence[AppliedWrench] | AppliedWrench | None) -> tuple[AppliedWrench, ...]:
        if wrenches is None:
            return ()
        if isinstance(wrenches, AppliedWrench):
            return (wrenches,)
        given: object = wrenches
        if not isinstance(given, (list, tuple)):
            raise InputError(f"wrenches must be a list of AppliedWrench, found {type(given).__name__}")
        for found in given:
            if not isinstance(found, AppliedWrench):
                raise InputError(
                    f"wrenches must be a list of AppliedWrench, found {type(found).__name__} in it"
                )
            named = isinstance(found.body, str) and found.body not in self._tree.body_names
            frame = self.frames.get(str(found.body)) if named else None
            if frame is not None and frame.body >= 0:
                carrier = self._tree.body_names[frame.body]
                raise InputError(
                    f"{found.body!r} is a frame fixed to body {carrier!r}; give the wrench on that body, in "
                    "its frame or in the world"
                )
        return tuple(wrenches)

    def _motion(self, q: ArrayLike) -> Array:
        n = self.n_joints
        shapes = f"(order + 3, {n}) or (N, order + 3, {n})"
        motion = real_array("the motion", q, shapes)
        if motion.ndim not in (2, 3) or motion.shape[-1] != n or motion.shape[-2] < 3:
            raise InputError(
                f"the motion must have shape {shapes}: positions, velocities and accelerations at least; "
                f"found {motion.shape}"
            )
        _check_order(motion.shape[-2] - 3, f"a motion of shape {motion.shape} has order")
        return motion


def _specs(drives: Drives | None, specs: Sequence[DriveSpec] | None) -> tuple[DriveSpec, ...] | None:
    if drives is None:
        return None
    if specs is None:
        return tuple(DriveSpec(float(k), float(b)) for k, b in zip(drives.stiffness, drives.motor_inertia))
    return tuple(specs)


def _names(tree: TreeModel, joints: Sequence[int]) -> tuple[str, ...]:
    return tuple(tree.joint_names[joint] for joint in joints)


def _check_order(order: int, found: str) -> None:
    """Refuse what would take minutes to compile, and is most likely samples where derivatives belong."""
    if order > _HIGHEST_ORDER:
        raise InputError(
            f"{found} {order}, and {_HIGHEST_ORDER} is the highest there is; the samples of a batch stand "
            "before the derivatives: (N, order + 3, n)"
        )


def _load_places(model: TreeModel, loads: Sequence[AppliedWrench]) -> tuple[tuple[int, Frame], ...]:
    return tuple((model.body_index(load.body), load.frame) for load in loads)


def _split(efforts: Array) -> tuple[Array, Array]:
    """Split what a kernel returns for a floating base into the base's columns and those of the joints."""
    return np.ascontiguousarray(efforts[..., :6]), np.ascontiguousarray(efforts[..., 6:])
