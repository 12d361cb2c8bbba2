"""What reaches the motors when something fails: faults x consumers in virtual time; see docs/safety.md."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from fault_bench import (
    CONTROLLER,
    EFFORTS,
    EPOCH,
    FAULT_AT,
    HOME,
    MS,
    REFERENCES,
    Bench,
    Consumer,
    Outcome,
    Record,
    outcome,
    peak_effort,
    replayed,
    robot_of,
    sound,
    sound_bench,
)
from fault_cases import ASKEW, CASES, GRID, STOPS, THIRD, Case
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from sweeps import THOROUGH, some

from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.effort_limiter import EffortLimiter
from hodyn_ros.guard.guard_config import End, Fault, GuardConfig, State, StreamError
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.guard.measured_motion import MeasuredMotion
from hodyn_ros.guard.transitions import Braking, Fading, Motion, braking_time
from hodyn_ros.simulation.closed_loop import GuardedController, run_loop

pytestmark = pytest.mark.thorough

JOINS = ["joining", "following"]
BRAKED = ["stopping", "stopped"]

# Stamps and clocks off by a second are to a guard what those off by a minute are, and a minute ahead what
# 0.2 s are. Where commands need no measurements, a stream is watched alike whoever carries them out, and at
# any rate: who commands efforts shows every third case beside the controller, which shows all. Who has stood
# for 0.5 s is to join as after 2.5 s, which the controller is to show. Of what else happens to them, each of
# the two consumers without measurements shows every third case, but both show how they end.
FAR = (" +1 s", " -1 s", " +60 s")
STREAMS = ("feedforwards", "measurements: ", "measurements NaN", "clock ", "status: ")
OF_CONTROLLER = ("feedforwards at 500 Hz", "feedforwards at 2000 Hz", "stream returns after 2.5 s")
OFF = "arm 0.049 rad off"  # which test_joining_adds_little shows of all
ENDS = ("none", "stream stops", "payload", "shutdown", "controller switched off")
WATCHED = [case.name for case in CASES if case.name.startswith(STREAMS) and not case.name.endswith(FAR)]
OTHERS = [case.name for case in CASES if not case.name.startswith((*STREAMS, *ENDS, *OF_CONTROLLER))]
RUN = [
    (consumer, case)
    for consumer, case in GRID
    if THOROUGH
    or not (
        case.name.endswith(FAR)
        or case.name == OFF
        or (consumer is REFERENCES and case.name.startswith(STREAMS))
        or (consumer is not CONTROLLER and case.name.startswith(OF_CONTROLLER))
        or (consumer is EFFORTS and case.name in (*WATCHED, *OTHERS))
        and case.name not in (*WATCHED[1::3], *OTHERS[1::3])
        or (consumer is REFERENCES and case.name in OTHERS and case.name not in OTHERS[::3])
    )
]
GROUPED_BY = "consumer"  # whose cases share a run up to the fault
# What is commanded follows from the streams alone, whichever fault they hold: one that stops, one after which
# the guard joins again, and one after which it does not.
REPLAYED = {
    ("stream stops", EFFORTS),
    ("stream returns after 0.05 s, far", REFERENCES),
    ("stream returns after 0.5 s, near", CONTROLLER),
}
# [ms] for which a case is seen after its last change of state: longer than another one takes to follow.
QUIET = 200
WAITS = 900  # [ms] when a robot that is not to join has let a motion go by for long enough
# Feedforwards that are rejected for another reason, and a clock that is off by another time, end in the same
# stop: of these all but one are seen until they brake.
BRAKES = ("feedforwards: stamps +0.2 s", "feedforwards: stamps -60 s", "clock set by +0.2 s")
BRAKES += ("clock set by -60 s", "desired motion jumps 1e5 rad", "status: effort limit exceeded")
# nobody can look after the robot any more
UNSEEN = (Fault.NO_MEASUREMENT, Fault.LATE_MEASUREMENTS, Fault.FROZEN, Fault.CONTRADICTION, Fault.MISMATCH)


def allowed_steps(consumer: Consumer) -> np.ndarray:
    """[N.m] in a millisecond."""
    return np.maximum(1e-3 * robot_of(consumer.kind).limits.effort_rate, 2.0)


def over(consumer: Consumer, case: Case, states: list[str]) -> Callable[[Bench], bool]:
    """Tell whether a case that goes through these states has shown all."""
    few, quiet = len(states), QUIET if case not in STOPS else 2 * QUIET  # in which springs swing on
    if brakes_alike(consumer, case):
        few, quiet = 1, 50
    last: list[int] = []

    def done(bench: Bench) -> bool:
        if not states:
            return not case.begins and bench.k >= WAITS
        if not last and len(bench.record.transitions) >= few:
            last.append(bench.k)
        if not last or bench.k < last[0] + quiet:
            return False
        if case not in STOPS or bench.guard.ended:
            return True
        # to where efforts are gone, or go on for good
        return consumer.end is End.HOLD if consumer.model else not bench.record.efforts[-1].any()

    return done


def brakes_alike(consumer: Consumer, case: Case) -> bool:
    return not THOROUGH and consumer is CONTROLLER and case.name in BRAKES


def states_of(consumer: Consumer, case: Case) -> list[str]:
    fault = case.fault_for(consumer)
    if case.name.startswith("controller switched off"):
        return [*JOINS, "waiting", *JOINS] if case.joins else ["waiting"]
    if fault is Fault.HELD_UP:  # the drives have gone on without
        return ["stopped"]
    return (BRAKED if fault else []) + (JOINS if case.joins else [])


@pytest.mark.parametrize("consumer, case", RUN, ids=[f"{a.name}: {b.name}" for a, b in RUN])
def test_nothing_false_reaches_the_motors(consumer: Consumer, case: Case) -> None:
    fault, expected = case.fault_for(consumer), states_of(consumer, case)
    done = None if THOROUGH else over(consumer, case, expected)
    found = outcome(consumer, case.make(), case.lasts, case.begins, case.off, case.silent, done)
    bench, record = found.bench, found.bench.record
    tripped = any(change.reason.tripped for change in record.transitions)
    check_the_bars(record, consumer, tripped)
    if THOROUGH or (case.name, consumer) in REPLAYED:
        check_the_replay(found, 1000 if case.joins else 200)  # until it joins, or brakes
    # the states, each with one line that says why
    lines = record.transitions
    assert all(one.after is two.before for one, two in zip(lines, lines[1:]))
    assert all((change.before is not change.after or tripped) and change.reason for change in lines)
    assert bench.guard.faults == {
        each: int(each is fault) + int(tripped and each is Fault.VELOCITY) for each in Fault
    }
    brakes = brakes_alike(consumer, case)
    unfinished = bench.guard.state is State.STOPPING and (fault is Fault.TRACKING or brakes)
    let_go_late = tripped and found.states[-2:] == ["stopped", "stopped"]
    assert found.states[: -1 if let_go_late else None] == (expected[:1] if unfinished else expected)
    if fault is not None:
        assert lines[0].reason.fault is fault
    # the last command
    assert bench.guard.ended == (
        tripped or fault in (Fault.SHUTDOWN, Fault.HELD_UP) or (consumer.feedback and fault in UNSEEN)
    )
    last = np.abs(record.efforts[-1]).max()
    if bench.guard.ended and consumer.feedback:
        assert bench.held is None  # brakes
    elif consumer.end is End.ZERO and case.name[-5:] == "stops" and fault:
        assert last == 0.0
    stays = fault not in (None, Fault.TRACKING, Fault.HELD_UP) and not brakes
    if stays and case.lasts >= 500 and not case.joins and consumer.model:
        assert np.max(record.shares[-1]) < 0.05


def check_the_bars(record: Record, consumer: Consumer, tripped: bool = False) -> None:
    robot = robot_of(consumer.kind)
    commands = [command for command in record.commands if command is not None]
    assert all(np.isfinite(np.concatenate(command[:3])).all() for command in commands)
    if not tripped:
        assert record.step <= allowed_steps(consumer).max() * (1 + 1e-9)
    assert record.share <= 1.2
    if consumer is REFERENCES:
        assert max(record.position_steps, default=0.0) <= 1.2
        assert (np.abs(record.efforts[-1]) <= robot.limits.effort).all()


def check_the_replay(found: Outcome, lasts: int) -> None:
    assert all(
        one is None
        if two is None
        else one is not None and all(np.array_equal(a, b) for a, b in zip(one, two))
        for one, two in zip(replayed(found, lasts), found.bench.record.commands)
    )


@pytest.mark.parametrize("consumer", [CONTROLLER, EFFORTS, REFERENCES], ids=str)
@pytest.mark.parametrize("off", [0.0, 0.049])
def test_joining_adds_little(consumer: Consumer, off: float) -> None:
    """Beside what the same motion takes without a fade, and what a robot weighs elsewhere."""
    bench = Bench(consumer, off * ASKEW).run(700) if off else sound_bench(consumer)
    check_the_bars(bench.record, consumer)
    assert [change.after.value for change in bench.record.transitions] == JOINS
    fade = [k for k, command in enumerate(bench.record.commands[:650]) if command is not None]
    wanted = np.array([sound(consumer.kind, k + 0.5).efforts[0] for k in fade])
    given_ = np.array([bench.record.commands[k].effort for k in fade])
    # nothing is pushed harder than the motion asks for but by 5 % of its peak
    more = np.abs(given_).max(axis=0) - np.abs(wanted).max(axis=0)
    assert more.max() <= 0.05 * peak_effort(consumer.kind)
    assert bench.record.errors[-1] < 0.06


@pytest.mark.parametrize("consumer", [CONTROLLER, REFERENCES], ids=str)
def test_nothing_is_led_faster_than_the_margin_allows(consumer: Consumer) -> None:
    """Of a motion at four fifths of its speeds a robot follows no more than a guard lets it go."""
    bench = Bench(consumer, speed_margin=0.5)
    bench.run(FAULT_AT, done=lambda bench: bench.guard.state is State.STOPPED)
    ends = [change.reason.fault for change in bench.record.transitions if change.reason.fault is not None]
    assert ends and ends[0] is Fault.VELOCITY
    assert 0.4 < bench.record.share < 0.55


# the offline loop


def offline(change_reference=lambda t, r: r, change_measurement=lambda t, m: m, until: float = 1.2):
    bench = Bench(CONTROLLER)
    speeds: list[float] = []
    controller = GuardedController(
        bench.guard, lambda t: change_reference(t, sound("motors", np.floor(2e3 * t + 1e-6) / 2.0))
    )

    def step(t: float, measured: Measurement) -> np.ndarray:
        speeds.append(float((np.abs(measured.velocity) / bench.robot.limits.velocity).max()))
        effort = controller(t, change_measurement(t, measured))
        # until it joins, and after its end, brakes hold the robot
        if bench.guard.state is State.WAITING or bench.guard.ended:
            if measured.velocity.any():
                plant.stand()
            return np.array(plant.gravity_effort())
        return effort

    plant = bench.simulation
    record = run_loop(plant, step, until, 1e-3)
    return bench.guard, record, max(speeds)


def shifted(measured: Measurement, by: float) -> Measurement:
    return measured._replace(motor_position=measured.motor_position + by * THIRD)


OFFLINE = {
    "none": ({}, None),
    "stops": ({"change_reference": lambda t, r: r if t < 0.75 else None}, Fault.NO_FEEDFORWARD),
    "jumps": (
        {"change_reference": lambda t, r: r if t < 0.75 else r._replace(positions=r.positions + 1.5)},
        Fault.REFERENCE_STEP,
    ),
    "NaN": (
        {"change_reference": lambda t, r: r if t < 0.75 else r._replace(positions=r.positions * np.nan)},
        Fault.REFERENCE_STEP,
    ),
    "measured NaN": (
        {"change_measurement": lambda t, m: m if t < 0.75 else shifted(m, np.nan)},
        Fault.NO_MEASUREMENT,
    ),
    "measured 2 pi": ({"change_measurement": lambda t, m: m if t < 0.75 else shifted(m, 2 * np.pi)}, None),
    "measured 0.3": (
        {"change_measurement": lambda t, m: m if t < 0.75 else shifted(m, 0.3)},
        Fault.CONTRADICTION,
    ),
}


@pytest.mark.parametrize("name", some(OFFLINE, "none", "stops", "jumps", "measured 0.3"))
def test_the_offline_loop_is_guarded_alike(name: str) -> None:
    changes, fault = OFFLINE[name]
    guard, record, fastest = offline(**changes)
    assert [each for each in Fault if guard.faults[each]] == ([fault] if fault else [])
    assert guard.state is (State.STOPPED if fault else State.FOLLOWING)
    assert fastest <= 1.2
    acting = record.efforts[130 : None if not guard.ended else 1050]
    assert (np.abs(np.diff(acting, axis=0)).max(axis=0) <= allowed_steps(CONTROLLER)).all()


# the pieces

numbers = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2).map(np.array)


@given(value=numbers, rate=numbers, duration=st.floats(0.05, 2.0))
def test_a_fade_begins_as_it_was_and_ends_at_nothing(value, rate, duration) -> None:
    fading = Fading(value, rate, 1.0, duration)
    np.testing.assert_allclose(fading.at(1.0), [value, rate, np.zeros(2)], atol=1e-12)
    np.testing.assert_allclose(fading.at(1.0 + duration * (1 - 1e-9)), np.zeros((3, 2)), atol=2e-3)
    assert not np.array(fading.at(1.0 + duration + 1e-9)).any()
    check_derivatives(fading, 1.0 + 0.37 * duration, duration)


@given(position=numbers, velocity=numbers, acceleration=numbers)
def test_braking_begins_as_it_was_and_stands(position, velocity, acceleration) -> None:
    begin = Motion(position, velocity, acceleration)
    unlimited = np.full(2, np.inf)
    lasts = braking_time(begin, 7.5, unlimited, -unlimited, unlimited)
    braking = Braking.lasting(begin, 1.0, max(0.1, lasts))
    np.testing.assert_allclose(braking.at(1.0), begin, atol=1e-12)
    end = braking.at(braking.end)
    np.testing.assert_allclose([end.velocity, end.acceleration], 0.0, atol=1e-9)
    np.testing.assert_array_equal(braking.at(braking.end + 9.0).position, end.position)
    times = np.linspace(1.0, braking.end, 200)
    hardest = max(np.abs(braking.at(t).acceleration).max() for t in times)
    assert hardest <= 7.5 + np.abs(acceleration).max() + 1e-9
    check_derivatives(braking, 1.0 + 0.03, 0.1)


def test_joints_brake_as_stated_or_as_quick_as_they_are_built_for() -> None:
    wide, highest = np.full(2, 100.0), np.array([2.6, 13.0])
    begin = Motion(np.zeros(2), np.array([2.0, -13.0]), np.zeros(2))
    assert braking_time(begin, 0.0, highest, -wide, wide) == 0.65
    assert braking_time(begin._replace(velocity=np.array([2.0, 1.0])), 0.0, highest, -wide, wide) == 0.4
    assert braking_time(begin._replace(velocity=np.zeros(2)), 0.0, highest, wide, -wide) == 0.0


@given(position=numbers, velocity=numbers)
def test_a_stop_keeps_the_range_where_it_can(position, velocity) -> None:
    begin, highest, end = Motion(position, velocity, np.zeros(2)), np.full(2, 3.0), np.full(2, 2.0)
    gentle = braking_time(begin, 0.0, highest, -10.0 * end, 10.0 * end)
    stop = Braking.lasting(begin, 0.0, max(braking_time(begin, 0.0, highest, -end, end), 1e-3))
    stands = stop.at(stop.end).position
    hardest = np.abs(stop.duration - max(gentle / 3.0, 1e-3)) < 1e-12
    outward = (np.sign(velocity) * position > 2.0) & (velocity != 0.0)
    assert hardest or (np.abs(stands[~outward]) <= np.maximum(2.0, np.abs(position[~outward])) + 1e-9).all()
    assert gentle / 3.0 - 1e-12 <= stop.duration <= max(gentle, 1e-3)


def check_derivatives(way, t: float, scale: float) -> None:
    h = 1e-5 * scale
    before, now, after = way.at(t - h), way.at(t), way.at(t + h)
    size = 1.0 + max(np.abs(row).max() for row in now) / scale
    np.testing.assert_allclose((after.position - before.position) / (2 * h), now.velocity, atol=1e-4 * size)
    np.testing.assert_allclose(
        (after.velocity - before.velocity) / (2 * h), now.acceleration, atol=1e-4 * size
    )


@given(st.lists(st.tuples(numbers.map(lambda x: 40 * x), st.floats(0.0, 0.01)), min_size=2, max_size=20))
def test_efforts_and_their_steps_keep_their_limits(asked) -> None:
    limiter = EffortLimiter([87.0, 12.0], [1000.0, 5000.0], 2.0)
    last = None
    for effort, elapsed in asked:
        found = limiter(effort, elapsed)
        assert (np.abs(found.effort) <= limiter.limit).all()
        if last is not None:
            reach = np.maximum(limiter.rate_limit * elapsed, 2.0 * min(elapsed / 1e-3, 1.0))
            assert (np.abs(found.effort - last) <= reach * (1 + 1e-12) + 1e-12).all()
        last = found.effort


def test_an_encoder_may_wrap_and_a_stamp_may_not_stand_still() -> None:
    motion = MeasuredMotion(["a", "b"], GuardConfig(), np.full(2, 2.0))
    position = np.array([3.14, 0.0])
    motion.take(EPOCH, EPOCH, position, np.zeros(2))
    motion.take(EPOCH + MS, EPOCH + MS, position - [2 * np.pi - 0.001, 0.0], np.zeros(2))
    np.testing.assert_allclose(motion.position, [3.141, 0.0])
    assert motion.wraps == 1
    for stamp, found, message in (
        (EPOCH + MS, position, "stamps must increase"),
        (0, position, "its stamp is zero"),
        (EPOCH + 10**9, position, "after the clock"),
        (EPOCH + 2 * MS, np.array([3.14, 0.5]), "joint 'b' has jumped by 0.5"),
        (EPOCH + 2 * MS, np.array([3.14, np.inf]), "position of joint 'b' is inf"),
        (EPOCH + 2 * MS, np.array([3.14, 4 * np.pi]), "joint 'b' has jumped"),
    ):
        refused(partial(motion.take, EPOCH + 2 * MS, stamp, found, None), message, StreamError)
    assert motion.stamp == EPOCH + MS


def test_whatever_comes_is_commanded_within_the_bars_or_not_at_all() -> None:
    """Any stamps, huge numbers, jumps, and nothing for a while; sound streams between them."""
    random = np.random.default_rng(11)
    robot = robot_of("motors")
    names, huge = robot.joint_names, (0.01, 0.3, 7.0, 1e5, 1e200, np.inf, np.nan)
    model = effort_model(robot, names, motor=True)
    for feedback in (True, False):
        guard = CommandGuard(
            names,
            GuardConfig(measured=feedback, lead=0.0005, settle=0.01, fade=0.05),
            guard_limits(robot, names, motor=True),
            MotorGains.from_frequency(robot.drive_train.motor_inertia, 30.0, 1.0) if feedback else None,
            model,
            effort_observer(robot, names, model.links, motor=True),
        )
        own = sound("motors", 0)
        now, last, joined = EPOCH, None, 0
        for k in range(2000):
            wild = k % 500 > 250
            now += (
                MS
                if not wild or random.uniform() < 0.97
                else int(random.choice([-(10**9), 0, 10**8, 10**10]))
            )
            stamp, other = now, now
            positions, efforts, measured = own.positions.copy(), own.efforts.copy(), own.positions[0].copy()
            if wild and random.uniform() < 0.3:
                what = random.integers(6)
                by, joint = float(random.choice(huge)), random.integers(7)
                if what == 0:
                    stamp += int(random.choice([-(10**9), 10**7, -now, 10**18 - now]))
                elif what == 1:
                    other += int(random.choice([-(10**9), 10**7, -now, 10**18 - now]))
                else:
                    (positions[0], positions[1], efforts[0], measured)[what - 2][joint] += by
            reference = own._replace(positions=positions, efforts=efforts)
            bits = Status(int(random.integers(64)) * wild)
            speed = random.choice([0.0, 1e-3]) * np.ones(7)
            with suppress(StreamError):  # and nothing else
                guard.follow(now, stamp, reference, bits)
            with suppress(StreamError):
                guard.measure(now, other, measured, speed)
            command = guard.command(now)
            if command is None:
                last = None
                continue
            joined += guard.state is State.FOLLOWING
            assert np.isfinite(np.concatenate(command[:3])).all()
            assert (np.abs(command.effort) <= robot.limits.effort).all()
            let_go = not command.effort.any()
            if last is not None and not let_go:
                longest = 0.1  # [s] between two commands, as far as the guard believes the clock
                assert (
                    np.abs(command.effort - last) <= np.maximum(robot.limits.effort_rate * longest, 2.0)
                ).all()
            last = command.effort
        assert joined > 100  # it is not safe by never doing anything


def test_a_fault_begins_where_it_is_put() -> None:
    """The bench itself: without a fault the robot follows the motion, as fast as it is meant to be."""
    bench = sound_bench(CONTROLLER)
    assert np.max(bench.record.shares) == pytest.approx(0.8, abs=0.15)
    assert bench.record.errors[-1] < 1e-3
    assert np.abs(bench.simulation.position - HOME).max() > 0.3
