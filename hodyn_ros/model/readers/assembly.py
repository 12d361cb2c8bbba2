"""From links and joints, as files describe them, to a tree of moving bodies."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import FigureWarning, ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.composite_joints import CompositeJoint, between
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.limits import JointLimit
from hodyn_ros.model.loops import Coupling
from hodyn_ros.model.tree import TreeArrays, TreeModel

MOVING_KINDS = ("revolute", "continuous", "prismatic", "helical")
_MOMENTS = 0.01  # share by which figures that were rounded for print may be off
_POINT = 1e-9  # [m^2] moment over mass below which a body is a point, and its inertia rounding


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid part as a file describes it."""

    name: str
    mass: float = 0.0  # [kg]
    com: Array = field(default_factory=lambda: np.zeros(3))  # (3,) in the frame of the link [m]
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))  # about the com, link axes [kg m^2]


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint as a file describes it: the frame of its child on its parent, and how the child moves."""

    name: str
    kind: str  # one of MOVING_KINDS, or "fixed"
    parent: str
    child: str
    placement: Array  # (4, 4) frame of the child in the frame of the parent, at the zero configuration
    axis: Array  # (3,) in the frame of the child, of any length; unused by fixed joints
    pitch: float = 0.0  # of a helical joint [m/rad]
    point: Array = field(default_factory=lambda: np.zeros(3))  # (3,) on the axis, in the child's frame [m]


@dataclass(frozen=True, eq=False)
class Assembly:
    """A tree model, and where every link of its description went."""

    model: TreeModel
    frames: Mapping[str, Frame]  # every link by name, those merged through fixed joints included
    frictions: Mapping[str, FrictionSpec] = field(default_factory=dict)  # of links, by joint, as a URDF says
    couplings: tuple[Coupling, ...] = ()  # of joints that mimic others
    grounded: Mapping[str, float] = field(default_factory=dict)  # masses [kg] of links fixed to the world


def locked(joint: Joint, position: float, limit: JointLimit) -> Joint:
    """Return a joint held at a position [rad or m], as a fixed one; ModelError beyond its limits."""
    if not limit.lower <= position <= limit.upper:
        raise ModelError(
            f"joint {joint.name!r} is locked at {position:g}, beyond its limits {limit.lower:g} to "
            f"{limit.upper:g}"
        )
    screw = _screw(joint, np.eye(4))
    return replace(joint, kind="fixed", placement=joint.placement @ se3.exp_screw(screw, np.array(position)))


def hold_followers(
    held: Mapping[str, float], couplings: Sequence[Coupling]
) -> tuple[dict[str, float], list[Coupling]]:
    """Hold joints that follow held ones as well; return all held ones, and the couplings that are left."""
    positions, left = dict(held), list(couplings)
    for _ in couplings:
        for coupling in list(left):
            if coupling.of in positions and coupling.joint not in positions:
                positions[str(coupling.joint)] = _followed(coupling, positions[str(coupling.of)])
            if coupling.of in positions:
                left.remove(coupling)
    for coupling in left:
        if coupling.joint in held:
            raise ModelError(
                f"joint {coupling.joint!r} is locked, but follows joint {coupling.of!r}, which is not; lock "
                "that one"
            )
    return positions, left


def _followed(coupling: Coupling, position: float) -> float:
    """Return where a joint is that follows another at a position; ModelError beyond its table."""
    if coupling.function is None:
        return coupling.ratio * position + coupling.offset
    if not coupling.function.holds(position):
        raise ModelError(
            f"joint {coupling.of!r} is locked at {position:g}, beyond the table by which joint "
            f"{coupling.joint!r} follows it"
        )
    return float(coupling.function.taylor(position, 1)[0])


def unfold(joint: Joint, composite: CompositeJoint) -> tuple[list[Joint], list[Link]]:
    """Return a joint of several degrees of freedom as joints of one each, and the links between them."""
    joints: list[Joint] = []
    links: list[Link] = []
    parent, placement = joint.parent, joint.placement
    for screw, (name, link) in zip(composite.screws, between(joint.name, composite)):
        child = link or joint.child
        kind, axis = ("revolute", screw[:3]) if screw[:3].any() else ("prismatic", screw[3:])
        joints.append(Joint(name, kind, parent, child, placement, axis, point=np.cross(screw[:3], screw[3:])))
        links += [Link(link)] if link else []
        parent, placement = child, np.eye(4)
    return joints, links


def carrying(model: TreeModel, load: Link, place: Frame) -> TreeModel:
    """Return the model with a load at a frame of one of its bodies, in axes of that frame."""
    body = place.body
    own = Link(model.body_names[body], float(model.masses[body]), model.coms[body], model.inertias[body])
    mass, com, inertia = merged_inertia([(np.eye(4), own), (place.pose, load)])
    masses, coms, inertias = model.masses.copy(), model.coms.copy(), model.inertias.copy()
    masses[body], coms[body], inertias[body] = mass, com, inertia
    return model.with_inertias(masses, coms, inertias)


def assemble(
    name: str,
    links: Sequence[Link],
    joints: Sequence[Joint],
    *,
    gravity: ArrayLike,
    floating_base: bool,
    link_word: str = "link",
    any_rank: bool = False,
    base: Array | None = None,
) -> Assembly:
    """Build the tree model of links and joints.

    Links behind fixed joints are merged into the body that carries them, with their inertia (parallel-axis
    theorem). With a fixed base, the root link and what is fixed to it are the world, and their inertia does
    not count. Bodies and joints come depth first, the joints of one link in the order given, so that a parent
    comes before its children. `any_rank`: whether bodies may lack mass or inertia, as in `TreeModel.build`;
    `base` (4, 4): the pose of a floating root in the world at the zero configuration, by default none.
    Raises ModelError that names the link or joint; `link_word` is what the file calls a link.
    """
    _reject_repeated_names(links, joints, link_word)
    _reject_impossible_numbers(links, joints, link_word)
    outgoing = _joints_by_parent(links, joints, link_word)
    root = _find_root(links, joints, link_word)

    by_name = {link.name: link for link in links}
    builder = _Builder(floating_base)
    builder.place_root(by_name[root], np.eye(4) if base is None else base)
    # A stack, as chains may be longer than Python's recursion limit; reversed, to keep the order of the file.
    stack = list(reversed(outgoing.get(root, [])))
    while stack:
        joint = stack.pop()
        builder.add(joint, by_name[joint.child])
        stack.extend(reversed(outgoing.get(joint.child, [])))
    unreached = [link.name for link in links if link.name not in builder.frames]
    if unreached:
        raise ModelError(
            f"{link_word} {unreached[0]!r} cannot be reached from the root {root!r}: its joints form a "
            "closed loop; cut the loop at one joint"
        )
    if not builder.parents:
        raise ModelError(f"no joint of robot {name!r} moves: all of its joints are fixed, or there are none")
    return Assembly(
        builder.model(name, gravity, any_rank),
        MappingProxyType(builder.frames),
        grounded=MappingProxyType(builder.grounded),
    )


class _Builder:
    """The lists of a tree model under construction."""

    def __init__(self, floating_base: bool) -> None:
        self.floating_base = floating_base
        self.frames: dict[str, Frame] = {}
        self.grounded: dict[str, float] = {}
        self.parents: list[int] = []
        self.screws: list[Array] = []
        self.placements: list[Array] = []
        self.parts: list[list[tuple[Array, Link]]] = []  # per body, its links and their poses in its frame
        self.body_names: list[str] = []
        self.joint_names: list[str] = []

    def place_root(self, link: Link, placement: Array) -> None:
        if self.floating_base:
            self._new_body(-1, np.zeros(6), placement, link)
        else:
            self._ground(link, np.eye(4))

    def _ground(self, link: Link, placement: Array) -> None:
        self.frames[link.name] = Frame(-1, placement)
        if link.mass:
            self.grounded[link.name] = link.mass

    def add(self, joint: Joint, child: Link) -> None:
        body, carrier = self.frames[joint.parent]
        pose = carrier @ joint.placement
        if joint.kind == "fixed":
            if body < 0:
                self._ground(child, pose)
            else:
                self.frames[child.name] = Frame(body, pose)
                self.parts[body].append((pose, child))
            return
        placement = pose if body < 0 else self.placements[body] @ pose
        self.joint_names.append(joint.name)
        self._new_body(body, _screw(joint, placement), placement, child)

    def _new_body(self, parent: int, screw: Array, placement: Array, link: Link) -> None:
        self.frames[link.name] = Frame(len(self.parents), np.eye(4))
        self.parents.append(parent)
        self.screws.append(screw)
        self.placements.append(placement)
        self.parts.append([(np.eye(4), link)])
        self.body_names.append(link.name)

    def model(self, name: str, gravity: ArrayLike, any_rank: bool) -> TreeModel:
        inertias = [merged_inertia(parts) for parts in self.parts]
        arrays = TreeArrays(
            self.parents,
            self.screws,
            self.placements,
            [mass for mass, _, _ in inertias],
            [com for _, com, _ in inertias],
            [inertia for _, _, inertia in inertias],
            self.joint_names,
            self.body_names,
        )
        model = TreeModel.build(arrays, gravity, self.floating_base, name=name, any_rank=any_rank)
        _warn_of_inertias([link for parts in self.parts for _, link in parts])
        return model


def _reject_repeated_names(links: Sequence[Link], joints: Sequence[Joint], link_word: str) -> None:
    for word, parts in ((link_word, links), ("joint", joints)):
        seen: set[str] = set()
        for name in (part.name for part in parts):
            if name in seen:
                raise ModelError(f"{word} {name!r} is described twice; every {word} needs a name of its own")
            seen.add(name)


def _reject_impossible_numbers(links: Sequence[Link], joints: Sequence[Joint], link_word: str) -> None:
    for link in links:
        for what, figure in (("mass", link.mass), ("centre of mass", link.com), ("inertia", link.inertia)):
            if not np.isfinite(figure).all():
                raise ModelError(f"the {what} of {link_word} {link.name!r} is not finite")
        # Checked before merging, which could hide a negative mass in a positive sum.
        if link.mass < 0.0:
            raise ModelError(f"{link_word} {link.name!r} has the negative mass {link.mass:g} kg")
    for joint in joints:
        for what, array in (("origin", joint.placement), ("axis", joint.axis)):
            if not np.isfinite(array).all():
                raise ModelError(f"the {what} of joint {joint.name!r} is not finite")


def _warn_of_inertias(links: Sequence[Link]) -> None:
    """Warn of inertias that no body has, whose largest moment is more than the other two together."""
    odd = []
    for link in links:
        least, middle, most = np.linalg.eigvalsh(link.inertia)
        if least + middle < (1.0 - _MOMENTS) * most - _POINT * link.mass:
            odd.append(f"{link.name!r} ({least:.3g}, {middle:.3g}, {most:.3g} kg m^2)")
    if odd:
        more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
        warnings.warn(
            f"no body has the principal moments of inertia of {', '.join(odd[:3])}{more}: the largest is "
            "more than the other two together. Efforts follow from them as they are; look for a wrong figure "
            "or sign",
            FigureWarning,
            stacklevel=2,
        )


def _joints_by_parent(
    links: Sequence[Link], joints: Sequence[Joint], link_word: str
) -> dict[str, list[Joint]]:
    names = {link.name for link in links}
    carriers: dict[str, str] = {}
    outgoing: dict[str, list[Joint]] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in names:
                known = f"there are {', '.join(sorted(names))}"
                raise ModelError(f"the {role} {link!r} of joint {joint.name!r} does not exist; {known}")
        if joint.child in carriers:
            raise ModelError(
                f"{link_word} {joint.child!r} is the child of two joints, {carriers[joint.child]!r} and "
                f"{joint.name!r}; a tree allows one (cut the loop at one of them)"
            )
        carriers[joint.child] = joint.name
        outgoing.setdefault(joint.parent, []).append(joint)
    return outgoing


def _find_root(links: Sequence[Link], joints: Sequence[Joint], link_word: str) -> str:
    if not links:
        raise ModelError(f"the description holds no {link_word}")
    children = {joint.child for joint in joints}
    roots = [link.name for link in links if link.name not in children]
    if not roots:
        raise ModelError(f"every {link_word} is the child of a joint: a closed loop; cut it at one")
    if len(roots) > 1:
        raise ModelError(
            f"{', '.join(map(repr, roots))} are roots (each a {link_word} that is the child of no joint), "
            "but a tree has one; join the others to it, with fixed joints if need be"
        )
    return roots[0]


def _screw(joint: Joint, placement: Array) -> Array:
    """Return the unit screw (6,) of a joint in the world frame."""
    length = float(np.linalg.norm(joint.axis))
    if not 0.0 < length < np.inf:
        raise ModelError(f"joint {joint.name!r} has the axis {joint.axis.tolist()}, which has no direction")
    axis = placement[:3, :3] @ (joint.axis / length)
    if joint.kind == "prismatic":
        return np.concatenate([np.zeros(3), axis])
    point = placement[:3, :3] @ joint.point + placement[:3, 3]
    return np.concatenate([axis, np.cross(point, axis) + joint.pitch * axis])


def merged_inertia(parts: Sequence[tuple[Array, Link]]) -> tuple[float, Array, Array]:
    """Return mass, com (3,) and inertia about the com (3, 3) of links placed in one body frame."""
    heavy = [(pose, link) for pose, link in parts if link.mass != 0.0 or link.inertia.any()]
    if len(heavy) == 1 and np.array_equal(heavy[0][0], np.eye(4)):
        link = heavy[0][1]  # as written, without rounding
        return link.mass, link.com, link.inertia
    mass = sum(link.mass for _, link in heavy)
    coms = [pose[:3, :3] @ link.com + pose[:3, 3] for pose, link in heavy]
    com = sum((link.mass * c for (_, link), c in zip(heavy, coms, strict=True)), np.zeros(3))
    com = com / mass if mass > 0.0 else com
    inertia = np.zeros((3, 3))
    for (pose, link), c in zip(heavy, coms, strict=True):
        rotation, offset = pose[:3, :3], se3.hat(c - com)
        inertia += rotation @ link.inertia @ rotation.T - link.mass * (offset @ offset)
    return mass, com, 0.5 * (inertia + inertia.T)
