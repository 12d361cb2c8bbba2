"""The robot that users hold: a model with its drives and limits, and the calls of dynamics on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.series_elastic import SeriesElastic
from hodyn_ros.checks import check_finite, finite_array, real_array
from hodyn_ros.dynamics.floating_base import fitting_base
from hodyn_ros.dynamics.forward_kinematics import Kinematics, forward_kinematics
from hodyn_ros.dynamics.inverse_kinematics import Method, inverse_kinematics
from hodyn_ros.dynamics.matrix_calls import MatrixCalls
from hodyn_ros.dynamics.mobility import check_mobility, check_pose
from hodyn_ros.dynamics.pose_solver import Task
from hodyn_ros.engine import kernels
from hodyn_ros.engine.kernel import Function
from hodyn_ros.errors import InputError, OverflowingError
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.model.assembly import Frame as NamedFrame
from hodyn_ros.model.config import read_config
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.drives import Drives
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.model.urdf import read_urdf_assembly
from hodyn_ros.motion import AppliedWrench, BaseMotion, Frame
from hodyn_ros.representations import Representation
from hodyn_ros.se3 import Array

_HIGHEST_ORDER = 30
_KEPT = 100  # kernels of a robot; one that walks meets many sets of contacts


class Robot(MatrixCalls):
    """A tree of rigid bodies, on the ground or floating, with its dynamics of any order.

    Build one with `from_urdf`, `from_config` or `from_screws`. The calls that return matrices are described
    at `MatrixCalls`.
    """

    def __init__(
        self,
        model: TreeModel,
        limits: JointLimits | None = None,
        drives: Drives | None = None,
        frames: Mapping[str, NamedFrame] | None = None,
        drive_specs: Sequence[DriveSpec] | None = None,
    ) -> None:
        self._massless = check_mobility(model)
        self.model = model
        self.limits = limits if limits is not None else JointLimits.unlimited(model.n_joints)
        self.drives = drives
        self.frames = MappingProxyType(dict(frames or {}))  # besides the bodies, by name
        self.drive_specs = _specs(drives, drive_specs)
        # with friction, or springs that are damped or not linear, only the drive train is right
        plain = drives is not None and all(spec.is_plain for spec in self.drive_specs or ())
        self.actuation = SeriesElastic(drives.stiffness, drives.motor_inertia) if drives and plain else None
        self._compiled: dict[
            tuple[int, ...], Callable[..., Any]
        ] = {}  # inverse dynamics by shape of the motion
        self._kernels: dict[tuple[str, int, kernels.Setting], Function] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what a robot is made from; what it has compiled is compiled again."""
        return Robot, (self.model, self.limits, self.drives, dict(self.frames), self.drive_specs)

    @classmethod
    def from_urdf(cls, path_or_xml: str | Path, floating_base: bool = False) -> Robot:
        """Read a robot from a URDF file, or from the text of one; fixed joints are merged into their parents.

        Raises ModelError naming the link or joint at fault.
        """
        assembly, limits = read_urdf_assembly(path_or_xml, floating_base)
        return cls(assembly.model, limits, frames=assembly.frames)

    @classmethod
    def from_config(cls, path: str | Path, gravity: ArrayLike | None = None) -> Robot:
        """Read a robot with its drives and limits from a YAML file as in `config/`.

        `gravity` (3,) [m/s^2], pointing down, overrides the file's. Raises ModelError naming file and place.
        """
        config = read_config(path, gravity)
        return cls(config.model, config.limits, config.drives, config.frames, config.drive_specs)

    @classmethod
    def from_screws(
        cls,
        parents: Sequence[int],
        screws: ArrayLike,
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
    ) -> Robot:
        """Build a robot of n bodies from screws and body frames in the world at its zero configuration.

        `parents` (n,) index of each body's parent, -1 for the world, parents before children; `screws` (n, 6)
        unit joint screws `(e; y×e + h e)` or, prismatic, `(0; e)`; `placements` (n, 4, 4) body frames [m];
        `masses` (n,) [kg]; `coms` (n, 3) in the body frame [m]; `inertias` (n, 3, 3) about the centre of mass
        in body axes [kg m^2]; `gravity` (3,) points down [m/s^2]. With a floating base, body 0 is the base,
        its screw row is ignored, and joint i moves body i + 1. Raises ModelError naming the body or joint at
        fault.
        """
        model = TreeModel.build(
            parents,
            screws,
            placements,
            masses,
            coms,
            inertias,
            gravity,
            floating_base,
            joint_names=joint_names,
            body_names=body_names,
            name=name,
        )
        return cls(model)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of every array."""
        return self.model.joint_names

    @property
    def n_joints(self) -> int:
        """Number of joints n."""
        return self.model.n_joints

    @property
    def gravity(self) -> Array:
        """Gravity (3,) in the world frame, pointing down [m/s^2]."""
        return self.model.gravity

    @cached_property
    def drive_train(self) -> DriveTrain | None:
        """The drives of all joints, of any kind; None for a robot without drives."""
        return None if self.drive_specs is None else DriveTrain.of(self.drive_specs, self.joint_names)

    def forward_kinematics(
        self, q: ArrayLike, base: BaseMotion | None = None, representation: Representation = "spatial"
    ) -> Kinematics:
        """Compute poses, twists and joint screws of all bodies with their time derivatives.

        `q` (order + 1, n): positions and their derivatives [rad or m, /s^k]; a batch is (N, order + 1, n).
        `base`: the motion of a floating base with `order` twists. `representation` of twists and screws:
        "spatial", "body_fixed" or "hybrid". Look up bodies and named frames in the result with `pose_of`,
        `twists_of` and `jacobian_of`. Mueller (2020), Algorithm 1; Ali et al., Algorithm 1. Raises InputError
        saying what was expected.
        """
        return forward_kinematics(self.model, q, base, representation, self.frames)

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

        Raises SingularError with the condition number at a singular pose, ConvergenceError with the distance
        left to a pose out of reach, InputError saying what was expected.
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
        q: ArrayLike,
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
        if type(q) is np.ndarray and base is None and wrenches is None and formulation is None:
            compiled = self._compiled.get(q.shape)
            if compiled is not None:
                torques: Array = compiled(q)
                return torques
        motion = self._motion(q)
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

    def compile(self, order: int) -> Callable[..., Array]:
        """Compile the inverse dynamics of one order for this robot, and return the fastest callable there is.

        `f(q)` takes an array (order + 3, n) and returns torques (order + 1, n); `f(q, out=array)` writes them
        there. With a floating base `f(q, pose, twists)` takes its pose (4, 4) and twists (order + 2, 6) in
        the world frame, and returns (order + 1, 6 + n): the base wrench in the world frame, then the torques.
        For C-contiguous float64 arrays everything is checked in compiled code; others are converted or
        refused with InputError. Compiling takes a fraction of a second; the next process finds the machine
        code on disk.
        """
        if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
            raise InputError(f"the order must be 0 or a positive integer, found {order!r}")
        _check_order(int(order), "the order is")
        setting = kernels.Setting(base="world" if self.model.floating_base else None)
        return self._kernel("inverse", int(order), setting).function

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
        found = self._hybrid(state, torques, base, base_wrench, wrenches, (), False)
        if base is None:
            return found
        accelerations, joints = _split(found)
        return joints, accelerations

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
        if not np.isfinite(found).all():
            raise OverflowingError(
                "the result overflows: the state, the torques or the wrenches are too large"
            )
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
        room = INVERSE_DYNAMICS[name]
        with np.errstate(over="ignore", invalid="ignore"):
            torques, ground = room(self.model, np.moveaxis(motion, -2, 0), base, loads)
        if not np.isfinite(torques).all():
            raise OverflowingError("the result overflows: the numbers given are too large")
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
            named = isinstance(found.body, str) and found.body not in self.model.body_names
            frame = self.frames.get(str(found.body)) if named else None
            if frame is not None and frame.body >= 0:
                carrier = self.model.body_names[frame.body]
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
