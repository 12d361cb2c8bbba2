"""A robot as a model of MuJoCo, with motors and springs: for a simulator that shares no code with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from scipy.spatial.transform import Rotation

from hodyn_ros.actuation.friction import Friction
from hodyn_ros.actuation.joint_drive import JointDrive
from hodyn_ros.actuation.springs.damped_spring import DampedSpring
from hodyn_ros.actuation.springs.linear_spring import LinearSpring
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export.mjcf_own_keys import own_keys
from hodyn_ros.lie.se3 import Array, inverse
from hodyn_ros.model.closure import Closure, PlacedLoop
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.readers.mjcf import OWN_KEYS
from hodyn_ros.model.tree import JointKind, TreeModel

MOTOR = "_motor"  # what the names of motors on springs end with
_TYPES = {JointKind.REVOLUTE: "hinge", JointKind.PRISMATIC: "slide"}
_QUARTIC = 5  # coefficients of the polynomials that couple joints in MuJoCo
_LEAST = 1e-6  # mass of a body without, of that of the robot; inertia about an axis without, of the largest
_FLAT = 1e-12  # share by which the largest moment of inertia stays below the other two together
_RADIUS = 0.02  # of the lines that bodies are drawn as, of the size of the robot
_ROUNDING = 1e-12  # of the size of the robot
_PERIOD = 2.5e-4  # [s]
_FRICTION = {"viscous", "coulomb", "transition"}  # what MuJoCo has of it; of the transition a note speaks


@dataclass(frozen=True)
class Mjcf:
    """The text of a model, and what it does not say as the robot does."""

    text: str
    notes: tuple[str, ...]


def mjcf(robot: Robot) -> Mjcf:
    """Write a robot with its drives, couplings and loops as MJCF.

    Bodies and joints keep their names. The motor of a spring is a body of its own on the ground, so that it
    has the kinetic energy of its own rotation alone (Spong's model), and is tied to its link by a tendon with
    the stiffness and damping of the spring; it is called after its joint with "_motor", and its coordinate is
    reflected to the link side. The inertia of a rigid motor is the armature of its joint. Actuators are
    called after the joints that they drive, in the order of `robot.driven_joints`. Where couplings or loops
    close at other positions than zero, the keyframe "home" has them. What MJCF has no word for and a robot
    file has, such as bodies without mass or limits of velocity, stands in a <text> with which
    `Robot.from_mjcf` reads the same robot again.

    Raises InputError that names the joint, body or loop for which MJCF has no word: helical joints, springs
    that are not linear, motors that turn with a body, tables that couple joints, loops of the kinds
    universal, cylinder, slider and rows.
    """
    return _Writer(robot).written()


@dataclass
class _Writer:
    robot: Robot
    notes: list[str] = field(default_factory=list)
    made_up: list[int] = field(default_factory=list)  # bodies with other mass or inertia than the robot's

    def __post_init__(self) -> None:
        self.tree, self.closure = self.robot.tree, self.robot.structure
        self.root = Element("mujoco", model=self.robot.name)
        self.drives = self._drives()

    def written(self) -> Mjcf:
        SubElement(self.root, "compiler", angle="radian", autolimits="true")
        SubElement(
            self.root,
            "option",
            gravity=_numbers(self.tree.gravity),
            timestep=_number(_PERIOD),
            integrator="implicitfast",
        )
        default = SubElement(self.root, "default")
        SubElement(default, "geom", contype="0", conaffinity="0", group="1", rgba="0.4 0.5 0.6 1")
        # dry friction is to act in full from speeds on that are small
        SubElement(default, "joint", solreffriction=f"{_number(2.0 * _PERIOD)} 1")
        SubElement(default, "equality", solref=f"{_number(8.0 * _PERIOD)} 1", solimp="0.9999 0.9999 0.001")
        world = SubElement(self.root, "worldbody")
        elements = self._bodies(world)
        self._motors(world)
        self._loops([world, *elements])
        self._couplings()
        self._home()
        self._own_keys()
        ElementTree.indent(self.root)
        return Mjcf(ElementTree.tostring(self.root, encoding="unicode") + "\n", tuple(self.notes))

    # bodies and their joints

    def _bodies(self, world: Element) -> list[Element]:
        """Write the tree; return the element that each body of it is in."""
        tree = self.tree
        elements: list[Element] = []
        carried = [self._carried_by_one(body) for body in range(tree.n_bodies)]
        frames = [np.eye(4)] * tree.n_bodies  # of the elements
        for body, parent in enumerate(tree.parents):
            if parent >= 0 and carried[parent]:  # joins its joint to those of the body without mass
                element = elements[parent]
                element.set("name", tree.body_names[body])
                frames[body] = frames[parent]
            else:
                above = world if parent < 0 else elements[parent]
                last = body
                while carried[last]:
                    (last,) = tree.children[last]
                frames[body] = tree.placements[last]
                at = frames[body] if parent < 0 else inverse(frames[parent]) @ frames[body]
                element = SubElement(above, "body", name=tree.body_names[body], pos=_numbers(at[:3, 3]))
                element.set("quat", _numbers(_quaternion(at[:3, :3])))
            elements.append(element)
            self._joint(element, body, frames[body])
            if not carried[body]:
                self._inertial(element, body)
                self._lines(element, body)
        return elements

    def _carried_by_one(self, body: int) -> bool:
        """Whether a body has no mass and carries one other, as those between the joints of a universal."""
        tree = self.tree
        return self._massless(body) and len(tree.children[body]) == 1

    @cached_property
    def _on_ground(self) -> set[int]:
        """The bodies that loops weld to the ground."""
        sides = [(loop.a.body, loop.b.body) for loop in self.closure.loops if loop.kind == "weld"]
        return {max(pair) for pair in sides if min(pair) < 0}

    def _massless(self, body: int) -> bool:
        return not self.tree.masses[body] and not self.tree.inertias[body].any()

    def _joint(self, element: Element, body: int, frame: Array) -> None:
        tree, kind = self.tree, self.tree.kinds[body]
        if kind is JointKind.BASE:
            SubElement(element, "freejoint", name=f"{tree.body_names[body]}_free")
            return
        joint = body - tree.first_jointed_body
        name = tree.joint_names[joint]
        if kind not in _TYPES:
            raise InputError(f"joint {name!r} is {kind.value}, which MuJoCo has no joint for")
        turn, slide = tree.screws[body, :3], tree.screws[body, 3:]
        rotation, origin = frame[:3, :3], frame[:3, 3]
        written = SubElement(element, "joint", name=name, type=_TYPES[kind])
        if kind is JointKind.REVOLUTE:
            written.set("pos", _numbers(rotation.T @ (np.cross(turn, slide) - origin)))
        written.set("axis", _numbers(rotation.T @ (turn if turn.any() else slide)))
        self._limit(written, name)
        drive = self.drives.get(name)
        if drive is not None:
            _rub(written, *([drive.motor_friction] if drive.rigid else []), drive.link_friction)
            if drive.rigid:
                written.set("armature", _number(drive.motor_inertias[0]))

    def _limit(self, written: Element, name: str) -> None:
        robot = self.robot
        if name in robot.driven_joints:
            limit = robot.limits.row(robot.driven_joints.index(name))
        elif name in robot.joint_names:
            limit = robot.coordinate_limits.row(robot.joint_names.index(name))
        else:
            return
        if np.isfinite([limit.lower, limit.upper]).all() and limit.lower < limit.upper:
            written.set("range", _numbers([limit.lower, limit.upper]))

    def _inertial(self, element: Element, body: int) -> None:
        tree, name = self.tree, self.tree.body_names[body]
        mass, inertia = tree.masses[body], tree.inertias[body]
        if self._massless(body):
            # what is welded to the ground does not move; a light body would let its weld give way, which in
            # MuJoCo is as soft as what it holds is light, under the torque of a spring that acts on it
            mass = (1.0 if body in self._on_ground else _LEAST) * tree.masses.sum()
            inertia = mass * (0.1 * self._size) ** 2 * np.eye(3)
            self.notes.append(f"body {name!r} has no mass, which MuJoCo asks for; it gets {mass:.3g} kg")
            self.made_up.append(body)
        moments = np.linalg.eigvalsh(inertia)
        if moments[0] < _LEAST * moments[2]:
            inertia = inertia + _LEAST * moments[2] * np.eye(3)
            self.notes.append(
                f"body {name!r} has no inertia about an axis, which MuJoCo asks for; it gets {_LEAST:g} of "
                "its largest"
            )
            self.made_up.append(body)
        moments, axes = np.linalg.eigh(inertia)
        most = (1.0 - _FLAT) * moments[:2].sum()
        if moments[2] > most:
            inertia = axes @ np.diag([*moments[:2], most]) @ axes.T
            self.made_up.append(body)
        if moments[2] > (1.0 + _LEAST) * most:
            self.notes.append(
                f"no body has the moments of inertia of {name!r}, which MuJoCo refuses; its largest, "
                f"{moments[2]:.3g}, becomes {most:.3g}, the other two together"
            )
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
        written = SubElement(element, "inertial", pos=_numbers(tree.coms[body]), mass=_number(mass))
        written.set("fullinertia", _numbers([xx, yy, zz, xy, xz, yz]))

    def _lines(self, element: Element, body: int) -> None:
        """Draw a body as lines from its frame to those that it carries."""
        tree, size = self.tree, self._size
        here = inverse(tree.placements[body])
        ends = [(here @ tree.placements[child])[:3, 3] for child in tree.children[body]]
        far = [end for end in ends if np.linalg.norm(end) > 2.0 * _RADIUS * size]
        for end in far:
            SubElement(
                element,
                "geom",
                type="capsule",
                size=_number(_RADIUS * size),
                fromto=_numbers([0.0, 0.0, 0.0, *end]),
                mass="0",
            )
        if not far:
            SubElement(element, "geom", type="sphere", size=_number(1.5 * _RADIUS * size), mass="0")

    @property
    def _size(self) -> float:
        reach = np.ptp(self.tree.placements[:, :3, 3], axis=0).max()
        return float(reach) if reach > 0.0 else 0.1

    # drives

    def _drives(self) -> dict[str, JointDrive]:
        """Return the drives by joint; refuse those that a model of MuJoCo cannot have."""
        train = self.robot.drive_train
        if train is None:
            return {}
        result = {}
        for name, spec, drive in zip(self.robot.driven_joints, train.specs, train.drives):
            self._check_drive(name, spec, drive)
            result[name] = drive
        return result

    def _check_drive(self, name: str, spec: DriveSpec, drive: JointDrive) -> None:
        if not drive.rigid and not isinstance(drive.transmission, (LinearSpring, DampedSpring)):
            raise InputError(
                f"the spring of joint {name!r} is not linear, and tendons of MuJoCo are; give it a constant "
                "stiffness for this export"
            )
        if spec.rotor is not None:
            raise InputError(
                f"the rotor of joint {name!r} turns with body {spec.rotor.body!r}; this export has the "
                "reduced model only: leave out its 'rotor'"
            )
        rubs = drive.motor_friction, drive.link_friction
        figures = {one.name for rub in rubs for one in fields(rub) if getattr(rub, one.name) != one.default}
        if left := ", ".join(sorted(figures - _FRICTION)):
            self.notes.append(f"joint {name!r}: {left} of its friction: left out, as MuJoCo has none")
        rubbing = max(drive.motor_friction.coulomb, drive.link_friction.coulomb)
        if rubbing > 0.0:
            slow = 100.0 * max(drive.motor_friction.transition, drive.link_friction.transition)
            self.notes.append(
                f"joint {name!r}: MuJoCo's dry friction is the one here above {slow:.3g} rad/s or m/s only, "
                "where its transition is over"
            )

    def _motors(self, world: Element) -> None:
        """Write a body for each motor on a spring, its spring, and the actuators of all drives."""
        for name, limit in self._effort_limits().items():
            drive = self.drives.get(name)
            turned = name
            if drive is not None and not drive.rigid:
                turned = name + MOTOR
                self._motor(world, name, drive)
                self._spring(name, drive)
            written = SubElement(self._section("actuator"), "motor", name=name, joint=turned)
            if np.isfinite(limit):
                written.set("ctrlrange", _numbers([-limit, limit]))

    def _effort_limits(self) -> dict[str, float]:
        """Return what actuators do at most, by joint."""
        train, limits = self.robot.drive_train, self.robot.limits.effort
        return dict(
            zip(self.robot.driven_joints, (limits if train is None else train.effort_limits(limits)).tolist())
        )

    def _motor(self, world: Element, name: str, drive: JointDrive) -> None:
        tree = self.tree
        body = tree.joint_names.index(name) + tree.first_jointed_body
        inertia = drive.motor_inertias[0]
        element = SubElement(world, "body", name=name + MOTOR, pos=_numbers(tree.placements[body, :3, 3]))
        written = SubElement(element, "joint", name=name + MOTOR, type=_TYPES[tree.kinds[body]])
        written.set("axis", _numbers(_level(tree.gravity)))  # along which weight has no part
        _rub(written, drive.motor_friction)
        mass = 1.0 if tree.kinds[body] is JointKind.REVOLUTE else inertia
        SubElement(element, "inertial", pos="0 0 0", mass=_number(mass), diaginertia=_numbers([inertia] * 3))

    def _spring(self, name: str, drive: JointDrive) -> None:
        spring = drive.transmission
        assert isinstance(spring, (LinearSpring, DampedSpring))
        tendon = SubElement(self._section("tendon"), "fixed", name=f"{name}_spring", springlength="0")
        tendon.set("stiffness", _number(spring.stiffness))
        if isinstance(spring, DampedSpring):
            tendon.set("damping", _number(spring.damping))
        SubElement(tendon, "joint", joint=name + MOTOR, coef="1")
        SubElement(tendon, "joint", joint=name, coef="-1")

    # loops and couplings

    def _section(self, name: str) -> Element:
        result = self.root.find(name)
        return SubElement(self.root, name) if result is None else result

    def _loops(self, elements: Sequence[Element]) -> None:
        """Write the loops; `elements` of the world and of all bodies."""
        for loop in self.closure.loops:
            if loop.kind == "spin":
                self.notes.append(f"loop {loop.name!r}: the spin that it stops is left free")
            elif loop.kind == "rod":
                self._rod(loop, elements)
            elif loop.kind == "weld":
                ends = [end.pose for end in (loop.a, loop.b)]
                relative = ends[0] @ inverse(ends[1])
                at = f"{_numbers(relative[:3, 3])} {_numbers(_quaternion(relative[:3, :3]))}"
                sides = [
                    "world" if end.body < 0 else self.tree.body_names[end.body] for end in (loop.a, loop.b)
                ]
                weld = SubElement(self._section("equality"), "weld", name=loop.name, anchor="0 0 0")
                weld.attrib |= {"body1": sides[0], "body2": sides[1], "relpose": at}
            elif loop.kind in ("ball", "hinge"):
                self._connect(loop, elements)
            else:
                raise InputError(f"loop {loop.name!r} is of the kind {loop.kind}, which MuJoCo has not")

    def _connect(self, loop: PlacedLoop, elements: Sequence[Element]) -> None:
        """Hold together one point, or two on the axis of a hinge."""
        apart = (0.0,) if loop.kind == "ball" else (-0.5 * self._size, 0.5 * self._size)
        for number, along in enumerate(apart):
            name = loop.name if len(apart) == 1 else f"{loop.name} {number}"
            sites = [
                self._site(f"{name} {side}", end, end.point + along * end.axes[:, 2], elements)
                for side, end in (("a", loop.a), ("b", loop.b))
            ]
            SubElement(self._section("equality"), "connect", name=name, site1=sites[0], site2=sites[1])

    def _rod(self, loop: PlacedLoop, elements: Sequence[Element]) -> None:
        """Hold the length of a tendon between two points."""
        sites = [
            self._site(f"{loop.name} {side}", end, end.point, elements)
            for side, end in (("a", loop.a), ("b", loop.b))
        ]
        tendon = SubElement(self._section("tendon"), "spatial", name=loop.name)
        tendon.set("width", _number(0.5 * _RADIUS * self._size))
        for site in sites:
            SubElement(tendon, "site", site=site)
        held = SubElement(self._section("equality"), "tendon", name=loop.name, tendon1=loop.name)
        points = [
            end.point if end.body < 0 else (self.tree.placements[end.body] @ [*end.point, 1.0])[:3]
            for end in (loop.a, loop.b)
        ]
        apart = float(np.linalg.norm(points[0] - points[1]))  # where all joints are at zero
        if abs(loop.length - apart) > _ROUNDING * self._size:
            held.set("polycoef", f"{_number(loop.length - apart)} 0 0 0 0")

    def _site(self, name: str, end: Frame, point: Array, elements: Sequence[Element]) -> str:
        if end.body >= 0 and self._carried_by_one(end.body):
            raise InputError(
                f"a loop holds body {self.tree.body_names[end.body]!r}, which has no mass; MuJoCo asks for "
                "one there: give it one"
            )
        SubElement(
            elements[end.body + 1],
            "site",
            name=name,
            pos=_numbers(point),
            size=_number(_RADIUS * self._size),
        )
        return name

    def _couplings(self) -> None:
        for name, of, coefficients in _coupled(self.tree, self.closure):
            if len(coefficients) > _QUARTIC:
                raise InputError(
                    f"joint {name!r} follows joint {of!r} along a polynomial of degree "
                    f"{len(coefficients) - 1}; those of MuJoCo have 4 at most"
                )
            padded = [*coefficients, *[0.0] * (_QUARTIC - len(coefficients))]
            SubElement(self._section("equality"), "joint", joint1=name, joint2=of, polycoef=_numbers(padded))

    def _home(self) -> None:
        """Write the positions at which couplings and loops are closed, motors at their links."""
        if self.robot.closure is None:
            return
        tree, joints = self.tree, self.closure.home
        base = []
        if tree.floating_base:
            base = [*tree.placements[0, :3, 3], *_quaternion(tree.placements[0, :3, :3])]
        motors = [
            joints[tree.joint_names.index(name)]
            for name in self.robot.driven_joints
            if name in self.drives and not self.drives[name].rigid
        ]
        depth_first = [
            joints[body - tree.first_jointed_body]
            for body in _depth_first(tree)
            if tree.kinds[body] is not JointKind.BASE
        ]
        keyframe = SubElement(self.root, "keyframe")
        SubElement(keyframe, "key", name="home", qpos=_numbers([*base, *depth_first, *motors]))

    def _own_keys(self) -> None:
        """Write what MJCF has no word for."""
        if self.robot.propellers is not None:
            self.notes.append("propellers do not act in MuJoCo; the text that hodyn_ros reads has them")
        tree = self.tree
        names = [  # as they are read: bodies without mass between joints of one body are called after these
            f"{tree.joint_names[tree.joint_of(body)]}_link" if self._carried_by_one(body) else name
            for body, name in enumerate(tree.body_names)
        ]
        text = own_keys(self.robot, names, self.made_up, self._effort_limits())
        if text:
            SubElement(SubElement(self.root, "custom"), "text", name=OWN_KEYS, data=text)


def _coupled(tree: TreeModel, closure: Closure) -> Iterable[tuple[str, str, list[float]]]:
    """Give the name of each joint that follows another one, the name of that, and coefficients."""
    names = tree.joint_names
    ratios = closure.coupling_matrix[closure.first :, closure.first :]
    for joint, name in enumerate(names):
        if joint not in closure.leading:
            (place,) = np.flatnonzero(ratios[joint])
            yield name, names[closure.leading[place]], [closure.offsets[joint], ratios[joint, place]]
    for follower in closure.followers:
        function = follower.function
        if function.smoothness is not None:
            raise InputError(
                f"joint {names[follower.joint]!r} follows joint {names[follower.of]!r} along a table, and "
                "MuJoCo has polynomials only"
            )
        yield names[follower.joint], names[follower.of], list(function.coefficients[0])


def _depth_first(tree: TreeModel) -> list[int]:
    """Return the bodies in the order in which MuJoCo numbers them."""
    result: list[int] = []
    pending = [body for body in reversed(range(tree.n_bodies)) if tree.parents[body] < 0]
    while pending:
        body = pending.pop()
        result.append(body)
        pending.extend(reversed(tree.children[body]))
    return result


def _rub(joint: Element, *frictions: Friction) -> None:
    """Write the friction of a joint, the sum of several."""
    viscous = sum(friction.viscous for friction in frictions)
    dry = sum(friction.coulomb for friction in frictions)
    if viscous > 0.0:
        joint.set("damping", _number(viscous))
    if dry > 0.0:
        joint.set("frictionloss", _number(dry))


def _quaternion(rotation: Array) -> Array:
    """Return (w, x, y, z)."""
    return np.asarray(Rotation.from_matrix(np.array(rotation)).as_quat()[[3, 0, 1, 2]])


def _level(gravity: Array) -> Array:
    """Return a unit vector normal to gravity."""
    axis = np.eye(3)[int(np.argmin(np.abs(gravity)))]
    weight = gravity @ gravity
    if weight > 0.0:
        axis = axis - gravity * (gravity @ axis) / weight
    return np.asarray(axis / math.sqrt(axis @ axis))


def _number(value: float) -> str:
    return repr(float(value))


def _numbers(values: Iterable[float]) -> str:
    return " ".join(_number(value) for value in values)
