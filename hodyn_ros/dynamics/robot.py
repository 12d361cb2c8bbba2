"""The robot that users hold: a model with its drives and limits, and the calls of dynamics on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.calls.compiling import CompileCalls
from hodyn_ros.dynamics.calls.dynamics import DynamicsCalls
from hodyn_ros.dynamics.calls.kinematics import KinematicCalls
from hodyn_ros.dynamics.calls.matrices import MatrixCalls
from hodyn_ros.dynamics.calls.partials import PartialCalls
from hodyn_ros.dynamics.loops.closing import assembled
from hodyn_ros.dynamics.read_robot import read_mjcf_robot, read_robot, read_urdf_robot
from hodyn_ros.errors import ModelError
from hodyn_ros.model.arrays import unique_names
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.composite_joints import CompositeJoint, has_composite, unfold_arrays
from hodyn_ros.model.description import RobotDescription
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.frames import DhConvention, dh_chain
from hodyn_ros.model.loops import Constraints, Coordinate
from hodyn_ros.model.tree import TreeArrays, TreeModel


class Robot(CompileCalls, PartialCalls, DynamicsCalls, KinematicCalls, MatrixCalls):
    """A tree of rigid bodies, on the ground or floating, with its dynamics of any order.

    Build one with `load` from a file of any kind, `from_urdf` and `from_mjcf`, which take texts and more
    arguments, or `from_screws`. Its calls stand by subject in the files of
    `hodyn_ros.dynamics.calls`. All raise InputError saying what was expected and found.

    Calls that return matrices take a derivative stack `q` (orders, n), or a batch (N, orders, n), and return
    as many orders as it determines, the order on axis 0 (axis 1 of a batch). The m velocities are q' or, with
    a floating base, its body-fixed twist and then q' (m = 6 + n); forces begin with the body-fixed wrench on
    the base, about its origin, in its axes. `base`: the motion of a floating base, in any frame, with one
    twist less than `q` has rows. Those of robots with couplings and loops are of the coordinates, one sample
    at a time: velocities are those of `robot.coordinates`, after the body-fixed twist of a prescribed base,
    rows of a platform being components of its body-fixed twist. Where no joint is a coordinate q is None, and
    the twists say the order; `q=np.zeros((1, 0))` asks for order 0 without any. `docs/loops.md`.
    """

    def with_tree(self, tree: TreeModel) -> Robot:
        """Return this robot with other bodies on the same joints, as with another gravity or a payload.

        One with loops is a new one in any case: it remembers where it has been.
        """
        if tree is self._tree and self.closure is None:
            return self
        closure = None if self.closure is None else replace(self.closure, tree=tree)
        return Robot(**{**self._parts, "model": tree, "closure": closure})

    def apart(self) -> Robot:
        """Return this robot as it is, which remembers by itself where it goes on from; a tree itself."""
        result = self.with_tree(self._tree)
        if result is not self:
            result.reset(self.positions)
        return result

    def with_drives(self, drives: Sequence[DriveSpec] | None) -> Robot:
        """Return this robot with other drives, one for each of its driven joints."""
        return Robot(**{**self._parts, "drives": drives})

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what a robot is made from; what it has compiled is compiled again."""
        return Robot, tuple(self._parts.values())

    @property
    def _parts(self) -> dict[str, Any]:
        """What this robot is made from, in the order that its constructor takes."""
        return {
            "model": self._tree,
            "limits": self.limits,
            "drives": self.drive_train,
            "frames": dict(self.frames),
            "closure": self.closure,
            "coordinate_limits": self.coordinate_limits,
            "propellers": self.propellers,
            "uncertainty": self.uncertainty,
        }

    @classmethod
    def from_urdf(cls, path_or_xml: str | Path, floating_base: bool = False, *, mimic: bool = True) -> Robot:
        """Read a robot from a URDF file, or from the text of one; fixed joints are merged into their parents.

        Joints that mimic others follow them, and are no coordinates; with `mimic=False` all joints move by
        themselves. Warns (FigureWarning) of inertias that no body has. Raises ModelError naming the link or
        joint at fault.
        """
        return cls.of(read_urdf_robot(path_or_xml, floating_base, mimic))

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
        Armatures are motor inertias of rigid drives, so they count in `drive_train` and not in
        `inverse_dynamics`; with `friction=True` damping and dry friction are those of the links of the
        drives, and `friction=False` leaves them out without a warning. Constraints "connect" and "weld" are
        loops, "joint" couplings. With loops, `coordinates` are by default joints with actuators, and others
        as far as needed; `driven` those with actuators where they hold the robot, else the coordinates.

        Warns (FigureWarning) of forces that MuJoCo computes and this does not, such as springs. Raises
        ModelError in one line: no `mujoco`, missing files, what is not supported, or what `docs/loops.md`
        says of loops. `hodyn_ros.model.readers.mjcf` says how bodies, joints and frames are called.
        """
        return cls.of(read_mjcf_robot(path_or_xml, root, keyframe, coordinates, driven, friction))

    @classmethod
    def load(cls, path: str | Path, gravity: ArrayLike | None = None) -> Robot:
        """Read a robot from a file by what it is: YAML as in `config/`, with drives and limits, URDF, MJCF.

        `gravity` (3,) [m/s^2], pointing down, overrides the file's. Raises ModelError naming file and place.
        """
        return cls.of(read_robot(path, gravity))

    @classmethod
    def of(cls, description: RobotDescription) -> Robot:
        """Build what a file describes. Raises ModelError naming the file."""
        try:
            return cls(
                description.model,
                description.limits,
                description.drives,
                description.frames,
                description.closure,
                description.coordinate_limits,
                description.propellers,
                description.uncertainty,
            )
        except ModelError as error:
            where = f"{description.source}: " if description.source else ""
            raise ModelError(f"{where}{error}") from error

    @classmethod
    def from_dh(
        cls,
        table: ArrayLike,
        masses: ArrayLike,
        coms: ArrayLike,
        inertias: ArrayLike,
        *,
        convention: DhConvention,
        kinds: Sequence[str] | None = None,
        **arrays: Any,
    ) -> Robot:
        """Build a chain of n bodies from a table of Denavit and Hartenberg's parameters.

        `table` (n, 4): for each joint a row `a` [m], `alpha` [rad], `d` [m], `theta` [rad], in one of the
        conventions of `hodyn_ros.model.frames.from_dh`; theta is where a revolute joint is at zero, and d
        where a prismatic one is. `kinds` (n,): "revolute" or "prismatic", by default all revolute. The frames
        of the table are those of the bodies, to which `masses`, `coms` and `inertias` refer as in
        `from_screws`, whose other arguments this takes as well. Raises ModelError naming what is wrong.
        """
        kinds = ["revolute"] * len(np.atleast_1d(table)) if kinds is None else kinds
        screws, placements = dh_chain(table, convention, kinds)
        return cls.from_screws(
            range(-1, len(screws) - 1), screws, placements, masses, coms, inertias, **arrays
        )

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
        constraints: Constraints | None = None,
    ) -> Robot:
        """Build a robot of n bodies from screws and body frames in the world at its zero configuration.

        `parents` (n,) index of each body's parent, -1 for the world, parents before children; `screws` (n, 6)
        unit joint screws `(e; y×e + h e)` or, prismatic, `(0; e)`; `placements` (n, 4, 4) body frames [m];
        `masses` (n,) [kg]; `coms` (n, 3) in the body frame [m]; `inertias` (n, 3, 3) about the centre of mass
        in body axes [kg m^2]; `gravity` (3,) points down [m/s^2]. With a floating base, body 0 is the base,
        its screw row is ignored, and joint i moves body i + 1. `hodyn_ros.model.composite_joints` has
        universal, ball, planar, floating and rolling joints to stand among the screws: joint "hip" becomes
        several, "hip_rz" and so on, with bodies without mass between, such as "hip_rz_link". Other arguments
        then count bodies as given, and such joints by name.

        `constraints`: couplings of joints to others, loops that join bodies besides, and which coordinates
        and drives move the robot then (`docs/loops.md`). Raises ModelError naming the body, joint, loop or
        coordinate at fault.
        """
        held = Constraints() if constraints is None else constraints
        arrays = TreeArrays(parents, screws, placements, masses, coms, inertias, joint_names, body_names)
        if has_composite(screws):
            bodies = unique_names("body_names", body_names, len(screws), "body")
            joints = unique_names("joint_names", joint_names, len(screws) - bool(floating_base), "joint")
            held, (arrays, couplings) = held.by_name(bodies, joints), unfold_arrays(arrays, joints, bodies)
            held = replace(held, couplings=[*couplings, *held.couplings])
        model = TreeModel.build(arrays, gravity, floating_base, name=name, any_rank=not held.empty)
        if held.empty:
            return cls(model)
        closure = Closure.build(model, held)
        return cls(model, closure=closure if held.home is None else assembled(closure))
