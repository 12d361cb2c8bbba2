"""The faults that are put between feedforwards, a guard and a robot; see docs/safety.md."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from fault_bench import (
    CONTROLLER,
    EFFORTS,
    EFFORTS_BARE,
    EFFORTS_BARE_HELD,
    EFFORTS_HELD,
    EPOCH,
    FAULT_AT,
    HOME,
    MS,
    REFERENCES,
    Bench,
    Consumer,
    Feed,
    Inject,
    Measured,
    Moment,
    at_rest,
    silence,
    sound,
)
from fault_lies import FOR_GOOD, JOINTS, Lie

from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.guard_config import Fault

THIRD, ALL = np.eye(JOINTS)[2], tuple(range(JOINTS))
LATE = 600  # [ms] when feedforwards come that were not there from the start
ASKEW = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])


class Case(NamedTuple):
    """A fault; `make` returns what is done to each millisecond, with a memory of its own."""

    name: str
    make: Callable[[], Inject]
    lasts: int = 500  # [ms] after it begins
    begins: int = FAULT_AT  # [ms]; before, all is sound
    off: Array | float = 0.0  # [rad] of the robot from the start of the motion
    fault: Fault | None = None  # why feedback stops, None where it does not
    open: Fault | None | str = "the same"  # why commands without feedback do
    joins: bool = False  # at last
    silent: int = 0  # [ms] in which no feedforward comes, before `make` has its turn

    def fault_for(self, consumer: Consumer) -> Fault | None:
        """Why a consumer stops."""
        if consumer.kind == "efforts" and self.name.startswith("payload"):
            return Fault.TRACKING  # as nothing corrects the wrong weight
        if consumer.feedback or self.open == "the same":
            return self.fault
        return None if self.open is None else Fault(self.open)


def always(change: Callable[[Moment], None]) -> Callable[[], Inject]:
    return lambda: lambda bench, moment: change(moment)


def lie(
    signal: str, kind: str, amount: float = 0.0, joints: tuple[int, ...] = (), lasts: int = FOR_GOOD
) -> Callable[[], Inject]:
    """What is false from where most faults begin; see `fault_lies`."""
    return lambda: Lie(signal, kind, joints, amount, lasts=lasts).injector(FAULT_AT, 0)


def stays_here() -> Inject:
    """The motion waits where the robot is."""
    stands: list[Reference] = []

    def inject(bench: Bench, moment: Moment) -> None:
        if not stands:
            stands.append(at_rest(bench.kind, bench.simulation.position))
        moment.feed = [Feed(moment.now, stands[0])]

    return inject


@cache
def at_home(kind: str) -> Reference:
    return at_rest(kind, HOME)


def stands_at_home(bench: Bench, moment: Moment) -> None:
    moment.feed = [Feed(moment.now, at_home(bench.kind))]


def late_start(near: bool) -> Callable[[], Inject]:
    def inject(bench: Bench, moment: Moment) -> None:
        if moment.k < LATE:
            moment.feed = []
        elif near:
            stands_at_home(bench, moment)

    return lambda: inject


def time_paused(bench: Bench, moment: Moment) -> None:
    """As in a simulator that is paused for 0.3 s: its robot stands still with its clock."""
    paused = min(moment.k - FAULT_AT, 300)
    moment.now -= paused * MS
    moment.elapsed = None  # as nodes in simulated time know nothing else
    moment.time_goes_on = paused == 300
    k = moment.k - paused
    moment.feed = [Feed(moment.now, sound(bench.kind, k))]
    moment.measured = [bench.measurement(moment.now)]


def repeated_measurements(stamped_anew: bool) -> Callable[[], Inject]:
    def make() -> Inject:
        last: list[Measured] = []

        def inject(bench: Bench, moment: Moment) -> None:
            last[:] = last or moment.measured
            moment.measured = [one._replace(stamp=moment.now) if stamped_anew else one for one in last]

        return inject

    return make


def second_publisher(positions: float, efforts: float) -> Callable[[], Inject]:
    """Whose feedforwards come between the others, half a millisecond apart."""

    def inject(bench: Bench, moment: Moment) -> None:
        own = sound(bench.kind, moment.k + 0.5)
        other = own._replace(positions=own.positions.copy(), efforts=own.efforts.copy())
        other.positions[0] += positions
        other.efforts[0] += efforts
        moment.feed.append(Feed(moment.now + MS // 2, other))

    return lambda: inject


def rate(hertz: float, jitter: float = 0.0) -> Callable[[], Inject]:
    """Feedforwards at another rate, each late by up to `jitter` periods."""

    def make() -> Inject:
        period, random = 1e3 / hertz, np.random.default_rng(7)
        due: list[tuple[float, float]] = []  # [ms] of arrival, of the instant that it is about
        following = [0]

        def inject(bench: Bench, moment: Moment) -> None:
            while following[0] * period <= moment.k:
                at = following[0] * period
                due.append((at + jitter * period * random.uniform(), at))
                following[0] += 1
            came = sorted(at for arrival, at in due if arrival <= moment.k)
            due[:] = [pair for pair in due if pair[0] > moment.k]
            moment.feed = [Feed(EPOCH + round(at * MS), sound(bench.kind, round(2 * at) / 2)) for at in came]

        return inject

    return make


def heavier(by: float) -> Callable[[], Inject]:
    def change(moment: Moment) -> None:
        for i, feed in enumerate(moment.feed):
            efforts = feed.reference.efforts.copy()
            efforts[0, 1] += by
            moment.feed[i] = feed._replace(reference=feed.reference._replace(efforts=efforts))

    return always(change)


def held_up(lasts: int, late: int = 0, queued: int = 0) -> Callable[[], Inject]:
    """The process stands still; `late` [ms] after it goes on it gets measurements, the oldest first.

    It has caught up with them when `queued` [ms] have passed.
    """

    def make() -> Inject:
        taken: list[Measured] = []

        def inject(bench: Bench, moment: Moment) -> None:
            since = moment.k - FAULT_AT - lasts
            moment.runs = not -lasts < since < 0
            taken.extend(moment.measured)
            if 0 <= since < late:
                moment.measured = []
            elif 0 <= since < late + queued:
                oldest = 45  # [ms] before it went on
                behind = round((oldest + late) * (1.0 - (since - late) / queued))
                moment.measured = [taken[-1 - behind]]

        return inject

    return make


def listening_off(until: int, at_home: bool) -> Callable[[], Inject]:
    def inject(bench: Bench, moment: Moment) -> None:
        begins = LATE + 100 if at_home else FAULT_AT  # once it follows
        if at_home:
            stands_at_home(bench, moment)
        moment.listening = not begins <= moment.k < begins + until

    return lambda: inject


def nothing(moment: Moment) -> None:
    pass


STEP, SILENT = Fault.REFERENCE_STEP, Fault.NO_FEEDFORWARD
BLIND, HELD_UP = Fault.NO_MEASUREMENT, Fault.HELD_UP
SHIFTS = (0.2, -0.2, 1.0, -1.0, 60.0, -60.0)  # [s]


def returns(after: int, near: bool) -> Case:
    name = f"stream returns after {after / 1e3:g} s, {'near' if near else 'far'}"
    make = stays_here if near else always(nothing)
    return Case(name, make, after + 700, fault=SILENT, joins=near, silent=after)


CASES = (
    Case("none, to the end of the motion", always(nothing), 1300),
    Case("stream stops", always(silence), 2500, fault=SILENT, silent=500),
    *(returns(*pair) for pair in ((50, False), (500, True), (500, False), (2500, True), (2500, False))),
    Case("late start, motion under way", late_start(False), 0, 0),
    Case("late start, motion waits", late_start(True), 400, 0, joins=True),
    Case("arm 0.049 rad off", always(nothing), 0, 0, 0.049 * ASKEW, joins=True),
    Case("arm 0.3 rad off", always(nothing), 0, 0, 0.3 * ASKEW),
    Case("arm 1 rad off", always(nothing), 0, 0, 1.0 * ASKEW),
    Case("feedforwards: stamps zero", lie("feedforwards", "stamps zero"), fault=SILENT),
    *(
        Case(f"feedforwards: stamps {by:+g} s", lie("feedforwards", "stamps off", by), fault=SILENT)
        for by in SHIFTS
    ),
    Case("measurements: stamps zero", lie("measurements", "stamps zero"), fault=BLIND, open=None),
    *(
        # when stamps have caught up with the last one taken, the robot is elsewhere
        Case(
            f"measurements: stamps {by:+g} s",
            lie("measurements", "stamps off", by),
            900 if by == -0.2 else 500,
            fault=BLIND,
            open=Fault.CONTRADICTION if by == -0.2 else None,
        )
        for by in SHIFTS
    ),
    *(Case(f"clock set by {by:+g} s", lie("clock", "set", by), fault=Fault.CLOCK) for by in SHIFTS),
    Case("time paused 0.3 s", lambda: time_paused, 500),
    Case("measurements stop", lie("measurements", "lost", 1.0), fault=BLIND, open=None),
    Case("measurements repeat", repeated_measurements(False), fault=BLIND, open=None),
    Case("measurements freeze, new stamps", repeated_measurements(True), fault=Fault.FROZEN),
    Case("measurements 5 ms late", lie("measurements", "late", 5)),
    Case(
        "measurements 10 ms late", lie("measurements", "late", 10), fault=Fault.LATE_MEASUREMENTS, open=None
    ),
    Case(
        "measurements 20 ms late", lie("measurements", "late", 20), fault=Fault.LATE_MEASUREMENTS, open=None
    ),
    Case("measurement jumps 10 mrad", lie("measured position", "offset", 0.01, (2,))),
    Case(
        "measurement jumps 0.3 rad",
        lie("measured position", "offset", 0.3, (2,)),
        1000,
        fault=Fault.CONTRADICTION,
    ),
    Case("measurement jumps 0.3 rad, once", lie("measured position", "offset", 0.3, (2,), 1)),
    Case("measurement jumps 2 pi", lie("measured position", "offset", 2 * np.pi, (2,))),
    Case("measurements NaN", lie("measured position", "not a number", np.nan, ALL), fault=BLIND, open=None),
    Case("second publisher, other motion", second_publisher(0.3, 20.0), fault=STEP),
    Case("second publisher, other efforts", second_publisher(0.0, 20.0), fault=Fault.EFFORT_STEP),
    Case("desired motion jumps 1.5 rad", lie("feedforward position", "offset", 1.5, ALL), fault=STEP),
    Case("desired motion jumps 1e5 rad", lie("feedforward position", "offset", 1e5, ALL), fault=STEP),
    Case("feedforwards NaN", lie("feedforward efforts", "not a number", np.nan, ALL), fault=STEP),
    Case("feedforwards at 10 Hz", rate(10), 0, 0),
    *(Case(f"feedforwards at {hertz} Hz", rate(hertz), 300, 0, joins=True) for hertz in (50, 500, 2000)),
    Case("feedforwards at 100 Hz, half a period late", rate(100, 0.5), 300, 0, joins=True),
    Case(
        "status: effort limit exceeded",
        lie("status", "bits", Status.EFFORT_LIMIT_EXCEEDED),
        fault=Fault.STATUS,
    ),
    Case("status: near a singularity", lie("status", "bits", Status.NEAR_SINGULARITY), fault=Fault.STATUS),
    Case("payload changed, 3 N.m", heavier(3.0), 800),
    Case("process held up 0.14 s", held_up(140), 1000, fault=HELD_UP),
    Case("process held up 0.14 s, measurements queued", held_up(140, 3, 30), 1000, fault=HELD_UP),
    Case("process held up 2 s", held_up(2000), 2800, fault=HELD_UP),
    Case("process held up 2 s, measurements late", held_up(2000, 3), 2800, fault=HELD_UP),
    Case("shutdown requested", lie("request", "stop"), 1200, fault=Fault.SHUTDOWN),
    Case("controller switched off and on, at rest", listening_off(100, True), 600, 0, joins=True),
    Case("controller switched off in motion", listening_off(100, False)),
)
STOPS = CASES[1], next(case for case in CASES if case.name == "shutdown requested")
GRID = [(CONTROLLER, case) for case in CASES]
GRID += [(consumer, case) for consumer in (EFFORTS, REFERENCES) for case in CASES]
GRID += [(consumer, case) for consumer in (EFFORTS_HELD, EFFORTS_BARE, EFFORTS_BARE_HELD) for case in STOPS]
