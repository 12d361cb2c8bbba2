"""A search for faults that a guard does not see: what x how x which joints x when, up to three at once.

    python test/helpers/fault_campaign.py 2000 --seed 1      the worst 20 of 2,000 cases
    python test/helpers/fault_campaign.py --only 37           one case again, with what the guard said
    python test/helpers/fault_campaign.py 300 --climb 40      the worst of 300, changed until they are worse

Everything follows from the seed. `fault_lies.py` has what can be false; the bars are in `judged`.
"""

import argparse
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from fault_bench import CONTROLLER, EFFORTS, FAULT_AT, REFERENCES, Bench, Consumer, End, Moment
from fault_lies import Lie, Unseen, draw, habit, harmless, unseen, varied

from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.guard_config import State

STEP, SPEED = 2.0, 1.2  # [N.m] in a millisecond; share of the limit
RATE = 1.0  # [N.m] in a millisecond: the `effort_rate` of this robot
HABITS = 0.25  # share of cases in which something is unusual besides, and no fault
REFERENCE = 3.5  # times the limit of the speed: 5 mrad, by which feedforwards may step, beside the speed
LASTS, AT_LEAST = 600, 1200  # [ms] after the last lie has begun; of the run as a whole
LATER = 1000  # [ms] that a motion begins later where the robot has to be at rest
RELEASE = 0.1  # [s] after which efforts go to zero

LOOSE = Consumer("forward efforts, little friction", "efforts", End.ZERO, viscous=1.0)
CONTROLLER_ZERO = Consumer("controller, zero", "motors", End.ZERO)
CONSUMERS = (CONTROLLER, LOOSE, REFERENCES)
# As they are in robot files that state friction and a payload that may come.
STATED = (
    Consumer("controller, stated", "motors", End.HOLD, viscous=2.0, coulomb=1.0, payload=3.0),
    Consumer("motor references, stated", "references", End.HOLD, viscous=2.0, coulomb=1.0, payload=3.0),
)
KNOWN = {each.name: each for each in (*CONSUMERS, CONTROLLER_ZERO, EFFORTS, *STATED)}


# when it happens: a sound run up to there, which all cases share


class When(NamedTuple):
    """A moment in a run: `at` [ms], after another one, and what has happened between the two."""

    at: int
    after: str | None = None
    lie: Lie | None = None
    delay: int = 0  # [ms] that the motion begins later


MOMENTS = {
    "from the start": When(0),
    "joining": When(300),
    "speeding up": When(700, "joining"),
    "at full speed": When(FAULT_AT, "speeding up"),
    "slowing down": When(1600, "at full speed"),
    "at rest": When(700, delay=LATER),
    "setting off": When(700, "at rest", delay=550),
    "just after a gap": When(880, "at rest", Lie("feedforwards", "lost", (), 1.0, 0, 60), LATER),
    "stopping": When(1100, "at full speed", Lie("status", "bits", (), Status.NEAR_SINGULARITY, 0, 5)),
    "stopped": When(1500, "stopping"),
    "stopping for good": When(1100, "at full speed", Lie("request", "stop")),
    "fading to zero": When(1480, "stopping"),
}


@cache
def run_up(consumer: Consumer, moment: str) -> Bench:
    """A sound run up to a moment; to be copied."""
    at, after, lie, delay = MOMENTS[moment]
    if after is None:
        return Bench(consumer, delay=delay, release_after=RELEASE).run(at)
    bench = run_up(consumer, after).copy()
    bench.delay = delay  # it has not begun before either
    return bench.run(at, lie.injector(bench.k, 0) if lie else None)


# one case


@dataclass(frozen=True)
class Case:
    """Whose command it is, when, and what is false then."""

    consumer: str
    moment: str
    lies: tuple[Lie, ...]

    def __str__(self) -> str:
        return f"{self.consumer}, {self.moment}: " + "; ".join(map(str, self.lies))


class Verdict(NamedTuple):
    """How a case ended, against the bars."""

    case: Case
    ratio: float  # of the worst figure to its bar; infinite where an exception or an undefined end came
    step: float  # [N.m] the largest, from what the drives hold
    share: float  # the highest speed of a link, by its limit
    says: str  # what the guard has said, or what has failed
    apart: Unseen | None  # why this cannot be seen, and the bar that holds then

    @property
    def pressure(self) -> float:
        """What a search makes larger: the speed for its bar, as steps of efforts are cut long before."""
        bar = max(SPEED, self.apart.share if self.apart else 0.0)
        return self.ratio if self.beyond else self.share / bar

    @property
    def beyond(self) -> bool:
        """Whether a bar does not hold."""
        return not self.ratio <= 1.0 + 1e-9

    def __str__(self) -> str:
        figures = f"{self.ratio:7.2f}  step {self.step:.2f} N.m, {self.share:.2f} of the limit"
        apart = self.apart
        more = f"\n         cannot be seen: {apart.why}; at most {apart.share:.2f}" if apart else ""
        return f"{figures}  {self.case}\n         {self.says}{more}"


# What was worst once. Whoever finds a worse one puts it here, as the command above prints it.
KEPT: tuple[Case, ...] = (
    Case("controller", "at full speed", (Lie("clock", "its own set", (), -26.0, 0, 60),)),
    Case("controller", "at full speed", (Lie("measured position", "freezes", (1,)),)),
    Case("motor references", "joining", (Lie("process", "held up, keeps the last", (), 78.0, 144),)),
    Case("controller", "at full speed", (Lie("measured velocity", "offset", (1,), 5.0, 0, 1),)),
    Case("controller", "stopping", (Lie("clock", "set", (), 0.05),)),
    Case("motor references", "at full speed", (Lie("feedforward acceleration", "one spike", (1,), 1e4),)),
    Case("motor references", "at full speed", (Lie("clock", "set", (), -0.035, 0, 200),)),
    Case("motor references", "at full speed", (Lie("clock", "set", (), -0.017),)),
    Case("motor references", "speeding up", (Lie("clock", "its own set", (), 0.012, 0, 200),)),
    Case(LOOSE.name, "stopping", (Lie("elapsed", "more", (), -0.0033),)),
    Case(LOOSE.name, "at full speed", (Lie("feedforward effort", "drifts", (6,), 17.0, 0, 200),)),
    Case("motor references", "at full speed", (Lie("process", "held up", (), 60.0),)),
    Case("motor references", "at full speed", (Lie("process", "held up", (), 80.0),)),
    Case(LOOSE.name, "from the start", (Lie("model", "gravity turned", (), 90.0),)),
    Case(LOOSE.name, "from the start", (Lie("feedforward", "times about here", tuple(range(7)), 2.0),)),
    Case(
        "motor references",
        "at full speed",
        (Lie("feedforward position", "freezes", tuple(range(7)), 0.0, 23, 200),),
    ),
    Case(
        "controller",
        "speeding up",
        (Lie("measured motion", "filtered", tuple(range(7)), 0.004, 0, 300), Lie("robot", "swapped", (3, 6))),
    ),
    Case("motor references", "at full speed", (Lie("clock", "noisy", (), 0.0021, 98),)),
    Case("controller", "at full speed", (Lie("robot", "swapped", (3, 5)),)),
    Case("controller", "at full speed", (Lie("robot", "pushed", (3,), 26.1, 252),)),
    Case("controller", "from the start", (Lie("feedforward effort", "not a number", (4,), 1e30),)),
    Case(
        LOOSE.name,
        "from the start",
        (Lie("feedforward effort", "drifts", tuple(range(7)), 380.0, 0, 200),),
    ),
    Case(LOOSE.name, "at full speed", (Lie("elapsed", "times", (), 0.0),)),
    Case(
        "controller",
        "joining",
        (
            Lie("measured position", "times", tuple(range(7)), 1.1, 0, 60),
            Lie("robot", "pushed", (5,), 6.0),
        ),
    ),
    Case(
        "controller",
        "slowing down",
        (
            Lie("clock", "its own set", (), 0.11, 0, 20),
            Lie("robot", "turned", (3,)),
            Lie("measured position", "freezes but for noise", (0, 5), 1e-06, 0, 60),
        ),
    ),
    Case(
        "controller",
        "joining",
        (Lie("measured motion", "not a number", (3,), 1e30, 0, 200), Lie("robot", "pushed", (1,), 45.6, 5)),
    ),
    Case(
        "controller",
        "at full speed",
        (Lie("measured motion", "not a number", (5,), np.nan, 0, 200), Lie("robot", "turned", (3,), 0.0, 5)),
    ),
)


def case_of(seed: int) -> Case:
    """Return the case of a seed."""
    random = np.random.default_rng([27, seed])
    consumer, moment = CONSUMERS[seed % 3], str(random.choice(list(MOMENTS)))
    if moment == "fading to zero":
        consumer = LOOSE if consumer is LOOSE else CONTROLLER_ZERO
    count = int(random.choice([1, 1, 1, 2, 2, 3]))
    lies = [draw(random, consumer.kind) for _ in range(count)]
    if random.uniform() < HABITS:
        lies.insert(0, habit(random))
    return Case(consumer.name, moment, tuple(lies))


def stands(bench: Bench) -> bool:
    """Whether nothing more can happen: the commands have ended, and the robot is at rest; or all is lost."""
    at_rest = bench.guard.ended and bench.held is None and not bench.simulation.velocity.any()
    return bool(at_rest or np.max(bench.record.shares[-1:], initial=0.0) > 10.0)


def run(case: Case, lasts: int | None = None) -> tuple[Bench, str]:
    """Let a case happen; the record begins at its moment. Returns an exception in words, too."""
    bench = run_up(KNOWN[case.consumer], case.moment).copy()
    begins = bench.k
    injectors = [lie.injector(begins, i) for i, lie in enumerate(case.lies)]

    def inject(bench: Bench, moment: Moment) -> None:
        for each in injectors:
            each(bench, moment)

    last = max(lie.begins + lie.silent for lie in case.lies)
    until = max(begins + last + LASTS, AT_LEAST) if lasts is None else begins + last + lasts
    try:
        with np.errstate(all="ignore"):  # huge numbers are what is tried
            bench.run(until, inject, lambda now: now.k > begins + last + 200 and stands(now))
    except Exception as error:  # any, as that is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return bench, f"{type(error).__name__}: {error} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})"
    return bench, ""


def judged(case: Case, lasts: int | None = None) -> Verdict:
    """Let a case happen, and hold it against the bars; see `verdict`."""
    return verdict(case, *run(case, lasts))


def verdict(case: Case, bench: Bench, failed: str) -> Verdict:
    """Hold what has come out of a case, and the exception in words, against the bars.

    No effort steps by more than 2 N.m, or what `effort_rate` allows in a period of the process, from what the
    drives hold, but where a guard lets go; references of drives with a loop of their own likewise by no
    more than the guard lets two feedforwards disagree. No link is faster than 1.2 times its limit.
    Every command is finite and within the limits, and where there is none, the guard says that it waits, has
    ended, or has stopped.
    """
    record, guard = bench.record, bench.guard
    share = float(np.max(record.shares, initial=0.0))
    says = "; ".join(str(change.reason) for change in record.transitions) or f"{guard.state.value}, nothing"
    failed = failed or _undefined(bench)
    apart = unseen(case.lies, bench.kind)
    period = max([lie.amount for lie in case.lies if lie.kind == "runs every nth"], default=1.0)  # [ms]
    ratio = max(record.step / max(STEP, RATE * period), share / max(SPEED, apart.share if apart else 0.0))
    if bench.kind == "references":
        ratio = max(ratio, max(record.position_steps, default=0.0) / REFERENCE)
    if failed:
        ratio, says = np.inf, f"{failed}; {says}"
    return Verdict(case, ratio, record.step, share, says, apart)


def _undefined(bench: Bench) -> str:
    """Return in words what is wrong with the commands themselves."""
    limits = bench.robot.limits.effort
    for command in bench.record.commands:
        if command is None:
            continue
        if not np.isfinite(np.concatenate(command[:3])).all():
            return "a command is not finite"
        if (np.abs(command.effort) > limits * (1 + 1e-9)).any():
            return "a command is beyond the limits of the efforts"
    moment, guard = bench.record.streams[-1], bench.guard
    silent = bench.record.commands[-1] is None and moment.runs and moment.listening
    if silent and not guard.ended and guard.state not in (State.WAITING, State.STOPPED):
        return f"nothing is commanded while the guard is {guard.state.value}"
    return ""


# what is no fault


def sound_case(seed: int) -> Case:
    """Return a case of a seed that must not stop the robot: what is uncertain, noisy, slow or a little late.

    Open-loop efforts bring no robot to the motion that differs from its file: there signals differ alone.
    """
    random = np.random.default_rng([28, seed])
    consumer = (*STATED, EFFORTS)[seed % 3]
    count = int(random.integers(1, 4))
    chosen = random.permutation(harmless(random, open_loop=consumer is EFFORTS))[:count]
    return Case(consumer.name, "from the start", tuple(chosen))


def stopped(case: Case) -> str:
    """Return in words why a case has stopped, or where it is too fast; empty where it followed to the end."""
    bench, failed = run(case, lasts=2400)
    changes = bench.record.transitions
    if failed or [change.after for change in changes] != [State.JOINING, State.FOLLOWING]:
        return f"{case}: {failed} " + "; ".join(str(change.reason) for change in changes)
    return f"{case}: {bench.record.share}" if bench.record.share > 1.0 else ""


def campaign(seeds: range, workers: int = 1) -> Iterator[Verdict]:
    """Judge the cases of seeds, in their order."""
    cases = map(case_of, seeds)
    if workers == 1:
        yield from map(judged, cases)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(judged, cases, chunksize=10)


def climb(case: Case, steps: int, random: np.random.Generator) -> Verdict:
    """Change a case step by step into one whose links are faster for their bar; return the worst."""
    best = judged(case)
    for _ in range(steps):
        lies, drives = list(best.case.lies), KNOWN[best.case.consumer].kind
        which = int(random.integers(len(lies)))
        if random.uniform() < 0.15 and len(lies) < 3:
            lies.append(draw(random, drives))
        elif random.uniform() < 0.1 and len(lies) > 1:
            del lies[which]
        else:
            lies[which] = varied(random, lies[which])
        other = judged(replace(best.case, lies=tuple(lies)))
        if other.pressure >= best.pressure:
            best = other
    return best


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("count", type=int, nargs="?", default=500, help="how many cases")
    arguments.add_argument("--seed", type=int, default=0, help="of the first case")
    arguments.add_argument("--worst", type=int, default=20, help="how many are shown")
    arguments.add_argument("--workers", type=int, default=2, help="processes")
    arguments.add_argument("--only", type=int, help="run the case of this seed alone")
    arguments.add_argument("--climb", type=int, default=0, help="steps from each of the worst to a worse one")
    given = arguments.parse_args()
    if given.only is not None:
        print(repr(case_of(given.only)), judged(case_of(given.only)), sep="\n")
        return
    found = []
    for seed, each in enumerate(
        campaign(range(given.seed, given.seed + given.count), given.workers), given.seed
    ):
        found.append((seed, each))
        if each.beyond:
            print(seed, each, flush=True)
    for name, group in (
        ("worst", [pair for pair in found if not pair[1].apart]),
        ("worst of what cannot be seen", [pair for pair in found if pair[1].apart]),
    ):
        beyond = sum(each.beyond for _, each in group)
        print(f"\n{name}: {beyond} of {len(group)} cases are beyond the bars")
        for seed, each in sorted(group, key=lambda pair: -pair[1].ratio)[: given.worst]:
            print(f"{seed:6d} {each}")
    for seed, each in sorted(found, key=lambda pair: -pair[1].pressure)[: given.worst if given.climb else 0]:
        print("climbs", seed, climb(each.case, given.climb, np.random.default_rng(seed)), flush=True)


if __name__ == "__main__":
    main()
