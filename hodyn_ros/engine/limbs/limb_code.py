"""What is computed for one limb, over abstract scalars: Newton's step, motion, and the wrench it takes.

Spatial representation in the frame of the limb, on Taylor coefficients: `V_p = sum_j S_j theta_j'` and `S_j'
= ad_(V_(j-1)) S_j` (Mueller 2020, Algorithm 1) are convolutions, and every order of the joint motion is one
more right-hand side of the same equations (Mueller et al., eq. 15). Instead of the matrix `F` of a limb its
products with vectors are found: the wrench `w` with `J^T w = Q` has the derivatives `J^T w^(r) = Q^(r) - sum
C(r,k) J^(k)T w^(r-k)`, and `F^T Q = P_p^T w`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.engine.limbs.limb_constants import LimbConstants
from hodyn_ros.engine.loops.loop_series import NOTHING, Cluster, ClusterMotion
from hodyn_ros.engine.recursions.composite import Axes, Spatial, combine, plus, power, scaled
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.orthogonal import Column, Orthogonal
from hodyn_ros.engine.series.validity import CLOSED, following_step
from hodyn_ros.engine.series.vectors import (
    Scalar,
    Vector,
    add,
    components,
    cross,
    dot,
    halves,
    scale,
    subtract,
    to_derivatives,
)

Pose = tuple[Axes, Vector]  # columns of the rotation, translation

POSE = 12  # numbers at the beginning of the motion of the platform that a limb takes
_APART = 1e-8  # [rad], and of the length of the platform, before the last step of Newton's method


def newton_step(limb: LimbConstants, length: float, constants: Stack, platform: Stack, state: Stack) -> Stack:
    """Improve the joint positions of a limb.

    `platform` (1, ...): its pose first, (3, 4) by rows; `state` (1, N + 1): positions, and the
    square of the length of the step after this one, as of `following_step`, but no less than what says that
    the end was `_APART` or farther from the platform: a limb with fewer than six joints may not reach it.
    """
    positions, step, apart, factors = _improved(limb, length, constants, platform, state)
    gains = [1.0 if body.rotation_gain else 1.0 / length**2 for body in limb.chain]
    singularity = sum(gain * inverse for gain, inverse in zip(gains, factors.inverses))
    return [[*positions, following_step(step, singularity) + apart * apart * (CLOSED / _APART**4)]]


def newton_step_of_drives(
    limb: LimbConstants, length: float, constants: Stack, platform: Stack, state: Stack
) -> Stack:
    """Improve the joint positions of a limb, and say what its drives move by the platform.

    As `newton_step`, but after the positions come the squares of the distance before and of the step, added,
    and then for each drive the wrench (6,) against its unit force, in the world frame at the positions
    before: its power with the twist of the platform is the drive's rate.
    """
    positions, step, apart, factors = _improved(limb, length, constants, platform, state)
    return [[*positions, step + apart, *_against_drives(limb, length, _pose(constants[0]), factors)]]


def drive_rates(
    limb: LimbConstants, length: float, constants: Stack, platform: Stack, *stacks: Stack
) -> Stack:
    """Return Taylor coefficient k of the drives' rates while that of the platform's twist is zero, as a row.

    `stacks`: the k Taylor coefficients before it of the twist (1, 6) in the world frame, and the state. For
    k = 0, where that is zero, the row has instead how near the Jacobian is to a singular one, and the
    wrenches of `newton_step_of_drives`.
    """
    *twists, state = stacks
    k = len(twists)
    frame = _pose(constants[0])
    motion = _motion(limb, state[0], constants)
    factors = _factors(motion, length)
    if not k:
        return [[factors.nearness, *_against_drives(limb, length, frame, factors)]]
    inward = [*(_twist_inward(frame, twist[0]) for twist in twists), NOTHING]
    rates = _moved(motion, factors, length, inward)
    return [[rates[k][drive] for drive in limb.driven]]


def _improved(
    limb: LimbConstants, length: float, constants: Stack, platform: Stack, state: Stack
) -> tuple[list[Scalar], Scalar, Scalar, Orthogonal]:
    """Return positions, squares of the step to them and of the distance before, and the Jacobian's factors.

    Lengths are measured in that of the platform.
    """
    frame, attachment = _pose(constants[0]), _pose(constants[0][POSE:])
    goal = _compose(_compose(_inverse(frame), _pose(platform[0])), attachment)
    positions = state[0][: len(limb.chain)]
    motion = _motion(limb, positions, constants)
    end = motion.place(len(limb.chain) - 1)
    turned: Vector = (0.0, 0.0, 0.0)
    for a, b in zip(end[0], goal[0]):
        turned = add(turned, cross(a, b))
    turned = scale(0.5, turned)
    apart = subtract(goal[1], end[1])
    twist = [*turned, *add(apart, cross(end[1], turned))]
    factors = _factors(motion, length)
    step = factors.solve(_scaled(twist, 1.0 / length))
    square: Scalar = 0.0
    for body, change in zip(limb.chain, step):
        square = square + change * change * (1.0 if body.rotation_gain else 1.0 / length**2)
    distance = dot(turned, turned) + dot(apart, apart) * (1.0 / length**2)
    return [p + s for p, s in zip(positions, step)], square, distance, factors


def _against_drives(limb: LimbConstants, length: float, frame: Pose, factors: Orthogonal) -> list[Scalar]:
    """Return for each drive the wrench (6,) in the world frame against its unit force."""
    row: list[Scalar] = []
    for drive in limb.driven:
        unit = [float(j == drive) for j in range(len(limb.chain))]
        row += _wrench_outward(frame, halves(_scaled(factors.solve_transposed(unit), 1.0 / length)))
    return row


def limb_result_size(limb: LimbConstants, order: int) -> int:
    """Return how many numbers `limb_motion` returns."""
    return 1 + (order + 2) * len(limb.chain) + (order + 1) * 6 * (1 + len(limb.driven))


def limb_motion(
    limb: LimbConstants,
    length: float,
    gravity: Sequence[float],
    order: int,
    constants: Stack,
    platform: Stack,
    state: Stack,
) -> Stack:
    """Return the motion of a limb and the wrenches that go with it, as one row.

    `platform` (1, 12 + 6 (order + 2)): its pose, and Taylor coefficients of its twist in the world
    frame. The row: how near the Jacobian is to a singular one; the derivatives 1 to order + 2 of the joint
    positions, (order + 2, N); then Taylor coefficients of wrenches in the world frame, (order + 1, 6) each:
    the one that the platform exerts on the limb while no drive acts, and for each drive the one against its
    unit force.
    """
    frame = _pose(constants[0])
    n = len(limb.chain)
    motion = _motion(limb, state[0], constants)
    factors = _factors(motion, length)
    parts = [platform[0][POSE + 6 * k : POSE + 6 * (k + 1)] for k in range(order + 2)]
    rates = _moved(motion, factors, length, [_twist_inward(frame, part) for part in parts])
    torques = _torques(limb, gravity, frame, motion.positions, rates, order)
    wrenches = [_wrench(factors, length, motion.screws, torques)]
    for drive in limb.driven:
        unit = [[0.0] * n for _ in range(order + 1)]
        unit[0][drive] = 1.0
        wrenches.append(_wrench(factors, length, motion.screws, unit))
    row = [factors.nearness, *(value for rate in to_derivatives(rates) for value in rate)]
    for wrench in wrenches:
        for value in wrench:
            row += _wrench_outward(frame, value)
    return [row]


def _motion(limb: LimbConstants, positions: Sequence[Scalar], constants: Stack) -> ClusterMotion:
    """Return the joints of a limb in its frame, at the positions that a state begins with."""
    joints = [position + shift for position, shift in zip(positions, constants[0][2 * POSE :])]
    whole = Cluster(-1, tuple(range(len(limb.chain))), (), ())
    return ClusterMotion(whole, limb.chain, [0.0, 0.0, 0.0], joints, None, None)


def _moved(
    motion: ClusterMotion, factors: Orthogonal, length: float, platform: Sequence[Spatial]
) -> list[Column]:
    """Move a limb with the platform; returns Taylor coefficients of theta', by order.

    `platform`: those of its twist in the frame of the limb.
    """
    last = motion.cluster.bodies[-1]
    rates: dict[int, Column] = {joint: [] for joint in motion.joints}
    for k, twist in enumerate(platform):
        for series in rates.values():
            series.append(0.0)
        motion.append(motion.twists, rates)
        w, v = plus(twist, scaled(-1.0, motion.twists[last][k]))
        motion.withdraw()
        for joint, rate in enumerate(factors.solve(_scaled([*w, *v], 1.0 / length))):
            rates[joint][k] = rate
        motion.extend(rates)
    return [list(row) for row in zip(*rates.values())]


def _torques(
    limb: LimbConstants,
    gravity: Sequence[float],
    frame: Pose,
    positions: Sequence[Scalar],
    rates: Sequence[Column],
    order: int,
) -> Stack:
    """Return Taylor coefficients (order + 1, N) of the joint torques of the limb without the platform."""
    n = len(limb.cut)
    if not n:
        return [[0.0] * len(limb.chain) for _ in range(order + 1)]
    recursion = Recursion(limb.cut, (0.0, 0.0, 0.0))
    recursion.ground = scale(-1.0, components(frame[0], gravity))
    recursion.start([p + d for p, d in zip(positions, limb.cut_shifts.tolist())], rates[0][:n])
    accelerations = [[(k + 1.0) * rate for rate in rates[k + 1][:n]] for k in range(order + 1)]
    rest = [0.0] * (len(limb.chain) - n)
    return [[*row, *rest] for row in recursion.inverse_dynamics(accelerations)]


def _wrench(
    factors: Orthogonal, length: float, screws: Mapping[int, Sequence[Spatial]], torques: Stack
) -> list[Spatial]:
    """Return Taylor coefficients of the wrench `w` with `J^T w = Q`."""
    result: list[Spatial] = []
    for k, torque in enumerate(torques):
        right = []
        for j, value in enumerate(torque):
            for i in range(1, k + 1):
                value = value - power(screws[j][i], result[k - i])
            right.append(value)
        result.append(halves(_scaled(factors.solve_transposed(right), 1.0 / length)))
    return result


def _factors(motion: ClusterMotion, length: float) -> Orthogonal:
    """Factorise a Jacobian with lengths measured in that of the platform."""
    return Orthogonal([_scaled([*w, *v], 1.0 / length) for (w, v), *_ in motion.screws.values()])


def _scaled(screw: Sequence[Scalar], factor: float) -> list[Scalar]:
    """Multiply the linear part of a screw or wrench."""
    return [*screw[:3], *(factor * value for value in screw[3:])]


def _pose(numbers: Sequence[Scalar]) -> Pose:
    """Read a pose (3, 4) given by rows."""
    x, y, z, place = ((numbers[i], numbers[4 + i], numbers[8 + i]) for i in range(4))
    return (x, y, z), place


def _compose(a: Pose, b: Pose) -> Pose:
    x, y, z = (combine(a[0], column) for column in b[0])
    return (x, y, z), add(a[1], combine(a[0], b[1]))


def _inverse(pose: Pose) -> Pose:
    x, y, z = zip(*pose[0])
    return (x, y, z), scale(-1.0, components(pose[0], pose[1]))


def _twist_inward(pose: Pose, twist: Sequence[Scalar]) -> Spatial:
    w, v = halves(twist)
    return components(pose[0], w), components(pose[0], subtract(v, cross(pose[1], w)))


def _wrench_outward(pose: Pose, wrench: Spatial) -> list[Scalar]:
    moment, force = combine(pose[0], wrench[0]), combine(pose[0], wrench[1])
    return [*add(moment, cross(pose[1], force)), *force]
