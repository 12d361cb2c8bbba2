"""The guard of the ros2_control controller, in C++, does what the one in Python does, on the same streams."""

from __future__ import annotations

import ctypes
import platform
import runpy
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import Enum
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
import pytest
import sweeps
from exported_code import compiled_by
from fault_bench import FAULT_AT, Bench, Consumer, Feed, Measured, Moment, act, robot_of, silence
from fault_cases import GRID, Case
from places import ROOT
from refusals import like, refused
from scipy.linalg import expm

from hodyn_ros import RangeError
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.command_guard import CommandGuard, EffortModel
from hodyn_ros.guard.effort_check import GAIN, THRESHOLD
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig, GuardLimits, Rejoin
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.guard.reasons import Fault, Obstacle, Progress, Reason, State
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.observers import ObserverConfig
from hodyn_ros.observers.effort_observer import EffortObserver
from hodyn_ros.trajectory.rest import through_points

CXX = next((path for path in map(shutil.which, ("c++", "g++", "clang++")) if path), None)
needs_compiler = pytest.mark.skipif(
    CXX is None, reason="there is no C++ compiler (c++, g++ or clang++) on the path"
)

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror")
GUARD = ROOT / "ros2_control" / "guard"
STATES = list(State)
NAMES = ["one", "two"]
CAUSES: list[Enum] = [*Fault, *Obstacle, *Progress]
MS = 1_000_000  # [ns]
EPOCH = 1_700_000_000 * 1000 * MS
DOUBLES = ctypes.POINTER(ctypes.c_double)
CALLBACK = ctypes.CFUNCTYPE(None, DOUBLES, DOUBLES, DOUBLES)
START = ctypes.CFUNCTYPE(None, ctypes.c_void_p, DOUBLES)
STEP = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, DOUBLES, ctypes.c_double, DOUBLES, DOUBLES)
RELATIVE = 1e-12
# Numbers of a reason may be differences of two samples by the time between them, times an inertia of about 2.
RELATIVE_FOUND = RELATIVE * 1e3
SEEDS = (0, 1, 2, 3, 8, 10, 14)  # between them they reach every fault and every obstacle

Array = np.ndarray
Found = tuple[Enum, str, float, float, bool]


class Answer(NamedTuple):
    numbers: Array | None
    state: State
    ended: bool
    reason: Found
    changes: list[tuple[State, State, Found]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return built(tmp_path_factory.mktemp("guard") / "guard.so", "-std=c++17", "-O0")


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return one in which products and sums are fused, as GCC does for ARM where CMake chooses C++17."""
    x86 = platform.machine() == "x86_64"
    if x86 and not llvm.get_host_cpu_features().get("fma"):
        pytest.skip("this processor has no fused operations")
    own = ["-mfma"] if x86 else []
    path = tmp_path_factory.mktemp("fused") / "guard.so"
    return built(path, "-std=gnu++17", "-O2", "-ffp-contract=fast", *own)


def built(path: Path, *flags: str) -> ctypes.CDLL:
    sources = [ROOT / "test" / "helpers" / "guard_in_c.cpp", GUARD / "guard.cpp"]
    compiled_by(CXX, (*flags, *WARNINGS, "-fPIC", "-shared", f"-I{GUARD}"), sources, path)
    loaded = ctypes.CDLL(str(path))
    loaded.guard_new.restype = ctypes.c_void_p
    for name in ("guard_said", "guard_figure", "guard_reason_text"):
        getattr(loaded, name).restype = ctypes.c_char_p
    return loaded


def pointer(numbers: Array | None) -> ctypes.Array[ctypes.c_double] | None:
    if numbers is None:
        return None
    flat = np.ascontiguousarray(numbers, dtype=np.float64).ravel()
    return (ctypes.c_double * max(len(flat), 1))(*flat)


def figures(library: ctypes.CDLL) -> list[str]:
    """The names of the figures of a configuration, in the order of the one in C++."""
    names: list[str] = []
    while (name := library.guard_figure(ctypes.c_size_t(len(names)))) is not None:
        names.append(name.decode())
    return names


class Guard:
    """The one in C++, with the calls of the one in Python."""

    def __init__(
        self,
        library: ctypes.CDLL,
        joint_names: list[str],
        config: GuardConfig,
        limits: GuardLimits,
        gains: MotorGains | None = None,
        model: EffortModel | None = None,
        observer: EffortObserver | None = None,
    ) -> None:
        n = len(joint_names)

        def efforts(*arrays: ctypes.Array[ctypes.c_double]) -> None:
            assert model is not None
            links, motors = (np.ctypeslib.as_array(each, (3, n)) for each in arrays[:2])
            np.ctypeslib.as_array(arrays[2], (n,))[:] = model(
                Motion(*motors.copy()), Motion(*(motors - links))
            )

        self._c, self._names = library, joint_names
        self._callback = CALLBACK(0) if model is None else CALLBACK(efforts)
        self._observer = [START(0), STEP(0)] if observer is None else calls_of(observer)
        numbers = [getattr(config, name) for name in figures(library)]
        numbers += [config.measured, config.efforts_act, config.stop_on]
        chosen = config.end, config.first_effort, config.rejoin
        numbers += [list(type(one)).index(one) for one in chosen]
        rows = np.stack([np.broadcast_to(getattr(limits, one.name), (n,)) for one in fields(limits)])
        gain_rows = None if gains is None else np.stack([gains.proportional, gains.derivative])
        numbers = pointer(np.array(numbers)), pointer(rows), pointer(gain_rows)
        springs = None if observer is None else pointer(observer.stiffness)
        made = library.guard_new(n, *numbers, self._callback, *self._observer, springs)
        if not made:
            raise InputError(library.guard_said().decode())
        self._guard = ctypes.c_void_p(made)

    def __del__(self) -> None:
        if hasattr(self, "_guard"):
            self._c.guard_delete(self._guard)

    def act(self, moment: Moment) -> Answer:
        """One cycle of a consumer."""
        n = len(self._names)
        now = ctypes.c_int64(moment.now)
        self._c.guard_listen(self._guard, int(moment.listening))
        if moment.stop:
            self._c.guard_stop(self._guard)
        if moment.start:
            self._c.guard_start(self._guard)
        for stamp, (positions, efforts, bent), status in moment.feed:
            series = (pointer(positions), len(positions), pointer(efforts), len(efforts))
            rows = pointer(bent) if len(bent) else None
            self._c.guard_follow(self._guard, now, ctypes.c_int64(stamp), *series, rows, int(status))
        for stamp, position, velocity in moment.measured:
            numbers = (pointer(position), pointer(velocity))
            self._c.guard_measure(self._guard, now, ctypes.c_int64(stamp), *numbers)
        command, report = (ctypes.c_double * (3 * n))(), (ctypes.c_double * 64)()
        elapsed = ctypes.c_double(np.nan if moment.elapsed is None else moment.elapsed)
        commands = self._c.guard_command(self._guard, now, elapsed, command, report)
        changes = [report[8 + 7 * i : 15 + 7 * i] for i in range(int(report[7]))]
        return Answer(
            np.array(command).reshape(3, n) if commands else None,
            STATES[int(report[0])],
            bool(report[1]),
            self._found(report[2:7]),
            [(STATES[int(a)], STATES[int(b)], self._found(more)) for a, b, *more in changes],
        )

    def _found(self, fields: list[float]) -> Found:
        cause, joint, value, limit, tripped = fields
        name = self._names[int(joint)] if joint >= 0 else ""
        return CAUSES[int(cause)], name, value, limit, bool(tripped)

    @property
    def reason(self) -> Found:
        fields = (ctypes.c_double * 5)()
        self._c.guard_reason(self._guard, fields)
        return self._found(list(fields))

    @property
    def faults(self) -> dict[Fault, int]:
        counts = (ctypes.c_long * len(Fault))()
        self._c.guard_faults(self._guard, counts)
        return dict(zip(Fault, counts))


def calls_of(observer: EffortObserver) -> list:
    """An observer as C++ takes it: two functions that share a memory."""
    n, memory = observer.n, [np.zeros((1, observer.size))]

    def start(_: object, sample: ctypes.Array[ctypes.c_double]) -> None:
        memory[0] = observer.start(np.ctypeslib.as_array(sample, (5, n)).copy())

    def step(
        _: object,
        sample: ctypes.Array[ctypes.c_double],
        period: float,
        efforts: ctypes.Array[ctypes.c_double],
        deviations: ctypes.Array[ctypes.c_double],
    ) -> bool:
        try:
            memory[0] = observer.step(np.ctypeslib.as_array(sample, (5, n)).copy(), period, memory[0])
        except InputError:
            return False
        np.ctypeslib.as_array(efforts, (n,))[:] = memory[0][0, :n]
        np.ctypeslib.as_array(deviations, (n,))[:] = memory[0][0, n : 2 * n]
        return True

    return [START(start), STEP(step)]


def observer_of(model: EffortModel, mismatch: list[float]) -> EffortObserver:
    """The observer of two joints that this is allowed for; 1e9 where anything is."""
    noise = np.minimum(mismatch, 1e10) / THRESHOLD
    config = ObserverConfig(bandwidth=GAIN, stiffness_deviation=0.0, inertia_deviation=0.1)
    drives = DriveTrain([DriveSpec(np.inf, float(own)) for own in TURNING], ["one", "two"])

    def links(motion: Array) -> Array:
        return model(Motion(*motion)) - TURNING * motion[2]

    return EffortObserver(links, drives, config, noise, at_motors=True, stiffness=np.array([90.0, np.inf]))


def expected(guard: CommandGuard, moment: Moment) -> Answer:
    """The same cycle of the guard in Python."""
    command = act(guard, moment)
    changes = [(change.before, change.after, found(change.reason)) for change in guard.transitions]
    guard.transitions.clear()
    numbers = None if command is None else np.stack(command[:3])
    return Answer(numbers, guard.state, guard.ended, found(guard.reason), changes)


def found(reason: Reason) -> Found:
    return reason.cause, reason.joint, reason.value, reason.limit, reason.tripped


def assert_same(ours: Answer, theirs: Answer, when: object) -> None:
    assert (ours.state, ours.ended) == (theirs.state, theirs.ended), (when, ours, theirs)
    assert_same_reason(ours.reason, theirs.reason, when)
    assert [change[:2] for change in ours.changes] == [change[:2] for change in theirs.changes], when
    for own, other in zip(ours.changes, theirs.changes):
        assert_same_reason(own[2], other[2], when)
    assert (ours.numbers is None) == (theirs.numbers is None), when
    if ours.numbers is not None and theirs.numbers is not None:
        scale = np.maximum(np.abs(theirs.numbers).max(axis=1, keepdims=True), 1.0)
        assert (np.abs(ours.numbers - theirs.numbers) <= RELATIVE * scale).all(), when


def assert_same_reason(ours: Found, theirs: Found, when: object) -> None:
    (cause, joint, *ours_found, tripped), (*names, value, limit, trips) = ours, theirs
    assert [cause, joint, tripped] == [*names, trips], (when, ours, theirs)
    assert ours_found == pytest.approx([value, limit], rel=RELATIVE_FOUND, abs=RELATIVE_FOUND), when


TURNING = np.array([0.5, 0.3])  # inertia of the motors of two joints


def two_joints(motion: Motion, deflection: Motion | None = None) -> Array:
    """Efforts of two joints that are neither linear nor apart."""
    bent = np.zeros((3, 2)) if deflection is None else np.array(deflection)
    q, v, a = np.array(motion) - bent
    links = np.array([1.5 + q[1] ** 2, 1.2]) * a + 0.3 * v * v[::-1] + np.array([9.0, 4.0]) * np.sin(q)
    return links + TURNING * motion.acceleration


def ramp(s: float) -> Array:
    """From 0 to 1 within s from 0 to 1, with three derivatives by s."""
    s, moves = min(max(s, 0.0), 1.0), float(0.0 < s < 1.0)
    shape = s**3 * (10 - 15 * s + 6 * s**2), 30 * (s * (1 - s)) ** 2 * moves
    return np.array([*shape, 60 * s * (1 - s) * (1 - 2 * s) * moves, 60 * (1 - 6 * s + 6 * s**2) * moves])


def desired(t: float) -> Reference:
    """A motion of two joints about t [s], which begins and ends at rest, with its efforts."""
    rows = np.outer(ramp(t / 0.8) * 1.25 ** np.arange(4), [0.9, -0.7])
    positions, bent = rows[:3], 0.05 * rows[:3, ::-1]
    efforts = [
        two_joints(Motion(*positions), Motion(*bent)),
        np.array([9.0, 4.0]) * np.cos(positions[0]) * positions[1],
    ]
    return Reference(positions, np.array(efforts), bent)


# What happens from 350 to 480 ms.
OTHER = np.array([0.0, 1.0])  # the joint whose efforts the model does not vouch for
LIMITS, LATE, STRONG, JUMPS, DRIFTS, FREEZES, TURNED, FAST, SET_BACK = range(9)


def random_streams(rng: np.random.Generator, velocities: bool, flavour: int) -> Iterator[Moment]:
    """A second of a robot that follows badly at times, its streams with every kind of fault."""
    number, now, silent, off, held = rng.integers, EPOCH, 0, np.zeros(2), np.zeros(2)
    steady = rng.random() < 0.5
    for k in range(1100):
        odd = rng.random(13) < 0.006 * rng.random() ** 2 * (not 200 < k < 480)
        step = MS if not odd[0] else int(rng.choice([30, 90, 150, -40, 3000])) * MS
        step = -20 * MS if flavour == SET_BACK and k == 400 else step
        now += step
        elapsed = 1e-9 * (step if rng.random() < 0.5 else MS) if steady else None
        reference = desired(1e-3 * k - 0.15)
        silent = int(number(10, 120)) if odd[1] else silent - 1
        if odd[2] or k == 205:
            off = np.zeros(2) if k == 205 else rng.normal(scale=rng.choice([0.004, 0.04, 0.3]), size=2)
        positions, efforts = reference.positions.copy(), reference.efforts.copy()
        positions[0] += 0.02 * odd[3]
        positions[1] += 8.0 * odd[4]
        efforts[0] += 6.0 * (odd[5] or 450 < k < 470)
        if odd[6]:
            efforts[0, 0] = rng.choice([np.nan, np.inf, 1e200])
        special = flavour if 350 <= k < 480 else None
        efforts[0] += {STRONG: OTHER * 60.0, JUMPS: 30.0 * (-1) ** (k // 4)}.get(special, 0.0)
        rows = 3 if not odd[7] else int(number(0, 4))
        rows = 0 if flavour == LIMITS and 216 <= k < 250 else rows
        bent = reference.deflections[: 0 if 520 <= k < 560 else 3]
        status = Status(int(rng.choice([1, 4, 17, 32]))) if odd[8] or special == LIMITS else Status.OK
        stamp = now + (int(rng.choice([-70, -20, 20, 90])) * MS if odd[9] else 0)
        feeds = (
            [] if silent > 0 or k % 4 else [Feed(stamp, Reference(positions[:rows], efforts, bent), status)]
        )
        drift = {DRIFTS: (0.15, 0.1), FAST: (0.25, 0.08)}.get(flavour, (0.0, 1.0))
        away, rate, *_ = drift[0] * ramp((1e-3 * k - 0.35) / drift[1]) / drift[1] ** np.arange(4)
        delay = int(number(0, 3)) + 8 * (special == LATE)  # [ms]
        there = desired(1e-3 * (k - delay) - 0.15).positions
        measured = there[0] + off + away + rng.normal(scale=1e-5, size=2)
        measured += 2 * np.pi * (k > 550) * np.array([1.0, 0.0])
        speed = there[1] + rate + (4.0 if odd[10] else 0.0)
        if special == FREEZES:
            measured[0] = held[0]
        held = measured
        speed = -speed if special == TURNED else speed
        if odd[11]:
            measured = rng.choice([np.nan, 1e120], size=2)
        if odd[12]:
            speed = np.array([np.nan, speed[1]])
        lost = rng.random() < (0.98 if 620 < k < 720 or k < 50 * (flavour % 2) else 0.02)
        seen = [] if lost else [Measured(now - delay * MS, measured, speed if velocities else None)]
        start, stop, listening = rng.random() < 0.01, k == 1000, not (205 < k < 215 or 850 < k < 870)
        yield Moment(k, now, feeds, seen, stop=stop, listening=listening, elapsed=elapsed, start=start)


class Reached(NamedTuple):
    """What a guard came to on random streams."""

    states: set[State]
    reasons: set[Enum]  # why it has been where it was
    stops: set[Enum]  # why its state has changed
    trips: set[Enum]  # why the motors let go


class Streams(NamedTuple):
    """Random streams, and what the guard in Python makes of them."""

    theirs: CommandGuard
    arguments: tuple[Any, ...]  # that both guards are built with
    before: Found  # why nothing is commanded yet
    answers: list[tuple[Moment, Answer]]


@lru_cache(maxsize=len(SEEDS))  # for each library that is held against it
def answered(seed: int) -> Streams:
    rng = np.random.default_rng(seed)
    feedback, modelled, flavour = bool(seed // 9 % 2), bool((seed // 9 + seed) % 3), seed % 9
    config = GuardConfig(
        measured=feedback,
        end=list(End)[seed // 2 % 2],
        first_effort=list(FirstEffort)[seed // 3 % 2],
        rejoin=list(Rejoin)[(seed + 2) % 3],
        join_within=0.0 if seed % 5 == 4 else 0.05,
        lead=0.0005 * (seed % 2),
        settle=0.02,
        fade=0.1,
        saturation_time=0.03,
        efforts_act=seed % 4 != 3,
    )
    limits = GuardLimits([4.0, 4.5], [30.0, 20.0], [np.inf, 4000.0], [5.0, np.inf], [-0.6, -np.inf], 0.7)
    gains = GAINS if feedback else None
    model = two_joints if modelled else None
    observer = observer_of(two_joints, [5.0, np.inf]) if modelled else None
    arguments = ["one", "two"], config, limits, gains, model, observer
    theirs = CommandGuard(*arguments)
    before = found(theirs.reason)
    moments = random_streams(rng, velocities=seed % 4 != 3, flavour=flavour)
    return Streams(theirs, arguments, before, [(moment, expected(theirs, moment)) for moment in moments])


@cache
def reached(library: ctypes.CDLL, seed: int) -> Reached:
    """Hold both guards against each other on the streams of a seed."""
    theirs, arguments, before, answers = answered(seed)
    ours = Guard(library, *arguments)
    assert_same_reason(ours.reason, before, "before the first command")
    result = Reached(set(), {before[0]}, set(), set())
    for moment, answer in answers:
        assert_same(ours.act(moment), answer, moment.k)
        result.states.add(answer.state)
        result.reasons.add(answer.reason[0])
        result.stops.update(why[0] for _, _, why in answer.changes)
        result.trips.update(why[0] for _, _, why in answer.changes if why[-1])
    assert ours.faults == theirs.faults
    return result


@needs_compiler
@pytest.mark.parametrize("seed", sweeps.some(range(240), *SEEDS))
def test_same_commands_on_random_streams(library: ctypes.CDLL, seed: int) -> None:
    assert State.JOINING in reached(library, seed).states or seed not in SEEDS


@needs_compiler
@pytest.mark.parametrize("seed", sweeps.some(range(240), *SEEDS[::3]))
def test_same_commands_where_products_and_sums_are_fused(fused: ctypes.CDLL, seed: int) -> None:
    reached(fused, seed)


@needs_compiler
def test_random_streams_reach_every_reason(library: ctypes.CDLL) -> None:
    found = [reached(library, seed) for seed in SEEDS]
    assert set().union(*(one.states for one in found)) == set(State)
    assert set().union(*(one.stops for one in found)) >= {*Fault, *Progress, Obstacle.NOT_LISTENING}
    assert set().union(*(one.reasons for one in found)) >= set(Obstacle)
    assert set().union(*(one.trips for one in found)) >= {Fault.MISMATCH}


BOUNDS = GuardLimits([4.0, 4.5], [30.0, 20.0])
GAINS = MotorGains(np.array([150.0, 80.0]), np.array([12.0, 6.0]))


class Both:
    """A guard of two joints in either language, on the same streams."""

    def __init__(
        self,
        library: ctypes.CDLL,
        config: GuardConfig,
        limits: GuardLimits = BOUNDS,
        gains: MotorGains | None = None,
        model: EffortModel | None = None,
        observer: EffortObserver | None = None,
    ) -> None:
        arguments = NAMES, config, limits, gains, model, observer
        self.ours, self.theirs = Guard(library, *arguments), CommandGuard(*arguments)
        self.changes: list[tuple[State, State, Found]] = []

    def act(self, moment: Moment) -> Answer:
        answer = expected(self.theirs, moment)
        assert_same(self.ours.act(moment), answer, moment.k)
        self.changes += answer.changes
        return answer

    @property
    def states(self) -> list[State]:
        return [after for _, after, _ in self.changes]


@needs_compiler
@pytest.mark.parametrize(
    "feedback, share",
    sweeps.some(
        [(feedback, share) for feedback in (False, True) for share in (0.0, 0.7, 1.0)],
        *((False, 1.0), (True, 0.0), (True, 0.7)),
    ),
)
def test_a_joint_that_runs_away_beside_one_that_is_false(
    library: ctypes.CDLL, feedback: bool, share: float
) -> None:
    """Of the other one, a share of the samples jump, or are no numbers; stamps are wrong at times."""
    config = GuardConfig(measured=feedback, settle=0.02, fade=0.1, tracking_error=10.0)
    both, rng = Both(library, config, gains=GAINS if feedback else None), np.random.default_rng(5)
    for k in range(650):
        now, reference = EPOCH + k * MS, desired(1e-3 * k - 0.15)
        position, velocity = reference.positions[:2].copy()
        away, rate, *_ = ramp((1e-3 * k - 0.4) / 0.2)
        position[1] -= away
        velocity[1] -= rate / 0.2
        if k >= 400 and rng.random() < share:
            position[0] += rng.choice([np.nan, 1e120, 0.0, 0.3, -2.0])
            velocity[0] += rng.choice([np.nan, np.inf, 0.0, 5.0, -1e120])
        stamp = now - int(rng.choice([0, 0, 0, 3, 70])) * MS * (k >= 400)
        moment = Moment(k, now, [Feed(now, reference)], [Measured(stamp, position, velocity)])
        both.act(moment)
    assert (Fault.VELOCITY, "two") in [why[:2] for _, _, why in both.changes]


@needs_compiler
def test_a_loop_catches_up_after_an_overrun(library: ctypes.CDLL) -> None:
    """20 ms without a command, then those that were missed, 20 us apart; each may step by little alone."""
    config = GuardConfig(measured=True, settle=0.02, fade=0.1)
    limits = GuardLimits([4.0, 4.5], [30.0, 20.0], [500.0, 500.0], [5.0, 5.0])
    both = Both(library, config, limits, GAINS, two_joints, observer_of(two_joints, [5.0, 5.0]))
    rng, now = np.random.default_rng(1), EPOCH
    for k in range(500):
        late = 400 <= k < 420
        step = 20 * MS if k == 400 else MS // 50 if late else MS
        now += step
        reference = desired(1e-9 * (now - EPOCH) - 0.15)
        speed = reference.positions[1] + late * rng.normal(scale=0.03, size=2)
        measured = [Measured(now, reference.positions[0], speed)]
        elapsed = 1e-9 * step if k % 2 else None
        moment = Moment(k, now, [Feed(now, reference)], measured, elapsed=elapsed)
        assert both.act(moment).state is State.FOLLOWING or k < 300, (k, both.theirs.reason)


# two links that are coupled, each behind a spring
LINKS, ROTORS = np.array([[0.06, 0.02], [0.02, 0.03]]), np.array([0.01, 0.01])
SPRINGS = np.array([40.0, 25.0])


def coupled(motion: Motion, deflection: Motion | None = None) -> Array:
    bent = np.zeros(2) if deflection is None else deflection.acceleration
    return LINKS @ (motion.acceleration - bent) + ROTORS * motion.acceleration


def soft_robot(softer: float) -> tuple[Array, Array]:
    """What a state (8,) of links and motors becomes within a millisecond, and what efforts (2,) add to it."""
    rates, k = np.zeros((10, 10)), np.diag(softer * SPRINGS)
    rates[:4, 4:8] = np.eye(4)
    rates[4:6, :4] = np.linalg.solve(LINKS, np.hstack([-k, k]))
    rates[6:8, :4] = np.hstack([k, -k]) / ROTORS[:, None]
    rates[6:8, 8:] = np.diag(1.0 / ROTORS)
    step = expm(1e-3 * rates)
    return step[:8, :8], step[:8, 8:]


@needs_compiler
@pytest.mark.parametrize("softer, sign, push", [(0.7, 1, 0.0), (1.4, 1, 0.0), (1.0, -1, 0.0), (1.0, 1, 3.0)])
def test_a_soft_robot_brakes_from_full_speed_and_is_let_go_where_a_motor_is_false(
    library: ctypes.CDLL, softer: float, sign: int, push: float
) -> None:
    """Links swing by 0.07 rad and more behind motors that brake; springs are others than is known.

    A push is what begins the stop: links that swing on there would hide it for 70 ms.
    """
    config = GuardConfig(measured=True, settle=0.02, fade=0.1, tracking_error=1.0)
    limits = GuardLimits([15.0, 15.0], [20.0, 20.0])
    gains = MotorGains(60.0**2 * ROTORS, 2.0 * 60.0 * ROTORS)
    noise, drives = np.full(2, 2.0 / THRESHOLD), [DriveSpec(np.inf, float(own)) for own in ROTORS]
    observer = EffortObserver(
        lambda motion: LINKS @ motion[2],
        DriveTrain(drives, NAMES),
        ObserverConfig(bandwidth=GAIN, stiffness_deviation=0.0),
        noise,
        at_motors=True,
        stiffness=SPRINGS,
    )
    both = Both(library, config, limits, gains, coupled, observer)
    moves, way = soft_robot(softer), through_points(np.array([0.0, 0.4]), np.array([[0.0, 0.0], [1.5, -1.2]]))
    state, bends, seen = np.zeros(8), [], []
    for k in range(1000):
        q = way.sample(min(max(1e-3 * (k - 130), 0.0), 0.4), 4)
        torques = q[2:] @ LINKS
        motors = q[:3] + torques / SPRINGS
        reference = Reference(motors, torques[:1] + ROTORS * motors[2], torques / SPRINGS)
        now = EPOCH + k * MS
        measured = Measured(now, state[2:4] + 1e-9 * (k % 2), state[6:8])
        moment = Moment(k, now, [Feed(now, reference)], [measured], elapsed=1e-3, stop=k >= 250 and not push)
        answer = both.act(moment)
        seen += [(k, after, why[-1]) for _, after, why in answer.changes]
        if answer.numbers is None and k > 250:
            break
        efforts = np.zeros(2) if answer.numbers is None else answer.numbers[2]
        one = efforts * [sign, 1.0] + [push, 0.0] if k >= 260 else efforts
        state = moves[0] @ state + moves[1] @ one
        bends.append(np.abs(state[2:4] - state[:2]).max())
    _, _, (begins, braking, _), (ends, stands, lets_go) = seen
    false = sign < 0 or push > 0.0
    assert (begins, braking, stands, lets_go) == (275 if push else 250, State.STOPPING, State.STOPPED, false)
    assert ends < begins + 30 if false else ends > 430 and max(bends[270:]) > 0.07


@needs_compiler
def test_a_robot_that_was_let_go_as_its_controllers_went_is_joined_once_they_are_back(
    library: ctypes.CDLL,
) -> None:
    """Both in the same two milliseconds, as by an emergency stop."""
    config = GuardConfig(settle=0.02, fade=0.1, efforts_act=True)
    both, let_go = Both(library, config, model=two_joints), 10_000
    for k in range(600):
        now, motion = EPOCH + k * MS, desired(0.0)
        position, velocity = motion.positions[:2].copy()
        if 300 <= k <= let_go:
            position += 9e-3 * (k - 300)
            velocity += 9.0
        feed, measured = [Feed(now, motion)], [Measured(now, position, velocity)]
        moment = Moment(k, now, feed, measured, listening=not let_go < k < let_go + 100)
        if both.act(moment).reason[-1]:
            let_go = k
    stopped = [State.STOPPING, State.STOPPED, State.WAITING]
    assert both.states == [State.JOINING, State.FOLLOWING, *stopped, State.JOINING, State.FOLLOWING]


@needs_compiler
def test_a_robot_whose_signals_disagree_after_the_end_is_joined_again(library: ctypes.CDLL) -> None:
    """First nobody takes the commands, then the stream ends and efforts go to zero."""
    config = GuardConfig(measured=True, settle=0.02, fade=0.05, end=End.ZERO, release_after=0.05, lead=0.002)
    gains = MotorGains(np.full(2, 100.0), np.full(2, 10.0))
    both = Both(library, config, gains=gains, model=two_joints)
    for k in range(700):
        now, motion, off = EPOCH + k * MS, desired(0.3), 150 <= k < 210
        feed = [Feed(now, motion._replace(positions=motion.positions * [[1.0], [0.0], [0.0]]))]
        measured = [Measured(now, motion.positions[0] + 1e-7 * (k % 2), np.full(2, float(off)))]
        moment = Moment(k, now, feed if k < 400 else [], measured, listening=not off)
        answer = both.act(moment)
    follows = [State.JOINING, State.FOLLOWING]
    assert both.states == [*follows, State.WAITING, *follows, State.STOPPING, State.STOPPED]
    assert answer.numbers is not None and not answer.numbers[2].any()


@needs_compiler
@pytest.mark.parametrize("since", ["nothing", "held up", "blind"])
@pytest.mark.parametrize("silent", [70, 300], ids=["in the stop", "stands"])
def test_what_has_ended_commands_since_a_stream_was_interrupted_asks_for_a_start(
    library: ctypes.CDLL, since: str, silent: int
) -> None:
    gains = GAINS if since == "blind" else None
    both = Both(library, GuardConfig(settle=0.02, fade=0.05, measured=gains is not None), gains=gains)
    now, motion, fails = EPOCH, desired(0.0), 150 + silent
    for k in range(fails + 250):
        now += 150 * MS if since == "held up" and k == fails else MS
        feed = [] if 150 <= k < fails + 60 else [Feed(now, motion)]
        lost = since == "blind" and fails <= k < fails + 60
        seen = [] if lost else [Measured(now, *motion.positions[:2])]
        moment = Moment(k, now, feed, seen)
        both.act(moment)
    assert both.theirs.state is (State.FOLLOWING if since == "nothing" else State.STOPPED)


@needs_compiler
@pytest.mark.parametrize("late, stops", [(15, False), (60, True)])
def test_a_reference_that_would_leap_after_a_hold_up_stops_both(
    library: ctypes.CDLL, late: int, stops: bool
) -> None:
    """Of drives with a loop of their own, which have stayed; 2 rad/s, and 0.05 rad are allowed."""
    both, now = Both(library, GuardConfig(settle=0.02, fade=0.1)), EPOCH
    for k in range(640):
        now += late * MS if k == 550 else MS
        reference = desired(1e-9 * (now - EPOCH) - 0.15)
        moment = Moment(k, now, [Feed(now, reference)], [Measured(now, *reference.positions[:2])])
        both.act(moment)
    assert (
        (both.theirs.faults[Fault.REFERENCE_STEP] == 1) == stops == (both.theirs.state is not State.FOLLOWING)
    )


@needs_compiler
@pytest.mark.parametrize("order", [0, 1], ids=["position", "velocity"])
def test_a_motion_that_parts_from_its_derivative_stops_both_equally_far_away(
    library: ctypes.CDLL, order: int
) -> None:
    """The robot stands; what the derivative says, within every step, wanders and is forgotten again."""
    both = Both(library, GuardConfig(settle=0.02, fade=0.05, rejoin=Rejoin.ALWAYS))
    rng, said = np.random.default_rng(order + 3), np.zeros(2)
    for k in range(2000):
        now, motion = EPOCH + k * MS, desired(0.0)
        if k % 80 == 0:
            said = rng.choice([0.0, 0.08, 0.16, -0.16], size=2) * 10.0**order * (k % 500 > 250)
        motion.positions[order + 1] = said
        feed = [] if k % 3 or k % 900 > 750 else [Feed(now, motion)]  # a gap lets all be forgotten
        moment = Moment(k, now, feed, [Measured(now, *desired(0.0).positions[:2])])
        both.act(moment)
    assert {why[1] for _, _, why in both.changes if why[0] is Fault.REFERENCE_STEP} == set(NAMES)


@needs_compiler
def test_a_false_velocity_before_any_other_makes_no_turn_of_a_joint_that_stands(library: ctypes.CDLL) -> None:
    """What it said was taken for the way of 0.4 s, in which measurements were taken for jumps."""
    config = GuardConfig(settle=0.02, fade=0.05, measurement_timeout=0.5)
    both = Both(library, config)
    for k in range(600):
        now, motion, false = EPOCH + k * MS, desired(0.0), k < 20
        seen = Measured(now, *(motion.positions[:2] + [[1e-7 * (k % 2)], [-9.0 * false]]))
        moment = Moment(k, now, [Feed(now, motion)], [seen])
        both.act(moment)
    assert both.theirs.state is State.FOLLOWING and not both.theirs.measured.wraps


@needs_compiler
def test_a_motion_that_is_left_out_stops_both(library: ctypes.CDLL) -> None:
    """Positions, velocities or nothing of the one before, in every order."""
    config = GuardConfig(settle=0.0, fade=0.05, join_within=0.0, rejoin=Rejoin.ALWAYS)
    both = Both(library, config)
    rng, rows = np.random.default_rng(3), 3
    for k in range(700):
        now, motion = EPOCH + k * MS, desired(0.4)
        rows = int(rng.integers(0, 4)) if k % 80 == 79 else rows
        feed = Feed(now, motion._replace(positions=motion.positions[:rows]))
        moment = Moment(k, now, [feed], [Measured(now, motion.positions[0] + 1e-7 * (k % 2), None)])
        both.act(moment)
    assert both.theirs.faults[Fault.REFERENCE_STEP] > 3


@needs_compiler
def test_efforts_alone_are_kept_in_a_stop_before_it_has_joined(library: ctypes.CDLL) -> None:
    config = GuardConfig(settle=0.02, fade=0.5, join_within=0.0, efforts_act=True)
    both, stands = Both(library, config, model=two_joints), np.array([0.8, -0.6])
    holds = two_joints(Motion(stands, np.zeros(2), np.zeros(2)))
    for k in range(900):
        now = EPOCH + k * MS
        feed = [Feed(now, Reference(np.zeros((0, 2)), holds[None]))] if k < 200 else []
        moment = Moment(k, now, feed, [Measured(now, stands + 1e-7 * (k % 2), np.zeros(2))])
        answer = both.act(moment)
    assert both.theirs.state is State.STOPPED and answer.numbers is not None
    np.testing.assert_allclose(answer.numbers[2], holds, rtol=1e-12)


@needs_compiler
def test_efforts_that_are_no_number_let_go(library: ctypes.CDLL) -> None:
    """A model that fails in a stop."""
    fails: list[bool] = []

    def model(motion: Motion, deflection: Motion | None = None) -> Array:
        return two_joints(motion, deflection) * (np.nan if fails else 1.0)

    config = GuardConfig(settle=0.02, fade=0.1, efforts_act=True)
    observer = observer_of(model, [5.0, 5.0])  # that says nothing either
    both = Both(library, config, model=model, observer=observer)
    trips = []
    for k in range(480):
        now, reference = EPOCH + k * MS, desired(1e-3 * k - 0.15)
        if k > 400:
            fails.append(True)
        feed = [Feed(now, reference)] if k < 300 else []
        moment = Moment(k, now, feed, [Measured(now, *reference.positions[:2])])
        answer = both.act(moment)
        trips += [(why[0], answer.numbers) for _, _, why in answer.changes if why[-1]]
    ((cause, numbers),) = trips
    assert cause is Fault.MISMATCH and numbers is not None and not numbers[2].any()


@needs_compiler
@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_same_words(library: ctypes.CDLL, cause: Fault | Obstacle | Progress) -> None:
    """Where Python has no sentence of its own, but that of the check, C++ has the numbers."""
    for value, limit, tripped in ((0.123456, 0.05, False), (1.5e-7, 12345.678, True), (-3.0, 2.0, False)):
        args = CAUSES.index(cause), 1, ctypes.c_double(value), ctypes.c_double(limit), int(tripped)
        text = library.guard_reason_text(*args).decode()
        theirs = str(Reason(cause, "two", value, limit, tripped))
        if cause in (Fault.REFERENCE_STEP, Fault.EFFORT_STEP):
            theirs += f": joint 'two' has {value:.3g}, {limit:.3g} are allowed"
        if cause is Fault.STATUS:
            continue
        assert text == theirs
    status = Status.VELOCITY_LIMIT_EXCEEDED | Status.NEAR_SINGULARITY
    args = CAUSES.index(Fault.STATUS), -1, ctypes.c_double(status), ctypes.c_double(0.0), 0
    note = "VELOCITY_LIMIT_EXCEEDED | NEAR_SINGULARITY"
    assert library.guard_reason_text(*args).decode() == str(Reason(Fault.STATUS, note=note))


@needs_compiler
def test_a_figure_out_of_its_range_is_refused_by_name(library: ctypes.CDLL) -> None:
    names = set(figures(library))
    assert names == {name for name, one in vars(GuardConfig()).items() if type(one) is float}
    wrong = [("timeout", 50.0), ("fade", np.nan), ("shortest_stop", np.inf), ("lead", -1e-9)]
    for name, value in wrong:
        said = refused(partial(GuardConfig, **{name: value}), like(RangeError, name=name))
        config = GuardConfig()
        object.__setattr__(config, name, value)
        with pytest.raises(InputError) as ours:
            Guard(library, ["one"], config, GuardLimits())
        assert str(ours.value).split(", found")[0] == str(said).split(", found")[0]


@pytest.mark.parametrize(
    "function, table", [("guard_table", "table.hpp"), ("guard_words", "guard_words.h")], ids=["C++", "C"]
)
def test_tables_are_what_the_tool_writes(function: str, table: str) -> None:
    written: Callable[[], str] = runpy.run_path(str(ROOT / "tools" / "guard_table.py"))[function]
    assert (GUARD / table).read_text() == written(), "write it anew, as tools/guard_table.py says"


SOME = sweeps.some(GRID)  # none but with `make test-thorough`


@needs_compiler
@pytest.mark.thorough
@pytest.mark.parametrize("consumer, case", SOME, ids=[f"{a.name}: {b.name}" for a, b in SOME])
def test_same_commands_on_recorded_faults(library: ctypes.CDLL, consumer: Consumer, case: Case) -> None:
    """The streams of the faults of docs/safety.md, recorded with a simulated Panda."""
    bench = Bench(consumer, case.off)
    if case.begins:
        bench.run(FAULT_AT)
        bench.run(FAULT_AT + case.silent, lambda _, moment: silence(moment))
    bench.run(FAULT_AT + case.lasts, case.make())
    robot, again = robot_of(consumer.kind), Bench(consumer, case.off).guard
    names, motors = list(robot.joint_names), robot_of("motors").drive_train
    assert motors is not None
    gains = MotorGains.from_frequency(motors.motor_inertia, 30.0, 1.0) if consumer.feedback else None
    model = effort_model(robot, names, motor=True) if consumer.model else None
    observer = None if model is None else effort_observer(robot, names, model.links, motor=True)
    ours = Guard(library, names, again.config, guard_limits(robot, names, motor=True), gains, model, observer)
    for moment in bench.record.streams:
        if moment.runs:
            assert_same(ours.act(moment), expected(again, moment), moment.k)
