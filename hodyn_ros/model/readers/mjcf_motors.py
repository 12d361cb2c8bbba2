"""Motors on springs in MJCF: bodies of their own on the ground, tied to the joints that they drive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.model.drive_spec import FrictionSpec

_WORLD = 0
_STILL = 1e-12  # share of a motor's mass and inertia that gravity may turn


class SpringMotor(NamedTuple):
    """A motor that moves a joint through a linear spring; figures are those on the side of the joint."""

    tendon: int
    body: int
    joint: int  # of the motor
    link_joint: int  # that it drives
    stiffness: float  # [N.m/rad or N/m]
    damping: float  # [N.m s/rad or N s/m]
    inertia: float  # [kg m^2 or kg]
    friction: FrictionSpec
    ratio: float  # turns of the joint per turn of the motor, where the spring is at rest


def find_spring_motors(model: Any, mujoco: Any) -> list[SpringMotor]:
    """Return the motors on springs of a compiled model.

    A fixed tendon with stiffness is such a spring where it ties two joints, of which one moves a body that
    stands on the world by itself, carries nothing, and that gravity does not move: nothing of it but its own
    inertia about that joint counts, as in Spong's model of elastic joints.
    """
    by_joint: dict[int, list[SpringMotor]] = {}
    for tendon in range(model.ntendon):
        motor = _motor_of(model, mujoco, tendon)
        if motor is not None:
            by_joint.setdefault(motor.joint, []).append(motor)
    return [motors[0] for motors in by_joint.values() if len(motors) == 1]


def _motor_of(model: Any, mujoco: Any, tendon: int) -> SpringMotor | None:
    first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    wraps = range(first, first + count)
    only_joints = all(model.wrap_type[wrap] == mujoco.mjtWrap.mjWRAP_JOINT for wrap in wraps)
    lower, upper = model.tendon_lengthspring[tendon]
    stiffness = float(np.ravel(model.tendon_stiffness[tendon])[0])
    if count != 2 or not only_joints or not stiffness or lower != upper:
        return None
    if any(np.any(getattr(model, name)[tendon]) for name in _curves(model)):
        return None
    ends = [(int(model.wrap_objid[wrap]), float(model.wrap_prm[wrap])) for wrap in wraps]
    motors = [end for end in ends if end[1] and _only_turns(model, mujoco, end[0])]
    acted_on = [end for end in motors if _has_actuator(model, mujoco, end[0])]
    chosen = motors if len(motors) == 1 else acted_on
    if len(chosen) != 1:
        return None
    motor, pull = chosen[0]
    link, link_pull = ends[1 - ends.index(chosen[0])]
    if not link_pull or link == motor:
        return None
    ratio = -pull / link_pull
    dof, body = int(model.jnt_dofadr[motor]), int(model.jnt_bodyid[motor])
    return SpringMotor(
        tendon,
        body,
        motor,
        link,
        stiffness * link_pull**2,
        float(np.ravel(model.tendon_damping[tendon])[0]) * link_pull**2,
        (_own_inertia(model, mujoco, motor) + float(model.dof_armature[dof])) / ratio**2,
        FrictionSpec(
            float(np.ravel(model.dof_damping[dof])[0]) / ratio**2,
            float(model.dof_frictionloss[dof]) / abs(ratio),
        ),
        ratio,
    )


def _curves(model: Any) -> Sequence[str]:
    """Return the coefficients beside the linear ones, there since MuJoCo 4."""
    return [name for name in ("tendon_stiffnesspoly", "tendon_dampingpoly") if hasattr(model, name)]


def _only_turns(model: Any, mujoco: Any, joint: int) -> bool:
    """Say whether a joint moves a body on the world that carries nothing and has no weight along it."""
    body = int(model.jnt_bodyid[joint])
    alone = model.body_jntnum[body] == 1 and model.body_parentid[body] == _WORLD
    if not alone or (model.body_parentid == body).any() or np.any(model.jnt_stiffness[joint]):
        return False
    axis = model.jnt_axis[joint]
    if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
        turned = np.zeros(3)
        mujoco.mju_rotVecQuat(turned, axis, model.body_quat[body])
        weight = float(np.linalg.norm(model.opt.gravity))
        return bool(abs(turned @ model.opt.gravity) <= _STILL * weight)
    if model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_HINGE:
        return False
    arm = np.linalg.norm(np.cross(model.body_ipos[body] - model.jnt_pos[joint], axis))
    return bool(model.body_mass[body] * arm**2 <= _STILL * _own_inertia(model, mujoco, joint))


def _own_inertia(model: Any, mujoco: Any, joint: int) -> float:
    """Return the mass that a slide moves, or the inertia about a hinge through the centre of mass."""
    body = int(model.jnt_bodyid[joint])
    if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
        return float(model.body_mass[body])
    axis = np.zeros(3)
    back = np.zeros(4)
    mujoco.mju_negQuat(back, model.body_iquat[body])
    mujoco.mju_rotVecQuat(axis, model.jnt_axis[joint], back)
    return float(axis**2 @ model.body_inertia[body])


def _has_actuator(model: Any, mujoco: Any, joint: int) -> bool:
    kinds = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    on_joints = np.isin(model.actuator_trntype, [int(kind) for kind in kinds])
    return bool((on_joints & (model.actuator_trnid[:, 0] == joint)).any())
