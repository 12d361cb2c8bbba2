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
from hodyn_ros.dynamics.floating_base import fitting_base
from hodyn_ros.dynamics.kinematics.forward_kinematics import (
    Kinematics,
    checked_motion,
    forward_kinematics,
    unpacked,
)
from hodyn_ros.dynamics.kinematics.inverse_kinematics import Method, inverse_kinematics
from hodyn_ros.dynamics.kinematics.pose_solver import Task
from hodyn_ros.dynamics.loops.closing import assembled, home
from hodyn_ros.dynamics.loops.coordinate_motion import (
    coordinate_motion,
    drive_rows,
    drive_values,
    given_base,
    preload_rows,
)
from hodyn_ros.dynamics.loops.looped import LoopedDynamics, LoopSolution, into
from hodyn_ros.dynamics.loops.looped_matrices import (
    TreeMatrices,
    looped_drive_jacobian,
    looped_jacobian,
    looped_matrices,
    looped_regressor,
)
from hodyn_ros.dynamics.loops.looped_partials import forward_dynamics_partials, inverse_dynamics_partials
from hodyn_ros.dynamics.matrices import DynamicMatrices
from hodyn_ros.dynamics.matrix_calls import MatrixCalls
from hodyn_ros.dynamics.mjcf_robot import build_mjcf
from hodyn_ros.dynamics.mobility import check_mobility, check_pose
from hodyn_ros.dynamics.motion_stack import given as given_motion
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.dynamics.partials import LinearisedDynamics
from hodyn_ros.engine import kernels
from hodyn_ros.engine.codegen.kernel import Function
from hodyn_ros.engine.loops.loop_kernel import compiles
from hodyn_ros.engine.loops.loop_matrices import Part
from hodyn_ros.engine.recursions.kinematics import frame_motion
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, Frame, twists_to_body
from hodyn_ros.lie.representations import Representation, check_representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.arrays import unique_names
from hodyn_ros.model.closure import TOLERANCE, Closure, Coordinate, Named
from hodyn_ros.model.composite_joints import CompositeJoint, unfold_arrays
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.drives import Drives, counted, drives_in_words
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.parallel.config import is_parallel, read_parallel_config
from hodyn_ros.model.readers.assembly import Frame as NamedFrame
from hodyn_ros.model.readers.config import read_config
from hodyn_ros.model.readers.mjcf import read_mjcf
from hodyn_ros.model.readers.urdf import read_urdf_assembly
from hodyn_ros.model.tree import TreeModel

_HIGHEST_ORDER = 30
_KEPT = 100  # kernels of a robot; one that walks meets many sets of contacts


_PARTS: dict[str, Part] = {"mass_matrix": "mass", "coriolis_matrix": "coriolis", "gravity_torque": "gravity"}
_OF_LOOPS = (*_PARTS, "com", "jacobian", "regressor", "inverse_dynamics_derivatives")

Compiled = Literal[
    "inverse_dynamics",
    "drive_state",
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
        self._kernels: dict[tuple[str, int, kernels.KernelSpec], Function] = {}
        self._forward: dict[Any, Callable[..., Array]] = {}  # forward dynamics by shapes
        self._forward_with_base: dict[tuple[int, ...], Callable[..., tuple[Array, Array]]] = {}
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
    def platform(self) -> str | None:
        """The name of the body whose pose is a coordinate; None where all coordinates are joints."""
        closure = self.closure
        if closure is None or closure.platform is None:
            return None
        return closure.tree.body_names[closure.platform.body]

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

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code; those of some loops are not."""
        return self._looped is None or self._looped.is_compiled(order)

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
        says of loops. `hodyn_ros.model.readers.mjcf` says how bodies, joints and frames are called.
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
        config = (read_parallel_config if is_parallel(path) else read_config)(path, gravity)
        try:
            closure = config.closure
            return cls(
                config.model,
                config.limits,
                config.drives,
                config.frames,
                config.drive_specs,
                closure if closure is None or closure.start is None else assembled(closure),
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
        home: Mapping[str, float] | None = None,
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
        are by default the coordinates. `home`: positions by joint near which loops are closed, instead of
        zero, at which they are then only described; where exactly is found. `tolerance`: rows of loops whose
        singular values are smaller, relative to the largest, count as redundant. `docs/loops.md` explains
        them. Raises ModelError naming the body, joint, loop or coordinate at fault.
        """
        closes = bool(loops or couplings or home) or coordinates is not None or driven is not None
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
        closure = Closure.build(model, loops, couplings, coordinates, driven, tolerance=tolerance, home=home)
        return cls(model, closure=closure if home is None else assembled(closure))

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
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        representation: Representation = "spatial",
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
        self, q: ArrayLike | None, base: BaseMotion | None, representation: Representation
    ) -> Kinematics:
        if self._looped is not None:
            check_representation(representation)
            q, base = self._looped.joint_motion(*coordinate_motion(self._looped.closure, q, base, 0))
        tree = self._tree
        stack, moving = checked_motion(tree, given_motion(q), base, representation)
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
        and remark 2. The choices are explained at `hodyn_ros.dynamics.kinematics.inverse_kinematics`.

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
        q: None,
        base: BaseMotion,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
        *,
        preload: ArrayLike | None = None,
    ) -> Array: ...

    @overload
    def inverse_dynamics(
        self,
        q: ArrayLike,
        base: None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
        *,
        preload: ArrayLike | None = None,
    ) -> Array: ...

    @overload
    def inverse_dynamics(
        self,
        q: ArrayLike,
        base: BaseMotion,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
        *,
        preload: ArrayLike | None = None,
    ) -> tuple[Array, Array]: ...

    def inverse_dynamics(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
        *,
        preload: ArrayLike | None = None,
    ) -> Array | tuple[Array, Array]:
        """Compute joint torques and their time derivatives from a motion and its derivatives.

        `q` (order + 3, n): positions and their derivatives [rad or m, /s^k]; a batch is (N, order + 3, n).
        `base`: the motion of a floating base with order + 2 twists. `wrenches` that the environment applies
        to bodies. `formulation`: "spatial", "body_fixed", "hybrid" or "closed_form" as published; by default
        the compiled engine. `preload` (driven,) or (order + 1, driven): what the efforts should come near,
        where there are more drives than coordinates; by default they are those of least norm.

        Returns torques (order + 1, n) [N.m/s^k or N/s^k], or (N, order + 1, n) for a batch; with a floating
        base the pair (base wrench (order + 1, 6) in the world frame, torques). Raises InputError saying what
        was expected.
        """
        if wrenches is None and formulation is None and preload is None:
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
            return self._looped_inverse(q, base, wrenches, formulation, preload)
        if preload is not None:
            raise self._no_preload()
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
        - "drive_state", of a robot with couplings or loops: the same -> (2 order + 4, n): the efforts, then
          the motion of the driven joints up to derivative order + 2.
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
        then stand before those of the joints: the wrench on it, or the derivatives of its twist. Robots with
        loops take all twists in the world frame, the wrench on a base whose motion else is prescribed after
        the torques, and motions of platforms as those of bases; matrices are in the coordinates.

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
        if what == "drive_state":
            return self._need_loops("drive_state").compile(order, drives=True)
        if self._looped is not None:
            return self._compiled_of_loops(self._looped, order, what, frames, representation)
        base: Frame | None = "world" if self.model.floating_base else None
        if what in ("inverse_dynamics", "forward_dynamics"):
            kind: Literal["inverse", "hybrid"] = "inverse" if what == "inverse_dynamics" else "hybrid"
            return self._kernel(kind, order, kernels.KernelSpec(base=base)).function
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
        state: ArrayLike | None,
        torques: ArrayLike,
        base: None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array: ...

    @overload
    def forward_dynamics(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> tuple[Array, Array]: ...

    def forward_dynamics(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array | tuple[Array, Array]:
        """Compute accelerations and their time derivatives from a state, the torques and their derivatives.

        `state` (2, n) positions and velocities, None where no joint is a coordinate; `torques` (order + 1,
        n), of robots with loops those of the driven joints. Of a floating base or platform, `base` gives pose
        and twist, `base_wrench` (order + 1, 6) what acts on a floating base in the world frame, by default
        nothing. `wrenches` that the environment applies to bodies.

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
            if wrenches is None and type(base) is BaseMotion and base.frame == "world":
                with_base = self._forward_with_base.get(np.shape(torques))
                if with_base is not None:
                    return with_base(state, torques, base, base_wrench)
            return self._looped_forward(state, torques, base, base_wrench, wrenches)
        found = self._hybrid(given_motion(state), torques, base, base_wrench, wrenches, (), False)
        if base is None:
            if wrenches is None and not self._massless:
                n, order = self.n_joints, len(found) - 1
                kernel = self._kernel("hybrid", order, kernels.KernelSpec())
                self._forward[(2, n), (order + 1, n)] = kernel.function
            return found
        of_base, joints = _split(found)
        return joints, of_base

    def hybrid_dynamics(
        self,
        state: ArrayLike | None,
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

        Of a robot with loops `state` is that of the coordinates, as in `forward_dynamics`, and all else is of
        the driven joints: those prescribed, what is given, and what comes back. SingularError where the
        joints prescribed cannot all be moved freely.
        """
        if isinstance(prescribed, str) or not isinstance(prescribed, Iterable):
            raise InputError(f"prescribed must be a list of names or indices of joints, found {prescribed!r}")
        if prescribe_base and base_wrench is not None:
            raise InputError("give either the motion of the base or its wrench, not both")
        if self._looped is not None:
            return self._looped_hybrid(state, given, prescribed, base, base_wrench, wrenches, prescribe_base)
        moved = tuple(sorted({self.model.joint_index(joint) for joint in prescribed}))
        found = self._hybrid(given_motion(state), given, base, base_wrench, wrenches, moved, prescribe_base)
        if base is None:
            return found
        of_base, joints = _split(found)
        return joints, of_base

    def drive_state(
        self,
        q: ArrayLike | None = None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        preload: ArrayLike | None = None,
    ) -> DriveState:
        """Compute the motion of the driven joints and their efforts, one sample, compiled where it can be.

        Arguments and errors as in `inverse_dynamics`. Without couplings and loops the motion is that given.
        """
        if self._looped is None:
            if preload is not None:
                raise self._no_preload()
            motion = np.asarray(q, dtype=np.float64)
            if base is None:
                return DriveState(motion, self.inverse_dynamics(motion, wrenches=wrenches), None, False)
            wrench, efforts = self.inverse_dynamics(motion, base, wrenches)
            return DriveState(motion, efforts, wrench, False)
        looped, loads = self._looped, self._loads(wrenches)
        y, given = coordinate_motion(looped.closure, q, base, 2)
        order, first = len(y) - 3, 6 if looped.closure.base_given else 0
        preloaded = preload_rows(looped.closure, preload, order)
        table = looped.drive_table(y, given, loads, preloaded)
        check_result(table[:-2])
        return DriveState(
            np.ascontiguousarray(table[order + 1 : -2, first:]),
            np.ascontiguousarray(table[: order + 1, first:]),
            np.ascontiguousarray(table[: order + 1, :6]) if first else None,
            looped.is_near_singular(order, table, loads, preloaded is not None),
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

        Arguments as in `inverse_dynamics`, one sample. Positions are found from those of the last call that
        succeeded, which keeps the branch; `reset` starts from the zero configuration
        again. Raises ConvergenceError naming the loop that cannot be closed, SingularError naming the loops
        at a singular pose, InputError saying what was expected.
        """
        looped = self._need_loops("solve")
        y, given = coordinate_motion(looped.closure, q, base, 2)
        preloaded = preload_rows(looped.closure, preload, len(y) - 3)
        return looped.solve(y, given, self._loads(wrenches), preloaded)

    @finite_result
    def joint_motion(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the motion (order + 1, joints) of all joints of the tree from that of the coordinates.

        `q` (order + 1, k), None where no joint is a coordinate; `base`: the motion of base or platform with
        `order` twists. `tree.joint_names` has their order. Errors as of `solve`.
        """
        if self._looped is None:
            return checked_motion(self._tree, given_motion(q), base, "spatial")[0]
        return self._looped.joint_motion(*coordinate_motion(self._looped.closure, q, base, 0))[0]

    @finite_result
    def drive_jacobian(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute what the driven joints move by the coordinates, (order + 1, driven, coordinates).

        `J` with `q_a' = J y'`, and its time derivatives; `J^T u` is what the drives do to the coordinates.
        The rows y' of a platform are components of its body-fixed twist, those of a prescribed base its
        body-fixed twist: `J_IK` of Mueller et al., eq. 9. Arguments and errors as of `joint_motion`.
        """
        looped = self._need_loops("drive_jacobian")
        y, given = coordinate_motion(looped.closure, q, base, 0)
        return looped_drive_jacobian(looped, y, given)

    @finite_result
    def motion_from_drives(
        self, drives: ArrayLike, base: BaseMotion | None = None
    ) -> tuple[Array, BaseMotion | None]:
        """Find the motion of the coordinates from that of the driven joints, of a robot with loops.

        `drives` (driven,) or (orders + 1, driven): positions and their derivatives; `base`: the motion of a
        prescribed base, of as many orders. Returns q (orders + 1, k), and the motion of a platform with
        spatial twists, else None. Found from the last success, which selects the assembly mode. Raises
        ConvergenceError, SingularError, and InputError where redundant drives contradict each other.
        """
        looped = self._need_loops("motion_from_drives")
        rows = drive_values("the motion of the drives", looped.closure, drives)
        given = None
        if looped.closure.base_given or base is not None:
            given = given_base(looped.closure, base, len(rows) - 1)
        return looped.move_drives(rows, given)

    def reset(self, positions: ArrayLike | None = None) -> None:
        """Find positions of a robot with loops from the zero configuration again, on its branch.

        Or from `positions` (N,) that `positions` was before. Or near positions of the joints that no linear
        coupling moves, in the order of the tree, which select another branch; a pose given stays the last.
        """
        looped = self._need_loops("reset")
        n = len(looped.closure.leading)
        if positions is None:
            looped.known = home(looped.closure)
        elif np.shape(positions) == (n,):
            looped.memory[0, :n] = finite_array("the positions", positions, (n,))
        else:
            looped.memory[0] = finite_array("the positions", positions, looped.memory.shape[1:])

    def _no_preload(self) -> InputError:
        return InputError(f"a preload needs more drives than coordinates; robot {self.name!r} has as many")

    def _need_loops(self, what: str) -> LoopedDynamics:
        if self._looped is None:
            raise InputError(f"{what} is for robots with couplings or loops; {self._tree.name!r} has none")
        return self._looped

    @finite_result
    def _looped_forward(
        self,
        state: ArrayLike | None,
        efforts: ArrayLike,
        base: BaseMotion | None,
        base_wrench: ArrayLike | None,
        wrenches: Sequence[AppliedWrench] | None,
    ) -> Array | tuple[Array, Array]:
        looped = self._need_loops("this")
        y, given = coordinate_motion(looped.closure, state, base, 1)
        u = drive_rows(looped.closure, efforts, base_wrench)
        table = looped.accelerations(y, u, given, self._loads(wrenches))
        if wrenches is None:
            self._keep_forward(looped, len(u) - 1)
        if given is None or base is None:
            return table
        twists, joints = _split(table)
        if base.frame == "body":
            whole = np.concatenate([given.twists[:1], twists])
            twists = np.ascontiguousarray(twists_to_body(base.pose, whole)[1:])
        return joints, twists

    def _keep_forward(self, looped: LoopedDynamics, order: int) -> None:
        """Let further calls of an order, with arrays and a spatial base motion, find their code."""
        closure, call = looped.closure, looped.forward_call(order)
        given, still = (2, len(closure.joints)), np.zeros((order + 1, 6))
        efforts = order + 1, len(closure.driven)
        if closure.leader is None:
            self._forward[given, efforts] = call
            return

        def with_base(
            state: ArrayLike, torques: ArrayLike, base: BaseMotion, base_wrench: ArrayLike | None
        ) -> tuple[Array, Array]:
            if np.shape(state) != given or (base_wrench is not None and not closure.base_given):
                found = self._looped_forward(state, torques, base, base_wrench, None)
                return found[0], found[1]
            push = [still if base_wrench is None else base_wrench] if closure.base_given else []
            table = call(state, base.pose, base.twists[:1], torques, *push)
            return table[:, 6:].copy(), table[:, :6].copy()

        self._forward_with_base[efforts] = with_base

    @finite_result
    def _looped_hybrid(
        self,
        state: ArrayLike | None,
        given: ArrayLike,
        prescribed: Iterable[str | int],
        base: BaseMotion | None,
        base_wrench: ArrayLike | None,
        wrenches: Sequence[AppliedWrench] | None,
        prescribe_base: bool,
    ) -> Array | tuple[Array, Array]:
        looped = self._need_loops("this")
        closure, first = looped.closure, 6 if looped.closure.base_given else 0
        if prescribe_base and not first:
            raise InputError(f"robot {self.name!r} has no base to prescribe; name driven joints")
        y, motion = coordinate_motion(closure, state, base, 1)
        values = drive_rows(closure, given, base_wrench)
        moved = [first + self._driven_place(joint) for joint in prescribed]
        if prescribe_base and motion is not None:
            if len(motion.twists) < len(values) + 1:
                raise InputError(f"this needs {len(values) + 1} base twists, found {len(motion.twists)}")
            values[:, :6] = motion.twists[1 : len(values) + 1]
            moved += range(6)
        found, twists = looped.hybrid_dynamics(
            y[:2], values, sorted(set(moved)), motion, self._loads(wrenches)
        )
        joints = np.ascontiguousarray(found[:, first:])
        if base is None or twists is None:
            return joints
        if prescribe_base:
            return joints, np.ascontiguousarray(found[:, :6])
        if base.frame == "body":
            twists = twists_to_body(base.pose, twists)
        return joints, np.ascontiguousarray(twists[1:])

    def _driven_place(self, joint: str | int) -> int:
        """Return where a joint, by name or by its index among the driven ones, stands among these."""
        names = self.driven_joints
        if isinstance(joint, str) and joint in names:
            return names.index(joint)
        if isinstance(joint, (int, np.integer)) and not isinstance(joint, bool) and 0 <= joint < len(names):
            return int(joint)
        raise InputError(f"prescribed names {joint!r}; the driven joints of {self.name!r} are {list(names)}")

    @finite_result
    def _looped_inverse(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] | None,
        formulation: str | None,
        preload: ArrayLike | None,
    ) -> Array | tuple[Array, Array]:
        looped = self._need_loops("this")
        closure, loads = looped.closure, self._loads(wrenches)
        if formulation is not None:
            if formulation != "limb_decomposition":
                raise InputError(
                    f"robots with loops have no formulation {formulation!r}; leave it out, or choose "
                    "'limb_decomposition' for a platform on limbs"
                )
            y, given = coordinate_motion(closure, q, base, 2)
            if given is None:
                raise InputError(f"robot {self.name!r} has no platform for 'limb_decomposition'")
            shortened = BaseMotion(given.pose, given.twists[: len(y) - 1])
            return looped.by_limbs(shortened, loads, preload_rows(closure, preload, len(y) - 3))
        if q is not None and np.ndim(q) == 3:
            checked = [coordinate_motion(closure, stack, base, 2) for stack in np.asarray(q)]
            if not checked:
                raise InputError("a batch holds one sample or more, found none")
            y, given = np.array([one for one, _ in checked]), checked[0][1]
        else:
            y, given = coordinate_motion(closure, q, base, 2)
        order = y.shape[-2] - 3
        preloaded = preload_rows(closure, preload, order)
        if looped.only_coupled and (y.ndim == 3 or not compiles(closure, order)):
            found = looped.follow(y, given, loads)
        elif y.ndim == 3:
            found = np.array([looped.efforts(one, given, loads, preloaded) for one in y])
        else:
            found = looped.efforts(y, given, loads, preloaded)
            if not loads and preload is None:
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

    def _compiled_of_loops(
        self,
        looped: LoopedDynamics,
        order: int,
        what: Compiled,
        frames: Sequence[str | int] | None,
        representation: Representation,
    ) -> Callable[..., Array]:
        if what == "inverse_dynamics":
            return looped.compile(order)
        if what == "forward_dynamics":
            return into(looped.forward_call(order))
        names = tuple(frames) if frames is not None else self._tree.body_names
        names = names if frames is not None or what != "jacobian" else names[-1:]
        if what == "jacobian" and len(names) != 1:
            raise InputError(f"a Jacobian is of one frame; found {list(names)}")

        n_given, rows = 0 if looped.closure.leader is None else 2, order + 1
        rows += {"coriolis_matrix": 1, "regressor": 2}.get(what, 0)

        def compute(*arguments: Array) -> Array:
            if len(arguments) != 1 + n_given or np.shape(arguments[0]) != (rows, self.n_joints):
                further = ", pose and twists of base or platform" * bool(n_given)
                raise InputError(f"expected a motion of shape {(rows, self.n_joints)}{further}")
            if what in _PARTS:
                found = looped.matrix_rows(_PARTS[what], order, *arguments)
                if found is not None:
                    return found
            q, *motion = arguments
            base = None
            if motion:
                base = BaseMotion(motion[0], motion[1] if len(motion[1]) else np.zeros((1, 6)))
            if what == "forward_kinematics":
                return self._poses_of_loops(looped, q, base, names, representation)
            others = (names[0], representation) if what == "jacobian" else ()
            whole = self._computed_of_loops(looped, what, q, base, *others)
            return np.ascontiguousarray(whole.reshape(-1, whole.shape[-1]))

        return into(compute)

    def _poses_of_loops(
        self,
        looped: LoopedDynamics,
        q: Array,
        base: BaseMotion | None,
        names: tuple[str | int, ...],
        representation: Representation,
    ) -> Array:
        joints, moving = looped.joint_motion(*coordinate_motion(looped.closure, q, base, 0))
        kernel = self._frame_kernel(len(joints) - 1, names, representation)
        if kernel is None:
            raise InputError(f"robot {self.name!r} is too large to compile its kinematics of that order")
        twists = (
            [] if moving is None else [moving.pose, np.ascontiguousarray(moving.twists[: len(joints) - 1])]
        )
        found: Array = kernel.function(np.ascontiguousarray(joints), *twists)
        return found

    @finite_result
    def linearised_dynamics(
        self, state: ArrayLike, torques: ArrayLike, base: BaseMotion | None = None
    ) -> LinearisedDynamics:
        """Linearise as `MatrixCalls` says; with loops x are the coordinates, and u those of the drives."""
        if self._looped is None:
            return super().linearised_dynamics(state, torques, base)
        closure, k = self._looped.closure, self.n_joints
        y, _ = coordinate_motion(closure, finite_array("the state", state, (2, k)), base, 1)
        efforts = finite_array("the torques", torques, (len(closure.driven),))
        _, partials = forward_dynamics_partials(self._looped, y, efforts)
        A = np.concatenate([np.eye(2 * k)[k:], partials[:, : 2 * k]])
        return LinearisedDynamics(A, np.concatenate([np.zeros((k, len(efforts))), partials[:, 2 * k :]]))

    def dynamic_parameters(self) -> Array:
        """Return the parameters (10 bodies,) as `MatrixCalls` says, with couplings and loops too."""
        return (
            super().dynamic_parameters() if self._looped is None else self._of_the_tree.dynamic_parameters()
        )

    @cached_property
    def _of_the_tree(self) -> TreeMatrices:
        return TreeMatrices(self._tree, self.frames)

    def _dynamic_matrices_of_loops(
        self, q: ArrayLike | None, base: BaseMotion | None, rates: int
    ) -> DynamicMatrices | None:
        if self._looped is None:
            return None
        y, given = coordinate_motion(self._looped.closure, q, base, rates)
        return looped_matrices(self._looped, self._of_the_tree, y, given, rates)

    def _of_loops(
        self, name: str, q: ArrayLike | None, base: BaseMotion | None, *others: Any
    ) -> Array | None:
        if self._looped is None or name not in _OF_LOOPS:
            return None
        return self._computed_of_loops(self._looped, name, q, base, *others)

    @finite_result
    def _computed_of_loops(
        self, looped: LoopedDynamics, name: str, q: ArrayLike | None, base: BaseMotion | None, *others: Any
    ) -> Array:
        if name in ("com", "jacobian"):
            y, given = coordinate_motion(looped.closure, q, base, 0)
            if name == "com":
                return self._of_the_tree.com(*looped.joint_motion(y, given))
            return looped_jacobian(looped, self._of_the_tree, y, given, *others)
        if name in ("regressor", "inverse_dynamics_derivatives"):
            y, given = coordinate_motion(looped.closure, q, base, 2)
            if name == "inverse_dynamics_derivatives":
                return inverse_dynamics_partials(looped, y, given)
            return looped_regressor(looped, self._of_the_tree, y, given)
        rates = 1 if name == "coriolis_matrix" else 0
        y, given = coordinate_motion(looped.closure, q, base, rates)
        compiled = looped.matrix(_PARTS[name], y, given)
        if compiled is not None:
            return compiled
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
        setting = kernels.KernelSpec(
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
        setting = kernels.KernelSpec(base=base.frame if base else None, loads=_load_places(self.model, loads))
        kernel = self._kernel("inverse", order, setting)
        if setting == kernels.KernelSpec():
            self._compiled[order + 3, self.n_joints] = kernel.function
        return kernel

    def _kernel(
        self, what: Literal["inverse", "hybrid"], order: int, setting: kernels.KernelSpec
    ) -> Function:
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
