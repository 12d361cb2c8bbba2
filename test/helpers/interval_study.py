"""How often intervals of 95 % hold what is true, and how far estimates are off in the mean, by figure.

python test/helpers/interval_study.py 40 ElasticPlant out/elastic.jsonl 200 --processes 2

The last number is the seed of the first recording (0 where it is left out): what was looked at while the
code was made is no proof of it. Processes have one thread each.

Each recording that was identified is a line of the log, so that a study that was cut off goes on from there,
and what it has found so far can be read: with 0 recordings more, the table alone is printed.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import measured_plants
import numpy as np
from measured_plants import TOGETHER, Plant, wrong

from hodyn_ros.identification import identify

INTERVAL = 1.96  # standard deviations
KINDS = (
    "Coulomb friction", "viscous friction", "offset of the effort", "stiffness", "spring damping",
    "delay of the link encoder", "delay of the efforts",
)  # fmt: skip

Figures = Mapping[str, tuple[float, float, float]]  # name: true, value, standard deviation


class Row(NamedTuple):
    """One figure: in how many recordings it was identified, and what came of it."""

    name: str
    recordings: int
    true: float
    mean: float
    scatter: float
    said: float  # mean of the standard deviations
    inside: float  # share of the intervals that hold it

    @property
    def bias(self) -> float:
        """What estimates are off in the mean, in deviations of one."""
        return (self.mean - self.true) / self.said


def identified(plant: Plant, seeds: Iterable[int]) -> Iterator[tuple[int, Figures]]:
    """Yield what is identified of the plant from a recording for each seed."""
    with tempfile.TemporaryDirectory() as folder:
        robot = plant.robot(Path(folder))
        chosen = list(seeds)
        for seed, recording in zip(chosen, plant.recordings(chosen)):
            result = identify(wrong(robot), recording)
            true = plant.truth(robot, result)
            yield (
                seed,
                {
                    figure.name: (true[figure.name], figure.value, figure.deviation)
                    for figure in (*result.figures, result.effort_delay)
                    if figure.identified and figure.name in true
                },
            )


def rows(found: Iterable[Figures]) -> list[Row]:
    """Return a row for each figure that any recording tells."""
    by_name: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for figures in found:
        for name, values in figures.items():
            by_name[name].append(values)
    result = []
    for name, values in by_name.items():
        true_value, value, deviation = np.array(values).T
        value = value - true_value + true_value[0]  # base parameters may be of other combinations
        inside = np.abs(value - true_value[0]) < INTERVAL * deviation
        result.append(
            Row(name, len(values), float(true_value[0]), float(np.mean(value)), float(np.std(value)),
                float(np.mean(deviation)), float(np.mean(inside)))
        )  # fmt: skip
    return result


def by_kind(found: Iterable[Figures]) -> dict[str, tuple[int, float, float, float]]:
    """Return how many figures of each kind there are, how many intervals hold the truth, and how far off.

    That is the mean and the root mean square of what estimates are off, in deviations.
    """
    off: dict[str, list[float]] = defaultdict(list)
    for figures in found:
        for name, (true, value, deviation) in figures.items():
            kind = next((each for each in KINDS if name.startswith(each)), "inertias")
            for each in (kind, "all"):
                off[each].append((value - true) / deviation)
    return {
        kind: (
            len(each),
            float(np.mean(np.abs(each) < INTERVAL)),
            float(np.mean(each)),
            float(np.sqrt(np.mean(np.square(each)))),
        )
        for kind, each in sorted(off.items(), key=lambda pair: pair[0] == "all")
    }


def study(plant: Plant, seeds: Iterable[int]) -> list[Row]:
    """Identify the plant from a recording for each seed."""
    return rows(figures for _, figures in identified(plant, seeds))


def _identify_into(log: Path, name: str, seeds: Sequence[int]) -> None:
    for seed, figures in identified(getattr(measured_plants, name)(), seeds):
        with log.open("a") as file:
            file.write(json.dumps([seed, figures]) + "\n")


def _found_in(log: Path) -> dict[int, Figures]:
    return {int(seed): figures for seed, figures in map(json.loads, log.read_text().splitlines())}


def main(count: int, name: str, log: Path, first: int, processes: int) -> None:
    """Identify what the log lacks of so many recordings from the first seed on, and print the table.

    Each process has an interpreter of its own, whose libraries read what follows when they are loaded: one
    thread.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    left = sorted(set(range(first, first + count)) - set(_found_in(log)))
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    step = max(1, min(TOGETHER, -(-len(left) // (2 * processes))))
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        parts = [left[i : i + step] for i in range(0, len(left), step)]
        for part in as_completed([pool.submit(_identify_into, log, name, part) for part in parts]):
            part.result()  # raises what went wrong
    done = _found_in(log)
    from scipy.stats import binom  # takes a moment, for the tests that import this file

    table = rows(done.values())
    print(f"{'figure':50}   N       true       mean   scatter      said inside  bias")
    for row in table:
        print(f"{row.name[:50]:50} {row.recordings:3} {row.true:10.5g} {row.mean:10.5g} {row.scatter:9.3g} "
              f"{row.said:9.3g} {row.inside:6.3f} {row.bias:5.2f}")  # fmt: skip
    often = [row for row in table if 2 * row.recordings > len(done)]
    fair = sum(0.92 <= row.inside <= 0.98 for row in often)
    print(f"92 to 98 % inside: {fair} of {len(often)} figures; off by more than a third of their deviation: "
          f"{sum(abs(row.bias) > 1.0 / 3.0 for row in often)}")  # fmt: skip
    print(f"{'kind':30}    N  inside  95 % of it  mean   RMS   [deviations]")
    for kind, (size, inside, mean, scatter) in by_kind(done.values()).items():
        low, high = binom.interval(0.95, size, 0.95)  # of true intervals, if all were independent
        print(
            f"{kind:30} {size:4}   {inside:.3f} {low / size:.3f}-{high / size:.3f} {mean:5.2f} {scatter:5.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How often intervals of 95 % hold what is true.")
    parser.add_argument("count", type=int, help="recordings, those in the log among them; 0: its table alone")
    parser.add_argument("name", choices=[plant.__name__ for plant in measured_plants.PLANTS])
    parser.add_argument("log", type=Path, help="a line for each recording, which are kept")
    parser.add_argument("first", type=int, nargs="?", default=0, help="seed of the first recording")
    parser.add_argument("--processes", type=int, default=1, help="that identify beside each other")
    main(**vars(parser.parse_args()))
