"""Efforts by MuJoCo, and by its Jacobians where constraints close loops."""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

from oracles.random_trees import Array


class MujocoReference:
    """A compiled model of which only rigid bodies and equalities are left; motion in a robot's coordinates.

    Joints by name; a ball is three hinges, named after it with _rz, _ry and _rx. A floating base moves by its
    pose and body-fixed twists.
    """

    def __init__(self, model: Any, rotors: bool = True) -> None:
        self.m = model
        off = mujoco.mjtDisableBit
        passive = [name for name in ("SPRING", "DAMPER", "PASSIVE") if hasattr(off, f"mjDSBL_{name}")]
        for name in ("CONTACT", "LIMIT", "FRICTIONLOSS", *passive):  # passive ones are two since MuJoCo 3.3.7
            self.m.opt.disableflags |= getattr(off, f"mjDSBL_{name}")
        self.m.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.m.opt.density = self.m.opt.viscosity = 0.0
        self.m.body_gravcomp[:] = 0.0
        if hasattr(self.m, "tendon_armature"):  # since MuJoCo 3.3.1
            self.m.tendon_armature[:] = 0.0
        if not rotors:
            self.m.dof_armature[:] = 0.0
            if hasattr(self.m, "actuator_armature"):  # since MuJoCo 4
                self.m.actuator_armature[:] = 0.0
        self.d = mujoco.MjData(self.m)
        mujoco.mj_setConst(self.m, self.d)  # what is kept of the armatures

    def move(
        self, names: Sequence[str], q: Array, pose: Array | None = None, twists: Array | None = None
    ) -> Array:
        """Set a motion q (3, n), and of a base (4, 4) and (2, 6); return how dofs follow from it (nv, 6 + n).

        With a base, its body-fixed twist is the first.
        """
        first = 0 if pose is None else 6
        place = {name: first + i for i, name in enumerate(names)}
        matrix, drift = np.zeros((self.m.nv, first + len(names))), np.zeros(self.m.nv)
        self.d.qpos[:] = self.m.qpos0
        for j in range(self.m.njnt):
            kind, dof, at = self.m.jnt_type[j], self.m.jnt_dofadr[j], self.m.jnt_qposadr[j]
            name = self.m.joint(j).name
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                if pose is None or twists is None:
                    continue  # of what is not part of the robot
                turn, omega, v = pose[:3, :3], twists[0, :3], twists[0, 3:]
                self.d.qpos[at : at + 3] = pose[:3, 3]
                self.d.qpos[at + 3 : at + 7] = np.roll(Rotation.from_matrix(turn).as_quat(), 1)
                matrix[dof : dof + 3, 3:6], matrix[dof + 3 : dof + 6, :3] = turn, np.eye(3)
                drift[dof : dof + 3] = turn @ np.cross(omega, v)
            elif kind == mujoco.mjtJoint.mjJNT_BALL:
                columns = [place[f"{name}_r{axis}"] for axis in "zyx"]
                (_, b, c), rates = q[0, [k - first for k in columns]], q[1, [k - first for k in columns]]
                self.d.qpos[at : at + 4] = np.roll(
                    Rotation.from_euler("ZYX", q[0, [k - first for k in columns]]).as_quat(), 1
                )
                sb, cb, sc, cc = np.sin(b), np.cos(b), np.sin(c), np.cos(c)
                # the angular velocity in the child, its columns the axes z, y and x there
                matrix[dof : dof + 3, columns] = [[-sb, 0, 1], [cb * sc, cc, 0], [cb * cc, -sc, 0]]
                db, dc = rates[1:]
                turned = [
                    [-cb * db, 0, 0],
                    [-sb * db * sc + cb * cc * dc, -sc * dc, 0],
                    [-sb * db * cc - cb * sc * dc, -cc * dc, 0],
                ]
                drift[dof : dof + 3] = np.array(turned) @ rates
            elif name in place:
                self.d.qpos[at] = q[0, place[name] - first]
                matrix[dof, place[name]] = 1.0
        velocity, acceleration = q[1], q[2]
        if twists is not None:
            velocity = np.concatenate([twists[0], velocity])
            acceleration = np.concatenate([twists[1], acceleration])
        self.d.qvel[:] = matrix @ velocity
        self.d.qacc[:] = matrix @ acceleration + drift
        return matrix

    def tree_efforts(self, matrix: Array) -> Array:
        """Return efforts (6 + n,) of all joints at the motion that was set; on a base in its axes, first."""
        flags = self.m.opt.disableflags
        self.m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        acceleration = self.d.qacc.copy()
        mujoco.mj_fwdPosition(self.m, self.d)
        mujoco.mj_fwdVelocity(self.m, self.d)
        self.d.qacc[:] = acceleration
        mujoco.mj_inverse(self.m, self.d)
        self.m.opt.disableflags = flags
        result: Array = matrix.T @ self.d.qfrc_inverse
        return result

    def loop_efforts(
        self,
        matrix: Array,
        coordinates: Sequence[int],
        driven: Sequence[int],
        tolerance: float = 1e-9,
    ) -> Array:
        """Return the efforts of the drives, of least norm; coordinates and drives are columns of `matrix`.

        Constraints must be closed, and rows depend on others, to a `tolerance`; AssertionError where they are
        not closed.
        """
        efforts = self.tree_efforts(matrix)
        velocity = self.d.qvel.copy()
        mujoco.mj_fwdPosition(self.m, self.d)
        rows = self.d.efc_J.reshape(-1, self.m.nv)[: self.d.nefc]
        assert np.abs(self.d.efc_pos).max(initial=0.0) < tolerance
        assert np.abs(rows @ velocity).max(initial=0.0) < 100.0 * tolerance
        free = null_space(rows @ matrix, rcond=tolerance) if len(rows) else np.eye(matrix.shape[1])
        moves = free @ np.linalg.inv(free[list(coordinates)])
        result: Array = np.linalg.pinv(moves[list(driven)].T) @ (moves.T @ efforts)
        return result
