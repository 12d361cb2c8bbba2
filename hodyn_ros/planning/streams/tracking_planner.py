"""Targets followed with little delay: single points as they come, and chunks that change their mind.

Each message gives a target that moves: what a Kalman filter expects of single points, or the points of a
chunk. The motion joins it: by a polynomial, where it is near enough for the limits, else as soon as they
allow, by ramps of constant jerk. Behind what is known of the target it comes to rest at its last point. That
is continuous to the acceleration; its positions every `STEP` are the control points of a uniform spline of
degree 5, which is continuous to its snap, and whose velocity, acceleration and jerk keep the same limits, for
they are means of those of the ramps. Torques, their rates, motors and springs are looked at along the whole
plan before it is followed; where they are beyond their limits, joints are to do less. What the present sample
needs is never changed, and where no plan is found the last one goes on, to rest. Where that, or the plan that
was found, leads further beyond the target than a stop would, joints stop before they turn back.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.planning.streams.approach import Approach, Bounds, State, fading, joining, within
from hodyn_ros.planning.streams.span_limits import HOLDS, SpanLimits, torque_accelerations
from hodyn_ros.planning.streams.stream_clock import Arrivals
from hodyn_ros.planning.streams.stream_config import (
    PointsError,
    StreamConfig,
    Taken,
    Trouble,
    beyond_limits,
    checked,
)
from hodyn_ros.planning.streams.target_path import TargetPath
from hodyn_ros.planning.streams.tracked_target import ExpectedTarget, KnownTarget, TargetEstimator
from hodyn_ros.planning.streams.uniform_spline import DEGREE, LAG, PlannedMotion

STEP = 0.008  # [s] between two control points of the motion
_JOIN = 0.07  # [s] in which the motion joins single points that are near
_LONGER = (1.0, 1.6, 2.5, 4.0)  # times as long where limits are exceeded
_FADED = 2.5  # times as long, and the last plan fades away: its jerk does not jump
# of velocity, acceleration and jerk: to rest, where nothing hurries
_GENTLE = np.array([[1.0], [0.5], [0.25]])
_PREDICTED = 0.05  # [s] that a target is predicted until the next point is to come
_WAITED = 0.2  # [s] for the next point at most, until the motion goes to rest at the last one
_SPEED = 0.9  # of the velocity limit that a target may have
_CATCH_UP, _FASTER = 2.0, 0.15  # [s] in which a delay is made up for, and how much faster at most
_RECOVERY = 1.05  # by which limits that had to be lower rise with each message
_ROOM = 0.92  # use of a limit up to which they do where nothing hurries
# [s] to all of an acceleration, and to rest with it, at most, whatever efforts ask for. Where Coulomb
# friction turns over, a limit of torque rates is kept best by not turning back: with ever less jerk a joint
# went on for radians.
_TO_BRAKE, _TO_REST = 0.2, 0.5
_STOPS = 1.0, 0.7, 0.5, 0.35, 0.2, 0.1  # of all that joints may do, to stop
_ASTRAY = 0.05  # [rad or m] that a plan may lead beyond a target and a stop, where one can stop
_TRIES = 10
_ROUNDING = 1e-9  # of bounds, that differences of control points lose
_WITNESSES = 3  # messages that say the same, for a jump to be believed
_MOST = 2500  # control points of a plan, so that finding it never takes long
# what stands in for limits that a robot does not have [rad/s or m/s], and times [s] to reach them
_VELOCITY, _TO_VELOCITY, _TO_ACCELERATION = 2.0, 0.05, 0.02


class TrackingPlanner:
    """Makes a motion that follows targets; instants are in seconds of one clock.

    `position` (n,) [rad or m] is where the robot stands at first: its joints, those that loops leave free, or
    the pose of its platform in `coordinates`. Samples may be asked for `past` [s] after their instant,
    whatever has come meanwhile. Raises InputError for a robot that cannot stand there, or that has a floating
    base.
    """

    def __init__(
        self,
        robot: Robot,
        position: ArrayLike,
        now: float,
        config: StreamConfig | None = None,
        past: float = 0.1,
    ) -> None:
        self.config = config or StreamConfig()
        self._kept = int(np.ceil(past / STEP)) + 4  # of the past
        place = np.array(position, dtype=np.float64)
        if place.shape != (len(robot.coordinates),) or not np.isfinite(place).all():
            raise InputError(f"the position must hold {len(robot.coordinates)} finite numbers, found {place}")
        self._limits = SpanLimits(robot, STEP, torque_accelerations(robot, place, self.config))
        self.coordinates = self._limits.coordinates
        self.joint_names, limits = self.coordinates.names, self.coordinates.limits
        self._lower, self._upper = limits.position_lower, limits.position_upper
        velocity = np.where(np.isfinite(limits.velocity), limits.velocity, _VELOCITY)
        acceleration = np.minimum(limits.acceleration, velocity / _TO_VELOCITY)
        jerk = np.minimum(limits.jerk, acceleration / _TO_ACCELERATION)
        self._bounds = (1.0 - _ROUNDING) * np.stack([velocity, acceleration, jerk])
        self._shares = np.ones((3, 1))  # of these bounds, that torques and motors leave
        self._estimator = TargetEstimator(self.config.noise, acceleration)
        self._arrivals = Arrivals(self.config.delay)
        self._rise = 1.0  # by which they do with the next points
        self._rate = 1.0  # of known targets, as their limits leave it
        self._target: ExpectedTarget | KnownTarget | None
        self._stamp = 0.0  # [s] of the last single point that was planned for
        self._planned: int  # last control point that the last plan did not change
        self._taken: Taken | None  # what has become of the last points that were planned for
        self._doubted: list[Array]  # where points have been that are far from the target
        self.delay = 0.0  # [s] of the last points
        self._stand(place, now)
        usage, limit = self._limits.usage(self._states[:, 0])
        if usage > HOLDS:
            raise InputError(f"robot {robot.name!r} cannot stand where the stream is to begin: {limit}")

    @property
    def ends(self) -> float:
        """When [s] the motion comes to rest unless new points come."""
        return (self._last + 1) * STEP

    def sample(self, times: ArrayLike, order: int) -> Array:
        """Return positions and derivatives (N, order + 1, n) at N instants [s], now or a little later."""
        return self.motion.sample(times, order)

    @property
    def motion(self) -> PlannedMotion:
        """The motion as it is planned now; it stays as it is when other points come."""
        return PlannedMotion(self._states[:, 0], self._first, STEP)

    def take(self, times: ArrayLike, positions: ArrayLike, now: float, reserve: float = 0.0) -> Taken:
        """Take points at `times` (N,) [s], increasing, that want `positions` (N, n); they replace later ones.

        The motion until `reserve` [s] from now is not changed. Raises PointsError for points that cannot be
        meant; the motion then goes on as if they had not come.
        """
        when, where = checked(times, positions, self.joint_names, now)
        note = beyond_limits(where, self._lower, self._upper, self.joint_names)
        where = np.clip(where, self._lower, self._upper)
        frozen, since = self._frozen(now + reserve)
        shift, late = self._arrivals.shift(when, now)
        new, note = TargetPath(when + shift, where), note or late
        self._require_believable(new, since)
        if len(when) == 1 and new.end <= since + self.config.lag:
            target, fast = self._expected(new.end, where[0], since)
            if self._taken is not None and self._says_the_same(new.end, where[0], frozen):
                return self._taken._replace(delay=self.delay, note=note or fast)
            self._stamp = new.end
            return self._follow(target, frozen, since, note or fast)
        return self._follow(self._known(new, since, frozen), frozen, since, note)

    def stop(self, now: float, reserve: float = 0.0) -> None:
        """Come to rest as soon as the limits allow; where the present plan does, if that takes no longer."""
        frozen, since = self._frozen(now + reserve)
        if self.ends <= since + self.config.stop:
            return
        past = self._rows(frozen - DEGREE - self._kept, frozen)
        for stop in self._stops(past[-1], self._shares):
            states, usage, _ = self._checked(past, stop)
            if usage <= HOLDS:
                self._adopt(states, frozen, len(past))
                return

    def _frozen(self, now: float) -> tuple[int, float]:
        """Return the last control point that the motion at an instant needs, and the time it stands for."""
        number = int(np.floor(now / STEP)) + DEGREE
        return number, (number - LAG) * STEP

    # targets

    def _require_believable(self, new: TargetPath, since: float) -> None:
        """Raise PointsError for points far from the target, until others have confirmed them."""
        place = max(float(new.times[0]), since)
        if self._target is None or place > self._target.until:
            expected = self._rows(self._last, self._last)[0, 0]
        else:
            expected = self._target.at(np.array([place]))[0, 0]
        wanted = new.one(place)
        away = np.abs(wanted - expected)
        joint = int(np.argmax(away))
        if away[joint] <= self.config.jump:
            self._doubted = []
            return
        self._doubted = [each for each in self._doubted if np.abs(each - wanted).max() <= self.config.jump]
        self._doubted.append(wanted)
        if len(self._doubted) < _WITNESSES:
            raise PointsError(
                Trouble.JUMP,
                f"joint {self.joint_names[joint]!r} is wanted {away[joint]:.3g} rad (or m) from where it "
                f"was, and 'jump' is {self.config.jump:g}; the {_WITNESSES}rd message that says so is "
                "followed",
            )
        self._doubted = []

    def _expected(self, time: float, place: Array, since: float) -> tuple[ExpectedTarget, PointsError | None]:
        """Return what is expected of a target, by its last point and those before it."""
        estimator = self._estimator
        estimator.take(time, place)
        gap = estimator.gap
        lag = max(self.config.lag, since - time + gap - _PREDICTED)
        self.delay = lag
        position, velocity, acceleration = estimator.state
        ahead = since - lag - time
        highest, most, _ = self._bounds
        room = np.where(velocity > 0.0, self._upper - position, position - self._lower)
        allowed = np.minimum(_SPEED * highest, np.sqrt(most * np.maximum(room, 0.0)))
        note = None
        over = np.abs(velocity) / highest
        joint = int(np.argmax(over))
        if over[joint] > 1.0:
            note = PointsError(
                Trouble.LIMITS,
                f"the target moves joint {self.joint_names[joint]!r} at {velocity[joint]:.3g} rad/s (or "
                f"m/s), and its limit is {highest[joint]:g}; it is followed late",
            )
        velocity = np.clip(velocity, -allowed, allowed)
        acceleration = np.clip(acceleration, -0.5 * most, 0.5 * most)
        state = State(
            np.clip(position + ahead * (velocity + 0.5 * ahead * acceleration), self._lower, self._upper),
            velocity + ahead * acceleration,
            acceleration,
        )
        until = since + max(_JOIN, min(1.5 * gap, _WAITED))
        return ExpectedTarget(since, until, place, state, _JOIN), note

    def _known(self, new: TargetPath, since: float, frozen: int) -> KnownTarget:
        """Return the target along points that are known ahead, behind those of the last one before them."""
        begin, rate = since, 1.0
        old = self._target if isinstance(self._target, KnownTarget) and since < self._target.until else None
        if old is not None:
            begin = max(old.place(since), since - self.config.delay)
            rate = 1.0 + min(max(since - begin, 0.0) / _CATCH_UP, _FASTER)
        self.delay = since - begin
        if new.times[0] > begin:
            spacing, start = self.config.spacing, float(new.times[0])
            before = TargetPath(np.array([begin]), self._rows(frozen, frozen)[0, :1])
            if old is not None:  # the two disagree: a step between them would slow all down once more
                before = old.path
            new = before.joined(new, start, self.config.blend, spacing, False).since(begin - 2.0 * spacing)
        return KnownTarget(since, since, new.points[-1], new, begin, rate, self.config.spacing)

    def _says_the_same(self, time: float, place: Array, frozen: int) -> bool:
        """Whether a point comes within the step of the last plan, and is where that one expects it.

        Another plan could change nothing sooner; so streams of a kilohertz cost no more than those of 125 Hz.
        """
        last = self._target
        if not isinstance(last, ExpectedTarget) or frozen != self._planned:
            return False
        expected = last.rest + (time - self._stamp) * last.state.velocity
        return bool(np.abs(place - expected).max() <= 4.0 * self.config.noise)

    # plans

    def _follow(
        self, target: ExpectedTarget | KnownTarget, frozen: int, since: float, note: PointsError | None
    ) -> Taken:
        """Follow a target as soon as the limits allow; leave everything as it is where they do not at all."""
        past = self._rows(frozen - DEGREE - self._kept, frozen)
        shares = np.minimum(self._shares * self._rise, 1.0)
        slower = min(self._rate * _RECOVERY, 1.0) if isinstance(target, KnownTarget) else 1.0
        wish = target.rate if isinstance(target, KnownTarget) else 1.0
        usage, limit = np.inf, ""
        hurries = np.zeros(len(self.joint_names), dtype=bool)
        for tried in range(_TRIES):
            if isinstance(target, KnownTarget):
                target = target.timed(wish * slower, self._bounds)
            longer = _LONGER[min(tried, len(_LONGER) - 1)]
            rows, hurries = self._plan(target, frozen, shares * self._bounds, longer, hurries)
            if rows is None:
                usage, limit = np.inf, f"{_MOST * STEP:g} s of a plan"
                break
            states, usage, limit = self._checked(past, rows)
            turned = None
            if isinstance(target, ExpectedTarget) and usage <= HOLDS:
                follows = int((target.until - since) / STEP)  # it may be enough to stop behind these
                turned = self._turned(past, rows, target, shares, follows)
                turned = turned or self._turned(past, rows, target, shares, 0)
            elif isinstance(target, ExpectedTarget) and tried == 0 and "rate" in limit:
                stop = next(self._stops(past[-1]))
                turning = _beyond(stop, self._reach(target)) > 0.0
                if turning.any():
                    turned = self._replaced(past, rows, stop, target, shares, turning)
            if turned is not None and turned[1] <= HOLDS:
                states, usage, limit = turned
            if usage <= HOLDS:
                self._adopt(states, frozen, len(past))
                self._shares, self._target = shares, target
                if isinstance(target, KnownTarget):
                    self._rate = slower
                # what nobody hurries for need not be tried again with more than it may have
                self._rise = _RECOVERY if hurries.any() or usage <= _ROOM else 1.0
                self._planned = frozen
                self._taken = Taken(True, self.delay, wish * slower, slower, usage, limit, note)
                return self._taken
            quantity = limit.partition(" of ")[0]
            joined_gently = tried + 1 >= len(_LONGER) and not hurries.any()
            if isinstance(target, KnownTarget) and (joined_gently or tried > _TRIES // 2):
                slower *= 0.75
            elif quantity == "position" and isinstance(target, ExpectedTarget):
                target = target.standing()
            shares = shares * self._less(quantity, usage, tried)
            shares = self._braking(shares)
        rows = self._rows(frozen + 1, max(self._last + DEGREE, frozen + 1))
        turned = self._turned(past, rows, target, self._shares, 0)
        followed = turned is not None and isinstance(target, ExpectedTarget)
        if turned is not None:
            states, usage, limit = turned
            self._adopt(states, frozen, len(past))
        if followed:
            self._target, self._planned = target, frozen
        return Taken(followed, self.delay, float(followed), float(followed), usage, limit, note)

    def _checked(self, past: Array, rows: Array) -> tuple[Array, float, str]:
        """Return the states of a plan, with those before it, and the use of its limits.

        The spans up to the present one are those of the last plan, and have been found within limits.
        """
        states = np.concatenate([past, rows])
        return states, *self._limits.usage(states[self._kept + 1 :, 0])

    def _stops(self, present: Array, shares: Array | float = 1.0) -> Iterator[Array]:
        """Yield states (N, 3, n) from those of now (3, n) to a stop, the hardest first, `shares` last."""
        for share in (*_STOPS, shares):
            yield _sampled(Approach.to_a_stop(State(*present), Bounds.symmetric(*(share * self._bounds))))

    def _reach(self, target: ExpectedTarget | KnownTarget) -> Array:
        """Return the lowest and highest positions (2, n) to which a target goes, or would come to a stop."""
        goes = target.at(np.arange(target.since, max(target.until, target.since + STEP), STEP))
        places = np.concatenate([goes[:, 0], next(self._stops(goes[-1]))[:, 0], target.rest[None]])
        return np.stack([places.min(axis=0), places.max(axis=0)])

    def _turned(
        self, past: Array, rows: Array, target: ExpectedTarget | KnownTarget, shares: Array, begin: int
    ) -> tuple[Array, float, str] | None:
        """Return a plan of those states in which joints that lead astray stop, and then go to the last point.

        They stop from row `begin` on, if that leads less far beyond the target than the `rows` (N, 3, n) do,
        and turn back without acceleration: friction allows that under any limit of torque rates. To the end
        of points that are known they would leave the path; so they stand. None where no such plan holds.
        """
        reach = self._reach(target)
        over = _beyond(rows, reach)
        for stop in self._stops(np.concatenate([past, rows[:begin]])[-1], shares):
            stop = np.concatenate([rows[:begin], stop])
            astray = over > _beyond(stop, reach) + _ASTRAY
            if not astray.any():
                return None
            plan = self._replaced(past, rows, stop, target, shares, astray)
            if plan[1] <= HOLDS:
                return plan
        return None

    def _replaced(
        self,
        past: Array,
        rows: Array,
        stop: Array,
        target: ExpectedTarget | KnownTarget,
        shares: Array,
        some: NDArray[np.bool_],
    ) -> tuple[Array, float, str]:
        """Return a plan in which some joints (n,) stop and go to the last point, as `_checked` does."""
        turn = stop
        if isinstance(target, ExpectedTarget):
            off = State(stop[-1, 0] - target.rest, *stop[-1, 1:])
            way = Approach(off, Bounds.symmetric(*(shares * self._bounds)))
            if len(stop) + way.duration / STEP <= _MOST:
                back = _sampled(way)
                back[:, 0] += target.rest
                turn = np.concatenate([stop, back])
        count = np.arange(len(turn) if some.all() else max(len(turn), len(rows)))
        turn, others = (each[np.minimum(count, len(each) - 1)] for each in (turn, rows))
        return self._checked(past, np.where(some, turn, others))

    def _braking(self, shares: Array) -> Array:
        """Return shares (3, 1) by which joints brake in time, with less acceleration at the least jerk."""
        velocity, acceleration, jerk = self._bounds
        slowest = min(np.max(velocity / acceleration) / _TO_REST, shares[1, 0])
        gentle = min(np.max(acceleration / jerk) / _TO_BRAKE, 1.0)  # jerk, by the same share of accelerations
        less = np.clip(shares[2] / gentle, slowest, shares[1])
        return np.stack([shares[0], less, np.clip(less * gentle, shares[2], 1.0)])

    def _less(self, quantity: str, usage: float, tried: int) -> Array:
        """Return by what to multiply the bounds (3, 1), where a limit is used too much."""
        by = max((0.97 - 0.02 * tried) / usage, 0.3)
        if quantity in ("velocity", "motor speed"):
            return np.array([[by], [1.0], [1.0]])
        if quantity.endswith("rate") or quantity in ("jerk", "torque acceleration"):
            return np.array([[1.0], [1.0], [by]])
        return np.array([[1.0], [by], [by]])

    def _plan(
        self,
        target: ExpectedTarget | KnownTarget,
        frozen: int,
        limits: Array,
        longer: float,
        hurries: NDArray[np.bool_],
    ) -> tuple[Array | None, NDArray[np.bool_]]:
        """Return states (N, 3, n) every `STEP` behind the frozen ones, to rest, and which joints (n,) hurry.

        No states where they are too many. Those hurry that have done so in the try before, or cannot join the
        target in time, `longer` times as long as usual.
        """
        bounds = Bounds.symmetric(*limits)
        past, since = self._rows(frozen - 2, frozen), (frozen - LAG) * STEP
        count = max(int(np.ceil((target.until - since) / STEP)), 1)
        if count > _MOST:
            return None, hurries
        times = np.asarray(STEP * np.arange(count + 1), dtype=np.float64)
        wanted = target.at(since + times)
        join = longer * (_JOIN if isinstance(target, ExpectedTarget) else self.config.blend)
        if longer < _FADED:
            states = wanted[1:] + joining(past[-1] - wanted[0], times[1:], join)
        else:
            states = wanted[1:] + fading(self._rows(frozen + 1, frozen + count) - wanted[1:], times[1:], join)
        near = within(np.concatenate([past[:, 0], states[:, 0]]), STEP, self._bounds)
        near &= (np.abs(states[-1, 1:]) <= self._bounds[:2]).all(axis=0)  # where it is not there yet
        hurries = hurries | ~near
        if hurries.any():
            states[:, :, hurries] = self._hurrying(target, past[-1], since, times, bounds, hurries)
        end = State(*states[-1])
        bounds = Bounds.symmetric(*np.where(hurries, limits, limits * _GENTLE))
        way = Approach(end._replace(position=end.position - target.rest), bounds)
        if count + way.duration / STEP > _MOST:
            return None, hurries
        rest = _sampled(way)
        rest[:, 0] += target.rest
        return np.concatenate([states, rest]), hurries

    def _hurrying(
        self,
        target: ExpectedTarget | KnownTarget,
        present: Array,
        since: float,
        times: Array,
        bounds: Bounds,
        some: NDArray[np.bool_],
    ) -> Array:
        """Return states (N, 3, some) that join a target as soon as the bounds allow, in its own frame."""
        if isinstance(target, ExpectedTarget):
            target = target.steady()
        wanted = target.at(since + times)[:, :, some]
        left = Bounds(*(bound[some] for bound in bounds))
        velocity, acceleration = wanted[:, 1], np.abs(wanted[:, 2]).max(axis=0)
        least = (1.0 - _SPEED) * left.fastest
        left = Bounds(
            np.minimum(left.slowest - velocity.min(axis=0), -least),
            np.maximum(left.fastest - velocity.max(axis=0), least),
            np.maximum(left.acceleration - acceleration, 0.2 * left.acceleration),
            left.jerk,
        )
        way = Approach(State(*(present[:, some] - wanted[0])), left)
        return np.asarray(wanted[1:] + way.at(times[1:]))

    def _adopt(self, states: Array, frozen: int, kept: int) -> None:
        self._first, self._states = frozen + 1 - kept, states
        self._last = self._first + len(states) - 1 - DEGREE

    def _stand(self, place: Array, now: float) -> None:
        self._first = int(np.floor(now / STEP)) - self._kept
        self._states = np.zeros((2 * DEGREE + 2 + self._kept, 3, len(place)))
        self._states[:, 0] = place
        self._last = self._first
        self._target = None
        self._doubted = []
        self._planned, self._taken = self._first, None

    def _rows(self, first: int, last: int) -> Array:
        """Return the states (N, 3, n) from one number to another one; the last one is held."""
        number = np.arange(first, last + 1) - self._first
        return self._states[np.clip(number, 0, len(self._states) - 1)]


def _beyond(rows: Array, reach: Array) -> Array:
    """Return how far (n,) states (N, 3, n) lead beyond the lowest and highest positions (2, n)."""
    below, above = reach[0] - rows[:, 0].min(axis=0), rows[:, 0].max(axis=0) - reach[1]
    return np.asarray(np.maximum(np.maximum(below, above), 0.0))


def _sampled(way: Approach) -> Array:
    """Return the states (N, 3, n) of an approach every `STEP`, and as many at rest as a span needs."""
    count = int(np.ceil(way.duration / STEP)) + DEGREE + 1
    return way.at(np.asarray(STEP * np.arange(1, count + 1), dtype=np.float64))
