"""Several robots as one: arms beside each other, or on the body of another robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ModelError
from hodyn_ros.lie.rigid import rigid_pose
from hodyn_ros.lie.se3 import Ad
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.tree import TreeArrays, TreeModel
from hodyn_ros.model.uncertainty import RobotUncertainty


@dataclass(frozen=True, eq=False)
class Mount:
    """Where a robot stands, and what its joints, bodies and frames are called there.

    `pose` (4, 4) of its world in the frame of the body `on` [m], which is one of a robot before it, as it is
    called there; None for the world.
    """

    robot: Robot
    prefix: str = ""
    pose: ArrayLike | None = None
    on: str | None = None


def mounted(mounts: Sequence[Mount], name: str = "robots") -> Robot:
    """Return several robots as one, whose joints are those of all, one robot after the other.

    What is planned for it keeps the limits of all, at the same time. The first robot may have loops, a
    platform or a floating base; the others are trees that stand on something. Gravity is that of the first
    one. Raises ModelError for others that have loops, float or have propellers, for drives that only some
    have, for a body that is unknown, and for names that are there twice.
    """
    if not mounts:
        raise ModelError("give a robot at least to mount")
    first, *standing = mounts
    for mount in standing:
        robot = mount.robot
        if not robot.is_arm or robot.propellers is not None:
            raise ModelError(
                f"robot {robot.name!r} has loops, floats or has propellers; only the first robot may: "
                "mount it first"
            )
    if first.robot.propellers is not None:
        raise ModelError(
            f"robot {first.robot.name!r} has propellers, which are not mounted; use its own file"
        )
    tree, offsets = _tree(mounts, name)
    frames = {
        mount.prefix + label: _moved(frame, offset, *_carrier(tree, mount))
        for mount, offset in zip(mounts, offsets)
        for label, frame in mount.robot.frames.items()
    }
    limits = _together([mount.robot.limits for mount in mounts])
    closure = first.robot.closure
    coordinate_limits = None
    if closure is not None:
        closure = _closure(closure, tree)
        if (of_first := first.robot.coordinate_limits) is not None:
            coordinate_limits = _together([of_first, *(mount.robot.limits for mount in standing)])
    uncertain = [mount.robot.uncertainty for mount in mounts]
    worst = {
        entry.name: max(getattr(each, entry.name) for each in uncertain) for entry in fields(RobotUncertainty)
    } | {"base": uncertain[0].base}  # the only one that may float
    return Robot(
        tree, limits, _drives(mounts), frames, closure, coordinate_limits, None, RobotUncertainty(**worst)
    )


def _tree(mounts: Sequence[Mount], name: str) -> tuple[TreeModel, list[int]]:
    """Return the tree of all, and the number of the first body of each."""
    rows: dict[str, list[Array]] = {key: [] for key in _ROWS}
    parents: list[int] = []
    bodies: list[str] = []
    joints: list[str] = []
    offsets = []
    for mount in mounts:
        tree, offset = mount.robot.tree, len(parents)
        carrier = _body(bodies, mount.on)
        place = np.eye(4) if mount.pose is None else rigid_pose("pose", mount.pose)
        if carrier >= 0:
            place = np.concatenate(rows["placements"])[carrier] @ place
        parents += [carrier if p < 0 else p + offset for p in tree.parents]
        bodies += [mount.prefix + each for each in tree.body_names]
        joints += [mount.prefix + each for each in tree.joint_names]
        for key in _ROWS:
            rows[key].append(getattr(tree, key))
        rows["placements"][-1] = place @ tree.placements
        rows["screws"][-1] = tree.screws @ Ad(place).T
        offsets.append(offset)
    columns = {key: np.concatenate(rows[key]) for key in _ROWS}
    arrays = TreeArrays(parents, joint_names=joints, body_names=bodies, **columns)
    first = mounts[0].robot.tree
    if mounts[0].pose is not None and first.floating_base:
        raise ModelError(f"robot {first.name!r} floats; leave out its pose")
    joined = TreeModel.build(
        arrays,
        first.gravity,
        first.floating_base,
        name=name,
        any_rank=any(mount.robot.tree.any_rank for mount in mounts),
    )
    return joined, offsets


_ROWS = ("screws", "placements", "masses", "coms", "inertias")  # as in `TreeArrays`


def _body(bodies: Sequence[str], name: str | None) -> int:
    if name is None:
        return -1
    if name not in bodies:
        raise ModelError(f"body {name!r} to mount on is unknown; before it there are {list(bodies)}")
    return list(bodies).index(name)


def _carrier(tree: TreeModel, mount: Mount) -> tuple[int, Array]:
    place = np.eye(4) if mount.pose is None else rigid_pose("pose", mount.pose)
    return _body(tree.body_names, mount.on), place


def _moved(frame: Frame, offset: int, carrier: int, place: Array) -> Frame:
    if frame.body < 0:
        return Frame(carrier, place @ frame.pose)
    return Frame(frame.body + offset, frame.pose)


def _together(limits: Sequence[JointLimits]) -> JointLimits:
    columns: dict[str, Any] = {
        entry.name: np.concatenate([getattr(each, entry.name) for each in limits])
        for entry in fields(JointLimits)
    }
    return JointLimits(**columns)


def _drives(mounts: Sequence[Mount]) -> list[DriveSpec] | None:
    trains = [mount.robot.drive_train for mount in mounts]
    bare = [mount.robot.name for mount, train in zip(mounts, trains) if train is None]
    if len(bare) == len(mounts):
        return None
    if bare:
        raise ModelError(f"robot {bare[0]!r} has no drives, but others have; give all of them some, or none")
    specs = []
    for mount, train in zip(mounts, trains):
        for spec in train.specs if train is not None else ():
            rotor = spec.rotor
            renamed = None if rotor is None else replace(rotor, body=mount.prefix + rotor.body)
            specs.append(replace(spec, rotor=renamed))
    return specs


def _closure(closure: Closure, tree: TreeModel) -> Closure:
    """Return the loops of a robot that carries more, whose joints all move by themselves."""
    before, more = closure.tree.n_joints, tree.n_joints - closure.tree.n_joints
    new = tuple(range(before, before + more))
    platform = closure.platform
    if platform is not None:  # what hangs on it is no limb, so its limbs are loops like others
        platform = platform._replace(twists=None)
    return replace(
        closure,
        tree=tree,
        platform=platform,
        coupling_matrix=block_diag(closure.coupling_matrix, np.eye(more)),
        offsets=np.append(closure.offsets, np.zeros(more)),
        leading=(*closure.leading, *new),
        joints=(*closure.joints, *new),
        driven=(*closure.driven, *new),
        start=None if closure.start is None else np.append(closure.start, np.zeros(more)),
    )
