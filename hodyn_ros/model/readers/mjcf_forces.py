"""Forces of a compiled MJCF: what its flags switch off, and which hodyn_ros leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from hodyn_ros.array import Array

_WORLD = 0
_SPRINGS = tuple(f"{of}_stiffness{poly}" for of in ("jnt", "tendon") for poly in ("", "poly"))
_DAMPERS = tuple(f"{of}_damping{poly}" for of in ("dof", "tendon", "actuator") for poly in ("", "poly"))
_DRY = ("dof_frictionloss", "tendon_frictionloss")
_OF_SPRINGS = ("tendon_frictionloss", "tendon_armature")  # of tendons that are springs of motors


def switch_off(model: Any, mujoco: Any) -> None:
    """Make zero in a compiled model what its flags switch off, as MuJoCo does when it computes forces."""

    def off(*names: str) -> bool:
        flags = [int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}", 0)) for name in names]
        return any(model.opt.disableflags & flag for flag in flags)

    passive = off("PASSIVE") or (off("SPRING") and off("DAMPER"))  # two flags since MuJoCo 3.3.7
    zero: list[str] = []
    zero += _SPRINGS if passive or off("SPRING") else ()
    zero += _DAMPERS if passive or off("DAMPER") else ()
    zero += _DRY if off("CONSTRAINT", "FRICTIONLOSS") else ()
    zero += ("eq_active0",) if off("CONSTRAINT", "EQUALITY") else ()
    zero += ("body_gravcomp",) if passive or off("GRAVITY") else ()
    for name in zero:
        if hasattr(model, name):  # MuJoCo 4 knows more than 3.3
            getattr(model, name)[...] = 0
    if off("GRAVITY"):
        model.opt.gravity[:] = 0.0
    if passive:
        model.opt.density = model.opt.viscosity = 0.0
        model.body_plugin[:] = -1


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What is read of a compiled model; bodies, joints and others by MuJoCo's indices."""

    model: Any
    mujoco: Any
    bodies: Sequence[str]  # names of all
    joints: Sequence[str]  # likewise
    kept: Set[int]  # bodies of the robot
    held: Set[int]  # joints that are locked
    several: Sequence[int]  # joints of several degrees of freedom that move: balls and a floating base
    single: Sequence[int]  # those of one, with those of motors on springs
    springs: Set[int]  # tendons that are springs of motors

    def lines(self, friction: bool | None) -> Iterator[str]:
        """Yield a line for each kind of force that MuJoCo adds, with the names it concerns.

        `friction`: whether damping and dry friction are taken; where False, nobody misses them.
        """
        m = self.model
        sprung = self.sprung()
        moving = [j for j in range(m.njnt) if j not in self.held and m.jnt_bodyid[j] in self.kept]
        yield from in_words("springs of joints", [self.joints[j] for j in moving if sprung[j]])
        for what, figures in (
            ("armatures", ("armature",)),
            ("friction", ("damping", "dampingpoly", "frictionloss")),
        ):
            rows = self._of_joints(*figures)
            heavy = [self.joints[j] for j in dict.fromkeys(self.several) if rows[j]]
            yield from in_words(f"{what} of the ball or free joints", heavy)
        if friction is not False:
            curved = self._of_joints("dampingpoly")
            names = [self.joints[j] for j in self.single if curved[j]]
            yield from in_words("damping by powers of the velocity of joints", names)
        yield from in_words("gravity compensation of bodies", [*self._compensated()])
        plugged = [name for b, name in enumerate(self.bodies) if b in self.kept and m.body_plugin[b] >= 0]
        yield from in_words("forces of plugins on bodies", plugged)
        tendons = self.marked(
            *(name for name in (*_SPRINGS, *_DAMPERS, *_OF_SPRINGS) if name[:6] == "tendon")
        )
        of_springs = self.marked(*_OF_SPRINGS)
        pull = [
            i
            for i in range(m.ntendon)
            if (of_springs if i in self.springs else tendons)[i] and self._pulls(i)
        ]
        yield from in_words("forces of tendons", [m.tendon(i).name or f"{i}" for i in pull])
        yield from self._of_actuators()
        if m.opt.density or m.opt.viscosity:
            yield "forces of the surrounding fluid do not count"

    def sprung(self) -> Array:
        """Return for each joint whether a spring acts on it."""
        return self.marked("jnt_stiffness", "jnt_stiffnesspoly")

    def marked(self, *arrays: str) -> Array:
        """Return for each row of these arrays whether one of their figures is not zero."""
        known = [np.asarray(getattr(self.model, name)) for name in arrays if hasattr(self.model, name)]
        rows = [array.astype(bool).reshape(len(array), array[:1].size).any(axis=1) for array in known]
        result: Array = np.any(rows, axis=0) if rows else np.zeros(0, dtype=bool)
        return result

    def _of_joints(self, *figures: str) -> Array:
        """Return for each joint whether one of its own figures, or of actuators on it, is not zero."""
        m = self.model
        of_dofs, of_actuators = (
            self.marked(*(f"{of}_{figure}" for figure in figures)) for of in ("dof", "actuator")
        )
        found = np.zeros(m.njnt, dtype=bool)
        found[m.dof_jntid[np.flatnonzero(of_dofs)] if len(of_dofs) else []] = True
        for i in np.flatnonzero(of_actuators):
            if on_joint(m, self.mujoco, i):
                found[m.actuator_trnid[i, 0]] = True
        return found

    def _compensated(self) -> Iterator[str]:
        """Yield the bodies whose weight something bears beside the drives of the joints that carry them.

        Where a joint has `actuatorgravcomp`, it is its actuators that do, and efforts are what they give.
        """
        m = self.model
        for body in np.flatnonzero(m.body_gravcomp):
            at = int(body)
            while at != _WORLD and body in self.kept:
                first = int(m.body_jntadr[at])
                if not m.jnt_actgravcomp[first : first + int(m.body_jntnum[at])].all():
                    yield self.bodies[int(body)]
                    break
                at = int(m.body_parentid[at])

    def _of_actuators(self) -> Iterator[str]:
        """Yield what actuators do that is neither effort of a joint nor its rotor and friction."""
        m, muscle = self.model, self.mujoco.mjtGain.mjGAIN_MUSCLE
        inert = self.marked(*(f"actuator_{figure}" for figure in ("armature", "damping", "dampingpoly")))
        mine = [i for i in range(len(m.actuator_trntype)) if self._acts(i)]
        names = {i: m.actuator(i).name or f"{i}" for i in mine}
        beside = [i for i in mine if inert[i : i + 1].any() and not on_joint(m, self.mujoco, i)]
        yield from in_words("armatures and damping of actuators", [names[i] for i in beside])
        yield from in_words(
            "actuators that act on no joint and no fixed tendon,",
            [names[i] for i in mine if not self._moves_joints(i)],
        )
        yield from in_words(
            "limits of the muscles", [names[i] for i in mine if m.actuator_gaintype[i] == muscle]
        )
        limited = [names[i] for i in mine if self._limited(i)]
        yield from in_words("limits of the actuators on fixed tendons", limited)

    def _acts(self, actuator: int) -> bool:
        """Say whether an actuator acts on the robot; not one that makes contacts stick."""
        m, kinds = self.model, self.mujoco.mjtTrn
        kind, target = kinds(m.actuator_trntype[actuator]), int(m.actuator_trnid[actuator, 0])
        if kind == kinds.mjTRN_TENDON:
            return self._pulls(target)
        if on_joint(m, self.mujoco, actuator):
            return self._is_mine(m.jnt_bodyid, target)
        return kind != kinds.mjTRN_BODY and self._is_mine(m.site_bodyid, target)

    def _moves_joints(self, actuator: int) -> bool:
        """Say whether what an actuator gives is efforts of joints."""
        m, mj = self.model, self.mujoco
        target = int(m.actuator_trnid[actuator, 0])
        if on_joint(m, mj, actuator):
            return bool(m.jnt_type[target] != mj.mjtJoint.mjJNT_FREE)
        if mj.mjtTrn(m.actuator_trntype[actuator]) != mj.mjtTrn.mjTRN_TENDON:
            return False
        return all(kind == mj.mjtWrap.mjWRAP_JOINT for kind, _ in self._wraps(target))

    def _limited(self, actuator: int) -> bool:
        """Say whether an actuator pulls a fixed tendon, and no harder than so."""
        m, tendon = self.model, int(self.model.actuator_trnid[actuator, 0])
        if on_joint(m, self.mujoco, actuator) or not self._moves_joints(actuator):
            return False
        finite = np.isfinite(force_range(m, self.mujoco, actuator)).any()
        held = bool(finite or self.marked("tendon_actfrclimited")[tendon : tendon + 1].any())
        return held and m.actuator_gaintype[actuator] != self.mujoco.mjtGain.mjGAIN_MUSCLE

    def _wraps(self, tendon: int) -> list[tuple[int, int]]:
        """Return kinds and objects of what a tendon runs along."""
        m, first = self.model, int(self.model.tendon_adr[tendon])
        wraps = range(first, first + int(m.tendon_num[tendon]))
        return [(int(m.wrap_type[wrap]), int(m.wrap_objid[wrap])) for wrap in wraps]

    def _pulls(self, tendon: int) -> bool:
        """Say whether a tendon runs along the robot."""
        m, kinds = self.model, self.mujoco.mjtWrap
        bodies = {
            int(kinds.mjWRAP_JOINT): m.jnt_bodyid,
            int(kinds.mjWRAP_SITE): m.site_bodyid,
            int(kinds.mjWRAP_SPHERE): m.geom_bodyid,
            int(kinds.mjWRAP_CYLINDER): m.geom_bodyid,
        }
        return any(kind in bodies and self._is_mine(bodies[kind], of) for kind, of in self._wraps(tendon))

    def _is_mine(self, bodies: Any, of: int) -> bool:
        return int(bodies[of]) in self.kept


def on_joint(model: Any, mujoco: Any, actuator: Any) -> bool:
    """Say whether an actuator acts on a joint itself."""
    kinds, kind = mujoco.mjtTrn, int(model.actuator_trntype[actuator])
    if kind == int(getattr(kinds, "mjTRN_SO3", -1)):  # since MuJoCo 4; of two sites, or of a ball joint
        return bool(model.actuator_trnid[actuator, 1] < 0)
    return kind in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))


def force_range(model: Any, mujoco: Any, actuator: int) -> tuple[float, float]:
    """Return the least and the largest force of an actuator; infinite where its own law says more."""
    follows, count = mujoco.mjtDyn, len(model.actuator_trntype)
    by_control = (
        model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_FIXED
        and model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE
        and model.actuator_dyntype[actuator]
        in map(int, (follows.mjDYN_NONE, follows.mjDYN_FILTER, follows.mjDYN_FILTEREXACT))
        and model.actuator_plugin[actuator] < 0
    )
    control = getattr(model, "actuator_ctrladr", range(count))[actuator]  # several each since MuJoCo 4
    bounds = np.array([-np.inf, np.inf])
    if by_control and model.actuator_ctrllimited[control]:
        bounds = model.actuator_gainprm[actuator, 0] * model.actuator_ctrlrange[control]
    if model.actuator_forcelimited[actuator]:
        bounds = np.clip(bounds, *model.actuator_forcerange[actuator])
    return float(bounds[0]), float(bounds[1])


def in_words(what: str, names: Sequence[str], hint: str = "") -> Iterator[str]:
    """Yield a line that says of which names something does not count, if there are any."""
    if names:
        shown = ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield f"{what} {shown} do not count{hint}"
