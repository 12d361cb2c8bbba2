"""What an elastic Panda in MuJoCo carries, found from two seconds of ordinary motion.

Springs and friction of the plant differ by 20 % from what the observer is told; it has moved for some seconds
without a load before. In a second study each robot has errors of its own at each joint, drawn with the
deviations that the observer is told, with half of these and with twice as much, which says whether intervals
hold as many loads as they promise. Sensors are those of `benchmarks.contacts`, of which positions and efforts
count: velocities come through a pole of 2 ms there, and what that is late grows with the load. figaroh (PyPI)
beside it identifies the arm from the seconds without a load, by motors and their efforts, and the load from
the same two seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.contacts import CASES, DAMPING, PERIOD, Recording, recorded, robot_with_friction, wrong
from benchmarks.peers.figaroh_rigid import Figaroh, identified
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.observers.payload import PayloadEstimate, PayloadEstimator

LOADS = 200
SIZES = (1.0, 0.5, 2.0)  # of errors, in deviations that the observer is told
_SEED = 3000  # of the first motion without a load; those of loads and of motions with them follow
_DRAWN, _PER_ROBOT = 5000, 4  # first seed of drawn robots, and how many loads each of them carries
_BEFORE, _LASTS = 8.0, 2.0  # [s] without the load, and with it
_SUNK = 300  # samples after which the arm has sunk into its springs
_CUTOFFS = (5.0, 20.0)  # [Hz] of figaroh's filter; the one counts that is nearer
_MEASURED = Sensed(links=True, motors=True, motor_efforts=True, rates=False)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A load and what was found of it."""

    truth: Array  # (10,) mass [kg], centre [m], inertia about it xx, yy, zz, xy, xz, yz [kg m^2]
    estimate: PayloadEstimate
    peer: Array  # (cutoffs, 4) mass and centre as figaroh finds them; no rows where it is not installed

    @property
    def mass_error(self) -> float:
        """Of the mass, relative."""
        return float(abs(self.estimate.values[0] / self.truth[0] - 1.0))

    @property
    def centre_error(self) -> float:
        """The largest of the centre's coordinates that the motion has shown [m]."""
        errors = np.abs(self.estimate.values[1:4] - self.truth[1:4])
        return float(errors[self.estimate.shown[1:4]].max(initial=0.0))

    @property
    def inside(self) -> Array:
        """Whether each figure lies in its interval (10,)."""
        low, high = self.estimate.intervals.T
        return np.asarray((low <= self.truth) & (self.truth <= high))


def random_load(random: np.random.Generator) -> tuple[Payload, Array]:
    """Return a box of 0.3 to 3 kg with its centre near the flange, and its figures."""
    mass = float(np.exp(random.uniform(np.log(0.3), np.log(3.0))))
    centre = np.array([0.0, 0.0, 0.1]) + random.uniform(-0.06, 0.06, 3)
    sides = random.uniform(0.04, 0.2, 3)
    moments = mass / 12.0 * (np.sum(sides**2) - sides**2)
    turn, _ = np.linalg.qr(random.standard_normal((3, 3)))
    inertia = turn @ np.diag(moments) @ turn.T
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    xx, yy, zz, xy, xz, yz = (float(inertia[pair]) for pair in pairs)
    payload = Payload(mass, tuple(centre.tolist()), (xx, xy, xz, yy, yz, zz))
    return payload, np.array([mass, *centre, xx, yy, zz, xy, xz, yz])


def outcomes(count: int, stage: Stage) -> Iterator[Outcome]:
    """Yield what is found of some loads, by robots at the corners of 20 %."""
    robot = robot_with_friction()
    for c, case in enumerate(CASES):
        plant = wrong(robot, *case)
        before = _moved(robot, plant, _SEED + c, _BEFORE)
        watching, arms = _Watching(robot, _samples_of(before)), _arms(robot, before)
        for i in range(c, count, len(CASES)):
            stage.say("loads", i / count)
            truth, run = _carried(robot, plant, _SEED + 100 + i, _SEED + 1000 + i)
            found = watching.found(_samples_of(run))
            yield Outcome(truth, found, np.array([_by_figaroh(arm, run) for arm in arms]))


def drawn(
    count: int, size: float, first: int = _DRAWN, say: Callable[[float], None] | None = None
) -> Iterator[Outcome]:
    """Yield what is found of some loads, by robots whose errors are drawn (`wrong_at_random`)."""
    robot = robot_with_friction()
    for i in range(count):
        if i % _PER_ROBOT == 0:
            plant = wrong_at_random(robot, size, np.random.default_rng(first + i))
            before = _samples_of(_moved(robot, plant, first + i, _BEFORE))
            watching = _Watching(robot, before)
        if say is not None:
            say(i / count)
        truth, run = _carried(robot, plant, first + 100_000 + i, first + 200_000 + i)
        yield Outcome(truth, watching.found(_samples_of(run)), np.zeros((0, 4)))


def wrong_at_random(robot: Robot, size: float, random: np.random.Generator) -> Robot:
    """Return a robot whose springs, viscous and Coulomb friction are off, at each joint on its own.

    By normal deviations, `size` times what `ObserverConfig` says by default; three at most, and none by more
    than half.
    """
    config, specs = ObserverConfig(), []
    for spec in robot.require_drives().specs:
        spring, viscous, coulomb = np.clip(random.standard_normal(3), -3.0, 3.0)
        share = size * config.friction_deviation
        rub = spec.motor_friction
        specs.append(
            replace(
                spec,
                stiffness=spec.stiffness
                * (1.0 + np.clip(size * config.stiffness_deviation * spring, -0.5, 0.5)),
                spring_damping=DAMPING * spec.stiffness,
                motor_friction=replace(
                    rub,
                    viscous=rub.viscous * (1.0 + np.clip(share * viscous, -0.5, 0.5)),
                    coulomb=rub.coulomb * (1.0 + np.clip(share * coulomb, -0.5, 0.5)),
                ),
            )
        )
    return robot.with_drives(specs)


def _carried(robot: Robot, plant: Robot, load: int, seed: int) -> tuple[Array, Recording]:
    """Return the figures of a load by the one seed, and a motion with it by the other."""
    payload, truth = random_load(np.random.default_rng(load))
    return truth, _moved(robot, plant.with_tree(payload.on_tree(plant)), seed, _LASTS + 0.3)


def _moved(robot: Robot, plant: Robot, seed: int, lasts: float) -> Recording:
    """Let a plant move, by the first of some seeds whose motion keeps away from the ends of its joints."""
    while True:
        try:
            return recorded(robot, plant, 0, seed, lasts, explicit=True)
        except ValueError:
            seed += 10_000


def _samples_of(run: Recording) -> Array:
    """Return the samples (N, rows, n) of the observer."""
    return np.stack([run.links, run.motors, run.efforts], axis=1)


def _arms(robot: Robot, run: Recording) -> list[Figaroh]:
    """Return what figaroh makes of the arm without a load; nothing where it is not installed."""
    times = PERIOD * np.arange(len(run.motors), dtype=np.float64)
    try:
        return [identified(robot, times, run.motors, run.efforts, cutoff) for cutoff in _CUTOFFS]
    except ImportError:
        return []


def _by_figaroh(arm: Figaroh, run: Recording) -> Array:
    motors, efforts = run.motors[_SUNK:], run.efforts[_SUNK:]
    return arm.load(PERIOD * np.arange(len(motors), dtype=np.float64), motors, efforts)


class _Watching:
    """An estimator that has seen a robot move without a load (N, rows, n), and nothing of other loads."""

    def __init__(self, robot: Robot, before: Array) -> None:
        times = PERIOD * np.arange(len(before), dtype=np.float64)
        config = ObserverConfig(held_efforts=True, smoothing=200.0, inertia_deviation=0.0)
        noise = MomentumObserver(robot, config, _MEASURED).noise_of(times, before)
        self._observer = MomentumObserver(robot, replace(config, effort_noise=noise), _MEASURED)
        self._estimator = PayloadEstimator(self._observer)
        self._time = 0.0
        for sample in before:
            self._update(sample)
        self._known = self._observer._memory, self._estimator._memory

    def _update(self, sample: Array) -> PayloadEstimator:
        self._time += PERIOD
        self._estimator.update(self._observer.update(self._time, sample))
        return self._estimator

    def estimates(self, run: Array) -> Iterator[PayloadEstimator]:
        """Take a load along a motion (N, rows, n), and yield the estimator after each sample."""
        self._time += 1.0
        self._observer._memory, self._estimator._memory = (memory.copy() for memory in self._known)
        self._estimator.restart()
        yield from map(self._update, run[_SUNK:])

    def found(self, run: Array) -> PayloadEstimate:
        """Return what is known of a load at the end."""
        for estimator in self.estimates(run):
            last = estimator
        return last.estimate


def measure(stage: Stage) -> Section:
    """Find loads, and time an update."""
    count = 8 if stage.quick else LOADS
    found = list(outcomes(count, stage))
    masses = np.array([100.0 * one.mass_error for one in found])
    centres = np.array([1e3 * one.centre_error for one in found])
    inside = np.array([one.inside for one in found])
    heavy = np.argsort([one.truth[0] for one in found])[-(count // 4) :]
    rows = [
        Row("error of the mass, 95 % of the loads", "", _share(masses, 95), must=Bound(2.0), unit="%"),
        Row("error of the mass, median", "", _share(masses, 50), unit="%"),
        Row("error of the centre where shown, 95 %", "", _share(centres, 95), must=Bound(5.0), unit="mm"),
        Row("error of the centre where shown, median", "", _share(centres, 50), unit="mm"),
        Row("masses within intervals of 95 %", "", _part(inside[:, 0]), must=Bound(90.0, True), unit="%"),
        Row("centres within them", "", _part(inside[:, 1:4]), must=Bound(90.0, True), unit="%"),
        Row("inertias within them", "", _part(inside[:, 4:]), must=Bound(90.0, True), unit="%"),
        Row("all, of the heaviest quarter", "", _part(inside[heavy]), must=Bound(90.0, True), unit="%"),
        *(row for size in SIZES for row in _of_drawn(count, size, stage)),
        *_of_figaroh(found),
        _time(stage),
    ]
    return Section(f"{count} loads of 0.3 to 3 kg, from 2 s of motion of an elastic Panda", rows)


def _of_drawn(count: int, size: float, stage: Stage) -> list[Row]:
    """Return how good intervals are where errors have a size, of that which the observer is told."""
    found = list(drawn(count, size, say=lambda done: stage.say(f"drawn errors, {size:g}", done)))
    masses = np.array([100.0 * one.mass_error for one in found])
    inside = 100.0 * np.array([one.inside for one in found]).mean(axis=0)
    heavy = np.argsort([one.truth[0] for one in found])[-(count // 4) :]
    name, told = f"errors drawn with {size:g} of what is told", size == 1.0
    covered = Figure(float(inside[:4].mean()), float(inside[:4].min()), float(inside[:4].max()))
    return [
        Row(f"{name}: error of the mass, all", "", _share(masses, 100), must=Bound(2.0), unit="%"),
        Row(f"{name}: mass and centre within 95 %", "", covered,
            must=Bound(92.0, True) if told else None, unit="%"),
        Row(f"{name}: inertias", "", _part(np.array([one.inside[4:] for one in found])), unit="%"),
        Row(f"{name}: mass and centre of the heaviest quarter", "",
            _part(np.array([found[i].inside[:4] for i in heavy])), unit="%"),
    ]  # fmt: skip


def _of_figaroh(found: Sequence[Outcome]) -> list[Row]:
    """Return how far off figaroh is on the same two seconds."""
    peers = np.array([one.peer for one in found])
    if not peers.size:
        return [Row("figaroh on the same two seconds", "", None, note="figaroh is not installed")]
    truths = np.array([one.truth[:4] for one in found])[:, None]
    masses = np.abs(peers[..., 0] / truths[..., 0] - 1.0)
    best = int(np.median(masses, axis=0).argmin())
    centres = np.abs(peers - truths)[:, best, 1:].max(axis=1)
    return [
        Row("figaroh's error of the mass, 95 %", "", _share(100.0 * masses[:, best], 95), unit="%"),
        Row("figaroh's error of the mass, median", "", _share(100.0 * masses[:, best], 50), unit="%"),
        Row("figaroh's error of the centre, 95 %", "", _share(1e3 * centres, 95), unit="mm"),
        Row("figaroh's error of the centre, median", "", _share(1e3 * centres, 50), unit="mm"),
    ]


def draw(path: Path) -> None:
    """Draw what is known of a load as the arm moves on."""
    from matplotlib.figure import Figure as Picture

    from hodyn_ros.pictures import legend_below, plain, save_picture

    robot, random = robot_with_friction(), np.random.default_rng(100)
    plant = wrong(robot, *CASES[0])
    payload, truth = random_load(random)
    before = _samples_of(recorded(robot, plant, 0, 7, _BEFORE))
    run = _samples_of(recorded(robot, plant.with_tree(payload.on_tree(plant)), 0, 1000, _LASTS + 0.3))
    estimates = enumerate(_Watching(robot, before).estimates(run))
    found = [(PERIOD * i, estimator.estimate) for i, estimator in estimates if i % 20 == 0]
    picture = Picture(figsize=(10.5, 4.6), layout="constrained")
    mass, centre = picture.subplots(1, 2)
    along, lines = [time for time, _ in found], []
    for axes, places, scale in ((mass, (0,), 1.0), (centre, (1, 2, 3), 1e3)):
        for place, colour in zip(places, ("#0077BB", "#EE7733", "#009988")):
            values = scale * np.array([one.values[place] for _, one in found])
            ends = scale * np.array([one.intervals[place] for _, one in found])
            axes.fill_between(along, *ends.T, color=colour, alpha=0.15, linewidth=0.0)
            lines += axes.plot(along, values, color=colour, linewidth=1.5)
            truth_line = axes.axhline(scale * truth[place], color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel("time of motion with the load [s]")
        plain(axes)
    mass.set_ylim(0.0, 1.5 * truth[0])
    centre.set_ylim(-100.0, 220.0)
    mass.set_ylabel("mass [kg]")
    centre.set_ylabel("centre of mass [mm]")
    names = ["mass, and its interval of 95 %", "x", "y", "z of the centre", "as it is"]
    legend_below(picture, [*lines, truth_line], names)
    picture.suptitle("A load found by a Panda whose springs and friction are 20 % off")
    save_picture(picture, path)


def _share(values: Array, percent: float) -> Figure:
    found = float(np.percentile(values, percent))
    return Figure(found, float(values.min()), float(values.max()))


def _part(inside: Array) -> Figure:
    found = 100.0 * float(inside.mean())
    return Figure.exact(found)


def _time(stage: Stage) -> Row:
    robot = robot_with_friction()
    observer = MomentumObserver(robot, ObserverConfig(), _MEASURED)
    estimator = PayloadEstimator(observer)
    q = 0.5 * (robot.limits.position_lower + robot.limits.position_upper)
    sample = np.stack([q, q, 0 * q])
    said = [observer.update(PERIOD * i, sample) for i in range(4)]
    for one in said:
        estimator.update(one)
    spaces = {"estimator": estimator, "found": said[-1]}
    times = stage.race("payload", [python_call("payload", "estimator.update(found)", spaces)])
    seconds = times.seconds("payload")
    micro = Figure(*(1e6 * value for value in (seconds.median, seconds.low, seconds.high)))
    return Row("an update from Python", "", micro, must=Bound(20.0), unit="µs")


if __name__ == "__main__":
    draw(Path("docs/pictures/payload.png"))
