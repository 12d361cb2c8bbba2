"""The keys of robot files: what a YAML file may say of a tree, of a URDF, and of a platform on limbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.model.composite_joints import FREEDOMS
from hodyn_ros.model.drive_spec import DriveChanges, DriveSpec
from hodyn_ros.model.frames import DhConvention, from_dh, from_rpy
from hodyn_ros.model.keys import Entry, key
from hodyn_ros.model.limits import JointLimit
from hodyn_ros.model.loops import LoopKind
from hodyn_ros.model.propeller import PropellerLimits
from hodyn_ros.model.readers.assembly import MOVING_KINDS
from hodyn_ros.model.uncertainty import RobotUncertainty

Vector = tuple[float, float, float]
Row = Literal["rx", "ry", "rz", "x", "y", "z"]
Freedom = Literal["r1", "r2", "x", "y", "z", "rx", "ry", "rz"]
_ZERO, _Z = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
_KINDS = [*MOVING_KINDS, "fixed", *FREEDOMS]


class OriginEntry(Entry):
    """Pose as in URDF."""

    xyz: Vector = key("[m]", default=_ZERO)
    rpy: Vector = key("about the fixed axes x, y, z [rad]", default=_ZERO)

    @property
    def placement(self) -> Array:
        """The pose (4, 4)."""
        return from_rpy(np.array(self.xyz), np.array(self.rpy))


class DhEntry(Entry):
    """Parameters of Denavit and Hartenberg."""

    convention: DhConvention = key(
        "standard: RotZ(q + theta) TransZ(d) TransX(a) RotX(alpha), the joint at the frame of the parent; "
        "modified, Craig's: RotX(alpha) TransX(a) RotZ(q + theta) TransZ(d), the joint at that of the child"
    )
    a: float = key("[m]")
    alpha: float = key("[rad]")
    d: float = key("[m]; of a prismatic joint where it is at zero")
    theta: float = key("of a revolute joint where it is at zero [rad]", default=0.0)

    @property
    def placements(self) -> tuple[Array, Array]:
        """The poses (4, 4) of the child and of the joint on the parent."""
        return from_dh(self.convention, self.a, self.alpha, self.d, self.theta)


class InertiaEntry(Entry):
    """Inertia in body axes [kg m^2]."""

    about: Literal["com", "origin"] = key(
        "the point that the inertia is about: centre of mass or origin of the body frame"
    )
    ixx: float = key("[kg m^2]")
    ixy: float = key("[kg m^2]")
    ixz: float = key("[kg m^2]")
    iyy: float = key("[kg m^2]")
    iyz: float = key("[kg m^2]")
    izz: float = key("[kg m^2]")

    @property
    def matrix(self) -> Array:
        """The figures (3, 3), about the point that they are about."""
        rows = [
            [self.ixx, self.ixy, self.ixz],
            [self.ixy, self.iyy, self.iyz],
            [self.ixz, self.iyz, self.izz],
        ]
        return np.array(rows)


class BodyEntry(Entry):
    """A rigid body."""

    name: str
    mass: float = key("[kg]", least=0)
    com: Vector | None = key("centre of mass in the body frame [m]", default=None)
    inertia: InertiaEntry | None = None


class FreedomEntry(Entry):
    """What is known of a single degree of freedom."""

    limits: JointLimit | None = None
    drive: DriveSpec | None = None
    locked: float | None = key("position at which the joint is held, as if it were fixed [rad]", default=None)


class JointEntry(FreedomEntry):
    """A joint."""

    name: str
    type: str = key(enum=_KINDS)
    parent: str = key("body, or world")
    child: str = key("body")
    origin: OriginEntry | None = None
    dh: DhEntry | None = None
    axis: Vector | None = key("in the frame of the child, any length; normal of a planar joint", default=None)
    axis_b: Vector | None = key(
        "second axis of a universal joint, first of a planar one; of a rolling one from the axis of the "
        "parent's cylinder to that of the child's, which is at the origin of the child's frame",
        default=None,
    )
    radii: tuple[float, float] | None = key(
        "of the parent's and the child's cylinder of a rolling joint [m]", default=None
    )
    pitch: float | None = key("of a helical joint [m/rad]", default=None)
    freedoms: Mapping[Freedom, FreedomEntry] = key("what is known of single degrees of freedom", default=None)


class UrdfJointEntry(FreedomEntry):
    """What a URDF does not say of a joint."""

    name: str = key("joint of the URDF")


class MjcfJointEntry(UrdfJointEntry):
    """What an MJCF does not say of a joint, or says otherwise."""

    name: str = key("joint of the MJCF")
    drive: DriveChanges | None = None


class FrameEntry(Entry):
    """A frame fixed to a body."""

    name: str
    body: str = key("body or frame that carries it, or world")
    origin: OriginEntry = OriginEntry()


class LoadEntry(Entry):
    """What the platform carries, in its frame."""

    mass: float = key("[kg]", least=0)
    com: Vector = key("centre of mass in the frame that carries it, by default its origin [m]", default=_ZERO)
    inertia: InertiaEntry | None = key(
        "in axes of that frame, by default that of a point [kg m^2]", default=None
    )


class PayloadEntry(LoadEntry):
    """What the robot carries beside its bodies."""

    body: str = key("body or frame that carries it, by default the last body", default="")


class PropellerEntry(Entry):
    """A propeller of a floating base: its thrust is along the z axis of its frame."""

    name: str
    frame: str = key("frame on the base that origin is given in, by default the base", default="")
    origin: OriginEntry = OriginEntry()
    drag: float = key("torque on the base about z per thrust, with its sign [m]", default=0.0)
    tilts: bool = key("whether a servo turns it about its x axis", default=False)
    coefficient: float | None = key(
        "thrust per squared speed, which the speed is computed from [N·s^2/rad^2]", above=0, default=None
    )
    limits: PropellerLimits = PropellerLimits()


class CurveEntry(Entry):
    """Points of a curve, instead of ratio and offset."""

    of: tuple[float, ...] = key("positions of the other joint, increasing [rad]")
    joint: tuple[float, ...] = key("positions of the joint that follows there [rad]")
    degree: Literal[3, 5, 7, 9, 11, 13, 15] = key(
        "of the spline through them, by default 5; efforts of order r need r + 3", default=5
    )
    periodic: bool = key("whether the table repeats itself beyond its ends", default=False)


class CouplingEntry(Entry):
    """A joint that follows another one."""

    joint: str = key("joint that follows")
    of: str = key("joint that it follows")
    ratio: float = key("coordinate per coordinate of the other, by default 1", default=1.0)
    offset: float = key("where the other is at zero, by default 0 [rad]", default=0.0)
    polynomial: tuple[float, ...] | None = key(
        "instead: coefficients, the constant first [rad/rad^k]", default=None
    )
    table: CurveEntry | None = None


class LoopEntry(Entry):
    """Two bodies that are joined besides."""

    name: str = ""
    kind: LoopKind
    a: str = key("body or frame, at whose origin the loop closes, or world")
    b: str = key("body or frame, whose origin lies there as well, or world")
    axis: Vector = key("in frame a, by default its z axis", default=_Z)
    axis_b: Vector = key("in frame b, by default its z axis", default=_Z)
    rows: tuple[Row, ...] = key("of the kind rows: what of the pose of b in a does not change", default=())
    length: float | None = key(
        "of a rod, needed with home; by default the distance of its ends at zero [m]", above=0, default=None
    )


class PoseRowsEntry(Entry):
    """Body and rows of its pose."""

    body: str = key("body whose pose is given")
    rows: tuple[Row, ...] = key("turns about and shifts along the axes of the given pose")


class RobotFile(Entry):
    """Any robot."""

    name: str
    gravity: Vector | None = key("in the world frame, pointing down [m/s^2]", default=None)
    uncertainty: RobotUncertainty = RobotUncertainty()


class TreeFile(RobotFile):
    """A tree, which couplings and loops may make more of."""

    floating_base: bool = False
    joints: tuple[JointEntry | UrdfJointEntry, ...] = ()
    limits: JointLimit | None = key("of all joints, where those of one do not say more", default=None)
    drive: DriveSpec | None = key("of all driven joints without a drive of their own", default=None)
    frames: tuple[FrameEntry, ...] = key("frames fixed to bodies", default=())
    payload: PayloadEntry | None = None
    propellers: tuple[PropellerEntry, ...] = key(
        "of a floating base: thrusts are computed from the wrench that it needs", default=()
    )
    couplings: tuple[CouplingEntry, ...] = key("joints that follow others", default=())
    loops: tuple[LoopEntry, ...] = key(
        "what is joined besides the joints, closed at the zero configuration, or at home", default=()
    )
    home: Mapping[str, float] | None = key(
        "positions by joint near which all loops close, the others near zero [rad or m]", default=None
    )
    coordinates: tuple[str | PoseRowsEntry, ...] | None = key(
        "the independent coordinates; by default the driven joints", default=None
    )
    driven: tuple[str, ...] | None = key(
        "joints on which drives act; by default those with a drive", default=None
    )


class InlineFile(TreeFile):
    """A robot in one file."""

    bodies: tuple[BodyEntry, ...] = key("rigid bodies")
    joints: tuple[JointEntry, ...] = key("joints")


class UrdfFile(TreeFile):
    """A robot with a URDF, and what that cannot say."""

    name: str = ""
    urdf: str = key("path, relative to this file")
    urdf_friction: bool | None = key(
        "whether damping and friction of the URDF are the link friction of drives", default=None
    )
    bodies: tuple[BodyEntry, ...] = key("links whose mass and inertia the URDF has otherwise", default=())
    joints: tuple[UrdfJointEntry, ...] = key(
        "limits and drives by joint; limits given here replace those of the URDF", default=()
    )


class MjcfFile(TreeFile):
    """A robot with an MJCF, and what that cannot say."""

    name: str = ""
    mjcf: str = key("path, relative to this file", default="", needed=True)
    root: str | None = key(
        "body to read with all that it carries, where several robots or objects move in the MJCF",
        default=None,
    )
    keyframe: str | None = key("of the MJCF, at which loops close; by default qpos0", default=None)
    mjcf_friction: bool | None = key(
        "whether damping and dry friction of the MJCF are those of drives", default=None
    )
    floating_base: bool = key(
        "false holds a body with a free joint where it is at home; only a free joint lets it float",
        default=True,
    )
    home: None = None
    bodies: tuple[BodyEntry, ...] = key("bodies whose mass and inertia the MJCF has otherwise", default=())
    joints: tuple[MjcfJointEntry, ...] = key(
        "limits and drives by joint; figures given here replace those of the MJCF", default=()
    )
    drive: DriveChanges | None = key("the same of all driven joints", default=None)


class LimbFreedomEntry(FreedomEntry):
    """What is known of a single degree of freedom of a limb."""

    driven: bool | None = key("whether a motor moves the joint; a drive says so, too", default=None)
    locked: None = None


class LimbJointEntry(LimbFreedomEntry, JointEntry):
    """A joint of a limb; a URDF says all but its name."""

    type: str = key(enum=_KINDS, default="")
    parent: str = key("body, or world, the ground of the limb", default="")
    child: str = key("body, or the platform", default="")
    freedoms: Mapping[Freedom, LimbFreedomEntry] = key(
        "what is known of single degrees of freedom", default=None
    )


class LimbTypeEntry(Entry):
    """A chain from the ground to the platform, in a frame of its own."""

    name: str
    bodies: tuple[BodyEntry, ...] | None = key("rigid bodies, without the platform", default=None)
    joints: tuple[LimbJointEntry, ...] = key("joints from world, the ground of the limb, to the platform")
    urdf: str = key("instead of bodies: path, relative to this file", default="")


class LimbEntry(Entry):
    """A limb where it is built in."""

    name: str
    type: str = key("name of one of limb_types")
    base: Vector = key("origin of the limb's frame in the world [m]")
    attachment: Vector = key("where the limb ends, in the frame of the platform [m]")
    align: Literal["x", "z"] | None = key(
        "axis of the limb's frame that points from base to attachment", default=None
    )
    rpy: Vector | None = key("of the limb's frame in the world, instead of align [rad]", default=None)


class PlatformEntry(BodyEntry):
    """The moving platform, at the home pose."""

    name: str = "platform"
    origin: OriginEntry = OriginEntry()
    dof: tuple[Row, ...] = key("turns about and moves along the axes of the platform frame that are possible")


class PlacedJointEntry(UrdfJointEntry):
    """What is known of a driven joint where its limb is built in, beside what the type of the limb says."""

    name: str = key("limb and joint, such as leg1_slide")
    locked: None = None


class LimbsFile(RobotFile):
    """A platform on several limbs."""

    platform: PlatformEntry
    payload: LoadEntry | None = None
    limb_types: tuple[LimbTypeEntry, ...] = key("limbs as they are built")
    limbs: tuple[LimbEntry, ...] = key("limbs as they are placed")
    limits: JointLimit | None = key("of all driven joints, where those of one do not say more", default=None)
    drive: DriveSpec | None = key("of all driven joints without a drive of their own", default=None)
    joints: tuple[PlacedJointEntry, ...] = key(
        "limits and drives by driven joint; what is given here goes before that of its limb type", default=()
    )
