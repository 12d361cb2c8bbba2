"""Write a report: one HTML file, its pictures beside it, and all figures as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hodyn_ros.identification.reporting.page import page
from hodyn_ros.identification.reporting.pictures import draw_figures, draw_fits
from hodyn_ros.identification.reporting.run import Run
from hodyn_ros.identification.result import Identified, units
from hodyn_ros.outputs import write_text


def write_report(result: Identified, runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write a report on what was found from the first of the runs; return its files."""
    folder.mkdir(parents=True, exist_ok=True)
    own, *validations = runs
    data = result.as_data() | {
        "effort_rates": own.as_data()["effort_rates"],
        "validation": [run.as_data() for run in validations],
    }
    write_text(folder / "identified.json", json.dumps(data, indent=2) + "\n")
    pictures: list[tuple[str, Path]] = []
    both = units(result.robot)
    of_efforts = {name: effort for name, (effort, _) in both.items()}
    of_bends = {name: f"µ{position}" for name, (_, position) in both.items()}
    for i, run in enumerate(runs):
        start = f"validation{i}-" if i else ""
        title = f"{result.robot.name} on {run.title}"
        path = draw_fits(run.efforts, of_efforts, 1.0, f"Efforts of {title}", folder / f"{start}efforts.png")
        pictures.append((f"Efforts of {run.title}", path))
        if run.deflections:
            where = folder / f"{start}deflections.png"
            path = draw_fits(run.deflections, of_bends, 1e6, f"Motor minus link of {title}", where)
            pictures.append((f"Motor minus link of {run.title}", path))
    pictures.append(("Figures with their intervals", draw_figures(result, folder / "figures.png")))
    write_text(folder / "report.html", page(result, runs, pictures))
    return [folder / "report.html", folder / "identified.json", *(path for _, path in pictures)]
