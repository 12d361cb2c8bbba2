"""Every operation of every kind of robot, by every way to call it, against one exact source of truth.

The cells are those of `hodyn_ros.dynamics.operations`: a new operation fails here until `TRUTH` has its law.
What is exact comes from how all bodies move at many digits (`oracles/mp_bodies.py`), and efforts from
d'Alembert's principle or Lagrange's multipliers (`oracles/subjects.py`); neither knows how the package
computes.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from linkages import robot_of
from oracles import mp_dynamics as mp
from oracles.differences import derivative, second_derivative
from oracles.mechanisms import FEW, MECHANISMS
from oracles.motions import Base
from oracles.mp_bodies import Moving, parameters
from oracles.parallel_robots import gough_stewart, planar_3rrr
from oracles.random_trees import Tree
from oracles.subjects import LimbSubject, LoopSubject, Subject, TreeSubject
from sweeps import THOROUGH, some

from hodyn_ros import BaseMotion, InputError, Robot
from hodyn_ros.array import Array
from hodyn_ros.dynamics.calls.description import call_of
from hodyn_ros.dynamics.operations import OPERATIONS, Operation
from hodyn_ros.lie.representations import REPRESENTATIONS, Representation
from hodyn_ros.lie.se3 import exp

pytestmark = pytest.mark.thorough

Law = Callable[..., tuple[Array, Array]]

TREES: dict[str, Callable[[], Subject]] = {
    "arm": lambda: TreeSubject(1, 4),
    "flyer": lambda: TreeSubject(3, 3, True),
    "free pair": lambda: TreeSubject(6, 2, True),  # of which second derivatives are compiled, too
}
CLOSED: dict[str, Callable[[], Subject]] = {
    **{name: lambda name=name: LoopSubject(MECHANISMS[name](), robot_of) for name in MECHANISMS},
    "3-RRR on limbs": lambda: LimbSubject(planar_3rrr(0.08)),
    "3-RRR on limbs and a hinge": lambda: LimbSubject(planar_3rrr(0.0)),
    "6-UPS on limbs": lambda: LimbSubject(gough_stewart(3)),
}
SUBJECTS = TREES | CLOSED
subject = cache(lambda name: SUBJECTS[name]())
robot_named = cache(lambda name: subject(name).robot())


# --- what is true: pairs (found, expected) by order --------------------------------------------------------


def rows(series: mp.Exact, order: int) -> Array:
    """Return the derivatives of a power series up to an order."""
    return mp.to_float(mp.derivatives(series)[: order + 1])


def of(law: Callable[[Moving, Tree], mp.Exact]) -> Law:
    return lambda s, order, found: (found, rows(law(s.moving, s.tree), order))


def dynamic_matrices(moving: Moving, tree: Tree) -> mp.Exact:
    """Return mass and Coriolis matrix and gravity below each other (terms, 2 m + 1, m)."""
    terms = len(moving.velocities)
    parts = moving.mass(tree)[:terms], moving.coriolis(tree), moving.gravity(tree)[:terms, None]
    return np.concatenate(parts, axis=1)


def along(found: Array, way: Array) -> Array:
    """Contract partial derivatives [r, k, i, j] with a direction [k, j]."""
    return np.einsum("rkij,kj->ri", found, way)


def curved(found: Array, way: Array) -> Array:
    return np.einsum("rkliab,ka,lb->ri", found, way, way)


def reference_of(s: Subject) -> Array:
    return np.random.default_rng(8).uniform(-1.0, 1.0, (len(s.q) - 1, s.shape[1]))


def weights_of(operation: Operation, s: Subject, order: int) -> Array:
    count = (order + 1, s.n_efforts)
    shape = (s.tree.n_bodies, 16 + 6 * order) if operation.frames == "several" else count
    return np.random.default_rng(3).normal(size=shape)


def efforts_of(s: Subject, order: int) -> Array:
    """Return exact efforts, wrenches on a base in the world."""
    return mp.to_float(s.exact_efforts[: order + 1])


def inverse_dynamics(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    return found, efforts_of(s, order)


def drive_state(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    first = 6 * s.pushed  # columns in which there is no drive
    motion = rows(s.moving.now.joints[:, list(s.driven)], order + 2)
    motion = np.hstack([found[order + 1 :, :first], motion])
    return found, np.vstack([efforts_of(s, order), motion])


def forward_dynamics(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    """The motion that is found needs the efforts that were given."""
    q, base = s.motion(order=order)
    q[2:] = mp.exact(found[:, found.shape[1] - q.shape[1] :])
    if s.base is not None:
        world = s.base.in_representation("spatial")
        base = Base(world.pose, np.vstack([world.twists[:1], found[:, :6]]), "spatial")
    again = mp.to_float(s.efforts_along(q, base, order, s.tree))
    return again, efforts_of(s, order)


def hybrid_dynamics(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    """Of the first drive the effort, of the others and of a base the motion."""
    expected = rows(s.moving.now.joints[:, list(s.driven)], order + 2)[2:]
    expected[:, 0] = efforts_of(s, order)[:, 6 * s.pushed]
    if s.base is None:
        return found, expected
    return found, np.hstack([s.base.in_representation("spatial").twists[1 : order + 2], expected])


def forward_kinematics(s: Subject, order: int, found: Array, kind: str) -> tuple[Array, Array]:
    return found, mp.to_float(frames_of(s.moving.now.poses, order, kind))


def frames_of(poses: list[mp.Exact], order: int, kind: str) -> mp.Exact:
    """Return of each body the pose by rows, its twist in a representation, and the derivatives of that."""
    found = []
    for pose in poses:
        twists = mp.derivatives(mp.twists_of(pose, kind))[:order].ravel() if order else []
        found.append(np.concatenate([pose[0].ravel(), [0, 0, 0, 1], twists]))
    return np.array(found)


def frames_along(s: Subject, order: int, kind: str, step: Any) -> mp.Exact:
    """Return these of a tree, where the motion is larger by a step along the direction."""
    q, base = s.motion(mp.exact(s.way[: order + 1]) * step)
    poses = None if base is None else mp.base_poses(base, mp.taylor(base.twists, order), order + 1)
    return frames_of(mp.kinematics(s.tree, mp.taylor(q, order + 1), poses).poses, order, kind)


def inverse_kinematics(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    return (found, s.q[: order + 1]) if s.base is None or s.pushed else motion_from_drives(s, order, found)


def jacobian(s: Subject, order: int, found: Array, kind: str) -> tuple[Array, Array]:
    return found, rows(s.moving.jacobian(busiest(s), kind), order)


def busiest(s: Subject) -> int:
    """Return the body whose Jacobian changes most."""
    return int(np.argmax([np.abs(mp.to_float(columns[1])).max() for columns in s.moving.columns]))


def motion_from_drives(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    parts = [s.q[: order + 1].ravel()]
    if s.base is not None and not s.pushed:
        parts = [s.base.pose.ravel(), s.base.in_representation("spatial").twists[:order].ravel(), *parts]
    return found, np.concatenate(parts)[None]


def momentum(moving: Moving, tree: Tree) -> mp.Exact:
    return mp.matmul(moving.momentum_matrix(tree), moving.velocities)


def regressor(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    """Efforts are linear in the parameters: also with those of other bodies they are exact."""
    (q, base), other = s.motion(order=order), s.heavier()
    if s.n_efforts > s.shape[1]:
        other = s.tree
    return found @ parameters(other), mp.to_float(s.in_body(s.efforts_along(q, base, order, other), base))


def slotine_li_regressor(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    other, reference = s.heavier(), reference_of(s)
    forces = s.moving.forces(other, mp.taylor(mp.exact(reference), len(reference)))
    return found @ parameters(other), rows(forces, order)


def parameter_derivatives(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    other = s.heavier()
    return np.einsum("rpij,p->rij", found, parameters(other)), rows(dynamic_matrices(s.moving, other), order)


def inverse_dynamics_derivatives(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    return along(found, s.way[: order + 3]), s.slope[: order + 1]


def inverse_dynamics_hessian(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    way, weights = s.way[: order + 3], weights_of(OPERATIONS["inverse_dynamics_hessian"], s, order)
    total = np.einsum("klab,ka,lb->", found, way, way)
    return np.array([[total]]), np.array([[(weights * s.curvature(order)).sum()]])


def inverse_dynamics_second_derivatives(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    way = s.way[: order + 3]
    return curved(found, way), s.curvature(order)


def missing_efforts(s: Subject, order: int, way: Array, first: Array, second: Array, step: Any) -> mp.Exact:
    """Return the efforts of a motion that follows from efforts along a direction, less these.

    Wrenches on a base are body-fixed there, and turn with it; those there already stay in the world.
    """
    changes, efforts = mp.exact(way) * step, mp.exact(way[2:]) * step
    changes[2:] = mp.exact(first) * step + mp.exact(second) * (step * step / 2)
    q, base = s.motion(changes, order, settled=True)
    if s.pushed:
        poses = mp.base_poses(base, mp.taylor(base.twists, order + 1), order + 1)
        world = mp.wrench_to_world(poses, mp.taylor(efforts[:, :6], order + 1))
        efforts = np.concatenate([mp.derivatives(world), efforts[:, 6:]], axis=1)
    return s.efforts_along(q, base, order, s.tree) - efforts


def compared(s: Subject, order: int, missing: Array, change: Array) -> tuple[Array, Array]:
    """Compare what is missing, which should be nothing, with the largest effort of any part of a change."""
    by_motion = called(s, OPERATIONS["inverse_dynamics_derivatives"], order)
    size = np.abs(np.einsum("rkij,kj->rki", by_motion, change)).max(axis=(1, 2))[:, None]
    return missing + size, np.broadcast_to(size, missing.shape)


def forward_dynamics_derivatives(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    """The change of the motion that is found needs the change of the efforts that was given."""
    way = s.way[: order + 3]
    first = along(found, way)
    missing = derivative(lambda step: missing_efforts(s, order, way, first, 0 * first, step))
    return compared(s, order, missing, np.vstack([way[:2], first]))


def forward_dynamics_second_derivatives(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    """Likewise to the second order of the change."""
    way = s.way[: order + 3]
    first = along(called(s, OPERATIONS["forward_dynamics_derivatives"], order), way)
    second = curved(found, way)
    missing = second_derivative(lambda step: missing_efforts(s, order, way, first, second, step))
    return compared(s, order, missing, np.vstack([way[:2], second]))


def forward_dynamics_hessian(s: Subject, order: int, found: Array) -> tuple[Array, Array]:
    """The multiplier times the second derivatives, which are exact."""
    weights = weights_of(OPERATIONS["forward_dynamics_hessian"], s, order)
    full = called(s, OPERATIONS["forward_dynamics_second_derivatives"], order)
    return found, np.einsum("ri,rkliab->klab", weights, full)


def forward_kinematics_derivatives(s: Subject, order: int, found: Array, kind: str) -> tuple[Array, Array]:
    expected = derivative(partial(frames_along, s, order, kind))
    return np.einsum("fxkj,kj->fx", found, s.way[: order + 1]), expected


def forward_kinematics_hessian(s: Subject, order: int, found: Array, kind: str) -> tuple[Array, Array]:
    weights, way = weights_of(OPERATIONS["forward_kinematics_hessian"], s, order), s.way[: order + 1]
    expected = second_derivative(partial(frames_along, s, order, kind))
    total = np.einsum("klab,ka,lb->", found, way, way)
    return np.array([[total]]), np.array([[(weights * expected).sum()]])


TRUTH: dict[str, Law] = {
    "inverse_dynamics": inverse_dynamics,
    "drive_state": drive_state,
    "forward_dynamics": forward_dynamics,
    "hybrid_dynamics": hybrid_dynamics,
    "forward_kinematics": forward_kinematics,
    "inverse_kinematics": inverse_kinematics,
    "jacobian": jacobian,
    "com": of(Moving.com),
    "mass_matrix": of(Moving.mass),
    "coriolis_matrix": of(Moving.coriolis),
    "gravity_torque": of(Moving.gravity),
    "regressor": regressor,
    "inverse_dynamics_derivatives": inverse_dynamics_derivatives,
    "forward_dynamics_derivatives": forward_dynamics_derivatives,
    "inverse_dynamics_hessian": inverse_dynamics_hessian,
    "inverse_dynamics_second_derivatives": inverse_dynamics_second_derivatives,
    "forward_dynamics_hessian": forward_dynamics_hessian,
    "forward_dynamics_second_derivatives": forward_dynamics_second_derivatives,
    "forward_kinematics_derivatives": forward_kinematics_derivatives,
    "forward_kinematics_hessian": forward_kinematics_hessian,
    "joint_motion": of(lambda moving, _: moving.now.joints),
    "motion_from_drives": motion_from_drives,
    "dynamic_matrices": of(dynamic_matrices),
    "drive_jacobian": lambda s, order, found: (found, rows(s.moving.by_joints[:, list(s.driven)], order)),
    "com_jacobian": of(Moving.com_jacobian),
    "centroidal_momentum": of(momentum),
    "centroidal_momentum_matrix": of(Moving.momentum_matrix),
    "parameter_derivatives": parameter_derivatives,
    "slotine_li_regressor": slotine_li_regressor,
}
# What follows from efforts or places, and not the other way round, is as good as the robot is conditioned.
EXACT = {"hybrid_dynamics": 1e-8, "motion_from_drives": 1e-9, "inverse_kinematics": 1e-9}
AGREED = {**EXACT, "forward_dynamics": 1e-9, "forward_dynamics_derivatives": 1e-9}


# --- ways to call ------------------------------------------------------------------------------------------


def moved_frame(s: Subject) -> int | None:
    """Return the body whose pose tells the coordinates best, if there is any."""
    first = 6 * s.pushed
    sizes = [
        np.linalg.svd(mp.to_float(columns[0][:, first:]), compute_uv=False).min()
        if s.q.shape[1] <= 6
        else 0.0
        for columns in s.moving.columns
    ]
    best = int(np.argmax(sizes))
    return best if sizes[best] > 0.05 else None


def given(
    robot: Robot, s: Subject, operation: Operation, order: int
) -> tuple[list[Any], dict[str, Any], list[Array]]:
    """Return what the call of an operation takes, by place and by name, and what its compiled form does."""
    forward = operation.takes == "state"
    count = 2 if forward else order + 1 + operation.rates
    q, named = s.q[:count], {}
    base, moving = None, []
    if s.base is not None:
        base = BaseMotion(s.base.pose, s.base.twists[: max(count - 1, 1)], representation="body_fixed")
        kept = base.in_representation("spatial" if s.closed else operation.base)
        base = base.in_representation("spatial") if forward or operation.takes == "poses" else base
        moving = [kept.pose, np.ascontiguousarray(kept.twists[: count - 1])]
    weights = [weights_of(operation, s, order)] if operation.weighted else []
    arrays = [] if s.closed and operation.q_left_out and not q.shape[1] else [q]
    if forward:
        efforts = efforts_of(s, order)
        push, drives = (np.ascontiguousarray(part) for part in np.split(efforts, [6 * s.pushed], axis=1))
        if operation.name == "hybrid_dynamics":
            drives[:, 0] = rows(s.moving.now.joints[:, s.driven[0]], order + 2)[2:]
            named = {"prescribed": robot.driven_joints[:1]}
        pushes = [push] if s.pushed else []
        arrays = [q, *moving, drives, *pushes] if s.closed else [q, drives, *moving, *pushes]
        return [q, drives, *weights, base, *pushes], named, [*arrays, *weights]
    if operation.takes == "drives":
        drives = rows(s.moving.now.joints[:, list(s.driven)], order)
        return [drives, *([base] if s.pushed else [])], {}, [drives, *(moving if s.pushed else [])]
    if operation.takes == "poses":
        body = moved_frame(s)
        pose, seed = s.moving.now.poses[body], s.q[0] + 0.01
        twists = rows(mp.twists_of(pose, "spatial"), order - 1) if order else np.zeros((0, 6))
        place = np.vstack([mp.to_float(pose[0]), [0, 0, 0, 1]])
        named = {"body": body, "seed": seed if len(seed) else None}
        return (
            [place, twists, base if s.pushed or not s.closed else None],
            named,
            [seed[None], place, twists, *moving],
        )
    if operation.name == "slotine_li_regressor":
        joints, twists = s.split(reference_of(s)[:count])
        joints = np.vstack([np.zeros((1, q.shape[1])), joints.astype(float)])
        return [q, joints, base, *([] if base is None else [twists.astype(float)])], {}, []
    named = {"body": busiest(s)} if operation.frames == "one" else {}
    return [q, *weights, base], named, [*arrays, *moving, *weights]


def numbers(found: Any, order: int) -> Array:
    """Return the result of a call as its compiled form does."""
    if hasattr(found, "screws"):
        twists = np.moveaxis(found.twists, -3, -2)
        count = found.poses.shape[:-2]
        return np.concatenate([found.poses.reshape(*count, 16), twists.reshape(*count, -1)], axis=-1)
    if hasattr(found, "coriolis"):
        return np.concatenate([found.mass, found.coriolis, found.gravity[..., None, :]], axis=-2)
    if hasattr(found, "near_singularity"):
        batch = found.efforts.shape[:-2]
        wrench = np.zeros((*batch, order + 1, 0)) if found.base_wrench is None else found.base_wrench
        beside = np.zeros((*batch, order + 3, wrench.shape[-1]))
        below = np.concatenate([beside, found.motion], axis=-1)
        return np.concatenate([np.concatenate([wrench, found.efforts], axis=-1), below], axis=-2)
    if isinstance(found, tuple) and (found[0] is None or isinstance(found[0], BaseMotion)):
        parts = [] if found[0] is None else [found[0].pose.ravel(), found[0].twists[:order].ravel()]
        return np.concatenate([*parts, found[1].ravel()])[None]
    return np.concatenate(found, axis=-1) if isinstance(found, tuple) else np.asarray(found)


def called(s: Subject, operation: Operation, order: int) -> Array:
    robot = s.robot()
    places, named, _ = given(robot, s, operation, order)
    return numbers(call_of(robot, operation)(*places, **named), order)


def slower(x: Any, rates: int = 0, moved: Array | None = None) -> Any:
    """Return a motion that goes on more slowly: derivative k is smaller by the factor to the power of k.

    That of a base from a pose that is `moved` (4, 4) beside its own.
    """
    if isinstance(x, BaseMotion):
        pose = x.pose if moved is None else x.pose @ moved
        return BaseMotion(pose, slower(x.twists, 1), representation=x.representation)
    return x * (0.9 ** (np.arange(len(x)) + rates))[:, None]


def stacked(one: Any, other: Any) -> Any:
    if isinstance(one, BaseMotion):
        arrays = np.stack([one.pose, other.pose]), np.stack([one.twists, other.twists])
        return BaseMotion(*arrays, representation=one.representation)
    return None if one is None else np.stack([one, other])


def ways(
    robot: Robot, s: Subject, operation: Operation, order: int, kind: str
) -> Iterator[tuple[str, Array]]:
    """Return by way what an operation finds."""
    places, named, arrays = given(robot, s, operation, order)
    if operation.frames != "none":
        named["representation"] = kind
    call = call_of(robot, operation)
    first = numbers(call(*places, **named), order)
    yield "the call", first
    yield "the call again, which knows its code now", numbers(call(*places, **named), order)
    if operation.takes == "motion" and s.base is not None and not operation.besides:
        moving = places[-1].in_representation("spatial")
        yield "the base in world axes", numbers(call(*places[:-1], moving, **named), order)
    if operation.takes == "motion" and not operation.weighted and not operation.besides:
        moved = None if s.closed else exp(np.array([0.3, -0.2, 0.4, 1.0, -2.0, 0.5]))
        others = [None if x is None else slower(x, moved=moved) for x in places]
        batch = numbers(call(*map(stacked, places, others), **named), order)
        yield "a batch", batch[0].reshape(first.shape)
        alone = numbers(call(*others, **named), order)
        assert np.abs(batch[1].reshape(alone.shape) - alone).max() <= 1e-11 * np.abs(alone).max()
    frames = [named["body"]] if "body" in named else None
    robots = "loops" if s.closed else "tree"
    if robots in operation.compiled and not (operation.takes == "poses" and s.base is not None and s.closed):
        try:
            compiled = robot.compile(order, operation.name, frames, kind)
        except InputError as refused:
            assert operation.name in SECOND and "too large to compile" in str(refused)
            return
        yield "compiled", compiled(*arrays).reshape(first.shape)
        if robots in operation.batched and (THOROUGH or order > 0):
            batch = robot.compile_batch(order, operation.name, frames, kind)(
                *(np.stack([x, x]) for x in arrays)
            )
            yield "a compiled batch", batch[1].reshape(first.shape)


# --- cells -------------------------------------------------------------------------------------------------

SECOND = tuple(name for name in OPERATIONS if name.endswith(("hessian", "second_derivatives")))
MANY_COLUMNS = "regressor", "slotine_li_regressor", "parameter_derivatives"
MANY_COLUMNS += "inverse_dynamics_derivatives", "forward_kinematics_derivatives"
WIDE = (*MANY_COLUMNS, "dynamic_matrices")
LIKE = "mimic chain", "coupled linkage", "planar 3-RRR", "hinged 3-RRR", "3-RRR on limbs"  # as those left
ONE_OF_A_KIND = "flyer", "flying cam", "3-RRR on limbs"
ROBOTS = some(
    [name for name in SUBJECTS if name != "ankle with rods"],  # whose rods spin as they came there
    *("arm", "flyer", "free pair", *FEW[1:-1], "3-RRR on limbs", "3-RRR on limbs and a hinge"),
)
LEFT_OUT = [("RSSR", "forward_kinematics"), ("RSSR", "joint_motion")]  # for the same reason


def is_there(operation: Operation, name: str) -> bool:
    """Whether a kind of robot has an operation, and no smaller robot stands for it."""
    if name == "free pair":
        return operation.name in SECOND
    stands_for = operation.name in SECOND and name == "flyer", operation.name in WIDE and name in LIKE
    if any(stands_for) and not THOROUGH:
        return False
    if name in TREES:
        return operation.compiled != frozenset(("loops",))
    return operation.compiled != frozenset(("tree",))


def orders_of(operation: Operation, name: str) -> list[int]:
    """Return the highest order, which has the lower ones in it, and on a robot of each kind the lowest.

    Code of order 0 lacks arguments of the others; of what has many columns there is one order, with
    derivatives where a base moves and where loops are closed.
    """
    if operation.name in (*SECOND, "forward_dynamics_derivatives"):
        return some(range(3), 0)
    if operation.name in MANY_COLUMNS:
        first = operation.name == "parameter_derivatives" or name not in ("flyer", "RSSR")
        return some(range(3), 0 if first else 1)
    if operation.name == "dynamic_matrices":  # each of which has its own cells
        return some(range(3), 1)
    return some(range(3), *((0, 2) if name in ONE_OF_A_KIND else (2,)))


def kinds_of(name: str, operation: Operation, order: int) -> list[Representation]:
    """Return the representations of what has any: all of one robot of each kind, with derivatives."""
    if not of_frames(operation):
        return ["spatial"]
    every = name in ONE_OF_A_KIND and order == max(orders_of(operation, name))
    return list(REPRESENTATIONS) if every else some(REPRESENTATIONS, "spatial")


def of_frames(operation: Operation) -> bool:
    """Whether the twists that an operation returns are in a representation."""
    return operation.frames != "none" and operation.takes == "motion"


CELLS = [
    pytest.param(name, what, order, kind, id=f"{name}-{what}-{order}-{kind}")
    for name in ROBOTS
    for what, operation in OPERATIONS.items()
    if is_there(operation, name) and (name, what) not in LEFT_OUT
    for order in orders_of(operation, name)
    for kind in kinds_of(name, operation, order)
]
GROUPED_BY = "name"  # a worker takes all of a robot, which is compiled once


def test_every_operation_has_its_truth() -> None:
    assert set(TRUTH) == set(OPERATIONS)


@pytest.mark.parametrize(("name", "what", "order", "kind"), CELLS)
def test_operations_are_exact(name: str, what: str, order: int, kind: Representation) -> None:
    """The call is, and all other ways return the same."""
    s, operation, first = subject(name), OPERATIONS[what], None
    if operation.takes == "poses" and moved_frame(s) is None:
        pytest.skip("no body tells the coordinates")
    if operation.takes == "state" and "derivatives" in what and s.n_efforts != s.shape[1]:
        pytest.skip("efforts of redundant drives do not follow from the motion")
    kinds = [kind] if of_frames(operation) else []
    for way, found in ways(robot_named(name), s, operation, order, kind):
        left, right = (found, first) if first is not None else TRUTH[what](s, order, found, *kinds)
        allowed = (EXACT if first is None else AGREED).get(what, 1e-11)
        first = found
        assert left.shape == right.shape, way
        across = tuple(range(1, right.ndim))
        size = np.abs(right).max(axis=across, initial=1e-300)
        # of an order that vanishes, as of the Jacobian of a parallelogram, there is only rounding
        errors = np.abs(left - right).max(axis=across, initial=0.0) / np.maximum(size, 1e-3 * size.max())
        assert (errors <= allowed).all(), f"{way}: errors by order {errors}"
