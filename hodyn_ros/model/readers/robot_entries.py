"""The keys of robot files: what a YAML file may say of a tree, of a URDF, and of a platform on limbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.frames import from_modified_dh, from_rpy
from hodyn_ros.model.keys import Entry, Key
from hodyn_ros.model.limits import JointLimit
from hodyn_ros.model.loops import LoopKind

Vector = tuple[float, float, float]
Row = Literal["rx", "ry", "rz", "x", "y", "z"]
Freedoms = Literal["r1", "r2", "x", "y", "z", "rx", "ry", "rz"]
_KINDS = (
    *("revolute", "continuous", "prismatic", "helical", "fixed"),
    *("universal", "ball", "planar", "floating"),
)
_BODY = Key("body or frame that carries it, or world")


@dataclass(frozen=True, kw_only=True)
class OriginEntry(Entry):
    """Pose as in URDF."""

    xyz: Annotated[Vector, Key("[m]")] = (0.0, 0.0, 0.0)
    rpy: Annotated[Vector, Key("about the fixed axes x, y, z [rad]")] = (0.0, 0.0, 0.0)

    @property
    def placement(self) -> Array:
        """The pose (4, 4)."""
        return from_rpy(np.array(self.xyz), np.array(self.rpy))


@dataclass(frozen=True, kw_only=True)
class DhEntry(Entry):
    """Denavit-Hartenberg parameters."""

    convention: Annotated[Literal["modified"], Key("Craig's: RotX(alpha) TransX(a) RotZ(q) TransZ(d)")]
    a: Annotated[float, Key("[m]")]
    alpha: Annotated[float, Key("[rad]")]
    d: Annotated[float, Key("[m]")]

    @property
    def placement(self) -> Array:
        """The pose (4, 4)."""
        return from_modified_dh(self.a, self.alpha, self.d)


@dataclass(frozen=True, kw_only=True)
class InertiaEntry(Entry):
    """Inertia in body axes [kg m^2]."""

    about: Annotated[
        Literal["com", "origin"],
        Key("the point that the inertia is about: centre of mass or origin of the body frame"),
    ]
    ixx: Annotated[float, Key("[kg m^2]")]
    ixy: Annotated[float, Key("[kg m^2]")]
    ixz: Annotated[float, Key("[kg m^2]")]
    iyy: Annotated[float, Key("[kg m^2]")]
    iyz: Annotated[float, Key("[kg m^2]")]
    izz: Annotated[float, Key("[kg m^2]")]

    @property
    def matrix(self) -> Array:
        """The figures (3, 3), about the point that they are about."""
        rows = [
            [self.ixx, self.ixy, self.ixz],
            [self.ixy, self.iyy, self.iyz],
            [self.ixz, self.iyz, self.izz],
        ]
        return np.array(rows)


@dataclass(frozen=True, kw_only=True)
class BodyEntry(Entry):
    """A rigid body."""

    name: str
    mass: Annotated[float, Key("[kg]", minimum=0)]
    com: Annotated[Vector | None, Key("centre of mass in the body frame [m]")] = None
    inertia: InertiaEntry | None = None


@dataclass(frozen=True, kw_only=True)
class FreedomEntry(Entry):
    """What is known of a single degree of freedom."""

    limits: JointLimit | None = None
    drive: DriveSpec | None = None
    locked: Annotated[float | None, Key("position at which the joint is held, as if it were fixed [rad]")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class JointEntry(FreedomEntry):
    """A joint."""

    name: str
    type: Annotated[str, Key(needed=True, enum=[*_KINDS])] = ""
    parent: Annotated[str, Key("body, or world", needed=True)] = ""
    child: Annotated[str, Key("body", needed=True)] = ""
    origin: OriginEntry | None = None
    dh: DhEntry | None = None
    axis: Annotated[Vector | None, Key("in the frame of the child, any length; normal of a planar joint")] = (
        None
    )
    axis_b: Annotated[
        Vector | None, Key("second axis of a universal joint, first direction of a planar one")
    ] = None
    pitch: Annotated[float | None, Key("of a helical joint [m/rad]")] = None
    freedoms: Annotated[
        Mapping[Freedoms, FreedomEntry] | None, Key("what is known of single degrees of freedom")
    ] = None


@dataclass(frozen=True, kw_only=True)
class UrdfJointEntry(FreedomEntry):
    """What a URDF does not say of a joint."""

    name: Annotated[str, Key("joint of the URDF")]


@dataclass(frozen=True, kw_only=True)
class FrameEntry(Entry):
    """A frame fixed to a body."""

    name: str
    body: Annotated[str, _BODY]
    origin: OriginEntry | None = None


@dataclass(frozen=True, kw_only=True)
class LoadEntry(Entry):
    """What the platform carries, in its frame."""

    mass: Annotated[float, Key("[kg]", minimum=0)]
    com: Annotated[Vector, Key("centre of mass in the frame that carries it, by default its origin [m]")] = (
        0.0,
        0.0,
        0.0,
    )
    inertia: Annotated[
        InertiaEntry | None, Key("in axes of that frame, by default that of a point [kg m^2]")
    ] = None


@dataclass(frozen=True, kw_only=True)
class PayloadEntry(LoadEntry):
    """What the robot carries beside its bodies."""

    body: Annotated[str, Key("body or frame that carries it, by default the last body")] = ""


@dataclass(frozen=True, kw_only=True)
class CurveEntry(Entry):
    """Points of a curve, instead of ratio and offset."""

    of: Annotated[tuple[float, ...], Key("positions of the other joint, increasing [rad]")]
    joint: Annotated[tuple[float, ...], Key("positions of the joint that follows there [rad]")]
    degree: Annotated[
        Literal[3, 5, 7, 9, 11, 13, 15],
        Key("of the spline through them, by default 5; efforts of order r need r + 3"),
    ] = 5
    periodic: Annotated[bool, Key("whether the table repeats itself beyond its ends")] = False


@dataclass(frozen=True, kw_only=True)
class CouplingEntry(Entry):
    """A joint that follows another one."""

    joint: Annotated[str, Key("joint that follows")]
    of: Annotated[str, Key("joint that it follows")]
    ratio: Annotated[float, Key("coordinate per coordinate of the other, by default 1")] = 1.0
    offset: Annotated[float, Key("where the other is at zero, by default 0 [rad]")] = 0.0
    polynomial: Annotated[
        tuple[float, ...] | None, Key("instead: coefficients, the constant first [rad/rad^k]")
    ] = None
    table: CurveEntry | None = None


@dataclass(frozen=True, kw_only=True)
class LoopEntry(Entry):
    """Two bodies that are joined besides."""

    name: str = ""
    kind: LoopKind
    a: Annotated[str, Key("body or frame, at whose origin the loop closes, or world")]
    b: Annotated[str, Key("body or frame, whose origin lies there as well, or world")]
    axis: Annotated[Vector, Key("in frame a, by default its z axis")] = (0.0, 0.0, 1.0)
    axis_b: Annotated[Vector, Key("in frame b, by default its z axis")] = (0.0, 0.0, 1.0)
    rows: Annotated[tuple[Row, ...], Key("of the kind rows: what of the pose of b in a does not change")] = ()


@dataclass(frozen=True, kw_only=True)
class PoseRowsEntry(Entry):
    """Body and rows of its pose."""

    body: Annotated[str, Key("body whose pose is given")]
    rows: Annotated[tuple[Row, ...], Key("turns about and shifts along the axes of the given pose")]


@dataclass(frozen=True, kw_only=True)
class RobotFile(Entry):
    """Any robot."""

    name: str = ""
    gravity: Annotated[Vector | None, Key("in the world frame, pointing down [m/s^2]")] = None


@dataclass(frozen=True, kw_only=True)
class TreeFile(RobotFile):
    """A tree, which couplings and loops may make more of."""

    floating_base: bool = False
    joints: Annotated[tuple[JointEntry | UrdfJointEntry, ...], Key("joints")] = ()
    frames: Annotated[tuple[FrameEntry, ...], Key("frames fixed to bodies")] = ()
    payload: PayloadEntry | None = None
    couplings: Annotated[tuple[CouplingEntry, ...], Key("joints that follow others")] = ()
    loops: Annotated[
        tuple[LoopEntry, ...],
        Key("what is joined besides the joints, closed at the zero configuration, or at home"),
    ] = ()
    home: Annotated[
        Mapping[str, float] | None,
        Key("positions by joint near which all loops close, the others near zero [rad or m]"),
    ] = None
    coordinates: Annotated[
        tuple[str | PoseRowsEntry, ...] | None,
        Key("the independent coordinates; by default the driven joints"),
    ] = None
    driven: Annotated[
        tuple[str, ...] | None, Key("joints on which drives act; by default those with a drive")
    ] = None


@dataclass(frozen=True, kw_only=True)
class InlineFile(TreeFile):
    """A robot in one file."""

    name: Annotated[str, Key(needed=True)] = ""
    bodies: Annotated[tuple[BodyEntry, ...], Key("rigid bodies")]
    joints: Annotated[tuple[JointEntry, ...], Key("joints", needed=True)] = ()


@dataclass(frozen=True, kw_only=True)
class UrdfFile(TreeFile):
    """A robot with a URDF, and what that cannot say."""

    urdf: Annotated[str, Key("path, relative to this file")]
    urdf_friction: Annotated[
        bool | None, Key("whether damping and friction of the URDF are the link friction of drives")
    ] = None
    joints: Annotated[
        tuple[UrdfJointEntry, ...],
        Key("limits and drives by joint; limits given here replace those of the URDF"),
    ] = ()


_DRIVEN = Key("whether a motor moves the joint; a drive says so, too")


@dataclass(frozen=True, kw_only=True)
class LimbFreedomEntry(FreedomEntry):
    """What is known of a single degree of freedom of a limb."""

    driven: Annotated[bool | None, _DRIVEN] = None
    locked: None = None


@dataclass(frozen=True, kw_only=True)
class LimbJointEntry(JointEntry):
    """A joint of a limb; a URDF says all but its name."""

    type: Annotated[str, Key(enum=[*_KINDS])] = ""
    parent: Annotated[str, Key("body, or world, the ground of the limb")] = ""
    child: Annotated[str, Key("body, or the platform")] = ""
    driven: Annotated[bool | None, _DRIVEN] = None
    freedoms: Annotated[
        Mapping[Freedoms, LimbFreedomEntry] | None, Key("what is known of single degrees of freedom")
    ] = None
    locked: None = None


@dataclass(frozen=True, kw_only=True)
class LimbTypeEntry(Entry):
    """A chain from the ground to the platform, in a frame of its own."""

    name: str
    bodies: Annotated[tuple[BodyEntry, ...] | None, Key("rigid bodies, without the platform")] = None
    joints: Annotated[
        tuple[LimbJointEntry, ...], Key("joints from world, the ground of the limb, to the platform")
    ]
    urdf: Annotated[str, Key("instead of bodies: path, relative to this file")] = ""


@dataclass(frozen=True, kw_only=True)
class LimbEntry(Entry):
    """A limb where it is built in."""

    name: str
    type: Annotated[str, Key("name of one of limb_types")]
    base: Annotated[Vector, Key("origin of the limb's frame in the world [m]")]
    attachment: Annotated[Vector, Key("where the limb ends, in the frame of the platform [m]")]
    align: Annotated[
        Literal["x", "z"] | None, Key("axis of the limb's frame that points from base to attachment")
    ] = None
    rpy: Annotated[Vector | None, Key("of the limb's frame in the world, instead of align [rad]")] = None


@dataclass(frozen=True, kw_only=True)
class PlatformEntry(BodyEntry):
    """The moving platform, at the home pose."""

    name: str = "platform"
    origin: OriginEntry | None = None
    dof: Annotated[
        tuple[Row, ...],
        Key("turns about and moves along the axes of the platform frame that are possible"),
    ]


@dataclass(frozen=True, kw_only=True)
class LimbsFile(RobotFile):
    """A platform on several limbs."""

    name: Annotated[str, Key(needed=True)] = ""
    platform: PlatformEntry
    payload: LoadEntry | None = None
    limb_types: Annotated[tuple[LimbTypeEntry, ...], Key("limbs as they are built")]
    limbs: Annotated[tuple[LimbEntry, ...], Key("limbs as they are placed")]
