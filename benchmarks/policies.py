"""Policies on drives that take position, velocity, gains and torque: faults, and how well an arm follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import NamedTuple, Protocol

import numpy as np

from benchmarks import qdd_arm
from benchmarks.chunk_streams import SPACING, Chunk, Fault, Policy, with_fault
from benchmarks.peers.chunk_blending import LipoMotion, RailMotion
from benchmarks.qdd_arm import HOME, KD, KP, STEP, QddPlant
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.streaming import (
    ChunkBounds,
    ChunkCheck,
    ChunkError,
    ChunkExecutor,
    DriveCommand,
    ExecutorConfig,
)

PERIOD = 0.002  # [s] between two commands
LEAD = 0.5 * (PERIOD - STEP)  # [s] to the mean of the instants at which drives look where they are meanwhile
_BEGINS = 0.8  # [s] when chunks come; the arm is held before
_SETTLED = 2.0  # [s] from when on is compared
_STREAM = 20  # chunks of a stream that is checked


class Campaign(NamedTuple):
    """What the check has found in many streams."""

    missed: int  # faults
    flagged: int  # sound streams
    named: int  # faults that were called by their name
    seconds: list[float]  # of the check of each chunk


def campaign(streams: int, first_seed: int = 0) -> Campaign:
    """Check sound streams, and as many with a fault of each kind in turn."""
    missed = flagged = named = 0
    seconds: list[float] = []
    names = tuple(f"joint_{j + 1}" for j in range(len(HOME)))
    words = {Fault.NAN: "numbers"}
    for number in range(streams):
        seed = first_seed + number
        policy, recorded = Policy(HOME, seed), Policy(HOME, 1_000_000 + seed)
        bounds = ChunkBounds.of_actions(
            [recorded.chunk(t).positions for t in np.arange(0.0, 10.0, 0.5)], SPACING
        )
        chunks, fault = policy.stream(0.0, _STREAM), list(Fault)[number % len(Fault)]
        flagged += any(_checked(names, bounds, chunks, seconds))
        faulty, place = with_fault(chunks, fault, seed)
        found = _checked(names, bounds, faulty, seconds)[place]
        missed += found is None
        named += found == words.get(fault, fault.value)
    return Campaign(missed, flagged, named, seconds)


def _checked(
    names: tuple[str, ...], bounds: ChunkBounds, chunks: Sequence[Chunk], seconds: list[float]
) -> list[str | None]:
    check = ChunkCheck(names, bounds)
    check.restart(HOME, -1.0)
    found: list[str | None] = []
    for chunk in chunks:
        started = process_time()
        try:
            check(chunk.times, chunk.positions)
            found.append(None)
        except ChunkError as error:
            found.append(error.fault.value)
        seconds.append(process_time() - started)
    return found


# how arms follow


class Follower(Protocol):
    """What makes commands for drives of chunks."""

    def take(self, times: Array, positions: Array, now: float) -> object:
        """Take a chunk."""

    def command(self, now: float, position: Array, velocity: Array) -> tuple[DriveCommand | None, Array]:
        """Return what drives are sent, and where the links are to be (n,)."""


class Executed:
    """This project."""

    def __init__(self, robot: Robot, policy: Policy) -> None:
        bounds = ChunkBounds.of_actions([policy.chunk(t).positions for t in range(10)], SPACING)
        config = ExecutorConfig(guard=GuardConfig(measured=True, lead=LEAD))
        self.executor = ChunkExecutor(robot, qdd_arm.gains(), bounds, config)

    def take(self, times: Array, positions: Array, now: float) -> object:
        """Take a chunk."""
        return self.executor.take(times, positions, now)

    def command(self, now: float, position: Array, velocity: Array) -> tuple[DriveCommand | None, Array]:
        """Return what drives are sent, and where the links are to be (n,)."""
        self.executor.measure(now, position, velocity)
        command = self.executor.command(now)
        return command, self.executor.desired(now, 0)[0] if command else HOME


class Blended:
    """A motion that is continuous to the acceleration, with torques and sags (n,) of the arm for it."""

    def __init__(
        self, motion: RailMotion | LipoMotion, torque_and_sag: Callable[[Array], tuple[Array, Array]]
    ) -> None:
        self._motion, self._torque_and_sag = motion, torque_and_sag

    def take(self, times: Array, positions: Array, now: float) -> object:
        """Take a chunk."""
        return self._motion.take(times, positions, now)

    def command(self, now: float, position: Array, velocity: Array) -> tuple[DriveCommand | None, Array]:
        """Return what drives are sent, and where the links are to be (n,)."""
        middle = self._motion.at(now + LEAD)
        torque, sag = self._torque_and_sag(middle)
        command = DriveCommand(middle[0] + sag, middle[1], KP, KD, torque)
        return command, self._motion.at(now)[0]


class Record(NamedTuple):
    """What became of a stream."""

    times: Array  # (N,) [s]
    links: Array  # (N, n) [rad]
    wanted: Array  # (N, n) [rad]
    commands: list[float]  # seconds for each command
    chunks: list[float]  # seconds for each chunk


def follow(follower: Follower, chunks: Sequence[Chunk], duration: float, softer: float = 0.0) -> Record:
    """Let the plant follow chunks; it is held by its brakes until there are commands."""
    plant, waiting = QddPlant(HOME, softer), list(chunks)
    rows: list[tuple[float, Array, Array]] = []
    commands, taken = [], []
    for k in range(round(duration / PERIOD)):
        now = PERIOD * k
        while waiting and waiting[0].arrival <= now:
            chunk = waiting.pop(0)
            started = process_time()
            follower.take(chunk.times, chunk.positions, now)
            taken.append(process_time() - started)
        started = process_time()
        command, wanted = follower.command(now, *plant.drives)
        commands.append(process_time() - started)
        rows.append((now, plant.links, wanted))
        if command is not None:
            plant.advance(PERIOD, command)
    times, links, desired = zip(*rows, strict=True)
    return Record(np.array(times), np.stack(links), np.stack(desired), commands, taken)


def errors(record: Record) -> float:
    """Return the RMS [rad] of what links are off the motion that is asked of them."""
    late = record.times > _SETTLED
    return float(np.sqrt(np.mean((record.links - record.wanted)[late] ** 2)))


def delay_and_distance(record: Record, policy: Policy) -> tuple[float, float]:
    """Return the delay [s] behind the policy at which links are nearest to it, and the RMS [rad] of that."""
    late = record.times > _SETTLED
    times, links = record.times[late], record.links[late]
    delays = np.arange(-0.05, 0.1, 1e-3)
    sizes = [float(np.sqrt(np.mean((links - policy.means(times - _BEGINS - d)) ** 2))) for d in delays]
    best = int(np.argmin(sizes))
    return float(delays[best]), sizes[best]


def measure(stage: Stage) -> Section:
    """Check streams with faults, and compare how a plant follows sound ones."""
    stage.say("policies: faults", 0.0)
    found = campaign(100)
    stage.say("policies: an arm follows", 0.3)
    robot, rigid = qdd_arm.robot(), qdd_arm.weight_robot()
    duration = 4.0 if stage.quick else 8.0
    policy = Policy(HOME, 7)
    chunks = [
        each._replace(arrival=each.arrival + _BEGINS, times=each.times + _BEGINS)
        for each in policy.stream(0.0, round((duration - _BEGINS) / 0.1))
    ]
    torques_of = {
        "weight": lambda q: (rigid.gravity_torque(q[:1])[0], np.zeros(len(HOME))),
        "all torques": lambda q: (_rigid_torques(rigid, q)[1], np.zeros(len(HOME))),
        "all torques and sags": lambda q: _with_sag(robot, rigid, q),
    }

    def ours() -> Executed:
        return Executed(robot, Policy(HOME, 1_000_007))

    records = {"ours": follow(ours(), chunks, duration)}
    for peer, kind in (("VLA-RAIL", RailMotion), ("LiPo", LipoMotion)):
        for name, torques in torques_of.items():
            records[f"{peer}, {name}"] = follow(Blended(kind(HOME), torques), chunks, duration)
    best = "VLA-RAIL, all torques and sags"
    softer = {
        "ours": follow(ours(), chunks, duration, 0.2),
        best: follow(Blended(RailMotion(HOME), torques_of["all torques and sags"]), chunks, duration, 0.2),
    }
    off = {name: errors(record) for name, record in records.items()}
    behind = {name: delay_and_distance(record, policy) for name, record in records.items()}
    off_softer = {name: errors(record) for name, record in softer.items()}
    apart = max(abs(delay - behind["ours"][0]) for delay, _ in behind.values())
    return Section(
        "policies on drives that take position, velocity, gains and torque",
        [
            _row("100 streams with a fault: not caught", "none", found.missed, "", Bound(0.0)),
            _row("100 sound streams: flagged", "one", found.flagged, "", Bound(1.0)),
            _row("check of a chunk of 50 points: median", "", 1e3 * median(found.seconds), "ms", Bound(1.0)),
            _row(
                "check of a chunk of 50 points: the slowest of a hundred",
                "",
                1e3 * float(np.percentile(found.seconds, 99.0)),
                "ms",
                Bound(1.0),
            ),
            _row("a command: median", "", 1e3 * median(records["ours"].commands), "ms", Bound(1.0)),
            _row("a chunk: check and plan, median", "", 1e3 * median(records["ours"].chunks), "ms"),
            *(
                _row(
                    "elastic plant: errors of links",
                    f"{name}: {1e3 * size:.3g} mrad, ours {1e3 * off['ours']:.3g}",
                    off["ours"] / size,
                    "×",
                    Bound(0.1),
                )
                for name, size in off.items()
                if name != "ours"
            ),
            _row(
                "springs 20 % softer than modelled: errors of links",
                f"{best}: {1e3 * off_softer[best]:.3g} mrad, ours {1e3 * off_softer['ours']:.3g}",
                off_softer["ours"] / off_softer[best],
                "×",
            ),
            _row(
                "delay behind the policy, of others",
                ", ".join(f"{name} {1e3 * d:.0f} ms, {1e3 * r:.2g} mrad" for name, (d, r) in behind.items()),
                1e3 * apart,
                "ms",
                Bound(10.0),
            ),
        ],
    )


def _rigid_torques(rigid: Robot, motion: Array) -> tuple[Array, Array]:
    """Return the torques (n,) of links and of motors for a motion (3, n) of an arm as if it were rigid."""
    padded = np.concatenate([motion, np.zeros((2, motion.shape[1]))])
    links = rigid.inverse_dynamics(padded)
    return links[0], rigid.require_drives().feedforward(padded, links).effort[0]


def _with_sag(robot: Robot, rigid: Robot, motion: Array) -> tuple[Array, Array]:
    links, motors = _rigid_torques(rigid, motion)
    return motors, links / robot.require_drives().stiffness


def _row(work: str, against: str, value: float, unit: str, must: Bound | None = None) -> Row:
    return Row(work, against, Figure.exact(value), must=must, unit=unit)
