"""Wrenches of the loops in the world, from the multipliers of their rows.

A cluster is seen from the body from which its branches start, as if that stood still, and so are the wrenches
of its rows. The motion of that body takes them to the world.
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.engine.loops.loop_multipliers import Multipliers
from hodyn_ros.engine.loops.loop_series import NOTHING, Cluster, ClusterMotion, MovingFrame, PlacedRow
from hodyn_ros.engine.recursions.composite import Spatial, combine, plus, scaled
from hodyn_ros.engine.series.canonical import inward
from hodyn_ros.engine.series.floating_base import convolve_vectors
from hodyn_ros.engine.series.vectors import Scalar, Vector, add, cross, to_derivatives
from hodyn_ros.lie.se3 import inverse
from hodyn_ros.model.frames import Frame


def loop_loads(
    code: LoopCode,
    leading: Sequence[Scalar],
    leader: Sequence[Stack],
    rates: Sequence[Sequence[Scalar]],
    forces: Multipliers,
) -> Stack:
    """Return by derivative order the wrench that a of each loop exerts on b, six numbers a loop.

    `rates`: Taylor coefficients of the velocities of all joints.
    """
    orders = range(code.order + 1)
    center: Vector = tuple(code.center.tolist())
    rows: list[list[Spatial]] = [[NOTHING] * len(code.closure.loops) for _ in orders]
    for motion, multipliers in zip(forces.motions, forces.multipliers):
        root = motion.cluster.root
        frame = None if root < 0 else _frame(code, leading, leader, rates, root)
        result: dict[int, list[Spatial]] = {}
        for r, row in enumerate(motion.cluster.rows):
            if not isinstance(row, PlacedRow) or row.loop < 0:
                continue
            series = result.setdefault(row.loop, [NOTHING for _ in orders])
            for k in orders:
                for i in range(k + 1):
                    series[k] = plus(series[k], scaled(multipliers[k - i][r], motion.wrench(r, i)))
        for loop, series in result.items():
            for k, (moment, force) in enumerate(series if frame is None else _in_world(frame, series)):
                rows[k][loop] = plus(rows[k][loop], (add(moment, cross(center, force)), force))
    return to_derivatives([[x for part in row for vector in part for x in vector] for row in rows])


def _frame(
    code: LoopCode,
    leading: Sequence[Scalar],
    leader: Sequence[Stack],
    rates: Sequence[Sequence[Scalar]],
    root: int,
) -> MovingFrame:
    """Return the canonical frame of a body up to the order of the code."""
    cluster = Cluster(-1, tuple(reversed(inward(code.closure.tree.parents, root))), (), ())
    motion = ClusterMotion(
        cluster, code.bodies, code.center.tolist(), code.positions(leading), *code.places(leader)
    )
    for twists in code.twists(leader)[: code.order]:
        motion.extend(dict(enumerate(rates)), *twists)
    pose = inverse(code.bodies[root].body_in_frame)
    return motion.frame(Frame(root, pose), code.order)


def _in_world(frame: MovingFrame, series: Sequence[Spatial]) -> list[Spatial]:
    """Return wrenches given in a frame in world axes, about the point of reference."""
    axes = list(zip(*frame.axes))
    result: list[Spatial] = []
    forces: list[Vector] = []
    for k in range(len(series)):
        forces.append(convolve_vectors(combine, axes, [force for _, force in series[: k + 1]], k))
        moment = convolve_vectors(combine, axes, [moment for moment, _ in series[: k + 1]], k)
        result.append((add(moment, convolve_vectors(cross, frame.point, forces, k)), forces[k]))
    return result
