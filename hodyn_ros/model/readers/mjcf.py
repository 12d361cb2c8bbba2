"""Read robots from MJCF: the model that MuJoCo compiles, as a tree with couplings and loops."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError, nearest
from hodyn_ros.lie.se3 import exp_screw, inverse, pose
from hodyn_ros.model.composite_joints import FREEDOMS
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.limits import JointLimit, JointLimits
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.readers.assembly import Assembly, Joint, Link, assemble, locked
from hodyn_ros.model.readers.mjcf_file import compile_mjcf, import_mujoco
from hodyn_ros.model.readers.mjcf_forces import LeftOut, force_range, in_words, on_joint, switch_off
from hodyn_ros.model.readers.mjcf_motors import SpringMotor, find_spring_motors
from hodyn_ros.model.readers.robot_entries import MjcfFile
from hodyn_ros.model.readers.robot_file import read_described

OWN_KEYS = "hodyn_ros"  # name of the <text> with keys of a robot file for what MJCF has no word for
_WORLD = 0  # MuJoCo's index of the world
_SLACK = 1e-15  # entries of a rotation that are rounding; exact zeros are what the engine folds on
_OPEN = 1e-5  # [rad] by which a weld may be open at home, as loops may
_CLOSED, _ITERATIONS, _TOLERANCE = 1e-12, 50, 1e-6  # [rad and m], and the least singular value that counts


@dataclass(frozen=True, eq=False)
class MjcfRobot:
    """What an MJCF says of a robot; arrays are (n,), over the joints of the tree."""

    assembly: Assembly  # with sites among its frames, couplings, and damping and dry friction of the joints
    limits: JointLimits
    loops: tuple[Loop, ...]
    home: Array  # positions at which the loops are closed and described [rad or m]
    rotors: Array  # armatures: inertias of rotors, reflected to the side of the link [kg m^2]
    springs: Mapping[str, DriveSpec]  # by joint: drives whose motors are bodies of their own
    actuated: tuple[str, ...]  # joints on which an actuator acts, by itself or through a tendon
    ignored: tuple[str, ...]  # a line for each thing that MuJoCo computes and hodyn_ros does not
    at_rest: Mapping[str, float]  # by joint with a spring and without an actuator: where that is at rest


class _Moved(NamedTuple):
    """A joint of one degree of freedom, as MuJoCo has it."""

    joint: Joint
    id: int
    dof: int | None  # None of the hinges of a ball, whose own velocities are others


class MjcfModel(NamedTuple):
    """A compiled MJCF."""

    model: Any  # mujoco.MjModel
    source: str  # what to call it in errors
    own_keys: str  # what hodyn_ros wrote into it, for which MJCF has no word: keys of a robot file; or empty

    @classmethod
    def compiled(cls, path_or_xml: str | os.PathLike[str]) -> MjcfModel:
        """Let MuJoCo compile a file or a text. Raises ModelError in one line."""
        model, source = compile_mjcf(path_or_xml)
        mujoco = import_mujoco(source)
        text = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TEXT, OWN_KEYS)
        if text < 0:
            return cls(model, source, "")
        first = int(model.text_adr[text])
        held = bytes(model.text_data[first : first + int(model.text_size[text])])
        return cls(model, source, held.split(b"\0", 1)[0].decode("utf-8", "replace"))


def read_mjcf(mjcf: MjcfModel, file: MjcfFile, held: Mapping[str, float]) -> MjcfRobot:
    """Read a robot from a compiled MJCF, and what its file says of root, keyframe, bodies and base.

    MuJoCo compiles it, so includes, defaults, frames, compiler settings and inertias of geoms count as there.
    `root`: the body to read with all that it carries, where more than a robot moves in the file. A body with
    a free joint is a floating base; a ball is three hinges as in `composite_joints`, called after it with
    "_rz", "_ry" and "_rx", with bodies without mass between, as between several joints of one body.
    Coordinates of hinges and slides are MuJoCo's. Joints `held` at a position [rad or m], by name, are fixed;
    `bodies` of the file stand for what the MJCF says of their mass and inertia. `floating_base`: whether a
    free joint counts; else its body stands where it is at qpos0, or at the keyframe.

    A motor on a spring, as `find_spring_motors` finds them, is part of the drive of the joint that it moves.

    Equality constraints: "connect" and "weld" are loops; "joint" is a coupling, and with one joint holds it;
    "tendon" holds a rod, where the tendon runs between two sites. A body on a ball joint, connected at
    another point, is a rod whose spin about the line between them nothing holds: it is stopped.
    Those that are not active do not count, nor do contacts. Loops are closed at qpos0, or at a `keyframe`;
    where they are open there, by the smallest change of all joints. Raises ModelError in one line.
    """
    bodies = read_described(file.bodies)
    try:
        return _Reader(mjcf, file, held).read(bodies)
    except ModelError as error:
        raise ModelError(f"{mjcf.source}: {error}") from error


class _Reader:
    """A compiled model under reading; bodies, joints and others by MuJoCo's indices."""

    def __init__(self, mjcf: MjcfModel, file: MjcfFile, held: Mapping[str, float]) -> None:
        self.m = model = mjcf.model
        self.mj, self.file = import_mujoco(mjcf.source), file
        switch_off(model, self.mj)
        self.n_actuators = len(model.actuator_trntype)
        # where outputs of actuators begin, of which each may have several since MuJoCo 4
        self.outputs = getattr(model, "actuator_outadr", range(self.n_actuators))
        if model.nflex:
            raise ModelError("it has flexes, which are not rigid bodies; only these are read")
        self.bodies = [model.body(i).name or f"body{i}" for i in range(model.nbody)]
        self.joints = [self._joint_name(i) for i in range(model.njnt)]
        self.held = dict(self._held(held))  # positions of joints, and of those that an equality holds
        self.qpos, self.poses = self._closed(self._start(file.keyframe))
        self.motors = find_spring_motors(model, self.mj)
        self.base, self.kept = self._choose(file.root)
        self.motors = [one for one in self.motors if int(model.jnt_bodyid[one.link_joint]) in self.kept]

    def read(self, described: Mapping[str, Link]) -> MjcfRobot:
        couplings, loops = self._equalities()
        spins = list(self._spins(loops))
        unknown = next((name for name in described if name not in self.bodies), None)
        if unknown is not None:
            raise ModelError(f"there is no body {unknown!r}; {nearest(unknown, self.bodies)}")
        links = [described.get(self.bodies[body]) or self._link(body) for body in sorted(self.kept)]
        moved = list(self._moved(links))
        joints = [*(one.joint for one in moved), *self._fixed()]
        if self.base is None:
            links.insert(0, Link("world"))
        assembly = assemble(
            self._model_name(),
            links,
            joints,
            gravity=np.array(self.m.opt.gravity),
            floating_base=self.base is not None,
            link_word="body",
            any_rank=True,
            base=None if self.base is None else self.poses[self.base],
        )
        by_name = {one.joint.name: one for one in moved}
        order = [by_name[name] for name in assembly.model.joint_names]
        actuators, left_out = self._actuators(), self._left_out(order)
        assembly = replace(
            assembly,
            frames=self._frames(assembly.frames),
            frictions={one.joint.name: self._friction(one) for one in order},
            couplings=tuple(couplings),
        )
        return MjcfRobot(
            assembly,
            JointLimits.of(
                assembly.model.joint_names, [self._limit(one, actuators.get(one.id, [])) for one in order]
            ),
            (*loops, *spins),
            np.array([self._position(one) for one in order]),
            np.array([self._rotor(one) for one in order]),
            {self.joints[one.link_joint]: self._spring_drive(one) for one in self.motors},
            tuple(one.joint.name for one in order if one.id in actuators),
            (
                *left_out.lines(self.file.mjcf_friction),
                *in_words("spins of rods", [str(spin.b) for spin in spins]),
                *(self._beyond_range() if loops else ()),
            ),
            {
                one.joint.name: float(self.m.qpos_spring[self.m.jnt_qposadr[one.id]])
                for one in order
                if one.dof is not None and one.id not in actuators and left_out.sprung()[one.id]
            },
        )

    def _model_name(self) -> str:
        return bytes(self.m.names).split(b"\0", 1)[0].decode("utf-8", "replace") or "robot"

    def _joint_name(self, joint: int) -> str:
        body = int(self.m.jnt_bodyid[joint])
        count, first = int(self.m.body_jntnum[body]), int(self.m.body_jntadr[body])
        number = "" if count == 1 else str(joint - first)
        return self.m.joint(joint).name or f"{self.bodies[body]}_joint{number}"

    def _held(self, held: Mapping[str, float]) -> Iterator[tuple[int, float]]:
        kinds = self.mj.mjtJoint
        for name, position in held.items():
            if name not in self.joints:
                raise ModelError(f"there is no joint {name!r} to lock; {nearest(name, self.joints)}")
            joint = self.joints.index(name)
            if self.m.jnt_type[joint] not in (int(kinds.mjJNT_HINGE), int(kinds.mjJNT_SLIDE)):
                raise ModelError(f"joint {name!r} is neither hinge nor slide; only these can be locked")
            yield joint, position

    def _start(self, keyframe: str | None) -> Array:
        start = np.array(self.m.qpos0)
        if keyframe is not None:
            names = [self.m.key(i).name for i in range(self.m.nkey)]
            if keyframe not in names:
                raise ModelError(f"there is no keyframe {keyframe!r}; there are {names}")
            start = np.array(self.m.key_qpos[names.index(keyframe)])
        for joint, position in self.held.items():
            start[self.m.jnt_qposadr[joint]] = position
        return start

    def _closed(self, qpos: Array) -> tuple[Array, Array]:
        """Close all equalities by Newton's method; return qpos and the poses (bodies, 4, 4) of all bodies."""
        m, mujoco = self.m, self.mj
        data = mujoco.MjData(m)
        data.qpos[:] = qpos
        off, flags, form = mujoco.mjtDisableBit, m.opt.disableflags, m.opt.jacobian
        m.opt.disableflags = flags | off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_FRICTIONLOSS
        m.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        for _ in range(_ITERATIONS):
            mujoco.mj_fwdPosition(m, data)
            if np.abs(data.efc_pos).max(initial=0.0) < _CLOSED:
                break
            rows = data.efc_J.reshape(-1, m.nv)[: data.nefc].copy()
            rows[:, [m.jnt_dofadr[joint] for joint in self.held]] = 0.0
            if not self.file.floating_base:
                free = np.flatnonzero(m.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE))
                rows[:, np.isin(m.dof_jntid, free)] = 0.0
            change = -np.linalg.lstsq(rows, data.efc_pos, rcond=_TOLERANCE)[0]
            mujoco.mj_integratePos(m, data.qpos, change, 1.0)
        m.opt.disableflags, m.opt.jacobian = flags, form
        turns = np.where(np.abs(data.xmat) < _SLACK, 0.0, data.xmat).reshape(-1, 3, 3)
        return np.array(data.qpos), np.array([pose(turn, at) for turn, at in zip(turns, data.xpos)])

    def _placement(self, body: int) -> Array:
        return pose(_rotation(self.m.body_quat[body]), self.m.body_pos[body])

    def _choose(self, root: str | None) -> tuple[int | None, set[int]]:
        """Return the floating base, if there is one, and the bodies that belong to the robot."""
        m = self.m
        within = set(range(1, m.nbody)) if root is None else self._rooted_at(root)
        within -= {motor.body for motor in self.motors}
        tops = [b for b in sorted(within) if m.body_jntnum[b] and m.body_weldid[m.body_parentid[b]] == _WORLD]
        floating = [b for b in tops if m.jnt_type[m.body_jntadr[b]] == self.mj.mjtJoint.mjJNT_FREE]
        roots = [self.bodies[b] for b in dict.fromkeys(m.body_rootid[b] for b in tops)]
        if floating and len(roots) > 1:
            names = ", ".join(map(repr, roots[:5])) + (", ..." if len(roots) > 5 else "")
            raise ModelError(
                f"body {self.bodies[floating[0]]!r} floats beside others ({names}); one robot is read at a "
                "time: say by its `root` which"
            )
        if not floating:
            return None, within
        within = {b for b in within if m.body_rootid[b] == floating[0]}
        return floating[0] if self.file.floating_base else None, within

    def _rooted_at(self, root: str) -> set[int]:
        """Return a body that stands or moves on the world with all that it carries."""
        m = self.m
        known = [b for b in range(1, m.nbody) if m.body_weldid[m.body_parentid[b]] == _WORLD]
        names = [self.bodies[b] for b in known]
        if root not in names:
            raise ModelError(
                f"there is no body {root!r} that stands or moves on the world; there are {names}"
            )
        return self._carried_by(known[names.index(root)])

    def _carried_by(self, first: int) -> set[int]:
        """Return a body with all that it carries."""
        carried = {first}
        for body in range(first + 1, self.m.nbody):
            if self.m.body_parentid[body] in carried:
                carried.add(body)
        return carried

    def _link(self, body: int) -> Link:
        m = self.m
        turn = _rotation(m.body_iquat[body])
        inertia = turn @ np.diag(m.body_inertia[body]) @ turn.T
        return Link(
            self.bodies[body],
            float(m.body_mass[body]),
            np.array(m.body_ipos[body]),
            0.5 * (inertia + inertia.T),
        )

    def _carrier(self, body: int) -> tuple[str, Array]:
        """Return what carries a body, and its place there at qpos0."""
        parent = int(self.m.body_parentid[body])
        place = self._placement(body)
        return (self.bodies[parent], place) if parent in self.kept else ("world", self.poses[parent] @ place)

    def _fixed(self) -> Iterator[Joint]:
        """Join the bodies without joints to what carries them, and one that is not to float to the world."""
        for body in sorted(self.kept - {self.base}):
            if not self.m.body_jntnum[body] or self._is_free(body):
                carrier, place = self._carrier(body)
                if self.m.body_jntnum[body]:
                    place = self.poses[body]
                name = f"{self.bodies[body]} on {carrier}"
                yield Joint(name, "fixed", carrier, self.bodies[body], place, np.zeros(3))

    def _moved(self, links: list[Link]) -> Iterator[_Moved]:
        """Yield the joints of all bodies but a floating base; add bodies without mass between to links."""
        for body in sorted(self.kept):
            if not self.m.body_jntnum[body] or self._is_free(body):
                continue
            carrier, place = self._carrier(body)
            parts = list(self._parts(body))
            for number, (name, joint, axis, dof) in enumerate(parts):
                last = number == len(parts) - 1
                child = self.bodies[body] if last else f"{name}_link"
                if not last:
                    links.append(Link(child))
                slide = self.m.jnt_type[joint] == self.mj.mjtJoint.mjJNT_SLIDE
                kind = "prismatic" if slide else "revolute"
                point = np.array(self.m.jnt_pos[joint])
                described = Joint(name, kind, carrier, child, place, axis, point=point)
                at = 0.0 if dof is None else float(self.m.qpos0[self.m.jnt_qposadr[joint]])
                if at:  # what the file describes is the robot with this coordinate, not with zero
                    moment = np.zeros(3) if slide else np.cross(point, axis)
                    screw = np.concatenate([np.zeros(3), axis] if slide else [axis, moment])
                    described = replace(described, placement=place @ exp_screw(screw, np.array(-at)))
                if joint in self.held:
                    described = locked(described, self.held[joint], JointLimit())
                yield _Moved(described, joint, dof)
                carrier, place = child, np.eye(4)

    def _is_free(self, body: int) -> bool:
        free = self.mj.mjtJoint.mjJNT_FREE
        return bool(self.m.body_jntnum[body] and self.m.jnt_type[self.m.body_jntadr[body]] == free)

    def _is_held(self, body: int) -> bool:
        """Say whether a body is part of one that would float, and is not to."""
        return not self.file.floating_base and self._is_free(int(self.m.body_weldid[body]))

    def _parts(self, body: int) -> Iterator[tuple[str, int, Array, int | None]]:
        """Yield the joints of a body with one degree of freedom each, from its parent on."""
        first = int(self.m.body_jntadr[body])
        for joint in range(first, first + int(self.m.body_jntnum[body])):
            name = self.joints[joint]
            if self.m.jnt_type[joint] == self.mj.mjtJoint.mjJNT_BALL:
                for axis, part in zip("zyx", FREEDOMS["ball"]):
                    yield f"{name}_{part}", joint, np.eye(3)["xyz".index(axis)], None
            else:
                yield name, joint, np.array(self.m.jnt_axis[joint]), int(self.m.jnt_dofadr[joint])

    def _position(self, moved: _Moved) -> float:
        """Return where a joint is at home."""
        from scipy.spatial.transform import Rotation

        at = int(self.m.jnt_qposadr[moved.id])
        if moved.dof is not None:
            return float(self.qpos[at])
        angles = Rotation.from_quat(np.roll(self.qpos[at : at + 4], -1)).as_euler("ZYX")
        return float(angles["zyx".index(moved.joint.name[-1])])

    def _frames(self, known: Mapping[str, Frame]) -> Mapping[str, Frame]:
        """Return the frames of all bodies, and of the sites whose name no body has."""
        frames = dict(known)
        for body, name in enumerate(self.bodies):
            if name not in frames and self.m.body_weldid[body] == _WORLD:
                frames[name] = Frame(-1, self.poses[body])
        for i in range(self.m.nsite):
            name, carrier = self.m.site(i).name, self.bodies[self.m.site_bodyid[i]]
            if name and name not in frames and carrier in frames:
                body, place = frames[carrier]
                frames[name] = Frame(body, place @ self._site(i))
        return MappingProxyType(frames)

    def _site(self, site: int) -> Array:
        return pose(_rotation(self.m.site_quat[site]), self.m.site_pos[site])

    def _friction(self, moved: _Moved) -> FrictionSpec:
        if moved.dof is None:
            return FrictionSpec()
        damping = float(self.m.dof_damping[moved.dof]) + self._of_actuators("damping", moved.id)
        return FrictionSpec(damping, float(self.m.dof_frictionloss[moved.dof]))

    def _rotor(self, moved: _Moved) -> float:
        if moved.dof is None:
            return 0.0
        return float(self.m.dof_armature[moved.dof]) + self._of_actuators("armature", moved.id)

    def _of_actuators(self, what: str, joint: int) -> float:
        """Return a figure of actuators, there since MuJoCo 4, reflected to the joint they move."""
        figures = getattr(self.m, f"actuator_{what}", np.zeros(self.n_actuators))
        return float(sum(self._gear(i) ** 2 * figures[i] for i in self._acting_on(joint)))

    def _acting_on(self, joint: int) -> list[int]:
        """Return the actuators that act on a joint itself."""
        targets = self.m.actuator_trnid
        return [i for i in range(self.n_actuators) if targets[i, 0] == joint and on_joint(self.m, self.mj, i)]

    def _gear(self, actuator: int) -> float:
        return float(self.m.actuator_gear[self.outputs[actuator], 0])

    def _spring_drive(self, motor: SpringMotor) -> DriveSpec:
        """Return the drive of a joint that a motor moves through a spring; with the friction of the motor."""
        damping, inertia = (
            self._of_actuators(what, motor.joint) / motor.ratio**2 for what in ("damping", "armature")
        )
        return DriveSpec(
            motor.stiffness,
            motor.inertia + inertia,
            spring_damping=motor.damping,
            motor_friction=replace(motor.friction, viscous=motor.friction.viscous + damping),
        )

    def _equalities(self) -> tuple[list[Coupling], list[Loop]]:
        couplings: list[Coupling] = []
        loops: list[Loop] = []
        kinds = self.mj.mjtEq
        for i in range(self.m.neq):
            if not self.m.eq_active0[i]:
                continue
            kind = kinds(self.m.eq_type[i])
            if kind == kinds.mjEQ_JOINT:
                couplings.extend(self._coupling(i))
            elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
                loops.extend(self._loop(i, weld=kind == kinds.mjEQ_WELD))
            elif kind == kinds.mjEQ_TENDON:
                loops.extend(self._rod(i))
            else:
                raise ModelError(
                    f"{self._equality_name(i)} is of the kind {kind.name[5:].lower()!r}, which is not "
                    "supported; connect, weld and joint are, and tendons between two sites"
                )
        return couplings, loops

    def _equality_name(self, i: int) -> str:
        name = self.m.equality(i).name
        return f"equality {name!r}" if name else f"equality {i}"

    def _coupling(self, i: int) -> Iterator[Coupling]:
        """Yield a coupling `q - q0 = a0 + a1 (x - x0) + ...`, or note that a joint is held at q0 + a0."""
        m = self.m
        joint, of, figures = int(m.eq_obj1id[i]), int(m.eq_obj2id[i]), m.eq_data[i, :5]
        if not self._concerns(i, [m.jnt_bodyid[j] for j in (joint, of) if j >= 0]):
            return
        start = float(m.qpos0[m.jnt_qposadr[joint]])
        if of < 0:
            self.held[joint] = start + float(figures[0])
            return
        if joint in self.held or of in self.held:
            names = " and ".join(repr(self.joints[j]) for j in (joint, of))
            raise ModelError(
                f"joints {names} move each other by {self._equality_name(i)}, so neither can be locked"
            )
        shifted = Polynomial(figures)(Polynomial([-float(m.qpos0[m.jnt_qposadr[of]]), 1.0])) + start
        terms = np.zeros(2)
        terms[: min(len(shifted.coef), 2)] = shifted.coef[:2]
        if figures[2:].any():
            yield Coupling(self.joints[joint], self.joints[of], polynomial=tuple(shifted.coef))
        else:
            yield Coupling(self.joints[joint], self.joints[of], float(terms[1]), float(terms[0]))

    def _concerns(self, i: int, bodies: Iterable[int]) -> bool:
        """Say whether an equality is one of the robot that is read; ModelError where it holds others too."""
        moving = [int(b) for b in bodies if self.m.body_weldid[b] != _WORLD and not self._is_held(b)]
        inside = [b in self.kept for b in moving]
        if any(inside) and not all(inside):
            other = self.bodies[moving[inside.index(False)]]
            raise ModelError(
                f"{self._equality_name(i)} joins the robot to {other!r}, which is not part of it"
            )
        return any(inside)

    def _loop(self, i: int, weld: bool) -> Iterator[Loop]:
        m = self.m
        ids, figures = (int(m.eq_obj1id[i]), int(m.eq_obj2id[i])), m.eq_data[i]
        if m.eq_objtype[i] == self.mj.mjtObj.mjOBJ_SITE:
            bodies = [int(m.site_bodyid[site]) for site in ids]
            a, b = (self.poses[body] @ self._site(site) for body, site in zip(bodies, ids))
        else:
            bodies = list(ids)
            a, b = (self.poses[body] for body in bodies)
            points = (figures[3:6], figures[:3]) if weld else (figures[:3], figures[3:6])
            a = a @ pose(_rotation(figures[6:10]) if weld else np.eye(3), points[0])
            b = b @ pose(np.eye(3), points[1])
        if not self._concerns(i, bodies):
            return
        names = ["world" if m.body_weldid[body] == _WORLD else self.bodies[body] for body in bodies]
        held = sorted(int(m.body_weldid[body]) for body in bodies)
        if weld and self.base is not None and held == [_WORLD, self.base]:
            raise ModelError(
                f"{self._equality_name(i)} welds {self.bodies[self.base]!r}, which floats, to the world; "
                "'floating_base: false' in a robot file with the key mjcf holds it"
            )
        turned = (inverse(a) @ b)[:3, :3]
        angle = float(np.linalg.norm(turned - np.eye(3))) / np.sqrt(2.0)
        if weld and angle > _OPEN:
            raise ModelError(
                f"{self._equality_name(i)} welds {names[0]!r} to {names[1]!r}, which are turned apart by "
                f"{angle:.3g} rad at home; give a keyframe at which they fit"
            )
        point, point_b = a[:3, 3], b[:3, 3]
        yield Loop(
            names[0],
            names[1],
            "weld" if weld else "ball",
            point,
            point_b=point_b,
            name=m.equality(i).name or f"{'weld' if weld else 'connect'} {i} {names[0]}-{names[1]}",
        )

    def _rod(self, i: int) -> Iterator[Loop]:
        """Yield a rod that holds the length of a tendon between two sites."""
        m, tendon = self.m, int(self.m.eq_obj1id[i])
        first, count = int(m.tendon_adr[tendon]), int(m.tendon_num[tendon])
        straight = count == 2 and (m.wrap_type[first : first + 2] == int(self.mj.mjtWrap.mjWRAP_SITE)).all()
        if m.eq_obj2id[i] >= 0 or not straight:
            raise ModelError(
                f"{self._equality_name(i)} holds a tendon that does not run straight between two sites, or "
                "two tendons, which is not supported"
            )
        sites = m.wrap_objid[first : first + 2]
        bodies = [int(m.site_bodyid[site]) for site in sites]
        if not self._concerns(i, bodies):
            return
        a, b = ((self.poses[body] @ self._site(site))[:3, 3] for body, site in zip(bodies, sites))
        names = ["world" if m.body_weldid[body] == _WORLD else self.bodies[body] for body in bodies]
        name = m.equality(i).name or f"rod {i} {names[0]}-{names[1]}"
        yield Loop(names[0], names[1], "rod", a, point_b=b, name=name)

    def _spins(self, loops: Sequence[Loop]) -> Iterator[Loop]:
        """Yield what stops the spins of rods: bodies on a ball joint, held at one other point.

        There they are connected, or carry a body of a loop on another ball joint.
        """
        m = self.m
        for body in sorted(self.kept):
            joint, rigid = self._pivot(body), np.flatnonzero(m.body_weldid == body)
            carried = np.setdiff1d(np.flatnonzero(np.isin(m.body_parentid, rigid)), rigid)
            names = {self.bodies[part] for part in rigid}
            ends = [loop for loop in loops if names & {loop.a, loop.b}]
            far: Any = None
            if not len(carried) and [loop.kind for loop in ends] == ["ball"]:
                far = ends[0].point if ends[0].a in names else ends[0].point_b
            elif len(carried) == 1 and not ends:
                beyond = {self.bodies[part] for part in self._carried_by(carried[0])}
                if any((loop.a in beyond) != (loop.b in beyond) for loop in loops):
                    far = self._pivot(carried[0])
            if joint is None or far is None:
                continue
            line = np.asarray(far) - joint
            if np.linalg.norm(line) > _TOLERANCE:
                name, carrier = self.bodies[body], self._carrier(body)[0]
                yield Loop(carrier, name, "spin", joint, line, name=f"spin of {name}")

    def _pivot(self, body: int) -> Array | None:
        """Return the centre of the ball joint that alone carries a body, if no actuator turns it."""
        m, first, place = self.m, int(self.m.body_jntadr[body]), self.poses[body]
        ball = m.body_jntnum[body] == 1 and m.jnt_type[first] == self.mj.mjtJoint.mjJNT_BALL
        if not ball or self._acting_on(first):
            return None
        centre: Array = place[:3, :3] @ m.jnt_pos[first] + place[:3, 3]
        return centre

    def _actuators(self) -> dict[int, list[tuple[float, float]]]:
        """Return by joint the ranges of effort of the actuators that act on it; infinite through tendons."""
        m, kinds = self.m, self.mj.mjtTrn
        on_springs = {motor.joint: motor for motor in self.motors}
        bounds_by_joint: dict[int, list[tuple[float, float]]] = {}
        for i in range(self.n_actuators):
            kind, target = kinds(m.actuator_trntype[i]), int(m.actuator_trnid[i, 0])
            if on_joint(m, self.mj, i):
                gear = self._gear(i)
                if target in on_springs:
                    motor = on_springs[target]
                    target, gear = motor.link_joint, gear / motor.ratio
                bounds = sorted(gear * bound for bound in force_range(m, self.mj, i))
                bounds_by_joint.setdefault(target, []).append((bounds[0], bounds[1]))
            elif kind == kinds.mjTRN_TENDON:
                wraps = range(m.tendon_adr[target], m.tendon_adr[target] + m.tendon_num[target])
                for wrap in wraps:
                    if m.wrap_type[wrap] == self.mj.mjtWrap.mjWRAP_JOINT:
                        bounds_by_joint.setdefault(int(m.wrap_objid[wrap]), []).append((-np.inf, np.inf))
        return bounds_by_joint

    def _limit(self, moved: _Moved, forces: Sequence[tuple[float, float]]) -> JointLimit:
        if moved.dof is None:
            return JointLimit()
        m, joint = self.m, moved.id
        bounds = [_both_ways(np.array(forces).sum(axis=0))] if forces else []
        if m.jnt_actfrclimited[joint]:
            bounds.append(_both_ways(m.jnt_actfrcrange[joint]))
        lower, upper = m.jnt_range[joint] if m.jnt_limited[joint] else (-np.inf, np.inf)
        return JointLimit(float(lower), float(upper), effort=min(bounds, default=np.inf))

    def _left_out(self, moved: Sequence[_Moved]) -> LeftOut:
        """Return what tells which forces of MuJoCo do not count."""
        base = [] if self.base is None else [int(self.m.body_jntadr[self.base])]
        return LeftOut(
            self.m,
            self.mj,
            self.bodies,
            self.joints,
            self.kept,
            set(self.held),
            [*(one.id for one in moved if one.dof is None), *base],
            [*(one.id for one in moved if one.dof is not None), *(motor.joint for motor in self.motors)],
            {motor.tendon for motor in self.motors},
        )

    def _beyond_range(self) -> Iterator[str]:
        """Yield a line where loops close at qpos0 beyond ranges, and a keyframe may be what is meant."""
        m, keys = self.m, [self.m.key(i).name for i in range(self.m.nkey)]
        if self.file.keyframe is not None or not keys:
            return
        at = self.qpos[m.jnt_qposadr]
        beyond = m.jnt_limited.astype(bool) & ((at < m.jnt_range[:, 0]) | (at > m.jnt_range[:, 1]))
        simple = [j for j in np.flatnonzero(beyond) if m.jnt_type[j] > int(self.mj.mjtJoint.mjJNT_BALL)]
        names = [self.joints[j] for j in simple if m.jnt_bodyid[j] in self.kept]
        if names:
            yield (
                f"loops are closed at qpos0, where joints {', '.join(map(repr, names[:3]))} are beyond their "
                f"range; the file has the keyframes {', '.join(map(repr, keys))}: choose one by keyframe"
            )


def _both_ways(bounds: Array) -> float:
    """Return the effort that is possible in both directions, or in the only one there is."""
    low, high = sorted(abs(float(bound)) for bound in bounds)
    return low or high or np.inf


def _rotation(quaternion: Array) -> Array:
    """Return the rotation (3, 3) of a quaternion (w, x, y, z) of any length."""
    from scipy.spatial.transform import Rotation

    rotation = Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()
    return np.where(np.abs(rotation) < _SLACK, 0.0, rotation)
