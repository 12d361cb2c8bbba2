"""What a guard knows of a robot: its limits, the efforts of a motion, and how far these may be wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.codegen.kernel import Kernel, Stack, Traceable
from hodyn_ros.control.links import STRIDE, BaseAt, Links
from hodyn_ros.dynamics.results import DriveState
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.guard.effort_check import GAIN, THRESHOLD, EffortModel
from hodyn_ros.guard.guard_config import GuardLimits
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.observers import ObserverConfig
from hodyn_ros.observers.effort_observer import EffortObserver, LinkEfforts

_UNKNOWN = 1e9  # [N.m or N], which no effort comes to: a deviation where nothing limits efforts


def guard_limits(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> GuardLimits:
    """Return the limits of some driven joints, those of the motors' efforts with `motor`.

    Velocities are those of the joints in both cases. By how much efforts may change without a motion follows
    from the `uncertainty` of the robot, where `effort_model` has one. Raises InputError for an unknown joint.
    """
    places = _places(robot, joint_names)
    limits, train = robot.limits, robot.drive_train
    effort, rate = limits.effort, limits.effort_rate
    if motor and train is not None and train.n_motors == train.n_joints:
        effort, rate = train.effort_limits(effort), train.effort_rate_limits(rate)
    return GuardLimits(
        limits.velocity[places],
        effort[places],
        rate[places],
        _mismatch(robot, joint_names, motor),
        limits.position_lower[places],
        limits.position_upper[places],
    )


@dataclass(frozen=True)
class StiffRobot:
    """The efforts of a motion of driven joints, which are as stiff as they are said to be; an `EffortModel`.

    `efforts`: of what is commanded; where loops do not close on the way, or the pose is singular, those of
    the last sound motion. `links`: of the links alone, from motions (3, n); InputError there.
    """

    efforts: EffortModel
    links: LinkEfforts

    def __call__(self, motion: Motion, deflection: Motion | None = None) -> Array:
        """Return the efforts (n,) of a motion."""
        return self.efforts(motion, deflection)


def effort_model(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> StiffRobot | None:
    """Return the efforts of a motion of the driven joints, with `motor` those of the motors.

    `Q(q, q', q'')` of the links, and for motors also `B theta''` and friction: what changes while a robot
    brakes. The springs between the two are not computed; their deflection is what the caller says. A payload
    that the robot's file does not know is for the guard to keep. A floating base stands level. None where
    driven joints of the robot are not among those named, as they may move, and where the `uncertainty` of a
    robot whose base floats does not say how that may move.
    """
    places, floats = _places(robot, joint_names), robot.structure.base_prescribed
    if len(places) != len(robot.driven_joints) or (floats and np.isinf(robot.uncertainty.base)):
        return None
    return _model(robot, places, motor, _level(robot))


def _model(robot: Robot, places: Sequence[int], motor: bool, base: BaseAt | None) -> StiffRobot:
    """Return the efforts of all driven joints, in the order of their `places`, on a `base` that floats."""
    motors = _motor_efforts(robot) if motor else None
    back, sound = np.argsort(places), np.zeros(len(places))
    moved = _Followers(robot, base)

    def sorted_rows(motion: Motion | Array) -> Array:
        return np.array(motion).take(back, axis=1)  # contiguous, as compiled code wants it

    def efforts(motion: Motion, deflection: Motion | None = None) -> Array:
        nonlocal sound
        bent = 0.0 if deflection is None else sorted_rows(deflection)
        try:
            state = moved(sorted_rows(motion) - bent)
        except InputError:
            return sound[places]
        of_links = state.motion[:3], state.efforts[:1]
        sound = (of_links[1] if motors is None else motors(of_links[0], of_links[0] + bent, of_links[1]))[0]
        return sound[places]

    return StiffRobot(efforts, lambda motion: moved(sorted_rows(motion)).efforts[0][places])


class _Followers:
    """The state of all links for a motion of the driven joints, from where these were near it before.

    In a stop the motion that is desired, the one that is commanded and the robot go apart. On the way from
    one to the other and back in each cycle a Delta took 15 to 40 ms.
    """

    def __init__(self, robot: Robot, base: BaseAt | None) -> None:
        self._places: list[tuple[Links, Array, Array]] = []  # the one that was used longest ago is the first
        for _ in range(1 if robot.closure is None else 3):
            links = Links(robot, base)
            still = np.stack([links.home, *np.zeros((2, links.size))])
            begin = links.drives(still).motion[0]  # nothing is to be compiled in a stop
            self._places.append((links, links.home, begin))

    def __call__(self, rows: Array) -> DriveState:
        """Return the state for rows (3, n); InputError where loops do not close on the way."""
        nearest = 0
        if len(self._places) > 1:
            far = [float(np.abs(rows[0] - begin).max()) for _, _, begin in self._places]
            nearest = int(np.argmin(far)) if min(far) <= STRIDE else 0
        place = self._places.pop(nearest)
        links, last, _ = place
        try:
            x = links.locate(rows, last)
            state = links.drives(x)
            place = links, x[0], rows[0]
        finally:
            self._places.append(place)
        return state


def effort_observer(
    robot: Robot, joint_names: Sequence[str], links: LinkEfforts, *, motor: bool, at_links: bool = False
) -> EffortObserver:
    """Return what tells how far efforts and motion of driven joints disagree, by the efforts of their links.

    `motor`: whether efforts are those of the motors; `at_links`: whether positions are those of the links,
    and not of the motors. Its deviations hold the `uncertainty` of the robot: `THRESHOLD` of them are what
    its file states. Friction counts as the motion has it, near standstill as much as may stick; all else as
    `_allowed` says.
    """
    drives, config, noise = stiff_observer(robot, joint_names, motor=motor)
    springs = spring_stiffness(robot, joint_names) if motor and not at_links else None
    return EffortObserver(links, drives, config, noise, at_motors=motor, at_links=at_links, stiffness=springs)


def spring_stiffness(robot: Robot, joint_names: Sequence[str]) -> Array:
    """Return that of springs between one motor a joint and its link (n,) [N.m/rad or N/m], else infinite."""
    places, train = _places(robot, joint_names), robot.drive_train
    if train is None or train.n_motors != train.n_joints:
        return np.full(len(places), np.inf)
    return train.stiffness[places]


def stiff_observer(
    robot: Robot, joint_names: Sequence[str], *, motor: bool
) -> tuple[DriveTrain, ObserverConfig, Array]:
    """Return drives, configuration and noise (n,) of an `effort_observer`."""
    places, unsure, train = _places(robot, joint_names), robot.uncertainty, robot.drive_train
    specs = [DriveSpec(np.inf, 0.0)] * len(places)
    if train is not None and train.n_motors == train.n_joints:
        specs = [stiff_specs(train)[place] for place in places]
    config = ObserverConfig(
        bandwidth=GAIN,
        stiffness_deviation=0.0,
        friction_deviation=min(unsure.friction / THRESHOLD, 2.0),
    )
    noise = _allowed(robot, joint_names, motor=motor) / THRESHOLD
    return DriveTrain(specs, joint_names), config, np.minimum(noise, _UNKNOWN)


def _mismatch(robot: Robot, joint_names: Sequence[str], motor: bool) -> Array:
    """Return by how much (n,) efforts may change without a motion that explains it [N.m or N].

    What is allowed beside friction, and all of the friction that is stated, times its uncertainty.
    """
    places, train, unsure = _places(robot, joint_names), robot.drive_train, robot.uncertainty
    allowed = _allowed(robot, joint_names, motor=motor)
    if motor and train is not None and train.n_motors == train.n_joints:
        speed = np.where(np.isfinite(robot.limits.velocity), robot.limits.velocity, 1.0)[places]
        drives = [train.drives[place] for place in places]
        limit = train.effort_limits(robot.limits.effort)[places]
        carried = np.where(np.isfinite(limit), limit, 0.0)
        friction = [
            drive.motor_friction.largest(v, most) + drive.link_friction.largest(v)
            for drive, v, most in zip(drives, speed, carried)
        ]
        allowed = allowed + unsure.friction * np.array(friction)
    return allowed


def _allowed(robot: Robot, joint_names: Sequence[str], *, motor: bool) -> Array:
    """Return by how much (n,) efforts may disagree with the motion [N.m or N] for all but friction.

    The share of the limit; the largest efforts of the payload, and of a floating base that accelerates, at
    seeded motions; and springs, which bend by what the feedforward says: a tenth of the limit that swings
    besides moves a link of inertia M by `tau / K` against its motor, `L^2 M tau / K`.
    """
    model, unsure = effort_model(robot, joint_names, motor=motor), robot.uncertainty
    if model is None:
        return np.full(len(joint_names), np.inf)
    places, train, limits = _places(robot, joint_names), robot.drive_train, robot.limits
    limit = limits.effort[places]
    if motor and train is not None and train.n_motors == train.n_joints:
        limit = train.effort_limits(limits.effort)[places]
    still, allowed = _at_home(robot)[places], unsure.efforts * limit
    nothing = np.zeros_like(still)
    if train is not None and train.n_motors == train.n_joints:
        standing, units = model(Motion(still, nothing, nothing)), np.eye(len(places))
        inertia = np.array([(model(Motion(still, nothing, unit)) - standing) @ unit for unit in units])
        swings = GAIN**2 * inertia * np.where(np.isfinite(limit), 0.1 * limit, 0.0)
        stiffness = np.array([train.specs[place].stiffness for place in places])
        allowed = allowed + unsure.stiffness * swings / stiffness
    motions = _seeded_motions(robot, places, still)
    if robot.structure.base_prescribed:
        moving = [_model(robot, places, motor, _level(robot, unit)) for unit in np.eye(6)]
        more = np.array([[one(motion) - model(motion) for one in moving] for motion in motions])
        turning, going = np.linalg.norm(more.reshape(-1, 2, 3, len(places)), axis=2).max(axis=0)
        allowed = allowed + unsure.base * (turning + going)
    if unsure.payload > 0.0:
        carrying = robot.with_tree(Payload(unsure.payload).on_tree(robot))
        loaded = _model(carrying, places, motor, _level(robot))
        allowed = allowed + np.max([np.abs(loaded(motion) - model(motion)) for motion in motions], axis=0)
    return allowed


def _at_home(robot: Robot) -> Array:
    """Return where the driven joints are at home."""
    links = Links(robot, _level(robot))
    return links.drives(np.stack([links.home, *np.zeros((2, links.size))])).motion[0]


def _level(robot: Robot, begins: ArrayLike = (0.0,) * 6) -> BaseAt | None:
    """Return how a floating base stands level, or `begins` (6,) to move from there; None where none is."""
    if not robot.structure.base_prescribed:
        return None
    motion = BaseMotion(np.eye(4), np.array([np.zeros(6), begins]), representation="body_fixed")
    return lambda _: motion


def _seeded_motions(robot: Robot, places: Sequence[int], home: Array) -> list[Motion]:
    """Return motions of the driven joints within their limits, the same each time."""
    random, limits, n = np.random.default_rng(0), robot.limits, len(places)
    low = np.where(np.isfinite(limits.position_lower[places]), limits.position_lower[places], home - 1.0)
    high = np.where(np.isfinite(limits.position_upper[places]), limits.position_upper[places], home + 1.0)
    speed = np.where(np.isfinite(limits.velocity[places]), limits.velocity[places], 1.0)
    return [
        Motion(random.uniform(low, high), speed * random.uniform(-1, 1, n), 5.0 * random.uniform(-1, 1, n))
        for _ in range(50)
    ]


def _motor_efforts(robot: Robot) -> Callable[[Array, Array, Array], Array] | None:
    """Return compiled code for the efforts of the motors; None without drives of one motor each."""
    train = robot.drive_train
    if train is None or train.n_motors != train.n_joints:
        return None
    return Kernel(*motor_trace(train)).function


def motor_trace(train: DriveTrain) -> Traceable:
    """Return what computes efforts of motors (1, n) from motions (3, n) of links and motors, and torques."""

    def trace(links: Stack, motors: Stack, torques: Stack) -> Stack:
        arrays = [np.array(rows, dtype=object) for rows in (links, motors, torques)]
        efforts: Stack = train.motor_efforts(*arrays).tolist()
        return efforts

    n = train.n_joints
    return trace, [("links", (3, n)), ("motors", (3, n)), ("torques", (1, n))]


def stiff_specs(train: DriveTrain) -> list[DriveSpec]:
    """Return the motors of drives with their inertia and friction, behind transmissions that are rigid."""
    return [
        DriveSpec(
            np.inf, spec.motor_inertia, motor_friction=spec.motor_friction, link_friction=spec.link_friction
        )
        for spec in train.specs
    ]


def drives_of(robot: Robot, joint_names: Sequence[str]) -> DriveTrain | None:
    """Return the drives of some driven joints, in their order; None where the robot's file has none.

    Raises InputError for an unknown joint.
    """
    places, train = _places(robot, joint_names), robot.drive_train
    return None if train is None else DriveTrain([train.specs[place] for place in places], joint_names)


def _places(robot: Robot, joint_names: Sequence[str]) -> list[int]:
    known = list(robot.driven_joints)
    for name in joint_names:
        if name not in known:
            raise InputError(f"joint {name!r} is not driven in robot {robot.name!r}, which drives {known}")
    return [known.index(name) for name in joint_names]
