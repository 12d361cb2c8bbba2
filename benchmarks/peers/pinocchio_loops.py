"""Forward dynamics of robots with loops by Pinocchio's constraintDynamics, called from Python."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from benchmarks.agreement import check
from benchmarks.peers import pinocchio_tree
from benchmarks.stopwatch import Array, Contender, python_call
from hodyn_ros import Robot

Ball = tuple[str, str]  # two frames whose origins stay together


def accelerations(
    names: tuple[str, str], robot: Robot, balls: Sequence[Ball], motions: Sequence[Array]
) -> list[Contender]:
    """Return this package's accelerations and Pinocchio's, at the same states under the same efforts.

    `names` of the two; `balls` close the loops of the robot in Pinocchio, which must agree first; `motions`
    (3 or more, n): of the coordinates.
    """
    f = robot.compile(0, "forward_dynamics")
    model = pinocchio_tree.build(robot.tree)
    data = model.createData()
    models, datas = _constraints(robot, balls)
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-10, 1e-10, 1e-10, 2)  # two steps give 1e-12 here; more take longer
    driven = [robot.tree.joint_names.index(name) for name in robot.driven_joints]
    ours, theirs = [], []
    for y in motions:
        one = robot.solve_loops(y[:3])
        tau = np.zeros(robot.tree.n_joints)
        tau[driven] = one.efforts[0]
        ours.append((y[:2].copy(), one.efforts[:1].copy()))
        theirs.append((one.joints[0].copy(), one.joints[1].copy(), tau))
        check(names[0], f(*ours[-1]), y[2:3])
        found = pin.constraintDynamics(model, data, *theirs[-1], models, datas, settings)
        check(names[1], np.array(found)[None], one.joints[2:3])
    constants = {"model": model, "data": data, "models": models, "datas": datas, "settings": settings}
    return [
        python_call(names[0], "f(*next(given))", {"f": f, "given": itertools.cycle(ours)}),
        python_call(
            names[1],
            "f(model, data, *next(given), models, datas, settings)",
            {"f": pin.constraintDynamics, "given": itertools.cycle(theirs), **constants},
        ),
    ]


def _constraints(robot: Robot, balls: Sequence[Ball]) -> tuple[object, object]:
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    model = pinocchio_tree.build(robot.tree)
    for ball in balls:
        ends = []
        for name in ball:
            body, pose = robot.frames[name]
            ends += [body + 1, pin.SE3(pose[:3, :3], pose[:3, 3])]
        models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends, pin.LOCAL))
        datas.append(models[-1].createData())
    return models, datas
