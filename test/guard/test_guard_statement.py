"""What docs/safety.md states of the guard, figure by figure, on both sides of each.

Written from the statement, not from the code, with streams that one can compute by hand: two joints in
virtual time, and a robot that is where the last command has sent it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from sweeps import some

from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.effort_check import THRESHOLD
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig, GuardLimits, Rejoin
from hodyn_ros.guard.reasons import Fault, Obstacle, Reason, State, StreamError
from hodyn_ros.guard.transitions import Motion

Array = np.ndarray
Measured = tuple[Array, Array | None] | None

MS = 1_000_000  # [ns]
EPOCH = 1_700_000_000 * 1000 * MS
LIMITS = GuardLimits(velocity=2.0, effort=50.0)
GAINS = MotorGains(np.array([100.0, 100.0]), np.array([10.0, 10.0]))
SPEEDS = np.array([1.0, -0.5])  # of the two joints, by the speed of a motion
JOINED = 70  # [ms] when a rig follows: 10 to settle, 50 to fade
BEGINS = 100  # [ms] when its motion begins


class Rig:
    """A guard of two joints with its streams, in cycles of a millisecond."""

    def __init__(self, *, gains=None, model=None, observer=None, limits=LIMITS, at=0.0, **config) -> None:
        config = {"settle": 0.01, "fade": 0.05, "measured": gains is not None, **config}
        self.guard = CommandGuard(["a", "b"], GuardConfig(**config), limits, gains, model, observer)
        self.k = 0  # [ms]
        self.clock = 0  # [ns] by which the clock has been set
        self.late = 0.0  # [ms] age of measurements
        self.robot: Measured = np.full(2, at), np.zeros(2)
        self.commands: dict[int, object] = {}
        self.changes: list[tuple[int, State, Reason]] = []

    def run(self, until: int, feed=lambda t: reference(), robot=None, **cycle) -> Rig:
        """Go on to a millisecond, each with `feed(t)` and `robot(t)`; t [s]. Either may return None."""
        while self.k < until:
            t = 1e-3 * self.k
            self.cycle(feed(t), self.robot if robot is None else robot(t), **cycle)
        return self

    def cycle(self, feed=None, robot: Measured = None, status=Status.OK, elapsed=None) -> None:
        now = EPOCH + self.k * MS + self.clock
        with suppress(StreamError):
            if robot is not None:
                self.guard.measure(now, now - round(self.late * MS), *robot)
        with suppress(StreamError):
            if feed is not None:
                self.guard.follow(now, now, feed, status)
        command = self.guard.command(now, elapsed)
        self.changes += [(self.k, one.after, one.reason) for one in self.guard.transitions]
        self.guard.transitions.clear()
        self.commands[self.k] = command
        if command is not None:
            self.robot = command.position, command.velocity
        self.k += 1

    def held_up(self, ms: int) -> Rig:
        """Let time pass without a cycle."""
        self.k += ms - 1
        return self

    def entered(self, state: State) -> int:
        """Return when [ms] a state was entered last."""
        return next(k for k, after, _ in reversed(self.changes) if after is state)

    def rows(self, begin: int, end: int) -> Array:
        """Return positions, velocities and efforts (N, 3, 2) of the commands between two milliseconds."""
        return np.array([np.stack(self.commands[k][:3]) for k in range(begin, end) if k in self.commands])

    @property
    def fault(self) -> Fault | None:
        """Why it has stopped first, None where it has not."""
        return next((why.fault for _, _, why in self.changes if why.fault is not None), None)

    @property
    def stopped_at(self) -> int:
        """When [ms] it has stopped first."""
        return next(k for k, _, why in self.changes if why.fault is not None)


def reference(motion=((0.0, 0.0), (0.0, 0.0), (0.0, 0.0)), *efforts) -> Reference:
    rows = [np.broadcast_to(np.asarray(row, dtype=float), 2) for row in efforts or [0.0]]
    return Reference(np.array(motion, dtype=float), np.array(rows))


def way(t: float, speed: float, acceleration: float = 20.0, begins: float = 1e-3 * BEGINS) -> Array:
    """A motion (3, 2) that begins at rest, and gets to a speed evenly."""
    s, lasts = max(t - begins, 0.0), speed / acceleration
    up, on = min(s, lasts), max(s - lasts, 0.0)
    rows = [0.5 * acceleration * up**2 + speed * on, acceleration * up, acceleration * (0.0 < s < lasts)]
    return np.outer(rows, SPEEDS)


def moving(speed: float, *efforts, **more) -> Callable[[float], Reference]:
    return lambda t: reference(way(t, speed, **more), *efforts)


def rests(*efforts) -> Callable[[float], Reference]:
    return lambda t: reference(((0.0, 0.0),) * 3, *efforts)


def nothing(t: float) -> None:
    return None


def leaving(speed: float, begins: float, joint: int = 0) -> Callable[[float], Measured]:
    """A robot of which a joint gets to a speed within 50 ms and goes on with it, whatever it is told."""
    turns = np.sign(speed) * np.eye(2)[joint]
    return lambda t: tuple(row * turns for row in way(t, abs(speed), abs(speed) / 0.05, begins)[:2, 0])


def heavy(motion: Motion, bent: Motion | None = None) -> Array:
    """A model whose efforts tell position, velocity and acceleration apart."""
    return 4.0 * motion.position + 0.5 * motion.velocity + 0.2 * motion.acceleration


def weighed(speed: float, more: float = 0.0) -> Callable[[float], Reference]:
    """A motion with the efforts of that model and some more, and their rate."""

    def feed(t: float) -> Reference:
        q, v, a = way(t, speed)
        return reference((q, v, a), heavy(Motion(q, v, a)) + more, 4.0 * v + 0.5 * a)

    return feed


def near(k: int, expected: float) -> bool:
    return abs(k - expected) <= 1.0  # [ms]: own time is a sum of milliseconds


# waiting, joining, following


def test_a_motion_is_joined_once_all_has_been_sound_for_settle_and_followed_after_fade() -> None:
    rig = Rig(settle=0.04, fade=0.08).run(160)
    assert near(rig.entered(State.JOINING), 40) and near(rig.entered(State.FOLLOWING), 120)
    assert rig.commands[30] is None and [after.value for _, after, _ in rig.changes] == [
        "joining",
        "following",
    ]


def spoilt(rig: Rig, how: str) -> None:
    """One cycle in which not all is sound."""
    if how == "deaf":
        rig.guard.listening = False
    feed = reference(np.full((3, 2), np.nan)) if how == "not a number" else reference()
    rig.cycle(feed, rig.robot, Status.NEAR_SINGULARITY if how == "status" else Status.OK)
    rig.guard.listening = True


@pytest.mark.parametrize("how", ["status", "deaf", "not a number", "held up"])
def test_what_is_not_sound_for_one_cycle_has_to_settle_again(how: str) -> None:
    rig = Rig(settle=0.04).run(35)
    if how == "held up":
        rig.held_up(105)
    spoilt(rig, how)
    begun = rig.k
    rig.run(begun + 60)
    assert rig.entered(State.JOINING) >= begun + 39


@pytest.mark.parametrize("off, joins", [(0.049, True), (-0.049, True), (0.051, False), (-0.051, False)])
def test_a_robot_joins_within_join_within(off: float, joins: bool) -> None:
    rig = Rig(at=off).run(40)
    assert (rig.guard.state is State.JOINING) == joins
    assert joins or (rig.guard.reason.cause, rig.guard.reason.limit) == (Obstacle.POSE, 0.05)
    assert Rig(at=off, join_within=0.0).run(40).guard.state is State.JOINING


@pytest.mark.parametrize("speed, joins", [(0.09, True), (0.11, False)])
def test_a_robot_joins_a_motion_that_is_slow(speed: float, joins: bool) -> None:
    slow = {"begins": -1.0, "acceleration": 1e3}
    stands = np.zeros(2), np.zeros(2)
    start = Rig()
    for _ in range(30):  # the motion passes by where the robot stands
        shifted = way(1e-3 * start.k, speed, **slow)
        shifted[0] = (start.k - 15) * 1e-3 * speed * SPEEDS
        start.cycle(reference(shifted), stands)
    assert (start.guard.state is State.JOINING) == joins
    assert joins or start.guard.reason.cause is Obstacle.SPEED


def test_nothing_is_joined_where_robot_or_motion_are_not_known() -> None:
    assert Rig().run(40, robot=nothing).guard.reason.cause is Obstacle.UNKNOWN_POSE
    bare = Reference(np.zeros((0, 2)), np.zeros((1, 2)))
    assert Rig().run(40, lambda t: bare).guard.reason.cause is Obstacle.NO_POSITIONS
    assert Rig(join_within=0.0).run(40, robot=nothing).guard.state is State.JOINING


@pytest.mark.parametrize("late, joins", [(-4.0, True), (-6.0, False), (45.0, True), (55.0, False)])
def test_a_measurement_may_be_stamped_5_ms_ahead_and_measurement_timeout_ago(
    late: float, joins: bool
) -> None:
    rig = Rig()
    rig.late = late
    assert (rig.run(120).guard.state is not State.WAITING) == joins
    assert joins or rig.guard.reason.cause is Obstacle.UNKNOWN_POSE


def test_no_motion_is_joined_by_where_the_robot_was_before_all_was_sound() -> None:
    """As before brakes have stopped it: it waits for what is measured then."""
    rig = Rig(measurement_timeout=0.5, rejoin=Rejoin.ALWAYS).run(90)
    rig.guard.listening = False
    rig.run(95).run(100, robot=nothing)
    rig.guard.listening = True
    assert rig.run(150, robot=nothing).guard.reason.cause is Obstacle.SETTLING
    assert rig.run(152).guard.state is State.JOINING


@pytest.mark.parametrize(
    "gains, efforts_act, joins", [(GAINS, False, False), (None, False, False), (None, True, True)]
)
def test_no_way_to_a_motion_that_is_not_known_is_gone(gains, efforts_act: bool, joins: bool) -> None:
    """Efforts alone come after a stop; the reference would go to zero from where the robot stands."""
    there, bare = (
        reference(((0.5, 0.5), (0.0, 0.0), (0.0, 0.0))),
        Reference(np.zeros((0, 2)), np.zeros((1, 2))),
    )
    rig = Rig(at=0.5, gains=gains, efforts_act=efforts_act, join_within=0.0, model=heavy).run(
        90, lambda t: there
    )
    rig.run(160, nothing).run(400, nothing).run(440, lambda t: bare)
    if not joins:
        assert rig.guard.state is State.STOPPED and rig.guard.reason.cause is Obstacle.NO_POSITIONS
        assert (rig.rows(400, 440)[:, 0] == 0.5).all()
        return
    rig.run(470, lambda t: bare).run(600, nothing)  # it stops again, with the efforts that came
    assert rig.guard.state is State.STOPPED
    np.testing.assert_allclose(rig.rows(560, 600)[:, 2], 0.0, atol=1e-9)


@pytest.mark.parametrize("off", [0.04, -0.04])
def test_joining_takes_the_reference_from_the_robot_to_the_motion(off: float) -> None:
    there = reference(((0.5, 0.5), (0.0, 0.0), (0.0, 0.0)))
    rig = Rig(at=0.5 + off, fade=0.1).run(200, lambda t: there)
    begin = rig.entered(State.JOINING)
    q, v, _ = (rig.rows(begin, begin + 120) - [[[0.5], [0.0], [0.0]]]).transpose(1, 0, 2)[:, :, 0] / off
    assert q[0] == pytest.approx(1.0, abs=1e-4) and q[50] == pytest.approx(0.5, abs=0.02)
    assert (np.diff(q) <= 1e-12).all() and (np.abs(q[101:]) < 1e-12).all()
    np.testing.assert_allclose(np.diff(q) / 1e-3, 0.5 * (v[1:] + v[:-1]), atol=0.05)


@pytest.mark.parametrize("first, begins", [(FirstEffort.FEEDFORWARD, 6.0), (FirstEffort.ZERO, 0.0)])
def test_joining_takes_the_effort_from_the_first_one_to_that_of_the_motion(first, begins: float) -> None:
    rig = Rig(first_effort=first, fade=0.1).run(200, rests(6.0))
    begin = rig.entered(State.JOINING)
    effort = rig.rows(begin, begin + 120)[:, 2, 0]
    assert effort[0] == pytest.approx(begins, abs=0.01)
    assert effort[50] == pytest.approx(0.5 * (begins + 6.0), abs=0.2)
    assert (effort[101:] == 6.0).all()


@pytest.mark.parametrize("more, first", [(0.9, 0.9), (5.0, 1.0), (-5.0, -1.0)])
def test_the_first_effort_is_near_that_of_the_model(more: float, first: float) -> None:
    """By half of a step, 2 N.m: a feedforward may be false from the start."""
    rig = Rig(model=lambda motion, bent=None: np.array([3.0, -3.0])).run(
        80, rests(np.array([3.0, -3.0]) + more)
    )
    effort = rig.rows(rig.entered(State.JOINING), 80)[:, 2]
    np.testing.assert_allclose(effort[0], np.array([3.0, -3.0]) + first, atol=0.05)
    np.testing.assert_allclose(effort[-1], np.array([3.0, -3.0]) + more, atol=1e-12)


@pytest.mark.parametrize("lead", [0.0, 0.008])
def test_between_two_feedforwards_it_goes_on_by_their_derivatives(lead: float) -> None:
    """Each 20 ms, for a command that acts `lead` later."""

    def feed(t: float) -> Reference | None:
        q, v, a = way(t, 4.0, 4.0)
        ahead = reference((q, v, a), 3.0 + 2.0 * t, 2.0)
        return ahead if round(1e3 * t) % 20 == 0 else None

    rig = Rig(lead=lead, speed_margin=5.0).run(400, feed)
    for k in (230, 299, 333, 399):
        q, v, _ = way(1e-3 * k + lead, 4.0, 4.0)
        command = rig.commands[k]
        np.testing.assert_allclose(command.position, q, atol=1e-9)
        np.testing.assert_allclose(command.velocity, v, atol=1e-9)
        np.testing.assert_allclose(command.effort, 3.0 + 2.0 * (1e-3 * k + lead), atol=1e-9)


# stopping and stopped


@pytest.mark.parametrize("lead", [0.0, 0.01])
def test_a_stream_may_be_silent_for_timeout(lead: float) -> None:
    rig = Rig(timeout=0.03, lead=lead).run(100).run(200, nothing)
    assert (rig.fault, rig.guard.faults[Fault.NO_FEEDFORWARD]) == (Fault.NO_FEEDFORWARD, 1)
    assert near(rig.stopped_at, 100 + 30 - 1e3 * lead)
    assert Rig(timeout=0.03).run(100).run(128, nothing).run(200).fault is None


@pytest.mark.parametrize(
    "stated, speed, lasts, lead",
    [(5.0, 1.0, 300, 4), (0.0, 1.0, 200, 0), (5.0, 0.1, 100, 4), (5.0, 0.4, 120, 0)],
)
def test_a_stop_brakes_within_the_deceleration_and_for_a_tenth_of_a_second_at_least(
    stated, speed, lasts, lead
) -> None:
    limits = replace(LIMITS, velocity=1.5)  # 7.5 rad/s^2 by itself, as it is slow
    rig = Rig(deceleration=stated, limits=limits, lead=1e-3 * lead)
    rig.run(200, moving(speed)).run(320 + lasts, nothing)
    begin, end = rig.entered(State.STOPPING), rig.entered(State.STOPPED)
    assert near(begin, 250 - lead) and abs(end - begin - lasts - lead) <= 2
    q, v = rig.rows(begin, end + 50)[:, :2].transpose(1, 0, 2)
    np.testing.assert_array_equal([q[0], v[0]], rig.rows(begin - 1, begin)[0, :2])  # from the last command
    np.testing.assert_allclose(np.diff(q, axis=0) / 1e-3, 0.5 * (v[1:] + v[:-1]), atol=2e-3)  # without a leap
    hardest = np.abs(np.diff(v, axis=0)).max() / 1e-3
    most = 1.5 * speed / (1e-3 * lasts)
    assert hardest == pytest.approx(most, rel=0.03) and hardest <= 1.03 * (stated or 7.5)
    assert not v[-49:].any() and (np.sign(v[0]) == np.sign(SPEEDS)).all()


def test_no_stop_begins_from_a_huge_acceleration() -> None:
    """One of a single message would take the reference away: seven times the highest speed by the second."""
    rig = Rig().run(110)
    rig.cycle(reference(((0.0, 0.0), (0.0, 0.0), (80.0, 0.0))), rig.robot, Status.NEAR_SINGULARITY)
    rig.cycle(reference(((0.0, 0.0), (0.0, 0.0), (80.0, 0.0))), rig.robot, Status.NEAR_SINGULARITY)
    rig.run(300, nothing)
    assert rig.fault in (Fault.STATUS, Fault.VELOCITY)
    assert np.abs(rig.rows(115, 300)[:, 1]).max() < 0.25  # 14 rad/s^2 for a tenth of a second, as it goes


@pytest.mark.parametrize("cause, kept", [("silence", 1.5), ("status", 1.5)])
def test_the_efforts_of_a_stop_are_those_of_braking_and_of_what_the_model_did_not_explain(
    cause, kept
) -> None:
    rig = Rig(model=heavy, deceleration=5.0, rejoin=Rejoin.NEVER).run(300, weighed(1.0, kept))
    if cause == "status":
        rig.run(302, weighed(1.0, kept), status=Status.NEAR_SINGULARITY)
    rig.run(760, nothing)
    begin, end = rig.entered(State.STOPPING), rig.entered(State.STOPPED)
    q, v, effort = rig.rows(begin - 20, end + 100).transpose(1, 0, 2)
    assert np.abs(np.diff(effort, axis=0)).max() < 0.05  # no step
    expected = heavy(Motion(q, v, np.gradient(v, 1e-3, axis=0))) + kept
    np.testing.assert_allclose(
        effort[125:-2], expected[125:-2], atol=0.02
    )  # once it has let go of the last one
    np.testing.assert_allclose(effort[-1], 4.0 * q[-1] + kept, atol=1e-9)


def test_after_an_effort_that_is_not_believed_those_of_braking_go_on_from_the_mean() -> None:
    """Of what the model has not explained before: the last one is that of the fault."""
    limits = replace(LIMITS, mismatch=4.0)
    false = lambda t: weighed(1.0, 1.5 + 10.0 * (t >= 0.2))(t)  # noqa: E731
    rig = Rig(model=heavy, limits=limits, rejoin=Rejoin.NEVER).run(500, false)
    assert rig.fault is Fault.EFFORT_STEP and near(rig.stopped_at, 200)
    last = rig.commands[499]
    np.testing.assert_allclose(last.effort, 4.0 * last.position + 1.5, atol=0.1)


def test_a_stop_keeps_no_effort_that_may_have_been_what_was_wrong() -> None:
    """Where the robot is too fast, or off, those of the last moment may be why: the mean of before counts."""
    late = lambda t: weighed(0.0, 1.5 + 3.0 * (t >= 0.3))(t)  # noqa: E731
    rig = Rig(model=heavy, limits=replace(LIMITS, mismatch=4.0), rejoin=Rejoin.NEVER, tracking_error=1.0)
    rig.run(300, late).run(400, late, leaving(2.6, 0.3))
    assert rig.fault is Fault.VELOCITY and rig.stopped_at < 360
    rig = Rig(model=heavy, limits=replace(LIMITS, mismatch=4.0), rejoin=Rejoin.NEVER, speed_margin=9.0)
    rig.run(300, late).run(700, late, lambda t: (np.array([min(4.0 * (t - 0.3), 0.15), 0.0]), None))
    assert rig.fault is Fault.TRACKING and rig.stopped_at < 345
    np.testing.assert_allclose(rig.commands[699].effort, 1.5, atol=0.3)


def test_an_effort_that_was_carried_on_for_long_counts_as_it_was() -> None:
    """50 ms by a rate of 20 N.m/s, which the model does not know of, are 1 N.m."""
    rig = Rig(model=heavy, rejoin=Rejoin.NEVER).run(200, rests(1.5, 20.0)).run(500, nothing)
    np.testing.assert_allclose(rig.commands[499].effort, 1.5, atol=1e-9)


def test_at_the_end_it_holds() -> None:
    rig = Rig(end=End.HOLD).run(100, rests(6.0)).run(700, nothing)
    assert rig.guard.state is State.STOPPED and not rig.guard.ended
    assert (rig.rows(300, 700)[:, 2] == 6.0).all() and len(rig.rows(300, 700)) == 400


def test_at_the_end_efforts_fade_to_zero_after_release_after() -> None:
    rig = Rig(end=End.ZERO, release_after=0.2, fade=0.1, model=lambda motion, bent=None: np.full(2, 6.0))
    rig.run(100, rests(6.0)).run(600, nothing)
    stands = rig.entered(State.STOPPED)
    effort = rig.rows(stands, 600)[:, 2, 0]
    assert (effort[:200] == 6.0).all() and effort[202] < 6.0
    assert effort[250] == pytest.approx(3.0, abs=0.3) and effort[295] > 0.0 and not effort[302:].any()
    assert not rig.guard.ended  # whoever commands it may go on


def test_without_a_model_efforts_fade_to_zero_as_soon_as_a_stop_begins() -> None:
    rig = (
        Rig(end=End.ZERO, fade=0.1, release_after=0.2, shortest_stop=0.15)
        .run(100, rests(6.0))
        .run(320, nothing)
    )
    begin = rig.entered(State.STOPPING)
    effort = rig.rows(begin, 320)[:, 2, 0]
    assert effort[50] == pytest.approx(3.0, abs=0.3) and not effort[102:].any()


@pytest.mark.parametrize(
    "gains, end", [(GAINS, End.HOLD), (GAINS, End.ZERO), (None, End.ZERO), (None, End.HOLD)]
)
def test_after_shutdown_commands_end_once_it_stands_and_efforts_are_gone_where_they_are_to(
    gains, end
) -> None:
    rig = Rig(gains=gains, end=end, fade=0.06, model=lambda motion, bent=None: np.full(2, 6.0))
    rig.run(150, rests(6.0))
    rig.guard.stop()
    rig.run(320, rests(6.0))
    begin, stands = rig.entered(State.STOPPING), rig.entered(State.STOPPED)
    assert rig.fault is Fault.SHUTDOWN and begin == 150 and near(stands, 250) and rig.guard.ended
    last = max(k for k, command in rig.commands.items() if command is not None)
    effort = rig.commands[last].effort
    if end is End.ZERO:
        assert near(last, stands + 59) and np.abs(effort).max() < 0.1
    else:
        assert near(last, stands - 1) and effort == pytest.approx(6.0)
    assert not rig.guard.start() and rig.run(400).guard.ended


@pytest.mark.parametrize(
    "told, end, modelled",
    [
        *((told, *end) for told in (200, 300, 500) for end in ((End.HOLD, True), (End.ZERO, True))),
        *((told, End.ZERO, False) for told in (200, 300)),  # and have gone to zero when it stands
        (630, End.ZERO, True),
    ],
)
def test_it_is_known_how_long_a_stop_takes(told: int, end: End, modelled: bool) -> None:
    """Under way, stopping, when it stands, and as efforts fade."""
    model = (lambda motion, bent=None: np.full(2, 6.0)) if modelled else None
    rig = Rig(end=end, fade=0.2, deceleration=0.25, release_after=0.1 if told > 600 else 9.0, model=model)
    assert rig.guard.stop_takes == 0.0
    rig.run(200, moving(0.035, 6.0)).run(told, nothing)
    takes, stands = rig.guard.stop_takes, rig.guard.state is State.STOPPED
    rig.guard.stop()
    rig.run(told + round(1e3 * takes) + 20, nothing)
    last = max(k for k, command in rig.commands.items() if command is not None)
    assert abs(last - (told - 1 + 1e3 * takes)) <= 2.0 and stands == (told > 460)
    assert rig.guard.ended and rig.guard.stop_takes == 0.0


@pytest.mark.parametrize("lead", [0.0, 0.005])
@pytest.mark.parametrize("told", [450, 800], ids=["in the stop", "stands"])
def test_efforts_go_to_zero_from_where_they_were_also_at_a_slow_rate(told: int, lead: float) -> None:
    rig = Rig(end=End.ZERO, lead=lead, model=lambda motion, bent=None: np.full(2, 6.0))
    while rig.k < 1200:
        rig.cycle(rests(6.0)(0.0) if rig.k < 400 else None, rig.robot)
        rig.held_up(10)
        if rig.k >= told:
            rig.guard.stop()
    efforts = np.array([command.effort[0] for command in rig.commands.values() if command is not None])
    s = np.linspace(0.0, 0.8, 5)
    fading = 6.0 * (1.0 - 10.0 * s**3 + 15.0 * s**4 - 6.0 * s**5)
    assert rig.guard.ended
    np.testing.assert_allclose(efforts[efforts > 0.0][-6:], [6.0, *fading], rtol=1e-6)


def test_after_shutdown_nobody_waits_to_release_a_robot_that_stands() -> None:
    rig = Rig(end=End.ZERO, release_after=60.0, fade=0.1, model=lambda motion, bent=None: np.full(2, 6.0))
    rig.run(100, rests(6.0)).run(600, nothing)
    assert rig.guard.state is State.STOPPED and (rig.commands[599].effort == 6.0).all()
    rig.guard.stop()
    rig.run(750, nothing)
    assert rig.guard.ended and max(k for k, command in rig.commands.items() if command is not None) < 702


@pytest.mark.parametrize("seen", [False, True])
def test_a_stop_before_it_has_joined_keeps_efforts_whose_motion_is_not_known(seen: bool) -> None:
    """Efforts alone, as of a URDF without drives: wherever the robot stands, it is held there."""
    stands = np.array([1.5, -0.5])
    weight = lambda motion, bent=None: 6.0 * np.cos(motion.position)  # noqa: E731, not that of where it stands
    holds = 6.0 * np.cos(stands)
    rig = Rig(join_within=0.0, fade=0.5, efforts_act=True, model=weight)
    measured = (lambda t: (stands + 1e-7 * (round(1e3 * t) % 2), np.zeros(2))) if seen else nothing
    rig.robot = None
    rig.run(200, lambda t: Reference(np.zeros((0, 2)), holds[None]), measured)
    rig.run(1200, nothing, measured)
    joined = rig.entered(State.JOINING)
    assert joined < rig.entered(State.STOPPING) < joined + 500 and rig.guard.state is State.STOPPED
    efforts = rig.rows(joined, 1200)[:, 2]
    np.testing.assert_allclose(efforts[-1], holds, rtol=1e-9)
    assert (np.abs(efforts) <= np.abs(holds) + 1e-9).all()


@pytest.mark.parametrize("end", ["let go", "nobody listens"])
def test_signals_that_disagree_after_the_end_do_not_keep_a_robot_from_joining_again(end: str) -> None:
    """As of one that falls into its brakes, or is pushed by hand."""
    rig = Rig(gains=GAINS).run(150)
    if end == "let go":
        rig.run(320, robot=lambda t: (np.full(2, 2.5 * max(t - 0.15, 0.0)), np.full(2, 2.5)))
        assert rig.guard.ended
    else:
        rig.guard.listening = False
    stands, begins = rig.robot[0], rig.k
    rig.run(begins + 60, robot=lambda t: (stands + 1e-6 * t, np.full(2, 1.0)))
    assert rig.guard.state is (State.STOPPED if end == "let go" else State.WAITING)
    rig.guard.listening = True
    for until in (begins + 400, begins + 500):
        rig.run(until, lambda t: reference((stands, (0.0, 0.0), (0.0, 0.0))), lambda t: (stands, np.zeros(2)))
        rig.guard.start()
    assert rig.guard.state is State.FOLLOWING, rig.guard.reason


@pytest.mark.parametrize("cause, joins", [("silence", True), ("status", False)])
def test_an_interrupted_stream_is_taken_up_while_it_brakes_and_no_other(cause: str, joins: bool) -> None:
    rig = Rig(rejoin=Rejoin.ALWAYS, deceleration=1.0).run(300, moving(1.0))
    if cause == "silence":
        rig.run(360, nothing)
    else:
        rig.run(302, moving(1.0), status=Status.NEAR_SINGULARITY)
    begin = rig.entered(State.STOPPING)
    for _ in range(60):  # the motion goes where the robot brakes to
        q, v = rig.robot
        slows = (v - rig.commands[rig.k - 2].velocity) / 1e-3
        rig.cycle(reference((q + 1e-3 * v, v + 1e-3 * slows, slows)), rig.robot)
    assert [after for k, after, _ in rig.changes if k > begin][:1] == ([State.JOINING] if joins else [])


# one check after the other


@pytest.mark.parametrize("follows", [True, False])
def test_nobody_asks_the_model_for_the_efforts_of_a_motion_that_has_jumped(follows: bool) -> None:
    """A robot with loops would look for a pose there for longer than drives wait for a command."""
    asked: list[float] = []

    def model(motion: Motion, bent: Motion | None = None) -> Array:
        asked.append(float(np.abs(motion.position).max()))
        return heavy(motion)

    rig = Rig(model=model, limits=replace(LIMITS, mismatch=3.0)).run(200 if follows else 5, weighed(1.0))
    assert rig.guard.state.follows is follows and max(asked) < 1.0
    rig.cycle(reference(((3.0, 3.0), (0.0, 0.0), (0.0, 0.0))))
    assert max(asked) < 1.0 and (rig.fault is Fault.REFERENCE_STEP) is follows


@pytest.mark.parametrize("rows, stops", [(0, True), (1, True), (2, False), (3, False)])
def test_a_motion_that_is_left_out_is_a_step_to_zero(rows: int, stops: bool) -> None:
    """As it is followed so."""
    rig = Rig(tracking_error=9.0).run(200, moving(1.0))
    rig.run(230, lambda t: Reference(way(t, 1.0)[:rows], np.zeros((1, 2))))
    assert (rig.fault is Fault.REFERENCE_STEP) == stops and (rig.guard.state is State.FOLLOWING) != stops
    assert not stops or rig.stopped_at == 200


def test_a_motion_that_comes_where_none_was_known_is_a_step_from_zero() -> None:
    rig = Rig(join_within=0.0, tracking_error=9.0, efforts_act=True).run(
        100, lambda t: Reference(np.zeros((0, 2)), np.zeros((1, 2)))
    )
    assert rig.guard.state is State.FOLLOWING
    rig.run(101, lambda t: reference(((0.2, 0.0), (0.0, 0.0), (0.0, 0.0))))
    assert rig.fault is Fault.REFERENCE_STEP


@pytest.mark.parametrize(
    "status, stops",
    [
        (Status.EFFORT_LIMIT_EXCEEDED, True),
        (Status.EFFORT_LIMIT_EXCEEDED | Status.EFFORT_CLAMPED, False),  # so it was asked for
        (Status.VELOCITY_LIMIT_EXCEEDED | Status.EFFORT_CLAMPED, True),
        (Status.POSITION_LIMIT_EXCEEDED, True),
        (Status.NEAR_SINGULARITY, True),
        (Status.EFFORT_CLAMPED, False),
    ],
)
def test_a_feedforward_stops_by_the_bits_that_it_is_to(status: Status, stops: bool) -> None:
    rig = Rig().run(100).run(110, status=status)
    assert (rig.fault is Fault.STATUS) == stops and (rig.guard.state is State.FOLLOWING) != stops


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("share, stops", [(1.09, False), (1.11, True)])
def test_no_motion_is_followed_beyond_the_margin(sign: float, share: float, stops: bool) -> None:
    bare = lambda t: Reference(sign * way(t, 2.0 * share, 10.0)[:2], np.zeros((1, 2)))  # noqa: E731
    rig = Rig(tracking_error=1.0).run(400, bare)
    assert (rig.fault is Fault.VELOCITY) == stops
    assert not stops or rig.changes[-1][2].joint == "a"


@pytest.mark.parametrize("share, stops", [(1.08, False), (1.12, True)])
def test_no_motion_is_followed_that_is_about_to_be_beyond_it(share: float, stops: bool) -> None:
    """By its acceleration, 0.02 s from now."""
    speed = 2.0 * share - 0.02 * 10.0  # no faster than this
    rig = Rig(tracking_error=1.0).run(100 + int(100 * speed) - 1, moving(4.0, acceleration=10.0))
    assert (rig.fault is Fault.VELOCITY) == stops


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("share, stops", [(1.07, False), (1.13, True)])
def test_no_robot_is_followed_beyond_the_margin(sign: float, share: float, stops: bool) -> None:
    """The reference stands still; positions and velocities of the robot agree."""
    rig = Rig(tracking_error=10.0).run(220, robot=leaving(sign * 2.0 * share, 0.1))
    assert (rig.fault is Fault.VELOCITY) == stops


def test_one_velocity_that_neither_positions_nor_reference_confirm_is_not_fed_back_nor_stops() -> None:
    rig = Rig(gains=GAINS).run(120)
    before = rig.commands[119].effort
    rig.cycle(reference(), (rig.robot[0], np.array([1.9, -1.9])))
    pulled = rig.commands[120].effort - before
    np.testing.assert_allclose(
        pulled, [-2.0, 2.0], atol=1e-9
    )  # 10 N.m s by a tenth of 2.2 rad/s, cut to a step
    assert np.abs(pulled).max() <= 10.0 * 0.1 * 2.2
    assert rig.run(200).fault is None


@pytest.mark.parametrize("off, stops", [(0.09, False), (-0.09, False), (0.11, True), (-0.11, True)])
def test_a_robot_may_be_off_by_the_tracking_error(off: float, stops: bool) -> None:
    away = lambda t: (np.array([0.0, off * min(max(t - 0.1, 0.0) / 0.15, 1.0)]), None)  # noqa: E731
    rig = Rig().run(300, robot=away)
    assert (rig.fault is Fault.TRACKING) == stops
    assert not stops or (rig.changes[-1][2].joint == "b" or rig.changes[2][2].joint == "b")


def test_what_is_off_counts_where_the_reference_was_when_that_was_measured() -> None:
    rig = Rig(tracking_error=0.01, latency=1.0)
    behind = lambda t: (way(t - 0.02, 1.0)[0], None)  # noqa: E731
    rig.late = 20.0
    assert rig.run(400, moving(1.0), behind).fault is None  # 20 mrad behind, as 20 ms ago
    rig.late = 0.0
    assert rig.run(460, moving(1.0), behind).fault is Fault.TRACKING


@pytest.mark.parametrize("bursts, stops", [((90,), False), ((90, 90), False), ((110,), True)])
def test_efforts_may_be_at_their_limits_for_saturation_time(bursts: tuple[int, ...], stops: bool) -> None:
    rig = Rig(limits=replace(LIMITS, effort=5.0)).run(100, rests(4.9))
    for lasts in bursts:
        rig.run(rig.k + lasts, rests(5.1)).run(rig.k + 10, rests(4.9))
    assert (rig.fault is Fault.SATURATION) == stops
    assert max(np.abs(rig.rows(100, rig.k)[:, 2]).ravel()) == 5.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("ramps, stops", [((3,), False), ((3, 3), False), ((4,), True)])
def test_the_steps_of_five_commands_in_a_row_may_be_cut(
    sign: float, ramps: tuple[int, ...], stops: bool
) -> None:
    """0.8 N.m a millisecond for 3 ms are cut to 0.5 in four commands, those of 4 ms in six."""
    limits = replace(LIMITS, effort_rate=500.0)
    rig, level = Rig(limits=limits, effort_step=0.5).run(100), 0.0
    for lasts in ramps:
        begin = rig.k
        for k in range(lasts):
            rig.cycle(reference(((0.0, 0.0),) * 3, sign * (level + 0.8 * k), sign * 800.0), rig.robot)
        level += 0.8 * lasts
        rig.run(begin + 30, rests(sign * level))
    assert (rig.fault is Fault.EFFORT_STEP) == stops
    assert np.abs(np.diff(rig.rows(90, rig.k)[:, 2], axis=0)).max() <= 0.5 + 1e-9


@pytest.mark.parametrize("effort", [20.0, 23.0])
def test_steps_that_are_cut_while_efforts_fade_in_count_not(effort: float) -> None:
    """Up to 0.9 N.m a millisecond are wanted of 0.5; of 23 N.m after the fade as well, three times."""
    limits = replace(LIMITS, effort_rate=500.0)
    rig = Rig(limits=limits, effort_step=0.5, first_effort=FirstEffort.ZERO).run(150, rests(effort))
    assert rig.guard.state is State.FOLLOWING and rig.commands[149].effort[0] == effort


def test_the_step_of_a_command_that_comes_late_is_no_larger() -> None:
    """Drives hold the last effort meanwhile; 20 ms give no more than the usual one does."""
    for late in (2, 20):
        rig = Rig(limits=replace(LIMITS, effort_rate=500.0), effort_step=0.5).run(100)
        for k, effort in ((100, 0.0), (101, 0.8), (101 + late, 2.4)):
            rig.held_up(k + 1 - rig.k)
            rig.cycle(reference(((0.0, 0.0),) * 3, effort, 1600.0 / late if k > 100 else 800.0), rig.robot)
        assert rig.commands[101 + late].effort[0] == pytest.approx(1.0) and rig.commands[101].effort[0] == 0.5


@pytest.mark.parametrize("step", [3.0, -3.0])
def test_an_effort_that_steps_is_gone_to_over_fade(step: float) -> None:
    """As when a payload is set: from the old effort to the new one, and never away from it."""
    rig = Rig(fade=0.1).run(200, rests(6.0)).run(400, rests(6.0 + step))
    share = (rig.rows(199, 400)[:, 2, 0] - 6.0) / step
    assert share[0] == 0.0 and share[51] == pytest.approx(0.5, abs=0.03) and (share[102:] == 1.0).all()
    assert (np.diff(share) >= -1e-12).all()
    assert np.diff(share).max() <= 1.875 / 100 * 1.02  # the steepest of the fade
    assert rig.fault is None


@pytest.mark.parametrize("every, stops", [(20, True), (60, False)])
def test_efforts_that_jump_again_and_again_stop_it(every: int, stops: bool) -> None:
    """Four times within `fade` of each other, as of two publishers; by more time they are settings."""
    rig = Rig(fade=0.05).run(100)
    for k in range(5):
        rig.run(rig.k + every, rests(3.0 * (k % 2)))
    assert (rig.fault is Fault.EFFORT_STEP) == stops
    assert not stops or near(rig.stopped_at, 100 + 4 * every)


def test_steps_of_efforts_that_others_explain_count_not() -> None:
    """Steps below the one that is allowed, and those that their own derivatives say."""
    rig = Rig(fade=0.05).run(100)
    for k in range(12):
        rig.run(rig.k + 5, rests(1.9 * (k % 2)))
    assert rig.fault is None and rig.commands[rig.k - 1].effort[0] == pytest.approx(1.9)


# motion against efforts


class Says:
    """An observer that says what it is told: what acts besides; 1 N.m is allowed. Its drives are rigid."""

    n, stiffness, link_efforts = 2, np.full(2, np.inf), staticmethod(heavy)

    def __init__(self) -> None:
        self.value = 0.0

    def start(self, sample: Array) -> Array:
        return np.array([[self.value, 0.0, 1.0 / THRESHOLD, 1.0 / THRESHOLD]])

    def step(self, sample: Array, elapsed: float, row: Array) -> Array:
        return self.start(sample)


def disagreeing(value: float, first: int = 100, gains=GAINS, **config) -> tuple[Rig, Says]:
    """A rig that follows until a millisecond, and an observer that says from then on what it is told."""
    says = Says()
    rig = Rig(gains=gains, observer=says, model=lambda motion, bent=None: np.full(2, 6.0), **config)
    rig.run(first, rests(6.0))
    says.value = value
    return rig, says


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("value, after", [(0.95, None), (1.05, 5), (3.9, 5), (4.1, 3)])
def test_efforts_and_motion_may_disagree_by_what_is_allowed_for_a_while(sign, value, after) -> None:
    """More than 4 ms by more than that, more than 2 ms by four times as much."""
    rig, _ = disagreeing(sign * value)
    rig.run(120, rests(6.0))
    assert rig.fault is (None if after is None else Fault.MISMATCH)
    if after is not None:
        assert near(rig.stopped_at, 100 + after) and rig.changes[2][2].joint == "a"


def test_a_disagreement_that_is_over_counts_not() -> None:
    rig, says = disagreeing(0.0)
    for k in range(60):
        says.value = 2.0 * (k % 5 < 3)
        rig.run(rig.k + 1, rests(6.0))
    assert rig.fault is None


@pytest.mark.parametrize("value, after", [(1.7, 15), (1.8, 3), (0.95, None)])
def test_motors_let_go_in_a_stop_that_is_not_carried_out(value: float, after: int | None) -> None:
    """At once by 1.75 times what is allowed for more than 2 ms; by less 15 ms after it has begun."""
    rig, says = disagreeing(0.0)
    rig.guard.stop()
    rig.run(101, rests(6.0))
    says.value = value
    rig.run(160, rests(6.0))
    tripped = [k for k, _, why in rig.changes if why.tripped]
    if after is None:
        assert not tripped and rig.commands[159] is not None
        return
    assert len(tripped) == 1 and near(tripped[0], 100 + after)
    assert not rig.commands[tripped[0]].effort.any() and rig.commands[tripped[0] - 1].effort[0] > 5.0
    assert rig.commands[tripped[0] + 1] is None and rig.guard.ended


def test_no_stop_for_what_brakes_still_carry_while_efforts_fade_in() -> None:
    """With `first_effort: zero` something else bears the weight; it does not once they have come."""
    for first, early in ((FirstEffort.ZERO, False), (FirstEffort.FEEDFORWARD, True)):
        says = Says()
        rig = Rig(gains=GAINS, observer=says, first_effort=first, fade=0.1)
        says.value = 2.0
        rig.run(300, rests(6.0))
        joined = rig.entered(State.JOINING)
        assert rig.fault is Fault.MISMATCH
        assert (rig.stopped_at < joined + 20) == early and (rig.stopped_at > joined + 50) != early


@pytest.mark.parametrize("first", FirstEffort)
def test_nothing_else_carries_an_effort_that_steps(first: FirstEffort) -> None:
    rig, _ = disagreeing(2.0, first_effort=first)
    assert rig.run(115, rests(9.0)).fault is Fault.MISMATCH and near(rig.stopped_at, 105)


def test_efforts_are_held_against_the_motion_only_where_nothing_else_acts() -> None:
    says = Says()
    says.value = 100.0
    assert Rig(observer=says).run(200, rests(6.0)).fault is None  # drives with a loop of their own
    assert Rig(observer=says, efforts_act=True).run(200, rests(6.0)).fault is Fault.MISMATCH


@pytest.mark.parametrize("share, lets_go", [(1.02, "late"), (1.08, "at once"), (0.95, None)])
def test_motors_let_go_of_a_robot_that_is_too_fast_in_a_stop(share: float, lets_go: str | None) -> None:
    """By 5 % more than the margin at any time of it; by the margin alone 0.1 s after it began."""
    rig = Rig(tracking_error=100.0, shortest_stop=0.2).run(100)
    rig.guard.stop()
    rig.run(260, robot=leaving(2.2 * share, 0.1))
    tripped = [k for k, _, why in rig.changes if why.tripped]
    if lets_go is None:
        assert not tripped
        return
    assert len(tripped) == 1 and (150 < tripped[0] < 190 if lets_go == "at once" else near(tripped[0], 200))
    assert rig.changes[-1][2].fault is Fault.VELOCITY and rig.commands[tripped[0] + 1] is None


def false(how: str) -> Measured:
    """What is added to position and velocity of the first of two joints, so that it cannot be seen."""
    lie = {"velocity": (0.0, 1.0), "jump": (0.5, 0.0), "no number": (np.nan, 0.0), "huge": (0.0, 1e30)}[how]
    return tuple(np.array([one, 0.0]) for one in lie)


@pytest.mark.parametrize(
    "how, share, moves, lets_go",
    some(
        [
            (how, *row)
            for how in ("velocity", "jump", "no number", "huge")
            for row in ((1.08, 1.0, True), (0.95, 1.0, False), (1.3, 0.5, False))
        ],
        *((how, 1.08, 1.0, True) for how in ("velocity", "jump", "no number", "huge")),
        *(("velocity", 0.95, 1.0, False), ("no number", 1.3, 0.5, False)),
    ),
)
def test_motors_let_go_where_a_joint_is_too_fast_and_another_one_cannot_be_seen(
    how: str, share: float, moves: float, lets_go: bool
) -> None:
    """By its positions and by its velocity, as no signal is believed alone; whatever the other one says."""
    rig = Rig(tracking_error=100.0, shortest_stop=0.3, gains=GAINS, rejoin=Rejoin.NEVER).run(100)
    fast, lie = leaving(2.2 * share, 0.1, 1), false(how)

    def robot(t: float) -> Measured:
        position, velocity = fast(t)
        return position * moves + lie[0], velocity + lie[1]

    rig.run(190, robot=robot)
    tripped = [why for _, _, why in rig.changes if why.tripped]
    assert len(tripped) == lets_go and rig.fault in (
        *(Fault.CONTRADICTION, Fault.FROZEN, Fault.NO_MEASUREMENT),
        *[Fault.VELOCITY] * lets_go,
    )
    assert all((why.fault, why.joint) == (Fault.VELOCITY, "b") for why in tripped)


@pytest.mark.parametrize("gains", [GAINS, None])
@pytest.mark.parametrize(
    "how, speed, moves, says",
    some(
        [
            (how, speed, *shares)
            for how in ("jump", "no number", "huge")
            for speed in (2.6, -2.6, 2.1)
            for shares in ((1.0, 1.0), (0.3, 1.0), (1.0, 0.3))
        ],
        *(("jump", 2.6, 1.0, 1.0), ("no number", -2.6, 1.0, 1.0), ("huge", 2.6, 1.0, 1.0)),
        *(("huge", 2.1, 1.0, 1.0), ("jump", 2.6, 0.3, 1.0), ("no number", 2.6, 1.0, 0.3)),
    ),
)
def test_a_joint_that_is_too_fast_is_seen_at_once_beside_one_that_is_false(
    gains, how: str, speed: float, moves: float, says: float
) -> None:
    """Within the 30 or 50 ms in which a motion goes on although measurements are rejected."""
    fast, lie, since = leaving(speed, 0.1, 1), false(how), leaving(speed, 0.1, 1)(0.13)[0]

    def robot(t: float) -> Measured:
        position, velocity = fast(t)
        return since + moves * (position - since) + lie[0], says * velocity + lie[1]

    rig = Rig(tracking_error=100.0, gains=gains).run(130, robot=fast).run(158, robot=robot)
    assert (rig.fault is Fault.VELOCITY) == (abs(speed) > 2.2 and moves == says)
    assert rig.fault is None or (rig.changes[2][2].joint == "b" and near(rig.stopped_at, 144))


def test_a_measurement_with_a_wrong_stamp_says_nothing_of_any_joint() -> None:
    rig = Rig(tracking_error=100.0, gains=GAINS, rejoin=Rejoin.NEVER).run(100)
    rig.late = 60.0
    rig.run(190, robot=leaving(2.2 * 1.3, 0.1, 1))
    assert rig.fault is Fault.NO_MEASUREMENT and not any(why.tripped for _, _, why in rig.changes)


@pytest.mark.parametrize("share, lets_go", [(0.08, False), (0.12, True)])
def test_motors_let_go_of_a_robot_that_falls_as_its_efforts_fade(share: float, lets_go: bool) -> None:
    """A tenth of the highest speed; until they fade, 200 ms after it stands, it may be faster."""
    rig = Rig(end=End.ZERO, release_after=0.2, fade=0.2, model=lambda motion, bent=None: np.full(2, 6.0))
    rig.run(300, rests(6.0)).run(420, nothing)

    rig.run(700, nothing, leaving(-2.2 * share, 0.42, 1))
    tripped = [k for k, _, why in rig.changes if why.tripped]
    assert len(tripped) == lets_go and (not tripped or near(tripped[0], 651))


# time


@pytest.mark.parametrize("late, stops", [(99, False), (101, True)])
def test_nothing_more_is_commanded_after_a_hold_up_as_long_as_drives_wait(late: int, stops: bool) -> None:
    rig = Rig(timeout=0.5, measurement_timeout=0.5).run(100).held_up(late).run(300)
    assert (rig.fault is Fault.HELD_UP) == stops and rig.guard.ended == stops
    assert (rig.commands[299] is None) == stops
    if stops:
        assert [after for _, after, _ in rig.changes][2:] == [State.STOPPED] and rig.guard.start()
        assert rig.run(400).commands[399] is not None and not rig.guard.ended


@pytest.mark.parametrize(
    "since, rejoin",
    [
        *(
            (since, Rejoin.GAP)
            for since in ("nothing", "held up in the stop", "held up", "blind in the stop")
        ),
        *(("blind", rejoin) for rejoin in (Rejoin.GAP, Rejoin.ALWAYS)),
        ("held up in the stop", Rejoin.ALWAYS),
    ],
)
def test_an_interrupted_stream_is_no_reason_to_join_after_what_has_ended_commands(since, rejoin) -> None:
    """Drives have braked or let go, or nobody has seen the robot: someone has to look at it first."""
    rig = Rig(gains=GAINS if "blind" in since else None, rejoin=rejoin).run(100)
    rig.run(170 if "in the stop" in since else 270, nothing)
    assert rig.fault is Fault.NO_FEEDFORWARD
    assert (rig.guard.state is State.STOPPING) == ("in the stop" in since)
    if "held up" in since:
        rig.held_up(101)
    if "blind" in since:
        rig.run(rig.k + 60, nothing, nothing)
    rig.run(rig.k + 180)
    by_itself = since == "nothing" or rejoin is Rejoin.ALWAYS
    assert rig.guard.state is (State.FOLLOWING if by_itself else State.STOPPED)
    if not by_itself:
        assert rig.guard.reason.cause is Obstacle.NOT_ASKED and rig.guard.start()
        assert rig.run(rig.k + 80).guard.state is State.FOLLOWING


def test_a_hold_up_in_a_stop_ends_it_as_well() -> None:
    rig = Rig(deceleration=1.0).run(300, moving(1.0))
    rig.guard.stop()
    rig.run(310, moving(1.0)).held_up(101).run(420)
    assert rig.guard.ended and rig.commands[419] is None


@pytest.mark.parametrize("by, stops", [(4, False), (-4, False), (6, True), (-6, True), (60_000, True)])
def test_a_clock_may_go_astray_by_its_tolerance(by: int, stops: bool) -> None:
    rig = Rig(gains=GAINS).run(80, elapsed=1e-3)
    rig.clock = by * MS
    rig.run(200, elapsed=1e-3)
    assert (rig.fault is Fault.CLOCK) == stops
    assert not rig.guard.ended  # measurements still say where it is
    assert rig.guard.start() == stops and rig.run(290, elapsed=1e-3).guard.state is State.FOLLOWING


def test_a_clock_that_wavers_moves_neither_motion_nor_efforts() -> None:
    """By 4 ms: what is commanded goes on as time does, by a clock that cannot be set."""
    still = lambda t: reference(way(t, 1.0), 10.0 * t, 10.0)  # noqa: E731
    rig = Rig().run(300, still, elapsed=1e-3)
    rig.clock = 4 * MS
    # a message of 300 ms is stamped with the clock, by 4 ms too late; what it says is of that instant
    rig.run(340, lambda t: still(t + 0.004), elapsed=1e-3)
    q, v, effort = rig.rows(250, 340).transpose(1, 0, 2)[:, :, 0]
    assert rig.fault is None
    assert np.abs(np.diff(q) - 1e-3).max() < 2e-4 and np.abs(np.diff(effort) - 1e-2).max() < 2e-3


@pytest.mark.parametrize("apart, stops", [(750, True), (1500, False)])
def test_the_clock_is_compared_with_time_over_a_second(apart: int, stops: bool) -> None:
    rig = Rig().run(100, elapsed=1e-3)
    for _ in range(2):
        rig.clock += 4 * MS
        for _ in range(apart // 10):
            rig.held_up(10).cycle(reference(), rig.robot, elapsed=0.01)
    assert (rig.fault is Fault.CLOCK) == stops


@pytest.mark.parametrize("late, stops", [(20, False), (40, True)])
def test_drives_with_a_loop_of_their_own_are_led_back_after_a_hold_up(late: int, stops: bool) -> None:
    """They have stayed; beyond `join_within` they would leap, so it stops. 2 rad/s by 20 or 40 ms."""
    more = {"fade": 0.2, "tracking_error": 1.0, "rejoin": Rejoin.NEVER, "speed_margin": 5.0}
    rigs = [Rig(**more, efforts_act=acts).run(200, moving(2.0)) for acts in (False, True)]
    for rig in rigs:
        rig.run(250, moving(2.0), nothing).held_up(late).run(253 + late, moving(2.0), nothing)
    led, acts = rigs
    assert (led.fault is Fault.REFERENCE_STEP) == stops and acts.fault is None
    there = way(1e-3 * (252 + late), 2.0)[0]
    np.testing.assert_allclose(acts.commands[252 + late].position, there, atol=1e-9)  # a leap hurts none
    led.run(280 + late, moving(2.0), nothing)
    assert np.abs(np.diff(led.rows(240, 280 + late)[:, 0, 0])).max() < 4.0 * 2e-3  # four cycles of it at most
    if not stops:
        end = led.run(500 + late, moving(2.0), nothing).k - 1
        np.testing.assert_allclose(led.commands[end].position, way(1e-3 * end, 2.0)[0], atol=1e-9)


def test_a_hold_up_shortens_no_fade() -> None:
    """The guard's own time goes on by no more than four usual cycles."""
    rig = Rig(fade=0.2, timeout=0.2, measurement_timeout=0.2).run(50)
    joined = rig.entered(State.JOINING)
    rig.held_up(80).run(350)
    assert near(rig.entered(State.FOLLOWING), joined + 200 + 80 - 4)


# measurements


def test_feedback_pulls_towards_the_reference() -> None:
    rig = Rig(gains=GAINS).run(100, rests(6.0))
    off = lambda t: (np.array([0.01, -0.02]) * min((t - 0.1) / 0.1, 1.0), None)  # noqa: E731
    rig.run(300, rests(6.0), off)
    np.testing.assert_allclose(rig.commands[299].effort, 6.0 - 100.0 * np.array([0.01, -0.02]), atol=1e-3)
    rig.cycle(reference(((0.0, 0.0),) * 3, 6.0), (np.array([0.01, -0.02]), np.array([0.05, 0.0])))
    change = rig.commands[300].effort - rig.commands[299].effort
    np.testing.assert_allclose(change, [-0.5, 0.0], atol=1e-3)


@pytest.mark.parametrize("late, stops", [(49, False), (52, True)])
def test_feedback_needs_measurements_no_older_than_their_timeout(late: int, stops: bool) -> None:
    rig = Rig(gains=GAINS).run(100).run(100 + late, robot=nothing).run(130 + late)
    assert (rig.fault is Fault.NO_MEASUREMENT) == stops
    assert Rig().run(100).run(300, robot=nothing).fault is None  # and commands without it go on


@pytest.mark.parametrize("gains, stops", [(GAINS, True), (None, False)])
def test_measurements_that_come_again_after_a_gap_are_not_fed_back(gains, stops: bool) -> None:
    """The process was held up, so nobody saw that none came: the robot may be anywhere by now."""
    rig = Rig(gains=gains, efforts_act=True, timeout=0.5).run(150).held_up(70)
    elsewhere = np.array([0.04, 0.0]), np.zeros(2)
    rig.cycle(reference(), elsewhere)
    assert (rig.fault is Fault.NO_MEASUREMENT) == stops
    assert np.abs(rig.commands[rig.k - 1].effort).max() < 0.5  # not 4 N.m by the gains
    assert stops or rig.run(rig.k + 50, robot=lambda t: elsewhere).guard.state is State.FOLLOWING


@pytest.mark.parametrize("age, stops", [(4.5, False), (5.5, True)])
def test_feedback_needs_measurements_that_are_not_late(age: float, stops: bool) -> None:
    rig = Rig(gains=GAINS)
    rig.run(100)
    rig.late = age
    rig.run(420)
    assert (rig.fault is Fault.LATE_MEASUREMENTS) == stops
    if stops:
        slow = Rig(measured=True)
        slow.late = age
        assert slow.run(200).fault is None


@pytest.mark.parametrize("gains", [GAINS, None])
@pytest.mark.parametrize("lasts, stops", [(26, False), (34, True)])
def test_positions_that_jump_are_no_measurements_for_a_while(gains, lasts: int, stops: bool) -> None:
    """30 ms; one that jumps, and then none, is an end of the measurements."""
    far = np.array([0.5, 0.0]), np.zeros(2)
    rig = Rig(gains=gains).run(100).run(100 + lasts, robot=lambda t: far).run(170 + lasts)
    assert (rig.fault is Fault.CONTRADICTION) == stops
    if stops:
        return
    once = Rig(gains=gains).run(100)
    once.cycle(reference(), far)
    once.run(145, robot=nothing)
    assert once.fault is None


@pytest.mark.parametrize("gone, stops", [(0.009, False), (0.012, True)])
def test_a_position_that_stays_to_the_bit_while_its_reference_moves_is_frozen(
    gone: float, stops: bool
) -> None:
    """By 10 mrad; its velocity goes on, as of a sensor whose last reading is sent again."""
    rig = Rig(tracking_error=1.0).run(100)
    stays = np.full(2, 1e-4)
    rig.run(100 + int(1e3 * (np.sqrt(2 * gone / 20.0))) + 1, moving(2.0), lambda t: (stays, np.zeros(2)))
    assert (rig.fault is Fault.FROZEN) == stops
    assert Rig(tracking_error=1.0).run(400, rests(), lambda t: (stays, np.zeros(2))).fault is None


@pytest.mark.parametrize("false, lasts", [(False, 100), (True, 20)])
def test_feedback_lets_go_of_what_it_has_lost_without_a_step(false: bool, lasts: int) -> None:
    """In a tenth of a second where none comes, sooner where what it had fed back was false."""
    rig = Rig(gains=GAINS, rejoin=Rejoin.NEVER, tracking_error=1.0)
    off = np.array([0.04, 0.0])
    rig.run(100).run(300, robot=lambda t: (off * min((t - 0.1) / 0.15, 1.0), None))
    assert rig.commands[299].effort[0] == pytest.approx(-4.0, abs=0.03)
    rig.run(480, robot=(lambda t: (np.array([0.5, 0.0]), np.zeros(2))) if false else nothing)
    begin = rig.stopped_at
    effort = rig.rows(begin - 1, rig.entered(State.STOPPED))[:, 2, 0]
    assert rig.fault is (Fault.CONTRADICTION if false else Fault.NO_MEASUREMENT)
    assert np.abs(np.diff(effort)).max() <= 4.0 * 1.875 / lasts * 1.05
    assert effort[lasts // 2] < -1.0 and (np.diff(effort) >= -1e-9).all()
    assert np.abs(effort[min(lasts + 2, len(effort) - 1)]) < 1e-2
    assert rig.guard.ended and rig.commands[rig.entered(State.STOPPED)] is None  # nobody sees it any more


@pytest.mark.parametrize("speed", [0.8, -0.8])
def test_a_stop_for_a_robot_that_is_elsewhere_begins_where_it_is(speed: float) -> None:
    """Feedback would pull at it as hard as it can, else; with the velocity in the middle of what is known."""
    rig = Rig(gains=GAINS, rejoin=Rejoin.NEVER).run(120)

    leaves = leaving(speed, 0.12)
    while rig.fault is None:
        rig.run(rig.k + 1, robot=leaves)
    assert rig.fault is Fault.TRACKING
    command, there = rig.commands[rig.k - 1], leaves(1e-3 * (rig.k - 1))
    assert command.position[0] == pytest.approx(there[0][0], abs=1e-3)
    assert command.velocity[0] == pytest.approx(speed, rel=0.05)


def test_feedback_that_was_lost_comes_back_by_joining() -> None:
    rig = Rig(gains=GAINS).run(100).run(160, robot=nothing).run(270)
    assert rig.guard.ended and rig.commands[269] is None and rig.guard.start()
    rig.run(350).run(500, robot=lambda t: (np.array([0.01, 0.0]) * min((t - 0.35) / 0.1, 1.0), None))
    assert rig.guard.state is State.FOLLOWING
    np.testing.assert_allclose(rig.commands[499].effort, [-1.0, 0.0], atol=0.01)


def test_whoever_asks_starts_it_and_once() -> None:
    rig = Rig().run(100)
    assert not rig.guard.start()
    rig.run(102, status=Status.NEAR_SINGULARITY).run(220)
    assert rig.guard.reason.cause is Obstacle.NOT_ASKED and rig.guard.start()
    rig.run(300)
    assert rig.guard.state is State.FOLLOWING
    rig.run(302, status=Status.NEAR_SINGULARITY).run(430)
    assert (
        rig.guard.state is State.STOPPED and rig.guard.faults[Fault.STATUS] == 2
    )  # it has to be asked again


def test_nothing_is_commanded_while_nobody_listens_and_it_begins_anew_after_it() -> None:
    rig = Rig(first_effort=FirstEffort.ZERO)
    rig.guard.listening = False
    assert rig.run(20).guard.reason.cause is Obstacle.NOT_LISTENING
    rig.guard.listening = True
    rig.run(150, rests(6.0))
    rig.guard.listening = False
    rig.run(160, rests(6.0))
    assert rig.guard.state is State.WAITING and rig.commands[159] is None
    assert rig.guard.reason.cause is Obstacle.NOT_LISTENING
    rig.guard.listening = True
    rig.run(300, rests(6.0))
    first = rig.commands[rig.entered(State.JOINING)].effort
    assert np.abs(first).max() < 0.1 and rig.guard.state is State.FOLLOWING
