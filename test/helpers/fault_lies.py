"""What can be false between feedforwards, a guard and a robot, how, and from when on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from fault_bench import Bench, Feed, Inject, Measured, Moment, motion_of, robot_of

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.payload import Payload

Rows = Callable[[float, Array], Array]  # takes the time [s] since the lie began, and what is true (orders, n)
Message = Any  # Feed or Measured: both have a stamp

JOINTS = 7
FOR_GOOD = 10**6  # [ms]

# Signals are rows of a message, by derivative: what is done to the first is done to the others as it should.
MEASURED = {
    "measured position": slice(0, 1),
    "measured velocity": slice(1, 2),
    "measured motion": slice(0, 2),
}
MOTION = {
    "feedforward position": slice(0, 1),
    "feedforward velocity": slice(1, 2),
    "feedforward acceleration": slice(2, 3),
    "feedforward motion": slice(0, None),
    "feedforward": slice(0, None),
}
EFFORT = {
    "feedforward effort": slice(0, 1),
    "feedforward effort rate": slice(1, 2),
    "feedforward higher effort rates": slice(2, None),
    "feedforward efforts": slice(0, None),
    "feedforward": slice(0, None),
}
SIGNALS = tuple(dict.fromkeys((*MEASURED, *MOTION, *EFFORT)))
# Powers of ten between which an offset is drawn, in the unit of the signal: rad, rad/s, rad/s^2, N.m, ...
SIZES = {
    "measured position": (-3.0, 0.5),
    "measured velocity": (-2.0, 1.0),
    "measured motion": (-3.0, 0.5),
    "feedforward position": (-3.0, 0.5),
    "feedforward velocity": (-2.0, 1.0),
    "feedforward acceleration": (0.0, 4.0),
    "feedforward motion": (-3.0, 0.5),
    "feedforward": (-3.0, 0.5),
    "feedforward effort": (-0.5, 2.3),
    "feedforward effort rate": (1.0, 5.0),
    "feedforward higher effort rates": (2.0, 7.0),
    "feedforward efforts": (-0.5, 2.3),
}
BAD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e30)
KINDS = (
    *("freezes", "zero", "turned about zero", "turned", "swapped", "times", "times about here", "offset"),
    *("drifts", "one spike", "spikes", "noise", "late", "filtered", "not a number", "quantised"),
    "freezes but for noise",
)
STREAM_KINDS = (
    *("lost", "duplicated", "out of order", "late", "every nth", "stamps off", "stamps zero"),
    *("stamps freeze", "stamps run", "stamps noisy"),
)
ROBOT_KINDS = ("turned", "swapped", "weak", "friction", "stiffness", "payload", "blocked", "pushed")


@dataclass(frozen=True)
class Lie:
    """What is false (`signal`), how (`kind`, `amount` in its unit), of which joints, from when and how long.

    Joints are counted from 0. `begins` [ms] after the moment of the case, `lasts` [ms].
    """

    signal: str
    kind: str
    joints: tuple[int, ...] = ()
    amount: float = 0.0
    begins: int = 0
    lasts: int = FOR_GOOD

    def __str__(self) -> str:
        joints = "" if not self.joints else " of joint" + "s" * (len(self.joints) > 1)
        names = "all" if len(self.joints) == JOINTS else ", ".join(str(j + 1) for j in self.joints)
        amount = f" {self.amount:.3g}" if self.amount else ""
        since = f" from {self.begins} ms on" if self.begins else ""
        ends = f" for {self.lasts} ms" if self.lasts < FOR_GOOD else ""
        return f"{self.signal}{joints} {names}".rstrip() + f": {self.kind}{amount}{since}{ends}"

    @property
    def silent(self) -> int:
        """How long nothing is commanded [ms], before anything can be seen."""
        return int(self.amount) if self.kind.startswith("held up") else 0

    def injector(self, moment: int, number: int) -> Inject:
        """Return what is done to each millisecond of a case since `moment` [ms]; it has its own memory."""
        begins, act = moment + self.begins, self._act(np.random.default_rng([self.begins, number]))

        def inject(bench: Bench, each: Moment) -> None:
            since = each.k - begins
            if 0 <= since < self.lasts:
                act(bench, each, since)

        return inject

    def _act(self, random: np.random.Generator) -> Callable[[Bench, Moment, int], None]:
        if self.signal in SIGNALS:
            return _rows_of(self, random)
        if self.signal in ("measurements", "feedforwards"):
            return _stream(self, random)
        found: Callable[[Bench, Moment, int], None] = OTHERS[self.signal](self, random)
        return found


# values


def _rows_of(lie: Lie, random: np.random.Generator) -> Callable[[Bench, Moment, int], None]:
    measured, motion, effort = (false_rows(lie, random) for _ in range(3))
    torque = false_rows(lie, np.random.default_rng(0))

    def act(bench: Bench, moment: Moment, since: int) -> None:
        t = 1e-3 * since
        if lie.signal in MEASURED:
            moment.measured = [_measured(one, lie.signal, t, measured) for one in moment.measured]
        else:
            moment.feed = [_fed(feed, lie.signal, t, motion, effort, torque) for feed in moment.feed]

    return act


def _measured(one: Measured, signal: str, t: float, false: Rows) -> Measured:
    assert one.velocity is not None
    rows, part = np.stack([one.position, one.velocity]), MEASURED[signal]
    rows[part] = false(t, rows[part].copy())
    return Measured(one.stamp, rows[0], rows[1])


def _fed(feed: Feed, signal: str, t: float, motion: Rows, effort: Rows, torque: Rows) -> Feed:
    """Deflections follow from the torques of the links, which are as false as the efforts of the motors."""
    positions, efforts, bent = (rows.copy() for rows in feed.reference)
    stiffness = robot_of("motors").require_drives().stiffness
    torques = stiffness * bent if len(bent) else bent
    falsified = (positions, MOTION, motion), (efforts, EFFORT, effort), (torques, EFFORT, torque)
    for rows, parts, false in falsified:
        if signal in parts and len(rows):
            rows[parts[signal]] = false(t, rows[parts[signal]].copy())
    return feed._replace(reference=Reference(positions, efforts, torques / stiffness if len(bent) else bent))


def false_rows(lie: Lie, random: np.random.Generator) -> Rows:
    """Return what makes rows (orders, n) of a signal and its derivatives false; it is called in order."""
    at, a, first, queue = list(lie.joints), lie.amount, [], []

    def false(t: float, rows: Array) -> Array:
        first[:] = first or [rows.copy()]
        here = np.zeros_like(rows)
        here[0] = first[0][0]
        new = rows.copy()
        if lie.kind == "freezes":
            new[:, at] = here[:, at]
        elif lie.kind == "freezes but for noise":
            new[:, at] = here[:, at] + random.normal(scale=a, size=(len(rows), len(at)))
        elif lie.kind == "zero":
            new[:, at] = 0.0
        elif lie.kind == "turned about zero":
            new[:, at] *= -1.0
        elif lie.kind == "turned":
            new[:, at] = 2.0 * here[:, at] - rows[:, at]
        elif lie.kind == "swapped":
            new[:, at] = rows[:, at[::-1]]
        elif lie.kind == "times":
            new[:, at] *= a
        elif lie.kind == "times about here":
            new[:, at] = here[:, at] + a * (rows - here)[:, at]
        elif lie.kind in ("offset", "one spike", "spikes"):
            every = {"offset": 1, "one spike": FOR_GOOD, "spikes": 20}[lie.kind]
            new[0, at] += a * (round(1e3 * t) % every == 0)
        elif lie.kind == "drifts":
            new[0, at] += a * t
            new[1:2, at] += a
        elif lie.kind == "noise":
            new[0, at] += random.normal(scale=a, size=len(at))
        elif lie.kind == "not a number":
            new[0, at] = a
        elif lie.kind == "quantised":
            new[0, at] = a * np.round(rows[0, at] / a)
        elif lie.kind == "filtered":  # by a lag of first order
            first[0] = first[0] + (rows - first[0]) / (1.0 + 1e3 * a)
            new[:, at] = first[0][:, at]
        elif lie.kind == "late":
            queue.append(rows)
            new[:, at] = queue[max(len(queue) - 1 - int(a), 0)][:, at]
        return new

    return false


# messages


def _stream(lie: Lie, random: np.random.Generator) -> Callable[[Bench, Moment, int], None]:
    change = false_stream(lie, random)

    def act(bench: Bench, moment: Moment, since: int) -> None:
        if lie.signal == "measurements":
            moment.measured = change(moment.measured, since)
        else:
            moment.feed = change(moment.feed, since)

    return act


def false_stream(lie: Lie, random: np.random.Generator) -> Callable[[list[Message], int], list[Message]]:
    a, kept, first = lie.amount, [], []

    def change(messages: list[Message], since: int) -> list[Message]:
        if messages:
            first[:] = first or [messages[0].stamp]
        if lie.kind == "lost":
            return [each for each in messages if random.uniform() >= a]
        if lie.kind == "duplicated":
            return [each for each in messages for _ in range(2)]
        if lie.kind == "every nth":
            return messages if since % int(a) == 0 else []
        if lie.kind == "out of order":
            kept.extend(messages)
            given = kept[::-1] if since % 2 else []
            kept[:] = [] if given else kept
            return given
        if lie.kind == "late":
            kept.append(messages)
            return kept.pop(0) if len(kept) > int(a) else []
        return [each._replace(stamp=_stamp(lie, each.stamp, first[0], random)) for each in messages]

    return change


def _stamp(lie: Lie, stamp: int, first: int, random: np.random.Generator) -> int:
    if lie.kind == "stamps off":
        return stamp + round(1e9 * lie.amount)
    if lie.kind == "stamps zero":
        return 0
    if lie.kind == "stamps freeze":
        return first
    if lie.kind == "stamps run":
        return first + round(lie.amount * (stamp - first))
    if lie.kind == "stamps noisy":
        return stamp + round(1e9 * random.normal(scale=lie.amount))
    raise KeyError(lie.kind)


# the clock, the process, the robot, and who asks for what

Act = Callable[[Bench, Moment, int], None]


def _clock(lie: Lie, random: np.random.Generator) -> Act:
    def act(bench: Bench, moment: Moment, since: int) -> None:
        off = lie.amount
        if lie.kind == "runs":
            off = 1e-3 * (lie.amount - 1.0) * since
        elif lie.kind == "noisy":
            off = random.normal(scale=lie.amount)
        moment.now += round(1e9 * off)
        if lie.kind != "its own set":  # those who stamp messages go by the same clock
            moment.feed = [each._replace(stamp=each.stamp + round(1e9 * off)) for each in moment.feed]
            moment.measured = [each._replace(stamp=each.stamp + round(1e9 * off)) for each in moment.measured]

    return act


def _elapsed(lie: Lie, random: np.random.Generator) -> Act:
    def act(bench: Bench, moment: Moment, since: int) -> None:
        if moment.elapsed is not None:
            times = lie.kind == "times"
            moment.elapsed = moment.elapsed * lie.amount if times else moment.elapsed + lie.amount

    return act


def _process(lie: Lie, random: np.random.Generator) -> Act:
    """Held up for `amount` [ms], after which it gets all that has come, or the last of it; or always slow."""
    fed: list[Feed] = []
    measured: list[Measured] = []

    def act(bench: Bench, moment: Moment, since: int) -> None:
        fed.extend(moment.feed)
        measured.extend(moment.measured)
        if lie.kind == "runs every nth":
            moment.runs = since % int(lie.amount) == 0
            if moment.runs:
                moment.feed, moment.measured = fed[:], measured[:]
                fed.clear()
                measured.clear()
        elif since < lie.amount:
            moment.runs = False
        elif since == lie.amount:
            last = 1 if lie.kind == "held up, keeps the last" else 50
            moment.feed, moment.measured = fed[-last:], measured[-last:]

    return act


def _status(lie: Lie, random: np.random.Generator) -> Act:
    def act(bench: Bench, moment: Moment, since: int) -> None:
        moment.feed = [feed._replace(status=Status(int(lie.amount))) for feed in moment.feed]

    return act


def _request(lie: Lie, random: np.random.Generator) -> Act:
    def act(bench: Bench, moment: Moment, since: int) -> None:
        if lie.kind == "nobody listens":
            moment.listening = False
        elif lie.kind == "stop":
            moment.stop = moment.stop or since == 0
        else:
            moment.start = moment.start or since % 50 == 0

    return act


def _robot(lie: Lie, random: np.random.Generator) -> Act:
    """As `Differences`, in addition to what differs already."""

    def act(bench: Bench, moment: Moment, since: int) -> None:
        if since:
            return
        now = bench.differs
        if lie.kind in ("friction", "stiffness", "payload"):
            bench.change(replace(now, **{lie.kind: lie.amount}))
        elif lie.kind == "weak":
            bench.change(replace(now, weak=lie.joints, most=lie.amount))
        elif lie.kind == "pushed":
            bench.change(replace(now, pushed=lie.joints, push=lie.amount))
        else:
            bench.change(replace(now, **{lie.kind: lie.joints}))

    return act


@cache
def _believed(kind: str, amount: float, consumer: str) -> Robot:
    """The robot as whoever computes feedforwards takes it to be."""
    robot, train = robot_of(consumer), robot_of(consumer).require_drives()
    if kind == "payload":
        return robot.with_tree(Payload(amount, body="panda_link8").on_tree(robot)).with_drives(train.specs)
    turn = np.deg2rad(amount)
    carried = consumer == "efforts"  # the drives carry the weight themselves: what is left is the mistake
    gravity = 9.80665 * np.array([np.sin(turn), 0.0, carried - np.cos(turn)])
    path = share.find("config", "panda.yaml")
    return Robot.load(path, gravity=gravity).with_drives(train.specs)


def _model(lie: Lie, random: np.random.Generator) -> Act:
    """Feedforwards are those of a robot with a payload [kg], or with gravity that is turned [degrees]."""

    def act(bench: Bench, moment: Moment, since: int) -> None:
        believed = motion_of(_believed(lie.kind, lie.amount, bench.kind), moment.k - bench.delay)
        moment.feed = [feed._replace(reference=believed) for feed in moment.feed]

    return act


OTHERS: dict[str, Callable[[Lie, np.random.Generator], Act]] = {
    "clock": _clock,
    "elapsed": _elapsed,
    "process": _process,
    "status": _status,
    "request": _request,
    "robot": _robot,
    "model": _model,
}


# what is drawn

WHAT = ("value", "stream", "robot", "clock", "elapsed", "process", "status", "request", "model")
SHARES = (0.5, 0.14, 0.12, 0.08, 0.02, 0.05, 0.02, 0.05, 0.02)


def draw(random: np.random.Generator, kind: str) -> Lie:
    """Return what is false, for drives of a kind, as `Consumer.kind`."""
    begins = int(random.choice([0, 0, 0, random.integers(1, 100), random.integers(1, 400)]))
    lasts = int(random.choice([FOR_GOOD, FOR_GOOD, FOR_GOOD, 1, 5, 20, 60, 200]))
    what = random.choice(WHAT, p=SHARES)
    if what == "value":
        return _drawn_value(random, begins, lasts)
    if what == "stream":
        return _drawn_stream(random, begins, lasts)
    if what == "robot":
        return _drawn_difference(random, begins, kind)
    return _drawn_other(random, str(what), begins, lasts)


def _size(random: np.random.Generator, low: float, high: float) -> float:
    """A number of either sign, evenly by its logarithm; two digits, to be read."""
    return float(f"{random.choice([-1.0, 1.0]) * 10.0 ** random.uniform(low, high):.2g}")


def _joints(random: np.random.Generator, some: int | None = None) -> tuple[int, ...]:
    count = some or int(random.choice([1, 1, 1, 2, JOINTS]))
    return tuple(sorted(int(j) for j in random.choice(JOINTS, count, replace=False)))


def _drawn_value(random: np.random.Generator, begins: int, lasts: int) -> Lie:
    signal, kind = str(random.choice(SIGNALS)), str(random.choice(KINDS))
    low, high = SIZES[signal]
    amount = {
        "times": float(random.choice([0.5, 0.9, 1.1, 2.0])),
        "times about here": float(random.choice([0.5, 0.9, 1.1, 2.0])),
        "offset": _size(random, low, high),
        "drifts": _size(random, low + 0.5, high + 0.5),
        "one spike": _size(random, low, high + 0.5),
        "spikes": _size(random, low, high + 0.5),
        "noise": abs(_size(random, low - 2.0, high - 1.0)),
        "quantised": abs(_size(random, low - 1.0, high - 1.0)),
        "late": float(random.integers(2, 51)),
        "freezes but for noise": float(random.choice([1e-6, 1e-5, 1e-4])),
        "filtered": float(random.choice([0.001, 0.003, 0.01, 0.03])),
        "not a number": float(random.choice(BAD)),
    }.get(kind, 0.0)
    return Lie(signal, kind, _joints(random, 2 if kind == "swapped" else None), amount, begins, lasts)


def _drawn_stream(random: np.random.Generator, begins: int, lasts: int) -> Lie:
    signal, kind = str(random.choice(["measurements", "feedforwards"])), str(random.choice(STREAM_KINDS))
    amount = {
        "lost": float(random.choice([0.5, 0.9, 1.0])),
        "late": float(random.integers(2, 51)),
        "every nth": float(random.choice([2, 5, 10, 30])),
        "stamps off": _size(random, -3.0, 1.8),
        "stamps run": float(random.choice([0.5, 0.9, 0.99, 1.01, 1.1, 2.0])),
        "stamps noisy": abs(_size(random, -4.0, -1.5)),
    }.get(kind, 0.0)
    return Lie(signal, kind, (), amount, begins, lasts)


def _drawn_difference(random: np.random.Generator, begins: int, consumer: str) -> Lie:
    kind = str(random.choice(ROBOT_KINDS))
    joints = {"swapped": 2, "turned": 1, "weak": 1, "blocked": 1, "pushed": 1}.get(kind)
    amount = {
        "weak": float(random.choice([1.0, 5.0, 10.0])),
        "friction": float(random.choice([0.0, 0.5, 2.0, 5.0])),
        "stiffness": float(random.choice([0.5, 1.5])),
        "payload": float(random.choice([3.0, 10.0])),
    }.get(kind, 0.0)
    at = _joints(random, joints) if joints else ()
    if kind == "pushed":
        limit = robot_of(consumer).limits.effort[at[0]]
        amount = round(float(random.choice([-0.5, -0.3, 0.1, 0.3, 0.5]) * limit), 1)
    return Lie("robot", kind, at, amount, begins)


def _drawn_other(random: np.random.Generator, signal: str, begins: int, lasts: int) -> Lie:
    kinds = {
        "clock": ("set", "its own set", "runs", "noisy"),
        "elapsed": ("times", "more"),
        "process": ("held up", "held up, keeps the last"),
        "status": ("bits",),
        "request": ("stop", "start", "nobody listens"),
        "model": ("payload", "gravity turned"),
    }
    kind = str(random.choice(kinds[signal]))
    amount = {
        "set": _size(random, -3.0, 1.8),
        "its own set": _size(random, -3.0, 1.8),
        "runs": float(random.choice([0.0, 0.5, 0.9, 1.1, 2.0])),
        "noisy": abs(_size(random, -5.0, -2.0)),
        "times": float(random.choice([0.0, 0.5, 2.0, 10.0, -1.0])),
        "more": _size(random, -3.0, 1.0),
        "bits": float(random.integers(1, 64)),
        "payload": float(random.choice([3.0, 10.0])),
        "gravity turned": float(random.choice([20.0, 90.0, 180.0])),
    }.get(kind, 0.0)
    if signal == "process":
        return Lie(signal, kind, (), float(round(10.0 ** random.uniform(0.3, 2.7))), begins)
    return Lie(signal, kind, (), amount, begins, lasts)


def varied(random: np.random.Generator, lie: Lie) -> Lie:
    """Return a lie like this one: of another size, for another time, of other joints."""
    how = int(random.integers(4))
    if how == 0 and lie.amount and np.isfinite(lie.amount) and lie.kind not in _KINDS_OF_AMOUNT:
        amount = lie.amount * 10.0 ** random.normal(scale=0.3)
        whole = lie.signal == "process" or lie.kind in ("late", "every nth")
        return replace(lie, amount=float(max(round(amount), 1)) if whole else float(f"{amount:.3g}"))
    if how == 1:
        return replace(lie, begins=max(0, lie.begins + int(random.integers(-40, 41))))
    if how == 2 and lie.signal not in ("robot", "process"):
        return replace(lie, lasts=int(random.choice([1, 5, 20, 60, 120, 200, 300, FOR_GOOD])))
    if lie.joints and len(lie.joints) < JOINTS:
        return replace(lie, joints=_joints(random, len(lie.joints)))
    return lie


# Amounts that stand for something, or that another robot has to be compiled for.
_KINDS_OF_AMOUNT = ("bits", "payload", "stiffness", "gravity turned", "pushed")


def habit(random: np.random.Generator) -> Lie:
    """Return what is no fault, and yet may hide one or make it worse."""
    every = tuple(range(JOINTS))
    habits = (
        Lie("measured velocity", "not a number", every, float("nan")),  # none is measured
        Lie("measured position", "noise", every, 1e-4),
        Lie("feedforwards", "every nth", (), float(random.choice([5, 20]))),
        Lie("process", "runs every nth", (), float(random.choice([2, 5]))),
        Lie("request", "start"),  # by somebody impatient
    )
    return habits[int(random.integers(len(habits)))]


# what is no fault


def harmless(random: np.random.Generator, open_loop: bool) -> list[Lie]:
    """Return what a robot has to bear, each drawn: uncertain, noisy, slow, a little late."""
    every = tuple(range(JOINTS))
    signals = [
        Lie("measured position", "noise", every, float(random.choice([1e-5, 3e-5, 1e-4]))),
        Lie("measured position", "quantised", every, float(random.choice([1e-5, 1e-4]))),
        Lie("measured velocity", "noise", every, float(random.choice([1e-3, 1e-2]))),
        Lie("measured velocity", "filtered", every, float(random.choice([0.001, 0.003]))),
        Lie("feedforwards", "every nth", (), float(random.choice([2, 5, 10, 20]))),
        Lie("measurements", "late", (), float(random.integers(1, 4))),
    ]
    if open_loop:
        return signals
    return [
        *signals,
        Lie("robot", "stiffness", (), float(random.choice([0.5, 1.5]))),
        Lie("robot", "friction", (), float(random.choice([0.0, 2.0]))),
        Lie("robot", "payload", (), 3.0),
        Lie("model", "gravity turned", (), float(random.choice([10.0, 15.0, 20.0]))),
    ]


# what nobody can see


class Unseen(NamedTuple):
    """Why a guard cannot see what is false, and what holds then."""

    why: str
    share: float  # of the limit of its speed that no link exceeds; infinite where nobody can say


def unseen(lies: tuple[Lie, ...], drives: str) -> Unseen | None:
    """Return why a guard of `drives`, as `Consumer.kind`, cannot see this; None where it can.

    Steps of the effort keep their bar in every case.
    """
    for lie in lies:
        if lie.signal == "measured motion" and lie.kind == "times about here" and 0.0 < lie.amount < 1.0:
            return Unseen(
                "one lie of position and velocity: the joint moves further than it seems", 1.1 / lie.amount
            )
        if lie.signal == "measured motion" and lie.kind == "drifts" and abs(lie.amount) <= _SLOW:
            return Unseen(
                "one lie of position and velocity: the joint drifts slowly", 1.1 + abs(lie.amount) / 2.175
            )
    robot = {lie.kind for lie in lies if lie.signal == "robot"}
    slow = max((lie.amount for lie in lies if lie.kind == "filtered"), default=0.0)
    if slow and robot & {"turned", "swapped"}:
        return Unseen("a filter hides what a motor does for as long as it delays", 1.1 + _HIDDEN * slow)
    if drives == "references" and robot & {"weak", "payload", "blocked"}:
        return Unseen(
            "drives with a loop of their own cannot hold the robot, with or without a command", np.inf
        )
    if drives == "efforts" and robot & {"payload", "pushed"}:
        return Unseen("nobody holds the robot against its load, with or without a command", np.inf)
    if robot & {"turned", "swapped", "weak", "payload", "pushed"} and any(lie.silent > 5 for lie in lies):
        return Unseen("the process stands still while drives carry out the last command", np.inf)
    blind = {j for lie in lies if lie.signal.startswith("measure") and _blinds(lie) for j in _of(lie)}
    astray = {j for lie in lies if lie.signal == "robot" and lie.kind in _ASTRAY for j in _of(lie)}
    if blind & astray:
        return Unseen("nothing shows that the robot does not do what it is told", np.inf)
    if blind and astray:
        return Unseen("where signals of another joint are false, its speed alone shows it", _ALONE)
    return None


_ALONE = 1.3  # share of its limit; it is let go at 1.16, and a link swings on behind its spring
# Of a robot that does not do what it is told.
_ASTRAY = ("turned", "swapped", "weak", "payload", "pushed", "blocked")


def _of(lie: Lie) -> tuple[int, ...]:
    return lie.joints or tuple(range(JOINTS))


_SLOW = 0.5  # [rad/s]
_HIDDEN = (
    50.0  # [1/s] share of its limit by which the lightest joint gets faster in a second under a false effort
)


_LEAPS = 0.01  # [rad] steps of a measurement that no joint moves by in a millisecond


def _blinds(lie: Lie) -> bool:
    """Whether it leaves no measurement that says anything, or that can be believed any more."""
    leaps = lie.kind in ("quantised", "offset") and abs(lie.amount) > _LEAPS
    return leaps or lie.kind in (
        "lost",
        "late",
        "not a number",
        "freezes",
        "zero",
        "stamps zero",
        "stamps off",
        "stamps freeze",
        "stamps run",
        "swapped",
    )
