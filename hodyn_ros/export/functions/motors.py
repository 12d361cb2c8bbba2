"""What the motors have to do, as C: drives of every kind, alone or in one call with the dynamics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from hodyn_ros.actuation.compiled_motors import MotorMotion
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.springs.damped_spring import DampedSpring
from hodyn_ros.codegen.kernel import Shape, Stack
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.rotor_coupling import RotorCoupling
from hodyn_ros.errors import InputError
from hodyn_ros.export import motions, words
from hodyn_ros.export.c_function import (
    ALL_FINITE,
    FAILED,
    OK,
    Cases,
    CFunction,
    Memory,
    checked,
    copied,
    rounded,
    rounding_error,
    sizes,
    static_function,
    unless,
)
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import Tables, TracedLines
from hodyn_ros.lie.jets import to_taylor
from hodyn_ros.lie.se3 import Array

BOTH = "feedforward"  # name of the function that does the dynamics as well
_SHARES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)  # of the torques to test with: the first that can be given


def left_out(robot: Robot, order: int, prefix: str) -> str | None:
    """Say why a robot with drives has no motor feedforward at an order; None where it has one."""
    train = robot.require_drives()
    if turning_rotors(robot, order):
        return (
            f"{prefix}_motor_feedforward is left out: rotors turn with the bodies that carry them, so that "
            f"motors follow from the motion in one function with the torques, {prefix}_feedforward; "
            f"{prefix}_inverse_dynamics is without what rotors do."
        )
    if order >= 2 or not train.elastic.any():
        return None
    return (
        f"{prefix}_motor_feedforward is left out: the motor efforts of elastic joints need order 2 or "
        f"higher, and this is order {order}."
    )


def turning_rotors(robot: Robot, order: int) -> bool:
    """Whether rotors turn with the bodies that carry them, and the order is one of efforts of the motors."""
    train = robot.drive_train
    if train is None or not any(spec.rotor for spec in train.specs):
        return False
    return order >= 2 or not train.elastic.any()


@dataclass(eq=False)
class _Drives:
    """The drives of a robot; those `remembered` have a damped spring that does not settle within a period."""

    train: DriveTrain
    period: float | None
    remembered: list[int] = field(init=False)
    positions: int = field(init=False, default=0)  # rows of the traced result; efforts follow

    def __post_init__(self) -> None:
        springs = [drive.transmission for drive in self.train.drives]
        self.remembered = [
            j
            for j, spring in enumerate(springs)
            if self.period is not None
            and isinstance(spring, DampedSpring)
            and not spring.settles_within(self.period)
        ]

    def trace(self, q: Stack, tau: Stack, *rest: Stack) -> Stack:
        """Return positions and efforts of the motors."""
        motion, loads = np.array(q, dtype=object), np.array(tau, dtype=object)
        if self.remembered:
            ((now,),) = rest
            start = np.full(self.train.n_joints, np.nan, dtype=object)
            start[self.remembered] = now
            motors = self.train.motors(motion, loads, None, start)
        else:
            motors = self.train.motors(motion, loads)
        self.positions = len(motors.position)
        return [*motors.position.tolist(), *motors.effort.tolist()]

    def advanced(self, q: Stack, tau: Stack, deflection: Stack) -> Stack:
        """Return the deflections a period later."""
        assert self.period is not None
        springs = zip(self._transmitted(q, tau), deflection[0])
        return [[spring.advanced(torque, now, self.period) for (spring, torque), now in springs]]

    def settled(self, q: Stack, tau: Stack) -> Stack:
        """Return the deflections at the first call: those of the slow manifold."""
        return [[spring.deflection_under(torque)[0] for spring, torque in self._transmitted(q, tau)]]

    def _transmitted(self, q: Stack, tau: Stack) -> list[tuple[DampedSpring, Array]]:
        result = []
        for j in self.remembered:
            drive = self.train.drives[j]
            assert isinstance(drive.transmission, DampedSpring)
            columns: list[Any] = [np.array([row[j] for row in rows], dtype=object) for rows in (q, tau)]
            torque = drive.transmitted(*[to_taylor(column) for column in columns])
            result.append((drive.transmission, torque))
        return result

    def expected(self, q: Array, tau: Array) -> list[MotorMotion]:
        """Return what must be found for calls one after the other."""
        if self.remembered:
            assert self.period is not None
            motors = self.train.follow(q, tau, self.period).motors
            return [MotorMotion(*one) for one in zip(*motors)]
        return [self.train.feedforward(*one) for one in zip(q, tau)]


def motor_functions(
    robot: Robot, request: ExportRequest, dynamics: CFunction, tables: Tables
) -> list[CFunction]:
    """Write what the motors do, from what `dynamics` takes and gives, and a function that does both."""
    assert robot.drive_train is not None
    drives = _Drives(robot.drive_train, request.period)
    motors = _motor_function(drives, request, dynamics, tables)
    return [motors, _both(drives, dynamics, motors)]


def _motor_function(
    drives: _Drives, request: ExportRequest, dynamics: CFunction, tables: Tables
) -> CFunction:
    motion = "motion" if "motion" in dynamics.results else "q"
    shapes = {**dynamics.inputs, **dynamics.results}
    inputs = {motion: shapes[motion], "tau": shapes["tau"]}
    k = len(drives.remembered)
    remembered = {"deflection": (1, k)} if k else {}
    arguments = {**inputs, **remembered}

    def trace(*stacks: Stack) -> Stack:
        rows = drives.trace(*stacks)
        if k:
            rows.append(drives.advanced(*stacks)[0])
        return rows

    code = TracedLines(trace, arguments, f"the drives of order {request.order}", tables)
    count, (_, n) = len(code.outputs) - k, code.shape
    results = {"position": (drives.positions, n), "effort": (count // n - drives.positions, n)}
    lines, stores = list(code.lines), _stores(code, results)
    fails, helpers, memory = bool(code.conditions) or k > 0, {}, {}
    finite = {**inputs, **({"next": (1, k)} if k else {})}
    if k:
        lines = [*_start(list(inputs), k), *lines]
        lines += code.stores({"next": np.arange(count, count + k)})
        stores = [*copied("memory->deflection", "next", k), "  memory->begun = 1;", *stores]
        settle = TracedLines(drives.settled, inputs, "settle", tables)
        body = [*settle.lines, *settle.stores({"deflection": np.arange(len(settle.outputs))})]
        helpers["settle"] = static_function("settle", inputs, "deflection", body)
        memory["deflection"] = _memory(drives)
    if fails:
        helpers.update(ALL_FINITE)
    return CFunction(
        request.prefix,
        "motor_feedforward",
        inputs,
        results,
        _about(drives, motion, results, fails),
        [*lines, *(_judged(stores, code, finite, request.prefix) if fails else stores)],
        _cases(drives, dynamics, motion, fails),
        remembers=memory,
        fails=fails,
        operations=code.operations,
        helpers=helpers,
    )


def _stores(code: TracedLines, results: Mapping[str, Shape]) -> list[str]:
    """Write into results, whose rows come one after the other."""
    ends = np.cumsum([rows * columns for rows, columns in results.values()])
    return code.stores(dict(zip(results, np.split(np.arange(ends[-1]), ends[:-1]))))


def _judged(stores: Sequence[str], code: TracedLines, finite: Mapping[str, Shape], prefix: str) -> list[str]:
    """Write them where all that has to hold does, and numbers are finite; else that a call fails."""
    return [*unless(code.conditions, finite, prefix), *stores, f"  return {prefix.upper()}_OK;"]


def _start(inputs: Sequence[str], k: int) -> list[str]:
    """Write where the deflections of this call come from."""
    return [
        f"  double deflection[{k}];",
        f"  double next[{k}];",
        "  int i;",
        "  if (memory->begun) {",
        *[f"  {line}" for line in copied("deflection", "memory->deflection", k)],
        "  } else {",
        f"    settle({', '.join(inputs)}, deflection);",
        "  }",
    ]


def _memory(drives: _Drives) -> Memory:
    names = ", ".join(drives.train.joint_names[j] for j in drives.remembered)
    members = [
        f"/* [rad or m] of the damped springs of {names}, at the next call */",
        f"double deflection[{len(drives.remembered)}];",
        "int begun; /* whether there was a call; the first one finds the springs settled */",
    ]
    start = [f"memory->deflection[{i}] = 0.0;" for i in range(len(drives.remembered))]
    return Memory(members, [*start, "memory->begun = 0;"])


def _both(drives: _Drives, dynamics: CFunction, motors: CFunction) -> CFunction:
    """Write the function that calls one after the other; where either fails, nothing changes."""
    prefix, macro = dynamics.prefix, dynamics.prefix.upper()
    remembers = {**dynamics.remembers, **motors.remembers}
    fails = dynamics.fails or motors.fails
    about = [
        f"Both in one call: {dynamics.full_name}, then {motors.full_name} of what it gives.",
        *(["Where either fails, results and memory stay as they were."] if fails else []),
    ]
    if not fails:
        lines = [f"  {dynamics.call()};", f"  {motors.call()};"]
    else:
        own = sizes(dynamics.results)
        passed = {name: f"found_{name}" for name in own}
        read = {name: text for name, text in passed.items() if name in motors.inputs}
        first = dynamics.call(passed, "&next")
        second = motors.call(read, "&next")
        lines = [
            *[f"  double found_{name}[{size}];" for name, size in own.items()],
            *([f"  {prefix}_memory next;"] if remembers else []),
            f"  int code = {macro}_OK;",
            "  int i;",
            *(["  next = *memory;"] if remembers else []),
        ]
        lines += checked(first, prefix) if dynamics.fails else [f"  {first};"]
        if motors.fails:
            lines += [f"  if ({second} == {macro}_FAILED) {{", f"    return {macro}_FAILED;", "  }"]
        else:
            lines.append(f"  {second};")
        for name, size in own.items():
            lines += copied(name, f"found_{name}", size)
        lines += ["  *memory = next;"] if remembers else []
        lines.append("  return code;")
    return CFunction(
        prefix,
        BOTH,
        dynamics.inputs,
        {**dynamics.results, **motors.results},
        about,
        lines,
        _cases_of_both(drives, dynamics, motors),
        remembers=remembers,
        fails=fails,
        operations=dynamics.operations + motors.operations,
    )


def _about(drives: _Drives, motion: str, results: dict[str, Shape], fails: bool) -> list[str]:
    train, names = drives.train, drives.train.joint_names
    about = [
        f"{motion} and tau: as taken and given by the inverse dynamics.",
        "position: of the motors, reflected to the link side, with derivatives up to order "
        f"{results['position'][0] - 1}.",
        "effort: of the motors, reflected to the link side, with derivatives up to order "
        f"{results['effort'][0] - 1}: their inertia, what their friction takes, and what their transmission "
        "asks for.",
    ]
    if train.n_motors > train.n_joints:
        about.append(f"Motors, in the order of both: {', '.join(train.motor_names)}.")
    if drives.remembered:
        about.append(
            f"Called every {drives.period!r} s: the deflections of the damped springs of "
            f"{', '.join(names[j] for j in drives.remembered)} are remembered. They go on exactly where "
            "torques are their Taylor polynomials until the next call."
        )
    elif train.damped.any():
        about.append("Damped springs: the deflection on which all motions settle.")
    if train.commanded.any():
        held = ", ".join(
            f"{stiffness:g} N.m/rad of {names[j]}"
            for j, stiffness in enumerate(train.stiffness)
            if train.commanded[j]
        )
        about.append(f"Variable stiffness is held at {held}.")
    if fails:
        about.append("Fails where a spring would have to give what it cannot: beyond its table, or slack.")
    return about


def _cases(drives: _Drives, dynamics: CFunction, motion: str, fails: bool) -> Cases:
    """Take the calls of the dynamics that succeed, with torques that the drives can give."""
    values = {**dynamics.cases.inputs, **dynamics.cases.results}
    failing = dynamics.cases.failing
    q, torques = values[motion][failing:], values["tau"][failing:]
    result, tau = _within(drives, q, torques)
    inputs, results = {motion: q, "tau": tau}, _motor_results(result)
    of_rounded = _motor_results(drives.expected(rounded(q), rounded(tau)))
    cases = Cases(inputs, results, rounding_error=rounding_error(results, of_rounded))
    return cases.after_failure() if fails else cases


def _within(drives: _Drives, q: Array, torques: Array) -> tuple[list[MotorMotion], Array]:
    for share in _SHARES:
        try:
            return drives.expected(q, share * torques), share * torques
        except InputError as error:
            rejected = error
    raise rejected


def _motor_results(result: Sequence[MotorMotion]) -> dict[str, Array]:
    return {name: np.array([getattr(one, name) for one in result]) for name in ("position", "effort")}


def _cases_of_both(drives: _Drives, dynamics: CFunction, motors: CFunction) -> Cases:
    """Take the calls of the dynamics; those whose torques the drives cannot give must fail."""
    cases = dynamics.cases
    values = {**cases.inputs, **cases.results}
    motion = next(name for name in motors.inputs if name != "tau")
    codes = list(cases.codes) if dynamics.fails else [OK] * cases.count
    for i in range(cases.failing, cases.count):
        try:
            drives.expected(values[motion][i : i + 1], values["tau"][i : i + 1])
        except InputError:
            codes[i] = FAILED
    good = [i for i, code in enumerate(codes) if code != FAILED]
    results = {
        name: np.where(np.array(codes)[:, None, None] == FAILED, 0.0, x) for name, x in cases.results.items()
    }
    for name, (rows, n) in motors.results.items():
        results[name] = np.zeros((cases.count, rows, n))
    if good:
        result = _motor_results(drives.expected(values[motion][good], values["tau"][good]))
        for name, rates in result.items():
            results[name][good] = rates
    return Cases(
        cases.inputs, results, tuple(codes), cases.failing, cases.rounding_error + motors.cases.rounding_error
    )


def rotor_feedforward(robot: Robot, request: ExportRequest, tables: Tables) -> CFunction:
    """Write torques of the links, and positions and efforts of the motors, from the motion of the links.

    Raises InputError where damped springs would have to remember, or numbers are too many.
    """
    rotors, order, n = RotorCoupling(robot), request.order, robot.n_coordinates
    if request.period is not None and rotors.train.damped.any():
        raise InputError(
            f"robot {robot.name!r} has damped springs and rotors that turn with the bodies that carry them: "
            "its springs do not remember; leave out the period"
        )
    highest = int(rotors.needed_orders(order).max()) + 2
    count = order - 1 if rotors.train.elastic.any() else order + 1
    results = {"tau": (order + 1, n), "position": (order + 1, n), "effort": (count, n)}

    def trace(q: Stack) -> Stack:
        return [row for part in rotors.traced_feedforward(q, order) for row in part]

    inputs = {"q": (highest + 1, n)}
    code = TracedLines(trace, inputs, f"the feedforward of order {order}", tables)
    fails, stores = bool(code.conditions), _stores(code, results)
    return CFunction(
        request.prefix,
        BOTH,
        inputs,
        results,
        [
            words.motion(highest),
            f"tau: joint torques (forces) on the link side and their derivatives up to order {order}.",
            f"position: of the motors, reflected to the link side, with derivatives up to order {order}.",
            f"effort: of the motors, reflected to the link side, with derivatives up to order {count - 1}.",
            "Rotors turn with the bodies that carry them, in torques and efforts.",
            *(["Fails where a spring would have to give what it cannot: beyond its table."] if fails else []),
        ],
        [*code.lines, *(_judged(stores, code, inputs, request.prefix) if fails else stores)],
        _rotor_cases(robot, rotors, order, highest, fails),
        fails=fails,
        operations=code.operations,
        helpers=ALL_FINITE if fails else {},
    )


def _rotor_cases(robot: Robot, rotors: RotorCoupling, order: int, highest: int, fails: bool) -> Cases:
    """Choose motions that get slower with the order, as torques hold high powers of it."""
    random, slower = Random(1), 0.5 ** np.arange(highest + 1)[:, None]
    chosen = [slower * motions.joint_motion(robot, highest + 1, random) for _ in range(motions.COUNT)]
    result = [rotors.feedforward(q, order) for q in chosen]
    results = {
        "tau": np.array([torques for torques, _ in result]),
        "position": np.array([motors.position for _, motors in result]),
        "effort": np.array([motors.effort for _, motors in result]),
    }
    cases = Cases({"q": np.array(chosen)}, results)
    return cases.after_failure() if fails else cases
