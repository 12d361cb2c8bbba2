"""A platform on serial limbs as a tree with loops, and back.

The platform is the floating base of the tree. Its limbs hang from it, joint by joint down to the ground, each
ending in a foot without mass that is welded to the world: with the pose of the platform given, every limb is
a loop of its own. Joint coordinates are those of the limbs; where a limb is written from the ground to the
platform, with body i moved by joint i, the tree has it the other way round, with the screws negative.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure, PlatformRows
from hodyn_ros.model.loops import ROWS, Constraints, Loop
from hodyn_ros.model.parallel.limb import Limb
from hodyn_ros.model.parallel.model import ParallelModel
from hodyn_ros.model.parallel.platform import Platform
from hodyn_ros.model.tree import TreeArrays, TreeModel

_ALONG = 1e-9


def closure_of(model: ParallelModel, idle: Array) -> Closure:
    """Return a parallel robot as a tree with loops, the pose of the platform its coordinate.

    `idle` (6, m): twists in the platform frame that move nothing but the platform on its joints, as
    `check_mobility` returns them; they are locked.
    """
    platform = model.platform
    parents, screws, placements = [-1], [np.zeros(6)], [platform.placement]
    masses, coms, inertias = [platform.mass], [platform.com], [platform.inertia]
    bodies, joints, loops = [platform.name], [], []
    for limb in model.limbs:
        chain, parent = limb.chain, 0
        for i in reversed(range(chain.n_joints)):
            parents.append(parent)
            parent = len(bodies)
            screws.append(-chain.screws[i])
            joints.append(chain.joint_names[i])
            # body i - 1 of the limb, or its foot on the ground, where the first joint is
            own = i > 0
            bodies.append(f"{limb.name}_{chain.body_names[i - 1]}" if own else f"{limb.name}_foot")
            placements.append(chain.placements[i - 1 if own else 0])
            masses.append(chain.masses[i - 1] if own else 0.0)
            coms.append(chain.coms[i - 1] if own else np.zeros(3))
            inertias.append(chain.inertias[i - 1] if own else np.zeros((3, 3)))
        loops.append(Loop("world", parent, "weld", placements[-1][:3, 3], name=limb.name))
    arrays = TreeArrays(parents, screws, placements, masses, coms, inertias, joints, bodies)
    tree = TreeModel.build(arrays, model.gravity, True, name=model.name, any_rank=True)
    if idle.shape[1]:
        loops += _locks(platform, model.dof, idle)
    rows = _determining_rows(model.dof, model.length)
    driven = [model.joint_names[i] for i in model.driven]
    built = Closure.build(tree, Constraints(loops, coordinates=[(0, rows)], driven=driven))
    return replace(built, platform=PlatformRows(0, rows, model.dof))


def model_of(closure: Closure) -> ParallelModel:
    """Return the limbs and the platform of what `closure_of` returned, with the bodies that it has now."""
    tree = closure.tree
    assert closure.platform is not None and closure.platform.twists is not None
    dof = closure.platform.twists
    platform = Platform(
        float(tree.masses[0]), tree.coms[0], tree.inertias[0], tree.placements[0], tree.body_names[0]
    )
    limbs = []
    for loop in closure.loops:
        if loop.kind != "weld":
            continue
        chain = [loop.b.body]
        while tree.parents[chain[-1]] > 0:
            chain.append(tree.parents[chain[-1]])
        own = chain[1:]  # from the ground to the platform, without foot and platform
        joints = [tree.joint_of(body) for body in chain]
        limbs.append(
            Limb(
                -tree.screws[chain],
                tree.placements[own],
                tree.masses[own],
                tree.coms[own],
                tree.inertias[own],
                [i for i, joint in enumerate(joints) if joint in closure.driven],
                loop.name,
                [tree.joint_names[joint] for joint in joints],
            )
        )
    return ParallelModel.build(limbs, platform, dof, tree.gravity, tree.name)


def _determining_rows(dof: Array, length: float) -> tuple[str, ...]:
    """Return the components of the platform's motion that determine the others best."""
    from scipy.linalg import qr

    scaled = dof / np.repeat([1.0, length], 3)[:, None]
    pivots = qr(scaled.T, mode="r", pivoting=True)[1]
    return tuple(ROWS[i] for i in sorted(pivots[: dof.shape[1]]))


def _locks(platform: Platform, dof: Array, idle: Array) -> list[Loop]:
    """Return loops that hold a platform which would turn about axes of its own without moving a limb."""
    rank = int(np.linalg.matrix_rank(idle[:3], tol=_ALONG))
    axes = np.linalg.qr(idle[:3])[0].T
    if rank < idle.shape[1] or np.abs(axes @ dof[:3]).max() > _ALONG * max(1.0, float(np.abs(dof[:3]).max())):
        raise ModelError(
            "the platform can move on its joints while all limbs stand still, and not by turning about axes "
            "alone that it keeps; leave out a joint"
        )
    locks = []
    for number, axis in enumerate(axes, start=1):
        twist = idle @ np.linalg.lstsq(idle[:3], axis, rcond=None)[0]
        point = platform.placement @ [*np.cross(twist[:3], twist[3:]), 1.0]
        along = platform.placement[:3, :3] @ axis
        locks.append(Loop("world", 0, "spin", point[:3], along, name=f"{platform.name}_spin{number}"))
    return locks


def idle_twists(closure: Closure) -> Array:
    """Return the twists (6, m), in the platform frame, in which nothing but loops of `closure_of` hold it."""
    spins = [loop.b for loop in closure.loops if loop.kind == "spin"]
    twists = [[*frame.axes[:, 2], *np.cross(frame.point, frame.axes[:, 2])] for frame in spins]
    return np.array(twists).reshape(-1, 6).T
