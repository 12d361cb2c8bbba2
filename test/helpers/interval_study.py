"""How often intervals of 95 % hold what is true, and how far estimates are off in the mean, by figure.

python test/helpers/interval_study.py 40 ElasticPlant
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import measured_plants
import numpy as np
from measured_plants import Plant, wrong

from hodyn_ros.identification import identify

INTERVAL = 1.96  # standard deviations


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


def study(plant: Plant, seeds: Iterable[int]) -> list[Row]:
    """Identify the plant from a recording for each seed."""
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        robot = plant.robot(Path(folder))
        for seed in seeds:
            result = identify(wrong(robot), plant.recording(seed))
            true = plant.truth(robot, result)
            for figure in (*result.figures, result.effort_delay):
                if figure.identified and figure.name in true:
                    found[figure.name].append((true[figure.name], figure.value, figure.deviation))
    rows = []
    for name, values in found.items():
        true_value, value, deviation = np.array(values).T
        value = value - true_value + true_value[0]  # base parameters may be of other combinations
        inside = np.abs(value - true_value[0]) < INTERVAL * deviation
        rows.append(
            Row(name, len(values), float(true_value[0]), float(np.mean(value)), float(np.std(value)),
                float(np.mean(deviation)), float(np.mean(inside)))
        )  # fmt: skip
    return rows


if __name__ == "__main__":
    rows = study(getattr(measured_plants, sys.argv[2])(), range(int(sys.argv[1])))
    for row in rows:
        print(f"{row.name[:50]:50} {row.recordings:3} {row.true:10.5g} {row.mean:10.5g} {row.scatter:9.3g} "
              f"{row.said:9.3g} {row.inside:5.2f} {row.bias:6.2f}")  # fmt: skip
    whole = sum(row.inside * row.recordings for row in rows) / sum(row.recordings for row in rows)
    print(f"all: {whole:.3f} of {sum(row.recordings for row in rows)}")
