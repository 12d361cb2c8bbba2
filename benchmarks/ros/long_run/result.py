"""What a long run has shown: losses, delays, memory and processor time, and which bounds do not hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.ros.long_run.measure import SAMPLES
from benchmarks.ros.long_run.witness import COLUMNS, REPORTS, TOPICS, file_of
from benchmarks.stopwatch import Array

Rows = NDArray[np.int64]  # of the witness

LARGEST_GROWTH = 8.0  # [MiB] of a process within an hour, once warmed up
PERCENTS = (50.0, 99.0, 99.9, 100.0)

_WARM_UP = 600.0  # [s], a fifth of the time at most, for which memory is not judged
_SHORTEST = 600.0  # [s]; what a run shorter than that grows by, says little
_EDGE = 1.0  # [s] at both ends, in which an answer may be missing as it came before or after

# Ways through the nodes by the topics at their ends; both have the stamp of the motion.
ANSWERS = {
    "desired motion to feedforward": ("desired_motion", "feedforward_torque"),
    "feedforward to corrected feedforward": ("feedforward_torque", "corrected_feedforward_torque"),
}
COMMANDS = ("measurement to command", "motor_states", "effort_commands")  # without a stamp: the next one
SILENCE = 0.05  # [s] without one message of any node: the machine has held all of them up
HELD = 0.1  # [s] that drives hold a command; a measurement without one for so long is of a robot that stands

# What nodes count in /diagnostics of messages that did not come, that were not taken, and not sent in time.
_COUNTS = {
    "lost": re.compile(r"lost"),
    "rejected": re.compile(r"^rejected( \w+)?$"),
    "stops": re.compile(r"^stopped for"),
    "not sent in time": re.compile(r"^(skipped|missed)$"),
}
BOUND = ("lost", "rejected", "stops")  # of which there is to be none


@dataclass(frozen=True)
class LongRun:
    """One run. Delays are in seconds, memory is in MiB, times are those of the machine [s]."""

    name: str
    seconds: float
    rates: Mapping[str, float]  # messages per second of each topic
    sent: Mapping[str, int]  # messages of each topic
    delays: Mapping[str, Array]  # by way, of each message in turn; inf: no answer
    delays_at: Mapping[str, Array]  # when each was asked [s], from the begin on
    silent: Array  # how long nobody has sent anything [s], of `SILENCE` at least
    stolen: float  # what the host of a virtual machine has kept from all its processors [s]
    unheard: int  # messages that did not reach the witness
    counts: Mapping[str, Mapping[str, int]]  # by kind of _COUNTS; by node and what it counts
    times: Array  # of the samples [s], from the begin on
    load: Array  # processes that want a processor, by sample
    memory: Mapping[str, Array]
    processor: Mapping[str, Array]  # processors in use, between two samples

    @property
    def growth(self) -> dict[str, float]:
        """What each process grows by in an hour, by the straight line through its samples [MiB]."""
        warm = self.times >= min(_WARM_UP, 0.2 * self.seconds)
        slope = {name: np.polyfit(self.times[warm], each[warm], 1)[0] for name, each in self.memory.items()}
        return {name: 3600.0 * float(each) for name, each in slope.items()}

    @property
    def unanswered(self) -> dict[str, int]:
        """Motions without an answer, by way."""
        return {way: int(np.isinf(self.delays[way]).sum()) for way in ANSWERS}

    def broken(self) -> list[str]:
        """Say which bounds do not hold."""
        lines = [f"{way}: {count} of them never came" for way, count in self.unanswered.items() if count]
        lines += [
            f"{kind}: {what}, {count}" for kind in BOUND for what, count in self.counts[kind].items() if count
        ]
        if self.seconds >= _SHORTEST:
            lines += [
                f"{name} grows by {each:.1f} MiB an hour; {LARGEST_GROWTH:g} are allowed"
                for name, each in self.growth.items()
                if each > LARGEST_GROWTH
            ]
        return lines


def read(folder: Path, name: str) -> LongRun:
    """Return what a run has left in a folder."""
    samples = [json.loads(line) for line in (folder / SAMPLES).read_text().splitlines()]
    times = np.array([sample["at"] for sample in samples])
    begin, end = times[0] + _EDGE, times[-1] - _EDGE
    rows = {
        topic: np.fromfile(file_of(folder, topic), dtype=np.int64).reshape(-1, COLUMNS) for topic in TOPICS
    }
    sent = {topic: _between(each, begin, end) for topic, each in rows.items()}
    delays, delays_at = {}, {}
    for way, (asked, answered) in ANSWERS.items():
        delays[way] = _answer_delays(sent[asked], rows[answered])
        delays_at[way] = 1e-9 * sent[asked][:, 1] - times[0]
    way, asked, answered = COMMANDS
    delays[way] = _next_delays(sent[asked], rows[answered])
    delays_at[way] = 1e-9 * sent[asked][:, 1] - times[0]
    names = list(samples[0]["memory"])
    memory = {name: np.array([sample["memory"].get(name, np.nan) for sample in samples]) for name in names}
    used = {name: np.array([sample["processor"].get(name, np.nan) for sample in samples]) for name in names}
    return LongRun(
        name=name,
        seconds=float(times[-1] - times[0]),
        rates={topic: len(each) / (end - begin) for topic, each in sent.items()},
        sent={topic: len(each) for topic, each in sent.items()},
        delays=delays,
        delays_at=delays_at,
        silent=_silences(rows.values(), begin, end),
        stolen=samples[-1]["stolen"] - samples[0]["stolen"],
        unheard=sum(int((np.diff(each[:, 2]) - 1).clip(min=0).sum()) for each in sent.values()),
        counts=_counts(folder / REPORTS, times[0], times[-1]),
        times=times - times[0],
        load=np.array([sample["load"] for sample in samples]),
        memory=memory,
        processor={name: np.diff(each) / np.diff(times) for name, each in used.items()},
    )


def _between(rows: Rows, begin: float, end: float) -> Rows:
    return rows[(rows[:, 1] >= 1e9 * begin) & (rows[:, 1] < 1e9 * end)]


def _silences(rows: Iterable[Rows], begin: float, end: float) -> Array:
    sent = np.sort(np.concatenate([_between(each, begin, end)[:, 1] for each in rows]))
    pauses = 1e-9 * np.diff(sent)
    return pauses[pauses > SILENCE]


def _answer_delays(asked: Rows, answers: Rows) -> Array:
    """Return from publication to publication [s], by the stamp that both have; infinite without an answer."""
    order = np.argsort(answers[:, 0], kind="stable")
    stamps, sent = answers[order, 0], answers[order, 1]
    place = np.searchsorted(stamps, asked[:, 0]).clip(max=len(stamps) - 1)
    return np.where(stamps[place] == asked[:, 0], 1e-9 * (sent[place] - asked[:, 1]), np.inf)


def _next_delays(asked: Rows, answers: Rows) -> Array:
    """Return the time to the next message of another topic [s]; infinite beyond what drives hold."""
    sent = np.sort(answers[:, 1])
    place = np.searchsorted(sent, asked[:, 1])
    late = np.full(len(asked), np.inf)
    found = place < len(sent)
    late[found] = 1e-9 * (sent[place[found]] - asked[found, 1])
    return np.where(late > HELD, np.inf, late)


def _counts(file: Path, begin: float, end: float) -> dict[str, dict[str, int]]:
    """Return what nodes have counted between two instants, where it is not nothing."""
    reports = [json.loads(line) for line in file.read_text().splitlines()]
    first = next(each["reports"] for each in reversed(reports) if each["at"] <= begin or each is reports[0])
    last = next(
        each["reports"] for each in reversed(reports) if each["at"] <= end + 2.0 or each is reports[0]
    )
    counted: dict[str, dict[str, int]] = {kind: {} for kind in _COUNTS}
    for node, key, kind, count in _counted(last):
        before = first.get(node, {}).get(key, "0")
        if more := count - int(before):
            counted[kind][f"{node}, {key}"] = more
    return counted


def _counted(reports: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str, int]]:
    for node, facts in reports.items():
        for key, text in facts.items():
            for kind, pattern in _COUNTS.items():
                if pattern.search(key) and re.fullmatch(r"\d+", text):
                    yield node, key, kind, int(text)


def tables(runs: Sequence[LongRun]) -> str:
    """Return what was seen, as tables in Markdown."""
    return "\n\n".join(["\n".join(each) for each in (_losses(runs), _late(runs), *map(_processes, runs))])


def _losses(runs: Sequence[LongRun]) -> list[str]:
    lines = _head("", *(run.name for run in runs))

    def row(what: str, *cells: Any) -> None:
        lines.append(_line(what, *cells))

    row("time", *(f"{run.seconds / 60.0:.0f} min" for run in runs))
    row(
        "load average, median (largest)",
        *(f"{np.median(run.load):.1f} ({run.load.max():.1f})" for run in runs),
    )
    row("kept by the host of the virtual machine (steal)", *(f"{run.stolen:.1f} s" for run in runs))
    row(
        f"all nodes silent for {SILENCE:g} s or longer",
        *(f"{len(run.silent)} times, {run.silent.sum():.1f} s" for run in runs),
    )
    for topic in ("desired_motion", "motor_states", "effort_commands"):
        row(f"`{topic}` a second", *(f"{run.rates[topic]:.0f}" for run in runs))
    row("messages that were sent", *(sum(run.sent.values()) for run in runs))
    for way in ANSWERS:
        row(f"{way}: no answer", *(f"{run.unanswered[way]} of {len(run.delays[way])}" for run in runs))
    for way in COMMANDS[:1]:
        missing = (int(np.isinf(run.delays[way]).sum()) for run in runs)
        row(
            f"{way}: none within {HELD:g} s",
            *(f"{count} of {len(run.delays[way])}" for count, run in zip(missing, runs)),
        )
    for kind in _COUNTS:
        row(f"{kind}, by all nodes", *(sum(run.counts[kind].values()) for run in runs))
    row("unheard by the process that measures", *(run.unheard for run in runs))
    return lines


def _late(runs: Sequence[LongRun]) -> list[str]:
    lines = _head("from publication to publication [ms]", "", "median", "99 %", "99.9 %", "latest")
    for way in (*ANSWERS, COMMANDS[0]):
        for run in runs:
            came = run.delays[way][np.isfinite(run.delays[way])]
            figures = 1e3 * np.percentile(came, PERCENTS) if len(came) else np.full(len(PERCENTS), np.nan)
            lines.append(_line(way, run.name, *(f"{each:.3g}" for each in figures)))
    return lines


def _processes(run: LongRun) -> list[str]:
    lines = _head(run.name, "processors, mean", "memory, once warm [MiB]", "at the end", "growth an hour")
    warm = int(np.searchsorted(run.times, min(_WARM_UP, 0.2 * run.seconds)))
    for name, memory in run.memory.items():
        cells = (f"{np.nanmean(run.processor[name]):.2f}", f"{memory[warm]:.1f}", f"{memory[-1]:.1f}")
        lines.append(_line(f"`{name}`", *cells, _signed(run.growth[name])))
    total = sum(float(np.nanmean(each)) for each in run.processor.values())
    return [*lines, _line("all", f"{total:.2f}", "", "", "")]


def _signed(number: float) -> str:
    return f"{round(number, 1) + 0.0:+.1f}"  # no negative zero


def _head(*titles: str) -> list[str]:
    return [_line(*titles), _line(*("---" for _ in titles))]


def _line(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"
