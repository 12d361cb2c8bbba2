"""Random calls near singular poses: what `Robot.accuracy` says of them, and what many digits say.

Each kind returns, by part of the answer and by order, the error that is estimated, the error that there is,
and the size that both are measured by. References: power series at 40 digits (`oracles.mp_dynamics`,
`mp_parallel`), differences at 200 (`mp_loops`), which know nothing of how the package computes; and of
what they take too long for, the compiled code itself at 60 digits (`oracles.mp_kernels`).
"""

from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import gmpy2
import numpy as np
from linkages import robot_of
from oracles import mechanisms, mp_kernels, mp_loops, mp_parallel, parallel_robots
from oracles import mp_dynamics as mp
from oracles.cases import make_case
from oracles.motions import Base, random_stack
from sweeps import THOROUGH

from hodyn_ros import BaseMotion, ParallelRobot, Robot
from hodyn_ros.array import Array
from hodyn_ros.digits import Accuracy
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs
from hodyn_ros.errors import HodynError
from hodyn_ros.lie.euler import euler_accuracy, euler_base, euler_coordinates
from hodyn_ros.lie.se3 import exp


class Trial(NamedTuple):
    """One call: by part of the answer, the reference (orders, ...) and what came out, and its accuracy."""

    found: list[Array]
    exact: list[Any]
    accuracy: Accuracy

    @property
    def errors(self) -> Array:
        """What is wrong in truth (parts, orders)."""
        return np.array(
            [
                np.abs(mp.to_float(mp.exact(a) - mp.exact(b))).reshape(len(a), -1).max(axis=1)
                for a, b in zip(self.found, self.exact)
            ]
        )


class NoTrial(Exception):
    """A random call that has no answer, as beyond a singular pose."""


def distance(rng: np.random.Generator) -> float:
    """Return how far from a singular pose a call is [rad]."""
    return float(10.0 ** rng.uniform(-4.5, -0.5))


# --- trees --------------------------------------------------------------------------------------------------


@cache
def _tree(floating: bool, which: int, order: int) -> tuple[Any, Robot]:
    case = make_case(50 + which, 5, order, floating)
    return case, Robot.from_screws(**case.tree.arguments())


def _moving_tree(rng: np.random.Generator, order: int, floating: bool) -> tuple[Any, Robot, Array, Any]:
    case, robot = _tree(floating, int(rng.integers(3)), order)
    q = random_stack(rng, order + 3, case.tree.n_joints)
    base = case.base
    if base is not None:
        base = Base(base.pose, rng.uniform(-1.5, 1.5, base.twists.shape), base.representation)
    return case.tree, robot, q, base


def _motion(base: Base | None) -> BaseMotion | None:
    return None if base is None else BaseMotion(base.pose, base.twists, representation=base.representation)


def inverse_dynamics(rng: np.random.Generator, order: int, floating: bool = False) -> Trial:
    """Compare efforts of random trees."""
    tree, robot, q, base = _moving_tree(rng, order, floating)
    found = robot.inverse_dynamics(q, *([_motion(base)] if floating else []))
    exact = mp.inverse_dynamics(tree, q, base=base)
    parts = [found[0], found[1]] if floating else [found]
    whole = [exact.base_wrench, exact.torques] if floating else [exact.torques]
    return Trial(parts, whole, robot.accuracy("inverse_dynamics", q, *([_motion(base)] if floating else [])))


def forward_dynamics(rng: np.random.Generator, order: int, floating: bool = False) -> Trial:
    """Compare accelerations of random trees."""
    tree, robot, q, base = _moving_tree(rng, order, floating)
    exact_efforts = mp.inverse_dynamics(tree, q, base=base)
    torques = mp.to_float(exact_efforts.torques)
    if not floating or base is None:
        found = robot.forward_dynamics(q[:2], torques)
        exact = mp.forward_dynamics(tree, q[:2], torques)
        return Trial([found], [exact.joints], robot.accuracy("forward_dynamics", q[:2], torques))
    push = mp.to_float(exact_efforts.base_wrench)
    given = q[:2], torques, _motion(Base(base.pose, base.twists[:1], base.representation)), push
    of_base, joints = robot.forward_dynamics(*given)
    exact = mp.forward_dynamics(tree, q[:2], torques, base=base, base_wrench=push)
    return Trial([joints, of_base], [exact.joints, exact.base], robot.accuracy("forward_dynamics", *given))


@cache
def _arm() -> tuple[Any, Robot]:
    """An arm whose wrist is singular where joint 5 is at zero, and whose elbow where it is stretched."""
    z, y, x = np.eye(3)[::-1]
    points = np.array([[0, 0, 0], [0, 0, 0.4], [0, 0, 0.8], [0.4, 0, 0.8], [0.4, 0, 0.8], [0.4, 0, 0.8]])
    screws = np.array([np.concatenate([e, np.cross(p, e)]) for e, p in zip((z, y, y, x, y, x), points)])
    places = np.tile(np.eye(4), (6, 1, 1))
    places[:, :3, 3] = [*points[:5], (0.5, 0.0, 0.8)]
    robot = Robot.from_screws(
        range(-1, 5), screws, places, np.ones(6), np.zeros((6, 3)), np.tile(np.eye(3), (6, 1, 1))
    )
    parents = list(range(-1, 5))
    tree = SimpleNamespace(parents=parents, screws=screws, placements=places, floating_base=False, n_joints=6)
    return tree, robot


def inverse_kinematics(rng: np.random.Generator, order: int) -> Trial:
    """Compare joint motions of an arm near singular poses of its wrist and of its elbow."""
    tree, robot = _arm()
    q = rng.uniform(-1.0, 1.0, (order + 1, 6))
    q[0] = np.array([0.3, -0.6, 0.9, 0.4, 1.1, 0.2]) + rng.uniform(-0.3, 0.3, 6)
    d, joint = distance(rng), int(rng.choice([2, 4]))
    q[0, joint] = d - (np.pi / 2 if joint == 2 else 0.0)
    motion = mp.kinematics(tree, mp.taylor(mp.exact(q), order + 2)).poses[-1]
    pose = np.vstack([mp.to_float(motion[0]), [0.0, 0.0, 0.0, 1.0]])
    twists = mp.to_float(mp.derivatives(mp.twists_of(motion, "spatial")))[:order]
    start = q[0] + 0.05 * d * rng.uniform(-1.0, 1.0, 6)
    given = BaseMotion(pose, twists)
    accuracy = robot.accuracy("inverse_kinematics", given.pose, twists, seed=start)
    with _unrefused():
        found = robot.inverse_kinematics(given.pose, twists, seed=start)
    base = Base(given.pose, twists, "spatial")
    series = mp_parallel.joint_series(
        tree, mp.base_poses(base, mp.taylor(mp.exact(twists), order), order + 1), found[0]
    )
    return Trial([found], [mp.derivatives(series)], accuracy)


# --- loops --------------------------------------------------------------------------------------------------

LINKAGES = ("four_bar", "slider_crank", "rssr", "palletiser", "parallelogram")


@cache
def _edges(name: str) -> tuple[Robot, list[tuple[Array, Array]]]:
    """Return a robot, and singular positions with the directions in which they were met."""
    robot = robot_of(getattr(mechanisms, name)(), name=name)
    home, rng, k = robot.home[0], np.random.default_rng(3), robot.n_coordinates
    if name == "parallelogram":
        return robot, [(np.array([-0.6]), np.array([-1.0])), (np.array([-0.6]), np.array([1.0]))]
    looped, edges = robot._need_loops("this"), []
    for i in range(10 if k > 1 else 2):
        way = rng.normal(size=k) if k > 1 else np.array([1.0 - 2.0 * i])
        way /= np.linalg.norm(way)

        def nearness(far: float, way: Array = way) -> float:
            table = looped.drive_table(LoopedInputs(np.vstack([home + far * way, np.zeros((2, k))])))
            return float(table[-1, 0])

        edges += [(home + far * way, way) for far in singular_along(robot, nearness, 3.0)]
    return robot, edges


def singular_along(robot: Robot, nearness: Callable[[float], float], farthest: float) -> list[float]:
    """Return how far along a way the first singular pose is, where it ends there or goes through one."""
    robot.reset()
    step, before, last, at = 0.02, 0.0, 0.0, robot.positions
    values = [nearness(0.0)]
    while before + step < farthest and step > 1e-9:
        try:
            with _unrefused():
                values.append(nearness(before + step))
        except HodynError:
            robot.reset(at)
            step /= 2
            continue
        if step < 0.02:
            before, at = before + step, robot.positions
            continue
        if len(values) > 2 and values[-2] > max(30.0 * values[0], values[-1], values[-3]):
            return [_peak(robot, at, nearness, last, before + step)]
        last, before, at = before, before + step, robot.positions
    return [before] if step <= 1e-9 else []


def _peak(robot: Robot, at: Any, nearness: Callable[[float], float], low: float, high: float) -> float:
    """Return where a pose is nearest to a singular one, by golden sections."""

    def far(x: float) -> float:
        robot.reset(at)
        try:
            with _unrefused():
                return nearness(x)
        except HodynError:
            return np.inf

    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    while high - low > 1e-8:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if far(a) > far(b) else (a, high)
    return 0.5 * (low + high)


def _near_singular(rng: np.random.Generator, name: str, rows: int) -> tuple[Robot, Array]:
    robot, edges = _edges(name)
    if not edges:
        raise NoTrial
    at, way = edges[int(rng.integers(len(edges)))]
    q = rng.uniform(-1.0, 1.0, (rows, robot.n_coordinates))
    q[0] = at - distance(rng) * way
    robot.reset()
    with _unrefused():
        for share in np.linspace(0.0, 0.95, 30):
            robot.joint_motion((robot.home[0] + share * (q[0] - robot.home[0]))[None])
    return robot, q


def loop_efforts(rng: np.random.Generator, order: int, name: str) -> Trial:
    """Compare efforts of a linkage with the reference that knows no Jacobian."""
    robot, q = _near_singular(rng, name, order + 3)
    accuracy = robot.accuracy("inverse_dynamics", q)
    with _unrefused():
        found = robot.inverse_dynamics(q)
    n = len(robot.closure.leading)  # type: ignore[union-attr]
    exact = mp_loops.exact_efforts(getattr(mechanisms, name)(), q, order, near=robot.positions[:n], finer=2)
    return Trial([found], [exact], accuracy)


def loop_efforts_by_code(rng: np.random.Generator, order: int, name: str) -> Trial:
    """Compare efforts of a linkage with the same code at many digits."""
    robot, q = _near_singular(rng, name, order + 3)
    accuracy = robot.accuracy("inverse_dynamics", q)
    with _unrefused():
        found = robot.inverse_dynamics(q)
    kernel = robot._need_loops("this").effort_call(order).code
    exact = mp_kernels.result(kernel, [q], robot.positions)
    return Trial([found], [exact[: order + 1]], accuracy)


def loop_accelerations(rng: np.random.Generator, order: int, name: str) -> Trial:
    """Compare accelerations of a linkage with the same code at many digits."""
    robot, q = _near_singular(rng, name, order + 3)
    with _unrefused():
        efforts = robot.inverse_dynamics(q)
    if not np.isfinite(efforts).all() or np.abs(efforts).max() > 1e6:
        raise NoTrial
    accuracy = robot.accuracy("forward_dynamics", q[:2], efforts)
    with _unrefused():
        found = robot.forward_dynamics(q[:2], efforts)
    kernel = robot._need_loops("this").forward_call(order).code
    exact = mp_kernels.result(kernel, [q[:2], efforts], robot.positions)
    return Trial([found], [exact[:-1]], accuracy)


def joint_motion(rng: np.random.Generator, order: int, name: str) -> Trial:
    """Compare the motion of all joints of a linkage with the same code at many digits."""
    robot, q = _near_singular(rng, name, order + 1)
    accuracy = robot.accuracy("joint_motion", q)
    with _unrefused():
        found = robot.joint_motion(q)
    kernel = robot._need_loops("this").joint_call(order).code
    exact = mp_kernels.result(kernel, [q], robot.positions)
    return Trial([found], [exact[:-1]], accuracy)


# --- platforms on limbs -------------------------------------------------------------------------------------


@cache
def _platform(name: str) -> tuple[Any, Robot, list[tuple[float, Array]]]:
    """Return a platform, and poses where limbs are stretched or drives fail, with the ways there."""
    oracle = parallel_robots.planar_3rrr(0.1) if name == "planar_3rrr" else parallel_robots.gough_stewart()
    robot = ParallelRobot.from_screws(**oracle.arguments())
    rng, edges, looped = np.random.default_rng(4), [], robot._need_loops("this")
    for _ in range(10 if THOROUGH else 2):
        way = oracle.dof @ rng.normal(size=oracle.dof.shape[1])
        if name == "gough_stewart":  # whose drives fail where it has turned about its axis
            way = np.array(
                [*rng.uniform(-0.2, 0.2, 2), rng.choice([-1.0, 1.0]), *rng.uniform(-0.05, 0.05, 3)]
            )
        way *= 1.0 / np.hypot(np.linalg.norm(way[:3]), np.linalg.norm(way[3:]) / 0.3)

        def nearness(far: float, way: Array = way) -> float:
            base = BaseMotion(oracle.placement @ exp(far * way), np.zeros((2, 6)))
            return float(looped.drive_table(LoopedInputs(np.zeros((3, 0)), base))[-1, 0])

        edges += [(far, way) for far in singular_along(robot, nearness, 2.0)]
    return oracle, robot, edges


def platform_efforts(rng: np.random.Generator, order: int, name: str) -> Trial:
    """Compare efforts of a platform on limbs with series of multipliers."""
    oracle, robot, edges = _platform(name)
    far, way = edges[int(rng.integers(len(edges)))]
    robot.reset()
    there = far - distance(rng)
    if there < 0.0:
        raise NoTrial
    twists = (
        rng.uniform(-1.0, 1.0, (order + 2, oracle.dof.shape[1])) @ oracle.dof.T * [1, 1, 1, 0.3, 0.3, 0.3]
    )
    with _unrefused():
        for share in np.linspace(0.0, 0.95, 30):
            at = BaseMotion(oracle.placement @ exp(share * there * way), np.zeros((2, 6)))
            robot.inverse_dynamics(None, at)
    base = BaseMotion(
        oracle.placement @ exp(there * way), twists, representation="body_fixed"
    ).in_representation("spatial")
    accuracy = robot.accuracy("inverse_dynamics", None, base)
    with _unrefused():
        found = robot.inverse_dynamics(None, base)
    near = oracle.of_limbs(robot.positions[:-16])
    exact = mp_parallel.inverse_dynamics(oracle, base.pose, base.twists, "spatial", near=near)
    return Trial([found], [exact], accuracy)


# --- Euler angles -------------------------------------------------------------------------------------------


def euler(rng: np.random.Generator, order: int) -> Trial:
    """Compare Euler angles of a base near 90 degrees of pitch with series at 40 digits."""
    x = rng.uniform(-1.0, 1.0, (order + 1, 6)) if order else rng.uniform(-1.0, 1.0, (2, 6))
    x[0, 4] = (np.pi / 2 - distance(rng)) * rng.choice([-1.0, 1.0])
    base = euler_base(x)
    if order:
        base = BaseMotion(base.pose, base.twists[:order], representation=base.representation)
    poses = mp.base_poses(
        Base(base.pose, base.twists, base.representation),
        mp.taylor(mp.exact(base.twists), base.orders),
        base.orders + 1,
    )
    with _unrefused():
        found = euler_coordinates(base)
    R = poses[:, :, :3]
    cosine = _root(mp.matmul(R[:, :2, 0], R[:, :2, 0]))
    angles = np.stack(
        [_angle(R[:, 2, 1], R[:, 2, 2]), _angle(-R[:, 2, 0], cosine), _angle(R[:, 1, 0], R[:, 0, 0])], axis=1
    )
    exact = [mp.derivatives(poses[:, :, 3]), mp.derivatives(angles)]
    return Trial([found[:, :3], found[:, 3:]], exact, euler_accuracy(base))


def _root(square: Any) -> Any:
    """Return the square root of a series."""
    root = square.copy()
    root[0] = gmpy2.sqrt(square[0])
    for k in range(1, len(square)):
        root[k] = (square[k] - sum(root[i] * root[k - i] for i in range(1, k))) / (2 * root[0])
    return root


def _angle(y: Any, x: Any) -> Any:
    """Return the series of `atan2(y, x)`: `(x^2 + y^2) a' = x y' - y x'`."""
    both, rates = np.stack([x, y], axis=1), mp.derivative(np.stack([y, x], axis=1))
    right = mp.matmul(np.stack([x[:-1], -y[:-1]], axis=1), rates) if len(x) > 1 else []
    square, angle = mp.matmul(both, both), x.copy()
    angle[0] = gmpy2.atan2(y[0], x[0])
    for k in range(1, len(x)):
        known = sum(square[i] * (k - i) * angle[k - i] for i in range(1, k))
        angle[k] = (right[k - 1] - known) / (k * square[0])
    return angle


# --- all kinds ----------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[np.random.Generator, int], Trial]] = {
    "tree, inverse dynamics": inverse_dynamics,
    "tree, forward dynamics": forward_dynamics,
    "floating base, inverse dynamics": lambda rng, order: inverse_dynamics(rng, order, True),
    "floating base, forward dynamics": lambda rng, order: forward_dynamics(rng, order, True),
    "arm, inverse kinematics": inverse_kinematics,
    "loops, inverse dynamics": lambda rng, order: loop_efforts(rng, order, _one(rng)),
    "loops, inverse dynamics (code)": lambda rng, order: loop_efforts_by_code(rng, order, _one(rng)),
    "loops, forward dynamics (code)": lambda rng, order: loop_accelerations(rng, order, _one(rng)),
    "loops, motion of joints (code)": lambda rng, order: joint_motion(rng, order, _one(rng)),
    "3-RRR on limbs, inverse dynamics": lambda rng, order: platform_efforts(rng, order, "planar_3rrr"),
    "6-UPS on limbs, inverse dynamics": lambda rng, order: platform_efforts(rng, order, "gough_stewart"),
    "Euler angles": euler,
}


def _one(rng: np.random.Generator) -> str:
    return LINKAGES[int(rng.integers(len(LINKAGES)))]


def shares(trial: Trial) -> Array:
    """Return true errors by those estimated (orders,), of the worst part; infinite ones bound all."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = trial.errors / trial.accuracy.errors
    result: Array = np.nan_to_num(found, nan=0.0, posinf=np.inf).max(axis=0)
    return result


def _unrefused() -> Any:
    from hodyn_ros.digits import asked_for

    return asked_for()


def run(kind: str, seeds: Sequence[int], order: int) -> tuple[Array, Array]:
    """Return shares and digits (trials, orders) of random calls of one kind."""
    found, digits = [], []
    for seed in seeds:
        try:
            trial = KINDS[kind](np.random.default_rng(seed), order)
        except (NoTrial, HodynError):
            continue
        found.append(shares(trial))
        digits.append(trial.accuracy.digits)
    return np.array(found), np.array(digits)
