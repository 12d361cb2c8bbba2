"""Whether torques determine accelerations: no joints may move without moving mass.

The mass matrix is the sum of J^T M J over the bodies, so it is singular just where joint velocities other
than zero leave every body with mass at rest. Bodies without mass, inside a chain, make that possible: the
joints around connected ones are then held only by the bodies with mass that they carry. That is a question of
kinematics, decided by the rank of the joint screws alone, so that a light body is never taken for one without
mass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from hodyn_ros.engine.series.canonical import without_mass
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.formulations.spatial import SpatialMotion
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Ad, Array, exp_screw, inverse, spatial_inertia
from hodyn_ros.model.tree import TreeModel, massless

_FLAT = 1e-12  # ratio of principal moments below which an inertia has no full rank
_SINGULAR = 1e-9  # ratio of the least to the largest singular value of normalised screws
_NEAR = 1e-7  # the same of a pose: nearer to a singular one answers may be rounding alone
_LEAST_EXTENT = 1e-5  # of a robot's distance from the world origin, whose rounding must not count as extent


@dataclass
class MasslessGroup:
    """Connected bodies without mass, and the ways through them to the bodies with mass that they carry.

    `paths`: for each of these bodies the ones moved by the joints on its way, itself the last. `center` (3,)
    and `extent` [m] say where the joints lie at the zero configuration.
    """

    bodies: list[int]
    paths: list[tuple[int, ...]] = field(default_factory=list)
    center: Array = field(default_factory=lambda: np.zeros(3))
    extent: float = 1.0

    @property
    def moved(self) -> list[int]:
        """The bodies that the joints of the group move, each once."""
        return sorted({body for path in self.paths for body in path})


def massless_groups(model: TreeModel) -> list[MasslessGroup]:
    """Return the groups of connected bodies that have no mass, or one lost in rounding by what they carry."""
    light = without_mass(model)
    group_of: dict[int, MasslessGroup] = {}
    groups: list[MasslessGroup] = []
    for body, parent in enumerate(model.parents):
        group = group_of.get(parent)
        if light[body]:
            if group is None:
                group = MasslessGroup([])
                groups.append(group)
            group.bodies.append(body)
            group_of[body] = group
        elif group is not None:
            path = [body]
            while model.parents[path[0]] in group_of:
                path.insert(0, model.parents[path[0]])
            group.paths.append(tuple(path))
    for group in groups:
        _measure(model, group)
    return groups


def check_mobility(model: TreeModel) -> list[MasslessGroup]:
    """Reject a robot whose mass matrix is singular in every configuration; return its massless groups.

    Raises ModelError naming the joints that torques cannot hold and the bodies without mass between them.
    """
    if model.any_rank:
        _check_ends(model)
        _check_ranks(model)
    groups = massless_groups(model)
    anywhere = np.random.default_rng(0).uniform(-1.0, 1.0, model.n_joints)
    for group in groups:
        idle = _idle_joints(model, group, anywhere, (), _SINGULAR)
        if idle:
            raise ModelError(
                f"joints {idle} can move together without moving any mass, because {_bodies(model, group)} "
                "without mass: no torque would determine their acceleration. Add mass and inertia, or leave "
                "out one of the joints"
            )
    return groups


def drawn_only(model: TreeModel) -> str:
    """Say that no body of a robot has a mass; nothing where one has."""
    if model.masses.any() or model.inertias.any():
        return ""
    return (
        f"no body of robot {model.name!r} has a mass, as in descriptions that are only drawn: no motion "
        "would cost an effort; write masses and inertias into it, or under bodies in a robot file"
    )


def _check_ends(model: TreeModel) -> None:
    """Reject bodies without mass that carry none."""
    if fault := drawn_only(model):
        raise ModelError(fault)
    for body, name in enumerate(model.body_names):
        without = model.masses[body] == 0.0 and not model.inertias[body].any()
        base = model.floating_base and body == 0
        if without and (base or not model.children[body]):
            what = "is the base" if base and model.children[body] else "carries no other body"
            raise massless(name, what)


def _check_ranks(model: TreeModel) -> None:
    """Reject joints that move only where inertias have no rank, such as a point of mass on its axis."""
    inertias = spatial_inertia(model.masses, model.coms, model.inertias)
    moments = [np.linalg.eigvalsh(inertia) for inertia in model.inertias]
    heavy = [mass > 0.0 and w[0] <= _FLAT * w[-1] for mass, w in zip(model.masses, moments)]
    if not any(heavy):
        return
    anywhere = np.random.default_rng(0).uniform(-1.0, 1.0, (1, model.n_joints))
    base = BaseMotion(np.eye(4), np.zeros((1, 6))) if model.floating_base else None
    motion = SpatialMotion(model, anywhere, base)
    # or the largest radius of gyration, where bodies are nearer to the world's origin than that, or at it but
    # for rounding: beside moments masses would count for nothing
    radii = [np.sqrt(w[-1] / mass) for mass, w in zip(model.masses, moments) if mass > 0.0]
    size = float(max([np.abs(model.placements[:, :3, 3]).max(), *radii])) or 1.0
    scale = np.repeat([1.0, size], 3)
    rows = []
    for body in range(model.n_bodies):
        jacobian = np.zeros((6, model.n_joints))
        at = body
        while at >= model.first_jointed_body:
            jacobian[:, model.joint_of(at)] = motion.screws[at][0]
            at = model.parents[at]
        values, vectors = np.linalg.eigh(inertias[body] * np.outer(scale, scale))
        kept = vectors[:, values > _FLAT * values[-1]] if values[-1] > 0.0 else np.zeros((6, 0))
        rows.append((kept.T / scale) @ Ad(inverse(motion.poses[body])) @ jacobian)
    matrix = np.concatenate(rows)
    lengths = np.linalg.norm(matrix, axis=0)
    moved = lengths > _SINGULAR * lengths.max()
    _, values, motions = np.linalg.svd(matrix / np.where(moved, lengths, 1.0))
    if len(values) < model.n_joints or values[-1] <= _SINGULAR * values[0]:
        idle = [name for name, part in zip(model.joint_names, motions[-1]) if abs(part) > 1e-6]
        raise ModelError(
            f"joints {idle} can move without moving any mass, because inertias of the bodies that they move "
            "are singular: no torque would determine their acceleration; give those bodies inertia"
        )


def check_pose(
    model: TreeModel, groups: Sequence[MasslessGroup], held: Collection[int], arguments: Sequence[Array]
) -> None:
    """Reject arguments of forward or hybrid dynamics, a state first, if the mass matrix is singular there.

    `groups` are what `check_mobility` returned; the motion of the joints `held` is prescribed. Raises
    InputError naming the joints that torques cannot hold there.
    """
    for group in groups:
        idle = _idle_joints(model, group, arguments[0][0], held, _NEAR)
        if idle:
            raise InputError(
                f"the pose is singular: joints {idle} can move together there without moving any mass, "
                f"because {_bodies(model, group)} without mass; torques do not determine accelerations"
            )


def _measure(model: TreeModel, group: MasslessGroup) -> None:
    """Find where the joints lie, for screws whose angular and linear parts are of one size."""
    group.center = model.placements[group.bodies[0], :3, 3]
    distances = [
        np.linalg.norm(screw[3:] + np.cross(screw[:3], group.center))
        for screw in model.screws[group.moved]
        if screw[:3].any()
    ]
    least = _LEAST_EXTENT * max(np.abs(model.placements[:, :3, 3]).max(), np.abs(model.screws[:, 3:]).max())
    group.extent = float(max([least, *distances])) or 1.0


def _idle_joints(
    model: TreeModel, group: MasslessGroup, positions: Array, held: Collection[int], least: float
) -> list[str]:
    """Return the joints that can move while all bodies with mass stand still, but for a `least` share."""
    joints = [model.joint_of(body) for body in group.moved if model.joint_of(body) not in held]
    if not joints:
        return []
    columns = {joint: column for column, joint in enumerate(joints)}
    matrix = np.zeros((6 * len(group.paths), len(joints)))  # to the twists of the bodies with mass
    for i, path in enumerate(group.paths):
        for joint, screw in _screws(model, group, path, positions):
            if joint in columns:
                matrix[6 * i : 6 * i + 6, columns[joint]] = screw
    matrix /= np.linalg.norm(matrix, axis=0)
    _, values, motions = np.linalg.svd(matrix)
    if len(values) == len(joints) and values[-1] > least * values[0]:
        return []
    idle = motions[-1]
    return [model.joint_names[joint] for joint in joints if abs(idle[columns[joint]]) > 1e-6]


def _screws(
    model: TreeModel, group: MasslessGroup, path: Sequence[int], positions: Array
) -> Iterator[tuple[int, Array]]:
    """Yield the joints on a path with their screws (6,) about the group's centre, lengths in its extent."""
    motion = np.eye(4)  # of the body before the joint, seen from the body that carries the group
    for body in path:
        joint = model.joint_of(body)
        screw = model.screws[body].copy()
        screw[3:] += np.cross(screw[:3], group.center)
        moved = Ad(motion) @ screw
        moved[3:] /= group.extent
        yield joint, moved
        motion = motion @ exp_screw(screw, positions[joint])


def _bodies(model: TreeModel, group: MasslessGroup) -> str:
    names = [model.body_names[body] for body in group.bodies]
    return f"body {names[0]!r} is" if len(names) == 1 else f"bodies {names} are"
