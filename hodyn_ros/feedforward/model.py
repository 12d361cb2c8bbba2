"""From a desired motion to the feedforward: inverse dynamics, drives, propellers, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.checks import check_result
from hodyn_ros.codegen.kernel import Kernel, Noted, Stack
from hodyn_ros.dynamics.results import DriveState
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.rotor_coupling import RotorCoupling
from hodyn_ros.engine.kernels import fits_straight_line, inverse_dynamics_trace
from hodyn_ros.errors import ConvergenceError, HodynError, InputError
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.feedforward.limits import FeedforwardLimits, limit_status
from hodyn_ros.lie.motion import BASE_REPRESENTATIONS, AppliedWrench, BaseMotion, BaseRepresentation
from hodyn_ros.lie.se3 import Ad, inverse
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.tree import TreeModel

WORLD = "world"
WrenchFrame = Literal["world", "body"]
WRENCH_FRAMES: dict[WrenchFrame, BaseRepresentation] = {"world": "spatial", "body": "body_fixed"}


def wrench_frames(robot: Robot, body: str, frame: WrenchFrame) -> Mapping[str, Array]:
    """Return by name the matrices (6, 6) that take wrenches on a body into its representation `frame`.

    With "world" that is the world alone; with "body" the body itself, and the named frames that are fixed to
    it: `W_b = Ad_C^{-T} W_f`, C the pose of such a frame in the body.
    """
    same = np.eye(6)
    if frame == "world":
        return {WORLD: same}
    frames = {body: same}
    carrier = robot.tree.body_index(body)
    for name, place in robot.frames.items():
        if place.body == carrier:
            frames.setdefault(name, Ad(inverse(place.pose)).T)
    return frames


_LARGEST = 4000  # drives times squared orders: beyond, motors would take more than a second to compile
_ROTORS_LIMIT = 2000  # seven joints, each carrying the motor of the next one: 36 000 operations at order 2


class FeedforwardModel:
    """From a desired motion to the feedforward: inverse dynamics, then the drives, then the limits.

    `order` of the efforts; `limits` of the joints that have efforts, by default those of the robot; `clamp`
    holds efforts within them. The environment pushes `wrench_bodies` with wrenches that are represented in
    `wrench_frame`, "world" or "body". `motor_*` come out as far as the drives of the
    robot and the order allow: motor positions to `order`, motor efforts to `order - 2` (to `order` when all
    drives are rigid); without drives, or for an elastic joint at an order below 2, they have no rows.
    `thrusts` and `tilts` are those of the robot's propellers (`propellers`, their names), to `order`.

    `motion_orders` of the motion are needed, positions included: order + 3; more for rotors that turn with
    the links.

    The motion is that of the independent coordinates: joints (`motion_joints`), and a floating base or a
    platform (`moves_base`); efforts, limits and motors are those of the driven joints (`joint_names`). A
    robot with loops goes on from its last success, which a call that fails leaves as it was; a platform that
    does not get to a pose from there, as after a stray one, goes there from home.
    """

    def __init__(
        self,
        robot: Robot,
        order: int,
        clamp: bool = False,
        limits: JointLimits | None = None,
        wrench_bodies: Sequence[str] = (),
        wrench_frame: WrenchFrame = "body",
    ) -> None:
        if order < 0:
            raise InputError(f"the order must be 0 or higher, found {order}")
        self.robot = robot
        self.name = robot.name
        self.joint_names = robot.driven_joints
        self.motion_joints = robot.joint_names
        self.moves_base = robot.moves_base
        self.order = order
        self.clamp = clamp
        self.wrench_bodies = tuple(wrench_bodies)
        for body in self.wrench_bodies:
            robot.tree.body_index(body)
        self.wrench_frame: WrenchFrame = wrench_frame
        self._propellers = robot.propellers
        self.propellers = () if self._propellers is None else self._propellers.names
        self.has_drives = robot.drive_train is not None
        self._limits = FeedforwardLimits.of(robot.limits if limits is None else limits, robot.drive_train)
        self._drive_train = robot.drive_train
        n = len(self.joint_names)
        self._nothing, self._no_wrench = np.empty((0, n)), np.empty((0, 6))
        if self._drive_train is not None and self._drive_train.n_motors != n:
            raise InputError(
                f"robot {self.name!r} has {self._drive_train.n_motors} motors for {n} joints, and a "
                "feedforward holds one motor per joint; use robot.drive_train instead"
            )
        self._rotors = RotorCoupling.of(robot)
        if self._rotors is not None and self.wrench_bodies:
            raise InputError(
                f"the rotors of robot {self.name!r} turn with the bodies that carry them, which is not "
                "computed under measured wrenches; leave these out, or `rotor` of its drives"
            )
        self.motion_orders = 3 + (
            order if self._rotors is None else int(self._rotors.needed_orders(order).max())
        )
        # the fastest call there is, for arms
        self._compiled = robot.compile(order) if robot.is_arm and self._rotors is None else None
        self.whole_arm: CompiledFeedforward | None = None
        if robot.is_arm and n and self._fits_straight_line():
            self.whole_arm = CompiledFeedforward(
                order, self._drive_train, self._limits, tree=robot.tree, rotors=self._rotors
            )
        self._motors_and_limits: CompiledFeedforward | None = None
        some = (self._drive_train is not None or self._limits is not None) and self._rotors is None
        if some and self.whole_arm is None and 0 < n * (order + 3) * (order + 1) <= _LARGEST:
            self._motors_and_limits = CompiledFeedforward(order, self._drive_train, self._limits, n=n)

    def _fits_straight_line(self) -> bool:
        """Whether the code of all compiles in a second or two; few joints need the high orders of rotors."""
        if self._rotors is None:
            return fits_straight_line(self.robot.tree, self.order)
        return self.robot.tree.n_bodies * (self.motion_orders - 1) ** 2 <= _ROTORS_LIMIT

    @property
    def engine(self) -> str:
        """What computes the inverse dynamics, in words."""
        robot, order = self.robot, self.order
        if not robot.is_compiled(order):
            return "interpreted"
        return "straight-line code" if fits_straight_line(robot.tree, order) else "loops"

    @property
    def positions(self) -> list[float] | None:
        """The last positions of a robot with loops, from which the next call starts; None without loops."""
        positions = self.robot.positions
        return None if positions is None else positions.tolist()

    def start_from(self, positions: Sequence[float]) -> None:
        """Start the next call from positions that another model of this robot has reached."""
        self.robot.reset(positions)

    def compute(self, q: Array, base: BaseMotion | None = None, wrenches: Array | None = None) -> Feedforward:
        """Return the feedforward for a motion.

        `q` (order + 3, joints of the motion) contiguous float64, finite; `base` the motion of a floating base
        or of a platform with order + 2 twists; `wrenches` (wrench bodies, order + 1, 6) [N.m, N] and their
        time derivatives, None for none. Raises OverflowingError where the motion is too large for numbers.
        """
        alone = wrenches is None and base is None
        if alone and self.whole_arm is not None and (held := self.whole_arm(q)) is not None:
            return self._held(held)
        if self._compiled is not None and wrenches is None:
            if base is not None:
                raise InputError(f"robot {self.name!r} has a fixed base; a base motion does not apply")
            return self._finished(q, self._compiled(q), self._no_wrench)  # both check their results
        result = self._computed(q, base, wrenches)
        check_result(result.efforts, result.motor_efforts, result.base_wrenches, result.thrusts, result.tilts)
        return result

    def _computed(self, q: Array, base: BaseMotion | None, wrenches: Array | None) -> Feedforward:
        if self._rotors is not None and base is None:
            efforts, motors = self._rotors.feedforward(q, self.order)
            return self._limited(q, efforts, motors.position, motors.effort, self._no_wrench)
        return self.of_dynamics(self.dynamics(q, base, wrenches), base)

    @property
    def rotors_turn(self) -> bool:
        """Whether rotors turn with the links, so that efforts and motors follow from each other."""
        return self._rotors is not None

    def dynamics(self, q: Array, base: BaseMotion | None = None, wrenches: Array | None = None) -> DriveState:
        """Return what the drives have to do for a motion as in `compute`, before motors and limits."""
        applied, robot = None if wrenches is None else self._applied(wrenches), self.robot
        try:
            return robot.drive_state(q, base, applied, search=False)
        except ConvergenceError as error:
            if robot.platform is None:  # drives at the same places may be those of another branch
                raise
            last, failed = robot.positions, error
        robot.reset()
        try:
            return robot.drive_state(q, base, applied, search=False)
        except HodynError:
            robot.reset(last)
            raise failed from None

    def of_dynamics(self, state: DriveState, base: BaseMotion | None = None) -> Feedforward:
        """Return the feedforward for what the drives have to do: with motors, propellers and limits."""
        status = Status.NEAR_SINGULARITY if state.near_singularity else Status.OK
        of_base = self._no_wrench if state.base_wrench is None else state.base_wrench
        result = self._finished(state.motion, state.efforts, of_base, status)
        propellers = self._propellers
        if propellers is None:
            return result
        motion = propellers.motion(of_base, base)
        exceeded = propellers.exceeded(motion)
        status = result.status | _thrust_status(*exceeded) if any(exceeded) else result.status
        tilts = motion.tilts if propellers.tilts else motion.tilts[:0]
        return result._replace(thrusts=motion.thrusts, tilts=tilts, status=status)

    def warm_up(self) -> None:
        """Compute once at rest at the zero configuration, a moved base in both representations of twists."""
        start, pose = self.robot.home
        q = np.zeros((self.motion_orders, len(start)))
        q[0] = start
        if pose is None:
            self.compute(q, None, self._no_wrenches())
            if self._compiled is not None:  # what computes where drives cannot follow
                self._finished(q, self._compiled(q), self._no_wrench)
            return
        for representation in BASE_REPRESENTATIONS:
            base = BaseMotion(pose, np.zeros((self.order + 2, 6)), representation=representation)
            self.compute(q, base, self._no_wrenches())

    def _no_wrenches(self) -> Array | None:
        """Return zeros in place of the wrenches, where there may be some."""
        return np.zeros((len(self.wrench_bodies), self.order + 1, 6)) if self.wrench_bodies else None

    def _applied(self, wrenches: Array) -> list[AppliedWrench]:
        return [
            AppliedWrench(body, values, representation=WRENCH_FRAMES[self.wrench_frame])
            for body, values in zip(self.wrench_bodies, wrenches, strict=True)
        ]

    def _finished(
        self, q: Array, efforts: Array, base_wrenches: Array, status: Status = Status.OK
    ) -> Feedforward:
        """Add the motors to motion (order + 3, n) and efforts (order + 1, n), and hold them to the limits."""
        if (
            self._motors_and_limits is not None
            and (result := self._motors_and_limits(q, efforts)) is not None
        ):
            return self._held(result._replace(base_wrenches=base_wrenches, status=result.status | status))
        return self._limited(q, efforts, *self._motors(q, efforts), base_wrenches, status)

    def _limited(
        self,
        q: Array,
        efforts: Array,
        motor_positions: Array,
        motor_efforts: Array,
        base_wrenches: Array,
        status: Status = Status.OK,
    ) -> Feedforward:
        limits = self._limits
        if limits is not None and (exceeded := limits.status(q, efforts, motor_positions, motor_efforts)):
            status |= exceeded
        return self._held(Feedforward(efforts, motor_positions, motor_efforts, base_wrenches, status))

    def _held(self, result: Feedforward) -> Feedforward:
        """Hold efforts within their limits, where that is asked for."""
        if not self.clamp or self._limits is None or not result.status & Status.EFFORT_LIMIT_EXCEEDED:
            return result
        return result._replace(
            efforts=clamped(result.efforts, self._limits.effort),
            motor_efforts=clamped(result.motor_efforts, self._limits.motor_effort),
            status=result.status | Status.EFFORT_CLAMPED,
        )

    def _motors(self, q: Array, efforts: Array) -> tuple[Array, Array]:
        if self._drive_train is None:
            return self._nothing, self._nothing
        motors = self._drive_train.feedforward(q, efforts)
        return motors.position[: self.order + 1], motors.effort


def _thrust_status(beyond: bool, fast: bool, unreached: bool) -> Status:
    return Status(
        beyond * Status.THRUST_LIMIT_EXCEEDED
        | fast * Status.THRUST_RATE_LIMIT_EXCEEDED
        | unreached * Status.BASE_WRENCH_UNREACHED
    )


def clamped(efforts: Array, limit: Array) -> Array:
    """Hold efforts (orders, n) at ±limit; a joint that is held stands still, so its derivatives are zero."""
    if not len(efforts):
        return efforts
    held = np.abs(efforts[0]) > limit
    result = np.where(held, 0.0, efforts)
    result[0] = np.clip(efforts[0], -limit, limit)
    return result


_NO_WRENCH = np.empty((0, 6))


class CompiledFeedforward:
    """Computes motors and limits from the motion and efforts of n drives as one function.

    Of a `tree` on a fixed base that fits into straight-line code it computes the efforts as well. One after
    the other would cost several times as much as the code that they run.
    """

    def __init__(
        self,
        order: int,
        train: DriveTrain | None,
        limits: FeedforwardLimits | None,
        *,
        n: int = 0,
        tree: TreeModel | None = None,
        rotors: RotorCoupling | None = None,
    ) -> None:
        arguments = [("the motion", (order + 3, n)), ("the efforts", (order + 1, n))]
        if tree is not None:
            (inverse_dynamics, arguments), n = inverse_dynamics_trace(tree, order), tree.n_joints
        if rotors is not None:
            arguments = [("q", (int(rotors.needed_orders(order).max()) + 3, n))]

        def trace(q: Stack, *computed: Stack) -> Stack:
            positions: Stack = []
            motor_efforts: Stack = []
            if rotors is not None:
                efforts, positions, motor_efforts = rotors.traced_feedforward(q, order)
            else:
                efforts = computed[0] if computed else inverse_dynamics(q)
                if train is not None:
                    motors = train.motors(np.array(q, dtype=object), np.array(efforts, dtype=object))
                    positions = motors.position[: order + 1].tolist()
                    motor_efforts = motors.effort.tolist()
            failed = 0.0 if train is None else q[0][0].graph.violation()
            excess = [0.0] * 4 if limits is None else limits.excess(q, efforts, positions, motor_efforts)
            rest = [*excess, failed]
            rest += [0.0] * (-len(rest) % n)
            begins = accumulate(map(len, (efforts, positions, motor_efforts)))
            rows = [rest[k : k + n] for k in range(0, len(rest), n)]
            return Noted([*efforts, *positions, *motor_efforts, *rows], *begins)

        kernel = Kernel(trace, arguments)
        self._function = kernel.function
        self._begins = kernel.noted  # where rows of positions, motor efforts and the rest begin

    def __call__(self, *arrays: Array) -> Feedforward | None:
        """Return the feedforward of a motion (order + 3, n), not clamped; None where a drive cannot follow.

        Without a tree the efforts (order + 1, n) come second. Raises OverflowingError where numbers are too
        large.
        """
        table = self._function(*arrays)
        first, second, third = self._begins
        *excess, failed = table[third:].ravel()[:5].tolist()
        if failed != 0.0:
            return None
        status = limit_status(excess) if any(excess) else Status.OK
        return Feedforward(table[:first], table[first:second], table[second:third], _NO_WRENCH, status)
