"""The guard of the ros2_control controller, in C++, does what the one in Python does, on the same streams."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest
import sweeps
from fault_bench import FAULT_AT, Bench, Consumer, Moment, act, robot_of, silence
from fault_cases import GRID, Case
from places import ROOT

from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.command_guard import CommandGuard, EffortModel
from hodyn_ros.guard.guard_config import End, Fault, FirstEffort, GuardConfig, GuardLimits, State
from hodyn_ros.guard.guarded_robot import effort_model, guard_limits
from hodyn_ros.guard.transitions import Motion

CXX = next((path for path in map(shutil.which, ("c++", "g++", "clang++")) if path), None)
pytestmark = pytest.mark.skipif(
    CXX is None, reason="there is no C++ compiler (c++, g++ or clang++) on the path"
)

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror")
NUMBERS = (
    *("timeout", "measurement_timeout", "clock_tolerance", "latency", "lead", "join_within", "join_speed"),
    *("settle", "fade", "speed_margin", "tracking_error", "resolution", "reference_step", "effort_step"),
    *("saturation_time", "deceleration", "shortest_stop", "release_after"),
)
STATES, FAULTS = list(State), list(Fault)
MS = 1_000_000  # [ns]
EPOCH = 1_700_000_000 * 1000 * MS
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double))
RELATIVE = 1e-12
SEEDS = (0, 1, 2, 5)  # each with a flavour of its own, with feedback and without

Array = np.ndarray
Answer = tuple[Array | None, State, bool, list[tuple[State, Fault | None]]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    assert CXX is not None
    path = tmp_path_factory.mktemp("guard") / "guard.so"
    source = ROOT / "test" / "helpers" / "guard_in_c.cpp"
    flags = ("-std=c++17", *WARNINGS, "-O0", "-fPIC", "-shared", f"-I{ROOT / 'ros2_control' / 'guard'}")
    subprocess.run([CXX, *flags, source, "-o", path], check=True, timeout=300)
    loaded = ctypes.CDLL(str(path))
    loaded.guard_new.restype = ctypes.c_void_p
    return loaded


def pointer(numbers: Array | None) -> ctypes.Array[ctypes.c_double] | None:
    if numbers is None:
        return None
    flat = np.ascontiguousarray(numbers, dtype=np.float64).ravel()
    return (ctypes.c_double * max(len(flat), 1))(*flat)


class Guard:
    """The one in C++, with the calls of the one in Python."""

    def __init__(
        self,
        library: ctypes.CDLL,
        n: int,
        config: GuardConfig,
        limits: GuardLimits,
        gains: MotorGains | None,
        model: EffortModel | None,
    ) -> None:
        def efforts(motion: ctypes.Array[ctypes.c_double], result: ctypes.Array[ctypes.c_double]) -> None:
            assert model is not None
            rows = np.ctypeslib.as_array(motion, (3, n))
            np.ctypeslib.as_array(result, (n,))[:] = model(Motion(*rows.copy()))

        self._callback = CALLBACK(0) if model is None else CALLBACK(efforts)
        first = list(FirstEffort).index(config.first_effort)
        numbers = [*(getattr(config, name) for name in NUMBERS), config.measured, config.stop_on]
        numbers += [list(End).index(config.end), first]
        rows = [np.broadcast_to(x, (n,)) for x in (limits.velocity, limits.effort, limits.effort_rate)]
        gain_rows = None if gains is None else np.stack([gains.proportional, gains.derivative])
        self._c, self._n = library, n
        self._guard = ctypes.c_void_p(
            library.guard_new(
                n, pointer(np.array(numbers)), pointer(np.stack(rows)), pointer(gain_rows), self._callback
            )
        )

    def __del__(self) -> None:
        self._c.guard_delete(self._guard)

    def act(self, moment: Moment) -> Answer:
        """One cycle of a consumer, as `fault_bench.act`."""
        now = ctypes.c_int64(moment.now)
        self._c.guard_listen(self._guard, int(moment.listening))
        if moment.stop:
            self._c.guard_stop(self._guard)
        for stamp, (positions, efforts), status in moment.feed:
            series = (pointer(positions), len(positions), pointer(efforts), len(efforts))
            self._c.guard_follow(self._guard, now, ctypes.c_int64(stamp), *series, int(status))
        for stamp, position, velocity in moment.measured:
            numbers = (pointer(position), pointer(velocity))
            self._c.guard_measure(self._guard, now, ctypes.c_int64(stamp), *numbers)
        command, report = (ctypes.c_double * (3 * self._n))(), (ctypes.c_int * 11)()
        commands = self._c.guard_command(self._guard, now, command, report)
        state, ended, changes, *rest = report
        pairs = zip(rest[: 2 * changes : 2], rest[1 : 2 * changes : 2])
        found = [(STATES[a], FAULTS[b] if b < len(FAULTS) else None) for a, b in pairs]
        numbers = np.array(command).reshape(3, self._n) if commands else None
        return numbers, STATES[state], bool(ended), found


def expected(guard: CommandGuard, moment: Moment) -> Answer:
    command = act(guard, moment)
    changes = [(change.after, _fault_of(change.reason)) for change in guard.transitions]
    guard.transitions.clear()
    return None if command is None else np.stack(command[:3]), guard.state, guard.ended, changes


def _fault_of(reason: str) -> Fault | None:
    return next((fault for fault in Fault if reason.startswith(fault.value)), None)


def assert_same(ours: Answer, theirs: Answer, when: object) -> None:
    assert ours[1:] == theirs[1:], when
    assert (ours[0] is None) == (theirs[0] is None), when
    if ours[0] is not None and theirs[0] is not None:
        scale = np.maximum(np.abs(theirs[0]).max(axis=1, keepdims=True), 1.0)
        assert (np.abs(ours[0] - theirs[0]) <= RELATIVE * scale).all(), when


def stiff(motion: Motion) -> Array:
    """Efforts of two joints that are neither linear nor apart."""
    q, v, a = motion
    return np.array([2.0 + q[1] ** 2, 1.5]) * a + 0.3 * v * v[::-1] + np.array([9.0, 4.0]) * np.sin(q)


def desired(t: float) -> Reference:
    """A motion of two joints about t [s], which begins and ends at rest, with its efforts."""
    s, rate = np.clip(t / 0.8, 0.0, 1.0), 1.25 * (0.0 < t < 0.8)
    shape = np.array([s**3 * (10 - 15 * s + 6 * s**2), 30 * (s * (1 - s)) ** 2 * rate])
    more = np.array([60 * s * (1 - s) * (1 - 2 * s) * rate**2, 60 * (1 - 6 * s + 6 * s**2) * rate**3])
    rows = np.outer([*shape, *more], [0.9, -0.7])
    positions = rows[:3]
    efforts = [stiff(Motion(*positions)), np.array([9.0, 4.0]) * np.cos(positions[0]) * positions[1]]
    return Reference(positions, np.array(efforts))


def random_streams(rng: np.random.Generator, velocities: bool, flavour: int) -> Iterator[Moment]:
    """A second of a robot that follows badly at times, its streams with every kind of fault.

    The flavour, from 350 to 480 ms: 0 limits exceeded, 1 late stamps, 2 efforts beyond limits, 3 that jump.
    """
    number, now, silent, off = rng.integers, EPOCH, 0, np.zeros(2)
    for k in range(1100):
        odd = rng.random(14) < 0.008 * rng.random() ** 2
        now += MS if not odd[0] else int(rng.choice([30, 90, 150, -40, 3000])) * MS
        reference = desired(1e-3 * k - 0.15)
        silent = int(number(10, 120)) if odd[1] else silent - 1
        if odd[2]:
            off = rng.normal(scale=rng.choice([0.004, 0.04, 0.3]), size=2)
        positions, efforts = reference.positions.copy(), reference.efforts.copy()
        positions[0] += 0.02 * odd[3]
        positions[1] += 8.0 * odd[4]
        efforts[0] += 6.0 * (odd[5] or 450 < k < 470)
        if odd[6]:
            efforts[0, 0] = rng.choice([np.nan, np.inf, 1e200])
        special = flavour if 350 <= k < 480 else None
        efforts[0] += {2: 60.0, 3: 30.0 * (-1) ** (k // 4)}.get(special, 0.0)
        rows = 3 if not odd[7] else int(number(0, 4))
        status = Status(int(rng.choice([1, 4, 17, 32]))) if odd[8] or special == 0 else Status.OK
        stamp = now + (int(rng.choice([-70, -20, 20, 90])) * MS if odd[9] else 0)
        feeds = [] if silent > 0 or k % 4 else [(stamp, Reference(positions[:rows], efforts), status)]
        measured = reference.positions[0] + off + rng.normal(scale=1e-5, size=2)
        measured += 2 * np.pi * (k > 550) * np.array([1.0, 0.0])
        speed = reference.positions[1] + (4.0 if odd[10] else 0.0)
        if odd[11]:
            measured = rng.choice([np.nan, 1e120], size=2)
        if odd[12]:
            speed = np.array([np.nan, speed[1]])
        lost = rng.random() < (0.02 if not 620 < k < 640 + 60 * odd[13] else 0.9)
        taken = now - (int(number(0, 3)) + 8 * (special == 1)) * MS
        seen = [] if lost else [(taken, measured, speed if velocities else None)]
        yield Moment(k, now, feeds, seen, stop=k == 1000, listening=not 850 < k < 870)


@pytest.mark.parametrize("seed", sweeps.some(range(60), *SEEDS))
def test_same_commands_on_random_streams(library: ctypes.CDLL, seed: int) -> None:
    rng = np.random.default_rng(seed)
    feedback, modelled = bool(seed % 2), bool(seed % 3)
    config = GuardConfig(
        measured=feedback,
        end=list(End)[seed // 2 % 2],
        first_effort=list(FirstEffort)[seed // 3 % 2],
        join_within=0.0 if seed % 5 == 4 else 0.05,
        lead=0.0005 * (seed % 2),
        settle=0.02,
        fade=0.1,
        measurement_timeout=0.05 if feedback else 0.5,
    )
    limits = GuardLimits([4.0, 4.5], [30.0, 20.0], [np.inf, 4000.0])
    gains = MotorGains(np.array([150.0, 80.0]), np.array([12.0, 6.0])) if feedback else None
    model = stiff if modelled else None
    ours = Guard(library, 2, config, limits, gains, model)
    theirs = CommandGuard(["one", "two"], config, limits, gains, model)
    states = set()
    for moment in random_streams(rng, velocities=seed % 4 != 3, flavour=seed % 4):
        answer = expected(theirs, moment)
        assert_same(ours.act(moment), answer, moment.k)
        states.add(answer[1])
    if seed in SEEDS:
        assert states >= {State.WAITING, State.JOINING, State.STOPPING}


def test_a_loop_catches_up_after_an_overrun(library: ctypes.CDLL) -> None:
    """20 ms without a command, then those that were missed, 20 us apart; each may step by little alone."""
    config = GuardConfig(measured=True, settle=0.02, fade=0.1)
    limits = GuardLimits([4.0, 4.5], [30.0, 20.0], [500.0, 500.0])
    gains = MotorGains(np.array([150.0, 80.0]), np.array([12.0, 6.0]))
    ours = Guard(library, 2, config, limits, gains, stiff)
    theirs = CommandGuard(["one", "two"], config, limits, gains, stiff)
    rng, now = np.random.default_rng(1), EPOCH
    for k in range(700):
        late = 500 <= k < 520
        now += 20 * MS if k == 500 else MS // 50 if late else MS
        reference = desired(1e-9 * (now - EPOCH) - 0.15)
        speed = reference.positions[1] + late * rng.normal(scale=0.03, size=2)
        measured = [(now, reference.positions[0], speed)]
        moment = Moment(k, now, [(now, reference, Status.OK)], measured, stop=False, listening=True)
        answer = expected(theirs, moment)
        assert_same(ours.act(moment), answer, k)
        assert k < 300 or answer[1] is State.FOLLOWING, (k, theirs.reason)


SOME = sweeps.some(GRID)  # none but with `make test-thorough`


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
    names, motors = robot.joint_names, robot_of("motors").drive_train
    assert motors is not None
    gains = MotorGains.from_frequency(motors.motor_inertia, 30.0, 1.0) if consumer.feedback else None
    model = effort_model(robot, names, motor=True) if consumer.model else None
    ours = Guard(library, len(names), again.config, guard_limits(robot, names, motor=True), gains, model)
    for moment in bench.record.streams:
        if moment.runs:
            assert_same(ours.act(moment), expected(again, moment), moment.k)
