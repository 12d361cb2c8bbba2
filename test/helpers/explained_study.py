"""Whether a guard takes efforts of sound feedforwards for explained by their motion, and of false ones not.

    python test/helpers/explained_study.py plans 20      the fastest motions of elastic robots on random paths
    python test/helpers/explained_study.py streams 1000  what follows random points, with all its limits
    python test/helpers/explained_study.py faults 2000   false feedforwards of the fastest motions of a Panda

Each is asked twice: with the deflections of the springs, and without, as if the links moved as the motors do.
Everything follows from seeds; `--first` is the first of them.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from random_points import HOME, anything, follow, largest_usage, panda

from hodyn_ros import Robot, share
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import FeedforwardMode, Reference, motor_reference
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.guard.feedforward_stream import FeedforwardStream
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.guard.guarded_robot import effort_model, guard_limits
from hodyn_ros.guard.reasons import Fault, StreamError
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.streams.tracking_planner import TrackingPlanner
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.trajectory import WaypointSpline

MS = 1_000_000  # [ns]
PERIOD = 1e-3  # [s]
EPOCH = 1_700_000_000 * 1000 * MS
SPARSE = 3  # periods between two messages of a stream of points
SPREAD = 0.5  # of the range of each joint that waypoints are drawn from
_NO_BASE = np.empty((0, 6))


def kuka() -> Robot:
    """The KR300, whose first three axes are elastic, with limits of the usual size, which its file lacks."""
    robot = Robot.load(share.find("config", "kuka_kr300.yaml"))
    effort = np.array([12e3, 16e3, 12e3, 4e3, 4e3, 3e3])
    limits = JointLimits(np.full(6, -2.0), np.full(6, 1.5), np.full(6, 2.0), effort, 20.0 * effort)
    return Robot(robot.model, limits, robot.drive_train, robot.frames)


def soft_panda() -> Robot:
    """A Panda with springs that harden, four times softer, and friction of its motors."""
    robot, specs = panda(limited=False), []
    for spec in robot.require_drives().specs:
        rubs = FrictionSpec(1.0, 0.5, 0.05)
        specs.append(
            DriveSpec(0.25 * spec.stiffness, spec.motor_inertia, cubic_stiffness=1e5, motor_friction=rubs)
        )
    return robot.with_drives(specs)


ROBOTS: dict[str, Callable[[], Robot]] = {
    "Panda": lambda: panda(limited=False),
    "KR300": kuka,
    "palletiser": lambda: Robot.load(share.find("config", "palletiser.yaml")),
    "Panda, soft springs that harden": soft_panda,
}


def drives(robot: Robot) -> DriveTrain:
    return robot.require_drives()


def feedforwards(robot: Robot, q: Array) -> list[Feedforward]:
    """Feedforwards of order 2 for coordinates (N, 5, n)."""
    state = robot.drive_state(q)
    motors = drives(robot).feedforward(state.motion, state.efforts)
    rows = zip(state.efforts, motors.position, motors.effort)
    return [Feedforward(*each, _NO_BASE) for each in rows]


def references(robot: Robot, found: Sequence[Feedforward]) -> list[Reference]:
    """What nodes make of them."""
    return [motor_reference(FeedforwardMode.ELASTIC, drives(robot), one) for one in found]


def stiff(reference: Reference) -> Reference:
    """The same, as if the links moved as the motors do."""
    return Reference(reference.positions, reference.efforts)


@cache
def checked(robot: Robot) -> Callable[[], FeedforwardStream]:
    """Return what makes the check of a guard of a robot."""
    names = robot.driven_joints
    model, limits = effort_model(robot, names, motor=True), guard_limits(robot, names, motor=True)
    assert model is not None and np.isfinite(limits.mismatch).any()
    fastest = 1.1 * np.asarray(limits.velocity)
    return lambda: FeedforwardStream(names, GuardConfig(), fastest, limits, model)


def unexplained(
    stream: FeedforwardStream, found: Sequence[Reference], begins: int = 0, apart: int = 1
) -> list[int]:
    """Which of some references, so many milliseconds apart, are rejected: nothing explains their efforts."""
    rejected = []
    for k, reference in enumerate(found, begins):
        now = EPOCH + k * apart * MS
        try:
            stream.take(now, now, reference, Status.OK, following=True)
        except StreamError as error:
            if error.reason.fault is Fault.EFFORT_STEP:
                rejected.append(k)
    return rejected


class Rejected(NamedTuple):
    """How many messages there were, and how many were rejected."""

    messages: int
    now: int
    without: int  # deflections


def rejected(robot: Robot, q: Array, apart: int = 1) -> Rejected:
    """Ask the guard about a sound motion (N, 5, n)."""
    found = references(robot, feedforwards(robot, q))
    now = unexplained(checked(robot)(), found, apart=apart)
    without = unexplained(checked(robot)(), list(map(stiff, found)), apart=apart)
    return Rejected(len(found), len(now), len(without))


@cache
def plan(robot: Robot, seed: int) -> Array:
    """The fastest motion (N, 5, n) along a path through three to six random waypoints."""
    random, limits = np.random.default_rng(seed), robot.limits
    lower, upper = limits.position_lower, limits.position_upper
    count, spread = int(random.integers(3, 7)), SPREAD
    while True:
        points = 0.5 * (lower + upper) + spread * (upper - lower) * (random.random((count, len(lower))) - 0.5)
        times = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        path = WaypointSpline(times, points)
        places = path.sample(np.linspace(0.0, path.duration, 1000), 0)[:, 0]
        if (places > lower).all() and (places < upper).all():
            break
        spread *= 0.97  # splines overshoot
    fastest = time_optimal(path, robot)
    return np.asarray(fastest.motion.trajectory.sample(np.arange(0.0, fastest.duration, PERIOD), 4))


def followed_points(seed: int) -> tuple[Robot, Array]:
    """A Panda, and the motion (N, 6, n) that follows a random stream of points."""
    robot = panda(seed % 2 == 0)
    planner = TrackingPlanner(robot, HOME, 0.0)
    messages = sorted(anything(np.random.default_rng(seed)), key=lambda each: each.arrival)
    last = messages[-1].arrival + 0.05
    motion, _ = follow(planner, messages, last, SPARSE * PERIOD)
    ends = planner.sample(np.arange(last, planner.ends + 0.01, SPARSE * PERIOD), 5)
    return robot, np.concatenate([motion, ends])


# what is false

WINDOW, BEFORE = 500, 50  # [ms] in which a fault has to be seen; that the stream is sound before


class Wrong(NamedTuple):
    """What is false from a millisecond on, of which joint, and by how much."""

    kind: str
    begins: int
    joint: int
    amount: float

    def __str__(self) -> str:
        return f"{self.kind} {self.amount:.3g} of joint {self.joint + 1} at {self.begins} ms"


LOADS = (0.5, 1.0, 2.0, 5.0, 10.0)  # [kg]
TURNS = (0.1, 0.3, 1.0, 3.1)  # [rad] of gravity
KINDS = (
    *("offset", "times", "freezes", "another joint's", "swings", "one spike"),
    *("one spike of its acceleration", "times, all", "motion stands", "late", "payload", "gravity turned"),
)


def fault_of(seed: int, length: int) -> Wrong:
    """Draw a fault."""
    random = np.random.default_rng([30, seed])
    kind, begins = str(random.choice(KINDS)), int(random.integers(BEFORE, length - 50))
    amount = {
        "payload": lambda: float(random.choice(LOADS)),
        "gravity turned": lambda: float(random.choice(TURNS)),
        "offset": lambda: float(random.choice([-1.0, 1.0]) * 10.0 ** random.uniform(0.0, 2.0)),
        "swings": lambda: float(10.0 ** random.uniform(0.0, 2.0)),
        "one spike": lambda: float(10.0 ** random.uniform(0.0, 2.0)),
        "one spike of its acceleration": lambda: float(10.0 ** random.uniform(3.0, 6.0)),
        "late": lambda: float(random.integers(2, 200)),
    }.get(kind, lambda: float(random.uniform(-1.0, 3.0)))()
    return Wrong(kind, begins, int(random.integers(7)), amount)


@cache
def other_panda(kind: str, amount: float) -> Robot:
    """A Panda as whoever computes the feedforward takes it to be."""
    robot = panda(limited=False)
    if kind == "payload":
        return robot.with_tree(Payload(amount).on_tree(robot))
    down = 9.81 * np.array([np.sin(amount), 0.0, -np.cos(amount)])
    return robot.with_tree(robot.tree.with_gravity(down))


def falsified(found: Sequence[Feedforward], wrong: Wrong, q: Array) -> list[Feedforward]:
    """Return the feedforwards from `BEFORE` a fault to `WINDOW` after it, false from the fault on."""
    first, last = wrong.begins - BEFORE, min(wrong.begins + WINDOW, len(found))
    if wrong.kind in ("payload", "gravity turned"):
        others = feedforwards(other_panda(wrong.kind, wrong.amount), q[wrong.begins : last])
        return [*found[first : wrong.begins], *others]
    result, here = list(found[first : wrong.begins]), found[wrong.begins]
    for k in range(wrong.begins, last):
        one = found[k]
        if wrong.kind == "late":  # the efforts alone
            other = found[max(k - int(wrong.amount), 0)]
            one = one._replace(efforts=other.efforts, motor_efforts=other.motor_efforts)
        elif wrong.kind == "motion stands":
            rest = here.motor_positions.copy()
            rest[1:] = 0.0
            one = one._replace(motor_positions=rest)
        else:
            one = one._replace(
                efforts=_rows(one.efforts, here.efforts, wrong, 1e-3 * (k - wrong.begins)),
                motor_efforts=_rows(one.motor_efforts, here.motor_efforts, wrong, 1e-3 * (k - wrong.begins)),
            )
        result.append(one)
    return result


def _rows(true: Array, here: Array, wrong: Wrong, t: float) -> Array:
    """Return efforts (orders, n) that are false."""
    rows, j, a = true.copy(), wrong.joint, wrong.amount
    if wrong.kind == "offset":
        rows[0, j] += a
    elif wrong.kind == "times":
        rows[:, j] *= a
    elif wrong.kind == "times, all":
        rows *= a
    elif wrong.kind == "freezes":
        rows[:, j] = 0.0
        rows[0, j] = here[0, j]
    elif wrong.kind == "another joint's":
        rows[:, j] = true[:, (j + 1) % true.shape[1]]
    elif wrong.kind == "swings":  # at 20 Hz
        w = 40.0 * np.pi
        swing = a * np.array([np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)])
        rows[:, j] += swing[: len(rows)]
    elif wrong.kind == "one spike" and t == 0.0:
        rows[0, j] += a
    elif wrong.kind == "one spike of its acceleration" and t == 0.0 and len(rows) > 2:
        rows[2, j] += a
    return rows


class Seen(NamedTuple):
    """After how many milliseconds a fault was seen, None where it was not; and whether alarms were false.

    A rejection in a moment in which the sound motion is rejected as well is no sight of the fault.
    """

    now: int | None
    without: int | None
    alarms: tuple[bool, bool]


def seen(wrong: Wrong, q: Array) -> Seen:
    """Ask the guard about false feedforwards along a motion."""
    robot, found = panda(limited=False), _of_plan(q.tobytes(), len(q))
    spoilt, first = falsified(found, wrong, q), wrong.begins - BEFORE
    after, alarms = list[int | None](), list[bool]()
    for change in (lambda reference: reference, stiff):
        false, sound = (
            unexplained(checked(robot)(), list(map(change, references(robot, given))), first)
            for given in (spoilt, found[first : first + len(spoilt)])
        )
        alarms.append(bool(sound))
        after.append(next((k - wrong.begins for k in false if k not in sound), None))
    return Seen(after[0], after[1], (alarms[0], alarms[1]))


@cache
def _of_plan(q: bytes, count: int) -> list[Feedforward]:
    return feedforwards(panda(limited=False), np.frombuffer(q).reshape(count, 5, 7))


# tables


def print_plans(seeds: range) -> None:
    """Print how many messages of the fastest motions are rejected."""
    print("| robot | motions | messages | rejected | without deflections |", flush=True)
    print("| --- | --- | --- | --- | --- |")
    for name, make in ROBOTS.items():
        robot = make()
        found = [rejected(robot, plan(robot, seed)) for seed in seeds]
        few, many = min(one.without for one in found), max(one.without for one in found)
        total = [sum(column) for column in zip(*found)]
        print(f"| {name} | {len(found)} | {total[0]} | {total[1]} | {few} to {many} a motion |", flush=True)


def print_streams(seeds: range) -> None:
    """Print how many messages of motions that follow random points are rejected."""
    total, spoilt, most = np.zeros(3, dtype=int), Counter[str](), 0.0
    for seed in seeds:
        robot, motion = followed_points(seed)
        usage, limit = largest_usage(robot, motion)
        found, most = rejected(robot, np.ascontiguousarray(motion[:, :5]), SPARSE), max(most, usage)
        total += np.array(found)
        spoilt.update(now=found.now > 0, without=found.without > 0)
        if usage > 1.0 + 1e-6:
            print(f"seed {seed}: {usage} of {limit}", flush=True)
        if seed % 50 == 49 or found.now:
            print(f"to seed {seed}: {total.tolist()} {dict(spoilt)}, {most} of a limit", flush=True)
    print(f"{len(seeds)} streams, {total[0]} messages: {total[1]} rejected in {spoilt['now']} streams,")
    print(f"without deflections {total[2]} in {spoilt['without']}; at most {most:.6f} of a limit is used")


def print_faults(seeds: range) -> None:
    """Print how many faults are seen."""
    table: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    robot = panda(limited=False)
    for seed in seeds:
        q = plan(robot, seed % 5)
        wrong = fault_of(seed, len(q))
        found, count = seen(wrong, q), table[wrong.kind]
        count.update(all=1, now=found.now is not None, without=found.without is not None)
        count.update(alarms=found.alarms[0], alarms_without=found.alarms[1])
        if found.now is None and found.without is not None:
            count["lost"] += 1
            print(f"not seen any more: seed {seed}, {wrong}, was after {found.without} ms", flush=True)
        if found.now is not None and found.without is None:
            count["won"] += 1
        if seed % 50 == 49:
            print(f"to seed {seed}: {dict(sum(table.values(), Counter()))}", flush=True)
    print("| false | cases | seen | seen without deflections | won | lost | false alarms | without |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    sums: Counter[str] = sum(table.values(), Counter())
    for kind, count in (*table.items(), ("all", sums)):
        names = ("all", "now", "without", "won", "lost", "alarms", "alarms_without")
        print(f"| {kind} | {' | '.join(str(int(count[name])) for name in names)} |")


def main() -> None:
    """Print a table."""
    what = {"plans": print_plans, "streams": print_streams, "faults": print_faults}
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("what", choices=what)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    what[given.what](range(given.first, given.first + given.count))


if __name__ == "__main__":
    main()
