"""The parallel robot that users hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.series_elastic import SeriesElastic
from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.drives import Drives, counted, drives_in_words
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.motion import (
    AppliedWrench,
    Frame,
    check_frame,
    twists_to_world,
    wrenches_to_body,
)
from hodyn_ros.parallel import reference
from hodyn_ros.parallel.compiled import Setting
from hodyn_ros.parallel.config import read_parallel_config
from hodyn_ros.parallel.drive_forces import drive_forces
from hodyn_ros.parallel.forward import PlatformMotion, platform_pose, platform_twists
from hodyn_ros.parallel.inputs import (
    Loads,
    body_motion,
    check_loads,
    driven_rows,
    platform_loads,
    pose_and_twists,
    preload_rows,
)
from hodyn_ros.parallel.limb import Limb
from hodyn_ros.parallel.mobility import check_mobility
from hodyn_ros.parallel.model import ParallelModel
from hodyn_ros.parallel.platform import Platform
from hodyn_ros.parallel.singularity import SingularValues, singular_values
from hodyn_ros.parallel.solver import HIGHEST_ORDER, Solver
from hodyn_ros.parallel.task_dynamics import forward_dynamics
from hodyn_ros.se3 import Array

_NEAR = (
    0.1  # share of the home pose's distance to singularity from which a pose counts as near a singular one
)

_Compiled = tuple[Callable[..., Array], slice, int]  # function, rows of the forces, place of the check


class DriveState(NamedTuple):
    """What the drives do, by derivative order."""

    motion: Array  # (order + 3, driven) positions of the driven joints and their derivatives [rad or m, /s^k]
    forces: Array  # (order + 1, driven) [N.m/s^k or N/s^k]
    near_singularity: bool  # whether the pose is close to a singular one; forces may be large


class ParallelRobot:
    """A platform on several limbs, with its kinematics and dynamics of any order.

    Build one with `from_screws` or `from_config`. Joint coordinates are zero at the home pose. Geometric
    inverse kinematics starts from the joint positions of the last call that succeeded (`positions`), so that
    the limbs stay on their branch; `seed=` or `reset` choose another. A call that fails leaves them alone.
    """

    def __init__(
        self,
        model: ParallelModel,
        limits: JointLimits | None = None,
        drives: Drives | None = None,
        drive_specs: Sequence[DriveSpec] | None = None,
    ) -> None:
        self._loose = check_mobility(model)
        self.model = model
        self.limits = limits if limits is not None else JointLimits.unlimited(model.n_driven)
        self.drives = drives
        self.drive_specs = None if drives is None else tuple(drive_specs or _specs(drives))
        # with friction, or springs that are damped or not linear, only the drive train is right
        plain = drives is not None and all(spec.is_plain for spec in self.drive_specs or ())
        self.actuation = SeriesElastic(drives.stiffness, drives.motor_inertia) if drives and plain else None
        self._solver = Solver(model)
        # inverse dynamics in either frame, by shape of the twists
        self._body_fixed: dict[tuple[int, ...], _Compiled] = {}
        self._spatial: dict[tuple[int, ...], _Compiled] = {}

    def __repr__(self) -> str:
        model = self.model
        limbs = sum(float(limb.chain.masses[:-1].sum()) for limb in model.limbs)
        return (
            f"<{type(self).__name__} {model.name!r}: platform with {self.n_dof} degrees of freedom on "
            f"{counted(len(model.limbs), 'limb')}, {counted(self.n_joints, 'joint')}, "
            f"{self.n_driven} driven, {drives_in_words(self.drives)}, {model.platform.mass + limbs:.4g} kg>"
        )

    @classmethod
    def from_screws(
        cls,
        limbs: Sequence[Limb | Mapping[str, Any]],
        platform: Platform | Mapping[str, Any],
        platform_dof: ArrayLike,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        name: str = "robot",
    ) -> ParallelRobot:
        """Build a robot from limbs and platform, described at the home pose in the world frame.

        `limbs`: `hodyn_ros.Limb`, or mappings with its fields: `screws` (k, 6), and `placements`, `masses`,
        `coms`, `inertias` of the bodies as in `Robot.from_screws`, the last body being the platform, and
        `driven`. `platform`: `hodyn_ros.Platform` or a mapping with `mass`, `com`, `inertia`, `placement`.
        `platform_dof` (6, delta): the columns are the independent twists of the platform, in its frame.
        `gravity` (3,) points down [m/s^2]. Raises ModelError naming the limb or joint at fault.
        """
        return cls(ParallelModel.build(limbs, platform, platform_dof, gravity, name))

    @classmethod
    def from_config(cls, path: str | Path, gravity: ArrayLike | None = None) -> ParallelRobot:
        """Read a parallel robot from a YAML file as in `config/gough_stewart_6ups.yaml`.

        `gravity` (3,) [m/s^2], pointing down, overrides the file's. Raises ModelError naming file and place.
        """
        config = read_parallel_config(path, gravity)
        try:
            return cls(config.model, config.limits, config.drives, config.drive_specs)
        except ModelError as error:
            raise ModelError(f"{config.source}: {error}") from error

    @property
    def name(self) -> str:
        """The name of the robot."""
        return self.model.name

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all joints, limb after limb."""
        return self.model.joint_names

    @property
    def driven_joint_names(self) -> tuple[str, ...]:
        """Names of the driven joints, in the order of forces and drive motions."""
        return tuple(self.model.joint_names[i] for i in self.model.driven)

    @property
    def n_joints(self) -> int:
        """Number of joints of all limbs."""
        return self.model.n_joints

    @property
    def n_driven(self) -> int:
        """Number of driven joints."""
        return self.model.n_driven

    @property
    def n_dof(self) -> int:
        """Degrees of freedom of the platform."""
        return self.model.delta

    @property
    def gravity(self) -> Array:
        """Gravity (3,) in the world frame, pointing down [m/s^2]."""
        return self.model.gravity

    @property
    def home_pose(self) -> Array:
        """Pose (4, 4) of the platform where all joint coordinates are zero."""
        return self.model.platform.placement

    @cached_property
    def drive_train(self) -> DriveTrain | None:
        """The drives of the driven joints, of any kind; None for a robot without drives."""
        return None if self.drive_specs is None else DriveTrain.of(self.drive_specs, self.driven_joint_names)

    @property
    def positions(self) -> Array:
        """Joint positions (N,) of the last call that succeeded, from which the next one starts."""
        return self._solver.positions

    def reset(self, positions: ArrayLike | None = None) -> None:
        """Start the next call from joint positions (N,), by default those of the home pose."""
        chosen = np.zeros(self.n_joints) if positions is None else self._solver.seed(positions)
        self._solver.remember(chosen)

    @finite_result
    def inverse_kinematics(
        self,
        pose: ArrayLike,
        twists: ArrayLike | None = None,
        frame: Frame = "body",
        seed: ArrayLike | None = None,
    ) -> Array:
        """Find the motion (orders + 1, N) of all joints from that of the platform.

        `pose` (4, 4) in the world [m]; `twists` (orders, 6): its twist `(omega; v)` [rad/s, m/s] and the time
        derivatives, body-fixed, or spatial with `frame="world"`. `seed` (N,): where Newton's method starts,
        which selects the branch of every limb; by default at the last joint positions found. Mueller et al.,
        eqs. 15 and 16. Raises ConvergenceError naming the limb that does not reach the platform,
        SingularError naming the limb at a singular pose, InputError for twists outside of `platform_dof`.
        """
        place, body_twists = body_motion(self.model, pose, twists, frame)
        positions = self._solver.locate(place, seed)
        joints = reference.joint_motion(reference.limb_motions(self.model, positions, body_twists))
        self._solver.remember(positions)
        return joints

    @finite_result
    def drive_motion(
        self,
        pose: ArrayLike,
        twists: ArrayLike | None = None,
        frame: Frame = "body",
        seed: ArrayLike | None = None,
    ) -> Array:
        """Find the motion (orders + 1, driven) of the driven joints; see `inverse_kinematics`."""
        return self.inverse_kinematics(pose, twists, frame, seed)[:, list(self.model.driven)]

    @finite_result
    def inverse_kinematics_jacobians(
        self,
        pose: ArrayLike,
        twists: ArrayLike | None = None,
        frame: Frame = "body",
        seed: ArrayLike | None = None,
    ) -> Array:
        """Return `J_IK` and its derivatives (orders + 1, driven, delta), `theta_a' = J_IK V_t`.

        `V_t` is the task velocity in the platform frame, `V_p = P_p V_t`. Mueller et al., eq. 9 and section
        V-B. Arguments and errors as in `inverse_kinematics`.
        """
        place, body_twists = body_motion(self.model, pose, twists, frame)
        positions = self._solver.locate(place, seed)
        motions = reference.limb_motions(self.model, positions, body_twists)
        self._solver.remember(positions)
        return reference.inverse_kinematics_jacobians(self.model, motions, len(body_twists))

    @finite_result
    def forward_kinematics(
        self, drives: ArrayLike, frame: Frame = "body", seed: ArrayLike | None = None
    ) -> PlatformMotion:
        """Find pose and twists of the platform from the motion of the driven joints.

        `drives` (driven,) or (orders + 1, driven): positions and their derivatives. Newton's method starts at
        the last pose found, or at that of the joint positions `seed` (N,), which selects the assembly mode.
        Raises ConvergenceError, SingularError, and InputError where redundant drives contradict each other.
        """
        check_frame(frame)
        motion = driven_rows(self.model, "the motion of the drives", drives)
        start = self.positions if seed is None else self._solver.seed(seed)
        pose, positions = platform_pose(self.model, motion[0], self._solver.pose_at(start), start)
        twists = platform_twists(self.model, positions, motion[1:])
        self._solver.remember(positions)
        if frame == "world" and len(twists):
            twists = twists_to_world(pose, twists)
        return PlatformMotion(pose, twists)

    @finite_result
    def singular_values(self, pose: ArrayLike, seed: ArrayLike | None = None) -> SingularValues:
        """Return the smallest singular values of drives and limbs at a pose (4, 4)."""
        place, _ = body_motion(self.model, pose, None, "body")
        positions = self._solver.locate(place, seed)
        self._solver.remember(positions)
        return singular_values(self.model, positions)

    @finite_result
    def distance_to_singularity(self, pose: ArrayLike, seed: ArrayLike | None = None) -> float:
        """Return the smallest singular value at a pose (4, 4), without units; zero at a singular pose."""
        return self.singular_values(pose, seed).least

    def inverse_dynamics(
        self,
        pose: ArrayLike,
        twists: ArrayLike,
        frame: Frame = "body",
        *,
        wrenches: Sequence[AppliedWrench] | AppliedWrench | None = None,
        preload: ArrayLike | None = None,
        seed: ArrayLike | None = None,
        formulation: str | None = None,
    ) -> Array:
        """Compute the driven forces and their time derivatives from the motion of the platform.

        `pose` (4, 4) in the world [m]; `twists` (order + 2, 6): the twist `(omega; v)` [rad/s, m/s] and its
        time derivatives, body-fixed, or spatial with `frame="world"`. `wrenches` that the environment applies
        to the platform. With more drives than degrees of freedom the forces are those of least norm, or
        nearest to a `preload` (driven,) or (orders, driven) given with its derivatives. `seed` as in
        `inverse_kinematics`. `formulation`: "body_fixed" as published; by default the compiled engine.

        Returns forces (order + 1, driven) [N.m/s^k or N/s^k]. Mueller et al., eqs. 14, 19 and 20, for any
        order. Raises ConvergenceError naming the limb that does not reach the platform, SingularError near
        singular poses, InputError saying what was expected.
        """
        if (
            type(twists) is np.ndarray
            and wrenches is None
            and preload is None
            and seed is None
            and formulation is None
        ):
            known = self._body_fixed if frame == "body" else self._spatial if frame == "world" else {}
            compiled = known.get(twists.shape)
            if compiled is not None:
                function, rows, bad = compiled
                result = function(pose, twists, self._solver.memory)
                if result.item(bad) < 1.0:
                    forces: Array = result[rows]
                    return forces
        return self.solve(
            pose, twists, frame, wrenches=wrenches, preload=preload, seed=seed, formulation=formulation
        ).forces

    @finite_result
    def solve(
        self,
        pose: ArrayLike,
        twists: ArrayLike,
        frame: Frame = "body",
        *,
        wrenches: Sequence[AppliedWrench] | AppliedWrench | None = None,
        preload: ArrayLike | None = None,
        seed: ArrayLike | None = None,
        formulation: str | None = None,
    ) -> DriveState:
        """Compute motion and forces of the drives at once, as elastic drives need them.

        Arguments and errors as in `inverse_dynamics`; with `order + 2` twists the motion comes to its
        derivative `order + 2`.
        """
        place, given = pose_and_twists(pose, twists, frame)
        order = len(given) - 2
        loads = platform_loads(self.model, wrenches, order)
        if loads is not None and self._loose.shape[1]:
            check_loads(*body_motion(self.model, pose, twists, frame), loads, self._loose)
        chosen = preload_rows(self.model, preload, order)
        if formulation not in (None, "body_fixed"):
            raise InputError(
                f"there is no formulation {formulation!r} of parallel robots; choose 'body_fixed'"
            )
        if formulation is not None or order > HIGHEST_ORDER:
            return self._by_reference(place, given, frame, loads, chosen, seed)
        setting = Setting(frame, loads is not None, chosen is not None)
        kernel = self._solver.kernel(order, setting)
        others = [*(loads or ()), *(() if chosen is None else (chosen,))]
        result = self._solver.run(kernel, place, given, others, frame, seed)
        if setting == Setting(frame):
            known = self._body_fixed if frame == "body" else self._spatial
            known[given.shape] = (kernel.function, kernel.forces, kernel.bad)
        near = result.item(kernel.flat) > _NEAR**-2 * kernel.flatness_at_home
        return DriveState(result[kernel.motion], result[kernel.forces], near)

    @finite_result
    def forward_dynamics(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        forces: ArrayLike,
        frame: Frame = "body",
        *,
        wrenches: Sequence[AppliedWrench] | AppliedWrench | None = None,
        seed: ArrayLike | None = None,
    ) -> Array:
        """Compute how the platform accelerates under forces of the drives, with time derivatives.

        `pose` (4, 4), `twist` (6,) in the representation `frame`, `forces` (driven,) or (order + 1, driven).
        Returns the derivatives 1 to order + 1 of the twist, (order + 1, 6), in the same representation. The
        generalised mass matrix is the same at every order, so that each costs one inverse dynamics and one
        solution; Mueller et al., eqs. 1 and 11. Beyond order 6, which is the highest that is compiled, in
        NumPy by the published formulation.
        """
        given = driven_rows(self.model, "the forces", forces)
        velocity = finite_array("the twist", twist, (6,))
        place, body_twists = body_motion(self.model, pose, velocity[None], frame)
        loads = platform_loads(self.model, wrenches, len(given) - 1)
        if loads is not None:
            # only the derivative of order 0 is certain before the motion is known
            check_loads(place, body_twists, (loads[0][:1], loads[1][:1]), self._loose)
        found = forward_dynamics(self._solver, place, body_twists[0], given, loads, seed)
        return (twists_to_world(place, found) if frame == "world" else found)[1:]

    def _by_reference(
        self,
        pose: Array,
        twists: Array,
        frame: Frame,
        loads: Loads | None,
        preload: Array | None,
        seed: ArrayLike | None,
    ) -> DriveState:
        place, body_twists = body_motion(self.model, pose, twists, frame)
        applied = np.zeros((len(twists) - 1, 6))
        if loads is not None:
            applied = loads[0] + wrenches_to_body(place, body_twists, loads[1])
        positions = self._solver.locate(place, seed)
        motions = reference.limb_motions(self.model, positions, body_twists)
        task = reference.task_space(self.model, motions, place, body_twists, applied)
        chosen = np.zeros((len(applied), self.n_driven)) if preload is None else preload
        forces = drive_forces(task.jacobians, task.force, chosen)
        self._solver.remember(positions)
        drives = reference.joint_motion(motions)[:, list(self.model.driven)]
        home = singular_values(self.model, np.zeros(self.n_joints))
        near = singular_values(self.model, positions).least < _NEAR * home.least
        return DriveState(drives, forces, near)


def _specs(drives: Drives) -> list[DriveSpec]:
    return [DriveSpec(float(k), float(b)) for k, b in zip(drives.stiffness, drives.motor_inertia)]
