"""What acts on a robot from outside, by its momentum."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.checks import finite_array, shaped_array
from hodyn_ros.codegen.kernel import Kernel, Stack, Traceable
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.rotor_coupling import RotorCoupling
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.engine.kernels import fits_straight_line, inverse_dynamics, inverse_dynamics_trace
from hodyn_ros.engine.series.vectors import cross, subtract
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.observers.balance import Balance, Sensed
from hodyn_ros.observers.config import ObserverConfig
from hodyn_ros.observers.equations import ObserverEquations
from hodyn_ros.observers.filters import CORRECTED
from hodyn_ros.observers.interpolation import BasePoint
from hodyn_ros.observers.redundant_drives import DriveFit

_DEFAULT, _AT_MOTORS = ObserverConfig(), Sensed(links=True, motor_efforts=True)
_ALLOWED = 5.0  # deviations that the uncertainty of a robot's file counts as
_WRENCH = tuple(f"base {kind} {axis}" for kind in ("moment", "force") for axis in "xyz")


class ExternalEfforts(tuple[Array, int]):
    """What acts on the joints from outside, as generalised forces; on a floating base its wrench first.

    A wrench (m; f) has the axes of the world, and is about the origin of the base. As a tuple, of the row
    that begins with it and of m, it is made in half the time of another object.
    """

    __slots__ = ()

    @property
    def efforts(self) -> Array:
        """The external efforts (m,) [N.m or N]."""
        return self[0][0, : self[1]]

    @property
    def deviations(self) -> Array:
        """Their standard deviations (m,), of noise and of what the model may be wrong by."""
        return self[0][0, self[1] : 2 * self[1]]

    @property
    def largest(self) -> float:
        """The largest ratio of an effort and its deviation."""
        return self[0].item(2 * self[1])

    @property
    def contact(self) -> bool:
        """Whether that is above the threshold, or has been and is not yet below its release."""
        return self[0].item(2 * self[1] + 1) == 1.0


class Correction(NamedTuple):
    """By how much a drive differs from the robot's file, as a share of what the file states."""

    value: float
    deviation: float


class MomentumObserver:
    """The generalised forces that the environment exerts on a robot, without sensors for them.

        r = L (p - integral(tau_J + C^T q' - g + r)),   r' = L (tau_ext - r),   p = M q'

    from sample to sample, without that `C^T q'` is computed (`hodyn_ros.observers.balance`), with an error of
    the fourth order of the period. `sensed` says what is measured of all joints: with encoders at links and
    motors the torque is that of the spring, with torque sensors theirs, else that of the motor. Where the
    equation of the motor is known besides, it corrects springs and friction (`filters`). Links without
    encoders of their own are placed by the load of their motors. With loops, the driven joints are the
    coordinates; of more drives than that, what they strain each other with is left out.

    The deviations hold noise, the uncertainty of masses, springs and friction at the motion that is, and that
    of dry friction near standstill. `covariance` (10 bodies, 10 bodies) of the dynamic parameters, in the
    order of `robot.regressor`, counts instead of `inertia_deviation`, where `regress` is called.

    Raises InputError for robots that it is not for: with rotors that turn with their carriers, with two
    motors a joint, and with loops and a base that moves.

    Attributes:
        names: What the external efforts act on (m,): the driven joints, after the six of a floating base.
        rows: What a sample holds, row by row.
        floats: Whether it takes the motion of a base besides.
        equations: What it computes.
        step: `(sample, period, memory, figures, [base]) -> memory`, arrays of two axes: one update.
        restarts: How often it has begun anew, for a gap in time.
    """

    def __init__(
        self,
        robot: Robot,
        config: ObserverConfig = _DEFAULT,
        sensed: Sensed = _AT_MOTORS,
        *,
        covariance: ArrayLike | None = None,
    ) -> None:
        _refuse_unsupported(robot)
        self.robot, self.sensed, self.rows = robot, sensed, sensed.rows
        train = robot.drive_train
        if train is None:
            train = DriveTrain([DriveSpec(np.inf, 0.0)] * len(robot.driven_joints), robot.driven_joints)
        self.floats = robot.closure is None and robot.moves_base
        if self.floats and not sensed.rates:
            raise InputError("the observer of a floating base needs velocities")
        self._balance = Balance(train, sensed, self.floats)
        self.names = (*(_WRENCH if self.floats else ()), *robot.driven_joints)
        self.restarts = 0
        self._n, self._m = train.n_joints, len(self.names)
        self._roots = None if covariance is None else self._factor(covariance)
        self._elapsed = array("d", [0.0])  # the number in the array beside, set in half the time
        self._period = np.frombuffer(self._elapsed).reshape(1, 1)
        self._chosen: tuple[bool, bool] | None = None  # what code is compiled for
        self.config = config

    @property
    def config(self) -> ObserverConfig:
        """The configuration; it may change at any time.

        With or without smoothing, or friction of rigid joints corrected, it begins anew.
        """
        return self._config

    @config.setter
    def config(self, config: ObserverConfig) -> None:
        m, n, chosen = self._m, self._n, (bool(config.smoothing), bool(config.friction_time))
        fresh = chosen != self._chosen
        if fresh:
            self._chosen, self.equations = chosen, ObserverEquations(self._balance, *chosen)
            self._filters, self._state = self.equations.filters, self.equations.memory
        noise = np.empty(m)
        share = self.robot.uncertainty.efforts / _ALLOWED
        noise[m - n :] = config.noise_of(self.robot.driven_joints, self.robot.limits.effort, share)
        if self.floats:
            tree = self.robot.tree
            weight = float(tree.masses.sum() * np.linalg.norm(tree.gravity))
            noise[:6] = config.wrench_noise or share * weight
        self._config, self._longest = config, config.longest_gap
        self._figures = np.array([self._filters.numbers(config, noise, self._roots is None)])
        if fresh:
            self.step = self._compiled()
            self._conditional = self.equations.conditional
            self._restart()

    @property
    def corrections(self) -> dict[str, dict[str, Correction]]:
        """What is corrected of the drives, by joint and kind.

        Kinds are "torque", of the spring or of the gain of a torque sensor, "viscous" and "coulomb". A
        deviation that is as wide as at the start says that the motion has not shown it.
        """
        state = self._filters.state.unpack(self._memory[0, self._state["filters"]].tolist())
        by_joint = {}
        for j, names in self._filters.corrected.items():
            size, covariance = len(names), iter(state[f"p{j}"])
            variances = [[next(covariance) for _ in range(a, size)][0] for a in range(size)]
            by_joint[self.robot.driven_joints[j]] = {
                name: Correction(value, max(variance, 0.0) ** 0.5)
                for name, value, variance in zip(names, state[f"x{j}"], variances)
                if name in CORRECTED
            }
        return by_joint

    @property
    def redundant(self) -> bool:
        """Whether there are more drives than coordinates."""
        return self._n > _freedoms(self.robot)

    @property
    def starting(self) -> bool:
        """Whether nothing follows from the next sample yet, as too few have come since it began anew."""
        return not isfinite(self._time)

    @property
    def link_motion(self) -> Array:
        """Positions and velocities of the joints (2, n) at the last sample [rad or m, /s]."""
        start = self._state["balance"].start
        return self._memory[0, start : start + 2 * self._n].reshape(2, self._n)

    @property
    def period(self) -> float:
        """The time [s] between the last two samples."""
        return float(self._period[0, 0])

    def sample(self, **measured: ArrayLike) -> Array:
        """Return a sample (rows, n) from what is measured, by the names of `rows`.

        Reflected to the links: `position`, `velocity` of links, `motor_position`, `motor_velocity`,
        `motor_effort`, `joint_torque` of sensors between drives and links, (n,) each.
        """
        missing = [name for name in self.rows if name not in measured]
        if missing or len(measured) != len(self.rows):
            raise InputError(f"a sample needs {list(self.rows)}, found {list(measured)}")
        return np.stack([shaped_array(name, measured[name], (self._n,)) for name in self.rows])

    def noise_of(self, times: ArrayLike, samples: ArrayLike) -> tuple[float, ...]:
        """Return the `effort_noise` for a recording without contacts, at which it stays silent.

        `times` (N,) [s], `samples` (N, rows, n); the first fifth is left out, in which drives are corrected.
        The root mean square of what it takes for external, or what stays a fifth below the threshold.
        """
        stamps, stack = np.asarray(times, dtype=np.float64), np.asarray(samples, dtype=np.float64)
        if self.floats or stack.shape != (len(stamps), len(self.rows), self._n) or len(stamps) < 10:
            raise InputError(f"noise is that of ten or more samples (N, {len(self.rows)}, {self._n})")
        quiet = MomentumObserver(self.robot, self._config, self.sensed)
        estimates = [quiet.update(time, sample) for time, sample in zip(stamps.tolist(), stack)]
        efforts = np.array([one.efforts for one in estimates[len(estimates) // 5 :] if one is not None])
        if not len(efforts):
            raise InputError("the recording has gaps everywhere; raise longest_gap")
        largest = 1.25 * np.abs(efforts).max(axis=0) / self._config.threshold
        noise: list[float] = np.maximum(np.sqrt((efforts**2).mean(axis=0)), largest).tolist()
        return tuple(noise)

    def restart(self) -> None:
        """Forget what was, corrections of drives too."""
        self._restart()
        self.restarts += 1

    def _restart(self) -> None:
        self._time = np.inf  # of the last sample; before there are enough, no time is after it
        self._begun, self._arrived = 0.0, 0
        self._memory = np.zeros((1, self._state.size))
        self._memory[0, self._state["filters"]] = self._filters.start(self._figures[0].tolist())

    def update(self, time: float, sample: Array, base: BaseMotion | None = None) -> ExternalEfforts | None:
        """Take a sample (rows, n) at a time [s]; return what acts from outside, None while it starts.

        `base`: pose and twist of a floating base. Where more than `longest_gap` has passed, it starts anew,
        but for the corrections of drives. Raises InputError, and stays as it was, for what is missing or not
        finite, and where the time does not go on.
        """
        period = time - self._time
        if not 0.0 < period <= self._longest:
            self._start(time, sample, (self._based(base),) if self.floats else ())
            return None
        self._elapsed[0] = period
        further = (self._based(base),) if self.floats else ()
        try:
            if further:
                row = self.step(sample, self._period, self._memory, self._figures, *further)
            else:  # in a tenth less time
                row = self.step(sample, self._period, self._memory, self._figures)
        except InputError:
            self._check(sample)
            raise
        if self._conditional and row.item(self.equations.failed):
            self._explain(sample, *further)
        self._memory, self._time = row, time
        return ExternalEfforts((row, self._m))

    def _start(self, time: float, sample: Array, further: Sequence[Array]) -> None:
        """Take a sample where there is none, or none near, to take the difference to."""
        self._check(sample)
        if not isfinite(time):
            raise InputError(f"the time is {time} s")
        last = self._time if isfinite(self._time) else self._begun
        period = time - last if self._arrived else 1.0
        if not period > 0.0:
            raise InputError(f"the time {time:.9g} s is not after {last:.9g} s")
        if self._arrived and period > self._longest:
            self._forget_motion()
        self._begin(sample, period, further)
        self._begun = time
        self._arrived += 1
        if self._arrived > (not self.sensed.rates):
            self._time = time

    def regress(self) -> None:
        """Let deviations follow the covariance of the dynamic parameters at the motion of the last sample.

        `sigma^2 = Y Sigma Y^T`, with the acceleration that the filtered efforts need. It changes slowly and
        costs more than an update: once for ten of them.
        """
        if self._roots is None or not self._arrived:
            return
        state = self._balance.state.unpack(self._memory[0, self._state["balance"]].tolist())
        needed = self._filters.state.unpack(self._memory[0, self._state["filters"]].tolist())["needed"]
        motion = np.array([state["q"], state["v"], np.zeros(self._n)])
        bias = self.robot.inverse_dynamics(motion)[0]
        motion[2] = np.linalg.solve(self.robot.mass_matrix(motion[:1])[0], np.array(needed) - bias)
        deviations = self.robot.regressor(motion)[0] @ self._roots
        self._figures[0, self._filters.figures["model_variance"]] = (deviations**2).sum(axis=1)

    def _factor(self, covariance: ArrayLike) -> Array:
        size = 10 * self.robot.tree.n_bodies
        if not self.robot.is_arm:
            raise InputError("a covariance of the dynamic parameters is for trees on the ground")
        values, vectors = np.linalg.eigh(finite_array("covariance", covariance, (size, size)))
        if not values.min() >= -1e-9 * abs(values).max():
            raise InputError("the covariance of the dynamic parameters has a negative eigenvalue")
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    def _check(self, sample: Array) -> None:
        """Raise InputError for a sample that cannot be used, naming what and whose."""
        values = shaped_array("a sample", sample, (len(self.rows), self._n))
        for name, row in zip(self.rows, values):
            if not np.isfinite(row).all():
                j = int(np.flatnonzero(~np.isfinite(row))[0])
                joint = self.robot.driven_joints[j]
                raise InputError(f"{name} holds {row[j]} for joint {joint!r}; give finite numbers")

    @staticmethod
    def _based(base: BaseMotion | None) -> Array:
        """Return pose (3, 4) and body-fixed twist of a base in a row."""
        if not isinstance(base, BaseMotion) or base.twists.ndim != 2 or not len(base.twists):
            raise InputError("a sample of a floating base needs its BaseMotion, with one twist or more")
        fixed = base.in_representation("body_fixed")
        return np.concatenate([fixed.pose[:3].ravel(), fixed.twists[0]])[None]

    def _forget_motion(self) -> None:
        """Begin anew, but keep the corrections of drives, which a gap does not change."""
        kept = self._memory
        self.restart()
        self._memory = kept

    def _begin(self, sample: Array, period: float, further: Sequence[Array]) -> None:
        """Take a sample before which there is none to take the difference to; corrections stay."""
        rows = np.asarray(sample, dtype=np.float64).tolist()
        before = self._balance.state.unpack(self._memory[0, self._state["balance"]].tolist())
        row = self.equations.first(
            rows, period, before, self._figures[0].tolist(), [x.tolist() for x in further]
        )
        kept, self._memory = self._memory[0, self._state["filters"]], np.array([row])
        fresh = self._memory[0, self._state["filters"]]
        for j in self._filters.corrected:
            for name in (f"x{j}", f"p{j}"):
                fresh[self._filters.state[name]] = kept[self._filters.state[name]]

    def start_trace(self) -> Traceable:
        """Return what gives the first memory: `sample, figures, [base] -> one row`, where rates are measured.

        After that `trace` goes on.
        """
        return self.equations.start_trace()

    @property
    def numbers(self) -> Array:
        """The configuration as numbers (1, size), as compiled code takes them."""
        return self._figures

    @property
    def figures(self) -> dict[str, list[float]]:
        """The configuration as numbers, in the order in which compiled code takes them."""
        return self._filters.figures.unpack(self._figures[0].tolist())

    def trace(self) -> Traceable:
        """Return what is compiled of a tree: `sample, period, memory, figures, [base] -> one row`.

        The row is the memory of the next call, and begins with external efforts (m,), deviations (m,), the
        largest of their ratios, one in a contact, and a number that is not zero where a spring is beyond its
        law.
        """
        tree = self.robot.tree
        spec = KernelSpec(base="body_fixed" if self.floats else None)
        efforts_of, _ = inverse_dynamics_trace(tree, 0, spec)

        equations, balance = self.equations, self._balance

        def trace(sample: Stack, period: Stack, memory: Stack, figures: Stack, *base: Stack) -> Stack:
            before, filters, now = equations.arrived_at(sample, period[0][0], memory, base)
            joints = balance.joints_between(before, now, period[0][0])
            if base:
                bases = balance.base_between(before, now, period[0][0])
                efforts = [
                    _about_base(efforts_of(list(point), at.pose, at.twists)[0], at)
                    for point, at in zip(joints, bases)
                ]
            else:
                efforts = [efforts_of(list(point))[0] for point in joints]
            return equations.settled(before, filters, now, period[0][0], efforts, figures[0])

        return trace, equations.shapes

    def _compiled(self) -> Callable[..., Array]:
        """Return what takes `sample, period, memory, figures, [base]`, and returns a row as of `trace`."""
        if self.robot.closure is None and fits_straight_line(self.robot.tree, 1):
            return Kernel(*self.trace()).function
        if self.floats:
            raise InputError(f"robot {self.robot.name!r} is too large for an observer of a floating base")
        equations = self.equations
        redundant = self.redundant
        needed: Callable[[Array], tuple[Array, ...]] = (
            DriveFit(self.robot) if redundant else self._efforts_of()
        )
        between = Kernel(*equations.points_trace()).function
        after = Kernel(*equations.settle_trace(redundant)).function

        def step(sample: Array, period: Array, memory: Array, figures: Array) -> Array:
            motions = between(sample, period, memory)
            first, *moving = needed(motions[:3])
            second, *moving = needed(motions[3:])
            return after(sample, period, memory, figures, np.array([first, second]), *moving)

        return step

    def _efforts_of(self) -> Callable[[Array], tuple[Array, ...]]:
        """Return what takes the motion of the driven joints (3, n) and returns efforts (n,)."""
        robot = self.robot
        if robot.closure is None:
            function = inverse_dynamics(robot.tree, 0).function
            return lambda motion: (function(motion)[0],)
        twin = robot.apart()

        def of_loops(motion: Array) -> tuple[Array]:
            moved = twin.motion_from_drives(motion)
            efforts = np.asarray(twin.inverse_dynamics(moved.joints, moved.base))
            return (efforts[0],)

        return of_loops

    def _explain(self, sample: Array, *base: Array) -> None:
        """Raise InputError for a spring that cannot give what it would have to."""
        trace, _ = self.trace()
        stacks = [array.tolist() for array in (sample, self._period, self._memory, self._figures, *base)]
        try:
            trace(*stacks)
        except HodynError as error:
            raise InputError(str(error)) from error
        raise InputError(f"a spring of robot {self.robot.name!r} is beyond what its law says")


def _about_base(efforts: list[Any], at: BasePoint) -> list[Any]:
    """Return efforts whose first six are a wrench about the origin of the world, about that of the base."""
    moment, force = efforts[:3], efforts[3:6]
    return [*subtract(moment, cross(at.origin, force)), *force, *efforts[6:]]


def _refuse_unsupported(robot: Robot) -> None:
    if RotorCoupling.of(robot) is not None:
        raise InputError(
            f"rotors of robot {robot.name!r} turn with their carriers, which this observer leaves out; leave "
            "out `rotor` of its drives"
        )
    closure = robot.closure
    if closure is None:
        return
    if closure.base_prescribed or (closure.tree.floating_base and closure.platform is None):
        raise InputError(
            f"robot {robot.name!r} has loops and a base that moves; its observer needs a fixed one"
        )


def _freedoms(robot: Robot) -> int:
    """Return how many coordinates a robot has, those of a platform included."""
    platform = robot.structure.platform
    return robot.n_coordinates + (0 if platform is None else len(platform.rows))
