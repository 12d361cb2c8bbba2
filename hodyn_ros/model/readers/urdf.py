"""Read robots from URDF."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import FigureWarning, InputError, ModelError, nearest
from hodyn_ros.model.composite_joints import FREEDOMS, of_kind
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.model.frames import from_rpy
from hodyn_ros.model.limits import JointLimit, JointLimits
from hodyn_ros.model.loops import Coupling
from hodyn_ros.model.readers.assembly import Assembly, Joint, Link, assemble, hold_followers, locked, unfold
from hodyn_ros.model.readers.files import MEGABYTE, read_file

URDF_SUFFIXES = (".urdf", ".xml", ".xacro", ".sdf")  # of files taken for URDF, some to be told what they are
GRAVITY = (0.0, 0.0, -9.81)  # URDF does not say it
MOST_BYTES = 32 * MEGABYTE

# What dynamics needs of a URDF. The rest (meshes, gazebo, ros2_control, transmissions, ...) never reaches the
# library, which would complain about it on stderr or fail on it.
_ELEMENTS = {
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "axis", "parent", "child", "limit", "dynamics"),
}
_ATTRIBUTES = {
    "link": ("name",),
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "parent": ("link",),
    "child": ("link",),
    "limit": ("lower", "upper", "velocity", "effort"),
    "dynamics": ("damping", "friction"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
}
# The library reads these as the text "None", or fails without saying where, when they are missing.
_REQUIRED = {
    "link": ("name",),
    "joint": ("name", "type"),
    "axis": ("xyz",),
    "parent": ("link",),
    "child": ("link",),
    "mass": ("value",),
    "limit": ("effort", "velocity"),
}
# What Drake, Isaac Sim and Gazebo read besides, and that changes efforts.
_BESIDE = (
    *("loop_joint", "ball_constraint", "force_element", "rotor_inertia", "springStiffness"),
    *("linear_bushing_rpy", "linear_spring_damper"),
)
_KINDS = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")
_XACRO_HINT = "this is xacro, not URDF: expand it first (xacro robot.urdf.xacro > robot.urdf)"


def read_urdf_assembly(
    path_or_xml: str | os.PathLike[str],
    floating_base: bool = False,
    held: Mapping[str, float] | None = None,
    described: Mapping[str, Link] | None = None,
    *,
    mimic: bool = True,
) -> tuple[Assembly, JointLimits]:
    """Read a URDF file, or the text of one, with the places of all links and its friction.

    `path_or_xml` is a path, or text that starts with "<". Revolute, continuous, prismatic and fixed joints;
    planar and floating ones as three and six of these, "joint_x", "joint_y", ... with links without mass
    between, and without the limits and the friction of a URDF, which know one unit. Links behind fixed joints
    are merged into the body that carries them. Joints come depth first from the root, the joints of one link
    in the order of the file. With `floating_base` the root link is body 0, else it is the world and its
    inertia does not count. Where the only joint of a root without inertia is floating, `floating_base` makes
    its child body 0. Gravity is (0, 0, -9.81) m/s^2.

    Limits come from `<limit>`. As exporters write zeros where they know nothing, a velocity or effort of zero
    and a range from zero to zero mean no limit. All that is not a link or a joint is ignored.

    Joints `held` at a position [rad or m], by name, are fixed there, and with them those that mimic them.
    `described`: links, by name, that are otherwise than the URDF has them. `mimic`: whether joints that mimic
    others become couplings, or move by themselves. Bodies may lack mass or inertia: who builds the robot
    checks that none is missing. Warns (FigureWarning) of loops, springs and rotors that other programs add.

    Raises ModelError that names the link or joint at fault: broken XML, xacro that was not expanded, closed
    loops, several roots, missing or impossible numbers.
    """
    text, source = _text_of(path_or_xml)
    try:
        root = parse_urdf(text)
        if beside := _beside(root):
            more = f" and {len(beside) - 3} more" if beside[3:] else ""
            warnings.warn(
                f"{source}: elements {', '.join(beside[:3])}{more} of other programs change efforts, and are "
                "not read; loops go under `loops` of a robot file, springs and rotors under `drive`",
                FigureWarning,
                stacklevel=4,
            )
        return _read(root, floating_base, held or {}, described or {}, mimic)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from error


def _text_of(path_or_xml: str | os.PathLike[str]) -> tuple[str | bytes, str]:
    if not isinstance(path_or_xml, (str, os.PathLike)):
        raise InputError(f"a URDF comes as a path or as text, not as {type(path_or_xml).__name__}")
    if isinstance(path_or_xml, str):
        text = path_or_xml.lstrip("\ufeff \t\r\n")
        if text.startswith("<"):
            return text, "URDF"
    try:
        return read_file(path_or_xml, MOST_BYTES, "the URDF"), f"URDF {os.fspath(path_or_xml)}"
    except ModelError as error:
        hint = " (text of a URDF must start with '<')" if error.__cause__ is not None else ""
        raise ModelError(f"{error}{hint}") from error


def _beside(root: Element) -> list[str]:
    """Return what else of a file changes efforts, each once."""
    found = [element for element in root.iter() if element.tag.rpartition("}")[2] in _BESIDE]
    found += [joint for joint in root.iter() if "drake" in joint.tag and joint.tag.endswith("}joint")]
    found += root.findall("gazebo/joint")
    shown = (f"{each.tag.rpartition('}')[2]} {each.get('name') or ''}".strip() for each in found)
    return [f"<{words}>" for words in dict.fromkeys(shown)]


def _read(
    root: Element,
    floating_base: bool,
    held: Mapping[str, float],
    replaced: Mapping[str, Link],
    mimic: bool,
) -> tuple[Assembly, JointLimits]:
    couplings = _couplings(root) if mimic else []
    held, couplings = hold_followers(held, couplings)
    links = [
        replaced.get(element.get("name", "")) or _link(element) for element in root if element.tag == "link"
    ]
    known = [link.name for link in links]
    for name in replaced:
        if name not in known:
            raise ModelError(f"there is no link {name!r}; {nearest(name, known)}")
    joints: list[Joint] = []
    limits: dict[str, JointLimit] = {}
    frictions: dict[str, FrictionSpec] = {}
    if floating_base:
        _free_root(root, links)
    for element in root:
        if element.tag == "joint":
            described, limit, friction = _joint(element)
            parts = [described]
            if described.kind in FREEDOMS:
                parts, between = unfold(described, of_kind(described.kind, _normal(described)))
                links += between
            for joint in parts:
                if joint.name in held and joint.kind != "fixed":
                    joint = locked(joint, held[joint.name], limit)
                joints.append(joint)
                limits[joint.name], frictions[joint.name] = limit, friction
    for name in held:
        if name not in limits:
            raise ModelError(f"there is no joint {name!r} to lock; it has {list(limits)}")
    name = root.get("name") or "robot"
    assembly = assemble(name, links, joints, gravity=GRAVITY, floating_base=floating_base, any_rank=True)
    assembly = replace(assembly, frictions=frictions, couplings=tuple(couplings))
    names = assembly.model.joint_names
    return assembly, JointLimits.of(names, [limits[name] for name in names])


def _normal(joint: Joint) -> Array | None:
    """Return the axis of a planar joint, normal to its plane; a floating one has none."""
    if joint.kind == "floating":
        return None
    if not joint.axis.any():
        raise ModelError(f"joint {joint.name!r} has the axis {joint.axis.tolist()}, which has no direction")
    return joint.axis


def _free_root(root: Element, links: list[Link]) -> None:
    """Leave out a root link without inertia that carries the base on a floating joint, and that joint."""
    joints = [element for element in root if element.tag == "joint"]
    ends = [[joint.find(end) for joint in joints] for end in ("parent", "child")]
    parents, children = ([None if end is None else end.get("link") for end in side] for side in ends)
    for joint, parent in zip(joints, parents):
        bare = [link for link in links if link.name == parent and link.mass == 0.0 and not link.inertia.any()]
        alone = parents.count(parent) == 1 and parent not in children
        if joint.get("type") == "floating" and bare and alone:
            root.remove(joint)
            links.remove(bare[0])


def _couplings(root: Element) -> list[Coupling]:
    """Read which joints mimic others; what a fixed joint should mimic is of no effect."""
    kinds = {joint.get("name"): joint.get("type") for joint in root if joint.tag == "joint"}
    couplings = []
    for joint in root:
        mimic = joint.find("mimic") if joint.tag == "joint" else None
        if mimic is None or joint.get("type") == "fixed":
            continue
        label, of = f"joint {joint.get('name')!r}", mimic.get("joint")
        if of not in kinds:
            near = difflib.get_close_matches(str(of), [str(name) for name in kinds], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ModelError(
                f"{label} mimics joint {of!r}, which does not exist{hint} (mimic=False of Robot.from_urdf "
                "lets all joints move by themselves)"
            )
        if kinds[of] == "fixed":
            raise ModelError(f"{label} mimics joint {of!r}, which is fixed; make it fixed as well")
        for name, kind in ((joint.get("name"), joint.get("type")), (of, kinds[of])):
            if kind in FREEDOMS:
                raise ModelError(
                    f"{label} mimics joint {of!r}, but joint {name!r} is {kind}, of several degrees of "
                    "freedom; couple one of these in a robot file (mimic=False lets all joints move by "
                    "themselves)"
                )
        figures = []
        for key, default in (("multiplier", "1"), ("offset", "0")):
            try:
                figures.append(float(mimic.get(key, default)))
            except ValueError:
                raise ModelError(
                    f"{label}: the {key} {mimic.get(key)!r} of its <mimic> is not a number"
                ) from None
        couplings.append(Coupling(str(joint.get("name")), str(of), figures[0], figures[1]))
    return couplings


def parse_urdf(text: str | bytes) -> Element:
    """Return the outermost element of a URDF; ModelError where it is none."""
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # the latter two: unknown encodings
        hint = f" ({_XACRO_HINT})" if "unbound prefix" in str(error) else ""
        raise ModelError(f"not well-formed XML: {error}{hint}") from error
    if root.tag.startswith("{"):  # a default namespace on <robot> covers links and joints alike
        namespace = root.tag[: root.tag.index("}") + 1]
        for element in root.iter():
            element.tag = element.tag.removeprefix(namespace)
    if root.tag != "robot":
        hint = "; SDF is not read, convert it to URDF or MJCF" if root.tag == "sdf" else ""
        raise ModelError(f"the outermost element is <{root.tag}>; a URDF has <robot>{hint}")
    for element in root.iter():
        if element.tag.startswith("{") and "xacro" in element.tag:
            raise ModelError(f"found <xacro:{element.tag.rpartition('}')[2]}>; {_XACRO_HINT}")
    return root


def _link(element: Element) -> Link:
    label = f"link {element.get('name')!r}"
    link = _through_library(element, label).links[0]
    if link.inertial is None:
        return Link(link.name)
    inertial = link.inertial
    origin = _origin(inertial.origin, label)
    inertia = np.zeros((3, 3)) if inertial.inertia is None else np.array(inertial.inertia.to_matrix())
    rotation = origin[:3, :3]
    if not np.array_equal(rotation, np.eye(3)):
        inertia = rotation @ inertia @ rotation.T
        inertia = 0.5 * (inertia + inertia.T)
    return Link(link.name, float(inertial.mass), origin[:3, 3], inertia)


def _joint(element: Element) -> tuple[Joint, JointLimit, FrictionSpec]:
    label = f"joint {element.get('name')!r}"
    kind = element.get("type")
    if kind is not None and kind not in _KINDS:
        raise ModelError(f"{label} is of the unknown type {kind!r}; known: {', '.join(_KINDS)}")
    joint = _through_library(element, label).joints[0]
    axis = np.array([1.0, 0.0, 0.0]) if joint.axis is None else _vector(joint.axis, f"{label}: axis")
    placement = _origin(joint.origin, label)
    described = Joint(joint.name, joint.type, joint.parent, joint.child, placement, axis)
    return described, _limit(joint, label), _friction(joint, label)


def _friction(joint: Any, label: str) -> FrictionSpec:
    if joint.type in FREEDOMS:
        return FrictionSpec()
    coefficients = (joint.dynamics.damping, joint.dynamics.friction) if joint.dynamics is not None else ()
    damping, friction = (float(value or 0.0) for value in coefficients or (0.0, 0.0))
    for key, figure in (("damping", damping), ("friction", friction)):
        if not 0.0 <= figure < np.inf:
            raise ModelError(f"{label}: its {key} is {figure:g}; make it finite and not negative")
    return FrictionSpec(viscous=damping, coulomb=friction)


def _limit(joint: Any, label: str) -> JointLimit:
    if joint.limit is None or joint.type == "fixed" or joint.type in FREEDOMS:
        return JointLimit()
    figures = {key: float(getattr(joint.limit, key)) for key in ("lower", "upper", "velocity", "effort")}
    for key, figure in figures.items():
        if np.isnan(figure):
            raise ModelError(f"{label}: the {key} of its limit is not a number")
    ranged = joint.type != "continuous" and (figures["lower"], figures["upper"]) != (0.0, 0.0)
    return JointLimit(
        lower=figures["lower"] if ranged else -np.inf,
        upper=figures["upper"] if ranged else np.inf,
        velocity=figures["velocity"] or np.inf,
        effort=figures["effort"] or np.inf,
    )


def _origin(origin: Any, label: str) -> Array:
    if origin is None:
        return np.eye(4)
    return from_rpy(_vector(origin.xyz, f"{label}: origin xyz"), _vector(origin.rpy, f"{label}: origin rpy"))


def _vector(values: Sequence[float], label: str) -> Array:
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (3,):
        raise ModelError(f"{label} must hold three numbers, found {len(vector)}")
    if not np.isfinite(vector).all():
        raise ModelError(f"{label} is {vector.tolist()}; all numbers must be finite")
    return vector


def _through_library(element: Element, label: str) -> Any:
    """Let the library read one link or joint on its own, so that an error can name it."""
    from urdf_parser_py.urdf import URDF

    document = Element("robot", name="robot")
    document.append(_needed(element, label))
    try:
        return URDF.from_xml_string(ElementTree.tostring(document, encoding="unicode"))
    except Exception as error:  # the library raises bare Exception, AssertionError, TypeError and more
        reason = " ".join(str(getattr(error, "e", error)).split())
        # The library says where, except for these two, which it reads without keeping their place.
        unplaced = "axis" if element.tag == "joint" else "inertial/mass"
        place = str(getattr(error, "path", "")).rpartition("']/")[2] or unplaced
        raise ModelError(f"{label}: {reason} (in {place})") from error


def _needed(element: Element, label: str) -> Element:
    """Copy what dynamics needs of an element."""
    for attribute in _REQUIRED.get(element.tag, ()):
        if not element.get(attribute):
            hint = "; 0 says that none is known" if element.tag == "limit" else ""
            raise ModelError(f"{label}: <{element.tag}> needs the attribute {attribute!r}{hint}")
    if element.tag == "origin" and element.get("quat_xyzw") is not None:
        raise ModelError(f"{label}: quat_xyzw in <origin> is not supported; give the rotation as rpy")
    copy = Element(element.tag)
    for attribute in _ATTRIBUTES.get(element.tag, ()):
        value = element.get(attribute)
        if value is not None:
            if "${" in value or "$(" in value:
                raise ModelError(f"{label}: <{element.tag} {attribute}={value!r}>; {_XACRO_HINT}")
            copy.set(attribute, value)
    for child in element:
        if child.tag in _ELEMENTS.get(element.tag, ()):
            if copy.find(child.tag) is not None:
                raise ModelError(f"{label} holds <{child.tag}> twice")
            copy.append(_needed(child, label))
    return copy
